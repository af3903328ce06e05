//! A bound listener, and accepting connections without blocking.

use std::fs::File;
use std::io;
use std::net::{SocketAddr, TcpListener, TcpStream};

use pitlane_engine::time::{NS_PER_MS, Timestamp};
use rustix::io::Errno;
use socket2::{Domain, Protocol, SockRef, Socket, TcpKeepalive, Type};

use super::driver::ListenerWatch;
use super::settings::{ListenerSettings, NetSettings};

/// Pause of accepting after the system lacked a resource.
const PAUSE_NS: u64 = 100 * NS_PER_MS;

/// Number of a listener within one thread, in the order of registration.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct ListenerId(pub u8);

/// A bound listener as users see it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BoundAddress {
    pub name: &'static str,
    pub address: SocketAddr,
}

/// A bound socket, for the thread that will accept. The thread that starts the others binds it, so
/// that a port in use is reported at once.
#[derive(Debug)]
pub struct Listener {
    pub(super) socket: TcpListener,
    pub(super) settings: ListenerSettings,
    address: SocketAddr,
}

impl Listener {
    pub fn bind(settings: ListenerSettings) -> io::Result<Listener> {
        let address = settings.address;
        let socket = Socket::new(Domain::for_address(address), Type::STREAM, Some(Protocol::TCP))?;
        // A restart does not wait for the connections of the previous process to expire.
        socket.set_reuse_address(true)?;
        if address.is_ipv6() && address.ip().is_unspecified() {
            // `[::]` means all IPv4 and IPv6 addresses.
            socket.set_only_v6(false)?;
        }
        if settings.send_kernel_bytes > 0 {
            // Accepted connections inherit the size.
            socket.set_send_buffer_size(settings.send_kernel_bytes)?;
        }
        socket.bind(&address.into())?;
        socket.listen(settings.backlog)?;
        socket.set_nonblocking(true)?;
        let socket = TcpListener::from(socket);
        let address = socket.local_addr()?;
        Ok(Listener { socket, settings, address })
    }

    /// Returns the bound address, with the actual port.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Returns another handle of the same socket: several threads may accept from it, and each
    /// connection goes to one of them.
    pub fn try_clone(&self) -> io::Result<Listener> {
        let socket = self.socket.try_clone()?;
        Ok(Listener { socket, settings: self.settings.clone(), address: self.address })
    }
}

/// A listener in service.
pub(super) struct ActiveListener {
    /// Bound socket; `None` after it was shut.
    pub(super) socket: Option<TcpListener>,
    pub(super) settings: ListenerSettings,
    pub(super) watch: Option<ListenerWatch>,
    pub(super) connections: u32,
    /// Whether a connection may be pending.
    pub(super) ready: bool,
    /// Time before which no connection is accepted.
    pub(super) paused_until: Option<Timestamp>,
    /// Spare descriptor, released when the process has none left, so that a pending client can be
    /// accepted and closed.
    reserve: Option<File>,
}

pub(super) enum AcceptOutcome {
    Connection(TcpStream, SocketAddr),
    /// The pending connection is gone.
    Aborted,
    FdLimit,
    WouldBlock,
}

impl ActiveListener {
    pub(super) fn new(listener: Listener) -> ActiveListener {
        let Listener { socket, settings, .. } = listener;
        let (watch, connections, ready, paused_until) = (None, 0, true, None);
        let socket = Some(socket);
        ActiveListener { socket, settings, watch, connections, ready, paused_until, reserve: reserve() }
    }

    /// Stops accepting; existing connections stay.
    pub(super) fn close(&mut self) {
        (self.socket, self.watch, self.ready, self.reserve) = (None, None, false, None);
    }

    pub(super) fn is_open(&self, now: Timestamp) -> bool {
        self.ready && self.socket.is_some() && self.paused_until.is_none_or(|until| until <= now)
    }

    pub(super) fn accept(&mut self, now: Timestamp) -> AcceptOutcome {
        self.paused_until = None;
        let Some(socket) = &self.socket else { return AcceptOutcome::WouldBlock };
        let error = match socket.accept() {
            Ok((stream, peer)) => return AcceptOutcome::Connection(stream, peer),
            Err(error) => error,
        };
        match Errno::from_io_error(&error) {
            Some(Errno::AGAIN) => {
                self.ready = false;
                AcceptOutcome::WouldBlock
            }
            Some(Errno::MFILE | Errno::NFILE) => self.reject_pending(now),
            // These are errors of the pending connection.
            Some(Errno::CONNABORTED | Errno::PROTO | Errno::PERM | Errno::INTR) => AcceptOutcome::Aborted,
            _ => {
                self.pause(now);
                AcceptOutcome::Aborted
            }
        }
    }

    pub(super) fn pause(&mut self, now: Timestamp) {
        self.ready = true;
        self.paused_until = Some(now.plus(PAUSE_NS));
    }

    /// Handles the lack of descriptors: accepts with the spare one and closes, so that the client
    /// learns it and does not wait.
    fn reject_pending(&mut self, now: Timestamp) -> AcceptOutcome {
        let accepts = |socket: &TcpListener| socket.accept().is_ok();
        let rejected = self.reserve.take().is_some() && self.socket.as_ref().is_some_and(accepts);
        self.reserve = reserve();
        if self.reserve.is_none() || !rejected {
            self.pause(now);
        }
        if rejected { AcceptOutcome::FdLimit } else { AcceptOutcome::WouldBlock }
    }
}

fn reserve() -> Option<File> {
    File::open("/dev/null").ok()
}

/// Sets the options of a connection. Fails if the peer is gone already.
pub(super) fn prepare(stream: &TcpStream, settings: &NetSettings) -> io::Result<()> {
    stream.set_nonblocking(true)?;
    let socket = SockRef::from(stream);
    socket.set_tcp_nodelay(true)?;
    let times = settings.keep_alive;
    let keep_alive =
        TcpKeepalive::new().with_time(times.idle).with_interval(times.interval).with_retries(times.probes);
    socket.set_tcp_keepalive(&keep_alive)?;
    #[cfg(target_os = "linux")]
    {
        socket.set_tcp_user_timeout(Some(settings.user_timeout))?;
        if let Some(polling) = settings.busy_polling {
            // Raising the value needs a privilege; without it the connection works, with higher
            // latency.
            _ = socket.set_busy_poll(polling.usecs);
        }
    }
    Ok(())
}
