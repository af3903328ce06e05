//! Reads what happened to an order.

use std::rc::Rc;

use pitlane_engine::reason::Reason;
use pitlane_protocols::rest::OrderChangesVO;

use super::order_lists::OrderLists;
use super::orders;
use super::problem::Problem;
use super::request_context::RequestContext;
use super::response::HttpResponse;

/// Most changes in an answer, the newest: they are rendered at once, which must not delay the
/// events behind it.
const CHANGES_MAX: usize = 1_000;

/// Returns the changes of the order with this id that was submitted last.
pub(crate) fn show(lists: &Rc<OrderLists>, ctx: &RequestContext<'_>) -> Result<HttpResponse, Problem> {
    let query = ctx.query(&["intId", "accountId"])?;
    let id = query.required("intId").map_err(|bad| Problem::bad_request("bad-query", bad.to_string()))?;
    let account: Option<u16> = match query.get("accountId") {
        Some(text) => Some(
            text.parse().map_err(|_| Problem::bad_request("bad-query", "`accountId` is no account's id"))?,
        ),
        None => None,
    };
    let shard_client = &lists.trading.shard_client;
    let scope = ctx.scope(&shard_client.reference());
    let found = orders::with_id(shard_client, id)?.into_iter().rev().find(|order| {
        scope.contains(order.terms.strategy) && account.is_none_or(|account| order.terms.account.0 == account)
    });
    let order = found.ok_or_else(|| Problem::refused(Reason::UnknownOrder))?;
    let (changes, is_complete) = shard_client.view().changes_of(&order, CHANGES_MAX);
    Ok(HttpResponse::json(&OrderChangesVO::of(&order, &changes, is_complete)))
}
