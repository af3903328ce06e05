//! Messages of the client that are missing, and those that came too early and wait for them.

use std::collections::BTreeMap;

use pitlane_engine::time::Timestamp;

/// Early messages that wait. Of more the client is asked again: a Resend Request names everything from the gap on.
const EARLY_MAX: usize = 64;

/// Bytes of early messages that wait.
const EARLY_BYTES_MAX: usize = 64 * 1_024;

/// Messages are missing up to one that came too early.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SequenceGap {
    /// The number that showed it. Closed when the next number is above.
    pub high: u64,
    /// Up to where we have asked: zero, to the end; None: not yet.
    pub asked: Option<u64>,
    pub asked_at: Timestamp,
}

/// Early messages by their numbers.
#[derive(Debug, Default)]
pub struct EarlyMessages {
    messages: BTreeMap<u64, Vec<u8>>,
    bytes: usize,
    /// Memory that is used again.
    spare: Vec<Vec<u8>>,
}

impl EarlyMessages {
    /// Keeps a message if there is room.
    pub fn keep(&mut self, number: u64, message: &[u8]) {
        let full = self.messages.len() == EARLY_MAX || self.bytes + message.len() > EARLY_BYTES_MAX;
        if full || self.messages.contains_key(&number) {
            return;
        }
        let mut place = self.spare.pop().unwrap_or_default();
        place.extend_from_slice(message);
        self.bytes += message.len();
        self.messages.insert(number, place);
    }

    /// The message whose turn it is, or one that was passed over: these are given too, since they may want an answer.
    pub fn take(&mut self, incoming: u64) -> Option<Vec<u8>> {
        let (&number, _) = self.messages.first_key_value()?;
        if number > incoming {
            return None;
        }
        let (_, message) = self.messages.pop_first()?;
        self.bytes -= message.len();
        Some(message)
    }

    /// The memory of a message that was taken.
    pub fn give_back(&mut self, mut place: Vec<u8>) {
        place.clear();
        self.spare.push(place);
    }

    pub fn clear(&mut self) {
        while let Some((_, place)) = self.messages.pop_first() {
            self.give_back(place);
        }
        self.bytes = 0;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn early_messages_come_in_order_and_are_bounded() {
        let mut early = EarlyMessages::default();
        for number in (0..1_000).rev() {
            early.keep(number + 5, &[number as u8]);
        }
        assert_eq!(early.take(5), None);
        assert_eq!(early.messages.len(), EARLY_MAX);
        let first = *early.messages.keys().next().unwrap();
        assert_eq!(early.take(first), Some(vec![(first - 5) as u8]));
        early.clear();
        early.keep(7, &vec![0; EARLY_BYTES_MAX + 1]);
        assert_eq!(early.take(u64::MAX), None);
        early.keep(7, b"a");
        early.keep(7, b"b");
        assert_eq!(early.take(9).as_deref(), Some(&b"a"[..]));
    }
}
