//! Output that the connection has not taken yet: contiguous octets, so that one write takes as much
//! as the kernel accepts, and the end of each frame, because over WebSocket every frame is a
//! message.

use pitlane_engine::index::index_u32;

use std::collections::VecDeque;

/// Taken octets that stay at the front before the rest is moved there.
const COMPACT_BYTES: usize = 64 * 1_024;

/// Step by which a long buffer grows.
const STEP_BYTES: usize = 64 * 1_024;
/// Memory that an empty outbox keeps. A turn of a busy consumer needs no more, and thousands of
/// idle consumers may have it.
const KEEP_BYTES_MAX: usize = 128 * 1_024;

#[derive(Debug, Default)]
pub struct StompOutbox {
    bytes: Vec<u8>,
    /// Octets of `bytes` that are taken.
    taken: usize,
    /// Lengths of the frames in `bytes[taken..]`; for the first frame the rest of it.
    frames: VecDeque<u32>,
}

/// Output that can be written now: whole frames, the first possibly without its beginning.
#[derive(Clone, Debug)]
pub struct Transmit<'a> {
    pub bytes: &'a [u8],
    frames: std::collections::vec_deque::Iter<'a, u32>,
}

impl<'a> Transmit<'a> {
    /// Returns the frames one by one.
    pub fn frames(&self) -> impl Iterator<Item = &'a [u8]> {
        let mut rest = self.bytes;
        self.frames.clone().map_while(move |len| {
            let (frame, behind) = rest.split_at_checked(*len as usize)?;
            rest = behind;
            Some(frame)
        })
    }
}

impl StompOutbox {
    /// Returns the number of waiting octets.
    pub fn pending(&self) -> usize {
        self.bytes.len() - self.taken
    }

    /// Returns the allocated memory.
    pub fn capacity(&self) -> usize {
        self.bytes.capacity() + self.frames.capacity() * size_of::<u32>()
    }

    /// Frees memory that is not needed now.
    pub fn shrink(&mut self) {
        self.bytes.drain(..std::mem::take(&mut self.taken));
        self.bytes.shrink_to_fit();
        self.frames.shrink_to_fit();
    }

    pub fn is_empty(&self) -> bool {
        self.pending() == 0
    }

    /// Appends one frame, which `write` writes.
    pub fn frame(&mut self, write: impl FnOnce(&mut Vec<u8>)) {
        let before = self.bytes.len();
        // A long buffer grows in steps and does not double: a hundred stalled consumers would have
        // twice what they hold.
        if before >= STEP_BYTES && self.bytes.capacity() - before < STEP_BYTES / 8 {
            self.bytes.reserve_exact(STEP_BYTES);
        }
        write(&mut self.bytes);
        let len = self.bytes.len() - before;
        if len > 0 {
            self.frames.push_back(index_u32(len));
        }
    }

    /// Returns the first frames: at most `frames_max`, and at most `bytes_max` octets unless the
    /// first frame alone has more.
    pub fn transmit(&self, bytes_max: usize, frames_max: usize) -> Transmit<'_> {
        let pending = &self.bytes[self.taken..];
        let frames = self.frames.iter();
        if pending.len() <= bytes_max && frames.len() <= frames_max {
            return Transmit { bytes: pending, frames };
        }
        let mut len = 0;
        for frame in self.frames.iter().take(frames_max) {
            let longer = len + *frame as usize;
            if longer > bytes_max && len > 0 {
                break;
            }
            len = longer;
        }
        Transmit { bytes: &pending[..len], frames }
    }

    /// Removes octets that the connection has taken.
    pub fn take(&mut self, count: usize) {
        assert!(count <= self.pending(), "no more is taken than there was");
        self.taken += count;
        let mut rest = count;
        while let Some(front) = self.frames.front_mut().filter(|_| rest > 0) {
            let part = rest.min(*front as usize);
            *front -= index_u32(part);
            rest -= part;
            if *front == 0 {
                self.frames.pop_front();
            }
        }
        if self.taken == self.bytes.len() {
            self.bytes.clear();
            self.taken = 0;
            if self.bytes.capacity() > KEEP_BYTES_MAX {
                (self.bytes, self.frames) = (Vec::new(), VecDeque::new());
            }
        } else if self.taken >= COMPACT_BYTES && self.taken * 2 >= self.bytes.len() {
            self.bytes.drain(..std::mem::take(&mut self.taken));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn frame_boundaries_survive_partial_writes() {
        let mut outbox = StompOutbox::default();
        for text in ["one", "three", "five5"] {
            outbox.frame(|out| out.extend_from_slice(text.as_bytes()));
        }
        outbox.frame(|_| {});
        assert_eq!(outbox.transmit(100, 100).frames().count(), 3);
        assert_eq!(outbox.transmit(8, 100).bytes, b"onethree");
        assert_eq!(outbox.transmit(1, 100).bytes, b"one");
        assert_eq!(outbox.transmit(100, 2).bytes, b"onethree");
        outbox.take(4);
        let left: Vec<&[u8]> = outbox.transmit(100, 100).frames().collect();
        assert_eq!(left, [&b"hree"[..], b"five5"]);
        outbox.take(9);
        assert!(outbox.is_empty() && outbox.transmit(9, 9).bytes.is_empty());
    }

    #[test]
    fn taken_output_frees_its_memory() {
        let mut outbox = StompOutbox::default();
        for _ in 0..1_000 {
            outbox.frame(|out| out.extend_from_slice(&[7; 1_000]));
            if outbox.pending() > 200_000 {
                outbox.take(1_000);
            }
        }
        assert!(outbox.bytes.capacity() < 1_000_000, "{}", outbox.bytes.capacity());
    }

    #[test]
    fn an_empty_buffer_keeps_bounded_memory() {
        let mut outbox = StompOutbox::default();
        let mut write = |count: usize| {
            outbox.frame(|out| {
                out.reserve_exact(count);
                out.resize(count, 7);
            });
            outbox.take(count);
            (outbox.bytes.capacity(), outbox.frames.capacity())
        };
        let (bytes, frames) = write(KEEP_BYTES_MAX);
        assert!(bytes == KEEP_BYTES_MAX && frames > 0, "what a usual turn needs is kept");
        assert_eq!(write(KEEP_BYTES_MAX + 1), (0, 0));
    }
}
