//! Subscriptions, settings, addresses, limits, phases, venues.

use std::process::Command;

use serde_json::json;

use crate::service::{RestService, folder};

#[test]
fn subscriptions_are_idempotent_and_agree_with_their_path() {
    let mut service = RestService::start("subscribe");
    let (on, off) = ("/rest/subscription/marketdata/subscribe", "/rest/subscription/marketdata/unsubscribe");
    let body = |flag: &str| format!(r#"{{"strategyName":"PAIRS","securityId":3{flag}}}"#);
    for _ in 0..2 {
        let answer = service.put(on, &body(r#","subscribe":true"#));
        assert_eq!(
            (answer.status, answer.header("content-length"), answer.body.as_str()),
            (200, Some("0"), "")
        );
    }
    for _ in 0..2 {
        assert_eq!(service.put(off, &body("")).status, 200);
    }
    service.refuse("PUT", on, &body(r#","subscribe":false"#), 400, "subscribe-contradicts");
    service.refuse("PUT", off, &body(r#","subscribe":true"#), 400, "subscribe-contradicts");
    service.refuse("PUT", on, r#"{"strategyName":"NOBODY","securityId":3}"#, 422, "unknown-strategy");
    service.refuse("PUT", on, r#"{"strategyName":"SERVER","securityId":999}"#, 422, "unknown-security");
    service.refuse("PUT", on, r#"{"strategyName":"SERVER"}"#, 400, "bad-body");
    service.refuse(
        "PUT",
        on,
        r#"{"strategyName":"SERVER","securityId":3,"subscribe":"yes"}"#,
        400,
        "bad-body",
    );
    service.refuse("POST", on, &body(""), 405, "method-not-allowed");
    assert_eq!(
        service.read("/rest/subscription/marketdata/supported-feed"),
        json!([]),
        "the feed is switched off"
    );
    let data = folder("feed");
    let mut service = RestService::with(&data, &["feed.on=true"]);
    assert_eq!(service.read("/rest/subscription/marketdata/supported-feed"), json!(["SIM"]));
}

#[test]
fn settings_are_shown_and_secrets_are_not() {
    let data = folder("params");
    let mut service = RestService::with(&data, &["broker.maxRatePerConnection=33"]);
    let params = service.read("/rest/config-params");
    assert!(params.as_object().unwrap().values().all(|value| value.is_string()));
    assert_eq!(params["broker.maxRatePerConnection"], "33");
    assert_eq!(params["broker.minRatePerConsumer"], "0.1");
    assert_eq!(params["journal.level.effective"], "os");
    let secrets: Vec<_> =
        params.as_object().unwrap().iter().filter(|(name, _)| name.contains("password")).collect();
    assert!(
        !secrets.is_empty() && secrets.iter().all(|(_, value)| **value == "***" || **value == ""),
        "{secrets:?}"
    );
}

#[test]
fn addresses_are_shown_as_the_client_reaches_them() {
    let mut service = RestService::start("urls");
    let port = service.address().port();
    assert_eq!(service.read("/rest/broker/url/ws"), json!(format!("ws://localhost:{port}/stomp")));
    let mut client = service.connect();
    client.send("GET /rest/broker/url/ws HTTP/1.1\r\nHost: 127.0.0.1:7777\r\n\r\n");
    assert_eq!(client.receive(false).json(), "ws://127.0.0.1:7777/stomp");
    client.send("GET /rest/broker/url/main HTTP/1.1\r\nHost: 127.0.0.1:7777\r\n\r\n");
    let main = client.receive(false).json();
    assert!(main.as_str().unwrap().starts_with("stomp://127.0.0.1:"), "{main}");
    let data = folder("public");
    let mut service = RestService::with(&data, &["http.public_host=desk.example"]);
    let url = service.read("/rest/broker/url/ws");
    assert!(url.as_str().unwrap().starts_with("ws://desk.example:"), "{url}");
}

#[test]
fn a_client_over_tls_gets_tls_addresses() {
    let data = folder("urls-tls");
    let listen = ["https.listen=127.0.0.1:0", "stomp.tls_listen=127.0.0.1:0"];
    let mut service = RestService::with(&data, &listen);
    let port = |name: &str| {
        let address = service.ready().split_whitespace().find_map(|part| part.strip_prefix(name)).unwrap();
        address.rsplit(':').next().unwrap().to_string()
    };
    let (https, stomp, stomp_tls) = (port("https="), port("stomp="), port("stomp+tls="));
    let curl = |path: &str| {
        let output = Command::new("curl")
            .args(["--silent", "--show-error", "--noproxy", "*", "--cacert"])
            .arg(data.join("self-signed.pem"))
            .arg(format!("https://localhost:{https}/rest/broker/url/{path}"))
            .output()
            .unwrap();
        String::from_utf8(output.stdout).unwrap()
    };
    assert_eq!(curl("main"), format!("\"stomp+ssl://localhost:{stomp_tls}\""));
    assert_eq!(curl("ws"), format!("\"wss://localhost:{https}/stomp\""));
    assert_eq!(service.read("/rest/broker/url/main"), json!(format!("stomp://localhost:{stomp}")));
}

#[test]
fn limits_are_changed_and_refuse_orders() {
    let mut service = RestService::start("risk");
    let limits = |service: &mut RestService, name: &str| {
        let risk = service.read("/rest/ext/risk");
        risk["limits"].as_array().unwrap().iter().find(|row| row["strategyName"] == name).cloned().unwrap()
    };
    let before = limits(&mut service, "PAIRS");
    assert_eq!((&before["maxOrderQty"], &before["tradingEnabled"]), (&json!(0), &json!(true)));
    assert_eq!(
        service
            .put("/rest/ext/risk", r#"{"strategyName":"PAIRS","maxOrderQty":5,"priceCollarPct":"12.5"}"#)
            .status,
        200
    );
    let after = limits(&mut service, "PAIRS");
    assert_eq!(
        (&after["maxOrderQty"], &after["priceCollarPct"], &after["maxPosition"]),
        (&json!(5), &json!(12.5), &before["maxPosition"])
    );
    let order = |strategy: &str| {
        format!(r#"{{"securityId":1,"side":"BUY","quantity":6,"limit":1,"strategyName":"{strategy}"}}"#)
    };
    service.refuse("POST", "/rest/execution/order/limit", &order("PAIRS"), 422, "max-order-qty");
    service.must_post("/rest/execution/order/limit", &order("MOMENTUM"));
    assert_eq!(
        service.put("/rest/ext/risk", r#"{"accountName":"NEWYORK","tradingEnabled":false}"#).status,
        200
    );
    service.refuse("POST", "/rest/execution/order/limit", &order("MOMENTUM"), 422, "trading-disabled");
    for (body, status, code) in [
        (r#"{"maxOrderQty":5}"#, 422, "bad-limits"),
        (r#"{"strategyName":"PAIRS","accountName":"GLOBAL"}"#, 422, "bad-limits"),
        (r#"{"strategyName":"PAIRS","maxOrderQty":-5}"#, 422, "bad-limits"),
        (r#"{"strategyName":"PAIRS","priceCollarPct":0.001}"#, 422, "bad-limits"),
        (r#"{"strategyName":"PAIRS","credit":5}"#, 422, "bad-limits"),
        (r#"{"accountName":"GLOBAL","credit":5}"#, 422, "bad-limits"),
        (r#"{"strategyName":"NOBODY"}"#, 422, "unknown-strategy"),
        (r#"{"accountName":"NOBODY"}"#, 422, "unknown-account"),
        (r#"{"strategyName":"PAIRS","maxOrderQuantity":5}"#, 400, "bad-body"),
    ] {
        service.refuse("PUT", "/rest/ext/risk", body, status, code);
    }
}

#[test]
fn the_kill_switch_cancels_and_refuses() {
    let mut service = RestService::start("kill");
    let order = r#"{"securityId":1,"side":"BUY","quantity":1,"limit":1,"intId":"a"}"#;
    service.must_post("/rest/execution/order/limit", order);
    service.stop_trading();
    assert_eq!(service.order("a")["status"], "CANCELED");
    assert_eq!(service.read("/rest/ext/risk")["killSwitch"], true);
    service.refuse(
        "POST",
        "/rest/execution/order/limit",
        &order.replace("\"a\"", "\"b\""),
        422,
        "kill-switch",
    );
    assert_eq!(service.delete("/rest/ext/kill-switch").status, 200);
    service.must_post("/rest/execution/order/limit", &order.replace("\"a\"", "\"c\""));
}

#[test]
fn the_phase_of_a_strategy_can_be_changed() {
    let mut service = RestService::start("phases");
    let phase =
        |service: &mut RestService| service.read("/rest/strategy")[2]["phase"].as_str().unwrap().to_string();
    let path = "/rest/ext/strategy/PAIRS/phase";
    assert_eq!(service.put(path, r#"{"phase":"STOP"}"#).status, 200);
    assert_eq!(phase(&mut service), "STOP");
    let order = r#"{"securityId":1,"side":"BUY","quantity":1,"limit":1,"strategyName":"PAIRS"}"#;
    service.refuse("POST", "/rest/execution/order/limit", order, 422, "strategy-not-running");
    assert_eq!(service.put(path, r#"{"phase":"RUNNING"}"#).status, 200);
    assert_eq!(phase(&mut service), "RUNNING");
    service.must_post("/rest/execution/order/limit", order);
    service.refuse("PUT", path, r#"{"phase":"INIT"}"#, 409, "phase-order");
    service.refuse("PUT", path, r#"{"phase":"PAUSE"}"#, 400, "bad-body");
    service.refuse("PUT", "/rest/ext/strategy/SERVER/phase", r#"{"phase":"STOP"}"#, 422, "server-runs");
    service.refuse("PUT", "/rest/ext/strategy/NOBODY/phase", r#"{"phase":"STOP"}"#, 404, "unknown-strategy");
    let adapters = service.read("/rest/ext/adapter");
    assert_eq!(
        adapters[0],
        json!({ "id": 0, "name": "SIM", "connected": true, "killed": false, "exchanges": ["XNAS", "XCME", "XOFF"] })
    );
}

#[test]
fn metrics_are_served_unless_switched_off() {
    assert_eq!(RestService::start("metrics-on").get("/metrics").status, 200);
    let mut service = RestService::with(&folder("metrics-off"), &["metrics.on=false"]);
    assert_eq!(service.get("/metrics").status, 404);
    assert_eq!(service.get("/health/live").status, 200);
}

#[test]
fn the_version_names_the_commit_it_was_built_from() {
    let mut service = RestService::start("version");
    let version = service.read("/version");
    assert_eq!(
        (&version["name"], &version["version"]),
        (&"pitlane".into(), &env!("CARGO_PKG_VERSION").into())
    );
    let commit = version["commit"].as_str().unwrap();
    let is_hash = commit.len() == 40 && commit.bytes().all(|octet| octet.is_ascii_hexdigit());
    assert!(is_hash || commit == "unknown", "{commit}");
    let git = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../.git");
    assert_eq!(is_hash, git.exists(), "{commit}");
}
