//! Orders: submitted, read, modified, cancelled; refused for each reason that a client should know;
//! and sent twice.

use serde_json::{Value, json};

use crate::service::{RestService, folder};

const LIMIT: &str = "/rest/execution/order/limit";
const MODIFY: &str = "/rest/execution/modify/order/limit";

fn limit(more: &str) -> String {
    format!(r#"{{"securityId":1,"side":"BUY","quantity":5,"limit":100.25{more}}}"#)
}

#[test]
fn an_order_is_read_as_it_was_written() {
    let mut service = RestService::start("orders");
    let body = limit(r#","intId":"a-1","strategyName":"PAIRS","tif":"GTC","exchangeOrder":true"#);
    let answer = service.must_post(LIMIT, &body);
    assert_eq!(answer.header("location"), Some("/rest/execution/order/a-1"));
    let mut order = service.order("a-1");
    let times = order.as_object_mut().unwrap();
    let (at, updated) = (times.remove("dateTime").unwrap(), times.remove("lastUpdate").unwrap());
    assert!(at.as_str().unwrap().ends_with('Z') && updated.as_str() >= at.as_str());
    assert_eq!(
        order,
        json!({
            "intId": "a-1", "type": "LIMIT", "side": "BUY", "quantity": 5, "limit": 100.25, "tif": "GTC", "strategyId": 2,
            "strategyName": "PAIRS", "accountId": 1, "securityId": 1, "symbol": "AAPL", "exchangeId": 1, "venue": "SIM", "exchangeOrder": true,
            "status": "NEW", "filledQuantity": 0, "remainingQuantity": 5, "source": "REST",
            "sentBy": { "login": "local", "address": "127.0.0.1", "protocol": "REST" }
        })
    );
    let open = service.read("/rest/execution/order");
    assert_eq!(open.as_array().unwrap().len(), 1);
    assert_eq!(open[0]["intId"], "a-1");
}

#[test]
fn the_response_contains_the_order_if_preferred() {
    let mut service = RestService::start("prefer");
    let prefer = "Prefer: return=representation\r\n";
    let answer = service.ask("POST", LIMIT, prefer, &limit(""));
    assert_eq!((answer.status, answer.header("content-type")), (200, Some("application/json")));
    let id = answer.json()["intId"].as_str().unwrap().to_string();
    assert_eq!(answer.header("location"), Some(format!("/rest/execution/order/{id}").as_str()));
    assert!(id.len() <= 8 && id.starts_with('r'), "ids of ours are short: {id}");
    let answer = service.ask("POST", LIMIT, "Prefer: respond-async, return=minimal\r\n", &limit(""));
    assert_eq!((answer.status, answer.header("content-length")), (200, Some("0")));
}

#[test]
fn the_response_contains_the_order_if_the_query_asks_for_it() {
    let mut service = RestService::start("return");
    let answer = service.post(&format!("{LIMIT}?return=order"), &limit(r#","intId":"seen""#));
    assert_eq!((answer.status, answer.header("content-type")), (200, Some("application/json")));
    assert_eq!(answer.header("location"), Some("/rest/execution/order/seen"));
    let order = answer.json();
    assert_eq!(
        (&order["intId"], &order["quantity"], &order["limit"]),
        (&json!("seen"), &json!(5), &json!(100.25))
    );
    let change = r#"{"intId":"seen","newIntId":"seen-2","quantity":7}"#;
    let answer = service.post(&format!("{MODIFY}?return=order"), change);
    assert_eq!((answer.status, &answer.json()["quantity"]), (200, &json!(7)));
    let answer = service.delete("/rest/execution/order/seen?return=order");
    assert_eq!((answer.status, &answer.json()["intId"]), (200, &json!("seen-2")));
    // Without it, the body is empty as the specification has it.
    let answer = service.post(LIMIT, &limit(""));
    assert_eq!((answer.status, answer.header("content-length")), (200, Some("0")));
    for wrong in ["return=all", "return=", "return=order&return=order", "returns=order"] {
        service.refuse("POST", &format!("{LIMIT}?{wrong}"), &limit(""), 400, "bad-query");
    }
    assert_eq!(
        service.read("/rest/execution/order").as_array().unwrap().len(),
        1,
        "no order by a wrong query"
    );
    // A refused order is a problem as before.
    let refused = service.post(&format!("{LIMIT}?return=order"), &limit(r#","accountId":4000"#));
    assert_eq!((refused.status, &refused.json()["code"]), (422, &json!("unknown-account")));
}

#[test]
fn a_modification_to_what_is_filled_ends_the_order_and_succeeds() {
    let mut service = RestService::start("stop-here");
    for (id, quantity) in [("at", 3), ("below", 2)] {
        let sell = format!(
            r#"{{"intId":"{id}","securityId":1,"side":"SELL","quantity":9,"limit":100.5,"strategyName":"PAIRS"}}"#
        );
        service.must_post(LIMIT, &sell);
        service.must_post(LIMIT, r#"{"securityId":1,"side":"BUY","quantity":3,"limit":100.5}"#);
        service.until(&format!("/rest/execution/order/{id}"), |found| found[0]["filledQuantity"] == 3);
        let change = format!(r#"{{"intId":"{id}","quantity":{quantity},"newIntId":"{id}-2"}}"#);
        for _ in 0..2 {
            let answer = service.ask("POST", MODIFY, "Prefer: return=representation\r\n", &change);
            assert_eq!(answer.status, 200, "{}", answer.body);
            let order = answer.json();
            assert_eq!((&order["status"], &order["filledQuantity"]), (&json!("FILLED"), &json!(3)));
            assert_eq!(
                (&order["intId"], &order["remainingQuantity"]),
                (&json!(format!("{id}-2")), &json!(0))
            );
        }
    }
}

#[test]
fn every_type_has_its_own_body() {
    let mut service = RestService::start("types");
    let cases = [
        ("market", r#"{"intId":"m","securityId":1,"side":"BUY","quantity":1}"#, "MARKET"),
        ("limit", r#"{"intId":"l","securityId":1,"side":"SELL","quantity":1,"limit":"900.5"}"#, "LIMIT"),
        ("stop", r#"{"intId":"s","securityId":1,"side":"BUY","quantity":1,"stop":950}"#, "STOP"),
        (
            "stoplimit",
            r#"{"intId":"sl","securityId":1,"side":"BUY","quantity":1,"stop":950,"limit":951}"#,
            "STOP_LIMIT",
        ),
    ];
    for (path, body, kind) in cases {
        service.must_post(&format!("/rest/execution/order/{path}"), body);
        let id = serde_json::from_str::<Value>(body).unwrap()["intId"].as_str().unwrap().to_string();
        assert_eq!(service.order(&id)["type"], kind);
    }
    let extra = r#"{"securityId":1,"side":"BUY","quantity":1,"limit":1,"stop":1}"#;
    for (path, name) in [("market", "limit"), ("limit", "stop"), ("stop", "limit")] {
        let problem =
            service.refuse("POST", &format!("/rest/execution/order/{path}"), extra, 400, "bad-body");
        assert!(problem["detail"].as_str().unwrap().contains(&format!("`{name}`")), "{problem}");
    }
    for (path, name) in [("limit", "limit"), ("stop", "stop"), ("stoplimit", "limit")] {
        let bare = r#"{"securityId":1,"side":"BUY","quantity":1}"#;
        let problem = service.refuse("POST", &format!("/rest/execution/order/{path}"), bare, 400, "bad-body");
        assert!(
            problem["detail"].as_str().unwrap().contains(&format!("missing field `{name}`")),
            "{problem}"
        );
    }
    let gtd = r#"{"securityId":1,"side":"BUY","quantity":1,"limit":1,"tif":"GTD","tifDate":"2035-01-01T00:00:00Z","intId":"gtd"}"#;
    service.must_post(LIMIT, gtd);
    assert_eq!(service.order("gtd")["tifDate"], "2035-01-01T00:00:00Z");
}

#[test]
fn a_bad_body_is_400_and_names_its_field() {
    let mut service = RestService::start("fields");
    for (more, field) in [
        (r#","tif":"SOON""#, "tif"),
        (r#","accountId":"1""#, "accountId"),
        (r#","intId":7"#, "intId"),
        (r#","tifDate":"tomorrow""#, "tifDate"),
        (r#","stopp":7"#, "stopp"),
        (r#","limit":7"#, "limit"),
    ] {
        let problem = service.refuse("POST", LIMIT, &limit(more), 400, "bad-body");
        assert_eq!(problem["field"], field, "{problem}");
        assert!(problem["detail"].as_str().unwrap().contains(&format!("`{field}`")), "{problem}");
    }
    let problem = service.refuse("POST", LIMIT, "{", 400, "bad-body");
    assert_eq!(problem.get("field"), None);
}

/// Where an exchange's hours do not apply, its auctions never come, and an order for one would wait
/// for ever.
#[test]
fn an_order_for_an_auction_needs_one_that_comes() {
    let mut service = RestService::start("auctions");
    for tif in ["ATO", "ATC"] {
        let body = limit(&format!(r#","tif":"{tif}""#));
        service.refuse("POST", LIMIT, &body, 422, "no-auction-ahead");
    }
    let data = folder("auctions-kept");
    let mut service = RestService::with(&data, &["calendar.hours=exchange"]);
    service.must_post(LIMIT, &limit(r#","tif":"ATC","intId":"close""#));
    assert_eq!(service.order("close")["tif"], "ATC");
    // This exchange has hours and no auctions.
    let future = r#"{"securityId":30,"side":"BUY","quantity":1,"limit":100,"tif":"ATC"}"#;
    service.refuse("POST", LIMIT, future, 422, "no-auction-ahead");
    // Hours that no longer apply, and hours that apply again.
    service.kill();
    let mut service = RestService::with(&data, &[]);
    service.refuse("POST", LIMIT, &limit(r#","tif":"ATC""#), 422, "no-auction-ahead");
    service.kill();
    let mut service = RestService::with(&data, &["calendar.hours=exchange"]);
    service.must_post(LIMIT, &limit(r#","tif":"ATC""#));
}

#[test]
fn a_refusal_by_validation_or_risk_is_422_with_its_reason() {
    let mut service = RestService::start("refused");
    let cases = [
        (r#"{"securityId":1,"side":"BUY","quantity":0,"limit":1}"#, "quantity-not-positive"),
        (r#"{"securityId":1,"side":"BUY","quantity":-5,"limit":1}"#, "quantity-not-positive"),
        (r#"{"securityId":1,"side":"BUY","quantity":1.5,"limit":1}"#, "bad-lot"),
        (r#"{"securityId":1,"side":"BUY","quantity":1,"limit":1.001}"#, "bad-tick"),
        (r#"{"securityId":999,"side":"BUY","quantity":1,"limit":1}"#, "unknown-security"),
        (r#"{"securityId":1,"side":"BUY","quantity":1,"limit":1,"accountId":77}"#, "unknown-account"),
        (r#"{"securityId":1,"side":"BUY","quantity":1,"limit":1,"accountId":3}"#, "account-inactive"),
        (r#"{"securityId":1,"side":"BUY","quantity":1,"limit":1,"accountId":2}"#, "account-elsewhere"),
        (r#"{"securityId":1,"side":"BUY","quantity":1,"limit":1,"strategyId":9}"#, "unknown-strategy"),
        (r#"{"securityId":1,"side":"BUY","quantity":1,"limit":1,"tif":"GTD"}"#, "tif-date-missing"),
        (
            r#"{"securityId":1,"side":"BUY","quantity":1,"limit":1,"tif":"GTD","tifDate":"2020-01-01"}"#,
            "tif-date-past",
        ),
        (
            r#"{"securityId":1,"side":"BUY","quantity":1,"limit":1,"tifDate":"2035-01-01"}"#,
            "tif-date-superfluous",
        ),
        (r#"{"securityId":1,"side":"BUY","quantity":92233720368,"limit":92233720368}"#, "overflow"),
    ];
    for (body, code) in cases {
        let problem = service.refuse("POST", LIMIT, body, 422, code);
        // The order exists as rejected, so that every interface can show it.
        let order = service.order(problem["intId"].as_str().unwrap());
        assert_eq!((order["status"].as_str(), order["reason"].as_str()), (Some("REJECTED"), Some(code)));
        assert_eq!((problem["status"].as_u64(), problem["instance"].as_str()), (Some(422), Some(LIMIT)));
    }
    let before = [
        (
            r#"{"securityId":1,"side":"BUY","quantity":1,"limit":1,"strategyName":"NOBODY"}"#,
            "unknown-strategy",
        ),
        (
            r#"{"securityId":1,"side":"BUY","quantity":1,"limit":1,"strategyName":"PAIRS","strategyId":1}"#,
            "strategies-differ",
        ),
        (r#"{"securityId":1,"side":"BUY","quantity":1,"limit":1,"exchangeId":2}"#, "wrong-exchange"),
        (r#"{"securityId":1,"side":"BUY","quantity":1,"limit":1,"intId":"with space"}"#, "bad-order-id"),
        (r#"{"securityId":1,"side":"BUY","quantity":1,"limit":1,"intId":""}"#, "bad-order-id"),
    ];
    for (body, code) in before {
        service.refuse("POST", LIMIT, body, 422, code);
    }
    assert_eq!(service.read("/rest/execution/order"), json!([]));
}

#[test]
fn an_acknowledged_modification_is_readable() {
    let mut service = RestService::start("replaced");
    service.must_post(LIMIT, &limit(r#","intId":"r0""#));
    for n in 1..=300 {
        let body = format!(r#"{{"intId":"r{}","quantity":{},"newIntId":"r{n}"}}"#, n - 1, n + 5);
        let answer = service.ask("POST", MODIFY, "Prefer: return=representation\r\n", &body);
        assert_eq!(answer.status, 200, "{answer:?}");
        let path = answer.header("location").unwrap().to_string();
        let (shown, read) = (answer.json(), service.read(&path));
        assert_eq!(shown, read[0]);
        assert_eq!((&shown["intId"], &shown["status"]), (&json!(format!("r{n}")), &json!("NEW")));
        assert_eq!(shown["quantity"], json!(n + 5));
    }
}

#[test]
fn a_modification_gives_the_order_a_new_id_and_keeps_the_old_one_readable() {
    let mut service = RestService::start("modify");
    service.must_post(LIMIT, &limit(r#","intId":"a""#));
    let answer = service.must_post(MODIFY, r#"{"intId":"a","limit":101,"quantity":7,"newIntId":"b"}"#);
    assert_eq!(answer.header("location"), Some("/rest/execution/order/b"));
    for id in ["a", "b"] {
        let order = service.order(id);
        assert_eq!(
            (&order["intId"], &order["origIntId"], &order["limit"], &order["quantity"]),
            (&json!("b"), &json!("a"), &json!(101), &json!(7))
        );
    }
    // Without an id of the client the service makes one.
    let answer = service.must_post(MODIFY, r#"{"intId":"b","limit":102}"#);
    let made = answer.header("location").unwrap().rsplit('/').next().unwrap().to_string();
    let order = service.order(&made);
    assert_eq!(
        (&order["limit"], &order["quantity"], &order["origIntId"]),
        (&json!(102), &json!(7), &json!("b"))
    );
    service.refuse(
        "POST",
        "/rest/execution/modify/order/market",
        r#"{"intId":"a","quantity":3}"#,
        422,
        "cannot-change",
    );
    service.refuse("POST", MODIFY, r#"{"intId":"a","side":"SELL"}"#, 422, "cannot-change");
    service.refuse("POST", MODIFY, r#"{"intId":"a","securityId":2}"#, 422, "cannot-change");
    service.refuse("POST", MODIFY, r#"{"intId":"a","limit":1.001}"#, 422, "bad-tick");
    service.refuse("POST", MODIFY, r#"{"intId":"a","quantity":0}"#, 422, "quantity-not-positive");
    service.refuse("POST", MODIFY, r#"{"intId":"zzz","limit":1}"#, 404, "unknown-order");
    service.refuse("POST", MODIFY, r#"{"limit":1}"#, 400, "bad-body");
    service.refuse("POST", MODIFY, r#"{"intId":"a","limit":101,"newIntId":"a"}"#, 422, "duplicate-order-id");
}

#[test]
fn a_cancel_is_taken_once() {
    let mut service = RestService::start("cancel");
    service.must_post(LIMIT, &limit(r#","intId":"a/b?c""#));
    let path = "/rest/execution/order/a%2Fb%3Fc";
    let answer = service.delete(path);
    assert_eq!((answer.status, answer.header("content-length")), (200, Some("0")));
    service.until(path, |found| found[0]["status"] == "CANCELED");
    service.must_post(LIMIT, &limit(r#","intId":"shown""#));
    let answer =
        service.ask("DELETE", "/rest/execution/order/shown", "Prefer: return=representation\r\n", "");
    assert_eq!((answer.status, &answer.json()["intId"]), (200, &json!("shown")));
    service.until("/rest/execution/order/shown", |found| found[0]["status"] == "CANCELED");
    service.refuse("DELETE", path, "", 409, "order-finished");
    service.refuse("DELETE", "/rest/execution/order/zzz", "", 404, "unknown-order");
    service.refuse("DELETE", &format!("{path}?accountId=2"), "", 404, "unknown-order");
    service.refuse("DELETE", &format!("{path}?accountId=x"), "", 400, "bad-query");
    service.refuse("POST", MODIFY, r#"{"intId":"a/b?c","limit":1}"#, 409, "order-finished");
    assert_eq!(service.read("/rest/execution/order"), json!([]));
    let history = service.read("/rest/ext/order/history?limit=2");
    assert_eq!((&history[0]["intId"], &history[1]["intId"]), (&json!("shown"), &json!("a/b?c")));
}

#[test]
fn the_same_request_twice_is_one_order() {
    let mut service = RestService::start("twice");
    let body = limit(r#","intId":"once""#);
    let prefer = "Prefer: return=representation\r\n";
    let first = service.ask("POST", LIMIT, prefer, &body);
    for _ in 0..3 {
        // Written in another way, it is the same request.
        let again = service.ask(
            "POST",
            LIMIT,
            prefer,
            r#" {"limit":"100.250", "intId":"once","quantity":5.0,"side":"BUY","securityId":1,"tif":"DAY"}"#,
        );
        assert_eq!((again.status, again.header("location")), (200, first.header("location")));
        assert_eq!(again.json()["intId"], "once");
    }
    assert_eq!(service.read("/rest/execution/order").as_array().unwrap().len(), 1);
    service.refuse("POST", LIMIT, &limit(r#","intId":"once","tif":"GTC""#), 422, "duplicate-order-id");
    // A refusal is repeated too.
    let bad = r#"{"securityId":1,"side":"BUY","quantity":1.5,"limit":1,"intId":"bad"}"#;
    service.refuse("POST", LIMIT, bad, 422, "bad-lot");
    service.refuse("POST", LIMIT, bad, 422, "bad-lot");
    service.refuse("POST", LIMIT, &bad.replace("1.5", "1"), 422, "duplicate-order-id");
    // A modification under the client's own id, even when the order has changed since.
    let change = r#"{"intId":"once","limit":90,"newIntId":"changed"}"#;
    service.must_post(MODIFY, change);
    service.until("/rest/execution/order/once", |found| found[0]["intId"] == "changed");
    service.must_post(MODIFY, r#"{"intId":"once","limit":91}"#);
    service
        .until("/rest/execution/order/once", |found| found[0]["limit"] == 91 && found[0]["status"] == "NEW");
    service.must_post(MODIFY, change);
    assert_eq!(service.order("once")["limit"], 91);
    service.refuse(
        "POST",
        MODIFY,
        r#"{"intId":"once","limit":92,"newIntId":"changed"}"#,
        422,
        "duplicate-order-id",
    );
    // The first request still gets its first response.
    assert_eq!(service.post(LIMIT, &body).status, 200);
}

#[test]
fn ids_are_given_once() {
    let mut service = RestService::start("ids");
    let mut seen = std::collections::BTreeSet::new();
    for body in ["1", "{\"accountId\":2}", "3"] {
        let answer = service.post("/rest/next-order-id", body);
        assert_eq!(answer.status, 200, "{answer:?}");
        assert!(seen.insert(answer.json().as_str().unwrap().to_string()));
    }
    let id = seen.first().unwrap().clone();
    service.must_post(LIMIT, &limit(&format!(r#","intId":"{id}""#)));
    service.must_post(LIMIT, &limit(""));
    assert_eq!(service.read("/rest/execution/order").as_array().unwrap().len(), 2);
    for body in ["9", "99999", "{\"accountId\":18446744073709551615}"] {
        service.refuse("POST", "/rest/next-order-id", body, 404, "unknown-account");
    }
    service.refuse("POST", LIMIT, &limit(r#","accountId":99999"#), 422, "unknown-account");
    for body in ["\"1\"", "1.5", "-1", "[1]", "{}"] {
        service.refuse("POST", "/rest/next-order-id", body, 400, "bad-body");
    }
    service.refuse("POST", "/rest/next-order-id", "", 400, "bad-body");
}

#[test]
fn an_order_named_like_a_path_is_found() {
    let mut service = RestService::start("named");
    service.must_post(LIMIT, &limit(r#","intId":"market""#));
    assert_eq!(service.order("market")["intId"], "market");
    assert_eq!(service.delete("/rest/execution/order/market").status, 200);
}

#[test]
fn an_order_is_checked_and_not_sent() {
    let mut service = RestService::start("validate");
    let path = "/rest/ext/execution/order/validate";
    let good = r#"{"type":"LIMIT","securityId":1,"side":"BUY","quantity":1,"limit":1}"#;
    for _ in 0..3 {
        service.must_post(path, good);
    }
    for (body, code) in [
        (r#"{"type":"LIMIT","securityId":1,"side":"BUY","quantity":1}"#, "limit-missing"),
        (r#"{"type":"MARKET","securityId":1,"side":"BUY","quantity":1,"limit":1}"#, "limit-superfluous"),
        (r#"{"type":"STOP","securityId":1,"side":"BUY","quantity":1,"limit":1}"#, "limit-superfluous"),
        (r#"{"type":"MARKET","securityId":1,"side":"BUY","quantity":1.5}"#, "bad-lot"),
        (r#"{"type":"MARKET","securityId":999,"side":"BUY","quantity":1}"#, "unknown-security"),
        (r#"{"type":"MARKET","securityId":1,"side":"BUY","quantity":1,"accountId":3}"#, "account-inactive"),
    ] {
        service.refuse("POST", path, body, 422, code);
    }
    service.refuse("POST", path, r#"{"securityId":1,"side":"BUY","quantity":1}"#, 400, "bad-body");
    assert_eq!(service.put("/rest/ext/risk", r#"{"strategyName":"SERVER","maxOrderQty":5}"#).status, 200);
    service.refuse("POST", path, &good.replace("\"quantity\":1", "\"quantity\":6"), 422, "max-order-qty");
    service.must_post(LIMIT, &limit(r#","intId":"used""#));
    service.refuse(
        "POST",
        path,
        &good.replace("\"side\"", "\"intId\":\"used\",\"side\""),
        422,
        "duplicate-order-id",
    );
    service.stop_trading();
    service.refuse("POST", path, good, 422, "kill-switch");
    assert_eq!(service.read("/rest/execution/order"), json!([]));
    assert_eq!(
        service.read("/rest/ext/order/history").as_array().unwrap().len(),
        1,
        "only what was really sent"
    );
}
