//! A FIX client for tests: one session, one shard, the desk between them, all on one thread under a
//! virtual clock. Bytes go in as they are cut; the session's output comes out as readable messages.

pub mod dialogue;
pub mod translation;

use std::sync::{Arc, Mutex};

use pitlane_dialogue::fix_fields;
pub use pitlane_dialogue::fix_fields::sealed;
use pitlane_engine::command::{
    Command, CommandKind, ExecRef, Quote, StrategyPhase, TradingSession, VenueReport, WatchTarget,
};
use pitlane_engine::desk::{Desk, DeskSettings, IdBlock};
use pitlane_engine::event::{Event, EventKind, ExecType};
use pitlane_engine::id::{IntId, OrderHandle, Origin, PortId, SecurityId, ShardId, Source};
use pitlane_engine::mesh::{Depths, PortClass, PortEnd, mesh};
use pitlane_engine::pages::LargePages;
use pitlane_engine::reason::Reason;
use pitlane_engine::sender::SenderId;
use pitlane_engine::settings::ShardSettings;
use pitlane_engine::shard::Shard;
use pitlane_engine::terms::Changes;
use pitlane_engine::time::{NS_PER_S, Timestamp};
use pitlane_engine::worker::Worker;
use pitlane_protocols::decoded::Decoded;
use pitlane_protocols::fix::entry::ClientRequest;
use pitlane_protocols::fix::fields::{Fields, read};
use pitlane_protocols::fix::frame;
use pitlane_protocols::fix::logon_probe;
use pitlane_protocols::fix::positions::PositionRow;
use pitlane_protocols::fix::session::{
    DisconnectReason, FixSession, FixSessionSettings, FixSessionState, LOGON_BYTES_MAX, LOGON_NS_MAX,
};
use pitlane_protocols::fix::store::{MemoryStore, MessageStore, ReportedEvent, SequenceNumbers, StoreFailed};

use crate::test_market;

const CONTROL: PortId = PortId(0);
const VENUE: PortId = PortId(1);
const CLIENT: PortId = PortId(2);
const REST: PortId = PortId(3);

/// Most cycles until everything sent must have been received.
const ROUNDS_MAX: usize = 10_000;

/// A store that outlives its session, as a file would; it can be made to fail.
#[derive(Clone, Debug)]
pub struct SharedStore(Arc<Mutex<(MemoryStore, bool)>>);

impl SharedStore {
    pub fn new(now: Timestamp, messages_max: usize) -> SharedStore {
        SharedStore(Arc::new(Mutex::new((MemoryStore::with_max(now, messages_max), false))))
    }

    pub fn break_it(&self) {
        self.0.lock().expect("one thread").1 = true;
    }

    fn with<T>(
        &self,
        act: impl FnOnce(&mut MemoryStore) -> Result<T, StoreFailed>,
    ) -> Result<T, StoreFailed> {
        let mut inner = self.0.lock().expect("one thread");
        if inner.1 { Err(StoreFailed) } else { act(&mut inner.0) }
    }
}

impl MessageStore for SharedStore {
    fn sequence_numbers(&self) -> SequenceNumbers {
        self.0.lock().expect("one thread").0.sequence_numbers()
    }

    fn set_sequence_numbers(&mut self, numbers: SequenceNumbers) -> Result<(), StoreFailed> {
        self.with(|store| store.set_sequence_numbers(numbers))
    }

    fn save(&mut self, number: u64, message: &[u8], cause: Option<ReportedEvent>) -> Result<(), StoreFailed> {
        self.with(|store| store.save(number, message, cause))
    }

    fn last_reported_event(&self, shard: ShardId) -> u64 {
        self.0.lock().expect("one thread").0.last_reported_event(shard)
    }

    fn next_message(&self, from: u64, to: u64, into: &mut Vec<u8>) -> Option<u64> {
        self.0.lock().expect("one thread").0.next_message(from, to, into)
    }

    fn reset(&mut self, numbers: SequenceNumbers) -> Result<(), StoreFailed> {
        self.with(|store| store.reset(numbers))
    }

    fn refresh(&mut self) -> Result<(), StoreFailed> {
        self.with(|store| store.refresh())
    }
}

/// Bytes of a connection before its first frame is complete, as the gateway holds them.
#[derive(Debug)]
struct PendingLogon {
    bytes: Vec<u8>,
    until: Timestamp,
}

impl PendingLogon {
    fn new(now: Timestamp) -> PendingLogon {
        PendingLogon { bytes: Vec::new(), until: now.plus(LOGON_NS_MAX) }
    }

    fn handle_bytes(
        &mut self,
        bytes: &[u8],
    ) -> Result<Decoded<logon_probe::LogonProbe<'_>>, DisconnectReason> {
        self.bytes.extend_from_slice(bytes);
        match logon_probe::identify(&self.bytes) {
            Ok(Decoded::Incomplete) if self.bytes.len() > LOGON_BYTES_MAX => Err(DisconnectReason::NotLogon),
            outcome => outcome,
        }
    }
}

#[derive(Debug)]
pub struct FixHarness {
    pub now: Timestamp,
    pub session: FixSession,
    pub store: SharedStore,
    settings: FixSessionSettings,
    desk: Desk,
    worker: Worker,
    ports: Vec<PortEnd>,
    /// A request whose lane was full.
    slot: Option<ClientRequest>,
    /// A connection that has not named its session yet.
    pending_logon: Option<PendingLogon>,
    /// Bytes sent to the client and not checked yet.
    wire: Vec<u8>,
    /// Reason why the last connection was closed.
    pub closed: Option<DisconnectReason>,
    /// Whether the client reads.
    pub reads: bool,
    /// The last order that was entered.
    order: OrderHandle,
    /// Password that is accepted.
    pub password: String,
    execs: u128,
}

pub fn settings() -> FixSessionSettings {
    let source = Source { origin: Origin::Fix, port: CLIENT, session: 7 };
    FixSessionSettings::new("PITLANE", "CLIENT1", source)
}

impl FixHarness {
    pub fn new(settings: FixSessionSettings) -> FixHarness {
        FixHarness::with_store(
            settings,
            SharedStore::new(test_market::start(), 10_000),
            ShardSettings::default(),
        )
    }

    pub fn with_store(settings: FixSessionSettings, store: SharedStore, shard: ShardSettings) -> FixHarness {
        let classes = [PortClass::Control, PortClass::Venue, PortClass::Client, PortClass::Client];
        let (ports, mut ends) = mesh(&classes, 1, Depths::default());
        let shard = Shard::new(ShardId(0), 1, test_market::reference(), shard);
        let desk = DeskSettings {
            port: CLIENT,
            shards: 1,
            orders_max: 4_096,
            ids_max: 16_384,
            finished_max: 1_024,
            prefix: b'd',
            seed: 1,
            pages: LargePages::NONE,
        };
        let mut harness = FixHarness {
            now: test_market::start(),
            session: FixSession::new(settings.clone(), Box::new(store.clone()), test_market::reference()),
            store,
            settings,
            desk: Desk::new(desk, IdBlock { next: 1, end: 1_000_000 }),
            worker: Worker::new(shard, ends.remove(0)),
            ports,
            slot: None,
            pending_logon: None,
            wire: Vec::new(),
            closed: None,
            reads: true,
            order: OrderHandle::NONE,
            password: "secret".to_string(),
            execs: 0,
        };
        harness.send_command(
            CONTROL,
            CommandKind::Watch {
                port: VENUE,
                what: WatchTarget::Venue(test_market::OUTSIDE_ADAPTER),
                on: true,
            },
        );
        for strategy in test_market::STRATEGIES {
            harness.send_command(CONTROL, CommandKind::Phase { strategy, phase: StrategyPhase::Running });
        }
        harness.send_command(
            VENUE,
            CommandKind::Adapter { adapter: test_market::OUTSIDE_ADAPTER, connected: true },
        );
        for security in test_market::SECURITIES {
            harness.quote(security, "99", "101");
        }
        harness
    }

    /// Restarts the service: the shard was recovered, the session has its store.
    pub fn restart(&mut self) {
        self.disconnect();
        self.session =
            FixSession::new(self.settings.clone(), Box::new(self.store.clone()), test_market::reference());
        let desk = DeskSettings {
            port: CLIENT,
            shards: 1,
            orders_max: 4_096,
            ids_max: 16_384,
            finished_max: 1_024,
            prefix: b'd',
            seed: 1,
            pages: LargePages::NONE,
        };
        self.desk = Desk::new(desk, IdBlock { next: 1_000_000, end: 2_000_000 });
        self.send_command(CONTROL, CommandKind::Snapshot { port: CLIENT });
    }

    /// Delivers an event that the shard emitted before a restart and the session has not received.
    pub fn missed(&mut self, event: &Event) {
        self.session.handle_missed_event(self.now, ShardId(0), event, &self.desk);
    }

    pub fn send_command(&mut self, port: PortId, body: CommandKind) {
        let origin = if port == REST { Origin::Rest } else { Origin::Server };
        let command = Command::new(Source { origin, port, session: 1 }, 1, body);
        self.ports[port.0 as usize].send(ShardId(0), command).expect("the lane is empty");
        self.settle();
    }

    pub fn quote(&mut self, security: SecurityId, bid: &str, ask: &str) {
        let size = test_market::qty("100");
        let quote = Quote {
            bid: test_market::price(bid),
            bid_size: size,
            ask: test_market::price(ask),
            ask_size: size,
            at: self.now,
        };
        self.send_command(CONTROL, CommandKind::Quote { security, quote });
    }

    pub fn hours(&mut self, exchange: pitlane_engine::id::ExchangeId, hours: TradingSession) {
        self.send_command(CONTROL, CommandKind::Session { exchange, session: hours });
        self.session.handle_trading_session(exchange, hours);
        self.settle();
    }

    /// Sends a report of the external venue about the last order.
    pub fn venue(&mut self, words: &[&str]) {
        self.execs += 1;
        let report = match words {
            ["accept"] => VenueReport::Accepted,
            ["reject"] => VenueReport::Rejected(Reason::VenueRejected),
            ["fill", qty, price] => VenueReport::Filled {
                exec: ExecRef(self.execs),
                qty: test_market::qty(qty),
                price: test_market::price(price),
            },
            ["cancelled"] => VenueReport::Canceled(Reason::Requested),
            ["cancel"] => VenueReport::Canceled(Reason::VenueCancelled),
            ["expire"] => VenueReport::Expired(Reason::ExpiredDay),
            ["cancel-refused"] => VenueReport::CancelRefused(Reason::VenueRejected),
            ["replaced"] => VenueReport::Replaced,
            ["replace-refused"] => VenueReport::ReplaceRefused(Reason::VenueRejected),
            other => panic!("not a report: {other:?}"),
        };
        self.send_command(VENUE, CommandKind::Report { order: self.order, report });
    }

    /// Answers the client's query of positions.
    pub fn positions(&mut self, rows: Vec<PositionRow>) -> Result<(), String> {
        let query = self.session.poll_position_query().ok_or("the session asks for no positions")?;
        self.session.handle_positions(query.token, rows.into());
        self.settle();
        Ok(())
    }

    /// Changes the order through another interface.
    pub fn elsewhere(&mut self, words: &[&str]) {
        let id = IntId::parse(format!("rest{}", self.now.0 % 1_000_000_007).as_bytes()).expect("an id");
        let order = self.order;
        match words {
            ["cancel"] => self.send_command(REST, CommandKind::Cancel { order, id }),
            ["qty", qty] => {
                let changes = Changes::default().with_qty(test_market::qty(qty));
                self.send_command(REST, CommandKind::Modify { order, id, changes });
            }
            other => panic!("not a change: {other:?}"),
        }
    }

    pub fn connect(&mut self) {
        self.pending_logon = Some(PendingLogon::new(self.now));
        self.closed = None;
        self.wire.clear();
    }

    pub fn disconnect(&mut self) {
        self.pending_logon = None;
        self.session.disconnect(self.now);
    }

    pub fn is_connected(&self) -> bool {
        self.pending_logon.is_some() || !matches!(self.session.state(), FixSessionState::Disconnected)
    }

    /// Delivers bytes from the client, cut as they are given.
    pub fn bytes(&mut self, bytes: &[u8]) {
        let mut rest = bytes.to_vec();
        if let Some(pending_logon) = &mut self.pending_logon {
            let ending = match pending_logon.handle_bytes(&rest) {
                Ok(Decoded::Incomplete) => return,
                Ok(Decoded::Message { message, .. }) if is_ours(&self.settings, &message) => None,
                Ok(Decoded::Message { .. }) => Some(DisconnectReason::Identity),
                Err(ending) => Some(ending),
            };
            let pending_logon = self.pending_logon.take().expect("it was there");
            // A session has one connection; another one is refused.
            let ending =
                ending.or_else(|| (!self.session.connect(self.now)).then_some(DisconnectReason::Identity));
            if ending.is_some() {
                self.closed = ending;
                return;
            }
            rest = pending_logon.bytes;
        }
        let mut at = 0;
        while at < rest.len() {
            let taken = self.session.handle_bytes(self.now, &rest[at..]);
            self.settle();
            if taken == 0 {
                // The session reads no more for now; a socket would hold the rest back.
                return;
            }
            at += taken;
        }
    }

    /// Advances the time, and fires every timer at its time.
    pub fn wait(&mut self, ns: u64) {
        let until = self.now.plus(ns);
        if self.pending_logon.as_ref().is_some_and(|pending_logon| pending_logon.until <= until) {
            self.pending_logon = None;
            self.closed = Some(DisconnectReason::LogonTimeout);
        }
        while let Some(at) = self.session.poll_timeout().filter(|&at| at <= until) {
            self.now = self.now.max(at);
            self.session.handle_timeout(self.now);
            self.settle();
        }
        self.now = until;
    }

    /// Runs all parts until none of them has work.
    pub fn settle(&mut self) {
        for _ in 0..ROUNDS_MAX {
            let mut work = self.worker.poll(self.now);
            work += self.drain_events();
            work += self.ask();
            work += self.transmit();
            if work == 0 {
                return;
            }
        }
        panic!("it does not come to rest");
    }

    fn drain_events(&mut self) -> usize {
        let mut work = 0;
        while let Some((shard, event)) = self.ports[CLIENT.0 as usize].poll_event() {
            work += 1;
            let refusal = self.desk.handle_event(shard, &event);
            self.session.handle_event(self.now, shard, &event, &self.desk);
            if let Some(refusal) = refusal {
                self.session.handle_refusal(self.now, &refusal, &self.desk);
            }
            if let EventKind::Order(order) = event.body
                && order.what == ExecType::Entered
            {
                self.order = order.order;
            }
        }
        for port in [CONTROL, VENUE, REST] {
            while self.ports[port.0 as usize].poll_event().is_some() {
                work += 1;
            }
        }
        work + self.desk.poll(&mut self.ports[CLIENT.0 as usize])
    }

    fn ask(&mut self) -> usize {
        let mut work = 0;
        loop {
            let request = self.slot.take().or_else(|| self.session.poll_command(self.now, &self.desk));
            let Some(request) = request else { break };
            work += 1;
            match request.send(&mut self.desk, &mut self.ports[CLIENT.0 as usize], SenderId::NONE) {
                Ok(id) => {
                    if let ClientRequest::CancelOrders { .. } = request {
                        self.session.handle_mass_cancel_sent(id);
                    }
                }
                Err(declined) if declined.reason == Reason::LaneFull => {
                    self.slot = Some(request);
                    break;
                }
                Err(declined) => self.session.handle_declined(self.now, &request, &declined),
            }
        }
        let password = self.password.clone();
        if let Some(login) = self.session.poll_login() {
            let admitted = login.username == b"me" && login.password == password.as_bytes();
            self.session.handle_login(admitted);
            work += 1;
        }
        work
    }

    fn transmit(&mut self) -> usize {
        if self.reads {
            let bytes = self.session.poll_transmit().to_vec();
            if !bytes.is_empty() {
                self.session.handle_transmitted(self.now, bytes.len());
                self.wire.extend_from_slice(&bytes);
                return bytes.len();
            }
        }
        if let Some(ending) = self.session.poll_close() {
            self.closed = Some(ending);
            self.session.disconnect(self.now);
            return 1;
        }
        0
    }

    /// Returns the messages sent to the client since the last call, with `|` for SOH. Each must be
    /// well formed.
    pub fn sent(&mut self) -> Vec<String> {
        sent_on(&mut self.wire)
    }
}

/// Removes the messages from a wire and returns them, with `|` for SOH. Each must be well formed.
pub fn sent_on(wire: &mut Vec<u8>) -> Vec<String> {
    let mut messages = Vec::new();
    let mut at = 0;
    while at < wire.len() {
        let decoded = frame::decode(&wire[at..], 1_000_000);
        let Ok(Decoded::Message { message, consumed }) = decoded else {
            panic!("not a frame: {}", String::from_utf8_lossy(&wire[at..]))
        };
        let mut fields = Fields::default();
        let message = read(message, &mut fields);
        assert_eq!(message.fault, None, "{}", String::from_utf8_lossy(message.frame.bytes));
        messages.push(String::from_utf8_lossy(message.frame.bytes).replace('\x01', "|"));
        at += consumed;
    }
    wire.clear();
    messages
}

fn is_ours(settings: &FixSessionSettings, greeting: &logon_probe::LogonProbe) -> bool {
    logon_probe::matches_comp_id(&settings.target_comp_id, greeting.sender_comp_id)
        && settings.sender_comp_id.as_bytes() == greeting.target_comp_id
}

/// Returns a frame of the only client.
pub fn frame_of(text: &str, number: u64, now: Timestamp) -> Vec<u8> {
    fix_fields::frame_of(text, "CLIENT1", number, now)
}

/// Converts seconds to nanoseconds.
pub fn seconds(count: u64) -> u64 {
    count * NS_PER_S
}
