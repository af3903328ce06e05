//! Sessions over TCP and TLS, from CONNECT to the last frame.

use std::net::SocketAddr;

use pitlane_testkit::service::{ServiceProcess, TestFolder, folder};
use pitlane_testkit::stomp_client::{StompClient, StompStream, body, header, plain, tls};
use pitlane_testkit::web_socket::WebSocket;

use super::platform::request;

pub(crate) const QUIET: [&str; 3] = ["feed.on=true", "demo.on=false", "stomp.tls_listen=127.0.0.1:0"];

pub(crate) fn start(name: &str, settings: &[&str]) -> (ServiceProcess, TestFolder) {
    let data = folder(&format!("stomp-{name}"));
    let service = ServiceProcess::start(&data, &[&QUIET[..], settings].concat(), None);
    assert!(service.is_ready(), "{}", service.ready);
    (service, data)
}

pub(crate) fn address(service: &ServiceProcess, name: &str) -> SocketAddr {
    let prefix = format!("{name}=");
    let part = service.ready.split_whitespace().find_map(|part| part.strip_prefix(&prefix));
    part.expect("it listens there").parse().unwrap()
}

#[test]
fn market_data_comes_over_tcp_and_tls_on_one_thread_and_on_several() {
    let layouts: [&[&str]; 2] = [&[], &["topology.layout=dedicated", "topology.gateways=2"]];
    for (number, layout) in layouts.into_iter().enumerate() {
        let (service, data) = start(&format!("ticks-{number}"), layout);
        let wires = [plain(address(&service, "stomp")), tls(address(&service, "stomp+tls"), &data)];
        for wire in wires {
            let mut client = StompClient::new(wire);
            client.connect();
            client.subscribe("1", "tick.*");
            let tick = client.receive_until("MESSAGE");
            assert_eq!(header(&tick, "subscription"), Some("1"));
            assert!(header(&tick, "destination").unwrap().starts_with("/topic/tick."));
            assert!(body(&tick).contains("\"type\":\"TICK\""), "{tick}");
            client.send_message("UNSUBSCRIBE|id:1|receipt:u||");
            client.receive_until("RECEIPT|receipt-id:u");
            client.send_message("DISCONNECT|receipt:bye||");
            assert_eq!(
                client.receive().as_deref(),
                Some("RECEIPT|receipt-id:bye||"),
                "nothing comes between"
            );
            assert_eq!(client.receive(), None);
        }
        service.signal("TERM");
        assert!(service.end().is_orderly());
    }
}

#[test]
fn when_the_service_stops_every_client_gets_an_error() {
    let (service, data) = start("stop", &[]);
    let wires = [plain(address(&service, "stomp")), tls(address(&service, "stomp+tls"), &data)];
    let mut clients: Vec<StompClient> = wires.into_iter().map(StompClient::new).collect();
    for client in &mut clients {
        client.connect();
        client.subscribe("1", "tick.>");
    }
    service.signal("TERM");
    for client in &mut clients {
        let last = client.receive_until("ERROR");
        assert_eq!(header(&last, "message"), Some("the service ends this session"));
        assert_eq!(client.receive(), None);
    }
    assert!(service.end().is_orderly());
}

#[test]
fn an_unfinished_handshake_does_not_delay_the_stop() {
    let (service, _) = start("half-open", &[]);
    // A connection that sends nothing.
    let _silent = std::net::TcpStream::connect(address(&service, "stomp+tls")).unwrap();
    let mut other = StompClient::new(plain(address(&service, "stomp")));
    other.connect();
    service.signal("TERM");
    assert!(service.end().is_orderly());
}

#[test]
fn another_protocol_gets_an_error() {
    let (service, _) = start("strangers", &[]);
    let mut client = StompClient::new(plain(address(&service, "stomp")));
    client.send_message("GET / HTTP/1.1\r|Host: x\r|\r|");
    assert!(client.receive().is_some_and(|frame| frame.starts_with("ERROR")));
    assert_eq!(client.receive(), None);
    service.signal("TERM");
    assert!(service.end().is_orderly());
}

#[test]
fn a_port_in_use_is_reported_before_the_start() {
    let (service, _) = start("port", &[]);
    let data = folder("stomp-port-2");
    let setting = format!("stomp.listen={}", address(&service, "stomp"));
    let second = ServiceProcess::start(&data, &[&setting], None);
    assert!(!second.is_ready());
    assert!(second.end().log_text.contains("stomp.listen"));
    service.signal("TERM");
    assert!(service.end().is_orderly());
}

#[test]
fn the_newest_value_comes_first_however_long_ago_it_was() {
    // No client subscribes before, and no tick comes afterwards.
    let (service, _) = start("last-value", &["feed.rate=1"]);
    let mut first = StompClient::new(plain(address(&service, "stomp")));
    first.connect();
    first.subscribe("1", "tick.*");
    let tick = first.receive_until("MESSAGE");
    let topic = header(&tick, "destination").unwrap().to_string();
    first.send_message("UNSUBSCRIBE|id:1|receipt:u||");
    first.receive_until("RECEIPT|receipt-id:u");
    for _ in 0..2 {
        let mut client = StompClient::new(plain(address(&service, "stomp")));
        client.connect();
        client.send_message(&format!("SUBSCRIBE|id:7|destination:{topic}|last-value:true||"));
        let again = client.receive_until("MESSAGE");
        assert_eq!(header(&again, "destination"), Some(topic.as_str()));
    }
    service.signal("TERM");
    assert!(service.end().is_orderly());
}

#[test]
fn depth_is_shown_as_it_is_and_follows_the_orders() {
    let (service, _) = start("book", &["feed.on=false"]);
    let http = address(&service, "http");
    let subscription = r#"{"strategyName":"PAIRS","securityId":1,"subscribe":true}"#;
    assert_eq!(request(&service, "PUT /rest/subscription/marketdata/subscribe", subscription).0, 200);
    let order = |id: &str, side: &str, quantity: u32, limit: &str| {
        let json = format!(
            r#"{{"intId":"{id}","securityId":1,"side":"{side}","quantity":{quantity},"limit":{limit},"strategyName":"PAIRS"}}"#
        );
        assert_eq!(request(&service, "POST /rest/execution/order/limit", &json).0, 200);
    };
    order("a", "BUY", 5, "100.25");
    let websocket = WebSocket::open(plain(http), http, "").0;
    let wires: [Box<dyn StompStream>; 2] = [plain(address(&service, "stomp")), Box::new(websocket)];
    let mut clients: Vec<StompClient> = wires.into_iter().map(StompClient::new).collect();
    for client in &mut clients {
        client.connect();
        client.subscribe("1", "book.1");
        let book = client.receive_until("MESSAGE");
        assert_eq!(header(&book, "destination"), Some("/topic/book.1"));
        assert!(body(&book).contains("\"type\":\"BOOK\""), "{book}");
        assert!(body(&book).contains("\"bids\":[{\"price\":100.25,\"size\":5}],\"asks\":[]"), "{book}");
    }
    order("b", "BUY", 2, "100.25");
    order("c", "SELL", 3, "101");
    for client in &mut clients {
        let whole = "\"bids\":[{\"price\":100.25,\"size\":7}],\"asks\":[{\"price\":101,\"size\":3}]";
        while !body(&client.receive_until("MESSAGE")).contains(whole) {}
    }
    // A second client on the same thread gets the newest value if it requests it.
    let mut late = StompClient::new(plain(address(&service, "stomp")));
    late.connect();
    late.send_message("SUBSCRIBE|id:7|destination:/topic/book.*|last-value:true||");
    assert!(body(&late.receive_until("MESSAGE")).contains("\"asks\":[{\"price\":101,\"size\":3}]"));
    assert_eq!(service.ask("DELETE /rest/execution/order/a").0, 200);
    for client in &mut clients {
        while !body(&client.receive_until("MESSAGE")).contains("\"bids\":[{\"price\":100.25,\"size\":2}]") {}
    }
    service.signal("TERM");
    assert!(service.end().is_orderly());
}

#[test]
fn bars_are_made_for_clients_that_request_them() {
    let (service, _) = start("bars", &["feed.rate=2000"]);
    let mut client = StompClient::new(plain(address(&service, "stomp")));
    client.connect();
    client.subscribe("1", "bar.*.1s");
    let bar = client.receive_until("MESSAGE");
    assert!(body(&bar).contains("\"type\":\"BAR\"") && body(&bar).contains("\"size\":\"1s\""), "{bar}");
    service.signal("TERM");
    assert!(service.end().is_orderly());
}
