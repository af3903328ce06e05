//! Market data over FIX beside STOMP: the same feed to 1, 10 and 100 consumers of each.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use clap::Args;
use pitlane_bench::fan_out::feed::{self, FeedConsumer, FeedLoad, FeedResult};
use pitlane_bench::measure::median;
use pitlane_bench::platform;

use super::results::write_results;
use super::{NO_SECOND_CORE, RunEnvironment};
use crate::{TaskError, TaskVerdicts};

/// Securities of the feed, in turn.
const SECURITIES: u32 = 100;

#[derive(Args, Clone)]
pub(crate) struct FixMarketDataArgs {
    /// Ticks per second, one feed after the other.
    #[arg(long, value_delimiter = ',', default_values_t = [1_000, 10_000])]
    pub rates: Vec<u64>,
    /// Consumers of a feed.
    #[arg(long, value_delimiter = ',', default_values_t = [1, 10, 100])]
    pub consumers: Vec<usize>,
    /// Milliseconds of each measurement.
    #[arg(long, default_value_t = 3_000)]
    pub ms: u64,
    #[arg(long, default_value_t = 3)]
    pub rounds: usize,
    /// Folder for the latencies: `.hgrm`, JSON, SVG and a page.
    #[arg(long)]
    pub out: Option<PathBuf>,
}

/// Runs all kinds of consumers in alternation, so that they meet the same conditions.
pub(crate) fn fix_market_data(
    environment: &RunEnvironment,
    task: &FixMarketDataArgs,
) -> Result<TaskVerdicts, TaskError> {
    let pinning = &environment.pinning;
    if !pinning.has_two_cores() {
        println!("fix-market-data {NO_SECOND_CORE}");
        return Ok(TaskVerdicts::default());
    }
    let (reference, time) = (Arc::new(platform::reference(SECURITIES)), Duration::from_millis(task.ms));
    let mut recordings = Vec::new();
    for &rate in &task.rates {
        for &consumers in &task.consumers {
            let mut rounds = FeedConsumer::ALL.map(|consumer| (consumer, Vec::new()));
            for _ in 0..task.rounds.max(1) {
                for (consumer, results) in &mut rounds {
                    let load = FeedLoad { rate, consumers, time };
                    results.push(feed::deliver(pinning, &reference, *consumer, load)?);
                }
            }
            for (consumer, results) in rounds {
                print_row(&consumer.name(), FeedLoad { rate, consumers, time }, &results);
                recordings.extend(results.into_iter().last().map(|result| result.recording));
            }
        }
    }
    println!();
    if let Some(out) = &task.out {
        let recordings: Vec<_> = recordings.iter().collect();
        write_results(out, environment, "Market data, a tick to its delivery", &recordings, &[])?;
    }
    Ok(TaskVerdicts::default())
}

/// Prints the medians over the rounds.
fn print_row(name: &str, load: FeedLoad, results: &[FeedResult]) {
    let of = |value: &dyn Fn(&FeedResult) -> f64| median(&results.iter().map(value).collect::<Vec<_>>());
    let us = |quantile: f64| {
        of(&|result: &FeedResult| result.recording.all.value_at_quantile(quantile) as f64 / 1e3)
    };
    println!(
        "market data to {} at {} ticks/s, {name}: median {:.1} µs, p99 {:.1} µs, p99.9 {:.1} µs; \
         {:.0} decoded/s of {:.0} octets, {:.2} % conflated",
        load.consumers,
        load.rate,
        us(0.5),
        us(0.99),
        us(0.999),
        of(&|result: &FeedResult| result.recording.per_s_reached),
        of(&|result: &FeedResult| result.octets),
        of(&|result: &FeedResult| result.conflated * 100.0)
    );
}
