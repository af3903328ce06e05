//! The newest price of each security that somebody elsewhere follows. What is not yet out is replaced by what is newer; but if the market
//! waits for those who hear it, each goes out.

use std::collections::{BTreeMap, VecDeque};

use pitlane_engine::event::Tick;
use pitlane_engine::id::SecurityId;

/// Prices in one message: some 20 KB.
const TICKS_MAX: usize = 256;

#[derive(Debug, Default)]
pub struct Board {
    rows: BTreeMap<SecurityId, Row>,
    /// Those that are to go out, the one that has waited longest first.
    waiting: VecDeque<SecurityId>,
    conflated: u64,
    /// Whether each goes out, and those that have not: as many as one row of the market causes.
    paced: bool,
    each: VecDeque<Tick>,
}

#[derive(Debug, Default)]
struct Row {
    followers: u32,
    /// Not yet out.
    tick: Option<Tick>,
}

impl Board {
    pub fn new(paced: bool) -> Board {
        Board { paced, ..Board::default() }
    }

    pub fn follow(&mut self, security: SecurityId, on: bool) {
        let row = self.rows.entry(security).or_default();
        row.followers = if on { row.followers + 1 } else { row.followers.saturating_sub(1) };
    }

    /// Whether it is to go out.
    pub fn hear(&mut self, tick: &Tick) -> bool {
        let Some(row) = self.rows.get_mut(&tick.security).filter(|row| row.followers > 0) else {
            return false;
        };
        if self.paced {
            self.each.push_back(*tick);
            return true;
        }
        match row.tick.replace(*tick) {
            Some(_) => self.conflated += 1,
            None => self.waiting.push_back(tick.security),
        }
        true
    }

    /// The next ones to go out; empty if there are none.
    pub fn take(&mut self) -> Vec<Tick> {
        if self.paced {
            let count = self.each.len().min(TICKS_MAX);
            return self.each.drain(..count).collect();
        }
        let Board { rows, waiting, .. } = self;
        let count = waiting.len().min(TICKS_MAX);
        waiting.drain(..count).filter_map(|security| rows.get_mut(&security)?.tick.take()).collect()
    }

    pub fn is_idle(&self) -> bool {
        self.waiting.is_empty() && self.each.is_empty()
    }

    /// Nobody would hear them now.
    pub fn clear(&mut self) {
        while !self.take().is_empty() {}
    }

    /// Prices that a newer one has replaced before they were out.
    pub fn conflated(&self) -> u64 {
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
    fn the_newest_goes_out_once_and_in_turn() {
        let mut board = Board::default();
        assert!(!board.hear(&tick(1, 1)), "nobody follows it");
        board.follow(SecurityId(1), true);
        board.follow(SecurityId(2), true);
        board.follow(SecurityId(1), true);
        for (security, at) in [(2, 1), (1, 2), (2, 3)] {
            assert!(board.hear(&tick(security, at)));
        }
        assert_eq!(board.take(), [tick(2, 3), tick(1, 2)]);
        assert!(board.is_idle() && board.take().is_empty());
        assert_eq!(board.conflated(), 1);
        board.follow(SecurityId(1), false);
        assert!(board.hear(&tick(1, 4)), "one of two is left");
        board.clear();
        assert!(board.is_idle());
    }

    #[test]
    fn where_the_market_waits_each_goes_out() {
        let mut board = Board::new(true);
        board.follow(SecurityId(1), true);
        assert!(board.hear(&tick(1, 1)) && board.hear(&tick(1, 1)) && !board.is_idle());
        assert_eq!((board.take().len(), board.conflated(), board.is_idle()), (2, 0, true));
    }
}
