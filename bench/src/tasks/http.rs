//! REST: lists compared with bare servers, orders, and small requests beside a long list.

use std::path::PathBuf;

use clap::Args;
use pitlane_bench::budget::BudgetLine;
use pitlane_bench::goals::{self, GoalVerdict};
use pitlane_bench::{http, rest};

use super::results::write_results;
use super::{NO_SECOND_CORE, RunEnvironment};
use crate::{TaskError, TaskVerdicts};

#[derive(Args, Clone)]
pub(crate) struct HttpArgs {
    /// Requests of each round.
    #[arg(long, default_value_t = 50_000)]
    pub requests: usize,
    /// Connections, each with one request in flight.
    #[arg(long, default_value_t = 16)]
    pub connections: usize,
    /// Least number of open orders in the list that other requests compete with.
    #[arg(long, default_value_t = 100_000)]
    pub open: usize,
    #[arg(long, default_value_t = 7)]
    pub rounds: usize,
    /// Folder for the latencies of our responses, closed loop: `.hgrm`, JSON, SVG and a page.
    #[arg(long)]
    pub out: Option<PathBuf>,
    /// Exit with 1 where a goal is missed.
    #[arg(long)]
    pub check: bool,
}

/// Runs our service and the bare servers in alternation, so that they meet the same conditions.
pub(crate) fn compare_http(
    environment: &RunEnvironment,
    requests: &HttpArgs,
) -> Result<TaskVerdicts, TaskError> {
    let pinning = &environment.pinning;
    if !pinning.has_two_cores() {
        println!("http {NO_SECOND_CORE}");
        return Ok(TaskVerdicts::default());
    }
    let rounds = requests.rounds.max(1);
    let comparisons = http::compare(pinning, requests.requests, requests.connections, rounds)?;
    println!("http, {} connections, the server's time on its core for a request", requests.connections);
    comparisons.iter().for_each(|comparison| println!("{comparison}"));
    let judge = |comparison: &http::HttpComparison| {
        let what = format!("{} of {} bytes", comparison.path, comparison.bytes);
        GoalVerdict::at_most(&what, comparison.ratio, goals::HTTP_RATIO_MAX, "× hyper's time")
            .of(BudgetLine::List)
    };
    let mut goals: Vec<GoalVerdict> =
        comparisons.iter().filter(|comparison| comparison.is_list()).map(judge).collect();
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
    goals.push(GoalVerdict::at_least("rest, orders", orders.per_s, goals::REST_ORDERS_PER_S_MIN, "a second"));
    let (longest, most) = (orders.beside_list_ms_max, goals::BESIDE_LIST_MS_MAX);
    goals.push(GoalVerdict::at_most("rest, beside a long list", longest, most, "ms"));
    if let Some(out) = &requests.out {
        let latencies: Vec<_> = comparisons.iter().map(|comparison| &comparison.latencies).collect();
        write_results(
            out,
            environment,
            "A request to the end of its answer, closed loop",
            &latencies,
            &goals,
        )?;
    }
    Ok(TaskVerdicts { wrong: false, goals })
}
