//! Phases of the strategies of a runner, which the shards decide.

use std::sync::Arc;

use super::super::context::Operation;
use super::super::dispatcher::DispatchedEvent;
use super::super::lifecycle;
use super::{NOTICES_MAX, Notice, Runner};
use pitlane_engine::command::{CommandKind, StrategyPhase};
use pitlane_engine::id::{ShardId, StrategyId};
use pitlane_engine::time::Timestamp;

/// What a shard has reported of the phase of a strategy.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct ReportedPhase {
    last: Option<StrategyPhase>,
    /// Whether it has ended the strategy since the runner last did.
    was_over: bool,
    /// Whether it has reported the phase that was requested last.
    is_reached: bool,
}

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

    /// Requests a phase for a strategy. The request goes through the shards, so it takes a while,
    /// and continues from the request before it, also if that is not carried out yet.
    pub fn request_phase(
        &mut self,
        strategy: StrategyId,
        to: StrategyPhase,
    ) -> Result<(), lifecycle::WrongPhase> {
        let Some(at) = self.place(strategy) else { return Ok(()) };
        if self.hosts[at].has_failed() {
            self.push_failure(at);
        }
        let from = self.requested[at].unwrap_or(self.hosts[at].phase());
        lifecycle::path(from, to)?;
        self.push_path(at, from, to);
        Ok(())
    }

    pub(super) fn push_path(&mut self, at: usize, from: StrategyPhase, to: StrategyPhase) {
        for phase in lifecycle::path(from, to).unwrap_or_default() {
            self.push_phase(at, phase);
        }
    }

    fn push_phase(&mut self, at: usize, phase: StrategyPhase) {
        let strategy = self.hosts[at].id();
        self.pending_commands.push_all(CommandKind::Phase { strategy, phase });
        self.requested[at] = Some(phase);
        self.phases[at].iter_mut().for_each(|reported| reported.is_reached = false);
    }

    /// Informs the shards, once, that a strategy has failed.
    fn push_failure(&mut self, at: usize) {
        if !std::mem::replace(&mut self.stopping[at], true) {
            self.push_phase(at, StrategyPhase::Stop);
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
        let is_over = matches!(phase, StrategyPhase::Stop | StrategyPhase::Exit);
        let phases = &mut self.phases[at];
        let reported = &mut phases[shard.0 as usize];
        reported.last = Some(phase);
        reported.was_over |= is_over;
        reported.is_reached |= self.requested[at] == Some(phase);
        if phases.iter().all(|reported| reported.is_reached) {
            self.requested[at] = None;
        }
        if phases.iter().any(|reported| reported.last != Some(phase)) {
            return;
        }
        // A shard may have started it again before another one has reported its end.
        let has_ended = phases.iter().all(|reported| reported.was_over);
        if has_ended {
            phases.iter_mut().for_each(|reported| reported.was_over = false);
            self.stopping[at] = false;
        }
        // Phases from before a failure are ignored.
        if self.stopping[at] || self.hosts[at].has_failed() && !has_ended {
            return;
        }
        let environment = &mut self.shared.environment(now);
        if has_ended && !is_over {
            self.hosts[at].transition_to(environment, StrategyPhase::Stop);
        }
        self.hosts[at].transition_to(environment, phase);
    }

    /// Stops every strategy at once before the end, and informs the shards.
    pub fn stop_all(&mut self, now: Timestamp) {
        for at in 0..self.hosts.len() {
            let from = self.requested[at].unwrap_or(self.hosts[at].phase());
            self.hosts[at].transition_to(&mut self.shared.environment(now), StrategyPhase::Exit);
            self.stopping[at] = true;
            self.push_path(at, from, StrategyPhase::Exit);
        }
    }

    /// Reports strategies that have failed.
    pub(super) fn report_failures(&mut self, now: Timestamp) {
        for at in 0..self.hosts.len() {
            let Some(reason) = self.hosts[at].take_failure() else { continue };
            self.push_failure(at);
            let (strategy, name) = (self.hosts[at].id(), Arc::from(self.hosts[at].name()));
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
