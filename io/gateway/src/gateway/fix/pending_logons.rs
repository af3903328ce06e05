//! Connections that are not logged on yet: few, for a short time, with few bytes. They use nothing
//! of a session: no number, no store, no slot.
//!
//! Each address has a share. When the table is full, the oldest connection without a complete Logon
//! is evicted, of the address that has most of them.
//!
//! Rules: docs/fix-rules.md#admission.

use std::collections::BTreeMap;
use std::net::IpAddr;

use pitlane_auth::network;
use pitlane_engine::slot_table::SlotTable;
use pitlane_net::ConnectionId;
use pitlane_protocols::decoded::Decoded;
use pitlane_protocols::fix::logon_probe::identify;

use crate::fix::settings::{ConnectionEnds, FixSettings};

/// Maximum number of connections that are not logged on. A regular client logs on within moments.
const PENDING_MAX: usize = 1_024;
/// Maximum per address (or /64 network): four of them fill the table together.
const PER_ADDRESS_MAX: usize = PENDING_MAX / 4;

#[derive(Debug, Default)]
pub(super) struct PendingLogons {
    pending: SlotTable<ConnectionId, PendingConnection>,
    /// Connections without a complete Logon, in the order of arrival; by arrival number.
    incomplete: BTreeMap<u64, ConnectionId>,
    /// Connections whose password is being verified; by arrival number, which is the ticket.
    verifying: BTreeMap<u64, ConnectionId>,
    by_address: BTreeMap<IpAddr, usize>,
    arrivals: u64,
    /// Number of connections that were closed without a logon.
    pub refused: u64,
}

#[derive(Clone, Debug)]
struct PendingConnection {
    arrival: ConnectionEnds,
    number: u64,
    verifying: Option<PendingLogin>,
}

/// The session and credentials that a question is about.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct PendingLogin {
    /// Name of the session.
    pub name: String,
    /// Generation of the credentials at the time of the question.
    pub generation: u64,
}

/// The table is full, and no connection can be evicted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct PendingLogonsFull;

impl PendingLogons {
    /// Adds a connection. Returns a connection that is evicted for it and has to be closed.
    pub(super) fn enter(
        &mut self,
        id: ConnectionId,
        arrival: ConnectionEnds,
    ) -> Result<Option<ConnectionId>, PendingLogonsFull> {
        let address = network(arrival.peer);
        let evicted = if self.count(address) >= PER_ADDRESS_MAX {
            Some(self.oldest_incomplete(address).ok_or(PendingLogonsFull)?)
        } else if self.pending.len() >= PENDING_MAX {
            let most = self.by_address.iter().max_by_key(|(_, count)| **count).map(|(address, _)| *address);
            Some(most.and_then(|most| self.oldest_incomplete(most)).ok_or(PendingLogonsFull)?)
        } else {
            None
        };
        evicted.map(|evicted| self.leave(evicted));
        self.arrivals += 1;
        self.pending.insert(id, PendingConnection { arrival, number: self.arrivals, verifying: None });
        self.incomplete.insert(self.arrivals, id);
        *self.by_address.entry(address).or_default() += 1;
        Ok(evicted)
    }

    pub(super) fn has(&self, id: ConnectionId) -> bool {
        self.pending.get(id).is_some()
    }

    /// Returns the address of a connection that has not sent a complete Logon.
    pub(super) fn incomplete(&self, id: ConnectionId) -> Option<ConnectionEnds> {
        self.pending.get(id).filter(|pending| pending.verifying.is_none()).map(|pending| pending.arrival)
    }

    /// Records the question about a connection. Returns the ticket of the question.
    pub(super) fn start_verification(&mut self, id: ConnectionId, verifying: PendingLogin) -> Option<u64> {
        let pending = self.pending.get_mut(id)?;
        pending.verifying = Some(verifying);
        self.incomplete.remove(&pending.number);
        self.verifying.insert(pending.number, id);
        Some(pending.number)
    }

    /// Returns the connection of a ticket and its question; `None` if the connection is gone.
    pub(super) fn answered(&self, ticket: u64) -> Option<(ConnectionId, ConnectionEnds, PendingLogin)> {
        let id = *self.verifying.get(&ticket)?;
        let pending = self.pending.get(id)?;
        Some((id, pending.arrival, pending.verifying.clone()?))
    }

    pub(super) fn leave(&mut self, id: ConnectionId) -> Option<ConnectionEnds> {
        let PendingConnection { arrival, number, .. } = self.pending.remove(id)?;
        self.incomplete.remove(&number);
        self.verifying.remove(&number);
        let address = network(arrival.peer);
        if let Some(count) = self.by_address.get_mut(&address) {
            *count -= 1;
            if *count == 0 {
                self.by_address.remove(&address);
            }
        }
        Some(arrival)
    }

    pub(super) fn is_empty(&self) -> bool {
        self.pending.is_empty()
    }

    pub(super) fn drain(&mut self) -> Vec<ConnectionId> {
        let all = self.pending.keys();
        all.iter().for_each(|id| _ = self.leave(*id));
        all
    }

    fn count(&self, address: IpAddr) -> usize {
        self.by_address.get(&address).copied().unwrap_or(0)
    }

    fn oldest_incomplete(&self, address: IpAddr) -> Option<ConnectionId> {
        let is_of = |id: &&ConnectionId| {
            self.pending.get(**id).is_some_and(|pending| network(pending.arrival.peer) == address)
        };
        self.incomplete.values().find(is_of).copied()
    }
}

/// Where a connection belongs.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum LogonRoute {
    /// There is no complete message yet.
    Incomplete,
    /// To the session of this name.
    Session(String),
    /// Not a client of ours: closed without an answer.
    Reject,
}

pub(super) fn route(settings: &FixSettings, arrival: ConnectionEnds, bytes: &[u8]) -> LogonRoute {
    let logon = match identify(bytes) {
        Ok(Decoded::Message { message, .. }) => message,
        Ok(Decoded::Incomplete) if bytes.len() <= settings.logon_bytes_max => return LogonRoute::Incomplete,
        Ok(Decoded::Incomplete) | Err(_) => return LogonRoute::Reject,
    };
    let name = settings.family(logon.sender_comp_id, logon.target_comp_id).and_then(|family| {
        let client = std::str::from_utf8(logon.sender_comp_id).ok()?;
        let is_version = family.version().begin_string().as_bytes() == logon.begin_string;
        family.name(client).filter(|_| is_version && family.admits(arrival))
    });
    name.map_or(LogonRoute::Reject, LogonRoute::Session)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn arrival(address: u8) -> ConnectionEnds {
        ConnectionEnds { peer: IpAddr::from([10, 0, 0, address]), port: 1 }
    }

    /// Fills the share of one address, whose connections have the slots from `first` on.
    fn fill(pending_logons: &mut PendingLogons, address: u8, first: usize) {
        for slot in first..first + PER_ADDRESS_MAX {
            assert_eq!(pending_logons.enter(ConnectionId::of_slot(slot), arrival(address)), Ok(None));
        }
    }

    #[test]
    fn at_the_limit_of_an_address_its_oldest_silent_connection_is_evicted() {
        let mut pending_logons = PendingLogons::default();
        fill(&mut pending_logons, 1, 0);
        let verifying = PendingLogin { name: "PITLANE-A".to_string(), generation: 0 };
        let ticket = pending_logons.start_verification(ConnectionId::of_slot(0), verifying.clone()).unwrap();
        // The first has sent its Logon and stays.
        let next = ConnectionId::of_slot(5_000);
        assert_eq!(pending_logons.enter(next, arrival(1)), Ok(Some(ConnectionId::of_slot(1))));
        assert!(pending_logons.has(next) && !pending_logons.has(ConnectionId::of_slot(1)));
        assert_eq!(
            pending_logons.answered(ticket).map(|(id, _, login)| (id, login)),
            Some((ConnectionId::of_slot(0), verifying))
        );
        assert!(
            pending_logons.incomplete(ConnectionId::of_slot(0)).is_none()
                && pending_logons.incomplete(next).is_some()
        );
        pending_logons.leave(ConnectionId::of_slot(0));
        assert!(pending_logons.answered(ticket).is_none());
    }

    #[test]
    fn in_a_full_table_the_address_with_most_connections_loses_one() {
        let mut pending_logons = PendingLogons::default();
        (0..4).for_each(|address| fill(&mut pending_logons, address, address as usize * PER_ADDRESS_MAX));
        assert_eq!(pending_logons.pending.len(), PENDING_MAX);
        let (first, second) = (ConnectionId::of_slot(5_000), ConnectionId::of_slot(5_001));
        assert!(pending_logons.enter(first, arrival(9)).is_ok_and(|evicted| evicted.is_some()));
        assert!(pending_logons.enter(second, arrival(9)).is_ok_and(|evicted| evicted.is_some()));
        assert!(pending_logons.has(first) && pending_logons.pending.len() == PENDING_MAX);
        assert_eq!(pending_logons.drain().len(), PENDING_MAX);
        assert!(
            pending_logons.is_empty()
                && pending_logons.by_address.is_empty()
                && pending_logons.incomplete.is_empty()
        );
    }

    #[test]
    fn an_address_with_only_awaited_verdicts_accepts_no_more() {
        let mut pending_logons = PendingLogons::default();
        fill(&mut pending_logons, 1, 0);
        for slot in 0..PER_ADDRESS_MAX {
            pending_logons
                .start_verification(
                    ConnectionId::of_slot(slot),
                    PendingLogin { name: String::new(), generation: 0 },
                )
                .unwrap();
        }
        assert_eq!(pending_logons.enter(ConnectionId::of_slot(5_000), arrival(1)), Err(PendingLogonsFull));
        assert_eq!(pending_logons.enter(ConnectionId::of_slot(5_000), arrival(2)), Ok(None));
    }
}
