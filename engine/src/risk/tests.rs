use super::*;
use crate::codec::ByteReader;
use crate::id::StrategyId;
use crate::time::NS_PER_MS;

const SCOPE: Scope = Scope::Strategy(StrategyId(1));

fn terms(qty: i64, limit: i64) -> Terms {
    Terms {
        qty: Qty::from_raw(qty),
        limit: Price::from_raw(limit),
        kind: OrderKind::Limit,
        limit_given: true,
        ..Terms::default()
    }
}

fn request(terms: &Terms) -> RiskRequest<'_> {
    RiskRequest {
        terms,
        before: None,
        last: Some(Price::from_raw(1_000)),
        value: Some(Money::from_raw(terms.qty.raw() * 10)),
        grows: terms.qty,
        credit: Some(Money::from_raw(terms.qty.raw() * 10)),
    }
}

fn guard(limits: RiskLimits) -> RiskGuard {
    let mut guard = RiskGuard::new(SCOPE);
    guard.set_limits(limits, 0, 1);
    guard
}

const FLAT: HeldQty = HeldQty { net: Qty::ZERO, open: OpenQty { buy: Qty::ZERO, sell: Qty::ZERO } };

fn check(limits: RiskLimits, terms: &Terms) -> Result<(), Reason> {
    guard(limits).check_limits(Timestamp(1), &request(terms), &FLAT)
}

#[test]
fn without_limits_everything_passes() {
    assert_eq!(check(RiskLimits::default(), &terms(i64::MAX / 100, 1)), Ok(()));
}

#[test]
fn each_limit_refuses_beyond_itself_and_names_itself() {
    let cases = [
        (RiskLimits { max_order_qty: Qty::from_raw(10), ..RiskLimits::default() }, Reason::MaxOrderQty),
        (
            RiskLimits { max_order_value: Money::from_raw(100), ..RiskLimits::default() },
            Reason::MaxOrderValue,
        ),
        (RiskLimits { max_position: Qty::from_raw(10), ..RiskLimits::default() }, Reason::MaxPosition),
    ];
    for (limits, reason) in cases {
        assert_eq!(check(limits, &terms(10, 1_000)), Ok(()), "{reason:?}");
        assert_eq!(check(limits, &terms(11, 1_000)), Err(reason));
    }
    let collar = RiskLimits { price_collar_bp: 500, ..RiskLimits::default() };
    assert_eq!(check(collar, &terms(1, 1_050)), Ok(()));
    assert_eq!(check(collar, &terms(1, 950)), Ok(()));
    assert_eq!(check(collar, &terms(1, 1_051)), Err(Reason::PriceCollar));
    assert_eq!(check(collar, &terms(1, i64::MIN)), Err(Reason::PriceCollar));
}

#[test]
fn without_a_last_price_nothing_can_be_valued_or_collared() {
    let order = terms(1, 1_000);
    let blind = RiskRequest { last: None, value: None, credit: None, ..request(&order) };
    let mut collar = guard(RiskLimits { price_collar_bp: 5, ..RiskLimits::default() });
    assert_eq!(collar.check_limits(Timestamp(1), &blind, &FLAT), Err(Reason::NoReferencePrice));
    let mut value = guard(RiskLimits { max_order_value: Money::from_raw(1), ..RiskLimits::default() });
    assert_eq!(value.check_limits(Timestamp(1), &blind, &FLAT), Err(Reason::NoReferencePrice));
    let credit = guard(RiskLimits { credit: Money::from_raw(1), ..RiskLimits::default() });
    assert_eq!(credit.check_credit(&blind), Err(Reason::NoReferencePrice));
}

#[test]
fn a_stop_limit_is_collared_by_its_own_stop() {
    let mut order = terms(1, 2_000);
    (order.kind, order.stop, order.stop_given) = (OrderKind::StopLimit, Price::from_raw(1_999), true);
    let collar = RiskLimits { price_collar_bp: 10, ..RiskLimits::default() };
    assert_eq!(check(collar, &order), Ok(()));
    order.stop = Price::from_raw(1_990);
    assert_eq!(check(collar, &order), Err(Reason::PriceCollar));
}

#[test]
fn a_modification_of_the_stop_price_alone_is_collared_for_a_stop_limit() {
    let of_kind = |kind: OrderKind, limit: i64, stop: i64| Terms {
        kind,
        stop: Price::from_raw(stop),
        stop_given: true,
        ..terms(1, limit)
    };
    let modify = |before: &Terms, new: &Terms| {
        let collar = RiskLimits { price_collar_bp: 10, ..RiskLimits::default() };
        let request = RiskRequest { before: Some(before), ..request(new) };
        guard(collar).check_limits(Timestamp(1), &request, &FLAT)
    };
    let stop_limit = |stop| of_kind(OrderKind::StopLimit, 2_000, stop);
    assert_eq!(modify(&stop_limit(2_000), &stop_limit(1_999)), Ok(()));
    assert_eq!(modify(&stop_limit(2_000), &stop_limit(1_990)), Err(Reason::PriceCollar));
    assert_eq!(modify(&stop_limit(1_990), &stop_limit(1_990)), Ok(()), "neither price changes");
    let stop = |stop| of_kind(OrderKind::Stop, 0, stop);
    assert_eq!(modify(&stop(2_000), &stop(1_000)), Ok(()), "it has no limit to compare");
}

#[test]
fn a_second_admits_a_limited_number_of_orders() {
    let mut guard = guard(RiskLimits { max_orders_per_s: 2, ..RiskLimits::default() });
    let order = terms(1, 1_000);
    for at in [0, 1] {
        assert_eq!(guard.check_limits(Timestamp(at), &request(&order), &FLAT), Ok(()));
        guard.take_order(Timestamp(at), &request(&order));
    }
    let refused = guard.check_limits(Timestamp(NS_PER_S - 1), &request(&order), &FLAT);
    assert_eq!(refused, Err(Reason::OrderRate));
    assert_eq!(guard.check_limits(Timestamp(NS_PER_S), &request(&order), &FLAT), Ok(()));
}

#[test]
fn the_same_order_within_the_window_is_a_duplicate() {
    let mut guard = guard(RiskLimits { duplicate_window_ms: 10, ..RiskLimits::default() });
    let order = terms(1, 1_000);
    guard.take_order(Timestamp(0), &request(&order));
    let again = |guard: &mut RiskGuard, at| guard.check_limits(Timestamp(at), &request(&order), &FLAT);
    assert_eq!(again(&mut guard, 10 * NS_PER_MS - 1), Err(Reason::DuplicateOrder));
    assert_eq!(again(&mut guard, 10 * NS_PER_MS), Ok(()));
    for n in 0..RECENT_MAX as i64 {
        guard.take_order(Timestamp(1), &request(&terms(2 + n, 1_000)));
    }
    assert_eq!(again(&mut guard, 2), Ok(()));
}

#[test]
fn open_orders_are_counted_until_they_end() {
    let mut guard = guard(RiskLimits { max_open_orders: 1, ..RiskLimits::default() });
    let order = terms(1, 1_000);
    assert!(guard.take_order(Timestamp(0), &request(&order)));
    let passed: Vec<BudgetKind> = guard.budgets_at_half(true).map(|usage| usage.kind).collect();
    assert_eq!(passed, [BudgetKind::OpenOrders]);
    assert_eq!(guard.budgets_at_half(false).count(), 0, "a modification opens no order");
    assert_eq!(guard.check_limits(Timestamp(0), &request(&order), &FLAT), Err(Reason::MaxOpenOrders));
    let modified = RiskRequest { before: Some(&order), ..request(&order) };
    assert_eq!(guard.check_limits(Timestamp(0), &modified, &FLAT), Ok(()));
    guard.count_open(-1);
    assert_eq!(guard.check_limits(Timestamp(0), &request(&order), &FLAT), Ok(()));
}

#[test]
fn an_order_towards_zero_is_never_too_large_for_the_position() {
    let mut guard = guard(RiskLimits { max_position: Qty::from_raw(10), ..RiskLimits::default() });
    let long = HeldQty { net: Qty::from_raw(50), open: OpenQty::default() };
    let mut sell = terms(30, 1_000);
    sell.side = Side::Sell;
    assert_eq!(guard.check_limits(Timestamp(0), &request(&sell), &long), Ok(()));
    sell.qty = Qty::from_raw(61);
    assert_eq!(guard.check_limits(Timestamp(0), &request(&sell), &long), Err(Reason::MaxPosition));
    let buy = terms(1, 1_000);
    assert_eq!(guard.check_limits(Timestamp(0), &request(&buy), &long), Err(Reason::MaxPosition));
    let brim = HeldQty { net: Qty::MAX, open: OpenQty::default() };
    assert_eq!(guard.check_limits(Timestamp(0), &request(&buy), &brim), Err(Reason::MaxPosition));
}

#[test]
fn credit_covers_both_sides_up_to_itself() {
    let mut guard = guard(RiskLimits { credit: Money::from_raw(100), ..RiskLimits::default() });
    assert!(guard.has_credit_in(Currency::default()));
    assert_eq!(guard.check_credit(&request(&terms(10, 1))), Ok(()));
    assert_eq!(guard.check_credit(&request(&terms(11, 1))), Err(Reason::InsufficientFunds));
    assert!(!guard.change_credit(50), "half of it");
    assert!(guard.change_credit(1), "more than half of it");
    assert!(!guard.change_credit(1), "reported before");
    assert_eq!(guard.check_credit(&request(&terms(5, 1))), Err(Reason::InsufficientFunds));
    let sell = Terms { side: Side::Sell, ..terms(5, 1) };
    assert_eq!(guard.check_credit(&request(&sell)), Err(Reason::InsufficientFunds));
    let reduces = RiskRequest { credit: Some(Money::ZERO), ..request(&sell) };
    // Beyond the credit only requests that add nothing pass; the sum stays exact beyond its type.
    guard.change_credit(i64::MAX as i128);
    assert_eq!(guard.check_credit(&reduces), Ok(()));
    assert_eq!(guard.share(BudgetKind::Credit).used, i64::MAX);
    guard.change_credit(-(i64::MAX as i128));
    assert_eq!((guard.credit_sum(), guard.share(BudgetKind::Credit).used), (52, 52));
}

#[test]
fn a_modification_is_checked_on_the_increase() {
    let limits = RiskLimits {
        max_order_qty: Qty::from_raw(5),
        max_order_value: Money::from_raw(50),
        ..RiskLimits::default()
    };
    let mut guard = guard(limits);
    let (large, smaller, larger) = (terms(20, 1_000), terms(10, 1_000), terms(21, 1_000));
    let to = |terms| RiskRequest { before: Some(&large), grows: Qty::ZERO, ..request(terms) };
    assert_eq!(guard.check_limits(Timestamp(0), &to(&smaller), &FLAT), Ok(()));
    assert_eq!(guard.check_limits(Timestamp(0), &to(&larger), &FLAT), Err(Reason::MaxOrderQty));
    let dearer = terms(20, 1_001);
    assert_eq!(guard.check_limits(Timestamp(0), &to(&dearer), &FLAT), Err(Reason::MaxOrderValue));
}

#[test]
fn switches_and_restrictions_are_shown() {
    let mut guard = guard(RiskLimits { trading_enabled: false, ..RiskLimits::default() });
    assert_eq!(guard.check_switches(SecurityId(1)), Err(Reason::TradingDisabled));
    guard.set_limits(RiskLimits { trading_enabled: true, ..*guard.limits() }, 0, 1);
    for _ in 0..2 {
        guard.restrict(SecurityId(1), true);
    }
    assert_eq!(guard.check_switches(SecurityId(1)), Err(Reason::Restricted));
    assert_eq!(guard.check_switches(SecurityId(2)), Ok(()));
    assert_eq!(guard.restricted(), [SecurityId(1)]);
    guard.restrict(SecurityId(1), false);
    guard.restrict(SecurityId(1), false);
    assert_eq!(guard.check_switches(SecurityId(1)), Ok(()));
}

fn restored(guard: &RiskGuard) -> RiskGuard {
    let mut bytes = Vec::new();
    guard.encode(&mut bytes);
    RiskGuard::decode(&mut ByteReader::new(&bytes)).expect("what was encoded")
}

#[test]
fn no_order_is_clear_of_a_switch_or_a_restriction() {
    let wide = RiskLimits::default();
    let mut guard = guard(wide);
    let order = terms(1, 1_000);
    let is_clear = |guard: &RiskGuard| guard.clears(Timestamp(1), &request(&order), &FLAT);
    assert!(is_clear(&guard));
    guard.set_killed(true);
    assert!(guard.is_killed() && !is_clear(&guard));
    assert!(!is_clear(&restored(&guard)), "a restart releases no switch");
    guard.set_killed(false);
    guard.restrict(SecurityId(7), true);
    assert!(!is_clear(&guard), "the rules decide which security it is");
    assert!(!is_clear(&restored(&guard)));
    guard.restrict(SecurityId(7), false);
    guard.set_limits(RiskLimits { trading_enabled: false, ..wide }, 0, 1);
    assert!(!is_clear(&guard));
    guard.set_limits(wide, 0, 1);
    assert!(is_clear(&guard));
}

#[test]
fn shares_of_a_limit_never_add_up_to_more_than_it() {
    for limit in [1, 2, 3, 10, 101] {
        for shards in [1, 2, 5, 7] {
            let parts = (0..shards).map(|shard| {
                let mut share = BudgetShare::default();
                share.limit(limit, shard, shards);
                share.granted
            });
            assert_eq!(parts.sum::<i64>(), limit);
        }
    }
}

#[test]
fn the_budget_pool_grants_and_recalls() {
    let mut guard = guard(RiskLimits { max_open_orders: 10, ..RiskLimits::default() });
    guard.count_open(4);
    let kind = BudgetKind::OpenOrders;
    let mut act = |act| guard.budget(&BudgetChange { scope: SCOPE, kind, act });
    assert_eq!(act(BudgetAct::Recall(20)).returned, 6);
    assert_eq!(act(BudgetAct::Recall(20)).returned, 0);
    assert_eq!(act(BudgetAct::Grant(5)).granted, 9);
    assert_eq!(act(BudgetAct::Grant(-5)).granted, 9);
    assert_eq!(act(BudgetAct::Set(3)).granted, 3);
    assert_eq!(act(BudgetAct::Recall(1)).returned, 0);
    let used = act(BudgetAct::Lift);
    assert_eq!((used.used, used.scope), (4, SCOPE));
    assert!(guard.share(kind).admits(1_000));
}

#[test]
fn an_order_that_closes_a_position_is_no_exception_to_its_limit() {
    let close = Terms { side: Side::Sell, reduce_only: true, ..terms(10, 1_000) };
    let limits = RiskLimits { max_position: Qty::from_raw(5), ..RiskLimits::default() };
    let check = |net: i64, open: i64| {
        let open = OpenQty { buy: Qty::ZERO, sell: Qty::from_raw(open) };
        let held = HeldQty { net: Qty::from_raw(net), open };
        guard(limits).check_limits(Timestamp(1), &request(&close), &held)
    };
    // It may go nearer to zero from anywhere.
    assert_eq!(check(10, 0), Ok(()));
    assert_eq!(check(100, 90), Ok(()));
    // Beside other orders of its side it may turn the position, and then the limit holds.
    assert_eq!(check(10, 5), Ok(()));
    assert_eq!(check(10, 6), Err(Reason::MaxPosition));
    // An account may hold the opposite of what a strategy closes.
    assert_eq!(check(-1, 0), Err(Reason::MaxPosition));
}

#[test]
fn a_modification_is_no_duplicate_and_orders_before_the_window_are_not_remembered() {
    let limits = RiskLimits { duplicate_window_ms: 10, ..RiskLimits::default() };
    let (terms, now) = (terms(10, 1_000), Timestamp(5 * NS_PER_S));
    let mut guard = guard(RiskLimits::default());
    guard.take_order(now, &request(&terms));
    guard.set_limits(limits, 0, 1);
    assert_eq!(guard.check_limits(now, &request(&terms), &FLAT), Ok(()));
    guard.take_order(now, &request(&terms));
    assert_eq!(guard.check_limits(now, &request(&terms), &FLAT), Err(Reason::DuplicateOrder));
    let modification = RiskRequest { before: Some(&terms), ..request(&terms) };
    assert_eq!(guard.check_limits(now, &modification, &FLAT), Ok(()));
}

#[test]
fn an_order_is_clear_of_the_rate_only_within_the_second_that_is_counted() {
    let mut guard = guard(RiskLimits { max_orders_per_s: 5, ..RiskLimits::default() });
    let (terms, second) = (terms(10, 1_000), Timestamp(5 * NS_PER_S));
    assert_eq!(guard.check_limits(second, &request(&terms), &FLAT), Ok(()));
    let clears = |now| guard.clears(Timestamp(now), &request(&terms), &FLAT);
    assert!(clears(second.0) && clears(second.0 + NS_PER_S - 1));
    assert!(!clears(second.0 + NS_PER_S) && !clears(second.0 - 1));
}

#[test]
fn an_order_that_passes_half_of_two_budgets_reports_both() {
    let limits = RiskLimits { max_orders_per_s: 2, max_open_orders: 2, ..RiskLimits::default() };
    let (mut guard, terms) = (guard(limits), terms(10, 1_000));
    assert!(!guard.take_order(Timestamp(1), &request(&terms)));
    assert!(guard.take_order(Timestamp(1), &request(&terms)));
    let kinds: Vec<BudgetKind> = guard.budgets_at_half(true).map(|usage| usage.kind).collect();
    assert_eq!(kinds, [BudgetKind::OrdersPerSecond, BudgetKind::OpenOrders]);
}

#[test]
fn a_limit_is_near_its_reference_price_within_the_collar() {
    let last = |last: Option<i64>, terms: &Terms, collar_bp| {
        RiskRequest { last: last.map(Price::from_raw), ..request(terms) }.is_near(collar_bp)
    };
    let (near, far) = (terms(1, 1_010), terms(1, 1_011));
    let market = Terms { kind: OrderKind::Market, ..far };
    let stop = |stop| Terms { kind: OrderKind::StopLimit, stop: Price::from_raw(stop), ..far };
    for (price, terms, collar_bp, is_near) in [
        (None, far, u32::MAX, true),
        (Some(1_000), near, 100, true),
        (Some(1_000), far, 100, false),
        (None, near, 100, false),
        (Some(1_000), market, 100, true),
        (None, market, 100, false),
        (None, stop(1_001), 100, true),
        (Some(1_011), stop(1_000), 100, false),
    ] {
        assert_eq!(last(price, &terms, collar_bp), is_near, "{price:?} {terms:?} {collar_bp}");
    }
}

#[test]
fn a_stored_guard_has_its_restrictions_in_order_each_once() {
    let mut guard = guard(RiskLimits::default());
    [7, 3, 5].into_iter().for_each(|security| guard.restrict(SecurityId(security), true));
    assert_eq!(restored(&guard).restricted(), [3, 5, 7].map(SecurityId));
    for restricted in [vec![5, 3], vec![5, 5]] {
        guard.restricted = restricted.into_iter().map(SecurityId).collect();
        let mut bytes = Vec::new();
        guard.encode(&mut bytes);
        let damage = RiskGuard::decode(&mut ByteReader::new(&bytes)).unwrap_err();
        assert_eq!(damage.problem, crate::codec::DecodeProblem::Contradiction);
    }
}
