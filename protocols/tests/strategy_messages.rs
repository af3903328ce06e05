//! The bytes of the strategy link, shared with its other implementation: the Python client decodes
//! and encodes the same samples.
//!
//! After a change of the format, the failing test prints the new file.

use std::fmt::Write as _;

use pitlane_engine::command::{Command, CommandKind, ExecRef, MovementKind, StrategyPhase};
use pitlane_engine::event::{
    Adjustment, Booking, Event, EventKind, ExecType, OrderReport, OrderTerms, PositionState, RequestKind,
    RequestRefusal, Tick,
};
use pitlane_engine::id::{
    AccountId, Currency, IntId, OrderHandle, PortId, SecurityId, ShardId, Source, StrategyId, TransactionId,
};
use pitlane_engine::number::{Money, Price, Qty};
use pitlane_engine::reason::Reason;
use pitlane_engine::refdata::{NotionalLimit, OrderKinds, OrderLimits, RefData, sample};
use pitlane_engine::sender::SenderId;
use pitlane_engine::terms::{Changes, OrderKind, Side, Status, Terms, Tif};
use pitlane_engine::time::{Day, Timestamp};
use pitlane_protocols::remote::strategy::{
    Blob, EventBatch, NumberedEvent, PriceBatch, RemoteReply, RemoteRequest, ShardHead, StateItem,
    StrategySetup, Welcome, encode_state, source,
};

const INCARNATION: u64 = 9;

fn id(text: &str) -> IntId {
    IntId::parse(text.as_bytes()).expect("a valid id")
}

fn handle() -> OrderHandle {
    OrderHandle::new(ShardId(1), 3, 7)
}

fn terms() -> Terms {
    Terms {
        qty: Qty::from_raw(200_000_000),
        limit: Price::from_raw(10_025_000_000),
        security: SecurityId(1),
        strategy: StrategyId(3),
        side: Side::Sell,
        kind: OrderKind::Limit,
        tif: Tif::Gtc,
        limit_given: true,
        ..Terms::default()
    }
}

fn tick() -> Tick {
    Tick {
        security: SecurityId(1),
        bid: Price::from_raw(100),
        bid_size: Qty::from_raw(1),
        ask: Price::from_raw(102),
        ask_size: Qty::from_raw(2),
        last: Price::from_raw(-5),
        last_size: Qty::from_raw(3),
        traded: true,
        volume: Qty::from_raw(77),
        at: Timestamp(1_700_000_000_000_000_001),
    }
}

fn bodies() -> Vec<EventKind> {
    let own = source(PortId(4), StrategyId(3));
    let entered = OrderTerms {
        order: handle(),
        id: id("s1"),
        orig_id: IntId::NONE,
        source: own,
        what: ExecType::Entered,
        status: Status::PendingNew,
        reason: Reason::None,
        sender: SenderId(5),
        terms: terms(),
    };
    let report = OrderReport {
        order: handle(),
        id: id("s1.1"),
        orig_id: id("s1"),
        qty: Qty::from_raw(200),
        cum_qty: Qty::from_raw(50),
        avg_price: Price::from_raw(1_000),
        last_qty: Qty::from_raw(50),
        last_price: Price::from_raw(1_000),
        source: own,
        sender: SenderId::NONE,
        security: SecurityId(1),
        strategy: StrategyId(3),
        account: AccountId(2),
        what: ExecType::Filled,
        status: Status::PartiallyFilled,
        reason: Reason::None,
        side: Side::Buy,
        kind: OrderKind::StopLimit,
        tif: Tif::Ioc,
        in_doubt: true,
    };
    let refusal = RequestRefusal {
        order: handle(),
        id: id("s1"),
        request_id: id("q4"),
        source: own,
        request: RequestKind::Cancel,
        status: Status::New,
        reason: Reason::OrderFinished,
    };
    let position =
        PositionState { qty: Qty::from_raw(-3), cost: Money::from_raw(-300), realized: Money::from_raw(12) };
    let booking = Booking {
        id: TransactionId(11),
        order: handle(),
        order_id: id("s1"),
        exec: ExecRef(1 << 100),
        kind: MovementKind::Sell,
        strategy: StrategyId(3),
        account: AccountId(2),
        security: Some(SecurityId(1)),
        qty: Qty::from_raw(-3),
        price: Price::from_raw(100),
        commission: Money::from_raw(1),
        currency: sample::usd(),
        position,
        cash: Money::from_raw(-7),
    };
    let transfer = Booking { kind: MovementKind::Credit, security: None, order_id: IntId::NONE, ..booking };
    let flat = PositionState::default();
    let moved = Adjustment::Position { security: SecurityId(1), before: flat, after: position };
    let paid = Adjustment::Cash { currency: sample::usd(), before: Money::ZERO, after: Money::from_raw(10) };
    vec![
        EventKind::Order(entered),
        EventKind::Order(OrderTerms { what: ExecType::Rejected, sender: SenderId::NONE, ..entered }),
        EventKind::Status(report),
        EventKind::Status(OrderReport { sender: SenderId(6), reason: Reason::BadLot, ..report }),
        EventKind::Refused(refusal),
        EventKind::Refused(RequestRefusal { request: RequestKind::Replace, ..refusal }),
        EventKind::Forgotten { order: handle(), source: own, id: id("s1") },
        EventKind::Booked(booking),
        EventKind::Booked(transfer),
        EventKind::Adjusted { strategy: StrategyId(3), what: moved },
        EventKind::Adjusted { strategy: StrategyId(3), what: paid },
        EventKind::TradingDay { day: Day(-2) },
        EventKind::Phase { strategy: StrategyId(3), phase: StrategyPhase::Running },
    ]
}

fn events() -> Vec<Event> {
    let at = Timestamp(1_700_000_000_000_000_000);
    bodies().into_iter().zip(1..).map(|(body, seq)| Event { seq, at, body }).collect()
}

fn replies() -> Vec<RemoteReply> {
    let numbered = |event: Event| NumberedEvent { shard: ShardId(1), before: event.seq - 1, event };
    let welcome = Welcome {
        epoch: 5,
        shards: 2,
        port: PortId(4),
        strategy: StrategyId(3),
        numbers: (100, 200),
        lease_ms: 3_000,
        heads: vec![ShardHead { last: 1, seen: 2 }, ShardHead { last: 3, seen: 4 }],
        complete: true,
        reference_bytes: 70,
        state_bytes: 80,
        section: StrategySetup {
            kind: "k".into(),
            securities: vec![SecurityId(1)],
            parameters: vec![("a".into(), "b".into())],
            start: true,
            cancel_on_failure: false,
        },
    };
    vec![
        RemoteReply::Welcome(Box::new(welcome)),
        RemoteReply::Refused { text: "no".into() },
        RemoteReply::Wait { text: "später".into() },
        RemoteReply::UnknownSession,
        RemoteReply::Piece { at: 7, bytes: vec![1, 2, 3] },
        RemoteReply::Missed { events: events().into_iter().map(numbered).collect(), more: true },
        RemoteReply::Gone,
        RemoteReply::Follows { tick: Some(tick()) },
        RemoteReply::Follows { tick: None },
        RemoteReply::Accepted,
        RemoteReply::Declined { reason: Reason::StrategyNotPermitted },
        RemoteReply::Busy,
    ]
}

fn requests() -> Vec<RemoteRequest> {
    let incarnation = INCARNATION;
    let changes = Changes::default()
        .with_qty(Qty::from_raw(5))
        .with_limit(Price::from_raw(6))
        .with_stop(Price::from_raw(7))
        .with_tif(Tif::Gtd)
        .with_tif_date(Timestamp(8));
    let strategy = StrategyId(3);
    let command =
        |body| RemoteRequest::Command { incarnation, command: Command::new(Source::default(), 0, body) };
    vec![
        RemoteRequest::Hello { incarnation, host: "here:1".into(), received: vec![1, 2] },
        RemoteRequest::Resume { incarnation, received: vec![1, 2] },
        RemoteRequest::Piece { incarnation, of: Blob::State, at: 7 },
        RemoteRequest::Fetch { incarnation, received: vec![3] },
        RemoteRequest::Follow { incarnation, security: SecurityId(4), on: true },
        RemoteRequest::Heartbeat { incarnation, prices: 5, received: vec![3], idle: true },
        RemoteRequest::Failed { incarnation, reason: "why".into() },
        RemoteRequest::Bye { incarnation },
        command(CommandKind::Submit { id: id("s1"), terms: terms() }),
        command(CommandKind::Modify { order: handle(), id: id("s1.1"), changes }),
        command(CommandKind::Cancel { order: handle(), id: id("q1") }),
        command(CommandKind::Subscribe { strategy, security: SecurityId(4), on: false }),
        command(CommandKind::Phase { strategy, phase: StrategyPhase::Stop }),
    ]
}

fn samples() -> String {
    let mut text = String::new();
    let mut add = |kind: &str, bytes: &[u8]| {
        let _ = write!(text, "{kind} ");
        bytes.iter().for_each(|byte| _ = write!(text, "{byte:02x}"));
        text.push('\n');
    };
    replies().iter().for_each(|reply| add("reply", &reply.encode()));
    requests().iter().for_each(|request| add("request", &request.encode()));
    let heads = vec![ShardHead { last: 1, seen: 2 }];
    let batch = EventBatch { epoch: 5, incarnation: INCARNATION, events: Vec::new(), heads };
    add("events", &batch.encode());
    add("prices", &PriceBatch { epoch: 5, number: 6, paced: true, ticks: vec![tick(), tick()] }.encode());
    let items: Vec<StateItem> =
        events().into_iter().map(|event| StateItem { shard: ShardId(0), event }).collect();
    add("state", &encode_state(&items));
    let mut reserved = sample::sound();
    reserved.accounts[0].strategies = vec![StrategyId(1)];
    let mut limited = reserved.clone();
    limited.families[1].limits = OrderLimits {
        min_notional: Some(NotionalLimit { amount: Money::from_raw(5), to_market: false }),
        max_notional: None,
        kinds: OrderKinds::of([OrderKind::Limit, OrderKind::StopLimit]).expect("two types"),
    };
    let mut foreign = sample::sound();
    foreign.families[1].currency = Currency::parse(b"FDUSD").expect("a currency");
    for rows in [sample::sound(), reserved, limited, foreign] {
        let mut bytes = Vec::new();
        RefData::check(rows).expect("valid rows").save(&mut bytes);
        add("reference", &bytes);
    }
    text
}

#[test]
fn the_python_client_knows_these_bytes() {
    let known = include_str!("../../clients/python/tests/data/strategy_messages.txt");
    let current = samples();
    assert!(known == current, "the bytes have changed; this is the new file:\n{current}");
}
