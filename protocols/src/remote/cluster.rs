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
mod tests;
