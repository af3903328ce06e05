//! This server as an owner: it sends events of its shards to the other servers, and takes commands
//! of the others.
//!
//! ```text
//! shards ─ Event ─► link ─► handle_event ─► BatchWindow ─► broker
//!                              └────────► Prices ──────► broker
//! shards ◄─ Command ◄─ link ◄─ inbox of each member ◄─ ClusterMessage
//! ```
//!
//! **Once.** Commands of one incarnation of a member are numbered, and taken in their order. A
//! repeated command is acknowledged and not taken again. The result of a command that was taken is
//! in the journal of its shard, so a crash of this server loses nothing that was answered.

use std::collections::{BTreeSet, VecDeque};

use bytes::Bytes;
use pitlane_engine::command::{BudgetAct, Command, CommandKind, WatchTarget};
use pitlane_engine::event::{Event, EventKind};
use pitlane_engine::id::{IntId, Origin, PortId, SecurityId, ShardId, Source, StrategyId};
use pitlane_engine::mesh::{PortEnd, ShardMask};
use pitlane_engine::reason::Reason;
use pitlane_engine::shard::{CommandRoute, route, shard_of};
use pitlane_engine::time::Timestamp;
use pitlane_engine::worker::refusal;
use pitlane_protocols::remote::cluster::{
    ClusterEvent, ClusterMessage, EventRecipient, MemberId, MemberIdentity, concerns_remote_client,
    owner_of_port, source_of, translate_command,
};

use super::prices::Prices;
use super::window::BatchWindow;

/// Maximum number of events taken from the link in one cycle.
const EVENTS_PER_CYCLE_MAX: usize = 1_024;
/// Maximum number of commands of one member that wait for room in a lane. Commands beyond it are
/// not acknowledged, so they are sent again.
const INBOX_MAX: usize = 4_096;
/// Maximum number of batches sent again for one request; a member that lacks more requests again.
pub(super) const RESEND_MAX: u64 = 64;

#[derive(Debug)]
pub(super) struct LocalOwner {
    identity: MemberIdentity,
    link: PortEnd,
    own: ShardMask,
    shards: u8,
    pub window: BatchWindow,
    pub prices: Prices,
    /// State of the other servers, by member; the entry of this server stays empty.
    followers: Vec<FollowerState>,
    /// Our own commands to the shards that are not sent yet for lack of room.
    pending_commands: VecDeque<(ShardId, CommandKind)>,
    /// Snapshots, by shard.
    snapshots: Vec<SnapshotRequest>,
    depths: BTreeSet<SecurityId>,
    /// Watched market data that comes as a snapshot and updates, or event by event.
    watched: BTreeSet<WatchTarget>,
    events_kept: usize,
    pub taken: u64,
}

/// Another server, as a receiver of our events and a sender of commands.
#[derive(Debug, Default)]
struct FollowerState {
    incarnation: u64,
    /// Number of the last command taken of that incarnation.
    taken: u64,
    inbox: VecDeque<(ShardId, Command)>,
    ticks: BTreeSet<SecurityId>,
    depths: BTreeSet<SecurityId>,
    /// Other market data that it wants.
    watched: BTreeSet<WatchTarget>,
    /// Events of its orders, oldest first.
    events: VecDeque<ClusterEvent>,
    /// By shard: the sequence number after which no event of its orders is missing in `events`.
    from: Vec<u64>,
}

#[derive(Clone, Copy, Debug, Default)]
struct SnapshotRequest {
    is_running: bool,
    /// Whether another one was requested since it began.
    is_repeated: bool,
}

impl LocalOwner {
    pub(super) fn new(
        identity: MemberIdentity,
        link: PortEnd,
        own: ShardMask,
        members: usize,
        (window_bytes, events_kept): (usize, usize),
    ) -> LocalOwner {
        let shards = link.shards();
        let everything = |shard| {
            (shard, CommandKind::Watch { port: PortId::LINK, what: WatchTarget::Everything, on: true })
        };
        let follower = |_| FollowerState { from: vec![0; shards as usize], ..FollowerState::default() };
        LocalOwner {
            identity,
            own,
            shards,
            window: BatchWindow::new(identity, window_bytes),
            prices: Prices::default(),
            followers: (0..members).map(follower).collect(),
            pending_commands: own.shards().map(everything).collect(),
            snapshots: vec![SnapshotRequest::default(); shards as usize],
            depths: BTreeSet::new(),
            watched: BTreeSet::new(),
            events_kept,
            taken: 0,
            link,
        }
    }

    /// Restores the events of a shard before this start, from its journal: all of them after the
    /// event with number `from`.
    pub(super) fn remember(&mut self, shard: ShardId, from: u64, events: impl Iterator<Item = Event>) {
        self.followers.iter_mut().for_each(|follower| follower.from[shard.0 as usize] = from);
        events.for_each(|event| self.record(shard, &event));
    }

    /// Handles events of the shards and passes commands of others on. Returns the amount of work
    /// done, and the shards to wake.
    pub(super) fn poll(&mut self) -> (usize, ShardMask) {
        let mut work = 0;
        while work < EVENTS_PER_CYCLE_MAX {
            let Some((shard, event)) = self.link.poll_event() else { break };
            self.handle_event(shard, event);
            work += 1;
        }
        self.window.close();
        work += self.send_pending_commands() + self.forward_commands();
        (work, self.link.take_wakeups())
    }

    fn handle_event(&mut self, shard: ShardId, mut event: Event) {
        if event.seq & Event::SNAPSHOT != 0 {
            event.seq &= !Event::SNAPSHOT;
            if matches!(event.body, EventKind::SnapshotEnd { .. }) {
                self.end_snapshot(shard);
            }
            return self.window.add(ClusterEvent { shard, to: EventRecipient::Joining, event });
        }
        if matches!(event.body, EventKind::Tick(_) | EventKind::Depth(_)) {
            self.prices.apply(shard, &event);
            return;
        }
        // A response to one of our own ports is for no other server.
        if matches!(event.body, EventKind::Done { source, .. } if owner_of_port(source.port).is_none()) {
            return;
        }
        self.record(shard, &event);
        self.window.add(ClusterEvent { shard, to: EventRecipient::All, event });
    }

    /// Stores an event of another server's order for that server.
    fn record(&mut self, shard: ShardId, event: &Event) {
        let mut event = *event;
        if !concerns_remote_client(&event) || event.is_substitute() {
            return;
        }
        let Some((member, _)) = source_of(&mut event).and_then(|source| owner_of_port(source.port)) else {
            return;
        };
        let Some(follower) = self.followers.get_mut(member as usize) else { return };
        if follower.events.len() >= self.events_kept
            && let Some(oldest) = follower.events.pop_front()
        {
            follower.from[oldest.shard.0 as usize] = oldest.event.seq;
        }
        follower.events.push_back(ClusterEvent { shard, to: EventRecipient::Late(member), event });
    }

    fn end_snapshot(&mut self, shard: ShardId) {
        let snapshot = &mut self.snapshots[shard.0 as usize];
        snapshot.is_running = false;
        if std::mem::take(&mut snapshot.is_repeated) {
            self.begin_snapshot(shard);
        }
    }

    fn begin_snapshot(&mut self, shard: ShardId) {
        let snapshot = &mut self.snapshots[shard.0 as usize];
        if std::mem::replace(&mut snapshot.is_running, true) {
            snapshot.is_repeated = true;
            return;
        }
        self.pending_commands.push_back((shard, CommandKind::Snapshot { port: PortId::LINK }));
    }

    fn send_pending_commands(&mut self) -> usize {
        let source = Source { origin: Origin::Server, port: PortId::LINK, session: 0 };
        let mut run = 0;
        while let Some((shard, body)) = self.pending_commands.front() {
            if self.link.send(*shard, Command::new(source, 0, *body)).is_err() {
                break;
            }
            self.pending_commands.pop_front();
            run += 1;
        }
        run
    }

    /// Sends commands of the others to the shards, as far as there is room.
    fn forward_commands(&mut self) -> usize {
        let mut sent = 0;
        for follower in &mut self.followers {
            while let Some((shard, command)) = follower.inbox.front() {
                if self.link.send(*shard, *command).is_err() {
                    break;
                }
                follower.inbox.pop_front();
                sent += 1;
            }
        }
        self.taken += sent as u64;
        sent
    }

    /// Handles a message to us as the owner, and returns the reply, if there is one. Batches that
    /// are requested again go through `resend`; `claim` takes the id of a REST order and returns
    /// whether it is new.
    pub(super) fn handle(
        &mut self,
        now: Timestamp,
        message: ClusterMessage,
        resend: &mut impl FnMut(Bytes),
        claim: &dyn Fn(StrategyId, &IntId) -> bool,
    ) -> Option<ClusterMessage> {
        let sender = message.sender();
        let follower = self.followers.get_mut(sender.member as usize)?;
        // Whether this incarnation is accepted was decided before.
        if sender.incarnation != follower.incarnation {
            (follower.incarnation, follower.taken) = (sender.incarnation, 0);
            follower.inbox.clear();
        }
        let own = self.identity;
        match message {
            ClusterMessage::Join { incarnation, received, .. } if incarnation == own.incarnation => {
                Some(self.join(sender.member, &received))
            }
            ClusterMessage::Fetch { incarnation, from, .. } if incarnation == own.incarnation => {
                self.fetch(from, resend)
            }
            ClusterMessage::Commands { incarnation, first, commands, .. }
                if incarnation == own.incarnation =>
            {
                let number = self.take(now, sender.member, first, commands, claim);
                Some(ClusterMessage::Taken { sender: own, incarnation: sender.incarnation, number })
            }
            ClusterMessage::Wants { incarnation, ticks, depths, levels, book_orders, trades, .. }
                if incarnation == own.incarnation =>
            {
                (follower.ticks, follower.depths) = (set_of(ticks), set_of(depths));
                follower.watched = levels.into_iter().map(WatchTarget::Levels).collect();
                follower.watched.extend(book_orders.into_iter().map(WatchTarget::BookOrders));
                follower.watched.extend(trades.into_iter().map(WatchTarget::Trades));
                let requested = follower.watched.clone();
                self.set_wants();
                self.set_watched(&requested);
                None
            }
            // For an earlier incarnation of this server.
            ClusterMessage::Join { .. }
            | ClusterMessage::Fetch { .. }
            | ClusterMessage::Commands { .. }
            | ClusterMessage::Wants { .. } => None,
            ClusterMessage::Gone { .. } | ClusterMessage::Joined { .. } | ClusterMessage::Taken { .. } => {
                None
            }
        }
    }

    /// Adds the events of the member's orders since those in `received`, then a snapshot, both in
    /// the batches that follow.
    fn join(&mut self, member: MemberId, received: &[(ShardId, u64)]) -> ClusterMessage {
        self.window.close();
        let after = self.window.last();
        let mut complete = true;
        let follower = &self.followers[member as usize];
        for &(shard, received) in received.iter().filter(|(shard, _)| self.own.contains(*shard)) {
            complete &= follower.from[shard.0 as usize] <= received;
            let is_late = |item: &&ClusterEvent| item.shard == shard && item.event.seq > received;
            follower.events.iter().filter(is_late).for_each(|item| self.window.add(*item));
        }
        self.own.shards().for_each(|shard| self.begin_snapshot(shard));
        ClusterMessage::Joined { sender: self.identity, after, complete }
    }

    fn fetch(&mut self, from: u64, resend: &mut impl FnMut(Bytes)) -> Option<ClusterMessage> {
        let is_kept = self.window.get(from).is_some() || from > self.window.last();
        if !is_kept {
            return Some(ClusterMessage::Gone { sender: self.identity });
        }
        (from..from.saturating_add(RESEND_MAX)).map_while(|number| self.window.get(number)).for_each(resend);
        None
    }

    /// Takes commands in their order, each once. Returns the number of the last one taken.
    fn take(
        &mut self,
        now: Timestamp,
        member: MemberId,
        first: u64,
        commands: Vec<(ShardId, Command)>,
        claim: &dyn Fn(StrategyId, &IntId) -> bool,
    ) -> u64 {
        let LocalOwner { followers, own, shards, window, .. } = self;
        let follower = &mut followers[member as usize];
        for (at, (shard, mut command)) in (0..).zip(commands) {
            let number = follower.taken + 1;
            if first.checked_add(at) != Some(number) {
                continue;
            }
            if follower.inbox.len() >= INBOX_MAX {
                break;
            }
            follower.taken = number;
            translate_command(&mut command, member);
            let is_right = match route(&command.body, *shards) {
                CommandRoute::One(right) => right == shard,
                CommandRoute::All => true,
            };
            if !own.contains(shard) || !is_right || !is_allowed_from_peer(&command.body) {
                continue;
            }
            // Ids of REST orders are decided here, where those of all servers for our shards pass.
            if rest_id(&command).is_none_or(|(strategy, id)| claim(strategy, &id)) {
                follower.inbox.push_back((shard, command));
            } else {
                let body = refusal(&command, Reason::DuplicateId);
                window.add(ClusterEvent {
                    shard,
                    to: EventRecipient::All,
                    event: Event { seq: 0, at: now, body },
                });
            }
        }
        follower.taken
    }

    fn set_wants(&mut self) {
        let ticks = self.followers.iter().flat_map(|follower| &follower.ticks).copied().collect();
        self.prices.set_wanted(ticks);
        let depths: BTreeSet<SecurityId> =
            self.followers.iter().flat_map(|follower| &follower.depths).copied().collect();
        let changed: Vec<SecurityId> = depths.symmetric_difference(&self.depths).copied().collect();
        for security in changed {
            self.watch(security, WatchTarget::Depth(security), depths.contains(&security));
        }
        self.depths = depths;
    }

    /// Watches the other market data that other servers want. The requested ones are watched again,
    /// so that their shards send a snapshot: the server may have a port that has none.
    fn set_watched(&mut self, requested: &BTreeSet<WatchTarget>) {
        let watched: BTreeSet<WatchTarget> =
            self.followers.iter().flat_map(|follower| &follower.watched).copied().collect();
        let ended = self.watched.difference(&watched).map(|what| (*what, false));
        let changes: Vec<(WatchTarget, bool)> =
            ended.chain(requested.iter().map(|what| (*what, true))).collect();
        for (what, on) in changes {
            if let Some(security) = what.security() {
                self.watch(security, what, on);
            }
        }
        self.watched = watched;
    }

    fn watch(&mut self, security: SecurityId, what: WatchTarget, on: bool) {
        let shard = shard_of(security, self.shards);
        if self.own.contains(shard) {
            // Only the newest request counts, so a server that repeats itself fills no memory.
            self.pending_commands.retain(
                |(_, body)| !matches!(body, CommandKind::Watch { what: waiting, .. } if *waiting == what),
            );
            self.pending_commands.push_back((shard, CommandKind::Watch { port: PortId::LINK, what, on }));
        }
    }
}

/// Returns the id that a REST client has given its order, and the strategy within which it is
/// unique.
fn rest_id(command: &Command) -> Option<(StrategyId, IntId)> {
    let CommandKind::Submit { id, terms } = command.body else { return None };
    (command.source.origin == Origin::Rest).then_some((terms.strategy, id))
}

fn set_of(list: Vec<SecurityId>) -> BTreeSet<SecurityId> {
    list.into_iter().collect()
}

/// Returns whether a client of another server may send this command. Prices, venues, parts of
/// limits and the clock are each server's own.
pub(super) fn is_allowed_from_peer(body: &CommandKind) -> bool {
    match body {
        CommandKind::Submit { .. }
        | CommandKind::Modify { .. }
        | CommandKind::Cancel { .. }
        | CommandKind::CancelOrders { .. }
        | CommandKind::Close { .. }
        | CommandKind::Subscribe { .. }
        | CommandKind::Transaction(_)
        | CommandKind::Expire { .. }
        | CommandKind::ResetPositions
        | CommandKind::ResetCash
        | CommandKind::Limits { .. }
        | CommandKind::Restrict { .. }
        | CommandKind::Kill { .. }
        | CommandKind::Direct { .. }
        | CommandKind::Phase { .. }
        | CommandKind::Halt { .. }
        | CommandKind::Validate { .. }
        | CommandKind::SpecialTerms(_)
        | CommandKind::Sender { .. } => true,
        // A recall of nothing only asks for the use.
        CommandKind::Budget(budget) => budget.act == BudgetAct::Recall(0),
        CommandKind::Quote { .. }
        | CommandKind::Trade { .. }
        | CommandKind::Tick { .. }
        | CommandKind::Level { .. }
        | CommandKind::VenueLevels(_)
        | CommandKind::VenueBook { .. }
        | CommandKind::Report { .. }
        | CommandKind::Adapter { .. }
        | CommandKind::Session { .. }
        | CommandKind::TradingDay { .. }
        | CommandKind::Schedule { .. }
        | CommandKind::Expiry { .. }
        | CommandKind::Timer
        | CommandKind::Watch { .. }
        | CommandKind::Snapshot { .. }
        | CommandKind::AuditAnchor(_)
        | CommandKind::Reference { .. } => false,
    }
}
