//! Housekeeping of main: once a second it checks the state of the journal, publishes it, and
//! refills the numbers for ids. When a signal requests it, main reloads certificate, users and
//! tokens at once.

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use pitlane_auth::Reload;
use pitlane_engine::id::ShardId;
use pitlane_http::{Journaling, ServiceStatus};
use pitlane_journal::{Health, WriteMode};
use pitlane_net::tls::Tls;
use pitlane_runtime::clock::wall;
use pitlane_runtime::metrics::Registry;

use super::store::IdSupply;

/// Interval between two checks.
pub(super) const EVERY: Duration = Duration::from_secs(1);

#[derive(Debug)]
pub(super) struct Housekeeper {
    /// Empty if nothing is stored.
    healths: Vec<(ShardId, Arc<Health>)>,
    registry: Arc<Registry>,
    status: Arc<ServiceStatus>,
    data_dir: PathBuf,
    /// The most restrictive write mode at the last check.
    write_mode: WriteMode,
    /// Whether a reload is requested.
    reload: Arc<AtomicBool>,
    tls: Option<Arc<Tls>>,
    users: Option<Reload>,
    /// Supply of numbers for ids; None if nothing is stored.
    supply: Option<IdSupply>,
}

impl Housekeeper {
    pub(super) fn new(
        healths: Vec<(ShardId, Arc<Health>)>,
        registry: Arc<Registry>,
        status: Arc<ServiceStatus>,
        data_dir: PathBuf,
        supply: Option<IdSupply>,
    ) -> Housekeeper {
        let reload = Arc::default();
        Housekeeper {
            healths,
            registry,
            status,
            data_dir,
            write_mode: WriteMode::Open,
            reload,
            tls: None,
            users: None,
            supply,
        }
    }

    /// Sets the certificate and users that a requested reload reads.
    pub(super) fn with_reload(
        self,
        reload: Arc<AtomicBool>,
        tls: Option<Arc<Tls>>,
        users: Reload,
    ) -> Housekeeper {
        Housekeeper { reload, tls, users: Some(users), ..self }
    }

    pub(super) fn check(&mut self) {
        self.check_journal();
        if let Ok(about) = rustix::fs::statvfs(&self.data_dir) {
            self.registry.data_free_bytes.set(about.f_bavail.saturating_mul(about.f_frsize));
        }
        if let Some(supply) = &mut self.supply
            && let Err(fault) = supply.fill()
        {
            tracing::error!(%fault, "no more numbers for ids of REST orders can be reserved; the reserved ones last a while");
        }
    }

    pub(super) fn is_reload_requested(&self) -> bool {
        self.reload.load(Ordering::Relaxed)
    }

    /// Reloads certificate, users and tokens if a signal arrived since the last call.
    pub(super) fn reload_if_requested(&self) {
        if !self.reload.swap(false, Ordering::Relaxed) {
            return;
        }
        if let Some(users) = &self.users {
            users.ask();
        }
        if let Some(tls) = &self.tls {
            match tls.reload(wall()) {
                Ok(()) => tracing::info!(not_after = tls.not_after().0, "certificate read again"),
                Err(error) => tracing::error!(%error, "the certificate stays as it was"),
            }
        }
    }

    fn check_journal(&mut self) {
        let mut write_mode = WriteMode::Open;
        let mut error = None;
        for (shard, health) in &self.healths {
            let meter = &self.registry.shards[shard.0 as usize];
            let report = health.report();
            meter.journal.records.set(report.appended);
            meter.journal.bytes.set(report.bytes);
            meter.journal.syncs.set(report.syncs);
            meter.journal.snapshots.set(report.snapshots);
            meter.journal.unsynced.set(report.appended.saturating_sub(report.synced));
            meter.journal.segment_bytes.set(report.segment_bytes);
            meter.journal.snapshot_at_ns.set(report.snapshot_at);
            if report.write_mode > write_mode {
                (write_mode, error) = (report.write_mode, report.last_error);
            }
        }
        if write_mode != self.write_mode {
            self.publish(write_mode, error.as_deref());
        }
        self.write_mode = write_mode;
    }

    fn publish(&self, write_mode: WriteMode, error: Option<&str>) {
        self.status.set_journaling(match write_mode {
            WriteMode::Open => Journaling::Sound,
            WriteMode::Full | WriteMode::BrokerFull => Journaling::Full,
            WriteMode::Failed | WriteMode::Shut => Journaling::Failed,
        });
        match write_mode {
            WriteMode::Open => tracing::info!("the journal accepts all commands again"),
            WriteMode::Full | WriteMode::BrokerFull | WriteMode::Failed | WriteMode::Shut => {
                tracing::error!(error, "{write_mode}")
            }
        }
    }
}
