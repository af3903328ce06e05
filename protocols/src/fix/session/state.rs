//! States of a session, how its connections end, and its counters.
//!
//! ```text
//!               Connect              LogonAccepted          LogoutSent            LogoutReceived, Abort
//! Disconnected ───────► AwaitingLogon ───────────► LoggedOn ──────────► LoggingOut ───────────► Closing
//!       ▲                     │ Abort                  │ LogoutReceived, Abort                     │
//!       │                     └────────────────────────┴──────────────────────────────────────────►│
//!       └────────────────────── Disconnect (from every state but Disconnected) ────────────────────┘
//! ```

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum FixSessionState {
    /// No connection. Reports are stored until the client connects.
    #[default]
    Disconnected,
    /// Connected and not yet logged on.
    AwaitingLogon,
    LoggedOn,
    /// We have sent Logout and wait for the client's Logout.
    LoggingOut,
    /// Written output is still sent, nothing more is read, and then the connection ends.
    Closing,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SessionInput {
    Connect,
    /// A Logon was accepted.
    LogonAccepted,
    /// We end the session.
    LogoutSent,
    /// The client ends the session or answers our Logout.
    LogoutReceived,
    /// The connection must end without a Logout exchange.
    Abort,
    /// The connection has ended.
    Disconnect,
}

impl FixSessionState {
    pub const ALL: [FixSessionState; 5] = [
        FixSessionState::Disconnected,
        FixSessionState::AwaitingLogon,
        FixSessionState::LoggedOn,
        FixSessionState::LoggingOut,
        FixSessionState::Closing,
    ];

    /// Returns the next state, or `None` if this input cannot occur in this state.
    pub fn after(self, input: SessionInput) -> Option<FixSessionState> {
        match (self, input) {
            (FixSessionState::Disconnected, SessionInput::Connect) => Some(FixSessionState::AwaitingLogon),
            (FixSessionState::AwaitingLogon, SessionInput::LogonAccepted) => Some(FixSessionState::LoggedOn),
            // A Logon that is answered with Logout ends at once, because there is no session to
            // wait for.
            (FixSessionState::AwaitingLogon, SessionInput::LogoutSent) => Some(FixSessionState::Closing),
            (FixSessionState::LoggedOn, SessionInput::LogoutSent) => Some(FixSessionState::LoggingOut),
            (FixSessionState::LoggedOn | FixSessionState::LoggingOut, SessionInput::LogoutReceived) => {
                Some(FixSessionState::Closing)
            }
            (
                FixSessionState::AwaitingLogon
                | FixSessionState::LoggedOn
                | FixSessionState::LoggingOut
                | FixSessionState::Closing,
                SessionInput::Abort,
            ) => Some(FixSessionState::Closing),
            (
                FixSessionState::AwaitingLogon
                | FixSessionState::LoggedOn
                | FixSessionState::LoggingOut
                | FixSessionState::Closing,
                SessionInput::Disconnect,
            ) => Some(FixSessionState::Disconnected),
            (
                FixSessionState::Disconnected,
                SessionInput::LogonAccepted
                | SessionInput::LogoutSent
                | SessionInput::LogoutReceived
                | SessionInput::Abort
                | SessionInput::Disconnect,
            )
            | (FixSessionState::AwaitingLogon, SessionInput::Connect | SessionInput::LogoutReceived)
            | (FixSessionState::LoggedOn, SessionInput::Connect | SessionInput::LogonAccepted)
            | (
                FixSessionState::LoggingOut,
                SessionInput::Connect | SessionInput::LogonAccepted | SessionInput::LogoutSent,
            )
            | (
                FixSessionState::Closing,
                SessionInput::Connect
                | SessionInput::LogonAccepted
                | SessionInput::LogoutSent
                | SessionInput::LogoutReceived,
            ) => None,
        }
    }
}

/// Reason why a connection ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum DisconnectReason {
    /// The client logged out.
    LoggedOut,
    /// We logged out.
    EndedByUs,
    /// The first message was not a valid Logon.
    NotLogon,
    /// The CompIDs are not those of this session.
    Identity,
    BeginString,
    /// SendingTime differs too much from the current time.
    SendingTime,
    LogonTimeout,
    LogonRefused,
    NumberTooLow,
    NumberMissing,
    TooLong,
    /// A frame did not arrive completely in time.
    SlowFrame,
    HeartbeatMissed,
    /// The client does not read.
    SlowReader,
    ResendFlood,
    StoreFailed,
}

/// Counters since the start of the session.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct FixSessionCounts {
    /// Runs of bytes that were not a message.
    pub garbled: u64,
    pub messages_in: u64,
    pub messages_out: u64,
    pub rejects: u64,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_pair_of_state_and_input_follows_the_table() {
        use FixSessionState::*;
        // Columns: Connect, LogonAccepted, LogoutSent, LogoutReceived, Abort, Disconnect.
        let table = [
            (Disconnected, [Some(AwaitingLogon), None, None, None, None, None]),
            (AwaitingLogon, [None, Some(LoggedOn), Some(Closing), None, Some(Closing), Some(Disconnected)]),
            (LoggedOn, [None, None, Some(LoggingOut), Some(Closing), Some(Closing), Some(Disconnected)]),
            (LoggingOut, [None, None, None, Some(Closing), Some(Closing), Some(Disconnected)]),
            (Closing, [None, None, None, None, Some(Closing), Some(Disconnected)]),
        ];
        let inputs = [
            SessionInput::Connect,
            SessionInput::LogonAccepted,
            SessionInput::LogoutSent,
            SessionInput::LogoutReceived,
            SessionInput::Abort,
            SessionInput::Disconnect,
        ];
        for (state, row) in table {
            for (input, expected) in inputs.into_iter().zip(row) {
                assert_eq!(state.after(input), expected, "{state:?} {input:?}");
            }
        }
        assert_eq!(table.map(|row| row.0), FixSessionState::ALL);
    }
}
