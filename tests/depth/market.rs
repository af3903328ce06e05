//! A shard whose clients trade at random, its broker, and the levels of its books, added up from
//! the reports of the orders.

use std::collections::BTreeMap;

use pitlane_engine::command::{Command, CommandKind, StrategyPhase, WatchTarget};
use pitlane_engine::event::{Event, EventKind, ExecType};
use pitlane_engine::id::{IntId, OrderHandle, PortId, SecurityId, ShardId};
use pitlane_engine::number::{Price, Qty};
use pitlane_engine::outbox::Outbox;
use pitlane_engine::settings::ShardSettings;
use pitlane_engine::shard::Shard;
use pitlane_engine::terms::{Changes, Side, Terms, Tif};
use pitlane_engine::time::{NS_PER_MS, Timestamp};
use pitlane_protocols::stomp::broker::{BrokerCommand, Interest, StompBroker};
use pitlane_protocols::stomp::settings::{BrokerSettings, StompLimits};
use pitlane_tests::dice::Dice;
use pitlane_tests::shard_harness::limit;
use pitlane_tests::{replay, test_market};

use crate::order_queues::{Queues, in_sequence};

/// The traded securities. The prices of the first are so far apart that not all its levels are
/// published.
pub(crate) const SECURITIES: [SecurityId; 3] = [SecurityId(1), SecurityId(2), SecurityId(3)];
/// Largest distance of a price from the middle, in cents.
const REACH: [i64; 3] = [400, 40, 6];
/// Open orders above which only cancels are sent.
const OPEN_MAX: usize = 3_600;
/// Hundredth of a unit of price, and a unit of quantity.
const CENT: i64 = 1_000_000;
const UNIT: i64 = 100_000_000;
const MIDDLE: i64 = 10_000;
const READER: PortId = PortId(0);

pub(crate) struct DepthMarket {
    shard: Shard,
    pub(crate) broker: StompBroker,
    out: Outbox,
    pub(crate) now: Timestamp,
    pub(crate) events: u64,
    ids: u64,
    orders: BTreeMap<OrderHandle, OpenOrder>,
    /// Handles of the open orders, for random choice.
    open: Vec<OrderHandle>,
    levels: BTreeMap<(SecurityId, Side), BTreeMap<i64, i64>>,
    queues: BTreeMap<(SecurityId, Side), Queues<OrderHandle>>,
}

#[derive(Clone, Copy, Debug, Default)]
struct OpenOrder {
    security: SecurityId,
    side: Side,
    limit: i64,
    leaves: i64,
}

impl DepthMarket {
    pub(crate) fn new() -> DepthMarket {
        let shard = Shard::new(ShardId(0), 1, test_market::reference(), ShardSettings::default());
        let mut market = DepthMarket {
            shard,
            broker: broker(),
            out: Outbox::new(0),
            now: test_market::start(),
            events: 0,
            ids: 0,
            orders: BTreeMap::new(),
            open: Vec::new(),
            levels: BTreeMap::new(),
            queues: BTreeMap::new(),
        };
        market.begin();
        market
    }

    /// Ends the process and starts it again with the stored state. Connections are lost.
    pub(crate) fn restart(&mut self) {
        self.shard = replay::reloaded(&self.shard, 1).expect("a stored shard is read again");
        let (reference, settings) = (self.shard.reference().clone(), self.shard.settings().clone());
        self.shard.begin(self.now, reference, settings, &mut self.out);
        self.finish();
        self.broker = broker();
        self.begin();
    }

    fn begin(&mut self) {
        self.apply(CommandKind::Watch { port: READER, what: WatchTarget::Everything, on: true });
        for strategy in test_market::STRATEGIES {
            self.apply(CommandKind::Phase { strategy, phase: StrategyPhase::Running });
        }
        for security in SECURITIES {
            let strategy = test_market::STRATEGIES[1];
            self.apply(CommandKind::Subscribe { strategy, security, on: true });
        }
    }

    /// Sends one random order, modification or cancel.
    pub(crate) fn trade(&mut self, dice: &mut Dice) {
        self.now = self.now.plus(NS_PER_MS);
        self.ids += 1;
        let id = IntId::numbered(b'o', self.ids);
        let is_full = self.open.len() >= OPEN_MAX;
        let old = (!self.open.is_empty()).then(|| dice.pick(&self.open));
        let body = match (old, dice.below(100)) {
            (Some(order), 0..40) => CommandKind::Cancel { order, id },
            (Some(order), _) if is_full => CommandKind::Cancel { order, id },
            (Some(order), 40..50) => {
                let qty = Qty::from_raw(dice.between(1, 60) * UNIT);
                CommandKind::Modify { order, id, changes: Changes::default().with_qty(qty) }
            }
            _ => CommandKind::Submit { id, terms: random_terms(dice) },
        };
        self.apply(body);
    }

    /// Lets the shard publish its books, and the broker send what waits.
    pub(crate) fn publish(&mut self) {
        self.emit_books();
        self.settle();
    }

    fn emit_books(&mut self) {
        while self.shard.has_depths() {
            self.shard.emit_depths(&mut self.out);
            self.drain();
        }
    }

    /// Does what the broker requests, and what is due.
    pub(crate) fn settle(&mut self) {
        self.broker.handle_timeout(self.now);
        while let Some(command) = self.broker.poll_command() {
            let BrokerCommand::Watch { interest, on } = command else {
                panic!("consumers need books only: {command:?}");
            };
            let what = if let Interest::Levels(security) = interest {
                WatchTarget::Levels(security)
            } else if let Interest::BookOrders(security) = interest {
                WatchTarget::BookOrders(security)
            } else {
                panic!("consumers need books only: {interest:?}");
            };
            self.apply(CommandKind::Watch { port: READER, what, on });
            // A snapshot of orders comes in a step of its own, which needs no further command.
            self.emit_books();
        }
        while self.broker.poll_active().is_some() {}
    }

    /// Returns the best levels of a side, as prices and quantities.
    pub(crate) fn expected(&self, security: SecurityId, side: Side, count: usize) -> Vec<(i64, i64)> {
        let Some(levels) = self.levels.get(&(security, side)) else { return Vec::new() };
        let pair = |(price, qty): (&i64, &i64)| (*price, *qty);
        match side {
            Side::Buy => levels.iter().rev().map(pair).take(count).collect(),
            Side::Sell => levels.iter().map(pair).take(count).collect(),
        }
    }

    /// Returns the first orders of a side, in the sequence in which they trade.
    pub(crate) fn expected_orders(
        &self,
        security: SecurityId,
        side: Side,
        count: usize,
    ) -> Vec<(OrderHandle, i64, i64)> {
        let Some(queues) = self.queues.get(&(security, side)) else { return Vec::new() };
        let mut all = in_sequence(queues, side);
        all.truncate(count);
        all
    }

    pub(crate) fn is_open(&self, order: OrderHandle) -> bool {
        self.orders.contains_key(&order)
    }

    fn apply(&mut self, body: CommandKind) {
        self.shard.apply(self.now, &Command::new(test_market::source(0, 1), 0, body), &mut self.out);
        self.finish();
    }

    /// Does the work that a command has left.
    fn finish(&mut self) {
        self.drain();
        while self.shard.has_work() {
            self.shard.resume(&mut self.out);
            self.drain();
        }
    }

    fn drain(&mut self) {
        let events: Vec<Event> = self.out.waiting().iter().map(|(_, event)| *event).collect();
        self.out.clear();
        for event in events {
            self.events += 1;
            if let EventKind::Levels(_) | EventKind::BookOrders(_) = event.body {
                self.broker.handle_event(self.now, ShardId(0), &event);
            }
            self.read_order(&event);
        }
    }

    fn read_order(&mut self, event: &Event) {
        let mut changed = None;
        if let EventKind::Order(order) = &event.body {
            let before = self.orders.get(&order.order).copied().unwrap_or_default();
            let Terms { security, side, limit, .. } = order.terms;
            changed = Some((order.order, OpenOrder { security, side, limit: limit.raw(), ..before }));
        }
        if let Some((handle, order)) = changed {
            self.set_order(handle, order, false);
        }
        if let Some(report) = event.report() {
            let before = self.orders.get(&report.order).copied().unwrap_or_default();
            let leaves = report.leaves_qty().raw();
            let order = OpenOrder { security: report.security, side: report.side, leaves, ..before };
            self.set_order(report.order, order, report.what == ExecType::Replaced);
        }
    }

    fn set_order(&mut self, handle: OrderHandle, order: OpenOrder, is_replaced: bool) {
        let before = self.orders.insert(handle, order);
        let old = before.filter(|old| old.leaves > 0).map(|old| (old, -old.leaves));
        let new = (order.leaves > 0).then_some((order, order.leaves));
        for (at, by) in [old, new].into_iter().flatten() {
            let levels = self.levels.entry((at.security, at.side)).or_default();
            let qty = levels.entry(at.limit).or_default();
            *qty += by;
            if *qty == 0 {
                levels.remove(&at.limit);
            }
        }
        let queued = [old, new].map(|order| order.map(|(order, _)| order));
        self.set_queue(handle, queued, is_replaced);
        match (old.is_some(), new.is_some()) {
            (false, true) => self.open.push(handle),
            (true, false) => self.open.retain(|open| *open != handle),
            (false, false) | (true, true) => {}
        }
        if new.is_none() && before.is_some() {
            self.orders.remove(&handle);
        }
    }
}

/// Queues of the books, by the rule that a changed order keeps its place only if it gets smaller.
impl DepthMarket {
    fn set_queue(&mut self, handle: OrderHandle, [old, new]: [Option<OpenOrder>; 2], is_replaced: bool) {
        let keeps = |old: &OpenOrder, new: &OpenOrder| {
            let is_same = new.leaves == old.leaves && !is_replaced;
            old.limit == new.limit && (new.leaves < old.leaves || is_same)
        };
        if let Some(old) = old {
            let queues = self.queues.entry((old.security, old.side)).or_default();
            let queue = queues.entry(old.limit).or_default();
            let at = queue.iter().position(|(other, _)| *other == handle).expect("an open order");
            if let Some(new) = new.filter(|new| keeps(&old, new)) {
                queue[at].1 = new.leaves;
                return;
            }
            queue.remove(at);
            if queue.is_empty() {
                queues.remove(&old.limit);
            }
        }
        if let Some(new) = new {
            let queues = self.queues.entry((new.security, new.side)).or_default();
            queues.entry(new.limit).or_default().push((handle, new.leaves));
        }
    }
}

fn broker() -> StompBroker {
    // Small, so that a slow reader is soon behind; and none is ended for being slow.
    let limits = StompLimits { mark_bytes: 6_000, stuck_ns_max: u64::MAX, ..StompLimits::default() };
    StompBroker::new(BrokerSettings { limits, ..BrokerSettings::default() }, test_market::reference())
}

fn random_terms(dice: &mut Dice) -> Terms {
    let at = dice.index(SECURITIES.len());
    let side = dice.pick(&Side::BOTH);
    // Most orders rest on their side of the middle, some cross it.
    let away = dice.between(-2, REACH[at]);
    let cents = if side == Side::Buy { MIDDLE - away } else { MIDDLE + away };
    Terms {
        qty: Qty::from_raw(dice.between(1, 50) * UNIT),
        limit: Price::from_raw(cents * CENT),
        account: dice.pick(&test_market::HOME_ACCOUNTS),
        tif: if dice.percent(10) { Tif::Ioc } else { Tif::Day },
        ..limit(SECURITIES[at], side, "1", "100")
    }
}
