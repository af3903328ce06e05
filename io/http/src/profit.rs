//! `GET /rest/ext/profit`: the profit of the trading day before and after fees.

use std::collections::BTreeMap;

use pitlane_engine::id::{Currency, SecurityId, StrategyId};
use pitlane_engine::number::Price;
use pitlane_history::{HistoryClient, HistoryQuery};
use pitlane_protocols::rest::{Decimal, ProfitVO};
use serde::Deserialize;

use super::history;
use super::problem::Problem;
use super::request_context::RequestContext;
use super::response::HttpResponse;
use super::trading::Trading;
use super::transaction::strategy_named;

/// The member of a quote of the history that is used here.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct PreviousClose {
    security_id: u32,
    previous_close: Option<Decimal>,
}

/// Returns the profit of one strategy, or of all that the caller may see.
pub(crate) async fn show(
    history: Option<&HistoryClient>,
    trading: &Trading,
    base_currency: Currency,
    ctx: &RequestContext<'_>,
) -> Result<HttpResponse, Problem> {
    let query = ctx.query(&["strategy"])?;
    let reference = trading.shard_client.reference();
    let scope = ctx.scope(&reference);
    let strategy = strategy_named(query.get("strategy"), &scope, &reference)?;
    let wanted = |of: StrategyId| scope.contains(of) && strategy.is_none_or(|strategy| strategy == of);
    let closes = previous_closes(history, trading).await?;
    // Borrowed only now: the read model changes while the history is asked.
    let view = trading.shard_client.view();
    let results = view.day_results(wanted, |security| closes.get(&security).copied(), &reference);
    Ok(HttpResponse::json(&ProfitVO::of(&results, base_currency, &view, &reference)))
}

/// Returns the last price of the day before for every security with a history; none if no history
/// is kept.
async fn previous_closes(
    history: Option<&HistoryClient>,
    trading: &Trading,
) -> Result<BTreeMap<SecurityId, Price>, Problem> {
    let Some(history) = history else { return Ok(BTreeMap::new()) };
    let query = HistoryQuery::Quotes { securities: Vec::new() };
    let answer = history::ask(history, trading, query, pitlane_history::RowFormat::Json).await?;
    let rows: Vec<PreviousClose> = serde_json::from_slice(&answer.body).map_err(|_| history::unreadable())?;
    let closes = rows.into_iter().filter_map(|row| Some((SecurityId(row.security_id), row.previous_close?)));
    Ok(closes.map(|(security, close)| (security, Price::from_raw(close.raw))).collect())
}
