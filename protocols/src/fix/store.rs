//! What a session must not forget: its numbers, the application messages it sent, and up to which event of each shard it has
//! reported. Where they are kept is the caller's business; a session only says what is to be kept, and asks for it again by number.
//!
//! After a crash nothing may be missing and nothing doubled:
//!
//! ```text
//! message n ─► request ─► shard's journal ─► event s ─► report m kept, with s ─► the number n is behind us ─► sent
//! ```
//!
//! - The numbers are kept before anything is sent that was said under them; those of messages that are kept stand in these.
//! - The incoming number that is kept never passes a request without an answer: what did not reach a journal is asked for again.
//! - A report is kept together with the number of its event: whoever starts again knows which events of a journal have no
//!   report yet, and has them reported under new numbers, with the ExecIDs they would have had.
//! - What the client then says again and was answered already is known by its id in the answers that are kept.

use std::collections::BTreeMap;
use std::fmt;

use pitlane_engine::id::ShardId;
use pitlane_engine::time::Timestamp;

/// The next numbers of both directions, and since when they count.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SequenceNumbers {
    /// The number that must come next.
    pub next_target_msg_seq_num: u64,
    /// The number that will be sent next.
    pub next_sender_msg_seq_num: u64,
    /// When they were last set to one.
    pub since: Timestamp,
}

impl SequenceNumbers {
    /// As they are after a reset.
    pub fn fresh(now: Timestamp) -> SequenceNumbers {
        SequenceNumbers { next_target_msg_seq_num: 1, next_sender_msg_seq_num: 1, since: now }
    }
}

/// Nothing more can be kept: the disk is full, or worse. Nothing that was not kept is sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StoreFailed;

/// The event that a message reports.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ReportedEvent {
    pub shard: ShardId,
    pub seq: u64,
}

/// Where a session keeps things. What was kept is there after a restart.
pub trait MessageStore: fmt::Debug + Send {
    fn sequence_numbers(&self) -> SequenceNumbers;

    fn set_sequence_numbers(&mut self, numbers: SequenceNumbers) -> Result<(), StoreFailed>;

    /// Keeps an application message under its number, which rises, with the event it reports: both or none. The next outgoing
    /// number is the one behind it from then on.
    fn save(&mut self, number: u64, message: &[u8], cause: Option<ReportedEvent>) -> Result<(), StoreFailed>;

    /// The last event of this shard that was reported; a reset does not change it.
    fn last_reported_event(&self, shard: ShardId) -> u64;

    /// Copies the first message kept in `from..=to` into `into`, and gives its number.
    fn next_message(&self, from: u64, to: u64, into: &mut Vec<u8>) -> Option<u64>;

    /// Forgets all messages and begins anew with these numbers.
    fn reset(&mut self, numbers: SequenceNumbers) -> Result<(), StoreFailed>;

    /// Reads again what another process may have written (`RefreshOnLogon`).
    fn refresh(&mut self) -> Result<(), StoreFailed>;
}

/// Messages that a store in memory keeps. A client that has missed more gets gap fills for the oldest.
pub const MEMORY_MESSAGES_MAX: usize = 100_000;

/// A store that lives as long as the process.
#[derive(Clone, Debug)]
pub struct MemoryStore {
    numbers: SequenceNumbers,
    messages: BTreeMap<u64, Vec<u8>>,
    messages_max: usize,
    heard: BTreeMap<ShardId, u64>,
}

impl MemoryStore {
    pub fn new(now: Timestamp) -> MemoryStore {
        MemoryStore::with_max(now, MEMORY_MESSAGES_MAX)
    }

    /// With room for so many messages; of more the oldest are forgotten.
    pub fn with_max(now: Timestamp, messages_max: usize) -> MemoryStore {
        MemoryStore {
            numbers: SequenceNumbers::fresh(now),
            messages: BTreeMap::new(),
            messages_max,
            heard: BTreeMap::new(),
        }
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
            self.heard.insert(cause.shard, cause.seq);
        }
        // The memory of the one that must go serves the one that comes.
        let mut place = match self.messages.len() >= self.messages_max {
            true => self.messages.pop_first().map_or_else(Vec::new, |(_, oldest)| oldest),
            false => Vec::new(),
        };
        place.clear();
        place.extend_from_slice(message);
        self.messages.insert(number, place);
        Ok(())
    }

    fn last_reported_event(&self, shard: ShardId) -> u64 {
        self.heard.get(&shard).copied().unwrap_or(0)
    }

    fn next_message(&self, from: u64, to: u64, into: &mut Vec<u8>) -> Option<u64> {
        if from > to {
            return None;
        }
        let (&number, message) = self.messages.range(from..=to).next()?;
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
    fn what_was_kept_is_found_by_range_and_the_oldest_goes_first() {
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
        store.reset(SequenceNumbers::fresh(Timestamp(7))).unwrap();
        assert_eq!(store.next_message(1, u64::MAX, &mut into), None);
        assert_eq!(
            store.sequence_numbers(),
            SequenceNumbers { next_target_msg_seq_num: 1, next_sender_msg_seq_num: 1, since: Timestamp(7) }
        );
    }
}
