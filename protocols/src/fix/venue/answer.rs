//! What a venue says of an order: Execution Report (8) and Order Cancel Reject (9), read into what a shard can be told.

use pitlane_engine::command::{ExecRef, Report};
use pitlane_engine::id::{IntId, OrderHandle};
use pitlane_engine::number::{Price, Qty};
use pitlane_engine::reason::Reason;

use super::id::{fold_128, order_of};
use crate::fix::fields::Message;
use crate::fix::tag;

/// An Execution Report as far as it matters to us.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Execution {
    pub order: OrderHandle,
    /// ClOrdID: of the order, or of the request that is answered.
    pub cl_ord_id: IntId,
    pub meaning: Meaning,
    /// Whether the order is over, by OrdStatus.
    pub is_final: bool,
}

/// What an Execution Report means.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Meaning {
    /// It is being looked at: nothing has happened yet.
    Pending,
    /// A report that a shard understands.
    Report(Report),
    /// The order was cancelled; by whom shows from what was asked.
    Canceled,
    /// New terms hold.
    Replaced,
    /// Nothing happened: so it stands, by OrdStatus (39).
    Status(u8),
}

/// Why an Execution Report says nothing to us. It is passed over and counted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Passed {
    /// Of no order of ours.
    Order,
    /// A value that we do not know.
    Value,
    /// A field that it needs is missing, or is no number.
    Field,
}

impl Execution {
    pub fn read(message: &Message) -> Result<Execution, Passed> {
        let (order, cl_ord_id) = whose(message).ok_or(Passed::Order)?;
        let ord_status = code(message, tag::ORD_STATUS).ok_or(Passed::Field)?;
        let exec_type = code(message, tag::EXEC_TYPE).ok_or(Passed::Field)?;
        let is_final = matches!(ord_status, b'2' | b'4' | b'8' | b'C' | b'3');
        let meaning = match exec_type {
            b'0' => Meaning::Report(Report::Accepted),
            b'A' | b'6' | b'E' => Meaning::Pending,
            b'8' => Meaning::Report(Report::Rejected(Reason::VenueRejected)),
            // 1 and 2: as before FIX 4.3.
            b'F' | b'1' | b'2' => Meaning::Report(fill(message)?),
            b'4' => Meaning::Canceled,
            b'5' => Meaning::Replaced,
            b'C' | b'3' => Meaning::Report(Report::Expired(Reason::ExpiredDay)),
            b'H' => Meaning::Report(Report::Busted { exec: exec_ref(message, tag::EXEC_REF_ID)? }),
            b'G' => Meaning::Report(correction(message)?),
            b'I' => Meaning::Status(ord_status),
            _ => return Err(Passed::Value),
        };
        Ok(Execution { order, cl_ord_id, meaning, is_final })
    }
}

/// An Order Cancel Reject.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Refused {
    pub order: OrderHandle,
    pub cl_ord_id: IntId,
    pub report: Report,
}

impl Refused {
    pub fn read(message: &Message) -> Result<Refused, Passed> {
        let (order, cl_ord_id) = whose(message).ok_or(Passed::Order)?;
        let reason = match message.get(tag::CXL_REJ_REASON) {
            Some(b"0") => Reason::OrderFinished,
            Some(b"1") => Reason::UnknownOrder,
            Some(b"3") => Reason::RequestPending,
            Some(_) | None => Reason::VenueRejected,
        };
        let report = match code(message, tag::CXL_REJ_RESPONSE_TO) {
            Some(b'1') => Report::CancelRefused(reason),
            Some(b'2') => Report::ReplaceRefused(reason),
            Some(_) => return Err(Passed::Value),
            None => return Err(Passed::Field),
        };
        Ok(Refused { order, cl_ord_id, report })
    }
}

/// The order, and the id by which the venue calls it here: our own, or the one before.
pub fn whose(message: &Message) -> Option<(OrderHandle, IntId)> {
    let named = |tag| message.get(tag).and_then(|id| Some((order_of(id)?, IntId::parse(id).ok()?)));
    named(tag::CL_ORD_ID).or_else(|| named(tag::ORIG_CL_ORD_ID))
}

fn fill(message: &Message) -> Result<Report, Passed> {
    let (qty, price) = last(message)?;
    Ok(Report::Filled { exec: exec_ref(message, tag::EXEC_ID)?, qty, price })
}

fn correction(message: &Message) -> Result<Report, Passed> {
    let (qty, price) = last(message)?;
    Ok(Report::Corrected { exec: exec_ref(message, tag::EXEC_REF_ID)?, qty, price })
}

/// LastQty and LastPx.
fn last(message: &Message) -> Result<(Qty, Price), Passed> {
    let qty = message.get(tag::LAST_QTY).and_then(|text| Qty::parse(text).ok());
    let price = message.get(tag::LAST_PX).and_then(|text| Price::parse(text).ok());
    qty.filter(|qty| qty.is_positive()).zip(price).ok_or(Passed::Field)
}

fn exec_ref(message: &Message, tag: u32) -> Result<ExecRef, Passed> {
    let text = message.get(tag).filter(|text| !text.is_empty()).ok_or(Passed::Field)?;
    // Zero means that there is none.
    Ok(ExecRef(fold_128(text).max(1)))
}

fn code(message: &Message, tag: u32) -> Option<u8> {
    match message.get(tag)? {
        &[code] => Some(code),
        // A value of two characters is one that we do not know.
        [_, ..] => Some(b'?'),
        [] => None,
    }
}
