//! The single orders of a book, in the sequence in which they trade.

use crate::number::{Price, Qty};
use crate::terms::Side;

use super::Venue;

/// An order in a book.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RestingOrder {
    pub owner: RestingOwner,
    pub price: Price,
    /// Remaining quantity.
    pub qty: Qty,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RestingOwner {
    /// A client; the slot of its order.
    Client(u32),
    /// The feed, which shows its quantity at this price, in ticks, as one order.
    Feed(i64),
}

impl Venue {
    /// Returns the orders of a side, the first one to trade first. What the feed shows at a price
    /// trades before the orders of clients there. The sums by price are [`Venue::price_levels`].
    pub fn book_orders(&self, book: u32, side: Side) -> impl Iterator<Item = RestingOrder> {
        let (front, detail) = (&self.books[book as usize], &self.details[book as usize]);
        let (ladder, nodes) = (&front.sides[side as usize], &self.nodes);
        let queues = ladder.levels(nodes).map(|(ticks, _)| ticks);
        let mut clients = queues
            .flat_map(|ticks| {
                let queue = std::iter::successors(ladder.front(nodes, ticks), |&slot| nodes[slot].next());
                queue.map(move |slot| (ticks, slot))
            })
            .peekable();
        let portions = detail.shown[side as usize].portions(side, &detail.spec.settings);
        let mut portions = portions.take_while(|(ticks, _)| front.is_price(*ticks)).peekable();
        std::iter::from_fn(move || {
            let client = clients.peek().map_or(i64::MAX, |(ticks, _)| ladder.rank(*ticks));
            let portion = portions.next_if(|(ticks, _)| ladder.rank(*ticks) <= client);
            if let Some((ticks, qty)) = portion {
                return Some(RestingOrder {
                    owner: RestingOwner::Feed(ticks),
                    price: front.price(ticks),
                    qty,
                });
            }
            let (ticks, slot) = clients.next()?;
            let (owner, qty) = (RestingOwner::Client(slot), nodes[slot].qty);
            Some(RestingOrder { owner, price: front.price(ticks), qty })
        })
    }
}
