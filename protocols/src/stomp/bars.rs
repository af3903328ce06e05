//! Bars made from ticks, while a subscription needs them. A bar is published when its interval
//! ends; an interval without a trade has no bar.

use std::collections::{BTreeMap, BTreeSet};

use pitlane_engine::event::Tick;
use pitlane_engine::id::SecurityId;
use pitlane_engine::index::index_u8;
use pitlane_engine::number::{Price, Qty};
use pitlane_engine::time::{NS_PER_S, Timestamp};

use super::payload::market_data::BarPayload;

/// Sizes of bars with their seconds. Each divides a day, so that bars begin at the expected times.
pub const SIZES: [(&str, u64); 7] =
    [("1s", 1), ("5s", 5), ("1m", 60), ("5m", 300), ("15m", 900), ("1h", 3_600), ("1d", 86_400)];

/// Open bars, at most one of each size for each security.
#[derive(Debug, Default)]
pub struct Bars {
    open: BTreeMap<(SecurityId, u8), Folded>,
    /// End of each open bar.
    ends: BTreeSet<(Timestamp, SecurityId, u8)>,
    /// Volume of the day and last price at the last tick. The difference to the next tick is what
    /// was traded since.
    before: BTreeMap<SecurityId, (Qty, Price)>,
}

#[derive(Clone, Copy, Debug)]
struct Folded {
    begin: Timestamp,
    open: Price,
    high: Price,
    low: Price,
    close: Price,
    volume: Qty,
}

impl Bars {
    /// Handles a tick; bars that ended before it must have been polled. The first tick of a
    /// security only sets its volume and price.
    pub fn handle_tick(&mut self, at: Timestamp, tick: &Tick) {
        let Some(before) = self.before.insert(tick.security, (tick.volume, tick.last)) else { return };
        if !tick.traded || before == (tick.volume, tick.last) {
            return;
        }
        // The volume restarts with a new day.
        let more = tick.volume.raw().saturating_sub(before.0.raw());
        let volume = if more >= 0 { Qty::from_raw(more) } else { tick.volume };
        for (number, (_, seconds)) in SIZES.iter().enumerate() {
            self.fold((tick.security, index_u8(number)), at, seconds * NS_PER_S, tick.last, volume);
        }
    }

    /// Returns the next complete bar.
    pub fn poll(&mut self, now: Timestamp) -> Option<BarPayload<'static>> {
        let &(end, security, number) = self.ends.first().filter(|(end, _, _)| *end <= now)?;
        self.ends.remove(&(end, security, number));
        let bar = self.open.remove(&(security, number))?;
        let Folded { begin: at, open, high, low, close, volume } = bar;
        Some(BarPayload { security, size: SIZES[number as usize].0, open, high, low, close, volume, at })
    }

    pub fn poll_timeout(&self) -> Option<Timestamp> {
        self.ends.first().map(|(end, _, _)| *end)
    }

    /// Removes all bars when no subscription needs them.
    pub fn clear(&mut self) {
        *self = Bars::default();
    }

    pub fn is_empty(&self) -> bool {
        self.before.is_empty()
    }

    fn fold(&mut self, key: (SecurityId, u8), at: Timestamp, length: u64, price: Price, volume: Qty) {
        let begin = Timestamp(at.0 - at.0 % length);
        let bar = self.open.entry(key).or_insert_with(|| {
            self.ends.insert((begin.plus(length), key.0, key.1));
            Folded { begin, open: price, high: price, low: price, close: price, volume: Qty::ZERO }
        });
        bar.high = bar.high.max(price);
        bar.low = bar.low.min(price);
        bar.close = price;
        bar.volume = Qty::from_raw(bar.volume.raw().saturating_add(volume.raw()));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const DAY: Timestamp = Timestamp(1_794_816_000_000_000_000);

    fn tick(price: i64, volume: i64) -> Tick {
        let (last, volume) = (Price::from_raw(price), Qty::from_raw(volume));
        Tick { security: SecurityId(1), last, volume, traded: true, ..Tick::default() }
    }

    #[test]
    fn trades_of_an_interval_make_one_bar_published_at_its_end() {
        let mut bars = Bars::default();
        let at = |ms: u64| DAY.plus(ms * 1_000_000);
        for (ms, price, volume) in [(0, 10, 100), (100, 12, 105), (200, 8, 106), (300, 8, 106), (900, 9, 110)]
        {
            assert_eq!(bars.poll(at(ms)), None);
            bars.handle_tick(at(ms), &tick(price, volume));
        }
        assert_eq!(bars.poll_timeout(), Some(at(1_000)));
        assert_eq!(bars.poll(at(999)), None);
        let bar = bars.poll(at(1_000)).unwrap();
        let prices = [bar.open, bar.high, bar.low, bar.close].map(Price::raw);
        assert_eq!((bar.size, bar.at, prices, bar.volume.raw()), ("1s", DAY, [12, 12, 8, 9], 10));
        assert_eq!(bars.poll(at(1_000)), None, "the longer ones go on");
        bars.handle_tick(at(61_000), &tick(7, 3));
        let sizes: Vec<_> = std::iter::from_fn(|| bars.poll(at(60_999))).map(|bar| bar.size).collect();
        assert_eq!(sizes, ["5s", "1m"]);
        let bar = bars.poll(at(62_000)).unwrap();
        assert_eq!((bar.size, bar.volume.raw()), ("1s", 3), "a new day begins with its own volume");
    }

    #[test]
    fn a_security_without_trades_has_no_bars() {
        let mut bars = Bars::default();
        for ms in 0..10 {
            bars.handle_tick(DAY.plus(ms), &tick(10, 100));
        }
        assert_eq!(bars.poll(DAY.plus(NS_PER_S)), None);
        assert_eq!(bars.poll_timeout(), None);
        bars.clear();
        assert!(bars.is_empty());
    }
}
