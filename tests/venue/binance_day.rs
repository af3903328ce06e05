//! Orders for the day at Binance Spot, which has none: they end with our trading day, whatever
//! happens to the connection and to the process meanwhile.

use pitlane_engine::reason::Reason;
use pitlane_engine::terms::{Changes, Status, Tif};
use pitlane_engine::time::NS_PER_DAY;
use pitlane_tests::binance::BinanceHarness;
use pitlane_tests::fix::seconds;
use pitlane_tests::test_market::{price, qty};

/// Seconds from the time at which the tests begin to the end of the trading day, and one more.
const TO_THE_END_S: u64 = 16 * 3_600 + 1;

/// Returns a harness with an order for the day that rests at the venue.
fn resting() -> BinanceHarness {
    let mut harness = BinanceHarness::connected();
    harness.submit_for_the_day("a", "10", "150");
    assert_eq!(harness.order("a").last.status, Status::New);
    let placed = &harness.exchange.orders[&1];
    assert_eq!((placed.time_in_force.as_str(), placed.kind.as_str()), ("GTC", "LIMIT"));
    harness
}

/// Checks that the order has ended with its day, here and at the venue, and was cancelled once.
fn assert_ended(harness: &BinanceHarness, context: &str) {
    let ours = harness.order("a").last;
    assert_eq!((ours.status, ours.reason), (Status::Expired, Reason::ExpiredDay), "{context}");
    assert!(!ours.in_doubt, "{context}");
    let theirs = &harness.exchange.orders[&1];
    assert_eq!(theirs.status, "CANCELED", "{context}");
    assert_eq!(theirs.client_id, format!("D{}", theirs.placed_as), "{context}");
    assert_eq!(ours.cum_qty, theirs.executed, "{context}");
}

#[test]
fn an_order_for_the_day_is_cancelled_when_the_day_is_over() {
    let mut harness = resting();
    harness.submit("b", "10", "149");
    harness.exchange.fill(1, qty("4"), price("150"));
    harness.settle();
    harness.wait(NS_PER_DAY);
    assert_ended(&harness, "after a day");
    assert_eq!(harness.order("b").last.status, Status::New, "it is good till cancelled");
    assert_eq!(harness.exchange.received["order.cancel"], 1);
}

#[test]
fn the_day_may_end_while_the_venue_is_away_or_the_process_is_down() {
    for restarts in [false, true] {
        let mut harness = resting();
        harness.disconnect();
        if restarts {
            harness.restart();
        }
        harness.now = harness.now.plus(NS_PER_DAY);
        assert!(harness.connect());
        harness.wait(seconds(20));
        assert_ended(&harness, if restarts { "restarted" } else { "reconnected" });
    }
}

#[test]
fn a_restart_within_the_day_does_not_end_the_order() {
    let mut harness = resting();
    harness.restart();
    harness.now = harness.now.plus(seconds(60));
    assert!(harness.connect());
    harness.wait(seconds(60));
    assert_eq!(harness.order("a").last.status, Status::New);
    harness.wait(NS_PER_DAY);
    assert_ended(&harness, "the order of an earlier process");
}

#[test]
fn a_cancel_whose_answer_is_lost_is_found_by_its_id() {
    for restarts in [false, true] {
        let mut harness = resting();
        harness.holds_changes = true;
        harness.wait(seconds(TO_THE_END_S));
        assert_eq!(harness.held_requests.len(), 1, "the cancel");
        // The venue handles it, and its answer and event do not arrive.
        harness.is_mute = true;
        harness.answer_held();
        harness.disconnect();
        (harness.holds_changes, harness.is_mute) = (false, false);
        if restarts {
            harness.restart();
        }
        harness.wait(seconds(60));
        assert_ended(&harness, if restarts { "restarted" } else { "reconnected" });
    }
}

#[test]
fn a_refused_cancel_is_repeated_and_a_filled_order_is_filled() {
    let mut harness = resting();
    harness.exchange.refuses_change = true;
    harness.wait(NS_PER_DAY);
    assert_ended(&harness, "after a refusal");
    assert_eq!(harness.exchange.received["order.cancel"], 2);

    let mut harness = resting();
    harness.exchange.fill(1, qty("10"), price("150"));
    harness.exchange.events.clear();
    harness.wait(NS_PER_DAY);
    assert_eq!(harness.order("a").last.status, Status::Filled);
}

#[test]
fn a_change_of_the_time_in_force_decides_about_the_end() {
    let mut harness = resting();
    harness.submit("b", "10", "149");
    harness.replace("a2", "a", Changes::default().with_tif(Tif::Gtc));
    harness.replace("b2", "b", Changes::default().with_limit(price("148")).with_tif(Tif::Day));
    harness.wait(NS_PER_DAY);
    assert_eq!(harness.order("a").last.status, Status::New);
    let ours = harness.order("b").last;
    assert_eq!((ours.status, ours.reason), (Status::Expired, Reason::ExpiredDay));
}

#[test]
fn requests_of_a_client_wait_for_the_end_of_the_day() {
    let mut harness = resting();
    harness.holds_changes = true;
    harness.wait(seconds(TO_THE_END_S));
    harness.cancel("c", "a");
    harness.replace("r", "a", Changes::default().with_limit(price("151")));
    assert_eq!(harness.held_requests.len(), 1, "the venue has one cancel only");
    harness.holds_changes = false;
    harness.answer_held();
    assert_ended(&harness, "with requests of the client");
}
