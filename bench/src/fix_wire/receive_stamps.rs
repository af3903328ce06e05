//! The times at which the kernel received what a load generator reads. They leave out how long the
//! generator itself took to look, which on a busy machine is more than the service takes.

use std::io;
use std::net::TcpStream;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use pitlane_sys::receive_stamp::{receive_stamped, request_receive_stamps};

pub(super) struct ReceiveStamps {
    /// Time of the last segment of the last read, since 1970. `None`: the kernel gave none.
    received: Option<Duration>,
}

impl ReceiveStamps {
    /// Requests software timestamps for a socket.
    pub(super) fn request(stream: &TcpStream) -> io::Result<ReceiveStamps> {
        request_receive_stamps(stream)?;
        Ok(ReceiveStamps { received: None })
    }

    /// Reads without blocking, and keeps the time of what it reads.
    pub(super) fn read(&mut self, stream: &TcpStream, buffer: &mut [u8]) -> io::Result<usize> {
        let (count, received) = receive_stamped(stream, buffer)?;
        self.received = received;
        Ok(count)
    }

    /// Returns the time since the kernel received the last segment of the last read. Both times are
    /// of the clock of this machine, and microseconds apart, so that a clock that is adjusted
    /// meanwhile does not matter.
    pub(super) fn age(&self) -> Option<Duration> {
        let now = SystemTime::now().duration_since(UNIX_EPOCH).ok()?;
        self.received.map(|received| now.saturating_sub(received))
    }
}
