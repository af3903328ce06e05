//! `GET /rest/ext/profit`: the profit of a trading day before and after fees.

use std::collections::BTreeMap;

use pitlane_engine::id::{SecurityId, StrategyId};
use pitlane_engine::number::Price;
use pitlane_engine::refdata::RefData;
use pitlane_engine::time::Day;
use pitlane_history::{HistoryClient, HistoryQuery};
use pitlane_protocols::rest::{ConvertedResult, Decimal, ProfitVO, Query};
use serde::Deserialize;

use super::app_state::AppState;
use super::history;
use super::problem::Problem;
use super::profit_history::converted;
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
pub(crate) async fn show(app: &AppState, ctx: &RequestContext<'_>) -> Result<HttpResponse, Problem> {
    let (trading, past, base) = (&app.trading, &app.profit_history, app.settings.base_currency);
    let query = ctx.query(&["strategy", "day"])?;
    let day = day_named(&query, "day")?;
    let reference = trading.shard_client.reference();
    let scope = ctx.scope(&reference);
    let strategy = strategy_named(query.get("strategy"), &scope, &reference)?;
    let wanted = |of: StrategyId| scope.contains(of) && strategy.is_none_or(|strategy| strategy == of);
    past.collect(&trading.shard_client);
    let running = trading.shard_client.view().trading_day();
    if let Some(day) = day.filter(|day| Some(*day) != running) {
        return Ok(HttpResponse::json(&ProfitVO::of(Some(day), &past.day(day, wanted), base, &reference)));
    }
    let (running, results) = running_day(app, &reference, wanted).await?;
    Ok(HttpResponse::json(&ProfitVO::of(running, &results, base, &reference)))
}

/// Returns the running trading day and its results. Until the next `await` the days that have ended
/// before it are those of the history of the profit.
pub(crate) async fn running_day(
    app: &AppState,
    reference: &RefData,
    wanted: impl Fn(StrategyId) -> bool,
) -> Result<(Option<Day>, Vec<ConvertedResult>), Problem> {
    let (trading, past, base) = (&app.trading, &app.profit_history, app.settings.base_currency);
    let closes = previous_closes(app.history.as_ref(), trading).await?;
    // Borrowed only now: the read model changes while the history is asked.
    past.collect(&trading.shard_client);
    let view = trading.shard_client.view();
    let begin = |position| past.price(position).or_else(|| closes.get(&position.security()).copied());
    let results = view.day_results(wanted, begin, reference).into_iter();
    Ok((view.trading_day(), results.map(|result| converted(result, base, &view, reference)).collect()))
}

/// Returns the day of a query parameter.
pub(crate) fn day_named(query: &Query, name: &str) -> Result<Option<Day>, Problem> {
    let day = query.get(name).map(|text| Day::parse(text.as_bytes())).transpose();
    day.map_err(|_| Problem::bad_request("bad-query", format!("`{name}` must be a date, YYYY-MM-DD")))
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
