//! Does what is due: ends connections whose time limit has passed, requests gaps again, and sends
//! Heartbeats and Test Requests.

use pitlane_engine::time::{NS_PER_S, Timestamp};

use super::SessionLayer;
use crate::fix::msg_type;
use crate::fix::session::state::DisconnectReason;
use crate::fix::session::timers::Timeout;
use crate::fix::tag::prefix;

/// Time after which an unfilled gap is requested again.
const GAP_RETRY_NS: u64 = 30 * NS_PER_S;

impl SessionLayer {
    /// Returns the latest time for the next call of [`SessionLayer::handle_timeout`].
    pub(in crate::fix::session) fn poll_timeout(&self) -> Option<Timestamp> {
        let (has_unsent, is_resending) = (self.stream.has_unsent(), self.resend.is_active());
        let deadline = self.timers.next_deadline(self.state, has_unsent, is_resending);
        let gap = self.sequence.gap_retry_at(GAP_RETRY_NS).filter(|_| self.is_logged_on());
        [deadline, gap].into_iter().flatten().min()
    }

    /// Does everything that is due now.
    pub(in crate::fix::session) fn handle_timeout(&mut self, now: Timestamp) {
        match self.timers.passed(now, self.state, self.stream.has_unsent()) {
            Some(timeout) => self.end_after(now, timeout),
            None if self.is_logged_on() => self.keep_alive(now),
            None => {}
        }
    }

    fn end_after(&mut self, now: Timestamp, timeout: Timeout) {
        match timeout {
            Timeout::Logon => self.close(DisconnectReason::LogonTimeout),
            Timeout::Logout => self.close(DisconnectReason::EndedByUs),
            Timeout::Stalled => {
                self.stream.clear_output();
                self.close(DisconnectReason::SlowReader);
            }
            Timeout::Frame => self.close(DisconnectReason::SlowFrame),
            Timeout::SessionEnd => self.log_out(now, b"The session is over", DisconnectReason::EndedByUs),
            Timeout::Silence => {
                self.resend.stop();
                self.log_out_and_close(now, b"Heartbeat missed", DisconnectReason::HeartbeatMissed);
            }
        }
    }

    fn keep_alive(&mut self, now: Timestamp) {
        if self.sequence.gap_retry_at(GAP_RETRY_NS).is_some_and(|at| at <= now) {
            self.sequence.retry_gap();
        }
        if self.resend.is_active() {
            return;
        }
        let (test_request, heartbeat) =
            (self.timers.is_test_request_due(now), self.timers.is_heartbeat_due(now));
        self.request_gap(now);
        if test_request {
            self.send_test_request(now);
        } else if heartbeat {
            self.send_admin(now, msg_type::HEARTBEAT, |_| {});
        }
    }

    /// Sends a Test Request before it is due. During a resend there is none, because its number
    /// would stand between those of old messages.
    pub(in crate::fix::session) fn probe(&mut self, now: Timestamp) {
        if self.is_logged_on() && !self.resend.is_active() {
            self.send_test_request(now);
        }
    }

    fn send_test_request(&mut self, now: Timestamp) {
        self.timers.test_request_sent();
        self.send_admin(now, msg_type::TEST_REQUEST, |draft| draft.time(prefix::TEST_REQ_ID, now));
    }
}
