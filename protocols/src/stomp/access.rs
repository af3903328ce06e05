//! What a user may do here, as the caller who verified the login says.

/// Default: everything can be read and nothing sent.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Access {
    pub strategies: Strategies,
    /// SEND to `generic-event.<name>`.
    pub may_send: bool,
}

/// Whose orders, positions, transactions and cash may be seen.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Strategies {
    #[default]
    All,
    Only(Vec<String>),
}

impl Access {
    pub fn sees(&self, strategy: &str) -> bool {
        match &self.strategies {
            Strategies::All => true,
            Strategies::Only(names) => names.iter().any(|name| name == strategy),
        }
    }
}
