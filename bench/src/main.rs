//! The command line of the bench. What each subcommand measures is told in the README.

mod tasks;

use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

use clap::{Args, Parser, Subcommand};
use pitlane_bench::conditions::{Conditions, Pinning};
use pitlane_bench::contest::{Engine, STANDING_HEAD, contest};
use pitlane_bench::fan_out;
use pitlane_bench::goals::{self, Verdict};
use pitlane_bench::journal::Folder;
use pitlane_bench::measure::{clock_ns, median, percentiles};
use pitlane_bench::nats::Nats;
use pitlane_bench::noise;
use pitlane_bench::report::recording::Recording;
use pitlane_bench::scenario::Scenario;
use pitlane_bench::work::Work;
use pitlane_bench::workload::{Kind, Workload};
use pitlane_bench::{
    fix, fix_wire, http, journal, lane, memory, net, pairs, platform, read_model, rest, ring, simulate,
    stages, stomp,
};

#[derive(Parser)]
#[command(name = "pitlane-bench", about = "How fast, and beside whom", version)]
struct Cli {
    /// Also draws where the time goes, into this SVG file. Needs `perf`, and a build with frame pointers (`make flame`).
    #[cfg(feature = "flame")]
    #[arg(long, global = true)]
    flame: Option<PathBuf>,
    #[command(subcommand)]
    task: Task,
}

#[derive(Subcommand)]
enum Task {
    /// Make a workload file.
    Workload {
        /// s1, s100, s10k or move.
        scenario: String,
        #[arg(long)]
        out: PathBuf,
        /// Timed operations, instead of the scenario's own number.
        #[arg(long)]
        ops: Option<u32>,
    },
    /// The engine's order book alone.
    Book(Flow),
    /// The whole shard: risk, order states, positions, events.
    Shard(Flow),
    /// The bare array ladder that the others are measured against.
    Floor(Flow),
    /// The oracle.
    Naive(Flow),
    /// A public order-book crate.
    #[cfg(feature = "peers")]
    Peer {
        #[arg(value_enum)]
        engine: Engine,
        #[command(flatten)]
        flow: Flow,
    },
    /// The bare ring's round trip between two pinned threads.
    Ring(Trips),
    /// Command lane → shard → event lane, beside the bare ring; then open loop.
    Lane(Trips),
    /// What the stamps of stages add to a command's time from lane to lane.
    Stages(Trips),
    /// Sockets over loopback: a ping-pong beside a bare echo, and one message to many consumers.
    Net(Trips),
    /// The read model's time for each event of a shard.
    View(Flow),
    /// The FIX codec: a New Order Single read, an Execution Report written.
    FixCodec(Codec),
    /// FIX over loopback, flat out and at a steady rate, beside a bare echo and an acceptor on QuickFIX.
    Fix(Wire),
    /// The service that `fix` measures.
    #[command(hide = true)]
    ServeFix { port: u16, core: u32, data: PathBuf },
    /// REST: lists beside bare servers that answer the same bytes, orders a second, and others while a long list is sent.
    Http(Requests),
    /// A server that `http` measures.
    #[command(hide = true)]
    ServeHttp { server: String, port: u16, folder: PathBuf },
    /// STOMP: decode, render and fan-out without sockets; then over loopback to 1, 10 and 100 consumers, beside NATS where it is
    /// installed.
    Stomp {
        /// Ticks of each measurement without sockets.
        #[arg(long, default_value_t = 1_000_000)]
        ticks: usize,
        /// Milliseconds of each measurement over loopback.
        #[arg(long, default_value_t = 3_000)]
        ms: u64,
        /// Exit with 1 where a goal is missed.
        #[arg(long)]
        check: bool,
    },
    /// `pitlane simulate` with the moving-average example over a file of ticks that is made for it.
    Simulate {
        #[arg(long, default_value_t = 4_000_000)]
        ticks: u64,
        #[arg(long, default_value_t = 5)]
        rounds: usize,
        /// Exit with 1 where a goal is missed.
        #[arg(long)]
        check: bool,
    },
    /// The memory of a shard with so many open orders.
    Memory {
        #[arg(long, default_value_t = 1_000_000)]
        open: u32,
        #[arg(long)]
        check: bool,
    },
    /// What the journal adds to an order, and what a sync shared by many clients gains.
    Journal(Journal),
    /// How long a start takes with so many orders, from the journal alone and from a snapshot.
    Recovery {
        #[arg(long, default_value_t = 1_000_000)]
        orders: u32,
        /// Where the files go; the disk there is what is measured.
        #[arg(long)]
        dir: Option<PathBuf>,
        #[arg(long)]
        check: bool,
    },
    /// Engines beside each other in interleaved rounds.
    Engines(Rounds),
    /// Us beside everybody who can be had on this machine: brokers, FIX, HTTP, order books. One table and one drawing.
    Compare(tasks::peers::Everybody),
    /// FIX orders at rising rates, up to the knee.
    Sweep(tasks::endurance::Rates),
    /// FIX orders at half the knee for long: whether memory grows or the tail drifts.
    Soak(tasks::endurance::Long),
    /// A folder of results as one page, with what the machine's doctor says.
    Report { folder: PathBuf },
    /// One small piece of the hot path, so many times: prints the nanoseconds of one.
    Work(tasks::builds::Piece),
    /// This build and another in turn on this machine; exit 1 where this one is slower beyond the noise.
    Gate(tasks::builds::Gate),
    /// Instructions of one piece of work, by callgrind: the same on a busy machine.
    Instructions {
        /// Only these.
        #[arg(value_enum)]
        works: Vec<Work>,
    },
    /// Everything: every scenario, ring and lane, read model, memory.
    All(Rounds),
    /// Everything, tiny: that none rots.
    Smoke,
}

/// Where a flow comes from.
#[derive(Args, Clone, Default)]
struct Flow {
    /// A workload file, made here or elsewhere.
    #[arg(long, conflicts_with = "scenario")]
    workload: Option<PathBuf>,
    /// s1, s100, s10k or move, made afresh. Default: s100.
    #[arg(long)]
    scenario: Option<String>,
    /// Timed operations of a scenario, instead of its own number.
    #[arg(long)]
    ops: Option<u32>,
    /// Passes for throughput; the best one is told beside the median.
    #[arg(long, default_value_t = 5)]
    rounds: usize,
}

#[derive(Args, Clone)]
struct Trips {
    /// Round trips of each round.
    #[arg(long, default_value_t = 500_000)]
    trips: usize,
    #[arg(long, default_value_t = 5)]
    rounds: usize,
    /// Exit with 1 where a goal is missed.
    #[arg(long)]
    check: bool,
}

#[derive(Args, Clone)]
struct Wire {
    /// Sessions, flat out.
    #[arg(long, default_value_t = 4)]
    sessions: usize,
    /// Orders of each session, flat out; at most 100,000 of them stay open.
    #[arg(long, default_value_t = 90_000)]
    orders: usize,
    /// Orders at 10,000 a second.
    #[arg(long, default_value_t = 30_000)]
    steady: usize,
    #[arg(long, default_value_t = 3)]
    rounds: usize,
    /// Without QuickFIX.
    #[arg(long)]
    alone: bool,
    /// Exit with 1 where a goal is missed.
    #[arg(long)]
    check: bool,
}

#[derive(Args, Clone)]
struct Codec {
    /// Messages of each round.
    #[arg(long, default_value_t = 500_000)]
    ops: usize,
    #[arg(long, default_value_t = 7)]
    rounds: usize,
    /// Exit with 1 where a goal is missed.
    #[arg(long)]
    check: bool,
}

#[derive(Args, Clone)]
struct Requests {
    /// Requests of each round.
    #[arg(long, default_value_t = 50_000)]
    requests: usize,
    /// Connections, each with one request in flight.
    #[arg(long, default_value_t = 16)]
    connections: usize,
    /// Open orders, at least, in the list that others ask beside.
    #[arg(long, default_value_t = 100_000)]
    open: usize,
    #[arg(long, default_value_t = 7)]
    rounds: usize,
    /// Exit with 1 where a goal is missed.
    #[arg(long)]
    check: bool,
}

#[derive(Args, Clone)]
struct Journal {
    /// Operations of each round.
    #[arg(long, default_value_t = 500_000)]
    ops: u32,
    #[arg(long, default_value_t = 5)]
    rounds: usize,
    /// Milliseconds for each count of clients, in each round.
    #[arg(long, default_value_t = 400)]
    span_ms: u64,
    /// Where the files go; the disk there is what is measured.
    #[arg(long)]
    dir: Option<PathBuf>,
    /// Exit with 1 where a goal is missed.
    #[arg(long)]
    check: bool,
}

#[derive(Args, Clone)]
struct Rounds {
    /// A workload file instead of scenarios.
    #[arg(long, conflicts_with = "scenario")]
    workload: Option<PathBuf>,
    /// s1, s100, s10k or move; may be given more than once. Default: all.
    #[arg(long)]
    scenario: Vec<String>,
    #[arg(long)]
    ops: Option<u32>,
    #[arg(long, default_value_t = 5)]
    rounds: usize,
    /// Only these; the floor should be among them.
    #[arg(long, value_enum)]
    engine: Vec<Engine>,
    /// Exit with 1 where a goal is missed.
    #[arg(long)]
    check: bool,
}

/// What a task came to: an outcome that differs is always a failure, a missed goal only where it was asked.
#[derive(Default)]
struct Verdicts {
    wrong: bool,
    goals: Vec<Verdict>,
}

type Failure = Box<dyn std::error::Error>;

/// How long the machine's own noise is listened to before anything is measured.
const NOISE: Duration = Duration::from_millis(300);

fn main() -> ExitCode {
    let cli = Cli::parse();
    let check = cli.task.checks();
    #[cfg(feature = "flame")]
    let result = drawn(cli.flame.as_deref(), || run(cli.task));
    #[cfg(not(feature = "flame"))]
    let result = run(cli.task);
    match result {
        Ok(verdicts) => {
            verdicts.goals.iter().for_each(|verdict| println!("{}", verdict.text));
            let missed = check && verdicts.goals.iter().any(|verdict| !verdict.met);
            if verdicts.wrong || missed { ExitCode::FAILURE } else { ExitCode::SUCCESS }
        }
        Err(failure) => {
            eprintln!("pitlane-bench: {failure}");
            ExitCode::from(2)
        }
    }
}

/// Does it while `perf` looks, if a drawing is wanted.
#[cfg(feature = "flame")]
fn drawn(out: Option<&Path>, task: impl FnOnce() -> Result<Verdicts, Failure>) -> Result<Verdicts, Failure> {
    let Some(out) = out else { return task() };
    let flame = pitlane_bench::flame::Flame::start(out)?;
    let verdicts = task()?;
    let words: Vec<String> = std::env::args().skip(1).collect();
    flame.draw(&format!("pitlane-bench {}", words.join(" ")))?;
    println!("drawn into {}", out.display());
    Ok(verdicts)
}

impl Task {
    fn checks(&self) -> bool {
        match self {
            Task::Ring(trips) | Task::Lane(trips) | Task::Stages(trips) => trips.check,
            Task::FixCodec(codec) => codec.check,
            Task::Fix(wire) => wire.check,
            Task::Http(requests) => requests.check,
            Task::Memory { check, .. }
            | Task::Recovery { check, .. }
            | Task::Simulate { check, .. }
            | Task::Stomp { check, .. } => *check,
            Task::Journal(journal) => journal.check,
            Task::Engines(rounds) | Task::All(rounds) => rounds.check,
            _ => false,
        }
    }
}

fn run(task: Task) -> Result<Verdicts, Failure> {
    if let Task::ServeFix { port, core, data } = task {
        fix_wire::serve_fix(port, core, &data)?;
        return Ok(Verdicts::default());
    }
    if let Task::ServeHttp { server, port, folder } = task {
        http::server::serve_http(&server, port, &folder)?;
        return Ok(Verdicts::default());
    }
    if let Task::Workload { scenario, out, ops } = task {
        return make(&scenario, ops, &out);
    }
    if let Task::Report { folder } = task {
        return tasks::endurance::report(&folder);
    }
    if let Task::Work(piece) = task {
        Pinning::take();
        return Ok(tasks::builds::work(&piece));
    }
    let pinning = Pinning::take();
    print!("{}", Conditions::of(&pinning));
    println!("clock     {} ns for a pair of timestamps", clock_ns());
    println!("noise     {}\n", noise::listen(NOISE).line());
    match task {
        Task::Workload { .. } | Task::Work(_) => Ok(Verdicts::default()),
        Task::Sweep(rates) => tasks::endurance::sweep(&pinning, &rates),
        Task::Soak(long) => tasks::endurance::soak(&pinning, &long),
        Task::Report { .. } => Ok(Verdicts::default()),
        Task::Gate(gate) => tasks::builds::gate(&gate),
        Task::Instructions { works } => tasks::builds::instructions(&works),
        Task::Book(flow) => single(Engine::Book, &flow),
        Task::Shard(flow) => single(Engine::Shard, &flow),
        Task::Floor(flow) => single(Engine::Floor, &flow),
        Task::Naive(flow) => single(Engine::Naive, &flow),
        #[cfg(feature = "peers")]
        Task::Peer { engine, flow } => single(engine, &flow),
        Task::Ring(trips) => Ok(bare_ring(&pinning, &trips)),
        Task::Lane(trips) => Ok(lanes(&pinning, &trips, &OPEN_LOOP_RATES)),
        Task::Stages(trips) => Ok(stamps(&trips)),
        Task::Net(trips) => Ok(sockets(&pinning, &trips)),
        Task::View(flow) => Ok(view(&flow.load()?)),
        Task::FixCodec(codec) => Ok(fix_codec(&codec)),
        Task::Fix(wire) => fix_over_loopback(&pinning, &wire),
        Task::ServeFix { .. } | Task::ServeHttp { .. } => Ok(Verdicts::default()),
        Task::Http(requests) => Ok(http_beside_hyper(&pinning, &requests)?),
        Task::Stomp { ticks, ms, .. } => Ok(broker(&pinning, ticks, Duration::from_millis(ms))),
        Task::Simulate { ticks, rounds, .. } => simulation(ticks, rounds),
        Task::Memory { open, .. } => Ok(million(open)),
        Task::Journal(task) => journals(&pinning, &task),
        Task::Recovery { orders, dir, .. } => recovery(orders, dir.as_deref()),
        Task::Engines(rounds) => engines(&rounds),
        Task::Compare(everybody) => tasks::peers::compare(&pinning, &everybody),
        Task::All(rounds) => all(&pinning, &rounds),
        Task::Smoke => smoke(&pinning),
    }
}

impl Flow {
    fn load(&self) -> Result<Workload, Failure> {
        match &self.workload {
            Some(path) => read(path),
            None => generate(self.scenario.as_deref().unwrap_or("s100"), self.ops),
        }
    }
}

fn read(path: &Path) -> Result<Workload, Failure> {
    let workload = Workload::read(path).map_err(|error| format!("{}: {error}", path.display()))?;
    describe(&path.display().to_string(), &workload);
    Ok(workload)
}

fn generate(name: &str, ops: Option<u32>) -> Result<Workload, Failure> {
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
    let shares = Kind::ALL.map(|kind| {
        let count = workload.timed.iter().filter(|record| record.kind == kind).count();
        format!("{} {:.1} %", kind.word(), 100.0 * count as f64 / ops)
    });
    println!("mix: {}; {:.3} trades per operation", shares.join(", "), workload.expected.trades as f64 / ops);
    println!("expected: {}", workload.expected);
}

fn make(name: &str, ops: Option<u32>, out: &Path) -> Result<Verdicts, Failure> {
    let workload = generate(name, ops)?;
    workload.write(out).map_err(|error| format!("{}: {error}", out.display()))?;
    println!("written to {}", out.display());
    Ok(Verdicts::default())
}

/// One engine: throughput over rounds, then percentiles by kind.
fn single(engine: Engine, flow: &Flow) -> Result<Verdicts, Failure> {
    let workload = flow.load()?;
    let standings = contest(&workload, &[engine], flow.rounds.max(1), |_, _, _| {});
    println!("\n{STANDING_HEAD}");
    standings.iter().for_each(|standing| println!("{standing}"));
    let latencies = engine.latencies(&workload);
    println!();
    latencies.lines().iter().for_each(|line| println!("{line}"));
    let outcome =
        if latencies.outcome == workload.expected { standings[0].outcome } else { latencies.outcome };
    println!("\noutcome: {outcome}");
    let wrong = outcome != workload.expected;
    if wrong {
        println!("WRONG: the workload expects {}", workload.expected);
    }
    Ok(Verdicts { wrong, goals: Vec::new() })
}

fn engines(rounds: &Rounds) -> Result<Verdicts, Failure> {
    let mut verdicts = Verdicts::default();
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

fn engines_on(name: &str, workload: &Workload, rounds: &Rounds, verdicts: &mut Verdicts) {
    let engines = if rounds.engine.is_empty() { Engine::USUAL } else { &rounds.engine };
    let standings = contest(workload, engines, rounds.rounds.max(1), |_, _, _| {});
    println!("{STANDING_HEAD}");
    standings.iter().for_each(|standing| println!("{standing}"));
    for standing in standings.iter().filter(|standing| !standing.right) {
        println!("{} came to: {}", standing.engine.word(), standing.outcome);
        verdicts.wrong |= standing.engine.is_ours();
    }
    println!();
    verdicts.goals.extend(goals::judge(name, &standings));
}

/// Commands a second in the open loop.
/// Of FIX orders, where a steady rate is measured.
const FIX_RATE: u64 = 10_000;
const OPEN_LOOP_RATES: [u64; 4] = [100_000, 500_000, 1_000_000, 2_000_000];
const NO_SECOND_CORE: &str = "skipped: two spinning threads need two cores, and here is one";

fn bare_ring(pinning: &Pinning, trips: &Trips) -> Verdicts {
    if !pinning.has_two_cores() {
        println!("ring {NO_SECOND_CORE}");
        return Verdicts::default();
    }
    for _ in 0..trips.rounds.max(1) {
        println!("{}", percentiles("ring", &ring::round_trips(pinning, trips.trips)));
    }
    Verdicts::default()
}

/// Ring and lane take turns, so that both meet the same machine.
fn lanes(pinning: &Pinning, trips: &Trips, rates: &[u64]) -> Verdicts {
    if !pinning.has_two_cores() {
        println!("lane {NO_SECOND_CORE}");
        return Verdicts::default();
    }
    let (mut differences, mut firsts) = (Vec::new(), Vec::new());
    for _ in 0..trips.rounds.max(1) {
        let bare = ring::round_trips(pinning, trips.trips);
        let answered = lane::round_trips(pinning, trips.trips);
        println!("{}", percentiles("ring", &bare));
        println!("{}", percentiles("lane first", &answered.first));
        println!("{}", percentiles("lane last", &answered.last));
        let ring = bare.value_at_quantile(0.5) as f64;
        firsts.push(answered.first.value_at_quantile(0.5) as f64 - ring);
        differences.push(answered.last.value_at_quantile(0.5) as f64 - ring);
    }
    println!("\nopen loop, from the planned time of a command to its last event");
    for &rate in rates {
        let result = lane::open_loop(pinning, rate, trips.trips);
        let word = format!("{:.1} M/s", rate as f64 / 1e6);
        println!("{}  reached {:.3} M/s", percentiles(&word, &result.latencies), result.per_s_reached / 1e6);
    }
    let first =
        Verdict::at_most("lane beyond ring, to the first event", median(&firsts), goals::LANE_NS_MAX, "ns");
    let last = median(&differences);
    println!("\nlane beyond ring, to the last event: {last:.0} ns");
    Verdicts { wrong: false, goals: vec![first] }
}

fn stamps(trips: &Trips) -> Verdicts {
    let roads = stages::roads(trips.rounds.max(1) * trips.trips);
    let stages::Roads { bare_ns, stamped_ns } = roads;
    println!(
        "stages: {bare_ns:.1} ns a command without stamps, {stamped_ns:.1} ns with them, the best rounds"
    );
    let goal = Verdict::at_most("stamps of stages", roads.cost_percent(), goals::STAGES_PERCENT_MAX, "%");
    Verdicts { wrong: false, goals: vec![goal] }
}

/// Consumers of one message.
const FAN_OUTS: [usize; 3] = [1, 10, 100];

/// Bare echoes and drivers take turns, so that all meet the same machine.
fn sockets(pinning: &Pinning, trips: &Trips) -> Verdicts {
    if !pinning.has_two_cores() {
        println!("net {NO_SECOND_CORE}");
        return Verdicts::default();
    }
    let here = |server: &net::Server| match server.forbidden() {
        Some(reason) => {
            println!("{:<10} skipped: {reason}", server.word());
            false
        }
        None => true,
    };
    let servers: Vec<net::Server> = net::Server::ALL.into_iter().filter(here).collect();
    println!("ping-pong of 128 bytes over loopback");
    for _ in 0..trips.rounds.max(1) {
        for &server in &servers {
            println!("{}", percentiles(server.word(), &net::ping_pong(pinning, server, trips.trips)));
        }
    }
    println!("\n200-octet messages to many consumers, million deliveries a second");
    for consumers in FAN_OUTS {
        for &server in &servers {
            let net::Server::Driver(driver) = server else { continue };
            let rate = net::fan_out(pinning, driver, consumers, trips.trips * 4 / consumers.min(20));
            println!("{:<10} {consumers:>3} consumers {:.2} M/s", server.word(), rate / 1e6);
        }
    }
    println!();
    Verdicts::default()
}

fn view(workload: &Workload) -> Verdicts {
    let applied = read_model::apply(workload);
    let (said, taken) = applied.seq;
    println!(
        "read model: {:.1} ns per event, {} events, {:.2} per operation\n",
        applied.ns_per_event,
        applied.events,
        applied.events as f64 / workload.timed.len().max(1) as f64
    );
    Verdicts { wrong: said != taken, goals: Vec::new() }
}

fn fix_codec(codec: &Codec) -> Verdicts {
    let result = fix::codec(&platform::reference(1), codec.ops, codec.rounds, None);
    println!(
        "fix codec: {:.0} ns to read a New Order Single of {} bytes into 14 typed fields, {:.0} ns to write an Execution \
         Report of {} bytes; {} of each, hash {:016x}",
        result.decode_ns, result.bytes_in, result.encode_ns, result.bytes_out, codec.ops, result.hash
    );
    let goals =
        vec![Verdict::at_most("fix decode", result.decode_ns, goals::FIX_DECODE_NS_MAX, "ns for 14 fields")];
    Verdicts { wrong: !result.agree, goals }
}

/// Ours and the bare servers take turns, so that all meet the same machine.
fn http_beside_hyper(pinning: &Pinning, requests: &Requests) -> Result<Verdicts, Failure> {
    if !pinning.has_two_cores() {
        println!("http {NO_SECOND_CORE}");
        return Ok(Verdicts::default());
    }
    let rounds = requests.rounds.max(1);
    let contest = http::contest(pinning, requests.requests, requests.connections, rounds)?;
    println!("http, {} connections, the server's time on its core for a request", requests.connections);
    contest.iter().for_each(|beside| println!("{beside}"));
    let judge = |beside: &http::Beside| {
        let what = format!("http, {} of {} bytes", beside.path, beside.bytes);
        Verdict::at_most(&what, beside.ratio, goals::HTTP_RATIO_MAX, "× hyper's time")
    };
    let mut goals: Vec<Verdict> = contest.iter().filter(|beside| beside.is_list()).map(judge).collect();
    let connections = 4 * requests.connections;
    let orders = rest::orders(pinning, 2 * requests.requests, connections, rounds, requests.open)?;
    println!(
        "rest, {} orders over {connections} connections at level os: {:.0} orders/s; {:.0} ns of the server's core each, {:.0} ns of \
         them of the http thread; a small request while all {} open orders are read: p99 {:.2} ms, longest {:.2} ms",
        orders.taken,
        orders.per_s,
        orders.server_ns,
        orders.http_ns,
        orders.open,
        orders.beside_list_ms_p99,
        orders.beside_list_ms_max
    );
    goals.push(Verdict::at_least("rest, orders", orders.per_s, goals::REST_ORDERS_PER_S_MIN, "a second"));
    let (longest, most) = (orders.beside_list_ms_max, goals::BESIDE_LIST_MS_MAX);
    goals.push(Verdict::at_most("rest, beside a long list", longest, most, "ms"));
    Ok(Verdicts { wrong: false, goals })
}

/// A part of a round beside bad neighbours, and rounds for each such part of the time that is given.
const STALLED_PART: Duration = Duration::from_millis(700);
const ROUNDS_PER_PART: usize = 3;

fn broker(pinning: &Pinning, ticks: usize, time: Duration) -> Verdicts {
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
    let mut goals = Vec::new();
    let nats = Nats::start(pinning);
    for (consumers, floor, most_us) in goals::STOMP {
        let ours = fan_out::throughput(pinning, &reference, consumers, time);
        let millions = ours.deliveries_per_s / 1e6;
        print!("stomp to {consumers}: {millions:.2} million deliveries/s of {:.0} octets", ours.octets);
        match nats.as_ref().map(|nats| nats.throughput(consumers, time)) {
            Some(theirs) => println!("; NATS {:.2}", theirs.deliveries_per_s / 1e6),
            None => println!("; NATS is not installed"),
        }
        goals.push(Verdict::at_least(&format!("stomp to {consumers}"), millions, floor, "million/s"));
        let latencies = fan_out::latency(pinning, &reference, consumers, 5_000, time);
        let us = |quantile: f64| latencies.value_at_quantile(quantile) as f64 / 1e3;
        println!("stomp to {consumers} at 5,000/s: median {:.1} µs, p99 {:.1} µs", us(0.5), us(0.99));
        goals.push(Verdict::at_most(&format!("stomp latency to {consumers}"), us(0.5), most_us, "µs"));
    }
    // Short rounds: whoever does not read is sent away after a second.
    let part = time.min(STALLED_PART);
    let rounds = (time.as_millis() / part.as_millis().max(1)) as usize * ROUNDS_PER_PART;
    let stalled = pairs::pairs(rounds, |is_bad| {
        fan_out::beside_stalled(pinning, &reference, if is_bad { 2 } else { 0 }, part)
    });
    println!("stomp, 1,000 × 4 KiB/s to 10, of whom 2 do not read: {stalled}");
    goals.push(Verdict::at_most(
        "stomp beside 2 stalled",
        stalled.p99_ratio,
        goals::STALLED_RATIO_MAX,
        "× p99",
    ));
    let gap = stalled.gap.as_secs_f64();
    goals.push(Verdict::at_most("stomp beside 2 stalled, silence", gap, goals::SILENCE_S_MAX, "s"));
    let beside = pairs::pairs(rounds, |is_bad| fan_out::beside_neighbours(pinning, &reference, is_bad, part));
    println!(
        "stomp, 1,000 × 4 KiB/s to 1, beside one who does not read, one with the smallest window and 100 who come and go: {beside}"
    );
    goals.push(Verdict::at_most(
        "stomp beside neighbours",
        beside.p99_ratio,
        goals::NEIGHBOURS_RATIO_MAX,
        "× p99",
    ));
    let missing = (beside.missing + stalled.missing) as f64;
    goals.push(Verdict::at_most("stomp beside neighbours, missing", missing, 0.0, "messages"));
    let held = beside.held_max.max(stalled.held_max) as f64 / (1 << 20) as f64;
    goals.push(Verdict::at_most("stomp beside neighbours, held for one", held, goals::HELD_MIB_MAX, "MiB"));
    println!();
    Verdicts { wrong: false, goals }
}

/// In turn, so that all meet the same machine.
fn fix_over_loopback(pinning: &Pinning, wire: &Wire) -> Result<Verdicts, Failure> {
    use fix_wire::{Peer, Steady, flat_out, open_loop};
    if !pinning.has_two_cores() {
        println!("fix {NO_SECOND_CORE}");
        return Ok(Verdicts::default());
    }
    let (mut ours, mut bare, mut steady) = (Vec::new(), Vec::new(), Vec::new());
    let (mut theirs, mut theirs_short, mut theirs_kept) = (Vec::new(), Vec::new(), Vec::new());
    let load = Steady { rate: FIX_RATE, orders: wire.steady, open_max: None };
    for _ in 0..wire.rounds.max(1) {
        ours.push(flat_out(Peer::Pitlane, pinning, wire.sessions, wire.orders)?);
        if !wire.alone {
            let peer = |reports, files| {
                flat_out(Peer::QuickFix { reports, files }, pinning, wire.sessions, wire.orders / 4)
            };
            theirs.push(peer(2, false)?);
            theirs_short.push(peer(1, false)?);
            theirs_kept.push(peer(2, true)?);
        }
        bare.push(open_loop(Peer::Echo, pinning, load, |_, _| {})?);
        steady.push(open_loop(Peer::Pitlane, pinning, load, |_, _| {})?);
    }
    let Wire { sessions, orders, .. } = wire;
    let rate = median(&ours);
    println!(
        "fix flat out: {rate:.0} orders/s, order to first report, {sessions} sessions of {orders} orders, journal os"
    );
    let at = |rounds: &[Recording], quantile: f64| {
        let nth = rounds.iter().map(|round| round.all.value_at_quantile(quantile) as f64);
        median(&nth.collect::<Vec<_>>()) / 1_000.0
    };
    let mut goals = Vec::new();
    if !theirs.is_empty() {
        let [peer, short, kept] = [&theirs, &theirs_short, &theirs_kept].map(|rates| median(rates));
        println!("QuickFIX 1.15, no dictionary, orders/s and how many times as many are ours:");
        println!("  two reports for each order as we send them, in memory {peer:.0}, {:.2} ×", rate / peer);
        println!("  two reports, kept in files as ours are {kept:.0}, {:.2} ×", rate / kept);
        println!("  one report, in memory {short:.0}, {:.2} ×", rate / short);
        goals.push(Verdict::at_least("fix flat out", rate / peer, goals::FIX_PEER_RATIO_MIN, "× QuickFIX"));
    }
    for (name, took) in [("fix", &steady), ("bare echo", &bare)] {
        println!(
            "{name} at {FIX_RATE} orders/s: {:.1} µs at the median, {:.1} at 99 %, {:.1} at 99.9 %",
            at(took, 0.5),
            at(took, 0.99),
            at(took, 0.999)
        );
    }
    let ratio = at(&steady, 0.5) / at(&bare, 0.5);
    goals.push(Verdict::at_most("fix at a steady rate", ratio, goals::FIX_ECHO_RATIO_MAX, "× a bare echo"));
    Ok(Verdicts { wrong: false, goals })
}

fn simulation(ticks: u64, rounds: usize) -> Result<Verdicts, Failure> {
    let outcome = simulate::run(ticks, rounds)?;
    println!(
        "simulate: {ticks} ticks, moving-average cross; best {:.2}, median {:.2} million ticks/s; {} orders; hash {:016x}",
        outcome.best / 1e6,
        outcome.median / 1e6,
        outcome.orders,
        outcome.hash
    );
    let goal =
        Verdict::at_least("simulate", outcome.best / 1e6, goals::SIMULATE_MILLIONS_MIN, "million ticks/s");
    Ok(Verdicts { wrong: !outcome.repeats, goals: vec![goal] })
}

fn million(open: u32) -> Verdicts {
    let Some(memory) = memory::open_orders(open) else {
        println!("memory: this system does not tell");
        return Verdicts::default();
    };
    let mib = |bytes: u64| bytes as f64 / (1 << 20) as f64;
    println!(
        "memory: {} orders open; {:.0} MiB grown, {:.0} MiB the whole process; {:.0} bytes an order",
        memory.outcome.resting_orders,
        mib(memory.bytes),
        mib(memory.process_bytes),
        memory.bytes as f64 / open.max(1) as f64
    );
    let goal = Verdict::at_most(
        "memory of the process",
        mib(memory.process_bytes),
        mib(goals::MEMORY_BYTES_MAX),
        "MiB",
    );
    Verdicts { wrong: memory.outcome.resting_orders != open as u64, goals: vec![goal] }
}

/// Clients with one order under way each.
const CLIENTS: [usize; 3] = [1, 8, 64];

/// With and without take turns, and so do one sync for each order and one for all.
fn journals(pinning: &Pinning, task: &Journal) -> Result<Verdicts, Failure> {
    let folder = Folder::new(task.dir.as_deref());
    let workload = generate("s100", Some(task.ops))?;
    println!("files in {}\n", folder.path().display());
    let (mut added, mut means, mut wrong) = (Vec::new(), Vec::new(), false);
    for _ in 0..task.rounds.max(1) {
        let plain = journal::plain(&workload);
        let journaled = journal::journaled(&workload, &folder, pinning, false)?;
        let (without, with) = (plain.ns_per_op, journaled.ns_per_op);
        println!("shard {without:.1} ns per operation, with level os {with:.1}; {} waits", journaled.waits);
        means.push(journaled.ns_per_op - plain.ns_per_op);
        wrong |= journaled.outcome != workload.expected || plain.outcome != workload.expected;
        let timed = journal::journaled(&workload, &folder, pinning, true)?;
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
    let goal = Verdict::at_most("level os, added at the median", median(&added), goals::JOURNAL_NS_MAX, "ns");
    Ok(Verdicts { wrong, goals: vec![goal] })
}

fn recovery(orders: u32, dir: Option<&Path>) -> Result<Verdicts, Failure> {
    let folder = Folder::new(dir);
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
        Verdict::at_most(
            "start from a snapshot",
            restart.seconds_from_snapshot,
            goals::RESTART_FROM_SNAPSHOT_S_MAX,
            "s",
        ),
        Verdict::at_most(
            "start from the journal",
            restart.seconds_from_journal,
            goals::RESTART_FROM_JOURNAL_S_MAX,
            "s",
        ),
    ];
    Ok(Verdicts { wrong: !restart.right, goals })
}

fn all(pinning: &Pinning, rounds: &Rounds) -> Result<Verdicts, Failure> {
    // Memory first, while the process has taken none.
    let mut verdicts = million(1_000_000);
    let mut add = |more: Verdicts| {
        verdicts.wrong |= more.wrong;
        verdicts.goals.extend(more.goals);
    };
    let trips = Trips { trips: 500_000, rounds: rounds.rounds, check: rounds.check };
    add(lanes(pinning, &trips, &OPEN_LOOP_RATES));
    add(stamps(&trips));
    println!();
    let requests = Requests {
        requests: 50_000,
        connections: 16,
        open: 100_000,
        rounds: rounds.rounds,
        check: rounds.check,
    };
    add(http_beside_hyper(pinning, &requests)?);
    println!();
    add(sockets(pinning, &Trips { trips: 100_000, ..trips }));
    add(view(&generate("s100", Some(1_000_000))?));
    add(fix_codec(&Codec { ops: 500_000, rounds: rounds.rounds, check: rounds.check }));
    let wire =
        Wire { sessions: 4, orders: 90_000, steady: 30_000, rounds: 3, alone: false, check: rounds.check };
    add(fix_over_loopback(pinning, &wire)?);
    let (ops, span_ms) = (500_000, 400);
    add(journals(pinning, &Journal { ops, rounds: rounds.rounds, span_ms, dir: None, check: rounds.check })?);
    add(recovery(1_000_000, None)?);
    add(broker(pinning, 1_000_000, Duration::from_secs(2)));
    add(engines(rounds)?);
    Ok(verdicts)
}

fn smoke(pinning: &Pinning) -> Result<Verdicts, Failure> {
    let mut verdicts = million(10_000);
    let mut add = |more: Verdicts| verdicts.wrong |= more.wrong;
    let trips = Trips { trips: 2_000, rounds: 1, check: false };
    add(lanes(pinning, &trips, &OPEN_LOOP_RATES[..1]));
    add(stamps(&trips));
    let requests = Requests { requests: 500, connections: 4, open: 2_000, rounds: 1, check: false };
    add(http_beside_hyper(pinning, &requests)?);
    add(sockets(pinning, &trips));
    let file = std::env::temp_dir().join(format!("pitlane-smoke-{}.ewl", std::process::id()));
    make("s1", Some(5_000), &file)?;
    let flow = Flow { workload: Some(file.clone()), rounds: 1, ..Flow::default() };
    for engine in [Engine::Naive, Engine::Floor, Engine::Book, Engine::Shard] {
        add(single(engine, &flow)?);
    }
    std::fs::remove_file(&file)?;
    add(fix_codec(&Codec { ops: 2_000, rounds: 1, check: false }));
    let wire = Wire { sessions: 2, orders: 500, steady: 200, rounds: 1, alone: true, check: false };
    add(fix_over_loopback(pinning, &wire)?);
    add(view(&generate("s1", Some(5_000))?));
    add(journals(pinning, &Journal { ops: 2_000, rounds: 1, span_ms: 20, dir: None, check: false })?);
    add(recovery(5_000, None)?);
    add(simulation(20_000, 2)?);
    add(broker(pinning, 5_000, Duration::from_millis(50)));
    let scenario = ["s1", "s100", "move"].map(String::from).to_vec();
    let rounds =
        Rounds { workload: None, scenario, ops: Some(5_000), rounds: 1, engine: Vec::new(), check: false };
    add(engines(&rounds)?);
    // So small, the goals say nothing.
    verdicts.goals.clear();
    Ok(verdicts)
}
