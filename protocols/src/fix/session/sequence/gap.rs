//! Missing messages of the client, and early messages that wait for them.
//!
//! Rules: docs/fix-rules.md#gaps.

use std::collections::BTreeMap;

use pitlane_engine::time::Timestamp;

/// Early messages that wait. Further ones are requested again, because a Resend Request covers
/// everything from the gap on.
const EARLY_MAX: usize = 64;

/// Bytes of early messages that wait.
const EARLY_BYTES_MAX: usize = 64 * 1_024;

/// A gap of missing messages up to one that arrived early.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct SequenceGap {
    /// Number that revealed the gap. The gap is closed when the next expected number is above it.
    pub high: u64,
    /// End of the last Resend Request: zero means to the end; `None` means that nothing is
    /// requested yet.
    pub requested: Option<u64>,
    pub requested_at: Timestamp,
}

impl SequenceGap {
    /// Returns a gap that is not requested yet.
    pub(super) fn up_to(high: u64) -> SequenceGap {
        SequenceGap { high, requested: None, requested_at: Timestamp::MAX }
    }
}

/// Early messages by sequence number.
#[derive(Debug, Default)]
pub(super) struct EarlyMessages {
    messages: BTreeMap<u64, Vec<u8>>,
    bytes: usize,
    /// Memory for reuse.
    spare: Vec<Vec<u8>>,
}

impl EarlyMessages {
    /// Keeps a message if there is room.
    pub(super) fn keep(&mut self, number: u64, message: &[u8]) {
        let full = self.messages.len() == EARLY_MAX || self.bytes + message.len() > EARLY_BYTES_MAX;
        if full || self.messages.contains_key(&number) {
            return;
        }
        let mut place = self.spare.pop().unwrap_or_default();
        place.extend_from_slice(message);
        self.bytes += message.len();
        self.messages.insert(number, place);
    }

    /// Returns the message whose turn it is, or one that was skipped: a skipped message may need an
    /// answer too.
    pub(super) fn take(&mut self, incoming: u64) -> Option<Vec<u8>> {
        let (&number, _) = self.messages.first_key_value()?;
        if number > incoming {
            return None;
        }
        let (_, message) = self.messages.pop_first()?;
        self.bytes -= message.len();
        Some(message)
    }

    /// Takes back the memory of a message.
    pub(super) fn give_back(&mut self, mut place: Vec<u8>) {
        place.clear();
        self.spare.push(place);
    }

    pub(super) fn clear(&mut self) {
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
    fn early_messages_are_ordered_and_bounded() {
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
