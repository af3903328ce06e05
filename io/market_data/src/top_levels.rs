//! The price levels of one security as a file gives them, and the rows that a reader makes of their
//! changes: levels within a number of the best, and the best prices as a quote.
//!
//! Levels behind that number are kept and appear when better ones go:
//!
//! ```text
//! set(bid, 99, 0) of  101 100 99 | 98 97  ─►  level 99: 0, level 98: its size
//! ```

use std::collections::{BTreeMap, VecDeque};

use pitlane_engine::command::{CommandKind, Quote, Trade};
use pitlane_engine::id::SecurityId;
use pitlane_engine::number::{Price, Qty};
use pitlane_engine::terms::Side;
use pitlane_engine::time::Timestamp;

use super::TickRow;
use super::entry::level_row;

#[derive(Debug)]
pub(crate) struct TopLevels {
    security: SecurityId,
    /// Sizes of bids and asks by rank: the lower, the better.
    sides: [BTreeMap<i64, Qty>; 2],
    /// Levels on each side that become rows.
    shown: usize,
    /// Last quote that became a row.
    quote: Quote,
}

/// Returns the rank of a price, or the price of a rank.
fn rank(side: Side, value: i64) -> i64 {
    match side {
        Side::Buy => value.checked_neg().unwrap_or(i64::MAX),
        Side::Sell => value,
    }
}

impl TopLevels {
    pub(crate) fn new(security: SecurityId, shown: usize) -> TopLevels {
        TopLevels { security, sides: Default::default(), shown, quote: Quote::default() }
    }

    pub(crate) fn security(&self) -> SecurityId {
        self.security
    }

    /// Adds to the size at a price, or takes from it. Returns an error if the sum does not fit.
    pub(crate) fn change(
        &mut self,
        at: Timestamp,
        side: Side,
        price: Price,
        by: i64,
        rows: &mut VecDeque<TickRow>,
    ) -> Result<(), String> {
        let before = self.sides[side as usize].get(&rank(side, price.raw())).map_or(0, |size| size.raw());
        let after = before.checked_add(by).filter(|size| *size >= 0).ok_or("the size does not fit")?;
        self.set(at, side, price, Qty::from_raw(after), rows);
        Ok(())
    }

    /// Sets the size at a price; zero removes it.
    pub(crate) fn set(
        &mut self,
        at: Timestamp,
        side: Side,
        price: Price,
        size: Qty,
        rows: &mut VecDeque<TickRow>,
    ) {
        let (levels, key) = (&mut self.sides[side as usize], rank(side, price.raw()));
        let before = match size.is_positive() {
            true => levels.insert(key, size),
            false => levels.remove(&key),
        };
        let place = levels.range(..key).take(self.shown).count();
        if before.unwrap_or_default() == size || place == self.shown {
            return;
        }
        let row =
            |key: i64, size: Qty| level_row(at, self.security, side, Price::from_raw(rank(side, key)), size);
        // The first level that is not shown: before a new one it was, after a removed one it is.
        let hidden = |nth: usize| levels.iter().nth(nth).map(|(key, size)| (*key, *size));
        match (before, size.is_positive()) {
            (None, true) => {
                rows.extend(hidden(self.shown).map(|(key, _)| row(key, Qty::ZERO)));
                rows.push_back(row(key, size));
            }
            (Some(_), false) => {
                rows.push_back(row(key, size));
                rows.extend(hidden(self.shown - 1).map(|(key, size)| row(key, size)));
            }
            (Some(_), true) | (None, false) => rows.push_back(row(key, size)),
        }
    }

    /// Replaces a side by these levels.
    pub(crate) fn replace(
        &mut self,
        at: Timestamp,
        side: Side,
        levels: &[(Price, Qty)],
        rows: &mut VecDeque<TickRow>,
    ) {
        let is_new = |key: i64| !levels.iter().any(|(price, _)| rank(side, price.raw()) == key);
        let gone: Vec<i64> = self.sides[side as usize].keys().copied().filter(|key| is_new(*key)).collect();
        for key in gone {
            self.set(at, side, Price::from_raw(rank(side, key)), Qty::ZERO, rows);
        }
        for (price, size) in levels {
            self.set(at, side, *price, *size, rows);
        }
    }

    /// Removes all levels.
    pub(crate) fn clear(&mut self, at: Timestamp, rows: &mut VecDeque<TickRow>) {
        for side in [Side::Buy, Side::Sell] {
            let keys = self.sides[side as usize].keys().take(self.shown);
            let row =
                |key: &i64| level_row(at, self.security, side, Price::from_raw(rank(side, *key)), Qty::ZERO);
            rows.extend(keys.map(row));
            self.sides[side as usize].clear();
        }
    }

    /// Adds the best prices as a quote, if they have changed.
    pub(crate) fn quote(&mut self, at: Timestamp, rows: &mut VecDeque<TickRow>) {
        let best = |side: Side| {
            let first = self.sides[side as usize].first_key_value();
            first.map_or_else(Default::default, |(key, size)| (Price::from_raw(rank(side, *key)), *size))
        };
        let ((bid, bid_size), (ask, ask_size)) = (best(Side::Buy), best(Side::Sell));
        let quote = Quote { bid, bid_size, ask, ask_size, at };
        if quote != (Quote { at, ..self.quote }) {
            self.quote = quote;
            let body = CommandKind::Quote { security: self.security, quote };
            rows.push_back(TickRow { at, security: self.security, body });
        }
    }
}

/// Returns a trade as a row.
pub(crate) fn trade_row(at: Timestamp, security: SecurityId, price: Price, size: Qty) -> TickRow {
    TickRow { at, security, body: CommandKind::Trade { security, trade: Trade { price, size, at } } }
}

/// Returns a trade with a quote around it, for data without quotes. The taker has bought, has sold,
/// or is unknown.
pub(crate) fn quoted_trade_row(trade: &TickRow, tick: Price, taker: Option<Side>) -> TickRow {
    let CommandKind::Trade { security, trade } = trade.body else { return *trade };
    let away = |ticks: i64| Price::from_raw(trade.price.raw().saturating_add(ticks * tick.raw()));
    let (bid, ask) = match taker {
        Some(Side::Buy) => (away(-1), trade.price),
        Some(Side::Sell) => (trade.price, away(1)),
        None => (away(-1), away(1)),
    };
    let quote = Quote { bid, bid_size: trade.size, ask, ask_size: trade.size, at: trade.at };
    TickRow { at: trade.at, security, body: CommandKind::Tick { security, quote, trade } }
}

#[cfg(test)]
mod tests {
    use pitlane_engine::rng::Rng;

    use super::*;

    const AT: Timestamp = Timestamp(7);

    /// A book that applies the rows, as a receiver does.
    #[derive(Debug, Default, PartialEq)]
    struct Received([BTreeMap<i64, i64>; 2]);

    impl Received {
        fn apply(&mut self, rows: &mut VecDeque<TickRow>, shown: usize) {
            for row in rows.drain(..) {
                let CommandKind::Level { level, .. } = row.body else { panic!("{row:?}") };
                let side = &mut self.0[level.side as usize];
                match level.size.raw() {
                    0 => assert!(side.remove(&level.price.raw()).is_some(), "{level:?}"),
                    size => _ = side.insert(level.price.raw(), size),
                }
                assert!(side.len() <= shown, "no row is sent before there is room");
            }
        }
    }

    #[test]
    fn rows_show_the_best_levels_after_any_changes() {
        for shown in [0, 1, 3, 10] {
            let mut rng = Rng::named(7, shown as u64);
            let (mut levels, mut received) = (TopLevels::new(SecurityId(1), shown), Received::default());
            let (mut all, mut rows) = ([BTreeMap::new(), BTreeMap::new()], VecDeque::new());
            for _ in 0..5_000 {
                let side = if rng.below(2) == 0 { Side::Buy } else { Side::Sell };
                let price = rng.below(20) as i64 - 5;
                let size = (rng.below(4) as i64) * 10;
                levels.set(AT, side, Price::from_raw(price), Qty::from_raw(size), &mut rows);
                match size {
                    0 => all[side as usize].remove(&price),
                    size => all[side as usize].insert(price, size),
                };
                received.apply(&mut rows, shown);
                let bids = all[0].iter().rev().take(shown).map(|(price, size)| (*price, *size)).collect();
                let asks = all[1].iter().take(shown).map(|(price, size)| (*price, *size)).collect();
                assert_eq!(received, Received([bids, asks]));
            }
            levels.clear(AT, &mut rows);
            received.apply(&mut rows, shown);
            assert_eq!(received, Received::default());
        }
    }

    #[test]
    fn a_replaced_side_gives_only_what_has_changed() {
        let (mut levels, mut rows) = (TopLevels::new(SecurityId(1), 2), VecDeque::new());
        let side = |pairs: &[(i64, i64)]| -> Vec<(Price, Qty)> {
            pairs.iter().map(|(price, size)| (Price::from_raw(*price), Qty::from_raw(*size))).collect()
        };
        levels.replace(AT, Side::Sell, &side(&[(10, 1), (11, 2)]), &mut rows);
        assert_eq!(rows.len(), 2);
        rows.clear();
        levels.replace(AT, Side::Sell, &side(&[(10, 1), (12, 5)]), &mut rows);
        let row = |price, size| {
            level_row(AT, SecurityId(1), Side::Sell, Price::from_raw(price), Qty::from_raw(size))
        };
        assert_eq!(rows, [row(11, 0), row(12, 5)]);
    }

    #[test]
    fn a_quote_is_given_when_the_best_prices_change() {
        let (mut levels, mut rows) = (TopLevels::new(SecurityId(1), 0), VecDeque::new());
        let mut quotes = |price, size| {
            levels.set(AT, Side::Buy, Price::from_raw(price), Qty::from_raw(size), &mut rows);
            levels.quote(AT, &mut rows);
            let quote = rows.pop_front().map(|row| {
                let CommandKind::Quote { quote, .. } = row.body else { panic!("{row:?}") };
                (quote.bid.raw(), quote.bid_size.raw())
            });
            assert!(rows.is_empty());
            quote
        };
        assert_eq!(quotes(10, 5), Some((10, 5)));
        assert_eq!(quotes(9, 5), None);
        assert_eq!(quotes(10, 0), Some((9, 5)));
        assert_eq!(quotes(9, 0), Some((0, 0)), "the side is empty");
    }
}
