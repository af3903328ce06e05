//! The report as JSON: numbers with all their digits, amounts of money as texts.

use pitlane_engine::number::Money;
use pitlane_engine::time::NS_PER_S;
use pitlane_performance::curve::{Point, thinned};
use pitlane_performance::draw_downs::{DrawDown, depths};
use pitlane_performance::statistics::{Figure, Statistics};
use pitlane_protocols::codes::WireName;
use serde_json::{Map, Value, json};

use super::benchmark::Benchmark;
use super::records::{FillRecord, OrderRecord, RoundTrip};
use super::report::{Performance, SimulationReport, curve};
use super::totals::TradeTotals;

/// Rows of each kind in the JSON; all are counted.
const LISTED_MAX: usize = 10_000;

impl SimulationReport {
    pub fn to_json(&self) -> Value {
        let strategies: Vec<Value> = self.results.iter().map(|result| strategy(self, result)).collect();
        let fills = self.fills.rows();
        json!({
            "from": self.from.to_string(),
            "to": self.to.to_string(),
            "ticks": self.rows,
            "currency": self.base,
            "strategies": strategies,
            "assumptions": texts(&self.assumptions),
            "missing": self.missing,
            "trades": fills.iter().take(LISTED_MAX).map(|row| fill(self, row)).collect::<Vec<_>>(),
            "tradesNotListed": self.fills.count() - fills.len().min(LISTED_MAX) as u64,
            "orders": self.orders.rows().iter().take(LISTED_MAX).map(|row| order(self, row)).collect::<Vec<_>>(),
            "ordersNotListed": self.orders.count() - self.orders.rows().len().min(LISTED_MAX) as u64,
            "roundTrips":
                self.round_trips.rows().iter().take(LISTED_MAX).map(|row| round_trip(self, row)).collect::<Vec<_>>(),
            "roundTripsNotListed":
                self.round_trips.count() - self.round_trips.rows().len().min(LISTED_MAX) as u64,
            "hash": format!("{:016x}", self.hash()),
            "speed": { "seconds": self.speed.seconds, "ticksPerSecond": self.speed.rows_per_s },
        })
    }
}

fn texts(pairs: &[(String, String)]) -> Map<String, Value> {
    pairs.iter().map(|(name, value)| (name.clone(), json!(value))).collect()
}

fn strategy(report: &SimulationReport, result: &Performance) -> Value {
    let Performance { line, statistics, .. } = result;
    let failure = line.failure.as_ref().map(|(at, why)| json!({ "time": at.to_string(), "reason": why }));
    let equity = curve(&line.equity);
    let months: Vec<Value> = result
        .months
        .iter()
        .map(|month| {
            let mut row = totals(&month.totals);
            row.insert("month".to_string(), json!(month.month));
            row.insert("return".to_string(), json!(month.total_return));
            Value::Object(row)
        })
        .collect();
    let securities: Vec<Value> = line
        .by_security
        .iter()
        .map(|(security, sums)| {
            let mut row = totals(sums);
            row.insert("securityId".to_string(), json!(security.0));
            row.insert("symbol".to_string(), json!(report.symbol(*security)));
            Value::Object(row)
        })
        .collect();
    let mut all = totals(&line.totals);
    let more = json!({
        "name": line.name,
        "kind": result.kind,
        "parameters": texts(&result.parameters),
        "failure": failure,
        "orders": line.orders,
        "rejected": line.rejected,
        "fills": line.fills,
        "commission": line.totals.fees.to_string(),
        "openPositions": line.open_positions,
        "timeInMarket": result.time_in_market,
        "exposure": result.exposure,
        "turnoverRatio": result.turnover,
        "medianHoldingSeconds": result.median_holding_ns.map(seconds),
        "byMonth": months,
        "bySecurity": securities,
        "benchmark": result.benchmark.as_ref().map(benchmark),
        "equity": points(&equity),
        "daily": line.daily.iter().map(|sample| json!([sample.at.to_string(), sample.equity.to_string()])).collect::<Vec<_>>(),
        "drawDown": points(&depths(&equity)),
    });
    extend(&mut all, more);
    extend(&mut all, self::statistics(statistics));
    Value::Object(all)
}

fn extend(all: &mut Map<String, Value>, more: Value) {
    if let Value::Object(more) = more {
        all.extend(more);
    }
}

fn statistics(of: &Statistics) -> Value {
    let figures = [
        ("annualReturn", of.annual_return),
        ("volatility", of.volatility),
        ("sharpe", of.sharpe),
        ("sortino", of.sortino),
        ("calmar", of.calmar),
    ];
    let mut all = Map::new();
    extend(
        &mut all,
        json!({
            "startEquity": of.start,
            "endEquity": of.end,
            "return": of.total_return,
            "maxDrawDown": of.max_draw_down,
            "longestDrawDownSeconds": seconds(of.draw_down_ns),
            "drawDowns": of.draw_downs.iter().map(draw_down).collect::<Vec<_>>(),
            "bestDay": of.best_day,
            "worstDay": of.worst_day,
            "daysPerYear": of.days_per_year,
            "sampling": of.sampling(),
            "returns": of.returns.iter().map(|(at, value)| json!([at.to_string(), value])).collect::<Vec<_>>(),
            "withheld": withheld(&figures),
        }),
    );
    all.extend(figures.iter().map(|(name, figure)| ((*name).to_string(), json!(figure.ok()))));
    Value::Object(all)
}

/// Returns the reasons of the figures that are withheld.
fn withheld(figures: &[(&str, Figure)]) -> Map<String, Value> {
    let reason =
        |(name, figure): &(&str, Figure)| Some(((*name).to_string(), json!(figure.err()?.to_string())));
    figures.iter().filter_map(reason).collect()
}

fn benchmark(of: &Benchmark) -> Value {
    let mut all = Map::new();
    extend(&mut all, statistics(&of.statistics));
    let figures = [("alpha", of.alpha), ("beta", of.beta), ("correlation", of.correlation)];
    all.extend(figures.iter().map(|(name, figure)| ((*name).to_string(), json!(figure.ok()))));
    extend(&mut all, json!({ "name": of.name, "equity": points(&of.curve) }));
    Value::Object(all)
}

fn totals(of: &TradeTotals) -> Map<String, Value> {
    let amount = |value: Option<Money>| value.map(|value| value.to_string());
    let mut all = Map::new();
    extend(
        &mut all,
        json!({
            "fills": of.fills,
            "turnover": of.turnover.to_string(),
            "fees": of.fees.to_string(),
            "roundTrips": of.round_trips,
            "winningTrades": of.wins,
            "losingTrades": of.losses,
            "won": of.won.to_string(),
            "lost": of.lost.to_string(),
            "profit": of.profit().to_string(),
            "winRate": of.win_rate(),
            "profitFactor": of.profit_factor(),
            "expectancy": amount(of.expectancy()),
            "averageWin": amount(of.average_win()),
            "averageLoss": amount(of.average_loss()),
            "largestWin": of.largest_win.to_string(),
            "largestLoss": of.largest_loss.to_string(),
            "meanHoldingSeconds": of.mean_holding_ns().map(seconds),
            "longestHoldingSeconds": seconds(of.holding_max_ns),
        }),
    );
    all
}

fn draw_down(fall: &DrawDown) -> Value {
    json!({
        "from": fall.from.to_string(),
        "lowest": fall.bottom.to_string(),
        "recovered": fall.to.map(|to| to.to_string()),
        "depth": fall.depth,
        "seconds": seconds(fall.length_ns),
    })
}

fn fill(report: &SimulationReport, row: &FillRecord) -> Value {
    json!({
        "time": row.at.to_string(),
        "strategy": report.strategy_name(row.strategy),
        "securityId": row.security.0,
        "symbol": report.symbol(row.security),
        "order": row.order_id.map(|id| id.as_str().to_string()),
        "quantity": row.qty.to_string(),
        "price": row.price.to_string(),
        "commission": row.fee.to_string(),
        "realized": row.realized.to_string(),
        "position": row.position.to_string(),
    })
}

fn order(report: &SimulationReport, row: &OrderRecord) -> Value {
    json!({
        "id": row.id.as_str(),
        "strategy": report.strategy_name(row.strategy),
        "securityId": row.security.0,
        "symbol": report.symbol(row.security),
        "side": row.side.wire_name(),
        "type": row.kind.wire_name(),
        "timeInForce": row.tif.wire_name(),
        "quantity": row.qty.to_string(),
        "limit": row.limit.map(|price| price.to_string()),
        "stop": row.stop.map(|price| price.to_string()),
        "entered": row.entered.to_string(),
        "ended": row.ended.map(|at| at.to_string()),
        "filled": row.filled.to_string(),
        "averagePrice": row.avg_price.to_string(),
        "status": row.status.wire_name(),
        "reason": row.reason.code(),
    })
}

fn round_trip(report: &SimulationReport, row: &RoundTrip) -> Value {
    json!({
        "strategy": report.strategy_name(row.strategy),
        "securityId": row.security.0,
        "symbol": report.symbol(row.security),
        "side": row.side.wire_name(),
        "opened": row.opened.to_string(),
        "closed": row.closed.to_string(),
        "quantity": row.qty.to_string(),
        "entry": row.entry.to_string(),
        "exit": row.exit.to_string(),
        "fills": row.fills,
        "fees": row.fees.to_string(),
        "profit": row.profit.to_string(),
    })
}

fn seconds(ns: u64) -> f64 {
    ns as f64 / NS_PER_S as f64
}

fn points(points: &[Point]) -> Vec<Value> {
    thinned(points).map(|(at, value)| json!([at.to_string(), value])).collect()
}
