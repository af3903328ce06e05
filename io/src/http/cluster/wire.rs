//! The tasks between this server and the others. They belong to the http thread, as all async code.

use std::rc::Rc;
use std::time::Duration;

use async_nats::{Client, Subscriber};
use futures_util::StreamExt;
use pitlane_engine::id::{IntId, StrategyId};
use pitlane_protocols::stomp::payload::system::ExternalSessionState;
use tokio::task::spawn_local;
use tokio::time::{MissedTickBehavior, interval, timeout};

use super::Cluster;
use crate::http::app_state::AppState;
use crate::nats::link::{self, BrokerHealth};
use crate::nats::rights::is_probe;
use crate::notifications::Notification;

/// Name of the other servers among the external sessions.
const SESSION: &str = "CLUSTER";
/// Interval at which an idle task checks whether something must be sent again.
const AGAIN: Duration = Duration::from_millis(50);
/// Time for the goodbye message.
const BYE_MAX: Duration = Duration::from_millis(200);

/// Connects, and serves until the thread ends.
pub async fn serve(house: Rc<AppState>, cluster: Rc<Cluster>) {
    let opened = link::open(&cluster.nats, &cluster.letters(), cluster.inbox()).await;
    let (client, weather) = match opened {
        Ok(opened) => opened,
        Err(error) => return tracing::error!(%error, "the other servers cannot be reached"),
    };
    let calls = client.subscribe(cluster.calls()).await;
    let agains = client.subscribe(cluster.agains()).await;
    let letters = client.subscribe(cluster.letters()).await;
    let (Ok(calls), Ok(agains), Ok(letters)) = (calls, agains, letters) else {
        return tracing::error!("the broker takes no subscription: the other servers cannot be reached");
    };
    for calls in [calls, agains] {
        spawn_local(hear_calls(house.clone(), cluster.clone(), calls));
    }
    spawn_local(hear_letters(house.clone(), cluster.clone(), letters));
    spawn_local(publish(house.clone(), cluster.clone(), client.clone()));
    spawn_local(say_goodbye(house.clone(), cluster.clone(), client.clone()));
    spawn_local(beat(house.clone(), cluster.clone()));
    follow_weather(house, cluster, &client, &weather).await;
}

async fn follow_weather(house: Rc<AppState>, cluster: Rc<Cluster>, client: &Client, weather: &BrokerHealth) {
    loop {
        let is_up = weather.is_up();
        if is_up != cluster.is_up() {
            cluster.set_up(is_up);
            let link =
                if is_up { ExternalSessionState::Connected } else { ExternalSessionState::Disconnected };
            house.announce(Notification::Link { name: SESSION.into(), link });
            if is_up {
                // Missing permissions are logged as an error.
                cluster.rights.probe(client).await;
            }
        }
        weather.changed().await;
    }
}

async fn publish(house: Rc<AppState>, cluster: Rc<Cluster>, client: Client) {
    loop {
        match cluster.take(house.now()) {
            // A message lost here is found missing at the receiver and requested again.
            Some((subject, bytes)) => _ = client.publish(subject, bytes).await,
            None => _ = timeout(AGAIN, cluster.work.notified()).await,
        }
    }
}

async fn hear_calls(house: Rc<AppState>, cluster: Rc<Cluster>, mut calls: Subscriber) {
    while let Some(message) = calls.next().await {
        if is_probe(&message) {
            continue;
        }
        let sender = cluster.sender(&message.subject);
        cluster.handle_call(house.now(), sender, &message.payload);
        house.ring();
    }
}

async fn hear_letters(house: Rc<AppState>, cluster: Rc<Cluster>, mut letters: Subscriber) {
    while let Some(message) = letters.next().await {
        let sender = cluster.sender(&message.subject);
        let claim = |strategy: StrategyId, id: &IntId| house.floor.claim(strategy, id);
        cluster.handle_letter(house.now(), sender, &message.payload, &claim);
        house.ring();
    }
}

async fn beat(house: Rc<AppState>, cluster: Rc<Cluster>) {
    let mut beat = interval(Duration::from_millis(cluster.settings.beat_ms as u64));
    beat.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        beat.tick().await;
        cluster.beat(house.now());
        house.ring();
    }
}

/// Announces an orderly stop to the others, so that they need not wait for a lease.
async fn say_goodbye(house: Rc<AppState>, cluster: Rc<Cluster>, client: Client) {
    house.leaving.notified().await;
    if let Some((subject, bytes)) = cluster.bye() {
        let said = async {
            if client.publish(subject, bytes).await.is_ok() {
                _ = client.flush().await;
            }
        };
        _ = timeout(BYE_MAX, said).await;
    }
}
