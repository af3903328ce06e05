//! Engines compared on one workload: interleaved rounds in rotating order, and ratios to the floor
//! of the same round.

use std::fmt;

use crate::bare_ladder::BareLadder;
use crate::book::VenueMatcher;
use crate::measure::{Latencies, Pass, highest, latencies, lowest, median, throughput};
use crate::naive::NaiveMatcher;
#[cfg(feature = "peers")]
use crate::peers::{lobster::Lobster, matchcore::Matchcore, orderbook_rs::OrderbookRs};
use crate::whole_shard::WholeShard;
use crate::workload::{FlowOutcome, Matcher, Workload};

#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub enum Engine {
    Naive,
    Floor,
    /// The engine's simulated venue alone.
    Book,
    /// Risk, order states, venue, positions and events.
    Shard,
    #[cfg(feature = "peers")]
    Matchcore,
    #[cfg(feature = "peers")]
    Lobster,
    #[cfg(feature = "peers")]
    OrderbookRs,
}

impl Engine {
    /// Returns whether a wrong outcome is a defect of this project.
    pub fn is_ours(self) -> bool {
        matches!(self, Engine::Naive | Engine::Floor | Engine::Book | Engine::Shard)
    }

    /// Engines that take part in a comparison unless others are named.
    pub const USUAL: &'static [Engine] = &[
        Engine::Floor,
        Engine::Book,
        Engine::Shard,
        #[cfg(feature = "peers")]
        Engine::Matchcore,
        #[cfg(feature = "peers")]
        Engine::Lobster,
        #[cfg(feature = "peers")]
        Engine::OrderbookRs,
    ];

    pub fn name(self) -> &'static str {
        match self {
            Engine::Naive => "naive",
            Engine::Floor => "floor",
            Engine::Book => "book",
            Engine::Shard => "shard",
            #[cfg(feature = "peers")]
            Engine::Matchcore => "matchcore",
            #[cfg(feature = "peers")]
            Engine::Lobster => "lobster",
            #[cfg(feature = "peers")]
            Engine::OrderbookRs => "orderbook-rs",
        }
    }

    pub fn throughput(self, workload: &Workload) -> Pass {
        self.on(workload, ThroughputPass(workload))
    }

    pub fn latencies(self, workload: &Workload) -> Latencies {
        self.on(workload, LatencyPass(workload))
    }

    /// Passes a new engine of this kind to `pass`. Each pair is compiled separately, so nothing is
    /// dispatched per operation.
    fn on<P: OnePass>(self, workload: &Workload, pass: P) -> P::Result {
        match self {
            Engine::Naive => pass.of(NaiveMatcher::default()),
            Engine::Floor => pass.of(BareLadder::new(workload)),
            Engine::Book => pass.of(VenueMatcher::new(workload)),
            Engine::Shard => pass.of(WholeShard::new(workload)),
            #[cfg(feature = "peers")]
            Engine::Matchcore => pass.of(Matchcore::new(workload)),
            #[cfg(feature = "peers")]
            Engine::Lobster => pass.of(Lobster::new(workload)),
            #[cfg(feature = "peers")]
            Engine::OrderbookRs => pass.of(OrderbookRs::new(workload)),
        }
    }
}

trait OnePass {
    type Result;
    fn of<M: Matcher>(self, matcher: M) -> Self::Result;
}

struct ThroughputPass<'a>(&'a Workload);

impl OnePass for ThroughputPass<'_> {
    type Result = Pass;

    fn of<M: Matcher>(self, matcher: M) -> Pass {
        throughput(self.0, matcher)
    }
}

struct LatencyPass<'a>(&'a Workload);

impl OnePass for LatencyPass<'_> {
    type Result = Latencies;

    fn of<M: Matcher>(self, matcher: M) -> Latencies {
        latencies(self.0, matcher)
    }
}

/// Results of the rounds of one engine.
#[derive(Clone, Debug)]
pub struct EngineResult {
    pub engine: Engine,
    /// Time on the core, in nanoseconds per operation, one for each round that the engine took part
    /// in.
    pub ns_per_op: Vec<f64>,
    /// The same by wall-clock time.
    pub wall_ns_per_op: Vec<f64>,
    /// Ratios to the floor of the same round; empty if the floor took no part.
    pub ratios: Vec<f64>,
    /// Outcome of the last round that differed, or the expected one.
    pub outcome: FlowOutcome,
    pub right: bool,
}

/// Limit in nanoseconds per operation beyond which a peer runs one round only: one round is enough
/// to judge it, and more would take too long.
const SLOW_NS_PER_OP: f64 = 2_000.0;

impl EngineResult {
    fn take(&mut self, workload: &Workload, pass: Pass) {
        self.ns_per_op.push(pass.ns_per_op);
        self.wall_ns_per_op.push(pass.wall_ns_per_op);
        if pass.outcome != workload.expected {
            self.outcome = pass.outcome;
            self.right = false;
        }
    }

    fn is_slow(&self) -> bool {
        !self.engine.is_ours() && self.ns_per_op.last().is_some_and(|&ns| ns > SLOW_NS_PER_OP)
    }

    pub fn ratio(&self) -> Option<f64> {
        (!self.ratios.is_empty()).then(|| median(&self.ratios))
    }
}

/// Runs the rounds. `after` is called after each pass, so that a long comparison can show its
/// progress.
pub fn compare_engines(
    workload: &Workload,
    engines: &[Engine],
    rounds: usize,
    mut after: impl FnMut(usize, Engine, Pass),
) -> Vec<EngineResult> {
    let fresh = |&engine| EngineResult {
        engine,
        ns_per_op: Vec::new(),
        wall_ns_per_op: Vec::new(),
        ratios: Vec::new(),
        outcome: workload.expected,
        right: true,
    };
    let mut results: Vec<EngineResult> = engines.iter().map(fresh).collect();
    for round in 0..rounds {
        let mut passes: Vec<(usize, f64)> = Vec::with_capacity(engines.len());
        for step in 0..engines.len() {
            let at = (step + round) % engines.len();
            let result = &mut results[at];
            if result.is_slow() {
                continue;
            }
            let pass = result.engine.throughput(workload);
            result.take(workload, pass);
            passes.push((at, pass.ns_per_op));
            after(round, result.engine, pass);
        }
        let floor = passes.iter().find(|(at, _)| engines[*at] == Engine::Floor).map(|(_, ns)| *ns);
        let Some(floor) = floor else { continue };
        passes.iter().for_each(|(at, ns)| results[*at].ratios.push(ns / floor));
    }
    results
}

impl fmt::Display for EngineResult {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (best, worst) = (lowest(&self.ns_per_op), highest(&self.ns_per_op));
        let (name, middle) = (self.engine.name(), median(&self.ns_per_op));
        let wall = median(&self.wall_ns_per_op);
        write!(f, "{name:<13} {middle:>9.1} {best:>9.1} {worst:>9.1} {wall:>9.1}")?;
        match self.ratio() {
            Some(ratio) => write!(f, " {ratio:>8.2}")?,
            None => write!(f, " {:>8}", "-")?,
        }
        write!(f, " {:>7}   {}", self.ns_per_op.len(), if self.right { "as expected" } else { "WRONG" })
    }
}

pub const RESULT_HEADER: &str =
    "engine        ns/op p50      best     worst      wall  × floor  rounds   outcome";

#[cfg(test)]
mod tests {
    use super::*;
    use crate::convert::workload_u32;
    use crate::rng::Xoshiro256;
    use crate::scenario::Scenario;
    use crate::workload::{PRICE_MAX, RecordKind, WorkloadRecord, WorkloadSide};

    #[test]
    fn our_engines_reach_the_expected_outcome() {
        for name in Scenario::NAMES {
            let scenario = Scenario { ops: 20_000, open: 1_000, ..Scenario::named(name).unwrap() };
            let workload = scenario.generate();
            for engine in [Engine::Naive, Engine::Floor, Engine::Book, Engine::Shard] {
                assert_eq!(engine.throughput(&workload).outcome, workload.expected, "{name}");
                assert_eq!(engine.latencies(&workload).outcome, workload.expected, "{name}");
            }
        }
    }

    /// Returns a workload with prices across the whole range, as no market has them and a foreign
    /// file may.
    fn with_any_prices(seed: u64) -> Workload {
        let mut rng = Xoshiro256::seeded(seed);
        let timed = (0..3_000).map(|number| {
            let kind = RecordKind::ALL[rng.index(5)];
            WorkloadRecord {
                kind,
                side: if rng.happens(0.5) { WorkloadSide::Buy } else { WorkloadSide::Sell },
                security: workload_u32(rng.below(3)),
                order: if kind.enters() { number } else { rng.below(number + 1) },
                price: workload_u32(rng.below(PRICE_MAX as u64 + 1)).cast_signed(),
                qty: 1 + workload_u32(rng.below(9)),
            }
        });
        let mut workload = Workload {
            securities: 3,
            seed,
            order_id_max: 3_000,
            prefill: Vec::new(),
            timed: timed.collect(),
            expected: FlowOutcome::default(),
        };
        workload.expected = workload.run(&mut NaiveMatcher::default());
        workload
    }

    #[test]
    fn the_engines_agree_on_any_prices() {
        for seed in 0..20 {
            let workload = with_any_prices(seed);
            assert!(workload.expected.trades > 100 && workload.expected.unknown > 100);
            for engine in [Engine::Floor, Engine::Book, Engine::Shard] {
                let outcome = engine.throughput(&workload).outcome;
                assert_eq!(outcome, workload.expected, "{} with seed {seed}", engine.name());
            }
        }
    }

    /// Where a peer is known to differ, the README describes how; this one agrees on every
    /// scenario.
    #[cfg(feature = "peers")]
    #[test]
    fn a_peer_reaches_the_expected_outcome() {
        for name in Scenario::NAMES {
            let scenario = Scenario { ops: 5_000, open: 1_000, ..Scenario::named(name).unwrap() };
            let workload = scenario.generate();
            assert_eq!(Engine::Lobster.throughput(&workload).outcome, workload.expected, "{name}");
        }
    }

    #[test]
    fn ratios_are_to_the_floor_of_the_same_round() {
        let scenario = Scenario { ops: 1_000, open: 100, ..Scenario::named("s1").unwrap() };
        let mut order = Vec::new();
        let engines = [Engine::Naive, Engine::Floor];
        let results = compare_engines(&scenario.generate(), &engines, 2, |_, engine, _| order.push(engine));
        assert_eq!(order, [Engine::Naive, Engine::Floor, Engine::Floor, Engine::Naive]);
        assert_eq!(results[1].ratio(), Some(1.0));
        assert!(results.iter().all(|result| result.right && result.ratios.len() == 2));
    }
}
