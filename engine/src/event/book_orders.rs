//! Changes of the single orders of a book (L3), so that a receiver can rebuild it with the place of
//! each order in its queue.
//!
//! A port that watches the orders of a book ([`crate::command::WatchTarget::BookOrders`]) receives
//! one snapshot and then updates, as with [`super::LevelChanges`]. A message has as many parts as
//! it needs; the first and the last are marked. Its changes are applied in order:
//!
//! | change | meaning |
//! |---|---|
//! | ADD | a new order, behind all others at its price |
//! | CHANGE | another quantity; the order keeps its place |
//! | REMOVE | the order leaves the book |
//! | TRADE | the order has traded this quantity; it leaves the book with the last of it |
//!
//! [`crate::book_orders::BookOrders`] applies them.

use super::LevelsKind;
use crate::id::{OrderHandle, SecurityId};
use crate::index::index_u8;
use crate::number::{Price, Qty};
use crate::terms::Side;

/// Orders of each side that are published, the first ones to trade. They and the script of a
/// message that replaces all of them take 130 KiB for each watched book.
pub const ORDERS_PER_SIDE_MAX: usize = 500;
/// Trades of all watched books between two publications. Further ones are published as CHANGE and
/// REMOVE, so that the book is exact all the same.
pub const ORDER_TRADES_MAX: usize = 256;
/// Most changes of one message: all trades, and both sides lose all their orders and get others.
pub const ORDER_SCRIPT_MAX: usize = 4 * ORDERS_PER_SIDE_MAX + ORDER_TRADES_MAX;
/// Changes in one event: as many as fit.
pub const ORDER_CHANGES_MAX: usize = 5;

/// Number of an order in the book of its venue. It never changes while the order is at the venue,
/// and says nothing about its owner.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct OrderNumber(pub u64);

impl OrderNumber {
    /// Set in the numbers of the feed's orders, so that they differ from those of clients.
    const FEED: u64 = 1 << 62;
    const FEED_ASK: u64 = 1 << 61;

    /// Returns the number of a client's order: slot and generation, which no other order of its
    /// shard has at the same time.
    pub fn of_client(handle: OrderHandle) -> OrderNumber {
        OrderNumber((handle.generation() as u64) << 32 | handle.slot() as u64)
    }

    /// Returns the number of what the feed shows at a price, which counts as one order.
    pub fn of_feed(side: Side, ticks: i64) -> OrderNumber {
        let side = if side == Side::Sell { OrderNumber::FEED_ASK } else { 0 };
        OrderNumber(OrderNumber::FEED | side | ticks.cast_unsigned() & (OrderNumber::FEED_ASK - 1))
    }
}

/// An order in the book.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct BookOrder {
    pub number: OrderNumber,
    pub price: Price,
    /// Remaining quantity.
    pub qty: Qty,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(u8)]
pub enum OrderAction {
    #[default]
    Add,
    Change,
    Remove,
    Trade,
}

impl OrderAction {
    pub const ALL: [OrderAction; 4] =
        [OrderAction::Add, OrderAction::Change, OrderAction::Remove, OrderAction::Trade];
}

/// One change. The price is that of the order in the book; the quantity is the new one, the traded
/// one of a TRADE, and zero for a REMOVE.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct OrderChange {
    pub action: OrderAction,
    pub side: Side,
    pub order: BookOrder,
}

/// One part of a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OrderChanges {
    /// The first `count` of them are valid.
    orders: [BookOrder; ORDER_CHANGES_MAX],
    /// Sequence numbers as in [`super::LevelChanges`].
    pub prev_seq: u64,
    pub seq: u64,
    pub security: SecurityId,
    /// Action of each order, with the lowest bit for its side.
    codes: [u8; ORDER_CHANGES_MAX],
    count: u8,
    pub kind: LevelsKind,
    pub is_first: bool,
    pub is_last: bool,
}

impl OrderChanges {
    pub fn new(security: SecurityId, kind: LevelsKind, prev_seq: u64, seq: u64) -> OrderChanges {
        OrderChanges {
            orders: [BookOrder::default(); ORDER_CHANGES_MAX],
            prev_seq,
            seq,
            security,
            codes: [0; ORDER_CHANGES_MAX],
            count: 0,
            kind,
            is_first: false,
            is_last: false,
        }
    }

    /// Adds a change; the caller has checked that there is room.
    pub fn push(&mut self, change: &OrderChange) {
        let at = self.count as usize;
        self.orders[at] = change.order;
        self.codes[at] = (change.action as u8) << 1 | change.side as u8;
        self.count = index_u8(at + 1);
    }

    /// Returns the changes in order.
    pub fn changes(&self) -> impl Iterator<Item = OrderChange> {
        self.orders.iter().zip(self.codes).take(self.count as usize).map(|(order, code)| OrderChange {
            action: OrderAction::ALL[(code >> 1 & 3) as usize],
            side: Side::BOTH[(code & 1) as usize],
            order: *order,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::id::ShardId;

    #[test]
    fn changes_come_back_with_action_and_side() {
        let mut part = OrderChanges::new(SecurityId(7), LevelsKind::Update, 3, 4);
        let change = |at: usize| OrderChange {
            action: OrderAction::ALL[at % 4],
            side: Side::BOTH[at % 2],
            order: BookOrder {
                number: OrderNumber(at as u64),
                price: Price::from_raw(at as i64),
                qty: Qty::from_raw(10 * at as i64),
            },
        };
        let all: Vec<OrderChange> = (0..ORDER_CHANGES_MAX).map(change).collect();
        all.iter().for_each(|change| part.push(change));
        assert!(part.changes().eq(all));
    }

    #[test]
    fn numbers_of_the_feed_differ_from_those_of_clients() {
        let highest = OrderHandle::new(ShardId(254), crate::id::GENERATIONS - 1, u32::MAX);
        let client = OrderNumber::of_client(highest);
        assert!(client.0 < 1 << 56);
        let feed = [-5, 0, 7, i64::MAX / 8].map(|ticks| OrderNumber::of_feed(Side::Buy, ticks));
        let asks = [-5, 0, 7, i64::MAX / 8].map(|ticks| OrderNumber::of_feed(Side::Sell, ticks));
        let mut all: Vec<u64> = feed.into_iter().chain(asks).map(|number| number.0).collect();
        assert!(all.iter().all(|number| (1 << 62..1 << 63).contains(number)));
        all.sort_unstable();
        all.dedup();
        assert_eq!(all.len(), 8);
    }
}
