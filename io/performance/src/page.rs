//! Parts of a report as HTML: its head, tables, and the plots of an equity curve. A page has no
//! script and loads nothing.

use std::fmt::Write;

use pitlane_plot::svg::escaped;

use super::curve::{Point, TimeFormat};
use super::draw_downs::depths;
use super::format::{percent, span};
use super::plots::{plot_bars, plot_curves};
use super::statistics::Statistics;

/// The style sheet. Colours follow the reader's theme, and wide plots and tables scroll on a small
/// screen. The content policy of the web server names its hash.
pub const STYLE: &str = ":root{color-scheme:light dark;--ink:#1b1f24;--soft:#57606a;--page:#fff;--plot:#fbfbfc;--edge:#e3e6ea;--grid:#d5d9df;--price:#6b7685;\
--up:#1a6b33;--down:#a40e26}\
@media(prefers-color-scheme:dark){:root{--ink:#e6ebf2;--soft:#98a3b3;--page:#11161d;--plot:#161c24;--edge:#2b3440;--grid:#2f3945;--price:#98a3b3;\
--up:#4cc38a;--down:#ff7b72}}\
body{font:15px/1.45 system-ui,sans-serif;max-width:60rem;margin:2rem auto;padding:0 1rem;color:var(--ink);background:var(--page)}\
table{border-collapse:collapse;font-variant-numeric:tabular-nums;margin:.6rem 0}td,th{padding:.15rem .8rem .15rem 0;text-align:left;vertical-align:top}\
.rows,figure{overflow-x:auto}.rows td,.rows th{white-space:nowrap;text-align:right}.rows td:first-child,.rows th:first-child{text-align:left}\
figure{margin:1rem 0}svg{display:block;width:100%;height:auto;background:var(--plot);border:1px solid var(--edge);box-sizing:border-box}\
h2{margin-top:2.2rem}.axis{stroke:var(--grid);stroke-width:1}text{font-size:11px;fill:var(--soft)}.fail{color:var(--down)}\
summary{cursor:pointer;margin:.8rem 0}code{overflow-wrap:anywhere}pre{overflow-x:auto}\
@media(max-width:45rem){figure svg{min-width:40rem}text{font-size:13px}}";

/// Returns the head of a page, up to its title.
pub fn head(title: &str) -> String {
    let title = escaped(title);
    format!(
        "<!doctype html><html lang=\"en\"><meta charset=\"utf-8\">\
         <meta name=\"viewport\" content=\"width=device-width,initial-scale=1\">\
         <style>{STYLE}</style><title>{title}</title>"
    )
}

/// An equity curve with its statistics.
#[derive(Clone, Copy, Debug)]
pub struct EquityCurve<'a> {
    /// Currency of the equity.
    pub base: &'a str,
    pub format: TimeFormat,
    pub samples: &'a [Point],
    pub statistics: &'a Statistics,
}

impl EquityCurve<'_> {
    /// Plots the equity beside other curves, its draw-downs and its daily returns.
    pub fn write_plots(&self, out: &mut String, others: &[(&str, &[Point])]) {
        let under: Vec<Point> =
            depths(self.samples).into_iter().map(|(at, depth)| (at, -depth * 100.0)).collect();
        let returns: Vec<Point> =
            self.statistics.returns.iter().map(|(at, value)| (*at, value * 100.0)).collect();
        let mut curves = vec![("equity", self.samples)];
        curves.extend_from_slice(others);
        plot_curves(out, "equity", &format!("Equity, {}", self.base), self.format, &curves);
        plot_curves(out, "draw-down", "Draw-down, %", self.format, &[("draw-down", under.as_slice())]);
        plot_bars(out, "returns", "Daily returns, %", &returns);
    }

    /// Writes the table of the deepest draw-downs, if there are any.
    pub fn write_draw_downs(&self, out: &mut String) {
        if self.statistics.draw_downs.is_empty() {
            return;
        }
        let rows = self.statistics.draw_downs.iter().map(|fall| {
            let time = |at| self.format.text(at);
            let to = fall.to.map_or("not recovered".to_string(), time);
            vec![time(fall.from), percent(fall.depth), time(fall.bottom), to, span(fall.length_ns)]
        });
        write_table(out, "Draw-downs", &["From", "Depth", "Lowest", "Recovered", "Length"], rows);
    }
}

/// Writes a table; the first column is a name, the others are numbers.
pub fn write_table(out: &mut String, title: &str, head: &[&str], rows: impl Iterator<Item = Vec<String>>) {
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

/// Writes names with their values.
pub fn write_pairs<'p>(out: &mut String, pairs: impl IntoIterator<Item = (&'p str, &'p str)>) {
    out.push_str("<table>");
    for (name, value) in pairs {
        let _ = write!(out, "<tr><th>{}<td>{}", escaped(&capital(name)), escaped(value));
    }
    out.push_str("</table>");
}

fn capital(name: &str) -> String {
    let mut chars = name.chars();
    chars.next().map_or(String::new(), |first| first.to_uppercase().chain(chars).collect())
}

#[cfg(test)]
mod tests {
    use pitlane_engine::time::{NS_PER_DAY, Timestamp};

    use super::*;

    #[test]
    fn an_equity_curve_has_plots_and_draw_downs() {
        let samples = [100.0, 110.0, 99.0].iter().enumerate();
        let samples: Vec<Point> =
            samples.map(|(day, value)| (Timestamp(day as u64 * NS_PER_DAY), *value)).collect();
        let statistics = Statistics::of(&samples, &samples[1..], 252);
        let format = TimeFormat::DayEnds;
        let equity = EquityCurve { base: "USD", format, samples: &samples, statistics: &statistics };
        let mut out = String::new();
        equity.write_plots(&mut out, &[("market", &samples)]);
        equity.write_draw_downs(&mut out);
        for part in [
            "class=\"equity\"",
            ">market</text>",
            "class=\"draw-down\"",
            "class=\"returns\"",
            "<tr><td>1970-01-01<td>10.00 %<td>1970-01-02<td>not recovered<td>1 d",
        ] {
            assert!(out.contains(part), "{part}: {out}");
        }
        out.clear();
        EquityCurve { format: TimeFormat::Instants, ..equity }.write_draw_downs(&mut out);
        assert!(out.contains("<td>1970-01-03T00:00:00Z<td>not recovered"), "{out}");
        let rising = Statistics::of(&samples[..2], &samples[1..2], 252);
        out.clear();
        EquityCurve { statistics: &rising, ..equity }.write_draw_downs(&mut out);
        assert_eq!(out, "");
    }

    #[test]
    fn texts_are_escaped_everywhere() {
        let mut out = head("<b>");
        write_table(&mut out, "<b>", &["<b>"], [vec!["<b>".to_string()]].into_iter());
        write_pairs(&mut out, [("<b>", "<b>")]);
        assert!(!out.contains("<b>") && out.matches("&lt;b&gt;").count() == 6, "{out}");
    }
}
