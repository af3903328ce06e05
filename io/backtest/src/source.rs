//! Where the rows of a simulation come from: files that are merged while they are read, or rows in
//! memory that several runs share.

use std::sync::Arc;

use pitlane_engine::time::Timestamp;
use pitlane_market_data::{DataError, Merge, TickRow};

/// A stream of rows in time order.
pub trait TickSource {
    /// Returns the time of the next row; `None` at the end.
    fn peek(&self) -> Option<Timestamp>;

    /// Returns the next row; `None` at the end.
    fn next_row(&mut self) -> Result<Option<TickRow>, DataError>;

    /// Returns how much was read, and how much there is, in any unit.
    fn progress(&self) -> (u64, u64);
}

impl TickSource for Merge {
    fn peek(&self) -> Option<Timestamp> {
        Merge::peek(self)
    }

    #[inline]
    fn next_row(&mut self) -> Result<Option<TickRow>, DataError> {
        Merge::next_row(self)
    }

    fn progress(&self) -> (u64, u64) {
        (self.consumed(), self.bytes())
    }
}

/// A range of rows in memory, which other runs read at the same time.
#[derive(Clone, Debug)]
pub struct SharedRows {
    rows: Arc<Vec<TickRow>>,
    from: usize,
    next: usize,
    to: usize,
}

impl SharedRows {
    /// Creates a source of all rows, which must be in time order.
    pub fn new(rows: Vec<TickRow>) -> SharedRows {
        SharedRows { from: 0, next: 0, to: rows.len(), rows: Arc::new(rows) }
    }

    /// Returns a source of the rows from a time on, and before another.
    pub fn between(&self, from: Timestamp, to: Timestamp) -> SharedRows {
        let at = |time: Timestamp| self.rows.partition_point(|row| row.at < time);
        let (from, to) = (at(from), at(to));
        SharedRows { rows: self.rows.clone(), from, next: from, to: to.max(from) }
    }

    /// Returns the times of the first and the last row; `None` without rows.
    pub fn range(&self) -> Option<(Timestamp, Timestamp)> {
        let rows = &self.rows[self.from..self.to];
        Some((rows.first()?.at, rows.last()?.at))
    }
}

impl TickSource for SharedRows {
    fn peek(&self) -> Option<Timestamp> {
        self.rows[self.next..self.to].first().map(|row| row.at)
    }

    #[inline]
    fn next_row(&mut self) -> Result<Option<TickRow>, DataError> {
        let row = self.rows[self.next..self.to].first().copied();
        self.next += usize::from(row.is_some());
        Ok(row)
    }

    fn progress(&self) -> (u64, u64) {
        ((self.next - self.from) as u64, (self.to - self.from) as u64)
    }
}

#[cfg(test)]
mod tests {
    use pitlane_engine::command::CommandKind;
    use pitlane_engine::id::SecurityId;

    use super::*;

    #[test]
    fn a_range_has_its_first_row_and_not_its_last() {
        let security = SecurityId(1);
        let row = |at| TickRow {
            at: Timestamp(at),
            security,
            body: CommandKind::Trade { security, trade: Default::default() },
        };
        let all = SharedRows::new([1, 2, 2, 5, 9].map(row).to_vec());
        let times = |mut rows: SharedRows| {
            let mut times = Vec::new();
            while let Some(row) = rows.next_row().unwrap() {
                times.push(row.at.0);
            }
            assert_eq!((rows.peek(), rows.progress().0), (None, rows.progress().1));
            times
        };
        assert_eq!(all.range(), Some((Timestamp(1), Timestamp(9))));
        assert_eq!(times(all.between(Timestamp(2), Timestamp(9))), [2, 2, 5]);
        assert_eq!(times(all.between(Timestamp(6), Timestamp(3))), [0u64; 0]);
        assert_eq!(times(all), [1, 2, 2, 5, 9]);
    }
}
