//! Bytes received and not yet consumed.
//!
//! ```text
//! storage  ░░░░░░░█████████░░░░░░░░░░
//!                 head     tail
//! ```
//!
//! A connection without unconsumed bytes has no storage: a read uses a spare one, which is passed
//! from connection to connection and stays in the cache. A connection keeps it only while a message
//! is incomplete.

/// Number of spare storages kept. More are needed only if as many connections have an incomplete
/// message each.
const SPARES_MAX: usize = 64;

/// Storages of one size, with all bytes initialised.
#[derive(Debug)]
pub(super) struct SpareBuffers {
    storages: Vec<Vec<u8>>,
    size: usize,
}

impl SpareBuffers {
    pub(super) fn new(size: usize) -> SpareBuffers {
        SpareBuffers { storages: Vec::with_capacity(SPARES_MAX), size }
    }

    pub(super) fn take(&mut self) -> Vec<u8> {
        self.storages.pop().unwrap_or_else(|| vec![0; self.size])
    }

    /// Returns a storage to the pool. A storage that grew is freed.
    pub(super) fn put_back(&mut self, storage: Vec<u8>) {
        if storage.len() == self.size && self.storages.len() < SPARES_MAX {
            self.storages.push(storage);
        }
    }
}

/// Invariant: `head <= tail <= storage.len()`; without bytes both are 0.
#[derive(Debug, Default)]
pub(super) struct SocketInput {
    storage: Vec<u8>,
    head: usize,
    tail: usize,
}

impl SocketInput {
    pub(super) fn bytes(&self) -> &[u8] {
        &self.storage[self.head..self.tail]
    }

    pub(super) fn is_empty(&self) -> bool {
        self.head == self.tail
    }

    pub(super) fn consume(&mut self, count: usize) {
        assert!(count <= self.tail - self.head, "no more is consumed than there is");
        self.head += count;
        if self.is_empty() {
            (self.head, self.tail) = (0, 0);
        }
    }

    /// Returns space to read into, up to `cap` bytes in total; `None` if the input is full.
    pub(super) fn space(&mut self, spare: &mut SpareBuffers, cap: usize) -> Option<&mut [u8]> {
        if self.storage.is_empty() {
            self.storage = spare.take();
        }
        let size = self.storage.len().min(cap);
        if self.head > 0 && size.saturating_sub(self.tail) < size / 4 {
            self.move_to_front();
        }
        if self.tail >= self.storage.len() && self.storage.len() < cap {
            let grown = (self.storage.len() * 2).min(cap);
            self.storage.resize(grown, 0);
        }
        let end = self.storage.len().min(cap);
        if self.tail < end { Some(&mut self.storage[self.tail..end]) } else { None }
    }

    /// Records that `count` bytes were read into `space`.
    pub(super) fn filled(&mut self, count: usize) {
        self.tail += count;
        assert!(self.tail <= self.storage.len(), "no more is read than there was room for");
    }

    /// Returns space for exactly `count` bytes, whatever is stored already.
    pub(super) fn reserve(&mut self, spare: &mut SpareBuffers, count: usize) -> &mut [u8] {
        if self.storage.is_empty() {
            self.storage = spare.take();
        }
        if self.tail + count > self.storage.len() {
            self.move_to_front();
        }
        if self.tail + count > self.storage.len() {
            self.storage.resize((self.tail + count).next_power_of_two(), 0);
        }
        &mut self.storage[self.tail..self.tail + count]
    }

    /// Returns the storage to the pool if it is empty.
    pub(super) fn release_if_empty(&mut self, spare: &mut SpareBuffers) {
        if self.is_empty() && !self.storage.is_empty() {
            spare.put_back(std::mem::take(&mut self.storage));
        }
    }

    fn move_to_front(&mut self) {
        self.storage.copy_within(self.head..self.tail, 0);
        (self.head, self.tail) = (0, self.tail - self.head);
    }
}

#[cfg(test)]
mod tests {
    use pitlane_engine::index::index_u8;

    use super::*;

    fn put(input: &mut SocketInput, spare: &mut SpareBuffers, cap: usize, bytes: &[u8]) -> usize {
        let Some(space) = input.space(spare, cap) else { return 0 };
        let count = bytes.len().min(space.len());
        space[..count].copy_from_slice(&bytes[..count]);
        input.filled(count);
        count
    }

    #[test]
    fn an_empty_input_holds_no_storage() {
        let mut spare = SpareBuffers::new(8);
        let mut input = SocketInput::default();
        assert_eq!(put(&mut input, &mut spare, 64, b"abc"), 3);
        input.consume(3);
        input.release_if_empty(&mut spare);
        assert!(input.storage.is_empty());
        assert_eq!(spare.storages.len(), 1);
    }

    #[test]
    fn an_input_grows_to_its_cap_and_no_further() {
        let mut spare = SpareBuffers::new(8);
        let mut input = SocketInput::default();
        let mut taken = 0;
        loop {
            let count = put(&mut input, &mut spare, 20, &[b'x'; 100]);
            if count == 0 {
                break;
            }
            taken += count;
        }
        assert_eq!(taken, 20);
        input.consume(15);
        assert_eq!(put(&mut input, &mut spare, 20, &[b'y'; 100]), 15);
        assert_eq!(input.bytes(), b"xxxxxyyyyyyyyyyyyyyy");
        input.consume(20);
        input.release_if_empty(&mut spare);
        assert!(spare.storages.is_empty(), "a storage that grew is freed");
    }

    #[test]
    fn a_cap_below_the_spare_size_holds() {
        let mut spare = SpareBuffers::new(64);
        let mut input = SocketInput::default();
        assert_eq!(put(&mut input, &mut spare, 10, &[1; 100]), 10);
        assert_eq!(put(&mut input, &mut spare, 10, &[1; 100]), 0);
    }

    #[test]
    fn bytes_stay_in_order_through_any_mix() {
        let mut spare = SpareBuffers::new(16);
        let mut input = SocketInput::default();
        let (mut next_in, mut next_out) = (0u8, 0u8);
        for step in 1..500usize {
            let bytes: Vec<u8> = (0..13).take(step % 13).map(|at| next_in.wrapping_add(at)).collect();
            next_in = next_in.wrapping_add(index_u8(put(&mut input, &mut spare, 40, &bytes)));
            let count = input.bytes().len().min(step % 7);
            for &byte in &input.bytes()[..count] {
                assert_eq!(byte, next_out);
                next_out = next_out.wrapping_add(1);
            }
            input.consume(count);
            input.release_if_empty(&mut spare);
        }
    }
}
