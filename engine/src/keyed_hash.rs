//! A keyed hash of ids. It distributes them over a table. Clients do not know its keys, so they
//! cannot choose ids that all collide.
//!
//! No hash of a library: snapshots and the events between servers contain hashes of used ids
//! (`used_ids`), so another function would make them unreadable, and `foldhash` and `ahash` may
//! change theirs with any version.

use crate::id::IntId;
use crate::rng::split_mix;

#[derive(Clone, Copy, Debug)]
pub(crate) struct KeyedHash {
    keys: [u64; 4],
}

impl KeyedHash {
    pub(crate) fn new(mut seed: u64) -> KeyedHash {
        KeyedHash { keys: std::array::from_fn(|_| split_mix(&mut seed)) }
    }

    /// Hashes an id within a session: its words, two by two, multiplied under the keys and folded
    /// (as wyhash does).
    #[inline]
    pub(crate) fn hash(&self, session: u16, id: &IntId) -> u32 {
        (self.hash_wide(session, id) & 0xffff_ffff) as u32
    }

    /// Returns the same hash with all its bits.
    #[inline]
    pub(crate) fn hash_wide(&self, session: u16, id: &IntId) -> u64 {
        let [begin, first, last, end] = self.keys;
        let mut hash = begin ^ session as u64;
        for pair in id.padded().as_chunks::<8>().0.as_chunks::<2>().0 {
            let [low, high] = pair.map(u64::from_le_bytes);
            // Only zeros follow the text.
            if low | high == 0 {
                break;
            }
            hash = fold(low ^ first, high ^ hash);
        }
        fold(hash ^ last, end)
    }
}

/// Combines both halves of a product.
#[inline]
pub(crate) fn fold(a: u64, b: u64) -> u64 {
    let (low, high) = a.carrying_mul(b, 0);
    low ^ high
}

#[cfg(test)]
mod tests {
    use super::*;

    fn texts() -> Vec<IntId> {
        let numbered = (0..20_000).map(|number| format!("order-{number:06}"));
        let long = (0..20_000).map(|number| format!("a-rather-long-beginning-that-all-share-{number}"));
        let short = (33..127u8).map(|byte| char::from(byte).to_string());
        numbered.chain(long).chain(short).map(|text| IntId::parse(text.as_bytes()).unwrap()).collect()
    }

    /// Returns the largest number of ids in one of the places.
    fn fullest(keyed_hash: &KeyedHash, ids: &[IntId], places: usize) -> usize {
        let mut counts = vec![0; places];
        ids.iter().for_each(|id| counts[keyed_hash.hash(0, id) as usize % places] += 1);
        counts.into_iter().max().unwrap()
    }

    /// Snapshots and other servers know ids by these numbers.
    #[test]
    fn the_hash_of_an_id_does_not_change() {
        let keyed_hash = KeyedHash::new(7);
        for (id, hash) in [
            ("order-1", 0x647b_5386_de33_50a0),
            ("a-long-id-with-more-than-sixteen-characters", 0x2afd_9962_bee7_b491),
            (&"x".repeat(48), 0xa84c_0003_8489_8b56),
        ] {
            let id = IntId::parse(id.as_bytes()).unwrap();
            assert_eq!(keyed_hash.hash_wide(3, &id), hash);
            assert_eq!(keyed_hash.hash(3, &id) as u64, hash & 0xffff_ffff);
        }
    }

    #[test]
    fn ids_that_are_alike_are_spread() {
        for seed in 0..8 {
            assert!(fullest(&KeyedHash::new(seed), &texts(), 1 << 16) < 12, "seed {seed}");
        }
    }

    #[test]
    fn ids_that_collide_under_one_seed_do_not_under_another() {
        let (ours, theirs) = (KeyedHash::new(1), KeyedHash::new(2));
        let crowd: Vec<IntId> = texts().into_iter().filter(|id| ours.hash(0, id) % 64 == 7).collect();
        assert!(crowd.len() > 400 && fullest(&theirs, &crowd, 64) < crowd.len() / 16);
    }

    #[test]
    fn the_same_id_in_another_session_is_distinct() {
        let keyed_hash = KeyedHash::new(1);
        let differ = texts().iter().filter(|id| keyed_hash.hash(0, id) != keyed_hash.hash(1, id)).count();
        assert_eq!(differ, texts().len());
    }
}
