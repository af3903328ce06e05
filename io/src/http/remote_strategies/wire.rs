//! The tasks between remote strategies and their broker. They belong to the http thread, as all
//! async code.

use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use async_nats::jetstream::Context;
use async_nats::{Client, Message, Subject, Subscriber};
use futures_util::StreamExt;
use pitlane_engine::command::{CommandKind, WatchTarget};
use pitlane_engine::reason::Reason;
use pitlane_protocols::stomp::payload::system::ExternalSessionState;
use tokio::task::spawn_local;
use tokio::time::{MissedTickBehavior, interval, sleep};

use super::RemoteStrategies;
use super::messages::News;
use super::watch::Watched;
use crate::http::app_state::AppState;
use crate::http::shard_client::Outcome;
use crate::nats::generic::{self, Generic};
use crate::nats::link::{self, BrokerHealth, LinkError};
use crate::nats::rights;
use crate::notifications::Notification;

/// Sender name of events between strategies that a client of this server has sent.
pub const SERVER: &str = "SERVER";
/// Name of the login with too many permissions, if servers and strategies share an account.
const SERVERS: &str = "SERVERS";
/// Name of the broker among the external sessions.
pub const SESSION: &str = "NATS";
/// Interval between two attempts to store something at the broker.
const AGAIN: Duration = Duration::from_millis(500);
/// Number of heartbeats within a lease, in each direction.
pub const BEATS_PER_LEASE: u32 = 3;

/// Connects, and serves until the thread ends.
///
/// Letters of each strategy come over a connection of their own, and so do events between
/// strategies. The reason: a client of the broker loses its connection over headers that it cannot
/// parse, and a strategy that sends such headers must affect only itself.
pub async fn serve(house: Rc<AppState>, outposts: Rc<RemoteStrategies>) {
    let opened = open(&outposts, "prices and events").await;
    let (client, weather) = match opened {
        Ok(opened) => opened,
        Err(error) => return tracing::error!(%error, "strategies elsewhere cannot be served"),
    };
    announce(&house, ExternalSessionState::Disconnected);
    spawn_local(publish(outposts.clone(), client.clone()));
    spawn_local(look_after(house.clone(), outposts.clone()));
    if outposts.is_paced() {
        spawn_local(keep_pace(house.clone(), outposts.clone()));
    }
    spawn_local(say_generics(outposts.clone(), client.clone(), house.standing.started().0));
    for name in outposts.names() {
        spawn_local(hear_letters(house.clone(), outposts.clone(), name));
    }
    spawn_local(hear_generics(house.clone(), outposts.clone()));
    spawn_local(hear_strangers(house.clone(), outposts.clone()));
    follow_weather(house, outposts, client, weather).await;
}

async fn open(outposts: &RemoteStrategies, what: &str) -> Result<(Client, Arc<BrokerHealth>), LinkError> {
    let name = format!("{} {what}", outposts.subjects.market());
    link::open(&outposts.nats, &name, outposts.subjects.server_inbox()).await
}

/// Opens a connection for one subject. The client reconnects by itself.
async fn listen(outposts: &RemoteStrategies, what: &str, subject: String) -> Option<(Client, Subscriber)> {
    let opened = open(outposts, what).await;
    let client = opened.inspect_err(|error| tracing::error!(%error, "the broker cannot be used")).ok()?.0;
    let heard = client.subscribe(subject).await;
    let heard =
        heard.inspect_err(|error| tracing::error!(%error, "the broker takes no subscription")).ok()?;
    Some((client, heard))
}

/// Tracks whether the broker is connected, and publishes it.
async fn follow_weather(
    house: Rc<AppState>,
    outposts: Rc<RemoteStrategies>,
    client: Client,
    weather: Arc<BrokerHealth>,
) {
    let mut was_up = false;
    loop {
        let is_up = weather.is_up();
        if is_up != was_up {
            was_up = is_up;
            outposts.set_up(is_up, house.now());
            announce(
                &house,
                if is_up { ExternalSessionState::Connected } else { ExternalSessionState::Disconnected },
            );
            outposts.work.notify_one();
        }
        if is_up {
            spawn_local(keep_stream(outposts.clone(), client.clone(), weather.clone()));
            spawn_local(check_rights(outposts.clone(), client.clone(), weather.clone()));
        }
        weather.changed().await;
    }
}

fn announce(house: &AppState, link: ExternalSessionState) {
    house.announce(Notification::Link { name: SESSION.into(), link });
}

/// Creates the stream that stores events between strategies.
async fn keep_stream(outposts: Rc<RemoteStrategies>, client: Client, weather: Arc<BrokerHealth>) {
    let (context, risen) = (generic::context(&client), weather.risen());
    let mut has_complained = false;
    while weather.is_up() && weather.risen() == risen {
        match keep_all(&context, &outposts).await {
            Ok(()) => return,
            Err(error) if !has_complained => {
                has_complained = true;
                tracing::warn!(%error, "no events between strategies: the broker has no JetStream for us");
            }
            Err(_) => {}
        }
        sleep(AGAIN).await;
    }
}

async fn keep_all(context: &Context, outposts: &RemoteStrategies) -> Result<(), String> {
    generic::keep(context, &outposts.subjects, &outposts.keeping).await?;
    for name in outposts.names() {
        generic::keep_consumer(context, &outposts.subjects, &name).await?;
    }
    Ok(())
}

/// Tests the permissions that this login needs, and warns if the broker requires no login at all.
async fn check_rights(outposts: Rc<RemoteStrategies>, client: Client, weather: Arc<BrokerHealth>) {
    let names = outposts.names();
    let names: Vec<&str> = names.iter().map(|name| &**name).collect();
    outposts.watch_rights(&weather);
    rights::server(&outposts.subjects, &names).probe(&client).await;
    if !client.server_info().auth_required && !outposts.nats.is_loopback() {
        tracing::warn!("the broker asks nobody for a login: see config/nats/pitlane.conf");
    }
}

/// Publishes all output. While the broker accepts nothing, prices become newer, and the rest is
/// requested later.
async fn publish(outposts: Rc<RemoteStrategies>, client: Client) {
    loop {
        match outposts.take() {
            Some((subject, bytes)) => {
                if client.publish(subject, bytes).await.is_err() {
                    outposts.is_dropped();
                }
            }
            None => outposts.work.notified().await,
        }
    }
}

/// Handles the letters of one strategy.
async fn hear_letters(house: Rc<AppState>, outposts: Rc<RemoteStrategies>, name: Arc<str>) {
    let subject = outposts.subjects.ask(&name);
    let Some((_client, mut asks)) = listen(&outposts, &format!("letters {name}"), subject).await else {
        return;
    };
    while let Some(Message { payload, reply, .. }) = asks.next().await {
        let is_answerable = |reply: &Subject| outposts.subjects.is_in_inbox(&name, reply);
        if !reply.as_ref().is_none_or(is_answerable) {
            outposts.note_astray(house.now(), &name, reply.as_ref());
            continue;
        }
        match outposts.handle(house.now(), &house.floor, &name, &payload, reply) {
            News::Nothing => {}
            News::Failed { name, reason } => {
                tracing::warn!(strategy = %name, %reason, "a strategy has failed and was stopped");
                house.announce(Notification::Failed { strategy: name, reason: reason.into() });
            }
        }
        outposts.stir();
    }
}

/// Answers processes of strategies that this server does not know, and detects logins with more
/// permissions than they need.
async fn hear_strangers(house: Rc<AppState>, outposts: Rc<RemoteStrategies>) {
    let Some((client, mut hellos)) = listen(&outposts, "strangers", outposts.subjects.hellos()).await else {
        return;
    };
    let (canaries, servers) = (outposts.subjects.canaries(), outposts.subjects.servers_canary());
    let (Ok(mut canaries), Ok(mut servers)) =
        (client.subscribe(canaries).await, client.subscribe(servers).await)
    else {
        return tracing::error!("the broker takes no subscription: rights of strategies are not checked");
    };
    loop {
        tokio::select! {
            Some(Message { subject, reply: Some(reply), .. }) = hellos.next() => {
                match outposts.subjects.greeter(&subject, &reply) {
                    Some(segment) if !outposts.has_segment(segment) => outposts.refuse(reply),
                    Some(_) => {}
                    None => outposts.note_astray(house.now(), &subject, Some(&reply)),
                }
            }
            Some(Message { subject, .. }) = canaries.next() => {
                let segment = subject.rsplit('.').next().unwrap_or_default();
                if outposts.has_segment(segment) {
                    outposts.note_wide_login(segment, client.server_info().auth_required);
                }
            }
            Some(_) = servers.next() => outposts.note_wide_login(SERVERS, client.server_info().auth_required),
            else => return,
        }
    }
}

/// Lets a market that waits continue. The events of one command arrive one by one, and a strategy
/// may already have reacted to the first of them. So when all processes are idle, the shards get a
/// command that changes nothing: a shard that has answered it has sent everything before it. If
/// none of that was new, the processes are idle indeed.
async fn keep_pace(house: Rc<AppState>, outposts: Rc<RemoteStrategies>) {
    let question = CommandKind::Watch { port: house.floor.port(), what: WatchTarget::Everything, on: true };
    let mut last = None;
    loop {
        outposts.stirred.notified().await;
        let Some(calm) = outposts.calm(&house.floor).filter(|calm| last != Some(*calm)) else { continue };
        // If a lane is full, a later event notifies this task again.
        let Ok(answer) = house.floor.send(0, question) else { continue };
        let answer = answer.await;
        if answer == Outcome::Done(Reason::None) && outposts.calm(&house.floor) == Some(calm) {
            outposts.go_on(calm);
            last = Some(calm);
        }
    }
}

/// Detects which processes are silent, and which are back.
async fn look_after(house: Rc<AppState>, outposts: Rc<RemoteStrategies>) {
    let mut beat = interval(Duration::from_millis(outposts.keeping.lease_ms as u64) / BEATS_PER_LEASE);
    beat.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        beat.tick().await;
        for watched in outposts.watch(house.now(), &house.floor) {
            match watched {
                Watched::Stopped { name: strategy, reason } => {
                    tracing::warn!(%strategy, %reason, "a strategy was stopped");
                    house.announce(Notification::Failed { strategy, reason: reason.into() });
                }
                // The web page and the operator see why it does not run although its process does.
                Watched::StaysStopped { name: strategy, reason } => {
                    tracing::warn!(%strategy, %reason, on_return = "stay_stopped", "a strategy stays stopped");
                    house.announce(Notification::Failed { strategy, reason: reason.into() });
                }
                Watched::Restarted { name: strategy } => {
                    tracing::warn!(%strategy, on_return = "start", "the process of a strategy is back: the strategy is started again");
                }
            }
        }
        outposts.stir();
    }
}

/// Publishes each event until it is stored, in their order.
async fn say_generics(outposts: Rc<RemoteStrategies>, client: Client, epoch: u64) {
    let context = generic::context(&client);
    let mut number: u64 = 0;
    loop {
        let Some(said) = outposts.next_generic().filter(|_| outposts.up.get()) else {
            sleep(AGAIN / 50).await;
            continue;
        };
        match said.say(&context, &outposts.subjects, &format!("{SERVER}-{epoch}-{number}")).await {
            Ok(()) => {
                number += 1;
                outposts.generic_is_out();
            }
            Err(_) => sleep(AGAIN).await,
        }
    }
}

/// Forwards events of strategies to clients of this server too.
async fn hear_generics(house: Rc<AppState>, outposts: Rc<RemoteStrategies>) {
    let subject = outposts.subjects.generic();
    let Some((_client, mut generics)) = listen(&outposts, "events between strategies", subject).await else {
        return;
    };
    while let Some(message) = generics.next().await {
        let Some(Generic { name, body, from }) = Generic::of(&message) else { continue };
        if from != SERVER {
            house.announce(Notification::Generic { name: name.into(), body: Arc::from(&*body) });
        }
    }
}
