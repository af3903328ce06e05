//! The report as one HTML page: figures, three plots for each strategy, trades and assumptions. It
//! has no script and loads nothing.

use std::fmt::Write;

use pitlane_engine::time::Timestamp;
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
fn plot(out: &mut String, id: &str, title: &str, points: &[(Timestamp, f64)], colour: &str) {
    let _ = write!(
        out,
        "<figure><figcaption>{}</figcaption><svg class=\"{id}\" viewBox=\"0 0 {WIDTH} {HEIGHT}\" role=\"img\" aria-label=\"{}\">",
        escaped(title),
        escaped(title)
    );
    if let (Some(first), Some(last)) = (points.first(), points.last()) {
        let low = points.iter().map(|point| point.1).fold(f64::MAX, f64::min);
        let high = points.iter().map(|point| point.1).fold(f64::MIN, f64::max);
        let span = if high > low { high - low } else { 1.0 };
        let time = last.0.since(first.0).max(1) as f64;
        let bottom = HEIGHT - BELOW;
        let x = |at: Timestamp| LEFT + at.since(first.0) as f64 / time * (WIDTH - LEFT - 10.0);
        let y = |value: f64| bottom - (value - low) / span * (bottom - 14.0);
        for share in [0.0, 0.5, 1.0] {
            let value = low + span * share;
            let at = y(value);
            let _ = write!(out, "<path class=\"axis\" d=\"M{LEFT} {at:.1}H{WIDTH}\"/>");
            let _ = write!(
                out,
                "<text x=\"{}\" y=\"{:.1}\" text-anchor=\"end\">{value:.4}</text>",
                LEFT - 6.0,
                at + 4.0
            );
        }
        let _ = write!(out, "<text x=\"{LEFT}\" y=\"{}\">{}</text>", HEIGHT - 6.0, first.0);
        let _ =
            write!(out, "<text x=\"{WIDTH}\" y=\"{}\" text-anchor=\"end\">{}</text>", HEIGHT - 6.0, last.0);
        let mut path = String::new();
        for (at, value) in thinned(points) {
            let step = if path.is_empty() { 'M' } else { 'L' };
            let _ = write!(path, "{step}{:.1} {:.1}", x(*at), y(*value));
        }
        let _ = write!(out, "<path fill=\"none\" stroke=\"{colour}\" stroke-width=\"1.5\" d=\"{path}\"/>");
    }
    out.push_str("</svg></figure>");
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

fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;")
}
