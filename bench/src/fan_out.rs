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
use pitlane::auth::Role;
use pitlane::net::Net;
use pitlane::net::event::SocketEvent;
use pitlane::net::listener::Listener;
use pitlane::net::settings::{ListenerSettings, NetSettings};
use pitlane::notifications::{Notification, SessionInfo};
use pitlane::platform::gateway::stomp::StompEndpoint;
use pitlane::stomp::Logins;
use pitlane_engine::event::{Event, EventKind};
use pitlane_engine::id::{SecurityId, ShardId};
use pitlane_engine::refdata::RefData;
use pitlane_engine::time::Timestamp;
use pitlane_protocols::stomp::settings::BrokerSettings;
use pitlane_sys::affinity::pin_current_thread;
use quanta::Clock;

use crate::conditions::Pinning;
use crate::measure::histogram;
use crate::report::recording::{Recording, SLICE_NS};
use crate::stomp::tick;

/// Most ticks published in one cycle: as many as a gateway under load finds on its lanes, which
/// hold thousands.
const TICKS_PER_TURN: u64 = 64;
/// Ticks that may be published and not yet delivered to all consumers. Half of them fill the queue
/// of one consumer.
const AHEAD: u64 = 512;
/// Time before anything is counted.
pub const WARM_UP: Duration = Duration::from_millis(300);
/// Timeout of every step; none of them takes long.
const PATIENCE: Duration = Duration::from_secs(30);
/// Most bytes that a consumer reads at once.
const READ_BYTES: usize = 256 * 1_024;
/// Bytes of a large message: the text in the body of an event between strategies.
const LARGE_BYTES: usize = 4 * 1_024;

/// A measured throughput.
#[derive(Clone, Debug)]
pub struct Throughput {
    pub deliveries_per_s: f64,
    /// Bytes of one delivery, header included.
    pub octets: f64,
}

/// State shared by server and consumers.
#[derive(Default)]
pub struct Shared {
    /// Deliveries counted by the consumers.
    delivered: AtomicU64,
    /// Events published to all consumers.
    said: AtomicU64,
    /// Most bytes that waited for one consumer.
    held_max: AtomicU64,
    /// Set once all consumers are connected.
    go: AtomicBool,
    /// Set to end publishing.
    hush: AtomicBool,
    stop: AtomicBool,
}

/// How the server publishes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Manner {
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
) -> Throughput {
    let room = Room::start(pinning, reference, Manner::Fast(consumers as u64));
    let mut crowd = Crowd::stomp(room.address, "tick.*", consumers, 0);
    crowd.read_for(&room.shared, WARM_UP, |_| {});
    let (before, octets, begin) = (crowd.messages, crowd.octets, Instant::now());
    crowd.read_for(&room.shared, time, |_| {});
    let (messages, octets) = (crowd.messages - before, crowd.octets - octets);
    let deliveries_per_s = messages as f64 / begin.elapsed().as_secs_f64();
    room.end();
    Throughput { deliveries_per_s, octets: octets as f64 / messages.max(1) as f64 }
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
    let room = Room::start(pinning, reference, Manner::Paced(pause));
    let crowd = Crowd::stomp(room.address, "tick.*", consumers, 0);
    let mut recording = listen(room, crowd, time).recording;
    (recording.name, recording.per_s_planned) = (format!("stomp-to-{consumers}"), per_second as f64);
    recording
}

/// Measures ten consumers at 1,000 events of 4 KiB per second each, of which `stalled` do not read.
pub fn beside_stalled(pinning: &Pinning, reference: &Arc<RefData>, stalled: usize, time: Duration) -> Heard {
    let room = Room::start(pinning, reference, Manner::Large(1_000_000));
    let crowd = Crowd::stomp(room.address, "generic-event.*", 10 - stalled, stalled);
    listen(room, crowd, time)
}

/// Measures one consumer at 1,000 events of 4 KiB per second, either alone or beside one that does
/// not read, one with the smallest window that reads a byte at a time, and [`CHURNING`] that
/// connect and disconnect.
pub fn beside_neighbours(
    pinning: &Pinning,
    reference: &Arc<RefData>,
    are_bad: bool,
    time: Duration,
) -> Heard {
    let room = Room::start(pinning, reference, Manner::Large(1_000_000));
    let mut crowd = Crowd::stomp(room.address, "generic-event.*", 1, usize::from(are_bad));
    if are_bad {
        crowd.neighbours = Some(Neighbours::new(room.address));
    }
    listen(room, crowd, time)
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
    turn: usize,
    due: Instant,
    narrow: TcpStream,
}

impl Neighbours {
    fn new(address: SocketAddr) -> Neighbours {
        let narrow =
            socket2::Socket::new(socket2::Domain::IPV4, socket2::Type::STREAM, None).expect("a socket");
        // As small as the system permits.
        narrow.set_recv_buffer_size(1).expect("a socket takes options");
        narrow.connect(&address.into()).expect("the room is open");
        let mut narrow: TcpStream = narrow.into();
        narrow.write_all(hello("generic-event.*").as_bytes()).expect("it reads");
        narrow.set_nonblocking(true).expect("a socket takes options");
        let mut neighbours =
            Neighbours { address, churning: Vec::new(), turn: 0, due: Instant::now(), narrow };
        while neighbours.churning.len() < CHURNING {
            let another = neighbours.another();
            neighbours.churning.push(another);
        }
        neighbours
    }

    fn another(&self) -> TcpStream {
        let mut socket = TcpStream::connect(self.address).expect("the room is open");
        // They subscribe to a quiet topic: a hundred that received every event would be a hundred
        // times the work, not bad neighbours.
        socket.write_all(hello("log-event.*").as_bytes()).expect("it reads");
        socket
    }

    fn act(&mut self) {
        // A consumer that was disconnected for its slowness does not reconnect.
        let _ = self.narrow.read(&mut [0; 1]);
        if Instant::now() >= self.due {
            self.due += CHURN_TIME / CHURNING as u32;
            self.turn = (self.turn + 1) % CHURNING;
            self.churning[self.turn] = self.another();
        }
    }
}

/// What consumers received.
#[derive(Clone, Debug)]
pub struct Heard {
    pub recording: Recording,
    /// Longest time without any delivery.
    pub gap: Duration,
    /// Events that were published and did not reach a consumer that reads.
    pub missing: u64,
    /// Median nanoseconds that the server's thread spends on an event, from its planned time to the
    /// last write.
    pub turn_ns: f64,
    /// Most bytes that ever waited for one consumer.
    pub held_max: u64,
}

fn listen(room: Room, mut crowd: Crowd, time: Duration) -> Heard {
    crowd.read_for(&room.shared, WARM_UP, |_| {});
    let mut recording = Recording::new("stomp", 0.0, SLICE_NS);
    let (mut gap, mut last) = (Duration::ZERO, Instant::now());
    let clock = room.clock.clone();
    let begin = clock.delta_as_nanos(0, clock.raw());
    crowd.read_for(&room.shared, time, |bytes| {
        gap = gap.max(last.elapsed());
        last = Instant::now();
        let now = clock.delta_as_nanos(0, clock.raw());
        for at in memchr::memmem::find_iter(bytes, b"\"ts\":") {
            let digits = bytes[at + 5..].iter().take_while(|byte| byte.is_ascii_digit());
            let said =
                digits.fold(0u64, |sum, digit| sum.wrapping_mul(10).wrapping_add((digit - b'0') as u64));
            // A number that was cut in two by the read is not a time.
            if now > said && now - said < 10_000_000_000 {
                recording.count(said.saturating_sub(begin), now - said);
            }
        }
    });
    recording.per_s_reached = recording.all.len() as f64 / time.as_secs_f64();
    let shared = room.shared.clone();
    // Publishing ends, and the events on their way arrive.
    shared.hush.store(true, Ordering::Release);
    let healthy = crowd.sockets.len() as u64;
    let expected = || shared.said.load(Ordering::Acquire) * healthy;
    let late = Instant::now() + PATIENCE;
    while crowd.messages < expected() && Instant::now() < late {
        crowd.look(&shared, &mut |_| {});
    }
    let missing = expected().saturating_sub(crowd.messages);
    let turns = room.end();
    let held_max = shared.held_max.load(Ordering::Relaxed);
    Heard { recording, gap, missing, turn_ns: turns.value_at_quantile(0.5) as f64, held_max }
}

/// The gateway's side, in a thread of its own.
struct Room {
    address: SocketAddr,
    shared: Arc<Shared>,
    /// Clock that the times of ticks are read from.
    clock: Clock,
    thread: JoinHandle<Histogram<u64>>,
}

impl Room {
    fn start(pinning: &Pinning, reference: &Arc<RefData>, manner: Manner) -> Room {
        let (tell, address) = mpsc::channel();
        let (shared, clock) = (Arc::new(Shared::default()), Clock::new());
        let (core, told, reference, time) =
            (pinning.second, shared.clone(), reference.clone(), clock.clone());
        let thread = thread::spawn(move || {
            if let Some(core) = core {
                _ = pin_current_thread(core);
            }
            let mut net = Net::open(NetSettings::default()).expect("a driver opens");
            let any = "127.0.0.1:0".parse().expect("an address");
            let settings = ListenerSettings { send_kernel_bytes: 256 * 1_024, ..ListenerSettings::at(any) };
            let listener = Listener::bind(settings).expect("loopback has a port");
            tell.send(listener.address()).expect("somebody waits for it");
            net.listen(listener);
            serve(net, reference, &time, manner, &told)
        });
        let address = address.recv_timeout(PATIENCE).expect("the room opens");
        Room { address, shared, clock, thread }
    }

    /// Stops the thread and returns the durations, in nanoseconds, of the cycles in which something
    /// was published.
    fn end(self) -> Histogram<u64> {
        self.shared.stop.store(true, Ordering::Relaxed);
        self.thread.join().expect("the room does not panic")
    }
}

fn serve(
    mut net: Net,
    reference: Arc<RefData>,
    clock: &Clock,
    manner: Manner,
    shared: &Shared,
) -> Histogram<u64> {
    let mut turns = histogram();
    let securities: Vec<SecurityId> = reference.securities().iter().map(|row| row.id).collect();
    let logins = Logins::new(None, Role::Trade);
    let mut room = StompEndpoint::new(BrokerSettings::default(), reference, logins);
    let text = format!("\"{}\"", "x".repeat(LARGE_BYTES));
    let large = Notification::Generic { name: "large".into(), body: text.into_bytes().into() };
    let (mut said, mut next) = (0u64, 0u64);
    while !shared.stop.load(Ordering::Relaxed) {
        let now = Timestamp(clock.delta_as_nanos(0, clock.raw()));
        let count = match manner {
            Manner::Fast(consumers) => {
                let waiting = room.messages().saturating_sub(shared.delivered.load(Ordering::Acquire));
                if waiting < AHEAD * consumers { TICKS_PER_TURN } else { 0 }
            }
            Manner::Paced(pause) | Manner::Large(pause) => {
                next = if next == 0 { now.0 } else { next };
                let due = u64::from(now.0 >= next);
                next += due * pause;
                due
            }
        };
        let speaks = shared.go.load(Ordering::Acquire) && !shared.hush.load(Ordering::Acquire);
        if speaks {
            for _ in 0..count {
                said += 1;
                let at = match manner {
                    Manner::Fast(_) => now,
                    Manner::Paced(pause) | Manner::Large(pause) => Timestamp(next - pause),
                };
                if matches!(manner, Manner::Large(_)) {
                    // The message carries the time that is passed here.
                    room.handle_notification(at, &large);
                    continue;
                }
                let body = EventKind::Tick(tick(securities[said as usize % securities.len()], said));
                room.handle_event(now, ShardId(0), &Event { seq: said, at, body });
            }
        }
        net.run_cycle(now, |sockets, happening| match happening {
            SocketEvent::EndOfCycle => _ = room.poll(now, sockets, None, |_| {}),
            other => room.handle(now, sockets, other),
        });
        if speaks && count > 0 && !matches!(manner, Manner::Fast(_)) {
            turns.saturating_record(clock.delta_as_nanos(0, clock.raw()) - now.0);
            shared.said.store(said, Ordering::Release);
            if said % HELD_EVERY == 0 {
                let waits =
                    |row: SessionInfo| row.queue_bytes + row.stomp.map_or(0, |stomp| stomp.backlog_bytes);
                shared.held_max.fetch_max(room.rows().map(waits).max().unwrap_or(0), Ordering::Relaxed);
            }
        }
    }
    turns
}

/// Events between two looks at the queues.
const HELD_EVERY: u64 = 64;

/// All consumers, in the calling thread.
pub struct Crowd {
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

impl Crowd {
    fn stomp(address: SocketAddr, topic: &str, consumers: usize, stalled: usize) -> Crowd {
        let open = |_| {
            let mut socket = TcpStream::connect(address).expect("the room is open");
            socket.write_all(hello(topic).as_bytes()).expect("it reads");
            // Byte by byte, so that nothing behind the receipt is consumed.
            let mut answer = Vec::new();
            while answer.iter().filter(|byte| **byte == 0).count() < 2 {
                let mut byte = [0];
                socket.read_exact(&mut byte).expect("it answers");
                answer.extend_from_slice(&byte);
            }
            socket.set_nonblocking(true).expect("a socket takes options");
            socket
        };
        let stalled: Vec<_> = (0..stalled).map(open).collect();
        Crowd { _stalled: stalled, ..Crowd::by_ends((0..consumers).map(open).collect()) }
    }

    /// Creates consumers of STOMP: every frame ends with a zero byte.
    pub fn by_ends(sockets: Vec<TcpStream>) -> Crowd {
        Crowd::new(sockets, None)
    }

    /// Creates consumers of messages that all have the same length.
    pub fn by_length(sockets: Vec<TcpStream>, length: u64) -> Crowd {
        Crowd::new(sockets, Some(length))
    }

    fn new(sockets: Vec<TcpStream>, length: Option<u64>) -> Crowd {
        let (stalled, buffer) = (Vec::new(), vec![0; READ_BYTES]);
        Crowd { sockets, _stalled: stalled, neighbours: None, buffer, messages: 0, octets: 0, length }
    }

    fn read_for(&mut self, shared: &Shared, time: Duration, see: impl FnMut(&[u8])) {
        self.read_and(shared, time, see, |_| {});
    }

    /// Reads for `time`, and calls `between` with the number of messages so far after each poll of
    /// all sockets.
    pub fn read_and(
        &mut self,
        shared: &Shared,
        time: Duration,
        mut see: impl FnMut(&[u8]),
        mut between: impl FnMut(u64),
    ) {
        shared.go.store(true, Ordering::Release);
        let end = Instant::now() + time;
        let late = end + PATIENCE;
        let begun = self.messages;
        while Instant::now() < end || self.messages == begun && Instant::now() < late {
            let idle = self.look(shared, &mut see);
            between(self.messages);
            if idle {
                spin_loop();
            }
        }
    }

    /// Reads what has arrived on each socket, and returns whether that was nothing.
    fn look(&mut self, shared: &Shared, see: &mut impl FnMut(&[u8])) -> bool {
        let mut idle = true;
        for socket in &mut self.sockets {
            match socket.read(&mut self.buffer) {
                Ok(0) => panic!("the server has hung up"),
                Ok(read) => {
                    let bytes = &self.buffer[..read];
                    self.octets += read as u64;
                    match self.length {
                        Some(length) => self.messages = self.octets / length,
                        None => self.messages += memchr::memchr_iter(0, bytes).count() as u64,
                    }
                    see(bytes);
                    idle = false;
                }
                Err(error) if error.kind() == ErrorKind::WouldBlock => {}
                Err(error) => panic!("{error}"),
            }
        }
        shared.delivered.store(self.messages, Ordering::Release);
        if idle && let Some(neighbours) = &mut self.neighbours {
            neighbours.act();
        }
        idle
    }
}

fn hello(topic: &str) -> String {
    format!("CONNECT\naccept-version:1.2\n\n\0SUBSCRIBE\nid:1\ndestination:/topic/{topic}\nreceipt:r\n\n\0")
}
