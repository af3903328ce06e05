//! Measures the time of a workload: a pass for throughput, and one with a pair of timestamps around
//! every operation.

use std::hint::black_box;

use hdrhistogram::Histogram;
use quanta::Clock;

use crate::conditions::on_core_ns;
use crate::workload::{FlowOutcome, Matcher, RecordKind, Workload};

/// One pass over a workload.
#[derive(Clone, Copy, Debug)]
pub struct Pass {
    /// Wall-clock time.
    pub wall_ns_per_op: f64,
    /// Time of the thread on its core, without the time in which others had the core. Wall-clock
    /// time where the system does not report it.
    pub ns_per_op: f64,
    pub outcome: FlowOutcome,
}

/// Measures the time over the timed records, without the pre-fill.
pub fn throughput<M: Matcher>(workload: &Workload, mut matcher: M) -> Pass {
    workload.prefill.iter().for_each(|record| matcher.apply(record));
    let clock = Clock::new();
    let on_core = on_core_ns();
    let begin = clock.raw();
    counted(|| {
        for (at, record) in workload.timed.iter().enumerate() {
            matcher.prefetch(&workload.timed[at + 1..]);
            matcher.apply(black_box(record));
        }
    });
    let wall = clock.delta_as_nanos(begin, clock.raw());
    let on_core = on_core_ns().zip(on_core).map(|(after, before)| after - before);
    let per_op = |ns: u64| ns as f64 / workload.timed.len().max(1) as f64;
    Pass {
        wall_ns_per_op: per_op(wall),
        ns_per_op: per_op(on_core.unwrap_or(wall)),
        outcome: matcher.outcome(),
    }
}

/// Runs exactly the timed part; callgrind finds it by its name ([`crate::instructions`]).
#[inline(never)]
pub fn counted<T>(work: impl FnOnce() -> T) -> T {
    work()
}

/// Runs `work`, and returns the nanoseconds of the thread on its core, or wall-clock nanoseconds
/// where the system does not report them, and the result.
pub fn spent<T>(work: impl FnOnce() -> T) -> (f64, T) {
    let clock = Clock::new();
    let (on_core, begin) = (on_core_ns(), clock.raw());
    let result = counted(work);
    let wall = clock.delta_as_nanos(begin, clock.raw());
    let ns = on_core_ns().zip(on_core).map_or(wall, |(after, before)| after - before);
    (ns as f64, result)
}

/// Latencies by kind, in nanoseconds, the clock's own time included.
pub struct Latencies {
    kinds: [Histogram<u64>; 5],
    all: Histogram<u64>,
    pub outcome: FlowOutcome,
}

pub fn latencies<M: Matcher>(workload: &Workload, mut matcher: M) -> Latencies {
    workload.prefill.iter().for_each(|record| matcher.apply(record));
    let mut kinds = RecordKind::ALL.map(|_| histogram());
    let clock = Clock::new();
    for record in &workload.timed {
        let begin = clock.raw();
        matcher.apply(black_box(record));
        let ns = clock.delta_as_nanos(begin, clock.raw());
        kinds[record.kind as usize].saturating_record(ns);
    }
    let mut all = histogram();
    kinds.iter().for_each(|kind| all.add(kind).expect("histograms of one shape"));
    Latencies { kinds, all, outcome: matcher.outcome() }
}

impl Latencies {
    /// Returns one line for each kind that occurred, and one for all.
    pub fn lines(&self) -> Vec<String> {
        let named = RecordKind::ALL.iter().map(|kind| kind.name()).zip(&self.kinds);
        let all = named.chain([("all", &self.all)]);
        all.filter(|(_, histogram)| !histogram.is_empty()).map(|(word, h)| percentiles(word, h)).collect()
    }
}

/// Creates a histogram of nanoseconds up to ten seconds, with three digits.
pub fn histogram() -> Histogram<u64> {
    Histogram::new_with_bounds(1, 10_000_000_000, 3).expect("the bounds are in order")
}

pub fn percentiles(word: &str, histogram: &Histogram<u64>) -> String {
    let at = |quantile| histogram.value_at_quantile(quantile);
    format!(
        "{word:<10} p50 {:>6}  p90 {:>6}  p99 {:>6}  p99.9 {:>7}  p99.99 {:>8}  max {:>9} ns  of {}",
        at(0.5),
        at(0.9),
        at(0.99),
        at(0.999),
        at(0.9999),
        histogram.max(),
        histogram.len()
    )
}

/// Returns the median time that a pair of timestamps around nothing shows.
pub fn clock_ns() -> u64 {
    let clock = Clock::new();
    let mut histogram = histogram();
    for _ in 0..100_000 {
        let begin = clock.raw();
        histogram.saturating_record(clock.delta_as_nanos(begin, clock.raw()));
    }
    histogram.value_at_quantile(0.5)
}

/// Returns the middle value, or the mean of the two middle values. `values` is not empty.
pub fn median(values: &[f64]) -> f64 {
    assert!(!values.is_empty(), "a median of something");
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    let middle = sorted.len() / 2;
    if sorted.len() % 2 == 1 { sorted[middle] } else { (sorted[middle - 1] + sorted[middle]) / 2.0 }
}

/// Returns the lowest value. `values` is not empty.
pub fn lowest(values: &[f64]) -> f64 {
    assert!(!values.is_empty(), "the lowest of something");
    values.iter().copied().fold(f64::INFINITY, f64::min)
}

/// Returns the highest value. `values` is not empty.
pub fn highest(values: &[f64]) -> f64 {
    assert!(!values.is_empty(), "the highest of something");
    values.iter().copied().fold(f64::NEG_INFINITY, f64::max)
}

/// Returns the value that a quarter of the values do not exceed. Where disturbances only ever add
/// to a measurement, it is closer to the true value than the median.
pub fn lower_quartile(values: &[f64]) -> f64 {
    assert!(!values.is_empty(), "a quartile of something");
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    sorted[(sorted.len() - 1) / 4]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_median_is_the_middle() {
        assert_eq!(median(&[3.0, 1.0, 2.0]), 2.0);
        assert_eq!(median(&[4.0, 1.0, 2.0, 3.0]), 2.5);
    }

    #[test]
    fn a_quarter_is_below_the_lower_quartile() {
        assert_eq!(lower_quartile(&[5.0, 1.0, 2.0, 4.0, 3.0]), 2.0);
        assert_eq!(lower_quartile(&[7.0]), 7.0);
    }
}
