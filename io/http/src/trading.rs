//! The orders, positions and commands of the platform, as handlers use them: the read model, and
//! commands whose results a handler waits for.

use std::rc::Rc;
use std::time::Duration;

use hyper::StatusCode;
use pitlane_engine::command::CommandKind;
use pitlane_engine::directive::Directive;
use pitlane_engine::reason::Reason;
use pitlane_engine::time::Timestamp;
use pitlane_protocols::rest::{ConfirmationVO, SwitchStateVO};
use tokio::time::timeout;

use super::cluster::ClusterNode;
use super::lifecycle::Lifecycle;
use super::problem::Problem;
use super::response::HttpResponse;
use super::shard_client::{CommandOutcome, PendingResponse, ShardClient};
use super::thread_clock::ThreadClock;

/// The session of commands that no order desk sends.
pub(crate) const SESSION: u16 = 0;

pub(crate) struct Trading {
    pub shard_client: ShardClient,
    /// The other servers; `None` if this server is alone.
    pub cluster: Option<Rc<ClusterNode>>,
    /// Time after which a pending response is given up.
    pub answer_timeout: Duration,
    lifecycle: Rc<Lifecycle>,
    clock: Rc<ThreadClock>,
}

impl Trading {
    pub(crate) fn new(
        shard_client: ShardClient,
        cluster: Option<Rc<ClusterNode>>,
        answer_timeout: Duration,
        lifecycle: Rc<Lifecycle>,
        clock: Rc<ThreadClock>,
    ) -> Trading {
        Trading { shard_client, cluster, answer_timeout, lifecycle, clock }
    }

    pub(crate) fn now(&self) -> Timestamp {
        self.clock.now()
    }

    /// Checks whether commands are accepted at all.
    pub(crate) fn check_open(&self) -> Result<(), Problem> {
        if self.lifecycle.is_stopping() {
            return Err(Problem::stopping());
        }
        if !self.shard_client.is_complete() {
            return Err(Problem::starting());
        }
        Ok(())
    }

    /// Sends a command and waits for its result. When this returns, the view includes it.
    pub(crate) async fn send_command(&self, body: CommandKind) -> Result<CommandOutcome, Problem> {
        self.await_outcome(self.send(body)?).await
    }

    /// Sends a command and returns the pending response.
    pub(crate) fn send(&self, body: CommandKind) -> Result<PendingResponse, Problem> {
        self.check_open()?;
        self.shard_client.send(SESSION, body).map_err(|_busy| Problem::busy())
    }

    /// Waits for a response of the shards.
    pub(crate) async fn await_outcome(&self, pending: PendingResponse) -> Result<CommandOutcome, Problem> {
        timeout(self.answer_timeout, pending).await.map_err(|_elapsed| Problem::no_answer())
    }

    /// Sends a command that is about no order, and answers when all shards have executed it.
    pub(crate) async fn execute(&self, body: CommandKind) -> Result<HttpResponse, Problem> {
        match self.send_command(body).await? {
            CommandOutcome::Done(Reason::None) => Ok(HttpResponse::empty()),
            CommandOutcome::Done(reason) => Err(Problem::refused(reason)),
            CommandOutcome::Order(_) | CommandOutcome::Refused(_) => unreachable!("it is about no order"),
        }
    }

    /// Sends an operator's directive to all shards. It stays in force where a shard cannot be
    /// reached: the response names such shards, and they apply it when their servers are back.
    pub(crate) async fn send_directive(&self, directive: Directive) -> Result<HttpResponse, Problem> {
        let Some(cluster) = &self.cluster else {
            self.execute(unversioned_command(&directive)).await?;
            let whole = ConfirmationVO { confirmed: SwitchStateVO::All, unconfirmed_shards: Vec::new() };
            return Ok(HttpResponse::json(&whole));
        };
        let version = cluster.next_version(self.clock.now(), &self.shard_client.view());
        // A shard that does not answer in time may still be reached: the response lists it as
        // unconfirmed.
        let outcome = match self.send_command(CommandKind::Direct { version, directive }).await {
            Ok(CommandOutcome::Done(reason)) => Ok(reason),
            Ok(CommandOutcome::Order(_) | CommandOutcome::Refused(_)) => unreachable!("it is about no order"),
            Err(problem) => Err(problem),
        };
        let view = self.shard_client.view();
        let is_known = view.directive(directive.key()).is_some_and(|(_, newest)| newest >= version);
        match outcome {
            Err(problem) if !is_known => return Err(problem),
            Ok(reason) if !is_known && reason != Reason::None => return Err(Problem::refused(reason)),
            _ => {}
        }
        let confirmation = ConfirmationVO::of(&view, directive.key());
        let status = if confirmation.is_whole() { StatusCode::OK } else { StatusCode::ACCEPTED };
        Ok(HttpResponse::json(&confirmation).with_status(status))
    }
}

/// Returns the command for a single server, which needs no versions.
fn unversioned_command(directive: &Directive) -> CommandKind {
    match *directive {
        Directive::Kill { scope, on } => CommandKind::Kill { scope, on },
        Directive::Limits { scope, limits } => CommandKind::Limits { scope, limits },
        Directive::Restrict { scope, security, on } => CommandKind::Restrict { scope, security, on },
    }
}
