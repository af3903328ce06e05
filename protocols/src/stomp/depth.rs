//! The price levels of one security for the subscribers of its depth topic: the newest picture, and
//! the latest updates. A subscriber that is behind, or was away, gets the net effect of what it
//! misses; one that is too far behind gets a snapshot. So the book of a subscriber is always exact
//! at its sequence number.
//!
//! Rules: docs/stomp.md#depth.

use pitlane_engine::event::{LEVEL_EVENTS_MAX, LevelChange, LevelChanges, LevelsKind};
use pitlane_engine::level_book::{LevelBook, LevelsProgress};
use pitlane_engine::terms::Side;
use pitlane_engine::time::Timestamp;

use super::held_updates::{BookMessage, HeldUpdates};
use crate::checksum::crc32c;
use crate::json::push_decimal;

/// Changes of all held updates: at most 48 KiB, and more than the largest message has.
pub const CHANGES_HELD_MAX: usize = 2_048;
/// Levels of each side that a checksum covers.
pub const CHECKSUM_LEVELS: usize = 10;

#[derive(Debug, Default)]
pub struct DepthHistory {
    book: LevelBook,
    /// Parts of the message that is being received, at most [`LEVEL_EVENTS_MAX`].
    parts: Vec<LevelChanges>,
    held: HeldUpdates<LevelChange, CHANGES_HELD_MAX>,
}

impl DepthHistory {
    pub fn book(&self) -> &LevelBook {
        &self.book
    }

    /// Takes a part of a message. Returns whether the message is complete and waits for
    /// [`DepthHistory::commit`].
    pub fn push(&mut self, part: &LevelChanges) -> bool {
        let is_other = |first: &LevelChanges| (first.kind, first.seq) != (part.kind, part.seq);
        if self.parts.first().is_some_and(is_other) {
            self.parts.clear();
        } else if self.parts.len() == LEVEL_EVENTS_MAX {
            // No shard sends so many. The book is unknown until the next snapshot.
            self.parts.clear();
            self.book = LevelBook::default();
        }
        self.parts.push(*part);
        part.is_last
    }

    /// Applies the message that was received.
    pub fn commit(&mut self, at: Timestamp) {
        let mut parts = std::mem::take(&mut self.parts);
        if let Some(last) = parts.last().copied() {
            self.apply(&parts, &last, at);
        }
        parts.clear();
        self.parts = parts;
    }

    fn apply(&mut self, parts: &[LevelChanges], last: &LevelChanges, at: Timestamp) {
        let is_snapshot = last.kind == LevelsKind::Snapshot;
        if is_snapshot && self.book.is_whole() && self.book.seq() == last.seq {
            // Another subscription has requested it. Who is behind keeps the updates.
            return;
        }
        let is_applied = parts.iter().all(|part| self.book.apply(part) != LevelsProgress::Gap);
        if is_snapshot || !is_applied {
            return self.held.clear(at);
        }
        self.held.push([last.prev_seq, last.seq], at, parts.iter().flat_map(LevelChanges::changes));
    }

    /// Returns the message for a subscriber whose book has this sequence number; `None` if it has
    /// everything, or nothing is known.
    pub fn message_since(&self, from: Option<u64>) -> Option<BookMessage> {
        self.book.is_whole().then(|| self.held.message_since(from, self.book.seq())).flatten()
    }

    /// Returns the sequence number before the newest update.
    pub fn prev_seq(&self) -> u64 {
        self.held.prev_seq().unwrap_or(self.book.seq())
    }

    /// Returns the changes of the newest update.
    pub fn newest_changes(&self) -> impl Iterator<Item = LevelChange> {
        self.held.newest_changes()
    }

    /// Collects the net effect of all updates after a sequence number: each price once, with its
    /// quantity in the newest picture, bids before asks.
    pub fn net_changes(&self, from: u64, net: &mut Vec<LevelChange>) {
        net.clear();
        net.extend(self.held.changes_since(from));
        net.sort_unstable_by_key(|change| (change.side, change.price));
        net.dedup_by_key(|change| (change.side, change.price));
        for change in net {
            change.qty = self.book.qty(change.side, change.price);
        }
    }

    /// Returns the checksum of the newest update, if it carries one.
    pub fn newest_checksum(&self, text: &mut Vec<u8>) -> Option<u32> {
        self.held.is_checked().then(|| self.checksum(text))
    }

    /// Returns the checksum of the book; `text` is a reused buffer.
    pub fn checksum(&self, text: &mut Vec<u8>) -> u32 {
        text.clear();
        for (side, end) in [(Side::Buy, b'|'), (Side::Sell, b'\n')] {
            for level in self.book.levels(side).iter().take(CHECKSUM_LEVELS) {
                push_decimal(text, level.price.raw());
                text.push(b':');
                push_decimal(text, level.qty.raw());
                text.push(b';');
            }
            text.push(end);
        }
        crc32c(text)
    }
}

#[cfg(test)]
mod tests {
    use pitlane_engine::id::SecurityId;
    use pitlane_engine::number::{Price, Qty};

    use super::*;
    use crate::stomp::held_updates::{CHECKSUM_INTERVAL_NS, CHECKSUM_UPDATES, UPDATES_HELD_MAX};

    const AT: Timestamp = Timestamp(1);

    fn message(kind: LevelsKind, seqs: [u64; 2], changes: &[(Side, i64, i64)]) -> LevelChanges {
        let mut part = LevelChanges::new(SecurityId(1), kind, seqs[0], seqs[1]);
        for &(side, price, qty) in changes {
            let whole = |units| units * 100_000_000;
            part.push(LevelChange {
                side,
                price: Price::from_raw(whole(price)),
                qty: Qty::from_raw(whole(qty)),
            });
        }
        part.is_last = true;
        part
    }

    fn history() -> DepthHistory {
        let mut history = DepthHistory::default();
        let levels = [(Side::Buy, 10, 5), (Side::Sell, 11, 6)];
        assert!(history.push(&message(LevelsKind::Snapshot, [4, 4], &levels)));
        history.commit(AT);
        history
    }

    fn update(history: &mut DepthHistory, seqs: [u64; 2], changes: &[(Side, i64, i64)]) {
        assert!(history.push(&message(LevelsKind::Update, seqs, changes)));
        history.commit(AT);
    }

    #[test]
    fn a_subscriber_gets_what_it_misses() {
        let mut history = history();
        assert_eq!(history.message_since(None), Some(BookMessage::Snapshot));
        assert_eq!(history.message_since(Some(4)), None);
        update(&mut history, [4, 7], &[(Side::Buy, 10, 0), (Side::Buy, 9, 1)]);
        update(&mut history, [7, 8], &[(Side::Buy, 10, 3), (Side::Sell, 12, 2)]);
        assert_eq!(history.message_since(Some(8)), None);
        assert_eq!(history.message_since(Some(7)), Some(BookMessage::Newest));
        for behind in 4..7 {
            assert_eq!(history.message_since(Some(behind)), Some(BookMessage::Merged(behind)));
        }
        // Before the snapshot, and of another life of the server.
        assert_eq!(history.message_since(Some(3)), Some(BookMessage::Snapshot));
        assert_eq!(history.message_since(Some(9)), Some(BookMessage::Snapshot));
        let mut net = Vec::new();
        history.net_changes(4, &mut net);
        let shown: Vec<_> =
            net.iter().map(|change| (change.price.to_string(), change.qty.to_string())).collect();
        let text = |pairs: &[(&str, &str)]| -> Vec<(String, String)> {
            pairs.iter().map(|(price, qty)| (price.to_string(), qty.to_string())).collect()
        };
        assert_eq!(shown, text(&[("9", "1"), ("10", "3"), ("12", "2")]));
        history.net_changes(7, &mut net);
        assert!(net.iter().copied().eq(history.newest_changes()));
    }

    #[test]
    fn a_gap_or_another_snapshot_ends_the_held_updates() {
        let mut history = history();
        update(&mut history, [4, 5], &[(Side::Buy, 9, 1)]);
        assert!(history.push(&message(LevelsKind::Snapshot, [5, 5], &[])));
        history.commit(AT);
        assert_eq!(history.message_since(Some(4)), Some(BookMessage::Newest), "it is the same picture");
        update(&mut history, [6, 7], &[(Side::Buy, 9, 2)]);
        assert_eq!(history.message_since(None), None, "the book is unknown");
        assert!(history.push(&message(LevelsKind::Snapshot, [9, 9], &[(Side::Buy, 8, 1)])));
        history.commit(AT);
        assert_eq!(history.message_since(Some(5)), Some(BookMessage::Snapshot));
        assert_eq!(history.message_since(Some(9)), None);
    }

    #[test]
    fn the_first_snapshot_may_be_of_a_shard_that_has_done_nothing() {
        let mut history = DepthHistory::default();
        assert!(history.push(&message(LevelsKind::Snapshot, [0, 0], &[(Side::Buy, 10, 5)])));
        history.commit(AT);
        assert_eq!(history.message_since(None), Some(BookMessage::Snapshot));
        assert!(history.push(&message(LevelsKind::Snapshot, [3, 3], &[(Side::Buy, 9, 1)])));
        history.commit(AT);
        assert_eq!((history.book().seq(), history.book().levels(Side::Buy).len()), (3, 1));
    }

    #[test]
    fn a_message_may_have_parts_and_begins_again_with_another() {
        let mut history = DepthHistory::default();
        let mut lost = message(LevelsKind::Snapshot, [3, 3], &[(Side::Buy, 7, 1)]);
        let mut first = message(LevelsKind::Snapshot, [4, 4], &[(Side::Buy, 10, 5)]);
        (lost.is_last, first.is_last) = (false, false);
        assert!(!history.push(&lost) && !history.push(&first));
        assert!(history.push(&message(LevelsKind::Snapshot, [4, 4], &[(Side::Sell, 11, 6)])));
        history.commit(AT);
        let sides = [Side::Buy, Side::Sell].map(|side| history.book().levels(side).len());
        assert_eq!((history.message_since(None), sides), (Some(BookMessage::Snapshot), [1, 1]));
    }

    #[test]
    fn held_updates_are_bounded() {
        let mut history = history();
        let last = 4 + 2 * UPDATES_HELD_MAX as u64;
        for seq in 4..last {
            update(&mut history, [seq, seq + 1], &[(Side::Buy, 10, 1 + (seq % 3) as i64)]);
        }
        assert_eq!(history.held.lens(), (UPDATES_HELD_MAX, UPDATES_HELD_MAX));
        let oldest = last - UPDATES_HELD_MAX as u64;
        assert_eq!(history.message_since(Some(oldest)), Some(BookMessage::Merged(oldest)));
        assert_eq!(history.message_since(Some(oldest - 1)), Some(BookMessage::Snapshot));
        let full: Vec<(Side, i64, i64)> = (1..=8).map(|price| (Side::Buy, price, 1)).collect();
        for seq in last..last + UPDATES_HELD_MAX as u64 {
            update(&mut history, [seq, seq + 1], &full);
        }
        assert_eq!(history.held.lens().1, CHANGES_HELD_MAX);
        // Parts without an end are dropped when there are too many.
        let mut part = message(LevelsKind::Update, [9, 10], &full);
        part.is_last = false;
        for _ in 0..3 * LEVEL_EVENTS_MAX {
            assert!(!history.push(&part));
            assert!(history.parts.len() <= LEVEL_EVENTS_MAX);
        }
    }

    #[test]
    fn checksums_come_by_count_and_by_time() {
        let mut history = history();
        let mut text = Vec::new();
        for seq in 4..4 + 2 * CHECKSUM_UPDATES as u64 {
            update(&mut history, [seq, seq + 1], &[(Side::Buy, 10, 1 + (seq % 3) as i64)]);
            let is_due = (seq - 3).is_multiple_of(CHECKSUM_UPDATES.into());
            assert_eq!(history.newest_checksum(&mut text).is_some(), is_due, "{seq}");
        }
        let seq = history.book().seq();
        assert!(history.push(&message(LevelsKind::Update, [seq, seq + 1], &[(Side::Buy, 10, 5)])));
        history.commit(AT.plus(CHECKSUM_INTERVAL_NS));
        assert_eq!(history.newest_checksum(&mut text), Some(crc32c(b"10:5;|11:6;\n")));
    }
}
