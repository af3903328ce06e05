//! What a strategy in a process of its own and its server say to each other, and the bytes of it.
//!
//! ```text
//! strategy ── Letter ──► server          Hello, Resume, Piece, Fetch, Follow, Command, Beat, Failed, Bye
//! strategy ◄── Reply ─── server          to each that wants one
//! strategy ◄── Post ──── server          what shards say of it, numbered
//! strategies ◄─ Prices ─ server          one shared topic
//! ```
//!
//! **Numbers.** Each event has the number its shard gave it, which is the same after a restart, since it comes out of the
//! journal. `before` is the number of the event told to this strategy before it, so that whoever has heard up to
//! there lacks nothing; whoever has not asks for what is between.
//!
//! Images rather than JSON: they are exact, the same as in the journal, read without belief, and a tenth of the bytes. Each
//! begins with a byte for the version, and another version is told as such.

use std::fmt;

use crate::codec::{Codec, DecodeError, codec, decode_whole};
use crate::command::Command;
use crate::event::{Event, EventKind, ExecType, Tick};
use crate::id::{IntId, Origin, PortId, SecurityId, ShardId, Source, StrategyId};
use crate::reason::Reason;

/// The first byte of everything that is said. It goes up when the rest would be read as something else.
pub const VERSION: u8 = 1;

/// From a strategy to its server. `life` is one process, from its start to its end; `heard` is by shard the number up to which
/// nothing is lacking.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RemoteRequest {
    /// A new process. What it, or the one before it, has heard; empty if nobody knows.
    Hello { life: u64, host: String, heard: Vec<u64> },
    /// The same process, after it lost sight of the server or the server of it.
    Resume { life: u64, heard: Vec<u64> },
    /// More of what was promised in the welcome.
    Piece { life: u64, of: Blob, at: u32 },
    /// What was said since.
    Fetch { life: u64, heard: Vec<u64> },
    /// Prices of a security are wanted, or no longer.
    Follow { life: u64, security: SecurityId, on: bool },
    /// An order, a request about one, a phase, a subscription.
    Command { life: u64, command: Command },
    /// It lives, and has taken in prices up to this number; idle if it waits for no answer.
    Heartbeat { life: u64, prices: u64, heard: Vec<u64>, idle: bool },
    /// It has failed and stopped, and why.
    Failed { life: u64, reason: String },
    /// It ends in good order.
    Bye { life: u64 },
}

/// Things too long for one message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Blob {
    Reference,
    /// Orders, positions and cash as they stood at the welcome: a list of [`StateItem`].
    State,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RemoteReply {
    Welcome(Box<Welcome>),
    /// This strategy cannot be run from there; in words.
    Refused {
        text: String,
    },
    /// Not now, ask again: it runs elsewhere still, or the server is starting; in words.
    Wait {
        text: String,
    },
    /// Nobody of this life is known: it must resume.
    UnknownSession,
    Piece {
        at: u32,
        bytes: Vec<u8>,
    },
    /// In their order; if there is more, ask again.
    Missed {
        events: Vec<NumberedEvent>,
        more: bool,
    },
    /// What was missed is no longer kept: begin anew, with the state.
    Gone,
    /// The newest price, if there is one.
    Follows {
        tick: Option<Tick>,
    },
    /// It was taken; what came of it is among the events.
    Accepted,
    /// Nothing was done, and nothing will be told of it.
    Declined {
        reason: Reason,
    },
    /// No room just now: send it again.
    Busy,
}

/// What a new process must know.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Welcome {
    /// One life of the server.
    pub epoch: u64,
    pub shards: u8,
    /// By which the shards know the strategy's orders.
    pub port: PortId,
    pub strategy: StrategyId,
    /// Numbers for ids, never given to anybody else: from, and up to but not including.
    pub numbers: (u64, u64),
    /// Without a word for so long it counts as dead.
    pub lease_ms: u32,
    pub heads: Vec<ShardHead>,
    /// Whether all that was said since `heard` can be fetched.
    pub complete: bool,
    pub reference_bytes: u32,
    pub state_bytes: u32,
    pub section: StrategySetup,
}

/// How the server has the strategy set up.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct StrategySetup {
    pub kind: String,
    pub securities: Vec<SecurityId>,
    pub parameters: Vec<(String, String)>,
    pub start: bool,
    pub cancel_on_failure: bool,
}

/// How far a shard has come, as a strategy sees it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ShardHead {
    /// Number of the last event that was for it.
    pub last: u64,
    /// Number of the last event of all: there is nothing for it between the two.
    pub seen: u64,
}

/// An event, and the number of the one before it of the same shard for the same strategy.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NumberedEvent {
    pub shard: ShardId,
    pub before: u64,
    pub event: Event,
}

/// A part of the state, and whose it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StateItem {
    pub shard: ShardId,
    pub event: Event,
}

/// From the server to one strategy: what is new, and how far it is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EventBatch {
    pub epoch: u64,
    pub life: u64,
    pub events: Vec<NumberedEvent>,
    pub heads: Vec<ShardHead>,
}

/// From the server to all strategies.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PriceBatch {
    pub epoch: u64,
    pub number: u64,
    /// The market waits until everybody has said that he has taken this in.
    pub paced: bool,
    pub ticks: Vec<Tick>,
}

codec!(enum RemoteRequest {
    0 = Hello { life, host, heard },
    1 = Resume { life, heard },
    2 = Piece { life, of, at },
    3 = Fetch { life, heard },
    4 = Follow { life, security, on },
    5 = Command { life, command },
    6 = Heartbeat { life, prices, heard, idle },
    7 = Failed { life, reason },
    8 = Bye { life },
});
codec!(enum Blob { 0 = Reference, 1 = State });
codec!(enum RemoteReply {
    0 = Welcome(welcome),
    1 = Refused { text },
    2 = Wait { text },
    3 = UnknownSession,
    4 = Piece { at, bytes },
    5 = Missed { events, more },
    6 = Gone,
    7 = Follows { tick },
    8 = Accepted,
    9 = Declined { reason },
    10 = Busy,
});
codec!(Welcome {
    epoch,
    shards,
    port,
    strategy,
    numbers,
    lease_ms,
    heads,
    complete,
    reference_bytes,
    state_bytes,
    section
});
codec!(StrategySetup { kind, securities, parameters, start, cancel_on_failure });
codec!(ShardHead { last, seen });
codec!(NumberedEvent { shard, before, event });
codec!(StateItem { shard, event });
codec!(EventBatch { epoch, life, events, heads });
codec!(PriceBatch { epoch, number, paced, ticks });

/// Why bytes say nothing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MessageError {
    /// They are of another version of this house.
    Version(u8),
    Damaged(DecodeError),
}

impl fmt::Display for MessageError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            MessageError::Version(theirs) => write!(f, "it speaks version {theirs}, we speak {VERSION}"),
            MessageError::Damaged(damage) => damage.fmt(f),
        }
    }
}

/// Gives types a form in bytes, with the version before it.
macro_rules! versioned_codec {
    ($($name:ident),+) => {
        $(impl $name {
            pub fn encode(&self) -> Vec<u8> {
                let mut bytes = vec![$crate::strategy::remote_protocol::VERSION];
                $crate::codec::Codec::encode(self, &mut bytes);
                bytes
            }

            pub fn decode(bytes: &[u8]) -> Result<$name, $crate::strategy::remote_protocol::MessageError> {
                $crate::strategy::remote_protocol::decode_versioned(bytes)
            }
        })+
    };
}
pub(crate) use versioned_codec;

versioned_codec!(RemoteRequest, RemoteReply, EventBatch, PriceBatch);

pub(crate) fn decode_versioned<T: Codec>(bytes: &[u8]) -> Result<T, MessageError> {
    match bytes.split_first() {
        Some((&VERSION, rest)) => decode_whole(rest).map_err(MessageError::Damaged),
        Some((&other, _)) => Err(MessageError::Version(other)),
        None => decode_whole(bytes).map_err(MessageError::Damaged),
    }
}

/// A state as one parcel.
pub fn encode_state(state: &[StateItem]) -> Vec<u8> {
    let mut bytes = Vec::new();
    crate::codec::encode_list(state.iter(), &mut bytes);
    bytes
}

pub fn decode_state(bytes: &[u8]) -> Result<Vec<StateItem>, DecodeError> {
    decode_whole(bytes)
}

/// Whose a strategy's orders are, at the port that speaks for those who are elsewhere.
pub fn source(port: PortId, strategy: StrategyId) -> Source {
    Source { origin: Origin::Strategy, port, session: strategy.0 }
}

/// Whether a strategy must hear of an event, once and in its order. What a snapshot shows is no event.
pub fn concerns(strategy: Source, event: &Event) -> bool {
    let id = StrategyId(strategy.session);
    match &event.body {
        EventKind::Order(order) => order.source == strategy && order.what != ExecType::Snapshot,
        EventKind::Status(report) => report.source == strategy && report.what != ExecType::Snapshot,
        EventKind::Refused(refusal) => refusal.source == strategy,
        EventKind::Forgotten { source, .. } => *source == strategy,
        EventKind::Booked(booking) => booking.strategy == id,
        EventKind::Adjusted { strategy, .. } | EventKind::Phase { strategy, .. } => *strategy == id,
        // A new day is told to shards before anybody listens, and a strategy's desk forgets by number as well.
        EventKind::TradingDay { .. }
        | EventKind::Tick(_)
        | EventKind::Depth(_)
        | EventKind::Subscription { .. }
        | EventKind::Session { .. }
        | EventKind::Halt { .. }
        | EventKind::Adapter { .. }
        | EventKind::Limits { .. }
        | EventKind::Restrict { .. }
        | EventKind::Kill { .. }
        | EventKind::Directed { .. }
        | EventKind::Sender { .. }
        | EventKind::Sent { .. }
        | EventKind::Alert { .. }
        | EventKind::ToVenue(_)
        | EventKind::Budget(_)
        | EventKind::Done { .. }
        | EventKind::SnapshotBegin { .. }
        | EventKind::SnapshotEnd { .. }
        | EventKind::UsedIds(_) => false,
    }
}

/// The id of the request that an event answers: an order was entered or rejected, a request about one was taken or refused.
pub fn answers(event: &Event) -> Option<IntId> {
    match &event.body {
        EventKind::Order(told) if matches!(told.what, ExecType::Entered | ExecType::Rejected) => {
            Some(told.id)
        }
        EventKind::Status(report) => match report.what {
            ExecType::CancelPending | ExecType::Canceled | ExecType::ReplacePending | ExecType::Replaced => {
                Some(report.id)
            }
            ExecType::Entered
            | ExecType::Rejected
            | ExecType::Accepted
            | ExecType::Filled
            | ExecType::Expired
            | ExecType::Triggered
            | ExecType::Corrected
            | ExecType::Snapshot => None,
        },
        EventKind::Refused(refusal) => Some(refusal.request_id),
        _ => None,
    }
}

/// Whether an event is about an order or a command of a strategy, here or elsewhere.
pub fn is_of_strategy(event: &Event) -> bool {
    let source = match &event.body {
        EventKind::Order(order) => order.source,
        EventKind::Status(report) => report.source,
        EventKind::Refused(refusal) => refusal.source,
        EventKind::Forgotten { source, .. } | EventKind::Done { source, .. } => *source,
        _ => return false,
    };
    source.origin == Origin::Strategy
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::command::{CommandKind, Phase};
    use crate::time::Timestamp;

    fn letters() -> Vec<RemoteRequest> {
        let body = CommandKind::Phase { strategy: StrategyId(2), phase: Phase::Start };
        vec![
            RemoteRequest::Hello { life: 9, host: "here".into(), heard: vec![1, 2] },
            RemoteRequest::Resume { life: 9, heard: Vec::new() },
            RemoteRequest::Piece { life: 9, of: Blob::State, at: 7 },
            RemoteRequest::Fetch { life: 9, heard: vec![3] },
            RemoteRequest::Follow { life: 9, security: SecurityId(4), on: true },
            RemoteRequest::Command { life: 9, command: Command::new(Source::default(), 1, body) },
            RemoteRequest::Heartbeat { life: 9, prices: 5, heard: vec![3], idle: true },
            RemoteRequest::Failed { life: 9, reason: "why".into() },
            RemoteRequest::Bye { life: 9 },
        ]
    }

    #[test]
    fn letters_come_back_and_no_part_of_one_is_another() {
        for letter in letters() {
            let bytes = letter.encode();
            assert_eq!(RemoteRequest::decode(&bytes), Ok(letter));
            for cut in 0..bytes.len() {
                assert!(RemoteRequest::decode(&bytes[..cut]).is_err());
            }
        }
    }

    #[test]
    fn another_version_is_told_as_such() {
        let mut bytes = RemoteRequest::Bye { life: 1 }.encode();
        bytes[0] = VERSION + 1;
        assert_eq!(RemoteRequest::decode(&bytes), Err(MessageError::Version(VERSION + 1)));
        assert!(MessageError::Version(2).to_string().contains("version 2"));
    }

    #[test]
    fn a_strategy_hears_of_its_own_only() {
        let own = source(PortId(1), StrategyId(3));
        let event = |body| Event { seq: 1, at: Timestamp(1), body };
        let phase = |id| event(EventKind::Phase { strategy: StrategyId(id), phase: Phase::Stop });
        assert!(concerns(own, &phase(3)) && !concerns(own, &phase(2)));
        assert!(!concerns(own, &event(EventKind::TradingDay { day: crate::time::Day(1) })));
        assert!(!concerns(own, &event(EventKind::Tick(Tick::default()))));
        let gone = EventKind::Forgotten {
            order: crate::id::OrderHandle::NONE,
            source: own,
            id: crate::id::IntId::NONE,
        };
        assert!(concerns(own, &event(gone)) && is_of_strategy(&event(gone)));
        assert!(!concerns(source(PortId(2), StrategyId(3)), &event(gone)));
    }
}
