//! Publishes to a broker of another project, in the thread that also reads: a publisher in a thread
//! of its own would wait for its share of the readers' core, and the broker for the publisher.

use std::io::{ErrorKind, Write};
use std::net::TcpStream;
use std::time::Duration;

use pitlane_engine::index::index_usize;

use crate::consumers::{ConsumerPool, FanOutState};

/// Publishes as fast as the broker reads.
pub struct Publisher {
    socket: TcpStream,
    batch: Vec<u8>,
    /// Messages of a batch.
    count: u64,
    /// Bytes of the batch that are written.
    written: usize,
    sent: u64,
}

impl Publisher {
    /// Creates a publisher that repeats one message, `count` times in one write.
    pub fn new(socket: TcpStream, message: &[u8], count: u64) -> Publisher {
        socket.set_nonblocking(true).expect("a socket takes options");
        Publisher { socket, batch: message.repeat(index_usize(count)), count, written: 0, sent: 0 }
    }

    /// Measures deliveries per second to the consumers. At most `ahead` messages are published and
    /// not yet delivered to all of them.
    pub(crate) fn throughput(&mut self, pool: &mut ConsumerPool, ahead: u64, time: Duration) -> f64 {
        let consumers = pool.sockets.len() as u64;
        pool.throughput(&FanOutState::default(), time, |delivered| {
            self.publish(delivered / consumers + ahead)
        })
    }

    /// Publishes until `up_to` messages are sent in total, with at most one write per call.
    pub fn publish(&mut self, up_to: u64) {
        if self.sent >= up_to {
            return;
        }
        match self.socket.write(&self.batch[self.written..]) {
            Ok(count) => self.written += count,
            Err(error) if error.kind() == ErrorKind::WouldBlock => {}
            Err(error) => panic!("{error}"),
        }
        if self.written == self.batch.len() {
            (self.written, self.sent) = (0, self.sent + self.count);
        }
    }
}
