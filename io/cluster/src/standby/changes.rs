//! The data that a leader sends: its position in each journal, and other changes in the folder.

use std::collections::VecDeque;
use std::io;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use pitlane_journal::Health;
use tokio::time::Instant;

use super::cursor::Cursor;
use super::manifest::Manifest;
use super::message::FilePiece;
use super::scan::Scan;

/// Interval at which stores and snapshots are scanned.
const TICK: Duration = Duration::from_millis(50);

/// The data that a leader sends.
pub(super) struct FolderChanges {
    pub healths: Vec<Arc<Health>>,
    pub cursors: Vec<Cursor>,
    pub scan: Scan,
    /// Changed pages. They are sent after the records that they may refer to.
    pub pages: VecDeque<FilePiece>,
    pub pages_after: Vec<u64>,
    /// Whether a shard has a snapshot that is not in the stream, and without which its copy is not
    /// usable.
    pub needs_snapshots: bool,
    /// Whether the window had no room for a file that others depend on.
    pub is_held_up: bool,
    pub tick: Instant,
    pub ticks: u64,
}

impl FolderChanges {
    pub(super) fn new(data: &Path, healths: Vec<Arc<Health>>) -> FolderChanges {
        FolderChanges {
            cursors: (0..healths.len()).map(|shard| Cursor::new(data, shard)).collect(),
            healths,
            scan: Scan::new(data),
            pages: VecDeque::new(),
            pages_after: Vec::new(),
            needs_snapshots: false,
            is_held_up: false,
            tick: Instant::now(),
            ticks: 0,
        }
    }

    /// Scans the files that do not trigger a wake-up.
    pub(super) fn tick(&mut self, sent: &Manifest) -> io::Result<()> {
        self.tick = Instant::now() + TICK;
        self.ticks += 1;
        self.scan.find_snapshots(self.healths.len(), sent)?;
        self.find_needed_snapshots(sent)?;
        if self.pages.is_empty() {
            self.pages = self.scan.changed_pages(sent)?.into();
            // A store refers only to records that were written before.
            self.pages_after = self.healths.iter().map(|health| health.appended()).collect();
        }
        Ok(())
    }

    /// Determines again whether a copy needs one of the pending snapshots.
    pub(super) fn find_needed_snapshots(&mut self, sent: &Manifest) -> io::Result<()> {
        self.needs_snapshots =
            self.scan.has_snapshots() && self.scan.needs_snapshots(self.healths.len(), sent)?;
        Ok(())
    }

    /// Returns whether the whole round that was started at shutdown is done, apart from snapshots.
    pub(super) fn is_whole_round_done(&self) -> bool {
        self.scan.is_whole_round_over() && self.pages.is_empty()
    }

    /// Returns the number of records written and not yet acknowledged.
    pub(super) fn behind(&self) -> u64 {
        self.healths.iter().map(|health| health.appended().saturating_sub(health.shipped())).sum()
    }
}
