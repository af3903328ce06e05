//! FIX orders at the levels of the journal, which decide how long a report waits: for the page
//! cache, for the disk, or for the disk and the broker of the standby.

use std::path::PathBuf;

use clap::Args;
use pitlane_bench::budget::BudgetLine;
use pitlane_bench::fix_wire::{FixServer, FixServerKind, LoadTarget, SteadyLoad, steady_load};
use pitlane_bench::goals::{self, GoalVerdict};
use pitlane_bench::journal::TempFolder;
use pitlane_bench::measure::{highest, median};
use pitlane_bench::nats::NatsServer;
use pitlane_bench::program;
use pitlane_bench::report::recording::Recording;

use super::results::write_results;
use super::{NO_SECOND_CORE, RunEnvironment};
use crate::{TaskError, TaskVerdicts};

#[derive(Args, Clone)]
pub(crate) struct LevelsArgs {
    /// Orders per second.
    #[arg(long, default_value_t = 1_000)]
    pub rate: u64,
    /// Orders of each round.
    #[arg(long, default_value_t = 5_000)]
    pub orders: usize,
    #[arg(long, default_value_t = 3)]
    pub rounds: usize,
    /// Folder for the latencies: `.hgrm`, CSV, JSON, SVG and a page.
    #[arg(long)]
    pub out: Option<PathBuf>,
    /// Exit with 1 where a goal is missed.
    #[arg(long)]
    pub check: bool,
}

const LEVELS: [&str; 3] = ["os", "disk", "replicated"];

/// Measures the levels in alternation, so that they meet the same conditions. Without NATS the
/// level `replicated` is left out.
pub(crate) fn levels(environment: &RunEnvironment, task: &LevelsArgs) -> Result<TaskVerdicts, TaskError> {
    if !environment.pinning.has_two_cores() {
        println!("levels {NO_SECOND_CORE}");
        return Ok(TaskVerdicts::default());
    }
    let folder = TempFolder::new(None);
    let mut rounds = LEVELS.map(|_| Vec::new());
    for _ in 0..task.rounds.max(1) {
        for (level, recordings) in LEVELS.iter().zip(&mut rounds) {
            recordings.extend(measure(environment, task, level, &folder)?);
        }
    }
    if rounds[2].is_empty() {
        println!("level replicated is left out: {}", program::absent("NATS", "nats-server"));
    }
    let at = |recordings: &[Recording], quantile: f64| -> Vec<f64> {
        recordings.iter().map(|round| round.all.value_at_quantile(quantile) as f64 / 1e3).collect()
    };
    for (level, recordings) in LEVELS.iter().zip(&rounds).filter(|(_, recordings)| !recordings.is_empty()) {
        let [p50, p99, p999] = [0.5, 0.99, 0.999].map(|quantile| at(recordings, quantile));
        let worst = highest(&p50);
        println!(
            "fix at level {level}, {} orders/s: median {:.1} µs (worst round {worst:.1}), p99 {:.1} µs, p99.9 {:.1} µs",
            task.rate,
            median(&p50),
            median(&p99),
            median(&p999)
        );
    }
    let mut goals = Vec::new();
    if !rounds[2].is_empty() {
        let replicated = median(&at(&rounds[2], 0.5));
        let verdict = GoalVerdict::at_most("replicated", replicated, goals::REPLICATED_US_MAX, "µs");
        goals.push(verdict.of(BudgetLine::Replicated));
    }
    println!();
    if let Some(out) = &task.out {
        let recordings: Vec<_> = rounds.iter().filter_map(|rounds| rounds.last()).collect();
        write_results(out, environment, "FIX order to first report, by level", &recordings, &goals)?;
    }
    Ok(TaskVerdicts { wrong: false, goals })
}

/// Measures one level at a new service; `None` if its broker is not installed.
fn measure(
    environment: &RunEnvironment,
    task: &LevelsArgs,
    level: &str,
    folder: &TempFolder,
) -> Result<Option<Recording>, TaskError> {
    let pinning = &environment.pinning;
    // The broker has the core of the service, whose threads sleep so that it gets its turn.
    let mut settings = vec![format!("journal.level={level}"), "topology.idle=adaptive".to_string()];
    let mut broker = None;
    if level == "replicated" {
        let Some(nats) = NatsServer::with_streams(pinning, folder.cleared()) else { return Ok(None) };
        let standby = ["standby.group=bench".to_string(), "standby.broker_syncs=true".to_string()];
        settings.extend([format!("nats.url={}", nats.url())].into_iter().chain(standby));
        broker = Some(nats);
    }
    let server = FixServer::with_settings(pinning, &settings)?;
    let target = LoadTarget::new(server.address, FixServerKind::Pitlane);
    let load = SteadyLoad { rate: task.rate, orders: task.orders, open_max: None };
    let mut recording = steady_load(&target, 0, load, |_| {})?.read;
    recording.name = format!("fix-{level}-{}", task.rate);
    // The service ends before its broker.
    drop(server);
    drop(broker);
    Ok(Some(recording))
}
