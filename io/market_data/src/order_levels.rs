//! A book of single orders, from which the price levels follow: NASDAQ ITCH and Databento MBO.

use std::collections::{HashMap, VecDeque};

use pitlane_engine::number::{Price, Qty};
use pitlane_engine::terms::Side;
use pitlane_engine::time::Timestamp;

use super::TickRow;
use super::top_levels::TopLevels;

/// Most orders of all books of a file: a whole market has some two million at once. An order takes
/// about 50 bytes.
pub(crate) const ORDERS_MAX: usize = 8_000_000;

/// A resting order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct RestingOrder {
    pub(crate) side: Side,
    pub(crate) price: Price,
    pub(crate) size: Qty,
}

/// The orders of one security.
#[derive(Debug)]
pub(crate) struct OrderLevels {
    orders: HashMap<u64, RestingOrder>,
    levels: TopLevels,
}

/// Where changes go: the time of the change, the rows that follow from it, and the orders of all
/// books.
#[derive(Debug)]
pub(crate) struct BookOutput<'a> {
    pub(crate) at: Timestamp,
    pub(crate) rows: &'a mut VecDeque<TickRow>,
    pub(crate) orders: &'a mut usize,
}

impl OrderLevels {
    pub(crate) fn new(levels: TopLevels) -> OrderLevels {
        OrderLevels { orders: HashMap::new(), levels }
    }

    pub(crate) fn levels(&mut self) -> &mut TopLevels {
        &mut self.levels
    }

    pub(crate) fn order(&self, id: u64) -> Option<RestingOrder> {
        self.orders.get(&id).copied()
    }

    pub(crate) fn add(
        &mut self,
        id: u64,
        order: RestingOrder,
        out: &mut BookOutput<'_>,
    ) -> Result<(), String> {
        if self.orders.contains_key(&id) {
            return Err(format!("order {id} is already in the book"));
        }
        if *out.orders == ORDERS_MAX {
            return Err(format!("there are more than {ORDERS_MAX} orders in the books"));
        }
        self.levels.change(out.at, order.side, order.price, order.size.raw(), out.rows)?;
        self.orders.insert(id, order);
        *out.orders += 1;
        Ok(())
    }

    /// Takes from an order; an order without a rest is removed. Returns the order before.
    pub(crate) fn reduce(
        &mut self,
        id: u64,
        by: Qty,
        out: &mut BookOutput<'_>,
    ) -> Result<RestingOrder, String> {
        let order = self.orders.get_mut(&id).ok_or_else(|| unknown(id))?;
        let before = *order;
        if by > before.size {
            return Err(format!("order {id} has {} and loses {by}", before.size));
        }
        order.size = Qty::from_raw(before.size.raw() - by.raw());
        if order.size.is_zero() {
            self.orders.remove(&id);
            *out.orders -= 1;
        }
        self.levels.change(out.at, before.side, before.price, -by.raw(), out.rows)?;
        Ok(before)
    }

    pub(crate) fn remove(&mut self, id: u64, out: &mut BookOutput<'_>) -> Result<RestingOrder, String> {
        let order = self.orders.remove(&id).ok_or_else(|| unknown(id))?;
        *out.orders -= 1;
        self.levels.change(out.at, order.side, order.price, -order.size.raw(), out.rows)?;
        Ok(order)
    }

    /// Removes all orders and levels.
    pub(crate) fn clear(&mut self, out: &mut BookOutput<'_>) {
        *out.orders -= self.orders.len();
        self.orders.clear();
        self.levels.clear(out.at, out.rows);
    }
}

fn unknown(id: u64) -> String {
    format!("order {id} is not in the book")
}

#[cfg(test)]
mod tests {
    use pitlane_engine::id::SecurityId;

    use super::*;

    fn order(size: i64) -> RestingOrder {
        RestingOrder { side: Side::Buy, price: Price::from_raw(7), size: Qty::from_raw(size) }
    }

    #[test]
    fn the_number_of_orders_is_bounded() {
        let mut book = OrderLevels::new(TopLevels::new(SecurityId(1), 1));
        let (mut rows, mut orders) = (VecDeque::new(), ORDERS_MAX - 1);
        let mut out = BookOutput { at: Timestamp(1), rows: &mut rows, orders: &mut orders };
        assert_eq!(book.add(1, order(5), &mut out), Ok(()));
        let refused = book.add(2, order(5), &mut out);
        assert_eq!(refused, Err("there are more than 8000000 orders in the books".to_string()));
        assert_eq!(book.remove(1, &mut out), Ok(order(5)));
        assert_eq!(book.add(2, order(5), &mut out), Ok(()));
        book.clear(&mut out);
        assert_eq!(orders, ORDERS_MAX - 1);
    }

    #[test]
    fn a_book_refuses_what_cannot_be() {
        let mut book = OrderLevels::new(TopLevels::new(SecurityId(1), 1));
        let (mut rows, mut orders) = (VecDeque::new(), 0);
        let mut out = BookOutput { at: Timestamp(1), rows: &mut rows, orders: &mut orders };
        book.add(1, order(i64::MAX), &mut out).unwrap();
        let problem = |result: Result<RestingOrder, String>| result.unwrap_err();
        assert_eq!(book.add(1, order(1), &mut out).unwrap_err(), "order 1 is already in the book");
        assert_eq!(book.add(2, order(1), &mut out).unwrap_err(), "the size does not fit");
        assert_eq!(problem(book.remove(3, &mut out)), "order 3 is not in the book");
        assert_eq!(problem(book.reduce(3, Qty::ZERO, &mut out)), "order 3 is not in the book");
        let before = book.reduce(1, Qty::from_raw(i64::MAX - 5), &mut out).unwrap();
        assert_eq!(before, order(i64::MAX));
        assert!(problem(book.reduce(1, Qty::from_raw(6), &mut out)).starts_with("order 1 has "));
        assert_eq!(book.order(1), Some(order(5)), "a refused change changes nothing");
    }
}
