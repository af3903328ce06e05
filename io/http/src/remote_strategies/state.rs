//! State of all remote strategies, and their output: replies, event batches, phases and prices.

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

use async_nats::Subject;
use bytes::Bytes;
use pitlane_cluster::nats::generic::Generic;
use pitlane_cluster::nats::subjects::Subjects;
use pitlane_engine::command::StrategyPhase;
use pitlane_engine::desk::IdBlock;
use pitlane_engine::event::{Event, EventKind, Tick};
use pitlane_engine::id::{IntId, PortId, ShardId, Source, StrategyId};
use pitlane_engine::reason::Reason;
use pitlane_engine::refdata::RefData;
use pitlane_market_data::pace::Pace;
use pitlane_protocols::codes::WireName;
use pitlane_protocols::remote;
use pitlane_protocols::remote::link::ServerFrame;
use pitlane_protocols::remote::strategy::{EventBatch, PriceBatch, RemoteReply};
use tokio::sync::Notify;

use super::connections::{LinkConnections, ReplyAddress};
use super::generic_log::GenericLog;
use super::prices::PriceOutputs;
use super::slot::StrategySlot;

/// Events in one message: some 15 KB.
const EVENTS_PER_BATCH_MAX: usize = 64;
/// Maximum number of replies waiting to be sent. Replies beyond it are dropped, and the process
/// asks again.
pub(super) const REPLIES_MAX: usize = 4_096;
/// Maximum number of events between strategies waiting to be sent; beyond it the newest are dropped
/// and counted. The same bound holds for phases, of which the oldest are dropped.
pub(super) const GENERICS_MAX: usize = 1_024;
/// Size of the block of ids given to one process. This server takes ids for its own cancels one at
/// a time from the same numbers.
const NUMBERS_PER_PROCESS: u64 = 1 << 28;
/// First character of the ids of cancels in the name of a strategy whose process is gone.
const PREFIX: u8 = b'o';

#[derive(Debug)]
pub(crate) struct RemoteState {
    pub epoch: u64,
    pub port: PortId,
    pub slots: Vec<StrategySlot>,
    pub prices: PriceOutputs,
    /// By shard: sequence number of the last event of all.
    pub seen: Vec<u64>,
    pub(super) replies: VecDeque<(Subject, Bytes)>,
    pub(super) generics: VecDeque<Generic>,
    pub connections: LinkConnections,
    /// Events between strategies that this server keeps; `None`: the broker keeps them.
    pub generic_log: Option<GenericLog>,
    /// Phases to be sent, as JSON.
    pub(super) phases: VecDeque<Bytes>,
    /// Pending commands to all shards: by token, how many responses are missing and where to reply.
    pub done: BTreeMap<u32, PendingReply>,
    pub token: u32,
    /// Number of replies, events and phases that were not sent.
    pub(super) dropped: u64,
    pub(super) numbers: IdBlock,
    /// The encoded reference data, made when it is first requested.
    pub reference: Option<(Arc<RefData>, Bytes)>,
    pub lease_ns: u64,
    pub pace: Option<Arc<Pace>>,
    /// Time of the last row of a paced market that was received.
    pub last_row_at: u64,
    /// Number of prices and events that had a receiver.
    pub deliveries: u64,
}

#[derive(Debug)]
pub(crate) struct PendingReply {
    pub left: u8,
    pub reason: Reason,
    pub reply: Option<ReplyAddress>,
}

impl RemoteState {
    /// Records the sequence number of an event; returns whether it is new.
    pub(crate) fn record_seen(&mut self, shard: ShardId, event: &Event) -> bool {
        let seen = &mut self.seen[shard.0 as usize];
        let is_new = event.seq > *seen;
        *seen = event.seq.max(*seen);
        is_new
    }

    /// Takes a price, and wakes the task that sends it.
    pub(super) fn apply_tick(&mut self, tick: &Tick, work: &Notify) {
        let RemoteState { prices, slots, connections, deliveries, .. } = self;
        prices.apply(tick, |at| {
            *deliveries += 1;
            match slots.get(at).and_then(|slot| slot.connection) {
                Some(connection) => connections.wake(connection),
                None => work.notify_one(),
            }
        });
    }

    /// Handles an event that is no tick. Returns whether there is something to send.
    pub(crate) fn handle_event(&mut self, shard: ShardId, event: &Event) -> bool {
        if let EventKind::Done { source, token, reason } = &event.body
            && source.port == self.port
            && remote::strategy::is_of_strategy(event)
        {
            self.record_seen(shard, event);
            return self.handle_done(*token, *reason);
        }
        // An event that was not stored has no number; the sender of the request is answered
        // directly.
        if let EventKind::Order(order) = &event.body
            && order.reason == Reason::StorageFailed
        {
            return self.decline(order.source, &order.id, order.reason);
        }
        if let EventKind::Refused(refusal) = &event.body
            && refusal.reason == Reason::StorageFailed
        {
            return self.decline(refusal.source, &refusal.request_id, refusal.reason);
        }
        // A snapshot item has the number of the last event, so it is not new.
        if !self.record_seen(shard, event) {
            return false;
        }
        let mut has_work = false;
        for at in 0..self.slots.len() {
            let slot = &mut self.slots[at];
            if !remote::strategy::concerns(slot.source, event) {
                continue;
            }
            slot.history.add(shard, event);
            has_work = true;
            if let Some(reply) = slot.requests.handle_event(event) {
                self.answer(reply, &RemoteReply::Accepted);
            }
        }
        if let EventKind::Phase { strategy, phase } = event.body
            && shard == ShardId(0)
        {
            self.slots
                .iter_mut()
                .filter(|slot| slot.strategy() == strategy)
                .for_each(|slot| slot.handle_phase(phase));
            self.queue_phase(strategy, phase);
        }
        has_work
    }

    pub(crate) fn queue_phase(&mut self, strategy: StrategyId, phase: StrategyPhase) {
        // Only clients of a broker read them.
        if self.generic_log.is_some() {
            return;
        }
        let Some(slot) = self.slots.iter().find(|slot| slot.strategy() == strategy) else { return };
        let text = WireName::wire_name(phase);
        let payload = serde_json::json!({ "strategyName": &*slot.name, "phase": text });
        self.phases.push_back(payload.to_string().into());
        if self.phases.len() > GENERICS_MAX {
            self.phases.pop_front();
            self.dropped += 1;
        }
    }

    fn handle_done(&mut self, token: u32, reason: Reason) -> bool {
        let Some(awaited) = self.done.get_mut(&token) else { return false };
        if awaited.reason == Reason::None {
            awaited.reason = reason;
        }
        awaited.left = awaited.left.saturating_sub(1);
        if awaited.left > 0 {
            return false;
        }
        let Some(PendingReply { reason, reply: Some(reply), .. }) = self.done.remove(&token) else {
            return false;
        };
        let is_accepted = reason == Reason::None;
        let answer = if is_accepted { RemoteReply::Accepted } else { RemoteReply::Declined { reason } };
        self.answer(reply, &answer);
        true
    }

    fn decline(&mut self, source: Source, id: &IntId, reason: Reason) -> bool {
        let Some(slot) = self.slots.iter_mut().find(|slot| slot.source == source) else { return false };
        let Some(reply) = slot.requests.forget(id) else { return false };
        self.answer(reply, &RemoteReply::Declined { reason });
        true
    }

    pub(crate) fn answer(&mut self, to: ReplyAddress, reply: &RemoteReply) {
        match to {
            ReplyAddress::Subject(to) if self.replies.len() < REPLIES_MAX => {
                self.replies.push_back((to, reply.encode().into()));
            }
            ReplyAddress::Subject(_) => self.dropped += 1,
            ReplyAddress::Connection { connection, number } => {
                self.connections
                    .push_frame(connection, &ServerFrame::Reply { number, reply: reply.encode() });
            }
        }
    }

    pub(crate) fn new_id(&mut self) -> Option<IntId> {
        if self.numbers.next >= self.numbers.end {
            return None;
        }
        self.numbers.next += 1;
        Some(IntId::numbered(PREFIX, self.numbers.next - 1))
    }

    /// Allocates numbers for the ids of one process.
    pub(crate) fn new_numbers(&mut self) -> Option<(u64, u64)> {
        let from = self.numbers.next;
        let end = from.checked_add(NUMBERS_PER_PROCESS).filter(|end| *end <= self.numbers.end)?;
        self.numbers.next = end;
        Some((from, end))
    }

    /// Returns the next events of any strategy, with their subject.
    pub(crate) fn next_event_batch(&mut self, subjects: &Subjects) -> Option<(Subject, Bytes)> {
        let at = self.slots.iter().position(StrategySlot::has_output)?;
        let batch = self.event_batch(at)?;
        Some((subjects.events(&self.slots[at].name).into(), batch.encode().into()))
    }

    /// Returns the next events of a strategy whose process is present.
    pub(crate) fn event_batch(&mut self, at: usize) -> Option<EventBatch> {
        let RemoteState { slots, seen, epoch, .. } = self;
        let slot = slots.get_mut(at).filter(|slot| slot.has_output())?;
        let incarnation = slot.incarnation()?;
        let (events, place) = slot.history.since(slot.sent_position, EVENTS_PER_BATCH_MAX);
        slot.sent_position = place;
        slot.heartbeat_due = false;
        // The heads go with the last of the events only: earlier, the remaining ones would look
        // lost.
        let is_all = slot.sent_position == slot.history.end();
        let heads = if is_all { slot.history.heads(seen) } else { Vec::new() };
        Some(EventBatch { epoch: *epoch, incarnation, events, heads })
    }

    /// Returns the next prices for a strategy, or at a broker for all.
    pub(crate) fn next_prices(&mut self, at: usize) -> Option<PriceBatch> {
        // Prices and events travel separately. A shard publishes a price after the event that
        // caused it; to preserve that order in a paced market, prices wait until events have
        // arrived.
        let is_behind = |slot: &StrategySlot| slot.is_present() && !slot.has_received_all();
        if self.pace.is_some() && self.slots.iter().any(is_behind) {
            return None;
        }
        let (number, ticks) = self.prices.take(at)?;
        Some(PriceBatch { epoch: self.epoch, number, paced: self.pace.is_some(), ticks })
    }

    /// Drops the output while the broker is away: numbered events are requested later, the rest is
    /// outdated by then.
    pub(crate) fn clear_output(&mut self) {
        self.replies.clear();
        self.phases.clear();
        self.prices.clear();
        self.slots.iter_mut().for_each(|slot| slot.sent_position = slot.history.end());
    }

    /// Ends all price subscriptions of a strategy.
    pub(crate) fn unfollow_all(&mut self, at: usize) {
        for security in std::mem::take(&mut self.slots[at].follows) {
            self.prices.follow(at, security, false);
        }
        self.prices.restart(at);
    }
}
