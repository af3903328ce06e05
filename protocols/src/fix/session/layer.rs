//! The session layer: what every FIX session does, whatever its role. It reads messages, checks
//! identity, time and sequence number, handles administrative messages, sends and stores messages,
//! and ends the connection.
//!
//! ```text
//! bytes ─► FixStream ─► inbound: checks ─┬─► administrative message ─► outbound ─► FixStream ─► bytes
//!              ▲                         └─► SessionRole ─ send_app ─┘
//!              │  SequenceLayer: numbers, gap, store    Resend    SessionTimers
//! ```
//!
//! The layer knows no orders. It gives the first message of a connection and each application
//! message to a [`SessionRole`], and tells it what happens to the sequence numbers.

mod inbound;
mod logon;
mod outbound;
mod role;
#[cfg(test)]
mod tests;
mod timeouts;

use pitlane_engine::time::Timestamp;

pub use self::inbound::LOGON_BYTES_MAX;
pub(super) use self::inbound::{msg_seq_num_of, too_low_text};
pub(super) use self::logon::{HEART_BT_INT_MAX, heart_bt_int_of};
pub(super) use self::outbound::{echo, route};
pub(super) use self::role::{SessionNotice, SessionRole};
use super::resend::Resend;
use super::sequence::SequenceLayer;
use super::settings::FixSessionSettings;
use super::state::{DisconnectReason, FixSessionCounts, FixSessionState, SessionInput};
use super::stream::FixStream;
use super::timers::SessionTimers;
use crate::fix::fields::Fields;
use crate::fix::schedule::SessionSchedule;
use crate::fix::store::MessageStore;

#[derive(Debug)]
pub(super) struct SessionLayer {
    pub settings: FixSessionSettings,
    pub sequence: SequenceLayer,
    pub stream: FixStream,
    state: FixSessionState,
    disconnect_reason: Option<DisconnectReason>,
    resend: Resend,
    timers: SessionTimers,
    counts: FixSessionCounts,
    /// Field table, taken out while a message is read.
    fields: Option<Box<Fields>>,
    /// Whether the message being read waited for a gap to close.
    is_reading_early: bool,
}

impl SessionLayer {
    pub(super) fn new(mut settings: FixSessionSettings, store: Box<dyn MessageStore>) -> SessionLayer {
        settings.profile = settings.profile.in_version(settings.version);
        SessionLayer {
            stream: FixStream::new(settings.version, &settings.sender_comp_id, &settings.target_comp_id),
            sequence: SequenceLayer::new(store),
            settings,
            state: FixSessionState::Disconnected,
            disconnect_reason: None,
            resend: Resend::default(),
            timers: SessionTimers::default(),
            counts: FixSessionCounts::default(),
            fields: Some(Box::default()),
            is_reading_early: false,
        }
    }

    pub(super) fn state(&self) -> FixSessionState {
        self.state
    }

    pub(super) fn is_logged_on(&self) -> bool {
        self.state == FixSessionState::LoggedOn
    }

    /// Returns whether messages are being resent. New messages then wait in the store.
    pub(super) fn is_resending(&self) -> bool {
        self.resend.is_active()
    }

    pub(super) fn counts(&self) -> FixSessionCounts {
        self.counts
    }

    pub(super) fn set_schedule(&mut self, schedule: SessionSchedule) {
        self.settings.schedule = schedule;
    }

    /// Starts a connection. Returns false while another connection exists.
    pub(super) fn connect(&mut self, now: Timestamp) -> bool {
        let Some(state) = self.state.after(SessionInput::Connect) else { return false };
        self.state = state;
        self.disconnect_reason = None;
        self.stream.connect();
        self.timers.connect(now);
        true
    }

    /// Ends the connection. Returns whether the client was logged on, or `None` if there was no
    /// connection.
    pub(super) fn disconnect(&mut self) -> Option<bool> {
        self.state = self.state.after(SessionInput::Disconnect)?;
        self.stream.disconnect();
        self.sequence.forget_gap();
        self.resend = Resend::default();
        Some(self.timers.disconnect())
    }

    /// Takes bytes from the client and returns how many there was room for.
    pub(super) fn handle_bytes(&mut self, now: Timestamp, bytes: &[u8]) -> usize {
        if matches!(self.state, FixSessionState::Disconnected | FixSessionState::Closing) {
            return bytes.len();
        }
        let taken = self.stream.receive(bytes, self.settings.message_bytes_max);
        if taken > 0 {
            self.timers.received(now);
        }
        taken
    }

    /// Records that `count` bytes were written.
    pub(super) fn handle_transmitted(&mut self, now: Timestamp, count: usize) {
        self.stream.sent(count);
        self.timers.transmitted(now, self.stream.has_unsent());
    }

    /// Returns why the connection must be closed, once everything is written.
    pub(super) fn poll_close(&self) -> Option<DisconnectReason> {
        let closing = self.state == FixSessionState::Closing && !self.stream.has_unsent();
        self.disconnect_reason.filter(|_| closing)
    }

    /// Closes the connection as soon as everything is written.
    pub(super) fn close(&mut self, ending: DisconnectReason) {
        let Some(state) = self.state.after(SessionInput::Abort) else { return };
        self.state = state;
        self.disconnect_reason.get_or_insert(ending);
    }

    /// Saves the sequence numbers if the store has others. This happens before any output sent
    /// under them leaves, and at the end of a turn. If saving fails, nothing leaves. Until then the
    /// store has older numbers, which record less than was done and never more.
    pub(super) fn save_sequence_numbers(&mut self) {
        if self.sequence.save().is_err() {
            self.stream.clear_output();
            self.close(DisconnectReason::StoreFailed);
        }
    }

    /// Sets both numbers to one and clears the store.
    pub(super) fn reset_sequence_numbers(&mut self, now: Timestamp) {
        match self.sequence.reset(now) {
            Ok(()) => self.resend = Resend::default(),
            Err(_) => self.close(DisconnectReason::StoreFailed),
        }
    }

    fn advance(&mut self, step: SessionInput) {
        if let Some(state) = self.state.after(step) {
            self.state = state;
        }
    }
}
