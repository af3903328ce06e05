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
mod disconnect;
mod drop_copy;
mod pending_logons;
mod queries;
mod logins;
mod recovery;
mod replacement;
mod reports;
mod rows;
mod attach;
mod latency;
mod market_data;

use std::collections::{BTreeMap, BTreeSet};
use std::ops::RangeInclusive;
use std::sync::Arc;

use pitlane_auth::{AuthClient, RevocationWatch};
use pitlane_config::pages::LARGE_PAGES;
use pitlane_engine::command::TradingSession;
use pitlane_engine::desk::{Desk, DeskSettings};
use pitlane_engine::id::{ExchangeId, PortId};
use pitlane_engine::index::index_u16;
use pitlane_engine::mesh::PortEnd;
use pitlane_engine::reason::Reason;
use pitlane_engine::refdata::RefData;
use pitlane_engine::slot_table::SlotTable;
use pitlane_engine::time::{NS_PER_MS, Timestamp};
use pitlane_net::ConnectionId;
use pitlane_net::event::SocketEvent;
use pitlane_net::sockets::Sockets;
use pitlane_protocols::fix::session::DisconnectReason;
use pitlane_runtime::log::LineLimit;
use pitlane_runtime::stages::LatencyRecorder;

use self::client::{DriveOutcome, FixClient};
use self::drop_copy::DropCopies;
use self::latency::FixLatency;
use self::market_data::FixMarket;
use self::pending_logons::{PendingLogons, PendingLogonsFull};
use self::recovery::EarlyEvents;
pub use self::recovery::{SessionRecovery, Unreported};
use self::replacement::Challenger;
use crate::fix::handoff::ConnectionHandoff;
use crate::fix::message_log::{self, MessageDirection};
use crate::fix::session_registry::{SessionAssignments, SessionRegistry};
use crate::fix::settings::{ConnectionEnds, FixSettings};
use crate::notifications::{Notification, SessionKind};
use crate::stomp::Subscriptions;

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
    pub assignments: Arc<SessionAssignments>,
    pub registry: SessionRegistry,
    pub reference: Arc<RefData>,
    pub recovery: SessionRecovery,
    pub handoff: ConnectionHandoff,
    pub fix_log: message_log::FixLogHandle,
    pub auth: AuthClient,
    /// Id numbers for cancels that the platform itself issues.
    pub numbers: pitlane_engine::desk::IdBlock,
}

#[derive(Debug)]
pub struct FixEndpoint {
    gateway: u8,
    port: PortId,
    settings: Arc<FixSettings>,
    assignments: Arc<SessionAssignments>,
    registry: SessionRegistry,
    reference: Arc<RefData>,
    recovery: SessionRecovery,
    handoff: ConnectionHandoff,
    fix_log: message_log::FixLogHandle,
    auth: AuthClient,
    /// Detects revoked logins of open sessions.
    revocations: RevocationWatch,
    desk: Desk,
    pending_logons: PendingLogons,
    /// Second connections of sessions, at most one for each, while the first one is asked.
    challengers: Vec<Challenger>,
    /// By session number minus one. `None` for a known session without any activity since the
    /// start.
    clients: Vec<Option<Box<FixClient>>>,
    /// Sessions whose store cannot be read.
    broken: BTreeSet<u16>,
    /// Rate limit of log lines about connections.
    log_limit: LineLimit,
    /// Session number of each connection.
    session_numbers: SlotTable<ConnectionId, u16>,
    /// Sessions with work to do, each once.
    active: Vec<u16>,
    working: Vec<u16>,
    /// Earliest deadline of any session, or an earlier time.
    deadline: Timestamp,
    ready: bool,
    /// When all sessions started to be logged out.
    ending_since: Option<Timestamp>,
    latency: FixLatency,
    /// Notifications for the other threads. A few per session, taken in every cycle.
    notifications: Vec<Notification>,
    /// Events that arrive before the snapshots of all shards are complete. Reports are sent in the
    /// order of their events, and the unreported events from before the restart come first. No
    /// client is connected yet, so there are few: what a shard had left to do when the process last
    /// ended, and what venues report meanwhile.
    early: Option<EarlyEvents>,
    /// `None` without a session that receives copies.
    drop_copies: Option<Box<DropCopies>>,
    market: FixMarket,
    /// Trading session of each exchange, as far as it is known.
    trading_sessions: BTreeMap<ExchangeId, TradingSession>,
    /// What the sessions watch on a gateway without a STOMP endpoint.
    market_watches: Subscriptions,
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
        self.market_watches.set_reference(reference);
        self.clients.iter_mut().flatten().for_each(|client| client.session.set_reference(reference.clone()));
    }

    /// Registers all sessions by name. The first Logon, or the first report, opens a session's
    /// store.
    pub fn new(now: Timestamp, parts: FixParts) -> Result<FixEndpoint, pitlane_journal::Fault> {
        let FixParts {
            gateway,
            port,
            shards,
            settings,
            assignments,
            registry,
            reference,
            recovery,
            handoff,
            fix_log,
            auth,
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
        let mut endpoint = FixEndpoint {
            gateway,
            port,
            assignments: assignments.clone(),
            registry,
            recovery,
            handoff,
            fix_log,
            revocations: auth.revocations(),
            auth,
            desk: Desk::new(desk, numbers),
            pending_logons: PendingLogons::default(),
            challengers: Vec::new(),
            clients: Vec::new(),
            broken: BTreeSet::new(),
            log_limit: LineLimit::default(),
            session_numbers: SlotTable::default(),
            active: Vec::new(),
            working: Vec::new(),
            deadline: Timestamp::MAX,
            ready: false,
            ending_since: None,
            latency: FixLatency::default(),
            notifications: Vec::new(),
            early: Some(EarlyEvents::default()),
            drop_copies: None,
            market: FixMarket::default(),
            trading_sessions: BTreeMap::new(),
            market_watches: Subscriptions::new(reference.clone(), false),
            reference,
            settings: settings.clone(),
        };
        let single_names = settings.families.iter().filter_map(|family| family.name(family.single()?));
        for name in single_names.filter(|name| assignments.gateway(name) == gateway) {
            endpoint.registry.number(&name)?;
        }
        endpoint.open_drop_copies(now)?;
        endpoint.publish_names();
        Ok(endpoint)
    }

    pub fn owns(&self, id: ConnectionId) -> bool {
        self.pending_logons.has(id) || self.number_of(id).is_some() || self.is_challenger(id)
    }

    pub fn handle(
        &mut self,
        now: Timestamp,
        sockets: &mut Sockets,
        socket_event: SocketEvent,
        port: u16,
        recorder: Option<&mut LatencyRecorder>,
    ) {
        match socket_event {
            SocketEvent::Accepted { id, peer, .. } => {
                let arrival = ConnectionEnds { peer: peer.ip(), port };
                if self.ending_since.is_some() {
                    return sockets.close(id);
                }
                match self.pending_logons.enter(id, arrival) {
                    Ok(None) => {}
                    Ok(Some(evicted)) => {
                        self.pending_logons.refused += 1;
                        sockets.close(evicted);
                    }
                    Err(PendingLogonsFull) => {
                        self.pending_logons.refused += 1;
                        return sockets.close(id);
                    }
                }
                sockets.set_deadline(id, Some(now.plus(self.settings.logon_ns_max)));
            }
            SocketEvent::Received { id } if self.pending_logons.has(id) => self.read_logon(now, sockets, id),
            SocketEvent::Received { id } => {
                self.latency.received(recorder);
                self.receive(now, sockets, id);
            }
            SocketEvent::Drained { id } => {
                if let Some(number) = self.number_of(id) {
                    self.wake(number);
                }
            }
            // Only a connection with a pending Logon has a socket deadline.
            SocketEvent::Timeout { id } => {
                if self.pending_logons.leave(id).is_some() {
                    self.pending_logons.refused += 1;
                    sockets.close(id);
                }
            }
            SocketEvent::Closed { id, .. } => self.handle_disconnect(now, id),
            SocketEvent::EndOfCycle => {}
        }
    }

    /// Returns the notifications since the last call.
    pub fn take_notifications(&mut self) -> Vec<Notification> {
        std::mem::take(&mut self.notifications)
    }

    /// Handles notifications of other threads: an operator ends a session or resets its sequence
    /// numbers; the http thread answers a query.
    pub fn handle_notification(&mut self, now: Timestamp, notification: &Notification) {
        if self.handle_answer(notification) {
            return;
        }
        let Some((number, resets)) = notification.ended_or_reset(SessionKind::Fix) else { return };
        // No session has a number beyond 16 bits.
        let Ok(number) = u16::try_from(number) else { return };
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
        self.receive_handoffs(now, sockets);
        self.drain_verdicts(now, sockets);
        self.revoke(now);
        self.log_omitted(now);
        if now >= self.deadline {
            self.poll_deadlines(now);
        }
        if !self.challengers.is_empty() {
            self.poll_challengers(now, sockets);
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
        self.close_remaining(now, sockets);
        work
    }

    /// Returns whether requests wait for a free slot of a lane.
    pub fn is_waiting(&self) -> bool {
        self.desk.has_requests()
            || self.market_watches.is_waiting()
            || self.clients.iter().flatten().any(|client| client.held.is_some())
    }

    pub fn deadline(&self) -> Timestamp {
        let end = self.ending_since.map_or(Timestamp::MAX, |since| since.plus(WIND_DOWN_NS_MAX));
        self.deadline.min(end).min(self.next_challenge().unwrap_or(Timestamp::MAX))
    }

    /// Logs all sessions out, with a reason.
    pub fn wind_down(&mut self, now: Timestamp) {
        self.ending_since = Some(now);
        for number in numbers_of(&self.clients) {
            if let Some(client) = client_of(&mut self.clients, number)
                && client.connection.is_some()
            {
                client.session.log_out(now, b"The service stops", DisconnectReason::EndedByUs);
                self.wake(number);
            }
        }
    }

    pub fn is_done(&self) -> bool {
        self.session_numbers.is_empty() && self.pending_logons.is_empty() && self.challengers.is_empty()
    }

    fn receive(&mut self, now: Timestamp, sockets: &mut Sockets, id: ConnectionId) {
        let Some(number) = self.number_of(id) else { return };
        let FixEndpoint { clients, fix_log, .. } = self;
        let Some(client) = client_of(clients, number) else { return };
        let bytes = sockets.input(id);
        let taken = client.session.handle_bytes(now, bytes);
        if client.logged {
            fix_log.log(number, MessageDirection::In, now, &bytes[..taken]);
        }
        if taken < bytes.len() {
            sockets.pause(id);
            client.paused = true;
        }
        client.bytes_in += taken as u64;
        sockets.consume(id, taken);
        if !self.challengers.is_empty() {
            self.refuse_challenger(sockets, number);
        }
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
        let FixEndpoint { clients, desk, latency, .. } = self;
        let Some(client) = client_of(clients, number) else { return 0 };
        client.queued = false;
        let DriveOutcome { work, again } =
            client.drive(now, desk, port, &mut latency.at(recorder.as_deref_mut()));
        let (mut work, mut again) = (work, again);
        self.apply_market_interests(now, number);
        self.pass_position_query(number);
        self.log_unknown_trade(now, number);
        let FixEndpoint { clients, fix_log, latency, .. } = self;
        let Some(client) = client_of(clients, number) else { return work };
        if let Some(id) = client.connection {
            let begun = latency.write_started(recorder.as_deref());
            let written = client.write(now, number, id, sockets, fix_log);
            latency.write_finished(begun.filter(|_| written > 0), recorder);
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
                self.handle_disconnect(now, id);
                return work + 1;
            }
        }
        let Some(client) = client_of(&mut self.clients, number) else { return work };
        self.notifications.extend(client.take_state_change());
        self.deadline = self.deadline.min(client.session.poll_timeout().unwrap_or(Timestamp::MAX));
        if again {
            self.wake(number);
        }
        work
    }

    fn poll_deadlines(&mut self, now: Timestamp) {
        self.deadline = Timestamp::MAX;
        for number in numbers_of(&self.clients) {
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

    fn wake(&mut self, number: u16) {
        if let Some(client) = client_of(&mut self.clients, number) {
            client.queue(number, &mut self.active);
        }
    }

    fn number_of(&self, id: ConnectionId) -> Option<u16> {
        self.session_numbers.get(id).copied()
    }
}

/// Returns the numbers of the sessions that may have a client.
fn numbers_of(clients: &[Option<Box<FixClient>>]) -> RangeInclusive<u16> {
    1..=index_u16(clients.len())
}

fn client_of(clients: &mut [Option<Box<FixClient>>], number: u16) -> Option<&mut FixClient> {
    clients.get_mut((number as usize).checked_sub(1)?)?.as_deref_mut()
}

/// Returns whether the lane was full. That is no refusal: the request is sent again.
fn is_full(reason: Reason) -> bool {
    reason == Reason::LaneFull
}
