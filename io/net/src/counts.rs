//! Counters of all that has happened so far.

use super::event::CloseReason;

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SocketCounts {
    pub accepted: u64,
    /// Connections refused by limit: in total, of this listener, of this peer.
    pub refused_all: u64,
    pub refused_listener: u64,
    pub refused_peer: u64,
    /// Connections refused because the process had no file descriptor left.
    pub refused_no_descriptor: u64,
    /// Connections for which `accept` failed otherwise, or that were gone before they were set up.
    pub accept_failed: u64,
    pub received_bytes: u64,
    pub sent_bytes: u64,
    /// Calls of the driver, with epoll system calls; together with the bytes they show how well
    /// writes are batched.
    pub reads: u64,
    pub writes: u64,
    /// Calls of `send` refused because the output was full.
    pub sends_refused: u64,
    /// Outgoing connections.
    pub connects: u64,
    pub adopted: u64,
    pub released: u64,
    /// Connections closed by the gateway.
    pub closed_by_us: u64,
    /// Connections closed for other reasons, by reason.
    pub closed_by_peer: u64,
    pub closed_reset: u64,
    pub closed_lost: u64,
    pub closed_silent: u64,
    pub closed_input_full: u64,
    pub closed_handshake_slow: u64,
    pub closed_not_tls: u64,
    pub closed_tls_to_plain: u64,
    pub closed_tls_failed: u64,
    pub closed_truncated: u64,
    pub closed_failed: u64,
}

impl SocketCounts {
    pub(super) fn closed(&mut self, reason: CloseReason) {
        let counter = match reason {
            CloseReason::ByPeer => &mut self.closed_by_peer,
            CloseReason::Reset => &mut self.closed_reset,
            CloseReason::Lost => &mut self.closed_lost,
            CloseReason::Silent => &mut self.closed_silent,
            CloseReason::InputFull => &mut self.closed_input_full,
            CloseReason::HandshakeSlow => &mut self.closed_handshake_slow,
            CloseReason::NotTls => &mut self.closed_not_tls,
            CloseReason::TlsToPlain => &mut self.closed_tls_to_plain,
            CloseReason::TlsFailed => &mut self.closed_tls_failed,
            CloseReason::Truncated => &mut self.closed_truncated,
            CloseReason::Failed(_) => &mut self.closed_failed,
        };
        *counter += 1;
    }
}
