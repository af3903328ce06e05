//! The life of a strategy, as a table.
//!
//! ```text
//! INIT ─► PREFEED ─► START ─► RUNNING ─► STOP ─► EXIT
//!   │        │         │                  ▲│       │
//!   └────────┴─────────┴── fails ─────────┘│       │
//!   ▲                                      │       │
//!   └──────────── begins again ────────────┴───────┘
//! ```
//!
//! The same in REAL_TIME and SIMULATION. PREFEED is warm-up from history; without history it is entered and left at once.

use std::fmt;

use crate::command::Phase;

pub const PHASES: [Phase; 6] =
    [Phase::Init, Phase::Prefeed, Phase::Start, Phase::Running, Phase::Stop, Phase::Exit];

/// There is no step, or no way, from the one to the other.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WrongPhase {
    pub from: Phase,
    pub to: Phase,
}

impl fmt::Display for WrongPhase {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "there is no way from {:?} to {:?}", self.from, self.to)
    }
}

/// One step.
pub fn enter(from: Phase, to: Phase) -> Result<Phase, WrongPhase> {
    match (from, to) {
        (Phase::Init, Phase::Prefeed)
        | (Phase::Prefeed, Phase::Start)
        | (Phase::Start, Phase::Running)
        | (Phase::Init | Phase::Prefeed | Phase::Start | Phase::Running, Phase::Stop)
        | (Phase::Stop, Phase::Exit)
        | (Phase::Stop | Phase::Exit, Phase::Init) => Ok(to),
        (
            Phase::Init | Phase::Prefeed | Phase::Start | Phase::Running | Phase::Stop | Phase::Exit,
            Phase::Init | Phase::Prefeed | Phase::Start | Phase::Running | Phase::Stop | Phase::Exit,
        ) => Err(WrongPhase { from, to }),
    }
}

/// The steps to a phase, one after the other; none if it is there already. Whoever runs is stopped before it begins again.
pub fn path(from: Phase, to: Phase) -> Result<Vec<Phase>, WrongPhase> {
    let is_over = |phase| matches!(phase, Phase::Stop | Phase::Exit);
    let up_to = |first: Phase| PHASES.into_iter().filter(move |phase| first <= *phase && *phase <= to);
    match (from, to) {
        (from, to) if from == to => Ok(Vec::new()),
        (from, Phase::Stop) if from < Phase::Stop => Ok(vec![Phase::Stop]),
        (from, Phase::Exit) if from < Phase::Stop => Ok(vec![Phase::Stop, Phase::Exit]),
        (Phase::Stop, Phase::Exit) => Ok(vec![Phase::Exit]),
        (from, to) if is_over(from) && !is_over(to) => Ok(up_to(Phase::Init).collect()),
        (from, to) if from < to && !is_over(from) => {
            Ok(up_to(Phase::Init).filter(|phase| *phase > from).collect())
        }
        _ => Err(WrongPhase { from, to }),
    }
}

#[cfg(test)]
mod tests {
    use Phase::{Exit, Init, Prefeed, Running, Start, Stop};

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
    fn a_way_is_made_of_steps_and_ends_where_it_should() {
        for from in PHASES {
            for to in PHASES {
                // Nobody goes back but who has stopped, and he begins anew.
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
        assert_eq!(path(Running, Exit), Ok(vec![Stop, Exit]));
        assert_eq!(path(Running, Init), Err(WrongPhase { from: Running, to: Init }));
        assert_eq!(path(Exit, Stop), Err(WrongPhase { from: Exit, to: Stop }));
    }
}
