//! The audit log: every administrative act, on disk before it happens. Who, from where, what, when; what came of it follows in a
//! line of its own.
//!
//! ```text
//! {"seq":7,"time":"…","who":"alice","role":"admin","from":"10.0.0.7","via":"REST","act":"PUT /rest/…","body":"{…}","prev":"…","hash":"…"}
//! {"seq":8,"time":"…","of":7,"outcome":"200","prev":"…","hash":"…"}
//! ```
//!
//! Each line carries the hash of the one before and its own, over everything that stands before it. So no line can be changed,
//! left out or put in without every later hash being made anew. Where the chain has come to is kept outside of it, too: see
//! `anchor`.
//!
//! ```text
//! http, gateways ── Pen: note ──► lane ──► Scribe in the thread `auth`: lines, one sync for all that wait
//!       ▲                                     │
//!       └────────── poll: Noted ◄── lane ◄────┘
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

pub use self::anchor::Anchor;
pub use self::chain::Link;
pub use self::client::{AuditClient, Busy, Noted};
pub use self::writer::AuditWriter;
use crate::role::Role;

/// Longest description of an act, and longest body, that are kept whole; of a longer one, the beginning.
pub const ACT_BYTES_MAX: usize = 512;

/// Something an administrator wants to do.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Act {
    pub who: Arc<str>,
    pub role: Role,
    pub from: IpAddr,
    /// The interface it came by: `REST`, `STOMP`, `FIX`, or `SIGNAL`.
    pub via: &'static str,
    /// Without secrets: nothing of a header.
    pub what: String,
    /// What was sent along, without secrets; perhaps nothing.
    pub body: String,
}

/// Why the log cannot be written or trusted.
#[derive(Debug)]
pub enum AuditError {
    Io(PathBuf, io::Error),
    /// A line that does not follow from the one before, counted from 1.
    Broken(PathBuf, usize, &'static str),
    /// As many files as there may be: the older ones have to be put away.
    Full(PathBuf),
    /// Lines that were written and are not there: the first and the last of them.
    Missing(PathBuf, u64, u64),
    /// A line that has another hash than it had.
    Rewritten(PathBuf, u64),
}

impl fmt::Display for AuditError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            AuditError::Io(path, error) => write!(f, "{}: {error}", path.display()),
            AuditError::Broken(path, line, why) => {
                write!(f, "{}:{line}: {why}; look with pitlane audit verify", path.display())
            }
            AuditError::Full(path) => write!(f, "{}: full: put the older files away", path.display()),
            AuditError::Missing(path, first, last) => write!(
                f,
                "{}: lines {first} to {last} were written and are missing; look with pitlane audit verify, restore them, \
                 or move the file audit-anchor away to go on without them",
                path.display()
            ),
            AuditError::Rewritten(path, line) => write!(
                f,
                "{}: line {line} has another hash than was written; look with pitlane audit verify, restore it, \
                 or move the file audit-anchor away to go on with what is there",
                path.display()
            ),
        }
    }
}

impl std::error::Error for AuditError {}

#[cfg(test)]
mod tests;
