//! Checks of the gate at their boundaries.

use super::bench::{credit, credit_of, strategies};
use super::*;
use crate::command::BudgetKind;
use crate::terms::{ExecInst, SpecialTerms};

#[test]
fn a_date_belongs_to_one_time_in_force_only() {
    let mut bench = Bench::new();
    let terms = |tif, tif_date| Terms { tif, tif_date, ..limit(Side::Buy, 1, "1", "9") };
    let later = Timestamp(1_000_000);
    let cases = [
        (terms(Tif::Day, Timestamp::ZERO), Reason::None),
        (terms(Tif::Gtc, Timestamp::ZERO), Reason::None),
        (terms(Tif::Day, later), Reason::TifDateSuperfluous),
        (terms(Tif::Gtc, later), Reason::TifDateSuperfluous),
        (terms(Tif::Gtd, Timestamp::ZERO), Reason::TifDateMissing),
        (terms(Tif::Gtd, Timestamp(1)), Reason::TifDatePast),
        (terms(Tif::Gtd, later), Reason::None),
    ];
    for (terms, expected) in cases {
        assert_eq!(reason(&bench.submit(terms).1), expected, "{terms:?}");
    }
}

#[test]
fn an_auction_order_needs_an_exchange_with_auctions_and_one_ahead() {
    for auctions in [true, false] {
        let mut rows = rows();
        rows.exchanges[0].auctions = auctions;
        let mut bench = Bench::with_rows(rows);
        for session in [TradingSession::OpeningAuction, TradingSession::Continuous, TradingSession::Closed] {
            bench.send(CommandKind::Session { exchange: ExchangeId(1), session });
            for tif in [Tif::Ato, Tif::Atc] {
                let is_ahead = auctions && (tif == Tif::Atc || session != TradingSession::Continuous);
                let expected = if is_ahead { Reason::None } else { Reason::NoAuctionAhead };
                let (_, events) = bench.submit(Terms { tif, ..limit(Side::Buy, 1, "1", "9") });
                assert_eq!(reason(&events), expected, "{auctions} {session:?} {tif:?}");
            }
        }
    }
}

impl Bench {
    fn submit_special(&mut self, special: SpecialTerms, terms: Terms) -> Vec<EventKind> {
        self.send(CommandKind::SpecialTerms(special));
        self.submit(Terms { special: true, ..terms }).1
    }
}

#[test]
fn special_quantities_are_whole_lots_and_not_more_than_the_order() {
    let none = SpecialTerms { exec_inst: ExecInst::parse(b"G").unwrap(), ..SpecialTerms::default() };
    let cases = [
        (None, None, Reason::None),
        (Some("10"), Some("10"), Reason::None),
        (Some("0"), Some("0"), Reason::None),
        (Some("11"), None, Reason::MinQtyNotTaken),
        (Some("-1"), None, Reason::BadLot),
        (Some("0.5"), None, Reason::BadLot),
        (None, Some("-1"), Reason::BadLot),
        (None, Some("0.5"), Reason::BadLot),
        (Some("1"), Some("0.5"), Reason::BadLot),
        (Some("0.5"), Some("1"), Reason::BadLot),
    ];
    for (least, shown, expected) in cases {
        let mut bench = Bench::new();
        let special = SpecialTerms { min_qty: least.map(qty), max_floor: shown.map(qty), ..none };
        assert_eq!(reason(&bench.submit_special(special, outside("10"))), expected, "{least:?} {shown:?}");
    }
}

/// The terms did not fit into the journal, or there is no room for the order.
#[test]
fn an_order_whose_special_terms_are_missing_is_refused() {
    let special = Terms { special: true, ..outside("10") };
    let mut bench = Bench::new();
    let (order, events) = bench.submit(special);
    assert_eq!((reason(&events), order == OrderHandle::NONE), (Reason::LaneFull, false));
    let nameless = bench.send(CommandKind::Submit { id: IntId::NONE, terms: special });
    let refused = nameless.iter().find_map(|body| match body {
        EventKind::Order(order) => Some((order.order == OrderHandle::NONE, order.reason)),
        _ => None,
    });
    assert_eq!(refused, Some((true, Reason::LaneFull)), "without an id it is not kept");
    let mut bench = Bench::with(ShardSettings { orders_max: 1, ..ShardSettings::default() });
    bench.submit(limit(Side::Buy, 1, "1", "9"));
    let (order, events) = bench.submit(special);
    assert_eq!(
        (reason(&events), order == OrderHandle::NONE),
        (Reason::LaneFull, true),
        "there is no room to keep it"
    );
}

/// Each order is valid, and together they could not be counted.
#[test]
fn quantities_that_could_exceed_the_range_of_numbers_are_refused() {
    let mut bench = Bench::new();
    let large = |account| limit(Side::Buy, account, "24000000000", "0.01");
    assert_eq!(reason(&bench.submit(large(1)).1), Reason::None);
    assert_eq!(reason(&bench.submit(large(2)).1), Reason::Overflow, "of the strategy");
    assert_eq!(reason(&bench.submit(limit(Side::Sell, 2, "1", "11")).1), Reason::None);
}

#[test]
fn a_strategy_that_is_refused_for_want_of_a_budget_says_so() {
    let mut bench = Bench::new();
    let limits = RiskLimits { max_open_orders: 1, ..RiskLimits::default() };
    bench.set_limits(Scope::Strategy(StrategyId(0)), limits);
    bench.submit(limit(Side::Buy, 1, "1", "9"));
    let (_, events) = bench.submit(limit(Side::Buy, 1, "1", "9"));
    let wanted: Vec<_> = events
        .iter()
        .filter_map(|body| match body {
            EventKind::Budget(usage) => Some((usage.scope, usage.kind, usage.wanting)),
            _ => None,
        })
        .collect();
    assert_eq!(wanted, [(Scope::Strategy(StrategyId(0)), BudgetKind::OpenOrders, 1)]);
}

#[test]
fn budgets_are_reported_when_half_is_in_use() {
    let (strategy, account) = (Scope::Strategy(StrategyId(0)), Scope::Account(AccountId(1)));
    for scopes in [&[strategy][..], &[account], &[strategy, account]] {
        let mut bench = Bench::new();
        for scope in scopes {
            bench.set_limits(*scope, RiskLimits { max_open_orders: 4, ..RiskLimits::default() });
        }
        let mut reported = Vec::new();
        for _ in 0..4 {
            let (_, events) = bench.submit(limit(Side::Buy, 1, "1", "9"));
            reported.push(events.iter().filter(|body| matches!(body, EventKind::Budget(_))).count());
        }
        assert_eq!(reported, [0, 0, scopes.len(), 0], "with the first beyond half");
    }
}

/// Four are bought, and the other six are valued at the new price.
#[test]
fn the_credit_of_a_modification_is_that_of_what_is_left() {
    let mut bench = Bench::new();
    bench.set_limits(Scope::Account(AccountId(1)), credit("2000"));
    let (order, _) = bench.submit(limit(Side::Buy, 1, "10", "90"));
    bench.submit(limit(Side::Sell, 2, "4", "90"));
    assert_eq!(credit_of(&bench, 1), money("900.01"));
    bench.modify(order, Changes::default().with_limit(price("100")));
    assert_eq!(credit_of(&bench, 1), money("960.01"));
    bench.modify(order, Changes::default().with_qty(qty("12")));
    assert_eq!(credit_of(&bench, 1), money("1160.012"));
}

#[test]
fn an_order_without_a_limit_on_credit_changes_no_credit() {
    let mut bench = Bench::with_rows(strategies(1));
    let (order, _) = bench.submit(limit(Side::Buy, 1, "10", "90"));
    assert_eq!(credit_of(&bench, 1), Money::ZERO);
    bench.modify(order, Changes::default().with_qty(qty("12")));
    assert_eq!(credit_of(&bench, 1), Money::ZERO);
}

/// The position has turned, so an order that was to reduce it would enlarge it.
#[test]
fn a_reduce_only_order_is_cancelled_only_if_it_would_open_something() {
    let mut bench = Bench::new();
    bench.trade_by_hand(0, 3, OUTSIDE, "10");
    let (id, strategy, account) = (bench.id(), StrategyId(0), AccountId(3));
    let fill =
        |exec, q| VenueReport::Filled { exec: crate::command::ExecRef(exec), qty: qty(q), price: price("9") };
    let events = bench.send(CommandKind::Close { id, strategy, account, security: OUTSIDE, qty: qty("10") });
    let order = events
        .iter()
        .find_map(|body| if let EventKind::Order(order) = body { Some(order.order) } else { None });
    let events = bench.report(order.unwrap(), fill(1, "4"));
    assert!(
        !reports(&events).iter().any(|(what, ..)| *what == ExecType::CancelPending),
        "six are left of each"
    );
    let (sale, _) = bench.submit(Terms { side: Side::Sell, ..outside("20") });
    let events = bench.report(sale, fill(2, "20"));
    assert!(reports(&events).iter().any(|(what, ..)| *what == ExecType::CancelPending), "{events:?}");
}
