//! Cancel of many orders: what a filter selects, what the response counts, what is refused.

use serde_json::{Value, json};

use crate::service::{RestService, folder};

const LIMIT: &str = "/rest/execution/order/limit";
const ORDERS: &str = "/rest/execution/order";

fn rest(service: &mut RestService, id: &str, security: u32, side: &str, strategy: &str) {
    let limit = if side == "BUY" { 1 } else { 1_000 };
    let body = format!(
        r#"{{"securityId":{security},"side":"{side}","quantity":1,"limit":{limit},"strategyName":"{strategy}","intId":"{id}"}}"#
    );
    service.must_post(LIMIT, &body);
}

fn open(service: &mut RestService) -> Vec<String> {
    let orders = service.read(ORDERS);
    let mut ids: Vec<String> =
        orders.as_array().unwrap().iter().map(|order| order["intId"].as_str().unwrap().to_string()).collect();
    ids.sort();
    ids
}

fn cancel(service: &mut RestService, query: &str) -> Value {
    let answer = service.delete(&format!("{ORDERS}?{query}"));
    assert_eq!(answer.status, 200, "{query}: {answer:?}");
    answer.json()
}

fn canceled(count: u32) -> Value {
    json!({ "canceled": count, "refused": 0, "finished": 0, "pending": 0, "complete": true, "reasons": [] })
}

#[test]
fn a_filter_selects_what_is_cancelled() {
    let mut service = RestService::start("bulk-filters");
    for (id, security, side, strategy) in [
        ("a", 1, "BUY", "PAIRS"),
        ("b", 1, "SELL", "PAIRS"),
        ("c", 2, "BUY", "PAIRS"),
        ("d", 1, "BUY", "MOMENTUM"),
        ("e", 2, "SELL", "MOMENTUM"),
        ("f", 1, "BUY", "SERVER"),
    ] {
        rest(&mut service, id, security, side, strategy);
    }
    assert_eq!(cancel(&mut service, "strategyName=PAIRS&securityId=1&side=SELL"), canceled(1));
    assert_eq!(open(&mut service), ["a", "c", "d", "e", "f"]);
    assert_eq!(cancel(&mut service, "source=FIX"), canceled(0));
    assert_eq!(cancel(&mut service, "securityId=2"), canceled(2));
    assert_eq!(open(&mut service), ["a", "d", "f"]);
    assert_eq!(cancel(&mut service, "strategyId=0"), canceled(1));
    assert_eq!(cancel(&mut service, "side=BUY&source=REST&all=true"), canceled(2));
    assert_eq!(open(&mut service), [""; 0]);
    assert_eq!(cancel(&mut service, "all=true"), canceled(0));
    let order = service.order("d");
    assert_eq!((&order["status"], &order["strategyName"]), (&json!("CANCELED"), &json!("MOMENTUM")));
}

#[test]
fn an_unclear_request_cancels_nothing() {
    let mut service = RestService::start("bulk-unclear");
    rest(&mut service, "a", 1, "BUY", "PAIRS");
    for (query, status, code) in [
        ("", 400, "bad-query"),
        ("?all=yes", 400, "bad-query"),
        ("?side=buy", 400, "bad-query"),
        ("?source=GUI", 400, "bad-query"),
        ("?sied=BUY", 400, "bad-query"),
        ("?side=BUY&side=SELL", 400, "bad-query"),
        ("?strategyId=1&strategyName=PAIRS", 400, "bad-query"),
        ("?strategyId=77", 422, "unknown-strategy"),
        ("?strategyId=x", 422, "unknown-strategy"),
        ("?strategyName=NOBODY", 422, "unknown-strategy"),
        ("?securityId=", 422, "unknown-security"),
        ("?securityId=99999", 422, "unknown-security"),
    ] {
        service.refuse("DELETE", &format!("{ORDERS}{query}"), "", status, code);
    }
    service.refuse("DELETE", &format!("{ORDERS}?all=true"), "{}", 400, "bad-body");
    assert_eq!(open(&mut service), ["a"]);
}

#[test]
fn one_call_cancels_thousands_of_orders_of_all_shards() {
    let count = if std::env::var("PITLANE_FAULTS").is_ok_and(|value| value == "full") { 10_000 } else { 500 };
    let data = folder("bulk-many");
    let mut service = RestService::with(&data, &["topology.shards=2"]);
    for number in 0..count {
        rest(&mut service, &format!("n{number}"), 1 + number % 2, "BUY", "PAIRS");
    }
    assert_eq!(cancel(&mut service, "strategyName=PAIRS"), canceled(count));
    assert_eq!(open(&mut service), [""; 0]);
}

/// With a delay between shard and venue the request waits for the venue; what it does not await is
/// reported as pending.
#[test]
fn the_response_waits_for_the_venue() {
    let data = folder("bulk-delay");
    let mut service = RestService::with(&data, &["venue.entry_delay_us=50000"]);
    rest(&mut service, "a", 1, "BUY", "PAIRS");
    service.until("/rest/execution/order/a", |found| found[0]["status"] == "NEW");
    assert_eq!(cancel(&mut service, "all=true"), canceled(1));
    assert_eq!(service.order("a")["status"], "CANCELED");
}
