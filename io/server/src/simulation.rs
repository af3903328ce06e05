//! `pitlane simulate`: one run, or a search for parameters.

use std::env;
use std::io::{self, Write};
use std::num::NonZero;
use std::path::Path;
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::thread;

use pitlane_backtest::progress::{SimulationProgress, SweepProgress};
use pitlane_backtest::sweep::grid::Grid;
use pitlane_backtest::sweep::results::{self, RepeatCommand, quoted};
use pitlane_backtest::sweep::{SweepSettings, sweep};
use pitlane_backtest::{SimulateError, report_files};
use pitlane_config::Config;
use pitlane_engine::refdata::RefData;
use pitlane_strategy::Registry;
use signal_hook::consts::{SIGINT, SIGTERM};
use signal_hook::flag;

use crate::args::SimulateArgs;

/// Options with a value that make a search out of a run, or that belong to its files.
const SEARCH_OPTIONS: [&str; 5] = ["--sweep", "--jobs", "--sort", "--walk-forward", "--report"];
/// Options that a window of a walk-forward search replaces.
const RANGE_OPTIONS: [&str; 2] = ["--from", "--to"];

pub(crate) enum SimulationCommandError {
    Simulate(SimulateError),
    Output(io::Error),
}

impl From<SimulateError> for SimulationCommandError {
    fn from(error: SimulateError) -> SimulationCommandError {
        SimulationCommandError::Simulate(error)
    }
}

impl From<io::Error> for SimulationCommandError {
    fn from(error: io::Error) -> SimulationCommandError {
        SimulationCommandError::Output(error)
    }
}

pub(crate) fn run(
    args: &SimulateArgs,
    config: Config,
    reference: &Arc<RefData>,
    registry: &Registry,
) -> Result<ExitCode, SimulationCommandError> {
    if let Some(grid) = &args.sweep {
        return run_sweep(args, grid, &config, reference, registry);
    }
    let refused = |problem| SimulateError::Strategy("--param".to_string(), problem);
    let config = match &args.param {
        Some(parameters) => parameters.apply(&config).map_err(refused)?,
        None => config,
    };
    let mut progress = SimulationProgress::new(args.quiet);
    let report = pitlane_backtest::simulate(&config, reference, registry, &mut progress)?;
    write!(io::stdout(), "{}", report.to_text())?;
    if let Some(folder) = &config.simulation.report_dir {
        report_files::write(&report, folder).map_err(|error| named(folder, &error))?;
        writeln!(io::stdout(), "report in {}", folder.display())?;
    }
    Ok(ExitCode::SUCCESS)
}

fn named(folder: &Path, error: &io::Error) -> io::Error {
    io::Error::other(format!("{}: {error}", folder.display()))
}

/// Runs a search. The first SIGINT or SIGTERM ends it and keeps the finished runs; the second ends
/// the process.
fn run_sweep(
    args: &SimulateArgs,
    grid: &Grid,
    config: &Config,
    reference: &Arc<RefData>,
    registry: &Registry,
) -> Result<ExitCode, SimulationCommandError> {
    let stop = Arc::new(AtomicBool::new(false));
    for signal in [SIGINT, SIGTERM] {
        flag::register_conditional_shutdown(signal, 128 + signal, stop.clone())?;
        flag::register(signal, stop.clone())?;
    }
    let cores = thread::available_parallelism().map_or(1, NonZero::get);
    let settings = SweepSettings {
        grid: grid.clone(),
        statistic: args.sort.unwrap_or_default(),
        jobs: args.jobs.map_or(cores, usize::from),
        walk_forward: args.walk_forward,
    };
    let progress = SweepProgress::new(args.quiet);
    let show = |done: usize, all: usize| progress.show(done, all);
    let result = sweep(config, reference, registry, &settings, &stop, &show);
    progress.end();
    let result = result?;
    let command = repeat_command(env::args(), args.walk_forward.is_some());
    write!(io::stdout(), "{}", results::to_text(&result, &command))?;
    if let Some(folder) = &config.simulation.report_dir {
        results::write(&result, &command, folder).map_err(|error| named(folder, &error))?;
        writeln!(io::stdout(), "results in {}", folder.display())?;
    }
    let is_complete = !result.is_stopped && result.runs.iter().any(|run| run.outcome.is_ok());
    Ok(if is_complete { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// Returns this command line without the options of a search.
fn repeat_command(mut words: impl Iterator<Item = String>, has_windows: bool) -> RepeatCommand {
    let is_left_out =
        |option: &str| SEARCH_OPTIONS.contains(&option) || has_windows && RANGE_OPTIONS.contains(&option);
    let mut kept = Vec::new();
    while let Some(word) = words.next() {
        match word.split_once('=') {
            Some((option, _)) if is_left_out(option) => {}
            None if is_left_out(&word) => drop(words.next()),
            Some(_) | None => kept.push(quoted(&word)),
        }
    }
    RepeatCommand::Shell(kept.join(" "))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_command_of_a_run_is_that_of_the_search_without_its_options() {
        let line = "pitlane simulate --config a.toml --sweep fast=1..2 --jobs=2 --from 2026-11-02 --sort sharpe \
                    --set venue.seed=1 --report r";
        let words = || line.split_whitespace().map(str::to_string);
        let shell = |text: &str| RepeatCommand::Shell(text.to_string());
        let expected = "pitlane simulate --config a.toml --from 2026-11-02 --set venue.seed=1";
        assert_eq!(repeat_command(words(), false), shell(expected));
        assert_eq!(repeat_command(words(), true), shell(&expected.replace(" --from 2026-11-02", "")));
        let spaces = ["pitlane", "simulate", "--data", "my ticks.csv"].map(str::to_string).into_iter();
        assert_eq!(repeat_command(spaces, false), shell("pitlane simulate --data 'my ticks.csv'"));
    }
}
