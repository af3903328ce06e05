//! A venue for tests: a session that connects to it, one shard, a client that sends orders to the
//! shard, all on one thread under a virtual clock. Bytes of the venue go in as they are cut; the
//! session's output comes out as readable messages.

use std::collections::{BTreeMap, BTreeSet};

use pitlane_dialogue::fix_fields;
use pitlane_engine::command::{Command, CommandKind, StrategyPhase, Trade, WatchTarget};
use pitlane_engine::event::{Alert, Event, EventKind, OrderReport, RequestRefusal, Tick, VenueRequest};
use pitlane_engine::id::{IntId, OrderHandle, Origin, PortId, SecurityId, ShardId, Source};
use pitlane_engine::mesh::{Depths, PortClass, PortEnd, mesh};
use pitlane_engine::number::Qty;
use pitlane_engine::settings::ShardSettings;
use pitlane_engine::shard::Shard;
use pitlane_engine::terms::{Changes, OrderKind, Side, Terms, Tif};
use pitlane_engine::time::Timestamp;
use pitlane_engine::worker::Worker;
use pitlane_protocols::fix::session::{DisconnectReason, FixSession, FixSessionSettings, FixSessionState};
use pitlane_protocols::fix::venue::InitiatorSettings;

use crate::fix::{SharedStore, sent_on};
use crate::test_market;

const CONTROL: PortId = PortId(0);
const VENUE: PortId = PortId(1);
const CLIENT: PortId = PortId(2);

/// Most cycles until everything sent must have been received.
const ROUNDS_MAX: usize = 10_000;

#[derive(Debug)]
pub struct VenueHarness {
    pub now: Timestamp,
    pub session: FixSession,
    pub store: SharedStore,
    pub settings: FixSessionSettings,
    pub venue: InitiatorSettings,
    worker: Worker,
    ports: Vec<PortEnd>,
    /// Bytes sent to the venue and not checked yet.
    wire: Vec<u8>,
    pub closed: Option<DisconnectReason>,
    /// Whether the venue reads.
    pub reads: bool,
    reported_synchronizations: Option<u64>,
    /// Whether instructions reach the session: if not, the process ends before it has stored a
    /// message of them.
    pub instructed: bool,
    never_sent: BTreeSet<OrderHandle>,
    /// Whether the shard is informed of the venue's connection.
    pub informs: bool,
    /// Whether reports reach the shard: if not, the process ends before its journal has them.
    pub stores: bool,
    /// Orders by their first id.
    orders: BTreeMap<String, ReportedState>,
    pub alerts: Vec<Alert>,
    pub refusals: Vec<RequestRefusal>,
    /// The last tick of each security.
    pub ticks: BTreeMap<SecurityId, Tick>,
}

/// What the client knows of its order.
#[derive(Clone, Copy, Debug)]
pub struct ReportedState {
    pub last: OrderReport,
    pub fills: usize,
}

pub fn settings() -> FixSessionSettings {
    let source = Source { origin: Origin::Server, port: VENUE, session: 0xff01 };
    FixSessionSettings { reset_on_logon: false, ..FixSessionSettings::new("PITLANE", "VENUE", source) }
}

impl VenueHarness {
    pub fn new(settings: FixSessionSettings, venue: InitiatorSettings) -> VenueHarness {
        let classes = [PortClass::Control, PortClass::Venue, PortClass::Client];
        let (ports, mut ends) = mesh(&classes, 1, Depths::default());
        let shard = Shard::new(ShardId(0), 1, test_market::reference(), ShardSettings::default());
        let store = SharedStore::new(test_market::start(), 10_000);
        let mut harness = VenueHarness {
            now: test_market::start(),
            session: open(&settings, &venue, &store, BTreeSet::new()),
            store,
            settings,
            venue,
            worker: Worker::new(shard, ends.remove(0)),
            ports,
            wire: Vec::new(),
            closed: None,
            reads: true,
            reported_synchronizations: None,
            instructed: true,
            never_sent: BTreeSet::new(),
            informs: true,
            stores: true,
            orders: BTreeMap::new(),
            alerts: Vec::new(),
            refusals: Vec::new(),
            ticks: BTreeMap::new(),
        };
        harness.send_command(
            CONTROL,
            CommandKind::Watch {
                port: VENUE,
                what: WatchTarget::Venue(test_market::OUTSIDE_ADAPTER),
                on: true,
            },
        );
        harness.send_command(
            CONTROL,
            CommandKind::Watch { port: CLIENT, what: WatchTarget::Everything, on: true },
        );
        for strategy in test_market::STRATEGIES {
            harness.send_command(CONTROL, CommandKind::Phase { strategy, phase: StrategyPhase::Running });
        }
        harness
    }

    /// Kills the process and starts it again: the shard was recovered, the session has its store.
    pub fn restart(&mut self) {
        self.session.disconnect(self.now);
        let never_sent = std::mem::take(&mut self.never_sent);
        self.session = open(&self.settings, &self.venue, &self.store, never_sent);
        self.session.reject_never_sent();
        (self.instructed, self.stores, self.reported_synchronizations) = (true, true, None);
        self.wire.clear();
        self.send_command(
            VENUE,
            CommandKind::Adapter { adapter: test_market::OUTSIDE_ADAPTER, connected: false },
        );
    }

    pub fn connect(&mut self) -> bool {
        self.closed = None;
        self.wire.clear();
        let connected = self.session.wants_connection(self.now) && self.session.connect(self.now);
        self.settle();
        connected
    }

    pub fn disconnect(&mut self) {
        self.session.disconnect(self.now);
        self.settle();
    }

    pub fn is_connected(&self) -> bool {
        self.session.state() != FixSessionState::Disconnected
    }

    /// Delivers bytes of the venue, cut as they are given.
    pub fn bytes(&mut self, bytes: &[u8]) {
        let mut at = 0;
        while at < bytes.len() {
            let taken = self.session.handle_bytes(self.now, &bytes[at..]);
            self.settle();
            if taken == 0 {
                return;
            }
            at += taken;
        }
    }

    pub fn submit(&mut self, id: &str, side: Side, qty: &str, limit: &str) {
        let terms = Terms {
            security: SecurityId(8),
            strategy: test_market::STRATEGIES[1],
            account: test_market::OUTSIDE_ACCOUNT,
            side,
            kind: OrderKind::Limit,
            qty: test_market::qty(qty),
            limit: test_market::price(limit),
            limit_given: true,
            tif: Tif::Gtc,
            ..Terms::default()
        };
        self.send_command(CLIENT, CommandKind::Submit { id: int_id(id), terms });
    }

    /// Submits a stop order, good for `until_ns` nanoseconds or until it is cancelled.
    pub fn submit_stop(&mut self, id: &str, side: Side, qty: &str, stop: &str, until_ns: Option<u64>) {
        let terms = Terms {
            security: SecurityId(8),
            strategy: test_market::STRATEGIES[1],
            account: test_market::OUTSIDE_ACCOUNT,
            side,
            kind: OrderKind::Stop,
            qty: test_market::qty(qty),
            stop: test_market::price(stop),
            stop_given: true,
            tif: if until_ns.is_some() { Tif::Gtd } else { Tif::Gtc },
            tif_date: until_ns.map_or(Timestamp::ZERO, |ns| self.now.plus(ns)),
            ..Terms::default()
        };
        self.send_command(CLIENT, CommandKind::Submit { id: int_id(id), terms });
    }

    /// Lets the market of the security trade at this price.
    pub fn trade(&mut self, price: &str) {
        let trade = Trade { price: test_market::price(price), size: test_market::qty("1"), at: self.now };
        self.send_command(CONTROL, CommandKind::Trade { security: SecurityId(8), trade });
    }

    pub fn cancel(&mut self, id: &str, order: &str) {
        let order = self.handle(order);
        self.send_command(CLIENT, CommandKind::Cancel { order, id: int_id(id) });
    }

    /// Closes the whole position that the orders of this test make.
    pub fn close(&mut self, id: &str) {
        self.send_command(
            CLIENT,
            CommandKind::Close {
                id: int_id(id),
                strategy: test_market::STRATEGIES[1],
                account: test_market::OUTSIDE_ACCOUNT,
                security: SecurityId(8),
                qty: Qty::ZERO,
            },
        );
    }

    pub fn replace(&mut self, id: &str, order: &str, qty: &str) {
        let order = self.handle(order);
        let changes = Changes::default().with_qty(test_market::qty(qty));
        self.send_command(CLIENT, CommandKind::Modify { order, id: int_id(id), changes });
    }

    /// Returns what the client knows of the order with this first id.
    pub fn order(&self, id: &str) -> Option<&ReportedState> {
        self.orders.get(id)
    }

    fn handle(&self, id: &str) -> OrderHandle {
        self.orders.get(id).map_or(OrderHandle::NONE, |known| known.last.order)
    }

    fn send_command(&mut self, port: PortId, body: CommandKind) {
        let origin = if port == CLIENT { Origin::Fix } else { Origin::Server };
        let command = Command::new(Source { origin, port, session: 1 }, 1, body);
        self.ports[port.0 as usize].send(ShardId(0), command).expect("the lane is empty");
        self.settle();
    }

    /// Advances the time, and fires every timer at its time.
    pub fn wait(&mut self, ns: u64) {
        let until = self.now.plus(ns);
        while let Some(at) = self.session.poll_timeout().filter(|&at| at <= until) {
            if self.session.state() == FixSessionState::Disconnected {
                break;
            }
            self.now = self.now.max(at);
            self.session.handle_timeout(self.now);
            self.settle();
        }
        self.now = until;
        self.settle();
    }

    /// Runs all parts until none of them has work.
    pub fn settle(&mut self) {
        for _ in 0..ROUNDS_MAX {
            let mut work = self.worker.poll(self.now);
            work += self.drain_events();
            work += self.report();
            work += self.transmit();
            if work == 0 {
                return;
            }
        }
        panic!("it does not come to rest");
    }

    fn drain_events(&mut self) -> usize {
        let mut work = 0;
        while let Some((shard, event)) = self.ports[VENUE.0 as usize].poll_event() {
            work += 1;
            let EventKind::ToVenue(instruction) = &event.body else { continue };
            if self.instructed {
                self.session.handle_instruction(self.now, shard, event.seq, instruction);
            } else if instruction.request == VenueRequest::New {
                self.never_sent.insert(instruction.order);
            }
        }
        while let Some((_, event)) = self.ports[CLIENT.0 as usize].poll_event() {
            work += 1;
            self.note(&event);
        }
        while self.ports[CONTROL.0 as usize].poll_event().is_some() {
            work += 1;
        }
        work
    }

    fn note(&mut self, event: &Event) {
        if let EventKind::Alert { alert, .. } = &event.body {
            self.alerts.push(*alert);
        } else if let EventKind::Tick(tick) = &event.body {
            self.ticks.insert(tick.security, *tick);
        } else if let EventKind::Refused(refusal) = &event.body {
            self.refusals.push(*refusal);
            let known = self.orders.values_mut().find(|known| known.last.order == refusal.order);
            known.into_iter().for_each(|known| known.last.status = refusal.status);
        }
        let Some(report) = event.report() else { return };
        let fill = usize::from(report.last_qty.is_positive());
        let known = self.orders.values_mut().find(|known| known.last.order == report.order);
        match known {
            Some(known) => (known.last, known.fills) = (report, known.fills + fill),
            None => {
                _ = self.orders.insert(report.id.to_string(), ReportedState { last: report, fills: fill })
            }
        }
    }

    /// Works like an endpoint of the gateway: reports first, then whether the venue can be reached.
    fn report(&mut self) -> usize {
        let mut work = 0;
        loop {
            let report = self.session.poll_report(self.now);
            if let Some(body) = if report.is_none() { self.session.poll_price() } else { None } {
                work += 1;
                let command = Command::new(self.settings.source, 0, body);
                self.ports[VENUE.0 as usize].send(ShardId(0), command).expect("the lane has room");
                self.worker.poll(self.now);
                continue;
            }
            let Some(report) = report else { break };
            work += 1;
            if !self.stores {
                continue;
            }
            let source = self.settings.source;
            let body = CommandKind::Report { order: report.order, report: report.report };
            let sent = self.ports[VENUE.0 as usize].send(ShardId(0), Command::new(source, 0, body));
            sent.expect("the lane has room");
            self.worker.poll(self.now);
            self.session.handle_stored(report.token);
        }
        let touches = self.session.synchronizations();
        if touches != self.reported_synchronizations && self.informs {
            let was_connected = std::mem::replace(&mut self.reported_synchronizations, touches).is_some();
            let states =
                if was_connected && touches.is_some() { &[false, true][..] } else { &[touches.is_some()] };
            for &connected in states {
                let body = CommandKind::Adapter { adapter: test_market::OUTSIDE_ADAPTER, connected };
                let command = Command::new(self.settings.source, 0, body);
                self.ports[VENUE.0 as usize].send(ShardId(0), command).expect("the lane has room");
                work += 1;
            }
        }
        work
    }

    fn transmit(&mut self) -> usize {
        let bytes = self.session.poll_transmit().to_vec();
        if !bytes.is_empty() && self.reads {
            self.session.handle_transmitted(self.now, bytes.len());
            self.wire.extend_from_slice(&bytes);
            return bytes.len();
        }
        if let Some(ending) = self.session.poll_close() {
            self.closed = Some(ending);
            self.session.disconnect(self.now);
            return 1;
        }
        0
    }

    /// Returns the messages sent to the venue since the last call, with `|` for SOH. Each must be
    /// well formed.
    pub fn sent(&mut self) -> Vec<String> {
        sent_on(&mut self.wire)
    }
}

fn open(
    settings: &FixSessionSettings,
    venue: &InitiatorSettings,
    store: &SharedStore,
    never_sent: BTreeSet<OrderHandle>,
) -> FixSession {
    FixSession::initiator(
        settings.clone(),
        venue.clone(),
        Box::new(store.clone()),
        test_market::reference(),
        never_sent,
    )
}

pub fn int_id(text: &str) -> IntId {
    IntId::parse(text.as_bytes()).expect("an id")
}

/// Returns a frame of the venue.
pub fn frame_of(text: &str, number: u64, now: Timestamp) -> Vec<u8> {
    fix_fields::frame_of(text, "VENUE", number, now)
}
