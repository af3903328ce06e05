//! Market data in files: read for simulation and replay, written by the recorder.
//!
//! ```text
//! time,security,bid,bidSize,ask,askSize,last,lastSize    ticks: a quote, a trade or both
//! time,security,side,price,size                          levels of the book; a size of 0 removes one
//! time,security,open,high,low,close,volume               bars, `time` is the start of the bar
//! ```
//!
//! The header is exactly one of the three. Cells of a tick may be empty. `time` is nanoseconds
//! since the epoch, or RFC 3339; `security` is an id or a symbol. Rows of one file are in time
//! order. A Parquet file has the same columns, with numbers as decimals, floats or texts. Several
//! files are merged by time; for equal times the file named first comes first.
//!
//! [`column_format`] writes ticks and bars for answers over REST.
//!
//! Files of Databento ([`dbn`]), NASDAQ ([`itch`]) and Binance ([`binance`]) become the same rows.

#[cfg(feature = "parquet")]
mod arrow_stream;
pub mod bars;
pub mod binance;
pub mod column_format;
#[cfg(feature = "parquet")]
mod column_role;
pub mod csv;
pub mod dbn;
pub mod entry;
pub mod file;
mod foreign_symbols;
pub mod input;
pub mod itch;
mod lines;
pub mod merge;
mod order_levels;
pub mod pace;
#[cfg(feature = "parquet")]
pub mod parquet;
pub mod record;
pub mod recorded_rows;
pub mod replay;
pub mod row_layout;
#[cfg(feature = "parquet")]
mod row_table;
pub mod symbols;
mod top_levels;
#[cfg(not(feature = "parquet"))]
mod without_parquet;

use std::fmt;

use pitlane_engine::command::CommandKind;
use pitlane_engine::id::SecurityId;
use pitlane_engine::time::Timestamp;

pub use self::bars::BarPath;
pub use self::file::ReadOptions;
pub use self::merge::{Merge, open};
#[cfg(not(feature = "parquet"))]
use self::without_parquet as parquet;

/// Market data at one time: a quote, a trade or both.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TickRow {
    pub at: Timestamp,
    pub security: SecurityId,
    pub body: CommandKind,
}

/// An error in a file, and its position.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DataError {
    pub file: String,
    /// Line number from 1; 0 if the error concerns the file as a whole.
    pub line: u64,
    pub problem: String,
}

impl DataError {
    /// Returns an error of a file as a whole.
    pub fn whole(file: impl fmt::Display, problem: impl fmt::Display) -> DataError {
        DataError { file: file.to_string(), line: 0, problem: problem.to_string() }
    }
}

impl fmt::Display for DataError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.line {
            0 => write!(f, "{}: {}", self.file, self.problem),
            line => write!(f, "{}:{line}: {}", self.file, self.problem),
        }
    }
}

impl std::error::Error for DataError {}
