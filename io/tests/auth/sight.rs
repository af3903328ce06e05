//! A login that names strategies: lists show only theirs, what belongs to others is unknown to it,
//! and writes for others are refused.

use serde_json::Value;

use crate::client::Response;
use crate::house::{House, bearer, create_token};

/// The service, an administrator for all strategies, and one for PAIRS only.
struct Floor {
    house: House,
    all: String,
    pairs: String,
}

impl Floor {
    fn start(name: &str) -> Floor {
        let house = House::start(
            name,
            &[
                "venue.self_trade=allow",
                "risk.strategies.max_orders_per_s=0",
                "risk.strategies.duplicate_window_ms=0",
            ],
        );
        let token = create_token(&house.tokens, "pairs", "admin", "PAIRS");
        house.service.signal("HUP");
        let (all, pairs) = (bearer(&house.token[2]), bearer(&token));
        while house.ask("GET", "/version", &pairs).status != 200 {}
        Floor { house, all, pairs }
    }

    fn send(&self, who: &str, method: &str, path: &str, body: &str) -> Response {
        let mut client = self.house.connect();
        let length = body.len();
        client.send(&format!(
            "{method} {path} HTTP/1.1\r\nHost: localhost\r\n{who}Content-Type: application/json\r\n\
             Content-Length: {length}\r\n\r\n{body}"
        ));
        client.receive(false)
    }

    fn read(&self, who: &str, path: &str) -> Value {
        let answer = self.house.ask("GET", path, who);
        assert_eq!(answer.status, 200, "{path}: {answer:?}");
        answer.json()
    }

    fn order(&self, strategy: &str, side: &str, id: &str) {
        let body = order(strategy, side, id);
        let answer = self.send(&self.all, "POST", "/rest/execution/order/limit", &body);
        assert_eq!(answer.status, 200, "{answer:?}");
    }

    /// Returns what both logins see of a list, by a name in each row.
    fn both(&self, path: &str, name: &str) -> (Vec<String>, Vec<String>) {
        let of = |who: &str| {
            let rows = self.read(who, path);
            let mut names: Vec<String> =
                rows.as_array().unwrap().iter().map(|row| row[name].as_str().unwrap().to_string()).collect();
            names.sort();
            names.dedup();
            names
        };
        (of(&self.all), of(&self.pairs))
    }

    fn refused(&self, method: &str, path: &str, body: &str) {
        let answer = self.send(&self.pairs, method, path, body);
        assert_eq!((answer.status, answer.code().as_str()), (403, "other-strategy"), "{method} {path}");
    }
}

fn order(strategy: &str, side: &str, id: &str) -> String {
    format!(
        r#"{{"securityId":1,"side":"{side}","quantity":5,"limit":100,"strategyName":"{strategy}","intId":"{id}"}}"#
    )
}

#[test]
fn lists_show_what_belongs_to_the_strategies_of_a_login() {
    let floor = Floor::start("sight-lists");
    // Two orders that match, so that both strategies have positions, transactions and cash; and one
    // open order of each.
    floor.order("PAIRS", "SELL", "p-sold");
    floor.order("MOMENTUM", "BUY", "m-bought");
    while floor.read(&floor.all, "/rest/transaction/daily").as_array().unwrap().len() < 2 {}
    floor.order("PAIRS", "SELL", "p-open");
    floor.order("MOMENTUM", "SELL", "m-open");
    let two = |names: [&str; 2]| names.map(str::to_string).to_vec();
    let lists = [
        "/rest/position",
        "/rest/transaction/daily",
        "/rest/transaction/daily?limit=5",
        "/rest/execution/order",
        "/rest/ext/order/history",
        "/rest/ext/cash-balance",
    ];
    for path in lists {
        let (all, his) = floor.both(path, "strategyName");
        assert_eq!((all, his), (two(["MOMENTUM", "PAIRS"]), vec!["PAIRS".to_string()]), "{path}");
    }
    let newest = floor.read(&floor.pairs, "/rest/transaction/daily?limit=1");
    assert_eq!(newest.as_array().unwrap().len(), 1, "the limit counts what is shown: {newest}");
    let (all, his) =
        (floor.read(&floor.all, "/rest/ext/portfolio"), floor.read(&floor.pairs, "/rest/ext/portfolio"));
    assert_ne!(all, his, "the whole is of his strategies only");
    let named = floor.read(&floor.pairs, "/rest/ext/portfolio?strategy=PAIRS");
    assert_eq!(his["holdings"], named["holdings"]);

    // Data of other strategies are omitted.
    let theirs = floor.read(&floor.all, "/rest/transaction/daily?strategy=MOMENTUM");
    let path = format!("/rest/transaction/{}", theirs[0]["id"]);
    assert_eq!(floor.house.ask("GET", &path, &floor.all).status, 200);
    for (path, code) in [
        (path.as_str(), "unknown-transaction"),
        ("/rest/execution/order/m-open", "unknown-order"),
        ("/rest/transaction/daily?strategy=MOMENTUM", "unknown-strategy"),
        ("/rest/ext/portfolio?strategy=MOMENTUM", "unknown-strategy"),
    ] {
        let answer = floor.house.ask("GET", path, &floor.pairs);
        assert_eq!((answer.status, answer.code().as_str()), (404, code), "{path}");
    }
    assert_eq!(floor.house.ask("GET", "/rest/execution/order/p-open", &floor.pairs).status, 200);
    floor.house.end();
}

#[test]
fn no_login_acts_for_strategies_that_it_does_not_name() {
    let floor = Floor::start("sight-writes");
    floor.order("PAIRS", "SELL", "p-sold");
    floor.order("MOMENTUM", "BUY", "m-bought");
    floor.order("MOMENTUM", "SELL", "m-open");
    while floor.read(&floor.all, "/rest/position").as_array().unwrap().len() < 2 {}
    let positions = floor.read(&floor.all, "/rest/position");
    let theirs = positions.as_array().unwrap().iter().find(|row| row["strategyName"] == "MOMENTUM").unwrap();
    let position = &theirs["id"];
    let limit = "/rest/execution/order/limit";
    floor.refused("POST", limit, &order("MOMENTUM", "BUY", "x"));
    // Without a strategy the order belongs to SERVER.
    floor.refused("POST", limit, r#"{"securityId":1,"side":"BUY","quantity":5,"limit":90}"#);
    let any =
        r#"{"type":"LIMIT","securityId":1,"side":"BUY","quantity":5,"limit":90,"strategyName":"MOMENTUM"}"#;
    floor.refused("POST", "/rest/ext/execution/order/validate", any);
    floor.refused("DELETE", &format!("/rest/position/{position}"), "");
    floor.refused("POST", &format!("/rest/position/reduce/{position}"), "1");
    let cash = r#"{"type":"CREDIT","price":5,"currency":"USD","strategyName":"MOMENTUM"}"#;
    floor.refused("POST", "/rest/transaction", cash);
    let wish = r#"{"strategyName":"MOMENTUM","securityId":1}"#;
    floor.refused("PUT", "/rest/subscription/marketdata/subscribe", wish);
    floor.refused("PUT", "/rest/ext/risk", r#"{"strategyName":"MOMENTUM","maxOpenOrders":1}"#);
    floor.refused("PUT", "/rest/ext/strategy/MOMENTUM/phase", r#"{"phase":"STOP"}"#);
    for all in [
        "/rest/position/reset-positions",
        "/rest/transaction/reset-cash-balances",
        "/rest/transaction/reset-cache-balances",
        "/rest/ext/kill-switch",
        "/rest/cache/clear-all",
        "/rest/ext/session/fix-0-1/reset",
        // Such a login could once not use the kill switch, and yet stop the service.
        "/rest/runtime/exit-vm",
    ] {
        floor.refused("POST", all, "");
    }
    floor.refused("DELETE", "/rest/ext/kill-switch", "");
    floor.refused("DELETE", "/rest/ext/session/fix-0-1", "");
    floor.refused("PUT", "/rest/ext/broker/rate", r#"{"maxRatePerConnection":1}"#);
    // Its own orders are permitted.
    let answer = floor.send(&floor.pairs, "POST", limit, &order("PAIRS", "SELL", "p-open"));
    assert_eq!(answer.status, 200, "{answer:?}");
    let body = r#"{"intId":"p-open","limit":102,"newIntId":"p-next"}"#;
    assert_eq!(floor.send(&floor.pairs, "POST", "/rest/execution/modify/order/limit", body).status, 200);
    assert_eq!(floor.send(&floor.pairs, "DELETE", "/rest/execution/order/p-next", "").status, 200);
    // The order of the other strategy is unchanged.
    let open = floor.read(&floor.all, "/rest/execution/order/m-open");
    assert_eq!((&open[0]["status"], &open[0]["limit"]), (&"NEW".into(), &100.into()));
    floor.house.end();
}

/// A login for one strategy learns nothing of the ids of another, and cannot take one from it.
#[test]
fn the_order_ids_of_a_strategy_are_its_own() {
    let floor = Floor::start("sight-ids");
    let limit = "/rest/execution/order/limit";
    let modify = "/rest/execution/modify/order/limit";
    floor.order("MOMENTUM", "SELL", "taken");
    // An existing order and one that never existed get the same response.
    for id in ["taken", "never"] {
        let change = format!(r#"{{"intId":"{id}","limit":101}}"#);
        for answer in [
            floor.send(&floor.pairs, "DELETE", &format!("/rest/execution/order/{id}"), ""),
            floor.send(&floor.pairs, "GET", &format!("/rest/execution/order/{id}"), ""),
            floor.send(&floor.pairs, "POST", modify, &change),
        ] {
            assert_eq!((answer.status, answer.code().as_str()), (404, "unknown-order"), "{id}: {answer:?}");
        }
        let any = format!(
            r#"{{"type":"LIMIT","intId":"{id}","securityId":1,"side":"SELL","quantity":5,"limit":100,"strategyName":"PAIRS"}}"#
        );
        let valid = floor.send(&floor.pairs, "POST", "/rest/ext/execution/order/validate", &any);
        assert_eq!(valid.status, 200, "{id}: {valid:?}");
        let answer = floor.send(&floor.pairs, "POST", limit, &order("PAIRS", "SELL", id));
        assert_eq!(answer.status, 200, "{id}: {answer:?}");
        // Within its strategy an id makes one order: the same request again is the same, another is
        // refused.
        let again = floor.send(&floor.pairs, "POST", limit, &order("PAIRS", "SELL", id));
        assert_eq!(again.status, 200, "{id}: {again:?}");
        let other = floor.send(&floor.pairs, "POST", limit, &order("PAIRS", "BUY", id));
        assert_eq!(other.code(), "duplicate-order-id", "{id}: {other:?}");
    }
    let strategies = |login: &str| -> Vec<String> {
        let found = floor.read(login, "/rest/execution/order/taken");
        let mut names: Vec<String> = found
            .as_array()
            .unwrap()
            .iter()
            .map(|row| row["strategyName"].as_str().unwrap().into())
            .collect();
        names.sort();
        names
    };
    assert_eq!(strategies(&floor.all), ["MOMENTUM", "PAIRS"]);
    assert_eq!(strategies(&floor.pairs), ["PAIRS"]);
    // The other strategy used the id of a modification first, which changes nothing for this one.
    let rename = r#"{"intId":"taken","newIntId":"renamed","limit":102}"#;
    floor.order("MOMENTUM", "SELL", "renamed");
    assert_eq!(floor.send(&floor.pairs, "POST", modify, rename).status, 200);
    assert_eq!(floor.send(&floor.pairs, "POST", modify, rename).status, 200, "the same again is the same");
    assert_eq!(floor.send(&floor.pairs, "DELETE", "/rest/execution/order/renamed", "").status, 200);
    let open = floor.read(&floor.all, "/rest/execution/order");
    let mut left: Vec<(String, String)> = open
        .as_array()
        .unwrap()
        .iter()
        .map(|row| (row["strategyName"].as_str().unwrap().into(), row["intId"].as_str().unwrap().into()))
        .collect();
    left.sort();
    let expected = [("MOMENTUM", "renamed"), ("MOMENTUM", "taken"), ("PAIRS", "never")];
    assert_eq!(left, expected.map(|(strategy, id)| (strategy.to_string(), id.to_string())));
    floor.house.end();
}
