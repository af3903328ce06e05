//! What a leader sends: where it stands in each journal, and what else has changed in the folder.

use std::collections::VecDeque;
use std::io;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use tokio::time::Instant;

use super::cursor::Cursor;
use super::manifest::Manifest;
use super::message::Piece;
use super::scan::Scan;
use crate::journal::Health;

/// How often stores and snapshots are looked at.
const TICK: Duration = Duration::from_millis(50);

/// What is sent.
pub struct Cargo {
    pub healths: Vec<Arc<Health>>,
    pub cursors: Vec<Cursor>,
    pub scan: Scan,
    /// Pages that have changed; they go when the records that they may tell of have gone.
    pub pages: VecDeque<Piece>,
    pub pages_after: Vec<u64>,
    /// There was no room for a file that others build on.
    pub is_held_up: bool,
    pub tick: Instant,
    pub ticks: u64,
}

impl Cargo {
    pub fn new(data: &Path, healths: Vec<Arc<Health>>) -> Cargo {
        Cargo {
            cursors: (0..healths.len()).map(|shard| Cursor::new(data, shard)).collect(),
            healths,
            scan: Scan::new(data),
            pages: VecDeque::new(),
            pages_after: Vec::new(),
            is_held_up: false,
            tick: Instant::now(),
            ticks: 0,
        }
    }

    /// Looks at what nobody rings for.
    pub fn tick(&mut self, sent: &Manifest) -> io::Result<()> {
        self.tick = Instant::now() + TICK;
        self.ticks += 1;
        self.scan.find_snapshots(self.healths.len(), sent)?;
        if self.pages.is_empty() {
            self.pages = self.scan.changed_pages(sent)?.into();
            // What a store tells of was written before.
            self.pages_after = self.healths.iter().map(|health| health.appended()).collect();
        }
        Ok(())
    }

    /// Whether the whole round is done that was begun at the end.
    pub fn is_all_looked_at(&self) -> bool {
        self.scan.is_whole_round_over() && self.pages.is_empty() && !self.scan.has_snapshots()
    }

    /// Records that were written and not acknowledged.
    pub fn behind(&self) -> u64 {
        self.healths.iter().map(|health| health.appended().saturating_sub(health.shipped())).sum()
    }
}
