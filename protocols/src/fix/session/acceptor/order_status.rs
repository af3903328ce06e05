//! Order Status Request (H) and Order Mass Status Request (AF): reports of the session's own
//! orders. Don't Know Trade (Q): a trade that the client does not recognise.

use pitlane_engine::desk::Desk;
use pitlane_engine::id::{IntId, SecurityId};
use pitlane_engine::index::index_u32;
use pitlane_engine::terms::Side;
use pitlane_engine::time::Timestamp;

use super::Acceptor;
use crate::codes::Code;
use crate::fix::fields::{FieldFault, FixMessage, SessionRejectReason};
use crate::fix::msg_type;
use crate::fix::order::OrderFields;
use crate::fix::orders::{ClientOrder, OrderKey};
use crate::fix::report::{self, ExecutionReport};
use crate::fix::resolve;
use crate::fix::session::layer::{SessionLayer, route};
use crate::fix::tag::{self, prefix};

/// MassStatusReqType (585).
const FOR_SECURITY: &[u8] = b"1";
const FOR_ALL: &[u8] = b"7";

/// BusinessRejectReason (380).
const OTHER: u8 = 0;
const UNKNOWN_SECURITY: u8 = 2;

/// Status reports of many orders, while they are being sent.
#[derive(Debug)]
pub(super) struct StatusReports {
    /// MassStatusReqID (584) of the request that they answer; none after a reset.
    request: Option<IntId>,
    /// The orders that were open at the beginning.
    orders: Vec<OrderKey>,
    next: usize,
}

/// A trade that the client does not recognise, by Don't Know Trade (Q). No booking changes: the
/// caller tells the operator.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DontKnowTrade {
    /// OrderID (37), ExecID (17), DKReason (127) and Text (58), as far as they are printable.
    pub order_id: String,
    pub exec_id: String,
    pub reason: String,
    pub text: String,
}

/// Characters of each field of a Don't Know Trade that are kept.
const DONT_KNOW_CHARS_MAX: usize = 64;

impl Acceptor {
    /// Keeps a Don't Know Trade (Q) for the caller. The last one counts if several come at once.
    pub(super) fn handle_dont_know_trade(
        &mut self,
        layer: &mut SessionLayer,
        now: Timestamp,
        message: &FixMessage,
        number: u64,
    ) {
        let needed = [tag::ORDER_ID, tag::EXEC_ID, tag::DK_REASON];
        if needed.iter().any(|&tag| message.get(tag).is_none()) {
            return layer.refuse_incomplete(now, message, number);
        }
        let field = |tag: u32| {
            let value = String::from_utf8_lossy(message.get(tag).unwrap_or_default());
            let printable = value.chars().filter(|letter| !letter.is_control());
            printable.take(DONT_KNOW_CHARS_MAX).collect::<String>()
        };
        self.dont_know = Some(Box::new(DontKnowTrade {
            order_id: field(tag::ORDER_ID),
            exec_id: field(tag::EXEC_ID),
            reason: field(tag::DK_REASON),
            text: field(tag::TEXT),
        }));
    }

    pub(in crate::fix::session) fn take_dont_know_trade(&mut self) -> Option<Box<DontKnowTrade>> {
        self.dont_know.take()
    }

    /// Answers Order Status Request (H), which names an order by ClOrdID (11) or OrderID (37).
    pub(super) fn handle_status_request(
        &mut self,
        layer: &mut SessionLayer,
        now: Timestamp,
        message: &FixMessage,
        number: u64,
        desk: &Desk,
    ) {
        let ids = id_field(message, tag::ORDER_ID)
            .and_then(|order_id| Ok((order_id, id_field(message, tag::ORD_STATUS_REQ_ID)?)));
        let fields = OrderFields::read(message);
        let ((order_id, request_id), order) = match (ids, fields) {
            (Ok(ids), Ok(order)) => (ids, order),
            (Err(fault), _) | (_, Err(fault)) => return layer.reject(now, message, number, fault),
        };
        let Some(id) = order.cl_ord_id.or(order_id) else {
            return layer.refuse_incomplete(now, message, number);
        };
        let known = desk.order(layer.settings.source.session, &id).map(OrderKey::from);
        let known = known.and_then(|key| self.orders.get(&key).copied());
        let exec_id = self.exec_id(layer, now);
        let profile = layer.settings.profile;
        _ = layer.send_app(now, msg_type::EXECUTION_REPORT, |draft| {
            route(draft, message);
            match known {
                Some(known) => {
                    let report = ExecutionReport::of_order(&known, exec_id);
                    report::execution(draft, profile, &self.reference, &known.root, &known.terms, &report);
                    if let Some(special) = self.orders.special(&known.root, &known.terms) {
                        report::special_terms(draft, &special);
                    }
                }
                None => report::unknown_order(draft, profile, exec_id, now, Some(&id), &order),
            }
            if let Some(request_id) = &request_id {
                draft.id(prefix::ORD_STATUS_REQ_ID, request_id);
            }
        });
    }

    /// Handles Order Mass Status Request (AF). Its reports follow in steps, as the connection has
    /// room, and nothing is read until they are written.
    pub(super) fn handle_mass_status_request(
        &mut self,
        layer: &mut SessionLayer,
        now: Timestamp,
        message: &FixMessage,
        number: u64,
    ) {
        let (id, order) = match (id_field(message, tag::MASS_STATUS_REQ_ID), OrderFields::read(message)) {
            (Ok(id), Ok(order)) => (id, order),
            (Err(fault), _) | (_, Err(fault)) => return layer.reject(now, message, number, fault),
        };
        let (Some(id), Some(request_type)) = (id, message.get(tag::MASS_STATUS_REQ_TYPE)) else {
            return layer.refuse_incomplete(now, message, number);
        };
        let security = match request_type {
            FOR_ALL => None,
            FOR_SECURITY => match resolve::security(&self.reference, &order) {
                Ok(security) => Some(security.id),
                Err(reason) => {
                    let why = Some(reason.into());
                    return layer.business_reject(now, message, number, UNKNOWN_SECURITY, why, "");
                }
            },
            _ => {
                let words = "MassStatusReqType (585) must be 1 or 7";
                return layer.business_reject(now, message, number, OTHER, None, words);
            }
        };
        let side = order.side.and_then(Side::from_code);
        let orders = self.open_orders(security, side);
        if orders.is_empty() {
            let (exec_id, profile) = (self.exec_id(layer, now), layer.settings.profile);
            _ = layer.send_app(now, msg_type::EXECUTION_REPORT, |draft| {
                route(draft, message);
                report::unknown_order(draft, profile, exec_id, now, None, &order);
                draft.id(prefix::MASS_STATUS_REQ_ID, &id);
                draft.number(prefix::TOT_NUM_REPORTS, 0);
                draft.code(prefix::LAST_RPT_REQUESTED, b'Y');
            });
            return;
        }
        self.status_reports = Some(StatusReports { request: Some(id), orders, next: 0 });
    }

    /// Reports all open orders after a reset, because the client has forgotten earlier reports.
    pub(super) fn begin_status_reports(&mut self) {
        let orders = self.open_orders(None, None);
        self.status_reports = Some(StatusReports { request: None, orders, next: 0 });
    }

    /// Sends the status reports as far as there is room.
    pub(super) fn continue_status_reports(&mut self, layer: &mut SessionLayer, now: Timestamp) {
        while let Some(reports) = &mut self.status_reports {
            if !layer.is_logged_on() || !layer.stream.has_room() || layer.is_resending() {
                return;
            }
            let Some(key) = reports.orders.get(reports.next).copied() else {
                self.status_reports = None;
                return;
            };
            reports.next += 1;
            let (request, total) = (reports.request, reports.orders.len());
            let later = &reports.orders[reports.next..];
            // An order that ended since is reported to a client that asks, unless it is forgotten.
            let is_wanted = |order: &ClientOrder| request.is_some() || !order.status.is_finished();
            let Some(order) = self.orders.get(&key).copied().filter(is_wanted) else { continue };
            let is_last = !later.iter().any(|key| self.orders.get(key).is_some());
            let report = ExecutionReport::of_order(&order, self.exec_id(layer, now));
            let profile = layer.settings.profile;
            _ = layer.send_app(now, msg_type::EXECUTION_REPORT, |draft| {
                report::execution(draft, profile, &self.reference, &order.root, &order.terms, &report);
                if let Some(special) = self.orders.special(&order.root, &order.terms) {
                    report::special_terms(draft, &special);
                }
                if let Some(id) = &request {
                    draft.id(prefix::MASS_STATUS_REQ_ID, id);
                    draft.number(prefix::TOT_NUM_REPORTS, total as u64);
                    draft.code(prefix::LAST_RPT_REQUESTED, if is_last { b'Y' } else { b'N' });
                }
            });
        }
    }

    /// Returns the session's open orders in a security and of a side, where these are given.
    fn open_orders(&self, security: Option<SecurityId>, side: Option<Side>) -> Vec<OrderKey> {
        let is_wanted = |order: &ClientOrder| {
            !order.status.is_finished()
                && security.is_none_or(|security| order.terms.security == security)
                && side.is_none_or(|side| order.terms.side == side)
        };
        let places = 0..index_u32(self.orders.places());
        let key_at = |place: u32| {
            let order = self.orders.at(place as usize).filter(|order| is_wanted(order))?;
            Some(OrderKey { root: order.root, place })
        };
        places.filter_map(key_at).collect()
    }
}

/// Returns the id in a field, if the field is there.
pub(super) fn id_field(message: &FixMessage, tag: u32) -> Result<Option<IntId>, FieldFault> {
    let Some((at, value)) = message.find(tag) else { return Ok(None) };
    let fault = FieldFault { reason: SessionRejectReason::ValueIncorrect, tag, at };
    IntId::parse(value).map(Some).map_err(|_| fault)
}
