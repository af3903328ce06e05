//! What a venue says about an order whose state here is another one.

use super::bench::{bookings, kinds, stop};
use super::outside::{alerts, busted, filled, venue_requests};
use super::*;
use crate::command::{ExecRef, VenueState};
use crate::event::Alert;
use crate::ledger::OpenQty;

fn standing(cum: &str, average: &str, state: VenueState) -> VenueReport {
    VenueReport::Standing { cum: qty(cum), average: price(average), state }
}

fn amended(exec_ref: u128, exec: u128, q: &str, p: &str) -> VenueReport {
    let (exec_ref, exec) = (ExecRef(exec_ref), ExecRef(exec));
    VenueReport::Amended { exec_ref, exec, qty: qty(q), price: price(p), is_open: true }
}

/// Returns an accepted order of ten with this fill.
fn with_fill(bench: &mut Bench, terms: Terms, q: &str, p: &str) -> OrderHandle {
    let (order, _) = bench.submit(terms);
    bench.report(order, VenueReport::Accepted);
    bench.report(order, filled(1, q, p));
    order
}

/// Returns quantity and price of the transactions.
fn booked(events: &[EventKind]) -> Vec<(Qty, Price)> {
    bookings(events).iter().map(|booking| (booking.qty, booking.price)).collect()
}

fn in_doubt(bench: &Bench, order: OrderHandle) -> bool {
    bench.shard.orders.get(order.slot()).in_doubt()
}

#[test]
fn a_correction_that_is_repeated_is_counted_once() {
    let mut bench = Bench::new();
    let order = with_fill(&mut bench, outside("10"), "4", "9");
    let correction = amended(1, 2, "3", "8");
    let events = bench.report(order, correction);
    assert_eq!(booked(&events), [(qty("-4"), price("9")), (qty("3"), price("8"))]);
    assert_eq!(alerts(&events), []);
    let events = bench.report(order, correction);
    assert_eq!((booked(&events), alerts(&events)), (vec![], vec![Alert::DuplicateExecution]));
    // A report without an id of its own may come again.
    for p in ["7", "6"] {
        let corrected = VenueReport::Corrected { exec: ExecRef(1), qty: qty("3"), price: price(p) };
        let events = bench.report(order, corrected);
        assert_eq!((booked(&events).len(), alerts(&events)), (2, vec![]));
    }
}

#[test]
fn a_filled_order_is_reopened_only_if_something_is_left() {
    for (corrected, status) in [("10", Status::Filled), ("9", Status::PartiallyFilled)] {
        let mut bench = Bench::new();
        let order = with_fill(&mut bench, outside("10"), "10", "9");
        let events = bench.report(order, amended(1, 2, corrected, "8"));
        assert_eq!(reports(&events).last(), Some(&(ExecType::Corrected, status, qty(corrected))));
        assert_eq!(bench.shard.open_orders(Scope::Global), u32::from(status != Status::Filled));
    }
}

#[test]
fn a_correction_beyond_the_order_is_an_overfill() {
    for (corrected, expected) in [("9", None), ("10", None), ("11", Some(Alert::Overfill))] {
        let mut bench = Bench::new();
        let order = with_fill(&mut bench, outside("10"), "4", "9");
        let events = bench.report(order, amended(1, 2, corrected, "9"));
        assert_eq!(alerts(&events), expected.into_iter().collect::<Vec<_>>());
        let report = events.iter().rev().find_map(|body| match body {
            EventKind::Status(report) if report.what == ExecType::Corrected => Some(report.reason),
            _ => None,
        });
        let reason = if expected.is_some() { Reason::Overfill } else { Reason::Correction };
        assert_eq!(report, Some(reason), "{corrected}");
    }
    // A bust of one of two fills that are too much leaves an overfill, which is not that of the
    // bust.
    let mut bench = Bench::new();
    let order = with_fill(&mut bench, outside("10"), "12", "9");
    bench.report(order, filled(2, "3", "9"));
    assert_eq!(alerts(&bench.report(order, busted(2, 3, true))), []);
}

#[test]
fn a_bust_whose_quantity_cannot_be_counted_as_open_changes_nothing() {
    let full = OpenQty { buy: Qty::from_raw(i64::MAX), sell: Qty::ZERO };
    let changes: [fn(&mut Shard, OpenQty); 3] = [
        |shard, full| shard.ledger.position_mut(1, 0).open = full,
        |shard, full| shard.ledger.exposure_mut(1, 0).open = full,
        |shard, full| shard.ledger.position_mut(1, 0).reducing = full.buy,
    ];
    for change in changes {
        let mut bench = Bench::new();
        let order = with_fill(&mut bench, outside("10"), "4", "9");
        change(&mut bench.shard, full);
        let report = busted(1, 2, true);
        bench.shard.apply(
            Timestamp(99),
            &Command::new(CLIENT, 5, CommandKind::Report { order, report }),
            &mut bench.out,
        );
        let events: Vec<EventKind> = bench.out.waiting().iter().map(|(_, event)| event.body).collect();
        assert_eq!((booked(&events), alerts(&events)), (vec![], vec![Alert::BookingOverflow]));
        assert_eq!(bench.shard.orders.get(order.slot()).cum, qty("4"));
    }
}

#[test]
fn an_open_order_that_the_venue_is_not_sure_of_is_in_doubt() {
    let mut bench = Bench::new();
    let order = with_fill(&mut bench, outside("10"), "4", "9");
    let (waiting, _) = bench.submit(Terms { security: OUTSIDE, ..stop(Side::Buy, 3, "20") });
    assert_eq!(alerts(&bench.report(order, VenueReport::Unsure)), [Alert::InDoubt]);
    bench.report(order, VenueReport::Reconciled);
    assert!(in_doubt(&bench, order), "only its status ends the doubt");
    bench.report(order, standing("4", "9", VenueState::Open));
    assert!(!in_doubt(&bench, order));
    assert_eq!(bench.report(waiting, VenueReport::Unsure), [], "the shard holds it");
    bench.report(order, filled(2, "6", "9"));
    assert_eq!(bench.report(order, VenueReport::Unsure), [], "it has ended");
}

#[test]
fn an_ended_order_needs_no_query() {
    let mut bench = Bench::new();
    let order = with_fill(&mut bench, outside("10"), "10", "9");
    let events = bench.report(order, busted(77, 78, false));
    assert_eq!((alerts(&events), venue_requests(&events)), (vec![Alert::UnexpectedReport], vec![]));
    let order = with_fill(&mut bench, outside("10"), "4", "9");
    assert_eq!(venue_requests(&bench.report(order, busted(77, 78, true))), [VenueRequest::Status]);
}

/// Messages that a venue sends again arrive before the adapter counts as connected.
#[test]
fn an_ended_order_whose_fill_was_presumed_is_queried_when_its_venue_is_back() {
    let mut bench = Bench::new();
    let (order, _) = bench.submit(outside("10"));
    let adapter = |connected| CommandKind::Adapter { adapter: ADAPTER, connected };
    bench.report(order, standing("10", "9", VenueState::Filled));
    bench.send(adapter(false));
    let events = bench.report(order, busted(77, 78, false));
    assert_eq!((alerts(&events), venue_requests(&events)), (vec![Alert::UnexpectedReport], vec![]));
    bench.reload();
    bench.send(adapter(false));
    assert_eq!(venue_requests(&bench.send(adapter(true))), [VenueRequest::Status]);
    let events = bench.report(order, standing("4", "9", VenueState::Canceled(Reason::VenueCancelled)));
    assert_eq!(booked(&events), [(qty("-10"), price("9")), (qty("4"), price("9"))]);
    assert_eq!(venue_requests(&bench.send(adapter(true))), [], "it has answered");
}

#[test]
fn a_venue_that_contradicts_itself_leaves_the_order_in_doubt() {
    let cases = [
        ("2", VenueState::Open, vec![Alert::UnexpectedReport, Alert::UnexpectedReport, Alert::InDoubt]),
        ("4", VenueState::Filled, vec![Alert::UnexpectedReport, Alert::InDoubt]),
    ];
    for (cum, state, expected) in cases {
        let mut bench = Bench::new();
        let order = with_fill(&mut bench, outside("10"), "4", "9");
        assert_eq!(alerts(&bench.report(order, standing(cum, "9", state))), expected, "{state:?}");
        assert!(in_doubt(&bench, order));
    }
}

/// Its report was lost, and so was that of the fill.
#[test]
fn a_modification_to_what_is_filled_is_done_when_the_venue_says_filled() {
    let mut bench = Bench::new();
    let order = with_fill(&mut bench, outside("10"), "4", "9");
    bench.modify(order, Changes::default().with_qty(qty("6")));
    let events = bench.report(order, standing("6", "9", VenueState::Filled));
    assert_eq!(kinds(&events), [ExecType::Filled, ExecType::Replaced]);
    assert_eq!(reports(&events).last(), Some(&(ExecType::Replaced, Status::Filled, qty("6"))));
    // Here the modification is to more than the venue has filled.
    let order = with_fill(&mut bench, outside("10"), "4", "9");
    bench.modify(order, Changes::default().with_qty(qty("8")));
    let events = bench.report(order, standing("6", "9", VenueState::Filled));
    assert_eq!(kinds(&events)[0], ExecType::Filled);
    assert!(in_doubt(&bench, order));
}

/// Returns the price of a missed fill, after a first fill of two.
fn missed_price(terms: Terms, first: &str, cum: &str, average: &str) -> Price {
    let mut bench = Bench::new();
    let order = with_fill(&mut bench, terms, "2", first);
    bookings(&bench.report(order, standing(cum, average, VenueState::Open)))[0].price
}

#[test]
fn the_price_of_a_missed_fill_makes_the_average_right_if_the_limit_allows_it() {
    let buy = outside("10");
    let sell = Terms { side: Side::Sell, limit: price("12"), ..buy };
    let market = Terms { kind: OrderKind::Market, limit: Price::ZERO, limit_given: false, ..buy };
    let cases = [
        (buy, "8", "4", "9", "10"),
        // It would be eleven.
        (buy, "8", "3", "9", "9"),
        (market, "8", "3", "9", "11"),
        (sell, "14", "4", "13.5", "13"),
        // It would be eleven.
        (sell, "14", "4", "12.5", "12.5"),
        // It would be three and a half, which is far from the average.
        (market, "9.5", "3", "7.5", "7.5"),
    ];
    for (terms, first, cum, average, expected) in cases {
        assert_eq!(missed_price(terms, first, cum, average), price(expected), "{cum} at {average}");
    }
}

#[test]
fn a_missed_fill_that_was_too_large_is_corrected_with_the_right_average() {
    for (cum, average, expected) in [("5", "9.2", "10"), ("5", "0", "9.5")] {
        let mut bench = Bench::new();
        let order = with_fill(&mut bench, outside("10"), "2", "8");
        bench.report(order, standing("6", "9", VenueState::Open));
        let events = bench.report(order, standing(cum, average, VenueState::Open));
        assert_eq!(booked(&events), [(qty("-4"), price("9.5")), (qty("3"), price(expected))]);
    }
}

#[test]
fn an_order_that_was_presumed_to_be_filled_works_again_if_the_venue_says_so() {
    for (state, is_open) in [(VenueState::Open, true), (VenueState::Canceled(Reason::VenueCancelled), false)]
    {
        let mut bench = Bench::new();
        let order = with_fill(&mut bench, outside("10"), "2", "8");
        bench.report(order, standing("10", "9", VenueState::Filled));
        assert_eq!(bench.shard.open_orders(Scope::Global), 0);
        bench.report(order, standing("6", "9", state));
        assert_eq!(bench.shard.open_orders(Scope::Global), u32::from(is_open));
    }
}

/// The same order and quantity always give the same id, so that a replay gives it too.
#[test]
fn a_missed_fill_has_an_id_of_its_own() {
    let mut bench = Bench::new();
    bench.submit(limit(Side::Buy, 1, "1", "9"));
    let order = with_fill(&mut bench, outside("10"), "2", "8");
    let exec = |events: &[EventKind]| bookings(events)[0].exec.0;
    let first = exec(&bench.report(order, standing("6", "9", VenueState::Open)));
    let cum = u128::try_from(qty("6").raw()).unwrap();
    assert_eq!(first, 1 << 127 | u128::from(order.raw()) << 64 | cum);
    // The venue takes it back, and reports it again.
    bench.report(order, standing("2", "8", VenueState::Open));
    let second = exec(&bench.report(order, standing("6", "9", VenueState::Open)));
    assert_eq!(second, first + 1);
    let third = exec(&bench.report(order, standing("7", "9", VenueState::Open)));
    assert_eq!(third - first, u128::try_from(qty("1").raw()).unwrap());
}

#[test]
fn a_stop_whose_day_has_ended_is_remembered_only_while_it_may_not_have_arrived() {
    let session = |session| CommandKind::Session { exchange: ExchangeId(2), session };
    let night = [session(TradingSession::Closed), session(TradingSession::Continuous)];
    let day = |day| [CommandKind::TradingDay { day: Day(day) }; 2];
    for ends in [[night, night], [day(3), day(4)]] {
        let mut bench = Bench::new();
        bench.last(OUTSIDE, "20");
        let day_stop = Terms { security: OUTSIDE, tif: Tif::Day, ..stop(Side::Buy, 3, "20") };
        let (order, _) = bench.submit(day_stop);
        bench.submit(Terms { tif: Tif::Gtc, ..day_stop });
        let (arrived, _) = bench.submit(Terms { tif: Tif::Day, ..outside("1") });
        bench.report(arrived, VenueReport::Accepted);
        ends[0].iter().for_each(|command| _ = bench.send(*command));
        let remembered: Vec<OrderHandle> = bench.shard.overdue_stops.iter().copied().collect();
        assert_eq!(remembered, [order]);
        bench.report(order, VenueReport::Accepted);
        ends[1].iter().for_each(|command| _ = bench.send(*command));
        assert!(bench.shard.overdue_stops.is_empty(), "it has arrived");
        bench.send(CommandKind::Expire { security: OUTSIDE, price: price("9") });
        assert!(bench.shard.overdue_stops.is_empty(), "the other one does not end with a day");
    }
}

/// The stop was triggered and never arrived at its venue, which says so after its time has ended.
#[test]
fn a_stop_that_the_shard_holds_again_ends_if_its_time_has_ended() {
    let later = Timestamp(1_000_000);
    let session = |session| CommandKind::Session { exchange: ExchangeId(2), session };
    let close = [session(TradingSession::Closed)];
    let night = [session(TradingSession::Closed), session(TradingSession::Continuous)];
    let day = [CommandKind::TradingDay { day: Day(3) }];
    let exchange = ExchangeId(2);
    let (open, since) = (TradingSession::Continuous, Timestamp(1));
    let hours = CommandKind::Schedule { exchange, session: open, since, has_hours: true };
    let day_with_hours = [hours, day[0]];
    let expire = [CommandKind::Expire { security: OUTSIDE, price: price("9") }];
    type Case<'a> = (Tif, Timestamp, u64, &'a [CommandKind], Option<Reason>);
    let cases: [Case<'_>; 12] = [
        (Tif::Day, Timestamp::ZERO, 0, &[], None),
        (Tif::Day, Timestamp::ZERO, 0, &night, Some(Reason::ExpiredDay)),
        (Tif::Gtc, Timestamp::ZERO, 0, &night, None),
        (Tif::Day, Timestamp::ZERO, 0, &day, Some(Reason::ExpiredDay)),
        (Tif::Gtc, Timestamp::ZERO, 0, &day, None),
        (Tif::Day, Timestamp::ZERO, 0, &day_with_hours, None),
        (Tif::Day, Timestamp::ZERO, 0, &close, Some(Reason::ExpiredDay)),
        (Tif::Gtc, Timestamp::ZERO, 0, &close, None),
        (Tif::Gtc, Timestamp::ZERO, 0, &expire, Some(Reason::SecurityExpired)),
        (Tif::Gtd, later, later.0 - 2, &[], None),
        (Tif::Gtd, later, later.0 - 1, &[], Some(Reason::ExpiredGtd)),
        (Tif::Gtd, later, later.0, &[], Some(Reason::ExpiredGtd)),
    ];
    for (tif, tif_date, at, commands, expected) in cases {
        let mut bench = Bench::new();
        bench.last(OUTSIDE, "20");
        let terms = Terms { security: OUTSIDE, tif, tif_date, ..stop(Side::Buy, 3, "20") };
        let (order, events) = bench.submit(terms);
        assert_eq!(venue_requests(&events), [VenueRequest::New]);
        for connected in [false, true] {
            bench.send(CommandKind::Adapter { adapter: ADAPTER, connected });
        }
        commands.iter().for_each(|command| _ = bench.send(*command));
        bench.reload();
        bench.now = bench.now.max(at);
        let unknown = standing("0", "0", VenueState::Rejected(Reason::UnknownOrder));
        let events = bench.report(order, unknown);
        let ended = events.iter().find_map(|body| match body {
            EventKind::Status(report) if report.what == ExecType::Expired => Some(report.reason),
            _ => None,
        });
        assert_eq!(ended, expected, "{tif:?} {commands:?}");
    }
}
