//! What a thread does when nobody had work.
//!
//! ```text
//! Spin:      look again at once, always                        answers at once, costs a core
//! Adaptive:  look again ─► let others run ─► sleep until called or due
//! Park:      sleep until called or due, at once                costs least, wakes slowest
//! ```
//!
//! Any work, and the thread is wide awake again.

use crate::config::IdleBy;

/// Rounds without work before the thread begins to yield, some ten microseconds.
const SPINS: u32 = 200;
/// Rounds of yielding before it goes to sleep, some tens of microseconds.
const YIELDS: u32 = 50;

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
}

impl Idle {
    pub fn new(by: IdleBy) -> Idle {
        Idle { by, rounds: 0 }
    }

    /// To be called after every round, with the work that was done in it.
    pub fn after(&mut self, work: usize) -> Rest {
        if work > 0 {
            self.rounds = 0;
            return Rest::None;
        }
        self.rounds = self.rounds.saturating_add(1);
        match self.by {
            IdleBy::Spin => Rest::Spin,
            IdleBy::Park => Rest::Sleep,
            IdleBy::Adaptive if self.rounds <= SPINS => Rest::Spin,
            IdleBy::Adaptive if self.rounds <= SPINS + YIELDS => Rest::Yield,
            IdleBy::Adaptive => Rest::Sleep,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What an idle thread does in so many rounds, each kind once.
    fn course(by: IdleBy, rounds: u32) -> Vec<Rest> {
        let mut idle = Idle::new(by);
        let mut rests: Vec<_> = (0..rounds).map(|_| idle.after(0)).collect();
        assert_eq!(idle.after(1), Rest::None);
        assert_eq!(idle.after(0), rests[0], "after work it begins anew");
        rests.dedup();
        rests
    }

    #[test]
    fn each_strategy_rests_in_its_way() {
        let rounds = SPINS + YIELDS + 10;
        assert_eq!(course(IdleBy::Spin, rounds), [Rest::Spin]);
        assert_eq!(course(IdleBy::Adaptive, rounds), [Rest::Spin, Rest::Yield, Rest::Sleep]);
        assert_eq!(course(IdleBy::Park, rounds), [Rest::Sleep]);
    }
}
