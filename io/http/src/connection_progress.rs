//! How far a connection is with its current request.

use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};

use pitlane_engine::index::index_u32;

use super::framing::{Framing, FramingFault};

/// State that the socket and the service share, and from which the deadlines are computed. Atomics
/// only because an upgraded connection may be passed to another task; all of it happens on one
/// thread.
#[derive(Debug)]
pub(crate) struct ConnectionProgress {
    in_head: AtomicBool,
    busy: AtomicBool,
    /// Incremented by each read and write.
    moved: AtomicU32,
    /// Zero, or one more than the fault's index in `FAULTS`.
    fault: AtomicU32,
}

const FAULTS: [FramingFault; 6] = [
    FramingFault::LengthTwice,
    FramingFault::LengthAndCoding,
    FramingFault::BadLength,
    FramingFault::BadCoding,
    FramingFault::BadChunk,
    FramingFault::BareLineFeed,
];

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum RequestPhase {
    /// Part of a head has arrived; or nothing yet on a new connection.
    Head,
    Idle,
    Busy,
}

impl ConnectionProgress {
    pub(crate) fn new() -> ConnectionProgress {
        ConnectionProgress {
            in_head: AtomicBool::new(true),
            busy: AtomicBool::new(false),
            moved: AtomicU32::new(0),
            fault: AtomicU32::new(0),
        }
    }

    /// Records that a request is being answered.
    pub(crate) fn begin(&self) {
        self.busy.store(true, Ordering::Relaxed);
    }

    /// Records that the response has been handed over.
    pub(crate) fn finish(&self) {
        self.busy.store(false, Ordering::Relaxed);
    }

    /// Returns the fault that makes this connection untrustworthy, if there is one.
    pub(crate) fn fault(&self) -> Option<FramingFault> {
        let code = self.fault.load(Ordering::Relaxed) as usize;
        code.checked_sub(1).map(|at| FAULTS[at])
    }

    /// Checks received bytes and records that they have arrived.
    pub(crate) fn read(&self, framing: &mut Framing, bytes: &[u8]) {
        self.count();
        if self.fault().is_some() {
            return;
        }
        if let Err(fault) = framing.feed(bytes) {
            let at = FAULTS.iter().position(|other| *other == fault).expect("the list has every fault");
            self.fault.store(index_u32(at) + 1, Ordering::Relaxed);
        }
        self.in_head.store(framing.is_in_head(), Ordering::Relaxed);
    }

    /// Counts a read or a write.
    pub(crate) fn count(&self) {
        self.moved.store(self.moved.load(Ordering::Relaxed).wrapping_add(1), Ordering::Relaxed);
    }

    /// Returns the phase, and the counter that measures progress in it. Bytes of a head are no
    /// progress: the head must be complete in time, however slowly it arrives.
    pub(crate) fn mark(&self) -> (RequestPhase, u32) {
        if self.busy.load(Ordering::Relaxed) {
            (RequestPhase::Busy, self.moved.load(Ordering::Relaxed))
        } else if self.in_head.load(Ordering::Relaxed) {
            (RequestPhase::Head, 0)
        } else {
            // A request after another is a new phase even if the one between was not observed.
            (RequestPhase::Idle, self.moved.load(Ordering::Relaxed))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_end_of_a_head_counts_as_its_progress() {
        let (progress, mut framing) = (ConnectionProgress::new(), Framing::default());
        let fresh = progress.mark();
        assert_eq!(fresh.0, RequestPhase::Head);
        progress.read(&mut framing, b"GET / HTTP/1.1\r\n");
        progress.read(&mut framing, b"Host: a");
        assert_eq!(progress.mark(), fresh);
        progress.read(&mut framing, b"\r\n\r\n");
        progress.begin();
        assert_eq!(progress.mark().0, RequestPhase::Busy);
        progress.finish();
        let idle = progress.mark();
        assert_eq!(idle.0, RequestPhase::Idle);
        progress.read(&mut framing, b"G");
        assert_eq!(progress.mark().0, RequestPhase::Head);
    }
}
