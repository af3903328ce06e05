//! Binary bodies: what the broker sends to a subscriber that accepts them, and what the Rust
//! decoder reads in it, compared with the JSON that another subscriber gets.
//! `clients/sbe/samples.txt` has the same messages for the decoders in other languages;
//! `PITLANE_WRITE_SAMPLES=1` writes it.

use std::fmt::Write;
use std::path::Path;

use pitlane_engine::command::{TradingSession, VenueReport};
use pitlane_engine::event::{
    BookOrder, DEPTH_LEVELS_MAX, Depth, DepthLevel, Event, EventKind, LevelChange, LevelChanges, LevelsKind,
    MarketTrade, OrderAction, OrderChange, OrderChanges, OrderNumber, Tick, TradeNumber,
};
use pitlane_engine::id::{ExchangeId, OrderHandle, SecurityId, ShardId};
use pitlane_engine::reason::Reason;
use pitlane_engine::settings::ShardSettings;
use pitlane_engine::terms::{Changes, Side};
use pitlane_engine::time::Timestamp;
use pitlane_protocols::codes::WireName;
use pitlane_protocols::stomp::broker::{SessionId, StompBroker};
use pitlane_protocols::stomp::payload::market_data::BarPayload;
use pitlane_protocols::stomp::session::Transport;
use pitlane_protocols::stomp::settings::BrokerSettings;
use pitlane_sbe::messages::{DepthUpdate, Level, Order, OrdersUpdate};
use pitlane_sbe::{Decimal, Group, Message};
use pitlane_tests::shard_harness::{ShardHarness, limit};
use pitlane_tests::test_market::{self, price, qty};
use serde_json::{Map, Value};

const SHARD: ShardId = ShardId(0);
/// Topics with binary bodies.
const TOPICS: [&str; 8] =
    ["tick.*", "book.*", "depth.*", "pitlane.>", "orders.*.book", "trade.*", "status.*", "bar.*.1s"];

/// A broker with a subscriber for each format.
struct TwoFormats {
    broker: StompBroker,
    now: Timestamp,
    sessions: [SessionId; 2],
    /// Binary body and JSON of every message.
    pairs: Vec<(Vec<u8>, String)>,
}

impl TwoFormats {
    fn new() -> TwoFormats {
        let now = test_market::start();
        let mut broker = StompBroker::new(BrokerSettings::default(), test_market::reference());
        let sessions = ["application/x-pitlane-sbe", "application/json"].map(|accept| {
            let session = broker.open(now, Transport::Tcp).expect("there is room");
            let mut frames = "CONNECT\naccept-version:1.2\nhost:x\n\n\0".to_string();
            for (id, topic) in TOPICS.iter().enumerate() {
                write!(frames, "SUBSCRIBE\nid:{id}\ndestination:/topic/{topic}\naccept:{accept}\n\n\0")
                    .expect("a text takes everything");
            }
            broker.handle_bytes(now, session, frames.as_bytes());
            session
        });
        let mut formats = TwoFormats { broker, now, sessions, pairs: Vec::new() };
        assert_eq!(formats.sessions.map(|session| formats.bodies(session).len()), [0, 0]);
        formats
    }

    fn publish(&mut self, events: &[Event]) {
        for event in events {
            self.broker.handle_event(self.now, SHARD, event);
            self.collect();
        }
    }

    fn collect(&mut self) {
        let [binary, json] = self.sessions.map(|session| self.bodies(session));
        assert_eq!(binary.len(), json.len());
        for ((binary_type, binary), (json_type, json)) in binary.into_iter().zip(json) {
            assert_eq!(json_type, "application/json");
            assert_eq!(binary_type, "application/x-pitlane-sbe");
            self.pairs.push((binary, String::from_utf8(json).expect("JSON is UTF-8")));
        }
    }

    fn publish_body(&mut self, seq: u64, body: EventKind) {
        self.publish(&[Event { seq, at: self.now, body }]);
    }

    /// Returns content type and body of the messages that wait for a session.
    fn bodies(&mut self, session: SessionId) -> Vec<(String, Vec<u8>)> {
        let mut found = Vec::new();
        while let Some(transmit) = self.broker.transmit(session).filter(|transmit| !transmit.bytes.is_empty())
        {
            found.extend(transmit.frames().filter_map(body_of));
            let count = transmit.bytes.len();
            self.broker.handle_transmitted(self.now, session, count);
        }
        found
    }
}

fn body_of(frame: &[u8]) -> Option<(String, Vec<u8>)> {
    let end = frame.windows(2).position(|pair| pair == b"\n\n")?;
    let head = std::str::from_utf8(&frame[..end]).expect("heads are UTF-8");
    if !head.starts_with("MESSAGE\n") {
        return None;
    }
    let header = |name: &str| {
        let line = head.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(':'));
        line.expect("every message has this header").to_string()
    };
    let length: usize = header("content-length").parse().expect("a number");
    Some((header("content-type"), frame[end + 2..][..length].to_vec()))
}

/// Publishes every kind of message with a template, with all and with few of its members.
fn all_messages() -> Vec<(Vec<u8>, String)> {
    let mut formats = TwoFormats::new();
    let (security, at) = (SecurityId(1), Timestamp(formats.now.0 + 123_456_000));
    let quoted = Tick {
        security,
        bid: price("99.99"),
        bid_size: qty("12"),
        ask: price("100.00000001"),
        ask_size: qty("0.5"),
        last: price("100"),
        last_size: qty("7"),
        traded: true,
        volume: qty("123456789"),
        at,
    };
    formats.publish_body(11, EventKind::Tick(quoted));
    let one_sided = Tick { security, ask: price("3"), ask_size: qty("1"), at, ..Tick::default() };
    formats.publish_body(12, EventKind::Tick(one_sided));
    let mut levels = [DepthLevel::default(); DEPTH_LEVELS_MAX];
    levels[0] = DepthLevel { price: price("99.5"), qty: qty("3") };
    levels[1] = DepthLevel { price: price("99"), qty: qty("4") };
    for (side, count) in [(Side::Buy, 2), (Side::Sell, 0)] {
        formats.publish_body(13, EventKind::Depth(Depth { levels, security, side, count }));
    }
    let changes = |kind, seqs: [u64; 2], changes: &[(Side, &str, &str)]| {
        let mut part = LevelChanges::new(security, kind, seqs[0], seqs[1]);
        for &(side, at, size) in changes {
            part.push(LevelChange { side, price: price(at), qty: qty(size) });
        }
        part.is_last = true;
        EventKind::Levels(part)
    };
    let book = [(Side::Buy, "10", "5"), (Side::Buy, "9.5", "2"), (Side::Sell, "11", "6")];
    formats.publish_body(14, changes(LevelsKind::Snapshot, [4, 4], &book));
    let update = [(Side::Buy, "10", "0"), (Side::Sell, "11.25", "1")];
    formats.publish_body(14, changes(LevelsKind::Update, [4, 7], &update));
    formats.now = formats.now.plus(20_000_000_000);
    formats.publish_body(14, changes(LevelsKind::Update, [7, 9], &[(Side::Buy, "9", "0.00000001")]));
    publish_orders(&mut formats);
    publish_books_of_orders(&mut formats, security);
    publish_market(&mut formats, security);
    formats.pairs
}

fn publish_books_of_orders(formats: &mut TwoFormats, security: SecurityId) {
    let orders = |kind, seqs: [u64; 2], changes: &[(OrderAction, Side, u64, &str, &str)]| {
        let mut part = OrderChanges::new(security, kind, seqs[0], seqs[1]);
        for &(action, side, number, at, size) in changes {
            let order = BookOrder { number: OrderNumber(number), price: price(at), qty: qty(size) };
            part.push(&OrderChange { action, side, order });
        }
        (part.is_first, part.is_last) = (true, true);
        EventKind::BookOrders(part)
    };
    let (add, trade) = (OrderAction::Add, OrderAction::Trade);
    let book = [
        (add, Side::Buy, 7, "10", "5"),
        (add, Side::Buy, 1 << 62, "9.5", "2"),
        (add, Side::Sell, 9, "11", "6"),
    ];
    formats.publish_body(15, orders(LevelsKind::Snapshot, [20, 20], &book));
    let update = [
        (trade, Side::Buy, 7, "10", "1"),
        (OrderAction::Remove, Side::Sell, 9, "11", "0"),
        (OrderAction::Change, Side::Buy, 1 << 62, "9.5", "1.5"),
        (add, Side::Sell, 10, "11", "3"),
    ];
    formats.publish_body(15, orders(LevelsKind::Update, [20, 22], &update));
    formats.now = formats.now.plus(20_000_000_000);
    formats.publish_body(15, orders(LevelsKind::Update, [22, 30], &[(trade, Side::Buy, 7, "10", "4")]));
}

fn publish_market(formats: &mut TwoFormats, security: SecurityId) {
    let trade = MarketTrade {
        number: TradeNumber::new(5, 2),
        security,
        price: price("10.25"),
        qty: qty("3"),
        aggressor: Some(Side::Sell),
    };
    formats.publish_body(16, EventKind::MarketTrade(trade));
    let unknown = MarketTrade { qty: qty("0"), aggressor: None, ..trade };
    formats.publish_body(16, EventKind::MarketTrade(unknown));
    formats.publish_body(17, EventKind::Halt { security, on: true });
    let session = TradingSession::ClosingAuction;
    let before = formats.pairs.len();
    let reference = test_market::reference();
    let exchange = reference.security(security).map_or(ExchangeId(0), |row| reference.exchange_of(row).id);
    formats.publish_body(18, EventKind::Session { exchange, session });
    assert!(formats.pairs.len() > before, "every security of the exchange has another status");
    formats.publish_body(19, EventKind::Halt { security, on: false });
    let bar = BarPayload {
        security,
        size: "1s",
        open: price("10"),
        high: price("12.5"),
        low: price("9"),
        close: price("11"),
        volume: qty("40"),
        at: formats.now,
    };
    formats.broker.publish_bar(formats.now, formats.now, &bar);
    formats.collect();
}

fn publish_orders(formats: &mut TwoFormats) {
    let mut harness = ShardHarness::new(ShardSettings::default());
    let (order, events) = harness.submit(limit(test_market::ABROAD[0], Side::Sell, "10", "100.25"));
    formats.publish(&events);
    let report = |formats: &mut TwoFormats, harness: &mut ShardHarness, report| {
        let events = harness.report(order, report);
        formats.publish(&events);
    };
    report(formats, &mut harness, VenueReport::Accepted);
    formats.publish(&harness.fill(order, 1, "4", "100.5"));
    let events = harness.modify(order, Changes::default().with_qty(qty("8")));
    formats.publish(&events);
    report(formats, &mut harness, VenueReport::Replaced);
    formats.publish(&harness.cancel(order));
    report(formats, &mut harness, VenueReport::Canceled(Reason::Requested));
    assert_ne!(order, OrderHandle::NONE);
    let refused = limit(test_market::NOT_TRADEABLE, Side::Buy, "1", "1");
    let (_, events) = harness.submit(refused);
    formats.publish(&events);
}

#[test]
fn binary_and_json_bodies_have_the_same_content() {
    let pairs = all_messages();
    for (binary, json) in &pairs {
        let mut messages = pitlane_sbe::messages(binary);
        let message = messages.next().expect("a body has a message").expect("it is sound");
        assert!(messages.next().is_none(), "{json}");
        let mut expected: Map<String, Value> = serde_json::from_str(json).expect("JSON");
        for name in ["symbol", "venue", "feed", "dateTime"] {
            expected.remove(name);
        }
        assert_eq!(shown(&message), Value::Object(expected), "{json}");
    }
    for kind in ["TICK", "BOOK", "SNAPSHOT", "UPDATE", "ORDER_STATUS", "TRADE", "SECURITY_STATUS", "BAR"] {
        assert!(pairs.iter().any(|(_, json)| json.starts_with(&format!("{{\"type\":\"{kind}\""))), "{kind}");
    }
}

#[test]
fn several_messages_share_a_body() {
    let pairs = all_messages();
    let together: Vec<u8> = pairs.iter().flat_map(|(binary, _)| binary).copied().collect();
    let shared = pitlane_sbe::messages(&together).map(|message| shown(&message.expect("it is sound")));
    let alone = pairs.iter().flat_map(|(binary, _)| pitlane_sbe::messages(binary));
    let alone = alone.map(|message| shown(&message.expect("it is sound")));
    assert!(shared.eq(alone));
    let cut = pitlane_sbe::messages(&together[..together.len() - 1]);
    assert_eq!(cut.filter(Result::is_err).count(), 1, "only the last is not whole");
}

#[test]
fn the_samples_of_other_decoders_are_the_messages_of_the_broker() {
    let mut text = "# Binary body and JSON of the same messages, written by tests/sbe.rs.\n".to_string();
    for (binary, json) in all_messages() {
        let hex: String = binary.iter().map(|octet| format!("{octet:02x}")).collect();
        text.push_str(&format!("{hex} {json}\n"));
    }
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../clients/sbe/samples.txt");
    if std::env::var_os("PITLANE_WRITE_SAMPLES").is_some() {
        std::fs::write(&path, &text).expect("the folder can be written to");
    }
    let samples = std::fs::read_to_string(&path).expect("the samples are part of the repository");
    assert!(samples == text, "the bodies have changed: run with PITLANE_WRITE_SAMPLES=1, and see the diff");
}

#[test]
fn codes_have_the_names_of_the_schema() {
    use pitlane_engine::event::ExecType;
    use pitlane_engine::terms::Status;
    use pitlane_sbe::codes;

    let name = |value: Option<&'static str>| value.expect("the schema has every value");
    for &status in Status::VALUES {
        assert_eq!(name(codes::Status::from_code(status as u8).map(codes::Status::name)), status.wire_name());
    }
    for &what in ExecType::VALUES {
        assert_eq!(name(codes::ExecType::from_code(what as u8).map(codes::ExecType::name)), what.wire_name());
    }
    for &session in TradingSession::VALUES {
        let code = codes::TradingSession::from_code(session as u8);
        assert_eq!(name(code.map(codes::TradingSession::name)), session.wire_name());
    }
    for side in Side::BOTH {
        assert_eq!(name(codes::Side::from_code(side as u8).map(codes::Side::name)), side.wire_name());
    }
}

fn shown(message: &Message<'_>) -> Value {
    let mut object = Map::new();
    let mut put = |name: &str, value: Value| object.insert(name.to_string(), value);
    match message {
        Message::Tick(tick) => {
            put("type", "TICK".into());
            put("seq", tick.seq().into());
            put("ts", tick.ts().into());
            put("securityId", tick.security_id().into());
            let optional = [
                ("bid", tick.bid()),
                ("bidSize", tick.bid_size()),
                ("ask", tick.ask()),
                ("askSize", tick.ask_size()),
                ("last", tick.last()),
                ("lastSize", tick.last_size()),
                ("volume", Some(tick.volume())),
            ];
            for (name, value) in optional {
                value.map(|value| put(name, decimal(value)));
            }
        }
        Message::Book(book) => {
            put("type", "BOOK".into());
            put("seq", book.seq().into());
            put("ts", book.ts().into());
            put("securityId", book.security_id().into());
            let named = |level: Level<'_>| serde_json::json!({ "price": decimal(level.price()), "size": decimal(level.size()) });
            put("bids", book.bids.iter().map(named).collect());
            put("asks", book.asks.iter().map(named).collect());
        }
        Message::DepthSnapshot(depth) => {
            put("type", "SNAPSHOT".into());
            put("seq", depth.seq().into());
            put("ts", depth.ts().into());
            put("securityId", depth.security_id().into());
            put("bids", pairs_of(&depth.bids));
            put("asks", pairs_of(&depth.asks));
            put("checksum", depth.checksum().into());
        }
        Message::DepthUpdate(depth) => return shown_update(depth),
        Message::OrdersSnapshot(book) => {
            put("type", "SNAPSHOT".into());
            put("seq", book.seq().into());
            put("ts", book.ts().into());
            put("securityId", book.security_id().into());
            put("bids", orders_of(&book.bids));
            put("asks", orders_of(&book.asks));
            put("checksum", book.checksum().into());
        }
        Message::OrdersUpdate(book) => return shown_orders_update(book),
        Message::Trade(trade) => {
            put("type", "TRADE".into());
            put("seq", trade.seq().into());
            put("ts", trade.ts().into());
            put("tradeId", trade.trade_id().into());
            put("securityId", trade.security_id().into());
            put("price", decimal(trade.price()));
            trade.size().map(|size| put("size", decimal(size)));
            trade.aggressor().map(|side| put("aggressor", side.name().into()));
        }
        Message::SecurityStatus(status) => {
            put("type", "SECURITY_STATUS".into());
            put("seq", status.seq().into());
            put("ts", status.ts().into());
            put("securityId", status.security_id().into());
            status.session().map(|session| put("session", session.name().into()));
            put("halted", status.is_halted().into());
        }
        Message::Bar(bar) => {
            put("type", "BAR".into());
            put("seq", bar.seq().into());
            put("ts", bar.ts().into());
            put("securityId", bar.security_id().into());
            put("size", bar.size.into());
            let prices =
                [("open", bar.open()), ("high", bar.high()), ("low", bar.low()), ("close", bar.close())];
            for (name, value) in prices.into_iter().chain([("volume", bar.volume())]) {
                put(name, decimal(value));
            }
        }
        Message::OrderStatus(order) => {
            put("type", "ORDER_STATUS".into());
            put("seq", order.seq().into());
            put("ts", order.ts().into());
            let texts = [
                ("intId", order.int_id),
                ("origIntId", order.orig_int_id),
                ("strategyName", order.strategy_name),
                ("reason", order.reason),
                ("status", order.status().map_or("", |status| status.name())),
                ("execType", order.exec_type().map_or("", |what| what.name())),
                ("side", order.side().map_or("", |side| side.name())),
            ];
            for (name, text) in texts {
                if !text.is_empty() {
                    put(name, text.into());
                }
            }
            let decimals = [
                ("quantity", Some(order.quantity())),
                ("filledQuantity", Some(order.filled_quantity())),
                ("remainingQuantity", Some(order.remaining_quantity())),
                ("avgPrice", order.avg_price()),
                ("lastQuantity", order.last_quantity()),
                ("lastPrice", order.last_price()),
            ];
            for (name, value) in decimals {
                value.map(|value| put(name, decimal(value)));
            }
            put("securityId", order.security_id().into());
            put("accountId", order.account_id().into());
            if order.is_unknown() {
                put("unknown", true.into());
            }
        }
    }
    Value::Object(object)
}

fn shown_update(depth: &DepthUpdate<'_>) -> Value {
    let changes: Vec<Value> = depth
        .changes
        .iter()
        .map(|change| {
            let side = change.side().map_or("", |side| side.name());
            serde_json::json!([side, decimal(change.price()), decimal(change.size())])
        })
        .collect();
    let mut object = serde_json::json!({
        "type": "UPDATE",
        "prevSeq": depth.prev_seq(),
        "seq": depth.seq(),
        "ts": depth.ts(),
        "securityId": depth.security_id(),
        "changes": changes,
    });
    if depth.is_checked() {
        object["checksum"] = depth.checksum().into();
    }
    object
}

fn shown_orders_update(book: &OrdersUpdate<'_>) -> Value {
    let row = |change: pitlane_sbe::messages::OrderChange<'_>| {
        let action = change.action().map_or("", |action| action.name());
        let side = change.side().map_or("", |side| side.name());
        serde_json::json!([action, change.number(), side, decimal(change.price()), decimal(change.size())])
    };
    let changes: Vec<Value> = book.changes.iter().map(row).collect();
    let mut object = serde_json::json!({
        "type": "UPDATE",
        "prevSeq": book.prev_seq(),
        "seq": book.seq(),
        "ts": book.ts(),
        "securityId": book.security_id(),
        "changes": changes,
    });
    if book.is_checked() {
        object["checksum"] = book.checksum().into();
    }
    object
}

fn orders_of<'a>(group: &Group<'a, Order<'a>>) -> Value {
    let row =
        |order: Order<'_>| serde_json::json!([order.number(), decimal(order.price()), decimal(order.size())]);
    group.iter().map(row).collect()
}

fn pairs_of<'a>(group: &Group<'a, Level<'a>>) -> Value {
    group.iter().map(|level| serde_json::json!([decimal(level.price()), decimal(level.size())])).collect()
}

/// Returns a decimal as JSON reads it. The decimals here are few and short, so a float has them.
fn decimal(value: Decimal) -> Value {
    serde_json::from_str(&value.to_string()).expect("a decimal is JSON")
}
