//! What is logged of failed logins. The line with login and address goes to the log alone (target [`LOGINS`]); all who read
//! `log-event.warn` are told how many logins failed, and no more. Both are limited in number, since strangers cause them.

use std::net::IpAddr;

use pitlane_engine::time::{NS_PER_S, Timestamp};

use crate::log::{LOGINS, LineLimit};

/// How often all readers are told.
const TELL_NS: u64 = 60 * NS_PER_S;

#[derive(Debug, Default)]
pub struct Notices {
    lines: LineLimit,
    /// Failures that led to a wait and were not told yet, since when, and when was told last.
    untold: u64,
    told: Timestamp,
}

impl Notices {
    /// A password was wrong; the next one of the same kind has to wait for so long.
    pub fn failed(&mut self, now: Timestamp, login: Option<&str>, peer: IpAddr, wait_s: Option<u32>) {
        let Some(wait_s) = wait_s else { return };
        self.untold += 1;
        if let Some(left_out) = self.lines.take(now) {
            tracing::warn!(target: LOGINS, login, %peer, wait_s, left_out, "a login is slowed down: too many wrong passwords");
        }
        self.poll(now);
    }

    pub fn poll(&mut self, now: Timestamp) {
        if let Some(left_out) = self.lines.overdue(now) {
            tracing::warn!(target: LOGINS, left_out, "logins were slowed down: too many wrong passwords");
        }
        if self.untold > 0 && now.since(self.told) >= TELL_NS {
            tracing::warn!(
                failures = self.untold,
                "logins fail: too many wrong passwords; the log names them"
            );
            (self.untold, self.told) = (0, now);
        }
    }
}
