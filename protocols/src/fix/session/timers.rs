//! When a session must do something although nothing comes: heartbeats, test requests, and all patience that ends.

use crate::fix::msg_type;
use crate::fix::tag::prefix;
use pitlane_engine::time::{NS_PER_S, Timestamp};

use super::{DisconnectReason, FixSession, FixSessionState};

/// From the connection to a whole Logon; bytes that trickle in do not prolong it.
pub const LOGON_NS_MAX: u64 = 5 * NS_PER_S;

/// From our Logout to theirs.
pub const LOGOUT_NS_MAX: u64 = 5 * NS_PER_S;

/// From the first byte of a frame to its last.
pub const FRAME_NS_MAX: u64 = 10 * NS_PER_S;

/// Without a byte taken by the client, while there is something to send.
pub const STUCK_NS_MAX: u64 = 30 * NS_PER_S;

/// The same, when the connection is to be closed.
pub const CLOSING_NS_MAX: u64 = 2 * NS_PER_S;

/// Until a gap that was not filled is asked for again.
pub const GAP_NS_MAX: u64 = 30 * NS_PER_S;

#[derive(Clone, Copy, Debug, Default)]
pub struct SessionTimers {
    connected_at: Timestamp,
    /// When the client last sent a byte.
    heard_at: Timestamp,
    /// When we last said something.
    said_at: Timestamp,
    /// HeartBtInt; zero: none.
    interval_ns: u64,
    /// Whether a Test Request was sent since the client was last heard.
    tested: bool,
    logout_until: Timestamp,
    /// Since when a frame is coming.
    frame_since: Option<Timestamp>,
    /// Since when the client has taken nothing.
    stuck_since: Option<Timestamp>,
    /// When the session ends by its schedule.
    session_ends: Option<Timestamp>,
    /// When orders are cancelled because the client is away.
    cancel_at: Option<Timestamp>,
}

impl SessionTimers {
    pub fn connect(&mut self, now: Timestamp) {
        *self = SessionTimers {
            connected_at: now,
            heard_at: now,
            said_at: now,
            cancel_at: self.cancel_at,
            ..SessionTimers::default()
        };
    }

    /// `cancel_at`: when orders are to be cancelled, if somebody was logged on.
    pub fn disconnect(&mut self, cancel_at: Option<Timestamp>) {
        if self.session_ends.is_some() {
            self.cancel_at = cancel_at;
        }
        (self.frame_since, self.stuck_since, self.session_ends) = (None, None, None);
    }

    pub fn log_on(&mut self, interval_ns: u64, session_ends: Timestamp) {
        self.interval_ns = interval_ns;
        self.session_ends = Some(session_ends);
        self.cancel_at = None;
    }

    pub fn log_out(&mut self, now: Timestamp) {
        self.logout_until = now.plus(LOGOUT_NS_MAX);
    }

    pub fn heard(&mut self, now: Timestamp) {
        self.heard_at = now;
        self.tested = false;
    }

    pub fn said(&mut self, now: Timestamp) {
        self.said_at = now;
        self.stuck_since.get_or_insert(now);
    }

    pub fn transmitted(&mut self, now: Timestamp, more: bool) {
        self.stuck_since = more.then_some(now);
    }

    pub fn wait_for_frame(&mut self, coming: bool) {
        match coming {
            true => _ = self.frame_since.get_or_insert(self.heard_at),
            false => self.frame_since = None,
        }
    }

    /// When a Test Request is due: after 1.2 intervals of silence, and not twice.
    fn test_at(&self) -> Option<Timestamp> {
        let wanted = self.interval_ns > 0 && !self.tested;
        wanted.then(|| self.heard_at.plus(self.interval_ns / 5 * 6))
    }

    /// When the silence has lasted too long: 2.4 intervals.
    fn silent_at(&self) -> Option<Timestamp> {
        (self.interval_ns > 0).then(|| self.heard_at.plus(self.interval_ns / 5 * 12))
    }

    fn heartbeat_at(&self) -> Option<Timestamp> {
        (self.interval_ns > 0).then(|| self.said_at.plus(self.interval_ns))
    }
}

impl FixSession {
    /// When [`FixSession::handle_timeout`] must be called at the latest.
    pub fn poll_timeout(&self) -> Option<Timestamp> {
        let timers = &self.timers;
        let stuck = |ns: u64| timers.stuck_since.filter(|_| !self.output.is_empty()).map(|at| at.plus(ns));
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
                timers.test_at().filter(|_| quiet),
                timers.silent_at(),
                timers.heartbeat_at().filter(|_| quiet),
                timers.session_ends,
                timers.frame_since.map(|since| since.plus(FRAME_NS_MAX)),
                stuck(STUCK_NS_MAX),
                self.gap.map(|gap| gap.asked_at.plus(GAP_NS_MAX)),
            ],
            FixSessionState::LoggingOut => {
                [Some(timers.logout_until), stuck(STUCK_NS_MAX), None, None, None, None, None]
            }
            FixSessionState::Closing => [stuck(CLOSING_NS_MAX), None, None, None, None, None, None],
        };
        deadlines.into_iter().flatten().min()
    }

    /// Does what is due by now.
    pub fn handle_timeout(&mut self, now: Timestamp) {
        let is_due = |at: Option<Timestamp>| at.is_some_and(|at| at <= now);
        if matches!(self.state, FixSessionState::Disconnected | FixSessionState::AwaitingLogon)
            && is_due(self.timers.cancel_at)
        {
            self.timers.cancel_at = None;
            self.cancel_round = Some(0);
        }
        match self.state {
            FixSessionState::Disconnected => {}
            FixSessionState::AwaitingLogon => {
                if self.timers.connected_at.plus(LOGON_NS_MAX) <= now {
                    self.end(DisconnectReason::LogonTimeout);
                }
            }
            FixSessionState::LoggedOn => self.handle_logged_on_timeout(now),
            FixSessionState::LoggingOut => {
                if self.timers.logout_until <= now {
                    self.end(DisconnectReason::EndedByUs);
                }
            }
            FixSessionState::Closing => {
                if is_due(self.timers.stuck_since.map(|since| since.plus(CLOSING_NS_MAX))) {
                    self.output.clear();
                }
            }
        }
    }

    fn handle_logged_on_timeout(&mut self, now: Timestamp) {
        let timers = self.timers;
        let is_due = |at: Option<Timestamp>| at.is_some_and(|at| at <= now);
        let stuck = timers.stuck_since.filter(|_| !self.output.is_empty());
        if is_due(stuck.map(|since| since.plus(STUCK_NS_MAX))) {
            self.output.clear();
            return self.end(DisconnectReason::SlowReader);
        }
        if is_due(timers.frame_since.map(|since| since.plus(FRAME_NS_MAX))) {
            return self.end(DisconnectReason::SlowFrame);
        }
        if is_due(timers.session_ends) {
            return self.log_out(now, b"The session is over", DisconnectReason::EndedByUs);
        }
        if is_due(timers.silent_at()) {
            self.resend.stop();
            return self.log_out_and_close(now, b"Heartbeat missed", DisconnectReason::HeartbeatMissed);
        }
        if let Some(gap) = &mut self.gap
            && gap.asked_at.plus(GAP_NS_MAX) <= now
        {
            gap.asked = None;
        }
        if self.resend.is_active() {
            return;
        }
        self.ask_for_gap(now);
        if is_due(timers.test_at()) {
            self.timers.tested = true;
            self.say(now, msg_type::TEST_REQUEST, |draft| draft.time(prefix::TEST_REQ_ID, now));
        } else if is_due(timers.heartbeat_at()) {
            self.say(now, msg_type::HEARTBEAT, |_| {});
        }
    }
}
