//! The events that the http thread sends to main.

/// Events that main receives.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HttpEvent {
    /// The view has the complete state of every shard. Sent once.
    Complete,
    /// A client has requested an orderly shutdown.
    ExitRequested,
    /// A client has requested a reload of the reference data.
    ReloadRequested,
    /// After [`super::Remote::close`]: every connection is closed and no response is pending;
    /// nothing is sent any more. Sent once.
    Quiet,
}
