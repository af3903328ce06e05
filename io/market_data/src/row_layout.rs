//! What the rows of a file are, and their columns by name.

use pitlane_engine::id::SecurityId;
use pitlane_engine::time::Timestamp;

pub const TICKS: &str = "time,security,bid,bidSize,ask,askSize,last,lastSize";
pub const LEVELS: &str = "time,security,side,price,size";
pub const BARS: &str = "time,security,open,high,low,close,volume";
/// The newest prices, which no file has.
pub const QUOTES: &str =
    "time,security,bid,bidSize,ask,askSize,last,lastSize,open,high,low,volume,previousClose,previousDay";

/// Prices and sizes of a quote.
pub const QUOTE_NUMBERS: usize = 11;

/// The newest prices of a security. Numbers are in units of 10⁻⁸, one for each column of [`QUOTES`]
/// between `security` and `previousDay`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct QuoteRow {
    pub at: Option<Timestamp>,
    pub security: SecurityId,
    pub numbers: [Option<i64>; QUOTE_NUMBERS],
    pub previous_day: Option<Timestamp>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RowLayout {
    Ticks,
    Levels,
    Bars,
}

impl RowLayout {
    /// Returns the first line of a CSV file, which names the columns.
    pub fn header(self) -> &'static str {
        match self {
            RowLayout::Ticks => TICKS,
            RowLayout::Levels => LEVELS,
            RowLayout::Bars => BARS,
        }
    }
}
