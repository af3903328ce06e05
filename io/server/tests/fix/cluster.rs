//! Clusters: the real binary twice and a real broker between. Server `a` owns shard 0 and server
//! `b` owns shard 1, so that even security ids belong to `a` and odd ones to `b`.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::SocketAddr;

use pitlane_engine::index::index_usize;
use pitlane_engine::rng::Rng;
use pitlane_testkit::fix_client::FixClient;
use pitlane_testkit::http_client::Response;
use pitlane_testkit::nats_server::NatsBroker;
use pitlane_testkit::network_link::NetworkLink;
use pitlane_testkit::patience::{self, PATIENCE};
use pitlane_testkit::raw_nats_client::{RawNatsClient, guarded, password};
use pitlane_testkit::service::{ServiceProcess, TestFolder, folder};
use pitlane_testkit::stomp_client::{StompClient, body, plain};
use serde_json::Value;

use crate::kills::{act, check};
use crate::others::ask;
use crate::{CONFIG, address, begin, command_with, fix};

pub(crate) const LIMIT: &str = "/rest/execution/order/limit";
pub(crate) const OPEN: &str = "/rest/execution/order";
/// Securities of `a` and of `b`.
pub(crate) const MSFT: u32 = 2;
pub(crate) const AAPL: u32 = 1;

/// Number of corrupted messages.
const GARBLED: usize = 600;

/// Two servers, and what is needed to restart them.
pub(crate) struct ClusterPair {
    pub broker: NatsBroker,
    places: [TestFolder; 2],
    pub services: [Option<ServiceProcess>; 2],
    extra: &'static str,
    /// Injected fault of the next server that is started.
    pub fault: Option<&'static str>,
    /// Link to `b`, which is then in a separate network.
    wire: Option<NetworkLink>,
    /// Whether each server logs in at the broker under its name.
    logs_in: bool,
}

const NAMES: [&str; 2] = ["a", "b"];

impl ClusterPair {
    pub(crate) fn start(name: &str) -> ClusterPair {
        ClusterPair::start_with(name, "")
    }

    /// Starts both with one more setting.
    pub(crate) fn start_with(name: &str, extra: &'static str) -> ClusterPair {
        let places = NAMES.map(|member| folder(&format!("cluster-{name}-{member}")));
        let broker = NatsBroker::start(&places[0]);
        ClusterPair::on(broker, places, None, extra)
    }

    fn on(
        broker: NatsBroker,
        places: [TestFolder; 2],
        wire: Option<NetworkLink>,
        extra: &'static str,
    ) -> ClusterPair {
        ClusterPair::with_logins(broker, places, wire, extra, false)
    }

    fn with_logins(
        broker: NatsBroker,
        places: [TestFolder; 2],
        wire: Option<NetworkLink>,
        extra: &'static str,
        logs_in: bool,
    ) -> ClusterPair {
        let mut pair =
            ClusterPair { broker, places, services: [None, None], extra, fault: None, wire, logs_in };
        pair.spawn(1);
        pair.spawn(0);
        pair.join();
        pair
    }

    /// Starts `b` alone, which does not wait for `a`.
    pub(crate) fn start_second(name: &str) -> ClusterPair {
        let places = NAMES.map(|member| folder(&format!("cluster-{name}-{member}")));
        let (broker, services) = (NatsBroker::start(&places[0]), [None, None]);
        let mut pair =
            ClusterPair { broker, places, services, extra: "", fault: None, wire: None, logs_in: false };
        pair.spawn(1);
        pair
    }

    /// Returns how many of them can be reached from here.
    fn visible(&self) -> usize {
        if self.wire.is_some() { 1 } else { 2 }
    }

    pub(crate) fn spawn(&mut self, at: usize) {
        let config = format!(
            "[cluster]\nname = \"test\"\nmember = \"{}\"\n[[member]]\nname = \"a\"\nshards = [0]\n[[member]]\nname = \"b\"\nshards = [1]\n{CONFIG}",
            NAMES[at]
        );
        let url = format!("nats.url={}", self.broker.url());
        // The server that starts first does not wait, the one with clients does.
        let wait = ["cluster.join_wait_ms=20000", "cluster.join_wait_ms=0"][at];
        let settings =
            [&url, "topology.shards=2", "journal.level=os", "cluster.lease_ms=2500", wait, self.extra];
        let user = format!("member-{}", NAMES[at]);
        let login = [format!("nats.peer_user={user}"), format!("nats.peer_password={}", password(&user))];
        let login = login.iter().map(String::as_str).filter(|_| self.logs_in);
        let settings: Vec<&str> = settings.into_iter().chain(login).collect();
        let settings: Vec<&str> = settings.into_iter().filter(|setting| !setting.is_empty()).collect();
        let mut command = command_with(&self.places[at], &config, &settings);
        if let Some(fault) = self.fault.take() {
            command.env("PITLANE_FAULT", fault);
        }
        if let Some(wire) = self.wire.as_ref().filter(|_| at == 1) {
            command = wire.beyond(&command);
        }
        self.services[at] = Some(begin(&self.places[at], command));
    }

    pub(crate) fn at(&self, at: usize) -> &ServiceProcess {
        self.services[at].as_ref().expect("it runs")
    }

    pub(crate) fn kill(&mut self, at: usize) {
        let service = self.services[at].take().expect("it runs");
        service.signal("KILL");
        service.end();
    }

    /// Waits until both see each other.
    pub(crate) fn join(&self) {
        until(|| (0..self.visible()).all(|at| self.state(at) == "UP"));
    }

    /// Returns the state of the other server as this one sees it.
    pub(crate) fn state(&self, at: usize) -> String {
        let members = get(self.at(at), "/rest/ext/cluster").json();
        members[0]["state"].as_str().expect("a state").to_string()
    }
}

#[track_caller]
pub(crate) fn until(holds: impl FnMut() -> bool) {
    patience::until("what this line waits for", holds);
}

pub(crate) fn get(service: &ServiceProcess, path: &str) -> Response {
    ask(service, "GET", path, "", "")
}

pub(crate) fn submit(service: &ServiceProcess, security: u32, id: &str) -> Response {
    let more = if id.is_empty() { String::new() } else { format!(r#","intId":"{id}""#) };
    let body =
        format!(r#"{{"securityId":{security},"side":"BUY","quantity":5,"limit":1.25,"tif":"GTC"{more}}}"#);
    ask(service, "POST", LIMIT, "Prefer: return=representation\r\n", &body)
}

pub(crate) fn order(service: &ServiceProcess, id: &str) -> Value {
    get(service, &format!("{OPEN}/{id}")).json()[0].clone()
}

pub(crate) fn fix_client(service: &ServiceProcess, sender: &str) -> FixClient {
    let mut client = FixClient::new(sender);
    client.connect(fix(service));
    client.log_on(false);
    client
}

#[test]
fn every_server_accepts_orders_for_all_shards_and_answers_for_all() {
    let pair = ClusterPair::start("all");
    let [a, b] = [pair.at(0), pair.at(1)];
    let stomp: SocketAddr = address(a, "stomp");
    let mut far = StompClient::new(plain(stomp));
    far.connect();
    far.subscribe("1", &format!("tick.{AAPL}"));
    for (here, there, prefix) in [(a, b, 'A'), (b, a, 'B')] {
        for security in [MSFT, AAPL] {
            let answer = submit(here, security, "");
            assert_eq!(answer.status, 200, "{answer:?}");
            let id = answer.json()["intId"].as_str().expect("an id").to_string();
            assert!(id.starts_with(prefix), "each server makes ids of its own: {id}");
            assert_eq!(order(here, &id)["status"], "NEW");
            until(|| order(there, &id)["status"] == "NEW");
            assert_eq!(order(there, &id)["securityId"], security);
            // The order can also be changed and cancelled from there.
            let change = format!(r#"{{"intId":"{id}","quantity":7,"limit":1.5}}"#);
            let modify = "/rest/execution/modify/order/limit";
            let changed = ask(there, "POST", modify, "Prefer: return=representation\r\n", &change);
            assert_eq!(changed.status, 200, "{changed:?}");
            until(|| order(here, &id)["quantity"] == 7);
            assert_eq!(ask(there, "DELETE", &format!("{OPEN}/{id}"), "", "").status, 200);
            until(|| order(here, &id)["status"] == "CANCELED");
        }
    }
    // A FIX client of one server trades a security that the other owns.
    let mut client = fix_client(a, "KEEP1");
    client.order("far", "AAPL", 1, 10, "1.5");
    client.order("near", "MSFT", 1, 10, "1.5");
    assert!(client.receive(4));
    until(|| order(b, "far")["status"] == "NEW" && order(b, "near")["status"] == "NEW");
    // Prices of the other's securities reach subscribers and readers.
    assert!(body(&far.receive_until("MESSAGE")).contains(&format!("\"securityId\":{AAPL}")));
    // The operator's directive reaches all shards.
    assert_eq!(ask(a, "POST", "/rest/ext/kill-switch", "", "").status, 200);
    assert_eq!(submit(b, AAPL, "").code(), "kill-switch");
    assert_eq!(submit(b, MSFT, "").code(), "kill-switch");
    assert_eq!(ask(b, "DELETE", "/rest/ext/kill-switch", "", "").status, 200);
    assert_eq!(submit(a, AAPL, "").status, 200);
    assert_eq!(get(a, OPEN).header("pitlane-age"), None);
    let ready = get(a, "/health/ready").json();
    assert_eq!((&ready["ready"], &ready["members"][0]["inDoubt"]), (&true.into(), &0.into()));
    client.disconnect();
    for service in pair.services.into_iter().flatten() {
        service.signal("TERM");
        let ended = service.end();
        assert!(ended.is_orderly(), "{}\n{}", ended.output, ended.log_text);
    }
}

#[test]
fn while_an_owner_is_unreachable_its_orders_are_refused_and_its_data_has_an_age() {
    let mut pair = ClusterPair::start("away");
    assert_eq!(submit(pair.at(0), AAPL, "kept").status, 200);
    let mut client = fix_client(pair.at(0), "KEEP1");
    client.order("f-kept", "AAPL", 1, 10, "1.5");
    assert!(client.receive(2));
    pair.kill(1);
    until(|| pair.state(0) == "DOWN");
    let a = pair.at(0);
    assert_eq!((submit(a, AAPL, "lost").status, submit(a, AAPL, "lost2").code()), (503, "owner-away".into()));
    assert_eq!(ask(a, "DELETE", &format!("{OPEN}/kept"), "", "").code(), "owner-away");
    assert_eq!(submit(a, MSFT, "own").status, 200, "its own are taken all the while");
    client.order("f-lost", "AAPL", 1, 10, "1.5");
    let message = client.next_message().expect("an answer");
    assert_eq!((message.get(150), message.get(39)), ("8", "8"), "{}", message.text());
    assert!(message.get(58).starts_with("owner-away"), "{}", message.text());
    // The last known state is still shown, with its age.
    let open = get(a, OPEN);
    let ages = open.header("pitlane-age").expect("a server is away").to_string();
    let seconds: f64 = ages.strip_prefix("b=").and_then(|age| age.parse().ok()).expect("its age");
    assert!(seconds > 0.0, "{ages}");
    assert!(open.body.contains("\"kept\"") && open.body.contains("\"f-kept\""), "{}", open.body);
    assert_eq!(get(a, "/health/ready").status, 200);
    pair.spawn(1);
    pair.join();
    let [a, b] = [pair.at(0), pair.at(1)];
    assert_eq!(get(a, OPEN).header("pitlane-age"), None);
    for service in [a, b] {
        assert_eq!(
            (&order(service, "kept")["status"], order(service, "f-kept")["status"].as_str()),
            (&"NEW".into(), Some("NEW"))
        );
    }
    assert_eq!(get(b, &format!("{OPEN}/lost")).status, 404, "it was refused, not kept");
    assert_eq!(ask(a, "DELETE", &format!("{OPEN}/kept"), "", "").status, 200);
    client.send("F", &format!("11=c1|41=f-kept|55=AAPL|54=1|60={}|", pitlane_testkit::fix_client::now()));
    assert!(client.receive(4));
    until(|| order(b, "f-kept")["status"] == "CANCELED");
}

#[test]
fn missed_events_are_reported_although_the_owner_has_restarted_since() {
    let mut pair = ClusterPair::start("both");
    let mut client = fix_client(pair.at(0), "KEEP1");
    client.order("far", "AAPL", 1, 10, "1.5");
    client.order("gone", "AAPL", 1, 10, "1.25");
    assert!(client.receive(4));
    // Its server is killed, its order ends, and then the owner that knows of it is killed.
    pair.kill(0);
    while client.next_message().is_some() {}
    client.disconnect();
    until(|| pair.state(1) == "DOWN");
    assert_eq!(ask(pair.at(1), "DELETE", &format!("{OPEN}/gone"), "", "").status, 200);
    pair.kill(1);
    pair.spawn(1);
    pair.spawn(0);
    pair.join();
    client.connect(fix(pair.at(0)));
    let message = client.received.len();
    client.log_on(false);
    assert!(client.receive(message + 2), "it gets the pending cancel and the cancel");
    let reported: Vec<_> =
        client.received[message..].iter().map(|report| (report.get(37), report.get(39))).collect();
    assert_eq!(reported, [("gone", "6"), ("gone", "4")]);
}

#[test]
fn an_id_used_at_one_server_stays_used_at_the_other_after_a_restart() {
    // A shard forgets an order when four others have finished: then only its id is left.
    let mut pair = ClusterPair::start_with("ids", "shard.finished_max=4");
    let finish = |service: &ServiceProcess, security: u32, id: &str| {
        assert_eq!(submit(service, security, id).status, 200, "{id}");
        assert_eq!(ask(service, "DELETE", &format!("{OPEN}/{id}"), "", "").status, 200, "{id}");
        until(|| order(service, id)["status"] == "CANCELED");
    };
    for security in [MSFT, AAPL] {
        for at in [0, 1] {
            finish(pair.at(at), security, &format!("{}-{security}", NAMES[at]));
        }
    }
    for security in [MSFT, AAPL] {
        (0..5).for_each(|number| finish(pair.at(1), security, &format!("later-{security}-{number}")));
    }
    for at in [0, 1] {
        pair.kill(at);
        pair.spawn(at);
        pair.join();
        // For the security of the first order, and for another one.
        for security in [MSFT, AAPL] {
            for id in [MSFT, AAPL].into_iter().flat_map(|used| NAMES.map(|name| format!("{name}-{used}"))) {
                assert_eq!(get(pair.at(at), &format!("{OPEN}/{id}")).status, 404, "{id} is forgotten");
                assert_eq!(submit(pair.at(at), security, &id).code(), "duplicate-order-id", "{at} {id}");
            }
        }
    }
    assert_eq!(submit(pair.at(0), MSFT, "new").status, 200);
}

#[test]
fn a_server_with_other_settings_is_not_joined() {
    let mut pair = ClusterPair::start("stranger");
    pair.kill(1);
    pair.extra = "service.instance=7";
    pair.places[1] = folder("cluster-stranger-c");
    pair.spawn(1);
    until(|| pair.state(0) == "INCOMPATIBLE" && pair.state(1) == "INCOMPATIBLE");
    assert_eq!(submit(pair.at(0), AAPL, "").code(), "owner-away");
}

#[test]
fn nothing_is_lost_missed_or_doubled_whichever_server_is_killed() {
    let is_full = std::env::var("PITLANE_FAULTS").is_ok_and(|part| part == "full");
    let kills = if is_full { 100 } else { 5 };
    let mut pair = ClusterPair::start("kills");
    let mut dice = Rng::new(11);
    let mut client = fix_client(pair.at(0), "KEEP1");
    let mut orders = Vec::new();
    for round in 0..kills {
        let message = client.received.len();
        let acts = 1 + dice.below(30);
        for _ in 0..acts {
            act(&mut client, &mut dice, &mut orders, round);
        }
        // The owner of half of the orders, the server of the client, or both at once.
        client.receive(message + index_usize(dice.below(acts)));
        let victim = dice.below(3);
        if victim != 0 {
            pair.kill(1);
        }
        if victim != 1 {
            pair.kill(0);
            while client.next_message().is_some() {}
            client.disconnect();
        }
        for at in [1, 0] {
            if pair.services[at].is_none() {
                pair.spawn(at);
            }
        }
        pair.join();
        if victim != 1 {
            client.connect(fix(pair.at(0)));
            client.log_on(false);
        }
    }
    client.settle();
    check(&mut client, &orders);
    // Both servers show the same state.
    let open = |at: usize| {
        let list = get(pair.at(at), OPEN).json();
        let mut ids: Vec<_> =
            list.as_array().expect("a list").iter().map(|row| row["intId"].to_string()).collect();
        ids.sort();
        ids
    };
    until(|| open(0) == open(1));
}

#[test]
fn a_partition_leaves_each_side_its_own_shards_and_pending_commands_apply_once() {
    let wire = match NetworkLink::create("clu") {
        Ok(wire) => wire,
        Err(why) => return println!("SKIPPED: no network of our own can be made here: {why}"),
    };
    let places = NAMES.map(|member| folder(&format!("cluster-parted-{member}")));
    let broker = NatsBroker::start_at(&places[0], wire.own_address());
    let pair = ClusterPair::on(broker, places, Some(wire), "");
    let (a, wire) = (pair.at(0), pair.wire.as_ref().expect("it is laid"));
    let b = |method: &str, path: &str, json: &str| wire.ask(pair.at(1), method, path, json, PATIENCE);
    let order_of = |security: u32, id: &str| {
        format!(
            r#"{{"securityId":{security},"side":"BUY","quantity":5,"limit":1.25,"tif":"GTC","intId":"{id}"}}"#
        )
    };
    assert_eq!(submit(a, AAPL, "before").status, 200);
    let mut client = fix_client(a, "KEEP1");
    wire.cut();
    // The cut is not yet detected: the order is in flight, and its outcome is unknown.
    client.order("doubtful", "AAPL", 1, 10, "1.5");
    until(|| pair.state(0) == "DOWN");
    assert_eq!(get(a, "/rest/ext/cluster").json()[0]["doubts"][0], "doubtful");
    until(|| b("GET", "/rest/ext/cluster", "").1.contains("DOWN"));
    // Each side continues with its own shards.
    assert_eq!(
        (submit(a, MSFT, "a-own").status, submit(a, AAPL, "a-far").code()),
        (200, "owner-away".into())
    );
    assert_eq!(b("POST", LIMIT, &order_of(AAPL, "b-own")).0, 200);
    // Neither side can know that one id is used on both.
    assert_eq!(submit(a, MSFT, "shared").status, 200);
    assert_eq!(b("POST", LIMIT, &order_of(AAPL, "shared")).0, 200);
    let (status, refused) = b("POST", LIMIT, &order_of(MSFT, "b-far"));
    assert!(status == 503 && refused.contains("owner-away"), "{refused}");
    wire.restore();
    until(|| pair.state(0) == "UP" && b("GET", "/rest/ext/cluster", "").1.contains("UP"));
    assert!(client.receive(2), "its answer comes late");
    assert_eq!((client.received[0].get(11), client.received[1].get(39)), ("doubtful", "0"));
    let mut ids: Vec<String> = Vec::new();
    until(|| {
        let mine = get(a, OPEN).json();
        let ids_of = |rows: &Value| {
            let rows = rows.as_array().expect("a list").iter();
            let mut ids: Vec<String> =
                rows.map(|row| row["intId"].as_str().unwrap_or_default().to_string()).collect();
            ids.sort();
            ids
        };
        ids = ids_of(&mine);
        ids == ids_of(&serde_json::from_str(&b("GET", OPEN, "").1).expect("a list"))
    });
    let all = ["a-own", "b-own", "before", "doubtful", "shared", "shared"];
    assert_eq!(ids, all, "what was under way is there, once");
    let shared = ask(a, "DELETE", &format!("{OPEN}/shared"), "", "").json();
    for candidate in shared["candidates"].as_array().expect("which of them is meant is not clear") {
        let handle = candidate["handle"].as_str().expect("a handle");
        assert_eq!(ask(a, "DELETE", &format!("{OPEN}/shared?handle={handle}"), "", "").status, 200);
    }
}

/// A client on the broker receives all messages and sends them again, slightly changed.
#[test]
fn no_message_between_servers_ends_a_server() {
    let pair = ClusterPair::start("garbled");
    let mut raw_client = std::net::TcpStream::connect(("127.0.0.1", pair.broker.port)).expect("it listens");
    raw_client
        .write_all(b"CONNECT {\"verbose\":false,\"echo\":false}\r\nSUB pitlane.test.> 1\r\nPING\r\n")
        .expect("it reads");
    let mut message = BufReader::new(raw_client.try_clone().expect("a socket"));
    let mut dice = Rng::new(5);
    let (mut line, mut reported) = (String::new(), 0);
    while reported < GARBLED {
        line.clear();
        message.read_line(&mut line).expect("it speaks");
        let words: Vec<&str> = line.split_whitespace().collect();
        let ["MSG", subject, _, length] = words[..] else { continue };
        let mut payload = vec![0; length.parse().expect("a length")];
        message.read_exact(&mut payload).expect("the whole message");
        // Creates some traffic.
        if reported % 50 == 0 {
            submit(pair.at(reported / 50 % 2), [MSFT, AAPL][reported / 100 % 2], "");
        }
        reported += 1;
        for _ in 0..1 + dice.below(3) {
            let at = dice.index(payload.len());
            payload[at] = dice.byte();
        }
        payload.truncate(if dice.below(8) == 0 { dice.index(payload.len()) } else { payload.len() });
        let mut bytes = format!("PUB {subject} {}\r\n", payload.len()).into_bytes();
        bytes.extend(payload);
        bytes.extend(b"\r\n");
        raw_client.write_all(&bytes).expect("it reads");
    }
    for service in pair.services.into_iter().flatten() {
        assert_eq!(get(&service, "/health/live").status, 200);
        service.signal("TERM");
        let ended = service.end();
        assert!(ended.is_orderly(), "{}\n{}", ended.output, ended.log_text);
    }
}

/// Under the shipped rights a member can only send in its own name, whatever it knows of the
/// others.
#[test]
fn no_member_speaks_for_another_and_no_message_of_a_member_ends_the_others() {
    let places = NAMES.map(|member| folder(&format!("cluster-guarded-{member}")));
    let rights = guarded().replace("pitlane.desk.", "pitlane.test.");
    let rights = rights.replace("zurich", NAMES[0]).replace("geneva", NAMES[1]);
    let broker = NatsBroker::with(&places[0], &rights);
    let pair = ClusterPair::with_logins(broker, places, None, "", true);
    assert_eq!(submit(pair.at(0), AAPL, "before").status, 200, "the rights are enough");
    let mut raw_client = RawNatsClient::connect(pair.broker.port, Some("member-b"));
    for subject in ["call.a", "letter.b.a", "again.b.a", "letter.a", "again.a", "inbox.a.x"] {
        raw_client.publish(&format!("pitlane.test.{subject}"), "", b"x");
        assert!(raw_client.settle().iter().any(|words| words.contains("Permissions Violation")), "{subject}");
    }
    // It sends again in its own name what it receives of `a`, and every kind of invalid message.
    raw_client.subscribe("pitlane.test.call.*");
    until(|| {
        raw_client.settle();
        raw_client.received.len() >= 20
    });
    let message: Vec<_> =
        raw_client.received.drain(..).filter(|message| message.subject.ends_with("call.a")).collect();
    assert!(!message.is_empty());
    let rubbish = [Vec::new(), vec![0], vec![255; 4_000], vec![1; 900_000]];
    for subject in ["call.b", "letter.a.b", "again.a.b"].map(|subject| format!("pitlane.test.{subject}")) {
        for payload in message.iter().map(|message| &message.payload).chain(&rubbish) {
            raw_client.publish(&subject, "pitlane.test.call.a", payload);
        }
        raw_client.publish_with(&subject, "", b"no headers at all\r\n\r\n", b"x");
        assert_eq!(raw_client.settle(), Vec::<String>::new());
    }
    until(|| pair.at(0).metric("pitlane_cluster_decode_errors_total") > message.len() as u64);
    pair.join();
    until(|| submit(pair.at(0), AAPL, "after").status == 200);
    for service in pair.services.into_iter().flatten() {
        service.signal("TERM");
        let ended = service.end();
        assert!(ended.is_orderly(), "{}\n{}", ended.output, ended.log_text);
    }
}
