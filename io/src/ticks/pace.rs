//! The pace of a market that is played back as fast as it can be taken, when those who take it are elsewhere: the next row is told when all
//! have said that they have taken in the one before, and what they asked for because of it is done.
//!
//! ```text
//! feed: tell a row of time t ─► shards ─► server ─► strategies ─► orders, and "taken in" ─► take(t) ─► feed: the next
//! ```

use std::sync::atomic::{AtomicU64, Ordering};

use pitlane_engine::time::Timestamp;

use crate::wakeup::Wakeup;

#[derive(Debug)]
pub struct Pace {
    /// Time of the last row that was told.
    told: AtomicU64,
    /// Time of the last row that was taken in, plus one; zero: nobody is there yet.
    taken: AtomicU64,
    /// Of the feed's thread.
    bell: Wakeup,
}

impl Pace {
    pub fn new(bell: Wakeup) -> Pace {
        Pace { told: AtomicU64::new(0), taken: AtomicU64::new(0), bell }
    }

    /// Whether the next row may be told.
    pub fn is_free(&self) -> bool {
        self.taken.load(Ordering::Acquire) > self.told.load(Ordering::Acquire)
    }

    /// A row is told. Its time, which is later than that of the one before.
    pub fn tell(&self, now: Timestamp) -> Timestamp {
        let at = now.0.max(self.told.load(Ordering::Acquire) + 1);
        self.told.store(at, Ordering::Release);
        Timestamp(at)
    }

    /// Everything up to this time was taken in.
    pub fn take(&self, at: u64) {
        if self.taken.swap(at + 1, Ordering::AcqRel) != at + 1 {
            self.bell.wake();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_row_waits_for_the_one_before() {
        let pace = Pace::new(Wakeup::new(|| {}));
        assert!(!pace.is_free(), "nobody is there yet");
        pace.take(0);
        assert!(pace.is_free());
        let first = pace.tell(Timestamp(5));
        assert!(!pace.is_free());
        pace.take(4);
        assert!(!pace.is_free());
        pace.take(first.0);
        assert!(pace.is_free());
        assert_eq!(pace.tell(Timestamp(5)), Timestamp(6));
    }
}
