//! The objects of the package `pitlane` that the engine calls, looked up once for each run.

use pyo3::prelude::*;

pub(crate) struct PythonNames {
    /// Class that connects a strategy with its context.
    pub(crate) callbacks: Py<PyAny>,
    /// Converts an exception into the reason of a failure.
    pub(crate) failure_text: Py<PyAny>,
    /// Exceptions of the context.
    pub(crate) request_refused: Py<PyAny>,
    pub(crate) context_closed: Py<PyAny>,
    /// Converts units of 10⁻⁸ into a decimal.
    pub(crate) to_decimal: Py<PyAny>,
    /// Converts nanoseconds since the epoch into a datetime.
    pub(crate) time_of_ns: Py<PyAny>,
}

impl PythonNames {
    pub(crate) fn load(py: Python<'_>) -> PyResult<PythonNames> {
        let get = |module: &str, name: &str| -> PyResult<Py<PyAny>> {
            Ok(py.import(module)?.getattr(name)?.unbind())
        };
        Ok(PythonNames {
            callbacks: get("pitlane.strategy_callbacks", "Callbacks")?,
            failure_text: get("pitlane.strategy_callbacks", "failure_text")?,
            request_refused: get("pitlane.strategy_values", "RequestRefused")?,
            context_closed: get("pitlane.strategy_values", "ContextClosed")?,
            to_decimal: get("pitlane.strategy_numbers", "to_decimal")?,
            time_of_ns: get("pitlane.wire", "time_of_ns")?,
        })
    }

    /// Returns the exception for a request that was refused.
    pub(crate) fn refused(&self, py: Python<'_>, reason: &str, message: &str) -> PyErr {
        exception(py, &self.request_refused, (reason, message))
    }

    /// Returns the exception for a context that is used outside a callback.
    pub(crate) fn closed(&self, py: Python<'_>) -> PyErr {
        exception(py, &self.context_closed, ("a context may be used during a callback of its strategy only",))
    }
}

fn exception<'py>(py: Python<'py>, class: &Py<PyAny>, arguments: impl pyo3::call::PyCallArgs<'py>) -> PyErr {
    match class.bind(py).call1(arguments) {
        Ok(exception) => PyErr::from_value(exception),
        Err(error) => error,
    }
}
