//! Texts of order ids and the orders they identify. An order has a chain of ids, from its first to
//! its current one; a text may occur in several chains, since an id is unique only within its
//! source.
//!
//! ```text
//! bucket ─► entry ─► entry ─► …            texts in the same bucket, by `next`; the bucket has the hash of the first
//! first ⇄ … ⇄ before ⇄ current             ids of one order, by `older` and `newer`
//! ```
//!
//! The index is a linear hash: it grows by one bucket with each entry, so no insertion ever pays
//! for all the others. It cannot be iterated; the caller of a lookup sorts the results. Hashes and
//! bucket links are stored apart from the texts, eight to a cache line: splitting a bucket reads
//! those, and not texts that have not been read for long.

use super::slab::{NONE, PagedTable, Places};
use crate::id::IntId;
use crate::keyed_hash::KeyedHash;
use crate::pages::LargePages;
use crate::prefetch;

/// One id of one order.
#[derive(Clone, Copy, Debug)]
#[repr(align(64))]
struct IdEntry {
    id: IntId,
    older: u32,
    newer: u32,
    /// Index of the order's record.
    order: u32,
}

const _: () = assert!(size_of::<IdEntry>() == 64, "an id has one cache line");

/// The first entry of a bucket and its hash, so that a bucket of one, the common case, is split
/// without other memory.
#[derive(Clone, Copy, Debug)]
struct IdBucket {
    hash: u32,
    /// Flagged if there are others behind it.
    first: u32,
}

/// Entries have numbers below it.
const MORE: u32 = 1 << 31;

impl IdBucket {
    const EMPTY: IdBucket = IdBucket { hash: 0, first: NONE };

    fn new(hash: u32, first: u32, next: u32) -> IdBucket {
        assert!(first < MORE, "an order takes more memory than its number can count");
        IdBucket { hash, first: if next == NONE { first } else { first | MORE } }
    }

    fn first(self) -> u32 {
        if self.first == NONE { NONE } else { self.first & !MORE }
    }

    fn has_more(self) -> bool {
        self.first != NONE && self.first & MORE != 0
    }
}

/// Place of an entry in the index.
#[derive(Clone, Copy, Debug)]
struct IdLink {
    /// Of its text.
    hash: u32,
    /// The next in its bucket.
    next: u32,
}

#[derive(Debug)]
pub(super) struct IdChains {
    /// Of the entries.
    places: Places,
    entries: PagedTable<IdEntry>,
    links: PagedTable<IdLink>,
    /// At least one.
    buckets: Vec<IdBucket>,
    /// The bits of the highest bucket number, all set.
    mask: usize,
    keyed_hash: KeyedHash,
}

impl IdChains {
    pub(super) fn new(seed: u64, large: LargePages) -> IdChains {
        IdChains {
            places: Places::default(),
            entries: PagedTable::new(large),
            links: PagedTable::new(large),
            buckets: vec![IdBucket::EMPTY],
            mask: 0,
            keyed_hash: KeyedHash::new(seed),
        }
    }

    /// Prefetches memory for a new order with this id.
    pub(super) fn prefetch(&self, id: &IntId) {
        prefetch::fetch(&self.buckets[self.bucket(self.keyed_hash.hash(0, id))]);
    }

    /// Creates the chain of a new order with one id and returns its only entry.
    pub(super) fn insert(&mut self, id: &IntId, order: u32) -> u32 {
        let at = self.places.take();
        self.entries.put(at, IdEntry { id: *id, older: NONE, newer: NONE, order });
        let hash = self.keyed_hash.hash(0, id);
        let bucket = self.bucket(hash);
        let next = self.buckets[bucket].first();
        self.links.put(at, IdLink { hash, next });
        self.buckets[bucket] = IdBucket::new(hash, at, next);
        if self.places.len() > self.buckets.len() {
            self.split();
        }
        at
    }

    /// Appends a newer id after the current one.
    pub(super) fn append(&mut self, current: u32, id: &IntId) -> u32 {
        let order = self.entries[current].order;
        let at = self.insert(id, order);
        self.entries[at].older = current;
        self.entries[current].newer = at;
        at
    }

    /// Forgets the second id of a chain: the first identifies the order and stays.
    pub(super) fn remove_second(&mut self, first: u32) {
        let second = self.entries[first].newer;
        assert!(second != NONE, "a chain of one has no second");
        let third = self.entries[second].newer;
        assert!(third != NONE, "the current id stays");
        self.entries[first].newer = third;
        self.entries[third].older = first;
        self.remove(second);
    }

    /// Forgets a whole chain, given its first entry.
    pub(super) fn remove_chain(&mut self, first: u32) {
        let mut at = first;
        while at != NONE {
            let newer = self.entries[at].newer;
            self.remove(at);
            at = newer;
        }
    }

    pub(super) fn id(&self, entry: u32) -> &IntId {
        &self.entries[entry].id
    }

    /// Returns the id before this one in its chain.
    pub(super) fn older(&self, entry: u32) -> Option<IntId> {
        let older = self.entries[entry].older;
        (older != NONE).then(|| *self.id(older))
    }

    /// Returns the records of all orders that have this id in their chain, in no particular order.
    pub(super) fn find(&self, id: &IntId) -> impl Iterator<Item = u32> {
        let hash = self.keyed_hash.hash(0, id);
        let mut next = self.buckets[self.bucket(hash)].first();
        std::iter::from_fn(move || {
            while next != NONE {
                let (at, link) = (next, self.links[next]);
                next = link.next;
                if link.hash == hash && self.entries[at].id == *id {
                    return Some(self.entries[at].order);
                }
            }
            None
        })
    }

    fn remove(&mut self, at: u32) {
        let IdLink { hash, next } = self.links[at];
        let bucket = self.bucket(hash);
        let first = self.buckets[bucket].first();
        if first == at {
            self.head(bucket, next);
        } else {
            let mut before = first;
            while self.links[before].next != at {
                before = self.links[before].next;
            }
            self.links[before].next = next;
            self.head(bucket, first);
        }
        self.places.give(at);
    }

    /// Puts an entry, with those behind it, at the head of a bucket.
    fn head(&mut self, bucket: usize, first: u32) {
        self.buckets[bucket] = match first {
            NONE => IdBucket::EMPTY,
            first => IdBucket::new(self.links[first].hash, first, self.links[first].next),
        };
    }

    /// Adds a bucket, which takes its share from the one that held it so far.
    fn split(&mut self) {
        let new = self.buckets.len();
        self.mask |= new;
        let half = self.mask / 2;
        let old = new & half;
        let divided = self.buckets[old];
        let (mut staying, mut moved) = (IdBucket::EMPTY, IdBucket::EMPTY);
        let is_moved = |hash: u32| hash as usize & (half + 1) != 0;
        if divided.has_more() {
            let mut at = divided.first();
            while at != NONE {
                let link = &mut self.links[at];
                let bucket = if is_moved(link.hash) { &mut moved } else { &mut staying };
                let next = std::mem::replace(&mut link.next, bucket.first());
                *bucket = IdBucket::new(link.hash, at, link.next);
                at = next;
            }
        } else if is_moved(divided.hash) {
            moved = divided;
        } else {
            staying = divided;
        }
        self.buckets[old] = staying;
        self.buckets.push(moved);
        // The next bucket to be split, when the next entry arrives.
        if let Some(next) = self.buckets.get(old + 1).filter(|next| next.has_more()) {
            prefetch::fetch(&self.links[next.first()]);
        }
    }

    /// Returns the bucket of a hash. Buckets are numbered by the low bits of the hash: as many bits
    /// as the highest number has, one less where that number does not exist yet.
    #[inline]
    fn bucket(&self, hash: u32) -> usize {
        let place = hash as usize & self.mask;
        if place < self.buckets.len() { place } else { place & (self.mask / 2) }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;
    use crate::rng::Rng;

    fn id(number: u64) -> IntId {
        IntId::numbered(b'n', number)
    }

    fn found(ids: &IdChains, id: &IntId) -> Vec<u32> {
        let mut found: Vec<u32> = ids.find(id).collect();
        found.sort_unstable();
        found
    }

    #[test]
    fn every_id_of_a_chain_finds_its_order_until_the_chain_goes() {
        let mut ids = IdChains::new(1, LargePages::NONE);
        let first = ids.insert(&id(1), 7);
        let second = ids.append(first, &id(2));
        let third = ids.append(second, &id(3));
        ids.insert(&id(2), 8);
        assert_eq!((*ids.id(third), ids.older(third), ids.older(first)), (id(3), Some(id(2)), None));
        assert_eq!(found(&ids, &id(2)), [7, 8]);
        ids.remove_second(first);
        assert_eq!(found(&ids, &id(2)), [8]);
        assert_eq!(ids.older(third), Some(id(1)));
        ids.remove_chain(first);
        assert_eq!((found(&ids, &id(1)), found(&ids, &id(3))), (vec![], vec![]));
        assert_eq!(found(&ids, &id(2)), [8]);
    }

    #[test]
    fn the_index_agrees_with_a_sorted_map_through_growth_and_removal() {
        let mut rng = Rng::new(3);
        let mut ids = IdChains::new(9, LargePages::NONE);
        let mut twin: BTreeMap<u32, (IntId, u32)> = BTreeMap::new();
        for order in 0..5_000u32 {
            let text = id(rng.below(1_500));
            twin.insert(order, (text, ids.insert(&text, order)));
            if rng.below(3) == 0 {
                let nth = rng.below(twin.len() as u64) as usize;
                let gone = *twin.keys().nth(nth).unwrap();
                ids.remove_chain(twin.remove(&gone).unwrap().1);
            }
        }
        assert_eq!(ids.places.len(), twin.len());
        for number in 0..1_500 {
            let expected: Vec<u32> =
                twin.iter().filter(|(_, (text, _))| *text == id(number)).map(|(&order, _)| order).collect();
            assert_eq!(found(&ids, &id(number)), expected);
        }
    }

    #[test]
    fn the_index_grows_by_one_bucket_with_each_entry() {
        let mut ids = IdChains::new(5, LargePages::NONE);
        for n in 1..100 {
            ids.insert(&id(n as u64), n);
            assert_eq!(ids.buckets.len(), n as usize);
        }
    }

    #[test]
    fn texts_spread_over_the_buckets() {
        let mut ids = IdChains::new(5, LargePages::NONE);
        for n in 0..100_000 {
            ids.insert(&id(n), n as u32);
        }
        let longest = (0..100_000).map(|n| ids.buckets_walked(&id(n))).max().unwrap();
        assert!(longest < 16, "a bucket holds {longest}");
    }

    impl IdChains {
        fn buckets_walked(&self, id: &IntId) -> usize {
            let mut at = self.buckets[self.bucket(self.keyed_hash.hash(0, id))].first();
            let mut count = 0;
            while at != NONE {
                at = self.links[at].next;
                count += 1;
            }
            count
        }
    }
}
