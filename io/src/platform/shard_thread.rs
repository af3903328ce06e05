//! A shard's duty: its worker with its journal, a stamp now and then, and the bells of those it spoke to.

use std::sync::Arc;

use pitlane_engine::command::CommandKind;
use pitlane_engine::id::PortMask;
use pitlane_engine::time::Timestamp;
use pitlane_engine::worker::{ALL_STORED, JournalOutcome, Worker};
use rtrb::Consumer;

use super::reread::Reread;
use crate::fault;
use crate::journal::Writer;
use crate::lifecycle::Course;
use crate::metrics::Registry;
use crate::stages::{Recorder, Stage};
use crate::wakeups::Wakeups;

#[derive(Debug)]
pub struct ShardDuty {
    worker: Worker,
    keeping: Keeping,
    bells: Arc<Wakeups>,
    registry: Arc<Registry>,
    /// Whose lanes were full after the last round.
    awaited: PortMask,
    /// All is said, and nothing is taken any more.
    closed: bool,
}

/// What is kept of the shard's commands: themselves, and how long they took.
#[derive(Debug)]
pub struct Keeping {
    /// None: nothing is journaled.
    pub journal: Option<Writer>,
    /// None: nothing is stamped.
    pub recorder: Option<Recorder>,
    /// New reference data, on their way ahead of the command that puts them into force; None: there never are any.
    pub news: Option<Consumer<Reread>>,
}

impl ShardDuty {
    pub fn new(worker: Worker, keeping: Keeping, bells: Arc<Wakeups>, registry: Arc<Registry>) -> ShardDuty {
        ShardDuty { worker, keeping, bells, registry, awaited: PortMask::NONE, closed: false }
    }

    /// Does a bounded amount of work and says how much.
    pub fn poll(&mut self, now: Timestamp, course: Course) -> usize {
        if self.closed {
            return 0;
        }
        let work = self.keeping.poll(&mut self.worker, now);
        self.bells.wake_ports(self.worker.take_wakeups());
        self.urge();
        if work > 0 {
            let shard = self.worker.shard().id().0 as usize;
            self.registry.shards[shard].publish(&self.worker.counts());
        }
        // Whoever could send has closed before, so what was taken was the last.
        self.closed = course >= Course::Draining && work == 0 && !self.worker.has_work();
        work
    }

    /// Calls those whose lanes are full, once: they may have lain down for a moment in the belief that there was time.
    fn urge(&mut self) {
        let awaited = self.worker.blocked_ports();
        if awaited != self.awaited {
            self.bells.call_ports(awaited.without(self.awaited));
            self.awaited = awaited;
        }
    }

    /// Whether somebody must listen before anything goes on here.
    pub fn is_held_up(&self) -> bool {
        !self.awaited.is_empty()
    }

    pub fn is_done(&self, course: Course) -> bool {
        course < Course::Draining || self.closed
    }

    /// Whether something waits for room, on a lane or in the journal.
    pub fn is_waiting(&self) -> bool {
        !self.closed && self.worker.has_work()
    }

    pub fn deadline(&self) -> Timestamp {
        let timers = self.worker.deadline().filter(|_| !self.closed).unwrap_or(Timestamp::MAX);
        timers.min(self.keeping.recorder.as_ref().map_or(Timestamp::MAX, Recorder::deadline))
    }
}

impl Keeping {
    /// A poll in which each command is journaled before it is applied, and some are timed. One is applied when the next is
    /// taken, or when the poll ends.
    fn poll(&mut self, worker: &mut Worker, now: Timestamp) -> usize {
        let Keeping { journal, recorder, news } = self;
        while let Some(Reread { name, reference, .. }) = news.as_mut().and_then(|news| news.pop().ok()) {
            worker.stage(name, reference);
        }
        let stored = journal.as_ref().map_or(ALL_STORED, Writer::stored);
        let mut applying = None;
        let mut work = worker.poll_with(now, stored, |number, now, command, shard| {
            // They were sent before it, so they are here in the next round.
            if matches!(command.body, CommandKind::Reference { name } if !shard.has_staged(name)) {
                return JournalOutcome::Retry;
            }
            let mut timed = None;
            if let Some(recorder) = recorder.as_mut() {
                if let Some(journaled) = applying.take() {
                    recorder.count(Stage::Apply, journaled, recorder.stamp());
                }
                timed = recorder.sample();
            }
            let taken = match journal.as_mut() {
                Some(journal) => {
                    let taken = journal.take(number, now, command, shard);
                    if taken == JournalOutcome::Accepted {
                        fault::after_write();
                    }
                    taken
                }
                None => JournalOutcome::Accepted,
            };
            if let Some((recorder, begun)) = recorder.as_mut().zip(timed)
                && taken == JournalOutcome::Accepted
            {
                let journaled = recorder.stamp();
                recorder.count(Stage::Journal, begun, journaled);
                applying = Some(journaled);
            }
            taken
        });
        if let Some(journal) = journal {
            work += journal.tend();
        }
        if let Some(recorder) = recorder {
            if let Some(journaled) = applying {
                recorder.count(Stage::Apply, journaled, recorder.stamp());
            }
            recorder.poll(now);
        }
        work
    }
}
