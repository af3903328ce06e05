//! A second connection for a session that is connected. By default it is closed. Where the settings
//! say `replace`, the first connection gets a Test Request: if it sends anything in time, it stays,
//! and the second one is closed; if it is silent or lost, the second one takes its place.
//!
//! Rules: docs/fix-rules.md#second-connection.

use pitlane_engine::time::Timestamp;
use pitlane_net::ConnectionId;
use pitlane_net::sockets::Sockets;

use super::{FixEndpoint, client_of};
use crate::fix::handoff::AdmittedLogon;

/// A connection that waits for the place of another. Each session has at most one.
#[derive(Debug)]
pub(super) struct Challenger {
    id: ConnectionId,
    /// Number of the session.
    number: u16,
    admitted: AdmittedLogon,
    /// End of the time for the first connection.
    until: Timestamp,
}

impl FixEndpoint {
    /// Handles a connection that may log on to a session with another connection.
    pub(super) fn challenge(
        &mut self,
        now: Timestamp,
        sockets: &mut Sockets,
        id: ConnectionId,
        number: u16,
        admitted: AdmittedLogon,
    ) {
        let family = self.settings.family_of(&admitted.name);
        let wait_ns = family.and_then(|(family, _)| family.replace_after_ns());
        let is_first = !self.challengers.iter().any(|challenger| challenger.number == number);
        let client = client_of(&mut self.clients, number).filter(|_| is_first);
        let (Some(client), Some(wait_ns)) = (client, wait_ns) else {
            self.pending_logons.refused += 1;
            return sockets.close(id);
        };
        client.session.probe(now);
        self.challengers.push(Challenger { id, number, admitted, until: now.plus(wait_ns) });
        self.wake(number);
    }

    pub(super) fn is_challenger(&self, id: ConnectionId) -> bool {
        self.challengers.iter().any(|challenger| challenger.id == id)
    }

    /// Removes a connection that was lost while it waited. Returns whether it waited.
    pub(super) fn remove_challenger(&mut self, id: ConnectionId) -> bool {
        let before = self.challengers.len();
        self.challengers.retain(|challenger| challenger.id != id);
        self.challengers.len() < before
    }

    /// Closes the connection that waits for a session whose client has sent something.
    pub(super) fn refuse_challenger(&mut self, sockets: &mut Sockets, number: u16) {
        let waiting = self.challengers.iter().position(|challenger| challenger.number == number);
        if let Some(at) = waiting {
            let challenger = self.challengers.swap_remove(at);
            self.pending_logons.refused += 1;
            sockets.close(challenger.id);
        }
    }

    /// Attaches the connections whose time has come: the first connection was silent, or is lost.
    pub(super) fn poll_challengers(&mut self, now: Timestamp, sockets: &mut Sockets) {
        let mut at = 0;
        while let Some(&Challenger { number, until, .. }) = self.challengers.get(at) {
            let current = client_of(&mut self.clients, number).and_then(|client| client.connection);
            if until > now && current.is_some() {
                at += 1;
                continue;
            }
            let Challenger { id, admitted, .. } = self.challengers.swap_remove(at);
            if let Some(current) = current {
                tracing::info!(session = admitted.name, "a silent FIX connection is replaced");
                sockets.close(current);
                self.handle_disconnect(now, current);
            }
            self.attach_connection(now, sockets, id, admitted);
        }
    }

    /// Returns when the next connection that waits has its turn.
    pub(super) fn next_challenge(&self) -> Option<Timestamp> {
        self.challengers.iter().map(|challenger| challenger.until).min()
    }

    /// Closes all connections that wait, because the service stops.
    pub(super) fn close_challengers(&mut self, sockets: &mut Sockets) {
        for challenger in std::mem::take(&mut self.challengers) {
            sockets.close(challenger.id);
        }
    }
}
