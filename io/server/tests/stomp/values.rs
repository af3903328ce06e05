//! The same object by topic and by REST: the same members with the same values, over TCP and over
//! WebSocket. A message also has `type`, `seq` and `ts`, and the object's own `type` under another
//! name.

use pitlane_testkit::service::ServiceProcess;
use pitlane_testkit::stomp_client::{StompClient, body, header, plain};
use pitlane_testkit::web_socket::WebSocket;
use serde_json::{Map, Value};

use super::platform::request;
use super::sessions::{address, start};

type JsonObject = Map<String, Value>;

/// The last object of a topic at every client.
struct TopicReaders {
    clients: Vec<StompClient>,
}

impl TopicReaders {
    fn new(service: &ServiceProcess, topics: &[&str]) -> TopicReaders {
        let http = address(service, "http");
        let websocket = WebSocket::open(plain(http), http, "").0;
        let mut clients =
            vec![StompClient::new(plain(address(service, "stomp"))), StompClient::new(Box::new(websocket))];
        for client in &mut clients {
            client.connect();
            for topic in topics {
                client.subscribe(topic, topic);
            }
        }
        TopicReaders { clients }
    }

    /// Returns the next object of a topic, which must be the same for all clients; skips others.
    fn receive(&mut self, topic: &str, is_it: impl Fn(&JsonObject) -> bool) -> JsonObject {
        let destination = format!("/topic/{topic}");
        let mut received: Vec<JsonObject> = Vec::new();
        for client in &mut self.clients {
            loop {
                let frame = client.receive_until("MESSAGE");
                if header(&frame, "destination") != Some(destination.as_str()) {
                    continue;
                }
                let object = object(body(&frame));
                if is_it(&object) {
                    received.push(object);
                    break;
                }
            }
        }
        let ours = received.pop().unwrap();
        // Events that no shard emits are numbered by each thread.
        assert_eq!(
            without(&ours, &["seq", "ts"]),
            without(&received[0], &["seq", "ts"]),
            "over every transport"
        );
        ours
    }
}

fn object(json: &str) -> JsonObject {
    match serde_json::from_str(json) {
        Ok(Value::Object(object)) => object,
        other => panic!("{json}: {other:?}"),
    }
}

fn without(object: &JsonObject, names: &[&str]) -> JsonObject {
    object
        .iter()
        .filter(|(name, _)| !names.contains(&name.as_str()))
        .map(|(n, v)| (n.clone(), v.clone()))
        .collect()
}

/// Returns the value object in a message.
fn value_of(message: &JsonObject, own_type: Option<&str>) -> JsonObject {
    let mut value = without(message, &["type", "seq", "ts"]);
    if let Some(part) = own_type.and_then(|name| value.remove(name)) {
        value.insert("type".to_string(), part);
    }
    value
}

fn rest(service: &ServiceProcess, path: &str) -> Vec<JsonObject> {
    let (status, json) = service.ask(&format!("GET /rest/{path}"));
    assert_eq!(status, 200, "{json}");
    let json = unchunked(&json);
    match serde_json::from_str(&json) {
        Ok(Value::Array(rows)) => rows.into_iter().map(|row| object(&row.to_string())).collect(),
        Ok(Value::Object(row)) => vec![row],
        other => panic!("{json}: {other:?}"),
    }
}

/// Joins a body that came in chunks, each after its length.
fn unchunked(body: &str) -> String {
    let (mut whole, mut rest) = (String::new(), body);
    while let Some((length, behind)) = rest.split_once("\r\n") {
        let length = usize::from_str_radix(length, 16).unwrap();
        whole += &behind[..length];
        rest = behind[length..].trim_start_matches("\r\n");
    }
    whole
}

fn order(service: &ServiceProcess, kind: &str, json: &str) {
    let (status, answer) = request(service, &format!("POST /rest/execution/{kind}"), json);
    assert_eq!(status, 200, "{answer}");
}

fn is(name: &'static str, part: &'static str) -> impl Fn(&JsonObject) -> bool {
    move |object| object.get(name).and_then(Value::as_str) == Some(part)
}

#[test]
fn an_order_is_the_same_by_topic_and_by_rest() {
    let (service, _) = start("values-order", &["feed.on=false", "venue.self_trade=allow"]);
    let mut audience = TopicReaders::new(&service, &["order.>", "pitlane.>"]);
    let one = |id: &str| rest(&service, &format!("execution/order/{id}")).remove(0);
    let limit = r#""securityId":1,"side":"BUY","quantity":10,"limit":100,"strategyName":"PAIRS""#;
    order(&service, "order/limit", &format!(r#"{{"intId":"a",{limit}}}"#));
    let entered = value_of(&audience.receive("order.PAIRS.a", |_| true), Some("orderType"));
    // The order that REST shows has been accepted since, and shows that. Only REST shows the
    // sender.
    let changed = ["status", "lastUpdate", "sentBy"];
    assert_eq!(without(&entered, &changed), without(&one("a"), &changed));
    // Half of it is filled, then it is changed: the new version is reported with everything that
    // happened before.
    let sell =
        r#"{"intId":"s","securityId":1,"side":"SELL","quantity":4,"limit":100,"strategyName":"MOMENTUM"}"#;
    order(&service, "order/limit", sell);
    let filled = audience.receive("pitlane.PAIRS.a", is("status", "PARTIALLY_FILLED"));
    order(&service, "modify/order/limit", r#"{"intId":"a","newIntId":"b","limit":99}"#);
    let modified = value_of(&audience.receive("order.PAIRS.b", |_| true), Some("orderType"));
    assert_eq!(modified, without(&one("b"), &["sentBy", "modifiedBy"]));
    assert_eq!(modified.get("filledQuantity"), filled.get("filledQuantity"));
    // A status contains a part of the order, with the same names and values.
    let status = audience.receive("pitlane.PAIRS.b", is("execType", "REPLACED"));
    let whole = one("b");
    for (name, value) in value_of(&status, None) {
        let own = ["execType", "lastQuantity", "lastPrice"];
        assert!(own.contains(&name.as_str()) || whole.get(&name) == Some(&value), "{name} is {value}");
    }
    service.signal("TERM");
    assert!(service.end().is_orderly());
}

#[test]
fn positions_transactions_and_cash_are_the_same_by_topic_and_by_rest() {
    let (service, _) = start("values-ledger", &["feed.on=false", "venue.self_trade=allow"]);
    let subscription = r#"{"strategyName":"PAIRS","securityId":1,"subscribe":true}"#;
    assert_eq!(request(&service, "PUT /rest/subscription/marketdata/subscribe", subscription).0, 200);
    let mut audience =
        TopicReaders::new(&service, &["position.>", "transaction.>", "cash-balance.>", "book.1"]);
    let limit = |id: &str, side: &str, quantity: u32, strategy: &str| {
        let terms = format!(
            r#""securityId":1,"side":"{side}","quantity":{quantity},"limit":100,"strategyName":"{strategy}""#
        );
        order(&service, "order/limit", &format!(r#"{{"intId":"{id}",{terms}}}"#));
    };
    limit("b", "BUY", 10, "PAIRS");
    limit("s", "SELL", 4, "MOMENTUM");
    let booked = value_of(&audience.receive("transaction.PAIRS", |_| true), Some("transactionType"));
    let id = booked["id"].as_u64().unwrap();
    assert_eq!(booked, rest(&service, &format!("transaction/{id}")).remove(0));
    let position = value_of(&audience.receive("position.PAIRS.1", |_| true), None);
    let rows = rest(&service, "position");
    let row = rows.iter().find(|row| row.get("id") == position.get("id")).unwrap();
    // The market price a moment later may differ: a trade changes it.
    let priced = ["marketPrice", "marketValue", "unrealizedPL"];
    assert_eq!(without(&position, &priced), without(row, &priced));
    let cash = value_of(&audience.receive("cash-balance.PAIRS.USD", |_| true), None);
    let rows = rest(&service, "ext/cash-balance");
    assert!(rows.contains(&cash), "{cash:?} is not in {rows:?}");
    // By now all clients know the last price, and a second trade is reported with it.
    limit("t", "SELL", 2, "MOMENTUM");
    let position =
        value_of(&audience.receive("position.PAIRS.1", |row| row["quantity"].as_f64() == Some(6.0)), None);
    let rows = rest(&service, "position");
    let row = rows.iter().find(|row| row.get("id") == position.get("id")).unwrap();
    assert_eq!(&position, row, "with the market's price");
    // A manual transaction keeps the name that its sender gave it.
    let uuid = "01234567-89ab-cdef-0123-456789abcdef";
    for terms in [
        r#""type":"CREDIT","price":1000,"currency":"USD""#,
        r#""type":"BUY","securityId":1,"quantity":3,"price":99"#,
    ] {
        let uuid = uuid.replace('0', if terms.contains("BUY") { "1" } else { "2" });
        let json = format!(r#"{{"uuid":"{uuid}","strategyName":"PAIRS",{terms}}}"#);
        assert_eq!(request(&service, "POST /rest/transaction", &json).0, 200);
        let booked = value_of(&audience.receive("transaction.PAIRS", |_| true), Some("transactionType"));
        assert_eq!(booked.get("uuid").and_then(Value::as_str), Some(uuid.as_str()));
        let id = booked["id"].as_u64().unwrap();
        assert_eq!(booked, rest(&service, &format!("transaction/{id}")).remove(0));
    }
    service.signal("TERM");
    assert!(service.end().is_orderly());
}

#[test]
fn phases_subscriptions_and_events_between_strategies_say_what_rest_says() {
    let (service, _) = start("values-system", &["feed.on=true"]);
    let mut audience = TopicReaders::new(
        &service,
        &["lifecycle.*", "subscription.>", "generic-event.*", "tick.1", "log-event.*"],
    );
    let phase = r#"{"phase":"STOP"}"#;
    assert_eq!(request(&service, "PUT /rest/ext/strategy/PAIRS/phase", phase).0, 200);
    let received = value_of(&audience.receive("lifecycle.PAIRS", |_| true), None);
    let rows = rest(&service, "strategy");
    let row = rows.iter().find(|row| row.get("name") == received.get("strategyName")).unwrap();
    assert_eq!((row.get("id"), row.get("phase")), (received.get("strategyId"), received.get("phase")));
    let subscription = r#"{"strategyName":"MOMENTUM","securityId":1,"subscribe":true}"#;
    assert_eq!(request(&service, "PUT /rest/subscription/marketdata/subscribe", subscription).0, 200);
    let received = value_of(&audience.receive("subscription.MOMENTUM.1", |_| true), None);
    let asked = object(subscription);
    assert!(asked.iter().all(|(name, value)| received.get(name) == Some(value)), "{received:?}");
    audience.clients[0].send_message(r#"SEND|destination:/topic/generic-event.x||{"a":[1,null]}"#);
    let received = value_of(&audience.receive("generic-event.x", |_| true), None);
    assert_eq!(received, object(r#"{"name":"x","data":{"a":[1,null]}}"#));
    // A tick names its security as REST does.
    let tick = audience.clients[0].receive_until("MESSAGE|subscription:tick.1");
    let tick = object(body(&tick));
    let security = rest(&service, "security/1").remove(0);
    assert_eq!(tick.get("symbol"), security.get("symbol"));
    assert_eq!(tick.get("securityId"), security.get("id"));
    assert_eq!(Some(tick["feed"].as_str().unwrap()), Some("SIM"));
    service.signal("TERM");
    assert!(service.end().is_orderly());
}
