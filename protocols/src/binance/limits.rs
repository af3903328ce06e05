//! Limits of the venue, kept by us before the venue complains: the weight of requests, and the
//! number of unfilled orders, each per interval.
//!
//! The venue reports limit and use with each answer, for intervals of its own time. To that use we
//! add what was sent and not answered yet. New orders leave a tenth of the weight to cancels and
//! queries.

use pitlane_engine::time::{NS_PER_DAY, NS_PER_MS, NS_PER_S, Timestamp};

use super::message::RateLimit;
use crate::venue::LimitUse;

/// Limits that are tracked. The venue has three; further ones are ignored, and reported by its
/// refusals.
pub const LIMITS_MAX: usize = 8;

/// Part of the weight that new orders leave to other requests: one in so many.
const RESERVE_PART: u64 = 10;
/// The same for snapshots of books.
const SNAPSHOT_RESERVE_PART: u64 = 2;

/// What a request uses.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RequestCost {
    pub weight: u64,
    pub orders: u64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum LimitKind {
    Weight,
    Orders,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Limit {
    kind: LimitKind,
    interval_ns: u64,
    allowed: u64,
    used: u64,
    /// Number of the interval since 1970 for which `used` is valid.
    interval: u64,
}

#[derive(Debug, Default)]
pub struct VenueLimits {
    limits: Vec<Limit>,
    /// Cost of requests without an answer.
    in_flight: RequestCost,
    /// Time of the venue until which it takes no request at all.
    banned_until: Timestamp,
}

impl VenueLimits {
    /// Returns whether a new order may be sent at this time of the venue.
    pub fn allows_order(&self, at: Timestamp, cost: RequestCost) -> bool {
        self.allows_with(at, cost, RESERVE_PART)
    }

    /// Returns whether another request may be sent at this time of the venue.
    pub fn allows(&self, at: Timestamp, cost: RequestCost) -> bool {
        self.allows_with(at, cost, u64::MAX)
    }

    /// Returns whether a snapshot of a book may be requested at this time of the venue: half of the
    /// weight is left to orders and everything about them.
    pub fn allows_snapshot(&self, at: Timestamp, cost: RequestCost) -> bool {
        self.allows_with(at, cost, SNAPSHOT_RESERVE_PART)
    }

    fn allows_with(&self, at: Timestamp, cost: RequestCost, reserve_part: u64) -> bool {
        at >= self.banned_until
            && self.limits.iter().all(|limit| {
                let (more, allowed) = match limit.kind {
                    LimitKind::Weight => {
                        (cost.weight + self.in_flight.weight, limit.allowed - limit.allowed / reserve_part)
                    }
                    LimitKind::Orders => (cost.orders + self.in_flight.orders, limit.allowed),
                };
                let is_free = match limit.kind {
                    LimitKind::Weight => cost.weight == 0,
                    LimitKind::Orders => cost.orders == 0,
                };
                is_free || limit.used_at(at) + more <= allowed
            })
    }

    /// Returns the time of the venue from which more may be allowed.
    pub fn next_interval(&self, at: Timestamp) -> Timestamp {
        let shortest = self.limits.iter().map(|limit| limit.interval_ns).min().unwrap_or(NS_PER_S);
        Timestamp((at.0 / shortest + 1) * shortest).max(self.banned_until)
    }

    pub fn handle_sent(&mut self, cost: RequestCost) {
        self.in_flight.weight += cost.weight;
        self.in_flight.orders += cost.orders;
    }

    /// Handles an answer that reports no use: what was sent counts.
    pub fn handle_answered(&mut self, at: Timestamp, cost: RequestCost) {
        self.in_flight.weight = self.in_flight.weight.saturating_sub(cost.weight);
        self.in_flight.orders = self.in_flight.orders.saturating_sub(cost.orders);
        for limit in &mut self.limits {
            let used = match limit.kind {
                LimitKind::Weight => cost.weight,
                LimitKind::Orders => cost.orders,
            };
            limit.set(at, limit.used_at(at) + used);
        }
    }

    /// Handles the limits that the venue reports, as a list or as one of its elements.
    pub(super) fn handle_reported(&mut self, at: Timestamp, reported: &RateLimit<'_>) {
        let kind = match reported.rate_limit_type {
            "REQUEST_WEIGHT" => LimitKind::Weight,
            "ORDERS" => LimitKind::Orders,
            _ => return,
        };
        let unit_ns = match reported.interval {
            "SECOND" => NS_PER_S,
            "MINUTE" => 60 * NS_PER_S,
            "HOUR" => 3_600 * NS_PER_S,
            "DAY" => NS_PER_DAY,
            _ => return,
        };
        let Some(interval_ns) = unit_ns.checked_mul(reported.interval_num).filter(|ns| *ns > 0) else {
            return;
        };
        let has_room = self.limits.len() < LIMITS_MAX;
        let mut limits = self.limits.iter_mut();
        if let Some(limit) = limits.find(|limit| (limit.kind, limit.interval_ns) == (kind, interval_ns)) {
            limit.allowed = reported.limit;
            limit.set(at, reported.count);
        } else if has_room {
            let (allowed, used, interval) = (reported.limit, reported.count, at.0 / interval_ns);
            self.limits.push(Limit { kind, interval_ns, allowed, used, interval });
        }
    }

    /// Handles a refusal for too many requests. `retry_after_ms` is a time of the venue; without
    /// one the shortest interval must end.
    pub fn handle_ban(&mut self, at: Timestamp, retry_after_ms: Option<u64>) {
        let until = match retry_after_ms {
            Some(ms) => Timestamp(ms.saturating_mul(NS_PER_MS)),
            None => self.next_interval(at),
        };
        self.banned_until = self.banned_until.max(until);
    }

    pub fn banned_until(&self) -> Timestamp {
        self.banned_until
    }

    /// Forgets the requests of a connection that has ended.
    pub fn handle_disconnect(&mut self) {
        self.in_flight = RequestCost::default();
    }

    pub fn uses(&self, at: Timestamp) -> Vec<LimitUse> {
        let row = |limit: &Limit| LimitUse {
            name: match limit.kind {
                LimitKind::Weight => "weight",
                LimitKind::Orders => "orders",
            },
            interval_s: limit.interval_ns / NS_PER_S,
            used: limit.used_at(at),
            allowed: limit.allowed,
        };
        self.limits.iter().map(row).collect()
    }
}

impl Limit {
    fn used_at(&self, at: Timestamp) -> u64 {
        if at.0 / self.interval_ns == self.interval { self.used } else { 0 }
    }

    fn set(&mut self, at: Timestamp, used: u64) {
        (self.used, self.interval) = (used, at.0 / self.interval_ns);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MINUTE: u64 = 60 * NS_PER_S;
    const ORDER: RequestCost = RequestCost { weight: 1, orders: 1 };
    const CANCEL: RequestCost = RequestCost { weight: 1, orders: 0 };

    fn limit(
        kind: &'static str,
        interval: &'static str,
        num: u64,
        allowed: u64,
        used: u64,
    ) -> RateLimit<'static> {
        RateLimit { rate_limit_type: kind, interval, interval_num: num, limit: allowed, count: used }
    }

    #[test]
    fn orders_stop_below_the_limit_and_leave_weight_to_cancels() {
        let at = Timestamp(100 * MINUTE);
        let mut limits = VenueLimits::default();
        assert!(limits.allows_order(at, ORDER), "nothing is known yet");
        limits.handle_reported(at, &limit("REQUEST_WEIGHT", "MINUTE", 1, 100, 88));
        for nth in 0..2 {
            assert!(limits.allows_order(at, ORDER), "{nth}");
            limits.handle_sent(ORDER);
        }
        assert!(!limits.allows_order(at, ORDER), "requests in flight count");
        for _ in 0..10 {
            assert!(limits.allows(at, CANCEL));
            limits.handle_sent(CANCEL);
        }
        assert!(!limits.allows(at, CANCEL));
        // An answer replaces what we have counted.
        for _ in 0..12 {
            limits.handle_answered(at, CANCEL);
        }
        limits.handle_reported(at, &limit("REQUEST_WEIGHT", "MINUTE", 1, 100, 50));
        assert!(limits.allows_order(at, ORDER));
        limits.handle_reported(at, &limit("REQUEST_WEIGHT", "MINUTE", 1, 100, 100));
        assert!(!limits.allows(at, CANCEL));
        assert_eq!(limits.next_interval(at), Timestamp(101 * MINUTE));
        assert!(limits.allows_order(Timestamp(101 * MINUTE), ORDER), "a new interval begins with nothing");
    }

    #[test]
    fn each_interval_of_the_orders_is_a_limit_of_its_own() {
        let at = Timestamp(20_000 * NS_PER_DAY);
        let mut limits = VenueLimits::default();
        limits.handle_reported(at, &limit("ORDERS", "SECOND", 10, 50, 50));
        limits.handle_reported(at, &limit("ORDERS", "DAY", 1, 160_000, 4_043));
        assert!(!limits.allows_order(at, ORDER) && limits.allows(at, CANCEL));
        let later = at.plus(10 * NS_PER_S);
        assert!(limits.allows_order(later, ORDER));
        limits.handle_reported(later, &limit("ORDERS", "DAY", 1, 160_000, 160_000));
        assert!(!limits.allows_order(later, ORDER));
        let uses: Vec<(u64, u64, u64)> =
            limits.uses(later).iter().map(|row| (row.interval_s, row.used, row.allowed)).collect();
        assert_eq!(uses, [(10, 0, 50), (86_400, 160_000, 160_000)]);
        limits.handle_reported(later, &limit("ORDERS", "HOUR", 2, 7, 6));
        limits.handle_reported(later, &limit("ORDERS", "MINUTE", 3, 8, 5));
        let uses: Vec<(u64, u64, u64)> =
            limits.uses(later)[2..].iter().map(|row| (row.interval_s, row.used, row.allowed)).collect();
        assert_eq!(uses, [(7_200, 6, 7), (180, 5, 8)]);
    }

    #[test]
    fn what_an_answer_leaves_open_is_counted_by_its_cost() {
        let at = Timestamp(100 * MINUTE);
        let heavy = RequestCost { weight: 25, orders: 2 };
        let mut limits = VenueLimits::default();
        limits.handle_reported(at, &limit("REQUEST_WEIGHT", "MINUTE", 1, 100, 10));
        limits.handle_reported(at, &limit("ORDERS", "DAY", 1, 10, 3));
        (0..2).for_each(|_| limits.handle_sent(heavy));
        assert_eq!(limits.in_flight, RequestCost { weight: 50, orders: 4 });
        (0..2).for_each(|_| limits.handle_answered(at, heavy));
        assert_eq!(limits.in_flight, RequestCost::default());
        let used: Vec<u64> = limits.uses(at).iter().map(|row| row.used).collect();
        assert_eq!(used, [60, 7]);
    }

    #[test]
    fn requests_of_an_ended_connection_count_no_more() {
        let at = Timestamp(100 * MINUTE);
        let mut limits = VenueLimits::default();
        limits.handle_reported(at, &limit("REQUEST_WEIGHT", "MINUTE", 1, 10, 0));
        (0..10).for_each(|_| limits.handle_sent(CANCEL));
        assert!(!limits.allows(at, CANCEL));
        limits.handle_disconnect();
        assert!(limits.allows(at, CANCEL));
    }

    #[test]
    fn a_ban_stops_everything_until_its_end() {
        let at = Timestamp(1_659_142_907_531 * NS_PER_MS);
        let mut limits = VenueLimits::default();
        limits.handle_ban(at, Some(1_659_146_400_000));
        assert!(!limits.allows(at, CANCEL));
        assert_eq!(limits.banned_until(), Timestamp(1_659_146_400_000 * NS_PER_MS));
        assert!(limits.allows(limits.banned_until(), CANCEL));
        // Without a time, the interval must end.
        let mut limits = VenueLimits::default();
        limits.handle_reported(at, &limit("REQUEST_WEIGHT", "MINUTE", 1, 6_000, 1));
        limits.handle_ban(at, None);
        assert!(!limits.allows(at, CANCEL) && limits.allows(at.plus(MINUTE), CANCEL));
    }

    #[test]
    fn unknown_and_superfluous_limits_are_ignored() {
        let at = Timestamp(MINUTE);
        let mut limits = VenueLimits::default();
        limits.handle_reported(at, &limit("RAW_REQUESTS", "MINUTE", 5, 1, 1));
        limits.handle_reported(at, &limit("ORDERS", "WEEK", 1, 1, 1));
        limits.handle_reported(at, &limit("ORDERS", "DAY", 0, 1, 1));
        limits.handle_reported(at, &limit("ORDERS", "DAY", u64::MAX, 1, 1));
        assert!(limits.uses(at).is_empty());
        for nth in 1..=LIMITS_MAX as u64 + 3 {
            limits.handle_reported(at, &limit("ORDERS", "SECOND", nth, 10, 0));
        }
        assert_eq!(limits.uses(at).len(), LIMITS_MAX);
    }
}
