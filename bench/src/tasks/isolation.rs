//! A well-behaved client beside every kind of attack.

use std::time::Duration;

use clap::Args;
use pitlane_bench::attacker::Attack;
use pitlane_bench::goals::{self, GoalVerdict};
use pitlane_bench::isolation::{AttackLoad, AttackOutcome, IsolationRun};
use pitlane_bench::progress::ProgressLine;

use super::{NO_SECOND_CORE, RunEnvironment};
use crate::{TaskError, TaskVerdicts};

#[derive(Args, Clone)]
pub(crate) struct IsolationArgs {
    /// Orders a second of the client.
    #[arg(long, default_value_t = 2_000)]
    pub rate: u64,
    /// Most acts a second of the attacker: connections, frames, requests or octets, depending on
    /// its kind.
    #[arg(long, default_value_t = 500)]
    pub attacks: u64,
    /// Milliseconds of each part: quiet, attacked, quiet.
    #[arg(long, default_value_t = 300)]
    pub ms: u64,
    #[arg(long, default_value_t = 12)]
    pub rounds: usize,
    /// Most runs of a part: a part in which the host of a virtual machine took time is run again.
    #[arg(long, default_value_t = 40)]
    pub tries: usize,
    /// Only attacks with this word in their name.
    #[arg(long, default_value = "")]
    pub only: String,
    /// Exit with 1 where a goal is missed.
    #[arg(long)]
    pub check: bool,
}

pub(crate) fn isolation(
    environment: &RunEnvironment,
    attacked: &IsolationArgs,
) -> Result<TaskVerdicts, TaskError> {
    if !environment.pinning.has_two_cores() {
        println!("isolation {NO_SECOND_CORE}");
        return Ok(TaskVerdicts::default());
    }
    let &IsolationArgs { rate, attacks, ms, rounds, tries, ref only, .. } = attacked;
    let load = AttackLoad { rate, attacks, part: Duration::from_millis(ms), rounds, tries };
    let mut isolation_run = IsolationRun::start(&environment.pinning)?;
    let order = if isolation_run.has_priority {
        "with priority (SCHED_RR)"
    } else {
        "without priority (no right to SCHED_RR)"
    };
    println!(
        "isolation: one FIX client at {rate} orders/s, order to first report from the planned moment; the service on one core, the client on \
         the other, both {order}; there too an attacker of at most {attacks} acts/s; {rounds} rounds of {ms} ms quiet, attacked, quiet"
    );
    println!(
        "{:<48} {:>8} {:>12} {:>12} {:>7} {:>7} {:>7} {:>9}",
        "attack", "acts/s", "quiet p99 µs", "attacked µs", "times", "median", "noise", "disturbed"
    );
    let (mut goals, mut progress) = (Vec::new(), ProgressLine::default());
    for attack in Attack::ALL.into_iter().filter(|attack| attack.description().contains(only)) {
        progress.show(attack.description());
        let outcome = isolation_run.measure(attack, load)?;
        let AttackOutcome {
            quiet_us_p99,
            attacked_us_p99,
            median_ratio,
            noise,
            attacks_per_s,
            disturbed,
            ..
        } = outcome;
        println!(
            "{:<48} {attacks_per_s:>8.0} {quiet_us_p99:>12.1} {attacked_us_p99:>12.1} {:>6.2}× {median_ratio:>6.2}× {:>5.0} % {disturbed:>9}",
            attack.description(),
            outcome.ratio(),
            noise * 100.0,
        );
        goals.push(GoalVerdict::at_most(
            attack.description(),
            outcome.ratio(),
            goals::ATTACKED_RATIO_MAX,
            "× p99",
        ));
    }
    Ok(TaskVerdicts { wrong: false, goals })
}
