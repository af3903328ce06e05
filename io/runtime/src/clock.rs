//! The only clock. All other code receives the time as an argument.
//!
//! Timestamps follow the wall clock but never go back. Between two readings of the wall clock the
//! processor's counter measures the time; at each reading our time follows the wall clock: at once
//! if that is ahead, slowly if it is behind because it was set back, so that timers keep running
//! while the difference shrinks. The clock of a new process starts where the last one ended, if the
//! wall clock is behind that: otherwise all commands would carry the time of the last one until the
//! wall clock caught up, and limits per second would refuse all orders but the first few.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{SystemTime, UNIX_EPOCH};

use pitlane_engine::time::Timestamp;

use crate::fault_injection;

/// Interval between two readings of the wall clock: the counter drifts by less than a microsecond
/// in that time.
const READ_INTERVAL_NS: u64 = 100_000_000;
/// A clock that is ahead of the wall clock takes back this part of the time that has passed since
/// the last reading. It is the same part for a busy thread and for one that sleeps for a second, so
/// that their clocks stay together.
const BACK_PART: u64 = 100;

/// A thread's clock. Each thread has its own; they differ by at most what a thread takes back
/// between two readings, and the difference between the wall clock and the counter.
#[derive(Debug)]
pub struct Clock {
    counter: quanta::Clock,
    start: u64,
    time: SlewedTime,
    /// If set, the clock shows this value.
    external: Option<Arc<AtomicU64>>,
}

impl Clock {
    pub fn new() -> Clock {
        let counter = quanta::Clock::new();
        let start = counter.raw();
        Clock { counter, start, time: SlewedTime::from(wall_ns()), external: None }
    }

    /// Creates a clock that starts at this time or later.
    pub fn starting_at(earliest: Timestamp) -> Clock {
        Clock { time: SlewedTime::from(wall_ns().max(earliest.0)), ..Clock::new() }
    }

    /// Returns the time at which the clock started.
    pub fn started_at(&self) -> Timestamp {
        Timestamp(self.time.started_at)
    }

    /// Creates a clock whose time another thread sets, in nanoseconds since the epoch: for tests
    /// that let an hour pass at once.
    pub fn controlled(external: Arc<AtomicU64>) -> Clock {
        Clock { external: Some(external), ..Clock::new() }
    }

    pub fn now(&mut self) -> Timestamp {
        if let Some(external) = &self.external {
            return Timestamp(external.load(Ordering::Acquire));
        }
        let elapsed = self.counter.delta_as_nanos(self.start, self.counter.raw());
        Timestamp(self.time.at(elapsed, wall_ns))
    }
}

impl Default for Clock {
    fn default() -> Clock {
        Clock::new()
    }
}

/// Returns how long a clock that is `ahead_ns` ahead of the wall clock takes until they agree.
pub fn catch_up_ns(ahead_ns: u64) -> u64 {
    ahead_ns.saturating_mul(BACK_PART)
}

/// Returns the unmodified wall clock, for log lines: it may go back.
pub fn wall() -> Timestamp {
    Timestamp(wall_ns())
}

fn wall_ns() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    fault_injection::wall_clock(u64::try_from(since.as_nanos()).unwrap_or(u64::MAX))
}

/// Our time as a function of the counter, corrected by the wall clock. All fields in nanoseconds.
#[derive(Debug)]
struct SlewedTime {
    /// Our time at the last reading.
    base: u64,
    /// The counter's time at the last reading.
    read_at: u64,
    /// The latest time returned.
    latest: u64,
    started_at: u64,
}

impl SlewedTime {
    fn from(wall: u64) -> SlewedTime {
        SlewedTime { base: wall, read_at: 0, latest: wall, started_at: wall }
    }

    fn at(&mut self, elapsed: u64, wall: impl FnOnce() -> u64) -> u64 {
        let since = elapsed.saturating_sub(self.read_at);
        let mut now = self.base.saturating_add(since);
        if since >= READ_INTERVAL_NS {
            let wall = wall();
            now = wall.max(now.saturating_sub(since / BACK_PART));
            (self.base, self.read_at) = (now, elapsed);
        }
        self.latest = self.latest.max(now);
        self.latest
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const START: u64 = 1_700_000_000_000_000_000;

    #[test]
    fn between_readings_the_counter_measures_the_time() {
        let mut time = SlewedTime::from(START);
        let unread = || unreachable!("the wall clock is not asked");
        assert_eq!(time.at(0, unread), START);
        assert_eq!(time.at(READ_INTERVAL_NS - 1, unread), START + READ_INTERVAL_NS - 1);
    }

    #[test]
    fn a_wall_clock_ahead_is_followed_at_once() {
        let mut time = SlewedTime::from(START);
        let hour = 3_600_000_000_000;
        assert_eq!(time.at(READ_INTERVAL_NS, || START + hour), START + hour);
        assert_eq!(time.at(READ_INTERVAL_NS + 5, || 0), START + hour + 5);
    }

    /// The wall clock is this much behind in an interval that is taken back in full.
    const BACK_NS: u64 = READ_INTERVAL_NS / BACK_PART;

    #[test]
    fn a_wall_clock_that_was_set_back_is_approached_without_going_back() {
        let mut time = SlewedTime::from(START);
        let behind = 10 * BACK_NS;
        let mut before = START;
        for step in 1..=1_000u64 {
            let elapsed = step * READ_INTERVAL_NS / 10;
            let now = time.at(elapsed, || START + elapsed - behind);
            assert!(now >= before, "time went back by {} ns", before - now);
            before = now;
        }
        assert_eq!(before, START + 1_000 * READ_INTERVAL_NS / 10 - behind);
    }

    #[test]
    fn a_clock_that_starts_ahead_keeps_running_and_its_lead_shrinks() {
        let (hour, second) = (3_600_000_000_000, 1_000_000_000);
        let mut time = SlewedTime::from(START + hour);
        let mut before = START + hour;
        for step in 1..=600u64 {
            let elapsed = step * READ_INTERVAL_NS;
            let now = time.at(elapsed, || START + elapsed);
            assert!(now > before, "it stands still");
            before = now;
        }
        let minute = 60 * second;
        assert_eq!(START + hour + minute - before, 600 * BACK_NS, "a hundredth of the time is taken back");
        assert_eq!(catch_up_ns(600 * BACK_NS), minute);
    }

    #[test]
    fn clocks_of_busy_and_of_idle_threads_stay_together() {
        let (hour, second) = (3_600_000_000_000, 1_000_000_000);
        let (mut busy, mut idle) = (SlewedTime::from(START + hour), SlewedTime::from(START + hour));
        for step in 1..=600u64 {
            let of_busy = (1..=10u64).map(|part| {
                let elapsed = (step - 1) * second + part * READ_INTERVAL_NS;
                busy.at(elapsed, || START + elapsed)
            });
            let of_busy = of_busy.last().expect("ten readings");
            let of_idle = idle.at(step * second, || START + step * second);
            assert!(of_busy.abs_diff(of_idle) < 1_000, "{of_busy} and {of_idle} after {step} s");
        }
    }

    #[test]
    fn a_clock_does_not_start_before_the_given_time() {
        let later = wall().plus(3_600_000_000_000);
        let mut clock = Clock::starting_at(later);
        assert_eq!(clock.started_at(), later);
        assert!(clock.now() >= later);
        assert!(Clock::starting_at(Timestamp(START)).now() > Timestamp(START));
    }

    #[test]
    fn the_real_clock_advances_and_shows_a_plausible_date() {
        let mut clock = Clock::default();
        let first = clock.now();
        assert!(first > Timestamp(START));
        let mut last = first;
        while last == first {
            let now = clock.now();
            assert!(now >= last);
            last = now;
        }
        assert!(last.since(Timestamp(wall_ns())) < 1_000_000_000);
    }
}
