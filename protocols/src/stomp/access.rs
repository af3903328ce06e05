//! Permissions of a user, as given by the caller that verified the login.

use std::fmt;

/// Permissions. By default a user can read everything and send nothing.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct StompAccess {
    pub strategies: StrategyAccess,
    /// Whether SEND to `generic-event.<name>` is permitted.
    pub may_send: bool,
}

/// Strategies whose orders, positions, transactions and cash are visible.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum StrategyAccess {
    #[default]
    All,
    Only(Vec<String>),
}

/// A passcode. `Debug` never shows it.
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_user_sees_the_named_strategies_or_all() {
        let only = StrategyAccess::Only(vec!["A".to_string(), "B".to_string()]);
        let access = StompAccess { strategies: only, may_send: false };
        assert_eq!(["A", "B", "C", ""].map(|name| access.sees(name)), [true, true, false, false]);
        assert!(StompAccess::default().sees("C"));
        assert!(!format!("{:?}", Passcode("secret".to_string())).contains("secret"));
    }
}
