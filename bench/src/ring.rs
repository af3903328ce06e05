//! The bare ring: a command-sized message in one direction, an event-sized one back, one in flight,
//! both threads spinning. The time of a lane with a shard behind it beyond this is the platform's
//! own. The same is measured for our lanes with nothing behind them.

use std::hint::spin_loop;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

use hdrhistogram::Histogram;
use pitlane_engine::command::Command;
use pitlane_engine::event::Event;
use pitlane_engine::lane::lane;
use pitlane_sys::affinity::pin_current_thread;
use quanta::Clock;

use crate::conditions::Pinning;
use crate::measure::histogram;

type CommandWords = [u64; size_of::<Command>() / 8];
type EventWords = [u64; size_of::<Event>() / 8];

/// Round trips that are not counted, while caches and frequencies settle.
pub const WARM_UP: usize = 10_000;

/// Measures round trips over the bare ring, in nanoseconds.
pub fn round_trips(pinning: &Pinning, trips: usize) -> Histogram<u64> {
    let (mut commands, mut command_receiver) = rtrb::RingBuffer::<CommandWords>::new(1_024);
    let (mut event_sender, mut events) = rtrb::RingBuffer::<EventWords>::new(4_096);
    let mut event_out: EventWords = [0; size_of::<Event>() / 8];
    let echo = PollThread::start(pinning, move || {
        if let Ok(message) = command_receiver.pop() {
            event_out[0] = message[0];
            event_sender.push(event_out).expect(HAS_SPACE);
        }
    });
    timed(trips, echo, |message| commands.push(message).expect(HAS_SPACE), || events.pop().ok())
}

/// Measures the same over two lanes.
pub fn lane_round_trips(pinning: &Pinning, trips: usize) -> Histogram<u64> {
    let (mut commands, mut command_receiver) = lane::<CommandWords>(1_024);
    let (mut event_sender, mut events) = lane::<EventWords>(4_096);
    let mut event_out: EventWords = [0; size_of::<Event>() / 8];
    let echo = PollThread::start(pinning, move || {
        if let Some(message) = command_receiver.take() {
            event_out[0] = message[0];
            event_sender.send(event_out).expect(HAS_SPACE);
        }
    });
    timed(trips, echo, |message| commands.send(message).expect(HAS_SPACE), || events.take())
}

const HAS_SPACE: &str = "one is in flight, and the lane has space for more";

fn timed(
    trips: usize,
    echo: PollThread,
    mut send: impl FnMut(CommandWords),
    mut take: impl FnMut() -> Option<EventWords>,
) -> Histogram<u64> {
    let clock = Clock::new();
    let mut histogram = histogram();
    for trip in 0..WARM_UP + trips {
        let mut message: CommandWords = [trip as u64; size_of::<Command>() / 8];
        message[1] = 1;
        let begin = clock.raw();
        send(message);
        let event = loop {
            if let Some(event) = take() {
                break event;
            }
            spin_loop();
        };
        let ns = clock.delta_as_nanos(begin, clock.raw());
        assert!(event[0] == trip as u64, "what comes back is what was sent");
        if trip >= WARM_UP {
            histogram.saturating_record(ns);
        }
    }
    echo.stop();
    histogram
}

/// A thread on the second core that repeats one function until it is stopped.
pub struct PollThread {
    stop: Arc<AtomicBool>,
    thread: thread::JoinHandle<()>,
}

impl PollThread {
    pub fn start(pinning: &Pinning, mut cycle: impl FnMut() + Send + 'static) -> PollThread {
        let stop = Arc::new(AtomicBool::new(false));
        let (stopped, core) = (Arc::clone(&stop), pinning.second);
        let thread = thread::spawn(move || {
            if let Some(core) = core {
                _ = pin_current_thread(core);
            }
            while !stopped.load(Ordering::Relaxed) {
                cycle();
                spin_loop();
            }
        });
        PollThread { stop, thread }
    }

    pub fn stop(self) {
        self.stop.store(true, Ordering::Relaxed);
        self.thread.join().expect("the thread does not panic");
    }
}
