//! The Binance adapter with a venue, a network or a process that fails: after everything is
//! connected again, our orders are as the venue has them, each was placed once, and every trade is
//! counted once.

use pitlane_dialogue::binance::NextOrder;
use pitlane_engine::event::Alert;
use pitlane_engine::reason::Reason;
use pitlane_engine::terms::{Changes, Status};
use pitlane_engine::time::NS_PER_DAY;
use pitlane_protocols::binance::{HELD_ORDERS_MAX, LOOKUPS_IN_FLIGHT_MAX, REQUESTS_MAX};
use pitlane_protocols::venue::VenueAdapter;
use pitlane_tests::binance::BinanceHarness;
use pitlane_tests::fix::seconds;
use pitlane_tests::test_market::{price, qty};

/// The scenario that is cut: orders that trade at once and that rest, a cancel, a reduction, a new
/// price, and trades of resting orders.
fn trade(harness: &mut BinanceHarness) {
    harness.exchange.mark = Some(price("200"));
    harness.submit("a", "5", "201");
    harness.submit("b", "10", "150");
    harness.submit("c", "10", "151");
    harness.submit("d", "10", "152");
    trade_at_venue(harness, "150", "4");
    harness.cancel("a2", "a");
    harness.cancel("b2", "b");
    harness.replace("c2", "c", Changes::default().with_qty(qty("6")));
    harness.replace("d2", "d", Changes::default().with_limit(price("153")));
    trade_at_venue(harness, "151", "2");
}

/// Trades a part of the resting order with this price, if the venue has it.
fn trade_at_venue(harness: &mut BinanceHarness, limit: &str, part: &str) {
    let open = harness.exchange.orders.values().find(|order| order.is_open() && order.price == price(limit));
    if let Some(id) = open.map(|order| order.id) {
        harness.exchange.fill(id, qty(part), price(limit));
        harness.settle();
    }
}

/// Checks that our books are those of the venue.
fn compare(harness: &BinanceHarness, context: &str) {
    for id in ["a", "b", "c", "d"] {
        let ours = harness.order(id);
        let quantity = if id == "a" { "5" } else { "10" };
        assert!(!ours.last.in_doubt, "{context}: {id} is still unknown");
        // Our order is one order at the venue, or several of which only the last was not replaced.
        let limits = match id {
            "a" => ["201", "201"],
            "b" => ["150", "150"],
            "c" => ["151", "151"],
            _ => ["152", "153"],
        };
        let theirs: Vec<_> = harness
            .exchange
            .orders
            .values()
            .filter(|order| limits.iter().any(|limit| order.price == price(limit)))
            .collect();
        let executed: i64 = theirs.iter().map(|order| order.executed.raw()).sum();
        assert_eq!(ours.last.cum_qty.raw(), executed, "{context}: {id} {theirs:?}");
        let is_open = matches!(ours.last.status, Status::New | Status::PartiallyFilled);
        let open = theirs.iter().filter(|order| order.is_open()).count();
        assert_eq!(open, usize::from(is_open), "{context}: {id} {:?} {theirs:?}", ours.last);
        let placed: std::collections::BTreeSet<&str> =
            theirs.iter().map(|order| order.placed_as.as_str()).collect();
        assert!(placed.len() <= 1, "{context}: {id} has one id");
        assert!(theirs.len() <= 2, "{context}: {id} of {quantity} was placed once and replaced once");
        let trades =
            harness.exchange.trades.iter().filter(|trade| theirs.iter().any(|order| order.id == trade.order));
        assert_eq!(ours.fills, trades.count(), "{context}: {id}");
    }
    let wrong = harness.shard.alerts.iter().find(|alert| {
        matches!(alert, Alert::Overfill | Alert::UnexpectedReport | Alert::UnknownReport | Alert::LateFill)
    });
    assert_eq!(wrong, None, "{context}");
}

/// Gives the adapter the time to look everything up.
fn recover(harness: &mut BinanceHarness) {
    (harness.cut_to_venue, harness.cut_to_us, harness.is_mute) = (None, None, false);
    harness.wait(seconds(30));
}

#[test]
fn nothing_is_lost_or_doubled_wherever_the_connection_breaks() {
    let mut whole = BinanceHarness::connected();
    trade(&mut whole);
    compare(&whole, "without a cut");
    assert_eq!(whole.order("a").last.status, Status::Filled);
    assert_eq!(whole.order("b").last.status, Status::Canceled);
    assert_eq!(whole.order("c").last.status, Status::PartiallyFilled);
    assert_eq!(whole.order("d").last.status, Status::New);
    let health = whole.session.status(whole.now);
    assert!(health.messages_out > 10, "the scenario has so many messages: {health:?}");
    // After each byte in the full form (`make faults`), otherwise after some.
    let full = std::env::var("PITLANE_FAULTS").is_ok_and(|part| part == "full");
    for cut in (0..4_000).step_by(if full { 1 } else { 23 }) {
        let mut harness = BinanceHarness::connected();
        harness.cut_to_venue = Some(cut);
        trade(&mut harness);
        recover(&mut harness);
        compare(&harness, &format!("cut after {cut} bytes to the venue"));
    }
    for cut in (0..20_000).step_by(if full { 1 } else { 101 }) {
        let mut harness = BinanceHarness::connected();
        harness.cut_to_us = Some(cut);
        trade(&mut harness);
        recover(&mut harness);
        compare(&harness, &format!("cut after {cut} bytes of the venue"));
    }
}

#[test]
fn a_process_that_is_killed_finds_everything_at_the_venue() {
    for cut in (0..4_000).step_by(97) {
        let mut harness = BinanceHarness::connected();
        harness.cut_to_venue = Some(cut);
        trade(&mut harness);
        harness.restart();
        trade_at_venue(&mut harness, "152", "1");
        recover(&mut harness);
        compare(&harness, &format!("killed after {cut} bytes to the venue"));
    }
}

#[test]
fn each_phase_of_the_logon_may_be_cut() {
    for cut in (0..2_000).step_by(13) {
        let mut harness = BinanceHarness::new(cut % 2 == 0);
        harness.cut_to_us = Some(cut);
        harness.connect();
        recover(&mut harness);
        harness.submit("a", "1", "100");
        assert_eq!(harness.order("a").last.status, Status::New, "cut after {cut} bytes");
    }
}

#[test]
fn an_order_without_an_answer_is_looked_up_and_not_sent_again() {
    let mut harness = BinanceHarness::connected();
    harness.exchange.mark = Some(price("200"));
    harness.exchange.next_order = NextOrder::Timeout;
    harness.submit("a", "3", "201");
    harness.wait(seconds(10));
    assert_eq!((harness.order("a").last.status, harness.order("a").fills), (Status::Filled, 2));
    assert_eq!(harness.exchange.received["order.status"], 1, "events showed no more than the lookup found");
    // It rests, and every message of the venue is lost until the adapter gives the connection up.
    harness.is_mute = true;
    harness.submit("b", "3", "150");
    harness.wait(seconds(20));
    assert!(harness.order("b").last.in_doubt);
    recover(&mut harness);
    assert_eq!(harness.order("b").last.status, Status::New);
    assert!(!harness.order("b").last.in_doubt);
    assert_eq!(harness.exchange.received["order.place"], 2);
}

#[test]
fn an_order_that_never_arrived_is_given_up_only_after_its_receive_window() {
    let mut harness = BinanceHarness::connected();
    harness.cut_to_venue = Some(10);
    harness.submit("a", "3", "150");
    assert!(harness.order("a").last.in_doubt);
    harness.wait(seconds(2));
    assert!(harness.is_connected() && harness.order("a").last.in_doubt, "it could still arrive");
    harness.wait(seconds(4));
    let last = harness.order("a").last;
    assert_eq!((last.status, last.reason), (Status::Rejected, Reason::VenueUnavailable));
    assert!(harness.exchange.orders.is_empty());
    assert_eq!(harness.exchange.received.get("order.place"), None);
}

#[test]
fn limits_of_the_venue_are_kept_before_it_complains() {
    let mut harness = BinanceHarness::new(true);
    harness.exchange.orders_per_10_s = Some(5);
    assert!(harness.connect());
    for nth in 0..8 {
        harness.submit(&format!("o{nth}"), "1", "150");
    }
    assert_eq!(harness.exchange.received["order.place"], 5);
    for nth in 5..8 {
        let last = harness.order(&format!("o{nth}")).last;
        assert_eq!((last.status, last.reason), (Status::Rejected, Reason::VenueRate));
    }
    harness.cancel("c0", "o0");
    assert_eq!(harness.order("o0").last.status, Status::Canceled, "cancels have no such limit");
    harness.wait(seconds(10));
    harness.submit("late", "1", "150");
    assert_eq!(harness.order("late").last.status, Status::New, "a new interval has begun");
    let limits = harness.session.status(harness.now).health.limits;
    assert!(
        limits.iter().any(|limit| (limit.name, limit.used, limit.allowed) == ("orders", 1, 5)),
        "{limits:?}"
    );
}

#[test]
fn a_ban_stops_all_requests_and_connections_until_its_end() {
    let mut harness = BinanceHarness::connected();
    harness.submit("a", "1", "150");
    let until_ms = harness.exchange.now_ms + 120_000;
    harness.exchange.banned_until_ms = until_ms;
    harness.submit("b", "1", "150");
    let last = harness.order("b").last;
    assert_eq!((last.status, last.reason), (Status::Rejected, Reason::VenueRate));
    let received: u64 = harness.exchange.received.values().sum();
    harness.submit("c", "1", "150");
    harness.cancel("a2", "a");
    assert_eq!(harness.order("c").last.reason, Reason::VenueRate);
    assert_eq!(harness.order("a").last.status, Status::New);
    harness.disconnect();
    harness.wait(seconds(100));
    assert!(!harness.is_connected(), "it does not even connect");
    assert_eq!(harness.exchange.received.values().sum::<u64>(), received);
    harness.wait(seconds(40));
    assert!(harness.is_connected());
    harness.submit("d", "1", "150");
    assert_eq!(harness.order("d").last.status, Status::New);
}

#[test]
fn the_time_is_not_asked_for_before_the_end_of_a_ban() {
    let received = |harness: &BinanceHarness| harness.exchange.received.values().sum::<u64>();
    for skew_ms in [-3_600_000, 0, 3_600_000] {
        let mut harness = BinanceHarness::new(true);
        harness.skew_ms = skew_ms;
        assert!(harness.connect(), "{skew_ms}");
        harness.exchange.banned_until_ms = harness.exchange.now_ms + 120_000;
        harness.submit("a", "1", "150");
        assert_eq!(harness.order("a").last.reason, Reason::VenueRate);
        let (before, times) = (received(&harness), harness.exchange.received["time"]);
        // A refusal that shows that the clocks have moved apart is no reason either.
        harness.deliver_message(r#"{"id":99999,"status":400,"error":{"code":-1021,"msg":"late"}}"#);
        harness.wait(seconds(119));
        assert_eq!(received(&harness), before, "{skew_ms}");
        assert!(harness.is_connected(), "the venue has no reason to end the connection");
        harness.wait(seconds(2));
        assert_eq!(harness.exchange.received["time"], times + 1, "{skew_ms}");
        harness.submit("b", "1", "150");
        assert_eq!(harness.order("b").last.status, Status::New);
    }
}

#[test]
fn the_clock_of_the_venue_may_differ_and_move() {
    for skew_ms in [-3_600_000, 3_600_000] {
        let mut harness = BinanceHarness::new(false);
        harness.skew_ms = skew_ms;
        assert!(harness.connect(), "{skew_ms}");
        harness.submit("a", "1", "150");
        assert_eq!(harness.order("a").last.status, Status::New);
        let offset = harness.session.status(harness.now).health.clock_offset_us;
        assert!(offset.is_some_and(|offset| (offset / 1_000 - skew_ms).abs() <= 1), "{offset:?}");
        // It is set by ten seconds: the first refusal shows it, and the next order is taken.
        harness.skew_ms += 10_000;
        harness.submit("b", "1", "150");
        assert_eq!(harness.order("b").last.status, Status::Rejected);
        harness.submit("c", "1", "150");
        assert_eq!(harness.order("c").last.status, Status::New);
    }
}

#[test]
fn a_connection_is_renewed_before_the_venue_ends_it_and_when_the_venue_says_so() {
    let mut harness = BinanceHarness::connected();
    harness.submit("a", "1", "150");
    let before = harness.exchange.received["session.logon"];
    harness.wait(NS_PER_DAY - seconds(30));
    assert_eq!(harness.exchange.received["session.logon"], before + 1);
    for (nth, event) in ["serverShutdown", "eventStreamTerminated"].into_iter().enumerate() {
        harness.deliver_message(&format!("{{\"event\":{{\"e\":\"{event}\",\"E\":1770123456789}}}}"));
        harness.settle();
        assert!(!harness.is_connected());
        harness.wait(seconds(10));
        assert!(harness.is_connected(), "{nth}");
        assert!(!harness.order("a").last.in_doubt);
    }
}

#[test]
fn a_venue_that_does_not_answer_the_logon_is_asked_again_later() {
    let mut harness = BinanceHarness::new(true);
    harness.is_mute = true;
    assert!(!harness.connect());
    let mut attempts = 0;
    for _ in 0..600 {
        attempts += u64::from(!harness.is_connected());
        harness.wait(seconds(1));
    }
    assert!(attempts > 10, "it waits between two attempts: {attempts}");
    harness.is_mute = false;
    harness.wait(seconds(120));
    harness.submit("a", "1", "150");
    assert_eq!(harness.order("a").last.status, Status::New);
}

#[test]
fn a_change_that_the_venue_cannot_make_is_refused() {
    let mut harness = BinanceHarness::connected();
    harness.submit("a", "10", "150");
    // A higher quantity and another price are a new order in the place of the old one.
    let changes = Changes::default().with_qty(qty("12")).with_limit(price("149"));
    harness.replace("a1", "a", changes);
    assert_eq!(harness.order("a").last.status, Status::New);
    let open: Vec<_> = harness.exchange.orders.values().filter(|order| order.is_open()).collect();
    assert_eq!((open.len(), open[0].qty, open[0].price), (1, qty("12"), price("149")));
    // Not once a part is filled, for the rest cannot be known.
    trade_at_venue(&mut harness, "149", "4");
    harness.replace("a2", "a", Changes::default().with_limit(price("148")));
    assert_eq!(harness.shard.refusals.last().map(|refusal| refusal.reason), Some(Reason::VenueUnsupported));
    harness.replace("a3", "a", Changes::default().with_qty(qty("6")));
    trade_at_venue(&mut harness, "149", "2");
    assert_eq!((harness.order("a").last.status, harness.order("a").last.cum_qty), (Status::Filled, qty("6")));
    compare_trades(&harness, "a", 2);
}

#[test]
fn a_replacement_whose_new_order_is_refused_ends_the_order() {
    let mut harness = BinanceHarness::connected();
    harness.submit("a", "10", "150");
    harness.exchange.next_order = NextOrder::Reject;
    harness.replace("a1", "a", Changes::default().with_limit(price("149")));
    assert_eq!(harness.order("a").last.status, Status::Canceled);
    assert_eq!(harness.shard.refusals.last().map(|refusal| refusal.reason), Some(Reason::InsufficientFunds));
}

fn compare_trades(harness: &BinanceHarness, id: &str, count: usize) {
    assert_eq!((harness.order(id).fills, harness.exchange.trades.len()), (count, count));
}

#[test]
fn an_order_of_many_trades_is_read_in_pages() {
    let mut harness = BinanceHarness::connected();
    harness.submit("a", "3000", "150");
    harness.disconnect();
    for _ in 0..2_345 {
        trade_at_venue(&mut harness, "150", "1");
    }
    recover(&mut harness);
    assert_eq!(harness.order("a").last.cum_qty, qty("2345"));
    compare_trades(&harness, "a", 2_345);
}

#[test]
fn connections_that_end_early_again_and_again_look_up_every_order_in_the_end() {
    let mut harness = BinanceHarness::connected();
    let ids: Vec<String> = (0..60).map(|nth| format!("o{nth}")).collect();
    for id in &ids {
        harness.submit(id, "10", "150");
    }
    harness.disconnect();
    for id in 1..=60 {
        harness.exchange.fill(id, qty("1"), price("150"));
    }
    // A connection carries the logon and a few lookups.
    let is_known = |harness: &BinanceHarness, id: &String| harness.order(id).last.cum_qty == qty("1");
    for _ in 0..60 {
        harness.cut_to_us = Some(10_000);
        harness.wait(seconds(1));
    }
    let missing: Vec<_> = ids.iter().filter(|id| !is_known(&harness, id)).collect();
    assert!(missing.is_empty(), "{missing:?}");
}

#[test]
fn requests_and_lookups_on_the_way_are_bounded() {
    let mut harness = BinanceHarness::connected();
    harness.is_mute = true;
    for nth in 0..REQUESTS_MAX + 10 {
        harness.submit(&format!("o{nth}"), "1", "150");
    }
    let last = harness.order(&format!("o{}", REQUESTS_MAX + 9)).last;
    assert_eq!((last.status, last.reason), (Status::Rejected, Reason::LaneFull));
    assert_eq!(harness.exchange.received["order.place"], REQUESTS_MAX as u64);
    const { assert!(REQUESTS_MAX < HELD_ORDERS_MAX) };
    // Thousands of lookups follow, some at a time, and within the weight of the venue.
    harness.disconnect();
    harness.wait(seconds(1));
    assert_eq!(harness.exchange.received.get("order.status"), None, "the venue is mute");
    harness.is_mute = false;
    harness.disconnect();
    harness.wait(seconds(600));
    assert!((0..REQUESTS_MAX).all(|nth| !harness.order(&format!("o{nth}")).last.in_doubt));
    const { assert!(LOOKUPS_IN_FLIGHT_MAX < REQUESTS_MAX) };
}
