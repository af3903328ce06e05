//! Handles the first message of a client's connection. A peer that cannot be this session's client
//! gets no answer.
//!
//! Rules: docs/fix-rules.md#logon.

use pitlane_engine::text::parse_u64;
use pitlane_engine::time::Timestamp;

use super::Acceptor;
use crate::fix::fields::{FieldFault, FixMessage};
use crate::fix::msg_type;
use crate::fix::session::layer::{SessionLayer, heart_bt_int_of, msg_seq_num_of, too_low_text};
use crate::fix::session::state::DisconnectReason;
use crate::fix::tag;
use crate::fix::timestamp::parse_timestamp;

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

impl Acceptor {
    /// Returns username and password for the caller to check.
    pub(in crate::fix::session) fn poll_login<'a>(
        &self,
        layer: &'a mut SessionLayer,
    ) -> Option<LogonCredentials<'a>> {
        if self.login != LoginState::Asked {
            return None;
        }
        let message = layer.peek_first()?;
        let username = message.get(tag::USERNAME).unwrap_or_default();
        Some(LogonCredentials { username, password: message.get(tag::PASSWORD).unwrap_or_default() })
    }

    pub(in crate::fix::session) fn handle_login(&mut self, admitted: bool) {
        if self.login == LoginState::Asked {
            self.login = if admitted { LoginState::Admitted } else { LoginState::Refused };
        }
    }

    /// Returns whether the Logon waits for the check of its login.
    pub(super) fn is_waiting_for_login(&mut self, layer: &SessionLayer) -> bool {
        let asks = layer.settings.login && matches!(self.login, LoginState::NotAsked | LoginState::Asked);
        if asks {
            self.login = LoginState::Asked;
        }
        asks
    }

    /// Handles the first message of a connection.
    pub(super) fn handle_logon(&mut self, layer: &mut SessionLayer, now: Timestamp, message: &FixMessage) {
        let header = &message.header;
        if message.frame.begin_string != layer.settings.version.begin_string().as_bytes() {
            return layer.close(DisconnectReason::BeginString);
        }
        if message.type_code() != msg_type::LOGON || message.fault.is_some() {
            return layer.close(DisconnectReason::NotLogon);
        }
        if !layer.is_from_client(message) {
            return layer.close(DisconnectReason::Identity);
        }
        let sent = header.sending_time.and_then(parse_timestamp);
        if !sent.is_some_and(|sent| layer.is_sending_time_accurate(now, sent)) {
            return layer.close(DisconnectReason::SendingTime);
        }
        let Some(number) = msg_seq_num_of(message) else {
            return layer.close(DisconnectReason::NumberMissing);
        };
        if layer.settings.login && self.login != LoginState::Admitted {
            return layer.refuse_unnumbered(now, b"Logon refused");
        }
        if !layer.settings.schedule.is_open(now) {
            return refuse(layer, now, b"Outside of session hours");
        }
        self.log_on(layer, now, message, number);
    }

    fn log_on(&mut self, layer: &mut SessionLayer, now: Timestamp, message: &FixMessage, number: u64) {
        if layer.settings.refresh_on_logon && layer.sequence.refresh().is_err() {
            return layer.close(DisconnectReason::StoreFailed);
        }
        let interval_s = match heart_bt_int_of(message) {
            Ok(interval_s) => interval_s,
            Err(text) => return refuse(layer, now, text),
        };
        if message.get(tag::ENCRYPT_METHOD) != Some(b"0") {
            return refuse(layer, now, b"EncryptMethod must be 0");
        }
        let appl_ver_id = layer.settings.version.appl_ver_id();
        if appl_ver_id.is_some() && message.get(tag::DEFAULT_APPL_VER_ID) != appl_ver_id {
            return refuse(layer, now, b"DefaultApplVerID must be 9 (FIX 5.0 SP2)");
        }
        if message.get(tag::TEST_MESSAGE_INDICATOR) == Some(b"Y") {
            return refuse(layer, now, b"This is no test session");
        }
        if let Some(fault) = layer.first_fault(message) {
            return refuse_fault(layer, now, fault);
        }
        let asks_reset = message.get(tag::RESET_SEQ_NUM_FLAG) == Some(b"Y");
        if asks_reset && number != 1 {
            return refuse(layer, now, b"ResetSeqNumFlag needs MsgSeqNum 1");
        }
        let resets = asks_reset || layer.settings.reset_on_logon || layer.is_outdated(now);
        if resets {
            layer.reset_sequence_numbers(now);
        }
        if number < layer.sequence.next_target() && !message.header.poss_dup {
            let (text, len) = too_low_text(layer.sequence.next_target(), number);
            return refuse(layer, now, &text[..len]);
        }
        let next_expected = match next_expected(layer, message) {
            Ok(next_expected) => next_expected,
            Err(text) => return refuse(layer, now, text),
        };
        (self.cancel_at, self.cancel_index) = (None, None);
        layer.accept_logon(now, interval_s);
        let last = layer.sequence.last_sender();
        layer.send_logon(now, interval_s, asks_reset, number);
        layer.sequence.consume_logon(number);
        if let Some(next) = next_expected.filter(|&next| next <= last) {
            layer.begin_resend(now, next, last);
        }
        if resets && layer.settings.report_open_orders {
            self.begin_status_reports();
        }
    }
}

/// Returns the next of our numbers that the client expects, if the session uses it.
fn next_expected(layer: &SessionLayer, message: &FixMessage) -> Result<Option<u64>, &'static [u8]> {
    let value = message.get(tag::NEXT_EXPECTED_MSG_SEQ_NUM).filter(|_| layer.settings.next_expected);
    let Some(value) = value else { return Ok(None) };
    match parse_u64(value) {
        Ok(next) if next > 0 && next <= layer.sequence.next_sender() => Ok(Some(next)),
        _ => Err(b"NextExpectedMsgSeqNum is too high"),
    }
}

/// Refuses a Logon that violates the dictionary.
fn refuse_fault(layer: &mut SessionLayer, now: Timestamp, fault: FieldFault) {
    let text = format!("The Logon is not valid: {} ({})", fault.reason.text(), fault.tag);
    refuse(layer, now, text.as_bytes());
}

/// Refuses a Logon of the right client.
fn refuse(layer: &mut SessionLayer, now: Timestamp, text: &[u8]) {
    layer.log_out_and_close(now, text, DisconnectReason::LogonRefused);
}
