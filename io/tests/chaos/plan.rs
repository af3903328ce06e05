//! Which lives there are and how each ends, by a seed: the same seed gives the same plan. What threads and disks make of it is another
//! matter, which no seed can tell.

use pitlane_engine::rng::Rng;

use crate::trouble::{Abilities, Trouble};

/// Acts of clients in a life, at least and at most.
const ACTS: (u64, u64) = (30, 120);
/// Farthest write at which a process kills itself: some two hundred commands come before the first order.
const WRITES_MAX: u64 = 1_500;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum End {
    /// SIGKILL when the acts are done.
    Kill,
    /// SIGKILL at this write of a journal.
    KillAtWrite(u64),
    /// SIGTERM.
    Stop,
    /// The power goes; only what had reached the disk is left.
    PowerCut,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Life {
    /// A thread for each duty, or one for all.
    pub dedicated: bool,
    pub acts: u64,
    pub trouble: Trouble,
    pub end: End,
    /// Where the chance of its trouble begins.
    pub seed: u64,
}

pub struct Plan {
    dice: Rng,
    able: Abilities,
    /// Troubles of this round that are still to come: each comes once before any comes again.
    ahead: Vec<Trouble>,
}

impl Plan {
    pub fn new(seed: u64, able: Abilities) -> Plan {
        Plan { dice: Rng::named(seed, 3), able, ahead: Vec::new() }
    }

    /// A life with the next trouble.
    pub fn troubled(&mut self) -> Life {
        if self.ahead.is_empty() {
            self.ahead = Trouble::all(self.able, &mut self.dice);
        }
        let next = self.dice.below(self.ahead.len() as u64) as usize;
        let trouble = self.ahead.swap_remove(next);
        let mut life = self.killed();
        life.trouble = trouble;
        // One fault at a time can be asked for.
        if trouble.fault().is_some() || trouble == Trouble::Nothing && self.dice.below(2) == 0 {
            life.end = if self.dice.below(3) == 0 { End::Stop } else { End::Kill };
        }
        life
    }

    /// A life that is killed, and nothing else happens.
    pub fn killed(&mut self) -> Life {
        let end = match self.dice.below(2) {
            0 => End::Kill,
            _ => End::KillAtWrite(1 + self.dice.below(WRITES_MAX)),
        };
        self.life(end)
    }

    /// A life whose power goes.
    pub fn cut(&mut self) -> Life {
        self.life(End::PowerCut)
    }

    /// One that ends so, and nothing else happens.
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
