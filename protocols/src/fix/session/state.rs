//! Where a session stands.
//!
//! ```text
//!            Connect              Admit              SayLogout               HearLogout, Cut
//! Offline ───────────► Greeting ────────► LoggedOn ───────────► LoggingOut ──────────────────► Closing
//!    ▲                     │ Cut              │ HearLogout, Cut      │                            │
//!    │                     └──────────────────┴─────────────────────────────────────────────────►│
//!    └─────────────────────────────── Disconnect (from anywhere but Offline) ─────────────────────┘
//! ```

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum State {
    /// Nobody is there. Reports are kept for when somebody comes.
    #[default]
    Offline,
    /// Connected, and not yet logged on.
    Greeting,
    LoggedOn,
    /// We have said Logout and wait for theirs.
    LoggingOut,
    /// What is written is still sent, nothing more is read, then the connection ends.
    Closing,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Step {
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

impl State {
    pub const ALL: [State; 5] =
        [State::Offline, State::Greeting, State::LoggedOn, State::LoggingOut, State::Closing];

    /// The table. None: this cannot happen in this state.
    pub fn after(self, step: Step) -> Option<State> {
        match (self, step) {
            (State::Offline, Step::Connect) => Some(State::Greeting),
            (State::Greeting, Step::Admit) => Some(State::LoggedOn),
            // A Logon that is answered with Logout ends at once: there is no session to wait for.
            (State::Greeting, Step::SayLogout) => Some(State::Closing),
            (State::LoggedOn, Step::SayLogout) => Some(State::LoggingOut),
            (State::LoggedOn | State::LoggingOut, Step::HearLogout) => Some(State::Closing),
            (State::Greeting | State::LoggedOn | State::LoggingOut | State::Closing, Step::Cut) => {
                Some(State::Closing)
            }
            (State::Greeting | State::LoggedOn | State::LoggingOut | State::Closing, Step::Disconnect) => {
                Some(State::Offline)
            }
            (
                State::Offline,
                Step::Admit | Step::SayLogout | Step::HearLogout | Step::Cut | Step::Disconnect,
            )
            | (State::Greeting, Step::Connect | Step::HearLogout)
            | (State::LoggedOn, Step::Connect | Step::Admit)
            | (State::LoggingOut, Step::Connect | Step::Admit | Step::SayLogout)
            | (State::Closing, Step::Connect | Step::Admit | Step::SayLogout | Step::HearLogout) => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_pair_of_state_and_step_is_as_the_table_says() {
        use State::*;
        //                      Connect         Admit           SayLogout         HearLogout     Cut            Disconnect
        let table = [
            (Offline, [Some(Greeting), None, None, None, None, None]),
            (Greeting, [None, Some(LoggedOn), Some(Closing), None, Some(Closing), Some(Offline)]),
            (LoggedOn, [None, None, Some(LoggingOut), Some(Closing), Some(Closing), Some(Offline)]),
            (LoggingOut, [None, None, None, Some(Closing), Some(Closing), Some(Offline)]),
            (Closing, [None, None, None, None, Some(Closing), Some(Offline)]),
        ];
        let steps =
            [Step::Connect, Step::Admit, Step::SayLogout, Step::HearLogout, Step::Cut, Step::Disconnect];
        for (state, row) in table {
            for (step, expected) in steps.into_iter().zip(row) {
                assert_eq!(state.after(step), expected, "{state:?} {step:?}");
            }
        }
        assert_eq!(table.map(|row| row.0), State::ALL);
    }
}
