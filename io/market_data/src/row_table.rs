//! Rows in columns, as Parquet and Arrow store them. The recorder fills one for each group of rows,
//! the history one for each answer.

use std::{io, iter};

use pitlane_engine::id::SecurityId;
use pitlane_engine::terms::Side;
use pitlane_engine::time::Timestamp;

use super::column_role::{TableLayout, columns};
use super::row_layout::QuoteRow;

/// Digits and places of a price or a size. Integers and decimals, no floats: the values read back
/// are exactly those that were traded.
pub(crate) const DECIMAL_DIGITS: u8 = 18;
pub(crate) const DECIMAL_PLACES: u8 = 8;

/// Prices and sizes of a tick, which has the most.
pub(crate) const TICK_NUMBERS: usize = 6;

#[derive(Debug)]
pub(crate) struct RowTable {
    pub(crate) layout: TableLayout,
    /// Nanoseconds since the epoch; none in quotes, whose times are optional.
    pub(crate) times: Vec<i64>,
    pub(crate) securities: Vec<i32>,
    /// Only of levels.
    pub(crate) sides: Vec<Side>,
    pub(crate) optionals: Vec<OptionalColumn>,
}

/// Prices or sizes in units of 10⁻⁸, or times in nanoseconds since the epoch.
#[derive(Clone, Debug, Default)]
pub(crate) struct OptionalColumn {
    /// For each row 1 if it has a value, otherwise 0: the definition levels of Parquet.
    pub(crate) levels: Vec<i16>,
    /// The values of the rows that have one.
    pub(crate) values: Vec<i64>,
}

impl RowTable {
    pub(crate) fn new(layout: TableLayout) -> RowTable {
        let optionals = columns(layout).filter(|(_, role)| role.is_optional()).count();
        RowTable {
            layout,
            times: Vec::new(),
            securities: Vec::new(),
            sides: Vec::new(),
            optionals: vec![OptionalColumn::default(); optionals],
        }
    }

    /// Adds a row; the side of a level is added to `sides`. There is a number for each price and
    /// each size, in units of 10⁻⁸; an empty cell is `None`.
    pub(crate) fn push(
        &mut self,
        at: Timestamp,
        security: SecurityId,
        numbers: &[Option<i64>],
    ) -> io::Result<()> {
        self.times.push(nanoseconds(at)?);
        self.push_optionals(security, numbers.iter().copied());
        Ok(())
    }

    /// Adds a quote.
    pub(crate) fn push_quote(&mut self, quote: &QuoteRow) -> io::Result<()> {
        let [at, previous_day] = [quote.at, quote.previous_day].map(|at| at.map(nanoseconds).transpose());
        let numbers = quote.numbers.into_iter();
        self.push_optionals(quote.security, iter::once(at?).chain(numbers).chain([previous_day?]));
        Ok(())
    }

    fn push_optionals(&mut self, security: SecurityId, cells: impl Iterator<Item = Option<i64>>) {
        self.securities.push(security.0.cast_signed());
        let mut columns = self.optionals.iter_mut();
        for cell in cells {
            let column = columns.next().expect("a column for each cell");
            column.levels.push(i16::from(cell.is_some()));
            column.values.extend(cell);
        }
        assert!(columns.next().is_none(), "a cell for each column");
    }

    pub(crate) fn rows(&self) -> usize {
        self.securities.len()
    }

    /// Removes the rows and keeps the memory.
    pub(crate) fn clear(&mut self) {
        self.times.clear();
        self.securities.clear();
        self.sides.clear();
        for column in &mut self.optionals {
            column.levels.clear();
            column.values.clear();
        }
    }
}

fn nanoseconds(at: Timestamp) -> io::Result<i64> {
    i64::try_from(at.0).map_err(|_| io::Error::other("a time after the year 2262"))
}
