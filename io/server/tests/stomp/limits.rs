//! The settings of `[stomp]` on the running service: each applies, over TCP and over WebSocket.

use pitlane_testkit::service::ServiceProcess;
use pitlane_testkit::stomp_client::{StompClient, StompStream, header, plain};
use pitlane_testkit::web_socket::WebSocket;

use super::sessions::{address, start};

const SMALL: [&str; 8] = [
    "stomp.connect_timeout_ms=300",
    "stomp.header_line_bytes_max=256",
    "stomp.headers_max=8",
    "stomp.head_bytes_max=1024",
    "stomp.body_bytes_max=100",
    "stomp.subscriptions_max=3",
    "stomp.unacknowledged_max=2",
    "feed.rate=1000",
];

fn clients(service: &ServiceProcess) -> Vec<StompClient> {
    let http = address(service, "http");
    let websocket = WebSocket::open(plain(http), http, "").0;
    let wires: [Box<dyn StompStream>; 2] = [plain(address(service, "stomp")), Box::new(websocket)];
    wires.into_iter().map(StompClient::new).collect()
}

#[test]
fn every_limit_of_the_settings_applies() {
    let (service, _) = start("limits", &SMALL);
    let long = "x".repeat(300);
    let many = (0..9).map(|n| format!("h{n}:x|")).collect::<String>();
    let head = (0..6).map(|n| format!("h{n}:{}|", "x".repeat(200))).collect::<String>();
    let subscribe = |n: u32| format!("SUBSCRIBE|id:{n}|destination:/topic/log-event.x{n}||");
    let cases: [(&str, Vec<String>); 6] = [
        ("a header line is too long", vec![format!("BEGIN|transaction:{long}||")]),
        ("there are too many headers", vec![format!("BEGIN|{many}|")]),
        ("the head of the frame is too long", vec![format!("BEGIN|{head}|")]),
        ("the body is too long", vec![format!("BEGIN|transaction:t||{}", "x".repeat(101))]),
        ("the body is too long", vec!["BEGIN|transaction:t|content-length:101||".to_string()]),
        ("too many subscriptions", (1..=4).map(subscribe).collect()),
    ];
    for (parts, frames) in &cases {
        for mut client in clients(&service) {
            client.connect();
            frames.iter().for_each(|frame| client.send_message(frame));
            let last = client.receive_until("ERROR");
            assert_eq!(header(&last, "message"), Some(*parts));
            assert_eq!(client.receive(), None);
        }
    }
    for mut client in clients(&service) {
        let last = client.receive_until("ERROR");
        assert_eq!(header(&last, "message"), Some("no CONNECT in time"), "a silent client is disconnected");
        assert_eq!(client.receive(), None);
    }
    // Two messages, then none until they are acknowledged; a larger credit has no effect.
    for mut client in clients(&service) {
        client.connect();
        client.send_message("SUBSCRIBE|id:1|destination:/topic/tick.*|ack:client|prefetch-count:50||");
        client.receive_until("MESSAGE");
        let second = client.receive_until("MESSAGE");
        client.send_message("BEGIN|transaction:t|receipt:t||");
        assert_eq!(client.receive().as_deref(), Some("RECEIPT|receipt-id:t||"), "the window is full");
        client.send_message(&format!("ACK|id:{}||", header(&second, "ack").unwrap()));
        client.receive_until("MESSAGE");
    }
    service.signal("TERM");
    assert!(service.end().is_orderly());
}

#[test]
fn rates_that_were_changed_are_shown_with_the_settings() {
    let (service, _) = start("limits-rates", &[]);
    let shown = |rate: &str| {
        let (_, all) = service.ask("GET /rest/config-params");
        assert!(all.contains(&format!("\"broker.maxRatePerConnection\":\"{rate}\"")), "{all}");
    };
    shown("50");
    let change = "{\"maxRatePerConnection\":2.5}";
    assert_eq!(super::platform::request(&service, "PUT /rest/ext/broker/rate", change).0, 200);
    shown("2.5");
    let dropped =
        |queue: &str| service.metric(&format!("pitlane_notifications_dropped_total{{queue=\"{queue}\"}}"));
    assert_eq!(["websocket", "log", "gateway-0"].map(dropped), [0; 3]);
    service.signal("TERM");
    assert!(service.end().is_orderly());
}
