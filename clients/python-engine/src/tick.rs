//! A tick as a Python object. It is created for every call of `on_tick`, so its values are
//! converted only when the strategy reads them.

use std::sync::Arc;

use pitlane_engine::event::Tick;
use pitlane_engine::number::{Price, Qty};
use pitlane_engine::refdata::RefData;
use pyo3::prelude::*;
use pyo3::types::PyFloat;

use crate::python_names::PythonNames;

/// Units of 10⁻⁸ in one.
const SCALE: f64 = 1e8;

/// How the ticks of one strategy show their values.
pub(crate) struct TickFormat {
    pub(crate) reference: Arc<RefData>,
    pub(crate) names: Arc<PythonNames>,
    /// Whether amounts are decimals instead of floats.
    pub(crate) is_exact: bool,
}

/// The current market of a security; `pitlane.StrategyTick` describes the attributes.
#[pyclass(frozen, name = "Tick", module = "pitlane_engine")]
pub(crate) struct NativeTick {
    tick: Tick,
    format: Arc<TickFormat>,
}

impl NativeTick {
    pub(crate) fn new(tick: Tick, format: Arc<TickFormat>) -> NativeTick {
        NativeTick { tick, format }
    }

    fn amount<'py>(&self, py: Python<'py>, raw: i64) -> PyResult<Bound<'py, PyAny>> {
        if self.format.is_exact {
            return self.format.names.to_decimal.bind(py).call1((raw,));
        }
        Ok(PyFloat::new(py, raw as f64 / SCALE).into_any())
    }

    fn side<'py>(&self, py: Python<'py>, price: Price, size: Qty) -> PyResult<Option<Bound<'py, PyAny>>> {
        size.is_positive().then(|| self.amount(py, price.raw())).transpose()
    }

    fn size<'py>(&self, py: Python<'py>, size: Qty) -> PyResult<Option<Bound<'py, PyAny>>> {
        size.is_positive().then(|| self.amount(py, size.raw())).transpose()
    }
}

#[pymethods]
impl NativeTick {
    #[getter]
    fn security_id(&self) -> u32 {
        self.tick.security.0
    }

    #[getter]
    fn symbol(&self) -> &str {
        self.format.reference.security(self.tick.security).map_or("", |row| row.symbol.as_str())
    }

    /// Time at the source, in nanoseconds since the epoch.
    #[getter]
    fn time_ns(&self) -> u64 {
        self.tick.at.0
    }

    /// The time in UTC, with microseconds.
    #[getter]
    fn time<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        self.format.names.time_of_ns.bind(py).call1((self.tick.at.0,))
    }

    #[getter]
    fn bid<'py>(&self, py: Python<'py>) -> PyResult<Option<Bound<'py, PyAny>>> {
        self.side(py, self.tick.bid, self.tick.bid_size)
    }

    #[getter]
    fn bid_size<'py>(&self, py: Python<'py>) -> PyResult<Option<Bound<'py, PyAny>>> {
        self.size(py, self.tick.bid_size)
    }

    #[getter]
    fn ask<'py>(&self, py: Python<'py>) -> PyResult<Option<Bound<'py, PyAny>>> {
        self.side(py, self.tick.ask, self.tick.ask_size)
    }

    #[getter]
    fn ask_size<'py>(&self, py: Python<'py>) -> PyResult<Option<Bound<'py, PyAny>>> {
        self.size(py, self.tick.ask_size)
    }

    /// Price of the last trade; None before the first.
    #[getter]
    fn last<'py>(&self, py: Python<'py>) -> PyResult<Option<Bound<'py, PyAny>>> {
        self.tick.traded.then(|| self.amount(py, self.tick.last.raw())).transpose()
    }

    #[getter]
    fn last_size<'py>(&self, py: Python<'py>) -> PyResult<Option<Bound<'py, PyAny>>> {
        self.tick.traded.then(|| self.amount(py, self.tick.last_size.raw())).transpose()
    }

    /// Volume of the trading day.
    #[getter]
    fn volume<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        self.amount(py, self.tick.volume.raw())
    }

    /// The middle of the quote; None without a quote on both sides.
    #[getter]
    fn mid<'py>(&self, py: Python<'py>) -> PyResult<Option<Bound<'py, PyAny>>> {
        let (Some(bid), Some(ask)) = (self.bid(py)?, self.ask(py)?) else { return Ok(None) };
        bid.add(ask)?.div(2).map(Some)
    }

    /// The price of the last trade; before the first trade the middle of the quote.
    #[getter]
    fn price<'py>(&self, py: Python<'py>) -> PyResult<Option<Bound<'py, PyAny>>> {
        match self.last(py)? {
            Some(last) => Ok(Some(last)),
            None => self.mid(py),
        }
    }

    fn __repr__(&self) -> String {
        let Tick { bid, bid_size, ask, ask_size, last, last_size, .. } = self.tick;
        format!(
            "Tick({} {}: {bid_size} @ {bid} / {ask} @ {ask_size}, last {last_size} @ {last})",
            self.tick.at,
            self.symbol()
        )
    }
}
