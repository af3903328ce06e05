//! Records permissions at the broker that others have and should not, and permissions that this
//! server lacks, for the log, metrics and health.

use std::cell::{Cell, RefCell};
use std::collections::BTreeSet;
use std::sync::Arc;

use async_nats::Subject;
use pitlane_cluster::nats::link::BrokerHealth;
use pitlane_cluster::nats::subjects::segment;
use pitlane_engine::time::{NS_PER_S, Timestamp};

use super::{RemoteStrategies, count};

/// Interval between two log lines about refused requests: a strategy can send many.
const LOG_INTERVAL_NS: u64 = 60 * NS_PER_S;

#[derive(Debug, Default)]
pub(super) struct PermissionLog {
    /// The connection to the broker, which knows the permissions that this server lacks.
    broker_health: RefCell<Option<Arc<BrokerHealth>>>,
    /// Logins with more permissions than they need: strategies, or all servers.
    wide: RefCell<BTreeSet<String>>,
    misrouted_logged_at: Cell<Timestamp>,
}

impl RemoteStrategies {
    /// Returns the names of the configured strategies.
    pub(crate) fn names(&self) -> Vec<Arc<str>> {
        self.inner.borrow().slots.iter().map(|slot| slot.name.clone()).collect()
    }

    /// Returns whether a segment of a subject is the name of a configured strategy.
    pub(crate) fn has_segment(&self, subject_segment: &str) -> bool {
        self.inner.borrow().slots.iter().any(|slot| segment(&slot.name) == subject_segment)
    }

    /// Records a request whose reply subject is not in the inbox of its strategy. The request is
    /// discarded, and no reply is sent.
    pub(crate) fn record_misrouted(&self, now: Timestamp, strategy: &str, reply: Option<&Subject>) {
        count(&self.counts.misrouted);
        let logged_at = self.permissions.misrouted_logged_at.get();
        if logged_at > Timestamp::ZERO && now.since(logged_at) < LOG_INTERVAL_NS {
            return;
        }
        self.permissions.misrouted_logged_at.set(now);
        let reply: String = reply.map_or("", |reply| reply.as_str()).chars().take(256).collect();
        tracing::error!(
            strategy,
            reply = %reply.escape_debug(),
            refused = self.counts.misrouted.get(),
            "a message has a reply subject outside of the inbox of its strategy: it is refused"
        );
    }

    /// Records a login that may publish where no strategy should. `requires_login`: the broker
    /// requires logins, so they were meant to be restricted.
    pub(crate) fn record_wide_login(&self, login: &str, requires_login: bool) {
        if !self.permissions.wide.borrow_mut().insert(login.to_string()) {
            return;
        }
        let hint =
            "config/nats/pitlane.conf gives each login its own subjects, and servers an account of their own";
        if requires_login || !self.nats.is_loopback() {
            tracing::warn!(login, hint, "the broker lets this login publish on subjects of the server");
        } else {
            tracing::info!(login, hint, "the broker lets every client publish on subjects of the server");
        }
    }

    pub(crate) fn set_broker_health(&self, broker_health: &Arc<BrokerHealth>) {
        *self.permissions.broker_health.borrow_mut() = Some(broker_health.clone());
    }

    /// Returns the permissions that this server lacks, as the broker reports them.
    pub(crate) fn violations(&self) -> Vec<String> {
        self.permissions
            .broker_health
            .borrow()
            .as_ref()
            .map_or(Vec::new(), |broker_health| broker_health.violations())
    }

    pub(crate) fn wide_logins(&self) -> Vec<String> {
        self.permissions.wide.borrow().iter().cloned().collect()
    }
}
