//! All of it, and all of it tiny.

use std::time::Duration;

use pitlane_bench::conditions::Pinning;
use pitlane_bench::contest::Engine;

use super::engines::{Flow, Rounds, engines, generate, make, single, view};
use super::fix::{Codec, Wire, fix_codec, fix_over_loopback};
use super::http::{Requests, http_beside_hyper};
use super::keeping::{Journal, journals, million, recovery, simulation};
use super::stomp::broker;
use super::threads::{OPEN_LOOP_RATES, Trips, lanes, sockets, stamps};
use crate::{Failure, Verdicts};

pub fn all(pinning: &Pinning, rounds: &Rounds) -> Result<Verdicts, Failure> {
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

pub fn smoke(pinning: &Pinning) -> Result<Verdicts, Failure> {
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
