//! Levels of the feed that end, and books that have levels but no quote.

use super::super::feed_levels::FeedLevels;
use super::*;
use crate::command::FeedLevel;

fn level(bench: &mut VenueBench, side: Side, at: i64, size: i64) {
    bench.venue.level(0, &FeedLevel { side, price: price(at), size: qty(size), at: Timestamp(1) });
}

#[test]
fn a_level_without_a_size_is_no_level() {
    let mut bench = bench();
    let is_empty = |bench: &VenueBench| bench.venue.details[0].levels.iter().all(FeedLevels::is_empty);
    level(&mut bench, Buy, 100, 0);
    assert!(is_empty(&bench), "it never was one");
    level(&mut bench, Buy, 100, 7);
    assert!(!is_empty(&bench));
    level(&mut bench, Buy, 100, 0);
    assert!(is_empty(&bench), "it has ended");
}

#[test]
fn the_first_order_at_a_price_joins_behind_the_level_of_a_book_without_a_quote() {
    let mut bench = bench();
    level(&mut bench, Buy, 100, 10);
    level(&mut bench, Sell, 105, 10);
    for (slot, traded) in [(1, 9), (2, 10)] {
        bench.limit(slot, Buy, 5, 100);
        bench.trade(100, traded);
        assert_eq!(bench.outcomes(), [], "{slot}");
        level(&mut bench, Buy, 100, 10);
        bench.venue.cancel(slot);
        bench.outcomes();
    }
}
