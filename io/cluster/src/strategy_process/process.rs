//! The process of a strategy: the handshake with its server, and the loop around the runner.

use std::collections::BTreeMap;
use std::os::unix::net::UnixStream;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use pitlane_engine::index::index_u32;
use pitlane_engine::refdata::RefData;
use pitlane_engine::time::NS_PER_S;
use pitlane_protocols::remote;
use pitlane_protocols::remote::strategy::{
    Blob, NumberedEvent, RemoteReply, RemoteRequest, StrategySetup, Welcome,
};
use pitlane_runtime::clock::Clock;
use pitlane_strategy::host::HostSettings;
use pitlane_strategy::parameters::Parameters;
use tokio::net::UnixStream as Signals;
use tokio::time::sleep;

use super::link::{IncomingGeneric, Link, LinkInput};
use super::record::EventRecord;
use super::runner::{RemoteRunner, RunnerFailure, RunnerParts};
use super::{StrategyProcessError, StrategyProcessSettings, host, print_line, system};
use crate::nats::generic::Generic;

/// Pause between two attempts of a handshake.
const RETRY_PAUSE: Duration = Duration::from_millis(100);
/// Longest time of an orderly shutdown.
const END_NS_MAX: u64 = 3 * NS_PER_S;
/// Longest wait of the loop if nothing is due.
const LONG: Duration = Duration::from_secs(1);

/// A process and its link.
struct LinkedProcess<'a> {
    settings: &'a StrategyProcessSettings,
    link: Link,
    signals: Signals,
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
    let mut clock = Clock::new();
    let link = Link::open(settings, clock.now().0).await?;
    let mut connection = LinkedProcess { settings, link, signals, clock };
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
        runner.set_connected(connection.clock.now(), connection.link.is_up());
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
impl LinkedProcess<'_> {
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
                reply = self.link.ask(&request) => reply,
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

    /// Fetches the announced data; returns `None` if the server went away in the meantime.
    async fn fetch_state(
        &mut self,
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

    async fn fetch_blob(&mut self, incarnation: u64, of: Blob, total: u32) -> Option<Vec<u8>> {
        let mut bytes = Vec::new();
        while bytes.len() < total as usize {
            let request = RemoteRequest::Piece { incarnation, of, at: index_u32(bytes.len()) };
            let RemoteReply::Piece { bytes: piece, .. } = self.link.ask(&request).await? else { return None };
            bytes.extend((!piece.is_empty()).then_some(piece)?);
        }
        Some(bytes)
    }

    /// Returns the events between the last one received and the state.
    async fn missed(
        &mut self,
        incarnation: u64,
        welcome: &Welcome,
        received: &[u64],
    ) -> Option<Vec<NumberedEvent>> {
        let (mut received, mut all) = (received.to_vec(), Vec::new());
        loop {
            let RemoteReply::Missed { events, more } =
                self.link.ask(&RemoteRequest::Fetch { incarnation, received: received.clone() }).await?
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
    let (kind, make, start, cancel_on_failure) = match settings.own() {
        Some(own) => (&own.kind, own.make(reference, &settings.registry), own.start, own.cancel_on_failure),
        None => {
            let texts: BTreeMap<String, String> = section.parameters.iter().cloned().collect();
            let kind = settings.registry.find(&section.kind).ok_or(None);
            let make =
                kind.and_then(|kind| kind.make(&section.securities, &Parameters::new(texts)).map_err(Some));
            (&section.kind, make, section.start, section.cancel_on_failure)
        }
    };
    let make =
        make.map_err(|bad| StrategyProcessError::Settings(settings.describe_fault(kind, bad.as_ref())))?;
    Ok(HostSettings { id, name: name.clone(), make, start, cancel_on_failure })
}

/// The loop.
impl LinkedProcess<'_> {
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
            if self.handle_input(runner, wait, ends_at.is_none()).await? {
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
    ) -> Result<bool, StrategyProcessError> {
        let input = tokio::select! {
            input = self.link.next() => input,
            _ = self.signals.readable(), if accepts_signals => return Ok(true),
            () = sleep(wait) => return Ok(false),
        };
        let now = self.clock.now();
        match input {
            LinkInput::Reply { number, reply } => runner.handle_reply(now, number, reply),
            LinkInput::Silence => runner.handle_silence(now),
            LinkInput::Events(batch) => runner.handle_events(now, &batch),
            LinkInput::Prices(prices) => runner.handle_prices(now, &prices),
            LinkInput::Generic(IncomingGeneric { name, body, receipt }) => {
                runner.handle_generic(now, &name, &body);
                self.link.acknowledge(receipt).await;
            }
            LinkInput::Health(is_up) => runner.set_connected(now, is_up),
            LinkInput::Refused(text) => return Err(StrategyProcessError::Refused(text)),
        }
        Ok(false)
    }

    async fn send_all(&mut self, runner: &mut RemoteRunner) {
        while let Some((number, request)) = runner.poll_request() {
            // Messages that cannot be sent now are requested again later.
            if self.link.is_up() {
                self.link.send(number, &request).await;
            }
        }
        while let Some((name, body)) = runner.poll_generic() {
            match Generic::new(&name, Bytes::copy_from_slice(&body), &self.settings.name) {
                Some(generic) => self.link.publish(generic),
                None => {
                    tracing::warn!(
                        "an event for other strategies was dropped: its name or its body is invalid"
                    );
                }
            }
        }
    }

    async fn leave(&mut self, runner: &RemoteRunner) {
        let _ = self.link.ask(&RemoteRequest::Bye { incarnation: runner.incarnation() }).await;
        self.link.flush().await;
    }
}
