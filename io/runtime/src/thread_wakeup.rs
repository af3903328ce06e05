//! The wake-up of one thread, bound to its target when the thread starts.

use std::sync::{Arc, OnceLock};
use std::thread::{self, Thread};

use crate::wakeup::Wakeup;

/// Wake-up slot of a thread. It can be handed out before the thread exists; it is only triggered
/// while the thread is parked.
#[derive(Clone, Debug, Default)]
pub struct ThreadWakeup {
    target: Arc<OnceLock<WakeTarget>>,
}

#[derive(Debug)]
enum WakeTarget {
    Thread(Thread),
    /// The thread waits in the poller of its sockets.
    Sockets(Wakeup),
}

impl ThreadWakeup {
    pub fn wakeup(&self) -> Wakeup {
        let target = self.target.clone();
        Wakeup::new(move || match target.get() {
            Some(WakeTarget::Thread(thread)) => thread.unpark(),
            Some(WakeTarget::Sockets(wakeup)) => wakeup.call(),
            None => {}
        })
    }

    /// Binds the slot to the calling thread, or to its sockets if it waits there. A thread calls
    /// this before it first parks.
    pub fn bind_current_thread(&self, sockets: Option<Wakeup>) {
        let _ = self.target.set(match sockets {
            Some(wakeup) => WakeTarget::Sockets(wakeup),
            None => WakeTarget::Thread(thread::current()),
        });
    }
}
