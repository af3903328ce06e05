//! The reasons why a journal is not accepted: the file, the offset in it, and advice for the
//! operator.

use std::fmt;
use std::io;
use std::path::{Path, PathBuf};

#[derive(Debug)]
pub struct Fault {
    pub file: PathBuf,
    pub offset: u64,
    pub what: What,
}

#[derive(Debug)]
pub enum What {
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
        told: u64,
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
    StateDamaged(String),
    IdentityDamaged,
}

impl Fault {
    pub(crate) fn new(file: &Path, offset: usize, what: What) -> Fault {
        Fault { file: file.to_path_buf(), offset: offset as u64, what }
    }

    pub(crate) fn io(file: &Path) -> impl FnOnce(io::Error) -> Fault {
        move |error| Fault::new(file, 0, What::Io(error))
    }
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} at {}: {}\n  {}", self.file.display(), self.offset, self.what, self.what.advice())
    }
}

impl std::error::Error for Fault {}

impl fmt::Display for What {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            What::Io(error) => write!(f, "{error}"),
            What::Locked => write!(f, "another process has this journal open"),
            What::HeaderDamaged => write!(f, "the segment's header is damaged"),
            What::Format(format) => write!(f, "written in format {format}, which this version does not read"),
            What::Foreign => write!(f, "the segment belongs to another journal or shard"),
            What::Shards { journal, asked } => {
                write!(f, "the journal was written with {journal} shards, and {asked} are configured")
            }
            What::Instance { journal, asked } => {
                write!(f, "the journal is that of instance {journal}, and {asked} is configured")
            }
            What::Missing { number } => write!(f, "it continues segment {number}, which is missing"),
            What::Behind { segment, record, found } => write!(
                f,
                "the journal ends with record {found}, and record {record} was on disk: segment {segment} or its end is missing"
            ),
            What::JournalMissing => {
                write!(f, "there is no journal here, and the notes beside it tell of one")
            }
            What::OldState(format) => write!(
                f,
                "a snapshot of an earlier version, in format {format}, which this version cannot complete; and the journal no longer goes back to its beginning"
            ),
            What::OldRules { seq } => write!(
                f,
                "written by an earlier version, whose rules differ: by this version's rules the state after record {seq} is another than its clients were told"
            ),
            What::Chain { number } => write!(f, "it does not fit to segment {number}, which it continues"),
            What::RecordDamaged { after } => {
                write!(f, "the record after number {after} is damaged, and it was whole once")
            }
            What::RecordUnknown { seq, kind } => {
                write!(f, "record {seq} is of kind {kind}, which this version does not know")
            }
            What::CommandUnknown { seq } => write!(f, "the command in record {seq} cannot be read"),
            What::Digest { seq, told, found } => {
                write!(
                    f,
                    "the state after record {seq} has digest {found:016x}, and {told:016x} was written down"
                )
            }
            What::NoBeginning { first } => {
                write!(f, "the journal begins with record {first}, and no snapshot reaches there")
            }
            What::ReferenceMissing { name } => write!(f, "the reference data {name:016x} are missing"),
            What::ReferenceDamaged => write!(f, "the reference data are not what their name says"),
            What::StateDamaged(words) => write!(f, "{words}"),
            What::IdentityDamaged => write!(f, "the journal's identity cannot be read"),
        }
    }
}

impl What {
    fn advice(&self) -> &'static str {
        match self {
            What::Io(_) => "see whether the disk is well and the folder readable",
            What::Locked => "stop that process, or choose another data folder",
            What::Format(_) | What::RecordUnknown { .. } => "start the version that wrote it",
            What::Shards { .. } => "configure as many shards as before, or begin with an empty data folder",
            What::Instance { .. } => "configure the same instance as before, or choose its data folder",
            What::Digest { .. } => {
                "keep the folder and report it: `pitlane journal replay` shows the state, `pitlane journal dump` the commands"
            }
            What::OldRules { .. } | What::OldState(_) => {
                "start the version that wrote it, cancel the open orders, note positions and cash, and stop it; then begin with an empty data folder and book positions and cash there as transactions. Nothing was changed"
            }
            What::Behind { .. } => {
                "put the missing file back, or restore the folder from a copy. To go on without it, remove `journal/marks`: what the missing records did is then lost. Nothing was changed"
            }
            What::JournalMissing => {
                "put the folder `journal` back, or restore the data folder from a copy; to begin anew, choose an empty data folder. Nothing was changed"
            }
            What::HeaderDamaged
            | What::Foreign
            | What::Missing { .. }
            | What::Chain { .. }
            | What::RecordDamaged { .. }
            | What::CommandUnknown { .. }
            | What::NoBeginning { .. }
            | What::ReferenceMissing { .. }
            | What::ReferenceDamaged
            | What::StateDamaged(_)
            | What::IdentityDamaged => {
                "look at it with `pitlane journal verify`; restore the folder from a copy. Nothing was changed"
            }
        }
    }
}
