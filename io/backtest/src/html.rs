//! The report as one HTML page: figures, three plots for each strategy, trades and assumptions. It
//! has no script and loads nothing.

use std::fmt::Write;

use pitlane_engine::time::Timestamp;
use pitlane_plot::axis::Axis;
use pitlane_plot::svg::{Svg, TextAnchor, escaped};
use serde_json::Value;

use super::report::{Performance, SimulationReport, amount, thinned};

const WIDTH: f64 = 900.0;
const HEIGHT: f64 = 220.0;
/// Margins for the numbers at the left and the times below.
const LEFT: f64 = 90.0;
const BELOW: f64 = 24.0;
/// Rows of trades on the page; the JSON has more.
const TRADES_SHOWN: usize = 200;

const STYLE: &str = "body{font:15px/1.45 system-ui,sans-serif;max-width:60rem;margin:2rem auto;padding:0 1rem;color:#1b1f24}\
table{border-collapse:collapse;font-variant-numeric:tabular-nums}td,th{padding:.15rem .8rem .15rem 0;text-align:left;vertical-align:top}\
svg{width:100%;height:auto;background:#fbfbfc;border:1px solid #e3e6ea}h2{margin-top:2.2rem}.axis{stroke:#c8ccd2;stroke-width:1}\
text{font-size:11px;fill:#57606a}.fail{color:#a40e26}";

pub fn page(report: &SimulationReport) -> String {
    let mut out = String::new();
    let title = escaped(&report.title);
    let _ = write!(
        out,
        "<!doctype html><html lang=\"en\"><meta charset=\"utf-8\"><title>{title}</title><style>{STYLE}</style>\
         <h1>{title}</h1><p>{} to {}, {} ticks. Hash <code>{:016x}</code>.</p>",
        report.from,
        report.to,
        report.rows,
        report.hash()
    );
    for result in &report.results {
        section(&mut out, result, &report.base);
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

fn section(out: &mut String, result: &Performance, base: &str) {
    let Performance { line, kind, statistics, .. } = result;
    let ratio = |value: Option<f64>| value.map_or("–".to_string(), |value| format!("{value:.3}"));
    let percent = |value: f64| format!("{:.4} %", value * 100.0);
    let _ = write!(out, "<h2>{} <small>{}</small></h2>", escaped(&line.name), escaped(kind));
    if let Some((at, why)) = &line.failure {
        let _ = write!(out, "<p class=\"fail\">Failed at {at}: {}</p>", escaped(why));
    }
    let rows = [
        ("Equity", format!("{:.2} → {:.2} {base}", statistics.start, statistics.end)),
        ("Return", percent(statistics.total_return)),
        ("Annual return", statistics.annual_return.map_or("–".to_string(), percent)),
        ("Largest draw-down", percent(statistics.max_draw_down)),
        ("Sharpe", ratio(statistics.sharpe)),
        ("Calmar", ratio(statistics.calmar)),
        ("Orders, rejected, fills", format!("{}, {}, {}", line.orders, line.rejected, line.fills)),
        ("Closed at profit, at loss", format!("{}, {}", line.wins, line.losses)),
        ("Commission", line.commission.to_string()),
    ];
    out.push_str("<table>");
    for (name, value) in rows {
        let _ = write!(out, "<tr><th>{name}<td>{value}");
    }
    out.push_str("</table>");
    let equity: Vec<(Timestamp, f64)> = line.equity.iter().map(|(at, worth)| (*at, amount(*worth))).collect();
    let under: Vec<(Timestamp, f64)> =
        statistics.draw_downs.iter().map(|(at, depth)| (*at, -depth * 100.0)).collect();
    let returns: Vec<(Timestamp, f64)> =
        statistics.returns.iter().map(|(at, value)| (*at, value * 100.0)).collect();
    plot(out, "equity", &format!("Equity, {base}"), &equity, "#0b62c4");
    plot(out, "draw-down", "Draw-down, %", &under, "#a40e26");
    plot(out, "returns", &format!("Returns over {:.0} s, %", statistics.period_s), &returns, "#3c7a3c");
}

/// Draws a line over time.
fn plot(out: &mut String, class: &str, title: &str, points: &[(Timestamp, f64)], colour: &str) {
    let mut svg = Svg::new(WIDTH, HEIGHT);
    if let (Some((first, _)), Some((last, _))) = (points.first(), points.last()) {
        let since = |at: &Timestamp| at.since(*first) as f64;
        let bottom = HEIGHT - BELOW;
        let x = Axis::exactly([0.0, since(last)].into_iter(), LEFT, WIDTH - 10.0);
        let y = Axis::exactly(points.iter().map(|point| point.1), bottom, 14.0);
        for share in [0.0, 0.5, 1.0] {
            let value = y.value(share);
            let at = y.at(value);
            svg.line((LEFT, at), (WIDTH, at), "axis");
            svg.text(LEFT - 6.0, at + 4.0, TextAnchor::End, "", &format!("{value:.4}"));
        }
        svg.text(LEFT, HEIGHT - 6.0, TextAnchor::Start, "", &first.to_string());
        svg.text(WIDTH, HEIGHT - 6.0, TextAnchor::End, "", &last.to_string());
        let line: Vec<(f64, f64)> =
            thinned(points).map(|(at, value)| (x.at(since(at)), y.at(*value))).collect();
        svg.path(&line, colour);
    }
    let caption = escaped(title);
    let _ = write!(out, "<figure><figcaption>{caption}</figcaption>{}</figure>", svg.element(class, title));
}

fn trades(out: &mut String, report: &SimulationReport) {
    const COLUMNS: [&str; 7] = ["time", "strategy", "symbol", "quantity", "price", "realized", "position"];
    let all = report.trades.len() as u64 + report.trades_more;
    let shown = report.trades.len().min(TRADES_SHOWN);
    let _ = write!(out, "<h2>Trades</h2><p>{shown} of {all}.</p><table><tr>");
    for column in COLUMNS {
        let _ = write!(out, "<th>{column}");
    }
    for trade in &report.trades[..shown] {
        out.push_str("<tr>");
        for column in COLUMNS {
            let cell = trade.get(column).and_then(Value::as_str).unwrap_or_default();
            let _ = write!(out, "<td>{}", escaped(cell));
        }
    }
    out.push_str("</table>");
}
