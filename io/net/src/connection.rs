//! One connection: its socket, its TLS state, its input and its output.
//!
//! ```text
//! accepted ─► Handshake ─► Fresh ─► Open ─► Finishing ─► Lingering ─► gone
//!    └─ plain text ──────────►┘       └───── broken ──────────────────►┘
//! ```

use std::io::{self, Read, Write};
use std::net::{SocketAddr, TcpStream};

use pitlane_engine::time::Timestamp;

use super::counts::SocketCounts;
use super::driver::SocketStream;
use super::event::CloseReason;
use super::input::{SocketInput, SpareBuffers};
use super::listener::ListenerId;
use super::output::SocketOutput;
use super::released_socket::ReleasedSocket;
use super::settings::BufferLimits;
use super::tls_connection::TlsSession;

/// First bytes of a TLS connection: a handshake record. None of our protocols starts with them.
const TLS_RECORD: [u8; 2] = [0x16, 0x03];

pub(super) struct Connection {
    pub(super) stream: SocketStream,
    pub(super) peer: SocketAddr,
    /// Listener that accepted it; `None` for an adopted or outgoing connection.
    pub(super) listener: Option<ListenerId>,
    pub(super) limits: BufferLimits,
    pub(super) phase: ConnectionPhase,
    pub(super) tls: Option<Box<TlsSession>>,
    pub(super) input: SocketInput,
    pub(super) output: SocketOutput,
    /// Whether reading, or writing, may make progress: set by the driver, cleared when a call would
    /// block.
    pub(super) readable: bool,
    pub(super) writable: bool,
    /// Whether the peer has ended: a short read does not mean that the socket is empty.
    pub(super) ended: bool,
    /// Whether all bytes of the peer have been read.
    pub(super) end_seen: bool,
    /// Whether the connection was lost while reading was paused: nothing can be sent or received
    /// any more.
    pub(super) lost: bool,
    /// Reason why writing failed; bytes received before are still read.
    pub(super) broken: Option<CloseReason>,
    pub(super) paused: bool,
    /// Whether unconsumed bytes are to be reported again.
    pub(super) again: bool,
    /// Whether it is in the read queue.
    pub(super) queued: bool,
    /// Whether it is in the list of connections to write.
    pub(super) dirty: bool,
    pub(super) notify_drained: bool,
    /// Time at which it is closed if it is still in its phase.
    pub(super) guard: Option<Timestamp>,
    /// Time at which the gateway wants a timeout event.
    pub(super) deadline: Option<Timestamp>,
    /// Its entry among the deadlines.
    pub(super) entry: Option<Timestamp>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ConnectionPhase {
    /// The TLS handshake is not complete; the gateway does not know the connection yet.
    Handshake,
    /// No byte has arrived yet.
    Fresh,
    Open,
    /// The gateway has released it; the rest of the output is sent.
    Finishing,
    /// The sending direction is closed; the peer's end is awaited.
    Lingering,
}

/// The outcome of a read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ReadOutcome {
    Nothing,
    Bytes,
    Over(CloseReason),
}

impl Connection {
    pub(super) fn new(peer: SocketAddr, limits: BufferLimits) -> Connection {
        Connection {
            stream: SocketStream::Unattached,
            peer,
            listener: None,
            limits,
            phase: ConnectionPhase::Fresh,
            tls: None,
            input: SocketInput::default(),
            output: SocketOutput::default(),
            readable: false,
            // A new socket usually accepts output; if not, the first write shows it.
            writable: true,
            ended: false,
            end_seen: false,
            lost: false,
            broken: None,
            paused: false,
            again: false,
            queued: false,
            dirty: false,
            notify_drained: false,
            guard: None,
            deadline: None,
            entry: None,
        }
    }

    /// Returns whether the gateway may use it.
    pub(super) fn is_open(&self) -> bool {
        matches!(self.phase, ConnectionPhase::Fresh | ConnectionPhase::Open)
    }

    /// Returns whether nothing can be sent yet, because the TLS handshake is not complete.
    pub(super) fn is_handshaking(&self) -> bool {
        self.tls.as_ref().is_some_and(|tls| tls.is_handshaking())
    }

    pub(super) fn is_closing(&self) -> bool {
        matches!(self.phase, ConnectionPhase::Finishing | ConnectionPhase::Lingering)
    }

    pub(super) fn has_output(&self) -> bool {
        let records = self.tls.as_ref().is_some_and(|tls| tls.wants_write());
        self.broken.is_none() && (self.output.pending() > 0 || records)
    }

    pub(super) fn wants_reading(&self) -> bool {
        self.lost || (self.readable || self.again) && !self.paused
    }

    pub(super) fn next_deadline(&self) -> Option<Timestamp> {
        match (self.guard, self.deadline) {
            (Some(guard), Some(deadline)) => Some(guard.min(deadline)),
            (guard, deadline) => guard.or(deadline),
        }
    }

    /// Reads once. While finishing, received bytes are discarded.
    pub(super) fn receive(
        &mut self,
        spare: &mut SpareBuffers,
        bytes_max: usize,
        counts: &mut SocketCounts,
    ) -> ReadOutcome {
        if std::mem::take(&mut self.again) && !self.input.is_empty() {
            return ReadOutcome::Bytes;
        }
        let outcome = match self.tls {
            Some(_) => self.receive_records(spare, counts),
            None => self.receive_plain(spare, bytes_max, counts),
        };
        if self.is_closing() {
            self.input.consume(self.input.bytes().len());
        }
        // The system reports an error only once, and that was at a write; afterwards the end looks
        // like a regular close.
        match (outcome, self.broken) {
            (
                ReadOutcome::Nothing | ReadOutcome::Over(CloseReason::ByPeer | CloseReason::Truncated),
                Some(reason),
            ) => ReadOutcome::Over(reason),
            _ => outcome,
        }
    }

    fn receive_plain(
        &mut self,
        spare: &mut SpareBuffers,
        bytes_max: usize,
        counts: &mut SocketCounts,
    ) -> ReadOutcome {
        let Some(space) = self.input.space(spare, self.limits.input_bytes_max) else {
            return ReadOutcome::Over(CloseReason::InputFull);
        };
        let length = space.len().min(bytes_max);
        let result = self.stream.read(&mut space[..length]);
        let count = match self.read_result(result, length, counts) {
            Ok(count) => count,
            Err(outcome) => return outcome,
        };
        self.input.filled(count);
        let first = self.input.bytes();
        let is_tls = first[0] == TLS_RECORD[0] && first.get(1).is_none_or(|&byte| byte == TLS_RECORD[1]);
        if self.phase == ConnectionPhase::Fresh && is_tls {
            return ReadOutcome::Over(CloseReason::TlsToPlain);
        }
        ReadOutcome::Bytes
    }

    fn receive_records(&mut self, spare: &mut SpareBuffers, counts: &mut SocketCounts) -> ReadOutcome {
        if self.tls.as_ref().is_some_and(|tls| tls.peer_closed) {
            return ReadOutcome::Over(CloseReason::ByPeer);
        }
        if self.input.bytes().len() >= self.limits.input_bytes_max {
            return ReadOutcome::Over(CloseReason::InputFull);
        }
        let mut wire = spare.take();
        let result = self.stream.read(&mut wire);
        let outcome = match self.read_result(result, wire.len(), counts) {
            Ok(count) => self.decrypt(&wire[..count], spare),
            // The stream ended without close_notify.
            Err(ReadOutcome::Over(CloseReason::ByPeer)) if self.phase != ConnectionPhase::Handshake => {
                ReadOutcome::Over(CloseReason::Truncated)
            }
            Err(outcome) => outcome,
        };
        spare.put_back(wire);
        outcome
    }

    fn decrypt(&mut self, wire: &[u8], spare: &mut SpareBuffers) -> ReadOutcome {
        let Some(tls) = &mut self.tls else { return ReadOutcome::Nothing };
        match tls.decrypt(wire, &mut self.input, spare) {
            Ok(()) => {
                // The close_notify is handled after the bytes before it.
                self.readable |= tls.peer_closed;
                ReadOutcome::Bytes
            }
            Err(reason) => {
                // The peer receives an alert, if it still reads.
                _ = tls.write(&mut self.stream);
                self.stream.shutdown_write();
                ReadOutcome::Over(reason)
            }
        }
    }

    /// Takes over the bytes that lay in the driver, and returns the socket.
    pub(super) fn take_over(
        &mut self,
        released: ReleasedSocket,
        spare: &mut SpareBuffers,
    ) -> Result<TcpStream, CloseReason> {
        let ReleasedSocket { stream, received, unsent } = released;
        match &mut self.tls {
            Some(tls) => {
                if !unsent.is_empty() {
                    tls.carry(&unsent);
                }
                tls.decrypt(&received, &mut self.input, spare)?;
            }
            None => {
                if !received.is_empty() {
                    self.input.reserve(spare, received.len()).copy_from_slice(&received);
                    self.input.filled(received.len());
                }
                if !unsent.is_empty() {
                    self.output.prepend(&unsent);
                }
            }
        }
        Ok(stream)
    }

    /// Returns the bytes read, or the meaning of a read without bytes.
    fn read_result(
        &mut self,
        result: io::Result<usize>,
        asked: usize,
        counts: &mut SocketCounts,
    ) -> Result<usize, ReadOutcome> {
        counts.reads += 1;
        match result {
            Ok(0) => Err(ReadOutcome::Over(CloseReason::ByPeer)),
            Ok(count) => {
                // A short read has emptied the socket; the driver reports when there is more.
                self.readable = count == asked || self.ended;
                counts.received_bytes += count as u64;
                Ok(count)
            }
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                self.readable = false;
                Err(ReadOutcome::Nothing)
            }
            Err(error) if error.kind() == io::ErrorKind::Interrupted => Err(ReadOutcome::Nothing),
            Err(error) => Err(ReadOutcome::Over(CloseReason::of(&error))),
        }
    }

    /// Passes bytes to the system without the output buffer, which must be empty: this saves a
    /// copy.
    pub(super) fn write(&mut self, bytes: &[u8], counts: &mut SocketCounts) -> io::Result<usize> {
        if bytes.is_empty() || self.output.pending() > 0 || self.broken.is_some() {
            return Ok(0);
        }
        match &mut self.tls {
            Some(tls) => tls.take(bytes),
            None if !self.writable => Ok(0),
            None => {
                let result = self.stream.write(bytes);
                self.write_result(result, counts)
            }
        }
    }

    /// Writes what the system accepts at once: one call with plain text, one for each 64 KiB with
    /// TLS. Returns the bytes accepted.
    pub(super) fn flush(&mut self, counts: &mut SocketCounts) -> io::Result<usize> {
        let result = match &mut self.tls {
            None if self.output.pending() == 0 => return Ok(0),
            None => self.stream.write(self.output.unsent()).inspect(|&count| self.output.sent(count)),
            Some(tls) => {
                tls.encrypt(&mut self.output)?;
                if self.phase == ConnectionPhase::Finishing && self.output.pending() == 0 {
                    tls.send_close_notify();
                }
                if !tls.wants_write() {
                    return Ok(0);
                }
                tls.write(&mut self.stream)
            }
        };
        self.write_result(result, counts)
    }

    /// Returns the bytes written, zero if the system's buffer is full.
    fn write_result(&mut self, result: io::Result<usize>, counts: &mut SocketCounts) -> io::Result<usize> {
        counts.writes += 1;
        match result {
            Ok(count) => {
                counts.sent_bytes += count as u64;
                Ok(count)
            }
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                self.writable = false;
                Ok(0)
            }
            Err(error) if error.kind() == io::ErrorKind::Interrupted => Ok(0),
            Err(error) => Err(error),
        }
    }
}
