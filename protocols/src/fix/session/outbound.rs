//! Sends messages: numbers them, stores application messages, and writes them to the connection if
//! there is one.

use pitlane_engine::refdata::RefData;
use pitlane_engine::time::Timestamp;

use super::{
    DisconnectReason, FixSession, FixSessionSettings, FixSessionState, OUTPUT_BYTES_MAX, SessionInput,
};
use crate::fix::encode::Draft;
use crate::fix::fields::{FieldFault, FixMessage, SessionRejectReason};
use crate::fix::msg_type;
use crate::fix::reject::OrderRejectReason;
use crate::fix::store::SequenceNumbers;
use crate::fix::tag::{self, prefix};

/// Bytes of a MsgType or an id that are echoed.
const ECHO_BYTES_MAX: usize = 64;

impl FixSession {
    /// Sends an administrative message.
    pub(super) fn send_admin(&mut self, now: Timestamp, msg_type: u8, write: impl FnOnce(&mut Draft)) {
        let number = self.numbers.next_sender_msg_seq_num;
        self.numbers.next_sender_msg_seq_num = number + 1;
        let mut draft = self.encoder.begin(&mut self.output.bytes, msg_type, number, now);
        write(&mut draft);
        draft.finish();
        self.counts.messages_out += 1;
        self.timers.sent(now);
    }

    /// Sends an application message. It is stored first, so that it can be resent. Without a
    /// connection it is only stored.
    pub(super) fn send_app(
        &mut self,
        now: Timestamp,
        msg_type: u8,
        write: impl FnOnce(&mut Draft, &FixSessionSettings, &RefData),
    ) {
        let number = self.numbers.next_sender_msg_seq_num;
        let mut draft = self.encoder.begin(&mut self.output.bytes, msg_type, number, now);
        write(&mut draft, &self.settings, &self.reference);
        let start = draft.finish();
        let kept = self.store.save(number, &self.output.bytes[start..], self.cause.take()).is_ok();
        let live = self.state == FixSessionState::LoggedOn && !self.resend.is_active();
        if !kept || !live {
            self.output.bytes.truncate(start);
        }
        if !kept {
            return self.close(DisconnectReason::StoreFailed);
        }
        self.numbers.next_sender_msg_seq_num = number + 1;
        self.saved.next_sender_msg_seq_num = number + 1;
        if live {
            self.counts.messages_out += 1;
            self.timers.sent(now);
            if self.output.len() > OUTPUT_BYTES_MAX {
                self.close(DisconnectReason::SlowReader);
            }
        } else {
            self.resend.defer(number);
        }
    }

    /// Saves the sequence numbers if the store has others. This happens before any output sent
    /// under them leaves, and at the end of a turn. If saving fails, nothing leaves. Until then the
    /// store has older numbers, which record less than was done and never more.
    pub(super) fn save_sequence_numbers(&mut self) {
        let kept = self.sequence_numbers_to_save();
        if kept == self.saved {
            return;
        }
        if self.store.set_sequence_numbers(kept).is_err() {
            self.output.clear();
            return self.close(DisconnectReason::StoreFailed);
        }
        self.saved = kept;
    }

    /// Returns the numbers to save. They never pass a request without an answer: see
    /// [`crate::fix::store`].
    fn sequence_numbers_to_save(&self) -> SequenceNumbers {
        let next_target_msg_seq_num =
            self.in_flight.first_msg_seq_num().map_or(self.numbers.next_target_msg_seq_num, |first| {
                first.min(self.numbers.next_target_msg_seq_num)
            });
        SequenceNumbers { next_target_msg_seq_num, ..self.numbers }
    }

    /// Sets both numbers to one and clears the store.
    pub(super) fn reset_sequence_numbers(&mut self, now: Timestamp) {
        let numbers = SequenceNumbers::fresh(now);
        if self.store.reset(numbers).is_err() {
            return self.close(DisconnectReason::StoreFailed);
        }
        (self.numbers, self.saved) = (numbers, numbers);
        self.in_flight.reset();
        self.gap = None;
        self.early.clear();
        self.resend = Default::default();
    }

    /// Sends Reject (3). A Reject, a Business Message Reject or a Logout is never answered with
    /// one.
    pub(super) fn reject(&mut self, now: Timestamp, message: &FixMessage, number: u64, fault: FieldFault) {
        if matches!(
            message.type_code(),
            msg_type::REJECT | msg_type::LOGOUT | msg_type::BUSINESS_MESSAGE_REJECT
        ) {
            return;
        }
        self.counts.rejects += 1;
        self.send_admin(now, msg_type::REJECT, |draft| {
            route(draft, message);
            draft.number(prefix::REF_SEQ_NUM, number);
            if fault.tag != 0 {
                draft.number(prefix::REF_TAG_ID, fault.tag as u64);
            }
            draft.text(prefix::REF_MSG_TYPE, echo(message.msg_type));
            draft.number(prefix::SESSION_REJECT_REASON, fault.reason as u64);
            draft.text(prefix::TEXT, fault.reason.text().as_bytes());
        });
    }

    pub(super) fn reject_missing(&mut self, now: Timestamp, message: &FixMessage, number: u64, tag: u32) {
        let fault = FieldFault { reason: SessionRejectReason::RequiredTagMissing, tag, at: 0 };
        self.reject(now, message, number, fault);
    }

    /// Sends Business Message Reject (j). `reason` is BusinessRejectReason (380).
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
        self.send_app(now, msg_type::BUSINESS_MESSAGE_REJECT, |draft, _, _| {
            route(draft, message);
            draft.number(prefix::REF_SEQ_NUM, number);
            draft.text(prefix::REF_MSG_TYPE, echo(message.msg_type));
            if let Some(id) = message.get(tag::CL_ORD_ID).filter(|id| !id.is_empty()) {
                draft.text(prefix::BUSINESS_REJECT_REF_ID, echo(id));
            }
            draft.number(prefix::BUSINESS_REJECT_REASON, reason as u64);
            match why {
                Some(why) => {
                    draft.pieces(prefix::TEXT, &[why.code().as_bytes(), b": ", why.text().as_bytes()])
                }
                None => draft.text(prefix::TEXT, words.as_bytes()),
            }
        });
    }

    /// Sends Logout and waits for the client's Logout.
    pub fn log_out(&mut self, now: Timestamp, text: &[u8], ending: DisconnectReason) {
        if self.state != FixSessionState::LoggedOn {
            return self.close(ending);
        }
        self.resend.stop();
        self.status_report_index = None;
        self.send_admin(now, msg_type::LOGOUT, |draft| draft.text(prefix::TEXT, text));
        self.advance(SessionInput::LogoutSent);
        self.disconnect_reason.get_or_insert(ending);
        self.timers.log_out(now);
    }

    /// Sends Logout and closes the connection without waiting.
    pub(super) fn log_out_and_close(&mut self, now: Timestamp, text: &[u8], ending: DisconnectReason) {
        self.send_admin(now, msg_type::LOGOUT, |draft| draft.text(prefix::TEXT, text));
        self.close(ending);
    }

    pub(super) fn advance(&mut self, step: SessionInput) {
        if let Some(state) = self.state.after(step) {
            self.state = state;
        }
    }
}

/// Swaps the routing fields: OnBehalfOf* of the request become DeliverTo* of the reply, and vice
/// versa.
pub(super) fn route(draft: &mut Draft, message: &FixMessage) {
    for (tag, value) in message.iter() {
        let turned: &[u8; 4] = match tag {
            tag::ON_BEHALF_OF_COMP_ID => prefix::DELIVER_TO_COMP_ID,
            tag::ON_BEHALF_OF_SUB_ID => prefix::DELIVER_TO_SUB_ID,
            tag::ON_BEHALF_OF_LOCATION_ID => prefix::DELIVER_TO_LOCATION_ID,
            tag::DELIVER_TO_COMP_ID => prefix::ON_BEHALF_OF_COMP_ID,
            tag::DELIVER_TO_SUB_ID => prefix::ON_BEHALF_OF_SUB_ID,
            tag::DELIVER_TO_LOCATION_ID => prefix::ON_BEHALF_OF_LOCATION_ID,
            _ => continue,
        };
        if !value.is_empty() {
            draft.text(turned, echo(value));
        }
    }
}

/// Cuts an echoed value to [`ECHO_BYTES_MAX`].
pub(super) fn echo(value: &[u8]) -> &[u8] {
    &value[..value.len().min(ECHO_BYTES_MAX)]
}
