//! What a session says: with a number, kept where it must be, written to the connection if there is one.

use pitlane_engine::refdata::RefData;
use pitlane_engine::time::Timestamp;

use super::{
    DisconnectReason, FixSession, FixSessionSettings, FixSessionState, OUTPUT_BYTES_MAX, SessionInput,
};
use crate::fix::encode::Draft;
use crate::fix::fields::{FieldFault, FixMessage, SessionRejectReason};
use crate::fix::reject::OrderRejectReason;
use crate::fix::store::SequenceNumbers;
use crate::fix::tag;

/// Bytes of a MsgType or an id that are said back.
const ECHO_BYTES_MAX: usize = 64;

impl FixSession {
    /// Says a session message.
    pub(super) fn say(&mut self, now: Timestamp, msg_type: u8, write: impl FnOnce(&mut Draft)) {
        let number = self.numbers.outgoing;
        self.numbers.outgoing = number + 1;
        let mut draft = self.encoder.begin(&mut self.output.bytes, msg_type, number, now);
        write(&mut draft);
        draft.finish();
        self.counts.messages_out += 1;
        self.timers.said(now);
    }

    /// Says an application message. It is kept first, so that it can be said again; if nobody is there, that is all.
    pub(super) fn tell(
        &mut self,
        now: Timestamp,
        msg_type: u8,
        write: impl FnOnce(&mut Draft, &FixSessionSettings, &RefData),
    ) {
        let number = self.numbers.outgoing;
        let mut draft = self.encoder.begin(&mut self.output.bytes, msg_type, number, now);
        write(&mut draft, &self.settings, &self.reference);
        let start = draft.finish();
        let kept = self.store.keep(number, &self.output.bytes[start..], self.cause.take()).is_ok();
        let live = self.state == FixSessionState::LoggedOn && !self.resend.is_active();
        if !kept || !live {
            self.output.bytes.truncate(start);
        }
        if !kept {
            return self.end(DisconnectReason::StoreFailed);
        }
        self.numbers.outgoing = number + 1;
        self.kept.outgoing = number + 1;
        if live {
            self.counts.messages_out += 1;
            self.timers.said(now);
            if self.output.len() > OUTPUT_BYTES_MAX {
                self.end(DisconnectReason::SlowReader);
            }
        } else {
            self.resend.defer(number);
        }
    }

    /// Has the store keep the numbers, if it has others: before anything leaves that was said under them, and when a turn is over.
    /// If it cannot, nothing leaves. Until then the store has older ones, which say less than was done and never more.
    pub(super) fn keep_numbers(&mut self) {
        let kept = self.kept_numbers();
        if kept == self.kept {
            return;
        }
        if self.store.set_numbers(kept).is_err() {
            self.output.clear();
            return self.end(DisconnectReason::StoreFailed);
        }
        self.kept = kept;
    }

    /// What is kept does not pass a request without an answer: see [`crate::fix::store`].
    fn kept_numbers(&self) -> SequenceNumbers {
        let incoming =
            self.flight.first().map_or(self.numbers.incoming, |first| first.min(self.numbers.incoming));
        SequenceNumbers { incoming, ..self.numbers }
    }

    /// Both numbers are one again, and what was kept is forgotten.
    pub(super) fn reset_numbers(&mut self, now: Timestamp) {
        let numbers = SequenceNumbers::fresh(now);
        if self.store.reset(numbers).is_err() {
            return self.end(DisconnectReason::StoreFailed);
        }
        (self.numbers, self.kept) = (numbers, numbers);
        self.flight.reset();
        self.gap = None;
        self.early.clear();
        self.resend = Default::default();
    }

    /// Session Reject (3). What is itself a refusal or an end is never answered with one.
    pub(super) fn reject(&mut self, now: Timestamp, message: &FixMessage, number: u64, fault: FieldFault) {
        if matches!(message.msg_type, b"3" | b"5" | b"j") {
            return;
        }
        self.counts.rejects += 1;
        self.say(now, b'3', |draft| {
            route(draft, message);
            draft.number(b"45=", number);
            if fault.tag != 0 {
                draft.number(b"371=", fault.tag as u64);
            }
            draft.text(b"372=", echo(message.msg_type));
            draft.number(b"373=", fault.reason as u64);
            draft.text(b"58=", fault.reason.words().as_bytes());
        });
    }

    pub(super) fn reject_missing(&mut self, now: Timestamp, message: &FixMessage, number: u64, tag: u32) {
        let fault = FieldFault { reason: SessionRejectReason::RequiredTagMissing, tag, at: 0 };
        self.reject(now, message, number, fault);
    }

    /// Business Message Reject (j). `reason` is BusinessRejectReason (380).
    pub(super) fn business_reject(
        &mut self,
        now: Timestamp,
        message: &FixMessage,
        number: u64,
        reason: u8,
        why: Option<OrderRejectReason>,
        words: &str,
    ) {
        self.counts.rejects += 1;
        self.tell(now, b'j', |draft, _, _| {
            route(draft, message);
            draft.number(b"45=", number);
            draft.text(b"372=", echo(message.msg_type));
            if let Some(id) = message.get(tag::CL_ORD_ID).filter(|id| !id.is_empty()) {
                draft.text(b"379=", echo(id));
            }
            draft.number(b"380=", reason as u64);
            match why {
                Some(why) => draft.pieces(b"58=", &[why.code().as_bytes(), b": ", why.words().as_bytes()]),
                None => draft.text(b"58=", words.as_bytes()),
            }
        });
    }

    /// Says Logout and waits for theirs.
    pub fn log_out(&mut self, now: Timestamp, text: &[u8], ending: DisconnectReason) {
        if self.state != FixSessionState::LoggedOn {
            return self.end(ending);
        }
        self.resend.stop();
        self.status_round = None;
        self.say(now, b'5', |draft| draft.text(b"58=", text));
        self.advance(SessionInput::SayLogout);
        self.ending.get_or_insert(ending);
        self.timers.log_out(now);
    }

    /// Says Logout, and no more.
    pub(super) fn log_out_and_close(&mut self, now: Timestamp, text: &[u8], ending: DisconnectReason) {
        self.say(now, b'5', |draft| draft.text(b"58=", text));
        self.end(ending);
    }

    pub(super) fn advance(&mut self, step: SessionInput) {
        if let Some(state) = self.state.after(step) {
            self.state = state;
        }
    }
}

/// Whom a message was on behalf of is whom the answer is delivered to, and the other way round.
pub(super) fn route(draft: &mut Draft, message: &FixMessage) {
    for (tag, value) in message.iter() {
        let turned: &[u8; 4] = match tag {
            tag::ON_BEHALF_OF_COMP_ID => b"128=",
            tag::ON_BEHALF_OF_SUB_ID => b"129=",
            tag::ON_BEHALF_OF_LOCATION_ID => b"145=",
            tag::DELIVER_TO_COMP_ID => b"115=",
            tag::DELIVER_TO_SUB_ID => b"116=",
            tag::DELIVER_TO_LOCATION_ID => b"144=",
            _ => continue,
        };
        if !value.is_empty() {
            draft.text(turned, echo(value));
        }
    }
}

/// What is said back is never longer than this.
pub(super) fn echo(value: &[u8]) -> &[u8] {
    &value[..value.len().min(ECHO_BYTES_MAX)]
}
