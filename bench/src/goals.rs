//! The goals of the design's budget for speed that this bench can judge. `--check` fails where one is missed.

use serde::Serialize;

use crate::budget::Line;
use crate::contest::{Engine, Standing};

/// The book alone beside the floor, on every scenario.
pub const BOOK_RATIO_MAX: f64 = 1.5;
/// The whole shard beside the floor, on `s100`.
pub const SHARD_RATIO_MAX: f64 = 6.0;
/// A lane with a shard behind it beyond the bare ring, at the median.
pub const LANE_NS_MAX: f64 = 300.0;
/// Our lane beside the bare ring it is made of.
pub const RING_RATIO_MAX: f64 = 1.2;
/// What the stamps of stages add to a command's time from lane to lane.
pub const STAGES_PERCENT_MAX: f64 = 2.0;
/// A GET of a 2 KB list beside hyper serving the same bytes from memory.
pub const HTTP_RATIO_MAX: f64 = 1.3;
/// Orders over REST at level `os`, the whole server on one core.
pub const REST_ORDERS_PER_S_MIN: f64 = 20_000.0;
/// What a request may wait while somebody is sent a list of 100,000 orders.
pub const BESIDE_LIST_MS_MAX: f64 = 5.0;
/// The process with a million open orders.
pub const MEMORY_BYTES_MAX: u64 = 1 << 30;
/// The last quarter's memory beside the second's in a long run; more is growth, less is what allocators keep back and give again.
pub const GROWTH_RATIO_MAX: f64 = 1.02;
/// The same of the 99 %: a virtual machine's neighbours make as much from minute to minute.
pub const DRIFT_RATIO_MAX: f64 = 1.5;
/// Of a core, by the service with its default config and nobody there.
pub const IDLE_PERCENT_MAX: f64 = 1.0;
/// From the start of the process to its first line.
pub const START_S_MAX: f64 = 1.0;
/// Ticks a second through a simulation with the moving-average example, in millions.
pub const SIMULATE_MILLIONS_MIN: f64 = 2.0;

/// A New Order Single from bytes to fourteen typed fields.
pub const FIX_DECODE_NS_MAX: f64 = 250.0;
/// The same beside `fefix`: at most this part of its time.
pub const FIX_DECODE_PEER_RATIO_MAX: f64 = 0.25;
/// FIX orders flat out, order to first Execution Report, beside an acceptor on QuickFIX with a store in memory.
pub const FIX_PEER_RATIO_MIN: f64 = 6.0;
/// The same at 10,000 orders a second, beside a bare echo of the same bytes, at the median.
pub const FIX_ECHO_RATIO_MAX: f64 = 1.5;
/// What level `os` of the journal adds to an order.
pub const JOURNAL_NS_MAX: f64 = 100.0;
/// A start with a million orders.
pub const RESTART_FROM_SNAPSHOT_S_MAX: f64 = 5.0;
pub const RESTART_FROM_JOURNAL_S_MAX: f64 = 30.0;

/// Consumers; at least so many million deliveries a second; at 5,000 a second at most so many microseconds at the median.
pub const STOMP: [(usize, f64, f64); 3] = [(1, 1.5, 20.0), (10, 3.2, 70.0), (100, 2.3, 450.0)];

/// A healthy consumer's 99th percentile beside two of ten who do not read, and how long nobody hears anything at most.
pub const STALLED_RATIO_MAX: f64 = 1.1;
pub const SILENCE_S_MAX: f64 = 1.0;
/// The same beside one who has stopped, one with the smallest window and a hundred who come and go.
pub const NEIGHBOURS_RATIO_MAX: f64 = 2.0;
/// A well-behaved FIX client's 99th percentile while others attack, beside quiet.
pub const ATTACKED_RATIO_MAX: f64 = 2.0;
/// What may wait for one consumer: the queue of 4 MiB, the mark of 256 KiB, and a turn's worth of frames.
pub const HELD_MIB_MAX: f64 = 4.0 + 0.25 + 0.0625;

/// What was asked, what came, and whether that is enough.
#[derive(Clone, Debug, Serialize)]
pub struct Verdict {
    pub met: bool,
    pub text: String,
    pub what: String,
    pub value: f64,
    pub unit: String,
    /// The line of the design's budget that it is about; None: a goal beyond it.
    pub line: Option<Line>,
}

impl Verdict {
    pub fn at_least(what: &str, value: f64, least: f64, unit: &str) -> Verdict {
        Verdict::new(what, value, unit, value >= least, &format!("at least {least:.2}"))
    }

    pub fn at_most(what: &str, value: f64, most: f64, unit: &str) -> Verdict {
        Verdict::new(what, value, unit, value <= most, &format!("at most {most:.2}"))
    }

    fn new(what: &str, value: f64, unit: &str, met: bool, goal: &str) -> Verdict {
        let word = if met { "met   " } else { "MISSED" };
        let text = format!("{word} {what}: {value:.2} {unit}, {goal}");
        Verdict { met, text, what: what.to_string(), value, unit: unit.to_string(), line: None }
    }

    pub fn of(self, line: Line) -> Verdict {
        Verdict { line: Some(line), ..self }
    }
}

/// Ratios of one scenario against their goals.
pub fn judge(scenario: &str, standings: &[Standing]) -> Vec<Verdict> {
    let mut verdicts = Vec::new();
    for standing in standings {
        let (most, line) = match standing.engine {
            // The budget does not speak of this one.
            Engine::Book if scenario == "move" => (BOOK_RATIO_MAX, None),
            Engine::Book => (BOOK_RATIO_MAX, Some(Line::Book)),
            Engine::Shard if scenario == "s100" => (SHARD_RATIO_MAX, Some(Line::Shard)),
            _ => continue,
        };
        if let Some(ratio) = standing.ratio() {
            let what = format!("{} on {scenario}", standing.engine.word());
            verdicts.push(Verdict { line, ..Verdict::at_most(&what, ratio, most, "× the floor") });
        }
    }
    verdicts
}
