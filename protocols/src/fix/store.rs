//! What a session must not forget: its sequence numbers, the application messages it sent, and the
//! last event of each shard that it reported. The store decides where these are kept; a session
//! saves them and reads messages back by number.
//!
//! After a crash nothing may be missing and nothing doubled:
//!
//! ```text
//! message n ─► request ─► journal ─► event s ─► report m saved with s ─► number n consumed ─► sent
//! ```
//!
//! - The numbers are saved before anything is sent under them. A saved message carries its own
//!   number.
//! - The saved `next_target_msg_seq_num` never passes a request without an answer: messages that
//!   reached no journal are requested again.
//! - A report is saved together with the number of its event. After a restart the session knows
//!   which events of a journal have no report yet, and reports them under new numbers with the
//!   ExecIDs they would have had.
//! - A request that the client resends and that was answered before is recognised by its id in the
//!   saved answers.

use std::collections::VecDeque;
use std::fmt;

use pitlane_engine::id::ShardId;
use pitlane_engine::time::Timestamp;

/// Next sequence numbers of both directions, and the time of their last reset.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SequenceNumbers {
    /// Number of the next message from the counterparty.
    pub next_target_msg_seq_num: u64,
    /// Number of the next message that we send.
    pub next_sender_msg_seq_num: u64,
    /// Time at which both were last set to one.
    pub since: Timestamp,
    /// Answers to our messages below this number may be among messages that the counterparty has
    /// skipped; zero if it has skipped none since the last reset.
    pub answers_lost_before: u64,
}

impl SequenceNumbers {
    /// Returns the numbers after a reset.
    pub fn fresh(now: Timestamp) -> SequenceNumbers {
        SequenceNumbers {
            next_target_msg_seq_num: 1,
            next_sender_msg_seq_num: 1,
            since: now,
            answers_lost_before: 0,
        }
    }
}

/// The store can save nothing more, for example because the disk is full. Nothing that is not saved
/// is sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StoreFailed;

/// Event that a message reports.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ReportedEvent {
    pub shard: ShardId,
    pub seq: u64,
}

/// Storage of a session. Saved data survive a restart.
pub trait MessageStore: fmt::Debug + Send {
    fn sequence_numbers(&self) -> SequenceNumbers;

    fn set_sequence_numbers(&mut self, numbers: SequenceNumbers) -> Result<(), StoreFailed>;

    /// Saves an application message under its number, which rises, together with the event it
    /// reports: both or none. Afterwards `next_sender_msg_seq_num` is the number after it.
    fn save(&mut self, number: u64, message: &[u8], cause: Option<ReportedEvent>) -> Result<(), StoreFailed>;

    /// Returns the last reported event of a shard. A reset does not change it.
    fn last_reported_event(&self, shard: ShardId) -> u64;

    /// Copies the first message saved in `from..=to` into `into`, and returns its number.
    fn next_message(&self, from: u64, to: u64, into: &mut Vec<u8>) -> Option<u64>;

    /// Deletes all messages and sets these numbers.
    fn reset(&mut self, numbers: SequenceNumbers) -> Result<(), StoreFailed>;

    /// Reads again what another process may have written (`RefreshOnLogon`).
    fn refresh(&mut self) -> Result<(), StoreFailed>;
}

/// Messages that a store in memory holds. A client that has missed more gets gap fills for the
/// oldest.
pub const MEMORY_MESSAGES_MAX: usize = 100_000;

/// A store that lives as long as the process.
#[derive(Clone, Debug)]
pub struct MemoryStore {
    numbers: SequenceNumbers,
    /// By rising number.
    messages: VecDeque<(u64, Vec<u8>)>,
    messages_max: usize,
    /// By shard.
    reported: [u64; ShardId::MAX as usize + 1],
}

impl MemoryStore {
    pub fn new(now: Timestamp) -> MemoryStore {
        MemoryStore::with_max(now, MEMORY_MESSAGES_MAX)
    }

    /// Creates a store with room for `messages_max` messages; above it the oldest are deleted.
    pub fn with_max(now: Timestamp, messages_max: usize) -> MemoryStore {
        MemoryStore {
            numbers: SequenceNumbers::fresh(now),
            messages: VecDeque::new(),
            messages_max,
            reported: [0; ShardId::MAX as usize + 1],
        }
    }

    /// Returns the place of the first message with this number or a larger one.
    fn first_from(&self, number: u64) -> usize {
        self.messages.partition_point(|message| message.0 < number)
    }
}

impl MessageStore for MemoryStore {
    fn sequence_numbers(&self) -> SequenceNumbers {
        self.numbers
    }

    fn set_sequence_numbers(&mut self, numbers: SequenceNumbers) -> Result<(), StoreFailed> {
        self.numbers = numbers;
        Ok(())
    }

    fn save(&mut self, number: u64, message: &[u8], cause: Option<ReportedEvent>) -> Result<(), StoreFailed> {
        self.numbers.next_sender_msg_seq_num = number + 1;
        if let Some(cause) = cause {
            self.reported[cause.shard.0 as usize] = cause.seq;
        }
        // The memory of the deleted message is used for the new one.
        let mut place = match self.messages.len() >= self.messages_max {
            true => self.messages.pop_front().map_or_else(Vec::new, |(_, oldest)| oldest),
            false => Vec::new(),
        };
        place.clear();
        place.extend_from_slice(message);
        if self.messages.back().is_none_or(|&(last, _)| last < number) {
            self.messages.push_back((number, place));
            return Ok(());
        }
        let at = self.first_from(number);
        match self.messages.get_mut(at) {
            Some(same) if same.0 == number => same.1 = place,
            Some(_) | None => self.messages.insert(at, (number, place)),
        }
        Ok(())
    }

    fn last_reported_event(&self, shard: ShardId) -> u64 {
        self.reported[shard.0 as usize]
    }

    fn next_message(&self, from: u64, to: u64, into: &mut Vec<u8>) -> Option<u64> {
        let &(number, ref message) =
            self.messages.get(self.first_from(from)).filter(|first| first.0 <= to)?;
        into.clear();
        into.extend_from_slice(message);
        Some(number)
    }

    fn reset(&mut self, numbers: SequenceNumbers) -> Result<(), StoreFailed> {
        self.numbers = numbers;
        self.messages.clear();
        Ok(())
    }

    fn refresh(&mut self) -> Result<(), StoreFailed> {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_are_found_by_range_and_the_oldest_are_deleted_first() {
        let mut store = MemoryStore::with_max(Timestamp(5), 2);
        for number in [2, 5, 9] {
            store.save(number, format!("m{number}").as_bytes(), None).unwrap();
        }
        let mut into = Vec::new();
        assert_eq!(store.next_message(1, 4, &mut into), None);
        assert_eq!(store.next_message(1, 100, &mut into), Some(5));
        assert_eq!(into, b"m5");
        assert_eq!(store.next_message(6, u64::MAX, &mut into), Some(9));
        assert_eq!(store.next_message(10, 9, &mut into), None);
        // A number that is used again replaces its message, and a lower one comes before it.
        for (number, message) in [(9, "n9"), (7, "n7")] {
            store.save(number, message.as_bytes(), None).unwrap();
        }
        assert_eq!((store.next_message(6, 20, &mut into), &into[..]), (Some(7), &b"n7"[..]));
        assert_eq!((store.next_message(8, 20, &mut into), &into[..]), (Some(9), &b"n9"[..]));
        store.reset(SequenceNumbers::fresh(Timestamp(7))).unwrap();
        assert_eq!(store.next_message(1, u64::MAX, &mut into), None);
        assert_eq!(store.sequence_numbers(), SequenceNumbers::fresh(Timestamp(7)));
    }

    #[test]
    fn a_number_has_one_message_the_newest() {
        let mut store = MemoryStore::new(Timestamp(5));
        for (number, message) in [(4, "m4"), (4, "n4"), (5, "m5"), (4, "o4")] {
            store.save(number, message.as_bytes(), None).unwrap();
        }
        let mut into = Vec::new();
        assert_eq!((store.next_message(1, 4, &mut into), &into[..]), (Some(4), &b"o4"[..]));
        assert_eq!((store.next_message(5, 9, &mut into), &into[..]), (Some(5), &b"m5"[..]));
        assert_eq!(store.messages.len(), 2);
    }

    #[test]
    fn the_last_reported_event_of_a_shard_is_kept_by_a_reset() {
        let mut store = MemoryStore::new(Timestamp(5));
        for (number, shard, seq) in [(1, 0, 7), (2, ShardId::MAX, 8), (3, 0, 9)] {
            let cause = ReportedEvent { shard: ShardId(shard), seq };
            store.save(number, b"m", Some(cause)).unwrap();
        }
        store.save(4, b"m", None).unwrap();
        store.reset(SequenceNumbers::fresh(Timestamp(7))).unwrap();
        let reported = [0, 1, ShardId::MAX].map(|shard| store.last_reported_event(ShardId(shard)));
        assert_eq!(reported, [9, 0, 8]);
    }
}
