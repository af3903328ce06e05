//! Comparison of builds, and the instructions of one.

use std::io::{IsTerminal, Write};
use std::path::PathBuf;

use clap::Args;
use pitlane_bench::gate;
use pitlane_bench::goals::GoalVerdict;
use pitlane_bench::instructions;
use pitlane_bench::work::MicroBench;

use crate::{TaskError, TaskVerdicts};

#[derive(Args, Clone)]
pub(crate) struct WorkArgs {
    #[arg(value_enum)]
    work: MicroBench,
    /// Number of repetitions.
    #[arg(long)]
    ops: Option<usize>,
}

#[derive(Args, Clone)]
pub(crate) struct GateArgs {
    /// The other build's `pitlane-bench`.
    #[arg(long)]
    base: PathBuf,
    #[arg(long, default_value_t = 7)]
    rounds: usize,
}

/// Prints only the number, for the process that started this one.
pub(crate) fn work(piece: &WorkArgs) -> TaskVerdicts {
    println!("{:.3}", piece.work.run(piece.ops.unwrap_or(piece.work.usual_ops())));
    TaskVerdicts::default()
}

/// Compares this build with another in alternating runs; slower beyond the noise is a failure.
pub(crate) fn gate(gate: &GateArgs) -> Result<TaskVerdicts, TaskError> {
    let new = std::env::current_exe()?;
    let shows = std::io::stderr().is_terminal();
    let works = gate::known_to(&gate.base)?;
    let all = gate::gate(&gate.base, &new, &works, gate.rounds.max(2), |round, work| {
        if shows {
            eprint!("\rround {} of {}: {work:<20}", round + 1, gate.rounds.max(2));
            let _ = std::io::stderr().flush();
        }
    })?;
    if shows {
        eprintln!();
    }
    println!("{:<16} {:>10} {:>10} {:>8} {:>8}", "work", "base ns", "new ns", "ratio", "noise");
    let mut goals = Vec::new();
    for comparison in &all {
        let (base, new, ratio, noise) =
            (comparison.base_ns(), comparison.new_ns(), comparison.ratio(), comparison.noise());
        println!("{:<16} {base:>10.1} {new:>10.1} {ratio:>8.3} {noise:>8.3}", comparison.work);
        if comparison.is_slower() {
            goals.push(GoalVerdict::at_most(&comparison.work.to_string(), ratio, noise, "× the base"));
        }
    }
    for work in MicroBench::ALL.iter().filter(|work| !works.contains(work)) {
        println!("{work:<16} left out: the base does not have it");
    }
    if goals.is_empty() {
        println!("\nnothing is slower beyond the noise of this machine");
    }
    Ok(TaskVerdicts { wrong: !goals.is_empty(), goals })
}

/// Counts the instructions of every piece of work, or of those named.
pub(crate) fn instructions(works: &[MicroBench]) -> Result<TaskVerdicts, TaskError> {
    let works = if works.is_empty() { &MicroBench::ALL } else { works };
    println!("instructions of one, by callgrind");
    for work in works {
        println!("{work:<16} {:>10.0}", instructions::count(*work)?);
    }
    Ok(TaskVerdicts::default())
}
