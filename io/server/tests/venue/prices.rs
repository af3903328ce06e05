//! Market data of a QuickFIX venue: shown over REST, and used to trigger a stop.

use pitlane_testkit::fix_client::now;
use pitlane_testkit::service::{ServiceProcess, folder};

use crate::market::{VenueAddress, await_connected, client, free_port, get, start};
use crate::orders::report;
use crate::venue;

/// Waits until our share is valued at this price: the bid of the venue.
pub(crate) fn await_bid(service: &ServiceProcess, bid: f64) {
    loop {
        let positions = get(service, "/rest/position");
        let mut positions = positions.as_array().expect("a list").iter();
        if positions.any(|position| position["marketPrice"].as_f64() == Some(bid)) {
            return;
        }
        std::thread::yield_now();
    }
}

#[test]
fn prices_of_a_quickfix_venue_are_ours_and_set_off_stops() {
    let data = folder("venue-prices");
    let port = free_port();
    let mut venue = venue::start(port, "ALPHA", &data.join("venue-store"));
    let venues = [VenueAddress { name: "ALPHA", port, more: "market_data = true" }];
    // The simulated market is on: it does not change the venue's securities.
    let service = start(&data, &venues, &["feed.on=true"]);
    await_connected(&service, "ALPHA", true);
    assert_eq!(
        get(&service, "/rest/subscription/marketdata/supported-feed"),
        serde_json::json!(["SIM", "ALPHA"])
    );
    venue.wait(&["app", "|35=V|", "|55=ALPHA|"]);
    // A stop waits in the service, and is sent to the venue when the venue's trade reaches it.
    let mut client = client(&service, "KEEP1");
    client.send("D", &format!("11=s|21=1|55=ALPHA|54=1|38=5|40=3|99=205|59=1|60={}|", now()));
    report(&mut client, &[(11, "s"), (150, "0")]);
    venue.send_message("price ALPHA 2 204 3");
    venue.send_message("price ALPHA 2 205 1");
    report(&mut client, &[(11, "s"), (150, "F"), (39, "2"), (14, "5")]);
    let sent = venue.wait(&["app", "|35=D|"]);
    assert!(sent.contains("|40=1|") && sent.contains("|38=5|"), "{sent}");
    await_bid(&service, 199.0);
    // One side of the quote changes; the venue disconnects and reconnects, and its prices return.
    venue.send_message("price ALPHA 0 200.5 4");
    await_bid(&service, 200.5);
    drop(venue.kill());
    await_connected(&service, "ALPHA", false);
    let mut venue = venue::start(port, "ALPHA", &data.join("venue-store"));
    venue.wait(&["app", "|35=V|", "|55=ALPHA|"]);
    await_bid(&service, 199.0);
    service.signal("TERM");
    assert!(service.end().is_orderly());
}
