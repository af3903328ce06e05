//! Follows the stream, until this server leads.
//!
//! ```text
//! plan: state of the folder, last leader
//!  ▲  ├► own:    read the stream to compare ──────────────────────────┐
//!  │  ├► folder: read into the folder, from its position ─────────────┼─► silence ─► Lead ─► won
//!  │  └► stage:  read beside the folder ─► verdict ─┬─ folder ────────┘                │
//!  │                                                └─ stream: the stage is adopted    │
//!  └── the stream is not what was read (rolled back, recreated), or another was first ◄─┘
//! ```
//!
//! `Lead` is stored directly behind the last message. A copy is never removed before the stream is
//! known to contain all of it: see [`super::verdict`].

use std::io;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use tokio::time::{Instant, sleep};

use super::manifest::Manifest;
use super::node::{FolderRole, GroupMember};
use super::position::{Acked, CopyPosition, time_since_boot};
use super::reading::{FORMER_LEASES, RESTORE_LEASES, ReadTarget, ReadingEnd, StreamReading};
use super::replica::Replica;
use super::state::{StandbyPhase, StandbyState};
use super::stream::{GroupStream, LastLeadMessage, Leader};
use super::verdict::{FolderState, LastLeader, LeadRefusal, LeadVerdict, Overlap, decide};
use crate::nats::link::BrokerHealth;

/// Pause before repeating a request that the broker did not answer, or that another server has just
/// won.
pub(super) const RETRY_PAUSE: Duration = Duration::from_millis(50);

/// Longest pause before reading again a stream that cannot be read to its end.
const RETRY_PAUSE_MAX: Duration = Duration::from_secs(5);

/// The parts needed to follow.
#[derive(Debug)]
pub(super) struct Follower {
    pub stream: GroupStream,
    pub member: GroupMember,
    pub data: PathBuf,
    pub lease: Duration,
    pub broker_health: Arc<BrokerHealth>,
    pub state: Arc<StandbyState>,
    /// Whether a leader waits for the broker before it acknowledges.
    pub is_replicated: bool,
}

/// The result of winning the lead.
#[derive(Debug)]
pub(super) struct WonLead {
    pub epoch: u64,
    /// Sequence number of the lead message, behind which this server continues.
    pub seq: u64,
    pub id: String,
    pub at: Instant,
    pub manifest: Manifest,
    pub member: GroupMember,
    /// Whether the folder is a copy, which must be synced before it is opened.
    pub is_copy: bool,
    /// Whether the previous leader shut down in good order.
    pub released: bool,
}

/// How to read the stream.
enum ReadPlan {
    /// Only to compare: this folder is authoritative.
    Own { leases: u32 },
    /// Into the folder: from this position, or from its beginning.
    Folder { from: Option<CopyPosition> },
    /// Beside the folder, which is kept until the stream is known to contain all of it.
    Stage,
    /// Not at all: another server has to start first.
    Wait,
}

impl Follower {
    /// Follows until this server leads. An error is meant for the operator.
    pub(super) async fn follow(mut self) -> Result<WonLead, String> {
        let (mut lacking, mut distrust, mut logged_empty) = (false, false, false);
        let mut pause = RETRY_PAUSE;
        loop {
            if self.state.phase() != StandbyPhase::Following {
                self.state.set_phase(StandbyPhase::Joining);
            }
            let planned = match self.stream.leader().await {
                Ok(last) => self.plan(last, lacking, distrust).await.map(|plan| (last, plan)),
                Err(error) => Err(PlanError::Broker(error)),
            };
            let (last, plan) = match planned {
                Ok(planned) => planned,
                Err(PlanError::Broker(error)) => {
                    tracing::warn!(%error, "the stream of the standby cannot be read");
                    sleep(RETRY_PAUSE).await;
                    continue;
                }
                Err(PlanError::Refused(why)) => return Err(why),
            };
            if matches!(plan, ReadPlan::Wait) {
                if !std::mem::replace(&mut logged_empty, true) {
                    tracing::error!(
                        "the stream is empty and this server's copy was never complete: the server that led last must start first"
                    );
                }
                sleep(RETRY_PAUSE).await;
                continue;
            }
            let is_resumed = matches!(plan, ReadPlan::Folder { from: Some(_) });
            let is_staged = matches!(plan, ReadPlan::Stage);
            let mut reading = self.begin(plan, last).await.map_err(|error| copy_error(&error))?;
            let begun = Instant::now();
            match reading.run(&mut self).await.map_err(|error| copy_error(&error))? {
                ReadingEnd::Won { epoch, seq, id, at } => {
                    let is_copy = self.member.role == FolderRole::Follows;
                    let StreamReading { mut manifest, released, .. } = reading;
                    manifest.drop_foreign(&self.data).map_err(|error| copy_error(&error))?;
                    let member = self.member;
                    return Ok(WonLead { epoch, seq, id, at, manifest, member, is_copy, released });
                }
                ReadingEnd::Restart(why) => {
                    tracing::warn!(
                        why,
                        position = reading.position,
                        "the stream is not the one that was read: it is compared with this folder"
                    );
                    // One attempt is enough to show that a copy is not a prefix of the stream.
                    distrust = is_resumed || distrust && is_staged;
                    let was_long = begun.elapsed() > RETRY_PAUSE_MAX;
                    pause = if was_long { RETRY_PAUSE } else { (2 * pause).min(RETRY_PAUSE_MAX) };
                    sleep(pause).await;
                }
                ReadingEnd::Lacking => {
                    tracing::warn!("the stream contains data that this folder lacks");
                    lacking = true;
                }
                ReadingEnd::Refused(why) => return Err(self.explain(why)),
            }
        }
    }

    async fn plan(
        &self,
        last: Option<LastLeadMessage>,
        lacking: bool,
        distrust: bool,
    ) -> Result<ReadPlan, PlanError> {
        let folder = self.member.folder();
        let Some(last) = last else {
            let none = Overlap { folder_has_stream: true, stream_has_folder: false };
            return match decide(folder, LastLeader::Absent, none, self.member.choice()) {
                LeadVerdict::LeadNow => Ok(ReadPlan::Own { leases: self.former_leases() }),
                LeadVerdict::LeadWhenSilent => Ok(ReadPlan::Own { leases: RESTORE_LEASES }),
                LeadVerdict::Wait | LeadVerdict::Follow => Ok(ReadPlan::Wait),
                LeadVerdict::Refuse(why) => Err(PlanError::Refused(self.explain(why))),
            };
        };
        match folder {
            FolderState::Empty => Ok(ReadPlan::Folder { from: None }),
            FolderState::Foreign => Err(PlanError::Refused(self.explain(LeadRefusal::Foreign))),
            FolderState::Led if last.node == self.member.node && !lacking => {
                Ok(ReadPlan::Own { leases: self.former_leases() })
            }
            FolderState::Led => Ok(ReadPlan::Stage),
            FolderState::Copy { complete, sound } => {
                if let Some(position) = self.member.position().filter(|_| sound && !distrust) {
                    let same = self.stream.has_history(position.leader, position.reach).await;
                    if same.map_err(PlanError::Broker)? {
                        return Ok(ReadPlan::Folder { from: Some(position) });
                    }
                }
                Ok(if complete { ReadPlan::Stage } else { ReadPlan::Folder { from: None } })
            }
        }
    }

    /// Returns for how many leases this server waits if the stream knows no later leader: none if
    /// no other server can have led since, because this one never led or its last lease still runs.
    fn former_leases(&self) -> u32 {
        let has_led = matches!(self.member.role, FolderRole::Leads { .. });
        let runs = |acked: Acked| acked.is_lease_running(time_since_boot(), self.lease);
        if !has_led || Acked::read(&self.data).is_some_and(runs) { 0 } else { FORMER_LEASES }
    }

    /// Returns whether the numbers of the stream show that it contains everything that this
    /// leader's folder has acknowledged. If not, records are compared.
    pub(super) async fn is_all_acknowledged_there(&self) -> bool {
        if !matches!(self.member.role, FolderRole::Leads { .. }) {
            return false;
        }
        match Acked::read(&self.data) {
            Some(acked) if acked.seq < u64::MAX && (acked.is_exact() || !self.is_replicated) => {
                let leader = Leader { epoch: acked.epoch, node: self.member.node, seq: acked.lead };
                self.stream.has_history(leader, acked.seq).await.unwrap_or(false)
            }
            _ => false,
        }
    }

    async fn begin(&mut self, plan: ReadPlan, last: Option<LastLeadMessage>) -> io::Result<StreamReading> {
        match plan {
            ReadPlan::Own { leases } => Ok(StreamReading::new(ReadTarget::Own { leases })),
            ReadPlan::Folder { from: Some(position) } => {
                // There is nothing left to decide.
                self.member.forget_choice()?;
                let manifest = Manifest::of_copy(&self.data, position.complete)?;
                tracing::info!(position = position.done, "this server continues with its copy");
                self.state.set_phase(StandbyPhase::Following);
                self.state.set_complete(position.complete);
                let released = last.is_some_and(|last| last.is_released && last.seq <= position.done);
                let target = ReadTarget::Folder(Replica::new(&self.data));
                StreamReading::resumed(target, &self.member, position, manifest, released)
            }
            ReadPlan::Folder { from: None } => {
                self.member.clear()?;
                self.state.set_phase(StandbyPhase::Following);
                StreamReading::new(ReadTarget::Folder(Replica::new(&self.data)))
                    .writing(&self.member.position_path())
            }
            ReadPlan::Stage | ReadPlan::Wait => {
                self.member.clear_stage()?;
                let can_lead = self.member.folder() == FolderState::Copy { complete: true, sound: true };
                self.state.set_phase(if can_lead { StandbyPhase::Following } else { StandbyPhase::Joining });
                self.state.set_complete(can_lead);
                let stage = self.member.stage();
                let position = stage.join(super::position::POSITION);
                StreamReading::new(ReadTarget::Stage(Replica::new(&stage))).writing(&position)
            }
        }
    }

    /// Explains a refusal to the operator.
    fn explain(&self, why: LeadRefusal) -> String {
        let data = self.data.display();
        let choices = format!(
            "Nothing was removed. Compare the two (the folder {data}, and the server that leads), then either run `pitlane standby follow \
             --data {data}`: this folder is moved to {data}/standby/before, and the stream is followed; or stop the other server and run \
             `pitlane standby lead --data {data}`: the stream is made from this folder, and what only the other server has is given up. Then \
             start this server again"
        );
        match why {
            LeadRefusal::Foreign => "this data folder has a journal, and another server leads the group: start this one with an empty folder, \
                                 or start a new group by removing its stream"
                .to_string(),
            LeadRefusal::Diverged => format!(
                "this data folder and the stream have diverged: each holds records that the other lacks, and some of this folder's may have \
                 been acknowledged to clients. The broker has lost what it had acknowledged. {choices}"
            ),
            LeadRefusal::Unsound => format!(
                "this server's copy holds records that the stream lacks, and this machine has lost its power since they were written, so the \
                 copy may be damaged. The broker has lost what it had acknowledged. If the server that led can be started, start it first. \
                 {choices}"
            ),
        }
    }
}

/// The reason why there is no plan.
enum PlanError {
    Broker(String),
    Refused(String),
}

fn copy_error(error: &io::Error) -> String {
    format!("the copy of the journal cannot be written: {error}")
}
