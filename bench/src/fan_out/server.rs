//! The gateway's side of a fan-out, in a thread of its own: publishes ticks or events and runs the
//! cycles of the sockets.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::sync::mpsc;
use std::thread::{self, JoinHandle};

use hdrhistogram::Histogram;
use pitlane_engine::event::{Event, EventKind, Tick};
use pitlane_engine::id::SecurityId;
use pitlane_engine::index::index_usize;
use pitlane_engine::number::Qty;
use pitlane_engine::refdata::RefData;
use pitlane_engine::time::Timestamp;
use pitlane_gateway::notifications::Notification;
use pitlane_net::Net;
use pitlane_net::listener::Listener;
use pitlane_net::settings::{ListenerSettings, NetSettings};
use pitlane_sys::affinity::pin_current_thread;
use quanta::Clock;

use super::endpoint::{FanOutEndpoint, FanOutProtocol};
use crate::conditions::Pinning;
use crate::consumers::{FanOutState, TIMEOUT};
use crate::measure::histogram;
use crate::stomp::tick;

/// Most ticks published in one cycle: as many as a gateway under load finds on its lanes, which
/// hold thousands.
const TICKS_PER_CYCLE: u64 = 64;
/// Ticks that may be published and not yet delivered to all consumers. Half of them fill the queue
/// of one consumer.
const AHEAD_MAX: u64 = 512;
/// Bytes of a large message: the text in the body of an event between strategies.
const LARGE_BYTES: usize = 4 * 1_024;
/// Events between two looks at the queues.
const QUEUE_CHECK_EVERY: u64 = 64;

/// How the server publishes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum PublishMode {
    /// As fast as the slowest of this many consumers reads.
    Fast(u64),
    /// One tick per interval, in nanoseconds.
    Paced(u64),
    /// The same, with the number of each tick as the size of its trade.
    Numbered(u64),
    /// One event of [`LARGE_BYTES`] per interval, in nanoseconds; none of them may be lost.
    Large(u64),
}

impl PublishMode {
    /// Returns the nanoseconds between two planned times; `None` without planned times.
    fn pause_ns(self) -> Option<u64> {
        match self {
            PublishMode::Fast(_) => None,
            PublishMode::Paced(pause) | PublishMode::Numbered(pause) | PublishMode::Large(pause) => {
                Some(pause.max(1))
            }
        }
    }
}

/// A running server. Dropping it stops the thread, so that a run that fails leaves no thread on the
/// core.
pub(super) struct FanOutServer {
    pub(super) address: SocketAddr,
    pub(super) shared: Arc<FanOutState>,
    /// Clock that the times of ticks are read from.
    pub(super) clock: Clock,
    /// `None` once it has been stopped.
    thread: Option<JoinHandle<Histogram<u64>>>,
}

impl Drop for FanOutServer {
    fn drop(&mut self) {
        self.stop();
    }
}

impl FanOutServer {
    pub(super) fn start(
        pinning: &Pinning,
        reference: &Arc<RefData>,
        protocol: FanOutProtocol,
        mode: PublishMode,
    ) -> FanOutServer {
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
            let endpoint = FanOutEndpoint::new(protocol, now(&time), reference.clone());
            serve(net, endpoint, &reference, &time, mode, &thread_state)
        });
        let address = address.recv_timeout(TIMEOUT).expect("the server starts");
        FanOutServer { address, shared, clock, thread: Some(thread) }
    }

    /// Stops the thread and returns the durations, in nanoseconds, of the cycles in which something
    /// was published.
    pub(super) fn end(mut self) -> Histogram<u64> {
        self.stop().expect("the server does not panic")
    }

    /// Returns `None` if the thread was stopped before, or panicked.
    fn stop(&mut self) -> Option<Histogram<u64>> {
        self.shared.stop.store(true, Ordering::Relaxed);
        self.thread.take()?.join().ok()
    }
}

fn serve(
    mut net: Net,
    mut endpoint: FanOutEndpoint,
    reference: &RefData,
    clock: &Clock,
    mode: PublishMode,
    shared: &FanOutState,
) -> Histogram<u64> {
    let mut cycles = histogram();
    let securities: Vec<SecurityId> = reference.securities().iter().map(|row| row.id).collect();
    let text = format!("\"{}\"", "x".repeat(LARGE_BYTES));
    let large = Notification::Generic { name: "large".into(), body: text.into_bytes().into() };
    let (mut published, mut begin) = (0u64, None);
    while !shared.stop.load(Ordering::Relaxed) {
        let now = now(clock);
        let has_ended = shared.stop_publishing.load(Ordering::Acquire);
        let publishes = shared.may_publish.load(Ordering::Acquire) && !has_ended;
        // Number n has the planned time `begin` + (n - 1) × pause.
        let planned = |begin: Timestamp, nth: u64| begin.plus(nth * mode.pause_ns().unwrap_or(0));
        let count = match mode {
            _ if !publishes => 0,
            PublishMode::Fast(consumers) => {
                let waiting = endpoint.messages().saturating_sub(shared.delivered.load(Ordering::Acquire));
                if waiting < AHEAD_MAX * consumers { TICKS_PER_CYCLE } else { 0 }
            }
            PublishMode::Paced(pause) | PublishMode::Numbered(pause) | PublishMode::Large(pause) => {
                let begin = *begin.get_or_insert_with(|| {
                    shared.begin_ns.store(now.0, Ordering::Release);
                    now
                });
                let late_ns = now.0.checked_sub(planned(begin, published).0);
                late_ns.map_or(0, |late_ns| (late_ns / pause.max(1) + 1).min(TICKS_PER_CYCLE))
            }
        };
        for _ in 0..count {
            let at = begin.map_or(now, |begin| planned(begin, published));
            published += 1;
            let security = securities[index_usize(published) % securities.len()];
            let tick = match mode {
                PublishMode::Large(_) => {
                    // The message carries the time that is passed here.
                    endpoint.handle_notification(at, &large);
                    continue;
                }
                PublishMode::Fast(_) | PublishMode::Paced(_) => tick(security, published),
                PublishMode::Numbered(_) => numbered_tick(security, published),
            };
            endpoint.handle_event(now, &Event { seq: published, at, body: EventKind::Tick(tick) });
        }
        endpoint.run_cycle(now, &mut net);
        if count > 0 && mode.pause_ns().is_some() {
            cycles.saturating_record(clock.delta_as_nanos(0, clock.raw()) - now.0);
            shared.published.store(published, Ordering::Release);
            if published % QUEUE_CHECK_EVERY == 0 {
                shared.queued_max.fetch_max(endpoint.queued_bytes_max(), Ordering::Relaxed);
            }
        }
        if has_ended {
            shared.has_ended.store(true, Ordering::Release);
        }
    }
    cycles
}

/// Returns a tick whose trade has its number as size, so that every protocol carries the number.
fn numbered_tick(security: SecurityId, number: u64) -> Tick {
    let number_of_trade = i64::try_from(number).ok().and_then(Qty::whole);
    Tick { last_size: number_of_trade.expect("a run is short"), ..tick(security, number) }
}

fn now(clock: &Clock) -> Timestamp {
    Timestamp(clock.delta_as_nanos(0, clock.raw()))
}
