//! Handles received messages: CompIDs, SendingTime and MsgSeqNum first, then the content.
//!
//! Rules: docs/fix-rules.md#sequence-numbers.

use pitlane_engine::desk::Desk;
use pitlane_engine::text::{TextError, parse_u64, write_u64};
use pitlane_engine::time::Timestamp;

use super::{DisconnectReason, FixSession, FixSessionState, SessionInput};
use crate::fix::dictionary;
use crate::fix::fields::{FieldFault, FixMessage, SessionRejectReason};
use crate::fix::frame::BEGIN_STRING;
use crate::fix::msg_type;
use crate::fix::tag::{self, prefix};
use crate::fix::timestamp::parse_timestamp;

/// MsgSeqNums are below this. A message with this number or a larger one counts as a message
/// without one.
pub(super) const MSG_SEQ_NUM_MAX: u64 = i64::MAX as u64;

impl FixSession {
    pub(super) fn handle_message(&mut self, now: Timestamp, message: &FixMessage, desk: &Desk) {
        self.counts.messages_in += 1;
        match self.state {
            FixSessionState::AwaitingLogon if self.initiator.is_some() => {
                self.handle_logon_answer(now, message)
            }
            FixSessionState::AwaitingLogon => self.handle_logon(now, message),
            FixSessionState::LoggedOn => self.handle_logged_on(now, message, desk),
            FixSessionState::LoggingOut => self.handle_logging_out(now, message),
            FixSessionState::Disconnected | FixSessionState::Closing => {}
        }
    }

    fn handle_logged_on(&mut self, now: Timestamp, message: &FixMessage, desk: &Desk) {
        if message.frame.begin_string != BEGIN_STRING {
            return self.log_out(now, b"Incorrect BeginString", DisconnectReason::BeginString);
        }
        let Some(number) = msg_seq_num_of(message) else {
            return self.log_out(now, b"Received message without MsgSeqNum", DisconnectReason::NumberMissing);
        };
        if !self.is_from_client(message) {
            let tag = self.wrong_comp_id_tag(message);
            return self.reject_and_log_out(now, message, number, SessionRejectReason::CompIdProblem, tag);
        }
        let sent = match self.sending_time(now, message) {
            Ok(sent) => sent,
            Err(SessionRejectReason::SendingTimeAccuracy) => {
                let reason = SessionRejectReason::SendingTimeAccuracy;
                return self.reject_and_log_out(now, message, number, reason, tag::SENDING_TIME);
            }
            Err(reason) => {
                let fault = FieldFault { reason, tag: tag::SENDING_TIME, at: 0 };
                self.reject(now, message, number, fault);
                return self.consume_if_expected(number);
            }
        };
        if message.header.poss_dup && !self.accepts_poss_dup(now, message, number, sent) {
            return;
        }
        if message.type_code() != msg_type::RESEND_REQUEST {
            self.resend.handle_other_message();
        }
        self.handle_by_msg_seq_num(now, message, number, desk);
    }

    /// Handles a message according to its sequence number.
    fn handle_by_msg_seq_num(&mut self, now: Timestamp, message: &FixMessage, number: u64, desk: &Desk) {
        let expected = self.sequence.next_target();
        let fine = message.fault.is_none();
        if self.is_reading_early && number < expected {
            // The message was skipped or resent while it waited. The sender of a Test Request still
            // waits for the Heartbeat.
            if message.type_code() == msg_type::TEST_REQUEST && fine {
                self.handle_test_request(now, message, number);
            }
            return;
        }
        match message.type_code() {
            // The message's own number does not count in this mode.
            msg_type::SEQUENCE_RESET if fine && message.get(tag::GAP_FILL_FLAG) != Some(b"Y") => {
                self.handle_sequence_reset(now, message, number)
            }
            msg_type::LOGON if fine => self.handle_repeated_logon(now, message, number),
            msg_type::LOGOUT => {
                self.record_logout_text(message);
                self.handle_logout(now, number);
            }
            _ if number == expected => self.handle_expected(now, message, number, desk),
            // A Resend Request is answered whatever its number: two sides that wait for each
            // other's gaps would wait for ever.
            msg_type::RESEND_REQUEST if fine => {
                self.open_gap(number);
                self.handle_resend_request(now, message, number);
            }
            _ if number > expected => {
                self.open_gap(number);
                self.sequence.keep_early(number, message.frame.bytes);
            }
            _ => {
                let (text, len) = too_low_text(expected, number);
                self.log_out_and_close(now, &text[..len], DisconnectReason::NumberTooLow);
            }
        }
    }

    /// Handles the message with the expected number. The number is consumed, whatever the result.
    fn handle_expected(&mut self, now: Timestamp, message: &FixMessage, number: u64, desk: &Desk) {
        if message.type_code() == msg_type::SEQUENCE_RESET && message.fault.is_none() {
            return self.handle_gap_fill(now, message, number);
        }
        if self.initiator.is_some() {
            return self.handle_expected_from_venue(now, message, number);
        }
        if !message.header.poss_dup {
            self.in_flight.clear_answered();
        }
        let orders = matches!(
            message.type_code(),
            msg_type::NEW_ORDER_SINGLE
                | msg_type::ORDER_CANCEL_REQUEST
                | msg_type::ORDER_CANCEL_REPLACE_REQUEST
        );
        if orders {
            self.in_flight.begin(number);
        }
        self.consume_if_expected(number);
        match self.first_fault(message) {
            Some(fault) => self.reject(now, message, number, fault),
            None => self.dispatch(now, message, number, desk),
        }
        if orders {
            self.in_flight.assign(self.pending_request.map(|request| request.ticket().id));
        }
    }

    fn dispatch(&mut self, now: Timestamp, message: &FixMessage, number: u64, desk: &Desk) {
        match message.type_code() {
            msg_type::HEARTBEAT | msg_type::REJECT | msg_type::BUSINESS_MESSAGE_REJECT => {}
            msg_type::TEST_REQUEST => self.handle_test_request(now, message, number),
            msg_type::RESEND_REQUEST => self.handle_resend_request(now, message, number),
            msg_type::NEW_ORDER_SINGLE
            | msg_type::ORDER_CANCEL_REQUEST
            | msg_type::ORDER_CANCEL_REPLACE_REQUEST => self.handle_order_message(now, message, number, desk),
            _ if self.settings.validate && !dictionary::is_msg_type(message.msg_type) => {
                let fault =
                    FieldFault { reason: SessionRejectReason::InvalidMsgType, tag: tag::MSG_TYPE, at: 0 };
                self.reject(now, message, number, fault);
            }
            _ => self.business_reject(now, message, number, 3, None, "Unsupported message type"),
        }
    }

    /// Returns the first fault of structure or, if the session validates, of the dictionary.
    pub(super) fn first_fault(&self, message: &FixMessage) -> Option<FieldFault> {
        let structure = message.fault;
        let dictionary = if self.settings.validate { dictionary::check(message) } else { None };
        match (structure, dictionary) {
            (Some(a), Some(b)) => Some(if b.at < a.at { b } else { a }),
            (a, b) => a.or(b),
        }
    }

    pub(super) fn handle_test_request(&mut self, now: Timestamp, message: &FixMessage, number: u64) {
        match message.get(tag::TEST_REQ_ID) {
            Some(id) => {
                self.send_admin(now, msg_type::HEARTBEAT, |draft| draft.text(prefix::TEST_REQ_ID, id))
            }
            None => self.reject_missing(now, message, number, tag::TEST_REQ_ID),
        }
    }

    /// Handles SequenceReset-Reset: the next expected number changes, but never to a lower one.
    fn handle_sequence_reset(&mut self, now: Timestamp, message: &FixMessage, number: u64) {
        let new = match new_seq_no_of(message) {
            Ok(new) => new,
            Err(reason) => return self.reject_new_seq_no(now, message, number, reason),
        };
        if new < self.sequence.next_target() {
            return self.reject_new_seq_no(now, message, number, SessionRejectReason::ValueIncorrect);
        }
        if new > self.sequence.next_target() {
            // Messages with the numbers between will never arrive.
            self.mark_messages_lost();
        }
        self.sequence.skip_to(new);
    }

    fn handle_gap_fill(&mut self, now: Timestamp, message: &FixMessage, number: u64) {
        let new = match new_seq_no_of(message) {
            Ok(new) if new > number => new,
            Ok(_) => {
                self.consume_if_expected(number);
                return self.reject_new_seq_no(now, message, number, SessionRejectReason::ValueIncorrect);
            }
            Err(reason) => {
                self.consume_if_expected(number);
                return self.reject_new_seq_no(now, message, number, reason);
            }
        };
        self.sequence.skip_to(new);
    }

    fn reject_new_seq_no(
        &mut self,
        now: Timestamp,
        message: &FixMessage,
        number: u64,
        reason: SessionRejectReason,
    ) {
        self.reject(now, message, number, FieldFault { reason, tag: tag::NEW_SEQ_NO, at: 0 });
    }

    /// Answers the client's Logout.
    fn handle_logout(&mut self, now: Timestamp, number: u64) {
        self.consume_if_expected(number);
        self.send_admin(now, msg_type::LOGOUT, |_| {});
        self.advance(SessionInput::LogoutReceived);
        self.disconnect_reason.get_or_insert(DisconnectReason::LoggedOut);
    }

    fn handle_logging_out(&mut self, now: Timestamp, message: &FixMessage) {
        let Some(number) = msg_seq_num_of(message).filter(|_| self.is_from_client(message)) else { return };
        match message.type_code() {
            msg_type::LOGOUT => {
                self.consume_if_expected(number);
                self.advance(SessionInput::LogoutReceived);
            }
            msg_type::RESEND_REQUEST if message.fault.is_none() => {
                self.handle_resend_request(now, message, number)
            }
            // The message is not handled and so not lost: the client is asked for it after the next
            // logon.
            _ => {}
        }
    }

    fn reject_and_log_out(
        &mut self,
        now: Timestamp,
        message: &FixMessage,
        number: u64,
        reason: SessionRejectReason,
        tag: u32,
    ) {
        self.consume_if_expected(number);
        self.reject(now, message, number, FieldFault { reason, tag, at: 0 });
        let ending = match reason == SessionRejectReason::CompIdProblem {
            true => DisconnectReason::Identity,
            false => DisconnectReason::SendingTime,
        };
        self.log_out(now, reason.text().as_bytes(), ending);
    }

    /// Checks the fields that a possible duplicate must have. Returns whether to handle the message
    /// further.
    fn accepts_poss_dup(
        &mut self,
        now: Timestamp,
        message: &FixMessage,
        number: u64,
        sent: Timestamp,
    ) -> bool {
        // A repeated gap fill has no effect.
        let seen = number < self.sequence.next_target();
        let Some(original) = message.header.orig_sending_time else {
            if message.type_code() == msg_type::SEQUENCE_RESET && !seen {
                return true;
            }
            self.consume_if_expected(number);
            self.reject_missing(now, message, number, tag::ORIG_SENDING_TIME);
            return false;
        };
        match parse_timestamp(original) {
            Some(original) if original <= sent => {
                !seen || message.type_code() == msg_type::RESEND_REQUEST || self.is_sequence_reset(message)
            }
            Some(_) => {
                let reason = SessionRejectReason::SendingTimeAccuracy;
                self.reject_and_log_out(now, message, number, reason, tag::ORIG_SENDING_TIME);
                false
            }
            None => {
                self.consume_if_expected(number);
                let fault = FieldFault {
                    reason: SessionRejectReason::IncorrectFormat,
                    tag: tag::ORIG_SENDING_TIME,
                    at: 0,
                };
                self.reject(now, message, number, fault);
                false
            }
        }
    }

    fn is_sequence_reset(&self, message: &FixMessage) -> bool {
        message.type_code() == msg_type::SEQUENCE_RESET && message.get(tag::GAP_FILL_FLAG) != Some(b"Y")
    }

    pub(super) fn is_from_client(&self, message: &FixMessage) -> bool {
        message.header.sender_comp_id == Some(self.settings.target_comp_id.as_bytes())
            && message.header.target_comp_id == Some(self.settings.sender_comp_id.as_bytes())
    }

    fn wrong_comp_id_tag(&self, message: &FixMessage) -> u32 {
        let right = message.header.sender_comp_id == Some(self.settings.target_comp_id.as_bytes());
        if right { tag::TARGET_COMP_ID } else { tag::SENDER_COMP_ID }
    }

    fn sending_time(&self, now: Timestamp, message: &FixMessage) -> Result<Timestamp, SessionRejectReason> {
        let value = message.header.sending_time.ok_or(SessionRejectReason::RequiredTagMissing)?;
        let sent = parse_timestamp(value).ok_or(SessionRejectReason::IncorrectFormat)?;
        if self.is_sending_time_accurate(now, sent) {
            Ok(sent)
        } else {
            Err(SessionRejectReason::SendingTimeAccuracy)
        }
    }

    pub(super) fn is_sending_time_accurate(&self, now: Timestamp, sent: Timestamp) -> bool {
        let most = self.settings.sending_time_ns_max;
        most == 0 || now.0.abs_diff(sent.0) <= most
    }

    /// Consumes a sequence number if it is the expected one.
    pub(super) fn consume_if_expected(&mut self, number: u64) {
        self.sequence.consume_if_expected(number);
    }

    fn open_gap(&mut self, number: u64) {
        if self.sequence.open_gap(number) {
            self.restart_synchronization();
        }
    }

    /// Sends a Resend Request for the gap, once.
    pub(super) fn request_gap(&mut self, now: Timestamp) {
        if self.state != FixSessionState::LoggedOn || self.resend.is_active() {
            return;
        }
        let Some((begin, end)) = self.sequence.request_gap(now, self.settings.resend_chunk) else { return };
        self.send_admin(now, msg_type::RESEND_REQUEST, |draft| {
            draft.number(prefix::BEGIN_SEQ_NO, begin);
            draft.number(prefix::END_SEQ_NO, end);
        });
    }
}

/// Returns MsgSeqNum if it is a number that can be counted from.
pub(super) fn msg_seq_num_of(message: &FixMessage) -> Option<u64> {
    parse_u64(message.header.msg_seq_num?).ok().filter(|&number| number < MSG_SEQ_NUM_MAX)
}

fn new_seq_no_of(message: &FixMessage) -> Result<u64, SessionRejectReason> {
    let value = message.get(tag::NEW_SEQ_NO).ok_or(SessionRejectReason::RequiredTagMissing)?;
    match parse_u64(value) {
        Ok(new) if new > 0 && new < MSG_SEQ_NUM_MAX => Ok(new),
        Ok(_) | Err(TextError::Range) => Err(SessionRejectReason::ValueIncorrect),
        Err(_) => Err(SessionRejectReason::IncorrectFormat),
    }
}

/// Returns the text that every engine of the QuickFIX family sends and that their clients parse,
/// with its length.
pub(super) fn too_low_text(expected: u64, received: u64) -> ([u8; 96], usize) {
    let mut text = [0; 96];
    let mut len = 0;
    // At most 29 + 20 + 14 + 20 bytes.
    for (words, number) in [(&b"MsgSeqNum too low, expecting "[..], expected), (b" but received ", received)]
    {
        text[len..len + words.len()].copy_from_slice(words);
        len += words.len();
        len += write_u64(number, &mut text[len..]);
    }
    (text, len)
}
