//! What operators see of a venue and do with it.

use pitlane_testkit::service::{ServiceProcess, folder};
use serde_json::Value;

use crate::market::{VenueAddress, ask, await_connected, free_port, get, start};
use crate::venue;

fn row(service: &ServiceProcess, is_meant: impl Fn(&Value) -> bool) -> Value {
    loop {
        let rows = get(service, "/rest/ext/session");
        let mut rows = rows.as_array().expect("a list").iter();
        if let Some(row) = rows.find(|row| row["name"] == "ALPHA" && is_meant(row)) {
            return row.clone();
        }
        std::thread::yield_now();
    }
}

#[test]
fn a_venue_is_listed_kicked_and_its_numbers_reset() {
    let data = folder("venue-operation");
    let port = free_port();
    let service = start(&data, &[VenueAddress { name: "ALPHA", port, more: "" }], &[]);
    let away = row(&service, |_| true);
    assert_eq!(away["kind"], "VENUE");
    let health = get(&service, "/health/ready");
    assert_eq!(health["adapters"][1]["connected"], false, "{health}");
    let mut venue = venue::start(port, "ALPHA", &data.join("venue-store"));
    await_connected(&service, "ALPHA", true);
    let there = row(&service, |row| row["state"] == "LOGGED_ON");
    assert_eq!((&there["nextIn"], &there["nextOut"]), (&3.into(), &3.into()), "{there}");
    assert_eq!(there["peer"], format!("127.0.0.1:{port}"));
    let id = there["id"].as_str().expect("an id").to_string();
    // It is disconnected, and reconnects by itself with its sequence numbers.
    let kicked = ask(&service, "DELETE", &format!("/rest/ext/session/{id}"));
    assert!(matches!(kicked.status, 200 | 204), "{kicked:?}");
    venue.wait(&["logout"]);
    venue.wait(&["logon"]);
    row(&service, |row| row["state"] == "LOGGED_ON" && row["nextOut"].as_u64() > Some(4));
    // The sequence numbers are reset on both sides.
    let reset = ask(&service, "POST", &format!("/rest/ext/session/{id}/reset"));
    assert!(matches!(reset.status, 200 | 204), "{reset:?}");
    venue.wait(&["logout"]);
    venue.wait(&["logon"]);
    row(&service, |row| row["state"] == "LOGGED_ON" && row["nextOut"] == 3);
    service.signal("TERM");
    assert!(service.end().is_orderly());
}
