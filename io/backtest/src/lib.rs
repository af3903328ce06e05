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
//! give the same report, and its hash shows that. The duration of the run is not part of the hash.

pub mod account;
pub mod html;
pub mod progress;
pub mod report;
pub mod report_files;
pub mod rig;
pub mod statistics;

use std::fmt;
use std::sync::Arc;
use std::time::Instant;

use pitlane_config::Config;
use pitlane_engine::refdata::RefData;
use pitlane_engine::time::Timestamp;
use pitlane_market_data::{BarPath, DataError};
use pitlane_strategy::registry::Registry;

use self::progress::SimulationProgress;
use self::report::{SimulationReport, Speed};
use self::rig::SimulatedMarket;

/// Rows between two readings of the clock.
const ROWS_PER_LOOK: u64 = 1 << 16;

/// Reason why there is no report.
#[derive(Debug)]
pub enum SimulateError {
    Data(DataError),
    /// The time range has no data.
    NoData,
    NoStrategies,
}

impl fmt::Display for SimulateError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            SimulateError::Data(error) => error.fmt(f),
            SimulateError::NoData => f.write_str("simulation.data: there is nothing between from and to"),
            SimulateError::NoStrategies => {
                f.write_str("there is no [[strategy]] in the settings, so there is nothing to simulate")
            }
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
    if config.strategies.is_empty() {
        return Err(SimulateError::NoStrategies);
    }
    let settings = &config.simulation;
    let bars = BarPath { interval_ns: settings.bar_ns, volume_bp: settings.bar_volume_bp };
    let warm = settings.from.map(|from| Timestamp(from.0.saturating_sub(settings.prefeed_ns)));
    let range = (warm.unwrap_or(Timestamp::ZERO), settings.to.unwrap_or(Timestamp::MAX));
    let begun = Instant::now();
    let mut data = pitlane_market_data::open(&settings.data, reference, bars, range)?;
    let first = data.peek().ok_or(SimulateError::NoData)?;
    let from = settings.from.unwrap_or(first.plus(settings.prefeed_ns));
    let mut rig = SimulatedMarket::new(config, reference, registry, first.min(from), from);
    let mut rows: u64 = 0;
    while let Some(row) = data.next_row()? {
        rig.handle(&row);
        rows += 1;
        if rows.is_multiple_of(ROWS_PER_LOOK) {
            progress.show(data.consumed(), data.bytes(), rows);
        }
    }
    let account = rig.end();
    progress.end();
    let mut report = SimulationReport::new(config, reference, account, rows, from);
    report.speed = Speed::of(rows, begun.elapsed());
    Ok(report)
}
