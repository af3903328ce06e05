//! Waking a thread that sleeps, and only then.
//!
//! ```text
//! sleeper: doze() ─► look for work once more ─► none: block until called ─► rise()
//! others:  put work where the sleeper looks ─► wake(): calls only if it dozes
//! ```
//!
//! Both sides write first and read afterwards, with a full fence between; so at least one of them sees the other: either
//! the sleeper finds the work, or whoever brought it finds the sleeper. While nobody sleeps a wake-up costs one
//! fence and one read, no call to the system. `tests/wake.rs` walks through every order in which this can happen.

use std::fmt;

use crate::sync::{Arc, AtomicBool, Ordering, fence};

/// One thread's bell. Its own end and those of all others are clones of it.
#[derive(Clone)]
pub struct Wakeup {
    shared: Arc<Shared>,
}

struct Shared {
    dozing: AtomicBool,
    /// Ends the sleep: unparks the thread, writes to its poller, notifies its runtime. A call that comes before the
    /// thread blocks must not be lost; all of these remember it.
    call: Box<dyn Fn() + Send + Sync>,
}

impl Wakeup {
    pub fn new(call: impl Fn() + Send + Sync + 'static) -> Wakeup {
        Wakeup { shared: Arc::new(Shared { dozing: AtomicBool::new(false), call: Box::new(call) }) }
    }

    /// To be called by others after they have put work where the sleeper looks for it.
    pub fn wake(&self) {
        wake_all([self]);
    }

    /// Ends the sleep, whether it dozes or not: for whoever has a bell of his own before this one.
    pub fn call(&self) {
        (self.shared.call)();
    }

    fn call_if_dozing(&self) {
        let dozing = &self.shared.dozing;
        // Of several who come at once, one calls.
        if dozing.load(Ordering::Relaxed)
            && dozing.compare_exchange(true, false, Ordering::Relaxed, Ordering::Relaxed).is_ok()
        {
            (self.shared.call)();
        }
    }

    /// To be called by the sleeper, before it looks for work one last time.
    pub fn prepare_sleep(&self) {
        self.shared.dozing.store(true, Ordering::Relaxed);
        fence(Ordering::SeqCst);
    }

    /// To be called by the sleeper when it goes on, woken or not.
    pub fn finish_sleep(&self) {
        self.shared.dozing.store(false, Ordering::Relaxed);
    }
}

/// The same for several sleepers, for the price of one fence.
pub fn wake_all<'a>(bells: impl IntoIterator<Item = &'a Wakeup>) {
    fence(Ordering::SeqCst);
    for bell in bells {
        bell.call_if_dozing();
    }
}

impl fmt::Debug for Wakeup {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Wakeup").field("dozing", &self.shared.dozing).finish()
    }
}
