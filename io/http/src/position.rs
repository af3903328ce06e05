//! Positions: reads, closes, reduces and recomputes them.

use pitlane_engine::command::CommandKind;
use pitlane_engine::desk::CloseRequest;
use pitlane_engine::id::{AccountId, PositionId};
use pitlane_engine::number::Qty;
use pitlane_engine::reason::Reason;
use pitlane_engine::view::PositionView;
use pitlane_protocols::rest::{self, PositionVO};

use super::app_state::AppState;
use super::body::{self, RequestBody};
use super::order_entry;
use super::problem::Problem;
use super::request_context::RequestContext;
use super::response::HttpResponse;

pub fn all(app: &AppState, ctx: &RequestContext<'_>) -> Result<HttpResponse, Problem> {
    ctx.no_query()?;
    let (reference, view) = (app.shard_client.reference(), app.shard_client.view());
    let scope = ctx.scope(&reference);
    let seen = view.positions().filter(|position| scope.contains(position.id.strategy()));
    Ok(HttpResponse::list(seen.map(|position| PositionVO::of(&position, &view, &reference))))
}

/// Sends a market order of the opposite side for the whole position.
pub async fn close(
    app: &AppState,
    ctx: &RequestContext<'_>,
    body: RequestBody,
) -> Result<HttpResponse, Problem> {
    let query = ctx.query(&["accountId"])?;
    let account = account_in(query.get("accountId"))?;
    body::read_nothing(app, body).await?;
    send(app, ctx, account, Qty::ZERO).await
}

/// Sends a market order of the opposite side for a part of the position.
pub async fn reduce(
    app: &AppState,
    ctx: &RequestContext<'_>,
    body: RequestBody,
) -> Result<HttpResponse, Problem> {
    let query = ctx.query(&["accountId"])?;
    let account = account_in(query.get("accountId"))?;
    let bytes = body::read(app, body).await?;
    let qty: Qty = rest::quantity(&bytes).map_err(Problem::bad_body)?.into();
    find(app, ctx)?;
    if !qty.is_positive() {
        return Err(Problem::refused(Reason::QuantityNotPositive));
    }
    send(app, ctx, account, qty).await
}

/// Recomputes every position from the transactions.
pub async fn reset(
    app: &AppState,
    ctx: &RequestContext<'_>,
    body: RequestBody,
) -> Result<HttpResponse, Problem> {
    ctx.no_query()?;
    body::read_nothing(app, body).await?;
    ctx.scope(&app.shard_client.reference()).authorize_all()?;
    app.execute(CommandKind::ResetPositions).await
}

async fn send(
    app: &AppState,
    ctx: &RequestContext<'_>,
    account: Option<AccountId>,
    qty: Qty,
) -> Result<HttpResponse, Problem> {
    let position = find(app, ctx)?;
    if position.state.qty.is_zero() {
        return Err(Problem::refused(Reason::PositionFlat));
    }
    let account = match account.or_else(|| account_of(app, &position)) {
        Some(account) => account,
        None => return Err(order_entry::account_missing()),
    };
    let closing =
        CloseRequest { strategy: position.id.strategy(), account, security: position.id.security(), qty };
    app.check_open()?;
    let sent = app.shard_client.close(ctx.sender(app), closing);
    let sent = sent.map_err(|declined| Problem::refused(declined.reason))?;
    let (id, pending) = sent;
    order_entry::finish(app, ctx, (closing.strategy, id), pending).await
}

/// Returns the position of the path, if the caller may act for its strategy.
fn find(app: &AppState, ctx: &RequestContext<'_>) -> Result<PositionView, Problem> {
    let found = ctx.id().and_then(|id| app.shard_client.view().position(PositionId(id)));
    let found = found.ok_or_else(|| Problem::refused(Reason::UnknownPosition))?;
    ctx.scope(&app.shard_client.reference()).authorize(found.id.strategy())?;
    Ok(found)
}

/// Returns the account that traded the position last; else the only one that can.
fn account_of(app: &AppState, position: &PositionView) -> Option<AccountId> {
    let (strategy, security) = (position.id.strategy(), position.id.security());
    let view = app.shard_client.view();
    let last = view.transactions(Some(strategy)).find(|row| row.security == Some(security));
    let reference = app.shard_client.reference();
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
