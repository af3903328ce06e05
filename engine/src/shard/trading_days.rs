//! Trading days of a shard: the day that was started, and the days published to readers.

use crate::time::Day;

#[derive(Clone, Copy, Debug, Default)]
pub(super) struct TradingDays {
    /// The trading day that was started last.
    pub current: Option<Day>,
    /// The trading day last published to readers.
    pub published: Option<Day>,
    /// Number of days published. It wraps around, but no order is kept that long.
    pub era: u8,
}

impl TradingDays {
    /// Starts a day. Returns whether it is later than the day before it.
    pub(super) fn begin(&mut self, day: Day) -> bool {
        self.current.replace(day).is_some_and(|known| known < day)
    }

    /// Publishes a day: readers archive finished orders when the day changes.
    pub(super) fn publish(&mut self, day: Day) {
        let is_change = self.published.replace(day).is_some_and(|published| published != day);
        self.era = self.era.wrapping_add(is_change as u8);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_era_rises_when_another_day_is_published() {
        let mut days = TradingDays::default();
        assert!(!days.begin(Day(5)), "there was no day before");
        assert!(!days.begin(Day(5)) && days.begin(Day(6)) && !days.begin(Day(4)));
        assert_eq!(days.current, Some(Day(4)));
        days.publish(Day(5));
        days.publish(Day(5));
        assert_eq!(days.era, 0, "the first day, twice");
        days.era = u8::MAX;
        days.publish(Day(4));
        assert_eq!((days.era, days.published), (0, Some(Day(4))));
    }
}
