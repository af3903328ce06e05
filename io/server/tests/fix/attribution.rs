//! Sender of an order over FIX, and in a cluster the sender of an order that another server owns.

use pitlane_testkit::fix_client::{FixClient, now};
use pitlane_testkit::service::{ServiceProcess, folder};
use serde_json::{Value, json};

use crate::cluster::{AAPL, ClusterPair, OPEN, fix_client, order, submit, until};
use crate::others::ask;
use crate::{fix, pitlane, start};

fn by_fix(login: Option<&str>, session: &str) -> Value {
    let mut sender = json!({ "address": "127.0.0.1", "protocol": "FIX", "session": session });
    login.into_iter().for_each(|login| sender["login"] = login.into());
    sender
}

fn by_rest() -> Value {
    json!({ "login": "local", "address": "127.0.0.1", "protocol": "REST" })
}

fn log_on(service: &ServiceProcess, sender: &str, more: &str) -> FixClient {
    let mut client = FixClient::new(sender);
    client.connect(fix(service));
    client.send_message("A", &format!("98=0|108=30|141=Y|{more}"));
    assert_eq!(client.read().expect("a Logon is answered").get(35), "A");
    client.next_in += 1;
    client
}

#[test]
fn an_order_over_fix_records_login_session_and_address() {
    let data = folder("fix-attribution");
    let service = start(&data, &["feed.on=false"]);
    let mut client = log_on(&service, "SECRET", "553=me|554=sesame|");
    client.order("o1", "AAPL", 1, 10, "1.5");
    assert!(client.receive(2));
    let stamp = now();
    client.send("G", &format!("11=o2|41=o1|55=AAPL|54=1|38=12|40=2|44=1.5|59=1|60={stamp}|"));
    assert!(client.receive(4));
    until(|| order(&service, "o2")["quantity"] == 12);
    let shown = order(&service, "o2");
    assert_eq!((&shown["sentBy"], &shown["modifiedBy"]), (&by_fix(Some("me"), "SECRET"), &shown["sentBy"]));
    // Another client cancels it, over another protocol.
    assert_eq!(ask(&service, "DELETE", &format!("{OPEN}/o2"), "", "").status, 200);
    until(|| order(&service, "o2")["status"] == "CANCELED");
    assert_eq!(order(&service, "o2")["canceledBy"], by_rest());

    // A client that is disconnected does not cancel its orders itself.
    let mut leaves = log_on(&service, "LEAVES", "");
    leaves.order("l1", "AAPL", 1, 10, "1.5");
    assert!(leaves.receive(2));
    leaves.disconnect();
    until(|| order(&service, "l1")["status"] == "CANCELED");
    let shown = order(&service, "l1");
    assert_eq!(shown["sentBy"], by_fix(None, "LEAVES"));
    assert_eq!(shown["canceledBy"], json!({ "protocol": "INTERNAL" }));
    service.signal("TERM");
    assert!(service.end().is_orderly());
    let printed = pitlane(&["audit", "orders", "--data", data.to_str().expect("a path"), "--id", "o1"]);
    let line: Value = serde_json::from_str(&printed).expect("one line");
    assert_eq!((&line["act"], &line["sentBy"]), (&"submit".into(), &by_fix(Some("me"), "SECRET")));
}

#[test]
fn the_owner_of_a_shard_knows_who_sent_an_order_at_another_server() {
    let mut pair = ClusterPair::start("attribution");
    let check = |pair: &ClusterPair, id: &str, sender: Value| {
        for at in 0..2 {
            until(|| order(pair.at(at), id)["status"] == "NEW");
            assert_eq!(order(pair.at(at), id)["sentBy"], sender, "{id} at server {at}");
        }
    };
    assert_eq!(submit(pair.at(0), AAPL, "r1").status, 200);
    let mut client = fix_client(pair.at(0), "KEEP1");
    client.order("f1", "AAPL", 1, 10, "1.5");
    assert!(client.receive(2));
    check(&pair, "r1", by_rest());
    check(&pair, "f1", by_fix(None, "KEEP1"));
    // The owner restarts: it knows the earlier senders, and receives again those that are still
    // connected.
    pair.kill(1);
    until(|| pair.state(0) == "DOWN");
    pair.spawn(1);
    pair.join();
    assert_eq!(submit(pair.at(0), AAPL, "r2").status, 200);
    client.order("f2", "AAPL", 1, 10, "1.5");
    assert!(client.receive(4));
    for id in ["r1", "r2"] {
        check(&pair, id, by_rest());
    }
    for id in ["f1", "f2"] {
        check(&pair, id, by_fix(None, "KEEP1"));
    }
    // A cancel from the owner's own client.
    assert_eq!(ask(pair.at(1), "DELETE", &format!("{OPEN}/f2"), "", "").status, 200);
    until(|| order(pair.at(0), "f2")["status"] == "CANCELED");
    assert_eq!(order(pair.at(0), "f2")["canceledBy"], by_rest());
}
