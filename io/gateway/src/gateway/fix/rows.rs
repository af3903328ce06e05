//! Lists the sessions of this thread for operators.

use pitlane_engine::time::Timestamp;
use pitlane_protocols::fix::session::FixSessionState;

use super::FixEndpoint;
use super::client::FixClient;
use crate::notifications::{SessionInfo, SessionKind};

impl FixEndpoint {
    /// Returns every known session, connected or not.
    pub fn rows(&self) -> impl Iterator<Item = SessionInfo> {
        self.registry.numbers().filter_map(|number| {
            let client = self.clients.get(number as usize - 1).and_then(Option::as_ref);
            match client {
                Some(client) => Some(row_of(number, client)),
                None => {
                    let name = self.registry.name(number)?;
                    self.settings.family_of(name).map(|_| inactive_row(number, name))
                }
            }
        })
    }
}

fn row_of(number: u16, client: &FixClient) -> SessionInfo {
    let (numbers, counts) = (client.session.sequence_numbers(), client.session.counts());
    SessionInfo {
        peer: client.peer.filter(|_| client.connection.is_some()),
        since: client.since,
        state: state_name(client.session.state()),
        bytes_in: client.bytes_in,
        bytes_out: client.bytes_out,
        messages_in: counts.messages_in,
        messages_out: counts.messages_out,
        queue_bytes: client.session.unsent_bytes() as u64,
        next_in: Some(numbers.next_target_msg_seq_num),
        next_out: Some(numbers.next_sender_msg_seq_num),
        ..inactive_row(number, &client.name)
    }
}

/// Returns the row of a session without activity since the start: its store is not open, so its
/// sequence numbers are unknown.
fn inactive_row(number: u16, name: &str) -> SessionInfo {
    SessionInfo {
        kind: SessionKind::Fix,
        number: number.into(),
        name: Some(name.into()),
        peer: None,
        since: Timestamp::ZERO,
        state: state_name(FixSessionState::Disconnected),
        bytes_in: 0,
        bytes_out: 0,
        messages_in: 0,
        messages_out: 0,
        queue_bytes: 0,
        stomp: None,
        next_in: None,
        next_out: None,
        venue: None,
        health: None,
    }
}

fn state_name(state: FixSessionState) -> &'static str {
    match state {
        FixSessionState::Disconnected => "DISCONNECTED",
        FixSessionState::AwaitingLogon => "LOGGING_ON",
        FixSessionState::LoggedOn => "LOGGED_ON",
        FixSessionState::LoggingOut | FixSessionState::Closing => "ENDING",
    }
}
