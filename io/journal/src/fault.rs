//! The reasons why a journal is not accepted: the file, the offset in it, and advice for the
//! operator.

use std::fmt;
use std::io;
use std::path::{Path, PathBuf};

#[derive(Debug)]
pub struct Fault {
    pub file: PathBuf,
    pub offset: u64,
    pub what: FaultKind,
}

#[derive(Debug)]
pub enum FaultKind {
    /// The system returned an error.
    Io(io::Error),
    /// Another process has the folder locked.
    Locked,
    HeaderDamaged,
    /// The format is one that this version does not read.
    Format(u32),
    /// The file belongs to another journal or another shard.
    Foreign,
    Shards {
        journal: u16,
        asked: u16,
    },
    Instance {
        journal: u64,
        asked: u64,
    },
    /// The segment that this one continues is missing.
    Missing {
        number: u64,
    },
    /// The journal ends before a record that was on disk.
    Behind {
        segment: u64,
        record: u64,
        found: u64,
    },
    /// There are notes of earlier starts, but no journal.
    JournalMissing,
    /// The snapshot is of an earlier version, and its state lacks something.
    OldState(u32),
    /// The journal is of an earlier version, and under the rules of this version its commands give
    /// another state.
    OldRules {
        seq: u64,
    },
    /// The segment does not match the one it continues.
    Chain {
        number: u64,
    },
    /// The record here was intact once: later records show that it was on disk.
    RecordDamaged {
        after: u64,
    },
    /// The record's checksum is correct, but its kind is unknown.
    RecordUnknown {
        seq: u64,
        kind: u8,
    },
    CommandUnknown {
        seq: u64,
    },
    /// Replay gives another state than the recorded digest.
    Digest {
        seq: u64,
        recorded: u64,
        found: u64,
    },
    /// There is no snapshot, and the beginning of the journal is missing too.
    NoBeginning {
        first: u64,
    },
    ReferenceMissing {
        name: u64,
    },
    ReferenceDamaged,
    /// The configured reference data contradict those of the journal.
    ReferenceConflict(String),
    StateDamaged(String),
    IdentityDamaged,
}

impl Fault {
    pub fn new(file: &Path, offset: usize, what: FaultKind) -> Fault {
        Fault { file: file.to_path_buf(), offset: offset as u64, what }
    }

    pub fn io(file: &Path) -> impl FnOnce(io::Error) -> Fault {
        move |error| Fault::new(file, 0, FaultKind::Io(error))
    }
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} at {}: {}\n  {}", self.file.display(), self.offset, self.what, self.what.advice())
    }
}

impl std::error::Error for Fault {}

impl fmt::Display for FaultKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            FaultKind::Io(error) => write!(f, "{error}"),
            FaultKind::Locked => write!(f, "another process has this journal open"),
            FaultKind::HeaderDamaged => write!(f, "the segment's header is damaged"),
            FaultKind::Format(format) => {
                write!(f, "written in format {format}, which this version does not read")
            }
            FaultKind::Foreign => write!(f, "the segment belongs to another journal or shard"),
            FaultKind::Shards { journal, asked } => {
                write!(f, "the journal was written with {journal} shards, and {asked} are configured")
            }
            FaultKind::Instance { journal, asked } => {
                write!(f, "the journal is that of instance {journal}, and {asked} is configured")
            }
            FaultKind::Missing { number } => write!(f, "it continues segment {number}, which is missing"),
            FaultKind::Behind { segment, record, found } => write!(
                f,
                "the journal ends with record {found}, and record {record} was on disk: segment {segment} or its end is missing"
            ),
            FaultKind::JournalMissing => {
                write!(f, "there is no journal here, but the notes beside it belong to one")
            }
            FaultKind::OldState(format) => write!(
                f,
                "a snapshot of an earlier version, in format {format}, which this version cannot complete; and the journal no longer goes back to its beginning"
            ),
            FaultKind::OldRules { seq } => write!(
                f,
                "written by an earlier version, whose rules differ: by this version's rules the state after record {seq} is not the one that was reported to clients"
            ),
            FaultKind::Chain { number } => {
                write!(f, "it does not fit to segment {number}, which it continues")
            }
            FaultKind::RecordDamaged { after } => {
                write!(f, "the record after number {after} is damaged, and it was whole once")
            }
            FaultKind::RecordUnknown { seq, kind } => {
                write!(f, "record {seq} is of kind {kind}, which this version does not know")
            }
            FaultKind::CommandUnknown { seq } => write!(f, "the command in record {seq} cannot be read"),
            FaultKind::Digest { seq, recorded, found } => {
                write!(
                    f,
                    "the state after record {seq} has digest {found:016x}, and the journal records {recorded:016x}"
                )
            }
            FaultKind::NoBeginning { first } => {
                write!(f, "the journal begins with record {first}, and no snapshot reaches there")
            }
            FaultKind::ReferenceMissing { name } => write!(f, "the reference data {name:016x} are missing"),
            FaultKind::ReferenceDamaged => write!(f, "the reference data are not what their name says"),
            FaultKind::ReferenceConflict(text) => {
                write!(f, "the configured reference data do not fit those of the journal: {text}")
            }
            FaultKind::StateDamaged(text) => write!(f, "{text}"),
            FaultKind::IdentityDamaged => write!(f, "the journal's identity cannot be read"),
        }
    }
}

impl FaultKind {
    fn advice(&self) -> &'static str {
        match self {
            FaultKind::Io(error) => io_advice(error),
            FaultKind::ReferenceConflict(_) => {
                "set refdata.dir (--set refdata.dir=DIR) to the folder that this journal was written with, or choose another data folder (--data DIR). Nothing was changed"
            }
            FaultKind::Locked => "stop that process, or choose another data folder",
            FaultKind::Format(_) | FaultKind::RecordUnknown { .. } => "start the version that wrote it",
            FaultKind::Shards { .. } => {
                "configure as many shards as before, or begin with an empty data folder"
            }
            FaultKind::Instance { .. } => "configure the same instance as before, or choose its data folder",
            FaultKind::Digest { .. } => {
                "keep the folder and report it: `pitlane journal replay` shows the state, `pitlane journal dump` the commands"
            }
            FaultKind::OldRules { .. } | FaultKind::OldState(_) => {
                "start the version that wrote it, cancel the open orders, note positions and cash, and stop it; then begin with an empty data folder and book positions and cash there as transactions. Nothing was changed"
            }
            FaultKind::Behind { .. } => {
                "put the missing file back, or restore the folder from a copy. To go on without it, remove `journal/marks`: what the missing records did is then lost. Nothing was changed"
            }
            FaultKind::JournalMissing => {
                "put the folder `journal` back, or restore the data folder from a copy; to start without it, choose an empty data folder. Nothing was changed"
            }
            FaultKind::HeaderDamaged
            | FaultKind::Foreign
            | FaultKind::Missing { .. }
            | FaultKind::Chain { .. }
            | FaultKind::RecordDamaged { .. }
            | FaultKind::CommandUnknown { .. }
            | FaultKind::NoBeginning { .. }
            | FaultKind::ReferenceMissing { .. }
            | FaultKind::ReferenceDamaged
            | FaultKind::StateDamaged(_)
            | FaultKind::IdentityDamaged => {
                "check it with `pitlane journal verify`; restore the folder from a copy. Nothing was changed"
            }
        }
    }
}

/// Returns advice about an error of the system.
#[expect(clippy::wildcard_enum_match_arm, reason = "the kinds of the standard library grow")]
pub fn io_advice(error: &io::Error) -> &'static str {
    match error.kind() {
        io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => {
            "the file system is full, or a quota is used up: make room (`df -h` shows where), or choose a data folder on another file system (--data DIR); smaller journal.segment_bytes need less. Nothing that was acknowledged is lost"
        }
        io::ErrorKind::PermissionDenied => {
            "give the user of this process the right to read and write the folder and its files"
        }
        io::ErrorKind::ReadOnlyFilesystem => {
            "the file system is mounted read-only: the kernel log (`dmesg`) says whether it had errors"
        }
        _ => "check whether the disk works and the folder is readable",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn advice_fits_the_error_of_the_system() {
        for (kind, advice) in [
            (io::ErrorKind::StorageFull, "make room"),
            (io::ErrorKind::QuotaExceeded, "make room"),
            (io::ErrorKind::PermissionDenied, "the right to read and write"),
            (io::ErrorKind::ReadOnlyFilesystem, "mounted read-only"),
            (io::ErrorKind::InvalidData, "whether the disk works"),
        ] {
            let text = Fault::io(Path::new("data/journal"))(kind.into()).to_string();
            assert!(text.contains(advice), "{text}");
        }
    }
}
