//! Rows in columns, as Parquet and Arrow store them. The recorder fills one for each group of rows,
//! the history one for each answer.

use std::io;

use pitlane_engine::id::SecurityId;
use pitlane_engine::terms::Side;
use pitlane_engine::time::Timestamp;

use super::column_role::{ColumnRole, columns};
use super::row_layout::RowLayout;

/// Digits and places of a price or a size. Integers and decimals, no floats: the values read back
/// are exactly those that were traded.
pub(crate) const DECIMAL_DIGITS: u8 = 18;
pub(crate) const DECIMAL_PLACES: u8 = 8;

/// Prices and sizes of a tick, which has the most.
pub(crate) const TICK_NUMBERS: usize = 6;

#[derive(Debug)]
pub(crate) struct RowTable {
    pub(crate) layout: RowLayout,
    /// Nanoseconds since the epoch.
    pub(crate) times: Vec<i64>,
    pub(crate) securities: Vec<i32>,
    /// Only of levels.
    pub(crate) sides: Vec<Side>,
    pub(crate) numbers: Vec<NumberColumn>,
}

/// Prices or sizes in units of 10⁻⁸.
#[derive(Clone, Debug, Default)]
pub(crate) struct NumberColumn {
    /// For each row 1 if it has a value, otherwise 0: the definition levels of Parquet.
    pub(crate) levels: Vec<i16>,
    /// The values of the rows that have one.
    pub(crate) values: Vec<i64>,
}

impl RowTable {
    pub(crate) fn new(layout: RowLayout) -> RowTable {
        let numbers = columns(layout).filter(|(_, role)| *role == ColumnRole::Number).count();
        RowTable {
            layout,
            times: Vec::new(),
            securities: Vec::new(),
            sides: Vec::new(),
            numbers: vec![NumberColumn::default(); numbers],
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
        assert_eq!(numbers.len(), self.numbers.len(), "a cell for each column");
        let at = i64::try_from(at.0).map_err(|_| io::Error::other("a time after the year 2262"))?;
        self.times.push(at);
        self.securities.push(security.0.cast_signed());
        for (column, number) in self.numbers.iter_mut().zip(numbers) {
            column.levels.push(i16::from(number.is_some()));
            column.values.extend(number);
        }
        Ok(())
    }

    pub(crate) fn rows(&self) -> usize {
        self.times.len()
    }

    /// Removes the rows and keeps the memory.
    pub(crate) fn clear(&mut self) {
        self.times.clear();
        self.securities.clear();
        self.sides.clear();
        for column in &mut self.numbers {
            column.levels.clear();
            column.values.clear();
        }
    }
}
