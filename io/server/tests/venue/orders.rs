//! Orders of a FIX client that are sent to a venue, and every outcome there.

use pitlane_testkit::fix_client::{FixClient, now};
use pitlane_testkit::quickfix::QuickFixProcess;
use pitlane_testkit::service::{ServiceProcess, folder};

use crate::binance::session_row;
use crate::market::{VenueAddress, await_connected, client, free_port, get, start};
use crate::venue::{self, field};

fn both(name: &str) -> (ServiceProcess, QuickFixProcess) {
    let data = folder(name);
    let port = free_port();
    let venue = venue::start(port, "ALPHA", &data.join("venue-store"));
    let service = start(&data, &[VenueAddress { name: "ALPHA", port, more: "" }], &[]);
    await_connected(&service, "ALPHA", true);
    (service, venue)
}

/// Returns the next report of this client with these values.
pub(crate) fn report(client: &mut FixClient, wanted: &[(u32, &str)]) -> String {
    loop {
        let message = client.next_message().unwrap_or_else(|| panic!("waited for {wanted:?}"));
        if wanted.iter().all(|(tag, value)| message.get(*tag) == *value) {
            return message.text();
        }
    }
}

#[test]
fn orders_are_filled_changed_cancelled_and_rejected_by_a_quickfix_venue() {
    let (service, mut venue) = both("venue-orders");
    let mut client = client(&service, "KEEP1");
    // By its price: in two parts.
    client.order("a", "ALPHA", 1, 10, "201");
    report(&mut client, &[(11, "a"), (150, "0")]);
    report(&mut client, &[(11, "a"), (150, "F"), (39, "1"), (32, "1"), (31, "200")]);
    report(&mut client, &[(11, "a"), (150, "F"), (39, "2"), (14, "10")]);
    let sent = venue.wait(&["app", "35=D", "|38=10|"]);
    assert!(
        sent.contains("|55=ALPHA|") && sent.contains("|207=X001|") && sent.contains("|44=201|"),
        "{sent}"
    );
    assert_eq!(field(&sent, "11=").len(), 20, "{sent}");
    // It rests, is replaced, partly filled on command, and cancelled.
    client.order("b", "ALPHA", 1, 10, "150");
    report(&mut client, &[(11, "b"), (150, "0")]);
    client.send("G", &format!("11=b2|41=b|55=ALPHA|54=1|38=12|40=2|44=151|59=1|60={}|", now()));
    report(&mut client, &[(11, "b2"), (150, "I"), (39, "0"), (38, "12")]);
    let replaced = venue.wait(&["app", "35=G", "|38=12|", "|44=151|"]);
    venue.send_message(&format!("fill {} 5 150.5", field(&replaced, "11=")));
    report(&mut client, &[(11, "b2"), (150, "F"), (32, "5"), (31, "150.5")]);
    client.send("F", &format!("11=b3|41=b2|55=ALPHA|54=1|60={}|", now()));
    report(&mut client, &[(11, "b3"), (39, "4"), (14, "5")]);
    // Too late.
    client.send("F", &format!("11=b4|41=b3|55=ALPHA|54=1|60={}|", now()));
    report(&mut client, &[(35, "9"), (11, "b4")]);
    // Cancelled by the venue; rejected by it.
    client.order("c", "ALPHA", 2, 3, "300");
    let entered = venue.wait(&["app", "35=D", "|38=3|"]);
    report(&mut client, &[(11, "c"), (150, "0")]);
    venue.send_message(&format!("cancel {}", field(&entered, "11=")));
    assert!(report(&mut client, &[(11, "c"), (39, "4")]).contains("58=venue-cancelled"));
    venue.send_message("reject Y");
    venue.wait(&["rejects Y"]);
    client.order("d", "ALPHA", 1, 4, "201");
    assert!(report(&mut client, &[(11, "d"), (39, "8")]).contains("58=venue-rejected"));
    let fills = get(&service, "/rest/transaction/daily");
    let quantities: Vec<String> =
        fills.as_array().expect("a list").iter().map(|row| row["quantity"].to_string()).collect();
    assert_eq!(quantities.len(), 3, "{fills}");
    let row = session_row(&service, |row| row["roundTripUs"].is_u64());
    assert_eq!(row["name"], "ALPHA", "{row}");
    service.signal("TERM");
    venue.wait(&["logout"]);
    let ended = service.end();
    assert!(ended.is_orderly(), "{}\n{}", ended.output, ended.log_text);
}

#[test]
fn while_the_venue_is_disconnected_orders_are_refused_and_open_ones_stay() {
    let data = folder("venue-away");
    let port = free_port();
    let store = data.join("venue-store");
    let venue = venue::start(port, "ALPHA", &store);
    let service = start(&data, &[VenueAddress { name: "ALPHA", port, more: "" }], &[]);
    await_connected(&service, "ALPHA", true);
    let mut client = client(&service, "KEEP1");
    client.order("a", "ALPHA", 1, 10, "150");
    report(&mut client, &[(11, "a"), (150, "0")]);
    venue.kill();
    await_connected(&service, "ALPHA", false);
    client.order("b", "ALPHA", 1, 10, "150");
    assert!(report(&mut client, &[(11, "b"), (39, "8")]).contains("58=venue-unavailable"));
    let venue = venue::start(port, "ALPHA", &store);
    await_connected(&service, "ALPHA", true);
    client.order("c", "ALPHA", 1, 10, "201");
    report(&mut client, &[(11, "c"), (39, "2")]);
    let order = get(&service, "/rest/execution/order/a");
    assert!(order.to_string().contains("\"NEW\""), "{order}");
    drop(venue);
    service.signal("TERM");
    assert!(service.end().is_orderly());
}
