//! Cancels many orders with one command per shard, and counts the results.
//!
//! Rules: docs/rest.md#cancel-many-orders.

use pitlane_engine::command::CancelFilter;
use pitlane_engine::id::{SecurityId, StrategyId};
use pitlane_engine::reason::Reason;
use pitlane_engine::refdata::RefData;
use pitlane_protocols::codes::WireName;
use pitlane_protocols::rest::{CanceledOrdersVO, Query};
use tokio::time::{Instant, timeout_at};

use super::body::RequestBody;
use super::problem::Problem;
use super::request_context::RequestContext;
use super::response::HttpResponse;
use super::scope::StrategyScope;
use super::shard_client::CommandOutcome;
use super::trading::Trading;

const PARAMETERS: [&str; 6] = ["strategyId", "strategyName", "securityId", "side", "source", "all"];

/// `DELETE /execution/order?…`: cancels the open orders that the parameters select. Answers when
/// each order has its result, or after the time-out with the results known until then.
pub(crate) async fn cancel_orders(
    trading: &Trading,
    ctx: &RequestContext<'_>,
    body: RequestBody,
) -> Result<HttpResponse, Problem> {
    let query = ctx.query(&PARAMETERS)?;
    body.read_nothing().await?;
    let reference = trading.shard_client.reference();
    let filter = filter_of(&query, &reference)?;
    let filters = filters_in_scope(filter, &ctx.scope(&reference))?;
    trading.check_open()?;
    let end = Instant::now() + trading.answer_timeout;
    let sender = ctx.sender(&trading.shard_client);
    let mut canceled = CanceledOrdersVO::default();
    for filter in filters {
        let sent = trading.shard_client.cancel_orders(sender, filter);
        let mut pending = sent.map_err(|declined| Problem::refused(declined.reason))?;
        // A venue may take longer than that: the rest is reported as pending.
        match timeout_at(end, &mut pending).await {
            Ok(CommandOutcome::Done(Reason::None)) => {}
            Ok(CommandOutcome::Done(reason)) => {
                canceled.is_complete = false;
                canceled.reasons.push(reason.code());
            }
            Ok(CommandOutcome::Order(_) | CommandOutcome::Refused(_)) => {
                unreachable!("it is about no single order")
            }
            Err(_elapsed) => canceled.is_complete = false,
        }
        let counts = pending.cancel_counts();
        canceled.canceled += counts.canceled;
        canceled.refused += counts.refused;
        canceled.finished += counts.finished;
        canceled.pending += counts.pending;
    }
    Ok(HttpResponse::json(&canceled))
}

/// Reads the parameters. A request without any of them is refused: a client that forgot them must
/// not cancel everything.
fn filter_of(query: &Query, reference: &RefData) -> Result<CancelFilter, Problem> {
    let bad = |text: &str| Problem::bad_request("bad-query", text.to_string());
    let mut filter = CancelFilter::default();
    match (query.get("strategyId"), query.get("strategyName")) {
        (Some(_), Some(_)) => return Err(bad("give `strategyId` or `strategyName`, not both")),
        (Some(id), None) => {
            let id = id.parse().ok().map(StrategyId).filter(|id| reference.strategy(*id).is_some());
            filter.strategy = Some(id.ok_or_else(|| Problem::refused(Reason::UnknownStrategy))?);
        }
        (None, Some(name)) => {
            let row = reference.strategies().iter().find(|row| row.name == name);
            filter.strategy = Some(row.ok_or_else(|| Problem::refused(Reason::UnknownStrategy))?.id);
        }
        (None, None) => {}
    }
    if let Some(id) = query.get("securityId") {
        let id = id.parse().ok().map(SecurityId).filter(|id| reference.security(*id).is_some());
        filter.security = Some(id.ok_or_else(|| Problem::refused(Reason::UnknownSecurity))?);
    }
    if let Some(side) = query.get("side") {
        filter.side = Some(WireName::from_wire_name(side).ok_or_else(|| bad("`side` must be BUY or SELL"))?);
    }
    if let Some(source) = query.get("source") {
        let origin = WireName::from_wire_name(source);
        filter.origin = Some(origin.ok_or_else(|| bad("`source` must be REST, FIX, STRATEGY or SERVER"))?);
    }
    match query.get("all") {
        None if filter == CancelFilter::default() => {
            Err(bad("say which orders: strategyId, strategyName, securityId, side, source, or all=true"))
        }
        None | Some("true") => Ok(filter),
        Some(_) => Err(bad("`all` must be true")),
    }
}

/// Returns the filter for each strategy of the caller, where its login names strategies.
fn filters_in_scope(filter: CancelFilter, scope: &StrategyScope) -> Result<Vec<CancelFilter>, Problem> {
    match (filter.strategy, scope) {
        (Some(strategy), _) => scope.authorize(strategy).map(|()| vec![filter]),
        (None, StrategyScope::All) => Ok(vec![filter]),
        (None, StrategyScope::Only(strategies)) => {
            let of = |strategy: &StrategyId| CancelFilter { strategy: Some(*strategy), ..filter };
            Ok(strategies.iter().map(of).collect())
        }
    }
}
