//! A shard's duty: its worker, with a stamp now and then, and the bells of those it spoke to.

use std::sync::Arc;

use pitlane_engine::time::Timestamp;
use pitlane_engine::worker::{ALL_STORED, Taken, Worker};

use crate::stages::{Recorder, Stage};
use crate::topology::bells::Bells;
use crate::topology::life::Course;

#[derive(Debug)]
pub struct ShardDuty {
    worker: Worker,
    bells: Arc<Bells>,
    /// None: nothing is stamped.
    recorder: Option<Recorder>,
    /// All is said, and nothing is taken any more.
    closed: bool,
}

impl ShardDuty {
    pub fn new(worker: Worker, bells: Arc<Bells>, recorder: Option<Recorder>) -> ShardDuty {
        ShardDuty { worker, bells, recorder, closed: false }
    }

    /// Does a bounded amount of work and says how much.
    pub fn poll(&mut self, now: Timestamp, course: Course) -> usize {
        if self.closed {
            return 0;
        }
        let work = match &mut self.recorder {
            None => self.worker.poll(now),
            Some(recorder) => poll_stamped(&mut self.worker, recorder, now),
        };
        self.bells.wake_ports(self.worker.take_called());
        // Whoever could send has closed before, so what was taken was the last.
        self.closed = course >= Course::Draining && work == 0 && !self.worker.has_work();
        work
    }

    pub fn is_done(&self, course: Course) -> bool {
        course < Course::Draining || self.closed
    }

    /// Whether something said waits for room.
    pub fn is_waiting(&self) -> bool {
        !self.closed && self.worker.has_work()
    }

    pub fn deadline(&self) -> Timestamp {
        let timers = self.worker.deadline().filter(|_| !self.closed).unwrap_or(Timestamp::MAX);
        timers.min(self.recorder.as_ref().map_or(Timestamp::MAX, Recorder::deadline))
    }
}

/// A poll of which some commands are timed. One is done when the next is taken, or when the poll ends.
fn poll_stamped(worker: &mut Worker, recorder: &mut Recorder, now: Timestamp) -> usize {
    let mut applying = None;
    let work = worker.poll_with(now, ALL_STORED, |_, _, _, _| {
        if let Some(journaled) = applying.take() {
            recorder.count(Stage::Apply, journaled, recorder.stamp());
        }
        applying = recorder.sample();
        Taken::Yes
    });
    if let Some(journaled) = applying {
        recorder.count(Stage::Apply, journaled, recorder.stamp());
    }
    recorder.poll(now);
    work
}
