//! Health of a shard's journal: atomic counters that the three owners write and any thread may
//! read, each independently.

use std::fmt;
use std::io;
use std::sync::atomic::{AtomicBool, AtomicU8, AtomicU32, AtomicU64, Ordering};

/// The guarantee that an acknowledgement gives.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Level {
    /// The record is on disk, and the broker has it for the standby: it survives the loss of this
    /// machine.
    Replicated,
    /// The record is on disk: it survives a loss of power.
    Disk,
    /// The operating system has the record: it survives the end of the process.
    Os,
    /// No guarantee: there is no journal.
    None,
}

impl Level {
    /// Returns whether a command is on disk before it is answered.
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

/// Which records the journal accepts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum WriteMode {
    Open,
    /// No space for another segment. Only cancels, reports and control are accepted, until there is
    /// space.
    Full,
    /// The broker has no space for the standby's data. Only cancels, reports and control are
    /// accepted, until it has.
    BrokerFull,
    /// A sync failed, and its records were written again to another segment. Only cancels, reports
    /// and control are accepted, until the process restarts.
    Failed,
    /// No record can be stored any more.
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

/// The operation that the journal was performing when the system returned an error.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum DiskOperation {
    Nothing,
    Reserving,
    Syncing,
    Moving,
    Snapshot,
    Retention,
}

const OPERATIONS: [DiskOperation; 6] = [
    DiskOperation::Nothing,
    DiskOperation::Reserving,
    DiskOperation::Syncing,
    DiskOperation::Moving,
    DiskOperation::Snapshot,
    DiskOperation::Retention,
];

impl fmt::Display for DiskOperation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            DiskOperation::Nothing => "nothing",
            DiskOperation::Reserving => "reserving space for a segment",
            DiskOperation::Syncing => "syncing a segment",
            DiskOperation::Moving => "moving to another segment after a failed sync",
            DiskOperation::Snapshot => "writing a snapshot",
            DiskOperation::Retention => "removing what is no longer needed",
        })
    }
}

/// The parts of the health; each has one writer and its own cache lines.
#[derive(Debug, Default)]
pub struct Health {
    pub(super) writer: WriterPart,
    pub(super) syncer: SyncerPart,
    pub(super) segment_manager: SegmentManagerPart,
    shipper: ShipperPart,
}

#[derive(Debug, Default)]
#[repr(align(128))]
pub(super) struct WriterPart {
    /// Last record written.
    pub appended: AtomicU64,
    /// Bytes of all records of this process.
    pub bytes: AtomicU64,
    pub segment: AtomicU64,
    /// Commands that were refused.
    pub refused: AtomicU64,
    pub waits: AtomicU64,
}

#[derive(Debug, Default)]
#[repr(align(128))]
pub(super) struct SyncerPart {
    /// Last record known to be on disk.
    pub synced: AtomicU64,
    /// Bytes of records known to be on disk, as a lower bound.
    pub synced_bytes: AtomicU64,
    /// Number of failed syncs. The writer moves to a fresh segment once for each.
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
    /// Whether the broker has no space for more.
    full: AtomicBool,
}

#[derive(Debug, Default)]
pub(super) struct LastError {
    code: AtomicU32,
    operation: AtomicU8,
}

impl LastError {
    pub(crate) fn set(&self, operation: DiskOperation, error: &io::Error) {
        // An error without an OS error code is reported as EIO. It comes from this program or from
        // std, and is rare.
        let eio = rustix::io::Errno::IO.raw_os_error();
        self.code.store(error.raw_os_error().unwrap_or(eio) as u32, Ordering::Relaxed);
        self.operation.store(operation as u8, Ordering::Relaxed);
    }

    /// Returns the error, with the operation in its text.
    pub(crate) fn error(&self) -> Option<io::Error> {
        let code = self.code.load(Ordering::Relaxed);
        let operation = OPERATIONS[self.operation.load(Ordering::Relaxed) as usize % OPERATIONS.len()];
        let error = io::Error::from_raw_os_error(code as i32);
        (code != 0).then(|| io::Error::new(error.kind(), format!("{operation}: {error}")))
    }
}

/// The health at approximately one moment.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct JournalReport {
    pub write_mode: WriteMode,
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
    /// Time at which the snapshot was written, in nanoseconds since the epoch.
    pub snapshot_at: u64,
    pub removed: u64,
    pub last_error: Option<String>,
}

impl Health {
    /// Returns the last record written. All records up to it can be read from the segments.
    pub fn appended(&self) -> u64 {
        self.writer.appended.load(Ordering::Acquire)
    }

    /// Returns the last error of the disk, of the syncer first.
    pub(crate) fn last_error(&self) -> Option<io::Error> {
        self.syncer.error.error().or_else(|| self.segment_manager.error.error())
    }

    /// Returns the last record that the broker has for the standby.
    #[inline]
    pub fn shipped(&self) -> u64 {
        self.shipper.shipped.load(Ordering::Acquire)
    }

    /// Sets the last shipped record. Only the shipper's thread may call this.
    pub fn set_shipped(&self, seq: u64) {
        self.shipper.shipped.store(seq, Ordering::Release);
    }

    /// Sets whether the broker has no space for more. Only the shipper's thread may call this.
    pub fn set_broker_full(&self, full: bool) {
        self.shipper.full.store(full, Ordering::Relaxed);
    }

    #[inline]
    pub fn write_mode(&self) -> WriteMode {
        if self.syncer.shut.load(Ordering::Relaxed) {
            WriteMode::Shut
        } else if self.syncer.faults.load(Ordering::Relaxed) > 0 {
            WriteMode::Failed
        } else if self.segment_manager.full.load(Ordering::Relaxed) {
            WriteMode::Full
        } else if self.shipper.full.load(Ordering::Relaxed) {
            WriteMode::BrokerFull
        } else {
            WriteMode::Open
        }
    }

    pub fn report(&self) -> JournalReport {
        let get = |number: &AtomicU64| number.load(Ordering::Relaxed);
        let (writer, syncer, segment_manager) = (&self.writer, &self.syncer, &self.segment_manager);
        JournalReport {
            write_mode: self.write_mode(),
            appended: get(&writer.appended),
            synced: get(&syncer.synced),
            bytes: get(&writer.bytes),
            segment: get(&writer.segment),
            refused: get(&writer.refused),
            waits: get(&writer.waits),
            syncs: get(&syncer.syncs),
            sync_ns_max: get(&syncer.sync_ns_max),
            faults: get(&syncer.faults),
            segments: get(&segment_manager.segments),
            segment_bytes: get(&segment_manager.segment_bytes),
            snapshots: get(&segment_manager.snapshots),
            snapshot_seq: get(&segment_manager.snapshot_seq),
            snapshot_bytes: get(&segment_manager.snapshot_bytes),
            snapshot_at: get(&segment_manager.snapshot_at),
            removed: get(&segment_manager.removed),
            last_error: self.last_error().map(|error| error.to_string()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_worst_state_is_reported_first() {
        let health = Health::default();
        assert_eq!(health.write_mode(), WriteMode::Open);
        health.segment_manager.full.store(true, Ordering::Relaxed);
        assert_eq!(health.write_mode(), WriteMode::Full);
        health.syncer.faults.store(1, Ordering::Relaxed);
        assert_eq!(health.write_mode(), WriteMode::Failed);
        health.syncer.shut.store(true, Ordering::Relaxed);
        assert_eq!(health.write_mode(), WriteMode::Shut);
    }

    #[test]
    fn the_last_error_is_reported_in_words() {
        let health = Health::default();
        assert_eq!(health.report().last_error, None);
        let error = io::Error::from_raw_os_error(28);
        health.segment_manager.error.set(DiskOperation::Reserving, &error);
        let text = health.report().last_error.unwrap();
        assert!(text.starts_with("reserving space for a segment: "), "{text}");
        for (at, operation) in OPERATIONS.iter().enumerate() {
            assert_eq!(*operation as usize, at);
        }
    }
}
