//! The Prometheus text format, version 0.0.4: for each family a HELP line, a TYPE line and its
//! samples.

use std::fmt::{Display, Write};

use crate::latency_buckets::LatencyBuckets;

pub const CONTENT_TYPE: &str = "text/plain; version=0.0.4; charset=utf-8";

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MetricKind {
    /// Only increases; its name ends in `_total`.
    Counter,
    Gauge,
    /// Buckets that can be summed.
    Histogram,
}

/// Writes families one after the other. Names and help texts are ours; only label values are
/// escaped.
#[derive(Debug, Default)]
pub struct Exposition {
    text: String,
    name: &'static str,
}

impl Exposition {
    pub fn family(&mut self, name: &'static str, kind: MetricKind, help: &'static str) {
        debug_assert!(
            name.starts_with("pitlane_") || name.starts_with("process_"),
            "every name has our prefix, or is one that every process has"
        );
        debug_assert!(
            (kind == MetricKind::Counter) == name.ends_with("_total"),
            "a counter is a total: {name}"
        );
        let kind = match kind {
            MetricKind::Counter => "counter",
            MetricKind::Gauge => "gauge",
            MetricKind::Histogram => "histogram",
        };
        self.name = name;
        self.push(format_args!("# HELP {name} {help}\n# TYPE {name} {kind}\n"));
    }

    /// Writes a sample of the current family.
    pub fn sample(&mut self, labels: &[(&str, &dyn Display)], value: impl Display) {
        self.suffixed("", labels, value);
    }

    /// Writes the buckets, the sum and the count of the current family, which is a histogram.
    pub fn histogram(&mut self, labels: &[(&str, &dyn Display)], buckets: &LatencyBuckets) {
        for (bound_ns, count) in buckets.cumulative() {
            // Queries name a bound, so it is written as people write it.
            let bound = Seconds(bound_ns).to_string();
            let bound = if bound.contains('.') { bound.trim_end_matches('0') } else { &bound };
            self.bucket(labels, &bound, count);
        }
        self.bucket(labels, &"+Inf", buckets.count());
        self.suffixed("_sum", labels, Seconds(buckets.sum_ns()));
        self.suffixed("_count", labels, buckets.count());
    }

    fn bucket(&mut self, labels: &[(&str, &dyn Display)], bound: &dyn Display, count: u64) {
        self.suffixed("_bucket", &[labels, &[("le", bound)]].concat(), count);
    }

    fn suffixed(&mut self, suffix: &str, labels: &[(&str, &dyn Display)], value: impl Display) {
        self.text.push_str(self.name);
        self.text.push_str(suffix);
        for (at, (label, text)) in labels.iter().enumerate() {
            self.text.push(if at == 0 { '{' } else { ',' });
            self.push(format_args!("{label}=\""));
            self.escape(&text.to_string());
            self.text.push('"');
        }
        if !labels.is_empty() {
            self.text.push('}');
        }
        self.push(format_args!(" {value}\n"));
    }

    /// Writes a family of one sample without labels.
    pub fn single(&mut self, name: &'static str, kind: MetricKind, help: &'static str, value: impl Display) {
        self.family(name, kind, help);
        self.sample(&[], value);
    }

    pub fn into_text(self) -> String {
        self.text
    }

    fn escape(&mut self, text: &str) {
        for c in text.chars() {
            match c {
                '\\' => self.text.push_str("\\\\"),
                '"' => self.text.push_str("\\\""),
                '\n' => self.text.push_str("\\n"),
                c => self.text.push(c),
            }
        }
    }

    fn push(&mut self, args: std::fmt::Arguments<'_>) {
        self.text.write_fmt(args).expect("a string takes everything");
    }
}

/// Nanoseconds, displayed as seconds without rounding.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Seconds(pub u64);

impl Display for Seconds {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let (whole, rest) = (self.0 / 1_000_000_000, self.0 % 1_000_000_000);
        if rest == 0 { write!(f, "{whole}") } else { write!(f, "{whole}.{rest:09}") }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_family_is_help_type_and_samples() {
        let mut exposition = Exposition::default();
        exposition.family("pitlane_a_total", MetricKind::Counter, "Things seen.");
        exposition.sample(&[("shard", &1), ("name", &"a\"b\\c\nd")], 7);
        exposition.single("pitlane_b_seconds", MetricKind::Gauge, "How long.", Seconds(1_500_000_000));
        let text = "# HELP pitlane_a_total Things seen.\n# TYPE pitlane_a_total counter\n\
                    pitlane_a_total{shard=\"1\",name=\"a\\\"b\\\\c\\nd\"} 7\n\
                    # HELP pitlane_b_seconds How long.\n# TYPE pitlane_b_seconds gauge\n\
                    pitlane_b_seconds 1.500000000\n";
        assert_eq!(exposition.into_text(), text);
    }

    #[test]
    fn a_histogram_is_cumulative_buckets_sum_and_count() {
        let mut buckets = LatencyBuckets::default();
        buckets.add(300, 2);
        buckets.add(20_000_000_000, 1);
        let mut exposition = Exposition::default();
        exposition.family("pitlane_a_seconds", MetricKind::Histogram, "How long.");
        exposition.histogram(&[("stage", &"x")], &buckets);
        let text = exposition.into_text();
        let lines: Vec<&str> = text.lines().collect();
        assert_eq!(lines[1], "# TYPE pitlane_a_seconds histogram");
        assert_eq!(lines[2], "pitlane_a_seconds_bucket{stage=\"x\",le=\"0.00000025\"} 0");
        assert_eq!(lines[3], "pitlane_a_seconds_bucket{stage=\"x\",le=\"0.0000005\"} 2");
        let end = [
            "pitlane_a_seconds_bucket{stage=\"x\",le=\"1\"} 2",
            "pitlane_a_seconds_bucket{stage=\"x\",le=\"+Inf\"} 3",
            "pitlane_a_seconds_sum{stage=\"x\"} 20.000000600",
            "pitlane_a_seconds_count{stage=\"x\"} 3",
        ];
        assert_eq!(lines[lines.len() - 4..], end);
    }

    #[test]
    fn seconds_are_exact() {
        for (ns, text) in
            [(0, "0"), (1, "0.000000001"), (2_000_000_000, "2"), (61_000_000_001, "61.000000001")]
        {
            assert_eq!(Seconds(ns).to_string(), text);
        }
    }
}
