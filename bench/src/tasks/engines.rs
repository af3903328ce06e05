//! Engines over a flow of orders: one alone, and all compared with each other; the read model
//! behind them.

use std::path::{Path, PathBuf};

use clap::Args;
use pitlane_bench::comparison::{Engine, RESULT_HEADER, compare_engines};
use pitlane_bench::goals;
use pitlane_bench::read_model;
use pitlane_bench::scenario::Scenario;
use pitlane_bench::workload::{RecordKind, Workload};

use crate::{TaskError, TaskVerdicts};

/// Source of a flow.
#[derive(Args, Clone, Default)]
pub(crate) struct FlowArgs {
    /// A workload file, made here or elsewhere.
    #[arg(long, conflicts_with = "scenario")]
    pub workload: Option<PathBuf>,
    /// s1, s100, s10k or move, generated for this run. Default: s100.
    #[arg(long)]
    pub scenario: Option<String>,
    /// Timed operations of a scenario, instead of its own number.
    #[arg(long)]
    pub ops: Option<u32>,
    /// Passes for throughput; the best one is printed beside the median.
    #[arg(long, default_value_t = 5)]
    pub rounds: usize,
}

#[derive(Args, Clone)]
pub(crate) struct EnginesArgs {
    /// A workload file instead of scenarios.
    #[arg(long, conflicts_with = "scenario")]
    pub workload: Option<PathBuf>,
    /// s1, s100, s10k or move; may be given more than once. Default: all.
    #[arg(long)]
    pub scenario: Vec<String>,
    #[arg(long)]
    pub ops: Option<u32>,
    #[arg(long, default_value_t = 5)]
    pub rounds: usize,
    /// Only these engines; the floor should be among them.
    #[arg(long, value_enum)]
    pub engine: Vec<Engine>,
    /// Exit with 1 where a goal is missed.
    #[arg(long)]
    pub check: bool,
}

impl FlowArgs {
    pub(crate) fn load(&self) -> Result<Workload, TaskError> {
        match &self.workload {
            Some(path) => read(path),
            None => generate(self.scenario.as_deref().unwrap_or("s100"), self.ops),
        }
    }
}

fn read(path: &Path) -> Result<Workload, TaskError> {
    let workload = Workload::read(path).map_err(|error| format!("{}: {error}", path.display()))?;
    describe(&path.display().to_string(), &workload);
    Ok(workload)
}

pub(crate) fn generate(name: &str, ops: Option<u32>) -> Result<Workload, TaskError> {
    let scenario = Scenario::named(name)
        .ok_or_else(|| format!("no scenario {name}; there are {}", Scenario::NAMES.join(", ")))?;
    let scenario = Scenario { ops: ops.unwrap_or(scenario.ops), ..scenario };
    let workload = scenario.generate();
    describe(name, &workload);
    Ok(workload)
}

fn describe(name: &str, workload: &Workload) {
    let ops = workload.timed.len().max(1) as f64;
    println!(
        "{name}: {} securities, pre-fill {}, {} operations, seed {}",
        workload.securities,
        workload.prefill.len(),
        workload.timed.len(),
        workload.seed
    );
    let shares = RecordKind::ALL.map(|kind| {
        let count = workload.timed.iter().filter(|record| record.kind == kind).count();
        format!("{} {:.1} %", kind.name(), 100.0 * count as f64 / ops)
    });
    println!("mix: {}; {:.3} trades per operation", shares.join(", "), workload.expected.trades as f64 / ops);
    println!("expected: {}", workload.expected);
}

pub(crate) fn make(name: &str, ops: Option<u32>, out: &Path) -> Result<TaskVerdicts, TaskError> {
    let workload = generate(name, ops)?;
    workload.write(out).map_err(|error| format!("{}: {error}", out.display()))?;
    println!("written to {}", out.display());
    Ok(TaskVerdicts::default())
}

/// Runs one engine: throughput over rounds, then percentiles by kind.
pub(crate) fn single(engine: Engine, flow: &FlowArgs) -> Result<TaskVerdicts, TaskError> {
    let workload = flow.load()?;
    let results = compare_engines(&workload, &[engine], flow.rounds.max(1), |_, _, _| {});
    println!("\n{RESULT_HEADER}");
    results.iter().for_each(|result| println!("{result}"));
    let latencies = engine.latencies(&workload);
    println!();
    latencies.lines().iter().for_each(|line| println!("{line}"));
    let outcome = if latencies.outcome == workload.expected { results[0].outcome } else { latencies.outcome };
    println!("\noutcome: {outcome}");
    let wrong = outcome != workload.expected;
    if wrong {
        println!("WRONG: the workload expects {}", workload.expected);
    }
    Ok(TaskVerdicts { wrong, goals: Vec::new() })
}

pub(crate) fn engines(rounds: &EnginesArgs) -> Result<TaskVerdicts, TaskError> {
    let mut verdicts = TaskVerdicts::default();
    if let Some(path) = &rounds.workload {
        engines_on("file", &read(path)?, rounds, &mut verdicts);
        return Ok(verdicts);
    }
    let all: Vec<String> = Scenario::NAMES.map(String::from).to_vec();
    let names = if rounds.scenario.is_empty() { &all } else { &rounds.scenario };
    for name in names {
        engines_on(name, &generate(name, rounds.ops)?, rounds, &mut verdicts);
    }
    Ok(verdicts)
}

fn engines_on(name: &str, workload: &Workload, rounds: &EnginesArgs, verdicts: &mut TaskVerdicts) {
    let engines = if rounds.engine.is_empty() { Engine::USUAL } else { &rounds.engine };
    let results = compare_engines(workload, engines, rounds.rounds.max(1), |_, _, _| {});
    println!("{RESULT_HEADER}");
    results.iter().for_each(|result| println!("{result}"));
    for result in results.iter().filter(|result| !result.right) {
        println!("{} reached: {}", result.engine.name(), result.outcome);
        verdicts.wrong |= result.engine.is_ours();
    }
    println!();
    verdicts.goals.extend(goals::judge(name, &results));
}

pub(crate) fn view(workload: &Workload) -> TaskVerdicts {
    let applied = read_model::apply(workload);
    let (published, applied_seq) = applied.seq;
    println!(
        "read model: {:.1} ns per event, {} events, {:.2} per operation\n",
        applied.ns_per_event,
        applied.events,
        applied.events as f64 / workload.timed.len().max(1) as f64
    );
    TaskVerdicts { wrong: published != applied_seq, goals: Vec::new() }
}
