//! Chaos tests: the real binary, real clients of every kind under load, and every fault that
//! happens to machines. After each process the next one starts on the same data, and what each
//! client received is compared with its state: nothing is lost, nothing is doubled, the books are
//! consistent.
//!
//! A short form runs with every test. `make chaos` (`FOR=` seconds, `SEED=`) runs longer and does
//! what needs privileges: a separate disk that fills up, a separate network that loses packets,
//! memory limits. `make campaign` runs a given number of kills, losses of power and hostile
//! sessions, and prints one table.

mod audit;
mod campaign;
mod subscribers;
mod findings;
mod fix_trader;
mod hostile;
mod series;
mod traders;
mod site;
mod plan;
mod rest_trader;
mod received;
mod disturbance;

use std::env;
use std::time::{Duration, Instant};

use pitlane_testkit::disk_image::sh;

use disturbance::Abilities;
use findings::{ChaosFindings, FindingKind};
use plan::ChaosPlan;
use series::RunSeries;
use site::TestSite;

/// Processes of the short form.
const RUNS_SHORT: u64 = 9;
/// Processes on one folder: each recovers and checks everything before it.
const RUNS_PER_LINE: u64 = 24;

/// Returns a number of the environment.
fn number(name: &str) -> Option<u64> {
    let text = env::var(name).ok()?;
    Some(text.parse().unwrap_or_else(|_| panic!("{name} should be a number, not {text:?}")))
}

#[test]
fn nothing_acknowledged_is_lost_or_doubled_under_any_disturbance() {
    let seed = number("PITLANE_SEED").unwrap_or(1);
    let Some(seconds) = number("PITLANE_CHAOS") else {
        let site = TestSite::new("short", false).expect("a folder can be made");
        let findings = planned_runs(site, seed, Abilities::default(), |planned_run| planned_run < RUNS_SHORT);
        assert!(findings.is_clean(), "{findings}");
        return;
    };
    let end = Instant::now() + Duration::from_secs(seconds);
    let able = campaign::abilities();
    println!("here it can be tried with {able:?}");
    let (mut findings, mut lived) = (ChaosFindings::default(), 0);
    for line in 0.. {
        if Instant::now() >= end {
            break;
        }
        let site = TestSite::new(&format!("line-{line}"), able.image).expect("a place can be made");
        let goes_on = |planned_run| planned_run < RUNS_PER_LINE && (planned_run == 0 || Instant::now() < end);
        findings.take(planned_runs(site, seed + line, able, |planned_run| {
            lived += u64::from(goes_on(planned_run));
            goes_on(planned_run)
        }));
    }
    println!("{lived} runs, from seed {seed}\n{findings}");
    assert!(findings.is_clean());
}

/// Runs disturbed processes for as long as `goes_on` permits.
fn planned_runs(
    site: TestSite,
    seed: u64,
    able: Abilities,
    mut goes_on: impl FnMut(u64) -> bool,
) -> ChaosFindings {
    let mut plan = ChaosPlan::new(seed, able);
    let mut line = RunSeries::new(site, seed);
    for planned_run in 0.. {
        if !goes_on(planned_run) {
            break;
        }
        line.live(&plan.troubled());
    }
    line.close();
    line.findings
}

/// Checks the checker: data that are put back to an earlier state lack something that was
/// acknowledged.
#[test]
fn a_lost_order_is_detected() {
    let site = TestSite::new("teeth", false).expect("a folder can be made");
    let (data, kept) = (site.data(), site.data().with_extension("kept"));
    let copy = |from: &std::path::Path, to: &std::path::Path| {
        sh(&format!("rm -rf {1} && cp -a {0} {1}", from.display(), to.display()))
    };
    let mut plan = ChaosPlan::new(1, Abilities::default());
    let mut line = RunSeries::new(site, 1);
    line.live(&plan.planned_run(plan::RunEnd::Kill));
    assert!(copy(&data, &kept));
    line.live(&plan.planned_run(plan::RunEnd::Kill));
    assert!(line.findings.is_clean(), "{}", line.findings);
    assert!(copy(&kept, &data));
    line.look_back();
    assert!(line.findings.count(FindingKind::Lost) > 0, "{}", line.findings);
}
