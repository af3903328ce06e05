//! A shard's duty: its worker with its journal, latency samples, and the wake-ups of the ports it
//! sent events to.

use std::sync::Arc;

use pitlane_engine::command::CommandKind;
use pitlane_engine::id::PortMask;
use pitlane_engine::time::Timestamp;
use pitlane_engine::worker::{ALL_STORED, JournalOutcome, Worker};
use pitlane_journal::Writer;
use pitlane_runtime::fault_injection;
use pitlane_runtime::lifecycle::LifecyclePhase;
use pitlane_runtime::mailbox::MailboxReceiver;
use pitlane_runtime::metrics::Registry;
use pitlane_runtime::stages::{LatencyRecorder, LatencyStage};
use pitlane_runtime::wakeups::Wakeups;

use super::reload::ReloadedRefData;

#[derive(Debug)]
pub struct ShardDuty {
    worker: Worker,
    journaling: CommandJournaling,
    wakeups: Arc<Wakeups>,
    registry: Arc<Registry>,
    /// Ports whose lanes were full after the last cycle.
    blocked: PortMask,
    /// Whether all events are sent and no more commands are accepted.
    closed: bool,
}

/// Journal and latency recorder of the shard's commands.
#[derive(Debug)]
pub struct CommandJournaling {
    /// `None` if commands are not journaled.
    pub journal: Option<Writer>,
    /// `None` if latencies are not recorded.
    pub recorder: Option<LatencyRecorder>,
    /// Mailbox of new reference data, which arrive ahead of the command that makes them effective;
    /// `None` if there are never any.
    pub reloads: Option<MailboxReceiver<ReloadedRefData>>,
}

impl ShardDuty {
    pub fn new(
        worker: Worker,
        journaling: CommandJournaling,
        wakeups: Arc<Wakeups>,
        registry: Arc<Registry>,
    ) -> ShardDuty {
        ShardDuty { worker, journaling, wakeups, registry, blocked: PortMask::NONE, closed: false }
    }

    /// Sets the ports that receive the events of every order.
    pub fn set_copies(&mut self, ports: PortMask) {
        self.worker.set_copies(ports);
    }

    /// Does a bounded amount of work and returns its amount.
    pub fn poll(&mut self, now: Timestamp, phase: LifecyclePhase) -> usize {
        if self.closed {
            return 0;
        }
        let work = self.journaling.poll(&mut self.worker, now);
        self.wakeups.wake_ports(self.worker.take_wakeups());
        self.wake_slow_readers();
        if work > 0 {
            let shard = self.worker.shard().id().0 as usize;
            self.registry.shards[shard].publish(&self.worker.counts());
        }
        // All senders have closed before, so these commands were the last.
        self.closed = phase >= LifecyclePhase::Draining && work == 0 && !self.worker.has_work();
        work
    }

    /// Wakes the threads whose lanes are full, once: they may have parked for a short time.
    fn wake_slow_readers(&mut self) {
        let blocked = self.worker.blocked_ports();
        if blocked != self.blocked {
            self.wakeups.call_ports(blocked.without(self.blocked));
            self.blocked = blocked;
        }
    }

    /// Returns whether this shard cannot continue before another thread drains its lane.
    pub fn is_held_up(&self) -> bool {
        !self.blocked.is_empty()
    }

    pub fn is_done(&self, phase: LifecyclePhase) -> bool {
        phase < LifecyclePhase::Draining || self.closed
    }

    /// Returns whether something waits for a free slot of a lane or for the journal.
    pub fn is_waiting(&self) -> bool {
        !self.closed && self.worker.has_work()
    }

    pub fn deadline(&self) -> Timestamp {
        let timers = self.worker.deadline().filter(|_| !self.closed).unwrap_or(Timestamp::MAX);
        timers.min(self.journaling.recorder.as_ref().map_or(Timestamp::MAX, LatencyRecorder::deadline))
    }
}

impl CommandJournaling {
    /// Polls the worker. Each command is journaled before it is applied, and some are timed. A
    /// command is applied when the next is taken, or when the poll ends.
    fn poll(&mut self, worker: &mut Worker, now: Timestamp) -> usize {
        let CommandJournaling { journal, recorder, reloads } = self;
        while let Some(ReloadedRefData { name, reference, .. }) =
            reloads.as_mut().and_then(MailboxReceiver::poll)
        {
            worker.stage(name, reference);
        }
        let stored = journal.as_ref().map_or(ALL_STORED, Writer::stored);
        let mut applying = None;
        let mut work = worker.poll_with(now, stored, |number, now, command, shard| {
            // The data were sent before the command, so they are here in the next cycle.
            if matches!(command.body, CommandKind::Reference { name } if !shard.has_staged(name)) {
                return JournalOutcome::Retry;
            }
            let mut timed = None;
            if let Some(recorder) = recorder.as_mut() {
                if let Some(journaled) = applying.take() {
                    recorder.count(LatencyStage::Apply, journaled, recorder.stamp());
                }
                timed = recorder.sample();
            }
            let taken = match journal.as_mut() {
                Some(journal) => {
                    let taken = journal.take(number, now, command, shard);
                    if taken == JournalOutcome::Accepted {
                        fault_injection::after_write();
                    }
                    taken
                }
                None => JournalOutcome::Accepted,
            };
            if let Some((recorder, begun)) = recorder.as_mut().zip(timed)
                && taken == JournalOutcome::Accepted
            {
                let journaled = recorder.stamp();
                recorder.count(LatencyStage::Journal, begun, journaled);
                applying = Some(journaled);
            }
            taken
        });
        if let Some(journal) = journal {
            work += journal.maintain();
        }
        if let Some(recorder) = recorder {
            if let Some(journaled) = applying {
                recorder.count(LatencyStage::Apply, journaled, recorder.stamp());
            }
            recorder.poll(now);
        }
        work
    }
}
