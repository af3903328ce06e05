//! What a recording contains.

use super::csv::{LEVELS, TICKS};

/// The rows of a recording.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RecordedRows {
    Ticks,
    Levels,
}

impl RecordedRows {
    /// Returns the first line of a CSV file.
    pub(crate) fn header(self) -> &'static str {
        match self {
            RecordedRows::Ticks => TICKS,
            RecordedRows::Levels => LEVELS,
        }
    }
}
