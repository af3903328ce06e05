//! What an operator sees and does.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use pitlane_engine::command::{Command, CommandKind, StrategyPhase};
use pitlane_engine::event::{EventKind, ExecType};
use pitlane_engine::id::{IntId, Origin, PortId, SecurityId, Source, StrategyId};
use pitlane_engine::mesh::{Broadcast, Depths};
use pitlane_engine::number::{Price, Qty};
use pitlane_engine::shard::shard_of;
use pitlane_engine::terms::{OrderKind, Terms};
use pitlane_http::{HttpEvent, HttpSettings, Journaling, ServicePhase};

use crate::server::{HttpTestServer, SHARDS, ServerPlan};

const POST_SWITCH: &str = "POST /rest/ext/kill-switch HTTP/1.1\r\nHost: localhost\r\n\r\n";
const DELETE_SWITCH: &str = "DELETE /rest/ext/kill-switch HTTP/1.1\r\nHost: localhost\r\n\r\n";

#[test]
fn ready_shows_the_state() {
    let server = HttpTestServer::start();
    let response = server.get("/health/ready");
    assert_eq!(response.status, 200);
    assert_eq!(response.header("content-type"), Some("application/json"));
    assert_eq!(response.header("transfer-encoding"), Some("chunked"));
    assert_eq!(response.header("content-length"), None);
    let body = response.json();
    assert_eq!(body["ready"], true);
    assert_eq!(body["phase"], "RUNNING");
    assert_eq!(body["durability"], serde_json::json!({ "level": "none", "journal": "SOUND" }));
    assert_eq!(body["shards"].as_array().unwrap().len(), SHARDS as usize);
    assert_eq!(body["shards"][1]["complete"], true);
    assert_eq!(body["adapters"][0]["connected"], true);
    assert_eq!(
        body["listeners"][0],
        serde_json::json!({ "name": "http", "address": server.http.to_string() })
    );
    assert!(body["uptimeMs"].is_u64());

    for journaling in [Journaling::Full, Journaling::Failed] {
        server.service_status.set_journaling(journaling);
        let response = server.get("/health/ready");
        assert_eq!((response.status, response.json()["ready"].as_bool()), (503, Some(false)));
        assert_eq!(response.json()["durability"]["journal"], journaling.name());
        assert_eq!(server.get("/health/live").status, 200);
    }
    server.service_status.set_journaling(Journaling::Sound);
    server.service_status.set_phase(ServicePhase::Stopping);
    let response = server.get("/health/ready");
    assert_eq!((response.status, response.header("retry-after")), (503, Some("1")));
    assert_eq!(response.json()["phase"], "STOPPING");
}

#[test]
fn without_shards_the_service_is_live_and_not_ready() {
    let server = HttpTestServer::with(ServerPlan { alive: false, ..ServerPlan::default() });
    server.service_status.set_phase(ServicePhase::Running);
    assert_eq!(server.get("/health/live").status, 200);
    let response = server.get("/health/ready");
    assert_eq!(response.status, 503);
    assert_eq!(response.json()["shards"][0]["complete"], false);
    let response = server.ask(POST_SWITCH);
    assert_eq!((response.status, response.code().as_str()), (503, "starting"));
}

#[test]
fn version_shows_the_build() {
    let body = HttpTestServer::start().get("/version").json();
    assert_eq!(body["version"], env!("CARGO_PKG_VERSION"));
    assert_eq!(body["formats"]["journal"], 1);
}

#[test]
fn latency_shows_the_stages_of_every_thread() {
    let body = HttpTestServer::start().get("/rest/ext/latency").json();
    let stage = serde_json::json!([{
        "thread": "shard-0", "stage": "apply", "count": 9,
        "p50Ns": 1, "p90Ns": 2, "p99Ns": 3, "p999Ns": 4, "maxNs": 1_000_000_007
    }]);
    assert_eq!(body, stage);
}

#[test]
fn accounts_are_readable_by_every_page() {
    let server = HttpTestServer::start();
    let response = server.get("/rest/account");
    assert_eq!(response.header("access-control-allow-origin"), Some("*"));
    let accounts = response.json();
    assert!(accounts.as_array().unwrap().len() >= 3);
    let first = &accounts[0];
    assert!(first["id"].is_u64() && first["name"].is_string() && first["active"].is_boolean());
    assert_eq!(first["broker"], first["adapterType"]);
}

fn command(body: CommandKind) -> Command {
    Command::new(Source { origin: Origin::Fix, port: PortId(1), session: 0 }, 0, body)
}

/// Sends an order over another port, and waits for its first event.
fn submit(server: &mut HttpTestServer, id: &str) -> ExecType {
    let terms = Terms {
        security: SecurityId(1),
        account: pitlane_engine::id::AccountId(1),
        qty: Qty::whole(100).unwrap(),
        kind: OrderKind::Limit,
        limit: Price::parse(b"1").unwrap(),
        limit_given: true,
        ..Terms::default()
    };
    let id = IntId::parse(id.as_bytes()).unwrap();
    let shard = shard_of(SecurityId(1), SHARDS);
    server.trader.send(shard, command(CommandKind::Submit { id, terms })).unwrap();
    server.shard_wakeup.wake();
    loop {
        if let Some((_, event)) = server.trader.poll_event()
            && let EventKind::Order(order) = event.body
            && order.id == id
        {
            return order.what;
        }
        std::thread::yield_now();
    }
}

#[test]
fn the_kill_switch_cancels_all_orders_refuses_new_ones_and_can_be_turned_off() {
    let mut server = HttpTestServer::start();
    for phase in [StrategyPhase::Init, StrategyPhase::Prefeed, StrategyPhase::Start, StrategyPhase::Running] {
        let body = CommandKind::Phase { strategy: StrategyId::SERVER, phase };
        assert!(server.trader.send_all(&mut Broadcast::new(command(body))));
    }
    assert_eq!(submit(&mut server, "a"), ExecType::Entered);

    let response = server.ask(POST_SWITCH);
    assert_eq!(response.status, 200);
    assert_eq!(response.body, r#"{"confirmed":"ALL","unconfirmedShards":[]}"#);
    // A client reads its own writes.
    assert_eq!(server.get("/health/ready").json()["killSwitch"], true);
    assert_eq!(value(&server.get("/metrics").body, "pitlane_read_model_orders{state=\"open\"}"), "0");
    assert_eq!(value(&server.get("/metrics").body, "pitlane_read_model_orders{state=\"finished\"}"), "1");
    assert_eq!(submit(&mut server, "b"), ExecType::Rejected);

    assert_eq!(server.ask(DELETE_SWITCH).status, 200);
    assert_eq!(server.get("/health/ready").json()["killSwitch"], false);
    assert_eq!(submit(&mut server, "c"), ExecType::Entered);
    // A repeated call has the same result.
    assert_eq!(server.ask(DELETE_SWITCH).status, 200);
}

#[test]
fn many_writes_at_once_are_all_answered() {
    let server = HttpTestServer::with(ServerPlan {
        depths: Depths { commands: 1_024, events: 16 },
        ..ServerPlan::default()
    });
    let mut clients: Vec<_> = (0..50).map(|_| server.connect()).collect();
    for round in 0..20 {
        let request = if round % 2 == 0 { POST_SWITCH } else { DELETE_SWITCH };
        clients.iter_mut().for_each(|client| client.send(request));
        for client in &mut clients {
            assert_eq!(client.receive(false).status, 200);
        }
    }
    assert_eq!(value(&server.get("/metrics").body, "pitlane_http_pending_requests"), "0");
}

#[test]
fn a_full_lane_is_reported_and_nothing_is_sent() {
    let depths = Depths { commands: 2, events: 16 };
    let settings =
        HttpSettings { answer_timeout: Duration::from_millis(50), ..ServerPlan::default().settings };
    let mut server = HttpTestServer::with(ServerPlan { settings, depths, ..ServerPlan::default() });
    server.stop_shards();
    // Two commands fill the lanes, and no shard takes them.
    for _ in 0..2 {
        assert_eq!(server.ask(POST_SWITCH).code(), "no-answer");
    }
    let response = server.ask(POST_SWITCH);
    assert_eq!((response.status, response.header("retry-after")), (503, Some("1")));
    assert_eq!(response.code(), "busy");
}

#[test]
fn a_missing_response_times_out() {
    let settings =
        HttpSettings { answer_timeout: Duration::from_millis(50), ..ServerPlan::default().settings };
    let mut server = HttpTestServer::with(ServerPlan { settings, ..ServerPlan::default() });
    server.stop_shards();
    let response = server.ask(POST_SWITCH);
    assert_eq!((response.status, response.code().as_str()), (503, "no-answer"));
    assert_eq!(value(&server.get("/metrics").body, "pitlane_http_pending_requests"), "0");
}

#[test]
fn exit_vm_responds_and_stops_the_service() {
    let server = HttpTestServer::start();
    let response = server.ask("POST /rest/runtime/exit-vm HTTP/1.1\r\nHost: localhost\r\n\r\n");
    assert_eq!((response.status, response.header("content-length")), (200, Some("0")));
    assert_eq!(server.news.recv(), Ok(HttpEvent::ExitRequested));
}

#[test]
fn metrics_are_in_the_format_of_prometheus() {
    let server = HttpTestServer::start();
    server.get("/nothing");
    let response = server.get("/metrics");
    assert_eq!(response.header("content-type"), Some("text/plain; version=0.0.4; charset=utf-8"));
    let families = parse(&response.body);
    for (name, family) in &families {
        assert!(name.starts_with("pitlane_") || name.starts_with("process_"), "{name}");
        assert!(family.help.ends_with('.') && family.help.len() > 5, "{name} has a sentence");
        assert_eq!(family.kind == "counter", name.ends_with("_total"), "{name}");
    }
    assert_eq!(families["pitlane_shard_commands_total"].samples.len(), SHARDS as usize);
    assert_eq!(value(&response.body, "pitlane_http_requests_total{class=\"4xx\"}"), "1");
    assert_eq!(value(&response.body, "pitlane_ready"), "1");
    let stage = |suffix: &str, more: &str| {
        let labels = format!("{{thread=\"shard-0\",stage=\"apply\"{more}}}");
        value(&response.body, &format!("pitlane_stage_duration_seconds_{suffix}{labels}"))
    };
    assert_eq!(stage("bucket", ",le=\"0.00000025\""), "0");
    assert_eq!(stage("bucket", ",le=\"0.0000005\""), "7");
    assert_eq!((stage("bucket", ",le=\"+Inf\""), stage("count", "")), ("7", "7"));
    assert_eq!(stage("sum", ""), "0.000002800");
    assert_eq!(value(&response.body, "pitlane_stomp_sessions{transport=\"websocket\"}"), "0");
    assert_eq!(value(&response.body, "pitlane_fix_sessions{state=\"logged_on\"}"), "0");
    let commands = value(&response.body, "pitlane_shard_commands_total{shard=\"1\"}");
    assert!(commands.parse::<u64>().unwrap() >= 2, "the opening of the read model");
}

fn value<'a>(text: &'a str, sample: &str) -> &'a str {
    let found = text.lines().find_map(|line| line.strip_prefix(sample)?.strip_prefix(' '));
    found.unwrap_or_else(|| panic!("no {sample}"))
}

#[derive(Debug, Default)]
struct MetricFamily {
    help: String,
    kind: String,
    samples: BTreeSet<String>,
}

/// A strict parser of the text format: HELP, TYPE, then the samples of one family together; every
/// sample once; names, labels and values as the format defines them.
fn parse(text: &str) -> BTreeMap<String, MetricFamily> {
    assert!(text.ends_with('\n'));
    let mut families = BTreeMap::<String, MetricFamily>::new();
    let mut current = String::new();
    for line in text.lines() {
        if let Some(rest) = line.strip_prefix("# HELP ") {
            let (name, help) = rest.split_once(' ').expect("a name and a help");
            assert!(is_name(name), "{line}");
            let family = MetricFamily { help: help.to_string(), ..MetricFamily::default() };
            assert!(families.insert(name.to_string(), family).is_none(), "{name} twice");
            current = name.to_string();
        } else if let Some(rest) = line.strip_prefix("# TYPE ") {
            let (name, kind) = rest.split_once(' ').expect("a name and a type");
            assert_eq!(name, current, "the type follows the help");
            assert!(matches!(kind, "counter" | "gauge" | "histogram"), "{line}");
            let family = families.get_mut(name).unwrap();
            assert!(family.kind.is_empty() && family.samples.is_empty(), "{line}");
            family.kind = kind.to_string();
        } else {
            let name: String = line.chars().take_while(|c| *c != '{' && *c != ' ').collect();
            let family = families.get_mut(&current).expect("a family is open");
            let suffix = name.strip_prefix(&current);
            let suffixes: &[&str] =
                if family.kind == "histogram" { &["_bucket", "_sum", "_count"] } else { &[""] };
            assert!(
                suffix.is_some_and(|suffix| suffixes.contains(&suffix)),
                "samples stand with their family: {line}"
            );
            assert!(!family.kind.is_empty());
            let (labels, value) = labels_and_value(&line[name.len()..]);
            assert!(value.parse::<f64>().is_ok_and(f64::is_finite), "{line}");
            assert!(family.samples.insert(format!("{name}{labels}")), "{line} twice");
        }
    }
    families
}

/// Splits `{a="x",b="y"} 1`, label by label.
fn labels_and_value(text: &str) -> (String, &str) {
    let Some(mut rest) = text.strip_prefix('{') else {
        return (String::new(), text.strip_prefix(' ').expect("one space before the value"));
    };
    let mut names = BTreeSet::new();
    loop {
        let (name, after) = rest.split_once("=\"").expect("a label");
        assert!(is_name(name) && !name.contains(':') && names.insert(name), "{text}");
        let mut escaped = false;
        let end = after.find(|c: char| {
            let is_end = c == '"' && !escaped;
            assert!(!escaped || matches!(c, '\\' | '"' | 'n'), "{text}");
            escaped = c == '\\' && !escaped;
            is_end
        });
        rest = &after[end.expect("a closing quote") + 1..];
        if let Some(value) = rest.strip_prefix("} ") {
            return (text[..text.len() - value.len()].to_string(), value);
        }
        rest = rest.strip_prefix(',').expect("a comma between labels");
    }
}

fn is_name(text: &str) -> bool {
    let starts = text.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_' || c == ':');
    starts && text.chars().all(|c| c.is_ascii_alphanumeric() || c == '_' || c == ':')
}
