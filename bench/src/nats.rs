//! NATS for comparison, where it is installed: another protocol, and the fastest broker that we
//! know.

use std::ffi::OsStr;
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use crate::conditions::Pinning;
use crate::consumers::ConsumerPool;
use crate::free_addresses::free_addresses;
use crate::publisher::Publisher;
use crate::tick_reader::{BodyReader, Framing};

/// Messages that may be published and not yet delivered to all consumers: NATS conflates nothing,
/// and is faster with more in flight.
const AHEAD: u64 = 4_096;
/// Messages of one write.
const BATCH: u64 = 64;

/// A running NATS server. Dropping it stops the server.
pub struct NatsServer {
    child: Child,
    address: SocketAddr,
}

impl NatsServer {
    /// Starts the server. Returns `None` if it is not installed or does not start.
    pub fn start(pinning: &Pinning) -> Option<NatsServer> {
        NatsServer::start_with(pinning, &[])
    }

    /// Starts the server with JetStream, which stores its streams in a folder.
    pub fn with_streams(pinning: &Pinning, folder: &Path) -> Option<NatsServer> {
        NatsServer::start_with(pinning, &[OsStr::new("-js"), OsStr::new("-sd"), folder.as_os_str()])
    }

    fn start_with(pinning: &Pinning, options: &[&OsStr]) -> Option<NatsServer> {
        let [address] = free_addresses().ok()?;
        let core = pinning.second.unwrap_or(0).to_string();
        let child = Command::new("taskset")
            .args(["-c", &core, "nats-server", "-a", "127.0.0.1", "-p", &address.port().to_string()])
            .args(options)
            .env("GOMAXPROCS", "1")
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .ok()?;
        let nats = NatsServer { child, address };
        let deadline = Instant::now() + Duration::from_secs(5);
        while Instant::now() < deadline {
            if TcpStream::connect(nats.address).is_ok() {
                return Some(nats);
            }
            thread::sleep(Duration::from_millis(20));
        }
        None
    }

    /// Returns its address, for settings.
    pub fn url(&self) -> String {
        format!("nats://{}", self.address)
    }

    /// Measures deliveries of `payload` per second to this many consumers.
    pub fn throughput(&self, consumers: usize, payload: &[u8], body: BodyReader, time: Duration) -> f64 {
        let mut pool = self.pool(consumers, payload, body);
        let message = [format!("PUB t {}\r\n", payload.len()).as_bytes(), payload, b"\r\n"].concat();
        Publisher::new(self.connect(), &message, BATCH).throughput(&mut pool, AHEAD, time)
    }

    fn pool(&self, consumers: usize, payload: &[u8], body: BodyReader) -> ConsumerPool {
        let open = |_| {
            let mut socket = self.connect();
            socket.write_all(b"SUB t 1\r\nPING\r\n").expect("the server reads");
            wait_for_pong(&mut socket);
            socket.set_nonblocking(true).expect("a socket takes options");
            socket
        };
        let head = format!("MSG t 1 {}\r\n", payload.len());
        let length = (head.len() + payload.len() + 2) as u64;
        let sockets = (0..consumers).map(open).collect();
        ConsumerPool::of_frames(sockets, Framing::Nats { length }, body)
    }

    fn connect(&self) -> TcpStream {
        let mut socket = TcpStream::connect(self.address).expect("the server listens");
        socket
            .write_all(b"CONNECT {\"verbose\":false,\"pedantic\":false}\r\nPING\r\n")
            .expect("the server reads");
        wait_for_pong(&mut socket);
        socket
    }
}

fn wait_for_pong(socket: &mut TcpStream) {
    let mut answer = Vec::new();
    while !answer.windows(6).any(|part| part == b"PONG\r\n") {
        let mut bytes = [0; 4_096];
        let count = socket.read(&mut bytes).expect("the server answers");
        answer.extend_from_slice(&bytes[..count]);
    }
}

impl Drop for NatsServer {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
