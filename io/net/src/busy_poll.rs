//! Busy polling: while a thread waits, the kernel polls the network card itself.

/// How a driver polls network cards before it blocks.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct BusyPolling {
    /// Time to poll, in microseconds.
    pub usecs: u32,
    /// Packets taken from a card at a time; 0 for the kernel's default. epoll only.
    pub packets: u16,
    /// Whether polling takes precedence over interrupts, which are deferred meanwhile.
    pub prefer: bool,
}
