//! The text format of an HDR histogram that its plotters read: value, quantile, count, and
//! 1/(1-quantile).

use std::fmt::Write;

use hdrhistogram::Histogram;

use super::recording::STEPS_PER_HALVING;

/// Formats a histogram in microseconds, as is usual.
pub fn text(histogram: &Histogram<u64>) -> String {
    let mut out = String::from("       Value     Percentile TotalCount 1/(1-Percentile)\n\n");
    let mut count = 0;
    for step in histogram.iter_quantiles(STEPS_PER_HALVING) {
        count += step.count_since_last_iteration();
        let (value, quantile) = (step.value_iterated_to() as f64 / 1e3, step.quantile_iterated_to());
        // Writing into a String does not fail.
        let _ = if quantile < 1.0 {
            writeln!(out, "{value:12.3} {quantile:14.12} {count:10} {:14.2}", 1.0 / (1.0 - quantile))
        } else {
            writeln!(out, "{value:12.3} {quantile:14.12} {count:10}")
        };
    }
    let (mean, deviation) = (histogram.mean() / 1e3, histogram.stdev() / 1e3);
    let _ = writeln!(out, "#[Mean    = {mean:12.3}, StdDeviation   = {deviation:12.3}]");
    let _ = writeln!(
        out,
        "#[Max     = {:12.3}, Total count    = {:12}]",
        histogram.max() as f64 / 1e3,
        histogram.len()
    );
    let _ = writeln!(
        out,
        "#[Buckets = {:12}, SubBuckets     = {:12}]",
        histogram.buckets(),
        histogram.distinct_values()
    );
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::measure::histogram;

    #[test]
    fn the_last_line_of_values_holds_them_all() {
        let mut all = histogram();
        (1..=1_000).for_each(|us| all.saturating_record(us * 1_000));
        let text = text(&all);
        let last = text.lines().rfind(|line| line.starts_with(' ') && line.contains('.')).unwrap();
        let columns: Vec<&str> = last.split_whitespace().collect();
        assert_eq!(columns[1..], ["1.000000000000", "1000"]);
        assert!(text.contains("Total count    =         1000"));
    }
}
