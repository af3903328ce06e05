//! A Python strategy as a strategy of the engine.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use pitlane_engine::command::StrategyPhase;
use pitlane_engine::event::{Booking, OrderReport, Tick};
use pitlane_engine::id::{Currency, IntId, SecurityId};
use pitlane_engine::reason::Reason;
use pitlane_engine::refdata::RefData;
use pitlane_protocols::codes::WireName;
use pitlane_strategy::{Bar, Context, Failure, Refused, Strategy, StrategyRequestKind};
use pyo3::exceptions::PyException;
use pyo3::intern;
use pyo3::prelude::*;

use crate::context::Core;
use crate::python_names::PythonNames;
use crate::tick::{NativeTick, TickFormat};

/// An exception that ends the run instead of the strategy: KeyboardInterrupt and SystemExit.
#[derive(Clone, Default)]
pub(crate) struct Interruption(Arc<InterruptionState>);

#[derive(Default)]
struct InterruptionState {
    error: Mutex<Option<PyErr>>,
    stop: AtomicBool,
}

impl Interruption {
    /// Returns the flag that stops the run.
    pub(crate) fn flag(&self) -> &AtomicBool {
        &self.0.stop
    }

    pub(crate) fn take(&self) -> Option<PyErr> {
        self.0.error.lock().unwrap_or_else(PoisonError::into_inner).take()
    }

    pub(crate) fn set(&self, error: PyErr) {
        self.0.error.lock().unwrap_or_else(PoisonError::into_inner).get_or_insert(error);
        self.0.stop.store(true, Ordering::Relaxed);
    }
}

/// What all strategies of a run share.
pub(crate) struct StrategySetting {
    pub(crate) reference: Arc<RefData>,
    pub(crate) names: Arc<PythonNames>,
    pub(crate) interruption: Interruption,
    pub(crate) base_currency: Currency,
}

pub(crate) struct PythonStrategy {
    callbacks: Py<PyAny>,
    core: Py<Core>,
    context: Py<PyAny>,
    /// The bound method; None if the class does not override it.
    on_tick: Option<Py<PyAny>>,
    wants_bars: bool,
    wants_statuses: bool,
    wants_transactions: bool,
    format: Arc<TickFormat>,
    interruption: Interruption,
}

impl PythonStrategy {
    /// Connects an object of the author's class with a context.
    pub(crate) fn new(
        py: Python<'_>,
        setting: &StrategySetting,
        name: &str,
        strategy: &Bound<'_, PyAny>,
    ) -> PyResult<PythonStrategy> {
        let decimals: String = strategy.getattr(intern!(py, "decimals"))?.extract()?;
        let format = Arc::new(TickFormat {
            reference: setting.reference.clone(),
            names: setting.names.clone(),
            is_exact: decimals == "exact",
        });
        let core = Py::new(py, Core::new(name.to_string(), setting.base_currency, format.clone()))?;
        let callbacks = setting.names.callbacks.bind(py).call1((strategy, &core))?;
        let on_tick = callbacks.getattr(intern!(py, "on_tick"))?;
        let wants = |name: &str| callbacks.getattr(name).and_then(|wants| wants.is_truthy());
        Ok(PythonStrategy {
            context: callbacks.getattr(intern!(py, "context"))?.unbind(),
            on_tick: (!on_tick.is_none()).then(|| on_tick.unbind()),
            wants_bars: wants("wants_bars")?,
            wants_statuses: wants("wants_statuses")?,
            wants_transactions: wants("wants_transactions")?,
            callbacks: callbacks.unbind(),
            core,
            format,
            interruption: setting.interruption.clone(),
        })
    }

    /// Returns the strategy for one start. Every start uses the same object.
    pub(crate) fn start(&self) -> Box<dyn Strategy> {
        Python::attach(|py| -> Box<dyn Strategy> {
            Box::new(PythonStrategy {
                callbacks: self.callbacks.clone_ref(py),
                core: self.core.clone_ref(py),
                context: self.context.clone_ref(py),
                on_tick: self.on_tick.as_ref().map(|method| method.clone_ref(py)),
                wants_bars: self.wants_bars,
                wants_statuses: self.wants_statuses,
                wants_transactions: self.wants_transactions,
                format: self.format.clone(),
                interruption: self.interruption.clone(),
            })
        })
    }

    /// Calls Python with the state of the strategy in its context.
    #[inline]
    fn call(
        &self,
        context: &mut Context<'_>,
        call: impl FnOnce(Python<'_>, &Bound<'_, PyAny>) -> PyResult<()>,
    ) -> Result<(), Failure> {
        Python::attach(|py| {
            let core = self.core.bind(py);
            core.borrow_mut().swap(context);
            let answer = call(py, self.callbacks.bind(py));
            core.borrow_mut().swap(context);
            answer.map_err(|error| self.failure(py, error))
        })
    }

    /// Returns the failure for an exception, with its traceback.
    #[cold]
    fn failure(&self, py: Python<'_>, error: PyErr) -> Failure {
        if !error.is_instance_of::<PyException>(py) {
            self.interruption.set(error.clone_ref(py));
        }
        let text = self.format.names.failure_text.bind(py).call1((error.value(py), error.traceback(py)));
        match text.and_then(|text| text.extract::<String>()) {
            Ok(text) => Failure::new(text),
            Err(_) => Failure::new(error.to_string()),
        }
    }

    fn symbol(&self, security: SecurityId) -> &str {
        self.format.reference.security(security).map_or("", |row| row.symbol.as_str())
    }
}

impl Strategy for PythonStrategy {
    fn on_phase(&mut self, phase: StrategyPhase, context: &mut Context<'_>) -> Result<(), Failure> {
        self.call(context, |py, callbacks| {
            callbacks.call_method1(intern!(py, "phase"), (phase.wire_name(),)).map(drop)
        })
    }

    #[inline]
    fn on_tick(&mut self, tick: &Tick, context: &mut Context<'_>) -> Result<(), Failure> {
        Python::attach(|py| {
            let core = self.core.bind(py);
            let mut inside = core.borrow_mut();
            inside.put_tick(tick);
            let Some(on_tick) = &self.on_tick else { return Ok(()) };
            inside.swap(context);
            drop(inside);
            let native = NativeTick::new(*tick, self.format.clone());
            let answer = on_tick.bind(py).call1((native, &self.context));
            core.borrow_mut().swap(context);
            answer.map(drop).map_err(|error| self.failure(py, error))
        })
    }

    fn on_bar(&mut self, bar: &Bar, context: &mut Context<'_>) -> Result<(), Failure> {
        if !self.wants_bars {
            return Ok(());
        }
        let row = (
            bar.security.0,
            self.symbol(bar.security),
            bar.start.0,
            bar.interval_ns,
            bar.open.raw(),
            bar.high.raw(),
            bar.low.raw(),
            bar.close.raw(),
            bar.volume.raw(),
            bar.ticks,
        );
        self.call(context, |py, callbacks| callbacks.call_method1(intern!(py, "bar"), (row,)).map(drop))
    }

    fn on_order_status(
        &mut self,
        id: &IntId,
        report: &OrderReport,
        context: &mut Context<'_>,
    ) -> Result<(), Failure> {
        if !self.wants_statuses {
            return Ok(());
        }
        let at = context.now().0;
        let names = (
            id.as_str(),
            at,
            report.security.0,
            self.symbol(report.security),
            report.side.wire_name(),
            report.kind.wire_name(),
            report.tif.wire_name(),
            report.what.wire_name(),
            report.status.wire_name(),
        );
        let reason = (report.reason != Reason::default()).then_some(report.reason);
        let numbers = (
            report.qty.raw(),
            report.cum_qty.raw(),
            report.avg_price.raw(),
            report.last_qty.raw(),
            report.last_price.raw(),
            reason.map(Reason::code),
            reason.map(Reason::text),
        );
        self.call(context, |py, callbacks| {
            callbacks.call_method1(intern!(py, "order_status"), (names, numbers)).map(drop)
        })
    }

    fn on_refused(&mut self, refused: &Refused, context: &mut Context<'_>) -> Result<(), Failure> {
        let request = match refused.request {
            StrategyRequestKind::Submit => "submit",
            StrategyRequestKind::Modify => "modify",
            StrategyRequestKind::Cancel => "cancel",
        };
        let row = (refused.id.as_str(), request, refused.reason.code(), refused.reason.text());
        self.call(context, |py, callbacks| callbacks.call_method1(intern!(py, "refused"), row).map(drop))
    }

    fn on_transaction(&mut self, booking: &Booking, context: &mut Context<'_>) -> Result<(), Failure> {
        if !self.wants_transactions {
            return Ok(());
        }
        let row = (
            booking.id.0,
            context.now().0,
            booking.kind.wire_name(),
            booking.security.map(|security| security.0),
            booking.security.map(|security| self.symbol(security)),
            booking.qty.raw(),
            booking.price.raw(),
            booking.commission.raw(),
            booking.currency.as_str(),
            (booking.order_id != IntId::NONE).then(|| booking.order_id.as_str()),
            booking.position.qty.raw(),
            booking.position.realized.raw(),
        );
        self.call(context, |py, callbacks| {
            callbacks.call_method1(intern!(py, "transaction"), (row,)).map(drop)
        })
    }

    fn on_generic(&mut self, name: &str, body: &[u8], context: &mut Context<'_>) -> Result<(), Failure> {
        self.call(context, |py, callbacks| {
            callbacks.call_method1(intern!(py, "generic"), (name, body)).map(drop)
        })
    }

    fn on_timer(&mut self, timer: u32, context: &mut Context<'_>) -> Result<(), Failure> {
        self.call(context, |py, callbacks| callbacks.call_method1(intern!(py, "timer"), (timer,)).map(drop))
    }
}
