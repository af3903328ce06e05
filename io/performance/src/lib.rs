//! Performance of an equity curve, whether a back-test or live trading made it: statistics,
//! draw-downs, returns by month, and the parts of the HTML report with its plots.
//!
//! ```text
//! curve, draw_downs ─► statistics ─► format ─► plots, page ─► report of a simulation (io/backtest)
//!                                                         └─► report of live trading (io/http)
//! ```

pub mod curve;
pub mod draw_downs;
pub mod format;
pub mod page;
pub mod plots;
pub mod statistics;
