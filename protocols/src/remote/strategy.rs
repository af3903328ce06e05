//! Messages between a strategy in its own process and its server, and their bytes.
//!
//! ```text
//! strategy ── RemoteRequest ─► server      Hello, Resume, Piece, Fetch, Follow, Command, Heartbeat, Failed, Bye
//! strategy ◄── RemoteReply ─── server      to each request that needs one
//! strategy ◄── EventBatch ──── server      events of the shards for it, numbered
//! strategies ◄─ PriceBatch ─── server      one shared topic
//! ```
//!
//! **Numbers.** Each event has the number that its shard gave it, which is the same after a
//! restart, since it comes from the journal. `before` is the number of the previous event for this
//! strategy: a strategy that has received up to there misses nothing; otherwise it asks for the
//! events between.
//!
//! The messages use the binary codec rather than JSON: it is exact, the same as in the journal,
//! validates untrusted input, and takes a tenth of the bytes. Each message begins with a byte for
//! the version, and another version is reported as such.

use pitlane_engine::codec::{DecodeError, codec, decode_whole, encode_list};
use pitlane_engine::command::Command;
use pitlane_engine::event::{Event, EventKind, ExecType, Tick};
use pitlane_engine::id::{IntId, Origin, PortId, SecurityId, ShardId, Source, StrategyId};
use pitlane_engine::reason::Reason;

use super::versioned_codec;

/// Version of these messages, which the clients in other languages know too.
pub const MESSAGE_VERSION: u8 = 1;

/// From a strategy to its server. `incarnation` identifies one process; `received` is by
/// shard the number up to which nothing is missing.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RemoteRequest {
    /// A new process, with what it or its predecessor has received; empty if unknown.
    Hello { incarnation: u64, host: String, received: Vec<u64> },
    /// The same process, after it and the server lost contact.
    Resume { incarnation: u64, received: Vec<u64> },
    /// Asks for more of a blob promised in the welcome.
    Piece { incarnation: u64, of: Blob, at: u32 },
    /// Asks for the events since these.
    Fetch { incarnation: u64, received: Vec<u64> },
    /// Starts or stops the prices of a security.
    Follow { incarnation: u64, security: SecurityId, on: bool },
    /// An order, a request about one, a phase, a subscription.
    Command { incarnation: u64, command: Command },
    /// The process is alive, and has received prices up to this number; idle if it waits for no
    /// answer.
    Heartbeat { incarnation: u64, prices: u64, received: Vec<u64>, idle: bool },
    /// The strategy has failed and stopped, with the reason.
    Failed { incarnation: u64, reason: String },
    /// The process ends in good order.
    Bye { incarnation: u64 },
}

/// Data too long for one message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Blob {
    Reference,
    /// Orders, positions and cash at the time of the welcome: a list of [`StateItem`].
    State,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RemoteReply {
    Welcome(Box<Welcome>),
    /// This strategy cannot be run from there, with the reason as text.
    Refused {
        text: String,
    },
    /// Not now, ask again: it still runs elsewhere, or the server is starting, with the reason as
    /// text.
    Wait {
        text: String,
    },
    /// This incarnation is unknown: the process must resume.
    UnknownSession,
    Piece {
        at: u32,
        bytes: Vec<u8>,
    },
    /// The missed events in order; if there are more, ask again.
    Missed {
        events: Vec<NumberedEvent>,
        more: bool,
    },
    /// The missed events are no longer kept: start again, with the state.
    Gone,
    /// The newest price, if there is one.
    Follows {
        tick: Option<Tick>,
    },
    /// The command was accepted; its outcome is among the events.
    Accepted,
    /// The command was declined, and no event will follow.
    Declined {
        reason: Reason,
    },
    /// No room just now: send it again.
    Busy,
}

/// Data that a new process needs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Welcome {
    /// Incarnation of the server.
    pub epoch: u64,
    pub shards: u8,
    /// Port under which the shards know the strategy's orders.
    pub port: PortId,
    pub strategy: StrategyId,
    /// Numbers for ids, given to no other process: from, and up to but not including.
    pub numbers: (u64, u64),
    /// Time without a message after which the process counts as dead.
    pub lease_ms: u32,
    pub heads: Vec<ShardHead>,
    /// Whether all events since `received` can be fetched.
    pub complete: bool,
    pub reference_bytes: u32,
    pub state_bytes: u32,
    pub section: StrategySetup,
}

/// The strategy's settings on the server.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct StrategySetup {
    pub kind: String,
    pub securities: Vec<SecurityId>,
    pub parameters: Vec<(String, String)>,
    pub start: bool,
    pub cancel_on_failure: bool,
}

/// Progress of a shard, as a strategy sees it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ShardHead {
    /// Number of the last event for the strategy.
    pub last: u64,
    /// Number of the last event of all: there is none for the strategy between the two.
    pub seen: u64,
}

/// An event, and the number of the previous one of the same shard for the same strategy.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NumberedEvent {
    pub shard: ShardId,
    pub before: u64,
    pub event: Event,
}

/// A part of the state, and its shard.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StateItem {
    pub shard: ShardId,
    pub event: Event,
}

/// From the server to one strategy: new events, and the progress of the shards.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EventBatch {
    pub epoch: u64,
    pub incarnation: u64,
    pub events: Vec<NumberedEvent>,
    pub heads: Vec<ShardHead>,
}

/// From the server to all strategies.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PriceBatch {
    pub epoch: u64,
    pub number: u64,
    /// Whether the market waits until every strategy has confirmed these prices.
    pub paced: bool,
    pub ticks: Vec<Tick>,
}

codec!(enum RemoteRequest {
    0 = Hello { incarnation, host, received },
    1 = Resume { incarnation, received },
    2 = Piece { incarnation, of, at },
    3 = Fetch { incarnation, received },
    4 = Follow { incarnation, security, on },
    5 = Command { incarnation, command },
    6 = Heartbeat { incarnation, prices, received, idle },
    7 = Failed { incarnation, reason },
    8 = Bye { incarnation },
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
codec!(EventBatch { epoch, incarnation, events, heads });
codec!(PriceBatch { epoch, number, paced, ticks });

versioned_codec!(MESSAGE_VERSION: RemoteRequest, RemoteReply, EventBatch, PriceBatch);

/// Encodes a state as one blob.
pub fn encode_state(state: &[StateItem]) -> Vec<u8> {
    let mut bytes = Vec::new();
    encode_list(state.iter(), &mut bytes);
    bytes
}

pub fn decode_state(bytes: &[u8]) -> Result<Vec<StateItem>, DecodeError> {
    decode_whole(bytes)
}

/// Returns the source of a strategy's orders, at the port of remote strategies.
pub fn source(port: PortId, strategy: StrategyId) -> Source {
    Source { origin: Origin::Strategy, port, session: strategy.0 }
}

/// Returns whether a strategy must receive an event, once and in order. Snapshot items are not
/// events.
pub fn concerns(strategy: Source, event: &Event) -> bool {
    let id = StrategyId(strategy.session);
    match &event.body {
        EventKind::Order(order) => order.source == strategy && order.what != ExecType::Snapshot,
        EventKind::Status(report) => report.source == strategy && report.what != ExecType::Snapshot,
        EventKind::Refused(refusal) => refusal.source == strategy,
        EventKind::Forgotten { source, .. } => *source == strategy,
        EventKind::Booked(booking) => booking.strategy == id,
        EventKind::Adjusted { strategy, .. } | EventKind::Phase { strategy, .. } => *strategy == id,
        // Shards start a new day before any listener exists, and a strategy's desk also forgets by
        // number.
        EventKind::TradingDay { .. }
        | EventKind::Tick(_)
        | EventKind::Depth(_)
        | EventKind::Levels(_)
        | EventKind::BookOrders(_)
        | EventKind::MarketTrade(_)
        | EventKind::Subscription { .. }
        | EventKind::Session { .. }
        | EventKind::Halt { .. }
        | EventKind::Adapter { .. }
        | EventKind::Limits { .. }
        | EventKind::Restrict { .. }
        | EventKind::Kill { .. }
        | EventKind::Directed { .. }
        | EventKind::Sender { .. }
        | EventKind::SpecialTerms(_)
        | EventKind::Sent { .. }
        | EventKind::Alert { .. }
        | EventKind::ToVenue(_)
        | EventKind::Budget(_)
        | EventKind::Exposure { .. }
        | EventKind::Done { .. }
        | EventKind::SnapshotBegin { .. }
        | EventKind::SnapshotEnd { .. }
        | EventKind::UsedIds(_) => false,
    }
}

/// Returns the id of the request that an event answers: an order was entered or rejected, a request
/// about one was accepted or refused.
pub fn answers(event: &Event) -> Option<IntId> {
    let order = event.body.answered_order().map(|order| order.id);
    order.or_else(|| event.body.answered_request().map(|(_, id)| id))
}

/// Returns whether an event is about an order or a command of a strategy, local or remote.
pub fn is_of_strategy(event: &Event) -> bool {
    let is_answer = !matches!(event.body, EventKind::UsedIds(_));
    event.body.subject().source.is_some_and(|source| is_answer && source.origin == Origin::Strategy)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::remote::MessageError;
    use crate::test_reports;
    use pitlane_engine::command::{CommandKind, ExecRef, MovementKind, StrategyPhase};
    use pitlane_engine::event::{Adjustment, Booking, OrderTerms, PositionState, RequestKind};
    use pitlane_engine::id::{AccountId, Currency, OrderHandle, TransactionId};
    use pitlane_engine::number::{Money, Price, Qty};
    use pitlane_engine::time::Timestamp;
    use pitlane_engine::used_ids::UsedIds;

    fn letters() -> Vec<RemoteRequest> {
        let body = CommandKind::Phase { strategy: StrategyId(2), phase: StrategyPhase::Start };
        vec![
            RemoteRequest::Hello { incarnation: 9, host: "here".into(), received: vec![1, 2] },
            RemoteRequest::Resume { incarnation: 9, received: Vec::new() },
            RemoteRequest::Piece { incarnation: 9, of: Blob::State, at: 7 },
            RemoteRequest::Fetch { incarnation: 9, received: vec![3] },
            RemoteRequest::Follow { incarnation: 9, security: SecurityId(4), on: true },
            RemoteRequest::Command { incarnation: 9, command: Command::new(Source::default(), 1, body) },
            RemoteRequest::Heartbeat { incarnation: 9, prices: 5, received: vec![3], idle: true },
            RemoteRequest::Failed { incarnation: 9, reason: "why".into() },
            RemoteRequest::Bye { incarnation: 9 },
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
    fn a_state_comes_back_from_its_bytes() {
        let report = test_reports::report(source(PortId(1), StrategyId(3)), ExecType::Snapshot);
        let item = |shard| StateItem {
            shard: ShardId(shard),
            event: test_reports::event(9, EventKind::Status(report)),
        };
        for state in [vec![], vec![item(0)], vec![item(0), item(1)]] {
            let bytes = encode_state(&state);
            assert_eq!(decode_state(&bytes), Ok(state));
            assert!(decode_state(&bytes[..bytes.len() - 1]).is_err());
        }
    }

    #[test]
    fn another_version_is_reported_as_such() {
        let mut bytes = RemoteRequest::Bye { incarnation: 1 }.encode();
        bytes[0] = MESSAGE_VERSION + 1;
        let error = MessageError::Version { theirs: MESSAGE_VERSION + 1, ours: MESSAGE_VERSION };
        assert_eq!(RemoteRequest::decode(&bytes), Err(error));
        assert_eq!(error.to_string(), "it uses version 2, this build uses 1");
    }

    #[test]
    fn a_strategy_receives_only_its_own_events() {
        let own = source(PortId(1), StrategyId(3));
        let event = |body| Event { seq: 1, at: Timestamp(1), body };
        let phase = |id| event(EventKind::Phase { strategy: StrategyId(id), phase: StrategyPhase::Stop });
        assert!(concerns(own, &phase(3)) && !concerns(own, &phase(2)));
        assert!(!concerns(own, &event(EventKind::TradingDay { day: pitlane_engine::time::Day(1) })));
        assert!(!concerns(own, &event(EventKind::Tick(Tick::default()))));
        let gone = EventKind::Forgotten {
            order: pitlane_engine::id::OrderHandle::NONE,
            source: own,
            id: pitlane_engine::id::IntId::NONE,
        };
        assert!(concerns(own, &event(gone)) && is_of_strategy(&event(gone)));
        assert!(!concerns(source(PortId(2), StrategyId(3)), &event(gone)));
        let day = event(EventKind::TradingDay { day: pitlane_engine::time::Day(1) });
        assert!(!is_of_strategy(&phase(3)) && !is_of_strategy(&day), "they name no source");
        let client = Source { origin: Origin::Fix, ..own };
        let of_client = EventKind::Status(test_reports::report(client, ExecType::Accepted));
        assert!(!is_of_strategy(&event(of_client)) && !concerns(own, &event(of_client)));
        let used = UsedIds { hashes: [0; UsedIds::COUNT_MAX], source: own, count: 0 };
        assert!(!is_of_strategy(&event(EventKind::UsedIds(used))), "for the desk of the port");
    }

    #[test]
    fn a_strategy_receives_reports_of_its_orders_but_no_snapshots() {
        let own = source(PortId(1), StrategyId(3));
        let other = source(PortId(1), StrategyId(4));
        let orders = |source, what| {
            let terms = OrderTerms { what, ..test_reports::entered(source) };
            [EventKind::Order(terms), EventKind::Status(test_reports::report(source, what))]
        };
        let receives = |body| concerns(own, &test_reports::event(1, body));
        for what in [ExecType::Entered, ExecType::Replaced] {
            assert!(orders(own, what).into_iter().all(receives), "{what:?}");
            assert!(!orders(other, what).into_iter().any(receives), "{what:?}");
        }
        for source in [own, other] {
            assert!(!orders(source, ExecType::Snapshot).into_iter().any(receives));
        }
        let refusal = |source| EventKind::Refused(test_reports::refused(source, RequestKind::Cancel));
        assert!(receives(refusal(own)) && !receives(refusal(other)));
        let what = Adjustment::Cash {
            currency: Currency::default(),
            before: Money::ZERO,
            after: Money::from_raw(1),
        };
        let adjusted = |id| EventKind::Adjusted { strategy: StrategyId(id), what };
        assert!(receives(adjusted(3)) && !receives(adjusted(4)));
        let booked = |id| EventKind::Booked(booking(StrategyId(id)));
        assert!(receives(booked(3)) && !receives(booked(4)));
    }

    fn booking(strategy: StrategyId) -> Booking {
        Booking {
            id: TransactionId(1),
            order: OrderHandle::NONE,
            order_id: IntId::NONE,
            exec: ExecRef(0),
            kind: MovementKind::Credit,
            strategy,
            account: AccountId(1),
            security: None,
            qty: Qty::ZERO,
            price: Price::ZERO,
            commission: Money::ZERO,
            currency: Currency::default(),
            position: PositionState::default(),
            cash: Money::ZERO,
        }
    }

    #[test]
    fn an_answer_names_the_request() {
        let own = source(PortId(1), StrategyId(3));
        let answered = |body| answers(&test_reports::event(1, body));
        let [first, second] = [1, 2].map(test_reports::id);
        assert_eq!(answered(EventKind::Order(test_reports::entered(own))), Some(first));
        let refusal = test_reports::refused(own, RequestKind::Cancel);
        assert_eq!(answered(EventKind::Refused(refusal)), Some(second));
        let report = |what| EventKind::Status(test_reports::report(own, what));
        assert_eq!(answered(report(ExecType::CancelPending)), Some(first));
        assert_eq!(answered(report(ExecType::Filled)), None);
    }
}
