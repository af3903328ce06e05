//! Several servers as one: the messages between them, and how each server numbers the ports of the
//! others.
//!
//! ```text
//! owner ── Batch, Heartbeat, Prices ──► all     events of its shards, numbered; liveness; newest prices
//! member ──────── ClusterMessage ─────► owner   Join, Fetch, Commands, Wants
//! owner ───────── ClusterMessage ─────► member  Joined, Gone, Taken; and batches again
//! ```
//!
//! **Ports.** A port of another server is numbered above the 32 ports of a mesh, by its member:
//! orders remember the port they came from, and a shard sends events for such a port to
//! [`PortId::LINK`]. The numbers are translated in transit, so that each server sees its own ports
//! under their own numbers.
//!
//! **Numbers.** A batch has a number in the incarnation of its owner, without gaps, so a receiver
//! notices when one is missing. The events within have the numbers of their shards, which are the
//! same after a restart. Commands have numbers between two incarnations, one of each side.

use pitlane_engine::codec::codec;
use pitlane_engine::command::{Command, CommandKind};
use pitlane_engine::event::{Event, EventKind, EventSubject};
use pitlane_engine::id::{IntId, OrderHandle, PortId, SecurityId, ShardId, Source};
use pitlane_engine::sender::{SenderId, SentBy};

use super::versioned_codec;

/// Version of these messages. 2: orders with special terms, assets of up to eight characters, and
/// subscriptions of the orders and trades of a book. 3: positions of accounts, and their use of
/// credit.
pub const CLUSTER_VERSION: u8 = 3;
/// Servers of one cluster: as many as a port number has room for.
pub const MEMBERS_MAX: usize = 7;
const PORTS: u8 = PortId::MAX + 1;

/// A server, as its index in the list that all servers have.
pub type MemberId = u8;

/// Returns the number under which this server sees a port of another server.
pub fn remote_port(member: MemberId, port: PortId) -> PortId {
    PortId((member + 1).saturating_mul(PORTS) | (port.0 % PORTS))
}

/// Returns the member that owns a port, and the port's number there. `None`: it is a port of this
/// server.
pub fn owner_of_port(port: PortId) -> Option<(MemberId, PortId)> {
    let member = (port.0 / PORTS).checked_sub(1)?;
    Some((member, PortId(port.0 % PORTS)))
}

/// Translates a port from the numbering of `from` to that of this server.
pub fn translate_port(port: PortId, from: MemberId, own: MemberId) -> PortId {
    match owner_of_port(port) {
        None => remote_port(from, port),
        Some((member, port)) if member == own => port,
        Some(_) => port,
    }
}

/// Returns the source that an event answers. `None`: it answers no particular source.
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
        | EventKind::Levels(_)
        | EventKind::BookOrders(_)
        | EventKind::MarketTrade(_)
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
        | EventKind::Exposure { .. }
        | EventKind::SnapshotBegin { .. }
        | EventKind::SnapshotEnd { .. }
        | EventKind::Sender { .. }
        | EventKind::Sent { .. } => None,
        EventKind::UsedIds(used) => Some(&mut used.source),
        EventKind::SpecialTerms(terms) => Some(&mut terms.source),
    }
}

/// Translates the ports of the senders that an event names to those of this server.
pub fn translate_senders(event: &mut Event, port_here: impl Fn(PortId) -> PortId) {
    let translate = |id: &mut SenderId| *id = id.with_port(port_here(id.port()));
    match &mut event.body {
        EventKind::Order(order) => translate(&mut order.sender),
        EventKind::Status(report) => translate(&mut report.sender),
        EventKind::Sender { id, .. } => translate(id),
        EventKind::Sent { sent: SentBy { submitted, modified, canceled }, .. } => {
            [submitted, modified, canceled].into_iter().for_each(translate)
        }
        EventKind::Refused(_)
        | EventKind::Forgotten { .. }
        | EventKind::Booked(_)
        | EventKind::Adjusted { .. }
        | EventKind::Tick(_)
        | EventKind::Depth(_)
        | EventKind::Levels(_)
        | EventKind::BookOrders(_)
        | EventKind::MarketTrade(_)
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
        | EventKind::Exposure { .. }
        | EventKind::Done { .. }
        | EventKind::SnapshotBegin { .. }
        | EventKind::SnapshotEnd { .. }
        | EventKind::SpecialTerms(_)
        | EventKind::UsedIds(_) => {}
    }
}

/// Translates a command of this server's client for the server that takes it.
pub fn translate_command(command: &mut Command, member: MemberId) {
    let there = |port: PortId| remote_port(member, port);
    command.source.port = there(command.source.port);
    command.sender = command.sender.with_port(there(command.sender.port()));
    if let CommandKind::Sender { id, .. } = &mut command.body {
        *id = id.with_port(there(id.port()));
    }
}

/// Returns whether an event concerns an order of another server's client and is not part of a
/// snapshot.
pub fn concerns_remote_client(event: &Event) -> bool {
    let EventSubject { order: Some(_), source: Some(source), .. } = event.body.subject() else {
        return false;
    };
    !event.body.is_order_snapshot() && owner_of_port(source.port).is_some()
}

/// Returns whether an event can come from this shard, which has at most `orders_max` orders.
/// Readers that keep tables by number rely on it.
pub fn is_sound(shard: ShardId, orders_max: u32, event: &Event) -> bool {
    let EventSubject { order, security, .. } = event.body.subject();
    let is_there = |order: OrderHandle| order.shard() == shard && order.slot() < orders_max;
    order.is_none_or(|order| order == OrderHandle::NONE || is_there(order))
        && security.is_none_or(|security| security.0 <= SecurityId::MAX)
}

/// Identifies the answer to a command.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum AnswerKey {
    Order(Source, IntId),
    Request(OrderHandle, IntId),
    Done(Source, u32),
}

impl AnswerKey {
    pub fn of_command(command: &Command) -> AnswerKey {
        if let CommandKind::Submit { id, .. } | CommandKind::Close { id, .. } = command.body {
            return AnswerKey::Order(command.source, id);
        }
        match command.body.request() {
            Some((order, id)) => AnswerKey::Request(order, id),
            None => AnswerKey::Done(command.source, command.token),
        }
    }

    /// Returns the command that an event answers, if it answers one.
    pub fn of_event(event: &Event) -> Option<AnswerKey> {
        if let EventKind::Done { source, token, .. } = event.body {
            return Some(AnswerKey::Done(source, token));
        }
        if let Some(order) = event.body.answered_order() {
            return Some(AnswerKey::Order(order.source, order.id));
        }
        event.body.answered_request().map(|(order, id)| AnswerKey::Request(order, id))
    }
}

/// Sender of a message: its index in the list of servers, the number of its incarnation, and a
/// checksum of the settings that all servers must share.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct MemberIdentity {
    pub member: MemberId,
    pub incarnation: u64,
    pub map: u64,
}

/// A message from an owner to all.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ClusterBroadcast {
    Batch(ClusterBatch),
    /// The owner is alive, and its last batch had this number.
    Heartbeat {
        sender: MemberIdentity,
        last: u64,
    },
    /// The newest price of each security that a member wants.
    Prices {
        sender: MemberIdentity,
        events: Vec<ClusterEvent>,
    },
    Bye {
        sender: MemberIdentity,
    },
}

/// Events of an owner's shards.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ClusterBatch {
    pub sender: MemberIdentity,
    pub number: u64,
    pub items: Vec<ClusterEvent>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ClusterEvent {
    pub shard: ShardId,
    pub to: EventRecipient,
    pub event: Event,
}

/// Recipient of an event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EventRecipient {
    All,
    /// Part of a snapshot, for members that wait for one.
    Joining,
    /// An event from before, for a member that missed it.
    Late(MemberId),
}

/// A message from one server to another. `incarnation` is that of the receiver, as the sender knows
/// it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ClusterMessage {
    /// To an owner: asks for what happened to the sender's orders since these events, then a
    /// snapshot.
    Join { sender: MemberIdentity, incarnation: u64, received: Vec<(ShardId, u64)> },
    /// Asks for batches from this number on.
    Fetch { sender: MemberIdentity, incarnation: u64, from: u64 },
    /// Commands, of which the first has this number.
    Commands { sender: MemberIdentity, incarnation: u64, first: u64, commands: Vec<(ShardId, Command)> },
    /// Market data wanted from now on. Each message contains the complete list.
    Wants {
        sender: MemberIdentity,
        incarnation: u64,
        ticks: Vec<SecurityId>,
        depths: Vec<SecurityId>,
        /// Each of them gets a snapshot with every message.
        levels: Vec<SecurityId>,
        /// Each of them gets a snapshot with every message.
        book_orders: Vec<SecurityId>,
        trades: Vec<SecurityId>,
    },
    /// From an owner: those batches are no longer kept; the receiver must join again.
    Gone { sender: MemberIdentity },
    /// The requested events follow in the batches after this number. `complete` says whether
    /// nothing from before the snapshot is missing.
    Joined { sender: MemberIdentity, after: u64, complete: bool },
    /// Commands up to this number are being sent to the shards.
    Taken { sender: MemberIdentity, incarnation: u64, number: u64 },
}

codec!(MemberIdentity { member, incarnation, map });
codec!(enum ClusterBroadcast {
    0 = Batch(batch),
    1 = Heartbeat { sender, last },
    2 = Prices { sender, events },
    3 = Bye { sender },
});
codec!(ClusterBatch { sender, number, items });
codec!(ClusterEvent { shard, to, event });
codec!(enum EventRecipient { 0 = All, 1 = Joining, 2 = Late(member) });
codec!(enum ClusterMessage {
    0 = Join { sender, incarnation, received },
    1 = Fetch { sender, incarnation, from },
    2 = Commands { sender, incarnation, first, commands },
    3 = Wants { sender, incarnation, ticks, depths, levels, book_orders, trades },
    4 = Gone { sender },
    5 = Joined { sender, after, complete },
    6 = Taken { sender, incarnation, number },
});

versioned_codec!(CLUSTER_VERSION: ClusterBroadcast, ClusterMessage);

impl ClusterMessage {
    pub fn sender(&self) -> MemberIdentity {
        match self {
            ClusterMessage::Join { sender, .. }
            | ClusterMessage::Fetch { sender, .. }
            | ClusterMessage::Commands { sender, .. }
            | ClusterMessage::Wants { sender, .. }
            | ClusterMessage::Gone { sender }
            | ClusterMessage::Joined { sender, .. }
            | ClusterMessage::Taken { sender, .. } => *sender,
        }
    }
}

impl ClusterBroadcast {
    pub fn sender(&self) -> MemberIdentity {
        match self {
            ClusterBroadcast::Batch(batch) => batch.sender,
            ClusterBroadcast::Heartbeat { sender, .. }
            | ClusterBroadcast::Prices { sender, .. }
            | ClusterBroadcast::Bye { sender } => *sender,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::remote::MessageError;
    use pitlane_engine::command::StrategyPhase;
    use pitlane_engine::event::{ExecType, OrderTerms};
    use pitlane_engine::id::StrategyId;
    use pitlane_engine::number::Qty;
    use pitlane_engine::reason::Reason;
    use pitlane_engine::terms::{Changes, ExecInst, OrderSpecialTerms, SpecialTerms, Status, Terms};
    use pitlane_engine::time::{Day, Timestamp};

    #[test]
    fn each_server_sees_its_own_ports_as_they_are_and_those_of_others_beyond() {
        let (a, b, c) = (0, 1, 6);
        let port = PortId(5);
        assert_eq!(owner_of_port(port), None);
        assert_eq!(owner_of_port(remote_port(c, PortId(31))), Some((c, PortId(31))));
        // An order of a at the owner b, as sent to a, to b itself and to c.
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
    fn messages_decode_to_themselves_and_truncated_ones_do_not() {
        let sender = MemberIdentity { member: 1, incarnation: 7, map: 9 };
        let event = Event { seq: 3, at: Timestamp(4), body: EventKind::TradingDay { day: Day(5) } };
        let item = |to| ClusterEvent { shard: ShardId(1), to, event };
        let items =
            vec![item(EventRecipient::All), item(EventRecipient::Joining), item(EventRecipient::Late(2))];
        let broadcasts = [
            ClusterBroadcast::Batch(ClusterBatch { sender, number: 8, items: items.clone() }),
            ClusterBroadcast::Heartbeat { sender, last: 8 },
            ClusterBroadcast::Prices { sender, events: items },
            ClusterBroadcast::Bye { sender },
        ];
        for broadcast in broadcasts {
            let bytes = broadcast.encode();
            assert_eq!((broadcast.sender(), ClusterBroadcast::decode(&bytes)), (sender, Ok(broadcast)));
            assert!((0..bytes.len()).all(|cut| ClusterBroadcast::decode(&bytes[..cut]).is_err()));
        }
        let body = CommandKind::Phase { strategy: StrategyId(2), phase: StrategyPhase::Start };
        let commands = vec![(ShardId(1), Command::new(Source::default(), 1, body))];
        let securities = vec![SecurityId(4)];
        let messages = [
            ClusterMessage::Join { sender, incarnation: 1, received: vec![(ShardId(1), 2)] },
            ClusterMessage::Fetch { sender, incarnation: 1, from: 2 },
            ClusterMessage::Commands { sender, incarnation: 1, first: 1, commands },
            ClusterMessage::Wants {
                sender,
                incarnation: 1,
                ticks: securities.clone(),
                depths: securities.clone(),
                levels: securities.clone(),
                book_orders: securities.clone(),
                trades: securities,
            },
            ClusterMessage::Gone { sender },
            ClusterMessage::Joined { sender, after: 4, complete: true },
            ClusterMessage::Taken { sender, incarnation: 1, number: 3 },
        ];
        for message in messages {
            let bytes = message.encode();
            assert_eq!((message.sender(), ClusterMessage::decode(&bytes)), (sender, Ok(message)));
            assert!((0..bytes.len()).all(|cut| ClusterMessage::decode(&bytes[..cut]).is_err()));
        }
    }
    /// Returns a command of each kind about an order with special terms, and the events about it.
    fn with_special_terms() -> (Vec<CommandKind>, Vec<EventKind>) {
        let special = SpecialTerms {
            exec_inst: ExecInst::parse(b"G 1").expect("two codes"),
            min_qty: Some(Qty::from_raw(2)),
            max_floor: Some(Qty::from_raw(4)),
        };
        let (order, id) = (OrderHandle::NONE, IntId::numbered(b'o', 1));
        let terms = Terms { special: true, ..Terms::default() };
        let commands = vec![
            CommandKind::SpecialTerms(special),
            CommandKind::Submit { id, terms },
            CommandKind::Modify { order, id, changes: Changes::default().with_special(true) },
        ];
        let source = Source { port: PortId(3), ..Source::default() };
        let reported = OrderTerms {
            order,
            id,
            orig_id: IntId::NONE,
            source,
            what: ExecType::Entered,
            status: Status::New,
            reason: Reason::None,
            sender: SenderId::NONE,
            terms,
        };
        let announced = OrderSpecialTerms { order, source, is_snapshot: false, special };
        (commands, vec![EventKind::SpecialTerms(announced), EventKind::Order(reported)])
    }

    /// Returns messages with special terms, as bytes.
    fn special_messages() -> [Vec<u8>; 2] {
        let sender = MemberIdentity { member: 1, incarnation: 7, map: 9 };
        let (commands, events) = with_special_terms();
        let command = |body| (ShardId(1), Command::new(Source::default(), 1, body));
        let commands = commands.into_iter().map(command).collect();
        let event = |body| ClusterEvent {
            shard: ShardId(1),
            to: EventRecipient::All,
            event: Event { seq: 3, at: Timestamp(4), body },
        };
        let items = events.into_iter().map(event).collect();
        let message = ClusterMessage::Commands { sender, incarnation: 1, first: 1, commands };
        let batch = ClusterBroadcast::Batch(ClusterBatch { sender, number: 8, items });
        assert_eq!(ClusterMessage::decode(&message.encode()), Ok(message.clone()));
        assert_eq!(ClusterBroadcast::decode(&batch.encode()), Ok(batch.clone()));
        [message.encode(), batch.encode()]
    }

    #[test]
    fn a_change_of_the_bytes_needs_a_new_version() {
        let sums = special_messages().map(|bytes| {
            let sum = bytes.iter().fold(0u32, |sum, byte| sum.rotate_left(5) ^ u32::from(*byte));
            (bytes[0], bytes.len(), sum)
        });
        let expected = [(3, 152, 4_062_919_657), (3, 169, 2_909_679_448)];
        assert_eq!(sums, expected, "raise CLUSTER_VERSION, then write the new values here");
    }

    #[test]
    fn messages_of_another_version_are_refused_as_such() {
        for mut bytes in special_messages() {
            bytes[0] = CLUSTER_VERSION - 1;
            let error = MessageError::Version { theirs: CLUSTER_VERSION - 1, ours: CLUSTER_VERSION };
            assert_eq!(ClusterMessage::decode(&bytes), Err(error));
            assert_eq!(ClusterBroadcast::decode(&bytes), Err(error));
        }
    }
}
