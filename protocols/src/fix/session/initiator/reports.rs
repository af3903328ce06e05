//! Turns a venue's messages about orders into reports for the shards that own the orders.
//!
//! Rules: docs/fix-rules.md#venue-reports.

use pitlane_engine::command::{VenueReport, VenueState};
use pitlane_engine::event::VenueRequest;
use pitlane_engine::id::OrderHandle;
use pitlane_engine::number::Qty;
use pitlane_engine::reason::Reason;
use pitlane_engine::text::parse_u64;
use pitlane_engine::time::Timestamp;

use super::instructions::{KNOWN_ORDERS_MAX, RejectedRequest, named};
use super::pending_changes::RefusedChange;
use super::{Initiator, printable};
use crate::decoded::Decoded;
use crate::fix::fields::{FixMessage, read};
use crate::fix::frame;
use crate::fix::msg_type;
use crate::fix::ord_status;
use crate::fix::session::layer::SessionLayer;
use crate::fix::tag;
use crate::fix::venue::answer::{IgnoreReason, Meaning, VenueCancelReject, VenueExecution};

impl Initiator {
    pub(super) fn dispatch(
        &mut self,
        layer: &mut SessionLayer,
        now: Timestamp,
        message: &FixMessage,
        number: u64,
    ) {
        match message.type_code() {
            msg_type::HEARTBEAT => self.handle_heartbeat(layer, now, message),
            msg_type::TEST_REQUEST => layer.handle_test_request(now, message, number),
            msg_type::RESEND_REQUEST => {
                if layer.handle_resend_request(now, message, number) {
                    self.restart_synchronization();
                }
            }
            msg_type::EXECUTION_REPORT => match VenueExecution::read(message) {
                Ok(answer) => {
                    self.round_trip.handle_report(now, answer.order);
                    self.handle_execution(message, &answer);
                }
                Err(passed) => self.count_ignored(passed),
            },
            msg_type::ORDER_CANCEL_REJECT => match VenueCancelReject::read(message) {
                Ok(answer) => self.handle_cancel_reject(message, &answer),
                Err(passed) => self.count_ignored(passed),
            },
            msg_type::REJECT | msg_type::BUSINESS_MESSAGE_REJECT => {
                self.handle_message_reject(layer, message)
            }
            msg_type::MARKET_DATA_SNAPSHOT | msg_type::MARKET_DATA_INCREMENTAL_REFRESH => {
                self.handle_market_data(now, message)
            }
            // The venue has no market data of the security.
            msg_type::MARKET_DATA_REQUEST_REJECT => self.record_reject_text(message),
            _ => layer.business_reject(now, message, number, 3, None, "Unsupported Message Type"),
        }
    }

    fn handle_execution(&mut self, message: &FixMessage, answer: &VenueExecution) {
        let order = answer.order;
        self.counts.executions += 1;
        if self.is_outdated(message, answer) {
            self.record_reject_text(message);
            return self.queue_report(order, VenueReport::Unsure);
        }
        let requested = self.pending_changes.get(order, answer.cl_ord_id);
        let is_cancel_pending = self.pending_changes.has_coming(order, VenueRequest::Cancel);
        let by = match requested == Some(VenueRequest::Cancel) || is_cancel_pending {
            true => Reason::Requested,
            false => Reason::VenueCancelled,
        };
        let is_fill = matches!(
            answer.meaning,
            Meaning::Report(VenueReport::Filled { .. } | VenueReport::FilledTo { .. })
        );
        if answer.is_final {
            self.forget(order);
        } else if !is_fill && answer.meaning != Meaning::Pending {
            self.pending_changes.remove(order, answer.cl_ord_id);
        }
        // Everything is known of an order that was filled and is open again.
        if let Meaning::Report(VenueReport::Amended { is_open: true, .. }) = answer.meaning
            && !self.unreconciled.contains(&order)
            && self.known_orders.len() < KNOWN_ORDERS_MAX
        {
            self.known_orders.insert(order);
        }
        let reconciliation = self.reconciliation(message, answer, by);
        if reconciliation.is_some() && !is_fill {
            self.record_reject_text(message);
        } else {
            self.queue_execution(message, answer, requested, by);
        }
        reconciliation.into_iter().for_each(|report| self.queue_report(order, report));
    }

    /// Returns the state of an order about which messages may be lost, if this message reports it:
    /// as the answer to our status request or, if the venue does not support that, as any message
    /// about the order.
    fn reconciliation(
        &mut self,
        message: &FixMessage,
        answer: &VenueExecution,
        by: Reason,
    ) -> Option<VenueReport> {
        let is_conclusive = answer.is_status || !self.settings.supports_status_request;
        if !is_conclusive || !self.unreconciled.contains(&answer.order) {
            return None;
        }
        let state = answer.state(message, by)?;
        let is_rejected = matches!(state, VenueState::Rejected(_));
        let Some(cum) = answer.cum.or(is_rejected.then_some(Qty::ZERO)) else {
            self.count_ignored(IgnoreReason::MissingField);
            return None;
        };
        self.unreconciled.remove(&answer.order);
        if state == VenueState::Open && self.known_orders.len() < KNOWN_ORDERS_MAX {
            self.known_orders.insert(answer.order);
        }
        Some(VenueReport::Standing { cum, average: answer.average, state })
    }

    fn queue_execution(
        &mut self,
        message: &FixMessage,
        answer: &VenueExecution,
        requested: Option<VenueRequest>,
        by: Reason,
    ) {
        let order = answer.order;
        match answer.meaning {
            Meaning::Pending => {}
            Meaning::Report(report) => {
                if let VenueReport::Rejected(_) = report {
                    self.record_reject_text(message);
                }
                self.queue_report(order, report);
            }
            Meaning::Canceled => self.queue_report(order, VenueReport::Canceled(by)),
            Meaning::Replaced => self.queue_report(order, VenueReport::Replaced),
            Meaning::Status(status) => self.handle_status(message, order, status, requested, by),
        }
    }

    /// Handles a report of only the order's status, which some venues send when a request
    /// is done.
    fn handle_status(
        &mut self,
        message: &FixMessage,
        order: OrderHandle,
        status: u8,
        requested: Option<VenueRequest>,
        by: Reason,
    ) {
        if self.unreconciled.contains(&order) {
            // Without CumQty the report is not enough.
            return;
        }
        match status {
            ord_status::NEW | ord_status::PARTIALLY_FILLED | ord_status::FILLED
                if requested == Some(VenueRequest::Replace) =>
            {
                self.queue_report(order, VenueReport::Replaced)
            }
            ord_status::NEW
            | ord_status::PARTIALLY_FILLED
            | ord_status::FILLED
            | ord_status::PENDING_CANCEL
            | ord_status::PENDING_REPLACE => self.queue_report(order, VenueReport::Accepted),
            ord_status::PENDING_NEW => {}
            ord_status::CANCELED => self.queue_report(order, VenueReport::Canceled(by)),
            ord_status::EXPIRED | ord_status::DONE_FOR_DAY => {
                self.queue_report(order, VenueReport::Expired(Reason::ExpiredDay))
            }
            ord_status::REJECTED => {
                self.record_reject_text(message);
                self.queue_report(order, VenueReport::Rejected(Reason::VenueRejected));
            }
            _ => self.count_ignored(IgnoreReason::UnknownValue),
        }
    }

    fn handle_cancel_reject(&mut self, message: &FixMessage, answer: &VenueCancelReject) {
        let Some(refused) = self.pending_changes.refuse(answer.order, answer.cl_ord_id, answer.reason) else {
            // The request was answered before or never made. Reporting it again would refuse
            // another request.
            self.counts.unknown_orders += 1;
            return;
        };
        if answer.response_to.is_some_and(|to| to != refused.request) {
            self.counts.unknown_values += 1;
        }
        self.record_reject_text(message);
        self.queue_refusal(answer.order, refused, answer.reason);
    }

    fn queue_refusal(&mut self, order: OrderHandle, refused: RefusedChange, reason: Reason) {
        let report = match refused.request {
            _ if refused.is_superseded => return,
            VenueRequest::Replace => VenueReport::ReplaceRefused(reason),
            VenueRequest::Cancel | VenueRequest::New | VenueRequest::Query | VenueRequest::Status => {
                VenueReport::CancelRefused(reason)
            }
        };
        self.queue_report(order, report);
    }

    /// Handles Reject (3) or Business Message Reject (j) of a message of ours, found by its
    /// sequence number.
    fn handle_message_reject(&mut self, layer: &SessionLayer, message: &FixMessage) {
        if message.get(tag::REF_MSG_TYPE).map(msg_type::code) == Some(msg_type::MARKET_DATA_REQUEST) {
            // The venue provides no market data.
            return self.record_reject_text(message);
        }
        let Some(refused) = rejected_message(layer, message) else {
            return self.count_ignored(IgnoreReason::UnknownOrder);
        };
        self.record_reject_text(message);
        let RejectedRequest { order, cl_ord_id, msg_type } = refused;
        match msg_type {
            msg_type::NEW_ORDER_SINGLE => {
                self.known_orders.remove(&order);
                self.queue_report(order, VenueReport::Rejected(Reason::VenueRejected));
            }
            msg_type::ORDER_CANCEL_REQUEST | msg_type::ORDER_CANCEL_REPLACE_REQUEST => {
                let reason = Reason::VenueRejected;
                if let Some(refused) = self.pending_changes.refuse(order, cl_ord_id, reason) {
                    self.queue_refusal(order, refused, reason);
                }
            }
            // The venue does not support Order Status Request: the order stays in doubt.
            _ => {}
        }
    }

    fn record_reject_text(&mut self, message: &FixMessage) {
        if let Some(text) = message.get(tag::TEXT) {
            self.reject_text = Some(printable(text));
        }
    }

    fn count_ignored(&mut self, passed: IgnoreReason) {
        match passed {
            IgnoreReason::UnknownOrder => self.counts.unknown_orders += 1,
            IgnoreReason::UnknownValue => self.counts.unknown_values += 1,
            IgnoreReason::MissingField => self.counts.incomplete += 1,
        }
    }

    /// Returns whether a venue that does not know the order answers an Order Status Request that is
    /// no longer open: one of an earlier connection, or one that it has requested again. A stop may
    /// have been sent since then, so the answer ends no order; the shard asks again after the next
    /// synchronization.
    fn is_outdated(&self, message: &FixMessage, answer: &VenueExecution) -> bool {
        answer.is_status
            && self.settings.supports_status_request
            && !self.unreconciled.contains(&answer.order)
            && answer.state(message, Reason::None) == Some(VenueState::Rejected(Reason::UnknownOrder))
    }
}

/// Returns our message that the venue rejects, from the store.
fn rejected_message(layer: &SessionLayer, message: &FixMessage) -> Option<RejectedRequest> {
    let number = parse_u64(message.get(tag::REF_SEQ_NUM)?).ok()?;
    let mut kept = Vec::new();
    layer.sequence.next_message(number, number, &mut kept)?;
    let Ok(Decoded::Message { message: frame, .. }) = frame::decode(&kept, usize::MAX) else {
        return None;
    };
    // The session's field table is in use by the message that is being read.
    let mut fields = Box::default();
    named(&read(frame, &mut fields))
}
