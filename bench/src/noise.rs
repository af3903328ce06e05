//! The machine's own noise: the gaps that a thread sees which only reads the clock, and the time of
//! the first access to a page of memory. What a result shows beyond them is ours.

use std::hint::black_box;
use std::time::{Duration, Instant};

use hdrhistogram::Histogram;
use quanta::Clock;

use crate::convert::duration_ns;
use crate::measure::histogram;

/// Shortest gap between two readings that counts as a disturbance: no undisturbed pair of readings
/// is so far apart.
const GAP_NS_MIN: u64 = 1_000;
const PAGE_BYTES: usize = 4_096;
/// Column of stolen time in /proc/stat, after the name.
const STOLEN_COLUMN: usize = 7;

/// The time that was taken from a core during a measurement.
#[derive(Clone, Debug)]
pub struct Noise {
    /// Gaps of a microsecond and more, in nanoseconds.
    pub gaps: Histogram<u64>,
    /// Fraction of the time that they took.
    pub part: f64,
    pub for_ns: u64,
}

/// Reads the clock for `time` on the core that the thread is pinned to.
pub fn measure(time: Duration) -> Noise {
    let clock = Clock::new();
    let mut gaps = histogram();
    let (begin, end_ns) = (clock.raw(), duration_ns(time));
    let (mut before, mut taken) = (0, 0);
    while before < end_ns {
        let now = clock.delta_as_nanos(begin, clock.raw());
        let gap = now - before;
        if gap >= GAP_NS_MIN {
            gaps.saturating_record(gap);
            taken += gap;
        }
        before = now;
    }
    Noise { gaps, part: taken as f64 / before.max(1) as f64, for_ns: before }
}

/// Returns the time that the host has taken from all cores so far, usually in ticks of 10 ms;
/// constant where the system does not count it.
pub fn stolen_ticks() -> u64 {
    let text = std::fs::read_to_string("/proc/stat").unwrap_or_default();
    let all = text.lines().find_map(|line| line.strip_prefix("cpu "));
    all.and_then(|all| all.split_whitespace().nth(STOLEN_COLUMN)?.parse().ok()).unwrap_or(0)
}

/// Returns the nanoseconds of the first access to a page, a mean over so many bytes of new memory.
/// Where the host of a virtual machine provides memory only when it is used, the first call takes
/// longer than a second one, which gets the memory that the first one returned.
pub fn first_access_ns(bytes: usize) -> f64 {
    let mut memory = vec![0_u8; bytes];
    let begin = Instant::now();
    memory.iter_mut().step_by(PAGE_BYTES).for_each(|byte| *black_box(byte) = 1);
    duration_ns(begin.elapsed()) as f64 / bytes.div_ceil(PAGE_BYTES).max(1) as f64
}

impl Noise {
    /// Returns the noise as one line of text.
    pub fn line(&self) -> String {
        let seconds = self.for_ns as f64 / 1e9;
        format!(
            "{:.2} % of the core taken by others in {seconds:.1} s: {:.0} gaps a second of 1 µs and more, 99 % under {:.1} µs, longest {:.0} µs",
            100.0 * self.part,
            self.gaps.len() as f64 / seconds,
            self.gaps.value_at_quantile(0.99) as f64 / 1e3,
            self.gaps.max() as f64 / 1e3
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_time_that_the_hypervisor_takes_never_falls() {
        let before = stolen_ticks();
        assert!(stolen_ticks() >= before);
    }

    #[test]
    fn the_first_access_to_a_page_takes_time() {
        assert!(first_access_ns(1 << 20) > 0.0);
    }

    #[test]
    fn noise_is_a_fraction_of_the_time() {
        let noise = measure(Duration::from_millis(20));
        assert!((0.0..=1.0).contains(&noise.part));
        assert!(noise.for_ns >= 20_000_000);
    }
}
