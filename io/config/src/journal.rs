//! Durability: `[journal]`.

use std::fmt;

use super::section::Section;

/// Unit of the size of journal files, in bytes.
pub(crate) const PAGE_BYTES: usize = 4_096;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct JournalConfig {
    /// None: derived from the settings, see [`super::Config::durability`].
    pub level: Option<Durability>,
    /// Bytes of a segment, in whole pages.
    pub segment_bytes: usize,
    /// Segments allocated in advance.
    pub reserve_segments: usize,
    pub sync_interval_ms: u32,
    pub snapshot_every_bytes: u64,
    pub retention_days: u32,
}

/// Failure that an acknowledged command survives.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Durability {
    /// Survives the loss of the machine: the broker has the command for the standby.
    Replicated,
    /// Survives a loss of power.
    Disk,
    /// Survives the end of the process.
    Os,
    /// Survives nothing.
    None,
}

impl Durability {
    /// Returns whether an acknowledgement waits for the disk.
    pub fn is_synced(self) -> bool {
        match self {
            Durability::Replicated | Durability::Disk => true,
            Durability::Os | Durability::None => false,
        }
    }

    pub fn word(self) -> &'static str {
        match self {
            Durability::Replicated => "replicated",
            Durability::Disk => "disk",
            Durability::Os => "os",
            Durability::None => "none",
        }
    }
}

impl fmt::Display for Durability {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.word())
    }
}

impl JournalConfig {
    pub(super) fn read(section: &mut Section<'_>) -> JournalConfig {
        JournalConfig {
            level: section.word(
                "level",
                &[
                    ("auto", None),
                    ("replicated", Some(Durability::Replicated)),
                    ("disk", Some(Durability::Disk)),
                    ("os", Some(Durability::Os)),
                    ("none", Some(Durability::None)),
                ],
            ),
            segment_bytes: section.number("segment_bytes", 1 << 20..=1 << 30),
            reserve_segments: section.number("reserve_segments", 2..=16),
            sync_interval_ms: section.number("sync_interval_ms", 1..=60_000),
            snapshot_every_bytes: section.number("snapshot_every_bytes", 1 << 20..=1 << 40),
            retention_days: section.number("retention_days", 0..=36_500),
        }
    }
}
