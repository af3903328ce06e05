//! The single orders of one book for the subscribers of its topic: the newest picture, and the
//! latest updates. A subscriber that is behind gets the changes of all updates that it misses in
//! one message; one that is too far behind gets a snapshot.
//!
//! Rules: docs/stomp.md#orders-of-a-book.

use pitlane_engine::book_orders::BookOrders;
use pitlane_engine::event::{LevelsKind, ORDER_SCRIPT_MAX, OrderChange, OrderChanges};
use pitlane_engine::terms::Side;
use pitlane_engine::time::Timestamp;

use super::held_updates::{BookMessage, HeldUpdates};
use crate::checksum::crc32c;
use crate::json::{push_decimal, push_number};

/// Changes of all held updates: at most 160 KiB, and more than the largest message has.
pub const ORDER_CHANGES_HELD_MAX: usize = 4_096;
/// Orders of each side that a checksum covers.
pub const CHECKSUM_ORDERS: usize = 10;

const _: () = assert!(ORDER_SCRIPT_MAX <= ORDER_CHANGES_HELD_MAX, "the newest update is held");

#[derive(Debug, Default)]
pub struct OrderBookHistory {
    book: BookOrders,
    seq: u64,
    /// Whether the book is that of its sequence number.
    is_whole: bool,
    message: ReceivedMessage,
    held: HeldUpdates<OrderChange, ORDER_CHANGES_HELD_MAX>,
}

/// The message that is being received.
#[derive(Debug, Default)]
struct ReceivedMessage {
    /// Last part; `None` before the first one, or if a part is missing.
    last: Option<OrderChanges>,
    /// At most [`ORDER_SCRIPT_MAX`].
    changes: Vec<OrderChange>,
}

impl ReceivedMessage {
    /// Takes a part. Returns whether the message is complete.
    fn push(&mut self, part: &OrderChanges) -> bool {
        let is_next = |last: &OrderChanges| !last.is_last && (last.kind, last.seq) == (part.kind, part.seq);
        if part.is_first {
            self.changes.clear();
        } else if !self.last.as_ref().is_some_and(is_next) {
            self.last = None;
            return false;
        }
        self.last = Some(*part);
        self.changes.extend(part.changes());
        if self.changes.len() > ORDER_SCRIPT_MAX {
            // No shard sends so many.
            *self = ReceivedMessage::default();
        }
        part.is_last
    }
}

impl OrderBookHistory {
    /// Takes a part of a message. Returns whether the message is complete and waits for
    /// [`OrderBookHistory::commit`].
    pub fn push(&mut self, part: &OrderChanges) -> bool {
        self.message.push(part)
    }

    /// Applies the message that was received.
    pub fn commit(&mut self, at: Timestamp) {
        let changes = std::mem::take(&mut self.message.changes);
        match self.message.last.take() {
            Some(last) => self.apply(&last, &changes, at),
            None => self.lose(at),
        }
        self.message.changes = changes;
    }

    fn apply(&mut self, last: &OrderChanges, changes: &[OrderChange], at: Timestamp) {
        match last.kind {
            LevelsKind::Snapshot if self.is_whole && self.seq == last.seq => {
                // Another subscription has requested it. Who is behind keeps the updates.
                return;
            }
            LevelsKind::Snapshot => {
                self.book.clear();
                self.held.clear(at);
            }
            LevelsKind::Update if self.is_whole && self.seq == last.prev_seq => {
                self.held.push([last.prev_seq, last.seq], at, changes.iter().copied());
            }
            LevelsKind::Update => return self.lose(at),
        }
        if !changes.iter().all(|change| self.book.apply(change)) {
            return self.lose(at);
        }
        (self.seq, self.is_whole) = (last.seq, true);
    }

    /// Forgets the book until the next snapshot.
    fn lose(&mut self, at: Timestamp) {
        self.is_whole = false;
        self.book.clear();
        self.held.clear(at);
    }

    pub fn book(&self) -> &BookOrders {
        &self.book
    }

    /// Returns the number of the last command that the book includes.
    pub fn seq(&self) -> u64 {
        self.seq
    }

    /// Returns the message for a subscriber whose book has this sequence number; `None` if it has
    /// everything, or nothing is known.
    pub fn message_since(&self, from: Option<u64>) -> Option<BookMessage> {
        // A number between two updates is none of ours, and changes apply to one book only.
        let from = from.filter(|from| *from == self.seq || self.held.begins_at(*from));
        self.is_whole.then(|| self.held.message_since(from, self.seq)).flatten()
    }

    /// Returns the sequence number before a message, and collects its changes.
    pub fn changes_of(&self, message: BookMessage, changes: &mut Vec<OrderChange>) -> u64 {
        changes.clear();
        match message {
            BookMessage::Snapshot => self.seq,
            BookMessage::Newest => {
                changes.extend(self.held.newest_changes());
                self.held.prev_seq().unwrap_or(self.seq)
            }
            BookMessage::Merged(from) => {
                changes.extend(self.held.changes_since(from));
                from
            }
        }
    }

    /// Returns the checksum that a message carries; `text` is a reused buffer.
    pub fn checksum_of(&self, message: BookMessage, text: &mut Vec<u8>) -> Option<u32> {
        if message == BookMessage::Newest && !self.held.is_checked() {
            return None;
        }
        text.clear();
        for (side, end) in [(Side::Buy, b'|'), (Side::Sell, b'\n')] {
            for order in self.book.orders(side).iter().take(CHECKSUM_ORDERS) {
                push_number(text, order.number.0);
                text.push(b':');
                push_decimal(text, order.price.raw());
                text.push(b':');
                push_decimal(text, order.qty.raw());
                text.push(b';');
            }
            text.push(end);
        }
        Some(crc32c(text))
    }
}

#[cfg(test)]
mod tests {
    use pitlane_engine::event::{BookOrder, OrderAction, OrderNumber};
    use pitlane_engine::id::SecurityId;
    use pitlane_engine::number::{Price, Qty};

    use super::*;
    use crate::stomp::held_updates::UPDATES_HELD_MAX;

    const AT: Timestamp = Timestamp(1);
    const UNIT: i64 = 100_000_000;

    fn change(action: OrderAction, number: u64, price: i64, qty: i64) -> OrderChange {
        let order = BookOrder {
            number: OrderNumber(number),
            price: Price::from_raw(price * UNIT),
            qty: Qty::from_raw(qty * UNIT),
        };
        OrderChange { action, side: Side::Buy, order }
    }

    fn send(history: &mut OrderBookHistory, kind: LevelsKind, seqs: [u64; 2], changes: &[OrderChange]) {
        let mut part = OrderChanges::new(SecurityId(1), kind, seqs[0], seqs[1]);
        (part.is_first, part.is_last) = (true, true);
        changes.iter().for_each(|change| part.push(change));
        assert!(history.push(&part));
        history.commit(AT);
    }

    fn history() -> OrderBookHistory {
        let mut history = OrderBookHistory::default();
        let orders = [change(OrderAction::Add, 7, 10, 5), change(OrderAction::Add, 8, 10, 2)];
        send(&mut history, LevelsKind::Snapshot, [4, 4], &orders);
        history
    }

    fn numbers(history: &OrderBookHistory) -> Vec<u64> {
        history.book().orders(Side::Buy).iter().map(|order| order.number.0).collect()
    }

    #[test]
    fn a_subscriber_gets_every_change_that_it_misses_in_order() {
        let mut history = history();
        assert_eq!(history.message_since(None), Some(BookMessage::Snapshot));
        assert_eq!(history.message_since(Some(4)), None);
        let (trade, add) = (change(OrderAction::Trade, 7, 10, 5), change(OrderAction::Add, 7, 10, 1));
        send(&mut history, LevelsKind::Update, [4, 6], &[trade]);
        send(&mut history, LevelsKind::Update, [6, 9], &[add]);
        assert_eq!(numbers(&history), [8, 7]);
        assert_eq!(history.message_since(Some(6)), Some(BookMessage::Newest));
        assert_eq!(history.message_since(Some(4)), Some(BookMessage::Merged(4)));
        for unknown in [3, 5, 10] {
            assert_eq!(history.message_since(Some(unknown)), Some(BookMessage::Snapshot));
        }
        let mut changes = Vec::new();
        assert_eq!(history.changes_of(BookMessage::Merged(4), &mut changes), 4);
        assert_eq!(changes, [trade, add]);
        assert_eq!(history.changes_of(BookMessage::Newest, &mut changes), 6);
        assert_eq!(changes, [add]);
        let mut text = Vec::new();
        assert_eq!(history.checksum_of(BookMessage::Newest, &mut text), None);
        let merged = history.checksum_of(BookMessage::Merged(4), &mut text);
        assert_eq!(merged, Some(crc32c(b"8:10:2;7:10:1;|\n")));
    }

    #[test]
    fn what_does_not_fit_makes_the_book_unknown_until_a_snapshot() {
        for (seqs, bad) in [
            ([5, 6], change(OrderAction::Add, 9, 10, 1)),
            ([4, 6], change(OrderAction::Remove, 9, 10, 0)),
            ([4, 6], change(OrderAction::Trade, 7, 10, 6)),
        ] {
            let mut history = history();
            send(&mut history, LevelsKind::Update, seqs, &[bad]);
            assert_eq!((history.message_since(None), numbers(&history)), (None, vec![]), "{bad:?}");
            send(&mut history, LevelsKind::Snapshot, [9, 9], &[change(OrderAction::Add, 1, 10, 1)]);
            assert_eq!(
                (history.message_since(Some(4)), numbers(&history)),
                (Some(BookMessage::Snapshot), vec![1])
            );
        }
    }

    #[test]
    fn the_first_snapshot_may_be_of_a_shard_that_has_done_nothing() {
        let mut history = OrderBookHistory::default();
        send(&mut history, LevelsKind::Snapshot, [0, 0], &[change(OrderAction::Add, 7, 10, 5)]);
        assert_eq!((history.message_since(None), numbers(&history)), (Some(BookMessage::Snapshot), vec![7]));
    }

    #[test]
    fn a_repeated_snapshot_keeps_the_updates_and_another_one_ends_them() {
        let mut history = history();
        let add = change(OrderAction::Add, 9, 10, 1);
        send(&mut history, LevelsKind::Update, [4, 6], &[add]);
        send(&mut history, LevelsKind::Snapshot, [6, 6], &[]);
        assert_eq!(history.message_since(Some(4)), Some(BookMessage::Newest), "it is the same picture");
        assert_eq!(numbers(&history), [7, 8, 9]);
        send(&mut history, LevelsKind::Snapshot, [8, 8], &[add]);
        assert_eq!(history.message_since(Some(4)), Some(BookMessage::Snapshot));
        assert_eq!((history.seq(), numbers(&history)), (8, vec![9]));
    }

    #[test]
    fn a_message_may_have_parts() {
        let mut history = OrderBookHistory::default();
        let mut part = OrderChanges::new(SecurityId(1), LevelsKind::Snapshot, 4, 4);
        part.is_first = true;
        part.push(&change(OrderAction::Add, 7, 10, 5));
        assert!(!history.push(&part));
        let mut part = OrderChanges::new(SecurityId(1), LevelsKind::Snapshot, 4, 4);
        part.is_last = true;
        part.push(&change(OrderAction::Add, 8, 10, 2));
        assert!(history.push(&part));
        history.commit(AT);
        assert_eq!(
            (history.message_since(None), numbers(&history)),
            (Some(BookMessage::Snapshot), vec![7, 8])
        );
    }

    #[test]
    fn the_longest_message_is_taken_whole() {
        let mut history = history();
        let mut part = OrderChanges::new(SecurityId(1), LevelsKind::Update, 4, 5);
        part.is_first = true;
        for count in 1..=ORDER_SCRIPT_MAX as i64 {
            part.is_last = count == ORDER_SCRIPT_MAX as i64;
            part.push(&change(OrderAction::Change, 7, 10, count));
            assert_eq!(history.push(&part), part.is_last);
            part = OrderChanges::new(SecurityId(1), LevelsKind::Update, 4, 5);
        }
        history.commit(AT);
        assert_eq!((history.seq(), history.message_since(Some(4))), (5, Some(BookMessage::Newest)));
    }

    #[test]
    fn a_message_without_its_beginning_is_ignored() {
        let mut history = history();
        let mut part = OrderChanges::new(SecurityId(1), LevelsKind::Update, 4, 6);
        part.push(&change(OrderAction::Add, 9, 10, 1));
        assert!(!history.push(&part), "its first part is missing");
        part.is_last = true;
        assert!(!history.push(&part));
        assert_eq!((history.message_since(Some(4)), numbers(&history)), (None, vec![7, 8]));
        // A part of another message in between.
        let mut snapshot = OrderChanges::new(SecurityId(1), LevelsKind::Snapshot, 4, 4);
        snapshot.is_first = true;
        assert!(!history.push(&snapshot));
        assert!(!history.push(&part));
    }

    #[test]
    fn held_updates_and_received_changes_are_bounded() {
        let mut history = history();
        let last = 4 + 2 * UPDATES_HELD_MAX as u64;
        for seq in 4..last {
            let other = change(OrderAction::Change, 7, 10, 1 + (seq % 3) as i64);
            send(&mut history, LevelsKind::Update, [seq, seq + 1], &[other]);
        }
        assert_eq!(history.held.lens(), (UPDATES_HELD_MAX, UPDATES_HELD_MAX));
        let oldest = last - UPDATES_HELD_MAX as u64;
        assert_eq!(history.message_since(Some(oldest)), Some(BookMessage::Merged(oldest)));
        assert_eq!(history.message_since(Some(oldest - 1)), Some(BookMessage::Snapshot));
        let mut part = OrderChanges::new(SecurityId(1), LevelsKind::Update, last, last + 1);
        part.is_first = true;
        part.push(&change(OrderAction::Change, 7, 10, 1));
        assert!(!history.push(&part));
        part.is_first = false;
        for _ in 0..2 * ORDER_SCRIPT_MAX {
            assert!(!history.push(&part));
            assert!(history.message.changes.len() <= ORDER_SCRIPT_MAX);
        }
        part.is_last = true;
        assert!(!history.push(&part), "the message was dropped");
    }
}
