//! Submission time and latest fill of every order, so that a modified order can be published
//! completely. Entries are in pages by slot, as in the shards, so that a new order costs no search.

use pitlane_engine::event::OrderReport;
use pitlane_engine::id::OrderHandle;
use pitlane_engine::time::Timestamp;

use crate::stomp::payload::orders::OrderHistory;

/// Orders in a page of 160 KiB. Allocating one more page delays nothing noticeably.
const PAGE: usize = 4_096;

/// Histories, bounded by the orders that the shards hold at once.
#[derive(Debug, Default)]
pub(super) struct OrderHistories {
    /// Pages by shard and slot.
    shards: Vec<Vec<Vec<HistoryEntry>>>,
}

#[derive(Clone, Copy, Debug, Default)]
struct HistoryEntry {
    generation: u32,
    past: OrderHistory,
}

impl OrderHistories {
    /// Adds an order at its first event.
    pub(super) fn begin(&mut self, order: OrderHandle, at: Timestamp) {
        // A refused order may never have had a slot.
        if order == OrderHandle::NONE {
            return;
        }
        let (shard, page, place) = place(order);
        if self.shards.len() <= shard {
            self.shards.resize_with(shard + 1, Vec::new);
        }
        let pages = &mut self.shards[shard];
        while pages.len() <= page {
            pages.push(vec![HistoryEntry::default(); PAGE]);
        }
        let past = OrderHistory { submitted: at, ..OrderHistory::default() };
        pages[page][place] = HistoryEntry { generation: order.generation(), past };
    }

    /// Records a fill, if the report has one.
    pub(super) fn note(&mut self, report: &OrderReport) {
        if report.last_qty.is_zero() {
            return;
        }
        let (shard, page, place) = place(report.order);
        let kept = self.shards.get_mut(shard).and_then(|pages| pages.get_mut(page)?.get_mut(place));
        if let Some(kept) = kept.filter(|kept| kept.generation == report.order.generation()) {
            (kept.past.last_qty, kept.past.last_price) = (report.last_qty, report.last_price);
        }
    }

    /// Returns the history of an order, or `None` if no event of it was handled here.
    pub(super) fn of(&self, order: OrderHandle) -> Option<OrderHistory> {
        let (shard, page, place) = place(order);
        let kept = self.shards.get(shard)?.get(page)?.get(place)?;
        (kept.generation == order.generation()).then_some(kept.past)
    }
}

fn place(order: OrderHandle) -> (usize, usize, usize) {
    let slot = order.slot() as usize;
    (order.shard().0 as usize, slot / PAGE, slot % PAGE)
}

#[cfg(test)]
mod tests {
    use pitlane_engine::id::ShardId;

    use super::*;

    #[test]
    fn an_order_is_known_until_another_has_its_slot() {
        let mut order_histories = OrderHistories::default();
        let order = |generation| OrderHandle::new(ShardId(3), generation, 5_000);
        assert_eq!(order_histories.of(order(1)), None);
        order_histories.begin(order(1), Timestamp(7));
        order_histories.begin(OrderHandle::NONE, Timestamp(8));
        assert_eq!(order_histories.of(order(1)).map(|past| past.submitted), Some(Timestamp(7)));
        order_histories.begin(order(2), Timestamp(9));
        assert_eq!(order_histories.of(order(1)), None);
        assert_eq!(order_histories.of(order(2)).map(|past| past.submitted), Some(Timestamp(9)));
    }
}
