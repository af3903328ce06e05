//! Deadlines of a session: heartbeats, test requests and timeouts.
//!
//! Rules: docs/fix-rules.md#heartbeats-and-time-limits.

use pitlane_engine::time::{NS_PER_S, Timestamp};

use super::{DisconnectReason, FixSession, FixSessionState};
use crate::fix::msg_type;
use crate::fix::tag::prefix;

/// Time from the connection to a complete Logon. Bytes that trickle in do not prolong it.
pub const LOGON_NS_MAX: u64 = 5 * NS_PER_S;

/// Time from our Logout to the client's.
pub const LOGOUT_NS_MAX: u64 = 5 * NS_PER_S;

/// Time from the first byte of a frame to its last.
pub const FRAME_NS_MAX: u64 = 10 * NS_PER_S;

/// Time without a byte taken by the client while there is output.
pub(super) const STALLED_NS_MAX: u64 = 30 * NS_PER_S;

/// The same bound while the connection is closing.
pub(super) const CLOSING_NS_MAX: u64 = 2 * NS_PER_S;

/// Time after which an unfilled gap is requested again.
pub(super) const GAP_RETRY_NS: u64 = 30 * NS_PER_S;

#[derive(Clone, Copy, Debug, Default)]
pub(super) struct SessionTimers {
    connected_at: Timestamp,
    /// Time of the client's last byte.
    received_at: Timestamp,
    /// Time of our last message.
    sent_at: Timestamp,
    /// HeartBtInt in nanoseconds; zero means none.
    interval_ns: u64,
    /// Whether a Test Request was sent since the client's last byte.
    test_request_sent: bool,
    logout_until: Timestamp,
    /// Start of the incomplete frame, if there is one.
    frame_since: Option<Timestamp>,
    /// Time since which the client has taken nothing.
    stalled_since: Option<Timestamp>,
    /// End of the session by its schedule.
    session_ends_at: Option<Timestamp>,
    /// Time at which orders are cancelled because the client is disconnected.
    cancel_at: Option<Timestamp>,
}

impl SessionTimers {
    pub(super) fn connect(&mut self, now: Timestamp) {
        *self = SessionTimers {
            connected_at: now,
            received_at: now,
            sent_at: now,
            cancel_at: self.cancel_at,
            ..SessionTimers::default()
        };
    }

    /// Ends the connection. `cancel_at` applies if the client was logged on.
    pub(super) fn disconnect(&mut self, cancel_at: Option<Timestamp>) {
        if self.session_ends_at.is_some() {
            self.cancel_at = cancel_at;
        }
        (self.frame_since, self.stalled_since, self.session_ends_at) = (None, None, None);
    }

    pub(super) fn log_on(&mut self, interval_ns: u64, session_ends_at: Timestamp) {
        self.interval_ns = interval_ns;
        self.session_ends_at = Some(session_ends_at);
        self.cancel_at = None;
    }

    pub(super) fn log_out(&mut self, now: Timestamp) {
        self.logout_until = now.plus(LOGOUT_NS_MAX);
    }

    pub(super) fn received(&mut self, now: Timestamp) {
        self.received_at = now;
        self.test_request_sent = false;
    }

    pub(super) fn sent(&mut self, now: Timestamp) {
        self.sent_at = now;
        self.stalled_since.get_or_insert(now);
    }

    pub(super) fn transmitted(&mut self, now: Timestamp, more: bool) {
        self.stalled_since = more.then_some(now);
    }

    pub(super) fn wait_for_frame(&mut self, coming: bool) {
        match coming {
            true => _ = self.frame_since.get_or_insert(self.received_at),
            false => self.frame_since = None,
        }
    }

    /// Returns when a Test Request is due: once, after 1.2 intervals of silence.
    fn test_request_at(&self) -> Option<Timestamp> {
        let wanted = self.interval_ns > 0 && !self.test_request_sent;
        wanted.then(|| self.received_at.plus(self.interval_ns / 5 * 6))
    }

    /// Returns when the silence has lasted too long: 2.4 intervals.
    fn silence_at(&self) -> Option<Timestamp> {
        (self.interval_ns > 0).then(|| self.received_at.plus(self.interval_ns / 5 * 12))
    }

    fn heartbeat_at(&self) -> Option<Timestamp> {
        (self.interval_ns > 0).then(|| self.sent_at.plus(self.interval_ns))
    }
}

impl FixSession {
    /// Returns the latest time for the next call of [`FixSession::handle_timeout`].
    pub fn poll_timeout(&self) -> Option<Timestamp> {
        let timers = &self.timers;
        let stalled =
            |ns: u64| timers.stalled_since.filter(|_| !self.output.is_empty()).map(|at| at.plus(ns));
        let quiet = !self.resend.is_active();
        let deadlines = match self.state {
            FixSessionState::Disconnected => {
                let call_at = self.initiator.as_ref().map(|initiator| initiator.connect_at);
                [timers.cancel_at, call_at, None, None, None, None, None]
            }
            FixSessionState::AwaitingLogon => {
                let logon = Some(timers.connected_at.plus(LOGON_NS_MAX));
                [timers.cancel_at, logon, None, None, None, None, None]
            }
            FixSessionState::LoggedOn => [
                timers.test_request_at().filter(|_| quiet),
                timers.silence_at(),
                timers.heartbeat_at().filter(|_| quiet),
                timers.session_ends_at,
                timers.frame_since.map(|since| since.plus(FRAME_NS_MAX)),
                stalled(STALLED_NS_MAX),
                self.sequence.gap_retry_at(GAP_RETRY_NS),
            ],
            FixSessionState::LoggingOut => {
                [Some(timers.logout_until), stalled(STALLED_NS_MAX), None, None, None, None, None]
            }
            FixSessionState::Closing => [stalled(CLOSING_NS_MAX), None, None, None, None, None, None],
        };
        deadlines.into_iter().flatten().min()
    }

    /// Does everything that is due now.
    pub fn handle_timeout(&mut self, now: Timestamp) {
        let is_due = |at: Option<Timestamp>| at.is_some_and(|at| at <= now);
        if matches!(self.state, FixSessionState::Disconnected | FixSessionState::AwaitingLogon)
            && is_due(self.timers.cancel_at)
        {
            self.timers.cancel_at = None;
            self.cancel_index = Some(0);
        }
        match self.state {
            FixSessionState::Disconnected => {}
            FixSessionState::AwaitingLogon => {
                if self.timers.connected_at.plus(LOGON_NS_MAX) <= now {
                    self.close(DisconnectReason::LogonTimeout);
                }
            }
            FixSessionState::LoggedOn => self.handle_logged_on_timeout(now),
            FixSessionState::LoggingOut => {
                if self.timers.logout_until <= now {
                    self.close(DisconnectReason::EndedByUs);
                }
            }
            FixSessionState::Closing => {
                if is_due(self.timers.stalled_since.map(|since| since.plus(CLOSING_NS_MAX))) {
                    self.output.clear();
                }
            }
        }
    }

    fn handle_logged_on_timeout(&mut self, now: Timestamp) {
        let timers = self.timers;
        let is_due = |at: Option<Timestamp>| at.is_some_and(|at| at <= now);
        let stalled = timers.stalled_since.filter(|_| !self.output.is_empty());
        if is_due(stalled.map(|since| since.plus(STALLED_NS_MAX))) {
            self.output.clear();
            return self.close(DisconnectReason::SlowReader);
        }
        if is_due(timers.frame_since.map(|since| since.plus(FRAME_NS_MAX))) {
            return self.close(DisconnectReason::SlowFrame);
        }
        if is_due(timers.session_ends_at) {
            return self.log_out(now, b"The session is over", DisconnectReason::EndedByUs);
        }
        if is_due(timers.silence_at()) {
            self.resend.stop();
            return self.log_out_and_close(now, b"Heartbeat missed", DisconnectReason::HeartbeatMissed);
        }
        if is_due(self.sequence.gap_retry_at(GAP_RETRY_NS)) {
            self.sequence.retry_gap();
        }
        if self.resend.is_active() {
            return;
        }
        self.request_gap(now);
        if is_due(timers.test_request_at()) {
            self.timers.test_request_sent = true;
            self.send_admin(now, msg_type::TEST_REQUEST, |draft| draft.time(prefix::TEST_REQ_ID, now));
        } else if is_due(timers.heartbeat_at()) {
            self.send_admin(now, msg_type::HEARTBEAT, |_| {});
        }
    }
}
