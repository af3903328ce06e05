//! Market data: the list of feeds, and subscriptions to them.

use pitlane_engine::command::CommandKind;
use pitlane_engine::id::SecurityId;
use pitlane_protocols::rest::{self, MarketDataSubscriptionVO};

use super::body::RequestBody;
use super::order_entry::strategy_of;
use super::problem::Problem;
use super::request_context::RequestContext;
use super::response::HttpResponse;
use super::trading::Trading;

pub(crate) fn feeds(feeds: &[String], ctx: &RequestContext<'_>) -> Result<HttpResponse, Problem> {
    ctx.no_query()?;
    Ok(HttpResponse::json(&feeds))
}

/// Subscribes or unsubscribes. Idempotent: the first subscriber of a security starts its feed, the
/// last one stops it.
pub(crate) async fn subscribe(
    trading: &Trading,
    ctx: &RequestContext<'_>,
    on: bool,
    body: RequestBody,
) -> Result<HttpResponse, Problem> {
    ctx.no_query()?;
    let bytes = body.read().await?;
    let request: MarketDataSubscriptionVO = rest::read(&bytes).map_err(Problem::bad_body)?;
    if request.subscribe.is_some_and(|subscribe| subscribe != on) {
        return Err(Problem::bad_request("subscribe-contradicts", "`subscribe` contradicts the path"));
    }
    let reference = trading.shard_client.reference();
    let strategy = strategy_of(None, Some(&request.strategy_name), &reference)?;
    ctx.scope(&reference).authorize(strategy)?;
    let security = SecurityId(request.security_id);
    if reference.security(security).is_none() {
        return Err(Problem::refused(pitlane_engine::reason::Reason::UnknownSecurity));
    }
    trading.execute(CommandKind::Subscribe { strategy, security, on }).await
}
