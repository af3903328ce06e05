//! Properties of a connection that the checks and handlers of its requests read: its addresses,
//! its slot among all connections, and its progress.

use std::cell::RefCell;
use std::net::SocketAddr;
use std::sync::Arc;

use tokio::time::Instant;

use super::admission::ConnectionSlot;
use super::connection_progress::ConnectionProgress;

/// Properties of a connection while it lasts.
#[derive(Debug)]
pub(crate) struct ConnectionInfo {
    pub local: SocketAddr,
    pub peer: SocketAddr,
    /// Whether it is encrypted.
    pub tls: bool,
    pub progress: Arc<ConnectionProgress>,
    slot: RefCell<Option<ConnectionSlot>>,
    /// The Host that was last accepted as ours; empty if there was none yet.
    host: RefCell<Vec<u8>>,
}

impl ConnectionInfo {
    pub(crate) fn new(
        local: SocketAddr,
        peer: SocketAddr,
        tls: bool,
        slot: ConnectionSlot,
    ) -> ConnectionInfo {
        ConnectionInfo {
            local,
            peer,
            tls,
            progress: Arc::new(ConnectionProgress::new()),
            slot: RefCell::new(Some(slot)),
            host: RefCell::default(),
        }
    }

    /// Returns whether a Host is the one that was last accepted as ours.
    pub(crate) fn is_same_host(&self, host: &[u8]) -> bool {
        !host.is_empty() && *self.host.borrow() == host
    }

    /// Stores a Host that is ours. Host names have at most 253 octets, and a head has its limit
    /// anyway.
    pub(crate) fn set_known_host(&self, host: &[u8]) {
        let mut known = self.host.borrow_mut();
        known.clear();
        known.extend_from_slice(host);
    }

    /// Takes the connection's slot, for the task that serves it when it is no longer HTTP.
    pub(crate) fn take_slot(&self) -> Option<ConnectionSlot> {
        let slot = self.slot.take();
        slot.iter().for_each(ConnectionSlot::set_upgraded);
        slot
    }

    /// Records that a valid login came with a request.
    pub(crate) fn set_known(&self) {
        self.slot.borrow().iter().for_each(ConnectionSlot::set_known);
    }

    /// Returns whether only the reserve was left for the connection and it has not sent a login.
    pub(crate) fn is_on_probation(&self) -> bool {
        self.slot.borrow().as_ref().is_some_and(ConnectionSlot::is_on_probation)
    }

    /// Returns whether a client of its network has logged in before.
    pub(crate) fn is_from_known_network(&self) -> bool {
        self.slot.borrow().as_ref().is_some_and(ConnectionSlot::is_from_known_network)
    }

    pub(crate) fn set_resting(&self, since: Option<Instant>) {
        self.slot.borrow().iter().for_each(|slot| slot.set_resting(since));
    }
}
