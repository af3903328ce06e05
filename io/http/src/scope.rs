//! The strategies whose orders, positions and money a caller may see and change, where its login
//! names strategies.
//!
//! Resources outside the caller's strategies are invisible: lists omit them, and direct lookups
//! return 404. Changes outside of them are refused, and so are actions that affect every strategy:
//! the kill switch, sessions, rates, new reference data, shutdown. For reading what belongs to no
//! strategy, only the role counts.

use hyper::StatusCode;
use pitlane_auth::Strategies;
use pitlane_engine::id::StrategyId;
use pitlane_engine::refdata::RefData;

use super::caller::RequestCaller;
use super::problem::Problem;

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum StrategyScope {
    All,
    Only(Vec<StrategyId>),
}

impl StrategyScope {
    pub(crate) fn of(caller: &RequestCaller, reference: &RefData) -> StrategyScope {
        match caller {
            RequestCaller::Known(identity) if identity.strategies == Strategies::All => StrategyScope::All,
            RequestCaller::Known(identity) => {
                let rows = reference.strategies().iter();
                StrategyScope::Only(
                    rows.filter(|row| identity.strategies.sees(&row.name)).map(|row| row.id).collect(),
                )
            }
            // Public calls show nothing of any strategy.
            RequestCaller::Anonymous => StrategyScope::Only(Vec::new()),
        }
    }

    pub(crate) fn contains(&self, strategy: StrategyId) -> bool {
        match self {
            StrategyScope::All => true,
            StrategyScope::Only(strategies) => strategies.contains(&strategy),
        }
    }

    /// Checks that the caller may act for a strategy.
    pub(crate) fn authorize(&self, strategy: StrategyId) -> Result<(), Problem> {
        if self.contains(strategy) {
            Ok(())
        } else {
            Err(out_of_scope("this login may not act for the strategy"))
        }
    }

    /// Checks that the caller may do what affects every strategy.
    pub(crate) fn authorize_all(&self) -> Result<(), Problem> {
        match self {
            StrategyScope::All => Ok(()),
            StrategyScope::Only(_) => {
                Err(out_of_scope("this affects every strategy, and the login is for some only"))
            }
        }
    }
}

fn out_of_scope(detail: &'static str) -> Problem {
    Problem::new(StatusCode::FORBIDDEN, "other-strategy", detail)
}
