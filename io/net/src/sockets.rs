//! All connections of one thread, and the operations of a gateway on them. The steps of a cycle are
//! in `cycle`.

use std::collections::VecDeque;
use std::io;
use std::net::{SocketAddr, TcpStream};

use pitlane_engine::time::Timestamp;
use rustix::io::Errno;
use socket2::{Domain, Protocol, Socket, Type};

use super::connection::{Connection, ConnectionPhase};
use super::connection_id::ConnectionId;
use super::connection_limits::PeerLimits;
use super::connections::Connections;
use super::counts::SocketCounts;
use super::deadlines::Deadlines;
use super::detached::Detached;
use super::driver::{SocketRegistrar, SocketStream};
use super::event::CloseReason;
use super::input::SpareBuffers;
use super::listener::{ActiveListener, prepare};
use super::released_socket::ReleasedSocket;
use super::settings::{ConnectTarget, NetSettings};
use super::tls_connection::TlsSession;

pub struct Sockets {
    pub(super) connections: Connections,
    pub(super) active_listeners: Vec<ActiveListener>,
    /// Read queue, in order. Each connection is in it once.
    pub(super) read_queue: VecDeque<ConnectionId>,
    /// Connections with output to write, each once.
    pub(super) dirty: Vec<ConnectionId>,
    /// Adopted or outgoing connections, to be attached in the next cycle.
    pub(super) unattached: Vec<(ConnectionId, TcpStream)>,
    pub(super) deadlines: Deadlines,
    pub(super) peer_limits: PeerLimits,
    pub(super) spare: SpareBuffers,
    pub(super) counts: SocketCounts,
    pub(super) registrar: SocketRegistrar,
    pub(super) settings: NetSettings,
    pub(super) now: Timestamp,
    pub(super) shrunk_at: Timestamp,
}

/// The reason why nothing was appended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SendError {
    /// The output would exceed the listener's limit: a slow consumer. The gateway chooses how to
    /// react.
    Full,
    /// The connection no longer exists.
    Gone,
}

impl Sockets {
    /// Returns the bytes received and not yet consumed.
    pub fn input(&self, id: ConnectionId) -> &[u8] {
        self.open(id).map_or(&[], |connection| connection.input.bytes())
    }

    pub fn consume(&mut self, id: ConnectionId, count: usize) {
        if let Some(connection) = self.open_mut(id) {
            connection.input.consume(count);
        }
    }

    /// Appends to the output that leaves at the end of the cycle: all bytes or none.
    pub fn send(&mut self, id: ConnectionId, bytes: &[u8]) -> Result<(), SendError> {
        let Some(connection) = self.connections.get_mut(id).filter(|connection| connection.is_open()) else {
            return Err(SendError::Gone);
        };
        if connection.output.pending() + bytes.len() > connection.limits.output_bytes_max {
            self.counts.sends_refused += 1;
            return Err(SendError::Full);
        }
        connection.output.tail().extend_from_slice(bytes);
        if !connection.dirty {
            connection.dirty = true;
            self.dirty.push(id);
        }
        Ok(())
    }

    /// Passes bytes to the system at once, in one call, and returns how many were accepted; with
    /// TLS, how many were encrypted. The rest stays with the caller, and `Drained` reports when
    /// more can be written. Must be called while an event is handled.
    pub fn write(&mut self, id: ConnectionId, bytes: &[u8]) -> Result<usize, SendError> {
        let Some(connection) = self.connections.get_mut(id).filter(|connection| connection.is_open()) else {
            return Err(SendError::Gone);
        };
        let taken = connection.write(bytes, &mut self.counts);
        let is_short = taken.as_ref().is_ok_and(|count| *count < bytes.len());
        connection.notify_drained |= is_short;
        // Encrypted bytes leave with the cycle; and one more call shows whether the system's buffer
        // is really full.
        if connection.has_output() || (is_short && connection.writable && !connection.is_handshaking()) {
            self.mark_dirty(id);
        }
        match taken {
            Ok(count) => Ok(count),
            Err(error) => {
                self.fail_write(id, CloseReason::of(&error));
                Err(SendError::Gone)
            }
        }
    }

    /// Returns the bytes appended and not yet accepted by the system.
    pub fn unsent(&self, id: ConnectionId) -> usize {
        self.open(id).map_or(0, |connection| connection.output.pending())
    }

    /// Stops reading: TCP slows the client down. Meanwhile the regular end of its stream is not
    /// noticed; a reset and deadlines are.
    pub fn pause(&mut self, id: ConnectionId) {
        if let Some(connection) = self.open_mut(id) {
            connection.paused = true;
            // The driver may have reported a reset that the next read would have shown.
            connection.lost |= !connection.stream.is_connected();
        }
        self.enqueue_read(id);
    }

    /// Resumes reading. Unconsumed bytes are reported in the next cycle.
    pub fn resume(&mut self, id: ConnectionId) {
        if let Some(connection) = self.open_mut(id) {
            connection.again |= connection.paused && !connection.input.is_empty();
            connection.paused = false;
        }
        self.enqueue_read(id);
    }

    /// Requests one `Drained` event when the system has accepted all output.
    pub fn notify_drained(&mut self, id: ConnectionId) {
        let Some(connection) = self.open_mut(id) else { return };
        connection.notify_drained = true;
        self.mark_dirty(id);
    }

    /// Sets the time of a `Timeout` event, replacing the previous one; `None` cancels it.
    pub fn set_deadline(&mut self, id: ConnectionId, deadline: Option<Timestamp>) {
        if let Some(connection) = self.open_mut(id) {
            connection.deadline = deadline;
            self.schedule(id);
        }
    }

    /// Closes the connection now; unsent bytes are lost. No further events follow.
    pub fn close(&mut self, id: ConnectionId) {
        if self.open(id).is_some() {
            self.counts.closed_by_us += 1;
            self.remove(id);
        }
    }

    /// Sends the rest, closes the sending direction, and gives the peer a little time to do the
    /// same. No further events follow.
    pub fn finish(&mut self, id: ConnectionId) {
        if self.open(id).is_some() {
            self.counts.closed_by_us += 1;
            self.begin_finishing(id);
        }
    }

    pub fn peer(&self, id: ConnectionId) -> Option<SocketAddr> {
        self.open(id).map(|connection| connection.peer)
    }

    /// Stops accepting on all listeners; existing connections stay. Must be called while an event
    /// is handled.
    pub fn stop_accepting(&mut self) {
        self.active_listeners.iter_mut().for_each(ActiveListener::close);
    }

    /// Removes a connection, for another thread to adopt. Returns `None` if there is none, or if it
    /// has failed meanwhile and is closed.
    pub fn release(&mut self, id: ConnectionId) -> Option<Detached> {
        self.open(id)?;
        let at = self.unattached.iter().position(|(unattached, _)| *unattached == id);
        let unattached = at.map(|at| self.unattached.swap_remove(at).1);
        let mut connection = self.remove_entry(id)?;
        let stream = std::mem::replace(&mut connection.stream, SocketStream::Unattached);
        let released = match unattached {
            Some(stream) => Ok(ReleasedSocket::of(stream)),
            None => self.registrar.detach(stream),
        };
        let taken = released
            .map_err(|error| CloseReason::of(&error))
            .and_then(|released| connection.take_over(released, &mut self.spare));
        let stream = match taken {
            Ok(stream) => stream,
            Err(reason) => {
                self.counts.closed(reason);
                return None;
            }
        };
        self.counts.released += 1;
        Some(Detached {
            stream,
            peer: connection.peer,
            limits: connection.limits,
            tls: connection.tls,
            input: connection.input,
            output: connection.output,
        })
    }

    /// Starts a non-blocking connect. Buffered output is sent once it succeeds; failure is reported
    /// as `Closed`.
    pub fn connect(&mut self, target: &ConnectTarget) -> io::Result<ConnectionId> {
        let socket = Socket::new(Domain::for_address(target.address), Type::STREAM, Some(Protocol::TCP))?;
        socket.set_nonblocking(true)?;
        match socket.connect(&target.address.into()) {
            Ok(()) => {}
            Err(error) if Errno::from_io_error(&error) == Some(Errno::INPROGRESS) => {}
            Err(error) => return Err(error),
        }
        let stream = TcpStream::from(socket);
        prepare(&stream, &self.settings)?;
        let tls = target.tls.clone().map(|(config, name)| TlsSession::client(config, name));
        let tls = tls.transpose().map_err(io::Error::other)?;
        let mut connection = Connection::new(target.address, target.limits);
        (connection.phase, connection.tls) = (ConnectionPhase::Open, tls.map(Box::new));
        connection.readable = true;
        self.counts.connects += 1;
        self.peer_limits.enter(target.address.ip());
        let id = self.connections.insert(connection);
        self.unattached.push((id, stream));
        self.enqueue_read(id);
        self.mark_dirty(id);
        Ok(id)
    }

    /// Adopts a connection. Its unconsumed bytes are reported in the next cycle. Limits do not
    /// apply: the connection was admitted by its previous thread.
    pub fn adopt(&mut self, detached: Detached) -> ConnectionId {
        let Detached { stream, peer, limits, tls, input, output } = detached;
        let mut connection = Connection::new(peer, limits);
        (connection.phase, connection.tls) = (ConnectionPhase::Open, tls);
        (connection.input, connection.output) = (input, output);
        // The previous thread may already have received the readiness.
        (connection.readable, connection.again) = (true, true);
        self.counts.adopted += 1;
        self.peer_limits.enter(peer.ip());
        let id = self.connections.insert(connection);
        self.unattached.push((id, stream));
        self.enqueue_read(id);
        self.mark_dirty(id);
        id
    }

    pub fn counts(&self) -> &SocketCounts {
        &self.counts
    }

    /// Returns the number of connections, including those that are being set up or finished.
    pub fn len(&self) -> usize {
        self.connections.len()
    }

    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    fn open(&self, id: ConnectionId) -> Option<&Connection> {
        self.connections.get(id).filter(|connection| connection.is_open())
    }

    fn open_mut(&mut self, id: ConnectionId) -> Option<&mut Connection> {
        self.connections.get_mut(id).filter(|connection| connection.is_open())
    }
}
