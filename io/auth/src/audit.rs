//! The audit log: every administrative act is on disk before it is executed. A record holds the
//! user, the address, the act and the time; the outcome follows in a record of its own.
//!
//! ```text
//! {"seq":7,"time":"…","who":"alice","role":"admin","from":"10.0.0.7","via":"REST","act":"PUT /rest/…","body":"{…}","prev":"…","hash":"…"}
//! {"seq":8,"time":"…","of":7,"outcome":"200","prev":"…","hash":"…"}
//! ```
//!
//! Each line carries the hash of the previous line and its own hash, which covers everything before
//! it in the line. So a line cannot be changed, removed or inserted without recomputing every later
//! hash. The end of the chain is also stored outside of the log: see `anchor`.
//!
//! ```text
//! http, gateways ── AuditClient: note ──► lane ──► AuditWriter in the thread `auth`: lines, one sync per batch
//!       ▲                                             │
//!       └────────── poll: Noted ◄── lane ◄────────────┘
//! ```

mod anchor;
mod chain;
mod client;
mod writer;
mod files;
pub mod verify;

use std::fmt;
use std::io;
use std::net::IpAddr;
use std::path::PathBuf;
use std::sync::Arc;

use pitlane_config::role::Role;

pub use self::anchor::Anchor;
pub use self::chain::Link;
pub use self::client::{AuditClient, Busy, Noted};
pub use self::writer::AuditWriter;

/// Maximum length in bytes of the description and of the body of an act; longer texts are
/// truncated.
pub const ACT_BYTES_MAX: usize = 512;

/// An action that an administrator requests.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Act {
    pub who: Arc<str>,
    pub role: Role,
    pub from: IpAddr,
    /// The interface of the request: `REST`, `STOMP`, `FIX`, or `SIGNAL`.
    pub via: &'static str,
    /// The request, without secrets and without headers.
    pub what: String,
    /// The body of the request without secrets; may be empty.
    pub body: String,
}

/// The reason why the log cannot be written or trusted.
#[derive(Debug)]
pub enum AuditError {
    Io(PathBuf, io::Error),
    /// A line that does not continue the chain; its number counts from 1.
    Broken(PathBuf, usize, &'static str),
    /// The number of files is at its maximum: older files have to be archived.
    Full(PathBuf),
    /// Lines that were written and are missing: the first and the last of them.
    Missing(PathBuf, u64, u64),
    /// A line whose hash differs from the recorded one.
    Rewritten(PathBuf, u64),
}

impl fmt::Display for AuditError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            AuditError::Io(path, error) => write!(f, "{}: {error}", path.display()),
            AuditError::Broken(path, line, why) => {
                write!(f, "{}:{line}: {why}; check it with pitlane audit verify", path.display())
            }
            AuditError::Full(path) => write!(f, "{}: full: move the older files away", path.display()),
            AuditError::Missing(path, first, last) => write!(
                f,
                "{}: lines {first} to {last} were written and are missing; check it with pitlane audit verify, restore them, \
                 or move the file audit-anchor away to continue without them",
                path.display()
            ),
            AuditError::Rewritten(path, line) => write!(
                f,
                "{}: line {line} has another hash than was written; check it with pitlane audit verify, restore it, \
                 or move the file audit-anchor away to continue with the lines that exist",
                path.display()
            ),
        }
    }
}

impl std::error::Error for AuditError {}

#[cfg(test)]
mod tests;
