//! A resend of what the client has missed, in steps: application messages as they were, and one gap
//! fill for each run of other messages. Messages sent meanwhile are stored and follow in their
//! order. The session layer writes each step.
//!
//! Rules: docs/fix-rules.md#resend-requests.

use pitlane_engine::text::{TextError, parse_u64};
use pitlane_engine::time::{NS_PER_S, Timestamp};

use super::sequence::SequenceLayer;
use crate::fix::fields::{FieldFault, FixMessage, SessionRejectReason};
use crate::fix::tag;

/// Equal Resend Requests in a row that are answered; the next one ends the session.
const SAME_REQUESTS_MAX: u32 = 3;

/// Resend Requests within [`WINDOW_NS`] that are answered, whatever their range.
const REQUESTS_MAX: u32 = 32;
const WINDOW_NS: u64 = 10 * NS_PER_S;

#[derive(Debug, Default)]
pub(super) struct Resend {
    /// Next and last number of the running resend.
    run: Option<(u64, u64)>,
    /// First number that was deferred meanwhile and follows unchanged.
    deferred: Option<u64>,
    /// Range of the last request, and how often it arrived in a row.
    last: (u64, u64),
    same: u32,
    /// Requests since `since`.
    requests: u32,
    since: Timestamp,
    /// Stored message of the last step.
    message: Vec<u8>,
}

/// One message of a resend.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ResendStep {
    /// [`Resend::message`], marked as a possible duplicate.
    Message { number: u64 },
    /// A gap fill from `number` to `to`, because nothing between them is stored.
    GapFill { number: u64, to: u64 },
    /// [`Resend::message`] unchanged: it was stored during the resend and not sent yet.
    Deferred,
}

impl Resend {
    pub(super) fn is_active(&self) -> bool {
        self.run.is_some()
    }

    /// Records that a message was stored and not sent. During a resend it follows by itself; a
    /// client that is not connected requests it later.
    pub(super) fn defer(&mut self, number: u64) {
        if self.run.is_some() {
            self.deferred.get_or_insert(number);
        }
    }

    pub(super) fn begin(&mut self, begin: u64, end: u64) {
        self.run = Some((begin, end));
    }

    pub(super) fn stop(&mut self) {
        self.run = None;
        self.deferred = None;
    }

    /// Returns what to write next, or `None` when the resend is over.
    pub(super) fn next_step(&mut self, sequence: &SequenceLayer) -> Option<ResendStep> {
        let (next, end) = self.run?;
        if next > end {
            return self.next_deferred(sequence, end);
        }
        match sequence.next_message(next, end, &mut self.message) {
            Some(number) if number == next => {
                self.run = Some((next + 1, end));
                Some(ResendStep::Message { number })
            }
            // There is nothing to resend up to the next stored message or to the end.
            other => {
                let to = other.unwrap_or(end + 1);
                self.run = Some((to, end));
                Some(ResendStep::GapFill { number: next, to })
            }
        }
    }

    /// Returns the next of the deferred messages, and ends the resend after the last of them.
    fn next_deferred(&mut self, sequence: &SequenceLayer, end: u64) -> Option<ResendStep> {
        let stored = self.deferred.and_then(|first| {
            sequence.next_message(first.max(end + 1), sequence.last_sender(), &mut self.message)
        });
        let Some(number) = stored else {
            self.stop();
            return None;
        };
        // Until the next step the rest waits as an empty run with deferred messages behind it.
        self.run = Some((number + 1, number));
        Some(ResendStep::Deferred)
    }

    /// Returns the stored message of the last step.
    pub(super) fn message(&self) -> &[u8] {
        &self.message
    }

    /// Counts a request and returns whether it is one too many.
    pub(super) fn is_flood(&mut self, now: Timestamp, range: (u64, u64)) -> bool {
        self.same = if self.last == range { self.same + 1 } else { 1 };
        self.last = range;
        if now.since(self.since) > WINDOW_NS {
            (self.since, self.requests) = (now, 0);
        }
        self.requests += 1;
        self.same > SAME_REQUESTS_MAX || self.requests > REQUESTS_MAX
    }

    /// Resets the count of equal requests after another message.
    pub(super) fn handle_other_message(&mut self) {
        self.same = 0;
    }
}

/// Returns BeginSeqNo and EndSeqNo.
pub(super) fn requested_range(message: &FixMessage) -> Result<(u64, u64), FieldFault> {
    let number = |tag: u32| {
        let fault = |reason| FieldFault { reason, tag, at: 0 };
        let value = message.get(tag).ok_or(fault(SessionRejectReason::RequiredTagMissing))?;
        parse_u64(value).map_err(|error| match error {
            TextError::Range => fault(SessionRejectReason::ValueIncorrect),
            TextError::Empty | TextError::Character | TextError::TooManyDecimals | TextError::TooLong => {
                fault(SessionRejectReason::IncorrectFormat)
            }
        })
    };
    let (begin, end) = (number(tag::BEGIN_SEQ_NO)?, number(tag::END_SEQ_NO)?);
    let wrong = |tag| Err(FieldFault { reason: SessionRejectReason::ValueIncorrect, tag, at: 0 });
    match (begin, end) {
        (0, _) => wrong(tag::BEGIN_SEQ_NO),
        (begin, end) if end != 0 && begin > end => wrong(tag::END_SEQ_NO),
        range => Ok(range),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fix::fields::tests::check;
    use crate::fix::store::MemoryStore;

    #[test]
    fn repeated_resend_requests_are_limited_by_count_and_time() {
        let (mut resend, now) = (Resend::default(), Timestamp(WINDOW_NS * 5));
        for _ in 0..SAME_REQUESTS_MAX {
            assert!(!resend.is_flood(now, (1, 9)));
        }
        assert!(resend.is_flood(now, (1, 9)), "the same once more");
        for other in SAME_REQUESTS_MAX + 1..REQUESTS_MAX {
            assert!(!resend.is_flood(now, (other as u64, 9)));
        }
        assert!(resend.is_flood(now, (1_000, 9)), "too many within the time");
        assert!(resend.is_flood(now.plus(WINDOW_NS), (1_002, 9)), "which is not over yet");
        assert!(!resend.is_flood(now.plus(WINDOW_NS + 1), (1_001, 9)), "which is over");
    }

    #[test]
    fn another_message_between_them_makes_equal_resend_requests_new() {
        let mut resend = Resend::default();
        for round in 0..4 {
            for _ in 0..SAME_REQUESTS_MAX {
                assert!(!resend.is_flood(Timestamp(1), (1, 9)), "{round}");
            }
            resend.handle_other_message();
        }
    }

    #[test]
    fn the_range_of_a_resend_request_is_checked() {
        use SessionRejectReason::{IncorrectFormat, RequiredTagMissing, ValueIncorrect};
        for (fields, expected) in [
            ("7=1|16=0|", Ok((1, 0))),
            ("7=3|16=3|", Ok((3, 3))),
            ("7=3|16=9|", Ok((3, 9))),
            ("7=3|16=2|", Err((ValueIncorrect, 16))),
            ("7=0|16=2|", Err((ValueIncorrect, 7))),
            ("16=2|", Err((RequiredTagMissing, 7))),
            ("7=2|", Err((RequiredTagMissing, 16))),
            ("7=x|16=2|", Err((IncorrectFormat, 7))),
            ("7=1|16=99999999999999999999|", Err((ValueIncorrect, 16))),
        ] {
            check(&format!("35=2|{fields}"), |message| {
                let range = requested_range(message).map_err(|fault| (fault.reason, fault.tag));
                assert_eq!(range, expected, "{fields}");
            });
        }
    }

    #[test]
    fn a_message_that_a_second_request_covers_follows_once() {
        let mut sequence = SequenceLayer::new(Box::new(MemoryStore::new(Timestamp(1))));
        let mut resend = Resend::default();
        sequence.store_message(b"one").unwrap();
        resend.begin(1, 1);
        sequence.store_message(b"two").unwrap();
        resend.defer(2);
        // The client asks again for everything, as it is now.
        resend.begin(1, 2);
        sequence.store_message(b"three").unwrap();
        resend.defer(3);
        let mut steps = Vec::new();
        while let Some(step) = resend.next_step(&sequence) {
            steps.push((step, String::from_utf8_lossy(resend.message()).into_owned()));
        }
        let message = |number, text: &str| (ResendStep::Message { number }, text.to_string());
        let deferred = (ResendStep::Deferred, "three".to_string());
        assert_eq!(steps, [message(1, "one"), message(2, "two"), deferred]);
    }

    #[test]
    fn a_resend_fills_gaps_and_ends_with_the_messages_stored_meanwhile() {
        let mut sequence = SequenceLayer::new(Box::new(MemoryStore::new(Timestamp(1))));
        let mut resend = Resend::default();
        // Numbers 1, 3 and 4 are administrative, 2 and 5 are stored.
        sequence.take_sender();
        sequence.store_message(b"two").unwrap();
        sequence.set_next_sender(5);
        sequence.store_message(b"five").unwrap();
        resend.begin(1, 5);
        assert_eq!(resend.next_step(&sequence), Some(ResendStep::GapFill { number: 1, to: 2 }));
        assert_eq!(resend.next_step(&sequence), Some(ResendStep::Message { number: 2 }));
        assert_eq!(resend.message(), b"two");
        assert_eq!(resend.next_step(&sequence), Some(ResendStep::GapFill { number: 3, to: 5 }));
        sequence.store_message(b"six").unwrap();
        resend.defer(6);
        assert_eq!(resend.next_step(&sequence), Some(ResendStep::Message { number: 5 }));
        assert_eq!(resend.next_step(&sequence), Some(ResendStep::Deferred));
        assert_eq!(resend.message(), b"six");
        sequence.store_message(b"seven").unwrap();
        resend.defer(7);
        assert_eq!(resend.next_step(&sequence), Some(ResendStep::Deferred));
        assert_eq!(resend.message(), b"seven");
        assert!(resend.is_active(), "the next step looks whether there are more");
        assert_eq!(resend.next_step(&sequence), None);
        assert!(!resend.is_active());
    }
}
