//! Connects a strategy's process to the broker: the handshake, and the loop around the runner.

use std::collections::BTreeMap;
use std::os::unix::net::UnixStream;
use std::sync::Arc;
use std::time::Duration;

use async_nats::client::{RequestError, RequestErrorKind};
use async_nats::jetstream::AckKind;
use async_nats::{Client, Message, StatusCode, Subscriber, jetstream};
use bytes::Bytes;
use futures_util::StreamExt;
use pitlane_engine::index::index_u32;
use pitlane_engine::refdata::RefData;
use pitlane_engine::time::NS_PER_S;
use pitlane_protocols::remote;
use pitlane_protocols::remote::strategy::{
    Blob, EventBatch, NumberedEvent, PriceBatch, RemoteReply, RemoteRequest, StrategySetup, Welcome,
};
use pitlane_runtime::clock::Clock;
use pitlane_strategy::host::HostSettings;
use pitlane_strategy::parameters::Parameters;
use tokio::net::UnixStream as Signals;
use tokio::sync::mpsc;
use tokio::time::{sleep, timeout};

use super::record::EventRecord;
use super::runner::{RemoteRunner, RunnerFailure, RunnerParts};
use super::{StrategyProcessError, StrategyProcessSettings, host, print_line, system};
use crate::nats::generic::{self, Generic};
use crate::nats::link::{self, BrokerHealth};
use crate::nats::subjects::Subjects;

/// Timeout of an answer during the handshake, and pause between two attempts.
const ANSWER_MAX: Duration = Duration::from_secs(1);
const RETRY_PAUSE: Duration = Duration::from_millis(100);
/// Longest time of an orderly shutdown.
const END_NS_MAX: u64 = 3 * NS_PER_S;
/// Longest wait of the loop if nothing is due.
const LONG: Duration = Duration::from_secs(1);
/// Maximum number of queued events between strategies, in and out. Beyond it the broker keeps
/// incoming events, and the newest outgoing ones are dropped.
const GENERICS_MAX: usize = 256;

/// Prefix of the subjects on which JetStream takes acknowledgements.
const ACKS: &str = "$JS.ACK.";

/// The connections of one process to the broker.
struct ProcessConnection<'a> {
    settings: &'a StrategyProcessSettings,
    client: Client,
    broker_health: Arc<BrokerHealth>,
    subjects: Subjects,
    events: Subscriber,
    market: Subscriber,
    replies: Subscriber,
    inbox: String,
    signals: Signals,
    generics: mpsc::Sender<Generic>,
    incoming: mpsc::Receiver<jetstream::Message>,
    clock: Clock,
}

/// The result of a handshake.
struct Handshake {
    welcome: Box<Welcome>,
    parts: RunnerParts,
}

enum RunEnd {
    Signal,
    Restart,
}

pub(super) async fn run(
    settings: &StrategyProcessSettings,
    signals: UnixStream,
) -> Result<(), StrategyProcessError> {
    signals.set_nonblocking(true).map_err(system("cannot receive signals"))?;
    let signals = Signals::from_std(signals).map_err(system("cannot receive signals"))?;
    let config = &settings.config;
    let subjects = Subjects::of(&config.nats, &config.service);
    let (client, broker_health) =
        link::open(&config.nats, &subjects.ask(&settings.name), subjects.inbox(&settings.name)).await?;
    let inbox = client.new_inbox();
    let refused = |error: async_nats::SubscribeError| StrategyProcessError::Refused(error.to_string());
    let (generics, outgoing) = mpsc::channel(GENERICS_MAX);
    let (incoming_sender, incoming) = mpsc::channel(GENERICS_MAX);
    let mut connection = ProcessConnection {
        events: client.subscribe(subjects.events(&settings.name)).await.map_err(refused)?,
        market: client.subscribe(subjects.market()).await.map_err(refused)?,
        replies: client.subscribe(format!("{inbox}.*")).await.map_err(refused)?,
        settings,
        client: client.clone(),
        broker_health,
        subjects: subjects.clone(),
        inbox,
        signals,
        generics,
        incoming,
        clock: Clock::new(),
    };
    let incarnation = connection.clock.now().0;
    // Events between strategies use a separate connection: one with unreadable headers would end
    // this one.
    let (generics, _) = link::open(&config.nats, &subjects.generic(), subjects.inbox(&settings.name)).await?;
    tokio::spawn(publish_generics(client.clone(), subjects.clone(), outgoing, incarnation));
    tokio::spawn(receive_generics(generics, subjects.clone(), settings.name.clone(), incoming_sender));
    tokio::spawn(try_canary(client, connection.broker_health.clone(), subjects.canary(&settings.name)));
    let (mut record, mut received) = match &config.remote_strategies.record_dir {
        Some(folder) => {
            let opened =
                EventRecord::open(folder, &settings.name).map_err(system("remote_strategies.record_dir"))?;
            (Some(opened.0), opened.1)
        }
        None => (None, Vec::new()),
    };
    loop {
        let Some(handshake) = connection.shake_hands(record.take(), &received).await? else { return Ok(()) };
        let mut runner = RemoteRunner::new(connection.clock.now(), &handshake.welcome, handshake.parts);
        runner.set_broker(connection.clock.now(), connection.broker_health.is_up());
        print_line(&format!("ready strategy={} server={}", settings.name, config.service.name));
        match connection.run_until_end(&mut runner).await? {
            RunEnd::Signal => return Ok(()),
            RunEnd::Restart => {
                tracing::warn!(
                    "the server no longer has the missed events: the strategy restarts from the current state"
                );
                (record, received) = runner.take_record();
            }
        }
    }
}

/// The handshake.
impl ProcessConnection<'_> {
    /// Repeats the handshake until the server accepts; returns `None` if a signal comes first.
    async fn shake_hands(
        &mut self,
        mut record: Option<EventRecord>,
        received: &[u64],
    ) -> Result<Option<Handshake>, StrategyProcessError> {
        let mut waits_for = String::new();
        loop {
            let incarnation = self.clock.now().0;
            let request = RemoteRequest::Hello { incarnation, host: host(), received: received.to_vec() };
            let reply = tokio::select! {
                reply = self.ask(&request) => reply,
                _ = self.signals.readable() => return Ok(None),
            };
            match reply {
                Some(RemoteReply::Welcome(welcome)) => {
                    if let Some(handshake) =
                        self.fetch_state(incarnation, welcome, &mut record, received).await?
                    {
                        return Ok(Some(handshake));
                    }
                }
                Some(RemoteReply::Refused { text }) => return Err(StrategyProcessError::Refused(text)),
                Some(RemoteReply::Wait { text }) if text != waits_for => {
                    tracing::info!(why = %text, "waiting for the server");
                    waits_for = text;
                }
                _ => {}
            }
            sleep(RETRY_PAUSE).await;
        }
    }

    async fn ask(&self, request: &RemoteRequest) -> Option<RemoteReply> {
        let name = &self.settings.name;
        let answered = match self.request(self.subjects.ask(name), request).await? {
            // The requests have no responder: the server is away, or does not know the strategy.
            Err(error) if error.kind() == RequestErrorKind::NoResponders => {
                self.request(self.subjects.hello(name), request).await?
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

    /// Fetches the announced data; returns `None` if the server went away in the meantime.
    async fn fetch_state(
        &self,
        incarnation: u64,
        welcome: Box<Welcome>,
        record: &mut Option<EventRecord>,
        received: &[u64],
    ) -> Result<Option<Handshake>, StrategyProcessError> {
        let damaged = |what: &str, damage| StrategyProcessError::Refused(format!("{what}: {damage}"));
        let Some(reference) = self.fetch_blob(incarnation, Blob::Reference, welcome.reference_bytes).await
        else {
            return Ok(None);
        };
        let Some(state) = self.fetch_blob(incarnation, Blob::State, welcome.state_bytes).await else {
            return Ok(None);
        };
        let reference = RefData::load(&reference).map_err(|damage| damaged("its reference data", damage))?;
        let state = remote::strategy::decode_state(&state).map_err(|damage| damaged("its state", damage))?;
        let is_known = !received.is_empty() && welcome.complete;
        let none = || Some(Vec::new());
        let missed = if is_known { self.missed(incarnation, &welcome, received).await } else { none() };
        let Some(missed) = missed else { return Ok(None) };
        let mut record = record.take();
        if let Some(record) = record.as_mut().filter(|_| !is_known) {
            let heads: Vec<u64> = welcome.heads.iter().map(|head| head.seen).collect();
            record.begun(&heads).map_err(system("remote_strategies.record_dir"))?;
        }
        let host = host_settings(self.settings, &welcome.section, &reference, welcome.strategy)?;
        let seed = self.settings.config.service.seed;
        let parts =
            RunnerParts { incarnation, reference: Arc::new(reference), host, state, missed, record, seed };
        Ok(Some(Handshake { welcome, parts }))
    }

    async fn fetch_blob(&self, incarnation: u64, of: Blob, total: u32) -> Option<Vec<u8>> {
        let mut bytes = Vec::new();
        while bytes.len() < total as usize {
            let request = RemoteRequest::Piece { incarnation, of, at: index_u32(bytes.len()) };
            let RemoteReply::Piece { bytes: piece, .. } = self.ask(&request).await? else { return None };
            bytes.extend((!piece.is_empty()).then_some(piece)?);
        }
        Some(bytes)
    }

    /// Returns the events between the last one received and the state.
    async fn missed(
        &self,
        incarnation: u64,
        welcome: &Welcome,
        received: &[u64],
    ) -> Option<Vec<NumberedEvent>> {
        let (mut received, mut all) = (received.to_vec(), Vec::new());
        loop {
            let RemoteReply::Missed { events, more } =
                self.ask(&RemoteRequest::Fetch { incarnation, received: received.clone() }).await?
            else {
                return None;
            };
            for numbered in events {
                let shard = numbered.shard.0 as usize;
                let (Some(received), Some(head)) = (received.get_mut(shard), welcome.heads.get(shard)) else {
                    return None;
                };
                *received = numbered.event.seq;
                // Events after the state are delivered later.
                if numbered.event.seq <= head.seen {
                    all.push(numbered);
                }
            }
            if !more {
                return Some(all);
            }
        }
    }
}

/// Returns the settings of the strategy: from its own section, or from the server's.
fn host_settings(
    settings: &StrategyProcessSettings,
    section: &StrategySetup,
    reference: &RefData,
    id: pitlane_engine::id::StrategyId,
) -> Result<HostSettings, StrategyProcessError> {
    let name = &settings.name;
    let (make, start, cancel_on_failure) = match settings.own() {
        Some(own) => (own.make(reference, &settings.registry), own.start, own.cancel_on_failure),
        None => {
            let texts: BTreeMap<String, String> = section.parameters.iter().cloned().collect();
            let kind = settings.registry.find(&section.kind).ok_or(None);
            let make =
                kind.and_then(|kind| kind.make(&section.securities, &Parameters::new(texts)).map_err(Some));
            (make, section.start, section.cancel_on_failure)
        }
    };
    let make = make.map_err(|bad| {
        StrategyProcessError::Settings(match bad {
            Some(bad) => format!("parameters of {name}: {bad}"),
            None => format!("{name}: this program knows no such kind of strategy"),
        })
    })?;
    Ok(HostSettings { id, name: name.clone(), make, start, cancel_on_failure })
}

/// The loop.
impl ProcessConnection<'_> {
    async fn run_until_end(&mut self, runner: &mut RemoteRunner) -> Result<RunEnd, StrategyProcessError> {
        let mut ends_at = None;
        loop {
            let now = self.clock.now();
            runner.poll(now);
            self.send_all(runner).await;
            match runner.broken() {
                Some(RunnerFailure::Restart) => return Ok(RunEnd::Restart),
                Some(RunnerFailure::Refused(text)) => {
                    return Err(StrategyProcessError::Refused(text.clone()));
                }
                Some(RunnerFailure::Record(text)) => {
                    let error = std::io::Error::other(text.clone());
                    return Err(StrategyProcessError::System(
                        "remote_strategies.record_dir".to_string(),
                        error,
                    ));
                }
                None => {}
            }
            if ends_at.is_some_and(|at| now >= at || runner.has_left()) {
                self.leave(runner).await;
                return Ok(RunEnd::Signal);
            }
            let wait = Duration::from_nanos(runner.deadline().since(now)).min(LONG);
            if self.handle_input(runner, wait, ends_at.is_none()).await {
                let now = self.clock.now();
                ends_at = Some(now.plus(END_NS_MAX));
                runner.wind_down(now);
            }
        }
    }

    /// Handles the first input; returns true if it is a signal.
    async fn handle_input(
        &mut self,
        runner: &mut RemoteRunner,
        wait: Duration,
        accepts_signals: bool,
    ) -> bool {
        tokio::select! {
            Some(message) = self.replies.next() => {
                let now = self.clock.now();
                let number = message.subject.rsplit('.').next().and_then(|token| token.parse().ok());
                if message.status == Some(StatusCode::NO_RESPONDERS) {
                    runner.handle_silence(now);
                } else if let (Some(number), Ok(reply)) = (number, RemoteReply::decode(&message.payload)) {
                    runner.handle_reply(now, number, reply);
                }
            }
            // The server's messages expect no reply: one that does was put here by the broker for
            // another client.
            Some(message) = self.events.next() => {
                if message.reply.is_none() && let Ok(batch) = EventBatch::decode(&message.payload) {
                    runner.handle_events(self.clock.now(), &batch);
                }
            }
            Some(message) = self.market.next() => {
                if message.reply.is_none() && let Ok(prices) = PriceBatch::decode(&message.payload) {
                    runner.handle_prices(self.clock.now(), &prices);
                }
            }
            Some(message) = self.incoming.recv() => self.deliver_generic(runner, message).await,
            () = self.broker_health.changed() => runner.set_broker(self.clock.now(), self.broker_health.is_up()),
            _ = self.signals.readable(), if accepts_signals => return true,
            () = sleep(wait) => {}
        }
        false
    }

    /// Delivers an event between strategies, then acknowledges it to the broker.
    async fn deliver_generic(&mut self, runner: &mut RemoteRunner, message: jetstream::Message) {
        if let Some(generics) = Generic::of(&message)
            && generics.from != self.settings.name
        {
            runner.handle_generic(self.clock.now(), &generics.name, &generics.body);
        }
        // An acknowledgement is sent to the subject that the message names, so that must be
        // JetStream's.
        if message.reply.as_ref().is_some_and(|reply| reply.starts_with(ACKS)) {
            let _ = message.ack_with(AckKind::Ack).await;
        }
    }

    async fn send_all(&mut self, runner: &mut RemoteRunner) {
        let subject = self.subjects.ask(&self.settings.name);
        while let Some((number, request)) = runner.poll_request() {
            // Messages that cannot be sent now are requested again later.
            if !self.broker_health.is_up() {
                continue;
            }
            let bytes = Bytes::from(request.encode());
            let _ = match number {
                0 => self.client.publish(subject.clone(), bytes).await,
                _ => {
                    let reply = format!("{}.{number}", self.inbox);
                    self.client.publish_with_reply(subject.clone(), reply, bytes).await
                }
            };
        }
        while let Some((name, body)) = runner.poll_generic() {
            let generics = Generic::new(&name, Bytes::copy_from_slice(&body), &self.settings.name);
            let Some(generics) = generics else {
                tracing::warn!("an event for other strategies was dropped: its name or its body is invalid");
                continue;
            };
            enqueue(&self.generics, generics);
        }
    }

    async fn leave(&self, runner: &RemoteRunner) {
        let _ = self.ask(&RemoteRequest::Bye { incarnation: runner.incarnation() }).await;
        let _ = timeout(ANSWER_MAX, self.client.flush()).await;
    }
}

/// Queues an event; returns false if the queue is full and the event is dropped.
fn enqueue(generics: &mpsc::Sender<Generic>, generic: Generic) -> bool {
    let taken = generics.try_send(generic).is_ok();
    if !taken {
        tracing::warn!("an event for other strategies was dropped: the queue to the broker is full");
    }
    taken
}

/// Publishes events in order, each until it is stored.
async fn publish_generics(
    client: Client,
    subjects: Subjects,
    mut generics: mpsc::Receiver<Generic>,
    incarnation: u64,
) {
    let context = generic::context(&client);
    let mut number: u64 = 0;
    while let Some(generics) = generics.recv().await {
        let id = format!("{}-{incarnation}-{number}", generics.from);
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
        sleep(LONG).await;
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
