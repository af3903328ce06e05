//! What survives: `[journal]`.

use std::fmt;

use super::section::Section;

/// What journal files are made of.
pub const PAGE_BYTES: usize = 4_096;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Journal {
    /// None: by what is configured, see [`super::Config::durability`].
    pub level: Option<Durability>,
    /// Whole pages.
    pub segment_bytes: usize,
    /// Made ahead of need.
    pub reserve_segments: usize,
    pub sync_interval_ms: u32,
    pub snapshot_every_bytes: u64,
    pub retention_days: u32,
}

/// What is safe when a client hears of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Durability {
    /// Survives the loss of the machine: the broker has it for the standby.
    Replicated,
    /// Survives power loss.
    Disk,
    /// Survives the end of the process.
    Os,
    /// Nothing does.
    None,
}

impl Durability {
    /// Whether it waits for the disk.
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

impl Journal {
    pub(super) fn read(section: &mut Section<'_>) -> Journal {
        Journal {
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
