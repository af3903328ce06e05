//! Varied sizes of the portions behind the first: what they are, and that orders get exactly them.

use super::*;
use crate::codec::Codec;
use crate::settings::QUOTE_LEVELS_MAX;
use crate::venue::portion_sizes::VariedSizes;

const LOT: i64 = 100;

fn varied() -> VenueSettings {
    VenueSettings { quote_sizes: QuoteSizes::Varied, ..VenueSettings::default() }
}

/// A book with a lot of 100.
fn desk_of_lots(settings: VenueSettings) -> VenueBench {
    let spec = BookSpec { lot: qty(LOT), ..spec(settings) };
    VenueBench { venue: Venue::new(vec![spec], 16, LargePages::NONE), accounts: 0 }
}

/// Returns all levels of a side, best first.
fn levels(bench: &VenueBench, side: Side) -> Vec<(i64, i64)> {
    let whole = |raw: i64| raw / Qty::whole(1).unwrap().raw();
    let all = bench.venue.price_levels(0, side);
    all.map(|level| (whole(level.price.raw()), whole(level.qty.raw()))).collect()
}

/// Shows quotes of up to 20 lots whose prices walk, as the simulated feed does, and calls `see`
/// after each.
fn walk(bench: &mut VenueBench, seed: u64, quotes: u32, mut see: impl FnMut(&VenueBench)) {
    let mut rng = Rng::new(seed);
    let mut bid = 1_000;
    for _ in 0..quotes {
        bid += rng.below(5) as i64 - 2;
        let ask = bid + 1 + rng.below(3) as i64;
        let [bid_size, ask_size] = [(); 2].map(|()| LOT * (1 + rng.below(20) as i64));
        bench.quote(bid, bid_size, ask, ask_size);
        assert_eq!(bench.outcomes(), []);
        see(bench);
    }
}

#[test]
fn the_first_level_is_the_quote_and_the_others_differ_and_grow_within_their_bound() {
    let mut bench = desk_of_lots(varied());
    let mut sums = [0; 10];
    let mut sets = 0;
    walk(&mut bench, 1, 4_000, |bench| {
        let quote = bench.venue.market(0).quote;
        for (side, size, step) in [(Buy, quote.bid_size, -1), (Sell, quote.ask_size, 1)] {
            let levels = levels(bench, side);
            assert_eq!((levels.len(), qty(levels[0].1)), (10, size));
            for (place, &(price, lots)) in levels.iter().enumerate() {
                assert_eq!(price, levels[0].0 + step * place as i64);
                assert!(lots >= LOT && lots % LOT == 0, "{lots} are no whole lots");
                assert!(lots <= 7 * 20 * LOT, "{lots} are more than seven times the largest quote");
                sums[place] += lots;
            }
            let mut sizes: Vec<i64> = levels.iter().map(|level| level.1).collect();
            sizes.sort_unstable();
            sizes.dedup();
            sets += usize::from(sizes.len() >= 5);
        }
    });
    assert!(sets > 7_900, "hardly ever do ten levels have less than five sizes: {sets}");
    let band =
        |places: std::ops::Range<usize>| sums[places.clone()].iter().sum::<i64>() / places.len() as i64;
    let bands = [band(0..1), band(1..4), band(4..8), band(8..10)];
    assert!(bands.is_sorted_by(|near, far| near * 11 < far * 10), "{bands:?}");
}

#[test]
fn a_quote_changes_some_of_the_sizes_and_the_others_stay() {
    let mut bench = desk_of_lots(varied());
    let (mut same, mut changed) = (0, 0);
    // The price stays, so that each level is compared with itself.
    bench.quote(1_000, LOT, 1_001, LOT);
    for turn in 1..=800 {
        let before = levels(&bench, Buy);
        bench.quote(1_000, LOT * (1 + turn % 2), 1_001, LOT);
        for (old, new) in before.iter().zip(levels(&bench, Buy)).skip(1) {
            assert_eq!(old.0, new.0);
            match old.1 == new.1 {
                true => same += 1,
                false => changed += 1,
            }
        }
    }
    // One in eight is drawn again, at times with the same result.
    assert!(changed * 16 > same && changed * 5 < same, "{changed} changed, {same} stayed");
}

#[test]
fn the_sizes_follow_from_seed_security_and_quotes_alone() {
    let book_of = |settings: VenueSettings, security: u32| {
        let spec = BookSpec { security: SecurityId(security), lot: qty(LOT), ..spec(settings) };
        let mut bench = VenueBench { venue: Venue::new(vec![spec], 16, LargePages::NONE), accounts: 0 };
        walk(&mut bench, 5, 100, |_| {});
        (levels(&bench, Buy), levels(&bench, Sell))
    };
    let first = book_of(varied(), 7);
    assert_eq!(first, book_of(varied(), 7));
    assert_ne!(first, book_of(varied(), 8));
    assert_ne!(first, book_of(VenueSettings { seed: 2, ..varied() }, 7));
    let sizes = |levels: &[(i64, i64)]| levels[1..].iter().map(|level| level.1).collect::<Vec<_>>();
    assert_ne!(sizes(&first.0), sizes(&first.1));
}

/// A journal that another version wrote is replayed, and its fills must come out the same.
#[test]
fn the_sizes_are_the_same_in_every_version() {
    let mut bench = desk_of_lots(varied());
    bench.quote(1_000, LOT * 20, 1_001, LOT * 17);
    let sizes_of = |side| levels(&bench, side).iter().map(|level| level.1 / LOT).collect::<Vec<_>>();
    assert_eq!(sizes_of(Buy), [20, 36, 48, 46, 36, 78, 12, 67, 8, 1]);
    assert_eq!(sizes_of(Sell), [17, 27, 45, 23, 64, 78, 61, 34, 1, 31]);
}

#[test]
fn the_mean_begins_with_the_first_shown_size_and_counts_no_empty_quote() {
    let sum_of = |sizes: &[i64]| {
        let mut sizes_of_side = VariedSizes::new(&spec(varied()), Sell);
        sizes.iter().for_each(|size| sizes_of_side.advance(Qty::from_raw(*size)));
        let mut bytes = Vec::new();
        sizes_of_side.save(&mut bytes);
        let [_, sum] = <[i64; 2]>::decode(&mut ByteReader::new(&bytes)).unwrap();
        sum
    };
    assert_eq!(sum_of(&[640]), 32 * 640);
    assert_eq!(sum_of(&[0, 640, 0, 0]), 32 * 640);
    assert_eq!(sum_of(&[640, 320]), 31 * 640 + 320);
}

/// Of adjacent prices about one in fifty has the size of the one before.
#[test]
fn adjacent_prices_have_sizes_of_their_own() {
    let (mut pairs, mut same) = (0, 0);
    for security in 0..60 {
        let spec = BookSpec { security: SecurityId(security), lot: qty(LOT), ..spec(varied()) };
        let mut bench = VenueBench { venue: Venue::new(vec![spec], 16, LargePages::NONE), accounts: 0 };
        bench.quote(1_000, LOT * 20, 1_001, LOT * 20);
        let levels = levels(&bench, Sell);
        pairs += levels[1..].windows(2).len();
        same += levels[1..].windows(2).filter(|pair| pair[0].1 == pair[1].1).count();
    }
    assert!(same * 16 < pairs, "{same} of {pairs}");
}

#[test]
fn an_order_gets_exactly_the_shown_sizes_and_what_it_took_is_gone_until_the_side_changes() {
    let mut bench = desk_of_lots(varied());
    walk(&mut bench, 2, 50, |_| {});
    let shown = levels(&bench, Sell);
    let wanted = shown[0].1 + shown[1].1 + LOT;
    bench.order(1, Buy, wanted, None, Tif::Ioc);
    let fills = [filled(1, shown[0].1, shown[0].0), filled(1, shown[1].1, shown[1].0)];
    assert_eq!(bench.outcomes(), [&fills[..], &[filled(1, LOT, shown[2].0)]].concat());
    let mut rest = shown[2..].to_vec();
    rest[0].1 -= LOT;
    rest.retain(|level| level.1 > 0);
    assert_eq!(levels(&bench, Sell), rest);
    // The other side changes, and this one stays as it is.
    let quote = bench.venue.market(0).quote;
    bench.venue.quote(0, &Quote { bid_size: qty(LOT * 30), ..quote });
    assert_eq!(levels(&bench, Sell), rest);
    bench.venue.quote(0, &Quote { ask_size: qty(LOT * 30), ..quote });
    assert_eq!((levels(&bench, Sell).len(), levels(&bench, Sell)[0].1), (10, LOT * 30));
}

#[test]
fn fill_or_kill_sees_the_sizes_that_it_would_get() {
    for seed in 0..40 {
        let mut bench = desk_of_lots(varied());
        walk(&mut bench, seed, 30, |_| {});
        let shown = levels(&bench, Sell);
        // A client in the middle, on a price of its own and on one of the quote.
        bench.limit(1, Sell, LOT, shown[4].0);
        let within = shown[..6].iter().map(|level| level.1).sum::<i64>() + LOT;
        let limit = Some(shown[5].0);
        bench.order(2, Buy, within + 1, limit, Tif::Fok);
        assert_eq!(bench.outcomes(), [(2, Canceled(Reason::Fok))]);
        bench.order(3, Buy, within, limit, Tif::Fok);
        let outcomes = bench.outcomes();
        let bought: i64 = outcomes
            .iter()
            .map(|outcome| match outcome {
                (3, Filled { qty, .. }) => qty.raw(),
                _ => 0,
            })
            .sum();
        assert_eq!(bought, qty(within).raw(), "seed {seed}: {outcomes:?}");
        assert_eq!(levels(&bench, Sell), shown[6..]);
    }
}

#[test]
fn a_saved_book_continues_with_the_same_sizes() {
    let mut bench = desk_of_lots(varied());
    walk(&mut bench, 3, 70, |_| {});
    bench.order(1, Buy, 30 * LOT, None, Tif::Ioc);
    bench.outcomes();
    let mut loaded = bench.stored().unwrap();
    for seed in 0..3 {
        assert_eq!(levels(&loaded, Buy), levels(&bench, Buy));
        assert_eq!(levels(&loaded, Sell), levels(&bench, Sell));
        walk(&mut bench, seed, 9, |_| {});
        walk(&mut loaded, seed, 9, |_| {});
    }
}

#[test]
fn equal_sizes_are_stored_as_before_and_varied_ones_take_more() {
    let length = |settings| {
        let mut bytes = Vec::new();
        desk_of_lots(settings).venue.save(&mut bytes);
        bytes.len()
    };
    // On each side the number of quotes and the mean.
    assert_eq!(length(varied()), length(VenueSettings::default()) + 2 * 16);
}

#[test]
fn a_change_of_the_settings_keeps_what_was_consumed_as_far_as_there_is_so_much() {
    for seed in 0..60 {
        let mut bench = desk_of_lots(varied());
        walk(&mut bench, seed, 20, |_| {});
        let shown = levels(&bench, Sell);
        let taken = shown[0].1 + (shown[1].1 - 1).min(LOT * 5);
        bench.order(1, Buy, taken, None, Tif::Ioc);
        bench.outcomes();
        bench.venue.set_up(0, VenueSettings::default());
        let equal = levels(&bench, Sell);
        assert!(equal[1..].iter().all(|level| level.1 == shown[0].1), "each has the shown size");
        assert!(equal[0].1 > 0 && equal[0].1 <= shown[0].1, "{equal:?}");
        assert!(equal[0].0 > shown[0].0, "the first level stays consumed");
        bench.venue.set_up(0, VenueSettings { seed: 9, ..varied() });
        assert!(levels(&bench, Sell).iter().all(|level| level.1 > 0));
    }
}

#[test]
fn a_book_with_fewer_portions_than_before_is_stored_and_read() {
    for seed in 0..30 {
        let mut bench = desk_of_lots(varied());
        walk(&mut bench, seed, 20, |_| {});
        let shown = levels(&bench, Sell);
        bench.order(1, Buy, shown[0].1 + shown[1].1 - LOT / 2, None, Tif::Ioc);
        bench.outcomes();
        let fewer = VenueSettings { quote_levels: 1, ..varied() };
        bench.venue.set_up(0, fewer);
        assert_eq!(levels(&bench, Sell), []);
        let mut loaded = bench.stored().expect("it is sound");
        loaded.venue.set_up(0, varied());
        let rest = [&[(shown[1].0, LOT / 2)], &shown[2..]].concat();
        assert_eq!(levels(&loaded, Sell), rest, "as it was");
    }
}

#[test]
fn the_number_of_portions_with_varied_sizes_is_bounded() {
    let mut bench = desk_of_lots(VenueSettings { quote_levels: u32::MAX, ..varied() });
    bench.quote(1_000, LOT, 1_001, LOT);
    assert_eq!(levels(&bench, Sell).len(), QUOTE_LEVELS_MAX as usize);
    let all: i64 = levels(&bench, Sell).iter().map(|level| level.1).sum();
    bench.order(1, Buy, all + 1, None, Tif::Fok);
    bench.order(2, Buy, all, None, Tif::Fok);
    let outcomes = bench.outcomes();
    assert_eq!(outcomes[0], (1, Canceled(Reason::Fok)));
    assert_eq!(outcomes.len(), 1 + QUOTE_LEVELS_MAX as usize);
}

#[test]
fn sizes_at_the_end_of_the_range_stay_whole_lots() {
    for (lot, size) in [(1, i64::MAX), (i64::MAX / 3, i64::MAX), (i64::MAX, i64::MAX), (3, 4), (3, 1)] {
        let spec = BookSpec { lot: Qty::from_raw(lot), ..spec(varied()) };
        let mut venue = Venue::new(vec![spec], 16, LargePages::NONE);
        let size = Qty::from_raw(size);
        for ask in [101, 102, 103] {
            let quote = Quote { ask: price(ask), ask_size: size, ..Quote::default() };
            venue.quote(0, &quote);
            let sizes: Vec<i64> = venue.price_levels(0, Sell).map(|level| level.qty.raw()).collect();
            let first = size.raw() - size.raw() % lot;
            assert_eq!(sizes.first().copied().unwrap_or(0), first);
            assert_eq!(sizes.len(), if first > 0 { 10 } else { 0 });
            assert!(sizes.iter().all(|size| *size >= lot && size % lot == 0), "{sizes:?}");
        }
    }
}
