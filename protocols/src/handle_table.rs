//! A table by order handle. Entries are in pages by slot, as in the shards, so that a new order
//! costs no search, and the table is bounded by the orders that the shards hold at once.

use pitlane_engine::id::OrderHandle;

/// Orders in a page. Allocating one more page of some 100 KiB delays nothing noticeably.
const PAGE: usize = 1_024;

/// One value for each order; an order whose slot has another one since has none.
#[derive(Debug, Default)]
pub(crate) struct HandleTable<T> {
    /// Pages by shard and slot.
    shards: Vec<Vec<Vec<HandleEntry<T>>>>,
}

#[derive(Clone, Debug, Default)]
struct HandleEntry<T> {
    /// Generation of the order in this slot; `None` before the first one.
    generation: Option<u32>,
    value: T,
}

impl<T: Clone + Default> HandleTable<T> {
    /// Sets the value of an order. An order that never had a slot has no place here.
    pub(crate) fn set(&mut self, order: OrderHandle, value: T) {
        if order == OrderHandle::NONE {
            return;
        }
        let (shard, page, place) = place(order);
        if self.shards.len() <= shard {
            self.shards.resize_with(shard + 1, Vec::new);
        }
        let pages = &mut self.shards[shard];
        while pages.len() <= page {
            pages.push(vec![HandleEntry::default(); PAGE]);
        }
        pages[page][place] = HandleEntry { generation: Some(order.generation()), value };
    }

    pub(crate) fn get(&self, order: OrderHandle) -> Option<&T> {
        let (shard, page, place) = place(order);
        let entry = self.shards.get(shard)?.get(page)?.get(place)?;
        (entry.generation == Some(order.generation())).then_some(&entry.value)
    }

    pub(crate) fn get_mut(&mut self, order: OrderHandle) -> Option<&mut T> {
        let (shard, page, place) = place(order);
        let entry = self.shards.get_mut(shard)?.get_mut(page)?.get_mut(place)?;
        (entry.generation == Some(order.generation())).then_some(&mut entry.value)
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
        let mut table = HandleTable::default();
        let order = |generation| OrderHandle::new(ShardId(3), generation, 5_000);
        assert_eq!(table.get(order(0)), None::<&u32>, "no order had the slot");
        table.set(order(1), 7);
        table.set(OrderHandle::NONE, 8);
        assert_eq!((table.get(order(1)), table.get(OrderHandle::NONE)), (Some(&7), None));
        *table.get_mut(order(1)).unwrap() += 1;
        table.set(order(2), 9);
        assert_eq!((table.get(order(1)), table.get(order(2))), (None, Some(&9)));
        assert_eq!(table.get_mut(order(1)), None);
    }

    #[test]
    fn each_slot_of_each_shard_has_its_own_value() {
        let slots = [0, 1, 2, 1_023, 1_024, 1_025, 2_048];
        let order = |shard, slot| OrderHandle::new(ShardId(shard), 1, slot);
        let orders: Vec<_> =
            [0, 1, 2].into_iter().flat_map(|shard| slots.map(|slot| order(shard, slot))).collect();
        let mut table = HandleTable::default();
        (0u32..).zip(&orders).for_each(|(value, order)| table.set(*order, value));
        for (value, order) in (0..).zip(&orders) {
            assert_eq!(table.get(*order), Some(&value), "{order:?}");
        }
        assert_eq!(table.get(order(3, 0)), None);
        assert_eq!(table.get(order(2, 4_096)), None);
    }
}
