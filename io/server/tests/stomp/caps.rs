//! The settings of `[stomp]` that bound the data waiting for a reader, on the running service: at
//! its limit each leaves the reader connected, and beyond it the reader is disconnected. The others
//! are in `limits`.

use std::collections::BTreeSet;
use std::io::{Read, Write};
use std::net::TcpStream;
use std::path::Path;
use std::process::{Command, Stdio};

use pitlane_testkit::paths;
use pitlane_testkit::patience::{PATIENCE, until};
use pitlane_testkit::service::{ServiceProcess, folder};
use pitlane_testkit::stomp_client::{StompClient, plain};
use pitlane_testkit::web_socket::WebSocket;

use super::scenarios::{instruments, silent};
use super::sessions::{address, start};

/// Every key of `[stomp]`, and where it is tested at its limit.
const TRIED: [(&str, &str); 17] = [
    ("listen", "sessions"),
    ("tls_listen", "sessions"),
    ("connect_timeout_ms", "limits"),
    ("header_line_bytes_max", "limits"),
    ("headers_max", "limits"),
    ("head_bytes_max", "limits"),
    ("body_bytes_max", "limits"),
    ("subscriptions_max", "limits"),
    ("unacknowledged_max", "limits"),
    ("out_buffer_bytes", "caps"),
    ("conflated_keys_max", "caps"),
    ("conflated_bytes_max", "caps"),
    ("queue_events_max", "caps"),
    ("queue_bytes_max", "caps"),
    ("total_bytes_max", "caps"),
    ("stuck_timeout_ms", "caps"),
    ("generic_event_role", "caps"),
];

#[test]
fn every_setting_is_tried_at_its_cap() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../config/default.toml");
    let text = std::fs::read_to_string(path).unwrap();
    let section = text.split_once("\n[stomp]\n").unwrap().1.split("\n[").next().unwrap();
    let keys: BTreeSet<&str> =
        section.lines().filter_map(|line| line.split_once(" = ")).map(|(key, _)| key).collect();
    let tried: BTreeSet<&str> = TRIED.iter().map(|(key, _)| *key).collect();
    assert_eq!(keys, tried);
}

/// Number of keys that fit into the smallest memory that can be configured for waiting topics.
const KEYS_IN_64_KIB: u64 = 65_536 / pitlane_protocols::stomp::slots::SLOT_BYTES_MAX as u64;
const SUBSCRIPTIONS: u64 = 10;

/// Opens a reader that does not read, with so many subscriptions to all ticks.
fn watcher(service: &ServiceProcess, subscriptions: u64) -> TcpStream {
    let mut stream = silent(service, "tick.*");
    for number in 2..=subscriptions {
        let frame = format!("SUBSCRIBE\nid:{number}\ndestination:/topic/tick.*\n\n\0");
        stream.write_all(frame.as_bytes()).unwrap();
    }
    stream
}

/// Returns a number of the only session with so many subscriptions; None if there is no such
/// session.
fn shown(service: &ServiceProcess, subscriptions: u64, name: &str) -> Option<u64> {
    let (_, list) = service.ask("GET /rest/ext/session");
    let mark = format!("\"subscriptions\":{subscriptions}");
    let row = list.split('{').find(|row| row.contains(&mark))?;
    let behind = row.split_once(&format!("\"{name}\":"))?.1;
    behind.split(|c: char| !c.is_ascii_digit()).next()?.parse().ok()
}

/// Reads the rest: the last frame has the reason.
fn ends_with(mut stream: TcpStream, message: &str) {
    stream.set_read_timeout(Some(PATIENCE)).unwrap();
    let mut bytes = Vec::new();
    let mut buffer = [0; 16 * 1_024];
    while let Ok(count @ 1..) = stream.read(&mut buffer) {
        bytes.extend_from_slice(&buffer[..count]);
    }
    let text = String::from_utf8_lossy(&bytes);
    let last = text.trim_end_matches('\0').rsplit('\0').next().unwrap();
    assert!(last.starts_with("ERROR\n") && last.contains(message), "{last}");
}

#[test]
fn market_data_that_waits_takes_no_more_memory_than_is_set() {
    let market = instruments(u32::try_from(KEYS_IN_64_KIB / SUBSCRIPTIONS).unwrap());
    let keys = KEYS_IN_64_KIB / SUBSCRIPTIONS * SUBSCRIPTIONS;
    assert_eq!(keys, KEYS_IN_64_KIB, "or the cap itself is not tried");
    let market = format!("refdata.dir={}", market.display());
    let by_bytes =
        ["stomp.conflated_bytes_max=65536".to_string(), "stomp.conflated_keys_max=65536".to_string()];
    let by_keys =
        ["stomp.conflated_bytes_max=16777216".to_string(), format!("stomp.conflated_keys_max={keys}")];
    for (name, [bytes, keys_max]) in [("bytes", by_bytes), ("keys", by_keys)] {
        // On a busy machine all this may take longer than a session may be stuck by default.
        let settings = [
            "feed.rate=20000",
            "stomp.out_buffer_bytes=4096",
            "stomp.stuck_timeout_ms=600000",
            "net.send_kernel_bytes=4096",
            &market,
        ];
        let (service, _) =
            start(&format!("caps-{name}"), &[&settings[..], &[bytes.as_str(), keys_max.as_str()]].concat());
        let watching = watcher(&service, SUBSCRIPTIONS);
        until("everything waits", || shown(&service, SUBSCRIPTIONS, "slots") == Some(keys));
        let conflated = shown(&service, SUBSCRIPTIONS, "conflated").unwrap();
        until("more has come", || shown(&service, SUBSCRIPTIONS, "conflated").unwrap() > conflated);
        assert_eq!(shown(&service, SUBSCRIPTIONS, "slots"), Some(keys), "at the cap it stays");
        // At most one message exceeded the mark.
        let out = shown(&service, SUBSCRIPTIONS, "queueBytes").unwrap();
        assert!((4_096..4_096 + 1_024).contains(&out), "{out} bytes wait");
        let beyond = watcher(&service, SUBSCRIPTIONS + 1);
        let list = || service.ask("GET /rest/ext/session").1;
        until("it is too much", || list().contains("\"state\":\"ENDING\""));
        ends_with(beyond, "message:slow consumer\n");
        assert_eq!(shown(&service, SUBSCRIPTIONS, "slots"), Some(keys), "that was no concern of the other");
        drop(watching);
        service.signal("TERM");
        assert!(service.end().is_orderly());
    }
}

/// Over WebSocket, on whose thread a receipt for an event means that all subscribers have it.
fn over_websocket(service: &ServiceProcess) -> StompClient {
    let http = address(service, "http");
    let mut client = StompClient::new(Box::new(WebSocket::open(plain(http), http, "").0));
    client.connect();
    client
}

#[test]
fn events_that_wait_are_no_more_than_is_set() {
    for (name, setting, size) in
        [("events", "stomp.queue_events_max=50", 1_000), ("bytes", "stomp.queue_bytes_max=65536", 4_000)]
    {
        let settings =
            ["feed.on=false", "stomp.stuck_timeout_ms=600000", "stomp.out_buffer_bytes=4096", setting];
        let (service, _) = start(&format!("caps-queue-{name}"), &settings);
        let (mut reader, mut sender) = (over_websocket(&service), over_websocket(&service));
        reader.subscribe("1", "generic-event.*");
        let (padding, mut number) = ("x".repeat(size), 0);
        let mut send = || {
            number += 1;
            sender.send_message(&format!(
                "SEND|destination:/topic/generic-event.a|receipt:{number}||\"{padding}\""
            ));
            sender.receive_until(&format!("RECEIPT|receipt-id:{number}|"));
        };
        let is_full = || {
            let (waiting, bytes) = (shown(&service, 1, "backlog")?, shown(&service, 1, "backlogBytes")?);
            assert!(waiting <= 10_000 && bytes <= 65_536, "{waiting} of {bytes} bytes wait");
            Some(waiting == 50 || waiting > 0 && bytes + bytes / waiting > 65_536)
        };
        // First the buffers of the system are filled, then the queue.
        while !is_full().expect("up to its cap it stays") {
            send();
        }
        assert_eq!(name == "events", shown(&service, 1, "backlog") == Some(50));
        until("it is sent away", || {
            send();
            is_full().is_none()
        });
        service.signal("TERM");
        assert!(service.end().is_orderly());
    }
}

/// Thirty readers within their own limits would hold fifty times the limit of all.
#[test]
fn all_readers_together_hold_no_more_than_is_set() {
    const TOTAL: u64 = 1_048_576;
    let total = format!("stomp.total_bytes_max={TOTAL}");
    let settings =
        ["feed.on=false", "stomp.stuck_timeout_ms=600000", "net.send_kernel_bytes=4096", total.as_str()];
    let (service, _) = start("caps-total", &settings);
    let idle: Vec<TcpStream> = (0..30).map(|_| silent(&service, "generic-event.*")).collect();
    let mut healthy = StompClient::new(plain(address(&service, "stomp")));
    healthy.connect();
    healthy.subscribe("1", "generic-event.*");
    let rows = || -> Vec<serde_json::Value> {
        // Each chunk is a line after the line with its length.
        let body = service.ask("GET /rest/ext/session").1;
        let list: String = body.split("\r\n").skip(1).step_by(2).collect();
        serde_json::from_str(&list).expect("it is a list")
    };
    let stomp = |row: &&serde_json::Value| row["subscriptions"] == 1;
    until("all are there", || rows().iter().filter(stomp).count() == 31);
    let padding = "x".repeat(30_000);
    for number in 0..60 {
        let frame = format!("SEND|destination:/topic/generic-event.a||\"{number} {padding}\"");
        healthy.send_message(&frame);
        healthy.receive_until("MESSAGE");
    }
    let waiting = |row: &serde_json::Value| {
        row["queueBytes"].as_u64().unwrap_or(0) + row["backlogBytes"].as_u64().unwrap_or(0)
    };
    // The list is refreshed once a second.
    until("some are sent away and the others hold no more than is set", || {
        let all = rows();
        let left: Vec<_> = all.iter().filter(stomp).collect();
        let sum: u64 = left.iter().copied().map(waiting).sum();
        (1..31).contains(&left.len()) && sum <= TOTAL
    });
    healthy.send_message("SEND|destination:/topic/generic-event.a|receipt:last||1");
    healthy.receive_until("RECEIPT|receipt-id:last|");
    drop(idle);
    service.signal("TERM");
    assert!(service.end().is_orderly());
}

#[test]
fn a_consumer_that_reads_nothing_for_the_configured_time_is_disconnected() {
    let (service, _) = start("caps-stuck", &["feed.rate=20000", "stomp.stuck_timeout_ms=1000"]);
    let _stuck = watcher(&service, 2);
    until("it is known", || shown(&service, 2, "queueBytes").is_some());
    until("it is sent away", || shown(&service, 2, "queueBytes").is_none());
    service.signal("TERM");
    assert!(service.end().is_orderly());
}

#[test]
fn the_least_role_that_may_send_is_a_setting() {
    let data = folder("stomp-caps-role");
    let users = data.join("users");
    let users = users.to_str().unwrap();
    let mut command = Command::new(paths::binary());
    command.args(["user", "add", "ann", "--role", "trade", "--file", users]);
    let mut child = command.stdin(Stdio::piped()).stdout(Stdio::null()).spawn().unwrap();
    child.stdin.take().unwrap().write_all(b"correct horse battery\n").unwrap();
    assert!(child.wait().unwrap().success());
    let file = format!("auth.users_file={users}");
    for (role, answer) in
        [("trade", "RECEIPT|receipt-id:r|"), ("admin", "ERROR|message:SEND is not permitted")]
    {
        let role = format!("stomp.generic_event_role={role}");
        let service = ServiceProcess::start(&data, &["auth.mode=required", &file, &role], None);
        assert!(service.is_ready(), "{}", service.ready);
        let mut client = StompClient::new(plain(address(&service, "stomp")));
        client.send_message("CONNECT|accept-version:1.2|login:ann|passcode:correct horse battery||");
        client.receive_until("CONNECTED");
        client.send_message("SEND|destination:/topic/generic-event.x|receipt:r||1");
        client.receive_until(answer);
        service.signal("TERM");
        assert!(service.end().is_orderly());
    }
}
