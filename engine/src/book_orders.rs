//! The single orders of one book, in the sequence in which they trade: best price first, and at one
//! price the oldest first. The shard keeps what it has published in this form, and a receiver
//! rebuilds it from [`crate::event::OrderChanges`].

use crate::event::{BookOrder, ORDERS_PER_SIDE_MAX, OrderAction, OrderChange, OrderNumber};
use crate::number::{Price, Qty};
use crate::terms::Side;

/// See the module's comment.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct BookOrders {
    /// Bids, asks; each at most [`ORDERS_PER_SIDE_MAX`].
    sides: [Vec<BookOrder>; 2],
}

impl BookOrders {
    /// Creates an empty book with room for every order.
    pub fn with_room() -> BookOrders {
        BookOrders { sides: [(); 2].map(|()| Vec::with_capacity(ORDERS_PER_SIDE_MAX)) }
    }

    /// Returns the orders of a side, the first one to trade first.
    pub fn orders(&self, side: Side) -> &[BookOrder] {
        &self.sides[side as usize]
    }

    pub fn clear(&mut self) {
        self.sides.iter_mut().for_each(Vec::clear);
    }

    /// Replaces the orders of a side by those of `orders`, which gets the old ones.
    pub fn swap(&mut self, side: Side, orders: &mut Vec<BookOrder>) {
        std::mem::swap(&mut self.sides[side as usize], orders);
    }

    /// Applies one change. Returns false if it does not fit this book.
    #[must_use = "a change that does not fit shows that the book is wrong"]
    pub fn apply(&mut self, change: &OrderChange) -> bool {
        let OrderChange { action, side, order } = *change;
        if action == OrderAction::Add {
            return self.add(side, order);
        }
        let Some(at) = self.find(side, order.price, order.number) else { return false };
        let orders = &mut self.sides[side as usize];
        match action {
            OrderAction::Change => orders[at].qty = order.qty,
            OrderAction::Trade if order.qty < orders[at].qty => {
                orders[at].qty = Qty::from_raw(orders[at].qty.raw() - order.qty.raw());
            }
            OrderAction::Trade if order.qty > orders[at].qty => return false,
            OrderAction::Add | OrderAction::Remove | OrderAction::Trade => _ = orders.remove(at),
        }
        true
    }

    /// Returns the order with a number.
    pub fn with_number(&self, side: Side, number: OrderNumber) -> Option<&BookOrder> {
        self.sides[side as usize].iter().find(|order| order.number == number)
    }

    /// Adds an order behind all others at its price.
    fn add(&mut self, side: Side, order: BookOrder) -> bool {
        let orders = &mut self.sides[side as usize];
        if orders.len() == ORDERS_PER_SIDE_MAX {
            return false;
        }
        let place = orders.partition_point(|other| !is_better(side, order.price, other.price));
        orders.insert(place, order);
        true
    }

    fn find(&self, side: Side, price: Price, number: OrderNumber) -> Option<usize> {
        let orders = &self.sides[side as usize];
        let first = orders.partition_point(|other| is_better(side, other.price, price));
        let queue = orders[first..].iter().take_while(|other| other.price == price);
        queue.zip(first..).find(|(other, _)| other.number == number).map(|(_, at)| at)
    }
}

/// Returns whether an order at the first price trades before one at the second.
pub(crate) fn is_better(side: Side, price: Price, other: Price) -> bool {
    match side {
        Side::Buy => price > other,
        Side::Sell => price < other,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn change(action: OrderAction, side: Side, number: u64, price: i64, qty: i64) -> OrderChange {
        let (price, qty) = (Price::from_raw(price), Qty::from_raw(qty));
        OrderChange { action, side, order: BookOrder { number: OrderNumber(number), price, qty } }
    }

    fn shown(book: &BookOrders, side: Side) -> Vec<(u64, i64, i64)> {
        book.orders(side).iter().map(|o| (o.number.0, o.price.raw(), o.qty.raw())).collect()
    }

    #[test]
    fn an_order_queues_at_its_price_and_keeps_its_place() {
        use OrderAction::{Add, Change, Remove, Trade};
        let mut book = BookOrders::default();
        for (number, price) in [(1, 10), (2, 11), (3, 10), (4, 9), (5, 11)] {
            assert!(book.apply(&change(Add, Side::Buy, number, price, 5)));
            assert!(book.apply(&change(Add, Side::Sell, number, price, 5)));
        }
        let numbers = |side| shown(&book, side).iter().map(|row| row.0).collect::<Vec<_>>();
        assert_eq!((numbers(Side::Buy), numbers(Side::Sell)), (vec![2, 5, 1, 3, 4], vec![4, 1, 3, 2, 5]));
        assert!(book.apply(&change(Change, Side::Buy, 1, 10, 3)));
        assert!(book.apply(&change(Trade, Side::Buy, 2, 11, 2)));
        assert!(book.apply(&change(Trade, Side::Buy, 5, 11, 5)));
        assert!(book.apply(&change(Remove, Side::Buy, 4, 9, 0)));
        assert_eq!(shown(&book, Side::Buy), [(2, 11, 3), (1, 10, 3), (3, 10, 5)]);
        assert_eq!(book.with_number(Side::Buy, OrderNumber(3)).map(|order| order.qty.raw()), Some(5));
    }

    #[test]
    fn a_change_that_does_not_fit_is_noticed() {
        use OrderAction::{Add, Change, Remove, Trade};
        let mut book = BookOrders::default();
        assert!(book.apply(&change(Add, Side::Buy, 1, 10, 5)));
        for (action, number, price) in
            [(Change, 2, 10), (Remove, 1, 11), (Trade, 1, 9), (Change, 1, 12), (Remove, 3, 1)]
        {
            assert!(!book.apply(&change(action, Side::Buy, number, price, 1)), "{action:?}");
        }
        assert!(!book.apply(&change(Trade, Side::Buy, 1, 10, 6)), "more than there is");
        assert!(!book.apply(&change(Change, Side::Sell, 1, 10, 1)), "the other side");
    }

    #[test]
    fn the_orders_of_a_side_are_bounded() {
        let mut book = BookOrders::with_room();
        for number in 0..ORDERS_PER_SIDE_MAX as u64 {
            assert!(book.apply(&change(OrderAction::Add, Side::Sell, number, 10, 1)));
        }
        assert!(!book.apply(&change(OrderAction::Add, Side::Sell, 9_999, 10, 1)));
        assert!(book.apply(&change(OrderAction::Add, Side::Buy, 9_999, 10, 1)));
    }
}
