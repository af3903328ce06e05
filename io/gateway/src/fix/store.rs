//! A session's store: one memory-mapped file with the sequence numbers and a ring of the messages
//! sent. Storing a message is a copy in memory, without a system call; the copy survives the
//! process.
//!
//! ```text
//! 0          256        320        1024                4096
//! ┌──────────┬──────────┬──────────┬───────────────────┬───────────────────────────────────┐
//! │ session  │ slot A   │ slot B   │ last event        │ ring: record, record, …           │
//! │ name     │ numbers  │ numbers  │ of each shard     │ the newest replace the oldest     │
//! └──────────┴──────────┴──────────┴───────────────────┴───────────────────────────────────┘
//! ```
//!
//! The slots are written alternately, so one of them is always intact. A slot has two checksums: of
//! the values that older versions know, and of all values. A record is valid if its
//! checksum is right. It holds its position in the endless stream whose last part is in the ring;
//! so a record that is newer than the slots is found, and a record of an earlier lap is not taken
//! for a new one.
//!
//! Opening a store reads the file and continues in a new copy that replaces it, so no mapped page
//! was ever torn. A new store has [`FIRST_BYTES`]; in its first lap through the ring it grows in
//! steps up to the limit of the settings, and from then on the oldest messages are evicted. The
//! copy is as long as the file was: a shorter one would leave pages in the stream of a standby that
//! it would take for its own when it grows again.

mod reading;

use std::collections::VecDeque;
use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use pitlane_engine::id::ShardId;
use pitlane_engine::index::{index_u32, index_usize};
use pitlane_engine::time::Timestamp;
use pitlane_journal::Level;
use pitlane_journal::disk::{Disk, File, PAGE_BYTES, Region};
use pitlane_journal::{Fault, FaultKind};
use pitlane_protocols::fix::store::{MessageStore, ReportedEvent, SequenceNumbers, StoreFailed};

/// File extension of stores.
pub const ENDING: &str = "store";
/// Marker file beside stores that came from another machine when that was lost: the store that was
/// created there last may be missing, although its session has sent messages.
pub const TAKEN_OVER: &str = "taken-over";
const MAGIC: [u8; 8] = *b"PITFIX01";
const NAME_AT: usize = 32;
const NAME_BYTES_MAX: usize = 160;
const SLOT_AT: usize = 256;
const SLOT_BYTES: usize = 64;
const REPORTED_AT: usize = 1_024;
const SHARDS_MAX: usize = ShardId::MAX as usize + 1;
const RING_AT: usize = PAGE_BYTES;
const HEAD_BYTES: usize = 40;

/// Size of a new store: some 170 reports. A client that only connects briefly takes no more.
const FIRST_BYTES: usize = 16 * PAGE_BYTES;
/// Growth step of a store: some 370 reports. Reserving it takes a system call and 32 pages, some
/// tens of microseconds.
const GROW_BYTES: usize = 32 * PAGE_BYTES;

/// Fraction of the ring that is evicted at once when it is full, so that the slots need not be
/// written with each message.
const EVICT_PARTS: u64 = 16;
/// Sequence numbers skipped after a power loss, because some may have been sent and not stored:
/// more than a session sends between two syncs. A gap fill informs the client.
const NUMBERS_SKIPPED: u64 = 100_000;

const _: () = assert!(NAME_AT + NAME_BYTES_MAX <= SLOT_AT);
const _: () = assert!(SLOT_AT + 2 * SLOT_BYTES <= REPORTED_AT);
const _: () = assert!(REPORTED_AT + SHARDS_MAX * 8 <= RING_AT);

pub struct FileStore {
    region: Region,
    file: Arc<File>,
    numbers: SequenceNumbers,
    /// Size of the ring in bytes, and its maximum.
    capacity: u64,
    capacity_max: u64,
    /// Whether the disk had no space to grow: then the oldest messages are evicted earlier.
    cannot_grow: bool,
    /// Stream positions of the start of the oldest message and the end of the newest.
    tail: u64,
    head: u64,
    /// All stored messages, by number.
    index: VecDeque<MessageIndexEntry>,
    /// Number of slot writes.
    slot_writes: u64,
    reported: Box<[u64; SHARDS_MAX]>,
    /// Whether sequence numbers were skipped because the machine lost its power.
    pub lost_power: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct MessageIndexEntry {
    number: u64,
    at: u64,
    bytes: u32,
}

impl fmt::Debug for FileStore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("FileStore").field("numbers", &self.numbers).finish_non_exhaustive()
    }
}

/// The location and size of a store.
#[derive(Clone, Debug)]
pub struct StoreLocation<'a> {
    pub disk: &'a Disk,
    pub path: PathBuf,
    /// Name of the session.
    pub name: &'a str,
    /// Maximum size in bytes, a multiple of the page size.
    pub bytes: usize,
    pub level: Level,
}

/// The content of a file.
#[derive(Debug)]
struct StoreContent {
    numbers: SequenceNumbers,
    reported: Box<[u64; SHARDS_MAX]>,
    messages: Vec<(u64, Option<ReportedEvent>, Vec<u8>)>,
    lost_power: bool,
    /// Length of the file, rounded up to whole pages.
    file_bytes: usize,
}

impl FileStore {
    /// Opens the store, or creates one: then all events of the shards up to `reported` count as
    /// reported.
    pub fn open(location: &StoreLocation<'_>, now: Timestamp, reported: &[u64]) -> Result<FileStore, Fault> {
        let StoreLocation { disk, path, .. } = location;
        let content = match disk.read(path) {
            Ok(bytes) => reading::read(location, &bytes)?,
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
                let mut table = Box::new([0; SHARDS_MAX]);
                table[..reported.len()].copy_from_slice(reported);
                let mut numbers = SequenceNumbers::fresh(now);
                let lost_power = disk.exists(&path.with_file_name(TAKEN_OVER));
                if lost_power {
                    numbers.next_sender_msg_seq_num += NUMBERS_SKIPPED;
                }
                StoreContent { numbers, reported: table, messages: Vec::new(), lost_power, file_bytes: 0 }
            }
            Err(error) => return Err(Fault::new(path, 0, FaultKind::Io(error))),
        };
        FileStore::begin(location, content).map_err(Fault::io(path))
    }

    /// Returns the last reported event of each shard from the file; `None` if there is no file.
    pub fn peek(location: &StoreLocation<'_>) -> Result<Option<Vec<u64>>, Fault> {
        match location.disk.read(&location.path) {
            Ok(bytes) => Ok(Some(reading::read(location, &bytes)?.reported.to_vec())),
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(None),
            Err(error) => Err(Fault::new(&location.path, 0, FaultKind::Io(error))),
        }
    }

    /// Returns the same from the first page alone, which may lack one event of each shard. After a
    /// power loss the whole file is read.
    pub fn peek_head(location: &StoreLocation<'_>) -> Result<Option<Vec<u64>>, Fault> {
        match location.disk.read_head(&location.path, PAGE_BYTES) {
            Ok(page) => reading::reported_in_head(location, &page)
                .map_or_else(|| FileStore::peek(location), |reported| Ok(Some(reported))),
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(None),
            Err(error) => Err(Fault::new(&location.path, 0, FaultKind::Io(error))),
        }
    }

    /// Returns the file, for the thread that syncs it.
    pub fn file(&self) -> &Arc<File> {
        &self.file
    }

    fn begin(location: &StoreLocation<'_>, content: StoreContent) -> std::io::Result<FileStore> {
        let StoreLocation { disk, path, name, bytes, level } = location;
        let fresh = path.with_extension("fresh");
        if disk.exists(&fresh) {
            disk.remove(&fresh)?;
        }
        let synced = level.is_synced();
        let messages =
            content.messages.iter().map(|(_, _, message)| index_usize(record_bytes(message.len())));
        let needed = (RING_AT + messages.sum::<usize>()).next_multiple_of(PAGE_BYTES);
        let first = needed.max(content.file_bytes).max(FIRST_BYTES).min(*bytes);
        let (file, mut region) = disk.create(&fresh, first, synced)?;
        region.write(0, &MAGIC);
        region.write(8, &disk.boot().to_le_bytes());
        region.write(24, &(name.len() as u64).to_le_bytes());
        region.write(NAME_AT, name.as_bytes());
        let mut store = FileStore {
            capacity: (first - RING_AT) as u64,
            capacity_max: (bytes - RING_AT) as u64,
            cannot_grow: false,
            region,
            file: Arc::new(file),
            numbers: content.numbers,
            tail: 0,
            head: 0,
            index: VecDeque::new(),
            slot_writes: 0,
            reported: content.reported,
            lost_power: content.lost_power,
        };
        for (number, cause, message) in &content.messages {
            // A message that fitted into a larger file may no longer fit; it is the oldest.
            let _ = store.save(*number, message, *cause);
        }
        for (shard, &seq) in store.reported.clone().iter().enumerate().filter(|(_, seq)| **seq > 0) {
            store.region.write(REPORTED_AT + shard * 8, &seq.to_le_bytes());
        }
        // Twice, so that both slots are valid.
        store.write_slot();
        store.write_slot();
        if synced {
            store.file.sync()?;
        }
        disk.rename(&fresh, path)?;
        Ok(store)
    }

    fn write_slot(&mut self) {
        let SequenceNumbers { next_target_msg_seq_num, next_sender_msg_seq_num, since, answers_lost_before } =
            self.numbers;
        self.slot_writes += 1;
        let mut slot = [0; SLOT_BYTES];
        let values = [
            self.slot_writes,
            next_target_msg_seq_num,
            next_sender_msg_seq_num,
            since.0,
            self.tail,
            self.head,
        ];
        for (bytes, value) in slot.chunks_exact_mut(8).zip(values) {
            bytes.copy_from_slice(&value.to_le_bytes());
        }
        let sum = crc32c::crc32c(&slot[..48]);
        slot[48..52].copy_from_slice(&sum.to_le_bytes());
        slot[52..60].copy_from_slice(&answers_lost_before.to_le_bytes());
        let sum = crc32c::crc32c(&slot[..60]);
        slot[60..64].copy_from_slice(&sum.to_le_bytes());
        self.region.write(SLOT_AT + index_usize(self.slot_writes % 2) * SLOT_BYTES, &slot);
    }

    /// Enlarges the ring, if it is in its first lap and below its maximum: then the position of no
    /// record depends on the length.
    fn grow(&mut self, bytes: u64) {
        let needed = self.head + bytes;
        let is_first_lap = self.head <= self.capacity;
        if !is_first_lap || needed <= self.capacity || self.capacity == self.capacity_max || self.cannot_grow
        {
            return;
        }
        let longer = needed.next_multiple_of(PAGE_BYTES as u64).max(self.capacity + GROW_BYTES as u64);
        let longer = longer.min(self.capacity_max);
        match self.region.grow(&self.file, RING_AT + index_usize(longer)) {
            Ok(()) => self.capacity = longer,
            Err(error) => {
                tracing::warn!(%error, "a FIX store cannot grow: it holds fewer messages");
                self.cannot_grow = true;
            }
        }
    }

    /// Evicts messages until this many contiguous bytes are free after the head.
    fn make_space(&mut self, bytes: u64) {
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
            // Before anything is overwritten that the slots refer to.
            self.write_slot();
        }
        if padding > 0 {
            let at = RING_AT + index_usize(self.head % self.capacity);
            self.region.write(at, &u32::MAX.to_le_bytes());
            self.region.write(at + 8, &self.head.to_le_bytes());
            if self.tail == self.head {
                self.tail += padding;
            }
            self.head += padding;
        }
    }
}

impl MessageStore for FileStore {
    fn sequence_numbers(&self) -> SequenceNumbers {
        self.numbers
    }

    fn set_sequence_numbers(&mut self, numbers: SequenceNumbers) -> Result<(), StoreFailed> {
        self.numbers = numbers;
        self.write_slot();
        Ok(())
    }

    fn save(&mut self, number: u64, message: &[u8], cause: Option<ReportedEvent>) -> Result<(), StoreFailed> {
        let bytes = record_bytes(message.len());
        if bytes > self.capacity_max / 4 {
            return Err(StoreFailed);
        }
        self.grow(bytes);
        if bytes > self.capacity / 2 {
            return Err(StoreFailed);
        }
        self.make_space(bytes);
        let at = RING_AT + index_usize(self.head % self.capacity);
        let mut head = [0; HEAD_BYTES];
        head[8..16].copy_from_slice(&self.head.to_le_bytes());
        head[16..24].copy_from_slice(&number.to_le_bytes());
        if let Some(ReportedEvent { shard, seq }) = cause {
            head[24..32].copy_from_slice(&seq.to_le_bytes());
            head[32..34].copy_from_slice(&[shard.0, 1]);
        }
        head[0..4].copy_from_slice(&index_u32(message.len()).to_le_bytes());
        let sum = crc32c::crc32c_append(crc32c::crc32c(&head[8..]), message);
        head[4..8].copy_from_slice(&sum.to_le_bytes());
        self.region.write(at + HEAD_BYTES, message);
        self.region.write(at, &head);
        self.index.push_back(MessageIndexEntry { number, at: self.head, bytes: index_u32(message.len()) });
        self.head += bytes;
        // Recovery finds the record even if the slots do not include it yet.
        self.numbers.next_sender_msg_seq_num = self.numbers.next_sender_msg_seq_num.max(number + 1);
        if let Some(ReportedEvent { shard, seq }) = cause {
            self.reported[shard.0 as usize] = seq;
            self.region.write(REPORTED_AT + shard.0 as usize * 8, &seq.to_le_bytes());
        }
        Ok(())
    }

    fn last_reported_event(&self, shard: ShardId) -> u64 {
        self.reported[shard.0 as usize]
    }

    fn next_message(&self, from: u64, to: u64, into: &mut Vec<u8>) -> Option<u64> {
        let at = self.index.partition_point(|entry| entry.number < from);
        let entry = self.index.get(at).filter(|entry| entry.number <= to)?;
        let begin = RING_AT + index_usize(entry.at % self.capacity) + HEAD_BYTES;
        into.clear();
        self.region.read_into(begin, begin + entry.bytes as usize, into);
        Some(entry.number)
    }

    fn reset(&mut self, numbers: SequenceNumbers) -> Result<(), StoreFailed> {
        self.index.clear();
        self.tail = self.head;
        self.set_sequence_numbers(numbers)
    }

    fn refresh(&mut self) -> Result<(), StoreFailed> {
        // There is no other writer: the service has exclusive use of the folder.
        Ok(())
    }
}

fn record_bytes(message: usize) -> u64 {
    // The multiple of 16 guarantees that the rest of the ring has space for the padding mark.
    (HEAD_BYTES + message).next_multiple_of(16) as u64
}

/// Returns the path of a session's store in a folder. The name has been checked: letters, digits
/// and a few signs.
pub fn path_of(folder: &Path, name: &str) -> PathBuf {
    folder.join(format!("{name}.{ENDING}"))
}

/// Sets the boot id in which a copy from another machine counts as written. Zero stands for none:
/// then its end may be missing, as after a power loss.
pub fn set_boot(path: &Path, boot: u128) -> std::io::Result<()> {
    let file = std::fs::OpenOptions::new().write(true).open(path)?;
    std::os::unix::fs::FileExt::write_all_at(&file, &boot.to_le_bytes(), 8)
}

#[cfg(test)]
mod tests;
