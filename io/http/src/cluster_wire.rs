//! The tasks between this server and the others. They belong to the http thread, as all async code.

use std::rc::Rc;
use std::time::Duration;

use async_nats::{Client, Subscriber};
use futures_util::StreamExt;
use pitlane_cluster::nats::link::{self, BrokerHealth};
use pitlane_cluster::nats::rights::is_probe;
use pitlane_engine::id::{IntId, StrategyId};
use pitlane_gateway::notifications::Notification;
use pitlane_protocols::stomp::payload::system::ExternalSessionState;
use tokio::task::spawn_local;
use tokio::time::{MissedTickBehavior, interval, timeout};

use super::app_state::AppState;
use super::cluster::ClusterNode;

/// Name of the other servers among the external sessions.
const SESSION: &str = "CLUSTER";
/// Interval at which an idle task checks whether something must be sent again.
const RETRY_INTERVAL: Duration = Duration::from_millis(50);
/// Time for the goodbye message.
const GOODBYE_TIMEOUT: Duration = Duration::from_millis(200);

/// Connects, and serves until the thread ends.
pub(crate) async fn serve(app: Rc<AppState>, cluster: Rc<ClusterNode>) {
    let opened = link::open(&cluster.nats, &cluster.messages_subject(), cluster.inbox()).await;
    let (client, broker_health) = match opened {
        Ok(opened) => opened,
        Err(error) => return tracing::error!(%error, "the other servers cannot be reached"),
    };
    let broadcasts = client.subscribe(cluster.broadcasts_subject()).await;
    let resent = client.subscribe(cluster.resent_subject()).await;
    let messages = client.subscribe(cluster.messages_subject()).await;
    let (Ok(broadcasts), Ok(resent), Ok(messages)) = (broadcasts, resent, messages) else {
        return tracing::error!("the broker accepts no subscription: the other servers cannot be reached");
    };
    for broadcasts in [broadcasts, resent] {
        spawn_local(receive_broadcasts(app.clone(), cluster.clone(), broadcasts));
    }
    spawn_local(receive_messages(app.clone(), cluster.clone(), messages));
    spawn_local(publish(app.clone(), cluster.clone(), client.clone()));
    spawn_local(send_goodbye(app.clone(), cluster.clone(), client.clone()));
    spawn_local(send_heartbeats(app.clone(), cluster.clone()));
    track_broker_health(app, cluster, &client, &broker_health).await;
}

async fn track_broker_health(
    app: Rc<AppState>,
    cluster: Rc<ClusterNode>,
    client: &Client,
    broker_health: &BrokerHealth,
) {
    loop {
        let is_up = broker_health.is_up();
        if is_up != cluster.is_up() {
            cluster.set_up(is_up);
            let link =
                if is_up { ExternalSessionState::Connected } else { ExternalSessionState::Disconnected };
            app.notifications.announce(Notification::Link { name: SESSION.into(), link });
            if is_up {
                // Missing permissions are logged as an error.
                cluster.rights.probe(client).await;
            }
        }
        broker_health.changed().await;
    }
}

async fn publish(app: Rc<AppState>, cluster: Rc<ClusterNode>, client: Client) {
    loop {
        match cluster.take(app.now()) {
            // A message lost here is found missing at the receiver and requested again.
            Some((subject, bytes)) => _ = client.publish(subject, bytes).await,
            None => _ = timeout(RETRY_INTERVAL, cluster.work.notified()).await,
        }
    }
}

async fn receive_broadcasts(app: Rc<AppState>, cluster: Rc<ClusterNode>, mut broadcasts: Subscriber) {
    while let Some(message) = broadcasts.next().await {
        if is_probe(&message) {
            continue;
        }
        let sender = cluster.sender(&message.subject);
        cluster.handle_broadcast(app.now(), sender, &message.payload);
        app.lifecycle.wake();
    }
}

async fn receive_messages(app: Rc<AppState>, cluster: Rc<ClusterNode>, mut messages: Subscriber) {
    while let Some(message) = messages.next().await {
        let sender = cluster.sender(&message.subject);
        let claim = |strategy: StrategyId, id: &IntId| app.trading.shard_client.claim(strategy, id);
        cluster.handle_message(app.now(), sender, &message.payload, &claim);
        app.lifecycle.wake();
    }
}

async fn send_heartbeats(app: Rc<AppState>, cluster: Rc<ClusterNode>) {
    let mut heartbeat = interval(Duration::from_millis(cluster.settings.beat_ms as u64));
    heartbeat.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        heartbeat.tick().await;
        cluster.heartbeat(app.now());
        app.lifecycle.wake();
    }
}

/// Announces an orderly stop to the others, so that they need not wait for a lease.
async fn send_goodbye(app: Rc<AppState>, cluster: Rc<ClusterNode>, client: Client) {
    app.lifecycle.stopping.notified().await;
    if let Some((subject, bytes)) = cluster.goodbye() {
        let sending = async {
            if client.publish(subject, bytes).await.is_ok() {
                _ = client.flush().await;
            }
        };
        _ = timeout(GOODBYE_TIMEOUT, sending).await;
    }
}
