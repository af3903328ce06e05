//! Bytes queued for sending and not yet accepted by the system.

/// Bytes of memory that an empty output may keep.
const KEPT_BYTES: usize = 4 * 1024;

/// Invariant: `sent <= bytes.len()`.
#[derive(Debug, Default)]
pub(super) struct SocketOutput {
    bytes: Vec<u8>,
    sent: usize,
    /// Whether something was appended since the last check.
    used: bool,
}

impl SocketOutput {
    pub(super) fn pending(&self) -> usize {
        self.bytes.len() - self.sent
    }

    pub(super) fn unsent(&self) -> &[u8] {
        &self.bytes[self.sent..]
    }

    /// Returns the buffer to append to. The caller must not change its existing contents.
    pub(super) fn tail(&mut self) -> &mut Vec<u8> {
        // Sent bytes are removed as soon as they are the larger part, so each byte is moved at most
        // once.
        if self.sent > 0 && self.sent >= self.pending() {
            self.bytes.drain(..self.sent);
            self.sent = 0;
        }
        self.used = true;
        &mut self.bytes
    }

    /// Puts bytes before all others.
    pub(super) fn prepend(&mut self, bytes: &[u8]) {
        self.bytes.splice(..self.sent, bytes.iter().copied());
        self.sent = 0;
    }

    pub(super) fn sent(&mut self, count: usize) {
        self.sent += count;
        assert!(self.sent <= self.bytes.len(), "no more is sent than there is");
        if self.sent == self.bytes.len() {
            self.clear();
        }
    }

    pub(super) fn clear(&mut self) {
        self.bytes.clear();
        self.sent = 0;
    }

    /// Frees memory that was not needed since the last call. To be called from time to time.
    pub(super) fn shrink(&mut self) {
        if !self.used && self.bytes.is_empty() && self.bytes.capacity() > KEPT_BYTES {
            self.bytes = Vec::new();
        }
        self.used = false;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_leave_in_order_and_memory_stays_bounded() {
        let mut output = SocketOutput::default();
        let (mut next_in, mut next_out) = (0u8, 0u8);
        for step in 0..10_000usize {
            for _ in 0..step % 5 {
                output.tail().push(next_in);
                next_in = next_in.wrapping_add(1);
            }
            let count = output.pending().min(step % 6);
            for &byte in &output.unsent()[..count] {
                assert_eq!(byte, next_out);
                next_out = next_out.wrapping_add(1);
            }
            output.sent(count);
        }
        assert!(output.bytes.capacity() < 100);
    }

    #[test]
    fn prepended_bytes_leave_first() {
        let mut output = SocketOutput::default();
        output.tail().extend_from_slice(b"xxrest");
        output.sent(2);
        output.prepend(b"first, ");
        assert_eq!((output.unsent(), output.pending()), (&b"first, rest"[..], 11));
    }

    #[test]
    fn memory_is_freed_after_a_quiet_time() {
        let mut output = SocketOutput::default();
        output.tail().extend_from_slice(&[0; 100_000]);
        output.sent(100_000);
        output.shrink();
        assert!(output.bytes.capacity() >= 100_000, "it was just in use");
        output.shrink();
        assert_eq!(output.bytes.capacity(), 0);
    }
}
