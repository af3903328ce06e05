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

use super::app_state::AppState;
use super::caller::RequestCaller;
use super::problem::Problem;
use super::readers::{ListClient, ListReader};
use super::reference::limit_of;
use super::request_context::RequestContext;
use super::response::{HttpResponse, JsonRows};
use super::scope::StrategyScope;
use super::streamed_list::{ROWS_PER_PORTION, StreamedList};

/// Bytes of a rendered order, so that a list does not grow in small steps.
const ORDER_BYTES: usize = 544;

pub async fn open(app: &Rc<AppState>, ctx: &RequestContext<'_>) -> Result<HttpResponse, Problem> {
    let limit = limit_of(ctx, &["limit"])?;
    let scope = ctx.scope(&app.shard_client.reference());
    let are_few = app.shard_client.view().open_orders_len().min(limit) <= ROWS_PER_PORTION;
    if are_few && scope == StrategyScope::All {
        let some = || rendered(app, app.shard_client.view().open_orders().take(limit));
        let is_whole = limit == usize::MAX;
        let list = if is_whole { app.open_orders.get(app.version(), some) } else { some() };
        return Ok(HttpResponse::from_json(list));
    }
    let until = app.now();
    in_portions(app, ctx, limit, scope, |view| view.walk_open(until)).await
}

/// Lists the finished orders of the trading day, the one that finished last first.
pub async fn history(app: &Rc<AppState>, ctx: &RequestContext<'_>) -> Result<HttpResponse, Problem> {
    let limit = limit_of(ctx, &["limit"])?;
    let scope = ctx.scope(&app.shard_client.reference());
    if app.shard_client.view().finished_orders_len().min(limit) <= ROWS_PER_PORTION
        && scope == StrategyScope::All
    {
        return Ok(at_once(app, app.shard_client.view().finished_orders().take(limit)));
    }
    in_portions(app, ctx, limit, scope, View::walk_finished).await
}

/// Returns all orders that have or had this id.
pub fn one(app: &AppState, ctx: &RequestContext<'_>) -> Result<HttpResponse, Problem> {
    ctx.no_query()?;
    let scope = ctx.scope(&app.shard_client.reference());
    let mut found = with_id(app, &ctx.name()?)?;
    found.retain(|order| scope.contains(order.terms.strategy));
    if found.is_empty() {
        return Err(Problem::refused(Reason::UnknownOrder));
    }
    Ok(at_once(app, found.into_iter()))
}

/// Returns the orders with an id, without a check of the caller's scope; at least one.
pub fn with_id(app: &AppState, text: &str) -> Result<Vec<OrderView>, Problem> {
    let id = IntId::parse(text.as_bytes()).ok();
    let found = id.map(|id| app.shard_client.view().orders_with_id(&id)).unwrap_or_default();
    if found.is_empty() {
        return Err(Problem::refused(Reason::UnknownOrder));
    }
    Ok(found)
}

fn at_once(app: &AppState, orders: impl Iterator<Item = OrderView>) -> HttpResponse {
    HttpResponse::from_json(rendered(app, orders))
}

fn rendered(app: &AppState, orders: impl Iterator<Item = OrderView>) -> Bytes {
    let reference = app.shard_client.reference();
    let orders: Vec<OrderView> = orders.collect();
    let (names, view) = (app.notification_hub.names(), app.shard_client.view());
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
    app: &Rc<AppState>,
    ctx: &RequestContext<'_>,
    limit: usize,
    scope: StrategyScope,
    begin: impl FnOnce(&mut View) -> Option<WalkHandle>,
) -> Result<HttpResponse, Problem> {
    let guard = WalkGuard::begin(app, ctx, begin).await?;
    let reader = guard.reader.clone();
    let (mut left, mut rows) = (limit, JsonRows::default());
    let portions = StreamedList::new(move |bytes| {
        let shard_client = &guard.app.shard_client;
        guard.app.readers.step(&guard.reader);
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
        let (names, view) = (guard.app.notification_hub.names(), shard_client.view());
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
    app: Rc<AppState>,
    reader: Rc<ListReader>,
}

impl WalkGuard {
    async fn begin(
        app: &Rc<AppState>,
        ctx: &RequestContext<'_>,
        begin: impl FnOnce(&mut View) -> Option<WalkHandle>,
    ) -> Result<WalkGuard, Problem> {
        let login = match ctx.caller {
            RequestCaller::Known(identity) => identity.name.clone(),
            RequestCaller::Anonymous => Arc::default(),
        };
        let client = ListClient { network: network(ctx.connection.peer.ip()), login };
        let slot = timeout(app.settings.answer_timeout, app.readers.wait_for_room(&client)).await;
        let freed = slot.map_err(|_elapsed| Problem::too_many_lists())?;
        let mut view = app.shard_client.view_mut();
        if let Some(walk) = freed {
            view.walk_end(walk);
        }
        let walk = begin(&mut view).ok_or_else(Problem::busy)?;
        Ok(WalkGuard { app: app.clone(), reader: app.readers.begin(walk, client) })
    }
}

impl Drop for WalkGuard {
    fn drop(&mut self) {
        if let Some(walk) = self.app.readers.end(&self.reader) {
            self.app.shard_client.view_mut().walk_end(walk);
        }
    }
}
