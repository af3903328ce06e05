//! Two situations beside each other in short rounds, quiet, disturbed, quiet: what differs is told by the medians over the rounds,
//! and how much the quiet ones differ among themselves stands beside it. On a machine with neighbours nothing else tells a
//! difference of a tenth from its noise.

use std::fmt;
use std::time::Duration;

use crate::fan_out::Heard;
use crate::measure::median;

/// What the rounds gave.
#[derive(Clone, Debug)]
pub struct Pairs {
    pub quiet_us_p99: f64,
    pub disturbed_us_p99: f64,
    /// The 99th percentile, disturbed beside quiet: the median of the rounds.
    pub p99_ratio: f64,
    /// The same of what the server's thread took for an event: it knows nothing of the consumers' own core.
    pub turn_ratio: f64,
    /// How far the second quiet part of a round is from the first, at the median: nothing smaller can be told.
    pub noise: f64,
    pub gap: Duration,
    pub missing: u64,
    pub held_max: u64,
}

/// Plays so many rounds.
pub fn pairs(rounds: usize, mut play: impl FnMut(bool) -> Heard) -> Pairs {
    let us = |heard: &Heard| heard.recording.all.value_at_quantile(0.99) as f64 / 1e3;
    let (mut quiet, mut disturbed, mut ratios) = (Vec::new(), Vec::new(), Vec::new());
    let (mut turns, mut noise) = (Vec::new(), Vec::new());
    let (mut gap, mut missing, mut held_max) = (Duration::ZERO, 0, 0);
    for _ in 0..rounds.max(1) {
        let parts = [false, true, false].map(&mut play);
        let [before, between, after] = &parts;
        quiet.push((us(before) + us(after)) / 2.0);
        disturbed.push(us(between));
        ratios.push(us(between) / ((us(before) + us(after)) / 2.0));
        turns.push(between.turn_ns / ((before.turn_ns + after.turn_ns) / 2.0));
        noise.push((us(after) / us(before)).ln().abs().exp() - 1.0);
        gap = gap.max(between.gap);
        missing += parts.iter().map(|heard| heard.missing).sum::<u64>();
        held_max = held_max.max(between.held_max);
    }
    Pairs {
        quiet_us_p99: median(&quiet),
        disturbed_us_p99: median(&disturbed),
        p99_ratio: median(&ratios),
        turn_ratio: median(&turns),
        noise: median(&noise),
        gap,
        missing,
        held_max,
    }
}

impl fmt::Display for Pairs {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "p99 {:.0} µs quiet, {:.0} µs disturbed, {:.2} × at the median of the rounds (quiet beside quiet differs by {:.0} %); the \
             server's turn {:.2} ×; longest silence {:.1} ms, {} messages missing, at most {} KiB held for one",
            self.quiet_us_p99,
            self.disturbed_us_p99,
            self.p99_ratio,
            self.noise * 100.0,
            self.turn_ratio,
            self.gap.as_secs_f64() * 1e3,
            self.missing,
            self.held_max >> 10
        )
    }
}
