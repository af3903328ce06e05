//! The first message of a connection, and Logons in a running session. Who cannot be this session's client gets no answer.

use crate::fix::msg_type;
use pitlane_engine::text::parse_u64;
use pitlane_engine::time::{NS_PER_S, Timestamp};

use super::gap::SequenceGap;
use super::inbound::{NUMBER_MAX, number_of, too_low};
use super::{DisconnectReason, FixSession, LOGON_BYTES_MAX, SessionInput};
use crate::decoded::Decoded;
use crate::fix::dictionary;
use crate::fix::fields::{FixMessage, read};
use crate::fix::frame::{self, BEGIN_STRING};
use crate::fix::tag::{self, prefix};
use crate::fix::timestamp::parse_timestamp;

/// The longest HeartBtInt that is taken, in seconds.
pub const HEART_BT_INT_MAX: u64 = 3_600;

/// Whether the caller has been asked about name and password, and what it said.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum LoginState {
    #[default]
    NotAsked,
    Asked,
    Admitted,
    Refused,
}

/// Name and password of a Logon. Never logged.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct LogonCredentials<'a> {
    pub username: &'a [u8],
    pub password: &'a [u8],
}

impl FixSession {
    /// Name and password that the caller is to check; it answers with [`FixSession::handle_login`]. Nothing is read before.
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

    pub(super) fn asks_for_login(&mut self) -> bool {
        let asks = self.settings.login && matches!(self.login, LoginState::NotAsked | LoginState::Asked);
        if asks {
            self.login = LoginState::Asked;
        }
        asks
    }

    /// The first message of a connection.
    pub(super) fn handle_greeting(&mut self, now: Timestamp, message: &FixMessage) {
        let header = &message.header;
        if message.frame.begin_string != BEGIN_STRING {
            return self.end(DisconnectReason::BeginString);
        }
        if message.type_code() != msg_type::LOGON || message.fault.is_some() {
            return self.end(DisconnectReason::NotLogon);
        }
        if !self.is_from_client(message) {
            return self.end(DisconnectReason::Identity);
        }
        let sent = header.sending_time.and_then(parse_timestamp);
        if !sent.is_some_and(|sent| self.is_timely(now, sent)) {
            return self.end(DisconnectReason::SendingTime);
        }
        let Some(number) = number_of(message) else { return self.end(DisconnectReason::NumberMissing) };
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
                return self.end(DisconnectReason::StoreFailed);
            }
            let stored = self.store.sequence_numbers();
            if stored != self.kept {
                (self.numbers, self.kept) = (stored, stored);
            }
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
        let outdated = self.numbers.since < self.settings.schedule.began(now);
        let resets = asks_reset || self.settings.reset_on_logon || outdated;
        if resets {
            self.reset_numbers(now);
        }
        if number < self.numbers.next_target_msg_seq_num && !message.header.poss_dup {
            let (text, len) = too_low(self.numbers.next_target_msg_seq_num, number);
            return self.refuse_logon(now, &text[..len]);
        }
        let next_expected = match self.next_expected(message) {
            Ok(next_expected) => next_expected,
            Err(text) => return self.refuse_logon(now, text),
        };
        self.timers.log_on(interval * NS_PER_S, self.settings.schedule.ends(now));
        self.cancel_round = None;
        self.advance(SessionInput::Admit);
        let last = self.numbers.next_sender_msg_seq_num - 1;
        self.say_logon(now, interval, asks_reset, number);
        self.take_logon_number(number);
        if let Some(next) = next_expected.filter(|&next| next <= last) {
            self.begin_resend(now, next, last);
        }
        if resets && self.settings.report_open_orders {
            self.status_round = Some(0);
        }
    }

    /// The answer: the client's interval is taken over.
    fn say_logon(&mut self, now: Timestamp, interval: u64, resets: bool, number: u64) {
        let incoming = self.numbers.next_target_msg_seq_num;
        let next = if number == incoming { incoming + 1 } else { incoming };
        let tells_next = self.settings.next_expected;
        self.say(now, msg_type::LOGON, |draft| {
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

    pub(super) fn take_logon_number(&mut self, number: u64) {
        let incoming = self.numbers.next_target_msg_seq_num;
        if number == incoming {
            self.numbers.next_target_msg_seq_num = incoming + 1;
        } else if number > incoming {
            self.gap = Some(SequenceGap { high: number, asked: None, asked_at: Timestamp::MAX });
        }
    }

    /// Which of our numbers the client expects, where that is looked at.
    fn next_expected(&self, message: &FixMessage) -> Result<Option<u64>, &'static [u8]> {
        let value = message.get(tag::NEXT_EXPECTED_MSG_SEQ_NUM).filter(|_| self.settings.next_expected);
        let Some(value) = value else { return Ok(None) };
        match parse_u64(value) {
            Ok(next) if next > 0 && next <= self.numbers.next_sender_msg_seq_num => Ok(Some(next)),
            _ => Err(b"NextExpectedMsgSeqNum is too high"),
        }
    }

    /// A Logon in a running session: with a reset it begins anew, without one it is a mistake that ends it.
    pub(super) fn handle_second_logon(&mut self, now: Timestamp, message: &FixMessage, number: u64) {
        let resets = message.get(tag::RESET_SEQ_NUM_FLAG) == Some(b"Y") && number == 1;
        let interval = interval_of(message);
        match interval {
            Ok(interval) if resets => {
                self.reset_numbers(now);
                self.forget_sent();
                self.timers.log_on(interval * NS_PER_S, self.settings.schedule.ends(now));
                self.say_logon(now, interval, true, number);
                self.take_logon_number(number);
            }
            _ => self.log_out(now, b"Already logged on", DisconnectReason::EndedByUs),
        }
    }

    /// A Logon of the right client that cannot be taken.
    fn refuse_logon(&mut self, now: Timestamp, text: &[u8]) {
        self.log_out_and_close(now, text, DisconnectReason::LogonRefused);
    }

    /// Somebody who does not know the password must leave no trace: the number of this answer is used again.
    fn refuse_login(&mut self, now: Timestamp) {
        let number = self.numbers.next_sender_msg_seq_num;
        let mut draft = self.encoder.begin(&mut self.output.bytes, msg_type::LOGOUT, number, now);
        draft.text(prefix::TEXT, b"Logon refused");
        draft.finish();
        self.timers.said(now);
        self.end(DisconnectReason::LogonRefused);
    }
}

/// HeartBtInt in seconds.
fn interval_of(message: &FixMessage) -> Result<u64, &'static [u8]> {
    match message.get(tag::HEART_BT_INT).map(parse_u64) {
        Some(Ok(interval)) if interval <= HEART_BT_INT_MAX => Ok(interval),
        _ => Err(b"HeartBtInt must be from 0 to 3600"),
    }
}

const _: () = assert!(HEART_BT_INT_MAX * NS_PER_S < NUMBER_MAX, "an interval can be counted");
