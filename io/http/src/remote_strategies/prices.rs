//! The newest price of each security that a remote strategy follows. A price that is not sent yet
//! is replaced by a newer one; but in a market that waits for its receivers, every price is sent.

use std::collections::{BTreeMap, VecDeque};

use pitlane_engine::event::Tick;
use pitlane_engine::id::SecurityId;

/// The prices of all audiences: at a broker all strategies are one, without a broker each is one.
#[derive(Debug)]
pub(crate) struct PriceOutputs {
    outputs: Vec<PriceOutput>,
    /// Whether the strategies share one.
    is_shared: bool,
}

/// The prices of one audience.
#[derive(Debug)]
struct PriceOutput {
    table: PriceTable,
    /// Number of its last message.
    number: u64,
}

impl PriceOutputs {
    /// Creates one output for all strategies, or one for each.
    pub(crate) fn new(is_shared: bool, strategies: usize, is_paced: bool) -> PriceOutputs {
        let count = if is_shared { 1 } else { strategies };
        let output = |_| PriceOutput { table: PriceTable::new(is_paced), number: 0 };
        PriceOutputs { outputs: (0..count).map(output).collect(), is_shared }
    }

    fn output_of(&mut self, strategy: usize) -> &mut PriceOutput {
        let at = if self.is_shared { 0 } else { strategy };
        &mut self.outputs[at]
    }

    pub(crate) fn follow(&mut self, strategy: usize, security: SecurityId, on: bool) {
        self.output_of(strategy).table.follow(security, on);
    }

    /// Takes a price, and calls `has_new` with the index of each audience that it is to be sent to.
    pub(crate) fn apply(&mut self, tick: &Tick, mut has_new: impl FnMut(usize)) {
        for (at, output) in self.outputs.iter_mut().enumerate() {
            if output.table.apply(tick) {
                has_new(at);
            }
        }
    }

    /// Returns the next message for a strategy: its number and its prices, if there are any.
    pub(crate) fn take(&mut self, strategy: usize) -> Option<(u64, Vec<Tick>)> {
        let output = self.output_of(strategy);
        let ticks = output.table.take();
        if ticks.is_empty() {
            return None;
        }
        output.number += 1;
        Some((output.number, ticks))
    }

    /// Returns the number of the last message to a strategy.
    pub(crate) fn number(&self, strategy: usize) -> u64 {
        self.outputs.get(if self.is_shared { 0 } else { strategy }).map_or(0, |output| output.number)
    }

    /// Forgets what a process has not received, before another one takes its place.
    pub(crate) fn restart(&mut self, strategy: usize) {
        if !self.is_shared {
            let output = self.output_of(strategy);
            output.table.clear();
            output.number = 0;
        }
    }

    pub(crate) fn is_idle(&self) -> bool {
        self.outputs.iter().all(|output| output.table.is_idle())
    }

    pub(crate) fn clear(&mut self) {
        self.outputs.iter_mut().for_each(|output| output.table.clear());
    }

    pub(crate) fn conflated(&self) -> u64 {
        self.outputs.iter().map(|output| output.table.conflated()).sum()
    }
}

/// Prices in one message: some 20 KB.
const TICKS_MAX: usize = 256;

#[derive(Debug, Default)]
struct PriceTable {
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
    fn new(paced: bool) -> PriceTable {
        PriceTable { paced, ..PriceTable::default() }
    }

    fn follow(&mut self, security: SecurityId, on: bool) {
        let row = self.rows.entry(security).or_default();
        row.followers = if on { row.followers + 1 } else { row.followers.saturating_sub(1) };
    }

    /// Takes a price. Returns whether it is to be sent.
    fn apply(&mut self, tick: &Tick) -> bool {
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
    fn take(&mut self) -> Vec<Tick> {
        if self.paced {
            let count = self.queue.len().min(TICKS_MAX);
            return self.queue.drain(..count).collect();
        }
        let PriceTable { rows, waiting, .. } = self;
        let count = waiting.len().min(TICKS_MAX);
        waiting.drain(..count).filter_map(|security| rows.get_mut(&security)?.tick.take()).collect()
    }

    fn is_idle(&self) -> bool {
        self.waiting.is_empty() && self.queue.is_empty()
    }

    /// Drops all prices, while they would have no receiver.
    fn clear(&mut self) {
        while !self.take().is_empty() {}
    }

    /// Returns the number of prices that a newer one has replaced before they were sent.
    fn conflated(&self) -> u64 {
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

    #[test]
    fn without_a_broker_each_strategy_has_prices_and_numbers_of_its_own() {
        let mut outputs = PriceOutputs::new(false, 2, false);
        outputs.follow(0, SecurityId(1), true);
        outputs.follow(1, SecurityId(2), true);
        let mut has_new = Vec::new();
        for (security, at) in [(1, 1), (2, 2), (1, 3)] {
            outputs.apply(&tick(security, at), |strategy| has_new.push(strategy));
        }
        assert_eq!(has_new, [0, 1, 0]);
        assert_eq!(outputs.take(0), Some((1, vec![tick(1, 3)])));
        assert_eq!((outputs.take(0), outputs.number(0), outputs.number(1)), (None, 1, 0));
        outputs.restart(1);
        assert!(outputs.is_idle() && outputs.take(1).is_none(), "what was for its predecessor is gone");
    }

    #[test]
    fn at_a_broker_all_strategies_have_the_same_prices() {
        let mut outputs = PriceOutputs::new(true, 2, false);
        outputs.follow(1, SecurityId(2), true);
        outputs.apply(&tick(2, 1), |_| {});
        outputs.restart(1);
        assert_eq!(outputs.take(0), Some((1, vec![tick(2, 1)])));
        assert_eq!((outputs.number(0), outputs.number(1)), (1, 1));
    }
}
