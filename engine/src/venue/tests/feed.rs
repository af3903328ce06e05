//! Market orders that wait, resting orders as the feed goes by, and the queue before them.

use super::*;

// A waiting market order.

#[test]
fn a_waiting_market_order_is_met_before_anything_else_at_the_arriving_limit() {
    let mut desk = desk();
    desk.market(1, Buy, 5);
    desk.market(2, Buy, 5);
    assert_eq!(desk.told(), []);
    desk.limit(3, Buy, 5, 105);
    desk.order(4, Sell, 12, Some(100), Tif::Day);
    let fills = [(4, 5, 100), (1, 5, 100), (4, 5, 100), (2, 5, 100), (4, 2, 105), (3, 2, 105)];
    assert_eq!(desk.told(), fills.map(|(slot, q, p)| filled(slot, q, p)));
}

#[test]
fn two_market_orders_do_not_meet() {
    let mut desk = desk();
    desk.market(1, Buy, 5);
    desk.market(2, Sell, 5);
    assert_eq!(desk.told(), []);
    assert_eq!((desk.venue.remaining(1), desk.venue.remaining(2)), (Some(qty(5)), Some(qty(5))));
    desk.order(3, Sell, 5, None, Tif::Ioc);
    assert_eq!(desk.told(), [(3, Canceled(Reason::Ioc))]);
}

#[test]
fn on_a_quote_waiting_market_orders_trade_oldest_first_each_to_its_end() {
    let mut desk = desk_with(VenueSettings { quote_levels: 2, ..VenueSettings::default() });
    desk.market(1, Buy, 6);
    desk.market(2, Sell, 3);
    desk.market(3, Buy, 6);
    desk.told();
    desk.quote(99, 5, 100, 5);
    assert_eq!(desk.told(), [filled(1, 5, 100), filled(1, 1, 101), filled(2, 3, 99), filled(3, 4, 101)]);
    assert_eq!(desk.venue.remaining(3), Some(qty(2)));
    // It keeps its place: it is still ahead of whoever comes now.
    desk.market(4, Buy, 1);
    desk.quote(99, 5, 100, 6);
    assert_eq!(desk.told(), [filled(3, 2, 100), filled(4, 1, 100)]);
    desk.order(5, Sell, 1, Some(50), Tif::Day);
    assert_eq!(desk.told(), [filled(5, 1, 99)], "nobody waits any more");
}

#[test]
fn a_waiting_market_order_is_cancelled_rather_than_meet_its_own_account() {
    let mut desk = desk();
    desk.venue.halt(0, true);
    desk.order_of(1, 1, Buy, 5, None, Tif::Day);
    desk.venue.halt(0, false);
    desk.told();
    desk.order_of(1, 2, Sell, 5, Some(100), Tif::Day);
    assert_eq!(desk.told(), [(2, Canceled(Reason::SelfTrade))]);
    desk.order_of(1, 3, Sell, 5, Some(100), Tif::Fok);
    assert_eq!(desk.told(), [(3, Canceled(Reason::Fok))]);
    assert_eq!(desk.venue.remaining(1), Some(qty(5)));
}

#[test]
fn a_waiting_market_order_stops_at_the_band() {
    let mut desk = desk_with(VenueSettings { band_bp: 100, ..VenueSettings::default() });
    desk.trade(100, 1);
    desk.market(1, Buy, 5);
    desk.order(2, Sell, 5, Some(50), Tif::Fok);
    assert_eq!(desk.told(), [(2, Canceled(Reason::Fok))]);
    desk.order(3, Sell, 5, Some(50), Tif::Day);
    assert_eq!(desk.told(), [(3, Canceled(Reason::PriceBand))]);
    desk.quote(99, 1, 101, 1);
    assert_eq!(desk.told(), [filled(1, 1, 101), (1, Canceled(Reason::PriceBand))]);
}

// Resting orders and the feed.

#[test]
fn a_feed_trade_fills_better_buys_at_their_limits_best_first_up_to_its_size() {
    let mut desk = desk();
    desk.limit(1, Buy, 5, 101);
    desk.limit(2, Buy, 5, 102);
    desk.limit(3, Buy, 5, 101);
    desk.trade(100, 12);
    assert_eq!(desk.told(), [filled(2, 5, 102), filled(1, 5, 101), filled(3, 2, 101)]);
    desk.trade(100, 0);
    assert_eq!(desk.told(), [filled(3, 3, 101)]);
}

#[test]
fn a_feed_trade_fills_sells_below_it_with_its_whole_size_again() {
    let mut desk = desk();
    desk.venue.halt(0, true);
    desk.limit(1, Sell, 5, 99);
    desk.limit(2, Sell, 5, 98);
    desk.limit(3, Sell, 5, 100);
    desk.venue.halt(0, false);
    desk.told();
    desk.limit(4, Buy, 5, 97);
    desk.trade(100, 12);
    assert_eq!(desk.told(), [filled(2, 5, 98), filled(1, 5, 99), filled(3, 2, 100)]);
    desk.trade(97, 6);
    assert_eq!(desk.told(), [filled(4, 5, 97)]);
}

#[test]
fn a_feed_trade_between_two_ticks_fills_nobody_at_a_very_price() {
    let mut desk = desk();
    desk.limit(1, Buy, 5, 100);
    desk.limit(2, Sell, 5, 102);
    let half = Price::parse(b"100.5").unwrap();
    desk.venue.trade(0, &Trade { price: half, size: qty(50), at: Timestamp(3) });
    assert_eq!(desk.told(), []);
    assert_eq!((desk.venue.market(0).last, desk.venue.market(0).at), (half, Timestamp(3)));
    let below = Price::parse(b"99.5").unwrap();
    desk.venue.trade(0, &Trade { price: below, size: qty(50), at: Timestamp(3) });
    assert_eq!(desk.told(), [filled(1, 5, 100)]);
}

#[test]
fn a_quote_that_goes_through_a_resting_order_fills_it_at_its_limit_out_of_the_shown_size() {
    let mut desk = desk();
    desk.limit(1, Buy, 5, 100);
    desk.limit(2, Buy, 5, 101);
    desk.limit(3, Sell, 5, 105);
    desk.quote(90, 5, 99, 7);
    assert_eq!(desk.told(), [filled(2, 5, 101), filled(1, 2, 100)]);
    desk.quote(90, 6, 99, 7);
    assert_eq!(desk.told(), [], "the ask has not changed and is used up");
    desk.quote(106, 6, 107, 7);
    assert_eq!(desk.told(), [filled(3, 5, 105)]);
}

#[test]
fn at_the_very_price_nothing_fills_by_quote() {
    let mut desk = desk();
    desk.limit(1, Buy, 5, 100);
    desk.quote(99, 5, 100, 7);
    assert_eq!(desk.told(), []);
}

#[test]
fn the_model_through_fills_nothing_at_the_very_price() {
    let mut desk = model(FillModel::Through);
    desk.limit(1, Buy, 5, 100);
    desk.trade(100, 1000);
    assert_eq!(desk.told(), []);
    desk.trade(99, 1000);
    assert_eq!(desk.told(), [filled(1, 5, 100)]);
}

#[test]
fn the_model_touch_knows_no_queue_and_fills_by_a_quote_at_the_very_price() {
    let mut desk = model(FillModel::Touch);
    desk.quote(100, 50, 105, 50);
    desk.limit(1, Buy, 5, 100);
    desk.trade(100, 3);
    assert_eq!(desk.told(), [filled(1, 3, 100)]);
    desk.quote(99, 50, 100, 50);
    assert_eq!(desk.told(), [filled(1, 2, 100)]);
}

// The queue ahead.

#[test]
fn a_trade_at_the_price_takes_from_the_queue_ahead_first() {
    let mut desk = desk();
    desk.quote(100, 50, 105, 50);
    desk.limit(1, Buy, 5, 100);
    desk.limit(2, Buy, 5, 100);
    desk.trade(100, 48);
    assert_eq!(desk.told(), []);
    desk.trade(100, 8);
    assert_eq!(desk.told(), [filled(1, 5, 100), filled(2, 1, 100)]);
    desk.trade(100, 0);
    assert_eq!(desk.told(), [filled(2, 4, 100)], "nothing is ahead any more");
}

#[test]
fn a_trade_of_unknown_size_does_not_pass_the_queue() {
    let mut desk = desk();
    desk.quote(100, 50, 105, 50);
    desk.limit(1, Buy, 5, 100);
    desk.trade(100, 0);
    assert_eq!(desk.told(), []);
}

#[test]
fn the_queue_counts_what_the_quote_shows_and_was_not_consumed() {
    let mut desk = desk();
    desk.quote(100, 50, 105, 50);
    desk.order(1, Sell, 45, Some(100), Tif::Ioc);
    desk.told();
    desk.limit(2, Buy, 5, 100);
    desk.trade(100, 6);
    assert_eq!(desk.told(), [filled(2, 1, 100)]);
}

#[test]
fn a_smaller_shown_size_shrinks_the_queue_in_proportion_rounded_up_and_a_larger_one_does_not_lengthen_it() {
    let mut desk = desk();
    desk.quote(100, 50, 105, 50);
    desk.limit(1, Buy, 5, 100);
    desk.trade(100, 20);
    desk.quote(100, 90, 105, 50);
    // 30 ahead of 90 shown; a third of it is 10.
    desk.quote(100, 30, 105, 50);
    desk.trade(100, 11);
    assert_eq!(desk.told(), [filled(1, 1, 100)]);
    let mut queue = FeedQueue { ticks: 1, ahead: Qty::from_raw(7), shown: Qty::from_raw(10) };
    queue.resize(Qty::from_raw(5));
    assert_eq!((queue.ahead.raw(), queue.shown.raw()), (4, 5));
}

#[test]
fn the_queue_is_set_when_the_bid_moves_to_the_price_and_forgotten_when_it_leaves() {
    let mut desk = desk();
    desk.limit(1, Sell, 5, 100);
    desk.quote(90, 5, 100, 10);
    desk.trade(100, 10);
    assert_eq!(desk.told(), []);
    desk.quote(90, 5, 101, 10);
    desk.trade(100, 1);
    assert_eq!(desk.told(), [filled(1, 1, 100)], "better than the ask: no queue");
    desk.quote(90, 5, 100, 20);
    desk.trade(100, 21);
    assert_eq!(desk.told(), [filled(1, 1, 100)]);
    desk.quote(90, 5, 100, 0);
    desk.trade(100, 1);
    assert_eq!(desk.told(), [filled(1, 1, 100)], "no quote, no queue");
}

#[test]
fn the_queue_is_set_anew_when_nobody_else_rests_at_the_price() {
    let mut desk = desk();
    desk.quote(100, 10, 105, 50);
    desk.limit(1, Buy, 5, 100);
    desk.trade(100, 9);
    desk.venue.cancel(1);
    desk.told();
    desk.limit(2, Buy, 5, 100);
    desk.trade(100, 10);
    assert_eq!(desk.told(), []);
}

#[test]
fn of_orders_behind_the_bid_nobody_trades_at_the_very_price() {
    let mut desk = desk();
    desk.quote(101, 10, 105, 50);
    desk.limit(1, Buy, 5, 100);
    desk.trade(100, 500);
    assert_eq!(desk.told(), []);
    desk.trade(99, 500);
    assert_eq!(desk.told(), [filled(1, 5, 100)]);
}
