//! All measurements in one run, and the same in a tiny size.

use std::path::PathBuf;

use clap::Args;
use pitlane_bench::budget::BudgetReport;
use pitlane_bench::comparison::Engine;
use pitlane_bench::progress::ProgressLine;
use pitlane_bench::report::folder::ResultFolder;

use super::RunEnvironment;
use super::engines::{EnginesArgs, FlowArgs, engines, generate, make, single, view};
use super::fix::{FixArgs, FixCodecArgs, fix_codec, fix_over_loopback};
use super::http::{HttpArgs, compare_http};
use super::isolation::{IsolationArgs, isolation};
use super::levels::{LevelsArgs, levels};
use super::market_data::{FixMarketDataArgs, fix_market_data};
use super::resources::{JournalArgs, idle_service, journal_cost, open_orders_memory, recovery, simulation};
use super::results::report;
use super::stomp::{OrderToTickArgs, StompArgs, broker, order_to_tick};
use super::threads::{OPEN_LOOP_RATES, RoundTripArgs, lanes, sockets, stage_timestamps};
use crate::{TaskError, TaskVerdicts};

#[derive(Args, Clone)]
pub(crate) struct AllArgs {
    #[command(flatten)]
    pub rounds: EnginesArgs,
    /// Folder for the closing table, JSON, drawings and the page.
    #[arg(long, default_value = "target/bench")]
    pub out: PathBuf,
}

/// One measurement of the run, with its name.
type Measurement<'a> = (&'static str, Box<dyn Fn() -> Result<TaskVerdicts, TaskError> + 'a>);

/// Measures every line of the performance budget that takes minutes at most, and the further goals.
pub(crate) fn all(environment: &RunEnvironment, whole: &AllArgs) -> Result<TaskVerdicts, TaskError> {
    let (pinning, rounds, out) = (&environment.pinning, &whole.rounds, &whole.out);
    let (check, count) = (false, rounds.rounds);
    let trips = RoundTripArgs { trips: 500_000, rounds: count, check };
    let few = RoundTripArgs { trips: 100_000, rounds: count.min(3), check };
    let requests = HttpArgs {
        requests: 50_000,
        connections: 16,
        open: 100_000,
        rounds: count,
        out: Some(out.join("http")),
        check,
    };
    let wire = FixArgs {
        sessions: 4,
        orders: 90_000,
        steady: 30_000,
        rounds: 3,
        alone: false,
        closed: false,
        out: Some(out.join("fix")),
        check,
    };
    let journal = JournalArgs { ops: 500_000, rounds: count.min(3), span_ms: 400, dir: None, check };
    let stomp = StompArgs { ticks: 1_000_000, ms: 2_000, out: Some(out.join("stomp")), check };
    let trades = OrderToTickArgs {
        rate: 5_000,
        trades: 20_000,
        rounds: 3,
        out: Some(out.join("order-to-tick")),
        check,
    };
    let by_level = LevelsArgs { rate: 1_000, orders: 5_000, rounds: 3, out: Some(out.join("levels")), check };
    let market_data = FixMarketDataArgs {
        rates: vec![1_000, 10_000],
        consumers: vec![1, 10, 100],
        ms: 1_000,
        rounds: 1,
        out: Some(out.join("fix-market-data")),
    };
    let codec = FixCodecArgs { ops: 500_000, rounds: count, check };
    // Memory first, while the process has allocated little.
    let parts: Vec<Measurement<'_>> = vec![
        ("memory", Box::new(|| Ok(open_orders_memory(1_000_000)))),
        ("idle", Box::new(|| idle_service(3, 10))),
        ("lane", Box::new(|| Ok(lanes(pinning, &trips, &OPEN_LOOP_RATES)))),
        ("stages", Box::new(|| Ok(stage_timestamps(&trips)))),
        ("http", Box::new(|| compare_http(environment, &requests))),
        ("net", Box::new(|| Ok(sockets(pinning, &few)))),
        ("view", Box::new(|| Ok(view(&generate("s100", Some(1_000_000))?)))),
        ("fix-codec", Box::new(|| Ok(fix_codec(&codec)))),
        ("fix", Box::new(|| fix_over_loopback(environment, &wire))),
        ("journal", Box::new(|| journal_cost(pinning, &journal))),
        ("recovery", Box::new(|| recovery(1_000_000, None))),
        ("simulate", Box::new(|| simulation(4_000_000, count.min(3)))),
        ("stomp", Box::new(|| broker(environment, &stomp))),
        ("fix-market-data", Box::new(|| fix_market_data(environment, &market_data))),
        ("order-to-tick", Box::new(|| order_to_tick(environment, &trades))),
        ("levels", Box::new(|| levels(environment, &by_level))),
        ("engines", Box::new(|| engines(rounds))),
    ];
    let mut verdicts = TaskVerdicts::default();
    let mut progress = ProgressLine::default();
    for (nth, (name, part)) in parts.iter().enumerate() {
        progress.begin(nth + 1, parts.len(), name);
        println!("— {name}");
        match part() {
            Ok(more) => {
                verdicts.wrong |= more.wrong;
                verdicts.goals.extend(more.goals);
            }
            // A measurement that is impossible here is reported, and the run continues.
            Err(failure) => println!("{name} was not measured: {failure}"),
        }
        println!();
    }
    let budget = BudgetReport(&verdicts.goals);
    let mut folder = ResultFolder::make(out, &environment.conditions)?;
    folder.write(
        "budget.txt",
        &format!("{}noise     {}\n\n{budget}", environment.conditions, environment.noise.line()),
    )?;
    folder.add_member("budget", budget.to_json());
    let seconds = progress.elapsed().as_secs();
    drop(progress);
    folder.close(&environment.conditions, &environment.noise, &verdicts.goals)?;
    report(out)?;
    println!(
        "\n{budget}it took {} minutes and {} seconds\n\nand every goal by itself:",
        seconds / 60,
        seconds % 60
    );
    Ok(verdicts)
}

pub(crate) fn smoke(environment: &RunEnvironment) -> Result<TaskVerdicts, TaskError> {
    let pinning = &environment.pinning;
    let mut verdicts = open_orders_memory(10_000);
    let mut add = |more: TaskVerdicts| verdicts.wrong |= more.wrong;
    let trips = RoundTripArgs { trips: 2_000, rounds: 1, check: false };
    add(lanes(pinning, &trips, &OPEN_LOOP_RATES[..1]));
    add(stage_timestamps(&trips));
    let requests =
        HttpArgs { requests: 500, connections: 4, open: 2_000, rounds: 1, out: None, check: false };
    add(compare_http(environment, &requests)?);
    add(sockets(pinning, &trips));
    let file = std::env::temp_dir().join(format!("pitlane-smoke-{}.ewl", std::process::id()));
    make("s1", Some(5_000), &file)?;
    let flow = FlowArgs { workload: Some(file.clone()), rounds: 1, ..FlowArgs::default() };
    for engine in [Engine::Naive, Engine::Floor, Engine::Book, Engine::Shard] {
        add(single(engine, &flow)?);
    }
    std::fs::remove_file(&file)?;
    add(fix_codec(&FixCodecArgs { ops: 2_000, rounds: 1, check: false }));
    let wire = FixArgs {
        sessions: 2,
        orders: 500,
        steady: 200,
        rounds: 1,
        alone: true,
        closed: true,
        out: None,
        check: false,
    };
    add(fix_over_loopback(environment, &wire)?);
    add(view(&generate("s1", Some(5_000))?));
    add(journal_cost(pinning, &JournalArgs { ops: 2_000, rounds: 1, span_ms: 20, dir: None, check: false })?);
    add(recovery(5_000, None)?);
    add(simulation(20_000, 2)?);
    add(broker(environment, &StompArgs { ticks: 5_000, ms: 50, out: None, check: false })?);
    let trades = OrderToTickArgs { rate: 200, trades: 50, rounds: 1, out: None, check: false };
    add(order_to_tick(environment, &trades)?);
    let by_level = LevelsArgs { rate: 200, orders: 50, rounds: 1, out: None, check: false };
    add(levels(environment, &by_level)?);
    let market_data =
        FixMarketDataArgs { rates: vec![2_000], consumers: vec![1, 5], ms: 50, rounds: 1, out: None };
    add(fix_market_data(environment, &market_data)?);
    add(isolation(
        environment,
        &IsolationArgs {
            rate: 500,
            attacks: 200,
            ms: 40,
            rounds: 1,
            tries: 1,
            only: String::new(),
            check: false,
        },
    )?);
    let scenario = ["s1", "s100", "move"].map(String::from).to_vec();
    let rounds = EnginesArgs {
        workload: None,
        scenario,
        ops: Some(5_000),
        rounds: 1,
        engine: Vec::new(),
        check: false,
    };
    add(engines(&rounds)?);
    // At this size the goals mean nothing.
    verdicts.goals.clear();
    Ok(verdicts)
}
