//! Invariants that are checked after each step: a reader of one shard's events that trusts nothing.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use pitlane_engine::command::{ExecRef, MovementKind};
use pitlane_engine::event::{
    Alert, Booking, Event, EventKind, ExecType, OrderReport, PositionState, RequestKind, RequestRefusal,
};
use pitlane_engine::id::{Currency, IntId, OrderHandle, SecurityId, ShardId, StrategyId, Uuid};
use pitlane_engine::number::{Notional, Price, Qty};
use pitlane_engine::reason::Reason;
use pitlane_engine::refdata::RefData;
use pitlane_engine::terms::{Side, Status};

use crate::twin::TwinPosition;

/// What is known of an order from its reports.
#[derive(Clone, Debug)]
pub struct ReportedOrder {
    pub id: IntId,
    pub status: Status,
    pub qty: Qty,
    pub cum_qty: Qty,
    pub strategy: StrategyId,
    pub side: Side,
    cancel: Option<IntId>,
    replace: Option<IntId>,
    /// Sum of the reported fills, without busted ones.
    fills: i64,
    notional: i128,
    overfilled: bool,
    ended: bool,
    /// Whether it was filled, and is open again.
    reopened: bool,
}

/// Reads the events of one shard, in order.
#[derive(Debug)]
pub struct Checker {
    shard: ShardId,
    reference: Arc<RefData>,
    seq: u64,
    pub orders: BTreeMap<OrderHandle, ReportedOrder>,
    pub positions: BTreeMap<(StrategyId, SecurityId), TwinPosition>,
    pub cash: BTreeMap<(StrategyId, Currency), i128>,
    /// Money that left or reached the strategies, by currency: the other side of every booking.
    pub venue_cash: BTreeMap<Currency, i128>,
    transactions: BTreeSet<u64>,
    execs: BTreeSet<(OrderHandle, ExecRef)>,
    /// Executions whose fee was booked apart.
    fees: BTreeMap<(OrderHandle, ExecRef), Price>,
    /// Orders with a fill that stands for several: each of them may be busted under its own id.
    missed: BTreeSet<OrderHandle>,
    forgetful: bool,
    exec_ids: BTreeSet<Uuid>,
}

type CheckResult = Result<(), String>;

impl Checker {
    pub fn new(shard: ShardId, reference: Arc<RefData>) -> Checker {
        Checker {
            shard,
            reference,
            seq: 0,
            orders: BTreeMap::new(),
            positions: BTreeMap::new(),
            cash: BTreeMap::new(),
            venue_cash: BTreeMap::new(),
            transactions: BTreeSet::new(),
            execs: BTreeSet::new(),
            fees: BTreeMap::new(),
            missed: BTreeSet::new(),
            forgetful: false,
            exec_ids: BTreeSet::new(),
        }
    }

    pub fn read(&mut self, event: &Event) -> CheckResult {
        if event.seq <= self.seq {
            return Err(format!("seq {} after {}", event.seq, self.seq));
        }
        self.seq = event.seq;
        match &event.body {
            EventKind::Order(order) if matches!(order.what, ExecType::Replaced | ExecType::Snapshot) => {
                Ok(())
            }
            EventKind::Order(_) | EventKind::Status(_) => {
                let report = event.report().expect("an order event has a report");
                if !self.exec_ids.insert(event.exec_id(0, self.shard)) {
                    return Err("an ExecID was used twice".to_string());
                }
                self.report(&report).map_err(|problem| format!("{problem}: {report:?}"))
            }
            EventKind::Refused(refusal) => self.refused(refusal),
            EventKind::Forgotten { order, .. } => match self.orders.remove(order) {
                Some(seen) if seen.status.is_finished() => Ok(()),
                Some(seen) => Err(format!("forgotten in {:?}: {order:?}", seen.status)),
                None => Err(format!("forgotten, but never known: {order:?}")),
            },
            EventKind::Booked(booking) => self.booked(booking),
            // From here on, as the alert says, a repeated execution cannot be recognized.
            EventKind::Alert { alert: Alert::ExecutionsFull, .. } => {
                self.forgetful = true;
                Ok(())
            }
            EventKind::Alert { .. }
            | EventKind::Adjusted { .. }
            | EventKind::Tick(_)
            | EventKind::Depth(_)
            | EventKind::Levels(_)
            | EventKind::BookOrders(_)
            | EventKind::MarketTrade(_)
            | EventKind::Subscription { .. }
            | EventKind::Session { .. }
            | EventKind::Halt { .. }
            | EventKind::TradingDay { .. }
            | EventKind::Phase { .. }
            | EventKind::Adapter { .. }
            | EventKind::Limits { .. }
            | EventKind::Restrict { .. }
            | EventKind::Kill { .. }
            | EventKind::Directed { .. }
            | EventKind::Sender { .. }
            | EventKind::SpecialTerms(_)
            | EventKind::Sent { .. }
            | EventKind::ToVenue(_)
            | EventKind::Budget(_)
            | EventKind::Exposure { .. }
            | EventKind::Done { .. }
            | EventKind::SnapshotBegin { .. }
            | EventKind::SnapshotEnd { .. }
            | EventKind::UsedIds(_) => Ok(()),
        }
    }

    fn report(&mut self, r: &OrderReport) -> CheckResult {
        if r.order == OrderHandle::NONE {
            let is_rejection = r.what == ExecType::Rejected;
            return is_rejection.then_some(()).ok_or("only a rejection may have no handle".to_string());
        }
        let known = self.orders.get(&r.order);
        match (r.what, known.is_some()) {
            (ExecType::Entered | ExecType::Rejected, false) => {
                self.orders.insert(r.order, ReportedOrder::of(r));
            }
            (ExecType::Entered, true) => return Err("entered twice".to_string()),
            (_, false) => return Err("reported before it was entered".to_string()),
            (_, true) => {}
        }
        let seen = self.orders.get_mut(&r.order).expect("it was just looked up");
        // An order that was never accepted may have any quantity.
        if r.what != ExecType::Rejected {
            seen.quantities(r)?;
        }
        seen.requests(r)?;
        seen.moves(r)
    }

    fn refused(&mut self, refusal: &RequestRefusal) -> CheckResult {
        let Some(seen) = self.orders.get_mut(&refusal.order) else {
            if refusal.reason == Reason::UnknownOrder {
                return Ok(());
            }
            return Err(format!("a refusal of an unknown order: {refusal:?}"));
        };
        let pending = match refusal.request {
            RequestKind::Cancel => &mut seen.cancel,
            RequestKind::Replace => &mut seen.replace,
        };
        if *pending == Some(refusal.request_id) {
            *pending = None;
        }
        // A rejection carries the order's current status, without the request that it rejects.
        seen.status = refusal.status;
        Ok(())
    }

    fn booked(&mut self, b: &Booking) -> CheckResult {
        if !self.transactions.insert(b.id.0) {
            return Err(format!("transaction {:?} was booked twice", b.id));
        }
        if b.exec != ExecRef::default() && b.order != OrderHandle::NONE {
            let reversal = b.qty.is_negative() == (b.kind == MovementKind::Buy);
            let fresh = if b.kind == MovementKind::Fees {
                // A fee in another currency is booked beside its fill, and taken back with it.
                match self.fees.remove(&(b.order, b.exec)) {
                    Some(charged) => charged.raw() == -b.price.raw(),
                    None => self.fees.insert((b.order, b.exec), b.price).is_none(),
                }
            } else if reversal {
                self.execs.remove(&(b.order, b.exec))
            } else {
                self.execs.insert((b.order, b.exec))
            };
            // Ids made by the shard have the highest bit; those of our venues are small.
            if b.exec.0 >> 127 == 1 {
                self.missed.insert(b.order);
            }
            if !fresh && !self.forgetful && !self.missed.contains(&b.order) {
                return Err(format!("execution booked or taken back twice: {b:?}"));
            }
        }
        let mut change = -(b.commission.raw() as i128);
        if let Some(security) = b.security {
            let row = self.reference.security(security).ok_or("booked in an unknown security")?;
            let size = self.reference.family_of(row).contract_size;
            let value = Notional::of(b.price, b.qty).money(size).ok_or("a value that cannot be counted")?;
            change -= value.raw() as i128;
            let position = self.positions.entry((b.strategy, security)).or_default();
            *position = position.after(b.qty, b.price, size);
            agrees(position, &b.position).map_err(|problem| format!("{problem}: {b:?}"))?;
        } else {
            // Amounts are booked with their sign.
            change += b.price.raw() as i128;
        }
        let cash = self.cash.entry((b.strategy, b.currency)).or_default();
        *cash += change;
        *self.venue_cash.entry(b.currency).or_default() -= change;
        if *cash != b.cash.raw() as i128 {
            return Err(format!("cash should be {cash}, not {}: {b:?}", b.cash.raw()));
        }
        Ok(())
    }

    /// Checks that the sum over strategies and venue accounts is zero in each currency.
    pub fn double_entry(&self) -> CheckResult {
        for (currency, venue) in &self.venue_cash {
            let ours: i128 = self.cash.iter().filter(|(key, _)| key.1 == *currency).map(|(_, sum)| sum).sum();
            if ours + venue != 0 {
                return Err(format!("{currency}: {ours} of strategies and {venue} of venues are not zero"));
            }
        }
        Ok(())
    }

    /// Checks that no request waits for an answer after the platform has settled.
    pub fn settled(&self) -> CheckResult {
        for (handle, seen) in &self.orders {
            if seen.cancel.is_some() || seen.replace.is_some() {
                return Err(format!("{handle:?} {:?} still waits for an answer", seen.id));
            }
        }
        self.double_entry()
    }

    /// Returns the number of open orders of a strategy that its limits have accepted. An order that
    /// is open again because a fill was busted is a fact that no limit can reject.
    pub fn open_orders(&self, strategy: StrategyId) -> usize {
        let counts =
            |seen: &&ReportedOrder| seen.strategy == strategy && !seen.status.is_finished() && !seen.reopened;
        self.orders.values().filter(counts).count()
    }
}

fn agrees(position: &TwinPosition, reported: &PositionState) -> CheckResult {
    let same =
        (position.qty, position.cost, position.realized) == (reported.qty, reported.cost, reported.realized);
    if same { Ok(()) } else { Err(format!("position should be {position:?}")) }
}

impl ReportedOrder {
    fn of(r: &OrderReport) -> ReportedOrder {
        ReportedOrder {
            id: r.id,
            status: r.status,
            qty: r.qty,
            cum_qty: Qty::ZERO,
            strategy: r.strategy,
            side: r.side,
            cancel: None,
            replace: None,
            fills: 0,
            notional: 0,
            overfilled: false,
            ended: false,
            reopened: false,
        }
    }

    fn quantities(&mut self, r: &OrderReport) -> CheckResult {
        let leaves = r.leaves_qty().raw();
        // A quantity that money cannot count is reported as such, however large it is.
        self.overfilled |= matches!(r.reason, Reason::Overfill | Reason::Overflow);
        if r.status.is_finished() && leaves != 0 {
            return Err("something is left of a finished order".to_string());
        }
        if !r.status.is_finished() && r.cum_qty.raw() + leaves != r.qty.raw() {
            return Err("filled and remaining are not the quantity".to_string());
        }
        if !r.status.is_finished() && leaves <= 0 {
            return Err("an open order with nothing left".to_string());
        }
        if r.cum_qty > r.qty && !self.overfilled {
            return Err("filled above the quantity without a word".to_string());
        }
        if r.what == ExecType::Corrected {
            self.fills = r.cum_qty.raw();
        } else if r.what == ExecType::Filled {
            if !r.last_qty.is_positive() {
                return Err("a fill of nothing".to_string());
            }
            self.fills += r.last_qty.raw();
            self.notional += r.last_qty.raw() as i128 * r.last_price.raw() as i128;
        } else if r.cum_qty < self.cum_qty {
            return Err("filled has fallen".to_string());
        }
        if self.fills != r.cum_qty.raw() {
            return Err(format!("the fills add up to {}", Qty::from_raw(self.fills)));
        }
        self.cum_qty = r.cum_qty;
        self.qty = r.qty;
        Ok(())
    }

    /// Checks that every request has one answer; pending reports carry the request's id, all others
    /// the order's own.
    fn requests(&mut self, r: &OrderReport) -> CheckResult {
        match r.what {
            ExecType::CancelPending if self.cancel.is_some() => return Err("two cancels pending".to_string()),
            // A cancel without a client's request id has the order's own id.
            ExecType::CancelPending if r.id == self.id => self.cancel = Some(IntId::NONE),
            ExecType::CancelPending => self.cancel = Some(r.id),
            ExecType::ReplacePending if self.replace.is_some() => {
                return Err("two replaces pending".to_string());
            }
            ExecType::ReplacePending => self.replace = Some(r.id),
            ExecType::Replaced => {
                if self.replace.take() != Some(r.id) || r.orig_id != self.id {
                    return Err("replaced, but not as it was asked".to_string());
                }
                self.id = r.id;
            }
            ExecType::Canceled if self.cancel == Some(r.id) => {
                self.cancel = None;
                if r.orig_id != self.id {
                    return Err("a cancel under another id".to_string());
                }
            }
            ExecType::Entered
            | ExecType::Rejected
            | ExecType::Accepted
            | ExecType::Filled
            | ExecType::Canceled
            | ExecType::Expired
            | ExecType::Triggered
            | ExecType::Corrected
            | ExecType::Snapshot => {
                if r.id != self.id {
                    return Err("reported under another id".to_string());
                }
            }
        }
        // A cancel without a client's request id (by a kill switch or a close) is answered by the
        // order's status.
        if self.cancel == Some(IntId::NONE) && r.status != Status::PendingCancel {
            self.cancel = None;
        }
        Ok(())
    }

    fn moves(&mut self, r: &OrderReport) -> CheckResult {
        let (from, to) = (self.status, r.status);
        self.status = to;
        self.reopened |= from == Status::Filled && !to.is_finished();
        if !may_follow(from, to, r.what) {
            return Err(format!("{from:?} is not followed by {to:?} on {:?}", r.what));
        }
        let ends = matches!(r.what, ExecType::Rejected | ExecType::Canceled | ExecType::Expired);
        if ends && std::mem::replace(&mut self.ended, true) {
            return Err("ended twice".to_string());
        }
        Ok(())
    }
}

/// Returns whether a status may follow another: the state diagram of an order as a table.
fn may_follow(from: Status, to: Status, what: ExecType) -> bool {
    use Status::{
        Canceled, Expired, Filled, New, PartiallyFilled, PendingCancel, PendingNew, PendingReplace, Rejected,
    };
    if from == to {
        return true;
    }
    match from {
        PendingNew => matches!(to, New | Rejected | PendingCancel | Canceled | Expired),
        New => matches!(to, PartiallyFilled | Filled | PendingCancel | PendingReplace | Canceled | Expired),
        PartiallyFilled => {
            matches!(to, New | Filled | PendingCancel | PendingReplace | Canceled | Expired)
                && (to != New || what == ExecType::Corrected)
        }
        PendingCancel => to != PendingNew || what == ExecType::Snapshot,
        PendingReplace => !matches!(to, PendingNew | Rejected),
        // A venue may be late, or withdraw a report; then the fill is what counts.
        Canceled | Expired | Rejected => to == Filled && what == ExecType::Filled,
        Filled => what == ExecType::Corrected,
    }
}
