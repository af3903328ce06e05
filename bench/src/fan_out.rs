//! One market to many consumers over loopback: the gateway's STOMP room with its sockets on one core, all consumers on the other.
//!
//! Throughput is closed: a tick is said while nobody is too far behind, so that nothing is conflated and every delivery counts.
//! Latency is open: each tick has its time, and its delivery is counted from it.

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

/// Ticks said in one turn at most: as many as a gateway under load finds on its lanes, which hold thousands.
const TICKS_PER_TURN: u64 = 64;
/// Ticks that may be said and not delivered to everybody. Half of them fill what may wait for one consumer.
const AHEAD: u64 = 512;
/// Before anything is counted.
pub const WARM_UP: Duration = Duration::from_millis(300);
/// Nothing of this takes long.
const PATIENCE: Duration = Duration::from_secs(30);
/// What a consumer reads at once.
const READ_BYTES: usize = 256 * 1_024;
/// A large message: the text in the body of an event between strategies.
const LARGE_BYTES: usize = 4 * 1_024;

/// What was measured.
#[derive(Clone, Debug)]
pub struct Throughput {
    pub deliveries_per_s: f64,
    /// Of one delivery, head and all.
    pub octets: f64,
}

/// What both sides share.
#[derive(Default)]
pub struct Shared {
    /// Deliveries counted by the consumers.
    delivered: AtomicU64,
    /// Events said to all.
    said: AtomicU64,
    /// Most that waited for one consumer.
    held_max: AtomicU64,
    /// Everybody is there.
    go: AtomicBool,
    /// Nothing more is to be said.
    hush: AtomicBool,
    stop: AtomicBool,
}

/// How the server is to speak.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Manner {
    /// As fast as the slowest of so many consumers takes it.
    Fast(u64),
    /// One tick in so many nanoseconds.
    Paced(u64),
    /// The same with an event of [`LARGE_BYTES`], which may not be lost.
    Large(u64),
}

/// Deliveries a second to so many consumers.
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

/// Nanoseconds from a tick's time to its delivery, at so many deliveries a second in all.
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

/// Ten consumers at 1,000 events of 4 KiB a second each, of whom so many do not read.
pub fn beside_stalled(pinning: &Pinning, reference: &Arc<RefData>, stalled: usize, time: Duration) -> Heard {
    let room = Room::start(pinning, reference, Manner::Large(1_000_000));
    let crowd = Crowd::stomp(room.address, "generic-event.*", 10 - stalled, stalled);
    listen(room, crowd, time)
}

/// One consumer at 1,000 events of 4 KiB a second, alone or beside one who does not read, one with the smallest window who reads
/// an octet at a time, and [`CHURNING`] who come and go.
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

/// Connections that come and go, all of them once in [`CHURN_TIME`]: few enough a second that what they cost the consumers' own
/// core stays below a hundredth.
const CHURNING: usize = 100;
const CHURN_TIME: Duration = Duration::from_secs(2);

/// Those who come and go, and the one with a small window.
struct Neighbours {
    address: SocketAddr,
    churning: Vec<TcpStream>,
    /// Whose turn it is to go.
    turn: usize,
    due: Instant,
    narrow: TcpStream,
}

impl Neighbours {
    fn new(address: SocketAddr) -> Neighbours {
        let narrow =
            socket2::Socket::new(socket2::Domain::IPV4, socket2::Type::STREAM, None).expect("a socket");
        // As small as the system lets it be.
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
        // What they ask for is quiet: a hundred who also wanted every event would be a hundred times the work, not bad company.
        socket.write_all(hello("log-event.*").as_bytes()).expect("it reads");
        socket
    }

    fn act(&mut self) {
        // Whoever has been sent away for his slowness does not come again.
        let _ = self.narrow.read(&mut [0; 1]);
        if Instant::now() >= self.due {
            self.due += CHURN_TIME / CHURNING as u32;
            self.turn = (self.turn + 1) % CHURNING;
            self.churning[self.turn] = self.another();
        }
    }
}

/// What consumers heard.
#[derive(Clone, Debug)]
pub struct Heard {
    pub recording: Recording,
    /// Longest time without any delivery.
    pub gap: Duration,
    /// Events that were said and did not come to somebody who reads.
    pub missing: u64,
    /// What the server's thread took for an event, from its being due to the last write, at the median.
    pub turn_ns: f64,
    /// Most that ever waited for one consumer, in bytes.
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
            // One that was cut in two is not a time.
            if now > said && now - said < 10_000_000_000 {
                recording.count(said.saturating_sub(begin), now - said);
            }
        }
    });
    recording.per_s_reached = recording.all.len() as f64 / time.as_secs_f64();
    let shared = room.shared.clone();
    // Nothing more is said, and what was said comes.
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
    /// Times of ticks are readings of this.
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

    /// How long the turns took in which something was said, in nanoseconds.
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
                    // Its time is the one it is told at.
                    room.handle_note(at, &large);
                    continue;
                }
                let body = EventKind::Tick(tick(securities[said as usize % securities.len()], said));
                room.hear(now, ShardId(0), &Event { seq: said, at, body });
            }
        }
        net.turn(now, |sockets, happening| match happening {
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

/// Events between two looks at what waits.
const HELD_EVERY: u64 = 64;

/// All consumers, in the calling thread.
pub struct Crowd {
    sockets: Vec<TcpStream>,
    /// They are there and do not read.
    _stalled: Vec<TcpStream>,
    neighbours: Option<Neighbours>,
    buffer: Vec<u8>,
    pub messages: u64,
    pub octets: u64,
    /// Of every message; None: each ends with a zero.
    length: Option<u64>,
}

impl Crowd {
    fn stomp(address: SocketAddr, topic: &str, consumers: usize, stalled: usize) -> Crowd {
        let open = |_| {
            let mut socket = TcpStream::connect(address).expect("the room is open");
            socket.write_all(hello(topic).as_bytes()).expect("it reads");
            // Byte by byte, so that nothing behind the receipt is swallowed.
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

    /// Consumers of STOMP: every frame ends with a zero.
    pub fn by_ends(sockets: Vec<TcpStream>) -> Crowd {
        Crowd::new(sockets, None)
    }

    /// Consumers of messages that all have the same length.
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

    /// Reads for a while, and after each look at all sockets does something with the number of messages so far.
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

    /// Reads what has come to each, and says whether that was nothing.
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
