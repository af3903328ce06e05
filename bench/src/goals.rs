//! The goals of the performance budget that this bench can judge. `--check` fails where one is
//! missed.

use serde::Serialize;

use crate::budget::BudgetLine;
use crate::comparison::{Engine, EngineResult};

/// Highest time of the book alone relative to the floor, on every scenario.
pub const BOOK_RATIO_MAX: f64 = 1.5;
/// Highest time of the whole shard relative to the floor, on `s100`.
pub const SHARD_RATIO_MAX: f64 = 6.0;
/// Most nanoseconds that a lane with a shard behind it may add to the bare ring, at the median.
pub const LANE_NS_MAX: f64 = 300.0;
/// Highest time of our lane relative to the bare ring that it is built on.
pub const RING_RATIO_MAX: f64 = 1.2;
/// Most that the stage timestamps may add to a command's time from lane to lane, in percent.
pub const STAGES_PERCENT_MAX: f64 = 2.0;
/// Highest time of a GET of a 2 KB list, relative to hyper serving the same bytes from memory.
pub const HTTP_RATIO_MAX: f64 = 1.15;
/// Least orders per second over REST at level `os`, with the whole server on one core.
pub const REST_ORDERS_PER_S_MIN: f64 = 20_000.0;
/// Longest wait of a request, in milliseconds, while another client receives a list of 100,000
/// orders.
pub const BESIDE_LIST_MS_MAX: f64 = 5.0;
/// Most resident bytes of the process with a million open orders.
pub const MEMORY_BYTES_MAX: u64 = 1 << 30;
/// Highest memory of the last quarter of a long run relative to the second: more is growth, less is
/// what allocators hold back and return.
pub const GROWTH_RATIO_MAX: f64 = 1.02;
/// Highest 99th percentile of the last quarter relative to the second: the neighbours of a virtual
/// machine cause as much from minute to minute.
pub const DRIFT_RATIO_MAX: f64 = 1.5;
/// Most of a core, in percent, that the service takes with its default config and no clients.
pub const IDLE_PERCENT_MAX: f64 = 1.0;
/// Longest time from the start of the process to its first line, in seconds.
pub const START_S_MAX: f64 = 1.0;
/// Least ticks per second, in millions, through a simulation with the moving-average example.
pub const SIMULATE_MILLIONS_MIN: f64 = 2.0;

/// Most nanoseconds from the bytes of a New Order Single to fourteen typed fields.
pub const FIX_DECODE_NS_MAX: f64 = 150.0;
/// Highest time of the same relative to `fefix`.
pub const FIX_DECODE_PEER_RATIO_MAX: f64 = 0.25;
/// Lowest rate of FIX orders at full load, order to first Execution Report, relative to an acceptor
/// on QuickFIX with its store in memory.
pub const FIX_PEER_RATIO_MIN: f64 = 6.0;
/// The same in orders per second, with all threads of the service on one core.
pub const FIX_PER_S_MIN: f64 = 450_000.0;
/// Highest median latency of the same at 10,000 orders per second, relative to a bare echo of the
/// same bytes.
pub const FIX_ECHO_RATIO_MAX: f64 = 1.5;
/// The same of the 99th percentiles.
pub const FIX_ECHO_TAIL_RATIO_MAX: f64 = 2.0;
/// Highest median, in microseconds, from a FIX order that trades to its tick over STOMP.
pub const ORDER_TO_TICK_US_MAX: f64 = 20.0;
/// Highest median, in microseconds, from a FIX order to its first report at level `replicated`, at
/// 1,000 orders per second: a sync and a round trip to a broker on the same core.
pub const REPLICATED_US_MAX: f64 = 1_000.0;
/// Most nanoseconds that level `os` of the journal adds to an order.
pub const JOURNAL_NS_MAX: f64 = 100.0;
/// Longest start with a million orders, in seconds.
pub const RESTART_FROM_SNAPSHOT_S_MAX: f64 = 5.0;
pub const RESTART_FROM_JOURNAL_S_MAX: f64 = 30.0;

/// Number of consumers; least deliveries per second, in millions; highest median latency at 5,000
/// deliveries per second, in microseconds.
pub const STOMP: [(usize, f64, f64); 3] = [(1, 1.5, 20.0), (10, 3.2, 70.0), (100, 2.3, 450.0)];
/// Lowest rate of deliveries relative to NATS, with and without decoding.
pub const STOMP_PEER_RATIO_MIN: f64 = 1.0;

/// Highest 99th percentile of a healthy consumer beside two of ten that do not read, relative to
/// quiet, and the longest time without any delivery, in seconds.
pub const STALLED_RATIO_MAX: f64 = 1.1;
pub const SILENCE_S_MAX: f64 = 1.0;
/// Highest 99th percentile beside one consumer that has stopped, one with the smallest window and a
/// hundred that come and go, relative to quiet.
pub const NEIGHBOURS_RATIO_MAX: f64 = 2.0;
/// Highest 99th percentile of a well-behaved FIX client while others attack, relative to quiet.
pub const ATTACKED_RATIO_MAX: f64 = 2.0;
/// Most mebibytes that may wait for one consumer: the queue of 4 MiB, the watermark of 256 KiB, and
/// the frames of one cycle.
pub const QUEUED_MIB_MAX: f64 = 4.0 + 0.25 + 0.0625;

/// A goal, the measured value, and whether the value meets the goal.
#[derive(Clone, Debug, Serialize)]
pub struct GoalVerdict {
    pub met: bool,
    pub text: String,
    pub what: String,
    pub value: f64,
    pub unit: String,
    /// The line of the budget that the goal belongs to; `None`: a goal beyond the budget.
    pub line: Option<BudgetLine>,
}

impl GoalVerdict {
    pub fn at_least(what: &str, value: f64, least: f64, unit: &str) -> GoalVerdict {
        GoalVerdict::new(what, value, unit, value >= least, &format!("at least {least:.2}"))
    }

    pub fn at_most(what: &str, value: f64, most: f64, unit: &str) -> GoalVerdict {
        GoalVerdict::new(what, value, unit, value <= most, &format!("at most {most:.2}"))
    }

    fn new(what: &str, value: f64, unit: &str, met: bool, goal: &str) -> GoalVerdict {
        let word = if met { "met   " } else { "MISSED" };
        let text = format!("{word} {what}: {value:.2} {unit}, {goal}");
        GoalVerdict { met, text, what: what.to_string(), value, unit: unit.to_string(), line: None }
    }

    pub fn of(self, line: BudgetLine) -> GoalVerdict {
        GoalVerdict { line: Some(line), ..self }
    }
}

/// Compares the ratios of one scenario with their goals.
pub fn judge(scenario: &str, results: &[EngineResult]) -> Vec<GoalVerdict> {
    let mut verdicts = Vec::new();
    for result in results {
        let (most, line) = if result.engine == Engine::Book {
            // The budget has no line for the scenario `move`.
            (BOOK_RATIO_MAX, (scenario != "move").then_some(BudgetLine::Book))
        } else if result.engine == Engine::Shard && scenario == "s100" {
            (SHARD_RATIO_MAX, Some(BudgetLine::Shard))
        } else {
            continue;
        };
        if let Some(ratio) = result.ratio() {
            let what = format!("{} on {scenario}", result.engine.name());
            verdicts.push(GoalVerdict { line, ..GoalVerdict::at_most(&what, ratio, most, "× the floor") });
        }
    }
    verdicts
}
