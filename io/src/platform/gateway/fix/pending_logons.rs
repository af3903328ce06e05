//! Connections that are not logged on yet: few, for a short time, with few bytes. They use nothing
//! of a session: no number, no store, no slot.
//!
//! Each address has a share. When the table is full, the oldest connection without a complete Logon
//! is evicted, of the address that has most of them.

use std::collections::BTreeMap;
use std::net::IpAddr;

use pitlane_protocols::decoded::Decoded;
use pitlane_protocols::fix::logon_probe::identify;

use crate::auth::network;
use crate::fix::settings::{ConnectionEnds, FixSettings};
use crate::net::ConnectionId;

/// Maximum number of connections that are not logged on. A regular client logs on within moments.
const LOBBY_MAX: usize = 1_024;
/// Maximum per address (or /64 network): four of them fill the table together.
const PER_ADDRESS_MAX: usize = LOBBY_MAX / 4;

#[derive(Debug, Default)]
pub struct PendingLogons {
    /// By slot of the connection.
    seats: Vec<Option<PendingConnection>>,
    /// Connections without a complete Logon, in the order of arrival; by arrival number.
    silent: BTreeMap<u64, ConnectionId>,
    /// Connections whose password is being verified; by arrival number, which is the ticket.
    asked: BTreeMap<u64, ConnectionId>,
    by_address: BTreeMap<IpAddr, usize>,
    arrivals: u64,
    len: usize,
    /// Number of connections that were closed without a logon.
    pub refused: u64,
}

#[derive(Clone, Debug)]
struct PendingConnection {
    id: ConnectionId,
    arrival: ConnectionEnds,
    number: u64,
    asked: Option<PendingLogin>,
}

/// The session and credentials that a question is about.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PendingLogin {
    /// Name of the session.
    pub name: String,
    /// Generation of the credentials at the time of the question.
    pub generation: u64,
}

/// The table is full, and no connection can be evicted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PendingLogonsFull;

impl PendingLogons {
    /// Adds a connection. Returns a connection that is evicted for it and has to be closed.
    pub fn enter(
        &mut self,
        id: ConnectionId,
        arrival: ConnectionEnds,
    ) -> Result<Option<ConnectionId>, PendingLogonsFull> {
        let address = network(arrival.peer);
        let evicted = if self.count(address) >= PER_ADDRESS_MAX {
            Some(self.oldest_silent(address).ok_or(PendingLogonsFull)?)
        } else if self.len >= LOBBY_MAX {
            let most = self.by_address.iter().max_by_key(|(_, count)| **count).map(|(address, _)| *address);
            Some(most.and_then(|most| self.oldest_silent(most)).ok_or(PendingLogonsFull)?)
        } else {
            None
        };
        evicted.map(|evicted| self.leave(evicted));
        if self.seats.len() <= id.slot() {
            self.seats.resize(id.slot() + 1, None);
        }
        self.arrivals += 1;
        self.seats[id.slot()] = Some(PendingConnection { id, arrival, number: self.arrivals, asked: None });
        self.silent.insert(self.arrivals, id);
        *self.by_address.entry(address).or_default() += 1;
        self.len += 1;
        Ok(evicted)
    }

    pub fn has(&self, id: ConnectionId) -> bool {
        self.pending(id).is_some()
    }

    /// Returns the address of a connection that has not sent a complete Logon.
    pub fn silent(&self, id: ConnectionId) -> Option<ConnectionEnds> {
        self.pending(id).filter(|pending| pending.asked.is_none()).map(|pending| pending.arrival)
    }

    /// Records the question about a connection. Returns the ticket of the question.
    pub fn ask(&mut self, id: ConnectionId, asked: PendingLogin) -> Option<u64> {
        let pending = self.seats.get_mut(id.slot())?.as_mut().filter(|pending| pending.id == id)?;
        pending.asked = Some(asked);
        self.silent.remove(&pending.number);
        self.asked.insert(pending.number, id);
        Some(pending.number)
    }

    /// Returns the connection of a ticket and its question; `None` if the connection is gone.
    pub fn answered(&self, ticket: u64) -> Option<(ConnectionId, ConnectionEnds, PendingLogin)> {
        let pending = self.pending(*self.asked.get(&ticket)?)?;
        Some((pending.id, pending.arrival, pending.asked.clone()?))
    }

    pub fn leave(&mut self, id: ConnectionId) -> Option<ConnectionEnds> {
        let PendingConnection { arrival, number, .. } = self.pending(id)?.clone();
        self.seats[id.slot()] = None;
        self.silent.remove(&number);
        self.asked.remove(&number);
        let address = network(arrival.peer);
        if let Some(count) = self.by_address.get_mut(&address) {
            *count -= 1;
            if *count == 0 {
                self.by_address.remove(&address);
            }
        }
        self.len -= 1;
        Some(arrival)
    }

    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    pub fn drain(&mut self) -> Vec<ConnectionId> {
        let all: Vec<ConnectionId> = self.seats.iter().flatten().map(|pending| pending.id).collect();
        all.iter().for_each(|id| _ = self.leave(*id));
        all
    }

    fn pending(&self, id: ConnectionId) -> Option<&PendingConnection> {
        self.seats.get(id.slot())?.as_ref().filter(|pending| pending.id == id)
    }

    fn count(&self, address: IpAddr) -> usize {
        self.by_address.get(&address).copied().unwrap_or(0)
    }

    fn oldest_silent(&self, address: IpAddr) -> Option<ConnectionId> {
        let is_of = |id: &&ConnectionId| {
            self.pending(**id).is_some_and(|pending| network(pending.arrival.peer) == address)
        };
        self.silent.values().find(is_of).copied()
    }
}

/// Where a connection belongs.
#[derive(Debug, PartialEq, Eq)]
pub enum LogonRoute {
    /// There is no complete message yet.
    Incomplete,
    /// To the session of this name.
    Session(String),
    /// Not a client of ours: closed without an answer.
    Reject,
}

pub fn route(settings: &FixSettings, arrival: ConnectionEnds, bytes: &[u8]) -> LogonRoute {
    let greeting = match identify(bytes) {
        Ok(Decoded::Message { message, .. }) => message,
        Ok(Decoded::Incomplete) if bytes.len() <= settings.logon_bytes_max => return LogonRoute::Incomplete,
        Ok(Decoded::Incomplete) | Err(_) => return LogonRoute::Reject,
    };
    let name = settings.family(greeting.sender_comp_id, greeting.target_comp_id).and_then(|family| {
        let client = std::str::from_utf8(greeting.sender_comp_id).ok()?;
        family.name(client).filter(|_| family.admits(arrival))
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
    fn fill(lobby: &mut PendingLogons, address: u8, first: usize) {
        for slot in first..first + PER_ADDRESS_MAX {
            assert_eq!(lobby.enter(ConnectionId::of_slot(slot), arrival(address)), Ok(None));
        }
    }

    #[test]
    fn at_the_limit_of_an_address_its_oldest_silent_connection_is_evicted() {
        let mut lobby = PendingLogons::default();
        fill(&mut lobby, 1, 0);
        let asked = PendingLogin { name: "PITLANE-A".to_string(), generation: 0 };
        let ticket = lobby.ask(ConnectionId::of_slot(0), asked.clone()).unwrap();
        // The first has sent its Logon and stays.
        let next = ConnectionId::of_slot(5_000);
        assert_eq!(lobby.enter(next, arrival(1)), Ok(Some(ConnectionId::of_slot(1))));
        assert!(lobby.has(next) && !lobby.has(ConnectionId::of_slot(1)));
        assert_eq!(
            lobby.answered(ticket).map(|(id, _, about)| (id, about)),
            Some((ConnectionId::of_slot(0), asked))
        );
        assert!(lobby.silent(ConnectionId::of_slot(0)).is_none() && lobby.silent(next).is_some());
        lobby.leave(ConnectionId::of_slot(0));
        assert!(lobby.answered(ticket).is_none());
    }

    #[test]
    fn in_a_full_table_the_address_with_most_connections_loses_one() {
        let mut lobby = PendingLogons::default();
        (0..4).for_each(|address| fill(&mut lobby, address, address as usize * PER_ADDRESS_MAX));
        assert_eq!(lobby.len, LOBBY_MAX);
        let (first, second) = (ConnectionId::of_slot(5_000), ConnectionId::of_slot(5_001));
        assert!(lobby.enter(first, arrival(9)).is_ok_and(|evicted| evicted.is_some()));
        assert!(lobby.enter(second, arrival(9)).is_ok_and(|evicted| evicted.is_some()));
        assert!(lobby.has(first) && lobby.len == LOBBY_MAX);
        assert_eq!(lobby.drain().len(), LOBBY_MAX);
        assert!(lobby.is_empty() && lobby.by_address.is_empty() && lobby.silent.is_empty());
    }

    #[test]
    fn an_address_with_only_awaited_verdicts_accepts_no_more() {
        let mut lobby = PendingLogons::default();
        fill(&mut lobby, 1, 0);
        for slot in 0..PER_ADDRESS_MAX {
            lobby
                .ask(ConnectionId::of_slot(slot), PendingLogin { name: String::new(), generation: 0 })
                .unwrap();
        }
        assert_eq!(lobby.enter(ConnectionId::of_slot(5_000), arrival(1)), Err(PendingLogonsFull));
        assert_eq!(lobby.enter(ConnectionId::of_slot(5_000), arrival(2)), Ok(None));
    }
}
