//! The round trip to a venue: from a Test Request to its Heartbeat after the logon, and from a New
//! Order Single to the first report about it. One order at a time is measured, so that it costs a
//! comparison.

use pitlane_engine::id::OrderHandle;
use pitlane_engine::time::{NS_PER_S, Timestamp};

/// Age of an order without an answer from which another order is measured.
const ANSWER_NS_MAX: u64 = 10 * NS_PER_S;

#[derive(Clone, Copy, Debug, Default)]
pub(super) struct RoundTrip {
    /// Order without an answer, and when it was sent.
    order: Option<(OrderHandle, Timestamp)>,
    test_requested: Option<Timestamp>,
    newest_ns: Option<u64>,
}

impl RoundTrip {
    pub(super) fn newest_ns(&self) -> Option<u64> {
        self.newest_ns
    }

    pub(super) fn handle_test_request(&mut self, now: Timestamp) {
        self.test_requested = Some(now);
    }

    pub(super) fn handle_heartbeat(&mut self, now: Timestamp) {
        if let Some(sent) = self.test_requested.take() {
            self.newest_ns = Some(now.0.saturating_sub(sent.0));
        }
    }

    #[inline]
    pub(super) fn handle_order(&mut self, now: Timestamp, order: OrderHandle) {
        if self.order.is_none_or(|(_, sent)| now.0.saturating_sub(sent.0) > ANSWER_NS_MAX) {
            self.order = Some((order, now));
        }
    }

    #[inline]
    pub(super) fn handle_report(&mut self, now: Timestamp, order: OrderHandle) {
        if let Some((_, sent)) = self.order.take_if(|(measured, _)| *measured == order) {
            self.newest_ns = Some(now.0.saturating_sub(sent.0));
        }
    }

    /// Forgets what has no answer; the newest value stays.
    pub(super) fn handle_disconnect(&mut self) {
        (self.order, self.test_requested) = (None, None);
    }
}

#[cfg(test)]
mod tests {
    use pitlane_engine::id::ShardId;

    use super::*;

    fn order(slot: u32) -> OrderHandle {
        OrderHandle::new(ShardId(0), 1, slot)
    }

    #[test]
    fn one_order_at_a_time_is_measured() {
        let mut trip = RoundTrip::default();
        trip.handle_order(Timestamp(1_000), order(1));
        trip.handle_order(Timestamp(1_500), order(2));
        trip.handle_report(Timestamp(2_000), order(2));
        assert_eq!(trip.newest_ns(), None, "another order is measured");
        trip.handle_report(Timestamp(4_000), order(1));
        trip.handle_report(Timestamp(9_000), order(1));
        assert_eq!(trip.newest_ns(), Some(3_000), "the first report counts");
    }

    #[test]
    fn an_order_that_is_never_answered_is_given_up() {
        let mut trip = RoundTrip::default();
        trip.handle_order(Timestamp(0), order(1));
        trip.handle_order(Timestamp(ANSWER_NS_MAX), order(2));
        trip.handle_order(Timestamp(ANSWER_NS_MAX + 1), order(3));
        trip.handle_report(Timestamp(ANSWER_NS_MAX + 8), order(3));
        assert_eq!(trip.newest_ns(), Some(7));
        trip.handle_order(Timestamp(ANSWER_NS_MAX + 9), order(4));
        trip.handle_disconnect();
        trip.handle_report(Timestamp(ANSWER_NS_MAX + 99), order(4));
        assert_eq!(trip.newest_ns(), Some(7), "the connection has ended between them");
    }

    #[test]
    fn a_test_request_is_measured_too() {
        let mut trip = RoundTrip::default();
        trip.handle_heartbeat(Timestamp(5));
        assert_eq!(trip.newest_ns(), None);
        trip.handle_test_request(Timestamp(5));
        trip.handle_heartbeat(Timestamp(25));
        assert_eq!(trip.newest_ns(), Some(20));
    }
}
