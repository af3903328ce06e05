//! One shard with its simulated venue, and a strategy at it, on one thread and with the time of the
//! ticks: the same parts that run in the service.

use std::sync::Arc;
use std::sync::mpsc::{Receiver, channel};

use pitlane_engine::command::{Command, CommandKind, Quote, StrategyPhase};
use pitlane_engine::desk::IdBlock;
use pitlane_engine::id::{SecurityId, ShardId, Source, StrategyId};
use pitlane_engine::mesh::{Depths, PortClass, PortEnd, mesh};
use pitlane_engine::pages::LargePages;
use pitlane_engine::refdata::{RefData, sample};
use pitlane_engine::settings::ShardSettings;
use pitlane_engine::shard::Shard;
use pitlane_engine::time::Timestamp;
use pitlane_engine::worker::Worker;
use pitlane_strategy::Operation;
use pitlane_strategy::dispatcher::{DispatchedEvent, EventClass};
use pitlane_strategy::host::{HostSettings, StrategyFactory, unguarded};
use pitlane_strategy::runner::{Runner, RunnerSettings};

/// The stock of the sample reference data: one share is a lot, one cent is a tick.
pub const STOCK: SecurityId = SecurityId(1);
const STRATEGY: StrategyId = StrategyId(1);
/// Events that the runner handles in one round.
const EVENTS_PER_ROUND: usize = 1_000;

pub struct Market {
    worker: Worker,
    feed: PortEnd,
    runner: Runner,
    lines: Receiver<String>,
}

impl Market {
    /// Starts the strategy; it is in phase RUNNING when this returns.
    pub fn new(make: StrategyFactory, start: Timestamp) -> Market {
        let reference = Arc::new(RefData::check(sample::sound()).expect("the sample is valid"));
        let depths = Depths { commands: 64, events: 256 };
        let (mut ports, mut ends) = mesh(&[PortClass::Client, PortClass::Feed], 1, depths);
        let settings = ShardSettings { orders_max: 10_000, ..ShardSettings::default() };
        let worker = Worker::new(Shard::new(ShardId(0), 1, reference.clone(), settings), ends.remove(0));
        let feed = ports.remove(1);
        let settings = RunnerSettings {
            operation: Operation::RealTime,
            guard: unguarded,
            orders_max: 10_000,
            finished_max: 100,
            numbers: IdBlock { next: 1, end: 1_000_000 },
            seed: 1,
            pages: LargePages::NONE,
        };
        let name = "momentum".to_string();
        let host = HostSettings { id: STRATEGY, name, make, start: true, cancel_on_failure: true };
        let mut runner = Runner::new(ports.remove(0), reference, settings, vec![host]);
        let lines = listen(&mut runner);
        let mut market = Market { worker, feed, runner, lines };
        market.run(start);
        market.runner.begin();
        market.run(start);
        market
    }

    /// Publishes a quote, and handles everything that follows from it.
    pub fn quote(&mut self, quote: Quote) -> Result<(), String> {
        let source = Source { port: self.feed.id(), ..Source::default() };
        let command = Command::new(source, 0, CommandKind::Quote { security: STOCK, quote });
        self.feed.send(ShardId(0), command).map_err(|_| "the lane is full")?;
        self.run(quote.at);
        let host = &self.runner.hosts()[0];
        match host.reason() {
            Some(reason) => Err(format!("the strategy has stopped: {reason}")),
            None => Ok(()),
        }
    }

    pub fn phase(&self) -> StrategyPhase {
        self.runner.hosts()[0].phase()
    }

    /// Returns a line for each transaction since the last call.
    pub fn take_lines(&mut self) -> Vec<String> {
        self.lines.try_iter().collect()
    }

    /// Runs shard and strategy in turn until neither has work left.
    fn run(&mut self, now: Timestamp) {
        loop {
            let mut work = self.worker.poll(now);
            work += self.runner.drain_events(now, EVENTS_PER_ROUND) + self.runner.poll(now);
            while self.feed.poll_event().is_some() {}
            if work == 0 {
                return;
            }
        }
    }
}

/// Registers a listener that describes each transaction.
fn listen(runner: &mut Runner) -> Receiver<String> {
    let (sender, lines) = channel();
    let listener = Box::new(move |now: Timestamp, event: &DispatchedEvent<'_>| {
        if let DispatchedEvent::Transaction(booking) = event {
            let (qty, price, held) = (booking.qty, booking.price, booking.position.qty);
            let realized = booking.position.realized;
            // The receiver lives as long as the runner; without it there is nothing to tell.
            let _ = sender.send(format!("{now} traded {qty} at {price}, holds {held}, realized {realized}"));
        }
    });
    let registered = runner.dispatcher_mut().register(&[EventClass::Transaction], listener);
    registered.expect("a new runner has room for a listener");
    lines
}
