//! Detects whether the processes of strategies send messages. A strategy whose process sends
//! nothing for a lease is stopped; when the process is back, the setting
//! `remote_strategies.on_return` decides about the strategy. If the server has started in between,
//! it does not know why the strategy is stopped: then the strategy stays stopped, and that is
//! reported.

use std::sync::Arc;

use pitlane_config::OnReturn;
use pitlane_engine::command::{Command, CommandKind, StrategyPhase};
use pitlane_engine::id::{Source, StrategyId};
use pitlane_engine::time::Timestamp;
use pitlane_strategy::lifecycle;

use crate::remote_strategies::{RemoteStrategies, StopCause, count, host_text};
use crate::shard_client::ShardClient;

/// Result of a check of the processes.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum ProcessChange {
    /// The strategy was stopped, since its process is silent.
    Stopped { name: Arc<str>, reason: String },
    /// The process is back and its strategy stays stopped.
    StaysStopped { name: Arc<str>, reason: String },
    /// The process is back after a start of the server, and its strategy, which was stopped before,
    /// stays stopped.
    StaysStoppedSinceStart { name: Arc<str>, reason: String },
    /// The process is back and its strategy is started again.
    Restarted { name: Arc<str> },
}

impl RemoteStrategies {
    /// Finds the processes that are silent or back, and schedules a heartbeat to those that are
    /// present.
    pub(crate) fn watch(&self, now: Timestamp, shard_client: &ShardClient) -> Vec<ProcessChange> {
        self.now.set(now);
        if let Some(log) = &mut self.inner.borrow_mut().generic_log {
            log.expire(now);
        }
        if !self.up.get() || !shard_client.is_complete() {
            self.inner.borrow_mut().slots.iter_mut().for_each(|slot| slot.restart_lease(now));
            return Vec::new();
        }
        let mut overdue = Vec::new();
        let mut returned = Vec::new();
        {
            let inner = &mut *self.inner.borrow_mut();
            let lease = inner.lease_ns;
            for (at, slot) in inner.slots.iter_mut().enumerate() {
                let was_present = slot.is_present();
                slot.heartbeat_due = was_present;
                if slot.is_overdue(now, lease) {
                    overdue.push((at, was_present));
                } else if let Some(cause) = slot.take_return() {
                    returned.push((at, cause));
                }
            }
        }
        let stopped =
            overdue.into_iter().filter_map(|(at, was_present)| self.stop(at, was_present, shard_client));
        let mut changes: Vec<ProcessChange> = stopped.collect();
        changes.extend(returned.into_iter().map(|(at, cause)| self.handle_return(at, cause, shard_client)));
        self.notify_output();
        changes
    }

    /// Stops a strategy whose process is absent, unless it has stopped already.
    fn stop(&self, at: usize, was_present: bool, shard_client: &ShardClient) -> Option<ProcessChange> {
        let (name, source, cancels, host) = {
            let inner = self.inner.borrow();
            let slot = &inner.slots[at];
            (slot.name.clone(), slot.source, slot.section.cancel_on_failure, slot.host.clone())
        };
        let strategy = StrategyId(source.session);
        let phase = shard_client.view().phase(strategy).unwrap_or_default();
        if was_present {
            count(&self.counts.expired_leases);
            tracing::warn!(strategy = %name, host = %host_text(&host), "the process of a strategy is silent");
            self.inner.borrow_mut().unfollow_all(at);
        }
        if matches!(phase, StrategyPhase::Init | StrategyPhase::Stop | StrategyPhase::Exit) {
            return None;
        }
        let body = CommandKind::Phase { strategy, phase: StrategyPhase::Stop };
        shard_client.forward(Command::new(source, 0, body)).ok()?;
        self.inner.borrow_mut().slots[at].begin_stop();
        if cancels {
            self.cancel_all(source, shard_client);
        }
        let reason = silence_reason(was_present, &host, self.settings.lease_ms);
        Some(ProcessChange::Stopped { name, reason })
    }

    /// Handles the return of a process whose strategy is stopped: because the process was silent,
    /// or for a reason that this start of the server does not know. `on_return` does not start the
    /// latter, since an operator may have stopped it.
    fn handle_return(&self, at: usize, cause: StopCause, shard_client: &ShardClient) -> ProcessChange {
        let (name, source, host) = {
            let inner = self.inner.borrow();
            let slot = &inner.slots[at];
            (slot.name.clone(), slot.source, slot.host.clone())
        };
        if cause == StopCause::BeforeStart {
            let reason = "it was stopped before this server started; its process is back, and the strategy stays stopped until it is started".to_string();
            return ProcessChange::StaysStoppedSinceStart { name, reason };
        }
        if self.settings.on_return == OnReturn::Start && start(source, shard_client) {
            return ProcessChange::Restarted { name };
        }
        let lease_ms = self.settings.lease_ms;
        let host = host_text(&host);
        let reason = format!(
            "its process on {host} was silent for {lease_ms} ms; the process is back, and the strategy stays stopped until it is started"
        );
        ProcessChange::StaysStopped { name, reason }
    }

    /// Cancels the open orders of a strategy. An order for which there is no room must be cancelled
    /// by its own process, or by hand.
    fn cancel_all(&self, source: Source, shard_client: &ShardClient) {
        let orders: Vec<_> =
            shard_client.view().open_orders().filter(|order| order.source == source).collect();
        for order in orders {
            let Some(id) = self.inner.borrow_mut().new_id() else { return };
            let body = CommandKind::Cancel { order: order.handle, id };
            if shard_client.forward(Command::new(source, 0, body)).is_err() {
                tracing::warn!(order = %order.id, "an order of a silent strategy could not be cancelled");
            }
        }
    }
}

/// Moves a stopped strategy to RUNNING; returns false if a shard has no room for a command. What
/// was sent by then is harmless: a strategy in any phase before RUNNING sends no orders, and the
/// operator can start it.
fn start(source: Source, shard_client: &ShardClient) -> bool {
    let strategy = StrategyId(source.session);
    let phases = lifecycle::path(StrategyPhase::Stop, StrategyPhase::Running).unwrap_or_default();
    phases.into_iter().all(|phase| {
        let body = CommandKind::Phase { strategy, phase };
        shard_client.forward(Command::new(source, 0, body)).is_ok()
    })
}

/// Describes why a strategy was stopped.
fn silence_reason(was_present: bool, host: &str, lease_ms: u32) -> String {
    if was_present || !host.is_empty() {
        return format!("its process on {} has been silent for {lease_ms} ms", host_text(host));
    }
    format!("no process of it is connected, or reconnected within {lease_ms} ms")
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The server used to write `it runs on  still` of a process that had resumed after a restart
    /// of the server.
    #[test]
    fn messages_about_a_process_name_its_host_or_state_that_it_is_unknown() {
        assert_eq!(
            silence_reason(true, "alpha:12", 3_000),
            "its process on alpha:12 has been silent for 3000 ms"
        );
        assert_eq!(
            silence_reason(true, "", 3_000),
            "its process on an unknown host has been silent for 3000 ms"
        );
        assert_eq!(
            silence_reason(false, "", 3_000),
            "no process of it is connected, or reconnected within 3000 ms"
        );
    }
}
