//! One order: base state, pending requests and quantities are separate; the status is derived.

use pitlane_engine::id::{IntId, Source};
use pitlane_engine::terms::{Side, SpecialTerms, Status, Terms};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OrderBase {
    PendingNew,
    Working,
    Filled,
    Canceled,
    Rejected,
    Expired,
}

/// Where the order waits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OrderPlace {
    Nowhere,
    /// For its stop price.
    Stop,
    /// In the simulated book, at its limit.
    Book,
    /// In the simulated venue's queue of market orders.
    Line,
    /// For the closing auction.
    Parked,
    /// At an external venue.
    Outside,
}

#[derive(Clone, Debug)]
pub struct TwinOrder {
    pub id: IntId,
    pub orig_id: IntId,
    pub source: Source,
    pub terms: Terms,
    pub base: OrderBase,
    pub cancel: Option<IntId>,
    pub replace: Option<(IntId, Terms)>,
    pub special: Option<SpecialTerms>,
    /// Special terms of the pending modification.
    pub replace_special: Option<SpecialTerms>,
    /// Whether the pending modification only ends the order at its filled quantity.
    pub stop_here: bool,
    pub cum: i64,
    /// Sum of price × quantity over the fills, exact.
    pub notional: i128,
    /// Credit reserved for the remaining quantity.
    pub reserved: i64,
    /// Credit that a pending modification requires in addition.
    pub requested_reserve: i64,
    /// Price at which the last modification was valued, if it had one.
    pub asked_price: Option<i64>,
    pub triggered: bool,
    /// Whether it was ever sent to an external venue.
    pub sent: bool,
    pub in_doubt: bool,
    /// Whether the doubt ends only when the venue reports the order's status.
    pub unsure: bool,
    /// Whether the venue was queried for its status since it was sent there.
    pub asked: bool,
    /// Whether the external venue has accepted it, or filled some of it, since it was sent.
    pub acknowledged: bool,
    /// Whether its day ended while it was presumed to be at its external venue.
    pub day_over: bool,
    pub place: OrderPlace,
    /// Arrival number at its place; smaller is earlier.
    pub arrival: u64,
}

impl TwinOrder {
    pub fn new(source: Source, id: IntId, terms: Terms) -> TwinOrder {
        TwinOrder {
            id,
            orig_id: IntId::NONE,
            source,
            terms,
            base: OrderBase::PendingNew,
            cancel: None,
            replace: None,
            special: None,
            replace_special: None,
            stop_here: false,
            cum: 0,
            notional: 0,
            reserved: 0,
            requested_reserve: 0,
            asked_price: None,
            triggered: false,
            sent: false,
            in_doubt: false,
            unsure: false,
            asked: false,
            acknowledged: false,
            day_over: false,
            place: OrderPlace::Nowhere,
            arrival: 0,
        }
    }

    pub fn is_over(&self) -> bool {
        match self.base {
            OrderBase::PendingNew | OrderBase::Working => false,
            OrderBase::Filled | OrderBase::Canceled | OrderBase::Rejected | OrderBase::Expired => true,
        }
    }

    /// Returns the quantity left in the market.
    pub fn leaves(&self) -> i64 {
        if self.is_over() { 0 } else { self.terms.qty.raw() - self.cum }
    }

    /// Returns the quantity that counts as open: what is left, and what a pending modification adds
    /// to it.
    pub fn open(&self) -> i64 {
        let grown = match self.replace {
            Some((_, terms)) if !self.is_over() && !self.stop_here => {
                (terms.qty.raw() - self.terms.qty.raw()).max(0)
            }
            _ => 0,
        };
        self.leaves() + grown
    }

    pub fn is_buy(&self) -> bool {
        self.terms.side == Side::Buy
    }

    /// Returns the limit that it trades by, if it has one.
    pub fn limit(&self) -> Option<i64> {
        self.terms.kind.has_limit().then_some(self.terms.limit.raw())
    }

    pub fn status(&self) -> Status {
        match self.base {
            OrderBase::Filled => Status::Filled,
            OrderBase::Canceled => Status::Canceled,
            OrderBase::Rejected => Status::Rejected,
            OrderBase::Expired => Status::Expired,
            OrderBase::PendingNew | OrderBase::Working if self.cancel.is_some() => Status::PendingCancel,
            OrderBase::PendingNew | OrderBase::Working if self.replace.is_some() => Status::PendingReplace,
            OrderBase::PendingNew => Status::PendingNew,
            OrderBase::Working if self.cum > 0 => Status::PartiallyFilled,
            OrderBase::Working => Status::New,
        }
    }
}
