//! Simulation mode: the configured strategies over historical data, with a virtual clock that the
//! data drive.
//!
//! ```text
//! files ─► Merge ─► SimulatedMarket: feed ─► shards with their venues ─► runner: strategies ─► orders ─┐
//!                    ▲                                                                                 │
//!                    └── the same instant, until no part has work left ◄───────────────────────────────┘
//!                    └► SimulationAccount: equity by samples, trades ─► SimulationReport: text, JSON, HTML
//! ```
//!
//! No part reads a clock or uses random numbers without a seed: the same data, settings and seed
//! give the same run, and its hash shows that. The duration of the run and the form of the report
//! are not part of the hash.
//!
//! [`sweep`] runs a simulation for each point of a grid of parameters.

pub mod account;
mod assumptions;
pub mod benchmark;
mod fees;
pub mod html;
pub mod latency;
pub mod progress;
pub mod records;
pub mod report;
pub mod report_files;
mod report_json;
mod report_text;
pub mod rig;
mod round_trips;
mod run_hash;
mod sampling;
pub mod source;
pub mod sweep;
pub mod totals;

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Instant;

use pitlane_config::{Config, StrategyConfig};
use pitlane_engine::refdata::RefData;
use pitlane_engine::time::Timestamp;
use pitlane_market_data::{DataError, ReadOptions};
use pitlane_strategy::registry::Registry;

use self::latency::Latencies;
use self::progress::SimulationProgress;
use self::report::{SimulationReport, Speed};
use self::rig::SimulatedMarket;
use self::source::TickSource;

/// Rows between two readings of the clock.
const ROWS_PER_LOOK: u64 = 1 << 16;

/// Reason why there is no report.
#[derive(Debug)]
pub enum SimulateError {
    Data(DataError),
    /// The time range has no data.
    NoData,
    NoStrategies,
    /// The name of a strategy, and what is wrong with its kind or its parameters.
    Strategy(String, String),
    /// A file of latencies cannot be used.
    Latency(String),
    /// The caller has stopped the run.
    Stopped,
}

impl fmt::Display for SimulateError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            SimulateError::Data(error) => error.fmt(f),
            SimulateError::NoData => f.write_str("simulation.data: there is nothing between from and to"),
            SimulateError::NoStrategies => {
                f.write_str("there is no [[strategy]] in the settings, so there is nothing to simulate")
            }
            SimulateError::Strategy(name, problem) => write!(f, "{name}: {problem}"),
            SimulateError::Latency(problem) => f.write_str(problem),
            SimulateError::Stopped => f.write_str("stopped"),
        }
    }
}

impl std::error::Error for SimulateError {}

impl From<DataError> for SimulateError {
    fn from(error: DataError) -> SimulateError {
        SimulateError::Data(error)
    }
}

/// Runs the whole simulation, with strategies of the kinds of the registry.
pub fn simulate(
    config: &Config,
    reference: &Arc<RefData>,
    registry: &Registry,
    progress: &mut SimulationProgress,
) -> Result<SimulationReport, SimulateError> {
    let mut data = open_data(config, reference)?;
    simulate_over(config, reference, registry, &mut data, progress, &AtomicBool::new(false))
}

/// Opens the files of the settings, from the beginning of the warm-up on.
pub fn open_data(
    config: &Config,
    reference: &Arc<RefData>,
) -> Result<pitlane_market_data::Merge, SimulateError> {
    let settings = &config.simulation;
    let options = ReadOptions::of(settings);
    Ok(pitlane_market_data::open(&settings.data, reference, &options, data_range(config))?)
}

/// Returns the range of the data that a run reads, warm-up included.
pub fn data_range(config: &Config) -> (Timestamp, Timestamp) {
    let settings = &config.simulation;
    let warm = settings.from.map(|from| Timestamp(from.0.saturating_sub(settings.prefeed_ns)));
    (warm.unwrap_or(Timestamp::ZERO), settings.to.unwrap_or(Timestamp::MAX))
}

/// Runs a simulation over any source of rows. `stop` ends it early, without a report.
pub fn simulate_over(
    config: &Config,
    reference: &Arc<RefData>,
    registry: &Registry,
    data: &mut impl TickSource,
    progress: &mut SimulationProgress,
    stop: &AtomicBool,
) -> Result<SimulationReport, SimulateError> {
    if config.strategies.is_empty() {
        return Err(SimulateError::NoStrategies);
    }
    config.strategies.iter().try_for_each(|strategy| check(strategy, reference, registry))?;
    let settings = &config.simulation;
    let latencies = Latencies::of(settings).map_err(SimulateError::Latency)?;
    let reference = match settings.fee_tiers.is_empty() {
        true => reference.clone(),
        false => Arc::new(RefData::clone(reference).without_commissions()),
    };
    let begun = Instant::now();
    let first = data.peek().ok_or(SimulateError::NoData)?;
    let from = settings.from.unwrap_or(first.plus(settings.prefeed_ns));
    let mut rig = SimulatedMarket::new(config, &reference, registry, first.min(from), from, &latencies);
    let mut rows: u64 = 0;
    while let Some(row) = data.next_row()? {
        rig.handle(&row);
        rows += 1;
        if rows.is_multiple_of(ROWS_PER_LOOK) {
            let (done, all) = data.progress();
            progress.show(done, all, rows);
            if stop.load(Ordering::Relaxed) {
                progress.end();
                return Err(SimulateError::Stopped);
            }
        }
    }
    let account = rig.end();
    progress.end();
    let mut report = SimulationReport::new(config, &reference, account, rows, from);
    report.speed = Speed::of(rows, begun.elapsed());
    Ok(report)
}

/// Checks a strategy whose parameters may have changed since the settings were read.
fn check(strategy: &StrategyConfig, reference: &RefData, registry: &Registry) -> Result<(), SimulateError> {
    let problem = match strategy.make(reference, registry) {
        Ok(_) => return Ok(()),
        Err(None) => format!("there is no kind {}", strategy.kind),
        Err(Some(fault)) => format!("{}: {}", fault.name, fault.problem),
    };
    Err(SimulateError::Strategy(strategy.name.clone(), problem))
}
