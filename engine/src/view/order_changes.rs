//! What happened to each order, for its history: the newest changes of each shard in a ring.
//!
//! ```text
//! handles   A  B  A  C  A      read backwards from the newest, until the entry of the order
//! changes   entered A, entered B, filled A, …      at the same places
//! ```
//!
//! Handles are stored apart, so that a query reads 8 bytes for each change of other orders: it
//! passes at most the changes of one shard, `changes_max` divided by the shards, and stops at the
//! entry of its order.
//!
//! A snapshot is no change. An order of which this view has not seen the entry has a part of its
//! changes only, and so has one that changed while the view received no events.

use super::order::{LiveOrder, OrderView};
use super::slab::PagedTable;
use crate::event::{ExecType, OrderReport, OrderTerms, RequestKind, RequestRefusal};
use crate::id::{OrderHandle, ShardId};
use crate::number::{Price, Qty};
use crate::pages::LargePages;
use crate::reason::Reason;
use crate::terms::Status;
use crate::time::Timestamp;

/// A change of an order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StatusChange {
    pub at: Timestamp,
    pub cause: ChangeCause,
    pub status: Status,
    pub reason: Reason,
    pub qty: Qty,
    pub cum_qty: Qty,
    /// Quantity of this fill.
    pub last_qty: Qty,
    pub last_price: Price,
    /// The order's prices at that time; `None` if they are not known any more.
    pub prices: Option<OrderPrices>,
}

/// Cause of a change.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ChangeCause {
    Report(ExecType),
    /// A request was refused; the order continues unchanged.
    Refusal(RequestKind),
}

/// Prices of an order. Its kind decides which of them it has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OrderPrices {
    pub limit: Price,
    pub stop: Price,
}

#[derive(Clone, Copy, Debug)]
enum StoredKind {
    /// The order is entered or rejected: its first change.
    Entry(ExecType, OrderPrices),
    /// The prices that the reports after it have. It is no change by itself.
    Prices(OrderPrices),
    /// With quantity and price of a fill.
    Report(ExecType, Qty, Price),
    Refusal(RequestKind),
    /// A snapshot has shown that changes are missing here.
    Gap,
}

#[derive(Clone, Copy, Debug)]
struct StoredChange {
    at: Timestamp,
    qty: Qty,
    cum_qty: Qty,
    kind: StoredKind,
    status: Status,
    reason: Reason,
}

const _: () =
    assert!(size_of::<StoredChange>() + size_of::<OrderHandle>() == 64, "a cache line for each change");

impl StoredChange {
    /// Creates a change without a fill from the current state of an order.
    fn of_state(at: Timestamp, kind: StoredKind, live: &LiveOrder) -> StoredChange {
        let LiveOrder { qty, cum_qty, status, reason, .. } = *live;
        StoredChange { at, qty, cum_qty, kind, status, reason }
    }

    fn prices(&self) -> Option<OrderPrices> {
        match self.kind {
            StoredKind::Entry(_, prices) | StoredKind::Prices(prices) => Some(prices),
            StoredKind::Report(..) | StoredKind::Refusal(_) | StoredKind::Gap => None,
        }
    }

    fn cause(&self) -> Option<ChangeCause> {
        match self.kind {
            StoredKind::Entry(what, _) | StoredKind::Report(what, ..) => Some(ChangeCause::Report(what)),
            StoredKind::Refusal(request) => Some(ChangeCause::Refusal(request)),
            StoredKind::Prices(_) | StoredKind::Gap => None,
        }
    }

    fn fill(&self) -> (Qty, Price) {
        match self.kind {
            StoredKind::Report(_, qty, price) => (qty, price),
            StoredKind::Entry(..) | StoredKind::Prices(_) | StoredKind::Refusal(_) | StoredKind::Gap => {
                (Qty::ZERO, Price::ZERO)
            }
        }
    }
}

/// The newest changes of one shard, up to a bound.
#[derive(Debug)]
struct ChangeRing {
    handles: PagedTable<OrderHandle>,
    changes: PagedTable<StoredChange>,
    max: u32,
    /// Place of the next change, and number of those that can be read.
    next: u32,
    len: u32,
}

impl ChangeRing {
    fn new(max: u32, large: LargePages) -> ChangeRing {
        let (handles, changes) = (PagedTable::new(large), PagedTable::new(large));
        ChangeRing { handles, changes, max, next: 0, len: 0 }
    }

    #[inline]
    fn push(&mut self, order: OrderHandle, change: StoredChange) {
        if self.max == 0 {
            return;
        }
        let place = self.next;
        self.handles.put(place, order);
        self.changes.put(place, change);
        self.next = if place + 1 == self.max { 0 } else { place + 1 };
        self.len = self.max.min(self.len + 1);
    }

    /// Returns the changes of an order, the newest first, until its entry.
    fn backwards(&self, order: OrderHandle) -> impl Iterator<Item = &StoredChange> {
        // The places below the next one are newer than those from it on.
        let places = (0..self.next).rev().chain((self.next..self.len).rev());
        let own = places.filter(move |place| self.handles[*place] == order).map(|place| &self.changes[place]);
        let mut is_over = false;
        own.map_while(move |change| {
            let is_after_entry =
                std::mem::replace(&mut is_over, matches!(change.kind, StoredKind::Entry(..)));
            (!is_after_entry).then_some(change)
        })
    }

    fn clear(&mut self) {
        (self.next, self.len) = (0, 0);
    }
}

/// The changes of all orders, by shard.
#[derive(Debug)]
pub(super) struct OrderChangeLog {
    rings: Vec<ChangeRing>,
}

impl OrderChangeLog {
    /// Creates an empty log of at most so many changes; zero switches it off.
    pub(super) fn new(shards: u8, changes_max: u32, large: LargePages) -> OrderChangeLog {
        let ring = || ChangeRing::new(changes_max / shards as u32, large);
        OrderChangeLog { rings: (0..shards).map(|_| ring()).collect() }
    }

    pub(super) fn terms(&mut self, at: Timestamp, event: &OrderTerms) {
        // A refused order may never have had a slot.
        if event.order == OrderHandle::NONE {
            return;
        }
        let prices = OrderPrices { limit: event.terms.limit, stop: event.terms.stop };
        let kind = match event.what {
            ExecType::Entered | ExecType::Rejected => StoredKind::Entry(event.what, prices),
            ExecType::Snapshot => return,
            ExecType::Accepted
            | ExecType::Filled
            | ExecType::CancelPending
            | ExecType::Canceled
            | ExecType::Expired
            | ExecType::ReplacePending
            | ExecType::Replaced
            | ExecType::Triggered
            | ExecType::Corrected => StoredKind::Prices(prices),
        };
        let OrderTerms { status, reason, .. } = *event;
        let change = StoredChange { at, qty: event.terms.qty, cum_qty: Qty::ZERO, kind, status, reason };
        self.push(event.order, change);
    }

    /// Adds a report about a known order.
    #[inline]
    pub(super) fn status(&mut self, at: Timestamp, event: &OrderReport) {
        if event.what == ExecType::Snapshot {
            return;
        }
        let kind = StoredKind::Report(event.what, event.last_qty, event.last_price);
        let OrderReport { qty, cum_qty, status, reason, .. } = *event;
        self.push(event.order, StoredChange { at, qty, cum_qty, kind, status, reason });
    }

    /// Adds the refusal of a request about a known order.
    pub(super) fn refused(&mut self, at: Timestamp, event: &RequestRefusal, live: &LiveOrder) {
        let kind = StoredKind::Refusal(event.request);
        let change = StoredChange { reason: event.reason, ..StoredChange::of_state(at, kind, live) };
        self.push(event.order, change);
    }

    /// Notes that changes of an order are missing.
    pub(super) fn gap(&mut self, at: Timestamp, order: OrderHandle, live: &LiveOrder) {
        self.push(order, StoredChange::of_state(at, StoredKind::Gap, live));
    }

    /// Ends the trading day of a shard.
    pub(super) fn day_over(&mut self, shard: ShardId) {
        self.rings[shard.0 as usize].clear();
    }

    /// Returns the newest changes of an order, oldest first, and whether these are all.
    pub(super) fn of(&self, order: &OrderView, limit: usize) -> (Vec<StatusChange>, bool) {
        let mut found: Vec<&StoredChange> = Vec::new();
        let (mut is_entry_seen, mut is_gap_seen, mut len) = (false, false, 0);
        for change in self.rings[order.handle.shard().0 as usize].backwards(order.handle) {
            len += usize::from(change.cause().is_some());
            if len > limit {
                break;
            }
            is_entry_seen |= matches!(change.kind, StoredKind::Entry(..));
            is_gap_seen |= matches!(change.kind, StoredKind::Gap);
            found.push(change);
        }
        let is_complete = is_entry_seen && !is_gap_seen;
        // Without new prices in between, they are those of now. A gap may hide new prices.
        let is_constant = !is_gap_seen && found.iter().all(|change| change.prices().is_none());
        let mut prices =
            is_constant.then_some(OrderPrices { limit: order.terms.limit, stop: order.terms.stop });
        let shown = found.into_iter().rev().filter_map(|change| {
            let is_gap = matches!(change.kind, StoredKind::Gap);
            prices = change.prices().or(prices).filter(|_| !is_gap);
            let (last_qty, last_price) = change.fill();
            Some(StatusChange {
                at: change.at,
                cause: change.cause()?,
                status: change.status,
                reason: change.reason,
                qty: change.qty,
                cum_qty: change.cum_qty,
                last_qty,
                last_price,
                prices,
            })
        });
        (shown.collect(), is_complete)
    }

    #[inline]
    fn push(&mut self, order: OrderHandle, change: StoredChange) {
        self.rings[order.shard().0 as usize].push(order, change);
    }
}
