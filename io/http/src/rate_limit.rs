//! Limits the requests per second of one address, or of one login. Each has a bucket that holds a
//! second's worth and fills steadily; a client that finds it empty learns when to retry.

use std::collections::BTreeMap;
use std::mem;

use pitlane_engine::time::{NS_PER_S, Timestamp};

/// Maximum number of keys remembered for one second. More than there can be connections in it.
const KEYS_MAX: usize = 65_536;

/// Buckets of one kind. A bucket that was not used for a second is full, so only those of this
/// second and the one before are kept.
#[derive(Debug)]
pub(crate) struct Limit<K> {
    /// Nanoseconds between two requests at the steady rate; zero means no limit.
    interval_ns: u64,
    since: Timestamp,
    now: BTreeMap<K, RateBucket>,
    before: BTreeMap<K, RateBucket>,
}

/// Stores when the bucket is full again: each request moves that time by one interval.
#[derive(Clone, Copy, Debug)]
struct RateBucket {
    full_at: Timestamp,
}

impl RateBucket {
    fn take(&mut self, now: Timestamp, interval_ns: u64) -> Result<(), u32> {
        let full_at = self.full_at.max(now).plus(interval_ns);
        let missing_ns = full_at.since(now);
        if missing_ns > NS_PER_S {
            let wait_s = (missing_ns - NS_PER_S).div_ceil(NS_PER_S);
            return Err(u32::try_from(wait_s).unwrap_or(u32::MAX));
        }
        self.full_at = full_at;
        Ok(())
    }
}

impl<K: Ord + Clone> Limit<K> {
    /// Creates a limit of this many requests per second; zero means no limit.
    pub(crate) fn new(per_s: u32) -> Limit<K> {
        let interval_ns = if per_s == 0 { 0 } else { (NS_PER_S / per_s as u64).max(1) };
        Limit { interval_ns, since: Timestamp::ZERO, now: BTreeMap::new(), before: BTreeMap::new() }
    }

    /// Takes one request from the bucket; if it is empty, returns the seconds until there is one
    /// again.
    pub(crate) fn take(&mut self, now: Timestamp, key: &K) -> Result<(), u32> {
        if self.interval_ns == 0 {
            return Ok(());
        }
        self.rotate(now);
        // A client that sends many requests is found with one lookup.
        if let Some(bucket) = self.now.get_mut(key) {
            return bucket.take(now, self.interval_ns);
        }
        let mut bucket = self.before.get(key).copied().unwrap_or(RateBucket { full_at: now });
        bucket.take(now, self.interval_ns)?;
        if self.now.len() < KEYS_MAX {
            self.now.insert(key.clone(), bucket);
        }
        Ok(())
    }

    fn rotate(&mut self, now: Timestamp) {
        if now.since(self.since) >= NS_PER_S {
            self.before = mem::take(&mut self.now);
            self.since = now;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const START: Timestamp = Timestamp(1_700_000_000 * NS_PER_S);

    fn taken(limit: &mut Limit<u32>, now: Timestamp, key: u32) -> usize {
        (0..1_000_000).take_while(|_| limit.take(now, &key).is_ok()).count()
    }

    #[test]
    fn a_burst_of_one_second_is_allowed_and_then_the_steady_rate() {
        let mut limit = Limit::new(10);
        assert_eq!(taken(&mut limit, START, 1), 10);
        assert_eq!(limit.take(START, &1), Err(1));
        assert_eq!(taken(&mut limit, START, 2), 10, "each key has a bucket of its own");
        let tenth = NS_PER_S / 10;
        assert_eq!(taken(&mut limit, START.plus(tenth - 1), 1), 0);
        // Over many rotations of the tables no more than the rate is allowed.
        let all: usize = (1..=100).map(|n| taken(&mut limit, START.plus(n * tenth), 1)).sum();
        assert_eq!(all, 100);
        assert_eq!(
            taken(&mut limit, START.plus(60 * NS_PER_S), 1),
            10,
            "no more than a second's worth is saved"
        );
    }

    #[test]
    fn without_a_limit_everything_is_allowed_and_nothing_is_stored() {
        let mut limit = Limit::new(0);
        assert_eq!(taken(&mut limit, START, 1), 1_000_000);
        assert!(limit.now.is_empty());
    }

    #[test]
    fn a_generous_limit_allows_a_busy_client() {
        let mut limit = Limit::new(200_000);
        assert_eq!((0..200_000).filter(|n| limit.take(START.plus(n * 5_000), &1).is_ok()).count(), 200_000);
    }

    #[test]
    fn the_tables_do_not_grow() {
        let mut limit = Limit::new(1);
        for key in 0..KEYS_MAX as u32 + 10 {
            assert_eq!(limit.take(START, &key), Ok(()));
        }
        assert_eq!(limit.now.len(), KEYS_MAX);
        for second in 1..3 {
            let _ = limit.take(START.plus(second * NS_PER_S), &0);
        }
        assert_eq!((limit.now.len(), limit.before.len()), (1, 1));
    }
}
