//! STOMP over TCP and TLS: the broker of this thread, between its sockets and its lanes.
//!
//! ```text
//! Received ─► BrokerHost: StompBroker ─ watches ─► port            Event ─► StompBroker ─► poll: one write for each client with output
//! ```
//!
//! Output stays in the session until the socket has taken it, so a reader that stops costs at most
//! what the broker's limits allow.

pub mod watch;

use std::net::SocketAddr;
use std::sync::Arc;

use pitlane_engine::event::Event;
use pitlane_engine::id::ShardId;
use pitlane_engine::mesh::PortEnd;
use pitlane_engine::refdata::RefData;
use pitlane_engine::time::{NS_PER_MS, Timestamp};
use pitlane_protocols::stomp::broker::SessionId;
use pitlane_protocols::stomp::session::{StompClose, Transport};
use pitlane_protocols::stomp::settings::BrokerSettings;

use crate::net::ConnectionId;
use crate::net::event::SocketEvent;
use crate::net::sockets::Sockets;
use crate::notifications::{Notification, SessionInfo};
use crate::stomp::{BrokerHost, Logins};

/// Maximum number of clients written to per cycle: each costs a system call, and a client that has
/// sent an order over FIX meanwhile waits for all of them.
const SESSIONS_PER_TURN_MAX: usize = 4;
/// With this many events in a cycle, all clients are written to: at such a rate the output would
/// pile up for those who wait. More than a market moves at once.
const MANY: usize = 64;
/// Maximum time for the final messages of all sessions when the service stops; then the connections
/// are closed.
const WIND_DOWN_NS_MAX: u64 = 1_500 * NS_PER_MS;

#[derive(Debug)]
pub struct StompEndpoint {
    company: BrokerHost,
    /// By slot of the connection.
    seats: Vec<Option<SessionConnection>>,
    /// By slot of the session.
    connections: Vec<Option<ConnectionId>>,
    /// Events since the last cycle.
    heard: usize,
    /// Connections whose reading is paused until their session wants bytes again.
    deaf: Vec<ConnectionId>,
    /// When all sessions started to be ended.
    ending: Option<Timestamp>,
    logins: Logins,
}

#[derive(Clone, Copy, Debug)]
struct SessionConnection {
    connection: ConnectionId,
    session: SessionId,
}

impl StompEndpoint {
    /// Takes new reference data, which are effective in all shards.
    pub fn adopt(&mut self, reference: &Arc<RefData>) {
        self.company.adopt(reference);
    }

    pub fn new(settings: BrokerSettings, reference: Arc<RefData>, logins: Logins) -> StompEndpoint {
        StompEndpoint {
            company: BrokerHost::new(settings, reference, Transport::Tcp, logins.roll()),
            seats: Vec::new(),
            connections: Vec::new(),
            heard: 0,
            deaf: Vec::new(),
            ending: None,
            logins,
        }
    }

    pub fn owns(&self, id: ConnectionId) -> bool {
        self.session(id).is_some()
    }

    pub fn handle(&mut self, now: Timestamp, sockets: &mut Sockets, happening: SocketEvent) {
        match happening {
            SocketEvent::Accepted { id, peer, .. } => self.welcome(now, sockets, id, peer),
            SocketEvent::Received { id } => self.receive(now, sockets, id),
            SocketEvent::Drained { id } => {
                if let Some(session) = self.session(id) {
                    self.write(now, sockets, session);
                }
            }
            SocketEvent::Closed { id, .. } => self.forget(id),
            // The broker has its own deadlines.
            SocketEvent::Timeout { .. } | SocketEvent::EndOfCycle => {}
        }
    }

    pub fn hear(&mut self, now: Timestamp, shard: ShardId, event: &Event) {
        self.heard += 1;
        self.company.hear(now, shard, event);
    }

    /// Handles a notification of another thread.
    pub fn handle_note(&mut self, now: Timestamp, note: &Notification) {
        self.company.handle_note(now, note);
    }

    /// Returns the number of messages sent to all connected clients.
    pub fn messages(&self) -> u64 {
        self.company.messages()
    }

    /// Returns all sessions.
    pub fn rows(&self) -> impl Iterator<Item = SessionInfo> {
        self.company.rows()
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
        let verdicts = self.take_verdicts(now) + self.company.revoke(now);
        let StompEndpoint { company, logins, .. } = self;
        if company.broker.poll_timeout().is_some_and(|due| due <= now) {
            company.broker.handle_timeout(now);
        }
        company.dispatch(now, |session, credentials| logins.ask(now, session, credentials));
        while let Some(note) = company.take_note() {
            send(note);
        }
        let mut work = verdicts + port.map_or(0, |port| company.poll_watches(port));
        // A session with more output than one cycle allows is listed again for the next; so is one
        // whose socket takes nothing, which costs no system call.
        let many = std::mem::take(&mut self.heard) >= MANY;
        let (mut written, most) = (0, if many { usize::MAX } else { SESSIONS_PER_TURN_MAX });
        for _ in 0..self.company.broker.active_len() {
            if written == most {
                break;
            }
            let Some(session) = self.company.broker.poll_active() else { break };
            written += self.write(now, sockets, session);
        }
        work += written;
        self.listen_again(sockets);
        self.cut_off(now, sockets);
        work
    }

    /// Returns whether commands wait for a free slot of a lane.
    pub fn is_waiting(&self) -> bool {
        self.company.is_waiting()
    }

    pub fn deadline(&self) -> Timestamp {
        let cut = self.ending.map_or(Timestamp::MAX, |since| since.plus(WIND_DOWN_NS_MAX));
        self.company.broker.poll_timeout().unwrap_or(Timestamp::MAX).min(cut)
    }

    /// Ends all sessions, with a reason.
    pub fn wind_down(&mut self, now: Timestamp) {
        self.ending = Some(now);
        self.company.end_all(now);
    }

    pub fn is_done(&self) -> bool {
        self.company.is_empty()
    }

    fn welcome(&mut self, now: Timestamp, sockets: &mut Sockets, id: ConnectionId, peer: SocketAddr) {
        let session = if self.ending.is_none() { self.company.enter(now, peer) } else { None };
        let Some(session) = session else { return sockets.close(id) };
        put(&mut self.seats, id.slot(), SessionConnection { connection: id, session });
        put(&mut self.connections, session.slot(), id);
    }

    fn receive(&mut self, now: Timestamp, sockets: &mut Sockets, id: ConnectionId) {
        let Some(session) = self.session(id) else { return };
        let bytes = sockets.input(id);
        let count = bytes.len();
        self.company.broker.handle_bytes(now, session, bytes);
        sockets.consume(id, count);
        if !self.company.broker.wants_bytes(session) {
            sockets.pause(id);
            self.deaf.push(id);
        }
    }

    /// Handles the results of logins.
    fn take_verdicts(&mut self, now: Timestamp) -> usize {
        let mut work = 0;
        while let Some((session, verdict)) = self.logins.poll() {
            self.company.handle_verdict(now, session, verdict);
            work += 1;
        }
        work
    }

    /// Writes once, and closes the connection if its session has ended. Returns whether the socket
    /// took any bytes.
    fn write(&mut self, now: Timestamp, sockets: &mut Sockets, session: SessionId) -> usize {
        let Some(&Some(id)) = self.connections.get(session.slot()) else { return 0 };
        let bytes = self.company.broker.transmit(session).map_or(&[][..], |transmit| transmit.bytes);
        // The socket reports a connection that is gone with an event of its own.
        let taken = sockets.write(id, bytes).unwrap_or(0);
        self.company.broker.handle_transmitted(now, session, taken);
        match self.company.broker.poll_close(now, session) {
            Some(StompClose::Graceful(_)) => sockets.finish(id),
            Some(StompClose::Immediate(_)) => sockets.close(id),
            None => return usize::from(taken > 0),
        }
        self.forget(id);
        1
    }

    fn listen_again(&mut self, sockets: &mut Sockets) {
        let StompEndpoint { deaf, company, seats, .. } = self;
        deaf.retain(|id| {
            let seat = seats.get(id.slot()).and_then(Option::as_ref).filter(|seat| seat.connection == *id);
            let wants = seat.is_some_and(|seat| company.broker.wants_bytes(seat.session));
            if wants {
                sockets.resume(*id);
            }
            seat.is_some() && !wants
        });
    }

    /// Closes the connections that have not taken their final output in time.
    fn cut_off(&mut self, now: Timestamp, sockets: &mut Sockets) {
        if self.ending.is_none_or(|since| now < since.plus(WIND_DOWN_NS_MAX)) {
            return;
        }
        for slot in 0..self.seats.len() {
            if let Some(connection) = self.seats[slot].as_ref().map(|seat| seat.connection) {
                sockets.close(connection);
                self.forget(connection);
            }
        }
    }

    fn forget(&mut self, id: ConnectionId) {
        let Some(session) = self.session(id) else { return };
        self.seats[id.slot()] = None;
        self.connections[session.slot()] = None;
        self.company.leave(session);
    }

    fn session(&self, id: ConnectionId) -> Option<SessionId> {
        let seat = self.seats.get(id.slot())?.as_ref().filter(|seat| seat.connection == id)?;
        Some(seat.session)
    }
}

fn put<T: Clone>(table: &mut Vec<Option<T>>, at: usize, value: T) {
    if table.len() <= at {
        table.resize(at + 1, None);
    }
    table[at] = Some(value);
}

#[cfg(test)]
mod tests;
