//! What a report of live trading is made from: the profit of each trading day of a strategy or of
//! all, and the equity that follows from it.

use std::collections::{BTreeMap, BTreeSet};

use pitlane_engine::id::{SecurityId, StrategyId};
use pitlane_engine::number::Money;
use pitlane_engine::time::{Day, Timestamp};
use pitlane_performance::curve::{Point, amount, month_ending};
use pitlane_protocols::rest::{ConvertedResult, ProfitSums};

/// Strategies with a section of their own, those with the lowest ids. A report of so many has at
/// most 3 MB.
const SECTIONS_MAX: usize = 16;

/// Sums of each strategy.
pub(crate) type SumsByStrategy = BTreeMap<StrategyId, StrategySums>;

/// Profit and number of trades of a day, a month or a security.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct PeriodSums {
    pub profit: ProfitSums,
    pub trades: u64,
}

impl PeriodSums {
    pub(crate) fn add(&mut self, other: &PeriodSums) {
        self.profit.gross += other.profit.gross;
        self.profit.fees += other.profit.fees;
        self.profit.missing = self.profit.missing.saturating_add(other.profit.missing);
        self.trades = self.trades.saturating_add(other.trades);
    }

    fn of(row: &ConvertedResult) -> PeriodSums {
        let mut sums = PeriodSums { trades: row.result.trades, ..PeriodSums::default() };
        sums.profit.add(row.base);
        sums
    }
}

/// The trading days of a report, both included.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct DayRange {
    pub from: Option<Day>,
    pub to: Option<Day>,
}

impl DayRange {
    pub(crate) fn contains(&self, day: Day) -> bool {
        self.from.is_none_or(|from| from <= day) && !self.is_before(day)
    }

    /// Returns whether the day is after all of the range.
    fn is_before(&self, day: Day) -> bool {
        self.to.is_some_and(|to| to < day)
    }
}

/// The profit of one strategy, or of all together, in a range of days.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct StrategySums {
    pub days: BTreeMap<Day, PeriodSums>,
    pub securities: BTreeMap<SecurityId, PeriodSums>,
    /// Profit after fees of the days after the range, in units of 10⁻⁸.
    later: i128,
}

impl StrategySums {
    pub(crate) fn add_row(&mut self, day: Day, row: &ConvertedResult, range: DayRange) {
        let sums = PeriodSums::of(row);
        if range.contains(day) {
            self.days.entry(day).or_default().add(&sums);
            self.securities.entry(row.result.security).or_default().add(&sums);
        } else if range.is_before(day) {
            self.later += sums.profit.net();
        }
    }

    pub(crate) fn add(&mut self, other: &StrategySums) {
        self.later += other.later;
        other.days.iter().for_each(|(day, sums)| self.days.entry(*day).or_default().add(sums));
        let securities = other.securities.iter();
        securities.for_each(|(security, sums)| self.securities.entry(*security).or_default().add(sums));
    }

    /// Adds days on which it had no position, so that their returns are zero.
    pub(crate) fn fill(&mut self, days: &BTreeSet<Day>) {
        for day in days {
            self.days.entry(*day).or_default();
        }
    }

    pub(crate) fn total(&self) -> PeriodSums {
        let mut total = PeriodSums::default();
        self.days.values().for_each(|sums| total.add(sums));
        total
    }

    /// Returns the sums of each month such as `2026-11`.
    pub(crate) fn months(&self) -> BTreeMap<String, PeriodSums> {
        let mut months: BTreeMap<String, PeriodSums> = BTreeMap::new();
        for (day, sums) in &self.days {
            months.entry(month_ending(end_of(*day))).or_default().add(sums);
        }
        months
    }

    /// Returns the equity before the first day and at the end of each day. `worth` is the equity
    /// of now, from which the profit of later days is subtracted.
    pub(crate) fn equity(&self, worth: Money) -> Vec<(Timestamp, Money)> {
        let Some((first, _)) = self.days.first_key_value() else { return Vec::new() };
        let mut value = worth.raw() as i128 - self.later;
        let mut points = Vec::with_capacity(self.days.len() + 1);
        for (day, sums) in self.days.iter().rev() {
            points.push((end_of(*day), money(value)));
            value -= sums.profit.net();
        }
        points.push((first.start(), money(value)));
        points.reverse();
        points
    }
}

/// Returns the strategies with a section of their own, and the number of the others.
pub(crate) fn sections(sums: SumsByStrategy) -> (Vec<(StrategyId, StrategySums)>, usize) {
    let others = sums.len().saturating_sub(SECTIONS_MAX);
    (sums.into_iter().take(SECTIONS_MAX).collect(), others)
}

/// Returns a sum as an amount. A sum beyond the range of amounts gives the end of the range: it has
/// no meaning, but it must not end the process.
pub(crate) fn money(raw: i128) -> Money {
    Money::from_raw(i64::try_from(raw).unwrap_or(if raw < 0 { i64::MIN } else { i64::MAX }))
}

/// Returns the end of a trading day as it is drawn: that of the calendar day in UTC.
fn end_of(day: Day) -> Timestamp {
    Day(day.0.saturating_add(1)).start()
}

/// Returns a curve as floats, for statistics and plots.
pub(crate) fn points(curve: &[(Timestamp, Money)]) -> Vec<Point> {
    curve.iter().map(|(at, value)| (*at, amount(*value))).collect()
}

#[cfg(test)]
mod tests {
    use super::super::profit_history::tests::row;
    use super::*;

    fn range(from: i32, to: i32) -> DayRange {
        DayRange { from: Some(Day(from)), to: Some(Day(to)) }
    }

    /// Returns the sums of four days with a profit of 100, 10, −40 and 1,000 before fees of 5 each.
    fn sums(range: DayRange) -> StrategySums {
        let mut sums = StrategySums::default();
        for (day, gross) in [(1, 100), (2, 10), (3, -40), (4, 1_000)] {
            sums.add_row(Day(day), &row(1, 7, Some(gross)), range);
        }
        sums
    }

    fn values(sums: &StrategySums, worth: i64) -> Vec<(i32, i64)> {
        let points = sums.equity(Money::from_raw(worth));
        points.into_iter().map(|(at, value)| (at.day().0, value.raw())).collect()
    }

    #[test]
    fn the_equity_of_past_days_follows_from_that_of_now() {
        let all = sums(DayRange::default());
        assert_eq!(values(&all, 5_000), [(1, 3_950), (2, 4_045), (3, 4_050), (4, 4_005), (5, 5_000)]);
        // The same days have the same equity in a shorter range.
        let some = sums(range(2, 3));
        assert_eq!(values(&some, 5_000), [(2, 4_045), (3, 4_050), (4, 4_005)]);
        assert_eq!(some.total().profit.net(), -40);
        assert_eq!(some.total().trades, 4);
        assert_eq!(sums(range(8, 9)).equity(Money::from_raw(5_000)), []);
    }

    #[test]
    fn strategies_are_added_and_days_without_a_position_are_filled() {
        let (mut one, mut other) = (StrategySums::default(), StrategySums::default());
        one.add_row(Day(1), &row(1, 7, Some(100)), range(1, 2));
        one.add_row(Day(3), &row(1, 7, Some(1)), range(1, 2));
        other.add_row(Day(2), &row(2, 8, None), range(1, 2));
        let mut both = one.clone();
        both.add(&other);
        assert_eq!(values(&both, 1_000), [(1, 909), (2, 1_004), (3, 1_004)]);
        assert_eq!((both.securities.len(), both.total().profit.missing), (2, 1));
        one.fill(&both.days.keys().copied().collect());
        assert_eq!(values(&one, 1_000), [(1, 909), (2, 1_004), (3, 1_004)]);
        assert_eq!(one.securities.len(), 1);
    }

    #[test]
    fn months_are_those_of_the_trading_days() {
        let mut sums = StrategySums::default();
        for day in [b"2026-10-31", b"2026-11-01", b"2026-11-02"] {
            sums.add_row(Day::parse(day).unwrap(), &row(1, 7, Some(100)), DayRange::default());
        }
        let months: Vec<(String, i128)> =
            sums.months().into_iter().map(|(month, sums)| (month, sums.profit.net())).collect();
        assert_eq!(months, [("2026-10".to_string(), 95), ("2026-11".to_string(), 190)]);
    }

    #[test]
    fn so_many_strategies_have_a_section() {
        let sums = |count| (0..count).map(|id| (StrategyId(id), StrategySums::default())).collect();
        let shown = |count| (sections(sums(count)).0.len(), sections(sums(count)).1);
        assert_eq!([0, 1, 16, 18].map(shown), [(0, 0), (1, 0), (16, 0), (16, 2)]);
    }

    #[test]
    fn a_sum_beyond_the_range_of_amounts_ends_at_it() {
        assert_eq!(money(i128::from(i64::MAX) + 1), Money::from_raw(i64::MAX));
        assert_eq!(money(i128::from(i64::MIN) - 1), Money::from_raw(i64::MIN));
    }
}
