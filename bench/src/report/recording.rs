//! One measurement: its latencies, their course over time, and its rates.

use hdrhistogram::Histogram;
use pitlane_engine::index::index_usize;
use serde::Serialize;

use super::waterfall::StageTime;
use crate::measure::histogram;

/// Quantiles in the summary.
const QUANTILES: [(&str, f64); 6] =
    [("p50", 0.5), ("p90", 0.9), ("p99", 0.99), ("p99.9", 0.999), ("p99.99", 0.9999), ("max", 1.0)];
/// Steps for each halving of the distance to 100 %, where a whole distribution is printed.
pub const STEPS_PER_HALVING: u32 = 5;
/// Usual length of a slice of the time line.
pub const SLICE_NS: u64 = 1_000_000_000;
/// Most slices of the time line: a plot cannot show more.
pub const SLICES_MAX: usize = 3_600;

/// Latencies in nanoseconds, open loop: from the planned time.
#[derive(Clone, Debug)]
pub struct Recording {
    /// Name in the form of a file name: `fix-10000`, `stomp-to-100`.
    pub name: String,
    pub all: Histogram<u64>,
    /// One histogram for each slice of time.
    slices: Vec<Histogram<u64>>,
    slice_ns: u64,
    /// Planned rate per second, and the rate that was reached.
    pub per_s_planned: f64,
    pub per_s_reached: f64,
    /// Stages of the path as the server itself reports them at the end; empty: the server was not
    /// queried.
    pub stages: Vec<StageTime>,
}

impl Recording {
    pub fn new(name: &str, per_s_planned: f64, slice_ns: u64) -> Recording {
        Recording {
            name: name.to_owned(),
            all: histogram(),
            slices: Vec::new(),
            slice_ns: slice_ns.max(1),
            per_s_planned,
            per_s_reached: 0.0,
            stages: Vec::new(),
        }
    }

    /// Records a latency of an operation that was planned at this time after the start.
    pub fn count(&mut self, planned_ns: u64, latency_ns: u64) {
        self.all.saturating_record(latency_ns);
        let nth = index_usize(planned_ns / self.slice_ns).min(SLICES_MAX - 1);
        while self.slices.len() <= nth {
            self.slices.push(histogram());
        }
        self.slices[nth].saturating_record(latency_ns);
    }

    /// Returns the start in nanoseconds of each slice with latencies, and the latencies.
    pub fn slices(&self) -> impl Iterator<Item = (u64, &Histogram<u64>)> {
        let filled = self.slices.iter().enumerate().filter(|(_, slice)| !slice.is_empty());
        filled.map(|(nth, slice)| (nth as u64 * self.slice_ns, slice))
    }

    /// Returns the seconds since the start and the quantile of each slice.
    pub fn over_time(&self, quantile: f64) -> Vec<(f64, f64)> {
        self.slices()
            .map(|(start_ns, slice)| (start_ns as f64 / 1e9, slice.value_at_quantile(quantile) as f64))
            .collect()
    }

    pub fn summary(&self) -> Summary {
        let latency_ns =
            QUANTILES.map(|(label, quantile)| (label, self.all.value_at_quantile(quantile))).to_vec();
        Summary {
            name: self.name.clone(),
            count: self.all.len(),
            per_s_planned: self.per_s_planned,
            per_s_reached: self.per_s_reached,
            mean_ns: self.all.mean(),
            latency_ns,
            stages: self.stages.clone(),
        }
    }
}

/// Summary of a recording in JSON.
#[derive(Clone, Debug, Serialize)]
pub struct Summary {
    pub name: String,
    pub count: u64,
    pub per_s_planned: f64,
    pub per_s_reached: f64,
    pub mean_ns: f64,
    pub latency_ns: Vec<(&'static str, u64)>,
    pub stages: Vec<StageTime>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_slice_holds_the_latencies_planned_in_it() {
        let mut recording = Recording::new("it", 2.0, 1_000_000_000);
        recording.count(10, 100);
        recording.count(2_500_000_000, 300);
        assert_eq!(recording.over_time(1.0), [(0.0, 100.0), (2.0, 300.0)]);
        assert_eq!(recording.summary().count, 2);
        assert_eq!(recording.summary().latency_ns[5], ("max", 300));
    }
}
