//! Each rule of the README's section on the venue, as a test; and a naive twin for the plain case.

use super::*;
use crate::number::Grid;
use crate::order::NIL;
use crate::settings::{FillModel, SelfTrade};
use crate::time::Timestamp;

use Outcome::*;
use Side::{Buy, Sell};

/// One book with a tick of 1 and whole quantities, and everything that was said.
struct Desk {
    venue: Venue,
    accounts: u16,
}

fn qty(qty: i64) -> Qty {
    Qty::whole(qty).unwrap()
}

fn price(price: i64) -> Price {
    Price::whole(price).unwrap()
}

fn filled(slot: u32, quantity: i64, at: i64) -> (u32, Outcome) {
    (slot, Filled { qty: qty(quantity), price: price(at) })
}

fn spec(settings: VenueSettings) -> BookSpec {
    BookSpec { security: SecurityId(7), tick_size: price(1), lot: qty(1), auctions: true, settings }
}

fn desk() -> Desk {
    desk_with(VenueSettings::default())
}

fn desk_with(settings: VenueSettings) -> Desk {
    Desk { venue: Venue::new(vec![spec(settings)], 16), accounts: 0 }
}

fn model(fill_model: FillModel) -> Desk {
    desk_with(VenueSettings { fill_model, ..VenueSettings::default() })
}

impl Desk {
    /// An order of an account of its own; the slot counts up from 1 in the test.
    fn order(&mut self, slot: u32, side: Side, quantity: i64, limit: Option<i64>, tif: Tif) {
        self.accounts += 1;
        self.order_of(self.accounts + 1000, slot, side, quantity, limit, tif);
    }

    fn order_of(&mut self, account: u16, slot: u32, side: Side, quantity: i64, limit: Option<i64>, tif: Tif) {
        let account = AccountId(account);
        self.venue.enter(&Entry { slot, book: 0, side, limit, qty: qty(quantity), tif, account });
    }

    fn limit(&mut self, slot: u32, side: Side, quantity: i64, limit: i64) {
        self.order(slot, side, quantity, Some(limit), Tif::Day);
        assert_eq!(self.told(), [], "it was meant to rest");
    }

    fn market(&mut self, slot: u32, side: Side, quantity: i64) {
        self.order(slot, side, quantity, None, Tif::Day);
    }

    fn quote(&mut self, bid: i64, bid_size: i64, ask: i64, ask_size: i64) {
        let quote = Quote {
            bid: price(bid),
            bid_size: qty(bid_size),
            ask: price(ask),
            ask_size: qty(ask_size),
            at: Timestamp(1),
        };
        self.venue.quote(0, &quote);
    }

    fn trade(&mut self, at: i64, size: i64) {
        self.venue.trade(0, &Trade { price: price(at), size: qty(size), at: Timestamp(2) });
    }

    /// All that was said, without acceptances, after all work is done.
    fn told(&mut self) -> Vec<(u32, Outcome)> {
        self.said().into_iter().filter(|(_, outcome)| *outcome != Accepted).collect()
    }

    fn said(&mut self) -> Vec<(u32, Outcome)> {
        while self.venue.work(0) {}
        let said = self.venue.outcomes().to_vec();
        self.venue.clear_outcomes();
        said
    }

    fn depth(&self, side: Side) -> Vec<(i64, i64)> {
        let whole = |raw: i64| raw / Qty::whole(1).unwrap().raw();
        self.venue.depth(0, side, 10).map(|(p, q)| (whole(p.raw()), whole(q.raw()))).collect()
    }
}

// One book per security.

#[test]
fn price_comes_before_time_and_the_trade_price_is_the_resting_orders() {
    let mut desk = desk();
    desk.limit(1, Sell, 5, 101);
    desk.limit(2, Sell, 5, 100);
    desk.limit(3, Sell, 5, 100);
    desk.order(4, Buy, 12, Some(101), Tif::Day);
    let fills = [(4, 5, 100), (2, 5, 100), (4, 5, 100), (3, 5, 100), (4, 2, 101), (1, 2, 101)];
    let mut expected = vec![(4, Accepted)];
    expected.extend(fills.map(|(slot, q, p)| filled(slot, q, p)));
    assert_eq!(desk.said(), expected);
    assert_eq!((desk.depth(Buy), desk.depth(Sell)), (vec![], vec![(101, 3)]));
    let market = desk.venue.market(0);
    assert_eq!(
        (market.last, market.last_size, market.volume, market.traded),
        (price(101), qty(2), qty(12), true)
    );
}

#[test]
fn trades_stop_at_the_orders_limit_and_the_rest_of_a_limit_order_rests() {
    let mut desk = desk();
    desk.limit(1, Sell, 5, 100);
    desk.limit(2, Sell, 5, 102);
    desk.order(3, Buy, 8, Some(101), Tif::Gtc);
    assert_eq!(desk.told(), [filled(3, 5, 100), filled(1, 5, 100)]);
    assert_eq!((desk.depth(Buy), desk.depth(Sell)), (vec![(101, 3)], vec![(102, 5)]));
    assert_eq!(desk.venue.remaining(3), Some(qty(3)));
    assert_eq!(desk.venue.remaining(1), None);
}

// Liquidity.

#[test]
fn a_quote_gives_its_size_then_further_portions_each_a_tick_worse() {
    let mut desk =
        desk_with(VenueSettings { quote_levels: 3, slippage_ticks: 2, ..VenueSettings::default() });
    desk.quote(99, 10, 100, 10);
    desk.order(1, Buy, 100, None, Tif::Ioc);
    let portions = [filled(1, 10, 100), filled(1, 10, 102), filled(1, 10, 104)];
    assert_eq!(desk.told()[..3], portions);
    desk.order(2, Sell, 15, Some(97), Tif::Ioc);
    assert_eq!(desk.told(), [filled(2, 10, 99), filled(2, 5, 97)]);
}

#[test]
fn without_slippage_there_is_only_the_first_portion() {
    let mut desk = desk_with(VenueSettings { slippage_ticks: 0, ..VenueSettings::default() });
    desk.quote(99, 10, 100, 10);
    desk.order(1, Buy, 11, None, Tif::Ioc);
    assert_eq!(desk.told(), [filled(1, 10, 100), (1, Canceled(Reason::Ioc))]);
}

#[test]
fn what_was_taken_is_gone_until_that_side_of_the_quote_changes() {
    let mut desk = desk();
    desk.quote(99, 10, 100, 10);
    desk.order(1, Buy, 4, Some(100), Tif::Ioc);
    assert_eq!(desk.told(), [filled(1, 4, 100)]);
    desk.quote(98, 10, 100, 10);
    desk.order(2, Buy, 10, Some(100), Tif::Ioc);
    assert_eq!(desk.told(), [filled(2, 6, 100), (2, Canceled(Reason::Ioc))]);
    desk.quote(98, 10, 100, 9);
    desk.order(3, Buy, 10, Some(100), Tif::Ioc);
    assert_eq!(desk.told(), [filled(3, 9, 100), (3, Canceled(Reason::Ioc))]);
}

#[test]
fn the_better_price_comes_first_and_at_the_same_price_the_quote_comes_before_the_clients() {
    let mut desk = desk();
    desk.limit(1, Sell, 5, 100);
    desk.limit(2, Sell, 5, 101);
    desk.quote(98, 10, 100, 10);
    desk.order(3, Buy, 30, Some(101), Tif::Ioc);
    let fills = [(3, 10, 100), (3, 5, 100), (1, 5, 100), (3, 10, 101), (3, 5, 101), (2, 5, 101)];
    assert_eq!(desk.told(), fills.map(|(slot, q, p)| filled(slot, q, p)));
}

#[test]
fn trades_stop_at_the_price_band() {
    let mut desk = desk_with(VenueSettings { band_bp: 100, ..VenueSettings::default() });
    desk.trade(200, 1);
    desk.limit(1, Sell, 5, 202);
    desk.limit(2, Sell, 5, 203);
    desk.order(3, Buy, 10, Some(210), Tif::Day);
    assert_eq!(desk.told(), [filled(3, 5, 202), filled(1, 5, 202), (3, Canceled(Reason::PriceBand))]);
    desk.trade(200, 1);
    desk.order(4, Buy, 10, Some(210), Tif::Fok);
    assert_eq!(desk.told(), [(4, Canceled(Reason::Fok))]);
}

#[test]
fn without_a_last_price_there_is_no_band() {
    let mut desk = desk_with(VenueSettings { band_bp: 100, ..VenueSettings::default() });
    desk.limit(1, Sell, 5, 2_000_000);
    desk.order(2, Buy, 5, None, Tif::Day);
    assert_eq!(desk.told(), [filled(2, 5, 2_000_000), filled(1, 5, 2_000_000)]);
}

// Self-trade.

#[test]
fn the_newcomers_rest_is_cancelled_before_it_meets_an_order_of_its_account() {
    let mut desk = desk();
    desk.limit(1, Sell, 5, 100);
    desk.order_of(1, 2, Sell, 5, Some(101), Tif::Day);
    desk.limit(3, Sell, 5, 102);
    desk.told();
    desk.order_of(1, 4, Buy, 20, Some(105), Tif::Day);
    assert_eq!(desk.told(), [filled(4, 5, 100), filled(1, 5, 100), (4, Canceled(Reason::SelfTrade))]);
    assert_eq!(desk.depth(Sell), [(101, 5), (102, 5)]);
    // The same when a quote makes the book more than plain.
    desk.quote(90, 1, 110, 1);
    desk.order_of(1, 5, Buy, 20, Some(105), Tif::Day);
    assert_eq!(desk.told(), [(5, Canceled(Reason::SelfTrade))]);
}

#[test]
fn the_setting_allow_lets_an_account_trade_with_itself() {
    let mut desk = desk_with(VenueSettings { self_trade: SelfTrade::Allow, ..VenueSettings::default() });
    desk.order_of(1, 1, Sell, 5, Some(100), Tif::Day);
    desk.order_of(1, 2, Buy, 5, Some(100), Tif::Fok);
    assert_eq!(desk.told(), [filled(2, 5, 100), filled(1, 5, 100)]);
}

// What is left.

#[test]
fn the_rest_of_an_ioc_is_cancelled() {
    let mut desk = desk();
    desk.limit(1, Sell, 5, 100);
    desk.order(2, Buy, 8, Some(100), Tif::Ioc);
    assert_eq!(desk.told(), [filled(2, 5, 100), filled(1, 5, 100), (2, Canceled(Reason::Ioc))]);
    desk.order(3, Buy, 8, None, Tif::Ioc);
    assert_eq!(desk.said(), [(3, Accepted), (3, Canceled(Reason::Ioc))]);
}

#[test]
fn a_fok_trades_whole_or_is_cancelled_untouched() {
    let mut desk = desk();
    desk.limit(1, Sell, 5, 100);
    desk.limit(2, Sell, 5, 101);
    desk.quote(90, 1, 100, 3);
    // 3 of the quote at 100, 5 of the client there, 3 of the quote at 101, 5 of the client there.
    desk.order(3, Buy, 17, Some(101), Tif::Fok);
    assert_eq!(desk.told(), [(3, Canceled(Reason::Fok))]);
    assert_eq!(desk.depth(Sell), [(100, 5), (101, 5)]);
    desk.order(4, Buy, 16, Some(101), Tif::Fok);
    let fills = [(4, 3, 100), (4, 5, 100), (1, 5, 100), (4, 3, 101), (4, 5, 101), (2, 5, 101)];
    assert_eq!(desk.told(), fills.map(|(slot, q, p)| filled(slot, q, p)));
    desk.order(5, Buy, 1, Some(101), Tif::Fok);
    assert_eq!(desk.told(), [(5, Canceled(Reason::Fok))]);
    desk.order(6, Buy, 3 * 8, None, Tif::Fok);
    assert_eq!(desk.told().len(), 8);
}

#[test]
fn a_fok_does_not_meet_an_order_of_its_own_account() {
    let mut desk = desk();
    desk.limit(1, Sell, 5, 100);
    desk.order_of(1, 2, Sell, 5, Some(100), Tif::Day);
    desk.limit(3, Sell, 5, 101);
    desk.told();
    desk.order_of(1, 4, Buy, 6, Some(105), Tif::Fok);
    assert_eq!(desk.told(), [(4, Canceled(Reason::Fok))]);
    desk.order_of(1, 5, Buy, 5, Some(105), Tif::Fok);
    assert_eq!(desk.told(), [filled(5, 5, 100), filled(1, 5, 100)]);
}

#[test]
fn a_fok_counts_those_who_wait_unless_they_are_its_own() {
    let mut desk = desk();
    desk.order_of(1, 1, Sell, 5, None, Tif::Day);
    desk.order_of(2, 2, Sell, 5, None, Tif::Day);
    desk.told();
    desk.order_of(2, 3, Buy, 6, Some(100), Tif::Fok);
    assert_eq!(desk.told(), [(3, Canceled(Reason::Fok))]);
    desk.order_of(3, 4, Buy, 7, Some(100), Tif::Fok);
    assert_eq!(desk.told(), [filled(4, 5, 100), filled(1, 5, 100), filled(4, 2, 100), filled(2, 2, 100)]);
}

// A waiting market order.

#[test]
fn a_waiting_market_order_is_met_before_anything_else_at_the_arriving_limit() {
    let mut desk = desk();
    desk.market(1, Buy, 5);
    desk.market(2, Buy, 5);
    assert_eq!(desk.told(), []);
    desk.limit(3, Buy, 5, 105);
    desk.order(4, Sell, 12, Some(100), Tif::Day);
    let fills = [(4, 5, 100), (1, 5, 100), (4, 5, 100), (2, 5, 100), (4, 2, 105), (3, 2, 105)];
    assert_eq!(desk.told(), fills.map(|(slot, q, p)| filled(slot, q, p)));
}

#[test]
fn two_market_orders_do_not_meet() {
    let mut desk = desk();
    desk.market(1, Buy, 5);
    desk.market(2, Sell, 5);
    assert_eq!(desk.told(), []);
    assert_eq!((desk.venue.remaining(1), desk.venue.remaining(2)), (Some(qty(5)), Some(qty(5))));
    desk.order(3, Sell, 5, None, Tif::Ioc);
    assert_eq!(desk.told(), [(3, Canceled(Reason::Ioc))]);
}

#[test]
fn on_a_quote_waiting_market_orders_trade_oldest_first_each_to_its_end() {
    let mut desk = desk_with(VenueSettings { quote_levels: 2, ..VenueSettings::default() });
    desk.market(1, Buy, 6);
    desk.market(2, Sell, 3);
    desk.market(3, Buy, 6);
    desk.told();
    desk.quote(99, 5, 100, 5);
    assert_eq!(desk.told(), [filled(1, 5, 100), filled(1, 1, 101), filled(2, 3, 99), filled(3, 4, 101)]);
    assert_eq!(desk.venue.remaining(3), Some(qty(2)));
    // It keeps its place: it is still ahead of whoever comes now.
    desk.market(4, Buy, 1);
    desk.quote(99, 5, 100, 6);
    assert_eq!(desk.told(), [filled(3, 2, 100), filled(4, 1, 100)]);
    desk.order(5, Sell, 1, Some(50), Tif::Day);
    assert_eq!(desk.told(), [filled(5, 1, 99)], "nobody waits any more");
}

#[test]
fn a_waiting_market_order_is_cancelled_rather_than_meet_its_own_account() {
    let mut desk = desk();
    desk.venue.halt(0, true);
    desk.order_of(1, 1, Buy, 5, None, Tif::Day);
    desk.venue.halt(0, false);
    desk.told();
    desk.order_of(1, 2, Sell, 5, Some(100), Tif::Day);
    assert_eq!(desk.told(), [(2, Canceled(Reason::SelfTrade))]);
    desk.order_of(1, 3, Sell, 5, Some(100), Tif::Fok);
    assert_eq!(desk.told(), [(3, Canceled(Reason::Fok))]);
    assert_eq!(desk.venue.remaining(1), Some(qty(5)));
}

#[test]
fn a_waiting_market_order_stops_at_the_band() {
    let mut desk = desk_with(VenueSettings { band_bp: 100, ..VenueSettings::default() });
    desk.trade(100, 1);
    desk.market(1, Buy, 5);
    desk.order(2, Sell, 5, Some(50), Tif::Fok);
    assert_eq!(desk.told(), [(2, Canceled(Reason::Fok))]);
    desk.order(3, Sell, 5, Some(50), Tif::Day);
    assert_eq!(desk.told(), [(3, Canceled(Reason::PriceBand))]);
    desk.quote(99, 1, 101, 1);
    assert_eq!(desk.told(), [filled(1, 1, 101), (1, Canceled(Reason::PriceBand))]);
}

// Resting orders and the feed.

#[test]
fn a_feed_trade_fills_better_buys_at_their_limits_best_first_up_to_its_size() {
    let mut desk = desk();
    desk.limit(1, Buy, 5, 101);
    desk.limit(2, Buy, 5, 102);
    desk.limit(3, Buy, 5, 101);
    desk.trade(100, 12);
    assert_eq!(desk.told(), [filled(2, 5, 102), filled(1, 5, 101), filled(3, 2, 101)]);
    desk.trade(100, 0);
    assert_eq!(desk.told(), [filled(3, 3, 101)]);
}

#[test]
fn a_feed_trade_fills_sells_below_it_with_its_whole_size_again() {
    let mut desk = desk();
    desk.venue.halt(0, true);
    desk.limit(1, Sell, 5, 99);
    desk.limit(2, Sell, 5, 98);
    desk.limit(3, Sell, 5, 100);
    desk.venue.halt(0, false);
    desk.told();
    desk.limit(4, Buy, 5, 97);
    desk.trade(100, 12);
    assert_eq!(desk.told(), [filled(2, 5, 98), filled(1, 5, 99), filled(3, 2, 100)]);
    desk.trade(97, 6);
    assert_eq!(desk.told(), [filled(4, 5, 97)]);
}

#[test]
fn a_feed_trade_between_two_ticks_fills_nobody_at_a_very_price() {
    let mut desk = desk();
    desk.limit(1, Buy, 5, 100);
    desk.limit(2, Sell, 5, 102);
    let half = Price::parse(b"100.5").unwrap();
    desk.venue.trade(0, &Trade { price: half, size: qty(50), at: Timestamp(3) });
    assert_eq!(desk.told(), []);
    assert_eq!((desk.venue.market(0).last, desk.venue.market(0).at), (half, Timestamp(3)));
    let below = Price::parse(b"99.5").unwrap();
    desk.venue.trade(0, &Trade { price: below, size: qty(50), at: Timestamp(3) });
    assert_eq!(desk.told(), [filled(1, 5, 100)]);
}

#[test]
fn a_quote_that_goes_through_a_resting_order_fills_it_at_its_limit_out_of_the_shown_size() {
    let mut desk = desk();
    desk.limit(1, Buy, 5, 100);
    desk.limit(2, Buy, 5, 101);
    desk.limit(3, Sell, 5, 105);
    desk.quote(90, 5, 99, 7);
    assert_eq!(desk.told(), [filled(2, 5, 101), filled(1, 2, 100)]);
    desk.quote(90, 6, 99, 7);
    assert_eq!(desk.told(), [], "the ask has not changed and is used up");
    desk.quote(106, 6, 107, 7);
    assert_eq!(desk.told(), [filled(3, 5, 105)]);
}

#[test]
fn at_the_very_price_nothing_fills_by_quote() {
    let mut desk = desk();
    desk.limit(1, Buy, 5, 100);
    desk.quote(99, 5, 100, 7);
    assert_eq!(desk.told(), []);
}

#[test]
fn the_model_through_fills_nothing_at_the_very_price() {
    let mut desk = model(FillModel::Through);
    desk.limit(1, Buy, 5, 100);
    desk.trade(100, 1000);
    assert_eq!(desk.told(), []);
    desk.trade(99, 1000);
    assert_eq!(desk.told(), [filled(1, 5, 100)]);
}

#[test]
fn the_model_touch_knows_no_queue_and_fills_by_a_quote_at_the_very_price() {
    let mut desk = model(FillModel::Touch);
    desk.quote(100, 50, 105, 50);
    desk.limit(1, Buy, 5, 100);
    desk.trade(100, 3);
    assert_eq!(desk.told(), [filled(1, 3, 100)]);
    desk.quote(99, 50, 100, 50);
    assert_eq!(desk.told(), [filled(1, 2, 100)]);
}

// The queue ahead.

#[test]
fn a_trade_at_the_price_takes_from_the_queue_ahead_first() {
    let mut desk = desk();
    desk.quote(100, 50, 105, 50);
    desk.limit(1, Buy, 5, 100);
    desk.limit(2, Buy, 5, 100);
    desk.trade(100, 48);
    assert_eq!(desk.told(), []);
    desk.trade(100, 8);
    assert_eq!(desk.told(), [filled(1, 5, 100), filled(2, 1, 100)]);
    desk.trade(100, 0);
    assert_eq!(desk.told(), [filled(2, 4, 100)], "nothing is ahead any more");
}

#[test]
fn a_trade_of_unknown_size_does_not_pass_the_queue() {
    let mut desk = desk();
    desk.quote(100, 50, 105, 50);
    desk.limit(1, Buy, 5, 100);
    desk.trade(100, 0);
    assert_eq!(desk.told(), []);
}

#[test]
fn the_queue_counts_what_the_quote_shows_and_was_not_consumed() {
    let mut desk = desk();
    desk.quote(100, 50, 105, 50);
    desk.order(1, Sell, 45, Some(100), Tif::Ioc);
    desk.told();
    desk.limit(2, Buy, 5, 100);
    desk.trade(100, 6);
    assert_eq!(desk.told(), [filled(2, 1, 100)]);
}

#[test]
fn a_smaller_shown_size_shrinks_the_queue_in_proportion_rounded_up_and_a_larger_one_does_not_lengthen_it() {
    let mut desk = desk();
    desk.quote(100, 50, 105, 50);
    desk.limit(1, Buy, 5, 100);
    desk.trade(100, 20);
    desk.quote(100, 90, 105, 50);
    // 30 ahead of 90 shown; a third of it is 10.
    desk.quote(100, 30, 105, 50);
    desk.trade(100, 11);
    assert_eq!(desk.told(), [filled(1, 1, 100)]);
    let mut queue = Queue { ticks: 1, ahead: Qty::from_raw(7), shown: Qty::from_raw(10) };
    queue.resize(Qty::from_raw(5));
    assert_eq!((queue.ahead.raw(), queue.shown.raw()), (4, 5));
}

#[test]
fn the_queue_is_set_when_the_bid_moves_to_the_price_and_forgotten_when_it_leaves() {
    let mut desk = desk();
    desk.limit(1, Sell, 5, 100);
    desk.quote(90, 5, 100, 10);
    desk.trade(100, 10);
    assert_eq!(desk.told(), []);
    desk.quote(90, 5, 101, 10);
    desk.trade(100, 1);
    assert_eq!(desk.told(), [filled(1, 1, 100)], "better than the ask: no queue");
    desk.quote(90, 5, 100, 20);
    desk.trade(100, 21);
    assert_eq!(desk.told(), [filled(1, 1, 100)]);
    desk.quote(90, 5, 100, 0);
    desk.trade(100, 1);
    assert_eq!(desk.told(), [filled(1, 1, 100)], "no quote, no queue");
}

#[test]
fn the_queue_is_set_anew_when_nobody_else_rests_at_the_price() {
    let mut desk = desk();
    desk.quote(100, 10, 105, 50);
    desk.limit(1, Buy, 5, 100);
    desk.trade(100, 9);
    desk.venue.cancel(1);
    desk.told();
    desk.limit(2, Buy, 5, 100);
    desk.trade(100, 10);
    assert_eq!(desk.told(), []);
}

#[test]
fn of_orders_behind_the_bid_nobody_trades_at_the_very_price() {
    let mut desk = desk();
    desk.quote(101, 10, 105, 50);
    desk.limit(1, Buy, 5, 100);
    desk.trade(100, 500);
    assert_eq!(desk.told(), []);
    desk.trade(99, 500);
    assert_eq!(desk.told(), [filled(1, 5, 100)]);
}

// Sessions.

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
    let entry =
        Entry { slot: 1, book, side: Buy, limit: Some(1), qty: qty(1), tif: Tif::Atc, account: AccountId(1) };
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

// Uncross.

/// Limits and market orders (limit 0) that collect, the last price (0: none), and the price and volume they clear at.
fn clears(buys: &[(i64, i64)], sells: &[(i64, i64)], last: i64) -> Option<(i64, i64)> {
    let mut desk = desk();
    desk.venue.session(0, Session::OpeningAuction);
    let sides = buys.iter().map(|order| (Buy, order)).chain(sells.iter().map(|order| (Sell, order)));
    for (slot, (side, &(limit, quantity))) in sides.enumerate() {
        let limit = (limit != 0).then_some(limit);
        desk.order(slot as u32, side, quantity, limit, Tif::Ato);
    }
    if last != 0 {
        desk.trade(last, 0);
    }
    desk.told();
    desk.venue.session(0, Session::Continuous);
    let mut fills = desk.told().into_iter().filter_map(|(slot, outcome)| match outcome {
        Filled { qty, price } => ((slot as usize) < buys.len()).then_some((price.raw(), qty.raw())),
        _ => None,
    });
    let (price, first) = fills.next()?;
    let one = Qty::whole(1).unwrap().raw();
    Some((price / one, (first + fills.map(|(_, qty)| qty).sum::<i64>()) / one))
}

#[test]
fn the_uncross_price_has_the_largest_volume() {
    assert_eq!(clears(&[(105, 10), (103, 5)], &[(100, 5), (103, 10)], 0), Some((103, 15)));
}

#[test]
fn then_the_smallest_surplus() {
    assert_eq!(clears(&[(105, 10), (101, 5)], &[(100, 10)], 100), Some((105, 10)));
}

#[test]
fn then_nearest_to_the_last_price() {
    assert_eq!(clears(&[(105, 10)], &[(100, 10)], 104), Some((104, 10)));
    assert_eq!(clears(&[(105, 10)], &[(100, 10)], 90), Some((100, 10)));
    assert_eq!(clears(&[(105, 10)], &[(100, 10)], 190), Some((105, 10)));
}

#[test]
fn then_the_lowest() {
    assert_eq!(clears(&[(105, 10)], &[(100, 10)], 0), Some((100, 10)));
}

#[test]
fn market_orders_alone_trade_at_the_last_price_and_without_any_price_not_at_all() {
    assert_eq!(clears(&[(0, 10)], &[(0, 7)], 50), Some((50, 7)));
    assert_eq!(clears(&[(0, 10)], &[(0, 7)], 0), None);
    assert_eq!(clears(&[(0, 10)], &[(60, 7)], 0), Some((60, 7)));
    assert_eq!(clears(&[(50, 10)], &[(60, 7)], 55), None);
}

#[test]
fn within_the_volume_market_orders_come_first_then_better_limits_then_arrival() {
    let mut desk = desk();
    desk.venue.halt(0, true);
    desk.limit(1, Buy, 5, 100);
    desk.limit(2, Buy, 5, 101);
    desk.limit(3, Buy, 5, 100);
    desk.market(4, Buy, 5);
    desk.limit(5, Sell, 18, 100);
    desk.told();
    desk.venue.halt(0, false);
    let buyers: Vec<u32> = desk.told().iter().map(|(slot, _)| *slot).filter(|&slot| slot != 5).collect();
    assert_eq!(buyers, [4, 2, 1, 3]);
    assert_eq!(desk.depth(Buy), [(100, 2)]);
    assert_eq!(desk.venue.market(0).volume, qty(18));
}

#[test]
fn an_account_may_meet_itself_in_an_auction() {
    let mut desk = desk();
    desk.venue.session(0, Session::OpeningAuction);
    desk.order_of(1, 1, Buy, 5, Some(100), Tif::Day);
    desk.order_of(1, 2, Sell, 5, Some(100), Tif::Day);
    desk.told();
    desk.venue.session(0, Session::Continuous);
    assert_eq!(desk.told(), [filled(1, 5, 100), filled(2, 5, 100)]);
}

#[test]
fn the_quote_takes_part_as_one_order_behind_the_clients_at_its_price() {
    let mut desk = desk();
    desk.quote(90, 5, 100, 10);
    desk.order(1, Buy, 4, Some(100), Tif::Ioc);
    desk.told();
    desk.venue.halt(0, true);
    desk.limit(2, Buy, 12, 100);
    desk.limit(3, Sell, 5, 100);
    desk.venue.halt(0, false);
    // 5 of the client, then 6 that are left of the quote.
    assert_eq!(desk.told(), [filled(2, 5, 100), filled(3, 5, 100), filled(2, 6, 100)]);
    desk.order(4, Buy, 1, Some(100), Tif::Ioc);
    assert_eq!(desk.told(), [(4, Canceled(Reason::Ioc))], "the quote's size is consumed");
}

#[test]
fn after_the_uncross_waiting_market_orders_meet_the_quote() {
    let mut desk = desk();
    desk.quote(90, 5, 100, 10);
    desk.venue.halt(0, true);
    desk.market(1, Buy, 15);
    desk.told();
    desk.venue.halt(0, false);
    assert_eq!(desk.told(), [filled(1, 10, 100), filled(1, 5, 101)]);
}

#[test]
fn a_crossed_quote_trades_with_nobody_but_clients() {
    let mut desk = desk();
    desk.venue.halt(0, true);
    desk.quote(102, 5, 100, 10);
    desk.limit(1, Buy, 3, 101);
    desk.venue.halt(0, false);
    assert_eq!(desk.told(), [filled(1, 3, 100)]);
}

// Modifying.

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
    let good = Entry {
        slot: 2,
        book: 0,
        side: Sell,
        limit: Some(200),
        qty: qty(1),
        tif: Tif::Day,
        account: AccountId(1),
    };
    let bad = [
        (Entry { book: 9, ..good }, Reason::UnknownSecurity),
        (Entry { slot: 1, ..good }, Reason::DuplicateId),
        (Entry { slot: NIL, ..good }, Reason::DuplicateId),
        (Entry { qty: Qty::from_raw(-1), ..good }, Reason::QuantityNotPositive),
        (Entry { limit: Some(i64::MAX), ..good }, Reason::Overflow),
        (Entry { limit: Some(i64::MIN), ..good }, Reason::Overflow),
    ];
    for (entry, reason) in bad {
        desk.venue.enter(&entry);
        assert_eq!(desk.said(), [(entry.slot, Rejected(reason))]);
    }
    desk.venue.enter(&Entry { qty: Qty::MAX, ..good });
    desk.venue.enter(&Entry { slot: 3, ..good });
    assert_eq!(desk.told(), [(3, Canceled(Reason::Overflow))], "the sum at a price must be countable");
    for (book, on) in [(9, true), (9, false)] {
        desk.venue.halt(book, on);
        desk.venue.session(book, Session::Closed);
        desk.venue.quote(book, &Quote::default());
        desk.venue.trade(book, &Trade::default());
        assert!(!desk.venue.work(book));
    }
}

// Dice.

#[test]
fn so_many_in_a_thousand_are_refused_and_the_same_ones_each_time() {
    let run = |seed, security| {
        let settings = VenueSettings { reject_permille: 250, seed, ..VenueSettings::default() };
        let book = BookSpec { security: SecurityId(security), ..spec(settings) };
        let mut desk = Desk { venue: Venue::new(vec![book], 16), accounts: 0 };
        for slot in 0..1000 {
            desk.order(slot, Buy, 1, Some(100), Tif::Day);
        }
        desk.said()
    };
    let refused = run(1, 7).iter().filter(|(_, o)| *o == Rejected(Reason::VenueRandomReject)).count();
    assert!((200..300).contains(&refused), "{refused}");
    assert_eq!(run(1, 7), run(1, 7));
    assert_ne!(run(1, 7), run(2, 7));
    assert_ne!(run(1, 7), run(1, 8));
}

#[test]
fn a_partial_fill_gives_whole_lots_and_what_it_does_not_give_is_gone() {
    let settings = VenueSettings { partial_fill: true, quote_levels: 1, ..VenueSettings::default() };
    let mut desk = desk_with(settings);
    let mut smaller = 0;
    for size in 1..200 {
        desk.quote(90, 1, 100, size);
        desk.order(1, Buy, 1000, Some(100), Tif::Ioc);
        let told = desk.told();
        let (1, Filled { qty: got, .. }) = told[0] else { panic!("{told:?}") };
        assert!(Grid::new(qty(1).raw()).steps(got.raw()).is_some() && got.is_positive() && got <= qty(size));
        assert_eq!(told[1..], [(1, Canceled(Reason::Ioc))]);
        smaller += (got < qty(size)) as u32;
        desk.order(2, Buy, 1, Some(100), Tif::Ioc);
        assert_eq!(desk.told(), [(2, Canceled(Reason::Ioc))]);
    }
    assert!(smaller > 150, "{smaller}");
    desk.quote(90, 1, 100, 500);
    desk.order(3, Buy, 1, Some(100), Tif::Fok);
    assert_eq!(desk.told(), [filled(3, 1, 100)]);
    desk.order(4, Buy, 499, Some(100), Tif::Fok);
    assert_eq!(desk.told(), [filled(4, 499, 100)], "a FOK has been promised the whole");
}

// Steps.

/// Works a book to its end and gives the number of steps; none may fill more than is allowed.
fn steps(desk: &mut Desk) -> (usize, usize) {
    let (mut steps, mut fills) = (0, 0);
    loop {
        let said = desk.venue.outcomes();
        let filled = said.iter().filter(|(_, outcome)| matches!(outcome, Filled { .. })).count();
        assert!(filled <= 2 * FILLS_PER_STEP as usize, "{filled} in one step");
        assert!(said.len() <= OUTCOMES_PER_STEP_MAX, "{}", said.len());
        (steps, fills) = (steps + 1, fills + filled);
        let more = desk.venue.has_work(0);
        desk.venue.clear_outcomes();
        if !more {
            return (steps, fills);
        }
        desk.venue.work(0);
    }
}

#[test]
fn a_market_order_through_a_thousand_orders_makes_at_most_eight_fills_a_step() {
    let mut desk = desk();
    for slot in 0..1000 {
        desk.limit(slot, Sell, 1, 100 + slot as i64 / 3);
    }
    desk.market(1000, Buy, 1000);
    desk.venue.cancel(1000);
    assert_eq!(desk.venue.outcomes().last(), Some(&(1000, CancelRefused(Reason::RequestPending))));
    desk.venue.clear_outcomes();
    let (steps, fills) = steps(&mut desk);
    assert!((124..=126).contains(&steps), "{steps}");
    assert_eq!(fills, 2000 - 16);
    assert!(desk.venue.remaining(1000).is_none());
}

#[test]
fn feeds_uncrosses_lines_and_ends_of_day_take_small_steps_too() {
    let mut desk = desk();
    desk.venue.halt(0, true);
    for slot in 0..300 {
        desk.limit(slot, Buy, 1, 100 + slot as i64 % 7);
        desk.limit(slot + 300, Sell, 1, 104 + slot as i64 % 7);
        desk.order(slot + 600, Buy, 1, None, Tif::Gtc);
        desk.order(slot + 900, Sell, 1, Some(120), Tif::Atc);
    }
    desk.venue.clear_outcomes();
    desk.venue.halt(0, false);
    let (count, fills) = steps(&mut desk);
    assert!(fills >= 600 && count >= fills / 16, "{fills} fills in {count} steps");
    desk.trade(103, 0);
    assert!(steps(&mut desk).0 > 1);
    desk.quote(80, 500, 90, 500);
    assert!(steps(&mut desk).0 > 1);
    desk.venue.session(0, Session::ClosingAuction);
    assert!(steps(&mut desk).0 > 30);
    desk.venue.session(0, Session::Closed);
    assert!(steps(&mut desk).0 > 30);
    assert!((0..1200).all(|slot| desk.venue.remaining(slot).is_none_or(|_| (600..900).contains(&slot))));
}

// Any calls at all.

fn any_ticks(chance: &mut Chance) -> i64 {
    match chance.below(20) {
        0 => chance.next_u64() as i64,
        1 => [i64::MIN, i64::MAX, 0, -1][chance.below(4) as usize],
        2 => chance.below(5_000) as i64 - 2_500,
        _ => 100 + chance.below(12) as i64,
    }
}

fn any_qty(chance: &mut Chance) -> Qty {
    match chance.below(40) {
        0 => Qty::from_raw(chance.next_u64() as i64),
        1 => Qty::MAX,
        _ => Qty::from_raw(chance.below(50) as i64),
    }
}

/// Calls something; the quantity an order has if the call is granted.
fn any_call(venue: &mut Venue, chance: &mut Chance) -> Qty {
    let qty = any_qty(chance);
    let (book, slot) = (chance.below(3) as u32, chance.below(200) as u32);
    let side = Side::BOTH[chance.below(2) as usize];
    let tif = Tif::ALL[chance.below(7) as usize];
    let limit = (chance.below(5) > 0).then(|| any_ticks(chance));
    let price = |chance: &mut Chance| Price::from_raw(any_ticks(chance).saturating_mul(3));
    match chance.below(100) {
        0..50 => {
            let account = AccountId(chance.below(8) as u16);
            venue.enter(&Entry { slot, book, side, limit, qty, tif, account });
        }
        50..60 => venue.cancel(slot),
        60..75 => venue.replace(slot, qty, limit, tif),
        75..78 => venue.expire(slot, Reason::ExpiredGtd),
        78..86 => {
            let (bid, ask) = (price(chance), price(chance));
            let (bid_size, ask_size) = (any_qty(chance), any_qty(chance));
            venue.quote(book, &Quote { bid, bid_size, ask, ask_size, at: Timestamp(1) });
        }
        86..94 => {
            let (price, size) = (price(chance), any_qty(chance));
            venue.trade(book, &Trade { price, size, at: Timestamp(2) });
        }
        94..97 => venue.halt(book, chance.below(3) == 0),
        _ => venue.session(book, Session::ALL[chance.below(4).max(chance.below(3)) as usize]),
    }
    qty
}

#[test]
fn nothing_panics_and_every_order_ends_once_whatever_is_called() {
    for seed in 0..60 {
        let mut chance = Chance::new(seed);
        let settings = VenueSettings {
            fill_model: [FillModel::Queue, FillModel::Through, FillModel::Touch][seed as usize % 3],
            slippage_ticks: seed as u32 % 3,
            quote_levels: [10, 1, 0, u32::MAX][seed as usize % 4],
            self_trade: [SelfTrade::CancelNewest, SelfTrade::Allow][seed as usize % 2],
            band_bp: [0, 300][seed as usize / 2 % 2],
            reject_permille: seed as u32 % 5 * 10,
            partial_fill: seed % 7 == 0,
            ..VenueSettings::default()
        };
        let book = BookSpec {
            tick_size: Price::from_raw(3),
            lot: Qty::from_raw(1 + seed as i64 % 2),
            ..spec(settings)
        };
        let mut venue = Venue::new(vec![book.clone(), BookSpec { auctions: false, ..book }], 4);
        let mut open = [Qty::ZERO; 200];
        for _ in 0..4_000 {
            let qty = any_call(&mut venue, &mut chance);
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
    !venue.books[book as usize].mode.has(Mode::COLLECTING)
}

/// What is left of an order, by what is said of it.
fn follow(left: &mut Qty, asked: Qty, outcome: Outcome) {
    match outcome {
        Accepted => {
            assert!(left.is_zero());
            *left = asked;
        }
        Replaced => {
            assert!(left.is_positive());
            *left = asked;
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
