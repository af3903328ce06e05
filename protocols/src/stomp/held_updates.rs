//! The latest updates of a book, for subscribers that are behind or were away. A subscriber that
//! needs more than what is held gets a snapshot.
//!
//! ```text
//!        held updates                 newest picture
//!  ├────────┬─────────┬───┬────────┤  seq 57
//!  40       44        45  51       57
//!  └ oldest    └ a subscriber at 44 gets one message 44 → 57
//! ```

use std::collections::VecDeque;

use pitlane_engine::time::{NS_PER_S, Timestamp};

/// Updates held for subscribers that are behind. A consumer that reconnects within seconds finds
/// what it missed; the memory is at most 16 KiB for each watched book, without the changes.
pub const UPDATES_HELD_MAX: usize = 512;
/// Updates after which one carries a checksum of the book.
pub const CHECKSUM_UPDATES: u32 = 1_000;
/// Time after which an update carries a checksum of the book.
pub const CHECKSUM_INTERVAL_NS: u64 = 10 * NS_PER_S;

/// Updates with changes of type `C`, of which at most `CHANGES_MAX` are held.
#[derive(Debug)]
pub struct HeldUpdates<C, const CHANGES_MAX: usize> {
    updates: VecDeque<HeldUpdate>,
    /// Changes of all held updates, in order.
    changes: VecDeque<C>,
    /// Updates since the last one with a checksum, and its time.
    unchecked: u32,
    checked_at: Timestamp,
    /// Whether the newest update carries a checksum.
    is_checked: bool,
}

#[derive(Clone, Copy, Debug)]
struct HeldUpdate {
    prev_seq: u64,
    seq: u64,
    changes: usize,
}

/// What a subscriber must get.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BookMessage {
    Snapshot,
    /// The newest update alone, which most subscribers get.
    Newest,
    /// The effect of all updates after this sequence number.
    Merged(u64),
}

impl<C, const CHANGES_MAX: usize> Default for HeldUpdates<C, CHANGES_MAX> {
    fn default() -> HeldUpdates<C, CHANGES_MAX> {
        HeldUpdates {
            updates: VecDeque::new(),
            changes: VecDeque::new(),
            unchecked: 0,
            checked_at: Timestamp::ZERO,
            is_checked: false,
        }
    }
}

impl<C: Copy, const CHANGES_MAX: usize> HeldUpdates<C, CHANGES_MAX> {
    /// Drops all updates, because the book was replaced or is unknown.
    pub fn clear(&mut self, at: Timestamp) {
        self.updates.clear();
        self.changes.clear();
        (self.unchecked, self.checked_at, self.is_checked) = (0, at, false);
    }

    /// Holds an update, and drops the oldest ones if there are too many.
    pub fn push(&mut self, [prev_seq, seq]: [u64; 2], at: Timestamp, changes: impl Iterator<Item = C>) {
        let before = self.changes.len();
        self.changes.extend(changes);
        let changes = self.changes.len() - before;
        self.updates.push_back(HeldUpdate { prev_seq, seq, changes });
        while self.updates.len() > UPDATES_HELD_MAX || self.changes.len() > CHANGES_MAX {
            let Some(oldest) = self.updates.pop_front() else { break };
            self.changes.drain(..oldest.changes);
        }
        self.unchecked += 1;
        self.is_checked =
            self.unchecked >= CHECKSUM_UPDATES || at.since(self.checked_at) >= CHECKSUM_INTERVAL_NS;
        if self.is_checked {
            (self.unchecked, self.checked_at) = (0, at);
        }
    }

    /// Returns the message for a subscriber whose book has the sequence number `from`, if the
    /// newest book has `seq`; `None` if it has everything.
    pub fn message_since(&self, from: Option<u64>, seq: u64) -> Option<BookMessage> {
        if from == Some(seq) {
            return None;
        }
        let oldest = self.updates.front().map_or(seq, |update| update.prev_seq);
        let Some(from) = from.filter(|from| (oldest..=seq).contains(from)) else {
            return Some(BookMessage::Snapshot);
        };
        let is_newest = self.updates.back().is_some_and(|update| update.prev_seq == from);
        Some(if is_newest { BookMessage::Newest } else { BookMessage::Merged(from) })
    }

    /// Returns whether a held update begins at this sequence number.
    pub fn begins_at(&self, seq: u64) -> bool {
        self.updates.binary_search_by_key(&seq, |update| update.prev_seq).is_ok()
    }

    /// Returns the sequence number before the newest update.
    pub fn prev_seq(&self) -> Option<u64> {
        self.updates.back().map(|update| update.prev_seq)
    }

    /// Returns the changes of the newest update.
    pub fn newest_changes(&self) -> impl Iterator<Item = C> {
        let count = self.updates.back().map_or(0, |update| update.changes);
        self.changes.range(self.changes.len() - count..).copied()
    }

    /// Returns the changes of all updates after a sequence number, in order.
    pub fn changes_since(&self, from: u64) -> impl Iterator<Item = C> {
        let skipped: usize =
            self.updates.iter().take_while(|update| update.seq <= from).map(|update| update.changes).sum();
        self.changes.range(skipped..).copied()
    }

    /// Returns whether the newest update carries a checksum.
    pub fn is_checked(&self) -> bool {
        self.is_checked
    }

    /// Returns the numbers of held updates and changes.
    #[cfg(test)]
    pub fn lens(&self) -> (usize, usize) {
        (self.updates.len(), self.changes.len())
    }
}
