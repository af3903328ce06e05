//! The engine as a Python extension: back-tests of Python strategies with the real shard and venue,
//! in the process of the interpreter.
//!
//! ```text
//! pitlane.backtest ─► run ─► Backtest ─► PythonStrategy ─► pitlane.strategy_callbacks ─► the author's class
//!                      │                      ▲                                               │
//!   paths, frames ─► ArrowTable, files        └─ Core ◄── pitlane.strategy_context ◄──────────┘
//!
//! pitlane.sweep ─► read_data ─► search ─► processes of Python, each with `run` over the same rows
//!                           └─► search_kinds: threads of this process, for kinds of the engine
//! ```
//!
//! The run holds the interpreter from begin to end: callbacks are direct calls, and nothing runs
//! beside them. `unsafe` is only in the code that PyO3 generates.

mod context;
mod figures;
mod frame;
mod outcome;
mod python_names;
mod run;
mod search;
mod strategy;
mod tick;

use pyo3::prelude::*;

/// The native part of the package `pitlane-engine`.
#[pymodule]
mod pitlane_native {
    use super::*;

    #[pymodule_export]
    use super::context::Core;
    #[pymodule_export]
    use super::outcome::Outcome;
    #[pymodule_export]
    use super::run::{TickData, read_data, run};
    #[pymodule_export]
    use super::search::{SearchOutcome, search, search_kinds};
    #[pymodule_export]
    use super::tick::NativeTick;

    #[pymodule_init]
    fn init(module: &Bound<'_, PyModule>) -> PyResult<()> {
        module.add("__version__", env!("CARGO_PKG_VERSION"))
    }
}
