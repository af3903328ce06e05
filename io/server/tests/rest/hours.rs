//! Processes at other times: across a close, across an expiry, and with a clock that was wrong.

use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use serde_json::Value;

use crate::service::{RestService, at, folder};

const LIMIT: &str = "/rest/execution/order/limit";
/// Time limit; a later result never comes.
const PATIENCE: Duration = Duration::from_secs(120);
/// 2027-01-14T20:30:00Z, a Thursday, half an hour before XNAS closes.
const BEFORE_CLOSE_S: u64 = 1_799_958_600;
/// 2027-12-17T12:00:00Z, the date on which ESZ7 expires.
const LAST_DAY_S: u64 = 1_829_044_800;
const HOUR_S: u64 = 3_600;
/// ESZ7.
const FUTURE: u32 = 30;

fn order(security: u32, id: &str, tif: &str) -> String {
    format!(r#"{{"securityId":{security},"side":"BUY","quantity":1,"limit":1,"intId":"{id}","tif":"{tif}"}}"#)
}

fn state(service: &mut RestService, id: &str) -> (String, Value) {
    let order = service.order(id);
    (order["status"].as_str().unwrap().to_string(), order["reason"].clone())
}

#[test]
fn a_day_order_does_not_outlive_its_session_while_the_server_is_down() {
    let data = folder("over-the-close");
    let hours = ["calendar.hours=exchange"];
    let mut service = at(&data, BEFORE_CLOSE_S, &hours);
    service.must_post(LIMIT, &order(1, "day", "DAY"));
    service.must_post(LIMIT, &order(1, "gtc", "GTC"));
    service.kill();
    // An hour later the exchange is closed; a start that is killed at once changes nothing.
    at(&data, BEFORE_CLOSE_S + HOUR_S, &hours).kill();
    let mut service = at(&data, BEFORE_CLOSE_S + HOUR_S + 60, &hours);
    assert_eq!(state(&mut service, "day"), ("EXPIRED".into(), "expired-day".into()));
    assert_eq!(state(&mut service, "gtc").0, "NEW");
    service.must_post(LIMIT, &order(1, "evening", "DAY"));
    service.kill();
    // After midnight, which is the rollover, and still before the open: an order of the evening is
    // for this day.
    let mut service = at(&data, BEFORE_CLOSE_S + 12 * HOUR_S, &hours);
    assert_eq!(state(&mut service, "evening").0, "NEW");
    service.kill();
    // After that session and the weekend, in the middle of Monday's session.
    let mut service = at(&data, BEFORE_CLOSE_S + 95 * HOUR_S, &hours);
    assert_eq!(state(&mut service, "evening"), ("EXPIRED".into(), "expired-day".into()));
    assert_eq!(state(&mut service, "gtc").0, "NEW");
}

#[test]
fn a_future_that_expires_while_the_server_is_down_is_settled_once() {
    let data = folder("expiry");
    let prices = ["settlement.prices.ESZ7=6000.25"];
    let mut service = at(&data, LAST_DAY_S, &prices);
    let bought = format!(
        r#"{{"type":"BUY","strategyName":"SERVER","securityId":{FUTURE},"quantity":2,"price":5900,"uuid":"7f9f0e2c-0f0e-4b52-8f5a-0d6d4a4f4f01"}}"#
    );
    service.must_post("/rest/transaction", &bought);
    service.must_post(LIMIT, &order(FUTURE, "last", "GTC"));
    assert_eq!(state(&mut service, "last").0, "NEW");
    service.kill();
    // The rollover at midnight ends the date; a process that is killed may have done all, some or
    // nothing of it.
    for minute in 0..3 {
        at(&data, LAST_DAY_S + 13 * HOUR_S + minute * 60, &prices).kill();
    }
    let mut service = at(&data, LAST_DAY_S + 14 * HOUR_S, &prices);
    let daily = service.until("/rest/transaction/daily", |rows| {
        rows.as_array().unwrap().iter().any(|row| row["type"] == "EXPIRATION")
    });
    let expired: Vec<&Value> =
        daily.as_array().unwrap().iter().filter(|row| row["type"] == "EXPIRATION").collect();
    assert_eq!(expired.len(), 1, "{daily}");
    assert_eq!(
        (expired[0]["quantity"].to_string(), expired[0]["price"].to_string()),
        ("-2".into(), "6000.25".into())
    );
    assert_eq!(state(&mut service, "last"), ("EXPIRED".into(), "security-expired".into()));
    service.refuse("POST", LIMIT, &order(FUTURE, "late", "DAY"), 422, "expired-security");
    let left = service.read("/rest/position");
    let open = left.as_array().unwrap().iter().any(|row| row["securityId"] == FUTURE && row["quantity"] != 0);
    assert!(!open, "{left}");
}

/// Without a price, a log line asks an operator, who records the settlement.
#[test]
fn an_operator_settles_a_security_without_a_price() {
    let data = folder("expiry-asked");
    let asked = ["settlement.by=operator"];
    let mut service = at(&data, LAST_DAY_S, &asked);
    let record = |kind: &str, quantity: i32, price: &str| {
        format!(
            r#"{{"type":"{kind}","strategyName":"SERVER","securityId":{FUTURE},"quantity":{quantity},"price":{price}}}"#
        )
    };
    service.must_post("/rest/transaction", &record("BUY", 2, "5900"));
    service.kill();
    let mut service = at(&data, LAST_DAY_S + 13 * HOUR_S, &asked);
    service.must_post("/rest/transaction", &record("EXPIRATION", -2, "5950"));
    assert!(service.complaints_at_end().contains("no settlement price is known"));
    let service = at(&data, LAST_DAY_S + 14 * HOUR_S, &asked);
    assert!(!service.complaints_at_end().contains("no settlement price is known"), "it is settled");
}

#[test]
fn a_clock_that_was_ahead_does_not_stop_trading_after_a_restart() {
    let data = folder("ahead");
    let slow = ["risk.strategies.max_orders_per_s=3"];
    let now_s = SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_secs();
    let mut service = at(&data, now_s + 24 * HOUR_S, &slow);
    service.must_post(LIMIT, &order(1, "first", "GTC"));
    service.kill();
    let mut service = RestService::with(&data, &slow);
    // So many orders in a row that one second is full; the next one has room again.
    let end = Instant::now() + PATIENCE;
    let (mut refused, mut number) = (false, 0);
    loop {
        number += 1;
        let answer = service.post(LIMIT, &order(1, &format!("o{number}"), "GTC"));
        if answer.status == 200 && refused {
            break;
        }
        refused |= answer.status == 422 && answer.code() == "order-rate";
        assert!(Instant::now() < end, "every order is refused: {answer:?}");
    }
    assert!(service.complaints_at_end().contains("ahead of the wall clock"));
}
