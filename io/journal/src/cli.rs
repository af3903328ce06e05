//! Inspects a journal: `pitlane journal dump`, `verify` and `replay`. None of them changes
//! anything. Each may read a journal that is being written; its end then looks torn.

use std::fmt;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::time::Instant;

use pitlane_engine::codec;
use pitlane_engine::command::Scope;
use pitlane_engine::time::Timestamp;
use xxhash_rust::xxh3::xxh3_64;

use super::disk::Disk;
use super::fault::Fault;
use super::header::Owner;
use super::mark::DiskMark;
use super::record::{JournalRecord, kind};
use super::recovery::{check_beginning, last_boot, recover};
use super::replay::{ShardReplay, decode_start};
use super::scan::{self, JournalScan, RecordVisitor, SegmentFile};
use super::snapshot::{Snapshot, snapshots_in};
use super::{Folders, read_identity};

#[derive(Debug)]
pub enum JournalCliError {
    /// There is no journal here.
    Nothing(PathBuf),
    NoShard {
        asked: u16,
        shards: u16,
    },
    Fault(Fault),
    /// The output cannot be written, for example because the reader closed the pipe.
    Output(io::Error),
}

impl fmt::Display for JournalCliError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            JournalCliError::Nothing(path) => write!(f, "there is no journal in {}", path.display()),
            JournalCliError::NoShard { asked, shards } => {
                write!(f, "there is no shard {asked}: the journal has shards 0 to {}", shards - 1)
            }
            JournalCliError::Fault(fault) => write!(f, "{fault}"),
            JournalCliError::Output(error) => write!(f, "{error}"),
        }
    }
}

impl std::error::Error for JournalCliError {}

impl From<Fault> for JournalCliError {
    fn from(fault: Fault) -> JournalCliError {
        JournalCliError::Fault(fault)
    }
}

impl From<io::Error> for JournalCliError {
    fn from(error: io::Error) -> JournalCliError {
        JournalCliError::Output(error)
    }
}

/// The part of a journal to process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RecordRange {
    /// Shard to process; `None` for all.
    pub shard: Option<u16>,
    /// First and last record.
    pub from: u64,
    pub to: u64,
    /// Maximum number of lines.
    pub limit: u64,
}

impl Default for RecordRange {
    fn default() -> RecordRange {
        RecordRange { shard: None, from: 0, to: u64::MAX, limit: u64::MAX }
    }
}

/// Prints one line for each record, `segment:offset sequence time kind what`, and returns the
/// number of lines.
pub fn dump(
    disk: &Disk,
    data: &Path,
    part: &RecordRange,
    out: &mut impl Write,
) -> Result<u64, JournalCliError> {
    let mut lines = 0;
    for owner in owners(disk, data, part)? {
        let scanned = survey(disk, &Folders::new(data), &owner)?;
        let mut dump =
            Dump { shard: owner.shard, part, out, lines: 0, left: part.limit - lines, broken: None };
        let from = scanned.index_of(part.from.saturating_sub(1));
        let walked = scan::walk(disk, &scanned, from, disk.boot(), &mut dump);
        let (written, broken) = (dump.lines, dump.broken);
        lines += written;
        if let Some(error) = broken {
            return Err(JournalCliError::Output(error));
        }
        if let Some(torn) = walked?.torn {
            writeln!(out, "# {} at {}: the end is torn, or being written", torn.path.display(), torn.offset)?;
        }
    }
    Ok(lines)
}

/// The result of a check.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Verified {
    pub records: u64,
    pub segments: u64,
    pub snapshots: u64,
    pub digests: u64,
    /// Findings that do not prevent a start.
    pub warnings: u64,
    /// Findings that prevent a start.
    pub faults: u64,
}

/// Checks every checksum, every link and every snapshot, and that replay gives each recorded
/// digest.
pub fn verify(
    disk: &Disk,
    data: &Path,
    part: &RecordRange,
    out: &mut impl Write,
) -> Result<Verified, JournalCliError> {
    let folders = Folders::new(data);
    let mut all = Verified::default();
    for owner in owners(disk, data, part)? {
        match verify_shard(disk, &folders, &owner, &mut all, out) {
            Ok(()) => {}
            Err(JournalCliError::Fault(fault)) => {
                all.faults += 1;
                writeln!(out, "shard {}: {fault}", owner.shard)?;
            }
            Err(other) => return Err(other),
        }
    }
    let text = if all.faults == 0 { "sound" } else { "NOT SOUND" };
    writeln!(
        out,
        "{text}: {} records in {} segments, {} snapshots, {} digests checked, {} warnings, {} faults",
        all.records, all.segments, all.snapshots, all.digests, all.warnings, all.faults
    )?;
    Ok(all)
}

fn verify_shard(
    disk: &Disk,
    folders: &Folders,
    owner: &Owner,
    all: &mut Verified,
    out: &mut impl Write,
) -> Result<(), JournalCliError> {
    let folder = folders.shard(owner.shard);
    let mut mark_warnings = Vec::new();
    let mark = DiskMark::read(disk, folders, owner, &mut mark_warnings)?;
    let scanned = survey(disk, folders, owner)?;
    for warning in mark_warnings {
        all.warnings += 1;
        writeln!(out, "shard {}: {warning}", owner.shard)?;
    }
    for path in &scanned.void {
        all.warnings += 1;
        writeln!(
            out,
            "shard {}: {} is no longer used: a later segment or a snapshot replaces it",
            owner.shard,
            path.display()
        )?;
    }
    let mut snapshots = Vec::new();
    for seq in snapshots_in(disk, &folder)? {
        match Snapshot::read(disk, &folder, seq, owner) {
            Ok(snapshot) => snapshots.push(snapshot),
            Err(fault) => {
                all.warnings += 1;
                writeln!(out, "shard {}: {fault}", owner.shard)?;
            }
        }
    }
    all.snapshots += snapshots.len() as u64;
    // Replays from the beginning if it still exists, otherwise from the oldest snapshot; the replay
    // must then match every other snapshot exactly.
    let references = folders.references();
    let whole = scanned.first().is_none_or(|first| first == 1);
    let replay = match (whole, snapshots.first()) {
        (false, Some(oldest)) => ShardReplay::from_snapshot(disk, &references, &folder, oldest)?,
        _ => ShardReplay::new(disk, &references, *owner),
    };
    check_beginning(&folder, &scanned, replay.seq())?;
    let mut check = SnapshotCheck { replay, snapshots, records: 0, matched: 0 };
    check.match_snapshot()?;
    let walked = scan::walk(disk, &scanned, 0, disk.boot(), &mut check);
    all.records += check.records;
    let counts = check.replay.counts();
    all.segments += counts.segments;
    all.digests += counts.digests + check.matched;
    let walked = walked?;
    mark.map_or(Ok(()), |mark| mark.check(folders, owner, &walked.position))?;
    if let Some(torn) = walked.torn {
        all.warnings += 1;
        let (path, at) = (torn.path.display(), torn.offset);
        writeln!(out, "shard {}: {path} at {at}: the end is torn, or being written", owner.shard)?;
    }
    if let Some(shard) = check.replay.shard() {
        shard.assert_consistent();
    }
    writeln!(out, "shard {}: {} records up to {}", owner.shard, check.records, check.replay.seq())?;
    Ok(())
}

/// The result of a replay of all selected shards.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Replayed {
    pub commands: u64,
    pub open_orders: u64,
    /// Combined digest of all shards.
    pub digest: u64,
}

/// Rebuilds the state as a start would, or up to a record, and prints it.
pub fn replay(
    disk: &Disk,
    data: &Path,
    part: &RecordRange,
    out: &mut impl Write,
) -> Result<Replayed, JournalCliError> {
    let folders = Folders::new(data);
    let mut all = Replayed::default();
    for owner in owners(disk, data, part)? {
        let begun = Instant::now();
        let replay = match part.to {
            u64::MAX => None,
            to => Some(replay_to(disk, &folders, &owner, to)?),
        };
        let (restored, counts, snapshot) = match replay {
            Some(replay) => {
                let counts = replay.counts();
                (replay.finish(), counts, None)
            }
            None => {
                let found = recover(
                    disk,
                    &folders,
                    &owner,
                    disk.boot(),
                    super::EventReceivers::default(),
                    &mut |_| {},
                )?;
                for warning in &found.warnings {
                    writeln!(out, "shard {}: {warning}", owner.shard)?;
                }
                (found.restored, found.counts, found.snapshot)
            }
        };
        let seconds = begun.elapsed().as_secs_f64();
        let Some(restored) = restored else {
            writeln!(out, "shard {}: nothing was ever written", owner.shard)?;
            continue;
        };
        let mut state = Vec::new();
        restored.shard.save(&mut state);
        let (digest, open) = (restored.shard.digest(), restored.shard.open_orders(Scope::Global));
        let from = snapshot.map_or("the beginning".to_string(), |seq| format!("the snapshot of {seq}"));
        writeln!(
            out,
            "shard {}: record {} at {}, digest {digest:016x}, hash {:016x} of {} bytes, {open} open orders, {} events",
            owner.shard,
            restored.seq,
            restored.time,
            xxh3_64(&state),
            state.len(),
            restored.event
        )?;
        writeln!(
            out,
            "  from {from}: {} commands and {} starts in {} segments, {} digests checked, {seconds:.3} s, {:.0} commands/s; reference data {:016x}",
            counts.commands,
            counts.starts,
            counts.segments,
            counts.digests,
            counts.commands as f64 / seconds.max(1e-9),
            restored.reference
        )?;
        all.commands += counts.commands;
        all.open_orders += open as u64;
        all.digest = all.digest.rotate_left(1) ^ digest;
    }
    Ok(all)
}

/// Replays from the newest snapshot that is not beyond `to`, or from the beginning.
fn replay_to(disk: &Disk, folders: &Folders, owner: &Owner, to: u64) -> Result<ShardReplay, JournalCliError> {
    let (folder, references) = (folders.shard(owner.shard), folders.references());
    let scanned = survey(disk, folders, owner)?;
    let mut seqs = snapshots_in(disk, &folder)?;
    seqs.retain(|&seq| seq <= to);
    let replay = match seqs.last() {
        Some(&seq) => {
            let snapshot = Snapshot::read(disk, &folder, seq, owner)?;
            ShardReplay::from_snapshot(disk, &references, &folder, &snapshot)?
        }
        None => ShardReplay::new(disk, &references, *owner),
    };
    let from = scanned.index_of(replay.seq());
    let mut bounded = BoundedReplay { replay, to };
    scan::walk(disk, &scanned, from, disk.boot(), &mut bounded)?;
    Ok(bounded.replay)
}

pub(super) fn survey(disk: &Disk, folders: &Folders, owner: &Owner) -> Result<JournalScan, Fault> {
    let rebooted = last_boot(disk, folders) != Some(disk.boot());
    scan::survey(disk, &folders.shard(owner.shard), owner, rebooted)
}

pub(super) fn owners(disk: &Disk, data: &Path, part: &RecordRange) -> Result<Vec<Owner>, JournalCliError> {
    let folders = Folders::new(data);
    let Some(identity) = read_identity(disk, &folders)? else {
        return Err(JournalCliError::Nothing(folders.journal()));
    };
    let shards = identity.shards;
    if let Some(asked) = part.shard.filter(|&asked| asked >= shards) {
        return Err(JournalCliError::NoShard { asked, shards });
    }
    let wanted = (0..shards).filter(|&shard| part.shard.is_none_or(|asked| asked == shard));
    Ok(wanted.map(|shard| Owner { identity: identity.identity, shard, shards }).collect())
}

struct Dump<'a, W: Write> {
    shard: u16,
    part: &'a RecordRange,
    out: &'a mut W,
    lines: u64,
    left: u64,
    broken: Option<io::Error>,
}

impl<W: Write> RecordVisitor for Dump<'_, W> {
    fn segment(&mut self, _piece: &SegmentFile) -> Result<(), Fault> {
        Ok(())
    }

    fn record(
        &mut self,
        piece: &SegmentFile,
        offset: usize,
        record: &JournalRecord<'_>,
    ) -> Result<(), Fault> {
        let wanted = (self.part.from..=self.part.to).contains(&record.seq);
        if !wanted || self.lines >= self.left || self.broken.is_some() {
            return Ok(());
        }
        let (shard, number, time) = (self.shard, piece.header.number, Timestamp(record.time));
        let line = writeln!(self.out, "{shard}/{number}:{offset} {} {time} {}", record.seq, text(record));
        self.broken = line.err();
        self.lines += 1;
        Ok(())
    }
}

/// Describes a record in words.
fn text(record: &JournalRecord<'_>) -> String {
    match record.kind {
        kind::COMMAND => match codec::decode_command(record.payload) {
            Ok(command) => format!(
                "command {:?} from {:?} port {} session {} token {} sender {}",
                command.body,
                command.source.origin,
                command.source.port.0,
                command.source.session,
                command.token,
                command.sender.0
            ),
            Err(damage) => format!("command that cannot be read: {damage}"),
        },
        kind::START => match decode_start(record.payload) {
            Some((reference, settings)) => {
                format!("start with reference data {reference:016x} and {} bytes of settings", settings.len())
            }
            None => "start in another format".to_string(),
        },
        other => format!("kind {other}, {} bytes", record.payload.len()),
    }
}

/// A replay that must match every snapshot it passes.
struct SnapshotCheck {
    replay: ShardReplay,
    /// Snapshots still to be compared, oldest first.
    snapshots: Vec<Snapshot>,
    records: u64,
    matched: u64,
}

impl SnapshotCheck {
    /// Compares the state with the snapshot of this record, if there is one.
    fn match_snapshot(&mut self) -> Result<(), Fault> {
        let seq = self.replay.seq();
        while self.snapshots.first().is_some_and(|snapshot| snapshot.seq <= seq) {
            let snapshot = self.snapshots.remove(0);
            if snapshot.seq == seq {
                self.replay.check(&snapshot)?;
                self.matched += 1;
            }
        }
        Ok(())
    }
}

impl RecordVisitor for SnapshotCheck {
    fn segment(&mut self, piece: &SegmentFile) -> Result<(), Fault> {
        self.replay.segment(piece)
    }

    fn record(
        &mut self,
        piece: &SegmentFile,
        offset: usize,
        record: &JournalRecord<'_>,
    ) -> Result<(), Fault> {
        self.records += 1;
        self.replay.record(piece, offset, record)?;
        self.match_snapshot()
    }
}

/// A replay that ends early.
struct BoundedReplay {
    replay: ShardReplay,
    to: u64,
}

impl RecordVisitor for BoundedReplay {
    fn segment(&mut self, piece: &SegmentFile) -> Result<(), Fault> {
        self.replay.segment(piece)
    }

    fn record(
        &mut self,
        piece: &SegmentFile,
        offset: usize,
        record: &JournalRecord<'_>,
    ) -> Result<(), Fault> {
        if record.seq > self.to { Ok(()) } else { self.replay.record(piece, offset, record) }
    }
}
