//! Strategies that run in processes of their own, as this server sees them: which processes are
//! connected, the events each receives and its requests. Module `wire` connects to their broker.
//!
//! ```text
//! shards ─ Event ─► ShardClient ─► handle_event ─► StrategySlot: EventHistory ─┐
//!                                        └───────► PriceTable ─────────────────┤
//!                    ShardClient ◄─ handle ◄─ RemoteRequest                    └─► take ─► wire
//!                                     └─► replies ───────────────────────────────────┘
//!
//! wire ─► broker: events.<strategy>, market, replies
//! ```
//!
//! **Once.** A request is identified by its id. A request in progress is not sent again, an
//! answered one gets the same answer, and after a restart the journal has both. A request is
//! answered when its event was received, and so when it is in the journal.
//!
//! **All.** Events have the sequence numbers of their shards. An event is not available if it is no
//! longer kept in memory, or if it precedes the snapshot from which the journal was replayed at the
//! start. A process that lacks such an event starts again from the state.
//!
//! **Failure.** A process that is silent for a lease has its strategy stopped. While the broker is
//! away no process can be received, and none counts as silent. A process that returns finds its
//! strategy stopped, or the strategy is started again: see `watch`.

mod requests;
mod permissions;
mod messages;
mod prices;
mod slot;
mod state;
mod history;
#[cfg(test)]
mod tests;
mod watch;
pub mod wire;

use std::cell::{Cell, RefCell};
use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

use async_nats::Subject;
use bytes::Bytes;
use pitlane_cluster::nats::generic::Generic;
use pitlane_cluster::nats::subjects::Subjects;
use pitlane_config::{Config, NatsConfig, RemoteStrategiesConfig, StrategyConfig};
use pitlane_engine::command::StrategyPhase;
use pitlane_engine::desk::IdBlock;
use pitlane_engine::event::{Event, EventKind};
use pitlane_engine::id::{IntId, PortId, ShardId, StrategyId};
use pitlane_engine::reason::Reason;
use pitlane_engine::refdata::RefData;
use pitlane_engine::strategy::remote_protocol::{self, EventBatch, PriceBatch, RemoteReply, StrategySetup};
use pitlane_engine::time::{NS_PER_MS, Timestamp};
use pitlane_journal::PastEvents;
use pitlane_market_data::pace::Pace;
use tokio::sync::Notify;

use self::history::EventHistory;
use self::permissions::PermissionLog;
use self::prices::PriceTable;
use self::slot::StrategySlot;
pub use self::state::terms_of;
use super::shard_client::ShardClient;

/// Events in one message: some 15 KB.
const EVENTS_PER_BATCH_MAX: usize = 64;
/// Maximum number of replies waiting to be sent. Replies beyond it are dropped, and the process
/// asks again.
const REPLIES_MAX: usize = 4_096;
/// Maximum number of events between strategies waiting to be sent; beyond it the newest are dropped
/// and counted. The same bound holds for phases, of which the oldest are dropped.
const GENERICS_MAX: usize = 1_024;
/// Size of the block of ids given to one process. This server takes ids for its own cancels one at
/// a time from the same numbers.
const NUMBERS_PER_PROCESS: u64 = 1 << 28;
/// First character of the ids of cancels in the name of a strategy whose process is gone.
const PREFIX: u8 = b'o';

/// What the http thread needs to serve remote strategies.
pub struct RemoteStrategiesParts {
    pub nats: NatsConfig,
    pub settings: RemoteStrategiesConfig,
    pub subjects: Subjects,
    pub strategies: Vec<StrategyConfig>,
    /// By shard: events of the strategies, read from the journal.
    pub past: Vec<PastEvents>,
    /// By shard: the last event before this start.
    pub last_seqs: Vec<u64>,
    /// Numbers for the ids of all processes until the next start.
    pub numbers: IdBlock,
    /// Pace of a market that waits for its receivers; `None` if it does not wait.
    pub pace: Option<Arc<Pace>>,
}

impl RemoteStrategiesParts {
    pub fn of(
        config: &Config,
        past: Vec<PastEvents>,
        last_seqs: Vec<u64>,
        numbers: IdBlock,
    ) -> RemoteStrategiesParts {
        RemoteStrategiesParts {
            nats: config.nats.clone(),
            settings: config.remote_strategies.clone(),
            subjects: Subjects::of(&config.nats, &config.service),
            strategies: config.strategies.clone(),
            past,
            last_seqs,
            numbers,
            pace: None,
        }
    }
}

#[derive(Debug)]
pub struct RemoteStrategies {
    pub nats: NatsConfig,
    pub settings: RemoteStrategiesConfig,
    pub subjects: Subjects,
    inner: RefCell<RemoteState>,
    /// Notified when there is something to send.
    pub work: Notify,
    /// Notified when a market that waits may perhaps continue.
    pub pace_check: Notify,
    pub up: Cell<bool>,
    pub counts: RemoteCounts,
    permissions: PermissionLog,
}

/// Counters since the start.
#[derive(Debug, Default)]
pub struct RemoteCounts {
    pub messages: Cell<u64>,
    pub decode_errors: Cell<u64>,
    /// Requests whose reply subject is not in the inbox of their strategy.
    pub misrouted: Cell<u64>,
    pub event_batches: Cell<u64>,
    pub price_batches: Cell<u64>,
    pub expired_leases: Cell<u64>,
}

fn count(counter: &Cell<u64>) {
    counter.set(counter.get() + 1);
}

#[derive(Debug)]
struct RemoteState {
    epoch: u64,
    port: PortId,
    slots: Vec<StrategySlot>,
    price_table: PriceTable,
    /// Number of the last message of prices.
    prices: u64,
    /// By shard: sequence number of the last event of all.
    seen: Vec<u64>,
    replies: VecDeque<(Subject, Bytes)>,
    generics: VecDeque<Generic>,
    /// Phases to be sent, as JSON.
    phases: VecDeque<Bytes>,
    /// Pending commands to all shards: by token, how many responses are missing and where to reply.
    done: BTreeMap<u32, PendingReply>,
    token: u32,
    /// Number of replies, events and phases that were not sent.
    dropped: u64,
    numbers: IdBlock,
    /// The encoded reference data, made when it is first requested.
    reference: Option<(Arc<RefData>, Bytes)>,
    lease_ns: u64,
    pace: Option<Arc<Pace>>,
    /// Time of the last row of a paced market that was received.
    last_row_at: u64,
    /// Number of prices and events that had a receiver.
    deliveries: u64,
}

/// How much had been received when no process had any work left.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct IdleProgress {
    /// Time of the last row of the market.
    last_row_at: u64,
    deliveries: u64,
}

#[derive(Debug)]
struct PendingReply {
    left: u8,
    reason: Reason,
    reply: Option<Subject>,
}

impl RemoteStrategies {
    pub fn new(
        parts: RemoteStrategiesParts,
        port: PortId,
        shards: u8,
        epoch: Timestamp,
        reference: &RefData,
    ) -> RemoteStrategies {
        let RemoteStrategiesParts { nats, settings, subjects, strategies, past, last_seqs, numbers, pace } =
            parts;
        let slot = |strategy: &StrategyConfig| {
            let row = reference.strategies().iter().find(|row| row.name == strategy.name)?;
            let source = remote_protocol::source(port, row.id);
            let mut history = EventHistory::new(shards, settings.events_kept);
            for (shard, last) in last_seqs.iter().enumerate() {
                history.begin(ShardId(shard as u8), past.get(shard).map_or(*last, |past| past.from));
            }
            let mut slot = StrategySlot::new(
                strategy.name.as_str().into(),
                source,
                section_of(strategy, reference),
                history,
                epoch,
            );
            for (shard, past) in past.iter().enumerate() {
                for event in past.events.iter().filter(|event| remote_protocol::concerns(source, event)) {
                    slot.history.add(ShardId(shard as u8), event);
                    slot.requests.handle_event(event);
                }
            }
            Some(slot)
        };
        let mut seen = last_seqs.clone();
        seen.resize(shards as usize, 0);
        let inner = RemoteState {
            epoch: epoch.0,
            port,
            slots: strategies.iter().filter_map(slot).collect(),
            price_table: PriceTable::new(pace.is_some()),
            prices: 0,
            seen,
            replies: VecDeque::new(),
            generics: VecDeque::new(),
            phases: VecDeque::new(),
            done: BTreeMap::new(),
            token: 0,
            dropped: 0,
            numbers,
            reference: None,
            lease_ns: settings.lease_ms as u64 * NS_PER_MS,
            pace,
            last_row_at: 0,
            deliveries: 0,
        };
        let (inner, work, pace_check) = (RefCell::new(inner), Notify::new(), Notify::new());
        let (up, counts) = (Cell::new(false), RemoteCounts::default());
        RemoteStrategies {
            nats,
            settings,
            subjects,
            inner,
            work,
            pace_check,
            up,
            counts,
            permissions: PermissionLog::default(),
        }
    }

    /// Handles an event of a shard, after the view has applied it.
    pub fn handle_event(&self, shard: ShardId, event: &Event) {
        let mut inner = self.inner.borrow_mut();
        if let EventKind::Tick(tick) = &event.body {
            inner.record_seen(shard, event);
            inner.last_row_at = inner.last_row_at.max(tick.at.0);
            if self.up.get() && inner.price_table.apply(tick) {
                inner.deliveries += 1;
                self.work.notify_one();
            }
            return;
        }
        if inner.handle_event(shard, event) {
            inner.deliveries += 1;
            self.work.notify_one();
        }
    }

    /// Queues an event between strategies that a client here has sent.
    pub fn queue_generic(&self, name: &str, body: &[u8]) {
        let mut inner = self.inner.borrow_mut();
        if inner.generics.len() >= GENERICS_MAX {
            return inner.dropped += 1;
        }
        match Generic::new(name, Bytes::copy_from_slice(body), wire::SERVER) {
            Some(generic) => inner.generics.push_back(generic),
            None => inner.dropped += 1,
        }
        self.work.notify_one();
    }

    pub fn next_generic(&self) -> Option<Generic> {
        self.inner.borrow().generics.front().cloned()
    }

    pub fn pop_generic(&self) {
        self.inner.borrow_mut().generics.pop_front();
    }

    /// Returns the next message to send.
    pub fn take(&self) -> Option<(Subject, Bytes)> {
        let mut inner = self.inner.borrow_mut();
        if !self.up.get() {
            inner.clear_output();
            return None;
        }
        if let Some(reply) = inner.replies.pop_front() {
            return Some(reply);
        }
        if let Some(batch) = inner.next_event_batch(&self.subjects) {
            count(&self.counts.event_batches);
            return Some(batch);
        }
        if let Some(phase) = inner.phases.pop_front() {
            return Some((self.subjects.phases().into(), phase));
        }
        let prices = inner.next_prices()?;
        count(&self.counts.price_batches);
        Some((self.subjects.market().into(), prices.encode().into()))
    }

    pub fn reply(&self, to: Option<Subject>, reply: &RemoteReply) {
        let Some(to) = to else { return };
        self.inner.borrow_mut().answer(to, reply);
        self.work.notify_one();
    }

    /// Returns the number of replies, events and phases that were not sent.
    pub fn dropped(&self) -> u64 {
        self.inner.borrow().dropped
    }

    fn count_dropped(&self) {
        self.inner.borrow_mut().dropped += 1;
    }

    /// Refuses a process whose strategy is not configured.
    pub fn refuse(&self, to: Subject) {
        let text = "the server's settings have no such [[strategy]]".to_string();
        self.reply(Some(to), &RemoteReply::Refused { text });
    }

    /// Records whether the broker is connected.
    pub fn set_up(&self, up: bool, now: Timestamp) {
        self.up.set(up);
        let mut inner = self.inner.borrow_mut();
        inner.slots.iter_mut().for_each(|slot| slot.restart_lease(now));
    }

    /// Returns whether a market waits for the strategies.
    pub fn is_paced(&self) -> bool {
        self.inner.borrow().pace.is_some()
    }

    /// Checks again whether prices that wait may be sent, or a market that waits may continue.
    pub fn poll_pace(&self) {
        if self.is_paced() {
            self.pace_check.notify_one();
            self.work.notify_one();
        }
    }

    /// Returns how much was received, if every strategy that should run does and has processed all
    /// of it.
    pub fn idle_progress(&self, shard_client: &ShardClient) -> Option<IdleProgress> {
        let inner = self.inner.borrow();
        let view = shard_client.view();
        let is_settled = |slot: &StrategySlot| {
            let phase = view.phase(slot.strategy()).unwrap_or_default();
            !slot.section.start || matches!(phase, StrategyPhase::Stop | StrategyPhase::Exit) || {
                phase == StrategyPhase::Running && slot.is_present() && slot.is_quiet(inner.prices)
            }
        };
        let is_idle =
            shard_client.is_complete() && inner.price_table.is_idle() && inner.slots.iter().all(is_settled);
        is_idle.then_some(IdleProgress { last_row_at: inner.last_row_at, deliveries: inner.deliveries })
    }

    /// Lets the market continue.
    pub fn release_market(&self, idle_progress: IdleProgress) {
        if let Some(pace) = &self.inner.borrow().pace {
            pace.take(idle_progress.last_row_at);
        }
    }

    /// Calls `show` for each strategy with its name, whether its process is connected, and its
    /// host.
    pub fn for_each(&self, mut show: impl FnMut(&str, bool, &str)) {
        self.inner.borrow().slots.iter().for_each(|slot| show(&slot.name, slot.is_present(), &slot.host));
    }

    /// Calls `show` for each strategy with the number of events that its process has not confirmed.
    pub fn for_each_unconfirmed(&self, mut show: impl FnMut(&str, usize)) {
        let inner = self.inner.borrow();
        inner
            .slots
            .iter()
            .for_each(|slot| show(&slot.name, slot.history.after(&slot.received, usize::MAX).0.len()));
    }

    pub fn conflated(&self) -> u64 {
        self.inner.borrow().price_table.conflated()
    }
}

impl RemoteState {
    fn record_seen(&mut self, shard: ShardId, event: &Event) -> bool {
        let seen = &mut self.seen[shard.0 as usize];
        let is_new = event.seq > *seen;
        *seen = event.seq.max(*seen);
        is_new
    }

    /// Handles an event that is no tick. Returns whether there is something to send.
    fn handle_event(&mut self, shard: ShardId, event: &Event) -> bool {
        if let EventKind::Done { source, token, reason } = &event.body
            && source.port == self.port
            && remote_protocol::is_of_strategy(event)
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
            if !remote_protocol::concerns(slot.source, event) {
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

    fn queue_phase(&mut self, strategy: StrategyId, phase: StrategyPhase) {
        let Some(slot) = self.slots.iter().find(|slot| slot.strategy() == strategy) else { return };
        let text = pitlane_protocols::codes::WireName::wire_name(phase);
        let payload = serde_json::json!( { "strategyName" : & * slot.name , "phase" : text } );
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
        match reason {
            Reason::None => self.answer(reply, &RemoteReply::Accepted),
            reason => self.answer(reply, &RemoteReply::Declined { reason }),
        }
        true
    }

    fn decline(&mut self, source: pitlane_engine::id::Source, id: &IntId, reason: Reason) -> bool {
        let Some(slot) = self.slots.iter_mut().find(|slot| slot.source == source) else { return false };
        let Some(reply) = slot.requests.forget(id) else { return false };
        self.answer(reply, &RemoteReply::Declined { reason });
        true
    }

    fn answer(&mut self, to: Subject, reply: &RemoteReply) {
        if self.replies.len() < REPLIES_MAX {
            self.replies.push_back((to, reply.encode().into()));
        } else {
            self.dropped += 1;
        }
    }

    fn new_id(&mut self) -> Option<IntId> {
        if self.numbers.next >= self.numbers.end {
            return None;
        }
        self.numbers.next += 1;
        Some(IntId::numbered(PREFIX, self.numbers.next - 1))
    }

    /// Allocates numbers for the ids of one process.
    fn new_numbers(&mut self) -> Option<(u64, u64)> {
        let from = self.numbers.next;
        let end = from.checked_add(NUMBERS_PER_PROCESS).filter(|end| *end <= self.numbers.end)?;
        self.numbers.next = end;
        Some((from, end))
    }

    fn next_event_batch(&mut self, subjects: &Subjects) -> Option<(Subject, Bytes)> {
        let RemoteState { slots, seen, epoch, .. } = self;
        let has_events = |slot: &&mut StrategySlot| {
            slot.incarnation().is_some() && (slot.heartbeat_due || slot.sent_position < slot.history.end())
        };
        let slot = slots.iter_mut().find(has_events)?;
        let incarnation = slot.incarnation()?;
        let (events, place) = slot.history.since(slot.sent_position, EVENTS_PER_BATCH_MAX);
        slot.sent_position = place;
        slot.heartbeat_due = false;
        // The heads go with the last of the events only: earlier, the remaining ones would look
        // lost.
        let is_all = slot.sent_position == slot.history.end();
        let heads = if is_all { slot.history.heads(seen) } else { Vec::new() };
        let batch = EventBatch { epoch: *epoch, incarnation, events, heads };
        Some((subjects.events(&slot.name).into(), batch.encode().into()))
    }

    fn next_prices(&mut self) -> Option<PriceBatch> {
        // Prices and events travel separately. A shard publishes a price after the event that
        // caused it; to preserve that order in a paced market, prices wait until events have
        // arrived.
        let is_behind = |slot: &StrategySlot| slot.is_present() && !slot.has_received_all();
        if self.pace.is_some() && self.slots.iter().any(is_behind) {
            return None;
        }
        let ticks = self.price_table.take();
        if ticks.is_empty() {
            return None;
        }
        self.prices += 1;
        Some(PriceBatch { epoch: self.epoch, number: self.prices, paced: self.pace.is_some(), ticks })
    }

    /// Drops the output while the broker is away: numbered events are requested later, the rest is
    /// outdated by then.
    fn clear_output(&mut self) {
        self.replies.clear();
        self.phases.clear();
        self.price_table.clear();
        self.slots.iter_mut().for_each(|slot| slot.sent_position = slot.history.end());
    }
}

fn section_of(strategy: &StrategyConfig, reference: &RefData) -> StrategySetup {
    StrategySetup {
        kind: strategy.kind.clone(),
        securities: strategy.security_ids(reference),
        parameters: strategy.parameters.clone().into_iter().collect(),
        start: strategy.start,
        cancel_on_failure: strategy.cancel_on_failure,
    }
}
