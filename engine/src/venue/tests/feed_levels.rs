//! The queue ahead of an order where the feed shows levels behind its best price.

use crate::codec::{ByteReader, Codec};
use crate::command::FeedLevel;
use crate::rng::Rng;

use super::super::feed_levels::FeedLevels;
use super::*;

impl VenueBench {
    fn level(&mut self, side: Side, at: i64, size: i64) {
        self.venue.level(0, &FeedLevel { side, price: price(at), size: qty(size), at: Timestamp(1) });
    }

    /// Returns the traded quantity before the first fill at a price.
    fn traded_before_a_fill(&mut self, at: i64) -> i64 {
        self.outcomes();
        let traded = (1..=1_000).find(|_| {
            self.trade(at, 1);
            !self.outcomes().is_empty()
        });
        traded.map_or(i64::MAX, |traded| traded - 1)
    }
}

const QUEUES: [FillModel; 3] = [FillModel::Queue, FillModel::QueueTraded, FillModel::QueueBack];

/// The bids are 101, 100 and 99; a buy joins 60 shown at 99. Then 40 join behind it, 30 of all 100
/// leave, and the better bids go.
fn joined_behind_two_bids(fill_model: FillModel, has_levels: bool) -> i64 {
    let mut bench = model(fill_model);
    bench.quote(101, 10, 105, 50);
    let level = |bench: &mut VenueBench, at, size| {
        if has_levels {
            bench.level(Buy, at, size);
        }
    };
    for (at, size) in [(101, 10), (100, 40), (99, 60)] {
        level(&mut bench, at, size);
    }
    bench.limit(1, Buy, 5, 99);
    for (at, size) in [(99, 100), (99, 70), (101, 0), (100, 0)] {
        level(&mut bench, at, size);
    }
    bench.quote(99, 70, 105, 50);
    bench.traded_before_a_fill(99)
}

#[test]
fn an_order_behind_the_best_price_has_the_size_at_its_own_price_ahead() {
    let found = QUEUES.map(|model| joined_behind_two_bids(model, true));
    // In proportion 60 · 70 / 100; all who left were behind; all that is shown is ahead.
    assert_eq!(found, [42, 60, 70]);
    let without = QUEUES.map(|model| joined_behind_two_bids(model, false));
    assert_eq!(without, [70, 70, 70], "without levels, the whole size is ahead when the bid arrives");
}

#[test]
fn an_order_in_a_gap_of_the_levels_has_nothing_ahead() {
    let mut bench = bench();
    bench.quote(90, 10, 100, 20);
    for (at, size) in [(100, 20), (103, 30)] {
        bench.level(Sell, at, size);
    }
    bench.limit(1, Sell, 5, 102);
    // Later sellers stand behind it.
    bench.level(Sell, 102, 500);
    bench.level(Sell, 100, 0);
    bench.quote(90, 10, 102, 500);
    assert_eq!(bench.traded_before_a_fill(102), 0);
}

#[test]
fn a_level_that_was_hidden_is_ahead_of_an_order() {
    let mut bench = bench();
    bench.quote(100, 10, 105, 50);
    bench.level(Buy, 100, 10);
    bench.limit(1, Buy, 5, 98);
    // The feed shows one level: the next appears when the first is gone.
    bench.level(Buy, 100, 0);
    bench.level(Buy, 98, 30);
    bench.quote(98, 30, 105, 50);
    assert_eq!(bench.traded_before_a_fill(98), 30);
}

#[test]
fn a_trade_shortens_the_queue_of_its_level_and_the_new_size_repeats_it() {
    for fill_model in [FillModel::Queue, FillModel::QueueTraded] {
        let mut bench = model(fill_model);
        bench.quote(100, 50, 105, 50);
        bench.level(Buy, 100, 50);
        bench.limit(1, Buy, 5, 100);
        bench.trade(100, 20);
        bench.level(Buy, 100, 30);
        bench.quote(100, 30, 105, 50);
        assert_eq!(bench.traded_before_a_fill(100), 30, "{fill_model:?}");
    }
}

#[test]
fn what_was_taken_from_the_quote_is_not_ahead() {
    let mut bench = bench();
    bench.quote(100, 50, 105, 50);
    bench.level(Buy, 100, 50);
    bench.order(1, Sell, 45, Some(100), Tif::Ioc);
    bench.outcomes();
    bench.limit(2, Buy, 5, 100);
    assert_eq!(bench.traded_before_a_fill(100), 5);
}

#[test]
fn the_first_order_at_a_price_joins_behind_the_level_again() {
    let mut bench = bench();
    bench.quote(100, 10, 105, 50);
    bench.level(Buy, 100, 10);
    bench.limit(1, Buy, 5, 100);
    bench.trade(100, 9);
    bench.level(Buy, 100, 10);
    bench.venue.cancel(1);
    bench.outcomes();
    bench.limit(2, Buy, 5, 100);
    assert_eq!(bench.traded_before_a_fill(100), 10);
}

#[test]
fn the_end_of_a_level_that_was_never_shown_leaves_the_queue_of_the_quote() {
    for fill_model in QUEUES {
        let mut bench = model(fill_model);
        bench.quote(100, 50, 105, 50);
        bench.limit(1, Buy, 5, 100);
        bench.level(Buy, 99, 0);
        bench.level(Buy, 100, 0);
        assert_eq!(bench.traded_before_a_fill(100), 50, "{fill_model:?}");
    }
}

#[test]
fn levels_between_two_ticks_or_of_another_book_are_ignored() {
    let mut bench = bench();
    let level = |price| FeedLevel { side: Buy, price, size: qty(7), at: Timestamp(1) };
    bench.venue.level(0, &level(Price::parse(b"100.5").unwrap()));
    bench.venue.level(9, &level(price(100)));
    assert!(bench.venue.details[0].levels.iter().all(FeedLevels::is_empty));
}

#[test]
fn the_levels_of_a_side_are_bounded_and_the_best_stay() {
    let mut bench = bench();
    let mut rng = Rng::new(5);
    let mut prices: Vec<i64> = (0..2 * FEED_LEVELS_MAX as i64).collect();
    while !prices.is_empty() {
        let at = prices.swap_remove(rng.index(prices.len()));
        bench.level(Sell, at, 1);
    }
    let venue = &bench.venue;
    let levels = &venue.details[0].levels[1];
    let mut bytes = Vec::new();
    levels.encode(&mut bytes);
    let again = FeedLevels::decode(&mut ByteReader::new(&bytes)).unwrap();
    assert_eq!(&again, levels);
    assert!(again.is_sound(&venue.books[0].sides[1]));
    assert!(!again.is_sound(&venue.books[0].sides[0]), "in the order of the other side they are not");
    let kept = |at: i64| venue.details[0].levels[1].clone().at_mut(&venue.books[0].sides[1], at).is_some();
    for at in 0..2 * FEED_LEVELS_MAX as i64 {
        assert_eq!(kept(at), at < FEED_LEVELS_MAX as i64, "{at}");
    }
}
