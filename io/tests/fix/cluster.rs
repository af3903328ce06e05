//! Several servers as one: the real binary twice and a real broker between. Shard 0 is of server `a`, shard 1 of server `b`, so that even
//! security ids belong to `a` and odd ones to `b`.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::SocketAddr;

use serde_json::Value;

use crate::broker::Broker;
use crate::client::Client;
use crate::http_client::Response;
use crate::kills::{act, check};
use crate::others::ask;
use crate::service::{Folder, Service, folder};
use crate::stomp_client::{Client as Stomp, body, plain};
use crate::stranger::{Stranger, guarded, password};
use crate::wire::Wire;
use crate::{CONFIG, address, begin, command_with, fix};
use pitlane_engine::rng::Rng;

pub const LIMIT: &str = "/rest/execution/order/limit";
pub const OPEN: &str = "/rest/execution/order";
/// Of a, and of b.
pub const MSFT: u32 = 2;
pub const AAPL: u32 = 1;

/// Messages that are garbled.
const GARBLED: usize = 600;

/// Two servers, and what they need to be started again.
pub struct Pair {
    broker: Broker,
    places: [Folder; 2],
    services: [Option<Service>; 2],
    extra: &'static str,
    /// Of the next one that is started.
    pub fault: Option<&'static str>,
    /// To `b`, which then lives in a network of its own.
    wire: Option<Wire>,
    /// Whether each logs in at the broker under its name.
    logs_in: bool,
}

const NAMES: [&str; 2] = ["a", "b"];

impl Pair {
    pub fn start(name: &str) -> Pair {
        Pair::start_with(name, "")
    }

    /// Both with one more setting.
    pub fn start_with(name: &str, extra: &'static str) -> Pair {
        let places = NAMES.map(|member| folder(&format!("cluster-{name}-{member}")));
        let broker = Broker::start(&places[0]);
        Pair::on(broker, places, None, extra)
    }

    fn on(broker: Broker, places: [Folder; 2], wire: Option<Wire>, extra: &'static str) -> Pair {
        Pair::with_logins(broker, places, wire, extra, false)
    }

    fn with_logins(
        broker: Broker,
        places: [Folder; 2],
        wire: Option<Wire>,
        extra: &'static str,
        logs_in: bool,
    ) -> Pair {
        let mut pair = Pair { broker, places, services: [None, None], extra, fault: None, wire, logs_in };
        pair.spawn(1);
        pair.spawn(0);
        pair.join();
        pair
    }

    /// How many of them can be asked from here.
    fn visible(&self) -> usize {
        if self.wire.is_some() { 1 } else { 2 }
    }

    pub fn spawn(&mut self, at: usize) {
        let config = format!(
            "[cluster]\nname = \"test\"\nmember = \"{}\"\n[[member]]\nname = \"a\"\nshards = [0]\n[[member]]\nname = \"b\"\nshards = [1]\n{CONFIG}",
            NAMES[at]
        );
        let url = format!("nats.url={}", self.broker.url());
        // The first that is started does not wait, the one with clients does.
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

    pub fn at(&self, at: usize) -> &Service {
        self.services[at].as_ref().expect("it runs")
    }

    pub fn kill(&mut self, at: usize) {
        let service = self.services[at].take().expect("it runs");
        service.signal("KILL");
        service.end();
    }

    /// Until both are here to each other.
    pub fn join(&self) {
        until(|| (0..self.visible()).all(|at| self.state(at) == "UP"));
    }

    /// How the other one stands in the eyes of this one.
    pub fn state(&self, at: usize) -> String {
        let members = get(self.at(at), "/rest/ext/cluster").json();
        members[0]["state"].as_str().expect("a state").to_string()
    }
}

pub fn until(mut holds: impl FnMut() -> bool) {
    while !holds() {
        std::thread::yield_now();
    }
}

pub fn get(service: &Service, path: &str) -> Response {
    ask(service, "GET", path, "", "")
}

pub fn submit(service: &Service, security: u32, id: &str) -> Response {
    let more = if id.is_empty() { String::new() } else { format!(r#","intId":"{id}""#) };
    let body =
        format!(r#"{{"securityId":{security},"side":"BUY","quantity":5,"limit":1.25,"tif":"GTC"{more}}}"#);
    ask(service, "POST", LIMIT, "Prefer: return=representation\r\n", &body)
}

pub fn order(service: &Service, id: &str) -> Value {
    get(service, &format!("{OPEN}/{id}")).json()[0].clone()
}

pub fn fix_client(service: &Service, sender: &str) -> Client {
    let mut client = Client::new(sender);
    client.connect(fix(service));
    client.log_on(false);
    client
}

#[test]
fn every_server_takes_orders_for_all_and_answers_for_all() {
    let pair = Pair::start("all");
    let [a, b] = [pair.at(0), pair.at(1)];
    let stomp: SocketAddr = address(a, "stomp");
    let mut far = Stomp::new(plain(stomp));
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
            // And it can be changed and cancelled from there.
            let change = format!(r#"{{"intId":"{id}","quantity":7,"limit":1.5}}"#);
            let modify = "/rest/execution/modify/order/limit";
            let changed = ask(there, "POST", modify, "Prefer: return=representation\r\n", &change);
            assert_eq!(changed.status, 200, "{changed:?}");
            until(|| order(here, &id)["quantity"] == 7);
            assert_eq!(ask(there, "DELETE", &format!("{OPEN}/{id}"), "", "").status, 200);
            until(|| order(here, &id)["status"] == "CANCELED");
        }
    }
    // A FIX client of one trades what the other owns.
    let mut client = fix_client(a, "KEEP1");
    client.order("far", "AAPL", 1, 10, "1.5");
    client.order("near", "MSFT", 1, 10, "1.5");
    assert!(client.hear(4));
    until(|| order(b, "far")["status"] == "NEW" && order(b, "near")["status"] == "NEW");
    // Prices of the other's securities reach who watches them, and who only reads.
    assert!(body(&far.hear_until("MESSAGE")).contains(&format!("\"securityId\":{AAPL}")));
    // The operator's word reaches all shards.
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
        assert!(ended.is_orderly(), "{}\n{}", ended.said, ended.complaints);
    }
}

#[test]
fn while_an_owner_is_away_its_orders_are_refused_and_what_is_read_of_it_has_an_age() {
    let mut pair = Pair::start("away");
    assert_eq!(submit(pair.at(0), AAPL, "kept").status, 200);
    let mut client = fix_client(pair.at(0), "KEEP1");
    client.order("f-kept", "AAPL", 1, 10, "1.5");
    assert!(client.hear(2));
    pair.kill(1);
    until(|| pair.state(0) == "DOWN");
    let a = pair.at(0);
    assert_eq!((submit(a, AAPL, "lost").status, submit(a, AAPL, "lost2").code()), (503, "owner-away".into()));
    assert_eq!(ask(a, "DELETE", &format!("{OPEN}/kept"), "", "").code(), "owner-away");
    assert_eq!(submit(a, MSFT, "own").status, 200, "its own are taken all the while");
    client.order("f-lost", "AAPL", 1, 10, "1.5");
    let heard = client.next().expect("an answer");
    assert_eq!((heard.get(150), heard.get(39)), ("8", "8"), "{}", heard.text());
    assert!(heard.get(58).starts_with("owner-away"), "{}", heard.text());
    // What it was is still told, with its age.
    let open = get(a, OPEN);
    let ages = open.header("pitlane-age").expect("somebody is away").to_string();
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
    client.send("F", &format!("11=c1|41=f-kept|55=AAPL|54=1|60={}|", crate::client::now()));
    assert!(client.hear(4));
    until(|| order(b, "f-kept")["status"] == "CANCELED");
}

#[test]
fn what_a_client_missed_is_told_though_the_owner_has_begun_again_since() {
    let mut pair = Pair::start("both");
    let mut client = fix_client(pair.at(0), "KEEP1");
    client.order("far", "AAPL", 1, 10, "1.5");
    client.order("gone", "AAPL", 1, 10, "1.25");
    assert!(client.hear(4));
    // Its server dies, its order ends, and then the owner dies who knows of it.
    pair.kill(0);
    while client.next().is_some() {}
    client.disconnect();
    until(|| pair.state(1) == "DOWN");
    assert_eq!(ask(pair.at(1), "DELETE", &format!("{OPEN}/gone"), "", "").status, 200);
    pair.kill(1);
    pair.spawn(1);
    pair.spawn(0);
    pair.join();
    client.connect(fix(pair.at(0)));
    let heard = client.heard.len();
    client.log_on(false);
    assert!(client.hear(heard + 2), "it is told that its cancel was asked for, and done");
    let told: Vec<_> = client.heard[heard..].iter().map(|report| (report.get(37), report.get(39))).collect();
    assert_eq!(told, [("gone", "6"), ("gone", "4")]);
}

#[test]
fn a_server_with_other_settings_is_not_joined() {
    let mut pair = Pair::start("stranger");
    pair.kill(1);
    pair.extra = "service.instance=7";
    pair.places[1] = folder("cluster-stranger-c");
    pair.spawn(1);
    until(|| pair.state(0) == "INCOMPATIBLE" && pair.state(1) == "INCOMPATIBLE");
    assert_eq!(submit(pair.at(0), AAPL, "").code(), "owner-away");
}

#[test]
fn nothing_is_lost_missed_or_doubled_whichever_server_is_killed() {
    let is_full = std::env::var("PITLANE_FAULTS").is_ok_and(|word| word == "full");
    let kills = if is_full { 100 } else { 5 };
    let mut pair = Pair::start("kills");
    let mut dice = Rng::new(11);
    let mut client = fix_client(pair.at(0), "KEEP1");
    let mut orders = Vec::new();
    for life in 0..kills {
        let heard = client.heard.len();
        let acts = 1 + dice.below(30);
        for _ in 0..acts {
            act(&mut client, &mut dice, &mut orders, life);
        }
        // The owner of the half, the server of the client, or both at once.
        client.hear(heard + dice.below(acts) as usize);
        let victim = dice.below(3);
        if victim != 0 {
            pair.kill(1);
        }
        if victim != 1 {
            pair.kill(0);
            while client.next().is_some() {}
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
    // Both servers have the same picture.
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
fn a_partition_leaves_each_side_its_own_and_what_was_under_way_comes_once() {
    let wire = match Wire::lay("clu") {
        Ok(wire) => wire,
        Err(why) => return println!("SKIPPED: no network of our own can be made here: {why}"),
    };
    let places = NAMES.map(|member| folder(&format!("cluster-parted-{member}")));
    let broker = Broker::start_at(&places[0], wire.here());
    let pair = Pair::on(broker, places, Some(wire), "");
    let (a, wire) = (pair.at(0), pair.wire.as_ref().expect("it is laid"));
    let b = |method: &str, path: &str, json: &str| wire.ask(pair.at(1), method, path, json, 20);
    let order_of = |security: u32, id: &str| {
        format!(
            r#"{{"securityId":{security},"side":"BUY","quantity":5,"limit":1.25,"tif":"GTC","intId":"{id}"}}"#
        )
    };
    assert_eq!(submit(a, AAPL, "before").status, 200);
    let mut client = fix_client(a, "KEEP1");
    wire.cut();
    // Not yet known to be cut: the order is on its way, and nobody knows what becomes of it.
    client.order("doubtful", "AAPL", 1, 10, "1.5");
    until(|| pair.state(0) == "DOWN");
    assert_eq!(get(a, "/rest/ext/cluster").json()[0]["doubts"][0], "doubtful");
    until(|| b("GET", "/rest/ext/cluster", "").1.contains("DOWN"));
    // Each goes on with its own.
    assert_eq!(
        (submit(a, MSFT, "a-own").status, submit(a, AAPL, "a-far").code()),
        (200, "owner-away".into())
    );
    assert_eq!(b("POST", LIMIT, &order_of(AAPL, "b-own")).0, 200);
    // Of one id on both sides none can know.
    assert_eq!(submit(a, MSFT, "shared").status, 200);
    assert_eq!(b("POST", LIMIT, &order_of(AAPL, "shared")).0, 200);
    let (status, refused) = b("POST", LIMIT, &order_of(MSFT, "b-far"));
    assert!(status == 503 && refused.contains("owner-away"), "{refused}");
    wire.mend();
    until(|| pair.state(0) == "UP" && b("GET", "/rest/ext/cluster", "").1.contains("UP"));
    assert!(client.hear(2), "its answer comes late");
    assert_eq!((client.heard[0].get(11), client.heard[1].get(39)), ("doubtful", "0"));
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

/// Whoever is on the broker: hears all that is said there, and says it again, a little other than it was.
#[test]
fn whatever_is_said_between_the_servers_ends_none_of_them() {
    let pair = Pair::start("garbled");
    let mut stranger = std::net::TcpStream::connect(("127.0.0.1", pair.broker.port)).expect("it listens");
    stranger
        .write_all(b"CONNECT {\"verbose\":false,\"echo\":false}\r\nSUB pitlane.test.> 1\r\nPING\r\n")
        .expect("it reads");
    let mut heard = BufReader::new(stranger.try_clone().expect("a socket"));
    let mut dice = Rng::new(5);
    let (mut line, mut told) = (String::new(), 0);
    while told < GARBLED {
        line.clear();
        heard.read_line(&mut line).expect("it speaks");
        let words: Vec<&str> = line.split_whitespace().collect();
        let ["MSG", subject, _, length] = words[..] else { continue };
        let mut payload = vec![0; length.parse().expect("a length")];
        heard.read_exact(&mut payload).expect("the whole message");
        // Something to speak of.
        if told % 50 == 0 {
            submit(pair.at(told / 50 % 2), [MSFT, AAPL][told / 100 % 2], "");
        }
        told += 1;
        for _ in 0..1 + dice.below(3) {
            let at = dice.below(payload.len() as u64) as usize;
            payload[at] = dice.below(256) as u8;
        }
        payload.truncate(if dice.below(8) == 0 {
            dice.below(payload.len() as u64) as usize
        } else {
            payload.len()
        });
        let mut bytes = format!("PUB {subject} {}\r\n", payload.len()).into_bytes();
        bytes.extend(payload);
        bytes.extend(b"\r\n");
        stranger.write_all(&bytes).expect("it reads");
    }
    for service in pair.services.into_iter().flatten() {
        assert_eq!(get(&service, "/health/live").status, 200);
        service.signal("TERM");
        let ended = service.end();
        assert!(ended.is_orderly(), "{}\n{}", ended.said, ended.complaints);
    }
}

/// Under the shipped rights: a member speaks in its own name only, whatever it may know of the others.
#[test]
fn no_member_speaks_for_another_and_nothing_that_one_says_ends_the_others() {
    let places = NAMES.map(|member| folder(&format!("cluster-guarded-{member}")));
    let rights = guarded().replace("pitlane.desk.", "pitlane.test.");
    let rights = rights.replace("zurich", NAMES[0]).replace("geneva", NAMES[1]);
    let broker = Broker::with(&places[0], &rights);
    let pair = Pair::with_logins(broker, places, None, "", true);
    assert_eq!(submit(pair.at(0), AAPL, "before").status, 200, "the rights are enough");
    let mut stranger = Stranger::connect(pair.broker.port, Some("member-b"));
    for subject in ["call.a", "letter.b.a", "again.b.a", "letter.a", "again.a", "inbox.a.x"] {
        stranger.publish(&format!("pitlane.test.{subject}"), "", b"x");
        assert!(stranger.settle().iter().any(|words| words.contains("Permissions Violation")), "{subject}");
    }
    // What it hears of `a` it says again in its own name, and so with every kind of rubbish.
    stranger.subscribe("pitlane.test.call.*");
    until(|| {
        stranger.settle();
        stranger.heard.len() >= 20
    });
    let heard: Vec<_> = stranger.heard.drain(..).filter(|heard| heard.subject.ends_with("call.a")).collect();
    assert!(!heard.is_empty());
    let rubbish = [Vec::new(), vec![0], vec![255; 4_000], vec![1; 900_000]];
    for subject in ["call.b", "letter.a.b", "again.a.b"].map(|subject| format!("pitlane.test.{subject}")) {
        for payload in heard.iter().map(|heard| &heard.payload).chain(&rubbish) {
            stranger.publish(&subject, "pitlane.test.call.a", payload);
        }
        stranger.publish_with(&subject, "", b"no headers at all\r\n\r\n", b"x");
        assert_eq!(stranger.settle(), Vec::<String>::new());
    }
    until(|| pair.at(0).metric("pitlane_cluster_decode_errors_total") > heard.len() as u64);
    pair.join();
    until(|| submit(pair.at(0), AAPL, "after").status == 200);
    for service in pair.services.into_iter().flatten() {
        service.signal("TERM");
        let ended = service.end();
        assert!(ended.is_orderly(), "{}\n{}", ended.said, ended.complaints);
    }
}
