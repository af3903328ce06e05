//! Decides whether a client may log on: CompIDs and address by the config, then name and password
//! by the config or by the credential files. All of it happens before any state is stored for the
//! session, so a refused Logon leaves no trace and takes no slot.

use std::sync::Arc;

use pitlane_engine::time::{NS_PER_S, Timestamp};
use pitlane_protocols::fix::logon_probe;
use pitlane_protocols::fix::session::DisconnectReason;
use subtle::ConstantTimeEq;

use super::pending_logons::PendingLogin;
use super::{FixEndpoint, client_of};
use crate::auth::{Credentials, Identity, Role, Strategies};
use crate::config::Secret;
use crate::fix::handoff::AdmittedLogon;
use crate::fix::settings::{ConnectionEnds, LogonProof};
use crate::net::ConnectionId;
use crate::net::sockets::Sockets;

/// Maximum time a client waits for the verdict on its password: longer than a full queue takes.
const VERDICT_NS_MAX: u64 = 10 * NS_PER_S;

impl FixEndpoint {
    /// Checks name and password of a complete Logon.
    pub(super) fn check_login(
        &mut self,
        now: Timestamp,
        sockets: &mut Sockets,
        id: ConnectionId,
        arrival: ConnectionEnds,
        name: String,
    ) {
        let settings = self.settings.clone();
        let Some((family, _)) = settings.family_of(&name) else {
            return self.turn_away(now, sockets, id, &name);
        };
        let shown = logon_probe::credentials(sockets.input(id));
        match family.proof() {
            LogonProof::None => self.let_in(now, sockets, id, AdmittedLogon { name, login: None }),
            LogonProof::Config(login, secret) => {
                let right =
                    shown.username.ct_eq(login.as_bytes()) & shown.password.ct_eq(secret.reveal().as_bytes());
                // No name in the credential files has a colon.
                let judged = self.seat.admit(now, &format!("fix:{name}"), arrival.peer, right.into());
                match judged {
                    Ok(()) => self.let_in(now, sockets, id, AdmittedLogon { name, login: None }),
                    Err(_) => self.turn_away(now, sockets, id, &name),
                }
            }
            LogonProof::Books => {
                let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
                let (login, secret) = (Some(text(shown.username)), Secret::new(&text(shown.password)));
                let credentials = Credentials { login, secret, peer: arrival.peer };
                let asked = PendingLogin { name: name.clone(), generation: self.seat.generation() };
                let ticket = self.lobby.ask(id, asked);
                let is_asked = ticket.is_some_and(|ticket| self.seat.ask(now, ticket, credentials).is_ok());
                match is_asked {
                    true => sockets.set_deadline(id, Some(now.plus(VERDICT_NS_MAX))),
                    // The address fills the queue; the client may reconnect.
                    false => self.turn_away(now, sockets, id, &name),
                }
            }
        }
    }

    /// Handles the verdicts on names and passwords.
    pub(super) fn hear_verdicts(&mut self, now: Timestamp, sockets: &mut Sockets) {
        while let Some((ticket, verdict)) = self.seat.poll() {
            let Some((id, _, asked)) = self.lobby.answered(ticket) else { continue };
            let PendingLogin { name, generation } = asked;
            // An order may name any strategy, so a login that is limited to some strategies does
            // not suffice.
            let may =
                |identity: &Identity| identity.role >= Role::Trade && identity.strategies == Strategies::All;
            match verdict.ok().filter(may) {
                Some(identity) => {
                    let login = Some((identity.name, generation));
                    self.let_in(now, sockets, id, AdmittedLogon { name, login });
                }
                None => self.turn_away(now, sockets, id, &name),
            }
        }
    }

    /// Refuses a Logon with a Logout that contains nothing of the session.
    pub(super) fn turn_away(&mut self, now: Timestamp, sockets: &mut Sockets, id: ConnectionId, name: &str) {
        let arrival = self.lobby.leave(id);
        self.lobby.refused += 1;
        if let Some((family, client)) = self.settings.family_of(name) {
            // A client that is gone receives nothing.
            let _ = sockets.send(id, &logon_probe::encode_refusal(family.sender_comp_id(), &client, now));
        }
        sockets.finish(id);
        if self.may_log(now) {
            let peer = arrival.map(|arrival| arrival.peer.to_string());
            tracing::info!(session = name, peer, "FIX Logon refused");
        }
    }

    /// Logs out each session whose login was removed or changed since its Logon.
    pub(super) fn revoke(&mut self, now: Timestamp) {
        if !self.roll.has_changed() {
            return;
        }
        for number in 1..=self.clients.len() as u16 {
            let Some(client) = client_of(&mut self.clients, number) else { continue };
            let is_revoked = |(login, generation): &(Arc<str>, u64)| self.roll.is_revoked(login, *generation);
            if client.admitted.as_ref().is_some_and(is_revoked) {
                client.admitted = None;
                client.session.log_out(now, b"The login is no longer valid", DisconnectReason::EndedByUs);
                self.wake(number);
            }
        }
    }

    /// Returns whether one more line about connections may be logged; strangers cause them.
    pub(super) fn may_log(&mut self, now: Timestamp) -> bool {
        let left_out = self.lines.take(now);
        if let Some(lines @ 1..) = left_out {
            tracing::info!(lines, "log lines about FIX connections were left out");
        }
        left_out.is_some()
    }

    /// Logs the number of omitted lines when no other line follows.
    pub(super) fn log_left_out(&mut self, now: Timestamp) {
        let left_out = if self.ending.is_some() { self.lines.rest() } else { self.lines.overdue(now) };
        if let Some(lines) = left_out {
            tracing::info!(lines, "log lines about FIX connections were left out");
        }
    }
}
