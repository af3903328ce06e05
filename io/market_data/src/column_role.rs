//! What the columns of a file contain.

use super::row_layout::RowLayout;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ColumnRole {
    Time,
    Security,
    Side,
    Number,
}

impl ColumnRole {
    /// Returns the role of a column of ticks, levels or bars.
    pub(crate) fn of(name: &str) -> ColumnRole {
        match name {
            "time" => ColumnRole::Time,
            "security" => ColumnRole::Security,
            "side" => ColumnRole::Side,
            _ => ColumnRole::Number,
        }
    }
}

/// Returns the columns in the order of the header.
pub(crate) fn columns(layout: RowLayout) -> impl Iterator<Item = (&'static str, ColumnRole)> {
    layout.header().split(',').map(|name| (name, ColumnRole::of(name)))
}
