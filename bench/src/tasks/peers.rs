//! Pitlane and every peer that is available on this machine, in one run: the same load in
//! alternation, one table and one drawing.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use clap::Args;
use pitlane_bench::brokers::{self, BrokerProcess};
use pitlane_bench::comparison::{Engine, compare_engines};
use pitlane_bench::conditions::Pinning;
use pitlane_bench::fan_out;
use pitlane_bench::fix_wire::{FixServerKind, full_load};
use pitlane_bench::http::{self, server};
use pitlane_bench::measure::median;
use pitlane_bench::nats::NatsServer;
use pitlane_bench::peer_table::{ComparisonRow, ComparisonTable};
use pitlane_bench::report::bars;
use pitlane_bench::report::folder::ResultFolder;
use pitlane_bench::scenario::Scenario;
use pitlane_bench::tick_reader::BodyReader;
use pitlane_bench::{nautilus, platform, program, stomp};

use super::RunEnvironment;
use crate::{TaskError, TaskVerdicts};

#[derive(Args, Clone)]
pub(crate) struct CompareArgs {
    #[arg(long, default_value_t = 3)]
    rounds: usize,
    /// Milliseconds of each measurement of a broker.
    #[arg(long, default_value_t = 2_000)]
    ms: u64,
    /// Orders of each of four FIX sessions; a quarter of them for QuickFIX.
    #[arg(long, default_value_t = 90_000)]
    orders: usize,
    /// Requests of each round over HTTP.
    #[arg(long, default_value_t = 20_000)]
    requests: usize,
    /// Operations of each engine.
    #[arg(long, default_value_t = 300_000)]
    ops: u32,
    /// Ticks of each simulation compared with NautilusTrader.
    #[arg(long, default_value_t = 400_000)]
    ticks: u64,
    /// Folder for the table as JSON and for the drawing.
    #[arg(long, default_value = "target/compare")]
    out: PathBuf,
}

const CONSUMERS: [usize; 3] = [1, 10, 100];
const SESSIONS: usize = 4;
const CONNECTIONS: usize = 16;

pub(crate) fn compare(environment: &RunEnvironment, task: &CompareArgs) -> Result<TaskVerdicts, TaskError> {
    let pinning = &environment.pinning;
    if !pinning.has_two_cores() {
        return Err("a server and its load need two cores, and this machine has one".into());
    }
    let mut table = ComparisonTable::default();
    engines(task, &mut table);
    orders_over_fix(pinning, task, &mut table)?;
    lists_over_http(pinning, task, &mut table)?;
    fan_outs(pinning, task, &mut table)?;
    simulations(task, &mut table);
    table.absent.push("fefix takes a quarter of an hour to build: make oracle".into());
    println!("{table}");
    let folder = ResultFolder::make(&task.out, &environment.conditions)?;
    folder.draw("compare", &bars::ratios("How many times as fast", folder.notes(), &table.ratios()))?;
    std::fs::write(task.out.join("compare.json"), serde_json::to_vec_pretty(&table)?)?;
    folder.close(&environment.conditions, &environment.noise, &[])?;
    println!("drawn into {}", task.out.join("compare.svg").display());
    Ok(TaskVerdicts::default())
}

/// Compares order books. Those of others have no risk checks, accounts or positions, so they are
/// compared with our book alone.
fn engines(task: &CompareArgs, table: &mut ComparisonTable) {
    let Some(scenario) = Scenario::named("s100") else { return };
    let workload = Scenario { ops: task.ops, ..scenario }.generate();
    let results = compare_engines(&workload, Engine::USUAL, task.rounds.max(1), |_, _, _| {});
    let of = |engine| results.iter().find(|result| result.engine == engine);
    let Some(book) = of(Engine::Book).map(|book| median(&book.ns_per_op)) else { return };
    for result in &results {
        let lacks = if result.engine == Engine::Floor {
            "accounts, trades with oneself"
        } else if result.right {
            ""
        } else {
            "give the right outcome"
        };
        let is_compared = result.engine == Engine::Floor || !result.engine.is_ours();
        if is_compared {
            let theirs = median(&result.ns_per_op);
            let row = ComparisonRow::of_time("order book, s100", "ns", book, result.engine.name(), theirs);
            table.rows.push(row.lacking(lacks));
        }
    }
    if cfg!(not(feature = "peers")) {
        table
            .absent
            .push("matchcore, lobster, orderbook-rs, may_minihttp: build with --features peers".into());
    }
}

/// Compares simulations with the same ticks and the same moving-average cross.
fn simulations(task: &CompareArgs, table: &mut ComparisonTable) {
    match nautilus::compare(task.ticks, task.rounds) {
        Ok(comparison) => {
            let peer = format!("NautilusTrader {}, run alone", comparison.version);
            let row =
                ComparisonRow::of_rate("simulation", "ticks/s", comparison.ours, &peer, comparison.theirs);
            table.rows.push(row.lacking("read the file: its ticks are objects before; check risk"));
            println!(
                "simulation: {} orders of ours, {} of NautilusTrader; it makes {:.0} ticks/s with the reading of the file, as ours has it",
                comparison.our_orders, comparison.their_orders, comparison.theirs_with_reading
            );
        }
        Err(reason) => table.absent.push(format!("NautilusTrader: {reason}")),
    }
}

fn orders_over_fix(
    pinning: &Pinning,
    task: &CompareArgs,
    table: &mut ComparisonTable,
) -> Result<(), TaskError> {
    const LACKS: &str = "risk, order states, market, journal of orders";
    let peers = [
        (FixServerKind::QuickFix { reports: 2, files: false }, "QuickFIX, both reports"),
        (FixServerKind::QuickFix { reports: 2, files: true }, "QuickFIX, both, kept in files"),
        (FixServerKind::QuickFix { reports: 1, files: false }, "QuickFIX, one report"),
    ];
    let (mut ours, mut theirs) = (Vec::new(), vec![Vec::new(); peers.len()]);
    for _ in 0..task.rounds.max(1) {
        ours.push(full_load(FixServerKind::Pitlane, pinning, SESSIONS, task.orders)?);
        for ((peer, _), rates) in peers.iter().zip(&mut theirs) {
            match full_load(*peer, pinning, SESSIONS, task.orders / 4) {
                Ok(rate) => rates.push(rate),
                Err(reason) => {
                    table.absent.push(format!("QuickFIX: {reason}"));
                    return Ok(());
                }
            }
        }
    }
    for ((_, name), rates) in peers.iter().zip(&theirs) {
        let row =
            ComparisonRow::of_rate("FIX order to first report", "1/s", median(&ours), name, median(rates));
        table.rows.push(row.lacking(LACKS));
    }
    Ok(())
}

fn lists_over_http(
    pinning: &Pinning,
    task: &CompareArgs,
    table: &mut ComparisonTable,
) -> Result<(), TaskError> {
    for comparison in http::compare(pinning, task.requests, CONNECTIONS, task.rounds.max(1))? {
        let Some((ours, others)) = comparison.times.split_first() else { continue };
        for (kind, theirs) in others {
            let what = format!("GET {}", comparison.path);
            let row = ComparisonRow::of_time(&what, "ns", ours.1, kind.name(), *theirs);
            table.rows.push(row.lacking("make the answer: it has it in memory"));
        }
    }
    if server::HttpServerKind::bare().all(|kind| kind != server::HttpServerKind::Nginx) {
        table.absent.push(program::absent("nginx", "nginx-light"));
    }
    Ok(())
}

fn fan_outs(pinning: &Pinning, task: &CompareArgs, table: &mut ComparisonTable) -> Result<(), TaskError> {
    const LACKS: &str = "render, conflate, last values";
    const READERS: [BodyReader; 2] = [BodyReader::None, BodyReader::SimdJson];
    let (reference, time) = (Arc::new(platform::reference(100)), Duration::from_millis(task.ms));
    let payload = stomp::json_tick(&reference);
    let nats = NatsServer::start(pinning);
    if nats.is_none() {
        table.absent.push(program::absent("NATS", "nats-server"));
    }
    let mut others = Vec::new();
    for kind in brokers::BrokerKind::ALL {
        match BrokerProcess::start(kind, pinning) {
            Ok(broker) => {
                // The JIT compiler of a broker finishes before anything is counted.
                broker.throughput(CONSUMERS[1], &payload, BodyReader::None, time)?;
                others.push((kind, broker));
            }
            Err(reason) => table.absent.push(reason),
        }
    }
    // Bare delivery, and with consumers that decode every tick.
    for (consumers, body) in CONSUMERS.into_iter().flat_map(|count| READERS.map(|body| (count, body))) {
        let (mut ours, mut of_nats, mut of_others) = (Vec::new(), Vec::new(), vec![Vec::new(); others.len()]);
        let mut sbe = Vec::new();
        for _ in 0..task.rounds.max(1) {
            ours.push(fan_out::throughput(pinning, &reference, consumers, body, time));
            if body != BodyReader::None {
                sbe.push(fan_out::throughput(pinning, &reference, consumers, BodyReader::Sbe, time));
            }
            of_nats.extend(nats.iter().map(|nats| nats.throughput(consumers, &payload, body, time)));
            for ((_, broker), rates) in others.iter().zip(&mut of_others) {
                rates.push(broker.throughput(consumers, &payload, body, time)?);
            }
        }
        let named = others.iter().map(|(kind, _)| kind.name()).zip(&of_others);
        let nats = nats.iter().map(|_| "NATS").zip(std::iter::once(&of_nats));
        for (name, rates) in nats.chain(named) {
            let mut row = |what: &str, ours: &[f64]| {
                let what = format!("STOMP to {consumers}{what}");
                let row = ComparisonRow::of_rate(&what, "1/s", median(ours), name, median(rates));
                table.rows.push(row.lacking(LACKS));
            };
            if body == BodyReader::None {
                row("", &ours);
            } else {
                row(", JSON decoded", &ours);
                row(", SBE decoded", &sbe);
            }
        }
    }
    Ok(())
}
