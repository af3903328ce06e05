//! A given number of kills, losses of power and hostile sessions in one run, with a table at the
//! end: `make campaign`.

use std::env;
use std::time::Instant;

use pitlane_engine::index::index_usize;
use pitlane_engine::rng::Rng;
use pitlane_testkit::disk_image::Mounted;
use pitlane_testkit::service::TestFolder;

use crate::RUNS_PER_LINE;
use crate::disturbance::{Abilities, can_limit_memory};
use crate::findings::{ChaosFindings, FindingKind};
use crate::hostile::{self, HostileProtocol};
use crate::number;
use crate::plan::{ChaosPlan, PlannedRun};
use crate::series::RunSeries;
use crate::site::TestSite;
use crate::traders::ServiceAddresses;

/// Hostile sessions between two checks of the service.
const VISIT: u64 = 50;

/// Determines what is possible on this machine.
pub(crate) fn abilities() -> Abilities {
    let root = TestFolder::new("chaos", "probe");
    Abilities {
        image: Mounted::new(&root.join("disk.img"), "16M", root.join("disk")).is_some(),
        // Set by the caller that has given us a separate network.
        net: env::var("PITLANE_CHAOS_NET").is_ok_and(|word| word == "own"),
        groups: can_limit_memory(),
    }
}

#[test]
fn the_campaign() {
    let Some(kills) = number("PITLANE_CAMPAIGN_KILLS") else { return };
    let cuts = number("PITLANE_CAMPAIGN_CUTS").unwrap_or(0);
    let sessions = number("PITLANE_CAMPAIGN_SESSIONS").unwrap_or(0);
    let seed = number("PITLANE_SEED").unwrap_or(1);
    let begun = Instant::now();
    let mut rows = vec![
        CampaignRow::of("kills", kills, lines("kills", seed, kills, false, ChaosPlan::killed)),
        CampaignRow::of("power cuts", cuts, lines("cuts", seed, cuts, true, ChaosPlan::cut)),
    ];
    for protocol in HostileProtocol::ALL {
        let findings = visits(protocol, seed, sessions);
        rows.push(CampaignRow::of(&format!("hostile {protocol:?}"), sessions, findings));
    }
    println!("seed {seed}, {:.0} s", begun.elapsed().as_secs_f64());
    println!(
        "{:<20}{:>8}{:>8}{:>9}{:>12}{:>8}{:>8}",
        "what", "done", "lost", "doubled", "unbalanced", "broken", "panics"
    );
    for CampaignRow { what, done, findings } in &rows {
        let [lost, doubled, unbalanced, broken, panics] = [
            FindingKind::Lost,
            FindingKind::Doubled,
            FindingKind::Unbalanced,
            FindingKind::Broken,
            FindingKind::Panic,
        ]
        .map(|kind| findings.count(kind));
        println!("{what:<20}{done:>8}{lost:>8}{doubled:>9}{unbalanced:>12}{broken:>8}{panics:>8}");
    }
    rows.iter().for_each(|row| print!("{}", row.findings));
    assert!(rows.iter().all(|row| row.findings.is_clean()));
}

struct CampaignRow {
    what: String,
    done: u64,
    findings: ChaosFindings,
}

impl CampaignRow {
    fn of(what: &str, done: u64, findings: ChaosFindings) -> CampaignRow {
        println!("{done} {what}");
        CampaignRow { what: what.to_string(), done, findings }
    }
}

/// Runs so many processes of a kind, on as many folders as needed.
fn lines(
    name: &str,
    seed: u64,
    planned_runs: u64,
    on_image: bool,
    next: fn(&mut ChaosPlan) -> PlannedRun,
) -> ChaosFindings {
    let mut findings = ChaosFindings::default();
    for (number, first) in (0..planned_runs).step_by(index_usize(RUNS_PER_LINE)).enumerate() {
        let seed = seed + number as u64;
        let Some(site) = TestSite::with_hours(&format!("{name}-{number}"), on_image) else {
            findings.add(FindingKind::Broken, "no disk can be mounted here".to_string());
            return findings;
        };
        let mut plan = ChaosPlan::new(seed, Abilities::default());
        let mut line = RunSeries::new(site, seed);
        for _ in first..planned_runs.min(first + RUNS_PER_LINE) {
            line.live(&next(&mut plan));
        }
        line.close();
        findings.take(line.findings);
        eprintln!("{} of {planned_runs} {name}", planned_runs.min(first + RUNS_PER_LINE));
    }
    findings
}

/// Runs so many hostile sessions with one service, whose health is checked in between.
fn visits(protocol: HostileProtocol, seed: u64, sessions: u64) -> ChaosFindings {
    let mut findings = ChaosFindings::default();
    if sessions == 0 {
        return findings;
    }
    let site = TestSite::new(&format!("hostile-{protocol:?}"), false).expect("a folder can be made");
    let service = site.still();
    let addresses = ServiceAddresses::of(&service);
    let mut dice = Rng::named(seed, 4);
    for first in (0..sessions).step_by(index_usize(VISIT)) {
        let wanted = VISIT.min(sessions - first);
        let let_in = hostile::visit(protocol, &addresses, wanted, &mut dice);
        if let_in < wanted {
            findings.add(FindingKind::Broken, format!("{protocol:?}: {let_in} of {wanted} were let in"));
        }
        if service.ask("GET /health/ready").0 != 200 {
            findings.add(FindingKind::Broken, format!("{protocol:?}: not ready after {first} sessions"));
        }
    }
    service.signal("TERM");
    let ended = service.end();
    if !ended.is_orderly() {
        findings.add(FindingKind::Panic, format!("{protocol:?}: {}", ended.log_text));
    }
    findings
}
