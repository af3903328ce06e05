//! The buffers into which the kernel receives, and the ring by which it learns which are free.
//!
//! ```text
//! free: named in the ring ─► filled by the kernel, lent ─► copied out, given back ─► free
//! ```
//!
//! The kernel writes only into free buffers. A lent one is read by copying and has one handle, so
//! that it is given back once.

use std::io;

use crate::memory::PageMemory;

/// Bytes of an entry of the ring, `struct io_uring_buf`: address, length, id, and two bytes that
/// are the tail of the ring in the first entry and unused in the others.
const ENTRY_BYTES: usize = 16;
/// Place of the tail.
const TAIL: usize = 14;
/// Distance between a buffer's end and the next one's beginning. If the buffers began a power of
/// two apart, their first lines would share a few sets of the cache.
const GAP: usize = 128;

/// A filled buffer, lent by the ring that returned it until it is given back.
#[derive(Debug)]
pub struct ReceiveBuffer {
    id: u16,
    len: u32,
}

impl ReceiveBuffer {
    /// Returns the number of received bytes.
    #[expect(clippy::len_without_is_empty, reason = "a buffer without bytes is not lent")]
    pub fn len(&self) -> usize {
        self.len as usize
    }
}

#[derive(Debug)]
pub(super) struct ReceiveBuffers {
    entries: PageMemory,
    bytes: PageMemory,
    buffer_bytes: u32,
    tail: u16,
    /// Whether each buffer is lent.
    lent: Vec<bool>,
    lent_count: usize,
}

impl ReceiveBuffers {
    /// Creates `count` free buffers. The count must be a power of two, at most 32,768.
    pub(super) fn new(count: u16, buffer_bytes: u32) -> io::Result<ReceiveBuffers> {
        if !count.is_power_of_two() || buffer_bytes == 0 {
            return Err(io::ErrorKind::InvalidInput.into());
        }
        let entries = PageMemory::new(usize::from(count) * ENTRY_BYTES)?;
        let bytes = PageMemory::new(usize::from(count) * stride(buffer_bytes))?;
        let lent = vec![true; usize::from(count)];
        let mut buffers =
            ReceiveBuffers { entries, bytes, buffer_bytes, tail: 0, lent_count: lent.len(), lent };
        (0..count).for_each(|id| buffers.give_back(ReceiveBuffer { id, len: 0 }));
        Ok(buffers)
    }

    /// Returns the address of the ring of free buffers.
    pub(super) fn address(&self) -> u64 {
        self.entries.address()
    }

    /// Returns the number of buffers.
    pub(super) fn count(&self) -> u16 {
        u16::try_from(self.lent.len()).expect("it was created from such a number")
    }

    /// Returns how many buffers are not lent.
    pub(super) fn free(&self) -> usize {
        self.lent.len() - self.lent_count
    }

    /// Records that the kernel has filled a buffer.
    pub(super) fn lend(&mut self, id: u16, len: u32) -> ReceiveBuffer {
        assert!(len <= self.buffer_bytes, "the kernel fills no more than a buffer");
        let lent = &mut self.lent[usize::from(id)];
        assert!(!*lent, "the kernel fills only free buffers");
        *lent = true;
        self.lent_count += 1;
        ReceiveBuffer { id, len }
    }

    /// Copies bytes of a buffer, from its byte `at` on, and returns how many.
    #[inline]
    pub(super) fn copy(&self, buffer: &ReceiveBuffer, at: usize, into: &mut [u8]) -> usize {
        assert!(self.lent[usize::from(buffer.id)], "only a lent buffer is read");
        let at = at.min(buffer.len());
        let count = into.len().min(buffer.len() - at);
        let start = usize::from(buffer.id) * stride(self.buffer_bytes);
        self.bytes.span().copy_to(start + at, &mut into[..count]);
        count
    }

    /// Makes a buffer free again.
    pub(super) fn give_back(&mut self, buffer: ReceiveBuffer) {
        let id = usize::from(buffer.id);
        assert!(std::mem::take(&mut self.lent[id]), "only a lent buffer is given back");
        self.lent_count -= 1;
        let address = self.bytes.address() + (id * stride(self.buffer_bytes)) as u64;
        let mut entry = [0; TAIL];
        entry[..8].copy_from_slice(&address.to_ne_bytes());
        entry[8..12].copy_from_slice(&self.buffer_bytes.to_ne_bytes());
        entry[12..].copy_from_slice(&buffer.id.to_ne_bytes());
        let place = usize::from(self.tail) % self.lent.len();
        self.entries.span_mut().write(place * ENTRY_BYTES, &entry);
        self.tail = self.tail.wrapping_add(1);
        self.entries.span_mut().publish_u16(TAIL, self.tail);
    }
}

fn stride(buffer_bytes: u32) -> usize {
    buffer_bytes as usize + GAP
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Fills the next free buffer as the kernel does.
    fn fill(buffers: &mut ReceiveBuffers, head: &mut u16, bytes: &[u8]) -> ReceiveBuffer {
        let mut entry = [0; ENTRY_BYTES];
        let place = usize::from(*head % buffers.count());
        buffers.entries.span().copy_to(place * ENTRY_BYTES, &mut entry);
        *head = head.wrapping_add(1);
        let address = u64::from_ne_bytes(entry[..8].try_into().expect("eight bytes"));
        let id = u16::from_ne_bytes(entry[12..14].try_into().expect("two bytes"));
        let at = usize::try_from(address - buffers.bytes.address()).expect("within the memory");
        buffers.bytes.span_mut().write(at, bytes);
        buffers.lend(id, u32::try_from(bytes.len()).expect("a few"))
    }

    fn tail(buffers: &ReceiveBuffers) -> u16 {
        let mut tail = [0; 2];
        buffers.entries.span().copy_to(TAIL, &mut tail);
        u16::from_ne_bytes(tail)
    }

    #[test]
    fn the_layout_is_that_of_the_header() {
        assert_eq!(size_of::<io_uring::types::BufRingEntry>(), ENTRY_BYTES);
    }

    #[test]
    fn buffers_are_filled_copied_and_given_back_in_any_order() {
        let mut buffers = ReceiveBuffers::new(4, 8).expect("there is memory");
        let mut head = 0;
        assert_eq!((tail(&buffers), buffers.free(), buffers.count()), (4, 4, 4));
        for round in 0..100_u16 {
            let first = fill(&mut buffers, &mut head, b"first");
            let second = fill(&mut buffers, &mut head, b"2nd");
            assert_eq!((first.len(), second.len(), buffers.free()), (5, 3, 2));
            let mut out = [0; 8];
            assert_eq!(buffers.copy(&first, 1, &mut out[..2]), 2);
            assert_eq!(buffers.copy(&first, 3, &mut out[2..]), 2);
            assert_eq!(&out[..4], b"irst");
            assert_eq!(buffers.copy(&second, 3, &mut out), 0);
            assert_eq!(buffers.copy(&second, usize::MAX, &mut out), 0);
            let (one, other) = if round % 2 == 0 { (first, second) } else { (second, first) };
            buffers.give_back(one);
            buffers.give_back(other);
            assert_eq!((tail(&buffers), buffers.free()), (4 + 2 * (round + 1), 4));
        }
    }

    #[test]
    fn a_number_of_buffers_that_the_kernel_refuses_is_refused() {
        assert!(ReceiveBuffers::new(0, 8).is_err());
        assert!(ReceiveBuffers::new(3, 8).is_err());
        assert!(ReceiveBuffers::new(4, 0).is_err());
    }

    #[test]
    #[should_panic(expected = "the kernel fills only free buffers")]
    fn a_buffer_is_not_lent_twice() {
        let mut buffers = ReceiveBuffers::new(4, 8).expect("there is memory");
        _ = buffers.lend(1, 8);
        _ = buffers.lend(1, 8);
    }

    #[test]
    #[should_panic(expected = "only a lent buffer is given back")]
    fn a_buffer_of_another_ring_is_not_given_back() {
        let mut one = ReceiveBuffers::new(4, 8).expect("there is memory");
        let mut other = ReceiveBuffers::new(4, 8).expect("there is memory");
        other.give_back(one.lend(1, 8));
    }
}
