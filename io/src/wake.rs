//! Waking a thread that sleeps, and only then.
//!
//! ```text
//! sleeper: doze() ─► look for work once more ─► none: block until called ─► rise()
//! others:  put work where the sleeper looks ─► wake(): calls only if it dozes
//! ```
//!
//! Both sides write first and read afterwards, with a full fence between; so at least one of them sees the other: either
//! the sleeper finds the work, or whoever brought it finds the sleeper. While nobody sleeps a wake-up costs one
//! fence and one read, no call to the system.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering, fence};

/// One thread's bell. Its own end and those of all others are clones of it.
#[derive(Clone)]
pub struct Bell {
    shared: Arc<Shared>,
}

struct Shared {
    dozing: AtomicBool,
    /// Ends the sleep: unparks the thread, writes to its poller, notifies its runtime. A call that comes before the
    /// thread blocks must not be lost; all of these remember it.
    call: Box<dyn Fn() + Send + Sync>,
}

impl Bell {
    pub fn new(call: impl Fn() + Send + Sync + 'static) -> Bell {
        Bell { shared: Arc::new(Shared { dozing: AtomicBool::new(false), call: Box::new(call) }) }
    }

    /// To be called by others after they have put work where the sleeper looks for it.
    pub fn wake(&self) {
        fence(Ordering::SeqCst);
        if self.shared.dozing.load(Ordering::Relaxed) && self.shared.dozing.swap(false, Ordering::Relaxed) {
            (self.shared.call)();
        }
    }

    /// To be called by the sleeper, before it looks for work one last time.
    pub fn doze(&self) {
        self.shared.dozing.store(true, Ordering::Relaxed);
        fence(Ordering::SeqCst);
    }

    /// To be called by the sleeper when it goes on, woken or not.
    pub fn rise(&self) {
        self.shared.dozing.store(false, Ordering::Relaxed);
    }
}

impl fmt::Debug for Bell {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Bell").field("dozing", &self.shared.dozing).finish()
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::AtomicU32;

    use super::*;

    #[test]
    fn only_a_dozing_thread_is_called_and_only_once() {
        let calls = Arc::new(AtomicU32::new(0));
        let counter = calls.clone();
        let bell = Bell::new(move || {
            counter.fetch_add(1, Ordering::Relaxed);
        });
        let others = bell.clone();
        others.wake();
        assert_eq!(calls.load(Ordering::Relaxed), 0);
        bell.doze();
        others.wake();
        others.wake();
        assert_eq!(calls.load(Ordering::Relaxed), 1);
        bell.doze();
        bell.rise();
        others.wake();
        assert_eq!(calls.load(Ordering::Relaxed), 1);
    }
}
