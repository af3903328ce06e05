//! Counters of this thread about itself. Only this thread uses them, so they are plain cells.

use std::cell::Cell;

/// Responses by the first digit of their status, and counters of connections.
#[derive(Debug, Default)]
pub(crate) struct Meter {
    classes: [Cell<u64>; CLASSES.len()],
    pub accepted: LocalCounter,
    /// Connections refused because there were too many.
    pub refused: LocalCounter,
    /// Connections closed while no request was being answered, to make room for others.
    pub evicted: LocalCounter,
    /// TLS handshakes that failed.
    pub handshakes_failed: LocalCounter,
    /// Connections closed for being slow: in the head, the body, reading, or idle.
    pub timed_out: LocalCounter,
    /// Requests refused before any handler saw them.
    pub rejected: LocalCounter,
    /// Logins with wrong credentials, or refused unchecked because of too many wrong ones.
    pub logins_refused: LocalCounter,
}

pub(crate) const CLASSES: [&str; 5] = ["1xx", "2xx", "3xx", "4xx", "5xx"];

impl Meter {
    pub(crate) fn count_response(&self, status: u16) {
        let class = (status / 100).clamp(1, 5) as usize - 1;
        self.classes[class].set(self.classes[class].get() + 1);
    }

    pub(crate) fn responses_by_class(&self) -> impl Iterator<Item = (&'static str, u64)> {
        CLASSES.into_iter().zip(self.classes.iter().map(Cell::get))
    }
}

#[derive(Debug, Default)]
pub(crate) struct LocalCounter(Cell<u64>);

impl LocalCounter {
    pub(crate) fn increment(&self) {
        self.0.set(self.0.get() + 1);
    }

    pub(crate) fn add(&self, count: u64) {
        self.0.set(self.0.get() + count);
    }

    pub(crate) fn get(&self) -> u64 {
        self.0.get()
    }
}
