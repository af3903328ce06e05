//! Finds an order by its id. Clients choose ids, so the table must resist clients that choose
//! colliding ids on purpose: the hash is keyed with a seed they do not know. The table cannot be
//! iterated, so its order is not observable.
//!
//! ```text
//! hash(session, id) ─► slot: 32 bits of the hash, number + 1 ─► the caller's slab: the id itself
//! ```
//!
//! A slot has eight bytes, and eight of them share a cache line. A search compares hashes there and
//! usually reads the slab once. The table is at most half full, so runs stay short. Removal shifts
//! the following slots back: there are no tombstones, so an old table is as fast as a new one.

use crate::id::IntId;
use crate::keyed_hash::KeyedHash;
use crate::pages::LargePages;
use crate::prefetch;

/// Open addressing from (session, id) to a number in the caller's slab, which holds the ids.
///
/// Invariant: between a number's home slot and its slot there is no empty one; at most half of the
/// slots are in use.
#[derive(Debug)]
pub struct IdIndex {
    /// Zero: empty. Otherwise the hash in the upper half, number + 1 in the lower half.
    slots: Vec<u64>,
    len: u32,
    max: u32,
    keyed_hash: KeyedHash,
}

/// Most numbers that an index can hold: the table for them has 2^32 slots, and the hash stored in a
/// slot gives each home.
pub const INDEX_MAX: u32 = 1 << 31;

/// Tables from this many slots on (8 MiB) use large pages. There may be many smaller ones, one for
/// each session, with few ids each.
const LARGE: usize = 1 << 20;

impl IdIndex {
    /// Creates an index for at most `max` ids. It reserves all memory now; untouched pages cost
    /// nothing.
    pub fn new(max: u32, seed: u64, pages: LargePages) -> IdIndex {
        assert!(max <= INDEX_MAX, "32 bits of hash determine the home slot");
        let slots = (max as usize * 2).next_power_of_two();
        let slots = if slots < LARGE { vec![0; slots] } else { pages.zeros(slots) };
        IdIndex { slots, len: 0, max, keyed_hash: KeyedHash::new(seed) }
    }

    pub fn len(&self) -> u32 {
        self.len
    }

    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    pub fn is_full(&self) -> bool {
        self.len == self.max
    }

    /// Prefetches memory for an id that will be looked up soon.
    #[inline]
    pub fn prefetch(&self, session: u16, id: &IntId) {
        prefetch::fetch(&self.slots[self.home(self.keyed_hash.hash(session, id))]);
    }

    /// Returns the number stored for this id. `is` says whether the slab entry of a number has the
    /// id.
    pub fn get(&self, session: u16, id: &IntId, is: impl Fn(u32) -> bool) -> Option<u32> {
        let hash = self.keyed_hash.hash(session, id);
        let mut at = self.home(hash);
        while self.slots[at] != 0 {
            let slot = self.slots[at];
            if hash_of(slot) == hash && is(number_of(slot)) {
                return Some(number_of(slot));
            }
            at = self.after(at);
        }
        None
    }

    /// Stores a number for an id that is not present; the caller has checked.
    pub fn insert(&mut self, session: u16, id: &IntId, number: u32) {
        assert!(!self.is_full(), "the caller checks for room first");
        assert!(number < INDEX_MAX, "a number has 31 bits");
        let hash = self.keyed_hash.hash(session, id);
        let mut at = self.home(hash);
        while self.slots[at] != 0 {
            at = self.after(at);
        }
        self.slots[at] = (hash as u64) << 32 | (number as u64 + 1);
        self.len += 1;
    }

    /// Removes the number of an id. Returns whether it was present.
    pub fn remove(&mut self, session: u16, id: &IntId, number: u32) -> bool {
        let hash = self.keyed_hash.hash(session, id);
        let slot = (hash as u64) << 32 | (number as u64 + 1);
        let mut at = self.home(hash);
        while self.slots[at] != slot {
            if self.slots[at] == 0 {
                return false;
            }
            at = self.after(at);
        }
        self.close_gap(at);
        self.len -= 1;
        true
    }

    /// Empties a slot, and moves back the slots that the gap would cut off from their home.
    fn close_gap(&mut self, mut gap: usize) {
        let mask = self.slots.len() - 1;
        let mut at = self.after(gap);
        while self.slots[at] != 0 {
            let home = self.home(hash_of(self.slots[at]));
            let away = at.wrapping_sub(home) & mask;
            let to_gap = at.wrapping_sub(gap) & mask;
            if away >= to_gap {
                self.slots[gap] = self.slots[at];
                gap = at;
            }
            at = self.after(at);
        }
        self.slots[gap] = 0;
    }

    fn home(&self, hash: u32) -> usize {
        hash as usize & (self.slots.len() - 1)
    }

    fn after(&self, at: usize) -> usize {
        (at + 1) & (self.slots.len() - 1)
    }
}

fn hash_of(slot: u64) -> u32 {
    (slot >> 32) as u32
}

fn number_of(slot: u64) -> u32 {
    (slot & 0xffff_ffff) as u32 - 1
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;
    use crate::rng::split_mix;

    struct TestRng(u64);

    impl TestRng {
        fn below(&mut self, n: u64) -> u64 {
            split_mix(&mut self.0) % n
        }
    }

    /// An index with the slab it needs.
    struct IndexedSlab {
        index: IdIndex,
        slab: Vec<(u16, IntId)>,
    }

    impl IndexedSlab {
        fn get(&self, session: u16, id: &IntId) -> Option<u32> {
            self.index.get(session, id, |number| self.slab[number as usize] == (session, *id))
        }
    }

    fn check(max: u32, ids: u64, steps: u32, seed: u64) {
        let mut rng = TestRng(seed);
        let slab = (0..ids).map(|n| ((n % 3) as u16, IntId::numbered(b'n', n / 3))).collect();
        let mut book = IndexedSlab { index: IdIndex::new(max, seed, LargePages::NONE), slab };
        let mut model = BTreeMap::new();
        for _ in 0..steps {
            let number = rng.below(ids) as u32;
            let (session, id) = book.slab[number as usize];
            assert_eq!(book.get(session, &id), model.get(&(session, id)).copied());
            if rng.below(2) == 0 {
                let was = model.remove(&(session, id)).is_some();
                assert_eq!(book.index.remove(session, &id, number), was);
            } else if !book.index.is_full() && !model.contains_key(&(session, id)) {
                book.index.insert(session, &id, number);
                model.insert((session, id), number);
            }
            assert_eq!(book.index.len() as usize, model.len());
        }
        for number in 0..ids as u32 {
            let (session, id) = book.slab[number as usize];
            assert_eq!(book.get(session, &id), model.get(&(session, id)).copied());
            book.index.remove(session, &id, number);
        }
        assert!(book.index.is_empty());
        assert!(book.index.slots.iter().all(|slot| *slot == 0), "nothing is left behind");
    }

    #[test]
    fn it_finds_what_a_plain_map_finds() {
        for seed in 0..20 {
            check(1, 3, 100, seed);
            check(8, 12, 2_000, seed);
            check(100, 150, 5_000, seed);
            check(1_000, 1_200, 5_000, seed);
        }
    }

    #[test]
    fn the_same_id_in_another_session_is_a_distinct_id() {
        let index = IdIndex::new(4, 1, LargePages::NONE);
        let id = IntId::parse(b"A").unwrap();
        assert!(index.is_empty());
        let mut filled = IdIndex::new(4, 1, LargePages::NONE);
        filled.insert(0, &id, 3);
        assert!(!filled.is_empty());
        assert_ne!(index.keyed_hash.hash(0, &id), index.keyed_hash.hash(1, &id));
        assert_eq!(index.get(0, &id, |_| true), None);
    }

    #[test]
    #[should_panic(expected = "the caller checks for room first")]
    fn there_is_room_for_exactly_the_requested_number() {
        let mut index = IdIndex::new(1, 1, LargePages::NONE);
        index.insert(0, &IntId::numbered(b'n', 1), 0);
        index.insert(0, &IntId::numbered(b'n', 2), 1);
    }
}
