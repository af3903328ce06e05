//! Binance Spot for tests: the adapter, the shard behind it and a stand-in of the exchange, on one
//! thread under a virtual clock. A test may cut the connection after any byte of either side.

use pitlane_dialogue::binance::{BinanceExchange, ExchangeConnection};
use pitlane_engine::id::ShardId;
use pitlane_engine::terms::{Changes, Side, Tif};
use pitlane_engine::time::{NS_PER_MS, Timestamp};
use pitlane_protocols::binance::{BinanceSession, BinanceSettings, Signer, StreamAddress};
use pitlane_protocols::venue::{ConnectRandom, LinkIndex, VenueAdapter, VenueReports};
use pitlane_protocols::websocket::client::WebSocketKey;
use pitlane_protocols::websocket::{MessageKind, MessagePart, Receiver, WebSocketState, message_head};

use crate::test_market;
use crate::venue_shard::{ReportedState, VenueShard};

/// The key and the answer of section 1.3 of RFC 6455.
const KEY: &str = "dGhlIHNhbXBsZSBub25jZQ==";
const ACCEPT: &str = "s3pPLMBiTxaQ9kYGzzhZRbK+xOo=";

/// Most cycles until everything sent must have been received.
const ROUNDS_MAX: usize = 10_000;

const LINK: LinkIndex = LinkIndex(0);

/// A key of an account: the stand-in checks that there is a signature, not its value.
#[derive(Clone, Copy, Debug)]
struct TestSigner {
    can_log_on: bool,
}

impl Signer for TestSigner {
    fn sign(&self, _: &[u8], out: &mut Vec<u8>) {
        out.extend_from_slice(b"signed");
    }

    fn can_log_on(&self) -> bool {
        self.can_log_on
    }
}

/// The venue's side of the connection.
#[derive(Debug, Default)]
struct ServerSide {
    /// Bytes of the handshake; `None` once it is answered.
    handshake: Option<Vec<u8>>,
    receiver: Receiver,
    account: ExchangeConnection,
    is_closed: bool,
}

#[derive(Debug)]
pub struct BinanceHarness {
    pub now: Timestamp,
    pub session: BinanceSession,
    settings: BinanceSettings,
    signer: TestSigner,
    pub shard: VenueShard,
    pub exchange: BinanceExchange,
    server: Option<ServerSide>,
    /// Time of the venue less ours, in milliseconds.
    pub skew_ms: i64,
    /// Bytes after which the connection breaks, from us to the venue and back.
    pub cut_to_venue: Option<usize>,
    pub cut_to_us: Option<usize>,
    /// Whether the venue answers cancels and replacements only on demand.
    pub holds_changes: bool,
    pub held_requests: Vec<String>,
    /// Whether the venue's answers and events are lost.
    pub is_mute: bool,
    /// The last event that was delivered.
    pub last_event: String,
}

/// Returns the adapter with market data and without a connection.
pub fn session_with_market_data() -> BinanceSession {
    open(&settings_with_market_data(1), TestSigner { can_log_on: true })
}

fn settings_with_market_data(market_depth: u16) -> BinanceSettings {
    let address = StreamAddress { host: "streams:443".to_string(), path: "/stream".to_string() };
    BinanceSettings { market_data: Some(address), market_depth, ..settings() }
}

fn settings() -> BinanceSettings {
    BinanceSettings {
        adapter: test_market::OUTSIDE_ADAPTER,
        host: "venue:443".to_string(),
        path: "/ws-api/v3".to_string(),
        api_key: "key".to_string(),
        receive_window_ms: 2_000,
        reconnect_s: 1,
        folder_id: 77,
        market_data: None,
        market_depth: 1,
    }
}

/// Returns the values with which a connection begins; [`handshake_answer`] fits them.
pub fn connect_random() -> ConnectRandom {
    ConnectRandom { key: WebSocketKey { key: KEY.to_string(), accept: ACCEPT.to_string() }, seed: 5 }
}

/// Returns the venue's answer to the handshake.
pub fn handshake_answer() -> Vec<u8> {
    let answer = format!(
        "HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n\
         Sec-WebSocket-Accept: {ACCEPT}\r\n\r\n"
    );
    answer.into_bytes()
}

/// Returns a message of the venue as a frame.
pub fn text_frame(text: &str) -> Vec<u8> {
    let mut frame = Vec::new();
    message_head(&mut frame, MessageKind::Text, text.len());
    frame.extend_from_slice(text.as_bytes());
    frame
}

impl BinanceHarness {
    pub fn new(can_log_on: bool) -> BinanceHarness {
        BinanceHarness::of(settings(), can_log_on)
    }

    /// Returns a harness that is connected and ready, and has market data to this depth.
    pub fn with_books(market_depth: u16) -> BinanceHarness {
        let mut harness = BinanceHarness::of(settings_with_market_data(market_depth), true);
        harness.shard.watch_books();
        assert!(harness.connect(), "it connects, and the venue takes the logon");
        harness
    }

    fn of(settings: BinanceSettings, can_log_on: bool) -> BinanceHarness {
        let signer = TestSigner { can_log_on };
        let mut harness = BinanceHarness {
            now: test_market::start(),
            session: open(&settings, signer),
            settings,
            signer,
            shard: VenueShard::new(),
            exchange: BinanceExchange::new(!can_log_on, None),
            server: None,
            skew_ms: 0,
            cut_to_venue: None,
            cut_to_us: None,
            holds_changes: false,
            held_requests: Vec::new(),
            is_mute: false,
            last_event: String::new(),
        };
        harness.settle();
        harness
    }

    /// Returns a harness that is connected and ready.
    pub fn connected() -> BinanceHarness {
        let mut harness = BinanceHarness::new(true);
        assert!(harness.connect(), "it connects, and the venue takes the logon");
        harness
    }

    /// Connects, and returns whether orders can be sent then.
    pub fn connect(&mut self) -> bool {
        if !self.session.wants_connection(LINK, self.now) {
            return false;
        }
        self.session.handle_connect(LINK, self.now, connect_random());
        self.server = Some(ServerSide { handshake: Some(Vec::new()), ..ServerSide::default() });
        self.settle();
        self.session.synchronizations().is_some()
    }

    pub fn is_connected(&self) -> bool {
        self.server.is_some()
    }

    /// Breaks the connection.
    pub fn disconnect(&mut self) {
        self.server = None;
        self.held_requests.clear();
        self.session.handle_disconnect(LINK, self.now);
        self.settle();
    }

    /// Kills the process and starts it again: the shard was recovered, the adapter knows nothing.
    pub fn restart(&mut self) {
        self.server = None;
        self.held_requests.clear();
        self.session = open(&self.settings, self.signer);
        self.shard.restart();
        self.settle();
    }

    pub fn submit(&mut self, id: &str, qty: &str, limit: &str) {
        self.shard.submit(id, Side::Buy, qty, limit);
        self.settle();
    }

    /// Submits an order that ends with the trading day.
    pub fn submit_for_the_day(&mut self, id: &str, qty: &str, limit: &str) {
        self.shard.submit_with(id, Side::Buy, qty, limit, Tif::Day);
        self.settle();
    }

    pub fn cancel(&mut self, id: &str, order: &str) {
        self.shard.cancel(id, order);
        self.settle();
    }

    pub fn replace(&mut self, id: &str, order: &str, changes: Changes) {
        self.shard.replace(id, order, changes);
        self.settle();
    }

    /// Returns what the client knows of the order with this first id.
    pub fn order(&self, id: &str) -> &ReportedState {
        self.shard.order(id).expect("a known order")
    }

    /// Advances the time, fires every timer at its time, and reconnects when the adapter wants to.
    pub fn wait(&mut self, ns: u64) {
        let until = self.now.plus(ns);
        for _ in 0..ROUNDS_MAX {
            let at = self.session.poll_timeout().max(self.now);
            if at > until {
                self.now = until;
                return self.settle();
            }
            self.now = at;
            self.session.handle_timeout(self.now);
            self.connect();
            self.settle();
        }
        panic!("timers fire without end");
    }

    /// Lets the venue handle the request that it has held back.
    pub fn answer_held(&mut self) {
        for request in std::mem::take(&mut self.held_requests) {
            self.answer(&request);
        }
        self.settle();
    }

    /// Runs all parts until none of them has work.
    pub fn settle(&mut self) {
        for _ in 0..ROUNDS_MAX {
            let mut work = self.shard.poll(self.now);
            while let Some((seq, instruction, special)) = self.shard.poll_instruction() {
                work += 1;
                self.session.handle_instruction(self.now, ShardId(0), seq, &instruction, special.as_ref());
            }
            work += self.shard.report(self.now, &mut self.session);
            work += self.transmit();
            work += self.deliver_events();
            if self.session.wants_close(LINK) && self.server.is_some() {
                work += 1;
                self.server = None;
                self.session.handle_disconnect(LINK, self.now);
            }
            if work == 0 {
                return;
            }
        }
        panic!("it does not come to rest");
    }

    /// Passes our output to the venue, as far as the connection lasts.
    fn transmit(&mut self) -> usize {
        let mut bytes = self.session.poll_transmit(LINK).to_vec();
        if bytes.is_empty() || self.server.is_none() {
            return 0;
        }
        self.session.handle_transmitted(LINK, bytes.len());
        let breaks = cut(&mut self.cut_to_venue, &mut bytes);
        self.handle_at_venue(bytes);
        if breaks {
            self.disconnect();
        }
        1
    }

    fn handle_at_venue(&mut self, mut bytes: Vec<u8>) {
        let Some(server) = &mut self.server else { return };
        if let Some(handshake) = &mut server.handshake {
            handshake.extend_from_slice(&bytes);
            if !handshake.ends_with(b"\r\n\r\n") {
                return;
            }
            let text = String::from_utf8(std::mem::take(handshake)).expect("a head is text");
            assert!(text.starts_with("GET /ws-api/v3 HTTP/1.1\r\n") && text.contains(KEY), "{text}");
            server.handshake = None;
            return self.deliver(handshake_answer());
        }
        let (mut requests, mut request) = (Vec::new(), Vec::new());
        let state = server.receiver.handle_parts(&mut bytes, |part| match part {
            MessagePart::Payload(payload) => request.extend_from_slice(payload),
            MessagePart::End => requests.push(String::from_utf8(std::mem::take(&mut request)).expect("text")),
        });
        server.is_closed |= state != WebSocketState::Open;
        for request in requests {
            let is_change = request.contains("order.cancel") || request.contains("order.amend");
            if is_change && self.holds_changes {
                self.held_requests.push(request);
            } else {
                self.answer(&request);
            }
        }
    }

    fn answer(&mut self, request: &str) {
        self.exchange.now_ms = self.venue_ms();
        let Some(server) = &mut self.server else { return };
        if let Some(answer) = self.exchange.handle(&mut server.account, request) {
            self.deliver_message(&answer);
        }
    }

    fn venue_ms(&self) -> u64 {
        (self.now.0 / NS_PER_MS).checked_add_signed(self.skew_ms).expect("a time after 1970")
    }

    fn deliver_events(&mut self) -> usize {
        let events = std::mem::take(&mut self.exchange.events);
        for event in &events {
            if self.server.as_ref().is_some_and(|server| server.account.is_subscribed) {
                self.last_event.clone_from(event);
                self.deliver_message(event);
            }
        }
        events.len()
    }

    /// Delivers a message of the venue.
    pub fn deliver_message(&mut self, text: &str) {
        self.deliver(text_frame(text));
    }

    /// Delivers bytes of the venue, as far as the connection lasts.
    fn deliver(&mut self, mut bytes: Vec<u8>) {
        if self.server.is_none() || self.is_mute {
            return;
        }
        let breaks = cut(&mut self.cut_to_us, &mut bytes);
        self.session.handle_bytes(LINK, self.now, &mut bytes);
        if breaks {
            self.server = None;
            self.held_requests.clear();
            self.session.handle_disconnect(LINK, self.now);
        }
    }
}

fn open(settings: &BinanceSettings, signer: TestSigner) -> BinanceSession {
    BinanceSession::new(settings.clone(), Box::new(signer), test_market::reference())
}

/// Shortens the bytes to what the connection still carries, and returns whether it breaks then.
fn cut(left: &mut Option<usize>, bytes: &mut Vec<u8>) -> bool {
    let Some(count) = left else { return false };
    if *count > bytes.len() {
        *count -= bytes.len();
        return false;
    }
    bytes.truncate(*count);
    *left = None;
    true
}
