//! The receiving direction of a socket: filled buffers of the ring that are not read yet.
//!
//! A socket that is not read, or too slowly, stops receiving at [`UNREAD_BYTES_MAX`], so that TCP
//! slows its peer down; and it loses its buffers to others that lack one: its bytes are copied out.

use std::collections::VecDeque;
use std::io::Read;

use pitlane_sys::ring::{OperationKey, ReceiveBuffer, Ring};

/// Unread bytes at which a socket stops receiving. What the kernel has received until then comes on
/// top, at most all buffers of the ring.
const UNREAD_BYTES_MAX: usize = 64 * 1024;

#[derive(Default)]
pub(super) struct Receiving {
    /// The operation that receives; `None` while the socket does not.
    pub(super) operation: Option<OperationKey>,
    /// The poll for failures, while the socket is full.
    pub(super) failure: Option<OperationKey>,
    /// Whether the end of `operation` was requested.
    pub(super) is_cancelled: bool,
    /// How the stream has ended: in order, or by an error with this number.
    pub(super) end: Option<Result<(), i32>>,
    /// Unread bytes that were copied out of their buffers, before those of `held`.
    copied: VecDeque<u8>,
    held: VecDeque<ReceiveBuffer>,
    /// Bytes of the first held buffer that were read.
    read: usize,
    unread: usize,
}

impl Receiving {
    pub(super) fn is_empty(&self) -> bool {
        self.unread == 0
    }

    /// Returns whether the socket has to stop receiving.
    pub(super) fn is_full(&self) -> bool {
        self.unread >= UNREAD_BYTES_MAX
    }

    pub(super) fn push(&mut self, buffer: ReceiveBuffer) {
        self.unread += buffer.len();
        self.held.push_back(buffer);
    }

    /// Copies the next unread bytes and returns how many.
    pub(super) fn read(&mut self, ring: &mut Ring, into: &mut [u8]) -> usize {
        let mut count = self.read_copied(into);
        while count < into.len()
            && let Some(buffer) = self.held.front()
        {
            let copied = ring.copy(buffer, self.read, &mut into[count..]);
            count += copied;
            self.read += copied;
            if self.read == buffer.len() {
                self.read = 0;
                self.held.pop_front().into_iter().for_each(|buffer| ring.give_back(buffer));
            }
        }
        self.unread -= count;
        count
    }

    fn read_copied(&mut self, into: &mut [u8]) -> usize {
        let mut count = 0;
        // The bytes lie in two parts at most. A read from memory does not fail.
        while count < into.len() && !self.copied.is_empty() {
            count += self.copied.read(&mut into[count..]).unwrap_or(0);
        }
        if count > 0 && self.copied.is_empty() {
            self.copied = VecDeque::new();
        }
        count
    }

    /// Gives the buffers back to the ring.
    pub(super) fn discard(&mut self, ring: &mut Ring) {
        self.held.drain(..).for_each(|buffer| ring.give_back(buffer));
    }

    /// Copies all unread bytes out, and gives the buffers back to the ring.
    pub(super) fn copy_out(&mut self, ring: &mut Ring) {
        for buffer in self.held.drain(..) {
            let mut bytes = vec![0; buffer.len() - self.read];
            ring.copy(&buffer, self.read, &mut bytes);
            self.copied.extend(bytes);
            self.read = 0;
            ring.give_back(buffer);
        }
    }

    /// Returns all unread bytes, and gives the buffers back to the ring.
    pub(super) fn take(&mut self, ring: &mut Ring) -> Vec<u8> {
        self.copy_out(ring);
        self.unread = 0;
        std::mem::take(&mut self.copied).into()
    }
}
