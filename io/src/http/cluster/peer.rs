//! Another server, as the owner of some shards.
//!
//! ```text
//!              a beat of a life                   its snapshot is complete
//!  Away ─────────────────────────► Joining ──────────────────────────────► Here
//!   ▲ │                               │                                     │
//!   │ └── a beat of the same life, and the missed posts are still kept ───► │
//!   └──────────────── silent for a lease, or sent a goodbye ────────────────┘
//! ```
//!
//! While it is not here, commands for it are refused with `owner-away`. Commands that were sent
//! before and not answered are in doubt: they are sent again to the same life, which takes each
//! once. A new life reports their result, or it is certain that they never took effect.

use std::collections::{BTreeMap, VecDeque};

use pitlane_engine::cluster::{
    AnswerKey, ClusterBatch, ClusterBroadcast, ClusterEvent, ClusterMessage, EventRecipient, MemberId,
    MemberIdentity,
};
use pitlane_engine::command::Command;
use pitlane_engine::id::{PortMask, SecurityId, ShardId};
use pitlane_engine::mesh::ShardEnd;
use pitlane_engine::time::{NS_PER_MS, Timestamp};

use super::far_shard::FarShard;
use super::lives::{Lives, Verdict};
use super::owner::AGAIN_MAX;

/// Maximum number of posts that wait for a missing one. Further ones are dropped and requested
/// again.
const STASH_MAX: usize = 256;
/// Maximum number of items that wait for room in our lanes; until then no further post is opened.
const ITEMS_MAX: usize = 8_192;
/// Commands in one letter: some 10 KB.
const COMMANDS_PER_LETTER_MAX: usize = 64;
/// Number of commands in flight from which on no further ones are taken until some are
/// acknowledged.
const UNTAKEN_MAX: usize = 1_024;
/// Maximum number of commands without a response; the next is refused, as if the owner were away.
const ASKED_MAX: usize = 65_536;
/// Time without progress after which something is requested or sent again.
const AGAIN_NS: u64 = 200 * NS_PER_MS;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Phase {
    Away,
    Joining,
    Here,
}

/// A command in flight.
#[derive(Clone, Copy, Debug)]
pub struct Asked {
    pub shard: ShardId,
    pub command: Command,
    /// The life of the owner to which it was sent.
    pub life: u64,
}

#[derive(Debug)]
pub struct Peer {
    pub name: String,
    member: MemberId,
    own: MemberIdentity,
    pub phase: Phase,
    lives: Lives,
    lease_ns: u64,
    /// Whether it has other settings or reference data than we; then all its messages are ignored.
    pub is_stranger: bool,
    /// Number of the next post; `None` until it has answered our join.
    next: Option<u64>,
    /// Number of its last post, as far as we know.
    last: u64,
    stash: BTreeMap<u64, ClusterBatch>,
    items: VecDeque<ClusterEvent>,
    pub shards: Vec<FarShard>,
    /// When its last message arrived.
    pub heard_at: Timestamp,
    /// Whether its last message was a goodbye.
    has_left: bool,
    /// When we last requested a snapshot or missing posts.
    asked_at: Timestamp,
    /// Number of the first of the missing posts that were requested.
    asked_from: u64,
    /// Number of the last command, of the last one that was sent, and of the last one it has taken.
    number: u64,
    sent: u64,
    taken: u64,
    sent_at: Timestamp,
    /// Commands not known to be taken: from `taken + 1` to `number`.
    untaken: VecDeque<(ShardId, Command)>,
    pub asked: BTreeMap<AnswerKey, Asked>,
    wants_told: bool,
    /// By shard: the last event that FIX sessions of this server had reported before our own
    /// restart. `None` once the owner has been here for the first time.
    pub heard_before: Option<Vec<(ShardId, u64)>>,
    pub counts: Counts,
}

/// Counters since the start.
#[derive(Clone, Copy, Debug, Default)]
pub struct Counts {
    pub routed: u64,
    pub events: u64,
    pub gaps: u64,
    pub snapshots: u64,
    pub refused: u64,
}

impl Peer {
    /// Creates a peer with its bounds: how many orders each shard has, and how long the peer may be
    /// silent.
    pub fn new(
        name: String,
        member: MemberId,
        own: MemberIdentity,
        ends: Vec<ShardEnd>,
        (orders_max, lease_ns): (u32, u64),
    ) -> Peer {
        Peer {
            name,
            member,
            own,
            phase: Phase::Away,
            lives: Lives::default(),
            lease_ns,
            is_stranger: false,
            next: None,
            last: 0,
            stash: BTreeMap::new(),
            items: VecDeque::new(),
            shards: ends.into_iter().map(|end| FarShard::new(end, orders_max)).collect(),
            heard_at: Timestamp::ZERO,
            has_left: false,
            asked_at: Timestamp::ZERO,
            asked_from: 0,
            number: 0,
            sent: 0,
            taken: 0,
            sent_at: Timestamp::ZERO,
            untaken: VecDeque::new(),
            asked: BTreeMap::new(),
            wants_told: false,
            heard_before: None,
            counts: Counts::default(),
        }
    }

    pub fn is_here(&self) -> bool {
        self.phase == Phase::Here
    }

    /// Returns the milliseconds since its last message; `None` if there was none.
    pub fn age_ms(&self, now: Timestamp) -> Option<u64> {
        (self.heard_at > Timestamp::ZERO).then(|| now.since(self.heard_at) / NS_PER_MS)
    }

    pub fn has_room(&self) -> bool {
        self.untaken.len() < UNTAKEN_MAX
    }

    /// Handles a message to all, or a post that is sent to us again.
    pub fn handle_call(&mut self, now: Timestamp, call: ClusterBroadcast) {
        let card = call.card();
        self.is_stranger = card.map != self.own.map;
        if self.is_stranger {
            return self.lose();
        }
        if !self.believes(now, card.life) {
            return;
        }
        self.heard_at = now;
        match call {
            ClusterBroadcast::Batch(post) => {
                self.last = self.last.max(post.number);
                let is_next = self.next == Some(post.number);
                let is_new = self.next.is_none_or(|next| post.number >= next);
                if is_next || is_new && self.stash.len() < STASH_MAX {
                    self.stash.insert(post.number, post);
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
                self.lose();
            }
        }
    }

    /// Returns whether a message of this life is to be handled. A new life begins with its first
    /// message.
    pub fn believes(&mut self, now: Timestamp, life: u64) -> bool {
        let before = self.lives.current();
        match self.lives.judge(now, life, self.lease_ns) {
            Verdict::Current => true,
            Verdict::New => {
                self.begin_life();
                true
            }
            Verdict::Lower => {
                tracing::warn!(
                    member = self.name,
                    life,
                    before,
                    "a member has begun again with a lower number: its data folder is new or an older copy"
                );
                self.begin_life();
                true
            }
            Verdict::Ignored { is_first } => {
                if is_first {
                    tracing::warn!(
                        member = self.name,
                        life,
                        current = before,
                        "messages of an earlier start are ignored until the later one is silent for cluster.lease_ms"
                    );
                }
                false
            }
        }
    }

    fn life(&self) -> u64 {
        self.lives.current()
    }

    /// Handles a restart of the peer: its numbers start again.
    fn begin_life(&mut self) {
        (self.next, self.last, self.has_left) = (None, 0, false);
        self.stash.clear();
        // `items` stay: events of the earlier life are delivered before those of the new one.
        self.untaken.clear();
        (self.number, self.sent, self.taken, self.asked_from) = (0, 0, 0, 0);
        (self.phase, self.wants_told, self.asked_at) = (Phase::Away, false, Timestamp::ZERO);
        self.shards.iter_mut().for_each(FarShard::begin_life);
    }

    /// Marks the peer as away.
    pub fn lose(&mut self) {
        self.phase = Phase::Away;
        self.wants_told = false;
    }

    /// Handles a letter of the peer as the owner.
    pub fn handle_letter(&mut self, letter: &ClusterMessage) {
        if letter.card().life != self.life() || self.life() == 0 {
            return;
        }
        match *letter {
            ClusterMessage::Joined { after, complete, .. } if self.next.is_none() => {
                self.next = Some(after.saturating_add(1));
                self.stash.retain(|number, _| *number > after);
                self.counts.snapshots += 1;
                if !complete {
                    // Which sessions have missed something is unknown: those that never traded have
                    // reported nothing either.
                    tracing::warn!(
                        member = self.name,
                        "order events are not kept any more: FIX clients are told how their orders stand"
                    );
                    self.shards.iter_mut().for_each(FarShard::owe_standing);
                }
            }
            ClusterMessage::Gone { .. } => self.rejoin(),
            ClusterMessage::Taken { life, number, .. } if life == self.own.life => {
                while self.taken < number && self.untaken.pop_front().is_some() {
                    self.taken += 1;
                }
                self.sent = self.sent.max(self.taken);
            }
            _ => {}
        }
    }

    fn rejoin(&mut self) {
        self.next = None;
        self.stash.clear();
        self.phase = Phase::Away;
        self.asked_at = Timestamp::ZERO;
        self.shards.iter_mut().for_each(FarShard::begin_anew);
    }

    /// Opens posts and delivers their items, as far as there is room. `called` collects the ports
    /// to wake.
    pub fn poll(&mut self, called: &mut PortMask) -> usize {
        let mut work = 0;
        loop {
            while self.items.len() < ITEMS_MAX
                && let Some(post) = self.next.and_then(|next| self.stash.remove(&next))
            {
                self.next = Some(post.number.saturating_add(1));
                self.items.extend(post.items);
            }
            let settled =
                self.shards.iter_mut().map(|shard| shard.settle(called)).fold(true, |all, one| all & one);
            let Some(item) = self.items.front().copied().filter(|_| settled) else { return work };
            self.items.pop_front();
            work += 1;
            self.counts.events += 1;
            let (member, own) = (self.member, self.own.member);
            let told = self.shard_mut(item.shard).and_then(|shard| shard.tell(member, own, &item));
            if let Some(key) = told.as_ref().and_then(AnswerKey::of_event) {
                self.asked.remove(&key);
            }
        }
    }

    /// Returns the next letter to send now.
    pub fn next_letter(&mut self, now: Timestamp) -> Option<ClusterMessage> {
        if self.life() == 0 || self.is_stranger {
            return None;
        }
        let is_due = now >= self.asked_at.plus(AGAIN_NS);
        let awaits = self.is_here() && self.shards.iter().any(|shard| !shard.audience.waiting.is_empty());
        if is_due && (self.next.is_none() || awaits) {
            self.asked_at = now;
            return Some(self.join());
        }
        let next = self.next?;
        // The whole reply has arrived, or none.
        let may_ask = is_due || next >= self.asked_from.saturating_add(AGAIN_MAX);
        let is_missing = next <= self.last && !self.stash.contains_key(&next);
        if is_missing && may_ask && self.items.len() < ITEMS_MAX {
            (self.asked_at, self.asked_from) = (now, next);
            self.counts.gaps += 1;
            return Some(ClusterMessage::Fetch { card: self.own, life: self.life(), from: next });
        }
        if !std::mem::replace(&mut self.wants_told, true) {
            return Some(self.wants());
        }
        self.next_commands(now)
    }

    fn join(&mut self) -> ClusterMessage {
        if self.phase == Phase::Away {
            self.phase = Phase::Joining;
        }
        let heard = |shard: &FarShard| (shard.id(), shard.seq());
        let heard = self.heard_before.clone().unwrap_or_else(|| self.shards.iter().map(heard).collect());
        ClusterMessage::Join { card: self.own, life: self.life(), heard }
    }

    fn next_commands(&mut self, now: Timestamp) -> Option<ClusterMessage> {
        if self.sent > self.taken && now >= self.sent_at.plus(AGAIN_NS) {
            // All that was not taken is sent again.
            self.sent = self.taken;
        }
        let skip = (self.sent - self.taken) as usize;
        let batch: Vec<_> = self.untaken.iter().skip(skip).take(COMMANDS_PER_LETTER_MAX).copied().collect();
        if batch.is_empty() {
            return None;
        }
        let first = self.sent + 1;
        self.sent += batch.len() as u64;
        self.sent_at = now;
        Some(ClusterMessage::Commands { card: self.own, life: self.life(), first, commands: batch })
    }

    pub fn wants_changed(&mut self) {
        self.wants_told = false;
    }

    /// Returns all market data that ports here subscribe to.
    pub fn wants(&self) -> ClusterMessage {
        let (mut ticks, mut depths): (Vec<SecurityId>, Vec<SecurityId>) = Default::default();
        for shard in &self.shards {
            let (some_ticks, some_depths) = shard.audience.wants();
            ticks.extend(some_ticks);
            depths.extend(some_depths);
        }
        ClusterMessage::Wants { card: self.own, life: self.life(), ticks, depths }
    }

    /// Returns whether all that it has sent is delivered: then it is here.
    pub fn is_caught_up(&self) -> bool {
        !(self.has_left || self.is_stranger)
            && self.next.is_some_and(|next| next > self.last)
            && self.items.is_empty()
            && self.shards.iter().all(|shard| shard.is_complete)
    }

    /// Takes a command for the peer. Returns false if too many commands are without a response.
    pub fn ask(&mut self, shard: ShardId, command: Command) -> bool {
        if self.asked.len() >= ASKED_MAX {
            return false;
        }
        self.number += 1;
        self.untaken.push_back((shard, command));
        let asked = Asked { shard, command, life: self.life() };
        self.asked.insert(AnswerKey::of_command(&command), asked);
        self.counts.routed += 1;
        true
    }

    /// Sends the owner the senders of this server that it does not know. There is no response.
    pub fn tell_senders(&mut self) {
        for shard in &mut self.shards {
            while let Some(command) = shard.next_sender() {
                self.number += 1;
                self.untaken.push_back((shard.id(), command));
            }
        }
    }

    /// Removes and returns the unanswered commands that were sent to an earlier life of the owner.
    pub fn take_lost(&mut self) -> Vec<Asked> {
        let life = self.life();
        let lost: Vec<AnswerKey> =
            self.asked.iter().filter(|(_, asked)| asked.life != life).map(|(key, _)| *key).collect();
        lost.iter().filter_map(|key| self.asked.remove(key)).collect()
    }

    pub fn shard_mut(&mut self, id: ShardId) -> Option<&mut FarShard> {
        self.shards.iter_mut().find(|shard| shard.id() == id)
    }
}

#[cfg(test)]
mod tests;
