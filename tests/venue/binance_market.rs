//! Market data of Binance without a socket: subscriptions, prices, and a connection that fails. The
//! messages are the examples of `web-socket-streams.md` with symbols of the little market.

use pitlane_engine::command::{CommandKind, Quote, Trade};
use pitlane_engine::id::SecurityId;
use pitlane_engine::time::{NS_PER_MS, Timestamp};
use pitlane_protocols::binance::STREAMS_MAX;
use pitlane_protocols::venue::{LinkIndex, VenueAdapter, VenueReports};
use pitlane_protocols::websocket::{MessagePart, Receiver};
use pitlane_tests::binance::{self, handshake_answer, text_frame};
use pitlane_tests::fix::seconds;
use pitlane_tests::test_market::{ABROAD, price, qty, reference_of, start};
use serde_json::Value;

const STREAM: LinkIndex = LinkIndex(1);

/// The adapter with its connection for market data only.
struct StreamHarness {
    now: Timestamp,
    session: pitlane_protocols::binance::BinanceSession,
    server: Receiver,
}

impl StreamHarness {
    fn connected(securities: u32) -> StreamHarness {
        let mut session = binance::session_with_market_data();
        session.set_reference(reference_of(securities));
        let mut harness = StreamHarness { now: start(), session, server: Receiver::default() };
        harness.connect();
        harness
    }

    fn connect(&mut self) {
        assert!(self.session.wants_connection(STREAM, self.now));
        self.session.handle_connect(STREAM, self.now, binance::connect_random());
        let head = String::from_utf8(self.take_output()).expect("a head is text");
        assert!(head.starts_with("GET /stream HTTP/1.1\r\nHost: streams:443\r\n"), "{head}");
        self.server = Receiver::default();
        self.deliver(handshake_answer());
    }

    fn take_output(&mut self) -> Vec<u8> {
        let bytes = self.session.poll_transmit(STREAM).to_vec();
        self.session.handle_transmitted(STREAM, bytes.len());
        bytes
    }

    /// Returns the requests that were sent since the last call.
    fn requests(&mut self) -> Vec<Value> {
        let mut bytes = self.take_output();
        let (mut requests, mut request) = (Vec::new(), Vec::new());
        self.server.handle_parts(&mut bytes, |part| match part {
            MessagePart::Payload(payload) => request.extend_from_slice(payload),
            MessagePart::End => {
                requests
                    .push(serde_json::from_slice(&std::mem::take(&mut request)).expect("a request is JSON"));
            }
        });
        requests
    }

    fn deliver(&mut self, mut bytes: Vec<u8>) {
        self.session.handle_bytes(STREAM, self.now, &mut bytes);
    }

    fn deliver_message(&mut self, text: &str) {
        self.deliver(text_frame(text));
    }

    /// Delivers a trade of the first security.
    fn deliver_trade(&mut self, id: u64, at_price: &str) {
        self.deliver_message(&format!(
            r#"{{"stream":"s8@trade","data":{{"e":"trade","E":1672515782136,"s":"S8","t":{id},
               "p":"{at_price}","q":"100","T":1672515782136,"m":true,"M":true}}}}"#
        ));
    }

    fn prices(&mut self) -> Vec<CommandKind> {
        std::iter::from_fn(|| self.session.poll_price()).collect()
    }

    fn wait(&mut self, ns: u64) {
        self.now = self.now.plus(ns);
        self.session.handle_timeout(self.now);
    }

    fn last_error(&self) -> String {
        self.session.status(self.now).health.last_error.as_deref().unwrap_or_default().to_string()
    }
}

fn trade(id: SecurityId, at_price: &str) -> CommandKind {
    let at = Timestamp(1_672_515_782_136 * NS_PER_MS);
    CommandKind::Trade { security: id, trade: Trade { price: price(at_price), size: qty("100"), at } }
}

#[test]
fn prices_of_each_security_are_requested_and_passed_on_in_order() {
    let mut harness = StreamHarness::connected(11);
    let requests = harness.requests();
    assert_eq!(requests.len(), 1, "{requests:?}");
    assert_eq!(requests[0]["method"], "SUBSCRIBE");
    let streams = ["s8@trade", "s8@bookTicker", "s9@trade", "s9@bookTicker", "s10@trade", "s10@bookTicker"];
    let mut requested: Vec<&str> =
        requests[0]["params"].as_array().expect("a list").iter().filter_map(Value::as_str).collect();
    requested.sort_unstable();
    let mut expected = streams;
    expected.sort_unstable();
    assert_eq!(requested, expected);
    harness.deliver_message(r#"{"result":null,"id":1}"#);
    harness.deliver_trade(12_345, "0.05");
    harness.deliver_message(
        r#"{"stream":"s9@bookTicker","data":{"u":400900217,"s":"S9","b":"25.35","B":"31.21","a":"25.4","A":"40.66"}}"#,
    );
    let quote = Quote {
        bid: price("25.35"),
        bid_size: qty("31.21"),
        ask: price("25.4"),
        ask_size: qty("40.66"),
        at: harness.now,
    };
    let expected = [trade(ABROAD[0], "0.05"), CommandKind::Quote { security: ABROAD[1], quote }];
    assert_eq!(harness.prices(), expected);
    let counts = harness.session.status(harness.now).counts;
    assert_eq!((counts.prices, counts.unknown_values, counts.incomplete), (2, 0, 0));
    assert!(harness.session.synchronizations().is_none(), "orders have a connection of their own");
}

#[test]
fn a_price_that_arrives_twice_or_too_late_is_ignored() {
    let mut harness = StreamHarness::connected(11);
    let best = |id: u64, bid: &str| {
        format!(
            r#"{{"stream":"s8@bookTicker","data":{{"u":{id},"s":"S8","b":"{bid}","B":"1","a":"9","A":"1"}}}}"#
        )
    };
    for (id, at) in [(7, "1"), (7, "1"), (6, "2"), (8, "3")] {
        harness.deliver_trade(id, at);
        harness.deliver_message(&best(id, at));
    }
    let prices = harness.prices();
    assert_eq!(prices.len(), 4, "{prices:?}");
    assert_eq!((prices[0], prices[2]), (trade(ABROAD[0], "1"), trade(ABROAD[0], "3")));
    // Ids may begin again with a new connection.
    harness.session.handle_disconnect(STREAM, harness.now);
    harness.wait(seconds(60));
    harness.connect();
    assert_eq!(harness.requests().len(), 1, "the venue has forgotten the subscriptions");
    harness.deliver_trade(1, "4");
    assert_eq!(harness.prices(), [trade(ABROAD[0], "4")]);
}

#[test]
fn messages_that_make_no_sense_are_counted_and_do_no_harm() {
    let mut harness = StreamHarness::connected(11);
    for text in [
        "nonsense",
        "[]",
        "{}",
        r#"{"stream":"s8@depth","data":{}}"#,
        r#"{"stream":"s8","data":{}}"#,
        r#"{"stream":"s1@trade","data":{"s":"S1","t":1,"p":"1","q":"1","T":1}}"#,
    ] {
        harness.deliver_message(text);
    }
    for data in [
        "{}",
        r#"{"s":"S8","t":1,"p":"-1","q":"1","T":1}"#,
        r#"{"s":"S8","t":1,"p":"x","q":"1","T":1}"#,
        r#"{"s":"S8","t":-1,"p":"1","q":"1","T":1}"#,
        r#"{"s":"S8","t":1,"p":"99999999999999999999","q":"1","T":1}"#,
    ] {
        harness.deliver_message(&format!(r#"{{"stream":"s8@trade","data":{data}}}"#));
    }
    harness.deliver_message(
        r#"{"stream":"s8@bookTicker","data":{"u":1,"s":"S8","b":"1","B":"1","a":"","A":"1"}}"#,
    );
    let counts = harness.session.status(harness.now).counts;
    assert_eq!((counts.unknown_values, counts.incomplete, counts.prices), (6, 6, 0));
    harness.deliver_trade(2, "5");
    assert_eq!(harness.prices(), [trade(ABROAD[0], "5")]);
    assert!(!harness.session.wants_close(STREAM));
}

#[test]
fn a_connection_that_is_silent_or_shut_down_is_renewed_and_refusals_are_shown() {
    let mut harness = StreamHarness::connected(11);
    harness.deliver_message(r#"{"code":2,"msg":"Invalid request: too many parameters","id":1}"#);
    assert!(harness.last_error().contains("too many parameters"), "{}", harness.last_error());
    harness.deliver_message(r#"{"error":{"code":2,"msg":"no such stream"},"id":1}"#);
    assert!(harness.last_error().contains("no such stream"), "{}", harness.last_error());
    harness.wait(seconds(59));
    assert!(!harness.session.wants_close(STREAM));
    harness.wait(seconds(1));
    assert!(harness.session.wants_close(STREAM), "the venue is silent");
    harness.session.handle_disconnect(STREAM, harness.now);
    assert!(!harness.session.wants_connection(STREAM, harness.now), "not at once");
    harness.wait(seconds(60));
    harness.connect();
    harness.deliver_message(r#"{"e":"serverShutdown","E":1770123456789}"#);
    assert!(harness.session.wants_close(STREAM));
    assert!(harness.last_error().contains("shutdown"), "{}", harness.last_error());
}

#[test]
fn subscriptions_are_sent_a_part_at_a_time_and_are_bounded() {
    let mut harness = StreamHarness::connected(2_000);
    let mut streams = Vec::new();
    for step in 0..100 {
        let requests = harness.requests();
        assert!(requests.len() <= 1, "the venue takes five messages in a second: {step}");
        for request in &requests {
            streams.extend(request["params"].as_array().expect("a list").clone());
        }
        // The venue answers, so that the connection is not silent.
        harness.deliver_message(r#"{"result":null,"id":1}"#);
        harness.wait(250 * NS_PER_MS);
    }
    assert_eq!(streams.len(), STREAMS_MAX);
    assert!(harness.last_error().contains("512 securities at most"), "{}", harness.last_error());
}
