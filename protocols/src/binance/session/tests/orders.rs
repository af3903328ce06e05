//! Instructions of a shard, and the answers and events of the venue about its orders.

use pitlane_engine::command::{ExecRef, VenueState};
use pitlane_engine::event::VenueRequest;
use pitlane_engine::reason::Reason;
use pitlane_engine::terms::Tif;
use pitlane_engine::time::TimeOfDay;

use super::super::super::held::{IdRole, PendingChange};
use super::venue::{Venue, order, price, qty, standing, terms};
use super::*;

#[test]
fn a_trade_is_reported_once_and_a_missing_one_is_looked_up() {
    let mut venue = Venue::with_gtc();
    venue.trade(5, "2", "2");
    assert_eq!(venue.fills(), (vec![qty(2)], false));
    venue.trade(5, "2", "2");
    assert_eq!(venue.fills(), (vec![], false), "it is known");
    venue.trade(6, "1", "3");
    assert_eq!(venue.fills(), (vec![qty(1)], false), "the next id");
    assert_eq!(venue.session.counts.executions, 2);
    venue.trade(9, "1", "6");
    assert_eq!(venue.fills(), (vec![], true), "two units are missing");
    assert_eq!(venue.asked(), [RequestKind::Status(order())]);
    let mut venue = Venue::with_gtc();
    venue.trade(5, "10", "10");
    assert_eq!((venue.fills(), venue.is_held()), ((vec![qty(10)], false), false));
}

#[test]
fn trades_differ_by_symbol_and_number() {
    let refs = [("ACME", 1), ("ACME", 2), ("ACME2", 1)].map(|(symbol, trade)| exec_ref(symbol, trade));
    assert!(refs[0] != refs[1] && refs[0] != refs[2] && refs[1] != refs[2]);
    assert!(!refs.contains(&ExecRef::default()));
}

#[test]
fn events_that_cannot_be_used_are_counted() {
    let mut venue = Venue::with_gtc();
    venue.session.handle_message(NOW, br#"{"event":{"e":"executionReport","s":7}}"#);
    assert_eq!(venue.session.counts.incomplete, 1);
    venue.session.handle_message(
        NOW,
        br#"{"event":{"e":"executionReport","s":"ACME","c":"web_1","x":"NEW","X":"NEW","l":"0","L":"0",
            "z":"0","t":-1}}"#,
    );
    assert_eq!(venue.session.counts.unknown_orders, 1, "an order of another program");
    let unknown = venue.session.counts.unknown_values;
    venue.execute(IdRole::Live, "SOMETHING", "NEW", ["0", "0", "0"], -1);
    // An order whose trades the venue has prevented goes on.
    venue.execute(IdRole::Live, "TRADE_PREVENTION", "NEW", ["0", "0", "0"], -1);
    assert_eq!(venue.session.counts.unknown_values, unknown + 2);
    for (numbers, trade) in
        [(["x", "1", "1"], 1), (["1", "x", "1"], 1), (["1", "1", "x"], 1), (["1", "1", "1"], -1)]
    {
        venue.session.counts.incomplete = 0;
        venue.execute(IdRole::Live, "TRADE", "PARTIALLY_FILLED", numbers, trade);
        assert_eq!(venue.session.counts.incomplete, 1, "{numbers:?}");
    }
    assert_eq!((venue.reports(), venue.is_held()), (vec![], true));
}

#[test]
fn a_fee_that_is_not_booked_is_counted_and_the_fill_is_reported() {
    let mut venue = Venue::with_gtc();
    let id = venue.session.ids().id(order(), IdRole::Live);
    let event = format!(
        r#"{{"event":{{"e":"executionReport","s":"ACME","c":"{id}","x":"TRADE","X":"PARTIALLY_FILLED",
            "l":"2","L":"100","z":"2","t":5,"n":"1","N":"not a currency"}}}}"#
    );
    venue.session.handle_message(NOW, event.as_bytes());
    assert_eq!(venue.session.counts.incomplete, 1);
    let (exec, cum) = (exec_ref("ACME", 5), qty(2));
    assert_eq!(venue.reports(), [VenueReport::FilledTo { exec, qty: qty(2), price: price(100), cum }]);
}

#[test]
fn the_end_of_an_order_is_reported_with_its_reason() {
    let canceled = |reason| VenueState::Canceled(reason);
    for (role, kind, status, state) in [
        (IdRole::Canceled, "CANCELED", "CANCELED", Some(canceled(Reason::Requested))),
        (IdRole::Live, "CANCELED", "CANCELED", Some(canceled(Reason::VenueCancelled))),
        (IdRole::DayEnded, "CANCELED", "CANCELED", Some(VenueState::Expired(Reason::ExpiredDay))),
        // The answer says what became of the new order.
        (IdRole::Replaced, "CANCELED", "CANCELED", None),
        (IdRole::Live, "EXPIRED", "EXPIRED", Some(canceled(Reason::Ioc))),
        (IdRole::Live, "TRADE_PREVENTION", "EXPIRED_IN_MATCH", Some(canceled(Reason::SelfTrade))),
    ] {
        for cum in [0, 2] {
            let mut venue = Venue::with_gtc();
            if cum > 0 {
                venue.trade(5, "2", "2");
                assert_eq!(venue.fills(), (vec![qty(2)], false));
            }
            venue.execute(role, kind, status, ["0", "0", &cum.to_string()], -1);
            let expected: Vec<_> = state.map(|state| standing(cum, state)).into_iter().collect();
            assert_eq!((venue.reports(), venue.is_held()), (expected, state.is_none()), "{role:?} {status}");
        }
    }
    // A trade before the end is missing, or the event does not say.
    for (cum, incomplete) in [("2", 0), ("x", 1)] {
        let mut venue = Venue::with_gtc();
        venue.execute(IdRole::Canceled, "CANCELED", "CANCELED", ["0", "0", cum], -1);
        assert_eq!((venue.reports(), venue.is_held()), (vec![VenueReport::Unsure], true));
        assert_eq!(venue.session.counts.incomplete, incomplete);
        assert_eq!(venue.asked(), [RequestKind::Status(order())]);
    }
    let mut venue = Venue::with_gtc();
    venue.execute(IdRole::Live, "REJECTED", "REJECTED", ["0", "0", "0"], -1);
    let rejected = VenueReport::Rejected(Reason::VenueRejected);
    assert_eq!((venue.reports(), venue.is_held()), (vec![rejected], false));
}

#[test]
fn the_answer_to_a_cancel_ends_the_order_unless_a_trade_is_missing() {
    let body = |cum: &str| format!(r#""status":200,"result":{{"orderId":1,"executedQty":"{cum}"}}"#);
    let requested = VenueState::Canceled(Reason::Requested);
    for (known, answer, expected, incomplete) in [
        (0, body("0"), standing(0, requested), 0),
        (2, body("2"), standing(2, requested), 0),
        (2, body("1"), standing(1, requested), 0),
        (0, body("2"), VenueReport::Unsure, 0),
        (2, body("3"), VenueReport::Unsure, 0),
        (0, r#""status":200,"result":{"orderId":1}"#.to_string(), VenueReport::Unsure, 1),
    ] {
        let mut venue = Venue::with_gtc();
        if known > 0 {
            venue.trade(5, &known.to_string(), &known.to_string());
            assert_eq!(venue.fills(), (vec![qty(known)], false));
        }
        venue.instruct(VenueRequest::Cancel, terms(Tif::Gtc, 10, 100));
        venue.answer(RequestKind::Cancel(order()), &answer);
        assert_eq!((venue.reports(), venue.session.counts.incomplete), (vec![expected], incomplete));
        assert_eq!(venue.is_held(), expected == VenueReport::Unsure, "{answer}");
    }
}

#[test]
fn the_reason_of_a_refused_cancel_is_that_of_the_venue() {
    let refused = |reason| VenueReport::CancelRefused(reason);
    for (status, code, text, expected) in [
        (400, -2011, "Unknown order sent.", refused(Reason::UnknownOrder)),
        (400, -2011, "Market is closed.", refused(Reason::Halted)),
        (400, -1100, "Unknown order sent.", refused(Reason::VenueRejected)),
        // It may have been executed all the same.
        (503, 0, "Service unavailable.", VenueReport::Unsure),
        (500, -2011, "Unknown order sent.", VenueReport::Unsure),
        (400, -1006, "An unexpected response.", VenueReport::Unsure),
        (400, -1007, "Timeout.", VenueReport::Unsure),
    ] {
        let mut venue = Venue::with_gtc();
        venue.instruct(VenueRequest::Cancel, terms(Tif::Gtc, 10, 100));
        venue.refuse(RequestKind::Cancel(order()), status, code, text);
        assert_eq!(venue.reports(), [expected], "{status} {code} {text}");
    }
}

#[test]
fn a_refused_replacement_says_what_became_of_both_orders() {
    let refused = VenueReport::ReplaceRefused(Reason::InsufficientFunds);
    let gone = standing(0, VenueState::Canceled(Reason::VenueCancelled));
    for (status, code, cancel, new_order, expected) in [
        (400, -2022, "FAILURE", "NOT_ATTEMPTED", vec![refused]),
        (409, -2021, "SUCCESS", "FAILURE", vec![refused, gone]),
        (409, -2021, "FAILURE", "SUCCESS", vec![VenueReport::Unsure]),
        (503, 0, "FAILURE", "NOT_ATTEMPTED", vec![VenueReport::Unsure]),
    ] {
        let mut venue = Venue::with_gtc();
        venue.instruct(VenueRequest::Replace, terms(Tif::Gtc, 10, 101));
        venue.answer(
            RequestKind::Replace(order()),
            &format!(
                r#""status":{status},"error":{{"code":{code},"msg":"Order cancel-replace failed.","data":
                    {{"cancelResult":"{cancel}","newOrderResult":"{new_order}",
                    "newOrderResponse":{{"code":-2010,"msg":"Account has insufficient balance."}}}}}}"#
            ),
        );
        assert_eq!(venue.reports(), expected, "{cancel} {new_order}");
    }
}

#[test]
fn an_order_for_the_day_is_cancelled_when_the_day_is_over() {
    let midnight = Timestamp(24 * 3_600 * NS_PER_S);
    let ended = || {
        let mut venue = Venue::with_order(terms(Tif::Day, 10, 100));
        assert_eq!(venue.session.day_deadline(), midnight);
        venue.now = midnight;
        venue.session.end_day(midnight);
        assert_eq!(venue.asked(), [RequestKind::EndDay(order())]);
        venue
    };
    let mut venue = ended();
    venue.answer(RequestKind::EndDay(order()), r#""result":{"orderId":1,"executedQty":"0"}"#);
    assert_eq!(venue.reports(), [standing(0, VenueState::Expired(Reason::ExpiredDay))]);
    for (status, code, is_looked_up) in [(503, 0, true), (400, -2011, true), (400, -1100, false)] {
        let mut venue = ended();
        venue.refuse(RequestKind::EndDay(order()), status, code, "No.");
        assert_eq!(venue.reports().contains(&VenueReport::Unsure), is_looked_up, "{status} {code}");
        let again = midnight.plus(NS_PER_S);
        assert_eq!(venue.session.day_deadline(), again);
        venue.session.end_day(again);
        assert!(venue.asked().contains(&RequestKind::EndDay(order())), "it is tried again");
    }
}

#[test]
fn the_trading_day_is_that_of_the_settings() {
    let mut venue = Venue::ready();
    let end = TimeOfDay(7_200);
    venue.session.set_trading_day(SessionSchedule { end, ..SessionSchedule::default() });
    venue.instruct(VenueRequest::New, terms(Tif::Day, 10, 100));
    assert_eq!(venue.session.day_deadline(), Timestamp(7_200 * NS_PER_S));
    // The order is still the same when only its time in force changes, but it does not end.
    venue.instruct(VenueRequest::Replace, terms(Tif::Gtc, 10, 100));
    assert_eq!(venue.reports(), [VenueReport::Replaced]);
    assert_eq!(venue.session.held.get(order()).unwrap().day_ends, Timestamp::MAX);
}

#[test]
fn only_a_lower_quantity_at_the_same_price_is_a_reduction() {
    for (units, limit, kind) in [
        (9, 100, RequestKind::Amend(order())),
        (11, 100, RequestKind::Replace(order())),
        (9, 99, RequestKind::Replace(order())),
        (10, 101, RequestKind::Replace(order())),
    ] {
        let mut venue = Venue::with_gtc();
        venue.instruct(VenueRequest::Replace, terms(Tif::Gtc, units, limit));
        assert_eq!(venue.asked(), [kind], "{units} {limit}");
        // The venue has the request already; another change is another request.
        venue.instruct(VenueRequest::Replace, terms(Tif::Gtc, units, limit));
        assert_eq!(venue.asked(), [kind], "{units} {limit}");
        venue.instruct(VenueRequest::Replace, terms(Tif::Gtc, 7, 102));
        assert_eq!(venue.asked(), [kind, RequestKind::Replace(order())]);
        let wanted = (qty(7), price(102));
        let change = venue.session.held.get(order()).unwrap().change;
        assert!(
            matches!(change, Some(PendingChange::Replace { qty, limit, .. }) if (qty, limit) == wanted),
            "{change:?}"
        );
        venue.execute(IdRole::Live, "REPLACED", "NEW", ["0", "0", "0"], -1);
        assert_eq!(venue.reports(), [VenueReport::Replaced]);
        let held = venue.session.held.get(order()).unwrap();
        assert_eq!((held.qty, held.limit, held.change), (qty(7), price(102), None));
    }
}

#[test]
fn an_order_is_refused_while_requests_wait_for_their_answers() {
    let mut venue = Venue::ready();
    let sent = SentRequest { kind: RequestKind::Time, cost: cost::TIME, at: NOW };
    let first = venue.session.next_request + 1;
    venue.session.requests.extend((first..first + REQUESTS_MAX as u64).map(|id| (id, sent)));
    for count in 1..=2 {
        venue.instruct(VenueRequest::New, terms(Tif::Gtc, 10, 100));
        assert_eq!(venue.reports(), [VenueReport::Rejected(Reason::LaneFull)]);
        assert_eq!((venue.session.counts.refused, venue.session.counts.orders_out), (count, 0));
    }
    venue.session.requests.clear();
    for count in 1..=2 {
        venue.instruct(VenueRequest::New, terms(Tif::Gtc, 10, 100));
        assert_eq!((venue.session.counts.refused, venue.session.counts.orders_out), (2, count));
    }
    assert_eq!(venue.session.symbol(SecurityId(1)).as_deref(), Some("ACME"));
    assert_eq!(venue.session.symbol(SecurityId(99)), None);
}
