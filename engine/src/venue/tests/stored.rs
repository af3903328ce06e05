//! A stored venue: loaded, it continues as it was; one that contradicts itself is refused.

use super::super::feed_levels::FeedLevels;
use super::super::portion_sizes::VariedSizes;
use super::super::quote_side::QuoteSide;
use super::*;
use crate::codec::{Codec, Digest};

/// A bench with orders in every place but a halted book: two market orders wait, three bids rest,
/// and two orders are held for the closing auction.
fn full_bench() -> VenueBench {
    let mut bench = bench();
    bench.market(1, Buy, 5);
    bench.market(2, Buy, 3);
    for (slot, at) in [(3, 95), (4, 95), (5, 94)] {
        bench.limit(slot, Buy, 5, at);
    }
    bench.order(6, Buy, 5, Some(100), Tif::Atc);
    bench.order(7, Sell, 5, None, Tif::Atc);
    assert_eq!(bench.outcomes(), []);
    bench
}

#[test]
fn a_loaded_venue_continues_as_the_stored_one() {
    let continued = |bench: &mut VenueBench| {
        assert_eq!(bench.depth(Buy), [(95, 10), (94, 5)]);
        bench.order(8, Sell, 12, Some(95), Tif::Day);
        let mut outcomes = bench.outcomes();
        for session in [TradingSession::ClosingAuction, TradingSession::Closed] {
            bench.venue.session(0, session);
            outcomes.extend(bench.outcomes());
        }
        outcomes
    };
    let mut bench = full_bench();
    let mut loaded = bench.stored().unwrap();
    let outcomes = continued(&mut loaded);
    assert_eq!(outcomes[..3], [filled(8, 5, 95), filled(1, 5, 95), filled(8, 3, 95)]);
    assert!(outcomes.iter().any(|(slot, outcome)| *slot == 7 && matches!(outcome, Filled { .. })));
    assert_eq!(outcomes, continued(&mut bench));
}

#[test]
fn a_halted_book_is_still_halted_after_loading() {
    let mut bench = bench();
    bench.venue.halt(0, true);
    bench.limit(1, Buy, 5, 100);
    let mut loaded = bench.stored().unwrap();
    loaded.limit(2, Sell, 5, 100);
    loaded.venue.halt(0, false);
    assert_eq!(loaded.outcomes(), [filled(1, 5, 100), filled(2, 5, 100)]);
}

/// Returns the levels with these prices, quantities ahead, and shown quantities.
fn feed_levels(rows: impl IntoIterator<Item = (i64, i64, i64)>) -> FeedLevels {
    let queue = |(ticks, ahead, shown)| FeedQueue { ticks, ahead: qty(ahead), shown: qty(shown) };
    let queues: Vec<FeedQueue> = rows.into_iter().map(queue).collect();
    let mut bytes = Vec::new();
    queues.encode(&mut bytes);
    FeedLevels::decode(&mut ByteReader::new(&bytes)).unwrap()
}

#[test]
fn a_stored_venue_that_contradicts_itself_is_refused() {
    type Damage = fn(&mut Venue);
    let damages: [(&str, Damage); 8] = [
        ("a book that does not exist", |venue| venue.nodes[5].book = 1),
        ("a price that does not fit", |venue| venue.nodes[5].ticks = i64::MAX),
        ("two queues at one price", |venue| venue.nodes[5].ticks = 95),
        ("an arrival after the last", |venue| venue.nodes[2].ticks = 3),
        ("a number of arrivals below zero", |venue| venue.details[0].arrivals = -1),
        ("more ahead than is shown", |venue| {
            venue.details[0].queues[0] = Some(FeedQueue { ticks: 95, ahead: qty(2), shown: qty(1) });
        }),
        ("levels in no order", |venue| {
            venue.details[0].levels[0] = feed_levels([(100, 1, 1), (99, 1, 1)]);
        }),
        ("a quote of less than nothing", |venue| venue.details[0].shown[1].size = qty(-1)),
    ];
    assert!(full_bench().stored().is_ok());
    for (what, damage) in damages {
        let mut bench = full_bench();
        damage(&mut bench.venue);
        assert!(bench.stored().is_err(), "{what}");
    }
}

#[test]
fn levels_are_sound_up_to_their_number_and_in_their_order() {
    let most = FEED_LEVELS_MAX as i64;
    let cases = [
        (feed_levels([(99, 0, 1), (100, 1, 1)]), true),
        (feed_levels([(100, 1, 1), (99, 1, 1)]), false),
        (feed_levels([(99, 1, 1), (99, 1, 1)]), false),
        (feed_levels([(99, 2, 1)]), false),
        (feed_levels([(99, -1, 1)]), false),
        (feed_levels((0..most).map(|at| (at, 1, 1))), true),
        (feed_levels((0..=most).map(|at| (at, 1, 1))), false),
    ];
    let bench = bench();
    for (levels, is_sound) in cases {
        assert_eq!(levels.is_sound(&bench.venue.books[0].sides[0]), is_sound, "{levels:?}");
    }
}

#[test]
fn a_side_of_the_quote_has_consumed_no_more_than_there_is() {
    let settings = VenueSettings { quote_levels: 3, ..VenueSettings::default() };
    // The shown size, the consumed portions, and the consumed part of the next.
    let cases = [
        ((10, 0, 10), true),
        ((10, 0, 11), false),
        ((10, 0, -1), false),
        ((0, 0, 1), false),
        ((10, 1, 10), true),
        ((10, 1, 11), false),
        // New settings may leave a portion that there no longer is.
        ((10, 3, 5), true),
        ((10, 4, 0), false),
    ];
    for ((size, portion, taken), is_sound) in cases {
        let mut bytes = Vec::new();
        (0_i64, qty(size)).encode(&mut bytes);
        (portion as u32, qty(taken)).encode(&mut bytes);
        let mut side = QuoteSide::new(&spec(settings.clone()), Sell);
        side.restore(&mut ByteReader::new(&bytes)).unwrap();
        assert_eq!(side.is_sound(Sell, &settings), is_sound, "{size}, {portion}, {taken}");
    }
}

#[test]
fn the_mean_of_varied_sizes_is_within_what_quotes_can_show() {
    let settings = VenueSettings { quote_sizes: QuoteSizes::Varied, ..VenueSettings::default() };
    let largest = i64::MAX / 32 * 32;
    for (sum, is_sound) in [(0, true), (largest, true), (largest + 1, false), (-1, false)] {
        let mut bytes = Vec::new();
        [7, sum].encode(&mut bytes);
        let mut sizes = VariedSizes::new(&spec(settings.clone()), Sell);
        sizes.restore(&mut ByteReader::new(&bytes)).unwrap();
        assert_eq!(sizes.is_sound(), is_sound, "{sum}");
        // Those of a side are a part of it.
        let mut bytes_of_side = Vec::new();
        (0_i64, Qty::ZERO).encode(&mut bytes_of_side);
        (0_u32, Qty::ZERO).encode(&mut bytes_of_side);
        bytes_of_side.extend(bytes);
        let mut side = QuoteSide::new(&spec(settings.clone()), Sell);
        side.restore(&mut ByteReader::new(&bytes_of_side)).unwrap();
        assert_eq!(side.is_sound(Sell, &settings), is_sound, "{sum}");
    }
}

fn digest(bench: &VenueBench) -> u64 {
    let mut sum = Digest::new();
    bench.venue.fold(&mut sum);
    sum.sum()
}

#[test]
fn the_digest_covers_the_market_and_the_past_of_varied_sizes() {
    let mut traded = bench();
    traded.trade(100, 1);
    assert_ne!(digest(&traded), digest(&bench()));
    for (quote_sizes, differs) in [(QuoteSizes::Equal, false), (QuoteSizes::Varied, true)] {
        let [mut one, mut two] =
            [(); 2].map(|()| desk_with(VenueSettings { quote_sizes, ..VenueSettings::default() }));
        one.quote(98, 5, 102, 9);
        for bench in [&mut one, &mut two] {
            bench.quote(99, 5, 101, 5);
        }
        assert_eq!(digest(&one) != digest(&two), differs, "{quote_sizes:?}");
    }
}
