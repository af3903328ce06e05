//! Modifications and cancels, with their answers.

use super::bench::{credit, credit_of, kinds};
use super::outside::{alerts, filled, instructions, venue_requests};
use super::*;
use crate::event::{RequestKind, RequestRefusal};
use crate::terms::{ExecInst, SpecialTerms};

fn refusals(events: &[EventKind]) -> Vec<RequestRefusal> {
    events
        .iter()
        .filter_map(|body| if let EventKind::Refused(refusal) = body { Some(*refusal) } else { None })
        .collect()
}

fn working(bench: &mut Bench, terms: Terms) -> OrderHandle {
    let (order, _) = bench.submit(terms);
    bench.report(order, VenueReport::Accepted);
    order
}

/// Special terms that change nothing, so that every venue takes them.
fn plain_terms() -> SpecialTerms {
    SpecialTerms { exec_inst: ExecInst::parse(b"1").unwrap(), ..SpecialTerms::default() }
}

/// Returns the special terms among the events.
fn special_terms(events: &[EventKind]) -> Vec<SpecialTerms> {
    let terms = events.iter();
    terms
        .filter_map(|body| if let EventKind::SpecialTerms(terms) = body { Some(terms.special) } else { None })
        .collect()
}

#[test]
fn a_modification_may_give_an_order_special_terms_and_keeps_those_it_has() {
    for (terms, venue_answers) in [(limit(Side::Buy, 1, "10", "9"), false), (outside("10"), true)] {
        let mut bench = Bench::new();
        let order = working(&mut bench, terms);
        let current = |bench: &Bench| bench.shard.orders.special.current(order.slot());
        let modify = |bench: &mut Bench, changes| {
            let mut events = bench.modify(order, changes);
            if venue_answers {
                events.extend(bench.report(order, VenueReport::Replaced));
            }
            assert_eq!(kinds(&events).last(), Some(&ExecType::Replaced), "{events:?}");
            events
        };
        bench.send(CommandKind::SpecialTerms(plain_terms()));
        let events = modify(&mut bench, Changes::default().with_special(true));
        assert_eq!(current(&bench), Some(plain_terms()));
        // In front of the terms of the order, and of the instruction to its venue.
        assert_eq!(special_terms(&events).len(), 1 + usize::from(venue_answers));
        let events = modify(&mut bench, Changes::default().with_qty(qty("8")));
        assert_eq!(current(&bench), Some(plain_terms()), "it names none");
        assert_eq!(special_terms(&events).len(), 1 + usize::from(venue_answers));
        let events = modify(&mut bench, Changes::default().with_special(false));
        assert_eq!((current(&bench), special_terms(&events)), (None, vec![]));
    }
}

#[test]
fn a_refused_modification_leaves_the_special_terms_and_releases_its_credit() {
    let mut bench = Bench::new();
    bench.set_limits(Scope::Account(AccountId(3)), credit("1000"));
    let order = working(&mut bench, outside("10"));
    bench.send(CommandKind::SpecialTerms(plain_terms()));
    bench.modify(order, Changes::default().with_qty(qty("20")).with_special(true));
    assert_eq!(credit_of(&bench, 3), money("200.02"));
    let events = bench.report(order, VenueReport::ReplaceRefused(Reason::VenueRejected));
    assert_eq!(refusals(&events)[0].reason, Reason::VenueRejected);
    assert_eq!(credit_of(&bench, 3), money("100.01"));
    assert!(bench.shard.orders.special.is_empty());
    let events = bench.modify(order, Changes::default().with_special(true));
    assert_eq!(refusals(&events)[0].reason, Reason::LaneFull, "they did not arrive");
}

#[test]
fn a_modification_may_give_an_order_a_date_and_take_it_away() {
    let mut bench = Bench::new();
    let (order, _) = bench.submit(limit(Side::Buy, 1, "10", "9"));
    let dated = Changes::default().with_tif(Tif::Gtd).with_tif_date(Timestamp(1_000));
    bench.modify(order, dated);
    bench.modify(order, Changes::default().with_tif(Tif::Gtc));
    bench.now = 2_000;
    assert_eq!(kinds(&bench.send(CommandKind::Timer)), []);
    bench.modify(order, dated.with_tif_date(Timestamp(3_000)));
    bench.now = 3_000;
    assert_eq!(kinds(&bench.send(CommandKind::Timer)), [ExecType::Expired]);
}

#[test]
fn a_modification_to_the_filled_quantity_ends_the_order() {
    let mut bench = Bench::new();
    let (order, _) = bench.submit(limit(Side::Buy, 1, "10", "9"));
    bench.submit(limit(Side::Sell, 2, "4", "9"));
    let events = bench.modify(order, Changes::default().with_qty(qty("4")));
    assert_eq!(reports(&events).last(), Some(&(ExecType::Replaced, Status::Filled, qty("4"))));
    // The rest is cancelled at a venue outside.
    let order = working(&mut bench, outside("10"));
    bench.report(order, filled(1, "4", "9"));
    let events = bench.modify(order, Changes::default().with_qty(qty("4")));
    assert_eq!(venue_requests(&events), [VenueRequest::Cancel]);
    let events = bench.report(order, VenueReport::CancelRefused(Reason::VenueRejected));
    let refused: Vec<_> = refusals(&events).iter().map(|refusal| (refusal.request, refusal.status)).collect();
    assert_eq!(refused, [(RequestKind::Replace, Status::PartiallyFilled)]);
}

#[test]
fn a_cancel_that_waits_for_the_acknowledgement_may_be_refused() {
    let mut bench = Bench::new();
    let (order, _) = bench.submit(outside("10"));
    assert_eq!(venue_requests(&bench.cancel(order)), []);
    let events = bench.report(order, VenueReport::CancelRefused(Reason::VenueRejected));
    assert_eq!(
        refusals(&events).iter().map(|refusal| refusal.request).collect::<Vec<_>>(),
        [RequestKind::Cancel]
    );
    assert_eq!(alerts(&events), []);
}

#[test]
fn the_reason_of_a_cancel_is_that_of_its_request_or_of_the_venue() {
    for (reported, expected) in
        [(Reason::Requested, Reason::KillSwitch), (Reason::VenueCancelled, Reason::VenueCancelled)]
    {
        let mut bench = Bench::new();
        let order = working(&mut bench, outside("10"));
        bench.send(CommandKind::Kill { scope: Scope::Global, on: true });
        let events = bench.report(order, VenueReport::Canceled(reported));
        let reasons = events.iter().filter_map(|body| match body {
            EventKind::Status(report) => Some(report.reason),
            _ => None,
        });
        assert_eq!(reasons.collect::<Vec<_>>(), [expected]);
    }
}

/// Only a cancel that the shard itself has begun needs no answer.
#[test]
fn every_request_of_a_client_is_answered() {
    let mut bench = Bench::new();
    let order = working(&mut bench, outside("10"));
    let without_id = bench.send(CommandKind::Modify { order, id: IntId::NONE, changes: Changes::default() });
    assert_eq!(refusals(&without_id)[0].reason, Reason::BadId);
    let source = Source { origin: Origin::Server, ..CLIENT };
    let body = CommandKind::Cancel { order, id: bench.id() };
    bench.apply(&Command::new(source, 5, body));
    let events = bench.report(order, VenueReport::CancelRefused(Reason::VenueRejected));
    assert_eq!(refusals(&events)[0].request, RequestKind::Cancel);
}

#[test]
fn a_pending_modification_is_sent_again_after_a_lost_connection() {
    for (wanted, expected) in [("12", VenueRequest::Replace), ("4", VenueRequest::Cancel)] {
        let mut bench = Bench::new();
        let order = working(&mut bench, outside("10"));
        bench.report(order, filled(1, "4", "9"));
        bench.modify(order, Changes::default().with_qty(qty(wanted)));
        for connected in [false, true] {
            bench.send(CommandKind::Adapter { adapter: ADAPTER, connected });
        }
        let events = bench.report(order, VenueReport::Reconciled);
        assert_eq!(venue_requests(&events), [expected]);
        assert_eq!(kinds(&bench.report(order, VenueReport::Reconciled)), [], "there was no doubt");
    }
}

#[test]
fn a_refusal_by_a_venue_that_does_not_know_the_order_leads_to_a_query() {
    for (reason, expected) in [
        (Reason::UnknownOrder, &[VenueRequest::Status][..]),
        (Reason::OrderFinished, &[VenueRequest::Status]),
        (Reason::VenueRejected, &[]),
    ] {
        let mut bench = Bench::new();
        let order = working(&mut bench, outside("10"));
        bench.cancel(order);
        let events = bench.report(order, VenueReport::CancelRefused(reason));
        assert_eq!(venue_requests(&events), expected, "{reason:?}");
        bench.report(order, VenueReport::Reconciled);
        let instructed = bench.modify(order, Changes::default().with_qty(qty("12")));
        assert_eq!(instructions(&instructed).len(), 1);
        let events = bench.report(order, VenueReport::ReplaceRefused(reason));
        assert_eq!(venue_requests(&events), expected, "{reason:?}");
    }
}
