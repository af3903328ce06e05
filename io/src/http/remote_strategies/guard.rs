//! Records permissions at the broker that others have and should not, and permissions that this
//! server lacks, for the log, metrics and health.

use std::cell::{Cell, RefCell};
use std::collections::BTreeSet;
use std::sync::Arc;

use async_nats::Subject;
use pitlane_engine::time::{NS_PER_S, Timestamp};

use super::{RemoteStrategies, count};
use crate::nats::link::BrokerHealth;
use crate::nats::subjects::segment;

/// Interval between two log lines about refused letters: a strategy can send many.
const TELL_INTERVAL_NS: u64 = 60 * NS_PER_S;

#[derive(Debug, Default)]
pub struct Guard {
    /// The connection to the broker, which knows the permissions that this server lacks.
    weather: RefCell<Option<Arc<BrokerHealth>>>,
    /// Logins with more permissions than they need: strategies, or all servers.
    wide: RefCell<BTreeSet<String>>,
    astray_told: Cell<Timestamp>,
}

impl RemoteStrategies {
    /// Returns the names of the configured strategies.
    pub fn names(&self) -> Vec<Arc<str>> {
        self.inner.borrow().seats.iter().map(|seat| seat.name.clone()).collect()
    }

    /// Returns whether a segment of a subject is the name of a configured strategy.
    pub fn has_segment(&self, found: &str) -> bool {
        self.inner.borrow().seats.iter().any(|seat| segment(&seat.name) == found)
    }

    /// Records a letter whose reply subject is not in the inbox of its strategy. The letter is
    /// discarded, and no reply is sent.
    pub fn note_astray(&self, now: Timestamp, strategy: &str, reply: Option<&Subject>) {
        count(&self.counts.astray);
        let told = self.guard.astray_told.get();
        if told > Timestamp::ZERO && now.since(told) < TELL_INTERVAL_NS {
            return;
        }
        self.guard.astray_told.set(now);
        let reply: String = reply.map_or("", |reply| reply.as_str()).chars().take(256).collect();
        tracing::error!(
            strategy,
            reply = %reply.escape_debug(),
            refused = self.counts.astray.get(),
            "a message asks for its answer outside of the inbox of its strategy: it is refused"
        );
    }

    /// Records a login that may publish where no strategy should. `asks`: the broker requires
    /// logins, so they were meant to be restricted.
    pub fn note_wide_login(&self, who: &str, asks: bool) {
        if !self.guard.wide.borrow_mut().insert(who.to_string()) {
            return;
        }
        let mend =
            "config/nats/pitlane.conf gives each login its own subjects, and servers an account of their own";
        if asks || !self.nats.is_loopback() {
            tracing::warn!(who, mend, "the broker lets this login publish on subjects of the server");
        } else {
            tracing::info!(who, mend, "the broker lets everybody publish on subjects of the server");
        }
    }

    pub fn watch_rights(&self, weather: &Arc<BrokerHealth>) {
        *self.guard.weather.borrow_mut() = Some(weather.clone());
    }

    /// Returns the permissions that this server lacks, in the words of the broker.
    pub fn violations(&self) -> Vec<String> {
        self.guard.weather.borrow().as_ref().map_or(Vec::new(), |weather| weather.violations())
    }

    pub fn wide_logins(&self) -> Vec<String> {
        self.guard.wide.borrow().iter().cloned().collect()
    }
}
