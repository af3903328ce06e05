//! All counts of a recording as CSV: every value of every slice of time, so that any quantile of
//! any period can be computed later, with any tool.

use std::fmt::Write;

use super::recording::Recording;

/// Returns a row for each value that occurred in a slice: the start of the slice in seconds since
/// the first operation that was counted, the value in nanoseconds, and how often it occurred.
pub fn text(recording: &Recording) -> String {
    let mut out = String::from("start_s,latency_ns,count\n");
    for (start_ns, slice) in recording.slices() {
        for step in slice.iter_recorded() {
            let (value, count) = (step.value_iterated_to(), step.count_at_value());
            // Writing into a String does not fail.
            let _ = writeln!(out, "{},{value},{count}", start_ns as f64 / 1e9);
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_value_of_every_slice_has_a_row() {
        let mut recording = Recording::new("it", 2.0, 500_000_000);
        for (planned_ns, latency_ns) in [(10, 100), (20, 200), (30, 100), (2_600_000_000, 300)] {
            recording.count(planned_ns, latency_ns);
        }
        assert_eq!(text(&recording), "start_s,latency_ns,count\n0,100,2\n0,200,1\n2.5,300,1\n");
    }
}
