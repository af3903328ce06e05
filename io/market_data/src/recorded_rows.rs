//! What a recording contains.

use super::row_layout::RowLayout;

/// The rows of a recording.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RecordedRows {
    Ticks,
    Levels,
}

impl RecordedRows {
    pub(crate) fn layout(self) -> RowLayout {
        match self {
            RecordedRows::Ticks => RowLayout::Ticks,
            RecordedRows::Levels => RowLayout::Levels,
        }
    }
}
