//! Cash balances, and the value of portfolios.

use pitlane_engine::id::Currency;
use pitlane_protocols::rest::{CashBalanceVO, PortfolioVO};

use super::problem::Problem;
use super::request_context::RequestContext;
use super::response::HttpResponse;
use super::trading::Trading;
use super::transaction::strategy_named;

pub(crate) fn cash(trading: &Trading, ctx: &RequestContext<'_>) -> Result<HttpResponse, Problem> {
    ctx.no_query()?;
    let (reference, view) = (trading.shard_client.reference(), trading.shard_client.view());
    let scope = ctx.scope(&reference);
    let balances: Vec<_> = view.cash_balances().filter(|cash| scope.contains(cash.strategy)).collect();
    Ok(HttpResponse::list(balances.iter().map(|cash| CashBalanceVO::of(cash, &reference))))
}

/// Returns the portfolio of one strategy, or of all that the caller may see together; in the base
/// currency.
pub(crate) fn portfolio(
    trading: &Trading,
    base_currency: Currency,
    ctx: &RequestContext<'_>,
) -> Result<HttpResponse, Problem> {
    let query = ctx.query(&["strategy"])?;
    let (reference, view) = (trading.shard_client.reference(), trading.shard_client.view());
    let scope = ctx.scope(&reference);
    let strategy = strategy_named(query.get("strategy"), &scope, &reference)?;
    let wanted = |of| scope.contains(of) && strategy.is_none_or(|strategy| strategy == of);
    let portfolio = view.portfolio_of(wanted, base_currency, &reference);
    Ok(HttpResponse::json(&PortfolioVO::of(&portfolio, query.get("strategy"))))
}
