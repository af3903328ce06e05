//! Binance Spot as a venue of the running service, with a stand-in of the exchange: orders of a FIX
//! client, several venues at once, and kills of the service while the stand-in misbehaves.

use pitlane_engine::index::index_usize;
use pitlane_engine::number::{Price, Qty};
use pitlane_engine::rng::Rng;
use pitlane_testkit::fix_client::{FixClient, now};
use pitlane_testkit::service::{ServiceProcess, folder};
use serde_json::Value;

use crate::binance_standin::BinanceStandIn;
use crate::fees::{await_equal_books, received};
use crate::kills::Books;
use crate::market::{VenueAddress, await_connected, client, fix, free_port, get, start};
use crate::orders::report;
use crate::prices::await_bid;
use crate::venue;

/// Validity of requests, long enough for a busy machine.
const WINDOW_MS: u32 = 20_000;
/// The same where lost orders are waited for.
const WINDOW_OF_KILLS_MS: u32 = 300;

/// Processes in the short form, and in the full form (`make faults`).
const ROUNDS: u64 = 5;
const ROUNDS_FULL: u64 = 100;

#[test]
fn orders_are_filled_changed_cancelled_and_rejected_at_binance() {
    let data = folder("binance-orders");
    let standin = BinanceStandIn::start(0);
    let table = standin.table(WINDOW_MS);
    let service = start(&data, &[VenueAddress { name: "BINA", port: 0, more: &table }], &[]);
    await_connected(&service, "BINA", true);
    let mut client = client(&service, "KEEP1");
    client.order("a", "BINA", 1, 10, "201");
    report(&mut client, &[(11, "a"), (150, "0"), (30, "X001")]);
    report(&mut client, &[(11, "a"), (150, "F"), (39, "1"), (32, "1"), (31, "200"), (30, "X001")]);
    report(&mut client, &[(11, "a"), (150, "F"), (39, "2"), (14, "10")]);
    // It rests, gets another price, and is cancelled.
    client.order("b", "BINA", 1, 10, "150");
    report(&mut client, &[(11, "b"), (150, "0")]);
    client.send("G", &format!("11=b2|41=b|55=BINA|54=1|38=12|40=2|44=151|59=1|60={}|", now()));
    report(&mut client, &[(11, "b2"), (150, "I"), (39, "0"), (38, "12")]);
    client.send("F", &format!("11=b3|41=b2|55=BINA|54=1|60={}|", now()));
    report(&mut client, &[(11, "b3"), (39, "4"), (14, "0")]);
    // Nothing to trade against within the limit.
    client.send("D", &format!("11=i|21=1|55=BINA|54=1|38=3|40=2|44=150|59=3|60={}|", now()));
    assert!(report(&mut client, &[(11, "i"), (39, "4")]).contains("58=ioc"));
    // The venue has no orders for the day, so it gets one that is good till cancelled.
    client.send("D", &format!("11=d|21=1|55=BINA|54=1|38=3|40=2|44=150|59=0|60={}|", now()));
    report(&mut client, &[(11, "d"), (150, "0")]);
    assert_eq!(standin.exchange().orders.values().last().expect("an order").time_in_force, "GTC");
    client.send("F", &format!("11=d2|41=d|55=BINA|54=1|60={}|", now()));
    report(&mut client, &[(11, "d2"), (39, "4"), (14, "0")]);
    // It has no orders until a date either.
    client.send(
        "D",
        &format!("11=g|21=1|55=BINA|54=1|38=3|40=2|44=150|59=6|126=20991231-00:00:00|60={}|", now()),
    );
    assert!(report(&mut client, &[(11, "g"), (39, "8")]).contains("58=venue-unsupported"));
    client.send("D", &format!("11=m|21=1|55=BINA|54=2|38=4|40=1|59=1|60={}|", now()));
    report(&mut client, &[(11, "m"), (150, "F"), (39, "2"), (14, "4")]);
    standin.exchange().next_order = pitlane_testkit::binance::NextOrder::Reject;
    client.order("r", "BINA", 1, 4, "201");
    assert!(report(&mut client, &[(11, "r"), (39, "8")]).contains("58=insufficient-funds"));
    let history = get(&service, "/rest/ext/order/history");
    let venues: Vec<&Value> = history.as_array().expect("a list").iter().map(|row| &row["venue"]).collect();
    assert!(!venues.is_empty() && venues.iter().all(|venue| *venue == "BINA"), "{history}");
    let row = session_row(&service, |row| row["lastError"].is_string());
    assert_eq!((&row["state"], &row["name"]), (&"LOGGED_ON".into(), &"BINA".into()), "{row}");
    assert!(row["lastError"].as_str().is_some_and(|text| text.contains("insufficient balance")), "{row}");
    assert!(row["roundTripUs"].is_u64() && row["clockOffsetUs"].is_i64(), "{row}");
    let limits = row["limits"].as_array().expect("a list");
    let weight = limits.iter().find(|limit| limit["name"] == "weight").expect("the weight of requests");
    assert_eq!((&weight["intervalS"], &weight["allowed"]), (&60.into(), &6_000.into()), "{row}");
    assert!(limits.iter().any(|limit| limit["name"] == "orders"), "{row}");
    service.signal("TERM");
    let ended = service.end();
    assert!(ended.is_orderly(), "{}\n{}", ended.output, ended.log_text);
    assert!(!ended.log_text.contains("secret"), "{}", ended.log_text);
}

#[test]
fn a_simulated_a_fix_and_a_binance_venue_trade_side_by_side() {
    let data = folder("binance-several");
    let standin = BinanceStandIn::start(0);
    let port = free_port();
    let fix_venue = venue::start(port, "ALPHA", &data.join("venue-store"));
    let table = standin.table(WINDOW_MS);
    let venues = [
        VenueAddress { name: "ALPHA", port, more: "" },
        VenueAddress { name: "BINA", port: 0, more: &table },
    ];
    let service = start(&data, &venues, &["topology.shards=2", "venue.self_trade=allow"]);
    await_connected(&service, "ALPHA", true);
    await_connected(&service, "BINA", true);
    let mut client = client(&service, "KEEP1");
    for (symbol, market) in [("ALPHA", "X001"), ("BINA", "X002"), ("SIM", "X003")] {
        let (buy, sell) = (format!("{symbol}-buy"), format!("{symbol}-sell"));
        if symbol == "SIM" {
            client.order(&sell, symbol, 2, 5, "201");
        }
        client.order(&buy, symbol, 1, 5, "201");
        report(&mut client, &[(11, &buy), (39, "2"), (14, "5"), (30, market)]);
    }
    let history = get(&service, "/rest/ext/order/history");
    for row in history.as_array().expect("a list") {
        assert_eq!(row["venue"], row["symbol"], "a share has the name of its venue: {row}");
    }
    // One venue that is away does not concern the others.
    drop(fix_venue);
    await_connected(&service, "ALPHA", false);
    client.order("z", "BINA", 1, 7, "201");
    report(&mut client, &[(11, "z"), (39, "2"), (14, "7")]);
    service.signal("TERM");
    assert!(service.end().is_orderly());
}

#[test]
fn a_fill_whose_event_is_lost_is_booked_after_the_reconnect() {
    let data = folder("binance-reconnect");
    let standin = BinanceStandIn::start(0);
    let table = standin.table(WINDOW_MS);
    let service = start(&data, &[VenueAddress { name: "BINA", port: 0, more: &table }], &[]);
    await_connected(&service, "BINA", true);
    let mut client = client(&service, "KEEP1");
    client.order("a", "BINA", 1, 10, "150");
    report(&mut client, &[(11, "a"), (150, "0")]);
    let mut exchange = standin.exchange();
    let id = *exchange.orders.keys().next().expect("an order");
    let (four, price) = (Qty::parse(b"4").expect("a quantity"), Price::parse(b"149.5").expect("a price"));
    exchange.fill(id, four, price);
    exchange.events.clear();
    drop(exchange);
    standin.disconnect();
    report(&mut client, &[(11, "a"), (150, "F"), (32, "4"), (31, "149.5"), (14, "4")]);
    let fills = get(&service, "/rest/transaction/daily");
    assert_eq!(fills.as_array().expect("a list").len(), 1, "{fills}");
    service.signal("TERM");
    assert!(service.end().is_orderly());
}

/// Returns the row of the venue among the sessions, which are published every second. Only a
/// failing test waits for long.
pub(crate) fn session_row(service: &ServiceProcess, is_wanted: impl Fn(&Value) -> bool) -> Value {
    loop {
        let rows = get(service, "/rest/ext/session");
        let mut rows = rows.as_array().expect("a list").iter();
        if let Some(row) = rows.find(|row| row["kind"] == "VENUE" && is_wanted(row)) {
            return row.clone();
        }
        std::thread::yield_now();
    }
}

#[test]
fn prices_of_binance_are_ours_and_set_off_stops() {
    let data = folder("binance-prices");
    let standin = BinanceStandIn::start(0);
    let table = standin.table(WINDOW_MS) + &standin.market_data();
    let service = start(&data, &[VenueAddress { name: "BINA", port: 0, more: &table }], &[]);
    await_connected(&service, "BINA", true);
    let mut client = client(&service, "KEEP1");
    client.send("D", &format!("11=s|21=1|55=BINA|54=1|38=5|40=3|99=205|59=1|60={}|", now()));
    report(&mut client, &[(11, "s"), (150, "0")]);
    let trade = |id: u64, price: &str| {
        format!(r#"{{"e":"trade","s":"BINA","t":{id},"p":"{price}","q":"1","T":1672515782136}}"#)
    };
    standin.publish("bina@trade", &trade(1, "204"));
    standin.publish("bina@trade", &trade(2, "205"));
    // It leaves as a market order, and the venue trades at 200.
    report(&mut client, &[(11, "s"), (150, "F"), (39, "2"), (14, "5")]);
    let best =
        |id: u64, bid: &str| format!(r#"{{"u":{id},"s":"BINA","b":"{bid}","B":"3","a":"207","A":"4"}}"#);
    standin.publish("bina@bookTicker", &best(1, "199.5"));
    await_bid(&service, 199.5);
    // The venue forgets the subscription with the connection.
    standin.disconnect();
    standin.publish("bina@bookTicker", &best(1, "201.5"));
    await_bid(&service, 201.5);
    service.signal("TERM");
    assert!(service.end().is_orderly());
}

#[test]
fn nothing_is_lost_or_doubled_when_the_service_is_killed_and_binance_misbehaves() {
    let full = std::env::var("PITLANE_FAULTS").is_ok_and(|part| part == "full");
    let rounds = if full { ROUNDS_FULL } else { ROUNDS };
    let data = folder("binance-kills");
    let standin = BinanceStandIn::start(30);
    standin.exchange().fees = received();
    let table = standin.table(WINDOW_OF_KILLS_MS);
    let venues = || [VenueAddress { name: "BINA", port: 0, more: &table }];
    let settings = ["topology.shards=2", "journal.level=os"];
    let mut dice = Rng::new(23);
    let mut client = FixClient::new("KEEP1");
    let mut service = start(&data, &venues(), &settings);
    let (mut sent, mut is_logged_on) = (0u32, false);
    for round in 0..rounds {
        await_connected(&service, "BINA", true);
        if !std::mem::replace(&mut is_logged_on, true) {
            client.connect(fix(&service));
            client.log_on(false);
        }
        let count = client.received.len();
        let acts = 1 + dice.below(20);
        for _ in 0..acts {
            sent += 1;
            let price = if dice.below(4) == 0 { "150" } else { "201" };
            client.order(&format!("L{round}-{sent}"), "BINA", 1, 1 + sent, price);
        }
        client.receive(count + index_usize(dice.below(2 * acts + 1)));
        if dice.below(3) == 0 {
            standin.disconnect();
            continue;
        }
        service.signal("KILL");
        while client.next_message().is_some() {}
        client.disconnect();
        is_logged_on = false;
        service.end();
        service = start(&data, &venues(), &settings);
    }
    standin.behave();
    await_connected(&service, "BINA", true);
    if !is_logged_on {
        client.connect(fix(&service));
        client.log_on(false);
    }
    client.settle();
    let books = Books::settled(&service, sent as usize);
    books.compare(&standin.orders(), sent as usize);
    await_equal_books(&service, &standin);
    service.signal("TERM");
    let ended = service.end();
    assert!(ended.is_orderly(), "{}\n{}", ended.output, ended.log_text);
}
