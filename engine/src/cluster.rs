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
use crate::strategy::remote_protocol::versioned_codec;

/// Servers of one cluster: as many as a port's number has room for.
pub const MEMBERS_MAX: usize = 7;
const PORTS: u8 = PortId::MAX + 1;

/// A server, by its place in the list that all of them have.
pub type MemberId = u8;

/// How we see a port of another server.
pub fn remote_port(member: MemberId, port: PortId) -> PortId {
    PortId((member + 1).saturating_mul(PORTS) | (port.0 % PORTS))
}

/// Whose port this is, and how it is called there; None: our own.
pub fn owner_of_port(port: PortId) -> Option<(MemberId, PortId)> {
    let member = (port.0 / PORTS).checked_sub(1)?;
    Some((member, PortId(port.0 % PORTS)))
}

/// A port as `from` sees it, as we see it.
pub fn translate_port(port: PortId, from: MemberId, own: MemberId) -> PortId {
    match owner_of_port(port) {
        None => remote_port(from, port),
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
pub fn translate_command(command: &mut Command, member: MemberId) {
    let there = |port: PortId| remote_port(member, port);
    command.source.port = there(command.source.port);
    command.sender = command.sender.with_port(there(command.sender.port()));
    if let CommandKind::Sender { id, .. } = &mut command.body {
        *id = id.with_port(there(id.port()));
    }
}

/// Whether an event is about an order of another server's client, and no image.
pub fn concerns_remote_client(event: &Event) -> bool {
    let source = match &event.body {
        EventKind::Order(order) if order.what != ExecType::Snapshot => order.source,
        EventKind::Status(report) if report.what != ExecType::Snapshot => report.source,
        EventKind::Refused(refusal) => refusal.source,
        EventKind::Forgotten { source, .. } => *source,
        _ => return false,
    };
    owner_of_port(source.port).is_some()
}

/// Whether an event can be of this shard, which has so many orders at most. Whoever keeps tables by number relies on it.
pub fn is_sound(shard: ShardId, orders_max: u32, event: &Event) -> bool {
    let (order, security) = match &event.body {
        EventKind::Order(order) => (order.order, Some(order.terms.security)),
        EventKind::Status(order) => (order.order, Some(order.security)),
        EventKind::Refused(order) => (order.order, None),
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
pub enum AnswerKey {
    Order(Source, IntId),
    Request(OrderHandle, IntId),
    Done(Source, u32),
}

impl AnswerKey {
    pub fn of_command(command: &Command) -> AnswerKey {
        match command.body {
            CommandKind::Submit { id, .. } | CommandKind::Close { id, .. } => {
                AnswerKey::Order(command.source, id)
            }
            CommandKind::Modify { order, id, .. } | CommandKind::Cancel { order, id } => {
                AnswerKey::Request(order, id)
            }
            _ => AnswerKey::Done(command.source, command.token),
        }
    }

    /// What an event answers, if it answers anything.
    pub fn of_event(event: &Event) -> Option<AnswerKey> {
        match &event.body {
            EventKind::Order(order) if matches!(order.what, ExecType::Entered | ExecType::Rejected) => {
                Some(AnswerKey::Order(order.source, order.id))
            }
            EventKind::Status(order) => match order.what {
                ExecType::CancelPending
                | ExecType::Canceled
                | ExecType::ReplacePending
                | ExecType::Replaced => Some(AnswerKey::Request(order.order, order.id)),
                ExecType::Entered
                | ExecType::Rejected
                | ExecType::Accepted
                | ExecType::Filled
                | ExecType::Expired
                | ExecType::Triggered
                | ExecType::Corrected
                | ExecType::Snapshot => None,
            },
            EventKind::Refused(Refusal { order, request_id, .. }) => {
                Some(AnswerKey::Request(*order, *request_id))
            }
            EventKind::Done { source, token, .. } => Some(AnswerKey::Done(*source, *token)),
            _ => None,
        }
    }
}

/// Who speaks: the place in the list, one life from start to end, and a sum over what all must have alike.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct MemberIdentity {
    pub member: MemberId,
    pub life: u64,
    pub map: u64,
}

/// From an owner to all.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ClusterBroadcast {
    Batch(ClusterBatch),
    /// It lives, and its last post had this number.
    Heartbeat {
        card: MemberIdentity,
        last: u64,
    },
    /// The newest of each that somebody wants.
    Prices {
        card: MemberIdentity,
        events: Vec<ClusterEvent>,
    },
    Bye {
        card: MemberIdentity,
    },
}

/// What shards have said.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ClusterBatch {
    pub card: MemberIdentity,
    pub number: u64,
    pub items: Vec<ClusterEvent>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ClusterEvent {
    pub shard: ShardId,
    pub to: EventRecipient,
    pub event: Event,
}

/// For whom it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EventRecipient {
    All,
    /// Part of a snapshot: for whoever waits for one.
    Joining,
    /// It happened before: for one who has missed it.
    Late(MemberId),
}

/// From one to one. `life` is that of the receiver, as the sender knows it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ClusterMessage {
    /// To an owner: what happened to orders of mine since these events, then a snapshot.
    Join { card: MemberIdentity, life: u64, heard: Vec<(ShardId, u64)> },
    /// Posts from this number on.
    Fetch { card: MemberIdentity, life: u64, from: u64 },
    /// The first has this number.
    Commands { card: MemberIdentity, life: u64, first: u64, commands: Vec<(ShardId, Command)> },
    /// Market data wanted from now on; all of them, each time.
    Wants { card: MemberIdentity, life: u64, ticks: Vec<SecurityId>, depths: Vec<SecurityId> },
    /// From an owner: those are not kept any more, join anew.
    Gone { card: MemberIdentity },
    /// What was asked for follows in the posts after this number; whether nothing is lacking of what happened before the snapshot.
    Joined { card: MemberIdentity, after: u64, complete: bool },
    /// Commands up to this number are on their way to the shards.
    Taken { card: MemberIdentity, life: u64, number: u64 },
}

codec!(MemberIdentity { member, life, map });
codec!(enum ClusterBroadcast {
    0 = Batch(batch),
    1 = Heartbeat { card, last },
    2 = Prices { card, events },
    3 = Bye { card },
});
codec!(ClusterBatch { card, number, items });
codec!(ClusterEvent { shard, to, event });
codec!(enum EventRecipient { 0 = All, 1 = Joining, 2 = Late(member) });
codec!(enum ClusterMessage {
    0 = Join { card, life, heard },
    1 = Fetch { card, life, from },
    2 = Commands { card, life, first, commands },
    3 = Wants { card, life, ticks, depths },
    4 = Gone { card },
    5 = Joined { card, after, complete },
    6 = Taken { card, life, number },
});

versioned_codec!(ClusterBroadcast, ClusterMessage);

impl ClusterMessage {
    pub fn card(&self) -> MemberIdentity {
        match self {
            ClusterMessage::Join { card, .. }
            | ClusterMessage::Fetch { card, .. }
            | ClusterMessage::Commands { card, .. }
            | ClusterMessage::Wants { card, .. }
            | ClusterMessage::Gone { card }
            | ClusterMessage::Joined { card, .. }
            | ClusterMessage::Taken { card, .. } => *card,
        }
    }
}

impl ClusterBroadcast {
    pub fn card(&self) -> MemberIdentity {
        match self {
            ClusterBroadcast::Batch(post) => post.card,
            ClusterBroadcast::Heartbeat { card, .. }
            | ClusterBroadcast::Prices { card, .. }
            | ClusterBroadcast::Bye { card } => *card,
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
        assert_eq!(owner_of_port(port), None);
        assert_eq!(owner_of_port(remote_port(c, PortId(31))), Some((c, PortId(31))));
        // An order of a at the owner b, as told to a, to b itself and to c.
        let at_b = remote_port(a, port);
        assert_eq!(translate_port(at_b, b, a), port);
        assert_eq!(translate_port(at_b, b, c), at_b);
        assert_eq!(translate_port(port, b, a), remote_port(b, port), "one of b's own");
        let all: std::collections::BTreeSet<u8> = (0..MEMBERS_MAX as u8)
            .flat_map(|member| (0..PORTS).map(move |port| remote_port(member, PortId(port)).0))
            .collect();
        assert_eq!(all.len(), MEMBERS_MAX * PORTS as usize);
        assert!(all.iter().all(|port| *port >= PORTS));
    }

    #[test]
    fn what_is_said_comes_back_and_no_part_of_it_is_another() {
        let card = MemberIdentity { member: 1, life: 7, map: 9 };
        let event = Event { seq: 3, at: Timestamp(4), body: EventKind::TradingDay { day: Day(5) } };
        let item = |to| ClusterEvent { shard: ShardId(1), to, event };
        let items =
            vec![item(EventRecipient::All), item(EventRecipient::Joining), item(EventRecipient::Late(2))];
        let calls = [
            ClusterBroadcast::Batch(ClusterBatch { card, number: 8, items: items.clone() }),
            ClusterBroadcast::Heartbeat { card, last: 8 },
            ClusterBroadcast::Prices { card, events: items },
            ClusterBroadcast::Bye { card },
        ];
        for call in calls {
            let bytes = call.encode();
            assert_eq!((call.card(), ClusterBroadcast::decode(&bytes)), (card, Ok(call)));
            assert!((0..bytes.len()).all(|cut| ClusterBroadcast::decode(&bytes[..cut]).is_err()));
        }
        let body = CommandKind::Phase { strategy: StrategyId(2), phase: Phase::Start };
        let commands = vec![(ShardId(1), Command::new(Source::default(), 1, body))];
        let securities = vec![SecurityId(4)];
        let letters = [
            ClusterMessage::Join { card, life: 1, heard: vec![(ShardId(1), 2)] },
            ClusterMessage::Fetch { card, life: 1, from: 2 },
            ClusterMessage::Commands { card, life: 1, first: 1, commands },
            ClusterMessage::Wants { card, life: 1, ticks: securities.clone(), depths: securities },
            ClusterMessage::Gone { card },
            ClusterMessage::Joined { card, after: 4, complete: true },
            ClusterMessage::Taken { card, life: 1, number: 3 },
        ];
        for letter in letters {
            let bytes = letter.encode();
            assert_eq!((letter.card(), ClusterMessage::decode(&bytes)), (card, Ok(letter)));
            assert!((0..bytes.len()).all(|cut| ClusterMessage::decode(&bytes[..cut]).is_err()));
        }
    }
}
