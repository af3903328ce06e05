//! Decides what a thread does after a cycle without work.
//!
//! ```text
//! Spin:      poll again at once, always                        reacts at once, uses a whole core
//! Adaptive:  spin ─► yield to other threads ─► park until woken or a deadline
//! Park:      park until woken or a deadline, at once           uses least, reacts slowest
//! ```
//!
//! A spinning thread also yields once in [`YIELD_INTERVAL_NS`]. Without that, a thread that shares
//! its core, such as the http thread, runs at a timer tick only, which may be 4 ms away. Its work
//! piles up meanwhile, and the orders that arrive in its turn wait for all of it. On a core of its
//! own a yield returns at once.
//!
//! Any work resets the sequence. An adaptive thread learns how long to spin: if work arrived soon
//! after parking, it spins longer next time; if it did not, it spins less. So a stream of orders
//! finds it spinning, and a few prices per second cost no more than their processing.

use pitlane_config::IdleBy;
use pitlane_engine::time::Timestamp;

/// Maximum number of cycles without work before a thread parks: some tens of microseconds.
const CYCLES_MAX: u32 = 250;
/// Minimum: the effects of one event take a cycle or two; where they take longer, an early wake-up
/// raises the number again.
const CYCLES_MIN: u32 = 3;
/// The thread spins for four fifths of these cycles and yields for the rest.
const SPINS_OF_FIVE: u32 = 4;
/// Work that arrives this soon after parking would have justified more spinning: about the cost of
/// parking and being woken.
const SOON_NS: u64 = 100_000;
/// Time from one yield of a spinning thread to the next, at least: short beside the turn of another
/// thread, and long beside the system call, which takes some 0.2 µs.
const YIELD_INTERVAL_NS: u64 = 10_000;

/// What to do before the next cycle.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum IdleAction {
    /// Nothing: there was work.
    None,
    Spin,
    Yield,
    /// Park until another thread wakes this one or a deadline passes.
    Sleep,
}

#[derive(Clone, Copy, Debug)]
pub struct IdlePolicy {
    by: IdleBy,
    /// Consecutive cycles without work.
    cycles: u32,
    /// Number of cycles without work before the thread parks.
    cycles_max: u32,
    /// When the thread parked, if it has had no work since.
    parked_at: Option<Timestamp>,
    /// When the thread yielded last.
    yielded_at: Timestamp,
}

impl IdlePolicy {
    pub fn new(by: IdleBy) -> IdlePolicy {
        IdlePolicy { by, cycles: 0, cycles_max: CYCLES_MAX, parked_at: None, yielded_at: Timestamp::ZERO }
    }

    /// Returns what to do next. Called after every cycle with the time of its start and the amount
    /// of work done in it.
    pub fn after(&mut self, now: Timestamp, work: usize) -> IdleAction {
        if work > 0 {
            self.cycles = 0;
            if let Some(parked_at) = self.parked_at.take() {
                self.learn(now.since(parked_at));
            }
            return IdleAction::None;
        }
        self.cycles = self.cycles.saturating_add(1);
        match self.by {
            IdleBy::Spin => self.spin(now),
            IdleBy::Park => IdleAction::Sleep,
            IdleBy::Adaptive if self.cycles <= self.cycles_max * SPINS_OF_FIVE / 5 => self.spin(now),
            IdleBy::Adaptive if self.cycles <= self.cycles_max => IdleAction::Yield,
            IdleBy::Adaptive => {
                self.parked_at = Some(now);
                IdleAction::Sleep
            }
        }
    }

    fn spin(&mut self, now: Timestamp) -> IdleAction {
        if now.since(self.yielded_at) < YIELD_INTERVAL_NS {
            return IdleAction::Spin;
        }
        self.yielded_at = now;
        IdleAction::Yield
    }

    fn learn(&mut self, parked_ns: u64) {
        self.cycles_max =
            if parked_ns <= SOON_NS { CYCLES_MAX } else { (self.cycles_max / 2).max(CYCLES_MIN) };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const START: Timestamp = Timestamp(1_000_000_000);

    /// Returns the decisions for this number of cycles without work, consecutive duplicates
    /// removed.
    fn decisions(by: IdleBy, cycles: u32) -> Vec<IdleAction> {
        let mut idle = IdlePolicy::new(by);
        idle.yielded_at = START;
        let mut rests: Vec<_> = (0..cycles).map(|_| idle.after(START, 0)).collect();
        assert_eq!(idle.after(START, 1), IdleAction::None);
        assert_eq!(idle.after(START, 0), rests[0], "after work it restarts");
        rests.dedup();
        rests
    }

    #[test]
    fn a_spinning_thread_yields_once_in_an_interval_also_between_pieces_of_work() {
        for by in [IdleBy::Spin, IdleBy::Adaptive] {
            let mut idle = IdlePolicy::new(by);
            let after = |idle: &mut IdlePolicy, ns: u64, work| idle.after(START.plus(ns), work);
            assert_eq!(after(&mut idle, 0, 0), IdleAction::Yield);
            assert_eq!(after(&mut idle, YIELD_INTERVAL_NS - 1, 0), IdleAction::Spin);
            // Work takes longer than the interval, and is not interrupted.
            assert_eq!(after(&mut idle, YIELD_INTERVAL_NS, 1), IdleAction::None);
            assert_eq!(after(&mut idle, 2 * YIELD_INTERVAL_NS, 0), IdleAction::Yield);
            assert_eq!(after(&mut idle, 2 * YIELD_INTERVAL_NS, 0), IdleAction::Spin);
            // A clock that is set back does not make it yield in each cycle.
            assert_eq!(after(&mut idle, 0, 0), IdleAction::Spin);
        }
    }

    #[test]
    fn each_idle_strategy_follows_its_sequence() {
        let cycles = CYCLES_MAX + 10;
        assert_eq!(decisions(IdleBy::Spin, cycles), [IdleAction::Spin]);
        assert_eq!(
            decisions(IdleBy::Adaptive, cycles),
            [IdleAction::Spin, IdleAction::Yield, IdleAction::Sleep]
        );
        assert_eq!(decisions(IdleBy::Park, cycles), [IdleAction::Sleep]);
    }

    /// Returns the number of cycles before the thread parks; work then arrives after `parked_ns`.
    fn cycles_before_park(idle: &mut IdlePolicy, now: &mut Timestamp, parked_ns: u64) -> u32 {
        let cycles = (0..).find(|_| idle.after(*now, 0) == IdleAction::Sleep).expect("it parks at last");
        *now = Timestamp(now.0 + parked_ns);
        assert_eq!(idle.after(*now, 1), IdleAction::None);
        cycles
    }

    #[test]
    fn long_parking_shortens_spinning_and_early_work_restores_it() {
        let (mut idle, mut now) = (IdlePolicy::new(IdleBy::Adaptive), START);
        let rare: Vec<_> = (0..8).map(|_| cycles_before_park(&mut idle, &mut now, 8_000_000)).collect();
        assert_eq!(rare, [250, 125, 62, 31, 15, 7, 3, 3]);
        assert_eq!(cycles_before_park(&mut idle, &mut now, SOON_NS), CYCLES_MIN);
        assert_eq!(cycles_before_park(&mut idle, &mut now, SOON_NS + 1), CYCLES_MAX);
    }

    #[test]
    fn a_wake_up_without_work_does_not_change_the_spinning() {
        let (mut idle, mut now) = (IdlePolicy::new(IdleBy::Adaptive), START);
        cycles_before_park(&mut idle, &mut now, 8_000_000);
        while idle.after(now, 0) != IdleAction::Sleep {}
        for _ in 0..3 {
            now = Timestamp(now.0 + 8_000_000);
            assert_eq!(idle.after(now, 0), IdleAction::Sleep, "it sleeps again at once");
        }
        assert_eq!(idle.after(Timestamp(now.0 + 1), 1), IdleAction::None);
        assert_eq!(idle.cycles_max, CYCLES_MAX, "work came soon after its last sleep");
    }
}
