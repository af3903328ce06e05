//! The gateways' sockets over loopback: a ping-pong of 128 bytes compared with a bare echo, and one
//! message to many consumers.

use std::hint::spin_loop;
use std::io::{ErrorKind, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc;
use std::thread;
use std::time::{Duration, Instant};

use hdrhistogram::Histogram;
use pitlane_engine::time::Timestamp;
use pitlane_net::Net;
use pitlane_net::event::SocketEvent;
use pitlane_net::listener::Listener;
use pitlane_net::settings::{BufferLimits, DriverKind, ListenerSettings, NetSettings};
use pitlane_net::sockets::Sockets;
use pitlane_sys::affinity::pin_current_thread;
use quanta::Clock;

use crate::conditions::Pinning;
use crate::measure::histogram;

/// Bytes of a ping: about the size of a New Order Single.
const PING_BYTES: usize = 128;
/// Bytes of a tick as JSON in a STOMP frame.
const TICK_BYTES: usize = 200;
/// Most ticks sent in one cycle.
const TICKS_PER_CYCLE: usize = 32;
/// Round trips that are not counted.
const WARM_UP: usize = 2_000;
/// Timeout of every step; none of them takes long.
const TIMEOUT: Duration = Duration::from_secs(60);

/// The server that answers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EchoServer {
    /// Blocking reads and writes.
    Blocking,
    /// Non-blocking reads in a loop: the lower bound.
    Spinning,
    Driver(DriverKind),
}

impl EchoServer {
    pub const ALL: [EchoServer; 4] = [
        EchoServer::Blocking,
        EchoServer::Spinning,
        EchoServer::Driver(DriverKind::Epoll),
        EchoServer::Driver(DriverKind::Uring),
    ];

    pub fn name(self) -> &'static str {
        match self {
            EchoServer::Blocking => "blocking",
            EchoServer::Spinning => "spinning",
            EchoServer::Driver(DriverKind::Epoll) => "epoll",
            EchoServer::Driver(DriverKind::Uring) => "uring",
        }
    }

    /// Returns why this host cannot run the server.
    pub fn forbidden(self) -> Option<String> {
        let EchoServer::Driver(driver) = self else { return None };
        match Net::open(NetSettings { driver, ..NetSettings::default() }) {
            Ok(net) => net.fallback().map(str::to_owned),
            Err(error) => Some(error.to_string()),
        }
    }
}

/// Measures round trips in nanoseconds, with one in flight. The client waits as the server does: it
/// blocks, or it spins.
pub fn ping_pong(pinning: &Pinning, server: EchoServer, trips: usize) -> Histogram<u64> {
    let server_thread = ServerThread::start(pinning, move |start| match server {
        EchoServer::Blocking => bare_echo(start, true),
        EchoServer::Spinning => bare_echo(start, false),
        EchoServer::Driver(driver) => driver_echo(start, driver),
    });
    let mut client = TcpStream::connect(server_thread.address).expect("the server listens");
    client.set_nodelay(true).expect("a socket takes options");
    client.set_nonblocking(server != EchoServer::Blocking).expect("a socket takes options");
    let clock = Clock::new();
    let mut histogram = histogram();
    let ping = [b'p'; PING_BYTES];
    let mut pong = [0; PING_BYTES];
    for trip in 0..WARM_UP + trips {
        let begin = clock.raw();
        write_all(&mut client, &ping);
        read_exact(&mut client, &mut pong);
        let ns = clock.delta_as_nanos(begin, clock.raw());
        if trip >= WARM_UP {
            histogram.saturating_record(ns);
        }
    }
    assert!(pong == ping, "what comes back is what was sent");
    drop(client);
    server_thread.stop();
    histogram
}

/// Returns the deliveries per second of `messages` to each of `consumers`, all of which are read by
/// one thread.
pub fn fan_out(pinning: &Pinning, driver: DriverKind, consumers: usize, messages: usize) -> f64 {
    let server_thread = ServerThread::start(pinning, move |start| ticker(start, driver, consumers, messages));
    let mut sockets: Vec<TcpStream> = (0..consumers)
        .map(|_| {
            let socket = TcpStream::connect(server_thread.address).expect("the server listens");
            socket.set_nonblocking(true).expect("a socket takes options");
            socket
        })
        .collect();
    let mut buffer = vec![0; 256 * 1024];
    let wanted = consumers * messages * TICK_BYTES;
    let (mut received, mut begin) = (0, None);
    while received < wanted {
        for socket in &mut sockets {
            match socket.read(&mut buffer) {
                Ok(0) => panic!("the server closed the connection"),
                Ok(count) => received += count,
                Err(error) => assert_eq!(error.kind(), ErrorKind::WouldBlock, "{error}"),
            }
        }
        if received > 0 && begin.is_none() {
            begin = Some(Instant::now());
        }
    }
    let seconds = begin.map_or(0.0, |begin| begin.elapsed().as_secs_f64());
    drop(sockets);
    server_thread.stop();
    (consumers * messages) as f64 / seconds
}

/// A server's thread, on the second core.
struct ServerThread {
    address: SocketAddr,
    stop: Arc<AtomicBool>,
    thread: thread::JoinHandle<()>,
}

/// What the server's thread gets: a channel for its address, and the signal to end.
struct ServerStart {
    address: mpsc::Sender<SocketAddr>,
    stop: Arc<AtomicBool>,
}

impl ServerStart {
    fn listening_at(&self, address: SocketAddr) {
        self.address.send(address).expect("the bench waits for it");
    }

    fn is_over(&self) -> bool {
        self.stop.load(Ordering::Relaxed)
    }
}

impl ServerThread {
    fn start(pinning: &Pinning, serve: impl FnOnce(ServerStart) + Send + 'static) -> ServerThread {
        let (send, address) = mpsc::channel();
        let stop = Arc::new(AtomicBool::new(false));
        let (start, core) = (ServerStart { address: send, stop: Arc::clone(&stop) }, pinning.second);
        let thread = thread::spawn(move || {
            if let Some(core) = core {
                _ = pin_current_thread(core);
            }
            serve(start);
        });
        let address = address.recv_timeout(TIMEOUT).expect("the server starts");
        ServerThread { address, stop, thread }
    }

    fn stop(self) {
        self.stop.store(true, Ordering::Relaxed);
        self.thread.join().expect("the server does not panic");
    }
}

fn bare_echo(start: ServerStart, blocking: bool) {
    let listener = TcpListener::bind("127.0.0.1:0").expect("loopback has a port");
    start.listening_at(listener.local_addr().expect("it is bound"));
    let (mut stream, _) = listener.accept().expect("the client connects");
    stream.set_nodelay(true).expect("a socket takes options");
    stream.set_nonblocking(!blocking).expect("a socket takes options");
    let mut buffer = [0; 4_096];
    loop {
        match stream.read(&mut buffer) {
            Ok(0) => return,
            Ok(count) => write_all(&mut stream, &buffer[..count]),
            Err(error) if error.kind() == ErrorKind::WouldBlock => spin_loop(),
            Err(error) => panic!("{error}"),
        }
    }
}

fn driver_echo(start: ServerStart, driver: DriverKind) {
    let mut net = listening_net(&start, driver);
    let mut response = Vec::with_capacity(4_096);
    while !start.is_over() {
        net.run_cycle(Timestamp::ZERO, |sockets, happening| {
            let SocketEvent::Received { id } = happening else { return };
            response.clear();
            response.extend_from_slice(sockets.input(id));
            sockets.consume(id, response.len());
            sockets.send(id, &response).expect("a ping fits");
        });
    }
}

fn ticker(start: ServerStart, driver: DriverKind, consumers: usize, messages: usize) {
    let mut net = listening_net(&start, driver);
    let mut ids = Vec::new();
    while ids.len() < consumers && !start.is_over() {
        net.run_cycle(Timestamp::ZERO, |_, happening| {
            if let SocketEvent::Accepted { id, .. } = happening {
                ids.push(id);
            }
        });
    }
    let tick = [b't'; TICK_BYTES];
    let mut left = messages;
    while !start.is_over() {
        let sockets: &mut Sockets = net.sockets();
        // Ticks are sent only when every consumer has room for them, so that none is sent twice.
        let has_space = ids.iter().all(|&id| sockets.unsent(id) < TICKS_PER_CYCLE * TICK_BYTES);
        if has_space {
            for _ in 0..left.min(TICKS_PER_CYCLE) {
                left -= 1;
                ids.iter().for_each(|&id| sockets.send(id, &tick).expect("there is room"));
            }
        }
        net.run_cycle(Timestamp::ZERO, |_, _| {});
    }
}

fn listening_net(start: &ServerStart, driver: DriverKind) -> Net {
    let mut net = Net::open(NetSettings { driver, ..NetSettings::default() }).expect("a driver opens");
    let address = "127.0.0.1:0".parse().expect("an address");
    let limits = BufferLimits::default();
    let listener = Listener::bind(ListenerSettings { limits, ..ListenerSettings::at(address) });
    let listener = listener.expect("loopback has a port");
    start.listening_at(listener.address());
    net.listen(listener);
    net
}

fn write_all(stream: &mut TcpStream, mut bytes: &[u8]) {
    while !bytes.is_empty() {
        match stream.write(bytes) {
            Ok(count) => bytes = &bytes[count..],
            Err(error) if error.kind() == ErrorKind::WouldBlock => spin_loop(),
            // The other end has disconnected: the measurement is over.
            Err(_) => return,
        }
    }
}

fn read_exact(stream: &mut TcpStream, mut bytes: &mut [u8]) {
    while !bytes.is_empty() {
        match stream.read(bytes) {
            Ok(0) => panic!("the server closed the connection"),
            Ok(count) => bytes = &mut bytes[count..],
            Err(error) if error.kind() == ErrorKind::WouldBlock => spin_loop(),
            Err(error) => panic!("{error}"),
        }
    }
}
