//! Limits of money: amounts that cannot be counted, and credit that is free again.

use super::*;
use crate::command::BudgetKind;
use crate::event::{Alert, Event};
use crate::view::{EndedDay, View, ViewSettings};

/// Three sales, each of which is valid, and which together exceed the range of money.
fn three_large_sales(bench: &mut Bench) -> OrderHandle {
    let sale = limit(Side::Sell, 1, "10000000", "4500");
    let orders: Vec<_> = (0..3).map(|_| bench.submit(sale).0).collect();
    orders[2]
}

fn print(bench: &mut Bench, size: &str) -> Vec<EventKind> {
    let trade = Trade { price: price("4501"), size: qty(size), at: Timestamp(1) };
    bench.send(CommandKind::Trade { security: SIM_STOCK, trade })
}

fn is_overflow(body: &&EventKind) -> bool {
    matches!(body, EventKind::Alert { alert: Alert::BookingOverflow, .. })
}

/// The order used to keep its old quantity, while the venue had traded a part of it.
#[test]
fn an_uncountable_fill_is_reported_and_the_order_continues() {
    let mut bench = Bench::new();
    let last = three_large_sales(&mut bench);
    let events = print(&mut bench, "29000000");
    assert_eq!(events.iter().filter(is_overflow).count(), 1);
    assert_eq!(events.iter().filter(|body| matches!(body, EventKind::Booked(_))).count(), 2);
    assert!(events.iter().any(|body| matches!(body, EventKind::Halt { on: true, .. })));
    let reported =
        events.iter().rev().find_map(|body| if let EventKind::Status(r) = body { Some(r) } else { None });
    let reported = reported.unwrap();
    assert_eq!((reported.order, reported.what, reported.reason), (last, ExecType::Filled, Reason::Overflow));
    assert_eq!((reported.status, reported.cum_qty), (Status::PartiallyFilled, qty("9000000")));
    let events = bench.cancel(last);
    assert_eq!(reports(&events).last(), Some(&(ExecType::Canceled, Status::Canceled, qty("9000000"))));
}

#[test]
fn an_uncountable_last_fill_ends_the_order() {
    let mut bench = Bench::new();
    let last = three_large_sales(&mut bench);
    let events = print(&mut bench, "30000000");
    assert_eq!(events.iter().filter(is_overflow).count(), 1);
    assert_eq!(reports(&events).last(), Some(&(ExecType::Filled, Status::Filled, qty("10000000"))));
    assert_eq!(reason(&bench.cancel(last)), Reason::OrderFinished);
}

fn used(bench: &Bench) -> Money {
    let guard = &bench.shard.directory.accounts.iter().find(|entry| entry.id == AccountId(1)).unwrap().guard;
    Money::from_raw(guard.share(BudgetKind::Credit).used)
}

/// It used to be released only at the order's end.
#[test]
fn credit_that_a_modification_sets_free_is_free_at_once() {
    // Without and with a transit time: the fast path of a modification and the slow one.
    for response_ns in [0, 5] {
        let mut settings = ShardSettings::default();
        settings.venue.delays.response_ns = response_ns;
        let mut bench = Bench::with(settings);
        let limits = RiskLimits { credit: money("1000"), credit_currency: usd(), ..RiskLimits::default() };
        bench.send(CommandKind::Limits { scope: Scope::Account(AccountId(1)), limits });
        let (order, _) = bench.submit(limit(Side::Buy, 1, "10", "90"));
        let wait = |bench: &mut Bench| {
            bench.now += 10;
            bench.send(CommandKind::Timer);
        };
        wait(&mut bench);
        assert_eq!(used(&bench), money("900.01"));
        bench.modify(order, Changes::default().with_limit(price("50")));
        wait(&mut bench);
        assert_eq!(used(&bench), money("500.01"));
        bench.modify(order, Changes::default().with_qty(qty("4")));
        wait(&mut bench);
        assert_eq!(used(&bench), money("200.004"));
        bench.modify(order, Changes::default().with_limit(price("60")));
        wait(&mut bench);
        assert_eq!(used(&bench), money("240.004"));
        bench.cancel(order);
        wait(&mut bench);
        assert_eq!(used(&bench), Money::ZERO);
    }
}

#[test]
fn the_running_day_of_a_shard_that_may_have_dropped_trades_has_no_result() {
    for (transactions_max, has_fees) in [(3, true), (2, false)] {
        let mut bench = Bench::with(ShardSettings { transactions_max, ..ShardSettings::default() });
        bench.send(CommandKind::TradingDay { day: Day(3) });
        bench.submit(limit(Side::Sell, 1, "5", "4500"));
        for _ in 0..2 {
            print(&mut bench, "1");
        }
        let running = EndedDay::of_running(&bench.shard).unwrap();
        let result = running.totals[0].result(None, bench.shard.reference()).unwrap();
        assert_eq!((result.trades, result.fees.is_some()), (2, has_fees), "{transactions_max}");
    }
}

#[test]
fn the_running_day_is_what_a_reader_sees_when_it_ends() {
    let mut bench = Bench::new();
    assert_eq!(EndedDay::of_running(&Bench::new().shard), None, "no day has begun");
    bench.send(CommandKind::TradingDay { day: Day(3) });
    let mut view = View::new(1, ViewSettings::default());
    bench.shard.visit_ledger(|event| view.apply(ShardId(0), event));
    let mut events = bench.submit(limit(Side::Sell, 1, "5", "4500")).1;
    events.extend(print(&mut bench, "3"));
    let event = |(seq, body)| Event { seq, at: Timestamp(9), body };
    (1..).zip(events).for_each(|numbered| view.apply(ShardId(0), &event(numbered)));
    let running = EndedDay::of_running(&bench.shard).unwrap();
    assert_eq!((running.day, running.totals.len()), (Day(3), 1));
    let result = running.totals[0].result(None, bench.shard.reference()).unwrap();
    assert_eq!((result.qty, result.trades, result.price), (qty("-3"), 1, Some(price("4500"))));
    assert_eq!(running.is_over(&view), Some(false));
    view.apply(ShardId(0), &event((1_000, EventKind::TradingDay { day: Day(4) })));
    assert_eq!(running.is_over(&view), Some(true));
    assert_eq!(view.take_ended_days(), [running]);
}
