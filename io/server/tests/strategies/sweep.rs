//! `pitlane simulate --sweep`.

use std::fs;
use std::io::Read;
use std::process::{Command, Stdio};

use pitlane_testkit::paths;
use pitlane_testkit::service::{TestFolder, folder};
use serde_json::Value;

use super::data::{MOMENTUM, file, rows};
use super::simulation::simulate;

fn results(place: &TestFolder) -> Value {
    serde_json::from_slice(&fs::read(place.join("report/sweep.json")).unwrap()).unwrap()
}

/// Runs a command line that a sweep has printed, and returns the hash of the run.
fn hash_of(command: &str) -> String {
    let output = Command::new("sh").args(["-c", command]).output().unwrap();
    let text = String::from_utf8(output.stdout).unwrap();
    let hash = text.lines().find_map(|line| line.strip_prefix("hash "));
    hash.unwrap_or_else(|| panic!("{command}: {text}{}", String::from_utf8_lossy(&output.stderr))).to_string()
}

#[test]
fn every_run_of_a_sweep_can_be_repeated_and_a_failed_one_loses_no_other() {
    let place = folder("sweep-grid");
    let files = [("ticks.csv", file(&rows("AAPL", 3_000, 1)))];
    let grid = ["--sweep", "fast=5..25:10,slow=10|30", "--jobs", "3", "--sort", "return"];
    let (code, text, log_text) = simulate(&place, &files, MOMENTUM, &grid);
    assert_eq!(code, Some(0), "{text}{log_text}");
    assert!(text.starts_with("6 of 6 runs, sorted by return"), "{text}");
    assert!(text.contains("2 runs failed") && text.contains("fast: it must be below slow"), "{text}");
    let result = results(&place);
    let runs = result["runs"].as_array().unwrap();
    let returns: Vec<f64> = runs.iter().filter_map(|run| run["return"].as_f64()).collect();
    assert!(returns.len() == 4 && returns.is_sorted_by(|a, b| a >= b), "{returns:?}");
    for run in &runs[..2] {
        let command = run["command"].as_str().unwrap();
        assert_eq!(hash_of(command), run["hash"], "{command}");
    }
    // The number of threads changes nothing.
    let csv = fs::read_to_string(place.join("report/sweep.csv")).unwrap();
    assert_eq!(csv.lines().count(), 7, "{csv}");
    simulate(
        &place,
        &files,
        MOMENTUM,
        &["--sweep", "fast=5..25:10,slow=10|30", "--jobs", "1", "--sort", "return"],
    );
    assert_eq!(fs::read_to_string(place.join("report/sweep.csv")).unwrap(), csv);
    let page = fs::read_to_string(place.join("report/sweep.html")).unwrap();
    assert_eq!(page.matches("<rect").count(), 6, "a cell for each run");
    assert!(page.contains("class=\"heat-map\"") && !page.contains("<script"));
}

#[test]
fn walk_forward_judges_a_choice_over_data_that_it_has_not_seen() {
    let place = folder("sweep-walk");
    let files = [("ticks.csv", file(&rows("AAPL", 4_000, 1)))];
    let search = ["--sweep", "fast=3|5|8", "--walk-forward", "30s,15s", "--jobs", "2"];
    let (code, text, log_text) = simulate(&place, &files, MOMENTUM, &search);
    assert_eq!(code, Some(0), "{text}{log_text}");
    let result = results(&place);
    let windows = result["windows"].as_array().unwrap();
    assert!(windows.len() >= 3, "{text}");
    let mut product = 1.0;
    for window in windows {
        assert_eq!(window["train"]["to"], window["test"]["from"]);
        assert_eq!(window["chosen"]["parameters"], window["tested"]["parameters"]);
        let of_train = |run: &&Value| run["window"] == window["train"];
        let returns =
            result["runs"].as_array().unwrap().iter().filter(of_train).map(|run| run["return"].as_f64());
        let best = returns.flatten().fold(f64::MIN, f64::max);
        assert_eq!(window["chosen"]["return"].as_f64(), Some(best));
        product *= 1.0 + window["tested"]["return"].as_f64().unwrap();
    }
    assert!((result["testedReturn"].as_f64().unwrap() - (product - 1.0)).abs() < 1e-12);
    let last = &windows[windows.len() - 1]["tested"];
    assert_eq!(hash_of(last["command"].as_str().unwrap()), last["hash"]);
    let (code, _, log_text) =
        simulate(&place, &files, MOMENTUM, &["--sweep", "fast=3", "--walk-forward", "30d,10d"]);
    assert!(code == Some(1) && log_text.contains("the data are shorter than one window"), "{log_text}");
}

#[test]
fn faults_of_a_sweep_are_reported() {
    let place = folder("sweep-faults");
    let files = [("ticks.csv", file(&rows("AAPL", 100, 1)))];
    for (grid, problem) in [
        ("NOBODY.fast=1", "there is no strategy NOBODY in the settings, only MOMENTUM"),
        ("fast", "must be such as fast=10..50:10"),
    ] {
        let (code, _, log_text) = simulate(&place, &files, MOMENTUM, &["--sweep", grid]);
        assert!(code != Some(0) && log_text.contains(problem), "{log_text}");
    }
    let (code, text, _) = simulate(&place, &files, MOMENTUM, &["--sweep", "speed=1..2"]);
    assert_eq!(code, Some(1), "no run succeeded: {text}");
    assert!(text.contains("speed: there is no such parameter"), "{text}");
}

#[test]
fn a_signal_ends_a_sweep_in_order() {
    let place = folder("sweep-stopped");
    let ticks = place.join("ticks.csv");
    fs::write(&ticks, file(&rows("AAPL", 2_000, 1))).unwrap();
    let settings = place.join("settings.toml");
    fs::write(&settings, MOMENTUM).unwrap();
    let mut command = Command::new(paths::binary());
    command
        .args(["simulate", "--sweep", "fast=1..5,slow=6..20000", "--jobs", "1", "--config"])
        .arg(&settings);
    command.args(["--set", "shard.orders_max=10000", "--data"]).arg(&ticks);
    command.arg("--report").arg(place.join("report")).stdout(Stdio::piped());
    let mut process = command.spawn().unwrap();
    // The kernel shows when the process handles the signal.
    let status = format!("/proc/{}/status", process.id());
    let handles_sigint = || {
        let text = fs::read_to_string(&status).unwrap_or_default();
        let mask = text.lines().find_map(|line| line.strip_prefix("SigCgt:")).unwrap_or("0");
        u64::from_str_radix(mask.trim(), 16).unwrap() & 2 != 0
    };
    while !handles_sigint() && process.try_wait().unwrap().is_none() {
        std::thread::yield_now();
    }
    let kill = Command::new("kill").args(["-INT", &process.id().to_string()]).status().unwrap();
    assert!(kill.success());
    let mut text = String::new();
    process.stdout.take().unwrap().read_to_string(&mut text).unwrap();
    assert_eq!(process.wait().unwrap().code(), Some(1), "{text}");
    assert!(text.contains("(stopped)"), "{text}");
    let result = results(&place);
    let finished = result["runs"].as_array().unwrap().len();
    assert!(
        result["stopped"] == true && (finished as u64) < result["planned"].as_u64().unwrap(),
        "{finished}"
    );
}
