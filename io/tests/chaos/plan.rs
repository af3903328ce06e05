//! Sequence of processes and their ends, by a seed: the same seed gives the same plan. The
//! behaviour of threads and disks does not depend on the seed.

use pitlane_engine::rng::Rng;

use crate::trouble::{Abilities, Trouble};

/// Actions of clients in a process, at least and at most.
const ACTS: (u64, u64) = (30, 120);
/// Highest number of the write at which a process kills itself: some two hundred commands come
/// before the first order.
const WRITES_MAX: u64 = 1_500;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum End {
    /// SIGKILL when the actions are done.
    Kill,
    /// SIGKILL at this write of a journal.
    KillAtWrite(u64),
    /// SIGTERM.
    Stop,
    /// Loss of power; only what had reached the disk remains.
    PowerCut,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Life {
    /// A thread for each duty, or one for all.
    pub dedicated: bool,
    pub acts: u64,
    pub trouble: Trouble,
    pub end: End,
    /// Seed of its disturbance.
    pub seed: u64,
}

pub struct Plan {
    dice: Rng,
    able: Abilities,
    /// Disturbances of this round that are still to come: each comes once before any comes again.
    ahead: Vec<Trouble>,
}

impl Plan {
    pub fn new(seed: u64, able: Abilities) -> Plan {
        Plan { dice: Rng::named(seed, 3), able, ahead: Vec::new() }
    }

    /// Returns a process with the next disturbance.
    pub fn troubled(&mut self) -> Life {
        if self.ahead.is_empty() {
            self.ahead = Trouble::all(self.able, &mut self.dice);
        }
        let next = self.dice.below(self.ahead.len() as u64) as usize;
        let trouble = self.ahead.swap_remove(next);
        let mut life = self.killed();
        life.trouble = trouble;
        // Only one fault at a time can be injected.
        if trouble.fault().is_some() || trouble == Trouble::Nothing && self.dice.below(2) == 0 {
            life.end = if self.dice.below(3) == 0 { End::Stop } else { End::Kill };
        }
        life
    }

    /// Returns a process that is killed, without another disturbance.
    pub fn killed(&mut self) -> Life {
        let end = match self.dice.below(2) {
            0 => End::Kill,
            _ => End::KillAtWrite(1 + self.dice.below(WRITES_MAX)),
        };
        self.life(end)
    }

    /// Returns a process that ends with a loss of power.
    pub fn cut(&mut self) -> Life {
        self.life(End::PowerCut)
    }

    /// Returns a process with this end, without another disturbance.
    pub fn life(&mut self, end: End) -> Life {
        Life {
            dedicated: self.dice.below(2) == 0,
            acts: ACTS.0 + self.dice.below(ACTS.1 - ACTS.0),
            trouble: Trouble::Nothing,
            end,
            seed: self.dice.next_u64(),
        }
    }
}

#[test]
fn a_seed_determines_the_plan() {
    let lives = |seed| {
        let mut plan = Plan::new(seed, Abilities::all());
        (0..50).map(|_| plan.troubled()).collect::<Vec<_>>()
    };
    assert_eq!(lives(7), lives(7));
    assert_ne!(lives(7), lives(8));
}
