//! Strategies that the settings name and the reference data of the files do not.

use std::collections::BTreeMap;

use pitlane_testkit::service::{ServiceProcess, TestFolder, folder};

use super::data::{MOMENTUM, file, rows};
use super::embedded::{get, start, strategy, until};
use super::replay::simulated;
use super::simulation::{report, simulate};

fn sections(names: &[&str]) -> String {
    names.iter().map(|name| MOMENTUM.replace("\"MOMENTUM\"", &format!("{name:?}"))).collect()
}

fn serve(place: &TestFolder, names: &[&str]) -> ServiceProcess {
    start(place, &sections(names), &["journal.level=os", "feed.on=false"])
}

/// Returns the ids of all strategies.
fn ids(service: &ServiceProcess) -> BTreeMap<String, u64> {
    let rows = get(service, "/rest/strategy");
    let id =
        |row: &serde_json::Value| (row["name"].as_str().unwrap().to_string(), row["id"].as_u64().unwrap());
    rows.as_array().unwrap().iter().map(id).collect()
}

#[test]
fn a_name_keeps_its_id_over_restarts_whatever_comes_and_goes() {
    let place = folder("strategies-added");
    let service = serve(&place, &["WAVE", "DIP"]);
    until(|| strategy(&service, "DIP")["phase"] == "RUNNING");
    let first = ids(&service);
    // A reload of the files keeps what the settings added.
    let (status, body) = service.ask("POST /rest/cache/clear-all");
    assert_eq!(status, 200, "{body}");
    assert_eq!(ids(&service), first);
    service.signal("KILL");
    service.end();
    // Another order, and a name that comes first in the alphabet.
    let service = serve(&place, &["ALPHA", "DIP", "WAVE"]);
    let mut second = ids(&service);
    let alpha = second.remove("ALPHA").unwrap();
    assert!(second == first && first.values().all(|id| *id < alpha), "{first:?} {second:?} {alpha}");
    service.signal("TERM");
    assert!(service.end().is_orderly());
    // One is gone, and comes back beside a new one.
    let service = serve(&place, &["ALPHA"]);
    service.signal("TERM");
    assert!(service.end().is_orderly());
    let service = serve(&place, &["BETA", "DIP"]);
    let third = ids(&service);
    assert_eq!((third["DIP"], third["ALPHA"]), (first["DIP"], alpha));
    assert!(third["BETA"] > alpha, "no id is given to a second strategy: {third:?}");
    until(|| strategy(&service, "DIP")["phase"] == "RUNNING");
}

#[test]
fn a_simulation_adds_strategies_too() {
    let place = folder("simulate-added");
    let files = [("aapl.csv", file(&rows("AAPL", 1_000, 5)))];
    let of = |name: &str| {
        let settings = MOMENTUM.replace("[\"AAPL\", 2]", "[\"AAPL\"]").replace("MOMENTUM", name);
        let (code, text, log_text) = simulate(&place, &files, &settings, &["--quiet"]);
        assert_eq!(code, Some(0), "{text}{log_text}");
        (simulated(&report(&place)), log_text)
    };
    let (known, log_text) = of("MOMENTUM");
    assert!(known.len() > 10 && log_text.is_empty(), "{log_text}");
    assert_eq!(of("DIP"), (known.clone(), String::new()));
    // A name that resembles another one may be a typing error.
    let (added, log_text) = of("MOMENTUN");
    assert_eq!(added, known);
    assert!(log_text.starts_with("warning: the settings add the strategy MOMENTUN"), "{log_text}");
    assert!(log_text.contains("did you mean MOMENTUM?"), "{log_text}");
}
