//! Sequence numbers of both directions with their store, the gap of missing messages with the early
//! messages behind it, and the requests that hold back the saved number. The session layer sends
//! the Resend Requests that this layer asks for.
//!
//! ```text
//! received number ─┬─ below next target ─► too low, or a duplicate
//!                  ├─ next target ───────► consumed; an early message may be next
//!                  └─ above it ──────────► opens a gap; the message is kept as early
//! ```

mod gap;
mod in_flight;

use std::cmp::Ordering;

use pitlane_engine::id::ShardId;
use pitlane_engine::time::Timestamp;

use self::gap::{EarlyMessages, SequenceGap};
use self::in_flight::InFlightRequests;
use crate::decoded::Decoded;
use crate::fix::fields::{Fields, FixMessage, read};
use crate::fix::frame;
use crate::fix::store::{MessageStore, ReportedEvent, SequenceNumbers, StoreFailed};

#[derive(Debug)]
pub(super) struct SequenceLayer {
    store: Box<dyn MessageStore>,
    numbers: SequenceNumbers,
    /// Numbers as the store has them.
    saved: SequenceNumbers,
    gap: Option<SequenceGap>,
    early: EarlyMessages,
    /// Requests whose numbers are consumed and not yet saved.
    pub in_flight: InFlightRequests,
    /// Event that the next stored message reports.
    cause: Option<ReportedEvent>,
}

/// The numbers.
impl SequenceLayer {
    pub(super) fn new(store: Box<dyn MessageStore>) -> SequenceLayer {
        let stored = store.sequence_numbers();
        SequenceLayer {
            store,
            numbers: stored,
            saved: stored,
            gap: None,
            early: EarlyMessages::default(),
            in_flight: InFlightRequests::default(),
            cause: None,
        }
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

    /// Records that answers to everything sent so far may never arrive.
    pub(super) fn mark_answers_lost(&mut self) {
        self.numbers.answers_lost_before = self.next_sender();
    }

    /// Returns whether answers to our message with this number may be among lost messages.
    pub(super) fn may_lack_answer(&self, number: u64) -> bool {
        number < self.numbers.answers_lost_before
    }

    /// Consumes the number of an administrative message, which is not stored.
    pub(super) fn take_sender(&mut self) -> u64 {
        let number = self.next_sender();
        self.set_next_sender(number + 1);
        number
    }
}

/// The store.
impl SequenceLayer {
    /// Sets the event that the next stored message reports. Both are stored together.
    pub(super) fn set_cause(&mut self, cause: Option<ReportedEvent>) {
        self.cause = cause;
    }

    /// Stores a message under the next number and consumes the number. The store then has the
    /// number after it too.
    pub(super) fn store_message(&mut self, message: &[u8]) -> Result<(), StoreFailed> {
        let number = self.next_sender();
        self.store.save(number, message, self.cause.take())?;
        self.numbers.next_sender_msg_seq_num = number + 1;
        self.saved.next_sender_msg_seq_num = number + 1;
        Ok(())
    }

    /// Saves the numbers if the store has others.
    pub(super) fn save(&mut self) -> Result<(), StoreFailed> {
        let Some(numbers) = self.unsaved() else { return Ok(()) };
        self.store.set_sequence_numbers(numbers)?;
        self.saved = numbers;
        Ok(())
    }

    /// Returns the numbers to save, if the store has others. They never pass the first request
    /// without an answer: see [`crate::fix::store`].
    fn unsaved(&self) -> Option<SequenceNumbers> {
        let next = self.next_target();
        let next_target_msg_seq_num =
            self.in_flight.first_msg_seq_num().map_or(next, |first| first.min(next));
        let numbers = SequenceNumbers { next_target_msg_seq_num, ..self.numbers };
        (numbers != self.saved).then_some(numbers)
    }

    /// Takes over numbers that another process has written to the store.
    pub(super) fn refresh(&mut self) -> Result<(), StoreFailed> {
        self.store.refresh()?;
        let stored = self.store.sequence_numbers();
        if stored != self.saved {
            (self.numbers, self.saved) = (stored, stored);
        }
        Ok(())
    }

    /// Sets both numbers to one and clears the store.
    pub(super) fn reset(&mut self, now: Timestamp) -> Result<(), StoreFailed> {
        let numbers = SequenceNumbers::fresh(now);
        self.store.reset(numbers)?;
        (self.numbers, self.saved) = (numbers, numbers);
        self.forget_gap();
        self.in_flight.reset();
        Ok(())
    }

    /// Copies the first message stored in `from..=to` into `into`, and returns its number.
    pub(super) fn next_message(&self, from: u64, to: u64, into: &mut Vec<u8>) -> Option<u64> {
        self.store.next_message(from, to, into)
    }

    /// Visits all stored messages, in order.
    pub(super) fn for_each_message(&self, mut visit: impl FnMut(&FixMessage)) {
        let (mut message, mut next) = (Vec::new(), 1);
        let mut fields: Box<Fields> = Box::default();
        while let Some(number) = self.store.next_message(next, u64::MAX, &mut message) {
            next = number + 1;
            if let Ok(Decoded::Message { message: frame, .. }) = frame::decode(&message, usize::MAX) {
                visit(&read(frame, &mut fields));
            }
        }
    }

    pub(super) fn last_reported_event(&self, shard: ShardId) -> u64 {
        self.store.last_reported_event(shard)
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
        match number.cmp(&self.next_target()) {
            Ordering::Less => {}
            Ordering::Equal => self.numbers.next_target_msg_seq_num = number + 1,
            Ordering::Greater => self.gap = Some(SequenceGap::up_to(number)),
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
    use crate::fix::encode::Encoder;
    use crate::fix::msg_type;
    use crate::fix::session::tests::SharedStore;
    use crate::fix::store::MemoryStore;
    use crate::fix::version::FixVersion;

    const NOW: Timestamp = Timestamp(5);

    fn fresh() -> SequenceLayer {
        SequenceLayer::new(Box::new(MemoryStore::new(NOW)))
    }

    #[test]
    fn a_gap_is_requested_in_pieces_until_it_is_filled() {
        let mut sequence = SequenceLayer::new(Box::new(MemoryStore::new(NOW)));
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
    fn answers_to_what_was_sent_before_a_loss_may_be_lost() {
        let mut sequence = fresh();
        let before = sequence.take_sender();
        sequence.mark_answers_lost();
        let after = sequence.take_sender();
        assert_eq!([before, after].map(|number| sequence.may_lack_answer(number)), [true, false]);
    }

    #[test]
    fn saved_numbers_stop_at_the_first_request_without_an_answer() {
        let mut sequence = SequenceLayer::new(Box::new(MemoryStore::new(NOW)));
        assert_eq!(sequence.unsaved(), None);
        sequence.in_flight.begin(3);
        (1..=4).for_each(|number| sequence.consume_if_expected(number));
        assert_eq!(sequence.unsaved().map(|numbers| numbers.next_target_msg_seq_num), Some(3));
        sequence.in_flight.assign(None);
        assert_eq!(sequence.unsaved().map(|numbers| numbers.next_target_msg_seq_num), Some(5));
        sequence.save().unwrap();
        assert_eq!((sequence.unsaved(), sequence.take_sender()), (None, 1));
        assert!(sequence.unsaved().is_some());
        sequence.store_message(b"2").unwrap();
        assert_eq!(sequence.unsaved(), None, "a stored message carries its number");
    }

    #[test]
    fn a_logon_above_the_expected_number_opens_a_gap() {
        for (number, next, has_gap) in [(4, 5, false), (5, 6, false), (6, 5, true)] {
            let mut sequence = fresh();
            sequence.skip_to(5);
            sequence.consume_logon(number);
            assert_eq!((sequence.next_target(), sequence.has_gap()), (next, has_gap), "{number}");
        }
        for (number, next) in [(4, 5), (5, 6), (6, 5)] {
            let mut sequence = fresh();
            sequence.skip_to(5);
            sequence.consume_refused_logon(number);
            assert_eq!((sequence.next_target(), sequence.has_gap()), (next, false), "{number}");
        }
    }

    #[test]
    fn a_gap_ends_behind_its_last_message_and_with_its_connection() {
        let mut sequence = fresh();
        assert!(!sequence.open_gap(1), "it is expected");
        assert!(sequence.open_gap(9));
        assert_eq!(sequence.request_gap(Timestamp(7), 3), Some((1, 3)));
        assert_eq!(sequence.gap_retry_at(100), Some(Timestamp(107)));
        sequence.skip_to(3);
        assert_eq!(sequence.request_gap(NOW, 3), None, "the piece is not complete");
        sequence.skip_to(8);
        assert_eq!(sequence.request_gap(NOW, 0), Some((8, 0)));
        sequence.skip_to(9);
        assert!(sequence.has_gap(), "its last message is missing");
        assert_eq!(sequence.request_gap(NOW, 0), None, "it is requested");
        sequence.keep_early(10, b"ten");
        sequence.forget_gap();
        sequence.skip_to(10);
        assert_eq!((sequence.has_gap(), sequence.take_early()), (false, None));
        assert_eq!(sequence.gap_retry_at(100), None);
    }

    #[test]
    fn numbers_of_another_process_replace_those_that_it_has_changed() {
        let store = SharedStore::new(NOW);
        let mut sequence = SequenceLayer::new(Box::new(store.clone()));
        sequence.skip_to(4);
        sequence.refresh().unwrap();
        assert_eq!(sequence.next_target(), 4, "the store has nothing new");
        let numbers = SequenceNumbers { next_target_msg_seq_num: 9, ..SequenceNumbers::fresh(NOW) };
        store.clone().set_sequence_numbers(numbers).unwrap();
        sequence.refresh().unwrap();
        assert_eq!((sequence.next_target(), sequence.unsaved()), (9, None));
    }

    #[test]
    fn a_message_is_stored_with_its_event_and_visited_in_its_order() {
        let mut sequence = fresh();
        let shard = ShardId(0);
        assert_eq!(sequence.last_reported_event(shard), 0);
        let mut encoder = Encoder::new(FixVersion::Fix44, "PITLANE", "CLIENT1");
        for (number, event) in [(1, Some(7)), (2, None), (3, Some(9))] {
            let mut message = Vec::new();
            encoder.begin(&mut message, msg_type::EXECUTION_REPORT, number, NOW).finish();
            sequence.set_cause(event.map(|seq| ReportedEvent { shard, seq }));
            sequence.store_message(&message).unwrap();
            assert_eq!(sequence.last_reported_event(shard), if number < 3 { 7 } else { 9 });
        }
        let mut visited = Vec::new();
        sequence.for_each_message(|message| visited.push(message.header.msg_seq_num.unwrap()[0]));
        assert_eq!(visited, b"123");
    }
}
