//! FIX beside the other interfaces: its orders are visible in REST and STOMP, changes made there
//! are reported back, and operators manage its sessions.

use std::net::TcpStream;

use pitlane_testkit::fix_client::{FixClient, now};
use pitlane_testkit::http_client::{HttpClient, Response};
use pitlane_testkit::service::{ServiceProcess, folder};
use pitlane_testkit::stomp_client::{StompClient, body, plain};
use serde_json::Value;

use crate::{CONFIG, address, fix, pitlane, start, start_with};

pub(crate) fn ask(service: &ServiceProcess, method: &str, path: &str, headers: &str, json: &str) -> Response {
    let mut http = HttpClient::new(TcpStream::connect(service.address()).expect("it listens"));
    let length = json.len();
    let kind = if json.is_empty() { "" } else { "Content-Type: application/json\r\n" };
    http.send(&format!(
        "{method} {path} HTTP/1.1\r\nHost: localhost\r\n{headers}{kind}Content-Length: {length}\r\n\r\n{json}"
    ));
    http.receive(false)
}

/// Returns the row of a session in the list of all, once it is there; the list is refreshed once a
/// second.
fn row(service: &ServiceProcess, headers: &str, name: &str, is_meant: impl Fn(&Value) -> bool) -> Value {
    loop {
        let listed = ask(service, "GET", "/rest/ext/session", headers, "").json();
        let rows = listed.as_array().expect("a list").iter();
        if let Some(row) = rows.filter(|row| row["name"] == name).find(|row| is_meant(row)) {
            return row.clone();
        }
    }
}

fn logged_on(service: &ServiceProcess, sender: &str) -> FixClient {
    let mut client = FixClient::new(sender);
    client.connect(fix(service));
    client.log_on(false);
    client
}

/// Returns an order as REST shows it. REST shows a change a moment after the session receives it.
fn shown(service: &ServiceProcess, id: &str) -> Value {
    loop {
        let found = ask(service, "GET", &format!("/rest/execution/order/{id}"), "", "");
        if found.status == 200 {
            return found.json()[0].clone();
        }
    }
}

#[test]
fn an_order_of_a_session_is_visible_elsewhere_and_reports_changes_made_there() {
    let service = start(&folder("fix-elsewhere"), &["feed.on=false"]);
    let mut stomp = StompClient::new(plain(address(&service, "stomp")));
    stomp.connect();
    stomp.subscribe("1", "order.>");
    let mut client = logged_on(&service, "KEEP1");
    client.order("o1", "AAPL", 1, 10, "100");
    assert!(client.receive(2));

    let report: Value = serde_json::from_str(body(&stomp.receive_until("MESSAGE"))).expect("JSON");
    assert_eq!((&report["intId"], &report["source"]), (&"o1".into(), &"FIX:KEEP1".into()), "{report}");
    let order = shown(&service, "o1");
    assert_eq!(order["source"], "FIX:KEEP1", "{order}");

    let change = r#"{"intId":"o1","quantity":25,"limit":101}"#;
    let changed = ask(&service, "POST", "/rest/execution/modify/order/limit", "", change);
    assert!((200..300).contains(&changed.status), "{changed:?}");
    assert!(client.receive(4));
    let replaced = &client.received[3];
    let fields = [11, 37, 41, 38, 44, 39].map(|tag| replaced.get(tag));
    assert_eq!(fields, ["o1", "o1", "", "25", "101", "0"], "{}", replaced.text());

    // The id that the client knows stays valid.
    client.send("G", &format!("11=o2|41=o1|55=AAPL|54=1|38=30|40=2|44=101|60={}|", now()));
    assert!(client.receive(6));
    assert_eq!([11, 41, 38, 39].map(|tag| client.received[5].get(tag)), ["o2", "o1", "30", "0"]);

    shown(&service, "o2");
    let gone = ask(&service, "DELETE", "/rest/execution/order/o2", "", "");
    assert!((200..300).contains(&gone.status), "{gone:?}");
    assert!(client.receive(8));
    let states: Vec<&str> = client.received[6..].iter().map(|report| report.get(39)).collect();
    assert_eq!(states, ["6", "4"]);
    assert_eq!((client.received[7].get(11), client.received[7].get(37)), ("o2", "o1"));
    service.signal("KILL");
    service.end();
}

#[test]
fn only_an_operator_sees_resets_and_ends_sessions() {
    let data = folder("fix-operator");
    let tokens = data.join("tokens");
    let token = |role: &str| {
        let file = tokens.to_str().expect("a path in ASCII");
        let name = format!("{role}-robot");
        let made = pitlane(&["token", "create", &name, "--role", role, "--file", file]);
        format!("Authorization: Bearer {}\r\n", made.trim_end())
    };
    let (trader, admin) = (token("trade"), token("admin"));
    let file = format!("auth.tokens_file={}", tokens.display());
    // Its clients are identified by their address, so that they need no login.
    let here = "TargetCompID = \"KEEP*\"\naddresses_allowed = [\"127.0.0.1\"]";
    let config = CONFIG.replace("TargetCompID = \"KEEP*\"", here);
    let service = start_with(&data, &config, &["feed.on=false", "auth.mode=required", &file]);
    let mut client = logged_on(&service, "KEEP1");
    let mut other = logged_on(&service, "KEEP2");
    client.order("o1", "AAPL", 1, 10, "100");
    assert!(client.receive(2));

    let seen = row(&service, &trader, "PITLANE-KEEP1", |row| row["nextOut"] == 4);
    assert_eq!((&seen["nextIn"], &seen["state"]), (&3.into(), &"LOGGED_ON".into()), "{seen}");
    let id = seen["id"].as_str().expect("an id").to_string();
    let (one, reset) = (format!("/rest/ext/session/{id}"), format!("/rest/ext/session/{id}/reset"));
    for (method, path) in [("DELETE", &one), ("POST", &reset)] {
        assert_eq!(ask(&service, method, path, &trader, "").status, 403);
        assert_eq!(ask(&service, method, path, "", "").status, 401);
    }
    client.settle();

    // Its sequence numbers are reset, and it must reconnect.
    assert_eq!(ask(&service, "POST", &reset, &admin, "").status, 200);
    let logout = client.read().expect("a Logout");
    assert_eq!((logout.get(35), logout.get(58)), ("5", "Sequence numbers are reset"));
    assert!(client.is_closed());
    (client.next_out, client.next_in) = (1, 1);
    client.connect(fix(&service));
    assert_eq!(client.log_on(false).number(), 1);
    row(&service, &admin, "PITLANE-KEEP1", |row| row["nextOut"] == 2 && row["state"] == "LOGGED_ON");

    // The session is ended, and may reconnect with its sequence numbers.
    assert_eq!(ask(&service, "DELETE", &one, &admin, "").status, 200);
    let logout = client.read().expect("a Logout");
    assert_eq!((logout.get(35), logout.get(58)), ("5", "Ended by the operator"));
    client.next_in += 1;
    client.send_message("5", "");
    assert!(client.is_closed());
    client.connect(fix(&service));
    assert_eq!(client.log_on(false).number(), 3);

    other.order("x", "AAPL", 1, 10, "100");
    assert!(other.receive(2), "the other one was not disturbed");
    assert_eq!(ask(&service, "POST", "/rest/ext/session/fix-0-999/reset", &admin, "").status, 404);
    service.signal("KILL");
    service.end();
}

#[test]
fn messages_are_logged_without_secrets() {
    let data = folder("fix-log");
    let logs = data.join("messages");
    let config = format!(
        "[[fix.session]]\nSenderCompID = \"PITLANE\"\nTargetCompID = \"LOGGED\"\nusername = \"me\"\npassword = \"sesame\"\n\
         FileLogPath = {:?}\n",
        logs.display().to_string()
    );
    let service = start_with(&data, &config, &["feed.on=false"]);
    let mut client = FixClient::new("LOGGED");
    client.connect(fix(&service));
    client.send_message("A", "98=0|108=30|553=me|554=sesame|");
    client.next_in += 1;
    assert_eq!(client.read().expect("an answer").get(35), "A");
    client.order("o1", "AAPL", 1, 10, "100");
    assert!(client.receive(2));
    client.send_message("5", "");
    assert!(client.is_closed());
    service.signal("TERM");
    let ended = service.end();
    assert!(ended.is_orderly(), "{}", ended.log_text);

    let text = std::fs::read_to_string(logs.join("PITLANE-LOGGED.log")).expect("a log");
    let types: Vec<String> = text.lines().map(|line| line[22..].chars().take(17).collect()).collect();
    let expected = ["< 8=FIX.4.4|35=A|", "> 8=FIX.4.4|35=A|", "< 8=FIX.4.4|35=D|", "> 8=FIX.4.4|35=8|"];
    let expected: Vec<&str> =
        [&expected[..], &["> 8=FIX.4.4|35=8|", "< 8=FIX.4.4|35=5|", "> 8=FIX.4.4|35=5|"]].concat();
    assert_eq!(types, expected, "{text}");
    assert!(text.contains("553=me|554=***|") && !text.contains("sesame"), "{text}");
    assert!(!ended.log_text.contains("sesame"));
}
