//! One reading of the stream: into the folder, into a staging folder beside it, or only to compare.

mod lead;

use std::collections::BTreeMap;
use std::future::pending;
use std::io;
use std::path::Path;
use std::time::Duration;

use async_nats::jetstream::Message;
use async_nats::jetstream::consumer::pull::Ordered;
use futures_util::StreamExt;
use pitlane_journal::disk::Disk;
use tokio::time::{Instant, MissedTickBehavior, interval, sleep, sleep_until};

use super::follower::{Follower, RETRY_PAUSE};
use super::manifest::{Manifest, REMOVED_MAX};
use super::message::{FilePiece, ReplicationKind, ReplicationMessage};
use super::node::GroupMember;
use super::origin::{self, ForeignReason, StreamMessage, VerifiedMessage};
use super::position::{CopyPosition, PositionFile};
use super::replica::Replica;
use super::stream::Leader;
use super::verdict::{LeadRefusal, LeadVerdict};

/// Interval at which the lag of this server is measured.
const LAG_INTERVAL: Duration = Duration::from_secs(1);

/// Number of consecutive messages after which several are requested at once; and the largest such
/// batch, of half a megabyte per message.
const RUN_MIN: u64 = 8;
const RUN_MAX: u64 = 64;

/// Number of leases for which the server that led before waits when it starts, or the broker comes
/// back, and its own last lease has ended. Another server may have led since, and the broker may
/// have lost that: this is the time in which the other finds it out, restarts and leads again.
pub(super) const FORMER_LEASES: u32 = 2;
/// Number of leases for which a copy waits for the server that led before, if it has not seen a
/// leader alive: that server has at least as many records, and waits itself.
const UNSEEN_LEASES: u32 = FORMER_LEASES + 1;
/// The same for a copy that is longer than the stream.
pub(super) const RESTORE_LEASES: u32 = FORMER_LEASES + 2;

const FORGOTTEN: &str = "the broker has lost messages that it had stored";
const PASSED: &str = "another server has taken the lead first";

/// The target of a reading.
#[derive(Debug)]
pub(super) enum ReadTarget {
    /// No target: the stream is compared with this folder, which is authoritative.
    Own {
        /// Number of leases to wait before it leads.
        leases: u32,
    },
    Folder(Replica),
    Stage(Replica),
}

/// The reason why a reading ended.
#[derive(Debug)]
pub(super) enum ReadingEnd {
    Won {
        epoch: u64,
        seq: u64,
        /// Id of the lead message.
        id: String,
        at: Instant,
    },
    /// The reading must start again: the stream no longer contains what was read.
    Restart(&'static str),
    /// The folder lacks something that the stream has.
    Lacking,
    /// An operator has to decide.
    Refused(LeadRefusal),
}

#[derive(Debug)]
pub(super) struct StreamReading {
    target: ReadTarget,
    pub manifest: Manifest,
    /// Last message that was read or skipped.
    pub position: u64,
    /// Hash of that message, to recognise it; `None` if it is unknown.
    hash: Option<u64>,
    epoch: Option<u64>,
    /// Epoch of the first leader that the stream remembers, once it is known.
    first_epoch: Option<u64>,
    leader: Option<Leader>,
    pub released: bool,
    /// Time of the last message, or of the broker's return.
    last_message_at: Instant,
    /// Whether the end of the stream was reached since the broker is connected.
    is_at_end: bool,
    /// Whether the last message was stored while this server was at the end of the stream, so that
    /// its sender was alive then.
    is_live: bool,
    /// Earliest time at which the lead is requested.
    not_before: Instant,
    file: Option<PositionFile>,
    /// Files whose last piece is missing, with the message of the first piece.
    parts: BTreeMap<String, u64>,
    /// Last message whose contents the copy may already contain.
    held_to: u64,
    /// Number of files removed since the copy was resumed, until it has caught up.
    removed: usize,
    /// Epoch of a leader whose whole folder is in the stream.
    restored: Option<u64>,
    /// Message up to which folder and staging folder were last compared, and when.
    compared: Option<(u64, Instant)>,
    /// How the folder may lead, according to the last comparison.
    may_lead: Option<LeadVerdict>,
    /// Broker connection count at which the stream was last verified to be what was read.
    connection_count: u64,
    logged_full: bool,
}

impl StreamReading {
    pub(super) fn new(target: ReadTarget) -> StreamReading {
        let now = Instant::now();
        StreamReading {
            target,
            manifest: Manifest::default(),
            position: 0,
            hash: None,
            epoch: None,
            first_epoch: None,
            leader: None,
            released: false,
            last_message_at: now,
            is_at_end: false,
            is_live: false,
            not_before: now,
            file: None,
            parts: BTreeMap::new(),
            held_to: 0,
            removed: 0,
            restored: None,
            compared: None,
            may_lead: None,
            connection_count: 0,
            logged_full: false,
        }
    }

    /// Stores the position in this file.
    pub(super) fn writing(self, position: &Path) -> io::Result<StreamReading> {
        Ok(StreamReading { file: Some(PositionFile::open(position)?), ..self })
    }

    /// Resumes with a copy.
    pub(super) fn resumed(
        target: ReadTarget,
        member: &GroupMember,
        position: CopyPosition,
        manifest: Manifest,
        released: bool,
    ) -> io::Result<StreamReading> {
        let reading = StreamReading {
            manifest,
            position: position.done,
            epoch: Some(position.leader.epoch),
            leader: Some(position.leader),
            released,
            held_to: position.reach,
            ..StreamReading::new(target)
        };
        reading.writing(&member.position_path())
    }

    pub(super) async fn run(&mut self, follower: &mut Follower) -> io::Result<ReadingEnd> {
        let mut new_messages = None;
        let mut lag_timer = interval(LAG_INTERVAL);
        lag_timer.set_missed_tick_behavior(MissedTickBehavior::Delay);
        self.connection_count = follower.broker_health.connection_count();
        let is_acknowledged_there = follower.is_all_acknowledged_there().await;
        loop {
            if let Some(ended) = self.catch_up(follower).await? {
                return Ok(ended);
            }
            if let Some(ended) = self.compare_if_due(follower, is_acknowledged_there)? {
                return Ok(ended);
            }
            if new_messages.is_none() {
                match follower.stream.subscribe(self.position + 1).await {
                    Ok(found) => new_messages = Some(found),
                    Err(error) => {
                        tracing::debug!(%error, "the stream of the standby cannot be read");
                        sleep(RETRY_PAUSE).await;
                        continue;
                    }
                }
            }
            let due = self.due(follower);
            tokio::select! {
                biased;
                message = next_of(&mut new_messages) => if !matches!(message, Some(Ok(_))) {
                    new_messages = None;
                },
                () = until(due) => if let Some(ended) = self.request_lead(follower, is_acknowledged_there).await? {
                    return Ok(ended);
                },
                _ = lag_timer.tick() => if let Ok(end) = follower.stream.end().await {
                    follower.state.behind.set(end.seq.saturating_sub(self.position));
                },
                () = follower.broker_health.changed() => if self.connection_count != follower.broker_health.connection_count() {
                    // A leader that was silent because the broker was away has not been silent; and
                    // the broker may have lost the subscription.
                    self.wait_again();
                    new_messages = None;
                }
            }
        }
    }

    /// Reads the available messages: one by one, or in batches where numbers are consecutive.
    async fn catch_up(&mut self, follower: &Follower) -> io::Result<Option<ReadingEnd>> {
        let mut run: u64 = 0;
        // The loop never asks for a message behind the end: nats-server 2.9.10 was seen to crash on
        // that when the stream had just been recreated.
        let Ok(last) = follower.stream.last().await else { return Ok(None) };
        if last < self.position {
            return Ok(Some(ReadingEnd::Restart(FORGOTTEN)));
        }
        let before = self.position;
        if self.connection_count != follower.broker_health.connection_count() {
            // A broker that came back may have lost messages, and others may have stored new ones
            // since.
            match self.is_still_there(follower).await {
                Some(true) => {
                    self.connection_count = follower.broker_health.connection_count();
                    self.wait_again();
                }
                Some(false) => return Ok(Some(ReadingEnd::Restart(FORGOTTEN))),
                None => return Ok(None),
            }
        }
        if self.leader.is_none() && self.first_epoch.is_none() {
            match follower.stream.first_epoch().await {
                Ok(first) => self.first_epoch = Some(first),
                Err(_) => return Ok(None),
            }
        }
        while self.position < last {
            let next = match follower.stream.next(self.position).await {
                Ok(Some(next)) => next,
                // The last messages were removed: there is nothing left to read.
                Ok(None) => {
                    (self.position, self.hash) = (last, None);
                    break;
                }
                Err(_) => break,
            };
            run = if next.seq == self.position + 1 { (2 * run).clamp(1, RUN_MAX) } else { 0 };
            let more = match run >= RUN_MIN {
                true => {
                    follower.stream.fetch_range(next.seq + 1, run.min(last.saturating_sub(next.seq))).await
                }
                false => Vec::new(),
            };
            if run >= RUN_MIN && (more.len() as u64) < run {
                run = 0;
            }
            let messages: Vec<StreamMessage> = [next].into_iter().chain(more).collect();
            if messages.iter().any(StreamMessage::is_lead) {
                match self.is_still_there(follower).await {
                    Some(true) => {}
                    Some(false) => return Ok(Some(ReadingEnd::Restart(FORGOTTEN))),
                    None => return Ok(None),
                }
            }
            self.note_position(messages.last().map_or(0, |found| found.seq))?;
            for found in messages {
                if let Some(ended) = self.handle_message(follower, found)? {
                    return Ok(Some(ended));
                }
            }
        }
        if self.position > before {
            self.note_position(self.position)?;
        }
        if self.position >= last {
            (self.held_to, self.removed) = (0, 0);
            self.is_at_end = true;
            if self.is_passed(follower) {
                return Ok(Some(ReadingEnd::Restart(PASSED)));
            }
        }
        Ok(None)
    }

    /// Waits for a leader again, as long as after a start: the broker may have lost messages, and
    /// others may have stored new ones since.
    fn wait_again(&mut self) {
        self.last_message_at = Instant::now();
        (self.is_at_end, self.is_live) = (false, false);
        if let ReadTarget::Own { leases } = &mut self.target {
            *leases = FORMER_LEASES.max(*leases);
        }
    }

    /// Returns whether another server has taken the lead while this one waits to lead with its own
    /// folder.
    fn is_passed(&self, follower: &Follower) -> bool {
        // An earlier process of this server cannot be alive: it would hold the lock on the folder.
        let is_other = |leader: Leader| leader.node != follower.member.node;
        matches!(self.target, ReadTarget::Own { .. }) && self.leader.is_some_and(is_other)
    }

    /// Returns whether the stream still contains what was read; `None` if the broker does not
    /// answer.
    async fn is_still_there(&self, follower: &Follower) -> Option<bool> {
        match self.leader {
            Some(leader) => follower.stream.has_history(leader, self.position.max(self.held_to)).await.ok(),
            None => Some(true),
        }
    }

    /// Writes the position. From then on the copy may contain parts of messages up to `reach`.
    fn note_position(&self, reach: u64) -> io::Result<()> {
        let (Some(file), Some(leader)) = (&self.file, self.leader) else { return Ok(()) };
        let done = self.parts.values().min().map_or(self.position, |first| self.position.min(first - 1));
        let reach = reach.max(self.held_to);
        let boot = Disk::Real.boot();
        file.write(&CopyPosition { leader, done, reach, complete: self.manifest.complete, boot })
    }

    /// Returns when the lead may be requested.
    fn due(&self, follower: &Follower) -> Option<Instant> {
        if !follower.broker_health.is_up() {
            return None;
        }
        let leases = match &self.target {
            ReadTarget::Folder(_) if !self.manifest.complete => return None,
            ReadTarget::Folder(_) if self.released => 0,
            ReadTarget::Folder(_) if self.is_live => 1,
            ReadTarget::Folder(_) => UNSEEN_LEASES,
            ReadTarget::Own { leases } => *leases,
            ReadTarget::Stage(_) if self.may_lead == Some(LeadVerdict::LeadNow) => 0,
            ReadTarget::Stage(_) => RESTORE_LEASES,
        };
        let due = if leases == 0 { self.not_before } else { self.last_message_at + leases * follower.lease };
        Some(due.max(self.not_before))
    }

    fn handle_message(
        &mut self,
        follower: &Follower,
        found: StreamMessage,
    ) -> io::Result<Option<ReadingEnd>> {
        let leader = self.leader.map(|leader| (leader.epoch, leader.node));
        let first = self.first_epoch.unwrap_or(0);
        let checked = found.content.as_ref().map_err(|why| *why);
        if let Err(why) = checked.and_then(|verified| origin::from_leader(verified, leader, first)) {
            return Ok(self.skip(follower, &found, why));
        }
        let StreamMessage {
            seq,
            hash,
            bytes,
            content: Ok(VerifiedMessage { node, message: ReplicationMessage { epoch, kind } }),
            ..
        } = found
        else {
            return Ok(None);
        };
        self.last_message_at = Instant::now();
        self.is_live = self.is_at_end;
        match &kind {
            ReplicationKind::Lead { .. } => {
                tracing::info!(epoch, "a server takes the lead");
                self.leader = Some(Leader { epoch, node, seq });
                self.released = false;
            }
            ReplicationKind::Release { .. } => self.released = true,
            ReplicationKind::Complete => self.restored = Some(epoch),
            ReplicationKind::Beat
            | ReplicationKind::Reserve { .. }
            | ReplicationKind::Append(_)
            | ReplicationKind::Whole(_)
            | ReplicationKind::Page(_)
            | ReplicationKind::Removed(_) => {}
        }
        if let Some(ended) = self.apply(seq, kind)? {
            return Ok(Some(ended));
        }
        // The leader makes the broker forget these files.
        while self.manifest.next_forgotten().is_some() {}
        self.epoch = Some(epoch);
        (self.position, self.hash) = (seq, Some(hash));
        follower.state.set_epoch(epoch);
        if !matches!(self.target, ReadTarget::Stage(_)) {
            follower.state.set_complete(self.manifest.complete);
        }
        follower.state.count(bytes);
        Ok(None)
    }

    /// Skips a message that is not the leader's. It does not renew the lease.
    fn skip(&mut self, follower: &Follower, found: &StreamMessage, why: ForeignReason) -> Option<ReadingEnd> {
        // The sender leads, and this version cannot follow it, so this server waits.
        if matches!(why, ForeignReason::OtherVersion { .. }) {
            return Some(ReadingEnd::Restart("a server of another version leads"));
        }
        follower.state.note_foreign(found, why);
        (self.position, self.hash) = (found.seq, Some(found.hash));
        None
    }

    /// Applies the contents of a message.
    fn apply(&mut self, seq: u64, kind: ReplicationKind) -> io::Result<Option<ReadingEnd>> {
        let kind = if let ReplicationKind::Append(piece) = kind {
            match self.trim(seq, piece)? {
                Ok(Some(piece)) => ReplicationKind::Append(piece),
                Ok(None) => return Ok(None),
                Err(differs) => return Ok(Some(ReadingEnd::Restart(differs))),
            }
        } else {
            kind
        };
        match &kind {
            ReplicationKind::Whole(piece) if piece.end() == piece.total => _ = self.parts.remove(&piece.path),
            ReplicationKind::Whole(piece) if piece.offset == 0 => {
                _ = self.parts.insert(piece.path.clone(), seq)
            }
            ReplicationKind::Removed(path) => {
                self.parts.remove(path);
                self.removed += usize::from(self.held_to > 0);
                if self.removed >= REMOVED_MAX {
                    return Ok(Some(ReadingEnd::Restart(
                        "so many files were removed that others may have been missed",
                    )));
                }
            }
            ReplicationKind::Lead { .. }
            | ReplicationKind::Release { .. }
            | ReplicationKind::Beat
            | ReplicationKind::Reserve { .. }
            | ReplicationKind::Complete
            | ReplicationKind::Append(_)
            | ReplicationKind::Whole(_)
            | ReplicationKind::Page(_) => {}
        }
        if self.manifest.note(&kind).is_err() {
            return match (&self.target, kind.path()) {
                // This folder is authoritative: the parts of the file that the stream lacks are
                // sent again.
                (ReadTarget::Own { .. }, Some(path)) => {
                    self.manifest.drop_file(path);
                    Ok(None)
                }
                _ => Ok(Some(ReadingEnd::Restart("a piece of a file that does not fit"))),
            };
        }
        match &mut self.target {
            ReadTarget::Folder(replica) | ReadTarget::Stage(replica) => replica.apply(&kind)?,
            ReadTarget::Own { .. } => {}
        }
        Ok(None)
    }

    /// Returns the part of a piece that is not in the copy yet: a resumed copy may already contain
    /// the last messages.
    fn trim(&mut self, seq: u64, piece: FilePiece) -> io::Result<Result<Option<FilePiece>, &'static str>> {
        let held = self.manifest.grown(&piece.path);
        match &mut self.target {
            ReadTarget::Folder(replica) if seq <= self.held_to => {
                Ok(replica.trim(&piece, held)?.map_err(|_| "a file that differs from the copy that is here"))
            }
            ReadTarget::Folder(_) | ReadTarget::Stage(_) | ReadTarget::Own { .. } => Ok(Ok(Some(piece))),
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
