//! Output that the connection has not taken yet: contiguous octets, so that one write takes as much
//! as the kernel accepts, and the end of each frame, because over WebSocket every frame is a
//! message.
//!
//! The last frame may be a shared one: further messages of its subscription join its body until
//! the output is handed out.

use std::collections::VecDeque;

use pitlane_engine::index::index_u32;

use crate::json::push_number;

/// Taken octets that stay at the front before the rest is moved there.
const COMPACT_BYTES: usize = 64 * 1_024;

/// Step by which a long buffer grows.
const STEP_BYTES: usize = 64 * 1_024;
/// Memory that an empty outbox keeps. A turn of a busy consumer needs no more, and thousands of
/// idle consumers may have it.
const KEEP_BYTES_MAX: usize = 128 * 1_024;
/// Octets of a body that several messages share. A longer frame saves nothing more: its head is
/// less than a hundredth of it. Clients with small buffers can still take it as a whole.
pub const SHARED_BODY_BYTES_MAX: usize = 16 * 1_024;

#[derive(Debug, Default)]
pub struct StompOutbox {
    bytes: Vec<u8>,
    /// Octets of `bytes` that are taken.
    taken: usize,
    /// Lengths of the frames in `bytes[taken..]`; for the first frame the rest of it.
    frames: VecDeque<u32>,
    /// The last frame, if messages may join it.
    shared: Option<SharedFrame>,
}

/// A frame that ends with `content-length:`, its digits, two line ends, the body and NUL.
#[derive(Clone, Copy, Debug)]
struct SharedFrame {
    /// Place of its subscription.
    subscription: u16,
    /// Begin of the body in the octets of the outbox.
    body_at: usize,
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
        self.shared = None;
        self.bytes.drain(..std::mem::take(&mut self.taken));
        self.bytes.shrink_to_fit();
        self.frames.shrink_to_fit();
    }

    pub fn is_empty(&self) -> bool {
        self.pending() == 0
    }

    /// Appends one frame, which `write` writes.
    pub fn frame(&mut self, write: impl FnOnce(&mut Vec<u8>)) {
        self.shared = None;
        let before = self.bytes.len();
        self.reserve_step();
        write(&mut self.bytes);
        let len = self.bytes.len() - before;
        if len > 0 {
            self.frames.push_back(index_u32(len));
        }
    }

    /// Appends one frame that further messages of this subscription may join. It ends with a body
    /// of `body_len` octets and NUL, and `content-length` is its last header.
    pub fn shared_frame(&mut self, subscription: u16, body_len: usize, write: impl FnOnce(&mut Vec<u8>)) {
        self.frame(write);
        self.shared = Some(SharedFrame { subscription, body_at: self.bytes.len() - 1 - body_len });
    }

    /// Lets no further message join the last frame.
    pub fn end_shared_frame(&mut self) {
        self.shared = None;
    }

    /// Appends a message to the body of the last frame, if that frame is shared by the messages of
    /// this subscription and has room. Returns whether it did.
    pub fn join(&mut self, subscription: u16, message: &[u8]) -> bool {
        let Some(SharedFrame { body_at, .. }) =
            self.shared.filter(|shared| shared.subscription == subscription)
        else {
            return false;
        };
        let old_len = self.bytes.len() - 1 - body_at;
        let len = old_len + message.len();
        if len > SHARED_BODY_BYTES_MAX {
            return false;
        }
        self.reserve_step();
        let (length_end, added) = (body_at - b"\n\n".len(), digits(len) - digits(old_len));
        // The length rarely gets a digit more, so the body rarely moves.
        (0..added).for_each(|_| self.bytes.insert(length_end, b'0'));
        self.shared = Some(SharedFrame { subscription, body_at: body_at + added });
        // The message takes the place of NUL. The new length is written behind it and moved.
        self.bytes.pop();
        self.bytes.extend_from_slice(message);
        let end = self.bytes.len();
        push_number(&mut self.bytes, len as u64);
        self.bytes.copy_within(end.., length_end - digits(old_len));
        self.bytes.truncate(end);
        self.bytes.push(0);
        let frame = self.frames.back_mut().expect("a shared frame is a frame");
        *frame += index_u32(message.len() + added);
        true
    }

    /// Makes room for a frame. A long buffer grows in steps and does not double: a hundred stalled
    /// consumers would have twice what they hold.
    fn reserve_step(&mut self) {
        let len = self.bytes.len();
        if len >= STEP_BYTES && self.bytes.capacity() - len < STEP_BYTES / 8 {
            self.bytes.reserve_exact(STEP_BYTES);
        }
    }

    /// Returns the first frames: at most `frames_max`, and at most `bytes_max` octets unless the
    /// first frame alone has more. No message joins a frame after this, because the caller may have
    /// copied it.
    pub fn transmit(&mut self, bytes_max: usize, frames_max: usize) -> Transmit<'_> {
        self.shared = None;
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
        self.shared = None;
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

/// Returns the number of decimal digits.
fn digits(number: usize) -> usize {
    number.checked_ilog10().map_or(1, |log| log as usize + 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Begins a shared frame.
    fn begin(outbox: &mut StompOutbox, subscription: u16, body: &[u8]) {
        outbox.shared_frame(subscription, body.len(), |out| {
            out.extend_from_slice(b"MESSAGE\ncontent-length:");
            push_number(out, body.len() as u64);
            out.extend_from_slice(b"\n\n");
            out.extend_from_slice(body);
            out.push(0);
        });
    }

    #[test]
    fn messages_join_the_last_frame_until_it_is_full_or_handed_out() {
        let mut outbox = StompOutbox::default();
        assert!(!outbox.join(7, b"x"), "there is no frame");
        outbox.frame(|out| out.push(b'\n'));
        assert!(!outbox.join(7, b"x"), "the frame is not shared");
        // The digits of the length grow one by one, and by two at once.
        for messages in [vec![1; 12], vec![9, 1, 90, 899, 1], vec![1, 98, 1], vec![5, 995], vec![0, 0, 1]] {
            begin(&mut outbox, 7, &vec![b'm'; messages[0]]);
            let mut length = messages[0];
            for more in &messages[1..] {
                assert!(outbox.join(7, &vec![b'm'; *more]));
                length += more;
                let expected = format!("MESSAGE\ncontent-length:{length}\n\n{}\0", "m".repeat(length));
                assert!(outbox.bytes.ends_with(expected.as_bytes()), "{messages:?}");
                assert_eq!(outbox.frames.back().copied(), Some(index_u32(expected.len())));
            }
            assert!(!outbox.join(8, b"x"), "another subscription");
        }
        let begun = outbox.frames.len();
        begin(&mut outbox, 7, &[b'm'; SHARED_BODY_BYTES_MAX - 1]);
        assert!(!outbox.join(7, b"xx") && outbox.join(7, b"x") && !outbox.join(7, b"x"), "it is full");
        begin(&mut outbox, 7, b"m");
        assert_eq!(outbox.frames.len(), begun + 2);
        assert_eq!(outbox.transmit(usize::MAX, 100).frames().count(), begun + 2);
        assert!(!outbox.join(7, b"x"), "it was handed out");
        begin(&mut outbox, 7, b"m");
        outbox.frame(|out| out.push(b'\n'));
        assert!(!outbox.join(7, b"x"), "another frame is behind it");
        begin(&mut outbox, 7, b"m");
        outbox.shrink();
        assert!(!outbox.join(7, b"x"));
        begin(&mut outbox, 7, b"m");
        outbox.end_shared_frame();
        assert!(!outbox.join(7, b"x"), "another subscription may get the place");
        let all = outbox.pending();
        outbox.take(all);
        assert!(outbox.is_empty() && outbox.frames.is_empty());
    }

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
    fn a_long_buffer_grows_in_few_steps_and_does_not_double() {
        const FRAME_BYTES: usize = 1_000;
        let mut outbox = StompOutbox::default();
        let frame = |outbox: &mut StompOutbox| outbox.frame(|out| out.extend_from_slice(&[7; FRAME_BYTES]));
        frame(&mut outbox);
        assert!(outbox.capacity() < STEP_BYTES, "a short one takes little");
        let (mut steps, mut capacity) = (0, 0);
        while outbox.pending() < 10 * STEP_BYTES {
            frame(&mut outbox);
            let bytes = outbox.bytes.capacity();
            steps += usize::from(bytes != capacity && outbox.pending() > 2 * STEP_BYTES);
            capacity = bytes;
            if outbox.pending() > 2 * STEP_BYTES {
                let spare = bytes - outbox.pending();
                assert!(spare <= STEP_BYTES, "{spare} of {bytes} are spare");
            }
        }
        assert!(steps <= 12, "{steps} steps");
        let frames = outbox.frames.capacity() * size_of::<u32>();
        assert_eq!(outbox.capacity(), outbox.bytes.capacity() + frames);
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
