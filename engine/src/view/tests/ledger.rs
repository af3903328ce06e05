use super::*;

#[test]
fn a_booking_sets_position_and_cash_and_is_a_transaction() {
    let mut bench = ViewBench::new(1);
    bench.emit_at(50, 0, booked(4, 1, "-125.1"));
    let position = bench.view.position(PositionId::new(StrategyId(4), SecurityId(4))).unwrap();
    assert_eq!((position.state, position.updated), (booking(4, 1, "0").position, Timestamp(50)));
    let cash = bench.view.cash(StrategyId(4), currency("USD")).unwrap();
    assert_eq!(cash.amount, Some(money("-125.1")));
    let transaction = bench.view.transaction(TransactionId::of_security(SecurityId(4), 1)).unwrap();
    assert_eq!(
        (transaction.at, transaction.price, transaction.exec),
        (Timestamp(50), price("12.5"), ExecRef(77))
    );
    assert_eq!(bench.view.transaction(TransactionId(1)), None);
    // A movement of cash has no position.
    let credit = Booking {
        id: TransactionId::of_cash(StrategyId(4), 1),
        kind: MovementKind::Credit,
        security: None,
        ..booking(4, 0, "1000")
    };
    bench.emit(0, EventKind::Booked(credit));
    assert_eq!(bench.view.positions().count(), 1);
    assert_eq!(bench.view.cash(StrategyId(4), currency("USD")).unwrap().amount, Some(money("1000")));
    assert_eq!(bench.view.cash(StrategyId(4), currency("EUR")), None);
}

#[test]
fn an_adjustment_sets_the_value() {
    let mut bench = ViewBench::new(1);
    let after = PositionState { qty: qty("-3"), cost: money("-30"), realized: Money::ZERO };
    let what = Adjustment::Position { security: SecurityId(8), before: PositionState::default(), after };
    bench.emit(0, EventKind::Adjusted { strategy: StrategyId(1), what });
    let what = Adjustment::Cash { currency: currency("EUR"), before: Money::ZERO, after: money("9") };
    bench.emit(0, EventKind::Adjusted { strategy: StrategyId(1), what });
    assert_eq!(bench.view.positions().next().unwrap().state, after);
    assert_eq!(bench.view.cash_balances().next().unwrap().amount, Some(money("9")));
}

#[test]
fn cash_is_the_sum_of_the_shards_parts_or_absent() {
    let mut bench = ViewBench::new(2);
    let cash = |currency, after| EventKind::Adjusted {
        strategy: StrategyId(1),
        what: Adjustment::Cash { currency, before: Money::ZERO, after },
    };
    let (usd, eur) = (currency("USD"), currency("EUR"));
    bench.emit(0, cash(usd, money("5")));
    bench.emit(1, cash(usd, money("-7")));
    bench.emit(1, cash(usd, money("-8")));
    bench.emit(0, cash(eur, Money::MAX));
    bench.emit(1, cash(eur, Money::MAX));
    let balances: Vec<_> = bench.view.cash_balances().map(|cash| (cash.currency, cash.amount)).collect();
    assert_eq!(balances, [(eur, None), (usd, Some(money("-3")))]);
}

#[test]
fn transactions_come_newest_first_by_strategy_and_each_once() {
    let mut bench = ViewBench::new(2);
    for (at, shard, security, number) in [(10, 0, 1, 1), (30, 0, 1, 2), (20, 1, 2, 1), (40, 0, 1, 1)] {
        bench.emit_at(at, shard, booked(security, number, "0"));
    }
    let times = |strategy: Option<u16>| -> Vec<u64> {
        bench.view.transactions(strategy.map(StrategyId)).map(|t| t.at.0).collect()
    };
    assert_eq!(times(None), [30, 20, 10]);
    assert_eq!(times(Some(1)), [30, 10]);
    assert_eq!(times(Some(9)), [0; 0]);
}

#[test]
fn the_oldest_transactions_beyond_the_bound_are_dropped() {
    let mut bench = ViewBench::with(1, ViewSettings { transactions_max: 2, ..ViewSettings::default() });
    for number in 1..=5 {
        bench.emit(0, booked(1, number, "0"));
    }
    let id = |number| TransactionId::of_security(SecurityId(1), number);
    let kept: Vec<_> = bench.view.transactions(None).map(|t| t.id).collect();
    assert_eq!(kept, [id(5), id(4)]);
    assert_eq!(bench.view.transaction(id(3)), None);
}

#[test]
fn a_new_day_begins_without_transactions() {
    let mut bench = ViewBench::new(2);
    for shard in [0, 1] {
        bench.emit(shard, EventKind::TradingDay { day: Day(1) });
        bench.emit(shard, booked(shard as u32, 1, "5"));
    }
    bench.emit(1, EventKind::TradingDay { day: Day(2) });
    let left: Vec<_> = bench.view.transactions(None).map(|t| t.shard).collect();
    assert_eq!(left, [ShardId(0)]);
    assert_eq!(bench.view.transaction(TransactionId::of_security(SecurityId(1), 1)), None);
    assert_eq!(bench.view.positions().count(), 2);
}
