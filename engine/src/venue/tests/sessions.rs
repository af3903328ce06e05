//! Orders allowed in each session of an exchange, and orders that end with it.

use super::*;

#[test]
fn outside_continuous_trading_orders_collect_and_the_feed_fills_none() {
    for session in [TradingSession::Closed, TradingSession::OpeningAuction, TradingSession::ClosingAuction] {
        let mut bench = bench();
        bench.venue.session(0, session);
        bench.limit(1, Sell, 5, 100);
        bench.limit(2, Buy, 5, 101);
        bench.market(3, Buy, 5);
        bench.quote(110, 5, 111, 5);
        bench.trade(50, 100);
        assert_eq!(bench.outcomes(), []);
        assert_eq!((bench.depth(Buy), bench.depth(Sell)), (vec![(101, 5)], vec![(100, 5)]));
        assert_eq!((bench.venue.market(0).last, bench.venue.market(0).quote.bid), (price(50), price(110)));
    }
}

#[test]
fn ioc_and_fok_are_cancelled_at_once_where_nothing_matches() {
    let mut bench = bench();
    bench.venue.halt(0, true);
    for tif in [Tif::Ioc, Tif::Fok] {
        bench.order(1, Buy, 5, Some(100), tif);
        assert_eq!(bench.all_outcomes(), [(1, Accepted), (1, Canceled(Reason::NoLiquidity))]);
    }
}

#[test]
fn an_auction_order_needs_its_auction_ahead() {
    let mut bench = bench();
    bench.order(1, Buy, 5, Some(100), Tif::Ato);
    assert_eq!(bench.all_outcomes(), [(1, Rejected(Reason::NoAuctionAhead))]);
    bench.venue.session(0, TradingSession::ClosingAuction);
    bench.order(1, Buy, 5, Some(100), Tif::Ato);
    assert_eq!(bench.all_outcomes(), [(1, Rejected(Reason::NoAuctionAhead))]);
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
    assert_eq!(plain.all_outcomes(), [(1, Rejected(Reason::NoAuctionAhead))]);
    plain.venue.set_auctions(book, true);
    plain.venue.enter(&entry);
    assert_eq!(plain.all_outcomes(), [(1, Accepted)]);
}

#[test]
fn only_the_end_of_a_halt_in_continuous_trading_uncrosses() {
    let mut bench = bench();
    bench.trade(100, 1);
    // They would meet at the last price.
    bench.market(1, Buy, 5);
    bench.market(2, Sell, 5);
    assert_eq!(bench.outcomes(), []);
    bench.venue.halt(0, false);
    assert_eq!(bench.outcomes(), [], "it was not halted");
    bench.venue.halt(0, true);
    assert_eq!(bench.outcomes(), []);
    bench.limit(3, Buy, 5, 101);
    bench.limit(4, Sell, 5, 100);
    bench.venue.halt(0, true);
    assert_eq!(bench.outcomes(), [], "it stays halted");
    bench.venue.session(0, TradingSession::OpeningAuction);
    bench.venue.halt(0, false);
    assert_eq!(bench.outcomes(), [], "the auction goes on");
    bench.venue.halt(0, true);
    bench.venue.session(0, TradingSession::Continuous);
    assert_eq!(bench.outcomes(), []);
    bench.venue.halt(0, false);
    assert_eq!(bench.outcomes().len(), 4);
}

#[test]
fn ato_orders_collect_and_are_over_after_the_opening_uncross() {
    let mut bench = bench();
    bench.venue.session(0, TradingSession::Closed);
    bench.order(1, Buy, 5, Some(100), Tif::Ato);
    bench.venue.session(0, TradingSession::OpeningAuction);
    bench.order(2, Buy, 5, None, Tif::Ato);
    bench.order(3, Sell, 7, Some(99), Tif::Day);
    assert_eq!(bench.outcomes(), []);
    bench.venue.session(0, TradingSession::Continuous);
    assert_eq!(
        bench.outcomes(),
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
fn atc_orders_are_held_until_the_closing_auction_and_are_over_after_it() {
    let mut bench = bench();
    bench.order(1, Buy, 5, Some(100), Tif::Atc);
    bench.order(2, Sell, 9, None, Tif::Atc);
    bench.limit(3, Buy, 2, 99);
    bench.order(4, Sell, 1, Some(100), Tif::Ioc);
    assert_eq!(bench.outcomes(), [(4, Canceled(Reason::Ioc))], "parked orders do not trade");
    bench.venue.session(0, TradingSession::ClosingAuction);
    assert_eq!((bench.outcomes(), bench.depth(Buy)), (vec![], vec![(100, 5), (99, 2)]));
    bench.order(5, Sell, 3, Some(200), Tif::Atc);
    bench.venue.session(0, TradingSession::Closed);
    assert_eq!(
        bench.outcomes(),
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
    let mut bench = bench();
    bench.order(1, Buy, 5, Some(90), Tif::Gtc);
    bench.order(2, Buy, 5, Some(91), Tif::Day);
    bench.order(3, Sell, 5, Some(101), Tif::Gtd);
    bench.order(4, Sell, 5, Some(102), Tif::Day);
    bench.order(5, Buy, 5, None, Tif::Atc);
    bench.venue.halt(0, true);
    bench.order(6, Buy, 5, None, Tif::Day);
    bench.order(7, Sell, 5, None, Tif::Gtc);
    bench.outcomes();
    bench.venue.session(0, TradingSession::Closed);
    assert_eq!(
        bench.outcomes(),
        [
            (2, Expired(Reason::ExpiredDay)),
            (4, Expired(Reason::ExpiredDay)),
            (6, Expired(Reason::ExpiredDay)),
            (5, Expired(Reason::ExpiredAuction)),
        ]
    );
    assert_eq!((bench.depth(Buy), bench.depth(Sell)), (vec![(90, 5)], vec![(101, 5)]));
    assert!(bench.venue.remaining(7).is_some());
}

#[test]
fn a_halted_book_does_not_uncross_at_the_close_but_its_atc_orders_are_over() {
    let mut bench = bench();
    bench.venue.session(0, TradingSession::ClosingAuction);
    bench.order(1, Buy, 5, Some(100), Tif::Atc);
    bench.order(2, Sell, 5, Some(100), Tif::Gtc);
    bench.venue.halt(0, true);
    bench.venue.session(0, TradingSession::Closed);
    assert_eq!(bench.outcomes(), [(1, Expired(Reason::ExpiredAuction))]);
}
