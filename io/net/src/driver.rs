//! The interface between sockets and the system: readiness, and reading and writing without
//! waiting.
//!
//! There are two drivers: epoll everywhere, io_uring where the host allows it. A driver knows
//! tokens and byte streams; connections, TLS and limits are implemented above it and are the same
//! for both.

use std::io::{self, Read, Write};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::time::Duration;

use pitlane_runtime::wakeup::Wakeup;

use super::busy_poll::BusyPolling;
use super::epoll::{self, Epoll};
use super::quick_ack::acknowledge;
use super::released_socket::ReleasedSocket;
use super::settings::DriverKind;
use super::token::ReadyToken;
#[cfg(target_os = "linux")]
use super::uring::{self, Uring};

/// Reason why a system other than Linux has no io_uring driver.
#[cfg(not(target_os = "linux"))]
const NOT_LINUX: &str = "only Linux has io_uring";

/// Returns whether the kernel grants a ring, or the reason why not: creates a small one and frees
/// it at once.
#[cfg(target_os = "linux")]
pub fn probe_ring() -> Result<(), String> {
    uring::probe()
}

/// Returns the reason why there is no ring.
#[cfg(not(target_os = "linux"))]
pub fn probe_ring() -> Result<(), String> {
    Err(NOT_LINUX.to_owned())
}

/// Returns whether a driver can poll network cards, or the reason why not.
pub fn probe_busy_poll(kind: DriverKind) -> Result<(), String> {
    let probed = BusyPolling { usecs: 1, ..BusyPolling::default() };
    let opened = SocketDriver::open(kind, Some(probed)).map_err(|error| error.to_string())?;
    opened.busy_poll_refused.map_or(Ok(()), Err)
}

/// A driver, with what the log says about it.
pub(super) struct OpenedDriver {
    pub driver: SocketDriver,
    /// Reason why the driver is not the configured one.
    pub fallback: Option<String>,
    /// Reason why the driver does not poll network cards as configured.
    pub busy_poll_refused: Option<String>,
}

pub(super) enum SocketDriver {
    Epoll(Epoll),
    #[cfg(target_os = "linux")]
    Uring(Box<Uring>),
}

impl SocketDriver {
    /// Opens the configured driver, or epoll where the host forbids it.
    pub(super) fn open(kind: DriverKind, busy_polling: Option<BusyPolling>) -> io::Result<OpenedDriver> {
        let fallback = match kind {
            DriverKind::Epoll => None,
            #[cfg(target_os = "linux")]
            DriverKind::Uring => match Uring::open(busy_polling) {
                Ok((uring, busy_poll_refused)) => {
                    let driver = SocketDriver::Uring(Box::new(uring));
                    return Ok(OpenedDriver { driver, fallback: None, busy_poll_refused });
                }
                Err(reason) => Some(reason),
            },
            #[cfg(not(target_os = "linux"))]
            DriverKind::Uring => Some(NOT_LINUX.to_owned()),
        };
        let epoll = Epoll::open()?;
        let busy_poll_refused = busy_polling.and_then(|wanted| epoll.set_busy_poll(wanted).err());
        Ok(OpenedDriver { driver: SocketDriver::Epoll(epoll), fallback, busy_poll_refused })
    }

    pub(super) fn kind(&self) -> DriverKind {
        match self {
            SocketDriver::Epoll(_) => DriverKind::Epoll,
            #[cfg(target_os = "linux")]
            SocketDriver::Uring(_) => DriverKind::Uring,
        }
    }

    pub(super) fn registrar(&self) -> io::Result<SocketRegistrar> {
        match self {
            SocketDriver::Epoll(epoll) => epoll.registrar().map(SocketRegistrar::Epoll),
            #[cfg(target_os = "linux")]
            SocketDriver::Uring(uring) => Ok(SocketRegistrar::Uring(uring.registrar())),
        }
    }

    pub(super) fn wakeup(&self) -> Wakeup {
        match self {
            SocketDriver::Epoll(epoll) => epoll.wakeup(),
            #[cfg(target_os = "linux")]
            SocketDriver::Uring(uring) => uring.wakeup(),
        }
    }

    /// Polls for readiness without waiting, and calls `inside` with the result. Streams are
    /// attached, read and written only there.
    pub(super) fn run_cycle<R>(&mut self, inside: impl FnOnce(&[ReadyToken]) -> R) -> R {
        match self {
            SocketDriver::Epoll(epoll) => epoll.run_cycle(inside),
            #[cfg(target_os = "linux")]
            SocketDriver::Uring(uring) => uring.run_cycle(inside),
        }
    }

    /// Runs `inside` without polling, where polling costs a system call. The next cycle reports
    /// readiness.
    pub(super) fn run_cycle_unpolled<R>(&mut self, inside: impl FnOnce(&[ReadyToken]) -> R) -> R {
        match self {
            SocketDriver::Epoll(_) => inside(&[]),
            #[cfg(target_os = "linux")]
            SocketDriver::Uring(uring) => uring.run_cycle(inside),
        }
    }

    /// Waits until a token is ready, the wake-up is triggered, or the time is over. The next cycle
    /// receives the readiness.
    pub(super) fn wait(&mut self, at_most: Duration) {
        match self {
            SocketDriver::Epoll(epoll) => epoll.wait(at_most),
            #[cfg(target_os = "linux")]
            SocketDriver::Uring(uring) => uring.wait(at_most),
        }
    }
}

/// Registers sockets with a driver.
pub(super) enum SocketRegistrar {
    Epoll(epoll::EpollRegistrar),
    #[cfg(target_os = "linux")]
    Uring(uring::UringRegistrar),
}

impl SocketRegistrar {
    pub(super) fn attach(&self, token: usize, stream: TcpStream) -> io::Result<SocketStream> {
        match self {
            SocketRegistrar::Epoll(registrar) => registrar.attach(token, stream).map(SocketStream::Epoll),
            #[cfg(target_os = "linux")]
            SocketRegistrar::Uring(registrar) => Ok(SocketStream::Uring(registrar.attach(token, stream))),
        }
    }

    pub(super) fn detach(&self, stream: SocketStream) -> io::Result<ReleasedSocket> {
        match (self, stream) {
            (_, SocketStream::Unattached) => unreachable!("it was never attached"),
            (SocketRegistrar::Epoll(registrar), SocketStream::Epoll(stream)) => {
                registrar.detach(stream).map(ReleasedSocket::of)
            }
            #[cfg(target_os = "linux")]
            (SocketRegistrar::Uring(_), SocketStream::Uring(stream)) => stream.release(),
            #[cfg(target_os = "linux")]
            (SocketRegistrar::Epoll(_), SocketStream::Uring(_))
            | (SocketRegistrar::Uring(_), SocketStream::Epoll(_)) => {
                unreachable!("a stream belongs to the driver that attached it")
            }
        }
    }

    /// Requests one notification of a pending connection. After no connection was left, it must be
    /// called again, with the result of the previous call.
    pub(super) fn watch(
        &self,
        token: usize,
        listener: &TcpListener,
        before: Option<ListenerWatch>,
    ) -> io::Result<ListenerWatch> {
        match self {
            SocketRegistrar::Epoll(registrar) => {
                if before.is_none() {
                    registrar.watch(token, listener)?;
                }
                Ok(ListenerWatch::Epoll)
            }
            #[cfg(target_os = "linux")]
            SocketRegistrar::Uring(registrar) => {
                let before = before.and_then(|before| match before {
                    ListenerWatch::Uring(watch) => Some(watch),
                    ListenerWatch::Epoll => None,
                });
                registrar.watch(token, listener, before).map(ListenerWatch::Uring)
            }
        }
    }
}

pub(super) enum ListenerWatch {
    Epoll,
    #[cfg(target_os = "linux")]
    Uring(uring::UringWatch),
}

/// A connected socket.
pub(super) enum SocketStream {
    /// The socket is not attached yet.
    Unattached,
    Epoll(TcpStream),
    #[cfg(target_os = "linux")]
    Uring(uring::UringStream),
}

impl SocketStream {
    pub(super) fn acknowledge(&self) {
        match self {
            SocketStream::Unattached => {}
            SocketStream::Epoll(stream) => acknowledge(stream),
            #[cfg(target_os = "linux")]
            SocketStream::Uring(stream) => stream.acknowledge(),
        }
    }

    /// Returns whether the driver holds written bytes that the system has not accepted; readiness
    /// to write then follows. Fails if they cannot be sent.
    pub(super) fn is_sending(&self) -> io::Result<bool> {
        match self {
            SocketStream::Unattached | SocketStream::Epoll(_) => Ok(false),
            #[cfg(target_os = "linux")]
            SocketStream::Uring(stream) => stream.is_sending(),
        }
    }

    /// Returns whether the socket still has a peer. After a reset it has none; after the regular
    /// end of the peer's stream it has.
    pub(super) fn is_connected(&self) -> bool {
        match self {
            SocketStream::Unattached => true,
            SocketStream::Epoll(stream) => stream.peer_addr().is_ok(),
            #[cfg(target_os = "linux")]
            SocketStream::Uring(stream) => stream.is_connected(),
        }
    }

    /// Shuts down the sending direction, which signals the end to the peer.
    pub(super) fn shutdown_write(&mut self) {
        match self {
            SocketStream::Unattached => {}
            // The peer may be gone already, which has the same effect.
            SocketStream::Epoll(stream) => _ = stream.shutdown(Shutdown::Write),
            #[cfg(target_os = "linux")]
            SocketStream::Uring(stream) => stream.shutdown_write(),
        }
    }
}

impl Read for SocketStream {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        match self {
            SocketStream::Unattached => Err(io::ErrorKind::WouldBlock.into()),
            SocketStream::Epoll(stream) => stream.read(buffer),
            #[cfg(target_os = "linux")]
            SocketStream::Uring(stream) => stream.read(buffer),
        }
    }
}

impl Write for SocketStream {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match self {
            SocketStream::Unattached => Err(io::ErrorKind::WouldBlock.into()),
            SocketStream::Epoll(stream) => stream.write(bytes),
            #[cfg(target_os = "linux")]
            SocketStream::Uring(stream) => stream.write_vectored(&[io::IoSlice::new(bytes)]),
        }
    }

    fn write_vectored(&mut self, parts: &[io::IoSlice<'_>]) -> io::Result<usize> {
        match self {
            SocketStream::Unattached => Err(io::ErrorKind::WouldBlock.into()),
            SocketStream::Epoll(stream) => stream.write_vectored(parts),
            #[cfg(target_os = "linux")]
            SocketStream::Uring(stream) => stream.write_vectored(parts),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
