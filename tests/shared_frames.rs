//! Frames that several binary messages share: whatever a connection takes and when, a subscriber
//! with `batch: true` gets the messages of one without, in the same order.

use std::collections::{BTreeMap, BTreeSet};

use pitlane_dialogue::stomp_frames;
use pitlane_engine::event::Tick;
use pitlane_engine::id::SecurityId;
use pitlane_engine::number::{Price, Qty};
use pitlane_engine::time::Timestamp;
use pitlane_protocols::stomp::broker::{SessionId, StompBroker};
use pitlane_protocols::stomp::outbox::SHARED_BODY_BYTES_MAX;
use pitlane_protocols::stomp::payload::system::{LogEventPayload, LogLevel};
use pitlane_protocols::stomp::session::Transport;
use pitlane_protocols::stomp::settings::BrokerSettings;
use pitlane_sbe::{Message, messages};
use pitlane_tests::dice::Dice;
use pitlane_tests::test_market;

const TICK_BYTES: usize = 92;
const SECURITIES: u64 = 7;

/// A client that takes bytes as they are given.
struct Consumer {
    session: SessionId,
    wire: Vec<u8>,
    frames: Vec<ReceivedFrame>,
}

/// A MESSAGE.
struct ReceivedFrame {
    subscription: String,
    destination: String,
    number: u64,
    is_binary: bool,
    body: Vec<u8>,
}

impl Consumer {
    fn open(broker: &mut StompBroker, subscriptions: &[&str]) -> Consumer {
        let now = test_market::start();
        let session = broker.open(now, Transport::Tcp).expect("there is room");
        broker.handle_bytes(now, session, &stomp_frames::frame("CONNECT|accept-version:1.2||"));
        for (id, subscription) in subscriptions.iter().enumerate() {
            let frame = format!("SUBSCRIBE|id:{id}|destination:/topic/{subscription}||");
            broker.handle_bytes(now, session, &stomp_frames::frame(&frame));
        }
        Consumer { session, wire: Vec::new(), frames: Vec::new() }
    }

    /// Takes at most this many bytes.
    fn take(&mut self, broker: &mut StompBroker, now: Timestamp, mut most: usize) {
        while let Some(transmit) = broker.transmit(self.session).filter(|_| most > 0) {
            let whole: usize = transmit.frames().map(<[u8]>::len).sum();
            assert_eq!(whole, transmit.bytes.len(), "octets are made of frames");
            let count = transmit.bytes.len().min(most);
            if count == 0 {
                break;
            }
            self.wire.extend_from_slice(&transmit.bytes[..count]);
            broker.handle_transmitted(now, self.session, count);
            most -= count;
        }
        let mut rest = self.wire.as_slice();
        while let Some((frame, length)) = first_frame(rest) {
            self.frames.extend(frame);
            rest = &rest[length..];
        }
        self.wire = rest.to_vec();
    }

    /// Returns the binary messages of a subscription, each alone, in order.
    fn messages(&self, subscription: &str) -> Vec<Vec<u8>> {
        let binary = self.frames.iter().filter(|frame| frame.is_binary && frame.subscription == subscription);
        binary.flat_map(|frame| frame.body.chunks(TICK_BYTES).map(<[u8]>::to_vec)).collect()
    }

    /// Checks that every frame is whole and within its limit, and that message ids rise by one.
    fn check(&self) {
        assert_eq!(self.wire.len(), 0, "the last frame is whole");
        for (frame, number) in self.frames.iter().zip(1..) {
            assert_eq!(frame.number, number);
            if frame.is_binary {
                let sound = messages(&frame.body).filter(Result::is_ok).count();
                assert_eq!(frame.body.len(), sound * TICK_BYTES);
                assert!(frame.body.len() <= SHARED_BODY_BYTES_MAX);
            }
        }
    }
}

/// Reads the first frame of a stream by its length: the MESSAGE, if it is one, and its octets.
fn first_frame(bytes: &[u8]) -> Option<(Option<ReceivedFrame>, usize)> {
    let head_end = bytes.windows(2).position(|pair| pair == b"\n\n")?;
    let head = std::str::from_utf8(&bytes[..head_end]).expect("heads are UTF-8");
    let header = |name: &str| {
        head.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(':')).map(str::to_string)
    };
    let length = header("content-length").map_or(0, |text| {
        assert!(!text.starts_with('0'), "{text}");
        text.parse().expect("a number")
    });
    let body = bytes.get(head_end + 2..head_end + 2 + length)?;
    assert_eq!(*bytes.get(head_end + 2 + length)?, 0, "a frame ends with NUL: {head}");
    let id = header("message-id");
    let frame = id.map(|id| ReceivedFrame {
        subscription: header("subscription").expect("it has an id"),
        destination: header("destination").expect("every message has one"),
        number: id.split_once('-').and_then(|(_, number)| number.parse().ok()).expect("a number"),
        is_binary: header("content-type").is_some_and(|kind| kind == "application/x-pitlane-sbe"),
        body: body.to_vec(),
    });
    Some((frame, head_end + 3 + length))
}

fn publish_tick(broker: &mut StompBroker, now: Timestamp, seq: u64, security: SecurityId) {
    let bid = Price::from_raw(i64::try_from(seq).expect("it is small"));
    let tick = Tick { security, bid, bid_size: Qty::from_raw(1), at: now, ..Tick::default() };
    broker.publish_tick(now, seq, now, &tick);
}

fn run(seed: u64) -> usize {
    let mut dice = Dice::new(seed);
    let mut broker = StompBroker::new(BrokerSettings::default(), test_market::reference());
    let sbe = "accept:application/x-pitlane-sbe";
    let plain = format!("tick.*|{sbe}");
    let batched = format!("tick.*|{sbe}|batch:true");
    let one = format!("tick.3|{sbe}|batch:true");
    // With other messages, and with a second subscription of the same kind.
    let everything = format!(">|{sbe}|batch:true");
    let mut consumers: Vec<Consumer> =
        [vec![plain.as_str()], vec![&batched], vec![&everything], vec![&one, &batched]]
            .iter()
            .map(|subscriptions| Consumer::open(&mut broker, subscriptions))
            .collect();
    let mut now = test_market::start();
    for seq in 1..=2_000 {
        now = now.plus(1_000);
        let security = u32::try_from(1 + dice.below(SECURITIES)).expect("it is small");
        publish_tick(&mut broker, now, seq, SecurityId(security));
        if dice.percent(2) {
            let event = LogEventPayload { level: LogLevel::Warn, logger: "l", message: "m", fields: &[] };
            broker.publish_log_event(now, now, &event);
        }
        for consumer in &mut consumers {
            // A part of the output, or all of it, before it is so long that ticks are merged.
            if dice.percent(1) {
                consumer.take(&mut broker, now, usize::MAX);
            } else if dice.percent(2) {
                consumer.take(&mut broker, now, dice.index(40_000));
            }
        }
    }
    consumers.iter_mut().for_each(|consumer| consumer.take(&mut broker, now, usize::MAX));
    consumers.iter().for_each(Consumer::check);
    let expected = consumers[0].messages("0");
    assert_eq!(expected.len(), 2_000, "nothing was merged");
    assert!(consumers[0].frames.iter().all(|frame| frame.destination != "/topic/tick.*"));
    for (consumer, subscription, pattern) in [(1, "0", "tick.*"), (2, "0", ">"), (3, "1", "tick.*")] {
        let consumer = &consumers[consumer];
        assert!(consumer.messages(subscription) == expected, "seed {seed}: subscribed to {pattern}");
        let binary = |frame: &&ReceivedFrame| frame.is_binary && frame.subscription == subscription;
        let destination = format!("/topic/{pattern}");
        assert!(consumer.frames.iter().filter(binary).all(|frame| frame.destination == destination));
    }
    let ticks_of_one = consumers[3].messages("0");
    assert!(ticks_of_one.iter().all(|tick| expected.contains(tick)) && !ticks_of_one.is_empty());
    assert!(consumers[3].frames.iter().any(|frame| frame.destination == "/topic/tick.3"));
    let has_logs = |consumer: &Consumer| consumer.frames.iter().any(|frame| !frame.is_binary);
    assert!(has_logs(&consumers[2]), "a log event has a frame of its own");
    consumers[1].frames.len()
}

#[test]
fn a_batched_subscriber_gets_the_messages_of_a_plain_one_in_order() {
    let frames: Vec<usize> = (1..=20).map(run).collect();
    assert!(frames.iter().all(|count| (12..1_000).contains(count)), "most share one: {frames:?}");
}

#[test]
fn a_frame_is_bounded_and_a_slow_reader_gets_the_newest_of_each_topic() {
    let mut broker = StompBroker::new(BrokerSettings::default(), test_market::reference());
    let subscription = "tick.*|accept:application/x-pitlane-sbe|batch:true";
    let mut consumer = Consumer::open(&mut broker, &[subscription]);
    let now = test_market::start();
    let mut newest = BTreeMap::new();
    for seq in 1..=20_000 {
        let security = u32::try_from(seq % 100).expect("it is small");
        publish_tick(&mut broker, now, seq, SecurityId(security));
        newest.insert(security, seq);
    }
    let (_, counters, fill) = broker.session_status(consumer.session).expect("it is connected");
    assert_eq!(fill.slots, 100, "every topic waits");
    assert!(fill.out_bytes < 256 * 1_024 + SHARED_BODY_BYTES_MAX, "{fill:?}");
    assert!(counters.conflated > 10_000, "{counters:?}");
    consumer.take(&mut broker, now, usize::MAX);
    consumer.check();
    let full = SHARED_BODY_BYTES_MAX / TICK_BYTES * TICK_BYTES;
    assert!(consumer.frames.iter().filter(|frame| frame.body.len() == full).count() > 10);
    let mut seen = BTreeMap::new();
    for message in consumer.frames.iter().flat_map(|frame| messages(&frame.body)) {
        let Ok(Message::Tick(tick)) = message else { panic!("{message:?}") };
        assert!(seen.insert(tick.security_id(), tick.seq()).is_none_or(|before| before < tick.seq()));
    }
    assert_eq!(seen, newest);
    let (_, counters, _) = broker.session_status(consumer.session).expect("it is connected");
    let ticks = consumer.messages("0").len() as u64;
    assert_eq!(counters.messages, ticks, "messages are counted, not frames");
    assert_eq!(counters.conflated + ticks, 20_000, "what was not sent was merged");
}

#[test]
fn a_shared_frame_has_one_acknowledgement() {
    let mut broker = StompBroker::new(BrokerSettings::default(), test_market::reference());
    let subscription = "tick.*|accept:application/x-pitlane-sbe|batch:true|ack:client|prefetch-count:2";
    let mut consumer = Consumer::open(&mut broker, &[subscription]);
    let now = test_market::start();
    let publish = |broker: &mut StompBroker, seqs: std::ops::Range<u64>| {
        seqs.for_each(|seq| publish_tick(broker, now, seq, SecurityId(1)));
    };
    publish(&mut broker, 1..4);
    consumer.take(&mut broker, now, usize::MAX);
    publish(&mut broker, 4..9);
    consumer.take(&mut broker, now, usize::MAX);
    // The second frame fills the window, so what follows its first message waits.
    let counts = |consumer: &Consumer| -> Vec<usize> {
        consumer.frames.iter().map(|frame| frame.body.len() / TICK_BYTES).collect()
    };
    assert_eq!(counts(&consumer), [3, 1]);
    broker.handle_bytes(now, consumer.session, &stomp_frames::frame("ACK|id:0-2||"));
    consumer.take(&mut broker, now, usize::MAX);
    assert_eq!(counts(&consumer), [3, 1, 1]);
    let seqs: BTreeSet<u64> = consumer
        .frames
        .iter()
        .flat_map(|frame| messages(&frame.body))
        .map(|message| match message {
            Ok(Message::Tick(tick)) => tick.seq(),
            other => panic!("{other:?}"),
        })
        .collect();
    assert_eq!(seqs, BTreeSet::from([1, 2, 3, 4, 8]), "the newest tick waited");
    broker.handle_bytes(now, consumer.session, &stomp_frames::frame("ACK|id:0-3||"));
    consumer.take(&mut broker, now, usize::MAX);
    consumer.check();
}

#[test]
fn messages_of_a_new_subscription_do_not_join_a_frame_of_an_ended_one() {
    let mut broker = StompBroker::new(BrokerSettings::default(), test_market::reference());
    let subscription = "tick.*|accept:application/x-pitlane-sbe|batch:true";
    let mut consumer = Consumer::open(&mut broker, &[subscription]);
    let now = test_market::start();
    publish_tick(&mut broker, now, 1, SecurityId(1));
    let mut send = |frame: &str| broker.handle_bytes(now, consumer.session, &stomp_frames::frame(frame));
    send("UNSUBSCRIBE|id:0||");
    send(&format!("SUBSCRIBE|id:new|destination:/topic/{subscription}||"));
    publish_tick(&mut broker, now, 2, SecurityId(1));
    consumer.take(&mut broker, now, usize::MAX);
    consumer.check();
    let subscriptions: Vec<&str> = consumer.frames.iter().map(|frame| frame.subscription.as_str()).collect();
    assert_eq!(subscriptions, ["0", "new"]);
}
