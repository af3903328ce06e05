//! The shard's side of its journal. An append is a copy into a mapped segment with reserved disk
//! space: no system call, no lock, no waiting. If there is no segment to continue in, the append
//! reports that, and the caller decides who waits.
//!
//! ```text
//!            spares ─► [ Writer: behind, current ] ─ moves ─► Syncer
//! ```

use std::sync::Arc;
use std::sync::atomic::Ordering;

use pitlane_engine::index::index_usize;
use pitlane_runtime::wakeup::Wakeup;
use rtrb::{Consumer, Producer};

use super::disk::Region;
use super::header::{HEADER_BYTES, Header, Owner, RULES, SegmentLink};
use super::health::{Health, Level, WriteMode};
use super::record::{DecodedRecord, JournalRecord, bytes_of};

/// Spare segments required before a record of class `Entry` may start a new one: the last one is
/// the reserve for class `Needed`.
const SPARES_FOR_ENTRY: usize = 2;
/// Capacity of the lane to the syncer: far more entries than there are spare segments to switch to.
pub(super) const MOVES_MAX: usize = 64;
/// Slots of that lane reserved for messages after a failed sync.
const MOVES_RESERVED: usize = 4;

/// Priority of a record when the disk fails or is full.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Class {
    /// New obligations, and prices: these are refused first.
    Entry,
    /// Commands that end or settle something: cancels, reports of venues, the clock, the operator.
    Needed,
}

/// The reason why a record was not accepted. Nothing was written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NotTaken {
    /// There is no segment yet, or too many bytes wait for the disk: try again soon.
    Wait,
    Refused(WriteMode),
}

/// A segment ready to be written, allocated by the segment manager.
#[derive(Debug)]
pub(super) struct SpareSegment {
    pub number: u64,
    pub region: Region,
}

/// A message from the writer to the syncer.
#[derive(Debug)]
pub(super) enum SegmentMove {
    /// The segment is complete; from now on the writer writes to the next one.
    Finished(FinishedSegment),
    /// The mapping of a complete segment is no longer needed.
    Returned { number: u64, region: Region },
    /// A sync failed, and the writer has written the unsynced records again into this segment. The
    /// segments before it are unusable from here on.
    Moved { number: u64 },
    /// The records did not fit there, or there is no spare segment.
    Stuck,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct FinishedSegment {
    pub number: u64,
    /// Name of the reference data in force when the segment started.
    pub reference: u64,
    pub first: u64,
    pub last: u64,
    pub end: u64,
}

/// The position at which a writer continues: everything before it is written.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct JournalPosition {
    /// Last sequence number.
    pub seq: u64,
    pub link: SegmentLink,
}

#[derive(Debug)]
pub struct Writer {
    level: Level,
    owner: Owner,
    boot: u128,
    reference: u64,
    seq: u64,
    /// Position at which the first segment continues.
    link: SegmentLink,
    current: Option<OpenSegment>,
    /// Previous segment, at the levels at which commands wait for the disk; kept until it is known
    /// to be on disk.
    behind: Option<OpenSegment>,
    /// Bytes of all records.
    bytes: u64,
    /// Number of failed syncs that have been handled.
    faults: u64,
    /// Whether a failed sync could not be handled; then no record is accepted any more.
    stuck: bool,
    /// Whether the syncer has new work since it was last woken.
    has_news: bool,
    scratch: Vec<u8>,
    spares: Consumer<SpareSegment>,
    moves: Producer<SegmentMove>,
    health: Arc<Health>,
    syncer_wakeup: Option<Wakeup>,
}

/// A segment that is being written.
#[derive(Debug)]
struct OpenSegment {
    number: u64,
    reference: u64,
    salt: u32,
    header_sum: u32,
    after: SegmentLink,
    first: u64,
    last: u64,
    at: usize,
    capacity: usize,
    /// Checksum of the records' checksums.
    chain: u32,
    region: Region,
}

impl Writer {
    pub(super) fn new(
        level: Level,
        owner: Owner,
        boot: u128,
        reference: u64,
        position: JournalPosition,
        lanes: (Consumer<SpareSegment>, Producer<SegmentMove>),
        health: Arc<Health>,
    ) -> Writer {
        assert!(level != Level::None, "without a journal there is no writer");
        health.writer.appended.store(position.seq, Ordering::Release);
        health.syncer.synced.store(position.seq, Ordering::Release);
        health.set_shipped(position.seq);
        Writer {
            level,
            owner,
            boot,
            reference,
            seq: position.seq,
            link: position.link,
            current: None,
            behind: None,
            bytes: 0,
            faults: 0,
            stuck: false,
            has_news: false,
            scratch: vec![0; bytes_of(0)],
            spares: lanes.0,
            moves: lanes.1,
            health,
            syncer_wakeup: None,
        }
    }

    /// Sets the wake-up of the syncer's thread.
    pub fn set_wakeup(&mut self, syncer: Wakeup) {
        self.syncer_wakeup = Some(syncer);
    }

    pub fn level(&self) -> Level {
        self.level
    }

    pub fn health(&self) -> &Arc<Health> {
        &self.health
    }

    /// Returns the number of the last record.
    pub fn seq(&self) -> u64 {
        self.seq
    }

    /// Returns the last record that is stored at the configured level: everything up to it may be
    /// acknowledged.
    #[inline]
    pub fn safe(&self) -> u64 {
        match self.level {
            Level::Replicated => self.synced().min(self.health.shipped()),
            Level::Disk => self.synced(),
            Level::Os | Level::None => self.seq,
        }
    }

    /// Writes one record and returns its number. `digest` returns the shard's digest before this
    /// record; it is called only when a new segment starts.
    #[inline]
    pub fn append(
        &mut self,
        time: u64,
        kind: u8,
        payload: &[u8],
        class: Class,
        digest: impl FnOnce() -> u64,
    ) -> Result<u64, NotTaken> {
        let bytes = bytes_of(payload.len());
        let taken = self.make_space(bytes, class, time, digest);
        if let Err(why) = taken {
            let counter = match why {
                NotTaken::Wait => &self.health.writer.waits,
                NotTaken::Refused(_) => &self.health.writer.refused,
            };
            counter.store(counter.load(Ordering::Relaxed) + 1, Ordering::Relaxed);
            return Err(why);
        }
        let synced = self.synced();
        let open = self.current.as_mut().expect("space was made");
        if self.scratch.len() < bytes {
            self.scratch.resize(bytes, 0);
        }
        self.seq += 1;
        self.bytes += bytes as u64;
        self.has_news |= self.level.is_synced();
        open.write(self.seq, time, synced, kind, payload, &mut self.scratch);
        self.health.writer.bytes.store(self.bytes, Ordering::Release);
        self.health.writer.appended.store(self.seq, Ordering::Release);
        Ok(self.seq)
    }

    /// Starts a segment for new reference data, so that every segment names all data that its
    /// records need: the change is its first record.
    #[cold]
    pub(super) fn switch_reference(
        &mut self,
        reference: u64,
        time: u64,
        digest: impl FnOnce() -> u64,
    ) -> Result<(), NotTaken> {
        if self.reference == reference {
            // The segment was switched already, and the record found no room yet; or the reference
            // data is the same as before.
            return Ok(());
        }
        match self.health.write_mode() {
            WriteMode::Open | WriteMode::Full | WriteMode::BrokerFull | WriteMode::Failed => {}
            WriteMode::Shut => return Err(NotTaken::Refused(WriteMode::Shut)),
        }
        let before = std::mem::replace(&mut self.reference, reference);
        self.advance(Class::Needed, time, digest).inspect_err(|_| self.reference = before)
    }

    /// Must be called in every cycle of the shard: handles a failed sync, returns mappings that are
    /// no longer needed, and wakes the syncer if it has work.
    pub fn maintain(&mut self) -> usize {
        let mut work = 0;
        if self.health.syncer.faults.load(Ordering::Acquire) != self.faults {
            self.handle_failed_sync();
            work += 1;
        }
        work += self.return_mapping();
        if std::mem::take(&mut self.has_news)
            && let Some(syncer_wakeup) = &self.syncer_wakeup
        {
            syncer_wakeup.wake();
        }
        work
    }

    fn synced(&self) -> u64 {
        self.health.syncer.synced.load(Ordering::Acquire)
    }

    /// Ensures that the current segment has room for so many bytes.
    #[inline]
    fn make_space(
        &mut self,
        bytes: usize,
        class: Class,
        time: u64,
        digest: impl FnOnce() -> u64,
    ) -> Result<(), NotTaken> {
        match self.health.write_mode() {
            WriteMode::Open => {}
            WriteMode::Full | WriteMode::BrokerFull if class == Class::Needed => {}
            WriteMode::Failed if class == Class::Needed => {}
            mode @ (WriteMode::Full | WriteMode::BrokerFull | WriteMode::Failed | WriteMode::Shut) => {
                return Err(NotTaken::Refused(mode));
            }
        }
        if self.health.syncer.faults.load(Ordering::Acquire) != self.faults {
            self.handle_failed_sync();
        }
        if self.stuck {
            return Err(NotTaken::Refused(WriteMode::Shut));
        }
        let Some(open) = &self.current else { return self.advance(class, time, digest) };
        if self.level.is_synced() {
            // This bound ensures that all unsynced records fit into one fresh segment if a sync
            // fails.
            let waiting = self.bytes - self.health.syncer.synced_bytes.load(Ordering::Acquire);
            if index_usize(waiting) + bytes > (open.capacity - HEADER_BYTES) / 2 {
                return Err(NotTaken::Wait);
            }
        }
        if open.at + bytes > open.capacity {
            assert!(HEADER_BYTES + bytes <= open.capacity, "a record fits into a segment");
            return self.advance(class, time, digest);
        }
        Ok(())
    }

    /// Starts the next segment.
    #[cold]
    fn advance(&mut self, class: Class, time: u64, digest: impl FnOnce() -> u64) -> Result<(), NotTaken> {
        self.return_mapping();
        let needed = if class == Class::Needed { 1 } else { SPARES_FOR_ENTRY };
        if self.spares.slots() < needed {
            // No segment will be allocated until there is disk space, or at all.
            let mode = self.health.write_mode();
            return Err(if mode == WriteMode::Open { NotTaken::Wait } else { NotTaken::Refused(mode) });
        }
        if self.behind.is_some() || self.moves.slots() < MOVES_RESERVED + 2 {
            return Err(NotTaken::Wait);
        }
        let Ok(spare) = self.spares.pop() else { return Err(NotTaken::Wait) };
        let digest = digest();
        let link = self.current.as_ref().map_or(self.link, OpenSegment::link);
        if let Some(open) = self.current.take() {
            self.finish_segment(open);
        }
        self.begin(spare, link, self.seq + 1, time, digest);
        Ok(())
    }

    fn finish_segment(&mut self, open: OpenSegment) {
        let (reference, end) = (open.reference, open.at as u64);
        let finished =
            FinishedSegment { number: open.number, reference, first: open.first, last: open.last, end };
        self.notify_syncer(SegmentMove::Finished(finished));
        match self.level {
            // If its sync fails, the records are read again from this mapping.
            Level::Replicated | Level::Disk => self.behind = Some(open),
            Level::Os | Level::None => {
                self.notify_syncer(SegmentMove::Returned { number: open.number, region: open.region })
            }
        }
    }

    fn begin(&mut self, mut spare: SpareSegment, after: SegmentLink, first: u64, time: u64, digest: u64) {
        let header = Header {
            owner: self.owner,
            boot: self.boot,
            number: spare.number,
            first,
            time,
            digest,
            durable: self.synced(),
            after,
            reference: self.reference,
            rules: RULES,
        };
        let (bytes, header_sum) = header.encode();
        spare.region.write(0, &bytes);
        self.health.writer.segment.store(spare.number, Ordering::Relaxed);
        self.current = Some(OpenSegment {
            number: spare.number,
            reference: self.reference,
            salt: self.owner.salt(spare.number),
            header_sum,
            after,
            first,
            last: first - 1,
            at: HEADER_BYTES,
            capacity: spare.region.capacity(),
            chain: 0,
            region: spare.region,
        });
    }

    fn return_mapping(&mut self) -> usize {
        let done = self.behind.as_ref().is_some_and(|open| open.last <= self.synced());
        if !done || self.moves.slots() <= MOVES_RESERVED {
            return 0;
        }
        let open = self.behind.take().expect("the segment was just checked");
        self.notify_syncer(SegmentMove::Returned { number: open.number, region: open.region });
        1
    }

    /// Handles a failed sync: writes the unsynced records again, into a fresh segment that
    /// continues from the last record known to be on disk. The failed file is not touched any more.
    #[cold]
    fn handle_failed_sync(&mut self) {
        self.faults = self.health.syncer.faults.load(Ordering::Acquire);
        self.has_news = true;
        let Some(open) = self.current.take() else { return };
        let Ok(spare) = self.spares.pop() else { return self.give_up() };
        let number = spare.number;
        if !self.level.is_synced() {
            // The operating system has the records, which is all that this level promises; the
            // writer only leaves the file.
            let (link, first) = (open.link(), self.seq + 1);
            self.finish_segment(open);
            return self.begin(spare, link, first, 0, 0);
        }
        let synced = self.synced();
        let mut pieces: Vec<OpenSegment> = self.behind.take().into_iter().chain([open]).collect();
        pieces.retain(|piece| piece.last > synced);
        let Some(oldest) = pieces.first() else {
            // All records are on disk although a sync failed, which is impossible.
            return self.give_up();
        };
        let (link, from) = oldest.position_after(synced);
        // The state before its first record is no longer available; zero means that there is no
        // digest.
        self.begin(spare, link, synced + 1, 0, 0);
        match self.write_again(&pieces, from, synced) {
            true => self.notify_syncer(SegmentMove::Moved { number }),
            false => self.give_up(),
        }
    }

    fn give_up(&mut self) {
        self.stuck = true;
        self.notify_syncer(SegmentMove::Stuck);
    }

    fn write_again(&mut self, pieces: &[OpenSegment], mut from: usize, synced: u64) -> bool {
        let Some(open) = self.current.as_mut() else { return false };
        for piece in pieces {
            let bytes = piece.region.read(0, piece.at);
            while let DecodedRecord::Record { record, bytes: taken, .. } =
                JournalRecord::decode(piece.salt, &bytes[from..])
            {
                if open.at + taken > open.capacity {
                    return false;
                }
                self.scratch.resize(self.scratch.len().max(taken), 0);
                open.write(record.seq, record.time, synced, record.kind, record.payload, &mut self.scratch);
                from += taken;
            }
            from = HEADER_BYTES;
        }
        open.last == self.seq
    }

    fn notify_syncer(&mut self, message: SegmentMove) {
        self.has_news = true;
        let pushed = self.moves.push(message);
        assert!(pushed.is_ok(), "the lane has room for every message that spares allow");
    }
}

impl OpenSegment {
    #[inline]
    fn write(&mut self, seq: u64, time: u64, synced: u64, kind: u8, payload: &[u8], scratch: &mut [u8]) {
        let lag = u32::try_from(seq - 1 - synced.min(seq - 1)).unwrap_or(u32::MAX);
        let bytes = bytes_of(payload.len());
        let sum = JournalRecord { seq, time, lag, kind, payload }.encode(self.salt, &mut scratch[..bytes]);
        self.region.write(self.at, &scratch[..bytes]);
        self.at += bytes;
        self.last = seq;
        self.chain = chained(self.chain, sum);
    }

    fn link(&self) -> SegmentLink {
        let end = self.at as u64;
        SegmentLink { number: self.number, end, header_sum: self.header_sum, chain: self.chain }
    }

    /// Returns the position behind a record of this segment, or before its first.
    fn position_after(&self, seq: u64) -> (SegmentLink, usize) {
        if seq < self.first {
            return (self.after, HEADER_BYTES);
        }
        let bytes = self.region.read(0, self.at);
        let (mut at, mut chain) = (HEADER_BYTES, 0);
        while let DecodedRecord::Record { record, bytes: taken, sum } =
            JournalRecord::decode(self.salt, &bytes[at..])
        {
            if record.seq > seq {
                break;
            }
            at += taken;
            chain = chained(chain, sum);
        }
        (SegmentLink { number: self.number, end: at as u64, header_sum: self.header_sum, chain }, at)
    }
}

/// Returns the chain extended by one record.
#[inline]
pub(super) fn chained(chain: u32, sum: u32) -> u32 {
    crc32c::crc32c_append(chain, &sum.to_le_bytes())
}
