//! The report of a simulation: figures, rows, and every assumption by name. The text is in
//! `report_text`, the JSON in `report_json`, the HTML page in `html`, the files in `report_files`.

use std::sync::Arc;
use std::time::Duration;

use pitlane_config::Config;
use pitlane_engine::id::{SecurityId, StrategyId};
use pitlane_engine::refdata::RefData;
use pitlane_engine::time::Timestamp;
use pitlane_performance::curve::{Point, amount, month_returns};
use pitlane_performance::statistics::Statistics;

use super::account::{SimulationAccount, StrategyResult};
use super::assumptions::assumptions;
use super::benchmark::{Benchmark, Compared};
use super::records::{BoundedRows, EquitySample, FillRecord, OrderRecord, PriceCurve, RoundTrip};
use super::totals::TradeTotals;

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
pub fn curve(samples: &[EquitySample]) -> Vec<Point> {
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
    let start = line.equity.first().map_or(0.0, |sample| amount(sample.equity));
    let mut returns = month_returns(start, &curve(&line.daily));
    for month in line.by_month.keys() {
        returns.entry(month.clone()).or_default();
    }
    let month = |(month, total_return)| {
        let totals = line.by_month.get(&month).copied().unwrap_or_default();
        MonthResult { month, total_return, totals }
    };
    returns.into_iter().map(month).collect()
}

#[cfg(test)]
mod tests {
    use pitlane_engine::number::Money;
    use pitlane_engine::time::Day;

    use super::*;

    #[test]
    fn a_month_with_fills_and_without_data_has_no_return() {
        let fills = TradeTotals { fills: 3, ..TradeTotals::default() };
        let sample = |equity| EquitySample {
            at: Day::parse(b"2026-11-02").unwrap().start(),
            equity: Money::whole(equity).unwrap(),
            exposure: Money::ZERO,
        };
        let line = StrategyResult {
            equity: vec![sample(100)],
            daily: vec![sample(125)],
            by_month: [("2026-10".to_string(), fills)].into(),
            ..StrategyResult::default()
        };
        let found: Vec<_> =
            months(&line).into_iter().map(|row| (row.month, row.total_return, row.totals.fills)).collect();
        assert_eq!(found, [("2026-10".to_string(), None, 3), ("2026-11".to_string(), Some(0.25), 0)]);
    }
}
