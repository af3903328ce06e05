//! Runs the demo trader: its desk, its view of the market, and its port to the shards.

use std::sync::Arc;

use pitlane_engine::command::{CommandKind, WatchTarget};
use pitlane_engine::desk::{Desk, DeskSettings, IdBlock};
use pitlane_engine::id::{IntId, Origin, ShardId, Source, StrategyId};
use pitlane_engine::mesh::{PortEnd, ShardMask};
use pitlane_engine::pending_commands::PendingCommands;
use pitlane_engine::refdata::RefData;
use pitlane_engine::time::Timestamp;
use pitlane_engine::view::{View, ViewSettings};

use super::EVENTS_PER_POLL_MAX;

use pitlane_config::pages::LARGE_PAGES;
use pitlane_runtime::stages::{CounterStamp, LatencyRecorder, LatencyStage};

use crate::random_trader::RandomTrader;

/// Maximum number of finished orders and transactions in the trader's own view: it only uses open
/// orders.
const HISTORY_MAX: u32 = 1_000;

#[derive(Debug)]
pub struct DemoTrader {
    port: PortEnd,
    pending_commands: PendingCommands,
    desk: Desk,
    view: View,
    demo: RandomTrader,
    reference: Arc<RefData>,
    /// The order whose answer is being timed.
    timed: Option<(IntId, CounterStamp)>,
}

impl DemoTrader {
    /// Creates a trader for these strategies. `pause_ns` is the mean time between two actions;
    /// `numbers` are for the ids of its orders.
    pub fn new(
        port: PortEnd,
        reference: Arc<RefData>,
        strategies: Vec<StrategyId>,
        (seed, pause_ns): (u64, u64),
        numbers: IdBlock,
    ) -> DemoTrader {
        let (id, shards) = (port.id(), port.shards());
        let mut pending_commands =
            PendingCommands::new(Source { origin: Origin::Strategy, port: id, session: 0 });
        pending_commands.push_all(CommandKind::Watch { port: id, what: WatchTarget::Everything, on: true });
        pending_commands.push_all(CommandKind::Snapshot { port: id });
        let desk = DeskSettings {
            port: id,
            shards,
            orders_max: 10_000,
            ids_max: 40_000,
            finished_max: HISTORY_MAX,
            prefix: b'd',
            seed,
            pages: LARGE_PAGES,
        };
        let history = ViewSettings {
            finished_max: HISTORY_MAX,
            transactions_max: HISTORY_MAX,
            changes_max: 0,
            seed,
            ..ViewSettings::default()
        };
        DemoTrader {
            pending_commands,
            desk: Desk::new(desk, numbers),
            view: View::new(shards, history),
            demo: RandomTrader::new(strategies, seed, pause_ns),
            reference,
            port,
            timed: None,
        }
    }

    /// Returns whether its view holds the complete initial state.
    pub fn is_ready(&self) -> bool {
        (0..self.port.shards()).all(|shard| self.view.is_complete(ShardId(shard)))
    }

    /// Drains the events of the shards, up to a bound.
    pub fn drain_events(&mut self, mut recorder: Option<&mut LatencyRecorder>) -> usize {
        for drained in 0..EVENTS_PER_POLL_MAX {
            let Some((shard, event)) = self.port.poll_event() else { return drained };
            if let Some((id, sent)) = self.timed
                && event.report().is_some_and(|report| report.id == id)
            {
                if let Some(recorder) = recorder.as_deref_mut() {
                    recorder.count(LatencyStage::Answer, sent, recorder.stamp());
                }
                self.timed = None;
            }
            self.view.apply(shard, &event);
            // The trader ignores the results of its cancels.
            let _ = self.desk.handle_event(shard, &event);
        }
        EVENTS_PER_POLL_MAX
    }

    /// Acts if allowed and due; sends pending commands.
    pub fn poll(&mut self, now: Timestamp, may_act: bool, recorder: Option<&LatencyRecorder>) -> usize {
        let mut work = self.pending_commands.poll(&mut self.port) + self.desk.poll(&mut self.port);
        if !may_act || !self.is_ready() {
            return work;
        }
        let sent = recorder.map(LatencyRecorder::stamp);
        let DemoTrader { desk, port, view, reference, demo, .. } = self;
        let Some(request) = demo.poll(now, desk, port, view, reference) else { return work };
        work += 1;
        if self.timed.is_none() {
            self.timed = request.zip(sent);
        }
        work
    }

    pub fn is_waiting(&self) -> bool {
        !self.pending_commands.is_empty() || self.desk.has_requests()
    }

    pub fn deadline(&self) -> Timestamp {
        self.demo.next_at()
    }

    pub fn take_wakeups(&mut self) -> ShardMask {
        self.port.take_wakeups()
    }
}

#[cfg(test)]
mod tests {
    use pitlane_engine::command::{Command, Quote, StrategyPhase};
    use pitlane_engine::id::SecurityId;
    use pitlane_engine::mesh::{Depths, PortClass, mesh};
    use pitlane_engine::number::{Price, Qty};
    use pitlane_engine::settings::ShardSettings;
    use pitlane_engine::shard::Shard;
    use pitlane_engine::worker::Worker;

    use super::*;
    use crate::random_trader::OPEN_MAX;

    const NOW: Timestamp = Timestamp(1_800_000_000_000_000_000);

    /// A trader and the shard that executes its orders.
    struct Bench {
        trader: DemoTrader,
        worker: Worker,
        feed: PortEnd,
        now: Timestamp,
    }

    impl Bench {
        fn new() -> Bench {
            let reference = Arc::new(pitlane_config::refdata::shipped().unwrap());
            let strategies: Vec<StrategyId> = reference.strategies().iter().map(|row| row.id).collect();
            let (mut ports, mut ends) = mesh(&[PortClass::Client, PortClass::Feed], 1, Depths::default());
            let shard = Shard::new(ShardId(0), 1, reference.clone(), ShardSettings::default());
            let worker = Worker::new(shard, ends.remove(0));
            let feed = ports.remove(1);
            let numbers = IdBlock { next: 1, end: 1_000_000 };
            let trader = DemoTrader::new(ports.remove(0), reference, strategies.clone(), (7, 1), numbers);
            let mut bench = Bench { trader, worker, feed, now: NOW };
            for strategy in strategies {
                bench.send(CommandKind::Phase { strategy, phase: StrategyPhase::Running });
            }
            bench
        }

        fn send(&mut self, body: CommandKind) {
            let source = Source { origin: Origin::Server, port: self.feed.id(), session: 0 };
            self.feed.send(ShardId(0), Command::new(source, 0, body)).unwrap();
            self.worker.poll(self.now);
            while self.feed.poll_event().is_some() {}
        }

        /// Quotes a security at this bid, and an ask one tick above.
        fn quote(&mut self, security: u32, bid: Price, tick: Price) {
            let ask = Price::from_raw(bid.raw() + tick.raw());
            let size = Qty::whole(1_000).unwrap();
            let quote = Quote { bid, bid_size: size, ask, ask_size: size, at: self.now };
            self.send(CommandKind::Quote { security: SecurityId(security), quote });
        }

        /// Lets the trader act once, a millisecond later.
        fn act(&mut self) {
            self.now = self.now.plus(1_000_000);
            self.trader.poll(self.now, true, None);
            self.worker.poll(self.now);
            self.trader.drain_events(None);
        }
    }

    #[test]
    fn open_orders_and_history_are_bounded() {
        let mut bench = Bench::new();
        let (mut open_most, mut finished_most) = (0, 0);
        for turn in 0..40_000_i64 {
            if turn % 400 == 0 {
                // Orders rest behind a moving market, which then fills them.
                let unit = 100_000_000;
                bench.quote(1, Price::from_raw((100 + turn / 400 % 3) * unit), Price::from_raw(unit));
            }
            bench.act();
            let view = &bench.trader.view;
            open_most = open_most.max(view.open_orders_len());
            finished_most = finished_most.max(view.finished_orders_len());
        }
        assert_eq!(open_most, OPEN_MAX);
        assert_eq!(finished_most, HISTORY_MAX as usize);
        let transactions = bench.trader.view.transactions(None).count();
        assert!(transactions <= HISTORY_MAX as usize, "{transactions}");
    }

    #[test]
    fn positions_are_small_and_change_their_sides() {
        let mut bench = Bench::new();
        let reference = bench.trader.reference.clone();
        // A stock, an index future of which one tick is worth 12.5, and one of which it is worth 5.
        let of = |symbol| reference.securities().iter().find(|row| row.symbol == symbol).unwrap();
        let [stock, large, small] = ["AAPL", "ESZ7", "NQZ7"].map(of);
        let prices = [(stock, "230"), (large, "6000"), (small, "20900")];
        let mut sides = [false; 2];
        for turn in 0..20_000_i64 {
            for (security, price) in prices.iter().filter(|_| turn % 20 == 0) {
                let tick = reference.family_of(security).tick_size;
                let middle = Price::parse(price.as_bytes()).unwrap();
                let bid = Price::from_raw(middle.raw() + tick.raw() * (turn / 20 % 5));
                bench.quote(security.id.0, bid, tick);
            }
            bench.act();
            for position in bench.trader.view.positions() {
                let (qty, security) = (position.state.qty, position.id.security());
                assert_ne!(security, large.id);
                // Several orders of a strategy may be open at the same time.
                let most = if security == small.id { 8 } else { 80 };
                assert!(qty.abs() <= Qty::whole(most).unwrap(), "{qty} of {security:?}");
                sides[0] |= qty.is_positive();
                sides[1] |= qty.is_negative();
            }
        }
        assert_eq!(sides, [true; 2]);
    }
}
