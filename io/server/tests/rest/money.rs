//! Positions, transactions and cash: read, closed, reduced, recorded manually, recomputed.

use serde_json::{Value, json};

use crate::service::{RestService, folder};

fn position(service: &mut RestService, strategy: &str) -> Value {
    let all = service.read("/rest/position");
    all.as_array().unwrap().iter().find(|row| row["strategyName"] == strategy).cloned().unwrap_or_default()
}

#[test]
fn a_trade_makes_transaction_position_and_cash() {
    let mut service = RestService::start("trade");
    service.trade(1, "BUY", "10", "200.5");
    let held = position(&mut service, "SERVER");
    assert_eq!(
        (&held["quantity"], &held["avgPrice"], &held["currency"], &held["symbol"]),
        (&json!(10), &json!(200.5), &json!("USD"), &json!("AAPL"))
    );
    let daily = service.read("/rest/transaction/daily?strategy=SERVER");
    let row = &daily[0];
    assert_eq!(daily.as_array().unwrap().len(), 1);
    assert_eq!(
        (&row["type"], &row["quantity"], &row["price"], &row["commission"]),
        (&json!("BUY"), &json!(10), &json!(200.5), &json!(0.05))
    );
    let id = row["id"].as_u64().unwrap();
    assert_eq!(service.read(&format!("/rest/transaction/{id}")), *row);
    assert_eq!(service.read("/rest/transaction/daily").as_array().unwrap().len(), 2);
    assert_eq!(service.read("/rest/transaction/daily?limit=1").as_array().unwrap().len(), 1);
    let all = service.read("/rest/transaction/daily");
    assert!(all[0]["dateTime"].as_str().unwrap() >= all[1]["dateTime"].as_str().unwrap());
    service.refuse("GET", "/rest/transaction/daily?strategy=NOBODY", "", 404, "unknown-strategy");
    service.refuse("GET", "/rest/transaction/daily?limit=0", "", 400, "bad-query");
    service.refuse("GET", "/rest/transaction/daily?limit=x", "", 400, "bad-query");
    service.refuse("GET", "/rest/transaction/77", "", 404, "unknown-transaction");
    let cash = service.read("/rest/ext/cash-balance");
    assert_eq!(
        cash[0],
        json!({ "strategyId": 0, "strategyName": "SERVER", "currency": "USD", "amount": -2005.05 })
    );
    let portfolio = service.read("/rest/ext/portfolio?strategy=SERVER");
    assert_eq!(
        (&portfolio["cash"], &portfolio["baseCurrency"], &portfolio["strategyName"]),
        (&json!(-2005.05), &json!("USD"), &json!("SERVER"))
    );
    assert_eq!(service.read("/rest/ext/portfolio")["holdings"].as_array().unwrap().len(), 1);
    service.refuse("GET", "/rest/ext/portfolio?strategy=NOBODY", "", 404, "unknown-strategy");
}

#[test]
fn a_position_is_reduced_and_closed_against_the_market() {
    let mut service = RestService::start("close");
    service.trade(1, "BUY", "10", "200");
    let id = position(&mut service, "SERVER")["id"].as_u64().unwrap();
    // A buyer for the sale.
    let bid = r#"{"securityId":1,"side":"BUY","quantity":100,"limit":199,"strategyName":"PAIRS"}"#;
    service.must_post("/rest/execution/order/limit", bid);
    let path = format!("/rest/position/reduce/{id}");
    for (body, code) in [
        ("0", "quantity-not-positive"),
        ("-1", "quantity-not-positive"),
        ("11", "position-too-small"),
        ("0.5", "bad-lot"),
    ] {
        service.refuse("POST", &path, body, 422, code);
    }
    for body in ["", "{}", "[1]", "\"x\"", "{\"qty\":1}"] {
        service.refuse("POST", &path, body, 400, "bad-body");
    }
    let answer = service.must_post(&path, "3");
    let order = answer.header("location").unwrap().to_string();
    let filled = service.until(&order, |found| found[0]["status"] == "FILLED");
    assert_eq!(
        (&filled[0]["side"], &filled[0]["type"], &filled[0]["quantity"]),
        (&json!("SELL"), &json!("MARKET"), &json!(3))
    );
    service.must_post(&path, "{\"quantity\": \"2\"}");
    service.until("/rest/position", |rows| {
        rows.as_array().unwrap().iter().any(|row| row["strategyId"] == 0 && row["quantity"] == 5)
    });
    let answer = service.delete(&format!("/rest/position/{id}"));
    assert_eq!((answer.status, answer.header("content-length")), (200, Some("0")), "{answer:?}");
    service.until("/rest/position", |rows| {
        rows.as_array().unwrap().iter().any(|row| row["strategyId"] == 0 && row["quantity"] == 0)
    });
    let held = position(&mut service, "SERVER");
    assert_eq!((&held["realizedPL"], held.get("avgPrice")), (&json!(-10), None), "{held}");
    service.refuse("DELETE", &format!("/rest/position/{id}"), "", 409, "position-flat");
    service.refuse("POST", &path, "1", 409, "position-flat");
    for id in ["1", "abc", "99999999999999999999", "-1"] {
        service.refuse("DELETE", &format!("/rest/position/{id}"), "", 404, "unknown-position");
    }
    service.refuse("DELETE", &format!("/rest/position/{id}?accountId=x"), "", 400, "bad-query");
}

#[test]
fn transactions_are_recorded_by_hand_once_for_each_uuid() {
    let mut service = RestService::start("record");
    let uuid = "3b0e4c8a-6a3f-4b3e-9a56-0123456789ab";
    let body = format!(
        r#"{{"type":"BUY","securityId":2,"quantity":4,"price":400,"commission":"1.25","strategyName":"PAIRS","uuid":"{uuid}"}}"#
    );
    let first = service.must_post("/rest/transaction", &body);
    let again = service.must_post("/rest/transaction", &body);
    let location = first.header("location").unwrap().to_string();
    assert_eq!(again.header("location"), Some(location.as_str()));
    let row = service.read(&location);
    assert_eq!(
        (&row["uuid"], &row["type"], &row["quantity"], &row["commission"]),
        (&json!(uuid), &json!("BUY"), &json!(4), &json!(1.25))
    );
    assert_eq!((row["accountId"].as_u64(), row.get("orderIntId"), row.get("extId")), (Some(1), None, None));
    assert_eq!(row["description"], "BUY 4 MSFT at 400 USD");
    assert_eq!(position(&mut service, "PAIRS")["quantity"], 4);
    service.must_post(
        "/rest/transaction",
        r#"{"type":"SELL","securityId":2,"quantity":1,"price":410,"strategyId":2}"#,
    );
    service.must_post(
        "/rest/transaction",
        r#"{"type":"SELL","securityId":2,"quantity":-1,"price":410,"strategyId":2}"#,
    );
    assert_eq!(position(&mut service, "PAIRS")["quantity"], 2);
    for (kind, amount) in [
        ("CREDIT", "1000"),
        ("DEBIT", "100"),
        ("INTEREST", "1.5"),
        ("FEES", "0.5"),
        ("REFUND", "2"),
        ("REBALANCE", "-3"),
    ] {
        service.must_post(
            "/rest/transaction",
            &format!(r#"{{"type":"{kind}","price":{amount},"currency":"EUR"}}"#),
        );
    }
    let cash = service.read("/rest/ext/cash-balance");
    let euros = cash.as_array().unwrap().iter().find(|row| row["currency"] == "EUR").unwrap();
    assert_eq!(euros["amount"], 900);
    assert_eq!(service.read("/rest/transaction/daily").as_array().unwrap().len(), 9);
    let bad = [
        (r#"{"type":"CREDIT","price":-1,"currency":"USD"}"#, 422, "bad-transaction"),
        (r#"{"type":"CREDIT","price":1}"#, 422, "bad-transaction"),
        (r#"{"type":"CREDIT","price":1,"currency":"dollars"}"#, 422, "bad-transaction"),
        (r#"{"type":"CREDIT","price":1,"currency":"USD","quantity":1}"#, 422, "bad-transaction"),
        (r#"{"type":"CREDIT","price":1,"securityId":1,"quantity":1}"#, 422, "bad-transaction"),
        (r#"{"type":"BUY","price":1,"securityId":1}"#, 422, "bad-transaction"),
        (r#"{"type":"BUY","price":1,"securityId":1,"quantity":-1}"#, 422, "bad-transaction"),
        (r#"{"type":"BUY","price":1,"securityId":1,"quantity":1,"currency":"EUR"}"#, 422, "bad-transaction"),
        (r#"{"type":"BUY","price":1,"securityId":1,"quantity":1,"commission":-1}"#, 422, "bad-transaction"),
        (r#"{"type":"BUY","price":1,"securityId":999,"quantity":1}"#, 422, "unknown-security"),
        (r#"{"type":"BUY","price":1,"securityId":1,"quantity":1,"accountId":88}"#, 422, "unknown-account"),
        (
            r#"{"type":"BUY","price":1,"securityId":1,"quantity":1,"strategyName":"X"}"#,
            422,
            "unknown-strategy",
        ),
        (r#"{"type":"BUY","price":92233720368,"securityId":1,"quantity":92233720368}"#, 422, "overflow"),
        (r#"{"type":"GIFT","price":1,"currency":"USD"}"#, 400, "bad-body"),
        (r#"{"type":"CREDIT","currency":"USD"}"#, 400, "bad-body"),
        (r#"{"type":"CREDIT","price":1,"currency":"USD","uuid":"x"}"#, 400, "bad-uuid"),
        (r#"{"type":"CREDIT","price":1,"currency":"USD","id":5}"#, 400, "bad-body"),
    ];
    for (body, status, code) in bad {
        service.refuse("POST", "/rest/transaction", body, status, code);
    }
    assert_eq!(service.read("/rest/transaction/daily").as_array().unwrap().len(), 9);
}

/// Another transaction under a used UUID was once answered as if it had been recorded.
#[test]
fn a_uuid_means_one_transaction_for_ever() {
    let data = folder("uuids");
    let mut service = RestService::with(&data, &["topology.shards=2"]);
    let trade = r#"{"type":"SELL","securityId":2,"quantity":4,"price":400,"commission":1,"uuid":"00000000-0000-4000-8000-00000000000a"}"#;
    let cash = r#"{"type":"FEES","price":7,"currency":"EUR","uuid":"00000000-0000-4000-8000-00000000000b"}"#;
    let others = [
        (trade, "SELL", "BUY"),
        (trade, ":4,", ":5,"),
        (trade, "400", "401"),
        (trade, r#""commission":1,"#, ""),
        (trade, r#""securityId":2"#, r#""securityId":1"#),
        (trade, r#""price""#, r#""strategyName":"PAIRS","price""#),
        (cash, "FEES", "DEBIT"),
        (cash, "7", "8"),
        (cash, "EUR", "USD"),
        (cash, r#""price""#, r#""strategyName":"MOMENTUM","price""#),
    ];
    for round in 0..2 {
        for body in [trade, cash] {
            let first = service.must_post("/rest/transaction", body).header("location").unwrap().to_string();
            let again = service.must_post("/rest/transaction", body);
            assert_eq!(again.header("location"), Some(first.as_str()), "round {round}");
        }
        for (body, from, to) in others {
            let other = body.replacen(from, to, 1);
            assert_ne!(other, body);
            service.refuse("POST", "/rest/transaction", &other, 422, "duplicate-uuid");
        }
        assert_eq!(service.read("/rest/transaction/daily").as_array().unwrap().len(), 2, "round {round}");
        service.kill();
        service = RestService::with(&data, &["topology.shards=2"]);
    }
}

#[test]
fn counting_again_changes_nothing_that_was_right() {
    let mut service = RestService::start("resets");
    service.trade(1, "BUY", "10", "200");
    let before = (service.read("/rest/position"), service.read("/rest/ext/cash-balance"));
    for path in [
        "/rest/position/reset-positions",
        "/rest/transaction/reset-cache-balances",
        "/rest/transaction/reset-cash-balances",
    ] {
        service.must_post(path, "");
        service.must_post(path, "{}");
        service.refuse("POST", path, "{\"all\":true}", 400, "unexpected-body");
        service.refuse("GET", path, "", 405, "method-not-allowed");
    }
    assert_eq!((service.read("/rest/position"), service.read("/rest/ext/cash-balance")), before);
}
