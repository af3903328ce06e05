//! Market data of the venue, over a connection of their own: trades, best prices and the book
//! ([`super::books`]) of each security that orders can be sent for.
//!
//! ```text
//! Disconnected ─► Connecting ─► Open: SUBSCRIBE, a part at a time ─► trades and best prices
//!      ▲                          │
//!      └── silence, close, serverShutdown, 24 hours
//! ```
//!
//! The venue forgets subscriptions with the connection. Prices are current or missing: nothing is
//! looked up after a disconnect. A message that is older than the last one of its security is
//! ignored.

use std::collections::{BTreeMap, VecDeque};

use pitlane_engine::command::{CommandKind, Quote, Trade};
use pitlane_engine::event::LEVELS_PER_SIDE_MAX;
use pitlane_engine::id::{AdapterId, SecurityId};
use pitlane_engine::refdata::RefData;
use pitlane_engine::time::{NS_PER_MS, NS_PER_S, Timestamp};
use serde_json::value::RawValue;

use super::books::StreamedBooks;
use super::message::{BestPricesBody, MarketTradeBody, StreamMessage, price, qty};
use super::session::{ANSWER_NS_MAX, CONNECTION_NS_MAX, reconnect_delay_ns};
use super::socket::VenueSocket;
use super::{BinanceSettings, StreamAddress};
use crate::json;
use crate::venue::{ConnectRandom, VenueCounts};
use crate::websocket::client::ClientFault;

/// Streams of one connection, by the documentation of the venue; a security has two, or three with
/// its book.
pub const STREAMS_MAX: usize = 1_024;

/// Names of the streams behind the symbol.
const TRADES: &str = "trade";
const BEST_PRICES: &str = "bookTicker";
const DIFFERENCES: &str = "depth@100ms";

/// Securities in one SUBSCRIBE, so that a message stays short.
const SECURITIES_PER_REQUEST: usize = 50;

/// Time between two requests. The venue disconnects a client with more than five messages in a
/// second, pongs included.
const REQUEST_INTERVAL_NS: u64 = 300 * NS_PER_MS;

/// Time without a byte after which the connection is dead: the venue pings every 20 seconds.
const SILENCE_NS_MAX: u64 = 60 * NS_PER_S;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum StreamPhase {
    Disconnected,
    Connecting,
    Open,
    Closing,
}

/// A security whose prices arrive, with the newest ids of the venue.
#[derive(Clone, Copy, Debug)]
struct StreamedSecurity {
    security: SecurityId,
    update_id: u64,
    trade_id: u64,
}

#[derive(Debug)]
pub(super) struct MarketStream {
    address: StreamAddress,
    adapter: AdapterId,
    reconnect_s: u64,
    socket: VenueSocket,
    phase: StreamPhase,
    connect_at: Timestamp,
    /// End of the time for which the venue has refused connections.
    banned_until: Timestamp,
    failures: u32,
    connected_at: Timestamp,
    received_at: Timestamp,
    /// Symbols that are not requested yet, and when the next request may leave.
    unrequested: VecDeque<String>,
    request_at: Timestamp,
    next_request: u64,
    /// By symbol, requested or about to be.
    securities: BTreeMap<String, StreamedSecurity>,
    /// Books, unless only the best prices are wanted.
    books: Option<StreamedBooks>,
    /// Prices for the shards. The gateway takes all of them before it reads on.
    pending: VecDeque<CommandKind>,
    /// Error for operators, once.
    error: Option<String>,
}

impl MarketStream {
    pub(super) fn new(settings: &BinanceSettings, address: StreamAddress) -> MarketStream {
        MarketStream {
            address,
            adapter: settings.adapter,
            reconnect_s: settings.reconnect_s,
            socket: VenueSocket::default(),
            phase: StreamPhase::Disconnected,
            connect_at: Timestamp::ZERO,
            banned_until: Timestamp::ZERO,
            failures: 0,
            connected_at: Timestamp::ZERO,
            received_at: Timestamp::ZERO,
            unrequested: VecDeque::new(),
            request_at: Timestamp::ZERO,
            next_request: 0,
            securities: BTreeMap::new(),
            books: match settings.market_depth {
                1 => None,
                0 => Some(StreamedBooks::new(LEVELS_PER_SIDE_MAX)),
                levels => Some(StreamedBooks::new(levels.into())),
            },
            pending: VecDeque::new(),
            error: None,
        }
    }

    pub(super) fn wants_connection(&self, now: Timestamp) -> bool {
        self.phase == StreamPhase::Disconnected && now >= self.connect_at
    }

    pub(super) fn handle_connect(&mut self, now: Timestamp, random: ConnectRandom) {
        self.socket.connect(&self.address.host, &self.address.path, random);
        self.phase = StreamPhase::Connecting;
        (self.connected_at, self.received_at) = (now, now);
    }

    pub(super) fn handle_disconnect(&mut self, now: Timestamp) {
        let delay_ns = reconnect_delay_ns(self.reconnect_s, self.failures);
        self.connect_at = now.plus(delay_ns).max(self.banned_until);
        self.failures = self.failures.saturating_add(1);
        self.phase = StreamPhase::Disconnected;
        self.socket.disconnect();
        self.securities.clear();
        self.unrequested.clear();
        self.books.iter_mut().for_each(|books| books.end(&mut self.pending));
    }

    pub(super) fn handle_bytes(
        &mut self,
        now: Timestamp,
        bytes: &mut [u8],
        reference: &RefData,
        counts: &mut VenueCounts,
    ) {
        self.received_at = now;
        let (inbox, outcome) = self.socket.receive(bytes);
        if self.phase == StreamPhase::Connecting && self.socket.is_open() {
            (self.phase, self.request_at) = (StreamPhase::Open, now);
            self.refresh(reference);
            self.send_requests(now);
        }
        for message in inbox.messages() {
            self.handle_message(now, message, counts);
        }
        self.socket.reuse(inbox);
        if let Err(fault) = outcome {
            if let ClientFault::Refused { status: 418 | 429, retry_after_s: Some(seconds) } = fault {
                self.banned_until = now.plus(seconds.saturating_mul(NS_PER_S));
            }
            self.close(&format!("the connection has ended: {fault:?}"));
        }
    }

    /// Requests securities that are new in the reference data.
    pub(super) fn refresh(&mut self, reference: &RefData) {
        if self.phase != StreamPhase::Open {
            return;
        }
        let ours = |row: &&_| reference.exchange_of(row).adapter == self.adapter;
        for row in reference.securities().iter().filter(ours).filter(|row| row.tradeable) {
            let symbol = row.symbol.to_string();
            if self.securities.contains_key(&symbol) {
                continue;
            }
            let securities_max = STREAMS_MAX / self.streams().len();
            if self.securities.len() >= securities_max {
                self.error = Some(format!("the venue streams {securities_max} securities at most"));
                return;
            }
            self.unrequested.push_back(symbol.clone());
            self.securities.insert(symbol, StreamedSecurity { security: row.id, update_id: 0, trade_id: 0 });
        }
    }

    /// Sends the next SUBSCRIBE if it is time.
    fn send_requests(&mut self, now: Timestamp) {
        if self.phase != StreamPhase::Open || self.unrequested.is_empty() || now < self.request_at {
            return;
        }
        self.next_request += 1;
        let mut request = b"{\"method\":\"SUBSCRIBE\",\"params\":[".to_vec();
        let count = self.unrequested.len().min(SECURITIES_PER_REQUEST);
        let streams = self.streams();
        let mut separator = "";
        for symbol in self.unrequested.drain(..count) {
            if let (Some(books), Some(streamed)) = (&mut self.books, self.securities.get(&symbol)) {
                books.begin(streamed.security, &symbol, now);
            }
            // The names of streams are in small letters.
            let name = symbol.to_lowercase();
            for stream in streams {
                request.extend_from_slice(separator.as_bytes());
                json::push_text(&mut request, &format!("{name}@{stream}"));
                separator = ",";
            }
        }
        request.extend_from_slice(b"],\"id\":");
        json::push_number(&mut request, self.next_request);
        request.push(b'}');
        self.socket.send(&request);
        self.request_at = now.plus(REQUEST_INTERVAL_NS);
    }

    fn handle_message(&mut self, now: Timestamp, message: &[u8], counts: &mut VenueCounts) {
        let Ok(message) = serde_json::from_slice::<StreamMessage<'_>>(message) else {
            counts.unknown_values += 1;
            return;
        };
        if let Some(problem) = message.problem() {
            self.error = Some(format!("the venue refuses market data: {problem}"));
            return;
        }
        if message.kind == Some("serverShutdown") {
            return self.close("the venue announces its shutdown");
        }
        let (Some(stream), Some(data)) = (message.stream, message.data) else {
            counts.unknown_values += u64::from(message.id.is_none());
            return;
        };
        let handled = match stream.split_once('@') {
            Some((_, TRADES)) => self.handle_trade(data),
            Some((_, BEST_PRICES)) => self.handle_best_prices(now, data),
            Some((name, DIFFERENCES)) if self.books.is_some() => self.handle_differences(now, name, data),
            Some(_) | None => {
                counts.unknown_values += 1;
                return;
            }
        };
        match handled {
            Ok(()) => self.failures = 0,
            Err(PriceFault::Incomplete) => counts.incomplete += 1,
            Err(PriceFault::UnknownSymbol) => counts.unknown_values += 1,
        }
    }

    fn handle_trade(&mut self, data: &RawValue) -> Result<(), PriceFault> {
        let body: MarketTradeBody<'_> =
            serde_json::from_str(data.get()).map_err(|_| PriceFault::Incomplete)?;
        let streamed = self.securities.get_mut(body.symbol).ok_or(PriceFault::UnknownSymbol)?;
        let (Some(price), Some(size)) = (price(body.price), qty(body.qty)) else {
            return Err(PriceFault::Incomplete);
        };
        if body.id <= streamed.trade_id {
            return Ok(());
        }
        streamed.trade_id = body.id;
        let trade = Trade { price, size, at: Timestamp(body.time_ms.saturating_mul(NS_PER_MS)) };
        self.pending.push_back(CommandKind::Trade { security: streamed.security, trade });
        Ok(())
    }

    /// Handles best prices. They have no time, so that of their arrival counts.
    fn handle_best_prices(&mut self, at: Timestamp, data: &RawValue) -> Result<(), PriceFault> {
        let body: BestPricesBody<'_> =
            serde_json::from_str(data.get()).map_err(|_| PriceFault::Incomplete)?;
        let streamed = self.securities.get_mut(body.symbol).ok_or(PriceFault::UnknownSymbol)?;
        let (bid, ask) = (price(body.bid).zip(qty(body.bid_qty)), price(body.ask).zip(qty(body.ask_qty)));
        let (Some((bid, bid_size)), Some((ask, ask_size))) = (bid, ask) else {
            return Err(PriceFault::Incomplete);
        };
        if body.update_id <= streamed.update_id {
            return Ok(());
        }
        streamed.update_id = body.update_id;
        let quote = Quote { bid, bid_size, ask, ask_size, at };
        self.pending.push_back(CommandKind::Quote { security: streamed.security, quote });
        Ok(())
    }

    /// Handles a change of a book. The name of the stream says whose book is lost if the change
    /// cannot be read.
    fn handle_differences(&mut self, now: Timestamp, name: &str, data: &RawValue) -> Result<(), PriceFault> {
        let streamed = self.securities.get(&name.to_uppercase()).ok_or(PriceFault::UnknownSymbol)?;
        let Some(books) = &mut self.books else { return Ok(()) };
        match books.handle_event(streamed.security, now, data, &mut self.pending) {
            true => Ok(()),
            false => Err(PriceFault::Incomplete),
        }
    }

    pub(super) fn books(&self) -> Option<&StreamedBooks> {
        self.books.as_ref()
    }

    pub(super) fn books_mut(&mut self) -> Option<&mut StreamedBooks> {
        self.books.as_mut()
    }

    /// Handles the snapshot of a book; `None` if the venue has refused it.
    pub(super) fn handle_snapshot(&mut self, now: Timestamp, security: SecurityId, data: Option<&RawValue>) {
        if let Some(books) = &mut self.books {
            books.handle_snapshot(security, now, data, &mut self.pending);
        }
    }

    /// Handles that no snapshot comes any more over the connection for orders.
    pub(super) fn handle_snapshots_lost(&mut self, now: Timestamp) {
        self.books.iter_mut().for_each(|books| books.forget_requests(now));
    }

    /// Returns the streams of each security.
    fn streams(&self) -> &'static [&'static str] {
        match self.books {
            Some(_) => &[TRADES, BEST_PRICES, DIFFERENCES],
            None => &[TRADES, BEST_PRICES],
        }
    }

    pub(super) fn poll_price(&mut self) -> Option<CommandKind> {
        self.pending.pop_front()
    }

    pub(super) fn poll_transmit(&self) -> &[u8] {
        self.socket.unsent()
    }

    pub(super) fn handle_transmitted(&mut self, count: usize) {
        self.socket.handle_transmitted(count);
    }

    pub(super) fn wants_close(&self) -> bool {
        self.phase == StreamPhase::Closing
    }

    pub(super) fn poll_timeout(&self) -> Timestamp {
        let renewal = self.connected_at.plus(CONNECTION_NS_MAX);
        match self.phase {
            StreamPhase::Disconnected => self.connect_at,
            StreamPhase::Connecting => self.connected_at.plus(ANSWER_NS_MAX),
            StreamPhase::Open => {
                let request = if self.unrequested.is_empty() { Timestamp::MAX } else { self.request_at };
                renewal.min(self.received_at.plus(SILENCE_NS_MAX)).min(request)
            }
            StreamPhase::Closing => Timestamp::MAX,
        }
    }

    pub(super) fn handle_timeout(&mut self, now: Timestamp) {
        if matches!(self.phase, StreamPhase::Disconnected | StreamPhase::Closing) {
            return;
        }
        let is_late = self.phase == StreamPhase::Connecting && now >= self.connected_at.plus(ANSWER_NS_MAX);
        if is_late || now >= self.received_at.plus(SILENCE_NS_MAX) {
            self.close("the venue is silent");
        } else if now >= self.connected_at.plus(CONNECTION_NS_MAX) {
            self.close("the connection is renewed");
        } else {
            self.send_requests(now);
        }
    }

    /// Ends the connection: the gateway closes it after the output.
    pub(super) fn close(&mut self, reason: &str) {
        if matches!(self.phase, StreamPhase::Disconnected | StreamPhase::Closing) {
            return;
        }
        self.socket.close();
        self.phase = StreamPhase::Closing;
        self.error = Some(format!("market data: {reason}"));
    }

    pub(super) fn take_error(&mut self) -> Option<String> {
        self.error.take()
    }
}

/// Why a price is not used.
enum PriceFault {
    Incomplete,
    UnknownSymbol,
}

#[cfg(test)]
mod tests {
    use pitlane_engine::refdata::{Security, sample};

    use super::super::socket::tests as handshake;
    use super::*;

    const NOW: Timestamp = Timestamp(1_000 * NS_PER_S);

    fn stream(market_depth: u16) -> MarketStream {
        let settings = BinanceSettings {
            adapter: AdapterId(3),
            host: "venue:443".to_string(),
            path: "/ws-api/v3".to_string(),
            api_key: "key".to_string(),
            receive_window_ms: 2_000,
            reconnect_s: 1,
            folder_id: 77,
            market_data: None,
            market_depth,
        };
        let address = StreamAddress { host: "streams:443".to_string(), path: "/stream".to_string() };
        let mut stream = MarketStream::new(&settings, address);
        stream.handle_connect(NOW, handshake::random());
        stream
    }

    /// Returns reference data with so many securities of the adapter.
    fn reference(count: u32) -> RefData {
        let mut rows = sample::sound();
        rows.exchanges.iter_mut().for_each(|exchange| exchange.adapter = AdapterId(3));
        let first = rows.securities[0].clone();
        let others = (10..).map(|id| Security {
            id: SecurityId(id),
            symbol: format!("S{id}").as_str().into(),
            ..first.clone()
        });
        let missing = count as usize - rows.securities.len();
        rows.securities.extend(others.take(missing));
        RefData::check(rows).expect("a valid sample")
    }

    fn receive(stream: &mut MarketStream, now: Timestamp, bytes: &[u8], count: u32) {
        stream.handle_bytes(now, &mut bytes.to_vec(), &reference(count), &mut VenueCounts::default());
    }

    #[test]
    fn securities_are_requested_in_parts_with_time_between_them() {
        let count = 2 * SECURITIES_PER_REQUEST as u32 + 1;
        let mut stream = stream(1);
        stream.handle_timeout(NOW);
        assert_eq!(stream.next_request, 0, "there is no connection yet");
        receive(&mut stream, NOW, &handshake::answer(), count);
        assert_eq!((stream.next_request, stream.poll_timeout()), (1, NOW.plus(REQUEST_INTERVAL_NS)));
        // A ping that arrives is no reason to request more.
        let early = Timestamp(NOW.0 + REQUEST_INTERVAL_NS - 1);
        receive(&mut stream, early, b"\x89\x00", count);
        stream.handle_timeout(early);
        assert_eq!(stream.next_request, 1);
        for part in 1..4 {
            stream.handle_timeout(NOW.plus(part * REQUEST_INTERVAL_NS));
            assert_eq!(stream.next_request, (part + 1).min(3), "three parts and no empty one");
        }
        assert!(stream.unrequested.is_empty());
    }

    #[test]
    fn a_stream_that_was_not_requested_is_unknown() {
        let message = br#"{"stream":"acme@depth@100ms","data":{}}"#;
        for (market_depth, expected) in [(1, (1, 0)), (5, (0, 1))] {
            let mut stream = stream(market_depth);
            receive(&mut stream, NOW, &handshake::answer(), 3);
            let mut counts = VenueCounts::default();
            stream.handle_message(NOW, message, &mut counts);
            assert_eq!((counts.unknown_values, counts.incomplete), expected, "{market_depth}");
        }
    }

    #[test]
    fn a_venue_that_does_not_answer_or_falls_silent_is_left() {
        let mut waiting = stream(1);
        assert_eq!(waiting.poll_timeout(), NOW.plus(ANSWER_NS_MAX));
        waiting.handle_timeout(Timestamp(NOW.0 + ANSWER_NS_MAX - 1));
        assert!(!waiting.wants_close());
        waiting.handle_timeout(NOW.plus(ANSWER_NS_MAX));
        assert!(waiting.wants_close());
        let mut open = stream(1);
        receive(&mut open, NOW, &handshake::answer(), 3);
        open.handle_timeout(Timestamp(NOW.0 + SILENCE_NS_MAX - 1));
        assert!(!open.wants_close());
        open.handle_timeout(NOW.plus(SILENCE_NS_MAX));
        assert!(open.wants_close());
        assert_eq!(open.take_error().as_deref(), Some("market data: the venue is silent"));
    }
}
