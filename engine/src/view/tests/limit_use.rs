use super::*;
use crate::view::{LimitRefusals, LimitUse};

const STRATEGY: Scope = Scope::Strategy(StrategyId(2));
const ACCOUNT: Scope = Scope::Account(AccountId(3));

fn refuse(bench: &mut ViewBench, at: u64, order: OrderHandle, reason: Reason) {
    let event = OrderTerms {
        what: ExecType::Rejected,
        status: Status::Rejected,
        reason,
        ..entered(order, "refused")
    };
    let shard = if order == OrderHandle::NONE { 0 } else { order.shard().0 };
    bench.emit_at(at, shard, EventKind::Order(event));
}

fn side(order: OrderHandle, text: &str, side: Side, quantity: &str) -> EventKind {
    let event = entered(order, text);
    EventKind::Order(OrderTerms { terms: Terms { side, qty: qty(quantity), ..event.terms }, ..event })
}

#[test]
fn the_use_counts_open_orders_and_the_largest_possible_position() {
    let mut bench = ViewBench::new(2);
    assert!(bench.view.limit_uses().is_empty());
    let after = PositionState { qty: qty("-30"), cost: money("-300"), realized: Money::ZERO };
    let what = Adjustment::Position { security: SecurityId(9), before: after, after };
    bench.emit(1, EventKind::Adjusted { strategy: StrategyId(2), what });
    bench.emit(1, side(handle(1, 0, 0), "sell", Side::Sell, "50"));
    bench.emit(1, side(handle(1, 0, 1), "buy", Side::Buy, "100"));
    let of_strategy = LimitUse { open_orders: 2, position: Some((SecurityId(9), qty("80"))) };
    let of_account = LimitUse { open_orders: 2, position: None };
    let uses: Vec<_> = bench.view.limit_uses().into_iter().collect();
    assert_eq!(uses, [(STRATEGY, of_strategy), (ACCOUNT, of_account)]);
    // A fill moves quantity from the order to the position, and the end of an order returns it.
    let report = OrderReport { cum_qty: qty("20"), ..report_of(&entered(handle(1, 0, 0), "sell")) };
    let filled = OrderReport { qty: qty("50"), status: Status::PartiallyFilled, ..report };
    bench.emit(1, EventKind::Status(filled));
    assert_eq!(bench.view.limit_uses()[&STRATEGY].position, Some((SecurityId(9), qty("70"))));
    bench.report(handle(1, 0, 0), ExecType::Canceled, Status::Canceled);
    assert_eq!(bench.view.limit_uses()[&STRATEGY].position, Some((SecurityId(9), qty("70"))));
    bench.report(handle(1, 0, 1), ExecType::Canceled, Status::Canceled);
    assert_eq!(
        bench.view.limit_uses()[&STRATEGY],
        LimitUse { open_orders: 0, position: Some((SecurityId(9), qty("30"))) }
    );
}

#[test]
fn refusals_by_limits_are_counted_by_reason_until_the_day_ends() {
    let mut bench = ViewBench::new(2);
    bench.emit(0, EventKind::TradingDay { day: Day(1) });
    refuse(&mut bench, 500, handle(0, 0, 0), Reason::MaxOrderQty);
    refuse(&mut bench, 400, handle(0, 0, 1), Reason::MaxOrderQty);
    refuse(&mut bench, 600, handle(1, 0, 0), Reason::PriceCollar);
    // An order without a slot counts too; other reasons do not.
    refuse(&mut bench, 700, OrderHandle::NONE, Reason::PriceCollar);
    refuse(&mut bench, 800, handle(1, 0, 1), Reason::BadLot);
    let row =
        |reason, count, last| LimitRefusals { reason, count, last: Timestamp(last), security: SecurityId(9) };
    for scope in [STRATEGY, ACCOUNT] {
        let expected = [row(Reason::MaxOrderQty, 2, 500), row(Reason::PriceCollar, 2, 700)];
        assert_eq!(bench.view.limit_refusals(scope), expected);
    }
    assert_eq!(bench.view.limit_refusals(Scope::Strategy(StrategyId(7))), []);
    // A snapshot repeats what is known.
    bench.begin(1);
    let event = entered(handle(1, 0, 0), "refused");
    let (status, reason) = (Status::Rejected, Reason::PriceCollar);
    bench.emit(1, EventKind::Order(OrderTerms { what: ExecType::Snapshot, status, reason, ..event }));
    bench.end(1);
    assert_eq!(bench.view.limit_refusals(STRATEGY)[1].count, 2);
    bench.emit(0, EventKind::TradingDay { day: Day(2) });
    assert_eq!(bench.view.limit_refusals(STRATEGY), [row(Reason::PriceCollar, 1, 600)]);
}

#[test]
fn a_refused_modification_is_counted_and_a_refused_cancel_is_not() {
    let mut bench = ViewBench::new(1);
    bench.enter(handle(0, 0, 0), "kept");
    for request in [RequestKind::Replace, RequestKind::Cancel] {
        let refusal = RequestRefusal {
            order: handle(0, 0, 0),
            id: id("kept"),
            request_id: id("next"),
            source: entered(handle(0, 0, 0), "kept").source,
            request,
            status: Status::New,
            reason: Reason::MaxPosition,
        };
        bench.emit(0, EventKind::Refused(refusal));
    }
    let counts: Vec<_> =
        bench.view.limit_refusals(STRATEGY).iter().map(|row| (row.reason, row.count)).collect();
    assert_eq!(counts, [(Reason::MaxPosition, 1)]);
}
