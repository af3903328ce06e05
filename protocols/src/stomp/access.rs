//! What a user may do here, as the caller who verified the login says.

use std::fmt;

/// Default: everything can be read and nothing sent.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct StompAccess {
    pub strategies: StrategyAccess,
    /// SEND to `generic-event.<name>`.
    pub may_send: bool,
}

/// Whose orders, positions, transactions and cash may be seen.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum StrategyAccess {
    #[default]
    All,
    Only(Vec<String>),
}

/// A passcode. It is never shown, not even to those who debug.
#[derive(Clone, PartialEq, Eq)]
pub struct Passcode(pub String);

impl fmt::Debug for Passcode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("***")
    }
}

impl StompAccess {
    pub fn sees(&self, strategy: &str) -> bool {
        match &self.strategies {
            StrategyAccess::All => true,
            StrategyAccess::Only(names) => names.iter().any(|name| name == strategy),
        }
    }
}
