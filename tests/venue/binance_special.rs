//! Special terms at Binance Spot: the venue hides a part of an order, and takes no others.

use pitlane_engine::number::Qty;
use pitlane_engine::reason::Reason;
use pitlane_engine::terms::{Changes, ExecInst, SpecialTerms, Status};
use pitlane_tests::binance::BinanceHarness;
use pitlane_tests::test_market::qty;

fn shown(text: &str) -> SpecialTerms {
    SpecialTerms { max_floor: Some(qty(text)), ..SpecialTerms::default() }
}

fn submit(harness: &mut BinanceHarness, id: &str, special: SpecialTerms) -> (Status, Reason) {
    harness.shard.submit_special(id, "10", "150", special);
    harness.settle();
    let order = harness.order(id);
    (order.last.status, order.last.reason)
}

#[test]
fn an_order_shows_only_a_part_of_its_quantity() {
    let mut harness = BinanceHarness::connected();
    assert_eq!(submit(&mut harness, "a", shown("4")), (Status::New, Reason::None));
    assert_eq!(submit(&mut harness, "b", shown("10")), (Status::New, Reason::None));
    let icebergs: Vec<Qty> = harness.exchange.orders.values().map(|order| order.iceberg_qty).collect();
    assert_eq!(icebergs, [qty("4"), Qty::ZERO]);
}

#[test]
fn what_an_order_shows_cannot_be_changed_even_after_a_restart() {
    let mut harness = BinanceHarness::connected();
    submit(&mut harness, "a", shown("4"));
    submit(&mut harness, "b", SpecialTerms { min_qty: Some(Qty::ZERO), ..SpecialTerms::default() });
    let refused = |harness: &BinanceHarness| harness.shard.refusals.last().map(|refusal| refusal.reason);
    for round in 0..2 {
        let id = |text: &str| format!("{text}{round}");
        harness.replace(&id("k"), "a", Changes::default().with_qty(qty("8")));
        assert_eq!(refused(&harness), Some(Reason::VenueUnsupported), "round {round}");
        harness.shard.refusals.clear();
        harness.replace(&id("r"), "a", Changes::default().with_qty(qty("8")).with_special(false));
        assert_eq!(refused(&harness), Some(Reason::VenueUnsupported), "round {round}");
        harness.shard.refusals.clear();
        harness.shard.replace_special(&id("s"), "b", Changes::default(), shown("4"));
        harness.settle();
        assert_eq!(refused(&harness), Some(Reason::VenueUnsupported), "round {round}");
        harness.shard.refusals.clear();
        harness.restart();
        assert!(harness.connect(), "it connects again");
    }
    assert!(harness.exchange.orders.values().all(|order| order.qty == qty("10")));
}

#[test]
fn terms_that_the_venue_does_not_have_are_refused() {
    let mut harness = BinanceHarness::connected();
    let exec_inst = ExecInst::parse(b"G").unwrap_or_default();
    let cases = [
        (SpecialTerms { exec_inst, ..SpecialTerms::default() }, Reason::ExecInstNotTaken),
        (SpecialTerms { min_qty: Some(qty("1")), ..SpecialTerms::default() }, Reason::MinQtyNotTaken),
        (shown("0"), Reason::MaxFloorNotTaken),
    ];
    for (at, (special, reason)) in cases.into_iter().enumerate() {
        assert_eq!(submit(&mut harness, &format!("o{at}"), special), (Status::Rejected, reason));
    }
    assert!(harness.exchange.orders.is_empty());
}
