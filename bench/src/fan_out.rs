//! One market to many consumers over loopback: the gateway's STOMP endpoint with its sockets on one
//! core, all consumers on the other.
//!
//! Throughput is measured in a closed loop: a tick is published while no consumer is too far
//! behind, so that nothing is conflated and every delivery counts. Latency is measured in an open
//! loop: each tick has a planned time, and its latency counts from there.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::sync::mpsc;
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use hdrhistogram::Histogram;
use pitlane_auth::Role;
use pitlane_engine::event::{Event, EventKind};
use pitlane_engine::id::{SecurityId, ShardId};
use pitlane_engine::index::index_usize;
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
use crate::consumers::{ConsumerPool, FanOutRate, FanOutState, Observed, TIMEOUT, WARM_UP};
use crate::measure::histogram;
use crate::neighbours::Neighbours;
use crate::report::recording::{Recording, SLICE_NS};
use crate::stomp::tick;
use crate::tick_reader::BodyReader;

/// Most ticks published in one cycle: as many as a gateway under load finds on its lanes, which
/// hold thousands.
const TICKS_PER_CYCLE: u64 = 64;
/// Ticks that may be published and not yet delivered to all consumers. Half of them fill the queue
/// of one consumer.
const AHEAD_MAX: u64 = 512;
/// Bytes of a large message: the text in the body of an event between strategies.
const LARGE_BYTES: usize = 4 * 1_024;

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
    body: BodyReader,
    time: Duration,
) -> FanOutRate {
    let server = FanOutServer::start(pinning, reference, PublishMode::Fast(consumers as u64));
    let mut pool = ConsumerPool::stomp(server.address, "tick.*", consumers, 0, body);
    let rate = pool.throughput(&server.shared, time, |_| {});
    server.end();
    rate
}

/// Measures the nanoseconds from a tick's planned time to its delivery, at `per_second` deliveries
/// per second in total.
pub fn latency(
    pinning: &Pinning,
    reference: &Arc<RefData>,
    consumers: usize,
    body: BodyReader,
    per_second: u64,
    time: Duration,
) -> Recording {
    let pause = 1_000_000_000 * consumers as u64 / per_second;
    let server = FanOutServer::start(pinning, reference, PublishMode::Paced(pause));
    let pool = ConsumerPool::stomp(server.address, "tick.*", consumers, 0, body);
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
    let pool =
        ConsumerPool::stomp(server.address, "generic-event.*", 10 - stalled, stalled, BodyReader::None);
    measure(server, pool, time)
}

/// Measures one consumer at 1,000 events of 4 KiB per second, either alone or beside one that does
/// not read, one with the smallest window that reads a byte at a time, and
/// [`CHURNING`](crate::neighbours::CHURNING) that connect and disconnect.
pub fn with_bad_neighbours(
    pinning: &Pinning,
    reference: &Arc<RefData>,
    has_bad_neighbours: bool,
    time: Duration,
) -> FanOutResult {
    let server = FanOutServer::start(pinning, reference, PublishMode::Large(1_000_000));
    let stalled = usize::from(has_bad_neighbours);
    let mut pool = ConsumerPool::stomp(server.address, "generic-event.*", 1, stalled, BodyReader::None);
    if has_bad_neighbours {
        pool.neighbours = Some(Neighbours::new(server.address));
    }
    measure(server, pool, time)
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
    let (clock, decodes) = (server.clock.clone(), pool.decodes());
    let begin = clock.delta_as_nanos(0, clock.raw());
    pool.read_for(&server.shared, time, |observed| {
        gap = gap.max(last.elapsed());
        last = Instant::now();
        let now = clock.delta_as_nanos(0, clock.raw());
        let mut count = |sent_at: u64| {
            // A number that was cut in two by the read is not a time.
            if now > sent_at && now - sent_at < 10_000_000_000 {
                recording.count(sent_at.saturating_sub(begin), now - sent_at);
            }
        };
        match observed {
            Observed::Tick(tick) => count(tick.ts),
            Observed::Bytes(_) if decodes => {}
            Observed::Bytes(bytes) => sent_times(bytes).for_each(count),
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

/// Returns the times in bytes of JSON that are not decoded.
fn sent_times(bytes: &[u8]) -> impl Iterator<Item = u64> {
    memchr::memmem::find_iter(bytes, b"\"ts\":").map(|at| {
        let digits = bytes[at + 5..].iter().take_while(|byte| byte.is_ascii_digit());
        digits.fold(0u64, |sum, digit| sum.wrapping_mul(10).wrapping_add((digit - b'0') as u64))
    })
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
