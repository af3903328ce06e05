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

type There = [u64; size_of::<Command>() / 8];
type Back = [u64; size_of::<Event>() / 8];

/// Round trips that are not counted, while caches and frequencies settle.
pub const WARM_UP: usize = 10_000;

/// Measures round trips over the bare ring, in nanoseconds.
pub fn round_trips(pinning: &Pinning, trips: usize) -> Histogram<u64> {
    let (mut there, mut there_end) = rtrb::RingBuffer::<There>::new(1_024);
    let (mut back_start, mut back) = rtrb::RingBuffer::<Back>::new(4_096);
    let mut answer: Back = [0; size_of::<Event>() / 8];
    let echo = Partner::start(pinning, move || {
        if let Ok(message) = there_end.pop() {
            answer[0] = message[0];
            back_start.push(answer).expect(ROOM);
        }
    });
    timed(trips, echo, |message| there.push(message).expect(ROOM), || back.pop().ok())
}

/// Measures the same over two lanes.
pub fn lane_round_trips(pinning: &Pinning, trips: usize) -> Histogram<u64> {
    let (mut there, mut there_end) = lane::<There>(1_024);
    let (mut back_start, mut back) = lane::<Back>(4_096);
    let mut answer: Back = [0; size_of::<Event>() / 8];
    let echo = Partner::start(pinning, move || {
        if let Some(message) = there_end.take() {
            answer[0] = message[0];
            back_start.send(answer).expect(ROOM);
        }
    });
    timed(trips, echo, |message| there.send(message).expect(ROOM), || back.take())
}

const ROOM: &str = "one is in flight, and there is room for more";

fn timed(
    trips: usize,
    echo: Partner,
    mut send: impl FnMut(There),
    mut take: impl FnMut() -> Option<Back>,
) -> Histogram<u64> {
    let clock = Clock::new();
    let mut histogram = histogram();
    for trip in 0..WARM_UP + trips {
        let mut message: There = [trip as u64; size_of::<Command>() / 8];
        message[1] = 1;
        let begin = clock.raw();
        send(message);
        let heard = loop {
            if let Some(heard) = take() {
                break heard;
            }
            spin_loop();
        };
        let ns = clock.delta_as_nanos(begin, clock.raw());
        assert!(heard[0] == trip as u64, "what comes back is what was sent");
        if trip >= WARM_UP {
            histogram.saturating_record(ns);
        }
    }
    echo.stop();
    histogram
}

/// A thread on the second core that repeats one function until it is stopped.
pub struct Partner {
    stop: Arc<AtomicBool>,
    thread: thread::JoinHandle<()>,
}

impl Partner {
    pub fn start(pinning: &Pinning, mut cycle: impl FnMut() + Send + 'static) -> Partner {
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
        Partner { stop, thread }
    }

    pub fn stop(self) {
        self.stop.store(true, Ordering::Relaxed);
        self.thread.join().expect("the partner does not panic");
    }
}
