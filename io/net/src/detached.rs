//! A connection in transfer between two threads: removed from one thread's sockets, not yet added
//! to the other's.

use std::fmt;
use std::net::{SocketAddr, TcpStream};

use super::input::SocketInput;
use super::output::SocketOutput;
use super::settings::BufferLimits;
use super::tls_connection::TlsSession;

/// The socket, its TLS state, the unconsumed input and the unsent output. Dropping it closes the
/// connection.
pub struct Detached {
    pub(super) stream: TcpStream,
    pub(super) peer: SocketAddr,
    pub(super) limits: BufferLimits,
    pub(super) tls: Option<Box<TlsSession>>,
    pub(super) input: SocketInput,
    pub(super) output: SocketOutput,
}

impl Detached {
    pub fn peer(&self) -> SocketAddr {
        self.peer
    }

    pub fn stream(&self) -> &TcpStream {
        &self.stream
    }

    /// Returns the bytes received and not consumed.
    pub fn input(&self) -> &[u8] {
        self.input.bytes()
    }
}

impl fmt::Debug for Detached {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Detached").field("peer", &self.peer).finish_non_exhaustive()
    }
}

const _: () = {
    const fn goes_to_another_thread<T: Send>() {}
    goes_to_another_thread::<Detached>();
};
