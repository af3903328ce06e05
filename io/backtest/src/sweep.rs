//! Search for parameters: one simulation for each point of a grid, several at a time.
//!
//! ```text
//! rows in memory, or files ─► runs of the grid, by `jobs` threads ─► RunSummary, best first
//! walk-forward: for each window, the grid over its first part; the best point over its second part
//! ```
//!
//! A run is a pure function of data, settings and seed, so the number of threads does not change a
//! result. A run that fails is a row with its reason.
//!
//! [`search`] plans the runs and chooses among them. A [`RunExecutor`] does them: threads of this
//! process, or, for strategies in Python, processes of the Python client.

pub mod grid;
mod heat_map;
pub mod results;
pub mod statistic;
pub mod walk_forward;

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use pitlane_config::Config;
use pitlane_engine::refdata::RefData;
use pitlane_engine::time::Timestamp;
use pitlane_market_data::TickRow;
use pitlane_strategy::registry::Registry;

use self::grid::{Grid, ParameterSet};
use self::statistic::{RunFigures, Statistic};
use self::walk_forward::{WalkForward, Window, WindowResult};
use super::progress::SimulationProgress;
use super::source::{SharedRows, TickSource};
use super::{SimulateError, data_range, open_data, simulate_over};

/// Most bytes of rows that are kept in memory for all runs. If there are more, each run reads the
/// files itself.
pub const SHARED_BYTES_MAX: usize = 1 << 30;

/// What is searched, and how.
#[derive(Clone, Debug)]
pub struct SweepSettings {
    pub grid: Grid,
    /// Statistic by which runs are sorted and chosen.
    pub statistic: Statistic,
    /// Runs at the same time, at least 1.
    pub jobs: usize,
    /// None: each point runs once, over all data.
    pub walk_forward: Option<WalkForward>,
}

/// One run.
#[derive(Clone, Debug, PartialEq)]
pub struct RunSummary {
    /// Number of the combination in the grid.
    pub point: usize,
    pub parameters: ParameterSet,
    /// Window of a walk-forward search.
    pub window: Option<Window>,
    /// Figures, or the reason why the run failed.
    pub outcome: Result<RunFigures, String>,
}

/// Results of a search.
#[derive(Clone, Debug)]
pub struct SweepResult {
    pub settings: SweepSettings,
    /// Finished runs; in the order of windows and of the grid.
    pub runs: Vec<RunSummary>,
    /// With walk-forward: the finished windows.
    pub windows: Vec<WindowResult>,
    /// Runs that were planned.
    pub planned: usize,
    /// Whether the caller has stopped the search.
    pub is_stopped: bool,
}

impl SweepResult {
    /// Returns the runs, the best first. Runs without the statistic come after those with it, and
    /// failed runs last.
    pub fn sorted(&self) -> Vec<&RunSummary> {
        let mut runs: Vec<&RunSummary> = self.runs.iter().collect();
        runs.sort_by(|a, b| self.rank(b).total_cmp(&self.rank(a)));
        runs
    }

    /// Returns the best run that has the statistic.
    pub fn best(&self) -> Option<&RunSummary> {
        best(self.runs.iter(), self.settings.statistic)
    }

    fn rank(&self, run: &RunSummary) -> f64 {
        match &run.outcome {
            Ok(figures) => self.settings.statistic.merit(figures).unwrap_or(f64::MIN),
            Err(_) => f64::NEG_INFINITY,
        }
    }
}

/// Returns the run with the highest merit; of equal ones the first.
fn best<'a>(runs: impl Iterator<Item = &'a RunSummary>, statistic: Statistic) -> Option<&'a RunSummary> {
    let merit = |run: &RunSummary| statistic.merit(run.outcome.as_ref().ok()?);
    let mut best: Option<(&RunSummary, f64)> = None;
    for run in runs {
        if let Some(merit) = merit(run).filter(|merit| best.is_none_or(|(_, highest)| *merit > highest)) {
            best = Some((run, merit));
        }
    }
    best.map(|(run, _)| run)
}

/// One run that is to be done.
#[derive(Clone, Debug)]
pub struct PlannedRun {
    /// Number of the combination in the grid.
    pub point: usize,
    pub parameters: ParameterSet,
    pub window: Option<Window>,
}

impl PlannedRun {
    /// Returns the summary of the finished run.
    pub fn ended(self, outcome: Result<RunFigures, String>) -> RunSummary {
        let PlannedRun { point, parameters, window } = self;
        RunSummary { point, parameters, window, outcome }
    }
}

/// Does the runs of a search.
pub trait RunExecutor {
    /// Does the runs of a plan and returns those that were finished, in the order of the plan.
    /// `planned` is the number of all runs of the search.
    fn run_all(&self, plan: &[PlannedRun], planned: usize) -> Vec<RunSummary>;

    /// Returns whether the search is to end early.
    fn is_stopped(&self) -> bool;
}

/// Plans the runs of a search, has them done, and chooses the best of each window. `period` is what
/// windows divide; its end is not in it.
pub fn search(
    settings: &SweepSettings,
    period: (Timestamp, Timestamp),
    executor: &impl RunExecutor,
) -> Result<SweepResult, SimulateError> {
    match &settings.walk_forward {
        None => Ok(run_grid(settings, executor)),
        Some(walk_forward) => walk_forward.search(settings, period, executor),
    }
}

fn run_grid(settings: &SweepSettings, executor: &impl RunExecutor) -> SweepResult {
    let plan: Vec<PlannedRun> = settings.grid.plan(None).collect();
    let planned = plan.len();
    let runs = executor.run_all(&plan, planned);
    let is_stopped = executor.is_stopped();
    SweepResult { settings: settings.clone(), runs, windows: Vec::new(), planned, is_stopped }
}

/// Runs the search over the files of the settings. `stop` ends it early and keeps what is finished;
/// `report_progress` receives the number of finished and of planned runs.
pub fn sweep(
    config: &Config,
    reference: &Arc<RefData>,
    registry: &Registry,
    settings: &SweepSettings,
    stop: &AtomicBool,
    report_progress: &(dyn Fn(usize, usize) + Sync),
) -> Result<SweepResult, SimulateError> {
    check(config, settings)?;
    let data = SweepData::read(&mut open_data(config, reference)?, SHARED_BYTES_MAX)?;
    sweep_over(config, reference, registry, settings, data, stop, report_progress)
}

/// Runs the search over data that were read already.
pub fn sweep_over(
    config: &Config,
    reference: &Arc<RefData>,
    registry: &Registry,
    settings: &SweepSettings,
    data: SweepData,
    stop: &AtomicBool,
    report_progress: &(dyn Fn(usize, usize) + Sync),
) -> Result<SweepResult, SimulateError> {
    check(config, settings)?;
    let period = data.period(config);
    let threads = SearchThreads {
        config,
        reference,
        registry,
        strategy: settings.grid.first_strategy(config).map(str::to_string),
        data,
        jobs: settings.jobs,
        stop,
        report_progress,
        done: AtomicUsize::new(0),
    };
    search(settings, period, &threads)
}

/// Checks that there are strategies with the parameters of the grid.
fn check(config: &Config, settings: &SweepSettings) -> Result<(), SimulateError> {
    if config.strategies.is_empty() {
        return Err(SimulateError::NoStrategies);
    }
    let refused = |problem| SimulateError::Strategy("sweep".to_string(), problem);
    settings.grid.point(0).apply(config).map(drop).map_err(refused)
}

/// The rows of all runs.
#[derive(Clone, Debug)]
pub enum SweepData {
    Shared(SharedRows),
    /// The rows are too many for the memory. The range is that of the first and the last row.
    Files(Timestamp, Timestamp),
}

impl SweepData {
    /// Reads the rows into memory, if they have at most so many bytes there.
    pub fn read(source: &mut impl TickSource, bytes_max: usize) -> Result<SweepData, SimulateError> {
        let rows_max = bytes_max / size_of::<TickRow>();
        let mut rows = Vec::new();
        let mut last = source.peek().ok_or(SimulateError::NoData)?;
        let first = last;
        let mut is_shared = true;
        while let Some(row) = source.next_row()? {
            last = row.at;
            if is_shared && rows.len() == rows_max {
                (rows, is_shared) = (Vec::new(), false);
            }
            if is_shared {
                rows.push(row);
            }
        }
        Ok(match is_shared {
            true => SweepData::Shared(SharedRows::new(rows)),
            false => SweepData::Files(first, last),
        })
    }

    /// Returns the period that a search divides into windows: from the end of the warm-up on, and
    /// before a time after the last row.
    pub fn period(&self, config: &Config) -> (Timestamp, Timestamp) {
        let (first, last) = match self {
            SweepData::Shared(rows) => rows.range().unwrap_or_default(),
            SweepData::Files(first, last) => (*first, *last),
        };
        let settings = &config.simulation;
        (settings.from.unwrap_or(first.plus(settings.prefeed_ns)), last.plus(1))
    }
}

/// Does runs in threads of this process, with kinds of the registry.
struct SearchThreads<'a> {
    config: &'a Config,
    reference: &'a Arc<RefData>,
    registry: &'a Registry,
    /// Strategy whose figures are compared.
    strategy: Option<String>,
    data: SweepData,
    jobs: usize,
    stop: &'a AtomicBool,
    report_progress: &'a (dyn Fn(usize, usize) + Sync),
    done: AtomicUsize,
}

impl RunExecutor for SearchThreads<'_> {
    fn run_all(&self, plan: &[PlannedRun], planned: usize) -> Vec<RunSummary> {
        let next = AtomicUsize::new(0);
        let finished: Mutex<Vec<Option<RunSummary>>> = Mutex::new(vec![None; plan.len()]);
        let work = || {
            while !self.is_stopped() {
                let nth = next.fetch_add(1, Ordering::Relaxed);
                let Some(run) = plan.get(nth) else { return };
                let Some(summary) = self.run(run) else { return };
                finished.lock().unwrap_or_else(PoisonError::into_inner)[nth] = Some(summary);
                (self.report_progress)(self.done.fetch_add(1, Ordering::Relaxed) + 1, planned);
            }
        };
        std::thread::scope(|scope| {
            for _ in 1..self.jobs.clamp(1, plan.len().max(1)) {
                scope.spawn(work);
            }
            work();
        });
        finished.into_inner().unwrap_or_else(PoisonError::into_inner).into_iter().flatten().collect()
    }

    fn is_stopped(&self) -> bool {
        self.stop.load(Ordering::Relaxed)
    }
}

impl SearchThreads<'_> {
    /// Does one run; `None` if the search was stopped before its end.
    fn run(&self, planned: &PlannedRun) -> Option<RunSummary> {
        // A panic is a bug, but it must not lose the other runs.
        let outcome = match catch_unwind(AssertUnwindSafe(|| self.simulate(planned))) {
            Ok(Err(SimulateError::Stopped)) => return None,
            Ok(Ok(figures)) => figures,
            Ok(Err(error)) => Err(error.to_string()),
            Err(_) => Err("the run panicked; standard error says where".to_string()),
        };
        Some(planned.clone().ended(outcome))
    }

    fn simulate(&self, planned: &PlannedRun) -> Result<Result<RunFigures, String>, SimulateError> {
        let refused = |problem| SimulateError::Strategy("sweep".to_string(), problem);
        let mut config = planned.parameters.apply(self.config).map_err(refused)?;
        if let Some(window) = planned.window {
            (config.simulation.from, config.simulation.to) = (Some(window.from), Some(window.to));
        }
        // Only the figures are kept, so the rows are not needed.
        config.simulation.records_max = 0;
        let report = match &self.data {
            SweepData::Shared(rows) => {
                let (from, to) = data_range(&config);
                self.simulate_over(&config, &mut rows.between(from, to))?
            }
            SweepData::Files(..) => {
                let mut files = open_data(&config, self.reference)?;
                self.simulate_over(&config, &mut files)?
            }
        };
        Ok(RunFigures::of(&report, self.strategy.as_deref()))
    }

    fn simulate_over(
        &self,
        config: &Config,
        data: &mut impl TickSource,
    ) -> Result<super::report::SimulationReport, SimulateError> {
        let mut silent = SimulationProgress::new(true);
        simulate_over(config, self.reference, self.registry, data, &mut silent, self.stop)
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use pitlane_config::{Restricted, StrategyConfig};
    use pitlane_market_data::row_layout::TICKS;

    use super::*;

    fn config(data: &std::path::Path) -> Config {
        let mut config = Config::default();
        config.shard.orders_max = 1_000;
        config.topology.shards = 1;
        config.simulation.data = vec![data.to_path_buf()];
        let parameters = [("fast", "2"), ("slow", "9"), ("bar_s", "0"), ("qty", "1"), ("short", "true")];
        config.strategies = vec![StrategyConfig {
            name: "MOMENTUM".to_string(),
            kind: "moving-average-cross".to_string(),
            securities: vec![Restricted::Symbol("AAPL".to_string())],
            start: true,
            cancel_on_failure: true,
            parameters: parameters.map(|(name, value)| (name.to_string(), value.to_string())).into(),
        }];
        config
    }

    /// Writes a small file of ticks and passes its settings to a test.
    fn with_ticks(name: &str, test: impl FnOnce(&Config)) {
        let folder = std::env::temp_dir().join(format!("pitlane-sweep-{name}-{}", std::process::id()));
        fs::create_dir_all(&folder).unwrap();
        let path = folder.join("ticks.csv");
        let row = |nth: u64| {
            let price = 100 + nth % 7;
            format!("{},AAPL,{price},9,{},9,{price},5\n", nth * 1_000_000, price + 1)
        };
        let rows: String = (1..200).map(row).collect();
        fs::write(&path, format!("{TICKS}\n{rows}")).unwrap();
        test(&config(&path));
        fs::remove_dir_all(&folder).unwrap();
    }

    fn settings(grid: &str, jobs: usize) -> SweepSettings {
        let grid = Grid::parse(grid).unwrap();
        SweepSettings { grid, statistic: Statistic::Return, jobs, walk_forward: None }
    }

    #[test]
    fn a_stopped_search_keeps_what_is_finished() {
        let reference = Arc::new(pitlane_config::refdata::shipped().unwrap());
        let registry = Registry::with_examples();
        with_ticks("stopped", |config| {
            let stop = AtomicBool::new(false);
            let after_three = |done: usize, all: usize| {
                assert_eq!(all, 5);
                stop.store(done == 3, Ordering::Relaxed);
            };
            let settings = settings("fast=1..5", 1);
            let result = sweep(config, &reference, &registry, &settings, &stop, &after_three).unwrap();
            assert!(result.is_stopped && result.planned == 5);
            let names: Vec<String> = result.runs.iter().map(|run| run.parameters.to_string()).collect();
            assert_eq!(names, ["fast=1", "fast=2", "fast=3"]);
            assert!(
                result.runs.iter().all(|run| run.outcome.as_ref().is_ok_and(|figures| figures.fills > 0))
            );
        });
    }

    #[test]
    fn runs_over_files_and_over_rows_in_memory_are_the_same() {
        let reference = Arc::new(pitlane_config::refdata::shipped().unwrap());
        let registry = Registry::with_examples();
        with_ticks("files", |config| {
            let run = |bytes_max: usize, jobs: usize| {
                let mut files = open_data(config, &reference).unwrap();
                let data = SweepData::read(&mut files, bytes_max).unwrap();
                let is_shared = matches!(data, SweepData::Shared(_));
                let (settings, stop) = (settings("fast=1..4,slow=6|9", jobs), AtomicBool::new(false));
                let result =
                    sweep_over(config, &reference, &registry, &settings, data, &stop, &|_, _| {}).unwrap();
                (is_shared, result.runs)
            };
            let bytes = 199 * size_of::<TickRow>();
            let ((shared, one), (read_again, two)) = (run(bytes, 1), run(bytes - 1, 3));
            assert!(shared && !read_again && one.len() == 8);
            assert_eq!(one, two);
        });
    }
}
