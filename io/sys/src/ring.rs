//! An io_uring for the sockets of one thread: receives into buffers that the kernel chooses, sends,
//! and polls descriptors, with one system call for all that was queued.
//!
//! ```text
//! receive, send, poll, cancel ─► queue ─► submit or wait: one call ─► next_completion, until None
//! ```
//!
//! Everything that the kernel may use belongs to the ring until the last completion of its
//! operation: the descriptor, the bytes to send, the buffers to receive into. Callers get copies of
//! received bytes, and sent bytes back. So no caller can free, change or read memory that an
//! operation uses. A ring that is dropped cancels what is in flight and waits for its end.
//!
//! The ring runs deferred work only in the calls of its own thread (`DEFER_TASKRUN`), so the kernel
//! neither interrupts the thread nor wakes another, and a check for news needs no system call. A
//! send never waits, so no operation is passed to the kernel's worker threads.

mod buffers;
mod operations;
#[cfg(all(test, not(miri)))]
mod tests;

use std::collections::VecDeque;
use std::io;
use std::os::fd::{AsRawFd, OwnedFd};
use std::rc::Rc;
use std::time::Duration;

use io_uring::types::{CancelBuilder, Fd, Napi, SubmitArgs, Timespec};
use io_uring::{IoUring, cqueue, opcode, squeue};
use libc::{EAGAIN, EBUSY, EINTR, ENOMEM, ETIME, MSG_DONTWAIT, MSG_NOSIGNAL, POLLIN, POLLOUT, c_int};

use self::buffers::ReceiveBuffers;
use self::operations::{Operation, OperationKind, Operations};

pub use self::buffers::ReceiveBuffer;
pub use self::operations::OperationKey;

/// Group number of the receive buffers. A ring has one group.
const BUFFER_GROUP: u16 = 0;
/// User data of cancellations, whose own completions say nothing.
const CANCELLATION: u64 = u64::MAX;
/// How often a dropped ring looks whether all operations have ended, and how long each time.
const DRAIN_ROUNDS_MAX: usize = 100;
const DRAIN_WAIT: Duration = Duration::from_millis(10);

/// Sizes of a ring.
#[derive(Clone, Copy, Debug)]
pub struct RingSettings {
    /// Operations queued per call. More are submitted by a call in between.
    pub submissions: u32,
    /// Completions that the ring holds. More wait in the kernel and come later.
    pub completions: u32,
    /// Receive buffers: a power of two, at most 32,768.
    pub buffers: u16,
    /// Bytes of each receive buffer.
    pub buffer_bytes: u32,
}

/// What a poll waits for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PollFor {
    /// Once, until there is something to read or to accept.
    Readable,
    /// Once, until there is room to write.
    Writable,
    /// Each time when something to read has arrived.
    EachArrival,
    /// Once, until the descriptor has failed or both directions have ended.
    Failure,
}

/// One completion of an operation.
#[derive(Debug)]
pub struct Completion {
    /// The number that the caller gave to the operation.
    pub tag: u64,
    /// Whether it is the last completion: the key of the operation is no longer valid.
    pub is_last: bool,
    /// What has happened.
    pub outcome: Outcome,
}

/// What an operation has done.
#[derive(Debug)]
pub enum Outcome {
    /// A filled buffer, or `None` at the end of the stream.
    Received(io::Result<Option<ReceiveBuffer>>),
    /// A send has ended.
    Sent {
        /// The bytes that were passed to the operation.
        bytes: Vec<u8>,
        /// The place from which on they were to be sent.
        from: usize,
        /// How many of them were sent.
        result: io::Result<usize>,
    },
    /// A descriptor is ready, or has failed.
    Ready(io::Result<()>),
}

/// A ring with its buffers and operations. It stays on its thread.
pub struct Ring {
    ring: IoUring,
    buffers: ReceiveBuffers,
    operations: Operations,
    /// Entries for which the submission queue has no room.
    overflow: VecDeque<squeue::Entry>,
}

impl Ring {
    /// Opens a ring. Fails where the kernel is older than Linux 6.1 or forbids it.
    pub fn open(settings: RingSettings) -> io::Result<Ring> {
        let ring = IoUring::builder()
            .setup_single_issuer()
            .setup_defer_taskrun()
            .setup_taskrun_flag()
            .setup_submit_all()
            .setup_clamp()
            .setup_cqsize(settings.completions)
            .dontfork()
            .build(settings.submissions)
            .map_err(|error| in_step("io_uring_setup", &error))?;
        let buffers = ReceiveBuffers::new(settings.buffers, settings.buffer_bytes)
            .map_err(|error| in_step("the buffers of io_uring", &error))?;
        let (address, count) = (buffers.address(), buffers.count());
        let ring = Ring { ring, buffers, operations: Operations::default(), overflow: VecDeque::new() };
        // SAFETY: the memory has room for `count` entries and is freed after the ring, or never:
        // see `drop`.
        unsafe { ring.ring.submitter().register_buf_ring_with_flags(address, count, BUFFER_GROUP, 0) }
            .map_err(|error| in_step("io_uring_register", &error))?;
        // A sandbox may permit the setup and forbid the calls.
        ring.ring.submitter().submit().map_err(|error| in_step("io_uring_enter", &error))?;
        Ok(ring)
    }

    /// Makes a wait poll the network card itself for so many microseconds, before it blocks.
    /// Requires Linux 6.9 or newer with busy polling.
    pub fn set_busy_poll(&self, usecs: u32, prefer: bool) -> io::Result<()> {
        let mut napi = Napi::new().set_busy_poll_timeout(usecs).set_prefer_busy_poll(prefer);
        self.ring.submitter().register_napi(&mut napi)
    }

    /// Receives from a socket until the stream ends, it fails, no buffer is free, or the operation
    /// is cancelled: one completion for each filled buffer.
    pub fn receive(&mut self, socket: &Rc<OwnedFd>, tag: u64) -> OperationKey {
        let entry = opcode::RecvMulti::new(Fd(socket.as_raw_fd()), BUFFER_GROUP).build();
        self.start(socket, tag, OperationKind::Receive, entry)
    }

    /// Sends the bytes from a place on, without waiting: as many as the system takes at once.
    /// Panics if there are none.
    pub fn send(&mut self, socket: &Rc<OwnedFd>, tag: u64, bytes: Vec<u8>, from: usize) -> OperationKey {
        let unsent = &bytes[from..];
        assert!(!unsent.is_empty(), "something is sent");
        // The rest of a longer output is sent later, as after any partial send.
        let count = u32::try_from(unsent.len()).unwrap_or(u32::MAX);
        let entry = opcode::Send::new(Fd(socket.as_raw_fd()), unsent.as_ptr(), count)
            .flags(MSG_DONTWAIT | MSG_NOSIGNAL)
            .build();
        self.start(socket, tag, OperationKind::Send(bytes, from), entry)
    }

    /// Waits in the background until a descriptor is ready.
    pub fn poll(&mut self, descriptor: &Rc<OwnedFd>, tag: u64, wanted: PollFor) -> OperationKey {
        let events = match wanted {
            PollFor::Readable | PollFor::EachArrival => POLLIN,
            PollFor::Writable => POLLOUT,
            // Failures are always reported.
            PollFor::Failure => 0,
        };
        let events = u32::from(events.cast_unsigned());
        let entry = opcode::PollAdd::new(Fd(descriptor.as_raw_fd()), events)
            .multi(wanted == PollFor::EachArrival)
            .build();
        self.start(descriptor, tag, OperationKind::Poll, entry)
    }

    /// Asks for the end of an operation; its last completion follows. Does nothing if it has ended.
    pub fn cancel(&mut self, key: OperationKey) {
        if self.operations.get(key).is_some() {
            self.push(opcode::AsyncCancel::new(key.user_data()).build().user_data(CANCELLATION));
        }
    }

    /// Returns whether a call of `submit` would do something.
    #[inline]
    pub fn needs_submit(&mut self) -> bool {
        let queue = self.ring.submission();
        !queue.is_empty() || queue.taskrun() || queue.cq_overflow() || !self.overflow.is_empty()
    }

    /// Returns whether a completion is there.
    #[inline]
    pub fn has_completion(&mut self) -> bool {
        !self.ring.completion().is_empty()
    }

    /// Passes what was queued to the kernel, and collects what it has done meanwhile.
    pub fn submit(&mut self) {
        self.refill();
        check(self.ring.submitter().submit());
    }

    /// Does the same, and waits until there is a completion or the time is over.
    pub fn wait(&mut self, at_most: Duration) {
        self.refill();
        if self.has_completion() {
            return check(self.ring.submitter().submit());
        }
        let time = Timespec::from(at_most);
        let arguments = SubmitArgs::new().timespec(&time);
        check(self.ring.submitter().submit_with_args(1, &arguments));
    }

    /// Returns the next completion that is there.
    pub fn next_completion(&mut self) -> Option<Completion> {
        loop {
            let entry = self.ring.completion().next()?;
            if entry.user_data() != CANCELLATION {
                return Some(self.complete(&entry));
            }
        }
    }

    /// Copies bytes of a buffer, from its byte `at` on, and returns how many.
    #[inline]
    pub fn copy(&self, buffer: &ReceiveBuffer, at: usize, into: &mut [u8]) -> usize {
        self.buffers.copy(buffer, at, into)
    }

    /// Returns a buffer to the kernel.
    #[inline]
    pub fn give_back(&mut self, buffer: ReceiveBuffer) {
        self.buffers.give_back(buffer);
    }

    /// Returns how many buffers are not lent.
    pub fn free_buffers(&self) -> usize {
        self.buffers.free()
    }

    /// Returns the number of operations in flight.
    pub fn operations(&self) -> usize {
        self.operations.len()
    }

    fn start(
        &mut self,
        descriptor: &Rc<OwnedFd>,
        tag: u64,
        kind: OperationKind,
        entry: squeue::Entry,
    ) -> OperationKey {
        let key = self.operations.insert(Operation { tag, descriptor: Rc::clone(descriptor), kind });
        self.push(entry.user_data(key.user_data()));
        key
    }

    fn push(&mut self, entry: squeue::Entry) {
        if self.ring.submission().is_full() {
            self.submit();
        }
        self.overflow.push_back(entry);
        self.refill();
    }

    /// Moves entries into the submission queue, in order.
    fn refill(&mut self) {
        let mut queue = self.ring.submission();
        while let Some(entry) = self.overflow.front() {
            // SAFETY: the descriptor and the bytes of the entry belong to its operation, which
            // keeps them until the last completion. The bytes are on the heap, so they stay at
            // their address when the operation moves. Buffers to receive into are those of this
            // ring. A cancellation has neither.
            if unsafe { queue.push(entry) }.is_err() {
                return;
            }
            self.overflow.pop_front();
        }
    }

    fn complete(&mut self, entry: &cqueue::Entry) -> Completion {
        let key = OperationKey::of(entry.user_data());
        let is_last = !cqueue::more(entry.flags());
        let result = u32::try_from(entry.result())
            .map_err(|_| io::Error::from_raw_os_error(entry.result().wrapping_neg()));
        let buffer = cqueue::buffer_select(entry.flags())
            .map(|id| self.buffers.lend(id, result.as_ref().map_or(0, |count| *count)));
        let known = "the kernel completes what is in flight";
        let operation = self.operations.get(key).expect(known);
        let tag = operation.tag;
        let outcome = match operation.kind {
            OperationKind::Receive => Outcome::Received(self.received(result, buffer)),
            OperationKind::Poll => Outcome::Ready(result.map(drop)),
            OperationKind::Send(..) => {
                let OperationKind::Send(bytes, from) = self.operations.remove(key).expect(known).kind else {
                    unreachable!("it was a send just now")
                };
                assert!(is_last, "a send has one completion");
                let result = result.map(|count| count as usize);
                return Completion { tag, is_last, outcome: Outcome::Sent { bytes, from, result } };
            }
        };
        if is_last {
            // Closes the descriptor if nothing else holds it.
            drop(self.operations.remove(key));
        }
        Completion { tag, is_last, outcome }
    }

    fn received(
        &mut self,
        result: io::Result<u32>,
        buffer: Option<ReceiveBuffer>,
    ) -> io::Result<Option<ReceiveBuffer>> {
        match (result, buffer) {
            (Ok(count), Some(buffer)) if count > 0 => Ok(Some(buffer)),
            (result, buffer) => {
                if let Some(buffer) = buffer {
                    self.buffers.give_back(buffer);
                }
                assert!(!matches!(result, Ok(1..)), "bytes are received into a buffer");
                result.map(|_| None)
            }
        }
    }
}

impl Drop for Ring {
    fn drop(&mut self) {
        if self.operations.len() > 0 {
            self.push(opcode::AsyncCancel2::new(CancelBuilder::any()).build().user_data(CANCELLATION));
        }
        for _ in 0..DRAIN_ROUNDS_MAX {
            while let Some(completion) = self.next_completion() {
                drop(completion);
            }
            if self.operations.len() == 0 {
                return;
            }
            self.wait(DRAIN_WAIT);
        }
        // The kernel has not let go. What it may still use is never freed.
        std::mem::forget(std::mem::take(&mut self.operations));
        if let Ok(spare) = ReceiveBuffers::new(1, 1) {
            std::mem::forget(std::mem::replace(&mut self.buffers, spare));
        } else {
            std::process::abort();
        }
    }
}

/// Passes over results that mean "try again": a signal, the end of the time, a lack of memory, and
/// completions that wait in the kernel until the queue is read.
fn check(result: io::Result<usize>) {
    let Err(error) = result else { return };
    let is_transient: fn(c_int) -> bool = |number| matches!(number, EINTR | ETIME | EBUSY | EAGAIN | ENOMEM);
    if !error.raw_os_error().is_some_and(is_transient) {
        panic!("the ring is ours and open, and says {error}");
    }
}

fn in_step(step: &str, error: &io::Error) -> io::Error {
    io::Error::new(error.kind(), format!("{step}: {error}"))
}
