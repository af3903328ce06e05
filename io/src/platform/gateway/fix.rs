//! FIX over TCP and TLS: the sessions of this thread, between its sockets and its lanes.
//!
//! ```text
//! Accepted ─► PendingLogons ─ Logon, password ─┬─► FixClient: FixSession ─ ClientRequest ─► Desk ─► port      Event ─► Desk ─► FixSession ─► poll: one write
//!                                              └─► another gateway, which owns the session
//! ```
//!
//! A session belongs to one gateway permanently; a gateway that accepts a connection for another
//! hands it over. Output stays in the session until the socket has taken it.

mod client;
mod pending_logons;
mod logins;
mod recovery;
mod reports;
mod rows;
mod seating;
mod latency;

use std::collections::BTreeSet;
use std::sync::Arc;

use pitlane_engine::desk::{Desk, DeskSettings};
use pitlane_engine::id::PortId;
use pitlane_engine::mesh::PortEnd;
use pitlane_engine::reason::Reason;
use pitlane_engine::refdata::RefData;
use pitlane_engine::time::{NS_PER_MS, Timestamp};
use pitlane_protocols::fix::session::{DisconnectReason, FixSessionState};

use self::client::{DriveOutcome, FixClient};
use self::latency::FixLatency;
use self::pending_logons::{PendingLogons, PendingLogonsFull};
use self::recovery::EarlyEvent;
pub use self::recovery::{SessionRecovery, Unreported};
use crate::auth::{AuthClient, RevocationWatch};
use crate::fix::handoff::ConnectionHandoff;
use crate::fix::message_log::{self, MessageDirection};
use crate::fix::session_registry::{SessionAssignments, SessionRegistry};
use crate::fix::settings::{ConnectionEnds, FixSettings};
use crate::log::LineLimit;
use crate::net::ConnectionId;
use crate::net::event::SocketEvent;
use crate::net::sockets::Sockets;
use crate::notifications::{Kind, Notification};
use crate::pages::LARGE_PAGES;
use crate::stages::LatencyRecorder;

/// Maximum time for the final messages of all sessions when the service stops; then the connections
/// are closed.
const WIND_DOWN_NS_MAX: u64 = 1_500 * NS_PER_MS;

/// The parts of this thread's FIX endpoint.
#[derive(Debug)]
pub struct FixParts {
    pub gateway: u8,
    pub port: PortId,
    pub shards: u8,
    pub settings: Arc<FixSettings>,
    pub homes: Arc<SessionAssignments>,
    pub ledger: SessionRegistry,
    pub reference: Arc<RefData>,
    pub past: SessionRecovery,
    pub passage: ConnectionHandoff,
    pub clerk: message_log::FixLogHandle,
    pub seat: AuthClient,
    /// Id numbers for cancels that the platform itself issues.
    pub numbers: pitlane_engine::desk::IdBlock,
}

#[derive(Debug)]
pub struct FixEndpoint {
    gateway: u8,
    port: PortId,
    settings: Arc<FixSettings>,
    homes: Arc<SessionAssignments>,
    ledger: SessionRegistry,
    reference: Arc<RefData>,
    past: SessionRecovery,
    passage: ConnectionHandoff,
    clerk: message_log::FixLogHandle,
    seat: AuthClient,
    /// Detects revoked logins of open sessions.
    roll: RevocationWatch,
    desk: Desk,
    lobby: PendingLogons,
    /// By session number minus one. `None` for a known session without any activity since the
    /// start.
    clients: Vec<Option<Box<FixClient>>>,
    /// Sessions whose store cannot be read.
    broken: BTreeSet<u16>,
    /// Rate limit of log lines about connections.
    lines: LineLimit,
    /// By slot of the connection: the session number.
    seats: Vec<Option<(ConnectionId, u16)>>,
    /// Sessions with work to do, each once.
    active: Vec<u16>,
    working: Vec<u16>,
    /// Earliest deadline of any session, or an earlier time.
    deadline: Timestamp,
    ready: bool,
    /// When all sessions started to be logged out.
    ending: Option<Timestamp>,
    watch: FixLatency,
    /// Notifications for the other threads. A few per session, taken in every cycle.
    notes: Vec<Notification>,
    /// Events that arrive before the snapshots of all shards are complete. Reports are sent in the
    /// order of their events, and the unreported events from before the restart come first. No
    /// client is connected yet, so there are few: what a shard had left to do when the process last
    /// ended.
    early: Option<Vec<EarlyEvent>>,
}

/// Maximum number of orders of one gateway's sessions, including finished ones, and of the ids that
/// refer to them.
const ORDERS_MAX: u32 = 1 << 20;
const IDS_MAX: u32 = 1 << 21;
const FINISHED_MAX: u32 = 1 << 16;

impl FixEndpoint {
    /// Takes new reference data, which are effective in all shards.
    pub fn set_reference(&mut self, reference: &Arc<RefData>) {
        self.reference = reference.clone();
        self.clients.iter_mut().flatten().for_each(|client| client.session.set_reference(reference.clone()));
    }

    /// Registers all sessions by name. The first Logon, or the first report, opens a session's
    /// store.
    pub fn new(now: Timestamp, parts: FixParts) -> Result<FixEndpoint, crate::journal::Fault> {
        let FixParts {
            gateway,
            port,
            shards,
            settings,
            homes,
            ledger,
            reference,
            past,
            passage,
            clerk,
            seat,
            numbers,
        } = parts;
        let desk = DeskSettings {
            port,
            shards,
            orders_max: ORDERS_MAX,
            ids_max: IDS_MAX,
            finished_max: FINISHED_MAX,
            prefix: b'f',
            seed: settings.instance ^ now.0,
            pages: LARGE_PAGES,
        };
        let mut room = FixEndpoint {
            gateway,
            port,
            homes: homes.clone(),
            ledger,
            reference,
            past,
            passage,
            clerk,
            roll: seat.roll(),
            seat,
            desk: Desk::new(desk, numbers),
            lobby: PendingLogons::default(),
            clients: Vec::new(),
            broken: BTreeSet::new(),
            lines: LineLimit::default(),
            seats: Vec::new(),
            active: Vec::new(),
            working: Vec::new(),
            deadline: Timestamp::MAX,
            ready: false,
            ending: None,
            watch: FixLatency::default(),
            notes: Vec::new(),
            early: Some(Vec::new()),
            settings: settings.clone(),
        };
        let singles = settings.families.iter().filter_map(|family| family.name(family.single()?));
        for name in singles.filter(|name| homes.gateway(name) == gateway) {
            room.ledger.number(&name)?;
        }
        room.name_all();
        Ok(room)
    }

    pub fn owns(&self, id: ConnectionId) -> bool {
        self.lobby.has(id) || self.number_of(id).is_some()
    }

    pub fn handle(
        &mut self,
        now: Timestamp,
        sockets: &mut Sockets,
        happening: SocketEvent,
        port: u16,
        recorder: Option<&mut LatencyRecorder>,
    ) {
        match happening {
            SocketEvent::Accepted { id, peer, .. } => {
                let arrival = ConnectionEnds { peer: peer.ip(), port };
                if self.ending.is_some() {
                    return sockets.close(id);
                }
                match self.lobby.enter(id, arrival) {
                    Ok(None) => {}
                    Ok(Some(evicted)) => {
                        self.lobby.refused += 1;
                        sockets.close(evicted);
                    }
                    Err(PendingLogonsFull) => {
                        self.lobby.refused += 1;
                        return sockets.close(id);
                    }
                }
                sockets.set_deadline(id, Some(now.plus(self.settings.logon_ns_max)));
            }
            SocketEvent::Received { id } if self.lobby.has(id) => self.greet(now, sockets, id),
            SocketEvent::Received { id } => {
                self.watch.came(recorder);
                self.receive(now, sockets, id);
            }
            SocketEvent::Drained { id } => {
                if let Some(number) = self.number_of(id) {
                    self.wake(number);
                }
            }
            // Only a connection with a pending Logon has a socket deadline.
            SocketEvent::Timeout { id } => {
                if self.lobby.leave(id).is_some() {
                    self.lobby.refused += 1;
                    sockets.close(id);
                }
            }
            SocketEvent::Closed { id, .. } => self.lose(now, id),
            SocketEvent::EndOfCycle => {}
        }
    }

    /// Returns the notifications since the last call.
    pub fn take_notes(&mut self) -> Vec<Notification> {
        std::mem::take(&mut self.notes)
    }

    /// Handles requests of other threads: an operator ends a session or resets its sequence
    /// numbers.
    pub fn handle_note(&mut self, now: Timestamp, note: &Notification) {
        let (number, resets) = match *note {
            Notification::Kick { kind: Kind::Fix, number } => (number as u16, false),
            Notification::Reset { number } => (number as u16, true),
            _ => return,
        };
        if resets {
            self.open(now, number);
        }
        let Some(client) = client_of(&mut self.clients, number) else { return };
        if resets {
            client.session.reset(now);
        } else {
            client.session.log_out(now, b"Ended by the operator", DisconnectReason::EndedByUs);
        }
        self.wake(number);
    }

    /// Sets whether orders are accepted.
    pub fn set_ready(&mut self, ready: bool) {
        if self.ready != ready {
            self.ready = ready;
            self.clients.iter_mut().flatten().for_each(|client| client.session.set_ready(ready));
        }
    }

    /// Does what is due, sends requests to the shards and writes output. `port` is present while
    /// the shards accept commands.
    pub fn poll(
        &mut self,
        now: Timestamp,
        sockets: &mut Sockets,
        mut port: Option<&mut PortEnd>,
        mut recorder: Option<&mut LatencyRecorder>,
    ) -> usize {
        self.adopt(now, sockets);
        self.hear_verdicts(now, sockets);
        self.revoke(now);
        self.log_left_out(now);
        if now >= self.deadline {
            self.look_at_all(now);
        }
        let mut work = 0;
        if let Some(port) = port.as_deref_mut() {
            work += self.desk.poll(port);
        }
        std::mem::swap(&mut self.active, &mut self.working);
        for at in 0..self.working.len() {
            work += self.drive(now, self.working[at], sockets, port.as_deref_mut(), recorder.as_deref_mut());
        }
        self.working.clear();
        self.cut_off(now, sockets);
        work
    }

    /// Returns whether requests wait for a free slot of a lane.
    pub fn is_waiting(&self) -> bool {
        self.desk.has_requests() || self.clients.iter().flatten().any(|client| client.held.is_some())
    }

    pub fn deadline(&self) -> Timestamp {
        let cut = self.ending.map_or(Timestamp::MAX, |since| since.plus(WIND_DOWN_NS_MAX));
        self.deadline.min(cut)
    }

    /// Logs all sessions out, with a reason.
    pub fn wind_down(&mut self, now: Timestamp) {
        self.ending = Some(now);
        for number in 1..=self.clients.len() as u16 {
            if let Some(client) = client_of(&mut self.clients, number)
                && client.connection.is_some()
            {
                client.session.log_out(now, b"The service stops", DisconnectReason::EndedByUs);
                self.wake(number);
            }
        }
    }

    pub fn is_done(&self) -> bool {
        self.seats.iter().all(Option::is_none) && self.lobby.is_empty()
    }

    fn receive(&mut self, now: Timestamp, sockets: &mut Sockets, id: ConnectionId) {
        let Some(number) = self.number_of(id) else { return };
        let FixEndpoint { clients, clerk, .. } = self;
        let Some(client) = client_of(clients, number) else { return };
        let bytes = sockets.input(id);
        let taken = client.session.handle_bytes(now, bytes);
        if client.logged {
            clerk.log(number, MessageDirection::In, now, &bytes[..taken]);
        }
        if taken < bytes.len() {
            sockets.pause(id);
            client.paused = true;
        }
        client.bytes_in += taken as u64;
        sockets.consume(id, taken);
        self.wake(number);
    }

    /// Does all pending work of one session.
    fn drive(
        &mut self,
        now: Timestamp,
        number: u16,
        sockets: &mut Sockets,
        port: Option<&mut PortEnd>,
        mut recorder: Option<&mut LatencyRecorder>,
    ) -> usize {
        let FixEndpoint { clients, desk, clerk, watch, .. } = self;
        let Some(client) = client_of(clients, number) else { return 0 };
        client.queued = false;
        let DriveOutcome { work, again } =
            client.drive(now, desk, port, &mut watch.at(recorder.as_deref_mut()));
        let (mut work, mut again) = (work, again);
        if let Some(id) = client.connection {
            let begun = watch.writes(recorder.as_deref());
            let written = client.write(now, number, id, sockets, clerk);
            watch.wrote(begun.filter(|_| written > 0), recorder);
            // Written bytes free buffer space for output that was held back.
            again |= written > 0;
            work += written;
            if client.paused && client.session.wants_bytes() {
                client.paused = false;
                sockets.resume(id);
            }
            if let Some(ending) = client.session.poll_close() {
                let name = client.name.clone();
                if self.may_log(now) {
                    tracing::info!(session = name, ?ending, "FIX session ended");
                }
                sockets.finish(id);
                self.lose(now, id);
                return work + 1;
            }
        }
        let Some(client) = client_of(&mut self.clients, number) else { return work };
        self.notes.extend(client.news());
        self.deadline = self.deadline.min(client.session.poll_timeout().unwrap_or(Timestamp::MAX));
        if again {
            self.wake(number);
        }
        work
    }

    /// Handles a lost connection; the session remains.
    fn lose(&mut self, now: Timestamp, id: ConnectionId) {
        if self.lobby.leave(id).is_some() {
            return;
        }
        let Some(number) = self.number_of(id) else { return };
        self.seats[id.slot()] = None;
        if let Some(client) = client_of(&mut self.clients, number) {
            let lost = (client.session.state() != FixSessionState::Closing).then(|| client.name.clone());
            client.disconnect(now);
            self.notes.extend(client.news());
            self.deadline = self.deadline.min(client.session.poll_timeout().unwrap_or(Timestamp::MAX));
            if let Some(name) = lost.filter(|_| self.may_log(now)) {
                tracing::info!(session = name, "FIX connection lost");
            }
        }
    }

    fn look_at_all(&mut self, now: Timestamp) {
        self.deadline = Timestamp::MAX;
        for number in 1..=self.clients.len() as u16 {
            let Some(client) = client_of(&mut self.clients, number) else { continue };
            match client.session.poll_timeout() {
                Some(due) if due <= now => {
                    client.session.handle_timeout(now);
                    self.wake(number);
                }
                Some(due) => self.deadline = self.deadline.min(due),
                None => {}
            }
        }
    }

    /// Closes the connections that have not answered the Logout in time.
    fn cut_off(&mut self, now: Timestamp, sockets: &mut Sockets) {
        let Some(since) = self.ending else { return };
        for id in self.lobby.drain() {
            sockets.close(id);
        }
        if now < since.plus(WIND_DOWN_NS_MAX) {
            return;
        }
        for slot in 0..self.seats.len() {
            if let Some((id, _)) = self.seats[slot] {
                sockets.close(id);
                self.lose(now, id);
            }
        }
    }

    fn wake(&mut self, number: u16) {
        if let Some(client) = client_of(&mut self.clients, number)
            && !client.queued
        {
            client.queued = true;
            self.active.push(number);
        }
    }

    fn number_of(&self, id: ConnectionId) -> Option<u16> {
        self.seats.get(id.slot()).copied().flatten().filter(|(seat, _)| *seat == id).map(|(_, number)| number)
    }
}

fn client_of(clients: &mut [Option<Box<FixClient>>], number: u16) -> Option<&mut FixClient> {
    clients.get_mut((number as usize).checked_sub(1)?)?.as_deref_mut()
}

/// Returns whether the lane was full. That is no refusal: the request is sent again.
fn is_full(reason: Reason) -> bool {
    reason == Reason::LaneFull
}
