//! The sending direction of a socket: bytes that were written and that the system has not accepted
//! yet.
//!
//! ```text
//! write ─► staged ─► in flight ─► accepted
//!                      └─► rest, while the socket has no room ─► in flight
//! ```

use pitlane_sys::ring::OperationKey;

/// Bytes that are staged at most, in one cycle. The rest stays with the writer.
pub(super) const STAGED_BYTES_MAX: usize = 64 * 1024;
/// Spare storages that are kept. More are needed only if as many sockets send in one cycle.
const SPARES_MAX: usize = 64;

#[derive(Default)]
pub(super) struct Sending {
    /// Bytes of the next send.
    pub(super) staged: Vec<u8>,
    /// Whether a send is in flight. There is at most one, so that the order is kept.
    pub(super) is_in_flight: bool,
    /// Bytes of a send that did not fit, and how many of them were accepted.
    pub(super) rest: Option<(Vec<u8>, usize)>,
    /// The poll for room, while there is a rest.
    pub(super) poll: Option<OperationKey>,
    /// Number of the error by which a send failed.
    pub(super) error: Option<i32>,
    /// Whether the end of all sends is to be reported.
    pub(super) notify: bool,
    /// Whether the direction is to be closed after the last byte.
    pub(super) shutdown: bool,
}

impl Sending {
    /// Returns whether the system has accepted all written bytes.
    pub(super) fn is_idle(&self) -> bool {
        self.staged.is_empty() && !self.is_in_flight && self.rest.is_none()
    }

    /// Returns how many bytes can be staged. While the socket has no room it is none.
    pub(super) fn room(&self) -> usize {
        if self.rest.is_some() { 0 } else { STAGED_BYTES_MAX.saturating_sub(self.staged.len()) }
    }

    /// Takes all bytes that the system has not accepted.
    pub(super) fn take(&mut self) -> Vec<u8> {
        let mut bytes = self.rest.take().map_or_else(Vec::new, |(bytes, sent)| bytes[sent..].to_vec());
        bytes.append(&mut self.staged);
        bytes
    }
}

/// Storages without bytes, passed from socket to socket.
#[derive(Default)]
pub(super) struct SpareStorages(Vec<Vec<u8>>);

impl SpareStorages {
    pub(super) fn take(&mut self) -> Vec<u8> {
        self.0.pop().unwrap_or_default()
    }

    pub(super) fn put_back(&mut self, mut storage: Vec<u8>) {
        storage.clear();
        if self.0.len() < SPARES_MAX && (1..=STAGED_BYTES_MAX).contains(&storage.capacity()) {
            self.0.push(storage);
        }
    }
}
