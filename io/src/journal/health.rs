//! How a shard's journal is: numbers that its three owners write and everybody may read, each by itself.

use std::fmt;
use std::io;
use std::sync::atomic::{AtomicBool, AtomicU8, AtomicU32, AtomicU64, Ordering};

/// What is promised when something is acknowledged.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Level {
    /// It is on disk, and the broker has it for the standby: survives the loss of this machine.
    Replicated,
    /// It is on disk: survives loss of power.
    Disk,
    /// The operating system has it: survives the end of the process.
    Os,
    /// Nothing. There is no journal.
    None,
}

impl Level {
    /// Whether a command is on disk before it is answered.
    #[inline]
    pub fn is_synced(self) -> bool {
        match self {
            Level::Replicated | Level::Disk => true,
            Level::Os | Level::None => false,
        }
    }
}

impl fmt::Display for Level {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Level::Replicated => "replicated",
            Level::Disk => "disk",
            Level::Os => "os",
            Level::None => "none",
        })
    }
}

/// What the journal takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum WriteMode {
    Open,
    /// No room for another segment. Cancels and control only, until there is.
    Full,
    /// The broker has no room for what the standby needs. Cancels and control only, until it has.
    BrokerFull,
    /// A sync has failed, and what it should have kept was written again elsewhere. Cancels and control only, until the
    /// process is started again.
    Failed,
    /// Nothing can be stored any more.
    Shut,
}

impl fmt::Display for WriteMode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            WriteMode::Open => "open",
            WriteMode::Full => "the disk is full: cancels only",
            WriteMode::BrokerFull => "the broker's storage is full: cancels only",
            WriteMode::Failed => "the disk failed: cancels only, until restart",
            WriteMode::Shut => "the journal cannot be written",
        })
    }
}

/// What the journal was doing when the system said no.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Doing {
    Nothing,
    Reserving,
    Syncing,
    Moving,
    Snapshot,
    Retention,
}

const DOINGS: [Doing; 6] =
    [Doing::Nothing, Doing::Reserving, Doing::Syncing, Doing::Moving, Doing::Snapshot, Doing::Retention];

impl fmt::Display for Doing {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Doing::Nothing => "nothing",
            Doing::Reserving => "reserving room for a segment",
            Doing::Syncing => "syncing a segment",
            Doing::Moving => "moving to another segment after a failed sync",
            Doing::Snapshot => "writing a snapshot",
            Doing::Retention => "removing what is no longer needed",
        })
    }
}

/// Each part has one writer, and cache lines of its own.
#[derive(Debug, Default)]
pub struct Health {
    pub(super) writer: WriterPart,
    pub(super) keeper: SyncerPart,
    pub(super) steward: SegmentManagerPart,
    shipper: ShipperPart,
}

#[derive(Debug, Default)]
#[repr(align(128))]
pub(super) struct WriterPart {
    /// Last record that was written.
    pub appended: AtomicU64,
    /// Bytes of all records of this process.
    pub bytes: AtomicU64,
    pub segment: AtomicU64,
    /// Commands that were not taken.
    pub refused: AtomicU64,
    pub waits: AtomicU64,
}

#[derive(Debug, Default)]
#[repr(align(128))]
pub(super) struct SyncerPart {
    /// Last record that is known to be on disk.
    pub synced: AtomicU64,
    /// Of the bytes of all records, so many at least are on disk.
    pub synced_bytes: AtomicU64,
    /// Syncs that failed: the writer moves on once for each.
    pub faults: AtomicU64,
    pub shut: AtomicBool,
    pub syncs: AtomicU64,
    pub sync_ns_max: AtomicU64,
    pub error: LastError,
}

#[derive(Debug, Default)]
#[repr(align(128))]
pub(super) struct SegmentManagerPart {
    pub full: AtomicBool,
    pub segments: AtomicU64,
    pub segment_bytes: AtomicU64,
    pub snapshots: AtomicU64,
    pub snapshot_seq: AtomicU64,
    pub snapshot_bytes: AtomicU64,
    pub snapshot_at: AtomicU64,
    pub removed: AtomicU64,
    pub error: LastError,
}

#[derive(Debug, Default)]
#[repr(align(128))]
struct ShipperPart {
    /// Last record that the broker has for the standby.
    shipped: AtomicU64,
    /// Whether the broker has no room for more.
    full: AtomicBool,
}

#[derive(Debug, Default)]
pub(super) struct LastError {
    code: AtomicU32,
    doing: AtomicU8,
}

impl LastError {
    pub fn set(&self, doing: Doing, error: &io::Error) {
        // An error without a number of the system's is told as EIO: it comes from us or from std, and hardly ever.
        let eio = rustix::io::Errno::IO.raw_os_error();
        self.code.store(error.raw_os_error().unwrap_or(eio) as u32, Ordering::Relaxed);
        self.doing.store(doing as u8, Ordering::Relaxed);
    }

    fn words(&self) -> Option<String> {
        let code = self.code.load(Ordering::Relaxed);
        let doing = DOINGS[self.doing.load(Ordering::Relaxed) as usize % DOINGS.len()];
        (code != 0).then(|| format!("{doing}: {}", io::Error::from_raw_os_error(code as i32)))
    }
}

/// All of it at about one moment.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Report {
    pub door: WriteMode,
    pub appended: u64,
    pub synced: u64,
    pub bytes: u64,
    pub segment: u64,
    pub refused: u64,
    pub waits: u64,
    pub syncs: u64,
    pub sync_ns_max: u64,
    pub faults: u64,
    pub segments: u64,
    pub segment_bytes: u64,
    pub snapshots: u64,
    pub snapshot_seq: u64,
    pub snapshot_bytes: u64,
    /// When it was written, in nanoseconds since the epoch.
    pub snapshot_at: u64,
    pub removed: u64,
    pub last_error: Option<String>,
}

impl Health {
    /// Last record that was written: all of it can be read from the segments.
    pub fn appended(&self) -> u64 {
        self.writer.appended.load(Ordering::Acquire)
    }

    /// Last record that the broker has for the standby.
    #[inline]
    pub fn shipped(&self) -> u64 {
        self.shipper.shipped.load(Ordering::Acquire)
    }

    /// For whoever ships, and for him alone.
    pub fn set_shipped(&self, seq: u64) {
        self.shipper.shipped.store(seq, Ordering::Release);
    }

    /// Whether the broker has no room for more; from the same thread.
    pub fn set_broker_full(&self, full: bool) {
        self.shipper.full.store(full, Ordering::Relaxed);
    }

    #[inline]
    pub fn door(&self) -> WriteMode {
        if self.keeper.shut.load(Ordering::Relaxed) {
            WriteMode::Shut
        } else if self.keeper.faults.load(Ordering::Relaxed) > 0 {
            WriteMode::Failed
        } else if self.steward.full.load(Ordering::Relaxed) {
            WriteMode::Full
        } else if self.shipper.full.load(Ordering::Relaxed) {
            WriteMode::BrokerFull
        } else {
            WriteMode::Open
        }
    }

    pub fn report(&self) -> Report {
        let get = |number: &AtomicU64| number.load(Ordering::Relaxed);
        let (writer, keeper, steward) = (&self.writer, &self.keeper, &self.steward);
        Report {
            door: self.door(),
            appended: get(&writer.appended),
            synced: get(&keeper.synced),
            bytes: get(&writer.bytes),
            segment: get(&writer.segment),
            refused: get(&writer.refused),
            waits: get(&writer.waits),
            syncs: get(&keeper.syncs),
            sync_ns_max: get(&keeper.sync_ns_max),
            faults: get(&keeper.faults),
            segments: get(&steward.segments),
            segment_bytes: get(&steward.segment_bytes),
            snapshots: get(&steward.snapshots),
            snapshot_seq: get(&steward.snapshot_seq),
            snapshot_bytes: get(&steward.snapshot_bytes),
            snapshot_at: get(&steward.snapshot_at),
            removed: get(&steward.removed),
            last_error: keeper.error.words().or_else(|| steward.error.words()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_worst_state_is_told_first() {
        let health = Health::default();
        assert_eq!(health.door(), WriteMode::Open);
        health.steward.full.store(true, Ordering::Relaxed);
        assert_eq!(health.door(), WriteMode::Full);
        health.keeper.faults.store(1, Ordering::Relaxed);
        assert_eq!(health.door(), WriteMode::Failed);
        health.keeper.shut.store(true, Ordering::Relaxed);
        assert_eq!(health.door(), WriteMode::Shut);
    }

    #[test]
    fn the_last_error_is_told_in_words() {
        let health = Health::default();
        assert_eq!(health.report().last_error, None);
        let error = io::Error::from_raw_os_error(28);
        health.steward.error.set(Doing::Reserving, &error);
        let words = health.report().last_error.unwrap();
        assert!(words.starts_with("reserving room for a segment: "), "{words}");
        for (at, doing) in DOINGS.iter().enumerate() {
            assert_eq!(*doing as usize, at);
        }
    }
}
