//! Rows of a run: orders, fills, round trips and samples. They are plain values in plain vectors,
//! so that a caller can turn them into tables of any kind.

use pitlane_engine::id::{IntId, OrderHandle, SecurityId, StrategyId};
use pitlane_engine::number::{Money, Price, Qty};
use pitlane_engine::reason::Reason;
use pitlane_engine::terms::{OrderKind, Side, Status, Tif};
use pitlane_engine::time::Timestamp;

/// An order, from its entry to its last known state.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OrderRecord {
    pub order: OrderHandle,
    pub id: IntId,
    pub strategy: StrategyId,
    pub security: SecurityId,
    pub side: Side,
    pub kind: OrderKind,
    pub tif: Tif,
    pub qty: Qty,
    pub limit: Option<Price>,
    pub stop: Option<Price>,
    pub entered: Timestamp,
    /// None if the order was open at the end of the run.
    pub ended: Option<Timestamp>,
    pub filled: Qty,
    /// Zero without a fill.
    pub avg_price: Price,
    pub status: Status,
    pub reason: Reason,
}

/// A transaction of an order, or the expiration of a position.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FillRecord {
    pub at: Timestamp,
    pub strategy: StrategyId,
    pub security: SecurityId,
    /// None for the expiration of a position.
    pub order_id: Option<IntId>,
    /// Signed: above zero bought, below zero sold.
    pub qty: Qty,
    pub price: Price,
    /// Commission and fees, in the currency of the security.
    pub fee: Money,
    /// Profit of the closed part before fees, in the currency of the security.
    pub realized: Money,
    /// Position after it.
    pub position: Qty,
}

/// A position of one security from its opening to the time at which it was flat again. A fill that
/// turns a long position into a short one ends one round trip and begins the next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RoundTrip {
    pub strategy: StrategyId,
    pub security: SecurityId,
    /// Buy for a long position.
    pub side: Side,
    pub opened: Timestamp,
    pub closed: Timestamp,
    /// Quantity that was opened, and closed again.
    pub qty: Qty,
    /// Average prices.
    pub entry: Price,
    pub exit: Price,
    pub fills: u32,
    /// In the base currency.
    pub fees: Money,
    /// Profit after fees, in the base currency.
    pub profit: Money,
}

impl RoundTrip {
    pub fn holding_ns(&self) -> u64 {
        self.closed.since(self.opened)
    }
}

/// Value of a strategy at one time, in the base currency.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct EquitySample {
    pub at: Timestamp,
    pub equity: Money,
    /// Sum of the absolute values of all positions.
    pub exposure: Money,
}

/// Prices of one security at the times of the samples: the middle of the quote, or the last price
/// without a quote.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PriceCurve {
    pub security: SecurityId,
    pub samples: Vec<(Timestamp, Price)>,
    /// At the end of each day with data.
    pub daily: Vec<(Timestamp, Price)>,
}

/// Rows up to a maximum; further rows are only counted.
#[derive(Clone, Debug, Default)]
pub struct BoundedRows<T> {
    rows: Vec<T>,
    max: usize,
    dropped: u64,
}

impl<T> BoundedRows<T> {
    pub fn new(max: usize) -> BoundedRows<T> {
        BoundedRows { rows: Vec::new(), max, dropped: 0 }
    }

    /// Adds a row and returns its index; `None` if the maximum is reached.
    pub fn push(&mut self, row: T) -> Option<usize> {
        if self.rows.len() >= self.max {
            self.dropped += 1;
            return None;
        }
        self.rows.push(row);
        Some(self.rows.len() - 1)
    }

    pub fn rows(&self) -> &[T] {
        &self.rows
    }

    pub(crate) fn row_mut(&mut self, at: usize) -> Option<&mut T> {
        self.rows.get_mut(at)
    }

    /// Returns the number of rows that are not kept.
    pub fn dropped(&self) -> u64 {
        self.dropped
    }

    /// Returns the number of all rows, kept or not.
    pub fn count(&self) -> u64 {
        self.rows.len() as u64 + self.dropped
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn so_many_rows_are_kept_and_all_are_counted() {
        let mut rows = BoundedRows::new(2);
        assert_eq!([rows.push('a'), rows.push('b'), rows.push('c')], [Some(0), Some(1), None]);
        assert_eq!((rows.rows(), rows.dropped(), rows.count()), (&['a', 'b'][..], 1, 3));
    }
}
