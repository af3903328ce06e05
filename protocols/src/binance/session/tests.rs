//! The adapter without a venue: what bounds its requests, and what operators see of it.

mod logon;
mod lookups;
mod orders;
mod venue;

use pitlane_engine::command::{VenueFee, VenueReport};
use pitlane_engine::id::{AdapterId, ShardId};
use pitlane_engine::number::{Price, Qty};
use pitlane_engine::refdata::sample;

use super::super::StreamAddress;
use super::super::events::exec_ref;
use super::super::held::HeldOrder;
use super::super::socket::tests as handshake;
use super::*;
use crate::venue::{LinkIndex, VenueAdapter, VenueReports};

const NOW: Timestamp = Timestamp(1_000 * NS_PER_S);
const ORDERS: LinkIndex = LinkIndex(0);
const PRICES: LinkIndex = LinkIndex(1);

#[derive(Debug)]
struct NoSigner;

impl Signer for NoSigner {
    fn sign(&self, _: &[u8], _: &mut Vec<u8>) {}

    fn can_log_on(&self) -> bool {
        true
    }
}

fn session(market_data: Option<StreamAddress>) -> BinanceSession {
    let settings = BinanceSettings {
        adapter: AdapterId(3),
        host: "venue:443".to_string(),
        path: "/ws-api/v3".to_string(),
        api_key: "key".to_string(),
        receive_window_ms: 2_000,
        reconnect_s: 1,
        folder_id: 77,
        market_data,
        market_depth: 1,
    };
    let reference = RefData::check(sample::sound()).expect("a valid sample");
    BinanceSession::new(settings, Box::new(NoSigner), Arc::new(reference))
}

/// Returns the adapter after the handshake, with all output transmitted.
fn connected() -> BinanceSession {
    let mut session = session(None);
    session.handle_connect(ORDERS, NOW, handshake::random());
    session.handle_bytes(ORDERS, NOW, &mut handshake::answer());
    assert_eq!(session.phase, Phase::Synchronizing);
    let unsent = session.poll_transmit(ORDERS).len();
    session.handle_transmitted(ORDERS, unsent);
    session
}

#[test]
fn each_failure_delays_the_next_attempt_up_to_a_minute() {
    let delays_s = |first, failures| reconnect_delay_ns(first, failures) / NS_PER_S;
    assert_eq!([0, 1, 2, 5, 6, 100].map(|failures| delays_s(1, failures)), [1, 2, 4, 32, 60, 60]);
    assert_eq!([delays_s(7, 0), delays_s(7, 3), delays_s(u64::MAX, 1)], [7, 56, 60]);
}

#[test]
fn operators_see_the_phase_by_its_name() {
    for (phase, name) in [
        (Phase::Disconnected, "DISCONNECTED"),
        (Phase::Connecting, "CONNECTING"),
        (Phase::Synchronizing, "LOGGING_ON"),
        (Phase::LoggingOn, "LOGGING_ON"),
        (Phase::Subscribing, "LOGGING_ON"),
        (Phase::ReadingLimits, "LOGGING_ON"),
        (Phase::Ready, "LOGGED_ON"),
        (Phase::Closing, "ENDING"),
    ] {
        assert_eq!(phase.name(), name);
    }
}

#[test]
fn no_order_is_sent_to_a_venue_that_does_not_read() {
    /// Octets that a frame adds to a payload of 126 to 65,535 octets.
    const FRAME_BYTES: usize = 8;
    let mut session = connected();
    while session.socket.unsent().len() < OUTPUT_BYTES_HIGH {
        assert!(session.has_room(), "{}", session.socket.unsent().len());
        let left = OUTPUT_BYTES_HIGH - session.socket.unsent().len();
        assert!(session.socket.send(&vec![b'x'; left.min(60_000) - FRAME_BYTES]));
    }
    assert_eq!(session.socket.unsent().len(), OUTPUT_BYTES_HIGH);
    assert!(!session.has_room(), "the output is full");
    session.handle_transmitted(ORDERS, 1);
    assert!(session.has_room());
}

#[test]
fn the_number_of_requests_without_an_answer_is_bounded() {
    let mut session = connected();
    let sent = SentRequest { kind: RequestKind::Time, cost: cost::TIME, at: NOW };
    session.requests.extend((1..REQUESTS_MAX as u64).map(|id| (id, sent)));
    assert!(session.has_room());
    session.requests.insert(REQUESTS_MAX as u64, sent);
    assert!(!session.has_room());
}

#[test]
fn a_stored_trade_is_not_reported_again_whatever_the_order_of_the_confirmations() {
    let (order, one) = (OrderHandle::new(ShardId(0), 1, 1), Qty::from_raw(1));
    let mut session = session(None);
    session.held.insert(order, HeldOrder::new(SecurityId(1), one, Price::ZERO));
    let first = TradeMark::default().after(5, one).expect("the first trade");
    let second = first.after(8, one).expect("a later trade");
    for mark in [first, second] {
        let exec = exec_ref("BTCUSDT", mark.next);
        let (qty, price, fee) = (one, Price::ZERO, VenueFee::default());
        session.queue_trade(order, mark, VenueReport::FilledWithFee { exec, qty, price, cum: mark.cum, fee });
    }
    assert_eq!(session.counts.executions, 2);
    let tokens: Vec<u32> = session.reports.iter().map(|report| report.token).collect();
    assert!(tokens[0] != 0 && tokens[0] != tokens[1], "{tokens:?}");
    let stored = |session: &BinanceSession| session.held.get(order).expect("it is held").stored;
    assert_eq!(stored(&session), TradeMark::default());
    session.handle_stored(tokens[1]);
    assert_eq!(stored(&session), second);
    session.handle_stored(tokens[0]);
    assert_eq!(stored(&session), second, "the earlier trade is older");
}

#[test]
fn the_adapter_has_a_connection_more_for_market_data() {
    let address = StreamAddress { host: "streams:443".to_string(), path: "/stream".to_string() };
    assert_eq!([session(None).links(), session(Some(address)).links()], [1, 2]);
}

#[test]
fn a_refused_connection_for_market_data_is_tried_again_when_the_venue_permits_it() {
    let address = StreamAddress { host: "streams:443".to_string(), path: "/stream".to_string() };
    for (status, wait_s) in [("429", 300), ("418", 300), ("503", 1)] {
        let mut session = session(Some(address.clone()));
        session.handle_connect(PRICES, NOW, handshake::random());
        let refusal = format!("HTTP/1.1 {status} No\r\nRetry-After: 300\r\n\r\n");
        session.handle_bytes(PRICES, NOW, &mut refusal.into_bytes());
        assert!(session.wants_close(PRICES));
        session.handle_disconnect(PRICES, NOW);
        let due = NOW.plus(wait_s * NS_PER_S);
        assert!(!session.wants_connection(PRICES, Timestamp(due.0 - 1)), "{status}");
        assert!(session.wants_connection(PRICES, due), "{status}");
    }
}

#[test]
fn a_log_out_closes_the_connection_and_says_why() {
    let mut session = connected();
    assert!(!session.wants_close(ORDERS));
    assert_eq!(session.take_log_text(), None);
    session.log_out(NOW, "the service stops");
    assert!(session.wants_close(ORDERS) && !session.poll_transmit(ORDERS).is_empty(), "a close frame");
    assert_eq!(session.take_log_text().as_deref(), Some("the service stops"));
    assert_eq!(session.take_log_text(), None, "once");
    assert_eq!(session.status(NOW).health.last_error.as_deref(), Some("the service stops"));
}

#[test]
fn the_time_of_the_venue_is_that_in_the_middle_of_the_round_trip() {
    let mut session = connected();
    let window_ns = session.settings.receive_window_ns();
    assert_eq!(window_ns, 2 * NS_PER_S);
    let later = NOW.plus(window_ns);
    let answer = |id: u64| format!(r#"{{"id":{id},"status":200,"result":{{"serverTime":1007000}}}}"#);
    session.handle_message(later, answer(session.next_request).as_bytes());
    // The middle is a second after the request.
    assert_eq!((session.offset_ns, session.phase), (6_000_000_000, Phase::LoggingOn));
    let health = session.status(later).health;
    assert_eq!((health.round_trip_us, health.clock_offset_us), (Some(2_000_000), Some(6_000_000)));
    assert_eq!((session.messages_in, session.messages_out), (1, 2));
}

#[test]
fn an_answer_that_took_longer_than_a_request_is_valid_says_no_time() {
    let mut session = connected();
    let late = NOW.plus(session.settings.receive_window_ns() + 1);
    let answer =
        format!(r#"{{"id":{},"status":200,"result":{{"serverTime":1007000}}}}"#, session.next_request);
    session.handle_message(late, answer.as_bytes());
    assert_eq!((session.round_trip_ns, session.phase), (None, Phase::Synchronizing));
    let asked: Vec<_> = session.requests.values().map(|sent| (sent.kind, sent.at)).collect();
    assert_eq!(asked, [(RequestKind::Time, late)], "it is asked for again");
}

#[test]
fn messages_without_a_meaning_are_counted_and_those_about_balances_are_not() {
    let mut session = connected();
    for (message, unknown) in [
        ("no json", 1),
        (r#"{"event":{"e":"somethingNew"}}"#, 2),
        (r#"{"event":{"e":"balanceUpdate"}}"#, 2),
        (r#"{"event":{"e":"outboundAccountPosition"}}"#, 2),
        (r#"{"event":{"e":"listStatus"}}"#, 2),
    ] {
        session.handle_message(NOW, message.as_bytes());
        assert_eq!(session.counts.unknown_values, unknown, "{message}");
    }
    assert_eq!(session.messages_in, 5);
    for (message, unknown) in [(r#"{"id":99,"status":200}"#, 1), (r#"{"id":98,"status":200,"result":{}}"#, 2)]
    {
        session.handle_message(NOW, message.as_bytes());
        assert_eq!(session.counts.unknown_orders, unknown, "an answer to no request");
    }
}

#[test]
fn a_refused_logon_and_a_revoked_key_end_the_connection() {
    let mut session = connected();
    let refused = format!(
        r#"{{"id":{},"status":400,"error":{{"code":-1100,"msg":"Illegal characters."}}}}"#,
        session.next_request
    );
    session.handle_message(NOW, refused.as_bytes());
    assert!(session.wants_close(ORDERS));
    let text = session.take_log_text().expect("a reason");
    assert_eq!(text, "the venue does not tell its time: Illegal characters.");
    let error = r#""error":{"code":-2015,"msg":"Invalid API-key."}}"#;
    for (head, is_closed) in
        [(r#"{"status":401,"#, true), (r#"{"id":99,"status":401,"#, false), (r#"{"status":400,"#, false)]
    {
        let mut session = connected();
        session.handle_message(NOW, [head, error].concat().as_bytes());
        assert_eq!(session.wants_close(ORDERS), is_closed, "{head}");
    }
}

#[test]
fn a_refused_connection_for_orders_is_tried_again_when_the_venue_permits_it() {
    for (status, wait_s) in [("429", 300), ("418", 300), ("503", 1)] {
        let mut session = session(None);
        session.handle_connect(ORDERS, NOW, handshake::random());
        let refusal = format!("HTTP/1.1 {status} No\r\nRetry-After: 300\r\n\r\n");
        session.handle_bytes(ORDERS, NOW, &mut refusal.into_bytes());
        assert!(session.wants_close(ORDERS), "{status}");
        session.handle_disconnect(ORDERS, NOW);
        let due = NOW.plus(wait_s * NS_PER_S);
        assert!(!session.wants_connection(ORDERS, Timestamp(due.0 - 1)), "{status}");
        assert!(session.wants_connection(ORDERS, due), "{status}");
    }
}

#[test]
fn each_connection_begins_and_ends_for_itself() {
    let address = StreamAddress { host: "streams:443".to_string(), path: "/stream".to_string() };
    let mut session = session(Some(address));
    let wants = |session: &BinanceSession| [ORDERS, PRICES].map(|link| session.wants_connection(link, NOW));
    let closes = |session: &BinanceSession| [ORDERS, PRICES].map(|link| session.wants_close(link));
    assert_eq!((wants(&session), closes(&session)), ([true, true], [false, false]));
    session.handle_connect(PRICES, NOW, handshake::random());
    assert_eq!(wants(&session), [true, false]);
    session.handle_connect(ORDERS, NOW, handshake::random());
    assert_eq!(wants(&session), [false, false]);
    session.handle_bytes(ORDERS, NOW, &mut handshake::answer());
    session.handle_message(NOW, br#"{"event":{"e":"serverShutdown"}}"#);
    assert_eq!(closes(&session), [true, false]);
    session.handle_disconnect(ORDERS, NOW);
    session.handle_bytes(PRICES, NOW, &mut b"HTTP/1.1 503 No\r\n\r\n".to_vec());
    assert_eq!(closes(&session), [false, true]);
}

#[test]
fn a_handshake_without_an_answer_has_a_deadline_of_its_own() {
    let mut session = session(None);
    session.handle_connect(ORDERS, NOW, handshake::random());
    let due = NOW.plus(ANSWER_NS_MAX);
    assert_eq!(session.poll_timeout(), due);
    session.handle_timeout(Timestamp(due.0 - 1));
    assert!(!session.wants_close(ORDERS));
    session.handle_timeout(due);
    assert!(session.wants_close(ORDERS));
    assert_eq!(session.take_log_text().as_deref(), Some("the venue does not answer"));
    // Nothing is sent on a connection that ends.
    let sent = session.messages_out;
    session.handle_timeout(due.plus(TIME_INTERVAL_NS));
    assert_eq!((session.messages_out, session.requests.len()), (sent, 0));
}

#[test]
fn the_time_is_asked_for_again_and_the_connection_stays() {
    let mut session = connected();
    let answer = format!(r#"{{"id":{},"result":{{"serverTime":1000000}}}}"#, session.next_request);
    session.handle_message(NOW, answer.as_bytes());
    session.requests.clear();
    let due = NOW.plus(TIME_INTERVAL_NS);
    session.handle_timeout(Timestamp(due.0 - 1));
    assert!(session.requests.is_empty());
    session.handle_timeout(due);
    let asked: Vec<_> = session.requests.values().map(|sent| sent.kind).collect();
    assert_eq!((asked, session.wants_close(ORDERS)), (vec![RequestKind::Time], false));
    // Nothing is sent behind a close frame.
    session.log_out(due, "the service stops");
    let sent = session.messages_out;
    session.handle_timeout(due.plus(TIME_INTERVAL_NS));
    assert_eq!(session.messages_out, sent);
}

#[test]
fn a_request_says_how_long_it_is_valid() {
    let (mut draft, mut scratch) = (Vec::new(), Vec::new());
    let time = RequestTime { at: NOW, window_ms: 2_000 };
    request::write(&mut draft, &mut scratch, 1, "m", Authority::None, |draft| {
        time.write_window(draft);
        time.write_time(draft);
    });
    let text = String::from_utf8(draft).unwrap();
    assert!(text.contains(r#""recvWindow":2000,"timestamp":1000000"#), "{text}");
}
