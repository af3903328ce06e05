//! The steps of a cycle, in order.
//!
//! ```text
//! readiness ─► accept ─► deadlines ─► read each once ─► gateway ─► end of cycle ─► write each once
//! ```
//!
//! Each step is bounded. A connection is read once per cycle and then waits for the next one, so
//! that a heavy sender does not delay others; and all output of a cycle to one connection leaves in
//! one call.

use std::collections::VecDeque;
use std::net::{SocketAddr, TcpStream};
use std::time::Duration;

use pitlane_engine::index::index_u8;
use pitlane_engine::slot_table::HasSlot;
use pitlane_engine::time::{NS_PER_S, Timestamp};

use super::connection::{Connection, ConnectionPhase, ReadOutcome};
use super::connection_id::ConnectionId;
use super::connection_limits::{LimitReached, PeerLimits};
use super::connections::Connections;
use super::counts::SocketCounts;
use super::deadlines::Deadlines;
use super::driver::SocketRegistrar;
use super::event::{CloseReason, SocketEvent};
use super::input::SpareBuffers;
use super::listener::{AcceptOutcome, ActiveListener, Listener, ListenerId, prepare};
use super::settings::NetSettings;
use super::sockets::Sockets;
use super::tls_connection::TlsSession;
use super::token::{FIRST_LISTENER, FIRST_SLOT, LISTENERS_MAX, ReadyToken, WAKEUP};

/// Maximum number of connections accepted from one listener in one cycle. A burst of connections
/// delays the existing ones by about 20 µs each.
const ACCEPTS_PER_CYCLE_MAX: usize = 16;
/// Maximum number of deadlines handled in one cycle; the others are handled a little later.
const DUE_PER_CYCLE_MAX: usize = 256;
/// Interval at which outputs free unneeded memory.
const SHRINK_INTERVAL_NS: u64 = NS_PER_S;

impl Sockets {
    pub(super) fn new(settings: NetSettings, registrar: SocketRegistrar) -> Sockets {
        Sockets {
            connections: Connections::new(),
            active_listeners: Vec::new(),
            read_queue: VecDeque::new(),
            dirty: Vec::new(),
            unattached: Vec::new(),
            deadlines: Deadlines::default(),
            peer_limits: PeerLimits::new(settings.connections_max, settings.per_peer_max),
            spare: SpareBuffers::new(settings.read_bytes),
            counts: SocketCounts::default(),
            registrar,
            settings,
            now: Timestamp::ZERO,
            shrunk_at: Timestamp::ZERO,
        }
    }

    pub(super) fn listen(&mut self, listener: Listener) -> ListenerId {
        assert!(self.active_listeners.len() < LISTENERS_MAX, "a thread has few listeners");
        self.active_listeners.push(ActiveListener::new(listener));
        ListenerId(index_u8(self.active_listeners.len() - 1))
    }

    /// Returns how long a thread may wait from now on without missing anything.
    pub(super) fn wait_max(&self, now: Timestamp, at_most: Duration) -> Duration {
        let busy = !self.read_queue.is_empty() || !self.dirty.is_empty() || !self.unattached.is_empty();
        if busy || self.active_listeners.iter().any(|active| active.is_open(now)) {
            return Duration::ZERO;
        }
        let paused = self
            .active_listeners
            .iter()
            .filter(|active| active.ready)
            .filter_map(|active| active.paused_until);
        match paused.chain(self.deadlines.next()).min() {
            Some(when) => at_most.min(Duration::from_nanos(when.since(now))),
            None => at_most,
        }
    }

    pub(super) fn run_cycle(
        &mut self,
        ready: &[ReadyToken],
        now: Timestamp,
        mut handle: impl FnMut(&mut Sockets, SocketEvent),
    ) -> usize {
        self.now = now;
        self.attach_pending(&mut handle);
        let wakeups = self.note(ready);
        let work = wakeups + self.accept(&mut handle) + self.expire(&mut handle) + self.receive(&mut handle);
        handle(self, SocketEvent::EndOfCycle);
        let work = work + self.flush(&mut handle);
        self.shrink_outputs();
        work
    }

    fn attach_pending(&mut self, handle: &mut impl FnMut(&mut Sockets, SocketEvent)) {
        for (id, stream) in std::mem::take(&mut self.unattached) {
            let attached = self.registrar.attach(FIRST_SLOT + id.slot(), stream);
            let Some(connection) = self.connections.get_mut(id) else { continue };
            match attached {
                Ok(stream) => connection.stream = stream,
                Err(error) => self.end_connection(id, CloseReason::of(&error), handle),
            }
        }
    }

    /// Records readiness and returns how often the wake-up was triggered. That counts as work: the
    /// waking thread brought something, perhaps after this thread had checked its inputs.
    fn note(&mut self, ready: &[ReadyToken]) -> usize {
        let mut wakeups = 0;
        for ready in ready {
            match ready.token {
                WAKEUP => wakeups += 1,
                token if token < FIRST_SLOT => {
                    if let Some(active) = self.active_listeners.get_mut(token - FIRST_LISTENER) {
                        active.ready = true;
                    }
                }
                token => self.note_connection(token - FIRST_SLOT, ready),
            }
        }
        wakeups
    }

    fn note_connection(&mut self, slot: usize, ready: &ReadyToken) {
        let Some(id) = self.connections.id_at(slot) else { return };
        let Some(connection) = self.connections.get_mut(id) else { return };
        connection.readable |= ready.readable;
        connection.writable |= ready.writable;
        connection.ended |= ready.ended;
        // Reading would show that the peer has gone. A session that pauses must not wait for its
        // own time limits to end.
        connection.lost |= connection.paused && connection.is_open() && !connection.stream.is_connected();
        let is_finishing = connection.phase == ConnectionPhase::Finishing;
        if ready.writable && (connection.has_output() || connection.notify_drained || is_finishing) {
            self.mark_dirty(id);
        }
        self.enqueue_read(id);
    }

    fn accept(&mut self, handle: &mut impl FnMut(&mut Sockets, SocketEvent)) -> usize {
        let mut work = 0;
        for index in 0..self.active_listeners.len() {
            for _ in 0..ACCEPTS_PER_CYCLE_MAX {
                let active = &mut self.active_listeners[index];
                if !active.is_open(self.now) {
                    break;
                }
                work += 1;
                match active.accept(self.now) {
                    AcceptOutcome::Connection(stream, peer) => self.admit(index, stream, peer, handle),
                    AcceptOutcome::Aborted => self.counts.accept_failed += 1,
                    AcceptOutcome::FdLimit => self.counts.refused_no_descriptor += 1,
                    AcceptOutcome::WouldBlock => {
                        self.watch(index);
                        break;
                    }
                }
            }
        }
        work
    }

    /// Requests a notification from the driver after no connection was left to accept.
    fn watch(&mut self, index: usize) {
        let active = &mut self.active_listeners[index];
        if active.ready {
            return;
        }
        let before = active.watch.take();
        let Some(socket) = &active.socket else { return };
        match self.registrar.watch(FIRST_LISTENER + index, socket, before) {
            Ok(watch) => active.watch = Some(watch),
            Err(_) => active.pause(self.now),
        }
    }

    fn admit(
        &mut self,
        index: usize,
        stream: TcpStream,
        peer: SocketAddr,
        handle: &mut impl FnMut(&mut Sockets, SocketEvent),
    ) {
        let active = &self.active_listeners[index];
        let settings = &active.settings;
        if active.connections >= settings.connections_max {
            self.counts.refused_listener += 1;
            return;
        }
        match self.peer_limits.admits(peer.ip()) {
            Err(LimitReached::All) => return self.counts.refused_all += 1,
            Err(LimitReached::Peer) => return self.counts.refused_peer += 1,
            Ok(()) => {}
        }
        let tls = settings.tls.clone().map(TlsSession::new).transpose();
        let (Ok(tls), Ok(())) = (tls, prepare(&stream, &self.settings)) else {
            self.counts.accept_failed += 1;
            return;
        };
        let mut connection = Connection::new(peer, settings.limits);
        let listener = ListenerId(index_u8(index));
        connection.listener = Some(listener);
        let wait_max = if tls.is_some() { settings.handshake } else { settings.first_byte };
        connection.guard = Some(after(self.now, wait_max));
        connection.phase = if tls.is_some() { ConnectionPhase::Handshake } else { ConnectionPhase::Fresh };
        connection.tls = tls.map(Box::new);
        let id = self.connections.insert(connection);
        self.peer_limits.enter(peer.ip());
        self.active_listeners[index].connections += 1;
        self.counts.accepted += 1;
        match self.registrar.attach(FIRST_SLOT + id.slot(), stream) {
            Ok(stream) => {
                let Some(connection) = self.connections.get_mut(id) else { return };
                connection.stream = stream;
                let known = connection.phase != ConnectionPhase::Handshake;
                self.schedule(id);
                if known {
                    handle(self, SocketEvent::Accepted { id, listener, peer });
                }
            }
            Err(_) => {
                self.counts.accept_failed += 1;
                self.remove(id);
            }
        }
    }

    fn expire(&mut self, handle: &mut impl FnMut(&mut Sockets, SocketEvent)) -> usize {
        let now = self.now;
        for count in 0..DUE_PER_CYCLE_MAX {
            let Some(id) = self.deadlines.pop(now) else { return count };
            let Some(connection) = self.connections.get_mut(id) else { continue };
            connection.entry = None;
            if connection.guard.is_some_and(|guard| guard <= now) {
                let reason = if connection.phase == ConnectionPhase::Handshake {
                    CloseReason::HandshakeSlow
                } else {
                    CloseReason::Silent
                };
                self.end_connection(id, reason, handle);
                continue;
            }
            let due = connection.deadline.is_some_and(|deadline| deadline <= now);
            if due {
                connection.deadline = None;
            }
            self.schedule(id);
            if due {
                handle(self, SocketEvent::Timeout { id });
            }
        }
        DUE_PER_CYCLE_MAX
    }

    fn receive(&mut self, handle: &mut impl FnMut(&mut Sockets, SocketEvent)) -> usize {
        let mut work = 0;
        // Connections that join the queue meanwhile are read in the next cycle.
        for _ in 0..self.read_queue.len() {
            let Some(id) = self.read_queue.pop_front() else { break };
            let Some(connection) = self.connections.get_mut(id) else { continue };
            connection.queued = false;
            if !connection.wants_reading() {
                continue;
            }
            work += 1;
            if connection.lost {
                self.end_connection(id, CloseReason::Reset, handle);
                continue;
            }
            match connection.receive(&mut self.spare, self.settings.read_bytes, &mut self.counts) {
                ReadOutcome::Nothing => {}
                ReadOutcome::Bytes => self.handle_received(id, handle),
                ReadOutcome::Over(reason) => self.end_connection(id, reason, handle),
            }
            if let Some(connection) = self.connections.get_mut(id) {
                connection.input.release_if_empty(&mut self.spare);
            }
            self.enqueue_read(id);
        }
        work
    }

    /// Handles received bytes: the handshake continues, or the gateway receives them.
    fn handle_received(&mut self, id: ConnectionId, handle: &mut impl FnMut(&mut Sockets, SocketEvent)) {
        let Some(connection) = self.connections.get_mut(id) else { return };
        if connection.phase == ConnectionPhase::Handshake {
            if connection.tls.as_ref().is_some_and(|tls| tls.is_handshaking()) {
                return self.mark_dirty(id);
            }
            let (peer, listener) = (connection.peer, connection.listener.unwrap_or(ListenerId(0)));
            let first_byte = self.active_listeners[usize::from(listener.0)].settings.first_byte;
            connection.phase = ConnectionPhase::Fresh;
            connection.guard = Some(after(self.now, first_byte));
            connection.stream.acknowledge();
            self.schedule(id);
            handle(self, SocketEvent::Accepted { id, listener, peer });
        }
        let Some(connection) = self.connections.get_mut(id) else { return };
        let (records, bytes) = (connection.has_output(), !connection.input.is_empty());
        if bytes && connection.phase == ConnectionPhase::Fresh {
            connection.phase = ConnectionPhase::Open;
            connection.guard = None;
        }
        let open = connection.is_open();
        if records {
            self.mark_dirty(id);
        }
        if bytes && open {
            handle(self, SocketEvent::Received { id });
        }
    }

    fn flush(&mut self, handle: &mut impl FnMut(&mut Sockets, SocketEvent)) -> usize {
        let mut work = 0;
        // Output appended from here on, by handlers of `Drained`, leaves in the next cycle.
        let mut dirty = std::mem::take(&mut self.dirty);
        for id in dirty.drain(..) {
            let Some(connection) = self.connections.get_mut(id) else { continue };
            connection.dirty = false;
            if !connection.writable {
                continue;
            }
            match connection.flush(&mut self.counts) {
                Ok(count) => {
                    work += usize::from(count > 0);
                    self.handle_flushed(id, handle);
                }
                Err(error) => self.broken(id, CloseReason::of(&error), handle),
            }
        }
        // Keeps the allocation of the drained list.
        dirty.append(&mut self.dirty);
        self.dirty = dirty;
        work
    }

    fn handle_flushed(&mut self, id: ConnectionId, handle: &mut impl FnMut(&mut Sockets, SocketEvent)) {
        let Some(connection) = self.connections.get_mut(id) else { return };
        if connection.has_output() {
            if connection.writable {
                self.mark_dirty(id);
            }
            return;
        }
        let is_finishing = connection.phase == ConnectionPhase::Finishing;
        if is_finishing || connection.notify_drained {
            match connection.stream.is_sending() {
                // The driver reports when the system has accepted the rest.
                Ok(true) => return,
                Ok(false) => {}
                Err(error) => return self.broken(id, CloseReason::of(&error), handle),
            }
        }
        if is_finishing {
            connection.stream.shutdown_write();
            connection.phase = ConnectionPhase::Lingering;
            if connection.end_seen {
                self.remove(id);
            }
            return;
        }
        // While the handshake is not complete there was nothing to drain.
        if connection.is_open()
            && !connection.is_handshaking()
            && std::mem::take(&mut connection.notify_drained)
        {
            handle(self, SocketEvent::Drained { id });
        }
    }

    /// Handles a failed write. Bytes that the peer sent before are still read; after that, or if
    /// reading is paused or the connection is finishing, it is closed.
    fn broken(
        &mut self,
        id: ConnectionId,
        reason: CloseReason,
        handle: &mut impl FnMut(&mut Sockets, SocketEvent),
    ) {
        let Some(connection) = self.connections.get_mut(id) else { return };
        connection.broken = Some(reason);
        connection.output.clear();
        if connection.paused || !connection.is_open() {
            return self.end_connection(id, reason, handle);
        }
        connection.readable = true;
        self.enqueue_read(id);
    }

    /// Handles a failed write of the gateway itself: the close is reported in the next cycle.
    pub(super) fn fail_write(&mut self, id: ConnectionId, reason: CloseReason) {
        let Some(connection) = self.connections.get_mut(id) else { return };
        connection.broken = Some(reason);
        (connection.paused, connection.readable) = (false, true);
        self.enqueue_read(id);
    }

    /// Ends a connection for a reason other than the gateway.
    fn end_connection(
        &mut self,
        id: ConnectionId,
        reason: CloseReason,
        handle: &mut impl FnMut(&mut Sockets, SocketEvent),
    ) {
        let Some(connection) = self.connections.get_mut(id) else { return };
        let (known, closing) = (connection.is_open(), connection.is_closing());
        connection.end_seen = true;
        // A close is answered by one where the protocol has it; and answers to earlier messages are
        // still sent.
        let has_more_to_send = connection.has_output() || connection.tls.is_some();
        if known && reason == CloseReason::ByPeer && has_more_to_send {
            self.begin_finishing(id);
        } else {
            self.remove(id);
        }
        if !closing {
            self.counts.closed(reason);
        }
        if known {
            handle(self, SocketEvent::Closed { id, reason });
        }
    }

    pub(super) fn begin_finishing(&mut self, id: ConnectionId) {
        let guard = after(self.now, self.settings.linger);
        let Some(connection) = self.connections.get_mut(id) else { return };
        connection.phase = ConnectionPhase::Finishing;
        connection.paused = false;
        connection.again = false;
        connection.input.consume(connection.input.bytes().len());
        connection.input.release_if_empty(&mut self.spare);
        connection.deadline = None;
        connection.guard = Some(guard);
        self.schedule(id);
        self.mark_dirty(id);
        self.enqueue_read(id);
    }

    pub(super) fn remove(&mut self, id: ConnectionId) {
        // Dropping the connection closes the socket.
        drop(self.remove_entry(id));
    }

    pub(super) fn remove_entry(&mut self, id: ConnectionId) -> Option<Connection> {
        let mut connection = self.connections.remove(id)?;
        self.deadlines.forget(id, &mut connection.entry);
        self.peer_limits.leave(connection.peer.ip());
        if let Some(listener) = connection.listener {
            self.active_listeners[usize::from(listener.0)].connections -= 1;
        }
        Some(connection)
    }

    fn shrink_outputs(&mut self) {
        if self.now.since(self.shrunk_at) >= SHRINK_INTERVAL_NS {
            self.shrunk_at = self.now;
            self.connections.values_mut().for_each(|connection| connection.output.shrink());
        }
    }

    pub(super) fn enqueue_read(&mut self, id: ConnectionId) {
        let Some(connection) = self.connections.get_mut(id) else { return };
        if connection.wants_reading() && !connection.queued {
            connection.queued = true;
            self.read_queue.push_back(id);
        }
    }

    pub(super) fn mark_dirty(&mut self, id: ConnectionId) {
        let Some(connection) = self.connections.get_mut(id) else { return };
        if !connection.dirty {
            connection.dirty = true;
            self.dirty.push(id);
        }
    }

    pub(super) fn schedule(&mut self, id: ConnectionId) {
        let Some(connection) = self.connections.get_mut(id) else { return };
        let wanted = connection.next_deadline();
        self.deadlines.want(id, &mut connection.entry, wanted);
    }
}

fn after(now: Timestamp, duration: Duration) -> Timestamp {
    now.plus(u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX))
}
