//! The calls for orders that only rest or leave, and what is recorded for those who watch a book.

use super::*;

fn buy(slot: u32, quantity: i64, limit: i64) -> OrderEntry {
    OrderEntry {
        slot,
        book: 0,
        side: Buy,
        limit: Some(limit),
        qty: qty(quantity),
        tif: Tif::Day,
        account: AccountId(1),
    }
}

/// Returns a bench in which these slots were used before: the first use is never the plain case.
fn used_bench() -> VenueBench {
    let mut bench = bench();
    for slot in 1..=3 {
        bench.limit(slot, Buy, 1, 50);
        bench.venue.cancel(slot);
        bench.outcomes();
    }
    bench
}

#[test]
fn an_order_that_only_rests_does_so_without_an_outcome() {
    let mut bench = used_bench();
    bench.limit(1, Sell, 5, 102);
    assert!(bench.venue.rest(&buy(2, 5, 100)));
    assert_eq!(bench.depth(Buy), [(100, 5)]);
    let others = [
        ("its slot is taken", buy(2, 5, 100)),
        ("it trades", buy(3, 5, 102)),
        ("it has no limit", OrderEntry { limit: None, ..buy(3, 5, 100) }),
        ("it may not wait", OrderEntry { tif: Tif::Ioc, ..buy(3, 5, 100) }),
        ("it must trade whole", OrderEntry { tif: Tif::Fok, ..buy(3, 5, 100) }),
        ("it has no quantity", buy(3, 0, 100)),
    ];
    for (reason, entry) in others {
        assert!(!bench.venue.rest(&entry), "{reason}");
    }
    assert_eq!((bench.all_outcomes(), bench.depth(Buy)), (vec![], vec![(100, 5)]));
    assert_eq!(bench.venue.remaining(3), None);
}

#[test]
fn a_resting_order_is_queued_again_or_withdrawn_without_an_outcome() {
    let mut bench = used_bench();
    // A quote that shows nothing, and settings without special rules, leave the book plain.
    bench.venue.quote(0, &Quote::default());
    bench.venue.set_up(0, VenueSettings::default());
    assert!(bench.venue.rest(&buy(1, 5, 100)));
    for (quantity, limit) in [(6, 101), (6, 101), (4, 102)] {
        assert!(bench.venue.requeue(1, qty(quantity), Some(limit), Tif::Day), "{quantity} at {limit}");
        assert_eq!(bench.depth(Buy), [(limit, quantity)]);
    }
    assert!(!bench.venue.requeue(1, qty(3), Some(102), Tif::Day), "it keeps its place");
    assert!(!bench.venue.requeue(2, qty(5), Some(102), Tif::Day), "there is none");
    assert_eq!(bench.venue.resting_qty(0, Buy, 102), qty(4));
    assert!(bench.venue.withdraw(1));
    assert!(!bench.venue.withdraw(1));
    bench.market(2, Buy, 5);
    bench.outcomes();
    assert!(!bench.venue.withdraw(2), "it waits elsewhere");
    assert_eq!((bench.all_outcomes(), bench.depth(Buy)), (vec![], vec![]));
}

#[test]
fn without_watchers_nothing_is_recorded() {
    let mut bench = bench();
    bench.venue.follow(0, true);
    bench.limit(1, Buy, 5, 100);
    assert!(bench.venue.has_touched());
    bench.venue.follow_none();
    bench.limit(2, Buy, 5, 100);
    assert!(!bench.venue.has_touched());
    assert_eq!(bench.venue.take_touched(), None);
    bench.venue.watch_trades(0, true);
    assert!(!bench.venue.has_trades());
    bench.trade(200, 3);
    assert!(bench.venue.has_trades());
    bench.venue.clear_trades();
    bench.venue.watch_trades(0, false);
    bench.trade(200, 3);
    assert!(!bench.venue.has_trades());
}
