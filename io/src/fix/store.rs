//! A session's store: one mapped file with the numbers and a ring of the messages sent. Keeping a message is a copy in memory, without
//! a call to the system; what was copied outlives the process.
//!
//! ```text
//! 0          256        320        1024               4096
//! ┌──────────┬──────────┬──────────┬──────────────────┬───────────────────────────────────┐
//! │ whose    │ slot A   │ slot B   │ last event heard │ ring: record, record, …           │
//! │          │ numbers  │ numbers  │ of each shard    │ the oldest give way to the newest │
//! └──────────┴──────────┴──────────┴──────────────────┴───────────────────────────────────┘
//! ```
//!
//! The slots take turns, so one of them is always whole. A record is there when its sum is right, and it knows its place in the
//! endless stream of which the ring holds the last part; so a record that is newer than the slots is found, and one of an earlier
//! lap is not taken for a new one.
//!
//! A start reads the file, and goes on in a fresh copy that takes its name: nothing that is mapped was ever torn.

use std::collections::VecDeque;
use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use pitlane_engine::id::ShardId;
use pitlane_engine::time::Timestamp;
use pitlane_protocols::fix::store::{Cause, Numbers, Store, StoreFailed};

use crate::journal::Level;
use crate::journal::disk::{Disk, File, PAGE_BYTES, Region};
use crate::journal::{Fault, What};

/// Of the names of stores.
pub const ENDING: &str = "store";
/// Beside stores that came from another machine when that was lost: one that was made there last may be missing, though it has sent
/// something.
pub const TAKEN_OVER: &str = "taken-over";
const MAGIC: [u8; 8] = *b"PITFIX01";
const NAME_AT: usize = 32;
const NAME_BYTES_MAX: usize = 160;
const SLOT_AT: usize = 256;
const SLOT_BYTES: usize = 64;
const HEARD_AT: usize = 1_024;
const SHARDS_MAX: usize = ShardId::MAX as usize + 1;
const RING_AT: usize = PAGE_BYTES;
const HEAD_BYTES: usize = 40;

/// Of the ring, so much is given up at once when it is full: then the slots need not follow each message.
const EVICT_PARTS: u64 = 16;
/// Numbers passed over after a loss of power, of which some may have been sent and not stored: more than a session sends between two
/// syncs. The client is told of them by a gap fill.
const NUMBERS_PASSED_OVER: u64 = 100_000;

const _: () = assert!(NAME_AT + NAME_BYTES_MAX <= SLOT_AT);
const _: () = assert!(SLOT_AT + 2 * SLOT_BYTES <= HEARD_AT);
const _: () = assert!(HEARD_AT + SHARDS_MAX * 8 <= RING_AT);

pub struct FileStore {
    region: Region,
    file: Arc<File>,
    numbers: Numbers,
    /// Bytes of the ring.
    capacity: u64,
    /// Where the oldest message begins and the newest ends, in the endless stream.
    tail: u64,
    head: u64,
    /// Of all messages that are kept, by number.
    index: VecDeque<Entry>,
    /// Slots written.
    turn: u64,
    heard: Box<[u64; SHARDS_MAX]>,
    /// Whether numbers were passed over because the machine lost its power.
    pub lost_power: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Entry {
    number: u64,
    at: u64,
    bytes: u32,
}

impl fmt::Debug for FileStore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("FileStore").field("numbers", &self.numbers).finish_non_exhaustive()
    }
}

/// Where a store lies and how large it is.
#[derive(Clone, Debug)]
pub struct Place<'a> {
    pub disk: &'a Disk,
    pub path: PathBuf,
    /// Of the session.
    pub name: &'a str,
    /// Some whole pages.
    pub bytes: usize,
    pub level: Level,
}

/// What was read from a file.
#[derive(Debug)]
struct Kept {
    numbers: Numbers,
    heard: Box<[u64; SHARDS_MAX]>,
    messages: Vec<(u64, Option<Cause>, Vec<u8>)>,
    lost_power: bool,
}

impl FileStore {
    /// Opens the store, or makes one: then everything that shards have said up to `heard` is an old story.
    pub fn open(place: &Place<'_>, now: Timestamp, heard: &[u64]) -> Result<FileStore, Fault> {
        let Place { disk, path, .. } = place;
        let kept = match disk.read(path) {
            Ok(bytes) => read(place, &bytes)?,
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
                let mut table = Box::new([0; SHARDS_MAX]);
                table[..heard.len()].copy_from_slice(heard);
                let mut numbers = Numbers::fresh(now);
                let lost_power = disk.exists(&path.with_file_name(TAKEN_OVER));
                if lost_power {
                    numbers.outgoing += NUMBERS_PASSED_OVER;
                }
                Kept { numbers, heard: table, messages: Vec::new(), lost_power }
            }
            Err(error) => return Err(Fault::new(path, 0, What::Io(error))),
        };
        FileStore::begin(place, kept).map_err(Fault::io(path))
    }

    /// The last event of each shard that was reported, by what the file says; none if there is no file.
    pub fn peek(place: &Place<'_>) -> Result<Option<Vec<u64>>, Fault> {
        match place.disk.read(&place.path) {
            Ok(bytes) => Ok(Some(read(place, &bytes)?.heard.to_vec())),
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(None),
            Err(error) => Err(Fault::new(&place.path, 0, What::Io(error))),
        }
    }

    /// For whoever syncs it.
    pub fn file(&self) -> &Arc<File> {
        &self.file
    }

    fn begin(place: &Place<'_>, kept: Kept) -> std::io::Result<FileStore> {
        let Place { disk, path, name, bytes, level } = place;
        let fresh = path.with_extension("fresh");
        if disk.exists(&fresh) {
            disk.remove(&fresh)?;
        }
        let synced = level.is_synced();
        let (file, mut region) = disk.create(&fresh, *bytes, synced)?;
        region.write(0, &MAGIC);
        region.write(8, &disk.boot().to_le_bytes());
        region.write(24, &(name.len() as u64).to_le_bytes());
        region.write(NAME_AT, name.as_bytes());
        let mut store = FileStore {
            capacity: (bytes - RING_AT) as u64,
            region,
            file: Arc::new(file),
            numbers: kept.numbers,
            tail: 0,
            head: 0,
            index: VecDeque::new(),
            turn: 0,
            heard: kept.heard,
            lost_power: kept.lost_power,
        };
        for (number, cause, message) in &kept.messages {
            // One that was kept in a larger file may not fit any more; it is the oldest.
            let _ = store.keep(*number, message, *cause);
        }
        for (shard, &seq) in store.heard.clone().iter().enumerate().filter(|(_, seq)| **seq > 0) {
            store.region.write(HEARD_AT + shard * 8, &seq.to_le_bytes());
        }
        // Twice, so that both slots are ours.
        store.write_slot();
        store.write_slot();
        if synced {
            store.file.sync()?;
        }
        disk.rename(&fresh, path)?;
        Ok(store)
    }

    fn write_slot(&mut self) {
        let Numbers { incoming, outgoing, since } = self.numbers;
        self.turn += 1;
        let mut slot = [0; SLOT_BYTES];
        let words = [self.turn, incoming, outgoing, since.0, self.tail, self.head];
        for (place, word) in slot.chunks_exact_mut(8).zip(words) {
            place.copy_from_slice(&word.to_le_bytes());
        }
        let sum = crc32c::crc32c(&slot[..48]);
        slot[48..52].copy_from_slice(&sum.to_le_bytes());
        self.region.write(SLOT_AT + (self.turn % 2) as usize * SLOT_BYTES, &slot);
    }

    /// Makes room for so many bytes behind the head, without a break.
    fn make_room(&mut self, bytes: u64) {
        let left = self.capacity - self.head % self.capacity;
        let padding = if left < bytes { left } else { 0 };
        if self.head + padding + bytes > self.tail + self.capacity {
            let goal = self.head + padding + bytes + self.capacity / EVICT_PARTS;
            while self.tail + self.capacity < goal
                && let Some(oldest) = self.index.pop_front()
            {
                self.tail = oldest.at + record_bytes(oldest.bytes as usize);
            }
            if self.index.is_empty() {
                self.tail = self.head;
            }
            // Before anything is overwritten that the slots would lead to.
            self.write_slot();
        }
        if padding > 0 {
            let at = RING_AT + (self.head % self.capacity) as usize;
            self.region.write(at, &u32::MAX.to_le_bytes());
            self.region.write(at + 8, &self.head.to_le_bytes());
            if self.tail == self.head {
                self.tail += padding;
            }
            self.head += padding;
        }
    }
}

impl Store for FileStore {
    fn numbers(&self) -> Numbers {
        self.numbers
    }

    fn set_numbers(&mut self, numbers: Numbers) -> Result<(), StoreFailed> {
        self.numbers = numbers;
        self.write_slot();
        Ok(())
    }

    fn keep(&mut self, number: u64, message: &[u8], cause: Option<Cause>) -> Result<(), StoreFailed> {
        let bytes = record_bytes(message.len());
        if bytes > self.capacity / 4 {
            return Err(StoreFailed);
        }
        self.make_room(bytes);
        let at = RING_AT + (self.head % self.capacity) as usize;
        let mut head = [0; HEAD_BYTES];
        head[8..16].copy_from_slice(&self.head.to_le_bytes());
        head[16..24].copy_from_slice(&number.to_le_bytes());
        if let Some(Cause { shard, seq }) = cause {
            head[24..32].copy_from_slice(&seq.to_le_bytes());
            head[32..34].copy_from_slice(&[shard.0, 1]);
        }
        head[0..4].copy_from_slice(&(message.len() as u32).to_le_bytes());
        let sum = crc32c::crc32c_append(crc32c::crc32c(&head[8..]), message);
        head[4..8].copy_from_slice(&sum.to_le_bytes());
        self.region.write(at + HEAD_BYTES, message);
        self.region.write(at, &head);
        self.index.push_back(Entry { number, at: self.head, bytes: message.len() as u32 });
        self.head += bytes;
        // A start finds the record, though the slots may not know of it yet.
        self.numbers.outgoing = self.numbers.outgoing.max(number + 1);
        if let Some(Cause { shard, seq }) = cause {
            self.heard[shard.0 as usize] = seq;
            self.region.write(HEARD_AT + shard.0 as usize * 8, &seq.to_le_bytes());
        }
        Ok(())
    }

    fn heard(&self, shard: ShardId) -> u64 {
        self.heard[shard.0 as usize]
    }

    fn next_kept(&self, from: u64, to: u64, into: &mut Vec<u8>) -> Option<u64> {
        let at = self.index.partition_point(|entry| entry.number < from);
        let entry = self.index.get(at).filter(|entry| entry.number <= to)?;
        let begin = RING_AT + (entry.at % self.capacity) as usize + HEAD_BYTES;
        into.clear();
        self.region.read_into(begin, begin + entry.bytes as usize, into);
        Some(entry.number)
    }

    fn reset(&mut self, numbers: Numbers) -> Result<(), StoreFailed> {
        self.index.clear();
        self.tail = self.head;
        self.set_numbers(numbers)
    }

    fn refresh(&mut self) -> Result<(), StoreFailed> {
        // Nobody else writes: the service has the folder to itself.
        Ok(())
    }
}

fn record_bytes(message: usize) -> u64 {
    // So what is left at the end of the ring has room for the mark that says so.
    (HEAD_BYTES + message).next_multiple_of(16) as u64
}

fn word(bytes: &[u8], at: usize) -> u64 {
    u64::from_le_bytes(bytes[at..at + 8].try_into().expect("eight bytes"))
}

fn half(bytes: &[u8], at: usize) -> u32 {
    u32::from_le_bytes(bytes[at..at + 4].try_into().expect("four bytes"))
}

/// Reads a file back. What is not whole at the end of the ring was never sent and is dropped; a file without a whole slot, or of
/// somebody else, is an error.
fn read(place: &Place<'_>, bytes: &[u8]) -> Result<Kept, Fault> {
    let damaged = |at: usize, words: &str| {
        Err(Fault::new(&place.path, at, What::StateDamaged(format!("the FIX store {words}"))))
    };
    if bytes.len() <= RING_AT || bytes[..8] != MAGIC {
        return damaged(0, "is none");
    }
    let name = word(bytes, 24) as usize;
    if name > NAME_BYTES_MAX || bytes[NAME_AT..NAME_AT + name] != *place.name.as_bytes() {
        return damaged(NAME_AT, "belongs to another session");
    }
    let slot = |at: usize| {
        let slot = &bytes[at..at + SLOT_BYTES];
        (crc32c::crc32c(&slot[..48]) == half(slot, 48))
            .then(|| [0, 8, 16, 24, 32, 40].map(|at| word(slot, at)))
    };
    let slots = [slot(SLOT_AT), slot(SLOT_AT + SLOT_BYTES)];
    let Some([_, incoming, outgoing, since, tail, head]) = slots.into_iter().flatten().max() else {
        return damaged(SLOT_AT, "has no numbers that can be read");
    };
    let mut kept = Kept {
        numbers: Numbers { incoming, outgoing, since: Timestamp(since) },
        heard: Box::new([0; SHARDS_MAX]),
        messages: Vec::new(),
        lost_power: bytes[8..24] != place.disk.boot().to_le_bytes(),
    };
    let ring = &bytes[RING_AT..];
    // With the power the slots may be older than what lies where they lead to, if the ring can have come round since.
    let begin = if kept.lost_power && head > ring.len() as u64 / 2 { longest_chain(ring) } else { tail };
    let end = read_ring(ring, begin, &mut kept);
    for shard in 0..SHARDS_MAX {
        // With the power a newer word may have been kept, and the older record it speaks of lost.
        if !(kept.lost_power && (end < head || kept.heard[shard] > 0)) {
            kept.heard[shard] = kept.heard[shard].max(word(bytes, HEARD_AT + shard * 8));
        }
    }
    if let Some(last) = kept.messages.last() {
        kept.numbers.outgoing = kept.numbers.outgoing.max(last.0 + 1);
    }
    if kept.lost_power {
        kept.numbers.outgoing += NUMBERS_PASSED_OVER;
    }
    Ok(kept)
}

/// All records from this one on, and where they end.
fn read_ring(ring: &[u8], begin: u64, kept: &mut Kept) -> u64 {
    let mut at = begin;
    while at < begin + ring.len() as u64 {
        match record_at(ring, at) {
            Some(Found::Padding(bytes)) => at += bytes,
            Some(Found::Record { number, cause, message }) => {
                if let Some(Cause { shard, seq }) = cause {
                    kept.heard[shard.0 as usize] = kept.heard[shard.0 as usize].max(seq);
                }
                kept.messages.push((number, cause, message.to_vec()));
                at += record_bytes(message.len());
            }
            None => break,
        }
    }
    at
}

/// What is found at a place of the stream, if it is whole.
enum Found<'a> {
    Padding(u64),
    Record { number: u64, cause: Option<Cause>, message: &'a [u8] },
}

fn record_at(ring: &[u8], at: u64) -> Option<Found<'_>> {
    let rest = &ring[(at % ring.len() as u64) as usize..];
    if rest.len() < 16 || word(rest, 8) != at {
        return None;
    }
    if half(rest, 0) == u32::MAX {
        return Some(Found::Padding(rest.len() as u64));
    }
    let length = half(rest, 0) as usize;
    if length > rest.len().checked_sub(HEAD_BYTES)? {
        return None;
    }
    let (head, message) = (&rest[8..HEAD_BYTES], &rest[HEAD_BYTES..HEAD_BYTES + length]);
    if crc32c::crc32c_append(crc32c::crc32c(head), message) != half(rest, 4) {
        return None;
    }
    let (shard, seq) = (ShardId(rest[32] & ShardId::MAX), word(rest, 24));
    let cause = (rest[33] == 1).then_some(Cause { shard, seq });
    Some(Found::Record { number: word(rest, 16), cause, message })
}

/// Where the longest run of whole records begins. Between two syncs less than half of the ring is written, so this is the run that was
/// synced, with what was written behind it without a gap; what lies beyond a gap does not count.
fn longest_chain(ring: &[u8]) -> u64 {
    let places = (0..ring.len().saturating_sub(16)).step_by(16).map(|place| word(&ring[place..], 8));
    let places = (0..ring.len() as u64).step_by(16).zip(places);
    let mut begins: Vec<u64> =
        places.filter(|(place, at)| at % ring.len() as u64 == *place).map(|(_, at)| at).collect();
    begins.sort_unstable();
    let (mut longest, mut end) = (0..0, 0);
    for begin in begins {
        if begin < end {
            continue;
        }
        end = begin;
        while let Some(found) = record_at(ring, end) {
            end += match found {
                Found::Padding(bytes) => bytes,
                Found::Record { message, .. } => record_bytes(message.len()),
            };
        }
        if end - begin > longest.end - longest.start {
            longest = begin..end;
        }
    }
    longest.start
}

/// Where the store of a session lies in a folder. The names were checked: letters, digits and a few signs.
pub fn path_of(folder: &Path, name: &str) -> PathBuf {
    folder.join(format!("{name}.{ENDING}"))
}

/// For a copy that came from another machine: in which start of this one it is taken to have been written. With zero, in none: then the
/// last of it may be missing, as after a loss of power.
pub fn set_boot(path: &Path, boot: u128) -> std::io::Result<()> {
    let file = std::fs::OpenOptions::new().write(true).open(path)?;
    std::os::unix::fs::FileExt::write_all_at(&file, &boot.to_le_bytes(), 8)
}

#[cfg(test)]
mod tests {
    use pitlane_engine::chance::Chance;

    use super::*;
    use crate::journal::simulated::Simulated;

    const BYTES: usize = 8 * PAGE_BYTES;

    fn place(disk: &Disk) -> Place<'_> {
        Place { disk, path: "fix/A-B.store".into(), name: "A-B", bytes: BYTES, level: Level::Os }
    }

    fn open(disk: &Disk) -> FileStore {
        FileStore::open(&place(disk), Timestamp(1), &[7]).unwrap()
    }

    fn numbers(incoming: u64, outgoing: u64) -> Numbers {
        Numbers { incoming, outgoing, since: Timestamp(1) }
    }

    fn message(number: u64) -> Vec<u8> {
        format!("message {number} {}", "x".repeat(number as usize % 97)).into_bytes()
    }

    fn kept(store: &FileStore) -> Vec<u64> {
        let (mut found, mut into, mut next) = (Vec::new(), Vec::new(), 0);
        while let Some(number) = store.next_kept(next, u64::MAX, &mut into) {
            assert_eq!(into, message(number));
            found.push(number);
            next = number + 1;
        }
        found
    }

    #[test]
    fn what_was_kept_is_there_after_the_process_has_gone_at_any_moment() {
        let simulated = Simulated::new(1);
        let disk = Disk::Simulated(simulated.clone());
        let mut store = open(&disk);
        assert_eq!((store.numbers(), store.heard(ShardId(0))), (Numbers::fresh(Timestamp(1)), 7));
        for number in 1..3_000u64 {
            let cause = (number % 3 != 0).then_some(Cause { shard: ShardId(1), seq: number });
            store.keep(number, &message(number), cause).unwrap();
            if number % 41 == 0 {
                // Between the message and its number.
                let again = open(&disk);
                assert_eq!(again.numbers().outgoing, number + 1);
                store = again;
            }
            store.set_numbers(numbers(number / 2, number + 1)).unwrap();
            if number % 37 == 0 {
                let again = open(&disk);
                assert_eq!(again.numbers(), numbers(number / 2, number + 1));
                assert_eq!(kept(&again), kept(&store));
                assert_eq!(again.heard(ShardId(1)), number - (number % 3 == 0) as u64);
                assert_eq!(kept(&again).last(), Some(&number));
                store = again;
            }
        }
        let last = kept(&store);
        assert!(last.len() > 100 && last.len() < 1_000, "the ring holds the newest: {}", last.len());
        store.reset(numbers(1, 1)).unwrap();
        let again = open(&disk);
        assert_eq!((kept(&again), again.numbers()), (Vec::new(), numbers(1, 1)));
        assert_eq!(again.heard(ShardId(1)), 2_999);
    }

    #[test]
    fn a_torn_end_is_dropped_and_a_torn_slot_leaves_the_one_before() {
        let simulated = Simulated::new(1);
        let disk = Disk::Simulated(simulated.clone());
        let mut store = open(&disk);
        for number in 1..=5 {
            store.keep(number, &message(number), None).unwrap();
            store.set_numbers(numbers(1, number + 1)).unwrap();
        }
        let last = store.index[4];
        simulated.meddle(Path::new("fix/A-B.store"), |bytes| bytes[RING_AT + last.at as usize + 50] ^= 1);
        let again = open(&disk);
        assert_eq!(kept(&again), [1, 2, 3, 4]);
        assert_eq!(again.numbers(), numbers(1, 6), "its number was used");
        let turn = again.turn % 2;
        simulated
            .meddle(Path::new("fix/A-B.store"), |bytes| bytes[SLOT_AT + turn as usize * SLOT_BYTES + 8] ^= 1);
        assert_eq!(open(&disk).numbers().outgoing, 6);
        simulated.meddle(Path::new("fix/A-B.store"), |bytes| bytes[SLOT_AT..SLOT_AT + 128].fill(7));
        let fault = FileStore::open(&place(&disk), Timestamp(1), &[]).unwrap_err().to_string();
        assert!(fault.contains("A-B.store") && fault.contains("numbers"), "{fault}");
    }

    #[test]
    fn after_a_loss_of_power_no_number_is_used_twice() {
        let simulated = Simulated::new(1);
        let disk = Disk::Simulated(simulated.clone());
        let mut store =
            FileStore::open(&Place { level: Level::Disk, ..place(&disk) }, Timestamp(1), &[]).unwrap();
        store.keep(1, &message(1), Some(Cause { shard: ShardId(0), seq: 9 })).unwrap();
        store.set_numbers(numbers(4, 2)).unwrap();
        store.file().sync().unwrap();
        store.keep(2, &message(2), Some(Cause { shard: ShardId(0), seq: 10 })).unwrap();
        store.set_numbers(numbers(5, 3)).unwrap();
        let after = Disk::Simulated(simulated.power_loss());
        let again = FileStore::open(&place(&after), Timestamp(1), &[]).unwrap();
        assert!(again.lost_power && again.numbers().outgoing > NUMBERS_PASSED_OVER);
        assert!(kept(&again).contains(&1) && (9..=10).contains(&again.heard(ShardId(0))));
    }

    #[test]
    fn after_a_loss_of_power_at_any_moment_no_report_is_missing_and_nothing_is_made_up() {
        for seed in 0..300 {
            let (simulated, mut chance) = (Simulated::new(seed), Chance::new(seed));
            let disk = Disk::Simulated(simulated.clone());
            let place = Place { level: Level::Disk, ..place(&disk) };
            let mut store = FileStore::open(&place, Timestamp(1), &[]).unwrap();
            let last = 1 + chance.below(2_000);
            let mut synced = 0;
            for number in 1..=last {
                store.keep(number, &message(number), Some(Cause { shard: ShardId(0), seq: number })).unwrap();
                if chance.below(3) == 0 {
                    store.set_numbers(numbers(number, number + 1)).unwrap();
                }
                if chance.below(10) == 0 {
                    store.file().sync().unwrap();
                    synced = number;
                }
            }
            let held = kept(&store);
            let after = Disk::Simulated(simulated.power_loss());
            let place = Place { disk: &after, ..place };
            let again = FileStore::open(&place, Timestamp(1), &[]).unwrap();
            assert!(again.numbers().outgoing > last, "a number is used twice with seed {seed}");
            let (heard, found) = (again.heard(ShardId(0)), kept(&again));
            assert!((synced..=last).contains(&heard), "{heard} of {synced}..={last} with seed {seed}");
            let lost = held.iter().find(|&&number| number <= heard && !found.contains(&number));
            assert_eq!(lost, None, "it counts as reported, and is not there, with seed {seed}");
        }
    }

    #[test]
    fn numbers_above_those_of_the_messages_stay() {
        let disk = Disk::Simulated(Simulated::new(1));
        let mut store = open(&disk);
        store.keep(1, &message(1), None).unwrap();
        store.set_numbers(numbers(4, 9)).unwrap();
        assert_eq!(open(&disk).numbers(), numbers(4, 9));
    }

    #[test]
    fn a_message_that_is_too_long_is_refused_and_a_foreign_file_too() {
        let disk = Disk::Simulated(Simulated::new(1));
        let mut store = open(&disk);
        assert_eq!(store.keep(1, &[0; BYTES], None), Err(StoreFailed));
        drop(store);
        let other = Place { name: "A-C", ..place(&disk) };
        assert!(FileStore::open(&other, Timestamp(1), &[]).unwrap_err().to_string().contains("another"));
    }
}
