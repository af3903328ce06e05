#![doc = include_str!("cluster/README.md")]

mod audience;
#[cfg(test)]
mod caps;
mod directives;
mod far_shard;
pub mod lives;
mod owner;
#[cfg(test)]
mod paused;
mod peer;
mod prices;
mod relay;
pub mod shown;
#[cfg(test)]
mod tests;
mod window;
pub mod wire;

use std::cell::{Cell, RefCell};
use std::collections::VecDeque;
use std::sync::Arc;

use async_nats::Subject;
use bytes::Bytes;
use pitlane_engine::cluster::{ClusterBroadcast, ClusterMessage, MemberId, MemberIdentity};
use pitlane_engine::command::CommandKind;
use pitlane_engine::directive::Version;
use pitlane_engine::id::{IntId, PortMask, ShardId, StrategyId};
use pitlane_engine::mesh::ShardMask;
use pitlane_engine::refdata::RefData;
use pitlane_engine::time::{NS_PER_MS, Timestamp};
use pitlane_engine::view::View;
use tokio::sync::Notify;
use xxhash_rust::xxh3::xxh3_64;

use self::directives::CatchUp;
use self::owner::Owner;
use self::peer::{Asked, Peer};
use self::relay::{settle, take_commands};
use super::shard_client::ShardClient;
use crate::config::{ClusterConfig as Settings, Config, MemberConfig, NatsConfig};
use crate::journal::{self, Past};
use crate::nats::rights::{self, Rights};
use crate::nats::subjects::{Subjects, segment};
use crate::platform::RemoteShards;
use crate::wakeups::Wakeups;

pub use self::peer::{Counts, Phase};

/// Maximum number of outgoing messages in the queue: letters, and posts requested again. Messages
/// beyond it are dropped, and the other server requests them again.
const OUT_MAX: usize = 4_096;
/// Time after forwarding a command during which this thread does not park. On one machine, or in
/// one data centre, the response comes before.
const NEAR_NS: u64 = 2 * NS_PER_MS;
/// Number of orders in doubt that are listed.
const DOUBTS_SHOWN_MAX: usize = 100;

/// What the http thread needs to run the cluster.
pub struct ClusterParts {
    pub nats: NatsConfig,
    pub subjects: Subjects,
    pub settings: Settings,
    pub members: Vec<MemberConfig>,
    pub far: RemoteShards,
    pub bells: Arc<Wakeups>,
    /// The number of this start, see [`lives`].
    pub life: u64,
    /// Hash of the settings that all members must share.
    pub map: u64,
    /// Maximum number of orders of each shard.
    pub orders_max: u32,
    /// By shard: events of other servers' orders, read from the journal.
    pub past: Vec<Past>,
    /// By shard of other servers: the last event that all our FIX sessions have reported; `None` if
    /// there are no sessions.
    pub heard: Option<Vec<u64>>,
}

impl ClusterParts {
    /// Collects the parts from the configuration; `None` if there is no cluster.
    pub fn of(
        config: &Config,
        reference: &RefData,
        far: Option<RemoteShards>,
        bells: &Arc<Wakeups>,
    ) -> Option<ClusterParts> {
        let far = far.filter(|_| config.cluster.is_on())?;
        Some(ClusterParts {
            nats: config.nats.between_servers(),
            subjects: Subjects::of(&config.nats, &config.service),
            settings: config.cluster.clone(),
            members: config.members.clone(),
            far,
            bells: bells.clone(),
            life: 0,
            map: map_of(config, reference),
            orders_max: config.shard.orders_max,
            past: Vec::new(),
            heard: None,
        })
    }
}

impl ClusterParts {
    fn own(&self) -> MemberId {
        let at = self.members.iter().position(|member| member.name == self.settings.member);
        at.expect("the settings were checked") as MemberId
    }

    /// Returns the first character of the ids that this server makes. Each server has its own, so
    /// that an id is unique.
    pub fn id_prefix(&self) -> u8 {
        b'A' + self.own()
    }
}

/// Hashes the settings that members must share into one number.
fn map_of(config: &Config, reference: &RefData) -> u64 {
    let members: Vec<_> = config.members.iter().map(|member| (&member.name, &member.shards)).collect();
    let (shards, instance, orders) =
        (config.topology.shards, config.service.instance, config.shard.orders_max);
    let words = format!("{shards} {instance} {orders} {:016x} {members:?}", journal::name_of(reference));
    xxh3_64(words.as_bytes())
}

/// State of another member, for operators.
#[derive(Clone, Debug)]
pub struct MemberState {
    pub name: String,
    pub shards: Vec<ShardId>,
    pub phase: Phase,
    pub is_stranger: bool,
    /// Milliseconds since its last message; `None` if there was none.
    pub age_ms: Option<u64>,
    pub in_doubt: usize,
    pub doubts: Vec<IntId>,
    pub counts: Counts,
}

#[derive(Debug)]
pub struct Cluster {
    pub nats: NatsConfig,
    pub settings: Settings,
    /// Prefix of all subjects, with its last dot.
    prefix: String,
    inner: RefCell<Inner>,
    /// Notified when there is something to send.
    pub work: Notify,
    up: Cell<bool>,
    /// When a command was forwarded last.
    passed_on: Cell<Timestamp>,
    pub misread: Cell<u64>,
    /// The permissions that the login of this server needs at the broker.
    pub rights: Rights,
}

#[derive(Debug)]
struct Inner {
    card: MemberIdentity,
    owner: Owner,
    /// Other servers, by member; `None` for this server.
    peers: Vec<Option<Peer>>,
    bells: Arc<Wakeups>,
    out: VecDeque<(Subject, Bytes)>,
    lease_ns: u64,
    catch_up: CatchUp,
    /// Until then a start waits for the others.
    patience: Timestamp,
    is_beat_due: bool,
}

impl Cluster {
    pub fn new(parts: ClusterParts, started: Timestamp) -> Cluster {
        let member = parts.own();
        let ClusterParts {
            nats,
            subjects,
            settings,
            members,
            far,
            bells,
            life,
            map,
            orders_max,
            past,
            heard,
        } = parts;
        let card = MemberIdentity { member, life, map };
        let lease_ns = settings.lease_ms as u64 * NS_PER_MS;
        let own: ShardMask = members[member as usize].shards.iter().map(|shard| ShardId(*shard)).collect();
        let bounds = (settings.window_bytes, settings.events_kept);
        let mut owner = Owner::new(card, far.link, own, members.len(), bounds);
        for (shard, past) in past.iter().enumerate() {
            owner.remember(ShardId(shard as u8), past.from, past.events.iter().copied());
        }
        let mut ends = far.shards;
        let mut peer = |(at, row): (usize, &MemberConfig)| {
            if at == member as usize {
                return None;
            }
            let is_its = |end: &mut pitlane_engine::mesh::ShardEnd| row.shards.contains(&end.id().0);
            let mut peer = Peer::new(
                row.name.clone(),
                at as MemberId,
                card,
                ends.extract_if(.., is_its).collect(),
                (orders_max, lease_ns),
            );
            let heard = |shard: &u8| {
                let heard = heard.as_ref()?.get(*shard as usize).copied().unwrap_or(0);
                Some((ShardId(*shard), heard))
            };
            // A server without FIX sessions has missed no events.
            peer.heard_before = Some(
                row.shards.iter().map(|shard| heard(shard).unwrap_or((ShardId(*shard), u64::MAX))).collect(),
            );
            Some(peer)
        };
        let peers = members.iter().enumerate().map(&mut peer).collect();
        let inner = Inner {
            card,
            owner,
            peers,
            bells,
            out: VecDeque::new(),
            lease_ns,
            catch_up: CatchUp::new(own),
            patience: started.plus(settings.join_wait_ms as u64 * NS_PER_MS),
            is_beat_due: true,
        };
        let prefix = format!("{}.{}.", nats.prefix, settings.name);
        let (inner, work, up) = (RefCell::new(inner), Notify::new(), Cell::new(false));
        let passed_on = Cell::new(Timestamp::ZERO);
        let rights = rights::member(&subjects, &prefix, &segment(&settings.member));
        Cluster { nats, settings, prefix, inner, work, up, passed_on, misread: Cell::new(0), rights }
    }

    /// Returns the subject of what owners send to all.
    pub fn calls(&self) -> String {
        self.called("call", "*")
    }

    /// Returns the subject of posts that are sent to us again.
    pub fn agains(&self) -> String {
        self.addressed("again", &segment(&self.settings.member), "*")
    }

    pub fn letters(&self) -> String {
        self.addressed("letter", &segment(&self.settings.member), "*")
    }

    /// Returns the member whose subject this is: the broker lets each member publish under its own
    /// name only.
    pub fn sender(&self, subject: &str) -> Option<MemberId> {
        let last = subject.rsplit('.').next()?;
        let inner = self.inner.borrow();
        // We receive our own messages to all, too.
        if segment(&self.settings.member) == last {
            return Some(inner.card.member);
        }
        let is_its = |peer: &Option<Peer>| peer.as_ref().is_some_and(|peer| segment(&peer.name) == last);
        inner.peers.iter().position(is_its).map(|at| at as MemberId)
    }

    /// Returns the inbox subject. No requests with replies are made, but a client of the broker
    /// needs one.
    pub fn inbox(&self) -> String {
        self.called("inbox", &segment(&self.settings.member))
    }

    fn called(&self, what: &str, whose: &str) -> String {
        format!("{}{what}.{whose}", self.prefix)
    }

    /// Returns the subject of messages from one member to another.
    fn addressed(&self, what: &str, to: &str, from: &str) -> String {
        format!("{}{what}.{to}.{from}", self.prefix)
    }

    fn address_of(&self, what: &str, peer: &Peer) -> Subject {
        self.addressed(what, &segment(&peer.name), &segment(&self.settings.member)).into()
    }

    /// Handles commands of our ports for other servers and events of our shards, and delivers
    /// events of other servers. Returns the amount of work done.
    pub fn poll(&self, now: Timestamp, floor: &ShardClient) -> usize {
        let mut inner = self.inner.borrow_mut();
        let (mut work, shards) = inner.owner.poll();
        inner.bells.wake_shards(shards);
        let mut passes_on = !shards.is_empty();
        let mut called = PortMask::NONE;
        let patience_is_over = now >= inner.patience;
        let Inner { peers, bells, lease_ns, .. } = &mut *inner;
        for peer in peers.iter_mut().flatten() {
            work += peer.poll(&mut called);
            let before = peer.counts.routed;
            work += take_commands(now, peer, floor);
            passes_on |= peer.counts.routed > before;
            let is_heard = self.up.get() && now <= peer.heard_at.plus(*lease_ns);
            if peer.phase != Phase::Here && is_heard && peer.is_caught_up() {
                // The read model must have all of it before a client is answered from it.
                let view = floor.view();
                if peer.shards.iter().all(|shard| view.seq(shard.id()) >= shard.read) {
                    settle(now, peer, &view);
                }
            }
            if patience_is_over && peer.phase != Phase::Here {
                peer.shards.iter_mut().for_each(|shard| shard.excuse(now));
            }
            work += peer.poll(&mut called);
        }
        bells.wake_ports(called);
        let missed = inner.catch_up.missed(now, &floor.view());
        drop(inner);
        work += missed.len();
        for (shard, body) in missed {
            tracing::info!(shard = shard.0, "a switch, limit or restriction was missed: it is applied now");
            // If the lane is full, the next comparison finds the shard unconfirmed and sends the
            // command again.
            _ = floor.tell(shard, body);
        }
        if passes_on {
            self.passed_on.set(now);
        }
        if work > 0 {
            self.work.notify_one();
        }
        work
    }

    /// Returns whether a command was forwarded a moment ago, so that its response is expected soon.
    pub fn is_expecting(&self, now: Timestamp) -> bool {
        now < self.passed_on.get().plus(NEAR_NS)
    }

    /// Returns the next message to send.
    pub fn take(&self, now: Timestamp) -> Option<(Subject, Bytes)> {
        let mut inner = self.inner.borrow_mut();
        if !self.up.get() {
            inner.owner.window.pass();
            inner.owner.prices.rest();
            inner.out.clear();
            return None;
        }
        let Inner { card, owner, peers, out, is_beat_due, .. } = &mut *inner;
        let call = || Subject::from(self.called("call", &segment(&self.settings.member)));
        if std::mem::take(is_beat_due) {
            return Some((
                call(),
                ClusterBroadcast::Heartbeat { card: *card, last: owner.window.last() }.encode().into(),
            ));
        }
        if let Some(message) = out.pop_front() {
            return Some(message);
        }
        if let Some(post) = owner.window.take() {
            return Some((call(), post));
        }
        for peer in peers.iter_mut().flatten() {
            if let Some(letter) = peer.next_letter(now) {
                return Some((self.address_of("letter", peer), letter.encode().into()));
            }
        }
        let events = owner.prices.take();
        (!events.is_empty())
            .then(|| (call(), ClusterBroadcast::Prices { card: *card, events }.encode().into()))
    }

    pub fn handle_call(&self, now: Timestamp, sender: Option<MemberId>, payload: &[u8]) {
        let call = ClusterBroadcast::decode(payload).ok().filter(|call| sender == Some(call.card().member));
        let Some(call) = call else { return self.misread.set(self.misread.get() + 1) };
        let mut inner = self.inner.borrow_mut();
        if let Some(Some(peer)) = inner.peers.get_mut(call.card().member as usize) {
            let was_stranger = peer.is_stranger;
            peer.handle_call(now, call);
            if peer.is_stranger && !was_stranger {
                tracing::error!(
                    member = peer.name,
                    "it has another list of members, other shards, another instance or other reference data: not joined"
                );
            }
        }
    }

    /// Returns a version for an operator's directive: newer than all versions that this server
    /// knows.
    pub fn next_version(&self, now: Timestamp, view: &View) -> Version {
        let mut inner = self.inner.borrow_mut();
        let member = inner.card.member;
        inner.catch_up.next_version(now, member, view)
    }

    /// Handles a letter to us. `claim` takes the id of a REST order for one of our shards, and
    /// returns whether it is new.
    pub fn handle_letter(
        &self,
        now: Timestamp,
        sender: Option<MemberId>,
        payload: &[u8],
        claim: &dyn Fn(StrategyId, &IntId) -> bool,
    ) {
        let letter =
            ClusterMessage::decode(payload).ok().filter(|letter| sender == Some(letter.card().member));
        let Some(letter) = letter else { return self.misread.set(self.misread.get() + 1) };
        let mut inner = self.inner.borrow_mut();
        let Inner { card, owner, peers, out, .. } = &mut *inner;
        let Some(Some(peer)) = peers.get_mut(letter.card().member as usize) else { return };
        if letter.card().map != card.map || !peer.believes(now, letter.card().life) {
            return;
        }
        peer.handle_letter(&letter);
        let again = self.address_of("again", peer);
        let mut push = |subject: Subject, bytes: Bytes| {
            if out.len() < OUT_MAX {
                out.push_back((subject, bytes));
            }
        };
        let answer = owner.handle(now, letter, &mut |post| push(again.clone(), post), claim);
        if let Some(answer) = answer {
            push(self.address_of("letter", peer), answer.encode().into());
        }
        drop(inner);
        self.work.notify_one();
    }

    /// Records whether the broker is connected. While it is not, no member can be received.
    pub fn set_up(&self, up: bool) {
        self.up.set(up);
        let mut inner = self.inner.borrow_mut();
        inner.is_beat_due = true;
        if !up {
            inner.peers.iter_mut().flatten().for_each(|peer| lose(peer, "the broker is away"));
        }
        drop(inner);
        self.work.notify_one();
    }

    /// Requests a heartbeat, and detects members that are silent.
    pub fn beat(&self, now: Timestamp) {
        let mut inner = self.inner.borrow_mut();
        inner.is_beat_due = true;
        inner.owner.prices.beat();
        let lease = inner.lease_ns;
        for peer in inner.peers.iter_mut().flatten() {
            if now > peer.heard_at.plus(lease) {
                lose(peer, "it is silent");
            }
        }
        drop(inner);
        self.work.notify_one();
    }

    /// Returns the goodbye message, if the broker is connected.
    pub fn bye(&self) -> Option<(Subject, Bytes)> {
        let card = self.inner.borrow().card;
        let subject = self.called("call", &segment(&self.settings.member));
        self.up.get().then(|| (subject.into(), ClusterBroadcast::Bye { card }.encode().into()))
    }

    pub fn is_up(&self) -> bool {
        self.up.get()
    }

    /// Returns the state of the other members.
    pub fn members(&self, now: Timestamp) -> Vec<MemberState> {
        let inner = self.inner.borrow();
        let state = |peer: &Peer| MemberState {
            name: peer.name.clone(),
            shards: peer.shards.iter().map(|shard| shard.id()).collect(),
            phase: peer.phase,
            is_stranger: peer.is_stranger,
            age_ms: peer.age_ms(now),
            in_doubt: peer.asked.len(),
            doubts: peer.asked.values().filter_map(id_of).take(DOUBTS_SHOWN_MAX).collect(),
            counts: peer.counts,
        };
        inner.peers.iter().flatten().map(state).collect()
    }

    /// Returns the number of commands of others that were given to our shards, and of prices that
    /// newer ones have replaced.
    pub fn totals(&self) -> (u64, u64) {
        let inner = self.inner.borrow();
        (inner.owner.taken, inner.owner.prices.conflated)
    }

    /// Returns the age of our data for each member that is away, for the response header. `None` if
    /// all are here.
    pub fn ages(&self, now: Timestamp) -> Option<String> {
        let inner = self.inner.borrow();
        let mut away = inner.peers.iter().flatten().filter(|peer| !peer.is_here()).peekable();
        away.peek()?;
        let age = |peer: &Peer| match peer.age_ms(now) {
            Some(ms) => format!("{}={}.{:03}", peer.name, ms / 1_000, ms % 1_000),
            None => format!("{}=never", peer.name),
        };
        Some(away.map(age).collect::<Vec<_>>().join(", "))
    }
}

fn lose(peer: &mut Peer, why: &str) {
    if peer.phase != Phase::Away {
        tracing::warn!(member = peer.name, in_doubt = peer.asked.len(), "a member is away: {why}");
        peer.lose();
    }
}

fn id_of(asked: &Asked) -> Option<IntId> {
    match asked.command.body {
        CommandKind::Submit { id, .. } | CommandKind::Close { id, .. } => Some(id),
        CommandKind::Modify { id, .. } | CommandKind::Cancel { id, .. } => Some(id),
        _ => None,
    }
}
