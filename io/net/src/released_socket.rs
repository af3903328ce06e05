//! A socket between a driver and its next owner.

use std::net::TcpStream;

/// A socket that was taken from its driver, with the bytes that lay there.
pub(super) struct ReleasedSocket {
    pub stream: TcpStream,
    /// Received and not read.
    pub received: Vec<u8>,
    /// Written and not accepted by the system.
    pub unsent: Vec<u8>,
}

impl ReleasedSocket {
    /// A socket whose driver holds no bytes.
    pub(super) fn of(stream: TcpStream) -> ReleasedSocket {
        ReleasedSocket { stream, received: Vec::new(), unsent: Vec::new() }
    }
}
