//! What a gateway is told about its connections.

use std::io;
use std::net::SocketAddr;

use super::listener::ListenerId;
use super::slab::ConnectionId;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SocketEvent {
    /// Somebody is there; with TLS, after the handshake.
    Accepted { id: ConnectionId, listener: ListenerId, peer: SocketAddr },
    /// There are bytes in `Sockets::input` that were not there before, or reading was resumed and some are left.
    Received { id: ConnectionId },
    /// All that was said has been taken by the system; told once after `Sockets::tell_drained`, and after a
    /// `Sockets::write` that was not taken whole.
    Drained { id: ConnectionId },
    /// The deadline set by the gateway has come. The connection stays as it is.
    Timeout { id: ConnectionId },
    /// It is over, and `id` means nothing any more. Not told for what the gateway itself closed.
    Closed { id: ConnectionId, why: CloseReason },
    /// All that came in this cycle has been told. Told in every cycle, once: what is said now leaves with it.
    EndOfCycle,
}

/// Why a connection ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CloseReason {
    /// The peer said goodbye.
    ByPeer,
    /// The peer broke it off.
    Reset,
    /// The peer has vanished: no acknowledgement and no answer to keep-alive.
    Lost,
    /// No first byte in time.
    Silent,
    /// More unconsumed bytes than the connection may have.
    InputFull,
    /// No TLS handshake in time.
    HandshakeSlow,
    /// What came to a TLS listener was something else.
    NotTls,
    /// TLS came to a listener for plain text.
    TlsToPlain,
    /// TLS failed: no common version, a certificate refused, a damaged record.
    TlsFailed,
    /// The peer of a TLS connection left without a goodbye: the end may have been cut off.
    Truncated,
    /// Another fault of the socket.
    Failed(io::ErrorKind),
}

impl CloseReason {
    pub(super) fn of(error: &io::Error) -> CloseReason {
        match error.kind() {
            io::ErrorKind::ConnectionReset | io::ErrorKind::BrokenPipe | io::ErrorKind::ConnectionAborted => {
                CloseReason::Reset
            }
            io::ErrorKind::TimedOut | io::ErrorKind::HostUnreachable | io::ErrorKind::NetworkUnreachable => {
                CloseReason::Lost
            }
            other => CloseReason::Failed(other),
        }
    }
}
