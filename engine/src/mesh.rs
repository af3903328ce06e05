//! The mesh: a lane for commands and a lane for events between every port and every shard.
//!
//! ```text
//!            commands                        events
//! port 0 ───────────────► shard 0 ───────────────────► port 0
//!        ╲───────────────►shard 1────────────────────╱
//! port 1 ───────────────► …
//! ```
//!
//! A port is one end of the mesh and belongs to one thread: gateway, http, adapter, feed, budget.
//! Nothing here waits: a full lane is reported to the caller.

use crate::command::{Command, CommandKind};
use crate::event::Event;
use crate::id::{Origin, PortId, PortMask, ShardId, Source};
use crate::index::index_u8;
use crate::lane::{LaneFull, LaneIn, LaneOut, lane};
use crate::sender::{Sender, SenderId, SenderLog};
use crate::shard::route;

/// Kind of thread behind a port. The shards take commands of a lower kind first, see
/// [`CLASS_BATCH`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum PortClass {
    /// Operator, clock, budget.
    Control,
    /// Reports of what happened outside: the sooner the shard knows them, the less it guesses.
    Venue,
    Client,
    /// Prices. Newer ones replace older ones, so they may wait.
    Feed,
}

impl PortClass {
    pub const ALL: [PortClass; 4] =
        [PortClass::Control, PortClass::Venue, PortClass::Client, PortClass::Feed];
}

/// Commands of each class in a round. A class goes before those behind it until it has used its
/// share; a new round begins when no class with a remaining share has a command. A flood of orders
/// therefore delays the prices but never shuts them out.
pub const CLASS_BATCH: [u32; 4] = [32, 32, 32, 16];

/// Capacity of a lane, by direction. Any number from 1 works; small ones stall more often.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Depths {
    /// From a port to a shard.
    pub commands: usize,
    /// From a shard to a port.
    pub events: usize,
}

impl Default for Depths {
    /// A thousand commands are 128 KiB per lane, the events four times that: bursts fit, and the
    /// caches hold them.
    fn default() -> Depths {
        Depths { commands: 1_024, events: 4_096 }
    }
}

/// Token of the commands that describe senders. They are not answered.
const SENDER_TOKEN: u32 = 0;

/// Builds all lanes. `ports[n]` is the class of [`PortId`] n.
pub fn mesh(ports: &[PortClass], shards: u8, depths: Depths) -> (Vec<PortEnd>, Vec<ShardEnd>) {
    assert!(ports.len() <= PortId::MAX as usize + 1, "a port mask has a bit for each port");
    assert!(shards >= 1, "there is at least one shard");
    assert!(shards <= ShardId::MAX + 1, "a handle has room for the shard");
    let mut port_ends: Vec<_> = (0..ports.len()).map(|port| PortEnd::new(PortId(index_u8(port)))).collect();
    let mut shard_ends = Vec::with_capacity(shards as usize);
    for shard in 0..shards {
        let mut end = ShardEnd::new(ShardId(shard), ports);
        for port in &mut port_ends {
            let (commands_in, commands_out) = lane(depths.commands);
            let (events_in, events_out) = lane(depths.events);
            port.add_shard(commands_in, events_out);
            end.commands.push(commands_out);
            end.events.push(events_in);
        }
        shard_ends.push(end);
    }
    (port_ends, shard_ends)
}

/// Adds one more port: the link to other servers, for shards that [`mesh`] has connected.
pub fn link(shards: &mut [ShardEnd], depths: Depths) -> PortEnd {
    let mut port = PortEnd::new(PortId::LINK);
    for end in shards {
        assert!(end.events.len() <= PortId::LINK.0 as usize, "the link has a number of its own");
        let (commands_in, commands_out) = lane(depths.commands);
        let (events_in, events_out) = lane(depths.events);
        port.add_shard(commands_in, events_out);
        end.round_robins[PortClass::Client as usize].ports.push(index_u8(end.commands.len()));
        end.commands.push(commands_out);
        end.link = Some(events_in);
        end.ports = end.ports.with(PortMask::one(PortId::LINK));
    }
    port
}

/// A port's ends of its lanes to and from every shard.
#[derive(Debug)]
pub struct PortEnd {
    id: PortId,
    /// By shard.
    commands: Vec<LaneIn<Command>>,
    /// By shard.
    events: Vec<LaneOut<Event>>,
    /// Shard that is polled next.
    next: usize,
    /// Shards that received a command since [`PortEnd::take_wakeups`].
    wakeups: ShardMask,
    senders: SenderLog,
}

/// A set of shards, a bit for each.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ShardMask(u128);

impl FromIterator<ShardId> for ShardMask {
    fn from_iter<I: IntoIterator<Item = ShardId>>(shards: I) -> ShardMask {
        ShardMask(shards.into_iter().fold(0, |mask, shard| mask | 1 << shard.0))
    }
}

impl ShardMask {
    pub fn one(shard: ShardId) -> ShardMask {
        ShardMask(1 << shard.0)
    }

    pub fn with(self, other: ShardMask) -> ShardMask {
        ShardMask(self.0 | other.0)
    }

    pub fn without(self, other: ShardMask) -> ShardMask {
        ShardMask(self.0 & !other.0)
    }

    pub fn is_empty(self) -> bool {
        self.0 == 0
    }

    pub fn contains(self, shard: ShardId) -> bool {
        self.0.checked_shr(shard.0 as u32).is_some_and(|rest| rest & 1 == 1)
    }

    /// Returns the shards of this set, lowest first.
    pub fn shards(self) -> impl Iterator<Item = ShardId> {
        let mut rest = self.0;
        std::iter::from_fn(move || {
            let shard = rest.trailing_zeros();
            rest &= rest.wrapping_sub(1);
            (shard < u128::BITS).then_some(ShardId((shard & 0x7f) as u8))
        })
    }
}

impl PortEnd {
    fn new(id: PortId) -> PortEnd {
        PortEnd {
            id,
            commands: Vec::new(),
            events: Vec::new(),
            next: 0,
            wakeups: ShardMask::default(),
            senders: SenderLog::new(id),
        }
    }

    fn add_shard(&mut self, commands: LaneIn<Command>, events: LaneOut<Event>) {
        self.commands.push(commands);
        self.events.push(events);
        self.senders.add_shard();
    }

    /// Sets the number of this server start, so that no sender number is reused for another sender.
    pub fn begin_senders(&mut self, start: u64) {
        self.senders.begin(start);
    }

    /// Returns the number of a sender for its commands. The port describes the sender to each shard
    /// before it uses the number there.
    pub fn register_sender(&mut self, sender: Sender) -> SenderId {
        self.senders.register(sender)
    }

    /// Sends the descriptions of new senders to a shard. Returns false if its lane is full.
    #[cold]
    #[inline(never)]
    fn send_senders(&mut self, shard: ShardId) -> bool {
        let at = shard.0 as usize;
        let source = Source { origin: Origin::Server, port: self.id, session: 0 };
        while let Some((id, part)) = self.senders.next(at) {
            let command = Command::new(source, SENDER_TOKEN, CommandKind::Sender { id, part });
            if self.commands[at].send(command).is_err() {
                return false;
            }
            self.wakeups.0 |= 1 << at;
            self.senders.advance(at);
        }
        true
    }

    /// Returns the shards that received something since the last call: the caller wakes those that
    /// sleep.
    pub fn take_wakeups(&mut self) -> ShardMask {
        std::mem::take(&mut self.wakeups)
    }

    pub fn id(&self) -> PortId {
        self.id
    }

    pub fn shards(&self) -> u8 {
        index_u8(self.commands.len())
    }

    /// Sends a command, or fails: then the caller keeps it and tries again later.
    #[inline]
    pub fn send(&mut self, shard: ShardId, command: Command) -> Result<(), LaneFull> {
        if self.senders.has_unsent(shard.0 as usize) && !self.send_senders(shard) {
            return Err(LaneFull);
        }
        self.commands[shard.0 as usize].send(command)?;
        self.wakeups.0 |= 1 << shard.0;
        Ok(())
    }

    /// Sends a command to every shard of its route, or to none if one of them has no room or does
    /// not exist. Returns the number of shards.
    pub fn send_routed(&mut self, command: Command) -> Result<u8, LaneFull> {
        let count = self.shards();
        let shards = route(&command.body, count).shards(count);
        if !shards.clone().all(|shard| shard.0 < count && self.has_room(shard)) {
            return Err(LaneFull);
        }
        let sent = index_u8(shards.len());
        for shard in shards {
            self.send(shard, command).expect("there was room, and no other thread writes to these lanes");
        }
        Ok(sent)
    }

    /// Returns whether the next [`PortEnd::send`] to this shard succeeds.
    pub fn has_room(&mut self, shard: ShardId) -> bool {
        let has_senders = !self.senders.has_unsent(shard.0 as usize) || self.send_senders(shard);
        has_senders && self.commands[shard.0 as usize].has_room()
    }

    /// Returns whether the next `count` commands to this shard can be sent.
    pub fn has_room_for(&mut self, shard: ShardId, count: usize) -> bool {
        self.has_room(shard) && self.commands[shard.0 as usize].has_room_for(count)
    }

    /// Sends the command to every shard that has not had it and has room now. Returns whether all
    /// shards have it; if not, the caller keeps the broadcast and tries again later.
    pub fn send_all(&mut self, broadcast: &mut Broadcast) -> bool {
        for shard in 0..self.shards() {
            let bit = 1 << shard;
            if broadcast.served & bit == 0 && self.send(ShardId(shard), broadcast.command).is_ok() {
                broadcast.served |= bit;
            }
        }
        broadcast.served.count_ones() as usize == self.commands.len()
    }

    /// Returns the next event. The shards take turns, so that none is served less than another.
    pub fn poll_event(&mut self) -> Option<(ShardId, Event)> {
        self.poll_event_with(|shard, event| (shard, *event))
    }

    /// Passes the next event to `handle` in place.
    #[inline]
    pub fn poll_event_with<R>(&mut self, handle: impl FnOnce(ShardId, &Event) -> R) -> Option<R> {
        let mut handle = Some(handle);
        for _ in 0..self.events.len() {
            let shard = self.next;
            self.next = if shard + 1 == self.events.len() { 0 } else { shard + 1 };
            let handled =
                self.events[shard].take_with(|event| Some(handle.take()?(ShardId(index_u8(shard)), event)));
            if let Some(handled) = handled {
                return handled;
            }
        }
        None
    }

    /// Returns whether a lane of events is more than half full: its shard stops when it is full.
    pub fn is_over_half_full(&self) -> bool {
        self.events.iter().any(LaneOut::is_over_half_full)
    }

    /// Shows at most `count` waiting events of a shard, nearest first.
    #[inline]
    pub fn look_ahead(&mut self, shard: ShardId, count: usize, see: impl FnMut(usize, &Event)) {
        if let Some(lane) = self.events.get_mut(shard.0 as usize) {
            lane.look_ahead(count, see);
        }
    }
}

/// A command for every shard, and the shards that have received it.
#[derive(Clone, Copy, Debug)]
pub struct Broadcast {
    command: Command,
    /// A bit for each shard.
    served: u128,
}

const _: () = assert!((ShardId::MAX as u32) < u128::BITS, "a bit for each shard");

impl Broadcast {
    pub fn new(command: Command) -> Broadcast {
        Broadcast { command, served: 0 }
    }

    pub fn command(&self) -> &Command {
        &self.command
    }
}

/// A shard's ends of its lanes from and to every port.
#[derive(Debug)]
pub struct ShardEnd {
    id: ShardId,
    ports: PortMask,
    /// By port.
    commands: Vec<LaneOut<Command>>,
    /// By port.
    events: Vec<LaneIn<Event>>,
    /// To other servers.
    link: Option<LaneIn<Event>>,
    /// One for each class.
    round_robins: [RoundRobin; 4],
    /// Rest of [`CLASS_BATCH`] in this round.
    left: [u32; 4],
    /// Port whose command was taken last.
    last_port: u8,
}

impl ShardEnd {
    fn new(id: ShardId, ports: &[PortClass]) -> ShardEnd {
        let round_robins = PortClass::ALL.map(|class| RoundRobin::of(class, ports));
        let all = (0..ports.len()).map(|port| PortMask::one(PortId(index_u8(port))));
        let ports = all.fold(PortMask::NONE, PortMask::with);
        let (commands, events) = (Vec::new(), Vec::new());
        ShardEnd { id, ports, commands, events, link: None, round_robins, left: CLASS_BATCH, last_port: 0 }
    }

    pub fn id(&self) -> ShardId {
        self.id
    }

    /// Returns all ports of the mesh.
    pub fn ports(&self) -> PortMask {
        self.ports
    }

    /// Sends an event to a port if its lane has room.
    #[inline]
    pub fn send(&mut self, port: PortId, event: Event) -> Result<(), LaneFull> {
        match self.events.get_mut(port.0 as usize) {
            Some(lane) => lane.send(event),
            None => self.send_to_link(port, event),
        }
    }

    /// Sends an event to other servers.
    #[cold]
    fn send_to_link(&mut self, port: PortId, event: Event) -> Result<(), LaneFull> {
        let link = self.link.as_mut().filter(|_| port == PortId::LINK);
        link.expect("a shard sends to ports of its mesh only").send(event)
    }

    /// Returns the next command: by class, and within a class the ports take turns.
    pub fn poll_command(&mut self) -> Option<Command> {
        let mut was_skipped = false;
        let command = self.poll_round(&mut was_skipped);
        if command.is_some() {
            return command;
        }
        self.left = CLASS_BATCH;
        // Serves the classes that had used their share and were skipped.
        if was_skipped { self.poll_round(&mut was_skipped) } else { None }
    }

    /// Shows at most `count` commands that wait behind the one taken last, nearest first. Commands
    /// of other ports may come between.
    #[inline]
    pub fn look_ahead(&mut self, count: usize, see: impl FnMut(usize, &Command)) {
        if let Some(lane) = self.commands.get_mut(self.last_port as usize) {
            lane.look_ahead(count, see);
        }
    }

    fn poll_round(&mut self, was_skipped: &mut bool) -> Option<Command> {
        for (round_robins, left) in self.round_robins.iter_mut().zip(&mut self.left) {
            if *left == 0 {
                *was_skipped = true;
                continue;
            }
            if let Some((port, command)) = round_robins.poll(&mut self.commands) {
                *left -= 1;
                self.last_port = port;
                return Some(command);
            }
        }
        None
    }
}

/// The ports of one class, served in turn.
#[derive(Debug)]
struct RoundRobin {
    ports: Vec<u8>,
    next: usize,
}

impl RoundRobin {
    fn of(class: PortClass, classes: &[PortClass]) -> RoundRobin {
        let ports = classes.iter().enumerate().filter(|(_, c)| **c == class).map(|(port, _)| index_u8(port));
        RoundRobin { ports: ports.collect(), next: 0 }
    }

    fn poll(&mut self, lanes: &mut [LaneOut<Command>]) -> Option<(u8, Command)> {
        for _ in 0..self.ports.len() {
            let port = self.ports[self.next];
            self.next = if self.next + 1 == self.ports.len() { 0 } else { self.next + 1 };
            if let Some(command) = lanes[port as usize].take() {
                return Some((port, command));
            }
        }
        None
    }
}

#[cfg(test)]
mod tests;
