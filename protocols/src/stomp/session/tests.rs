use pitlane_engine::event::Tick;
use pitlane_engine::id::SecurityId;
use pitlane_engine::refdata::{RefData, RefDataRows};

use super::*;
use crate::decoded::Decoded;
use crate::stomp::decode::{Decoder, FrameLimits};
use crate::stomp::market::MarketTopics;
use crate::stomp::rendered::Rendered;
use crate::stomp::settings::BrokerSettings;
use crate::stomp::slot_queue::DELIVERY_BYTES_MAX;
use crate::stomp::throttle::EventRate;
use crate::stomp::topic::{Naming, Topic};

const START: Timestamp = Timestamp(1_000 * NS_PER_S);
const INTERVAL: u64 = NS_PER_S / 50;

/// A session with its market; everything happens at `now`.
struct Client {
    now: Timestamp,
    session: StompSession,
    settings: BrokerSettings,
    market: MarketTopics,
    reference: RefData,
}

impl Client {
    fn new(limits: StompLimits, is_throttled: bool) -> Client {
        let interval = EventRate::per_second(50).interval().filter(|_| is_throttled);
        Client {
            now: START,
            session: StompSession::new(START, 1, limits, interval),
            settings: BrokerSettings { limits, ..BrokerSettings::default() },
            market: MarketTopics::default(),
            reference: RefData::check(RefDataRows::default()).unwrap(),
        }
    }

    /// Returns a connected session whose output was read.
    fn connected(limits: StompLimits, is_throttled: bool) -> Client {
        let mut client = Client::new(limits, is_throttled);
        client.send("CONNECT\naccept-version:1.2\n\n\0");
        client.read();
        client
    }

    fn send(&mut self, text: &str) -> Vec<SessionAction> {
        let mut decoder = Decoder::new(FrameLimits::default());
        if let Some(version) = self.session.version() {
            decoder.set_version(version);
        }
        let Ok(Decoded::Message { message, .. }) = decoder.decode(text.as_bytes()) else {
            panic!("not a frame: {text:?}")
        };
        let mut actions = Vec::new();
        self.session.handle_frame(self.now, &message, &self.settings, &mut actions);
        self.session.finish_frame(self.now);
        actions
    }

    fn subscribe(&mut self, id: &str, destination: &str, headers: &str) {
        self.send(&format!("SUBSCRIBE\nid:{id}\ndestination:{destination}\n{headers}\n\0"));
    }

    /// Publishes an event that must not be lost to the subscription at this place.
    fn deliver(&mut self, place: u16) {
        let naming = Naming::default();
        let mut rendered = Rendered::default();
        rendered.begin(&Topic::LogEvent("warn"), &naming, self.now);
        rendered.body().extend_from_slice(b"{}");
        self.session.deliver(self.now, place, None, &mut rendered, &naming);
    }

    fn topic(&mut self, security: u32) -> u32 {
        let topic = self.market.tick_topic(SecurityId(security), &self.reference).unwrap();
        let tick = Tick { security: SecurityId(security), ..Tick::default() };
        self.market.set_tick(topic, 1, self.now, &tick);
        topic
    }

    /// Offers a tick of a security to the subscription at this place.
    fn offer(&mut self, place: u16, security: u32, offer: MarketDataOffer) {
        let topic = self.topic(security);
        self.session.offer(self.now, place, topic, offer, &mut self.market);
    }

    fn tick(&mut self, place: u16, security: u32) {
        self.offer(place, security, MarketDataOffer::Event);
    }

    /// Reads everything that waits. Returns the destination of each message.
    fn read(&mut self) -> Vec<String> {
        let mut text = String::new();
        while self.session.has_output() {
            let bytes = self.session.transmit().bytes.to_vec();
            self.session.handle_transmitted(self.now, bytes.len());
            text.push_str(std::str::from_utf8(&bytes).unwrap());
        }
        text.lines().filter_map(|line| Some(line.strip_prefix("destination:/topic/")?.to_string())).collect()
    }

    fn after(&mut self, ns: u64) {
        self.now = self.now.plus(ns);
    }
}

fn limits(mark_bytes: usize) -> StompLimits {
    StompLimits { mark_bytes, ..StompLimits::default() }
}

fn unlimited() -> StompLimits {
    StompLimits::default()
}

#[test]
fn waiting_output_is_counted_with_its_queues() {
    let mut client = Client::connected(limits(1), true);
    client.subscribe("1", "/topic/log-event.*", "");
    client.subscribe("2", "/topic/tick.*", "");
    client.tick(1, 9);
    (1..=3).for_each(|security| client.tick(1, security));
    (0..2).for_each(|_| client.deliver(0));
    let session = &mut client.session;
    let fill = session.fill();
    assert_eq!((fill.slots, fill.backlog, fill.subscriptions), (3, 2, 2));
    assert!(fill.out_bytes > 0 && fill.backlog_bytes > 0);
    let queued = fill.backlog_bytes + 2 * size_of::<QueuedMessage>() + 3 * SLOT_BYTES_MAX;
    assert_eq!(session.waiting_bytes(), fill.out_bytes + queued);
    assert_eq!(session.held_bytes(), session.outbox.capacity() + queued + DELIVERY_BYTES_MAX);
    // Spare memory and the record of past deliveries are freed, and nothing that waits.
    session.shrink();
    assert_eq!(session.fill(), fill);
    assert!(session.outbox.capacity() <= fill.out_bytes + 64, "a few numbers beside the octets");
    assert_eq!(session.held_bytes(), session.outbox.capacity() + queued);
}

#[test]
fn a_client_is_read_while_its_unread_output_is_below_twice_the_mark() {
    let mut client = Client::connected(unlimited(), false);
    for id in 0.. {
        client.send(&format!("BEGIN\ntransaction:{id}\nreceipt:{id}\n\n\0"));
        client.send(&format!("ABORT\ntransaction:{id}\n\n\0"));
        if id > 9 && client.session.fill().out_bytes.is_multiple_of(2) {
            break;
        }
    }
    let half = client.session.fill().out_bytes / 2;
    for (mark_bytes, wants) in [(half + 1, true), (half, false), (half - 1, false)] {
        client.session.limits.mark_bytes = mark_bytes;
        assert_eq!(client.session.wants_bytes(), wants, "{mark_bytes}");
    }
    client.session.limits.mark_bytes = usize::MAX;
    assert!(client.session.wants_bytes());
}

#[test]
fn a_client_is_not_read_while_its_login_is_verified() {
    let mut client = Client::new(unlimited(), false);
    client.settings.anonymous_access = None;
    assert!(client.session.wants_bytes());
    client.send("CONNECT\naccept-version:1.2\nlogin:u\n\n\0");
    assert_eq!(client.session.state(), StompState::VerifyingLogin);
    assert!(!client.session.wants_bytes());
    assert_eq!((client.session.version(), client.session.poll_timeout()), (None, None));
    client.session.handle_login_result(START, "server", Some(StompAccess::default()));
    assert!(client.session.wants_bytes());
    assert_eq!(client.session.version(), Some(StompVersion::V12));
}

#[test]
fn a_client_that_was_not_read_is_not_silent() {
    let mut client = Client::new(unlimited(), false);
    client.send("CONNECT\naccept-version:1.2\nheart-beat:1000,0\n\n\0");
    client.read();
    client.send("BEGIN\ntransaction:a\nreceipt:r\n\n\0");
    client.session.limits.mark_bytes = 1;
    assert!(!client.session.wants_bytes());
    client.after(5 * NS_PER_S);
    client.session.handle_timeout(client.now);
    assert_eq!(client.session.state(), StompState::Connected);
    let stuck_at = START.plus(client.session.limits.stuck_ns_max);
    assert_eq!(client.session.poll_timeout(), Some(stuck_at), "nothing else is due");
    client.read();
    assert_eq!(client.session.poll_timeout(), Some(client.now.plus(2 * NS_PER_S)));
    client.after(2 * NS_PER_S - 1);
    client.session.handle_timeout(client.now);
    assert_eq!(client.session.state(), StompState::Connected);
    // An octet counts as a heart-beat.
    client.session.handle_received(client.now, 1);
    assert_eq!(client.session.counters().bytes_in, 1);
    client.after(2 * NS_PER_S);
    client.session.handle_timeout(client.now);
    assert_eq!(client.session.state(), StompState::Closing(StompCloseReason::Silence));
}

#[test]
fn the_next_deadline_is_that_of_the_state() {
    let limits = unlimited();
    let mut client = Client::new(limits, false);
    let until = START.plus(limits.connect_ns_max);
    assert_eq!(client.session.poll_timeout(), Some(until));
    client.session.handle_timeout(Timestamp(until.0 - 1));
    assert_eq!(client.session.state(), StompState::AwaitingConnect);
    client.send("CONNECT\naccept-version:1.2\nheart-beat:0,4000\n\n\0");
    let stuck_at = START.plus(limits.stuck_ns_max);
    assert_eq!(client.session.poll_timeout(), Some(stuck_at), "CONNECTED waits");
    client.after(NS_PER_S);
    client.read();
    let beat_at = client.now.plus(3 * NS_PER_S);
    assert_eq!(client.session.poll_timeout(), Some(beat_at));
    client.session.handle_timeout(Timestamp(beat_at.0 - 1));
    assert!(!client.session.has_output());
    client.session.handle_timeout(beat_at);
    assert_eq!(client.session.transmit().bytes, b"\n");
    assert_eq!(client.session.progress_at(), beat_at, "the output begins to wait");
    // The heart-beat waits as long as any other output.
    let stuck_at = beat_at.plus(limits.stuck_ns_max);
    assert_eq!(client.session.poll_timeout(), Some(stuck_at));
    client.session.handle_timeout(Timestamp(stuck_at.0 - 1));
    assert_eq!(client.session.state(), StompState::Connected);
    client.session.handle_timeout(stuck_at);
    assert_eq!(client.session.state(), StompState::Closing(StompCloseReason::Stalled));
    let end_at = stuck_at.plus(STALLED_ERROR_NS_MAX);
    assert_eq!(client.session.poll_timeout(), Some(end_at));
    assert_eq!(client.session.poll_close(Timestamp(end_at.0 - 1)), None);
    let close = StompClose::Immediate(StompCloseReason::Stalled);
    assert_eq!(client.session.poll_close(end_at), Some(close));
    client.read();
    assert_eq!(client.session.poll_close(stuck_at), Some(StompClose::Graceful(StompCloseReason::Stalled)));
}

#[test]
fn a_connection_without_a_connect_ends_at_its_deadline() {
    let mut client = Client::new(unlimited(), false);
    client.session.handle_timeout(START.plus(client.session.limits.connect_ns_max));
    assert_eq!(client.session.state(), StompState::Closing(StompCloseReason::ConnectTimeout));
}

#[test]
fn only_taken_octets_are_progress() {
    let mut client = Client::connected(unlimited(), false);
    client.send("BEGIN\ntransaction:a\nreceipt:r\n\n\0");
    client.after(NS_PER_S);
    client.send("BEGIN\ntransaction:b\nreceipt:s\n\n\0");
    client.session.handle_transmitted(client.now, 0);
    assert_eq!(client.session.progress_at(), START, "the first receipt waits since then");
    client.session.handle_transmitted(client.now, 1);
    assert_eq!(client.session.progress_at(), client.now);
    let taken = client.session.counters().bytes_out;
    client.session.drop_output(client.now);
    client.session.handle_transmitted(client.now.plus(1), 5);
    assert_eq!((client.session.counters().bytes_out, client.session.has_output()), (taken, false));
    assert_eq!(client.session.progress_at(), client.now);
    let close = StompClose::Immediate(StompCloseReason::SlowConsumer);
    assert_eq!(client.session.poll_close(client.now), Some(close));
}

#[test]
fn a_session_without_a_rate_and_without_windows_is_unthrottled() {
    let mut client = Client::new(unlimited(), false);
    assert!(!client.session.is_unthrottled(), "it is not connected");
    client.send("CONNECT\naccept-version:1.2\n\n\0");
    assert!(client.session.is_unthrottled());
    assert!(!Client::connected(unlimited(), true).session.is_unthrottled());
    client.subscribe("1", "/topic/tick.*", "conflate:1000\n");
    assert!(client.session.is_unthrottled(), "nothing is held");
    client.tick(0, 1);
    client.tick(0, 1);
    assert!(!client.session.is_unthrottled(), "the end of the window is a deadline");
    client.send("UNSUBSCRIBE\nid:1\n\n\0");
    assert!(client.session.is_unthrottled());
    assert_eq!(client.session.fill().slots, 0);
}

#[test]
fn events_wait_up_to_both_limits_of_the_backlog() {
    let mut first = Client::connected(limits(1), false);
    first.subscribe("1", "/topic/log-event.*", "");
    first.deliver(0);
    first.deliver(0);
    let bytes = first.session.fill().backlog_bytes;
    for (backlog_max, backlog_bytes_max) in [(3, usize::MAX), (usize::MAX, 3 * bytes)] {
        let limits = StompLimits { backlog_max, backlog_bytes_max, ..limits(1) };
        let mut client = Client::connected(limits, false);
        client.subscribe("1", "/topic/log-event.*", "");
        // The first one is in the outbox.
        (0..4).for_each(|_| client.deliver(0));
        assert_eq!(client.session.state(), StompState::Connected);
        let fill = client.session.fill();
        assert_eq!((fill.backlog, fill.backlog_bytes), (3, 3 * bytes));
        // What leaves the backlog makes room.
        client.read();
        client.session.send_waiting(client.now, &mut client.market);
        assert_eq!(client.session.fill().backlog_bytes, 2 * bytes);
        client.deliver(0);
        assert_eq!(client.session.state(), StompState::Connected);
        client.deliver(0);
        assert_eq!(client.session.state(), StompState::Closing(StompCloseReason::SlowConsumer));
        assert_eq!(client.session.counters().messages, 2);
    }
}

#[test]
fn topics_wait_up_to_their_limit_in_queues_and_windows() {
    for headers in ["", "conflate:1000\n"] {
        let limits = StompLimits { slots_max: 3, ..limits(1) };
        let mut client = Client::connected(limits, false);
        client.subscribe("1", "/topic/tick.*", headers);
        (0..=3).for_each(|security| client.tick(0, security));
        assert_eq!(client.session.state(), StompState::Connected);
        (1..=3).for_each(|security| client.tick(0, security));
        let counters = client.session.counters();
        assert_eq!((counters.messages, counters.conflated), (1, 3), "a topic waits once");
        assert_eq!(client.session.fill().slots, 3, "{headers}");
        client.tick(0, 9);
        assert_eq!(client.session.state(), StompState::Closing(StompCloseReason::SlowConsumer));
    }
}

#[test]
fn a_topic_that_waits_goes_before_a_newer_event() {
    // The caller gives an event before it looks at the deadlines.
    let mut client = Client::connected(unlimited(), true);
    client.subscribe("1", "/topic/tick.*", "");
    client.tick(0, 1);
    client.tick(0, 2);
    assert_eq!(client.read(), ["tick.1"]);
    assert_eq!(client.session.poll_timeout(), Some(client.now.plus(INTERVAL)));
    client.after(INTERVAL);
    client.tick(0, 3);
    assert_eq!((client.read(), client.session.fill().slots), (vec!["tick.2".to_string()], 1));
    // The same at the end of a window.
    let mut client = Client::connected(unlimited(), false);
    client.subscribe("1", "/topic/tick.*", "conflate:1000\n");
    client.tick(0, 1);
    client.tick(0, 2);
    assert_eq!(client.read(), ["tick.1"]);
    assert_eq!(client.session.poll_timeout(), Some(client.now.plus(NS_PER_S)));
    client.after(NS_PER_S);
    client.tick(0, 3);
    assert_eq!((client.read(), client.session.fill().slots), (vec!["tick.2".to_string()], 1));
}

#[test]
fn waiting_market_data_has_no_deadline_while_the_output_is_full() {
    let mut client = Client::connected(unlimited(), true);
    client.subscribe("1", "/topic/tick.*", "");
    client.tick(0, 1);
    let stuck_at = START.plus(client.session.limits.stuck_ns_max);
    assert_eq!(client.session.poll_timeout(), Some(stuck_at), "no topic waits");
    client.tick(0, 2);
    assert_eq!(client.session.poll_timeout(), Some(START.plus(INTERVAL)));
    client.session.limits.mark_bytes = client.session.fill().out_bytes;
    assert_eq!(client.session.poll_timeout(), Some(stuck_at));
}

#[test]
fn a_waiting_topic_is_flushed_only_in_a_throttled_session_that_has_room() {
    for (is_throttled, mark_bytes, headers, is_sent) in [
        (true, 256 * 1_024, "", true),
        (true, 1, "", false),
        (false, 256 * 1_024, "", false),
        (true, 256 * 1_024, "ack:client\nprefetch-count:1\n", false),
        (true, 256 * 1_024, "conflate:1000\n", false),
    ] {
        let mut client = Client::connected(limits(1), is_throttled);
        client.subscribe("1", "/topic/tick.*", headers);
        client.tick(0, 1);
        client.tick(0, 2);
        assert_eq!(client.session.fill().slots, 1);
        client.session.limits.mark_bytes = mark_bytes;
        let topic = client.topic(2);
        client.session.flush_topic(client.now, 0, topic, &mut client.market);
        assert_eq!(
            client.session.fill().slots,
            usize::from(!is_sent),
            "{is_throttled} {mark_bytes} {headers}"
        );
        let expected = if is_sent { vec!["tick.1", "tick.2"] } else { vec!["tick.1"] };
        assert_eq!(client.read(), expected);
    }
}

#[test]
fn a_topic_behind_its_window_is_not_flushed() {
    let mut client = Client::connected(limits(1), true);
    client.subscribe("1", "/topic/tick.*", "conflate:1000\n");
    client.tick(0, 1);
    client.tick(0, 2);
    // The window ends while the output is full, so the topic waits for its turn.
    client.after(NS_PER_S);
    client.session.send_waiting(client.now, &mut client.market);
    client.session.limits.mark_bytes = usize::MAX;
    let topic = client.topic(2);
    client.session.flush_topic(client.now, 0, topic, &mut client.market);
    assert_eq!((client.session.fill().slots, client.read()), (1, vec!["tick.1".to_string()]));
    client.session.send_waiting(client.now, &mut client.market);
    assert_eq!(client.read(), ["tick.2"]);
}

#[test]
fn a_rare_event_is_sent_at_once_if_there_is_room() {
    for (mark_bytes, headers, is_sent) in [
        (256 * 1_024, "", true),
        (1, "", false),
        (256 * 1_024, "ack:client\nprefetch-count:1\n", false),
        (256 * 1_024, "conflate:1000\n", false),
    ] {
        let mut client = Client::connected(limits(mark_bytes), true);
        client.subscribe("1", "/topic/tick.*", headers);
        client.tick(0, 1);
        client.offer(0, 2, MarketDataOffer::RareEvent);
        assert_eq!(client.session.fill().slots, usize::from(!is_sent), "{mark_bytes} {headers}");
        let due = client.session.pace.due(INTERVAL);
        assert_eq!(due, START.plus(if is_sent { 2 * INTERVAL } else { INTERVAL }), "it uses the rate");
    }
}

#[test]
fn an_image_is_not_held_by_a_window() {
    let mut client = Client::connected(unlimited(), false);
    client.subscribe("1", "/topic/tick.*", "conflate:1000\n");
    client.offer(0, 1, MarketDataOffer::Image);
    client.offer(0, 2, MarketDataOffer::Image);
    client.tick(0, 3);
    assert_eq!((client.read(), client.session.fill().slots), (vec!["tick.1".into(), "tick.2".into()], 1));
    // One nanosecond before its end the window holds its topic.
    client.after(NS_PER_S - 1);
    client.session.send_waiting(client.now, &mut client.market);
    assert!(client.read().is_empty());
    client.after(1);
    client.session.send_waiting(client.now, &mut client.market);
    assert_eq!((client.read(), client.session.fill().slots), (vec!["tick.3".into()], 0));
}

#[test]
fn headers_of_a_subscription_have_their_limits() {
    let limits = StompLimits { window_max: 50, ..unlimited() };
    let request = |destination: &str, header: &str| {
        let mut client = Client::connected(limits, false);
        client.subscribe("1", destination, &format!("{header}\n"));
        match client.session.state() {
            StompState::Closing(reason) => Err(reason),
            _ => Ok(client.session.subscriptions[0].as_ref().unwrap().request.clone()),
        }
    };
    for (text, window) in [("1", 1), ("007", 7), ("50", 50), ("51", 50), ("999999999", 50)] {
        for name in ["prefetch-count", "activemq.prefetchSize"] {
            assert_eq!(request("/topic/>", &format!("{name}:{text}")).unwrap().window, window, "{text}");
        }
    }
    assert_eq!(request("/topic/>", "a:b").unwrap().window, 50);
    for text in ["", "0", "-1", "+1", "1x", " 1", "1234567890", "0000000001"] {
        let error = request("/topic/>", &format!("prefetch-count:{text}")).unwrap_err();
        assert_eq!(error, StompCloseReason::BadPrefetch, "{text}");
    }
    for (destination, text, resume) in [
        ("/topic/depth.1", "5", Some(5)),
        ("/topic/orders.1.book", "0", Some(0)),
        ("/topic/depth.1", "+5", None),
        ("/topic/depth.1", "", None),
        ("/topic/depth.*", "5", None),
        ("/topic/tick.1", "5", None),
        ("/topic/tick.*", "5", None),
    ] {
        let found = request(destination, &format!("resume:{text}")).map(|request| request.resume);
        assert_eq!(found, resume.map(Some).ok_or(StompCloseReason::BadResume), "{destination} {text}");
    }
    for (destination, is_market_data) in [
        ("/topic/tick.1", true),
        ("/topic/*.1", true),
        ("/topic/>", true),
        ("/topic/trade.1", false),
        ("/topic/order.S.1", false),
    ] {
        let conflate = request(destination, "conflate:10").map(|request| request.conflate_ns);
        let window = is_market_data.then_some(Some(10_000_000));
        assert_eq!(conflate, window.ok_or(StompCloseReason::BadConflate), "{destination}");
        for (accept, batch, is_batched) in [
            ("application/x-pitlane-sbe", "true", is_market_data.then_some(true)),
            ("application/json", "true", None),
            ("application/x-pitlane-sbe", "false", Some(false)),
            ("application/json", "false", Some(false)),
            ("application/x-pitlane-sbe", "yes", None),
        ] {
            let found = request(destination, &format!("accept:{accept}\nbatch:{batch}"));
            let found = found.map(|request| request.is_batched);
            assert_eq!(found, is_batched.ok_or(StompCloseReason::BadBatch), "{destination} {accept} {batch}");
        }
    }
}
