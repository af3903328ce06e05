//! What a gateway tells other threads of its sessions, and receives from them.

use std::sync::Arc;

use pitlane_engine::time::{NS_PER_S, Timestamp};

use super::Gateway;
use super::stomp::StompEndpoint;
use crate::EVENTS_PER_POLL_MAX;
use crate::notifications::{Notification, SessionInfo, SessionList};

/// Interval of the session list.
const SESSION_LIST_NS: u64 = NS_PER_S;

impl Gateway {
    /// Handles the notifications of other threads, up to a bound.
    pub(super) fn poll_notifications(&mut self, now: Timestamp) -> usize {
        let Some(notifications) = &mut self.notifications else { return 0 };
        let mut read = 0;
        while read < EVENTS_PER_POLL_MAX {
            let Some(notification) = notifications.poll() else { break };
            read += 1;
            if let Some(stomp) = &mut self.stomp {
                stomp.handle_notification(now, &notification);
            }
            if let Some(fix) = &mut self.fix {
                fix.handle_notification(now, &notification);
            }
            if let Some(venue) = &mut self.venue {
                venue.handle_notification(now, &notification);
            }
            if let Some(runner) = &mut self.runner {
                runner.handle_notification(now, &notification);
            }
        }
        read
    }

    /// Publishes the list of sessions, if there are any.
    pub(super) fn publish_sessions(&mut self, now: Timestamp) {
        if now < self.session_list_at || self.notifications.is_none() {
            return;
        }
        self.session_list_at = now.plus(SESSION_LIST_NS);
        if self.connected > 0 || self.had_sessions {
            let rows: Arc<[SessionInfo]> = self.rows(now).collect();
            self.had_sessions = !rows.is_empty();
            let closed_slow = self.stomp.as_ref().map_or(0, StompEndpoint::closed_slow);
            if let Some(notifications) = &mut self.notifications {
                notifications.send(Notification::Sessions(SessionList { rows, closed_slow }));
            }
        }
    }

    /// Returns all sessions of this gateway.
    pub fn rows(&self, now: Timestamp) -> impl Iterator<Item = SessionInfo> {
        let fix = self.fix.iter().flat_map(|fix| fix.rows());
        let venue = self.venue.iter().flat_map(move |venue| venue.rows(now));
        self.stomp.iter().flat_map(StompEndpoint::rows).chain(fix).chain(venue)
    }
}
