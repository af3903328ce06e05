//! How the sockets of a gateway thread are set up. Where the numbers come from is not known here.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use crate::config::{Driver, Net};

/// Of one thread's sockets.
#[derive(Clone, Debug)]
pub struct NetSettings {
    pub driver: DriverKind,
    /// Connections of all listeners together. Each may take `input_bytes_max` and `output_bytes_max`.
    pub connections_max: u32,
    /// Connections from one address; from one /64 network with IPv6, since that is what one host has.
    pub per_peer_max: u32,
    /// Most that is read from one connection in one cycle, so that none starves the others.
    pub read_bytes: usize,
    pub keep_alive: KeepAlive,
    /// How long sent bytes may stay without an acknowledgement before the connection is given up.
    pub user_timeout: Duration,
    /// How long a connection that we finish may take to accept the rest and to say goodbye itself.
    pub linger: Duration,
    /// Microseconds in which a read asks the network card itself. Only for cards whose driver can.
    pub busy_poll_us: Option<u32>,
}

impl NetSettings {
    /// As the config has it.
    pub fn of(config: &Net) -> NetSettings {
        let usual = NetSettings::default();
        let idle = match config.keep_alive_s {
            0 => NEVER,
            seconds => Duration::from_secs(seconds as u64),
        };
        NetSettings {
            driver: match config.driver {
                Driver::Epoll => DriverKind::Epoll,
                Driver::Uring => DriverKind::Uring,
            },
            connections_max: config.connections_max,
            per_peer_max: config.per_peer_max,
            read_bytes: config.read_buffer_bytes,
            keep_alive: KeepAlive { idle, ..usual.keep_alive },
            user_timeout: Duration::from_millis(config.user_timeout_ms as u64),
            busy_poll_us: (config.busy_poll_us > 0).then_some(config.busy_poll_us),
            ..usual
        }
    }
}

/// Longest silence that the system can be told to bear, nearly.
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
            busy_poll_us: None,
        }
    }
}

/// A peer that vanished is noticed after `idle + probes * interval`.
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
    /// Falls back to [`DriverKind::Epoll`] where the host forbids it.
    Uring,
}

/// Of one listener and of the connections that come through it.
#[derive(Clone, Debug)]
pub struct ListenerSettings {
    /// Port 0: any free one.
    pub address: SocketAddr,
    /// Connections speak TLS with this, and plain text without.
    pub tls: Option<Arc<rustls::ServerConfig>>,
    pub connections_max: u32,
    /// Connections that the system keeps until we accept them.
    pub backlog: i32,
    /// The kernel's send buffer of each connection; 0: the system's own. A small one shows early that a reader is slow.
    pub send_kernel_bytes: usize,
    pub limits: Limits,
    /// From the connection to the end of the TLS handshake.
    pub handshake: Duration,
    /// From there to the first byte. Whoever says nothing so long is a scanner or a mistake.
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
            limits: Limits::default(),
            handshake: Duration::from_secs(10),
            first_byte: Duration::from_secs(30),
        }
    }
}

/// Whom we call, and how.
#[derive(Clone, Debug)]
pub struct Call {
    pub address: SocketAddr,
    /// Who he must be.
    pub tls: Option<(Arc<rustls::ClientConfig>, rustls::pki_types::ServerName<'static>)>,
    pub limits: Limits,
}

/// Memory that one connection may take. With TLS, add what one cycle reads and 64 KiB of encrypted bytes.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// Received and not yet consumed: at least the longest message of the protocol.
    pub input_bytes_max: usize,
    /// Said and not yet taken by the system.
    pub output_bytes_max: usize,
}

impl Default for Limits {
    fn default() -> Limits {
        Limits { input_bytes_max: 256 * 1024, output_bytes_max: 1024 * 1024 }
    }
}
