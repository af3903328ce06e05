//! The orders of a scope that its duplicate window remembers.

use crate::codec::{ByteReader, ByteSink, Codec, DecodeError, DecodeProblem};
use crate::terms::Terms;
use crate::time::Timestamp;

/// Orders of a scope remembered for the duplicate window. The rate limit refuses a client that
/// sends more within the window.
pub const RECENT_MAX: usize = 64;

#[derive(Clone, Debug)]
pub(super) struct RecentOrders {
    /// A ring; the newest entry is before `at`.
    orders: Vec<(Timestamp, Terms)>,
    at: usize,
    /// Time at which an order was last remembered.
    newest: Timestamp,
    /// [`sum`] of the terms at each place of the ring: at a high rate the window always contains
    /// orders, and a pass over these four cache lines clears an order that repeats none of them.
    sums: [u32; RECENT_MAX],
}

impl RecentOrders {
    pub(super) fn new() -> RecentOrders {
        RecentOrders { orders: Vec::new(), at: 0, newest: Timestamp::ZERO, sums: [0; RECENT_MAX] }
    }

    /// Reserves the memory, so that no order allocates.
    pub(super) fn reserve(&mut self) {
        self.orders.reserve_exact(RECENT_MAX - self.orders.len());
    }

    /// Returns whether an order surely repeats none within the window, by a few comparisons. If it
    /// does not, [`RecentOrders::contains`] decides.
    #[inline(always)]
    pub(super) fn clears(&self, now: Timestamp, window_ns: u64, terms: &Terms) -> bool {
        now.since(self.newest) >= window_ns || !self.has_sum(sum(terms))
    }

    /// It visits all places without a branch, four at a time.
    #[inline(never)]
    fn has_sum(&self, sum: u32) -> bool {
        self.sums.iter().fold(false, |found, other| found | (*other == sum))
    }

    /// Returns whether an order repeats one within the window.
    pub(super) fn contains(&self, now: Timestamp, window_ns: u64, terms: &Terms) -> bool {
        // Newest first: the first entry outside the window ends the search.
        let (older, newer) = self.orders.split_at(self.at);
        let newest_first = older.iter().rev().chain(newer.iter().rev());
        let mut within = newest_first.take_while(|(at, _)| now.since(*at) < window_ns);
        within.any(|(_, other)| other == terms)
    }

    #[inline]
    pub(super) fn remember(&mut self, now: Timestamp, terms: &Terms) {
        if self.at == RECENT_MAX {
            self.at = 0;
        }
        match self.orders.get_mut(self.at) {
            Some(place) => *place = (now, *terms),
            None => self.orders.push((now, *terms)),
        }
        self.sums[self.at] = sum(terms);
        self.at += 1;
        self.newest = now;
    }
}

/// The sums follow from the terms.
impl Codec for RecentOrders {
    fn encode(&self, out: &mut impl ByteSink) {
        self.newest.encode(out);
        self.orders.encode(out);
        self.at.encode(out);
    }

    fn decode(from: &mut ByteReader<'_>) -> Result<RecentOrders, DecodeError> {
        let newest = Codec::decode(from)?;
        let orders: Vec<(Timestamp, Terms)> = Codec::decode(from)?;
        let at = Codec::decode(from)?;
        from.check(orders.len() <= RECENT_MAX && at <= orders.len(), DecodeProblem::Contradiction)?;
        let mut recent = RecentOrders { orders, at, newest, ..RecentOrders::new() };
        for (place, (_, terms)) in recent.sums.iter_mut().zip(&recent.orders) {
            *place = sum(terms);
        }
        Ok(recent)
    }
}

/// Returns a number that equal terms share and that others rarely have: the upper half of a product
/// with a large odd factor, on which every bit of the terms has an effect.
#[inline]
fn sum(terms: &Terms) -> u32 {
    const FACTOR: u64 = 0x9e37_79b9_7f4a_7c15;
    let prices = terms.qty.raw() as u64 ^ (terms.limit.raw() as u64).rotate_left(32);
    let mixed = prices.wrapping_mul(FACTOR) ^ (terms.security.0 as u64) << 1 ^ terms.side as u64;
    (mixed.wrapping_mul(FACTOR) >> 32) as u32
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::id::SecurityId;
    use crate::number::{Price, Qty};

    const WINDOW: u64 = 1_000;

    fn terms(n: i64) -> Terms {
        let (qty, limit) = (Qty::from_raw(n % 7 + 1), Price::from_raw(n * 100));
        Terms { qty, limit, security: SecurityId(3), ..Terms::default() }
    }

    /// A place is overwritten after 64 further orders, and time passes by one per order.
    #[test]
    fn an_order_is_clear_exactly_if_it_repeats_none() {
        let mut recent = RecentOrders::new();
        recent.reserve();
        for n in 0..1_000 {
            let now = Timestamp(n as u64);
            assert!(recent.clears(now, WINDOW, &terms(n)), "order {n} is new");
            assert!(!recent.contains(now, WINDOW, &terms(n)));
            recent.remember(now, &terms(n));
            let oldest = (n - RECENT_MAX as i64 + 1).max(0);
            for known in oldest..=n {
                assert!(!recent.clears(now, WINDOW, &terms(known)), "order {known} is known at {n}");
                assert!(recent.contains(now, WINDOW, &terms(known)));
            }
        }
    }

    #[test]
    fn an_order_outside_the_window_counts_no_more() {
        let mut recent = RecentOrders::new();
        recent.remember(Timestamp(5), &terms(1));
        recent.remember(Timestamp(6), &terms(2));
        assert!(!recent.contains(Timestamp(5 + WINDOW), WINDOW, &terms(1)));
        assert!(recent.contains(Timestamp(5 + WINDOW), WINDOW, &terms(2)));
        assert!(recent.clears(Timestamp(6 + WINDOW), WINDOW, &terms(2)), "the newest is too old");
    }

    #[test]
    fn an_order_that_was_sent_twice_repeats_both() {
        let mut recent = RecentOrders::new();
        recent.remember(Timestamp(1), &terms(1));
        recent.remember(Timestamp(1 + WINDOW), &terms(1));
        assert!(!recent.clears(Timestamp(2 + WINDOW), WINDOW, &terms(1)));
    }

    /// Terms that differ only in what the sum leaves out are not clear, and no repetition.
    #[test]
    fn terms_with_the_same_sum_are_compared() {
        let mut recent = RecentOrders::new();
        recent.remember(Timestamp(1), &terms(1));
        let other = Terms { stop: Price::from_raw(9), ..terms(1) };
        assert!(!recent.clears(Timestamp(1), WINDOW, &other));
        assert!(!recent.contains(Timestamp(1), WINDOW, &other));
    }

    #[test]
    fn it_is_the_same_after_save_and_load() {
        let mut recent = RecentOrders::new();
        (0..100).for_each(|n| recent.remember(Timestamp(n as u64), &terms(n)));
        let mut bytes = Vec::new();
        recent.encode(&mut bytes);
        let again = RecentOrders::decode(&mut ByteReader::new(&bytes)).unwrap();
        assert_eq!((again.sums, again.at, again.newest), (recent.sums, recent.at, recent.newest));
        assert_eq!(again.orders, recent.orders);
    }

    #[test]
    fn stored_orders_are_a_ring_that_is_not_too_long() {
        let with = |len: usize, at: usize| {
            let mut bytes = Vec::new();
            let orders = vec![(Timestamp(1), terms(1)); len];
            RecentOrders { orders, at, ..RecentOrders::new() }.encode(&mut bytes);
            RecentOrders::decode(&mut ByteReader::new(&bytes)).err().map(|damage| damage.problem)
        };
        assert_eq!([with(0, 0), with(5, 5), with(RECENT_MAX, 3), with(RECENT_MAX, RECENT_MAX)], [None; 4]);
        let bad = Some(DecodeProblem::Contradiction);
        assert_eq!([with(5, 6), with(RECENT_MAX + 1, 3)], [bad; 2]);
    }

    #[test]
    fn orders_that_differ_in_one_term_rarely_have_one_sum() {
        let one = terms(1);
        let others = [
            one,
            Terms { qty: Qty::from_raw(9), ..one },
            Terms { limit: Price::from_raw(9), ..one },
            Terms { security: SecurityId(4), ..one },
            Terms { side: crate::terms::Side::Sell, ..one },
        ];
        let sums: std::collections::BTreeSet<u32> = others.iter().map(sum).collect();
        assert_eq!(sums.len(), others.len());
    }
}
