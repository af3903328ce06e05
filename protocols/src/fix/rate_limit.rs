//! Limits the requests of one session per second. Cancels have a limit of their own, so that a
//! client whose orders are refused can still cancel; so have requests that change no order, which
//! must not use up what orders need.
//!
//! Rules: docs/fix-rules.md#throttling.

use pitlane_engine::time::{NS_PER_S, Timestamp};

/// Requests per second; zero means no limit. After a second of rest the whole number may arrive at
/// once.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RateLimitSettings {
    pub orders_per_s: u32,
    pub cancels_per_s: u32,
    /// Requests that change no order.
    pub queries_per_s: u32,
}

#[derive(Clone, Copy, Debug)]
pub struct RateLimit {
    orders: LeakyBucket,
    cancels: LeakyBucket,
    queries: LeakyBucket,
}

impl RateLimit {
    pub fn new(settings: &RateLimitSettings) -> RateLimit {
        RateLimit {
            orders: LeakyBucket::new(settings.orders_per_s),
            cancels: LeakyBucket::new(settings.cancels_per_s),
            queries: LeakyBucket::new(settings.queries_per_s),
        }
    }

    /// Counts one more new order or replacement, and returns whether it is within the limit.
    pub fn admits_order(&mut self, now: Timestamp) -> bool {
        self.orders.take(now)
    }

    pub fn admits_cancel(&mut self, now: Timestamp) -> bool {
        self.cancels.take(now)
    }

    pub fn admits_query(&mut self, now: Timestamp) -> bool {
        self.queries.take(now)
    }
}

/// A leaky bucket: leaks one request each `gap_ns` and holds the requests of one second.
#[derive(Clone, Copy, Debug)]
struct LeakyBucket {
    gap_ns: u64,
    /// Time at which the bucket would be empty.
    empty: Timestamp,
}

impl LeakyBucket {
    fn new(per_s: u32) -> LeakyBucket {
        LeakyBucket { gap_ns: NS_PER_S.checked_div(per_s as u64).unwrap_or(0), empty: Timestamp::ZERO }
    }

    fn take(&mut self, now: Timestamp) -> bool {
        let filled = self.empty.max(now).plus(self.gap_ns);
        if filled.since(now) > NS_PER_S {
            return false;
        }
        self.empty = filled;
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_second_has_its_limit_and_cancels_have_their_own() {
        let settings = RateLimitSettings { orders_per_s: 3, cancels_per_s: 1, queries_per_s: 2 };
        let mut flood = RateLimit::new(&settings);
        let now = Timestamp(5 * NS_PER_S);
        assert!((0..3).all(|_| flood.admits_order(now)));
        assert!(!flood.admits_order(now));
        assert!(flood.admits_cancel(now) && !flood.admits_cancel(now));
        assert!(flood.admits_query(now) && flood.admits_query(now) && !flood.admits_query(now));
        let later = now.plus(NS_PER_S / 3 + 1);
        assert!(flood.admits_order(later) && !flood.admits_order(later));
        let mut free = RateLimit::new(&RateLimitSettings::default());
        let admits = |_| free.admits_order(now) && free.admits_cancel(now) && free.admits_query(now);
        assert!((0..10_000).all(admits));
    }
}
