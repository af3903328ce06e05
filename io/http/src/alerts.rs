//! Lists the last alerts of the shards.

use pitlane_engine::refdata::RefData;
use pitlane_engine::view::{AlertRecord, View};
use pitlane_protocols::codes::WireName;
use pitlane_protocols::rest::{AlertVO, Moment};

use super::problem::Problem;
use super::request_context::RequestContext;
use super::response::HttpResponse;
use super::scope::StrategyScope;
use super::shard_client::ShardClient;

/// Lists the alerts since the start, the newest first, at most `view.alerts_max`.
pub(crate) fn all(shard_client: &ShardClient, ctx: &RequestContext<'_>) -> Result<HttpResponse, Problem> {
    let limit = ctx.limit(&["limit"])?;
    let reference = shard_client.reference();
    let scope = ctx.scope(&reference);
    let view = shard_client.view();
    let alerts = view.alerts().filter_map(|record| alert_vo(record, &view, &reference, &scope));
    Ok(HttpResponse::list(alerts.take(limit)))
}

/// Returns the alert as a caller may see it; `None` if it concerns an order outside its scope, or
/// an order that is no longer known and the caller is limited to some strategies.
fn alert_vo(
    record: &AlertRecord,
    view: &View,
    reference: &RefData,
    scope: &StrategyScope,
) -> Option<AlertVO> {
    let order = view.order(record.order);
    let is_visible = match &order {
        Some(order) => scope.contains(order.terms.strategy),
        None => *scope == StrategyScope::All,
    };
    let strategy = order.as_ref().and_then(|order| reference.strategy(order.terms.strategy));
    let security = reference.security(record.security);
    is_visible.then(|| AlertVO {
        date_time: Moment(record.at),
        alert: record.alert.wire_name(),
        shard: record.shard.0,
        int_id: order.as_ref().map(|order| order.id.to_string()),
        strategy_name: strategy.map(|strategy| strategy.name.clone()),
        security_id: security.map(|security| security.id.0.into()),
        symbol: security.map(|security| security.symbol.clone()),
        reason: record.reason.code(),
        detail: record.reason.text(),
    })
}
