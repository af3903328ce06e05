//! The mesh: between every port and every shard a lane for commands and a lane for events.
//!
//! ```text
//!            commands                        events
//! port 0 ───────────────► shard 0 ───────────────────► port 0
//!        ╲───────────────►shard 1────────────────────╱
//! port 1 ───────────────► …
//! ```
//!
//! A port is a thread that talks with the shards: gateway, http, adapter, feed, budget. Each end belongs to one
//! thread. Nothing here waits: a full lane is an answer.

use crate::command::{Command, CommandKind};
use crate::event::Event;
use crate::id::{Origin, PortId, PortMask, ShardId, Source};
use crate::lane::{LaneFull, LaneIn, LaneOut, lane};
use crate::sender::{Sender, SenderId, SenderLog};

/// What kind of thread a port is. The shards take commands of a lower kind first, see [`CLASS_BATCH`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum PortClass {
    /// Operator, clock, budget.
    Control,
    /// Reports of what happened outside: the sooner we know, the less we guess.
    Venue,
    Client,
    /// Prices. Newer ones replace older ones, so they may wait.
    Feed,
}

impl PortClass {
    pub const ALL: [PortClass; 4] =
        [PortClass::Control, PortClass::Venue, PortClass::Client, PortClass::Feed];
}

/// Commands of each class in a round. A class goes before those behind it until it had so many; a new round begins
/// when no class with a rest has a command. So a flood of orders delays the prices and never shuts them out.
pub const CLASS_BATCH: [u32; 4] = [32, 32, 32, 16];

/// How many values a lane holds, by direction. Any number from 1 works; small ones stall more often.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Depths {
    /// From a port to a shard.
    pub commands: usize,
    /// From a shard to a port.
    pub events: usize,
}

impl Default for Depths {
    /// A thousand commands are 128 KiB a lane, the events four times that: bursts fit, and the caches hold them.
    fn default() -> Depths {
        Depths { commands: 1_024, events: 4_096 }
    }
}

/// The mark of what a port tells about senders. Nobody waits for an answer, and there is none.
const SENDER_TOKEN: u32 = 0;

/// Builds all lanes. `ports[n]` is the class of [`PortId`] n.
pub fn mesh(ports: &[PortClass], shards: u8, depths: Depths) -> (Vec<PortEnd>, Vec<ShardEnd>) {
    assert!(ports.len() <= PortId::MAX as usize + 1, "a port mask has a bit for each port");
    assert!(shards >= 1, "somebody must own the securities");
    assert!(shards <= ShardId::MAX + 1, "a handle has room for the shard");
    let mut port_ends: Vec<_> = (0..ports.len()).map(|port| PortEnd::new(PortId(port as u8))).collect();
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

/// One more port: the link to other servers, for shards that were joined to the others by [`mesh`].
pub fn link(shards: &mut [ShardEnd], depths: Depths) -> PortEnd {
    let mut port = PortEnd::new(PortId::LINK);
    for end in shards {
        assert!(end.events.len() <= PortId::LINK.0 as usize, "the link has a number of its own");
        let (commands_in, commands_out) = lane(depths.commands);
        let (events_in, events_out) = lane(depths.events);
        port.add_shard(commands_in, events_out);
        end.round_robins[PortClass::Client as usize].ports.push(end.commands.len() as u8);
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
    /// The shard that is listened to next.
    next: usize,
    /// Who was sent something since [`PortEnd::take_wakeups`].
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

    /// The shards of this set, lowest first.
    pub fn shards(self) -> impl Iterator<Item = ShardId> {
        let mut rest = self.0;
        std::iter::from_fn(move || {
            let shard = rest.trailing_zeros();
            rest &= rest.wrapping_sub(1);
            (shard < u128::BITS).then_some(ShardId(shard as u8))
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

    /// Says which start of the server this is, so that no number of a sender means another one than before.
    pub fn begin_senders(&mut self, start: u64) {
        self.senders.begin(start);
    }

    /// The number of a sender for the commands it sends. Each shard is told what it means before it is used there.
    pub fn register_sender(&mut self, sender: Sender) -> SenderId {
        self.senders.register(sender)
    }

    /// Tells a shard about senders it has not heard of. False: its lane is full.
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

    /// The shards that were sent something since the last time this was asked: whoever sleeps is to be woken.
    pub fn take_wakeups(&mut self) -> ShardMask {
        std::mem::take(&mut self.wakeups)
    }

    pub fn id(&self) -> PortId {
        self.id
    }

    pub fn shards(&self) -> u8 {
        self.commands.len() as u8
    }

    /// Sends a command, or not: then the caller keeps it in its slot and tries again later.
    #[inline]
    pub fn send(&mut self, shard: ShardId, command: Command) -> Result<(), LaneFull> {
        if self.senders.has_unsent(shard.0 as usize) && !self.send_senders(shard) {
            return Err(LaneFull);
        }
        self.commands[shard.0 as usize].send(command)?;
        self.wakeups.0 |= 1 << shard.0;
        Ok(())
    }

    /// Whether the next [`PortEnd::send`] to this shard succeeds.
    pub fn has_room(&mut self, shard: ShardId) -> bool {
        let has_senders = !self.senders.has_unsent(shard.0 as usize) || self.send_senders(shard);
        has_senders && self.commands[shard.0 as usize].has_room()
    }

    /// Sends the command to every shard that has not had it and has room now. Answers whether all have it; if not,
    /// the caller keeps the slot and tries again later.
    pub fn send_all(&mut self, broadcast: &mut Broadcast) -> bool {
        for shard in 0..self.shards() {
            let bit = 1 << shard;
            if broadcast.served & bit == 0 && self.send(ShardId(shard), broadcast.command).is_ok() {
                broadcast.served |= bit;
            }
        }
        broadcast.served.count_ones() as usize == self.commands.len()
    }

    /// The next event. The shards take turns, so that none is heard less than another.
    pub fn poll_event(&mut self) -> Option<(ShardId, Event)> {
        self.poll_event_with(|shard, event| (shard, *event))
    }

    /// Shows the next event where it lies.
    #[inline]
    pub fn poll_event_with<R>(&mut self, handle: impl FnOnce(ShardId, &Event) -> R) -> Option<R> {
        let mut handle = Some(handle);
        for _ in 0..self.events.len() {
            let shard = self.next;
            self.next = if shard + 1 == self.events.len() { 0 } else { shard + 1 };
            let handled =
                self.events[shard].take_with(|event| Some(handle.take()?(ShardId(shard as u8), event)));
            if let Some(handled) = handled {
                return handled;
            }
        }
        None
    }

    /// Shows at most `count` events of a shard that wait to be polled, nearest first.
    #[inline]
    pub fn look_ahead(&mut self, shard: ShardId, count: usize, see: impl FnMut(usize, &Event)) {
        if let Some(lane) = self.events.get_mut(shard.0 as usize) {
            lane.look_ahead(count, see);
        }
    }
}

/// A command for every shard, and who has had it.
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
    /// By class.
    round_robins: [RoundRobin; 4],
    /// What is left of [`CLASS_BATCH`] in this round.
    left: [u32; 4],
    /// The port whose command was taken last.
    last_port: u8,
}

impl ShardEnd {
    fn new(id: ShardId, ports: &[PortClass]) -> ShardEnd {
        let round_robins = PortClass::ALL.map(|class| RoundRobin::of(class, ports));
        let all = (0..ports.len()).map(|port| PortMask::one(PortId(port as u8)));
        let ports = all.fold(PortMask::NONE, PortMask::with);
        let (commands, events) = (Vec::new(), Vec::new());
        ShardEnd { id, ports, commands, events, link: None, round_robins, left: CLASS_BATCH, last_port: 0 }
    }

    pub fn id(&self) -> ShardId {
        self.id
    }

    /// All ports there are.
    pub fn ports(&self) -> PortMask {
        self.ports
    }

    /// Hands an event to a port if its lane has room.
    #[inline]
    pub fn send(&mut self, port: PortId, event: Event) -> Result<(), LaneFull> {
        match self.events.get_mut(port.0 as usize) {
            Some(lane) => lane.send(event),
            None => self.send_to_link(port, event),
        }
    }

    /// What is for other servers.
    #[cold]
    fn send_to_link(&mut self, port: PortId, event: Event) -> Result<(), LaneFull> {
        let link = self.link.as_mut().filter(|_| port == PortId::LINK);
        link.expect("a shard speaks to ports of its mesh only").send(event)
    }

    /// The next command: by class, and within a class the ports take turns.
    pub fn poll_command(&mut self) -> Option<Command> {
        let mut was_skipped = false;
        let command = self.poll_round(&mut was_skipped);
        if command.is_some() {
            return command;
        }
        self.left = CLASS_BATCH;
        // Those who had their part and were not looked at.
        if was_skipped { self.poll_round(&mut was_skipped) } else { None }
    }

    /// Shows at most `count` commands that wait behind the one taken last, nearest first. When other ports speak too they
    /// may come between.
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

/// The ports of one class, and whose turn it is.
#[derive(Debug)]
struct RoundRobin {
    ports: Vec<u8>,
    next: usize,
}

impl RoundRobin {
    fn of(class: PortClass, classes: &[PortClass]) -> RoundRobin {
        let ports = classes.iter().enumerate().filter(|(_, c)| **c == class).map(|(port, _)| port as u8);
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
mod tests {
    use super::*;
    use crate::command::CommandKind;
    use crate::event::EventKind;
    use crate::id::Source;
    use crate::time::{Day, Timestamp};

    fn command(port: u8, token: u32) -> Command {
        let source = Source { port: PortId(port), ..Source::default() };
        Command::new(source, token, CommandKind::Timer)
    }

    fn event(seq: u64) -> Event {
        Event { seq, at: Timestamp(1), body: EventKind::TradingDay { day: Day(1) } }
    }

    fn depths(depth: usize) -> Depths {
        Depths { commands: depth, events: depth }
    }

    #[test]
    fn every_pair_has_its_own_lanes() {
        let (mut ports, mut shards) = mesh(&[PortClass::Client; 3], 4, Depths::default());
        for port in &mut ports {
            for shard in 0..4 {
                port.send(ShardId(shard), command(port.id().0, shard as u32)).unwrap();
            }
        }
        for (n, shard) in shards.iter_mut().enumerate() {
            assert_eq!(shard.id(), ShardId(n as u8));
            for port in 0..3 {
                assert_eq!(shard.poll_command(), Some(command(port, n as u32)));
                shard.send(PortId(port), event(n as u64 * 10 + port as u64)).unwrap();
            }
            assert_eq!(shard.poll_command(), None);
        }
        for (n, port) in ports.iter_mut().enumerate() {
            assert_eq!(port.shards(), 4);
            for shard in 0..4 {
                assert_eq!(port.poll_event(), Some((ShardId(shard), event(shard as u64 * 10 + n as u64))));
            }
            assert_eq!(port.poll_event(), None);
        }
    }

    #[test]
    fn a_port_remembers_whom_it_called() {
        let (mut ports, _shards) = mesh(&[PortClass::Client], 128, depths(1));
        let port = &mut ports[0];
        assert!(port.take_wakeups().is_empty());
        for shard in [127, 3] {
            port.send(ShardId(shard), command(0, 1)).unwrap();
            assert_eq!(port.send(ShardId(shard), command(0, 2)), Err(LaneFull));
        }
        assert_eq!(port.take_wakeups().shards().collect::<Vec<_>>(), [ShardId(3), ShardId(127)]);
        assert!(port.take_wakeups().is_empty());
        port.send_all(&mut Broadcast::new(command(0, 3)));
        assert_eq!(port.take_wakeups().shards().count(), 126);
    }

    #[test]
    fn a_full_lane_leaves_the_others_free() {
        let (mut ports, mut shards) = mesh(&[PortClass::Client; 2], 2, depths(1));
        let port = &mut ports[0];
        assert!(port.has_room(ShardId(0)));
        port.send(ShardId(0), command(0, 1)).unwrap();
        assert!(!port.has_room(ShardId(0)));
        assert_eq!(port.send(ShardId(0), command(0, 2)), Err(LaneFull));
        assert_eq!(port.send(ShardId(1), command(0, 3)), Ok(()));
        let shard = &mut shards[0];
        shard.send(PortId(0), event(1)).unwrap();
        assert_eq!(shard.send(PortId(0), event(2)), Err(LaneFull));
        assert_eq!(shard.send(PortId(1), event(2)), Ok(()));
    }

    #[test]
    fn the_shards_are_heard_in_turn() {
        let (mut ports, mut shards) = mesh(&[PortClass::Client], 3, depths(4));
        for shard in [0, 2] {
            for seq in 0..3 {
                shards[shard].send(PortId(0), event(seq)).unwrap();
            }
        }
        let handled: Vec<_> =
            std::iter::from_fn(|| ports[0].poll_event()).map(|(s, e)| (s.0, e.seq)).collect();
        assert_eq!(handled, [(0, 0), (2, 0), (0, 1), (2, 1), (0, 2), (2, 2)]);
    }

    #[test]
    fn a_broadcast_reaches_every_shard_once_whatever_was_full() {
        let (mut ports, mut shards) = mesh(&[PortClass::Control], 3, depths(1));
        ports[0].send(ShardId(1), command(0, 1)).unwrap();
        let mut broadcast = Broadcast::new(command(0, 2));
        assert_eq!(broadcast.command().token, 2);
        assert!(!ports[0].send_all(&mut broadcast));
        assert!(!ports[0].send_all(&mut broadcast));
        assert_eq!(shards[1].poll_command(), Some(command(0, 1)));
        assert!(ports[0].send_all(&mut broadcast));
        assert!(ports[0].send_all(&mut broadcast));
        for shard in &mut shards {
            assert_eq!(shard.poll_command(), Some(command(0, 2)));
            assert_eq!(shard.poll_command(), None);
        }
    }

    #[test]
    fn classes_go_in_order_and_ports_of_a_class_in_turn() {
        let classes =
            [PortClass::Feed, PortClass::Client, PortClass::Venue, PortClass::Client, PortClass::Control];
        let (mut ports, mut shards) = mesh(&classes, 1, depths(8));
        for port in &mut ports {
            for token in 0..2 {
                port.send(ShardId(0), command(port.id().0, token)).unwrap();
            }
        }
        let taken: Vec<_> =
            std::iter::from_fn(|| shards[0].poll_command()).map(|c| c.source.port.0).collect();
        assert_eq!(taken, [4, 4, 2, 2, 1, 3, 1, 3, 0, 0]);
    }

    #[test]
    fn a_flood_of_one_class_leaves_the_next_its_share() {
        let (mut ports, mut shards) = mesh(&[PortClass::Client, PortClass::Feed], 1, depths(200));
        for token in 0..100 {
            ports[0].send(ShardId(0), command(0, token)).unwrap();
            ports[1].send(ShardId(0), command(1, token)).unwrap();
        }
        let taken: Vec<_> = (0..96).map(|_| shards[0].poll_command().unwrap().source.port.0).collect();
        assert!(taken[..32].iter().all(|port| *port == 0));
        assert!(taken[32..48].iter().all(|port| *port == 1));
        assert_eq!(taken[..48], taken[48..]);
        let rest = std::iter::from_fn(|| shards[0].poll_command()).count();
        assert_eq!(rest, 200 - 96);
    }

    #[test]
    fn the_link_stands_for_the_ports_of_other_servers() {
        let (mut ports, mut shards) = mesh(&[PortClass::Client], 2, depths(4));
        let mut far = link(&mut shards, depths(4));
        far.send(ShardId(1), command(33, 1)).unwrap();
        ports[0].send(ShardId(1), command(0, 2)).unwrap();
        let mut taken: Vec<_> =
            std::iter::from_fn(|| shards[1].poll_command()).map(|command| command.token).collect();
        taken.sort_unstable();
        assert_eq!(taken, [1, 2]);
        for port in PortMask::one(PortId(33)).with(PortMask::one(PortId(0))).and(shards[1].ports()).ports() {
            shards[1].send(port, event(5)).unwrap();
        }
        assert_eq!(far.poll_event(), Some((ShardId(1), event(5))));
        assert_eq!(ports[0].poll_event(), Some((ShardId(1), event(5))));
    }

    #[test]
    #[should_panic(expected = "a shard speaks to ports of its mesh only")]
    fn a_port_outside_the_mesh_is_a_mistake() {
        let (_ports, mut shards) = mesh(&[PortClass::Client], 1, depths(1));
        let _ = shards[0].send(PortId(1), event(1));
    }
}
