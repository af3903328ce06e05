//! How other threads reach this one: a wake-up for events, and the two steps of the shutdown.

use std::sync::Arc;
use std::sync::atomic::{AtomicU8, AtomicU64, Ordering};

use pitlane_runtime::wakeup::Wakeup;
use tokio::sync::Notify;

/// Handle of the http thread, created before the thread and shared by all.
#[derive(Clone, Debug)]
pub struct Remote {
    wakeup: Wakeup,
    events: Arc<Notify>,
    shutdown: Arc<ShutdownState>,
    /// Signs of life of the thread since its start.
    signs: Arc<AtomicU64>,
}

#[derive(Debug, Default)]
struct ShutdownState {
    step: AtomicU8,
    changed: Notify,
}

const CLOSING: u8 = 1;
const ENDED: u8 = 2;

impl Remote {
    pub fn new() -> Remote {
        let events = Arc::new(Notify::new());
        let call = events.clone();
        let wakeup = Wakeup::new(move || call.notify_one());
        Remote { wakeup, events, shutdown: Arc::default(), signs: Arc::default() }
    }

    /// Returns the wake-up that a thread triggers after it has put events on this thread's lanes.
    pub fn wakeup(&self) -> &Wakeup {
        &self.wakeup
    }

    /// Returns the number of signs of life of the http thread, which gives one each second.
    pub fn signs_of_life(&self) -> u64 {
        self.signs.load(Ordering::Relaxed)
    }

    pub(super) fn give_sign_of_life(&self) {
        self.signs.fetch_add(1, Ordering::Relaxed);
    }

    /// Stops accepting connections; open ones finish their current request. Events are handled
    /// until the end.
    pub fn close(&self) {
        self.step(CLOSING);
    }

    /// Ends the thread, whatever is still open.
    pub fn end(&self) {
        self.step(ENDED);
    }

    fn step(&self, step: u8) {
        self.shutdown.step.fetch_max(step, Ordering::Release);
        self.shutdown.changed.notify_one();
    }

    pub(super) fn is_closing(&self) -> bool {
        self.shutdown.step.load(Ordering::Acquire) >= CLOSING
    }

    pub(super) async fn closing(&self) {
        self.reached(CLOSING).await;
    }

    pub(super) async fn ended(&self) {
        self.reached(ENDED).await;
    }

    /// Waits for a step. Only one task waits at a time, and a notification before it waits is
    /// stored.
    async fn reached(&self, step: u8) {
        while self.shutdown.step.load(Ordering::Acquire) < step {
            self.shutdown.changed.notified().await;
        }
    }

    /// Waits until the wake-up is triggered.
    pub(super) async fn woken(&self) {
        self.events.notified().await;
    }
}

impl Default for Remote {
    fn default() -> Remote {
        Remote::new()
    }
}
