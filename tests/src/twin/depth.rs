//! The quantities that a taker would find in a book, added up order by order and portion by
//! portion.

use std::collections::BTreeMap;

use pitlane_engine::id::SecurityId;
use pitlane_engine::terms::Side;

use super::Twin;

impl Twin {
    /// Returns whether subscribers of a security's book receive it.
    pub fn shows_depth(&self, security: SecurityId) -> bool {
        self.is_simulated(security) && self.subscriptions.iter().any(|(_, of)| *of == security)
    }

    /// Returns prices and sizes of the best levels of one side, best first.
    pub fn depth(&self, security: SecurityId, side: Side, count: usize) -> Vec<(i64, i64)> {
        let mut levels: BTreeMap<i64, i64> = BTreeMap::new();
        for at in self.book_side(security, side) {
            *levels.entry(self.orders[at].terms.limit.raw()).or_default() += self.orders[at].leaves();
        }
        for (price, size) in self.portions(security, side) {
            *levels.entry(price).or_default() += size;
        }
        let all: Vec<(i64, i64)> = match side {
            Side::Buy => levels.into_iter().rev().collect(),
            Side::Sell => levels.into_iter().collect(),
        };
        all.into_iter().take(count).collect()
    }

    /// Returns every remaining portion of the quote, found by taking them one after the other.
    fn portions(&self, security: SecurityId, side: Side) -> Vec<(i64, i64)> {
        let mut market = self.markets[&security].clone();
        let mut list = Vec::new();
        while let Some((price, size)) = self.portion_of(&market, security, side) {
            market.consume(side, size);
            list.push((price, size));
        }
        list
    }
}
