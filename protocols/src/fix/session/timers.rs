//! Deadlines of a session: heartbeats, test requests and timeouts. The session layer does what is
//! due.
//!
//! Rules: docs/fix-rules.md#heartbeats-and-time-limits.

use pitlane_engine::time::{NS_PER_S, Timestamp};

use super::state::FixSessionState;

/// Time from the connection to a complete Logon. Bytes that trickle in do not prolong it.
pub const LOGON_NS_MAX: u64 = 5 * NS_PER_S;

/// Time from our Logout to the client's.
pub const LOGOUT_NS_MAX: u64 = 5 * NS_PER_S;

/// Time from the first byte of a frame to its last.
pub const FRAME_NS_MAX: u64 = 10 * NS_PER_S;

/// Time without a byte taken by the client while there is output.
const STALLED_NS_MAX: u64 = 30 * NS_PER_S;

/// The same bound while the connection is closing.
const CLOSING_NS_MAX: u64 = 2 * NS_PER_S;

/// Time limit that has passed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Timeout {
    /// There is no complete Logon.
    Logon,
    /// The client has not answered our Logout.
    Logout,
    /// The client takes no output.
    Stalled,
    /// A frame is still incomplete.
    Frame,
    /// The session has ended by its schedule.
    SessionEnd,
    /// The client has sent nothing, not even after a Test Request.
    Silence,
}

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
    /// End of the session by its schedule, once the client is logged on.
    session_ends_at: Option<Timestamp>,
}

/// What happens on the connection.
impl SessionTimers {
    pub(super) fn connect(&mut self, now: Timestamp) {
        *self =
            SessionTimers { connected_at: now, received_at: now, sent_at: now, ..SessionTimers::default() };
    }

    /// Ends the connection. Returns whether the client was logged on.
    pub(super) fn disconnect(&mut self) -> bool {
        (self.frame_since, self.stalled_since) = (None, None);
        self.session_ends_at.take().is_some()
    }

    pub(super) fn log_on(&mut self, interval_ns: u64, session_ends_at: Timestamp) {
        self.interval_ns = interval_ns;
        self.session_ends_at = Some(session_ends_at);
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

    pub(super) fn test_request_sent(&mut self) {
        self.test_request_sent = true;
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
}

/// What is due.
impl SessionTimers {
    /// Returns the next deadline in a state. During a resend no Heartbeat and no Test Request is
    /// due.
    pub(super) fn next_deadline(
        &self,
        state: FixSessionState,
        has_unsent: bool,
        is_resending: bool,
    ) -> Option<Timestamp> {
        let quiet = !is_resending;
        let deadlines = match state {
            FixSessionState::Disconnected => return None,
            FixSessionState::AwaitingLogon => [Some(self.logon_at()), None, None, None, None, None],
            FixSessionState::LoggedOn => [
                self.test_request_at().filter(|_| quiet),
                self.silence_at(),
                self.heartbeat_at().filter(|_| quiet),
                self.session_ends_at,
                self.frame_at(),
                self.stalled_at(STALLED_NS_MAX, has_unsent),
            ],
            FixSessionState::LoggingOut => {
                let stalled = self.stalled_at(STALLED_NS_MAX, has_unsent);
                [Some(self.logout_until), stalled, None, None, None, None]
            }
            FixSessionState::Closing => {
                [self.stalled_at(CLOSING_NS_MAX, has_unsent), None, None, None, None, None]
            }
        };
        deadlines.into_iter().flatten().min()
    }

    /// Returns the first time limit of a state that has passed.
    pub(super) fn passed(&self, now: Timestamp, state: FixSessionState, has_unsent: bool) -> Option<Timeout> {
        let passed = |at: Option<Timestamp>, timeout| at.filter(|&at| at <= now).map(|_| timeout);
        match state {
            FixSessionState::Disconnected => None,
            FixSessionState::AwaitingLogon => passed(Some(self.logon_at()), Timeout::Logon),
            FixSessionState::LoggedOn => {
                passed(self.stalled_at(STALLED_NS_MAX, has_unsent), Timeout::Stalled)
                    .or_else(|| passed(self.frame_at(), Timeout::Frame))
                    .or_else(|| passed(self.session_ends_at, Timeout::SessionEnd))
                    .or_else(|| passed(self.silence_at(), Timeout::Silence))
            }
            FixSessionState::LoggingOut => passed(Some(self.logout_until), Timeout::Logout),
            FixSessionState::Closing => passed(self.stalled_at(CLOSING_NS_MAX, has_unsent), Timeout::Stalled),
        }
    }

    pub(super) fn is_test_request_due(&self, now: Timestamp) -> bool {
        self.test_request_at().is_some_and(|at| at <= now)
    }

    pub(super) fn is_heartbeat_due(&self, now: Timestamp) -> bool {
        self.heartbeat_at().is_some_and(|at| at <= now)
    }

    fn logon_at(&self) -> Timestamp {
        self.connected_at.plus(LOGON_NS_MAX)
    }

    fn frame_at(&self) -> Option<Timestamp> {
        self.frame_since.map(|since| since.plus(FRAME_NS_MAX))
    }

    fn stalled_at(&self, after_ns: u64, has_unsent: bool) -> Option<Timestamp> {
        self.stalled_since.filter(|_| has_unsent).map(|since| since.plus(after_ns))
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

    /// Returns when a Heartbeat is due. While the client owes an answer to a Test Request none is:
    /// the session ends, or the answer comes.
    fn heartbeat_at(&self) -> Option<Timestamp> {
        let wanted = self.interval_ns > 0 && !self.test_request_sent;
        wanted.then(|| self.sent_at.plus(self.interval_ns))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(s: u64) -> Timestamp {
        Timestamp(s * NS_PER_S)
    }

    fn just_before(s: u64) -> Timestamp {
        Timestamp(at(s).0 - 1)
    }

    /// Returns the timers of a client that connected and logged on at 1,000 s. Its session ends at
    /// 50,000 s.
    fn logged_on(interval_s: u64) -> SessionTimers {
        let mut timers = SessionTimers::default();
        timers.connect(at(1_000));
        timers.log_on(interval_s * NS_PER_S, at(50_000));
        timers
    }

    /// Checks that this deadline is the next, and that nothing has passed before it and this has
    /// passed then.
    fn check(timers: &SessionTimers, state: FixSessionState, has_unsent: bool, at_s: u64, timeout: Timeout) {
        assert_eq!(timers.next_deadline(state, has_unsent, true), Some(at(at_s)), "{timeout:?}");
        assert_eq!(timers.passed(just_before(at_s), state, has_unsent), None, "{timeout:?}");
        assert_eq!(timers.passed(at(at_s), state, has_unsent), Some(timeout));
    }

    #[test]
    fn each_state_has_its_time_limits() {
        use FixSessionState::{AwaitingLogon, Closing, Disconnected, LoggedOn, LoggingOut};
        let mut timers = SessionTimers::default();
        timers.connect(at(1_000));
        timers.received(at(1_003));
        check(&timers, AwaitingLogon, false, 1_005, Timeout::Logon);
        let mut timers = logged_on(0);
        check(&timers, LoggedOn, true, 50_000, Timeout::SessionEnd);
        timers.received(at(1_010));
        timers.wait_for_frame(true);
        timers.received(at(1_015));
        timers.wait_for_frame(true);
        check(&timers, LoggedOn, false, 1_020, Timeout::Frame);
        timers.wait_for_frame(false);
        timers.sent(at(1_020));
        timers.sent(at(1_030));
        check(&timers, LoggedOn, true, 1_050, Timeout::Stalled);
        check(&timers, LoggedOn, false, 50_000, Timeout::SessionEnd);
        timers.transmitted(at(1_040), true);
        check(&timers, LoggedOn, true, 1_070, Timeout::Stalled);
        check(&timers, Closing, true, 1_042, Timeout::Stalled);
        timers.log_out(at(1_050));
        check(&timers, LoggingOut, true, 1_055, Timeout::Logout);
        timers.transmitted(at(1_041), false);
        check(&timers, LoggedOn, true, 50_000, Timeout::SessionEnd);
        assert_eq!(timers.next_deadline(Closing, true, false), None);
        assert_eq!(timers.next_deadline(Disconnected, true, false), None);
        assert_eq!(timers.passed(at(60_000), Disconnected, true), None);
    }

    #[test]
    fn a_heartbeat_is_due_after_one_interval_and_a_test_request_after_1_2() {
        let state = FixSessionState::LoggedOn;
        let mut timers = logged_on(30);
        let next = |timers: &SessionTimers| timers.next_deadline(state, false, false);
        assert_eq!(next(&timers), Some(at(1_030)));
        assert!(!timers.is_heartbeat_due(just_before(1_030)) && timers.is_heartbeat_due(at(1_030)));
        timers.sent(at(1_010));
        assert_eq!(next(&timers), Some(at(1_036)));
        assert!(!timers.is_heartbeat_due(just_before(1_040)) && timers.is_heartbeat_due(at(1_040)));
        assert!(!timers.is_test_request_due(just_before(1_036)) && timers.is_test_request_due(at(1_036)));
        check(&timers, state, false, 1_072, Timeout::Silence);
        // The answer to a Test Request is waited for.
        timers.test_request_sent();
        assert_eq!(next(&timers), Some(at(1_072)));
        assert!(!timers.is_test_request_due(at(1_070)) && !timers.is_heartbeat_due(at(1_070)));
        timers.received(at(1_050));
        assert!(!timers.is_test_request_due(just_before(1_086)) && timers.is_test_request_due(at(1_086)));
        check(&timers, state, false, 1_122, Timeout::Silence);
    }

    #[test]
    fn without_an_interval_silence_is_no_fault() {
        let timers = logged_on(0);
        assert_eq!(timers.next_deadline(FixSessionState::LoggedOn, false, false), Some(at(50_000)));
        assert_eq!(timers.passed(at(49_999), FixSessionState::LoggedOn, false), None);
        assert!(!timers.is_heartbeat_due(at(49_999)) && !timers.is_test_request_due(at(49_999)));
    }

    #[test]
    fn a_connection_that_ends_says_whether_the_client_was_logged_on() {
        let mut timers = logged_on(30);
        timers.wait_for_frame(true);
        timers.sent(at(1_001));
        assert!(timers.disconnect());
        assert!(!timers.disconnect());
        assert_eq!((timers.frame_at(), timers.stalled_at(1, true)), (None, None));
    }
}
