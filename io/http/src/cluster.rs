#![doc = include_str!("cluster/README.md")]

mod subscriptions;
#[cfg(test)]
mod caps;
mod directives;
mod far_shard;
pub(crate) mod incarnations;
mod owner;
mod parts;
#[cfg(test)]
mod paused;
mod peer;
mod prices;
mod relay;
#[cfg(test)]
mod tests;
mod window;

use std::cell::{Cell, RefCell};
use std::collections::VecDeque;
use std::sync::Arc;

use async_nats::Subject;
use bytes::Bytes;
use pitlane_cluster::nats::rights::{self, Rights};
use pitlane_cluster::nats::subjects::segment;
use pitlane_config::{ClusterConfig, MemberConfig, NatsConfig};
use pitlane_engine::command::CommandKind;
use pitlane_engine::directive::DirectiveVersion;
use pitlane_engine::id::{IntId, PortMask, ShardId, StrategyId};
use pitlane_engine::index::index_u8;
use pitlane_engine::mesh::ShardMask;
use pitlane_engine::time::{NS_PER_MS, Timestamp};
use pitlane_engine::view::View;
use pitlane_protocols::remote::MessageError;
use pitlane_protocols::remote::cluster::{ClusterBroadcast, ClusterMessage, MemberId, MemberIdentity};
use pitlane_runtime::wakeups::Wakeups;
use tokio::sync::Notify;

use self::directives::CatchUp;
use self::owner::LocalOwner;
use self::peer::{ClusterPeer, RoutedCommand};
use self::relay::{mark_up, take_commands};
use super::shard_client::ShardClient;

pub use self::parts::ClusterParts;
pub(crate) use self::peer::{PeerCounts, PeerPhase};

/// Maximum number of outgoing messages in the queue: messages, and batches requested again.
/// Messages beyond it are dropped, and the other server requests them again.
const OUT_MAX: usize = 4_096;
/// Time after forwarding a command during which this thread does not park. On one machine, or in
/// one data centre, the response comes before.
const RESPONSE_WAIT_NS: u64 = 2 * NS_PER_MS;
/// Number of orders in doubt that are listed.
const DOUBTS_LISTED_MAX: usize = 100;

/// State of another member, for operators.
#[derive(Clone, Debug)]
pub(crate) struct MemberState {
    pub name: String,
    pub shards: Vec<ShardId>,
    pub phase: PeerPhase,
    pub is_incompatible: bool,
    /// Milliseconds since its last message; `None` if there was none.
    pub age_ms: Option<u64>,
    pub in_doubt: usize,
    pub doubts: Vec<IntId>,
    pub counts: PeerCounts,
}

#[derive(Debug)]
pub(crate) struct ClusterNode {
    pub nats: NatsConfig,
    pub settings: ClusterConfig,
    /// Prefix of all subjects, with its last dot.
    prefix: String,
    inner: RefCell<ClusterState>,
    /// Notified when there is something to send.
    pub work: Notify,
    up: Cell<bool>,
    /// When a command was forwarded last.
    forwarded_at: Cell<Timestamp>,
    pub decode_errors: Cell<u64>,
    /// The permissions that the login of this server needs at the broker.
    pub rights: Rights,
}

#[derive(Debug)]
struct ClusterState {
    identity: MemberIdentity,
    owner: LocalOwner,
    /// Other servers, by member; `None` for this server.
    peers: Vec<Option<ClusterPeer>>,
    wakeups: Arc<Wakeups>,
    out: VecDeque<(Subject, Bytes)>,
    lease_ns: u64,
    catch_up: CatchUp,
    /// Until then a start waits for the others.
    join_until: Timestamp,
    is_heartbeat_due: bool,
}

impl ClusterNode {
    pub(crate) fn new(parts: ClusterParts, started: Timestamp) -> ClusterNode {
        let member = parts.own();
        let ClusterParts {
            nats,
            subjects,
            settings,
            members,
            far,
            wakeups,
            incarnation,
            map,
            orders_max,
            past,
            reported,
        } = parts;
        let identity = MemberIdentity { member, incarnation, map };
        let lease_ns = settings.lease_ms as u64 * NS_PER_MS;
        let own: ShardMask = members[member as usize].shards.iter().map(|shard| ShardId(*shard)).collect();
        let bounds = (settings.window_bytes, settings.events_kept);
        let mut owner = LocalOwner::new(identity, far.link, own, members.len(), bounds);
        for (shard, past) in past.iter().enumerate() {
            owner.remember(ShardId(index_u8(shard)), past.from, past.events.iter().copied());
        }
        let mut ends = far.shards;
        let mut peer = |(at, row): (usize, &MemberConfig)| {
            if at == member as usize {
                return None;
            }
            let is_owner = |end: &mut pitlane_engine::mesh::ShardEnd| row.shards.contains(&end.id().0);
            let mut peer = ClusterPeer::new(
                row.name.clone(),
                index_u8(at),
                identity,
                ends.extract_if(.., is_owner).collect(),
                (orders_max, lease_ns),
            );
            let reported_by = |shard: &u8| {
                let seq = reported.as_ref()?.get(*shard as usize).copied().unwrap_or(0);
                Some((ShardId(*shard), seq))
            };
            // A server without FIX sessions has missed no events.
            peer.received_before_start = Some(
                row.shards
                    .iter()
                    .map(|shard| reported_by(shard).unwrap_or((ShardId(*shard), u64::MAX)))
                    .collect(),
            );
            Some(peer)
        };
        let peers = members.iter().enumerate().map(&mut peer).collect();
        let inner = ClusterState {
            identity,
            owner,
            peers,
            wakeups,
            out: VecDeque::new(),
            lease_ns,
            catch_up: CatchUp::new(own),
            join_until: started.plus(settings.join_wait_ms as u64 * NS_PER_MS),
            is_heartbeat_due: true,
        };
        let prefix = format!("{}.{}.", nats.prefix, settings.name);
        let (inner, work, up) = (RefCell::new(inner), Notify::new(), Cell::new(false));
        let forwarded_at = Cell::new(Timestamp::ZERO);
        let rights = rights::member(&subjects, &prefix, &segment(&settings.member));
        ClusterNode {
            nats,
            settings,
            prefix,
            inner,
            work,
            up,
            forwarded_at,
            decode_errors: Cell::new(0),
            rights,
        }
    }

    /// Returns the subject of what owners send to all.
    pub(crate) fn broadcasts_subject(&self) -> String {
        self.subject("call", "*")
    }

    /// Returns the subject of batches that are sent to us again.
    pub(crate) fn resent_subject(&self) -> String {
        self.direct_subject("again", &segment(&self.settings.member), "*")
    }

    pub(crate) fn messages_subject(&self) -> String {
        self.direct_subject("letter", &segment(&self.settings.member), "*")
    }

    /// Returns the member whose subject this is: the broker lets each member publish under its own
    /// name only.
    pub(crate) fn sender(&self, subject: &str) -> Option<MemberId> {
        let last = subject.rsplit('.').next()?;
        let inner = self.inner.borrow();
        // We receive our own messages to all, too.
        if segment(&self.settings.member) == last {
            return Some(inner.identity.member);
        }
        let is_owner =
            |peer: &Option<ClusterPeer>| peer.as_ref().is_some_and(|peer| segment(&peer.name) == last);
        inner.peers.iter().position(is_owner).map(index_u8)
    }

    /// Returns the inbox subject. No requests with replies are made, but a client of the broker
    /// needs one.
    pub(crate) fn inbox(&self) -> String {
        self.subject("inbox", &segment(&self.settings.member))
    }

    fn subject(&self, what: &str, whose: &str) -> String {
        format!("{}{what}.{whose}", self.prefix)
    }

    /// Returns the subject of messages from one member to another.
    fn direct_subject(&self, what: &str, to: &str, from: &str) -> String {
        format!("{}{what}.{to}.{from}", self.prefix)
    }

    fn subject_to(&self, what: &str, peer: &ClusterPeer) -> Subject {
        self.direct_subject(what, &segment(&peer.name), &segment(&self.settings.member)).into()
    }

    /// Handles commands of our ports for other servers and events of our shards, and delivers
    /// events of other servers. Returns the amount of work done.
    pub(crate) fn poll(&self, now: Timestamp, shard_client: &ShardClient) -> usize {
        let mut inner = self.inner.borrow_mut();
        let (mut work, shards) = inner.owner.poll();
        inner.wakeups.wake_shards(shards);
        let mut has_forwarded = !shards.is_empty();
        let mut to_wake = PortMask::NONE;
        let join_wait_is_over = now >= inner.join_until;
        let ClusterState { peers, wakeups, lease_ns, .. } = &mut *inner;
        for peer in peers.iter_mut().flatten() {
            work += peer.poll(&mut to_wake);
            let before = peer.counts.routed;
            work += take_commands(now, peer, shard_client);
            has_forwarded |= peer.counts.routed > before;
            let is_recent = self.up.get() && now <= peer.received_at.plus(*lease_ns);
            if peer.phase != PeerPhase::Up && is_recent && peer.is_caught_up() {
                // The read model must have all of it before a client is answered from it.
                let view = shard_client.view();
                if peer.shards.iter().all(|shard| view.seq(shard.id()) >= shard.read_model_seq) {
                    mark_up(now, peer, &view);
                }
            }
            if join_wait_is_over && peer.phase != PeerPhase::Up {
                peer.shards.iter_mut().for_each(|shard| shard.send_empty_snapshot(now));
            }
            work += peer.poll(&mut to_wake);
        }
        wakeups.wake_ports(to_wake);
        let missed = inner.catch_up.missed(now, &shard_client.view());
        drop(inner);
        work += missed.len();
        for (shard, body) in missed {
            tracing::info!(shard = shard.0, "a switch, limit or restriction was missed: it is applied now");
            // If the lane is full, the next comparison finds the shard unconfirmed and sends the
            // command again.
            _ = shard_client.send_to_shard(shard, body);
        }
        if has_forwarded {
            self.forwarded_at.set(now);
        }
        if work > 0 {
            self.work.notify_one();
        }
        work
    }

    /// Returns whether a command was forwarded a moment ago, so that its response is expected soon.
    pub(crate) fn is_expecting(&self, now: Timestamp) -> bool {
        now < self.forwarded_at.get().plus(RESPONSE_WAIT_NS)
    }

    /// Returns the next message to send.
    pub(crate) fn take(&self, now: Timestamp) -> Option<(Subject, Bytes)> {
        let mut inner = self.inner.borrow_mut();
        if !self.up.get() {
            inner.owner.window.skip_unsent();
            inner.owner.prices.defer_all();
            inner.out.clear();
            return None;
        }
        let ClusterState { identity, owner, peers, out, is_heartbeat_due, .. } = &mut *inner;
        let broadcast_subject = || Subject::from(self.subject("call", &segment(&self.settings.member)));
        if std::mem::take(is_heartbeat_due) {
            return Some((
                broadcast_subject(),
                ClusterBroadcast::Heartbeat { sender: *identity, last: owner.window.last() }.encode().into(),
            ));
        }
        if let Some(message) = out.pop_front() {
            return Some(message);
        }
        if let Some(batch) = owner.window.take() {
            return Some((broadcast_subject(), batch));
        }
        for peer in peers.iter_mut().flatten() {
            if let Some(message) = peer.next_message(now) {
                return Some((self.subject_to("letter", peer), message.encode().into()));
            }
        }
        let events = owner.prices.take();
        (!events.is_empty()).then(|| {
            (broadcast_subject(), ClusterBroadcast::Prices { sender: *identity, events }.encode().into())
        })
    }

    pub(crate) fn handle_broadcast(&self, now: Timestamp, sender: Option<MemberId>, payload: &[u8]) {
        let decoded = ClusterBroadcast::decode(payload);
        let Some(broadcast) = self.accept(sender, decoded, ClusterBroadcast::sender) else { return };
        let mut inner = self.inner.borrow_mut();
        if let Some(Some(peer)) = inner.peers.get_mut(broadcast.sender().member as usize) {
            let was_incompatible = peer.is_incompatible;
            peer.handle_broadcast(now, broadcast);
            if peer.is_incompatible && !was_incompatible {
                tracing::error!(
                    member = peer.name,
                    "the member has another list of members, other shards, another instance or other reference data: not joined"
                );
            }
        }
    }

    /// Returns a message that names the member on whose subject it came. Any other is counted. One
    /// of another version is also logged while its member is away, once until it is compatible.
    fn accept<T>(
        &self,
        sender: Option<MemberId>,
        decoded: Result<T, MessageError>,
        identity: impl Fn(&T) -> MemberIdentity,
    ) -> Option<T> {
        match decoded {
            Ok(message) if sender == Some(identity(&message).member) => return Some(message),
            Err(error @ MessageError::Version { .. }) => {
                let mut inner = self.inner.borrow_mut();
                let peer = sender.and_then(|member| inner.peers.get_mut(member as usize)?.as_mut());
                let away = peer.filter(|peer| peer.phase == PeerPhase::Down && !peer.has_other_version);
                if let Some(peer) = away {
                    peer.has_other_version = true;
                    tracing::error!(member = peer.name, "the member runs another build: {error}: not joined");
                }
            }
            Ok(_) | Err(MessageError::Damaged(_)) => {}
        }
        self.decode_errors.set(self.decode_errors.get() + 1);
        None
    }

    /// Returns a version for an operator's directive: newer than all versions that this server
    /// knows.
    pub(crate) fn next_version(&self, now: Timestamp, view: &View) -> DirectiveVersion {
        let mut inner = self.inner.borrow_mut();
        let member = inner.identity.member;
        inner.catch_up.next_version(now, member, view)
    }

    /// Handles a message to us. `claim` takes the id of a REST order for one of our shards, and
    /// returns whether it is new.
    pub(crate) fn handle_message(
        &self,
        now: Timestamp,
        sender: Option<MemberId>,
        payload: &[u8],
        claim: &dyn Fn(StrategyId, &IntId) -> bool,
    ) {
        let decoded = ClusterMessage::decode(payload);
        let Some(message) = self.accept(sender, decoded, ClusterMessage::sender) else { return };
        let mut inner = self.inner.borrow_mut();
        let ClusterState { identity, owner, peers, out, .. } = &mut *inner;
        let Some(Some(peer)) = peers.get_mut(message.sender().member as usize) else { return };
        if message.sender().map != identity.map
            || !peer.accepts_incarnation(now, message.sender().incarnation)
        {
            return;
        }
        peer.handle_message(&message);
        let resent = self.subject_to("again", peer);
        let mut push = |subject: Subject, bytes: Bytes| {
            if out.len() < OUT_MAX {
                out.push_back((subject, bytes));
            }
        };
        let answer = owner.handle(now, message, &mut |batch| push(resent.clone(), batch), claim);
        if let Some(answer) = answer {
            push(self.subject_to("letter", peer), answer.encode().into());
        }
        drop(inner);
        self.work.notify_one();
    }

    /// Records whether the broker is connected. While it is not, no member can be received.
    pub(crate) fn set_up(&self, up: bool) {
        self.up.set(up);
        let mut inner = self.inner.borrow_mut();
        inner.is_heartbeat_due = true;
        if !up {
            inner.peers.iter_mut().flatten().for_each(|peer| mark_down(peer, "the broker is not connected"));
        }
        drop(inner);
        self.work.notify_one();
    }

    /// Requests a heartbeat, and detects members that are silent.
    pub(crate) fn heartbeat(&self, now: Timestamp) {
        let mut inner = self.inner.borrow_mut();
        inner.is_heartbeat_due = true;
        inner.owner.prices.release_deferred();
        let lease = inner.lease_ns;
        for peer in inner.peers.iter_mut().flatten() {
            if now > peer.received_at.plus(lease) {
                mark_down(peer, "it has sent nothing for cluster.lease_ms");
            }
        }
        drop(inner);
        self.work.notify_one();
    }

    /// Returns the goodbye message, if the broker is connected.
    pub(crate) fn goodbye(&self) -> Option<(Subject, Bytes)> {
        let identity = self.inner.borrow().identity;
        let subject = self.subject("call", &segment(&self.settings.member));
        self.up.get().then(|| (subject.into(), ClusterBroadcast::Bye { sender: identity }.encode().into()))
    }

    pub(crate) fn is_up(&self) -> bool {
        self.up.get()
    }

    /// Returns the state of the other members.
    pub(crate) fn members(&self, now: Timestamp) -> Vec<MemberState> {
        let inner = self.inner.borrow();
        let state = |peer: &ClusterPeer| MemberState {
            name: peer.name.clone(),
            shards: peer.shards.iter().map(|shard| shard.id()).collect(),
            phase: peer.phase,
            is_incompatible: peer.is_incompatible || peer.has_other_version,
            age_ms: peer.age_ms(now),
            in_doubt: peer.pending.len(),
            doubts: peer.pending.values().filter_map(id_of).take(DOUBTS_LISTED_MAX).collect(),
            counts: peer.counts,
        };
        inner.peers.iter().flatten().map(state).collect()
    }

    /// Returns the number of commands of others that were given to our shards, and of prices that
    /// newer ones have replaced.
    pub(crate) fn totals(&self) -> (u64, u64) {
        let inner = self.inner.borrow();
        (inner.owner.taken, inner.owner.prices.conflated)
    }

    /// Returns the age of our data for each member that is down, for the response header. `None` if
    /// all are up.
    pub(crate) fn ages(&self, now: Timestamp) -> Option<String> {
        let inner = self.inner.borrow();
        let mut away = inner.peers.iter().flatten().filter(|peer| !peer.is_up()).peekable();
        away.peek()?;
        let age = |peer: &ClusterPeer| match peer.age_ms(now) {
            Some(ms) => format!("{}={}.{:03}", peer.name, ms / 1_000, ms % 1_000),
            None => format!("{}=never", peer.name),
        };
        Some(away.map(age).collect::<Vec<_>>().join(", "))
    }
}

fn mark_down(peer: &mut ClusterPeer, reason: &str) {
    if peer.phase != PeerPhase::Down {
        tracing::warn!(member = peer.name, in_doubt = peer.pending.len(), "a member is down: {reason}");
        peer.mark_down();
    }
}

fn id_of(routed: &RoutedCommand) -> Option<IntId> {
    if let CommandKind::Submit { id, .. } | CommandKind::Close { id, .. } = routed.command.body {
        return Some(id);
    }
    routed.command.body.request().map(|(_, id)| id)
}
