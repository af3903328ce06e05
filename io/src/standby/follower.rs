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
use super::node::{Member, Role};
use super::position::{Acked, Position};
use super::reading::{Ended, Into, Reading};
use super::replica::Replica;
use super::state::{Stand, State};
use super::stream::{LastLead, Leader, Stream};
use super::verdict::{Folder, LastLeader, Overlap, Refusal, Verdict, decide};
use crate::nats::link::BrokerHealth;

/// Pause before repeating a request that the broker did not answer, or that another server has just
/// won.
pub const AGAIN: Duration = Duration::from_millis(50);

/// Longest pause before reading again a stream that cannot be read to its end.
const AGAIN_MOST: Duration = Duration::from_secs(5);

/// The parts needed to follow.
#[derive(Debug)]
pub struct Follower {
    pub stream: Stream,
    pub member: Member,
    pub data: PathBuf,
    pub lease: Duration,
    pub weather: Arc<BrokerHealth>,
    pub state: Arc<State>,
}

/// The result of winning the lead.
#[derive(Debug)]
pub struct Won {
    pub epoch: u64,
    /// Sequence number of the lead message, behind which this server continues.
    pub seq: u64,
    pub id: String,
    pub at: Instant,
    pub manifest: Manifest,
    pub member: Member,
    /// Whether the folder is a copy, which must be synced before it is opened.
    pub is_copy: bool,
    /// Whether the folder contained more than the stream, which is restored from it.
    pub restores: bool,
    /// Whether the previous leader shut down in good order.
    pub released: bool,
}

/// How to read the stream.
enum Plan {
    /// Only to compare: this folder is authoritative.
    Own { at_once: bool },
    /// Into the folder: from this position, or from its beginning.
    Folder { from: Option<Position> },
    /// Beside the folder, which is kept until the stream is known to contain all of it.
    Stage,
    /// Not at all: another server has to start first.
    Wait,
}

impl Follower {
    /// Follows until this server leads. An error is meant for the operator.
    pub async fn follow(mut self) -> Result<Won, String> {
        let (mut lacking, mut distrust, mut told_empty) = (false, false, false);
        let mut pause = AGAIN;
        loop {
            if self.state.stand() != Stand::Following {
                self.state.set_stand(Stand::Joining);
            }
            let planned = match self.stream.leader().await {
                Ok(last) => self.plan(last, lacking, distrust).await.map(|plan| (last, plan)),
                Err(error) => Err(Unplanned::Broker(error)),
            };
            let (last, plan) = match planned {
                Ok(planned) => planned,
                Err(Unplanned::Broker(error)) => {
                    tracing::warn!(%error, "the stream of the standby cannot be read");
                    sleep(AGAIN).await;
                    continue;
                }
                Err(Unplanned::Refused(why)) => return Err(why),
            };
            if matches!(plan, Plan::Wait) {
                if !std::mem::replace(&mut told_empty, true) {
                    tracing::error!(
                        "the stream is empty and this server's copy was never complete: whoever led last must start first"
                    );
                }
                sleep(AGAIN).await;
                continue;
            }
            let is_resumed = matches!(plan, Plan::Folder { from: Some(_) });
            let is_staged = matches!(plan, Plan::Stage);
            let mut reading = self.begin(plan, last).await.map_err(|error| told(&error))?;
            let begun = Instant::now();
            match reading.run(&mut self).await.map_err(|error| told(&error))? {
                Ended::Won { epoch, seq, id, at } => {
                    let is_copy = self.member.role == Role::Follows;
                    let restores = reading.restores();
                    let Reading { mut manifest, released, .. } = reading;
                    manifest.drop_foreign(&self.data).map_err(|error| told(&error))?;
                    let member = self.member;
                    return Ok(Won { epoch, seq, id, at, manifest, member, is_copy, restores, released });
                }
                Ended::Again(why) => {
                    tracing::warn!(
                        why,
                        position = reading.position,
                        "the stream is not what was read: it is compared with this folder"
                    );
                    // One attempt is enough to show that a copy is not a prefix of the stream.
                    distrust = is_resumed || distrust && is_staged;
                    let was_long = begun.elapsed() > AGAIN_MOST;
                    pause = if was_long { AGAIN } else { (2 * pause).min(AGAIN_MOST) };
                    sleep(pause).await;
                }
                Ended::Lacking => {
                    tracing::warn!("the stream has something that this folder lacks");
                    lacking = true;
                }
                Ended::Refused(why) => return Err(self.explain(why)),
            }
        }
    }

    async fn plan(&self, last: Option<LastLead>, lacking: bool, distrust: bool) -> Result<Plan, Unplanned> {
        let folder = self.member.folder();
        let Some(last) = last else {
            let none = Overlap { folder_has_stream: true, stream_has_folder: false };
            return match decide(folder, LastLeader::Nobody, none, self.member.choice()) {
                Verdict::LeadNow => Ok(Plan::Own { at_once: true }),
                Verdict::LeadWhenSilent => Ok(Plan::Own { at_once: false }),
                Verdict::Wait | Verdict::Follow => Ok(Plan::Wait),
                Verdict::Refuse(why) => Err(Unplanned::Refused(self.explain(why))),
            };
        };
        match folder {
            Folder::Empty => Ok(Plan::Folder { from: None }),
            Folder::Foreign => Err(Unplanned::Refused(self.explain(Refusal::Foreign))),
            Folder::Led if last.node == self.member.node && !lacking => Ok(Plan::Own { at_once: true }),
            Folder::Led => Ok(Plan::Stage),
            Folder::Copy { complete, sound } => {
                if let Some(position) = self.member.position().filter(|_| sound && !distrust) {
                    let same = self.stream.has_history(position.leader, position.reach).await;
                    if same.map_err(Unplanned::Broker)? {
                        return Ok(Plan::Folder { from: Some(position) });
                    }
                }
                Ok(if complete { Plan::Stage } else { Plan::Folder { from: None } })
            }
        }
    }

    /// Returns whether the numbers of the stream show that it contains everything that this
    /// leader's folder has acknowledged. If not, records are compared.
    pub async fn is_all_acknowledged_there(&self) -> bool {
        if !matches!(self.member.role, Role::Leads { .. }) {
            return false;
        }
        match Acked::read(&self.data) {
            Some(acked) if acked.seq < u64::MAX => {
                let leader = Leader { epoch: acked.epoch, node: self.member.node, seq: acked.lead };
                self.stream.has_history(leader, acked.seq).await.unwrap_or(false)
            }
            _ => false,
        }
    }

    async fn begin(&mut self, plan: Plan, last: Option<LastLead>) -> io::Result<Reading> {
        match plan {
            Plan::Own { at_once } => Ok(Reading::new(Into::Own { at_once })),
            Plan::Folder { from: Some(position) } => {
                // There is nothing left to decide.
                self.member.forget_choice()?;
                let manifest = Manifest::of_copy(&self.data, position.complete)?;
                tracing::info!(position = position.done, "the copy that is here is gone on with");
                self.state.set_stand(Stand::Following);
                self.state.set_complete(position.complete);
                let released = last.is_some_and(|last| last.is_released && last.seq <= position.done);
                let into = Into::Folder(Replica::new(&self.data));
                Reading::resumed(into, &self.member, position, manifest, released)
            }
            Plan::Folder { from: None } => {
                self.member.clear()?;
                self.state.set_stand(Stand::Following);
                Reading::new(Into::Folder(Replica::new(&self.data))).writing(&self.member.position_path())
            }
            Plan::Stage | Plan::Wait => {
                self.member.clear_stage()?;
                let can_lead = self.member.folder() == Folder::Copy { complete: true, sound: true };
                self.state.set_stand(if can_lead { Stand::Following } else { Stand::Joining });
                self.state.set_complete(can_lead);
                let stage = self.member.stage();
                let position = stage.join(super::position::POSITION);
                Reading::new(Into::Stage(Replica::new(&stage))).writing(&position)
            }
        }
    }

    /// Explains a refusal to the operator.
    fn explain(&self, why: Refusal) -> String {
        let data = self.data.display();
        let choices = format!(
            "Nothing was removed. Compare the two (the folder {data}, and the server that leads), then either run `pitlane standby follow \
             --data {data}`: this folder is put aside in {data}/standby/before, and the stream is followed; or stop the other server and run \
             `pitlane standby lead --data {data}`: the stream is made from this folder, and what only the other server has is given up. Then \
             start this server again"
        );
        match why {
            Refusal::Foreign => "this data folder has a journal, and another server leads the group: start this one with an empty folder, \
                                 or the group anew by removing its stream"
                .to_string(),
            Refusal::Diverged => format!(
                "this data folder and the stream have diverged: each holds records that the other lacks, and some of this folder's may have \
                 been acknowledged to clients. The broker has lost what it had acknowledged. {choices}"
            ),
            Refusal::Unsound => format!(
                "this server's copy holds records that the stream lacks, and this machine has lost its power since they were written, so the \
                 copy may be damaged. The broker has lost what it had acknowledged. If the server that led can be started, start it first. \
                 {choices}"
            ),
        }
    }
}

/// The reason why there is no plan.
enum Unplanned {
    Broker(String),
    Refused(String),
}

fn told(error: &io::Error) -> String {
    format!("the copy of the journal cannot be written: {error}")
}
