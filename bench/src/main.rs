//! The command line of the bench. The README describes what each subcommand measures.

mod tasks;

use std::net::SocketAddr;
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

use clap::{Parser, Subcommand};
use pitlane_bench::comparison::Engine;
use pitlane_bench::conditions::{Conditions, Pinning};
use pitlane_bench::fix_wire::{MovingPrices, ServedStomp};
use pitlane_bench::goals::GoalVerdict;
use pitlane_bench::measure::clock_ns;
use pitlane_bench::work::MicroBench;
use pitlane_bench::{fix_wire, http, noise};

use self::tasks::{
    RunEnvironment, builds, endurance, engines, everything, fix, isolation, levels, market_data, peers,
    remote, resources, results, stomp, threads,
};

#[derive(Parser)]
#[command(
    name = "pitlane-bench",
    about = "Measures the speed of Pitlane and compares it with peers",
    version
)]
struct BenchCli {
    /// Also draw a flame graph into this SVG file. Needs `perf`, and a build with frame pointers
    /// (`make flame`).
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
    Book(engines::FlowArgs),
    /// The whole shard: risk, order states, positions, events.
    Shard(engines::FlowArgs),
    /// The bare array ladder that the others are measured against.
    Floor(engines::FlowArgs),
    /// The naive matcher, which defines the expected outcome.
    Naive(engines::FlowArgs),
    /// A public order-book crate.
    #[cfg(feature = "peers")]
    Peer {
        #[arg(value_enum)]
        engine: Engine,
        #[command(flatten)]
        flow: engines::FlowArgs,
    },
    /// The bare ring's round trip between two pinned threads.
    Ring(threads::RoundTripArgs),
    /// Command lane → shard → event lane, beside the bare ring; then open loop.
    Lane(threads::RoundTripArgs),
    /// What the stage timestamps add to a command's time from lane to lane.
    Stages(threads::RoundTripArgs),
    /// Sockets over loopback: a ping-pong compared with a bare echo, and one message to many
    /// consumers.
    Net(threads::RoundTripArgs),
    /// The read model's time for each event of a shard.
    View(engines::FlowArgs),
    /// The FIX codec: a New Order Single read, an Execution Report written.
    #[command(visible_alias = "codec")]
    FixCodec(fix::FixCodecArgs),
    /// FIX over loopback, at full load and at a steady rate, compared with a bare echo and an
    /// acceptor on QuickFIX.
    Fix(fix::FixArgs),
    /// Market data over FIX to 1, 10 and 100 sessions, beside as many STOMP consumers of the same
    /// feed.
    FixMarketData(market_data::FixMarketDataArgs),
    /// From a FIX order that trades to the tick of the trade at a STOMP consumer.
    OrderToTick(stomp::OrderToTickArgs),
    /// FIX orders at the levels of the journal: `os`, `disk` and `replicated`.
    Levels(levels::LevelsArgs),
    /// FIX orders to a service that runs elsewhere, on another host or in another network
    /// namespace, with the times at which the kernel received the reports.
    Remote(remote::RemoteArgs),
    /// A bare echo that spins, the floor for `remote --echo`, until the process is ended.
    Echo { address: SocketAddr },
    /// The service that `fix` measures.
    #[command(hide = true)]
    ServeFix {
        port: u16,
        http: u16,
        core: u32,
        data: PathBuf,
        stomp: Option<u16>,
        /// Prices do not move.
        #[arg(long)]
        still: bool,
        /// Settings that replace others.
        #[arg(long)]
        set: Vec<String>,
    },
    /// REST: lists compared with bare servers that answer the same bytes, orders per second, and
    /// other requests while a long list is sent.
    #[command(visible_alias = "rest")]
    Http(tasks::http::HttpArgs),
    /// A server that `http` measures.
    #[command(hide = true)]
    ServeHttp { server: String, port: u16, folder: PathBuf },
    /// STOMP: decode, render and fan-out without sockets; then over loopback to 1, 10 and 100
    /// consumers, compared with NATS where it is installed.
    Stomp(stomp::StompArgs),
    /// The binary with its default config: how long it takes to start, and how much of a core it
    /// takes without clients.
    Idle {
        /// Number of starts; the median is printed.
        #[arg(long, default_value_t = 3)]
        starts: usize,
        /// Seconds of the measurement.
        #[arg(long, default_value_t = 10)]
        seconds: u64,
        /// Exit with 1 where a goal is missed.
        #[arg(long)]
        check: bool,
    },
    /// What the host takes from the core on which the load is measured: the gaps that a thread sees
    /// which only reads the clock, second by second.
    Noise {
        #[arg(long, default_value_t = 10)]
        seconds: u64,
    },
    /// `pitlane simulate` with the moving-average example over a tick file that is generated for
    /// it.
    Simulate {
        #[arg(long, default_value_t = 4_000_000)]
        ticks: u64,
        #[arg(long, default_value_t = 5)]
        rounds: usize,
        /// Exit with 1 where a goal is missed.
        #[arg(long)]
        check: bool,
    },
    /// The memory of a shard with this many open orders.
    Memory {
        #[arg(long, default_value_t = 1_000_000)]
        open: u32,
        #[arg(long)]
        check: bool,
    },
    /// What the journal adds to an order, and what a sync shared by many clients gains.
    Journal(resources::JournalArgs),
    /// How long a start takes with this many orders, from the journal alone and from a snapshot.
    Recovery {
        #[arg(long, default_value_t = 1_000_000)]
        orders: u32,
        /// Folder of the files; its disk is what is measured.
        #[arg(long)]
        dir: Option<PathBuf>,
        #[arg(long)]
        check: bool,
    },
    /// Engines compared in interleaved rounds.
    Engines(engines::EnginesArgs),
    /// Pitlane compared with every peer that is available on this machine: brokers, FIX, HTTP,
    /// order books. One table and one drawing.
    Compare(peers::CompareArgs),
    /// FIX orders at rising rates, up to the knee.
    Sweep(endurance::SweepArgs),
    /// FIX orders at half the knee for a long time: whether memory grows or the tail drifts.
    Soak(endurance::SoakArgs),
    /// A well-behaved FIX client's tail latency under each kind of attack, compared with quiet.
    Isolation(isolation::IsolationArgs),
    /// One page from a folder of results, with the findings of `pitlane doctor`.
    Report { folder: PathBuf },
    /// One small piece of the hot path, repeated: prints the nanoseconds of one repetition.
    Work(builds::WorkArgs),
    /// This build and another in alternating runs on this machine; exits with 1 where this one is
    /// slower beyond the noise.
    Gate(builds::GateArgs),
    /// Instructions of one piece of work, by callgrind: the same number on a busy machine.
    Instructions {
        /// Only these pieces of work.
        #[arg(value_enum)]
        works: Vec<MicroBench>,
    },
    /// Everything, and at the end every line of the performance budget with its verdict.
    All(everything::AllArgs),
    /// Everything in a tiny size, to check that nothing is broken.
    Smoke,
}

/// The result of a task: a wrong outcome always fails, a missed goal only with `--check`.
#[derive(Default)]
struct TaskVerdicts {
    wrong: bool,
    goals: Vec<GoalVerdict>,
}

type TaskError = Box<dyn std::error::Error>;

/// Time for which the machine's own noise is measured before anything else.
const NOISE: Duration = Duration::from_millis(500);

fn main() -> ExitCode {
    let cli = BenchCli::parse();
    let check = cli.task.checks();
    #[cfg(feature = "flame")]
    let result = with_flame_graph(cli.flame.as_deref(), || run(cli.task));
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

/// Runs the task, sampled by `perf` if a drawing is requested.
#[cfg(feature = "flame")]
fn with_flame_graph(
    out: Option<&std::path::Path>,
    task: impl FnOnce() -> Result<TaskVerdicts, TaskError>,
) -> Result<TaskVerdicts, TaskError> {
    let Some(out) = out else { return task() };
    let flame = pitlane_bench::flame::Flame::start(out)?;
    let verdicts = task()?;
    let args: Vec<String> = std::env::args().skip(1).collect();
    flame.draw(&format!("pitlane-bench {}", args.join(" ")))?;
    println!("drawn into {}", out.display());
    Ok(verdicts)
}

impl Task {
    fn checks(&self) -> bool {
        match self {
            Task::Ring(trips) | Task::Lane(trips) | Task::Stages(trips) => trips.check,
            Task::FixCodec(codec) => codec.check,
            Task::Fix(wire) => wire.check,
            Task::OrderToTick(task) => task.check,
            Task::Levels(task) => task.check,
            Task::Http(requests) => requests.check,
            Task::Memory { check, .. }
            | Task::Recovery { check, .. }
            | Task::Simulate { check, .. }
            | Task::Idle { check, .. } => *check,
            Task::Stomp(broker) => broker.check,
            Task::Isolation(attacked) => attacked.check,
            Task::Journal(journal) => journal.check,
            Task::Engines(rounds) => rounds.check,
            Task::All(whole) => whole.rounds.check,
            Task::Workload { .. }
            | Task::Book(_)
            | Task::Shard(_)
            | Task::Floor(_)
            | Task::Naive(_)
            | Task::Net(_)
            | Task::View(_)
            | Task::FixMarketData(_)
            | Task::Remote(_)
            | Task::Echo { .. }
            | Task::Noise { .. }
            | Task::ServeFix { .. }
            | Task::ServeHttp { .. }
            | Task::Compare(_)
            | Task::Sweep(_)
            | Task::Soak(_)
            | Task::Smoke
            | Task::Report { .. }
            | Task::Work(_)
            | Task::Gate(_)
            | Task::Instructions { .. } => false,
            #[cfg(feature = "peers")]
            Task::Peer { .. } => false,
        }
    }
}

fn run(task: Task) -> Result<TaskVerdicts, TaskError> {
    if let Task::ServeFix { port, http, core, data, stomp, still, set } = task {
        let prices = if still { MovingPrices::No } else { MovingPrices::Yes };
        let stomp = stomp.map(|port| ServedStomp { port, prices });
        fix_wire::serve_fix(port, http, core, &data, stomp, &set)?;
        return Ok(TaskVerdicts::default());
    }
    if let Task::ServeHttp { server, port, folder } = task {
        http::server::serve_http(&server, port, &folder)?;
        return Ok(TaskVerdicts::default());
    }
    if let Task::Workload { scenario, out, ops } = task {
        return engines::make(&scenario, ops, &out);
    }
    if let Task::Report { folder } = task {
        return results::report(&folder);
    }
    if let Task::Work(piece) = task {
        Pinning::take();
        return Ok(builds::work(&piece));
    }
    let pinning = Pinning::take();
    if let Task::Echo { address } = task {
        return remote::serve_echo(address);
    }
    let environment =
        RunEnvironment { pinning, conditions: Conditions::of(&pinning), noise: noise::measure(NOISE) };
    print!("{}", environment.conditions);
    println!("clock     {} ns for a pair of timestamps", clock_ns());
    println!("noise     {}\n", environment.noise.line());
    match task {
        Task::Workload { .. } | Task::Work(_) => Ok(TaskVerdicts::default()),
        Task::Sweep(rates) => endurance::sweep(&environment, &rates),
        Task::Soak(long) => endurance::soak(&environment, &long),
        Task::Isolation(attacked) => isolation::isolation(&environment, &attacked),
        Task::Report { .. } => Ok(TaskVerdicts::default()),
        Task::Gate(gate) => builds::gate(&gate),
        Task::Instructions { works } => builds::instructions(&works),
        Task::Book(flow) => engines::single(Engine::Book, &flow),
        Task::Shard(flow) => engines::single(Engine::Shard, &flow),
        Task::Floor(flow) => engines::single(Engine::Floor, &flow),
        Task::Naive(flow) => engines::single(Engine::Naive, &flow),
        #[cfg(feature = "peers")]
        Task::Peer { engine, flow } => engines::single(engine, &flow),
        Task::Ring(trips) => Ok(threads::bare_ring(&pinning, &trips)),
        Task::Lane(trips) => Ok(threads::lanes(&pinning, &trips, &threads::OPEN_LOOP_RATES)),
        Task::Stages(trips) => Ok(threads::stage_timestamps(&trips)),
        Task::Net(trips) => Ok(threads::sockets(&pinning, &trips)),
        Task::View(flow) => Ok(engines::view(&flow.load()?)),
        Task::FixCodec(codec) => Ok(fix::fix_codec(&codec)),
        Task::Fix(wire) => fix::fix_over_loopback(&environment, &wire),
        Task::Levels(task) => levels::levels(&environment, &task),
        Task::Remote(task) => remote::remote(&environment, &task),
        Task::Echo { .. } | Task::ServeFix { .. } | Task::ServeHttp { .. } => Ok(TaskVerdicts::default()),
        Task::Http(requests) => tasks::http::compare_http(&environment, &requests),
        Task::Stomp(task) => stomp::broker(&environment, &task),
        Task::FixMarketData(task) => market_data::fix_market_data(&environment, &task),
        Task::OrderToTick(task) => stomp::order_to_tick(&environment, &task),
        Task::Noise { seconds } => Ok(resources::show_noise(seconds)),
        Task::Idle { starts, seconds, .. } => resources::idle_service(starts, seconds),
        Task::Simulate { ticks, rounds, .. } => resources::simulation(ticks, rounds),
        Task::Memory { open, .. } => Ok(resources::open_orders_memory(open)),
        Task::Journal(task) => resources::journal_cost(&pinning, &task),
        Task::Recovery { orders, dir, .. } => resources::recovery(orders, dir.as_deref()),
        Task::Engines(rounds) => engines::engines(&rounds),
        Task::Compare(task) => peers::compare(&environment, &task),
        Task::All(whole) => everything::all(&environment, &whole),
        Task::Smoke => everything::smoke(&environment),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::CommandFactory;

    #[test]
    fn the_options_of_every_subcommand_agree() {
        BenchCli::command().debug_assert();
        let line = ["pitlane-bench", "fix-market-data", "--rates", "500,2000", "--consumers", "3"];
        let Task::FixMarketData(task) = BenchCli::parse_from(line).task else { panic!("another task") };
        assert_eq!((task.rates, task.consumers, task.rounds), (vec![500, 2_000], vec![3], 3));
        let line = ["pitlane-bench", "fix-market-data"];
        let Task::FixMarketData(task) = BenchCli::parse_from(line).task else { panic!("another task") };
        assert_eq!((task.rates, task.consumers), (vec![1_000, 10_000], vec![1, 10, 100]));
    }

    #[test]
    fn a_remote_service_needs_an_address_a_folder_and_a_whole_login() {
        let parse = |words: &[&str]| {
            let line = ["pitlane-bench", "remote"].into_iter().chain(words.iter().copied());
            BenchCli::try_parse_from(line).map(|_| ()).map_err(|error| error.to_string())
        };
        assert_eq!(parse(&["10.0.0.1:9880", "--out", "x"]), Ok(()));
        assert_eq!(parse(&["10.0.0.1:9880", "--out", "x", "--login", "a", "--secret-file", "b"]), Ok(()));
        for (words, problem) in [
            (&["10.0.0.1:9880"][..], "--out <OUT>"),
            (&["10.0.0.1", "--out", "x"], "invalid value '10.0.0.1'"),
            (&["10.0.0.1:1", "--out", "x", "--login", "a"], "--secret-file <SECRET_FILE>"),
            (&["10.0.0.1:1", "--out", "x", "--echo", "--stomp", "10.0.0.1:2"], "cannot be used with"),
            (&["10.0.0.1:1", "--out", "x", "--seconds", "0"], "invalid value '0'"),
        ] {
            let error = parse(words).unwrap_err();
            assert!(error.contains(problem), "{error}");
        }
    }
}
