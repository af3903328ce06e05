//! Long work in small steps; and random calls, with a twin that follows the outcomes.

use super::*;

/// Works a book to its end and returns the number of steps; none may fill more than is allowed.
fn steps(bench: &mut VenueBench) -> (usize, usize) {
    let (mut steps, mut fills) = (0, 0);
    loop {
        let outcomes = bench.venue.outcomes();
        let filled = outcomes.iter().filter(|(_, outcome)| matches!(outcome, Filled { .. })).count();
        assert!(filled <= 2 * FILLS_PER_STEP as usize, "{filled} in one step");
        assert!(outcomes.len() <= OUTCOMES_PER_STEP_MAX, "{}", outcomes.len());
        (steps, fills) = (steps + 1, fills + filled);
        let more = bench.venue.has_work(0);
        bench.venue.clear_outcomes();
        if !more {
            return (steps, fills);
        }
        bench.venue.work(0);
    }
}

#[test]
fn a_market_order_through_a_thousand_orders_makes_at_most_eight_fills_a_step() {
    let mut bench = bench();
    for slot in 0..1000 {
        bench.limit(slot, Sell, 1, 100 + slot as i64 / 3);
    }
    bench.market(1000, Buy, 1000);
    bench.venue.cancel(1000);
    assert_eq!(bench.venue.outcomes().last(), Some(&(1000, CancelRefused(Reason::RequestPending))));
    bench.venue.clear_outcomes();
    let (steps, fills) = steps(&mut bench);
    assert!((124..=126).contains(&steps), "{steps}");
    assert_eq!(fills, 2000 - 16);
    assert!(bench.venue.remaining(1000).is_none());
}

#[test]
fn feeds_uncrosses_lines_and_ends_of_day_take_small_steps_too() {
    let mut bench = bench();
    bench.venue.halt(0, true);
    for slot in 0..300 {
        bench.limit(slot, Buy, 1, 100 + slot as i64 % 7);
        bench.limit(slot + 300, Sell, 1, 104 + slot as i64 % 7);
        bench.order(slot + 600, Buy, 1, None, Tif::Gtc);
        bench.order(slot + 900, Sell, 1, Some(120), Tif::Atc);
    }
    bench.venue.clear_outcomes();
    bench.venue.halt(0, false);
    let (count, fills) = steps(&mut bench);
    assert!(fills >= 600 && count >= fills / 16, "{fills} fills in {count} steps");
    bench.trade(103, 0);
    assert!(steps(&mut bench).0 > 1);
    bench.quote(80, 500, 90, 500);
    assert!(steps(&mut bench).0 > 1);
    bench.venue.session(0, TradingSession::ClosingAuction);
    assert!(steps(&mut bench).0 > 30);
    bench.venue.session(0, TradingSession::Closed);
    assert!(steps(&mut bench).0 > 30);
    assert!((0..1200).all(|slot| bench.venue.remaining(slot).is_none_or(|_| (600..900).contains(&slot))));
}

// Random calls.

fn any_ticks(rng: &mut Rng) -> i64 {
    match rng.below(20) {
        0 => rng.next_u64() as i64,
        1 => [i64::MIN, i64::MAX, 0, -1][rng.below(4) as usize],
        2 => rng.below(5_000) as i64 - 2_500,
        _ => 100 + rng.below(12) as i64,
    }
}

fn any_qty(rng: &mut Rng) -> Qty {
    match rng.below(40) {
        0 => Qty::from_raw(rng.next_u64() as i64),
        1 => Qty::MAX,
        _ => Qty::from_raw(rng.below(50) as i64),
    }
}

/// Makes a random call. Returns the quantity that an order has if the call succeeds.
fn any_call(venue: &mut Venue, rng: &mut Rng) -> Qty {
    let qty = any_qty(rng);
    let (book, slot) = (rng.below(3) as u32, rng.below(200) as u32);
    let side = Side::BOTH[rng.below(2) as usize];
    let tif = Tif::ALL[rng.below(7) as usize];
    let limit = (rng.below(5) > 0).then(|| any_ticks(rng));
    let price = |rng: &mut Rng| Price::from_raw(any_ticks(rng).saturating_mul(3));
    match rng.below(100) {
        0..50 => {
            let account = AccountId(rng.below(8) as u16);
            venue.enter(&OrderEntry { slot, book, side, limit, qty, tif, account });
        }
        50..60 => venue.cancel(slot),
        60..75 => venue.replace(slot, qty, limit, tif),
        75..78 => venue.expire(slot, Reason::ExpiredGtd),
        78..86 => {
            let (bid, ask) = (price(rng), price(rng));
            let (bid_size, ask_size) = (any_qty(rng), any_qty(rng));
            venue.quote(book, &Quote { bid, bid_size, ask, ask_size, at: Timestamp(1) });
        }
        86..94 => {
            let (price, size) = (price(rng), any_qty(rng));
            venue.trade(book, &Trade { price, size, at: Timestamp(2) });
        }
        94..97 => venue.halt(book, rng.below(3) == 0),
        _ => venue.session(book, TradingSession::ALL[rng.below(4).max(rng.below(3)) as usize]),
    }
    qty
}

#[test]
fn random_calls_never_panic_and_every_order_ends_once() {
    for seed in 0..60 {
        let mut rng = Rng::new(seed);
        let settings = VenueSettings {
            fill_model: FillModel::ALL[seed as usize % FillModel::ALL.len()],
            slippage_ticks: seed as u32 % 3,
            quote_levels: [10, 1, 0, u32::MAX][seed as usize % 4],
            self_trade: [SelfTrade::CancelNewest, SelfTrade::Allow][seed as usize % 2],
            band_bp: [0, 300][seed as usize / 2 % 2],
            reject_permille: seed as u32 % 5 * 10,
            partial_fill: seed % 7 == 0,
            quote_sizes: [QuoteSizes::Equal, QuoteSizes::Varied][seed as usize / 3 % 2],
            ..VenueSettings::default()
        };
        let book = BookSpec {
            tick_size: Price::from_raw(3),
            lot: Qty::from_raw(1 + seed as i64 % 2),
            ..spec(settings)
        };
        let mut venue =
            Venue::new(vec![book.clone(), BookSpec { auctions: false, ..book }], 4, LargePages::NONE);
        let mut open = [Qty::ZERO; 200];
        for _ in 0..4_000 {
            let qty = any_call(&mut venue, &mut rng);
            loop {
                assert!(venue.outcomes().len() <= OUTCOMES_PER_STEP_MAX);
                for &(slot, outcome) in venue.outcomes() {
                    follow(&mut open[slot as usize], qty, outcome);
                }
                venue.clear_outcomes();
                if !venue.work(0) && !venue.work(1) && venue.outcomes().is_empty() {
                    break;
                }
            }
            for (slot, &left) in open.iter().enumerate() {
                let remaining = venue.remaining(slot as u32).unwrap_or_default();
                assert_eq!(left, remaining, "slot {slot}, seed {seed}");
            }
            for book in 0..2 {
                let best = |side| venue.depth(book, side, 1).next().map(|(price, _)| price);
                if let (Some(bid), Some(ask), true) = (best(Buy), best(Sell), is_open(&venue, book)) {
                    assert!(bid < ask, "{bid} against {ask}, seed {seed}");
                }
            }
        }
    }
}

fn is_open(venue: &Venue, book: u32) -> bool {
    !venue.books[book as usize].mode.has(BookMode::COLLECTING)
}

/// Follows the remaining quantity of an order by its outcomes.
fn follow(left: &mut Qty, requested: Qty, outcome: VenueOutcome) {
    match outcome {
        Accepted => {
            assert!(left.is_zero());
            *left = requested;
        }
        Replaced => {
            assert!(left.is_positive());
            *left = requested;
        }
        Rejected(_) | CancelRefused(_) | ReplaceRefused(_) => {}
        Filled { qty, .. } => {
            assert!(qty.is_positive() && qty <= *left);
            *left = Qty::from_raw(left.raw() - qty.raw());
        }
        Canceled(_) | Expired(_) => {
            assert!(left.is_positive(), "it ends once");
            *left = Qty::ZERO;
        }
    }
}
