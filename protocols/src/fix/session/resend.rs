//! Resends what the client has missed, in bounded steps: application messages as they were, and one
//! gap fill for each run of other messages. Messages sent meanwhile are stored and follow in their
//! order.
//!
//! Rules: docs/fix-rules.md#resend-requests.

use pitlane_engine::time::{NS_PER_S, Timestamp};

use super::{DisconnectReason, FixSession, FixSessionState, OUTPUT_BYTES_HIGH};
use crate::fix::fields::{FieldFault, FixMessage, SessionRejectReason};
use crate::fix::msg_type;
use crate::fix::tag::{self, prefix};
use pitlane_engine::text::{TextError, parse_u64};

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
    scratch: Vec<u8>,
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

    pub(super) fn stop(&mut self) {
        self.run = None;
        self.deferred = None;
    }

    /// Counts a request and returns whether it is one too many.
    fn is_flood(&mut self, now: Timestamp, range: (u64, u64)) -> bool {
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

impl FixSession {
    /// Handles Resend Request (2).
    pub(super) fn handle_resend_request(&mut self, now: Timestamp, message: &FixMessage, number: u64) {
        let (begin, end) = match range(message) {
            Ok(range) => range,
            Err(fault) => return self.reject(now, message, number, fault),
        };
        if self.resend.is_flood(now, (begin, end)) {
            return self.log_out(now, b"Too many resend requests", DisconnectReason::ResendFlood);
        }
        let last = self.sequence.last_sender();
        if begin > last + 1 {
            let fault =
                FieldFault { reason: SessionRejectReason::ValueIncorrect, tag: tag::BEGIN_SEQ_NO, at: 0 };
            return self.reject(now, message, number, fault);
        }
        let end = if end == 0 { last } else { end.min(last) };
        // If the client expects our next message, there is nothing to resend.
        if begin <= end {
            self.begin_resend(now, begin, end);
        }
    }

    pub(super) fn begin_resend(&mut self, now: Timestamp, begin: u64, end: u64) {
        self.resend.run = Some((begin, end));
        self.restart_synchronization();
        self.continue_resend(now);
    }

    /// Runs one bounded step of a resend.
    pub(super) fn continue_resend(&mut self, now: Timestamp) {
        while let Some((next, end)) = self.resend.run {
            if self.output.len() >= OUTPUT_BYTES_HIGH
                || !matches!(self.state, FixSessionState::LoggedOn | FixSessionState::LoggingOut)
            {
                return;
            }
            if next > end {
                self.send_deferred(end);
                continue;
            }
            let kept = self.store.next_message(next, end, &mut self.resend.scratch);
            match kept {
                Some(number) if number == next => {
                    self.resend_message(now, number);
                    self.resend.run = Some((next + 1, end));
                }
                // There is nothing to resend up to the next stored message or to the end.
                other => {
                    let to = other.unwrap_or(end + 1);
                    self.send_gap_fill(now, next, to);
                    self.resend.run = Some((to, end));
                }
            }
            self.timers.sent(now);
        }
    }

    /// Sends the deferred messages unchanged, and then ends the resend.
    fn send_deferred(&mut self, end: u64) {
        let from = self.resend.deferred.map_or(end + 1, |first| first.max(end + 1));
        let last = self.sequence.last_sender();
        let mut next = from;
        while self.resend.deferred.is_some() && self.output.len() < OUTPUT_BYTES_HIGH {
            let Some(number) = self.store.next_message(next, last, &mut self.resend.scratch) else {
                self.resend.deferred = None;
                break;
            };
            self.output.bytes.extend_from_slice(&self.resend.scratch);
            self.counts.messages_out += 1;
            next = number + 1;
            self.resend.deferred = Some(next);
        }
        // Without room the rest waits as an empty run with deferred messages.
        if self.resend.deferred.is_none() {
            self.resend.run = None;
        } else {
            self.resend.run = Some((next, next - 1));
        }
    }

    fn resend_message(&mut self, now: Timestamp, number: u64) {
        let message = std::mem::take(&mut self.resend.scratch);
        let ours = self.encoder.resend(&mut self.output.bytes, &message, number, now);
        self.resend.scratch = message;
        self.counts.messages_out += 1;
        if !ours {
            // The store returned something else than it was given. A gap fill is better than
            // garbage.
            self.send_gap_fill(now, number, number + 1);
        }
    }

    /// Sends SequenceReset-GapFill from one number to the next that counts.
    fn send_gap_fill(&mut self, now: Timestamp, number: u64, to: u64) {
        let mut draft =
            self.encoder.begin_resend(&mut self.output.bytes, msg_type::SEQUENCE_RESET, number, now, None);
        draft.code(prefix::GAP_FILL_FLAG, b'Y');
        draft.number(prefix::NEW_SEQ_NO, to);
        draft.finish();
        self.counts.messages_out += 1;
    }
}

/// Returns BeginSeqNo and EndSeqNo.
fn range(message: &FixMessage) -> Result<(u64, u64), FieldFault> {
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
        assert!(!resend.is_flood(now.plus(WINDOW_NS + 1), (1_001, 9)), "which is over");
    }
}
