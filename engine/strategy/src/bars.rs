//! Bars built from ticks.
//!
//! The time of a bar is that of the source, never of the clock: the same ticks give the same bars
//! in every mode and at any speed. A bar is therefore complete when the first tick of a later
//! interval arrives, and intervals without a tick have no bar.

use pitlane_engine::event::Tick;
use pitlane_engine::id::SecurityId;
use pitlane_engine::number::{Price, Qty};
use pitlane_engine::time::Timestamp;

/// Summary of one interval. Prices are those of trades, and the middle of the quote until the first
/// trade.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Bar {
    /// The security of the bar.
    pub security: SecurityId,
    /// Start of the interval: a whole multiple of its length since the epoch.
    pub start: Timestamp,
    /// Length of the interval.
    pub interval_ns: u64,
    /// First price.
    pub open: Price,
    /// Highest price.
    pub high: Price,
    /// Lowest price.
    pub low: Price,
    /// Last price.
    pub close: Price,
    /// Traded volume.
    pub volume: Qty,
    /// Number of ticks in it.
    pub ticks: u32,
}

/// Builds the bars of one security and length.
#[derive(Clone, Copy, Debug)]
pub struct BarMaker {
    bar: Bar,
    /// Volume of the day at the last tick.
    volume: Qty,
}

impl BarMaker {
    /// `interval_ns` is above zero.
    pub fn new(security: SecurityId, interval_ns: u64) -> BarMaker {
        assert!(interval_ns > 0, "a bar has a length");
        BarMaker { bar: Bar { security, interval_ns, ..Bar::default() }, volume: Qty::ZERO }
    }

    /// Returns the security of the bars.
    pub fn security(&self) -> SecurityId {
        self.bar.security
    }

    /// Returns the length of the bars.
    pub fn interval_ns(&self) -> u64 {
        self.bar.interval_ns
    }

    /// Adds a tick and returns the bar that it completed.
    pub fn handle(&mut self, tick: &Tick) -> Option<Bar> {
        let price = price_of(tick)?;
        let start = Timestamp(tick.at.0 - tick.at.0 % self.bar.interval_ns);
        // A tick older than the current bar belongs to no bar.
        let traded = self.traded(tick);
        if start > self.bar.start || self.bar.ticks == 0 {
            let ended = self.bar;
            self.bar = Bar {
                start,
                open: price,
                high: price,
                low: price,
                close: price,
                volume: traded,
                ticks: 1,
                ..ended
            };
            return (ended.ticks > 0).then_some(ended);
        }
        let bar = &mut self.bar;
        bar.high = bar.high.max(price);
        bar.low = bar.low.min(price);
        bar.close = price;
        bar.volume = bar.volume.checked_add(traded).unwrap_or(Qty::MAX);
        bar.ticks = bar.ticks.saturating_add(1);
        None
    }

    /// Returns the volume traded since the last tick; the first tick of a day carries all of it.
    fn traded(&mut self, tick: &Tick) -> Qty {
        let before = std::mem::replace(&mut self.volume, tick.volume);
        if self.bar.ticks == 0 {
            return Qty::ZERO;
        }
        if tick.volume < before { tick.volume } else { tick.volume.checked_sub(before).unwrap_or_default() }
    }
}

/// Returns the price of a tick.
pub fn price_of(tick: &Tick) -> Option<Price> {
    if tick.traded {
        return Some(tick.last);
    }
    tick.is_quoted().then(|| Price::from_raw(tick.bid.raw().midpoint(tick.ask.raw())))
}

#[cfg(test)]
mod tests {
    use super::*;
    use pitlane_engine::time::NS_PER_S;

    fn tick(at_s: u64, last: i64, volume: i64) -> Tick {
        Tick {
            security: SecurityId(1),
            last: Price::from_raw(last),
            traded: true,
            volume: Qty::from_raw(volume),
            at: Timestamp(at_s * NS_PER_S),
            ..Tick::default()
        }
    }

    #[test]
    fn a_bar_ends_with_the_first_tick_of_a_later_interval() {
        let mut maker = BarMaker::new(SecurityId(1), 10 * NS_PER_S);
        let ticks = [(11, 5, 10), (12, 9, 13), (14, 3, 13), (19, 4, 20)];
        assert!(ticks.iter().all(|(at, last, volume)| maker.handle(&tick(*at, *last, *volume)).is_none()));
        let bar = maker.handle(&tick(35, 7, 21)).unwrap();
        let [open, high, low, close] = [5, 9, 3, 4].map(Price::from_raw);
        let expected = Bar {
            security: SecurityId(1),
            start: Timestamp(10 * NS_PER_S),
            interval_ns: 10 * NS_PER_S,
            open,
            high,
            low,
            close,
            volume: Qty::from_raw(10),
            ticks: 4,
        };
        assert_eq!(bar, expected);
        // A new day counts from zero.
        assert_eq!(maker.handle(&tick(40, 7, 2)).unwrap().volume, Qty::from_raw(1));
        assert_eq!(maker.handle(&tick(50, 7, 5)).unwrap().volume, Qty::from_raw(2));
    }

    #[test]
    fn without_a_trade_the_middle_of_the_quote_counts() {
        let quote = Tick {
            bid: Price::from_raw(4),
            bid_size: Qty::from_raw(1),
            ask: Price::from_raw(8),
            ask_size: Qty::from_raw(1),
            ..Tick::default()
        };
        assert_eq!(price_of(&quote), Some(Price::from_raw(6)));
        assert_eq!(price_of(&Tick { ask_size: Qty::ZERO, ..quote }), None);
        assert_eq!(
            price_of(&Tick { traded: true, last: Price::from_raw(7), ..quote }),
            Some(Price::from_raw(7))
        );
    }
}
