//! The seam between sockets and the system: who is ready, and reading and writing without waiting.
//!
//! Two drivers: epoll everywhere, io_uring where the host allows it. A driver knows tokens and byte streams; connections, TLS and
//! limits live above the seam and are the same for both.

use std::io::{self, Read, Write};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::time::Duration;

use crate::wakeup::Wakeup;

use super::epoll::{self, Epoll};
use super::listener::acknowledge;
use super::settings::DriverKind;
#[cfg(all(feature = "uring", target_os = "linux"))]
use super::uring::{self, Uring};

/// Tokens: the bell's, then those of listeners, then one for each slot of a connection.
pub(super) const BELL: usize = 0;
pub(super) const FIRST_LISTENER: usize = 1;
/// A thread listens for FIX and STOMP, each plain and with TLS, at a few addresses.
pub(super) const LISTENERS_MAX: usize = 63;
pub(super) const FIRST_SLOT: usize = FIRST_LISTENER + LISTENERS_MAX;

/// Something can be done without waiting. May be said in vain, but is never left out.
#[derive(Clone, Copy, Debug)]
pub(super) struct Ready {
    pub(super) token: usize,
    pub(super) readable: bool,
    pub(super) writable: bool,
    /// The peer will send no more: reading goes on until the end is seen.
    pub(super) ended: bool,
}

/// Why there is no io_uring driver in this build.
pub const NOT_BUILT: &str = "this build has no io_uring driver (it was built without the feature `uring`)";

pub(super) enum Driver {
    Epoll(Epoll),
    #[cfg(all(feature = "uring", target_os = "linux"))]
    Uring(Box<Uring>),
}

impl Driver {
    /// With the reason, in words, why it is not the one that was asked for.
    pub(super) fn open(kind: DriverKind) -> io::Result<(Driver, Option<String>)> {
        let reason = match kind {
            DriverKind::Epoll => None,
            #[cfg(all(feature = "uring", target_os = "linux"))]
            DriverKind::Uring => match Uring::open() {
                Ok(uring) => return Ok((Driver::Uring(Box::new(uring)), None)),
                Err(reason) => Some(reason),
            },
            #[cfg(not(all(feature = "uring", target_os = "linux")))]
            DriverKind::Uring => Some(NOT_BUILT.to_owned()),
        };
        Ok((Driver::Epoll(Epoll::open()?), reason))
    }

    pub(super) fn kind(&self) -> DriverKind {
        match self {
            Driver::Epoll(_) => DriverKind::Epoll,
            #[cfg(all(feature = "uring", target_os = "linux"))]
            Driver::Uring(_) => DriverKind::Uring,
        }
    }

    pub(super) fn registrar(&self) -> io::Result<Registrar> {
        match self {
            Driver::Epoll(epoll) => epoll.registrar().map(Registrar::Epoll),
            #[cfg(all(feature = "uring", target_os = "linux"))]
            Driver::Uring(uring) => Ok(Registrar::Uring(uring.registrar())),
        }
    }

    pub(super) fn bell(&self) -> Wakeup {
        match self {
            Driver::Epoll(epoll) => epoll.bell(),
            #[cfg(all(feature = "uring", target_os = "linux"))]
            Driver::Uring(uring) => uring.bell(),
        }
    }

    /// Looks who is ready, without waiting, and does `inside` with them. Streams are attached, read and written there only.
    pub(super) fn turn<R>(&mut self, inside: impl FnOnce(&[Ready]) -> R) -> R {
        match self {
            Driver::Epoll(epoll) => epoll.turn(inside),
            #[cfg(all(feature = "uring", target_os = "linux"))]
            Driver::Uring(uring) => uring.turn(inside),
        }
    }

    /// The same without a look, where that costs a call of the system. Who is ready is told by the next turn.
    pub(super) fn turn_blind<R>(&mut self, inside: impl FnOnce(&[Ready]) -> R) -> R {
        match self {
            Driver::Epoll(_) => inside(&[]),
            #[cfg(all(feature = "uring", target_os = "linux"))]
            Driver::Uring(uring) => uring.turn(inside),
        }
    }

    /// Returns when somebody is ready, the bell has rung or the time is over. The next turn is told who is ready.
    pub(super) fn wait(&mut self, at_most: Duration) {
        match self {
            Driver::Epoll(epoll) => epoll.wait(at_most),
            #[cfg(all(feature = "uring", target_os = "linux"))]
            Driver::Uring(uring) => uring.wait(at_most),
        }
    }
}

/// Puts sockets under the eyes of a driver.
pub(super) enum Registrar {
    Epoll(epoll::Registrar),
    #[cfg(all(feature = "uring", target_os = "linux"))]
    Uring(uring::Registrar),
}

impl Registrar {
    pub(super) fn attach(&self, token: usize, stream: TcpStream) -> io::Result<Stream> {
        match self {
            Registrar::Epoll(registrar) => registrar.attach(token, stream).map(Stream::Epoll),
            #[cfg(all(feature = "uring", target_os = "linux"))]
            Registrar::Uring(registrar) => Ok(Stream::Uring(registrar.attach(token, stream))),
        }
    }

    pub(super) fn detach(&self, stream: Stream) -> io::Result<TcpStream> {
        match (self, stream) {
            (_, Stream::Loose) => unreachable!("it was never attached"),
            (Registrar::Epoll(registrar), Stream::Epoll(stream)) => registrar.detach(stream),
            #[cfg(all(feature = "uring", target_os = "linux"))]
            (Registrar::Uring(registrar), Stream::Uring(stream)) => registrar.detach(&stream),
            #[cfg(all(feature = "uring", target_os = "linux"))]
            (Registrar::Epoll(_), Stream::Uring(_)) | (Registrar::Uring(_), Stream::Epoll(_)) => {
                unreachable!("a stream belongs to the driver that attached it")
            }
        }
    }

    /// Tells once that somebody may be accepted. Once there was nobody left, [`Registrar::watch`] is to be called again, with what it
    /// gave the time before.
    pub(super) fn watch(
        &self,
        token: usize,
        listener: &TcpListener,
        before: Option<Watch>,
    ) -> io::Result<Watch> {
        match self {
            Registrar::Epoll(registrar) => {
                if before.is_none() {
                    registrar.watch(token, listener)?;
                }
                Ok(Watch::Epoll)
            }
            #[cfg(all(feature = "uring", target_os = "linux"))]
            Registrar::Uring(registrar) => {
                drop(before);
                registrar.watch(token, listener).map(Watch::Uring)
            }
        }
    }
}

pub(super) enum Watch {
    Epoll,
    #[cfg(all(feature = "uring", target_os = "linux"))]
    Uring(#[expect(dead_code, reason = "watches as long as it is there")] uring::Stream),
}

/// A connected socket.
pub(super) enum Stream {
    /// Its socket is still to be attached.
    Loose,
    Epoll(TcpStream),
    #[cfg(all(feature = "uring", target_os = "linux"))]
    Uring(uring::Stream),
}

impl Stream {
    pub(super) fn acknowledge(&self) {
        if let Stream::Epoll(stream) = self {
            acknowledge(stream);
        }
    }

    /// We have said everything. The peer hears of it.
    pub(super) fn shutdown_write(&mut self) {
        match self {
            Stream::Loose => {}
            // It may be gone already, which is as good.
            Stream::Epoll(stream) => _ = stream.shutdown(Shutdown::Write),
            #[cfg(all(feature = "uring", target_os = "linux"))]
            Stream::Uring(stream) => stream.shutdown_write(),
        }
    }
}

impl Read for Stream {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        match self {
            Stream::Loose => Err(io::ErrorKind::WouldBlock.into()),
            Stream::Epoll(stream) => stream.read(buffer),
            #[cfg(all(feature = "uring", target_os = "linux"))]
            Stream::Uring(stream) => stream.read(buffer),
        }
    }
}

impl Write for Stream {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match self {
            Stream::Loose => Err(io::ErrorKind::WouldBlock.into()),
            Stream::Epoll(stream) => stream.write(bytes),
            #[cfg(all(feature = "uring", target_os = "linux"))]
            Stream::Uring(stream) => stream.write(bytes),
        }
    }

    fn write_vectored(&mut self, parts: &[io::IoSlice<'_>]) -> io::Result<usize> {
        match self {
            Stream::Loose => Err(io::ErrorKind::WouldBlock.into()),
            Stream::Epoll(stream) => stream.write_vectored(parts),
            #[cfg(all(feature = "uring", target_os = "linux"))]
            Stream::Uring(stream) => stream.write_vectored(parts),
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
        let (driver, reason) = Driver::open(DriverKind::Uring).expect("epoll is there");
        assert_eq!((driver.kind(), reason.as_deref()), (DriverKind::Epoll, Some(NOT_BUILT)));
        let (_, reason) = Driver::open(DriverKind::Epoll).expect("epoll is there");
        assert_eq!(reason, None);
    }
}
