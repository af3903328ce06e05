//! What a thread does when nobody had work.
//!
//! ```text
//! Spin:      look again at once, always                        answers at once, costs a core
//! Adaptive:  look again ─► let others run ─► sleep until called or due
//! Park:      sleep until called or due, at once                costs least, wakes slowest
//! ```
//!
//! Any work, and the thread is wide awake again.

/// Rounds without work before the thread begins to yield, some ten microseconds.
const SPINS: u32 = 200;
/// Rounds of yielding before it goes to sleep, some tens of microseconds.
const YIELDS: u32 = 50;

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Strategy {
    Spin,
    #[default]
    Adaptive,
    Park,
}

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
    strategy: Strategy,
    /// Rounds without work, one after the other.
    rounds: u32,
}

impl Idle {
    pub fn new(strategy: Strategy) -> Idle {
        Idle { strategy, rounds: 0 }
    }

    /// To be called after every round, with the work that was done in it.
    pub fn after(&mut self, work: usize) -> Rest {
        if work > 0 {
            self.rounds = 0;
            return Rest::None;
        }
        self.rounds = self.rounds.saturating_add(1);
        match self.strategy {
            Strategy::Spin => Rest::Spin,
            Strategy::Park => Rest::Sleep,
            Strategy::Adaptive if self.rounds <= SPINS => Rest::Spin,
            Strategy::Adaptive if self.rounds <= SPINS + YIELDS => Rest::Yield,
            Strategy::Adaptive => Rest::Sleep,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What an idle thread does in so many rounds, each kind once.
    fn course(strategy: Strategy, rounds: u32) -> Vec<Rest> {
        let mut idle = Idle::new(strategy);
        let mut rests: Vec<_> = (0..rounds).map(|_| idle.after(0)).collect();
        assert_eq!(idle.after(1), Rest::None);
        assert_eq!(idle.after(0), rests[0], "after work it begins anew");
        rests.dedup();
        rests
    }

    #[test]
    fn each_strategy_rests_in_its_way() {
        let rounds = SPINS + YIELDS + 10;
        assert_eq!(course(Strategy::Spin, rounds), [Rest::Spin]);
        assert_eq!(course(Strategy::Adaptive, rounds), [Rest::Spin, Rest::Yield, Rest::Sleep]);
        assert_eq!(course(Strategy::Park, rounds), [Rest::Sleep]);
    }
}
