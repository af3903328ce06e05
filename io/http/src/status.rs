//! State of the service, for `/health/ready`: written by main and the journal, read here.

use std::net::SocketAddr;
use std::sync::atomic::{AtomicU8, Ordering};
use std::sync::{Arc, OnceLock};

use pitlane_cluster::standby::state::StandbyState;
use pitlane_config::Durability;
use pitlane_engine::time::Timestamp;
use pitlane_net::listener::BoundAddress;

#[derive(Debug)]
pub struct ServiceStatus {
    phase: AtomicU8,
    journaling: AtomicU8,
    durability: Durability,
    started: Timestamp,
    /// Listeners of all threads; set once, when all are bound.
    listeners: OnceLock<Vec<BoundAddress>>,
    /// Names and numbers of the formats on disk, for `/version`.
    formats: Vec<(&'static str, u32)>,
    /// State of the standby group, where there is one.
    standby: OnceLock<Arc<StandbyState>>,
}

/// Phase of the service as a whole.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ServicePhase {
    Starting,
    Running,
    Stopping,
}

impl ServicePhase {
    const ALL: [ServicePhase; 3] = [ServicePhase::Starting, ServicePhase::Running, ServicePhase::Stopping];

    pub fn name(self) -> &'static str {
        match self {
            ServicePhase::Starting => "STARTING",
            ServicePhase::Running => "RUNNING",
            ServicePhase::Stopping => "STOPPING",
        }
    }
}

/// Whether the journal keeps what it promises.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Journaling {
    Sound,
    /// The disk is full: only cancels are accepted, while the reserve lasts.
    Full,
    /// A write or sync failed: nothing more is accepted.
    Failed,
}

impl Journaling {
    const ALL: [Journaling; 3] = [Journaling::Sound, Journaling::Full, Journaling::Failed];

    pub fn name(self) -> &'static str {
        match self {
            Journaling::Sound => "SOUND",
            Journaling::Full => "FULL",
            Journaling::Failed => "FAILED",
        }
    }
}

impl ServiceStatus {
    pub fn new(
        started: Timestamp,
        durability: Durability,
        formats: Vec<(&'static str, u32)>,
    ) -> ServiceStatus {
        ServiceStatus {
            phase: AtomicU8::new(ServicePhase::Starting as u8),
            journaling: AtomicU8::new(Journaling::Sound as u8),
            durability,
            started,
            listeners: OnceLock::new(),
            formats,
            standby: OnceLock::new(),
        }
    }

    pub fn phase(&self) -> ServicePhase {
        ServicePhase::ALL[self.phase.load(Ordering::Relaxed) as usize]
    }

    pub fn set_phase(&self, phase: ServicePhase) {
        self.phase.store(phase as u8, Ordering::Relaxed);
    }

    pub fn journaling(&self) -> Journaling {
        Journaling::ALL[self.journaling.load(Ordering::Relaxed) as usize]
    }

    pub fn set_journaling(&self, journaling: Journaling) {
        self.journaling.store(journaling as u8, Ordering::Relaxed);
    }

    pub fn durability(&self) -> Durability {
        self.durability
    }

    pub fn started(&self) -> Timestamp {
        self.started
    }

    /// Sets every listener of the process. Only the first call counts.
    pub fn set_listeners(&self, listeners: Vec<BoundAddress>) {
        let _ = self.listeners.set(listeners);
    }

    pub fn listeners(&self) -> &[BoundAddress] {
        self.listeners.get().map_or(&[], Vec::as_slice)
    }

    /// Returns the address of a listener by its name.
    pub fn listener(&self, name: &str) -> Option<SocketAddr> {
        self.listeners().iter().find(|listener| listener.name == name).map(|listener| listener.address)
    }

    /// Sets the state of the server in its standby group. Only the first call counts.
    pub fn set_standby(&self, state: Arc<StandbyState>) {
        let _ = self.standby.set(state);
    }

    /// Returns the state in the standby group; `None` where there is no group.
    pub fn standby(&self) -> Option<&StandbyState> {
        self.standby.get().map(Arc::as_ref)
    }

    pub fn formats(&self) -> &[(&'static str, u32)] {
        &self.formats
    }
}
