//! Each order shows who sent, modified and cancelled it: over REST here, over FIX and in a cluster
//! in the FIX tests.

use pitlane_testkit::http_client::Response;
use pitlane_testkit::secured_service::{PASSWORD, SecuredService, basic, bearer, done, pitlane};
use pitlane_testkit::service::ServiceProcess;
use serde_json::{Value, json};

const LIMIT: &str = "/rest/execution/order/limit";
const MODIFY: &str = "/rest/execution/modify/order/limit";

fn post(secured: &SecuredService, path: &str, login: &str, body: &str) -> Response {
    let mut client = secured.connect();
    let length = body.len();
    client.send(&format!(
        "POST {path} HTTP/1.1\r\nHost: localhost\r\n{login}Content-Type: application/json\r\n\
         Content-Length: {length}\r\n\r\n{body}"
    ));
    client.receive(false)
}

fn by(login: &str) -> Value {
    json!({ "login": login, "address": "127.0.0.1", "protocol": "REST" })
}

/// Returns an order of the list, with the sender of each action.
fn deeds(list: &Value, id: &str) -> [Value; 3] {
    let order = list.as_array().unwrap().iter().find(|order| order["intId"] == id).expect("it is listed");
    ["sentBy", "modifiedBy", "canceledBy"].map(|name| order[name].clone())
}

#[test]
fn an_order_shows_who_sent_modified_and_cancelled_it_and_the_journal_stores_it() {
    let secured = SecuredService::start("attribution", &["topology.shards=2"]);
    let (robot, person) = (bearer(&secured.token[1]), basic("trade", PASSWORD));
    let admin = bearer(&secured.token[2]);
    for (security, id) in [(1, "one"), (2, "two")] {
        let order = format!(
            r#"{{"intId":"{id}","securityId":{security},"side":"BUY","quantity":5,"limit":1.25,"tif":"GTC"}}"#
        );
        assert_eq!(post(&secured, LIMIT, &robot, &order).status, 200);
        let change = format!(r#"{{"intId":"{id}","newIntId":"{id}-b","quantity":7,"limit":1.5}}"#);
        assert_eq!(post(&secured, MODIFY, &person, &change).status, 200);
    }
    assert_eq!(secured.ask("DELETE", "/rest/execution/order/two-b", &admin).status, 200);
    let refused = r#"{"intId":"bad","securityId":1,"side":"BUY","quantity":5,"limit":1.255}"#;
    assert_eq!(post(&secured, LIMIT, &person, refused).status, 422);
    let check = |secured: &SecuredService| {
        let open = secured.ask("GET", "/rest/execution/order", &robot).json();
        assert_eq!(deeds(&open, "one-b"), [by("trade-robot"), by("trade"), Value::Null]);
        let ended = secured.ask("GET", "/rest/ext/order/history", &robot).json();
        assert_eq!(deeds(&ended, "two-b"), [by("trade-robot"), by("trade"), by("admin-robot")]);
        assert_eq!(deeds(&ended, "bad"), [by("trade"), Value::Null, Value::Null]);
    };
    check(&secured);

    // The journal alone has the senders.
    let data = secured.data.to_str().unwrap().to_string();
    let orders = |more: &[&str]| {
        let arguments = [&["audit", "orders", "--data", data.as_str()], more].concat();
        let printed = done(&pitlane(&arguments, ""));
        printed.lines().map(|line| serde_json::from_str(line).unwrap()).collect::<Vec<Value>>()
    };
    let all = orders(&[]);
    let acts: Vec<_> =
        all.iter().map(|line| (line["act"].as_str().unwrap(), line["sentBy"].clone())).collect();
    assert_eq!(acts.iter().filter(|act| **act == ("submit", by("trade-robot"))).count(), 2, "{acts:?}");
    assert_eq!(acts.iter().filter(|act| **act == ("modify", by("trade"))).count(), 2, "{acts:?}");
    assert_eq!(acts.iter().filter(|act| **act == ("cancel", by("admin-robot"))).count(), 1, "{acts:?}");
    assert_eq!(orders(&["--login", "trade"]).len(), 3, "two modifications and an order that was refused");
    assert_eq!(orders(&["--id", "one"])[0]["securityId"], 1);

    // A server that was killed and restarted knows them too, whatever numbers it gives to the
    // current senders.
    let SecuredService { service, data, users, tokens, token } = secured;
    service.signal("KILL");
    service.end();
    let files = [
        "feed.on=false".to_string(),
        "topology.shards=2".to_string(),
        "auth.mode=required".to_string(),
        format!("auth.users_file={}", users.display()),
        format!("auth.tokens_file={}", tokens.display()),
    ];
    let settings: Vec<&str> = files.iter().map(String::as_str).collect();
    let service = ServiceProcess::start(&data, &settings, None);
    assert!(service.is_ready(), "{}", service.ready);
    let secured = SecuredService { service, data, users, tokens, token };
    let other = r#"{"intId":"new","securityId":1,"side":"BUY","quantity":5,"limit":1.25,"tif":"GTC"}"#;
    assert_eq!(post(&secured, LIMIT, &admin, other).status, 200);
    check(&secured);
    let open = secured.ask("GET", "/rest/execution/order", &robot).json();
    assert_eq!(deeds(&open, "new"), [by("admin-robot"), Value::Null, Value::Null]);
    secured.end();
}
