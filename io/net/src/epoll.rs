//! The portable driver: edge-triggered readiness by epoll, or by the equivalent of the system.

use std::io;
use std::net::{TcpListener, TcpStream};
use std::os::fd::AsRawFd;
use std::sync::Arc;
use std::time::Duration;

use mio::unix::SourceFd;
use mio::{Events, Interest, Poll, Registry, Token, Waker};
use pitlane_runtime::wakeup::Wakeup;

#[cfg(target_os = "linux")]
use pitlane_sys::busy_poll;

use super::busy_poll::BusyPolling;
use super::token::{ReadyToken, WAKEUP};

/// Maximum number of events per poll. The next poll reports the rest.
const EVENTS_MAX: usize = 1_024;

pub(super) struct Epoll {
    poll: Poll,
    events: Events,
    /// Reported and not yet handled.
    ready: Vec<ReadyToken>,
    wakeup: Wakeup,
}

impl Epoll {
    pub(super) fn open() -> io::Result<Epoll> {
        let poll = Poll::new()?;
        let waker = Arc::new(Waker::new(poll.registry(), Token(WAKEUP))?);
        let wakeup = Wakeup::new(move || waker.wake().expect("an eventfd takes a one at any time"));
        let ready = Vec::with_capacity(EVENTS_MAX);
        Ok(Epoll { poll, events: Events::with_capacity(EVENTS_MAX), ready, wakeup })
    }

    /// Makes the kernel poll network cards during a wait, or returns the reason why it does not.
    pub(super) fn set_busy_poll(&self, wanted: BusyPolling) -> Result<(), String> {
        #[cfg(target_os = "linux")]
        {
            let BusyPolling { usecs, packets, prefer } = wanted;
            let parameters = busy_poll::BusyPoll { usecs, budget: packets, prefer };
            let set = busy_poll::set_busy_poll(self.poll.registry(), parameters);
            set.map_err(|error| format!("the kernel does not poll network cards for epoll ({error})"))
        }
        #[cfg(not(target_os = "linux"))]
        {
            Err(format!("only Linux polls network cards, for {} us", wanted.usecs))
        }
    }

    pub(super) fn registrar(&self) -> io::Result<EpollRegistrar> {
        Ok(EpollRegistrar { registry: self.poll.registry().try_clone()? })
    }

    pub(super) fn wakeup(&self) -> Wakeup {
        self.wakeup.clone()
    }

    pub(super) fn run_cycle<R>(&mut self, inside: impl FnOnce(&[ReadyToken]) -> R) -> R {
        if self.ready.is_empty() {
            self.poll_events(Duration::ZERO);
        }
        let result = inside(&self.ready);
        self.ready.clear();
        result
    }

    pub(super) fn wait(&mut self, at_most: Duration) {
        // Each change is reported once, so the events of a wait are kept until the next cycle.
        if self.ready.is_empty() {
            self.poll_events(at_most);
        }
    }

    fn poll_events(&mut self, at_most: Duration) {
        match self.poll.poll(&mut self.events, Some(at_most)) {
            Ok(()) => {}
            Err(error) if error.kind() == io::ErrorKind::Interrupted => return,
            Err(error) => panic!("the poller is ours and open, and says {error}"),
        }
        self.ready.extend(self.events.iter().map(|event| {
            let failed = event.is_error();
            ReadyToken {
                token: event.token().0,
                readable: event.is_readable() || event.is_read_closed() || failed,
                writable: event.is_writable() || failed,
                ended: event.is_read_closed() || failed,
            }
        }));
    }
}

pub(super) struct EpollRegistrar {
    registry: Registry,
}

impl EpollRegistrar {
    pub(super) fn attach(&self, token: usize, stream: TcpStream) -> io::Result<TcpStream> {
        let both = Interest::READABLE | Interest::WRITABLE;
        self.registry.register(&mut SourceFd(&stream.as_raw_fd()), Token(token), both)?;
        Ok(stream)
    }

    pub(super) fn detach(&self, stream: TcpStream) -> io::Result<TcpStream> {
        self.registry.deregister(&mut SourceFd(&stream.as_raw_fd()))?;
        Ok(stream)
    }

    pub(super) fn watch(&self, token: usize, listener: &TcpListener) -> io::Result<()> {
        self.registry.register(&mut SourceFd(&listener.as_raw_fd()), Token(token), Interest::READABLE)
    }
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use super::*;

    #[test]
    fn the_epoll_descriptor_gets_the_busy_poll_parameters() {
        let epoll = Epoll::open().expect("epoll is there");
        match epoll.set_busy_poll(BusyPolling { usecs: 50, packets: 16, prefer: true }) {
            Ok(()) => assert_eq!(
                busy_poll::busy_poll(epoll.poll.registry()).expect("what was set can be read"),
                busy_poll::BusyPoll { usecs: 50, budget: 16, prefer: true },
            ),
            // The kernel is older than Linux 6.9, or has no busy polling.
            Err(reason) => println!("skipped: {reason}"),
        }
    }
}
