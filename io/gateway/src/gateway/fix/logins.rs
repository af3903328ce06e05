//! Decides whether a client may log on: CompIDs and address by the config, then name and password
//! by the config or by the credential files. All of it happens before any state is stored for the
//! session, so a refused Logon leaves no trace and takes no slot.

use std::sync::Arc;

use pitlane_auth::{Credentials, Identity};
use pitlane_config::Secret;
use pitlane_engine::time::{NS_PER_S, Timestamp};
use pitlane_net::ConnectionId;
use pitlane_net::sockets::Sockets;
use pitlane_protocols::fix::logon_probe;
use pitlane_protocols::fix::session::{DisconnectReason, DontKnowTrade};
use subtle::ConstantTimeEq;

use super::pending_logons::PendingLogin;
use super::{FixEndpoint, client_of, numbers_of};
use crate::fix::handoff::AdmittedLogon;
use crate::fix::settings::{ConnectionEnds, LogonProof};

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
            return self.reject_logon(now, sockets, id, &name);
        };
        let credentials = logon_probe::credentials(sockets.input(id));
        match family.proof() {
            LogonProof::None => self.accept_logon(now, sockets, id, AdmittedLogon { name, login: None }),
            LogonProof::Config(login, secret) => {
                let right = credentials.username.ct_eq(login.as_bytes())
                    & credentials.password.ct_eq(secret.reveal().as_bytes());
                // No name in the credential files has a colon.
                let checked = self.auth.admit(now, &format!("fix:{name}"), arrival.peer, right.into());
                match checked {
                    Ok(()) => self.accept_logon(now, sockets, id, AdmittedLogon { name, login: None }),
                    Err(_) => self.reject_logon(now, sockets, id, &name),
                }
            }
            LogonProof::Credentials => {
                let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
                let (login, secret) =
                    (Some(text(credentials.username)), Secret::new(&text(credentials.password)));
                let credentials = Credentials { login, secret, peer: arrival.peer };
                let login = PendingLogin { name: name.clone(), generation: self.auth.generation() };
                let ticket = self.pending_logons.start_verification(id, login);
                let is_queued = ticket.is_some_and(|ticket| self.auth.ask(now, ticket, credentials).is_ok());
                match is_queued {
                    true => sockets.set_deadline(id, Some(now.plus(VERDICT_NS_MAX))),
                    // The address fills the queue; the client may reconnect.
                    false => self.reject_logon(now, sockets, id, &name),
                }
            }
        }
    }

    /// Handles the verdicts on names and passwords.
    pub(super) fn drain_verdicts(&mut self, now: Timestamp, sockets: &mut Sockets) {
        while let Some((ticket, verdict)) = self.auth.poll() {
            let Some((id, _, login)) = self.pending_logons.answered(ticket) else { continue };
            let PendingLogin { name, generation } = login;
            let settings = &self.settings;
            let may = |identity: &Identity| {
                settings.family_of(&name).is_some_and(|(family, _)| family.permits(identity))
            };
            match verdict.ok().filter(may) {
                Some(identity) => {
                    let login = Some((identity.name, generation));
                    self.accept_logon(now, sockets, id, AdmittedLogon { name, login });
                }
                None => self.reject_logon(now, sockets, id, &name),
            }
        }
    }

    /// Refuses a Logon with a Logout that contains nothing of the session.
    pub(super) fn reject_logon(
        &mut self,
        now: Timestamp,
        sockets: &mut Sockets,
        id: ConnectionId,
        name: &str,
    ) {
        let arrival = self.pending_logons.leave(id);
        self.pending_logons.refused += 1;
        if let Some((family, client)) = self.settings.family_of(name) {
            // A client that is gone receives nothing.
            let (version, ours) = (family.version(), family.sender_comp_id());
            let _ = sockets.send(id, &logon_probe::encode_refusal(version, ours, &client, now));
        }
        sockets.finish(id);
        if self.may_log(now) {
            let peer = arrival.map(|arrival| arrival.peer.to_string());
            tracing::info!(session = name, peer, "FIX Logon refused");
        }
    }

    /// Logs out each session whose login was removed or changed since its Logon.
    pub(super) fn revoke(&mut self, now: Timestamp) {
        if !self.revocations.has_changed() {
            return;
        }
        for number in numbers_of(&self.clients) {
            let Some(client) = client_of(&mut self.clients, number) else { continue };
            let is_revoked =
                |(login, generation): &(Arc<str>, u64)| self.revocations.is_revoked(login, *generation);
            if client.admitted.as_ref().is_some_and(is_revoked) {
                client.admitted = None;
                client.session.log_out(now, b"The login is no longer valid", DisconnectReason::EndedByUs);
                self.wake(number);
            }
        }
    }

    /// Logs a trade that a client does not recognise. The session may end in the same step.
    pub(super) fn log_unknown_trade(&mut self, now: Timestamp, number: u16) {
        let Some(client) = client_of(&mut self.clients, number) else { return };
        let Some(trade) = client.session.take_dont_know_trade() else { return };
        let session = client.name.clone();
        if self.may_log(now) {
            let DontKnowTrade { order_id, exec_id, reason, text } = *trade;
            tracing::warn!(session, order_id, exec_id, reason, text, "the client does not know this trade");
        }
    }

    /// Returns whether one more line about connections may be logged; strangers cause them.
    pub(super) fn may_log(&mut self, now: Timestamp) -> bool {
        let omitted = self.log_limit.take(now);
        if let Some(lines @ 1..) = omitted {
            tracing::info!(lines, "log lines about FIX connections were left out");
        }
        omitted.is_some()
    }

    /// Logs the number of omitted lines when no other line follows.
    pub(super) fn log_omitted(&mut self, now: Timestamp) {
        let omitted =
            if self.ending_since.is_some() { self.log_limit.rest() } else { self.log_limit.overdue(now) };
        if let Some(lines) = omitted {
            tracing::info!(lines, "log lines about FIX connections were left out");
        }
    }
}
