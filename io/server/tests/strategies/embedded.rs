//! Strategies within the service.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};

use pitlane_testkit::patience;
use pitlane_testkit::service::{ServiceProcess, TestFolder, folder};
use pitlane_testkit::stomp_client::{StompClient, body, plain};
use serde_json::Value;

use super::data::{MAKER, MOMENTUM};

pub(crate) fn start(place: &TestFolder, strategies: &str, settings: &[&str]) -> ServiceProcess {
    let config = place.join("settings.toml");
    std::fs::write(&config, strategies).unwrap();
    let mut command = pitlane_testkit::service::command(place, settings);
    command.arg("--config").arg(&config).arg("--quiet");
    let service = ServiceProcess::on(place, command);
    assert!(service.is_ready(), "{}", service.ready);
    service
}

fn address(service: &ServiceProcess, name: &str) -> SocketAddr {
    let prefix = format!("{name}=");
    service.ready.split_whitespace().find_map(|part| part.strip_prefix(&prefix)).unwrap().parse().unwrap()
}

pub(crate) fn put(service: &ServiceProcess, path: &str, json: &str) -> (u16, String) {
    let http = address(service, "http");
    let mut socket = TcpStream::connect(http).unwrap();
    let head = format!(
        "PUT {path} HTTP/1.1\r\nHost: {http}\r\nContent-Type: application/json\r\nContent-Length: {}\r\nConnection: close\r\n\r\n{json}",
        json.len()
    );
    socket.write_all(head.as_bytes()).unwrap();
    let mut answer = String::new();
    socket.read_to_string(&mut answer).unwrap();
    (answer.split(' ').nth(1).unwrap().parse().unwrap(), answer)
}

pub(crate) fn get(service: &ServiceProcess, path: &str) -> Value {
    let (status, body) = service.ask(&format!("GET {path}"));
    assert_eq!(status, 200, "{body}");
    serde_json::from_str(&joined(&body)).unwrap()
}

pub(crate) fn strategy(service: &ServiceProcess, name: &str) -> Value {
    let rows = get(service, "/rest/strategy");
    rows.as_array().unwrap().iter().find(|row| row["name"] == name).unwrap().clone()
}

/// Joins the chunks of a body.
fn joined(mut body: &str) -> String {
    let mut whole = String::new();
    while let Some((size, rest)) = body.split_once("\r\n") {
        let Ok(size) = usize::from_str_radix(size, 16) else { return body.to_string() };
        whole.push_str(&rest[..size]);
        body = rest[size..].trim_start();
    }
    whole
}

/// Repeats a check until it holds: the work of other threads takes time. A check that never holds
/// ends the test.
#[track_caller]
pub(crate) fn until(holds: impl FnMut() -> bool) {
    patience::until("what this line waits for", holds);
}

pub(crate) fn open_orders(service: &ServiceProcess, strategy: &str) -> usize {
    let rows = get(service, "/rest/execution/order");
    rows.as_array().unwrap().iter().filter(|row| row["strategyName"] == strategy).count()
}

pub(crate) fn subscriber(service: &ServiceProcess, topic: &str) -> StompClient {
    let mut client = StompClient::new(plain(address(service, "stomp")));
    client.connect();
    client.subscribe("1", topic);
    client
}

/// Collects phases until a given one arrives.
pub(crate) fn phases_until(client: &mut StompClient, last: &str) -> Vec<String> {
    let mut phases = Vec::new();
    loop {
        let message = client.receive_until("MESSAGE");
        let event: Value = serde_json::from_str(body(&message)).unwrap();
        assert_eq!(event["strategyName"], "MARKET_MAKER", "{event}");
        let phase = event["phase"].as_str().unwrap().to_string();
        phases.push(phase);
        if phases.last().is_some_and(|phase| phase == last) {
            return phases;
        }
    }
}

#[test]
fn a_strategy_quotes_until_it_is_stopped_and_again_when_it_is_started() {
    let place = folder("strategies-led");
    let service = start(&place, MAKER, &["feed.rate=2000"]);
    until(|| open_orders(&service, "MARKET_MAKER") == 2);
    assert_eq!(strategy(&service, "MARKET_MAKER")["phase"], "RUNNING");
    let mut client = subscriber(&service, "lifecycle.MARKET_MAKER");
    let path = "/rest/ext/strategy/MARKET_MAKER/phase";
    assert_eq!(put(&service, path, r#"{"phase":"STOP"}"#).0, 200);
    assert_eq!(phases_until(&mut client, "STOP"), ["STOP"]);
    until(|| open_orders(&service, "MARKET_MAKER") == 0);
    let stopped = strategy(&service, "MARKET_MAKER");
    assert_eq!((&stopped["phase"], &stopped["reason"]), (&Value::from("STOP"), &Value::Null));
    assert_eq!(put(&service, path, r#"{"phase":"RUNNING"}"#).0, 200);
    assert_eq!(phases_until(&mut client, "RUNNING"), ["INIT", "PREFEED", "START", "RUNNING"]);
    until(|| open_orders(&service, "MARKET_MAKER") == 2);
    let (status, problem) = put(&service, path, r#"{"phase":"INIT"}"#);
    assert!(status == 409 && problem.contains("phase-order"), "{problem}");
    // At an orderly stop it cancels its quotes, and the next start finds the expected state.
    service.signal("TERM");
    assert!(service.end().is_orderly());
    let service = start(&place, &MAKER.replace("start = true", "start = false"), &["feed.rate=2000"]);
    until(|| strategy(&service, "MARKET_MAKER")["phase"] == "INIT");
    assert_eq!(open_orders(&service, "MARKET_MAKER"), 0);
    assert_eq!(put(&service, path, r#"{"phase":"RUNNING"}"#).0, 200);
    until(|| open_orders(&service, "MARKET_MAKER") == 2);
}

#[test]
fn a_failing_strategy_is_stopped_with_its_reason_and_the_others_continue() {
    let place = folder("strategies-failing");
    let settings = format!(
        "{}{MAKER}[risk.strategy.MARKET_MAKER]\n[risk.strategy.MOMENTUM]\ntrading_enabled = false\n",
        MOMENTUM.replace("start = true", "start = false")
    );
    let service = start(&place, &settings, &["feed.rate=2000", "topology.shards=3"]);
    until(|| open_orders(&service, "MARKET_MAKER") == 2);
    let mut client = subscriber(&service, "lifecycle.MOMENTUM");
    assert_eq!(put(&service, "/rest/ext/strategy/MOMENTUM/phase", r#"{"phase":"RUNNING"}"#).0, 200);
    let text = loop {
        let message = client.receive_until("MESSAGE");
        let event: Value = serde_json::from_str(body(&message)).unwrap();
        if event["phase"] == "STOP" && event.get("reason").is_some() {
            break event["reason"].as_str().unwrap().to_string();
        }
    };
    assert!(text.contains("trading is switched off"), "{text}");
    until(|| strategy(&service, "MOMENTUM")["reason"] == text.as_str());
    assert_eq!(strategy(&service, "MOMENTUM")["phase"], "STOP");
    assert_eq!(strategy(&service, "MARKET_MAKER")["phase"], "RUNNING");
    until(|| open_orders(&service, "MARKET_MAKER") == 2);
    service.signal("TERM");
    assert!(service.end().is_orderly());
}
