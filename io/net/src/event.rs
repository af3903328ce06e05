//! The events of connections that a gateway handles.

use std::io;
use std::net::SocketAddr;

use super::connection_id::ConnectionId;
use super::listener::ListenerId;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SocketEvent {
    /// A connection is established; with TLS, after the handshake.
    Accepted { id: ConnectionId, listener: ListenerId, peer: SocketAddr },
    /// `Sockets::input` has new bytes, or reading was resumed and some are left.
    Received { id: ConnectionId },
    /// The system has accepted all output. Emitted once after `Sockets::notify_drained`, and after
    /// a `Sockets::write` that was not accepted completely.
    Drained { id: ConnectionId },
    /// The deadline set by the gateway has passed. The connection is unchanged.
    Timeout { id: ConnectionId },
    /// The connection is closed, and `id` is no longer valid. Not emitted if the gateway itself
    /// closed it.
    Closed { id: ConnectionId, reason: CloseReason },
    /// All events of this cycle have been emitted. Emitted once in every cycle: output appended now
    /// leaves with the cycle.
    EndOfCycle,
}

/// The reason why a connection ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CloseReason {
    /// The peer closed it.
    ByPeer,
    /// The peer reset it.
    Reset,
    /// The peer has vanished: it acknowledges nothing and does not answer keep-alive probes.
    Lost,
    /// No first byte arrived in time.
    Silent,
    /// There are more unconsumed bytes than the connection may have.
    InputFull,
    /// The TLS handshake did not complete in time.
    HandshakeSlow,
    /// A TLS listener received something else.
    NotTls,
    /// A plain-text listener received TLS.
    TlsToPlain,
    /// TLS failed: no common version, a refused certificate, a damaged record.
    TlsFailed,
    /// The peer of a TLS connection closed it without close_notify: the end may have been cut off.
    Truncated,
    /// Another error of the socket.
    Failed(io::ErrorKind),
}

impl CloseReason {
    #[expect(clippy::wildcard_enum_match_arm, reason = "the standard library adds kinds")]
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
