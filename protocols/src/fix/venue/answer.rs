//! What a venue says of an order: Execution Report (8) and Order Cancel Reject (9), read into what a shard can be told.

use pitlane_engine::command::{ExecRef, Report, VenueState};
use pitlane_engine::event::VenueRequest;
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
    /// OrdStatus (39).
    pub status: u8,
    /// Whether the order is over, by OrdStatus.
    pub is_final: bool,
    /// CumQty (14), if it is told.
    pub cum: Option<Qty>,
    /// AvgPx (6); zero if it is not told.
    pub average: Price,
    /// Whether it answers an Order Status Request: ExecType is I, or it has the id of the request (790).
    pub is_status: bool,
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
            b'H' => Meaning::Report(amendment(message, (Qty::ZERO, Price::ZERO), !is_final)?),
            b'G' => Meaning::Report(amendment(message, last(message)?, !is_final)?),
            b'I' => Meaning::Status(ord_status),
            _ => return Err(Passed::Value),
        };
        let is_status = exec_type == b'I' || message.get(tag::ORD_STATUS_REQ_ID).is_some();
        let (status, cum) = (ord_status, cum_qty(message));
        let average = message.get(tag::AVG_PX).and_then(|text| Price::parse(text).ok()).unwrap_or_default();
        Ok(Execution { order, cl_ord_id, meaning, status, is_final, cum, average, is_status })
    }

    /// Where the order stands, by OrdStatus; None: it is being looked at, or we do not know the value. `by`: why it was cancelled.
    pub fn state(&self, message: &Message, by: Reason) -> Option<VenueState> {
        match self.status {
            b'0' | b'1' | b'5' | b'6' | b'9' | b'D' | b'E' => Some(VenueState::Open),
            b'2' => Some(VenueState::Filled),
            b'4' => Some(VenueState::Canceled(by)),
            b'C' | b'3' => Some(VenueState::Expired(Reason::ExpiredDay)),
            b'8' if is_unknown_order(message) => Some(VenueState::Rejected(Reason::UnknownOrder)),
            b'8' => Some(VenueState::Rejected(Reason::VenueRejected)),
            _ => None,
        }
    }
}

/// Whether a rejection says that there is no such order: by OrdRejReason 5, or where that is missing or "other" by the OrderID `NONE` or
/// the text.
fn is_unknown_order(message: &Message) -> bool {
    match message.get(tag::ORD_REJ_REASON) {
        Some(b"5") => true,
        Some(b"99") | None => {
            let text = message.get(tag::TEXT).unwrap_or_default();
            let says_so = text.windows(7).any(|word| word.eq_ignore_ascii_case(b"unknown"));
            says_so || message.get(tag::ORDER_ID) == Some(b"NONE")
        }
        Some(_) => false,
    }
}

/// An Order Cancel Reject.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Refused {
    pub order: OrderHandle,
    pub cl_ord_id: IntId,
    pub reason: Reason,
    /// CxlRejResponseTo (434), if it is one that we know. What was asked under the ClOrdID decides.
    pub response_to: Option<VenueRequest>,
}

impl Refused {
    pub fn read(message: &Message) -> Result<Refused, Passed> {
        let (order, cl_ord_id) = whose(message).ok_or(Passed::Order)?;
        // An order that is over by its OrdStatus is over, whatever the reason says.
        let is_over = matches!(code(message, tag::ORD_STATUS), Some(b'2' | b'4' | b'C' | b'3'));
        let reason = match message.get(tag::CXL_REJ_REASON) {
            Some(b"1") => Reason::UnknownOrder,
            Some(b"0") => Reason::OrderFinished,
            _ if is_over => Reason::OrderFinished,
            Some(b"3") => Reason::RequestPending,
            Some(_) | None => Reason::VenueRejected,
        };
        let response_to = match code(message, tag::CXL_REJ_RESPONSE_TO) {
            Some(b'1') => Some(VenueRequest::Cancel),
            Some(b'2') => Some(VenueRequest::Replace),
            Some(_) | None => None,
        };
        Ok(Refused { order, cl_ord_id, reason, response_to })
    }
}

/// The order, and the id by which the venue calls it here: our own, or the one before.
pub fn whose(message: &Message) -> Option<(OrderHandle, IntId)> {
    let named = |tag| message.get(tag).and_then(|id| Some((order_of(id)?, IntId::parse(id).ok()?)));
    named(tag::CL_ORD_ID).or_else(|| named(tag::ORIG_CL_ORD_ID))
}

fn fill(message: &Message) -> Result<Report, Passed> {
    let ((qty, price), exec) = (last(message)?, exec_ref(message, tag::EXEC_ID)?);
    Ok(match cum_qty(message) {
        Some(cum) => Report::FilledTo { exec, qty, price, cum },
        None => Report::Filled { exec, qty, price },
    })
}

fn amendment(message: &Message, (qty, price): (Qty, Price), is_open: bool) -> Result<Report, Passed> {
    let exec_ref_id = exec_ref(message, tag::EXEC_REF_ID)?;
    // A venue that gives it no id of its own is understood all the same.
    let exec = exec_ref(message, tag::EXEC_ID).unwrap_or_default();
    Ok(Report::Amended { exec_ref: exec_ref_id, exec, qty, price, is_open })
}

fn cum_qty(message: &Message) -> Option<Qty> {
    message.get(tag::CUM_QTY).and_then(|text| Qty::parse(text).ok()).filter(|cum| !cum.is_negative())
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
