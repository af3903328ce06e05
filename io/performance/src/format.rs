//! Numbers as people read them, for text and HTML. The JSON has them with all their digits.

use pitlane_engine::number::Money;

use super::statistics::{Figure, Statistics};

const MINUTE_S: u64 = 60;
const HOUR_S: u64 = 60 * MINUTE_S;
const DAY_S: u64 = 24 * HOUR_S;
const NS_PER_S: u64 = 1_000_000_000;
/// Raw units of a cent.
const CENT: i64 = 1_000_000;

/// Formats a count with thousands separators.
pub fn count(number: u64) -> String {
    let digits = number.to_string();
    let mut out = String::with_capacity(digits.len() + digits.len() / 3);
    for (at, digit) in digits.chars().enumerate() {
        if at > 0 && (digits.len() - at).is_multiple_of(3) {
            out.push(',');
        }
        out.push(digit);
    }
    out
}

/// Formats an amount with two decimals, rounded half away from zero.
pub fn money(amount: Money) -> String {
    let cents = (i128::from(amount.raw()).abs() + i128::from(CENT) / 2) / i128::from(CENT);
    let whole = u64::try_from(cents / 100).unwrap_or(u64::MAX);
    let sign = if amount.is_negative() && cents > 0 { "-" } else { "" };
    format!("{sign}{}.{:02}", count(whole), cents % 100)
}

/// Formats a share as a percentage with two decimals, and tiny ones with as many as they need to be
/// seen.
pub fn percent(share: f64) -> String {
    let value = share * 100.0;
    let decimals = match value.abs() {
        0.0 => 2,
        small if small < 0.000_1 => 6,
        small if small < 0.01 => 4,
        small if small < 0.1 => 3,
        _ => 2,
    };
    let text = format!("{value:.decimals$}");
    let is_zero = text.bytes().all(|byte| matches!(byte, b'-' | b'0' | b'.'));
    format!("{} %", if is_zero { text.trim_start_matches('-') } else { &text })
}

/// Formats a number with so many decimals and with thousands separators.
pub fn decimal(value: f64, decimals: usize) -> String {
    let text = format!("{:.decimals$}", value.abs());
    let (whole, part) = text.split_at(text.find('.').unwrap_or(text.len()));
    let is_zero = text.bytes().all(|byte| matches!(byte, b'0' | b'.'));
    let sign = if value < 0.0 && !is_zero { "-" } else { "" };
    match whole.parse() {
        Ok(whole) => format!("{sign}{}{part}", count(whole)),
        // Beyond 64 bits, and what is no number.
        Err(_) => format!("{value:.decimals$}"),
    }
}

pub fn ratio(value: f64) -> String {
    decimal(value, 2)
}

/// Formats a figure, or the reason why there is none.
pub fn figure(figure: &Figure, format: impl Fn(f64) -> String) -> String {
    match figure {
        Ok(value) => format(*value),
        Err(withheld) => format!("- ({withheld})"),
    }
}

/// Returns the figures of an equity curve by name, for text and HTML. `first` and `last` are its
/// exact values at both ends, in the currency `base`.
pub fn equity_figures(
    statistics: &Statistics,
    first: Option<Money>,
    last: Option<Money>,
    base: &str,
) -> Vec<(&'static str, String)> {
    let none = || "-".to_string();
    let amount = |value: Option<Money>| value.map_or_else(none, money);
    let days = statistics.best_day.zip(statistics.worst_day);
    vec![
        ("equity", format!("{} to {} {base}", amount(first), amount(last))),
        ("return", percent(statistics.total_return)),
        ("annual return", figure(&statistics.annual_return, percent)),
        ("annual volatility", figure(&statistics.volatility, percent)),
        ("Sharpe", figure(&statistics.sharpe, ratio)),
        ("Sortino", figure(&statistics.sortino, ratio)),
        ("Calmar", figure(&statistics.calmar, ratio)),
        ("sampling", statistics.sampling()),
        ("largest draw-down", percent(statistics.max_draw_down)),
        ("longest draw-down", span(statistics.draw_down_ns)),
        (
            "best, worst day",
            days.map_or_else(none, |(best, worst)| format!("{}, {}", percent(best), percent(worst))),
        ),
    ]
}

/// Formats a time span with its two largest units.
pub fn span(ns: u64) -> String {
    let s = ns / NS_PER_S;
    match s {
        0 if ns == 0 => "0 s".to_string(),
        0 => format!("{} ms", ns.div_ceil(1_000_000)),
        s if s < MINUTE_S => format!("{s} s"),
        s if s < HOUR_S => two(s / MINUTE_S, "min", s % MINUTE_S, "s"),
        s if s < DAY_S => two(s / HOUR_S, "h", s % HOUR_S / MINUTE_S, "min"),
        s => two(s / DAY_S, "d", s % DAY_S / HOUR_S, "h"),
    }
}

fn two(large: u64, unit: &str, small: u64, small_unit: &str) -> String {
    match small {
        0 => format!("{} {unit}", count(large)),
        _ => format!("{} {unit} {small} {small_unit}", count(large)),
    }
}

#[cfg(test)]
mod tests {
    use pitlane_engine::time::{NS_PER_DAY, Timestamp};

    use super::*;
    use crate::statistics::Withheld;

    #[test]
    fn numbers_are_grouped_and_rounded() {
        assert_eq!([0, 999, 1_000, 1_234_567].map(count), ["0", "999", "1,000", "1,234,567"]);
        let amounts = ["0", "1234.565", "-1234.5649", "-0.001", "1000000"];
        let shown = amounts.map(|text| money(Money::parse(text.as_bytes()).unwrap()));
        assert_eq!(shown, ["0.00", "1,234.57", "-1,234.56", "0.00", "1,000,000.00"]);
        assert_eq!(money(Money::MIN), "-92,233,720,368.55");
    }

    #[test]
    fn decimals_are_grouped_too() {
        let shown = [0.0, -0.004, 2_559.724, -1_234_567.0, f64::INFINITY].map(ratio);
        assert_eq!(shown, ["0.00", "0.00", "2,559.72", "-1,234,567.00", "inf"]);
        assert_eq!(decimal(1_500_000.0, 0), "1,500,000");
    }

    #[test]
    fn percentages_show_small_shares() {
        let shown = [0.0, 0.123, -0.5, 0.0002, 0.000_03, -1e-9].map(percent);
        assert_eq!(shown, ["0.00 %", "12.30 %", "-50.00 %", "0.020 %", "0.0030 %", "0.000000 %"]);
    }

    #[test]
    fn spans_have_at_most_two_units() {
        let s = NS_PER_S;
        let spans = [0, 1, s, 90 * s, 3_600 * s, 3_661 * s, 90_000 * s].map(span);
        assert_eq!(spans, ["0 s", "1 ms", "1 s", "1 min 30 s", "1 h", "1 h 1 min", "1 d 1 h"]);
    }

    #[test]
    fn a_figure_without_a_value_says_why() {
        assert_eq!(figure(&Ok(1.234), ratio), "1.23");
        assert_eq!(figure(&Err(Withheld::NoLoss), ratio), "- (no day had a loss)");
    }

    #[test]
    fn the_figures_of_an_equity_curve_have_names_and_units() {
        let days = [(Timestamp(NS_PER_DAY), 110.0), (Timestamp(2 * NS_PER_DAY), 99.0)];
        let samples = [(Timestamp::ZERO, 100.0), days[0], days[1]];
        let statistics = Statistics::of(&samples, &days, 252);
        let figures = equity_figures(&statistics, Money::whole(100), None, "USD");
        let value = |wanted: &str| figures.iter().find(|(name, _)| *name == wanted).unwrap().1.as_str();
        assert_eq!((value("equity"), value("return")), ("100.00 to - USD", "-1.00 %"));
        assert_eq!((value("largest draw-down"), value("longest draw-down")), ("10.00 %", "1 d"));
        assert_eq!(value("best, worst day"), "10.00 %, -10.00 %");
        assert_eq!(value("Sharpe"), "- (the data are too short: 2 daily returns, 20 are needed)");
    }
}
