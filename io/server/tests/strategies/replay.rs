//! The same strategy over the same data, simulated and embedded; and recorded data.

use std::fs;

use pitlane_testkit::paths::repository;
use pitlane_testkit::service::folder;
use serde_json::Value;

use super::data::{MOMENTUM, file, rows};
use super::embedded::{get, start, strategy, until};
use super::simulation::{report, simulate};

/// Returns quantity and price of each trade of a simulation.
pub(crate) fn simulated(report: &Value) -> Vec<(f64, f64)> {
    let number = |row: &Value, name: &str| row[name].as_str().unwrap().parse().unwrap();
    let rows = report["trades"].as_array().unwrap();
    rows.iter().map(|row| (number(row, "quantity"), number(row, "price"))).collect()
}

/// Returns the same of the service, oldest first.
pub(crate) fn traded(rows: &Value) -> Vec<(f64, f64)> {
    let number = |row: &Value, name: &str| row[name].as_f64().unwrap();
    let rows = rows.as_array().unwrap().iter().rev();
    rows.map(|row| (number(row, "quantity"), number(row, "price"))).collect()
}

#[test]
fn an_embedded_strategy_acts_as_in_simulation() {
    let place = folder("replay-same");
    let files = [("aapl.csv", file(&rows("AAPL", 3_000, 5)))];
    let settings = MOMENTUM.replace("[\"AAPL\", 2]", "[\"AAPL\"]");
    let (code, text, log_text) = simulate(&place, &files, &settings, &[]);
    assert_eq!(code, Some(0), "{text}{log_text}");
    let expected = simulated(&report(&place));
    assert!(expected.len() > 50, "{text}");

    let data = format!("replay.data={}", place.join("aapl.csv").display());
    let live = ["replay.speed=0", &data, "risk.strategies.max_orders_per_s=0", "topology.shards=1"];
    let service = start(&place, &settings, &live);
    let all = || get(&service, "/rest/transaction/daily?strategy=MOMENTUM");
    until(|| all().as_array().unwrap().len() >= expected.len());
    assert_eq!(traded(&all()), expected);
    assert_eq!(strategy(&service, "MOMENTUM")["phase"], "RUNNING");
}

#[test]
fn a_market_that_was_recorded_can_be_simulated() {
    let place = folder("record");
    let recorded = place.join("recorded.csv");
    let record = format!("record.file={}", recorded.display());
    let levels = place.join("levels.csv");
    let record_levels = format!("record.levels_file={}", levels.display());
    let service = start(&place, "", &["feed.rate=5000", &record, &record_levels]);
    until(|| service.metric("pitlane_ticks_total") > 2_000);
    service.signal("TERM");
    assert!(service.end().is_orderly());
    let text = fs::read_to_string(&recorded).unwrap();
    // Unchanged prices are not written.
    assert!(text.lines().count() > 1_000, "{}", text.lines().count());
    let (code, output, log_text) = simulate(&place, &[("recorded.csv", text)], MOMENTUM, &[]);
    assert_eq!(code, Some(0), "{output}{log_text}");
    let ticks = report(&place)["ticks"].as_u64().unwrap();
    assert!(ticks > 1_000);
    let text = fs::read_to_string(&recorded).unwrap();
    let levels = fs::read_to_string(&levels).unwrap();
    let count = levels.lines().count() as u64 - 1;
    assert!(count > 1_000, "{count}");
    let files = [("recorded.csv", text), ("levels.csv", levels)];
    let (code, output, log_text) = simulate(&place, &files, MOMENTUM, &[]);
    assert_eq!(code, Some(0), "{output}{log_text}");
    assert_eq!(report(&place)["ticks"].as_u64().unwrap(), ticks + count);
}

#[test]
fn a_file_of_nasdaq_is_replayed_as_a_market() {
    let place = folder("replay-itch");
    let path = repository().join("tests/data/formats/03012024.NASDAQ_ITCH50.gz");
    let data = format!("replay.data={}", path.display());
    let service = start(&place, "", &["feed.on=false", "replay.speed=0", &data]);
    // Quotes and trades are ticks, levels are not.
    until(|| service.metric("pitlane_ticks_total") >= 12);
}
