//! Behaviour while a venue is away or after its sequence numbers were reset: stops that are
//! reached, fills that cannot be resent.

use std::collections::BTreeSet;
use std::fs;

use pitlane_testkit::fix_client::now;
use pitlane_testkit::service::{ServiceProcess, folder};
use serde_json::Value;

use crate::market::{VenueAddress, await_connected, client, free_port, get, start};
use crate::orders::report;
use crate::venue::{self, field};

/// Waits until the simulated market has shown so many prices of our position.
fn await_prices(service: &ServiceProcess, count: usize) {
    let mut seen = BTreeSet::new();
    while seen.len() < count {
        let positions = get(service, "/rest/position");
        let prices = positions.as_array().expect("a list").iter().map(|row| row["marketPrice"].to_string());
        seen.extend(prices.filter(|price| price != "null"));
        std::thread::yield_now();
    }
}

#[test]
fn a_stop_reached_while_its_venue_is_away_is_sent_when_the_venue_is_back() {
    let data = folder("venue-stop");
    let (port, store) = (free_port(), data.join("venue-store"));
    let venues = [VenueAddress { name: "ALPHA", port, more: "" }];
    let venue = venue::start(port, "ALPHA", &store);
    let service = start(&data, &venues, &["journal.level=os"]);
    await_connected(&service, "ALPHA", true);
    let mut client = client(&service, "KEEP1");
    client.order("p", "ALPHA", 1, 1, "201");
    report(&mut client, &[(11, "p"), (39, "2")]);
    // There is no price yet, so it waits.
    client.send("D", &format!("11=s|21=1|55=ALPHA|54=1|38=5|40=3|99=150|59=1|60={}|", now()));
    report(&mut client, &[(11, "s"), (150, "0")]);
    drop(venue.kill());
    service.signal("KILL");
    service.end();
    // The market reaches it while the venue is away.
    let service = start(&data, &venues, &["journal.level=os", "feed.on=true", "feed.rate=1000"]);
    await_prices(&service, 20);
    let order = order(&service, "s");
    assert!(order["status"] == "NEW" && order["unknown"] != true, "{order}");
    let mut venue = venue::start(port, "ALPHA", &store);
    let sent = venue.wait(&["app", "|35=D|", "|38=5|"]);
    assert!(sent.contains("|40=1|"), "{sent}");
    await_filled(&service, "s", "5");
    service.signal("TERM");
    assert!(service.end().is_orderly());
}

#[test]
fn fills_missed_over_a_lost_store_are_booked_once_from_the_status_of_the_order() {
    let data = folder("venue-lost-store");
    let (port, store) = (free_port(), data.join("venue-store"));
    let venues = [VenueAddress { name: "ALPHA", port, more: "status_request = true" }];
    let mut venue = venue::start(port, "ALPHA", &store);
    let service = start(&data, &venues, &["journal.level=os"]);
    await_connected(&service, "ALPHA", true);
    let mut client = client(&service, "KEEP1");
    client.order("a", "ALPHA", 1, 10, "150");
    report(&mut client, &[(11, "a"), (150, "0")]);
    let entered = venue.wait(&["app", "35=D", "|38=10|"]);
    let id = field(&entered, "11=").to_string();
    service.signal("KILL");
    service.end();
    venue.wait(&["logout"]);
    // It trades while the service is down, and our store of the session is lost: the sequence
    // numbers begin with one.
    venue.send_message(&format!("fill {id} 4 149.5"));
    fs::remove_dir_all(data.join("venue")).expect("the store of the session");
    let service = start(&data, &venues, &["journal.level=os"]);
    venue.wait(&["app", "|35=H|", &id]);
    await_filled(&service, "a", "4");
    let order = order(&service, "a");
    assert!(order["status"] == "PARTIALLY_FILLED" && order["unknown"] != true, "{order}");
    let fills = get(&service, "/rest/transaction/daily");
    let fills = fills.as_array().expect("a list");
    assert_eq!(fills.len(), 1, "{fills:?}");
    assert_eq!(fills[0]["price"].to_string().trim_matches('"'), "149.5", "{fills:?}");
    // It continues there, and here.
    venue.send_message(&format!("fill {id} 6 149"));
    await_finished(&service, "a");
    service.signal("TERM");
    assert!(service.end().is_orderly());
}

/// Returns the order with this id, which is the only one.
fn order(service: &ServiceProcess, id: &str) -> Value {
    let found = get(service, &format!("/rest/execution/order/{id}"));
    assert_eq!(found.as_array().expect("a list").len(), 1, "{found}");
    found[0].clone()
}

/// Waits until so much of an order is filled.
fn await_filled(service: &ServiceProcess, id: &str, filled: &str) {
    loop {
        let row = order(service, id);
        if row["filledQuantity"].to_string().trim_matches('"') == filled {
            return;
        }
        std::thread::yield_now();
    }
}

fn await_finished(service: &ServiceProcess, id: &str) {
    loop {
        let row = order(service, id);
        if row["status"] == "FILLED" {
            return;
        }
        std::thread::yield_now();
    }
}
