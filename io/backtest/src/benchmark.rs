//! Comparison with buying at the beginning and holding: the securities of a strategy in equal
//! parts, or a chosen security.

use pitlane_engine::id::SecurityId;
use pitlane_engine::number::Price;
use pitlane_engine::refdata::RefData;
use pitlane_engine::time::Timestamp;
use pitlane_performance::statistics::{Figure, RETURNS_MIN, Statistics, Withheld, deviation, mean};

use super::records::PriceCurve;

/// Symbols that the name lists.
const NAMED_MAX: usize = 5;

#[derive(Clone, Debug, PartialEq)]
pub struct Benchmark {
    pub name: String,
    /// Value of the benchmark, which begins with the equity of the strategy, at the times of the
    /// equity.
    pub curve: Vec<(Timestamp, f64)>,
    pub statistics: Statistics,
    /// Change of the strategy's return for a change of the benchmark's return by one.
    pub beta: Figure,
    /// Return of the strategy per year that the benchmark does not explain.
    pub alpha: Figure,
    pub correlation: Figure,
}

/// Times and values of a strategy's equity, which the benchmark follows.
#[derive(Clone, Copy, Debug)]
pub struct Compared<'a> {
    pub samples: &'a [(Timestamp, f64)],
    pub daily: &'a [(Timestamp, f64)],
    pub statistics: &'a Statistics,
}

impl Benchmark {
    /// Returns the benchmark of these securities; `None` if none of them had a price.
    pub fn of(
        securities: &[SecurityId],
        prices: &[PriceCurve],
        reference: &RefData,
        compared: Compared<'_>,
    ) -> Option<Benchmark> {
        let priced = |curve: &&PriceCurve| {
            securities.contains(&curve.security) && curve.samples.iter().any(|(_, price)| price.is_positive())
        };
        let curves: Vec<&PriceCurve> = prices.iter().filter(priced).collect();
        if curves.is_empty() {
            return None;
        }
        let start = compared.samples.first()?.1;
        let held = |points: &[(Timestamp, f64)], all: &dyn Fn(&PriceCurve) -> Vec<(Timestamp, Price)>| {
            let mut factors = vec![0.0; points.len()];
            for curve in &curves {
                let growth = growth(points, &all(curve), bought_at(curve));
                factors.iter_mut().zip(growth).for_each(|(sum, factor)| *sum += factor);
            }
            let value = |((at, _), sum): (&(Timestamp, f64), f64)| (*at, start * sum / curves.len() as f64);
            points.iter().zip(factors).map(value).collect::<Vec<_>>()
        };
        let curve = held(compared.samples, &|curve| curve.samples.clone());
        let daily = held(compared.daily, &|curve| curve.daily.clone());
        let days = compared.statistics.days_per_year;
        let statistics = Statistics::of(&curve, &daily, days);
        let (beta, alpha, correlation) =
            regression(&compared.statistics.returns, &statistics.returns, f64::from(days));
        Some(Benchmark { name: name(&curves, reference), curve, statistics, beta, alpha, correlation })
    }
}

/// Returns the first price of a security.
fn bought_at(curve: &PriceCurve) -> f64 {
    let first = curve.samples.iter().find(|(_, price)| price.is_positive());
    first.map_or(1.0, |(_, price)| price.raw() as f64)
}

/// Returns the price at each of the times over the price of the purchase; 1 before the first price.
fn growth(points: &[(Timestamp, f64)], prices: &[(Timestamp, Price)], bought_at: f64) -> Vec<f64> {
    let mut next = prices.iter().peekable();
    let mut factor = 1.0;
    let at = |(at, _): &(Timestamp, f64)| {
        while let Some((_, price)) = next.next_if(|(time, _)| time <= at) {
            factor = price.raw() as f64 / bought_at;
        }
        factor
    };
    points.iter().map(at).collect()
}

fn name(curves: &[&PriceCurve], reference: &RefData) -> String {
    let symbol = |curve: &&PriceCurve| {
        reference.security(curve.security).map_or(curve.security.to_string(), |row| row.symbol.clone())
    };
    let mut names: Vec<String> = curves.iter().take(NAMED_MAX).map(symbol).collect();
    if curves.len() > NAMED_MAX {
        names.push(format!("{} more", curves.len() - NAMED_MAX));
    }
    format!("buy and hold {}", names.join(", "))
}

/// Returns beta, alpha per year and correlation of daily returns of the same days.
fn regression(
    own: &[(Timestamp, f64)],
    other: &[(Timestamp, f64)],
    per_year: f64,
) -> (Figure, Figure, Figure) {
    if own.len() != other.len() || own.len() < RETURNS_MIN {
        let withheld = Err(Withheld::TooShort(own.len().min(other.len())));
        return (withheld, withheld, withheld);
    }
    let values = |points: &[(Timestamp, f64)]| points.iter().map(|(_, value)| *value).collect::<Vec<_>>();
    let (own, other) = (values(own), values(other));
    let (own_mean, other_mean) = (mean(&own), mean(&other));
    let products = own.iter().zip(&other).map(|(a, b)| (a - own_mean) * (b - other_mean));
    let covariance = products.sum::<f64>() / (own.len() as f64 - 1.0);
    let (own_deviation, other_deviation) = (deviation(&own), deviation(&other));
    let beta = match other_deviation > 0.0 {
        true => Ok(covariance / other_deviation.powi(2)),
        false => Err(Withheld::NoVariation),
    };
    let alpha = beta.map(|beta| (own_mean - beta * other_mean) * per_year);
    let correlation = match own_deviation > 0.0 && other_deviation > 0.0 {
        true => Ok(covariance / (own_deviation * other_deviation)),
        false => Err(Withheld::NoVariation),
    };
    (beta, alpha, correlation)
}

#[cfg(test)]
mod tests {
    use pitlane_engine::time::NS_PER_DAY;

    use super::*;

    fn days(count: usize, value: impl Fn(usize) -> f64) -> Vec<(Timestamp, f64)> {
        (0..count).map(|day| (Timestamp(day as u64 * NS_PER_DAY), value(day))).collect()
    }

    fn prices(security: u32, count: usize, from: usize, value: impl Fn(usize) -> i64) -> PriceCurve {
        let at = |day: usize| Timestamp(day as u64 * NS_PER_DAY);
        let samples: Vec<_> = (from..count).map(|day| (at(day), Price::whole(value(day)).unwrap())).collect();
        PriceCurve { security: SecurityId(security), daily: samples[1..].to_vec(), samples }
    }

    #[test]
    fn parts_are_equal_and_a_security_without_a_price_waits() {
        let reference = pitlane_config::refdata::shipped().unwrap();
        let equity = days(4, |_| 1_000.0);
        let statistics = Statistics::of(&equity, &equity[1..], 252);
        let compared = Compared { samples: &equity, daily: &equity[1..], statistics: &statistics };
        let curves = [
            prices(1, 4, 0, |day| 100 + 10 * day as i64),
            prices(2, 4, 2, |day| if day == 2 { 50 } else { 100 }),
        ];
        let securities = [SecurityId(1), SecurityId(2), SecurityId(3)];
        let benchmark = Benchmark::of(&securities, &curves, &reference, compared).unwrap();
        let values: Vec<f64> = benchmark.curve.iter().map(|(_, value)| value.round()).collect();
        assert_eq!(values, [1_000.0, 1_050.0, 1_100.0, 1_650.0]);
        assert_eq!(benchmark.name, "buy and hold AAPL, MSFT");
        assert_eq!(benchmark.beta, Err(Withheld::TooShort(3)));
        assert_eq!(Benchmark::of(&[SecurityId(9)], &curves, &reference, compared), None);
    }

    #[test]
    fn a_strategy_that_doubles_each_move_has_a_beta_of_two() {
        let moves: Vec<f64> = (0..40).map(|day| [0.01, -0.02, 0.03][day % 3]).collect();
        let at = |day: usize| Timestamp(day as u64);
        let other: Vec<_> = moves.iter().enumerate().map(|(day, value)| (at(day), *value)).collect();
        let own: Vec<_> = other.iter().map(|(at, value)| (*at, 2.0 * value + 0.001)).collect();
        let (beta, alpha, correlation) = regression(&own, &other, 252.0);
        let near = |figure: Figure, expected: f64| (figure.unwrap() - expected).abs() < 1e-9;
        assert!(near(beta, 2.0) && near(alpha, 0.252) && near(correlation, 1.0));
    }
}
