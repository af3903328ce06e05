//! Log lines about alerts of the shards.

use pitlane_engine::event::Alert;
use pitlane_engine::id::SecurityId;
use pitlane_engine::reason::Reason;
use pitlane_engine::time::{NS_PER_S, Timestamp};
use pitlane_protocols::codes::WireName;

/// Log lines about alerts in one second. A venue that resets its numbers puts every open order in
/// doubt at once, and the log must not delay the reader of the events; the list has all of them.
const LINES_PER_SECOND_MAX: u32 = 20;

/// Writes alerts into the log, a bounded number in each second.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct AlertLog {
    second: u64,
    lines: u32,
}

impl AlertLog {
    pub(crate) fn write(&mut self, at: Timestamp, alert: Alert, security: SecurityId, reason: Reason) {
        let second = at.0 / NS_PER_S;
        if second != self.second {
            *self = AlertLog { second, lines: 0 };
        }
        if self.lines < LINES_PER_SECOND_MAX {
            let (alert, security, reason) = (alert.wire_name(), security.0, reason.code());
            tracing::warn!(alert, security, reason, "alert; GET /rest/ext/alert has its order");
        } else if self.lines == LINES_PER_SECOND_MAX {
            tracing::warn!("further alerts in this second; GET /rest/ext/alert lists the newest");
        }
        self.lines = self.lines.saturating_add(1);
    }
}
