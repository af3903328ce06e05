//! Reads orders: open ones, one by its id, and those that have finished today.

use std::rc::Rc;
use std::sync::Arc;

use bytes::Bytes;
use pitlane_engine::id::IntId;
use pitlane_engine::reason::Reason;
use pitlane_engine::view::{OrderView, View, WalkHandle};
use pitlane_protocols::rest::{OrderVO, SentByVO};
use tokio::time::timeout;

use super::app_state::AppState;
use super::login::Who;
use super::problem::Problem;
use super::readers::{ListClient, ListReader};
use super::reference::limit_of;
use super::request_context::RequestContext;
use super::response::{Answer, Rows};
use super::scope::StrategyScope;
use super::streamed_list::{ROWS_PER_PORTION, StreamedList};
use crate::auth::network;

/// Bytes of a rendered order, so that a list does not grow in small steps.
const ORDER_BYTES: usize = 544;

pub async fn open(house: &Rc<AppState>, ask: &RequestContext<'_>) -> Result<Answer, Problem> {
    let limit = limit_of(ask, &["limit"])?;
    let sight = ask.sight(&house.floor.reference());
    let are_few = house.floor.view().open_orders_len().min(limit) <= ROWS_PER_PORTION;
    if are_few && sight == StrategyScope::All {
        let some = || rendered(house, house.floor.view().open_orders().take(limit));
        let is_whole = limit == usize::MAX;
        let list = if is_whole { house.open_orders.get(house.version(), some) } else { some() };
        return Ok(Answer::made(list));
    }
    let until = house.now();
    in_portions(house, ask, limit, sight, |view| view.walk_open(until)).await
}

/// Lists the finished orders of the trading day, the one that finished last first.
pub async fn history(house: &Rc<AppState>, ask: &RequestContext<'_>) -> Result<Answer, Problem> {
    let limit = limit_of(ask, &["limit"])?;
    let sight = ask.sight(&house.floor.reference());
    if house.floor.view().finished_orders_len().min(limit) <= ROWS_PER_PORTION && sight == StrategyScope::All
    {
        return Ok(at_once(house, house.floor.view().finished_orders().take(limit)));
    }
    in_portions(house, ask, limit, sight, View::walk_finished).await
}

/// Returns all orders that have or had this id.
pub fn one(house: &AppState, ask: &RequestContext<'_>) -> Result<Answer, Problem> {
    ask.no_query()?;
    let sight = ask.sight(&house.floor.reference());
    let mut found = with_id(house, &ask.name()?)?;
    found.retain(|order| sight.sees(order.terms.strategy));
    if found.is_empty() {
        return Err(Problem::refused(Reason::UnknownOrder));
    }
    Ok(at_once(house, found.into_iter()))
}

/// Returns the orders with an id, without a check of the caller's scope; at least one.
pub fn with_id(house: &AppState, text: &str) -> Result<Vec<OrderView>, Problem> {
    let id = IntId::parse(text.as_bytes()).ok();
    let found = id.map(|id| house.floor.view().orders_with_id(&id)).unwrap_or_default();
    if found.is_empty() {
        return Err(Problem::refused(Reason::UnknownOrder));
    }
    Ok(found)
}

fn at_once(house: &AppState, orders: impl Iterator<Item = OrderView>) -> Answer {
    Answer::made(rendered(house, orders))
}

fn rendered(house: &AppState, orders: impl Iterator<Item = OrderView>) -> Bytes {
    let reference = house.floor.reference();
    let orders: Vec<OrderView> = orders.collect();
    let (names, view) = (house.switchboard.names(), house.floor.view());
    let sent = |order: &OrderView| SentByVO::of(&order.sent, &view);
    let shown =
        orders.iter().map(|order| OrderVO::of(order, names.of(&order.source), sent(order), &reference));
    let mut bytes = Vec::with_capacity(ORDER_BYTES * orders.len() + 2);
    Rows::default().push(&mut bytes, shown, true);
    bytes.into()
}

/// Streams a long list. Each order is shown as it is when its portion is rendered; the list does
/// not delay the events in between.
async fn in_portions(
    house: &Rc<AppState>,
    ask: &RequestContext<'_>,
    limit: usize,
    sight: StrategyScope,
    begin: impl FnOnce(&mut View) -> Option<WalkHandle>,
) -> Result<Answer, Problem> {
    let under_way = UnderWay::begin(house, ask, begin).await?;
    let reader = under_way.reader.clone();
    let (mut left, mut rows) = (limit, Rows::default());
    let portions = StreamedList::new(move |bytes| {
        let floor = &under_way.house.floor;
        under_way.house.readers.step(&under_way.reader);
        let mut is_over = false;
        let orders: Vec<OrderView> = {
            let mut view = floor.view_mut();
            let mut next = || {
                let order = view.walk_next(under_way.reader.walk());
                is_over = order.is_none();
                order
            };
            let walked = std::iter::from_fn(&mut next).take(ROWS_PER_PORTION);
            walked.filter(|order| sight.sees(order.terms.strategy)).take(left).collect()
        };
        left -= orders.len();
        let (goes_on, reference) = (!is_over && left > 0, floor.reference());
        let (names, view) = (under_way.house.switchboard.names(), floor.view());
        let sent = |order: &OrderView| SentByVO::of(&order.sent, &view);
        let shown =
            orders.iter().map(|order| OrderVO::of(order, names.of(&order.source), sent(order), &reference));
        rows.push(bytes, shown, !goes_on);
        goes_on
    });
    Ok(Answer::portions(portions.with_reader(reader)))
}

/// A walk that is ended when its reader is done or gone.
struct UnderWay {
    house: Rc<AppState>,
    reader: Rc<ListReader>,
}

impl UnderWay {
    async fn begin(
        house: &Rc<AppState>,
        ask: &RequestContext<'_>,
        begin: impl FnOnce(&mut View) -> Option<WalkHandle>,
    ) -> Result<UnderWay, Problem> {
        let login = match ask.who {
            Who::Known(identity) => identity.name.clone(),
            Who::Anybody => Arc::default(),
        };
        let client = ListClient { network: network(ask.visit.peer.ip()), login };
        let room = timeout(house.settings.answer_timeout, house.readers.wait_for_room(&client)).await;
        let freed = room.map_err(|_elapsed| Problem::too_many_lists())?;
        let mut view = house.floor.view_mut();
        if let Some(walk) = freed {
            view.walk_end(walk);
        }
        let walk = begin(&mut view).ok_or_else(Problem::busy)?;
        Ok(UnderWay { house: house.clone(), reader: house.readers.begin(walk, client) })
    }
}

impl Drop for UnderWay {
    fn drop(&mut self) {
        if let Some(walk) = self.house.readers.end(&self.reader) {
            self.house.floor.view_mut().walk_end(walk);
        }
    }
}
