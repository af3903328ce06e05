//! Saying again what the client has missed, in bounded steps: application messages as they were, and one gap fill for each run of
//! others. What happens meanwhile is kept and follows in its order.

use crate::fix::msg_type;
use pitlane_engine::time::{NS_PER_S, Timestamp};

use super::{DisconnectReason, FixSession, FixSessionState, OUTPUT_BYTES_ENOUGH};
use crate::fix::fields::{FieldFault, FixMessage, SessionRejectReason};
use crate::fix::tag::{self, prefix};
use pitlane_engine::text::{TextError, parse_u64};

/// The same request in a row that is answered; the next one ends the session.
const SAME_REQUESTS_MAX: u32 = 3;

/// Requests within [`WINDOW_NS`] that are answered, whatever they ask for.
const REQUESTS_MAX: u32 = 32;
const WINDOW_NS: u64 = 10 * NS_PER_S;

#[derive(Debug, Default)]
pub struct Resend {
    /// The next number and the last of what is being said again.
    run: Option<(u64, u64)>,
    /// The first number that was kept back meanwhile, to follow as it is.
    deferred: Option<u64>,
    /// The last request, and how often it came in a row.
    last: (u64, u64),
    same: u32,
    /// Requests since.
    requests: u32,
    since: Timestamp,
    scratch: Vec<u8>,
}

impl Resend {
    pub fn is_active(&self) -> bool {
        self.run.is_some()
    }

    /// Notes that a message was kept and not sent. Only while a resend runs does it follow by itself; whoever is not there asks for it.
    pub fn defer(&mut self, number: u64) {
        if self.run.is_some() {
            self.deferred.get_or_insert(number);
        }
    }

    pub fn stop(&mut self) {
        self.run = None;
        self.deferred = None;
    }

    /// Counts a request; answers whether it is one too many.
    fn is_flood(&mut self, now: Timestamp, range: (u64, u64)) -> bool {
        self.same = if self.last == range { self.same + 1 } else { 1 };
        self.last = range;
        if now.since(self.since) > WINDOW_NS {
            (self.since, self.requests) = (now, 0);
        }
        self.requests += 1;
        self.same > SAME_REQUESTS_MAX || self.requests > REQUESTS_MAX
    }

    /// The client has said something else: what it asks next is a new matter.
    pub fn heard_other(&mut self) {
        self.same = 0;
    }
}

impl FixSession {
    /// Resend Request (2).
    pub(super) fn handle_resend_request(&mut self, now: Timestamp, message: &FixMessage, number: u64) {
        let (begin, end) = match range(message) {
            Ok(range) => range,
            Err(fault) => return self.reject(now, message, number, fault),
        };
        if self.resend.is_flood(now, (begin, end)) {
            return self.log_out(now, b"Too many resend requests", DisconnectReason::ResendFlood);
        }
        let last = self.numbers.next_sender_msg_seq_num - 1;
        if begin > last + 1 {
            let fault =
                FieldFault { reason: SessionRejectReason::ValueIncorrect, tag: tag::BEGIN_SEQ_NO, at: 0 };
            return self.reject(now, message, number, fault);
        }
        let end = if end == 0 { last } else { end.min(last) };
        // They expect what we shall say next: there is nothing to say again.
        if begin <= end {
            self.begin_resend(now, begin, end);
        }
    }

    pub(super) fn begin_resend(&mut self, now: Timestamp, begin: u64, end: u64) {
        self.resend.run = Some((begin, end));
        self.disturb();
        self.go_on_resending(now);
    }

    /// One bounded step of a resend.
    pub(super) fn go_on_resending(&mut self, now: Timestamp) {
        while let Some((next, end)) = self.resend.run {
            if self.output.len() >= OUTPUT_BYTES_ENOUGH
                || !matches!(self.state, FixSessionState::LoggedOn | FixSessionState::LoggingOut)
            {
                return;
            }
            if next > end {
                self.follow_up(end);
                continue;
            }
            let kept = self.store.next_message(next, end, &mut self.resend.scratch);
            match kept {
                Some(number) if number == next => {
                    self.again(now, number);
                    self.resend.run = Some((next + 1, end));
                }
                // Up to the next message, or to the end, there is nothing to say again.
                other => {
                    let to = other.unwrap_or(end + 1);
                    self.fill(now, next, to);
                    self.resend.run = Some((to, end));
                }
            }
            self.timers.said(now);
        }
    }

    /// What was kept back while the resend ran goes out as it is; then the resend is over.
    fn follow_up(&mut self, end: u64) {
        let from = self.resend.deferred.map_or(end + 1, |first| first.max(end + 1));
        let last = self.numbers.next_sender_msg_seq_num - 1;
        let mut next = from;
        while self.resend.deferred.is_some() && self.output.len() < OUTPUT_BYTES_ENOUGH {
            let Some(number) = self.store.next_message(next, last, &mut self.resend.scratch) else {
                self.resend.deferred = None;
                break;
            };
            self.output.bytes.extend_from_slice(&self.resend.scratch);
            self.counts.messages_out += 1;
            next = number + 1;
            self.resend.deferred = Some(next);
        }
        // Without room the rest waits, as an empty run that is still to be followed up.
        if self.resend.deferred.is_none() {
            self.resend.run = None;
        } else {
            self.resend.run = Some((next, next - 1));
        }
    }

    fn again(&mut self, now: Timestamp, number: u64) {
        let message = std::mem::take(&mut self.resend.scratch);
        let ours = self.encoder.again(&mut self.output.bytes, &message, number, now);
        self.resend.scratch = message;
        self.counts.messages_out += 1;
        if !ours {
            // A store gave back something else than it was given: better a hole than rubbish.
            self.fill(now, number, number + 1);
        }
    }

    /// SequenceReset-GapFill from one number to the next that counts.
    fn fill(&mut self, now: Timestamp, number: u64, to: u64) {
        let mut draft =
            self.encoder.begin_again(&mut self.output.bytes, msg_type::SEQUENCE_RESET, number, now, None);
        draft.code(prefix::GAP_FILL_FLAG, b'Y');
        draft.number(prefix::NEW_SEQ_NO, to);
        draft.finish();
        self.counts.messages_out += 1;
    }
}

/// BeginSeqNo and EndSeqNo.
fn range(message: &FixMessage) -> Result<(u64, u64), FieldFault> {
    let number = |tag: u32| {
        let fault = |reason| FieldFault { reason, tag, at: 0 };
        let value = message.get(tag).ok_or(fault(SessionRejectReason::RequiredTagMissing))?;
        parse_u64(value).map_err(|error| match error {
            TextError::Range => fault(SessionRejectReason::ValueIncorrect),
            _ => fault(SessionRejectReason::IncorrectFormat),
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
    fn who_asks_again_and_again_is_told_by_the_number_and_the_time() {
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
