//! One order, as readers see it and as it is stored.

use super::ids::IdChains;
use super::slab::NONE;
use crate::event::OrderTerms;
use crate::id::{IntId, OrderHandle, Source};
use crate::number::{Price, Qty};
use crate::reason::Reason;
use crate::sender::SentBy;
use crate::terms::{SpecialTerms, Status, Terms};
use crate::time::Timestamp;

/// Current state of an order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OrderView {
    pub handle: OrderHandle,
    /// The current id.
    pub id: IntId,
    /// The id before the last modification; none if there was no modification.
    pub orig_id: IntId,
    /// The id with which it was submitted, as far as the view has seen.
    pub first_id: IntId,
    pub source: Source,
    pub sent: SentBy,
    pub terms: Terms,
    /// ExecInst, MinQty and MaxFloor; `None` of most orders.
    pub special: Option<SpecialTerms>,
    pub status: Status,
    pub reason: Reason,
    pub in_doubt: bool,
    pub cum_qty: Qty,
    /// Zero before the first fill.
    pub avg_price: Price,
    /// Quantity of the latest fill.
    pub last_qty: Qty,
    pub last_price: Price,
    pub submitted: Timestamp,
    pub updated: Timestamp,
}

impl OrderView {
    /// Returns the quantity left in the market: zero once the order has ended.
    pub fn leaves_qty(&self) -> Qty {
        if self.status.is_finished() {
            return Qty::ZERO;
        }
        self.terms.qty.checked_sub(self.cum_qty).unwrap_or_default()
    }

    /// Combines both halves of a stored order, without special terms.
    pub(super) fn of(live: &LiveOrder, record: &OrderRecord, ids: &IdChains) -> OrderView {
        OrderView {
            handle: record.handle,
            id: *ids.id(live.current),
            orig_id: ids.older(live.current).unwrap_or_default(),
            first_id: *ids.id(record.first),
            source: record.source,
            sent: record.sent,
            terms: Terms { qty: live.qty, ..record.terms },
            special: None,
            status: live.status,
            reason: live.reason,
            in_doubt: live.in_doubt,
            cum_qty: live.cum_qty,
            avg_price: live.avg_price,
            last_qty: live.last_qty,
            last_price: live.last_price,
            submitted: record.submitted,
            updated: live.updated,
        }
    }
}

/// The part of an order that a status change touches, separate so that it is one cache line.
#[derive(Clone, Copy, Debug)]
#[repr(align(64))]
pub(super) struct LiveOrder {
    pub(super) qty: Qty,
    pub(super) cum_qty: Qty,
    pub(super) avg_price: Price,
    pub(super) last_qty: Qty,
    pub(super) last_price: Price,
    pub(super) updated: Timestamp,
    /// Epoch of the snapshot in which it was last mentioned.
    pub(super) epoch: u32,
    pub(super) current: u32,
    /// Number of ids in its chain.
    pub(super) versions: u32,
    pub(super) status: Status,
    pub(super) reason: Reason,
    pub(super) in_doubt: bool,
    /// Whether the shard still knows it under its handle.
    pub(super) mapped: bool,
}

impl LiveOrder {
    /// Creates the state of an order without reports, under its first id.
    #[inline]
    pub(super) fn new(at: Timestamp, event: &OrderTerms, epoch: u32, first: u32) -> LiveOrder {
        LiveOrder {
            qty: event.terms.qty,
            cum_qty: Qty::ZERO,
            avg_price: Price::ZERO,
            last_qty: Qty::ZERO,
            last_price: Price::ZERO,
            updated: at,
            epoch,
            current: first,
            versions: 1,
            status: event.status,
            reason: event.reason,
            in_doubt: false,
            mapped: true,
        }
    }
}

/// The rest of an order. Its ids are entries of [`IdChains`].
#[derive(Clone, Copy, Debug)]
pub(super) struct OrderRecord {
    pub(super) handle: OrderHandle,
    /// Except for the quantity.
    pub(super) terms: Terms,
    pub(super) submitted: Timestamp,
    pub(super) source: Source,
    pub(super) sent: SentBy,
    pub(super) first: u32,
    /// Neighbours in its list: the open orders of its shard, or the finished orders.
    pub(super) before: u32,
    pub(super) next: u32,
}

impl OrderRecord {
    /// Creates the record of an order that is in no list yet.
    #[inline]
    pub(super) fn new(at: Timestamp, event: &OrderTerms, first: u32) -> OrderRecord {
        OrderRecord {
            handle: event.order,
            terms: event.terms,
            submitted: at,
            source: event.source,
            sent: SentBy { submitted: event.sender, ..SentBy::default() },
            first,
            before: NONE,
            next: NONE,
        }
    }
}

const _: () = assert!(size_of::<LiveOrder>() == 64, "one cache line");
const _: () =
    assert!(size_of::<OrderRecord>() <= 96, "an order, its id, its slot and its bucket take 246 bytes");
