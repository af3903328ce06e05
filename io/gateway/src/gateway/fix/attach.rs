//! Attaches a connection to its session, according to the first frame, on this gateway or on the
//! one that owns the session.

use pitlane_engine::id::{Origin, Source};
use pitlane_engine::sender::SenderId;
use pitlane_engine::time::Timestamp;
use pitlane_journal::Fault;
use pitlane_net::ConnectionId;
use pitlane_net::sockets::Sockets;

use super::client::FixClient;
use super::pending_logons::{self, LogonRoute};
use super::{FixEndpoint, client_of};
use crate::fix::handoff::{AdmittedLogon, Handoff};
use crate::fix::settings::LogonProof;
use crate::notifications::Notification;

impl FixEndpoint {
    /// Reads the first frame, once it is complete, and identifies the session.
    pub(super) fn read_logon(&mut self, now: Timestamp, sockets: &mut Sockets, id: ConnectionId) {
        // Bytes after a complete Logon wait for the verdict.
        let Some(arrival) = self.pending_logons.incomplete(id) else { return };
        match pending_logons::route(&self.settings, arrival, sockets.input(id)) {
            LogonRoute::Incomplete => {}
            LogonRoute::Reject => {
                self.pending_logons.leave(id);
                self.pending_logons.refused += 1;
                sockets.close(id);
            }
            LogonRoute::Session(name) => self.check_login(now, sockets, id, arrival, name),
        }
    }

    /// Attaches a connection that may log on to its session, here or on another gateway.
    pub(super) fn accept_logon(
        &mut self,
        now: Timestamp,
        sockets: &mut Sockets,
        id: ConnectionId,
        admitted: AdmittedLogon,
    ) {
        self.pending_logons.leave(id);
        sockets.set_deadline(id, None);
        let home = self.assignments.gateway(&admitted.name);
        if home == self.gateway {
            self.attach_connection(now, sockets, id, admitted);
        } else if let Some(detached) = sockets.release(id)
            && !self.handoff.send(home, Handoff { admitted, detached })
        {
            self.pending_logons.refused += 1;
        }
    }

    /// Takes connections that other gateways have accepted for our sessions.
    pub(super) fn receive_handoffs(&mut self, now: Timestamp, sockets: &mut Sockets) {
        while let Some(Handoff { admitted, detached }) = self.handoff.receive() {
            let id = sockets.adopt(detached);
            self.attach_connection(now, sockets, id, admitted);
        }
    }

    /// Attaches a connection to its session. A second connection is closed without an answer,
    /// unless the settings say that it may replace the first one.
    pub(super) fn attach_connection(
        &mut self,
        now: Timestamp,
        sockets: &mut Sockets,
        id: ConnectionId,
        admitted: AdmittedLogon,
    ) {
        let AdmittedLogon { name, login } = &admitted;
        // The login may have been revoked since the verdict.
        if login.as_ref().is_some_and(|(login, generation)| self.revocations.is_revoked(login, *generation)) {
            return self.reject_logon(now, sockets, id, name);
        }
        let number = match self.admit(now, name) {
            Ok(Some(number)) => number,
            Ok(None) => return sockets.close(id),
            Err(fault) => {
                tracing::error!(session = name, %fault, "a FIX session cannot be opened");
                return sockets.close(id);
            }
        };
        let ready = self.ready;
        let schedule = self.settings.family_of(name).map(|(family, _)| family.schedule(now));
        let client = client_of(&mut self.clients, number);
        let Some(client) = client.and_then(|client| client.session.connect(now).then_some(client)) else {
            return self.challenge(now, sockets, id, number, admitted);
        };
        client.session.set_ready(ready);
        schedule.into_iter().for_each(|schedule| client.session.set_schedule(schedule));
        client.connection = Some(id);
        client.admitted = admitted.login;
        client.peer = sockets.peer(id);
        client.sender = SenderId::NONE;
        client.since = now;
        self.session_numbers.insert(id, number);
        self.receive(now, sockets, id);
    }

    /// Returns the number of a session, which is created if it is new. Only for a client that may
    /// log on, or for a session that exists already.
    pub(super) fn admit(&mut self, now: Timestamp, name: &str) -> Result<Option<u16>, Fault> {
        let Some((family, comp_id)) = self.settings.family_of(name) else { return Ok(None) };
        let Some(number) = self.registry.number(name)? else { return Ok(None) };
        let at = number as usize - 1;
        if self.clients.len() <= at {
            self.clients.resize_with(at + 1, || None);
        }
        if self.clients[at].is_none() {
            let source = Source { origin: Origin::Fix, port: self.port, session: number };
            let settings = family.session(now, &self.settings, &comp_id, source);
            let store = self.recovery.open_store(now, name, family, &mut self.fix_log)?;
            let mut client = FixClient::new(name, settings, store, self.reference.clone());
            if let LogonProof::Config(login, _) = family.proof() {
                client.login = Some(login.to_string());
            }
            for (exchange, session) in &self.trading_sessions {
                client.session.handle_trading_session(*exchange, *session);
            }
            if let Some(folder) = &family.log_folder {
                client.logged = self.fix_log.open_log(number, folder.join(format!("{name}.log")));
            }
            let (port, session) = (self.port, number);
            self.notifications.push(Notification::Named { port, session, name: comp_id.into() });
            self.clients[at] = Some(Box::new(client));
            self.broken.remove(&number);
        }
        Ok(Some(number))
    }

    /// Opens a known session that has activity. A start opens none: it would take time for every
    /// session that ever existed.
    pub(super) fn open(&mut self, now: Timestamp, number: u16) {
        if client_of(&mut self.clients, number).is_some() || self.broken.contains(&number) {
            return;
        }
        let Some(name) = self.registry.name(number).map(str::to_string) else { return };
        if let Err(fault) = self.admit(now, &name) {
            tracing::error!(session = name, %fault, "a FIX session cannot be opened: it does not receive the events of its orders");
            self.broken.insert(number);
        }
    }

    /// Publishes the names of all sessions to the other threads.
    pub(super) fn publish_names(&mut self) {
        for number in self.registry.numbers() {
            let Some(name) = self.registry.name(number) else { continue };
            if let Some((_, comp_id)) = self.settings.family_of(name) {
                let (port, session) = (self.port, number);
                self.notifications.push(Notification::Named { port, session, name: comp_id.into() });
            }
        }
    }
}
