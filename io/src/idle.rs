//! What a thread does when nobody had work.
//!
//! ```text
//! Spin:      look again at once, always                        answers at once, costs a core
//! Adaptive:  look again ─► let others run ─► sleep until called or due
//! Park:      sleep until called or due, at once                costs least, wakes slowest
//! ```
//!
//! Any work, and the thread is wide awake again. How long an adaptive one then stays up is learnt: whoever was called soon after
//! it lay down should have stayed up; whoever slept long had waited in vain. So a stream of orders finds it awake, and some
//! prices a second cost no more than they take.

use pitlane_engine::time::Timestamp;

use crate::config::IdleBy;

/// Rounds without work before a thread goes to sleep, at most: some tens of microseconds.
const PATIENCE_MAX: u32 = 250;
/// And at least: what one event brings about takes a round or two; where it takes longer, the call that comes soon teaches that.
const PATIENCE_MIN: u32 = 3;
/// Of its patience it spins four fifths and yields the rest.
const SPINS_OF_FIVE: u32 = 4;
/// Work that comes so soon after it lay down would have been worth staying up for: about what going to sleep and being woken
/// cost.
const SOON_NS: u64 = 100_000;

/// What to do before the next round.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Rest {
    /// Nothing: there was work.
    None,
    Spin,
    Yield,
    /// Sleep until somebody rings or a deadline comes.
    Sleep,
}

#[derive(Clone, Copy, Debug)]
pub struct Idle {
    by: IdleBy,
    /// Rounds without work, one after the other.
    rounds: u32,
    /// So many of them it stays up.
    patience: u32,
    /// When it lay down, if it has not had work since.
    lain_down: Option<Timestamp>,
}

impl Idle {
    pub fn new(by: IdleBy) -> Idle {
        Idle { by, rounds: 0, patience: PATIENCE_MAX, lain_down: None }
    }

    /// To be called after every round, with the time of its begin and the work that was done in it.
    pub fn after(&mut self, now: Timestamp, work: usize) -> Rest {
        if work > 0 {
            self.rounds = 0;
            if let Some(lain_down) = self.lain_down.take() {
                self.learn(now.since(lain_down));
            }
            return Rest::None;
        }
        self.rounds = self.rounds.saturating_add(1);
        match self.by {
            IdleBy::Spin => Rest::Spin,
            IdleBy::Park => Rest::Sleep,
            IdleBy::Adaptive if self.rounds <= self.patience * SPINS_OF_FIVE / 5 => Rest::Spin,
            IdleBy::Adaptive if self.rounds <= self.patience => Rest::Yield,
            IdleBy::Adaptive => {
                self.lain_down = Some(now);
                Rest::Sleep
            }
        }
    }

    fn learn(&mut self, slept_ns: u64) {
        self.patience =
            if slept_ns <= SOON_NS { PATIENCE_MAX } else { (self.patience / 2).max(PATIENCE_MIN) };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const START: Timestamp = Timestamp(1_000_000_000);

    /// What an idle thread does in so many rounds, each kind once.
    fn course(by: IdleBy, rounds: u32) -> Vec<Rest> {
        let mut idle = Idle::new(by);
        let mut rests: Vec<_> = (0..rounds).map(|_| idle.after(START, 0)).collect();
        assert_eq!(idle.after(START, 1), Rest::None);
        assert_eq!(idle.after(START, 0), rests[0], "after work it begins anew");
        rests.dedup();
        rests
    }

    #[test]
    fn each_strategy_rests_in_its_way() {
        let rounds = PATIENCE_MAX + 10;
        assert_eq!(course(IdleBy::Spin, rounds), [Rest::Spin]);
        assert_eq!(course(IdleBy::Adaptive, rounds), [Rest::Spin, Rest::Yield, Rest::Sleep]);
        assert_eq!(course(IdleBy::Park, rounds), [Rest::Sleep]);
    }

    /// Rounds until it sleeps; then work comes after so many nanoseconds.
    fn stays_up(idle: &mut Idle, now: &mut Timestamp, slept_ns: u64) -> u32 {
        let rounds = (0..).take_while(|_| idle.after(*now, 0) != Rest::Sleep).count() as u32;
        *now = Timestamp(now.0 + slept_ns);
        assert_eq!(idle.after(*now, 1), Rest::None);
        rounds
    }

    #[test]
    fn who_waited_in_vain_stays_up_less_and_who_was_called_soon_stays_up_again() {
        let (mut idle, mut now) = (Idle::new(IdleBy::Adaptive), START);
        let rare: Vec<_> = (0..8).map(|_| stays_up(&mut idle, &mut now, 8_000_000)).collect();
        assert_eq!(rare, [250, 125, 62, 31, 15, 7, 3, 3]);
        assert_eq!(stays_up(&mut idle, &mut now, SOON_NS), PATIENCE_MIN);
        assert_eq!(stays_up(&mut idle, &mut now, SOON_NS + 1), PATIENCE_MAX);
    }

    #[test]
    fn a_call_without_work_teaches_nothing() {
        let (mut idle, mut now) = (Idle::new(IdleBy::Adaptive), START);
        stays_up(&mut idle, &mut now, 8_000_000);
        while idle.after(now, 0) != Rest::Sleep {}
        for _ in 0..3 {
            now = Timestamp(now.0 + 8_000_000);
            assert_eq!(idle.after(now, 0), Rest::Sleep, "it lies down again at once");
        }
        assert_eq!(idle.after(Timestamp(now.0 + 1), 1), Rest::None);
        assert_eq!(idle.patience, PATIENCE_MAX, "work came soon after it lay down for the last time");
    }
}
