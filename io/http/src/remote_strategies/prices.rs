//! The newest price of each security that a remote strategy follows. A price that is not sent yet
//! is replaced by a newer one; but in a market that waits for its receivers, every price is sent.

use std::collections::{BTreeMap, VecDeque};

use pitlane_engine::event::Tick;
use pitlane_engine::id::SecurityId;

/// Prices in one message: some 20 KB.
const TICKS_MAX: usize = 256;

#[derive(Debug, Default)]
pub(crate) struct PriceTable {
    rows: BTreeMap<SecurityId, FollowedSecurity>,
    /// Securities with a price to send, the one that has waited longest first.
    waiting: VecDeque<SecurityId>,
    conflated: u64,
    /// Whether every price is sent.
    paced: bool,
    /// Prices of a paced market that are not sent yet: as many as one row of the market causes.
    queue: VecDeque<Tick>,
}

#[derive(Debug, Default)]
struct FollowedSecurity {
    followers: u32,
    /// The price that is not sent yet.
    tick: Option<Tick>,
}

impl PriceTable {
    pub(crate) fn new(paced: bool) -> PriceTable {
        PriceTable { paced, ..PriceTable::default() }
    }

    pub(crate) fn follow(&mut self, security: SecurityId, on: bool) {
        let row = self.rows.entry(security).or_default();
        row.followers = if on { row.followers + 1 } else { row.followers.saturating_sub(1) };
    }

    /// Takes a price. Returns whether it is to be sent.
    pub(crate) fn apply(&mut self, tick: &Tick) -> bool {
        let Some(row) = self.rows.get_mut(&tick.security).filter(|row| row.followers > 0) else {
            return false;
        };
        if self.paced {
            self.queue.push_back(*tick);
            return true;
        }
        match row.tick.replace(*tick) {
            Some(_) => self.conflated += 1,
            None => self.waiting.push_back(tick.security),
        }
        true
    }

    /// Returns the next prices to send; empty if there are none.
    pub(crate) fn take(&mut self) -> Vec<Tick> {
        if self.paced {
            let count = self.queue.len().min(TICKS_MAX);
            return self.queue.drain(..count).collect();
        }
        let PriceTable { rows, waiting, .. } = self;
        let count = waiting.len().min(TICKS_MAX);
        waiting.drain(..count).filter_map(|security| rows.get_mut(&security)?.tick.take()).collect()
    }

    pub(crate) fn is_idle(&self) -> bool {
        self.waiting.is_empty() && self.queue.is_empty()
    }

    /// Drops all prices, while they would have no receiver.
    pub(crate) fn clear(&mut self) {
        while !self.take().is_empty() {}
    }

    /// Returns the number of prices that a newer one has replaced before they were sent.
    pub(crate) fn conflated(&self) -> u64 {
        self.conflated
    }
}

#[cfg(test)]
mod tests {
    use pitlane_engine::time::Timestamp;

    use super::*;

    fn tick(security: u32, at: u64) -> Tick {
        Tick { security: SecurityId(security), at: Timestamp(at), ..Tick::default() }
    }

    #[test]
    fn the_newest_price_is_sent_once_and_in_turn() {
        let mut price_table = PriceTable::default();
        assert!(!price_table.apply(&tick(1, 1)), "it has no follower");
        price_table.follow(SecurityId(1), true);
        price_table.follow(SecurityId(2), true);
        price_table.follow(SecurityId(1), true);
        for (security, at) in [(2, 1), (1, 2), (2, 3)] {
            assert!(price_table.apply(&tick(security, at)));
        }
        assert_eq!(price_table.take(), [tick(2, 3), tick(1, 2)]);
        assert!(price_table.is_idle() && price_table.take().is_empty());
        assert_eq!(price_table.conflated(), 1);
        price_table.follow(SecurityId(1), false);
        assert!(price_table.apply(&tick(1, 4)), "one of two is left");
        price_table.clear();
        assert!(price_table.is_idle());
    }

    #[test]
    fn in_a_paced_market_every_price_is_sent() {
        let mut price_table = PriceTable::new(true);
        price_table.follow(SecurityId(1), true);
        assert!(price_table.apply(&tick(1, 1)) && price_table.apply(&tick(1, 1)) && !price_table.is_idle());
        assert_eq!((price_table.take().len(), price_table.conflated(), price_table.is_idle()), (2, 0, true));
    }
}
