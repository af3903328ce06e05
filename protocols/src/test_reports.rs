//! Events about an order, for the tests of several modules.

use pitlane_engine::event::{
    Event, EventKind, ExecType, OrderReport, OrderTerms, RequestKind, RequestRefusal,
};
use pitlane_engine::id::{AccountId, IntId, OrderHandle, SecurityId, ShardId, Source, StrategyId};
use pitlane_engine::number::{Price, Qty};
use pitlane_engine::reason::Reason;
use pitlane_engine::sender::SenderId;
use pitlane_engine::terms::{OrderKind, Side, Status, Terms, Tif};
use pitlane_engine::time::Timestamp;

/// Returns the order in a slot of shard 0.
pub(crate) fn handle(slot: u32) -> OrderHandle {
    OrderHandle::new(ShardId(0), 1, slot)
}

pub(crate) fn id(number: u64) -> IntId {
    IntId::numbered(b'o', number)
}

/// Returns an event with a number and, in nanoseconds, the same time.
pub(crate) fn event(seq: u64, body: EventKind) -> Event {
    Event { seq, at: Timestamp(seq), body }
}

/// Returns the entry of the order in slot 1, `o1`: a limit order for the first security and the
/// first strategy of the sample.
pub(crate) fn entered(source: Source) -> OrderTerms {
    OrderTerms {
        order: handle(1),
        id: id(1),
        orig_id: IntId::NONE,
        source,
        what: ExecType::Entered,
        status: Status::PendingNew,
        reason: Reason::None,
        sender: SenderId::NONE,
        terms: Terms {
            qty: Qty::whole(10).expect("it fits"),
            limit: Price::parse(b"10.5").expect("a price"),
            security: SecurityId(1),
            strategy: StrategyId(1),
            account: AccountId(1),
            side: Side::Buy,
            kind: OrderKind::Limit,
            tif: Tif::Gtc,
            limit_given: true,
            ..Terms::default()
        },
    }
}

/// Returns a report of the same order.
pub(crate) fn report(source: Source, what: ExecType) -> OrderReport {
    let entry = entered(source);
    OrderReport {
        order: entry.order,
        id: entry.id,
        orig_id: IntId::NONE,
        qty: entry.terms.qty,
        cum_qty: Qty::ZERO,
        avg_price: Price::ZERO,
        last_qty: Qty::ZERO,
        last_price: Price::ZERO,
        source,
        sender: SenderId::NONE,
        security: entry.terms.security,
        strategy: entry.terms.strategy,
        account: entry.terms.account,
        what,
        status: Status::New,
        reason: Reason::None,
        side: entry.terms.side,
        kind: entry.terms.kind,
        tif: entry.terms.tif,
        in_doubt: false,
    }
}

/// Returns the refusal of the request `o2` about the same order.
pub(crate) fn refused(source: Source, request: RequestKind) -> RequestRefusal {
    RequestRefusal {
        order: handle(1),
        id: id(1),
        request_id: id(2),
        source,
        request,
        status: Status::New,
        reason: Reason::OrderFinished,
    }
}
