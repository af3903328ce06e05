//! The segment manager: all file operations that may take long. It allocates segments in advance,
//! archives complete ones, builds snapshots from them, and removes what is no longer needed.
//!
//! ```text
//!                  ┌─ files ──► Syncer ─ closed ──► archive ─► snapshot ─► retention
//! SegmentManager ──┤
//!                  └─ spares ─► Writer
//! ```
//!
//! It may share a thread with the syncer. At level `disk` it should not, because a sync then waits
//! for it.

use std::collections::{BTreeSet, VecDeque};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::Ordering;

use pitlane_engine::time::{NS_PER_DAY, NS_PER_MS, Timestamp};
use rtrb::{Consumer, Producer};

use super::archive::{Archived, KeptSnapshot};
use super::build::Build;
use super::disk::{Disk, File};
use super::fault::Fault;
use super::header::Owner;
use super::health::{DiskOperation, Health};
use super::reference;
use super::scan::{segment_number, segment_path};
use super::snapshot::{KEPT, snapshot_path};
use super::syncer::ClosedSegment;
use super::writer::SpareSegment;
use super::{Folders, JournalSettings};

/// Pause after a segment could not be allocated or a snapshot could not be built.
const PAUSE_NS: u64 = 500 * NS_PER_MS;

#[derive(Debug)]
pub struct SegmentManager {
    shards: Vec<ManagedShard>,
    /// Sets of reference data that existed when the process started.
    references: BTreeSet<u64>,
}

#[derive(Debug)]
pub(super) struct ManagedShard {
    pub disk: Disk,
    pub folders: Folders,
    pub owner: Owner,
    pub settings: JournalSettings,
    pub folder: PathBuf,
    /// Number of the next segment to allocate.
    pub number: u64,
    /// Segments of an earlier process that were never used, or torn; and the orphans that continue
    /// such segments, which are removed first.
    pub blank: Vec<PathBuf>,
    pub orphans: Vec<PathBuf>,
    /// Complete segments, oldest first.
    pub archive: VecDeque<Archived>,
    /// Readable snapshots, oldest first.
    pub snapshots: VecDeque<KeptSnapshot>,
    pub reference: u64,
    pub build: Option<Build>,
    /// Earliest time of the next attempt after an error.
    pub retry_at: Timestamp,
    pub lanes: ManagerLanes,
    pub health: Arc<Health>,
}

#[derive(Debug)]
pub(super) struct ManagerLanes {
    pub spares: Producer<SpareSegment>,
    pub files: Producer<(u64, File)>,
    pub closed: Consumer<ClosedSegment>,
}

impl SegmentManager {
    pub(super) fn new(shards: Vec<ManagedShard>) -> SegmentManager {
        let first = shards.first();
        let references = first.map(|shard| reference::names(&shard.disk, &shard.folders.references()));
        SegmentManager { shards, references: references.unwrap_or_default() }
    }

    /// Allocates the segments that each shard starts with, and removes those that were never used.
    pub(super) fn prepare(&mut self, now: Timestamp) -> Result<(), Fault> {
        for shard in &mut self.shards {
            shard.clear().map_err(Fault::io(&shard.folder))?;
            for _ in 0..2 {
                if shard.make_spare(now) == 0 {
                    let error = shard.health.segment_manager.error.error();
                    let error = error.unwrap_or_else(|| io::Error::other("no segment could be allocated"));
                    return Err(Fault::io(&shard.folder)(error));
                }
            }
            shard.count();
        }
        Ok(())
    }

    /// Does a bounded amount of work and returns how much. Allocating a segment, or writing a
    /// snapshot, is one unit of work and takes some tens of milliseconds.
    pub fn poll(&mut self, now: Timestamp) -> usize {
        let removed = |shards: &[ManagedShard]| -> u64 {
            shards.iter().map(|shard| shard.health.segment_manager.removed.load(Ordering::Relaxed)).sum()
        };
        let before = removed(&self.shards);
        let work = self.shards.iter_mut().map(|shard| shard.poll(now)).sum();
        if removed(&self.shards) != before {
            self.retain_references();
        }
        work
    }

    /// Removes reference data that no shard needs. Sets stored by this process stay, because the
    /// command that uses them may not be in the journal yet.
    fn retain_references(&self) {
        let needed: BTreeSet<u64> = self.shards.iter().flat_map(ManagedShard::references).collect();
        let Some(shard) = self.shards.first() else { return };
        let idle: Vec<u64> = self.references.difference(&needed).copied().collect();
        if let Err(error) = reference::remove(&shard.disk, &shard.folders.references(), &idle) {
            shard.health.segment_manager.error.set(DiskOperation::Retention, &error);
        }
    }

    /// Makes the next polls build a snapshot of all complete segments, however small they are.
    pub fn ask_for_snapshots(&mut self) {
        self.shards.iter_mut().for_each(|shard| shard.settings.snapshot_bytes = 1);
    }
}

impl ManagedShard {
    /// Removes unusable files of an earlier process from the folder. A segment that continues a
    /// torn one is removed before it: while it exists, the segment it continues must be visible.
    fn clear(&mut self) -> io::Result<()> {
        self.disk.make_folder(&self.folder)?;
        remove_all(&self.disk, &self.folder, &std::mem::take(&mut self.orphans))?;
        remove_all(&self.disk, &self.folder, &std::mem::take(&mut self.blank))
    }

    fn poll(&mut self, now: Timestamp) -> usize {
        let mut work = 0;
        while let Ok(closed) = self.lanes.closed.pop() {
            self.archive_segment(closed, now);
            work += 1;
        }
        work += self.make_spare(now);
        work + self.take_snapshot(now)
    }

    pub(super) fn make_spare(&mut self, now: Timestamp) -> usize {
        let wanted = self.settings.spares.max(2);
        let lacks = self.lanes.spares.buffer().capacity() - self.lanes.spares.slots() < wanted;
        if !lacks || self.lanes.files.is_full() || now < self.retry_at {
            return 0;
        }
        let made = self.make_segment();
        let full = &self.health.segment_manager.full;
        match made {
            Ok((file, spare)) => {
                // The syncer must know the file before the writer writes to it.
                let announced = self.lanes.files.push((spare.number, file)).is_ok();
                let given = announced && self.lanes.spares.push(spare).is_ok();
                assert!(given, "only the segment manager fills these lanes");
                // One spare is the reserve. Entry reopens when there is a second one to continue
                // in.
                if self.lanes.spares.buffer().capacity() - self.lanes.spares.slots() >= 2 {
                    full.store(false, Ordering::Relaxed);
                }
                1
            }
            Err(error) => {
                self.health.segment_manager.error.set(DiskOperation::Reserving, &error);
                full.store(true, Ordering::Relaxed);
                self.retry_at = now.plus(PAUSE_NS);
                0
            }
        }
    }

    fn make_segment(&mut self) -> io::Result<(File, SpareSegment)> {
        let number = self.number;
        let path = segment_path(&self.folder, number);
        let synced = self.settings.level.is_synced();
        // A number is never used twice, whatever happens to the file.
        self.number += 1;
        let (file, region) = self.disk.create(&path, self.settings.segment_bytes, synced)?;
        Ok((file, SpareSegment { number, region }))
    }

    fn archive_segment(&mut self, closed: ClosedSegment, now: Timestamp) {
        drop(closed.region);
        let finished = closed.finished;
        if let Err(error) = closed.file.cut(finished.end) {
            // The file keeps its full length; only disk space is lost.
            self.health.segment_manager.error.set(DiskOperation::Retention, &error);
        }
        self.archive.push_back(Archived {
            number: finished.number,
            first: finished.first,
            last: finished.last,
            bytes: finished.end,
            time: now.0,
            reference: finished.reference,
        });
        self.count();
    }

    fn take_snapshot(&mut self, now: Timestamp) -> usize {
        if now < self.retry_at || self.health.syncer.faults.load(Ordering::Relaxed) > 0 {
            return 0;
        }
        if self.build.is_none() {
            if !self.wants_snapshot() {
                return 0;
            }
            match Build::new(&self.disk, &self.folders, self.owner, &self.archive, &self.snapshots) {
                Ok(build) => self.build = Some(build),
                Err(error) => return self.drop_build(now, &error),
            }
        }
        let Some(build) = &mut self.build else { return 0 };
        match build.step() {
            Ok(None) => {}
            Ok(Some((kept, bytes))) => {
                self.build = None;
                self.snapshots.push_back(kept);
                let segment_manager = &self.health.segment_manager;
                segment_manager.snapshots.fetch_add(1, Ordering::Relaxed);
                segment_manager.snapshot_seq.store(kept.seq, Ordering::Relaxed);
                segment_manager.snapshot_bytes.store(bytes, Ordering::Relaxed);
                segment_manager.snapshot_at.store(now.0, Ordering::Relaxed);
                self.retain(now);
            }
            Err(error) => return self.drop_build(now, &error),
        }
        1
    }

    fn drop_build(&mut self, now: Timestamp, error: &io::Error) -> usize {
        self.build = None;
        self.health.segment_manager.error.set(DiskOperation::Snapshot, error);
        self.retry_at = now.plus(PAUSE_NS);
        0
    }

    fn wants_snapshot(&self) -> bool {
        let from = self.snapshots.back().map_or(0, |kept| kept.seq);
        let new = self.archive.iter().filter(|segment| segment.last > from);
        new.map(|segment| segment.bytes).sum::<u64>() >= self.settings.snapshot_bytes
    }

    /// Removes snapshots and segments that are no longer needed.
    fn retain(&mut self, now: Timestamp) {
        let mut gone = Vec::new();
        while self.snapshots.len() > KEPT {
            gone.extend(self.snapshots.pop_front().map(|kept| snapshot_path(&self.folder, kept.seq)));
        }
        let needed = match self.snapshots.front() {
            Some(oldest) if self.snapshots.len() == KEPT => oldest.seq,
            _ => 0,
        };
        let young = now.0.saturating_sub(self.settings.keep_days as u64 * NS_PER_DAY);
        while self.archive.pop_front_if(|old| old.last <= needed && old.time < young).is_some() {}
        // The void segments between the removed ones are removed too.
        let oldest = self.archive.front().map_or(0, |segment| segment.number);
        let names = self.disk.list(&self.folder).unwrap_or_default();
        let numbers = names.iter().filter_map(|name| segment_number(name));
        gone.extend(
            numbers.filter(|&number| number < oldest).map(|number| segment_path(&self.folder, number)),
        );
        let removed = gone.len() as u64;
        let done = remove_all(&self.disk, &self.folder, &gone);
        if let Err(error) = done {
            self.health.segment_manager.error.set(DiskOperation::Retention, &error);
        }
        self.health.segment_manager.removed.fetch_add(removed, Ordering::Relaxed);
        self.count();
    }

    fn count(&self) {
        let segment_manager = &self.health.segment_manager;
        segment_manager.segments.store(self.archive.len() as u64, Ordering::Relaxed);
        let bytes = self.archive.iter().map(|segment| segment.bytes).sum();
        segment_manager.segment_bytes.store(bytes, Ordering::Relaxed);
    }

    /// Returns the reference data that a snapshot or a segment of this shard needs.
    fn references(&self) -> impl Iterator<Item = u64> {
        let snapshots = self.snapshots.iter().map(|kept| kept.reference);
        let segments = self.archive.iter().map(|segment| segment.reference);
        snapshots.chain(segments).chain([self.reference])
    }
}

fn remove_all(disk: &Disk, folder: &Path, paths: &[PathBuf]) -> io::Result<()> {
    for path in paths {
        match disk.remove(path) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
            _ => {}
        }
    }
    if paths.is_empty() { Ok(()) } else { disk.sync_folder(folder) }
}
