//! The syncer writes the records of the shards to disk. One sync covers everything written since
//! the previous one.
//!
//! ```text
//! Writer ─ moves ─► Syncer ─ closed ─► SegmentManager
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
use pitlane_runtime::wakeup::Wakeup;
use rtrb::{Consumer, Producer};

use super::disk::{File, Region};
use super::health::{DiskOperation, Health, Level};
use super::mark::{DiskMark, Marker};
use super::writer::{FinishedSegment, SegmentMove};

/// Number of failed syncs that are tolerated. The first one is answered with a fresh segment; if
/// that fails too, the disk cannot be trusted and the journal is shut.
const FAULTS_MAX: u64 = 1;

/// The part of one thread in all journals of this process.
#[derive(Debug)]
pub struct Syncer {
    shards: Vec<SyncedShard>,
}

#[derive(Debug)]
pub(super) struct SyncedShard {
    level: Level,
    /// At level `os`: longest time that a record waits for its sync; no client waits for that sync.
    interval_ns: u64,
    due: Timestamp,
    /// Files in the order in which they are written: complete, current, spare.
    files: VecDeque<(u64, File)>,
    marker: Marker,
    /// Complete segments among the files that are not yet synced.
    finished: VecDeque<FinishedSegment>,
    /// Synced segments that wait for their region.
    closing: VecDeque<ClosedSegment>,
    state: SyncerState,
    lanes: SyncerLanes,
    health: Arc<Health>,
    wakeup: Option<Wakeup>,
    /// Wake-up of the shipper, and the last record for which it was woken.
    shipper: Option<Wakeup>,
    woken_for: u64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum SyncerState {
    Sound,
    /// A sync failed; the writer has not yet moved to a fresh segment.
    Moving,
    /// Nothing is synced any more.
    Stopped,
}

#[derive(Debug)]
pub(super) struct SyncerLanes {
    pub files: Consumer<(u64, File)>,
    pub moves: Consumer<SegmentMove>,
    pub closed: Producer<ClosedSegment>,
}

/// A complete segment, for the segment manager.
#[derive(Debug)]
pub(super) struct ClosedSegment {
    pub finished: FinishedSegment,
    pub file: File,
    pub region: Option<Region>,
}

impl Syncer {
    pub(super) fn new(shards: Vec<SyncedShard>) -> Syncer {
        Syncer { shards }
    }

    /// Sets the wake-up for newly synced records of a shard.
    pub fn set_wakeup(&mut self, shard: usize, wakeup: Wakeup) {
        self.shards[shard].wakeup = Some(wakeup);
    }

    /// Sets the wake-up of the shipper, which sends new records to the broker.
    pub fn set_shipper(&mut self, wakeup: &Wakeup) {
        self.shards.iter_mut().for_each(|shard| shard.shipper = Some(wakeup.clone()));
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

impl SyncedShard {
    pub(super) fn new(
        level: Level,
        interval_ns: u64,
        marker: Marker,
        lanes: SyncerLanes,
        health: Arc<Health>,
    ) -> SyncedShard {
        SyncedShard {
            marker,
            level,
            interval_ns,
            due: Timestamp::MAX,
            files: VecDeque::new(),
            finished: VecDeque::new(),
            closing: VecDeque::new(),
            state: SyncerState::Sound,
            lanes,
            health,
            wakeup: None,
            shipper: None,
            woken_for: 0,
        }
    }

    fn poll(&mut self, now: Timestamp) -> usize {
        // The counters are read in this order and before the lanes: the files that they cover are
        // then received below.
        let bytes = self.health.writer.bytes.load(Ordering::Acquire);
        let seq = self.health.writer.appended.load(Ordering::Acquire);
        if let Some(shipper) = self.shipper.as_ref().filter(|_| seq != self.woken_for) {
            // The shipper is woken before the sync, because commands wait for both.
            self.woken_for = seq;
            shipper.wake();
        }
        let mut work = self.receive_messages();
        if self.wants_sync(now, seq) {
            self.sync(seq, bytes);
            work += 1;
        }
        if self.due == Timestamp::MAX || seq == self.health.syncer.synced.load(Ordering::Relaxed) {
            self.due = now.plus(self.interval_ns);
        }
        work + self.hand_over()
    }

    fn has_unsynced(&self) -> bool {
        let appended = self.health.writer.appended.load(Ordering::Acquire);
        self.state == SyncerState::Sound && appended != self.health.syncer.synced.load(Ordering::Relaxed)
    }

    fn wants_sync(&self, now: Timestamp, seq: u64) -> bool {
        let behind = seq != self.health.syncer.synced.load(Ordering::Relaxed);
        match (self.state, self.level) {
            (SyncerState::Moving | SyncerState::Stopped, _) => false,
            (SyncerState::Sound, level) if level.is_synced() => behind,
            (SyncerState::Sound, _) => !self.finished.is_empty() || behind && now >= self.due,
        }
    }

    fn receive_messages(&mut self) -> usize {
        let mut received = 0;
        while let Ok(file) = self.lanes.files.pop() {
            self.files.push_back(file);
            received += 1;
        }
        while let Ok(message) = self.lanes.moves.pop() {
            self.handle(message);
            received += 1;
        }
        received
    }

    fn handle(&mut self, message: SegmentMove) {
        match message {
            SegmentMove::Finished(finished) if self.state == SyncerState::Sound => {
                self.finished.push_back(finished)
            }
            // The segment is void: its records are written again, or given up.
            SegmentMove::Finished(finished) => self.files.retain(|(number, _)| *number != finished.number),
            SegmentMove::Returned { number, region } => {
                // At level `os` the region arrives before the sync, which needs only the file.
                let mut closing = self.closing.iter_mut();
                if let Some(closed) = closing.find(|closed| closed.finished.number == number) {
                    closed.region = Some(region);
                }
            }
            SegmentMove::Moved { number } => {
                self.files.retain(|(other, _)| *other >= number);
                self.finished.clear();
                if self.state == SyncerState::Moving {
                    self.state = SyncerState::Sound;
                }
            }
            SegmentMove::Stuck => self.give_up(),
        }
    }

    /// Syncs every file that contains records up to `seq`.
    fn sync(&mut self, seq: u64, bytes: u64) {
        let begun = Instant::now();
        while let Some(finished) = self.finished.front().copied() {
            let Some((_, file)) = self.files.front() else { break };
            if let Err(error) = file.sync() {
                return self.fail(&error);
            }
            self.finished.pop_front();
            if let Some((_, file)) = self.files.pop_front() {
                self.closing.push_back(ClosedSegment { finished, file, region: None });
            }
        }
        if let Some((_, file)) = self.files.front()
            && let Err(error) = file.sync()
        {
            return self.fail(&error);
        }
        // The mark is written before the records are reported as synced.
        self.note_mark(seq, false);
        let syncer = &self.health.syncer;
        let ns = u64::try_from(begun.elapsed().as_nanos()).unwrap_or(u64::MAX);
        syncer.sync_ns_max.fetch_max(ns, Ordering::Relaxed);
        syncer.syncs.fetch_add(1, Ordering::Relaxed);
        syncer.synced_bytes.store(bytes, Ordering::Release);
        syncer.synced.store(seq, Ordering::Release);
        if let Some(wakeup) = &self.wakeup {
            wakeup.wake();
        }
    }

    /// Writes the mark again, so that it names the last record.
    fn mark(&mut self) {
        if self.state == SyncerState::Sound {
            self.note_mark(self.health.syncer.synced.load(Ordering::Relaxed), true);
        }
    }

    fn note_mark(&mut self, record: u64, now: bool) {
        if let Some((segment, _)) = self.files.front() {
            // On error the older mark stays, and the next sync tries again: a full disk must not
            // block operations that need no space.
            let _ = self.marker.note(DiskMark { segment: *segment, record }, now);
        }
    }

    fn fail(&mut self, error: &std::io::Error) {
        let syncer = &self.health.syncer;
        syncer.error.set(DiskOperation::Syncing, error);
        let faults = syncer.faults.load(Ordering::Relaxed) + 1;
        // At level `os` no client waits for a sync: the writer continues in another segment, and
        // this thread stops syncing.
        self.state = if self.level.is_synced() { SyncerState::Moving } else { SyncerState::Stopped };
        if faults > FAULTS_MAX {
            return self.give_up();
        }
        syncer.faults.store(faults, Ordering::Release);
        if let Some(wakeup) = &self.wakeup {
            wakeup.wake();
        }
    }

    fn give_up(&mut self) {
        self.state = SyncerState::Stopped;
        self.health.syncer.shut.store(true, Ordering::Release);
        if let Some(wakeup) = &self.wakeup {
            wakeup.wake();
        }
    }

    fn hand_over(&mut self) -> usize {
        let mut handed = 0;
        while let Some(closed) = self.closing.front() {
            let whole = closed.region.is_some() || !self.level.is_synced();
            if !whole || self.lanes.closed.is_full() {
                break;
            }
            if let Some(closed) = self.closing.pop_front() {
                handed += usize::from(self.lanes.closed.push(closed).is_ok());
            }
        }
        handed
    }
}
