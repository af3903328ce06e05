//! The worker: a shard's duty cycle. It takes a command when there is room for all its events,
//! stores it in the journal, applies it, and delivers the events once the command is safe. It
//! requires nothing from its thread but to be called.
//!
//! ```text
//! lanes of the ports ─► ShardEnd ─► journal ─► Shard::apply ─► Outbox ─ stored? ─► ShardEnd ─► lanes of the ports
//!                                      └ shut: refused, without touching the shard ──┘
//! ```

#[cfg(test)]
mod tests;

use std::collections::VecDeque;
use std::sync::Arc;

use crate::command::{Command, CommandKind};
use crate::event::{EVENTS_PER_COMMAND_MAX, Event, EventKind, ExecType, OrderTerms, RequestKind};
use crate::id::{IntId, OrderHandle, Origin, PortId, PortMask, Source};
use crate::mesh::ShardEnd;
use crate::outbox::{EVENTS_WAITING_MAX, Outbox};
use crate::reason::Reason;
use crate::refdata::RefData;
use crate::shard::Shard;
use crate::terms::{Status, Terms};
use crate::time::Timestamp;

/// Most steps of a shard in one [`Worker::poll`]. A gateway that shares the thread waits no longer
/// than these take, some 20 µs; and a cycle's fixed cost is spread over enough of them.
pub const STEPS_PER_POLL_MAX: usize = 64;

/// Reports of venues and of the budget while the journal is closed, queued until it is open again:
/// a trade, or a budget given to another shard, is a fact and cannot be refused. Enough for what a
/// venue has in flight; when it is full the worker takes no command at all.
pub const FACTS_QUEUED_MAX: usize = 1_024;

/// All commands count as stored: no event waits.
pub const ALL_STORED: u64 = u64::MAX;

/// Answer of a journal to an offered command.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum JournalOutcome {
    /// It is in the journal under its number, and will be stored with all before it.
    Accepted,
    /// It is not in the journal and will not be: there is no room, or nothing can be stored any
    /// more.
    Refused,
    /// Not yet, but soon: the command stays with the worker, which offers it again in the next
    /// poll, before any other.
    Retry,
}

/// A shard with its lanes.
///
/// A poll never allocates: commands and events are copied from slot to slot, and the outbox has
/// room for the most that may wait. The assertion in [`Worker::step`] enforces the shard's part of
/// that.
#[derive(Debug)]
pub struct Worker {
    shard: Shard,
    end: ShardEnd,
    outbox: Outbox,
    /// The latest time passed to this worker.
    now: Timestamp,
    /// Facts received while the journal was closed, oldest first.
    facts: VecDeque<Command>,
    /// A command from the lanes for which the journal had no room yet.
    slot: Option<Command>,
    counts: WorkerCounts,
    /// Ports that received an event since [`Worker::take_wakeups`].
    wakeups: PortMask,
}

const _: () = {
    const fn is_plain<T: Copy>() {}
    is_plain::<Command>();
    is_plain::<Event>();
};

/// Counters of a worker since its start.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct WorkerCounts {
    /// Commands applied, including timers.
    pub commands: u64,
    pub timers: u64,
    /// Steps that continued an earlier command.
    pub resumed: u64,
    /// Events delivered, once for each port.
    pub events: u64,
    /// Polls that ended at a full lane.
    pub stalls: u64,
    /// Polls that ended because too much waited to be stored, or the journal had no room yet.
    pub waits: u64,
    /// Commands refused because the journal did not take them.
    pub refused: u64,
    /// Prices dropped for the same reason.
    pub dropped: u64,
}

impl Worker {
    pub fn new(shard: Shard, end: ShardEnd) -> Worker {
        Worker::restored(shard, end, 0, Timestamp::ZERO)
    }

    /// Creates a worker for a recovered shard: its last event had this number, its last command
    /// this time.
    pub fn restored(shard: Shard, end: ShardEnd, seq: u64, now: Timestamp) -> Worker {
        assert_eq!(shard.id(), end.id(), "a shard works at its own end of the mesh");
        Worker {
            shard,
            end,
            outbox: Outbox::for_waiting(seq),
            now,
            facts: VecDeque::with_capacity(FACTS_QUEUED_MAX),
            slot: None,
            counts: WorkerCounts::default(),
            wakeups: PortMask::NONE,
        }
    }

    /// Returns the shard between polls: for its digest, or its encoding if it has no work.
    pub fn shard(&self) -> &Shard {
        &self.shard
    }

    /// Sets the ports that receive the events of every order, see [`Shard::set_copies`].
    pub fn set_copies(&mut self, ports: PortMask) {
        self.shard.set_copies(ports);
    }

    /// Stages reference data, see [`Shard::stage`].
    pub fn stage(&mut self, name: u64, reference: Arc<RefData>) {
        self.shard.stage(name, reference);
    }

    /// Returns the shard and its lanes. Undelivered events are lost.
    pub fn into_parts(self) -> (Shard, ShardEnd) {
        (self.shard, self.end)
    }

    pub fn counts(&self) -> WorkerCounts {
        self.counts
    }

    /// Returns the ports that received an event since the last call: the caller wakes those that
    /// sleep.
    pub fn take_wakeups(&mut self) -> PortMask {
        std::mem::replace(&mut self.wakeups, PortMask::NONE)
    }

    /// Returns the ports whose lanes are full, so that nothing continues before they have read.
    /// Usually none.
    pub fn blocked_ports(&mut self) -> PortMask {
        if !self.outbox.is_ready() {
            return PortMask::NONE;
        }
        self.outbox.front_mut().map_or(PortMask::NONE, |(ports, _)| *ports)
    }

    /// Returns the number of the last event.
    pub fn seq(&self) -> u64 {
        self.outbox.seq()
    }

    /// Returns whether there is work that needs no new command: events wait for room or to be
    /// stored, or a command is half done.
    pub fn has_work(&self) -> bool {
        !self.outbox.is_empty()
            || self.shard.has_work()
            || self.shard.has_background()
            || self.shard.has_depths()
            || !self.facts.is_empty()
            || self.slot.is_some()
    }

    /// Returns the time at which this worker must be polled even if no command arrives.
    pub fn deadline(&self) -> Option<Timestamp> {
        self.shard.deadline()
    }

    /// Does a bounded amount of work and returns how much. Nothing is stored and no event waits.
    pub fn poll(&mut self, now: Timestamp) -> usize {
        self.poll_with(now, ALL_STORED, |_, _, _, _| JournalOutcome::Accepted)
    }

    /// Does the same with a journal.
    ///
    /// `journal` is offered each command, before it is applied, with its number, its time and the
    /// shard as it is before it. Numbers are those of [`Shard::applied`]: consecutive, and a new
    /// start has one too. Applying the same commands at the same times to an equal shard emits the
    /// same events.
    ///
    /// `stored` is the highest number whose events may be delivered: events of later commands are
    /// held back, while further commands are applied as long as there is room for their events.
    /// With [`ALL_STORED`] nothing is ever held.
    ///
    /// A command that the journal does not take does not change the shard. Its source is answered
    /// with [`Reason::StorageFailed`]; prices are dropped; reports of venues and of the budget are
    /// queued; the timer is repeated. The journal decides which commands may use a last reserve
    /// (cancels, the kill switch): it is offered every one.
    pub fn poll_with(
        &mut self,
        now: Timestamp,
        stored: u64,
        mut journal: impl FnMut(u64, Timestamp, &Command, &Shard) -> JournalOutcome,
    ) -> usize {
        // A clock that was set back must not reverse the order of time.
        self.now = self.now.max(now);
        self.outbox.release(stored);
        let mut work = self.deliver();
        let mut deferred = DeferredSources::default();
        for _ in 0..STEPS_PER_POLL_MAX {
            if self.outbox.is_ready() {
                self.counts.stalls += 1;
                break;
            }
            if !self.outbox.has_room() {
                self.counts.waits += 1;
                break;
            }
            if !self.step(stored, &mut deferred, &mut journal) {
                break;
            }
            work += 1 + self.deliver();
        }
        if self.shard.has_depths() {
            work += self.emit_depths(stored);
        }
        work
    }

    /// Publishes the books that have changed in this poll, once each, to their watchers. Not while
    /// a command is half done, nor where it would take the room that commands need.
    #[cold]
    fn emit_depths(&mut self, stored: u64) -> usize {
        let is_crowded = self.outbox.is_ready() || self.outbox.waiting().len() > EVENTS_WAITING_MAX / 2;
        if self.shard.has_work() || is_crowded || !self.outbox.has_room() {
            return 0;
        }
        self.shard.emit_depths(&mut self.outbox);
        self.outbox.end_step(self.shard.applied(), stored);
        1 + self.deliver()
    }

    /// Does one step of the shard, if there is one.
    fn step(
        &mut self,
        stored: u64,
        deferred: &mut DeferredSources,
        journal: &mut impl FnMut(u64, Timestamp, &Command, &Shard) -> JournalOutcome,
    ) -> bool {
        let before = self.outbox.waiting().len();
        if self.shard.has_work() {
            self.counts.resumed += 1;
            self.shard.resume(&mut self.outbox);
        } else if let Some((command, source)) = self.next_command(deferred) {
            if !command.body.is_stored() {
                self.shard.apply_unstored(&command.body);
                return true;
            }
            let number = self.shard.applied() + 1;
            // Facts keep their order: none overtakes the queued ones.
            let waits = source == CommandSource::Lanes && !self.facts.is_empty() && is_fact(&command.body);
            let taken = if waits {
                JournalOutcome::Refused
            } else {
                journal(number, self.now, &command, &self.shard)
            };
            match taken {
                JournalOutcome::Accepted => {
                    self.counts.commands += 1;
                    self.pass(source);
                    self.look_ahead();
                    self.shard.apply(self.now, &command, &mut self.outbox);
                }
                JournalOutcome::Refused => self.handle_refused_by_journal(&command, source, deferred),
                JournalOutcome::Retry => {
                    self.counts.waits += 1;
                    if source == CommandSource::Lanes {
                        self.slot = Some(command);
                    }
                    return false;
                }
            }
        } else if self.shard.has_background() {
            self.shard.resume(&mut self.outbox);
        } else {
            return false;
        }
        assert!(
            self.outbox.waiting().len() - before <= EVENTS_PER_COMMAND_MAX,
            "a step emits no more than the outbox has room for"
        );
        // The content of a snapshot depends on the last command.
        self.outbox.end_step(self.shard.applied(), stored);
        true
    }

    /// Prefetches memory for the two commands behind the one that is about to be applied.
    #[inline]
    fn look_ahead(&mut self) {
        let shard = &self.shard;
        self.end.look_ahead(2, |distance, command| match distance {
            0 => shard.prefetch_near(command),
            _ => shard.prefetch_far(command),
        });
    }

    #[inline]
    fn next_command(&mut self, deferred: &DeferredSources) -> Option<(Command, CommandSource)> {
        if !deferred.clock && self.shard.deadline().is_some_and(|deadline| deadline <= self.now) {
            return Some((TIMER, CommandSource::Clock));
        }
        if !self.facts.is_empty() {
            if !deferred.facts {
                return self.facts.front().map(|&fact| (fact, CommandSource::Queued));
            }
            if self.facts.len() == FACTS_QUEUED_MAX {
                return None;
            }
        }
        let next = self.slot.take().or_else(|| self.end.poll_command());
        next.map(|command| (command, CommandSource::Lanes))
    }

    #[inline]
    fn pass(&mut self, source: CommandSource) {
        match source {
            CommandSource::Clock => self.counts.timers += 1,
            CommandSource::Queued => drop(self.facts.pop_front()),
            CommandSource::Lanes => {}
        }
    }

    /// Handles a command that the journal did not take.
    #[cold]
    fn handle_refused_by_journal(
        &mut self,
        command: &Command,
        source: CommandSource,
        deferred: &mut DeferredSources,
    ) {
        match (source, &command.body) {
            (CommandSource::Clock, _) => deferred.clock = true,
            (CommandSource::Queued, _) => deferred.facts = true,
            (CommandSource::Lanes, body) if is_fact(body) => {
                deferred.facts = true;
                self.facts.push_back(*command);
            }
            // Special terms have no answer of their own: the request behind them has one.
            (
                CommandSource::Lanes,
                CommandKind::SpecialTerms(_)
                | CommandKind::Quote { .. }
                | CommandKind::Trade { .. }
                | CommandKind::Tick { .. }
                | CommandKind::Level { .. }
                | CommandKind::VenueBook { .. },
            ) => {
                self.counts.dropped += 1;
            }
            (CommandSource::Lanes, _) => self.refuse(command),
        }
    }

    /// Answers a command that was not stored. The answer has no number of its own, since a replay
    /// will not repeat it.
    fn refuse(&mut self, command: &Command) {
        self.counts.refused += 1;
        let (to, reason) = (PortMask::one(command.source.port), Reason::StorageFailed);
        let Some((order, id)) = command.body.request() else {
            // It exposes nothing of earlier commands, so it need not wait for them to be stored.
            let body = refusal(command, reason);
            return self.outbox.emit_before_held(to, self.now, body);
        };
        // This refusal exposes the order's status, which may depend on commands that are not
        // durable yet.
        let is_cancel = matches!(command.body, CommandKind::Cancel { .. });
        let request = if is_cancel { RequestKind::Cancel } else { RequestKind::Replace };
        let refusal = self.shard.refusal(order, request, id, command.source, reason);
        self.outbox.emit_unnumbered(to, self.now, EventKind::Refused(refusal));
    }

    /// Delivers events in order, each to those of its ports that have room. An event that is not
    /// fully delivered stops all behind it: every port receives the events in the same order.
    fn deliver(&mut self) -> usize {
        let mut handed = 0;
        // Orders of an earlier process may have come from a port that this process does not have.
        let all = self.end.ports();
        while let Some((ports, event)) = self.outbox.front_mut() {
            *ports = ports.and(all);
            for port in ports.ports() {
                if self.end.send(port, *event).is_ok() {
                    *ports = ports.without(PortMask::one(port));
                    self.wakeups = self.wakeups.with(PortMask::one(port));
                    handed += 1;
                }
            }
            if !ports.is_empty() {
                break;
            }
            self.outbox.pop_front();
        }
        self.counts.events += handed as u64;
        handed
    }
}

/// Origin of a command.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum CommandSource {
    Lanes,
    Clock,
    /// A fact received while the journal was closed.
    Queued,
}

/// Sources whose commands the journal has not taken in this poll; they are not offered again before
/// the next.
#[derive(Clone, Copy, Debug, Default)]
struct DeferredSources {
    clock: bool,
    facts: bool,
}

/// Returns whether it has happened elsewhere, so that it cannot be refused here.
fn is_fact(body: &CommandKind) -> bool {
    matches!(
        body,
        CommandKind::Report { .. }
            | CommandKind::Adapter { .. }
            | CommandKind::Budget(_)
            | CommandKind::Sender { .. }
            | CommandKind::VenueBook { is_known: false, .. }
    )
}

/// Returns the answer to a command about no existing order.
pub fn refusal(command: &Command, reason: Reason) -> EventKind {
    let source = command.source;
    let (id, terms) = if let CommandKind::Submit { id, terms } = command.body {
        (id, terms)
    } else if let CommandKind::Close { id, strategy, account, security, qty } = command.body {
        (id, Terms { qty, security, strategy, account, reduce_only: true, ..Terms::default() })
    } else {
        return EventKind::Done { source, token: command.token, reason };
    };
    EventKind::Order(OrderTerms {
        order: OrderHandle::NONE,
        id,
        orig_id: IntId::NONE,
        source,
        what: ExecType::Rejected,
        status: Status::Rejected,
        reason,
        sender: command.sender,
        terms,
    })
}

/// The clock's command has no client: its events have recipients of their own.
const TIMER: Command =
    Command::new(Source { origin: Origin::Server, port: PortId(0), session: 0 }, 0, CommandKind::Timer);
