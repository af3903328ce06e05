//! Who may do what.

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
