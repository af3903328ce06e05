//! Received bytes that are not read yet, and written bytes that are not sent yet.

use crate::fix::frame::FRAME_BYTES_AROUND;

/// Frames of the largest size that are held unread: one incomplete frame and one behind it.
const FRAMES_HELD: usize = 2;

#[derive(Debug, Default)]
pub(super) struct InputBuffer {
    bytes: Vec<u8>,
    at: usize,
}

impl InputBuffer {
    /// Takes as many bytes as there is room for, with bodies of at most `body_bytes_max` bytes.
    pub(super) fn take(&mut self, bytes: &[u8], body_bytes_max: usize) -> usize {
        let most = FRAMES_HELD * (body_bytes_max + FRAME_BYTES_AROUND);
        let count = bytes.len().min(most.saturating_sub(self.bytes.len() - self.at));
        // Read bytes are removed once they are more than the bytes that must be moved.
        if self.at > self.bytes.len() - self.at {
            self.bytes.drain(..self.at);
            self.at = 0;
        }
        self.bytes.extend_from_slice(&bytes[..count]);
        count
    }

    pub(super) fn pending(&self) -> &[u8] {
        &self.bytes[self.at..]
    }

    pub(super) fn consume(&mut self, count: usize) {
        self.at += count;
        if self.at == self.bytes.len() {
            self.bytes.clear();
            self.at = 0;
        }
    }
}

#[derive(Debug, Default)]
pub(super) struct OutputBuffer {
    /// Buffer to which the encoder appends.
    pub bytes: Vec<u8>,
    at: usize,
}

impl OutputBuffer {
    pub(super) fn pending(&self) -> &[u8] {
        &self.bytes[self.at..]
    }

    pub(super) fn consume(&mut self, count: usize) {
        self.at += count;
        assert!(self.at <= self.bytes.len(), "only what is there can be sent");
        if self.at > self.bytes.len() / 2 {
            self.bytes.drain(..self.at);
            self.at = 0;
        }
    }

    pub(super) fn len(&self) -> usize {
        self.bytes.len() - self.at
    }

    pub(super) fn is_empty(&self) -> bool {
        self.len() == 0
    }

    pub(super) fn clear(&mut self) {
        self.bytes.clear();
        self.at = 0;
    }
}
