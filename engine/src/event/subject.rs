//! What an event is about. Each question has one list of all kinds of events, so that a new kind
//! cannot be forgotten.

use super::{Adjustment, EventKind, ExecType, OrderTerms, RequestKind};
use crate::id::{IntId, OrderHandle, SecurityId, Source};

/// What an event is about. Whatever it only mentions is absent: the order of an alert, the terms of
/// an instruction to a venue.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct EventSubject {
    /// Order whose state the event reports; [`OrderHandle::NONE`] if the order was never entered.
    pub order: Option<OrderHandle>,
    /// Security whose data or order the event reports.
    pub security: Option<SecurityId>,
    /// Source that the event answers.
    pub source: Option<Source>,
}

impl EventSubject {
    fn of_order(order: OrderHandle, security: Option<SecurityId>, source: Option<Source>) -> EventSubject {
        EventSubject { order: Some(order), security, source }
    }

    fn of_security(security: SecurityId) -> EventSubject {
        EventSubject { security: Some(security), ..EventSubject::default() }
    }

    fn of_source(source: Source) -> EventSubject {
        EventSubject { source: Some(source), ..EventSubject::default() }
    }
}

impl EventKind {
    /// Returns what the event is about.
    #[inline]
    pub fn subject(&self) -> EventSubject {
        match self {
            EventKind::Order(order) => {
                EventSubject::of_order(order.order, Some(order.terms.security), Some(order.source))
            }
            EventKind::Status(report) => {
                EventSubject::of_order(report.order, Some(report.security), Some(report.source))
            }
            EventKind::Refused(refusal) => EventSubject::of_order(refusal.order, None, Some(refusal.source)),
            EventKind::Forgotten { order, source, .. } => EventSubject::of_order(*order, None, Some(*source)),
            EventKind::SpecialTerms(terms) => EventSubject::of_order(terms.order, None, Some(terms.source)),
            EventKind::Sent { order, .. } => EventSubject::of_order(*order, None, None),
            EventKind::Booked(booking) => {
                EventSubject { security: booking.security, ..EventSubject::default() }
            }
            EventKind::Adjusted { what: Adjustment::Position { security, .. }, .. }
            | EventKind::Subscription { security, .. }
            | EventKind::Halt { security, .. }
            | EventKind::Exposure { security, .. }
            | EventKind::Restrict { security, .. } => EventSubject::of_security(*security),
            EventKind::Tick(tick) => EventSubject::of_security(tick.security),
            EventKind::Depth(depth) => EventSubject::of_security(depth.security),
            EventKind::Levels(levels) => EventSubject::of_security(levels.security),
            EventKind::BookOrders(orders) => EventSubject::of_security(orders.security),
            EventKind::MarketTrade(trade) => EventSubject::of_security(trade.security),
            EventKind::Done { source, .. } => EventSubject::of_source(*source),
            EventKind::UsedIds(used) => EventSubject::of_source(used.source),
            EventKind::Adjusted { what: Adjustment::Cash { .. }, .. }
            | EventKind::Session { .. }
            | EventKind::TradingDay { .. }
            | EventKind::Phase { .. }
            | EventKind::Adapter { .. }
            | EventKind::Limits { .. }
            | EventKind::Kill { .. }
            | EventKind::Alert { .. }
            | EventKind::ToVenue(_)
            | EventKind::Budget(_)
            | EventKind::SnapshotBegin { .. }
            | EventKind::SnapshotEnd { .. }
            | EventKind::Directed { .. }
            | EventKind::Sender { .. } => EventSubject::default(),
        }
    }

    /// Returns the source of the order that the event reports: its terms, its state, or a refused
    /// request about it. These are the events that a client must not miss.
    #[inline]
    pub fn report_source(&self) -> Option<Source> {
        match self {
            EventKind::Order(order) => Some(order.source),
            EventKind::Status(report) => Some(report.source),
            EventKind::Refused(refusal) => Some(refusal.source),
            EventKind::SpecialTerms(terms) => Some(terms.source),
            EventKind::Forgotten { .. }
            | EventKind::Booked(_)
            | EventKind::Adjusted { .. }
            | EventKind::Tick(_)
            | EventKind::Depth(_)
            | EventKind::Subscription { .. }
            | EventKind::Session { .. }
            | EventKind::Halt { .. }
            | EventKind::TradingDay { .. }
            | EventKind::Phase { .. }
            | EventKind::Adapter { .. }
            | EventKind::Limits { .. }
            | EventKind::Restrict { .. }
            | EventKind::Kill { .. }
            | EventKind::Alert { .. }
            | EventKind::ToVenue(_)
            | EventKind::Budget(_)
            | EventKind::Exposure { .. }
            | EventKind::Done { .. }
            | EventKind::SnapshotBegin { .. }
            | EventKind::SnapshotEnd { .. }
            | EventKind::UsedIds(_)
            | EventKind::Directed { .. }
            | EventKind::Sender { .. }
            | EventKind::Sent { .. }
            | EventKind::Levels(_)
            | EventKind::BookOrders(_)
            | EventKind::MarketTrade(_) => None,
        }
    }

    /// Returns whether the event only gives the current state of an order.
    pub fn is_order_snapshot(&self) -> bool {
        if let EventKind::Order(order) = self {
            return order.what == ExecType::Snapshot;
        }
        if let EventKind::SpecialTerms(terms) = self {
            return terms.is_snapshot;
        }
        matches!(self, EventKind::Status(report) if report.what == ExecType::Snapshot)
    }

    /// Returns the new order that the event answers: it was entered or rejected.
    pub fn answered_order(&self) -> Option<&OrderTerms> {
        let EventKind::Order(order) = self else { return None };
        matches!(order.what, ExecType::Entered | ExecType::Rejected).then_some(order)
    }

    /// Returns the request about an order that the event answers: the order and the id of the
    /// request.
    pub fn answered_request(&self) -> Option<(OrderHandle, IntId)> {
        if let EventKind::Refused(refusal) = self {
            return Some((refusal.order, refusal.request_id));
        }
        let EventKind::Status(report) = self else { return None };
        report.what.answers_request().then_some((report.order, report.id))
    }
}

impl ExecType {
    /// Returns whether a report with this cause answers a request about its order.
    pub fn answers_request(self) -> bool {
        match self {
            ExecType::CancelPending | ExecType::Canceled | ExecType::ReplacePending | ExecType::Replaced => {
                true
            }
            ExecType::Entered
            | ExecType::Rejected
            | ExecType::Accepted
            | ExecType::Filled
            | ExecType::Expired
            | ExecType::Triggered
            | ExecType::Corrected
            | ExecType::Snapshot => false,
        }
    }

    /// Returns the request that a report with this cause says is pending.
    #[inline]
    pub fn pending_request(self) -> Option<RequestKind> {
        match self {
            ExecType::CancelPending => Some(RequestKind::Cancel),
            ExecType::ReplacePending => Some(RequestKind::Replace),
            ExecType::Entered
            | ExecType::Rejected
            | ExecType::Accepted
            | ExecType::Filled
            | ExecType::Canceled
            | ExecType::Expired
            | ExecType::Replaced
            | ExecType::Triggered
            | ExecType::Corrected
            | ExecType::Snapshot => None,
        }
    }
}
