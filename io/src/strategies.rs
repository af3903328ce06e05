//! The configured strategies as a runner takes them, in whatever mode.

use pitlane_engine::desk::IdBlock;
use pitlane_engine::id::StrategyId;
use pitlane_engine::refdata::RefData;
use pitlane_engine::strategy::Operation;
use pitlane_engine::strategy::host::HostSettings;
use pitlane_engine::strategy::runner::RunnerSettings;

use crate::config::Strategy;
use crate::log::fenced;

/// Orders of all strategies of this process known at once, and finished ones of them: a strategy has at most a thousand open.
const ORDERS_MAX: u32 = 65_536;
const FINISHED_MAX: u32 = 16_384;

/// The ids of the strategies that this process runs.
pub fn run_here(strategies: &[Strategy], reference: &RefData) -> Vec<StrategyId> {
    let rows = reference.strategies().iter();
    let here = |name: &String| strategies.iter().any(|strategy| strategy.name == *name);
    rows.filter(|row| here(&row.name)).map(|row| row.id).collect()
}

/// Those the reference data know; with the others the start was refused.
pub fn hosts(strategies: &[Strategy], reference: &RefData) -> Vec<HostSettings> {
    let host = |strategy: &Strategy| {
        let row = reference.strategies().iter().find(|row| row.name == strategy.name)?;
        Some(HostSettings {
            id: row.id,
            name: strategy.name.clone(),
            make: strategy.make(reference).ok()?,
            start: strategy.start,
            cancel_on_failure: strategy.cancel_on_failure,
        })
    };
    strategies.iter().filter_map(host).collect()
}

pub fn runner_settings(operation: Operation, numbers: IdBlock, seed: u64) -> RunnerSettings {
    RunnerSettings {
        operation,
        guard: fenced,
        orders_max: ORDERS_MAX,
        finished_max: FINISHED_MAX,
        numbers,
        seed,
    }
}
