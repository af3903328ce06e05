//! Memory, journal, restart and idle time; and simulations from files.

use std::path::{Path, PathBuf};
use std::time::Duration;

use clap::Args;
use pitlane_bench::budget::BudgetLine;
use pitlane_bench::conditions::Pinning;
use pitlane_bench::goals::{self, GoalVerdict};
use pitlane_bench::journal::{self, TempFolder};
use pitlane_bench::measure::{clock_ns, median, percentiles};
use pitlane_bench::{idle, memory, noise, simulate};

use crate::tasks::engines::generate;
use crate::{TaskError, TaskVerdicts};

/// Memory whose pages are accessed to measure what the first access costs.
const NOISE_BYTES: usize = 512 << 20;

#[derive(Args, Clone)]
pub(crate) struct JournalArgs {
    /// Operations of each round.
    #[arg(long, default_value_t = 500_000)]
    pub ops: u32,
    #[arg(long, default_value_t = 5)]
    pub rounds: usize,
    /// Milliseconds for each number of clients, in each round.
    #[arg(long, default_value_t = 400)]
    pub span_ms: u64,
    /// Folder of the files; its disk is what is measured.
    #[arg(long)]
    pub dir: Option<PathBuf>,
    /// Exit with 1 where a goal is missed.
    #[arg(long)]
    pub check: bool,
}

/// Prints what others take from the measuring core in each second, and what new memory costs.
pub(crate) fn show_noise(seconds: u64) -> TaskVerdicts {
    let stolen = noise::stolen_ticks();
    for _ in 0..seconds {
        println!("{}", noise::measure(Duration::from_secs(1)).line());
    }
    println!("stolen from all cores: {} ticks of 10 ms", noise::stolen_ticks() - stolen);
    let [first, again] = [(); 2].map(|()| noise::first_access_ns(NOISE_BYTES));
    println!("first access to a page of memory: {first:.0} ns, and {again:.0} ns where it was used before");
    TaskVerdicts::default()
}

pub(crate) fn simulation(ticks: u64, rounds: usize) -> Result<TaskVerdicts, TaskError> {
    let outcome = simulate::run(ticks, rounds)?;
    println!(
        "simulate: {ticks} ticks, moving-average cross; best {:.2}, median {:.2} million ticks/s; {} orders; hash {:016x}",
        outcome.best / 1e6,
        outcome.median / 1e6,
        outcome.orders,
        outcome.hash
    );
    let goal = GoalVerdict::at_least(
        "simulate",
        outcome.best / 1e6,
        goals::SIMULATE_MILLIONS_MIN,
        "million ticks/s",
    );
    Ok(TaskVerdicts { wrong: !outcome.repeats, goals: vec![goal] })
}

/// Measures the binary as it is started by default.
pub(crate) fn idle_service(starts: usize, seconds: u64) -> Result<TaskVerdicts, TaskError> {
    let idle = idle::measure(starts, Duration::from_secs(seconds))?;
    println!(
        "idle: {:.3} s from the start to the first line; {:.2} % of a core without clients; {:.0} MiB in memory",
        idle.start_s,
        100.0 * idle.core_fraction,
        idle.resident_bytes as f64 / (1 << 20) as f64
    );
    let goals = vec![
        GoalVerdict::at_most("idle", 100.0 * idle.core_fraction, goals::IDLE_PERCENT_MAX, "% of a core")
            .of(BudgetLine::Idle),
        GoalVerdict::at_most("start", idle.start_s, goals::START_S_MAX, "s").of(BudgetLine::Start),
    ];
    Ok(TaskVerdicts { wrong: false, goals })
}

pub(crate) fn open_orders_memory(open: u32) -> TaskVerdicts {
    let Some(memory) = memory::open_orders(open) else {
        println!("memory: this system does not report it");
        return TaskVerdicts::default();
    };
    let mib = |bytes: u64| bytes as f64 / (1 << 20) as f64;
    println!(
        "memory: {} orders open; {:.0} MiB grown, {:.0} MiB the whole process; {:.0} bytes an order",
        memory.outcome.resting_orders,
        mib(memory.bytes),
        mib(memory.process_bytes),
        memory.bytes as f64 / open.max(1) as f64
    );
    let goal = GoalVerdict::at_most(
        "memory of the process",
        mib(memory.process_bytes),
        mib(goals::MEMORY_BYTES_MAX),
        "MiB",
    )
    .of(BudgetLine::Memory);
    TaskVerdicts { wrong: memory.outcome.resting_orders != open as u64, goals: vec![goal] }
}

/// Numbers of clients with one order in flight each.
const CLIENTS: [usize; 3] = [1, 8, 64];

/// Runs with and without a journal in alternation, and likewise a sync for each order and a shared
/// one.
pub(crate) fn journal_cost(pinning: &Pinning, task: &JournalArgs) -> Result<TaskVerdicts, TaskError> {
    let folder = TempFolder::new(task.dir.as_deref());
    let workload = generate("s100", Some(task.ops))?;
    println!("files in {}\n", folder.path().display());
    let (mut added, mut means, mut wrong) = (Vec::new(), Vec::new(), false);
    for _ in 0..task.rounds.max(1) {
        let plain = journal::without_journal(&workload);
        let journaled = journal::with_journal(&workload, &folder, pinning, false)?;
        let (without, with) = (plain.ns_per_op, journaled.ns_per_op);
        println!("shard {without:.1} ns per operation, with level os {with:.1}; {} waits", journaled.waits);
        means.push(journaled.ns_per_op - plain.ns_per_op);
        wrong |= journaled.outcome != workload.expected || plain.outcome != workload.expected;
        let timed = journal::with_journal(&workload, &folder, pinning, true)?;
        println!("{}", percentiles("append", &timed.appends));
        added.push(timed.appends.value_at_quantile(0.5).saturating_sub(clock_ns()) as f64);
    }
    println!("\nlevel os adds {:.0} ns at the mean, caches that it fills included", median(&means));
    let span = Duration::from_millis(task.span_ms);
    let mut rates: [Vec<f64>; CLIENTS.len() + 1] = Default::default();
    for _ in 0..task.rounds.max(1) {
        rates[CLIENTS.len()].push(journal::sync_each(span, &folder)?);
        for (rates, clients) in rates.iter_mut().zip(CLIENTS) {
            rates.push(journal::group_commit(clients, span, &folder, pinning, &workload)?);
        }
    }
    let each = median(&rates[CLIENTS.len()]);
    println!("\nlevel disk: one sync for each order {each:.0} orders/s");
    for (rates, clients) in rates.iter().zip(CLIENTS) {
        let rate = median(rates);
        println!("level disk: {clients:>2} clients {rate:.0} orders/s, {:.1} ×", rate / each);
    }
    let goal = GoalVerdict::at_most("added at the median", median(&added), goals::JOURNAL_NS_MAX, "ns");
    Ok(TaskVerdicts { wrong, goals: vec![goal.of(BudgetLine::Journal)] })
}

pub(crate) fn recovery(orders: u32, dir: Option<&Path>) -> Result<TaskVerdicts, TaskError> {
    let folder = TempFolder::new(dir);
    let restart = journal::restart(orders, &folder)?;
    println!(
        "restart: {} open orders, journal of {:.0} MiB; {:.3} s from the journal alone, {:.3} s from a snapshot and {} records",
        restart.orders,
        restart.bytes as f64 / (1 << 20) as f64,
        restart.seconds_from_journal,
        restart.seconds_from_snapshot,
        restart.tail
    );
    let goals = vec![
        GoalVerdict::at_most(
            "start from a snapshot",
            restart.seconds_from_snapshot,
            goals::RESTART_FROM_SNAPSHOT_S_MAX,
            "s",
        ),
        GoalVerdict::at_most(
            "start from the journal",
            restart.seconds_from_journal,
            goals::RESTART_FROM_JOURNAL_S_MAX,
            "s",
        ),
    ];
    Ok(TaskVerdicts { wrong: !restart.right, goals })
}
