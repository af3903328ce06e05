//! The report as text, with numbers formatted for people.

use std::fmt::Write;

use pitlane_performance::format::{count, equity_figures, figure, money, percent, ratio, span};

use super::report::{Performance, SimulationReport, Speed};
use super::totals::TradeTotals;

/// Rows of tables; the JSON has all.
const SECURITIES_SHOWN: usize = 20;
const DRAW_DOWNS_SHOWN: usize = 5;

impl SimulationReport {
    pub fn to_text(&self) -> String {
        let mut out = String::new();
        let _ = writeln!(out, "{} from {} to {}, {} ticks", self.title, self.from, self.to, self.rows);
        for result in &self.results {
            write_strategy(&mut out, self, result);
        }
        let _ = writeln!(out, "\nassumptions");
        for (name, value) in &self.assumptions {
            row(&mut out, name, value);
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

fn row(out: &mut String, name: &str, value: &str) {
    let _ = writeln!(out, "  {name:<28} {value}");
}

fn write_strategy(out: &mut String, report: &SimulationReport, result: &Performance) {
    let _ = writeln!(out, "\n{} ({})", result.line.name, result.kind);
    for (name, value) in figures(result, &report.base) {
        row(out, name, &value);
    }
    if let Some((at, why)) = &result.line.failure {
        row(out, "failed", &format!("{at}: {why}"));
    }
    write_draw_downs(out, result);
    write_months(out, result);
    write_securities(out, report, result);
}

/// Returns the figures of a strategy by name, for text and HTML.
pub(crate) fn figures(result: &Performance, base: &str) -> Vec<(&'static str, String)> {
    let Performance { line, statistics, .. } = result;
    let totals = &line.totals;
    let none = || "-".to_string();
    let amount = |value: Option<_>| value.map_or_else(none, money);
    let time = |value: Option<u64>| value.map_or_else(none, span);
    let parameters: Vec<String> =
        result.parameters.iter().map(|(name, value)| format!("{name} = {value}")).collect();
    let first = line.equity.first().map(|sample| sample.equity);
    let last = line.equity.last().map(|sample| sample.equity);
    let mut rows = vec![("parameters", if parameters.is_empty() { none() } else { parameters.join(", ") })];
    rows.extend(equity_figures(statistics, first, last, base));
    rows.extend([
        (
            "orders, rejected, fills",
            format!("{}, {}, {}", count(line.orders), count(line.rejected), count(line.fills)),
        ),
        ("round trips", round_trips(totals, line.open_positions)),
        ("profit factor", totals.profit_factor().map_or_else(|| "- (no loss)".to_string(), ratio)),
        ("expectancy", format!("{} {base} per round trip", amount(totals.expectancy()))),
        (
            "average win, loss",
            format!("{}, {} {base}", amount(totals.average_win()), amount(totals.average_loss())),
        ),
        (
            "largest win, loss",
            format!("{}, {} {base}", money(totals.largest_win), money(totals.largest_loss)),
        ),
        (
            "holding mean, median, longest",
            format!(
                "{}, {}, {}",
                time(totals.mean_holding_ns()),
                time(result.median_holding_ns),
                span(totals.holding_max_ns)
            ),
        ),
        (
            "exposure",
            format!(
                "{} of the time, {} of the equity on average",
                percent(result.time_in_market),
                percent(result.exposure)
            ),
        ),
        (
            "turnover",
            match result.turnover {
                Some(times) => {
                    format!("{} {base}, {} times the mean equity", money(totals.turnover), ratio(times))
                }
                None => format!("{} {base}", money(totals.turnover)),
            },
        ),
        ("fees", format!("{} {base}", money(totals.fees))),
    ]);
    if let Some(benchmark) = &result.benchmark {
        let own = &benchmark.statistics;
        rows.extend([
            ("benchmark", benchmark.name.clone()),
            (
                "benchmark return, draw-down",
                format!("{}, {}", percent(own.total_return), percent(own.max_draw_down)),
            ),
            ("benchmark Sharpe", figure(&own.sharpe, ratio)),
            (
                "alpha, beta, correlation",
                match (benchmark.alpha, benchmark.beta, benchmark.correlation) {
                    (Ok(alpha), Ok(beta), Ok(correlation)) => {
                        format!("{}, {}, {}", percent(alpha), ratio(beta), ratio(correlation))
                    }
                    (Err(why), _, _) | (_, Err(why), _) | (_, _, Err(why)) => format!("- ({why})"),
                },
            ),
        ]);
    }
    rows
}

fn round_trips(totals: &TradeTotals, open: usize) -> String {
    let rate = totals.win_rate().map_or(String::new(), |rate| format!(", {} at a profit", percent(rate)));
    let open = match open {
        0 => String::new(),
        1 => "; 1 position is open".to_string(),
        more => format!("; {more} positions are open"),
    };
    format!("{}{rate}{open}", count(totals.round_trips))
}

fn write_draw_downs(out: &mut String, result: &Performance) {
    let falls = &result.statistics.draw_downs;
    if falls.is_empty() {
        return;
    }
    let _ = writeln!(out, "  deepest draw-downs");
    for fall in falls.iter().take(DRAW_DOWNS_SHOWN) {
        let to = fall.to.map_or("not recovered".to_string(), |to| format!("recovered {to}"));
        let _ = writeln!(
            out,
            "    {:>9}  from {}, lowest {}, {to}, {}",
            percent(fall.depth),
            fall.from,
            fall.bottom,
            span(fall.length_ns)
        );
    }
}

fn write_months(out: &mut String, result: &Performance) {
    let _ = writeln!(
        out,
        "  {:<12} {:>10} {:>12} {:>8} {:>12}",
        "by month", "return", "round trips", "fills", "fees"
    );
    for month in &result.months {
        let total_return = month.total_return.map_or("-".to_string(), percent);
        let _ = writeln!(
            out,
            "    {:<10} {total_return:>10} {:>12} {:>8} {:>12}",
            month.month,
            count(month.totals.round_trips),
            count(month.totals.fills),
            money(month.totals.fees)
        );
    }
}

fn write_securities(out: &mut String, report: &SimulationReport, result: &Performance) {
    let all = &result.line.by_security;
    let _ = writeln!(
        out,
        "  {:<12} {:>14} {:>12} {:>8} {:>12} {:>18}",
        "by security", "profit", "round trips", "fills", "fees", "turnover"
    );
    for (security, totals) in all.iter().take(SECURITIES_SHOWN) {
        let _ = writeln!(
            out,
            "    {:<10} {:>14} {:>12} {:>8} {:>12} {:>18}",
            report.symbol(*security),
            money(totals.profit()),
            count(totals.round_trips),
            count(totals.fills),
            money(totals.fees),
            money(totals.turnover)
        );
    }
    if all.len() > SECURITIES_SHOWN {
        let _ = writeln!(out, "    and {} more", all.len() - SECURITIES_SHOWN);
    }
}
