//! One order: three small state machines and the status derived from them.
//!
//! ```text
//!               ┌───────── Reject ───────► Rejected
//!  PendingNew ──┤
//!               └ Accept ► Working ── Complete ► Filled
//!                          │   ▲ └──── Expire ─► Expired
//!                          │   └ Fill
//!                          └─ Cancel ──────────► Canceled      (Reject, when late, too)
//! ```
//!
//! The base state says how far the order has come, the requests say which changes are pending, the
//! quantities say how much is filled. None of them knows the others, so a fill cannot forget a
//! pending replace. The published [`Status`] is derived, the highest rank first.
//!
//! Rules: docs/domain.md#order-life-cycle.

use crate::id::{IntId, Source};
use crate::number::{Money, Notional, Price, Qty};
use crate::prefetch::fetch;
use crate::reason::Reason;
use crate::sender::SenderId;
use crate::terms::{Status, Terms};
use crate::time::Timestamp;

/// No slot, no list, no index.
pub const NIL: u32 = u32::MAX;

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum Base {
    #[default]
    PendingNew,
    Working,
    Filled,
    Canceled,
    Rejected,
    Expired,
}

/// Transitions of the base state.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Step {
    Accept,
    Reject,
    /// A fill that leaves something.
    Fill,
    /// A fill that leaves nothing.
    Complete,
    Cancel,
    Expire,
}

impl Base {
    pub const ALL: [Base; 6] =
        [Base::PendingNew, Base::Working, Base::Filled, Base::Canceled, Base::Rejected, Base::Expired];

    /// Returns the state after a step. `None`: the step cannot happen to an order in this state.
    pub fn after(self, step: Step) -> Option<Base> {
        match (self, step) {
            (Base::PendingNew | Base::Working, Step::Accept) => Some(Base::Working),
            (Base::PendingNew, Step::Reject) => Some(Base::Rejected),
            // Late: the venue had accepted it before.
            (Base::Working, Step::Reject) => Some(Base::Canceled),
            (Base::PendingNew | Base::Working, Step::Fill) => Some(Base::Working),
            // A fill is a fact of money: an order that had ended takes it too.
            (Base::Canceled | Base::Rejected | Base::Expired | Base::Filled, Step::Fill) => Some(self),
            (_, Step::Complete) => Some(Base::Filled),
            (Base::PendingNew | Base::Working, Step::Cancel) => Some(Base::Canceled),
            (Base::PendingNew | Base::Working, Step::Expire) => Some(Base::Expired),
            (Base::Filled | Base::Canceled | Base::Rejected | Base::Expired, Step::Accept | Step::Reject) => {
                None
            }
            (Base::Filled | Base::Canceled | Base::Rejected | Base::Expired, Step::Cancel | Step::Expire) => {
                None
            }
        }
    }

    pub fn is_finished(self) -> bool {
        !matches!(self, Base::PendingNew | Base::Working)
    }
}

/// An order in its shard: three adjacent cache lines. Its requests are stored separately, see
/// [`crate::orders`].
///
/// Invariants: `cum ≤ qty` unless the venue overfilled it; `leaves` is zero exactly when it is
/// finished.
#[derive(Clone, Copy, Debug)]
#[repr(C, align(64))]
pub struct Order {
    /// Current id; none in a free slot.
    pub id: IntId,
    pub terms: Terms,
    /// Exact sum of price × quantity of all fills.
    pub notional: Notional,
    pub cum: Qty,
    pub submitted: Timestamp,
    /// Credit reserved for the remaining quantity.
    pub reserved: Money,
    pub source: Source,
    /// Index of its security in the shard; [`NIL`] if the security is unknown.
    pub local: u32,
    pub generation: u32,
    /// Index of its pending requests, or [`NIL`].
    pub requests: u32,
    /// Index of its former ids, or [`NIL`].
    pub orig_id: u32,
    /// Its newest execution at an outside venue, or [`NIL`].
    pub execution: u32,
    /// Neighbour in the list of finished orders, or in the free list.
    pub next: u32,
    /// Index of its strategy's position among those of its security.
    pub position: u16,
    /// Index of its account's exposure among those of its security.
    pub exposure: u16,
    /// Time of the last event about it.
    pub updated: Timestamp,
    /// Reason in the last event about it.
    pub reason: Reason,
    pub base: Base,
    pub flags: OrderFlags,
    /// For a finished order: the trading day in which it was last published, as the shard counts
    /// days.
    pub era: u8,
    /// Previous order in the list of finished orders. That of the first is not kept up to date: its
    /// memory is no longer in the cache when it becomes the first.
    pub before: u32,
    pub submitted_by: SenderId,
    /// Sender of the last cancel request.
    pub canceled_by: SenderId,
}

const _: () = assert!(size_of::<Order>() == 192, "an order has three cache lines");
const _: () = assert!(std::mem::offset_of!(Order, id) == 0, "each line is fetched by one of its fields");
const _: () =
    assert!(std::mem::offset_of!(Order, notional) / 64 == 1, "each line is fetched by one of its fields");
const _: () =
    assert!(std::mem::offset_of!(Order, reserved) / 64 == 2, "each line is fetched by one of its fields");

/// Properties of an order that are true or false, one bit each: as bytes they would move the
/// senders out of the order's cache lines.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct OrderFlags(u8);

/// Defines the methods of [`Order`] that read and set one bit.
macro_rules! order_flags {
    ($($(#[$about:meta])* $bit:literal = $get:ident, $set:ident;)+) => {
        impl Order {
            $($(#[$about])*
            #[inline]
            pub fn $get(&self) -> bool {
                self.flags.0 & 1 << $bit != 0
            }

            #[inline]
            pub fn $set(&mut self, value: bool) {
                self.flags.0 = self.flags.0 & !(1 << $bit) | (value as u8) << $bit;
            })+
        }
    };
}

order_flags! {
    /// Returns whether its venue is outside, and may report something even after its end.
    0 = outside, set_outside;
    /// Returns whether the venue has it: a waiting stop is held by the shard.
    1 = at_venue, set_at_venue;
    2 = triggered, set_triggered;
    3 = in_doubt, set_in_doubt;
    /// Returns whether its outside venue has accepted it: an acknowledgement or a fill has arrived.
    4 = acknowledged, set_acknowledged;
    /// Returns whether the doubt about it ends only when the venue reports its status.
    5 = unsure, set_unsure;
    /// Returns whether its outside venue was asked for the status since the order was sent there.
    6 = status_queried, set_status_queried;
    /// Returns whether a modification was requested: only then is its sender recorded.
    7 = modify_requested, set_modify_requested;
}

impl Order {
    /// Returns whether the order is a stop that was triggered and that its venue has never
    /// acknowledged.
    pub fn is_unsent_stop(&self) -> bool {
        self.terms.kind.has_stop()
            && self.triggered()
            && self.outside()
            && !self.acknowledged()
            && self.cum.is_zero()
            && self.base == Base::Working
    }

    /// Prefetches its memory.
    #[inline]
    pub fn fetch(&self) {
        fetch(&self.id);
        fetch(&self.notional);
        fetch(&self.reserved);
    }

    pub fn status(&self, requests: Option<&Requests>) -> Status {
        let plain = Order::PLAIN_STATUS[self.base as usize];
        if self.base.is_finished() {
            return plain;
        }
        match requests {
            Some(requests) if requests.cancel.is_some() => Status::PendingCancel,
            Some(requests) if requests.replace.is_some() => Status::PendingReplace,
            _ if self.base == Base::Working && self.cum.is_positive() => Status::PartiallyFilled,
            _ => plain,
        }
    }

    /// Status by base state, of an order without fills and requests.
    const PLAIN_STATUS: [Status; Base::ALL.len()] = [
        Status::PendingNew,
        Status::New,
        Status::Filled,
        Status::Canceled,
        Status::Rejected,
        Status::Expired,
    ];

    pub fn leaves(&self) -> Qty {
        if self.base.is_finished() {
            return Qty::ZERO;
        }
        self.terms.qty.checked_sub(self.cum).unwrap_or_default()
    }

    pub fn avg_price(&self) -> Price {
        self.notional.average(self.cum)
    }

    /// Returns whether it is a stop that still waits for its price.
    pub fn waits_for_trigger(&self) -> bool {
        self.terms.kind.has_stop() && !self.triggered()
    }
}

/// The latest fill of an order. Stored beside the orders, because only fills and snapshots read it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LastFill {
    pub qty: Qty,
    pub price: Price,
}

/// Pending requests of an order: at most one of each kind; a cancel may wait behind a replace.
#[derive(Clone, Copy, Debug, Default)]
pub struct Requests {
    pub replace: Option<Replace>,
    pub cancel: Option<CancelRequest>,
    /// Next in the free list.
    pub next: u32,
}

#[derive(Clone, Copy, Debug)]
pub struct Replace {
    pub id: IntId,
    pub source: Source,
    pub terms: Terms,
    /// Credit reserved for the new terms beyond that of the old.
    pub reserved: Money,
    /// Price at which the new terms were valued for the credit.
    pub credit_price: Option<Price>,
    /// Growth of the quantity in the market, already counted as open.
    pub grown: Qty,
}

#[derive(Clone, Copy, Debug)]
pub struct CancelRequest {
    pub id: IntId,
    pub source: Source,
    /// Reason to report when it is done.
    pub reason: Reason,
    /// Whether the request was sent to the venue.
    pub sent: bool,
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::terms::OrderKind;

    const STEPS: [Step; 6] =
        [Step::Accept, Step::Reject, Step::Fill, Step::Complete, Step::Cancel, Step::Expire];

    #[test]
    fn every_pair_of_base_state_and_step_is_as_the_table_says() {
        use Base::*;
        // Accept, Reject, Fill, Complete, Cancel, Expire.
        let table = [
            (
                PendingNew,
                [Some(Working), Some(Rejected), Some(Working), Some(Filled), Some(Canceled), Some(Expired)],
            ),
            (
                Working,
                [Some(Working), Some(Canceled), Some(Working), Some(Filled), Some(Canceled), Some(Expired)],
            ),
            (Filled, [None, None, Some(Filled), Some(Filled), None, None]),
            (Canceled, [None, None, Some(Canceled), Some(Filled), None, None]),
            (Rejected, [None, None, Some(Rejected), Some(Filled), None, None]),
            (Expired, [None, None, Some(Expired), Some(Filled), None, None]),
        ];
        for (base, row) in table {
            for (step, expected) in STEPS.into_iter().zip(row) {
                assert_eq!(base.after(step), expected, "{base:?} {step:?}");
            }
        }
    }

    #[test]
    fn the_status_of_the_highest_rank_is_published() {
        let cancel =
            CancelRequest { id: IntId::NONE, source: Source::default(), reason: Reason::None, sent: true };
        let replace = Replace {
            id: IntId::NONE,
            source: Source::default(),
            terms: Terms::default(),
            reserved: Money::ZERO,
            credit_price: None,
            grown: Qty::ZERO,
        };
        let requests = [
            None,
            Some(Requests::default()),
            Some(Requests { replace: Some(replace), ..Requests::default() }),
            Some(Requests { cancel: Some(cancel), ..Requests::default() }),
            Some(Requests { replace: Some(replace), cancel: Some(cancel), next: 0 }),
        ];
        for base in Base::ALL {
            for (at, requests) in requests.iter().enumerate() {
                for cum in [0, 1] {
                    let mut order = crate::orders::empty_order();
                    order.base = base;
                    order.terms.qty = Qty::from_raw(2);
                    order.cum = Qty::from_raw(cum);
                    let expected = match (base, at, cum) {
                        (Base::Filled, ..) => Status::Filled,
                        (Base::Canceled, ..) => Status::Canceled,
                        (Base::Rejected, ..) => Status::Rejected,
                        (Base::Expired, ..) => Status::Expired,
                        (_, 3 | 4, _) => Status::PendingCancel,
                        (_, 2, _) => Status::PendingReplace,
                        (Base::PendingNew, ..) => Status::PendingNew,
                        (Base::Working, _, 1) => Status::PartiallyFilled,
                        (Base::Working, ..) => Status::New,
                    };
                    let status = order.status(requests.as_ref());
                    assert_eq!(status, expected, "{base:?} {at} {cum}");
                    assert_eq!(order.leaves().is_zero(), status.is_finished());
                }
            }
        }
    }

    #[test]
    fn a_triggered_stop_is_unsent_until_its_outside_venue_shows_that_it_has_it() {
        let mut order = crate::orders::empty_order();
        order.terms.kind = OrderKind::Stop;
        order.base = Base::Working;
        order.set_triggered(true);
        order.set_outside(true);
        assert!(order.is_unsent_stop());
        let changes: [fn(&mut Order); 7] = [
            |order| order.terms.kind = OrderKind::Limit,
            |order| order.set_triggered(false),
            |order| order.set_outside(false),
            |order| order.set_acknowledged(true),
            |order| order.cum = Qty::from_raw(1),
            |order| order.base = Base::PendingNew,
            |order| order.base = Base::Canceled,
        ];
        for (at, change) in changes.into_iter().enumerate() {
            let mut other = order;
            change(&mut other);
            assert!(!other.is_unsent_stop(), "change {at}");
        }
    }
}
