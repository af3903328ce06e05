//! The platform of a simulation: shards, control, a feed and the runner, stepped in one thread by
//! the times of the data.

use std::sync::Arc;

use pitlane_config::Config;
use pitlane_engine::command::{Command, CommandKind, Movement, MovementKind, StrategyPhase, WatchTarget};
use pitlane_engine::desk::IdBlock;
use pitlane_engine::id::{AccountId, Origin, PortId, Source, StrategyId};
use pitlane_engine::index::index_u8;
use pitlane_engine::mesh::{PortClass, PortEnd, ShardEnd, mesh};
use pitlane_engine::number::{Money, Price, Qty};
use pitlane_engine::pending_commands::PendingCommands;
use pitlane_engine::refdata::RefData;
use pitlane_engine::shard::{CommandRoute, route, shard_of};
use pitlane_engine::time::Timestamp;
use pitlane_engine::worker::Worker;
use pitlane_gateway::control::{Control, session_states};
use pitlane_gateway::strategies;
use pitlane_gateway::{PlatformParts, PlatformSettings, RecoveredShard};
use pitlane_market_data::TickRow;
use pitlane_strategy::Operation;
use pitlane_strategy::registry::Registry;
use pitlane_strategy::runner::{Notice, Runner};

use super::account::SimulationAccount;
use super::latency::Latencies;

const CONTROL: PortId = PortId(0);
const READER: PortId = PortId(1);
const FEED: PortId = PortId(2);
const RUNNER: PortId = PortId(3);
const PORTS: [PortClass; 4] = [PortClass::Control, PortClass::Client, PortClass::Feed, PortClass::Client];
/// Events handled before other parts are polled.
const EVENTS_MAX: usize = 4_096;
/// Rounds at one instant after which time continues although there is work left: strategies that
/// react to each other for ever.
const ROUNDS_MAX: usize = 100_000;

#[derive(Debug)]
pub struct SimulatedMarket {
    workers: Vec<Worker>,
    control: Control,
    feed: PortEnd,
    runner: Runner,
    reader: PortEnd,
    pending_commands: PendingCommands,
    account: SimulationAccount,
    now: Timestamp,
    /// Rows of data that were handled.
    rows: u64,
    /// End of PREFEED.
    from: Timestamp,
    is_running: bool,
    /// Time at which something other than data is due.
    next: Timestamp,
}

impl SimulatedMarket {
    /// Creates a running platform at `now`, with strategies that run from `from` on.
    pub fn new(
        config: &Config,
        reference: &Arc<RefData>,
        registry: &Registry,
        now: Timestamp,
        from: Timestamp,
        latencies: &Latencies,
    ) -> SimulatedMarket {
        let settings = PlatformSettings::of(&latencies.allowed_by(config), reference);
        let (ports, ends) = mesh(&PORTS, settings.shards, settings.depths);
        let [control, reader, feed, runner] =
            <[PortEnd; PORTS.len()]>::try_from(ports).expect("the mesh has an end for each port");
        assert_eq!([CONTROL, READER, FEED, RUNNER], [control.id(), reader.id(), feed.id(), runner.id()]);
        let fresh = PlatformParts::fresh_shards(reference, &settings);
        let session_states = session_states(fresh.iter().map(|fresh| &fresh.shard));
        let worker = |(mut fresh, end): (RecoveredShard, ShardEnd)| {
            fresh.shard.draw_delays(latencies.entry.clone(), latencies.response.clone());
            Worker::new(fresh.shard, end)
        };
        let workers = fresh.into_iter().zip(ends).map(worker).collect();
        let numbers = IdBlock { next: 1, end: u64::MAX };
        let hosts = strategies::hosts(&config.strategies, reference, registry);
        let run = strategies::runner_settings(Operation::Simulation, numbers, settings.seed);
        let mut pending_commands =
            PendingCommands::new(Source { origin: Origin::Server, port: READER, session: 0 });
        pending_commands.push_all(CommandKind::Watch { port: READER, what: WatchTarget::Orders, on: true });
        pending_commands.push_all(CommandKind::Snapshot { port: READER });
        let mut rig = SimulatedMarket {
            workers,
            control: Control::new(control, now, settings.control_settings, session_states),
            feed,
            runner: Runner::new(runner, reference.clone(), run, hosts),
            reader,
            pending_commands,
            account: SimulationAccount::new(config, reference.clone(), settings.shards),
            now,
            rows: 0,
            from,
            is_running: false,
            next: Timestamp::ZERO,
        };
        rig.settle();
        rig.runner.begin();
        rig.settle();
        rig.pay(config);
        rig.lead(StrategyPhase::Prefeed);
        rig
    }

    /// Books the initial cash of each strategy.
    fn pay(&mut self, config: &Config) {
        let account = self.account.reference().accounts().iter().find(|row| row.active);
        let (Some(account), cash) = (account.map(|row| row.id), config.simulation.cash) else { return };
        let ids: Vec<_> = self.runner.hosts().iter().map(|host| host.id()).collect();
        for strategy in ids {
            self.book(credit(strategy, account, cash, config));
        }
        self.settle();
    }

    fn book(&mut self, movement: Movement) {
        let body = CommandKind::Transaction(movement);
        match route(&body, index_u8(self.workers.len())) {
            CommandRoute::One(shard) => self.pending_commands.push(shard, body),
            CommandRoute::All => self.pending_commands.push_all(body),
        }
    }

    fn lead(&mut self, to: StrategyPhase) {
        let ids: Vec<_> = self.runner.hosts().iter().map(|host| host.id()).collect();
        for strategy in ids {
            // A strategy that has failed keeps its phase.
            if self.runner.hosts().iter().any(|host| host.id() == strategy && host.reason().is_none()) {
                let _ = self.runner.request_phase(strategy, to);
            }
        }
        self.settle();
    }

    /// Handles a row of data: first everything that is due before it, then the row, then all its
    /// consequences.
    #[inline]
    pub fn handle(&mut self, row: &TickRow) {
        if !self.is_running && row.at >= self.from {
            self.advance(self.from);
            self.lead(StrategyPhase::Running);
            self.is_running = true;
            self.account.begin(self.now.max(self.from));
        }
        if self.next <= row.at {
            self.advance(row.at);
        }
        self.now = self.now.max(row.at);
        self.rows += 1;
        self.account.see(row);
        let shard = shard_of(row.security, self.feed.shards());
        let source = Source { origin: Origin::Server, port: FEED, session: 0 };
        let command = Command::new(source, 0, row.body);
        self.feed.send(shard, command).expect("the lane was emptied at the last row");
        let worker = &mut self.workers[shard.0 as usize];
        worker.poll(self.now);
        self.runner.drain_events(self.now, EVENTS_MAX);
        let has_orders = self.runner.poll(self.now) > 0;
        // The strategy may have set a timer that is due before the next row.
        self.next = self.next.min(self.runner.deadline());
        if has_orders || self.drain_events() > 0 || self.workers[shard.0 as usize].has_work() {
            self.settle();
        }
    }

    /// Advances time, from one due time to the next.
    #[cold]
    fn advance(&mut self, to: Timestamp) {
        loop {
            let next = self.due();
            self.next = next;
            if next > to {
                return;
            }
            self.now = self.now.max(next);
            self.account.begin_step();
            if self.is_running && self.account.sample_at() <= self.now {
                self.account.sample(self.now);
            }
            self.settle();
            // Work that becomes due at the same instant is done with the next row.
            if self.due() <= next {
                self.next = next.plus(1);
                return;
            }
        }
    }

    /// Returns the time at which something other than data is due.
    fn due(&self) -> Timestamp {
        let shards = self.workers.iter().filter_map(Worker::deadline).min().unwrap_or(Timestamp::MAX);
        let sample = if self.is_running { self.account.sample_at() } else { Timestamp::MAX };
        shards.min(self.runner.deadline()).min(self.control.next_change()).min(sample)
    }

    /// Polls all parts until none has work at this instant.
    fn settle(&mut self) {
        for _ in 0..ROUNDS_MAX {
            while let Some(movement) = self.account.poll_fee() {
                self.book(movement);
            }
            let mut work = self.pending_commands.poll(&mut self.reader);
            work += self.workers.iter_mut().map(|worker| worker.poll(self.now)).sum::<usize>();
            work += self.control.drain_events(|_, _| {}) + self.control.poll(self.now, |_, _| {});
            work += self.drain_events();
            work += self.runner.drain_events(self.now, EVENTS_MAX) + self.runner.poll(self.now);
            while self.feed.poll_event().is_some() {
                work += 1;
            }
            while let Some(notice) = self.runner.poll_notice() {
                if let Notice::Failed { name, reason, .. } = notice {
                    self.account.note_failure(self.now, &name, &reason);
                }
                work += 1;
            }
            if work == 0 {
                break;
            }
        }
        self.next = self.due();
    }

    fn drain_events(&mut self) -> usize {
        let mut drained = 0;
        while let Some((shard, event)) = self.reader.poll_event() {
            self.account.handle(shard, &event);
            drained += 1;
        }
        drained
    }

    /// Ends the run after all data: strategies stop, and open positions are valued at the last
    /// prices.
    pub fn end(mut self) -> SimulationAccount {
        if !self.is_running {
            self.account.begin(self.now);
        }
        self.runner.stop_all(self.now);
        self.settle();
        self.account.end(self.now, self.rows);
        self.account
    }
}

fn credit(strategy: StrategyId, account: AccountId, cash: Money, config: &Config) -> Movement {
    Movement {
        kind: MovementKind::Credit,
        strategy,
        account,
        security: None,
        qty: Qty::ZERO,
        price: Price::from_raw(cash.raw()),
        commission: Money::ZERO,
        currency: config.service.base_currency,
        uuid: Default::default(),
    }
}
