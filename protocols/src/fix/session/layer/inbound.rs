//! Handles received messages: CompIDs, SendingTime and MsgSeqNum first, then the content.
//!
//! Rules: docs/fix-rules.md#sequence-numbers.

use pitlane_engine::text::{TextError, parse_u64, write_u64};
use pitlane_engine::time::Timestamp;

use super::SessionLayer;
use super::role::{SessionNotice, SessionRole};
use crate::decoded::Decoded;
use crate::fix::dictionary;
use crate::fix::fields::{FieldFault, FixMessage, SessionRejectReason, read};
use crate::fix::frame::{self, FixFrameError};
use crate::fix::msg_type;
use crate::fix::session::resend::requested_range;
use crate::fix::session::state::{DisconnectReason, FixSessionState, SessionInput};
use crate::fix::tag::{self, prefix};
use crate::fix::timestamp::parse_timestamp;

/// Bytes of a message body before logon. A Logon has about two hundred.
pub const LOGON_BYTES_MAX: usize = 4_096;

/// MsgSeqNums are below this. A message with this number or a larger one counts as a message
/// without one.
pub(super) const MSG_SEQ_NUM_MAX: u64 = i64::MAX as u64;

/// Reading.
impl SessionLayer {
    /// Returns whether the next message may be read.
    pub(in crate::fix::session) fn may_read(&self) -> bool {
        matches!(
            self.state,
            FixSessionState::AwaitingLogon | FixSessionState::LoggedOn | FixSessionState::LoggingOut
        ) && !self.resend.is_active()
            && self.stream.has_room()
            && !self.sequence.in_flight.is_full()
    }

    /// Reads the next message and returns whether there was one.
    pub(in crate::fix::session) fn read_one<R: SessionRole>(&mut self, now: Timestamp, role: &mut R) -> bool {
        if let Some(bytes) = self.sequence.take_early() {
            self.read_early(now, &bytes, role);
            self.sequence.give_back(bytes);
            return true;
        }
        let is_first = self.state == FixSessionState::AwaitingLogon;
        let body_bytes_max = if is_first { LOGON_BYTES_MAX } else { self.settings.message_bytes_max };
        let input = self.stream.take_input();
        let mut consumed = 0;
        match frame::decode(input.pending(), body_bytes_max) {
            Ok(Decoded::Incomplete) => {
                if is_first && input.pending().len() > LOGON_BYTES_MAX {
                    self.close(DisconnectReason::NotLogon);
                }
                self.timers.wait_for_frame(!input.pending().is_empty());
            }
            Ok(Decoded::Message { .. }) if is_first && role.holds_first_message(self) => {}
            Ok(Decoded::Message { message: frame, consumed: count }) => {
                consumed = count;
                self.stream.end_garbage();
                self.timers.wait_for_frame(false);
                role.prefetch(self, &input.pending()[count..]);
                let mut fields = self.fields.take().expect("one message is read at a time");
                self.handle_message(now, &read(frame, &mut fields), role);
                self.fields = Some(fields);
            }
            Err(FixFrameError::Garbled { skip }) => {
                consumed = skip;
                self.counts.garbled += self.stream.begin_garbage() as u64;
                if is_first {
                    self.close(DisconnectReason::NotLogon);
                }
            }
            Err(FixFrameError::TooLong) => self.close(DisconnectReason::TooLong),
        }
        self.stream.put_input(input, consumed);
        consumed > 0
    }

    /// Reads a message that arrived before its turn.
    fn read_early<R: SessionRole>(&mut self, now: Timestamp, bytes: &[u8], role: &mut R) {
        let Ok(Decoded::Message { message, .. }) = frame::decode(bytes, self.settings.message_bytes_max)
        else {
            return;
        };
        let mut fields = self.fields.take().expect("one message is read at a time");
        self.is_reading_early = true;
        self.handle_message(now, &read(message, &mut fields), role);
        self.is_reading_early = false;
        self.fields = Some(fields);
    }

    /// Returns the complete first message of the connection, which stays unread.
    pub(in crate::fix::session) fn peek_first(&mut self) -> Option<FixMessage<'_, '_>> {
        let Ok(Decoded::Message { message, .. }) = frame::decode(self.stream.unread(), LOGON_BYTES_MAX)
        else {
            return None;
        };
        Some(read(message, self.fields.as_mut()?))
    }

    fn handle_message<R: SessionRole>(&mut self, now: Timestamp, message: &FixMessage, role: &mut R) {
        self.counts.messages_in += 1;
        match self.state {
            FixSessionState::AwaitingLogon => role.handle_first_message(self, now, message),
            FixSessionState::LoggedOn => self.handle_logged_on(now, message, role),
            FixSessionState::LoggingOut => self.handle_logging_out(now, message),
            FixSessionState::Disconnected | FixSessionState::Closing => {}
        }
    }

    fn handle_logged_on<R: SessionRole>(&mut self, now: Timestamp, message: &FixMessage, role: &mut R) {
        if message.frame.begin_string != self.settings.version.begin_string().as_bytes() {
            return self.log_out(now, b"Incorrect BeginString", DisconnectReason::BeginString);
        }
        let Some(number) = msg_seq_num_of(message) else {
            return self.log_out(now, b"Received message without MsgSeqNum", DisconnectReason::NumberMissing);
        };
        if !self.is_from_client(message) {
            if let Some(fault) = header_fault(message) {
                return self.reject_expected(now, message, number, fault);
            }
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
                return self.reject_expected(now, message, number, header_fault(message).unwrap_or(fault));
            }
        };
        if message.header.poss_dup && !self.accepts_poss_dup(now, message, number, sent) {
            return;
        }
        if message.type_code() != msg_type::RESEND_REQUEST {
            self.resend.handle_other_message();
        }
        self.handle_by_msg_seq_num(now, message, number, role);
    }

    /// Handles a message according to its sequence number.
    fn handle_by_msg_seq_num<R: SessionRole>(
        &mut self,
        now: Timestamp,
        message: &FixMessage,
        number: u64,
        role: &mut R,
    ) {
        let expected = self.sequence.next_target();
        let fine = message.fault.is_none() && !self.is_invalid_admin(message);
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
                self.handle_sequence_reset(now, message, number, role)
            }
            msg_type::LOGON if fine => self.handle_repeated_logon(now, message, number, role),
            msg_type::LOGOUT => {
                role.handle_notice(SessionNotice::LogoutReceived { text: message.get(tag::TEXT) });
                self.handle_logout(now, number);
            }
            msg_type::SEQUENCE_RESET if fine && number == expected => {
                self.handle_gap_fill(now, message, number)
            }
            _ if number == expected => role.handle_expected(self, now, message, number),
            // A Resend Request is answered whatever its number: two sides that wait for each
            // other's gaps would wait for ever.
            msg_type::RESEND_REQUEST if fine => {
                let is_gap = self.sequence.open_gap(number);
                if self.handle_resend_request(now, message, number) || is_gap {
                    role.handle_notice(SessionNotice::RecoveryStarted);
                }
            }
            _ if number > expected => {
                if self.sequence.open_gap(number) {
                    role.handle_notice(SessionNotice::RecoveryStarted);
                }
                self.sequence.keep_early(number, message.frame.bytes);
            }
            _ => {
                let (text, len) = too_low_text(expected, number);
                self.log_out_and_close(now, &text[..len], DisconnectReason::NumberTooLow);
            }
        }
    }

    /// Returns the first fault of structure or, if the session validates, of the dictionary. Groups
    /// are checked in any case.
    pub(in crate::fix::session) fn first_fault(&self, message: &FixMessage) -> Option<FieldFault> {
        let structure = message.fault;
        let dictionary = if self.settings.validate {
            dictionary::check(message, self.settings.version, &self.settings.dictionary)
        } else if message.has_groups() {
            dictionary::check_groups(message, self.settings.version)
        } else {
            None
        };
        let version = self.appl_ver_id_fault(message);
        match (structure, dictionary.or(version)) {
            (Some(a), Some(b)) => Some(if b.at < a.at { b } else { a }),
            (a, b) => a.or(b),
        }
    }

    /// Returns the fault of a message of another application version than the session's.
    #[inline]
    fn appl_ver_id_fault(&self, message: &FixMessage) -> Option<FieldFault> {
        let expected = self.settings.version.appl_ver_id()?;
        let (at, value) = message.find(tag::APPL_VER_ID)?;
        let reason = SessionRejectReason::ApplVerIdUnsupported;
        (value != expected).then_some(FieldFault { reason, tag: tag::APPL_VER_ID, at })
    }

    /// Returns whether a message that acts on the session itself violates the dictionary. It then
    /// has no effect, and is rejected like any other message.
    fn is_invalid_admin(&self, message: &FixMessage) -> bool {
        self.settings.validate
            && matches!(
                message.type_code(),
                msg_type::SEQUENCE_RESET | msg_type::LOGON | msg_type::RESEND_REQUEST
            )
            && dictionary::check(message, self.settings.version, &self.settings.dictionary).is_some()
    }

    /// Rejects a message, whose number counts if it is the expected one.
    fn reject_expected(&mut self, now: Timestamp, message: &FixMessage, number: u64, fault: FieldFault) {
        self.sequence.consume_if_expected(number);
        self.reject(now, message, number, fault);
    }

    pub(in crate::fix::session) fn handle_test_request(
        &mut self,
        now: Timestamp,
        message: &FixMessage,
        number: u64,
    ) {
        match message.get(tag::TEST_REQ_ID) {
            Some(id) => {
                self.send_admin(now, msg_type::HEARTBEAT, |draft| draft.text(prefix::TEST_REQ_ID, id))
            }
            None => self.reject_missing(now, message, number, tag::TEST_REQ_ID),
        }
    }

    /// Handles SequenceReset-Reset: the next expected number changes, but never to a lower one.
    fn handle_sequence_reset<R: SessionRole>(
        &mut self,
        now: Timestamp,
        message: &FixMessage,
        number: u64,
        role: &mut R,
    ) {
        let new = match new_seq_no_of(message) {
            Ok(new) => new,
            Err(reason) => return self.reject_new_seq_no(now, message, number, reason),
        };
        if new < self.sequence.next_target() {
            return self.reject_new_seq_no(now, message, number, SessionRejectReason::ValueIncorrect);
        }
        if new > self.sequence.next_target() {
            // Messages with the numbers between will never arrive.
            self.sequence.mark_answers_lost();
            role.handle_notice(SessionNotice::MessagesLost);
        }
        self.sequence.skip_to(new);
    }

    fn handle_gap_fill(&mut self, now: Timestamp, message: &FixMessage, number: u64) {
        let new = match new_seq_no_of(message) {
            Ok(new) if new > number => new,
            Ok(_) => {
                self.sequence.consume_if_expected(number);
                return self.reject_new_seq_no(now, message, number, SessionRejectReason::ValueIncorrect);
            }
            Err(reason) => {
                self.sequence.consume_if_expected(number);
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
        self.sequence.consume_if_expected(number);
        self.send_admin(now, msg_type::LOGOUT, |_| {});
        self.advance(SessionInput::LogoutReceived);
        self.disconnect_reason.get_or_insert(DisconnectReason::LoggedOut);
    }

    fn handle_logging_out(&mut self, now: Timestamp, message: &FixMessage) {
        let Some(number) = msg_seq_num_of(message).filter(|_| self.is_from_client(message)) else { return };
        match message.type_code() {
            msg_type::LOGOUT => {
                self.sequence.consume_if_expected(number);
                self.advance(SessionInput::LogoutReceived);
            }
            msg_type::RESEND_REQUEST if message.fault.is_none() => {
                _ = self.handle_resend_request(now, message, number);
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
        self.sequence.consume_if_expected(number);
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
            self.sequence.consume_if_expected(number);
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
                let reason = SessionRejectReason::IncorrectFormat;
                let fault = FieldFault { reason, tag: tag::ORIG_SENDING_TIME, at: 0 };
                self.reject_expected(now, message, number, fault);
                false
            }
        }
    }

    fn is_sequence_reset(&self, message: &FixMessage) -> bool {
        message.type_code() == msg_type::SEQUENCE_RESET && message.get(tag::GAP_FILL_FLAG) != Some(b"Y")
    }

    pub(in crate::fix::session) fn is_from_client(&self, message: &FixMessage) -> bool {
        message.header.sender_comp_id == Some(self.settings.target_comp_id.as_bytes())
            && message.header.target_comp_id == Some(self.settings.sender_comp_id.as_bytes())
    }

    fn wrong_comp_id_tag(&self, message: &FixMessage) -> u32 {
        let right = message.header.sender_comp_id == Some(self.settings.target_comp_id.as_bytes());
        if right { tag::TARGET_COMP_ID } else { tag::SENDER_COMP_ID }
    }

    fn sending_time(&self, now: Timestamp, message: &FixMessage) -> Result<Timestamp, SessionRejectReason> {
        let value = message.header.sending_time.ok_or(SessionRejectReason::RequiredTagMissing)?;
        let sent = message.timestamp(value).ok_or(SessionRejectReason::IncorrectFormat)?;
        if self.is_sending_time_accurate(now, sent) {
            Ok(sent)
        } else {
            Err(SessionRejectReason::SendingTimeAccuracy)
        }
    }

    pub(in crate::fix::session) fn is_sending_time_accurate(&self, now: Timestamp, sent: Timestamp) -> bool {
        let most = self.settings.sending_time_ns_max;
        most == 0 || now.0.abs_diff(sent.0) <= most
    }

    /// Handles Resend Request (2). Returns whether it starts a resend.
    pub(in crate::fix::session) fn handle_resend_request(
        &mut self,
        now: Timestamp,
        message: &FixMessage,
        number: u64,
    ) -> bool {
        let (begin, end) = match requested_range(message) {
            Ok(range) => range,
            Err(fault) => {
                self.reject(now, message, number, fault);
                return false;
            }
        };
        if self.resend.is_flood(now, (begin, end)) {
            self.log_out(now, b"Too many resend requests", DisconnectReason::ResendFlood);
            return false;
        }
        let last = self.sequence.last_sender();
        if begin > last + 1 {
            let fault =
                FieldFault { reason: SessionRejectReason::ValueIncorrect, tag: tag::BEGIN_SEQ_NO, at: 0 };
            self.reject(now, message, number, fault);
            return false;
        }
        let end = if end == 0 { last } else { end.min(last) };
        // If the client expects our next message, there is nothing to resend.
        let is_missing = begin <= end;
        if is_missing {
            self.begin_resend(now, begin, end);
        }
        is_missing
    }
}

/// Returns which field of the header that names the sender, the receiver or the time is missing or
/// empty. It is reported before its content, which then is no CompID and no time at all.
fn header_fault(message: &FixMessage) -> Option<FieldFault> {
    let header = &message.header;
    let fields = [
        (tag::SENDER_COMP_ID, header.sender_comp_id),
        (tag::SENDING_TIME, header.sending_time),
        (tag::TARGET_COMP_ID, header.target_comp_id),
    ];
    fields.into_iter().find_map(|(tag, value)| {
        let reason = match value {
            None => SessionRejectReason::RequiredTagMissing,
            Some([]) => SessionRejectReason::NoValue,
            Some(_) => return None,
        };
        Some(FieldFault { reason, tag, at: 0 })
    })
}

/// Returns MsgSeqNum if it is a number that can be counted from.
pub(in crate::fix::session) fn msg_seq_num_of(message: &FixMessage) -> Option<u64> {
    parse_u64(message.header.msg_seq_num?).ok().filter(|&number| number < MSG_SEQ_NUM_MAX)
}

/// Returns NewSeqNo. Zero is below every number that it may replace.
fn new_seq_no_of(message: &FixMessage) -> Result<u64, SessionRejectReason> {
    let value = message.get(tag::NEW_SEQ_NO).ok_or(SessionRejectReason::RequiredTagMissing)?;
    match parse_u64(value) {
        Ok(new) if new < MSG_SEQ_NUM_MAX => Ok(new),
        Ok(_) | Err(TextError::Range) => Err(SessionRejectReason::ValueIncorrect),
        Err(_) => Err(SessionRejectReason::IncorrectFormat),
    }
}

/// Returns the text that every engine of the QuickFIX family sends and that their clients parse,
/// with its length.
pub(in crate::fix::session) fn too_low_text(expected: u64, received: u64) -> ([u8; 96], usize) {
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
