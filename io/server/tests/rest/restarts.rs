//! What a client received is still there after the next start, and ids are never given twice.

use std::collections::BTreeSet;
use std::path::Path;
use std::time::{SystemTime, UNIX_EPOCH};

use pitlane_engine::time::Timestamp;
use pitlane_protocols::rest::Moment;

use crate::service::{RestService, ask, folder};

const LIMIT: &str = "/rest/execution/order/limit";
const MODIFY: &str = "/rest/execution/modify/order/limit";

fn order(id: &str) -> String {
    format!(r#"{{"intId":"{id}","securityId":1,"side":"BUY","quantity":5,"limit":100,"tif":"GTC"}}"#)
}

#[test]
fn orders_and_ids_outlive_the_process() {
    let data = folder("rest-rounds");
    let mut ids = BTreeSet::new();
    for round in 0..3 {
        let mut service = RestService::with(&data, &[]);
        assert_eq!(
            service.read("/rest/execution/order").as_array().unwrap().len(),
            2 * round,
            "round {round}"
        );
        for _ in 0..3 {
            let id = service.post("/rest/next-order-id", "1").json().as_str().unwrap().to_string();
            assert!(id.len() <= 8, "{id}");
            assert!(ids.insert(id), "an id was given twice");
        }
        let given = format!("mine-{round}");
        service.must_post(LIMIT, &order(&given));
        let made = service.must_post(LIMIT, &order(&given).replace(&format!(r#""intId":"{given}","#), ""));
        let made = made.header("location").unwrap().rsplit('/').next().unwrap().to_string();
        assert!(ids.insert(made), "an id was given twice");
        for earlier in 0..=round {
            // The same request after a restart is still the same, and another one is not.
            service.must_post(LIMIT, &order(&format!("mine-{earlier}")));
            let other = order(&format!("mine-{earlier}")).replace("100", "101");
            service.refuse("POST", LIMIT, &other, 422, "duplicate-order-id");
            assert_eq!(service.order(&format!("mine-{earlier}"))["status"], "NEW");
        }
        if round == 1 {
            service.kill();
        } else {
            service.must_post("/rest/runtime/exit-vm", "");
            assert!(service.ends_well());
        }
    }
}

/// The shard forgets finished orders, here all but four; their ids stay used for the day.
#[test]
fn an_id_of_this_day_makes_no_second_order_after_a_restart() {
    let data = folder("used-ids");
    let settings = ["shard.finished_max=4", "view.finished_max=4"];
    let mut service = RestService::with(&data, &settings);
    for n in 0..20 {
        let id = format!("done-{n}");
        service.must_post(LIMIT, &order(&id));
        service.must_post(MODIFY, &format!(r#"{{"intId":"{id}","limit":99,"newIntId":"{id}-b"}}"#));
        assert_eq!(service.delete(&format!("/rest/execution/order/{id}-b")).status, 200);
    }
    for kill in [true, false] {
        for n in 0..20 {
            for id in [format!("done-{n}"), format!("done-{n}-b")] {
                let other = order(&id).replace("100", "98");
                service.refuse("POST", LIMIT, &other, 422, "duplicate-order-id");
            }
        }
        assert!(service.read("/rest/execution/order").as_array().unwrap().is_empty());
        if kill {
            service.kill();
        } else {
            service.must_post("/rest/runtime/exit-vm", "");
            assert!(service.ends_well());
        }
        service = RestService::with(&data, &settings);
    }
    service.refuse("POST", LIMIT, &order("done-0"), 422, "duplicate-order-id");
}

#[test]
fn every_id_of_an_order_is_known_after_a_restart_however_often_it_was_modified() {
    let data = folder("modified-twice");
    let mut service = RestService::with(&data, &[]);
    service.must_post(LIMIT, &order("a"));
    for (old, new) in [("a", "b"), ("b", "c"), ("c", "d")] {
        service.must_post(MODIFY, &format!(r#"{{"intId":"{old}","limit":99,"newIntId":"{new}"}}"#));
    }
    for _ in 0..2 {
        service.kill();
        service = RestService::with(&data, &[]);
        for id in ["a", "b", "c", "d"] {
            let other = order(id).replace("100", "98");
            service.refuse("POST", LIMIT, &other, 422, "duplicate-order-id");
        }
        for id in ["a", "c", "d"] {
            assert_eq!(service.order(id)["intId"], "d", "{id} finds it");
        }
        assert_eq!(service.read("/rest/execution/order").as_array().unwrap().len(), 1);
    }
    assert_eq!(service.delete("/rest/execution/order/a").status, 200);
    service.until("/rest/execution/order/d", |found| found[0]["status"] == "CANCELED");
}

#[test]
fn a_refused_order_stays_refused() {
    let data = folder("refused-before");
    let mut service = RestService::with(&data, &[]);
    let half = order("half").replace(r#""quantity":5"#, r#""quantity":"0.5""#);
    assert_ne!(half, order("half"));
    service.refuse("POST", LIMIT, &half, 422, "bad-lot");
    service.kill();
    let mut service = RestService::with(&data, &[]);
    service.refuse("POST", LIMIT, &half, 422, "bad-lot");
}

#[test]
fn an_order_from_before_a_restart_is_modified_and_cancelled() {
    let data = folder("again");
    let mut service = RestService::with(&data, &[]);
    service.must_post(LIMIT, &order("old"));
    service.kill();
    let mut service = RestService::with(&data, &[]);
    service.must_post(MODIFY, r#"{"intId":"old","limit":101,"newIntId":"new"}"#);
    service.until("/rest/execution/order/old", |found| found[0]["intId"] == "new");
    assert_eq!(service.delete("/rest/execution/order/old").status, 200);
    service.until("/rest/execution/order/new", |found| found[0]["status"] == "CANCELED");
}

#[test]
fn a_modification_before_a_restart_is_distinguished_from_another_one() {
    let data = folder("modified-before");
    let mut service = RestService::with(&data, &[]);
    service.must_post(LIMIT, &order("old"));
    let change = r#"{"intId":"old","limit":101,"quantity":4,"newIntId":"new"}"#;
    let location = service.must_post(MODIFY, change).header("location").unwrap().to_string();
    service.kill();
    let mut service = RestService::with(&data, &[]);
    let before = service.get("/rest/execution/order/new").body;
    for _ in 0..2 {
        assert_eq!(service.must_post(MODIFY, change).header("location"), Some(location.as_str()));
    }
    assert_eq!(service.get("/rest/execution/order/new").body, before, "nothing was done again");
    service.refuse("POST", MODIFY, &change.replace("101", "102"), 422, "duplicate-order-id");
    service.refuse("POST", MODIFY, &change.replace("old", "new"), 422, "duplicate-order-id");
    // The response stays the same when the order has ended.
    assert_eq!(service.delete("/rest/execution/order/new").status, 200);
    service.until("/rest/execution/order/new", |found| found[0]["status"] == "CANCELED");
    service.must_post(MODIFY, change);
}

/// Creates orders of every status, with all that was last reported of them.
fn one_of_each(service: &mut RestService) {
    service.must_post(LIMIT, &order("new"));
    for (id, strategy, side, quantity) in
        [("part", "PAIRS", "SELL", 5), ("first", "SERVER", "BUY", 2), ("second", "SERVER", "BUY", 1)]
    {
        let body = format!(
            r#"{{"intId":"{id}","securityId":1,"side":"{side}","quantity":{quantity},"limit":100.5,"strategyName":"{strategy}"}}"#
        );
        service.must_post(LIMIT, &body);
    }
    service.must_post(LIMIT, &order("gone"));
    assert_eq!(service.delete("/rest/execution/order/gone").status, 200);
    service.refuse("POST", LIMIT, &order("odd").replace(":5", ":0.5"), 422, "bad-lot");
    let since_1970 = SystemTime::now().duration_since(UNIX_EPOCH).unwrap();
    let soon = u64::try_from(since_1970.as_nanos()).unwrap() + 300_000_000;
    let soon = serde_json::to_string(&Moment(Timestamp(soon))).unwrap();
    service.must_post(LIMIT, &order("dated").replace(r#""GTC""#, &format!(r#""GTD","tifDate":{soon}"#)));
    service.must_post(LIMIT, &order("at-once").replace("GTC", "IOC"));
    service.must_post(LIMIT, &order("changed"));
    service.must_post(MODIFY, r#"{"intId":"changed","limit":99,"newIntId":"changed-2"}"#);
    service.refuse("POST", MODIFY, r#"{"intId":"changed-2","limit":99.001}"#, 422, "bad-tick");
    for (id, stop) in [("waits", 10), ("fires", 100)] {
        let body = format!(r#"{{"intId":"{id}","securityId":1,"side":"SELL","quantity":1,"stop":{stop}}}"#);
        service.must_post("/rest/execution/order/stop", &body);
    }
    service.until("/rest/execution/order/dated", |found| found[0]["status"] == "EXPIRED");
}

const EACH: [&str; 12] = [
    "new",
    "part",
    "first",
    "second",
    "gone",
    "odd",
    "dated",
    "at-once",
    "changed",
    "changed-2",
    "waits",
    "fires",
];

/// Returns what clients can read of them, as raw text.
fn shown(service: &mut RestService) -> Vec<String> {
    let paths = EACH.map(|id| format!("/rest/execution/order/{id}"));
    let lists = ["/rest/execution/order?limit=100", "/rest/ext/order/history?limit=100"].map(String::from);
    paths.iter().chain(&lists).map(|path| service.get(path).body).collect()
}

fn statuses(service: &mut RestService) -> BTreeSet<String> {
    EACH.iter().map(|id| service.order(id)["status"].as_str().unwrap().to_string()).collect()
}

#[test]
fn orders_come_back_from_the_journal_as_they_were_shown() {
    let data = folder("as-shown");
    let mut service = RestService::with(&data, &[]);
    one_of_each(&mut service);
    let all = ["CANCELED", "EXPIRED", "FILLED", "NEW", "PARTIALLY_FILLED", "REJECTED"];
    assert_eq!(statuses(&mut service), BTreeSet::from(all.map(String::from)));
    let part = service.order("part");
    assert_eq!(
        (part["lastQuantity"].as_u64(), part["filledQuantity"].as_u64()),
        (Some(1), Some(3)),
        "{part}"
    );
    let before = shown(&mut service);
    for round in 0..2 {
        match round {
            0 => service.kill(),
            _ => {
                service.must_post("/rest/runtime/exit-vm", "");
                assert!(service.ends_well());
            }
        }
        service = RestService::with(&data, &[]);
        assert_eq!(shown(&mut service), before, "round {round}");
    }
}

#[test]
fn orders_come_back_from_a_snapshot_as_they_were_shown() {
    let data = folder("as-snapped");
    let settings = ["journal.snapshot_every_bytes=1048576", "topology.shards=1", "http.orders_max=100000"];
    let mut service = RestService::with(&data, &settings);
    one_of_each(&mut service);
    let mut clients: Vec<_> = (0..16).map(|_| service.connect()).collect();
    let mut round = 0;
    while !has_snapshot(&data) {
        for client in &mut clients {
            // Written at once, answered later: each requests a hundred.
            let body = order("x").replace(r#""intId":"x","#, "");
            for _ in 0..100 {
                let length = body.len();
                client.send(&format!(
                    "POST {LIMIT} HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: {length}\r\n\r\n{body}"
                ));
            }
        }
        for client in &mut clients {
            (0..100).for_each(|_| assert_eq!(client.receive(false).status, 200));
        }
        round += 1;
        assert!(round < 60, "no snapshot is made");
    }
    let before = shown(&mut service);
    service.kill();
    let mut service = RestService::with(&data, &settings);
    assert_eq!(ask(&mut service.connect(), "GET", "/health/ready", "", "").status, 200);
    assert_eq!(shown(&mut service), before);
}

fn has_snapshot(folder: &Path) -> bool {
    let entries = std::fs::read_dir(folder).unwrap().flatten().map(|entry| entry.path());
    entries.into_iter().any(|path| match path.is_dir() {
        true => has_snapshot(&path),
        false => path.extension().is_some_and(|ending| ending == "snap"),
    })
}
