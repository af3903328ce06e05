//! The parts of a logon that both roles share.
//!
//! Rules: docs/fix-rules.md#logon.

use pitlane_engine::text::parse_u64;
use pitlane_engine::time::{NS_PER_S, Timestamp};

use super::SessionLayer;
use super::inbound::MSG_SEQ_NUM_MAX;
use super::role::{SessionNotice, SessionRole};
use crate::fix::fields::FixMessage;
use crate::fix::msg_type;
use crate::fix::session::state::{DisconnectReason, SessionInput};
use crate::fix::tag::{self, prefix};

/// Longest HeartBtInt that is accepted, in seconds.
pub(in crate::fix::session) const HEART_BT_INT_MAX: u64 = 3_600;

impl SessionLayer {
    /// Returns whether the session hours have begun again since the numbers were last reset.
    pub(in crate::fix::session) fn is_outdated(&self, now: Timestamp) -> bool {
        self.sequence.numbers().since < self.settings.schedule.began(now)
    }

    /// Starts the session with this HeartBtInt.
    pub(in crate::fix::session) fn accept_logon(&mut self, now: Timestamp, interval_s: u64) {
        self.timers.log_on(interval_s * NS_PER_S, self.settings.schedule.ends(now));
        self.advance(SessionInput::LogonAccepted);
    }

    /// Sends the Logon in answer to the client's, with the client's interval.
    pub(in crate::fix::session) fn send_logon(
        &mut self,
        now: Timestamp,
        interval_s: u64,
        resets: bool,
        number: u64,
    ) {
        let expected = self.sequence.next_target();
        let next = if number == expected { expected + 1 } else { expected };
        let (tells_next, version) = (self.settings.next_expected, self.settings.version);
        self.send_admin(now, msg_type::LOGON, |draft| {
            draft.text(prefix::ENCRYPT_METHOD, b"0");
            draft.number(prefix::HEART_BT_INT, interval_s);
            if resets {
                draft.code(prefix::RESET_SEQ_NUM_FLAG, b'Y');
            }
            if tells_next {
                draft.number(prefix::NEXT_EXPECTED_MSG_SEQ_NUM, next);
            }
            if let Some(id) = version.appl_ver_id() {
                draft.text(prefix::DEFAULT_APPL_VER_ID, id);
            }
        });
    }

    /// Handles a Logon in a running session. With ResetSeqNumFlag the sequence numbers restart;
    /// without it the Logon is an error that ends the session.
    pub(super) fn handle_repeated_logon<R: SessionRole>(
        &mut self,
        now: Timestamp,
        message: &FixMessage,
        number: u64,
        role: &mut R,
    ) {
        let resets = message.get(tag::RESET_SEQ_NUM_FLAG) == Some(b"Y") && number == 1;
        match heart_bt_int_of(message) {
            Ok(interval_s) if resets => {
                self.reset_sequence_numbers(now);
                role.handle_notice(SessionNotice::NumbersReset);
                self.accept_logon(now, interval_s);
                self.send_logon(now, interval_s, true, number);
                self.sequence.consume_logon(number);
            }
            _ => self.log_out(now, b"Already logged on", DisconnectReason::EndedByUs),
        }
    }
}

/// Returns HeartBtInt in seconds.
pub(in crate::fix::session) fn heart_bt_int_of(message: &FixMessage) -> Result<u64, &'static [u8]> {
    match message.get(tag::HEART_BT_INT).map(parse_u64) {
        Some(Ok(interval)) if interval <= HEART_BT_INT_MAX => Ok(interval),
        _ => Err(b"HeartBtInt must be from 0 to 3600"),
    }
}

const _: () = assert!(HEART_BT_INT_MAX * NS_PER_S < MSG_SEQ_NUM_MAX, "an interval can be counted");
