//! Regressions found by the simulation, each as its own test.

use super::*;
use crate::command::ExecRef;
use crate::event::RequestKind;

/// Delivers everything in transit.
fn run_out(bench: &mut Bench) -> Vec<EventKind> {
    let mut events = Vec::new();
    while let Some(deadline) = bench.shard.deadline() {
        bench.now = bench.now.max(deadline.0);
        events.extend(bench.send(CommandKind::Timer));
    }
    events
}

fn slow(entry_ns: u64, response_ns: u64) -> Bench {
    let mut settings = ShardSettings::default();
    settings.venue.delays = Delays { entry_ns, response_ns, ..Delays::default() };
    Bench::with(settings)
}

/// One step of the kill switch used to reach orders of two securities, and treated the second as an
/// error.
#[test]
fn the_kill_switch_reaches_several_securities_in_one_step() {
    let mut bench = Bench::new();
    bench.submit(limit(Side::Sell, 1, "1", "10"));
    bench.submit(Terms { security: SIM_OTHER, ..limit(Side::Sell, 1, "1", "10") });
    bench.send(CommandKind::Kill { scope: Scope::Global, on: true });
    assert_eq!(bench.shard.open_orders(Scope::Global), 0);
}

/// A triggered stop in transit to the venue was treated as a waiting one, and sent twice.
#[test]
fn a_triggered_stop_on_its_way_is_changed_at_the_venue() {
    let mut bench = slow(100, 0);
    let stop = Terms {
        kind: OrderKind::StopLimit,
        stop: price("11"),
        stop_given: true,
        ..limit(Side::Buy, 1, "5", "12")
    };
    let (order, _) = bench.submit(stop);
    let trade = Trade { price: price("11"), size: qty("1"), at: Timestamp(1) };
    bench.send(CommandKind::Trade { security: SIM_STOCK, trade });
    bench.modify(order, Changes::default().with_qty(qty("4")));
    let events = run_out(&mut bench);
    assert_eq!(reports(&events).last(), Some(&(ExecType::Replaced, Status::New, Qty::ZERO)));
    bench.cancel(order);
    run_out(&mut bench);
    assert_eq!(bench.shard.open_orders(Scope::Global), 0);
}

/// The venue had filled four, the report was in transit, and the change to four left the order
/// alive at the venue.
#[test]
fn a_change_counts_fills_whose_reports_are_in_transit() {
    let mut bench = slow(0, 100);
    let (order, _) = bench.submit(limit(Side::Sell, 1, "10", "10"));
    run_out(&mut bench);
    bench.submit(limit(Side::Buy, 2, "4", "10"));
    bench.modify(order, Changes::default().with_qty(qty("4")));
    let events = run_out(&mut bench);
    assert_eq!(reports(&events).last(), Some(&(ExecType::Replaced, Status::Filled, qty("4"))));
    assert_eq!(bench.shard.open_orders(Scope::Global), 0);
}

/// Closing a flat position cancelled its orders first, and was refused after that.
#[test]
fn closing_a_flat_position_cancels_nothing() {
    let mut bench = Bench::new();
    bench.submit(limit(Side::Sell, 1, "4", "12"));
    let id = bench.id();
    let close = CommandKind::Close {
        id,
        strategy: StrategyId(0),
        account: AccountId(1),
        security: SIM_STOCK,
        qty: Qty::ZERO,
    };
    assert_eq!(reason(&bench.send(close)), Reason::PositionFlat);
    assert_eq!(bench.shard.open_orders(Scope::Global), 1);
}

/// A cancel by the kill switch that the venue refused left the order pending for its client.
#[test]
fn an_internal_cancel_that_fails_is_reported() {
    let mut bench = Bench::new();
    let (order, _) = bench.submit(outside("10"));
    bench.report(order, VenueReport::Accepted);
    bench.send(CommandKind::Kill { scope: Scope::Global, on: true });
    let events = bench.report(order, VenueReport::CancelRefused(Reason::VenueRejected));
    assert_eq!(reports(&events), [(ExecType::Snapshot, Status::New, Qty::ZERO)]);
}

/// A refused cancel was taken as the answer to the client's cancel behind it; the change it
/// belonged to stayed pending.
#[test]
fn a_refusal_answers_the_request_that_was_sent() {
    let mut bench = Bench::new();
    let (order, _) = bench.submit(outside("10"));
    let fill = VenueReport::Filled { exec: ExecRef(1), qty: qty("4"), price: price("10") };
    bench.report(order, fill);
    // Modified to the filled quantity: the venue is asked to cancel the rest. The client's own
    // cancel waits behind.
    bench.modify(order, Changes::default().with_qty(qty("4")));
    bench.cancel(order);
    let events = bench.report(order, VenueReport::CancelRefused(Reason::VenueRejected));
    let refused = events
        .iter()
        .find_map(|body| if let EventKind::Refused(refusal) = body { Some(refusal.request) } else { None });
    assert_eq!(refused, Some(RequestKind::Replace));
    let events = bench.report(order, VenueReport::Canceled(Reason::Requested));
    assert_eq!(reports(&events), [(ExecType::Canceled, Status::Canceled, qty("4"))]);
}

/// The report that ended an order in doubt still flagged it as in doubt.
#[test]
fn doubt_ends_with_the_order() {
    let mut bench = Bench::new();
    let (order, _) = bench.submit(outside("10"));
    bench.send(CommandKind::Adapter { adapter: ADAPTER, connected: false });
    bench.send(CommandKind::Adapter { adapter: ADAPTER, connected: true });
    let events = bench.report(order, VenueReport::Rejected(Reason::VenueRejected));
    let report = events
        .iter()
        .find_map(|body| if let EventKind::Status(report) = body { Some(*report) } else { None });
    assert_eq!(report.map(|report| (report.status, report.in_doubt)), Some((Status::Rejected, false)));
}

/// The filled quantity and the average are counted from the executions that stand.
#[test]
fn a_correction_recomputes_the_average() {
    let mut bench = Bench::new();
    let (order, _) = bench.submit(outside("10"));
    let exec = ExecRef(1);
    bench.report(order, VenueReport::Filled { exec, qty: qty("10"), price: price("10") });
    let events = bench.report(order, VenueReport::Corrected { exec, qty: qty("10"), price: price("9") });
    let report = events
        .iter()
        .find_map(|body| if let EventKind::Status(report) = body { Some(*report) } else { None });
    assert_eq!(report.map(|report| report.avg_price), Some(price("9")));
}

/// An order that only shrinks was refused for lack of a last price.
#[test]
fn a_smaller_order_needs_no_price() {
    let mut bench = Bench::new();
    let market = Terms { kind: OrderKind::Market, limit_given: false, ..limit(Side::Buy, 1, "5", "0") };
    let (order, _) = bench.submit(market);
    let limits = RiskLimits { max_order_value: money("1"), price_collar_bp: 10, ..RiskLimits::default() };
    bench.send(CommandKind::Limits { scope: Scope::Account(AccountId(1)), limits });
    let events = bench.modify(order, Changes::default().with_qty(qty("4")));
    assert_eq!(reports(&events).last(), Some(&(ExecType::Replaced, Status::New, Qty::ZERO)));
}

/// A disabled scope is reported before a restriction.
#[test]
fn the_first_rule_that_fails_gives_its_reason() {
    let mut bench = Bench::new();
    let off = RiskLimits { trading_enabled: false, ..RiskLimits::default() };
    bench.send(CommandKind::Restrict {
        scope: Scope::Strategy(StrategyId(0)),
        security: SIM_STOCK,
        on: true,
    });
    bench.send(CommandKind::Limits { scope: Scope::Account(AccountId(1)), limits: off });
    assert_eq!(reason(&bench.submit(limit(Side::Buy, 1, "1", "10")).1), Reason::TradingDisabled);
}

/// With a response delay, the market did not move until the report arrived.
#[test]
fn the_market_moves_when_the_venue_trades() {
    let mut bench = slow(0, 100);
    bench.submit(limit(Side::Sell, 1, "4", "10"));
    let (_, events) = bench.submit(limit(Side::Buy, 2, "4", "10"));
    let last =
        events.iter().find_map(|body| if let EventKind::Tick(tick) = body { Some(tick.last) } else { None });
    assert_eq!(last, Some(price("10")));
}

/// Nothing behind a price that was too good for the band could be filled, but fill or kill counted
/// on it and traded in part.
#[test]
fn fill_or_kill_checks_both_edges_of_the_band() {
    let mut settings = ShardSettings::default();
    settings.venue.band_bp = 100;
    let mut bench = Bench::with(settings);
    bench.submit(limit(Side::Sell, 1, "1", "90"));
    let trade = Trade { price: price("100"), size: qty("1"), at: Timestamp(1) };
    bench.send(CommandKind::Halt { security: SIM_STOCK, on: true });
    bench.send(CommandKind::Trade { security: SIM_STOCK, trade });
    bench.send(CommandKind::Halt { security: SIM_STOCK, on: false });
    bench.submit(limit(Side::Sell, 1, "5", "100"));
    let (_, events) = bench.submit(Terms { tif: Tif::Fok, ..limit(Side::Buy, 2, "6", "101") });
    assert_eq!(reports(&events).last(), Some(&(ExecType::Canceled, Status::Canceled, Qty::ZERO)));
}
