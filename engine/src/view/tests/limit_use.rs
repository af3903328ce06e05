use super::valuation::hold;
use super::*;
use crate::command::BudgetKind;
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
    // No transaction names an account, so that only the open orders count for it.
    let of_account = LimitUse { open_orders: 2, position: Some((SecurityId(9), qty("100"))) };
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

/// Returns a booking of an account.
fn deal(number: u32, account: u16, quantity: &str) -> EventKind {
    let (strategy, account) = (StrategyId(2), AccountId(account));
    EventKind::Booked(Booking { strategy, account, qty: qty(quantity), ..booking(9, number, "0") })
}

fn exposure(account: Option<u16>, quantity: &str) -> EventKind {
    EventKind::Exposure { account: account.map(AccountId), security: SecurityId(9), qty: qty(quantity) }
}

fn position_of(bench: &ViewBench, account: u16) -> Option<Qty> {
    let uses = bench.view.limit_uses();
    uses.get(&Scope::Account(AccountId(account)))?.position.map(|(_, qty)| qty)
}

#[test]
fn an_account_holds_what_its_snapshot_states_and_what_was_booked_since() {
    let mut bench = ViewBench::new(1);
    bench.begin(0);
    // The snapshot repeats the transactions of the day; others were made before.
    bench.emit(0, deal(1, 3, "10"));
    bench.emit(0, deal(1, 3, "10"));
    assert_eq!(position_of(&bench, 3), Some(qty("10")), "a transaction counts once");
    bench.emit(0, exposure(Some(3), "-40"));
    bench.end(0);
    assert_eq!((position_of(&bench, 3), position_of(&bench, 4)), (Some(qty("40")), None));
    bench.emit(0, deal(2, 3, "15"));
    bench.emit(0, deal(3, 4, "7"));
    assert_eq!((position_of(&bench, 3), position_of(&bench, 4)), (Some(qty("25")), Some(qty("7"))));
    // Buys close the position before they could open another one.
    bench.emit(0, side(handle(0, 0, 0), "buy", Side::Buy, "30"));
    assert_eq!(position_of(&bench, 3), Some(qty("25")));
    bench.emit(0, side(handle(0, 0, 1), "more", Side::Buy, "30"));
    assert_eq!(position_of(&bench, 3), Some(qty("35")));
    bench.report(handle(0, 0, 0), ExecType::Canceled, Status::Canceled);
    bench.report(handle(0, 0, 1), ExecType::Canceled, Status::Canceled);
    // A later snapshot repeats known transactions, and drops what it does not mention.
    bench.begin(0);
    bench.emit(0, deal(2, 3, "15"));
    bench.emit(0, exposure(Some(3), "-25"));
    bench.end(0);
    assert_eq!((position_of(&bench, 3), position_of(&bench, 4)), (Some(qty("25")), None));
}

#[test]
fn no_account_holds_an_expired_security() {
    let mut bench = ViewBench::new(1);
    bench.emit(0, deal(1, 3, "10"));
    bench.emit(0, deal(2, 4, "-10"));
    // The expiration of a strategy's position belongs to no account.
    bench.emit(0, deal(3, 0, "-10"));
    assert_eq!((position_of(&bench, 3), position_of(&bench, 4)), (Some(qty("10")), Some(qty("10"))));
    assert_eq!(position_of(&bench, 0), None);
    bench.emit(0, exposure(None, "0"));
    assert_eq!((position_of(&bench, 3), position_of(&bench, 4)), (None, None));
    bench.emit(0, deal(4, 3, "10"));
    assert_eq!(position_of(&bench, 3), Some(qty("10")));
    let EventKind::Booked(closing) = deal(5, 0, "-10") else { unreachable!("a booking") };
    bench.emit(0, EventKind::Booked(Booking { kind: MovementKind::Expiration, ..closing }));
    assert_eq!(position_of(&bench, 3), None);
}

#[test]
fn the_credit_in_use_is_known_when_every_shard_has_reported_it() {
    let mut bench = ViewBench::new(2);
    let report = |account: u16, kind: BudgetKind, used: i64| {
        let scope = Scope::Account(AccountId(account));
        EventKind::Budget(BudgetUse { scope, kind, granted: 9, used, returned: 0, wanting: 0 })
    };
    let credit = |bench: &ViewBench| bench.view.credit_used(AccountId(3)).map(Money::raw);
    let missing = |bench: &ViewBench| bench.view.credit_unreported(AccountId(3)).collect::<Vec<_>>();
    assert_eq!(missing(&bench), [ShardId(0), ShardId(1)]);
    bench.emit(0, report(3, BudgetKind::Credit, 5));
    bench.emit(1, report(4, BudgetKind::Credit, 50));
    bench.emit(1, report(3, BudgetKind::OpenOrders, 500));
    assert_eq!((credit(&bench), missing(&bench)), (None, vec![ShardId(1)]));
    bench.emit(1, report(3, BudgetKind::Credit, 7));
    assert_eq!((credit(&bench), missing(&bench)), (Some(12), Vec::new()));
    bench.emit(0, report(3, BudgetKind::Credit, -1));
    assert_eq!(credit(&bench), Some(6));
    bench.emit(0, report(3, BudgetKind::Credit, i64::MAX));
    assert_eq!(credit(&bench), None);
    // A server that joins again has not reported yet.
    bench.emit(0, report(3, BudgetKind::Credit, 1));
    bench.begin(1);
    bench.end(1);
    assert_eq!((credit(&bench), missing(&bench)), (None, vec![ShardId(1)]));
    // Of what is asked again, only new reports count.
    bench.emit(1, report(3, BudgetKind::Credit, 2));
    bench.view.forget_credit_uses();
    bench.emit(0, report(3, BudgetKind::Credit, 9));
    assert_eq!((credit(&bench), missing(&bench)), (None, vec![ShardId(1)]));
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
    for (request, reason) in
        [(RequestKind::Replace, Reason::MaxPosition), (RequestKind::Cancel, Reason::PriceCollar)]
    {
        let refusal = RequestRefusal {
            order: handle(0, 0, 0),
            id: id("kept"),
            request_id: id("next"),
            source: entered(handle(0, 0, 0), "kept").source,
            request,
            status: Status::New,
            reason,
        };
        bench.emit(0, EventKind::Refused(refusal));
    }
    let counts: Vec<_> =
        bench.view.limit_refusals(STRATEGY).iter().map(|row| (row.reason, row.count)).collect();
    assert_eq!(counts, [(Reason::MaxPosition, 1)]);
}

#[test]
fn of_several_securities_the_largest_position_is_the_use() {
    let plans: [(&[(u32, &str)], u32); 4] = [
        (&[(8, "30"), (9, "-50")], 9),
        (&[(8, "-70"), (9, "30")], 8),
        (&[(8, "50"), (9, "-50")], 8),
        (&[(7, "10"), (8, "0"), (9, "20")], 9),
    ];
    for (positions, largest) in plans {
        let mut bench = ViewBench::new(1);
        for (security, quantity) in positions {
            hold(&mut bench, 2, *security, qty(quantity), Money::ZERO, Money::ZERO);
        }
        let (security, _) = bench.view.limit_uses()[&STRATEGY].position.unwrap();
        assert_eq!(security, SecurityId(largest), "{positions:?}");
    }
}

#[test]
fn the_last_refusal_of_all_shards_names_its_time_and_security() {
    for (times, (last, security)) in [([500, 700], (700, 8)), ([700, 500], (700, 9)), ([500, 500], (500, 9))]
    {
        let mut bench = ViewBench::new(2);
        for (shard, (at, security)) in times.into_iter().zip([9, 8]).enumerate() {
            let event = entered(handle(shard as u8, 0, 0), "refused");
            let terms = Terms { security: SecurityId(security), ..event.terms };
            let (status, reason) = (Status::Rejected, Reason::MaxOrderQty);
            let refused = OrderTerms { what: ExecType::Rejected, status, reason, terms, ..event };
            bench.emit_at(at, shard as u8, EventKind::Order(refused));
        }
        let expected = LimitRefusals {
            reason: Reason::MaxOrderQty,
            count: 2,
            last: Timestamp(last),
            security: SecurityId(security),
        };
        assert_eq!(bench.view.limit_refusals(STRATEGY), [expected]);
    }
}
