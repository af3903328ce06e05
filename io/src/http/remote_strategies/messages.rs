//! Handles letters of strategies one at a time: checks, executes and answers them.

use async_nats::Subject;
use pitlane_engine::command::{Command, CommandKind};
use pitlane_engine::id::IntId;
use pitlane_engine::reason::Reason;
use pitlane_engine::sender::{Protocol, Sender, SenderText};
use pitlane_engine::strategy::remote_protocol::{self as said, Blob, RemoteReply, RemoteRequest, Welcome};
use pitlane_engine::time::Timestamp;

use super::requests::{Request, Verdict};
use super::state::state_of;
use super::{Awaited, Inner, RemoteStrategies, count};
use crate::http::shard_client::ShardClient;

/// Bytes of a blob in one message: a broker usually accepts a megabyte.
const PIECE_BYTES: usize = 256 * 1_024;
/// Events in one reply to a request for missed events: some 60 KB.
const MISSED_MAX: usize = 256;
/// Maximum number of pending commands to shards; beyond it a process must retry.
const AWAITED_MAX: usize = 1_024;
/// Longest host name and longest reason that are accepted.
const WORDS_MAX: usize = 1_024;

/// Result of a letter that must be announced.
pub enum News {
    Nothing,
    /// A strategy has failed, with its own description.
    Failed {
        name: std::sync::Arc<str>,
        reason: String,
    },
}

impl RemoteStrategies {
    /// Handles a letter from the process of a strategy, and replies at once where possible.
    pub fn handle(
        &self,
        now: Timestamp,
        floor: &ShardClient,
        name: &str,
        bytes: &[u8],
        reply: Option<Subject>,
    ) -> News {
        count(&self.counts.letters);
        let letter = match RemoteRequest::decode(bytes) {
            Ok(letter) => letter,
            Err(misread) => {
                count(&self.counts.misread);
                self.reply(reply, &RemoteReply::Refused { text: misread.to_string() });
                return News::Nothing;
            }
        };
        let mut inner = self.inner.borrow_mut();
        let Some(at) = inner.seats.iter().position(|seat| &*seat.name == name) else { return News::Nothing };
        let mut news = News::Nothing;
        let answer = match letter {
            RemoteRequest::Hello { .. } | RemoteRequest::Resume { .. } if !floor.is_complete() => {
                Some(RemoteReply::Wait { text: "the server is starting".to_string() })
            }
            RemoteRequest::Hello { life, host, heard } => {
                Some(inner.welcome(at, life, cut(host), &heard, now, floor))
            }
            RemoteRequest::Resume { life, heard } => Some(inner.resume(at, life, &heard, now, floor)),
            RemoteRequest::Bye { life } => {
                if inner.seats[at].touch(life, now) {
                    inner.seats[at].leave();
                    inner.unfollow_all(at);
                }
                Some(RemoteReply::Accepted)
            }
            letter if !inner.seats[at].touch(life_of(&letter), now) => Some(RemoteReply::UnknownSession),
            RemoteRequest::Piece { of, at: from, .. } => Some(inner.piece(at, of, from as usize, floor)),
            RemoteRequest::Fetch { heard, .. } => Some(inner.missed(at, &heard)),
            RemoteRequest::Follow { security, on, .. } => Some(inner.follow(at, security, on, floor)),
            RemoteRequest::Heartbeat { prices, heard, idle, .. } => {
                let shards = floor.shards() as usize;
                let seat = &mut inner.seats[at];
                (seat.prices, seat.idle) = (prices, idle);
                seat.heard = believed(&heard, shards);
                Some(RemoteReply::Accepted)
            }
            RemoteRequest::Failed { reason, .. } => {
                news = News::Failed { name: inner.seats[at].name.clone(), reason: cut(reason) };
                Some(RemoteReply::Accepted)
            }
            RemoteRequest::Command { command, .. } => inner.command(at, command, reply.as_ref(), floor),
        };
        drop(inner);
        if let Some(answer) = answer {
            self.reply(reply, &answer);
        }
        news
    }
}

fn life_of(letter: &RemoteRequest) -> u64 {
    match *letter {
        RemoteRequest::Hello { life, .. }
        | RemoteRequest::Resume { life, .. }
        | RemoteRequest::Piece { life, .. }
        | RemoteRequest::Fetch { life, .. }
        | RemoteRequest::Follow { life, .. }
        | RemoteRequest::Command { life, .. }
        | RemoteRequest::Heartbeat { life, .. }
        | RemoteRequest::Failed { life, .. }
        | RemoteRequest::Bye { life } => life,
    }
}

/// Truncates a text of a process to the accepted length.
fn cut(mut words: String) -> String {
    let mut end = words.len().min(WORDS_MAX);
    while !words.is_char_boundary(end) {
        end -= 1;
    }
    words.truncate(end);
    words
}

/// Returns the sequence numbers that a process reports, if they are plausible: one for each shard.
fn believed(heard: &[u64], shards: usize) -> Vec<u64> {
    if heard.len() == shards { heard.to_vec() } else { Vec::new() }
}

impl Inner {
    fn welcome(
        &mut self,
        at: usize,
        life: u64,
        host: String,
        heard: &[u64],
        now: Timestamp,
        floor: &ShardClient,
    ) -> RemoteReply {
        if !self.seats[at].is_free_for(life) {
            return RemoteReply::Wait { text: self.seats[at].taken_words() };
        }
        let Some(numbers) = self.new_numbers() else {
            let words = "no numbers for ids are left in this life of the server".to_string();
            return RemoteReply::Refused { text: words };
        };
        self.unfollow_all(at);
        let source = self.seats[at].source;
        let state = said::encode_state(&state_of(&floor.view(), source, floor.shards()));
        let reference_bytes = self.reference_image(floor).len() as u32;
        let (epoch, port) = (self.epoch, self.port);
        let lease_ms = (self.lease_ns / pitlane_engine::time::NS_PER_MS) as u32;
        let seat = &mut self.seats[at];
        seat.sit_down(life, now);
        seat.begin_anew();
        (seat.host, seat.state, seat.prices) = (host, state, 0);
        seat.heard = believed(heard, floor.shards() as usize);
        tracing::info!(strategy = %seat.name, host = %seat.host, "the process of a strategy has come");
        RemoteReply::Welcome(Box::new(Welcome {
            epoch,
            shards: floor.shards(),
            port,
            strategy: seat.strategy(),
            numbers,
            lease_ms,
            heads: seat.told.heads(&self.seen),
            complete: seat.told.covers(heard),
            reference_bytes,
            state_bytes: seat.state.len() as u32,
            section: seat.section.clone(),
        }))
    }

    /// Lets the same process continue with its state. It follows no security until it asks again.
    fn resume(
        &mut self,
        at: usize,
        life: u64,
        heard: &[u64],
        now: Timestamp,
        floor: &ShardClient,
    ) -> RemoteReply {
        if !self.seats[at].is_free_for(life) || !self.seats[at].told.covers(heard) {
            return RemoteReply::Gone;
        }
        self.unfollow_all(at);
        let (epoch, port) = (self.epoch, self.port);
        let lease_ms = (self.lease_ns / pitlane_engine::time::NS_PER_MS) as u32;
        let seat = &mut self.seats[at];
        seat.sit_down(life, now);
        (seat.prices, seat.heard) = (0, heard.to_vec());
        tracing::info!(strategy = %seat.name, "the process of a strategy is back");
        RemoteReply::Welcome(Box::new(Welcome {
            epoch,
            shards: floor.shards(),
            port,
            strategy: seat.strategy(),
            numbers: (0, 0),
            lease_ms,
            heads: seat.told.heads(&self.seen),
            complete: true,
            reference_bytes: 0,
            state_bytes: 0,
            section: seat.section.clone(),
        }))
    }

    fn reference_image(&mut self, floor: &ShardClient) -> bytes::Bytes {
        let reference = floor.reference();
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

    fn piece(&mut self, at: usize, of: Blob, from: usize, floor: &ShardClient) -> RemoteReply {
        let reference = self.reference_image(floor);
        let whole: &[u8] = match of {
            Blob::Reference => &reference,
            Blob::State => &self.seats[at].state,
        };
        let rest = whole.get(from..).unwrap_or_default();
        RemoteReply::Piece { at: from as u32, bytes: rest[..rest.len().min(PIECE_BYTES)].to_vec() }
    }

    fn missed(&self, at: usize, heard: &[u64]) -> RemoteReply {
        let told = &self.seats[at].told;
        if !told.covers(heard) {
            return RemoteReply::Gone;
        }
        let (events, more) = told.after(heard, MISSED_MAX);
        RemoteReply::Missed { events, more }
    }

    fn follow(
        &mut self,
        at: usize,
        security: pitlane_engine::id::SecurityId,
        on: bool,
        floor: &ShardClient,
    ) -> RemoteReply {
        if floor.reference().security(security).is_none() {
            return RemoteReply::Declined { reason: Reason::UnknownSecurity };
        }
        let follows = &mut self.seats[at].follows;
        let changes = if on { follows.insert(security) } else { follows.remove(&security) };
        if changes {
            self.board.follow(security, on);
        }
        let view = floor.view();
        let is_quoted = view.subscribers(security) > 0;
        let tick = view.tick(security).filter(|tick| on && is_quoted && tick.at > Timestamp::ZERO);
        RemoteReply::Follows { tick: tick.copied() }
    }

    /// Sends a command in the strategy's name; returns `None` if the reply comes later.
    fn command(
        &mut self,
        at: usize,
        command: Command,
        reply: Option<&Subject>,
        floor: &ShardClient,
    ) -> Option<RemoteReply> {
        let seat = &mut self.seats[at];
        let (source, strategy) = (seat.source, seat.strategy());
        let declined = |reason| Some(RemoteReply::Declined { reason });
        match command.body {
            CommandKind::Phase { strategy: meant, .. } | CommandKind::Subscribe { strategy: meant, .. } => {
                if meant != strategy {
                    return declined(Reason::UnknownStrategy);
                }
                return self.administer(Command { source, ..command }, reply, floor);
            }
            CommandKind::Submit { terms, .. } if terms.strategy != strategy => {
                return declined(Reason::UnknownStrategy);
            }
            CommandKind::Submit { .. } | CommandKind::Modify { .. } | CommandKind::Cancel { .. } => {}
            _ => return declined(Reason::UnknownScope),
        }
        let (id, request) = Request::of(&command.body)?;
        if id.is_none() {
            return declined(Reason::BadId);
        }
        match seat.asked.judge(&id, request, reply) {
            Verdict::New if seat.asked.is_full() => return Some(RemoteReply::Busy),
            Verdict::New => {}
            Verdict::UnderWay => return None,
            Verdict::Answered => return Some(RemoteReply::Accepted),
            Verdict::Another => return declined(Reason::DuplicateId),
        }
        match request {
            // From an earlier start whose journal is no longer read.
            Request::Submit(_) if is_known(floor, source, &id) => return Some(RemoteReply::Accepted),
            Request::Submit(_) => {}
            Request::About(order) => {
                if floor.view().order(order).is_none_or(|order| order.source != source) {
                    return declined(Reason::UnknownOrder);
                }
            }
        }
        let sender = floor.register_sender(Sender {
            protocol: Protocol::Strategy,
            login: SenderText::new(&seat.name),
            session: SenderText::new(&seat.host),
            ..Sender::default()
        });
        match floor.forward(Command { source, token: 0, sender, body: command.body }) {
            Ok(_) => {
                seat.asked.sent(id, request, reply.cloned());
                None
            }
            Err(_) => Some(RemoteReply::Busy),
        }
    }

    /// Sends phases and subscriptions, which are answered when every shard has executed them.
    fn administer(
        &mut self,
        command: Command,
        reply: Option<&Subject>,
        floor: &ShardClient,
    ) -> Option<RemoteReply> {
        if let CommandKind::Subscribe { security, .. } = command.body
            && floor.reference().security(security).is_none()
        {
            return Some(RemoteReply::Declined { reason: Reason::UnknownSecurity });
        }
        if self.done.len() >= AWAITED_MAX {
            return Some(RemoteReply::Busy);
        }
        self.token = self.token.wrapping_add(1).max(1);
        let token = self.token;
        match floor.forward(Command { token, ..command }) {
            Ok(shards) => {
                let reason = Reason::None;
                self.done.insert(token, Awaited { left: shards, reason, reply: reply.cloned() });
                None
            }
            Err(_) => Some(RemoteReply::Busy),
        }
    }

    pub(super) fn unfollow_all(&mut self, at: usize) {
        for security in std::mem::take(&mut self.seats[at].follows) {
            self.board.follow(security, false);
        }
    }
}

fn is_known(floor: &ShardClient, source: pitlane_engine::id::Source, id: &IntId) -> bool {
    floor.view().orders_with_id(id).iter().any(|order| order.source == source)
}
