//! Submits, modifies and cancels orders. A request is answered when a shard has accepted or refused
//! it.
//!
//! Rules: docs/rest.md#orders.

use std::time::Duration;

use hyper::header::HeaderValue;
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};
use pitlane_engine::command::CommandKind;
use pitlane_engine::desk::Declined;
use pitlane_engine::event::ExecType;
use pitlane_engine::id::{AccountId, IntId, OrderHandle, SecurityId, StrategyId};
use pitlane_engine::reason::Reason;
use pitlane_engine::refdata::RefData;
use pitlane_engine::terms::{OrderKind, Status, Terms};
use pitlane_engine::view::OrderView;
use pitlane_protocols::rest::{
    self, AnyOrderVO, LimitOrderChangeVO, LimitOrderVO, MarketOrderChangeVO, MarketOrderVO, OrderChange,
    OrderRequest, OrderVO, SentByVO, StopLimitOrderChangeVO, StopLimitOrderVO, StopOrderChangeVO,
    StopOrderVO,
};
use serde_json::json;
use tokio::time::{Instant, sleep};

use super::body::RequestBody;
use super::orders;
use super::problem::Problem;
use super::request_context::RequestContext;
use super::response::HttpResponse;
use super::shard_client::{CommandOutcome, PendingResponse, RestRequest, is_rest_order};
use super::trading::Trading;

/// Interval at which a repeated request checks for the result of the first.
const POLL_INTERVAL: Duration = Duration::from_millis(1);

pub(crate) async fn submit(
    trading: &Trading,
    ctx: &RequestContext<'_>,
    kind: OrderKind,
    body: RequestBody,
) -> Result<HttpResponse, Problem> {
    ctx.order_query(&[])?;
    let bytes = body.read().await?;
    let request = read_request(kind, &bytes)?;
    let id = parse_id(request.int_id.as_deref())?;
    let reference = trading.shard_client.reference();
    let terms = terms_of(&request, &reference)?;
    ctx.scope(&reference).authorize(terms.strategy)?;
    trading.check_open()?;
    match trading.shard_client.submit(ctx.sender(&trading.shard_client), id, terms) {
        Ok((id, pending)) => finish(trading, ctx, (terms.strategy, id), pending).await,
        Err(Declined { reason: Reason::DuplicateId, .. }) => {
            replay_response(trading, ctx, (terms.strategy, id), RestRequest::Submit(terms)).await
        }
        Err(declined) => Err(Problem::refused(declined.reason)),
    }
}

pub(crate) async fn modify(
    trading: &Trading,
    ctx: &RequestContext<'_>,
    kind: OrderKind,
    body: RequestBody,
) -> Result<HttpResponse, Problem> {
    ctx.order_query(&[])?;
    let bytes = body.read().await?;
    let change = read_change(kind, &bytes)?;
    let new_id = parse_id(change.new_int_id.as_deref())?;
    let found = orders_in_scope(trading, ctx, &change.int_id)?;
    let receipts = found.iter().filter_map(|order| {
        let receipt = trading.shard_client.receipt(order.terms.strategy, &new_id)?;
        Some((order.terms.strategy, receipt.request))
    });
    let receipts: Vec<_> = if new_id.is_none() { Vec::new() } else { receipts.collect() };
    if !receipts.is_empty() {
        let is_same = |request: RestRequest| {
            found.iter().any(|order| request == RestRequest::Modify(order.handle, change.changes))
        };
        let same = receipts.into_iter().find(|(_, request)| is_same(*request));
        let (strategy, request) = same.ok_or_else(|| Problem::refused(Reason::DuplicateId))?;
        return replay_response(trading, ctx, (strategy, new_id), request).await;
    }
    if let Some(order) = found.iter().find(|order| order.id == new_id && change.int_id != new_id.as_str()) {
        return modified_before(trading, ctx, order, &change);
    }
    let order = single_open_order(found, change.account_id)?;
    check_fixed(&order, &change)?;
    trading.check_open()?;
    match trading.shard_client.modify(ctx.sender(&trading.shard_client), &order, new_id, change.changes) {
        Ok((id, pending)) => finish(trading, ctx, (order.terms.strategy, id), pending).await,
        Err(declined) => Err(Problem::refused(declined.reason)),
    }
}

/// Cancels an order. Answers when the request was accepted; its result follows by topic, and in the
/// order's status.
pub(crate) async fn cancel(
    trading: &Trading,
    ctx: &RequestContext<'_>,
    body: RequestBody,
) -> Result<HttpResponse, Problem> {
    let query = ctx.order_query(&["accountId", "handle"])?;
    let account = match query.get("accountId") {
        Some(text) => Some(
            text.parse().map_err(|_| Problem::bad_request("bad-query", "`accountId` is no account's id"))?,
        ),
        None => None,
    };
    let handle = match query.get("handle") {
        Some(text) => {
            let raw = text.parse().map_err(|_| Problem::bad_request("bad-query", "`handle` is no handle"))?;
            Some(OrderHandle::from_raw(raw))
        }
        None => None,
    };
    body.read_nothing().await?;
    let mut found = orders_in_scope(trading, ctx, &ctx.name()?)?;
    found.retain(|order| handle.is_none_or(|handle| order.handle == handle));
    if found.is_empty() {
        return Err(Problem::refused(Reason::UnknownOrder));
    }
    let order = single_open_order(found, account)?;
    trading.check_open()?;
    let sent = trading.shard_client.cancel(ctx.sender(&trading.shard_client), &order);
    let pending = sent.map_err(|declined| Problem::refused(declined.reason))?;
    match trading.await_outcome(pending).await? {
        CommandOutcome::Refused(refusal) => Err(Problem::refused(refusal.reason)),
        CommandOutcome::Order(_) | CommandOutcome::Done(_) => {
            let now =
                ctx.wants_representation().then(|| trading.shard_client.view().order(order.handle)).flatten();
            Ok(order_response(trading, now.as_ref()))
        }
    }
}

/// `POST /ext/execution/order/validate`: makes all checks that an order of any type would meet, and
/// sends nothing.
pub(crate) async fn validate(
    trading: &Trading,
    ctx: &RequestContext<'_>,
    body: RequestBody,
) -> Result<HttpResponse, Problem> {
    ctx.no_query()?;
    let bytes = body.read().await?;
    let request = OrderRequest::from(rest::read::<AnyOrderVO>(&bytes).map_err(Problem::bad_body)?);
    let id = parse_id(request.int_id.as_deref())?;
    let reference = trading.shard_client.reference();
    let terms = terms_of(&request, &reference)?;
    ctx.scope(&reference).authorize(terms.strategy)?;
    if !id.is_none() && trading.shard_client.knows(terms.strategy, &id) {
        return Err(Problem::refused(Reason::DuplicateId));
    }
    trading.execute(CommandKind::Validate { terms }).await
}

/// `POST /next-order-id`: returns an id that is never given out again.
pub(crate) async fn next_id(
    trading: &Trading,
    ctx: &RequestContext<'_>,
    body: RequestBody,
) -> Result<HttpResponse, Problem> {
    ctx.no_query()?;
    let bytes = body.read().await?;
    let account = rest::account_id(&bytes).map_err(Problem::bad_body)?;
    let reference = trading.shard_client.reference();
    let unknown = || Problem::unknown("unknown-account", "there is no account with this id");
    let account = u16::try_from(account).map_err(|_| unknown())?;
    reference.account(AccountId(account)).ok_or_else(unknown)?;
    let id = trading.shard_client.make_id().ok_or_else(Problem::busy)?;
    Ok(HttpResponse::json(&id.as_str()))
}

/// An id within its strategy.
type OwnId = (StrategyId, IntId);

/// Waits for the result of a new order or a modification.
pub(crate) async fn finish(
    trading: &Trading,
    ctx: &RequestContext<'_>,
    id: OwnId,
    pending: PendingResponse,
) -> Result<HttpResponse, Problem> {
    let reason = match trading.await_outcome(pending).await? {
        // Other reports may give a reason for what was done: a quantity at or below what is filled
        // ends the order.
        CommandOutcome::Order(report) if report.what != ExecType::Rejected => Reason::None,
        CommandOutcome::Order(report) => report.reason,
        CommandOutcome::Refused(refusal) => refusal.reason,
        CommandOutcome::Done(reason) => reason,
    };
    trading.shard_client.record_result(id.0, &id.1, reason);
    respond(trading, ctx, &id, reason)
}

/// Returns the same response to the same request under the same id; another request is refused.
async fn replay_response(
    trading: &Trading,
    ctx: &RequestContext<'_>,
    id: OwnId,
    request: RestRequest,
) -> Result<HttpResponse, Problem> {
    let duplicate = || Problem::refused(Reason::DuplicateId);
    let end = Instant::now() + trading.answer_timeout;
    loop {
        let order = own_order(trading, &id);
        let Some(receipt) = trading.shard_client.receipt(id.0, &id.1) else {
            // Another server has sent it here, and the view does not show it yet.
            if order.is_none() && trading.shard_client.is_in_flight(id.0, &id.1) && Instant::now() < end {
                sleep(POLL_INTERVAL).await;
                continue;
            }
            // From before a restart, or of another server: the order itself shows what was
            // requested.
            let order =
                order.filter(|order| request == RestRequest::Submit(order.terms)).ok_or_else(duplicate)?;
            let is_rejected = order.status == Status::Rejected;
            let reason = if is_rejected { order.reason } else { Reason::None };
            return respond(trading, ctx, &id, reason);
        };
        if receipt.request != request {
            return Err(duplicate());
        }
        if let Some(reason) = receipt.result {
            return respond(trading, ctx, &id, reason);
        }
        // The first request has not been answered yet.
        if Instant::now() >= end {
            return Err(Problem::no_answer());
        }
        sleep(POLL_INTERVAL).await;
    }
}

/// Answers a modification from before a restart: the order already has this id, and its terms show
/// whether the same was requested.
fn modified_before(
    trading: &Trading,
    ctx: &RequestContext<'_>,
    order: &OrderView,
    change: &OrderChange,
) -> Result<HttpResponse, Problem> {
    if check_fixed(order, change).is_err() || change.changes.applied_to(&order.terms) != order.terms {
        return Err(Problem::refused(Reason::DuplicateId));
    }
    let order_shown = ctx.wants_representation().then_some(order);
    Ok(order_response(trading, order_shown).with_location(location_of(&order.id)))
}

fn respond(
    trading: &Trading,
    ctx: &RequestContext<'_>,
    id: &OwnId,
    reason: Reason,
) -> Result<HttpResponse, Problem> {
    if reason != Reason::None {
        return Err(Problem::refused(reason).with("intId", id.1.as_str()));
    }
    let order = ctx.wants_representation().then(|| own_order(trading, id)).flatten();
    Ok(order_response(trading, order.as_ref()).with_location(location_of(&id.1)))
}

/// Returns an order in the response, for a client that wants it.
fn order_response(trading: &Trading, order: Option<&OrderView>) -> HttpResponse {
    let Some(order) = order else { return HttpResponse::empty() };
    let sent = SentByVO::of(&order.sent, &trading.shard_client.view());
    HttpResponse::json(&OrderVO::of(order, None, sent, &trading.shard_client.reference()))
}

/// Returns the order that this request was about: a pending modification is not yet among its ids.
fn own_order(trading: &Trading, (strategy, id): &OwnId) -> Option<OrderView> {
    let view = trading.shard_client.view();
    let mut found = view.orders_with_id(id);
    if let Some(RestRequest::Modify(handle, _)) =
        trading.shard_client.receipt(*strategy, id).map(|receipt| receipt.request)
    {
        return view.order(handle);
    }
    found.retain(|order| is_rest_order(order) && order.terms.strategy == *strategy);
    found.pop()
}

/// Characters of an order id that are encoded in its path.
const ENCODED: &AsciiSet =
    &NON_ALPHANUMERIC.remove(b'-').remove(b'.').remove(b'_').remove(b'~').remove(b':').remove(b'@');

/// Returns the path of an order. Ids are printable ASCII; characters with a meaning in a path are
/// percent-encoded.
pub(crate) fn location_of(id: &IntId) -> HeaderValue {
    let path = format!("/rest/execution/order/{}", utf8_percent_encode(id.as_str(), ENCODED));
    HeaderValue::try_from(path).expect("only what belongs into a header")
}

fn read_request(kind: OrderKind, bytes: &[u8]) -> Result<OrderRequest, Problem> {
    let request = match kind {
        OrderKind::Market => rest::read::<MarketOrderVO>(bytes).map(OrderRequest::from),
        OrderKind::Limit => rest::read::<LimitOrderVO>(bytes).map(OrderRequest::from),
        OrderKind::Stop => rest::read::<StopOrderVO>(bytes).map(OrderRequest::from),
        OrderKind::StopLimit => rest::read::<StopLimitOrderVO>(bytes).map(OrderRequest::from),
    };
    request.map_err(Problem::bad_body)
}

fn read_change(kind: OrderKind, bytes: &[u8]) -> Result<OrderChange, Problem> {
    let change = match kind {
        OrderKind::Market => rest::read::<MarketOrderChangeVO>(bytes).map(OrderChange::from),
        OrderKind::Limit => rest::read::<LimitOrderChangeVO>(bytes).map(OrderChange::from),
        OrderKind::Stop => rest::read::<StopOrderChangeVO>(bytes).map(OrderChange::from),
        OrderKind::StopLimit => rest::read::<StopLimitOrderChangeVO>(bytes).map(OrderChange::from),
    };
    change.map_err(Problem::bad_body)
}

fn parse_id(text: Option<&str>) -> Result<IntId, Problem> {
    let Some(text) = text else { return Ok(IntId::NONE) };
    IntId::parse(text.as_bytes()).map_err(|_| Problem::refused(Reason::BadId))
}

/// Returns the terms for the shard. The shard decides whether they are acceptable; here only names
/// become ids.
pub(crate) fn terms_of(request: &OrderRequest, reference: &RefData) -> Result<Terms, Problem> {
    let security = SecurityId(request.security_id);
    let exchange = reference.security(security).map(|row| reference.exchange_of(row));
    if let (Some(request), Some(exchange)) = (request.exchange_id, exchange)
        && request != exchange.id.0
    {
        let detail = format!("the security trades on exchange {}", exchange.id);
        return Err(Problem::unprocessable("wrong-exchange", detail));
    }
    let account = match (request.account_id, exchange) {
        (Some(id), _) => account_of(id)?,
        // The shard will answer that there is no such security.
        (None, None) => AccountId::default(),
        (None, Some(exchange)) => {
            reference.default_account(exchange).map(|row| row.id).ok_or_else(account_missing)?
        }
    };
    Ok(Terms {
        qty: request.quantity,
        limit: request.limit.unwrap_or_default(),
        stop: request.stop.unwrap_or_default(),
        tif_date: request.tif_date,
        security,
        strategy: strategy_of(request.strategy_id, request.strategy_name.as_deref(), reference)?,
        account,
        side: request.side,
        kind: request.kind,
        tif: request.tif,
        limit_given: request.limit.is_some(),
        stop_given: request.stop.is_some(),
        exchange_order: request.exchange_order,
        reduce_only: false,
        special: false,
    })
}

/// Returns an account by its id; ids beyond all possible ones are as unknown as unused ones.
pub(crate) fn account_of(id: u64) -> Result<AccountId, Problem> {
    u16::try_from(id).map(AccountId).map_err(|_| Problem::refused(Reason::UnknownAccount))
}

pub(crate) fn account_missing() -> Problem {
    let detail = "name one by `accountId`: the exchange has no active account, or more than one";
    Problem::unprocessable("account-required", detail)
}

/// Returns the selected strategy; by default the server itself.
pub(crate) fn strategy_of(
    id: Option<u16>,
    name: Option<&str>,
    reference: &RefData,
) -> Result<StrategyId, Problem> {
    let by_name = match name {
        Some(name) => {
            let row = reference.strategies().iter().find(|row| row.name == name);
            Some(row.ok_or_else(|| Problem::refused(Reason::UnknownStrategy))?.id)
        }
        None => None,
    };
    match (id.map(StrategyId), by_name) {
        (Some(id), Some(named)) if id != named => Err(Problem::unprocessable(
            "strategies-differ",
            "`strategyId` and `strategyName` are different strategies",
        )),
        (id, named) => Ok(id.or(named).unwrap_or(StrategyId::SERVER)),
    }
}

/// Returns the orders that the caller selects by an id and may access; at least one. Orders of
/// other strategies are as unknown as orders that never existed.
fn orders_in_scope(trading: &Trading, ctx: &RequestContext<'_>, id: &str) -> Result<Vec<OrderView>, Problem> {
    let scope = ctx.scope(&trading.shard_client.reference());
    let mut found = orders::with_id(&trading.shard_client, id)?;
    found.retain(|order| scope.contains(order.terms.strategy));
    if found.is_empty() {
        return Err(Problem::refused(Reason::UnknownOrder));
    }
    Ok(found)
}

/// Returns the one order that is open, of all orders that have had an id; with an account, only
/// among that account's.
fn single_open_order(mut found: Vec<OrderView>, account: Option<u64>) -> Result<OrderView, Problem> {
    if let Some(account) = account {
        found.retain(|order| u64::from(order.terms.account.0) == account);
        if found.is_empty() {
            return Err(Problem::refused(Reason::UnknownOrder));
        }
    }
    found.retain(|order| !order.status.is_finished());
    match found.as_slice() {
        [] => Err(Problem::refused(Reason::OrderFinished)),
        [order] => Ok(*order),
        several => {
            let candidates = several.iter().map(|order| {
                json!({
                    "intId": order.id.as_str(),
                    "accountId": order.terms.account.0,
                    "securityId": order.terms.security.0,
                    "handle": order.handle.raw().to_string(),
                })
            });
            let detail = "several open orders have this id; `accountId` selects one, and to cancel one `handle` always does";
            let candidates: Vec<_> = candidates.collect();
            Err(Problem::conflict("ambiguous-order-id", detail).with("candidates", candidates))
        }
    }
}

/// Checks that fields which cannot be changed have their current values, if they are given.
fn check_fixed(order: &OrderView, change: &OrderChange) -> Result<(), Problem> {
    let fixed = |detail| Err(Problem::unprocessable("cannot-change", detail));
    if order.terms.kind != change.kind {
        return fixed("the type of an order cannot change; this order has another one");
    }
    if change.security_id.is_some_and(|id| id != order.terms.security.0) {
        return fixed("the security of an order cannot change");
    }
    if change.side.is_some_and(|side| side != order.terms.side) {
        return fixed("the side of an order cannot change");
    }
    Ok(())
}
