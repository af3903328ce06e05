//! Strategies that run in processes of their own, as this server has them: who is here, what each is told and asks for. Their broker is
//! reached by `wire`.
//!
//! ```text
//! shards ─ Event ─► Floor ─► hear ─► Seat: Told ─┐                ┌─ events.<strategy>
//!                              └───► Board ──────┼─► take ─► wire ┼─ market
//!                    Floor ◄─ handle ◄─ Letter ──┘                └─ replies
//! ```
//!
//! **Once.** A request is known by its id. One that is under way is not sent again, one that was answered is answered the same, and after a
//! restart the journal tells of both. A request is answered when its event was heard, so when it is in the journal.
//!
//! **All.** Events have the numbers of their shards. What is not kept in memory any more, or was said before a snapshot too long ago, is gone for
//! this purpose, and whoever lacks it begins anew with the state.
//!
//! **Death.** Whoever is silent for a lease is stopped; while the broker is away nobody can be heard, and nobody is judged. A process that comes
//! back finds its strategy stopped, or has it started again: see `watch`.

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
use crate::config::{Config, Nats, RemoteStrategySettings, Strategy};
use crate::journal::Past;
use crate::nats::generic::Generic;
use crate::nats::subjects::Subjects;
use crate::ticks::pace::Pace;

/// Events in one message: some 15 KB.
const EVENTS_PER_POST_MAX: usize = 64;
/// Replies that wait to go out; beyond them whoever asked asks again.
const REPLIES_MAX: usize = 4_096;
/// Events between strategies that wait to go out; beyond them the newest are dropped and counted. Of phases it is the oldest.
const GENERICS_MAX: usize = 1_024;
/// Ids given to one process, and to this server for cancels of its own.
const NUMBERS_EACH: u64 = 1 << 28;
/// First letter of ids of cancels in the name of a strategy that is gone.
const PREFIX: u8 = b'o';

/// What the http thread is given for it.
pub struct RemoteStrategiesParts {
    pub nats: Nats,
    pub keeping: RemoteStrategySettings,
    pub subjects: Subjects,
    pub strategies: Vec<Strategy>,
    /// By shard: what the journal told of the strategies.
    pub past: Vec<Past>,
    /// By shard: the last event of the last life.
    pub heard: Vec<u64>,
    /// For ids of all processes of this life.
    pub numbers: IdBlock,
    /// The market that waits for those who are to hear it; none: it does not.
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
    pub nats: Nats,
    pub keeping: RemoteStrategySettings,
    pub subjects: Subjects,
    inner: RefCell<Inner>,
    /// There is something to go out.
    pub work: Notify,
    /// A market waits, and perhaps need not any more.
    pub stirred: Notify,
    pub up: Cell<bool>,
    pub counts: Counts,
    guard: Guard,
}

/// Since the start.
#[derive(Debug, Default)]
pub struct Counts {
    pub letters: Cell<u64>,
    pub misread: Cell<u64>,
    /// Letters that named another place for the answer than the inbox of their strategy.
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
    /// By shard: number of the last event of all.
    seen: Vec<u64>,
    replies: VecDeque<(Subject, Bytes)>,
    generics: VecDeque<Generic>,
    /// Phases that were told and are to go out, as JSON.
    phases: VecDeque<Bytes>,
    /// Commands to all shards that are awaited: by token, how many are left and who asked.
    done: BTreeMap<u32, Awaited>,
    token: u32,
    /// Replies, events and phases that did not go out.
    dropped: u64,
    numbers: IdBlock,
    /// The image of the reference data, made when it is first wanted.
    reference: Option<(Arc<RefData>, Bytes)>,
    lease_ns: u64,
    pace: Option<Arc<Pace>>,
    /// Time of the last row of a paced market that was heard.
    row: u64,
    /// Prices and events that were for somebody.
    news: u64,
}

/// How much had been heard when nobody had anything left to do.
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
        let seat = |strategy: &Strategy| {
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

    /// An event of a shard, after the view has taken it in.
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

    /// An event between strategies that somebody here has said.
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

    /// The next message to go out.
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

    /// Replies, events and phases that did not go out.
    pub fn dropped(&self) -> u64 {
        self.inner.borrow().dropped
    }

    fn is_dropped(&self) {
        self.inner.borrow_mut().dropped += 1;
    }

    /// Refuses a process whose strategy is none of ours.
    pub fn refuse(&self, to: Subject) {
        let words = "the server's settings have no such [[strategy]]".to_string();
        self.reply(Some(to), &RemoteReply::Refused { text: words });
    }

    /// The broker is there again, or gone.
    pub fn set_up(&self, up: bool, now: Timestamp) {
        self.up.set(up);
        let mut inner = self.inner.borrow_mut();
        inner.seats.iter_mut().for_each(|seat| seat.excuse(now));
    }

    /// Whether a market waits for the strategies.
    pub fn is_paced(&self) -> bool {
        self.inner.borrow().pace.is_some()
    }

    /// Something has happened: perhaps prices that wait may go out, or a market that waits may go on.
    pub fn stir(&self) {
        if self.is_paced() {
            self.stirred.notify_one();
            self.work.notify_one();
        }
    }

    /// If everybody who should run does and has taken in what was heard: what that was.
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

    /// The market goes on.
    pub fn go_on(&self, calm: Calm) {
        if let Some(pace) = &self.inner.borrow().pace {
            pace.take(calm.row);
        }
    }

    /// By strategy: its name, whether its process is here, and where.
    pub fn each(&self, mut show: impl FnMut(&str, bool, &str)) {
        self.inner.borrow().seats.iter().for_each(|seat| show(&seat.name, seat.is_present(), &seat.host));
    }

    /// By strategy: events that its process has not said to have taken in.
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

    /// Whether there is something to go out.
    fn hear(&mut self, shard: ShardId, event: &Event) -> bool {
        if let EventKind::Done { source, token, reason } = &event.body
            && source.port == self.port
            && said::is_of_strategy(event)
        {
            self.note_seen(shard, event);
            return self.is_done(*token, *reason);
        }
        // What was not stored has no number, and is answered to whoever asked.
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
        // What a snapshot shows has the number of what was said last.
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

    /// Numbers for the ids of one process.
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
        // How far it is may be told with the last of them only: before, the rest would look as if it were lost.
        let is_all = seat.place == seat.told.end();
        let heads = if is_all { seat.told.heads(seen) } else { Vec::new() };
        let post = EventBatch { epoch: *epoch, life, events, heads };
        Some((subjects.events(&seat.name).into(), post.encode().into()))
    }

    fn next_prices(&mut self) -> Option<PriceBatch> {
        // Prices and events take two ways. A shard shows the market behind what has moved it: where all is to be as it was, prices
        // wait until events have arrived.
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

    /// Nobody would hear it: what is numbered is asked for later, the rest is old by then.
    fn hush(&mut self) {
        self.replies.clear();
        self.phases.clear();
        self.board.clear();
        self.seats.iter_mut().for_each(|seat| seat.place = seat.told.end());
    }
}

fn section_of(strategy: &Strategy, reference: &RefData) -> StrategySetup {
    StrategySetup {
        kind: strategy.kind.clone(),
        securities: strategy.security_ids(reference),
        parameters: strategy.parameters.clone().into_iter().collect(),
        start: strategy.start,
        cancel_on_failure: strategy.cancel_on_failure,
    }
}
