//! The processes of remote strategies: accepts their connections or connects to their broker,
//! answers their requests, and watches which of them are present. What they receive and have
//! requested is in [`super::remote_strategies`].
//!
//! ```text
//! ShardClient ◄─ handle ◄─ RemoteRequest ◄─┬─ direct ◄─ connection of a process
//!                  └─► RemoteStrategies ───┤
//!                                          └─ nats ◄─► broker: events.<strategy>, market, replies
//! ```
//!
//! **Failure.** A process that is silent for a lease has its strategy stopped. While a broker is
//! away no process can be received, and none counts as silent. A process that returns finds its
//! strategy stopped, or the strategy is started again: see `watch`.

pub(crate) mod direct;
pub(crate) mod nats;
mod messages;
mod pace;
mod watch;

use std::rc::Rc;
use std::time::Duration;

use pitlane_config::StrategyTransport;
use pitlane_gateway::notifications::Notification;
use tokio::task::spawn_local;
use tokio::time::{MissedTickBehavior, interval};

use self::direct::LinkListeners;
use self::messages::{Announcement, RequestSender};
use self::watch::ProcessChange;
use super::app_state::AppState;
use super::remote_strategies::RemoteStrategies;

/// Number of heartbeats within a lease, in each direction.
pub(crate) const HEARTBEATS_PER_LEASE: u32 = 3;

/// Serves the processes until the thread ends.
pub(crate) async fn serve(
    app: Rc<AppState>,
    remote_strategies: Rc<RemoteStrategies>,
    listeners: LinkListeners,
) {
    spawn_local(watch_processes(app.clone(), remote_strategies.clone()));
    if remote_strategies.is_paced() {
        spawn_local(pace::run(app.clone(), remote_strategies.clone()));
    }
    match remote_strategies.link.transport {
        StrategyTransport::Direct => direct::serve(app, remote_strategies, listeners).await,
        StrategyTransport::Nats => nats::serve(app, remote_strategies).await,
    }
}

/// Handles a request of a strategy, over whatever transport it came.
fn handle_request(
    app: &AppState,
    remote_strategies: &RemoteStrategies,
    name: &str,
    bytes: &[u8],
    sender: RequestSender,
) {
    match remote_strategies.handle(app.now(), &app.trading.shard_client, name, bytes, sender) {
        Announcement::Nothing => {}
        Announcement::Failed { name, reason } => {
            tracing::warn!(strategy = %name, %reason, "a strategy has failed and was stopped");
            app.notifications.announce(Notification::Failed { strategy: name, reason: reason.into() });
        }
    }
    remote_strategies.poll_pace();
}

/// Detects which processes are silent, and which are back.
async fn watch_processes(app: Rc<AppState>, remote_strategies: Rc<RemoteStrategies>) {
    let mut heartbeat =
        interval(Duration::from_millis(remote_strategies.settings.lease_ms as u64) / HEARTBEATS_PER_LEASE);
    heartbeat.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        heartbeat.tick().await;
        for changes in remote_strategies.watch(app.now(), &app.trading.shard_client) {
            match changes {
                ProcessChange::Stopped { name: strategy, reason } => {
                    tracing::warn!(%strategy, %reason, "a strategy was stopped");
                    app.notifications.announce(Notification::Failed { strategy, reason: reason.into() });
                }
                // The web page and the operator see why it does not run although its process does.
                ProcessChange::StaysStopped { name: strategy, reason } => {
                    tracing::warn!(%strategy, %reason, on_return = "stay_stopped", "a strategy stays stopped");
                    app.notifications.announce(Notification::Failed { strategy, reason: reason.into() });
                }
                ProcessChange::StaysStoppedSinceStart { name: strategy, reason } => {
                    tracing::warn!(%strategy, %reason, "a strategy stays stopped");
                    app.notifications.announce(Notification::Failed { strategy, reason: reason.into() });
                }
                ProcessChange::Restarted { name: strategy } => {
                    tracing::warn!(%strategy, on_return = "start", "the process of a strategy is back: the strategy is started again");
                }
            }
        }
        remote_strategies.poll_pace();
    }
}
