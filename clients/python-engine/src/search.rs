//! Searches for parameters. The grid, the windows, the choice and the files of the results are
//! those of `pitlane simulate --sweep`; runs of strategies in Python are done by the caller.

use std::cell::{Cell, RefCell};
use std::num::NonZero;
use std::path::PathBuf;
use std::sync::atomic::AtomicBool;
use std::thread;

use pitlane_backtest::sweep::grid::{Grid, ParameterName, SweptParameter};
use pitlane_backtest::sweep::results::{self, RepeatCommand, quoted};
use pitlane_backtest::sweep::statistic::{RunFigures, Statistic};
use pitlane_backtest::sweep::walk_forward::{WalkForward, Window};
use pitlane_backtest::sweep::{PlannedRun, RunExecutor, RunSummary, SweepResult, SweepSettings, sweep_over};
use pitlane_engine::number::Money;
use pitlane_engine::time::Timestamp;
use pitlane_strategy::registry::Registry;
use pyo3::exceptions::PyOSError;
use pyo3::prelude::*;

use crate::figures::RunRow;
use crate::outcome::{Columns, Table};
use crate::run::{RunSettings, TickData, load, value_error};
use crate::strategy::Interruption;

/// What is searched and how, from an object with these attributes.
#[derive(FromPyObject)]
pub(crate) struct SearchSettings {
    /// Parameters, and the texts of their values.
    grid: Vec<(String, Vec<String>)>,
    /// Name of the statistic.
    sort: String,
    /// Runs at the same time; None: one for each core.
    jobs: Option<usize>,
    /// Two lengths such as `30d,10d`.
    walk_forward: Option<String>,
}

impl SearchSettings {
    fn parse(self) -> PyResult<SweepSettings> {
        let named = |name: &'static str| move |problem: String| value_error(format!("{name}: {problem}"));
        let swept = |(name, values): (String, Vec<String>)| {
            Ok(SweptParameter { parameter: ParameterName::parse(&name)?, values })
        };
        let parameters = self.grid.into_iter().map(swept).collect::<Result<_, String>>();
        let windows = self.walk_forward.as_deref().map(WalkForward::parse).transpose();
        Ok(SweepSettings {
            grid: parameters.and_then(Grid::new).map_err(named("grid"))?,
            statistic: Statistic::parse(&self.sort).map_err(named("sort"))?,
            jobs: self.jobs.unwrap_or_else(cores),
            walk_forward: windows.map_err(named("walk_forward"))?,
        })
    }
}

fn cores() -> usize {
    thread::available_parallelism().map_or(1, NonZero::get)
}

/// Has Python do the runs.
struct PythonRuns<'py> {
    /// Called with the points and windows of a plan, and with the number of all runs. Returns an
    /// outcome for each run, None if it was not finished.
    run_all: Bound<'py, PyAny>,
    is_stopped: Cell<bool>,
    error: RefCell<Option<PyErr>>,
}

impl PythonRuns<'_> {
    fn call(&self, plan: &[PlannedRun], planned: usize) -> PyResult<Vec<Option<RunRow>>> {
        let ends = |Window { from, to }| (from.0, to.0);
        let rows: Vec<(usize, Option<(u64, u64)>)> =
            plan.iter().map(|run| (run.point, run.window.map(ends))).collect();
        self.run_all.call1((rows, planned))?.extract()
    }
}

impl RunExecutor for PythonRuns<'_> {
    fn run_all(&self, plan: &[PlannedRun], planned: usize) -> Vec<RunSummary> {
        if self.is_stopped.get() {
            return Vec::new();
        }
        let rows = match self.call(plan, planned) {
            Ok(rows) => rows,
            Err(error) => {
                self.is_stopped.set(true);
                self.error.replace(Some(error));
                return Vec::new();
            }
        };
        self.is_stopped.set(rows.len() < plan.len() || rows.iter().any(Option::is_none));
        let ended = |(run, row): (&PlannedRun, Option<RunRow>)| Some(run.clone().ended(row?.into()));
        plan.iter().zip(rows).filter_map(ended).collect()
    }

    fn is_stopped(&self) -> bool {
        self.is_stopped.get()
    }
}

/// Searches the parameters of a strategy in Python, which `create` names. `run_all` does the runs.
#[pyfunction]
pub(crate) fn search(
    settings: SearchSettings,
    period: (u64, u64),
    run_all: Bound<'_, PyAny>,
    create: String,
) -> PyResult<SearchOutcome> {
    let settings = settings.parse()?;
    let runs = PythonRuns { run_all, is_stopped: Cell::new(false), error: RefCell::new(None) };
    let period = (Timestamp(period.0), Timestamp(period.1));
    let result = pitlane_backtest::sweep::search(&settings, period, &runs);
    if let Some(error) = runs.error.take() {
        return Err(error);
    }
    Ok(SearchOutcome { result: result.map_err(value_error)?, command: RepeatCommand::Python(create) })
}

/// Searches the parameters of strategies of the settings, whose kinds are those of the engine, in
/// threads of this process. `progress` is called with the number of finished and of planned runs.
#[pyfunction]
pub(crate) fn search_kinds(
    py: Python<'_>,
    settings: RunSettings,
    ticks: Bound<'_, TickData>,
    search: SearchSettings,
    progress: Option<Py<PyAny>>,
) -> PyResult<SearchOutcome> {
    let search = search.parse()?;
    let (mut config, reference) = load(&settings, &[])?;
    let data = ticks.get();
    config.simulation.data.clone_from(&data.names);
    let command = shell_command(&settings, data);
    let (interruption, rows) = (Interruption::default(), data.data.clone());
    let stop: &AtomicBool = interruption.flag();
    // Signals of Python are handled by its main thread, which does runs too.
    let report = |done: usize, planned: usize| {
        Python::attach(|py| {
            let called = match &progress {
                Some(progress) => progress.call1(py, (done, planned)).map(drop),
                None => Ok(()),
            };
            if let Err(error) = called.and_then(|()| py.check_signals()) {
                interruption.set(error);
            }
        });
    };
    let registry = Registry::with_examples();
    let result = py.detach(|| sweep_over(&config, &reference, &registry, &search, rows, stop, &report));
    if let Some(error) = interruption.take()
        && !error.is_instance_of::<pyo3::exceptions::PyKeyboardInterrupt>(py)
    {
        return Err(error);
    }
    Ok(SearchOutcome { result: result.map_err(value_error)?, command })
}

/// Returns the command line of a run over the same data with the same settings.
fn shell_command(settings: &RunSettings, data: &TickData) -> RepeatCommand {
    let mut words = vec!["pitlane".to_string(), "simulate".to_string()];
    let mut add = |option: &str, value: &str| words.extend([option.to_string(), quoted(value)]);
    settings.files.iter().for_each(|file| add("--config", file));
    settings.options.iter().for_each(|(key, value)| add("--set", &format!("{key}={value}")));
    let names: Vec<String> = data.names.iter().map(|name| name.display().to_string()).collect();
    add("--data", &names.join(","));
    RepeatCommand::Shell(words.join(" "))
}

/// A finished search.
#[pyclass(frozen, module = "pitlane_engine")]
pub(crate) struct SearchOutcome {
    result: SweepResult,
    command: RepeatCommand,
}

#[pymethods]
impl SearchOutcome {
    /// Returns the number of planned runs, and whether the search was stopped before its end.
    fn state(&self) -> (usize, bool) {
        (self.result.planned, self.result.is_stopped)
    }

    /// Returns the point of the best run that has the statistic.
    fn best(&self) -> Option<usize> {
        self.result.best().map(|run| run.point)
    }

    /// Returns the return of all tests of a walk-forward search, one after the other.
    fn tested_return(&self) -> Option<f64> {
        self.result.tested_return()
    }

    /// Returns the results as text.
    fn text(&self) -> String {
        results::to_text(&self.result, &self.command)
    }

    /// Writes sweep.txt, sweep.csv, sweep.json and sweep.html into a folder.
    fn write(&self, folder: PathBuf) -> PyResult<()> {
        results::write(&self.result, &self.command, &folder)
            .map_err(|error| PyOSError::new_err(format!("{}: {error}", folder.display())))
    }

    /// Returns the columns of all runs, the best first, and then those of the tests. `point` is the
    /// number of the combination in the grid.
    fn runs<'py>(&self, py: Python<'py>) -> PyResult<Table<'py>> {
        let part = if self.result.settings.walk_forward.is_some() { "train" } else { "all" };
        let sorted = self.result.sorted().into_iter().map(|run| (part, run));
        let tested = self.result.windows.iter().filter_map(|window| window.tested.as_ref());
        let rows: Vec<(&str, &RunSummary)> = sorted.chain(tested.map(|run| ("test", run))).collect();
        let mut columns = Columns::new(py);
        columns.put("point", rows.iter().map(|(_, run)| run.point))?;
        columns.put("part", rows.iter().map(|(part, _)| *part))?;
        columns.time("from", rows.iter().map(|(_, run)| run.window.map(|window| window.from)))?;
        columns.time("to", rows.iter().map(|(_, run)| run.window.map(|window| window.to)))?;
        let runs: Vec<&RunSummary> = rows.into_iter().map(|(_, run)| run).collect();
        put_figures(&mut columns, &runs)?;
        Ok(columns.into_table())
    }

    /// Returns the columns of the windows of a walk-forward search.
    fn windows<'py>(&self, py: Python<'py>) -> PyResult<Table<'py>> {
        let windows = &self.result.windows;
        let figure = |run: &Option<RunSummary>| {
            let figures = run.as_ref()?.outcome.as_ref().ok()?;
            self.result.settings.statistic.of(figures)
        };
        let mut columns = Columns::new(py);
        columns.put("point", windows.iter().map(|window| Some(window.chosen.as_ref()?.point)))?;
        columns.time("train_from", windows.iter().map(|window| Some(window.train.from)))?;
        columns.time("test_from", windows.iter().map(|window| Some(window.test.from)))?;
        columns.time("test_to", windows.iter().map(|window| Some(window.test.to)))?;
        columns.put("train", windows.iter().map(|window| figure(&window.chosen)))?;
        columns.put("test", windows.iter().map(|window| figure(&window.tested)))?;
        columns.put("train_hash", windows.iter().map(|window| hash_of(window.chosen.as_ref()?)))?;
        columns.put("test_hash", windows.iter().map(|window| hash_of(window.tested.as_ref()?)))?;
        Ok(columns.into_table())
    }
}

fn hash_of(run: &RunSummary) -> Option<String> {
    run.outcome.as_ref().ok().map(|figures| format!("{:016x}", figures.hash))
}

/// Adds a column for each figure, and the reason of a run that failed.
fn put_figures(columns: &mut Columns<'_>, runs: &[&RunSummary]) -> PyResult<()> {
    type Ratio = fn(&RunFigures) -> Option<f64>;
    type Amount = fn(&RunFigures) -> Option<Money>;
    type Count = fn(&RunFigures) -> u64;
    const RATIOS: [(&str, Ratio); 7] = [
        ("return", |figures| Some(figures.total_return)),
        ("sharpe", |figures| figures.sharpe),
        ("sortino", |figures| figures.sortino),
        ("calmar", |figures| figures.calmar),
        ("max_draw_down", |figures| Some(figures.max_draw_down)),
        ("profit_factor", |figures| figures.profit_factor),
        ("win_rate", |figures| figures.win_rate),
    ];
    const AMOUNTS: [(&str, Amount); 4] = [
        ("expectancy", |figures| figures.expectancy),
        ("fees", |figures| Some(figures.fees)),
        ("start_equity", |figures| Some(figures.start)),
        ("end_equity", |figures| Some(figures.end)),
    ];
    const COUNTS: [(&str, Count); 2] =
        [("round_trips", |figures| figures.round_trips), ("fills", |figures| figures.fills)];
    columns.put("hash", runs.iter().map(|run| hash_of(run)))?;
    for (name, ratio) in RATIOS {
        columns.put(name, runs.iter().map(|run| ratio(run.outcome.as_ref().ok()?)))?;
    }
    for (name, amount) in AMOUNTS {
        let cell = |run: &&RunSummary| amount(run.outcome.as_ref().ok()?).map(Money::raw);
        columns.amount(name, runs.iter().map(cell))?;
    }
    for (name, count) in COUNTS {
        columns.put(name, runs.iter().map(|run| run.outcome.as_ref().ok().map(count)))?;
    }
    columns.put("failure", runs.iter().map(|run| run.outcome.as_ref().err()))
}
