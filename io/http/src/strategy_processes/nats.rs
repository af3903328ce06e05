//! The tasks between remote strategies and a NATS broker. They belong to the http thread, as all
//! async code.

use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use async_nats::jetstream::Context;
use async_nats::{Client, Message, Subject, Subscriber};
use futures_util::StreamExt;
use pitlane_cluster::nats::generic::{self, Generic};
use pitlane_cluster::nats::link::{self, BrokerHealth, LinkError};
use pitlane_cluster::nats::rights;
use pitlane_gateway::notifications::Notification;
use pitlane_protocols::stomp::payload::system::ExternalSessionState;
use tokio::task::spawn_local;
use tokio::time::sleep;

use super::handle_request;
use super::messages::RequestSender;
use crate::app_state::AppState;
use crate::remote_strategies::{RemoteStrategies, ReplyAddress, SERVER};

/// Name of the login with too many permissions, if servers and strategies share an account.
const SERVERS: &str = "SERVERS";
/// Name of the broker among the external sessions.
pub(crate) const SESSION: &str = "NATS";
/// Interval between two attempts to store something at the broker.
const RETRY_INTERVAL: Duration = Duration::from_millis(500);

/// Connects, and serves until the thread ends.
///
/// Requests of each strategy come over a connection of their own, and so do events between
/// strategies. The reason: a client of the broker loses its connection over headers that it cannot
/// parse, and a strategy that sends such headers must affect only itself.
pub(crate) async fn serve(app: Rc<AppState>, remote_strategies: Rc<RemoteStrategies>) {
    let opened = open(&remote_strategies, "prices and events").await;
    let (client, broker_health) = match opened {
        Ok(opened) => opened,
        Err(error) => return tracing::error!(%error, "remote strategies cannot be served"),
    };
    announce(&app, ExternalSessionState::Disconnected);
    spawn_local(publish(remote_strategies.clone(), client.clone()));
    spawn_local(publish_generics(
        remote_strategies.clone(),
        client.clone(),
        app.monitoring.service_status.started().0,
    ));
    for name in remote_strategies.names() {
        spawn_local(receive_requests(app.clone(), remote_strategies.clone(), name));
    }
    spawn_local(receive_generics(app.clone(), remote_strategies.clone()));
    spawn_local(receive_unknown(app.clone(), remote_strategies.clone()));
    track_broker_health(app, remote_strategies, client, broker_health).await;
}

async fn open(
    remote_strategies: &RemoteStrategies,
    what: &str,
) -> Result<(Client, Arc<BrokerHealth>), LinkError> {
    let name = format!("{} {what}", remote_strategies.subjects.market());
    link::open(&remote_strategies.nats, &name, remote_strategies.subjects.server_inbox()).await
}

/// Opens a connection for one subject. The client reconnects by itself.
async fn listen(
    remote_strategies: &RemoteStrategies,
    what: &str,
    subject: String,
) -> Option<(Client, Subscriber)> {
    let opened = open(remote_strategies, what).await;
    let client = opened.inspect_err(|error| tracing::error!(%error, "the broker cannot be used")).ok()?.0;
    let received = client.subscribe(subject).await;
    let received =
        received.inspect_err(|error| tracing::error!(%error, "the broker accepts no subscription")).ok()?;
    Some((client, received))
}

/// Tracks whether the broker is connected, and publishes it.
async fn track_broker_health(
    app: Rc<AppState>,
    remote_strategies: Rc<RemoteStrategies>,
    client: Client,
    broker_health: Arc<BrokerHealth>,
) {
    let mut was_up = false;
    loop {
        let is_up = broker_health.is_up();
        if is_up != was_up {
            was_up = is_up;
            remote_strategies.set_up(is_up, app.now());
            announce(
                &app,
                if is_up { ExternalSessionState::Connected } else { ExternalSessionState::Disconnected },
            );
            remote_strategies.work.notify_one();
        }
        if is_up {
            spawn_local(create_stream(remote_strategies.clone(), client.clone(), broker_health.clone()));
            spawn_local(check_rights(remote_strategies.clone(), client.clone(), broker_health.clone()));
        }
        broker_health.changed().await;
    }
}

fn announce(app: &AppState, link: ExternalSessionState) {
    app.notifications.announce(Notification::Link { name: SESSION.into(), link });
}

/// Creates the stream that stores events between strategies.
async fn create_stream(
    remote_strategies: Rc<RemoteStrategies>,
    client: Client,
    broker_health: Arc<BrokerHealth>,
) {
    let (context, risen) = (generic::context(&client), broker_health.connection_count());
    let mut has_logged = false;
    while broker_health.is_up() && broker_health.connection_count() == risen {
        match create_all(&context, &remote_strategies).await {
            Ok(()) => return,
            Err(error) if !has_logged => {
                has_logged = true;
                tracing::warn!(%error, "no events between strategies: JetStream is not available to this login");
            }
            Err(_) => {}
        }
        sleep(RETRY_INTERVAL).await;
    }
}

async fn create_all(context: &Context, remote_strategies: &RemoteStrategies) -> Result<(), String> {
    generic::ensure_stream(context, &remote_strategies.subjects, &remote_strategies.settings).await?;
    for name in remote_strategies.names() {
        generic::ensure_consumer(context, &remote_strategies.subjects, &name).await?;
    }
    Ok(())
}

/// Tests the permissions that this login needs, and warns if the broker requires no login at all.
async fn check_rights(
    remote_strategies: Rc<RemoteStrategies>,
    client: Client,
    broker_health: Arc<BrokerHealth>,
) {
    let names = remote_strategies.names();
    let names: Vec<&str> = names.iter().map(|name| &**name).collect();
    remote_strategies.set_broker_health(&broker_health);
    rights::server(&remote_strategies.subjects, &names).probe(&client).await;
    if !client.server_info().auth_required && !remote_strategies.nats.is_loopback() {
        tracing::warn!("the broker requires no login: see config/nats/pitlane.conf");
    }
}

/// Publishes all output. While the broker accepts nothing, prices become newer, and the rest is
/// requested later.
async fn publish(remote_strategies: Rc<RemoteStrategies>, client: Client) {
    loop {
        match remote_strategies.take() {
            Some((subject, bytes)) => {
                if client.publish(subject, bytes).await.is_err() {
                    remote_strategies.count_dropped();
                }
            }
            None => remote_strategies.work.notified().await,
        }
    }
}

/// Handles the requests of one strategy.
async fn receive_requests(app: Rc<AppState>, remote_strategies: Rc<RemoteStrategies>, name: Arc<str>) {
    let subject = remote_strategies.subjects.ask(&name);
    let Some((_client, mut requests)) = listen(&remote_strategies, &format!("letters {name}"), subject).await
    else {
        return;
    };
    while let Some(Message { payload, reply, .. }) = requests.next().await {
        let is_answerable = |reply: &Subject| remote_strategies.subjects.is_in_inbox(&name, reply);
        if !reply.as_ref().is_none_or(is_answerable) {
            remote_strategies.record_misrouted(app.now(), &name, reply.as_ref());
            continue;
        }
        let sender = RequestSender { connection: None, reply: reply.map(ReplyAddress::Subject) };
        handle_request(&app, &remote_strategies, &name, &payload, sender);
    }
}

/// Answers processes of strategies that this server does not know, and detects logins with more
/// permissions than they need.
async fn receive_unknown(app: Rc<AppState>, remote_strategies: Rc<RemoteStrategies>) {
    let Some((client, mut hellos)) =
        listen(&remote_strategies, "strangers", remote_strategies.subjects.hellos()).await
    else {
        return;
    };
    let (canaries, servers) =
        (remote_strategies.subjects.canaries(), remote_strategies.subjects.servers_canary());
    let (Ok(mut canaries), Ok(mut servers)) =
        (client.subscribe(canaries).await, client.subscribe(servers).await)
    else {
        return tracing::error!("the broker accepts no subscription: rights of strategies are not checked");
    };
    loop {
        tokio::select! {
            Some(Message { subject, reply: Some(reply), .. }) = hellos.next() => {
                match remote_strategies.subjects.hello_sender(&subject, &reply) {
                    Some(segment) if !remote_strategies.has_segment(segment) => remote_strategies.refuse(reply),
                    Some(_) => {}
                    None => remote_strategies.record_misrouted(app.now(), &subject, Some(&reply)),
                }
            }
            Some(Message { subject, .. }) = canaries.next() => {
                let segment = subject.rsplit('.').next().unwrap_or_default();
                if remote_strategies.has_segment(segment) {
                    remote_strategies.record_wide_login(segment, client.server_info().auth_required);
                }
            }
            Some(_) = servers.next() => {
                remote_strategies.record_wide_login(SERVERS, client.server_info().auth_required);
            }
            else => return,
        }
    }
}

/// Publishes each event until it is stored, in their order.
async fn publish_generics(remote_strategies: Rc<RemoteStrategies>, client: Client, epoch: u64) {
    let context = generic::context(&client);
    let mut number: u64 = 0;
    loop {
        let Some(generic_event) = remote_strategies.next_generic().filter(|_| remote_strategies.up.get())
        else {
            sleep(RETRY_INTERVAL / 50).await;
            continue;
        };
        match generic_event
            .publish(&context, &remote_strategies.subjects, &format!("{SERVER}-{epoch}-{number}"))
            .await
        {
            Ok(()) => {
                number += 1;
                remote_strategies.pop_generic();
            }
            Err(_) => sleep(RETRY_INTERVAL).await,
        }
    }
}

/// Forwards events of strategies to clients of this server too.
async fn receive_generics(app: Rc<AppState>, remote_strategies: Rc<RemoteStrategies>) {
    let subject = remote_strategies.subjects.generic();
    let Some((_client, mut generics)) =
        listen(&remote_strategies, "events between strategies", subject).await
    else {
        return;
    };
    while let Some(message) = generics.next().await {
        let Some(Generic { name, body, from }) = Generic::of(&message) else { continue };
        if from != SERVER {
            app.notifications.announce(Notification::Generic { name: name.into(), body: Arc::from(&*body) });
        }
    }
}
