//! The book over REST: a snapshot, and what has changed since a sequence number.

use serde_json::{Value, json};

use crate::service::{RestService, folder};

const DEPTH: &str = "/rest/ext/depth/1";
const LIMIT: &str = "/rest/execution/order/limit";

fn order(service: &mut RestService, id: &str, side: &str, quantity: u32, limit: &str) {
    let body = format!(
        r#"{{"intId":"{id}","securityId":1,"side":"{side}","quantity":{quantity},"limit":{limit},"tif":"GTC"}}"#
    );
    service.must_post(LIMIT, &body);
}

fn seq(book: &Value) -> u64 {
    book["seq"].as_u64().unwrap()
}

/// Asks until something has changed since a sequence number.
fn changes(service: &mut RestService, since: u64) -> Value {
    let path = format!("{DEPTH}?since={since}");
    let update = service.until(&path, |book| book["changes"] != json!([]));
    assert_eq!((&update["type"], update["prevSeq"].as_u64()), (&json!("UPDATE"), Some(since)), "{update}");
    update
}

#[test]
fn a_client_that_polls_has_the_book() {
    let mut service = RestService::start("depth");
    order(&mut service, "a", "BUY", 5, "10");
    let book = service.until(DEPTH, |book| book["bids"] != json!([]));
    assert_eq!(
        (&book["type"], &book["securityId"], &book["bids"], &book["asks"]),
        (&json!("SNAPSHOT"), &json!(1), &json!([[10, 5]]), &json!([])),
        "{book}"
    );
    let first = seq(&book);
    let same = service.read(&format!("{DEPTH}?since={first}"));
    assert_eq!((&same["type"], &same["changes"], seq(&same)), (&json!("UPDATE"), &json!([]), first));

    order(&mut service, "b", "BUY", 2, "9.5");
    let update = changes(&mut service, first);
    assert_eq!(update["changes"], json!([["B", 9.5, 2]]), "{update}");
    order(&mut service, "c", "SELL", 3, "11");
    assert_eq!(service.delete("/rest/execution/order/a").status, 200);
    // One poll after several changes has their net effect. It may come after the first of them.
    let second = seq(&update);
    let mut net = changes(&mut service, second);
    while net["changes"].as_array().unwrap().len() < 2 {
        net = changes(&mut service, second);
    }
    assert_eq!(net["changes"], json!([["B", 10, 0], ["A", 11, 3]]), "{net}");
    let snapshot = service.read(DEPTH);
    assert_eq!((&snapshot["bids"], &snapshot["asks"]), (&json!([[9.5, 2]]), &json!([[11, 3]])));
    assert_eq!((seq(&snapshot), &snapshot["checksum"]), (seq(&net), &net["checksum"]));

    // Numbers of another life of the server, and from before the first request.
    for since in [0, seq(&snapshot) + 1, u64::MAX] {
        let answer = service.read(&format!("{DEPTH}?since={since}"));
        assert_eq!((&answer["type"], seq(&answer)), (&json!("SNAPSHOT"), seq(&snapshot)), "{since}");
    }
}

#[test]
fn the_levels_of_the_simulated_market_have_different_sizes() {
    let data = folder("depth-sizes");
    let mut service = RestService::with(&data, &["feed.on=true"]);
    let sizes = |book: &Value, side: &str| {
        let levels = book[side].as_array().unwrap();
        let mut sizes: Vec<u64> = levels.iter().map(|level| level[1].as_u64().unwrap()).collect();
        assert!(sizes.iter().all(|size| *size > 0), "{book}");
        sizes.sort_unstable();
        sizes.dedup();
        sizes.len()
    };
    service.until(DEPTH, |book| sizes(book, "bids") >= 4 && sizes(book, "asks") >= 4);
}

#[test]
fn a_wrong_request_for_a_book_is_refused_with_words() {
    let mut service = RestService::start("depth-bad");
    for query in ["since=", "since=-1", "since=x", "since=1.5", "since=99999999999999999999", "sinc=1"] {
        service.refuse("GET", &format!("{DEPTH}?{query}"), "", 400, "bad-query");
    }
    for id in ["0", "999999", "99999999999999999999", "AAPL", "-1"] {
        service.refuse("GET", &format!("/rest/ext/depth/{id}"), "", 404, "unknown-security");
    }
    let empty = service.read(DEPTH);
    assert_eq!(
        (&empty["type"], &empty["bids"], &empty["asks"]),
        (&json!("SNAPSHOT"), &json!([]), &json!([]))
    );
}
