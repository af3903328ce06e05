//! Request For Positions (AN). The caller finds the positions; their reports (AP) follow as the
//! connection has room. They are not stored: a client that misses them asks again.
//!
//! ```text
//! AN ─► PositionQuery ─► caller ─ PositionRow ─► AP for each, or AO without any
//! ```
//!
//! Rules: docs/fix-rules.md#positions.

use std::sync::Arc;

use pitlane_engine::time::{NS_PER_S, Timestamp};

use super::Acceptor;
use super::reference_data::request_id;
use crate::fix::fields::FixMessage;
use crate::fix::msg_type;
use crate::fix::order::OrderFields;
use crate::fix::positions::{self, PosReqResult, PositionQuery, PositionReportHead, PositionRow};
use crate::fix::report;
use crate::fix::resolve;
use crate::fix::session::layer::{SessionLayer, route};
use crate::fix::tag;

/// Time after which a query without an answer no longer blocks the next one. The caller answers
/// within milliseconds; it may lose a query only if thousands of its messages wait.
const UNANSWERED_NS_MAX: u64 = 10 * NS_PER_S;

/// PosReqType (724): positions.
const POSITIONS: &[u8] = b"0";

/// AccountType (581) of a request that has none: a customer's.
const CUSTOMER: u8 = b'1';

/// SubscriptionRequestType (263): a snapshot only.
const SNAPSHOT: &[u8] = b"0";

/// A request whose reports are not all sent.
#[derive(Debug)]
pub(super) struct PositionRequest {
    id: Box<[u8]>,
    account: Box<[u8]>,
    account_type: u8,
    query: PositionQuery,
    asked_at: Timestamp,
    /// `None` until the caller answers.
    rows: Option<Arc<[PositionRow]>>,
    next: usize,
}

impl PositionRequest {
    fn head(&self) -> PositionReportHead<'_> {
        PositionReportHead {
            id: &self.id,
            account: &self.account,
            account_type: self.account_type,
            total: self.rows.as_ref().map_or(0, |rows| rows.len() as u64),
        }
    }
}

impl Acceptor {
    /// Handles Request For Positions (AN).
    pub(super) fn handle_position_request(
        &mut self,
        layer: &mut SessionLayer,
        now: Timestamp,
        message: &FixMessage,
        number: u64,
    ) {
        let Some(id) = request_id(layer, now, message, number, tag::POS_REQ_ID) else { return };
        let order = match OrderFields::read(message) {
            Ok(order) => order,
            Err(fault) => return layer.reject(now, message, number, fault),
        };
        let account_type = match message.get(tag::ACCOUNT_TYPE) {
            Some([code]) => *code,
            _ => CUSTOMER,
        };
        let account = report::echo(message.get(tag::ACCOUNT));
        match self.position_query(layer, now, message, &order) {
            Ok(query) => {
                self.position_query = Some(query);
                self.position_request = Some(Box::new(PositionRequest {
                    id: id.into(),
                    account: account.into(),
                    account_type,
                    query,
                    asked_at: now,
                    rows: None,
                    next: 0,
                }));
            }
            Err((result, words)) => {
                let head = PositionReportHead { id, account, account_type, total: 0 };
                layer.send_admin(now, msg_type::REQUEST_FOR_POSITIONS_ACK, |draft| {
                    route(draft, message);
                    positions::acknowledgement(draft, &head, result, words);
                });
            }
        }
    }

    /// Returns which positions a request means, or why it is refused.
    fn position_query(
        &mut self,
        layer: &SessionLayer,
        now: Timestamp,
        message: &FixMessage,
        order: &OrderFields,
    ) -> Result<PositionQuery, (PosReqResult, &'static str)> {
        if !layer.settings.may_see_positions {
            return Err((PosReqResult::NotAuthorized, "The session is for market data"));
        }
        let is_pending = |request: &PositionRequest| now < request.asked_at.plus(UNANSWERED_NS_MAX);
        if self.position_request.as_deref().is_some_and(is_pending) {
            return Err((PosReqResult::Other, "The request before is not answered yet"));
        }
        if message.get(tag::POS_REQ_TYPE).is_some_and(|kind| kind != POSITIONS) {
            return Err((PosReqResult::NotSupported, "PosReqType (724) must be 0"));
        }
        if message.get(tag::SUBSCRIPTION_REQUEST_TYPE).is_some_and(|kind| kind != SNAPSHOT) {
            return Err((PosReqResult::NotSupported, "SubscriptionRequestType (263) must be 0"));
        }
        let none = |words| (PosReqResult::NoneFound, words);
        if let Some(named) = order.account {
            resolve::named_account(&self.reference, named).ok_or(none("Unknown account"))?;
        }
        let security = match order.symbol.is_some() || order.security_id.is_some() {
            true => {
                let found = resolve::security(&self.reference, order);
                Some(found.map_err(|_| none("Unknown security"))?.id)
            }
            false => None,
        };
        let strategy = match order.strategy_id.is_some() || order.strategy_name.is_some() {
            true => {
                let found = resolve::strategy(&self.reference, order, layer.settings.strategy);
                Some(found.map_err(|_| none("Unknown strategy"))?)
            }
            false => None,
        };
        self.token = self.token.wrapping_add(1);
        Ok(PositionQuery { token: self.token, security, strategy })
    }

    pub(in crate::fix::session) fn poll_position_query(&mut self) -> Option<PositionQuery> {
        self.position_query.take()
    }

    /// Takes the answer to a query. The answer to an earlier one has no effect.
    pub(in crate::fix::session) fn handle_positions(&mut self, token: u32, rows: Arc<[PositionRow]>) {
        if let Some(request) = &mut self.position_request
            && request.query.token == token
        {
            request.rows = Some(rows);
        }
    }

    /// Returns whether reports are left to send.
    fn is_sending_positions(&self, layer: &SessionLayer) -> bool {
        self.position_request.as_ref().is_some_and(|request| request.rows.is_some()) && layer.is_logged_on()
    }

    /// Sends the next reports, while there is room.
    #[inline]
    pub(super) fn continue_positions(&mut self, layer: &mut SessionLayer, now: Timestamp) {
        while self.is_sending_positions(layer) && layer.stream.has_room() && !layer.is_resending() {
            self.send_position(layer, now);
        }
    }

    fn send_position(&mut self, layer: &mut SessionLayer, now: Timestamp) {
        let Some(request) = &mut self.position_request else { return };
        let at = request.next;
        request.next += 1;
        let rows = request.rows.as_deref().unwrap_or_default();
        let head = request.head();
        if let Some(row) = rows.get(at) {
            layer.send_admin(now, msg_type::POSITION_REPORT, |draft| {
                positions::report(draft, &self.reference, now, &head, at as u64 + 1, row);
            });
        } else if rows.is_empty() {
            layer.send_admin(now, msg_type::REQUEST_FOR_POSITIONS_ACK, |draft| {
                positions::acknowledgement(draft, &head, PosReqResult::NoneFound, "There is no position");
            });
        }
        if at + 1 >= rows.len() {
            self.position_request = None;
        }
    }

    /// Ends the request with the connection.
    pub(super) fn end_positions(&mut self) {
        (self.position_request, self.position_query) = (None, None);
    }
}
