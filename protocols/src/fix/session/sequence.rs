//! Sequence numbers of both directions, and the gap of missing messages with the early messages
//! behind it. The session sends the Resend Requests that this layer asks for, and saves the
//! numbers.
//!
//! ```text
//! received number ─┬─ below next target ─► too low, or a duplicate
//!                  ├─ next target ───────► consumed; an early message may be next
//!                  └─ above it ──────────► opens a gap; the message is kept as early
//! ```

use pitlane_engine::time::Timestamp;

use super::gap::{EarlyMessages, SequenceGap};
use crate::fix::store::SequenceNumbers;

#[derive(Debug)]
pub(super) struct SequenceLayer {
    numbers: SequenceNumbers,
    /// Numbers as the store has them.
    saved: SequenceNumbers,
    gap: Option<SequenceGap>,
    early: EarlyMessages,
}

/// The numbers.
impl SequenceLayer {
    pub(super) fn new(stored: SequenceNumbers) -> SequenceLayer {
        SequenceLayer { numbers: stored, saved: stored, gap: None, early: EarlyMessages::default() }
    }

    pub(super) fn numbers(&self) -> SequenceNumbers {
        self.numbers
    }

    /// Returns the number of the next message from the client.
    pub(super) fn next_target(&self) -> u64 {
        self.numbers.next_target_msg_seq_num
    }

    /// Returns the number of the next message that we send.
    pub(super) fn next_sender(&self) -> u64 {
        self.numbers.next_sender_msg_seq_num
    }

    /// Returns the number of the last message that we sent.
    pub(super) fn last_sender(&self) -> u64 {
        self.next_sender() - 1
    }

    pub(super) fn set_next_sender(&mut self, number: u64) {
        self.numbers.next_sender_msg_seq_num = number;
    }

    /// Consumes the number of an administrative message, which is not stored.
    pub(super) fn take_sender(&mut self) -> u64 {
        let number = self.next_sender();
        self.set_next_sender(number + 1);
        number
    }

    /// Consumes the number of a stored message. The store then has the number after it too.
    pub(super) fn consume_stored(&mut self, number: u64) {
        self.numbers.next_sender_msg_seq_num = number + 1;
        self.saved.next_sender_msg_seq_num = number + 1;
    }

    /// Returns the numbers to save, if the store has others. They never pass `first_unanswered`,
    /// the first request without an answer: see [`crate::fix::store`].
    pub(super) fn unsaved(&self, first_unanswered: Option<u64>) -> Option<SequenceNumbers> {
        let next = self.next_target();
        let next_target_msg_seq_num = first_unanswered.map_or(next, |first| first.min(next));
        let numbers = SequenceNumbers { next_target_msg_seq_num, ..self.numbers };
        (numbers != self.saved).then_some(numbers)
    }

    pub(super) fn set_saved(&mut self, numbers: SequenceNumbers) {
        self.saved = numbers;
    }

    /// Takes over numbers that another process has written to the store.
    pub(super) fn refresh(&mut self, stored: SequenceNumbers) {
        if stored != self.saved {
            (self.numbers, self.saved) = (stored, stored);
        }
    }

    /// Sets new numbers after a reset of the store.
    pub(super) fn reset(&mut self, numbers: SequenceNumbers) {
        (self.numbers, self.saved) = (numbers, numbers);
        self.forget_gap();
    }
}

/// Messages of the client.
impl SequenceLayer {
    /// Consumes a number if it is the expected one.
    pub(super) fn consume_if_expected(&mut self, number: u64) {
        if number == self.next_target() {
            self.skip_to(number + 1);
        }
    }

    /// Consumes the number of a Logon. A number above the expected one opens a gap.
    pub(super) fn consume_logon(&mut self, number: u64) {
        let next = self.next_target();
        if number == next {
            self.numbers.next_target_msg_seq_num = next + 1;
        } else if number > next {
            self.gap = Some(SequenceGap::up_to(number));
        }
    }

    /// Consumes the number of a Logout that refuses our Logon.
    pub(super) fn consume_refused_logon(&mut self, number: u64) {
        if number == self.next_target() {
            self.numbers.next_target_msg_seq_num = number + 1;
        }
    }

    /// Sets the next expected number. Removes a filled gap, or lets the next piece be requested if
    /// the gap is requested in pieces.
    pub(super) fn skip_to(&mut self, next: u64) {
        self.numbers.next_target_msg_seq_num = next;
        match &mut self.gap {
            Some(gap) if next > gap.high => self.gap = None,
            Some(gap) if gap.requested.is_some_and(|to| to != 0 && next > to) => gap.requested = None,
            _ => {}
        }
    }

    /// Opens a gap up to an early number. Returns whether there was none before.
    pub(super) fn open_gap(&mut self, number: u64) -> bool {
        let opens = number > self.next_target() && self.gap.is_none();
        if opens {
            self.gap = Some(SequenceGap::up_to(number));
        }
        opens
    }

    pub(super) fn has_gap(&self) -> bool {
        self.gap.is_some()
    }

    /// Returns BeginSeqNo and EndSeqNo of the Resend Request for the gap, once. A request covers at
    /// most `chunk` messages; zero means all.
    pub(super) fn request_gap(&mut self, now: Timestamp, chunk: u64) -> Option<(u64, u64)> {
        let begin = self.next_target();
        let gap = self.gap.as_mut().filter(|gap| gap.requested.is_none())?;
        let piece = begin.saturating_add(chunk.saturating_sub(1));
        // The last piece asks for everything that has arrived since.
        let end = if chunk == 0 || piece >= gap.high { 0 } else { piece };
        (gap.requested, gap.requested_at) = (Some(end), now);
        Some((begin, end))
    }

    /// Returns when an unfilled gap is requested again.
    pub(super) fn gap_retry_at(&self, after_ns: u64) -> Option<Timestamp> {
        self.gap.map(|gap| gap.requested_at.plus(after_ns))
    }

    /// Lets the gap be requested again.
    pub(super) fn retry_gap(&mut self) {
        if let Some(gap) = &mut self.gap {
            gap.requested = None;
        }
    }

    /// Forgets the gap and the early messages, when the connection ends or the numbers are reset.
    pub(super) fn forget_gap(&mut self) {
        self.gap = None;
        self.early.clear();
    }

    /// Keeps an early message if there is room.
    pub(super) fn keep_early(&mut self, number: u64, message: &[u8]) {
        self.early.keep(number, message);
    }

    /// Returns the early message whose turn it is, or one that was skipped.
    pub(super) fn take_early(&mut self) -> Option<Vec<u8>> {
        self.early.take(self.numbers.next_target_msg_seq_num)
    }

    /// Takes back the memory of an early message.
    pub(super) fn give_back(&mut self, message: Vec<u8>) {
        self.early.give_back(message);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOW: Timestamp = Timestamp(5);

    #[test]
    fn a_gap_is_requested_in_pieces_until_it_is_filled() {
        let mut sequence = SequenceLayer::new(SequenceNumbers::fresh(NOW));
        assert_eq!(sequence.request_gap(NOW, 3), None);
        assert!(sequence.open_gap(8) && !sequence.open_gap(9));
        assert_eq!(sequence.request_gap(NOW, 3), Some((1, 3)));
        assert_eq!(sequence.request_gap(NOW, 3), None, "the piece is requested");
        (1..=3).for_each(|number| sequence.consume_if_expected(number));
        assert_eq!(sequence.request_gap(NOW, 3), Some((4, 6)));
        sequence.skip_to(7);
        assert_eq!(sequence.request_gap(NOW, 3), Some((7, 0)), "the last piece has no end");
        sequence.retry_gap();
        assert_eq!(sequence.request_gap(NOW, 0), Some((7, 0)));
        sequence.skip_to(9);
        assert!(!sequence.has_gap());
    }

    #[test]
    fn saved_numbers_stop_at_the_first_request_without_an_answer() {
        let mut sequence = SequenceLayer::new(SequenceNumbers::fresh(NOW));
        assert_eq!(sequence.unsaved(None), None);
        (1..=4).for_each(|number| sequence.consume_if_expected(number));
        assert_eq!(sequence.unsaved(Some(3)).map(|numbers| numbers.next_target_msg_seq_num), Some(3));
        let all = sequence.unsaved(None).unwrap();
        assert_eq!(all.next_target_msg_seq_num, 5);
        sequence.set_saved(all);
        assert_eq!((sequence.unsaved(None), sequence.take_sender()), (None, 1));
        assert!(sequence.unsaved(None).is_some());
        sequence.consume_stored(2);
        assert_eq!(sequence.unsaved(None), None, "a stored message carries its number");
    }
}
