//! STOMP over TCP and TLS: the broker of this thread, between its sockets and its lanes.
//!
//! ```text
//! Received ─► BrokerHost: StompBroker ─ watches ─► port            Event ─► StompBroker ─► poll: one write for each client with output
//! ```
//!
//! Output stays in the session until the socket has taken it, so a reader that stops costs at most
//! what the broker's limits allow.

pub mod latency;

use std::net::SocketAddr;
use std::sync::Arc;

use pitlane_engine::event::Event;
use pitlane_engine::id::ShardId;
use pitlane_engine::mesh::PortEnd;
use pitlane_engine::refdata::RefData;
use pitlane_engine::slot_table::SlotTable;
use pitlane_engine::time::{NS_PER_MS, Timestamp};
use pitlane_net::ConnectionId;
use pitlane_net::event::SocketEvent;
use pitlane_net::sockets::Sockets;
use pitlane_protocols::stomp::broker::SessionId;
use pitlane_protocols::stomp::session::{StompClose, Transport};
use pitlane_protocols::stomp::settings::BrokerSettings;

use crate::notifications::{Notification, SessionInfo};
use crate::stomp::{BrokerHost, Logins, MarketWatch};

/// Maximum number of clients written to per cycle: each costs a system call, and a client that has
/// sent an order over FIX meanwhile waits for all of them.
const SESSIONS_PER_CYCLE_MAX: usize = 4;
/// With this many events in a cycle, all clients are written to: at such a rate the output would
/// pile up for waiting clients. More than a market moves at once.
const EVENTS_MANY: usize = 64;
/// Maximum time for the final messages of all sessions when the service stops; then the connections
/// are closed.
const WIND_DOWN_NS_MAX: u64 = 1_500 * NS_PER_MS;

#[derive(Debug)]
pub struct StompEndpoint {
    broker_host: BrokerHost,
    sessions: SlotTable<ConnectionId, SessionId>,
    connections: SlotTable<SessionId, ConnectionId>,
    /// Events since the last cycle.
    events: usize,
    /// Connections whose reading is paused until their session wants bytes again.
    paused: Vec<ConnectionId>,
    /// When all sessions started to be ended.
    ending_since: Option<Timestamp>,
    logins: Logins,
}

impl StompEndpoint {
    /// Takes new reference data, which are effective in all shards.
    pub fn set_reference(&mut self, reference: &Arc<RefData>) {
        self.broker_host.set_reference(reference);
    }

    pub fn new(settings: BrokerSettings, reference: Arc<RefData>, logins: Logins) -> StompEndpoint {
        StompEndpoint {
            broker_host: BrokerHost::new(settings, reference, Transport::Tcp, logins.revocations()),
            sessions: SlotTable::default(),
            connections: SlotTable::default(),
            events: 0,
            paused: Vec::new(),
            ending_since: None,
            logins,
        }
    }

    pub fn owns(&self, id: ConnectionId) -> bool {
        self.session(id).is_some()
    }

    pub fn handle(&mut self, now: Timestamp, sockets: &mut Sockets, socket_event: SocketEvent) {
        match socket_event {
            SocketEvent::Accepted { id, peer, .. } => self.accept(now, sockets, id, peer),
            SocketEvent::Received { id } => self.receive(now, sockets, id),
            SocketEvent::Drained { id } => {
                if let Some(session) = self.session(id) {
                    self.write(now, sockets, session);
                }
            }
            SocketEvent::Closed { id, .. } => self.remove_connection(id),
            // The broker has its own deadlines.
            SocketEvent::Timeout { .. } | SocketEvent::EndOfCycle => {}
        }
    }

    pub fn handle_event(&mut self, now: Timestamp, shard: ShardId, event: &Event) {
        self.events += 1;
        self.broker_host.handle_event(now, shard, event);
    }

    /// Sets what the FIX sessions of this thread want: both endpoints watch through one port.
    pub(crate) fn set_watch_by_fix(&mut self, watch: MarketWatch, on: bool) {
        self.broker_host.set_watch_by_fix(watch, on);
    }

    /// Handles a notification of another thread.
    pub fn handle_notification(&mut self, now: Timestamp, notification: &Notification) {
        self.broker_host.handle_notification(now, notification);
    }

    /// Returns the number of messages sent to all connected clients.
    pub fn messages(&self) -> u64 {
        self.broker_host.messages()
    }

    /// Returns all sessions.
    pub fn rows(&self) -> impl Iterator<Item = SessionInfo> {
        self.broker_host.rows()
    }

    /// Returns the number of sessions closed because the client did not read fast enough.
    pub fn closed_slow(&self) -> u64 {
        self.broker_host.closed_slow()
    }

    /// Does what is due, and writes to the clients with output, in turn. Commands are sent first,
    /// so they are on their way when a client reads a receipt. `port` is present while the shards
    /// accept commands. `send` takes the notifications for other threads.
    pub fn poll(
        &mut self,
        now: Timestamp,
        sockets: &mut Sockets,
        port: Option<&mut PortEnd>,
        mut send: impl FnMut(Notification),
    ) -> usize {
        let verdicts = self.take_verdicts(now) + self.broker_host.revoke(now);
        let StompEndpoint { broker_host, logins, .. } = self;
        if broker_host.broker.poll_timeout().is_some_and(|due| due <= now) {
            broker_host.broker.handle_timeout(now);
        }
        broker_host.dispatch(now, |session, credentials| logins.ask(now, session, credentials));
        while let Some(notification) = broker_host.take_notification() {
            send(notification);
        }
        let mut work = verdicts + port.map_or(0, |port| broker_host.poll_watches(port));
        // A session with more output than one cycle allows is listed again for the next; so is one
        // whose socket takes nothing, which costs no system call.
        let is_burst = std::mem::take(&mut self.events) >= EVENTS_MANY;
        let (mut written, sessions_max) = (0, if is_burst { usize::MAX } else { SESSIONS_PER_CYCLE_MAX });
        for _ in 0..self.broker_host.broker.active_len() {
            if written == sessions_max {
                break;
            }
            let Some(session) = self.broker_host.broker.poll_active() else { break };
            written += self.write(now, sockets, session);
        }
        work += written;
        self.resume_reading(sockets);
        self.close_remaining(now, sockets);
        work
    }

    /// Returns whether commands wait for a free slot of a lane.
    pub fn is_waiting(&self) -> bool {
        self.broker_host.is_waiting()
    }

    pub fn deadline(&self) -> Timestamp {
        let end = self.ending_since.map_or(Timestamp::MAX, |since| since.plus(WIND_DOWN_NS_MAX));
        self.broker_host.broker.poll_timeout().unwrap_or(Timestamp::MAX).min(end)
    }

    /// Ends all sessions, with a reason.
    pub fn wind_down(&mut self, now: Timestamp) {
        self.ending_since = Some(now);
        self.broker_host.end_all(now);
    }

    pub fn is_done(&self) -> bool {
        self.broker_host.is_empty()
    }

    fn accept(&mut self, now: Timestamp, sockets: &mut Sockets, id: ConnectionId, peer: SocketAddr) {
        let session = if self.ending_since.is_none() { self.broker_host.enter(now, peer) } else { None };
        let Some(session) = session else { return sockets.close(id) };
        self.sessions.insert(id, session);
        self.connections.insert(session, id);
    }

    fn receive(&mut self, now: Timestamp, sockets: &mut Sockets, id: ConnectionId) {
        let Some(session) = self.session(id) else { return };
        let bytes = sockets.input(id);
        let count = bytes.len();
        self.broker_host.broker.handle_bytes(now, session, bytes);
        sockets.consume(id, count);
        if !self.broker_host.broker.wants_bytes(session) {
            sockets.pause(id);
            self.paused.push(id);
        }
    }

    /// Handles the results of logins.
    fn take_verdicts(&mut self, now: Timestamp) -> usize {
        let mut work = 0;
        while let Some((session, verdict)) = self.logins.poll() {
            self.broker_host.handle_verdict(now, session, verdict);
            work += 1;
        }
        work
    }

    /// Writes once, and closes the connection if its session has ended. Returns whether the socket
    /// took any bytes.
    fn write(&mut self, now: Timestamp, sockets: &mut Sockets, session: SessionId) -> usize {
        let Some(&id) = self.connections.get(session) else { return 0 };
        let bytes = self.broker_host.broker.transmit(session).map_or(&[][..], |transmit| transmit.bytes);
        // The socket reports a connection that is gone with an event of its own.
        let taken = sockets.write(id, bytes).unwrap_or(0);
        self.broker_host.broker.handle_transmitted(now, session, taken);
        match self.broker_host.broker.poll_close(now, session) {
            Some(StompClose::Graceful(_)) => sockets.finish(id),
            Some(StompClose::Immediate(_)) => sockets.close(id),
            None => return usize::from(taken > 0),
        }
        self.remove_connection(id);
        1
    }

    fn resume_reading(&mut self, sockets: &mut Sockets) {
        let StompEndpoint { paused, broker_host, sessions, .. } = self;
        paused.retain(|id| {
            let session = sessions.get(*id);
            let wants = session.is_some_and(|session| broker_host.broker.wants_bytes(*session));
            if wants {
                sockets.resume(*id);
            }
            session.is_some() && !wants
        });
    }

    /// Closes the connections that have not taken their final output in time.
    fn close_remaining(&mut self, now: Timestamp, sockets: &mut Sockets) {
        if self.ending_since.is_none_or(|since| now < since.plus(WIND_DOWN_NS_MAX)) {
            return;
        }
        for connection in self.sessions.keys() {
            sockets.close(connection);
            self.remove_connection(connection);
        }
    }

    fn remove_connection(&mut self, id: ConnectionId) {
        let Some(session) = self.sessions.remove(id) else { return };
        self.connections.remove(session);
        self.broker_host.leave(session);
    }

    fn session(&self, id: ConnectionId) -> Option<SessionId> {
        self.sessions.get(id).copied()
    }
}

#[cfg(test)]
mod tests;
