//! How the broker of one thread is set up.

use pitlane_engine::time::NS_PER_S;

use super::access::StompAccess;
use super::decode::FrameLimits;
use super::throttle::Throttle;
use super::topic::Naming;

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BrokerSettings {
    /// Names itself in CONNECTED: product and version.
    pub server: String,
    /// Of this platform, for the UUIDs of transactions.
    pub instance: u64,
    pub naming: Naming,
    pub throttle: Throttle,
    /// What everybody may do; None: the caller is asked to verify each login.
    pub anonymous_access: Option<StompAccess>,
    /// Whether every tick is told here. If not, one that nobody watches may be old, and is not offered as the newest.
    pub receives_all_ticks: bool,
    /// Connections at once, over all transports of this thread. An idle one costs less than 1 KiB.
    pub sessions_max: u32,
    pub limits: StompLimits,
}

/// What a client may ask of us, and how much it may leave unread.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StompLimits {
    pub frame: FrameLimits,
    /// A stranger who says nothing for so long is sent away.
    pub connect_ns_max: u64,
    /// Octets wait and not one was taken for so long: nobody reads.
    pub stuck_ns_max: u64,
    /// Of one session; a place among them has 16 bits.
    pub subscriptions_max: u16,
    /// Unacknowledged messages of one subscription: who asks for acknowledgements and gives none stops here.
    pub window_max: u32,
    /// Encoded octets that the kernel has not taken; above them nothing more is encoded.
    pub mark_bytes: usize,
    /// Market data topics that wait, over all subscriptions of a session. Each takes [`super::slots::SLOT_BYTES_MAX`] at most.
    pub slots_max: usize,
    /// Other messages that wait.
    pub backlog_bytes_max: usize,
    pub backlog_max: usize,
    /// Memory for everything that waits for all sessions of the broker together. Above it those that hold most are ended, since each of
    /// thousands of slow readers may be within its own limits.
    pub total_bytes_max: usize,
    /// Given to one connection in one turn, so that others get theirs.
    pub turn_bytes_max: usize,
    pub turn_frames_max: usize,
}

impl Default for BrokerSettings {
    fn default() -> BrokerSettings {
        BrokerSettings {
            server: concat!("Pitlane/", env!("CARGO_PKG_VERSION")).to_string(),
            instance: 0,
            naming: Naming::default(),
            throttle: Throttle::default(),
            anonymous_access: Some(StompAccess::default()),
            receives_all_ticks: true,
            sessions_max: 10_000,
            limits: StompLimits::default(),
        }
    }
}

impl Default for StompLimits {
    fn default() -> StompLimits {
        StompLimits {
            frame: FrameLimits::default(),
            connect_ns_max: 10 * NS_PER_S,
            stuck_ns_max: 10 * NS_PER_S,
            subscriptions_max: 4_096,
            window_max: 1_000,
            mark_bytes: 256 * 1_024,
            slots_max: 65_536,
            backlog_bytes_max: 4 * 1_024 * 1_024,
            backlog_max: 10_000,
            total_bytes_max: 128 * 1_024 * 1_024,
            turn_bytes_max: 64 * 1_024,
            turn_frames_max: 256,
        }
    }
}
