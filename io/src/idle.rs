//! What a thread does when nobody had work: first it spins, for whoever answers at once; then it lets others run; then it
//! sleeps a little at a time. Any work, and it is wide awake again.

use std::hint;
use std::thread;
use std::time::Duration;

/// Rounds without work before the thread begins to yield, some microseconds.
const SPINS: u32 = 200;
/// Rounds of yielding before it begins to sleep, some tens of microseconds.
const YIELDS: u32 = 50;
/// A sleep. A thousand wake-ups a second cost well below one percent of a core, and nothing waits longer than this.
const NAP: Duration = Duration::from_millis(1);

#[derive(Debug, Default)]
pub struct Idle {
    rounds: u32,
}

impl Idle {
    /// To be called after every round, with the work that was done in it.
    pub fn after(&mut self, work: usize) {
        if work > 0 {
            self.rounds = 0;
            return;
        }
        self.rounds = self.rounds.saturating_add(1);
        if self.rounds <= SPINS {
            hint::spin_loop();
        } else if self.rounds <= SPINS + YIELDS {
            thread::yield_now();
        } else {
            thread::park_timeout(NAP);
        }
    }
}
