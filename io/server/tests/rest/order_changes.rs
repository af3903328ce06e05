//! What happened to an order: each change, whether these are all, and which of several orders.

use serde_json::{Value, json};

use crate::service::{RestService, column, folder};

const LIMIT: &str = "/rest/execution/order/limit";
const MODIFY: &str = "/rest/execution/modify/order/limit";

fn limit(id: &str) -> String {
    format!(r#"{{"securityId":1,"side":"BUY","quantity":5,"limit":100.25,"intId":"{id}"}}"#)
}

fn changes(service: &mut RestService, id: &str) -> Value {
    service.read(&format!("/rest/ext/order/changes?intId={id}"))
}

/// Returns the changes without their times.
fn without_times(changes: &Value) -> Vec<Value> {
    let mut rows = changes["changes"].as_array().unwrap().clone();
    for row in &mut rows {
        let at = row.as_object_mut().unwrap().remove("dateTime").unwrap();
        assert!(at.as_str().unwrap().ends_with('Z'), "{at}");
    }
    rows
}

#[test]
fn an_order_has_its_changes_with_the_terms_of_their_time() {
    let mut service = RestService::start("changes");
    service.must_post(LIMIT, &limit("a"));
    service.must_post(MODIFY, r#"{"intId":"a","limit":"100.5","newIntId":"b"}"#);
    service.until("/rest/execution/order/a", |found| found[0]["intId"] == "b" && found[0]["status"] == "NEW");
    assert_eq!(service.delete("/rest/execution/order/b").status, 200);
    service.until("/rest/execution/order/b", |found| found[0]["status"] == "CANCELED");
    let by_first = changes(&mut service, "a");
    assert_eq!(by_first, changes(&mut service, "b"));
    assert_eq!((&by_first["intId"], &by_first["complete"]), (&json!("b"), &json!(true)));
    let order = service.order("b");
    assert_eq!(by_first["dateTime"], order["dateTime"]);
    let rows = without_times(&by_first);
    assert_eq!(
        rows[0],
        json!({ "execType": "PENDING_NEW", "status": "PENDING_NEW", "quantity": 5, "filledQuantity": 0, "limit": 100.25 })
    );
    let of =
        |what: &str| rows.iter().find(|row| row["execType"] == what).unwrap_or_else(|| panic!("{rows:?}"));
    assert_eq!((&of("NEW")["status"], &of("NEW")["limit"]), (&json!("NEW"), &json!(100.25)));
    assert_eq!((&of("REPLACED")["status"], &of("REPLACED")["limit"]), (&json!("NEW"), &json!(100.5)));
    let canceled = rows.last().unwrap();
    assert_eq!((&canceled["execType"], &canceled["status"]), (&json!("CANCELED"), &json!("CANCELED")));
    assert_eq!((&canceled["reason"], &canceled["limit"]), (&order["reason"], &json!(100.5)));
    assert_eq!(by_first["changes"].as_array().unwrap().last().unwrap()["dateTime"], order["lastUpdate"]);
}

#[test]
fn a_fill_has_its_quantity_and_price() {
    let mut service = RestService::start("changes-fill");
    service.must_post(LIMIT, &limit("bought"));
    service.must_post(LIMIT, &limit("sold").replace("BUY", "SELL").replace(":5,", ":2,"));
    service.until("/rest/execution/order/sold", |found| found[0]["status"] == "FILLED");
    let sold = changes(&mut service, "sold");
    assert_eq!(
        without_times(&sold).last().unwrap(),
        &json!({
            "execType": "TRADE", "status": "FILLED", "quantity": 2, "filledQuantity": 2, "lastQuantity": 2, "lastPrice": 100.25,
            "limit": 100.25
        })
    );
    let bought = changes(&mut service, "bought");
    let last = bought["changes"].as_array().unwrap().last().unwrap().clone();
    assert_eq!((&last["status"], &last["filledQuantity"]), (&json!("PARTIALLY_FILLED"), &json!(2)));
}

#[test]
fn after_a_restart_the_changes_before_it_are_missing() {
    let data = folder("changes-restart");
    let mut service = RestService::with(&data, &[]);
    service.must_post(LIMIT, &limit("kept").replace(r#""limit""#, r#""tif":"GTC","limit""#));
    assert_eq!(changes(&mut service, "kept")["complete"], true);
    service.kill();
    let mut service = RestService::with(&data, &[]);
    assert_eq!(
        (&changes(&mut service, "kept")["complete"], &changes(&mut service, "kept")["changes"]),
        (&json!(false), &json!([]))
    );
    service.must_post(MODIFY, r#"{"intId":"kept","quantity":3}"#);
    service.until("/rest/execution/order/kept", |found| {
        found[0]["quantity"] == 3 && found[0]["status"] == "NEW"
    });
    let later = changes(&mut service, "kept");
    assert_eq!(later["complete"], false);
    assert!(column(&later["changes"], "execType").contains(&"REPLACED"), "{later}");
    service.must_post(LIMIT, &limit("later"));
    assert_eq!(changes(&mut service, "later")["complete"], true);
}

#[test]
fn a_long_history_has_its_newest_changes() {
    const MODIFICATIONS: usize = 1_001;
    let mut service = RestService::start("changes-long");
    service.must_post(LIMIT, &limit("long"));
    for n in 1..=MODIFICATIONS {
        service.must_post(MODIFY, &format!(r#"{{"intId":"long","quantity":{}}}"#, n + 5));
    }
    let last = json!(MODIFICATIONS + 5);
    service.until("/rest/execution/order/long", |found| {
        found[0]["quantity"] == last && found[0]["status"] == "NEW"
    });
    let long = changes(&mut service, "long");
    let rows = long["changes"].as_array().unwrap();
    assert_eq!((rows.len(), &long["complete"], &rows[999]["quantity"]), (1_000, &json!(false), &last));
}

#[test]
fn no_changes_are_kept_if_they_are_switched_off() {
    let mut service = RestService::with(&folder("changes-off"), &["view.changes_max=0"]);
    service.must_post(LIMIT, &limit("a"));
    let answer = changes(&mut service, "a");
    assert_eq!((&answer["complete"], &answer["changes"]), (&json!(false), &json!([])));
}

#[test]
fn a_request_for_changes_is_checked() {
    let mut service = RestService::start("changes-checked");
    service.must_post(LIMIT, &limit("a"));
    let path = "/rest/ext/order/changes";
    service.refuse("GET", path, "", 400, "bad-query");
    service.refuse("GET", &format!("{path}?intId="), "", 400, "bad-query");
    service.refuse("GET", &format!("{path}?intId=a&limit=1"), "", 400, "bad-query");
    service.refuse("GET", &format!("{path}?intId=a&accountId=x"), "", 400, "bad-query");
    service.refuse("GET", &format!("{path}?intId=zzz"), "", 404, "unknown-order");
    service.refuse("GET", &format!("{path}?intId=a&accountId=2"), "", 404, "unknown-order");
    assert_eq!(service.read(&format!("{path}?intId=a&accountId=1"))["intId"], "a");
}
