//! Either side is killed at random moments, and restarted: nothing that the venue has done is lost,
//! nothing is sent or counted twice.
//!
//! After all processes the books are compared: every execution that the venue has reported is in
//! our transactions, once; every order that was sent is at the venue, once; and no order is in
//! doubt.

use std::collections::{BTreeMap, BTreeSet};

use pitlane_engine::rng::Rng;
use pitlane_testkit::fix_client::FixClient;
use pitlane_testkit::service::folder;
use serde_json::Value;

use crate::market::{VenueAddress, await_connected, fix, free_port, get, start};
use crate::venue::{self, field};

/// Processes in the short form, and in the full form (`make faults`).
const ROUNDS: u64 = 10;
const ROUNDS_FULL: u64 = 100;

#[test]
fn nothing_is_lost_or_doubled_whichever_side_is_killed() {
    let full = std::env::var("PITLANE_FAULTS").is_ok_and(|part| part == "full");
    let rounds = if full { ROUNDS_FULL } else { ROUNDS };
    let data = folder("venue-kills");
    let (port, store) = (free_port(), data.join("venue-store"));
    let venues = || [VenueAddress { name: "ALPHA", port, more: "" }];
    let settings = ["topology.shards=2", "journal.level=os"];
    let mut dice = Rng::new(11);
    let mut reports: Vec<String> = Vec::new();
    let mut client = FixClient::new("KEEP1");
    let mut venue = venue::start(port, "ALPHA", &store);
    let mut service = start(&data, &venues(), &settings);
    let (mut sent, mut is_logged_on) = (0, false);
    for round in 0..rounds {
        await_connected(&service, "ALPHA", true);
        if !std::mem::replace(&mut is_logged_on, true) {
            client.connect(fix(&service));
            client.log_on(false);
        }
        let count = client.received.len();
        let acts = 1 + dice.below(30);
        for _ in 0..acts {
            sent += 1;
            // Most orders trade at once, some rest.
            let price = if dice.below(4) == 0 { "150" } else { "201" };
            client.order(&format!("L{round}-{sent}"), "ALPHA", 1, 2 + dice.below(5) as u32, price);
        }
        // Before anything is received, in between, or after all of it.
        client.receive(count + dice.below(2 * acts + 1) as usize);
        match dice.below(3) {
            0 => {
                reports.extend(venue.kill());
                venue = venue::start(port, "ALPHA", &store);
            }
            which => {
                service.signal("KILL");
                if which == 2 {
                    reports.extend(venue.kill());
                    venue = venue::start(port, "ALPHA", &store);
                }
                while client.next_message().is_some() {}
                client.disconnect();
                is_logged_on = false;
                service.end();
                service = start(&data, &venues(), &settings);
            }
        }
    }
    await_connected(&service, "ALPHA", true);
    if !is_logged_on {
        client.connect(fix(&service));
        client.log_on(false);
    }
    client.settle();
    let orders = settled(&service);
    reports.extend(venue.catch_up().to_vec());
    compare(&reports, &orders, &get(&service, "/rest/transaction/daily"));
    service.signal("TERM");
    let ended = service.end();
    assert!(ended.is_orderly(), "{}\n{}", ended.output, ended.log_text);
}

/// Returns all orders, open and finished, once none of them waits for the venue.
fn settled(service: &pitlane_testkit::service::ServiceProcess) -> Vec<Value> {
    let list = |path: &str| get(service, path).as_array().expect("a list").clone();
    loop {
        let open = list("/rest/execution/order");
        let waits = |row: &Value| row["status"] == "PENDING_NEW" || row["unknown"] == true;
        if !open.iter().any(waits) {
            return [open, list("/rest/ext/order/history")].concat();
        }
        std::thread::yield_now();
    }
}

fn compare(reports: &[String], rows: &[Value], transactions: &Value) {
    // Executions of the venue. One that it processed twice has the same id.
    let mut fills: BTreeMap<&str, u64> = BTreeMap::new();
    let mut arrived: BTreeMap<&str, usize> = BTreeMap::new();
    let mut numbers: BTreeSet<(&str, &str)> = BTreeSet::new();
    for line in reports {
        if line.starts_with("sent") && line.contains("|150=F|") {
            fills.insert(field(line, "17="), whole(field(line, "32=")));
        }
        if line.starts_with("app") && line.contains("|35=D|") {
            // A message that the venue had not counted when it was killed arrives again, under the
            // same number.
            if numbers.insert((field(line, "34="), field(line, "11="))) {
                *arrived.entry(field(line, "11=")).or_default() += 1;
            }
        }
    }
    let doubled: Vec<_> = arrived.iter().filter(|(_, count)| **count > 1).collect();
    assert!(doubled.is_empty(), "sent twice: {doubled:?}");
    let done: u64 = fills.values().sum();
    let booked = transactions.as_array().expect("a list");
    let count = booked.len();
    let booked: u64 = booked.iter().map(|row| whole(&row["quantity"].to_string())).sum();
    assert_eq!((count, booked), (fills.len(), done), "what the venue has done is what we have booked");
    let filled: u64 = rows.iter().map(|row| whole(&row["filledQuantity"].to_string())).sum();
    assert_eq!(filled, done, "and what our orders report");
    let (rejected, left): (Vec<&Value>, Vec<&Value>) =
        rows.iter().partition(|row| row["status"] == "REJECTED");
    assert_eq!(
        left.len(),
        arrived.len(),
        "every order that is not rejected is at the venue; rejected are {rejected:#?}"
    );
}

fn whole(text: &str) -> u64 {
    text.trim_matches('"').parse().unwrap_or_else(|_| panic!("a whole number: {text:?}"))
}
