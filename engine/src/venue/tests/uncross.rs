//! The price of an auction, and the orders that trade at it.

use super::*;

/// Limits and market orders (limit 0) that collect, the last price (0: none), and the price and
/// volume at which they clear.
fn clears(buys: &[(i64, i64)], sells: &[(i64, i64)], last: i64) -> Option<(i64, i64)> {
    let mut bench = bench();
    bench.venue.session(0, TradingSession::OpeningAuction);
    let sides = buys.iter().map(|order| (Buy, order)).chain(sells.iter().map(|order| (Sell, order)));
    for (slot, (side, &(limit, quantity))) in sides.enumerate() {
        let limit = (limit != 0).then_some(limit);
        bench.order(slot as u32, side, quantity, limit, Tif::Ato);
    }
    if last != 0 {
        bench.trade(last, 0);
    }
    bench.outcomes();
    bench.venue.session(0, TradingSession::Continuous);
    let mut fills = bench.outcomes().into_iter().filter_map(|(slot, outcome)| match outcome {
        Filled { qty, price } => ((slot as usize) < buys.len()).then_some((price.raw(), qty.raw())),
        _ => None,
    });
    let (price, first) = fills.next()?;
    let one = Qty::whole(1).unwrap().raw();
    Some((price / one, (first + fills.map(|(_, qty)| qty).sum::<i64>()) / one))
}

#[test]
fn the_uncross_price_has_the_largest_volume() {
    assert_eq!(clears(&[(105, 10), (103, 5)], &[(100, 5), (103, 10)], 0), Some((103, 15)));
}

#[test]
fn then_the_smallest_surplus() {
    assert_eq!(clears(&[(105, 10), (101, 5)], &[(100, 10)], 100), Some((105, 10)));
}

#[test]
fn then_nearest_to_the_last_price() {
    assert_eq!(clears(&[(105, 10)], &[(100, 10)], 104), Some((104, 10)));
    assert_eq!(clears(&[(105, 10)], &[(100, 10)], 90), Some((100, 10)));
    assert_eq!(clears(&[(105, 10)], &[(100, 10)], 190), Some((105, 10)));
}

#[test]
fn then_the_lowest() {
    assert_eq!(clears(&[(105, 10)], &[(100, 10)], 0), Some((100, 10)));
}

#[test]
fn market_orders_alone_trade_at_the_last_price_and_without_any_price_not_at_all() {
    assert_eq!(clears(&[(0, 10)], &[(0, 7)], 50), Some((50, 7)));
    assert_eq!(clears(&[(0, 10)], &[(0, 7)], 0), None);
    assert_eq!(clears(&[(0, 10)], &[(60, 7)], 0), Some((60, 7)));
    assert_eq!(clears(&[(50, 10)], &[(60, 7)], 55), None);
}

#[test]
fn within_the_volume_market_orders_come_first_then_better_limits_then_arrival() {
    let mut bench = bench();
    bench.venue.halt(0, true);
    bench.limit(1, Buy, 5, 100);
    bench.limit(2, Buy, 5, 101);
    bench.limit(3, Buy, 5, 100);
    bench.market(4, Buy, 5);
    bench.limit(5, Sell, 18, 100);
    bench.outcomes();
    bench.venue.halt(0, false);
    let buyers: Vec<u32> = bench.outcomes().iter().map(|(slot, _)| *slot).filter(|&slot| slot != 5).collect();
    assert_eq!(buyers, [4, 2, 1, 3]);
    assert_eq!(bench.depth(Buy), [(100, 2)]);
    assert_eq!(bench.venue.market(0).volume, qty(18));
}

#[test]
fn an_account_may_meet_itself_in_an_auction() {
    let mut bench = bench();
    bench.venue.session(0, TradingSession::OpeningAuction);
    bench.order_of(1, 1, Buy, 5, Some(100), Tif::Day);
    bench.order_of(1, 2, Sell, 5, Some(100), Tif::Day);
    bench.outcomes();
    bench.venue.session(0, TradingSession::Continuous);
    assert_eq!(bench.outcomes(), [filled(1, 5, 100), filled(2, 5, 100)]);
}

#[test]
fn the_quote_takes_part_as_one_order_behind_the_clients_at_its_price() {
    let mut bench = bench();
    bench.quote(90, 5, 100, 10);
    bench.order(1, Buy, 4, Some(100), Tif::Ioc);
    bench.outcomes();
    bench.venue.halt(0, true);
    bench.limit(2, Buy, 12, 100);
    bench.limit(3, Sell, 5, 100);
    bench.venue.halt(0, false);
    // 5 of the client, then the remaining 6 of the quote.
    assert_eq!(bench.outcomes(), [filled(2, 5, 100), filled(3, 5, 100), filled(2, 6, 100)]);
    bench.order(4, Buy, 1, Some(100), Tif::Ioc);
    assert_eq!(bench.outcomes(), [(4, Canceled(Reason::Ioc))], "the quote's size is consumed");
}

#[test]
fn after_the_uncross_waiting_market_orders_meet_the_quote() {
    let mut bench = bench();
    bench.quote(90, 5, 100, 10);
    bench.venue.halt(0, true);
    bench.market(1, Buy, 15);
    bench.outcomes();
    bench.venue.halt(0, false);
    assert_eq!(bench.outcomes(), [filled(1, 10, 100), filled(1, 5, 101)]);
}

#[test]
fn a_crossed_quote_trades_only_with_clients() {
    let mut bench = bench();
    bench.venue.halt(0, true);
    bench.quote(102, 5, 100, 10);
    bench.limit(1, Buy, 3, 101);
    bench.venue.halt(0, false);
    assert_eq!(bench.outcomes(), [filled(1, 3, 100)]);
}
