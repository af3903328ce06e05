//! Log lines about failed logins. The line with login and address goes to the log only (target
//! [`LOGINS`]); subscribers of `log-event.warn` receive only the number of failed logins. Both are
//! rate-limited, since unauthenticated clients cause them.

use std::net::IpAddr;

use pitlane_engine::time::{NS_PER_S, Timestamp};
use pitlane_runtime::log::{LOGINS, LineLimit};

/// Interval of the lines for all subscribers.
const REPORT_NS: u64 = 60 * NS_PER_S;

#[derive(Debug, Default)]
pub(crate) struct Notices {
    lines: LineLimit,
    /// Failures that led to a wait and are not reported yet; `reported_at` is the time of the last
    /// report.
    unreported: u64,
    reported_at: Timestamp,
}

impl Notices {
    /// Counts a wrong password after which the next attempt has to wait for `wait_s`.
    pub(crate) fn failed(&mut self, now: Timestamp, login: Option<&str>, peer: IpAddr, wait_s: Option<u32>) {
        let Some(wait_s) = wait_s else { return };
        self.unreported += 1;
        if let Some(left_out) = self.lines.take(now) {
            tracing::warn!(target: LOGINS, login, %peer, wait_s, left_out, "a login is slowed down: too many wrong passwords");
        }
        self.poll(now);
    }

    pub(crate) fn poll(&mut self, now: Timestamp) {
        if let Some(left_out) = self.lines.overdue(now) {
            tracing::warn!(target: LOGINS, left_out, "logins were slowed down: too many wrong passwords");
        }
        if self.unreported > 0 && now.since(self.reported_at) >= REPORT_NS {
            tracing::warn!(
                failures = self.unreported,
                "logins fail: too many wrong passwords; the log names them"
            );
            (self.unreported, self.reported_at) = (0, now);
        }
    }
}
