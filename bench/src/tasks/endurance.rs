//! FIX orders over loopback at rising rates, and for a long time at one rate: where the knee is,
//! and whether anything grows or drifts below it.

use std::path::PathBuf;

use clap::Args;
use pitlane_bench::budget::BudgetLine;
use pitlane_bench::conditions::Pinning;
use pitlane_bench::convert::whole;
use pitlane_bench::fix_wire::{FixServerKind, SteadyLoad, open_loop};
use pitlane_bench::goals::{self, GoalVerdict};
use pitlane_bench::measure::percentiles;
use pitlane_bench::progress::ProgressLine;
use pitlane_bench::report::recording::Recording;
use pitlane_bench::soak::{MemorySample, Soak};
use pitlane_bench::sweep::{RateSweep, rising_rates};
use pitlane_engine::index::index_usize;

use super::RunEnvironment;
use super::results::write_results;
use crate::{TaskError, TaskVerdicts};

/// Orders that stay open during the run, so that the state is as large at the end as at the
/// beginning.
pub(crate) const OPEN_MAX: usize = 1_000;

#[derive(Args, Clone)]
pub(crate) struct SweepArgs {
    /// The lowest rate, orders a second.
    #[arg(long, default_value_t = 2_000)]
    from: u64,
    /// The highest rate, orders a second.
    #[arg(long, default_value_t = 1_000_000)]
    to: u64,
    /// Seconds at each rate.
    #[arg(long, default_value_t = 4)]
    seconds: u64,
    /// Folder for the results: `.hgrm`, JSON, SVG and a page.
    #[arg(long)]
    out: Option<PathBuf>,
}

#[derive(Args, Clone)]
pub(crate) struct SoakArgs {
    /// Orders a second; default: half the knee, which is determined first.
    #[arg(long)]
    rate: Option<u64>,
    #[arg(long, default_value_t = 30)]
    minutes: u64,
    /// Folder for the results: `.hgrm`, JSON, SVG and a page.
    #[arg(long)]
    out: Option<PathBuf>,
}

pub(crate) fn sweep(environment: &RunEnvironment, rates: &SweepArgs) -> Result<TaskVerdicts, TaskError> {
    let sweep = run_rising(&environment.pinning, rates)?;
    match sweep.knee() {
        Some(knee) => println!("\nthe knee is at {:.0} orders/s", knee.per_s_planned),
        None => println!("\nnot even the lowest rate is sustained"),
    }
    if let Some(out) = &rates.out {
        let steps: Vec<&Recording> = sweep.steps.iter().collect();
        write_results(out, environment, "FIX order to first report", &steps, &[])?;
    }
    Ok(TaskVerdicts::default())
}

pub(crate) fn soak(environment: &RunEnvironment, long: &SoakArgs) -> Result<TaskVerdicts, TaskError> {
    let rate = match long.rate {
        Some(rate) => rate,
        None => {
            let rates = SweepArgs { from: 2_000, to: 1_000_000, seconds: 3, out: None };
            let knee = run_rising(&environment.pinning, &rates)?.knee().map(|knee| knee.per_s_planned);
            whole(knee.ok_or("not even the lowest rate is sustained")? / 2.0).unsigned_abs()
        }
    };
    println!(
        "\n{} minutes at {rate} orders/s, each cancelled when {OPEN_MAX} newer ones are open",
        long.minutes
    );
    let load = SteadyLoad { rate, orders: index_usize(rate * 60 * long.minutes), open_max: Some(OPEN_MAX) };
    let (mut memory, mut progress) = (Vec::new(), ProgressLine::default());
    let recording = open_loop(FixServerKind::Pitlane, &environment.pinning, load, |process, seconds| {
        memory.extend(MemorySample::of(process, seconds));
        progress.show(&format!("of {} minutes at {rate} orders/s", long.minutes));
    })?;
    drop(progress);
    println!("{}", percentiles("all", &recording.all));
    let soak = Soak { recording, memory };
    let goals: Vec<GoalVerdict> = soak
        .growth()
        .map(|growth| {
            GoalVerdict::at_most("memory", growth, goals::GROWTH_RATIO_MAX, "×").of(BudgetLine::Growth)
        })
        .into_iter()
        .chain(soak.drift().map(|drift| GoalVerdict::at_most("99 %", drift, goals::DRIFT_RATIO_MAX, "×")))
        .collect();
    if let Some(out) = &long.out {
        write_results(out, environment, "FIX order to first report, for long", &[&soak.recording], &goals)?;
    }
    let mib = |sample: Option<&MemorySample>| {
        sample.map_or(0.0, |sample| sample.anonymous_bytes as f64 / (1 << 20) as f64)
    };
    println!(
        "memory of its own: {:.1} MiB at the begin, {:.1} in the middle, {:.1} at the end",
        mib(soak.memory.first()),
        mib(soak.memory.get(soak.memory.len() / 2)),
        mib(soak.memory.last())
    );
    match (soak.growth(), soak.drift()) {
        (Some(growth), Some(drift)) => {
            println!("last quarter beside the second: memory {growth:.3} ×, 99 % {drift:.3} ×");
        }
        _ => println!("too short to distinguish growth from warm-up"),
    }
    println!("{}", if soak.is_steady() { "steady" } else { "NOT STEADY" });
    Ok(TaskVerdicts { wrong: !soak.is_steady(), goals })
}

fn run_rising(pinning: &Pinning, rates: &SweepArgs) -> Result<RateSweep, TaskError> {
    println!("orders/s planned and reached; from the planned moment to the first report");
    RateSweep::run_rising(&rising_rates(rates.from, rates.to), |rate| {
        let load = SteadyLoad { rate, orders: index_usize(rate * rates.seconds), open_max: Some(OPEN_MAX) };
        let step = open_loop(FixServerKind::Pitlane, pinning, load, |_, _| {})?;
        println!("{}  reached {:.0}", percentiles(&rate.to_string(), &step.all), step.per_s_reached);
        Ok(step)
    })
}
