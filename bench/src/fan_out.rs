//! One market to many consumers over loopback: the gateway's STOMP endpoint with its sockets on one
//! core, all consumers on the other.
//!
//! Throughput is measured in a closed loop: a tick is published while no consumer is too far
//! behind, so that nothing is conflated and every delivery counts. Latency is measured in an open
//! loop: each tick has a planned time, and its latency counts from there.

use std::hint::spin_loop;
use std::io::{ErrorKind, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc;
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use hdrhistogram::Histogram;
use pitlane_auth::Role;
use pitlane_engine::event::{Event, EventKind};
use pitlane_engine::id::{SecurityId, ShardId};
use pitlane_engine::index::{index_u32, index_usize};
use pitlane_engine::refdata::RefData;
use pitlane_engine::time::Timestamp;
use pitlane_gateway::gateway::stomp::StompEndpoint;
use pitlane_gateway::notifications::{Notification, SessionInfo};
use pitlane_gateway::stomp::Logins;
use pitlane_net::Net;
use pitlane_net::event::SocketEvent;
use pitlane_net::listener::Listener;
use pitlane_net::settings::{ListenerSettings, NetSettings};
use pitlane_protocols::stomp::settings::BrokerSettings;
use pitlane_sys::affinity::pin_current_thread;
use quanta::Clock;

use crate::conditions::Pinning;
use crate::measure::histogram;
use crate::report::recording::{Recording, SLICE_NS};
use crate::stomp::tick;

/// Most ticks published in one cycle: as many as a gateway under load finds on its lanes, which
/// hold thousands.
const TICKS_PER_CYCLE: u64 = 64;
/// Ticks that may be published and not yet delivered to all consumers. Half of them fill the queue
/// of one consumer.
const AHEAD_MAX: u64 = 512;
/// Time before anything is counted.
pub const WARM_UP: Duration = Duration::from_millis(300);
/// Timeout of every step; none of them takes long.
const TIMEOUT: Duration = Duration::from_secs(30);
/// Most bytes that a consumer reads at once.
const READ_BYTES: usize = 256 * 1_024;
/// Bytes of a large message: the text in the body of an event between strategies.
const LARGE_BYTES: usize = 4 * 1_024;

/// A measured throughput.
#[derive(Clone, Debug)]
pub struct FanOutRate {
    pub deliveries_per_s: f64,
    /// Bytes of one delivery, header included.
    pub octets: f64,
}

/// State shared by server and consumers.
#[derive(Default)]
pub struct FanOutState {
    /// Deliveries counted by the consumers.
    delivered: AtomicU64,
    /// Events published to all consumers.
    published: AtomicU64,
    /// Most bytes that waited for one consumer.
    queued_max: AtomicU64,
    /// Set once all consumers are connected.
    may_publish: AtomicBool,
    /// Set to end publishing.
    stop_publishing: AtomicBool,
    stop: AtomicBool,
}

/// How the server publishes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum PublishMode {
    /// As fast as the slowest of this many consumers reads.
    Fast(u64),
    /// One tick per interval, in nanoseconds.
    Paced(u64),
    /// One event of [`LARGE_BYTES`] per interval, in nanoseconds; none of them may be lost.
    Large(u64),
}

/// Measures deliveries per second to this many consumers.
pub fn throughput(
    pinning: &Pinning,
    reference: &Arc<RefData>,
    consumers: usize,
    time: Duration,
) -> FanOutRate {
    let server = FanOutServer::start(pinning, reference, PublishMode::Fast(consumers as u64));
    let mut pool = ConsumerPool::stomp(server.address, "tick.*", consumers, 0);
    pool.read_for(&server.shared, WARM_UP, |_| {});
    let (before, octets, begin) = (pool.messages, pool.octets, Instant::now());
    pool.read_for(&server.shared, time, |_| {});
    let (messages, octets) = (pool.messages - before, pool.octets - octets);
    let deliveries_per_s = messages as f64 / begin.elapsed().as_secs_f64();
    server.end();
    FanOutRate { deliveries_per_s, octets: octets as f64 / messages.max(1) as f64 }
}

/// Measures the nanoseconds from a tick's planned time to its delivery, at `per_second` deliveries
/// per second in total.
pub fn latency(
    pinning: &Pinning,
    reference: &Arc<RefData>,
    consumers: usize,
    per_second: u64,
    time: Duration,
) -> Recording {
    let pause = 1_000_000_000 * consumers as u64 / per_second;
    let server = FanOutServer::start(pinning, reference, PublishMode::Paced(pause));
    let pool = ConsumerPool::stomp(server.address, "tick.*", consumers, 0);
    let mut recording = measure(server, pool, time).recording;
    (recording.name, recording.per_s_planned) = (format!("stomp-to-{consumers}"), per_second as f64);
    recording
}

/// Measures ten consumers at 1,000 events of 4 KiB per second each, of which `stalled` do not read.
pub fn with_stalled(
    pinning: &Pinning,
    reference: &Arc<RefData>,
    stalled: usize,
    time: Duration,
) -> FanOutResult {
    let server = FanOutServer::start(pinning, reference, PublishMode::Large(1_000_000));
    let pool = ConsumerPool::stomp(server.address, "generic-event.*", 10 - stalled, stalled);
    measure(server, pool, time)
}

/// Measures one consumer at 1,000 events of 4 KiB per second, either alone or beside one that does
/// not read, one with the smallest window that reads a byte at a time, and [`CHURNING`] that
/// connect and disconnect.
pub fn with_bad_neighbours(
    pinning: &Pinning,
    reference: &Arc<RefData>,
    has_bad_neighbours: bool,
    time: Duration,
) -> FanOutResult {
    let server = FanOutServer::start(pinning, reference, PublishMode::Large(1_000_000));
    let mut pool = ConsumerPool::stomp(server.address, "generic-event.*", 1, usize::from(has_bad_neighbours));
    if has_bad_neighbours {
        pool.neighbours = Some(Neighbours::new(server.address));
    }
    measure(server, pool, time)
}

/// Connections that connect and disconnect, each once per [`CHURN_TIME`]: few enough per second
/// that their cost on the consumers' core stays below one percent.
const CHURNING: usize = 100;
const CHURN_TIME: Duration = Duration::from_secs(2);

/// The connections that come and go, and the one with a small window.
struct Neighbours {
    address: SocketAddr,
    churning: Vec<TcpStream>,
    /// Index of the connection that is replaced next.
    next_index: usize,
    due: Instant,
    narrow: TcpStream,
}

impl Neighbours {
    fn new(address: SocketAddr) -> Neighbours {
        let narrow =
            socket2::Socket::new(socket2::Domain::IPV4, socket2::Type::STREAM, None).expect("a socket");
        // As small as the system permits.
        narrow.set_recv_buffer_size(1).expect("a socket takes options");
        narrow.connect(&address.into()).expect("the server listens");
        let mut narrow: TcpStream = narrow.into();
        narrow.write_all(hello("generic-event.*").as_bytes()).expect("the server reads");
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
        socket.write_all(hello("log-event.*").as_bytes()).expect("the server reads");
        socket
    }

    fn step(&mut self) {
        // A consumer that was disconnected for its slowness does not reconnect.
        let _ = self.narrow.read(&mut [0; 1]);
        if Instant::now() >= self.due {
            self.due += CHURN_TIME / index_u32(CHURNING);
            self.next_index = (self.next_index + 1) % CHURNING;
            self.churning[self.next_index] = self.connect_quiet();
        }
    }
}

/// What consumers received.
#[derive(Clone, Debug)]
pub struct FanOutResult {
    pub recording: Recording,
    /// Longest time without any delivery.
    pub gap: Duration,
    /// Events that were published and did not reach a consumer that reads.
    pub missing: u64,
    /// Median nanoseconds that the server's thread spends on an event, from its planned time to the
    /// last write.
    pub event_ns: f64,
    /// Most bytes that ever waited for one consumer.
    pub queued_max: u64,
}

fn measure(server: FanOutServer, mut pool: ConsumerPool, time: Duration) -> FanOutResult {
    pool.read_for(&server.shared, WARM_UP, |_| {});
    let mut recording = Recording::new("stomp", 0.0, SLICE_NS);
    let (mut gap, mut last) = (Duration::ZERO, Instant::now());
    let clock = server.clock.clone();
    let begin = clock.delta_as_nanos(0, clock.raw());
    pool.read_for(&server.shared, time, |bytes| {
        gap = gap.max(last.elapsed());
        last = Instant::now();
        let now = clock.delta_as_nanos(0, clock.raw());
        for at in memchr::memmem::find_iter(bytes, b"\"ts\":") {
            let digits = bytes[at + 5..].iter().take_while(|byte| byte.is_ascii_digit());
            let sent_at =
                digits.fold(0u64, |sum, digit| sum.wrapping_mul(10).wrapping_add((digit - b'0') as u64));
            // A number that was cut in two by the read is not a time.
            if now > sent_at && now - sent_at < 10_000_000_000 {
                recording.count(sent_at.saturating_sub(begin), now - sent_at);
            }
        }
    });
    recording.per_s_reached = recording.all.len() as f64 / time.as_secs_f64();
    let shared = server.shared.clone();
    // Publishing ends, and the events on their way arrive.
    shared.stop_publishing.store(true, Ordering::Release);
    let healthy = pool.sockets.len() as u64;
    let expected = || shared.published.load(Ordering::Acquire) * healthy;
    let deadline = Instant::now() + TIMEOUT;
    while pool.messages < expected() && Instant::now() < deadline {
        pool.poll(&shared, &mut |_| {});
    }
    let missing = expected().saturating_sub(pool.messages);
    let cycles = server.end();
    let queued_max = shared.queued_max.load(Ordering::Relaxed);
    FanOutResult { recording, gap, missing, event_ns: cycles.value_at_quantile(0.5) as f64, queued_max }
}

/// The gateway's side, in a thread of its own.
struct FanOutServer {
    address: SocketAddr,
    shared: Arc<FanOutState>,
    /// Clock that the times of ticks are read from.
    clock: Clock,
    thread: JoinHandle<Histogram<u64>>,
}

impl FanOutServer {
    fn start(pinning: &Pinning, reference: &Arc<RefData>, mode: PublishMode) -> FanOutServer {
        let (address_sender, address) = mpsc::channel();
        let (shared, clock) = (Arc::new(FanOutState::default()), Clock::new());
        let (core, thread_state, reference, time) =
            (pinning.second, shared.clone(), reference.clone(), clock.clone());
        let thread = thread::spawn(move || {
            if let Some(core) = core {
                _ = pin_current_thread(core);
            }
            let mut net = Net::open(NetSettings::default()).expect("a driver opens");
            let any = "127.0.0.1:0".parse().expect("an address");
            let settings = ListenerSettings { send_kernel_bytes: 256 * 1_024, ..ListenerSettings::at(any) };
            let listener = Listener::bind(settings).expect("loopback has a port");
            address_sender.send(listener.address()).expect("the bench waits for the address");
            net.listen(listener);
            serve(net, reference, &time, mode, &thread_state)
        });
        let address = address.recv_timeout(TIMEOUT).expect("the server starts");
        FanOutServer { address, shared, clock, thread }
    }

    /// Stops the thread and returns the durations, in nanoseconds, of the cycles in which something
    /// was published.
    fn end(self) -> Histogram<u64> {
        self.shared.stop.store(true, Ordering::Relaxed);
        self.thread.join().expect("the server does not panic")
    }
}

fn serve(
    mut net: Net,
    reference: Arc<RefData>,
    clock: &Clock,
    mode: PublishMode,
    shared: &FanOutState,
) -> Histogram<u64> {
    let mut cycles = histogram();
    let securities: Vec<SecurityId> = reference.securities().iter().map(|row| row.id).collect();
    let logins = Logins::new(None, Role::Trade);
    let mut endpoint = StompEndpoint::new(BrokerSettings::default(), reference, logins);
    let text = format!("\"{}\"", "x".repeat(LARGE_BYTES));
    let large = Notification::Generic { name: "large".into(), body: text.into_bytes().into() };
    let (mut published, mut next) = (0u64, 0u64);
    while !shared.stop.load(Ordering::Relaxed) {
        let now = Timestamp(clock.delta_as_nanos(0, clock.raw()));
        let count = match mode {
            PublishMode::Fast(consumers) => {
                let waiting = endpoint.messages().saturating_sub(shared.delivered.load(Ordering::Acquire));
                if waiting < AHEAD_MAX * consumers { TICKS_PER_CYCLE } else { 0 }
            }
            PublishMode::Paced(pause) | PublishMode::Large(pause) => {
                next = if next == 0 { now.0 } else { next };
                let due = u64::from(now.0 >= next);
                next += due * pause;
                due
            }
        };
        let publishes =
            shared.may_publish.load(Ordering::Acquire) && !shared.stop_publishing.load(Ordering::Acquire);
        if publishes {
            for _ in 0..count {
                published += 1;
                let at = match mode {
                    PublishMode::Fast(_) => now,
                    PublishMode::Paced(pause) | PublishMode::Large(pause) => Timestamp(next - pause),
                };
                if matches!(mode, PublishMode::Large(_)) {
                    // The message carries the time that is passed here.
                    endpoint.handle_notification(at, &large);
                    continue;
                }
                let body =
                    EventKind::Tick(tick(securities[index_usize(published) % securities.len()], published));
                endpoint.handle_event(now, ShardId(0), &Event { seq: published, at, body });
            }
        }
        net.run_cycle(now, |sockets, happening| {
            if let SocketEvent::EndOfCycle = happening {
                endpoint.poll(now, sockets, None, |_| {});
            } else {
                endpoint.handle(now, sockets, happening);
            }
        });
        if publishes && count > 0 && !matches!(mode, PublishMode::Fast(_)) {
            cycles.saturating_record(clock.delta_as_nanos(0, clock.raw()) - now.0);
            shared.published.store(published, Ordering::Release);
            if published % QUEUE_CHECK_EVERY == 0 {
                let queued_bytes =
                    |row: SessionInfo| row.queue_bytes + row.stomp.map_or(0, |stomp| stomp.backlog_bytes);
                shared
                    .queued_max
                    .fetch_max(endpoint.rows().map(queued_bytes).max().unwrap_or(0), Ordering::Relaxed);
            }
        }
    }
    cycles
}

/// Events between two looks at the queues.
const QUEUE_CHECK_EVERY: u64 = 64;

/// All consumers, in the calling thread.
pub struct ConsumerPool {
    sockets: Vec<TcpStream>,
    /// Connections that stay open and do not read.
    _stalled: Vec<TcpStream>,
    neighbours: Option<Neighbours>,
    buffer: Vec<u8>,
    pub messages: u64,
    pub octets: u64,
    /// Bytes of every message; `None`: each message ends with a zero byte.
    length: Option<u64>,
}

impl ConsumerPool {
    fn stomp(address: SocketAddr, topic: &str, consumers: usize, stalled: usize) -> ConsumerPool {
        let open = |_| {
            let mut socket = TcpStream::connect(address).expect("the server listens");
            socket.write_all(hello(topic).as_bytes()).expect("the server reads");
            // Byte by byte, so that nothing behind the receipt is consumed.
            let mut response = Vec::new();
            while response.iter().filter(|byte| **byte == 0).count() < 2 {
                let mut byte = [0];
                socket.read_exact(&mut byte).expect("the server answers");
                response.extend_from_slice(&byte);
            }
            socket.set_nonblocking(true).expect("a socket takes options");
            socket
        };
        let stalled: Vec<_> = (0..stalled).map(open).collect();
        ConsumerPool {
            _stalled: stalled,
            ..ConsumerPool::zero_terminated((0..consumers).map(open).collect())
        }
    }

    /// Creates consumers of STOMP: every frame ends with a zero byte.
    pub fn zero_terminated(sockets: Vec<TcpStream>) -> ConsumerPool {
        ConsumerPool::new(sockets, None)
    }

    /// Creates consumers of messages that all have the same length.
    pub fn fixed_length(sockets: Vec<TcpStream>, length: u64) -> ConsumerPool {
        ConsumerPool::new(sockets, Some(length))
    }

    fn new(sockets: Vec<TcpStream>, length: Option<u64>) -> ConsumerPool {
        let (stalled, buffer) = (Vec::new(), vec![0; READ_BYTES]);
        ConsumerPool { sockets, _stalled: stalled, neighbours: None, buffer, messages: 0, octets: 0, length }
    }

    fn read_for(&mut self, shared: &FanOutState, time: Duration, observe: impl FnMut(&[u8])) {
        self.read_while(shared, time, observe, |_| {});
    }

    /// Reads for `time`, and calls `after_poll` with the number of messages so far after each poll
    /// of all sockets.
    pub fn read_while(
        &mut self,
        shared: &FanOutState,
        time: Duration,
        mut observe: impl FnMut(&[u8]),
        mut after_poll: impl FnMut(u64),
    ) {
        shared.may_publish.store(true, Ordering::Release);
        let end = Instant::now() + time;
        let deadline = end + TIMEOUT;
        let messages_before = self.messages;
        while Instant::now() < end || self.messages == messages_before && Instant::now() < deadline {
            let idle = self.poll(shared, &mut observe);
            after_poll(self.messages);
            if idle {
                spin_loop();
            }
        }
    }

    /// Reads what has arrived on each socket, and returns whether that was nothing.
    fn poll(&mut self, shared: &FanOutState, observe: &mut impl FnMut(&[u8])) -> bool {
        let mut idle = true;
        for socket in &mut self.sockets {
            match socket.read(&mut self.buffer) {
                Ok(0) => panic!("the server closed the connection"),
                Ok(read) => {
                    let bytes = &self.buffer[..read];
                    self.octets += read as u64;
                    match self.length {
                        Some(length) => self.messages = self.octets / length,
                        None => self.messages += memchr::memchr_iter(0, bytes).count() as u64,
                    }
                    observe(bytes);
                    idle = false;
                }
                Err(error) if error.kind() == ErrorKind::WouldBlock => {}
                Err(error) => panic!("{error}"),
            }
        }
        shared.delivered.store(self.messages, Ordering::Release);
        if idle && let Some(neighbours) = &mut self.neighbours {
            neighbours.step();
        }
        idle
    }
}

fn hello(topic: &str) -> String {
    format!("CONNECT\naccept-version:1.2\n\n\0SUBSCRIBE\nid:1\ndestination:/topic/{topic}\nreceipt:r\n\n\0")
}
