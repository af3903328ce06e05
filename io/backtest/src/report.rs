//! The report of a simulation: figures, trades, and every assumption by name; as text and as JSON.
//! The HTML page is in `html`, the files in `report_files`.

use std::fmt::Write;
use std::sync::Arc;
use std::time::Duration;

use pitlane_config::Config;
use pitlane_engine::number::Money;
use pitlane_engine::refdata::RefData;
use pitlane_engine::settings::{FillModel, SelfTrade, VenueSettings};
use pitlane_engine::time::{NS_PER_S, Timestamp};
use serde_json::{Value, json};

use super::account::{SimulationAccount, StrategyResult};
use super::records::{BoundedRows, FillRecord, OrderRecord};
use super::statistics::Statistics;

/// Points of a curve in the JSON: what a plot can show.
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
    pub trades: Vec<Value>,
    pub trades_more: u64,
    pub orders: BoundedRows<OrderRecord>,
    pub fills: BoundedRows<FillRecord>,
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
        let result = |line: &StrategyResult| {
            let settings = config.strategies.iter().find(|strategy| strategy.name == line.name);
            let samples: Vec<(Timestamp, f64)> =
                line.equity.iter().map(|(at, worth)| (*at, amount(*worth))).collect();
            Performance {
                line: line.clone(),
                kind: settings.map(|settings| settings.kind.clone()).unwrap_or_default(),
                parameters: settings
                    .map(|settings| settings.parameters.clone().into_iter().collect())
                    .unwrap_or_default(),
                statistics: Statistics::of(&samples, account.sample_ns()),
            }
        };
        let name = |id| reference.strategy(id).map(|row| row.name.clone()).unwrap_or_default();
        let symbol = |id| reference.security(id).map(|row| row.symbol.clone()).unwrap_or_default();
        let trades = account.deals().iter().map(|deal| {
            json!({
                "time": deal.at.to_string(),
                "strategy": name(deal.strategy),
                "securityId": deal.security.0,
                "symbol": symbol(deal.security),
                "quantity": deal.qty.to_string(),
                "price": deal.price.to_string(),
                "commission": deal.commission.to_string(),
                "realized": deal.realized.to_string(),
                "position": deal.position.to_string(),
            })
        });
        let mut missing: Vec<String> =
            account.missing().iter().map(|missing| format!("{missing:?}")).collect();
        missing.dedup();
        SimulationReport {
            title: "Simulation".to_string(),
            base: config.service.base_currency.to_string(),
            from,
            to: account.range().1,
            rows,
            results: account.lines().iter().map(result).collect(),
            assumptions: assumptions(config, reference, account.sample_ns()),
            missing,
            trades: trades.collect(),
            trades_more: account.deals_more(),
            orders: account.orders().clone(),
            fills: account.fills().clone(),
            reference: reference.clone(),
            hash: account.hash(),
            speed: Speed::default(),
        }
    }

    /// Returns the hash. The same data, settings and seed give the same hash, whatever the form of
    /// the report.
    pub fn hash(&self) -> u64 {
        self.hash
    }

    pub fn to_json(&self) -> Value {
        let mut json = self.facts();
        json["hash"] = json!(format!("{:016x}", self.hash()));
        json["speed"] = json!({ "seconds": self.speed.seconds, "ticksPerSecond": self.speed.rows_per_s });
        json
    }

    /// Returns everything that does not depend on the machine.
    fn facts(&self) -> Value {
        let strategies: Vec<Value> = self.results.iter().map(Performance::to_json).collect();
        let assumptions: serde_json::Map<String, Value> =
            self.assumptions.iter().map(|(name, value)| (name.clone(), json!(value))).collect();
        json!({
            "from": self.from.to_string(),
            "to": self.to.to_string(),
            "ticks": self.rows,
            "currency": self.base,
            "strategies": strategies,
            "assumptions": assumptions,
            "missing": self.missing,
            "trades": self.trades,
            "tradesNotListed": self.trades_more,
        })
    }

    pub fn to_text(&self) -> String {
        let mut out = String::new();
        let _ = writeln!(out, "{} from {} to {}, {} ticks", self.title, self.from, self.to, self.rows);
        for result in &self.results {
            result.write_text(&mut out, &self.base);
        }
        let _ = writeln!(out, "\nassumptions");
        for (name, value) in &self.assumptions {
            let _ = writeln!(out, "  {name:<28} {value}");
        }
        for missing in &self.missing {
            let _ = writeln!(out, "not valued: {missing}");
        }
        let Speed { seconds, rows_per_s } = self.speed;
        let _ = writeln!(out, "\nhash {:016x}", self.hash());
        let _ = writeln!(out, "took {seconds:.2} s, {:.2} million ticks/s", rows_per_s / 1e6);
        out
    }
}

impl Performance {
    fn to_json(&self) -> Value {
        let Performance { line, kind, parameters, statistics } = self;
        let parameters: serde_json::Map<String, Value> =
            parameters.iter().map(|(name, text)| (name.clone(), json!(text))).collect();
        let points = |points: &[(Timestamp, f64)]| -> Vec<Value> {
            thinned(points).map(|(at, value)| json!([at.to_string(), value])).collect()
        };
        let equity: Vec<(Timestamp, f64)> =
            line.equity.iter().map(|(at, worth)| (*at, amount(*worth))).collect();
        json!({
            "name": line.name,
            "kind": kind,
            "parameters": parameters,
            "failure": line.failure.as_ref().map(|(at, why)| json!({ "time": at.to_string(), "reason": why })),
            "startEquity": statistics.start,
            "endEquity": statistics.end,
            "return": statistics.total_return,
            "annualReturn": statistics.annual_return,
            "maxDrawDown": statistics.max_draw_down,
            "longestDrawDownSeconds": statistics.draw_down_s,
            "sharpe": statistics.sharpe,
            "calmar": statistics.calmar,
            "returnPeriodSeconds": statistics.period_s,
            "orders": line.orders,
            "rejected": line.rejected,
            "fills": line.fills,
            "commission": line.commission.to_string(),
            "winningTrades": line.wins,
            "losingTrades": line.losses,
            "won": line.won.to_string(),
            "lost": line.lost.to_string(),
            "equity": points(&equity),
            "drawDown": points(&statistics.draw_downs),
            "returns": points(&statistics.returns),
        })
    }

    fn write_text(&self, out: &mut String, base: &str) {
        let Performance { line, kind, statistics, .. } = self;
        let ratio = |value: Option<f64>| value.map_or("-".to_string(), |value| format!("{value:.3}"));
        let percent = |value: f64| format!("{:.4} %", value * 100.0);
        let rows = [
            ("equity", format!("{:.2} -> {:.2} {base}", statistics.start, statistics.end)),
            ("return", percent(statistics.total_return)),
            ("annual return", statistics.annual_return.map_or("-".to_string(), percent)),
            ("largest draw-down", percent(statistics.max_draw_down)),
            ("longest draw-down", format!("{:.0} s", statistics.draw_down_s)),
            ("Sharpe", ratio(statistics.sharpe)),
            ("Calmar", ratio(statistics.calmar)),
            ("orders, rejected, fills", format!("{}, {}, {}", line.orders, line.rejected, line.fills)),
            ("closed at profit, at loss", format!("{}, {}", line.wins, line.losses)),
            ("won, lost, commission", format!("{}, {}, {}", line.won, line.lost, line.commission)),
        ];
        let _ = writeln!(out, "\n{} ({kind})", line.name);
        for (name, value) in rows {
            let _ = writeln!(out, "  {name:<28} {value}");
        }
        if let Some((at, why)) = &line.failure {
            let _ = writeln!(out, "  {:<28} {at}: {why}", "failed");
        }
    }
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

fn assumptions(config: &Config, reference: &RefData, sample_ns: u64) -> Vec<(String, String)> {
    let simulation = &config.simulation;
    let settings = config.shard_settings(reference);
    let files: Vec<String> = simulation.data.iter().map(|path| path.display().to_string()).collect();
    let mut rows = vec![
        ("data".to_string(), files.join(", ")),
        ("seed".to_string(), config.service.seed.to_string()),
        ("shards".to_string(), config.topology.shards.to_string()),
        ("start cash".to_string(), format!("{} {}", simulation.cash, config.service.base_currency)),
        ("prefeed".to_string(), format!("{} s", simulation.prefeed_ns / NS_PER_S)),
        ("equity sampled every".to_string(), format!("{} s", sample_ns / NS_PER_S)),
        ("valuation".to_string(), "long at bid, short at ask, last without a quote".to_string()),
        ("annual figures".to_string(), "calendar time, year of 365.25 days, no riskless rate".to_string()),
        ("exchange hours".to_string(), format!("{:?}", config.calendar.hours.by).to_lowercase()),
        ("commission".to_string(), "rate of the security's family per unit of quantity".to_string()),
        (
            "market impact".to_string(),
            "what was taken from a quote is gone until the quote changes".to_string(),
        ),
        (
            "bars".to_string(),
            format!(
                "{} s; open, nearer extreme, other extreme, close; a quote of one tick to each side; {} % of the volume",
                simulation.bar_ns / NS_PER_S,
                simulation.bar_volume_bp as f64 / 100.0
            ),
        ),
    ];
    rows.extend(venue_rows("venue", &settings.venue));
    for (exchange, venue) in &settings.venues {
        let mic = reference.exchange(*exchange).map(|row| row.mic.clone()).unwrap_or_default();
        rows.extend(venue_rows(&format!("venue {mic}"), venue));
    }
    rows
}

fn venue_rows(name: &str, venue: &VenueSettings) -> Vec<(String, String)> {
    let delays = venue.delays;
    let fill_model = match venue.fill_model {
        FillModel::Queue => "queue: at its price after what stood before it",
        FillModel::QueueBack => "queue_back: at its price after all that stands there",
        FillModel::QueueTraded => "queue_traded: at its price after that much has traded",
        FillModel::Through => "through: only when the market goes through its price",
        FillModel::Touch => "touch: at its price at once, optimistic",
    };
    let self_trade = match venue.self_trade {
        SelfTrade::CancelNewest => "cancels the newest",
        SelfTrade::Allow => "allowed",
    };
    let us = |constant: u64, jitter: u64| format!("{} us + up to {} us", constant / 1_000, jitter / 1_000);
    let rows = [
        ("fill model", fill_model.to_string()),
        ("slippage", format!("{} ticks for each further portion of a quote", venue.slippage_ticks)),
        ("quote portions", venue.quote_levels.to_string()),
        ("self-trade", self_trade.to_string()),
        ("price band", format!("{} %", venue.band_bp as f64 / 100.0)),
        ("random rejects", format!("{} in 1000", venue.reject_permille)),
        ("partial fills", venue.partial_fill.to_string()),
        ("order entry delay", us(delays.entry_ns, delays.entry_jitter_ns)),
        ("order response delay", us(delays.response_ns, delays.response_jitter_ns)),
        ("feed delay", us(delays.feed_ns, 0)),
    ];
    rows.map(|(what, value)| (format!("{name}: {what}"), value)).into()
}

#[cfg(test)]
mod tests {
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
}
