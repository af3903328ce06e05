//! The strategies' place: a duty of the first gateway's thread.

use std::sync::Arc;

use pitlane_engine::command::Phase;
use pitlane_engine::mesh::ShardMask;
use pitlane_engine::refdata::RefData;
use pitlane_engine::strategy::host::StrategyHost;
use pitlane_engine::strategy::runner::{Notice, Runner};
use pitlane_engine::time::Timestamp;

use super::EVENTS_PER_POLL_MAX;
use crate::lifecycle::Course;
use crate::notifications::Notification;

#[derive(Debug)]
pub struct RunnerDuty {
    runner: Runner,
    /// Every strategy has been led to its end.
    left: bool,
}

impl RunnerDuty {
    pub fn new(runner: Runner) -> RunnerDuty {
        RunnerDuty { runner, left: false }
    }

    pub fn runner_mut(&mut self) -> &mut Runner {
        &mut self.runner
    }

    pub fn adopt(&mut self, reference: &Arc<RefData>) {
        self.runner.adopt(reference.clone());
    }

    /// Hears what the shards say, up to a bound.
    pub fn hear(&mut self, now: Timestamp) -> usize {
        self.runner.drain_events(now, EVENTS_PER_POLL_MAX)
    }

    /// What other threads tell: events between strategies are for these too.
    pub fn handle_note(&mut self, now: Timestamp, note: &Notification) {
        if let Notification::Generic { name, body } = note {
            self.runner.handle_generic(now, name, body);
        }
    }

    /// Strategies begin when the platform is open and end when it closes.
    pub fn poll(&mut self, now: Timestamp, course: Course) -> usize {
        if course == Course::Open {
            self.runner.begin();
        }
        if course >= Course::Closing && !self.left {
            self.left = true;
            self.runner.stop_all(now);
        }
        self.runner.poll(now)
    }

    /// What everybody with clients must hear.
    pub fn take_note(&mut self) -> Option<Notification> {
        let notice = self.runner.poll_notice()?;
        Some(match notice {
            Notice::Generic { name, body } => Notification::Generic { name, body },
            Notice::Failed { name, reason, .. } => {
                tracing::warn!(strategy = %name, %reason, "a strategy has failed and was stopped");
                Notification::Failed { strategy: name, reason }
            }
        })
    }

    /// Whether every strategy that should run does, or has failed.
    pub fn is_settled(&self) -> bool {
        let is_there =
            |host: &StrategyHost| !host.starts() || matches!(host.phase(), Phase::Running | Phase::Stop);
        !self.runner.is_waiting() && self.runner.hosts().iter().all(is_there)
    }

    pub fn is_waiting(&self) -> bool {
        self.runner.is_waiting()
    }

    /// Whether its strategies have ended and all they said is on its way.
    pub fn has_left(&self) -> bool {
        self.left && !self.runner.is_waiting()
    }

    pub fn deadline(&self) -> Timestamp {
        self.runner.deadline()
    }

    pub fn take_wakeups(&mut self) -> ShardMask {
        self.runner.take_wakeups()
    }
}
