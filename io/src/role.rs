//! What a login may do.

use std::fmt;

/// Each may all that the one before may.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Role {
    /// Sees everything that is not secret.
    Read,
    /// Sends, changes and cancels orders, and subscribes to market data.
    Trade,
    /// Changes what others depend on: money, limits, sessions, the service itself.
    Admin,
}

impl Role {
    /// With the words for them, wherever they are written.
    pub const WORDS: [(&str, Role); 3] =
        [("read", Role::Read), ("trade", Role::Trade), ("admin", Role::Admin)];
}

impl fmt::Display for Role {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(Role::WORDS[*self as usize].0)
    }
}
