//! Reads a venue's Execution Report (8) and Order Cancel Reject (9) into reports for a shard.

use pitlane_engine::command::{ExecRef, VenueReport, VenueState};
use pitlane_engine::event::VenueRequest;
use pitlane_engine::id::{IntId, OrderHandle};
use pitlane_engine::number::{Price, Qty};
use pitlane_engine::reason::Reason;

use super::id::{fold_128, order_of};
use crate::fix::exec_type;
use crate::fix::fields::FixMessage;
use crate::fix::ord_status;
use crate::fix::tag;

/// The fields of an Execution Report that we use.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct VenueExecution {
    pub order: OrderHandle,
    /// ClOrdID of the order, or of the request that is answered.
    pub cl_ord_id: IntId,
    pub meaning: Meaning,
    /// OrdStatus (39).
    pub status: u8,
    /// Whether the order is finished, by OrdStatus.
    pub is_final: bool,
    /// CumQty (14), if present.
    pub cum: Option<Qty>,
    /// AvgPx (6); zero if absent.
    pub average: Price,
    /// Whether it answers an Order Status Request: ExecType is I, or it has the id of the request
    /// (790).
    pub is_status: bool,
}

/// Meaning of an Execution Report.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Meaning {
    /// The venue has not decided yet: nothing has happened.
    Pending,
    /// A report for the shard.
    Report(VenueReport),
    /// The order was cancelled; the pending requests show by which side.
    Canceled,
    /// The new terms apply.
    Replaced,
    /// Nothing happened: this is the OrdStatus (39).
    Status(u8),
}

/// Why an Execution Report is ignored. Ignored reports are counted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum IgnoreReason {
    /// The order is not ours.
    UnknownOrder,
    /// A value is unknown to us.
    UnknownValue,
    /// A required field is missing or is not a number.
    MissingField,
}

impl VenueExecution {
    pub fn read(message: &FixMessage) -> Result<VenueExecution, IgnoreReason> {
        let (order, cl_ord_id) = whose(message).ok_or(IgnoreReason::UnknownOrder)?;
        let status = code(message, tag::ORD_STATUS).ok_or(IgnoreReason::MissingField)?;
        let exec = code(message, tag::EXEC_TYPE).ok_or(IgnoreReason::MissingField)?;
        let is_final = matches!(
            status,
            ord_status::FILLED
                | ord_status::CANCELED
                | ord_status::REJECTED
                | ord_status::EXPIRED
                | ord_status::DONE_FOR_DAY
        );
        let meaning = match exec {
            exec_type::NEW => Meaning::Report(VenueReport::Accepted),
            exec_type::PENDING_NEW | exec_type::PENDING_CANCEL | exec_type::PENDING_REPLACE => {
                Meaning::Pending
            }
            exec_type::REJECTED => Meaning::Report(VenueReport::Rejected(Reason::VenueRejected)),
            // FIX before 4.3 uses 1 and 2.
            exec_type::TRADE | exec_type::PARTIAL_FILL | exec_type::FILL => Meaning::Report(fill(message)?),
            exec_type::CANCELED => Meaning::Canceled,
            exec_type::REPLACED => Meaning::Replaced,
            exec_type::EXPIRED | exec_type::DONE_FOR_DAY => {
                Meaning::Report(VenueReport::Expired(Reason::ExpiredDay))
            }
            exec_type::TRADE_CANCEL => {
                Meaning::Report(amendment(message, (Qty::ZERO, Price::ZERO), !is_final)?)
            }
            exec_type::TRADE_CORRECT => Meaning::Report(amendment(message, last(message)?, !is_final)?),
            exec_type::ORDER_STATUS => Meaning::Status(status),
            _ => return Err(IgnoreReason::UnknownValue),
        };
        let is_status = exec == exec_type::ORDER_STATUS || message.get(tag::ORD_STATUS_REQ_ID).is_some();
        let cum = cum_qty(message);
        let average = message.get(tag::AVG_PX).and_then(|text| Price::parse(text).ok()).unwrap_or_default();
        Ok(VenueExecution { order, cl_ord_id, meaning, status, is_final, cum, average, is_status })
    }

    /// Returns the order's state by OrdStatus, or `None` if the venue has not decided yet or the
    /// value is unknown. `by` is the reason of a cancel.
    pub fn state(&self, message: &FixMessage, by: Reason) -> Option<VenueState> {
        match self.status {
            ord_status::NEW
            | ord_status::PARTIALLY_FILLED
            | ord_status::REPLACED
            | ord_status::PENDING_CANCEL
            | ord_status::SUSPENDED
            | ord_status::ACCEPTED_FOR_BIDDING
            | ord_status::PENDING_REPLACE => Some(VenueState::Open),
            ord_status::FILLED => Some(VenueState::Filled),
            ord_status::CANCELED => Some(VenueState::Canceled(by)),
            ord_status::EXPIRED | ord_status::DONE_FOR_DAY => Some(VenueState::Expired(Reason::ExpiredDay)),
            ord_status::REJECTED if is_unknown_order(message) => {
                Some(VenueState::Rejected(Reason::UnknownOrder))
            }
            ord_status::REJECTED => Some(VenueState::Rejected(Reason::VenueRejected)),
            _ => None,
        }
    }
}

/// Returns whether a rejection says that the order does not exist: by OrdRejReason 5 or, if that is
/// missing or "other", by the OrderID `NONE` or the text.
fn is_unknown_order(message: &FixMessage) -> bool {
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
pub struct VenueCancelReject {
    pub order: OrderHandle,
    pub cl_ord_id: IntId,
    pub reason: Reason,
    /// CxlRejResponseTo (434), if known. The pending request under the ClOrdID decides.
    pub response_to: Option<VenueRequest>,
}

impl VenueCancelReject {
    pub fn read(message: &FixMessage) -> Result<VenueCancelReject, IgnoreReason> {
        let (order, cl_ord_id) = whose(message).ok_or(IgnoreReason::UnknownOrder)?;
        // An order that is finished by its OrdStatus is finished, whatever the reason says.
        let is_over = matches!(
            code(message, tag::ORD_STATUS),
            Some(ord_status::FILLED | ord_status::CANCELED | ord_status::EXPIRED | ord_status::DONE_FOR_DAY)
        );
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
        Ok(VenueCancelReject { order, cl_ord_id, reason, response_to })
    }
}

/// Returns the order and the id by which the venue names it: ClOrdID, else OrigClOrdID.
pub fn whose(message: &FixMessage) -> Option<(OrderHandle, IntId)> {
    let named = |tag| message.get(tag).and_then(|id| Some((order_of(id)?, IntId::parse(id).ok()?)));
    named(tag::CL_ORD_ID).or_else(|| named(tag::ORIG_CL_ORD_ID))
}

fn fill(message: &FixMessage) -> Result<VenueReport, IgnoreReason> {
    let ((qty, price), exec) = (last(message)?, exec_ref(message, tag::EXEC_ID)?);
    Ok(match cum_qty(message) {
        Some(cum) => VenueReport::FilledTo { exec, qty, price, cum },
        None => VenueReport::Filled { exec, qty, price },
    })
}

fn amendment(
    message: &FixMessage,
    (qty, price): (Qty, Price),
    is_open: bool,
) -> Result<VenueReport, IgnoreReason> {
    let exec_ref_id = exec_ref(message, tag::EXEC_REF_ID)?;
    // A venue that gives the correction no id of its own is understood too.
    let exec = exec_ref(message, tag::EXEC_ID).unwrap_or_default();
    Ok(VenueReport::Amended { exec_ref: exec_ref_id, exec, qty, price, is_open })
}

fn cum_qty(message: &FixMessage) -> Option<Qty> {
    message.get(tag::CUM_QTY).and_then(|text| Qty::parse(text).ok()).filter(|cum| !cum.is_negative())
}

/// Returns LastQty and LastPx.
fn last(message: &FixMessage) -> Result<(Qty, Price), IgnoreReason> {
    let qty = message.get(tag::LAST_QTY).and_then(|text| Qty::parse(text).ok());
    let price = message.get(tag::LAST_PX).and_then(|text| Price::parse(text).ok());
    qty.filter(|qty| qty.is_positive()).zip(price).ok_or(IgnoreReason::MissingField)
}

fn exec_ref(message: &FixMessage, tag: u32) -> Result<ExecRef, IgnoreReason> {
    let text = message.get(tag).filter(|text| !text.is_empty()).ok_or(IgnoreReason::MissingField)?;
    // Zero means that there is no execution.
    Ok(ExecRef(fold_128(text).max(1)))
}

fn code(message: &FixMessage, tag: u32) -> Option<u8> {
    match message.get(tag)? {
        &[code] => Some(code),
        // A value of two characters is unknown to us.
        [_, ..] => Some(b'?'),
        [] => None,
    }
}

#[cfg(test)]
mod tests {
    use pitlane_engine::id::ShardId;

    use super::super::id::venue_id;
    use super::*;
    use crate::fix::fields::tests::check;

    #[test]
    fn a_rejection_says_whether_the_venue_knows_the_order() {
        let id = venue_id(1, OrderHandle::new(ShardId(0), 1, 2), &IntId::parse(b"a").unwrap());
        let cases = [
            ("103=5|", Reason::UnknownOrder),
            ("37=NONE|", Reason::UnknownOrder),
            ("37=NONE|103=99|", Reason::UnknownOrder),
            ("58=Order UNKNOWN to us|", Reason::UnknownOrder),
            ("37=77|", Reason::VenueRejected),
            ("37=NONE|103=3|", Reason::VenueRejected),
            ("37=77|103=99|58=too large|", Reason::VenueRejected),
        ];
        for (fields, reason) in cases {
            check(&format!("35=8|11={id}|150=I|39=8|{fields}"), |message| {
                let answer = VenueExecution::read(message).unwrap();
                let state = answer.state(message, Reason::None);
                assert_eq!(state, Some(VenueState::Rejected(reason)), "{fields}");
            });
        }
    }

    /// Reads an Execution Report of an order.
    fn execution(fields: &str, look: impl FnOnce(&FixMessage, VenueExecution)) {
        let id = venue_id(1, OrderHandle::new(ShardId(0), 1, 2), &IntId::parse(b"a").unwrap());
        check(&format!("35=8|11={id}|{fields}"), |message| {
            look(message, VenueExecution::read(message).unwrap());
        });
    }

    #[test]
    fn the_execution_type_says_what_has_happened() {
        let amended = |is_open| {
            Meaning::Report(VenueReport::Amended {
                exec_ref: ExecRef(fold_128(b"e1")),
                exec: ExecRef(fold_128(b"e2")),
                qty: Qty::whole(3).unwrap(),
                price: Price::parse(b"7").unwrap(),
                is_open,
            })
        };
        let expired = Meaning::Report(VenueReport::Expired(Reason::ExpiredDay));
        for (fields, meaning) in [
            ("39=A|150=A|", Meaning::Pending),
            ("39=6|150=6|", Meaning::Pending),
            ("39=E|150=E|", Meaning::Pending),
            ("39=C|150=C|", expired),
            ("39=3|150=3|", expired),
            ("39=1|150=G|19=e1|17=e2|32=3|31=7|", amended(true)),
            ("39=2|150=G|19=e1|17=e2|32=3|31=7|", amended(false)),
            ("39=1|150=I|", Meaning::Status(b'1')),
        ] {
            execution(fields, |_, answer| assert_eq!(answer.meaning, meaning, "{fields}"));
        }
    }

    #[test]
    fn an_answer_to_a_status_request_is_known_by_its_type_or_its_id() {
        for (fields, is_status) in [("150=0|", false), ("150=I|", true), ("150=0|790=q|", true)] {
            execution(&format!("39=0|{fields}"), |_, answer| {
                assert_eq!(answer.is_status, is_status, "{fields}");
            });
        }
    }

    #[test]
    fn the_status_says_how_an_order_stands() {
        let expired = VenueState::Expired(Reason::ExpiredDay);
        for (status, state) in [
            ('0', Some(VenueState::Open)),
            ('2', Some(VenueState::Filled)),
            ('4', Some(VenueState::Canceled(Reason::Requested))),
            ('C', Some(expired)),
            ('3', Some(expired)),
            ('A', None),
        ] {
            execution(&format!("39={status}|150=I|"), |message, answer| {
                assert_eq!(answer.state(message, Reason::Requested), state, "{status}");
            });
        }
    }

    #[test]
    fn a_refused_cancel_has_a_reason() {
        let id = venue_id(1, OrderHandle::new(ShardId(0), 1, 2), &IntId::parse(b"a").unwrap());
        for (fields, reason) in [
            ("39=0|102=1|", Reason::UnknownOrder),
            ("39=2|102=1|", Reason::UnknownOrder),
            ("39=0|102=0|", Reason::OrderFinished),
            ("39=0|102=3|", Reason::RequestPending),
            ("39=2|102=3|", Reason::OrderFinished),
            ("39=4|", Reason::OrderFinished),
            ("39=0|102=2|", Reason::VenueRejected),
            ("39=0|", Reason::VenueRejected),
        ] {
            check(&format!("35=9|11={id}|434=1|{fields}"), |message| {
                assert_eq!(VenueCancelReject::read(message).unwrap().reason, reason, "{fields}");
            });
        }
    }
}
