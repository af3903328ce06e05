//! FIX orders over loopback at rising rates, and for a long time at one rate: where the knee is,
//! and whether anything grows or drifts below it.

use std::path::PathBuf;

use clap::Args;
use pitlane_bench::budget::Line;
use pitlane_bench::conditions::Pinning;
use pitlane_bench::fix_wire::{Peer, Steady, open_loop};
use pitlane_bench::goals::{self, Verdict};
use pitlane_bench::measure::percentiles;
use pitlane_bench::progress::Progress;
use pitlane_bench::report::recording::Recording;
use pitlane_bench::soak::{Sample, Soak};
use pitlane_bench::sweep::{Sweep, ladder};

use super::Site;
use super::results::keep;
use crate::{Failure, Verdicts};

/// Orders that stay open during the run, so that the state is as large at the end as at the
/// beginning.
const OPEN_MAX: usize = 1_000;

#[derive(Args, Clone)]
pub struct Rates {
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
pub struct Long {
    /// Orders a second; default: half the knee, which is determined first.
    #[arg(long)]
    rate: Option<u64>,
    #[arg(long, default_value_t = 30)]
    minutes: u64,
    /// Folder for the results: `.hgrm`, JSON, SVG and a page.
    #[arg(long)]
    out: Option<PathBuf>,
}

pub fn sweep(site: &Site, rates: &Rates) -> Result<Verdicts, Failure> {
    let sweep = climb(&site.pinning, rates)?;
    match sweep.knee() {
        Some(knee) => println!("\nthe knee is at {:.0} orders/s", knee.per_s_planned),
        None => println!("\nnot even the lowest rate is kept up with"),
    }
    if let Some(out) = &rates.out {
        let steps: Vec<&Recording> = sweep.steps.iter().collect();
        keep(out, site, "FIX order to first report", &steps, &[])?;
    }
    Ok(Verdicts::default())
}

pub fn soak(site: &Site, long: &Long) -> Result<Verdicts, Failure> {
    let rate = match long.rate {
        Some(rate) => rate,
        None => {
            let rates = Rates { from: 2_000, to: 1_000_000, seconds: 3, out: None };
            let knee = climb(&site.pinning, &rates)?.knee().map(|knee| knee.per_s_planned);
            (knee.ok_or("not even the lowest rate is kept up with")? / 2.0) as u64
        }
    };
    println!(
        "\n{} minutes at {rate} orders/s, each cancelled when {OPEN_MAX} newer ones are there",
        long.minutes
    );
    let load = Steady { rate, orders: (rate * 60 * long.minutes) as usize, open_max: Some(OPEN_MAX) };
    let (mut memory, mut progress) = (Vec::new(), Progress::default());
    let recording = open_loop(Peer::Pitlane, &site.pinning, load, |process, seconds| {
        memory.extend(Sample::of(process, seconds));
        progress.show(&format!("of {} minutes at {rate} orders/s", long.minutes));
    })?;
    drop(progress);
    println!("{}", percentiles("all", &recording.all));
    let soak = Soak { recording, memory };
    let goals: Vec<Verdict> = soak
        .growth()
        .map(|growth| Verdict::at_most("memory", growth, goals::GROWTH_RATIO_MAX, "×").of(Line::Growth))
        .into_iter()
        .chain(soak.drift().map(|drift| Verdict::at_most("99 %", drift, goals::DRIFT_RATIO_MAX, "×")))
        .collect();
    if let Some(out) = &long.out {
        keep(out, site, "FIX order to first report, for long", &[&soak.recording], &goals)?;
    }
    let mib = |sample: Option<&Sample>| {
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
        _ => println!("too short to tell growth from getting warm"),
    }
    println!("{}", if soak.is_steady() { "steady" } else { "NOT STEADY" });
    Ok(Verdicts { wrong: !soak.is_steady(), goals })
}

fn climb(pinning: &Pinning, rates: &Rates) -> Result<Sweep, Failure> {
    println!("orders/s planned and reached; from the planned moment to the first report");
    Sweep::climb(&ladder(rates.from, rates.to), |rate| {
        let load = Steady { rate, orders: (rate * rates.seconds) as usize, open_max: Some(OPEN_MAX) };
        let step = open_loop(Peer::Pitlane, pinning, load, |_, _| {})?;
        println!("{}  reached {:.0}", percentiles(&rate.to_string(), &step.all), step.per_s_reached);
        Ok(step)
    })
}
