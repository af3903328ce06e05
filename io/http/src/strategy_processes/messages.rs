//! Handles requests of strategies one at a time: checks, executes and answers them.

use pitlane_engine::command::{Command, CommandKind};
use pitlane_engine::id::IntId;
use pitlane_engine::index::index_u32;
use pitlane_engine::reason::Reason;
use pitlane_engine::sender::{Protocol, Sender, SenderText};
use pitlane_engine::time::Timestamp;
use pitlane_protocols::remote;
use pitlane_protocols::remote::strategy::{Blob, RemoteReply, RemoteRequest, Welcome};

use crate::remote_strategies::{
    PendingReply, RemoteOrderRequest, RemoteState, RemoteStrategies, ReplyAddress, RequestVerdict, count,
};
use crate::shard_client::ShardClient;
use crate::strategy_snapshot::state_of;

/// Bytes of a blob in one message: a broker usually accepts a megabyte.
const PIECE_BYTES: usize = 256 * 1_024;
/// Events in one reply to a request for missed events: some 60 KB.
const MISSED_MAX: usize = 256;
/// Maximum number of pending commands to shards; beyond it a process must retry.
const AWAITED_MAX: usize = 1_024;
/// Longest host name and longest reason that are accepted.
const TEXT_BYTES_MAX: usize = 1_024;

/// Result of a request that must be announced.
pub(crate) enum Announcement {
    Nothing,
    /// A strategy has failed, with its own description.
    Failed {
        name: std::sync::Arc<str>,
        reason: String,
    },
}

/// Sender of a request.
pub(crate) struct RequestSender {
    /// Its connection, where there is no broker.
    pub connection: Option<u64>,
    /// Where the reply goes; `None`: the sender expects none.
    pub reply: Option<ReplyAddress>,
}

impl RemoteStrategies {
    /// Handles a request from the process of a strategy, and replies at once where possible.
    pub(crate) fn handle(
        &self,
        now: Timestamp,
        shard_client: &ShardClient,
        name: &str,
        bytes: &[u8],
        sender: RequestSender,
    ) -> Announcement {
        count(&self.counts.messages);
        self.now.set(now);
        let RequestSender { connection, reply } = sender;
        let request = match RemoteRequest::decode(bytes) {
            Ok(request) => request,
            Err(misread) => {
                count(&self.counts.decode_errors);
                self.reply(reply, &RemoteReply::Refused { text: misread.to_string() });
                return Announcement::Nothing;
            }
        };
        let mut inner = self.inner.borrow_mut();
        let Some(at) = inner.slots.iter().position(|slot| &*slot.name == name) else {
            return Announcement::Nothing;
        };
        let mut announcement = Announcement::Nothing;
        let answer = match request {
            RemoteRequest::Hello { .. } | RemoteRequest::Resume { .. } if !shard_client.is_complete() => {
                Some(RemoteReply::Wait { text: "the server is starting".to_string() })
            }
            RemoteRequest::Hello { incarnation, host, received } => {
                Some(inner.welcome(at, incarnation, truncated(host), &received, now, shard_client))
            }
            RemoteRequest::Resume { incarnation, received } => {
                Some(inner.resume(at, incarnation, &received, now, shard_client))
            }
            RemoteRequest::Bye { incarnation } => {
                if inner.slots[at].record_message(incarnation, now) {
                    inner.slots[at].detach();
                    inner.unfollow_all(at);
                }
                Some(RemoteReply::Accepted)
            }
            request if !inner.slots[at].record_message(incarnation_of(&request), now) => {
                Some(RemoteReply::UnknownSession)
            }
            RemoteRequest::Piece { of, at: from, .. } => Some(inner.piece(at, of, from, shard_client)),
            RemoteRequest::Fetch { received, .. } => Some(inner.missed(at, &received)),
            RemoteRequest::Follow { security, on, .. } => Some(inner.follow(at, security, on, shard_client)),
            RemoteRequest::Heartbeat { prices, received, idle, .. } => {
                let shards = shard_client.shards() as usize;
                let slot = &mut inner.slots[at];
                (slot.prices, slot.idle) = (prices, idle);
                slot.received = plausible(&received, shards);
                Some(RemoteReply::Accepted)
            }
            RemoteRequest::Failed { reason, .. } => {
                announcement =
                    Announcement::Failed { name: inner.slots[at].name.clone(), reason: truncated(reason) };
                Some(RemoteReply::Accepted)
            }
            RemoteRequest::Command { command, .. } => {
                inner.command(at, command, reply.as_ref(), shard_client)
            }
        };
        if let Some(RemoteReply::Welcome(_)) = &answer {
            inner.attach_connection(at, connection);
        }
        drop(inner);
        if let Some(answer) = answer {
            self.reply(reply, &answer);
        }
        announcement
    }
}

fn incarnation_of(request: &RemoteRequest) -> u64 {
    match *request {
        RemoteRequest::Hello { incarnation, .. }
        | RemoteRequest::Resume { incarnation, .. }
        | RemoteRequest::Piece { incarnation, .. }
        | RemoteRequest::Fetch { incarnation, .. }
        | RemoteRequest::Follow { incarnation, .. }
        | RemoteRequest::Command { incarnation, .. }
        | RemoteRequest::Heartbeat { incarnation, .. }
        | RemoteRequest::Failed { incarnation, .. }
        | RemoteRequest::Bye { incarnation } => incarnation,
    }
}

/// Truncates a text of a process to the accepted length.
fn truncated(mut text: String) -> String {
    let mut end = text.len().min(TEXT_BYTES_MAX);
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    text.truncate(end);
    text
}

/// Returns the sequence numbers that a process reports, if they are plausible: one for each shard.
fn plausible(received: &[u64], shards: usize) -> Vec<u64> {
    if received.len() == shards { received.to_vec() } else { Vec::new() }
}

impl RemoteState {
    fn welcome(
        &mut self,
        at: usize,
        incarnation: u64,
        host: String,
        received: &[u64],
        now: Timestamp,
        shard_client: &ShardClient,
    ) -> RemoteReply {
        if !self.slots[at].is_free_for(incarnation) {
            return RemoteReply::Wait { text: self.slots[at].taken_text() };
        }
        let Some(numbers) = self.new_numbers() else {
            let text = "no numbers for ids are left until the next start of the server".to_string();
            return RemoteReply::Refused { text };
        };
        self.unfollow_all(at);
        let source = self.slots[at].source;
        let state =
            remote::strategy::encode_state(&state_of(&shard_client.view(), source, shard_client.shards()));
        let reference_bytes = index_u32(self.reference_image(shard_client).len());
        let (epoch, port) = (self.epoch, self.port);
        let lease_ms = self.lease_ms();
        let slot = &mut self.slots[at];
        slot.attach(incarnation, now);
        slot.clear_silence();
        (slot.host, slot.state, slot.prices) = (host, state, 0);
        slot.received = plausible(received, shard_client.shards() as usize);
        tracing::info!(strategy = %slot.name, host = %slot.host, "the process of a strategy is connected");
        RemoteReply::Welcome(Box::new(Welcome {
            epoch,
            shards: shard_client.shards(),
            port,
            strategy: slot.strategy(),
            numbers,
            lease_ms,
            heads: slot.history.heads(&self.seen),
            complete: slot.history.covers(received),
            reference_bytes,
            state_bytes: index_u32(slot.state.len()),
            section: slot.section.clone(),
        }))
    }

    /// Lets the same process continue with its state. It follows no security until it asks again.
    fn resume(
        &mut self,
        at: usize,
        incarnation: u64,
        received: &[u64],
        now: Timestamp,
        shard_client: &ShardClient,
    ) -> RemoteReply {
        if !self.slots[at].is_free_for(incarnation) || !self.slots[at].history.covers(received) {
            return RemoteReply::Gone;
        }
        self.unfollow_all(at);
        let (epoch, port) = (self.epoch, self.port);
        let lease_ms = self.lease_ms();
        let slot = &mut self.slots[at];
        slot.attach(incarnation, now);
        (slot.prices, slot.received) = (0, received.to_vec());
        slot.handle_resume(shard_client.view().phase(slot.strategy()).unwrap_or_default());
        tracing::info!(strategy = %slot.name, "the process of a strategy is back");
        RemoteReply::Welcome(Box::new(Welcome {
            epoch,
            shards: shard_client.shards(),
            port,
            strategy: slot.strategy(),
            numbers: (0, 0),
            lease_ms,
            heads: slot.history.heads(&self.seen),
            complete: true,
            reference_bytes: 0,
            state_bytes: 0,
            section: slot.section.clone(),
        }))
    }

    fn lease_ms(&self) -> u32 {
        u32::try_from(self.lease_ns / pitlane_engine::time::NS_PER_MS).unwrap_or(u32::MAX)
    }

    fn reference_image(&mut self, shard_client: &ShardClient) -> bytes::Bytes {
        let reference = shard_client.reference();
        match &self.reference {
            Some((known, bytes)) if std::sync::Arc::ptr_eq(known, &reference) => bytes.clone(),
            _ => {
                let mut bytes = Vec::new();
                reference.save(&mut bytes);
                let bytes = bytes::Bytes::from(bytes);
                self.reference = Some((reference, bytes.clone()));
                bytes
            }
        }
    }

    fn piece(&mut self, at: usize, of: Blob, from: u32, shard_client: &ShardClient) -> RemoteReply {
        let reference = self.reference_image(shard_client);
        let whole: &[u8] = match of {
            Blob::Reference => &reference,
            Blob::State => &self.slots[at].state,
        };
        let rest = whole.get(from as usize..).unwrap_or_default();
        RemoteReply::Piece { at: from, bytes: rest[..rest.len().min(PIECE_BYTES)].to_vec() }
    }

    fn missed(&self, at: usize, received: &[u64]) -> RemoteReply {
        let history = &self.slots[at].history;
        if !history.covers(received) {
            return RemoteReply::Gone;
        }
        let (events, more) = history.after(received, MISSED_MAX);
        RemoteReply::Missed { events, more }
    }

    fn follow(
        &mut self,
        at: usize,
        security: pitlane_engine::id::SecurityId,
        on: bool,
        shard_client: &ShardClient,
    ) -> RemoteReply {
        if shard_client.reference().security(security).is_none() {
            return RemoteReply::Declined { reason: Reason::UnknownSecurity };
        }
        let follows = &mut self.slots[at].follows;
        let changes = if on { follows.insert(security) } else { follows.remove(&security) };
        if changes {
            self.prices.follow(at, security, on);
        }
        let view = shard_client.view();
        let is_quoted = view.subscribers(security) > 0;
        let tick = view.tick(security).filter(|tick| on && is_quoted && tick.at > Timestamp::ZERO);
        RemoteReply::Follows { tick: tick.copied() }
    }

    /// Sends a command in the strategy's name; returns `None` if the reply comes later.
    fn command(
        &mut self,
        at: usize,
        command: Command,
        reply: Option<&ReplyAddress>,
        shard_client: &ShardClient,
    ) -> Option<RemoteReply> {
        let slot = &mut self.slots[at];
        let (source, strategy) = (slot.source, slot.strategy());
        let declined = |reason| Some(RemoteReply::Declined { reason });
        if let CommandKind::Phase { strategy: named, .. } | CommandKind::Subscribe { strategy: named, .. } =
            command.body
        {
            if named != strategy {
                return declined(Reason::UnknownStrategy);
            }
            return self.administer(Command { source, ..command }, reply, shard_client);
        }
        if matches!(command.body, CommandKind::Submit { terms, .. } if terms.strategy != strategy) {
            return declined(Reason::UnknownStrategy);
        }
        let Some((id, request)) = RemoteOrderRequest::of(&command.body) else {
            return declined(Reason::UnknownScope);
        };
        if id.is_none() {
            return declined(Reason::BadId);
        }
        match slot.requests.classify(&id, request, reply) {
            RequestVerdict::New if slot.requests.is_full() => return Some(RemoteReply::Busy),
            RequestVerdict::New => {}
            RequestVerdict::InProgress => return None,
            RequestVerdict::Answered => return Some(RemoteReply::Accepted),
            RequestVerdict::Another => return declined(Reason::DuplicateId),
        }
        match request {
            // From an earlier start whose journal is no longer read.
            RemoteOrderRequest::Submit(_) if is_known(shard_client, source, &id) => {
                return Some(RemoteReply::Accepted);
            }
            RemoteOrderRequest::Submit(_) => {}
            RemoteOrderRequest::About(order) => {
                if shard_client.view().order(order).is_none_or(|order| order.source != source) {
                    return declined(Reason::UnknownOrder);
                }
            }
        }
        let sender = shard_client.register_sender(Sender {
            protocol: Protocol::Strategy,
            login: SenderText::new(&slot.name),
            session: SenderText::new(&slot.host),
            ..Sender::default()
        });
        match shard_client.forward(Command { source, token: 0, sender, body: command.body }) {
            Ok(_) => {
                slot.requests.sent(id, request, reply.cloned());
                None
            }
            Err(_) => Some(RemoteReply::Busy),
        }
    }

    /// Sends phases and subscriptions, which are answered when every shard has executed them.
    fn administer(
        &mut self,
        command: Command,
        reply: Option<&ReplyAddress>,
        shard_client: &ShardClient,
    ) -> Option<RemoteReply> {
        if let CommandKind::Subscribe { security, .. } = command.body
            && shard_client.reference().security(security).is_none()
        {
            return Some(RemoteReply::Declined { reason: Reason::UnknownSecurity });
        }
        if self.done.len() >= AWAITED_MAX {
            return Some(RemoteReply::Busy);
        }
        self.token = self.token.wrapping_add(1).max(1);
        let token = self.token;
        match shard_client.forward(Command { token, ..command }) {
            Ok(shards) => {
                let reason = Reason::None;
                self.done.insert(token, PendingReply { left: shards, reason, reply: reply.cloned() });
                None
            }
            Err(_) => Some(RemoteReply::Busy),
        }
    }
}

fn is_known(shard_client: &ShardClient, source: pitlane_engine::id::Source, id: &IntId) -> bool {
    shard_client.view().orders_with_id(id).iter().any(|order| order.source == source)
}
