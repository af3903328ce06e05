//! The HTTP port: `[http]` and `[https]`.

use std::net::SocketAddr;

use super::section::Section;

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HttpConfig {
    pub listen: Option<SocketAddr>,
    /// Host in addresses that the service publishes; None: the host that the client used.
    pub public_host: Option<String>,
    /// Names accepted in Host headers, besides our addresses and localhost.
    pub hosts_allowed: Vec<String>,
    pub cors_origins: Vec<String>,
    pub body_bytes_max: usize,
    pub head_bytes_max: usize,
    pub head_timeout_ms: u32,
    pub idle_timeout_ms: u32,
    pub connections_max: u32,
    pub per_peer_max: u32,
    /// Percentage of all connections reserved for clients that have logged in and for health
    /// checks.
    pub reserved_percent: u32,
    /// Requests per second; zero: no limit.
    pub rate_per_peer: u32,
    pub rate_per_login: u32,
    /// REST orders known at once, finished ones included.
    pub orders_max: u32,
}

impl HttpConfig {
    pub(super) fn read(section: &mut Section<'_>) -> HttpConfig {
        HttpConfig {
            listen: section.address("listen"),
            public_host: section.optional("public_host"),
            hosts_allowed: section.texts("hosts_allowed"),
            cors_origins: section.texts("cors_origins"),
            body_bytes_max: section.number("body_bytes_max", 1_024..=16 << 20),
            head_bytes_max: section.number("head_bytes_max", 8_192..=1 << 20),
            head_timeout_ms: section.number("head_timeout_ms", 100..=60_000),
            idle_timeout_ms: section.number("idle_timeout_ms", 1_000..=3_600_000),
            connections_max: section.number("connections_max", 1..=1_000_000),
            per_peer_max: section.number("per_peer_max", 1..=1_000_000),
            reserved_percent: section.number("reserved_percent", 0..=50),
            rate_per_peer: section.number("rate_per_peer", 0..=10_000_000),
            rate_per_login: section.number("rate_per_login", 0..=10_000_000),
            orders_max: section.number("orders_max", 1_000..=10_000_000),
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HttpsConfig {
    pub listen: Option<SocketAddr>,
}

impl HttpsConfig {
    pub(super) fn read(section: &mut Section<'_>) -> HttpsConfig {
        HttpsConfig { listen: section.address("listen") }
    }
}
