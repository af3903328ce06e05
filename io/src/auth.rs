//! Who may do what, and how we know who it is.
//!
//! ```text
//! http, gateways ── ask: Credentials ──► lane ──► Clerk in the thread `auth`: books, argon2id, lock-out
//!       ▲                                            │
//!       └── poll: Verdict ◄── Seat: memory ◄── lane ◄┘
//! ```
//!
//! Verifying a password takes 20 ms, so it runs on the thread `auth`: a thread with clients has a [`AuthClient`] and goes on meanwhile. A
//! seat remembers what was found right, so that a client which sends its password with every request is not slow. A token is one
//! look-up of a hash, which the seat does itself: it never waits behind passwords. Passwords wait in the seat's queue, in which each
//! address has its share, and guessing is slowed down by address and login (`lockout`).

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

use pitlane_engine::time::Timestamp;

pub use self::authenticator::Authenticator;
pub use self::client::{AuthClient, Busy};
use self::lockout::Lockout;
pub use self::lockout::network;
use self::notices::Notices;
pub use self::password::{Hash, SALT_BYTES};
pub use self::revocation::RevocationWatch;
use crate::config::{Config, Secret};
use crate::refdata::Faults;
pub use crate::role::Role;
use crate::thread_wakeup::ThreadWakeup;
use crate::wakeup::Wakeup;

/// Somebody we know.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Identity {
    pub name: Arc<str>,
    pub role: Role,
    pub strategies: Strategies,
}

/// Whose orders, positions and events somebody may see and touch.
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

/// What somebody shows.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Credentials {
    /// None: the secret is a token and says it all. With a login it is the password of that user, or the token of that name.
    pub login: Option<String>,
    pub secret: Secret,
    pub peer: IpAddr,
}

/// What comes of it.
pub type Verdict = Result<Identity, Refusal>;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Refusal {
    /// Whether the login or the secret is wrong is not said.
    Wrong,
    /// Too many failures, by this login or from this address; so it was not even looked at.
    Locked { wait_s: u32 },
    /// Too many passwords of this address wait to be verified.
    Busy,
    /// The service ends, and nobody looks any more.
    Ending,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AuthSettings {
    /// Whether clients must log in; if not, everybody is `local` and may everything.
    pub required: bool,
    pub users: Option<PathBuf>,
    pub tokens: Option<PathBuf>,
    /// Names that may stand in the lists of strategies.
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

    /// For a service that asks nobody.
    pub fn off() -> AuthSettings {
        AuthSettings { required: false, users: None, tokens: None, strategies: Vec::new() }
    }
}

/// The clerk before it has its thread, while seats are given out.
#[derive(Debug)]
pub struct Auth {
    clerk: Authenticator,
    wakeup: ThreadWakeup,
    bell: Wakeup,
    anybody: Option<Identity>,
    shared: Arc<Shared>,
}

/// What the clerk, the seats and main share.
#[derive(Debug)]
struct Shared {
    /// Rises when the books have changed, and what was verified before no longer counts.
    generation: AtomicU64,
    /// Somebody wants the books to be read again.
    reload: AtomicBool,
    /// Who is in the books. Written when they change; the lock is held for the copy of a pointer.
    names: RwLock<Arc<revocation::Names>>,
    /// The tokens of the books, in the same way.
    tokens: RwLock<Arc<tokens::Tokens>>,
    /// Who failed how often. Held for a look-up; only logins with a password take it.
    lockout: Mutex<Lockout>,
    notices: Mutex<Notices>,
    /// Makes the sums of remembered credentials useless to anybody who sees them.
    key: [u8; 32],
}

impl Shared {
    fn lockout(&self) -> MutexGuard<'_, Lockout> {
        self.lockout.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn find_token(&self, credentials: &Credentials) -> Option<Identity> {
        let tokens = self.tokens.read().unwrap_or_else(PoisonError::into_inner).clone();
        tokens.find(credentials.login.as_deref(), credentials.secret.reveal()).cloned()
    }

    /// Logs that a password was wrong, and for how long the next one has to wait.
    fn note_failure(&self, now: Timestamp, login: Option<&str>, peer: IpAddr, wait_s: Option<u32>) {
        self.notices.lock().unwrap_or_else(PoisonError::into_inner).failed(now, login, peer, wait_s);
    }

    /// Logs what was left out, when its time has come.
    fn tell_failures(&self, now: Timestamp) {
        self.notices.lock().unwrap_or_else(PoisonError::into_inner).poll(now);
    }
}

impl Auth {
    /// Reads the books. Everything that is wrong with them is told at once.
    pub fn open(settings: AuthSettings) -> Result<Auth, Faults> {
        let wakeup = ThreadWakeup::default();
        let shared = Arc::new(Shared {
            generation: AtomicU64::new(0),
            reload: AtomicBool::new(false),
            names: RwLock::default(),
            tokens: RwLock::default(),
            lockout: Mutex::default(),
            notices: Mutex::default(),
            key: random(),
        });
        let anybody = (!settings.required).then(|| Identity {
            name: "local".into(),
            role: Role::Admin,
            strategies: Strategies::All,
        });
        let clerk = Authenticator::new(settings, shared.clone())?;
        Ok(Auth { clerk, bell: wakeup.bell(), wakeup, anybody, shared })
    }

    /// What everybody is, where nobody must log in.
    pub fn anybody(&self) -> Option<&Identity> {
        self.anybody.as_ref()
    }

    /// A seat for a thread with this bell, which is rung when a verdict has come.
    pub fn seat(&mut self, bell: Wakeup) -> AuthClient {
        let (seat, desk) = client::pair(self.anybody.clone(), self.shared.clone(), self.bell.clone(), bell);
        self.clerk.add(desk);
        seat
    }

    /// Calls the thread that will have the clerk.
    pub fn bell(&self) -> &Wakeup {
        &self.bell
    }

    /// For whoever may ask for the books to be read again.
    pub fn reload(&self) -> Reload {
        Reload { shared: self.shared.clone(), bell: self.bell.clone() }
    }

    /// The clerk, where it sleeps and how it is called.
    pub fn into_parts(self) -> (Authenticator, ThreadWakeup, Wakeup) {
        (self.clerk, self.wakeup, self.bell)
    }
}

/// Asks for the books to be read again.
#[derive(Clone, Debug)]
pub struct Reload {
    shared: Arc<Shared>,
    bell: Wakeup,
}

impl Reload {
    pub fn ask(&self) {
        self.shared.reload.store(true, Ordering::Release);
        self.bell.wake();
    }
}

/// Bytes that nobody can guess.
fn random<const N: usize>() -> [u8; N] {
    let mut bytes = [0; N];
    let provider = crate::tls::provider();
    // Without it there is no TLS either.
    provider.secure_random.fill(&mut bytes).expect("the system gives random bytes");
    bytes
}

#[cfg(test)]
mod tests;
