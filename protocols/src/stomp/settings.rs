//! Settings of one thread's broker.

use pitlane_engine::time::NS_PER_S;

use super::access::StompAccess;
use super::decode::FrameLimits;
use super::throttle::Throttle;
use super::topic::Naming;

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BrokerSettings {
    /// Product and version in CONNECTED.
    pub server: String,
    /// Id of this installation, for the UUIDs of transactions.
    pub instance: u64,
    pub naming: Naming,
    pub throttle: Throttle,
    /// Permissions of every client without login; `None` means that the caller verifies each login.
    pub anonymous_access: Option<StompAccess>,
    /// Whether the broker receives every tick. If not, a tick of an unwatched security may be
    /// outdated and is not offered as the newest.
    pub receives_all_ticks: bool,
    /// Connections at once, over all transports of this thread. An idle one costs less than 1 KiB.
    pub sessions_max: u32,
    pub limits: StompLimits,
}

/// Limits of a client's requests and of its unread output.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StompLimits {
    pub frame: FrameLimits,
    /// Time to CONNECT, after which a connection is closed.
    pub connect_ns_max: u64,
    /// Time without any octet taken while output waits.
    pub stuck_ns_max: u64,
    /// Subscriptions of one session; a place has 16 bits.
    pub subscriptions_max: u16,
    /// Unacknowledged messages of one subscription. A client that requests acknowledgements and
    /// sends none stops here.
    pub window_max: u32,
    /// Encoded octets that the kernel has not taken, above which nothing more is encoded.
    pub mark_bytes: usize,
    /// Waiting market data topics of all subscriptions of a session. Each takes at most
    /// [`super::slots::SLOT_BYTES_MAX`].
    pub slots_max: usize,
    /// Octets and number of other waiting messages.
    pub backlog_bytes_max: usize,
    pub backlog_max: usize,
    /// Memory for the waiting output of all sessions of the broker. Above it the sessions that hold
    /// most are ended, because each of thousands of slow readers may be within its own limits.
    pub total_bytes_max: usize,
    /// Octets and frames for one connection in one turn, so that all connections get their share.
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
