//! What the columns of a table contain.

use super::row_layout::{QUOTES, RowLayout};

/// What a table has in its rows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum TableLayout {
    /// Rows of a file that we read too.
    Rows(RowLayout),
    /// The newest prices, which are only written.
    Quotes,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ColumnRole {
    Time,
    /// A time that a row may lack.
    OptionalTime,
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

    /// Returns the role of a column of quotes. A security without a tick has no time.
    fn of_quotes(name: &str) -> ColumnRole {
        match name {
            "time" | "previousDay" => ColumnRole::OptionalTime,
            name => ColumnRole::of(name),
        }
    }

    /// Returns whether cells of the column may be empty.
    pub(crate) fn is_optional(self) -> bool {
        match self {
            ColumnRole::OptionalTime | ColumnRole::Number => true,
            ColumnRole::Time | ColumnRole::Security | ColumnRole::Side => false,
        }
    }
}

/// Returns the columns in the order of the header.
pub(crate) fn columns(layout: TableLayout) -> impl Iterator<Item = (&'static str, ColumnRole)> {
    let (header, role_of): (_, fn(&str) -> ColumnRole) = match layout {
        TableLayout::Rows(rows) => (rows.header(), ColumnRole::of),
        TableLayout::Quotes => (QUOTES, ColumnRole::of_quotes),
    };
    header.split(',').map(move |name| (name, role_of(name)))
}
