//! The outcome of a run as columns, from which the package `pitlane` makes frames.

use std::collections::BTreeMap;
use std::path::PathBuf;

use pitlane_backtest::report::SimulationReport;
use pitlane_backtest::report_files;
use pitlane_backtest::sweep::statistic::RunFigures;
use pitlane_engine::id::{SecurityId, StrategyId};
use pitlane_engine::number::Price;
use pitlane_engine::reason::Reason;
use pitlane_engine::time::Timestamp;
use pitlane_protocols::codes::WireName;
use pyo3::exceptions::{PyOSError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyList};

use crate::figures::{RunRow, figures_row};

/// A finished run.
#[pyclass(frozen, module = "pitlane_engine")]
pub(crate) struct Outcome {
    report: SimulationReport,
}

impl Outcome {
    pub(crate) fn new(report: SimulationReport) -> Outcome {
        Outcome { report }
    }
}

/// Columns by name, the names of those in units of 10⁻⁸, and of those in nanoseconds.
pub(crate) type Table<'py> = (Bound<'py, PyDict>, Vec<&'static str>, Vec<&'static str>);

#[pymethods]
impl Outcome {
    /// Returns the hash of the run as 16 hexadecimal digits.
    fn hash(&self) -> String {
        format!("{:016x}", self.report.hash())
    }

    /// Returns the number of ticks, and the seconds that the run took.
    fn speed(&self) -> (u64, f64) {
        (self.report.rows, self.report.speed.seconds)
    }

    /// Returns the report as text.
    fn text(&self) -> String {
        self.report.to_text()
    }

    /// Returns the report as JSON.
    fn json(&self) -> String {
        self.report.to_json().to_string()
    }

    /// Returns the strategies that failed, each with its reason.
    fn failures(&self) -> BTreeMap<&str, &str> {
        let lines = self.report.results.iter().map(|result| &result.line);
        lines.filter_map(|line| Some((line.name.as_str(), line.failure.as_ref()?.1.as_str()))).collect()
    }

    /// Returns the figures of a strategy, or the reason why it failed.
    fn figures(&self, strategy: &str) -> RunRow {
        match RunFigures::of(&self.report, Some(strategy)) {
            Ok(figures) => RunRow::Figures(figures_row(&figures)),
            Err(reason) => RunRow::Failure(reason),
        }
    }

    /// Returns the columns of `orders`, `fills`, `round_trips` or `equity`.
    fn table<'py>(&self, py: Python<'py>, name: &str) -> PyResult<Table<'py>> {
        let mut columns = Columns::new(py);
        match name {
            "orders" => self.put_orders(&mut columns)?,
            "fills" => self.put_fills(&mut columns)?,
            "round_trips" => self.put_round_trips(&mut columns)?,
            "equity" => self.put_equity(&mut columns)?,
            _ => {
                let problem =
                    format!("there is no frame {name:?}; there are orders, fills, round_trips and equity");
                return Err(PyValueError::new_err(problem));
            }
        }
        Ok(columns.into_table())
    }

    /// Writes report.txt, report.json and report.html into a folder.
    fn write_report(&self, folder: PathBuf) -> PyResult<()> {
        report_files::write(&self.report, &folder)
            .map_err(|error| PyOSError::new_err(format!("{}: {error}", folder.display())))
    }
}

impl Outcome {
    fn put_orders(&self, columns: &mut Columns<'_>) -> PyResult<()> {
        let rows = self.report.orders.rows();
        columns.put("int_id", rows.iter().map(|row| row.id.to_string()))?;
        columns.put("strategy", rows.iter().map(|row| self.strategy(row.strategy)))?;
        columns.put("security_id", rows.iter().map(|row| row.security.0))?;
        columns.put("symbol", rows.iter().map(|row| self.symbol(row.security)))?;
        columns.put("side", rows.iter().map(|row| row.side.wire_name()))?;
        columns.put("type", rows.iter().map(|row| row.kind.wire_name()))?;
        columns.put("tif", rows.iter().map(|row| row.tif.wire_name()))?;
        columns.amount("quantity", rows.iter().map(|row| Some(row.qty.raw())))?;
        columns.amount("limit", rows.iter().map(|row| row.limit.map(Price::raw)))?;
        columns.amount("stop", rows.iter().map(|row| row.stop.map(Price::raw)))?;
        columns.put("status", rows.iter().map(|row| row.status.wire_name()))?;
        columns.amount("filled_quantity", rows.iter().map(|row| Some(row.filled.raw())))?;
        let average = |price: Price, is_filled: bool| is_filled.then_some(price.raw());
        columns
            .amount("avg_price", rows.iter().map(|row| average(row.avg_price, row.filled.is_positive())))?;
        columns.time("entered", rows.iter().map(|row| Some(row.entered)))?;
        columns.time("ended", rows.iter().map(|row| row.ended))?;
        let reason = |reason: Reason| (reason != Reason::None).then(|| reason.code());
        columns.put("reason", rows.iter().map(|row| reason(row.reason)))
    }

    fn put_fills(&self, columns: &mut Columns<'_>) -> PyResult<()> {
        let rows = self.report.fills.rows();
        columns.time("time", rows.iter().map(|row| Some(row.at)))?;
        columns.put("strategy", rows.iter().map(|row| self.strategy(row.strategy)))?;
        columns.put("security_id", rows.iter().map(|row| row.security.0))?;
        columns.put("symbol", rows.iter().map(|row| self.symbol(row.security)))?;
        columns.put("int_id", rows.iter().map(|row| row.order_id.map(|id| id.to_string())))?;
        columns.amount("quantity", rows.iter().map(|row| Some(row.qty.raw())))?;
        columns.amount("price", rows.iter().map(|row| Some(row.price.raw())))?;
        columns.amount("fee", rows.iter().map(|row| Some(row.fee.raw())))?;
        columns.amount("realized_pl", rows.iter().map(|row| Some(row.realized.raw())))?;
        columns.amount("position", rows.iter().map(|row| Some(row.position.raw())))
    }

    fn put_round_trips(&self, columns: &mut Columns<'_>) -> PyResult<()> {
        let rows = self.report.round_trips.rows();
        columns.put("strategy", rows.iter().map(|row| self.strategy(row.strategy)))?;
        columns.put("security_id", rows.iter().map(|row| row.security.0))?;
        columns.put("symbol", rows.iter().map(|row| self.symbol(row.security)))?;
        columns.put("side", rows.iter().map(|row| row.side.wire_name()))?;
        columns.time("opened", rows.iter().map(|row| Some(row.opened)))?;
        columns.time("closed", rows.iter().map(|row| Some(row.closed)))?;
        columns.amount("quantity", rows.iter().map(|row| Some(row.qty.raw())))?;
        columns.amount("entry", rows.iter().map(|row| Some(row.entry.raw())))?;
        columns.amount("exit", rows.iter().map(|row| Some(row.exit.raw())))?;
        columns.put("fills", rows.iter().map(|row| row.fills))?;
        columns.amount("fees", rows.iter().map(|row| Some(row.fees.raw())))?;
        columns.amount("profit", rows.iter().map(|row| Some(row.profit.raw())))
    }

    fn put_equity(&self, columns: &mut Columns<'_>) -> PyResult<()> {
        let lines = self.report.results.iter().map(|result| &result.line);
        let rows: Vec<_> = lines
            .flat_map(|line| line.equity.iter().map(move |sample| (line.name.as_str(), sample)))
            .collect();
        columns.time("time", rows.iter().map(|(_, sample)| Some(sample.at)))?;
        columns.put("strategy", rows.iter().map(|(name, _)| *name))?;
        columns.amount("equity", rows.iter().map(|(_, sample)| Some(sample.equity.raw())))?;
        columns.amount("exposure", rows.iter().map(|(_, sample)| Some(sample.exposure.raw())))
    }

    fn strategy(&self, id: StrategyId) -> &str {
        self.report.reference.strategy(id).map_or("", |row| row.name.as_str())
    }

    fn symbol(&self, id: SecurityId) -> &str {
        self.report.reference.security(id).map_or("", |row| row.symbol.as_str())
    }
}

pub(crate) struct Columns<'py> {
    table: Bound<'py, PyDict>,
    amounts: Vec<&'static str>,
    times: Vec<&'static str>,
}

impl<'py> Columns<'py> {
    pub(crate) fn new(py: Python<'py>) -> Columns<'py> {
        Columns { table: PyDict::new(py), amounts: Vec::new(), times: Vec::new() }
    }

    pub(crate) fn into_table(self) -> Table<'py> {
        (self.table, self.amounts, self.times)
    }

    pub(crate) fn put<T: IntoPyObject<'py>>(
        &mut self,
        name: &'static str,
        cells: impl ExactSizeIterator<Item = T>,
    ) -> PyResult<()> {
        self.table.set_item(name, PyList::new(self.table.py(), cells)?)
    }

    pub(crate) fn amount(
        &mut self,
        name: &'static str,
        cells: impl ExactSizeIterator<Item = Option<i64>>,
    ) -> PyResult<()> {
        self.amounts.push(name);
        self.put(name, cells)
    }

    pub(crate) fn time(
        &mut self,
        name: &'static str,
        cells: impl ExactSizeIterator<Item = Option<Timestamp>>,
    ) -> PyResult<()> {
        self.times.push(name);
        self.put(name, cells.map(|at| at.map(|at| at.0)))
    }
}
