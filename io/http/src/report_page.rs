//! The report of live trading as one HTML page, from the parts that the report of a simulation is
//! made of.

use std::collections::BTreeMap;
use std::fmt::Write;

use pitlane_engine::id::SecurityId;
use pitlane_engine::number::Money;
use pitlane_engine::time::Timestamp;
use pitlane_performance::curve::{TimeFormat, month_returns};
use pitlane_performance::format::{count, equity_figures, money, percent};
use pitlane_performance::page::{EquityCurve, head, write_pairs, write_table};
use pitlane_performance::plots::plot_curves;
use pitlane_performance::statistics::Statistics;
use pitlane_plot::svg::escaped;

use super::report_sums::{self, PeriodSums, StrategySums, points};

const TITLE: &str = "Trading report";
/// Rows of the table by security, those with the largest profits and losses.
const SECURITIES_SHOWN: usize = 200;

/// Every assumption by name.
const ASSUMPTIONS: [(&str, &str); 4] = [
    (
        "equity",
        "the net liquidation value of now less the profit of the later days; deposits and withdrawals \
         count as if they had been made before the first day",
    ),
    (
        "profit of a day",
        "against the prices at the end of the day before, realised or not, with the exchange rates of its end",
    ),
    (
        "days",
        "trading days with a position; a day is drawn at its end in UTC, after the value before the first day",
    ),
    ("net liquidation", "a value every five seconds, those of the last four hours"),
];

#[derive(Clone, Debug, Default)]
pub(crate) struct TradingReport {
    pub base: String,
    pub year_days: u32,
    /// Whether the last day has not ended.
    pub is_running: bool,
    /// Strategies without a section.
    pub left_out: usize,
    /// All strategies together, then each; empty without a day.
    pub sections: Vec<ReportSection>,
}

/// Performance of one strategy, or of all together.
#[derive(Clone, Debug, Default)]
pub(crate) struct ReportSection {
    pub title: String,
    pub sums: StrategySums,
    /// Equity before the first day, and at the end of each day.
    pub equity: Vec<(Timestamp, Money)>,
    /// Net liquidation value of the last hours.
    pub recent: Vec<(Timestamp, Money)>,
    pub symbols: BTreeMap<SecurityId, String>,
    /// What the net liquidation value of now leaves out.
    pub missing: Vec<String>,
}

impl TradingReport {
    pub(crate) fn page(&self) -> String {
        let mut out = head(TITLE);
        let _ = write!(out, "<h1>{TITLE}</h1>");
        match self.sections.first() {
            Some(section) => self.write_range(&mut out, section),
            None => out.push_str("<p>There is no trading day in this range.</p>"),
        }
        for section in &self.sections {
            self.write_section(&mut out, section);
        }
        if self.left_out > 0 {
            let _ = write!(out, "<p>{} more strategies have no section of their own.</p>", self.left_out);
        }
        out.push_str("<h2>Assumptions</h2>");
        write_pairs(&mut out, ASSUMPTIONS);
        out.push_str("</html>");
        out
    }

    fn write_range(&self, out: &mut String, section: &ReportSection) {
        let days = &section.sums.days;
        let Some(((first, _), (last, _))) = days.first_key_value().zip(days.last_key_value()) else { return };
        let plural = if days.len() == 1 { "" } else { "s" };
        let running = if self.is_running { "; the last one has not ended" } else { "" };
        let _ = write!(out, "<p>{first} to {last}, {} trading day{plural}{running}.</p>", days.len());
    }

    fn write_section(&self, out: &mut String, section: &ReportSection) {
        let _ = write!(out, "<h2>{}</h2>", escaped(&section.title));
        let samples = points(&section.equity);
        let daily = samples.get(1..).unwrap_or_default();
        let statistics = Statistics::of(&samples, daily, self.year_days);
        let ends = section.equity.first().zip(section.equity.last());
        let (first, last) = ends.map(|(first, last)| (first.1, last.1)).unzip();
        let total = section.sums.total();
        let mut figures = equity_figures(&statistics, first, last, &self.base);
        let names = ["trades", "profit before fees", "fees", "profit after fees"];
        figures.extend(names.into_iter().zip(amounts(&total)));
        let missing = total.profit.missing;
        let mut left_out: Vec<String> = section.missing.clone();
        if missing > 0 {
            let plural = if missing == 1 { "" } else { "s" };
            let why = "without a price, an exchange rate or all trades";
            left_out.push(format!("{missing} result{plural} of a day {why}"));
        }
        let left_out = left_out.iter().map(|what| ("left out", what.as_str()));
        write_pairs(out, figures.iter().map(|(name, value)| (*name, value.as_str())).chain(left_out));
        let format = TimeFormat::DayEnds;
        let equity = EquityCurve { base: &self.base, format, samples: &samples, statistics: &statistics };
        equity.write_plots(out, &[]);
        if !section.recent.is_empty() {
            let title = format!("Net liquidation of the last hours, {}", self.base);
            let recent = points(&section.recent);
            plot_curves(
                out,
                "recent",
                &title,
                TimeFormat::Instants,
                &[("net liquidation", recent.as_slice())],
            );
        }
        equity.write_draw_downs(out);
        section.write_months(out, statistics.start, daily);
        section.write_days(out, &statistics);
        section.write_securities(out);
    }
}

impl ReportSection {
    fn write_months(&self, out: &mut String, start: f64, daily: &[(Timestamp, f64)]) {
        let returns = month_returns(start, daily);
        let rows = self.sums.months().into_iter().map(|(month, sums)| {
            let total_return = returns.get(&month).copied().flatten();
            row(month, Some(total_return), &sums)
        });
        write_table(out, "By month", &["Month", "Return", "Trades", "Gross", "Fees", "Net"], rows);
    }

    fn write_days(&self, out: &mut String, statistics: &Statistics) {
        let returns: BTreeMap<Timestamp, f64> = statistics.returns.iter().copied().collect();
        let ends = self.equity.iter().skip(1).map(|(at, _)| at);
        let rows = self.sums.days.iter().zip(ends);
        let rows =
            rows.rev().map(|((day, sums), at)| row(day.to_string(), Some(returns.get(at).copied()), sums));
        let _ = write!(out, "<details><summary>{} trading days</summary>", self.sums.days.len());
        write_table(out, "By day", &["Day", "Return", "Trades", "Gross", "Fees", "Net"], rows);
        out.push_str("</details>");
    }

    fn write_securities(&self, out: &mut String) {
        let mut securities: Vec<(&SecurityId, &PeriodSums)> = self.sums.securities.iter().collect();
        // A stable sort: of equal ones the one with the lowest id comes first.
        securities.sort_by_key(|(_, sums)| std::cmp::Reverse(sums.profit.net().abs()));
        let more = securities.len().saturating_sub(SECURITIES_SHOWN);
        let rows = securities.into_iter().take(SECURITIES_SHOWN);
        let symbol = |id: &SecurityId| self.symbols.get(id).cloned().unwrap_or_default();
        let rows = rows.map(|(id, sums)| row(symbol(id), None, sums));
        write_table(out, "By security", &["Security", "Trades", "Gross", "Fees", "Net"], rows);
        if more > 0 {
            let _ = write!(out, "<p>{more} more securities with smaller profits and losses.</p>");
        }
    }
}

/// Returns trades, profit before fees, fees and profit after fees.
fn amounts(sums: &PeriodSums) -> [String; 4] {
    let amount = |raw: i128| money(report_sums::money(raw));
    let profit = &sums.profit;
    [count(sums.trades), amount(profit.gross), amount(profit.fees), amount(profit.net())]
}

/// Returns a row of a table. `total_return` is `None` if the table has no returns.
fn row(name: String, total_return: Option<Option<f64>>, sums: &PeriodSums) -> Vec<String> {
    let total_return = total_return.map(|share| share.map_or("–".to_string(), percent));
    std::iter::once(name).chain(total_return).chain(amounts(sums)).collect()
}

#[cfg(test)]
mod tests {
    use pitlane_engine::time::Day;

    use super::super::profit_history::tests::row;
    use super::super::report_sums::DayRange;
    use super::*;

    const UNIT: i64 = 100_000_000;

    fn section(days: impl Iterator<Item = (i32, u32, i64)>) -> ReportSection {
        let mut sums = StrategySums::default();
        for (day, security, gross) in days {
            sums.add_row(Day(20_000 + day), &row(1, security, Some(gross * UNIT)), DayRange::default());
        }
        let symbols = sums.securities.keys().map(|id| (*id, format!("S{}", id.0))).collect();
        let equity = sums.equity(Money::whole(1_000).unwrap());
        ReportSection { title: "PAIRS".to_string(), sums, equity, symbols, ..ReportSection::default() }
    }

    fn report(section: ReportSection) -> TradingReport {
        TradingReport {
            base: "USD".to_string(),
            year_days: 252,
            sections: vec![section],
            ..TradingReport::default()
        }
    }

    #[test]
    fn a_page_has_the_plots_and_figures_of_a_simulation() {
        let mut section = section([(1, 7, 100), (2, 7, -50), (3, 8, 150)].into_iter());
        section.recent = vec![(Timestamp(1), Money::from_raw(1)), (Timestamp(2), Money::from_raw(2))];
        let page = TradingReport { is_running: true, ..report(section) }.page();
        for class in ["equity", "draw-down", "returns", "recent"] {
            assert!(page.contains(&format!("<svg class=\"{class}\"")), "{class}");
        }
        for text in [
            "<p>2024-10-05 to 2024-10-07, 3 trading days; the last one has not ended.</p>",
            "<tr><th>Equity<td>800.00 to 1,000.00 USD",
            "<tr><th>Return<td>25.00 %",
            "<tr><th>Trades<td>6",
            "<tr><td>2024-10<td>25.00 %<td>6<td>200.00<td>0.00<td>200.00",
            "<tr><td>2024-10-06<td>-5.56 %<td>2<td>-50.00<td>0.00<td>-50.00",
            "<tr><td>2024-10-05<td>5.56 %<td>2024-10-06<td>2024-10-07<td>2 d",
            "<tr><td>S8<td>2<td>150.00<td>0.00<td>150.00<tr><td>S7<td>4<td>50.00",
        ] {
            assert!(page.contains(text), "{text}: {page}");
        }
        assert!(page.contains("<h2>Assumptions</h2>") && !page.contains("<script"), "{page}");
    }

    #[test]
    fn what_is_left_out_is_named_and_texts_are_escaped() {
        let mut section = section([(1, 7, 100)].into_iter());
        section.sums.add_row(Day(20_001), &row(1, 9, None), DayRange::default());
        section.title = "<script>".to_string();
        section.missing = vec!["EUR: there is no exchange rate".to_string()];
        section.symbols.insert(SecurityId(7), "<b>".to_string());
        let page = TradingReport { left_out: 3, ..report(section) }.page();
        assert!(page.contains("<tr><th>Left out<td>EUR: there is no exchange rate"));
        assert!(page.contains("<tr><th>Left out<td>1 result of a day without"), "{page}");
        assert!(page.contains("<p>3 more strategies have no section of their own.</p>"));
        assert!(
            page.contains("<h2>&lt;script&gt;</h2>") && !page.contains("<script>") && !page.contains("<b>")
        );
    }

    #[test]
    fn so_many_securities_are_listed_those_with_the_largest_amounts() {
        let many = (1..=SECURITIES_SHOWN as u32 + 2).map(|id| (1, id, -i64::from(id)));
        let page = report(section(many)).page();
        assert!(page.contains("<p>2 more securities with smaller profits and losses.</p>"));
        assert!(page.contains("<td>S202<td>") && page.contains("<td>S3<td>"));
        assert!(!page.contains("<td>S1<td>") && !page.contains("<td>S2<td>"));
    }

    #[test]
    fn without_a_day_the_page_says_so() {
        let page = TradingReport::default().page();
        assert!(page.contains("There is no trading day in this range.") && !page.contains("<svg"));
    }
}
