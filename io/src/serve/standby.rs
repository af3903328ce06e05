//! Main's part of a standby: nothing is opened before this server leads, and no client is served
//! before the broker has the whole state.

use std::io::{self, Write};
use std::ops::Deref;
use std::sync::Arc;

use super::store::RecoveredState;
use super::{ServeError, StopConditions, check_lead, system};
use crate::config::Config;
use crate::lifecycle::{Lifecycle, Main, StopReason};
use crate::standby::{Progress, StandbyHandle};

const WHAT: &str = "standby";

#[derive(Debug)]
pub struct StandbyMember {
    post: StandbyHandle,
    group: String,
}

impl Deref for StandbyMember {
    type Target = StandbyHandle;

    fn deref(&self) -> &StandbyHandle {
        &self.post
    }
}

impl StandbyMember {
    /// Returns None if there is no group.
    pub fn open(config: &Config, life: &Arc<Lifecycle>) -> Result<Option<StandbyMember>, ServeError> {
        let group = config.standby.group.clone().unwrap_or_default();
        let post = StandbyHandle::open(config, life).map_err(system(WHAT))?;
        Ok(post.map(|post| StandbyMember { post, group }))
    }

    /// Returns false if the service stops before it leads.
    pub fn wait_to_lead(
        &mut self,
        life: &Lifecycle,
        main: &mut Main,
        wait: &StopConditions,
    ) -> Result<bool, ServeError> {
        self.wait_for(Progress::Leads, life, main, wait)
    }

    /// Waits until the broker has the recovered state and the record of this start: from then on,
    /// an acknowledgement survives the loss of this machine.
    pub fn wait_until_shipped(
        &mut self,
        store: &RecoveredState,
        life: &Lifecycle,
        main: &mut Main,
        wait: &StopConditions,
    ) -> Result<bool, ServeError> {
        // All shards are on this server: a standby excludes a cluster.
        let healths = store.staff.iter().flat_map(|staff| &staff.healths);
        self.post.ship(healths.map(|(_, health)| health.clone()).collect());
        self.wait_for(Progress::Shipped, life, main, wait)
    }

    fn wait_for(
        &mut self,
        goal: Progress,
        life: &Lifecycle,
        main: &mut Main,
        wait: &StopConditions,
    ) -> Result<bool, ServeError> {
        loop {
            let mut progress = Ok(Progress::Waiting);
            let is_news = || {
                progress = self.post.look();
                !matches!(progress, Ok(Progress::Waiting)) || wait.is_over(life)
            };
            main.wait(None, is_news).map_err(system("cannot wait"))?;
            match progress.map_err(system(WHAT))? {
                progress if progress == goal => return Ok(true),
                Progress::Follows(address) => self.say(address).map_err(system("standard output"))?,
                Progress::Waiting | Progress::Leads | Progress::Shipped => {}
            }
            check_lead(life)?;
            match life.stopped() {
                Some(StopReason::Failed(why)) => return Err(ServeError::Failed(why.clone())),
                Some(_) => return self.stop(),
                None if wait.is_over(life) => return self.stop(),
                None => {}
            }
        }
    }

    /// Prints the line of a server that does not serve yet.
    fn say(&self, address: Option<std::net::SocketAddr>) -> io::Result<()> {
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
