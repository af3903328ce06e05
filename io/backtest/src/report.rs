//! The report of a simulation: figures, rows, and every assumption by name. The text is in
//! `report_text`, the JSON in `report_json`, the HTML page in `html`, the files in `report_files`.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use pitlane_config::Config;
use pitlane_engine::id::{SecurityId, StrategyId};
use pitlane_engine::number::Money;
use pitlane_engine::refdata::RefData;
use pitlane_engine::time::Timestamp;

use super::account::{SimulationAccount, StrategyResult};
use super::assumptions::assumptions;
use super::benchmark::{Benchmark, Compared};
use super::records::{BoundedRows, EquitySample, FillRecord, OrderRecord, PriceCurve, RoundTrip};
use super::statistics::Statistics;
use super::totals::TradeTotals;

/// Points of a curve in the JSON and in a plot: what a plot can show.
const POINTS_MAX: usize = 2_000;

/// Speed of the run; not part of the hash.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Speed {
    pub seconds: f64,
    pub rows_per_s: f64,
}

impl Speed {
    pub fn of(rows: u64, elapsed: Duration) -> Speed {
        let seconds = elapsed.as_secs_f64();
        Speed { seconds, rows_per_s: rows as f64 / seconds.max(1e-9) }
    }
}

/// Figures of one strategy.
#[derive(Clone, Debug)]
pub struct Performance {
    pub line: StrategyResult,
    pub kind: String,
    pub parameters: Vec<(String, String)>,
    pub statistics: Statistics,
    /// None if no security of the benchmark had a price.
    pub benchmark: Option<Benchmark>,
    /// Share of the time during which it held a position.
    pub time_in_market: f64,
    /// Mean of the absolute value of its positions over its equity, by samples.
    pub exposure: f64,
    /// Traded value over the mean equity.
    pub turnover: Option<f64>,
    /// Of the round trips that are kept.
    pub median_holding_ns: Option<u64>,
    pub months: Vec<MonthResult>,
}

/// Results of one month, in UTC.
#[derive(Clone, Debug, PartialEq)]
pub struct MonthResult {
    /// Such as `2026-11`.
    pub month: String,
    /// Return from the end of the month before; None if there was no equity.
    pub total_return: Option<f64>,
    pub totals: TradeTotals,
}

#[derive(Clone, Debug)]
pub struct SimulationReport {
    pub title: String,
    pub base: String,
    pub from: Timestamp,
    pub to: Timestamp,
    pub rows: u64,
    pub results: Vec<Performance>,
    /// Name and value of every assumption.
    pub assumptions: Vec<(String, String)>,
    /// What could not be valued.
    pub missing: Vec<String>,
    pub orders: BoundedRows<OrderRecord>,
    pub fills: BoundedRows<FillRecord>,
    pub round_trips: BoundedRows<RoundTrip>,
    pub prices: Vec<PriceCurve>,
    pub reference: Arc<RefData>,
    pub speed: Speed,
    hash: u64,
}

impl SimulationReport {
    pub fn new(
        config: &Config,
        reference: &Arc<RefData>,
        account: SimulationAccount,
        rows: u64,
        from: Timestamp,
    ) -> SimulationReport {
        let mut missing: Vec<String> =
            account.missing().iter().map(|missing| format!("{missing:?}")).collect();
        missing.dedup();
        let results = account.lines().iter().map(|line| performance(config, &account, line)).collect();
        SimulationReport {
            title: "Simulation".to_string(),
            base: config.service.base_currency.to_string(),
            from,
            to: account.range().1,
            rows,
            results,
            assumptions: assumptions(config, reference, account.sample_ns()),
            missing,
            hash: account.hash(),
            prices: account.prices().to_vec(),
            orders: account.orders().clone(),
            fills: account.fills().clone(),
            round_trips: account.round_trips().clone(),
            reference: reference.clone(),
            speed: Speed::default(),
        }
    }

    /// Returns the hash. The same data, settings and seed give the same hash, whatever the form of
    /// the report.
    pub fn hash(&self) -> u64 {
        self.hash
    }

    /// Returns the symbol of a security.
    pub fn symbol(&self, security: SecurityId) -> String {
        self.reference.security(security).map_or(security.to_string(), |row| row.symbol.clone())
    }

    /// Returns the name of a strategy.
    pub fn strategy_name(&self, strategy: StrategyId) -> String {
        self.reference.strategy(strategy).map_or(strategy.to_string(), |row| row.name.clone())
    }
}

fn performance(config: &Config, account: &SimulationAccount, line: &StrategyResult) -> Performance {
    let settings = config.strategies.iter().find(|strategy| strategy.name == line.name);
    let (samples, daily) = (curve(&line.equity), curve(&line.daily));
    let statistics = Statistics::of(&samples, &daily, config.simulation.year_days);
    let securities = match &config.simulation.benchmark {
        Some(chosen) => chosen.ids(account.reference()),
        None => settings.map(|settings| settings.security_ids(account.reference())).unwrap_or_default(),
    };
    let compared = Compared { samples: &samples, daily: &daily, statistics: &statistics };
    let benchmark = Benchmark::of(&securities, account.prices(), account.reference(), compared);
    let (begun, ended) = account.range();
    let mean_equity = mean(samples.iter().map(|(_, value)| *value));
    let shares = line.equity.iter().filter(|sample| sample.equity.is_positive());
    let exposure = mean(shares.map(|sample| amount(sample.exposure) / amount(sample.equity)));
    Performance {
        kind: settings.map(|settings| settings.kind.clone()).unwrap_or_default(),
        parameters: settings
            .map(|settings| settings.parameters.clone().into_iter().collect())
            .unwrap_or_default(),
        benchmark,
        time_in_market: line.in_market_ns as f64 / ended.since(begun).max(1) as f64,
        exposure: exposure.unwrap_or(0.0),
        turnover: mean_equity.filter(|mean| *mean > 0.0).map(|mean| amount(line.totals.turnover) / mean),
        median_holding_ns: median_holding_ns(account.round_trips().rows(), line.strategy),
        months: months(line),
        line: line.clone(),
        statistics,
    }
}

/// Returns the equity as floats.
pub fn curve(samples: &[EquitySample]) -> Vec<(Timestamp, f64)> {
    samples.iter().map(|sample| (sample.at, amount(sample.equity))).collect()
}

fn mean(values: impl Iterator<Item = f64>) -> Option<f64> {
    let (sum, count) = values.fold((0.0, 0u64), |(sum, count), value| (sum + value, count + 1));
    (count > 0).then(|| sum / count as f64)
}

fn median_holding_ns(round_trips: &[RoundTrip], strategy: StrategyId) -> Option<u64> {
    let mut times: Vec<u64> =
        round_trips.iter().filter(|trip| trip.strategy == strategy).map(RoundTrip::holding_ns).collect();
    times.sort_unstable();
    let middle = times.len() / 2;
    match times.len() {
        0 => None,
        odd if odd % 2 == 1 => Some(times[middle]),
        _ => Some(times[middle - 1].midpoint(times[middle])),
    }
}

/// Returns the results of each month in which there were data or fills.
fn months(line: &StrategyResult) -> Vec<MonthResult> {
    let mut ends: BTreeMap<String, f64> = BTreeMap::new();
    for sample in &line.daily {
        // The end of a day is the beginning of the next, so the day is that of the instant before.
        let day = Timestamp(sample.at.0.saturating_sub(1)).day().to_string();
        ends.insert(day.chars().take(7).collect(), amount(sample.equity));
    }
    for month in line.by_month.keys() {
        ends.entry(month.clone()).or_insert(f64::NAN);
    }
    let mut before = line.equity.first().map_or(0.0, |sample| amount(sample.equity));
    let month = |(month, end): (String, f64)| {
        let total_return = (before > 0.0 && end.is_finite()).then(|| end / before - 1.0);
        before = if end.is_finite() { end } else { before };
        let totals = line.by_month.get(&month).copied().unwrap_or_default();
        MonthResult { month, total_return, totals }
    };
    ends.into_iter().map(month).collect()
}

/// Returns at most as many points as a plot can show, the last one included.
pub fn thinned<T>(points: &[T]) -> impl Iterator<Item = &T> {
    let last = points.len().saturating_sub(1);
    let step = last.div_ceil(POINTS_MAX - 1).max(1);
    points.iter().enumerate().filter(move |(at, _)| at % step == 0 || *at == last).map(|(_, point)| point)
}

pub fn amount(money: Money) -> f64 {
    money.raw() as f64 / 1e8
}

#[cfg(test)]
mod tests {
    use pitlane_engine::time::{Day, NS_PER_DAY};

    use super::*;

    #[test]
    fn a_curve_has_so_many_points_and_its_ends_among_them() {
        let lengths = [0, 1, 2, POINTS_MAX - 1, POINTS_MAX, POINTS_MAX + 1];
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
        let sample = |day: u64, equity: i64| EquitySample {
            at: start.plus(day * NS_PER_DAY),
            equity: Money::whole(equity).unwrap(),
            exposure: Money::ZERO,
        };
        let daily = vec![sample(1, 110), sample(2, 120), sample(3, 90)];
        let line = StrategyResult { equity: vec![sample(0, 100)], daily, ..StrategyResult::default() };
        let found: Vec<(String, f64)> =
            months(&line).into_iter().map(|row| (row.month, row.total_return.unwrap())).collect();
        assert_eq!(found.iter().map(|row| row.0.as_str()).collect::<Vec<_>>(), ["2026-10", "2026-11"]);
        assert!((found[0].1 - 0.2).abs() < 1e-12 && (found[1].1 + 0.25).abs() < 1e-12, "{found:?}");
    }
}
