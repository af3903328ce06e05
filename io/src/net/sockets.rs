//! All connections of one thread, and what a gateway may do with them. What happens in a cycle is in `cycle`.

use std::collections::VecDeque;
use std::io;
use std::net::{SocketAddr, TcpStream};
use std::sync::Arc;

use pitlane_engine::time::Timestamp;
use rustix::io::Errno;
use rustls::ServerConfig;
use socket2::{Domain, Protocol, Socket, Type};

use super::connection::{Connection, Phase};
use super::connection_limits::ConnectionLimits;
use super::counts::Counts;
use super::deadlines::Deadlines;
use super::detached::Detached;
use super::driver::Registrar;
use super::event::CloseReason;
use super::input::Spare;
use super::listener::{Door, ListenerId, prepare};
use super::settings::{Call, NetSettings};
use super::slab::{ConnectionId, Slab};
use super::tls::Tls;

pub struct Sockets {
    pub(super) connections: Slab<Connection>,
    pub(super) doors: Vec<Door>,
    /// In the order in which they are read. Each is in it once.
    pub(super) line: VecDeque<ConnectionId>,
    /// Those with something to write, each once.
    pub(super) dirty: Vec<ConnectionId>,
    /// Adopted, and to be attached in the next cycle.
    pub(super) loose: Vec<(ConnectionId, TcpStream)>,
    pub(super) deadlines: Deadlines,
    pub(super) crowd: ConnectionLimits,
    pub(super) spare: Spare,
    pub(super) counts: Counts,
    pub(super) registrar: Registrar,
    pub(super) settings: NetSettings,
    pub(super) now: Timestamp,
    pub(super) looked_back: Timestamp,
}

/// Why nothing was appended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SendError {
    /// The output would be longer than the listener's limits allow: a slow consumer. What to do about it is the gateway's choice.
    Full,
    /// There is no such connection any more.
    Gone,
}

impl Sockets {
    /// What was received and not yet consumed.
    pub fn input(&self, id: ConnectionId) -> &[u8] {
        self.open(id).map_or(&[], |connection| connection.input.bytes())
    }

    pub fn consume(&mut self, id: ConnectionId, count: usize) {
        if let Some(connection) = self.open_mut(id) {
            connection.input.consume(count);
        }
    }

    /// Appends to what leaves at the end of the cycle. All of it or nothing.
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

    /// As [`Sockets::send`], for what is encoded in place: `encode` appends. If it was too much, all of it is taken back.
    pub fn send_with(
        &mut self,
        id: ConnectionId,
        encode: impl FnOnce(&mut Vec<u8>),
    ) -> Result<(), SendError> {
        let Some(connection) = self.connections.get_mut(id).filter(|connection| connection.is_open()) else {
            return Err(SendError::Gone);
        };
        let tail = connection.output.tail();
        let before = tail.len();
        encode(tail);
        assert!(tail.len() >= before, "encoding appends and takes nothing away");
        let count = tail.len() - before;
        if connection.output.pending() > connection.limits.output_bytes_max {
            connection.output.take_back(count);
            self.counts.sends_refused += 1;
            return Err(SendError::Full);
        }
        if !connection.dirty {
            connection.dirty = true;
            self.dirty.push(id);
        }
        Ok(())
    }

    /// Hands bytes to the system at once, in one call, and says how many it took; with TLS, how many were encrypted. What
    /// was not taken stays with the caller, who is told by `Drained` when more can be. To be called while something is told.
    pub fn write(&mut self, id: ConnectionId, bytes: &[u8]) -> Result<usize, SendError> {
        let Some(connection) = self.connections.get_mut(id).filter(|connection| connection.is_open()) else {
            return Err(SendError::Gone);
        };
        let taken = connection.write(bytes, &mut self.counts);
        let is_short = taken.as_ref().is_ok_and(|count| *count < bytes.len());
        connection.tell_drained |= is_short;
        // What was encrypted leaves with the cycle; and one call more finds out whether the system is really full.
        if connection.has_output() || (is_short && connection.writable && !connection.is_shaking_hands()) {
            self.mark_dirty(id);
        }
        match taken {
            Ok(count) => Ok(count),
            Err(error) => {
                self.give_up(id, CloseReason::of(&error));
                Err(SendError::Gone)
            }
        }
    }

    /// Bytes said and not yet taken by the system.
    pub fn unsent(&self, id: ConnectionId) -> usize {
        self.open(id).map_or(0, |connection| connection.output.pending())
    }

    /// Reads no more: the client is slowed by TCP. Its end is not noticed meanwhile, but deadlines are.
    pub fn pause(&mut self, id: ConnectionId) {
        if let Some(connection) = self.open_mut(id) {
            connection.paused = true;
        }
    }

    /// Reads again. What lies unconsumed is told of in the next cycle.
    pub fn resume(&mut self, id: ConnectionId) {
        if let Some(connection) = self.open_mut(id) {
            connection.again |= connection.paused && !connection.input.is_empty();
            connection.paused = false;
        }
        self.line_up(id);
    }

    /// Tells once when everything said has been taken by the system.
    pub fn tell_drained(&mut self, id: ConnectionId) {
        let Some(connection) = self.open_mut(id) else { return };
        connection.tell_drained = true;
        self.mark_dirty(id);
    }

    /// The gateway is told at this time, unless it changes its mind. None: never.
    pub fn set_deadline(&mut self, id: ConnectionId, deadline: Option<Timestamp>) {
        if let Some(connection) = self.open_mut(id) {
            connection.deadline = deadline;
            self.schedule(id);
        }
    }

    /// Ends it now; what was not sent is lost. Nothing more is heard of it.
    pub fn close(&mut self, id: ConnectionId) {
        if self.open(id).is_some() {
            self.counts.closed_by_us += 1;
            self.remove(id);
        }
    }

    /// Sends the rest, says goodbye, and gives the peer a little time to do the same. Nothing more is heard of it.
    pub fn finish(&mut self, id: ConnectionId) {
        if self.open(id).is_some() {
            self.counts.closed_by_us += 1;
            self.begin_finishing(id);
        }
    }

    pub fn peer(&self, id: ConnectionId) -> Option<SocketAddr> {
        self.open(id).map(|connection| connection.peer)
    }

    /// For new connections; those that are there keep what they have.
    pub fn set_tls(&mut self, listener: ListenerId, config: Arc<ServerConfig>) {
        if let Some(door) = self.doors.get_mut(usize::from(listener.0)) {
            door.settings.tls = Some(config);
        }
    }

    /// Nobody is accepted any more; those who are in stay. To be called while something is told.
    pub fn shut_doors(&mut self) {
        self.doors.iter_mut().for_each(Door::shut);
    }

    /// Takes a connection out, for another thread to adopt. None: there is none, or the system did not let it go and it is closed.
    pub fn release(&mut self, id: ConnectionId) -> Option<Detached> {
        self.open(id)?;
        let at = self.loose.iter().position(|(loose, _)| *loose == id);
        let loose = at.map(|at| self.loose.swap_remove(at).1);
        let connection = self.take_out(id)?;
        let stream = match loose {
            Some(stream) => stream,
            None => match self.registrar.detach(connection.stream) {
                Ok(stream) => stream,
                Err(error) => {
                    self.counts.closed(CloseReason::of(&error));
                    return None;
                }
            },
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

    /// Calls somebody. Whether he answers shows later: what is said leaves when he does, and `Closed` tells that he does not.
    pub fn call(&mut self, call: &Call) -> io::Result<ConnectionId> {
        let socket = Socket::new(Domain::for_address(call.address), Type::STREAM, Some(Protocol::TCP))?;
        socket.set_nonblocking(true)?;
        match socket.connect(&call.address.into()) {
            Ok(()) => {}
            Err(error) if Errno::from_io_error(&error) == Some(Errno::INPROGRESS) => {}
            Err(error) => return Err(error),
        }
        let stream = TcpStream::from(socket);
        prepare(&stream, &self.settings)?;
        let tls = call.tls.clone().map(|(config, name)| Tls::calling(config, name));
        let tls = tls.transpose().map_err(io::Error::other)?;
        let mut connection = Connection::new(call.address, call.limits);
        (connection.phase, connection.tls) = (Phase::Open, tls.map(Box::new));
        connection.readable = true;
        self.counts.called += 1;
        self.crowd.enter(call.address.ip());
        let id = self.connections.insert(connection);
        self.loose.push((id, stream));
        self.line_up(id);
        self.mark_dirty(id);
        Ok(id)
    }

    /// Takes a connection in. What it has received and not consumed is told of in the next cycle. Limits do not stand in its
    /// way: it was admitted where it came from.
    pub fn adopt(&mut self, detached: Detached) -> ConnectionId {
        let Detached { stream, peer, limits, tls, input, output } = detached;
        let mut connection = Connection::new(peer, limits);
        (connection.phase, connection.tls) = (Phase::Open, tls);
        (connection.input, connection.output) = (input, output);
        // Whoever had it before may have been told already.
        (connection.readable, connection.again) = (true, true);
        self.counts.adopted += 1;
        self.crowd.enter(peer.ip());
        let id = self.connections.insert(connection);
        self.loose.push((id, stream));
        self.line_up(id);
        self.mark_dirty(id);
        id
    }

    pub fn counts(&self) -> &Counts {
        &self.counts
    }

    /// Connections, with those that are on their way in or out.
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
