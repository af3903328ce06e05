//! One market to many consumers over loopback: an endpoint of the gateway with its sockets on one
//! core, all consumers on the other.
//!
//! Throughput is measured in a closed loop: a tick is published while no consumer is too far
//! behind, so that nothing is conflated and every delivery counts. Latency is measured in an open
//! loop: each tick has a planned time, and its latency counts from there.

mod endpoint;
pub mod feed;
mod server;

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use pitlane_engine::refdata::RefData;

use self::endpoint::FanOutProtocol;
use self::server::{FanOutServer, PublishMode};
use crate::conditions::Pinning;
use crate::consumers::{ConsumerPool, Observed, TIMEOUT, WARM_UP};
use crate::neighbours::Neighbours;
use crate::report::recording::{Recording, SLICE_NS};
use crate::tick_reader::BodyReader;

/// Measures deliveries per second to this many consumers.
pub fn throughput(
    pinning: &Pinning,
    reference: &Arc<RefData>,
    consumers: usize,
    body: BodyReader,
    time: Duration,
) -> f64 {
    let server =
        FanOutServer::start(pinning, reference, FanOutProtocol::Stomp, PublishMode::Fast(consumers as u64));
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
    let server = FanOutServer::start(pinning, reference, FanOutProtocol::Stomp, PublishMode::Paced(pause));
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
    let server =
        FanOutServer::start(pinning, reference, FanOutProtocol::Stomp, PublishMode::Large(1_000_000));
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
    let server =
        FanOutServer::start(pinning, reference, FanOutProtocol::Stomp, PublishMode::Large(1_000_000));
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
            Observed::Tick { tick, .. } => count(tick.ts),
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
