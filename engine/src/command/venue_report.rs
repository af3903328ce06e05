//! Reports of venues about orders.

use crate::id::Currency;
use crate::number::{Money, Price, Qty};
use crate::reason::Reason;

/// A venue's id of one execution, folded into 128 bits by its adapter. Zero: the venue gave none.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct ExecRef(pub u128);

/// A venue's report about an order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum VenueReport {
    Accepted,
    Rejected(Reason),
    Filled {
        exec: ExecRef,
        qty: Qty,
        price: Price,
    },
    /// The order ended without a fill: cancelled as requested, or unsolicited for the reason given.
    Canceled(Reason),
    Expired(Reason),
    CancelRefused(Reason),
    Replaced,
    ReplaceRefused(Reason),
    /// The venue takes a fill back.
    Busted {
        exec: ExecRef,
    },
    /// The venue gives a fill another quantity or price.
    Corrected {
        exec: ExecRef,
        qty: Qty,
        price: Price,
    },
    /// After a reconnect: the venue knows this order and has reported all it knows.
    Reconciled,
    // New variants come last: they are stored by their number.
    /// A fill, with the total filled quantity of the order as the venue counts it (CumQty).
    FilledTo {
        exec: ExecRef,
        qty: Qty,
        price: Price,
        cum: Qty,
    },
    /// The venue takes the fill `exec_ref` back (`qty` is zero), or gives it another quantity or
    /// price.
    Amended {
        exec_ref: ExecRef,
        /// Id of this report, to which a later report may refer.
        exec: ExecRef,
        qty: Qty,
        price: Price,
        /// Whether the order still works at the venue afterwards.
        is_open: bool,
    },
    /// State of the order at the venue, regardless of earlier reports.
    Standing {
        cum: Qty,
        /// AvgPx. Zero: the venue did not report it.
        average: Price,
        state: VenueState,
    },
    /// Messages about the order may be lost: its state is unknown until the venue reports it.
    Unsure,
    /// As [`VenueReport::FilledTo`], with the fee that the venue has charged. It is booked instead
    /// of the commission of the security's family.
    FilledWithFee {
        exec: ExecRef,
        qty: Qty,
        price: Price,
        cum: Qty,
        fee: VenueFee,
    },
}

/// A fee that a venue has charged for one fill.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct VenueFee {
    /// Below zero: the venue has paid it.
    pub amount: Money,
    /// It may be another one than that of the security.
    pub currency: Currency,
}

/// State of an order as its venue reports it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum VenueState {
    Open,
    Filled,
    Canceled(Reason),
    Expired(Reason),
    Rejected(Reason),
}
