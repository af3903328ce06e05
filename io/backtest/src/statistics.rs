//! Statistics of an equity curve: returns, draw-down, Sharpe and Calmar. They are estimates, so
//! they are floats; amounts of money are not.

use pitlane_engine::time::{NS_PER_DAY, NS_PER_S, Timestamp};

/// Seconds of a mean year: annual figures are per calendar time, since markets have different
/// hours.
const YEAR_S: f64 = 365.25 * 86_400.0;
/// Number of days from which returns are taken by day: then nights and weekends do not look like
/// calm trading.
const DAYS_MIN: usize = 10;

#[derive(Clone, Debug, Default, PartialEq)]
pub struct Statistics {
    pub start: f64,
    pub end: f64,
    /// Share of the equity at the start.
    pub total_return: f64,
    /// None if there was no equity at the start, or the run was shorter than a day: then the figure
    /// has no meaning.
    pub annual_return: Option<f64>,
    /// Largest fall below an earlier high, as a share of that high.
    pub max_draw_down: f64,
    /// Longest time below a high, in seconds.
    pub draw_down_s: f64,
    /// Mean over deviation of the returns, per year; None if they do not vary.
    pub sharpe: Option<f64>,
    /// Annual return over the largest draw-down.
    pub calmar: Option<f64>,
    /// Period of a return, in seconds.
    pub period_s: f64,
    pub returns: Vec<(Timestamp, f64)>,
    /// Draw-down at each sample, as a share of the earlier high.
    pub draw_downs: Vec<(Timestamp, f64)>,
}

impl Statistics {
    /// Computes the statistics of samples in the order of time, taken every `sample_ns`.
    pub fn of(samples: &[(Timestamp, f64)], sample_ns: u64) -> Statistics {
        let (Some(&(begun, start)), Some(&(ended, end))) = (samples.first(), samples.last()) else {
            return Statistics::default();
        };
        let elapsed_s = ended.since(begun) as f64 / NS_PER_S as f64;
        let (draw_downs, max_draw_down, draw_down_s) = draw_downs(samples);
        let daily = by_day(samples);
        let is_daily = daily.len() > DAYS_MIN && sample_ns < NS_PER_DAY;
        let (points, period_s) = if is_daily {
            (daily.as_slice(), 86_400.0)
        } else {
            (samples, sample_ns as f64 / NS_PER_S as f64)
        };
        let returns = returns(points);
        let total_return = if start > 0.0 { end / start - 1.0 } else { 0.0 };
        let is_long = elapsed_s >= 86_400.0 && start > 0.0 && end > 0.0;
        let annual_return = is_long.then(|| (end / start).powf(YEAR_S / elapsed_s) - 1.0);
        Statistics {
            start,
            end,
            total_return,
            annual_return,
            max_draw_down,
            draw_down_s,
            sharpe: sharpe(&returns, period_s),
            calmar: annual_return.filter(|_| max_draw_down > 0.0).map(|annual| annual / max_draw_down),
            period_s,
            returns,
            draw_downs,
        }
    }
}

fn returns(points: &[(Timestamp, f64)]) -> Vec<(Timestamp, f64)> {
    let pairs = points.windows(2).filter(|pair| pair[0].1 > 0.0);
    pairs.map(|pair| (pair[1].0, pair[1].1 / pair[0].1 - 1.0)).collect()
}

/// Returns the last sample of each day in UTC.
fn by_day(samples: &[(Timestamp, f64)]) -> Vec<(Timestamp, f64)> {
    let mut days: Vec<(Timestamp, f64)> = Vec::new();
    for sample in samples {
        match days.last_mut() {
            Some(last) if last.0.day() == sample.0.day() => *last = *sample,
            _ => days.push(*sample),
        }
    }
    days
}

/// Returns the Sharpe ratio with a risk-free rate of zero.
fn sharpe(returns: &[(Timestamp, f64)], period_s: f64) -> Option<f64> {
    let count = returns.len() as f64;
    if returns.len() < 2 {
        return None;
    }
    let mean = returns.iter().map(|(_, value)| value).sum::<f64>() / count;
    let variance = returns.iter().map(|(_, value)| (value - mean).powi(2)).sum::<f64>() / (count - 1.0);
    let deviation = variance.sqrt();
    (deviation > 0.0).then(|| mean / deviation * (YEAR_S / period_s).sqrt())
}

/// Returns the draw-down at each sample, the largest, and the longest time below a high in seconds.
fn draw_downs(samples: &[(Timestamp, f64)]) -> (Vec<(Timestamp, f64)>, f64, f64) {
    let (mut high, mut high_at) = (f64::MIN, Timestamp::ZERO);
    let (mut deepest, mut longest_ns) = (0.0_f64, 0);
    let mut all = Vec::with_capacity(samples.len());
    for &(at, value) in samples {
        if value >= high {
            (high, high_at) = (value, at);
        }
        let depth = if high > 0.0 { 1.0 - value / high } else { 0.0 };
        deepest = deepest.max(depth);
        longest_ns = longest_ns.max(at.since(high_at));
        all.push((at, depth));
    }
    (all, deepest, longest_ns as f64 / NS_PER_S as f64)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn samples(values: &[f64], every_s: u64) -> Vec<(Timestamp, f64)> {
        values
            .iter()
            .enumerate()
            .map(|(at, value)| (Timestamp(at as u64 * every_s * NS_PER_S), *value))
            .collect()
    }

    #[test]
    fn figures_match_a_calculation_by_hand() {
        let statistics = Statistics::of(&samples(&[100.0, 110.0, 99.0, 121.0], 60), 60 * NS_PER_S);
        assert!((statistics.total_return - 0.21).abs() < 1e-12);
        assert!((statistics.max_draw_down - 0.1).abs() < 1e-12);
        assert_eq!(statistics.draw_down_s, 60.0);
        assert_eq!((statistics.annual_return, statistics.calmar), (None, None));
        let returns = [0.1, -0.1, 121.0 / 99.0 - 1.0];
        let mean = returns.iter().sum::<f64>() / 3.0;
        let deviation = (returns.iter().map(|value| (value - mean).powi(2)).sum::<f64>() / 2.0).sqrt();
        let expected = mean / deviation * (YEAR_S / 60.0_f64).sqrt();
        assert!((statistics.sharpe.unwrap() - expected).abs() < 1e-9);
    }

    #[test]
    fn long_runs_are_counted_by_day() {
        let values: Vec<f64> =
            (0..24 * 20).map(|hour| 100.0 + (hour % 24) as f64 + hour as f64 / 24.0).collect();
        let statistics = Statistics::of(&samples(&values, 3_600), 3_600 * NS_PER_S);
        assert_eq!((statistics.period_s, statistics.returns.len()), (86_400.0, 19));
        assert!(statistics.calmar.unwrap() > 0.0);
    }

    #[test]
    fn nothing_and_standing_still_have_no_ratios() {
        assert_eq!(Statistics::of(&[], 1), Statistics::default());
        let flat = Statistics::of(&samples(&[5.0; 10], 86_400), 86_400 * NS_PER_S);
        assert_eq!((flat.sharpe, flat.calmar, flat.max_draw_down), (None, None, 0.0));
        let broke = Statistics::of(&samples(&[0.0, 0.0], 86_400), 86_400 * NS_PER_S);
        assert_eq!((broke.total_return, broke.annual_return), (0.0, None));
    }
}
