//! The performance budget: every line of it appears in the closing table of a run, either with its
//! measurement or with the command that measures it. A line that is silently absent would be taken
//! for one that is met.

use std::fmt;

use serde::Serialize;
use serde_json::{Value, json};

use crate::goals::{self, GoalVerdict};

/// A line of the budget, in the order of the table. A row with two goals is two lines here.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub enum BudgetLine {
    Book,
    Shard,
    ShardHeap,
    Lane,
    Journal,
    Ring,
    DecodeBeside,
    Decode,
    FixLatency,
    FixTail,
    FixRateBeside,
    FixRate,
    FanOut,
    FanOutBeside,
    FanOutLatency,
    OrderToTick,
    Replicated,
    List,
    Idle,
    Start,
    Memory,
    Growth,
}

impl BudgetLine {
    pub const ALL: [BudgetLine; 22] = [
        BudgetLine::Book,
        BudgetLine::Shard,
        BudgetLine::ShardHeap,
        BudgetLine::Lane,
        BudgetLine::Journal,
        BudgetLine::Ring,
        BudgetLine::DecodeBeside,
        BudgetLine::Decode,
        BudgetLine::FixLatency,
        BudgetLine::FixTail,
        BudgetLine::FixRateBeside,
        BudgetLine::FixRate,
        BudgetLine::FanOut,
        BudgetLine::FanOutBeside,
        BudgetLine::FanOutLatency,
        BudgetLine::OrderToTick,
        BudgetLine::Replicated,
        BudgetLine::List,
        BudgetLine::Idle,
        BudgetLine::Start,
        BudgetLine::Memory,
        BudgetLine::Growth,
    ];

    pub fn what(self) -> &'static str {
        match self {
            BudgetLine::Book => "order book alone, s1, s100, s10k",
            BudgetLine::Shard => "Shard::apply, s100",
            BudgetLine::ShardHeap => "Shard::apply, allocations",
            BudgetLine::Lane => "command lane, shard, event lane",
            BudgetLine::Journal => "journal level os",
            BudgetLine::Ring => "ring hop between pinned cores",
            BudgetLine::DecodeBeside => "FIX decode beside fefix 0.7",
            BudgetLine::Decode => "FIX decode, 14 typed fields",
            BudgetLine::FixLatency => "FIX order to first report, median",
            BudgetLine::FixTail => "FIX order to first report, p99",
            BudgetLine::FixRateBeside => "FIX order to report beside QuickFIX",
            BudgetLine::FixRate => "FIX order to first report, orders/s",
            BudgetLine::FanOut => "STOMP fan-out to 1, 10, 100",
            BudgetLine::FanOutBeside => "STOMP fan-out beside NATS",
            BudgetLine::FanOutLatency => "STOMP at 5,000/s, median",
            BudgetLine::OrderToTick => "FIX order to tick over STOMP, median",
            BudgetLine::Replicated => "FIX order to report, replicated, median",
            BudgetLine::List => "REST GET of a 2 KB list",
            BudgetLine::Idle => "idle, default config",
            BudgetLine::Start => "start to ready",
            BudgetLine::Memory => "1 million open orders",
            BudgetLine::Growth => "an hour of steady load",
        }
    }

    pub fn goal(self) -> String {
        let [one, ten, hundred] = goals::STOMP;
        match self {
            BudgetLine::Book => format!("at most {} × the bare ladder", goals::BOOK_RATIO_MAX),
            BudgetLine::Shard => format!("at most {} × the bare ladder", goals::SHARD_RATIO_MAX),
            BudgetLine::ShardHeap => "none".to_string(),
            BudgetLine::Lane => format!("within {} ns of the bare ring", goals::LANE_NS_MAX),
            BudgetLine::Journal => format!("at most {} ns at the median", goals::JOURNAL_NS_MAX),
            BudgetLine::Ring => format!("within {} × bare rtrb", goals::RING_RATIO_MAX),
            BudgetLine::DecodeBeside => format!("at most {} × its time", goals::FIX_DECODE_PEER_RATIO_MAX),
            BudgetLine::Decode => format!("at most {} ns", goals::FIX_DECODE_NS_MAX),
            BudgetLine::FixLatency => format!("within {} × a bare echo", goals::FIX_ECHO_RATIO_MAX),
            BudgetLine::FixTail => format!("within {} × a bare echo", goals::FIX_ECHO_TAIL_RATIO_MAX),
            BudgetLine::FixRateBeside => format!("at least {} × QuickFIX", goals::FIX_PEER_RATIO_MIN),
            BudgetLine::FixRate => format!("at least {}", goals::FIX_PER_S_MIN),
            BudgetLine::FanOutBeside => format!("at least {} × NATS", goals::STOMP_PEER_RATIO_MIN),
            BudgetLine::FanOut => format!("at least {} / {} / {} million/s", one.1, ten.1, hundred.1),
            BudgetLine::FanOutLatency => format!("at most {} / {} / {} µs", one.2, ten.2, hundred.2),
            BudgetLine::OrderToTick => format!("at most {} µs", goals::ORDER_TO_TICK_US_MAX),
            BudgetLine::Replicated => format!("at most {} µs", goals::REPLICATED_US_MAX),
            BudgetLine::List => format!("within {} × hyper's time", goals::HTTP_RATIO_MAX),
            BudgetLine::Idle => format!("under {} % of a core", goals::IDLE_PERCENT_MAX),
            BudgetLine::Start => format!("under {} s", goals::START_S_MAX),
            BudgetLine::Memory => format!("under {} MiB", goals::MEMORY_BYTES_MAX >> 20),
            BudgetLine::Growth => format!("no growth: at most {} ×", goals::GROWTH_RATIO_MAX),
        }
    }

    /// Returns the command that measures this line alone.
    pub fn by(self) -> &'static str {
        match self {
            BudgetLine::Book | BudgetLine::Shard => "pitlane-bench engines",
            BudgetLine::ShardHeap => "cargo test --profile sim -p pitlane-tests --test allocations",
            BudgetLine::Lane | BudgetLine::Ring => "pitlane-bench lane",
            BudgetLine::Journal => "pitlane-bench journal",
            BudgetLine::DecodeBeside => "make oracle",
            BudgetLine::Decode => "pitlane-bench fix-codec",
            BudgetLine::FixLatency
            | BudgetLine::FixTail
            | BudgetLine::FixRateBeside
            | BudgetLine::FixRate => "pitlane-bench fix",
            BudgetLine::FanOut | BudgetLine::FanOutBeside | BudgetLine::FanOutLatency => {
                "pitlane-bench stomp"
            }
            BudgetLine::OrderToTick => "pitlane-bench order-to-tick",
            BudgetLine::Replicated => "pitlane-bench levels",
            BudgetLine::List => "pitlane-bench http",
            BudgetLine::Idle | BudgetLine::Start => "pitlane-bench idle",
            BudgetLine::Memory => "pitlane-bench memory",
            BudgetLine::Growth => "pitlane-bench soak --minutes 60",
        }
    }

    /// Returns the conditions under which the goal holds.
    pub fn under(self) -> &'static str {
        match self {
            BudgetLine::Book | BudgetLine::Shard => "time on the core, rounds in turn, medians",
            BudgetLine::ShardHeap => "warm",
            BudgetLine::Lane => "one in flight, spinning, medians, to the first event",
            BudgetLine::Ring => "one in flight, spinning, medians",
            BudgetLine::Journal => "in the page cache, clock's own time taken off",
            BudgetLine::DecodeBeside | BudgetLine::Decode => "one thread",
            BudgetLine::FixLatency | BudgetLine::FixTail => {
                "10,000 orders/s open loop, spinning, journal os, loopback"
            }
            BudgetLine::FixRateBeside => "flat out, 4 sessions, both reports, its store in memory",
            BudgetLine::FixRate => "flat out, 4 sessions, journal os, the service on one core",
            BudgetLine::FanOutBeside => "the lowest of counted and decoded, in turns, medians",
            BudgetLine::FanOut => "closed loop, loopback, all consumers on one core",
            BudgetLine::FanOutLatency => "open loop, loopback",
            BudgetLine::OrderToTick => {
                "10,000 orders/s open loop, spinning, journal os, loopback, SBE decoded, STOMP first"
            }
            BudgetLine::Replicated => "1,000 orders/s open loop, NATS on the service's core",
            BudgetLine::List => "server's time on its core",
            BudgetLine::Idle => "the binary, 10 s after the start, its feed running",
            BudgetLine::Start => "the binary, an empty folder",
            BudgetLine::Memory => "the whole process",
            BudgetLine::Growth => "half the knee, last quarter beside the second",
        }
    }
}

/// The verdicts of a run, arranged by line.
#[derive(Clone, Debug)]
pub struct BudgetReport<'a>(pub &'a [GoalVerdict]);

impl BudgetReport<'_> {
    fn of(&self, line: BudgetLine) -> impl Iterator<Item = &GoalVerdict> {
        self.0.iter().filter(move |verdict| verdict.line == Some(line))
    }

    /// Returns how many of the lines were measured, and how many of those are met.
    pub fn count(&self) -> (usize, usize) {
        let measured = BudgetLine::ALL.into_iter().filter(|line| self.of(*line).next().is_some());
        let (mut all, mut met) = (0, 0);
        for line in measured {
            all += 1;
            met += usize::from(self.of(line).all(|verdict| verdict.met));
        }
        (all, met)
    }

    pub fn to_json(&self) -> Value {
        let rows = BudgetLine::ALL.into_iter().map(|line| {
            let measured: Vec<&GoalVerdict> = self.of(line).collect();
            json!({
                "what": line.what(), "goal": line.goal(), "by": line.by(), "under": line.under(),
                "met": (!measured.is_empty()).then(|| measured.iter().all(|verdict| verdict.met)),
                "measured": measured,
            })
        });
        rows.collect()
    }
}

impl fmt::Display for BudgetReport<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "{:<39} {:<34} {:<44} {:<7} under", "budget for speed", "goal", "measured", "")?;
        for line in BudgetLine::ALL {
            let mut what = line.what();
            let mut is_first_row = true;
            for GoalVerdict { met, what: measured, value, unit, .. } in self.of(line) {
                let goal = if is_first_row { line.goal() } else { String::new() };
                let verdict = if *met { "met" } else { "MISSED" };
                let measurement = format!("{measured}: {value:.2} {unit}");
                writeln!(f, "{what:<39} {goal:<34} {measurement:<44} {verdict:<7} {}", line.under())?;
                (what, is_first_row) = ("", false);
            }
            if is_first_row {
                writeln!(f, "{what:<39} {:<34} not in this run: {}", line.goal(), line.by())?;
            }
        }
        let (measured, met) = self.count();
        writeln!(f, "{measured} of {} lines measured, {met} of them met", BudgetLine::ALL.len())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_line_is_printed_whether_measured_or_not() {
        let met = GoalVerdict::at_most("lane", 20.0, 300.0, "ns").of(BudgetLine::Lane);
        let missed = GoalVerdict::at_least("to 10", 1.0, 3.2, "million/s").of(BudgetLine::FanOut);
        let other = GoalVerdict::at_most("simulate", 1.0, 2.0, "s");
        let verdicts = [met.clone(), missed, other];
        let budget = BudgetReport(&verdicts);
        let text = budget.to_string();
        assert_eq!(text.lines().count(), BudgetLine::ALL.len() + 2, "{text}");
        assert_eq!(text.matches("not in this run: ").count(), BudgetLine::ALL.len() - 2);
        assert!(text.contains("to 10: 1.00 million/s") && text.contains("MISSED"), "{text}");
        assert!(!text.contains("simulate"), "{text}");
        assert_eq!(budget.count(), (2, 1));
        let json = budget.to_json();
        assert_eq!((&json[3]["met"], &json[0]["met"]), (&json!(true), &Value::Null));
    }
}
