//! Strategies that only the settings name: the follower gives them the ids of the leader.

use std::collections::BTreeMap;

use pitlane_testkit::nats_server::NatsBroker;
use pitlane_testkit::service::folder;

use super::pair::{StandbyPair, get};

fn sections(names: &[&str]) -> String {
    let section = |name: &&str| {
        format!("[[strategy]]\nname = {name:?}\nkind = \"market-maker\"\nsecurities = [1]\nstart = false\n")
    };
    names.iter().map(section).collect()
}

/// Returns the ids of the strategies of a server.
fn ids(pair: &StandbyPair, at: usize) -> BTreeMap<String, u64> {
    let rows = get(pair.server(at), "/rest/strategy");
    let id =
        |row: &serde_json::Value| (row["name"].as_str().unwrap().to_string(), row["id"].as_u64().unwrap());
    rows.as_array().unwrap().iter().map(id).collect()
}

#[test]
fn an_added_strategy_has_one_id_on_both_servers() {
    let place = folder("standby-strategies");
    let broker = NatsBroker::start(&place);
    let mut pair = StandbyPair::at(&place, &broker.url());
    pair.sections = sections(&["DIP", "WAVE"]);
    pair.launch(0);
    pair.lead(0);
    // The follower has another order and another name, which comes first in the alphabet.
    pair.sections = sections(&["WAVE", "ALPHA", "DIP"]);
    pair.launch(1);
    pair.follow(1);
    let before = ids(&pair, 0);
    pair.kill(0);
    pair.lead(1);
    let mut after = ids(&pair, 1);
    let alpha = after.remove("ALPHA").unwrap();
    assert_eq!(after, before);
    assert!(before.contains_key("DIP") && before.values().all(|id| *id < alpha), "{before:?} {alpha}");
}
