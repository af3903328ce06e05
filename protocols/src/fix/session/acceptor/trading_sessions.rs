//! Status of the exchanges' trading sessions: Trading Session Status Request (g) and its answers
//! (h), at once and at every change while it is subscribed.
//!
//! The answers are not stored: a client that was away asks again and gets the current status.
//!
//! Rules: docs/fix-rules.md#trading-sessions.

use std::collections::{BTreeMap, BTreeSet};

use pitlane_engine::command::TradingSession;
use pitlane_engine::id::ExchangeId;
use pitlane_engine::refdata::{Exchange, RefData};
use pitlane_engine::time::Timestamp;

use super::Acceptor;
use super::reference_data::request_id;
use crate::fix::encode::Draft;
use crate::fix::fields::FixMessage;
use crate::fix::msg_type;
use crate::fix::report;
use crate::fix::session::layer::{SessionLayer, route};
use crate::fix::tag::{self, prefix};

/// Subscriptions of one session. One suffices for all exchanges.
const STATUS_SUBSCRIPTIONS_MAX: usize = 16;

/// SubscriptionRequestType (263).
const SNAPSHOT: &[u8] = b"0";
const SUBSCRIBE: &[u8] = b"1";
const UNSUBSCRIBE: &[u8] = b"2";

/// TradSesStatus (340).
const OPEN: u8 = b'2';
const CLOSED: u8 = b'3';
const PRE_OPEN: u8 = b'4';
const PRE_CLOSE: u8 = b'5';
const REQUEST_REJECTED: u8 = b'6';

/// TradSesStatusRejReason (567).
const UNKNOWN_TRADING_SESSION: u64 = 1;
const OTHER: u64 = 99;

#[derive(Debug, Default)]
pub(super) struct TradingSessions {
    /// As the shards report it. An exchange without an entry trades continuously.
    states: BTreeMap<ExchangeId, TradingSession>,
    subscriptions: Vec<StatusSubscription>,
    /// Exchanges with a change that is not sent yet.
    changed: BTreeSet<ExchangeId>,
}

#[derive(Debug)]
struct StatusSubscription {
    /// TradSesReqID (335).
    id: Box<[u8]>,
    /// `None`: all exchanges.
    exchange: Option<ExchangeId>,
}

impl StatusSubscription {
    fn has(&self, exchange: ExchangeId) -> bool {
        self.exchange.is_none_or(|only| only == exchange)
    }
}

impl Acceptor {
    /// Handles Trading Session Status Request (g).
    pub(super) fn handle_trading_session_request(
        &mut self,
        layer: &mut SessionLayer,
        now: Timestamp,
        message: &FixMessage,
        number: u64,
    ) {
        let Some(id) = request_id(layer, now, message, number, tag::TRAD_SES_REQ_ID) else { return };
        let Some(kind) = message.get(tag::SUBSCRIPTION_REQUEST_TYPE) else {
            return layer.refuse_missing(now, message, number, tag::SUBSCRIPTION_REQUEST_TYPE);
        };
        let exchange = match message.get(tag::TRADING_SESSION_ID) {
            Some(named) => match exchange_of(&self.reference, named) {
                Some(exchange) => Some(exchange.id),
                None => {
                    let words = "Unknown TradingSessionID (336)";
                    return refuse(layer, now, message, number, UNKNOWN_TRADING_SESSION, words);
                }
            },
            None => None,
        };
        let refused = match kind {
            SNAPSHOT => None,
            SUBSCRIBE => self.trading_sessions.subscribe(id, exchange).err(),
            UNSUBSCRIBE => match self.trading_sessions.unsubscribe(id) {
                true => return,
                false => Some("Unknown TradSesReqID (335)"),
            },
            _ => Some("SubscriptionRequestType (263) must be 0, 1 or 2"),
        };
        if let Some(words) = refused {
            return refuse(layer, now, message, number, OTHER, words);
        }
        let is_meant = |row: &&Exchange| exchange.is_none_or(|only| only == row.id);
        for row in self.reference.exchanges().iter().filter(is_meant) {
            let state = self.trading_sessions.state(row.id);
            layer.send_admin(now, msg_type::TRADING_SESSION_STATUS, |draft| {
                route(draft, message);
                status(draft, id, row, state, b'N');
            });
        }
    }

    /// Takes the trading session of an exchange.
    pub(in crate::fix::session) fn handle_trading_session(
        &mut self,
        exchange: ExchangeId,
        state: TradingSession,
    ) {
        let sessions = &mut self.trading_sessions;
        let is_new = sessions.states.insert(exchange, state) != Some(state);
        if is_new && sessions.subscriptions.iter().any(|subscription| subscription.has(exchange)) {
            sessions.changed.insert(exchange);
        }
    }

    /// Sends the changes of subscribed exchanges, while there is room. Of several changes that
    /// waited the client gets the last.
    #[inline]
    pub(super) fn continue_trading_sessions(&mut self, layer: &mut SessionLayer, now: Timestamp) {
        if !self.trading_sessions.changed.is_empty() {
            self.send_trading_sessions(layer, now);
        }
    }

    fn send_trading_sessions(&mut self, layer: &mut SessionLayer, now: Timestamp) {
        let sessions = &mut self.trading_sessions;
        while layer.is_logged_on()
            && layer.stream.has_room()
            && !layer.is_resending()
            && let Some(exchange) = sessions.changed.pop_first()
        {
            let Some(row) = self.reference.exchange(exchange) else { continue };
            let state = sessions.state(exchange);
            for subscription in sessions.subscriptions.iter().filter(|known| known.has(exchange)) {
                layer.send_admin(now, msg_type::TRADING_SESSION_STATUS, |draft| {
                    status(draft, &subscription.id, row, state, b'Y');
                });
            }
        }
    }

    /// Ends all subscriptions with the connection.
    pub(super) fn end_trading_sessions(&mut self) {
        self.trading_sessions.subscriptions.clear();
        self.trading_sessions.changed.clear();
    }
}

impl TradingSessions {
    fn state(&self, exchange: ExchangeId) -> TradingSession {
        self.states.get(&exchange).copied().unwrap_or_default()
    }

    fn subscribe(&mut self, id: &[u8], exchange: Option<ExchangeId>) -> Result<(), &'static str> {
        if self.subscriptions.iter().any(|known| *known.id == *id) {
            return Err("TradSesReqID (335) is in use");
        }
        if self.subscriptions.len() == STATUS_SUBSCRIPTIONS_MAX {
            return Err("The session has 16 subscriptions of trading sessions");
        }
        self.subscriptions.push(StatusSubscription { id: id.into(), exchange });
        Ok(())
    }

    /// Returns whether there was such a subscription.
    fn unsubscribe(&mut self, id: &[u8]) -> bool {
        let before = self.subscriptions.len();
        self.subscriptions.retain(|known| *known.id != *id);
        self.subscriptions.len() < before
    }
}

/// Returns the exchange of a TradingSessionID (336): its market identifier or its name.
fn exchange_of<'a>(reference: &'a RefData, named: &[u8]) -> Option<&'a Exchange> {
    let is_named = |row: &&Exchange| row.mic.as_bytes() == named || row.name.as_bytes() == named;
    reference.exchanges().iter().find(is_named)
}

/// Writes Trading Session Status (h).
fn status(draft: &mut Draft, id: &[u8], exchange: &Exchange, state: TradingSession, unsolicited: u8) {
    let status = match state {
        TradingSession::Closed => CLOSED,
        TradingSession::OpeningAuction => PRE_OPEN,
        TradingSession::Continuous => OPEN,
        TradingSession::ClosingAuction => PRE_CLOSE,
    };
    draft.text(prefix::TRAD_SES_REQ_ID, id);
    draft.text(prefix::TRADING_SESSION_ID, exchange.mic.as_bytes());
    draft.code(prefix::UNSOLICITED_INDICATOR, unsolicited);
    draft.code(prefix::TRAD_SES_STATUS, status);
}

/// Refuses a request: by h, or in FIX 4.2, whose h cannot say so, by Business Message Reject.
fn refuse(
    layer: &mut SessionLayer,
    now: Timestamp,
    message: &FixMessage,
    number: u64,
    reason: u64,
    words: &str,
) {
    if !layer.settings.version.rejects_by_trading_session_status() {
        return layer.business_reject(now, message, number, 0, None, words);
    }
    let named = |tag: u32| report::echo(message.get(tag));
    layer.send_admin(now, msg_type::TRADING_SESSION_STATUS, |draft| {
        route(draft, message);
        draft.text(prefix::TRAD_SES_REQ_ID, named(tag::TRAD_SES_REQ_ID));
        draft.text(prefix::TRADING_SESSION_ID, named(tag::TRADING_SESSION_ID));
        draft.code(prefix::UNSOLICITED_INDICATOR, b'N');
        draft.code(prefix::TRAD_SES_STATUS, REQUEST_REJECTED);
        draft.number(prefix::TRAD_SES_STATUS_REJ_REASON, reason);
        draft.text(prefix::TEXT, words.as_bytes());
    });
}
