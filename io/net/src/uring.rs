//! The io_uring driver: bytes are received before they are asked for, and all sends of a cycle
//! leave in one system call.
//!
//! ```text
//! receive (armed once) ─► buffers of the ring ─► read            write ─► staged ─► send, at the end of the cycle
//! ```
//!
//! `sockets` has the state of each socket, `receiving` and `sending` its two directions, `stream`
//! is the end that a connection holds. The ring itself, with the buffers that the kernel uses, is
//! `pitlane_sys::ring`.

mod receiving;
mod sending;
mod sockets;
mod stream;
#[cfg(test)]
mod tests;
mod watch;

use std::cell::RefCell;
use std::io;
use std::net::{TcpListener, TcpStream};
use std::rc::Rc;
use std::time::Duration;

use pitlane_runtime::wakeup::Wakeup;
use pitlane_sys::ring::{Ring, RingSettings};

use self::sockets::RingSockets;
use super::busy_poll::BusyPolling;
use super::token::ReadyToken;

pub(super) use self::stream::UringStream;
pub(super) use self::watch::UringWatch;

/// Sizes of a gateway's ring. A burst takes more calls where the queues are too short, and sockets
/// wait for each other where the buffers are too few.
const SIZES: RingSettings =
    RingSettings { submissions: 1_024, completions: 4_096, buffers: 512, buffer_bytes: 8 * 1024 };

pub(super) struct Uring {
    sockets: Rc<RefCell<RingSockets>>,
    wakeup: Wakeup,
    /// Reused list of what is ready in a cycle.
    ready: Vec<ReadyToken>,
}

impl Uring {
    /// Opens the driver, and returns it with the reason why it does not poll network cards; or
    /// returns the reason why it cannot be used.
    pub(super) fn open(busy_polling: Option<BusyPolling>) -> Result<(Uring, Option<String>), String> {
        Uring::with_sizes(SIZES, busy_polling).map_err(|error| error.to_string())
    }

    fn with_sizes(
        sizes: RingSettings,
        busy_polling: Option<BusyPolling>,
    ) -> io::Result<(Uring, Option<String>)> {
        let ring = Ring::open(sizes)?;
        let refused = busy_polling.and_then(|wanted| {
            let error = ring.set_busy_poll(wanted.usecs, wanted.prefer).err()?;
            Some(format!("the kernel does not poll network cards for io_uring ({error})"))
        });
        let mut sockets = RingSockets::new(ring);
        let wakeup = watch::wakeup(&mut sockets)?;
        let sockets = Rc::new(RefCell::new(sockets));
        Ok((Uring { sockets, wakeup, ready: Vec::new() }, refused))
    }

    pub(super) fn registrar(&self) -> UringRegistrar {
        UringRegistrar { sockets: Rc::clone(&self.sockets) }
    }

    pub(super) fn wakeup(&self) -> Wakeup {
        self.wakeup.clone()
    }

    /// Runs a cycle. Without news from the kernel it begins without a system call.
    pub(super) fn run_cycle<R>(&mut self, inside: impl FnOnce(&[ReadyToken]) -> R) -> R {
        let Uring { sockets, ready, .. } = self;
        sockets.borrow_mut().poll(ready);
        let result = inside(ready);
        ready.clear();
        sockets.borrow_mut().flush();
        result
    }

    pub(super) fn wait(&mut self, at_most: Duration) {
        self.sockets.borrow_mut().wait(at_most);
    }
}

/// Returns whether the kernel grants a ring, or the reason why not: creates a small one and frees
/// it at once.
pub(super) fn probe() -> Result<(), String> {
    let sizes = RingSettings { submissions: 1, completions: 2, buffers: 1, buffer_bytes: 1 };
    Ring::open(sizes).map(drop).map_err(|error| error.to_string())
}

pub(super) struct UringRegistrar {
    sockets: Rc<RefCell<RingSockets>>,
}

impl UringRegistrar {
    pub(super) fn attach(&self, token: usize, stream: TcpStream) -> UringStream {
        let key = self.sockets.borrow_mut().attach(token, stream.into());
        UringStream::new(Rc::clone(&self.sockets), key)
    }

    pub(super) fn watch(
        &self,
        token: usize,
        listener: &TcpListener,
        before: Option<UringWatch>,
    ) -> io::Result<UringWatch> {
        UringWatch::start(&self.sockets, token, listener, before)
    }
}
