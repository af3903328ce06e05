//! The performance budget: every line of it appears in the closing table of a run, either with its
//! measurement or with the command that measures it. A line that is silently absent would be taken
//! for one that is met.

use std::fmt;

use serde::Serialize;
use serde_json::{Value, json};

use crate::goals::{self, Verdict};

/// A line of the budget, in the order of the table. A row with two goals is two lines here.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub enum Line {
    Book,
    Shard,
    ShardHeap,
    Lane,
    Journal,
    Ring,
    DecodeBeside,
    Decode,
    FixLatency,
    FixRate,
    FanOut,
    FanOutLatency,
    List,
    Idle,
    Start,
    Memory,
    Growth,
}

impl Line {
    pub const ALL: [Line; 17] = [
        Line::Book,
        Line::Shard,
        Line::ShardHeap,
        Line::Lane,
        Line::Journal,
        Line::Ring,
        Line::DecodeBeside,
        Line::Decode,
        Line::FixLatency,
        Line::FixRate,
        Line::FanOut,
        Line::FanOutLatency,
        Line::List,
        Line::Idle,
        Line::Start,
        Line::Memory,
        Line::Growth,
    ];

    pub fn what(self) -> &'static str {
        match self {
            Line::Book => "order book alone, s1, s100, s10k",
            Line::Shard => "Shard::apply, s100",
            Line::ShardHeap => "Shard::apply, allocations",
            Line::Lane => "command lane, shard, event lane",
            Line::Journal => "journal level os",
            Line::Ring => "ring hop between pinned cores",
            Line::DecodeBeside => "FIX decode beside fefix 0.7",
            Line::Decode => "FIX decode, 14 typed fields",
            Line::FixLatency => "FIX order to first report, median",
            Line::FixRate => "FIX order to first report, orders/s",
            Line::FanOut => "STOMP fan-out to 1, 10, 100",
            Line::FanOutLatency => "STOMP at 5,000/s, median",
            Line::List => "REST GET of a 2 KB list",
            Line::Idle => "idle, default config",
            Line::Start => "start to ready",
            Line::Memory => "1 million open orders",
            Line::Growth => "an hour of steady load",
        }
    }

    pub fn goal(self) -> String {
        let [one, ten, hundred] = goals::STOMP;
        match self {
            Line::Book => format!("at most {} × the bare ladder", goals::BOOK_RATIO_MAX),
            Line::Shard => format!("at most {} × the bare ladder", goals::SHARD_RATIO_MAX),
            Line::ShardHeap => "none".to_string(),
            Line::Lane => format!("within {} ns of the bare ring", goals::LANE_NS_MAX),
            Line::Journal => format!("at most {} ns at the median", goals::JOURNAL_NS_MAX),
            Line::Ring => format!("within {} × bare rtrb", goals::RING_RATIO_MAX),
            Line::DecodeBeside => format!("at most {} × its time", goals::FIX_DECODE_PEER_RATIO_MAX),
            Line::Decode => format!("at most {} ns", goals::FIX_DECODE_NS_MAX),
            Line::FixLatency => format!("within {} × a bare echo", goals::FIX_ECHO_RATIO_MAX),
            Line::FixRate => format!("at least {} × QuickFIX", goals::FIX_PEER_RATIO_MIN),
            Line::FanOut => format!("at least {} / {} / {} million/s", one.1, ten.1, hundred.1),
            Line::FanOutLatency => format!("at most {} / {} / {} µs", one.2, ten.2, hundred.2),
            Line::List => format!("within {} × hyper's time", goals::HTTP_RATIO_MAX),
            Line::Idle => format!("under {} % of a core", goals::IDLE_PERCENT_MAX),
            Line::Start => format!("under {} s", goals::START_S_MAX),
            Line::Memory => format!("under {} MiB", goals::MEMORY_BYTES_MAX >> 20),
            Line::Growth => format!("no growth: at most {} ×", goals::GROWTH_RATIO_MAX),
        }
    }

    /// Returns the command that measures this line alone.
    pub fn by(self) -> &'static str {
        match self {
            Line::Book | Line::Shard => "pitlane-bench engines",
            Line::ShardHeap => "cargo test --profile sim -p pitlane-tests --test allocations",
            Line::Lane | Line::Ring => "pitlane-bench lane",
            Line::Journal => "pitlane-bench journal",
            Line::DecodeBeside => "make oracle",
            Line::Decode => "pitlane-bench fix-codec",
            Line::FixLatency | Line::FixRate => "pitlane-bench fix",
            Line::FanOut | Line::FanOutLatency => "pitlane-bench stomp",
            Line::List => "pitlane-bench http",
            Line::Idle | Line::Start => "pitlane-bench idle",
            Line::Memory => "pitlane-bench memory",
            Line::Growth => "pitlane-bench soak --minutes 60",
        }
    }

    /// Returns the conditions under which the goal holds.
    pub fn under(self) -> &'static str {
        match self {
            Line::Book | Line::Shard => "time on the core, rounds in turn, medians",
            Line::ShardHeap => "warm",
            Line::Lane => "one in flight, spinning, medians, to the first event",
            Line::Ring => "one in flight, spinning, medians",
            Line::Journal => "in the page cache, clock's own time taken off",
            Line::DecodeBeside | Line::Decode => "one thread",
            Line::FixLatency => "10,000 orders/s open loop, spinning, journal os, loopback",
            Line::FixRate => "flat out, 4 sessions, both reports, its store in memory",
            Line::FanOut => "closed loop, loopback, all consumers on one core",
            Line::FanOutLatency => "open loop, loopback",
            Line::List => "server's time on its core",
            Line::Idle => "the binary, 10 s after the start, its feed running",
            Line::Start => "the binary, an empty folder",
            Line::Memory => "the whole process",
            Line::Growth => "half the knee, last quarter beside the second",
        }
    }
}

/// The verdicts of a run, arranged by line.
#[derive(Clone, Debug)]
pub struct Budget<'a>(pub &'a [Verdict]);

impl Budget<'_> {
    fn of(&self, line: Line) -> impl Iterator<Item = &Verdict> {
        self.0.iter().filter(move |verdict| verdict.line == Some(line))
    }

    /// Returns how many of the lines were measured, and how many of those are met.
    pub fn count(&self) -> (usize, usize) {
        let measured = Line::ALL.into_iter().filter(|line| self.of(*line).next().is_some());
        let (mut all, mut met) = (0, 0);
        for line in measured {
            all += 1;
            met += usize::from(self.of(line).all(|verdict| verdict.met));
        }
        (all, met)
    }

    pub fn to_json(&self) -> Value {
        let rows = Line::ALL.into_iter().map(|line| {
            let measured: Vec<&Verdict> = self.of(line).collect();
            json!({
                "what": line.what(), "goal": line.goal(), "by": line.by(), "under": line.under(),
                "met": (!measured.is_empty()).then(|| measured.iter().all(|verdict| verdict.met)),
                "measured": measured,
            })
        });
        rows.collect()
    }
}

impl fmt::Display for Budget<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "{:<36} {:<34} {:<44} {:<7} under", "budget for speed", "goal", "measured", "")?;
        for line in Line::ALL {
            let mut what = line.what();
            let mut is_absent = true;
            for Verdict { met, what: measured, value, unit, .. } in self.of(line) {
                let goal = if is_absent { line.goal() } else { String::new() };
                let word = if *met { "met" } else { "MISSED" };
                let told = format!("{measured}: {value:.2} {unit}");
                writeln!(f, "{what:<36} {goal:<34} {told:<44} {word:<7} {}", line.under())?;
                (what, is_absent) = ("", false);
            }
            if is_absent {
                writeln!(f, "{what:<36} {:<34} not in this run: {}", line.goal(), line.by())?;
            }
        }
        let (measured, met) = self.count();
        writeln!(f, "{measured} of {} lines measured, {met} of them met", Line::ALL.len())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_line_is_printed_whether_measured_or_not() {
        let met = Verdict::at_most("lane", 20.0, 300.0, "ns").of(Line::Lane);
        let missed = Verdict::at_least("to 10", 1.0, 3.2, "million/s").of(Line::FanOut);
        let other = Verdict::at_most("simulate", 1.0, 2.0, "s");
        let verdicts = [met.clone(), missed, other];
        let budget = Budget(&verdicts);
        let text = budget.to_string();
        assert_eq!(text.lines().count(), Line::ALL.len() + 2, "{text}");
        assert_eq!(text.matches("not in this run: ").count(), Line::ALL.len() - 2);
        assert!(text.contains("to 10: 1.00 million/s") && text.contains("MISSED"), "{text}");
        assert!(!text.contains("simulate"), "{text}");
        assert_eq!(budget.count(), (2, 1));
        let json = budget.to_json();
        assert_eq!((&json[3]["met"], &json[0]["met"]), (&json!(true), &Value::Null));
    }
}
