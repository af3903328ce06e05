//! The read model: a copy of the state of every shard, maintained by their events alone. REST and
//! the web page read it; no query ever reaches a shard.
//!
//! Events are absolute: each carries the new value, never a change. A copy that starts in the
//! middle is therefore completed by a snapshot, and applying the events of one shard in order is
//! sufficient.
//!
//! **Snapshots** come in the same stream as everything else, between their begin and end, possibly
//! with other events between. A snapshot of an order is an `Order` (at the time it was submitted)
//! and, if something has happened since, a `Status` (at the time of its last change), both with
//! `ExecType::Snapshot`; that of positions and cash is an `Adjusted` with equal values before and
//! after. A status of an order whose snapshot has not arrived yet is ignored. What was held at the
//! begin and is not mentioned by the end is dropped; but transactions, alerts and the orders that a
//! shard has forgotten are history, which no snapshot removes.
//!
//! **Between shards** there is no order. State that every shard has (sessions, phases, switches,
//! limits) may differ between them for an instant; then a switch is on if it is on anywhere, an
//! adapter is connected if it is connected everywhere, and for the rest the lowest shard that knows
//! decides.

mod control;
mod day_result;
mod valuation;
mod ids;
mod ledger;
mod limit_use;
mod market;
mod order;
mod order_changes;
mod orders;
mod slab;
mod walk;

use std::collections::{BTreeMap, VecDeque};

use crate::event::{Adjustment, Event, EventKind, ExecType, OrderReport};
use crate::id::{IntId, OrderHandle, ShardId, StrategyId};
use crate::pages::LargePages;
use crate::sender::{Sender, SenderId, SenderTable};
use crate::time::{Day, Timestamp};

pub use control::{AlertRecord, SwitchState};
pub use day_result::{DayResult, DayTotals, EndedDay};
pub use ledger::{CashBalance, PositionView, TransactionView};
pub use limit_use::{LimitRefusals, LimitUse};
pub use order::OrderView;
pub use order_changes::{ChangeCause, OrderPrices, StatusChange};
pub use valuation::{Holding, Missing, Portfolio, Valuation};
pub use walk::{WALKS_MAX, WalkHandle};

/// Bounds of the history in the view. The numbers of open orders, positions and the like are those
/// of the shards.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ViewSettings {
    /// Finished orders that stay readable until their trading day ends; beyond it the first ended
    /// are dropped. About 250 bytes each.
    pub finished_max: u32,
    /// Transactions of the trading day; beyond it the oldest are dropped. About 200 bytes each.
    pub transactions_max: u32,
    /// Ids by which a much modified order is found: its first, and the newest ones. At least two.
    pub versions_max: u32,
    pub alerts_max: u32,
    /// Changes of orders in the trading day, over all shards; beyond it the oldest are dropped. 64
    /// bytes each. Zero keeps none.
    pub changes_max: u32,
    /// Transactions of the day that a shard keeps, and so tells a view that starts later.
    pub shard_transactions_max: u32,
    /// Seed of the hash over order ids, so that clients cannot choose ids that collide.
    pub seed: u64,
    /// Large pages for the tables of many orders.
    pub pages: LargePages,
}

impl Default for ViewSettings {
    fn default() -> ViewSettings {
        ViewSettings {
            finished_max: 100_000,
            transactions_max: 100_000,
            versions_max: 256,
            alerts_max: 1_000,
            changes_max: 262_144,
            shard_transactions_max: 4_096,
            seed: 0,
            pages: LargePages::NONE,
        }
    }
}

/// See the module's comment; the queries of each part are in its module.
#[derive(Debug)]
pub struct View {
    shards: Vec<ShardProgress>,
    orders: orders::OrderStore,
    changes: order_changes::OrderChangeLog,
    ledger: ledger::LedgerView,
    market: market::MarketView,
    control: control::ControlState,
    refusals: limit_use::RefusalTable,
    senders: SenderTable,
    ended_days: VecDeque<EndedDay>,
    shard_transactions_max: usize,
}

/// Progress of the view with one shard.
#[derive(Clone, Copy, Debug, Default)]
struct ShardProgress {
    /// Number of the last event.
    seq: u64,
    /// Snapshots begun and not ended.
    snapshots: u32,
    /// Rises with each snapshot, to distinguish what it mentions from what it does not.
    epoch: u32,
    complete: bool,
    day: Option<Day>,
}

impl View {
    pub fn new(shards: u8, settings: ViewSettings) -> View {
        assert!(shards > 0, "there is at least one shard");
        assert!(shards - 1 <= ShardId::MAX, "a shard has its number");
        View {
            shards: vec![ShardProgress::default(); shards as usize],
            orders: orders::OrderStore::new(shards, &settings),
            changes: order_changes::OrderChangeLog::new(shards, settings.changes_max, settings.pages),
            ledger: ledger::LedgerView::new(settings.transactions_max as usize),
            market: market::MarketView::default(),
            control: control::ControlState::new(settings.alerts_max as usize),
            refusals: limit_use::RefusalTable::default(),
            senders: SenderTable::default(),
            ended_days: VecDeque::new(),
            shard_transactions_max: settings.shard_transactions_max as usize,
        }
    }

    /// Applies one event. The events of one shard arrive in order; events for others are numbered
    /// too, so gaps are normal.
    pub fn apply(&mut self, shard: ShardId, event: &Event) {
        let progress = &mut self.shards[shard.0 as usize];
        assert!(event.seq >= progress.seq, "the events of a shard come in their order");
        progress.seq = event.seq;
        let mark = SnapshotMark { shard, epoch: progress.epoch };
        let at = event.at;
        match &event.body {
            EventKind::Order(event) => {
                assert_home(shard, event.order);
                self.changes.terms(at, event);
                if self.orders.terms(at, event, mark) {
                    self.refusals.count_order(at, shard, event);
                }
            }
            EventKind::Status(event) => self.status(at, event, mark),
            EventKind::Refused(event) => {
                if let Some((live, terms)) = self.orders.refused(at, event, mark) {
                    self.changes.refused(at, event, live);
                    self.refusals.count_request(at, shard, event, terms);
                }
            }
            EventKind::Forgotten { order, .. } => self.orders.forgotten(*order),
            EventKind::Booked(booking) => self.ledger.booked(at, event.seq, booking, mark),
            EventKind::Adjusted { strategy, what } => match *what {
                Adjustment::Position { security, after, .. } => {
                    self.ledger.position_is(at, *strategy, security, after, mark)
                }
                Adjustment::Cash { currency, after, .. } => {
                    self.ledger.cash_is(*strategy, currency, after, mark)
                }
            },
            EventKind::Tick(tick) => self.market.tick(tick, mark),
            EventKind::Subscription { strategy, security, on, subscribers } => {
                self.market.subscription(*strategy, *security, *on, *subscribers, mark)
            }
            EventKind::Session { exchange, session } => self.control.session_is(*exchange, *session, mark),
            EventKind::Halt { security, on } => self.market.halt(*security, *on, mark),
            EventKind::TradingDay { day } => self.trading_day_is(shard, *day),
            EventKind::Phase { strategy, phase } => self.control.phase_is(*strategy, *phase, mark),
            EventKind::Adapter { adapter, connected } => self.control.adapter_is(*adapter, *connected, mark),
            EventKind::Limits { scope, limits } => self.control.limits_are(*scope, *limits, mark),
            EventKind::Restrict { scope, security, on } => {
                self.control.restrict(*scope, *security, *on, mark)
            }
            EventKind::Kill { scope, on } => self.control.kill(*scope, *on, mark),
            EventKind::Directed { version, directive } => self.control.directed(*directive, *version, mark),
            EventKind::Alert { alert, order, security, reason } => {
                let record = AlertRecord {
                    at,
                    shard,
                    seq: event.seq,
                    alert: *alert,
                    order: *order,
                    security: *security,
                    reason: *reason,
                };
                self.control.alert(record);
            }
            EventKind::Budget(usage) => self.control.budget_use_is(usage, mark),
            EventKind::Exposure { account, security, qty } => {
                self.ledger.exposure_is(*account, *security, *qty, mark)
            }
            EventKind::Sender { id, sender } => self.senders.insert(*id, *sender),
            EventKind::Sent { order, sent } => self.orders.sent(*order, *sent),
            EventKind::SpecialTerms(special) => self.orders.announce(shard, special),
            EventKind::SnapshotBegin { .. } => self.snapshot_begins(shard),
            EventKind::SnapshotEnd { .. } => self.snapshot_ends(shard),
            // For other readers: adapters, FIX sessions, sources that wait for an answer, and ports
            // that watch depth.
            EventKind::Depth(_)
            | EventKind::Levels(_)
            | EventKind::BookOrders(_)
            | EventKind::MarketTrade(_)
            | EventKind::ToVenue(_)
            | EventKind::Done { .. }
            | EventKind::UsedIds(_) => {}
        }
    }

    /// Prefetches memory for an event that will be applied soon.
    pub fn prefetch(&self, event: &Event) {
        if let EventKind::Order(event) = &event.body {
            self.orders.prefetch(event);
        }
    }

    /// Returns the description of a sender of orders.
    pub fn sender(&self, id: SenderId) -> Option<&Sender> {
        self.senders.get(id)
    }

    /// Returns whether the first snapshot of a shard has ended, so that its state is complete here.
    pub fn is_complete(&self, shard: ShardId) -> bool {
        self.shards[shard.0 as usize].complete
    }

    /// Returns the number of the last event applied from a shard.
    pub fn seq(&self, shard: ShardId) -> u64 {
        self.shards[shard.0 as usize].seq
    }

    /// Returns the newest trading day that any shard has started.
    pub fn trading_day(&self) -> Option<Day> {
        self.shards.iter().filter_map(|progress| progress.day).max()
    }

    fn status(&mut self, at: Timestamp, event: &OrderReport, mark: SnapshotMark) {
        if event.what == ExecType::Snapshot {
            self.find_gap(at, event, mark.shard);
        }
        if self.orders.status(at, event, mark) {
            self.changes.status(at, event);
        }
    }

    /// Notes a gap in the changes of an order if a later snapshot has a newer state of it than the
    /// events before.
    fn find_gap(&mut self, at: Timestamp, event: &OrderReport, shard: ShardId) {
        if !self.is_complete(shard) {
            return;
        }
        if let Some(live) = self.orders.live(event.order).filter(|live| live.updated < at) {
            self.changes.gap(at, event.order, live);
        }
    }

    fn trading_day_is(&mut self, shard: ShardId, day: Day) {
        let before = self.shards[shard.0 as usize].day.replace(day);
        let ended = before.filter(|before| *before != day);
        if let Some(ended) = ended {
            self.keep_ended_day(shard, ended);
        }
        self.market.day_begins(shard);
        if ended.is_some() {
            self.orders.day_over(shard);
            self.changes.day_over(shard);
            self.ledger.day_over(shard);
            self.refusals.day_over(shard);
        }
    }

    fn snapshot_begins(&mut self, shard: ShardId) {
        let progress = &mut self.shards[shard.0 as usize];
        if progress.snapshots == 0 {
            progress.epoch += 1;
        }
        progress.snapshots += 1;
    }

    fn snapshot_ends(&mut self, shard: ShardId) {
        let progress = &mut self.shards[shard.0 as usize];
        assert!(progress.snapshots > 0, "a snapshot begins before it ends");
        progress.snapshots -= 1;
        // Two concurrent snapshots end together: what either of them mentioned is current.
        if progress.snapshots > 0 {
            return;
        }
        let is_first = !std::mem::replace(&mut progress.complete, true);
        let mark = SnapshotMark { shard, epoch: progress.epoch };
        self.orders.sweep(mark);
        self.ledger.sweep(mark);
        self.market.sweep(mark);
        self.control.sweep(mark);
        if is_first {
            self.ledger.loaded(shard, self.shard_transactions_max);
        }
    }
}

fn assert_home(shard: ShardId, order: OrderHandle) {
    assert!(order == OrderHandle::NONE || order.shard() == shard, "a shard reports only its own orders");
}

/// Orders.
impl View {
    /// Returns the order with this handle.
    pub fn order(&self, handle: OrderHandle) -> Option<OrderView> {
        self.orders.order(handle)
    }

    /// Returns all orders that have or had this id, of any source, open and finished, in order of
    /// submission.
    pub fn orders_with_id(&self, id: &IntId) -> Vec<OrderView> {
        self.orders.with_id(id)
    }

    /// Returns what happened to an order in its trading day, oldest first, at most the newest
    /// `limit` changes; and whether these are all. The entry of an order from before the start of
    /// this view is missing, and old changes are overwritten.
    pub fn changes_of(&self, order: &OrderView, limit: usize) -> (Vec<StatusChange>, bool) {
        self.changes.of(order, limit)
    }

    /// Returns the open orders by time of submission, then by handle.
    pub fn open_orders(&self) -> impl Iterator<Item = OrderView> {
        self.orders.open()
    }

    pub fn open_orders_len(&self) -> usize {
        self.orders.open_len()
    }

    /// Returns the finished orders of the trading day: the last ended comes first.
    pub fn finished_orders(&self) -> impl Iterator<Item = OrderView> {
        self.orders.finished()
    }

    pub fn finished_orders_len(&self) -> usize {
        self.orders.finished_len()
    }

    /// Begins to read the open orders in portions, with events applied between them: by time of
    /// submission, up to this time. An order that is open all the while is read once, in its
    /// current state; one that ends meanwhile may be missed. Returns `None` if there are too many
    /// such walks at once.
    pub fn walk_open(&mut self, until: Timestamp) -> Option<WalkHandle> {
        self.orders.walk_open(until)
    }

    /// Begins to read the finished orders, the last ended first.
    pub fn walk_finished(&mut self) -> Option<WalkHandle> {
        self.orders.walk_finished()
    }

    /// Returns the next order of a walk; `None` at its end.
    pub fn walk_next(&mut self, walk: WalkHandle) -> Option<OrderView> {
        self.orders.walk_next(walk)
    }

    /// Ends a walk. The caller that began a walk must end it.
    pub fn walk_end(&mut self, walk: WalkHandle) {
        self.orders.walk_end(walk);
    }

    /// Returns the transactions of the day before this one, newest first; all of them if there is
    /// none.
    pub fn transactions_before(
        &self,
        last: Option<&TransactionView>,
        strategy: Option<StrategyId>,
    ) -> impl Iterator<Item = &TransactionView> {
        self.ledger.transactions_before(last.map(|last| (last.at, last.id)), strategy)
    }
}

/// The shard that reported a fact, and the snapshot epoch of that report.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct SnapshotMark {
    epoch: u32,
    shard: ShardId,
}

/// Facts by key, each with the mark of its last report.
#[derive(Debug)]
struct ShardFacts<K, V> {
    facts: BTreeMap<K, (V, SnapshotMark)>,
}

impl<K: Ord + Copy, V> ShardFacts<K, V> {
    fn set(&mut self, key: K, value: V, mark: SnapshotMark) {
        self.facts.insert(key, (value, mark));
    }

    /// Sets or removes a fact that has no value of its own.
    fn set_if(&mut self, on: bool, key: K, value: V, mark: SnapshotMark) {
        if on {
            self.set(key, value, mark);
        } else {
            self.facts.remove(&key);
        }
    }

    fn get(&self, key: &K) -> Option<&V> {
        self.facts.get(key).map(|(value, _)| value)
    }

    fn iter(&self) -> impl Iterator<Item = (K, &V)> {
        self.facts.iter().map(|(key, (value, _))| (*key, value))
    }

    /// Returns the facts from this key on.
    fn from(&self, key: K) -> impl Iterator<Item = (K, &V)> {
        self.facts.range(key..).map(|(key, (value, _))| (*key, value))
    }

    /// Drops what this shard reported before this snapshot and not since.
    fn sweep(&mut self, mark: SnapshotMark) {
        self.facts.retain(|_, (_, event)| event.shard != mark.shard || *event == mark);
    }
}

impl<K, V> Default for ShardFacts<K, V> {
    fn default() -> ShardFacts<K, V> {
        ShardFacts { facts: BTreeMap::new() }
    }
}

#[cfg(test)]
mod tests;
