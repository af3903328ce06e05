//! Between two threads: rings, lanes with a shard behind them, stage timestamps, sockets.

use clap::Args;
use pitlane_bench::budget::BudgetLine;
use pitlane_bench::conditions::Pinning;
use pitlane_bench::goals::{self, GoalVerdict};
use pitlane_bench::measure::{median, percentiles};
use pitlane_bench::{lane, net, ring, stages};

use crate::TaskVerdicts;
use crate::tasks::NO_SECOND_CORE;

#[derive(Args, Clone)]
pub(crate) struct RoundTripArgs {
    /// Round trips of each round.
    #[arg(long, default_value_t = 500_000)]
    pub trips: usize,
    #[arg(long, default_value_t = 5)]
    pub rounds: usize,
    /// Exit with 1 where a goal is missed.
    #[arg(long)]
    pub check: bool,
}

pub(crate) const OPEN_LOOP_RATES: [u64; 4] = [100_000, 500_000, 1_000_000, 2_000_000];

pub(crate) fn bare_ring(pinning: &Pinning, trips: &RoundTripArgs) -> TaskVerdicts {
    if !pinning.has_two_cores() {
        println!("ring {NO_SECOND_CORE}");
        return TaskVerdicts::default();
    }
    for _ in 0..trips.rounds.max(1) {
        println!("{}", percentiles("ring", &ring::round_trips(pinning, trips.trips)));
    }
    TaskVerdicts::default()
}

/// Runs ring and lane in alternation, so that both meet the same conditions.
pub(crate) fn lanes(pinning: &Pinning, trips: &RoundTripArgs, rates: &[u64]) -> TaskVerdicts {
    if !pinning.has_two_cores() {
        println!("lane {NO_SECOND_CORE}");
        return TaskVerdicts::default();
    }
    let (mut differences, mut firsts, mut hops) = (Vec::new(), Vec::new(), Vec::new());
    for _ in 0..trips.rounds.max(1) {
        let bare = ring::round_trips(pinning, trips.trips);
        let hop = ring::lane_round_trips(pinning, trips.trips);
        let latencies = lane::round_trips(pinning, trips.trips);
        println!("{}", percentiles("ring", &bare));
        println!("{}", percentiles("lane alone", &hop));
        println!("{}", percentiles("lane first", &latencies.first));
        println!("{}", percentiles("lane last", &latencies.last));
        let ring = bare.value_at_quantile(0.5) as f64;
        firsts.push(latencies.first.value_at_quantile(0.5) as f64 - ring);
        hops.push(hop.value_at_quantile(0.5) as f64 / ring);
        differences.push(latencies.last.value_at_quantile(0.5) as f64 - ring);
    }
    println!("\nopen loop, from the planned time of a command to its last event");
    for &rate in rates {
        let result = lane::open_loop(pinning, rate, trips.trips);
        let rate_name = format!("{:.1} M/s", rate as f64 / 1e6);
        println!(
            "{}  reached {:.3} M/s",
            percentiles(&rate_name, &result.latencies),
            result.per_s_reached / 1e6
        );
    }
    let first = GoalVerdict::at_most("beyond the ring", median(&firsts), goals::LANE_NS_MAX, "ns")
        .of(BudgetLine::Lane);
    let hop = GoalVerdict::at_most("lane alone", median(&hops), goals::RING_RATIO_MAX, "× the ring")
        .of(BudgetLine::Ring);
    let last = median(&differences);
    println!("\nlane beyond ring, to the last event: {last:.0} ns");
    TaskVerdicts { wrong: false, goals: vec![first, hop] }
}

pub(crate) fn stage_timestamps(trips: &RoundTripArgs) -> TaskVerdicts {
    let cost = stages::measure(trips.rounds.max(1) * trips.trips);
    let stages::StageCost { bare_ns, stamped_ns } = cost;
    println!(
        "stages: {bare_ns:.1} ns a command without stamps, {stamped_ns:.1} ns with them, the best rounds"
    );
    let goal = GoalVerdict::at_most("stamps of stages", cost.cost_percent(), goals::STAGES_PERCENT_MAX, "%");
    TaskVerdicts { wrong: false, goals: vec![goal] }
}

/// Numbers of consumers of one message.
const FAN_OUTS: [usize; 3] = [1, 10, 100];

/// Runs bare echoes and drivers in alternation, so that all meet the same conditions.
pub(crate) fn sockets(pinning: &Pinning, trips: &RoundTripArgs) -> TaskVerdicts {
    if !pinning.has_two_cores() {
        println!("net {NO_SECOND_CORE}");
        return TaskVerdicts::default();
    }
    let is_available = |server: &net::EchoServer| match server.forbidden() {
        Some(reason) => {
            println!("{:<10} skipped: {reason}", server.name());
            false
        }
        None => true,
    };
    let servers: Vec<net::EchoServer> = net::EchoServer::ALL.into_iter().filter(is_available).collect();
    println!("ping-pong of 128 bytes over loopback");
    for _ in 0..trips.rounds.max(1) {
        for &server in &servers {
            println!("{}", percentiles(server.name(), &net::ping_pong(pinning, server, trips.trips)));
        }
    }
    println!("\n200-octet messages to many consumers, million deliveries a second");
    for consumers in FAN_OUTS {
        for &server in &servers {
            let net::EchoServer::Driver(driver) = server else { continue };
            let rate = net::fan_out(pinning, driver, consumers, trips.trips * 4 / consumers.min(20));
            println!("{:<10} {consumers:>3} consumers {:.2} M/s", server.name(), rate / 1e6);
        }
    }
    println!();
    TaskVerdicts::default()
}
