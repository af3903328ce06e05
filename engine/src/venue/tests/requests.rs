//! Modifications and cancels, and invalid requests.

use super::*;

#[test]
fn a_smaller_quantity_alone_keeps_the_place_in_line() {
    let mut bench = bench();
    bench.limit(1, Buy, 5, 100);
    bench.limit(2, Buy, 5, 100);
    bench.venue.replace(1, qty(3), Some(100), Tif::Day);
    assert_eq!(bench.all_outcomes(), [(1, Replaced)]);
    assert_eq!((bench.venue.remaining(1), bench.depth(Buy)), (Some(qty(3)), vec![(100, 8)]));
    bench.order(3, Sell, 4, Some(100), Tif::Day);
    assert_eq!(
        bench.outcomes(),
        [filled(3, 3, 100), filled(1, 3, 100), filled(3, 1, 100), filled(2, 1, 100)]
    );
}

#[test]
fn every_other_change_gives_up_the_place_in_the_queue() {
    let changes = [(6, 100, Tif::Day), (5, 100, Tif::Day), (4, 100, Tif::Gtc), (4, 99, Tif::Day)];
    for ((quantity, limit, tif), is_quoted) in changes.into_iter().flat_map(|c| [(c, false), (c, true)]) {
        let mut bench = bench();
        if is_quoted {
            bench.quote(10, 1, 300, 1);
        }
        bench.limit(1, Buy, 5, 100);
        bench.limit(2, Buy, 5, 100);
        bench.venue.replace(1, qty(quantity), Some(limit), tif);
        assert_eq!(bench.all_outcomes(), [(1, Replaced)]);
        assert_eq!(bench.venue.resting_qty(0, Buy, limit), qty(quantity + if limit == 100 { 5 } else { 0 }));
        bench.order(3, Sell, 1, Some(100), Tif::Day);
        assert_eq!(bench.outcomes(), [filled(3, 1, 100), filled(2, 1, 100)]);
    }
}

#[test]
fn a_changed_order_trades_if_it_can() {
    let mut bench = bench();
    bench.limit(1, Buy, 5, 99);
    bench.limit(2, Sell, 3, 100);
    bench.venue.replace(1, qty(5), Some(101), Tif::Day);
    assert_eq!(bench.all_outcomes(), [(1, Replaced), filled(1, 3, 100), filled(2, 3, 100)]);
    assert_eq!(bench.depth(Buy), [(101, 2)]);
    bench.venue.replace(1, qty(2), Some(101), Tif::Ioc);
    assert_eq!(bench.all_outcomes(), [(1, Replaced), (1, Canceled(Reason::Ioc))]);
}

#[test]
fn waiting_and_parked_orders_can_be_changed_and_cancelled_too() {
    let mut bench = bench();
    bench.market(1, Buy, 5);
    bench.market(2, Buy, 5);
    bench.order(3, Buy, 5, Some(100), Tif::Atc);
    bench.order(4, Buy, 5, None, Tif::Atc);
    bench.outcomes();
    bench.venue.replace(1, qty(2), None, Tif::Day);
    bench.venue.replace(3, qty(2), Some(100), Tif::Atc);
    bench.venue.replace(4, qty(2), Some(90), Tif::Day);
    assert_eq!((bench.venue.remaining(1), bench.venue.remaining(3)), (Some(qty(2)), Some(qty(2))));
    bench.venue.cancel(2);
    bench.venue.expire(3, Reason::ExpiredGtd);
    assert_eq!(
        bench.all_outcomes(),
        [
            (1, Replaced),
            (3, Replaced),
            (4, Replaced),
            (2, Canceled(Reason::Requested)),
            (3, Expired(Reason::ExpiredGtd))
        ]
    );
    assert_eq!(bench.depth(Buy), [(90, 2)]);
    bench.venue.cancel(1);
    assert_eq!(bench.all_outcomes(), [(1, Canceled(Reason::Requested))]);
}

#[test]
fn an_invalid_change_leaves_the_order_unchanged() {
    let mut bench = bench();
    bench.limit(1, Buy, 5, 100);
    bench.venue.replace(1, qty(0), Some(100), Tif::Day);
    bench.venue.replace(1, qty(1), Some(i64::MAX), Tif::Day);
    bench.venue.replace(1, qty(1), Some(100), Tif::Ato);
    let reasons = [Reason::QuantityNotPositive, Reason::Overflow, Reason::NoAuctionAhead];
    assert_eq!(bench.all_outcomes(), reasons.map(|reason| (1, ReplaceRefused(reason))));
    assert_eq!(bench.depth(Buy), [(100, 5)]);
}

#[test]
fn every_request_about_an_absent_order_is_refused() {
    let mut bench = bench();
    bench.limit(1, Buy, 5, 100);
    bench.venue.cancel(1);
    bench.outcomes();
    for slot in [0, 1, 999, NIL] {
        bench.venue.cancel(slot);
        bench.venue.replace(slot, qty(1), Some(1), Tif::Day);
        bench.venue.expire(slot, Reason::ExpiredDay);
        let reason = Reason::OrderFinished;
        assert_eq!(bench.all_outcomes(), [(slot, CancelRefused(reason)), (slot, ReplaceRefused(reason))]);
    }
}

#[test]
fn an_invalid_order_is_rejected() {
    let mut bench = bench();
    bench.limit(1, Buy, 5, 100);
    let good = OrderEntry {
        slot: 2,
        book: 0,
        side: Sell,
        limit: Some(200),
        qty: qty(1),
        tif: Tif::Day,
        account: AccountId(1),
    };
    let bad = [
        (OrderEntry { book: 1, ..good }, Reason::UnknownSecurity),
        (OrderEntry { book: 9, ..good }, Reason::UnknownSecurity),
        (OrderEntry { slot: 1, ..good }, Reason::DuplicateId),
        (OrderEntry { slot: NIL, ..good }, Reason::DuplicateId),
        (OrderEntry { qty: Qty::from_raw(-1), ..good }, Reason::QuantityNotPositive),
        (OrderEntry { limit: Some(i64::MAX), ..good }, Reason::Overflow),
        (OrderEntry { limit: Some(i64::MIN), ..good }, Reason::Overflow),
    ];
    for (entry, reason) in bad {
        bench.venue.enter(&entry);
        assert_eq!(bench.all_outcomes(), [(entry.slot, Rejected(reason))]);
    }
    bench.venue.enter(&OrderEntry { qty: Qty::MAX, ..good });
    bench.venue.enter(&OrderEntry { slot: 3, ..good });
    assert_eq!(bench.outcomes(), [(3, Canceled(Reason::Overflow))], "the sum at a price must be countable");
    for (book, on) in [(1, true), (9, false)] {
        bench.venue.halt(book, on);
        bench.venue.session(book, TradingSession::Closed);
        bench.venue.quote(book, &Quote::default());
        bench.venue.trade(book, &Trade::default());
        assert!(!bench.venue.work(book));
    }
}
