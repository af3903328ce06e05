//! A socket of the ring as a connection holds it.

use std::cell::RefCell;
use std::io::{self, IoSlice};
use std::rc::Rc;

use pitlane_engine::slot_map::SlotKey;
use socket2::SockRef;

use super::sockets::RingSockets;
use crate::quick_ack::acknowledge;
use crate::released_socket::ReleasedSocket;

/// A socket of the ring. Dropping it closes the socket.
pub(crate) struct UringStream {
    sockets: Rc<RefCell<RingSockets>>,
    key: SlotKey,
}

impl UringStream {
    pub(super) fn new(sockets: Rc<RefCell<RingSockets>>, key: SlotKey) -> UringStream {
        UringStream { sockets, key }
    }

    pub(crate) fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        self.sockets.borrow_mut().read(self.key, buffer)
    }

    pub(crate) fn write_vectored(&mut self, parts: &[IoSlice<'_>]) -> io::Result<usize> {
        self.sockets.borrow_mut().write(self.key, parts)
    }

    /// Returns whether written bytes wait for the system; readiness to write then follows. Fails if
    /// they cannot be sent.
    pub(crate) fn is_sending(&self) -> io::Result<bool> {
        self.sockets.borrow_mut().is_sending(self.key)
    }

    pub(crate) fn is_connected(&self) -> bool {
        self.sockets.borrow().socket(self.key, |descriptor| SockRef::from(descriptor).peer_addr().is_ok())
    }

    pub(crate) fn acknowledge(&self) {
        self.sockets.borrow().socket(self.key, |descriptor| acknowledge(descriptor));
    }

    /// Shuts down the sending direction, after all written bytes.
    pub(crate) fn shutdown_write(&mut self) {
        self.sockets.borrow_mut().shutdown_write(self.key);
    }

    /// Takes the socket out of the ring.
    pub(crate) fn release(self) -> io::Result<ReleasedSocket> {
        self.sockets.borrow_mut().release(self.key)
    }
}

impl Drop for UringStream {
    fn drop(&mut self) {
        self.sockets.borrow_mut().close(self.key);
    }
}
