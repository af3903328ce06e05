//! Tokens: the numbers by which a driver names what is ready.

/// Tokens: first the wake-up, then the listeners, then one for each connection slot.
pub(super) const WAKEUP: usize = 0;
pub(super) const FIRST_LISTENER: usize = 1;
/// Maximum number of listeners of a thread: FIX and STOMP, each plain and with TLS, at a few
/// addresses.
pub(super) const LISTENERS_MAX: usize = 63;
pub(super) const FIRST_SLOT: usize = FIRST_LISTENER + LISTENERS_MAX;

/// Readiness of one token: an operation can proceed without waiting. It may be reported spuriously,
/// but is never missed.
#[derive(Clone, Copy, Debug)]
pub(super) struct ReadyToken {
    pub(super) token: usize,
    pub(super) readable: bool,
    pub(super) writable: bool,
    /// Whether the peer will send no more: reading continues until the end of the stream.
    pub(super) ended: bool,
}
