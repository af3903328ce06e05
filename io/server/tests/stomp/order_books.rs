//! Single orders of a book, and trades, from the running service.

use std::collections::BTreeMap;

use pitlane_testkit::stomp_client::{StompClient, StompStream, body, plain};
use pitlane_testkit::web_socket::WebSocket;
use serde_json::Value;

use super::platform::request;
use super::sessions::{address, start};

fn json(frame: &str) -> Value {
    serde_json::from_str(body(frame)).expect("a body is JSON")
}

#[test]
fn the_orders_of_a_book_follow_those_of_clients() {
    let (service, _) = start("book_orders", &["feed.on=false"]);
    let http = address(&service, "http");
    let subscription = r#"{"strategyName":"PAIRS","securityId":1,"subscribe":true}"#;
    assert_eq!(request(&service, "PUT /rest/subscription/marketdata/subscribe", subscription).0, 200);
    let order = |id: &str, quantity: u32| {
        let json = format!(
            r#"{{"intId":"{id}","securityId":1,"side":"BUY","quantity":{quantity},"limit":100.25,"strategyName":"PAIRS"}}"#
        );
        assert_eq!(request(&service, "POST /rest/execution/order/limit", &json).0, 200);
    };
    order("a", 5);
    let websocket = WebSocket::open(plain(http), http, "").0;
    let wires: [Box<dyn StompStream>; 2] = [plain(address(&service, "stomp")), Box::new(websocket)];
    let mut clients: Vec<StompClient> = wires.into_iter().map(StompClient::new).collect();
    let mut seqs = Vec::new();
    for client in &mut clients {
        client.connect();
        client.subscribe("1", "orders.1.book");
        let snapshot = json(&client.receive_until("MESSAGE"));
        assert_eq!(snapshot["type"], "SNAPSHOT");
        assert_eq!(snapshot["bids"][0][2], 5, "{snapshot}");
        assert_eq!(snapshot["asks"], Value::Array(Vec::new()));
        seqs.push(snapshot["seq"].clone());
    }
    order("b", 2);
    let mut numbers = Vec::new();
    for (client, seq) in clients.iter_mut().zip(&mut seqs) {
        let update = json(&client.receive_until("MESSAGE"));
        assert_eq!((&update["type"], &update["prevSeq"]), (&Value::from("UPDATE"), &*seq));
        let change = &update["changes"][0];
        assert_eq!((&change[0], &change[2], &change[4]), (&"ADD".into(), &"B".into(), &2.into()), "{update}");
        numbers.push(change[1].clone());
        *seq = update["seq"].clone();
    }
    assert_eq!(numbers[0], numbers[1], "all see the same number");
    assert_eq!(service.ask("DELETE /rest/execution/order/b").0, 200);
    for (client, seq) in clients.iter_mut().zip(&seqs) {
        let update = json(&client.receive_until("MESSAGE"));
        let change = &update["changes"][0];
        assert_eq!((&update["prevSeq"], &change[0], &change[1]), (seq, &"REMOVE".into(), &numbers[0]));
    }
    // One that was away continues where it was.
    let mut late = StompClient::new(plain(address(&service, "stomp")));
    late.connect();
    late.send_message(&format!("SUBSCRIBE|id:7|destination:/topic/orders.1.book|resume:{}||", seqs[0]));
    let missed = json(&late.receive_until("MESSAGE"));
    assert_eq!((&missed["type"], &missed["prevSeq"]), (&"UPDATE".into(), &seqs[0]), "{missed}");
    service.signal("TERM");
    assert!(service.end().is_orderly());
}

#[test]
fn each_trade_of_a_security_has_a_higher_number() {
    let (service, _) = start("trades", &["feed.rate=2000"]);
    let mut client = StompClient::new(plain(address(&service, "stomp")));
    client.connect();
    client.subscribe("1", "trade.*");
    let mut numbers: BTreeMap<u64, u64> = BTreeMap::new();
    for _ in 0..200 {
        let trade = json(&client.receive_until("MESSAGE"));
        assert_eq!(trade["type"], "TRADE");
        let (security, number) = (trade["securityId"].as_u64(), trade["tradeId"].as_u64());
        let (security, number) = (security.expect("a number"), number.expect("a number"));
        assert!(numbers.insert(security, number).is_none_or(|before| before < number), "{trade}");
    }
    service.signal("TERM");
    assert!(service.end().is_orderly());
}
