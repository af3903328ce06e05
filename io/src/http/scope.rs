//! Whose orders, positions and money somebody may see and touch, where his login names strategies. What is not for his eyes is not there
//! for him: lists leave it out, and a single one is unknown. What he may not touch is refused, and so is what
//! touches everybody: the kill switch, sessions, rates, new reference data, the end. To look at what belongs to no strategy, his role alone decides.

use hyper::StatusCode;
use pitlane_engine::id::StrategyId;
use pitlane_engine::refdata::RefData;

use super::login::Who;
use super::problem::Problem;
use crate::auth::Strategies;

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum StrategyScope {
    All,
    Only(Vec<StrategyId>),
}

impl StrategyScope {
    pub fn of(who: &Who, reference: &RefData) -> StrategyScope {
        match who {
            Who::Known(identity) if identity.strategies == Strategies::All => StrategyScope::All,
            Who::Known(identity) => {
                let rows = reference.strategies().iter();
                StrategyScope::Only(
                    rows.filter(|row| identity.strategies.sees(&row.name)).map(|row| row.id).collect(),
                )
            }
            // Calls that are open to everybody tell nothing of any strategy.
            Who::Anybody => StrategyScope::Only(Vec::new()),
        }
    }

    pub fn sees(&self, strategy: StrategyId) -> bool {
        match self {
            StrategyScope::All => true,
            StrategyScope::Only(strategies) => strategies.contains(&strategy),
        }
    }

    /// Whether he may act for a strategy.
    pub fn touch(&self, strategy: StrategyId) -> Result<(), Problem> {
        if self.sees(strategy) {
            Ok(())
        } else {
            Err(out_of_scope("this login may not act for the strategy"))
        }
    }

    /// Whether he may do what touches every strategy.
    pub fn touch_all(&self) -> Result<(), Problem> {
        match self {
            StrategyScope::All => Ok(()),
            StrategyScope::Only(_) => {
                Err(out_of_scope("this touches every strategy, and the login is for some only"))
            }
        }
    }
}

fn out_of_scope(detail: &'static str) -> Problem {
    Problem::new(StatusCode::FORBIDDEN, "other-strategy", detail)
}
