//! The pace of a market that waits for its receivers: it continues when all processes are idle.

use std::rc::Rc;

use pitlane_engine::command::{CommandKind, StrategyPhase, WatchTarget};
use pitlane_engine::reason::Reason;

use crate::app_state::AppState;
use crate::remote_strategies::{RemoteStrategies, StrategySlot};
use crate::shard_client::{CommandOutcome, ShardClient};

/// How much had been received when no process had any work left.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct IdleProgress {
    /// Time of the last row of the market.
    last_row_at: u64,
    deliveries: u64,
}

/// Lets a market that waits continue. The events of one command arrive one by one, and a strategy
/// may already have reacted to the first of them. So when all processes are idle, the shards get a
/// command that changes nothing: a shard that has answered it has sent everything before it. If
/// none of that was new, the processes are idle indeed.
pub(super) async fn run(app: Rc<AppState>, remote_strategies: Rc<RemoteStrategies>) {
    let probe =
        CommandKind::Watch { port: app.trading.shard_client.port(), what: WatchTarget::Everything, on: true };
    let mut last = None;
    loop {
        remote_strategies.pace_check.notified().await;
        let Some(idle_progress) = remote_strategies
            .idle_progress(&app.trading.shard_client)
            .filter(|idle_progress| last != Some(*idle_progress))
        else {
            continue;
        };
        // If a lane is full, a later event notifies this task again.
        let Ok(answer) = app.trading.shard_client.send(0, probe) else { continue };
        let answer = answer.await;
        if answer == CommandOutcome::Done(Reason::None)
            && remote_strategies.idle_progress(&app.trading.shard_client) == Some(idle_progress)
        {
            remote_strategies.release_market(idle_progress);
            last = Some(idle_progress);
        }
    }
}

impl RemoteStrategies {
    /// Returns how much was received, if every strategy that should run does and has processed all
    /// of it.
    fn idle_progress(&self, shard_client: &ShardClient) -> Option<IdleProgress> {
        let inner = self.inner.borrow();
        let view = shard_client.view();
        let is_settled = |(at, slot): (usize, &StrategySlot)| {
            let phase = view.phase(slot.strategy()).unwrap_or_default();
            !slot.section.start || matches!(phase, StrategyPhase::Stop | StrategyPhase::Exit) || {
                phase == StrategyPhase::Running && slot.is_present() && slot.is_quiet(inner.prices.number(at))
            }
        };
        let is_idle = shard_client.is_complete()
            && inner.prices.is_idle()
            && inner.slots.iter().enumerate().all(is_settled);
        is_idle.then_some(IdleProgress { last_row_at: inner.last_row_at, deliveries: inner.deliveries })
    }

    /// Lets the market continue.
    fn release_market(&self, idle_progress: IdleProgress) {
        if let Some(pace) = &self.inner.borrow().pace {
            pace.take(idle_progress.last_row_at);
        }
    }
}
