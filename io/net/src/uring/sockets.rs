//! The sockets of a ring: starts their operations and handles completions.
//!
//! A socket that is closed leaves the table at once. Its operations are cancelled, and the ring
//! holds the descriptor until the last of them has ended; their completions find no socket, because
//! the key of the socket is part of their tag.

use std::io::{self, IoSlice};
use std::net::Shutdown;
use std::os::fd::OwnedFd;
use std::rc::Rc;
use std::time::Duration;

use pitlane_engine::slot_map::{SlotKey, SlotMap};
use pitlane_sys::ring::{Completion, OperationKey, Outcome, PollFor, ReceiveBuffer, Ring};
use rustix::io::Errno;
use socket2::SockRef;

use super::receiving::Receiving;
use super::sending::{Sending, SpareStorages};
use crate::released_socket::ReleasedSocket;
use crate::token::{ReadyToken, WAKEUP};

pub(super) struct RingSockets {
    ring: Ring,
    sockets: SlotMap<RingSocket>,
    /// Sockets whose readiness was not reported yet, each once.
    ready: Vec<SlotKey>,
    /// Watched tokens that are ready.
    watched: Vec<usize>,
    /// Sockets with staged bytes and no send in flight, each once.
    staged: Vec<SlotKey>,
    /// Sockets that found no free buffer.
    starved: Vec<SlotKey>,
    spare: SpareStorages,
    /// The event counter of the wake-up.
    wakeup: Option<Rc<OwnedFd>>,
}

struct RingSocket {
    token: usize,
    descriptor: Rc<OwnedFd>,
    receiving: Receiving,
    sending: Sending,
    /// Readiness that was not reported yet.
    readable: bool,
    writable: bool,
    is_listed: bool,
    /// Whether it is being taken out of the ring: nothing is started any more.
    is_leaving: bool,
}

/// Bit of the tag of a poll for failures.
const FAILURE: u64 = 1 << 63;
/// Largest generation of a socket, which leaves that bit free.
const GENERATION_MAX: u32 = u32::MAX >> 1;

/// What an operation belongs to.
enum Target {
    /// A token that is watched.
    Watched(usize),
    Socket(SlotKey),
    /// The poll for failures of a socket.
    Failure(SlotKey),
}

/// Returns the tag of a socket's operations. Generations are at least 1, so it differs from the
/// tokens of what is watched.
fn tag(key: SlotKey) -> u64 {
    u64::from(key.generation()) << 32 | key.slot() as u64
}

fn target(tag: u64) -> Target {
    let low = u32::try_from(tag & u64::from(u32::MAX)).expect("32 bits are left");
    let high = u32::try_from((tag & !FAILURE) >> 32).expect("31 bits are left");
    match high {
        0 => Target::Watched(low as usize),
        generation if tag & FAILURE == 0 => Target::Socket(SlotKey::new(low, generation)),
        generation => Target::Failure(SlotKey::new(low, generation)),
    }
}

impl RingSockets {
    pub(super) fn new(ring: Ring) -> RingSockets {
        RingSockets {
            ring,
            sockets: SlotMap::new(u32::MAX, GENERATION_MAX),
            ready: Vec::new(),
            watched: Vec::new(),
            staged: Vec::new(),
            starved: Vec::new(),
            spare: SpareStorages::default(),
            wakeup: None,
        }
    }

    pub(super) fn ring(&mut self) -> &mut Ring {
        &mut self.ring
    }

    pub(super) fn watch_wakeup(&mut self, counter: Rc<OwnedFd>) {
        self.wakeup = Some(counter);
    }

    /// Takes what the kernel has done, and appends what is ready.
    pub(super) fn poll(&mut self, into: &mut Vec<ReadyToken>) {
        if self.ring.needs_submit() {
            self.ring.submit();
        }
        self.handle_completions();
        for token in self.watched.drain(..) {
            into.push(ReadyToken { token, readable: true, writable: false, ended: false });
        }
        for key in self.ready.drain(..) {
            let Some(socket) = self.sockets.get_mut(key) else { continue };
            let ended = socket.receiving.end.is_some();
            let RingSocket { token, readable, writable, .. } = *socket;
            (socket.readable, socket.writable, socket.is_listed) = (false, false, false);
            into.push(ReadyToken { token, readable, writable, ended });
        }
    }

    /// Sends all staged bytes, and starts all that was requested, with one system call.
    pub(super) fn flush(&mut self) {
        self.feed_starved();
        self.send_staged();
        if self.ring.needs_submit() {
            self.ring.submit();
        }
    }

    pub(super) fn wait(&mut self, at_most: Duration) {
        self.feed_starved();
        self.send_staged();
        // Completions of sends are usually there, and are no reason to return.
        self.handle_completions();
        if self.ready.is_empty() && self.watched.is_empty() {
            self.ring.wait(at_most);
        }
    }

    pub(super) fn attach(&mut self, token: usize, descriptor: OwnedFd) -> SlotKey {
        let socket = RingSocket {
            token,
            descriptor: Rc::new(descriptor),
            receiving: Receiving::default(),
            sending: Sending::default(),
            readable: false,
            writable: false,
            is_listed: false,
            is_leaving: false,
        };
        let key = self.sockets.insert(socket).expect("a process has fewer descriptors than slots");
        self.receive(key);
        // As with epoll, which reports a new socket: output may have waited for it.
        self.report(key, false, true);
        key
    }

    pub(super) fn read(&mut self, key: SlotKey, buffer: &mut [u8]) -> io::Result<usize> {
        let Some(socket) = self.sockets.get_mut(key) else { return Ok(0) };
        let receiving = &mut socket.receiving;
        let count = receiving.read(&mut self.ring, buffer);
        if count == 0 && receiving.is_empty() && !buffer.is_empty() {
            return match receiving.end {
                None => Err(io::ErrorKind::WouldBlock.into()),
                // The system reports an error once, and that may have been at a send.
                Some(end) => end.and(socket.sending.error.map_or(Ok(()), Err)).map(|()| 0).map_err(os_error),
            };
        }
        if receiving.is_empty() {
            self.receive(key);
        }
        Ok(count)
    }

    pub(super) fn write(&mut self, key: SlotKey, parts: &[IoSlice<'_>]) -> io::Result<usize> {
        let Some(socket) = self.sockets.get_mut(key) else { return Err(io::ErrorKind::BrokenPipe.into()) };
        let sending = &mut socket.sending;
        if let Some(error) = sending.error {
            return Err(os_error(error));
        }
        let room = sending.room();
        if room == 0 {
            sending.notify = true;
            return Err(io::ErrorKind::WouldBlock.into());
        }
        let was_staged = !sending.staged.is_empty();
        if sending.staged.capacity() == 0 {
            sending.staged = self.spare.take();
        }
        let mut left = room;
        for part in parts {
            let taken = part.len().min(left);
            sending.staged.extend_from_slice(&part[..taken]);
            left -= taken;
        }
        if !was_staged && left < room && !sending.is_in_flight {
            self.staged.push(key);
        }
        Ok(room - left)
    }

    pub(super) fn is_sending(&mut self, key: SlotKey) -> io::Result<bool> {
        let Some(socket) = self.sockets.get_mut(key) else { return Ok(false) };
        if let Some(error) = socket.sending.error {
            return Err(os_error(error));
        }
        socket.sending.notify = !socket.sending.is_idle();
        Ok(socket.sending.notify)
    }

    pub(super) fn shutdown_write(&mut self, key: SlotKey) {
        let Some(socket) = self.sockets.get_mut(key) else { return };
        if socket.sending.is_idle() {
            socket.shut_down();
        } else {
            socket.sending.shutdown = true;
        }
    }

    /// Calls `ask` with the socket. A stream has its socket as long as it exists.
    pub(super) fn socket<R>(&self, key: SlotKey, ask: impl FnOnce(&OwnedFd) -> R) -> R {
        ask(&self.sockets.get(key).expect("a stream has its socket").descriptor)
    }

    /// Closes a socket. Staged bytes are still sent, as far as the system accepts them now.
    pub(super) fn close(&mut self, key: SlotKey) {
        let Some(mut socket) = self.sockets.remove(key) else { return };
        socket.receiving.discard(&mut self.ring);
        let sending = &mut socket.sending;
        let is_free = !sending.is_in_flight && sending.rest.is_none() && sending.error.is_none();
        if is_free && !sending.staged.is_empty() {
            self.ring.send(&socket.descriptor, tag(key), std::mem::take(&mut sending.staged), 0);
        }
        socket.operations().for_each(|operation| self.ring.cancel(operation));
    }

    /// Takes a socket out of the ring: waits for the end of its operations, which comes at once
    /// because they are cancelled.
    pub(super) fn release(&mut self, key: SlotKey) -> io::Result<ReleasedSocket> {
        self.send_staged();
        let Some(socket) = self.sockets.get_mut(key) else { return Err(io::ErrorKind::NotConnected.into()) };
        socket.is_leaving = true;
        while let Some(socket) = self.sockets.get(key).filter(|socket| socket.has_operations()) {
            socket.operations().for_each(|operation| self.ring.cancel(operation));
            self.ring.wait(Duration::from_secs(1));
            self.handle_completions();
        }
        let Some(mut socket) = self.sockets.remove(key) else {
            return Err(io::ErrorKind::NotConnected.into());
        };
        let received = socket.receiving.take(&mut self.ring);
        let failed = socket.receiving.end.and_then(Result::err).or(socket.sending.error);
        if let Some(error) = failed {
            return Err(os_error(error));
        }
        let unsent = socket.sending.take();
        let descriptor = Rc::into_inner(socket.descriptor).expect("all operations have ended");
        Ok(ReleasedSocket { stream: descriptor.into(), received, unsent })
    }

    fn handle_completions(&mut self) {
        while let Some(completion) = self.ring.next_completion() {
            let Completion { tag, is_last, outcome } = completion;
            match (target(tag), outcome) {
                (Target::Watched(token), _) => self.handle_watched(token, is_last),
                (Target::Failure(key), _) => self.handle_failure(key),
                (Target::Socket(key), Outcome::Received(result)) => {
                    self.handle_received(key, result, is_last);
                }
                (Target::Socket(key), Outcome::Sent { bytes, from, result }) => {
                    self.handle_sent(key, bytes, from, result);
                }
                (Target::Socket(key), Outcome::Ready(_)) => self.handle_room(key),
            }
        }
    }

    fn handle_watched(&mut self, token: usize, is_last: bool) {
        self.watched.push(token);
        if token == WAKEUP
            && is_last
            && let Some(counter) = &self.wakeup
        {
            self.ring.poll(counter, WAKEUP as u64, PollFor::EachArrival);
        }
    }

    fn handle_received(&mut self, key: SlotKey, result: io::Result<Option<ReceiveBuffer>>, is_last: bool) {
        let Some(socket) = self.sockets.get_mut(key) else {
            if let Ok(Some(buffer)) = result {
                self.ring.give_back(buffer);
            }
            return;
        };
        let receiving = &mut socket.receiving;
        if is_last {
            (receiving.operation, receiving.is_cancelled) = (None, false);
        }
        match result.map_err(|error| Errno::from_io_error(&error).unwrap_or(Errno::IO)) {
            Ok(Some(buffer)) => receiving.push(buffer),
            Ok(None) => receiving.end = Some(Ok(())),
            Err(Errno::NOBUFS) => return self.starved.push(key),
            Err(Errno::CANCELED | Errno::INTR | Errno::AGAIN) => return self.receive(key),
            Err(error) => receiving.end = Some(Err(error.raw_os_error())),
        }
        if receiving.is_full()
            && !receiving.is_cancelled
            && let Some(operation) = receiving.operation
        {
            receiving.is_cancelled = true;
            self.ring.cancel(operation);
        }
        let failed = matches!(receiving.end, Some(Err(_)));
        self.report(key, true, failed);
        // The kernel ends a receive for reasons of its own, such as a full completion queue.
        self.receive(key);
    }

    fn handle_sent(&mut self, key: SlotKey, bytes: Vec<u8>, from: usize, result: io::Result<usize>) {
        let Some(socket) = self.sockets.get_mut(key) else { return self.spare.put_back(bytes) };
        let sending = &mut socket.sending;
        sending.is_in_flight = false;
        let sent = match result.map_err(|error| Errno::from_io_error(&error).unwrap_or(Errno::IO)) {
            Ok(count) => from + count,
            Err(Errno::AGAIN | Errno::INTR | Errno::CANCELED) => from,
            Err(error) => {
                sending.error = Some(error.raw_os_error());
                sending.staged = Vec::new();
                return self.report(key, true, true);
            }
        };
        if sent < bytes.len() {
            sending.rest = Some((bytes, sent));
            if !socket.is_leaving {
                sending.poll = Some(self.ring.poll(&socket.descriptor, tag(key), PollFor::Writable));
            }
            return;
        }
        self.spare.put_back(bytes);
        if !sending.staged.is_empty() {
            if !socket.is_leaving {
                self.staged.push(key);
            }
            return;
        }
        if std::mem::take(&mut sending.shutdown) {
            socket.shut_down();
        }
        if std::mem::take(&mut socket.sending.notify) {
            self.report(key, false, true);
        }
    }

    /// Handles the end of a poll for room: sends the rest. If the poll has failed, the send shows
    /// the error.
    fn handle_room(&mut self, key: SlotKey) {
        let Some(socket) = self.sockets.get_mut(key) else { return };
        socket.sending.poll = None;
        if socket.is_leaving {
            return;
        }
        if let Some((bytes, sent)) = socket.sending.rest.take() {
            socket.sending.is_in_flight = true;
            self.ring.send(&socket.descriptor, tag(key), bytes, sent);
        }
    }

    /// Handles the end of a poll for failures: the socket is reported, which shows the failure.
    fn handle_failure(&mut self, key: SlotKey) {
        let Some(socket) = self.sockets.get_mut(key) else { return };
        socket.receiving.failure = None;
        if !socket.is_leaving && socket.receiving.operation.is_none() {
            self.report(key, true, true);
        }
    }

    /// Starts to receive, unless the socket does or has ended. A socket that is to be read first is
    /// polled for failures only.
    fn receive(&mut self, key: SlotKey) {
        let Some(socket) = self.sockets.get_mut(key) else { return };
        let RingSocket { receiving, descriptor, is_leaving, .. } = socket;
        if *is_leaving || receiving.end.is_some() || receiving.operation.is_some() {
            return;
        }
        if !receiving.is_full() {
            receiving.failure.take().into_iter().for_each(|poll| self.ring.cancel(poll));
            receiving.operation = Some(self.ring.receive(descriptor, tag(key)));
        } else if receiving.failure.is_none() {
            let poll = self.ring.poll(descriptor, tag(key) | FAILURE, PollFor::Failure);
            receiving.failure = Some(poll);
        }
    }

    /// Lets the sockets receive that found no free buffer. If sockets that are not read hold many
    /// buffers, their bytes are copied out.
    fn feed_starved(&mut self) {
        if self.starved.is_empty() {
            return;
        }
        let RingSockets { ring, sockets, starved, .. } = self;
        sockets.values_mut().for_each(|socket| socket.receiving.copy_out(ring));
        for key in std::mem::take(starved) {
            self.receive(key);
        }
    }

    fn send_staged(&mut self) {
        let mut staged = std::mem::take(&mut self.staged);
        for key in staged.drain(..) {
            let Some(socket) = self.sockets.get_mut(key) else { continue };
            let sending = &mut socket.sending;
            if sending.is_in_flight || sending.rest.is_some() || sending.staged.is_empty() {
                continue;
            }
            sending.is_in_flight = true;
            let bytes = std::mem::take(&mut sending.staged);
            self.ring.send(&socket.descriptor, tag(key), bytes, 0);
        }
        self.staged = staged;
    }

    fn report(&mut self, key: SlotKey, readable: bool, writable: bool) {
        let Some(socket) = self.sockets.get_mut(key) else { return };
        socket.readable |= readable;
        socket.writable |= writable;
        if !std::mem::replace(&mut socket.is_listed, true) {
            self.ready.push(key);
        }
    }
}

impl RingSocket {
    /// Returns the operations that can be cancelled. A send ends by itself.
    fn operations(&self) -> impl Iterator<Item = OperationKey> + use<> {
        [self.receiving.operation, self.receiving.failure, self.sending.poll].into_iter().flatten()
    }

    fn has_operations(&self) -> bool {
        self.sending.is_in_flight || self.operations().next().is_some()
    }

    fn shut_down(&self) {
        // The peer may be gone already, which has the same effect.
        _ = SockRef::from(&*self.descriptor).shutdown(Shutdown::Write);
    }
}

fn os_error(number: i32) -> io::Error {
    io::Error::from_raw_os_error(number)
}
