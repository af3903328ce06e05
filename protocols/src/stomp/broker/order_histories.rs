//! Submission time and latest fill of every order, so that a modified order can be published
//! completely.

use pitlane_engine::event::OrderReport;
use pitlane_engine::id::OrderHandle;
use pitlane_engine::time::Timestamp;

use crate::handle_table::HandleTable;
use crate::stomp::payload::orders::OrderHistory;

/// Histories, bounded by the orders that the shards hold at once.
#[derive(Debug, Default)]
pub(super) struct OrderHistories {
    histories: HandleTable<OrderHistory>,
}

impl OrderHistories {
    /// Adds an order at its first event.
    pub(super) fn begin(&mut self, order: OrderHandle, at: Timestamp) {
        self.histories.set(order, OrderHistory { submitted: at, ..OrderHistory::default() });
    }

    /// Records a fill, if the report has one.
    pub(super) fn note(&mut self, report: &OrderReport) {
        if report.last_qty.is_zero() {
            return;
        }
        if let Some(kept) = self.histories.get_mut(report.order) {
            (kept.last_qty, kept.last_price) = (report.last_qty, report.last_price);
        }
    }

    /// Returns the history of an order, or `None` if no event of it was handled here.
    pub(super) fn of(&self, order: OrderHandle) -> Option<OrderHistory> {
        self.histories.get(order).copied()
    }
}
