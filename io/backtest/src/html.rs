//! The report as one HTML page: figures, plots, tables and assumptions. It has no script and loads
//! nothing.

mod prices;

use std::fmt::Write;

use pitlane_performance::curve::TimeFormat;
use pitlane_performance::format::{count, money, percent, span};
use pitlane_performance::page::{EquityCurve, head, write_pairs, write_table};
use pitlane_plot::svg::escaped;

use self::prices::plot_prices;
use super::records::RoundTrip;
use super::report::{Performance, SimulationReport, curve};
use super::report_text::figures;

/// Rows of trades on the page; the JSON has more.
const TRADES_SHOWN: usize = 200;
/// Plots of prices on the page.
const PRICES_SHOWN: usize = 12;

pub fn page(report: &SimulationReport) -> String {
    let mut out = head(&report.title);
    let title = escaped(&report.title);
    let _ = write!(
        out,
        "<h1>{title}</h1><p>{} to {}, {} ticks. Hash <code>{:016x}</code>.</p>",
        report.from,
        report.to,
        count(report.rows),
        report.hash()
    );
    for result in &report.results {
        section(&mut out, report, result);
    }
    trades(&mut out, report);
    out.push_str("<h2>Assumptions</h2>");
    let assumptions = report.assumptions.iter().map(|(name, value)| (name.as_str(), value.as_str()));
    let missing = report.missing.iter().map(|missing| ("not valued", missing.as_str()));
    write_pairs(&mut out, assumptions.chain(missing));
    let _ = write!(out, "<p>Took {:.2} s.</p></html>", report.speed.seconds);
    out
}

fn section(out: &mut String, report: &SimulationReport, result: &Performance) {
    let Performance { line, kind, statistics, .. } = result;
    let _ = write!(out, "<h2>{} <small>{}</small></h2>", escaped(&line.name), escaped(kind));
    if let Some((at, why)) = &line.failure {
        let _ = write!(out, "<p class=\"fail\">Failed at {at}: {}</p>", escaped(why));
    }
    let figures = figures(result, &report.base);
    write_pairs(out, figures.iter().map(|(name, value)| (*name, value.as_str())));
    let samples = curve(&line.equity);
    let equity =
        EquityCurve { base: &report.base, format: TimeFormat::Instants, samples: &samples, statistics };
    let benchmark = result.benchmark.as_ref();
    let others: Vec<_> =
        benchmark.map(|other| (other.name.as_str(), other.curve.as_slice())).into_iter().collect();
    equity.write_plots(out, &others);
    prices(out, report, result);
    equity.write_draw_downs(out);
    months(out, result);
    securities(out, report, result);
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
    write_table(out, "By month", &["Month", "Return", "Round trips", "Their profit", "Fills", "Fees"], rows);
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
    write_table(out, "By security", &head, rows);
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
    write_table(out, "Fills", &head, rows);
    out.push_str("</details>");
}
