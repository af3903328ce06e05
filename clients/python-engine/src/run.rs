//! Runs a back-test: settings, reference data, market data and strategies from Python.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use pitlane_backtest::progress::SimulationProgress;
use pitlane_backtest::source::TickSource;
use pitlane_backtest::{data_range, simulate_over};
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

/// Runs strategies over market data and returns the outcome.
///
/// `files` are files of settings or names of presets; `settings` are pairs of key and value above
/// them.
#[pyfunction]
pub(crate) fn run(
    py: Python<'_>,
    strategies: Vec<StrategyRow<'_>>,
    sources: Vec<DataSource<'_>>,
    files: Vec<String>,
    settings: Vec<(String, String)>,
) -> PyResult<Outcome> {
    let (mut config, reference) = load(&strategies, files, settings)?;
    let reference = Arc::new(reference);
    let data = open(&mut config, &reference, sources)?;
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
    let mut data = InterruptibleData { py, data, rows: 0, interruption: interruption.clone() };
    let mut progress = SimulationProgress::new(true);
    let ended = simulate_over(&config, &reference, &registry, &mut data, &mut progress, interruption.flag());
    if let Some(error) = interruption.take() {
        return Err(error);
    }
    match ended {
        Ok(report) => Ok(Outcome::new(report)),
        Err(error) => Err(value_error(error)),
    }
}

/// Market data that look at signals from time to time: the interpreter handles signals, and it is
/// busy elsewhere unless a callback runs.
struct InterruptibleData<'py> {
    py: Python<'py>,
    data: Merge,
    rows: u32,
    interruption: Interruption,
}

impl TickSource for InterruptibleData<'_> {
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
        }
        self.data.next_row()
    }

    fn progress(&self) -> (u64, u64) {
        (self.data.consumed(), self.data.bytes())
    }
}

/// Reads the settings and the reference data, with the strategies among them.
fn load(
    strategies: &[StrategyRow<'_>],
    files: Vec<String>,
    settings: Vec<(String, String)>,
) -> PyResult<(Config, RefData)> {
    let option = |(key, value)| Setting { option: "config", key, value };
    let sources = Sources {
        files: [PRESET.to_string()].into_iter().chain(files).collect(),
        environment: Vec::new(),
        options: settings.into_iter().map(option).collect(),
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
        .chain(strategies.iter().map(|(name, ..)| name.as_str()))
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
    Ok((config, reference))
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

fn value_error(error: impl ToString) -> PyErr {
    PyValueError::new_err(error.to_string())
}
