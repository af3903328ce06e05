//! A keyed hash of ids. It spreads them over a table; and since nobody outside knows its keys, nobody can choose ids that all meet
//! in one place.

use crate::id::IntId;
use crate::rng::split_mix;

#[derive(Clone, Copy, Debug)]
pub struct KeyedHash {
    keys: [u64; 4],
}

impl KeyedHash {
    pub fn new(mut seed: u64) -> KeyedHash {
        KeyedHash { keys: std::array::from_fn(|_| split_mix(&mut seed)) }
    }

    /// Of an id within a session: its words, two by two, multiplied under the keys and folded (the way of wyhash).
    #[inline]
    pub fn hash(&self, session: u16, id: &IntId) -> u32 {
        self.hash_wide(session, id) as u32
    }

    /// The same with all its bits.
    #[inline]
    pub fn hash_wide(&self, session: u16, id: &IntId) -> u64 {
        let [begin, first, last, end] = self.keys;
        let mut hash = begin ^ session as u64;
        for pair in id.padded().as_chunks::<16>().0 {
            let pair = u128::from_le_bytes(*pair);
            // Behind the text there are zeros only.
            if pair == 0 {
                break;
            }
            hash = fold(pair as u64 ^ first, (pair >> 64) as u64 ^ hash);
        }
        fold(hash ^ last, end)
    }
}

/// Both halves of a product, in one.
#[inline]
pub(crate) fn fold(a: u64, b: u64) -> u64 {
    let product = a as u128 * b as u128;
    product as u64 ^ (product >> 64) as u64
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

    /// The most that meet in one of so many places.
    fn fullest(keyed_hash: &KeyedHash, ids: &[IntId], places: usize) -> usize {
        let mut counts = vec![0; places];
        ids.iter().for_each(|id| counts[keyed_hash.hash(0, id) as usize % places] += 1);
        counts.into_iter().max().unwrap()
    }

    #[test]
    fn ids_that_are_alike_are_spread() {
        for seed in 0..8 {
            assert!(fullest(&KeyedHash::new(seed), &texts(), 1 << 16) < 12, "seed {seed}");
        }
    }

    #[test]
    fn who_chooses_ids_for_one_seed_has_chosen_nothing_for_another() {
        let (ours, theirs) = (KeyedHash::new(1), KeyedHash::new(2));
        let crowd: Vec<IntId> = texts().into_iter().filter(|id| ours.hash(0, id) % 64 == 7).collect();
        assert!(crowd.len() > 400 && fullest(&theirs, &crowd, 64) < crowd.len() / 16);
    }

    #[test]
    fn the_same_id_in_another_session_is_another() {
        let keyed_hash = KeyedHash::new(1);
        let differ = texts().iter().filter(|id| keyed_hash.hash(0, id) != keyed_hash.hash(1, id)).count();
        assert_eq!(differ, texts().len());
    }
}
