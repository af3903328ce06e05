//! A shard through many starts: it gets commands from clients, feeds and operators, is saved,
//! loaded, and started again under other settings and reference data. All its input is recorded, as
//! in a journal.

use std::sync::Arc;

use pitlane_engine::command::{Command, CommandKind, WatchTarget};
use pitlane_engine::event::Event;
use pitlane_engine::id::{OrderHandle, PortId, SecurityId, ShardId};
use pitlane_engine::outbox::Outbox;
use pitlane_engine::refdata::{RefData, RefDataRows};
use pitlane_engine::settings::{FillModel, QuoteSizes, SelfTrade, ShardSettings};
use pitlane_engine::shard::Shard;
use pitlane_engine::time::Timestamp;

use crate::checks::Checker;
use crate::dice::Dice;
use crate::replay::{self, ShardInput};
use crate::test_market;
use crate::workload::Action;

#[derive(Debug)]
pub struct ShardRun {
    pub shard: Shard,
    checker: Checker,
    now: Timestamp,
    out: Outbox,
    handles: Vec<OrderHandle>,
    pub journal: Vec<ShardInput>,
    first: (Arc<RefData>, ShardSettings),
    /// A snapshot, its setup, and the length of the journal at that time.
    kept: Option<(Vec<u8>, Arc<RefData>, ShardSettings, usize)>,
}

impl ShardRun {
    pub fn new(settings: ShardSettings) -> ShardRun {
        let reference = test_market::reference();
        let mut run = ShardRun {
            shard: Shard::new(ShardId(0), 1, reference.clone(), settings.clone()),
            checker: Checker::new(ShardId(0), reference.clone()),
            now: test_market::start(),
            out: Outbox::new(0),
            handles: Vec::new(),
            journal: Vec::new(),
            first: (reference, settings),
            kept: None,
        };
        run.listen().expect("there are no events yet");
        run
    }

    /// Subscribes the port again, and connects the external venue.
    fn listen(&mut self) -> Result<(), String> {
        self.send_command(CommandKind::Watch { port: PortId(0), what: WatchTarget::Everything, on: true })?;
        self.send_command(CommandKind::Adapter { adapter: test_market::OUTSIDE_ADAPTER, connected: true })
    }

    pub fn step(&mut self, action: &Action) -> Result<(), String> {
        let handle = |nth: usize| self.handles.get(nth).copied().unwrap_or(OrderHandle::NONE);
        let body = match *action {
            Action::Wait(ns) => return self.wait(ns),
            Action::Plain(body) => body,
            Action::Modify { nth, id, changes } => CommandKind::Modify { order: handle(nth), id, changes },
            Action::Cancel { nth, id } => CommandKind::Cancel { order: handle(nth), id },
            Action::Report { nth, report } => CommandKind::Report { order: handle(nth), report },
        };
        self.send_command(body)
    }

    fn wait(&mut self, ns: u64) -> Result<(), String> {
        self.now = self.now.plus(ns);
        if self.shard.deadline().is_some_and(|deadline| deadline <= self.now) {
            self.send_command(CommandKind::Timer)?;
        }
        Ok(())
    }

    pub fn now(&self) -> Timestamp {
        self.now
    }

    fn send_command(&mut self, body: CommandKind) -> Result<(), String> {
        let command = Command::new(test_market::source(0, 1), 1, body);
        self.journal.push(ShardInput::Command(self.now, command));
        self.shard.apply(self.now, &command, &mut self.out);
        let events = self.drain_events()?;
        if matches!(body, CommandKind::Submit { .. } | CommandKind::Close { .. }) {
            let entered = events.iter().find_map(|event| Some(event.body.answered_order()?.order));
            self.handles.push(entered.unwrap_or(OrderHandle::NONE));
        }
        Ok(())
    }

    /// Restarts the process: with other settings, at times with other reference data.
    pub fn begin(&mut self, dice: &mut Dice) -> Result<(), String> {
        let mut settings = self.shard.settings().clone();
        other(&mut settings, dice);
        let reference = match dice.percent(40) {
            true => Arc::new(successor(self.shard.reference(), dice)),
            false => self.shard.reference().clone(),
        };
        self.now = self.now.plus(dice.pick(&[0, 1_000, 60_000_000_000]));
        self.journal.push(ShardInput::Began(self.now, reference.clone(), settings.clone()));
        self.shard.begin(self.now, reference, settings, &mut self.out);
        self.drain_events()?;
        self.listen()
    }

    fn drain_events(&mut self) -> Result<Vec<Event>, String> {
        let mut events = Vec::new();
        loop {
            events.extend(self.out.waiting().iter().map(|(_, event)| *event));
            self.out.clear();
            if !self.shard.has_work() {
                break;
            }
            self.shard.resume(&mut self.out);
        }
        for event in &events {
            self.checker.read(event)?;
        }
        self.shard.assert_consistent();
        Ok(events)
    }

    /// Continues with the shard loaded from its snapshot, and keeps the snapshot.
    pub fn reload(&mut self) -> Result<(), String> {
        self.shard = replay::reloaded(&self.shard, 1)?;
        let (reference, settings) = (self.shard.reference().clone(), self.shard.settings().clone());
        self.kept = Some((replay::image(&self.shard), reference, settings, self.journal.len()));
        Ok(())
    }

    /// Checks that the journal from the beginning gives this shard, and so does the last snapshot
    /// with the rest of the journal.
    pub fn check_journal(&self) -> Result<(), String> {
        let (reference, settings) = self.first.clone();
        let fresh = Shard::new(ShardId(0), 1, reference, settings);
        replay::check_replay(&self.journal, fresh, &self.shard, Some(self.out.seq()))?;
        if let Some((bytes, reference, settings, command_count)) = &self.kept {
            let loaded = Shard::load(bytes, ShardId(0), 1, reference.clone(), settings.clone())
                .map_err(|damage| damage.to_string())?;
            replay::check_replay(&self.journal[*command_count..], loaded, &self.shard, None)?;
        }
        self.checker.double_entry()
    }
}

fn other(settings: &mut ShardSettings, dice: &mut Dice) {
    settings.orders_max = dice.pick(&[20, 300, 1_000]);
    settings.finished_max = dice.pick(&[4, 64, 1_000]);
    settings.finished_outside_max = dice.pick(&[4, 64, 1_000]);
    settings.transactions_max = dice.pick(&[2, 40, 1_000]);
    settings.executions_max = dice.pick(&[3, 1_000]);
    let venue = &mut settings.venue;
    venue.fill_model = dice.pick(&FillModel::ALL);
    venue.slippage_ticks = dice.pick(&[0, 1, 2]);
    venue.quote_levels = dice.pick(&[0, 1, 3, 10]);
    venue.self_trade = dice.pick(&[SelfTrade::CancelNewest, SelfTrade::Allow]);
    venue.band_bp = dice.pick(&[0, 0, 60]);
    venue.reject_permille = dice.pick(&[0, 0, 50]);
    venue.partial_fill = dice.percent(30);
    venue.quote_sizes = dice.pick(&[QuoteSizes::Equal, QuoteSizes::Varied]);
    venue.seed = dice.pick(&[1, 2]);
    venue.delays.entry_ns = dice.pick(&[0, 0, 2_000_000]);
    venue.delays.response_ns = dice.pick(&[0, 0, 3_000_000]);
    venue.delays.response_jitter_ns = dice.pick(&[0, 700_000]);
    venue.delays.feed_ns = dice.pick(&[0, 0, 1_000_000]);
}

/// Returns the reference data of another day: one security less, whose state is kept, or one more,
/// and at times venues with other limits per order.
fn successor(old: &RefData, dice: &mut Dice) -> RefData {
    let mut rows = RefDataRows {
        exchanges: old.exchanges().to_vec(),
        families: old.families().to_vec(),
        securities: old.securities().to_vec(),
        accounts: old.accounts().to_vec(),
        strategies: old.strategies().to_vec(),
    };
    let last = rows.securities.last().expect("the world has securities").clone();
    if dice.percent(50) {
        let at = dice.index(rows.securities.len());
        let gone = rows.securities[at].id;
        let needed = rows.securities.iter().any(|row| row.underlying == Some(gone));
        if !needed {
            rows.securities.remove(at);
        }
    } else {
        let id = SecurityId(last.id.0 + 1);
        rows.securities.push(pitlane_engine::refdata::Security {
            id,
            symbol: format!("NEW{}", id.0),
            ..last
        });
    }
    if dice.percent(40) {
        let at = dice.index(rows.families.len());
        rows.families[at].limits = dice.pick(&test_market::order_limits());
    }
    let new = RefData::check(rows).expect("what was sound and lost nothing others need is sound");
    new.succeed(old).expect("no id has changed its meaning")
}
