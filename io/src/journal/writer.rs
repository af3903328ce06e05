//! The shard's end of its journal. An append is a copy into a mapped, reserved segment: no call to the system, no lock, no
//! waiting. If there is no segment to go on in, the answer is that; the caller decides who waits.
//!
//! ```text
//!            spares ─► [ Writer: behind, current ] ─ turns ─► Keeper
//! ```

use std::sync::Arc;
use std::sync::atomic::Ordering;

use rtrb::{Consumer, Producer};

use super::disk::Region;
use super::header::{HEADER_BYTES, Header, Link, Owner, RULES};
use super::health::{Health, Level, WriteMode};
use super::record::{Found, Record, bytes_of};
use crate::wakeup::Wakeup;

/// Spare segments that must be there for anything but a cancel to begin a new one: the last one is the reserve.
const SPARES_FOR_ENTRY: usize = 2;
/// Places of the lane to the keeper: far more turns than there are spare segments to take one for.
pub(super) const TURNS_MAX: usize = 64;
/// Of these, kept for what must be told after a failed sync.
const TURNS_KEPT: usize = 4;

/// Who may still be served when the disk does not go along.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Class {
    /// New obligations, and prices: these are refused first.
    Entry,
    /// Whatever ends or settles something: cancels, reports of venues, the clock, the operator.
    Needed,
}

/// Why a record was not taken. Nothing was written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NotTaken {
    /// There is no segment yet, or too much waits for the disk: try again soon.
    Wait,
    Refused(WriteMode),
}

/// A segment ready to be written: made by the steward.
#[derive(Debug)]
pub(super) struct Spare {
    pub number: u64,
    pub region: Region,
}

/// What the keeper is told.
#[derive(Debug)]
pub(super) enum Turn {
    /// The segment is complete; from now on the next one is written.
    Left(Left),
    /// What was mapped is no longer needed.
    Returned { number: u64, region: Region },
    /// A sync failed. What it should have kept is in this segment; those before it are of no use from here on.
    Moved { number: u64 },
    /// It did not fit there, or there is none.
    Stuck,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Left {
    pub number: u64,
    /// Name of the reference data in force when it began.
    pub reference: u64,
    pub first: u64,
    pub last: u64,
    pub end: u64,
}

/// Where a writer goes on: all that was written before it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Position {
    /// Last sequence number.
    pub seq: u64,
    pub link: Link,
}

#[derive(Debug)]
pub struct Writer {
    level: Level,
    owner: Owner,
    boot: u128,
    reference: u64,
    seq: u64,
    /// Where the first segment goes on.
    link: Link,
    current: Option<Open>,
    /// The segment before, until it is known to be on disk; where commands wait for that.
    behind: Option<Open>,
    /// Bytes of all records.
    bytes: u64,
    /// Failed syncs that were answered.
    faults: u64,
    /// A failed sync could not be answered: nothing may be written any more.
    stuck: bool,
    /// Whether the keeper has something to do since it was last woken.
    news: bool,
    scratch: Vec<u8>,
    spares: Consumer<Spare>,
    turns: Producer<Turn>,
    health: Arc<Health>,
    bell: Option<Wakeup>,
}

/// A segment that is written.
#[derive(Debug)]
struct Open {
    number: u64,
    reference: u64,
    salt: u32,
    header_sum: u32,
    after: Link,
    first: u64,
    last: u64,
    at: usize,
    capacity: usize,
    /// Sum of the records' sums.
    chain: u32,
    region: Region,
}

impl Writer {
    pub(super) fn new(
        level: Level,
        owner: Owner,
        boot: u128,
        reference: u64,
        position: Position,
        ends: (Consumer<Spare>, Producer<Turn>),
        health: Arc<Health>,
    ) -> Writer {
        assert!(level != Level::None, "without a journal there is no writer");
        health.writer.appended.store(position.seq, Ordering::Release);
        health.keeper.synced.store(position.seq, Ordering::Release);
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
            news: false,
            scratch: vec![0; bytes_of(0)],
            spares: ends.0,
            turns: ends.1,
            health,
            bell: None,
        }
    }

    /// Whom to wake when the keeper has something to do.
    pub fn set_bell(&mut self, keeper: Wakeup) {
        self.bell = Some(keeper);
    }

    pub fn level(&self) -> Level {
        self.level
    }

    pub fn health(&self) -> &Arc<Health> {
        &self.health
    }

    /// Number of the last record.
    pub fn seq(&self) -> u64 {
        self.seq
    }

    /// Whatever was written up to this record is safe at the level: it may be told.
    #[inline]
    pub fn safe(&self) -> u64 {
        match self.level {
            Level::Replicated => self.synced().min(self.health.shipped()),
            Level::Disk => self.synced(),
            Level::Os | Level::None => self.seq,
        }
    }

    /// Writes one record and answers with its number. `digest` is the shard's before this record; it is asked for when a
    /// new segment begins.
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
        let taken = self.make_way(bytes, class, time, digest);
        if let Err(why) = taken {
            let counter = match why {
                NotTaken::Wait => &self.health.writer.waits,
                NotTaken::Refused(_) => &self.health.writer.refused,
            };
            counter.store(counter.load(Ordering::Relaxed) + 1, Ordering::Relaxed);
            return Err(why);
        }
        let synced = self.synced();
        let open = self.current.as_mut().expect("the way was made");
        if self.scratch.len() < bytes {
            self.scratch.resize(bytes, 0);
        }
        self.seq += 1;
        self.bytes += bytes as u64;
        self.news |= self.level.is_synced();
        open.write(self.seq, time, synced, kind, payload, &mut self.scratch);
        self.health.writer.bytes.store(self.bytes, Ordering::Release);
        self.health.writer.appended.store(self.seq, Ordering::Release);
        Ok(self.seq)
    }

    /// Begins a segment for other reference data, so that every segment names all that its records need: the change is its
    /// first record.
    #[cold]
    pub(super) fn turn_to(
        &mut self,
        reference: u64,
        time: u64,
        digest: impl FnOnce() -> u64,
    ) -> Result<(), NotTaken> {
        if self.reference == reference {
            // Turned already, and the record found no room yet; or they are the same as before.
            return Ok(());
        }
        match self.health.door() {
            WriteMode::Open | WriteMode::Full | WriteMode::BrokerFull | WriteMode::Failed => {}
            WriteMode::Shut => return Err(NotTaken::Refused(WriteMode::Shut)),
        }
        let before = std::mem::replace(&mut self.reference, reference);
        self.turn(Class::Needed, time, digest).inspect_err(|_| self.reference = before)
    }

    /// To be called in every cycle of the shard: answers a failed sync, gives back what is no longer needed, and wakes
    /// the keeper if it has something to do.
    pub fn tend(&mut self) -> usize {
        let mut work = 0;
        if self.health.keeper.faults.load(Ordering::Acquire) != self.faults {
            self.move_on();
            work += 1;
        }
        work += self.give_back();
        if std::mem::take(&mut self.news)
            && let Some(bell) = &self.bell
        {
            bell.wake();
        }
        work
    }

    fn synced(&self) -> u64 {
        self.health.keeper.synced.load(Ordering::Acquire)
    }

    /// Sees to it that the current segment has room for so many bytes.
    #[inline]
    fn make_way(
        &mut self,
        bytes: usize,
        class: Class,
        time: u64,
        digest: impl FnOnce() -> u64,
    ) -> Result<(), NotTaken> {
        match self.health.door() {
            WriteMode::Open => {}
            WriteMode::Full | WriteMode::BrokerFull if class == Class::Needed => {}
            WriteMode::Failed if class == Class::Needed => {}
            door @ (WriteMode::Full | WriteMode::BrokerFull | WriteMode::Failed | WriteMode::Shut) => {
                return Err(NotTaken::Refused(door));
            }
        }
        if self.health.keeper.faults.load(Ordering::Acquire) != self.faults {
            self.move_on();
        }
        if self.stuck {
            return Err(NotTaken::Refused(WriteMode::Shut));
        }
        let Some(open) = &self.current else { return self.turn(class, time, digest) };
        if self.level.is_synced() {
            // So whatever is not on disk fits into one fresh segment, should a sync fail.
            let waiting = self.bytes - self.health.keeper.synced_bytes.load(Ordering::Acquire);
            if waiting as usize + bytes > (open.capacity - HEADER_BYTES) / 2 {
                return Err(NotTaken::Wait);
            }
        }
        if open.at + bytes > open.capacity {
            assert!(HEADER_BYTES + bytes <= open.capacity, "a record fits into a segment");
            return self.turn(class, time, digest);
        }
        Ok(())
    }

    /// Begins the next segment.
    #[cold]
    fn turn(&mut self, class: Class, time: u64, digest: impl FnOnce() -> u64) -> Result<(), NotTaken> {
        self.give_back();
        let needed = if class == Class::Needed { 1 } else { SPARES_FOR_ENTRY };
        if self.spares.slots() < needed {
            // Nobody will make one until there is room, or ever.
            return Err(match self.health.door() {
                WriteMode::Open => NotTaken::Wait,
                door => NotTaken::Refused(door),
            });
        }
        if self.behind.is_some() || self.turns.slots() < TURNS_KEPT + 2 {
            return Err(NotTaken::Wait);
        }
        let Ok(spare) = self.spares.pop() else { return Err(NotTaken::Wait) };
        let digest = digest();
        let link = self.current.as_ref().map_or(self.link, Open::link);
        if let Some(open) = self.current.take() {
            self.leave(open);
        }
        self.begin(spare, link, self.seq + 1, time, digest);
        Ok(())
    }

    fn leave(&mut self, open: Open) {
        let reference = open.reference;
        let left =
            Left { number: open.number, reference, first: open.first, last: open.last, end: open.at as u64 };
        self.tell(Turn::Left(left));
        match self.level {
            // If it cannot be synced it is read once more from here.
            Level::Replicated | Level::Disk => self.behind = Some(open),
            Level::Os | Level::None => self.tell(Turn::Returned { number: open.number, region: open.region }),
        }
    }

    fn begin(&mut self, mut spare: Spare, after: Link, first: u64, time: u64, digest: u64) {
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
        self.current = Some(Open {
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

    fn give_back(&mut self) -> usize {
        let done = self.behind.as_ref().is_some_and(|open| open.last <= self.synced());
        if !done || self.turns.slots() <= TURNS_KEPT {
            return 0;
        }
        let open = self.behind.take().expect("it was just seen");
        self.tell(Turn::Returned { number: open.number, region: open.region });
        1
    }

    /// A sync has failed. What it should have kept is written again, into a fresh segment that continues from the last
    /// record known to be on disk. The failed file is not touched any more.
    #[cold]
    fn move_on(&mut self) {
        self.faults = self.health.keeper.faults.load(Ordering::Acquire);
        self.news = true;
        let Some(open) = self.current.take() else { return };
        let Ok(spare) = self.spares.pop() else { return self.give_up() };
        let number = spare.number;
        if !self.level.is_synced() {
            // What the operating system has is as safe as was promised; only the file is left.
            let (link, first) = (open.link(), self.seq + 1);
            self.leave(open);
            return self.begin(spare, link, first, 0, 0);
        }
        let synced = self.synced();
        let mut pieces: Vec<Open> = self.behind.take().into_iter().chain([open]).collect();
        pieces.retain(|piece| piece.last > synced);
        let Some(oldest) = pieces.first() else {
            // All of it is on disk, though a sync failed: that cannot be.
            return self.give_up();
        };
        let (link, from) = oldest.place_after(synced);
        // The state before its first record is long gone; zero means that it is not told.
        self.begin(spare, link, synced + 1, 0, 0);
        match self.write_again(&pieces, from, synced) {
            true => self.tell(Turn::Moved { number }),
            false => self.give_up(),
        }
    }

    fn give_up(&mut self) {
        self.stuck = true;
        self.tell(Turn::Stuck);
    }

    fn write_again(&mut self, pieces: &[Open], mut from: usize, synced: u64) -> bool {
        let Some(open) = self.current.as_mut() else { return false };
        for piece in pieces {
            let bytes = piece.region.read(0, piece.at);
            while let Found::Record { record, bytes: taken, .. } = Record::decode(piece.salt, &bytes[from..])
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

    fn tell(&mut self, turn: Turn) {
        self.news = true;
        let told = self.turns.push(turn);
        assert!(told.is_ok(), "the lane has room for every turn that spares allow");
    }
}

impl Open {
    #[inline]
    fn write(&mut self, seq: u64, time: u64, synced: u64, kind: u8, payload: &[u8], scratch: &mut [u8]) {
        let lag = u32::try_from(seq - 1 - synced.min(seq - 1)).unwrap_or(u32::MAX);
        let bytes = bytes_of(payload.len());
        let sum = Record { seq, time, lag, kind, payload }.encode(self.salt, &mut scratch[..bytes]);
        self.region.write(self.at, &scratch[..bytes]);
        self.at += bytes;
        self.last = seq;
        self.chain = chained(self.chain, sum);
    }

    fn link(&self) -> Link {
        Link { number: self.number, end: self.at as u64, header_sum: self.header_sum, chain: self.chain }
    }

    /// The place behind a record of this segment, or before its first.
    fn place_after(&self, seq: u64) -> (Link, usize) {
        if seq < self.first {
            return (self.after, HEADER_BYTES);
        }
        let bytes = self.region.read(0, self.at);
        let (mut at, mut chain) = (HEADER_BYTES, 0);
        while let Found::Record { record, bytes: taken, sum } = Record::decode(self.salt, &bytes[at..]) {
            if record.seq > seq {
                break;
            }
            at += taken;
            chain = chained(chain, sum);
        }
        (Link { number: self.number, end: at as u64, header_sum: self.header_sum, chain }, at)
    }
}

/// The chain with one more record.
#[inline]
pub(super) fn chained(chain: u32, sum: u32) -> u32 {
    crc32c::crc32c_append(chain, &sum.to_le_bytes())
}
