//! Files of ticks, generated from a seed.

use std::fmt::Write;

use pitlane_engine::rng::Rng;

pub(crate) const HEADER: &str = "time,security,bid,bidSize,ask,askSize,last,lastSize\n";
/// 2026-11-02T14:30:00Z.
pub(crate) const START_NS: u64 = 1_793_629_800_000_000_000;

/// Returns rows of a random walk of one security, some 20 ms apart.
pub(crate) fn rows(security: &str, count: u32, seed: u64) -> Vec<(u64, String)> {
    let mut chance = Rng::new(seed);
    let (mut at, mut cents) = (START_NS, 20_000);
    let mut rows = Vec::new();
    for _ in 0..count {
        at += 1 + chance.below(40_000_000);
        cents += chance.below(5) as i64 - 2;
        let ask = cents + 1 + chance.below(3) as i64;
        let mut size = || 100 * (1 + chance.below(9));
        let price = |cents: i64| format!("{}.{:02}", cents / 100, cents % 100);
        let mut row = format!("{at},{security},{},{},{},{}", price(cents), size(), price(ask), size());
        if size() > 400 {
            let _ = write!(row, ",{},{}", price(if size() > 400 { cents } else { ask }), size());
        } else {
            row.push_str(",,");
        }
        rows.push((at, row));
    }
    rows
}

pub(crate) fn file(rows: &[(u64, String)]) -> String {
    let lines: Vec<&str> = rows.iter().map(|(_, row)| row.as_str()).collect();
    format!("{HEADER}{}\n", lines.join("\n"))
}

/// Settings of the two examples.
pub(crate) const MOMENTUM: &str = r#"
[[strategy]]
name = "MOMENTUM"
kind = "moving-average-cross"
securities = ["AAPL", 2]
start = true
cancel_on_failure = true
parameters = { fast = 5, slow = 30, bar_s = 0, qty = 10, short = true }
"#;

pub(crate) const MAKER: &str = r#"
[[strategy]]
name = "MARKET_MAKER"
kind = "market-maker"
securities = ["AAPL"]
start = true
cancel_on_failure = true
parameters = { qty = 10, half_spread_ticks = 1, position_max = 100, loss_max = 0 }
"#;
