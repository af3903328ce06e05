//! The syncer writes the records of the shards to disk. One sync covers everything written since
//! the previous one.
//!
//! ```text
//! Writer ─ turns ─► Syncer ─ closed ─► SegmentManager
//!    ▲                 │  ▲               │
//!    └──── synced ─────┘  └──── files ────┘
//! ```
//!
//! Its only slow operation is the sync, because at level `disk` every acknowledgement waits for
//! that.

use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Instant;

use pitlane_engine::time::Timestamp;
use rtrb::{Consumer, Producer};

use super::disk::{File, Region};
use super::health::{Doing, Health, Level};
use super::mark::{Mark, Marker};
use super::writer::{Left, Turn};
use crate::wakeup::Wakeup;

/// Number of failed syncs that are tolerated. The first one is answered with a fresh segment; if
/// that fails too, the disk cannot be trusted and the journal is shut.
const FAULTS_MAX: u64 = 1;

/// The part of one thread in all journals of this process.
#[derive(Debug)]
pub struct Syncer {
    shards: Vec<Shard>,
}

#[derive(Debug)]
pub(super) struct Shard {
    level: Level,
    /// At level `os`: longest time that a record waits for its sync; no client waits for that sync.
    interval_ns: u64,
    due: Timestamp,
    /// Files in the order in which they are written: complete, current, spare.
    files: VecDeque<(u64, File)>,
    marker: Marker,
    /// Complete segments among the files that are not yet synced.
    left: VecDeque<Left>,
    /// Synced segments that wait for their region.
    closing: VecDeque<Closed>,
    state: State,
    ends: Ends,
    health: Arc<Health>,
    bell: Option<Wakeup>,
    /// Wake-up of the shipper, and the last record for which it was woken.
    shipper: Option<Wakeup>,
    rung: u64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    Sound,
    /// A sync failed; the writer has not yet moved to a fresh segment.
    Moving,
    /// Nothing is synced any more.
    Given,
}

#[derive(Debug)]
pub(super) struct Ends {
    pub files: Consumer<(u64, File)>,
    pub turns: Consumer<Turn>,
    pub closed: Producer<Closed>,
}

/// A complete segment, for the segment manager.
#[derive(Debug)]
pub(super) struct Closed {
    pub left: Left,
    pub file: File,
    pub region: Option<Region>,
}

impl Syncer {
    pub(super) fn new(shards: Vec<Shard>) -> Syncer {
        Syncer { shards }
    }

    /// Sets the wake-up for newly synced records of a shard.
    pub fn set_bell(&mut self, shard: usize, bell: Wakeup) {
        self.shards[shard].bell = Some(bell);
    }

    /// Sets the wake-up of the shipper, which sends new records to the broker.
    pub fn set_shipper(&mut self, bell: &Wakeup) {
        self.shards.iter_mut().for_each(|shard| shard.shipper = Some(bell.clone()));
    }

    /// Does the pending work and returns how much.
    pub fn poll(&mut self, now: Timestamp) -> usize {
        self.shards.iter_mut().map(|shard| shard.poll(now)).sum()
    }

    /// Returns the time of the next poll that is needed without a wake-up.
    pub fn deadline(&self) -> Option<Timestamp> {
        self.shards.iter().filter(|shard| shard.has_unsynced()).map(|shard| shard.due).min()
    }

    /// Syncs everything, for an orderly shutdown.
    pub fn finish(&mut self, now: Timestamp) {
        for shard in &mut self.shards {
            shard.due = now;
            shard.poll(now);
            shard.mark();
        }
    }
}

impl Shard {
    pub(super) fn new(
        level: Level,
        interval_ns: u64,
        marker: Marker,
        ends: Ends,
        health: Arc<Health>,
    ) -> Shard {
        Shard {
            marker,
            level,
            interval_ns,
            due: Timestamp::MAX,
            files: VecDeque::new(),
            left: VecDeque::new(),
            closing: VecDeque::new(),
            state: State::Sound,
            ends,
            health,
            bell: None,
            shipper: None,
            rung: 0,
        }
    }

    fn poll(&mut self, now: Timestamp) -> usize {
        // The counters are read in this order and before the lanes: the files that they cover are
        // then received below.
        let bytes = self.health.writer.bytes.load(Ordering::Acquire);
        let seq = self.health.writer.appended.load(Ordering::Acquire);
        if let Some(shipper) = self.shipper.as_ref().filter(|_| seq != self.rung) {
            // The shipper is woken before the sync, because commands wait for both.
            self.rung = seq;
            shipper.wake();
        }
        let mut work = self.hear();
        if self.wants_sync(now, seq) {
            self.sync(seq, bytes);
            work += 1;
        }
        if self.due == Timestamp::MAX || seq == self.health.keeper.synced.load(Ordering::Relaxed) {
            self.due = now.plus(self.interval_ns);
        }
        work + self.hand_over()
    }

    fn has_unsynced(&self) -> bool {
        let appended = self.health.writer.appended.load(Ordering::Acquire);
        self.state == State::Sound && appended != self.health.keeper.synced.load(Ordering::Relaxed)
    }

    fn wants_sync(&self, now: Timestamp, seq: u64) -> bool {
        let behind = seq != self.health.keeper.synced.load(Ordering::Relaxed);
        match (self.state, self.level) {
            (State::Moving | State::Given, _) => false,
            (State::Sound, level) if level.is_synced() => behind,
            (State::Sound, _) => !self.left.is_empty() || behind && now >= self.due,
        }
    }

    fn hear(&mut self) -> usize {
        let mut heard = 0;
        while let Ok(file) = self.ends.files.pop() {
            self.files.push_back(file);
            heard += 1;
        }
        while let Ok(turn) = self.ends.turns.pop() {
            self.handle(turn);
            heard += 1;
        }
        heard
    }

    fn handle(&mut self, turn: Turn) {
        match turn {
            Turn::Left(left) if self.state == State::Sound => self.left.push_back(left),
            // The segment is void: its records are written again, or given up.
            Turn::Left(left) => self.files.retain(|(number, _)| *number != left.number),
            Turn::Returned { number, region } => {
                // At level `os` the region arrives before the sync, which needs only the file.
                let mut places = self.closing.iter_mut();
                if let Some(closed) = places.find(|closed| closed.left.number == number) {
                    closed.region = Some(region);
                }
            }
            Turn::Moved { number } => {
                self.files.retain(|(other, _)| *other >= number);
                self.left.clear();
                if self.state == State::Moving {
                    self.state = State::Sound;
                }
            }
            Turn::Stuck => self.give_up(),
        }
    }

    /// Syncs every file that contains records up to `seq`.
    fn sync(&mut self, seq: u64, bytes: u64) {
        let begun = Instant::now();
        while let Some(left) = self.left.front().copied() {
            let Some((_, file)) = self.files.front() else { break };
            if let Err(error) = file.sync() {
                return self.fail(&error);
            }
            self.left.pop_front();
            if let Some((_, file)) = self.files.pop_front() {
                self.closing.push_back(Closed { left, file, region: None });
            }
        }
        if let Some((_, file)) = self.files.front()
            && let Err(error) = file.sync()
        {
            return self.fail(&error);
        }
        // The mark is written before the records are reported as synced.
        self.note_mark(seq, false);
        let keeper = &self.health.keeper;
        let ns = u64::try_from(begun.elapsed().as_nanos()).unwrap_or(u64::MAX);
        keeper.sync_ns_max.fetch_max(ns, Ordering::Relaxed);
        keeper.syncs.fetch_add(1, Ordering::Relaxed);
        keeper.synced_bytes.store(bytes, Ordering::Release);
        keeper.synced.store(seq, Ordering::Release);
        if let Some(bell) = &self.bell {
            bell.wake();
        }
    }

    /// Writes the mark again, so that it names the last record.
    fn mark(&mut self) {
        if self.state == State::Sound {
            self.note_mark(self.health.keeper.synced.load(Ordering::Relaxed), true);
        }
    }

    fn note_mark(&mut self, record: u64, now: bool) {
        if let Some((segment, _)) = self.files.front() {
            // On error the older mark stays, and the next sync tries again: a full disk must not
            // block operations that need no space.
            let _ = self.marker.note(Mark { segment: *segment, record }, now);
        }
    }

    fn fail(&mut self, error: &std::io::Error) {
        let keeper = &self.health.keeper;
        keeper.error.set(Doing::Syncing, error);
        let faults = keeper.faults.load(Ordering::Relaxed) + 1;
        // At level `os` no client waits for a sync: the writer continues in another segment, and
        // this thread stops syncing.
        self.state = if self.level.is_synced() { State::Moving } else { State::Given };
        if faults > FAULTS_MAX {
            return self.give_up();
        }
        keeper.faults.store(faults, Ordering::Release);
        if let Some(bell) = &self.bell {
            bell.wake();
        }
    }

    fn give_up(&mut self) {
        self.state = State::Given;
        self.health.keeper.shut.store(true, Ordering::Release);
        if let Some(bell) = &self.bell {
            bell.wake();
        }
    }

    fn hand_over(&mut self) -> usize {
        let mut handed = 0;
        while let Some(closed) = self.closing.front() {
            let whole = closed.region.is_some() || !self.level.is_synced();
            if !whole || self.ends.closed.is_full() {
                break;
            }
            if let Some(closed) = self.closing.pop_front() {
                handed += usize::from(self.ends.closed.push(closed).is_ok());
            }
        }
        handed
    }
}
