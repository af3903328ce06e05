//! Operations on many rows: they take several steps and reach all of them.

use super::bench::{bookings, kinds, stop, strategies};
use super::outside::{alerts, instructions, venue_requests};
use super::*;
use crate::command::ExecRef;
use crate::event::Alert;

#[test]
fn a_step_of_a_kill_switch_ends_few_orders_and_all_steps_end_all() {
    let mut bench = Bench::new();
    for _ in 0..100 {
        bench.submit(limit(Side::Sell, 1, "1", "10"));
    }
    bench.now += 1;
    let kill = CommandKind::Kill { scope: Scope::Global, on: true };
    bench.shard.apply(Timestamp(bench.now), &Command::new(CLIENT, 5, kill), &mut bench.out);
    bench.out.clear();
    let mut ended = Vec::new();
    while bench.shard.has_work() {
        bench.shard.resume(&mut bench.out);
        let is_end = |event: &crate::event::Event| {
            event.report().is_some_and(|report| report.what == ExecType::Canceled)
        };
        ended.push(bench.out.waiting().iter().filter(|(_, event)| is_end(event)).count());
        bench.out.clear();
    }
    assert_eq!((ended.len(), ended[..12].iter().all(|ended| *ended == 8)), (13, true), "{ended:?}");
    assert_eq!(bench.shard.open_orders(Scope::Global), 0);
}

#[test]
fn an_order_that_ends_leaves_no_work() {
    let mut bench = Bench::new();
    let (order, _) = bench.submit(limit(Side::Sell, 1, "1", "10"));
    let cancel = CommandKind::Cancel { order, id: bench.id() };
    bench.shard.apply(Timestamp(99), &Command::new(CLIENT, 5, cancel), &mut bench.out);
    assert!(!bench.shard.has_work());
}

#[test]
fn a_venue_that_returns_is_asked_about_each_order_once_and_about_no_other() {
    let mut bench = Bench::new();
    let orders: Vec<_> = (0..20).map(|_| bench.submit(outside("10")).0).collect();
    for order in &orders {
        bench.report(*order, VenueReport::Accepted);
    }
    bench.send(CommandKind::Watch { port: PortId(0), what: WatchTarget::Venue(AdapterId::SIM), on: true });
    bench.submit(limit(Side::Buy, 1, "1", "9"));
    bench.submit(Terms { security: OUTSIDE, ..stop(Side::Buy, 3, "20") });
    bench.send(CommandKind::Adapter { adapter: ADAPTER, connected: false });
    let events = bench.send(CommandKind::Adapter { adapter: ADAPTER, connected: true });
    let queried: Vec<_> = instructions(&events).iter().map(|instruction| instruction.order).collect();
    assert_eq!(queried, orders);
    assert!(venue_requests(&events).iter().all(|request| *request == VenueRequest::Query));
}

#[test]
fn a_start_marks_every_pending_order_as_in_doubt() {
    let mut bench = Bench::new();
    (0..20).for_each(|_| _ = bench.submit(outside("10")));
    let events = bench.begin(ShardSettings::default());
    let in_doubt = events.iter().filter(|body| matches!(body, EventKind::Status(report) if report.in_doubt));
    assert_eq!(in_doubt.count(), 20);
}

#[test]
fn stops_are_triggered_when_the_venue_of_the_first_security_returns() {
    let mut rows = rows();
    // The venue outside is that of the first security.
    rows.securities[0].family = FamilyId(2);
    rows.securities[1].family = FamilyId(1);
    let mut bench = Bench::with_rows(rows);
    let waiting = Terms { account: AccountId(3), ..stop(Side::Buy, 3, "11") };
    let stops: Vec<_> = (0..2).map(|_| bench.submit(waiting).0).collect();
    bench.send(CommandKind::Adapter { adapter: ADAPTER, connected: false });
    assert_eq!(venue_requests(&bench.last(SIM_STOCK, "11")), [], "it cannot be sent");
    let events = bench.send(CommandKind::Adapter { adapter: ADAPTER, connected: true });
    let sent: Vec<_> = instructions(&events).iter().map(|instruction| instruction.order).collect();
    assert_eq!(sent, stops);
}

#[test]
fn the_close_of_a_session_ends_all_orders_of_the_day() {
    let mut bench = Bench::new();
    (0..20).for_each(|_| _ = bench.submit(limit(Side::Sell, 1, "1", "10")));
    bench.send(CommandKind::Session { exchange: ExchangeId(1), session: TradingSession::Closed });
    assert_eq!(bench.shard.open_orders(Scope::Global), 0);
}

#[test]
fn a_settlement_closes_the_positions_of_all_strategies() {
    let mut bench = Bench::with_rows(strategies(40));
    for strategy in 0..40 {
        bench.trade_by_hand(strategy, 1, SIM_STOCK, "10");
    }
    let events = bench.send(CommandKind::Expire { security: SIM_STOCK, price: price("11") });
    assert_eq!(bookings(&events).len(), 40);
    let hidden = |body: &EventKind| matches!(body, EventKind::Exposure { .. });
    assert!(!events.iter().any(hidden), "the transactions show that the account is flat");
    let events = bench.send(CommandKind::Expire { security: SIM_OTHER, price: price("11") });
    assert!(!events.iter().any(hidden), "it had no position there");
}

#[test]
fn positions_in_all_expired_securities_are_reported() {
    let mut rows = rows();
    let expirable =
        SecurityFamily { id: FamilyId(3), name: "F3".into(), expirable: true, ..rows.families[0].clone() };
    rows.families.push(expirable);
    for id in 10..50 {
        rows.securities.push(Security {
            id: SecurityId(id),
            symbol: format!("S{id}"),
            kind: SecurityKind::Future,
            family: FamilyId(3),
            expiration: Some(Day(10)),
            ..rows.securities[0].clone()
        });
    }
    let mut bench = Bench::with_rows(rows);
    for id in 10..50 {
        bench.trade_by_hand(0, 1, SecurityId(id), "1");
    }
    let events = bench.send(CommandKind::Expiry { exchange: ExchangeId(1), day: Day(10) });
    let unsettled = alerts(&events).iter().filter(|alert| **alert == Alert::Unsettled).count();
    assert_eq!(unsettled, 40);
}

/// Returns what a recount has changed: securities and currencies.
fn adjusted(events: &[EventKind]) -> Vec<String> {
    use crate::event::Adjustment;
    let text = |body: &EventKind| match body {
        EventKind::Adjusted { strategy, what: Adjustment::Position { security, after, .. } } => {
            Some(format!("{} {}: {}", strategy.0, security.0, after.qty))
        }
        EventKind::Adjusted { strategy, what: Adjustment::Cash { currency, after, .. } } => {
            Some(format!("{} {currency}: {after}", strategy.0))
        }
        _ => None,
    };
    events.iter().filter_map(text).collect()
}

#[test]
fn a_recount_corrects_positions_and_reports_them() {
    let mut bench = Bench::with_rows(strategies(40));
    for strategy in 0..40 {
        bench.trade_by_hand(strategy, 1, SIM_OTHER, "10");
    }
    bench.shard.ledger.position_mut(2, 39).state.qty = qty("7");
    assert_eq!(adjusted(&bench.send(CommandKind::ResetPositions)), ["39 3: 10"]);
    assert_eq!(adjusted(&bench.send(CommandKind::ResetPositions)), [""; 0]);
}

#[test]
fn a_recount_corrects_cash_and_reports_it() {
    let mut bench = Bench::with_rows(strategies(40));
    for strategy in 0..40 {
        bench.trade_by_hand(strategy, 1, SIM_OTHER, "10");
    }
    bench.shard.ledger.change_cash(39, money("1"));
    assert_eq!(adjusted(&bench.send(CommandKind::ResetCash)), ["39 USD: -90"]);
    assert_eq!(adjusted(&bench.send(CommandKind::ResetCash)), [""; 0]);
}

#[test]
fn a_modification_that_trades_with_many_orders_trades_with_all() {
    let mut bench = Bench::new();
    (0..100).for_each(|_| _ = bench.submit(limit(Side::Sell, 1, "1", "10")));
    bench.submit(stop(Side::Buy, 2, "10"));
    let (order, _) = bench.submit(limit(Side::Buy, 2, "99", "9"));
    let events = bench.modify(order, Changes::default().with_limit(price("10")));
    let fills = kinds(&events).iter().filter(|what| **what == ExecType::Filled).count();
    assert_eq!(fills, 200, "the stop has triggered and bought the last one");
}

/// The trade takes several steps, and was made under the old quote.
#[test]
fn the_quote_of_a_tick_applies_after_its_trade() {
    let mut bench = Bench::new();
    (0..200).for_each(|_| _ = bench.submit(limit(Side::Buy, 1, "1", "9")));
    let quote =
        Quote { bid: price("7"), bid_size: qty("1"), ask: price("8"), ask_size: qty("1"), at: Timestamp(1) };
    let trade = Trade { price: price("8.5"), size: qty("500"), at: Timestamp(1) };
    let events = bench.send(CommandKind::Tick { security: SIM_STOCK, quote, trade });
    let fills = kinds(&events).iter().filter(|what| **what == ExecType::Filled).count();
    assert_eq!(fills, 200);
    let tick = bench.shard.ticks().next().unwrap();
    assert_eq!((tick.bid, tick.ask), (price("7"), price("8")));
}

/// If the dates of ended orders were kept, a client could fill the memory with them.
#[test]
fn dates_of_ended_orders_are_forgotten_and_those_of_open_ones_stay() {
    let mut bench = Bench::new();
    let dated = |at| Terms { tif: Tif::Gtd, tif_date: Timestamp(at), ..limit(Side::Buy, 1, "1", "9") };
    let (first, _) = bench.submit(dated(50_000));
    for _ in 0..1_500 {
        let (order, _) = bench.submit(dated(60_000));
        bench.cancel(order);
    }
    assert_eq!(bench.shard.deadline(), Some(Timestamp(50_000)));
    bench.now = 50_000;
    assert_eq!(kinds(&bench.send(CommandKind::Timer)), [ExecType::Expired]);
    assert_eq!(reason(&bench.cancel(first)), Reason::OrderFinished);
}

#[test]
fn a_fill_without_a_quantity_is_none_and_one_without_an_id_is_counted() {
    let mut bench = Bench::new();
    let (order, _) = bench.submit(outside("10"));
    bench.report(order, VenueReport::Accepted);
    let fill = |exec, q| VenueReport::Filled { exec: ExecRef(exec), qty: qty(q), price: price("9") };
    for (exec, q) in [(0, "0"), (0, "-1"), (1, "0"), (1, "-1")] {
        let events = bench.report(order, fill(exec, q));
        assert_eq!((alerts(&events), events.len()), (vec![Alert::UnexpectedReport], 1), "{exec} {q}");
    }
    for _ in 0..2 {
        assert_eq!(kinds(&bench.report(order, fill(0, "1"))), [ExecType::Filled]);
    }
}
