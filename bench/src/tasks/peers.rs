//! Pitlane and every peer that is available on this machine, in one run: the same load in
//! alternation, one table and one drawing.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use clap::Args;
use pitlane_bench::beside::{Row, Table};
use pitlane_bench::brokers::{self, Broker};
use pitlane_bench::conditions::Pinning;
use pitlane_bench::contest::{Engine, contest};
use pitlane_bench::fan_out;
use pitlane_bench::fix_wire::{Peer, flat_out};
use pitlane_bench::http::{self, server};
use pitlane_bench::measure::median;
use pitlane_bench::nats::Nats;
use pitlane_bench::report::bars;
use pitlane_bench::report::folder::Folder;
use pitlane_bench::scenario::Scenario;
use pitlane_bench::{nautilus, platform, program};

use super::Site;
use crate::{Failure, Verdicts};

#[derive(Args, Clone)]
pub struct Everybody {
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

pub fn compare(site: &Site, task: &Everybody) -> Result<Verdicts, Failure> {
    let pinning = &site.pinning;
    if !pinning.has_two_cores() {
        return Err("a server and its load need two cores, and here is one".into());
    }
    let mut table = Table::default();
    engines(task, &mut table);
    orders_over_fix(pinning, task, &mut table)?;
    lists_over_http(pinning, task, &mut table)?;
    fan_outs(pinning, task, &mut table)?;
    simulations(task, &mut table);
    table.absent.push("fefix takes a quarter of an hour to build: make oracle".into());
    println!("{table}");
    let folder = Folder::make(&task.out, &site.conditions)?;
    folder.draw("compare", &bars::ratios("How many times as fast", folder.notes(), &table.ratios()))?;
    std::fs::write(task.out.join("compare.json"), serde_json::to_vec_pretty(&table)?)?;
    folder.close(&site.conditions, &site.noise, &[])?;
    println!("drawn into {}", task.out.join("compare.svg").display());
    Ok(Verdicts::default())
}

/// Compares order books. Those of others have no risk checks, accounts or positions, so they are
/// compared with our book alone.
fn engines(task: &Everybody, table: &mut Table) {
    let Some(scenario) = Scenario::named("s100") else { return };
    let workload = Scenario { ops: task.ops, ..scenario }.generate();
    let standings = contest(&workload, Engine::USUAL, task.rounds.max(1), |_, _, _| {});
    let of = |engine| standings.iter().find(|standing| standing.engine == engine);
    let Some(book) = of(Engine::Book).map(|book| median(&book.ns_per_op)) else { return };
    for standing in &standings {
        let lacks = match standing.engine {
            Engine::Floor => "accounts, trades with oneself",
            _ if standing.right => "",
            _ => "give the right outcome",
        };
        let is_beside = standing.engine == Engine::Floor || !standing.engine.is_ours();
        if is_beside {
            let theirs = median(&standing.ns_per_op);
            let row = Row::of_time("order book, s100", "ns", book, standing.engine.word(), theirs);
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
fn simulations(task: &Everybody, table: &mut Table) {
    match nautilus::contest(task.ticks, task.rounds) {
        Ok(beside) => {
            let peer = format!("NautilusTrader {}, run alone", beside.version);
            let row = Row::of_rate("simulation", "ticks/s", beside.ours, &peer, beside.theirs);
            table.rows.push(row.lacking("read the file: its ticks are objects before; check risk"));
            println!(
                "simulation: {} orders of ours, {} of NautilusTrader; it makes {:.0} ticks/s with the reading of the file, as ours has it",
                beside.our_orders, beside.their_orders, beside.theirs_with_reading
            );
        }
        Err(reason) => table.absent.push(format!("NautilusTrader: {reason}")),
    }
}

fn orders_over_fix(pinning: &Pinning, task: &Everybody, table: &mut Table) -> Result<(), Failure> {
    const LACKS: &str = "risk, order states, market, journal of orders";
    let peers = [
        (Peer::QuickFix { reports: 2, files: false }, "QuickFIX, both reports"),
        (Peer::QuickFix { reports: 2, files: true }, "QuickFIX, both, kept in files"),
        (Peer::QuickFix { reports: 1, files: false }, "QuickFIX, one report"),
    ];
    let (mut ours, mut theirs) = (Vec::new(), vec![Vec::new(); peers.len()]);
    for _ in 0..task.rounds.max(1) {
        ours.push(flat_out(Peer::Pitlane, pinning, SESSIONS, task.orders)?);
        for ((peer, _), rates) in peers.iter().zip(&mut theirs) {
            match flat_out(*peer, pinning, SESSIONS, task.orders / 4) {
                Ok(rate) => rates.push(rate),
                Err(reason) => {
                    table.absent.push(format!("QuickFIX: {reason}"));
                    return Ok(());
                }
            }
        }
    }
    for ((_, word), rates) in peers.iter().zip(&theirs) {
        let row = Row::of_rate("FIX order to first report", "1/s", median(&ours), word, median(rates));
        table.rows.push(row.lacking(LACKS));
    }
    Ok(())
}

fn lists_over_http(pinning: &Pinning, task: &Everybody, table: &mut Table) -> Result<(), Failure> {
    for beside in http::contest(pinning, task.requests, CONNECTIONS, task.rounds.max(1))? {
        let Some((ours, others)) = beside.times.split_first() else { continue };
        for (kind, theirs) in others {
            let what = format!("GET {}", beside.path);
            let row = Row::of_time(&what, "ns", ours.1, kind.word(), *theirs);
            table.rows.push(row.lacking("make the answer: it has it in memory"));
        }
    }
    if server::Kind::bare().all(|kind| kind != server::Kind::Nginx) {
        table.absent.push(program::absent("nginx", "nginx-light"));
    }
    Ok(())
}

fn fan_outs(pinning: &Pinning, task: &Everybody, table: &mut Table) -> Result<(), Failure> {
    const LACKS: &str = "render, conflate, last values";
    let (reference, time) = (Arc::new(platform::reference(100)), Duration::from_millis(task.ms));
    let nats = Nats::start(pinning);
    if nats.is_none() {
        table.absent.push(program::absent("NATS", "nats-server"));
    }
    let mut others = Vec::new();
    for kind in brokers::Kind::ALL {
        match Broker::start(kind, pinning) {
            Ok(broker) => {
                // The JIT compiler of a broker finishes before anything is counted.
                broker.throughput(CONSUMERS[1], time)?;
                others.push((kind, broker));
            }
            Err(reason) => table.absent.push(reason),
        }
    }
    for consumers in CONSUMERS {
        let (mut ours, mut of_nats, mut of_others) = (Vec::new(), Vec::new(), vec![Vec::new(); others.len()]);
        for _ in 0..task.rounds.max(1) {
            ours.push(fan_out::throughput(pinning, &reference, consumers, time).deliveries_per_s);
            of_nats.extend(nats.iter().map(|nats| nats.throughput(consumers, time).deliveries_per_s));
            for ((_, broker), rates) in others.iter().zip(&mut of_others) {
                rates.push(broker.throughput(consumers, time)?.deliveries_per_s);
            }
        }
        let named = others.iter().map(|(kind, _)| kind.word()).zip(&of_others);
        let nats = nats.iter().map(|_| "NATS").zip(std::iter::once(&of_nats));
        for (word, rates) in nats.chain(named) {
            let what = format!("STOMP to {consumers}");
            table.rows.push(Row::of_rate(&what, "1/s", median(&ours), word, median(rates)).lacking(LACKS));
        }
    }
    Ok(())
}
