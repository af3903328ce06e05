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

use super::epoll::{self, Epoll};
use super::quick_ack::acknowledge;
use super::settings::DriverKind;
use super::token::ReadyToken;
#[cfg(all(feature = "uring", target_os = "linux"))]
use super::uring::{self, Uring};

/// Reason why this build has no io_uring driver.
pub const NOT_BUILT: &str = "this build has no io_uring driver (it was built without the feature `uring`)";

/// Returns whether the kernel grants a ring, or the reason why not: creates the smallest possible
/// one and frees it at once.
#[cfg(all(feature = "uring", target_os = "linux"))]
pub fn probe_ring() -> Result<(), String> {
    uring::make_ring()
}

/// Returns the reason why there is no ring.
#[cfg(not(all(feature = "uring", target_os = "linux")))]
pub fn probe_ring() -> Result<(), String> {
    Err(NOT_BUILT.to_owned())
}

pub(super) enum SocketDriver {
    Epoll(Epoll),
    #[cfg(all(feature = "uring", target_os = "linux"))]
    Uring(Box<Uring>),
}

impl SocketDriver {
    /// Opens a driver, and returns it with the reason why it is not the configured one.
    pub(super) fn open(kind: DriverKind) -> io::Result<(SocketDriver, Option<String>)> {
        let reason = match kind {
            DriverKind::Epoll => None,
            #[cfg(all(feature = "uring", target_os = "linux"))]
            DriverKind::Uring => match Uring::open() {
                Ok(uring) => return Ok((SocketDriver::Uring(Box::new(uring)), None)),
                Err(reason) => Some(reason),
            },
            #[cfg(not(all(feature = "uring", target_os = "linux")))]
            DriverKind::Uring => Some(NOT_BUILT.to_owned()),
        };
        Ok((SocketDriver::Epoll(Epoll::open()?), reason))
    }

    pub(super) fn kind(&self) -> DriverKind {
        match self {
            SocketDriver::Epoll(_) => DriverKind::Epoll,
            #[cfg(all(feature = "uring", target_os = "linux"))]
            SocketDriver::Uring(_) => DriverKind::Uring,
        }
    }

    pub(super) fn registrar(&self) -> io::Result<SocketRegistrar> {
        match self {
            SocketDriver::Epoll(epoll) => epoll.registrar().map(SocketRegistrar::Epoll),
            #[cfg(all(feature = "uring", target_os = "linux"))]
            SocketDriver::Uring(uring) => Ok(SocketRegistrar::Uring(uring.registrar())),
        }
    }

    pub(super) fn wakeup(&self) -> Wakeup {
        match self {
            SocketDriver::Epoll(epoll) => epoll.wakeup(),
            #[cfg(all(feature = "uring", target_os = "linux"))]
            SocketDriver::Uring(uring) => uring.wakeup(),
        }
    }

    /// Polls for readiness without waiting, and calls `inside` with the result. Streams are
    /// attached, read and written only there.
    pub(super) fn run_cycle<R>(&mut self, inside: impl FnOnce(&[ReadyToken]) -> R) -> R {
        match self {
            SocketDriver::Epoll(epoll) => epoll.run_cycle(inside),
            #[cfg(all(feature = "uring", target_os = "linux"))]
            SocketDriver::Uring(uring) => uring.run_cycle(inside),
        }
    }

    /// Runs `inside` without polling, where polling costs a system call. The next cycle reports
    /// readiness.
    pub(super) fn run_cycle_unpolled<R>(&mut self, inside: impl FnOnce(&[ReadyToken]) -> R) -> R {
        match self {
            SocketDriver::Epoll(_) => inside(&[]),
            #[cfg(all(feature = "uring", target_os = "linux"))]
            SocketDriver::Uring(uring) => uring.run_cycle(inside),
        }
    }

    /// Waits until a token is ready, the wake-up is triggered, or the time is over. The next cycle
    /// receives the readiness.
    pub(super) fn wait(&mut self, at_most: Duration) {
        match self {
            SocketDriver::Epoll(epoll) => epoll.wait(at_most),
            #[cfg(all(feature = "uring", target_os = "linux"))]
            SocketDriver::Uring(uring) => uring.wait(at_most),
        }
    }
}

/// Registers sockets with a driver.
pub(super) enum SocketRegistrar {
    Epoll(epoll::EpollRegistrar),
    #[cfg(all(feature = "uring", target_os = "linux"))]
    Uring(uring::UringRegistrar),
}

impl SocketRegistrar {
    pub(super) fn attach(&self, token: usize, stream: TcpStream) -> io::Result<SocketStream> {
        match self {
            SocketRegistrar::Epoll(registrar) => registrar.attach(token, stream).map(SocketStream::Epoll),
            #[cfg(all(feature = "uring", target_os = "linux"))]
            SocketRegistrar::Uring(registrar) => Ok(SocketStream::Uring(registrar.attach(token, stream))),
        }
    }

    pub(super) fn detach(&self, stream: SocketStream) -> io::Result<TcpStream> {
        match (self, stream) {
            (_, SocketStream::Unattached) => unreachable!("it was never attached"),
            (SocketRegistrar::Epoll(registrar), SocketStream::Epoll(stream)) => registrar.detach(stream),
            #[cfg(all(feature = "uring", target_os = "linux"))]
            (SocketRegistrar::Uring(registrar), SocketStream::Uring(stream)) => registrar.detach(&stream),
            #[cfg(all(feature = "uring", target_os = "linux"))]
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
            #[cfg(all(feature = "uring", target_os = "linux"))]
            SocketRegistrar::Uring(registrar) => {
                drop(before);
                registrar.watch(token, listener).map(ListenerWatch::Uring)
            }
        }
    }
}

pub(super) enum ListenerWatch {
    Epoll,
    #[cfg(all(feature = "uring", target_os = "linux"))]
    Uring(#[expect(dead_code, reason = "watches while it exists")] uring::UringStream),
}

/// A connected socket.
pub(super) enum SocketStream {
    /// The socket is not attached yet.
    Unattached,
    Epoll(TcpStream),
    #[cfg(all(feature = "uring", target_os = "linux"))]
    Uring(uring::UringStream),
}

impl SocketStream {
    pub(super) fn acknowledge(&self) {
        if let SocketStream::Epoll(stream) = self {
            acknowledge(stream);
        }
    }

    /// Returns whether the socket still has a peer. After a reset it has none; after the regular
    /// end of the peer's stream it has.
    pub(super) fn is_connected(&self) -> bool {
        match self {
            SocketStream::Unattached => true,
            SocketStream::Epoll(stream) => stream.peer_addr().is_ok(),
            #[cfg(all(feature = "uring", target_os = "linux"))]
            SocketStream::Uring(stream) => stream.is_connected(),
        }
    }

    /// Shuts down the sending direction, which signals the end to the peer.
    pub(super) fn shutdown_write(&mut self) {
        match self {
            SocketStream::Unattached => {}
            // The peer may be gone already, which has the same effect.
            SocketStream::Epoll(stream) => _ = stream.shutdown(Shutdown::Write),
            #[cfg(all(feature = "uring", target_os = "linux"))]
            SocketStream::Uring(stream) => stream.shutdown_write(),
        }
    }
}

impl Read for SocketStream {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        match self {
            SocketStream::Unattached => Err(io::ErrorKind::WouldBlock.into()),
            SocketStream::Epoll(stream) => stream.read(buffer),
            #[cfg(all(feature = "uring", target_os = "linux"))]
            SocketStream::Uring(stream) => stream.read(buffer),
        }
    }
}

impl Write for SocketStream {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match self {
            SocketStream::Unattached => Err(io::ErrorKind::WouldBlock.into()),
            SocketStream::Epoll(stream) => stream.write(bytes),
            #[cfg(all(feature = "uring", target_os = "linux"))]
            SocketStream::Uring(stream) => stream.write(bytes),
        }
    }

    fn write_vectored(&mut self, parts: &[io::IoSlice<'_>]) -> io::Result<usize> {
        match self {
            SocketStream::Unattached => Err(io::ErrorKind::WouldBlock.into()),
            SocketStream::Epoll(stream) => stream.write_vectored(parts),
            #[cfg(all(feature = "uring", target_os = "linux"))]
            SocketStream::Uring(stream) => stream.write_vectored(parts),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[cfg(all(test, not(all(feature = "uring", target_os = "linux"))))]
mod tests {
    use super::*;

    #[test]
    fn without_the_io_uring_driver_epoll_is_used_and_the_reason_is_given() {
        let (driver, reason) = SocketDriver::open(DriverKind::Uring).expect("epoll is there");
        assert_eq!((driver.kind(), reason.as_deref()), (DriverKind::Epoll, Some(NOT_BUILT)));
        let (_, reason) = SocketDriver::open(DriverKind::Epoll).expect("epoll is there");
        assert_eq!(reason, None);
    }
}
