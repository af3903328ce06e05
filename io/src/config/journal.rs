//! What survives: `[journal]`.

use std::fmt;

use super::section::Section;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Journal {
    /// None: by what is configured, see [`super::Config::durability`].
    pub level: Option<Durability>,
    pub segment_bytes: u64,
    pub snapshot_every_records: u64,
    pub retention_snapshots: u32,
    pub reserve_bytes: u64,
}

/// What is safe when a client hears of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Durability {
    /// Survives power loss.
    Disk,
    /// Survives the end of the process.
    Os,
    /// Nothing does.
    None,
}

impl fmt::Display for Durability {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Durability::Disk => "disk",
            Durability::Os => "os",
            Durability::None => "none",
        })
    }
}

impl Journal {
    pub(super) fn read(section: &mut Section<'_>) -> Journal {
        Journal {
            level: section.word(
                "level",
                &[
                    ("auto", None),
                    ("disk", Some(Durability::Disk)),
                    ("os", Some(Durability::Os)),
                    ("none", Some(Durability::None)),
                ],
            ),
            segment_bytes: section.number("segment_bytes", 1 << 20..=1 << 32),
            snapshot_every_records: section.number("snapshot_every_records", 1_000..=1_000_000_000),
            retention_snapshots: section.number("retention_snapshots", 1..=1_000),
            reserve_bytes: section.number("reserve_bytes", 1 << 20..=1 << 40),
        }
    }
}
