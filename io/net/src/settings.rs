//! Settings of the sockets of a gateway thread.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use pitlane_config::{NetConfig, NetDriver};

use super::busy_poll::BusyPolling;

/// The settings of one thread's sockets.
#[derive(Clone, Debug)]
pub struct NetSettings {
    pub driver: DriverKind,
    /// Maximum number of connections of all listeners together. Each may take `input_bytes_max` and
    /// `output_bytes_max`.
    pub connections_max: u32,
    /// Maximum number of connections from one address; with IPv6 from one /64 network, because that
    /// is what one host has.
    pub per_peer_max: u32,
    /// Maximum number of bytes read from one connection in one cycle, so that none starves the
    /// others.
    pub read_bytes: usize,
    pub keep_alive: KeepAlive,
    /// Time that sent bytes may stay unacknowledged before the connection is closed.
    pub user_timeout: Duration,
    /// Time that a finishing connection may take to accept the rest and to close its own side.
    pub linger: Duration,
    /// How a read, and a wait, poll the network card itself. Only for cards whose driver supports
    /// it.
    pub busy_polling: Option<BusyPolling>,
}

impl NetSettings {
    /// Creates the settings from the configuration.
    pub fn of(config: &NetConfig) -> NetSettings {
        let usual = NetSettings::default();
        let idle = match config.keep_alive_s {
            0 => NEVER,
            seconds => Duration::from_secs(seconds as u64),
        };
        NetSettings {
            driver: match config.driver {
                NetDriver::Epoll => DriverKind::Epoll,
                NetDriver::Uring => DriverKind::Uring,
            },
            connections_max: config.connections_max,
            per_peer_max: config.per_peer_max,
            read_bytes: config.read_buffer_bytes,
            keep_alive: KeepAlive { idle, ..usual.keep_alive },
            user_timeout: Duration::from_millis(config.user_timeout_ms as u64),
            busy_polling: (config.busy_poll_us > 0).then_some(BusyPolling {
                usecs: config.busy_poll_us,
                packets: config.busy_poll_packets,
                prefer: config.busy_poll_prefer,
            }),
            ..usual
        }
    }
}

/// Close to the longest idle time that the system accepts.
const NEVER: Duration = Duration::from_secs(30_000);

impl Default for NetSettings {
    fn default() -> NetSettings {
        NetSettings {
            driver: DriverKind::Epoll,
            connections_max: 10_000,
            per_peer_max: 10_000,
            read_bytes: 32 * 1024,
            keep_alive: KeepAlive::default(),
            user_timeout: Duration::from_secs(30),
            linger: Duration::from_secs(1),
            busy_polling: None,
        }
    }
}

/// Keep-alive times: a vanished peer is noticed after `idle + probes * interval`.
#[derive(Clone, Copy, Debug)]
pub struct KeepAlive {
    pub idle: Duration,
    pub interval: Duration,
    pub probes: u32,
}

impl Default for KeepAlive {
    fn default() -> KeepAlive {
        KeepAlive { idle: Duration::from_secs(30), interval: Duration::from_secs(10), probes: 3 }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DriverKind {
    Epoll,
    /// Falls back to [`DriverKind::Epoll`] where the host forbids io_uring.
    Uring,
}

/// The settings of one listener and of its connections.
#[derive(Clone, Debug)]
pub struct ListenerSettings {
    /// Address; port 0 selects any free port.
    pub address: SocketAddr,
    /// TLS configuration; connections use plain text without one.
    pub tls: Option<Arc<rustls::ServerConfig>>,
    pub connections_max: u32,
    /// Maximum number of connections that the system queues until they are accepted.
    pub backlog: i32,
    /// Size of the kernel's send buffer of each connection, in bytes; 0 for the system's default. A
    /// small one reveals a slow reader early.
    pub send_kernel_bytes: usize,
    pub limits: BufferLimits,
    /// Time limit from the connection to the end of the TLS handshake.
    pub handshake: Duration,
    /// Time limit from there to the first byte. A client that stays silent that long is a scanner
    /// or a mistake.
    pub first_byte: Duration,
}

impl ListenerSettings {
    pub fn at(address: SocketAddr) -> ListenerSettings {
        ListenerSettings {
            address,
            tls: None,
            connections_max: u32::MAX,
            backlog: 1_024,
            send_kernel_bytes: 0,
            limits: BufferLimits::default(),
            handshake: Duration::from_secs(10),
            first_byte: Duration::from_secs(30),
        }
    }
}

/// The target of an outgoing connection, and its settings.
#[derive(Clone, Debug)]
pub struct ConnectTarget {
    pub address: SocketAddr,
    /// TLS configuration, and the name that the peer must prove.
    pub tls: Option<(Arc<rustls::ClientConfig>, rustls::pki_types::ServerName<'static>)>,
    pub limits: BufferLimits,
}

/// Memory limits of one connection. With TLS, one cycle's read and 64 KiB of encrypted bytes come
/// on top.
#[derive(Clone, Copy, Debug)]
pub struct BufferLimits {
    /// Bytes received and not yet consumed: at least the longest message of the protocol.
    pub input_bytes_max: usize,
    /// Bytes appended and not yet accepted by the system.
    pub output_bytes_max: usize,
}

impl Default for BufferLimits {
    fn default() -> BufferLimits {
        BufferLimits { input_bytes_max: 256 * 1024, output_bytes_max: 1024 * 1024 }
    }
}
