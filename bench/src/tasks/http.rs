//! REST: lists compared with bare servers, orders, and small requests beside a long list.

use std::path::PathBuf;

use clap::Args;
use pitlane_bench::budget::Line;
use pitlane_bench::goals::{self, Verdict};
use pitlane_bench::{http, rest};

use super::results::keep;
use super::{NO_SECOND_CORE, Site};
use crate::{Failure, Verdicts};

#[derive(Args, Clone)]
pub struct Requests {
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
pub fn http_beside_hyper(site: &Site, requests: &Requests) -> Result<Verdicts, Failure> {
    let pinning = &site.pinning;
    if !pinning.has_two_cores() {
        println!("http {NO_SECOND_CORE}");
        return Ok(Verdicts::default());
    }
    let rounds = requests.rounds.max(1);
    let contest = http::contest(pinning, requests.requests, requests.connections, rounds)?;
    println!("http, {} connections, the server's time on its core for a request", requests.connections);
    contest.iter().for_each(|beside| println!("{beside}"));
    let judge = |beside: &http::Beside| {
        let what = format!("{} of {} bytes", beside.path, beside.bytes);
        Verdict::at_most(&what, beside.ratio, goals::HTTP_RATIO_MAX, "× hyper's time").of(Line::List)
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
    if let Some(out) = &requests.out {
        let latencies: Vec<_> = contest.iter().map(|beside| &beside.latencies).collect();
        keep(out, site, "A request to the end of its answer, closed loop", &latencies, &goals)?;
    }
    Ok(Verdicts { wrong: false, goals })
}
