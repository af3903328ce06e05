//! Bad neighbours of a consumer: connections that come and go, and one that reads a byte at a time.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::time::{Duration, Instant};

use pitlane_engine::index::index_u32;

use crate::consumers::hello;
use crate::tick_reader::BodyReader;

/// Connections that connect and disconnect, each once per [`CHURN_TIME`]: few enough per second
/// that their cost on the consumers' core stays below one percent.
pub(crate) const CHURNING: usize = 100;
const CHURN_TIME: Duration = Duration::from_secs(2);

/// The connections that come and go, and the one with a small window.
pub(crate) struct Neighbours {
    address: SocketAddr,
    churning: Vec<TcpStream>,
    /// Index of the connection that is replaced next.
    next_index: usize,
    due: Instant,
    narrow: TcpStream,
}

impl Neighbours {
    pub(crate) fn new(address: SocketAddr) -> Neighbours {
        let narrow =
            socket2::Socket::new(socket2::Domain::IPV4, socket2::Type::STREAM, None).expect("a socket");
        // As small as the system permits.
        narrow.set_recv_buffer_size(1).expect("a socket takes options");
        narrow.connect(&address.into()).expect("the server listens");
        let mut narrow: TcpStream = narrow.into();
        narrow
            .write_all(hello(None, "generic-event.*", BodyReader::None).as_bytes())
            .expect("the server reads");
        narrow.set_nonblocking(true).expect("a socket takes options");
        let mut neighbours =
            Neighbours { address, churning: Vec::new(), next_index: 0, due: Instant::now(), narrow };
        while neighbours.churning.len() < CHURNING {
            let connect_quiet = neighbours.connect_quiet();
            neighbours.churning.push(connect_quiet);
        }
        neighbours
    }

    fn connect_quiet(&self) -> TcpStream {
        let mut socket = TcpStream::connect(self.address).expect("the server listens");
        // They subscribe to a quiet topic: a hundred that received every event would be a hundred
        // times the work, not bad neighbours.
        socket.write_all(hello(None, "log-event.*", BodyReader::None).as_bytes()).expect("the server reads");
        socket
    }

    pub(crate) fn step(&mut self) {
        // A consumer that was disconnected for its slowness does not reconnect.
        let _ = self.narrow.read(&mut [0; 1]);
        if Instant::now() >= self.due {
            self.due += CHURN_TIME / index_u32(CHURNING);
            self.next_index = (self.next_index + 1) % CHURNING;
            self.churning[self.next_index] = self.connect_quiet();
        }
    }
}
