//! Transactions: reads them, records them by hand, and recomputes cash from them.

use std::rc::Rc;

use hyper::header::HeaderValue;
use pitlane_engine::command::{CommandKind, Movement, MovementKind};
use pitlane_engine::id::{Currency, SecurityId, StrategyId, TransactionId, Uuid};
use pitlane_engine::number::Qty;
use pitlane_engine::refdata::RefData;
use pitlane_engine::view::TransactionView;
use pitlane_protocols::rest::{self, TransactionRequestVO, TransactionVO, parse_uuid};

use super::body::RequestBody;
use super::order_entry::{account_missing, account_of, strategy_of};
use super::problem::Problem;
use super::request_context::RequestContext;
use super::response::{HttpResponse, JsonRows};
use super::scope::StrategyScope;
use super::streamed_list::{ROWS_PER_PORTION, StreamedList};
use super::trading::Trading;

pub(crate) fn one(
    trading: &Trading,
    instance: u64,
    ctx: &RequestContext<'_>,
) -> Result<HttpResponse, Problem> {
    ctx.no_query()?;
    let (reference, view) = (trading.shard_client.reference(), trading.shard_client.view());
    let found = ctx.id().and_then(|id| view.transaction(TransactionId(id)));
    let scope = ctx.scope(&reference);
    let found = found.filter(|row| scope.contains(row.strategy)).ok_or_else(|| {
        Problem::unknown("unknown-transaction", "there is no transaction of today with this id")
    })?;
    Ok(HttpResponse::json(&TransactionVO::of(found, instance, &reference)))
}

/// Lists today's transactions, newest first.
pub(crate) fn daily(
    trading: &Rc<Trading>,
    instance: u64,
    ctx: &RequestContext<'_>,
) -> Result<HttpResponse, Problem> {
    let known = ["strategy", "limit"];
    let (query, limit) = (ctx.query(&known)?, ctx.limit(&known)?);
    let reference = trading.shard_client.reference();
    let scope = ctx.scope(&reference);
    let strategy = strategy_named(query.get("strategy"), &scope, &reference)?;
    let trading = trading.clone();
    let (mut last, mut left, mut rows) = (None::<TransactionView>, limit, JsonRows::default());
    Ok(HttpResponse::streamed(StreamedList::new(move |bytes| {
        let (reference, view) = (trading.shard_client.reference(), trading.shard_client.view());
        let found: Vec<&TransactionView> =
            view.transactions_before(last.as_ref(), strategy).take(ROWS_PER_PORTION).collect();
        let seen = found.iter().filter(|row| scope.contains(row.strategy)).take(left);
        let seen: Vec<&&TransactionView> = seen.collect();
        left -= seen.len();
        let goes_on = found.len() == ROWS_PER_PORTION && left > 0;
        let shown = seen.iter().map(|row| TransactionVO::of(row, instance, &reference));
        rows.push(bytes, shown, !goes_on);
        last = found.last().map(|row| **row).or(last);
        goes_on
    })))
}

/// Returns the strategy of a query, by name; 404 if it is unknown, or outside the caller's scope.
pub(crate) fn strategy_named(
    name: Option<&str>,
    scope: &StrategyScope,
    reference: &RefData,
) -> Result<Option<StrategyId>, Problem> {
    let Some(name) = name else { return Ok(None) };
    let row = reference.strategies().iter().find(|row| row.name == name && scope.contains(row.id));
    let unknown = || Problem::unknown("unknown-strategy", "there is no strategy of this name");
    row.map(|row| Some(row.id)).ok_or_else(unknown)
}

pub(crate) async fn record(
    trading: &Trading,
    ctx: &RequestContext<'_>,
    body: RequestBody,
) -> Result<HttpResponse, Problem> {
    ctx.no_query()?;
    let bytes = body.read().await?;
    let request: TransactionRequestVO = rest::read(&bytes).map_err(Problem::bad_body)?;
    let reference = trading.shard_client.reference();
    let movement = movement_of(&request, &reference)?;
    ctx.scope(&reference).authorize(movement.strategy)?;
    // Checks what was recorded under this UUID, perhaps in another shard, before the command is
    // sent.
    if let Some(answer) = recorded(trading, &movement)? {
        return Ok(answer);
    }
    let answer = trading.execute(CommandKind::Transaction(movement)).await?;
    Ok(recorded(trading, &movement)?.unwrap_or(answer))
}

/// Returns the location of a movement of today; a UUID that belongs to another one is refused.
fn recorded(trading: &Trading, movement: &Movement) -> Result<Option<HttpResponse>, Problem> {
    let view = trading.shard_client.view();
    match view.transaction_with_uuid(movement.uuid) {
        Some(row) if is_of(row, movement) => {
            Ok(Some(HttpResponse::empty().with_location(location_of(row.id))))
        }
        Some(_) => Err(Problem::unprocessable("duplicate-uuid", "the UUID was used for another transaction")),
        None => Ok(None),
    }
}

/// Returns whether a transaction is the result of a movement.
fn is_of(row: &TransactionView, movement: &Movement) -> bool {
    let Movement { kind, strategy, account, security, qty, price, commission, currency, uuid } = *movement;
    // Cash is booked with the sign by which it changes the balance.
    let takes = security.is_none() && matches!(kind, MovementKind::Debit | MovementKind::Fees);
    let price = if takes { price.checked_neg() } else { Some(price) };
    // A trade is in the currency of its security, whether given or not.
    let currency = if currency == Currency::default() { row.currency } else { currency };
    (row.kind, row.strategy, row.account, row.security) == (kind, strategy, account, security)
        && (row.qty, Some(row.price), row.commission) == (qty, price, commission)
        && (row.currency, row.exec.0) == (currency, uuid.0)
}

/// Recomputes every cash balance from the transactions.
pub(crate) async fn reset_cash(
    trading: &Trading,
    ctx: &RequestContext<'_>,
    body: RequestBody,
) -> Result<HttpResponse, Problem> {
    ctx.no_query()?;
    body.read_nothing().await?;
    ctx.scope(&trading.shard_client.reference()).authorize_all()?;
    trading.execute(CommandKind::ResetCash).await
}

fn location_of(id: TransactionId) -> HeaderValue {
    HeaderValue::try_from(format!("/rest/transaction/{}", id.0)).expect("digits belong into a header")
}

fn movement_of(request: &TransactionRequestVO, reference: &RefData) -> Result<Movement, Problem> {
    let refuse = |detail: &'static str| Problem::unprocessable("bad-transaction", detail);
    let uuid = match &request.uuid {
        Some(text) => parse_uuid(text)
            .ok_or_else(|| Problem::bad_request("bad-uuid", "`uuid` is no UUID").with("field", "uuid"))?,
        None => Uuid::default(),
    };
    let strategy = strategy_of(request.strategy_id, request.strategy_name.as_deref(), reference)?;
    let security = request.security_id.map(SecurityId);
    let row = match security {
        Some(id) => Some(
            reference
                .security(id)
                .ok_or_else(|| Problem::unprocessable("unknown-security", "there is no such security"))?,
        ),
        None => None,
    };
    let currency = match &request.currency {
        Some(text) => Currency::parse(text.as_bytes()).map_err(|_| refuse("`currency` is no currency"))?,
        None => Currency::default(),
    };
    let account = match (request.account_id, row) {
        (Some(id), _) => account_of(id)?,
        (None, Some(row)) => {
            let account = reference.default_account(reference.exchange_of(row));
            account.map(|row| row.id).ok_or_else(account_missing)?
        }
        // Cash belongs to its strategy; the account is only recorded along with it.
        (None, None) => {
            let account = reference.accounts().iter().find(|row| row.active);
            account.map(|row| row.id).ok_or_else(account_missing)?
        }
    };
    let mut qty: Qty = request.quantity.map(Qty::from).unwrap_or_default();
    if let Some(row) = row {
        if currency != Currency::default() && currency != reference.family_of(row).currency {
            return Err(refuse("`currency` is not the security's"));
        }
        if request.quantity.is_none() {
            return Err(refuse("a trade needs `quantity`"));
        }
        if request.kind.0 == MovementKind::Sell && qty.is_positive() {
            qty = qty.checked_neg().unwrap_or_default();
        }
    } else if request.quantity.is_some() {
        return Err(refuse("a movement of cash has no `quantity`"));
    } else if currency == Currency::default() {
        return Err(refuse("a trade needs `securityId`, a movement of cash `currency`"));
    }
    Ok(Movement {
        kind: request.kind.0,
        strategy,
        account,
        security,
        qty,
        price: request.price.into(),
        commission: request.commission.map(Into::into).unwrap_or_default(),
        currency,
        uuid,
    })
}
