//! Where a session stands.
//!
//! ```text
//!            Connect              Admit              SayLogout               HearLogout, Cut
//! Offline ───────────► Greeting ────────► LoggedOn ───────────► LoggingOut ──────────────────► Closing
//!    ▲                     │ Cut              │ HearLogout, Cut      │                            │
//!    │                     └──────────────────┴─────────────────────────────────────────────────►│
//!    └─────────────────────────────── Disconnect (from anywhere but Disconnected) ─────────────────────┘
//! ```

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum FixSessionState {
    /// Nobody is there. Reports are kept for when somebody comes.
    #[default]
    Disconnected,
    /// Connected, and not yet logged on.
    AwaitingLogon,
    LoggedOn,
    /// We have said Logout and wait for theirs.
    LoggingOut,
    /// What is written is still sent, nothing more is read, then the connection ends.
    Closing,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SessionInput {
    Connect,
    /// A Logon was accepted.
    Admit,
    /// We end the session.
    SayLogout,
    /// They end it, or answer our end.
    HearLogout,
    /// The connection must end without ceremony.
    Cut,
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

    /// The table. None: this cannot happen in this state.
    pub fn after(self, step: SessionInput) -> Option<FixSessionState> {
        match (self, step) {
            (FixSessionState::Disconnected, SessionInput::Connect) => Some(FixSessionState::AwaitingLogon),
            (FixSessionState::AwaitingLogon, SessionInput::Admit) => Some(FixSessionState::LoggedOn),
            // A Logon that is answered with Logout ends at once: there is no session to wait for.
            (FixSessionState::AwaitingLogon, SessionInput::SayLogout) => Some(FixSessionState::Closing),
            (FixSessionState::LoggedOn, SessionInput::SayLogout) => Some(FixSessionState::LoggingOut),
            (FixSessionState::LoggedOn | FixSessionState::LoggingOut, SessionInput::HearLogout) => {
                Some(FixSessionState::Closing)
            }
            (
                FixSessionState::AwaitingLogon
                | FixSessionState::LoggedOn
                | FixSessionState::LoggingOut
                | FixSessionState::Closing,
                SessionInput::Cut,
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
                SessionInput::Admit
                | SessionInput::SayLogout
                | SessionInput::HearLogout
                | SessionInput::Cut
                | SessionInput::Disconnect,
            )
            | (FixSessionState::AwaitingLogon, SessionInput::Connect | SessionInput::HearLogout)
            | (FixSessionState::LoggedOn, SessionInput::Connect | SessionInput::Admit)
            | (
                FixSessionState::LoggingOut,
                SessionInput::Connect | SessionInput::Admit | SessionInput::SayLogout,
            )
            | (
                FixSessionState::Closing,
                SessionInput::Connect
                | SessionInput::Admit
                | SessionInput::SayLogout
                | SessionInput::HearLogout,
            ) => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_pair_of_state_and_step_is_as_the_table_says() {
        use FixSessionState::*;
        //                      Connect         Admit           SayLogout         HearLogout     Cut            Disconnect
        let table = [
            (Disconnected, [Some(AwaitingLogon), None, None, None, None, None]),
            (AwaitingLogon, [None, Some(LoggedOn), Some(Closing), None, Some(Closing), Some(Disconnected)]),
            (LoggedOn, [None, None, Some(LoggingOut), Some(Closing), Some(Closing), Some(Disconnected)]),
            (LoggingOut, [None, None, None, Some(Closing), Some(Closing), Some(Disconnected)]),
            (Closing, [None, None, None, None, Some(Closing), Some(Disconnected)]),
        ];
        let steps = [
            SessionInput::Connect,
            SessionInput::Admit,
            SessionInput::SayLogout,
            SessionInput::HearLogout,
            SessionInput::Cut,
            SessionInput::Disconnect,
        ];
        for (state, row) in table {
            for (step, expected) in steps.into_iter().zip(row) {
                assert_eq!(state.after(step), expected, "{state:?} {step:?}");
            }
        }
        assert_eq!(table.map(|row| row.0), FixSessionState::ALL);
    }
}
