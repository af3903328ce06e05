//! All measurements in one run, and the same in a tiny size.

use std::path::PathBuf;

use clap::Args;
use pitlane_bench::budget::Budget;
use pitlane_bench::contest::Engine;
use pitlane_bench::progress::Progress;
use pitlane_bench::report::folder::Folder;

use super::Site;
use super::engines::{Flow, Rounds, engines, generate, make, single, view};
use super::fix::{Codec, Wire, fix_codec, fix_over_loopback};
use super::http::{Requests, http_beside_hyper};
use super::isolation::{Attacked, isolation};
use super::keeping::{Journal, journals, million, recovery, resting, simulation};
use super::results::report;
use super::stomp::{Broker, broker};
use super::threads::{OPEN_LOOP_RATES, Trips, lanes, sockets, stamps};
use crate::{Failure, Verdicts};

#[derive(Args, Clone)]
pub struct Whole {
    #[command(flatten)]
    pub rounds: Rounds,
    /// Folder for the closing table, JSON, drawings and the page.
    #[arg(long, default_value = "target/bench")]
    pub out: PathBuf,
}

/// One measurement of the run, with its name.
type Part<'a> = (&'static str, Box<dyn Fn() -> Result<Verdicts, Failure> + 'a>);

/// Measures every line of the performance budget that takes minutes at most, and the further goals.
pub fn all(site: &Site, whole: &Whole) -> Result<Verdicts, Failure> {
    let (pinning, rounds, out) = (&site.pinning, &whole.rounds, &whole.out);
    let (check, count) = (false, rounds.rounds);
    let trips = Trips { trips: 500_000, rounds: count, check };
    let few = Trips { trips: 100_000, rounds: count.min(3), check };
    let requests = Requests {
        requests: 50_000,
        connections: 16,
        open: 100_000,
        rounds: count,
        out: Some(out.join("http")),
        check,
    };
    let wire = Wire {
        sessions: 4,
        orders: 90_000,
        steady: 30_000,
        rounds: 3,
        alone: false,
        closed: false,
        out: Some(out.join("fix")),
        check,
    };
    let journal = Journal { ops: 500_000, rounds: count.min(3), span_ms: 400, dir: None, check };
    let stomp = Broker { ticks: 1_000_000, ms: 2_000, out: Some(out.join("stomp")), check };
    let codec = Codec { ops: 500_000, rounds: count, check };
    // Memory first, while the process has allocated little.
    let parts: Vec<Part<'_>> = vec![
        ("memory", Box::new(|| Ok(million(1_000_000)))),
        ("idle", Box::new(|| resting(3, 10))),
        ("lane", Box::new(|| Ok(lanes(pinning, &trips, &OPEN_LOOP_RATES)))),
        ("stages", Box::new(|| Ok(stamps(&trips)))),
        ("http", Box::new(|| http_beside_hyper(site, &requests))),
        ("net", Box::new(|| Ok(sockets(pinning, &few)))),
        ("view", Box::new(|| Ok(view(&generate("s100", Some(1_000_000))?)))),
        ("fix-codec", Box::new(|| Ok(fix_codec(&codec)))),
        ("fix", Box::new(|| fix_over_loopback(site, &wire))),
        ("journal", Box::new(|| journals(pinning, &journal))),
        ("recovery", Box::new(|| recovery(1_000_000, None))),
        ("simulate", Box::new(|| simulation(4_000_000, count.min(3)))),
        ("stomp", Box::new(|| broker(site, &stomp))),
        ("engines", Box::new(|| engines(rounds))),
    ];
    let mut verdicts = Verdicts::default();
    let mut progress = Progress::default();
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
    let budget = Budget(&verdicts.goals);
    let mut folder = Folder::make(out, &site.conditions)?;
    folder.write("budget.txt", &format!("{}noise     {}\n\n{budget}", site.conditions, site.noise.line()))?;
    folder.tell("budget", budget.to_json());
    let seconds = progress.elapsed().as_secs();
    drop(progress);
    folder.close(&site.conditions, &site.noise, &verdicts.goals)?;
    report(out)?;
    println!(
        "\n{budget}it took {} minutes and {} seconds\n\nand every goal by itself:",
        seconds / 60,
        seconds % 60
    );
    Ok(verdicts)
}

pub fn smoke(site: &Site) -> Result<Verdicts, Failure> {
    let pinning = &site.pinning;
    let mut verdicts = million(10_000);
    let mut add = |more: Verdicts| verdicts.wrong |= more.wrong;
    let trips = Trips { trips: 2_000, rounds: 1, check: false };
    add(lanes(pinning, &trips, &OPEN_LOOP_RATES[..1]));
    add(stamps(&trips));
    let requests =
        Requests { requests: 500, connections: 4, open: 2_000, rounds: 1, out: None, check: false };
    add(http_beside_hyper(site, &requests)?);
    add(sockets(pinning, &trips));
    let file = std::env::temp_dir().join(format!("pitlane-smoke-{}.ewl", std::process::id()));
    make("s1", Some(5_000), &file)?;
    let flow = Flow { workload: Some(file.clone()), rounds: 1, ..Flow::default() };
    for engine in [Engine::Naive, Engine::Floor, Engine::Book, Engine::Shard] {
        add(single(engine, &flow)?);
    }
    std::fs::remove_file(&file)?;
    add(fix_codec(&Codec { ops: 2_000, rounds: 1, check: false }));
    let wire = Wire {
        sessions: 2,
        orders: 500,
        steady: 200,
        rounds: 1,
        alone: true,
        closed: true,
        out: None,
        check: false,
    };
    add(fix_over_loopback(site, &wire)?);
    add(view(&generate("s1", Some(5_000))?));
    add(journals(pinning, &Journal { ops: 2_000, rounds: 1, span_ms: 20, dir: None, check: false })?);
    add(recovery(5_000, None)?);
    add(simulation(20_000, 2)?);
    add(broker(site, &Broker { ticks: 5_000, ms: 50, out: None, check: false })?);
    add(isolation(
        site,
        &Attacked { rate: 500, attacks: 200, ms: 40, rounds: 1, tries: 1, only: String::new(), check: false },
    )?);
    let scenario = ["s1", "s100", "move"].map(String::from).to_vec();
    let rounds =
        Rounds { workload: None, scenario, ops: Some(5_000), rounds: 1, engine: Vec::new(), check: false };
    add(engines(&rounds)?);
    // At this size the goals mean nothing.
    verdicts.goals.clear();
    Ok(verdicts)
}
