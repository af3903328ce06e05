//! What the rows of a file are, and their columns by name.

pub const TICKS: &str = "time,security,bid,bidSize,ask,askSize,last,lastSize";
pub const LEVELS: &str = "time,security,side,price,size";
pub const BARS: &str = "time,security,open,high,low,close,volume";

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
