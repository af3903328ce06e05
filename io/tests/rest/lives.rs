//! What a client was told is there after the next start, and ids are never given twice.

use std::collections::BTreeSet;

use crate::service::{Service, folder};

const LIMIT: &str = "/rest/execution/order/limit";

fn order(id: &str) -> String {
    format!(r#"{{"intId":"{id}","securityId":1,"side":"BUY","quantity":5,"limit":100,"tif":"GTC"}}"#)
}

#[test]
fn orders_and_ids_outlive_the_process() {
    let data = folder("lives");
    let mut ids = BTreeSet::new();
    for life in 0..3 {
        let mut service = Service::with(&data, &[]);
        assert_eq!(service.read("/rest/execution/order").as_array().unwrap().len(), 2 * life, "life {life}");
        for _ in 0..3 {
            let id = service.post("/rest/next-order-id", "1").json().as_str().unwrap().to_string();
            assert!(id.len() <= 8, "{id}");
            assert!(ids.insert(id), "an id was given twice");
        }
        let given = format!("mine-{life}");
        service.must_post(LIMIT, &order(&given));
        let made = service.must_post(LIMIT, &order(&given).replace(&format!(r#""intId":"{given}","#), ""));
        let made = made.header("location").unwrap().rsplit('/').next().unwrap().to_string();
        assert!(ids.insert(made), "an id was given twice");
        for earlier in 0..=life {
            // The same request after a restart is still the same, and another one is not.
            service.must_post(LIMIT, &order(&format!("mine-{earlier}")));
            let other = order(&format!("mine-{earlier}")).replace("100", "101");
            service.refuse("POST", LIMIT, &other, 422, "duplicate-order-id");
            assert_eq!(service.order(&format!("mine-{earlier}"))["status"], "NEW");
        }
        if life == 1 {
            service.kill();
        } else {
            service.must_post("/rest/runtime/exit-vm", "");
            assert!(service.ends_well());
        }
    }
}

#[test]
fn what_was_refused_stays_refused() {
    let data = folder("refused-before");
    let mut service = Service::with(&data, &[]);
    let half = order("half").replace(r#""quantity":5"#, r#""quantity":"0.5""#);
    assert_ne!(half, order("half"));
    service.refuse("POST", LIMIT, &half, 422, "bad-lot");
    service.kill();
    let mut service = Service::with(&data, &[]);
    assert_eq!(service.post(LIMIT, &half).status, 422);
}

#[test]
fn an_order_of_an_earlier_life_is_modified_and_cancelled() {
    let data = folder("again");
    let mut service = Service::with(&data, &[]);
    service.must_post(LIMIT, &order("old"));
    service.kill();
    let mut service = Service::with(&data, &[]);
    service
        .must_post("/rest/execution/modify/order/limit", r#"{"intId":"old","limit":101,"newIntId":"new"}"#);
    service.until("/rest/execution/order/old", |found| found[0]["intId"] == "new");
    assert_eq!(service.delete("/rest/execution/order/old").status, 200);
    service.until("/rest/execution/order/new", |found| found[0]["status"] == "CANCELED");
}
