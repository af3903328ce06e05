//! Lookups: the venue is asked what became of an order.

use pitlane_engine::command::VenueState;
use pitlane_engine::event::VenueRequest;
use pitlane_engine::reason::Reason;
use pitlane_engine::terms::Tif;

use super::super::super::UNKNOWN_MARGIN_NS;
use super::super::super::lookup::LOOKUPS_IN_FLIGHT_MAX;
use super::venue::{Venue, order, qty, standing, terms};
use super::*;

/// Time from a request to the moment from which an unknown order was never placed.
const CONCLUSIVE_NS: u64 = 2 * NS_PER_S + UNKNOWN_MARGIN_NS;
const STALE_RETRY_NS: u64 = NS_PER_S / 5;

#[test]
fn an_unknown_order_was_never_placed_once_its_request_cannot_arrive_any_more() {
    for (tif, roles) in [(Tif::Gtc, 3), (Tif::Day, 4)] {
        let mut venue = Venue::with_order(terms(tif, 10, 100));
        venue.now = NOW.plus(100 * NS_PER_S);
        venue.session.look_up_again(venue.now, order());
        let conclusive_at = venue.now.plus(CONCLUSIVE_NS);
        let ask_all = |venue: &mut Venue| {
            for _ in 0..roles {
                assert_eq!(venue.asked(), [RequestKind::Status(order())], "{tif:?}");
                venue.refuse(RequestKind::Status(order()), 400, -2013, "Order does not exist.");
            }
            assert_eq!(venue.asked(), []);
        };
        ask_all(&mut venue);
        assert_eq!(venue.session.lookup_deadline(), conclusive_at, "{tif:?}");
        assert_eq!(venue.reports(), [VenueReport::Unsure]);
        venue.now = conclusive_at;
        venue.session.send_lookups(venue.now);
        ask_all(&mut venue);
        assert_eq!(venue.reports(), [standing(0, VenueState::Rejected(Reason::UnknownOrder))]);
        assert_eq!(venue.session.lookup_deadline(), Timestamp::MAX);
    }
}

#[test]
fn an_order_in_the_archive_ended_without_a_fill() {
    let mut venue = Venue::with_gtc();
    venue.instruct(VenueRequest::Status, terms(Tif::Gtc, 10, 100));
    assert_eq!(venue.reports(), [VenueReport::Unsure]);
    venue.refuse(RequestKind::Status(order()), 400, -2026, "Order was canceled over 90 days ago.");
    assert_eq!(venue.reports(), [standing(0, VenueState::Canceled(Reason::VenueCancelled))]);
}

#[test]
fn a_lookup_that_the_venue_cannot_answer_is_repeated() {
    for (body, incomplete) in [
        (r#""status":503,"error":{"code":0,"msg":"No."}"#, 0),
        (r#""status":200,"result":{"orderId":1}"#, 1),
        (r#""status":200,"result":{"orderId":1,"status":"SLEEPING","executedQty":"0"}"#, 1),
    ] {
        let mut venue = Venue::with_gtc();
        venue.instruct(VenueRequest::Status, terms(Tif::Gtc, 10, 100));
        assert_eq!(venue.reports(), [VenueReport::Unsure]);
        venue.answer(RequestKind::Status(order()), body);
        assert_eq!((venue.reports(), venue.asked()), (vec![], vec![]), "{body}");
        assert_eq!(venue.session.lookup_deadline(), NOW.plus(UNKNOWN_MARGIN_NS));
        assert_eq!(venue.session.counts.incomplete, incomplete);
        venue.session.send_lookups(NOW.plus(UNKNOWN_MARGIN_NS));
        assert_eq!(venue.asked(), [RequestKind::Status(order())]);
    }
}

/// Returns an adapter that looks up an order of which a trade with two units is known.
fn looking_up() -> Venue {
    let mut venue = Venue::with_gtc();
    venue.trade(5, "2", "2");
    venue.instruct(VenueRequest::Status, terms(Tif::Gtc, 10, 100));
    assert_eq!(venue.fills(), (vec![qty(2)], true));
    venue
}

fn open(cum: i64) -> String {
    format!(r#""result":{{"orderId":1,"status":"PARTIALLY_FILLED","executedQty":"{cum}"}}"#)
}

#[test]
fn an_answer_that_is_older_than_an_event_is_asked_for_again() {
    // Units of the answer and of an event meanwhile, and whether that event ended the order.
    for (cum, seen, is_over, is_outdated) in
        [(2, 2, false, false), (1, 2, false, true), (2, 3, false, true), (2, 2, true, true)]
    {
        let mut venue = looking_up();
        venue.session.lookups.note_event(order(), qty(seen), is_over);
        venue.answer(RequestKind::Status(order()), &open(cum));
        let expected = if is_outdated { vec![] } else { vec![standing(cum, VenueState::Open)] };
        assert_eq!((venue.reports(), venue.asked()), (expected, vec![]), "{cum} {seen} {is_over}");
        let due = if is_outdated { NOW.plus(STALE_RETRY_NS) } else { Timestamp::MAX };
        assert_eq!(venue.session.lookup_deadline(), due);
    }
}

#[test]
fn a_lookup_reports_missing_trades_before_the_state() {
    let trade =
        |id: u64, units: i64| format!(r#"{{"id":{id},"price":"100","qty":"{units}","commission":"0"}}"#);
    // Units of the trades found, of an event meanwhile, and whether the state is reported.
    for (units, seen, is_finished) in [
        (vec![1, 1], 2, true),
        (vec![2], 4, true),
        (vec![1], 2, false),
        (vec![2], 5, false),
        (vec![3], 2, true),
    ] {
        let mut venue = looking_up();
        venue.answer(RequestKind::Status(order()), &open(4));
        assert_eq!(venue.asked(), [RequestKind::Trades(order())]);
        venue.session.lookups.note_event(order(), qty(seen), false);
        let list: Vec<String> = (8..).zip(&units).map(|(id, units)| trade(id, *units)).collect();
        venue.answer(RequestKind::Trades(order()), &format!(r#""result":[{}]"#, list.join(",")));
        let mut reports = venue.reports();
        assert_eq!(reports.len(), units.len() + usize::from(is_finished), "{units:?} {seen}");
        if is_finished {
            let cum = 2 + units.iter().sum::<i64>();
            assert_eq!(reports.pop(), Some(standing(cum, VenueState::Open)));
        }
        let due = if is_finished { Timestamp::MAX } else { NOW.plus(STALE_RETRY_NS) };
        assert_eq!((venue.session.lookup_deadline(), venue.asked()), (due, vec![]));
    }
    // What cannot be read is counted, and an answer that is no list is asked for again.
    for (list, due) in [
        (
            r#"[{"id":8,"price":"100","qty":"x"},{"id":9,"price":"100","qty":"2","commission":"0"}]"#,
            Timestamp::MAX,
        ),
        ("{}", NOW.plus(UNKNOWN_MARGIN_NS)),
    ] {
        let mut venue = looking_up();
        venue.answer(RequestKind::Status(order()), &open(4));
        venue.answer(RequestKind::Trades(order()), &format!(r#""result":{list}"#));
        assert_eq!((venue.session.counts.incomplete, venue.session.lookup_deadline()), (1, due), "{list}");
    }
    // A full page is followed by the next one.
    let mut venue = looking_up();
    venue.answer(RequestKind::Status(order()), &open(4));
    let page: Vec<String> = (8..1_008).map(|id| trade(id, 1)).collect();
    venue.answer(RequestKind::Trades(order()), &format!(r#""result":[{}]"#, page.join(",")));
    assert_eq!(venue.asked(), [RequestKind::Trades(order())]);
    assert_eq!(venue.reports().len(), 1_000);
}

#[test]
fn only_so_many_lookups_are_on_the_way() {
    let nth = |slot| OrderHandle::new(ShardId(0), 1, slot);
    let ask = |venue: &mut Venue| {
        for slot in 0..LOOKUPS_IN_FLIGHT_MAX as u32 + 2 {
            venue.instruct_for(nth(slot), VenueRequest::Status, terms(Tif::Gtc, 10, 100));
        }
        venue.reports();
    };
    let mut venue = Venue::ready();
    ask(&mut venue);
    assert_eq!(venue.asked().len(), LOOKUPS_IN_FLIGHT_MAX);
    assert_eq!(venue.session.lookup_deadline(), Timestamp::MAX, "an answer comes first");
    venue.answer(RequestKind::Status(nth(3)), &open(0));
    assert_eq!(venue.asked().len(), LOOKUPS_IN_FLIGHT_MAX);
    assert!(venue.asked().contains(&RequestKind::Status(nth(LOOKUPS_IN_FLIGHT_MAX as u32))));
    // A new connection begins with none.
    venue.reconnect();
    venue.reports();
    assert_eq!(venue.asked(), []);
    ask(&mut venue);
    assert_eq!(venue.asked().len(), LOOKUPS_IN_FLIGHT_MAX);
    // Without a connection none is sent.
    venue.session.handle_disconnect(ORDERS, venue.now);
    venue.session.send_lookups(venue.now);
    assert_eq!(venue.asked(), []);
}
