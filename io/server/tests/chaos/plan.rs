//! Sequence of processes and their ends, by a seed: the same seed gives the same plan. The
//! behaviour of threads and disks does not depend on the seed.

use pitlane_engine::rng::Rng;

use crate::disturbance::{Abilities, Disturbance};

/// Actions of clients in a process, at least and at most.
const ACTS: (u64, u64) = (30, 120);
/// Highest number of the write at which a process kills itself: some two hundred commands come
/// before the first order.
const WRITES_MAX: u64 = 1_500;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum RunEnd {
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
pub(crate) struct PlannedRun {
    /// A thread for each duty, or one for all.
    pub dedicated: bool,
    pub acts: u64,
    pub disturbance: Disturbance,
    pub end: RunEnd,
    /// Seed of its disturbance.
    pub seed: u64,
}

pub(crate) struct ChaosPlan {
    dice: Rng,
    able: Abilities,
    /// Disturbances of this round that are still to come: each comes once before any comes again.
    ahead: Vec<Disturbance>,
}

impl ChaosPlan {
    pub(crate) fn new(seed: u64, able: Abilities) -> ChaosPlan {
        ChaosPlan { dice: Rng::named(seed, 3), able, ahead: Vec::new() }
    }

    /// Returns a process with the next disturbance.
    pub(crate) fn troubled(&mut self) -> PlannedRun {
        if self.ahead.is_empty() {
            self.ahead = Disturbance::all(self.able, &mut self.dice);
        }
        let next = self.dice.index(self.ahead.len());
        let disturbance = self.ahead.swap_remove(next);
        let mut planned_run = self.killed();
        planned_run.disturbance = disturbance;
        // Only one fault at a time can be injected.
        if disturbance.fault().is_some() || disturbance == Disturbance::Nothing && self.dice.below(2) == 0 {
            planned_run.end = if self.dice.below(3) == 0 { RunEnd::Stop } else { RunEnd::Kill };
        }
        planned_run
    }

    /// Returns a process that is killed, without another disturbance.
    pub(crate) fn killed(&mut self) -> PlannedRun {
        let end = match self.dice.below(2) {
            0 => RunEnd::Kill,
            _ => RunEnd::KillAtWrite(1 + self.dice.below(WRITES_MAX)),
        };
        self.planned_run(end)
    }

    /// Returns a process that ends with a loss of power.
    pub(crate) fn cut(&mut self) -> PlannedRun {
        self.planned_run(RunEnd::PowerCut)
    }

    /// Returns a process with this end, without another disturbance.
    pub(crate) fn planned_run(&mut self, end: RunEnd) -> PlannedRun {
        PlannedRun {
            dedicated: self.dice.below(2) == 0,
            acts: ACTS.0 + self.dice.below(ACTS.1 - ACTS.0),
            disturbance: Disturbance::Nothing,
            end,
            seed: self.dice.next_u64(),
        }
    }
}

#[test]
fn a_seed_determines_the_plan() {
    let planned_runs = |seed| {
        let mut plan = ChaosPlan::new(seed, Abilities::all());
        (0..50).map(|_| plan.troubled()).collect::<Vec<_>>()
    };
    assert_eq!(planned_runs(7), planned_runs(7));
    assert_ne!(planned_runs(7), planned_runs(8));
}
