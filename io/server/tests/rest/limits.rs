//! Limits of the presets, their use, and what they refuse.

use serde_json::{Value, json};

use crate::service::{RestService, folder};

const LIMIT: &str = "/rest/execution/order/limit";

fn buy(security: u32, quantity: u64, limit: &str) -> String {
    format!(r#"{{"securityId":{security},"side":"BUY","quantity":{quantity},"limit":{limit}}}"#)
}

/// Waits for the first price of a security: without one, no limit price can be checked.
fn await_price(service: &mut RestService, security: u32) {
    let quotes = format!("/rest/ext/quote?securityId={security}");
    service.until(&quotes, |quotes| quotes[0]["last"].is_number());
}

fn use_of(service: &mut RestService, key: &str, name: &str) -> Value {
    let uses = service.read("/rest/ext/risk/use");
    uses.as_array().unwrap().iter().find(|row| row[key] == name).cloned().unwrap_or_default()
}

#[test]
fn the_built_in_limits_refuse_a_slip_with_its_reason() {
    let mut service = RestService::with_limits(&folder("slip"), None);
    await_price(&mut service, 1);
    for (quantity, limit, code, words) in [
        (1_000_001, "230", "max-order-qty", "the quantity is above the limit for one order"),
        (100_000, "230", "max-order-value", "the value is above the limit for one order"),
        (100, "2325", "price-collar", "the price is too far from the last price"),
        (100, "23.25", "price-collar", "the price is too far from the last price"),
    ] {
        let problem = service.refuse("POST", LIMIT, &buy(1, quantity, limit), 422, code);
        assert_eq!(problem["detail"], words);
    }
    // Intel is cheap, so that the position is the first limit that many shares reach.
    await_price(&mut service, 10);
    (0..5).for_each(|_| _ = service.must_post(LIMIT, &buy(10, 400_000, "20")));
    let problem = service.refuse("POST", LIMIT, &buy(10, 1, "20"), 422, "max-position");
    assert_eq!(problem["detail"], "the position could grow above its limit");
    service.must_post(LIMIT, &buy(1, 100, "230"));
}

#[test]
fn the_preset_for_development_has_tighter_limits_and_a_deposit() {
    let mut service = RestService::with_limits(&folder("slip-dev"), Some("dev"));
    await_price(&mut service, 1);
    for (quantity, limit, code) in [
        (100_001, "230", "max-order-qty"),
        (30_000, "230", "max-order-value"),
        (100, "150", "price-collar"),
        (100, "2325", "price-collar"),
    ] {
        service.refuse("POST", LIMIT, &buy(1, quantity, limit), 422, code);
    }
    await_price(&mut service, 40);
    // The demo trader may hold some of it too.
    let mut codes = (0..4).map(|_| service.post(LIMIT, &buy(40, 90_000, "1"))).map(|answer| answer.status);
    assert!(codes.any(|status| status == 422));
    assert_eq!(service.refuse("POST", LIMIT, &buy(40, 90_000, "1"), 422, "max-position")["status"], 422);
    service.until("/rest/ext/cash-balance", |rows| {
        let of = |name: &str| rows.as_array().unwrap().iter().any(|row| row["strategyName"] == name);
        ["SERVER", "MOMENTUM", "PAIRS", "MARKET_MAKER"].iter().all(|name| of(name))
    });
}

#[test]
fn a_deposit_is_made_once_and_survives_a_restart() {
    let data = folder("deposit");
    let with_cash = ["demo.cash=2500.5"];
    for _ in 0..3 {
        let mut service = RestService::with(&data, &with_cash);
        let rows = service.until("/rest/ext/cash-balance", |rows| rows.as_array().unwrap().len() == 4);
        assert!(rows.as_array().unwrap().iter().all(|row| row["amount"] == json!(2500.5)), "{rows}");
        let portfolio = service.read("/rest/ext/portfolio?strategy=PAIRS");
        assert_eq!(portfolio["netLiquidationValue"], json!(2500.5));
        service.kill();
    }
}

#[test]
fn a_strategy_that_trades_at_once_has_a_deposit_and_one_with_a_past_has_none() {
    let cash = |rows: &Value| {
        let amounts = rows.as_array().unwrap().iter().map(|row| row["amount"].as_f64().unwrap());
        (amounts.clone().count(), amounts.sum::<f64>())
    };
    // SERVER and PAIRS trade with each other and pay fees.
    let data = folder("deposit-and-past");
    let mut service = RestService::with(&data, &[]);
    service.trade(1, "BUY", "10", "200");
    service.kill();
    let mut service = RestService::with(&data, &["demo.cash=1000000"]);
    let rows = service.until("/rest/ext/cash-balance", |rows| cash(rows).0 == 4);
    assert!((1_999_000.0..2_000_000.0).contains(&cash(&rows).1), "{rows}");
    service.kill();
    let mut service = RestService::with(&folder("deposit-at-once"), &["demo.cash=1000000"]);
    service.trade(1, "BUY", "10", "200");
    service.until("/rest/ext/cash-balance", |rows| (3_999_000.0..4_000_000.0).contains(&cash(rows).1));
}

#[test]
fn the_use_of_limits_and_what_they_refused_are_shown() {
    let mut service = RestService::start("use");
    let idle = json!({ "strategyName": "PAIRS", "openOrders": 0, "refusals": [] });
    assert_eq!(use_of(&mut service, "strategyName", "PAIRS"), idle);
    service.trade(1, "BUY", "10", "200");
    service.must_post(LIMIT, &buy(1, 25, "150"));
    let used = use_of(&mut service, "strategyName", "SERVER");
    assert_eq!(
        (&used["openOrders"], &used["position"], &used["positionSecurityId"]),
        (&json!(1), &json!(35), &json!(1))
    );
    // The other side of the trade is of the same account, so that only the open order counts.
    let account = use_of(&mut service, "accountName", "NEWYORK");
    assert_eq!((&account["openOrders"], &account["position"]), (&json!(1), &json!(25)));
    assert_eq!(account["credit"], Value::Null);
    let limits = r#"{"strategyName":"SERVER","maxOrderQty":5}"#;
    assert_eq!(service.put("/rest/ext/risk", limits).status, 200);
    (0..2).for_each(|_| _ = service.refuse("POST", LIMIT, &buy(1, 6, "150"), 422, "max-order-qty"));
    for (key, name) in [("strategyName", "SERVER"), ("accountName", "NEWYORK")] {
        let refusals = use_of(&mut service, key, name)["refusals"].clone();
        assert_eq!(refusals.as_array().unwrap().len(), 1, "{refusals}");
        let row = &refusals[0];
        assert_eq!(
            (&row["reason"], &row["count"], &row["securityId"]),
            (&json!("max-order-qty"), &json!(2), &json!(1))
        );
        assert_eq!(row["detail"], "the quantity is above the limit for one order");
        assert!(row["dateTime"].is_string());
    }
    service.refuse("GET", "/rest/ext/risk/use?x=1", "", 400, "bad-query");
}

#[test]
fn the_position_and_the_credit_of_an_account_count_all_strategies_also_after_a_restart() {
    let data = folder("account-use");
    let mut service = RestService::with(&data, &[]);
    let credit =
        |amount: u32| format!(r#"{{"accountName":"NEWYORK","credit":{amount},"creditCurrency":"USD"}}"#);
    assert_eq!(service.put("/rest/ext/risk", &credit(100_000)).status, 200);
    for (strategy, quantity) in [("SERVER", 30), ("PAIRS", 12)] {
        let bought = format!(
            r#"{{"type":"BUY","strategyName":"{strategy}","securityId":1,"quantity":{quantity},"price":100,"accountId":1}}"#
        );
        service.must_post("/rest/transaction", &bought);
    }
    service.must_post(LIMIT, &buy(1, 8, "100"));
    let row_of = |uses: &Value| {
        uses.as_array()
            .unwrap()
            .iter()
            .find(|row| row["accountName"] == "NEWYORK")
            .cloned()
            .unwrap_or_default()
    };
    // 42 shares and 8 open ones at 100; whatever the fee for the open ones is, it is reserved too.
    // A use may be a second old.
    let is_whole = |uses: &Value| {
        let row = row_of(uses);
        row["position"] == json!(50)
            && row["positionSecurityId"] == json!(1)
            && row["credit"].as_f64().is_some_and(|credit| (5_000.0..5_001.0).contains(&credit))
    };
    service.until("/rest/ext/risk/use", is_whole);
    let other = use_of(&mut service, "accountName", "GLOBAL");
    assert_eq!((&other["position"], &other["credit"]), (&Value::Null, &Value::Null));
    service.kill();
    // The settings have no credit limit, so that the next start lifts it.
    let mut service = RestService::with(&data, &[]);
    let again = service.until("/rest/ext/risk/use", |uses| row_of(uses)["position"] == json!(50));
    assert_eq!(row_of(&again)["credit"], Value::Null);
    assert_eq!(service.put("/rest/ext/risk", &credit(200_000)).status, 200);
    service.until("/rest/ext/risk/use", is_whole);
}
