//! The leader is killed during orders over REST and FIX; the other takes over, and the killed one
//! follows it.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Instant;

use pitlane_engine::index::index_usize;
use pitlane_engine::rng::Rng;
use pitlane_testkit::fix_client::{FixClient, ReceivedFix, now};
use pitlane_testkit::nats_server::NatsBroker;
use pitlane_testkit::patience::until;
use pitlane_testkit::service::folder;

use super::load::OrderLoad;
use super::pair::StandbyPair;

/// Kills in the short form, and in the full form (`make faults`).
const KILLS: u64 = 3;
const KILLS_FULL: u64 = 50;

#[test]
fn nothing_acknowledged_is_lost_whenever_the_leader_is_killed() {
    let full = std::env::var("PITLANE_FAULTS").is_ok_and(|part| part == "full");
    let kills = if full { KILLS_FULL } else { KILLS };
    let place = folder("standby-kills");
    let broker = NatsBroker::start(&place);
    let mut pair = StandbyPair::start(&place, &broker.url());
    let mut dice = Rng::new(5);
    let mut client = FixClient::new("KEEP1");
    let (mut rest, mut stays) = (Vec::new(), BTreeSet::new());
    let begun = Instant::now();
    for kill in 0..kills {
        let (leader, other) = (index_usize(kill % 2), index_usize(1 - kill % 2));
        let load = OrderLoad::start(pair.server(leader).address(), &format!("k{kill}"));
        client.connect(pair.fix(leader));
        client.log_on(false);
        let count = client.received.len();
        let acts = 1 + dice.below(30);
        stays.extend((0..acts).filter_map(|act| send(&mut client, &mut dice, &format!("F{kill}-{act}"))));
        client.receive(count + index_usize(dice.below(acts + 1)));
        let enough = dice.index(60);
        until("orders are acknowledged", || load.acknowledged() >= enough);
        pair.kill(leader);
        while client.next_message().is_some() {}
        client.disconnect();
        rest.extend(load.end());
        pair.lead(other);
        check(&pair, other, &rest, &stays, &client.received);
        pair.launch(leader);
        pair.follow(leader);
    }
    let took = begun.elapsed();
    let (leader, other) = (index_usize(kills % 2), index_usize(1 - kills % 2));
    client.connect(pair.fix(leader));
    client.log_on(false);
    client.settle();
    let compared = check(&pair, leader, &rest, &stays, &client.received);
    assert!(compared > 0, "some orders over FIX stayed");
    client.disconnect();
    // After an orderly stop the other server takes over at once, with exactly the same state.
    let before = pair.known(leader);
    let service = pair.servers[leader].take().unwrap();
    service.signal("TERM");
    let ended = service.end();
    assert!(ended.is_orderly(), "{}\n{}", ended.output, ended.log_text);
    pair.lead(other);
    assert_eq!(pair.known(other), before);
    println!(
        "{kills} kills in {took:?}: {} orders over REST and {} reports over FIX compared",
        rest.len(),
        client.received.len()
    );
}

/// Sends an order that is filled, or one that stays open, whose id is returned.
fn send(client: &mut FixClient, dice: &mut Rng, id: &str) -> Option<String> {
    if dice.below(3) == 0 {
        let body = format!("11={id}|55=AAPL|54={}|38=10|40=1|59=0|60={}|", 1 + dice.below(2), now());
        client.send("D", &body);
        return None;
    }
    client.order(id, "AAPL", 1, 10, "1.25");
    Some(id.to_string())
}

/// Checks that every order that a client was informed of exists once, with everything that was
/// reported. Returns how many came over FIX.
fn check(
    pair: &StandbyPair,
    at: usize,
    rest: &[String],
    stays: &BTreeSet<String>,
    count: &[ReceivedFix],
) -> usize {
    let (orders, _) = pair.known(at);
    let open: BTreeMap<&str, u64> = orders.iter().map(|(id, filled)| (id.as_str(), *filled)).collect();
    assert_eq!(open.len(), orders.len(), "an id is given once");
    for id in rest {
        assert!(open.contains_key(id.as_str()), "{id} was acknowledged and is gone");
    }
    let mut fills: BTreeSet<&str> = BTreeSet::new();
    let mut filled: BTreeMap<&str, u64> = BTreeMap::new();
    let mut reported: BTreeSet<&str> = BTreeSet::new();
    for report in count.iter().filter(|message| message.get(35) == "8") {
        // As after a loss of power, a report may arrive twice, with the same ExecID.
        if report.get(150) == "F" && fills.insert(report.get(17)) {
            let sum = filled.entry(report.get(37)).or_default();
            *sum += report.get(32).parse::<u64>().unwrap();
            assert_eq!(*sum, report.get(14).parse::<u64>().unwrap(), "a fill is missing: {}", report.text());
        }
        reported.extend(stays.get(report.get(37)).map(String::as_str));
    }
    for id in &reported {
        assert!(open.contains_key(id), "{id} was reported and is gone");
    }
    reported.len()
}
