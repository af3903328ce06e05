//! STOMP: without sockets, to many consumers over loopback, and beside misbehaving neighbours.

use std::fmt;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use clap::Args;
use pitlane_bench::budget::BudgetLine;
use pitlane_bench::conditions::Pinning;
use pitlane_bench::fix_wire::{FixServerKind, SteadyLoad, open_loop};
use pitlane_bench::goals::{self, GoalVerdict};
use pitlane_bench::measure::{highest, lowest, median};
use pitlane_bench::nats::NatsServer;
use pitlane_bench::order_to_tick::{self, TradeLoad, TradeSignal};
use pitlane_bench::report::recording::Recording;
use pitlane_bench::tick_reader::BodyReader;
use pitlane_bench::{fan_out, pairs, platform, stomp};
use pitlane_config::SendFirst;
use pitlane_engine::refdata::RefData;

use super::results::write_results;
use super::{NO_SECOND_CORE, RunEnvironment};
use crate::{TaskError, TaskVerdicts};

/// Length of a part of a round beside bad neighbours, and rounds for each such part of the given
/// time.
const STALLED_PART: Duration = Duration::from_millis(700);

const ROUNDS_PER_PART: usize = 3;

/// Rounds that share the time of a measurement at full load.
const FAN_OUT_ROUNDS: u32 = 3;

#[derive(Args, Clone)]
pub(crate) struct StompArgs {
    /// Ticks of each measurement without sockets.
    #[arg(long, default_value_t = 1_000_000)]
    pub ticks: usize,
    /// Milliseconds of each measurement over loopback.
    #[arg(long, default_value_t = 3_000)]
    pub ms: u64,
    /// Folder for the latencies at 5,000 deliveries a second: `.hgrm`, JSON, SVG and a page.
    #[arg(long)]
    pub out: Option<PathBuf>,
    /// Exit with 1 where a goal is missed.
    #[arg(long)]
    pub check: bool,
}

#[derive(Args, Clone)]
pub(crate) struct OrderToTickArgs {
    /// Trades per second, two orders each: as many orders as `fix` has at its steady rate.
    #[arg(long, default_value_t = 5_000)]
    pub rate: u64,
    /// Trades of each round.
    #[arg(long, default_value_t = 20_000)]
    pub trades: usize,
    #[arg(long, default_value_t = 3)]
    pub rounds: usize,
    /// Folder for the latencies: `.hgrm`, JSON, SVG and a page, with the server's own stages.
    #[arg(long)]
    pub out: Option<PathBuf>,
    /// Exit with 1 where a goal is missed.
    #[arg(long)]
    pub check: bool,
}

/// Measures from a FIX order that trades to its tick at a consumer, with binary bodies and JSON;
/// beside it to its first report, and a bare echo of as many orders. A service for consumers of
/// market data sends STOMP first (`net.send_first`), and the goal is for that one.
pub(crate) fn order_to_tick(
    environment: &RunEnvironment,
    task: &OrderToTickArgs,
) -> Result<TaskVerdicts, TaskError> {
    let pinning = &environment.pinning;
    if !pinning.has_two_cores() {
        println!("order-to-tick {NO_SECOND_CORE}");
        return Ok(TaskVerdicts::default());
    }
    let load = TradeLoad { rate: task.rate, trades: task.trades };
    let echo_load = SteadyLoad { rate: 2 * task.rate, orders: 2 * task.trades, open_max: None };
    let (sbe, json) = (TradeSignal::Tick(BodyReader::Sbe), TradeSignal::Tick(BodyReader::SimdJson));
    let signals = [
        ("SBE, STOMP first", sbe, SendFirst::Stomp),
        ("its first report, STOMP first", TradeSignal::Report, SendFirst::Stomp),
        ("SBE", sbe, SendFirst::Fix),
        ("JSON", json, SendFirst::Fix),
        ("its first report", TradeSignal::Report, SendFirst::Fix),
    ];
    let (mut rounds, mut echoes) = (signals.map(|_| Vec::new()), Vec::new());
    for _ in 0..task.rounds.max(1) {
        for ((_, signal, first), recordings) in signals.iter().zip(&mut rounds) {
            recordings.push(order_to_tick::open_loop(pinning, load, *signal, *first)?);
        }
        echoes.push(open_loop(FixServerKind::Echo, pinning, echo_load, |_, _| {})?);
    }
    let names = signals.iter().map(|(name, ..)| *name).chain(["a bare echo"]);
    for (name, recordings) in names.zip(rounds.iter().chain([&echoes])) {
        let [p50, p99, p999] = [0.5, 0.99, 0.999].map(|quantile| micros(recordings, quantile));
        let worst = highest(&p50);
        println!(
            "order to tick, {name}, at {} trades/s: median {:.1} µs (worst round {worst:.1}), p99 {:.1} µs, p99.9 {:.1} µs",
            task.rate,
            median(&p50),
            median(&p99),
            median(&p999)
        );
    }
    let sbe_first = median(&micros(&rounds[0], 0.5));
    let goals = vec![
        GoalVerdict::at_most("order to tick", sbe_first, goals::ORDER_TO_TICK_US_MAX, "µs")
            .of(BudgetLine::OrderToTick),
    ];
    println!();
    if let Some(out) = &task.out {
        let recordings: Vec<_> = rounds.iter().filter_map(|rounds| rounds.last()).collect();
        write_results(out, environment, "FIX order to tick over STOMP", &recordings, &goals)?;
    }
    Ok(TaskVerdicts { wrong: false, goals })
}

/// Deliveries to consumers that read bodies in one way, in millions per second, by round.
struct FanOutRates {
    body: BodyReader,
    ours: Vec<f64>,
    /// Empty if NATS is not installed, and for binary bodies: it has no ticks of its own.
    nats: Vec<f64>,
}

impl FanOutRates {
    fn beside_nats(&self) -> Option<f64> {
        (!self.nats.is_empty()).then(|| median(&self.ours) / median(&self.nats))
    }
}

impl fmt::Display for FanOutRates {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (ours, worst) = (median(&self.ours), lowest(&self.ours));
        write!(f, "{}: {ours:.2} million/s (worst round {worst:.2})", self.body.name())?;
        if self.nats.is_empty() {
            return Ok(());
        }
        write!(f, "; NATS {:.2} ({:.2})", median(&self.nats), lowest(&self.nats))
    }
}

/// Measures consumers that only count and those that decode, in rounds in which all take turns.
fn fan_out_rates(
    pinning: &Pinning,
    reference: &Arc<RefData>,
    nats: Option<&NatsServer>,
    consumers: usize,
    time: Duration,
) -> Vec<FanOutRates> {
    let payload = stomp::json_tick(reference);
    let bodies = [BodyReader::None].into_iter().chain(BodyReader::ALL);
    let mut rates: Vec<FanOutRates> =
        bodies.map(|body| FanOutRates { body, ours: Vec::new(), nats: Vec::new() }).collect();
    for _ in 0..FAN_OUT_ROUNDS {
        for FanOutRates { body, ours, nats: of_nats } in &mut rates {
            ours.push(fan_out::throughput(pinning, reference, consumers, *body, time) / 1e6);
            if let Some(nats) = nats.filter(|_| !body.is_binary()) {
                of_nats.push(nats.throughput(consumers, &payload, *body, time) / 1e6);
            }
        }
    }
    rates
}

/// Returns a quantile of each round in microseconds.
fn micros(rounds: &[Recording], quantile: f64) -> Vec<f64> {
    rounds.iter().map(|round| round.all.value_at_quantile(quantile) as f64 / 1e3).collect()
}

pub(crate) fn broker(environment: &RunEnvironment, task: &StompArgs) -> Result<TaskVerdicts, TaskError> {
    let (pinning, ticks, time) = (&environment.pinning, task.ticks, Duration::from_millis(task.ms));
    if !pinning.has_two_cores() {
        println!("stomp {NO_SECOND_CORE}");
        return Ok(TaskVerdicts::default());
    }
    let reference = Arc::new(platform::reference(100));
    println!("stomp decode: {:.0} ns a frame", stomp::decode(ticks));
    let (ns, octets) = stomp::render(ticks, &reference);
    println!("stomp render: {ns:.0} ns a tick of {octets} octets");
    for consumers in [1, 10, 100] {
        let (ns, octets) = stomp::fan_out(consumers, ticks / consumers, reference.clone());
        println!(
            "stomp fan-out: {ns:.0} ns a delivery of {octets} octets to {consumers} consumers, without sockets"
        );
    }
    let read = BodyReader::ALL.map(|reader| (reader.name(), stomp::read(reader, ticks, &reference)));
    let read = read.map(|(name, ns)| format!("{name} {ns:.0}")).join(", ");
    println!("stomp decode of a tick with its frame, ns: {read}");
    let (mut goals, mut recordings) = (Vec::new(), Vec::new());
    let nats = NatsServer::start(pinning);
    if nats.is_none() {
        println!("stomp: NATS is not installed");
    }
    for (consumers, floor, most_us) in goals::STOMP {
        let rates = fan_out_rates(pinning, &reference, nats.as_ref(), consumers, time / FAN_OUT_ROUNDS);
        for rate in &rates {
            println!("stomp to {consumers}, {rate}");
        }
        let to = format!("to {consumers}");
        let counted = median(&rates[0].ours);
        goals.push(GoalVerdict::at_least(&to, counted, floor, "million/s").of(BudgetLine::FanOut));
        if let Some(lowest) = rates.iter().filter_map(FanOutRates::beside_nats).reduce(f64::min) {
            let verdict = GoalVerdict::at_least(&to, lowest, goals::STOMP_PEER_RATIO_MIN, "× NATS");
            goals.push(verdict.of(BudgetLine::FanOutBeside));
        }
        for body in [BodyReader::None, BodyReader::Sbe, BodyReader::SimdJson] {
            let latencies = fan_out::latency(pinning, &reference, consumers, body, 5_000, time);
            let us = |quantile: f64| latencies.all.value_at_quantile(quantile) as f64 / 1e3;
            let (median, p99) = (us(0.5), us(0.99));
            println!(
                "stomp to {consumers} at 5,000/s, {}: median {median:.1} µs, p99 {p99:.1} µs",
                body.name()
            );
            if body == BodyReader::None {
                goals.push(GoalVerdict::at_most(&to, median, most_us, "µs").of(BudgetLine::FanOutLatency));
                recordings.push(latencies);
            }
        }
    }
    // Rounds are short: a consumer that does not read is disconnected after a second.
    let part = time.min(STALLED_PART);
    let parts = usize::try_from(time.as_millis() / part.as_millis().max(1)).expect("a run is short");
    let rounds = parts * ROUNDS_PER_PART;
    let stalled = pairs::pairs(rounds, |is_bad| {
        fan_out::with_stalled(pinning, &reference, if is_bad { 2 } else { 0 }, part)
    });
    println!("stomp, 1,000 × 4 KiB/s to 10, of which 2 do not read: {stalled}");
    goals.push(GoalVerdict::at_most(
        "stomp beside 2 stalled",
        stalled.p99_ratio,
        goals::STALLED_RATIO_MAX,
        "× p99",
    ));
    let gap = stalled.gap.as_secs_f64();
    goals.push(GoalVerdict::at_most("stomp beside 2 stalled, silence", gap, goals::SILENCE_S_MAX, "s"));
    let neighbours =
        pairs::pairs(rounds, |is_bad| fan_out::with_bad_neighbours(pinning, &reference, is_bad, part));
    println!(
        "stomp, 1,000 × 4 KiB/s to 1, beside one that does not read, one with the smallest window and 100 that connect and disconnect: {neighbours}"
    );
    goals.push(GoalVerdict::at_most(
        "stomp beside neighbours",
        neighbours.p99_ratio,
        goals::NEIGHBOURS_RATIO_MAX,
        "× p99",
    ));
    let missing = (neighbours.missing + stalled.missing) as f64;
    goals.push(GoalVerdict::at_most("stomp beside neighbours, missing", missing, 0.0, "messages"));
    let queued = neighbours.queued_max.max(stalled.queued_max) as f64 / (1 << 20) as f64;
    goals.push(GoalVerdict::at_most(
        "stomp beside neighbours, held for one",
        queued,
        goals::QUEUED_MIB_MAX,
        "MiB",
    ));
    println!();
    if let Some(out) = &task.out {
        let recordings: Vec<_> = recordings.iter().collect();
        write_results(out, environment, "STOMP, a tick to its delivery", &recordings, &goals)?;
    }
    Ok(TaskVerdicts { wrong: false, goals })
}
