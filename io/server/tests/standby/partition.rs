//! The leader is cut off from the broker: it is in a separate network namespace, whose link is
//! removed.

use std::time::Duration;

use pitlane_testkit::nats_server::NatsBroker;
use pitlane_testkit::network_link::NetworkLink;
use pitlane_testkit::patience::{PATIENCE, until};
use pitlane_testkit::service::{ServiceProcess, folder};
use serde_json::Value;

use super::load::terms;
use super::pair::StandbyPair;

const LIMIT: &str = "/rest/execution/order/limit";
/// Time after which a request is repeated: the first ones may get lost in a link that was just
/// restored.
const RETRY_AFTER: Duration = Duration::from_secs(5);

/// Returns the status of an order sent to a server at the other end; 0: there was no response
/// within this time.
fn order(wire: &NetworkLink, service: &ServiceProcess, id: &str, limit: Duration) -> u16 {
    wire.ask(service, "POST", LIMIT, &terms(id), limit).0
}

#[test]
fn a_leader_that_is_cut_off_answers_nothing_and_follows_when_it_is_back() {
    let wire = match NetworkLink::create("sby") {
        Ok(wire) => wire,
        Err(why) => return println!("SKIPPED: no network of our own can be made here: {why}"),
    };
    let place = folder("standby-partition");
    let broker = NatsBroker::start_at(&place, wire.own_address());
    let mut pair = StandbyPair::at(&place, &broker.url());
    pair.servers[0] = Some(ServiceProcess::on(&place, wire.beyond(&pair.command(0))));
    pair.lead(0);
    pair.launch(1);
    pair.follow(1);
    for id in ["a", "b", "c"] {
        assert_eq!(order(&wire, pair.server(0), id, PATIENCE), 200);
    }
    wire.cut();
    assert_eq!(
        order(&wire, pair.server(0), "late", Duration::from_secs(1)),
        0,
        "nothing is acknowledged that the broker does not have"
    );
    pair.lead(1);
    let (orders, _) = pair.known(1);
    let ids: Vec<&str> = orders.iter().map(|(id, _)| id.as_str()).collect();
    assert_eq!(ids, ["a", "b", "c"]);
    // The leader has detected it by itself, and no longer serves.
    pair.stand_by(0);
    wire.restore();
    until("it follows", || {
        let (status, body) = wire.ask(pair.server(0), "GET", "/health/ready", "", RETRY_AFTER);
        let state: Value = serde_json::from_str(&body).unwrap_or_default();
        status == 503 && state["standby"]["stand"] == "FOLLOWING" && state["standby"]["epoch"] == 2
    });
    // It takes over again, without the orders that it never acknowledged.
    pair.kill(1);
    pair.lead(0);
    let (status, body) = wire.ask(pair.server(0), "GET", "/rest/execution/order", "", PATIENCE);
    assert_eq!(status, 200);
    let orders: Value = serde_json::from_str(&body).unwrap();
    let mut ids: Vec<&str> =
        orders.as_array().unwrap().iter().map(|order| order["intId"].as_str().unwrap()).collect();
    ids.sort_unstable();
    assert_eq!(ids, ["a", "b", "c"]);
}
