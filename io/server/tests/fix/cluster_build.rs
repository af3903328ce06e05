//! A server of another build at the broker of a cluster: no message of it is taken for one of this
//! build.

use pitlane_protocols::remote::cluster::{CLUSTER_VERSION, ClusterBroadcast, MemberIdentity};
use pitlane_testkit::raw_nats_client::RawNatsClient;

use crate::cluster::{ClusterPair, MSFT, submit, until};

#[test]
fn a_member_of_another_build_is_not_joined_and_the_log_says_why() {
    let mut pair = ClusterPair::start_second("build");
    let mut older = RawNatsClient::connect(pair.broker.port, None);
    let sender = MemberIdentity { member: 0, incarnation: 1, map: 1 };
    let mut heartbeat = ClusterBroadcast::Heartbeat { sender, last: 0 }.encode();
    heartbeat[0] = CLUSTER_VERSION - 1;
    until(|| {
        older.publish("pitlane.test.call.a", "", &heartbeat);
        older.settle();
        pair.state(1) == "INCOMPATIBLE"
    });
    assert_eq!(submit(pair.at(1), MSFT, "").code(), "owner-away");
    // The same member with this build is joined.
    pair.spawn(0);
    pair.join();
    until(|| submit(pair.at(1), MSFT, "new-build").status == 200);
    let [a, b] = pair.services.map(|service| service.expect("it runs"));
    a.signal("TERM");
    assert!(a.end().is_orderly());
    b.signal("TERM");
    let ended = b.end();
    assert!(ended.is_orderly(), "{}\n{}", ended.output, ended.log_text);
    let line = format!("it uses version {}, this build uses {CLUSTER_VERSION}", CLUSTER_VERSION - 1);
    assert_eq!(ended.log_text.matches(&line).count(), 1, "{}", ended.log_text);
}
