//! Sends messages: numbers them, stores application messages, and writes them to the connection if
//! there is one.

use pitlane_engine::time::Timestamp;

use super::SessionLayer;
use crate::fix::encode::Draft;
use crate::fix::fields::{FieldFault, FixMessage, SessionRejectReason};
use crate::fix::msg_type::{self, SentMsgType};
use crate::fix::reject::OrderRejectReason;
use crate::fix::session::resend::ResendStep;
use crate::fix::session::state::{DisconnectReason, FixSessionState, SessionInput};
use crate::fix::tag::{self, prefix};

/// Bytes of a MsgType or an id that are echoed.
const ECHO_BYTES_MAX: usize = 64;

/// Messages.
impl SessionLayer {
    /// Sends an administrative message.
    pub(in crate::fix::session) fn send_admin(
        &mut self,
        now: Timestamp,
        msg_type: impl Into<SentMsgType>,
        write: impl FnOnce(&mut Draft),
    ) {
        let number = self.sequence.take_sender();
        let mut draft = self.stream.begin(msg_type, number, now);
        write(&mut draft);
        draft.finish();
        self.counts.messages_out += 1;
        self.timers.sent(now);
    }

    /// Sends an application message. It is stored first, so that it can be resent. Without a
    /// connection it is only stored. Returns whether it is stored.
    pub(in crate::fix::session) fn send_app(
        &mut self,
        now: Timestamp,
        msg_type: impl Into<SentMsgType>,
        write: impl FnOnce(&mut Draft),
    ) -> bool {
        let number = self.sequence.next_sender();
        let mut draft = self.stream.begin(msg_type, number, now);
        write(&mut draft);
        let start = draft.finish();
        let is_stored = self.sequence.store_message(self.stream.written(start)).is_ok();
        let live = self.is_logged_on() && !self.resend.is_active();
        if !is_stored || !live {
            self.stream.take_back(start);
        }
        if !is_stored {
            self.close(DisconnectReason::StoreFailed);
            return false;
        }
        if live {
            self.counts.messages_out += 1;
            self.timers.sent(now);
            if self.stream.is_overfull(self.settings.output_bytes_max) {
                self.close(DisconnectReason::SlowReader);
            }
        } else {
            self.resend.defer(number);
        }
        true
    }

    /// Sends Reject (3). A Reject, a Business Message Reject or a Logout is never answered with
    /// one.
    pub(in crate::fix::session) fn reject(
        &mut self,
        now: Timestamp,
        message: &FixMessage,
        number: u64,
        fault: FieldFault,
    ) {
        if matches!(
            message.type_code(),
            msg_type::REJECT | msg_type::LOGOUT | msg_type::BUSINESS_MESSAGE_REJECT
        ) {
            return;
        }
        self.counts.rejects += 1;
        let reason = self.settings.version.session_reject_reason(fault.reason);
        self.send_admin(now, msg_type::REJECT, |draft| {
            route(draft, message);
            draft.number(prefix::REF_SEQ_NUM, number);
            match fault.tag {
                0 => ref_tag(message, fault).into_iter().for_each(|tag| draft.text(prefix::REF_TAG_ID, tag)),
                tag => draft.number(prefix::REF_TAG_ID, tag as u64),
            }
            draft.text(prefix::REF_MSG_TYPE, echo(message.msg_type));
            if let Some(reason) = reason {
                draft.number(prefix::SESSION_REJECT_REASON, reason);
            }
            draft.text(prefix::TEXT, fault.reason.text().as_bytes());
        });
    }

    pub(in crate::fix::session) fn reject_missing(
        &mut self,
        now: Timestamp,
        message: &FixMessage,
        number: u64,
        tag: u32,
    ) {
        let fault = FieldFault { reason: SessionRejectReason::RequiredTagMissing, tag, at: 0 };
        self.reject(now, message, number, fault);
    }

    /// Refuses an application message without this required field: by Reject in a session that
    /// validates, otherwise by Business Message Reject.
    pub(in crate::fix::session) fn refuse_missing(
        &mut self,
        now: Timestamp,
        message: &FixMessage,
        number: u64,
        tag: u32,
    ) {
        match self.settings.validate {
            true => self.reject_missing(now, message, number, tag),
            false => self.refuse_incomplete(now, message, number),
        }
    }

    /// Refuses an application message without a field that it needs, by Business Message Reject.
    pub(in crate::fix::session) fn refuse_incomplete(
        &mut self,
        now: Timestamp,
        message: &FixMessage,
        number: u64,
    ) {
        const FIELD_MISSING: u8 = 5;
        let words = "Conditionally required field missing";
        self.business_reject(now, message, number, FIELD_MISSING, None, words);
    }

    /// Sends Business Message Reject (j). `reason` is BusinessRejectReason (380).
    pub(in crate::fix::session) fn business_reject(
        &mut self,
        now: Timestamp,
        message: &FixMessage,
        number: u64,
        reason: u8,
        why: Option<OrderRejectReason>,
        words: &str,
    ) {
        self.counts.rejects += 1;
        let reason = self.settings.version.business_reject_reason(reason);
        _ = self.send_app(now, msg_type::BUSINESS_MESSAGE_REJECT, |draft| {
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
    pub(in crate::fix::session) fn log_out(&mut self, now: Timestamp, text: &[u8], ending: DisconnectReason) {
        if self.state != FixSessionState::LoggedOn {
            return self.close(ending);
        }
        self.resend.stop();
        self.send_admin(now, msg_type::LOGOUT, |draft| draft.text(prefix::TEXT, text));
        self.advance(SessionInput::LogoutSent);
        self.disconnect_reason.get_or_insert(ending);
        self.timers.log_out(now);
    }

    /// Sends Logout under the next number without consuming it, and closes the connection. A peer
    /// without a valid login must not change the session.
    pub(in crate::fix::session) fn refuse_unnumbered(&mut self, now: Timestamp, text: &[u8]) {
        let mut draft = self.stream.begin(msg_type::LOGOUT, self.sequence.next_sender(), now);
        draft.text(prefix::TEXT, text);
        draft.finish();
        self.timers.sent(now);
        self.close(DisconnectReason::LogonRefused);
    }

    /// Sends Logout and closes the connection without waiting.
    pub(in crate::fix::session) fn log_out_and_close(
        &mut self,
        now: Timestamp,
        text: &[u8],
        ending: DisconnectReason,
    ) {
        self.send_admin(now, msg_type::LOGOUT, |draft| draft.text(prefix::TEXT, text));
        self.close(ending);
    }
}

/// Resends.
impl SessionLayer {
    pub(in crate::fix::session) fn begin_resend(&mut self, now: Timestamp, begin: u64, end: u64) {
        self.resend.begin(begin, end);
        self.continue_resend(now);
    }

    /// Writes the messages of a resend while there is room.
    pub(in crate::fix::session) fn continue_resend(&mut self, now: Timestamp) {
        while self.resend.is_active() {
            if !self.stream.has_room()
                || !matches!(self.state, FixSessionState::LoggedOn | FixSessionState::LoggingOut)
            {
                return;
            }
            match self.resend.next_step(&self.sequence) {
                Some(ResendStep::Message { number }) => {
                    if self.stream.resend(self.resend.message(), number, now) {
                        self.counts.messages_out += 1;
                    } else {
                        // The store returned something else than it was given. A gap fill is better
                        // than garbage.
                        self.send_gap_fill(now, number, number + 1);
                    }
                }
                Some(ResendStep::GapFill { number, to }) => self.send_gap_fill(now, number, to),
                Some(ResendStep::Deferred) => {
                    self.stream.append(self.resend.message());
                    self.counts.messages_out += 1;
                    continue;
                }
                None => return,
            }
            self.timers.sent(now);
        }
    }

    fn send_gap_fill(&mut self, now: Timestamp, number: u64, to: u64) {
        self.stream.gap_fill(number, to, now);
        self.counts.messages_out += 1;
    }

    /// Sends a Resend Request for the gap, once.
    pub(in crate::fix::session) fn request_gap(&mut self, now: Timestamp) {
        if !self.is_logged_on() || self.resend.is_active() {
            return;
        }
        let Some((begin, end)) = self.sequence.request_gap(now, self.settings.resend_chunk) else { return };
        self.send_admin(now, msg_type::RESEND_REQUEST, |draft| {
            draft.number(prefix::BEGIN_SEQ_NO, begin);
            draft.number(prefix::END_SEQ_NO, end);
        });
    }
}

/// Swaps the routing fields: OnBehalfOf* of the request become DeliverTo* of the reply, and vice
/// versa.
pub(in crate::fix::session) fn route(draft: &mut Draft, message: &FixMessage) {
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

/// Returns the text of a tag that is a number, and not the number of a tag: zero or a negative one.
fn ref_tag<'a>(message: &FixMessage<'a, '_>, fault: FieldFault) -> Option<&'a [u8]> {
    /// Digits of a number of 32 bits.
    const DIGITS_MAX: usize = 9;
    if fault.reason != SessionRejectReason::InvalidTag {
        return None;
    }
    let (_, field) = message.iter().nth(fault.at)?;
    let tag = &field[..memchr::memchr(b'=', field)?];
    let is_number = match tag.strip_prefix(b"-").unwrap_or(tag) {
        b"0" => true,
        [b'1'..=b'9', rest @ ..] => rest.len() < DIGITS_MAX && rest.iter().all(u8::is_ascii_digit),
        _ => false,
    };
    is_number.then_some(tag)
}

/// Cuts an echoed value to [`ECHO_BYTES_MAX`].
pub(in crate::fix::session) fn echo(value: &[u8]) -> &[u8] {
    &value[..value.len().min(ECHO_BYTES_MAX)]
}
