//! Phases of the strategies of a runner, which the shards decide.

use std::sync::Arc;

use super::super::context::Operation;
use super::super::dispatcher::DispatchedEvent;
use super::super::lifecycle;
use super::{NOTICES_MAX, Notice, Runner};
use pitlane_engine::command::{CommandKind, StrategyPhase};
use pitlane_engine::id::{ShardId, StrategyId};
use pitlane_engine::time::Timestamp;

impl Runner {
    /// Starts every strategy, once all snapshots are complete; in real time those that should run
    /// are moved to RUNNING. A second call does nothing.
    pub fn begin(&mut self) {
        if !self.is_ready() || self.begun {
            return;
        }
        self.begun = true;
        for at in 0..self.hosts.len() {
            let runs = self.hosts[at].starts() && self.shared.operation == Operation::RealTime;
            self.push_path(
                at,
                StrategyPhase::Exit,
                if runs { StrategyPhase::Running } else { StrategyPhase::Init },
            );
        }
    }

    /// Requests a phase for a strategy. The request goes through the shards, so it takes a while.
    pub fn request_phase(
        &mut self,
        strategy: StrategyId,
        to: StrategyPhase,
    ) -> Result<(), lifecycle::WrongPhase> {
        let Some(at) = self.place(strategy) else { return Ok(()) };
        let from = self.hosts[at].phase();
        lifecycle::path(from, to)?;
        self.push_path(at, from, to);
        Ok(())
    }

    pub(super) fn push_path(&mut self, at: usize, from: StrategyPhase, to: StrategyPhase) {
        let strategy = self.hosts[at].id();
        for phase in lifecycle::path(from, to).unwrap_or_default() {
            self.pending_commands.push_all(CommandKind::Phase { strategy, phase });
        }
    }

    pub(super) fn handle_phase(
        &mut self,
        now: Timestamp,
        shard: ShardId,
        strategy: StrategyId,
        phase: StrategyPhase,
    ) {
        let Some(at) = self.place(strategy).filter(|_| self.begun) else { return };
        self.phases[at][shard.0 as usize] = Some(phase);
        if self.phases[at].iter().any(|reported| *reported != Some(phase)) {
            return;
        }
        let is_over = matches!(phase, StrategyPhase::Stop | StrategyPhase::Exit);
        // Phases from before a failure are ignored.
        if (self.stopping[at] || self.hosts[at].has_failed()) && !is_over {
            return;
        }
        self.stopping[at] = false;
        self.hosts[at].transition_to(&mut self.shared.environment(now), phase);
    }

    /// Stops every strategy at once before the end, and informs the shards.
    pub fn stop_all(&mut self, now: Timestamp) {
        for at in 0..self.hosts.len() {
            let from = self.hosts[at].phase();
            self.hosts[at].transition_to(&mut self.shared.environment(now), StrategyPhase::Exit);
            self.stopping[at] = true;
            self.push_path(at, from, StrategyPhase::Exit);
        }
    }

    /// Reports strategies that have failed.
    pub(super) fn report_failures(&mut self, now: Timestamp) {
        for at in 0..self.hosts.len() {
            let Some(reason) = self.hosts[at].take_failure() else { continue };
            self.stopping[at] = true;
            let (strategy, name) = (self.hosts[at].id(), Arc::from(self.hosts[at].name()));
            self.pending_commands.push_all(CommandKind::Phase { strategy, phase: StrategyPhase::Stop });
            let terms_event =
                DispatchedEvent::LifeCycle { strategy, phase: StrategyPhase::Stop, reason: Some(&reason) };
            self.dispatcher.dispatch(now, &terms_event);
            self.notify(Notice::Failed { strategy, name, reason });
        }
    }

    pub(super) fn notify(&mut self, notice: Notice) {
        if self.notices.len() < NOTICES_MAX {
            self.notices.push_back(notice);
        } else {
            self.dropped += 1;
        }
    }
}
