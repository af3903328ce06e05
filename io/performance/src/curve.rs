//! A curve: values in the order of time.

use std::collections::BTreeMap;

use pitlane_engine::number::Money;
use pitlane_engine::time::{Day, Timestamp};

/// Points of a curve in the JSON and in a plot: what a plot can show.
const POINTS_MAX: usize = 2_000;

/// A value at one time.
pub type Point = (Timestamp, f64);

/// Returns an amount as a float, for plots and statistics.
pub fn amount(money: Money) -> f64 {
    money.raw() as f64 / 1e8
}

/// Returns at most as many points as a plot can show, the last one included.
pub fn thinned<T>(points: &[T]) -> impl Iterator<Item = &T> {
    let last = points.len().saturating_sub(1);
    let step = last.div_ceil(POINTS_MAX - 1).max(1);
    points.iter().enumerate().filter(move |(at, _)| at % step == 0 || *at == last).map(|(_, point)| point)
}

/// Returns the day that ends at a time, in UTC.
pub fn day_ending(at: Timestamp) -> Day {
    // The end of a day is the beginning of the next, so the day is that of the instant before.
    Timestamp(at.0.saturating_sub(1)).day()
}

/// Returns the month of a day's end, such as `2026-11`, in UTC.
pub fn month_ending(at: Timestamp) -> String {
    day_ending(at).to_string().chars().take(7).collect()
}

/// How the times of a curve are written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TimeFormat {
    Instants,
    /// As the days that end at them.
    DayEnds,
}

impl TimeFormat {
    pub fn text(self, at: Timestamp) -> String {
        match self {
            TimeFormat::Instants => at.to_string(),
            TimeFormat::DayEnds => day_ending(at).to_string(),
        }
    }
}

/// Returns the return of each month from the end of the month before; `None` if there was no equity
/// above zero. `daily` has the values at the end of each day.
pub fn month_returns(start: f64, daily: &[Point]) -> BTreeMap<String, Option<f64>> {
    let ends: BTreeMap<String, f64> = daily.iter().map(|(at, value)| (month_ending(*at), *value)).collect();
    let mut before = start;
    let month = |(month, end): (String, f64)| {
        let total_return = (before > 0.0).then(|| end / before - 1.0);
        before = end;
        (month, total_return)
    };
    ends.into_iter().map(month).collect()
}

#[cfg(test)]
mod tests {
    use pitlane_engine::time::{Day, NS_PER_DAY};

    use super::*;

    #[test]
    fn a_thinned_curve_has_its_ends_and_at_most_so_many_points() {
        let lengths = [0, 1, 2, 3, POINTS_MAX - 1, POINTS_MAX, POINTS_MAX + 1];
        let longer =
            (2..9).flat_map(|times| [times * POINTS_MAX - 1, times * POINTS_MAX, times * POINTS_MAX + 1]);
        for length in lengths.into_iter().chain(longer) {
            let points: Vec<usize> = (0..length).collect();
            let shown: Vec<usize> = thinned(&points).copied().collect();
            assert!(shown.len() <= POINTS_MAX, "{} of {length}", shown.len());
            assert!(shown.len() >= length.min(POINTS_MAX / 2), "{} of {length}", shown.len());
            assert_eq!((shown.first(), shown.last()), (points.first(), points.last()));
        }
    }

    #[test]
    fn a_month_ends_with_its_last_day() {
        let start = Day::parse(b"2026-10-30").unwrap().start();
        let daily =
            [(1, 110.0), (2, 120.0), (3, 90.0)].map(|(day, value)| (start.plus(day * NS_PER_DAY), value));
        let found: Vec<(String, Option<f64>)> = month_returns(100.0, &daily).into_iter().collect();
        let names: Vec<&str> = found.iter().map(|(month, _)| month.as_str()).collect();
        assert_eq!(names, ["2026-10", "2026-11"]);
        let near = |found: Option<f64>, expected: f64| (found.unwrap() - expected).abs() < 1e-12;
        assert!(near(found[0].1, 0.2) && near(found[1].1, -0.25), "{found:?}");
    }

    #[test]
    fn a_month_that_begins_without_equity_has_no_return() {
        let end = Day::parse(b"2026-11-01").unwrap().start();
        let daily = [(end, 5.0), (end.plus(NS_PER_DAY), 6.0)];
        let found = month_returns(0.0, &daily);
        assert_eq!(found["2026-10"], None);
        assert!((found["2026-11"].unwrap() - 0.2).abs() < 1e-12);
    }
}
