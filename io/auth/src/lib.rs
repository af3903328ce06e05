//! Authentication of clients, and their rights.
//!
//! ```text
//! http, gateways ── ask: Credentials ──► lane ──► Authenticator in the thread `auth`: argon2id, lock-out
//!       ▲                                            │
//!       └── poll: Verdict ◄── AuthClient: cache ◄── lane ◄┘
//! ```
//!
//! Verifying a password takes 20 ms, so it runs on the thread `auth`. Other threads query it
//! asynchronously through an [`AuthClient`]. The client caches credentials that were verified, so a
//! client that sends its password with every request is not slowed down. A token needs one hash
//! look-up, which the `AuthClient` does itself: a token never waits behind passwords. Passwords
//! wait in the queue of the `AuthClient`, in which each address has a share, and guessing is slowed
//! down per address and login (`lockout`).

pub mod audit;
pub mod credentials;
mod authenticator;
mod lockout;
mod cache;
mod notices;
mod password;
mod prompt;
mod queue;
mod recent;
mod revocation;
mod client;
mod token;
mod tokens;
pub mod cli;
mod writable;

use std::fmt;
use std::net::IpAddr;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, RwLock};

use pitlane_config::refdata::RefDataFaults;
use pitlane_config::{Config, Secret};
use pitlane_engine::time::Timestamp;
use pitlane_runtime::thread_wakeup::ThreadWakeup;
use pitlane_runtime::wakeup::Wakeup;

pub use self::authenticator::Authenticator;
pub use self::client::{AuthClient, Busy};
use self::lockout::Lockout;
pub use self::lockout::network;
use self::notices::Notices;
pub use self::password::{Hash, SALT_BYTES};
pub use self::revocation::RevocationWatch;
pub use pitlane_config::role::Role;

/// An authenticated user or machine.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Identity {
    pub name: Arc<str>,
    pub role: Role,
    pub strategies: Strategies,
}

/// The strategies whose orders, positions and events an identity may see and change.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Strategies {
    All,
    Only(Arc<[Box<str>]>),
}

impl Strategies {
    pub fn sees(&self, strategy: &str) -> bool {
        match self {
            Strategies::All => true,
            Strategies::Only(names) => names.iter().any(|name| **name == *strategy),
        }
    }
}

impl fmt::Display for Strategies {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Strategies::All => f.write_str("*"),
            Strategies::Only(names) => f.write_str(&names.join(",")),
        }
    }
}

/// The credentials that a client presents.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Credentials {
    /// `None` if the secret is a token, which identifies its owner. With a login, the secret is the
    /// password of that user or the token of that name.
    pub login: Option<String>,
    pub secret: Secret,
    pub peer: IpAddr,
}

/// The result of checking credentials.
pub type Verdict = Result<Identity, Refusal>;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Refusal {
    /// The login or the secret is wrong; the answer does not reveal which.
    Wrong,
    /// Too many failures of this login or from this address. The password is not verified.
    Locked { wait_s: u32 },
    /// Too many passwords from this address wait to be verified.
    Busy,
    /// The service is stopping, and no more passwords are verified.
    Ending,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AuthSettings {
    /// Whether clients must log in; if not, every client is `local` with the role `Admin`.
    pub required: bool,
    pub users: Option<PathBuf>,
    pub tokens: Option<PathBuf>,
    /// Names that are valid in the lists of strategies.
    pub strategies: Vec<String>,
}

impl AuthSettings {
    pub fn of(config: &Config, strategies: Vec<String>) -> AuthSettings {
        AuthSettings {
            required: config.login_required(),
            users: config.auth.users_file.clone(),
            tokens: config.auth.tokens_file.clone(),
            strategies,
        }
    }

    /// Returns settings for a service without logins.
    pub fn off() -> AuthSettings {
        AuthSettings { required: false, users: None, tokens: None, strategies: Vec::new() }
    }
}

/// The authenticator before its thread starts, while clients can still be created.
#[derive(Debug)]
pub struct Auth {
    authenticator: Authenticator,
    thread_wakeup: ThreadWakeup,
    wakeup: Wakeup,
    default_identity: Option<Identity>,
    shared: Arc<AuthShared>,
}

/// State shared by the authenticator, its clients and main.
#[derive(Debug)]
struct AuthShared {
    /// Incremented when the credentials change; results verified before that are no longer valid.
    generation: AtomicU64,
    /// Whether a reload of the credential files is requested.
    reload: AtomicBool,
    /// Names in the credential files. Written when the files change; the lock is held for the copy
    /// of a pointer.
    names: RwLock<Arc<revocation::ValidNames>>,
    /// The tokens of the credential files, published in the same way.
    tokens: RwLock<Arc<tokens::Tokens>>,
    /// Failure counters. The lock is held for a look-up, and only logins with a password take it.
    lockout: Mutex<Lockout>,
    notices: Mutex<Notices>,
    /// Key of the hashes in the cache, which makes them useless to a reader of the memory.
    key: [u8; 32],
}

impl AuthShared {
    fn lockout(&self) -> MutexGuard<'_, Lockout> {
        self.lockout.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn find_token(&self, credentials: &Credentials) -> Option<Identity> {
        let tokens = self.tokens.read().unwrap_or_else(PoisonError::into_inner).clone();
        tokens.find(credentials.login.as_deref(), credentials.secret.reveal()).cloned()
    }

    /// Logs a wrong password, and how long the next attempt has to wait.
    fn note_failure(&self, now: Timestamp, login: Option<&str>, peer: IpAddr, wait_s: Option<u32>) {
        self.notices.lock().unwrap_or_else(PoisonError::into_inner).failed(now, login, peer, wait_s);
    }

    /// Logs the number of suppressed lines when it is due.
    fn log_failures(&self, now: Timestamp) {
        self.notices.lock().unwrap_or_else(PoisonError::into_inner).poll(now);
    }
}

impl Auth {
    /// Reads the credential files. Returns all of their faults at once.
    pub fn open(settings: AuthSettings) -> Result<Auth, RefDataFaults> {
        let thread_wakeup = ThreadWakeup::default();
        let shared = Arc::new(AuthShared {
            generation: AtomicU64::new(0),
            reload: AtomicBool::new(false),
            names: RwLock::default(),
            tokens: RwLock::default(),
            lockout: Mutex::default(),
            notices: Mutex::default(),
            key: random(),
        });
        let default_identity = (!settings.required).then(|| Identity {
            name: "local".into(),
            role: Role::Admin,
            strategies: Strategies::All,
        });
        let authenticator = Authenticator::new(settings, shared.clone())?;
        Ok(Auth { authenticator, wakeup: thread_wakeup.wakeup(), thread_wakeup, default_identity, shared })
    }

    /// Returns the identity of every client where no login is required.
    pub fn default_identity(&self) -> Option<&Identity> {
        self.default_identity.as_ref()
    }

    /// Creates a client for a thread; `wakeup` is triggered when a verdict is ready.
    pub fn client(&mut self, wakeup: Wakeup) -> AuthClient {
        let (client, port) =
            client::pair(self.default_identity.clone(), self.shared.clone(), self.wakeup.clone(), wakeup);
        self.authenticator.add(port);
        client
    }

    /// Returns the wake-up of the thread that will run the authenticator.
    pub fn wakeup(&self) -> &Wakeup {
        &self.wakeup
    }

    /// Returns a handle that requests a reload of the credential files.
    pub fn reload(&self) -> Reload {
        Reload { shared: self.shared.clone(), wakeup: self.wakeup.clone() }
    }

    /// Returns the authenticator, the wake-up slot of its thread, and the wake-up itself.
    pub fn into_parts(self) -> (Authenticator, ThreadWakeup, Wakeup) {
        (self.authenticator, self.thread_wakeup, self.wakeup)
    }
}

/// Requests a reload of the credential files.
#[derive(Clone, Debug)]
pub struct Reload {
    shared: Arc<AuthShared>,
    wakeup: Wakeup,
}

impl Reload {
    pub fn ask(&self) {
        self.shared.reload.store(true, Ordering::Release);
        self.wakeup.wake();
    }
}

/// Returns cryptographically secure random bytes.
fn random<const N: usize>() -> [u8; N] {
    let mut bytes = [0; N];
    let provider = pitlane_net::tls::provider();
    // TLS needs the same source, so the service cannot run without it.
    provider.secure_random.fill(&mut bytes).expect("the system gives random bytes");
    bytes
}

#[cfg(test)]
mod tests;
