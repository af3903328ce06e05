//! Waiting market orders, resting orders under the feed, and the queue ahead of them.

use super::*;

// A waiting market order.

#[test]
fn a_waiting_market_order_is_met_before_anything_else_at_the_arriving_limit() {
    let mut bench = bench();
    bench.market(1, Buy, 5);
    bench.market(2, Buy, 5);
    assert_eq!(bench.outcomes(), []);
    bench.limit(3, Buy, 5, 105);
    bench.order(4, Sell, 12, Some(100), Tif::Day);
    let fills = [(4, 5, 100), (1, 5, 100), (4, 5, 100), (2, 5, 100), (4, 2, 105), (3, 2, 105)];
    assert_eq!(bench.outcomes(), fills.map(|(slot, q, p)| filled(slot, q, p)));
}

#[test]
fn two_market_orders_do_not_meet() {
    let mut bench = bench();
    bench.market(1, Buy, 5);
    bench.market(2, Sell, 5);
    assert_eq!(bench.outcomes(), []);
    assert_eq!((bench.venue.remaining(1), bench.venue.remaining(2)), (Some(qty(5)), Some(qty(5))));
    bench.order(3, Sell, 5, None, Tif::Ioc);
    assert_eq!(bench.outcomes(), [(3, Canceled(Reason::Ioc))]);
}

#[test]
fn on_a_quote_waiting_market_orders_trade_oldest_first_each_to_its_end() {
    let mut bench = desk_with(VenueSettings { quote_levels: 2, ..VenueSettings::default() });
    bench.market(1, Buy, 6);
    bench.market(2, Sell, 3);
    bench.market(3, Buy, 6);
    bench.outcomes();
    bench.quote(99, 5, 100, 5);
    assert_eq!(bench.outcomes(), [filled(1, 5, 100), filled(1, 1, 101), filled(2, 3, 99), filled(3, 4, 101)]);
    assert_eq!(bench.venue.remaining(3), Some(qty(2)));
    // It keeps its place: it is still ahead of later orders.
    bench.market(4, Buy, 1);
    bench.quote(99, 5, 100, 6);
    assert_eq!(bench.outcomes(), [filled(3, 2, 100), filled(4, 1, 100)]);
    bench.order(5, Sell, 1, Some(50), Tif::Day);
    assert_eq!(bench.outcomes(), [filled(5, 1, 99)], "no order waits any more");
}

#[test]
fn a_waiting_market_order_is_cancelled_rather_than_meet_its_own_account() {
    let mut bench = bench();
    bench.venue.halt(0, true);
    bench.order_of(1, 1, Buy, 5, None, Tif::Day);
    bench.venue.halt(0, false);
    bench.outcomes();
    bench.order_of(1, 2, Sell, 5, Some(100), Tif::Day);
    assert_eq!(bench.outcomes(), [(2, Canceled(Reason::SelfTrade))]);
    bench.order_of(1, 3, Sell, 5, Some(100), Tif::Fok);
    assert_eq!(bench.outcomes(), [(3, Canceled(Reason::Fok))]);
    assert_eq!(bench.venue.remaining(1), Some(qty(5)));
}

#[test]
fn a_waiting_market_order_stops_at_the_band() {
    let mut bench = desk_with(VenueSettings { band_bp: 100, ..VenueSettings::default() });
    bench.trade(100, 1);
    bench.market(1, Buy, 5);
    bench.order(2, Sell, 5, Some(50), Tif::Fok);
    assert_eq!(bench.outcomes(), [(2, Canceled(Reason::Fok))]);
    bench.order(3, Sell, 5, Some(50), Tif::Day);
    assert_eq!(bench.outcomes(), [(3, Canceled(Reason::PriceBand))]);
    bench.quote(99, 1, 101, 1);
    assert_eq!(bench.outcomes(), [filled(1, 1, 101), (1, Canceled(Reason::PriceBand))]);
}

// Resting orders and the feed.

#[test]
fn a_feed_trade_fills_better_buys_at_their_limits_best_first_up_to_its_size() {
    let mut bench = bench();
    bench.limit(1, Buy, 5, 101);
    bench.limit(2, Buy, 5, 102);
    bench.limit(3, Buy, 5, 101);
    bench.trade(100, 12);
    assert_eq!(bench.outcomes(), [filled(2, 5, 102), filled(1, 5, 101), filled(3, 2, 101)]);
    bench.trade(100, 0);
    assert_eq!(bench.outcomes(), [filled(3, 3, 101)]);
}

#[test]
fn a_feed_trade_fills_sells_below_it_with_its_whole_size_again() {
    let mut bench = bench();
    bench.venue.halt(0, true);
    bench.limit(1, Sell, 5, 99);
    bench.limit(2, Sell, 5, 98);
    bench.limit(3, Sell, 5, 100);
    bench.venue.halt(0, false);
    bench.outcomes();
    bench.limit(4, Buy, 5, 97);
    bench.trade(100, 12);
    assert_eq!(bench.outcomes(), [filled(2, 5, 98), filled(1, 5, 99), filled(3, 2, 100)]);
    bench.trade(97, 6);
    assert_eq!(bench.outcomes(), [filled(4, 5, 97)]);
}

#[test]
fn a_feed_trade_between_two_ticks_fills_no_order_at_an_exact_price() {
    let mut bench = bench();
    bench.limit(1, Buy, 5, 100);
    bench.limit(2, Sell, 5, 102);
    let half = Price::parse(b"100.5").unwrap();
    bench.venue.trade(0, &Trade { price: half, size: qty(50), at: Timestamp(3) });
    assert_eq!(bench.outcomes(), []);
    assert_eq!((bench.venue.market(0).last, bench.venue.market(0).at), (half, Timestamp(3)));
    let below = Price::parse(b"99.5").unwrap();
    bench.venue.trade(0, &Trade { price: below, size: qty(50), at: Timestamp(3) });
    assert_eq!(bench.outcomes(), [filled(1, 5, 100)]);
}

#[test]
fn a_quote_through_a_resting_order_fills_it_at_its_limit_out_of_the_shown_size() {
    let mut bench = bench();
    bench.limit(1, Buy, 5, 100);
    bench.limit(2, Buy, 5, 101);
    bench.limit(3, Sell, 5, 105);
    bench.quote(90, 5, 99, 7);
    assert_eq!(bench.outcomes(), [filled(2, 5, 101), filled(1, 2, 100)]);
    bench.quote(90, 6, 99, 7);
    assert_eq!(bench.outcomes(), [], "the ask has not changed and is used up");
    bench.quote(106, 6, 107, 7);
    assert_eq!(bench.outcomes(), [filled(3, 5, 105)]);
}

#[test]
fn a_quote_fills_nothing_at_exactly_its_price() {
    let mut bench = bench();
    bench.limit(1, Buy, 5, 100);
    bench.quote(99, 5, 100, 7);
    assert_eq!(bench.outcomes(), []);
}

#[test]
fn the_model_through_fills_nothing_at_exactly_the_price() {
    let mut bench = model(FillModel::Through);
    bench.limit(1, Buy, 5, 100);
    bench.trade(100, 1000);
    assert_eq!(bench.outcomes(), []);
    bench.trade(99, 1000);
    assert_eq!(bench.outcomes(), [filled(1, 5, 100)]);
}

/// Returns the traded quantity after which an order behind a shown size of 50 begins to fill, if
/// the feed shows another size before the trade.
fn traded_before_a_fill(fill_model: FillModel, shown: i64) -> i64 {
    (1..=200)
        .find(|traded| {
            let mut bench = model(fill_model);
            bench.quote(100, 50, 105, 50);
            bench.limit(1, Buy, 5, 100);
            bench.outcomes();
            bench.quote(100, shown, 105, 50);
            bench.trade(100, *traded);
            !bench.outcomes().is_empty()
        })
        .map_or(i64::MAX, |traded| traded - 1)
}

#[test]
fn the_queue_models_differ_in_what_a_change_of_the_shown_size_means() {
    let models = [FillModel::Queue, FillModel::QueueTraded, FillModel::QueueBack];
    let found = models.map(|model| [30, 50, 70].map(|shown| traded_before_a_fill(model, shown)));
    assert_eq!(found[0], [30, 50, 50], "a larger size joins behind");
    assert_eq!(found[1], [30, 50, 50], "no more can be ahead than is shown");
    assert_eq!(found[2], [30, 50, 70], "a larger size counts as ahead");
}

#[test]
fn only_trades_shorten_the_queue_of_the_model_queue_traded() {
    let ahead_after = |fill_model: FillModel| {
        let mut bench = model(fill_model);
        bench.quote(100, 50, 105, 50);
        bench.limit(1, Buy, 5, 100);
        // Another 50 join behind the order; then half of all leave.
        bench.quote(100, 100, 105, 50);
        bench.quote(100, 50, 105, 50);
        bench.outcomes();
        (1..=60).find(|_| {
            bench.trade(100, 1);
            !bench.outcomes().is_empty()
        })
    };
    assert_eq!(ahead_after(FillModel::Queue), Some(26), "in proportion, half of the queue has left");
    assert_eq!(ahead_after(FillModel::QueueTraded), Some(51), "all who left were behind");
    assert_eq!(ahead_after(FillModel::QueueBack), Some(51), "everything shown is ahead");
}

#[test]
fn the_model_touch_ignores_the_queue_and_fills_at_exactly_the_price() {
    let mut bench = model(FillModel::Touch);
    bench.quote(100, 50, 105, 50);
    bench.limit(1, Buy, 5, 100);
    bench.trade(100, 3);
    assert_eq!(bench.outcomes(), [filled(1, 3, 100)]);
    bench.quote(99, 50, 100, 50);
    assert_eq!(bench.outcomes(), [filled(1, 2, 100)]);
}

// The queue ahead.

#[test]
fn a_trade_at_the_price_takes_from_the_queue_ahead_first() {
    let mut bench = bench();
    bench.quote(100, 50, 105, 50);
    bench.limit(1, Buy, 5, 100);
    bench.limit(2, Buy, 5, 100);
    bench.trade(100, 48);
    assert_eq!(bench.outcomes(), []);
    bench.trade(100, 8);
    assert_eq!(bench.outcomes(), [filled(1, 5, 100), filled(2, 1, 100)]);
    bench.trade(100, 0);
    assert_eq!(bench.outcomes(), [filled(2, 4, 100)], "nothing is ahead any more");
}

#[test]
fn a_trade_of_unknown_size_does_not_pass_the_queue() {
    let mut bench = bench();
    bench.quote(100, 50, 105, 50);
    bench.limit(1, Buy, 5, 100);
    bench.trade(100, 0);
    assert_eq!(bench.outcomes(), []);
}

#[test]
fn the_queue_counts_what_the_quote_shows_and_was_not_consumed() {
    let mut bench = bench();
    bench.quote(100, 50, 105, 50);
    bench.order(1, Sell, 45, Some(100), Tif::Ioc);
    bench.outcomes();
    bench.limit(2, Buy, 5, 100);
    bench.trade(100, 6);
    assert_eq!(bench.outcomes(), [filled(2, 1, 100)]);
}

#[test]
fn a_smaller_shown_size_shrinks_the_queue_in_proportion_rounded_up_and_a_larger_one_does_not_lengthen_it() {
    let mut bench = bench();
    bench.quote(100, 50, 105, 50);
    bench.limit(1, Buy, 5, 100);
    bench.trade(100, 20);
    bench.quote(100, 90, 105, 50);
    // 30 ahead of 90 shown; a third of it is 10.
    bench.quote(100, 30, 105, 50);
    bench.trade(100, 11);
    assert_eq!(bench.outcomes(), [filled(1, 1, 100)]);
    let mut queue = FeedQueue { ticks: 1, ahead: qty(7), shown: qty(10) };
    queue.resize(qty(5), &spec(VenueSettings::default()));
    assert_eq!((queue.ahead, queue.shown), (qty(4), qty(5)));
}

// Whole lots.

#[test]
fn a_queue_that_shrinks_in_proportion_leaves_whole_lots_of_a_trade() {
    let mut bench = bench();
    bench.quote(100, 17, 105, 50);
    bench.limit(1, Buy, 1, 100);
    bench.trade(100, 1);
    // 16 of 18 are ahead, so 0.9 of one, rounded up to a lot.
    bench.quote(100, 18, 105, 50);
    bench.quote(100, 1, 105, 50);
    bench.trade(100, 1);
    assert_eq!(bench.outcomes(), [], "the lot was ahead");
    bench.trade(100, 1);
    assert_eq!(bench.outcomes(), [filled(1, 1, 100)]);
}

/// Quantity with a half lot.
fn and_a_half(lots: i64) -> Qty {
    Qty::from_raw(qty(lots).raw() + qty(1).raw() / 2)
}

#[test]
fn a_quote_shows_and_trades_whole_lots_only() {
    let mut bench = bench();
    bench.market(1, Buy, 3);
    bench.outcomes();
    let ask_size = and_a_half(2);
    let quote =
        Quote { bid: price(99), bid_size: and_a_half(0), ask: price(100), ask_size, at: Timestamp(1) };
    bench.venue.quote(0, &quote);
    assert_eq!(bench.outcomes(), [filled(1, 2, 100), filled(1, 1, 101)]);
    assert_eq!(bench.venue.price_levels(0, Buy).next(), None);
    let best_ask = bench.venue.price_levels(0, Sell).next().unwrap();
    assert_eq!((best_ask.price, best_ask.qty), (price(101), qty(1)));
    // The bid of less than a lot fills nothing that crosses it, and has no queue.
    bench.limit(2, Sell, 1, 99);
    bench.trade(100, 1);
    assert_eq!(bench.outcomes(), [filled(2, 1, 99)]);
}

#[test]
fn a_trade_fills_whole_lots_only() {
    let mut bench = bench();
    bench.limit(1, Buy, 3, 100);
    bench.limit(2, Buy, 3, 99);
    let mut trade = |size: Qty| {
        bench.venue.trade(0, &Trade { price: price(99), size, at: Timestamp(2) });
        bench.outcomes()
    };
    assert_eq!(trade(and_a_half(0)), [], "less than a lot is not an unknown size");
    assert_eq!(trade(and_a_half(4)), [filled(1, 3, 100), filled(2, 1, 99)]);
}

#[test]
fn the_rest_of_a_trade_behind_an_old_queue_is_whole_lots() {
    let mut bench = bench();
    bench.quote(100, 5, 105, 50);
    bench.limit(1, Buy, 3, 100);
    // As a version stored it that rounded to no lots.
    bench.venue.details[0].queues[Buy as usize].as_mut().unwrap().ahead = and_a_half(0);
    bench.trade(100, 3);
    assert_eq!(bench.outcomes(), [filled(1, 2, 100)]);
    let mut queue = FeedQueue { ticks: 1, ahead: and_a_half(3), shown: and_a_half(4) };
    queue.resize(and_a_half(2), &spec(VenueSettings::default()));
    assert_eq!(queue.ahead, qty(2), "rounded up to lots");
    queue.resize(and_a_half(1), &spec(VenueSettings::default()));
    assert_eq!(queue.ahead, and_a_half(1), "but no more than is shown");
}

#[test]
fn the_queue_is_set_when_the_bid_moves_to_the_price_and_forgotten_when_it_leaves() {
    let mut bench = bench();
    bench.limit(1, Sell, 5, 100);
    bench.quote(90, 5, 100, 10);
    bench.trade(100, 10);
    assert_eq!(bench.outcomes(), []);
    bench.quote(90, 5, 101, 10);
    bench.trade(100, 1);
    assert_eq!(bench.outcomes(), [filled(1, 1, 100)], "better than the ask: no queue");
    bench.quote(90, 5, 100, 20);
    bench.trade(100, 21);
    assert_eq!(bench.outcomes(), [filled(1, 1, 100)]);
    bench.quote(90, 5, 100, 0);
    bench.trade(100, 1);
    assert_eq!(bench.outcomes(), [filled(1, 1, 100)], "no quote, no queue");
    bench.quote(90, 5, 100, 7);
    bench.trade(100, 7);
    assert_eq!(bench.outcomes(), [], "all that is shown again is ahead");
}

#[test]
fn the_queue_is_reset_when_no_other_order_rests_at_the_price() {
    let mut bench = bench();
    bench.quote(100, 10, 105, 50);
    bench.limit(1, Buy, 5, 100);
    bench.trade(100, 9);
    bench.venue.cancel(1);
    bench.outcomes();
    bench.limit(2, Buy, 5, 100);
    bench.trade(100, 10);
    assert_eq!(bench.outcomes(), []);
}

#[test]
fn orders_behind_the_bid_do_not_trade_at_exactly_their_price() {
    let mut bench = bench();
    bench.quote(101, 10, 105, 50);
    bench.limit(1, Buy, 5, 100);
    bench.trade(100, 500);
    assert_eq!(bench.outcomes(), []);
    bench.trade(99, 500);
    assert_eq!(bench.outcomes(), [filled(1, 5, 100)]);
}
