//! Finding an order by its id. Clients choose ids, so the table is built against those who choose badly on purpose:
//! the hash is keyed with a seed they do not know. It cannot be walked, so its order cannot be seen.
//!
//! ```text
//! hash(session, id) ─► slot: 32 bits of the hash, number + 1 ─► the caller's slab: the id itself
//! ```
//!
//! A slot has eight bytes, eight of them share a cache line; a search compares hashes there and looks into the slab
//! once, as a rule. The table is at most half full, so runs stay short. Removal shifts what follows backward: no
//! tombstones, so a table that has lived long is as fast as a new one.

use std::cell::Cell;

use crate::ahead;
use crate::id::IntId;

/// Open addressing from (session, id) to a number in the caller's slab, which holds the ids.
///
/// Invariant: between a number's home slot and its slot there is no empty one; at most half of the slots are taken.
#[derive(Debug)]
pub struct IdIndex {
    /// Zero: empty. Else hash in the upper half, number + 1 in the lower.
    slots: Vec<u64>,
    len: u32,
    max: u32,
    keys: [u64; 2],
    /// What was hashed last: of one id several things are asked in a row, as a rule.
    last: Cell<Hashed>,
    /// What was hashed ahead.
    foreseen: Cell<Hashed>,
}

#[derive(Clone, Copy, Debug)]
struct Hashed {
    id: IntId,
    session: u16,
    hash: u32,
}

/// Most numbers an index can hold: the table for them has 2^32 slots, and the hash kept in a slot tells each home.
pub const INDEX_MAX: u32 = 1 << 31;

/// From so many slots on (8 MiB) a table is worth large pages. Smaller ones may be many, one for each session, with few ids each.
const LARGE: usize = 1 << 20;

impl IdIndex {
    /// An index for at most `max` ids. All its memory is reserved now; pages never touched cost nothing.
    pub fn new(max: u32, seed: u64) -> IdIndex {
        assert!(max <= INDEX_MAX, "32 bits of hash tell the home slot");
        let slots = (max as usize * 2).next_power_of_two();
        let slots = if slots < LARGE { vec![0; slots] } else { ahead::zeros(slots) };
        let keys = [mix(seed), mix(seed ^ u64::MAX)];
        let none = Hashed { id: IntId::NONE, session: 0, hash: sip(keys, 0, &IntId::NONE) };
        IdIndex { slots, len: 0, max, keys, last: Cell::new(none), foreseen: Cell::new(none) }
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

    /// Has memory brought near for an id that will be asked for soon.
    #[inline]
    pub fn foresee(&self, session: u16, id: &IntId) {
        let hash = sip(self.keys, session, id);
        self.foreseen.set(Hashed { id: *id, session, hash });
        ahead::fetch(&self.slots[self.home(hash)]);
    }

    /// The number kept for this id; `is` tells whether the entry of a number in the slab has it.
    pub fn get(&self, session: u16, id: &IntId, is: impl Fn(u32) -> bool) -> Option<u32> {
        let hash = self.hash(session, id);
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

    /// Keeps a number for an id that is not there yet; the caller has asked.
    pub fn insert(&mut self, session: u16, id: &IntId, number: u32) {
        assert!(!self.is_full(), "the caller looks for room first");
        assert!(number < INDEX_MAX, "a number has 31 bits");
        let hash = self.hash(session, id);
        let mut at = self.home(hash);
        while self.slots[at] != 0 {
            at = self.after(at);
        }
        self.slots[at] = (hash as u64) << 32 | (number as u64 + 1);
        self.len += 1;
    }

    /// Forgets the number kept for an id. Answers whether it was there.
    pub fn remove(&mut self, session: u16, id: &IntId, number: u32) -> bool {
        let hash = self.hash(session, id);
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

    /// Empties a slot, and moves into it what could not stay behind the gap.
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

    fn hash(&self, session: u16, id: &IntId) -> u32 {
        for known in [&self.last, &self.foreseen] {
            let known = known.get();
            if known.session == session && known.id == *id {
                self.last.set(known);
                return known.hash;
            }
        }
        let hash = sip(self.keys, session, id);
        self.last.set(Hashed { id: *id, session, hash });
        hash
    }
}

/// SipHash-1-3 of the id's words and a last one with their count and the session.
fn sip(keys: [u64; 2], session: u16, id: &IntId) -> u32 {
    let mut sip = Sip::new(keys);
    let mut count = 0u64;
    for word in id.padded().as_chunks::<8>().0 {
        let word = u64::from_le_bytes(*word);
        if word == 0 {
            break;
        }
        sip.write(word);
        count += 1;
    }
    sip.write(count << 16 | session as u64);
    let hash = sip.finish();
    (hash >> 32) as u32 ^ hash as u32
}

fn hash_of(slot: u64) -> u32 {
    (slot >> 32) as u32
}

fn number_of(slot: u64) -> u32 {
    slot as u32 - 1
}

/// SplitMix64: one seed becomes two keys.
fn mix(seed: u64) -> u64 {
    let mut x = seed.wrapping_add(0x9e37_79b9_7f4a_7c15);
    x = (x ^ x >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    x = (x ^ x >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
    x ^ x >> 31
}

/// SipHash-1-3 (Aumasson and Bernstein) over whole words: one round each, three at the end.
struct Sip([u64; 4]);

impl Sip {
    fn new([k0, k1]: [u64; 2]) -> Sip {
        Sip([
            k0 ^ 0x736f_6d65_7073_6575,
            k1 ^ 0x646f_7261_6e64_6f6d,
            k0 ^ 0x6c79_6765_6e65_7261,
            k1 ^ 0x7465_6462_7974_6573,
        ])
    }

    fn write(&mut self, word: u64) {
        self.0[3] ^= word;
        self.round();
        self.0[0] ^= word;
    }

    fn finish(mut self) -> u64 {
        self.0[2] ^= 0xff;
        self.round();
        self.round();
        self.round();
        self.0[0] ^ self.0[1] ^ self.0[2] ^ self.0[3]
    }

    fn round(&mut self) {
        let [mut a, mut b, mut c, mut d] = self.0;
        a = a.wrapping_add(b);
        b = b.rotate_left(13) ^ a;
        a = a.rotate_left(32);
        c = c.wrapping_add(d);
        d = d.rotate_left(16) ^ c;
        a = a.wrapping_add(d);
        d = d.rotate_left(21) ^ a;
        c = c.wrapping_add(b);
        b = b.rotate_left(17) ^ c;
        c = c.rotate_left(32);
        self.0 = [a, b, c, d];
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;

    struct Rng(u64);

    impl Rng {
        fn below(&mut self, n: u64) -> u64 {
            self.0 = self.0.wrapping_add(1);
            mix(self.0) % n
        }
    }

    /// An index with the slab it needs.
    struct Book {
        index: IdIndex,
        slab: Vec<(u16, IntId)>,
    }

    impl Book {
        fn get(&self, session: u16, id: &IntId) -> Option<u32> {
            self.index.get(session, id, |number| self.slab[number as usize] == (session, *id))
        }
    }

    fn check(max: u32, ids: u64, steps: u32, seed: u64) {
        let mut rng = Rng(seed);
        let slab = (0..ids).map(|n| ((n % 3) as u16, IntId::numbered(b'n', n / 3))).collect();
        let mut book = Book { index: IdIndex::new(max, seed), slab };
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
    fn the_same_id_in_another_session_is_another_id() {
        let index = IdIndex::new(4, 1);
        let id = IntId::parse(b"A").unwrap();
        assert_ne!(index.hash(0, &id), index.hash(1, &id));
        assert_eq!(index.get(0, &id, |_| true), None);
    }

    #[test]
    fn what_is_foreseen_or_asked_again_is_hashed_the_same() {
        let index = IdIndex::new(4, 1);
        let ids: Vec<_> = (0..4).map(|n| (n as u16 % 2, IntId::numbered(b'n', n / 2))).collect();
        let plain = ids.clone().into_iter().map(|(session, id)| sip(index.keys, session, &id));
        let plain: Vec<u32> = plain.collect();
        for at in [0, 1, 1, 3, 2, 0, 3, 3] {
            let (session, id) = &ids[(at + 1) % 4];
            index.foresee(*session, id);
            assert_eq!(index.hash(ids[at].0, &ids[at].1), plain[at]);
        }
    }

    #[test]
    fn another_seed_spreads_the_same_ids_elsewhere() {
        let ids: Vec<_> = (0..1_000).map(|n| IntId::numbered(b'n', n)).collect();
        let first = IdIndex::new(1 << 16, 1);
        // The thousand ids that would all meet in a few slots under one seed.
        let crowd: Vec<_> = (0..300_000)
            .map(|n| IntId::numbered(b'x', n))
            .filter(|id| first.hash(0, id) % 256 == 7)
            .collect();
        assert!(crowd.len() > 1_000);
        let other = IdIndex::new(1 << 16, 2);
        for ids in [ids, crowd] {
            let mut homes: Vec<_> = ids.iter().map(|id| other.hash(0, id) % 256).collect();
            homes.sort_unstable();
            homes.dedup();
            assert!(homes.len() > 240, "{} of 256", homes.len());
        }
    }

    /// The standard library's hasher is SipHash-1-3 under the key zero; its last word holds the length.
    #[test]
    fn the_hash_is_siphash_1_3() {
        use std::hash::Hasher;
        let mut theirs = std::hash::DefaultHasher::new();
        let mut ours = Sip::new([0, 0]);
        for word in [0x0706_0504_0302_0100, 42] {
            theirs.write_u64(word);
            ours.write(word);
        }
        ours.write(16 << 56);
        assert_eq!(ours.finish(), theirs.finish());
    }

    #[test]
    #[should_panic(expected = "the caller looks for room first")]
    fn there_is_no_more_room_than_was_asked_for() {
        let mut index = IdIndex::new(1, 1);
        index.insert(0, &IntId::numbered(b'n', 1), 0);
        index.insert(0, &IntId::numbered(b'n', 2), 1);
    }
}
