//! Main's eye on the journal: once a second it looks how that is, and tells whoever shows it.

use std::sync::Arc;
use std::time::Duration;

use crate::http::{Journaling, Standing};
use crate::journal::{Door, Health};
use crate::metrics::Registry;

/// Between two looks.
pub const EVERY: Duration = Duration::from_secs(1);

#[derive(Debug)]
pub struct Watch {
    /// By shard; none where nothing is kept.
    healths: Vec<Arc<Health>>,
    registry: Arc<Registry>,
    standing: Arc<Standing>,
    /// The worst door at the last look.
    door: Door,
}

impl Watch {
    pub fn new(healths: Vec<Arc<Health>>, registry: Arc<Registry>, standing: Arc<Standing>) -> Watch {
        Watch { healths, registry, standing, door: Door::Open }
    }

    pub fn look(&mut self) {
        let mut door = Door::Open;
        let mut error = None;
        for (health, meter) in self.healths.iter().zip(&self.registry.shards) {
            let report = health.report();
            meter.journal.records.set(report.appended);
            meter.journal.bytes.set(report.bytes);
            meter.journal.syncs.set(report.syncs);
            meter.journal.snapshots.set(report.snapshots);
            if report.door > door {
                (door, error) = (report.door, report.last_error);
            }
        }
        if door != self.door {
            self.tell(door, error.as_deref());
        }
        self.door = door;
    }

    fn tell(&self, door: Door, error: Option<&str>) {
        self.standing.set_journaling(match door {
            Door::Open => Journaling::Sound,
            Door::Full => Journaling::Full,
            Door::Failed | Door::Shut => Journaling::Failed,
        });
        match door {
            Door::Open => tracing::info!("the journal takes everything again"),
            Door::Full | Door::Failed | Door::Shut => tracing::error!(error, "{door}"),
        }
    }
}
