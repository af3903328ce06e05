//! Strategies that run in processes of their own, as this server sees them: which processes are
//! connected, the events each receives and its requests. Module `wire` connects to their broker.
//!
//! ```text
//! shards ─ Event ─► ShardClient ─► hear ─► StrategySlot: EventHistory ─┐
//!                                    └───► Board ──────────────────────┤
//!                    ShardClient ◄─ handle ◄─ Letter                   └─► take ─► wire
//!                                     └─► replies ───────────────────────────┘
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
mod guard;
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
use pitlane_engine::command::Phase;
use pitlane_engine::desk::IdBlock;
use pitlane_engine::event::{Event, EventKind};
use pitlane_engine::id::{IntId, PortId, ShardId, StrategyId};
use pitlane_engine::reason::Reason;
use pitlane_engine::refdata::RefData;
use pitlane_engine::strategy::remote_protocol::{
    self as said, EventBatch, PriceBatch, RemoteReply, StrategySetup,
};
use pitlane_engine::time::{NS_PER_MS, Timestamp};
use tokio::sync::Notify;

use self::guard::Guard;
use self::history::EventHistory;
use self::prices::Board;
use self::slot::StrategySlot;
pub use self::state::terms_of;
use super::shard_client::ShardClient;
use crate::config::{Config, NatsConfig, RemoteStrategiesConfig, StrategyConfig};
use crate::journal::Past;
use crate::nats::generic::Generic;
use crate::nats::subjects::Subjects;
use crate::ticks::pace::Pace;

/// Events in one message: some 15 KB.
const EVENTS_PER_POST_MAX: usize = 64;
/// Maximum number of replies waiting to be sent. Replies beyond it are dropped, and the process
/// asks again.
const REPLIES_MAX: usize = 4_096;
/// Maximum number of events between strategies waiting to be sent; beyond it the newest are dropped
/// and counted. The same bound holds for phases, of which the oldest are dropped.
const GENERICS_MAX: usize = 1_024;
/// Size of the block of ids given to one process. This server takes ids for its own cancels one at
/// a time from the same numbers.
const NUMBERS_EACH: u64 = 1 << 28;
/// First character of the ids of cancels in the name of a strategy whose process is gone.
const PREFIX: u8 = b'o';

/// What the http thread needs to serve remote strategies.
pub struct RemoteStrategiesParts {
    pub nats: NatsConfig,
    pub keeping: RemoteStrategiesConfig,
    pub subjects: Subjects,
    pub strategies: Vec<StrategyConfig>,
    /// By shard: events of the strategies, read from the journal.
    pub past: Vec<Past>,
    /// By shard: the last event before this start.
    pub heard: Vec<u64>,
    /// Numbers for the ids of all processes until the next start.
    pub numbers: IdBlock,
    /// Pace of a market that waits for its receivers; `None` if it does not wait.
    pub pace: Option<Arc<Pace>>,
}

impl RemoteStrategiesParts {
    pub fn of(config: &Config, past: Vec<Past>, heard: Vec<u64>, numbers: IdBlock) -> RemoteStrategiesParts {
        RemoteStrategiesParts {
            nats: config.nats.clone(),
            keeping: config.remote_strategies.clone(),
            subjects: Subjects::of(&config.nats, &config.service),
            strategies: config.strategies.clone(),
            past,
            heard,
            numbers,
            pace: None,
        }
    }
}

#[derive(Debug)]
pub struct RemoteStrategies {
    pub nats: NatsConfig,
    pub keeping: RemoteStrategiesConfig,
    pub subjects: Subjects,
    inner: RefCell<Inner>,
    /// Notified when there is something to send.
    pub work: Notify,
    /// Notified when a market that waits may perhaps continue.
    pub stirred: Notify,
    pub up: Cell<bool>,
    pub counts: Counts,
    guard: Guard,
}

/// Counters since the start.
#[derive(Debug, Default)]
pub struct Counts {
    pub letters: Cell<u64>,
    pub misread: Cell<u64>,
    /// Letters whose reply subject is not in the inbox of their strategy.
    pub astray: Cell<u64>,
    pub posts: Cell<u64>,
    pub prices: Cell<u64>,
    pub deaths: Cell<u64>,
}

fn count(counter: &Cell<u64>) {
    counter.set(counter.get() + 1);
}

#[derive(Debug)]
struct Inner {
    epoch: u64,
    port: PortId,
    seats: Vec<StrategySlot>,
    board: Board,
    /// Number of the last message of prices.
    prices: u64,
    /// By shard: sequence number of the last event of all.
    seen: Vec<u64>,
    replies: VecDeque<(Subject, Bytes)>,
    generics: VecDeque<Generic>,
    /// Phases to be sent, as JSON.
    phases: VecDeque<Bytes>,
    /// Pending commands to all shards: by token, how many responses are missing and where to reply.
    done: BTreeMap<u32, Awaited>,
    token: u32,
    /// Number of replies, events and phases that were not sent.
    dropped: u64,
    numbers: IdBlock,
    /// The encoded reference data, made when it is first requested.
    reference: Option<(Arc<RefData>, Bytes)>,
    lease_ns: u64,
    pace: Option<Arc<Pace>>,
    /// Time of the last row of a paced market that was received.
    row: u64,
    /// Number of prices and events that had a receiver.
    news: u64,
}

/// How much had been received when no process had any work left.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Calm {
    /// Time of the last row of the market.
    row: u64,
    news: u64,
}

#[derive(Debug)]
struct Awaited {
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
        let RemoteStrategiesParts { nats, keeping, subjects, strategies, past, heard, numbers, pace } = parts;
        let seat = |strategy: &StrategyConfig| {
            let row = reference.strategies().iter().find(|row| row.name == strategy.name)?;
            let source = said::source(port, row.id);
            let mut told = EventHistory::new(shards, keeping.events_kept);
            for (shard, last) in heard.iter().enumerate() {
                told.begin(ShardId(shard as u8), past.get(shard).map_or(*last, |past| past.from));
            }
            let mut seat = StrategySlot::new(
                strategy.name.as_str().into(),
                source,
                section_of(strategy, reference),
                told,
                epoch,
            );
            for (shard, past) in past.iter().enumerate() {
                for event in past.events.iter().filter(|event| said::concerns(source, event)) {
                    seat.told.add(ShardId(shard as u8), event);
                    seat.asked.hear(event);
                }
            }
            Some(seat)
        };
        let mut seen = heard.clone();
        seen.resize(shards as usize, 0);
        let inner = Inner {
            epoch: epoch.0,
            port,
            seats: strategies.iter().filter_map(seat).collect(),
            board: Board::new(pace.is_some()),
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
            lease_ns: keeping.lease_ms as u64 * NS_PER_MS,
            pace,
            row: 0,
            news: 0,
        };
        let (inner, work, stirred) = (RefCell::new(inner), Notify::new(), Notify::new());
        let (up, counts) = (Cell::new(false), Counts::default());
        RemoteStrategies {
            nats,
            keeping,
            subjects,
            inner,
            work,
            stirred,
            up,
            counts,
            guard: Guard::default(),
        }
    }

    /// Handles an event of a shard, after the view has applied it.
    pub fn hear(&self, shard: ShardId, event: &Event) {
        let mut inner = self.inner.borrow_mut();
        if let EventKind::Tick(tick) = &event.body {
            inner.note_seen(shard, event);
            inner.row = inner.row.max(tick.at.0);
            if self.up.get() && inner.board.hear(tick) {
                inner.news += 1;
                self.work.notify_one();
            }
            return;
        }
        if inner.hear(shard, event) {
            inner.news += 1;
            self.work.notify_one();
        }
    }

    /// Queues an event between strategies that a client here has sent.
    pub fn hear_generic(&self, name: &str, body: &[u8]) {
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

    pub fn generic_is_out(&self) {
        self.inner.borrow_mut().generics.pop_front();
    }

    /// Returns the next message to send.
    pub fn take(&self) -> Option<(Subject, Bytes)> {
        let mut inner = self.inner.borrow_mut();
        if !self.up.get() {
            inner.hush();
            return None;
        }
        if let Some(reply) = inner.replies.pop_front() {
            return Some(reply);
        }
        if let Some(post) = inner.next_post(&self.subjects) {
            count(&self.counts.posts);
            return Some(post);
        }
        if let Some(phase) = inner.phases.pop_front() {
            return Some((self.subjects.life().into(), phase));
        }
        let prices = inner.next_prices()?;
        count(&self.counts.prices);
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

    fn is_dropped(&self) {
        self.inner.borrow_mut().dropped += 1;
    }

    /// Refuses a process whose strategy is not configured.
    pub fn refuse(&self, to: Subject) {
        let words = "the server's settings have no such [[strategy]]".to_string();
        self.reply(Some(to), &RemoteReply::Refused { text: words });
    }

    /// Records whether the broker is connected.
    pub fn set_up(&self, up: bool, now: Timestamp) {
        self.up.set(up);
        let mut inner = self.inner.borrow_mut();
        inner.seats.iter_mut().for_each(|seat| seat.excuse(now));
    }

    /// Returns whether a market waits for the strategies.
    pub fn is_paced(&self) -> bool {
        self.inner.borrow().pace.is_some()
    }

    /// Checks again whether prices that wait may be sent, or a market that waits may continue.
    pub fn stir(&self) {
        if self.is_paced() {
            self.stirred.notify_one();
            self.work.notify_one();
        }
    }

    /// Returns how much was received, if every strategy that should run does and has processed all
    /// of it.
    pub fn calm(&self, floor: &ShardClient) -> Option<Calm> {
        let inner = self.inner.borrow();
        let view = floor.view();
        let is_settled = |seat: &StrategySlot| {
            let phase = view.phase(seat.strategy()).unwrap_or_default();
            !seat.section.start || matches!(phase, Phase::Stop | Phase::Exit) || {
                phase == Phase::Running && seat.is_present() && seat.is_quiet(inner.prices)
            }
        };
        let is_calm = floor.is_complete() && inner.board.is_idle() && inner.seats.iter().all(is_settled);
        is_calm.then_some(Calm { row: inner.row, news: inner.news })
    }

    /// Lets the market continue.
    pub fn go_on(&self, calm: Calm) {
        if let Some(pace) = &self.inner.borrow().pace {
            pace.take(calm.row);
        }
    }

    /// Calls `show` for each strategy with its name, whether its process is connected, and its
    /// host.
    pub fn each(&self, mut show: impl FnMut(&str, bool, &str)) {
        self.inner.borrow().seats.iter().for_each(|seat| show(&seat.name, seat.is_present(), &seat.host));
    }

    /// Calls `show` for each strategy with the number of events that its process has not confirmed.
    pub fn each_behind(&self, mut show: impl FnMut(&str, usize)) {
        let inner = self.inner.borrow();
        inner
            .seats
            .iter()
            .for_each(|seat| show(&seat.name, seat.told.after(&seat.heard, usize::MAX).0.len()));
    }

    pub fn conflated(&self) -> u64 {
        self.inner.borrow().board.conflated()
    }
}

impl Inner {
    fn note_seen(&mut self, shard: ShardId, event: &Event) -> bool {
        let seen = &mut self.seen[shard.0 as usize];
        let is_new = event.seq > *seen;
        *seen = event.seq.max(*seen);
        is_new
    }

    /// Handles an event that is no tick. Returns whether there is something to send.
    fn hear(&mut self, shard: ShardId, event: &Event) -> bool {
        if let EventKind::Done { source, token, reason } = &event.body
            && source.port == self.port
            && said::is_of_strategy(event)
        {
            self.note_seen(shard, event);
            return self.is_done(*token, *reason);
        }
        // An event that was not stored has no number; the sender of the request is answered
        // directly.
        if let EventKind::Order(told) = &event.body
            && told.reason == Reason::StorageFailed
        {
            return self.decline(told.source, &told.id, told.reason);
        }
        if let EventKind::Refused(told) = &event.body
            && told.reason == Reason::StorageFailed
        {
            return self.decline(told.source, &told.request_id, told.reason);
        }
        // A snapshot item has the number of the last event, so it is not new.
        if !self.note_seen(shard, event) {
            return false;
        }
        let mut has_work = false;
        for at in 0..self.seats.len() {
            let seat = &mut self.seats[at];
            if !said::concerns(seat.source, event) {
                continue;
            }
            seat.told.add(shard, event);
            has_work = true;
            if let Some(reply) = seat.asked.hear(event) {
                self.answer(reply, &RemoteReply::Accepted);
            }
        }
        if let EventKind::Phase { strategy, phase } = event.body
            && shard == ShardId(0)
        {
            self.seats
                .iter_mut()
                .filter(|seat| seat.strategy() == strategy)
                .for_each(|seat| seat.note_phase(phase));
            self.tell_phase(strategy, phase);
        }
        has_work
    }

    fn tell_phase(&mut self, strategy: StrategyId, phase: Phase) {
        let Some(seat) = self.seats.iter().find(|seat| seat.strategy() == strategy) else { return };
        let words = pitlane_protocols::codes::WireName::wire_name(phase);
        let told = serde_json::json!({ "strategyName": &*seat.name, "phase": words });
        self.phases.push_back(told.to_string().into());
        if self.phases.len() > GENERICS_MAX {
            self.phases.pop_front();
            self.dropped += 1;
        }
    }

    fn is_done(&mut self, token: u32, reason: Reason) -> bool {
        let Some(awaited) = self.done.get_mut(&token) else { return false };
        if awaited.reason == Reason::None {
            awaited.reason = reason;
        }
        awaited.left = awaited.left.saturating_sub(1);
        if awaited.left > 0 {
            return false;
        }
        let Some(Awaited { reason, reply: Some(reply), .. }) = self.done.remove(&token) else { return false };
        match reason {
            Reason::None => self.answer(reply, &RemoteReply::Accepted),
            reason => self.answer(reply, &RemoteReply::Declined { reason }),
        }
        true
    }

    fn decline(&mut self, source: pitlane_engine::id::Source, id: &IntId, reason: Reason) -> bool {
        let Some(seat) = self.seats.iter_mut().find(|seat| seat.source == source) else { return false };
        let Some(reply) = seat.asked.forget(id) else { return false };
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
        let end = from.checked_add(NUMBERS_EACH).filter(|end| *end <= self.numbers.end)?;
        self.numbers.next = end;
        Some((from, end))
    }

    fn next_post(&mut self, subjects: &Subjects) -> Option<(Subject, Bytes)> {
        let Inner { seats, seen, epoch, .. } = self;
        let has_news =
            |seat: &&mut StrategySlot| seat.life().is_some() && (seat.beat || seat.place < seat.told.end());
        let seat = seats.iter_mut().find(has_news)?;
        let life = seat.life()?;
        let (events, place) = seat.told.since(seat.place, EVENTS_PER_POST_MAX);
        seat.place = place;
        seat.beat = false;
        // The heads go with the last of the events only: earlier, the remaining ones would look
        // lost.
        let is_all = seat.place == seat.told.end();
        let heads = if is_all { seat.told.heads(seen) } else { Vec::new() };
        let post = EventBatch { epoch: *epoch, life, events, heads };
        Some((subjects.events(&seat.name).into(), post.encode().into()))
    }

    fn next_prices(&mut self) -> Option<PriceBatch> {
        // Prices and events travel separately. A shard publishes a price after the event that
        // caused it; to preserve that order in a paced market, prices wait until events have
        // arrived.
        let is_behind = |seat: &StrategySlot| seat.is_present() && !seat.has_heard_all();
        if self.pace.is_some() && self.seats.iter().any(is_behind) {
            return None;
        }
        let ticks = self.board.take();
        if ticks.is_empty() {
            return None;
        }
        self.prices += 1;
        Some(PriceBatch { epoch: self.epoch, number: self.prices, paced: self.pace.is_some(), ticks })
    }

    /// Drops the output while the broker is away: numbered events are requested later, the rest is
    /// outdated by then.
    fn hush(&mut self) {
        self.replies.clear();
        self.phases.clear();
        self.board.clear();
        self.seats.iter_mut().for_each(|seat| seat.place = seat.told.end());
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
