//! What the session layer leaves to the role of a session.

use pitlane_engine::time::Timestamp;

use super::SessionLayer;
use crate::fix::fields::FixMessage;

/// The part of a session that knows what its messages mean. The session layer calls it while it
/// reads; a role sends through the layer that it is given.
pub(in crate::fix::session) trait SessionRole {
    /// Returns whether the first message of the connection must stay unread for now.
    fn holds_first_message(&mut self, _layer: &SessionLayer) -> bool {
        false
    }

    /// Handles the first message of a connection.
    fn handle_first_message(&mut self, layer: &mut SessionLayer, now: Timestamp, message: &FixMessage);

    /// Prefetches memory for the message that may begin in `coming`, while another one is handled.
    fn prefetch(&mut self, _layer: &SessionLayer, _coming: &[u8]) {}

    /// Handles the message with the expected number, and consumes the number, whatever the result.
    fn handle_expected(
        &mut self,
        layer: &mut SessionLayer,
        now: Timestamp,
        message: &FixMessage,
        number: u64,
    );

    /// Handles what the counterparty did to the session.
    fn handle_notice(&mut self, notice: SessionNotice<'_>);
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::fix::session) enum SessionNotice<'a> {
    /// A gap has opened, or a resend has begun: one side misses messages of the other.
    RecoveryStarted,
    /// The counterparty has skipped messages, which will never arrive.
    MessagesLost,
    /// Both sequence numbers are one again, and the store is empty.
    NumbersReset,
    /// The counterparty has logged out, with this Text (58).
    LogoutReceived { text: Option<&'a [u8]> },
}
