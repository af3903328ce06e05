//! A well-behaved client beside every kind of attack.

use std::time::Duration;

use clap::Args;
use pitlane_bench::attacker::Attack;
use pitlane_bench::goals::{self, Verdict};
use pitlane_bench::isolation::{Load, Outcome, Stage};
use pitlane_bench::progress::Progress;

use super::{NO_SECOND_CORE, Site};
use crate::{Failure, Verdicts};

#[derive(Args, Clone)]
pub struct Attacked {
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

pub fn isolation(site: &Site, attacked: &Attacked) -> Result<Verdicts, Failure> {
    if !site.pinning.has_two_cores() {
        println!("isolation {NO_SECOND_CORE}");
        return Ok(Verdicts::default());
    }
    let &Attacked { rate, attacks, ms, rounds, tries, ref only, .. } = attacked;
    let load = Load { rate, attacks, part: Duration::from_millis(ms), rounds, tries };
    let mut stage = Stage::set(&site.pinning)?;
    let order = if stage.is_first {
        "before everybody else (SCHED_RR)"
    } else {
        "among others (no right to SCHED_RR)"
    };
    println!(
        "isolation: one FIX client at {rate} orders/s, order to first report from the planned moment; the service on one core, the client on \
         the other, both {order}; there too an attacker of at most {attacks} acts/s; {rounds} rounds of {ms} ms quiet, attacked, quiet"
    );
    println!(
        "{:<48} {:>8} {:>12} {:>12} {:>7} {:>7} {:>7} {:>9}",
        "attack", "acts/s", "quiet p99 µs", "attacked µs", "times", "median", "noise", "disturbed"
    );
    let (mut goals, mut progress) = (Vec::new(), Progress::default());
    for attack in Attack::ALL.into_iter().filter(|attack| attack.words().contains(only)) {
        progress.show(attack.words());
        let outcome = stage.suffer(attack, load)?;
        let Outcome { quiet_us_p99, attacked_us_p99, median_ratio, noise, attacks_per_s, disturbed, .. } =
            outcome;
        println!(
            "{:<48} {attacks_per_s:>8.0} {quiet_us_p99:>12.1} {attacked_us_p99:>12.1} {:>6.2}× {median_ratio:>6.2}× {:>5.0} % {disturbed:>9}",
            attack.words(),
            outcome.ratio(),
            noise * 100.0,
        );
        goals.push(Verdict::at_most(attack.words(), outcome.ratio(), goals::ATTACKED_RATIO_MAX, "× p99"));
    }
    Ok(Verdicts { wrong: false, goals })
}
