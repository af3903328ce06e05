//! Support for the tests of each part: a view, and events for it.

mod control;
mod day_result;
mod valuation;
mod ledger;
mod limit_use;
mod market;
mod order_changes;
mod orders;
mod snapshots;

use std::collections::BTreeMap;

use super::*;
use crate::command::{ExecRef, MovementKind, RiskLimits, Scope, StrategyPhase, TradingSession};
use crate::event::{
    Alert, Booking, BudgetUse, ExecType, Instruction, OrderReport, OrderTerms, PositionState, RequestKind,
    RequestRefusal, Tick, VenueRequest,
};
use crate::id::{
    AccountId, AdapterId, Currency, ExchangeId, FamilyId, IntId, Origin, PortId, PositionId, SecurityId,
    Source, StrategyId, TransactionId,
};
use crate::number::{ContractSize, Money, Price, Qty};
use crate::reason::Reason;
use crate::refdata::{Exchange, OrderLimits, RefData, RefDataRows, Security, SecurityFamily, SecurityKind};
use crate::rng::Rng;
use crate::terms::{OrderKind, Side, Status, Terms, Tif};
use crate::time::{TimeOfDay, Timestamp};

/// A view, and the numbers and times of its events.
struct ViewBench {
    view: View,
    seq: u64,
}

impl ViewBench {
    fn new(shards: u8) -> ViewBench {
        ViewBench::with(shards, ViewSettings::default())
    }

    fn with(shards: u8, settings: ViewSettings) -> ViewBench {
        ViewBench { view: View::new(shards, settings), seq: 0 }
    }

    fn emit_at(&mut self, at: u64, shard: u8, body: EventKind) {
        self.seq += 3;
        self.view.apply(ShardId(shard), &Event { seq: self.seq, at: Timestamp(at), body });
    }

    fn emit(&mut self, shard: u8, body: EventKind) {
        self.emit_at(self.seq + 100, shard, body);
    }

    fn enter(&mut self, order: OrderHandle, text: &str) {
        self.emit(order.shard().0, EventKind::Order(entered(order, text)));
    }

    fn report(&mut self, order: OrderHandle, what: ExecType, status: Status) {
        let report = OrderReport { what, status, ..report_of(&entered(order, "unused")) };
        self.emit(order.shard().0, EventKind::Status(report));
    }

    fn open(&self) -> Vec<OrderHandle> {
        self.view.open_orders().map(|order| order.handle).collect()
    }

    fn finished(&self) -> Vec<OrderHandle> {
        self.view.finished_orders().map(|order| order.handle).collect()
    }

    fn begin(&mut self, shard: u8) {
        self.emit(shard, EventKind::SnapshotBegin { port: PortId(1) });
    }

    fn end(&mut self, shard: u8) {
        self.emit(shard, EventKind::SnapshotEnd { port: PortId(1) });
    }
}

fn handle(shard: u8, generation: u32, slot: u32) -> OrderHandle {
    OrderHandle::new(ShardId(shard), generation, slot)
}

fn id(text: &str) -> IntId {
    IntId::parse(text.as_bytes()).unwrap()
}

fn qty(text: &str) -> Qty {
    Qty::parse(text.as_bytes()).unwrap()
}

fn price(text: &str) -> Price {
    Price::parse(text.as_bytes()).unwrap()
}

fn money(text: &str) -> Money {
    Money::parse(text.as_bytes()).unwrap()
}

fn currency(text: &str) -> Currency {
    Currency::parse(text.as_bytes()).unwrap()
}

fn entered(order: OrderHandle, text: &str) -> OrderTerms {
    OrderTerms {
        order,
        id: id(text),
        orig_id: IntId::NONE,
        source: Source { origin: Origin::Fix, port: PortId(1), session: 7 },
        what: ExecType::Entered,
        status: Status::PendingNew,
        reason: Reason::None,
        sender: Default::default(),
        terms: Terms {
            qty: qty("100"),
            limit: price("10.5"),
            security: SecurityId(9),
            strategy: StrategyId(2),
            account: AccountId(3),
            side: Side::Sell,
            kind: OrderKind::Limit,
            tif: Tif::Gtc,
            limit_given: true,
            ..Terms::default()
        },
    }
}

/// Returns the status that goes with an order's terms.
fn report_of(order: &OrderTerms) -> OrderReport {
    let body = EventKind::Order(OrderTerms { what: ExecType::Entered, ..*order });
    let report = Event { seq: 1, at: Timestamp::ZERO, body }.report().unwrap();
    OrderReport { what: order.what, ..report }
}

fn booked(security: u32, number: u32, part: &str) -> EventKind {
    EventKind::Booked(booking(security, number, part))
}

/// Returns a buy of 10 at 12.5 by the strategy with the number of the security.
fn booking(security: u32, number: u32, part: &str) -> Booking {
    Booking {
        id: TransactionId::of_security(SecurityId(security), number),
        order: handle(0, 0, 0),
        order_id: id("o"),
        exec: ExecRef(77),
        kind: MovementKind::Buy,
        strategy: StrategyId(security as u16),
        account: AccountId(3),
        security: Some(SecurityId(security)),
        qty: qty("10"),
        price: price("12.5"),
        commission: money("0.1"),
        currency: currency("USD"),
        position: PositionState { qty: qty("10"), cost: money("125"), realized: money("3") },
        cash: money(part),
    }
}
