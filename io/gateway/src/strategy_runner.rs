//! Runs the strategies of this process: a duty of the first gateway's thread.

use std::sync::Arc;

use pitlane_engine::command::StrategyPhase;
use pitlane_engine::mesh::ShardMask;
use pitlane_engine::refdata::RefData;
use pitlane_engine::time::Timestamp;
use pitlane_runtime::lifecycle::LifecyclePhase;
use pitlane_strategy::host::StrategyHost;
use pitlane_strategy::runner::{Notice, Runner};

use super::EVENTS_PER_POLL_MAX;
use crate::notifications::Notification;

#[derive(Debug)]
pub struct RunnerDuty {
    runner: Runner,
    /// Whether every strategy has been stopped.
    stopped: bool,
}

impl RunnerDuty {
    pub fn new(runner: Runner) -> RunnerDuty {
        RunnerDuty { runner, stopped: false }
    }

    pub fn set_reference(&mut self, reference: &Arc<RefData>) {
        self.runner.set_reference(reference.clone());
    }

    /// Drains the events of the shards, up to a bound.
    pub fn drain_events(&mut self, now: Timestamp) -> usize {
        self.runner.drain_events(now, EVENTS_PER_POLL_MAX)
    }

    /// Handles notifications of other threads: events between strategies.
    pub fn handle_notification(&mut self, now: Timestamp, notification: &Notification) {
        if let Notification::Generic { name, body } = notification {
            self.runner.handle_generic(now, name, body);
        }
    }

    /// Starts the strategies when the platform is open, and stops them when it closes.
    pub fn poll(&mut self, now: Timestamp, phase: LifecyclePhase) -> usize {
        if phase == LifecyclePhase::Open {
            self.runner.begin();
        }
        if phase >= LifecyclePhase::Closing && !self.stopped {
            self.stopped = true;
            self.runner.stop_all(now);
        }
        self.runner.poll(now)
    }

    /// Returns the next notification for all threads with clients.
    pub fn take_notification(&mut self) -> Option<Notification> {
        let notice = self.runner.poll_notice()?;
        Some(match notice {
            Notice::Generic { name, body } => Notification::Generic { name, body },
            Notice::Failed { name, reason, .. } => {
                tracing::warn!(strategy = %name, %reason, "a strategy has failed and was stopped");
                Notification::Failed { strategy: name, reason }
            }
        })
    }

    /// Returns whether every strategy that should run is running, or has failed.
    pub fn is_settled(&self) -> bool {
        let is_settled_host = |host: &StrategyHost| {
            !host.starts() || matches!(host.phase(), StrategyPhase::Running | StrategyPhase::Stop)
        };
        !self.runner.is_waiting() && self.runner.hosts().iter().all(is_settled_host)
    }

    pub fn is_waiting(&self) -> bool {
        self.runner.is_waiting()
    }

    /// Returns whether the strategies have stopped and all their commands are sent.
    pub fn has_stopped(&self) -> bool {
        self.stopped && !self.runner.is_waiting()
    }

    pub fn deadline(&self) -> Timestamp {
        self.runner.deadline()
    }

    pub fn take_wakeups(&mut self) -> ShardMask {
        self.runner.take_wakeups()
    }
}
