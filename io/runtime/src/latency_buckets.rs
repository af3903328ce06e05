//! Latencies since the start in fixed buckets. Buckets of several threads, servers and scrapes can
//! be added, which percentiles cannot.

use pitlane_engine::time::{NS_PER_MS, NS_PER_S};

/// Upper bounds of the buckets, in nanoseconds: three steps per decade, from what one stage takes
/// to what a client notices.
pub const BOUNDS_NS: [u64; 19] = [
    250,
    500,
    1_000,
    2_500,
    5_000,
    10_000,
    25_000,
    50_000,
    100_000,
    250_000,
    500_000,
    NS_PER_MS,
    2_500_000,
    5_000_000,
    10_000_000,
    25_000_000,
    100_000_000,
    250_000_000,
    NS_PER_S,
];

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LatencyBuckets {
    /// Records above the bound before and not above this one.
    counts: [u64; BOUNDS_NS.len()],
    count: u64,
    sum_ns: u64,
}

impl LatencyBuckets {
    /// Adds so many records of about this duration.
    pub fn add(&mut self, ns: u64, count: u64) {
        if let Some(at) = BOUNDS_NS.iter().position(|bound| ns <= *bound) {
            self.counts[at] += count;
        }
        self.count += count;
        self.sum_ns = self.sum_ns.saturating_add(ns.saturating_mul(count));
    }

    /// Returns each bound with the number of records not above it.
    pub fn cumulative(&self) -> impl Iterator<Item = (u64, u64)> {
        let counts = self.counts.iter().scan(0, |sum, count| {
            *sum += count;
            Some(*sum)
        });
        BOUNDS_NS.into_iter().zip(counts)
    }

    /// Returns the number of all records, those above the last bound included.
    pub fn count(&self) -> u64 {
        self.count
    }

    pub fn sum_ns(&self) -> u64 {
        self.sum_ns
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_record_is_in_the_first_bucket_that_holds_it() {
        let mut buckets = LatencyBuckets::default();
        buckets.add(250, 1);
        buckets.add(251, 2);
        buckets.add(NS_PER_S, 4);
        buckets.add(NS_PER_S + 1, 8);
        let cumulative: Vec<(u64, u64)> = buckets.cumulative().collect();
        assert_eq!(cumulative[..2], [(250, 1), (500, 3)]);
        assert_eq!(cumulative.last(), Some(&(NS_PER_S, 7)), "longer ones are only in the total");
        assert_eq!((buckets.count(), buckets.sum_ns()), (15, 250 + 502 + 12 * NS_PER_S + 8));
        assert!(BOUNDS_NS.is_sorted());
    }
}
