//! Recovery: the newest readable snapshot, and every record after it.

use std::path::Path;

use super::Folders;
use super::archive::{Archived, KeptSnapshot};
use super::disk::Disk;
use super::fault::{Fault, FaultKind};
use super::header::Owner;
use super::mark::DiskMark;
use super::record::JournalRecord;
use super::replay::{EventReceivers, ReplayCounts, Restored, ShardReplay};
use super::scan::{self, JournalScan, RecordVisitor, SegmentFile, Torn};
use super::snapshot::{Snapshot, snapshots_in};
use super::writer::JournalPosition;

/// Progress of a recovery.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RecoveryProgress {
    pub shard: u16,
    pub bytes_done: u64,
    pub bytes_total: u64,
}

/// The result of a recovery.
#[derive(Debug)]
pub struct Recovered {
    /// State of the shard; `None` if nothing was ever written.
    pub restored: Option<Restored>,
    pub position: JournalPosition,
    pub counts: ReplayCounts,
    /// Record of the snapshot that the recovery started with.
    pub snapshot: Option<u64>,
    /// The torn end that was dropped, if any.
    pub torn: Option<Torn>,
    /// Warnings for the operator.
    pub warnings: Vec<String>,
    pub(super) scanned: JournalScan,
    pub(super) archive: Vec<Archived>,
    pub(super) snapshots: Vec<KeptSnapshot>,
}

/// Recovers a shard's journal without changing any file.
pub(crate) fn recover(
    disk: &Disk,
    folders: &Folders,
    owner: &Owner,
    boot: u128,
    receivers: EventReceivers,
    progress: &mut dyn FnMut(RecoveryProgress),
) -> Result<Recovered, Fault> {
    let folder = folders.shard(owner.shard);
    let mut warnings = Vec::new();
    // The mark is read first: in a journal that is being written it must not be ahead of what is
    // read below.
    let mark = DiskMark::read(disk, folders, owner, &mut warnings)?;
    let scanned = scan::survey(disk, &folder, owner, last_boot(disk, folders) != Some(boot))?;
    let (mut replay, snapshots, old) = newest_state(disk, folders, owner, &mut warnings)?;
    let snapshot = (replay.seq() > 0).then_some(replay.seq());
    // A receiver elsewhere may ask for events from before the newest snapshot.
    if receivers.wants_past()
        && let Some(older) = older_state(disk, folders, owner, &scanned, &snapshots)
    {
        replay = older;
    }
    replay.listen(receivers);
    check_beginning(&folder, &scanned, replay.seq()).map_err(|fault| old.unwrap_or(fault))?;
    let from = scanned.index_of(replay.seq());
    let bytes_total = scanned.pieces[from.min(scanned.pieces.len())..].iter().map(|piece| piece.bytes).sum();
    let at = RecoveryProgress { shard: owner.shard, bytes_done: 0, bytes_total };
    let mut reporting = ReportingReplay { replay, at, progress };
    let walked = scan::walk(disk, &scanned, from, boot, &mut reporting)?;
    let replay = reporting.replay;
    if walked.position.seq < snapshot.unwrap_or(0) {
        // The snapshot was made from segments that are missing now.
        return Err(Fault::new(&folder, 0, FaultKind::Missing { number: scanned.number + 1 }));
    }
    mark.map_or(Ok(()), |mark| mark.check(folders, owner, &walked.position))?;
    let old = replay.counts().old_segments;
    if old > 0 {
        warnings.push(format!(
            "{old} segments of an earlier version were applied by this version's rules: {} digests came out the same; what the last segment holds has none: compare open orders and positions",
            replay.counts().digests
        ));
    }
    if let Some(torn) = &walked.torn {
        warnings.push(format!(
            "{} at {}: the end was torn: {} bytes dropped, among them {} whole records that were never acknowledged",
            torn.path.display(),
            torn.offset,
            torn.bytes,
            torn.records
        ));
    }
    let archive = archive_of(&scanned, &walked.position, &walked.void);
    let counts = replay.counts();
    let (position, torn) = (walked.position, walked.torn);
    Ok(Recovered {
        restored: replay.finish(),
        position,
        counts,
        snapshot,
        torn,
        warnings,
        scanned,
        archive,
        snapshots,
    })
}

impl Recovered {
    /// Syncs all recovered files that may still be only in the page cache, because later records
    /// build on them.
    pub(super) fn settle(&self, disk: &Disk, folder: &Path, boot: u128) -> Result<(), Fault> {
        // Files that survived a boot of the machine were on disk, so only those of the current boot
        // are synced.
        for piece in self.scanned.pieces.iter().filter(|piece| piece.header.boot == boot) {
            disk.sync_file(&piece.path).map_err(Fault::io(&piece.path))?;
        }
        // Snapshots are synced before they are renamed, but the rename may not be.
        disk.make_folder(folder).and_then(|()| disk.sync_folder(folder)).map_err(Fault::io(folder))
    }
}

/// Returns the boot id under which the previous process wrote.
pub(crate) fn last_boot(disk: &Disk, folders: &Folders) -> Option<u128> {
    let bytes = disk.read(&folders.boot()).ok()?;
    Some(u128::from_le_bytes(bytes.try_into().ok()?))
}

/// Returns the state of the newest readable snapshot, or an empty state; all snapshots up to that
/// one; and the fault of the first snapshot that was skipped because an earlier version wrote it.
fn newest_state(
    disk: &Disk,
    folders: &Folders,
    owner: &Owner,
    warnings: &mut Vec<String>,
) -> Result<(ShardReplay, Vec<KeptSnapshot>, Option<Fault>), Fault> {
    let mut old = None;
    let (folder, references) = (folders.shard(owner.shard), folders.references());
    let mut seqs = snapshots_in(disk, &folder)?;
    while let Some(seq) = seqs.pop() {
        let read = Snapshot::read(disk, &folder, seq, owner).and_then(|snapshot| {
            let replay = ShardReplay::from_snapshot(disk, &references, &folder, &snapshot)?;
            Ok((replay, snapshot.reference))
        });
        match read {
            Ok((replay, reference)) => {
                let older = seqs.iter().filter_map(|&seq| {
                    let snapshot = Snapshot::read(disk, &folder, seq, owner).ok()?;
                    Some(KeptSnapshot { seq, reference: snapshot.reference })
                });
                let kept = older.chain([KeptSnapshot { seq, reference }]).collect();
                return Ok((replay, kept, old));
            }
            // These faults concern the whole journal, not one file.
            Err(fault @ Fault { what: FaultKind::Shards { .. } | FaultKind::Format(_), .. }) => {
                return Err(fault);
            }
            Err(fault @ Fault { what: FaultKind::OldState(_), .. }) => {
                old.get_or_insert(fault);
            }
            Err(fault) => warnings.push(format!("snapshot skipped: {fault}")),
        }
    }
    Ok((ShardReplay::new(disk, &references, *owner), Vec::new(), old))
}

/// Returns the state of the snapshot before the newest, or of the very beginning, if the segments
/// go back that far.
fn older_state(
    disk: &Disk,
    folders: &Folders,
    owner: &Owner,
    scanned: &JournalScan,
    snapshots: &[KeptSnapshot],
) -> Option<ShardReplay> {
    let (folder, references) = (folders.shard(owner.shard), folders.references());
    let first = scanned.pieces.first()?.header.first;
    let (_newest, older) = snapshots.split_last()?;
    match older.last() {
        Some(kept) if first <= kept.seq + 1 => {
            let snapshot = Snapshot::read(disk, &folder, kept.seq, owner).ok()?;
            ShardReplay::from_snapshot(disk, &references, &folder, &snapshot).ok()
        }
        None if first <= 1 => Some(ShardReplay::new(disk, &references, *owner)),
        Some(_) | None => None,
    }
}

/// Checks that the segments begin where the snapshot ends, or before.
pub(crate) fn check_beginning(folder: &Path, scanned: &JournalScan, snapshot: u64) -> Result<(), Fault> {
    match scanned.pieces.first() {
        Some(piece) if piece.header.first > snapshot + 1 => {
            let first = piece.header.first;
            let what =
                scanned.gap.map_or(FaultKind::NoBeginning { first }, |number| FaultKind::Missing { number });
            Err(Fault::new(&piece.path, 56, what))
        }
        None if snapshot > 0 => Err(Fault::new(folder, 0, FaultKind::Missing { number: scanned.number + 1 })),
        Some(_) | None => Ok(()),
    }
}

/// Returns all segments that count. They are complete, because a new start begins a new segment.
fn archive_of(scanned: &JournalScan, end: &JournalPosition, void: &[std::path::PathBuf]) -> Vec<Archived> {
    let pieces: Vec<&SegmentFile> =
        scanned.pieces.iter().filter(|piece| !void.contains(&piece.path)).collect();
    let last = |at: usize| pieces.get(at + 1).map_or(end.seq, |next: &&SegmentFile| next.header.first - 1);
    let archived = |(at, piece): (usize, &&SegmentFile)| Archived {
        number: piece.header.number,
        first: piece.header.first,
        last: last(at),
        bytes: piece.bytes,
        time: piece.header.time,
        reference: piece.header.reference,
    };
    pieces.iter().enumerate().map(archived).collect()
}

/// A replay that reports its progress.
struct ReportingReplay<'a> {
    replay: ShardReplay,
    at: RecoveryProgress,
    progress: &'a mut dyn FnMut(RecoveryProgress),
}

impl RecordVisitor for ReportingReplay<'_> {
    fn segment(&mut self, piece: &SegmentFile) -> Result<(), Fault> {
        (self.progress)(self.at);
        self.at.bytes_done += piece.bytes;
        self.replay.segment(piece)
    }

    fn record(
        &mut self,
        piece: &SegmentFile,
        offset: usize,
        record: &JournalRecord<'_>,
    ) -> Result<(), Fault> {
        self.replay.record(piece, offset, record)
    }
}
