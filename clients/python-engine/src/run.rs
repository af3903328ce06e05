//! Runs a back-test: settings, reference data, market data and strategies from Python.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use pitlane_backtest::progress::SimulationProgress;
use pitlane_backtest::source::TickSource;
use pitlane_backtest::sweep::grid::{ParameterName, ParameterSet};
use pitlane_backtest::sweep::{SHARED_BYTES_MAX, SweepData};
use pitlane_backtest::{data_range, open_data, simulate_over};
use pitlane_config::trading_hours::Calendar;
use pitlane_config::{Config, Loaded, Machine, Setting, Sources, StrategyConfig, refdata};
use pitlane_engine::id::SecurityId;
use pitlane_engine::refdata::{KnownStrategies, RefData};
use pitlane_engine::time::Timestamp;
use pitlane_market_data::file::DataFile;
use pitlane_market_data::merge::{FILES_MAX, Merge};
use pitlane_market_data::{DataError, ReadOptions, TickRow};
use pitlane_strategy::parameters::Parameters;
use pitlane_strategy::registry::{Registry, StrategyKind};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;

use crate::frame::ArrowTable;
use crate::outcome::Outcome;
use crate::python_names::PythonNames;
use crate::strategy::{Interruption, PythonStrategy, StrategySetting};

/// Preset below all other settings, as for `pitlane simulate`.
const PRESET: &str = "simulation";
/// Rows between two looks at signals: some hundredths of a second.
const ROWS_PER_LOOK: u32 = 1 << 16;

/// A strategy: name, kind, parameters, whether a failure cancels its orders, and the object.
type StrategyRow<'py> = (String, String, BTreeMap<String, String>, bool, Bound<'py, PyAny>);

/// Market data: a path, or a name and a frame.
#[derive(FromPyObject)]
pub(crate) enum DataSource<'py> {
    Path(PathBuf),
    Frame((String, Bound<'py, PyAny>)),
}

/// Settings of a run, from an object with these attributes.
#[derive(FromPyObject)]
pub(crate) struct RunSettings {
    /// Files of settings, or names of presets.
    pub(crate) files: Vec<String>,
    /// Keys and values above the files.
    pub(crate) options: Vec<(String, String)>,
    /// Parameters of strategies of the settings, instead of those there.
    parameters: Vec<(String, String)>,
    /// The run is from a time on, and before another, in nanoseconds since the epoch.
    window: Option<(u64, u64)>,
    /// Whether orders, fills and round trips are not kept.
    is_figures_only: bool,
}

/// Market data of a run: data that were read already, or what is to be opened.
#[derive(FromPyObject)]
pub(crate) enum RunData<'py> {
    Read(Bound<'py, TickData>),
    Sources(Vec<DataSource<'py>>),
}

/// Runs strategies over market data and returns the outcome.
#[pyfunction]
pub(crate) fn run(
    py: Python<'_>,
    strategies: Vec<StrategyRow<'_>>,
    data: RunData<'_>,
    settings: RunSettings,
) -> PyResult<Outcome> {
    let names: Vec<&str> = strategies.iter().map(|(name, ..)| name.as_str()).collect();
    let (mut config, reference) = load(&settings, &names)?;
    let interruption = Interruption::default();
    let setting = StrategySetting {
        reference: reference.clone(),
        names: Arc::new(PythonNames::load(py)?),
        interruption: interruption.clone(),
        base_currency: config.service.base_currency,
    };
    let mut registry = Registry::with_examples();
    for (name, kind, parameters, cancel_on_failure, object) in strategies {
        let strategy = Arc::new(PythonStrategy::new(py, &setting, &name, &object)?);
        let maker = StrategyKind::new(&kind, move |_: &[SecurityId], _: &Parameters| {
            let strategy = strategy.clone();
            Ok(Box::new(move || strategy.start()))
        });
        registry.try_add(maker).map_err(value_error)?;
        let securities = Vec::new();
        let section = StrategyConfig { name, kind, securities, start: true, cancel_on_failure, parameters };
        config.strategies.push(section);
    }
    let inputs = RunInputs { py, registry: &registry, reference: &reference, interruption };
    match data {
        RunData::Sources(sources) => {
            let data = open(&mut config, &reference, sources)?;
            inputs.simulate(&config, data)
        }
        RunData::Read(data) => {
            config.simulation.data.clone_from(&data.get().names);
            match &data.get().data {
                SweepData::Shared(rows) => {
                    let (from, to) = data_range(&config);
                    inputs.simulate(&config, rows.between(from, to))
                }
                SweepData::Files(..) => {
                    let data = open_data(&config, &reference).map_err(value_error)?;
                    inputs.simulate(&config, data)
                }
            }
        }
    }
}

struct RunInputs<'a, 'py> {
    py: Python<'py>,
    registry: &'a Registry,
    reference: &'a Arc<RefData>,
    interruption: Interruption,
}

impl RunInputs<'_, '_> {
    fn simulate(self, config: &Config, data: impl TickSource) -> PyResult<Outcome> {
        let RunInputs { py, registry, reference, interruption } = self;
        let mut data = InterruptibleData { py, data, rows: 0, interruption: interruption.clone() };
        let mut progress = SimulationProgress::new(true);
        let ended = simulate_over(config, reference, registry, &mut data, &mut progress, interruption.flag());
        if let Some(error) = interruption.take() {
            return Err(error);
        }
        ended.map(Outcome::new).map_err(value_error)
    }
}

/// Market data that look at signals from time to time: the interpreter handles signals, and it is
/// busy elsewhere unless a callback runs. They end with the first exception.
struct InterruptibleData<'py, D> {
    py: Python<'py>,
    data: D,
    rows: u32,
    interruption: Interruption,
}

impl<D: TickSource> TickSource for InterruptibleData<'_, D> {
    fn peek(&self) -> Option<Timestamp> {
        self.data.peek()
    }

    #[inline]
    fn next_row(&mut self) -> Result<Option<TickRow>, DataError> {
        self.rows = self.rows.wrapping_add(1);
        if self.rows.is_multiple_of(ROWS_PER_LOOK)
            && let Err(error) = self.py.check_signals()
        {
            self.interruption.set(error);
            return Ok(None);
        }
        self.data.next_row()
    }

    fn progress(&self) -> (u64, u64) {
        self.data.progress()
    }
}

/// Reads the settings and the reference data, with these strategies of Python among them.
pub(crate) fn load(settings: &RunSettings, strategies: &[&str]) -> PyResult<(Config, Arc<RefData>)> {
    let option = |(key, value): &(String, String)| Setting {
        option: "config",
        key: key.clone(),
        value: value.clone(),
    };
    let sources = Sources {
        files: [PRESET.to_string()].into_iter().chain(settings.files.iter().cloned()).collect(),
        environment: Vec::new(),
        options: settings.options.iter().map(option).collect(),
    };
    let Loaded { config, params, .. } =
        pitlane_config::load(&sources, &Machine::of(Path::new("/"))).map_err(value_error)?;
    let files = match &config.refdata.dir {
        Some(folder) => refdata::read(folder, &config.adapter_names()).map_err(value_error)?,
        None => refdata::shipped().map_err(value_error)?,
    };
    let names: Vec<&str> = config
        .strategies
        .iter()
        .map(|strategy| strategy.name.as_str())
        .chain(strategies.iter().copied())
        .collect();
    if let Some(name) =
        names.iter().enumerate().find_map(|(at, name)| names[..at].contains(name).then_some(name))
    {
        return Err(value_error(format!("two strategies have the name {name:?}")));
    }
    let known = KnownStrategies::default();
    let reference =
        Calendar::fit(&config, files).with_strategies(names.iter().copied(), &known).map_err(|errors| {
            let texts: Vec<String> = errors.iter().map(ToString::to_string).collect();
            value_error(texts.join("; "))
        })?;
    config.check_names(&reference, &Registry::with_examples(), &params).map_err(value_error)?;
    let mut config = settings.parameter_set()?.apply(&config).map_err(value_error)?;
    if let Some((from, to)) = settings.window {
        (config.simulation.from, config.simulation.to) = (Some(Timestamp(from)), Some(Timestamp(to)));
    }
    if settings.is_figures_only {
        config.simulation.records_max = 0;
    }
    Ok((config, Arc::new(reference)))
}

impl RunSettings {
    fn parameter_set(&self) -> PyResult<ParameterSet> {
        let parameter = |(name, value): &(String, String)| {
            Ok((ParameterName::parse(name).map_err(value_error)?, value.clone()))
        };
        self.parameters.iter().map(parameter).collect::<PyResult<_>>().map(ParameterSet)
    }
}

/// Market data that were read once for all runs of a search.
#[pyclass(frozen, module = "pitlane_engine")]
pub(crate) struct TickData {
    pub(crate) data: SweepData,
    /// Paths and names of frames, which the report shows.
    pub(crate) names: Vec<PathBuf>,
    /// The period that windows divide, in nanoseconds since the epoch.
    pub(crate) period: (u64, u64),
}

#[pymethods]
impl TickData {
    /// Returns the period that windows divide: its begin, and its end, which is not in it.
    fn period(&self) -> (u64, u64) {
        self.period
    }
}

/// Reads market data into memory, so that the runs of a search share them. Files that are too large
/// for that are read by each run.
#[pyfunction]
pub(crate) fn read_data(
    py: Python<'_>,
    sources: Vec<DataSource<'_>>,
    settings: RunSettings,
) -> PyResult<TickData> {
    let (mut config, reference) = load(&settings, &[])?;
    let has_frames = sources.iter().any(|source| matches!(source, DataSource::Frame(_)));
    let interruption = Interruption::default();
    let data = open(&mut config, &reference, sources)?;
    let mut source = InterruptibleData { py, data, rows: 0, interruption: interruption.clone() };
    let data = SweepData::read(&mut source, SHARED_BYTES_MAX);
    if let Some(error) = interruption.take() {
        return Err(error);
    }
    let data = data.map_err(value_error)?;
    if has_frames && matches!(data, SweepData::Files(..)) {
        let rows = SHARED_BYTES_MAX / size_of::<TickRow>();
        let problem =
            format!("a search keeps at most {rows} rows of frames in memory; write them to a Parquet file");
        return Err(value_error(problem));
    }
    let (from, to) = data.period(&config);
    Ok(TickData { data, names: config.simulation.data, period: (from.0, to.0) })
}

/// Opens all data. Their names become settings, so that the report shows them.
fn open(config: &mut Config, reference: &Arc<RefData>, sources: Vec<DataSource<'_>>) -> PyResult<Merge> {
    let settings = &config.simulation;
    let options = ReadOptions::of(settings);
    let range = data_range(config);
    if sources.is_empty() {
        return pitlane_market_data::open(&config.simulation.data, reference, &options, range)
            .map_err(value_error);
    }
    if sources.len() > FILES_MAX {
        return Err(value_error(format!("there are more than {FILES_MAX} files and frames")));
    }
    let mut data = Merge::new(range.1);
    config.simulation.data.clear();
    for source in sources {
        let (name, file) = match source {
            DataSource::Path(path) => {
                let file = DataFile::open(&path, reference, &options, range).map_err(value_error)?;
                (path, file)
            }
            DataSource::Frame((name, frame)) => {
                let table = ArrowTable::new(&frame, name.clone(), reference)?;
                (PathBuf::from(name), DataFile::of_source(Box::new(table), reference, options.bars))
            }
        };
        data.add(file, range.0).map_err(value_error)?;
        config.simulation.data.push(name);
    }
    Ok(data)
}

pub(crate) fn value_error(error: impl ToString) -> PyErr {
    PyValueError::new_err(error.to_string())
}
