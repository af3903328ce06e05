//! Following, until this server leads.
//!
//! ```text
//! whose record counts? ─► this folder's: the stream is read to compare ──┐
//!                      └► the stream's: it is read into the folder ──────┴─► nobody leads: Lead, behind the last message ─► won
//!                                         ▲                                        │ somebody was quicker
//!                                         └────────────────────────────────────────┘
//! ```

use std::future::pending;
use std::io;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use async_nats::jetstream::Message;
use async_nats::jetstream::consumer::pull::Ordered;
use bytes::Bytes;
use futures_util::StreamExt;
use tokio::time::{Instant, MissedTickBehavior, interval, sleep, sleep_until};

use super::manifest::Manifest;
use super::member::{Member, Role};
use super::parcel::{Parcel, What};
use super::replica::Replica;
use super::state::{Stand, State};
use super::stream::{Behind, Leader, Place, Stream};
use crate::nats::link::Weather;

/// Between two tries of something that the broker did not answer, or that another server has just done.
const AGAIN: Duration = Duration::from_millis(50);

/// The longest pause before a stream is read once more that cannot be read to its end.
const AGAIN_MOST: Duration = Duration::from_secs(5);

/// How often it is looked how far behind this one is.
const LOOK: Duration = Duration::from_secs(1);

/// Messages without a gap after which many are asked for at once; and how many at most, of half a megabyte each.
const RUN_MIN: u64 = 8;
const RUN_MAX: u64 = 64;

const FORGOTTEN: &str = "the broker has forgotten what it had";

/// What is needed to follow.
#[derive(Debug)]
pub struct Follower {
    pub stream: Stream,
    pub member: Member,
    pub data: PathBuf,
    pub lease: Duration,
    pub weather: Arc<Weather>,
    pub state: Arc<State>,
}

/// This server leads.
#[derive(Debug)]
pub struct Won {
    pub epoch: u64,
    /// The message that says so, behind which it goes on.
    pub seq: u64,
    pub at: Instant,
    pub manifest: Manifest,
    pub member: Member,
    /// What must be put on disk before the folder is opened; none: it is the one that counts.
    pub replica: Option<Replica>,
    /// Whether the one before has ended in good order.
    pub released: bool,
}

/// Whose record counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Counts {
    /// This folder's: nobody has led since.
    Ours,
    Theirs,
}

/// Why a reading ended.
enum Ended {
    Won {
        epoch: u64,
        seq: u64,
        at: Instant,
    },
    /// It must be begun again: what was read is no longer what the stream holds.
    Again(&'static str),
    /// The folder lacks something that the stream has.
    Lacking,
}

impl Follower {
    /// Until this server leads. An error is for the operator.
    pub async fn follow(mut self) -> Result<Won, String> {
        let (mut lacking, mut told_empty) = (false, false);
        let mut pause = AGAIN;
        loop {
            self.state.set_stand(Stand::Joining);
            let leader = match self.stream.leader().await {
                Ok(leader) => leader,
                Err(error) => {
                    tracing::warn!(%error, "the stream of the standby cannot be read");
                    sleep(AGAIN).await;
                    continue;
                }
            };
            if self.member.role == Role::Follows && leader.is_none() {
                // Perhaps the copy that is here is all that there is.
                if !std::mem::replace(&mut told_empty, true) {
                    let file = self.member.path();
                    tracing::error!(
                        "the stream is empty: whoever led last must start first; or remove {} to lead with the copy that is here",
                        file.display()
                    );
                }
                sleep(AGAIN).await;
                continue;
            }
            let counts = if lacking { Counts::Theirs } else { judge(&self.member, leader)? };
            let replica = match counts {
                Counts::Ours => None,
                Counts::Theirs => {
                    self.member.clear().map_err(|error| told(&error))?;
                    Some(Replica::new(&self.data))
                }
            };
            let mut reading = Reading::new(counts, replica);
            self.state.set_stand(if counts == Counts::Ours { Stand::Joining } else { Stand::Following });
            let begun = Instant::now();
            match reading.run(&self).await.map_err(|error| told(&error))? {
                Ended::Won { epoch, seq, at } => {
                    let Reading { manifest, replica, released, .. } = reading;
                    let member = self.member;
                    return Ok(Won { epoch, seq, at, manifest, member, replica, released });
                }
                Ended::Again(why) => {
                    tracing::warn!(why, position = reading.position, "the stream is read from its beginning");
                    let was_long = begun.elapsed() > AGAIN_MOST;
                    pause = if was_long { AGAIN } else { (2 * pause).min(AGAIN_MOST) };
                    sleep(pause).await;
                }
                Ended::Lacking => {
                    tracing::warn!("the stream has something that this folder lacks: it counts");
                    lacking = true;
                }
            }
        }
    }
}

fn told(error: &io::Error) -> String {
    format!("the copy of the journal cannot be written: {error}")
}

/// Whose record counts, or why nobody but the operator can tell.
fn judge(member: &Member, leader: Option<Leader>) -> Result<Counts, String> {
    let file = member.path();
    let file = file.display();
    match (member.role, leader) {
        (Role::New | Role::Leads { .. }, None) => Ok(Counts::Ours),
        (Role::New, Some(_)) if member.has_journal() => Err(
            "this data folder has a journal, and another server leads the group: start this one with an empty folder, or the group \
             anew by removing its stream"
                .to_string(),
        ),
        (Role::Leads { .. }, Some(leader)) if leader.node == member.node => Ok(Counts::Ours),
        (Role::Leads { epoch }, Some(leader)) if leader.epoch <= epoch => Err(format!(
            "the stream is led by another server in epoch {}, and this one led in epoch {epoch}: the broker has lost what it knew. Stop the \
             other server, remove the stream, and start this one first; or remove {file} and the journal to follow",
            leader.epoch
        )),
        (Role::New | Role::Leads { .. }, Some(_)) | (Role::Follows, _) => Ok(Counts::Theirs),
    }
}

/// One reading of the stream, from its beginning.
struct Reading {
    counts: Counts,
    replica: Option<Replica>,
    manifest: Manifest,
    /// The last message that was read.
    position: u64,
    epoch: Option<u64>,
    leader: Option<Leader>,
    released: bool,
    /// When something was last heard, or the broker came back.
    heard: Instant,
    /// Not before this is the lead asked for.
    not_before: Instant,
}

impl Reading {
    fn new(counts: Counts, replica: Option<Replica>) -> Reading {
        let now = Instant::now();
        Reading {
            counts,
            replica,
            manifest: Manifest::default(),
            position: 0,
            epoch: None,
            leader: None,
            released: false,
            heard: now,
            not_before: now,
        }
    }

    async fn run(&mut self, follower: &Follower) -> io::Result<Ended> {
        let mut bell = None;
        let mut looks = interval(LOOK);
        looks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let mut risen = follower.weather.risen();
        loop {
            if let Some(ended) = self.catch_up(follower).await? {
                return Ok(ended);
            }
            if bell.is_none() {
                match follower.stream.bell(self.position + 1).await {
                    Ok(found) => bell = Some(found),
                    Err(error) => {
                        tracing::debug!(%error, "the stream of the standby cannot be read");
                        sleep(AGAIN).await;
                        continue;
                    }
                }
            }
            let due = self.due(follower);
            tokio::select! {
                biased;
                rung = next_of(&mut bell) => if !matches!(rung, Some(Ok(_))) {
                    bell = None;
                },
                () = until(due) => if let Some(ended) = self.ask(follower).await? {
                    return Ok(ended);
                },
                _ = looks.tick() => if let Ok(end) = follower.stream.end().await {
                    follower.state.behind.set(end.seq.saturating_sub(self.position));
                },
                () = follower.weather.changed() => {
                    if std::mem::replace(&mut risen, follower.weather.risen()) != follower.weather.risen() {
                        // Who was silent because the broker was away has not been silent; and it may not know us any more.
                        self.heard = Instant::now();
                        bell = None;
                    }
                }
            }
        }
    }

    /// Reads what there is: one by one, or many at once where one follows the other without a gap.
    async fn catch_up(&mut self, follower: &Follower) -> io::Result<Option<Ended>> {
        let mut run: u64 = 0;
        // Nobody asks for what is behind the end: nats-server 2.9.10 was seen to die of that when the stream had just been made anew.
        let Ok(last) = follower.stream.last().await else { return Ok(None) };
        if last < self.position {
            return Ok(Some(Ended::Again(FORGOTTEN)));
        }
        while self.position < last
            && let Ok(Some(next)) = follower.stream.next(self.position).await
        {
            run = if next.0 == self.position + 1 { (2 * run).clamp(1, RUN_MAX) } else { 0 };
            let more = match run >= RUN_MIN {
                true => follower.stream.some(next.0 + 1, run.min(last.saturating_sub(next.0))).await,
                false => Vec::new(),
            };
            if run >= RUN_MIN && (more.len() as u64) < run {
                run = 0;
            }
            for (seq, bytes) in [next].into_iter().chain(more) {
                if let Some(ended) = self.hear(follower, seq, &bytes)? {
                    return Ok(Some(ended));
                }
            }
        }
        Ok(None)
    }

    /// When the lead may be asked for, as things are.
    fn due(&self, follower: &Follower) -> Option<Instant> {
        let is_enough = self.counts == Counts::Ours || self.manifest.complete;
        if !is_enough || !follower.weather.is_up() {
            return None;
        }
        // An earlier life of this server does not live: it would have the folder.
        let is_vacant = self.released || self.leader.is_none_or(|leader| leader.node == follower.member.node);
        let due = if is_vacant { self.not_before } else { self.heard + follower.lease };
        Some(due.max(self.not_before))
    }

    fn hear(&mut self, follower: &Follower, seq: u64, bytes: &Bytes) -> io::Result<Option<Ended>> {
        let Some(Parcel { epoch, what }) = Parcel::decode(bytes) else {
            return Ok(Some(Ended::Again("a message of another version, or of somebody else")));
        };
        self.heard = Instant::now();
        match &what {
            What::Lead { node } => {
                if self.epoch.is_some_and(|before| epoch <= before) {
                    return Ok(Some(Ended::Again("an epoch that is over")));
                }
                tracing::info!(epoch, "a server takes the lead");
                self.leader = Some(Leader { epoch, node: *node });
                self.released = false;
            }
            What::Release { .. } => self.released = true,
            // Who led long ago is forgotten, and what he sent may still be there.
            _ if self.leader.is_none() && self.epoch.is_none_or(|before| epoch >= before) => {}
            _ if self.epoch.is_some_and(|before| epoch != before) => {
                return Ok(Some(Ended::Again("a message of an epoch of which the beginning was not heard")));
            }
            _ => {}
        }
        if self.manifest.note(&what).is_err() {
            return Ok(Some(Ended::Again("a piece of a file that does not fit")));
        }
        // Whoever leads has the broker forget them.
        while self.manifest.next_forgotten().is_some() {}
        if let Some(replica) = &mut self.replica {
            replica.apply(&what)?;
        }
        self.epoch = Some(epoch);
        self.position = seq;
        follower.state.set_epoch(epoch);
        follower.state.set_complete(self.manifest.complete);
        follower.state.count(bytes.len());
        Ok(None)
    }

    /// Asks for the lead: it is had if nothing was stored behind what was read.
    async fn ask(&mut self, follower: &Follower) -> io::Result<Option<Ended>> {
        self.not_before = Instant::now() + AGAIN;
        let Ok(end) = follower.stream.end().await else { return Ok(None) };
        if end.epoch.is_some() && end.seq > self.position {
            // It is read first.
            return Ok(None);
        }
        if end.epoch != self.epoch || end.epoch.is_some() && end.seq < self.position {
            return Ok(Some(Ended::Again(FORGOTTEN)));
        }
        let member = &follower.member;
        if self.counts == Counts::Ours {
            if self.leader.is_some_and(|leader| leader.node != member.node) {
                return Ok(Some(Ended::Again("another server was quicker")));
            }
            if !self.manifest.is_within(&follower.data)? {
                return Ok(Some(Ended::Lacking));
            }
        }
        let led = if let Role::Leads { epoch } = member.role { epoch } else { 0 };
        let epoch = self.epoch.unwrap_or(0).max(led) + 1;
        let parcel = Parcel { epoch, what: What::Lead { node: member.node } };
        let at = Instant::now();
        let place = Place { node: member.node, seq: end.seq + 1, behind: Behind::Stored };
        let kept = match follower.stream.send(&parcel, parcel.encode(), place).await {
            Ok(kept) => kept.await,
            Err(error) => Err(error),
        };
        match kept {
            Ok(ack) => Ok(Some(Ended::Won { epoch, seq: ack.sequence, at })),
            Err(error) => {
                // Whether it was stored after all will be read.
                tracing::debug!(%error, "the lead could not be had");
                Ok(None)
            }
        }
    }
}

async fn next_of(
    messages: &mut Option<Ordered>,
) -> Option<Result<Message, async_nats::jetstream::consumer::pull::OrderedError>> {
    match messages {
        Some(messages) => messages.next().await,
        None => None,
    }
}

async fn until(due: Option<Instant>) {
    match due {
        Some(due) => sleep_until(due).await,
        None => pending().await,
    }
}
