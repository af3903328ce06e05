//! A strategy's state from which its process starts: open orders, positions and cash from the view,
//! as snapshot events.

use pitlane_engine::event::{Adjustment, Event, EventKind, ExecType, OrderReport, OrderTerms};
use pitlane_engine::id::{ShardId, Source, StrategyId};
use pitlane_engine::reason::Reason;
use pitlane_engine::sender::SenderId;
use pitlane_engine::shard::shard_of;
use pitlane_engine::time::Timestamp;
use pitlane_engine::view::{OrderView, View};
use pitlane_protocols::remote::strategy::StateItem;

pub(crate) fn state_of(view: &View, strategy: Source, shards: u8) -> Vec<StateItem> {
    let id = StrategyId(strategy.session);
    let mut state = Vec::new();
    let mut push_item = |shard: ShardId, at: Timestamp, body: EventKind| {
        state.push(StateItem { shard, event: Event { seq: view.seq(shard), at, body } });
    };
    if let Some(day) = view.trading_day() {
        (0..shards)
            .for_each(|shard| push_item(ShardId(shard), Timestamp::ZERO, EventKind::TradingDay { day }));
    }
    for order in view.open_orders().filter(|order| order.source == strategy) {
        let shard = order.handle.shard();
        let terms = terms_of(&order, ExecType::Snapshot);
        // As a shard does: the order is first shown under its earlier ids, so that the first id
        // finds it.
        if !order.orig_id.is_none() && order.orig_id != order.first_id {
            let earlier = OrderTerms { id: order.orig_id, orig_id: order.first_id, ..terms };
            push_item(shard, order.submitted, EventKind::Order(earlier));
        }
        push_item(shard, order.submitted, EventKind::Order(terms));
        push_item(shard, order.updated, EventKind::Status(report_of(&order)));
    }
    for position in view.positions().filter(|position| position.id.strategy() == id) {
        let (security, after) = (position.id.security(), position.state);
        let what = Adjustment::Position { security, before: after, after };
        push_item(shard_of(security, shards), position.updated, EventKind::Adjusted { strategy: id, what });
    }
    for (currency, shard, after) in view.cash_parts(id) {
        let what = Adjustment::Cash { currency, before: after, after };
        push_item(shard, Timestamp::ZERO, EventKind::Adjusted { strategy: id, what });
    }
    state
}

/// Returns the terms of an order with this execution type.
pub(crate) fn terms_of(order: &OrderView, what: ExecType) -> OrderTerms {
    OrderTerms {
        order: order.handle,
        id: order.id,
        orig_id: order.orig_id,
        source: order.source,
        what,
        status: order.status,
        reason: Reason::None,
        sender: order.sent.submitted,
        terms: order.terms,
    }
}

fn report_of(order: &OrderView) -> OrderReport {
    OrderReport {
        order: order.handle,
        id: order.id,
        orig_id: order.orig_id,
        qty: order.terms.qty,
        cum_qty: order.cum_qty,
        avg_price: order.avg_price,
        last_qty: order.last_qty,
        last_price: order.last_price,
        source: order.source,
        sender: SenderId::NONE,
        security: order.terms.security,
        strategy: order.terms.strategy,
        account: order.terms.account,
        what: ExecType::Snapshot,
        status: order.status,
        reason: order.reason,
        side: order.terms.side,
        kind: order.terms.kind,
        tif: order.terms.tif,
        in_doubt: order.in_doubt,
    }
}
