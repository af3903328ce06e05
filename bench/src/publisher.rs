//! Whoever publishes to a broker of others, in the thread that also reads: in one of its own it would wait for its share of the
//! readers' core, and the broker for it.

use std::io::{ErrorKind, Write};
use std::net::TcpStream;

/// Publishes as fast as the broker reads.
pub struct Publisher {
    socket: TcpStream,
    batch: Vec<u8>,
    /// Messages of a batch.
    count: u64,
    /// Octets of the batch that are written.
    written: usize,
    said: u64,
}

impl Publisher {
    /// The same message again and again, so many in one write.
    pub fn new(socket: TcpStream, message: &[u8], count: u64) -> Publisher {
        socket.set_nonblocking(true).expect("a socket takes options");
        Publisher { socket, batch: message.repeat(count as usize), count, written: 0, said: 0 }
    }

    /// Up to so many messages in all, and no more than one write is taken.
    pub fn publish(&mut self, up_to: u64) {
        if self.said >= up_to {
            return;
        }
        match self.socket.write(&self.batch[self.written..]) {
            Ok(count) => self.written += count,
            Err(error) if error.kind() == ErrorKind::WouldBlock => {}
            Err(error) => panic!("{error}"),
        }
        if self.written == self.batch.len() {
            (self.written, self.said) = (0, self.said + self.count);
        }
    }
}
