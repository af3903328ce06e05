//! A bound listener, and accepting without ever standing still.

use std::fs::File;
use std::io;
use std::net::{SocketAddr, TcpListener, TcpStream};

use pitlane_engine::time::{NS_PER_MS, Timestamp};
use rustix::io::Errno;
use socket2::{Domain, Protocol, SockRef, Socket, TcpKeepalive, Type};

use super::driver::Watch;
use super::settings::{ListenerSettings, NetSettings};

/// How long nobody is accepted after the system refused for want of something.
const PAUSE_NS: u64 = 100 * NS_PER_MS;

/// Numbers the listeners of one thread, in the order in which they were given to it.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct ListenerId(pub u8);

/// A bound listener as users see it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BoundAddress {
    pub name: &'static str,
    pub address: SocketAddr,
}

/// A bound socket, to be given to the thread that shall accept. Bound by whoever starts the threads, so that a port in use is told at once.
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
        // A restart does not wait for the connections of the run before.
        socket.set_reuse_address(true)?;
        if address.is_ipv6() && address.ip().is_unspecified() {
            // `[::]` means everybody.
            socket.set_only_v6(false)?;
        }
        if settings.send_kernel_bytes > 0 {
            // Connections inherit it.
            socket.set_send_buffer_size(settings.send_kernel_bytes)?;
        }
        socket.bind(&address.into())?;
        socket.listen(settings.backlog)?;
        socket.set_nonblocking(true)?;
        let socket = TcpListener::from(socket);
        let address = socket.local_addr()?;
        Ok(Listener { socket, settings, address })
    }

    /// With the port that it really has.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Another handle of the same socket: several threads may accept from it, and each connection comes to one of them.
    pub fn try_clone(&self) -> io::Result<Listener> {
        let socket = self.socket.try_clone()?;
        Ok(Listener { socket, settings: self.settings.clone(), address: self.address })
    }
}

/// A listener in service.
pub(super) struct Door {
    /// None: it is shut.
    pub(super) socket: Option<TcpListener>,
    pub(super) settings: ListenerSettings,
    pub(super) watch: Option<Watch>,
    pub(super) connections: u32,
    /// Somebody may be waiting.
    pub(super) ready: bool,
    /// Nobody is accepted before this.
    pub(super) paused_until: Option<Timestamp>,
    /// Let go when the process has no descriptor left, so that whoever waits can be accepted and turned away.
    reserve: Option<File>,
}

pub(super) enum AcceptOutcome {
    Connection(TcpStream, SocketAddr),
    /// There was somebody; no more.
    Aborted,
    FdLimit,
    WouldBlock,
}

impl Door {
    pub(super) fn new(listener: Listener) -> Door {
        let Listener { socket, settings, .. } = listener;
        let (watch, connections, ready, paused_until) = (None, 0, true, None);
        let socket = Some(socket);
        Door { socket, settings, watch, connections, ready, paused_until, reserve: reserve() }
    }

    /// Nobody comes in any more; those who are in stay.
    pub(super) fn shut(&mut self) {
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
            Some(Errno::MFILE | Errno::NFILE) => self.turn_away(now),
            // Faults of the connection that was to be accepted.
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

    /// No descriptor left: accepts with the reserve and hangs up, so that the client knows and does not wait.
    fn turn_away(&mut self, now: Timestamp) -> AcceptOutcome {
        let accepts = |socket: &TcpListener| socket.accept().is_ok();
        let turned_away = self.reserve.take().is_some() && self.socket.as_ref().is_some_and(accepts);
        self.reserve = reserve();
        if self.reserve.is_none() || !turned_away {
            self.pause(now);
        }
        if turned_away { AcceptOutcome::FdLimit } else { AcceptOutcome::WouldBlock }
    }
}

fn reserve() -> Option<File> {
    File::open("/dev/null").ok()
}

/// What every connection gets. Fails when the peer is gone already.
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
        if let Some(us) = settings.busy_poll_us {
            // Raising it needs a privilege; without it the connection is as good, only not as quick.
            _ = socket.set_busy_poll(us);
        }
    }
    Ok(())
}

/// The peer hears at once that its words have come. Unless it has asked not to (Nagle), it waits for that before it says more, and where
/// nothing is answered the system lets it wait for 40 ms: after the last word of a handshake, for one.
pub(crate) fn acknowledge<'a, S>(stream: &'a S)
where
    SockRef<'a>: From<&'a S>,
{
    #[cfg(target_os = "linux")]
    {
        // Without it the connection is as good, only not as quick.
        _ = SockRef::from(stream).set_tcp_quickack(true);
    }
}
