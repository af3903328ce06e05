//! What was sent to the broker and not acknowledged.

use std::collections::VecDeque;

use bytes::Bytes;
use tokio::time::Instant;

use super::message::{ReplicationMessage, What};
use super::stream::Kept;

/// Messages sent and not acknowledged, and bytes of them: what a line of 10 Gbit/s holds in some milliseconds.
const WINDOW_MAX: usize = 128;
const WINDOW_BYTES_MAX: usize = 8 << 20;

/// What was sent and not acknowledged, the first one first. Files that are sent as a whole may go beyond its bounds by one of them.
#[derive(Default)]
pub struct Window {
    pub sent: VecDeque<Sent>,
    bytes: usize,
}

impl Window {
    /// What only keeps room is on its way alone: if the broker refuses it, nothing was sent behind it.
    pub fn has_room(&self) -> bool {
        let is_alone = self.sent.front().is_some_and(Sent::is_reserve);
        self.sent.len() < WINDOW_MAX && self.bytes < WINDOW_BYTES_MAX && !is_alone
    }

    pub fn push(&mut self, sent: Sent) {
        self.bytes += sent.bytes.len();
        self.sent.push_back(sent);
    }

    pub fn pop(&mut self) -> Option<Sent> {
        let sent = self.sent.pop_front()?;
        self.bytes -= sent.bytes.len();
        Some(sent)
    }
}

/// A message on its way.
pub struct Sent {
    pub parcel: ReplicationMessage,
    pub bytes: Bytes,
    pub seq: u64,
    pub id: String,
    pub at: Instant,
    /// The last record that it brings, by shard.
    pub mark: Option<(usize, u64)>,
    /// None: it could not even be sent.
    pub kept: Option<Kept>,
}

impl Sent {
    pub fn is_reserve(&self) -> bool {
        matches!(self.parcel.what, What::Reserve { .. })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sent(bytes: usize) -> Sent {
        let parcel = ReplicationMessage { epoch: 1, what: What::Beat };
        let (bytes, id) = (vec![0; bytes].into(), String::new());
        Sent { parcel, bytes, seq: 1, id, at: Instant::now(), mark: None, kept: None }
    }

    #[test]
    fn so_much_is_on_its_way_and_the_rest_waits() {
        for (bytes, count) in [(0, WINDOW_MAX), (WINDOW_BYTES_MAX / 16, 16)] {
            let mut window = Window::default();
            for _ in 0..count {
                assert!(window.has_room());
                window.push(sent(bytes));
            }
            assert!(!window.has_room());
            window.pop();
            assert!(window.has_room(), "what was acknowledged makes room");
            while window.pop().is_some() {}
            assert_eq!(window.bytes, 0);
        }
    }
}
