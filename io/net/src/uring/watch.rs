//! What is polled and not read by the ring: listeners, and the wake-up of the thread.

use std::cell::RefCell;
use std::io;
use std::net::TcpListener;
use std::os::fd::OwnedFd;
use std::rc::Rc;

use pitlane_runtime::wakeup::Wakeup;
use pitlane_sys::ring::{OperationKey, PollFor};
use rustix::event::{EventfdFlags, eventfd};

use super::sockets::RingSockets;
use crate::token::WAKEUP;

/// Requests one notification of a pending connection. Ends when it is dropped.
pub(crate) struct UringWatch {
    sockets: Rc<RefCell<RingSockets>>,
    /// Another handle of the listening socket, which the kernel may use until the poll has ended.
    listener: Rc<OwnedFd>,
    poll: OperationKey,
}

impl UringWatch {
    pub(super) fn start(
        sockets: &Rc<RefCell<RingSockets>>,
        token: usize,
        listener: &TcpListener,
        before: Option<UringWatch>,
    ) -> io::Result<UringWatch> {
        let listener = match &before {
            Some(before) => Rc::clone(&before.listener),
            None => Rc::new(OwnedFd::from(listener.try_clone()?)),
        };
        drop(before);
        let poll = sockets.borrow_mut().ring().poll(&listener, token as u64, PollFor::Readable);
        Ok(UringWatch { sockets: Rc::clone(sockets), listener, poll })
    }
}

impl Drop for UringWatch {
    fn drop(&mut self) {
        self.sockets.borrow_mut().ring().cancel(self.poll);
    }
}

/// Creates the wake-up of the thread: an event counter that is never read, since the ring reports
/// each addition.
pub(super) fn wakeup(sockets: &mut RingSockets) -> io::Result<Wakeup> {
    let counter = Rc::new(eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK)?);
    let writer = counter.try_clone()?;
    sockets.ring().poll(&counter, WAKEUP as u64, PollFor::EachArrival);
    sockets.watch_wakeup(counter);
    // A counter that is full has been added to, and that was reported.
    Ok(Wakeup::new(move || _ = rustix::io::write(&writer, &1_u64.to_ne_bytes())))
}
