//! The window of messages that were sent to the broker and not yet acknowledged.

use std::collections::VecDeque;

use bytes::Bytes;
use tokio::time::Instant;

use super::message::{ReplicationMessage, What};
use super::stream::Kept;

/// Maximum number and bytes of unacknowledged messages: what a 10 Gbit/s link carries in some
/// milliseconds.
const WINDOW_MAX: usize = 128;
const WINDOW_BYTES_MAX: usize = 8 << 20;

/// Unacknowledged messages, oldest first. Files that are sent as a whole may exceed the bounds by
/// one file.
#[derive(Default)]
pub struct Window {
    pub sent: VecDeque<Sent>,
    bytes: usize,
}

impl Window {
    /// Returns whether another message may be sent. A reserve message is sent alone: if the broker
    /// refuses it, no message was sent behind it.
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

/// A message that is under way.
pub struct Sent {
    pub parcel: ReplicationMessage,
    pub bytes: Bytes,
    pub seq: u64,
    pub id: String,
    pub at: Instant,
    /// Shard and number of the last record that it contains.
    pub mark: Option<(usize, u64)>,
    /// Pending acknowledgement; `None` if the message could not be sent.
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
    fn the_window_is_bounded_in_messages_and_bytes() {
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
