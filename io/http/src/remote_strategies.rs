//! Strategies that run in processes of their own, as this server sees them: the events and prices
//! that each receives, and its requests in progress. Requests are handled, and processes watched,
//! in [`super::strategy_processes`].
//!
//! ```text
//! shards ─ Event ─► ShardClient ─► handle_event ─► StrategySlot: EventHistory ─┐
//!                                        └───────► PriceTable ─────────────────┼─► take
//!                               strategy_processes ─► reply ───────────────────┘
//! ```
//!
//! **Once.** A request is identified by its id. A request in progress is not sent again, an
//! answered one gets the same answer, and after a restart the journal has both. A request is
//! answered when its event was received, and so when it is in the journal.
//!
//! **All.** Events have the sequence numbers of their shards. An event is not available if it is no
//! longer kept in memory, or if it precedes the snapshot from which the journal was replayed at the
//! start. A process that lacks such an event starts again from the state.

mod connections;
mod generic_log;
mod requests;
mod parts;
mod permissions;
mod prices;
mod slot;
mod state;
mod history;
#[cfg(test)]
mod tests;

use std::cell::{Cell, RefCell};
use std::collections::{BTreeMap, VecDeque};

use async_nats::Subject;
use bytes::Bytes;
use pitlane_cluster::nats::generic::Generic;
use pitlane_cluster::nats::subjects::Subjects;
use pitlane_config::{
    NatsConfig, RemoteStrategiesConfig, StrategiesConfig, StrategyConfig, StrategyTransport,
};
use pitlane_engine::event::{Event, EventKind};
use pitlane_engine::id::{PortId, ShardId};
use pitlane_engine::index::index_u8;
use pitlane_engine::refdata::RefData;
use pitlane_engine::time::{NS_PER_MS, Timestamp};
use pitlane_protocols::remote;
use pitlane_protocols::remote::strategy::{RemoteReply, StrategySetup};
use tokio::sync::Notify;

use self::connections::LinkConnections;
pub(crate) use self::connections::{LinkSignals, ReplyAddress};
pub(crate) use self::generic_log::PublishId;
use self::history::EventHistory;
pub use self::parts::RemoteStrategiesParts;
use self::permissions::PermissionLog;
use self::prices::PriceOutputs;
pub(crate) use self::requests::{RemoteOrderRequest, RequestVerdict};
pub(crate) use self::slot::{StopCause, StrategySlot, host_text};
use self::state::GENERICS_MAX;
pub(crate) use self::state::{PendingReply, RemoteState};

/// Sender name of events between strategies that a client of this server has sent.
pub(crate) const SERVER: &str = "SERVER";

#[derive(Debug)]
pub(crate) struct RemoteStrategies {
    pub nats: NatsConfig,
    pub settings: RemoteStrategiesConfig,
    pub link: StrategiesConfig,
    /// Name of this installation.
    pub server: String,
    pub subjects: Subjects,
    /// What the strategies receive and have requested.
    pub inner: RefCell<RemoteState>,
    /// Notified when there is something to send.
    pub work: Notify,
    /// Notified when a market that waits may perhaps continue.
    pub pace_check: Notify,
    pub up: Cell<bool>,
    pub counts: RemoteCounts,
    /// Time of the last message or check.
    pub now: Cell<Timestamp>,
    permissions: PermissionLog,
}

/// Counters since the start.
#[derive(Debug, Default)]
pub(crate) struct RemoteCounts {
    pub messages: Cell<u64>,
    pub decode_errors: Cell<u64>,
    /// Connections that were refused or ended for a fault of the process.
    pub refused_links: Cell<u64>,
    /// Requests whose reply subject is not in the inbox of their strategy.
    pub misrouted: Cell<u64>,
    pub event_batches: Cell<u64>,
    pub price_batches: Cell<u64>,
    pub expired_leases: Cell<u64>,
}

/// Increments a counter.
pub(crate) fn count(counter: &Cell<u64>) {
    counter.set(counter.get() + 1);
}

impl RemoteStrategies {
    pub(crate) fn new(
        parts: RemoteStrategiesParts,
        port: PortId,
        shards: u8,
        epoch: Timestamp,
        reference: &RefData,
    ) -> RemoteStrategies {
        let RemoteStrategiesParts {
            nats,
            settings,
            link,
            server,
            socket: _,
            generic_log,
            subjects,
            strategies,
            past,
            last_seqs,
            numbers,
            pace,
        } = parts;
        let slot = |strategy: &StrategyConfig| {
            let row = reference.strategies().iter().find(|row| row.name == strategy.name)?;
            let source = remote::strategy::source(port, row.id);
            let mut history = EventHistory::new(shards, settings.events_kept);
            for (shard, last) in last_seqs.iter().enumerate() {
                history.begin(ShardId(index_u8(shard)), past.get(shard).map_or(*last, |past| past.from));
            }
            let mut slot = StrategySlot::new(
                strategy.name.as_str().into(),
                source,
                section_of(strategy, reference),
                history,
                epoch,
            );
            for (shard, past) in past.iter().enumerate() {
                for event in past.events.iter().filter(|event| remote::strategy::concerns(source, event)) {
                    slot.history.add(ShardId(index_u8(shard)), event);
                    slot.requests.handle_event(event);
                }
            }
            Some(slot)
        };
        let mut seen = last_seqs.clone();
        seen.resize(shards as usize, 0);
        let slots: Vec<StrategySlot> = strategies.iter().filter_map(slot).collect();
        let inner = RemoteState {
            epoch: epoch.0,
            port,
            prices: PriceOutputs::new(link.transport == StrategyTransport::Nats, slots.len(), pace.is_some()),
            slots,
            seen,
            replies: VecDeque::new(),
            generics: VecDeque::new(),
            connections: LinkConnections::default(),
            generic_log,
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
        // Without a broker there is nothing to connect to first.
        let up = Cell::new(link.transport == StrategyTransport::Direct);
        let (counts, now) = (RemoteCounts::default(), Cell::new(epoch));
        RemoteStrategies {
            nats,
            settings,
            link,
            server,
            subjects,
            inner,
            work,
            pace_check,
            up,
            counts,
            now,
            permissions: PermissionLog::default(),
        }
    }

    /// Handles an event of a shard, after the view has applied it.
    pub(crate) fn handle_event(&self, shard: ShardId, event: &Event) {
        let mut inner = self.inner.borrow_mut();
        if let EventKind::Tick(tick) = &event.body {
            inner.record_seen(shard, event);
            inner.last_row_at = inner.last_row_at.max(tick.at.0);
            if self.up.get() {
                inner.apply_tick(tick, &self.work);
            }
            return;
        }
        if inner.handle_event(shard, event) {
            inner.deliveries += 1;
            self.wake(&inner);
        }
    }

    /// Wakes the tasks that send.
    fn wake(&self, inner: &RemoteState) {
        self.work.notify_one();
        inner.connections.wake_all();
    }

    /// Schedules what is to be sent.
    pub(crate) fn notify_output(&self) {
        self.wake(&self.inner.borrow());
    }

    /// Queues an event between strategies that a client here has sent.
    pub(crate) fn queue_generic(&self, name: &str, body: &[u8]) {
        let mut inner = self.inner.borrow_mut();
        let Some(generic) = Generic::new(name, Bytes::copy_from_slice(body), SERVER) else {
            return inner.dropped += 1;
        };
        if let Some(log) = &mut inner.generic_log {
            if let Err(error) = log.append(self.now.get(), generic, None) {
                tracing::warn!(%error, "an event between strategies could not be stored, and is dropped");
                inner.dropped += 1;
            }
        } else if inner.generics.len() >= GENERICS_MAX {
            inner.dropped += 1;
        } else {
            inner.generics.push_back(generic);
        }
        self.wake(&inner);
    }

    /// Stores an event of a strategy where there is no broker. Returns whether it is new; `None` if
    /// it cannot be stored now.
    pub(crate) fn store_generic(&self, generic: Generic, id: PublishId) -> Option<bool> {
        let mut inner = self.inner.borrow_mut();
        let stored = inner.generic_log.as_mut()?.append(self.now.get(), generic, Some(id));
        match stored {
            Ok(is_new) => {
                self.wake(&inner);
                Some(is_new)
            }
            Err(error) => {
                tracing::warn!(%error, "an event between strategies could not be stored: its sender retries");
                None
            }
        }
    }

    pub(crate) fn next_generic(&self) -> Option<Generic> {
        self.inner.borrow().generics.front().cloned()
    }

    pub(crate) fn pop_generic(&self) {
        self.inner.borrow_mut().generics.pop_front();
    }

    /// Returns the next message to send.
    pub(crate) fn take(&self) -> Option<(Subject, Bytes)> {
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
        let prices = inner.next_prices(0)?;
        count(&self.counts.price_batches);
        Some((self.subjects.market().into(), prices.encode().into()))
    }

    pub(crate) fn reply(&self, to: Option<ReplyAddress>, reply: &RemoteReply) {
        let Some(to) = to else { return };
        self.inner.borrow_mut().answer(to, reply);
        self.work.notify_one();
    }

    /// Returns the number of replies, events and phases that were not sent.
    pub(crate) fn dropped(&self) -> u64 {
        self.inner.borrow().dropped
    }

    /// Counts a message that could not be sent.
    pub(crate) fn count_dropped(&self) {
        self.inner.borrow_mut().dropped += 1;
    }

    /// Refuses a process whose strategy is not configured.
    pub(crate) fn refuse(&self, to: Subject) {
        let text = "the server's settings have no such [[strategy]]".to_string();
        self.reply(Some(ReplyAddress::Subject(to)), &RemoteReply::Refused { text });
    }

    /// Records whether the broker is connected.
    pub(crate) fn set_up(&self, up: bool, now: Timestamp) {
        self.up.set(up);
        let mut inner = self.inner.borrow_mut();
        inner.slots.iter_mut().for_each(|slot| slot.restart_lease(now));
    }

    /// Returns whether a market waits for the strategies.
    pub(crate) fn is_paced(&self) -> bool {
        self.inner.borrow().pace.is_some()
    }

    /// Checks again whether prices that wait may be sent, or a market that waits may continue.
    pub(crate) fn poll_pace(&self) {
        if self.is_paced() {
            self.pace_check.notify_one();
            self.notify_output();
        }
    }

    /// Calls `show` for each strategy with its name, whether its process is connected, and its
    /// host.
    pub(crate) fn for_each(&self, mut show: impl FnMut(&str, bool, &str)) {
        self.inner.borrow().slots.iter().for_each(|slot| show(&slot.name, slot.is_present(), &slot.host));
    }

    /// Calls `show` for each strategy with the number of events that its process has not confirmed.
    pub(crate) fn for_each_unconfirmed(&self, mut show: impl FnMut(&str, usize)) {
        let inner = self.inner.borrow();
        inner
            .slots
            .iter()
            .for_each(|slot| show(&slot.name, slot.history.after(&slot.received, usize::MAX).0.len()));
    }

    pub(crate) fn conflated(&self) -> u64 {
        self.inner.borrow().prices.conflated()
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
