//! The remote runner of one strategy: the ordinary runner, with a part that replaces the shards and
//! communicates with a remote server. Time is an argument, and there is no socket.
//!
//! ```text
//! Events, Prices, Reply ─► handle_* ─► lanes ─► Runner ─► Strategy
//!                                                  │ commands
//! Request ◄─ poll_request ◄─ requests ◄─ lanes ◄───┘
//! ```
//!
//! **The link to the server** is up, lost, or being restored:
//!
//! ```text
//!      connection lost, no answer,
//!      unknown to the server
//! Up ─────────────────────────► Lost ── Resume ──► Asking ── Welcome ──► Catching ── Missed ──► Up
//!                                ▲                  │ timeout              │ timeout
//!                                └──────────────────┴──────────────────────┘
//! ```
//!
//! While the link is not up nothing new is sent: orders are refused with a reason, cancels wait.
//! Unanswered requests are sent again under their ids when the link is up, and the server accepts
//! each once.

mod commands;
mod server_link;

use std::collections::VecDeque;
use std::io;
use std::sync::Arc;

use pitlane_engine::desk::IdBlock;
use pitlane_engine::event::{Event, EventKind, Tick};
use pitlane_engine::id::{PortId, SecurityId, ShardId};
use pitlane_engine::index::index_u8;
use pitlane_engine::mesh::{Depths, PortClass, ShardEnd, mesh};
use pitlane_engine::refdata::RefData;
use pitlane_engine::time::{NS_PER_MS, Timestamp};
use pitlane_gateway::strategies;
use pitlane_protocols::remote;
use pitlane_protocols::remote::strategy::{
    EventBatch, NumberedEvent, PriceBatch, RemoteReply, RemoteRequest, ShardHead, StateItem, Welcome,
};
use pitlane_strategy::Operation;
use pitlane_strategy::host::HostSettings;
use pitlane_strategy::runner::{Notice, Runner};

use super::record::EventRecord;
use super::requests::{PendingRequests, RequestOutcome};

/// Timeout of an answer.
const ANSWER_NS: u64 = 500 * NS_PER_MS;
/// Maximum number of events per poll, and of rounds in one poll; requests are bounded by the orders
/// that a strategy may have open.
const EVENTS_PER_POLL_MAX: usize = 4_096;
/// Minimum interval between two entries of received numbers in the record.
const NOTE_NS: u64 = 1_000 * NS_PER_MS;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum LinkState {
    Up,
    Lost { again: Timestamp },
    Asking { number: u64, until: Timestamp },
    Catching { number: u64, until: Timestamp },
}

/// The reason why a runner cannot continue as it is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RunnerFailure {
    /// Missed events are no longer available: the strategy restarts from the state.
    Restart,
    /// The server refuses the strategy; the text is its reason.
    Refused(String),
    /// The record could not be written.
    Record(String),
}

pub struct RemoteRunner {
    incarnation: u64,
    epoch: u64,
    port: PortId,
    lease_ns: u64,
    runner: Runner,
    ends: Vec<ShardEnd>,
    /// Initial state by shard, until the runner asks for it.
    state: Vec<Vec<Event>>,
    /// Last event received by shard; nothing before it is missing.
    received: Vec<u64>,
    requests: PendingRequests,
    follows: Vec<SecurityId>,
    link: LinkState,
    connected: bool,
    /// Request for missed events that is under way while the link is up: its number and timeout.
    fetching: Option<(u64, Timestamp)>,
    out: VecDeque<(u64, RemoteRequest)>,
    generics: VecDeque<(Arc<str>, Arc<[u8]>)>,
    number: u64,
    prices: u64,
    paced: bool,
    last_beat: (u64, Vec<u64>, bool),
    last_message_at: Timestamp,
    beat_at: Timestamp,
    noted: (Timestamp, Vec<u64>),
    record: Option<EventRecord>,
    broken: Option<RunnerFailure>,
}

/// The parts of a runner, beside the welcome.
pub struct RunnerParts {
    pub incarnation: u64,
    pub reference: Arc<RefData>,
    pub host: HostSettings,
    pub state: Vec<StateItem>,
    /// Events between the last one received before and the state.
    pub missed: Vec<NumberedEvent>,
    pub record: Option<EventRecord>,
    pub seed: u64,
}

impl RemoteRunner {
    pub fn new(now: Timestamp, welcome: &Welcome, parts: RunnerParts) -> RemoteRunner {
        let Welcome { epoch, shards, port, numbers, lease_ms, heads, .. } = welcome;
        let RunnerParts { incarnation, reference, host, state, missed, record, seed } = parts;
        // The port has the same number as at the server, because orders are identified by it.
        let classes = vec![PortClass::Client; port.0 as usize + 1];
        let (mut ports, ends) = mesh(&classes, *shards, Depths::default());
        let own = ports.pop().expect("there is one for each class");
        let numbers = IdBlock { next: numbers.0, end: numbers.1 };
        let run = strategies::runner_settings(Operation::RealTime, numbers, seed);
        let mut remote = RemoteRunner {
            incarnation,
            epoch: *epoch,
            port: *port,
            lease_ns: *lease_ms as u64 * NS_PER_MS,
            runner: Runner::new(own, reference, run, vec![host]),
            ends,
            state: vec![Vec::new(); *shards as usize],
            received: heads.iter().map(|head| head.seen).collect(),
            requests: PendingRequests::default(),
            follows: Vec::new(),
            link: LinkState::Up,
            connected: true,
            fetching: None,
            out: VecDeque::new(),
            generics: VecDeque::new(),
            number: 0,
            prices: 0,
            paced: false,
            last_beat: (0, Vec::new(), false),
            last_message_at: now,
            beat_at: now,
            noted: (now, Vec::new()),
            record,
            broken: None,
        };
        remote.keep_record(|record| record.incarnation(incarnation));
        for numbered in missed {
            remote.record_event(&numbered);
            remote.deliver(now, numbered.shard, numbered.event);
        }
        for StateItem { shard, event } in state {
            if let Some(state) = remote.state.get_mut(shard.0 as usize) {
                state.push(event);
            }
        }
        remote
    }

    pub fn runner(&self) -> &Runner {
        &self.runner
    }

    pub fn is_up(&self) -> bool {
        self.link == LinkState::Up && self.connected
    }

    pub fn broken(&self) -> Option<&RunnerFailure> {
        self.broken.as_ref()
    }

    /// Returns the record, for the next runner.
    pub fn take_record(&mut self) -> (Option<EventRecord>, Vec<u64>) {
        (self.record.take(), std::mem::take(&mut self.received))
    }

    pub fn poll_request(&mut self) -> Option<(u64, RemoteRequest)> {
        self.out.pop_front()
    }

    /// Returns an event for the other strategies.
    pub fn poll_generic(&mut self) -> Option<(Arc<str>, Arc<[u8]>)> {
        self.generics.pop_front()
    }

    /// Returns when it must be polled even if nothing arrives.
    pub fn deadline(&self) -> Timestamp {
        let link = match self.link {
            LinkState::Up => self.beat_at.min(self.requests.deadline()),
            LinkState::Lost { again } => again,
            LinkState::Asking { until, .. } | LinkState::Catching { until, .. } => until,
        };
        let fetch = self.fetching.map_or(Timestamp::MAX, |(_, until)| until);
        link.min(fetch).min(self.runner.deadline())
    }

    /// Makes every strategy stop and exit.
    pub fn wind_down(&mut self, now: Timestamp) {
        self.runner.stop_all(now);
        self.poll(now);
    }

    /// Returns whether all requests are answered.
    pub fn has_left(&self) -> bool {
        !self.runner.is_waiting() && self.requests.is_empty()
    }

    pub fn incarnation(&self) -> u64 {
        self.incarnation
    }
}

/// Input.
impl RemoteRunner {
    /// Records whether the server, or the broker before it, is connected.
    pub fn set_connected(&mut self, now: Timestamp, up: bool) {
        self.connected = up;
        if !up {
            self.lose(now, "the connection is closed");
        } else if let LinkState::Lost { .. } = self.link {
            self.link = LinkState::Lost { again: now };
        }
    }

    /// Handles a message of ours that had no responder.
    pub fn handle_silence(&mut self, now: Timestamp) {
        self.lose(now, "the server is away");
    }

    pub fn handle_events(&mut self, now: Timestamp, batch: &EventBatch) {
        if batch.incarnation != self.incarnation || batch.epoch != self.epoch {
            return;
        }
        self.last_message_at = now;
        let mut lacks = false;
        for numbered in &batch.events {
            lacks |= !self.receive_event(now, numbered);
        }
        self.advance(now, &batch.heads, lacks);
    }

    fn advance(&mut self, now: Timestamp, heads: &[ShardHead], lacks: bool) {
        let lags = heads.iter().zip(&self.received).any(|(head, received)| head.last > *received);
        if lacks || lags {
            return self.fetch(now);
        }
        for (received, head) in self.received.iter_mut().zip(heads) {
            *received = head.seen.max(*received);
        }
        self.note(now);
    }

    /// Delivers an event, unless it was delivered before; returns false if an event before it is
    /// missing.
    fn receive_event(&mut self, now: Timestamp, numbered: &NumberedEvent) -> bool {
        let Some(received) = self.received.get_mut(numbered.shard.0 as usize) else { return true };
        if numbered.event.seq <= *received {
            return true;
        }
        if numbered.before > *received {
            return false;
        }
        *received = numbered.event.seq;
        self.record_event(numbered);
        if let Some(id) = remote::strategy::answers(&numbered.event) {
            self.requests.mark_answered(&id);
        }
        self.deliver(now, numbered.shard, numbered.event);
        true
    }

    fn record_event(&mut self, numbered: &NumberedEvent) {
        self.keep_record(|record| record.event(numbered));
    }

    fn keep_record(&mut self, write: impl FnOnce(&mut EventRecord) -> io::Result<()>) {
        if let Some(Err(error)) = self.record.as_mut().map(write) {
            self.broken = Some(RunnerFailure::Record(error.to_string()));
        }
    }

    fn note(&mut self, now: Timestamp) {
        if self.record.is_none() || now < self.noted.0 || self.noted.1 == self.received {
            return;
        }
        self.noted = (now.plus(NOTE_NS), self.received.clone());
        let received = self.received.clone();
        self.keep_record(|record| record.received(&received));
    }

    /// Passes an event to the runner, as its shard would.
    fn deliver(&mut self, now: Timestamp, shard: ShardId, event: Event) {
        let Some(end) = self.ends.get_mut(shard.0 as usize) else { return };
        self.requests.note(&event);
        if end.send(self.port, event).is_err() {
            self.runner.drain_events(now, EVENTS_PER_POLL_MAX);
            let sent = self.ends[shard.0 as usize].send(self.port, event);
            sent.expect("the lane was just emptied");
        }
    }

    pub fn handle_prices(&mut self, now: Timestamp, prices: &PriceBatch) {
        if prices.epoch != self.epoch || !self.is_up() {
            return;
        }
        (self.prices, self.paced) = (prices.number, prices.paced);
        for tick in &prices.ticks {
            // Two ticks of the same time are both delivered, such as a trade and the quote after
            // it.
            let known = self.runner.market().tick(tick.security);
            if known.is_none_or(|known| known.at <= tick.at) {
                self.deliver_tick(now, tick);
            }
        }
    }

    /// Passes a tick of a followed security to the runner, whose subscriptions decide which
    /// strategy receives it.
    fn deliver_tick(&mut self, now: Timestamp, tick: &Tick) {
        if !self.follows.contains(&tick.security) {
            return;
        }
        let shard = pitlane_engine::shard::shard_of(tick.security, index_u8(self.ends.len()));
        let seq = self.received[shard.0 as usize];
        self.deliver(now, shard, Event { seq, at: tick.at, body: EventKind::Tick(*tick) });
        self.runner.drain_events(now, EVENTS_PER_POLL_MAX);
    }

    pub fn handle_generic(&mut self, now: Timestamp, name: &str, body: &[u8]) {
        self.runner.handle_generic(now, name, body);
    }

    pub fn handle_reply(&mut self, now: Timestamp, number: u64, reply: RemoteReply) {
        self.last_message_at = now;
        match (self.link, reply) {
            (_, RemoteReply::Refused { text }) => self.broken = Some(RunnerFailure::Refused(text)),
            (LinkState::Asking { number: asked, .. }, RemoteReply::Welcome(welcome)) if asked == number => {
                self.epoch = welcome.epoch;
                let number = self.send(RemoteRequest::Fetch {
                    incarnation: self.incarnation,
                    received: self.received.clone(),
                });
                self.link = LinkState::Catching { number, until: now.plus(ANSWER_NS) };
            }
            (
                LinkState::Asking { number: asked, .. } | LinkState::Catching { number: asked, .. },
                RemoteReply::Gone,
            ) if asked == number => {
                self.broken = Some(RunnerFailure::Restart);
            }
            (LinkState::Catching { number: asked, .. }, RemoteReply::Missed { events, more })
                if asked == number =>
            {
                self.catch_up(now, &events, more);
            }
            (LinkState::Up, RemoteReply::Missed { events, more }) if self.is_fetch(number) => {
                self.fetching = None;
                events.iter().for_each(|numbered| _ = self.receive_event(now, numbered));
                if more {
                    self.fetch(now);
                }
            }
            (LinkState::Up, RemoteReply::Gone) if self.is_fetch(number) => {
                self.broken = Some(RunnerFailure::Restart)
            }
            (LinkState::Up, RemoteReply::UnknownSession) => {
                self.lose(now, "the server has restarted, or no longer knows this process");
                self.link = LinkState::Lost { again: now };
            }
            (_, reply) => self.handle_answer(now, number, &reply),
        }
    }

    fn is_fetch(&self, number: u64) -> bool {
        self.fetching.is_some_and(|(asked, _)| asked == number)
    }

    fn catch_up(&mut self, now: Timestamp, events: &[NumberedEvent], more: bool) {
        events.iter().for_each(|numbered| _ = self.receive_event(now, numbered));
        if more {
            let number = self.send(RemoteRequest::Fetch {
                incarnation: self.incarnation,
                received: self.received.clone(),
            });
            self.link = LinkState::Catching { number, until: now.plus(ANSWER_NS) };
            return;
        }
        tracing::info!("the connection to the server is up again");
        self.link = LinkState::Up;
        self.beat_at = now;
        for security in self.follows.clone() {
            self.requests.ask(RemoteRequest::Follow { incarnation: self.incarnation, security, on: true });
        }
        self.requests.send_again();
    }

    fn handle_answer(&mut self, now: Timestamp, number: u64, reply: &RemoteReply) {
        let answer = match reply {
            RemoteReply::Accepted => RequestOutcome::Done,
            RemoteReply::Follows { tick } => {
                // The current tick is used unless newer prices have arrived.
                if let Some(tick) = tick.filter(|tick| self.runner.market().tick(tick.security).is_none()) {
                    self.deliver_tick(now, &tick);
                }
                RequestOutcome::Done
            }
            RemoteReply::Declined { reason } => RequestOutcome::Declined(*reason),
            RemoteReply::Busy => RequestOutcome::Busy,
            RemoteReply::Welcome(_)
            | RemoteReply::Refused { .. }
            | RemoteReply::Wait { .. }
            | RemoteReply::UnknownSession
            | RemoteReply::Piece { .. }
            | RemoteReply::Missed { .. }
            | RemoteReply::Gone => return,
        };
        if let Some((command, reason)) = self.requests.handle_answer(now, number, answer) {
            self.decline(now, &command, reason);
        }
    }
}

/// Output.
impl RemoteRunner {
    /// Runs the strategy, and sends what is due.
    pub fn poll(&mut self, now: Timestamp) {
        self.runner.begin();
        // Each round answers the requests of the previous one; a strategy that never stops asking
        // continues in the next poll.
        for _ in 0..EVENTS_PER_POLL_MAX {
            let work = self.runner.drain_events(now, EVENTS_PER_POLL_MAX)
                + self.runner.poll(now)
                + self.take_commands(now);
            if work == 0 {
                break;
            }
        }
        while let Some(notice) = self.runner.poll_notice() {
            match notice {
                Notice::Generic { name, body } => self.generics.push_back((name, body)),
                Notice::Failed { reason, name, .. } => {
                    tracing::warn!(strategy = %name, %reason, "the strategy has failed and was stopped");
                    self.requests.ask(RemoteRequest::Failed {
                        incarnation: self.incarnation,
                        reason: reason.to_string(),
                    });
                }
            }
        }
        self.check_link(now);
        if self.is_up() {
            let number = &mut self.number;
            self.requests.poll(
                now,
                now.plus(ANSWER_NS),
                || {
                    *number += 1;
                    *number
                },
                &mut self.out,
            );
            self.beat(now);
        }
    }
}
