//! Sockets for gateway threads: TCP and TLS without a runtime, under a duty cycle.
//!
//! ```text
//! loop {
//!     gateway.drain_lanes(net.sockets());                                   what shards say, appended to outputs
//!     work = net.turn(now, |sockets, happening| gateway.handle(…));         read, handle, write
//!     if work == 0 { bell.doze(); look once more; net.wait(now, …); bell.rise() }
//! }
//! ```
//!
//! Sessions are the gateway's; here are only bytes. Reading order: [`settings`], [`happening`], [`sockets`], then what it is made of;
//! last the seam to the system, `driver`, with `epoll` and `uring` behind it.

pub mod settings;
pub mod event;
pub mod sockets;
mod cycle;
mod connection;
mod tls;
mod input;
mod output;
mod slab;
mod deadlines;
mod connection_limits;
pub mod counts;
pub mod listener;
pub mod detached;
mod driver;
mod epoll;
#[cfg(all(feature = "uring", target_os = "linux"))]
mod uring;

use std::io;
use std::time::Duration;

use pitlane_engine::time::Timestamp;

use crate::wakeup::Wakeup;

use self::driver::Driver;
use self::event::SocketEvent;
use self::listener::{Listener, ListenerId};
use self::settings::{DriverKind, NetSettings};
use self::sockets::Sockets;

pub use self::driver::NOT_BUILT;
pub use self::slab::ConnectionId;

/// The sockets of one thread, with their driver. Made on the thread that uses it.
pub struct Net {
    // Dropped before the driver, to which its streams belong.
    sockets: Sockets,
    driver: Driver,
    fallback: Option<String>,
}

impl Net {
    pub fn open(settings: NetSettings) -> io::Result<Net> {
        let (driver, fallback) = Driver::open(settings.driver)?;
        let sockets = Sockets::new(settings, driver.registrar()?);
        Ok(Net { sockets, driver, fallback })
    }

    /// The one that runs, which may not be the one that was asked for.
    pub fn driver(&self) -> DriverKind {
        self.driver.kind()
    }

    /// One line for the log: why io_uring was asked for and epoll runs.
    pub fn fallback(&self) -> Option<&str> {
        self.fallback.as_deref()
    }

    /// Ends a [`Net::wait`] from any thread.
    pub fn bell(&self) -> Wakeup {
        self.driver.bell()
    }

    /// Accepts from this listener from the next turn on.
    pub fn listen(&mut self, listener: Listener) -> ListenerId {
        self.sockets.listen(listener)
    }

    pub fn sockets(&mut self) -> &mut Sockets {
        &mut self.sockets
    }

    /// One cycle, without waiting: tells `handle` what has happened, then writes what was said since the last turn. How much was done.
    pub fn turn(&mut self, now: Timestamp, handle: impl FnMut(&mut Sockets, SocketEvent)) -> usize {
        let Net { sockets, driver, .. } = self;
        driver.turn(|ready| sockets.turn(ready, now, handle))
    }

    /// A cycle in which nobody asks who is ready: for whoever has something to say, and will look in the next.
    pub fn turn_blind(&mut self, now: Timestamp, handle: impl FnMut(&mut Sockets, SocketEvent)) -> usize {
        let Net { sockets, driver, .. } = self;
        driver.turn_blind(|ready| sockets.turn(ready, now, handle))
    }

    /// Waits until a turn has something to do, the bell rings or the time is over. May end early.
    pub fn wait(&mut self, now: Timestamp, at_most: Duration) {
        let patience = self.sockets.patience(now, at_most);
        if !patience.is_zero() {
            self.driver.wait(patience);
        }
    }
}
