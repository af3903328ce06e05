//! Messages in the stream that no server of the group has sent, from clients that may publish there
//! and from the broker itself.

use pitlane_engine::index::index_u16;
use pitlane_protocols::remote::strategy::RemoteRequest;
use pitlane_testkit::nats_server::NatsBroker;
use pitlane_testkit::patience::until;
use pitlane_testkit::raw_nats_client::{RawNatsClient, guarded, guarded_in_one_account, password};
use pitlane_testkit::service::folder;
use serde_json::Value;

use super::limits::BrokerClient;
use super::load::OrderLoad;
use super::pair::{StandbyPair, get, look};

const PREFIX: &str = "pitlane.pitlane.standby.pair.";
const SECRET: &str = "standby.secret=known to the two of them";

/// Returns a message as `io/cluster/src/standby/message.rs` encodes it.
fn parcel(epoch: u64, kind: u8, path: &str, rest: &[u8]) -> Vec<u8> {
    let mut bytes = vec![1, kind];
    bytes.extend_from_slice(&epoch.to_le_bytes());
    bytes.extend_from_slice(&index_u16(path.len()).to_le_bytes());
    bytes.extend_from_slice(path.as_bytes());
    bytes.extend_from_slice(rest);
    bytes
}

/// Returns a file of one byte, at its place.
fn piece(epoch: u64, kind: u8, path: &str) -> Vec<u8> {
    parcel(epoch, kind, path, &[&0u64.to_le_bytes()[..], &1u64.to_le_bytes(), b"x"].concat())
}

/// Returns everything that is no message of ours: subject below the prefix, and content.
fn forged() -> Vec<(String, Vec<u8>)> {
    let file = |path: &str| format!("file.{}", path.replace('/', "%2F").replace('.', "%2E"));
    let node = [&[0; 16][..], &9u128.to_le_bytes()].concat();
    let mut forged: Vec<(String, Vec<u8>)> = [
        ("lead", vec![]),
        ("lead", b"not a parcel".to_vec()),
        ("lead", br#"{"stream":"PITLANE_PITLANE_GENERIC", "seq":1}"#.to_vec()),
        ("lead", parcel(999, 1, "", &node)),
        ("lead", parcel(999, 2, "", &node)),
        ("lead", [&[2][..], &parcel(999, 1, "", &node)[1..]].concat()),
        ("beat", parcel(1, 3, "", &[])),
        ("beat", parcel(u64::MAX, 3, "", &[])),
        ("complete", parcel(1, 4, "", &[])),
        ("reserve.0", vec![0; 900_000]),
        ("anything.else", vec![255; 4_000]),
        ("page.x.0", piece(1, 7, "fix/x.store")),
    ]
    .into_iter()
    .map(|(subject, bytes)| (subject.to_string(), bytes))
    .collect();
    for path in ["audit/forged", "../forged/x", "standby/member", "journal/identity", "notes/forged.note"] {
        forged.push((file(path), piece(1, 6, path)));
        forged.push((file(path), parcel(1, 8, path, &[])));
    }
    let segment = "journal/shard-00/000000000001.seg";
    forged.push((file(segment), piece(1, 5, segment)));
    forged
}

/// Ids that such a message may have: none, a meaningless one, and that of a leader in a later
/// epoch, for this place.
fn ids(seq: u64) -> [String; 3] {
    ["NATS/1.0\r\n\r\n".to_string(), id("x"), id(&format!("9.999.{seq}"))]
}

fn id(id: &str) -> String {
    format!("NATS/1.0\r\nNats-Msg-Id: {id}\r\n\r\n")
}

fn standby(pair: &StandbyPair, at: usize) -> Value {
    look(pair.server(at), "/health/ready").json()["standby"].clone()
}

fn foreign(pair: &StandbyPair, at: usize) -> u64 {
    standby(pair, at)["foreign"].as_u64().unwrap()
}

/// A client that may publish everywhere stores every kind of message in the stream, and repeats the
/// messages it has received there.
#[test]
fn no_foreign_message_in_the_stream_ends_or_deposes_a_server() {
    let place = folder("standby-foreign");
    let broker = NatsBroker::start(&place);
    let mut pair = StandbyPair::at(&place, &broker.url());
    pair.settings = vec![SECRET.to_string()];
    pair.begin();
    let epoch = standby(&pair, 0)["epoch"].clone();
    let broker_client = BrokerClient::new(&broker);
    let mut raw_client = RawNatsClient::connect(broker.port, None);
    raw_client.subscribe(&format!("{PREFIX}>"));
    let load = OrderLoad::start(pair.server(0).address(), "before");
    until("orders are acknowledged", || load.acknowledged() >= 20);
    let mut stored = 0;
    for (subject, bytes) in forged() {
        for headers in ids(broker_client.last() + 1) {
            raw_client.publish_with(&format!("{PREFIX}{subject}"), "", headers.as_bytes(), &bytes);
            raw_client.settle();
            stored += 1;
        }
        let before = load.acknowledged();
        until("the leader goes on", || load.acknowledged() > before);
    }
    // Headers that a client cannot read, and messages that were sent before.
    for headers in ["NATS/1.0 x\r\n\r\n", "\r\n", "NATS/1.0\r\nno colon\r\n\r\n"] {
        raw_client.publish_with(&format!("{PREFIX}lead"), "", headers.as_bytes(), b"x");
        stored += 1;
    }
    let received: Vec<_> = raw_client.received.drain(..).collect();
    assert!(received.len() > 20, "it received what the leader sends");
    for message in received.iter().filter(|message| !message.headers.is_empty()).take(200) {
        raw_client.publish_with(&message.subject, "", &message.headers, &message.payload);
    }
    raw_client.settle();
    // The broker has not stored duplicates by id; a message that a later one replaced is not seen.
    until("the leader has passed them", || foreign(&pair, 0) >= stored / 2);
    until("the follower has passed them", || foreign(&pair, 1) >= stored / 2);
    let before = load.acknowledged();
    until("the leader goes on", || load.acknowledged() >= before + 50);
    assert_eq!(standby(&pair, 0)["epoch"], epoch, "no other server has led");
    assert!(pair.server(0).metric("pitlane_standby_foreign_messages_total") >= stored / 2);
    for data in ["server-0", "server-1"].map(|name| place.join(name)) {
        assert!(!data.join("audit/forged").exists() && !data.join("notes/forged.note").exists());
    }
    // The follower has everything, and a reader that starts at the beginning of the stream passes
    // them too.
    pair.kill(0);
    pair.lead(1);
    let acknowledged = load.end();
    let (orders, _) = pair.known(1);
    assert!(acknowledged.iter().all(|id| orders.iter().any(|(known, _)| known == id)));
    pair.launch(0);
    pair.follow(0);
    pair.kill(1);
    pair.lead(0);
    let (orders, _) = pair.known(0);
    assert!(acknowledged.iter().all(|id| orders.iter().any(|(known, _)| known == id)));
}

const STRATEGIES: &str = r#"
[[strategy]]
name = "MARKET_MAKER"
kind = "market-maker"
securities = ["NVDA"]
start = false
cancel_on_failure = true
parameters = { qty = 10, half_spread_ticks = 1, position_max = 100, loss_max = 0 }

[[strategy]]
name = "MOMENTUM"
kind = "moving-average-cross"
securities = ["AAPL"]
start = false
cancel_on_failure = true
parameters = { fast = 20, slow = 100, bar_s = 1, qty = 10, short = true }
"#;

/// Every subject that a server subscribes to or stores, those of other strategies, and API calls of
/// the broker that would destroy data.
const TARGETS: [&str; 22] = [
    "pitlane.pitlane.standby.pair.lead",
    "pitlane.pitlane.standby.pair.beat",
    "pitlane.pitlane.standby.pair.complete",
    "pitlane.pitlane.standby.pair.reserve.0",
    "pitlane.pitlane.standby.pair.file.notes%2Fx%2Enote",
    "pitlane.pitlane.standby.pair.page.fix%2Fx%2Estore.0",
    "pitlane.pitlane.standby.pair.x",
    "pitlane.desk.call.zurich",
    "pitlane.desk.letter.zurich.geneva",
    "pitlane.pitlane.ask.MOMENTUM",
    "pitlane.pitlane.hello.MOMENTUM",
    "pitlane.pitlane.events.MOMENTUM",
    "pitlane.pitlane.inbox.MOMENTUM.x.1",
    "pitlane.pitlane.inbox.MARKET_MAKER",
    "pitlane.pitlane.market",
    "pitlane.pitlane.life",
    "pitlane.pitlane.server.x.1",
    "pitlane.pitlane.canary.MARKET_MAKER",
    "pitlane.pitlane.canary-servers",
    "$JS.API.STREAM.DELETE.PITLANE_PITLANE_STANDBY_pair",
    "$JS.API.STREAM.PURGE.PITLANE_PITLANE_STANDBY_pair",
    "$JS.API.CONSUMER.CREATE.PITLANE_PITLANE_GENERIC.MARKET_MAKER",
];

/// Subjects that the login of a strategy may publish on, and contents for them.
fn allowed() -> Vec<(&'static str, Vec<u8>)> {
    let hello = RemoteRequest::Hello { incarnation: 7, host: "x".to_string(), received: Vec::new() };
    let (stream, name) = ("PITLANE_PITLANE_GENERIC", "MARKET_MAKER");
    let api = |call: &str| Box::leak(format!("$JS.API.CONSUMER.{call}.{stream}.{name}").into_boxed_str());
    vec![
        ("pitlane.pitlane.ask.MARKET_MAKER", hello.encode()),
        ("pitlane.pitlane.ask.MARKET_MAKER", Vec::new()),
        ("pitlane.pitlane.ask.MARKET_MAKER", vec![0; 900_000]),
        ("pitlane.pitlane.hello.MARKET_MAKER", hello.encode()),
        ("pitlane.pitlane.generic", b"1".to_vec()),
        ("pitlane.pitlane.generic", parcel(999, 1, "", &[&[0; 16][..], &9u128.to_le_bytes()].concat())),
        (api("MSG.NEXT"), b"1".to_vec()),
        (api("INFO"), Vec::new()),
        ("$JS.ACK.PITLANE_PITLANE_GENERIC.MARKET_MAKER.1.1.1.1.0", b"+NXT 1".to_vec()),
    ]
}

/// The login of a strategy tries every subject directly, and names each of them as reply subject
/// for the server and the broker. One such message once stopped both servers for good.
fn attack(name: &str, rights: &str, reaches_stream: bool) {
    let place = folder(name);
    let broker = NatsBroker::with(&place, rights);
    let mut pair = StandbyPair::at(&place, &broker.url());
    pair.sections = STRATEGIES.to_string();
    let login = |key: &str, user: &str| {
        [format!("nats.{key}user={user}"), format!("nats.{key}password={}", password(user))]
    };
    pair.settings = [login("", "server"), login("peer_", "standby-a")].concat();
    pair.settings.push("service.mode=distributed".to_string());
    pair.settings.push("strategies.transport=nats".to_string());
    pair.begin();
    let epoch = standby(&pair, 0)["epoch"].clone();
    until("the broker is used", || get(pair.server(0), "/health/ready")["broker"]["connected"] == true);
    let load = OrderLoad::start(pair.server(0).address(), "before");
    let mut raw_client = RawNatsClient::connect(broker.port, Some("market-maker"));
    raw_client.subscribe("pitlane.pitlane.inbox.MARKET_MAKER.>");
    for target in TARGETS {
        raw_client.publish(target, "", b"x");
        assert!(raw_client.settle().iter().any(|words| words.contains("Permissions Violation")), "{target}");
        for (subject, payload) in allowed() {
            raw_client.publish(subject, target, &payload);
            let headers =
                "NATS/1.0\r\nNats-Msg-Id: 9.999.1\r\nPitlane-Event: a\r\nPitlane-From: MOMENTUM\r\n\r\n";
            raw_client.publish_with(subject, target, headers.as_bytes(), &payload);
        }
        assert_eq!(raw_client.settle(), Vec::<String>::new(), "{target}");
        let before = load.acknowledged();
        until("the leader goes on", || load.acknowledged() > before);
    }
    let refused = || pair.server(0).metric("pitlane_remote_strategy_misrouted_messages_total");
    until("requests with another reply subject are refused", || refused() >= TARGETS.len() as u64);
    // Headers that make a client of the broker lose its connection.
    for (subject, payload) in allowed() {
        raw_client.publish_with(subject, TARGETS[0], b"no headers at all\r\n\r\n", &payload);
        raw_client.settle();
        let before = load.acknowledged();
        until("the leader goes on", || load.acknowledged() > before);
    }
    // More than the broker accepts in a message: it disconnects the sender.
    for (subject, _) in allowed() {
        let mut large = RawNatsClient::connect(broker.port, Some("market-maker"));
        large.publish(subject, TARGETS[0], &vec![1; 2 << 20]);
        large.settle();
    }
    if reaches_stream {
        until("both have passed what the broker stored", || foreign(&pair, 0) > 0 && foreign(&pair, 1) > 0);
    } else {
        assert_eq!((foreign(&pair, 0), foreign(&pair, 1)), (0, 0), "nothing has come as far as the stream");
    }
    // The server still receives the strategy itself, and responds where it may.
    let hello = RemoteRequest::Hello { incarnation: 8, host: "y".to_string(), received: Vec::new() };
    until("the strategy is answered", || {
        raw_client.publish(
            "pitlane.pitlane.ask.MARKET_MAKER",
            "pitlane.pitlane.inbox.MARKET_MAKER.x.1",
            &hello.encode(),
        );
        raw_client.settle();
        raw_client.received.iter().any(|message| message.subject == "pitlane.pitlane.inbox.MARKET_MAKER.x.1")
    });
    let before = load.acknowledged();
    until("the leader goes on", || load.acknowledged() >= before + 50);
    assert_eq!(standby(&pair, 0)["epoch"], epoch, "no other server has led");
    let health = get(pair.server(0), "/health/ready");
    assert_eq!(health["broker"]["missingRights"], Value::Array(Vec::new()), "the shipped rights are enough");
    pair.follow(1);
    pair.kill(0);
    pair.lead(1);
    let (orders, _) = pair.known(1);
    assert!(load.end().iter().all(|id| orders.iter().any(|(known, _)| known == id)));
}

#[test]
fn the_login_of_a_strategy_cannot_reach_the_servers_under_the_shipped_rights() {
    attack("standby-guarded", &guarded(), false);
}

#[test]
fn a_strategy_login_ends_and_deposes_no_server_even_in_the_account_of_the_servers() {
    attack("standby-one-account", &guarded_in_one_account(), true);
}
