//! The outcome of a flow, and the part of it that is counted while the flow runs.

use std::fmt;

/// The outcome of a flow. Two engines that differ anywhere in their trades differ in the hash.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct FlowOutcome {
    pub trades: u64,
    pub traded_qty: u64,
    /// Sum of price × quantity.
    pub notional: u64,
    pub resting_orders: u64,
    pub resting_qty: u64,
    /// Cancels and replaces of orders that are not open.
    pub unknown: u64,
    pub hash: u64,
}

impl fmt::Display for FlowOutcome {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{} trades of {} for {}, {} orders of {} rest, {} unknown, hash {:016x}",
            self.trades,
            self.traded_qty,
            self.notional,
            self.resting_orders,
            self.resting_qty,
            self.unknown,
            self.hash
        )
    }
}

/// The part of the outcome that is counted during the flow, at the same cost for every engine.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TradeTally {
    trades: u64,
    traded_qty: u64,
    notional: u64,
    unknown: u64,
    hash: u64,
}

impl TradeTally {
    #[inline]
    pub fn trade(&mut self, maker: u64, taker: u64, price: u64, qty: u64) {
        self.trades += 1;
        self.traded_qty += qty;
        self.notional = self.notional.wrapping_add(price.wrapping_mul(qty));
        let mixed = maker
            .wrapping_mul(1_000_003)
            .wrapping_add(taker.wrapping_mul(7_919))
            .wrapping_add(price.wrapping_mul(31))
            .wrapping_add(qty);
        self.hash = (self.hash ^ mixed).wrapping_mul(0x100_0000_01b3);
    }

    #[inline]
    pub fn unknown(&mut self) {
        self.unknown += 1;
    }

    pub fn trades(&self) -> u64 {
        self.trades
    }

    pub fn outcome(&self, resting_orders: u64, resting_qty: u64) -> FlowOutcome {
        FlowOutcome {
            trades: self.trades,
            traded_qty: self.traded_qty,
            notional: self.notional,
            resting_orders,
            resting_qty,
            unknown: self.unknown,
            hash: self.hash,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_hash_depends_on_every_part_and_on_the_order() {
        let hash = |trades: &[(u64, u64, u64, u64)]| {
            let mut tally = TradeTally::default();
            trades.iter().for_each(|&(maker, taker, price, qty)| tally.trade(maker, taker, price, qty));
            tally.outcome(0, 0).hash
        };
        assert_eq!(hash(&[(1, 2, 3, 4)]), (1_000_003u64 + 2 * 7_919 + 93 + 4).wrapping_mul(0x100_0000_01b3));
        assert_ne!(hash(&[(1, 2, 3, 4), (5, 6, 7, 8)]), hash(&[(5, 6, 7, 8), (1, 2, 3, 4)]));
        assert_ne!(hash(&[(1, 2, 3, 4)]), hash(&[(2, 1, 3, 4)]));
    }
}
