//! How other threads reach this one: a bell for events, and the two steps of the end.

use std::sync::Arc;
use std::sync::atomic::{AtomicU8, Ordering};

use tokio::sync::Notify;

use crate::wakeup::Wakeup;

/// Made before the thread, held by everybody.
#[derive(Clone, Debug)]
pub struct Remote {
    bell: Wakeup,
    events: Arc<Notify>,
    course: Arc<Course>,
}

#[derive(Debug, Default)]
struct Course {
    step: AtomicU8,
    changed: Notify,
}

const CLOSING: u8 = 1;
const ENDED: u8 = 2;

impl Remote {
    pub fn new() -> Remote {
        let events = Arc::new(Notify::new());
        let call = events.clone();
        Remote { bell: Wakeup::new(move || call.notify_one()), events, course: Arc::default() }
    }

    /// To be rung by whoever has put events on this thread's lanes.
    pub fn bell(&self) -> &Wakeup {
        &self.bell
    }

    /// No new connections; those that are there finish what they are at. Events are heard until the end.
    pub fn close(&self) {
        self.step(CLOSING);
    }

    /// The thread ends, whatever is still open.
    pub fn end(&self) {
        self.step(ENDED);
    }

    fn step(&self, step: u8) {
        self.course.step.fetch_max(step, Ordering::Release);
        self.course.changed.notify_one();
    }

    pub(super) fn is_closing(&self) -> bool {
        self.course.step.load(Ordering::Acquire) >= CLOSING
    }

    pub(super) async fn closing(&self) {
        self.reached(CLOSING).await;
    }

    pub(super) async fn ended(&self) {
        self.reached(ENDED).await;
    }

    /// Only one task waits at a time, and a call before it waits is remembered.
    async fn reached(&self, step: u8) {
        while self.course.step.load(Ordering::Acquire) < step {
            self.course.changed.notified().await;
        }
    }

    /// Until the bell is rung.
    pub(super) async fn rung(&self) {
        self.events.notified().await;
    }
}

impl Default for Remote {
    fn default() -> Remote {
        Remote::new()
    }
}
