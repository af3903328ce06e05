//! The window of messages that were sent to the broker and not yet acknowledged.

use std::collections::VecDeque;

use bytes::Bytes;
use tokio::time::Instant;

use super::message::{ReplicationKind, ReplicationMessage};
use super::stream::PendingAck;

/// Maximum number and bytes of unacknowledged messages: what a 10 Gbit/s link carries in some
/// milliseconds.
const WINDOW_MAX: usize = 128;
const WINDOW_BYTES_MAX: usize = 8 << 20;

/// Unacknowledged messages, oldest first. Files that are sent as a whole may exceed the bounds by
/// one file.
#[derive(Default)]
pub(super) struct SendWindow {
    pub sent: VecDeque<SentMessage>,
    bytes: usize,
}

impl SendWindow {
    /// Returns whether another message may be sent. A reserve message is sent alone: if the broker
    /// refuses it, no message was sent behind it.
    pub(super) fn has_room(&self) -> bool {
        let is_alone = self.sent.front().is_some_and(SentMessage::is_reserve);
        self.sent.len() < WINDOW_MAX && self.bytes < WINDOW_BYTES_MAX && !is_alone
    }

    pub(super) fn push(&mut self, sent: SentMessage) {
        self.bytes += sent.bytes.len();
        self.sent.push_back(sent);
    }

    pub(super) fn pop(&mut self) -> Option<SentMessage> {
        let sent = self.sent.pop_front()?;
        self.bytes -= sent.bytes.len();
        Some(sent)
    }
}

/// A message that is under way.
pub(super) struct SentMessage {
    pub message: ReplicationMessage,
    pub bytes: Bytes,
    pub seq: u64,
    pub id: String,
    pub at: Instant,
    /// Shard and number of the last record that it contains.
    pub last_record: Option<(usize, u64)>,
    /// Pending acknowledgement; `None` if the message could not be sent.
    pub pending_ack: Option<PendingAck>,
}

impl SentMessage {
    pub(super) fn is_reserve(&self) -> bool {
        matches!(self.message.kind, ReplicationKind::Reserve { .. })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sent(bytes: usize) -> SentMessage {
        let message = ReplicationMessage { epoch: 1, kind: ReplicationKind::Beat };
        let (bytes, id) = (vec![0; bytes].into(), String::new());
        SentMessage { message, bytes, seq: 1, id, at: Instant::now(), last_record: None, pending_ack: None }
    }

    #[test]
    fn the_window_is_bounded_in_messages_and_bytes() {
        for (bytes, count) in [(0, WINDOW_MAX), (WINDOW_BYTES_MAX / 16, 16)] {
            let mut window = SendWindow::default();
            for _ in 0..count {
                assert!(window.has_room());
                window.push(sent(bytes));
            }
            assert!(!window.has_room());
            window.pop();
            assert!(window.has_room(), "an acknowledged message makes room");
            while window.pop().is_some() {}
            assert_eq!(window.bytes, 0);
        }
    }
}
