//! Statistics of an equity curve. They are estimates, so they are floats; amounts of money are not.
//!
//! Returns are taken by day: from the end of one day with data to the end of the next, in UTC.
//! Ratios of a few days, or of returns by minute, say little about a year, so figures per year need
//! at least [`RETURNS_MIN`] daily returns. A figure that is withheld has a reason.

use std::fmt;

use pitlane_engine::time::{NS_PER_DAY, Timestamp};

use super::draw_downs::{DrawDown, draw_downs};

/// Daily returns from which on figures per year are given: a month of trading days.
pub const RETURNS_MIN: usize = 20;
/// Days of a mean calendar year.
const CALENDAR_DAYS: f64 = 365.25;

/// Reason why there is no figure.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Withheld {
    /// There are only so many daily returns.
    TooShort(usize),
    /// The equity was not above zero throughout.
    NoEquity,
    NoVariation,
    NoLoss,
    NoDrawDown,
}

impl fmt::Display for Withheld {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Withheld::TooShort(1) => {
                write!(f, "the data are too short: 1 daily return, {RETURNS_MIN} are needed")
            }
            Withheld::TooShort(returns) => {
                write!(f, "the data are too short: {returns} daily returns, {RETURNS_MIN} are needed")
            }
            Withheld::NoEquity => f.write_str("the equity was not above zero throughout"),
            Withheld::NoVariation => f.write_str("the returns do not vary"),
            Withheld::NoLoss => f.write_str("no day had a loss"),
            Withheld::NoDrawDown => f.write_str("there was no draw-down"),
        }
    }
}

/// A figure, or the reason why it is withheld.
pub type Figure = Result<f64, Withheld>;

#[derive(Clone, Debug, PartialEq)]
pub struct Statistics {
    pub start: f64,
    pub end: f64,
    /// Share of the equity at the start.
    pub total_return: f64,
    /// Compound return per calendar year.
    pub annual_return: Figure,
    /// Standard deviation of the daily returns, per year.
    pub volatility: Figure,
    /// Mean over standard deviation of the daily returns, per year; no risk-free rate.
    pub sharpe: Figure,
    /// Mean over downside deviation of the daily returns, per year; the target is zero.
    pub sortino: Figure,
    /// Annual return over the largest draw-down.
    pub calmar: Figure,
    /// Largest fall below an earlier high, as a share of that high.
    pub max_draw_down: f64,
    /// Longest time below a high.
    pub draw_down_ns: u64,
    /// The deepest draw-downs, the deepest first.
    pub draw_downs: Vec<DrawDown>,
    pub best_day: Option<f64>,
    pub worst_day: Option<f64>,
    /// Trading days of a year, by which figures are annualised.
    pub days_per_year: u32,
    /// Return of each day with data, under the time of its end.
    pub returns: Vec<(Timestamp, f64)>,
}

impl Statistics {
    /// Computes the statistics of a curve: its samples in the order of time, and its values at the
    /// end of each day with data.
    pub fn of(samples: &[(Timestamp, f64)], daily: &[(Timestamp, f64)], days_per_year: u32) -> Statistics {
        let first = samples.first().copied().unwrap_or_default();
        let last = samples.last().copied().unwrap_or_default();
        let (start, end) = (first.1, last.1);
        let falls = draw_downs(samples);
        let (returns, is_positive) = daily_returns(first, daily);
        let values: Vec<f64> = returns.iter().map(|(_, value)| *value).collect();
        let usable = match (is_positive, values.len()) {
            (false, _) => Err(Withheld::NoEquity),
            (true, count) if count < RETURNS_MIN => Err(Withheld::TooShort(count)),
            (true, _) => Ok(values.as_slice()),
        };
        let per_year = f64::from(days_per_year);
        let days = last.0.since(first.0) as f64 / NS_PER_DAY as f64;
        let annual_return = usable.and_then(|_| match end > 0.0 {
            true => Ok((end / start).powf(CALENDAR_DAYS / days) - 1.0),
            false => Err(Withheld::NoEquity),
        });
        Statistics {
            start,
            end,
            total_return: if start > 0.0 { end / start - 1.0 } else { 0.0 },
            annual_return,
            volatility: usable.map(|values| deviation(values) * per_year.sqrt()),
            sharpe: usable.and_then(|values| sharpe(values, per_year)),
            sortino: usable.and_then(|values| sortino(values, per_year)),
            calmar: annual_return.and_then(|annual| match falls.max > 0.0 {
                true => Ok(annual / falls.max),
                false => Err(Withheld::NoDrawDown),
            }),
            max_draw_down: falls.max,
            draw_down_ns: falls.longest_ns,
            draw_downs: falls.deepest,
            best_day: values.iter().copied().reduce(f64::max),
            worst_day: values.iter().copied().reduce(f64::min),
            days_per_year,
            returns,
        }
    }

    /// Returns how the returns were sampled, in words.
    pub fn sampling(&self) -> String {
        let (returns, days) = (self.returns.len(), self.days_per_year);
        let plural = if returns == 1 { "" } else { "s" };
        format!("{returns} daily return{plural} (UTC days with data), {days} days a year, no risk-free rate")
    }
}

/// Returns the daily returns, and whether the equity before each of them was above zero.
fn daily_returns(first: (Timestamp, f64), daily: &[(Timestamp, f64)]) -> (Vec<(Timestamp, f64)>, bool) {
    let mut returns = Vec::with_capacity(daily.len());
    let (mut before, mut is_positive) = (first.1, first.1 > 0.0);
    for &(at, value) in daily {
        if before > 0.0 {
            returns.push((at, value / before - 1.0));
        } else {
            is_positive = false;
        }
        before = value;
    }
    (returns, is_positive)
}

/// Returns the mean.
pub fn mean(values: &[f64]) -> f64 {
    values.iter().sum::<f64>() / values.len() as f64
}

/// Returns the standard deviation of a sample.
pub fn deviation(values: &[f64]) -> f64 {
    let mean = mean(values);
    let squares: f64 = values.iter().map(|value| (value - mean).powi(2)).sum();
    (squares / (values.len() as f64 - 1.0)).sqrt()
}

fn sharpe(values: &[f64], per_year: f64) -> Figure {
    let deviation = deviation(values);
    if deviation > 0.0 { Ok(mean(values) / deviation * per_year.sqrt()) } else { Err(Withheld::NoVariation) }
}

fn sortino(values: &[f64], per_year: f64) -> Figure {
    let squares: f64 = values.iter().map(|value| value.min(0.0).powi(2)).sum();
    let downside = (squares / values.len() as f64).sqrt();
    if downside > 0.0 { Ok(mean(values) / downside * per_year.sqrt()) } else { Err(Withheld::NoLoss) }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn days(values: &[f64]) -> Vec<(Timestamp, f64)> {
        let at = |day: usize| Timestamp(day as u64 * NS_PER_DAY);
        values.iter().enumerate().map(|(day, value)| (at(day), *value)).collect()
    }

    fn of(values: &[f64]) -> Statistics {
        let days = days(values);
        Statistics::of(&days, days.get(1..).unwrap_or_default(), 252)
    }

    #[test]
    fn figures_match_a_calculation_by_hand() {
        let mut values = vec![100.0];
        for day in 0..30 {
            let factor = if day % 3 == 0 { 0.98 } else { 1.02 };
            values.push(values[day] * factor);
        }
        let statistics = of(&values);
        assert_eq!(statistics.returns.len(), 30);
        // Ten falls by two percent and twenty rises by as much.
        let mean = 0.02 / 3.0;
        let variance: f64 =
            (10.0 * (-0.02 - mean) * (-0.02 - mean) + 20.0 * (0.02 - mean) * (0.02 - mean)) / 29.0;
        let year = 252f64.sqrt();
        let near = |figure: Figure, expected: f64| (figure.unwrap() - expected).abs() < 1e-9;
        assert!(near(statistics.volatility, variance.sqrt() * year));
        assert!(near(statistics.sharpe, mean / variance.sqrt() * year));
        assert!(near(statistics.sortino, mean / (10.0 * 0.0004 / 30.0_f64).sqrt() * year));
        let total = 0.98f64.powi(10) * 1.02f64.powi(20);
        assert!((statistics.total_return - (total - 1.0)).abs() < 1e-9);
        assert!(near(statistics.annual_return, total.powf(365.25 / 30.0) - 1.0));
        assert!((statistics.max_draw_down - 0.02).abs() < 1e-9);
        assert!(near(statistics.calmar, (total.powf(365.25 / 30.0) - 1.0) / 0.02));
        assert!((statistics.best_day.unwrap() - 0.02).abs() < 1e-9);
        assert!((statistics.worst_day.unwrap() + 0.02).abs() < 1e-9);
    }

    /// The expected figures are those of quantstats 0.0.86 for the same values;
    /// `tests/quantstats/compare.py` compares the whole report.
    #[test]
    fn figures_agree_with_quantstats() {
        let values: Vec<f64> =
            (0..61).map(|k| f64::from(100_000 + ((k * 7_919) % 1_009 - 504) * 10 + 50 * k)).collect();
        let statistics = of(&values);
        let near = |found: f64, expected: f64| (found - expected).abs() < 1e-12;
        assert!(near(statistics.volatility.unwrap(), 0.615_273_974_812_924_2));
        assert!(near(statistics.sharpe.unwrap(), 1.108_184_968_218_213_7));
        assert!(near(statistics.sortino.unwrap(), 3.248_178_414_664_897_8));
        assert!(near(statistics.max_draw_down, 0.085_786_611_663_228_98));
        assert!(near(statistics.best_day.unwrap(), 0.090_669_755_686_604_96));
        assert!(near(statistics.worst_day.unwrap(), -0.015_198_192_647_360_886));
        assert!(near(statistics.total_return, 0.127_422_072_451_560_68));
    }

    #[test]
    fn figures_per_year_of_too_few_days_are_withheld_with_the_reason() {
        let rising: Vec<f64> = (0..RETURNS_MIN).map(|day| 100.0 + day as f64).collect();
        let short = of(&rising);
        let expected = Withheld::TooShort(RETURNS_MIN - 1);
        for figure in [short.annual_return, short.volatility, short.sharpe, short.sortino, short.calmar] {
            assert_eq!(figure, Err(expected));
        }
        assert_eq!(expected.to_string(), "the data are too short: 19 daily returns, 20 are needed");
        let enough: Vec<f64> = (0..=RETURNS_MIN).map(|day| 100.0 + day as f64).collect();
        assert!(of(&enough).sharpe.is_ok());
        assert_eq!(of(&enough).sortino, Err(Withheld::NoLoss));
        assert_eq!(of(&enough).calmar, Err(Withheld::NoDrawDown));
    }

    #[test]
    fn nothing_standing_still_and_ruin_have_no_ratios() {
        let none = Statistics::of(&[], &[], 252);
        assert_eq!((none.total_return, none.sharpe), (0.0, Err(Withheld::NoEquity)));
        let flat = of(&[5.0; 40]);
        assert_eq!((flat.sharpe, flat.max_draw_down), (Err(Withheld::NoVariation), 0.0));
        let mut values = [5.0; 40];
        values[20..].fill(-1.0);
        assert_eq!(of(&values).sharpe, Err(Withheld::NoEquity));
    }
}
