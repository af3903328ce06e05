//! Ids that were used in this trading day, in eight bytes each, so that no id creates a second
//! order after a restart or after its order was forgotten.
//!
//! ```text
//! command ─► Shard: UsedIdLog ── image ──► restart ── EventKind::UsedIds, part of a snapshot ──► Desk: UsedIdSet
//! ```
//!
//! A shard logs the id of every order, modification, close and cancel that it applies; the log is
//! part of its state. A desk has a set of the ids whose orders it does not know: those it forgot
//! itself, those from before a restart, which the shards send, and at the http thread those of REST
//! orders of other servers. An id is stored as a hash of 56
//! bits. Two different ids have the same hash in one of 10^16 pairs: then a new id is refused as a
//! duplicate, but a duplicate is never accepted as a new id.
//!
//! Both have the bound [`USED_IDS_MAX`]. Beyond it the oldest ids are forgotten and counted; the
//! newest are always known.

use crate::codec::{ByteReader, ByteSink, Codec, DecodeError, DecodeProblem, encode_count};
use crate::id::{IntId, PortId, Source};
use crate::index::index_usize;
use crate::keyed_hash::{KeyedHash, fold};
use crate::pages::LargePages;
use crate::prefetch;

/// Ids of the trading day that a shard and a large desk remember at least; a small desk has 16 for
/// each id by which it can find an order. They take 32 MB in a shard and in its snapshots, and 64
/// MB in a desk that needs them, 128 MB when it has had more. A source that sends 140 orders a
/// second does not reach the bound in a day of eight hours; at 200,000 a second it covers the last
/// 20 seconds, which is what a client repeats after a lost answer.
pub const USED_IDS_MAX: usize = 1 << 22;

/// The hash must be the same in every process that reads a journal, so its seed is not secret. A
/// client that finds two ids with the same hash can have one of them refused, and nothing else.
const HASH_SEED: u64 = 0x7573_6564_2069_6473;

const PORT_SHIFT: u32 = 56;
/// Entries of a cache line.
const LINE: usize = 8;
const HASH_MASK: u64 = (1 << PORT_SHIFT) - 1;

/// Hashes ids within their session to 56 bits.
#[derive(Clone, Copy, Debug)]
struct Hasher(KeyedHash);

impl Hasher {
    fn new() -> Hasher {
        Hasher(KeyedHash::new(HASH_SEED))
    }

    #[inline]
    fn hash(&self, session: u16, id: &IntId) -> u64 {
        self.0.hash_wide(session, id) & HASH_MASK
    }
}

/// All ids that a shard received in this trading day, oldest first; a ring once it is full.
#[derive(Debug)]
pub struct UsedIdLog {
    /// Port in the upper byte, hash below it.
    ids: Vec<u64>,
    /// Place of the next id when the log is full.
    next: usize,
    max: usize,
    hasher: Hasher,
}

impl UsedIdLog {
    /// Creates an empty log for at most `max` ids. It reserves its memory now, and uses it as ids
    /// arrive.
    pub fn new(max: usize, pages: LargePages) -> UsedIdLog {
        assert!(max > 0, "a log without capacity holds nothing");
        UsedIdLog { ids: pages.table(max), next: 0, max, hasher: Hasher::new() }
    }

    /// Logs an id. It does not check for duplicates: the desk has done so.
    #[inline]
    pub fn push(&mut self, source: Source, id: &IntId) {
        if id.is_none() {
            return;
        }
        let entry = (source.port.0 as u64) << PORT_SHIFT | self.hasher.hash(source.session, id);
        if self.ids.len() < self.max {
            self.ids.push(entry);
            // The next cache line: a store to memory far away would hold up the stores after it.
            return self.ids.spare_capacity_mut().get(LINE).into_iter().for_each(prefetch::fetch);
        }
        self.ids[self.next] = entry;
        self.next = (self.next + 1) % self.max;
        self.ids.get(self.next + LINE).into_iter().for_each(prefetch::fetch);
    }

    /// Begins a new trading day.
    pub fn clear(&mut self) {
        self.ids.clear();
        self.next = 0;
    }

    pub fn len(&self) -> usize {
        self.ids.len()
    }

    pub fn is_empty(&self) -> bool {
        self.ids.is_empty()
    }

    /// Returns the next batch for a port from entry `at` on, and where to continue. A batch has the
    /// ids of one [scope](PortId::id_scope): for the http thread those of REST orders, from
    /// whichever server they came; for the link those of the ports behind it, and those of REST
    /// orders.
    pub fn batch(&self, at: usize, to: PortId) -> (UsedIds, usize) {
        // The log may have been cleared since the last batch.
        let at = at.min(self.ids.len());
        let end = self.ids.len().min(at + SCAN_MAX);
        let mut batch = UsedIds { hashes: [0; UsedIds::COUNT_MAX], source: Source::default(), count: 0 };
        for (entry, place) in self.ids[at..end].iter().zip(at..) {
            let port = PortId((entry >> PORT_SHIFT) as u8).id_scope();
            let is_wanted = port.0.min(PortId::MAX) == to.0 || port == PortId::HTTP && to == PortId::LINK;
            if !is_wanted {
                continue;
            }
            let is_full = batch.count as usize == UsedIds::COUNT_MAX;
            if is_full || batch.count > 0 && batch.source.port != port {
                return (batch, place);
            }
            batch.source.port = port;
            batch.hashes[batch.count as usize] = entry & HASH_MASK;
            batch.count += 1;
        }
        (batch, end)
    }

    pub(crate) fn save(&self, out: &mut impl ByteSink) {
        let (newer, older) = self.ids.split_at(self.next);
        encode_count(self.ids.len(), out);
        older.iter().chain(newer).for_each(|entry| entry.encode(out));
    }

    /// Decodes a log, which may be from a version with another bound.
    pub(crate) fn load(
        from: &mut ByteReader<'_>,
        max: usize,
        pages: LargePages,
    ) -> Result<UsedIdLog, DecodeError> {
        let count = u32::decode(from)? as usize;
        from.check(count <= max, DecodeProblem::Value)?;
        from.check(count.saturating_mul(size_of::<u64>()) <= from.left(), DecodeProblem::Short)?;
        let mut log = UsedIdLog::new(max, pages);
        for _ in 0..count {
            log.ids.push(u64::decode(from)?);
        }
        Ok(log)
    }
}

/// Entries of the log visited for one batch, so that a step of a snapshot has its bound.
const SCAN_MAX: usize = 512;

/// Some ids used by the sources of one port, or of all http threads.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct UsedIds {
    /// The first `count` of them are valid.
    pub hashes: [u64; UsedIds::COUNT_MAX],
    /// Only its port is meaningful, which stands for its [scope](PortId::id_scope); each server
    /// translates it.
    pub source: Source,
    pub count: u8,
}

impl UsedIds {
    /// As many as fit into an event.
    pub const COUNT_MAX: usize = 19;

    pub fn hashes(&self) -> &[u64] {
        &self.hashes[..(self.count as usize).min(UsedIds::COUNT_MAX)]
    }
}

/// The ids that a desk remembers beside those of the orders it knows. It holds the newest `max` at
/// least and twice as many at most, in two tables: when the newer is full, the older is cleared and
/// becomes the newer.
#[derive(Debug)]
pub struct UsedIdSet {
    newer: TaggedHashTable,
    older: TaggedHashTable,
    max: usize,
    /// Seed of the places in the tables; clients should not know it.
    seed: u64,
    hasher: Hasher,
    dropped: u64,
}

impl UsedIdSet {
    /// Creates an empty set. It reserves all memory now; untouched pages cost nothing.
    pub fn new(max: usize, seed: u64) -> UsedIdSet {
        assert!(max > 0, "a set without capacity holds nothing");
        UsedIdSet {
            newer: TaggedHashTable::new(max),
            older: TaggedHashTable::new(max),
            max,
            seed,
            hasher: Hasher::new(),
            dropped: 0,
        }
    }

    /// Returns the number of ids forgotten for lack of room since the start.
    pub fn dropped(&self) -> u64 {
        self.dropped
    }

    pub fn contains(&self, session: u16, id: &IntId) -> bool {
        !self.is_empty() && self.contains_hash(self.hasher.hash(session, id))
    }

    pub fn insert(&mut self, session: u16, id: &IntId) {
        self.insert_hash(self.hasher.hash(session, id));
    }

    /// Adds an id by the hash that a shard stores.
    pub fn insert_hash(&mut self, hash: u64) {
        if self.contains_hash(hash) {
            return;
        }
        if self.newer.len == self.max {
            self.dropped += self.older.len as u64;
            std::mem::swap(&mut self.newer, &mut self.older);
            self.newer.clear();
        }
        self.newer.insert(self.home(hash), hash);
    }

    /// Clears the set for a new trading day.
    pub fn clear(&mut self) {
        self.newer.clear();
        self.older.clear();
    }

    pub fn is_empty(&self) -> bool {
        self.newer.len == 0 && self.older.len == 0
    }

    /// Prefetches memory for an id that will be looked up soon.
    #[inline]
    pub fn prefetch(&self, session: u16, id: &IntId) {
        if self.newer.len > 0 {
            let home = self.home(self.hasher.hash(session, id));
            prefetch::fetch(&self.newer.slots[self.newer.place(home)]);
        }
    }

    fn contains_hash(&self, hash: u64) -> bool {
        let home = self.home(hash);
        self.newer.contains(home, hash) || self.older.contains(home, hash)
    }

    #[inline]
    fn home(&self, hash: u64) -> u64 {
        fold(hash ^ self.seed, 0x9e37_79b9_7f4a_7c15)
    }
}

/// Open addressing without removal. A slot holds a tag of 16 bits and 48 bits of the hash. Slots
/// with another tag than the table's are empty, so the table is cleared by using the next tag.
#[derive(Debug)]
struct TaggedHashTable {
    slots: Vec<u64>,
    tag: u64,
    len: usize,
}

const TAG_SHIFT: u32 = 48;
const TAG_MAX: u64 = u16::MAX as u64;

impl TaggedHashTable {
    /// Creates a table for this many hashes, which take at most half of its slots. It uses small
    /// pages: with large ones a hundred ids would already touch all of its memory.
    fn new(max: usize) -> TaggedHashTable {
        TaggedHashTable { slots: vec![0; (max * 2).next_power_of_two()], tag: 1, len: 0 }
    }

    fn contains(&self, home: u64, hash: u64) -> bool {
        if self.len == 0 {
            return false;
        }
        let entry = self.entry(hash);
        let mut at = self.place(home);
        while self.slots[at] >> TAG_SHIFT == self.tag {
            if self.slots[at] == entry {
                return true;
            }
            at = self.place(at as u64 + 1);
        }
        false
    }

    /// Adds a hash that is not present. At most half of the slots are in use, so there is an empty
    /// one.
    fn insert(&mut self, home: u64, hash: u64) {
        let mut at = self.place(home);
        while self.slots[at] >> TAG_SHIFT == self.tag {
            at = self.place(at as u64 + 1);
        }
        self.slots[at] = self.entry(hash);
        self.len += 1;
    }

    fn clear(&mut self) {
        if self.len == 0 {
            return;
        }
        self.len = 0;
        self.tag += 1;
        if self.tag > TAG_MAX {
            // Once in 65,535 times: some 10 ms.
            self.slots.fill(0);
            self.tag = 1;
        }
    }

    fn entry(&self, hash: u64) -> u64 {
        self.tag << TAG_SHIFT | hash & ((1 << TAG_SHIFT) - 1)
    }

    fn place(&self, at: u64) -> usize {
        index_usize(at) & (self.slots.len() - 1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::id::Origin;

    fn id(number: u64) -> IntId {
        IntId::numbered(b'n', number)
    }

    fn source(port: u8) -> Source {
        Source { origin: Origin::Rest, port: PortId(port), session: 3 }
    }

    fn batches(log: &UsedIdLog, to: PortId) -> Vec<(PortId, u64)> {
        let (mut at, mut hashes) = (0, Vec::new());
        while at < log.len() {
            let (batch, next) = log.batch(at, to);
            assert!(next > at && next - at <= SCAN_MAX, "a batch has its bound and an end");
            hashes.extend(batch.hashes().iter().map(|hash| (batch.source.port, *hash)));
            at = next;
        }
        hashes
    }

    #[test]
    fn a_log_keeps_the_newest_ids_in_their_order() {
        let mut log = UsedIdLog::new(4, LargePages::NONE);
        (0..6).for_each(|number| log.push(source(1), &id(number)));
        log.push(source(1), &IntId::NONE);
        let mut bytes = Vec::new();
        log.save(&mut bytes);
        let again = UsedIdLog::load(&mut ByteReader::new(&bytes), 4, LargePages::NONE).unwrap();
        let expected: Vec<_> = (2..6).map(|number| (PortId(1), log.hasher.hash(3, &id(number)))).collect();
        assert_eq!(batches(&again, PortId(1)), expected);
        assert!(!again.is_empty());
        // Both continue alike.
        let (mut log, mut again) = (log, again);
        log.push(source(1), &id(9));
        again.push(source(1), &id(9));
        let saved = |log: &UsedIdLog| {
            let mut bytes = Vec::new();
            log.save(&mut bytes);
            bytes
        };
        assert_eq!(saved(&log), saved(&again));
        log.clear();
        assert!(log.is_empty() && batches(&log, PortId(1)).is_empty());
    }

    #[test]
    fn each_port_receives_its_own_ids_and_the_link_those_of_other_servers() {
        let mut log = UsedIdLog::new(10_000, LargePages::NONE);
        let ports = [3, 2, 40, 70];
        for number in 0..4_000 {
            log.push(source(ports[number as usize % 4]), &id(number));
        }
        let all = [(3, vec![3]), (2, vec![2]), (7, vec![]), (1, vec![]), (PortId::MAX, vec![40, 70])];
        for (to, expected) in all {
            let hashes = batches(&log, PortId(to));
            assert_eq!(hashes.len(), expected.len() * 1_000);
            assert!(hashes.iter().all(|(port, _)| expected.contains(&port.0)), "port {to}");
        }
    }

    #[test]
    fn the_http_threads_of_all_servers_receive_the_ids_of_rest_orders_in_full_batches() {
        let mut log = UsedIdLog::new(10_000, LargePages::NONE);
        // The http ports of this server and of two others, and another port.
        let ports = [1, 33, 65, 2];
        for number in 0..400 {
            log.push(source(ports[number as usize % 4]), &id(number));
        }
        for to in [PortId::HTTP, PortId::LINK] {
            let hashes = batches(&log, to);
            let expected = (0..400).filter(|number| number % 4 != 3);
            let expected = expected.map(|number| (PortId::HTTP, log.hasher.hash(3, &id(number))));
            assert_eq!(hashes, expected.collect::<Vec<_>>());
            assert_eq!(log.batch(0, to).0.count as usize, UsedIds::COUNT_MAX);
        }
    }

    #[test]
    fn damaged_logs_are_refused_without_asking_for_memory() {
        for bytes in [vec![255; 4], vec![9, 0, 0, 0, 1], vec![1, 0, 0]] {
            let loaded = UsedIdLog::load(&mut ByteReader::new(&bytes), USED_IDS_MAX, LargePages::NONE);
            assert!(loaded.is_err(), "{bytes:?}");
        }
    }

    #[test]
    fn a_set_knows_at_least_the_newest_and_counts_what_it_forgot() {
        let mut set = UsedIdSet::new(100, 7);
        for number in 0..1_000 {
            assert!(!set.contains(0, &id(number)), "{number} is new");
            set.insert(0, &id(number));
            set.insert(0, &id(number));
            let oldest = number.saturating_sub(99);
            assert!((oldest..=number).all(|number| set.contains(0, &id(number))));
            assert!(!set.contains(1, &id(number)), "another session");
        }
        assert_eq!(set.dropped(), 800);
        assert!(!set.contains(0, &id(0)));
    }

    #[test]
    fn a_cleared_set_is_empty_however_often_it_was_cleared() {
        let mut set = UsedIdSet::new(2, 7);
        for number in 0..TAG_MAX + 10 {
            set.insert(0, &id(number % 5));
            assert!(set.contains(0, &id(number % 5)));
            set.clear();
            assert!(set.is_empty() && (0..5).all(|number| !set.contains(0, &id(number))));
        }
    }

    #[test]
    fn a_desk_finds_the_ids_that_a_shard_logged() {
        let mut log = UsedIdLog::new(10, LargePages::NONE);
        log.push(source(1), &id(5));
        let (batch, _) = log.batch(0, PortId(1));
        let mut set = UsedIdSet::new(10, 99);
        batch.hashes().iter().for_each(|hash| set.insert_hash(*hash));
        assert!(set.contains(3, &id(5)) && !set.contains(3, &id(6)));
    }
}
