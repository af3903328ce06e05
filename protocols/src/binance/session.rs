//! The state of the adapter, and how it sends requests. [`super::logon`] has the phases of a
//! connection, and [`super::adapter`] the side of the gateway.

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

use pitlane_engine::command::VenueReport;
use pitlane_engine::id::{OrderHandle, SecurityId};
use pitlane_engine::refdata::RefData;
use pitlane_engine::time::{NS_PER_DAY, NS_PER_S, Timestamp};

use super::fees::FeeAssets;
use super::held::{ClientOrderIds, HeldOrders, TradeMark};
use super::limits::{RequestCost, VenueLimits};
use super::lookup::Lookups;
use super::market_stream::MarketStream;
use super::request::{self, Authority, RequestDraft};
use super::socket::VenueSocket;
use super::{BinanceSettings, Signer};
use crate::fix::schedule::SessionSchedule;
use crate::venue::{InboundReport, VenueCounts};

/// Requests without an answer. A venue that answers so late is disconnected before.
pub const REQUESTS_MAX: usize = 4_096;

/// Output above which no order is sent: the venue does not read.
const OUTPUT_BYTES_HIGH: usize = 256 * 1024;

/// Time beyond the receive window after which a request counts as lost. The venue itself gives up
/// after ten seconds.
pub(super) const ANSWER_NS_MAX: u64 = 12 * NS_PER_S;

/// Interval of the requests for the venue's time, which also show that the connection works.
pub(super) const TIME_INTERVAL_NS: u64 = 30 * NS_PER_S;

/// Age at which a connection is renewed. The venue ends it after 24 hours.
pub(super) const CONNECTION_NS_MAX: u64 = NS_PER_DAY - 600 * NS_PER_S;

/// Longest time between two attempts to connect.
const RECONNECT_S_MAX: u64 = 60;

/// Returns the time to the next attempt, which is longer after each failure.
pub(super) fn reconnect_delay_ns(reconnect_s: u64, failures: u32) -> u64 {
    reconnect_s.saturating_mul(1 << failures.min(6)).min(RECONNECT_S_MAX) * NS_PER_S
}

/// Weight of requests, by the venue's documentation.
pub(super) mod cost {
    use super::RequestCost;

    pub(in super::super) const TIME: RequestCost = RequestCost { weight: 1, orders: 0 };
    pub(in super::super) const LOGON: RequestCost = RequestCost { weight: 2, orders: 0 };
    pub(in super::super) const ORDER_LIMITS: RequestCost = RequestCost { weight: 40, orders: 0 };
    pub(in super::super) const PLACE: RequestCost = RequestCost { weight: 1, orders: 1 };
    pub(in super::super) const CANCEL: RequestCost = RequestCost { weight: 1, orders: 0 };
    pub(in super::super) const AMEND: RequestCost = RequestCost { weight: 4, orders: 0 };
    pub(in super::super) const STATUS: RequestCost = RequestCost { weight: 4, orders: 0 };
    pub(in super::super) const TRADES: RequestCost = RequestCost { weight: 5, orders: 0 };
    pub(in super::super) const SNAPSHOT: RequestCost = RequestCost { weight: 25, orders: 0 };
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Phase {
    Disconnected,
    /// The handshake is sent.
    Connecting,
    /// The venue's time is asked for.
    Synchronizing,
    LoggingOn,
    Subscribing,
    ReadingLimits,
    Ready,
    /// The gateway must end the connection.
    Closing,
}

impl Phase {
    pub(super) fn name(self) -> &'static str {
        match self {
            Phase::Disconnected => "DISCONNECTED",
            Phase::Connecting => "CONNECTING",
            Phase::Synchronizing | Phase::LoggingOn | Phase::Subscribing | Phase::ReadingLimits => {
                "LOGGING_ON"
            }
            Phase::Ready => "LOGGED_ON",
            Phase::Closing => "ENDING",
        }
    }
}

/// What a request is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum RequestKind {
    Time,
    Logon,
    Subscribe,
    OrderLimits,
    Place(OrderHandle),
    Cancel(OrderHandle),
    /// A cancel because the trading day of the order is over.
    EndDay(OrderHandle),
    /// A reduction of the quantity.
    Amend(OrderHandle),
    /// A new order in place of the old one.
    Replace(OrderHandle),
    Status(OrderHandle),
    Trades(OrderHandle),
    /// The book of a security.
    Snapshot(SecurityId),
}

/// A request without an answer.
#[derive(Clone, Copy, Debug)]
pub(super) struct SentRequest {
    pub kind: RequestKind,
    pub cost: RequestCost,
    pub at: Timestamp,
}

#[derive(Debug)]
pub struct BinanceSession {
    pub(super) settings: BinanceSettings,
    pub(super) signer: Box<dyn Signer>,
    pub(super) reference: Arc<RefData>,
    pub(super) phase: Phase,
    pub(super) socket: VenueSocket,
    pub(super) market_stream: Option<MarketStream>,
    /// Text that is signed, and the request that is written; empty between two requests.
    scratch: Vec<u8>,
    draft: Vec<u8>,
    pub(super) requests: BTreeMap<u64, SentRequest>,
    next_request: u64,
    /// Earliest time of the next connection, and how many attempts have failed since the last
    /// success.
    pub(super) connect_at: Timestamp,
    pub(super) failures: u32,
    pub(super) connected_at: Timestamp,
    /// When the venue's time is asked for again.
    pub(super) time_at: Timestamp,
    /// Time of the venue less our time, and the round trip in which it was measured.
    pub(super) offset_ns: i64,
    pub(super) round_trip_ns: Option<u64>,
    pub(super) limits: VenueLimits,
    pub(super) held: HeldOrders,
    pub(super) fee_assets: FeeAssets,
    /// When our trading days begin.
    pub(super) trading_day: SessionSchedule,
    pub(super) lookups: Lookups,
    /// Reports for the shards, in order. They are bounded by the messages handled: the gateway
    /// takes all of them before it reads on.
    pub(super) reports: VecDeque<InboundReport>,
    token: u32,
    /// Trades that a shard has not confirmed yet, by token. Bounded by the reports in transit.
    pub(super) unstored_trades: BTreeMap<u32, (OrderHandle, TradeMark)>,
    pub(super) synchronizations: u64,
    pub(super) counts: VenueCounts,
    pub(super) messages_in: u64,
    pub(super) messages_out: u64,
    pub(super) last_error: Option<Arc<str>>,
    pub(super) log_text: Option<String>,
}

impl BinanceSession {
    pub fn new(
        settings: BinanceSettings,
        signer: Box<dyn Signer>,
        reference: Arc<RefData>,
    ) -> BinanceSession {
        let address = settings.market_data.clone();
        let market_stream = address.map(|address| MarketStream::new(&settings, address));
        BinanceSession {
            settings,
            signer,
            reference,
            phase: Phase::Disconnected,
            socket: VenueSocket::default(),
            market_stream,
            scratch: Vec::new(),
            draft: Vec::new(),
            requests: BTreeMap::new(),
            next_request: 0,
            connect_at: Timestamp::ZERO,
            failures: 0,
            connected_at: Timestamp::ZERO,
            time_at: Timestamp::MAX,
            offset_ns: 0,
            round_trip_ns: None,
            limits: VenueLimits::default(),
            held: HeldOrders::default(),
            fee_assets: FeeAssets::default(),
            trading_day: SessionSchedule::default(),
            lookups: Lookups::default(),
            reports: VecDeque::new(),
            token: 0,
            unstored_trades: BTreeMap::new(),
            synchronizations: 0,
            counts: VenueCounts::default(),
            messages_in: 0,
            messages_out: 0,
            last_error: None,
            log_text: None,
        }
    }

    pub(super) fn ids(&self) -> ClientOrderIds {
        ClientOrderIds { folder_id: self.settings.folder_id }
    }

    pub(super) fn is_ready(&self) -> bool {
        self.phase == Phase::Ready
    }

    /// Returns the time of the venue.
    pub(super) fn venue_time(&self, now: Timestamp) -> Timestamp {
        Timestamp(now.0.saturating_add_signed(self.offset_ns))
    }

    /// Returns our time at this time of the venue.
    pub(super) fn own_time(&self, at: Timestamp) -> Timestamp {
        Timestamp(at.0.saturating_add_signed(self.offset_ns.saturating_neg()))
    }

    /// Returns whether the output and the table of requests have room for another request.
    pub(super) fn has_room(&self) -> bool {
        self.requests.len() < REQUESTS_MAX && self.socket.unsent().len() < OUTPUT_BYTES_HIGH
    }

    /// Sends a request that needs no authority.
    pub(super) fn send_public(&mut self, now: Timestamp, kind: RequestKind, cost: RequestCost, method: &str) {
        self.send_with(now, kind, cost, method, false, |_| {});
    }

    /// Sends a request with our authority, and with its time and receive window. `write` adds the
    /// parameters whose names come before `recvWindow` with its first call, and those behind with
    /// its second.
    pub(super) fn send(
        &mut self,
        now: Timestamp,
        kind: RequestKind,
        cost: RequestCost,
        method: &str,
        write: impl FnOnce(&mut RequestDraft<'_>, &RequestTime),
    ) {
        let time = RequestTime { at: self.venue_time(now), window_ms: self.settings.receive_window_ms };
        let is_signed = kind == RequestKind::Logon || !self.signer.can_log_on();
        self.send_with(now, kind, cost, method, is_signed, |draft| write(draft, &time));
    }

    pub(super) fn send_with(
        &mut self,
        now: Timestamp,
        kind: RequestKind,
        cost: RequestCost,
        method: &str,
        is_signed: bool,
        write: impl FnOnce(&mut RequestDraft<'_>),
    ) {
        self.next_request += 1;
        let authority = match is_signed {
            true => Authority::Signed { api_key: &self.settings.api_key, signer: &*self.signer },
            false => Authority::None,
        };
        request::write(&mut self.draft, &mut self.scratch, self.next_request, method, authority, write);
        let is_sent = self.socket.send(&self.draft);
        self.draft.clear();
        if !is_sent {
            return;
        }
        self.limits.handle_sent(cost);
        self.requests.insert(self.next_request, SentRequest { kind, cost, at: now });
        self.messages_out += 1;
    }

    pub(super) fn queue_report(&mut self, order: OrderHandle, report: VenueReport) {
        self.reports.push_back(InboundReport { order, report, token: 0 });
    }

    /// Queues a report of a trade, which is reported again after a disconnect unless a shard has
    /// stored it. `mark` has the trades of the order with this one.
    pub(super) fn queue_trade(&mut self, order: OrderHandle, mark: TradeMark, report: VenueReport) {
        self.token = self.token.wrapping_add(1).max(1);
        self.unstored_trades.insert(self.token, (order, mark));
        self.reports.push_back(InboundReport { order, report, token: self.token });
        self.counts.executions += 1;
        if let Some(held) = self.held.get_mut(order) {
            (held.reported, held.cum) = (mark, held.cum.max(mark.cum));
        }
    }

    /// Records an error of the venue, for the log and for operators.
    pub(super) fn record_error(&mut self, text: String) {
        self.last_error = Some(text.as_str().into());
        self.log_text = Some(text);
    }

    /// Ends the connection: the gateway closes it after the output.
    pub(super) fn close(&mut self, reason: &str) {
        if matches!(self.phase, Phase::Disconnected | Phase::Closing) {
            return;
        }
        self.socket.close();
        self.record_error(reason.to_string());
        self.phase = Phase::Closing;
    }
}

/// Time and validity of a request.
#[derive(Clone, Copy, Debug)]
pub(super) struct RequestTime {
    pub at: Timestamp,
    pub window_ms: u64,
}

impl RequestTime {
    pub(super) fn write_window(&self, draft: &mut RequestDraft<'_>) {
        draft.number("recvWindow", self.window_ms);
    }

    pub(super) fn write_time(&self, draft: &mut RequestDraft<'_>) {
        draft.time("timestamp", self.at);
    }
}

#[cfg(test)]
mod tests;
