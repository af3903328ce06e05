//! What an exchange's sessions let through, and what ends with them.

use super::*;

#[test]
fn outside_of_continuous_trading_orders_collect_and_the_feed_fills_nobody() {
    for session in [Session::Closed, Session::OpeningAuction, Session::ClosingAuction] {
        let mut desk = desk();
        desk.venue.session(0, session);
        desk.limit(1, Sell, 5, 100);
        desk.limit(2, Buy, 5, 101);
        desk.market(3, Buy, 5);
        desk.quote(110, 5, 111, 5);
        desk.trade(50, 100);
        assert_eq!(desk.told(), []);
        assert_eq!((desk.depth(Buy), desk.depth(Sell)), (vec![(101, 5)], vec![(100, 5)]));
        assert_eq!((desk.venue.market(0).last, desk.venue.market(0).quote.bid), (price(50), price(110)));
    }
}

#[test]
fn ioc_and_fok_are_cancelled_at_once_where_nothing_matches() {
    let mut desk = desk();
    desk.venue.halt(0, true);
    for tif in [Tif::Ioc, Tif::Fok] {
        desk.order(1, Buy, 5, Some(100), tif);
        assert_eq!(desk.said(), [(1, Accepted), (1, Canceled(Reason::NoLiquidity))]);
    }
}

#[test]
fn an_auction_order_needs_its_auction_ahead() {
    let mut desk = desk();
    desk.order(1, Buy, 5, Some(100), Tif::Ato);
    assert_eq!(desk.said(), [(1, Rejected(Reason::NoAuctionAhead))]);
    desk.venue.session(0, Session::ClosingAuction);
    desk.order(1, Buy, 5, Some(100), Tif::Ato);
    assert_eq!(desk.said(), [(1, Rejected(Reason::NoAuctionAhead))]);
    let mut plain = desk_with(VenueSettings::default());
    let book = plain.venue.add_book(BookSpec { auctions: false, ..spec(VenueSettings::default()) });
    let entry = OrderEntry {
        slot: 1,
        book,
        side: Buy,
        limit: Some(1),
        qty: qty(1),
        tif: Tif::Atc,
        account: AccountId(1),
    };
    plain.venue.enter(&entry);
    assert_eq!(plain.said(), [(1, Rejected(Reason::NoAuctionAhead))]);
}

#[test]
fn ato_orders_collect_and_are_over_after_the_opening_uncross() {
    let mut desk = desk();
    desk.venue.session(0, Session::Closed);
    desk.order(1, Buy, 5, Some(100), Tif::Ato);
    desk.venue.session(0, Session::OpeningAuction);
    desk.order(2, Buy, 5, None, Tif::Ato);
    desk.order(3, Sell, 7, Some(99), Tif::Day);
    assert_eq!(desk.told(), []);
    desk.venue.session(0, Session::Continuous);
    assert_eq!(
        desk.told(),
        [
            filled(2, 5, 99),
            filled(3, 5, 99),
            filled(1, 2, 99),
            filled(3, 2, 99),
            (1, Expired(Reason::ExpiredAuction))
        ]
    );
}

#[test]
fn atc_orders_are_kept_aside_until_the_closing_auction_and_are_over_after_it() {
    let mut desk = desk();
    desk.order(1, Buy, 5, Some(100), Tif::Atc);
    desk.order(2, Sell, 9, None, Tif::Atc);
    desk.limit(3, Buy, 2, 99);
    desk.order(4, Sell, 1, Some(100), Tif::Ioc);
    assert_eq!(desk.told(), [(4, Canceled(Reason::Ioc))], "parked orders do not trade");
    desk.venue.session(0, Session::ClosingAuction);
    assert_eq!((desk.told(), desk.depth(Buy)), (vec![], vec![(100, 5), (99, 2)]));
    desk.order(5, Sell, 3, Some(200), Tif::Atc);
    desk.venue.session(0, Session::Closed);
    assert_eq!(
        desk.told(),
        [
            filled(1, 5, 99),
            filled(2, 5, 99),
            filled(3, 2, 99),
            filled(2, 2, 99),
            (5, Expired(Reason::ExpiredAuction)),
            (2, Expired(Reason::ExpiredAuction)),
        ]
    );
}

#[test]
fn day_orders_end_when_the_exchange_becomes_closed_then_parked_ones_and_gtc_and_gtd_stay() {
    let mut desk = desk();
    desk.order(1, Buy, 5, Some(90), Tif::Gtc);
    desk.order(2, Buy, 5, Some(91), Tif::Day);
    desk.order(3, Sell, 5, Some(101), Tif::Gtd);
    desk.order(4, Sell, 5, Some(102), Tif::Day);
    desk.order(5, Buy, 5, None, Tif::Atc);
    desk.venue.halt(0, true);
    desk.order(6, Buy, 5, None, Tif::Day);
    desk.order(7, Sell, 5, None, Tif::Gtc);
    desk.told();
    desk.venue.session(0, Session::Closed);
    assert_eq!(
        desk.told(),
        [
            (2, Expired(Reason::ExpiredDay)),
            (4, Expired(Reason::ExpiredDay)),
            (6, Expired(Reason::ExpiredDay)),
            (5, Expired(Reason::ExpiredAuction)),
        ]
    );
    assert_eq!((desk.depth(Buy), desk.depth(Sell)), (vec![(90, 5)], vec![(101, 5)]));
    assert!(desk.venue.remaining(7).is_some());
}

#[test]
fn a_halted_book_does_not_uncross_at_the_close_but_its_atc_orders_are_over() {
    let mut desk = desk();
    desk.venue.session(0, Session::ClosingAuction);
    desk.order(1, Buy, 5, Some(100), Tif::Atc);
    desk.order(2, Sell, 5, Some(100), Tif::Gtc);
    desk.venue.halt(0, true);
    desk.venue.session(0, Session::Closed);
    assert_eq!(desk.told(), [(1, Expired(Reason::ExpiredAuction))]);
}
