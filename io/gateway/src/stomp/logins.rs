//! Logins in progress: sent to the authenticator and answered later; the session is not read
//! meanwhile.

use std::collections::BTreeMap;
use std::sync::Arc;

use pitlane_auth::{AuthClient, Credentials, Identity, RevocationWatch, Role, Strategies};
use pitlane_engine::time::Timestamp;
use pitlane_protocols::stomp::access::{StompAccess, StrategyAccess};
use pitlane_protocols::stomp::broker::SessionId;

#[derive(Debug)]
pub struct Logins {
    /// `None` if this thread has no logins.
    auth_client: Option<AuthClient>,
    /// Lowest role that may send events to other strategies.
    sender: Role,
    /// Sessions by ticket; at most as many as the `AuthClient` has open questions.
    pending: BTreeMap<u64, SessionId>,
    tickets: u64,
}

impl Logins {
    pub fn new(auth_client: Option<AuthClient>, sender: Role) -> Logins {
        Logins { auth_client, sender, pending: BTreeMap::new(), tickets: 0 }
    }

    /// Returns a watch that detects revoked logins of open sessions.
    pub fn revocations(&self) -> Option<RevocationWatch> {
        self.auth_client.as_ref().map(AuthClient::revocations)
    }

    /// Starts the verification of credentials. Returns false if it is not possible now, and the
    /// login is refused.
    pub fn ask(&mut self, now: Timestamp, session: SessionId, credentials: Credentials) -> bool {
        let Some(auth_client) = &mut self.auth_client else { return false };
        self.tickets += 1;
        let is_queued = auth_client.ask(now, self.tickets, credentials).is_ok();
        if is_queued {
            self.pending.insert(self.tickets, session);
        }
        is_queued
    }

    /// Returns the next verdict: name and rights of the client; `None` if it is refused.
    #[expect(clippy::type_complexity, reason = "it is taken apart at once")]
    pub fn poll(&mut self) -> Option<(SessionId, Option<(Arc<str>, StompAccess)>)> {
        let (ticket, verdict) = self.auth_client.as_mut()?.poll()?;
        let session = self.pending.remove(&ticket)?;
        let known =
            verdict.ok().and_then(|identity| Some((identity.name.clone(), access(&identity, self.sender)?)));
        Some((session, known))
    }
}

/// Returns what an identity may see and send; `None` if it may use the strategy link only.
pub fn access(identity: &Identity, sender: Role) -> Option<StompAccess> {
    if identity.role < Role::Read {
        return None;
    }
    let strategies = match &identity.strategies {
        Strategies::All => StrategyAccess::All,
        Strategies::Only(names) => StrategyAccess::Only(names.iter().map(|name| name.to_string()).collect()),
    };
    Some(StompAccess { strategies, may_send: identity.role >= sender })
}
