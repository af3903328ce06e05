//! The rights of a login.

use std::fmt;

/// Read, Trade and Admin each include the rights of the role before. Strategy comes first because
/// it has none of their rights.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Role {
    /// Runs the processes of its strategies over the strategy link, and nothing else.
    Strategy,
    /// Reads everything that is not secret.
    Read,
    /// Sends, changes and cancels orders, and subscribes to market data.
    Trade,
    /// Changes shared state: money, limits, sessions, the service itself.
    Admin,
}

impl Role {
    /// All roles with their names in files and output, in ascending order.
    pub const WORDS: [(&str, Role); 4] =
        [("strategy", Role::Strategy), ("read", Role::Read), ("trade", Role::Trade), ("admin", Role::Admin)];

    /// The roles of people and programs that use the interfaces of the platform.
    pub const CLIENT_WORDS: [(&str, Role); 3] =
        [("read", Role::Read), ("trade", Role::Trade), ("admin", Role::Admin)];
}

impl fmt::Display for Role {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(Role::WORDS[*self as usize].0)
    }
}
