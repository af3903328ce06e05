//! Any bytes into the decoder and into a broker: no panic, bounded memory, and the same result
//! wherever they are cut.

use pitlane_dialogue::stomp_frames;
use pitlane_engine::event::Tick;
use pitlane_engine::id::SecurityId;
use pitlane_engine::index::index_u8;
use pitlane_engine::number::{Price, Qty};
use pitlane_engine::time::{NS_PER_MS, Timestamp};
use pitlane_protocols::decoded::Decoded;
use pitlane_protocols::stomp::access::{StompAccess, StrategyAccess};
use pitlane_protocols::stomp::broker::{BrokerCommand, SessionId, StompBroker};
use pitlane_protocols::stomp::decode::Decoder;
use pitlane_protocols::stomp::frame::StompVersion;
use pitlane_protocols::stomp::payload::system::{LogEventPayload, LogLevel};
use pitlane_protocols::stomp::session::{StompClose, StompState, Transport};
use pitlane_protocols::stomp::settings::{BrokerSettings, StompLimits};
use pitlane_protocols::websocket::{Receiver, WebSocketState};

use crate::test_market;

/// Decodes a stream of frames; the first byte chooses version and cuts.
pub fn decode(bytes: &[u8]) {
    let Some((&choice, stream)) = bytes.split_first() else { return };
    let version = [None, Some(StompVersion::V10), Some(StompVersion::V11), Some(StompVersion::V12)]
        [choice as usize % 4];
    let whole = frames(version, stream, stream.len().max(1));
    for len in [1, 2, 1 + choice as usize / 4] {
        assert_eq!(frames(version, stream, len), whole, "cut every {len} octets");
    }
}

fn frames(version: Option<StompVersion>, stream: &[u8], len: usize) -> Vec<String> {
    let mut decoder = Decoder::default();
    if let Some(version) = version {
        decoder.set_version(version);
    }
    let (mut buffer, mut results) = (Vec::new(), Vec::new());
    for piece in stream.chunks(len) {
        buffer.extend_from_slice(piece);
        loop {
            match decoder.decode(&buffer) {
                Ok(Decoded::Message { message, consumed }) => {
                    results.push(format!("{message:?} {:?}", message.header("receipt")));
                    buffer.drain(..consumed);
                }
                Ok(Decoded::Incomplete) => {
                    buffer.drain(..decoder.skip());
                    break;
                }
                Err(error) => {
                    results.push(format!("{error:?} {:?}", decoder.receipt(&buffer)));
                    return results;
                }
            }
        }
    }
    results
}

/// Returns small limits, so that all of them are reached.
fn limits() -> StompLimits {
    StompLimits {
        window_max: 10,
        subscriptions_max: 20,
        mark_bytes: 600,
        slots_max: 12,
        backlog_bytes_max: 4_000,
        backlog_max: 16,
        turn_bytes_max: 300,
        turn_frames_max: 3,
        ..StompLimits::default()
    }
}
const CLIENTS: usize = 3;
const SECURITIES: u8 = 20;
/// Most actions of one input: longer ones find nothing new.
const ACTIONS_MAX: usize = 3_000;

/// Frames that have an effect; a fuzzer also produces bytes of its own.
const PHRASES: [&str; 22] = [
    "CONNECT|accept-version:1.2|heart-beat:1000,1000||",
    "CONNECT|accept-version:1.1||",
    "CONNECT||",
    "SUBSCRIBE|id:1|destination:/topic/tick.*|last-value:true|receipt:l||",
    "SUBSCRIBE|id:2|destination:/topic/>|ack:client|prefetch-count:3||",
    "SUBSCRIBE|id:3|destination:/topic/tick.1|ack:client-individual|prefetch-count:2||",
    "SUBSCRIBE|id:4|destination:/topic/log-event.*|receipt:s||",
    "SUBSCRIBE|destination:/topic/tick.2|ack:client||",
    "UNSUBSCRIBE|id:1|receipt:u||",
    "UNSUBSCRIBE|id:2||",
    "UNSUBSCRIBE|id:3||",
    "UNSUBSCRIBE|destination:/topic/tick.2||",
    "BEGIN|transaction:t||",
    "COMMIT|transaction:t||",
    "ABORT|transaction:t||",
    "SEND|destination:/topic/generic-event.a||{\"a\":[1,2]}",
    "SEND|destination:/topic/generic-event.b|transaction:t||7",
    "ACK|id:0-1||",
    "NACK|id:1-2|transaction:t||",
    "ACK|message-id:0-1|subscription:3||",
    "DISCONNECT|receipt:d||",
    "\n",
];

/// Runs a broker with a few clients; each byte is an action.
pub fn run(bytes: &[u8]) {
    let mut run = FuzzRun::new(bytes.first().copied().unwrap_or(0));
    let mut rest = bytes.get(1..).unwrap_or_default();
    for _ in 0..ACTIONS_MAX {
        let Some((&action, behind)) = rest.split_first() else { break };
        rest = behind;
        let client = action as usize % CLIENTS;
        let value = rest.first().copied().unwrap_or(0);
        match action / index_u8(CLIENTS) % 12 {
            0 | 1 => run.send(client, &stomp_frames::frame(PHRASES[value as usize % PHRASES.len()])),
            2 => {
                let len = (value as usize).min(rest.len());
                run.send(client, &rest[..len]);
                rest = &rest[len..];
                continue;
            }
            3 | 4 => run.tick(value % SECURITIES),
            5 => run.log(),
            6 => run.acknowledge(client, value),
            7 => run.take(client, value as usize * 8),
            8 => run.wait(value as u64 * value as u64 * NS_PER_MS),
            9 => run.reopen(client, value),
            10 => run.verdict(value),
            _ => run.broker.end(run.now, run.clients[client].id),
        }
        rest = rest.get(1..).unwrap_or_default();
        run.look();
    }
}

/// Any bytes over a WebSocket into a broker, connected as in the service. The first byte chooses
/// where they are cut, and whether a login is required.
pub fn websocket(bytes: &[u8]) {
    let Some((&choice, stream)) = bytes.split_first() else { return };
    // The first client uses WebSocket.
    let mut run = FuzzRun::new(choice & !1 | choice >> 7);
    let mut receiver = Receiver::default();
    for piece in stream.chunks(1 + choice as usize / 2).take(ACTIONS_MAX) {
        let (mut piece, mut payload) = (piece.to_vec(), Vec::new());
        let state = receiver.handle_bytes(&mut piece, |chunk| payload.extend_from_slice(chunk));
        run.send(0, &payload);
        run.look();
        run.verdict(choice);
        run.take(0, usize::MAX);
        run.look();
        let mut pong = Vec::new();
        receiver.poll_pong(&mut pong);
        assert!(pong.len() <= 2 + 125, "a pong is as long as its ping");
        if let WebSocketState::Closing(_) = state {
            return;
        }
    }
}

struct FuzzClient {
    id: SessionId,
    wire: Vec<u8>,
    is_over: bool,
    messages: u64,
}

struct FuzzRun {
    broker: StompBroker,
    now: Timestamp,
    clients: Vec<FuzzClient>,
    asked: Vec<SessionId>,
    seq: u64,
}

impl FuzzRun {
    fn new(choice: u8) -> FuzzRun {
        let now = test_market::start();
        let client_id =
            choice.is_multiple_of(2).then(|| StompAccess { may_send: true, ..StompAccess::default() });
        let settings = BrokerSettings {
            anonymous_access: client_id,
            limits: limits(),
            sessions_max: 8,
            ..BrokerSettings::default()
        };
        let mut broker = StompBroker::new(settings, test_market::reference());
        let clients = (0..CLIENTS).map(|number| client(&mut broker, now, choice >> number)).collect();
        FuzzRun { broker, now, clients, asked: Vec::new(), seq: 0 }
    }

    fn send(&mut self, client: usize, bytes: &[u8]) {
        if self.broker.wants_bytes(self.clients[client].id) {
            self.broker.handle_bytes(self.now, self.clients[client].id, bytes);
        }
    }

    fn acknowledge(&mut self, client: usize, value: u8) {
        let (place, number) = (value % 4, self.clients[client].messages.saturating_sub(value as u64 / 64));
        self.send(
            client,
            &stomp_frames::frame(&format!("ACK|id:{place}-{number}|message-id:{place}-{number}||")),
        );
    }

    fn tick(&mut self, security: u8) {
        self.seq += 1;
        let (bid, bid_size) = (Price::from_raw(self.seq as i64), Qty::from_raw(1));
        let security = SecurityId(security.into());
        let tick = Tick { security, bid, bid_size, at: self.now, ..Tick::default() };
        self.broker.publish_tick(self.now, self.seq, self.now, &tick);
    }

    fn log(&mut self) {
        let event = LogEventPayload { level: LogLevel::Warn, logger: "l", message: "m", fields: &[] };
        self.broker.publish_log_event(self.now, self.now, &event);
    }

    fn wait(&mut self, ns: u64) {
        let end = self.now.plus(ns);
        while let Some(at) = self.broker.poll_timeout().filter(|at| *at <= end) {
            assert!(at > self.now, "time goes on");
            self.now = at;
            self.broker.handle_timeout(at);
            self.look();
        }
        self.now = end;
    }

    fn reopen(&mut self, client: usize, choice: u8) {
        self.broker.close(self.clients[client].id);
        self.clients[client] = self::client(&mut self.broker, self.now, choice);
    }

    fn verdict(&mut self, value: u8) {
        let Some(session) = self.asked.pop() else { return };
        let only = StrategyAccess::Only(vec!["STRATEGY1".to_string()]);
        let access = match value % 4 {
            0 => None,
            1 => Some(StompAccess { strategies: only, may_send: false }),
            _ => Some(StompAccess { strategies: StrategyAccess::All, may_send: true }),
        };
        self.broker.handle_login_result(self.now, session, access);
    }

    fn take(&mut self, client: usize, most: usize) {
        let FuzzRun { broker, now, clients, .. } = self;
        let client = &mut clients[client];
        let Some(transmit) = broker.transmit(client.id) else { return };
        assert_eq!(transmit.frames().map(<[u8]>::len).sum::<usize>(), transmit.bytes.len());
        let bytes = transmit.bytes[..transmit.bytes.len().min(most)].to_vec();
        broker.handle_transmitted(*now, client.id, bytes.len());
        client.wire.extend_from_slice(&bytes);
        for frame in stomp_frames::frames(&mut client.wire) {
            assert!(!client.is_over, "after the last frame came {frame}");
            client.is_over = frame.starts_with("ERROR");
            let id = frame.split_once("message-id:").and_then(|(_, id)| id.split_once('|'));
            if let Some((_, number)) = id.and_then(|(id, _)| id.split_once('-')) {
                let number: u64 = number.parse().expect("we wrote it");
                assert!(number > client.messages, "message numbers rise");
                client.messages = number;
            }
        }
    }

    /// Checks the invariants.
    fn look(&mut self) {
        while let Some(command) = self.broker.poll_command() {
            match command {
                BrokerCommand::Login { session, .. } => self.asked.push(session),
                BrokerCommand::Generic { name, body, .. } => {
                    self.broker.publish_generic_event(self.now, &name, &body)
                }
                BrokerCommand::Watch { .. } => {}
            }
        }
        while self.broker.poll_active().is_some() {}
        for client in 0..self.clients.len() {
            let id = self.clients[client].id;
            let Some((state, _, fill)) = self.broker.session_status(id) else { continue };
            // One frame may exceed the watermark; receipts and the ERROR are not held back.
            assert!(state != StompState::Connected || fill.out_bytes <= 80_000, "{fill:?}");
            let limits = limits();
            assert!(fill.slots <= limits.slots_max && fill.backlog <= limits.backlog_max, "{fill:?}");
            assert!(fill.backlog_bytes <= limits.backlog_bytes_max, "{fill:?}");
            assert!(fill.subscriptions <= limits.subscriptions_max as usize, "{fill:?}");
            if let Some(StompClose::Graceful(_) | StompClose::Immediate(_)) =
                self.broker.poll_close(self.now, id)
            {
                self.reopen(client, 0);
            }
        }
    }
}

fn client(broker: &mut StompBroker, now: Timestamp, choice: u8) -> FuzzClient {
    let transport = if choice.is_multiple_of(2) { Transport::WebSocket } else { Transport::Tcp };
    let id = broker.open(now, transport).expect("there is room for a few");
    FuzzClient { id, wire: Vec::new(), is_over: false, messages: 0 }
}
