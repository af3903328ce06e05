//! Positions: reads, closes, reduces and recomputes them.

use pitlane_engine::command::CommandKind;
use pitlane_engine::desk::CloseRequest;
use pitlane_engine::id::{AccountId, PositionId};
use pitlane_engine::number::Qty;
use pitlane_engine::reason::Reason;
use pitlane_engine::view::PositionView;
use pitlane_protocols::rest::{self, PositionVO};

use super::app_state::AppState;
use super::body::{self, Input};
use super::order_entry;
use super::problem::Problem;
use super::request_context::RequestContext;
use super::response::Answer;

pub fn all(house: &AppState, ask: &RequestContext<'_>) -> Result<Answer, Problem> {
    ask.no_query()?;
    let (reference, view) = (house.floor.reference(), house.floor.view());
    let sight = ask.sight(&reference);
    let seen = view.positions().filter(|position| sight.sees(position.id.strategy()));
    Ok(Answer::list(seen.map(|position| PositionVO::of(&position, &view, &reference))))
}

/// Sends a market order of the opposite side for the whole position.
pub async fn close(house: &AppState, ask: &RequestContext<'_>, body: Input) -> Result<Answer, Problem> {
    let query = ask.query(&["accountId"])?;
    let account = account_in(query.get("accountId"))?;
    body::read_nothing(house, body).await?;
    send(house, ask, account, Qty::ZERO).await
}

/// Sends a market order of the opposite side for a part of the position.
pub async fn reduce(house: &AppState, ask: &RequestContext<'_>, body: Input) -> Result<Answer, Problem> {
    let query = ask.query(&["accountId"])?;
    let account = account_in(query.get("accountId"))?;
    let bytes = body::read(house, body).await?;
    let qty: Qty = rest::quantity(&bytes).map_err(Problem::bad_body)?.into();
    find(house, ask)?;
    if !qty.is_positive() {
        return Err(Problem::refused(Reason::QuantityNotPositive));
    }
    send(house, ask, account, qty).await
}

/// Recomputes every position from the transactions.
pub async fn reset(house: &AppState, ask: &RequestContext<'_>, body: Input) -> Result<Answer, Problem> {
    ask.no_query()?;
    body::read_nothing(house, body).await?;
    ask.sight(&house.floor.reference()).touch_all()?;
    house.execute(CommandKind::ResetPositions).await
}

async fn send(
    house: &AppState,
    ask: &RequestContext<'_>,
    account: Option<AccountId>,
    qty: Qty,
) -> Result<Answer, Problem> {
    let position = find(house, ask)?;
    if position.state.qty.is_zero() {
        return Err(Problem::refused(Reason::PositionFlat));
    }
    let account = match account.or_else(|| account_of(house, &position)) {
        Some(account) => account,
        None => return Err(order_entry::account_missing()),
    };
    let closing =
        CloseRequest { strategy: position.id.strategy(), account, security: position.id.security(), qty };
    house.is_open()?;
    let sent = house.floor.close(ask.sender(house), closing);
    let sent = sent.map_err(|declined| Problem::refused(declined.reason))?;
    let (id, pending) = sent;
    order_entry::finish(house, ask, (closing.strategy, id), pending).await
}

/// Returns the position of the path, if the caller may act for its strategy.
fn find(house: &AppState, ask: &RequestContext<'_>) -> Result<PositionView, Problem> {
    let found = ask.id().and_then(|id| house.floor.view().position(PositionId(id)));
    let found = found.ok_or_else(|| Problem::refused(Reason::UnknownPosition))?;
    ask.sight(&house.floor.reference()).touch(found.id.strategy())?;
    Ok(found)
}

/// Returns the account that traded the position last; else the only one that can.
fn account_of(house: &AppState, position: &PositionView) -> Option<AccountId> {
    let (strategy, security) = (position.id.strategy(), position.id.security());
    let view = house.floor.view();
    let last = view.transactions(Some(strategy)).find(|row| row.security == Some(security));
    let reference = house.floor.reference();
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
