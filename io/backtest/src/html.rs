//! The report as one HTML page: figures, plots, tables and assumptions. It has no script and loads
//! nothing.

mod plots;

use std::fmt::Write;

use pitlane_plot::svg::escaped;

use self::plots::{plot_bars, plot_curves, plot_prices};
use super::draw_downs::depths;
use super::format::{count, money, percent, span};
use super::records::RoundTrip;
use super::report::{Performance, SimulationReport, curve};
use super::report_text::figures;

/// Rows of trades on the page; the JSON has more.
const TRADES_SHOWN: usize = 200;
/// Plots of prices on the page.
const PRICES_SHOWN: usize = 12;

/// The head of a page, before its title. Colours follow the reader's theme, and wide plots and
/// tables scroll on a small screen.
pub(crate) const HEAD: &str = "<!doctype html><html lang=\"en\"><meta charset=\"utf-8\">\
<meta name=\"viewport\" content=\"width=device-width,initial-scale=1\">\
<style>:root{color-scheme:light dark;--ink:#1b1f24;--soft:#57606a;--page:#fff;--plot:#fbfbfc;--edge:#e3e6ea;--grid:#d5d9df;--price:#6b7685;\
--up:#1a6b33;--down:#a40e26}\
@media(prefers-color-scheme:dark){:root{--ink:#e6ebf2;--soft:#98a3b3;--page:#11161d;--plot:#161c24;--edge:#2b3440;--grid:#2f3945;--price:#98a3b3;\
--up:#4cc38a;--down:#ff7b72}}\
body{font:15px/1.45 system-ui,sans-serif;max-width:60rem;margin:2rem auto;padding:0 1rem;color:var(--ink);background:var(--page)}\
table{border-collapse:collapse;font-variant-numeric:tabular-nums;margin:.6rem 0}td,th{padding:.15rem .8rem .15rem 0;text-align:left;vertical-align:top}\
.rows,figure{overflow-x:auto}.rows td,.rows th{white-space:nowrap;text-align:right}.rows td:first-child,.rows th:first-child{text-align:left}\
figure{margin:1rem 0}svg{display:block;width:100%;height:auto;background:var(--plot);border:1px solid var(--edge);box-sizing:border-box}\
h2{margin-top:2.2rem}.axis{stroke:var(--grid);stroke-width:1}text{font-size:11px;fill:var(--soft)}.fail{color:var(--down)}\
summary{cursor:pointer;margin:.8rem 0}code{overflow-wrap:anywhere}pre{overflow-x:auto}\
@media(max-width:45rem){figure svg{min-width:40rem}text{font-size:13px}}</style>";

pub fn page(report: &SimulationReport) -> String {
    let mut out = String::new();
    let title = escaped(&report.title);
    let _ = write!(
        out,
        "{HEAD}<title>{title}</title><h1>{title}</h1><p>{} to {}, {} ticks. Hash <code>{:016x}</code>.</p>",
        report.from,
        report.to,
        count(report.rows),
        report.hash()
    );
    for result in &report.results {
        section(&mut out, report, result);
    }
    trades(&mut out, report);
    let _ = write!(out, "<h2>Assumptions</h2><table>");
    for (name, value) in &report.assumptions {
        let _ = write!(out, "<tr><th>{}<td>{}", escaped(name), escaped(value));
    }
    for missing in &report.missing {
        let _ = write!(out, "<tr><th>not valued<td>{}", escaped(missing));
    }
    let _ = write!(out, "</table><p>Took {:.2} s.</p></html>", report.speed.seconds);
    out
}

fn section(out: &mut String, report: &SimulationReport, result: &Performance) {
    let Performance { line, kind, statistics, .. } = result;
    let _ = write!(out, "<h2>{} <small>{}</small></h2>", escaped(&line.name), escaped(kind));
    if let Some((at, why)) = &line.failure {
        let _ = write!(out, "<p class=\"fail\">Failed at {at}: {}</p>", escaped(why));
    }
    out.push_str("<table>");
    for (name, value) in figures(result, &report.base) {
        let _ = write!(out, "<tr><th>{}<td>{}", escaped(&capital(&name)), escaped(&value));
    }
    out.push_str("</table>");
    let equity = curve(&line.equity);
    let under: Vec<_> = depths(&equity).into_iter().map(|(at, depth)| (at, -depth * 100.0)).collect();
    let returns: Vec<_> = statistics.returns.iter().map(|(at, value)| (*at, value * 100.0)).collect();
    let mut curves = vec![("equity", equity.as_slice())];
    if let Some(benchmark) = &result.benchmark {
        curves.push((benchmark.name.as_str(), benchmark.curve.as_slice()));
    }
    plot_curves(out, "equity", &format!("Equity, {}", report.base), &curves);
    plot_curves(out, "draw-down", "Draw-down, %", &[("draw-down", under.as_slice())]);
    plot_bars(out, "returns", "Daily returns, %", &returns);
    prices(out, report, result);
    draw_downs(out, result);
    months(out, result);
    securities(out, report, result);
}

fn capital(name: &str) -> String {
    let mut chars = name.chars();
    chars.next().map_or(String::new(), |first| first.to_uppercase().chain(chars).collect())
}

/// Plots the price of each security that the strategy has traded, with its entries and exits.
fn prices(out: &mut String, report: &SimulationReport, result: &Performance) {
    let traded = report.prices.iter().filter(|curve| result.line.by_security.contains_key(&curve.security));
    for curve in traded.take(PRICES_SHOWN) {
        let own =
            |trip: &&RoundTrip| trip.strategy == result.line.strategy && trip.security == curve.security;
        let trips: Vec<&RoundTrip> = report.round_trips.rows().iter().filter(own).collect();
        plot_prices(out, &report.symbol(curve.security), &curve.samples, &trips);
    }
}

/// Writes a table; the first column is a name, the others are numbers.
fn table(out: &mut String, title: &str, head: &[&str], rows: impl Iterator<Item = Vec<String>>) {
    let _ = write!(out, "<h3>{}</h3><div class=\"rows\"><table><tr>", escaped(title));
    for name in head {
        let _ = write!(out, "<th>{}", escaped(name));
    }
    for row in rows {
        out.push_str("<tr>");
        for cell in row {
            let _ = write!(out, "<td>{}", escaped(&cell));
        }
    }
    out.push_str("</table></div>");
}

fn draw_downs(out: &mut String, result: &Performance) {
    if result.statistics.draw_downs.is_empty() {
        return;
    }
    let rows = result.statistics.draw_downs.iter().map(|fall| {
        let to = fall.to.map_or("not recovered".to_string(), |to| to.to_string());
        vec![fall.from.to_string(), percent(fall.depth), fall.bottom.to_string(), to, span(fall.length_ns)]
    });
    table(out, "Draw-downs", &["From", "Depth", "Lowest", "Recovered", "Length"], rows);
}

fn months(out: &mut String, result: &Performance) {
    let rows = result.months.iter().map(|month| {
        vec![
            month.month.clone(),
            month.total_return.map_or("–".to_string(), percent),
            count(month.totals.round_trips),
            money(month.totals.profit()),
            count(month.totals.fills),
            money(month.totals.fees),
        ]
    });
    table(out, "By month", &["Month", "Return", "Round trips", "Their profit", "Fills", "Fees"], rows);
}

fn securities(out: &mut String, report: &SimulationReport, result: &Performance) {
    let rows = result.line.by_security.iter().map(|(security, totals)| {
        vec![
            report.symbol(*security),
            money(totals.profit()),
            count(totals.round_trips),
            totals.win_rate().map_or("–".to_string(), percent),
            totals.mean_holding_ns().map_or("–".to_string(), span),
            count(totals.fills),
            money(totals.turnover),
            money(totals.fees),
        ]
    });
    let head = ["Security", "Profit", "Round trips", "Won", "Mean holding", "Fills", "Turnover", "Fees"];
    table(out, "By security", &head, rows);
}

fn trades(out: &mut String, report: &SimulationReport) {
    let shown = report.fills.rows().len().min(TRADES_SHOWN);
    let _ = write!(
        out,
        "<h2>Trades</h2><details><summary>{} of {} fills</summary>",
        count(shown as u64),
        count(report.fills.count())
    );
    let rows = report.fills.rows()[..shown].iter().map(|fill| {
        vec![
            fill.at.to_string(),
            report.strategy_name(fill.strategy),
            report.symbol(fill.security),
            fill.qty.to_string(),
            fill.price.to_string(),
            fill.fee.to_string(),
            money(fill.realized),
            fill.position.to_string(),
        ]
    });
    let head = ["Time", "Strategy", "Security", "Quantity", "Price", "Fee", "Realized", "Position"];
    table(out, "Fills", &head, rows);
    out.push_str("</details>");
}
