//! Two servers of a cluster and a venue of one of them: what a client of the other server sends
//! reaches the venue unchanged.

use pitlane_testkit::fix_client::now;
use pitlane_testkit::nats_server::NatsBroker;
use pitlane_testkit::patience::until;
use pitlane_testkit::service::{ServiceProcess, TestFolder, folder};

use crate::market::{VenueAddress, await_connected, await_special_terms, client, fix, free_port, get, start};
use crate::orders::report;
use crate::venue;

/// Port at which nothing listens: the venue belongs to the other member.
const NO_VENUE: u16 = 1;

/// Starts a member of a cluster of two: `a` owns shard 0, `b` owns shard 1 and with it ALPHA.
fn start_member(data: &TestFolder, broker: &NatsBroker, member: &str, port: u16) -> ServiceProcess {
    // The tables of the cluster follow that of the venue.
    let tables = format!(
        "[cluster]\nname = \"test\"\nmember = \"{member}\"\n\
         [[member]]\nname = \"a\"\nshards = [0]\n[[member]]\nname = \"b\"\nshards = [1]"
    );
    let url = format!("nats.url={}", broker.url());
    // The first member does not wait for the second one.
    let wait = if member == "b" { "cluster.join_wait_ms=0" } else { "cluster.join_wait_ms=60000" };
    let settings = [&url, "topology.shards=2", "journal.level=os", "cluster.lease_ms=10000", wait];
    start(data, &[VenueAddress { name: "ALPHA", port, more: &tables }], &settings)
}

fn await_joined(member: &ServiceProcess) {
    until("the member sees the other", || get(member, "/rest/ext/cluster")[0]["state"] == "UP");
}

#[test]
fn special_terms_of_a_far_client_reach_the_venue_of_the_owner_and_come_back() {
    let [data_a, data_b] = ["venue-cluster-a", "venue-cluster-b"].map(folder);
    let (broker, port) = (NatsBroker::start(&data_a), free_port());
    let mut venue = venue::start(port, "ALPHA", &data_b.join("venue-store"));
    let b = start_member(&data_b, &broker, "b", port);
    await_connected(&b, "ALPHA", true);
    let a = start_member(&data_a, &broker, "a", NO_VENUE);
    await_joined(&a);
    await_joined(&b);
    let mut client = client(&a, "KEEP1");
    let order =
        |id: &str, special: &str| format!("11={id}|55=ALPHA|54=1|38=10|40=2|44=150|60={}|{special}", now());
    client.send("D", &order("far", "18=G|110=2|111=4|"));
    let special = [(18, "G"), (110, "2"), (111, "4")];
    report(&mut client, &[&[(11, "far"), (150, "0")], &special[..]].concat());
    let sent = venue.wait(&["app", "35=D"]);
    for (tag, value) in special {
        assert!(sent.contains(&format!("|{tag}={value}|")), "{sent}");
    }
    client.send("H", "11=far|55=ALPHA|54=1|");
    report(&mut client, &[&[(11, "far"), (150, "I")], &special[..]].concat());
    for member in [&a, &b] {
        await_special_terms(member, "far", &["G".into(), 2.into(), 4.into()]);
    }
    // The member of the client learns them again from the owner after its own crash.
    a.signal("KILL");
    _ = a.end();
    let a = start_member(&data_a, &broker, "a", NO_VENUE);
    await_joined(&a);
    client.disconnect();
    client.connect(fix(&a));
    client.log_on(false);
    client.send("H", "11=far|55=ALPHA|54=1|");
    report(&mut client, &[&[(11, "far"), (150, "I")], &special[..]].concat());
    // A replacement without some of them removes these.
    client.send("G", &format!("41=far|{}", order("far-2", "111=5|").replace("38=10", "38=12")));
    let replaced = report(&mut client, &[(11, "far-2"), (150, "I"), (38, "12"), (111, "5")]);
    assert!(!replaced.contains("110="), "{replaced}");
    let sent = venue.wait(&["app", "35=G"]);
    assert!(sent.contains("|111=5|") && !sent.contains("|110=") && !sent.contains("|18="), "{sent}");
    for service in [a, b] {
        service.signal("TERM");
        assert!(service.end().is_orderly());
    }
}
