//! A long run at a steady rate: whether memory grows and whether the tail drifts. The first quarter
//! is warm-up; the last quarter is compared with the second.

use std::fs;

use crate::goals;
use crate::measure::median;
use crate::report::recording::Recording;

/// Memory of a process at one moment.
#[derive(Clone, Copy, Debug)]
pub struct MemorySample {
    pub seconds: f64,
    /// Anonymous resident memory, without mapped files.
    pub anonymous_bytes: u64,
}

impl MemorySample {
    /// Reads the memory of a process. Returns `None` if there is no such process, or the system
    /// does not report its memory.
    pub fn of(process: u32, seconds: f64) -> Option<MemorySample> {
        let status = fs::read_to_string(format!("/proc/{process}/status")).ok()?;
        let line = status.lines().find_map(|line| line.strip_prefix("RssAnon:"))?;
        let kib: u64 = line.split_whitespace().next()?.parse().ok()?;
        Some(MemorySample { seconds, anonymous_bytes: kib * 1_024 })
    }
}

/// Result of a long run.
#[derive(Clone, Debug)]
pub struct Soak {
    pub recording: Recording,
    pub memory: Vec<MemorySample>,
}

impl Soak {
    /// Returns the last quarter's memory relative to the second's, or `None` if the run was too
    /// short.
    pub fn growth(&self) -> Option<f64> {
        let bytes: Vec<f64> = self.memory.iter().map(|sample| sample.anonymous_bytes as f64).collect();
        last_beside_second(&bytes)
    }

    /// Returns the last quarter's 99th percentile relative to the second's.
    pub fn drift(&self) -> Option<f64> {
        let tails: Vec<f64> = self.recording.over_time(0.99).iter().map(|point| point.1).collect();
        last_beside_second(&tails)
    }

    pub fn is_steady(&self) -> bool {
        self.growth().is_some_and(|growth| growth <= goals::GROWTH_RATIO_MAX)
            && self.drift().is_some_and(|drift| drift <= goals::DRIFT_RATIO_MAX)
    }
}

fn last_beside_second(values: &[f64]) -> Option<f64> {
    let quarter = values.len() / 4;
    if quarter == 0 {
        return None;
    }
    Some(median(&values[values.len() - quarter..]) / median(&values[quarter..2 * quarter]))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn soak(mib: impl Fn(u64) -> u64, latency: impl Fn(u64) -> u64) -> Soak {
        let mut recording = Recording::new("soak", 1.0, 1_000_000_000);
        let mut memory = Vec::new();
        for second in 0..40 {
            recording.count(second * 1_000_000_000, latency(second));
            memory.push(MemorySample { seconds: second as f64, anonymous_bytes: mib(second) << 20 });
        }
        Soak { recording, memory }
    }

    #[test]
    fn growth_in_the_first_quarter_is_steady() {
        assert!(soak(|second| 100 + second.min(9), |_| 20_000).is_steady());
    }

    #[test]
    fn a_leak_is_not_steady() {
        assert!(!soak(|second| 100 + second, |_| 20_000).is_steady());
    }

    #[test]
    fn a_drifting_tail_is_not_steady() {
        assert!(!soak(|_| 100, |second| 20_000 + 2_000 * second).is_steady());
    }

    #[test]
    fn this_process_has_memory() {
        assert!(MemorySample::of(std::process::id(), 0.0).is_some_and(|sample| sample.anonymous_bytes > 0));
    }
}
