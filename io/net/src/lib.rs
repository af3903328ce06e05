//! Sockets for gateway threads: TCP and TLS without an async runtime, polled in a duty cycle.
//!
//! ```text
//! loop {
//!     gateway.drain_lanes(net.sockets());                      appends events of shards to outputs
//!     work = net.run_cycle(now, |sockets, event| gateway.handle(…));    read, handle, write
//!     if work == 0 { prepare_sleep(); re-check inputs; net.wait(now, …); finish_sleep() }
//! }
//! ```
//!
//! Sessions belong to the gateway; this module only handles bytes. Reading order: [`settings`],
//! [`event`], [`sockets`], then their parts; last the interface to the system, `driver`, with
//! `epoll` and `uring` behind it.

pub mod tls;
pub mod settings;
pub mod event;
pub mod sockets;
mod cycle;
mod connection;
mod tls_connection;
mod input;
mod output;
mod connection_id;
mod connections;
mod deadlines;
mod connection_limits;
pub mod counts;
pub mod listener;
pub mod detached;
mod driver;
mod released_socket;
pub mod quick_ack;
pub mod websocket_key;
mod token;
pub mod busy_poll;
mod epoll;
#[cfg(target_os = "linux")]
mod uring;

use std::io;
use std::time::Duration;

use pitlane_engine::time::Timestamp;
use pitlane_runtime::wakeup::Wakeup;

use self::driver::{OpenedDriver, SocketDriver};
use self::event::SocketEvent;
use self::listener::{Listener, ListenerId};
use self::settings::{DriverKind, NetSettings};
use self::sockets::Sockets;

pub use self::connection_id::ConnectionId;
pub use self::driver::{probe_busy_poll, probe_ring};

/// The sockets of one thread, with their driver. Must be created on the thread that uses it.
pub struct Net {
    // Dropped before the driver, to which its streams belong.
    sockets: Sockets,
    driver: SocketDriver,
    fallback: Option<String>,
    busy_poll_refused: Option<String>,
}

impl Net {
    pub fn open(settings: NetSettings) -> io::Result<Net> {
        let opened = SocketDriver::open(settings.driver, settings.busy_polling)?;
        let OpenedDriver { driver, fallback, busy_poll_refused } = opened;
        let sockets = Sockets::new(settings, driver.registrar()?);
        Ok(Net { sockets, driver, fallback, busy_poll_refused })
    }

    /// Returns the driver in use, which may differ from the configured one.
    pub fn driver(&self) -> DriverKind {
        self.driver.kind()
    }

    /// Returns one line for the log: why io_uring was configured and epoll is used.
    pub fn fallback(&self) -> Option<&str> {
        self.fallback.as_deref()
    }

    /// Returns one line for the log: why the driver does not poll network cards as configured.
    pub fn busy_poll_refused(&self) -> Option<&str> {
        self.busy_poll_refused.as_deref()
    }

    /// Returns a wake-up that ends a [`Net::wait`] from any thread.
    pub fn wakeup(&self) -> Wakeup {
        self.driver.wakeup()
    }

    /// Accepts connections from this listener, starting with the next cycle.
    pub fn listen(&mut self, listener: Listener) -> ListenerId {
        self.sockets.listen(listener)
    }

    pub fn sockets(&mut self) -> &mut Sockets {
        &mut self.sockets
    }

    /// Runs one cycle without waiting: passes the events to `handle`, then writes what was sent
    /// since the last cycle. Returns the amount of work done.
    pub fn run_cycle(&mut self, now: Timestamp, handle: impl FnMut(&mut Sockets, SocketEvent)) -> usize {
        let Net { sockets, driver, .. } = self;
        driver.run_cycle(|ready| sockets.run_cycle(ready, now, handle))
    }

    /// Runs a cycle without polling for readiness: for a thread that has output to send, and polls
    /// in the next cycle.
    pub fn run_cycle_unpolled(
        &mut self,
        now: Timestamp,
        handle: impl FnMut(&mut Sockets, SocketEvent),
    ) -> usize {
        let Net { sockets, driver, .. } = self;
        driver.run_cycle_unpolled(|ready| sockets.run_cycle(ready, now, handle))
    }

    /// Waits until a cycle has work, the wake-up is triggered, or the time is over. May return
    /// early.
    pub fn wait(&mut self, now: Timestamp, at_most: Duration) {
        let wait_max = self.sockets.wait_max(now, at_most);
        if !wait_max.is_zero() {
            self.driver.wait(wait_max);
        }
    }
}
