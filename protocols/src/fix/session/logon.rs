//! Handles the first message of a connection and a Logon in a running session. A peer that cannot
//! be this session's client gets no answer.
//!
//! Rules: docs/fix-rules.md#logon.

use pitlane_engine::text::parse_u64;
use pitlane_engine::time::{NS_PER_S, Timestamp};

use super::inbound::{MSG_SEQ_NUM_MAX, msg_seq_num_of, too_low_text};
use super::{DisconnectReason, FixSession, LOGON_BYTES_MAX, SessionInput};
use crate::decoded::Decoded;
use crate::fix::dictionary;
use crate::fix::fields::{FixMessage, read};
use crate::fix::frame::{self, BEGIN_STRING};
use crate::fix::msg_type;
use crate::fix::tag::{self, prefix};
use crate::fix::timestamp::parse_timestamp;

/// Longest HeartBtInt that is accepted, in seconds.
pub(super) const HEART_BT_INT_MAX: u64 = 3_600;

/// State of the login check, which the caller makes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum LoginState {
    #[default]
    NotAsked,
    Asked,
    Admitted,
    Refused,
}

/// Username and password of a Logon. They are never logged.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct LogonCredentials<'a> {
    pub username: &'a [u8],
    pub password: &'a [u8],
}

impl FixSession {
    /// Returns username and password for the caller to check. The caller answers with
    /// [`FixSession::handle_login`]; the session reads nothing before that.
    pub fn poll_login(&mut self) -> Option<LogonCredentials<'_>> {
        if self.login != LoginState::Asked {
            return None;
        }
        let Ok(Decoded::Message { message, .. }) = frame::decode(self.input.pending(), LOGON_BYTES_MAX)
        else {
            return None;
        };
        let message = read(message, self.fields.as_mut()?);
        let username = message.get(tag::USERNAME).unwrap_or_default();
        Some(LogonCredentials { username, password: message.get(tag::PASSWORD).unwrap_or_default() })
    }

    pub fn handle_login(&mut self, admitted: bool) {
        if self.login == LoginState::Asked {
            self.login = if admitted { LoginState::Admitted } else { LoginState::Refused };
        }
    }

    pub(super) fn is_waiting_for_login(&mut self) -> bool {
        let asks = self.settings.login && matches!(self.login, LoginState::NotAsked | LoginState::Asked);
        if asks {
            self.login = LoginState::Asked;
        }
        asks
    }

    /// Handles the first message of a connection.
    pub(super) fn handle_logon(&mut self, now: Timestamp, message: &FixMessage) {
        let header = &message.header;
        if message.frame.begin_string != BEGIN_STRING {
            return self.close(DisconnectReason::BeginString);
        }
        if message.type_code() != msg_type::LOGON || message.fault.is_some() {
            return self.close(DisconnectReason::NotLogon);
        }
        if !self.is_from_client(message) {
            return self.close(DisconnectReason::Identity);
        }
        let sent = header.sending_time.and_then(parse_timestamp);
        if !sent.is_some_and(|sent| self.is_sending_time_accurate(now, sent)) {
            return self.close(DisconnectReason::SendingTime);
        }
        let Some(number) = msg_seq_num_of(message) else {
            return self.close(DisconnectReason::NumberMissing);
        };
        if self.settings.login && self.login != LoginState::Admitted {
            return self.refuse_login(now);
        }
        if !self.settings.schedule.is_open(now) {
            return self.refuse_logon(now, b"Outside of session hours");
        }
        self.log_on(now, message, number);
    }

    fn log_on(&mut self, now: Timestamp, message: &FixMessage, number: u64) {
        if self.settings.refresh_on_logon {
            if self.store.refresh().is_err() {
                return self.close(DisconnectReason::StoreFailed);
            }
            self.sequence.refresh(self.store.sequence_numbers());
        }
        let interval = match interval_of(message) {
            Ok(interval) => interval,
            Err(text) => return self.refuse_logon(now, text),
        };
        if message.get(tag::ENCRYPT_METHOD) != Some(b"0") {
            return self.refuse_logon(now, b"EncryptMethod must be 0");
        }
        if message.get(tag::TEST_MESSAGE_INDICATOR) == Some(b"Y") {
            return self.refuse_logon(now, b"This is no test session");
        }
        if self.settings.validate && dictionary::check(message).is_some() {
            return self.refuse_logon(now, b"The Logon is not valid");
        }
        let asks_reset = message.get(tag::RESET_SEQ_NUM_FLAG) == Some(b"Y");
        if asks_reset && number != 1 {
            return self.refuse_logon(now, b"ResetSeqNumFlag needs MsgSeqNum 1");
        }
        let outdated = self.sequence.numbers().since < self.settings.schedule.began(now);
        let resets = asks_reset || self.settings.reset_on_logon || outdated;
        if resets {
            self.reset_sequence_numbers(now);
        }
        if number < self.sequence.next_target() && !message.header.poss_dup {
            let (text, len) = too_low_text(self.sequence.next_target(), number);
            return self.refuse_logon(now, &text[..len]);
        }
        let next_expected = match self.next_expected(message) {
            Ok(next_expected) => next_expected,
            Err(text) => return self.refuse_logon(now, text),
        };
        self.timers.log_on(interval * NS_PER_S, self.settings.schedule.ends(now));
        self.cancel_index = None;
        self.advance(SessionInput::LogonAccepted);
        let last = self.sequence.last_sender();
        self.send_logon(now, interval, asks_reset, number);
        self.consume_logon_msg_seq_num(number);
        if let Some(next) = next_expected.filter(|&next| next <= last) {
            self.begin_resend(now, next, last);
        }
        if resets && self.settings.report_open_orders {
            self.status_report_index = Some(0);
        }
    }

    /// Sends the Logon in answer to the client's, with the client's interval.
    fn send_logon(&mut self, now: Timestamp, interval: u64, resets: bool, number: u64) {
        let expected = self.sequence.next_target();
        let next = if number == expected { expected + 1 } else { expected };
        let tells_next = self.settings.next_expected;
        self.send_admin(now, msg_type::LOGON, |draft| {
            draft.text(prefix::ENCRYPT_METHOD, b"0");
            draft.number(prefix::HEART_BT_INT, interval);
            if resets {
                draft.code(prefix::RESET_SEQ_NUM_FLAG, b'Y');
            }
            if tells_next {
                draft.number(prefix::NEXT_EXPECTED_MSG_SEQ_NUM, next);
            }
        });
    }

    pub(super) fn consume_logon_msg_seq_num(&mut self, number: u64) {
        self.sequence.consume_logon(number);
    }

    /// Returns the next of our numbers that the client expects, if the session uses it.
    fn next_expected(&self, message: &FixMessage) -> Result<Option<u64>, &'static [u8]> {
        let value = message.get(tag::NEXT_EXPECTED_MSG_SEQ_NUM).filter(|_| self.settings.next_expected);
        let Some(value) = value else { return Ok(None) };
        match parse_u64(value) {
            Ok(next) if next > 0 && next <= self.sequence.next_sender() => Ok(Some(next)),
            _ => Err(b"NextExpectedMsgSeqNum is too high"),
        }
    }

    /// Handles a Logon in a running session. With ResetSeqNumFlag the sequence numbers restart;
    /// without it the Logon is an error that ends the session.
    pub(super) fn handle_repeated_logon(&mut self, now: Timestamp, message: &FixMessage, number: u64) {
        let resets = message.get(tag::RESET_SEQ_NUM_FLAG) == Some(b"Y") && number == 1;
        let interval = interval_of(message);
        match interval {
            Ok(interval) if resets => {
                self.reset_sequence_numbers(now);
                self.forget_requests();
                self.timers.log_on(interval * NS_PER_S, self.settings.schedule.ends(now));
                self.send_logon(now, interval, true, number);
                self.consume_logon_msg_seq_num(number);
            }
            _ => self.log_out(now, b"Already logged on", DisconnectReason::EndedByUs),
        }
    }

    /// Refuses a Logon of the right client.
    fn refuse_logon(&mut self, now: Timestamp, text: &[u8]) {
        self.log_out_and_close(now, text, DisconnectReason::LogonRefused);
    }

    /// Refuses a Logon with a wrong password. An unauthenticated peer must not change the session,
    /// so this answer does not consume a sequence number.
    fn refuse_login(&mut self, now: Timestamp) {
        let number = self.sequence.next_sender();
        let mut draft = self.encoder.begin(&mut self.output.bytes, msg_type::LOGOUT, number, now);
        draft.text(prefix::TEXT, b"Logon refused");
        draft.finish();
        self.timers.sent(now);
        self.close(DisconnectReason::LogonRefused);
    }
}

/// Returns HeartBtInt in seconds.
fn interval_of(message: &FixMessage) -> Result<u64, &'static [u8]> {
    match message.get(tag::HEART_BT_INT).map(parse_u64) {
        Some(Ok(interval)) if interval <= HEART_BT_INT_MAX => Ok(interval),
        _ => Err(b"HeartBtInt must be from 0 to 3600"),
    }
}

const _: () = assert!(HEART_BT_INT_MAX * NS_PER_S < MSG_SEQ_NUM_MAX, "an interval can be counted");
