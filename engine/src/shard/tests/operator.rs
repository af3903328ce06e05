//! Commands of an operator: directives, reference data, switches, budgets and cancels of many
//! orders.

use super::bench::{bookings, credit, kinds, stop, strategies};
use super::*;
use crate::command::{BudgetAct, BudgetChange, BudgetKind, CancelFilter, ExecRef, StrategyPhase};
use crate::directive::{Directive, DirectiveVersion};

const REST: Source = Source { origin: Origin::Rest, port: PortId(0), session: 7 };
const OTHER_SESSION: Source = Source { session: 8, ..CLIENT };
const SECOND: StrategyId = StrategyId(1);

/// Returns a bench in which a second strategy runs too.
fn two_strategies() -> Bench {
    let mut bench = Bench::with_rows(strategies(2));
    bench.send(CommandKind::Phase { strategy: SECOND, phase: StrategyPhase::Running });
    bench
}

#[test]
fn of_two_directives_the_newer_one_is_in_force() {
    let mut bench = Bench::new();
    let kill = |on| Directive::Kill { scope: Scope::Global, on };
    let direct = |bench: &mut Bench, version, on| {
        let version = DirectiveVersion(version);
        bench.send(CommandKind::Direct { version, directive: kill(on) })
    };
    let events = direct(&mut bench, 5, true);
    let directed =
        |version, on| EventKind::Directed { version: DirectiveVersion(version), directive: kill(on) };
    assert!(events.contains(&directed(5, true)), "{events:?}");
    assert_eq!(reason(&bench.submit(limit(Side::Buy, 1, "1", "9")).1), Reason::KillSwitch);
    for version in [4, 5] {
        assert_eq!(direct(&mut bench, version, false).len(), 1, "it is done, and changes nothing");
    }
    assert_eq!(reason(&bench.submit(limit(Side::Buy, 1, "1", "9")).1), Reason::KillSwitch);
    assert!(direct(&mut bench, 6, false).contains(&directed(6, false)));
    assert_eq!(reason(&bench.submit(limit(Side::Buy, 1, "1", "9")).1), Reason::None);
}

#[test]
fn staged_reference_data_come_into_force_by_their_name() {
    let mut bench = Bench::new();
    let mut rows = rows();
    rows.securities.push(Security { id: SecurityId(9), symbol: "S9".into(), ..rows.securities[0].clone() });
    assert!(!bench.shard.has_staged(7));
    bench.shard.stage(7, Arc::new(RefData::check(rows).unwrap()));
    assert!(bench.shard.has_staged(7) && !bench.shard.has_staged(8));
    let added = Terms { security: SecurityId(9), ..limit(Side::Buy, 1, "1", "9") };
    assert_eq!(reason(&bench.send(CommandKind::Reference { name: 8 })), Reason::UnknownScope);
    assert_eq!(reason(&bench.submit(added).1), Reason::UnknownSecurity);
    assert_eq!(reason(&bench.send(CommandKind::Reference { name: 7 })), Reason::None);
    assert_eq!(reason(&bench.submit(added).1), Reason::None);
}

/// Orders that differ from the first in one property each.
fn different_orders(bench: &mut Bench) -> Vec<OrderHandle> {
    let plain = limit(Side::Buy, 1, "1", "9");
    let cases = [
        (CLIENT, plain),
        (CLIENT, Terms { strategy: SECOND, ..plain }),
        (CLIENT, Terms { security: SIM_OTHER, ..plain }),
        (CLIENT, limit(Side::Sell, 2, "1", "10")),
        (REST, plain),
        (OTHER_SESSION, plain),
        (CLIENT, outside("1")),
    ];
    cases.map(|(source, terms)| bench.submit_as(source, crate::sender::SenderId::NONE, terms)).to_vec()
}

#[test]
fn a_cancel_of_many_orders_concerns_those_that_are_selected() {
    let all = CancelFilter::default();
    let cases: [(CancelFilter, &[usize]); 6] = [
        (all, &[0, 1, 2, 3, 4, 5, 6]),
        (CancelFilter { strategy: Some(SECOND), ..all }, &[1]),
        (CancelFilter { security: Some(SIM_OTHER), ..all }, &[2]),
        (CancelFilter { side: Some(Side::Sell), ..all }, &[3]),
        (CancelFilter { origin: Some(Origin::Rest), ..all }, &[4]),
        (CancelFilter { source: Some(OTHER_SESSION), ..all }, &[5]),
    ];
    for (filter, expected) in cases {
        let mut bench = two_strategies();
        let orders = different_orders(&mut bench);
        bench.report(orders[6], VenueReport::Accepted);
        let id = bench.id();
        let events = bench.send(CommandKind::CancelOrders { id, filter });
        let asked: Vec<usize> = events
            .iter()
            .filter_map(|body| match body {
                EventKind::Status(report) if report.what == ExecType::CancelPending => {
                    assert_eq!(
                        (report.id, report.orig_id.is_none()),
                        (id, false),
                        "under the id of the request"
                    );
                    orders.iter().position(|order| *order == report.order)
                }
                _ => None,
            })
            .collect();
        assert_eq!(asked, expected, "{filter:?}");
    }
}

#[test]
fn a_cancel_of_many_orders_needs_an_id_and_names_that_exist() {
    let mut bench = Bench::new();
    bench.submit(limit(Side::Buy, 1, "1", "9"));
    let all = CancelFilter::default();
    let cases = [
        (IntId::NONE, all, Reason::BadId),
        (bench.id(), CancelFilter { strategy: Some(StrategyId(77)), ..all }, Reason::UnknownStrategy),
        (bench.id(), CancelFilter { security: Some(SecurityId(77)), ..all }, Reason::UnknownSecurity),
    ];
    for (id, filter, expected) in cases {
        assert_eq!(reason(&bench.send(CommandKind::CancelOrders { id, filter })), expected);
    }
    assert_eq!(bench.shard.open_orders(Scope::Global), 1);
}

#[test]
fn open_orders_are_counted_by_scope() {
    let mut bench = two_strategies();
    different_orders(&mut bench);
    let cases = [
        (Scope::Global, 7),
        (Scope::Strategy(SECOND), 1),
        (Scope::Account(AccountId(2)), 1),
        (Scope::Security(SIM_OTHER), 1),
        (Scope::Adapter(ADAPTER), 1),
    ];
    for (scope, expected) in cases {
        assert_eq!(bench.shard.open_orders(scope), expected, "{scope:?}");
    }
}

#[test]
fn closing_a_position_cancels_the_orders_of_that_position_only() {
    let mut bench = two_strategies();
    let orders = different_orders(&mut bench);
    bench.trade_by_hand(1, 1, SIM_STOCK, "10");
    let id = bench.id();
    let close = CommandKind::Close {
        id,
        strategy: SECOND,
        account: AccountId(1),
        security: SIM_STOCK,
        qty: Qty::ZERO,
    };
    bench.send(close);
    for (at, order) in orders.iter().enumerate() {
        let slot = bench.shard.orders.find(*order).unwrap();
        assert_eq!(bench.shard.orders.get(slot).base.is_finished(), at == 1, "order {at}");
    }
}

#[test]
fn orders_that_reduce_too_much_are_cancelled_and_no_others() {
    let mut bench = two_strategies();
    let close = |bench: &mut Bench, strategy| {
        bench.trade_by_hand(strategy, 3, OUTSIDE, "10");
        let (id, strategy, account) = (bench.id(), StrategyId(strategy), AccountId(3));
        let body = CommandKind::Close { id, strategy, account, security: OUTSIDE, qty: qty("8") };
        let events = bench.send(body);
        let order = events.iter().find_map(|body| match body {
            EventKind::Order(order) => Some(order.order),
            _ => None,
        });
        order.unwrap()
    };
    let (_, closing) = (close(&mut bench, 0), close(&mut bench, 1));
    let plain = Terms { strategy: SECOND, ..outside("3") };
    bench.submit(plain);
    let (sale, _) = bench.submit(Terms { side: Side::Sell, ..plain });
    let fill = VenueReport::Filled { exec: ExecRef(1), qty: qty("3"), price: price("10") };
    let events = bench.report(sale, fill);
    let cancelled: Vec<_> = events
        .iter()
        .filter_map(|body| match body {
            EventKind::Status(report) if report.what == ExecType::CancelPending => Some(report.order),
            _ => None,
        })
        .collect();
    assert_eq!(cancelled, [closing]);
}

#[test]
fn a_halt_is_reported_once_and_nothing_trades() {
    let mut bench = Bench::new();
    let halt = |on| CommandKind::Halt { security: SIM_STOCK, on };
    let is_reported =
        |events: &[EventKind], on| events.contains(&EventKind::Halt { security: SIM_STOCK, on });
    assert!(!is_reported(&bench.send(halt(false)), false), "it is not halted");
    assert!(is_reported(&bench.send(halt(true)), true));
    assert!(!is_reported(&bench.send(halt(true)), true), "it is halted already");
    assert!(is_reported(&bench.send(halt(false)), false));
}

#[test]
fn two_kill_switches_are_not_less_than_one() {
    let switches = [Scope::Global, Scope::Security(SIM_STOCK), Scope::Adapter(AdapterId::SIM)];
    for left_out in 0..3 {
        let mut bench = Bench::new();
        for (at, scope) in switches.into_iter().enumerate() {
            if at != left_out {
                bench.send(CommandKind::Kill { scope, on: true });
            }
        }
        assert_eq!(reason(&bench.submit(limit(Side::Buy, 1, "1", "9")).1), Reason::KillSwitch);
    }
}

#[test]
fn the_answer_to_a_recall_says_what_is_returned() {
    let mut bench = Bench::new();
    let scope = Scope::Account(AccountId(1));
    bench.set_limits(scope, credit("1000"));
    bench.submit(limit(Side::Buy, 1, "10", "30"));
    let budget = |act| CommandKind::Budget(BudgetChange { scope, kind: BudgetKind::Credit, act });
    let answer = |events: &[EventKind]| {
        events.iter().find_map(|body| match body {
            EventKind::Budget(usage) => {
                Some((Money::from_raw(usage.granted), Money::from_raw(usage.returned)))
            }
            _ => None,
        })
    };
    let events = bench.send(budget(BudgetAct::Recall(money("5000").raw())));
    assert_eq!(answer(&events), Some((money("300.01"), money("699.99"))));
    assert_eq!(reason(&bench.submit(limit(Side::Buy, 1, "1", "1")).1), Reason::InsufficientFunds);
    assert_eq!(
        answer(&bench.send(budget(BudgetAct::Grant(money("50").raw())))),
        None,
        "only a recall is answered"
    );
    assert_eq!(reason(&bench.submit(limit(Side::Buy, 1, "1", "1")).1), Reason::None);
    let (kind, act) = (BudgetKind::Credit, BudgetAct::Lift);
    let unknown = BudgetChange { scope: Scope::Account(AccountId(77)), kind, act };
    assert_eq!(reason(&bench.send(CommandKind::Budget(unknown))), Reason::UnknownScope);
}

#[test]
fn a_validation_says_how_the_order_would_be_refused_and_enters_none() {
    let mut bench = Bench::new();
    for (terms, expected) in [
        (limit(Side::Buy, 1, "1", "9"), Reason::None),
        (limit(Side::Buy, 1, "0", "9"), Reason::QuantityNotPositive),
        (limit(Side::Buy, 77, "1", "9"), Reason::UnknownAccount),
    ] {
        let events = bench.send(CommandKind::Validate { terms });
        assert_eq!((events.len(), reason(&events)), (1, expected));
    }
    bench.send(CommandKind::Kill { scope: Scope::Global, on: true });
    let terms = limit(Side::Buy, 1, "1", "9");
    assert_eq!(reason(&bench.send(CommandKind::Validate { terms })), Reason::KillSwitch);
}

#[test]
fn a_port_that_watches_a_market_gets_the_current_tick_if_there_is_one() {
    let mut bench = Bench::new();
    let watch = |on| CommandKind::Watch { port: PortId(1), what: WatchTarget::Ticks(SIM_STOCK), on };
    let subscribe = |on| CommandKind::Subscribe { strategy: StrategyId(0), security: SIM_STOCK, on };
    let is_sent = |bench: &mut Bench, on| {
        let events = bench.send(watch(on));
        events.iter().any(|body| matches!(body, EventKind::Tick(_)))
    };
    bench.send(subscribe(true));
    assert!(!is_sent(&mut bench, true), "there was no market");
    bench.last(SIM_STOCK, "9");
    assert!(is_sent(&mut bench, true) && !is_sent(&mut bench, false));
    bench.send(subscribe(false));
    assert!(!is_sent(&mut bench, true), "no strategy is subscribed");
}

#[test]
fn a_stop_is_not_triggered_outside_of_continuous_trading() {
    let session = |session| CommandKind::Session { exchange: ExchangeId(1), session };
    let halt = |on| CommandKind::Halt { security: SIM_STOCK, on };
    let pairs = [
        (session(TradingSession::OpeningAuction), session(TradingSession::Continuous)),
        (halt(true), halt(false)),
    ];
    for (before, after) in pairs {
        let mut bench = Bench::new();
        bench.submit(stop(Side::Buy, 1, "11"));
        bench.send(before);
        assert_eq!(kinds(&bench.last(SIM_STOCK, "11")), []);
        assert_eq!(kinds(&bench.send(after)).first(), Some(&ExecType::Triggered));
    }
}

#[test]
fn movements_of_cash_belong_to_the_shard_of_their_strategy() {
    assert_eq!([0, 5, 6].map(|id| shard_of_cash(StrategyId(id), 4)), [0, 1, 2].map(ShardId));
    let mut bench = Bench::new();
    let movement = Movement {
        kind: MovementKind::Credit,
        strategy: StrategyId(0),
        account: AccountId(1),
        security: None,
        qty: Qty::ZERO,
        price: price("5"),
        commission: Money::ZERO,
        currency: usd(),
        uuid: Uuid(0),
    };
    assert_eq!(bookings(&bench.send(CommandKind::Transaction(movement)))[0].cash, money("5"));
}
