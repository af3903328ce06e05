//! Orders that work at the venue, as far as the adapter needs to know them.
//!
//! The shards own the orders. This table only decides how an order can be changed, and which trades
//! were reported. It is rebuilt from the venue's answers after a restart.

use std::collections::BTreeMap;

use pitlane_engine::id::{IntId, OrderHandle, SecurityId};
use pitlane_engine::number::{Price, Qty};
use pitlane_engine::time::Timestamp;

use crate::fix::venue::id::{order_of, venue_id};

/// Orders at the venue at one time. The venue itself allows some hundred for each symbol.
pub const HELD_ORDERS_MAX: usize = 1 << 16;

/// A change that the venue has not answered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum PendingChange {
    Cancel,
    /// A cancel because the trading day of the order is over.
    DayEnd,
    Replace {
        qty: Qty,
        limit: Price,
        day_ends: Timestamp,
    },
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct HeldOrder {
    pub security: SecurityId,
    pub qty: Qty,
    pub limit: Price,
    /// Filled quantity, as far as the venue has reported it.
    pub cum: Qty,
    /// Trades that were reported to the shard, and those that the shard has stored. No trade before
    /// the newest of them is missing.
    pub reported: TradeMark,
    pub stored: TradeMark,
    pub change: Option<PendingChange>,
    /// Our time at which an order for the day is cancelled.
    pub day_ends: Timestamp,
    /// Whether the venue shows only a part of the quantity.
    pub is_iceberg: bool,
}

/// The trades of an order up to one of them. The venue's trade ids of a symbol increase.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct TradeMark {
    /// Id that the next trade has at least.
    pub next: u64,
    /// Quantity of all trades before.
    pub cum: Qty,
}

impl TradeMark {
    /// Returns the mark after this trade; `None` if the trade is before it, or cannot be counted.
    pub(super) fn after(self, trade: u64, qty: Qty) -> Option<TradeMark> {
        let is_new = trade >= self.next;
        is_new.then_some(TradeMark { next: trade.checked_add(1)?, cum: self.cum.checked_add(qty)? })
    }
}

impl HeldOrder {
    /// Creates an order of which no trade is known.
    pub(super) fn new(security: SecurityId, qty: Qty, limit: Price) -> HeldOrder {
        let (reported, stored) = (TradeMark::default(), TradeMark::default());
        let day_ends = Timestamp::MAX;
        let (cum, change, is_iceberg) = (Qty::ZERO, None, false);
        HeldOrder { security, qty, limit, cum, reported, stored, change, day_ends, is_iceberg }
    }
}

/// The part that a client order id plays.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum IdRole {
    /// The order works, or the venue ended it.
    Live,
    /// We cancelled it.
    Canceled,
    /// A new order has replaced it.
    Replaced,
    /// We cancelled it because its trading day was over.
    DayEnded,
}

impl IdRole {
    fn prefix(self) -> &'static str {
        match self {
            IdRole::Live => "",
            IdRole::Canceled => "C",
            IdRole::Replaced => "R",
            IdRole::DayEnded => "D",
        }
    }
}

/// Ids of orders at the venue. They need no table.
#[derive(Clone, Copy, Debug)]
pub(super) struct ClientOrderIds {
    pub folder_id: u64,
}

impl ClientOrderIds {
    pub(super) fn id(self, order: OrderHandle, role: IdRole) -> String {
        let id = venue_id(self.folder_id, order, &IntId::NONE);
        format!("{}{id}", role.prefix())
    }

    /// Returns the order of an id, or `None` if this data folder has not made the id.
    pub(super) fn order(self, id: &str) -> Option<(OrderHandle, IdRole)> {
        let roles = [IdRole::Live, IdRole::Canceled, IdRole::Replaced, IdRole::DayEnded];
        roles.into_iter().find_map(|role| {
            let order = order_of(id.strip_prefix(role.prefix())?.as_bytes())?;
            (self.id(order, role) == id).then_some((order, role))
        })
    }
}

/// The orders.
#[derive(Debug, Default)]
pub(super) struct HeldOrders {
    orders: BTreeMap<OrderHandle, HeldOrder>,
    /// Our time at which orders for the day are checked; at or before the first end of a day.
    day_check_at: Option<Timestamp>,
}

impl HeldOrders {
    pub(super) fn has_room(&self) -> bool {
        self.orders.len() < HELD_ORDERS_MAX
    }

    pub(super) fn get(&self, order: OrderHandle) -> Option<&HeldOrder> {
        self.orders.get(&order)
    }

    pub(super) fn get_mut(&mut self, order: OrderHandle) -> Option<&mut HeldOrder> {
        self.orders.get_mut(&order)
    }

    /// Adds an order, unless there are too many; a change of it is refused then.
    pub(super) fn insert(&mut self, order: OrderHandle, held: HeldOrder) {
        if self.has_room() {
            self.orders.insert(order, held);
            self.check_day_at(held.day_ends);
        }
    }

    /// Checks the orders for the day at this time, if not earlier.
    pub(super) fn check_day_at(&mut self, at: Timestamp) {
        self.day_check_at = Some(self.day_check_at.map_or(at, |earlier| earlier.min(at)));
    }

    /// Delays the check of the orders for the day.
    pub(super) fn delay_day_check(&mut self, at: Timestamp) {
        self.day_check_at = Some(at);
    }

    pub(super) fn day_check_at(&self) -> Timestamp {
        self.day_check_at.unwrap_or(Timestamp::MAX)
    }

    /// Returns orders whose day is over and that are not being changed, at most so many, and sets
    /// the time of the next check.
    pub(super) fn take_overdue(&mut self, now: Timestamp, retry: Timestamp, most: usize) -> Vec<OrderHandle> {
        let is_due = |held: &HeldOrder| held.day_ends <= now;
        let idle = self.orders.iter().filter(|(_, held)| is_due(held) && held.change.is_none());
        let overdue: Vec<OrderHandle> = idle.map(|(order, _)| *order).take(most).collect();
        self.day_check_at = match overdue.len() {
            // There may be more.
            count if count == most => Some(now),
            _ => self.orders.values().map(|held| if is_due(held) { retry } else { held.day_ends }).min(),
        };
        overdue
    }

    pub(super) fn remove(&mut self, order: OrderHandle) {
        self.orders.remove(&order);
    }

    /// Handles the end of a connection: requests have no answer any more, and trades that no shard
    /// has stored are reported again.
    pub(super) fn handle_disconnect(&mut self) {
        for held in self.orders.values_mut() {
            (held.change, held.reported) = (None, held.stored);
        }
        // Cancels that were on their way are sent again, once there is a connection.
        self.day_check_at = self.orders.values().map(|held| held.day_ends).min();
    }
}

#[cfg(test)]
mod tests {
    use pitlane_engine::id::ShardId;

    use super::*;

    fn held() -> HeldOrder {
        HeldOrder::new(SecurityId(1), Qty::ZERO, Price::ZERO)
    }

    #[test]
    fn ids_lead_back_to_the_order_and_to_what_became_of_it() {
        let ids = ClientOrderIds { folder_id: 9 };
        let order = OrderHandle::new(ShardId(3), 7, 99);
        for role in [IdRole::Live, IdRole::Canceled, IdRole::Replaced, IdRole::DayEnded] {
            let id = ids.id(order, role);
            assert!(id.len() <= 36 && id.bytes().all(|byte| byte.is_ascii_alphanumeric()), "{id}");
            assert_eq!(ids.order(&id), Some((order, role)));
            assert_eq!(ClientOrderIds { folder_id: 8 }.order(&id), None, "of another data folder");
        }
        for other in ["", "C", "web_123", "mUvoqJxFIILMdfAW5iGSOW", "C\u{e9}"] {
            assert_eq!(ids.order(other), None);
        }
    }

    #[test]
    fn a_trade_is_reported_again_only_if_no_shard_has_stored_it() {
        let (order, one) = (OrderHandle::new(ShardId(0), 1, 1), Qty::from_raw(1));
        let mut orders = HeldOrders::default();
        orders.insert(order, held());
        let first = TradeMark::default().after(5, one).unwrap();
        assert_eq!(first.after(5, one), None);
        let second = first.after(8, one).unwrap();
        assert_eq!(second, TradeMark { next: 9, cum: Qty::from_raw(2) });
        assert_eq!(second.after(u64::MAX, one), None);
        let place = orders.get_mut(order).unwrap();
        (place.reported, place.stored) = (second, first);
        orders.handle_disconnect();
        assert_eq!(orders.get(order).unwrap().reported, first);
    }

    #[test]
    fn orders_whose_day_is_over_are_taken_a_part_at_a_time() {
        let mut orders = HeldOrders::default();
        let order = |slot| OrderHandle::new(ShardId(0), 1, slot);
        for slot in 0..5 {
            let day_ends = Timestamp(if slot == 4 { 90 } else { 50 });
            orders.insert(order(slot), HeldOrder { day_ends, ..held() });
        }
        assert_eq!(orders.day_check_at(), Timestamp(50));
        let [now, retry] = [Timestamp(60), Timestamp(70)];
        assert_eq!(orders.take_overdue(now, retry, 3), [order(0), order(1), order(2)]);
        assert_eq!(orders.day_check_at(), now, "there may be more");
        for slot in 0..4 {
            orders.get_mut(order(slot)).unwrap().change = Some(PendingChange::DayEnd);
        }
        assert_eq!(orders.take_overdue(now, retry, 3), []);
        assert_eq!(orders.day_check_at(), retry, "in case their cancels fail");
        orders.delay_day_check(Timestamp(80));
        assert_eq!(orders.day_check_at(), Timestamp(80));
        (0..4).for_each(|slot| orders.remove(order(slot)));
        assert_eq!(orders.take_overdue(now, retry, 3), []);
        assert_eq!(orders.day_check_at(), Timestamp(90));
    }

    #[test]
    fn the_number_of_held_orders_is_bounded() {
        let mut orders = HeldOrders::default();
        for slot in 0..HELD_ORDERS_MAX as u32 + 2 {
            orders.insert(OrderHandle::new(ShardId(0), 1, slot), held());
        }
        assert_eq!((orders.orders.len(), orders.has_room()), (HELD_ORDERS_MAX, false));
        orders.remove(OrderHandle::new(ShardId(0), 1, 0));
        assert!(orders.has_room());
    }
}
