//! The signs of life that the service manager expects. Main sends one only if every thread has
//! completed a cycle since the last: a thread that hangs makes the manager restart the service.

use std::sync::Arc;
use std::time::Duration;

use pitlane_http::Remote;
use pitlane_runtime::lifecycle::{Lifecycle, LifecyclePhase};
use pitlane_runtime::service_manager::ServiceManager;

#[derive(Debug, Default)]
pub(super) struct Watchdog {
    manager: ServiceManager,
    /// None before the start.
    lifecycle: Option<Arc<Lifecycle>>,
    /// Signs of life of the http thread at the last check.
    http_signs: u64,
}

impl Watchdog {
    pub(super) fn new(manager: ServiceManager, lifecycle: Arc<Lifecycle>) -> Watchdog {
        Watchdog { manager, lifecycle: Some(lifecycle), http_signs: 0 }
    }

    /// Reports that the service is ready, and begins to check the threads.
    pub(super) fn open(&mut self, ready_line: &str) {
        self.manager.ready(ready_line);
        if let Some(lifecycle) = &self.lifecycle {
            lifecycle.begin_liveness_check();
        }
    }

    pub(super) fn stop(&mut self) {
        self.manager.stopping();
    }

    /// Returns the interval at which [`Watchdog::poll`] should be called.
    pub(super) fn interval(&self) -> Option<Duration> {
        self.manager.ping_interval()
    }

    /// Sends a sign of life if it is due and all `threads` are alive; the http thread is one of
    /// them. While the service starts and stops, main's own life is enough.
    pub(super) fn poll(&mut self, threads: u32, remote: &Remote) {
        if !self.manager.is_ping_due() {
            return;
        }
        let Some(lifecycle) = &self.lifecycle else { return };
        if lifecycle.phase() != LifecyclePhase::Open {
            return self.manager.ping();
        }
        let http_signs = remote.signs_of_life();
        let answers = lifecycle.liveness_answers() + u32::from(http_signs != self.http_signs);
        if answers < threads {
            return;
        }
        self.http_signs = http_signs;
        lifecycle.begin_liveness_check();
        self.manager.ping();
    }
}
