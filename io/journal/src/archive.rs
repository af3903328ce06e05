//! The segments and snapshots of a shard that are complete and on disk.

/// A complete segment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Archived {
    pub number: u64,
    pub first: u64,
    pub last: u64,
    pub bytes: u64,
    pub time: u64,
    /// Reference data in force at its first record.
    pub reference: u64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct KeptSnapshot {
    pub seq: u64,
    pub reference: u64,
}
