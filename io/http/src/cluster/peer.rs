//! Another server, as the owner of some shards.
//!
//! ```text
//!              a heartbeat                        its snapshot is complete
//!  Down ─────────────────────────► Joining ──────────────────────────────► Up
//!   ▲ │                               │                                     │
//!   │ └─ a heartbeat of the same incarnation, missed batches are kept ────► │
//!   └──────────────── silent for a lease, or sent a goodbye ────────────────┘
//! ```
//!
//! While it is not up, commands for it are refused with `owner-away`. Commands that were sent
//! before and not answered are in doubt: they are sent again to the same incarnation, which takes
//! each once. A new incarnation reports their result, or it is certain that they never took effect.

use std::collections::{BTreeMap, VecDeque};

use pitlane_engine::command::{Command, CommandKind};
use pitlane_engine::id::{PortMask, SecurityId, ShardId};
use pitlane_engine::index::index_usize;
use pitlane_engine::mesh::ShardEnd;
use pitlane_engine::time::{NS_PER_MS, Timestamp};
use pitlane_protocols::remote::cluster::{
    AnswerKey, ClusterBatch, ClusterBroadcast, ClusterEvent, ClusterMessage, EventRecipient, MemberId,
    MemberIdentity,
};

use super::far_shard::FarShard;
use super::incarnations::{IncarnationVerdict, Incarnations};
use super::owner::RESEND_MAX;

/// Maximum number of batches that wait for a missing one. Further ones are dropped and requested
/// again.
const STASH_MAX: usize = 256;
/// Maximum number of items that wait for room in our lanes; until then no further batch is opened.
const ITEMS_MAX: usize = 8_192;
/// Commands in one message: some 10 KB.
const COMMANDS_PER_MESSAGE_MAX: usize = 64;
/// Number of commands in flight from which on no further ones are taken until some are
/// acknowledged.
const UNACKNOWLEDGED_MAX: usize = 1_024;
/// Maximum number of commands without a response; the next is refused, as if the owner were away.
const PENDING_MAX: usize = 65_536;
/// Time without progress after which something is requested or sent again.
const RETRY_NS: u64 = 200 * NS_PER_MS;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum PeerPhase {
    Down,
    Joining,
    Up,
}

/// A command in flight.
#[derive(Clone, Copy, Debug)]
pub(super) struct RoutedCommand {
    pub shard: ShardId,
    pub command: Command,
    /// The incarnation of the owner to which it was sent.
    pub incarnation: u64,
}

#[derive(Debug)]
pub(super) struct ClusterPeer {
    pub name: String,
    member: MemberId,
    own: MemberIdentity,
    pub phase: PeerPhase,
    incarnations: Incarnations,
    lease_ns: u64,
    /// Whether it has other settings or reference data than we; then all its messages are ignored.
    pub is_incompatible: bool,
    /// Whether it was away and sent a message of another version, and none of ours since.
    pub has_other_version: bool,
    /// Number of the next batch; `None` until it has answered our join.
    next: Option<u64>,
    /// Number of its last batch, as far as we know.
    last: u64,
    stash: BTreeMap<u64, ClusterBatch>,
    items: VecDeque<ClusterEvent>,
    pub shards: Vec<FarShard>,
    /// When its last message arrived.
    pub received_at: Timestamp,
    /// Whether its last message was a goodbye.
    has_left: bool,
    /// When we last requested a snapshot or missing batches.
    requested_at: Timestamp,
    /// Number of the first of the missing batches that were requested.
    requested_from: u64,
    /// Number of the last command, of the last one that was sent, and of the last one it has taken.
    number: u64,
    sent: u64,
    taken: u64,
    sent_at: Timestamp,
    /// Commands not known to be taken: from `taken + 1` to `number`.
    unacknowledged: VecDeque<(ShardId, Command)>,
    pub pending: BTreeMap<AnswerKey, RoutedCommand>,
    wants_sent: bool,
    /// By shard: the last event that FIX sessions of this server had reported before our own
    /// restart. `None` once the owner has been up for the first time.
    pub received_before_start: Option<Vec<(ShardId, u64)>>,
    pub counts: PeerCounts,
}

/// Counters since the start.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct PeerCounts {
    pub routed: u64,
    pub events: u64,
    pub gaps: u64,
    pub snapshots: u64,
    pub refused: u64,
}

impl ClusterPeer {
    /// Creates a peer with its bounds: how many orders each shard has, and how long the peer may be
    /// silent.
    pub(super) fn new(
        name: String,
        member: MemberId,
        own: MemberIdentity,
        ends: Vec<ShardEnd>,
        (orders_max, lease_ns): (u32, u64),
    ) -> ClusterPeer {
        ClusterPeer {
            name,
            member,
            own,
            phase: PeerPhase::Down,
            incarnations: Incarnations::default(),
            lease_ns,
            is_incompatible: false,
            has_other_version: false,
            next: None,
            last: 0,
            stash: BTreeMap::new(),
            items: VecDeque::new(),
            shards: ends.into_iter().map(|end| FarShard::new(end, orders_max)).collect(),
            received_at: Timestamp::ZERO,
            has_left: false,
            requested_at: Timestamp::ZERO,
            requested_from: 0,
            number: 0,
            sent: 0,
            taken: 0,
            sent_at: Timestamp::ZERO,
            unacknowledged: VecDeque::new(),
            pending: BTreeMap::new(),
            wants_sent: false,
            received_before_start: None,
            counts: PeerCounts::default(),
        }
    }

    pub(super) fn is_up(&self) -> bool {
        self.phase == PeerPhase::Up
    }

    /// Returns the milliseconds since its last message; `None` if there was none.
    pub(super) fn age_ms(&self, now: Timestamp) -> Option<u64> {
        (self.received_at > Timestamp::ZERO).then(|| now.since(self.received_at) / NS_PER_MS)
    }

    pub(super) fn has_room(&self) -> bool {
        self.unacknowledged.len() < UNACKNOWLEDGED_MAX
    }

    /// Handles a message to all, or a batch that is sent to us again.
    pub(super) fn handle_broadcast(&mut self, now: Timestamp, broadcast: ClusterBroadcast) {
        let sender = broadcast.sender();
        self.is_incompatible = sender.map != self.own.map;
        if self.is_incompatible {
            return self.mark_down();
        }
        if !self.accepts_incarnation(now, sender.incarnation) {
            return;
        }
        (self.received_at, self.has_other_version) = (now, false);
        match broadcast {
            ClusterBroadcast::Batch(batch) => {
                self.last = self.last.max(batch.number);
                let is_next = self.next == Some(batch.number);
                let is_new = self.next.is_none_or(|next| batch.number >= next);
                if is_next || is_new && self.stash.len() < STASH_MAX {
                    self.stash.insert(batch.number, batch);
                }
            }
            ClusterBroadcast::Heartbeat { last, .. } => self.last = self.last.max(last),
            ClusterBroadcast::Prices { events, .. } => {
                // Prices are useless before the snapshot.
                if self.next.is_some() && self.items.len() < ITEMS_MAX {
                    self.items.extend(events.into_iter().filter(|item| item.to == EventRecipient::All));
                }
            }
            ClusterBroadcast::Bye { .. } => {
                self.has_left = true;
                self.mark_down();
            }
        }
    }

    /// Returns whether a message of this incarnation is to be handled. A new incarnation begins
    /// with its first message.
    pub(super) fn accepts_incarnation(&mut self, now: Timestamp, incarnation: u64) -> bool {
        let before = self.incarnations.current();
        match self.incarnations.classify(now, incarnation, self.lease_ns) {
            IncarnationVerdict::Current => true,
            IncarnationVerdict::New => {
                self.handle_restart();
                true
            }
            IncarnationVerdict::Lower => {
                tracing::warn!(
                    member = self.name,
                    incarnation,
                    before,
                    "a member has begun again with a lower number: its data folder is new or an older copy"
                );
                self.handle_restart();
                true
            }
            IncarnationVerdict::Ignored { is_first } => {
                if is_first {
                    tracing::warn!(
                        member = self.name,
                        incarnation,
                        current = before,
                        "messages of an earlier start are ignored until the later one is silent for cluster.lease_ms"
                    );
                }
                false
            }
        }
    }

    fn incarnation(&self) -> u64 {
        self.incarnations.current()
    }

    /// Handles a restart of the peer: its numbers start again.
    fn handle_restart(&mut self) {
        (self.next, self.last, self.has_left) = (None, 0, false);
        self.stash.clear();
        // `items` stay: events of the earlier incarnation are delivered before those of the new
        // one.
        self.unacknowledged.clear();
        (self.number, self.sent, self.taken, self.requested_from) = (0, 0, 0, 0);
        (self.phase, self.wants_sent, self.requested_at) = (PeerPhase::Down, false, Timestamp::ZERO);
        self.shards.iter_mut().for_each(FarShard::handle_restart);
    }

    /// Marks the peer as down.
    pub(super) fn mark_down(&mut self) {
        self.phase = PeerPhase::Down;
        self.wants_sent = false;
    }

    /// Handles a message of the peer as the owner.
    pub(super) fn handle_message(&mut self, message: &ClusterMessage) {
        if message.sender().incarnation != self.incarnation() || self.incarnation() == 0 {
            return;
        }
        match *message {
            ClusterMessage::Joined { after, complete, .. } if self.next.is_none() => {
                self.next = Some(after.saturating_add(1));
                self.stash.retain(|number, _| *number > after);
                self.counts.snapshots += 1;
                if !complete {
                    // Which sessions have missed something is unknown: those that never traded have
                    // reported nothing either.
                    tracing::warn!(
                        member = self.name,
                        "order events are no longer kept: FIX clients receive the status of their orders"
                    );
                    self.shards.iter_mut().for_each(FarShard::request_order_statuses);
                }
            }
            ClusterMessage::Gone { .. } => self.rejoin(),
            ClusterMessage::Taken { incarnation, number, .. } if incarnation == self.own.incarnation => {
                while self.taken < number && self.unacknowledged.pop_front().is_some() {
                    self.taken += 1;
                }
                self.sent = self.sent.max(self.taken);
            }
            ClusterMessage::Joined { .. }
            | ClusterMessage::Taken { .. }
            | ClusterMessage::Join { .. }
            | ClusterMessage::Fetch { .. }
            | ClusterMessage::Commands { .. }
            | ClusterMessage::Wants { .. } => {}
        }
    }

    fn rejoin(&mut self) {
        self.next = None;
        self.stash.clear();
        self.phase = PeerPhase::Down;
        self.requested_at = Timestamp::ZERO;
        self.shards.iter_mut().for_each(FarShard::begin_resync);
    }

    /// Opens batches and delivers their items, as far as there is room. `to_wake` collects the
    /// ports to wake.
    pub(super) fn poll(&mut self, to_wake: &mut PortMask) -> usize {
        let mut work = 0;
        loop {
            while self.items.len() < ITEMS_MAX
                && let Some(batch) = self.next.and_then(|next| self.stash.remove(&next))
            {
                self.next = Some(batch.number.saturating_add(1));
                self.items.extend(batch.items);
            }
            let settled =
                self.shards.iter_mut().map(|shard| shard.flush(to_wake)).fold(true, |all, one| all & one);
            let Some(item) = self.items.front().copied().filter(|_| settled) else { return work };
            self.items.pop_front();
            work += 1;
            self.counts.events += 1;
            let (member, own) = (self.member, self.own.member);
            let event = self.shard_mut(item.shard).and_then(|shard| shard.deliver(member, own, &item));
            if let Some(key) = event.as_ref().and_then(AnswerKey::of_event) {
                self.pending.remove(&key);
            }
        }
    }

    /// Returns the next message to send now.
    pub(super) fn next_message(&mut self, now: Timestamp) -> Option<ClusterMessage> {
        if self.incarnation() == 0 || self.is_incompatible {
            return None;
        }
        let is_due = now >= self.requested_at.plus(RETRY_NS);
        let awaits_snapshot =
            self.is_up() && self.shards.iter().any(|shard| !shard.subscriptions.waiting.is_empty());
        if is_due && (self.next.is_none() || awaits_snapshot) {
            self.requested_at = now;
            return Some(self.join());
        }
        let next = self.next?;
        // The whole reply has arrived, or none.
        let may_request = is_due || next >= self.requested_from.saturating_add(RESEND_MAX);
        let is_missing = next <= self.last && !self.stash.contains_key(&next);
        if is_missing && may_request && self.items.len() < ITEMS_MAX {
            (self.requested_at, self.requested_from) = (now, next);
            self.counts.gaps += 1;
            return Some(ClusterMessage::Fetch {
                sender: self.own,
                incarnation: self.incarnation(),
                from: next,
            });
        }
        if !std::mem::replace(&mut self.wants_sent, true) {
            return Some(self.wants());
        }
        self.next_commands(now)
    }

    fn join(&mut self) -> ClusterMessage {
        if self.phase == PeerPhase::Down {
            self.phase = PeerPhase::Joining;
        }
        let received = |shard: &FarShard| (shard.id(), shard.seq());
        let received =
            self.received_before_start.clone().unwrap_or_else(|| self.shards.iter().map(received).collect());
        ClusterMessage::Join { sender: self.own, incarnation: self.incarnation(), received }
    }

    fn next_commands(&mut self, now: Timestamp) -> Option<ClusterMessage> {
        if self.sent > self.taken && now >= self.sent_at.plus(RETRY_NS) {
            // All that was not taken is sent again.
            self.sent = self.taken;
        }
        let skip = index_usize(self.sent - self.taken);
        let batch: Vec<_> =
            self.unacknowledged.iter().skip(skip).take(COMMANDS_PER_MESSAGE_MAX).copied().collect();
        if batch.is_empty() {
            return None;
        }
        let first = self.sent + 1;
        self.sent += batch.len() as u64;
        self.sent_at = now;
        Some(ClusterMessage::Commands {
            sender: self.own,
            incarnation: self.incarnation(),
            first,
            commands: batch,
        })
    }

    pub(super) fn wants_changed(&mut self) {
        self.wants_sent = false;
    }

    /// Returns all market data that ports here subscribe to.
    pub(super) fn wants(&self) -> ClusterMessage {
        let mut wants: [Vec<SecurityId>; 5] = Default::default();
        for shard in &self.shards {
            for (all, some) in wants.iter_mut().zip(shard.subscriptions.wants()) {
                all.extend(some);
            }
        }
        let [ticks, depths, levels, book_orders, trades] = wants;
        let incarnation = self.incarnation();
        ClusterMessage::Wants { sender: self.own, incarnation, ticks, depths, levels, book_orders, trades }
    }

    /// Returns whether all that it has sent is delivered: then it is up.
    pub(super) fn is_caught_up(&self) -> bool {
        !(self.has_left || self.is_incompatible)
            && self.next.is_some_and(|next| next > self.last)
            && self.items.is_empty()
            && self.shards.iter().all(|shard| shard.is_complete)
    }

    /// Takes a command for the peer. Returns false if too many commands are without a response.
    pub(super) fn route(&mut self, shard: ShardId, command: Command) -> bool {
        if self.pending.len() >= PENDING_MAX {
            return false;
        }
        self.number += 1;
        self.unacknowledged.push_back((shard, command));
        // Special terms have no answer of their own: the request behind them has one.
        if !matches!(command.body, CommandKind::SpecialTerms(_)) {
            let routed = RoutedCommand { shard, command, incarnation: self.incarnation() };
            self.pending.insert(AnswerKey::of_command(&command), routed);
        }
        self.counts.routed += 1;
        true
    }

    /// Sends the owner the senders of this server that it does not know. There is no response.
    pub(super) fn send_senders(&mut self) {
        for shard in &mut self.shards {
            while let Some(command) = shard.next_sender() {
                self.number += 1;
                self.unacknowledged.push_back((shard.id(), command));
            }
        }
    }

    /// Removes and returns the unanswered commands that were sent to an earlier incarnation of the
    /// owner.
    pub(super) fn take_lost(&mut self) -> Vec<RoutedCommand> {
        let incarnation = self.incarnation();
        let lost: Vec<AnswerKey> = self
            .pending
            .iter()
            .filter(|(_, routed)| routed.incarnation != incarnation)
            .map(|(key, _)| *key)
            .collect();
        lost.iter().filter_map(|key| self.pending.remove(key)).collect()
    }

    pub(super) fn shard_mut(&mut self, id: ShardId) -> Option<&mut FarShard> {
        self.shards.iter_mut().find(|shard| shard.id() == id)
    }
}

#[cfg(test)]
mod tests;
