//! Looking into a journal: `pitlane journal dump`, `verify` and `replay`. None of them changes anything, and each may look
//! at a journal that is being written; its end then looks torn.

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
use super::mark::Mark;
use super::record::{Record, kind};
use super::recovery::{check_beginning, last_boot, recover};
use super::replay::{Replay, decode_start};
use super::scan::{self, Hear, JournalScan, Piece};
use super::snapshot::{Snapshot, snapshots_in};
use super::{Folders, read_identity};

#[derive(Debug)]
pub enum VerbError {
    /// There is no journal here.
    Nothing(PathBuf),
    NoShard {
        asked: u16,
        shards: u16,
    },
    Fault(Fault),
    /// Whoever reads us does not.
    Output(io::Error),
}

impl fmt::Display for VerbError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            VerbError::Nothing(path) => write!(f, "there is no journal in {}", path.display()),
            VerbError::NoShard { asked, shards } => {
                write!(f, "there is no shard {asked}: the journal has shards 0 to {}", shards - 1)
            }
            VerbError::Fault(fault) => write!(f, "{fault}"),
            VerbError::Output(error) => write!(f, "{error}"),
        }
    }
}

impl std::error::Error for VerbError {}

impl From<Fault> for VerbError {
    fn from(fault: Fault) -> VerbError {
        VerbError::Fault(fault)
    }
}

impl From<io::Error> for VerbError {
    fn from(error: io::Error) -> VerbError {
        VerbError::Output(error)
    }
}

/// What part of a journal is meant.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Part {
    /// None: all of them.
    pub shard: Option<u16>,
    /// First and last record.
    pub from: u64,
    pub to: u64,
    /// Lines at most.
    pub limit: u64,
}

impl Default for Part {
    fn default() -> Part {
        Part { shard: None, from: 0, to: u64::MAX, limit: u64::MAX }
    }
}

/// Prints one line for each record, `segment:offset sequence time kind what`, and answers with their number.
pub fn dump(disk: &Disk, data: &Path, part: &Part, out: &mut impl Write) -> Result<u64, VerbError> {
    let mut lines = 0;
    for owner in owners(disk, data, part)? {
        let trail = survey(disk, &Folders::new(data), &owner)?;
        let mut dump =
            Dump { shard: owner.shard, part, out, lines: 0, left: part.limit - lines, broken: None };
        let from = trail.place_of(part.from.saturating_sub(1));
        let walked = scan::walk(disk, &trail, from, disk.boot(), &mut dump);
        let (written, broken) = (dump.lines, dump.broken);
        lines += written;
        if let Some(error) = broken {
            return Err(VerbError::Output(error));
        }
        if let Some(torn) = walked?.torn {
            writeln!(out, "# {} at {}: the end is torn, or being written", torn.path.display(), torn.offset)?;
        }
    }
    Ok(lines)
}

/// What a check found.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Verified {
    pub records: u64,
    pub segments: u64,
    pub snapshots: u64,
    pub digests: u64,
    /// Things to know that do not stop a start.
    pub warnings: u64,
    /// Things that do.
    pub faults: u64,
}

/// Checks everything: every sum, every link, every snapshot, and that replay gives each digest that was written down.
pub fn verify(disk: &Disk, data: &Path, part: &Part, out: &mut impl Write) -> Result<Verified, VerbError> {
    let folders = Folders::new(data);
    let mut all = Verified::default();
    for owner in owners(disk, data, part)? {
        match verify_shard(disk, &folders, &owner, &mut all, out) {
            Ok(()) => {}
            Err(VerbError::Fault(fault)) => {
                all.faults += 1;
                writeln!(out, "shard {}: {fault}", owner.shard)?;
            }
            Err(other) => return Err(other),
        }
    }
    let words = if all.faults == 0 { "sound" } else { "NOT SOUND" };
    writeln!(
        out,
        "{words}: {} records in {} segments, {} snapshots, {} digests checked, {} warnings, {} faults",
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
) -> Result<(), VerbError> {
    let folder = folders.shard(owner.shard);
    let mut doubts = Vec::new();
    let mark = Mark::read(disk, folders, owner, &mut doubts)?;
    let trail = survey(disk, folders, owner)?;
    for doubt in doubts {
        all.warnings += 1;
        writeln!(out, "shard {}: {doubt}", owner.shard)?;
    }
    for path in &trail.void {
        all.warnings += 1;
        writeln!(
            out,
            "shard {}: {} counts no more: a later segment or a snapshot stands for it",
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
    // From the beginning if it is still there, else from the oldest snapshot; the others must then be met exactly.
    let references = folders.references();
    let whole = trail.first().is_none_or(|first| first == 1);
    let replay = match (whole, snapshots.first()) {
        (false, Some(oldest)) => Replay::from_snapshot(disk, &references, &folder, oldest)?,
        _ => Replay::new(disk, &references, *owner),
    };
    check_beginning(&folder, &trail, replay.seq())?;
    let mut check = Check { replay, snapshots, records: 0, met: 0 };
    check.meet()?;
    let walked = scan::walk(disk, &trail, 0, disk.boot(), &mut check);
    all.records += check.records;
    let counts = check.replay.counts();
    all.segments += counts.segments;
    all.digests += counts.digests + check.met;
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

/// What a replay gave, for all shards asked for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Replayed {
    pub commands: u64,
    pub open_orders: u64,
    /// The digests of all shards, one into the other.
    pub digest: u64,
}

/// Rebuilds the state as a start would, or up to a record, and prints what it is.
pub fn replay(disk: &Disk, data: &Path, part: &Part, out: &mut impl Write) -> Result<Replayed, VerbError> {
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
                let found =
                    recover(disk, &folders, &owner, disk.boot(), super::Unheard::default(), &mut |_| {})?;
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

/// From the newest snapshot that is not beyond, or from the beginning.
fn replay_to(disk: &Disk, folders: &Folders, owner: &Owner, to: u64) -> Result<Replay, VerbError> {
    let (folder, references) = (folders.shard(owner.shard), folders.references());
    let trail = survey(disk, folders, owner)?;
    let mut seqs = snapshots_in(disk, &folder)?;
    seqs.retain(|&seq| seq <= to);
    let replay = match seqs.last() {
        Some(&seq) => {
            let snapshot = Snapshot::read(disk, &folder, seq, owner)?;
            Replay::from_snapshot(disk, &references, &folder, &snapshot)?
        }
        None => Replay::new(disk, &references, *owner),
    };
    let from = trail.place_of(replay.seq());
    let mut upto = Upto { replay, to };
    scan::walk(disk, &trail, from, disk.boot(), &mut upto)?;
    Ok(upto.replay)
}

pub(super) fn survey(disk: &Disk, folders: &Folders, owner: &Owner) -> Result<JournalScan, Fault> {
    let rebooted = last_boot(disk, folders) != Some(disk.boot());
    scan::survey(disk, &folders.shard(owner.shard), owner, rebooted)
}

pub(super) fn owners(disk: &Disk, data: &Path, part: &Part) -> Result<Vec<Owner>, VerbError> {
    let folders = Folders::new(data);
    let Some(identity) = read_identity(disk, &folders)? else {
        return Err(VerbError::Nothing(folders.journal()));
    };
    let shards = identity.shards;
    if let Some(asked) = part.shard.filter(|&asked| asked >= shards) {
        return Err(VerbError::NoShard { asked, shards });
    }
    let wanted = (0..shards).filter(|&shard| part.shard.is_none_or(|asked| asked == shard));
    Ok(wanted.map(|shard| Owner { identity: identity.identity, shard, shards }).collect())
}

struct Dump<'a, W: Write> {
    shard: u16,
    part: &'a Part,
    out: &'a mut W,
    lines: u64,
    left: u64,
    broken: Option<io::Error>,
}

impl<W: Write> Hear for Dump<'_, W> {
    fn segment(&mut self, _piece: &Piece) -> Result<(), Fault> {
        Ok(())
    }

    fn record(&mut self, piece: &Piece, offset: usize, record: &Record<'_>) -> Result<(), Fault> {
        let wanted = (self.part.from..=self.part.to).contains(&record.seq);
        if !wanted || self.lines >= self.left || self.broken.is_some() {
            return Ok(());
        }
        let (shard, number, time) = (self.shard, piece.header.number, Timestamp(record.time));
        let line = writeln!(self.out, "{shard}/{number}:{offset} {} {time} {}", record.seq, words(record));
        self.broken = line.err();
        self.lines += 1;
        Ok(())
    }
}

/// A record in words.
fn words(record: &Record<'_>) -> String {
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

/// A replay that must meet every snapshot on its way.
struct Check {
    replay: Replay,
    /// Oldest first.
    snapshots: Vec<Snapshot>,
    records: u64,
    met: u64,
}

impl Check {
    /// Compares with the snapshot of this record, if there is one.
    fn meet(&mut self) -> Result<(), Fault> {
        let seq = self.replay.seq();
        while self.snapshots.first().is_some_and(|snapshot| snapshot.seq <= seq) {
            let snapshot = self.snapshots.remove(0);
            if snapshot.seq == seq {
                self.replay.check(&snapshot)?;
                self.met += 1;
            }
        }
        Ok(())
    }
}

impl Hear for Check {
    fn segment(&mut self, piece: &Piece) -> Result<(), Fault> {
        self.replay.segment(piece)
    }

    fn record(&mut self, piece: &Piece, offset: usize, record: &Record<'_>) -> Result<(), Fault> {
        self.records += 1;
        self.replay.record(piece, offset, record)?;
        self.meet()
    }
}

/// A replay that ends early.
struct Upto {
    replay: Replay,
    to: u64,
}

impl Hear for Upto {
    fn segment(&mut self, piece: &Piece) -> Result<(), Fault> {
        self.replay.segment(piece)
    }

    fn record(&mut self, piece: &Piece, offset: usize, record: &Record<'_>) -> Result<(), Fault> {
        if record.seq > self.to { Ok(()) } else { self.replay.record(piece, offset, record) }
    }
}
