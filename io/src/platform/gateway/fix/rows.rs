//! The sessions of this thread as a list, for operators.

use pitlane_protocols::fix::session::State;

use super::FixRoom;
use crate::bulletin::{Kind, Row};

impl FixRoom {
    /// Every session that is known, connected or not.
    pub fn rows(&self) -> impl Iterator<Item = Row> {
        self.clients.iter().enumerate().filter_map(|(at, client)| {
            let client = client.as_ref()?;
            let (numbers, counts) = (client.session.numbers(), client.session.counts());
            Some(Row {
                kind: Kind::Fix,
                number: at as u64 + 1,
                name: Some(client.name.as_str().into()),
                peer: client.peer.filter(|_| client.connection.is_some()),
                since: client.since,
                state: state_word(client.session.state()),
                bytes_in: client.bytes_in,
                bytes_out: client.bytes_out,
                messages_in: counts.messages_in,
                messages_out: counts.messages_out,
                queue_bytes: client.session.unsent() as u64,
                stomp: None,
                next_in: Some(numbers.incoming),
                next_out: Some(numbers.outgoing),
                venue: None,
            })
        })
    }
}

fn state_word(state: State) -> &'static str {
    match state {
        State::Offline => "DISCONNECTED",
        State::Greeting => "LOGGING_ON",
        State::LoggedOn => "LOGGED_ON",
        State::LoggingOut | State::Closing => "ENDING",
    }
}
