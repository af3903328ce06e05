//! The pace of a market that is replayed as fast as possible to strategies in other processes: the
//! next row is published when all strategies have processed the previous one and their resulting
//! requests are done.
//!
//! ```text
//! publish(t) ─► shards ─► server ─► strategies ─► orders, heartbeats ─► take(t) ─► next row
//! ```

use std::sync::atomic::{AtomicU64, Ordering};

use pitlane_engine::time::Timestamp;
use pitlane_runtime::wakeup::Wakeup;

#[derive(Debug)]
pub struct Pace {
    /// Time of the last published row.
    published: AtomicU64,
    /// Time of the last processed row, plus one; zero before the first strategy is ready.
    taken: AtomicU64,
    /// Wake-up of the feed's thread.
    wakeup: Wakeup,
}

impl Pace {
    pub fn new(wakeup: Wakeup) -> Pace {
        Pace { published: AtomicU64::new(0), taken: AtomicU64::new(0), wakeup }
    }

    /// Returns whether the next row may be published.
    pub fn is_free(&self) -> bool {
        self.taken.load(Ordering::Acquire) > self.published.load(Ordering::Acquire)
    }

    /// Records that a row is published. Returns its time, which is later than that of the previous
    /// one.
    pub fn publish(&self, now: Timestamp) -> Timestamp {
        let at = now.0.max(self.published.load(Ordering::Acquire) + 1);
        self.published.store(at, Ordering::Release);
        Timestamp(at)
    }

    /// Records that everything up to this time was processed.
    pub fn take(&self, at: u64) {
        if self.taken.swap(at + 1, Ordering::AcqRel) != at + 1 {
            self.wakeup.wake();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_row_waits_for_the_one_before() {
        let pace = Pace::new(Wakeup::new(|| {}));
        assert!(!pace.is_free(), "no consumer is there yet");
        pace.take(0);
        assert!(pace.is_free());
        let first = pace.publish(Timestamp(5));
        assert!(!pace.is_free());
        pace.take(4);
        assert!(!pace.is_free());
        pace.take(first.0);
        assert!(pace.is_free());
        assert_eq!(pace.publish(Timestamp(5)), Timestamp(6));
    }
}
