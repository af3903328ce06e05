//! Sockets of FIX and STOMP: `[net]`.

use super::section::Section;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NetConfig {
    pub driver: NetDriver,
    pub connections_max: u32,
    pub per_peer_max: u32,
    /// Bytes read at most from one connection in one cycle.
    pub read_buffer_bytes: usize,
    /// The kernel's send buffer, in bytes; 0: the system's default.
    pub send_kernel_bytes: u32,
    /// 0: never.
    pub keep_alive_s: u32,
    /// 0: the system's default.
    pub user_timeout_ms: u32,
    pub backlog: u32,
    /// 0: off.
    pub busy_poll_us: u32,
    /// 0: the kernel's default.
    pub busy_poll_packets: u16,
    pub busy_poll_prefer: bool,
    pub send_first: SendFirst,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NetDriver {
    Epoll,
    Uring,
}

/// The protocol whose output a gateway sends first.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum SendFirst {
    #[default]
    Fix,
    Stomp,
}

impl NetConfig {
    pub(super) fn read(section: &mut Section<'_>) -> NetConfig {
        NetConfig {
            driver: section.word("driver", &[("epoll", NetDriver::Epoll), ("uring", NetDriver::Uring)]),
            connections_max: section.number("connections_max", 1..=1_000_000),
            per_peer_max: section.number("per_peer_max", 1..=1_000_000),
            read_buffer_bytes: section.number("read_buffer_bytes", 4_096..=1 << 20),
            send_kernel_bytes: section.number("send_kernel_bytes", 0..=1 << 30),
            keep_alive_s: section.number("keep_alive_s", 0..=86_400),
            user_timeout_ms: section.number("user_timeout_ms", 0..=3_600_000),
            backlog: section.number("backlog", 1..=65_535),
            busy_poll_us: section.number("busy_poll_us", 0..=1_000),
            busy_poll_packets: section.number("busy_poll_packets", 0..=64),
            busy_poll_prefer: section.flag("busy_poll_prefer"),
            send_first: section.word("send_first", &[("fix", SendFirst::Fix), ("stomp", SendFirst::Stomp)]),
        }
    }
}
