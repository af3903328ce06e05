//! Wakes a thread that is blocked, and only then.
//!
//! ```text
//! sleeper: prepare_sleep() ─► look for work once more ─► none: block until called ─► finish_sleep()
//! others:  put work where the sleeper looks ─► wake(): calls only if the sleeper is blocked or about to block
//! ```
//!
//! Both sides write first and read afterwards, with a full fence between; so at least one of them
//! sees the other: either the sleeper finds the work, or the sender finds the sleeper. While no
//! thread is blocked, a wake-up costs one fence and one read, without a system call.
//! `tests/wake.rs` explores every interleaving.

use std::fmt;

use crate::sync::{Arc, AtomicBool, Ordering, fence};

/// The wake-up of one thread. The thread itself and all senders hold clones of it.
#[derive(Clone)]
pub struct Wakeup {
    shared: Arc<WakeupState>,
}

struct WakeupState {
    is_blocked: AtomicBool,
    /// Unblocks the thread: unparks it, writes to its poller, or notifies its runtime. A call that
    /// comes before the thread blocks must not be lost; all three mechanisms remember it.
    call: Box<dyn Fn() + Send + Sync>,
}

impl Wakeup {
    pub fn new(call: impl Fn() + Send + Sync + 'static) -> Wakeup {
        Wakeup { shared: Arc::new(WakeupState { is_blocked: AtomicBool::new(false), call: Box::new(call) }) }
    }

    /// Wakes the thread if it is blocked. Senders call this after they have put work where the
    /// thread looks for it.
    pub fn wake(&self) {
        wake_all([self]);
    }

    /// Unblocks the thread unconditionally: for a wake-up that forwards to this one, and for urgent
    /// requests such as full lanes.
    pub fn call(&self) {
        (self.shared.call)();
    }

    fn call_if_blocked(&self) {
        let is_blocked = &self.shared.is_blocked;
        // Of several concurrent senders, one makes the call.
        if is_blocked.load(Ordering::Relaxed)
            && is_blocked.compare_exchange(true, false, Ordering::Relaxed, Ordering::Relaxed).is_ok()
        {
            (self.shared.call)();
        }
    }

    /// Announces that the thread is about to block. The thread calls this before it looks for work
    /// a last time.
    pub fn prepare_sleep(&self) {
        self.shared.is_blocked.store(true, Ordering::Relaxed);
        fence(Ordering::SeqCst);
    }

    /// Withdraws the announcement. The thread calls this when it continues, woken or not.
    pub fn finish_sleep(&self) {
        self.shared.is_blocked.store(false, Ordering::Relaxed);
    }
}

/// Wakes several threads with a single fence.
pub fn wake_all<'a>(wakeups: impl IntoIterator<Item = &'a Wakeup>) {
    fence(Ordering::SeqCst);
    for wakeup in wakeups {
        wakeup.call_if_blocked();
    }
}

impl fmt::Debug for Wakeup {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Wakeup").field("dozing", &self.shared.is_blocked).finish()
    }
}
