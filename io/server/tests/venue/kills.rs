//! Either side is killed at random moments, and restarted: nothing that the venue has done is lost,
//! nothing is sent or counted twice.
//!
//! After all processes the books are compared, order by order: every execution that the venue has
//! reported is in our transactions, once; an order that reached the venue is open or filled here as
//! it is there, and was sent once; only an order that never reached the venue is rejected.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Instant;

use pitlane_engine::index::index_usize;
use pitlane_engine::rng::Rng;
use pitlane_testkit::fix_client::FixClient;
use pitlane_testkit::patience::PATIENCE;
use pitlane_testkit::service::{ServiceProcess, folder};
use serde_json::Value;

use crate::market::{VenueAddress, await_connected, fix, free_port, get, start};
use crate::venue::{self, field};

/// Processes in the short form, and in the full form (`make faults`).
const ROUNDS: u64 = 10;
const ROUNDS_FULL: u64 = 100;

/// Price at which the venue trades; a buy below it rests there.
const MARK: u64 = 200;

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
    let (mut sent, mut is_logged_on) = (0u32, false);
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
            // Most orders trade at once, some rest. Each has its own quantity, by which it is found
            // at the venue.
            let price = if dice.below(4) == 0 { "150" } else { "201" };
            client.order(&format!("L{round}-{sent}"), "ALPHA", 1, 1 + sent, price);
        }
        // Before anything is received, in between, or after all of it.
        client.receive(count + index_usize(dice.below(2 * acts + 1)));
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
    let books = Books::settled(&service, sent as usize);
    reports.extend(venue.kill());
    books.compare(&venue_orders(&reports), sent as usize);
    service.signal("TERM");
    let ended = service.end();
    assert!(ended.is_orderly(), "{}\n{}", ended.output, ended.log_text);
}

/// Our orders and transactions.
pub(crate) struct Books {
    /// Open and finished orders.
    orders: Vec<Value>,
    transactions: Vec<Value>,
}

impl Books {
    /// Returns the books once all orders that the client has sent are there and none of them waits
    /// for the venue; or as they are when that takes too long.
    ///
    /// The answer to the client's Test Request does not tell that the shards have handled its
    /// orders, and the lists are read one after the other: an order that is entered in between is
    /// in none of them, and one that ends is in both.
    pub(crate) fn settled(service: &ServiceProcess, sent: usize) -> Books {
        let list = |path: &str| get(service, path).as_array().expect("a list").clone();
        // A venue that limits requests by the minute may have to be waited for twice.
        let late = Instant::now() + PATIENCE;
        loop {
            let orders = [list("/rest/execution/order"), list("/rest/ext/order/history")].concat();
            // Fees in another asset than the currency of the share have no quantity.
            let mut transactions = list("/rest/transaction/daily");
            transactions.retain(|row| row["type"] != "FEES");
            let books = Books { orders, transactions };
            if books.is_settled(sent) || Instant::now() > late {
                return books;
            }
            std::thread::yield_now();
        }
    }

    fn is_settled(&self, sent: usize) -> bool {
        let ids: BTreeSet<u64> = self.orders.iter().map(|row| number(&row["quantity"])).collect();
        let waits = |row: &Value| {
            let trades = number(&row["limit"]) >= MARK;
            row["unknown"] == true || row["status"] == "PENDING_NEW" || trades && is_open(row)
        };
        let filled: u64 = self.orders.iter().map(|row| number(&row["filledQuantity"])).sum();
        let booked: u64 = self.transactions.iter().map(|row| number(&row["quantity"])).sum();
        ids.len() == sent && self.orders.len() == sent && !self.orders.iter().any(waits) && booked == filled
    }

    /// Compares them with those of the venue, by the quantity of each order.
    pub(crate) fn compare(&self, venue: &BTreeMap<u64, VenueOrder>, sent: usize) {
        let fills: Vec<u64> = venue.values().flat_map(|order| order.fills.values().copied()).collect();
        let booked: Vec<u64> = self.transactions.iter().map(|row| number(&row["quantity"])).collect();
        assert_eq!(
            (booked.len(), booked.iter().sum::<u64>()),
            (fills.len(), fills.iter().sum()),
            "what the venue has done is what we have booked"
        );
        let ours: BTreeMap<u64, &Value> =
            self.orders.iter().map(|row| (number(&row["quantity"]), row)).collect();
        assert_eq!((ours.len(), self.orders.len()), (sent, sent), "each order is there, once");
        let stray: Vec<_> = venue.keys().filter(|qty| !ours.contains_key(qty)).collect();
        assert!(stray.is_empty(), "the venue has orders that we do not have: {stray:?}");
        for (qty, row) in ours {
            let Some(theirs) = venue.get(&qty) else {
                assert_eq!(row["status"], "REJECTED", "it never reached the venue: {row:#}");
                continue;
            };
            assert_eq!(theirs.requests.len(), 1, "it is sent once: {theirs:?} {row:#}");
            let filled: u64 = theirs.fills.values().sum();
            assert_eq!(number(&row["filledQuantity"]), filled, "{theirs:?} {row:#}");
            // It works at the venue or is filled there: the venue ends no order otherwise.
            let status = if filled == qty { "FILLED" } else { "NEW" };
            assert_eq!(row["status"], status, "it is here as it is there: {theirs:?} {row:#}");
        }
    }
}

/// An order as the venue has reported it.
#[derive(Debug, Default)]
pub(crate) struct VenueOrder {
    /// Numbers of the messages that sent it. A message that the venue had not counted when it was
    /// killed arrives again, under the same number.
    pub requests: BTreeSet<String>,
    /// Quantities of the executions, by id. An order that the venue processed twice has the same
    /// ids.
    pub fills: BTreeMap<String, u64>,
}

/// Returns the orders that reached the venue, by quantity.
fn venue_orders(lines: &[String]) -> BTreeMap<u64, VenueOrder> {
    let mut orders: BTreeMap<u64, VenueOrder> = BTreeMap::new();
    for line in lines {
        let is_order = line.starts_with("app") && line.contains("|35=D|");
        let is_fill = line.starts_with("sent") && line.contains("|150=F|");
        if !is_order && !is_fill {
            continue;
        }
        let order = orders.entry(whole(field(line, "38="))).or_default();
        if is_order {
            order.requests.insert(field(line, "34=").to_string());
        } else {
            order.fills.insert(field(line, "17=").to_string(), whole(field(line, "32=")));
        }
    }
    orders
}

fn is_open(row: &Value) -> bool {
    row["status"] == "NEW" || row["status"] == "PARTIALLY_FILLED"
}

fn number(value: &Value) -> u64 {
    whole(&value.to_string())
}

pub(crate) fn whole(text: &str) -> u64 {
    text.trim_matches('"').parse().unwrap_or_else(|_| panic!("a whole number: {text:?}"))
}
