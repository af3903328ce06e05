//! Cash balances, and the value of portfolios.

use pitlane_protocols::rest::{CashBalanceVO, PortfolioVO};

use super::app_state::AppState;
use super::problem::Problem;
use super::request_context::RequestContext;
use super::response::Answer;
use super::transaction::strategy_named;

pub fn cash(house: &AppState, ask: &RequestContext<'_>) -> Result<Answer, Problem> {
    ask.no_query()?;
    let (reference, view) = (house.floor.reference(), house.floor.view());
    let sight = ask.sight(&reference);
    let balances: Vec<_> = view.cash_balances().filter(|cash| sight.sees(cash.strategy)).collect();
    Ok(Answer::list(balances.iter().map(|cash| CashBalanceVO::of(cash, &reference))))
}

/// Returns the portfolio of one strategy, or of all that the caller may see together; in the base
/// currency.
pub fn portfolio(house: &AppState, ask: &RequestContext<'_>) -> Result<Answer, Problem> {
    let query = ask.query(&["strategy"])?;
    let (reference, view) = (house.floor.reference(), house.floor.view());
    let sight = ask.sight(&reference);
    let strategy = strategy_named(query.get("strategy"), &sight, &reference)?;
    let wanted = |of| sight.sees(of) && strategy.is_none_or(|strategy| strategy == of);
    let portfolio = view.portfolio_of(wanted, house.settings.base_currency, &reference);
    Ok(Answer::json(&PortfolioVO::of(&portfolio, query.get("strategy"))))
}
