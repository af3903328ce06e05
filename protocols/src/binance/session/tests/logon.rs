//! The phases of a connection, and messages about the connection as a whole.

use pitlane_engine::event::VenueRequest;
use pitlane_engine::terms::Tif;

use super::venue::{Venue, order, terms};
use super::*;

#[test]
fn every_synchronization_has_its_number() {
    let mut venue = Venue::ready();
    assert_eq!(venue.session.synchronizations(), Some(1));
    venue.reconnect();
    assert_eq!(venue.session.synchronizations(), Some(2));
    venue.session.handle_disconnect(ORDERS, venue.now);
    assert_eq!(venue.session.synchronizations(), None);
}

#[test]
fn a_refused_step_of_the_logon_ends_the_connection() {
    let steps = [RequestKind::Logon, RequestKind::Subscribe, RequestKind::OrderLimits];
    for refused in 0..steps.len() {
        let mut venue = Venue { now: NOW, session: connected() };
        venue.answer(RequestKind::Time, r#""result":{"serverTime":1000000}"#);
        steps[..refused].iter().for_each(|kind| venue.answer(*kind, r#""result":{}"#));
        venue.refuse(steps[refused], 400, -2015, "Invalid API-key.");
        assert!(venue.session.wants_close(ORDERS), "{:?}", steps[refused]);
        let text = venue.session.take_log_text();
        assert_eq!(text.as_deref(), Some("the venue refuses the logon: Invalid API-key."));
    }
}

#[test]
fn the_venue_announces_the_end_of_a_connection() {
    for (event, text) in [
        (r#"{"event":{"e":"serverShutdown"}}"#, "the venue announces its shutdown"),
        (r#"{"event":{"e":"eventStreamTerminated"}}"#, "the venue has ended the account events"),
    ] {
        let mut venue = Venue::ready();
        venue.session.handle_message(NOW, event.as_bytes());
        assert!(venue.session.wants_close(ORDERS));
        assert_eq!(venue.session.take_log_text().as_deref(), Some(text));
    }
}

#[test]
fn too_many_requests_are_a_ban_and_other_errors_are_not() {
    let one = RequestCost { weight: 1, orders: 0 };
    for (status, code, is_banned) in
        [(418, 0, true), (429, 0, true), (400, -1003, true), (400, -1015, true), (400, -1100, false)]
    {
        let mut venue = Venue::with_gtc();
        venue.instruct(VenueRequest::Cancel, terms(Tif::Gtc, 10, 100));
        venue.refuse(RequestKind::Cancel(order()), status, code, "No.");
        assert_eq!(venue.session.limits.allows(NOW, one), !is_banned, "{status} {code}");
    }
    // Clocks that have moved apart are set again.
    for (code, asked) in [(-1021, vec![RequestKind::Time]), (-1100, vec![])] {
        let mut venue = Venue::with_gtc();
        venue.instruct(VenueRequest::Cancel, terms(Tif::Gtc, 10, 100));
        venue.refuse(RequestKind::Cancel(order()), 400, code, "No.");
        assert_eq!(venue.asked(), asked, "{code}");
    }
    let mut venue = Venue { now: NOW, session: connected() };
    venue.answer(RequestKind::Time, r#""result":{"serverTime":1000000}"#);
    venue.refuse(RequestKind::Logon, 400, -1021, "Timestamp is outside of the recvWindow.");
    assert_eq!(venue.asked(), [], "the connection ends");
}

#[test]
fn a_snapshot_that_is_lost_with_the_connection_is_wanted_again() {
    let address = StreamAddress { host: "streams:443".to_string(), path: "/stream".to_string() };
    let mut rows = sample::sound();
    rows.exchanges.iter_mut().for_each(|exchange| exchange.adapter = AdapterId(3));
    let mut venue = Venue { now: NOW, session: connected() };
    let settings = BinanceSettings { market_depth: 5, ..venue.session.settings.clone() };
    venue.session.market_stream = Some(MarketStream::new(&settings, address));
    venue.session.set_reference(Arc::new(RefData::check(rows).expect("a valid sample")));
    venue.log_on();
    assert_eq!(venue.session.snapshot_deadline(), Timestamp::MAX, "no book is streamed");
    venue.session.handle_connect(PRICES, NOW, handshake::random());
    venue.session.handle_bytes(PRICES, NOW, &mut handshake::answer());
    venue.now = venue.session.snapshot_deadline();
    assert!(venue.now < Timestamp::MAX);
    venue.session.send_snapshot_requests(venue.now);
    assert!(matches!(venue.asked()[..], [RequestKind::Snapshot(_), ..]));
    assert_eq!(venue.session.snapshot_deadline(), Timestamp::MAX, "the answers come first");
    venue.session.handle_disconnect(ORDERS, venue.now);
    assert!(venue.session.snapshot_deadline() < Timestamp::MAX);
}
