//! Several servers as one: what they say to each other, and how each sees the ports of the others.
//!
//! ```text
//! owner ── Post, Beat, Prices ──► all          what its shards say, numbered; that it lives; the newest prices
//! member ──────── Letter ───────► owner        Join, Fetch, Commands, Wants
//! owner ───────── Letter ───────► member       Joined, Gone, Taken; and posts again
//! ```
//!
//! **Ports.** A port of another server is numbered beyond the 32 of a mesh, by who it is: orders remember whose they are, and
//! whatever a shard says to such a port goes to its [`PortId::LINK`]. Numbers change on the way, so that each server sees its own
//! ports as they are.
//!
//! **Numbers.** A post has a number in the life of its owner, without gaps; so whoever lacks one knows. Events within have the numbers
//! of their shards, which are the same after a restart. Commands have numbers between two lives, one of each side.

use crate::codec::codec;
use crate::command::{Command, CommandKind};
use crate::event::{Adjustment, Event, EventKind, ExecType, Refusal};
use crate::id::{IntId, OrderHandle, PortId, SecurityId, ShardId, Source};
use crate::sender::{SenderId, SentBy};
use crate::strategy::letters::speaks;

/// Servers of one cluster: as many as a port's number has room for.
pub const MEMBERS_MAX: usize = 7;
const PORTS: u8 = PortId::MAX + 1;

/// A server, by its place in the list that all of them have.
pub type MemberId = u8;

/// How we see a port of another server.
pub fn abroad(member: MemberId, port: PortId) -> PortId {
    PortId((member + 1).saturating_mul(PORTS) | (port.0 % PORTS))
}

/// Whose port this is, and how it is called there; None: our own.
pub fn home_of(port: PortId) -> Option<(MemberId, PortId)> {
    let member = (port.0 / PORTS).checked_sub(1)?;
    Some((member, PortId(port.0 % PORTS)))
}

/// A port as `from` sees it, as we see it.
pub fn seen_here(port: PortId, from: MemberId, own: MemberId) -> PortId {
    match home_of(port) {
        None => abroad(from, port),
        Some((member, port)) if member == own => port,
        Some(_) => port,
    }
}

/// Who is answered by an event; None: nobody in particular.
pub fn source_of(event: &mut Event) -> Option<&mut Source> {
    match &mut event.body {
        EventKind::Order(order) => Some(&mut order.source),
        EventKind::Status(report) => Some(&mut report.source),
        EventKind::Refused(refusal) => Some(&mut refusal.source),
        EventKind::Forgotten { source, .. } | EventKind::Done { source, .. } => Some(source),
        EventKind::Booked(_)
        | EventKind::Adjusted { .. }
        | EventKind::Tick(_)
        | EventKind::Depth(_)
        | EventKind::Subscription { .. }
        | EventKind::Session { .. }
        | EventKind::Halt { .. }
        | EventKind::TradingDay { .. }
        | EventKind::Phase { .. }
        | EventKind::Adapter { .. }
        | EventKind::Limits { .. }
        | EventKind::Restrict { .. }
        | EventKind::Kill { .. }
        | EventKind::Directed { .. }
        | EventKind::Alert { .. }
        | EventKind::ToVenue(_)
        | EventKind::Budget(_)
        | EventKind::SnapshotBegin { .. }
        | EventKind::SnapshotEnd { .. }
        | EventKind::Sender { .. }
        | EventKind::Sent { .. } => None,
        EventKind::UsedIds(used) => Some(&mut used.source),
    }
}

/// Gives the senders that an event names the ports that they have here.
pub fn translate_senders(event: &mut Event, port_here: impl Fn(PortId) -> PortId) {
    let translate = |id: &mut SenderId| *id = id.with_port(port_here(id.port()));
    match &mut event.body {
        EventKind::Order(order) => translate(&mut order.sender),
        EventKind::Status(report) => translate(&mut report.sender),
        EventKind::Sender { id, .. } => translate(id),
        EventKind::Sent { sent: SentBy { submitted, modified, canceled }, .. } => {
            [submitted, modified, canceled].into_iter().for_each(translate)
        }
        _ => {}
    }
}

/// The same for a command of this server's client that another server takes.
pub fn send_abroad(command: &mut Command, member: MemberId) {
    let there = |port: PortId| abroad(member, port);
    command.source.port = there(command.source.port);
    command.sender = command.sender.with_port(there(command.sender.port()));
    if let CommandKind::Sender { id, .. } = &mut command.body {
        *id = id.with_port(there(id.port()));
    }
}

/// Whether an event is about an order of another server's client, and no image.
pub fn is_abroad(event: &Event) -> bool {
    let source = match &event.body {
        EventKind::Order(order) if order.what != ExecType::Snapshot => order.source,
        EventKind::Status(report) if report.what != ExecType::Snapshot => report.source,
        EventKind::Refused(refusal) => refusal.source,
        EventKind::Forgotten { source, .. } => *source,
        _ => return false,
    };
    home_of(source.port).is_some()
}

/// Whether an event can be of this shard, which has so many orders at most. Whoever keeps tables by number relies on it.
pub fn is_sound(shard: ShardId, orders_max: u32, event: &Event) -> bool {
    let (order, security) = match &event.body {
        EventKind::Order(told) => (told.order, Some(told.terms.security)),
        EventKind::Status(told) => (told.order, Some(told.security)),
        EventKind::Refused(told) => (told.order, None),
        EventKind::Forgotten { order, .. } | EventKind::Sent { order, .. } => (*order, None),
        EventKind::Booked(booking) => (OrderHandle::NONE, booking.security),
        EventKind::Adjusted { what: Adjustment::Position { security, .. }, .. } => {
            (OrderHandle::NONE, Some(*security))
        }
        EventKind::Tick(tick) => (OrderHandle::NONE, Some(tick.security)),
        EventKind::Depth(depth) => (OrderHandle::NONE, Some(depth.security)),
        EventKind::Subscription { security, .. }
        | EventKind::Halt { security, .. }
        | EventKind::Restrict { security, .. } => (OrderHandle::NONE, Some(*security)),
        _ => (OrderHandle::NONE, None),
    };
    let is_there = order.shard() == shard && order.slot() < orders_max;
    (order == OrderHandle::NONE || is_there) && security.is_none_or(|security| security.0 <= SecurityId::MAX)
}

/// How the answer to a command is known.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Key {
    Order(Source, IntId),
    Request(OrderHandle, IntId),
    Done(Source, u32),
}

impl Key {
    pub fn of_command(command: &Command) -> Key {
        match command.body {
            CommandKind::Submit { id, .. } | CommandKind::Close { id, .. } => Key::Order(command.source, id),
            CommandKind::Modify { order, id, .. } | CommandKind::Cancel { order, id } => {
                Key::Request(order, id)
            }
            _ => Key::Done(command.source, command.token),
        }
    }

    /// What an event answers, if it answers anything.
    pub fn of_event(event: &Event) -> Option<Key> {
        match &event.body {
            EventKind::Order(told) if matches!(told.what, ExecType::Entered | ExecType::Rejected) => {
                Some(Key::Order(told.source, told.id))
            }
            EventKind::Status(told) => match told.what {
                ExecType::CancelPending
                | ExecType::Canceled
                | ExecType::ReplacePending
                | ExecType::Replaced => Some(Key::Request(told.order, told.id)),
                ExecType::Entered
                | ExecType::Rejected
                | ExecType::Accepted
                | ExecType::Filled
                | ExecType::Expired
                | ExecType::Triggered
                | ExecType::Corrected
                | ExecType::Snapshot => None,
            },
            EventKind::Refused(Refusal { order, request_id, .. }) => Some(Key::Request(*order, *request_id)),
            EventKind::Done { source, token, .. } => Some(Key::Done(*source, *token)),
            _ => None,
        }
    }
}

/// Who speaks: the place in the list, one life from start to end, and a sum over what all must have alike.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Card {
    pub member: MemberId,
    pub life: u64,
    pub map: u64,
}

/// From an owner to all.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Call {
    Post(Post),
    /// It lives, and its last post had this number.
    Beat {
        card: Card,
        last: u64,
    },
    /// The newest of each that somebody wants.
    Prices {
        card: Card,
        events: Vec<Item>,
    },
    Bye {
        card: Card,
    },
}

/// What shards have said.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Post {
    pub card: Card,
    pub number: u64,
    pub items: Vec<Item>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Item {
    pub shard: ShardId,
    pub to: Reader,
    pub event: Event,
}

/// For whom it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reader {
    All,
    /// Part of a snapshot: for whoever waits for one.
    Joining,
    /// It happened before: for one who has missed it.
    Late(MemberId),
}

/// From one to one. `life` is that of the receiver, as the sender knows it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Letter {
    /// To an owner: what happened to orders of mine since these events, then a snapshot.
    Join { card: Card, life: u64, heard: Vec<(ShardId, u64)> },
    /// Posts from this number on.
    Fetch { card: Card, life: u64, from: u64 },
    /// The first has this number.
    Commands { card: Card, life: u64, first: u64, commands: Vec<(ShardId, Command)> },
    /// Market data wanted from now on; all of them, each time.
    Wants { card: Card, life: u64, ticks: Vec<SecurityId>, depths: Vec<SecurityId> },
    /// From an owner: those are not kept any more, join anew.
    Gone { card: Card },
    /// What was asked for follows in the posts after this number; whether nothing is lacking of what happened before the snapshot.
    Joined { card: Card, after: u64, complete: bool },
    /// Commands up to this number are on their way to the shards.
    Taken { card: Card, life: u64, number: u64 },
}

codec!(Card { member, life, map });
codec!(enum Call {
    0 = Post(post),
    1 = Beat { card, last },
    2 = Prices { card, events },
    3 = Bye { card },
});
codec!(Post { card, number, items });
codec!(Item { shard, to, event });
codec!(enum Reader { 0 = All, 1 = Joining, 2 = Late(member) });
codec!(enum Letter {
    0 = Join { card, life, heard },
    1 = Fetch { card, life, from },
    2 = Commands { card, life, first, commands },
    3 = Wants { card, life, ticks, depths },
    4 = Gone { card },
    5 = Joined { card, after, complete },
    6 = Taken { card, life, number },
});

speaks!(Call, Letter);

impl Letter {
    pub fn card(&self) -> Card {
        match self {
            Letter::Join { card, .. }
            | Letter::Fetch { card, .. }
            | Letter::Commands { card, .. }
            | Letter::Wants { card, .. }
            | Letter::Gone { card }
            | Letter::Joined { card, .. }
            | Letter::Taken { card, .. } => *card,
        }
    }
}

impl Call {
    pub fn card(&self) -> Card {
        match self {
            Call::Post(post) => post.card,
            Call::Beat { card, .. } | Call::Prices { card, .. } | Call::Bye { card } => *card,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::command::Phase;
    use crate::id::StrategyId;
    use crate::time::{Day, Timestamp};

    #[test]
    fn each_server_sees_its_own_ports_as_they_are_and_those_of_others_beyond() {
        let (a, b, c) = (0, 1, 6);
        let port = PortId(5);
        assert_eq!(home_of(port), None);
        assert_eq!(home_of(abroad(c, PortId(31))), Some((c, PortId(31))));
        // An order of a at the owner b, as told to a, to b itself and to c.
        let at_b = abroad(a, port);
        assert_eq!(seen_here(at_b, b, a), port);
        assert_eq!(seen_here(at_b, b, c), at_b);
        assert_eq!(seen_here(port, b, a), abroad(b, port), "one of b's own");
        let all: std::collections::BTreeSet<u8> = (0..MEMBERS_MAX as u8)
            .flat_map(|member| (0..PORTS).map(move |port| abroad(member, PortId(port)).0))
            .collect();
        assert_eq!(all.len(), MEMBERS_MAX * PORTS as usize);
        assert!(all.iter().all(|port| *port >= PORTS));
    }

    #[test]
    fn what_is_said_comes_back_and_no_part_of_it_is_another() {
        let card = Card { member: 1, life: 7, map: 9 };
        let event = Event { seq: 3, at: Timestamp(4), body: EventKind::TradingDay { day: Day(5) } };
        let item = |to| Item { shard: ShardId(1), to, event };
        let items = vec![item(Reader::All), item(Reader::Joining), item(Reader::Late(2))];
        let calls = [
            Call::Post(Post { card, number: 8, items: items.clone() }),
            Call::Beat { card, last: 8 },
            Call::Prices { card, events: items },
            Call::Bye { card },
        ];
        for call in calls {
            let bytes = call.encode();
            assert_eq!((call.card(), Call::decode(&bytes)), (card, Ok(call)));
            assert!((0..bytes.len()).all(|cut| Call::decode(&bytes[..cut]).is_err()));
        }
        let body = CommandKind::Phase { strategy: StrategyId(2), phase: Phase::Start };
        let commands = vec![(ShardId(1), Command::new(Source::default(), 1, body))];
        let securities = vec![SecurityId(4)];
        let letters = [
            Letter::Join { card, life: 1, heard: vec![(ShardId(1), 2)] },
            Letter::Fetch { card, life: 1, from: 2 },
            Letter::Commands { card, life: 1, first: 1, commands },
            Letter::Wants { card, life: 1, ticks: securities.clone(), depths: securities },
            Letter::Gone { card },
            Letter::Joined { card, after: 4, complete: true },
            Letter::Taken { card, life: 1, number: 3 },
        ];
        for letter in letters {
            let bytes = letter.encode();
            assert_eq!((letter.card(), Letter::decode(&bytes)), (card, Ok(letter)));
            assert!((0..bytes.len()).all(|cut| Letter::decode(&bytes[..cut]).is_err()));
        }
    }
}
