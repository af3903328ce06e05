//! The market of a security: quote, last price, and the queue of the feed's own orders.

use std::collections::BTreeMap;

use pitlane_engine::command::Quote;
use pitlane_engine::terms::Side;

use super::portions::ShownSizes;

#[derive(Clone, Debug, Default)]
pub struct TwinMarket {
    pub quote: Quote,
    /// Quantity of a lot: the feed's sizes count in whole lots.
    pub lot: i64,
    /// Quantity taken from the bid and from the ask since that side last changed.
    pub consumed_bid: i64,
    pub consumed_ask: i64,
    /// Past sizes of the bid and of the ask.
    pub shown_sizes: [ShownSizes; 2],
    pub last: Option<i64>,
    pub halted: bool,
    /// Whether its expiry has passed; it is no longer traded.
    pub expired: bool,
    pub queue_buy: Option<TwinQueue>,
    pub queue_sell: Option<TwinQueue>,
    /// The feed's book by price: bids, asks.
    pub levels: [BTreeMap<i64, TwinQueue>; 2],
}

/// The feed's own orders at one price, ahead of ours.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TwinQueue {
    pub price: i64,
    pub ahead: i64,
    pub shown: i64,
}

impl TwinMarket {
    /// Returns the price of the quote on a side: the bid for buys, the ask for sells.
    pub fn quoted(&self, side: Side) -> Option<i64> {
        let (price, size) = self.quote_of(side);
        (size > 0).then_some(price)
    }

    /// Returns price and size of the quote on a side, if it has a lot.
    pub fn shown(&self, side: Side) -> Option<(i64, i64)> {
        let (price, size) = self.quote_of(side);
        let lots = self.whole_lots(size);
        (lots > 0).then_some((price, lots))
    }

    fn quote_of(&self, side: Side) -> (i64, i64) {
        match side {
            Side::Buy => (self.quote.bid.raw(), self.quote.bid_size.raw()),
            Side::Sell => (self.quote.ask.raw(), self.quote.ask_size.raw()),
        }
    }

    /// Returns how much of a size can trade.
    pub fn whole_lots(&self, size: i64) -> i64 {
        size.max(0) / self.lot * self.lot
    }

    pub fn consumed(&self, side: Side) -> i64 {
        match side {
            Side::Buy => self.consumed_bid,
            Side::Sell => self.consumed_ask,
        }
    }

    pub fn consume(&mut self, side: Side, qty: i64) {
        match side {
            Side::Buy => self.consumed_bid += qty,
            Side::Sell => self.consumed_ask += qty,
        }
    }

    /// Returns the untaken rest of the first portion of the quote.
    pub fn unconsumed(&self, side: Side) -> Option<(i64, i64)> {
        let (price, size) = self.shown(side)?;
        let left = size - self.consumed(side);
        (left > 0).then_some((price, left))
    }

    pub fn queue(&mut self, side: Side) -> &mut Option<TwinQueue> {
        match side {
            Side::Buy => &mut self.queue_buy,
            Side::Sell => &mut self.queue_sell,
        }
    }
}
