//! Positions: reads, closes, reduces and recomputes them.

use pitlane_engine::command::CommandKind;
use pitlane_engine::desk::CloseRequest;
use pitlane_engine::id::{AccountId, PositionId};
use pitlane_engine::number::Qty;
use pitlane_engine::reason::Reason;
use pitlane_engine::view::PositionView;
use pitlane_protocols::rest::{self, PositionVO};

use super::body::RequestBody;
use super::order_entry;
use super::problem::Problem;
use super::request_context::RequestContext;
use super::response::HttpResponse;
use super::trading::Trading;

pub(crate) fn all(trading: &Trading, ctx: &RequestContext<'_>) -> Result<HttpResponse, Problem> {
    ctx.no_query()?;
    let (reference, view) = (trading.shard_client.reference(), trading.shard_client.view());
    let scope = ctx.scope(&reference);
    let seen = view.positions().filter(|position| scope.contains(position.id.strategy()));
    Ok(HttpResponse::list(seen.map(|position| PositionVO::of(&position, &view, &reference))))
}

/// Sends a market order of the opposite side for the whole position.
pub(crate) async fn close(
    trading: &Trading,
    ctx: &RequestContext<'_>,
    body: RequestBody,
) -> Result<HttpResponse, Problem> {
    let query = ctx.order_query(&["accountId"])?;
    let account = account_in(query.get("accountId"))?;
    body.read_nothing().await?;
    send(trading, ctx, account, Qty::ZERO).await
}

/// Sends a market order of the opposite side for a part of the position.
pub(crate) async fn reduce(
    trading: &Trading,
    ctx: &RequestContext<'_>,
    body: RequestBody,
) -> Result<HttpResponse, Problem> {
    let query = ctx.order_query(&["accountId"])?;
    let account = account_in(query.get("accountId"))?;
    let bytes = body.read().await?;
    let qty: Qty = rest::quantity(&bytes).map_err(Problem::bad_body)?.into();
    find(trading, ctx)?;
    if !qty.is_positive() {
        return Err(Problem::refused(Reason::QuantityNotPositive));
    }
    send(trading, ctx, account, qty).await
}

/// Recomputes every position from the transactions.
pub(crate) async fn reset(
    trading: &Trading,
    ctx: &RequestContext<'_>,
    body: RequestBody,
) -> Result<HttpResponse, Problem> {
    ctx.no_query()?;
    body.read_nothing().await?;
    ctx.scope(&trading.shard_client.reference()).authorize_all()?;
    trading.execute(CommandKind::ResetPositions).await
}

async fn send(
    trading: &Trading,
    ctx: &RequestContext<'_>,
    account: Option<AccountId>,
    qty: Qty,
) -> Result<HttpResponse, Problem> {
    let position = find(trading, ctx)?;
    if position.state.qty.is_zero() {
        return Err(Problem::refused(Reason::PositionFlat));
    }
    let account = match account.or_else(|| account_of(trading, &position)) {
        Some(account) => account,
        None => return Err(order_entry::account_missing()),
    };
    let closing =
        CloseRequest { strategy: position.id.strategy(), account, security: position.id.security(), qty };
    trading.check_open()?;
    let sent = trading.shard_client.close(ctx.sender(&trading.shard_client), closing);
    let sent = sent.map_err(|declined| Problem::refused(declined.reason))?;
    let (id, pending) = sent;
    order_entry::finish(trading, ctx, (closing.strategy, id), pending).await
}

/// Returns the position of the path, if the caller may act for its strategy.
fn find(trading: &Trading, ctx: &RequestContext<'_>) -> Result<PositionView, Problem> {
    let found = ctx.id().and_then(|id| trading.shard_client.view().position(PositionId(id)));
    let found = found.ok_or_else(|| Problem::refused(Reason::UnknownPosition))?;
    ctx.scope(&trading.shard_client.reference()).authorize(found.id.strategy())?;
    Ok(found)
}

/// Returns the account that traded the position last; else the only one that can.
fn account_of(trading: &Trading, position: &PositionView) -> Option<AccountId> {
    let (strategy, security) = (position.id.strategy(), position.id.security());
    let view = trading.shard_client.view();
    let last = view.transactions(Some(strategy)).find(|row| row.security == Some(security));
    let reference = trading.shard_client.reference();
    let is_active = |id: &AccountId| reference.account(*id).is_some_and(|row| row.active);
    last.map(|row| row.account).filter(is_active).or_else(|| {
        let exchange = reference.exchange_of(reference.security(security)?);
        reference.default_account(exchange).map(|row| row.id)
    })
}

fn account_in(text: Option<&str>) -> Result<Option<AccountId>, Problem> {
    let bad = |_| Problem::bad_request("bad-query", "`accountId` is no account's id");
    text.map(|text| text.parse().map(AccountId).map_err(bad)).transpose()
}
