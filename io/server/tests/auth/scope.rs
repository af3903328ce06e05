//! A login that names strategies: lists show only theirs, what belongs to others is unknown to it,
//! and writes for others are refused.

use pitlane_testkit::http_client::Response;
use pitlane_testkit::secured_service::{SecuredService, bearer, create_token};
use serde_json::Value;

/// The service, an administrator for all strategies, and one for PAIRS only.
struct ScopedLogins {
    secured: SecuredService,
    all: String,
    pairs: String,
}

impl ScopedLogins {
    fn start(name: &str) -> ScopedLogins {
        let secured = SecuredService::start(
            name,
            &[
                "venue.self_trade=allow",
                "risk.strategies.max_orders_per_s=0",
                "risk.strategies.duplicate_window_ms=0",
            ],
        );
        let token = create_token(&secured.tokens, "pairs", "admin", "PAIRS");
        secured.service.signal("HUP");
        let (all, pairs) = (bearer(&secured.token[2]), bearer(&token));
        while secured.ask("GET", "/version", &pairs).status != 200 {}
        ScopedLogins { secured, all, pairs }
    }

    fn send(&self, who: &str, method: &str, path: &str, body: &str) -> Response {
        let mut client = self.secured.connect();
        let length = body.len();
        client.send(&format!(
            "{method} {path} HTTP/1.1\r\nHost: localhost\r\n{who}Content-Type: application/json\r\n\
             Content-Length: {length}\r\n\r\n{body}"
        ));
        client.receive(false)
    }

    fn read(&self, who: &str, path: &str) -> Value {
        let answer = self.secured.ask("GET", path, who);
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
    let logins = ScopedLogins::start("sight-lists");
    // Two orders that match, so that both strategies have positions, transactions and cash; and one
    // open order of each.
    logins.order("PAIRS", "SELL", "p-sold");
    logins.order("MOMENTUM", "BUY", "m-bought");
    while logins.read(&logins.all, "/rest/transaction/daily").as_array().unwrap().len() < 2 {}
    logins.order("PAIRS", "SELL", "p-open");
    logins.order("MOMENTUM", "SELL", "m-open");
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
        let (all, scoped) = logins.both(path, "strategyName");
        assert_eq!((all, scoped), (two(["MOMENTUM", "PAIRS"]), vec!["PAIRS".to_string()]), "{path}");
    }
    let newest = logins.read(&logins.pairs, "/rest/transaction/daily?limit=1");
    assert_eq!(newest.as_array().unwrap().len(), 1, "the limit counts what is shown: {newest}");
    let (all, scoped) =
        (logins.read(&logins.all, "/rest/ext/portfolio"), logins.read(&logins.pairs, "/rest/ext/portfolio"));
    assert_ne!(all, scoped, "the total contains the strategies of the login only");
    let named = logins.read(&logins.pairs, "/rest/ext/portfolio?strategy=PAIRS");
    assert_eq!(scoped["holdings"], named["holdings"]);

    // Data of other strategies are omitted.
    let theirs = logins.read(&logins.all, "/rest/transaction/daily?strategy=MOMENTUM");
    let path = format!("/rest/transaction/{}", theirs[0]["id"]);
    assert_eq!(logins.secured.ask("GET", &path, &logins.all).status, 200);
    for (path, code) in [
        (path.as_str(), "unknown-transaction"),
        ("/rest/execution/order/m-open", "unknown-order"),
        ("/rest/ext/order/changes?intId=m-open", "unknown-order"),
        ("/rest/transaction/daily?strategy=MOMENTUM", "unknown-strategy"),
        ("/rest/ext/portfolio?strategy=MOMENTUM", "unknown-strategy"),
    ] {
        let answer = logins.secured.ask("GET", path, &logins.pairs);
        assert_eq!((answer.status, answer.code().as_str()), (404, code), "{path}");
    }
    for path in ["/rest/execution/order/p-open", "/rest/ext/order/changes?intId=p-open"] {
        assert_eq!(logins.secured.ask("GET", path, &logins.pairs).status, 200, "{path}");
    }
    logins.secured.end();
}

#[test]
fn no_login_acts_for_strategies_that_it_does_not_name() {
    let logins = ScopedLogins::start("sight-writes");
    logins.order("PAIRS", "SELL", "p-sold");
    logins.order("MOMENTUM", "BUY", "m-bought");
    logins.order("MOMENTUM", "SELL", "m-open");
    while logins.read(&logins.all, "/rest/position").as_array().unwrap().len() < 2 {}
    let positions = logins.read(&logins.all, "/rest/position");
    let theirs = positions.as_array().unwrap().iter().find(|row| row["strategyName"] == "MOMENTUM").unwrap();
    let position = &theirs["id"];
    let limit = "/rest/execution/order/limit";
    logins.refused("POST", limit, &order("MOMENTUM", "BUY", "x"));
    // Without a strategy the order belongs to SERVER.
    logins.refused("POST", limit, r#"{"securityId":1,"side":"BUY","quantity":5,"limit":90}"#);
    let any =
        r#"{"type":"LIMIT","securityId":1,"side":"BUY","quantity":5,"limit":90,"strategyName":"MOMENTUM"}"#;
    logins.refused("POST", "/rest/ext/execution/order/validate", any);
    logins.refused("DELETE", &format!("/rest/position/{position}"), "");
    logins.refused("POST", &format!("/rest/position/reduce/{position}"), "1");
    let cash = r#"{"type":"CREDIT","price":5,"currency":"USD","strategyName":"MOMENTUM"}"#;
    logins.refused("POST", "/rest/transaction", cash);
    let wish = r#"{"strategyName":"MOMENTUM","securityId":1}"#;
    logins.refused("PUT", "/rest/subscription/marketdata/subscribe", wish);
    logins.refused("PUT", "/rest/ext/risk", r#"{"strategyName":"MOMENTUM","maxOpenOrders":1}"#);
    logins.refused("PUT", "/rest/ext/strategy/MOMENTUM/phase", r#"{"phase":"STOP"}"#);
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
        logins.refused("POST", all, "");
    }
    logins.refused("DELETE", "/rest/ext/kill-switch", "");
    logins.refused("DELETE", "/rest/ext/session/fix-0-1", "");
    logins.refused("PUT", "/rest/ext/broker/rate", r#"{"maxRatePerConnection":1}"#);
    // Its own orders are permitted.
    let answer = logins.send(&logins.pairs, "POST", limit, &order("PAIRS", "SELL", "p-open"));
    assert_eq!(answer.status, 200, "{answer:?}");
    let body = r#"{"intId":"p-open","limit":102,"newIntId":"p-next"}"#;
    assert_eq!(logins.send(&logins.pairs, "POST", "/rest/execution/modify/order/limit", body).status, 200);
    assert_eq!(logins.send(&logins.pairs, "DELETE", "/rest/execution/order/p-next", "").status, 200);
    // The order of the other strategy is unchanged.
    let open = logins.read(&logins.all, "/rest/execution/order/m-open");
    assert_eq!((&open[0]["status"], &open[0]["limit"]), (&"NEW".into(), &100.into()));
    logins.secured.end();
}

/// A login for one strategy learns nothing of the ids of another, and cannot take one from it.
#[test]
fn the_order_ids_of_a_strategy_are_its_own() {
    let logins = ScopedLogins::start("sight-ids");
    let limit = "/rest/execution/order/limit";
    let modify = "/rest/execution/modify/order/limit";
    logins.order("MOMENTUM", "SELL", "taken");
    // An existing order and one that never existed get the same response.
    for id in ["taken", "never"] {
        let change = format!(r#"{{"intId":"{id}","limit":101}}"#);
        for answer in [
            logins.send(&logins.pairs, "DELETE", &format!("/rest/execution/order/{id}"), ""),
            logins.send(&logins.pairs, "GET", &format!("/rest/execution/order/{id}"), ""),
            logins.send(&logins.pairs, "POST", modify, &change),
        ] {
            assert_eq!((answer.status, answer.code().as_str()), (404, "unknown-order"), "{id}: {answer:?}");
        }
        let any = format!(
            r#"{{"type":"LIMIT","intId":"{id}","securityId":1,"side":"SELL","quantity":5,"limit":100,"strategyName":"PAIRS"}}"#
        );
        let valid = logins.send(&logins.pairs, "POST", "/rest/ext/execution/order/validate", &any);
        assert_eq!(valid.status, 200, "{id}: {valid:?}");
        let answer = logins.send(&logins.pairs, "POST", limit, &order("PAIRS", "SELL", id));
        assert_eq!(answer.status, 200, "{id}: {answer:?}");
        // Within its strategy an id makes one order: the same request again is the same, another is
        // refused.
        let again = logins.send(&logins.pairs, "POST", limit, &order("PAIRS", "SELL", id));
        assert_eq!(again.status, 200, "{id}: {again:?}");
        let other = logins.send(&logins.pairs, "POST", limit, &order("PAIRS", "BUY", id));
        assert_eq!(other.code(), "duplicate-order-id", "{id}: {other:?}");
    }
    let strategies = |login: &str| -> Vec<String> {
        let found = logins.read(login, "/rest/execution/order/taken");
        let mut names: Vec<String> = found
            .as_array()
            .unwrap()
            .iter()
            .map(|row| row["strategyName"].as_str().unwrap().into())
            .collect();
        names.sort();
        names
    };
    assert_eq!(strategies(&logins.all), ["MOMENTUM", "PAIRS"]);
    assert_eq!(strategies(&logins.pairs), ["PAIRS"]);
    // The other strategy used the id of a modification first, which changes nothing for this one.
    let rename = r#"{"intId":"taken","newIntId":"renamed","limit":102}"#;
    logins.order("MOMENTUM", "SELL", "renamed");
    assert_eq!(logins.send(&logins.pairs, "POST", modify, rename).status, 200);
    assert_eq!(logins.send(&logins.pairs, "POST", modify, rename).status, 200, "the same again is the same");
    assert_eq!(logins.send(&logins.pairs, "DELETE", "/rest/execution/order/renamed", "").status, 200);
    let open = logins.read(&logins.all, "/rest/execution/order");
    let mut left: Vec<(String, String)> = open
        .as_array()
        .unwrap()
        .iter()
        .map(|row| (row["strategyName"].as_str().unwrap().into(), row["intId"].as_str().unwrap().into()))
        .collect();
    left.sort();
    let expected = [("MOMENTUM", "renamed"), ("MOMENTUM", "taken"), ("PAIRS", "never")];
    assert_eq!(left, expected.map(|(strategy, id)| (strategy.to_string(), id.to_string())));
    logins.secured.end();
}
