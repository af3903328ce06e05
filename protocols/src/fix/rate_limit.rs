//! How much one session may ask in a second. Cancels have a budget of their own, so that a client that is held back with
//! its orders can still get out.

use pitlane_engine::time::{NS_PER_S, Timestamp};

/// Requests a second; zero: as many as it likes. As many may come at once after a second of rest.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RateLimitSettings {
    pub orders_per_s: u32,
    pub cancels_per_s: u32,
}

#[derive(Clone, Copy, Debug)]
pub struct RateLimit {
    orders: LeakyBucket,
    cancels: LeakyBucket,
}

impl RateLimit {
    pub fn new(settings: &RateLimitSettings) -> RateLimit {
        RateLimit {
            orders: LeakyBucket::new(settings.orders_per_s),
            cancels: LeakyBucket::new(settings.cancels_per_s),
        }
    }

    /// Whether one more new order or replacement is within the budget; if so it is counted.
    pub fn admits_order(&mut self, now: Timestamp) -> bool {
        self.orders.take(now)
    }

    pub fn admits_cancel(&mut self, now: Timestamp) -> bool {
        self.cancels.take(now)
    }
}

/// Leaks one request each `gap_ns`, and holds a second's worth.
#[derive(Clone, Copy, Debug)]
struct LeakyBucket {
    gap_ns: u64,
    /// When it would be empty.
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
    fn a_second_holds_its_number_and_cancels_are_counted_apart() {
        let mut flood = RateLimit::new(&RateLimitSettings { orders_per_s: 3, cancels_per_s: 1 });
        let now = Timestamp(5 * NS_PER_S);
        assert!((0..3).all(|_| flood.admits_order(now)));
        assert!(!flood.admits_order(now));
        assert!(flood.admits_cancel(now) && !flood.admits_cancel(now));
        let later = now.plus(NS_PER_S / 3 + 1);
        assert!(flood.admits_order(later) && !flood.admits_order(later));
        let mut free = RateLimit::new(&RateLimitSettings::default());
        assert!((0..10_000).all(|_| free.admits_order(now) && free.admits_cancel(now)));
    }
}
