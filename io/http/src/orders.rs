//! Reads orders: open ones, one by its id, and those that have finished today.

use std::rc::Rc;
use std::sync::Arc;

use bytes::Bytes;
use pitlane_auth::network;
use pitlane_engine::id::IntId;
use pitlane_engine::reason::Reason;
use pitlane_engine::view::{OrderView, View, WalkHandle};
use pitlane_protocols::rest::{OrderVO, SentByVO};
use tokio::time::timeout;

use super::caller::RequestCaller;
use super::order_lists::OrderLists;
use super::problem::Problem;
use super::readers::{ListClient, ListReader};
use super::request_context::RequestContext;
use super::response::{HttpResponse, JsonRows};
use super::scope::StrategyScope;
use super::shard_client::ShardClient;
use super::streamed_list::{ROWS_PER_PORTION, StreamedList};

/// Bytes of a rendered order, so that a list does not grow in small steps.
const ORDER_BYTES: usize = 544;

pub(crate) async fn open(lists: &Rc<OrderLists>, ctx: &RequestContext<'_>) -> Result<HttpResponse, Problem> {
    let limit = ctx.limit(&["limit"])?;
    let scope = ctx.scope(&lists.trading.shard_client.reference());
    let are_few = lists.trading.shard_client.view().open_orders_len().min(limit) <= ROWS_PER_PORTION;
    if are_few && scope == StrategyScope::All {
        let some = || rendered(lists, lists.trading.shard_client.view().open_orders().take(limit));
        let is_whole = limit == usize::MAX;
        let list = if is_whole { lists.open_orders.get(lists.version(), some) } else { some() };
        return Ok(HttpResponse::from_json(list));
    }
    let until = lists.trading.now();
    in_portions(lists, ctx, limit, scope, |view| view.walk_open(until)).await
}

/// Lists the finished orders of the trading day, the one that finished last first.
pub(crate) async fn history(
    lists: &Rc<OrderLists>,
    ctx: &RequestContext<'_>,
) -> Result<HttpResponse, Problem> {
    let limit = ctx.limit(&["limit"])?;
    let scope = ctx.scope(&lists.trading.shard_client.reference());
    if lists.trading.shard_client.view().finished_orders_len().min(limit) <= ROWS_PER_PORTION
        && scope == StrategyScope::All
    {
        return Ok(at_once(lists, lists.trading.shard_client.view().finished_orders().take(limit)));
    }
    in_portions(lists, ctx, limit, scope, View::walk_finished).await
}

/// Returns all orders that have or had this id.
pub(crate) fn one(lists: &OrderLists, ctx: &RequestContext<'_>) -> Result<HttpResponse, Problem> {
    ctx.no_query()?;
    let scope = ctx.scope(&lists.trading.shard_client.reference());
    let mut found = with_id(&lists.trading.shard_client, &ctx.name()?)?;
    found.retain(|order| scope.contains(order.terms.strategy));
    if found.is_empty() {
        return Err(Problem::refused(Reason::UnknownOrder));
    }
    Ok(at_once(lists, found.into_iter()))
}

/// Returns the orders with an id, without a check of the caller's scope; at least one.
pub(crate) fn with_id(shard_client: &ShardClient, text: &str) -> Result<Vec<OrderView>, Problem> {
    let id = IntId::parse(text.as_bytes()).ok();
    let found = id.map(|id| shard_client.view().orders_with_id(&id)).unwrap_or_default();
    if found.is_empty() {
        return Err(Problem::refused(Reason::UnknownOrder));
    }
    Ok(found)
}

fn at_once(lists: &OrderLists, orders: impl Iterator<Item = OrderView>) -> HttpResponse {
    HttpResponse::from_json(rendered(lists, orders))
}

fn rendered(lists: &OrderLists, orders: impl Iterator<Item = OrderView>) -> Bytes {
    let reference = lists.trading.shard_client.reference();
    let orders: Vec<OrderView> = orders.collect();
    let (names, view) = (lists.notifications.hub.names(), lists.trading.shard_client.view());
    let sent = |order: &OrderView| SentByVO::of(&order.sent, &view);
    let shown =
        orders.iter().map(|order| OrderVO::of(order, names.of(&order.source), sent(order), &reference));
    let mut bytes = Vec::with_capacity(ORDER_BYTES * orders.len() + 2);
    JsonRows::default().push(&mut bytes, shown, true);
    bytes.into()
}

/// Streams a long list. Each order is shown as it is when its portion is rendered; the list does
/// not delay the events in between.
async fn in_portions(
    lists: &Rc<OrderLists>,
    ctx: &RequestContext<'_>,
    limit: usize,
    scope: StrategyScope,
    begin: impl FnOnce(&mut View) -> Option<WalkHandle>,
) -> Result<HttpResponse, Problem> {
    let guard = WalkGuard::begin(lists, ctx, begin).await?;
    let reader = guard.reader.clone();
    let (mut left, mut rows) = (limit, JsonRows::default());
    let portions = StreamedList::new(move |bytes| {
        let shard_client = &guard.lists.trading.shard_client;
        guard.lists.readers.step(&guard.reader);
        let mut is_over = false;
        let orders: Vec<OrderView> = {
            let mut view = shard_client.view_mut();
            let mut next = || {
                let order = view.walk_next(guard.reader.walk());
                is_over = order.is_none();
                order
            };
            let walked = std::iter::from_fn(&mut next).take(ROWS_PER_PORTION);
            walked.filter(|order| scope.contains(order.terms.strategy)).take(left).collect()
        };
        left -= orders.len();
        let (goes_on, reference) = (!is_over && left > 0, shard_client.reference());
        let (names, view) = (guard.lists.notifications.hub.names(), shard_client.view());
        let sent = |order: &OrderView| SentByVO::of(&order.sent, &view);
        let shown =
            orders.iter().map(|order| OrderVO::of(order, names.of(&order.source), sent(order), &reference));
        rows.push(bytes, shown, !goes_on);
        goes_on
    });
    Ok(HttpResponse::streamed(portions.with_reader(reader)))
}

/// A walk that is ended when its reader is done or gone.
struct WalkGuard {
    lists: Rc<OrderLists>,
    reader: Rc<ListReader>,
}

impl WalkGuard {
    async fn begin(
        lists: &Rc<OrderLists>,
        ctx: &RequestContext<'_>,
        begin: impl FnOnce(&mut View) -> Option<WalkHandle>,
    ) -> Result<WalkGuard, Problem> {
        let login = match ctx.caller {
            RequestCaller::Known(identity) => identity.name.clone(),
            RequestCaller::Anonymous => Arc::default(),
        };
        let client = ListClient { network: network(ctx.connection.peer.ip()), login };
        let slot = timeout(lists.trading.answer_timeout, lists.readers.wait_for_room(&client)).await;
        let freed = slot.map_err(|_elapsed| Problem::too_many_lists())?;
        let mut view = lists.trading.shard_client.view_mut();
        if let Some(walk) = freed {
            view.walk_end(walk);
        }
        let walk = begin(&mut view).ok_or_else(Problem::busy)?;
        Ok(WalkGuard { lists: lists.clone(), reader: lists.readers.begin(walk, client) })
    }
}

impl Drop for WalkGuard {
    fn drop(&mut self) {
        if let Some(walk) = self.lists.readers.end(&self.reader) {
            self.lists.trading.shard_client.view_mut().walk_end(walk);
        }
    }
}
