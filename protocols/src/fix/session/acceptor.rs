//! The role of a session whose client connects to us: the client's requests, its orders, and the
//! reports about them.
//!
//! ```text
//! Logon ─► logon
//! New Order Single, cancel, replacement ─► requests ─► ClientRequest ─► Desk
//! Market Data Request ─► market_data ─► MarketInterest; MarketImage ─► market_data ─► W, X
//! mass cancel ─► mass_cancel ─► ClientRequest; status requests ─► order_status ─► Execution Report
//! g ─► trading_sessions ─► h; AN ─► positions ─► PositionQuery; PositionRow ─► positions ─► AP
//!                                   Event, refusal ─► reports ─► Execution Report, Cancel Reject
//!                         report of another session ─► drop_copy ─► Execution Report with 797=Y
//! ```
//!
//! Rules: docs/fix-rules.md#acceptor.

mod coming_id;
mod drop_copy;
mod logon;
mod market_data;
mod mass_cancel;
mod order_status;
mod positions;
mod reference_data;
mod reports;
mod requests;
mod trading_sessions;

use std::collections::BTreeSet;
use std::sync::Arc;

use pitlane_engine::desk::Desk;
use pitlane_engine::id::IntId;
use pitlane_engine::reason::Reason;
use pitlane_engine::refdata::RefData;
use pitlane_engine::terms::ReportedTerms;
use pitlane_engine::time::Timestamp;

use self::coming_id::ComingId;
pub use self::logon::{LoginState, LogonCredentials};
pub use self::market_data::MarketInterest;
use self::market_data::MarketSubscriptions;
use self::mass_cancel::MassCancel;
pub use self::order_status::DontKnowTrade;
use self::order_status::StatusReports;
use self::positions::PositionRequest;
use self::reference_data::SecurityList;
use self::trading_sessions::TradingSessions;
use super::layer::{SessionLayer, SessionNotice, SessionRole};
use super::settings::FixSessionSettings;
use super::state::FixSessionState;
use crate::fix::dictionary;
use crate::fix::entry::ClientRequest;
use crate::fix::fields::{FieldFault, FixMessage, SessionRejectReason};
use crate::fix::msg_type;
use crate::fix::orders::ClientOrders;
use crate::fix::positions::PositionQuery;
use crate::fix::rate_limit::RateLimit;
use crate::fix::reject::OrderRejectReason;
use crate::fix::tag;
use crate::fix::terms_text::TermsText;

#[derive(Debug)]
pub(super) struct Acceptor {
    reference: Arc<RefData>,
    /// Whether the service accepts orders now.
    is_ready: bool,
    login: LoginState,
    coming: ComingId,
    /// Request for the caller. The session reads nothing more until the caller takes it.
    pending_request: Option<ClientRequest>,
    orders: ClientOrders,
    special: ReportedTerms,
    terms_text: TermsText,
    rate_limit: RateLimit,
    /// Token of the last request about an order.
    token: u32,
    /// Number of the last ExecID made by this session.
    last_exec: u64,
    status_reports: Option<StatusReports>,
    mass_cancel: Option<MassCancel>,
    /// Trade that the client does not know, until the caller takes it.
    dont_know: Option<Box<DontKnowTrade>>,
    market: MarketSubscriptions,
    security_list: Option<SecurityList>,
    trading_sessions: TradingSessions,
    position_request: Option<Box<PositionRequest>>,
    /// Query for the caller.
    position_query: Option<PositionQuery>,
    /// Time at which orders are cancelled because the client is disconnected.
    cancel_at: Option<Timestamp>,
    /// Next index of the cancels after a disconnect, while they are being sent.
    cancel_index: Option<usize>,
}

impl Acceptor {
    pub(super) fn new(layer: &mut SessionLayer, reference: Arc<RefData>) -> Acceptor {
        let settings = &layer.settings;
        let acceptor = Acceptor {
            reference,
            is_ready: true,
            login: LoginState::NotAsked,
            coming: ComingId::default(),
            pending_request: None,
            orders: ClientOrders::new(settings.orders_max, settings.finished_max, id_seed(settings)),
            special: ReportedTerms::default(),
            terms_text: TermsText::default(),
            rate_limit: RateLimit::new(&settings.rate_limit),
            token: 0,
            last_exec: 0,
            status_reports: None,
            mass_cancel: None,
            dont_know: None,
            market: MarketSubscriptions::default(),
            security_list: None,
            trading_sessions: TradingSessions::default(),
            position_request: None,
            position_query: None,
            cancel_at: None,
            cancel_index: None,
        };
        load_answered_ids(layer);
        acceptor
    }

    pub(super) fn set_ready(&mut self, is_ready: bool) {
        self.is_ready = is_ready;
    }

    pub(super) fn set_reference(&mut self, reference: Arc<RefData>) {
        self.terms_text.clear();
        self.reference = reference;
    }

    pub(super) fn handle_connect(&mut self) {
        self.login = LoginState::NotAsked;
    }

    /// Ends the connection. Orders stay, unless the client was logged on and does not return within
    /// the grace time of the settings.
    pub(super) fn handle_disconnect(
        &mut self,
        settings: &FixSessionSettings,
        now: Timestamp,
        was_logged_on: bool,
    ) {
        self.status_reports = None;
        self.security_list = None;
        self.end_market_data();
        self.end_trading_sessions();
        self.end_positions();
        if was_logged_on {
            self.cancel_at = settings.cancel_on_disconnect_ns.map(|grace| now.plus(grace));
        }
    }

    /// Returns when the orders are cancelled, if the client does not log on before.
    pub(super) fn poll_timeout(&self, state: FixSessionState) -> Option<Timestamp> {
        let is_gone = matches!(state, FixSessionState::Disconnected | FixSessionState::AwaitingLogon);
        self.cancel_at.filter(|_| is_gone)
    }

    pub(super) fn handle_timeout(&mut self, state: FixSessionState, now: Timestamp) {
        if self.poll_timeout(state).is_some_and(|at| at <= now) {
            self.cancel_at = None;
            self.cancel_index = Some(0);
        }
    }

    /// Handles received messages up to the next request, and returns that request.
    pub(super) fn poll_command(
        &mut self,
        layer: &mut SessionLayer,
        now: Timestamp,
        desk: &Desk,
    ) -> Option<ClientRequest> {
        loop {
            self.queue_next_cancel(layer, desk);
            if let Some(request) = self.pending_request.take() {
                return Some(request);
            }
            layer.continue_resend(now);
            self.continue_status_reports(layer, now);
            self.continue_security_list(layer, now);
            self.continue_positions(layer, now);
            self.continue_market_data(layer, now);
            self.continue_trading_sessions(layer, now);
            layer.request_gap(now);
            // Answers in parts are complete here, or have left no room to read.
            let is_asked = self.login == LoginState::Asked;
            let mut reader = AcceptorReader { acceptor: self, desk };
            if is_asked || !layer.may_read() || !layer.read_one(now, &mut reader) {
                layer.save_sequence_numbers();
                return None;
            }
        }
    }

    /// Handles the message with the expected number. The number of a request is saved when the
    /// request is answered.
    fn handle_expected(
        &mut self,
        layer: &mut SessionLayer,
        now: Timestamp,
        message: &FixMessage,
        number: u64,
        desk: &Desk,
    ) {
        if !message.header.poss_dup {
            layer.sequence.in_flight.clear_answered();
        }
        let is_request = matches!(
            message.type_code(),
            msg_type::NEW_ORDER_SINGLE
                | msg_type::ORDER_CANCEL_REQUEST
                | msg_type::ORDER_CANCEL_REPLACE_REQUEST
                | msg_type::ORDER_MASS_CANCEL_REQUEST
        );
        if is_request {
            layer.sequence.in_flight.begin(number);
        }
        layer.sequence.consume_if_expected(number);
        match layer.first_fault(message) {
            Some(fault) => layer.reject(now, message, number, fault),
            None => self.dispatch(layer, now, message, number, desk),
        }
        if is_request {
            let id = self.pending_request.as_ref().map(|request| request.ticket().id);
            layer.sequence.in_flight.assign(id);
        }
    }

    fn dispatch(
        &mut self,
        layer: &mut SessionLayer,
        now: Timestamp,
        message: &FixMessage,
        number: u64,
        desk: &Desk,
    ) {
        match message.type_code() {
            _ if !layer.settings.takes(message.msg_type) => self.refuse_type(layer, now, message, number),
            msg_type::HEARTBEAT | msg_type::REJECT | msg_type::BUSINESS_MESSAGE_REJECT => {}
            msg_type::TEST_REQUEST => layer.handle_test_request(now, message, number),
            msg_type::RESEND_REQUEST => _ = layer.handle_resend_request(now, message, number),
            msg_type::NEW_ORDER_SINGLE
            | msg_type::ORDER_CANCEL_REQUEST
            | msg_type::ORDER_CANCEL_REPLACE_REQUEST
            | msg_type::ORDER_MASS_CANCEL_REQUEST => {
                self.handle_order_message(layer, now, message, number, desk)
            }
            _ if is_query(message) && !self.rate_limit.admits_query(now) => {
                let why = Some(OrderRejectReason::Platform(Reason::OrderRate));
                layer.business_reject(now, message, number, 0, why, "");
            }
            msg_type::ORDER_STATUS_REQUEST => self.handle_status_request(layer, now, message, number, desk),
            msg_type::MARKET_DATA_REQUEST => self.handle_market_data_request(layer, now, message, number),
            msg_type::SECURITY_LIST_REQUEST => self.handle_security_list_request(layer, now, message, number),
            msg_type::SECURITY_DEFINITION_REQUEST => {
                self.handle_security_definition_request(layer, now, message, number)
            }
            msg_type::TRADING_SESSION_STATUS_REQUEST => {
                self.handle_trading_session_request(layer, now, message, number)
            }
            msg_type::DONT_KNOW_TRADE => self.handle_dont_know_trade(layer, now, message, number),
            _ if message.msg_type == msg_type::ORDER_MASS_STATUS_REQUEST => {
                self.handle_mass_status_request(layer, now, message, number)
            }
            _ if message.msg_type == msg_type::REQUEST_FOR_POSITIONS => {
                self.handle_position_request(layer, now, message, number)
            }
            _ => self.refuse_type(layer, now, message, number),
        }
    }

    /// Refuses a message of a type that the session does not take: by Reject if it validates and
    /// its version has no such type, otherwise by Business Message Reject.
    fn refuse_type(&self, layer: &mut SessionLayer, now: Timestamp, message: &FixMessage, number: u64) {
        let is_known = dictionary::is_msg_type(layer.settings.version, message.msg_type);
        if layer.settings.validate && !is_known {
            let reason = SessionRejectReason::InvalidMsgType;
            return layer.reject(now, message, number, FieldFault { reason, tag: 0, at: 0 });
        }
        layer.business_reject(now, message, number, 3, None, "Unsupported Message Type");
    }
}

/// An acceptor with the desk that knows the orders of its client, while messages are read.
struct AcceptorReader<'a> {
    acceptor: &'a mut Acceptor,
    desk: &'a Desk,
}

impl SessionRole for AcceptorReader<'_> {
    fn holds_first_message(&mut self, layer: &SessionLayer) -> bool {
        self.acceptor.is_waiting_for_login(layer)
    }

    fn handle_first_message(&mut self, layer: &mut SessionLayer, now: Timestamp, message: &FixMessage) {
        self.acceptor.handle_logon(layer, now, message);
    }

    /// Prefetches memory for the order that comes next. The next frame may turn out not to be an
    /// order.
    fn prefetch(&mut self, layer: &SessionLayer, coming: &[u8]) {
        if let Some(id) = self.acceptor.coming.read(coming) {
            self.desk.prefetch(layer.settings.source.session, &id);
        }
    }

    fn handle_expected(
        &mut self,
        layer: &mut SessionLayer,
        now: Timestamp,
        message: &FixMessage,
        number: u64,
    ) {
        self.acceptor.handle_expected(layer, now, message, number, self.desk);
    }

    /// Does nothing: the orders of a client do not depend on what happens to the numbers.
    fn handle_notice(&mut self, _notice: SessionNotice<'_>) {}
}

/// Returns whether a message asks for something or tells something, and changes no order.
fn is_query(message: &FixMessage) -> bool {
    matches!(
        message.type_code(),
        msg_type::ORDER_STATUS_REQUEST | msg_type::DONT_KNOW_TRADE | msg_type::TRADING_SESSION_STATUS_REQUEST
    ) || [msg_type::ORDER_MASS_STATUS_REQUEST, msg_type::REQUEST_FOR_POSITIONS].contains(&message.msg_type)
}

/// Returns the seed of ids that differ between the sessions of an installation.
fn id_seed(settings: &FixSessionSettings) -> u64 {
    settings.instance ^ (settings.source.session as u64) << 32
}

/// Loads the ids of all stored answers: after a restart the client resends some of the requests
/// that they answer.
fn load_answered_ids(layer: &mut SessionLayer) {
    let mut answered = BTreeSet::new();
    layer.sequence.for_each_message(|reported| {
        let id = if reported.type_code() == msg_type::BUSINESS_MESSAGE_REJECT {
            reported.get(tag::BUSINESS_REJECT_REF_ID)
        } else {
            reported.get(tag::CL_ORD_ID)
        };
        answered.extend(id.and_then(|id| IntId::parse(id).ok()));
    });
    layer.sequence.in_flight.set_answered(answered);
}

#[cfg(test)]
mod tests {
    use pitlane_engine::id::{Origin, PortId, Source};

    use super::*;

    #[test]
    fn sessions_and_installations_have_seeds_of_their_own() {
        let seed = |instance, session| {
            let source = Source { origin: Origin::Fix, port: PortId(0), session };
            id_seed(&FixSessionSettings { instance, ..FixSessionSettings::new("PITLANE", "CLIENT1", source) })
        };
        let seeds = BTreeSet::from([seed(0, 1), seed(0, 2), seed(7, 1), seed(1 << 32, 1)]);
        assert_eq!(seeds.len(), 4);
    }
}
