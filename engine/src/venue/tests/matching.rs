//! A single book: price before time, liquidity of a quote, self-trades, the rest of an order,
//! random behaviour.

use super::*;

// One book per security.

#[test]
fn price_comes_before_time_and_the_trade_price_is_the_resting_orders() {
    let mut bench = bench();
    bench.limit(1, Sell, 5, 101);
    bench.limit(2, Sell, 5, 100);
    bench.limit(3, Sell, 5, 100);
    bench.order(4, Buy, 12, Some(101), Tif::Day);
    let fills = [(4, 5, 100), (2, 5, 100), (4, 5, 100), (3, 5, 100), (4, 2, 101), (1, 2, 101)];
    let mut expected = vec![(4, Accepted)];
    expected.extend(fills.map(|(slot, q, p)| filled(slot, q, p)));
    assert_eq!(bench.all_outcomes(), expected);
    assert_eq!((bench.depth(Buy), bench.depth(Sell)), (vec![], vec![(101, 3)]));
    let market = bench.venue.market(0);
    assert_eq!(
        (market.last, market.last_size, market.volume, market.traded),
        (price(101), qty(2), qty(12), true)
    );
}

#[test]
fn trades_stop_at_the_orders_limit_and_the_rest_of_a_limit_order_rests() {
    let mut bench = bench();
    bench.limit(1, Sell, 5, 100);
    bench.limit(2, Sell, 5, 102);
    bench.order(3, Buy, 8, Some(101), Tif::Gtc);
    assert_eq!(bench.outcomes(), [filled(3, 5, 100), filled(1, 5, 100)]);
    assert_eq!((bench.depth(Buy), bench.depth(Sell)), (vec![(101, 3)], vec![(102, 5)]));
    assert_eq!(bench.venue.remaining(3), Some(qty(3)));
    assert_eq!(bench.venue.remaining(1), None);
}

// Liquidity.

#[test]
fn a_quote_gives_its_size_then_further_portions_each_a_tick_worse() {
    let mut bench =
        desk_with(VenueSettings { quote_levels: 3, slippage_ticks: 2, ..VenueSettings::default() });
    bench.quote(99, 10, 100, 10);
    bench.order(1, Buy, 100, None, Tif::Ioc);
    let portions = [filled(1, 10, 100), filled(1, 10, 102), filled(1, 10, 104)];
    assert_eq!(bench.outcomes()[..3], portions);
    bench.order(2, Sell, 15, Some(97), Tif::Ioc);
    assert_eq!(bench.outcomes(), [filled(2, 10, 99), filled(2, 5, 97)]);
}

#[test]
fn a_quote_between_two_ticks_shows_the_next_worse_tick() {
    let mut bench = bench();
    let (bid, ask) = (Price::parse(b"99.5").unwrap(), Price::parse(b"100.5").unwrap());
    bench.venue.quote(0, &Quote { bid, bid_size: qty(3), ask, ask_size: qty(3), at: Timestamp(1) });
    let best = |side| bench.venue.price_levels(0, side).next().unwrap().price;
    assert_eq!((best(Buy), best(Sell)), (price(99), price(101)));
}

#[test]
fn a_fok_counts_the_portions_that_are_left_within_its_limit() {
    let settings = VenueSettings { quote_levels: 3, slippage_ticks: 2, ..VenueSettings::default() };
    let quoted = || {
        let mut bench = desk_with(settings.clone());
        bench.quote(90, 1, 100, 3);
        bench
    };
    let is_filled = |bench: &mut VenueBench, quantity, limit| {
        bench.order(1, Buy, quantity, limit, Tif::Fok);
        bench.outcomes() != [(1, Canceled(Reason::Fok))]
    };
    // Three at 100, three at 102, three at 104.
    for (limit, most) in [(Some(100), 3), (Some(103), 6), (Some(104), 9), (None, 9)] {
        assert!(!is_filled(&mut quoted(), most + 1, limit), "{limit:?}");
        assert!(is_filled(&mut quoted(), most, limit), "{limit:?}");
    }
    for (taken, left) in [(3, 6), (1, 8), (4, 5)] {
        let mut bench = quoted();
        bench.order(2, Buy, taken, None, Tif::Ioc);
        bench.outcomes();
        assert!(!is_filled(&mut bench, left + 1, None), "{taken}");
        assert!(is_filled(&mut bench, left, None), "{taken}");
    }
}

#[test]
fn without_slippage_there_is_only_the_first_portion() {
    let mut bench = desk_with(VenueSettings { slippage_ticks: 0, ..VenueSettings::default() });
    bench.quote(99, 10, 100, 10);
    bench.order(1, Buy, 11, None, Tif::Ioc);
    assert_eq!(bench.outcomes(), [filled(1, 10, 100), (1, Canceled(Reason::Ioc))]);
}

#[test]
fn consumed_size_is_gone_until_that_side_of_the_quote_changes() {
    let mut bench = bench();
    bench.quote(99, 10, 100, 10);
    bench.order(1, Buy, 4, Some(100), Tif::Ioc);
    assert_eq!(bench.outcomes(), [filled(1, 4, 100)]);
    bench.quote(98, 10, 100, 10);
    bench.order(2, Buy, 10, Some(100), Tif::Ioc);
    assert_eq!(bench.outcomes(), [filled(2, 6, 100), (2, Canceled(Reason::Ioc))]);
    bench.quote(98, 10, 100, 9);
    bench.order(3, Buy, 10, Some(100), Tif::Ioc);
    assert_eq!(bench.outcomes(), [filled(3, 9, 100), (3, Canceled(Reason::Ioc))]);
}

#[test]
fn the_better_price_comes_first_and_at_the_same_price_the_quote_comes_before_the_clients() {
    let mut bench = bench();
    bench.limit(1, Sell, 5, 100);
    bench.limit(2, Sell, 5, 101);
    bench.quote(98, 10, 100, 10);
    bench.order(3, Buy, 30, Some(101), Tif::Ioc);
    let fills = [(3, 10, 100), (3, 5, 100), (1, 5, 100), (3, 10, 101), (3, 5, 101), (2, 5, 101)];
    assert_eq!(bench.outcomes(), fills.map(|(slot, q, p)| filled(slot, q, p)));
}

#[test]
fn trades_stop_at_the_price_band() {
    let mut bench = desk_with(VenueSettings { band_bp: 100, ..VenueSettings::default() });
    bench.trade(200, 1);
    bench.limit(1, Sell, 5, 202);
    bench.limit(2, Sell, 5, 203);
    bench.order(3, Buy, 10, Some(210), Tif::Day);
    assert_eq!(bench.outcomes(), [filled(3, 5, 202), filled(1, 5, 202), (3, Canceled(Reason::PriceBand))]);
    bench.trade(200, 1);
    bench.order(4, Buy, 10, Some(210), Tif::Fok);
    assert_eq!(bench.outcomes(), [(4, Canceled(Reason::Fok))]);
}

#[test]
fn a_price_at_the_edge_of_the_band_is_within_it() {
    let banded = |last| {
        let mut bench = desk_with(VenueSettings { band_bp: 100, ..VenueSettings::default() });
        bench.trade(last, 1);
        bench
    };
    let mut bench = banded(200);
    bench.limit(1, Buy, 5, 198);
    bench.limit(2, Buy, 5, 197);
    bench.order(3, Sell, 10, Some(190), Tif::Day);
    assert_eq!(bench.outcomes(), [filled(3, 5, 198), filled(1, 5, 198), (3, Canceled(Reason::PriceBand))]);
    let mut bench = banded(200);
    bench.limit(1, Sell, 5, 198);
    bench.order(2, Buy, 5, Some(200), Tif::Fok);
    assert_eq!(bench.outcomes(), [filled(2, 5, 198), filled(1, 5, 198)]);
}

/// An ask at 190 below a band that begins at 198.
fn ask_below_the_band() -> VenueBench {
    let mut bench = desk_with(VenueSettings { band_bp: 100, ..VenueSettings::default() });
    bench.venue.halt(0, true);
    bench.limit(1, Sell, 5, 190);
    bench.trade(200, 1);
    bench.venue.halt(0, false);
    assert_eq!(bench.outcomes(), []);
    bench
}

#[test]
fn a_fok_does_not_reach_behind_a_price_that_is_too_good_for_the_band() {
    let mut bench = ask_below_the_band();
    bench.limit(2, Sell, 5, 200);
    bench.order(3, Buy, 5, Some(200), Tif::Fok);
    assert_eq!(bench.outcomes(), [(3, Canceled(Reason::Fok))]);
    // Waiting market orders trade at the limit of the order that arrives, within the band.
    let mut bench = ask_below_the_band();
    bench.market(2, Sell, 5);
    assert_eq!(bench.outcomes(), []);
    bench.order(3, Buy, 5, Some(200), Tif::Fok);
    assert_eq!(bench.outcomes(), [filled(3, 5, 200), filled(2, 5, 200)]);
}

#[test]
fn without_a_last_price_there_is_no_band() {
    let mut bench = desk_with(VenueSettings { band_bp: 100, ..VenueSettings::default() });
    bench.limit(1, Sell, 5, 2_000_000);
    bench.order(2, Buy, 5, None, Tif::Day);
    assert_eq!(bench.outcomes(), [filled(2, 5, 2_000_000), filled(1, 5, 2_000_000)]);
}

// Self-trade.

#[test]
fn the_rest_of_a_taker_is_cancelled_before_a_self_trade() {
    let mut bench = bench();
    bench.limit(1, Sell, 5, 100);
    bench.order_of(1, 2, Sell, 5, Some(101), Tif::Day);
    bench.limit(3, Sell, 5, 102);
    bench.outcomes();
    bench.order_of(1, 4, Buy, 20, Some(105), Tif::Day);
    assert_eq!(bench.outcomes(), [filled(4, 5, 100), filled(1, 5, 100), (4, Canceled(Reason::SelfTrade))]);
    assert_eq!(bench.depth(Sell), [(101, 5), (102, 5)]);
    // The same when a quote makes the book more than plain.
    bench.quote(90, 1, 110, 1);
    bench.order_of(1, 5, Buy, 20, Some(105), Tif::Day);
    assert_eq!(bench.outcomes(), [(5, Canceled(Reason::SelfTrade))]);
}

#[test]
fn the_setting_allow_lets_an_account_trade_with_itself() {
    let mut bench = desk_with(VenueSettings { self_trade: SelfTrade::Allow, ..VenueSettings::default() });
    bench.order_of(1, 1, Sell, 5, Some(100), Tif::Day);
    bench.order_of(1, 2, Buy, 5, Some(100), Tif::Fok);
    assert_eq!(bench.outcomes(), [filled(2, 5, 100), filled(1, 5, 100)]);
}

// The rest of an order.

#[test]
fn the_rest_of_an_ioc_is_cancelled() {
    let mut bench = bench();
    bench.limit(1, Sell, 5, 100);
    bench.order(2, Buy, 8, Some(100), Tif::Ioc);
    assert_eq!(bench.outcomes(), [filled(2, 5, 100), filled(1, 5, 100), (2, Canceled(Reason::Ioc))]);
    bench.order(3, Buy, 8, None, Tif::Ioc);
    assert_eq!(bench.all_outcomes(), [(3, Accepted), (3, Canceled(Reason::Ioc))]);
}

#[test]
fn a_fok_trades_whole_or_is_cancelled_untouched() {
    let mut bench = bench();
    bench.limit(1, Sell, 5, 100);
    bench.limit(2, Sell, 5, 101);
    bench.quote(90, 1, 100, 3);
    // 3 of the quote at 100, 5 of the client there, 3 of the quote at 101, 5 of the client there.
    bench.order(3, Buy, 17, Some(101), Tif::Fok);
    assert_eq!(bench.outcomes(), [(3, Canceled(Reason::Fok))]);
    assert_eq!(bench.depth(Sell), [(100, 5), (101, 5)]);
    bench.order(4, Buy, 16, Some(101), Tif::Fok);
    let fills = [(4, 3, 100), (4, 5, 100), (1, 5, 100), (4, 3, 101), (4, 5, 101), (2, 5, 101)];
    assert_eq!(bench.outcomes(), fills.map(|(slot, q, p)| filled(slot, q, p)));
    bench.order(5, Buy, 1, Some(101), Tif::Fok);
    assert_eq!(bench.outcomes(), [(5, Canceled(Reason::Fok))]);
    bench.order(6, Buy, 3 * 8, None, Tif::Fok);
    assert_eq!(bench.outcomes().len(), 8);
}

#[test]
fn a_fok_does_not_meet_an_order_of_its_own_account() {
    let mut bench = bench();
    bench.limit(1, Sell, 5, 100);
    bench.order_of(1, 2, Sell, 5, Some(100), Tif::Day);
    bench.limit(3, Sell, 5, 101);
    bench.outcomes();
    bench.order_of(1, 4, Buy, 6, Some(105), Tif::Fok);
    assert_eq!(bench.outcomes(), [(4, Canceled(Reason::Fok))]);
    bench.order_of(1, 5, Buy, 5, Some(105), Tif::Fok);
    assert_eq!(bench.outcomes(), [filled(5, 5, 100), filled(1, 5, 100)]);
}

#[test]
fn a_fok_that_others_fill_does_not_meet_a_later_order_of_its_own_account() {
    // Others offer 3 by the quote, 5 at the same price, and 5 at the next; then its own order.
    for (own_limit, others) in [(100, 8), (101, 16)] {
        let mut bench = bench();
        bench.quote(90, 1, 100, 3);
        bench.limit(1, Sell, 5, 100);
        if own_limit == 101 {
            bench.limit(2, Sell, 5, 101);
        }
        bench.order_of(1, 3, Sell, 5, Some(own_limit), Tif::Day);
        bench.outcomes();
        bench.order_of(1, 4, Buy, others + 1, Some(own_limit), Tif::Fok);
        assert_eq!(bench.outcomes(), [(4, Canceled(Reason::Fok))], "{own_limit}");
        bench.order_of(1, 5, Buy, others, Some(own_limit), Tif::Fok);
        let bought = bench.outcomes().into_iter().filter_map(|(slot, outcome)| match outcome {
            Filled { qty, .. } if slot == 5 => Some(qty.raw()),
            _ => None,
        });
        assert_eq!(bought.sum::<i64>(), qty(others).raw(), "{own_limit}");
    }
}

#[test]
fn a_fok_counts_waiting_orders_of_other_accounts() {
    let mut bench = bench();
    bench.order_of(1, 1, Sell, 5, None, Tif::Day);
    bench.order_of(2, 2, Sell, 5, None, Tif::Day);
    bench.outcomes();
    bench.order_of(2, 3, Buy, 6, Some(100), Tif::Fok);
    assert_eq!(bench.outcomes(), [(3, Canceled(Reason::Fok))]);
    bench.order_of(2, 3, Buy, 5, Some(100), Tif::Fok);
    assert_eq!(bench.outcomes(), [filled(3, 5, 100), filled(1, 5, 100)]);
    bench.order_of(1, 1, Sell, 5, None, Tif::Day);
    bench.outcomes();
    bench.order_of(3, 4, Buy, 7, Some(100), Tif::Fok);
    assert_eq!(
        bench.outcomes(),
        [filled(4, 5, 100), filled(2, 5, 100), filled(4, 2, 100), filled(1, 2, 100)]
    );
}

// Random behaviour.

#[test]
fn random_rejects_follow_the_permille_and_the_seed() {
    let run = |seed, security| {
        let settings = VenueSettings { reject_permille: 250, seed, ..VenueSettings::default() };
        let book = BookSpec { security: SecurityId(security), ..spec(settings) };
        let mut bench = VenueBench { venue: Venue::new(vec![book], 16, LargePages::NONE), accounts: 0 };
        for slot in 0..1000 {
            bench.order(slot, Buy, 1, Some(100), Tif::Day);
        }
        bench.all_outcomes()
    };
    let refused = run(1, 7).iter().filter(|(_, o)| *o == Rejected(Reason::VenueRandomReject)).count();
    assert!((200..300).contains(&refused), "{refused}");
    assert_eq!(run(1, 7), run(1, 7));
    assert_ne!(run(1, 7), run(2, 7));
    assert_ne!(run(1, 7), run(1, 8));
}

#[test]
fn a_partial_fill_gives_whole_lots_and_drops_the_rest_of_the_portion() {
    let settings = VenueSettings { partial_fill: true, quote_levels: 1, ..VenueSettings::default() };
    let mut bench = desk_with(settings);
    let (mut smaller, mut larger) = (0, 0);
    for size in 1..200 {
        bench.quote(90, 1, 100, size);
        bench.order(1, Buy, 1000, Some(100), Tif::Ioc);
        let outcomes = bench.outcomes();
        let (1, Filled { qty: got, .. }) = outcomes[0] else { panic!("{outcomes:?}") };
        assert!(Grid::new(qty(1).raw()).steps(got.raw()).is_some() && got.is_positive() && got <= qty(size));
        assert_eq!(outcomes[1..], [(1, Canceled(Reason::Ioc))]);
        smaller += (got < qty(size)) as u32;
        larger += (got > qty(1)) as u32;
        bench.order(2, Buy, 1, Some(100), Tif::Ioc);
        assert_eq!(bench.outcomes(), [(2, Canceled(Reason::Ioc))]);
    }
    assert!(smaller > 150 && larger > 150, "{smaller}, {larger}");
    bench.quote(90, 1, 100, 500);
    bench.order(3, Buy, 1, Some(100), Tif::Fok);
    assert_eq!(bench.outcomes(), [filled(3, 1, 100)]);
    bench.order(4, Buy, 499, Some(100), Tif::Fok);
    assert_eq!(bench.outcomes(), [filled(4, 499, 100)], "a FOK has been promised the whole");
}

#[test]
fn an_order_that_wants_less_than_a_partial_fill_gives_leaves_the_rest_of_the_portion() {
    let settings = VenueSettings { partial_fill: true, quote_levels: 1, ..VenueSettings::default() };
    // Returns what an order gets, and the next one after it.
    let taken = |wanted: i64| {
        let mut bench = desk_with(settings.clone());
        bench.quote(90, 1, 100, 200);
        [(1, wanted), (2, 1)].map(|(slot, wanted)| {
            bench.order(slot, Buy, wanted, Some(100), Tif::Ioc);
            match bench.outcomes()[0].1 {
                Filled { qty, .. } => qty.raw() / Qty::whole(1).unwrap().raw(),
                _ => 0,
            }
        })
    };
    let [drawn, 0] = taken(1_000) else { panic!("the rest of the portion is dropped") };
    assert!((2..200).contains(&drawn), "{drawn}");
    assert_eq!(taken(drawn), [drawn, 0]);
    assert_eq!(taken(drawn - 1), [drawn - 1, 1]);
}
