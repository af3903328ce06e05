//! Main's part of a standby: nothing is opened before this server leads, and no client is served
//! before the broker has the whole state.

use std::io::{self, Write};
use std::ops::Deref;
use std::sync::Arc;
use std::time::Instant;

use pitlane_cluster::standby::{StandbyHandle, StandbyProgress};
use pitlane_config::Config;
use pitlane_runtime::lifecycle::{Lifecycle, Main, StopReason};
use pitlane_runtime::service_manager::ServiceManager;

use super::store::RecoveredState;
use super::{ServeError, StopConditions, check_lead, system};

const WHAT: &str = "standby";

#[derive(Debug)]
pub(super) struct StandbyMember {
    handle: StandbyHandle,
    group: String,
}

impl Deref for StandbyMember {
    type Target = StandbyHandle;

    fn deref(&self) -> &StandbyHandle {
        &self.handle
    }
}

impl StandbyMember {
    /// Returns None if there is no group.
    pub(super) fn open(
        config: &Config,
        lifecycle: &Arc<Lifecycle>,
    ) -> Result<Option<StandbyMember>, ServeError> {
        let group = config.standby.group.clone().unwrap_or_default();
        let handle = StandbyHandle::open(config, lifecycle).map_err(system(WHAT))?;
        Ok(handle.map(|handle| StandbyMember { handle, group }))
    }

    /// Returns false if the service stops before it leads.
    pub(super) fn wait_to_lead(
        &mut self,
        lifecycle: &Lifecycle,
        main: &mut Main,
        wait: &StopConditions,
        manager: &mut ServiceManager,
    ) -> Result<bool, ServeError> {
        self.wait_for(StandbyProgress::Leads, lifecycle, main, wait, manager)
    }

    /// Waits until the broker has the recovered state and the record of this start: from then on,
    /// an acknowledgement survives the loss of this machine.
    pub(super) fn wait_until_shipped(
        &mut self,
        store: &RecoveredState,
        lifecycle: &Lifecycle,
        main: &mut Main,
        wait: &StopConditions,
        manager: &mut ServiceManager,
    ) -> Result<bool, ServeError> {
        // All shards are on this server: a standby excludes a cluster.
        let healths = store.journal_parts.iter().flat_map(|parts| &parts.healths);
        self.handle.ship(healths.map(|(_, health)| health.clone()).collect());
        self.wait_for(StandbyProgress::Shipped, lifecycle, main, wait, manager)
    }

    fn wait_for(
        &mut self,
        goal: StandbyProgress,
        lifecycle: &Lifecycle,
        main: &mut Main,
        wait: &StopConditions,
        manager: &mut ServiceManager,
    ) -> Result<bool, ServeError> {
        loop {
            let mut progress = Ok(StandbyProgress::Waiting);
            let has_progress = || {
                progress = self.handle.poll_event();
                !matches!(progress, Ok(StandbyProgress::Waiting)) || wait.is_over(lifecycle)
            };
            manager.ping();
            let until = manager.ping_interval().map(|interval| Instant::now() + interval);
            main.wait(until, has_progress).map_err(system("cannot wait"))?;
            match progress.map_err(system(WHAT))? {
                progress if progress == goal => return Ok(true),
                StandbyProgress::Follows(address) => {
                    self.print_standby_line(address).map_err(system("standard output"))?;
                    // A server that follows has started, although it does not serve yet.
                    manager.ready(&format!("standby group={}", self.group));
                }
                StandbyProgress::Waiting | StandbyProgress::Leads | StandbyProgress::Shipped => {}
            }
            check_lead(lifecycle)?;
            match lifecycle.stopped() {
                Some(StopReason::Failed(reason)) => return Err(ServeError::Failed(reason.clone())),
                Some(_) => return self.stop(),
                None if wait.is_over(lifecycle) => return self.stop(),
                None => {}
            }
        }
    }

    /// Prints the line of a server that does not serve yet.
    fn print_standby_line(&self, address: Option<std::net::SocketAddr>) -> io::Result<()> {
        let mut out = io::stdout().lock();
        write!(out, "standby group={}", self.group)?;
        if let Some(address) = address {
            write!(out, " http={address}")?;
        }
        writeln!(out)?;
        out.flush()
    }

    fn stop(&self) -> Result<bool, ServeError> {
        writeln!(io::stdout(), "stopped standby group={}", self.group).map_err(system("standard output"))?;
        Ok(false)
    }
}
