//! FIX: the codec alone, and the whole service over loopback compared with a bare echo and an
//! acceptor on QuickFIX.

use std::path::PathBuf;

use clap::Args;
use pitlane_bench::budget::BudgetLine;
use pitlane_bench::fix;
use pitlane_bench::fix_wire::{FixServerKind, SteadyLoad, closed_loop, full_load, open_loop};
use pitlane_bench::goals::{self, GoalVerdict};
use pitlane_bench::measure::{lowest, median};
use pitlane_bench::platform;
use pitlane_bench::report::recording::Recording;

use super::results::write_results;
use super::{NO_SECOND_CORE, RunEnvironment};
use crate::{TaskError, TaskVerdicts};

#[derive(Args, Clone)]
pub(crate) struct FixCodecArgs {
    /// Messages of each round.
    #[arg(long, default_value_t = 500_000)]
    pub ops: usize,
    #[arg(long, default_value_t = 7)]
    pub rounds: usize,
    /// Exit with 1 where a goal is missed.
    #[arg(long)]
    pub check: bool,
}

#[derive(Args, Clone)]
pub(crate) struct FixArgs {
    /// Sessions at full load.
    #[arg(long, default_value_t = 4)]
    pub sessions: usize,
    /// Orders of each session at full load; at most 100,000 of them stay open.
    #[arg(long, default_value_t = 90_000)]
    pub orders: usize,
    /// Orders at 10,000 a second.
    #[arg(long, default_value_t = 30_000)]
    pub steady: usize,
    #[arg(long, default_value_t = 3)]
    pub rounds: usize,
    /// Without QuickFIX.
    #[arg(long)]
    pub alone: bool,
    /// Also send one order at a time, each when the previous one was answered.
    #[arg(long)]
    pub closed: bool,
    /// Folder for the latencies at 10,000 a second: `.hgrm`, JSON, SVG and a page, with the
    /// server's own stages.
    #[arg(long)]
    pub out: Option<PathBuf>,
    /// Exit with 1 where a goal is missed.
    #[arg(long)]
    pub check: bool,
}

/// Orders per second of the steady load.
const FIX_RATE: u64 = 10_000;

pub(crate) fn fix_codec(codec: &FixCodecArgs) -> TaskVerdicts {
    let result = fix::codec(&platform::reference(1), codec.ops, codec.rounds, None);
    println!(
        "fix codec: {:.0} ns to read a New Order Single of {} bytes into 14 typed fields ({:.0} ns with validation), \
         {:.0} ns to write an Execution Report of {} bytes; {} of each, hash {:016x}",
        result.decode_ns,
        result.bytes_in,
        result.validated_ns,
        result.encode_ns,
        result.bytes_out,
        codec.ops,
        result.hash
    );
    let goals = vec![
        GoalVerdict::at_most("fix decode", result.decode_ns, goals::FIX_DECODE_NS_MAX, "ns")
            .of(BudgetLine::Decode),
    ];
    TaskVerdicts { wrong: !result.agree, goals }
}

/// Runs all servers in alternation, so that they meet the same conditions.
pub(crate) fn fix_over_loopback(
    environment: &RunEnvironment,
    wire: &FixArgs,
) -> Result<TaskVerdicts, TaskError> {
    let pinning = &environment.pinning;
    if !pinning.has_two_cores() {
        println!("fix {NO_SECOND_CORE}");
        return Ok(TaskVerdicts::default());
    }
    let (mut ours, mut bare, mut steady) = (Vec::new(), Vec::new(), Vec::new());
    let (mut closed_ours, mut closed_bare) = (Vec::new(), Vec::new());
    let (mut theirs, mut theirs_one_report, mut theirs_in_files) = (Vec::new(), Vec::new(), Vec::new());
    let load = SteadyLoad { rate: FIX_RATE, orders: wire.steady, open_max: None };
    let peer = |reports, files| {
        full_load(FixServerKind::QuickFix { reports, files }, pinning, wire.sessions, wire.orders / 4)
    };
    let mut is_alone = wire.alone;
    for _ in 0..wire.rounds.max(1) {
        ours.push(full_load(FixServerKind::Pitlane, pinning, wire.sessions, wire.orders)?);
        match if is_alone { None } else { Some(peer(2, false)) } {
            Some(Ok(rate)) => {
                theirs.push(rate);
                theirs_one_report.push(peer(1, false)?);
                theirs_in_files.push(peer(2, true)?);
            }
            Some(Err(reason)) => {
                println!("QuickFIX is left out: {reason}");
                is_alone = true;
            }
            None => {}
        }
        bare.push(open_loop(FixServerKind::Echo, pinning, load, |_, _| {})?);
        steady.push(open_loop(FixServerKind::Pitlane, pinning, load, |_, _| {})?);
        if wire.closed {
            closed_bare.push(closed_loop(FixServerKind::Echo, pinning, wire.steady)?);
            closed_ours.push(closed_loop(FixServerKind::Pitlane, pinning, wire.steady)?);
        }
    }
    let FixArgs { sessions, orders, .. } = wire;
    let rate = median(&ours);
    let worst = lowest(&ours);
    println!(
        "fix flat out: {rate:.0} orders/s (worst round {worst:.0}), order to first report, {sessions} sessions of {orders} orders, journal os"
    );
    let at = |rounds: &[Recording], quantile: f64| {
        let nth = rounds.iter().map(|round| round.all.value_at_quantile(quantile) as f64);
        median(&nth.collect::<Vec<_>>()) / 1_000.0
    };
    let mut goals = vec![
        GoalVerdict::at_least("fix on one core", rate, goals::FIX_PER_S_MIN, "orders/s")
            .of(BudgetLine::FixRate),
    ];
    if !theirs.is_empty() {
        let [peer, one_report, in_files] =
            [&theirs, &theirs_one_report, &theirs_in_files].map(|rates| median(rates));
        println!("QuickFIX 1.15, no dictionary, orders/s and how many times as many are ours:");
        println!("  two reports for each order as we send them, in memory {peer:.0}, {:.2} ×", rate / peer);
        println!("  two reports, kept in files as ours are {in_files:.0}, {:.2} ×", rate / in_files);
        println!("  one report, in memory {one_report:.0}, {:.2} ×", rate / one_report);
        let verdict =
            GoalVerdict::at_least("fix flat out", rate / peer, goals::FIX_PEER_RATIO_MIN, "× QuickFIX");
        goals.push(verdict.of(BudgetLine::FixRateBeside));
    }
    let open = format!("at {FIX_RATE} orders/s");
    let closed = "closed loop".to_string();
    let shown = [
        ("fix", &open, &steady),
        ("bare echo", &open, &bare),
        ("fix", &closed, &closed_ours),
        ("bare echo", &closed, &closed_bare),
    ];
    for (name, load, took) in shown.into_iter().filter(|(_, _, took)| !took.is_empty()) {
        println!(
            "{name} {load}: {:.1} µs at the median, {:.1} at 99 %, {:.1} at 99.9 %",
            at(took, 0.5),
            at(took, 0.99),
            at(took, 0.999)
        );
    }
    let beside = |quantile: f64| at(&steady, quantile) / at(&bare, quantile);
    let p50 =
        GoalVerdict::at_most("fix at a steady rate", beside(0.5), goals::FIX_ECHO_RATIO_MAX, "× a bare echo");
    let p99 = GoalVerdict::at_most(
        "fix at a steady rate, p99",
        beside(0.99),
        goals::FIX_ECHO_TAIL_RATIO_MAX,
        "× a bare echo",
    );
    goals.extend([p50.of(BudgetLine::FixLatency), p99.of(BudgetLine::FixTail)]);
    if let (Some(out), Some(ours), Some(echo)) = (&wire.out, steady.last(), bare.last()) {
        write_results(out, environment, "FIX order to first report, the last round", &[ours, echo], &goals)?;
    }
    Ok(TaskVerdicts { wrong: false, goals })
}
