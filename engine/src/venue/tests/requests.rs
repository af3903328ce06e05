//! Changing and cancelling, and requests that cannot be.

use super::*;

#[test]
fn a_smaller_quantity_alone_keeps_the_place_in_line() {
    let mut desk = desk();
    desk.limit(1, Buy, 5, 100);
    desk.limit(2, Buy, 5, 100);
    desk.venue.replace(1, qty(3), Some(100), Tif::Day);
    assert_eq!(desk.said(), [(1, Replaced)]);
    desk.order(3, Sell, 4, Some(100), Tif::Day);
    assert_eq!(desk.told(), [filled(3, 3, 100), filled(1, 3, 100), filled(3, 1, 100), filled(2, 1, 100)]);
}

#[test]
fn everything_else_gives_the_place_up() {
    for (quantity, tif) in [(6, Tif::Day), (5, Tif::Day), (4, Tif::Gtc)] {
        let mut desk = desk();
        desk.limit(1, Buy, 5, 100);
        desk.limit(2, Buy, 5, 100);
        desk.venue.replace(1, qty(quantity), Some(100), tif);
        assert_eq!(desk.said(), [(1, Replaced)]);
        desk.order(3, Sell, 1, Some(100), Tif::Day);
        assert_eq!(desk.told(), [filled(3, 1, 100), filled(2, 1, 100)]);
    }
}

#[test]
fn a_changed_order_trades_if_it_can() {
    let mut desk = desk();
    desk.limit(1, Buy, 5, 99);
    desk.limit(2, Sell, 3, 100);
    desk.venue.replace(1, qty(5), Some(101), Tif::Day);
    assert_eq!(desk.said(), [(1, Replaced), filled(1, 3, 100), filled(2, 3, 100)]);
    assert_eq!(desk.depth(Buy), [(101, 2)]);
    desk.venue.replace(1, qty(2), Some(101), Tif::Ioc);
    assert_eq!(desk.said(), [(1, Replaced), (1, Canceled(Reason::Ioc))]);
}

#[test]
fn waiting_and_parked_orders_can_be_changed_and_cancelled_too() {
    let mut desk = desk();
    desk.market(1, Buy, 5);
    desk.market(2, Buy, 5);
    desk.order(3, Buy, 5, Some(100), Tif::Atc);
    desk.order(4, Buy, 5, None, Tif::Atc);
    desk.told();
    desk.venue.replace(1, qty(2), None, Tif::Day);
    desk.venue.replace(3, qty(2), Some(100), Tif::Atc);
    desk.venue.replace(4, qty(2), Some(90), Tif::Day);
    desk.venue.cancel(2);
    desk.venue.expire(3, Reason::ExpiredGtd);
    assert_eq!(
        desk.said(),
        [
            (1, Replaced),
            (3, Replaced),
            (4, Replaced),
            (2, Canceled(Reason::Requested)),
            (3, Expired(Reason::ExpiredGtd))
        ]
    );
    assert_eq!(desk.depth(Buy), [(90, 2)]);
    desk.venue.cancel(1);
    assert_eq!(desk.said(), [(1, Canceled(Reason::Requested))]);
}

#[test]
fn a_change_that_cannot_be_leaves_the_order_as_it_is() {
    let mut desk = desk();
    desk.limit(1, Buy, 5, 100);
    desk.venue.replace(1, qty(0), Some(100), Tif::Day);
    desk.venue.replace(1, qty(1), Some(i64::MAX), Tif::Day);
    desk.venue.replace(1, qty(1), Some(100), Tif::Ato);
    let reasons = [Reason::QuantityNotPositive, Reason::Overflow, Reason::NoAuctionAhead];
    assert_eq!(desk.said(), reasons.map(|reason| (1, ReplaceRefused(reason))));
    assert_eq!(desk.depth(Buy), [(100, 5)]);
}

#[test]
fn of_an_order_that_is_not_here_every_request_is_refused() {
    let mut desk = desk();
    desk.limit(1, Buy, 5, 100);
    desk.venue.cancel(1);
    desk.told();
    for slot in [0, 1, 999, NIL] {
        desk.venue.cancel(slot);
        desk.venue.replace(slot, qty(1), Some(1), Tif::Day);
        desk.venue.expire(slot, Reason::ExpiredDay);
        let reason = Reason::OrderFinished;
        assert_eq!(desk.said(), [(slot, CancelRefused(reason)), (slot, ReplaceRefused(reason))]);
    }
}

#[test]
fn what_cannot_be_an_order_is_rejected() {
    let mut desk = desk();
    desk.limit(1, Buy, 5, 100);
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
        (OrderEntry { book: 9, ..good }, Reason::UnknownSecurity),
        (OrderEntry { slot: 1, ..good }, Reason::DuplicateId),
        (OrderEntry { slot: NIL, ..good }, Reason::DuplicateId),
        (OrderEntry { qty: Qty::from_raw(-1), ..good }, Reason::QuantityNotPositive),
        (OrderEntry { limit: Some(i64::MAX), ..good }, Reason::Overflow),
        (OrderEntry { limit: Some(i64::MIN), ..good }, Reason::Overflow),
    ];
    for (entry, reason) in bad {
        desk.venue.enter(&entry);
        assert_eq!(desk.said(), [(entry.slot, Rejected(reason))]);
    }
    desk.venue.enter(&OrderEntry { qty: Qty::MAX, ..good });
    desk.venue.enter(&OrderEntry { slot: 3, ..good });
    assert_eq!(desk.told(), [(3, Canceled(Reason::Overflow))], "the sum at a price must be countable");
    for (book, on) in [(9, true), (9, false)] {
        desk.venue.halt(book, on);
        desk.venue.session(book, Session::Closed);
        desk.venue.quote(book, &Quote::default());
        desk.venue.trade(book, &Trade::default());
        assert!(!desk.venue.work(book));
    }
}
