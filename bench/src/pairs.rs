//! Compares two situations in short rounds: quiet, disturbed, quiet. The result is the median over
//! the rounds, reported together with how much the quiet parts differ among themselves. On a
//! virtual machine with neighbours there is no other way to distinguish a difference of a tenth
//! from noise.

use std::fmt;
use std::time::Duration;

use crate::fan_out::FanOutResult;
use crate::measure::median;

/// Results of the rounds.
#[derive(Clone, Debug)]
pub struct Pairs {
    pub quiet_us_p99: f64,
    pub disturbed_us_p99: f64,
    /// 99th percentile, disturbed relative to quiet: the median of the rounds.
    pub p99_ratio: f64,
    /// The same for the time that the server's thread takes for an event, which does not depend on
    /// the consumers' core.
    pub event_ratio: f64,
    /// Difference of the second quiet part of a round from the first, at the median: smaller
    /// effects cannot be seen.
    pub noise: f64,
    pub gap: Duration,
    pub missing: u64,
    pub queued_max: u64,
}

/// Runs this many rounds.
pub fn pairs(rounds: usize, mut run: impl FnMut(bool) -> FanOutResult) -> Pairs {
    let us = |result: &FanOutResult| result.recording.all.value_at_quantile(0.99) as f64 / 1e3;
    let (mut quiet, mut disturbed, mut ratios) = (Vec::new(), Vec::new(), Vec::new());
    let (mut event_times, mut noise) = (Vec::new(), Vec::new());
    let (mut gap, mut missing, mut queued_max) = (Duration::ZERO, 0, 0);
    for _ in 0..rounds.max(1) {
        let parts = [false, true, false].map(&mut run);
        let [before, between, after] = &parts;
        quiet.push((us(before) + us(after)) / 2.0);
        disturbed.push(us(between));
        ratios.push(us(between) / ((us(before) + us(after)) / 2.0));
        event_times.push(between.event_ns / ((before.event_ns + after.event_ns) / 2.0));
        noise.push((us(after) / us(before)).ln().abs().exp() - 1.0);
        gap = gap.max(between.gap);
        missing += parts.iter().map(|result| result.missing).sum::<u64>();
        queued_max = queued_max.max(between.queued_max);
    }
    Pairs {
        quiet_us_p99: median(&quiet),
        disturbed_us_p99: median(&disturbed),
        p99_ratio: median(&ratios),
        event_ratio: median(&event_times),
        noise: median(&noise),
        gap,
        missing,
        queued_max,
    }
}

impl fmt::Display for Pairs {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "p99 {:.0} µs quiet, {:.0} µs disturbed, {:.2} × at the median of the rounds (two quiet parts differ by {:.0} %); the \
             server's time per event {:.2} ×; longest time without a delivery {:.1} ms, {} messages missing, at most {} KiB queued for one consumer",
            self.quiet_us_p99,
            self.disturbed_us_p99,
            self.p99_ratio,
            self.noise * 100.0,
            self.event_ratio,
            self.gap.as_secs_f64() * 1e3,
            self.missing,
            self.queued_max >> 10
        )
    }
}
