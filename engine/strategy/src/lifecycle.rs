//! The lifecycle of a strategy, as a table.
//!
//! ```text
//! INIT ─► PREFEED ─► START ─► RUNNING ─► STOP ─► EXIT
//!   │        │         │                  ▲│       │
//!   └────────┴─────────┴── fails ─────────┘│       │
//!   ▲                                      │       │
//!   └──────────── begins again ────────────┴───────┘
//! ```
//!
//! It is the same in REAL_TIME and SIMULATION. PREFEED is the warm-up from history; without history
//! it is entered and left at once.

use std::fmt;

use pitlane_engine::command::StrategyPhase;

pub const PHASES: [StrategyPhase; 6] = [
    StrategyPhase::Init,
    StrategyPhase::Prefeed,
    StrategyPhase::Start,
    StrategyPhase::Running,
    StrategyPhase::Stop,
    StrategyPhase::Exit,
];

/// There is no step, or no path, from one phase to the other.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WrongPhase {
    pub from: StrategyPhase,
    pub to: StrategyPhase,
}

impl fmt::Display for WrongPhase {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "there is no path from {:?} to {:?}", self.from, self.to)
    }
}

/// Checks one step.
pub fn enter(from: StrategyPhase, to: StrategyPhase) -> Result<StrategyPhase, WrongPhase> {
    match (from, to) {
        (StrategyPhase::Init, StrategyPhase::Prefeed)
        | (StrategyPhase::Prefeed, StrategyPhase::Start)
        | (StrategyPhase::Start, StrategyPhase::Running)
        | (
            StrategyPhase::Init | StrategyPhase::Prefeed | StrategyPhase::Start | StrategyPhase::Running,
            StrategyPhase::Stop,
        )
        | (StrategyPhase::Stop, StrategyPhase::Exit)
        | (StrategyPhase::Stop | StrategyPhase::Exit, StrategyPhase::Init) => Ok(to),
        (
            StrategyPhase::Init
            | StrategyPhase::Prefeed
            | StrategyPhase::Start
            | StrategyPhase::Running
            | StrategyPhase::Stop
            | StrategyPhase::Exit,
            StrategyPhase::Init
            | StrategyPhase::Prefeed
            | StrategyPhase::Start
            | StrategyPhase::Running
            | StrategyPhase::Stop
            | StrategyPhase::Exit,
        ) => Err(WrongPhase { from, to }),
    }
}

/// Returns the steps to a phase; none if it is the current one. A running strategy is stopped
/// before it starts again.
pub fn path(from: StrategyPhase, to: StrategyPhase) -> Result<Vec<StrategyPhase>, WrongPhase> {
    let is_over = |phase| matches!(phase, StrategyPhase::Stop | StrategyPhase::Exit);
    let up_to =
        |first: StrategyPhase| PHASES.into_iter().filter(move |phase| first <= *phase && *phase <= to);
    match (from, to) {
        (from, to) if from == to => Ok(Vec::new()),
        (from, StrategyPhase::Stop) if from < StrategyPhase::Stop => Ok(vec![StrategyPhase::Stop]),
        (from, StrategyPhase::Exit) if from < StrategyPhase::Stop => {
            Ok(vec![StrategyPhase::Stop, StrategyPhase::Exit])
        }
        (StrategyPhase::Stop, StrategyPhase::Exit) => Ok(vec![StrategyPhase::Exit]),
        (from, to) if is_over(from) && !is_over(to) => Ok(up_to(StrategyPhase::Init).collect()),
        (from, to) if from < to && !is_over(from) => {
            Ok(up_to(StrategyPhase::Init).filter(|phase| *phase > from).collect())
        }
        _ => Err(WrongPhase { from, to }),
    }
}

#[cfg(test)]
mod tests {
    use StrategyPhase::{Exit, Init, Prefeed, Running, Start, Stop};

    use super::*;

    #[test]
    fn every_pair_is_a_step_or_a_typed_refusal() {
        let steps = [
            (Init, Prefeed),
            (Prefeed, Start),
            (Start, Running),
            (Init, Stop),
            (Prefeed, Stop),
            (Start, Stop),
            (Running, Stop),
            (Stop, Exit),
            (Stop, Init),
            (Exit, Init),
        ];
        for from in PHASES {
            for to in PHASES {
                let expected =
                    if steps.contains(&(from, to)) { Ok(to) } else { Err(WrongPhase { from, to }) };
                assert_eq!(enter(from, to), expected, "{from:?} {to:?}");
            }
        }
    }

    #[test]
    fn a_path_consists_of_valid_steps_and_reaches_its_target() {
        for from in PHASES {
            for to in PHASES {
                // Only a stopped strategy can go back, and it starts again.
                let goes_back = to < from && (from < Stop || to == Stop);
                let Ok(way) = path(from, to) else {
                    assert!(goes_back, "{from:?} {to:?}");
                    continue;
                };
                assert!(!goes_back, "{from:?} {to:?}");
                let end = way.iter().try_fold(from, |at, next| enter(at, *next));
                assert_eq!(end, Ok(to), "{from:?} {to:?}");
            }
        }
        assert_eq!(path(Init, Running), Ok(vec![Prefeed, Start, Running]));
        assert_eq!(path(Stop, Running), Ok(vec![Init, Prefeed, Start, Running]));
        assert_eq!(path(Exit, Init), Ok(vec![Init]));
        for from in [Init, Prefeed, Start, Running] {
            assert_eq!(path(from, Stop), Ok(vec![Stop]), "{from:?}");
            assert_eq!(path(from, Exit), Ok(vec![Stop, Exit]), "{from:?}");
        }
        let wrong = WrongPhase { from: Running, to: Init };
        assert_eq!(path(Running, Init), Err(wrong));
        assert_eq!(wrong.to_string(), "there is no path from Running to Init");
        assert_eq!(path(Exit, Stop), Err(WrongPhase { from: Exit, to: Stop }));
    }
}
