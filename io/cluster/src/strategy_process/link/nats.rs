//! The link through a NATS broker.

use std::future::pending;
use std::sync::Arc;
use std::time::Duration;

use async_nats::client::{RequestError, RequestErrorKind};
use async_nats::jetstream::AckKind;
use async_nats::{Client, Message, StatusCode, Subscriber, jetstream};
use bytes::Bytes;
use futures_util::StreamExt;
use pitlane_protocols::remote::strategy::{EventBatch, PriceBatch, RemoteReply, RemoteRequest};
use tokio::sync::mpsc;
use tokio::time::{sleep, timeout};

use super::super::{StrategyProcessError, StrategyProcessSettings};
use super::{ANSWER_MAX, GENERICS_MAX, GenericReceipt, IncomingGeneric, LinkInput, RETRY_PAUSE};
use crate::nats::generic::{self, Generic};
use crate::nats::link::{self, BrokerHealth};
use crate::nats::subjects::Subjects;

/// Prefix of the subjects on which JetStream takes acknowledgements.
const ACKS: &str = "$JS.ACK.";
/// Interval at which a new connection is noticed, for the test of its rights.
const CANARY_INTERVAL: Duration = Duration::from_secs(1);

/// The connections of one process to the broker.
pub(in super::super) struct NatsLink {
    name: String,
    client: Client,
    broker_health: Arc<BrokerHealth>,
    subjects: Subjects,
    events: Subscriber,
    market: Subscriber,
    replies: Subscriber,
    inbox: String,
    generics: mpsc::Sender<Generic>,
    incoming: mpsc::Receiver<jetstream::Message>,
}

impl NatsLink {
    pub(super) async fn open(
        settings: &StrategyProcessSettings,
        publisher: u64,
    ) -> Result<NatsLink, StrategyProcessError> {
        let (config, name) = (&settings.config, &settings.name);
        let subjects = Subjects::of(&config.nats, &config.service);
        let (client, broker_health) =
            link::open(&config.nats, &subjects.ask(name), subjects.inbox(name)).await?;
        let inbox = client.new_inbox();
        let refused = |error: async_nats::SubscribeError| StrategyProcessError::Refused(error.to_string());
        let (generics, outgoing) = mpsc::channel(GENERICS_MAX);
        let (incoming_sender, incoming) = mpsc::channel(GENERICS_MAX);
        let opened = NatsLink {
            name: name.clone(),
            events: client.subscribe(subjects.events(name)).await.map_err(refused)?,
            market: client.subscribe(subjects.market()).await.map_err(refused)?,
            replies: client.subscribe(format!("{inbox}.*")).await.map_err(refused)?,
            client: client.clone(),
            broker_health,
            subjects: subjects.clone(),
            inbox,
            generics,
            incoming,
        };
        // Events between strategies use a separate connection: one with unreadable headers would
        // end this one.
        let (generics, _) = link::open(&config.nats, &subjects.generic(), subjects.inbox(name)).await?;
        tokio::spawn(publish_generics(client.clone(), subjects.clone(), outgoing, publisher));
        tokio::spawn(receive_generics(generics, subjects.clone(), name.clone(), incoming_sender));
        tokio::spawn(try_canary(client, opened.broker_health.clone(), subjects.canary(name)));
        Ok(opened)
    }

    pub(super) fn is_up(&self) -> bool {
        self.broker_health.is_up()
    }

    pub(super) async fn ask(&self, request: &RemoteRequest) -> Option<RemoteReply> {
        let answered = match self.request(self.subjects.ask(&self.name), request).await? {
            // The requests have no responder: the server is away, or does not know the strategy.
            Err(error) if error.kind() == RequestErrorKind::NoResponders => {
                self.request(self.subjects.hello(&self.name), request).await?
            }
            answered => answered,
        };
        let message = answered.ok()?;
        match RemoteReply::decode(&message.payload) {
            Ok(reply) => Some(reply),
            Err(misread) => Some(RemoteReply::Refused { text: misread.to_string() }),
        }
    }

    /// Sends a request; returns `None` if there was no answer in time.
    async fn request(
        &self,
        subject: String,
        request: &RemoteRequest,
    ) -> Option<Result<Message, RequestError>> {
        timeout(ANSWER_MAX, self.client.request(subject, request.encode().into())).await.ok()
    }

    pub(super) async fn next(&mut self) -> LinkInput {
        loop {
            let input = tokio::select! {
                Some(message) = self.replies.next() => reply_of(&message),
                Some(message) = self.events.next() => {
                    unasked(&message).and_then(|bytes| EventBatch::decode(bytes).ok()).map(LinkInput::Events)
                }
                Some(message) = self.market.next() => {
                    unasked(&message).and_then(|bytes| PriceBatch::decode(bytes).ok()).map(LinkInput::Prices)
                }
                Some(message) = self.incoming.recv() => self.generic_of(message).await,
                () = self.broker_health.changed() => Some(LinkInput::Health(self.broker_health.is_up())),
                else => pending().await,
            };
            if let Some(input) = input {
                return input;
            }
        }
    }

    /// Returns an event of another strategy. One that is not for us is acknowledged at once.
    async fn generic_of(&self, message: jetstream::Message) -> Option<LinkInput> {
        match Generic::of(&message).filter(|generic| generic.from != self.name) {
            Some(Generic { name, body, .. }) => {
                let receipt = GenericReceipt::Message(Box::new(message));
                Some(LinkInput::Generic(IncomingGeneric { name, body, receipt }))
            }
            None => {
                self.acknowledge(&message).await;
                None
            }
        }
    }

    pub(super) async fn acknowledge(&self, message: &jetstream::Message) {
        // An acknowledgement is sent to the subject that the message names, so that must be
        // JetStream's.
        if message.reply.as_ref().is_some_and(|reply| reply.starts_with(ACKS)) {
            let _ = message.ack_with(AckKind::Ack).await;
        }
    }

    pub(super) async fn send(&self, number: u64, request: &RemoteRequest) {
        let (subject, bytes) = (self.subjects.ask(&self.name), Bytes::from(request.encode()));
        let _ = match number {
            0 => self.client.publish(subject, bytes).await,
            _ => {
                let reply = format!("{}.{number}", self.inbox);
                self.client.publish_with_reply(subject, reply, bytes).await
            }
        };
    }

    pub(super) fn publish(&self, generic: Generic) -> bool {
        enqueue(&self.generics, generic)
    }

    pub(super) async fn flush(&self) {
        let _ = timeout(ANSWER_MAX, self.client.flush()).await;
    }
}

fn reply_of(message: &Message) -> Option<LinkInput> {
    if message.status == Some(StatusCode::NO_RESPONDERS) {
        return Some(LinkInput::Silence);
    }
    let number = message.subject.rsplit('.').next().and_then(|token| token.parse().ok())?;
    Some(LinkInput::Reply { number, reply: RemoteReply::decode(&message.payload).ok()? })
}

/// Returns the bytes of a message. The server's messages expect no reply: one that does was put
/// here by the broker for another client.
fn unasked(message: &Message) -> Option<&[u8]> {
    message.reply.is_none().then_some(&*message.payload)
}

/// Queues an event; returns false if the queue is full and the event is dropped.
fn enqueue(generics: &mpsc::Sender<Generic>, generic: Generic) -> bool {
    generics.try_send(generic).is_ok()
}

/// Publishes events in order, each until it is stored.
async fn publish_generics(
    client: Client,
    subjects: Subjects,
    mut generics: mpsc::Receiver<Generic>,
    publisher: u64,
) {
    let context = generic::context(&client);
    let mut number: u64 = 0;
    while let Some(generics) = generics.recv().await {
        let id = format!("{}-{publisher}-{number}", generics.from);
        while generics.publish(&context, &subjects, &id).await.is_err() {
            sleep(RETRY_PAUSE).await;
        }
        number += 1;
    }
}

/// Tries after each connect what the broker should refuse: see [`Subjects::canary`].
async fn try_canary(client: Client, broker_health: Arc<BrokerHealth>, subject: String) {
    let mut tried = 0;
    loop {
        if broker_health.is_up() && broker_health.connection_count() != tried {
            tried = broker_health.connection_count();
            let _ = client.publish(subject.clone(), Bytes::new()).await;
        }
        sleep(CANARY_INTERVAL).await;
    }
}

/// Receives the events of others, from the strategy's last acknowledged one; reconnects, because
/// streams end with their broker.
async fn receive_generics(
    client: Client,
    subjects: Subjects,
    strategy: String,
    incoming: mpsc::Sender<jetstream::Message>,
) {
    let context = generic::context(&client);
    loop {
        if let Ok(consumer) = generic::consumer(&context, &subjects, &strategy).await
            && let Ok(mut messages) = consumer.messages().await
        {
            while let Some(Ok(message)) = messages.next().await {
                if incoming.send(message).await.is_err() {
                    return;
                }
            }
        }
        sleep(RETRY_PAUSE * 5).await;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn events_for_others_are_queued_up_to_the_bound_and_the_newest_are_dropped() {
        let (generics, mut outgoing) = mpsc::channel(GENERICS_MAX);
        let generic = |n: usize| Generic::new("a", n.to_string().into(), "A").unwrap();
        for n in 0..GENERICS_MAX {
            assert!(enqueue(&generics, generic(n)));
        }
        assert!(!enqueue(&generics, generic(GENERICS_MAX)));
        assert_eq!(
            outgoing.try_recv().map(|generics| generics.body),
            Ok("0".into()),
            "the first is still the first"
        );
        assert!(enqueue(&generics, generic(GENERICS_MAX + 1)));
    }
}
