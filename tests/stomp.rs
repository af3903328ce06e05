//! The STOMP broker: each rule is a dialogue in `data/stomp`, played with the bytes cut in every
//! way; the matcher compared with a naive one; the throttle under a virtual clock.

use std::path::Path;

use pitlane_dialogue::stomp_frames;
use pitlane_tests::stomp::bare::BareHost;
use pitlane_tests::stomp::dialogue::{Cuts, dialogues, play};

/// Longest line that is cut everywhere. Longer lines test limits; cutting them everywhere would
/// take minutes and show nothing new.
const CUT_EVERYWHERE_MAX: usize = 600;

#[test]
fn every_rule_holds_wherever_the_bytes_are_cut() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("data/stomp");
    let mut files: Vec<_> = std::fs::read_dir(&folder)
        .expect("the dialogues are part of the repository")
        .map(|entry| entry.expect("a readable folder").path())
        .collect();
    files.sort();
    let (mut count, mut failures) = (0, Vec::new());
    for file in files {
        let text = std::fs::read_to_string(&file).expect("a readable file");
        for (rule, lines) in dialogues(&text) {
            count += 1;
            if let Err(problem) = check(&lines) {
                failures.push(format!("{}: {rule}\n  {problem}", file.display()));
            }
        }
    }
    assert!(failures.is_empty(), "{} of {count}:\n{}", failures.len(), failures.join("\n"));
    assert!(count > 100, "only {count} dialogues were found");
}

fn check(lines: &[&str]) -> Result<(), String> {
    let run_cut =
        |cuts: Cuts| play(lines, &cuts, &BareHost::open).map_err(|problem| format!("{cuts:?}: {problem}"));
    run_cut(Cuts::None)?;
    run_cut(Cuts::Merged)?;
    for len in [1, 2, 3, 5, 11] {
        run_cut(Cuts::Every(len))?;
    }
    for (number, line) in lines.iter().enumerate() {
        let line = line.strip_prefix("2 ").unwrap_or(line);
        let len = match (line.strip_prefix("> "), line.strip_prefix(">> ")) {
            (Some(frame), _) => stomp_frames::frame(frame).len(),
            (_, Some(raw)) => stomp_frames::raw(raw).len(),
            _ => 0,
        };
        if len > CUT_EVERYWHERE_MAX {
            continue;
        }
        for at in 1..len {
            run_cut(Cuts::At(number, at))?;
        }
    }
    Ok(())
}

mod matching {
    use pitlane_engine::index::index_u16;
    use pitlane_protocols::stomp::index::{Subscriber, SubscriptionIndex};
    use pitlane_protocols::stomp::pattern::Pattern;
    use pitlane_protocols::stomp::topic::Naming;
    use pitlane_tests::dice::Dice;
    use pitlane_tests::seeds;

    /// Matches by the documented rules alone, on text: `*` is one segment, a final `>` is
    /// everything from there on, including nothing.
    fn naive(pattern: &[&str], name: &[&str]) -> bool {
        match (pattern, name) {
            ([], []) => true,
            ([">"], _) => true,
            (["*", pattern @ ..], [_, name @ ..]) => naive(pattern, name),
            ([first, pattern @ ..], [segment, name @ ..]) => first == segment && naive(pattern, name),
            _ => false,
        }
    }

    /// Few names, so that many match.
    const NAMES: [&str; 4] = ["tick", "order", "a", "1"];
    const SEGMENTS_MAX: u64 = 4;

    fn text(dice: &mut Dice, wild: bool) -> String {
        let count = 1 + dice.below(SEGMENTS_MAX);
        let mut segments: Vec<&str> =
            (0..count).map(|_| if wild && dice.percent(30) { "*" } else { dice.pick(&NAMES) }).collect();
        if wild && dice.percent(30) {
            segments.push(">");
        }
        segments.join(".")
    }

    #[test]
    fn the_index_and_a_naive_matcher_find_the_same_subscribers() {
        seeds::run(200, |seed, _| {
            let mut dice = Dice::new(seed ^ 0x5709);
            let (mut index, mut all) =
                (SubscriptionIndex::default(), Vec::<(String, Pattern, Subscriber)>::new());
            let mut found = Vec::new();
            for step in 0..400u32 {
                if dice.percent(40) || all.is_empty() {
                    let text = text(&mut dice, true);
                    let pattern = Pattern::parse(&format!("/topic/{text}"), &Naming::default())
                        .map_err(|error| format!("{text}: {error:?}"))?;
                    let subscriber = Subscriber { session: step, subscription: index_u16(dice.index(9)) };
                    index.insert(&pattern, subscriber);
                    all.push((text, pattern, subscriber));
                } else if dice.percent(40) {
                    let (_, pattern, subscriber) = all.swap_remove(dice.index(all.len()));
                    if !index.remove(&pattern, subscriber) {
                        return Err(format!("step {step}: {pattern:?} was gone"));
                    }
                }
                let name = text(&mut dice, false);
                let segments: Vec<&str> = name.split('.').collect();
                let is_meant = |text: &str| naive(&text.split('.').collect::<Vec<_>>(), &segments);
                let mut expected: Vec<Subscriber> =
                    all.iter().filter(|(text, _, _)| is_meant(text)).map(|(_, _, who)| *who).collect();
                expected.sort_unstable();
                index.find(&name, &mut found);
                if found != expected {
                    return Err(format!("step {step}: {name}: {found:?}, not {expected:?}"));
                }
                if let Some((text, pattern, _)) =
                    all.iter().find(|(text, pattern, _)| pattern.matches(&name) != is_meant(text))
                {
                    return Err(format!("{text} and {name}: {}", pattern.matches(&name)));
                }
            }
            Ok(())
        });
    }
}

mod throttle {
    use std::collections::{BTreeMap, VecDeque};

    use pitlane_dialogue::stomp_frames;
    use pitlane_engine::event::Tick;
    use pitlane_engine::id::SecurityId;
    use pitlane_engine::number::{Price, Qty};
    use pitlane_engine::text::SCALE;
    use pitlane_engine::time::{NS_PER_MS, NS_PER_S, Timestamp};
    use pitlane_protocols::stomp::broker::{SessionId, StompBroker};
    use pitlane_protocols::stomp::payload::system::{LogEventPayload, LogLevel};
    use pitlane_protocols::stomp::session::Transport;
    use pitlane_protocols::stomp::settings::BrokerSettings;
    use pitlane_tests::test_market;

    const RATE: usize = 50;
    const BUSY: u32 = 500;
    /// A security with one event in 20 s.
    const RARE: SecurityId = SecurityId(9_000);
    const RARE_NS: u64 = 20 * NS_PER_S;

    /// One consumer over WebSocket that reads everything at once, under a virtual clock.
    struct Consumer {
        broker: StompBroker,
        id: SessionId,
        now: Timestamp,
        seq: u64,
        /// Time, topic and price of each event received.
        came: Vec<(Timestamp, String, i64)>,
        newest: BTreeMap<u32, i64>,
        /// Number of log events, which must arrive at the moment they are published.
        logs: usize,
    }

    impl Consumer {
        fn new() -> Consumer {
            Consumer::of(&["SUBSCRIBE|id:1|destination:/topic/>||".to_string()])
        }

        fn of(subscriptions: &[String]) -> Consumer {
            let now = test_market::start();
            let mut broker = StompBroker::new(BrokerSettings::default(), test_market::reference());
            let id = broker.open(now, Transport::WebSocket).expect("there is room");
            broker.handle_bytes(now, id, &stomp_frames::frame("CONNECT|accept-version:1.2||"));
            for frame in subscriptions {
                broker.handle_bytes(now, id, &stomp_frames::frame(frame));
            }
            let mut consumer =
                Consumer { broker, id, now, seq: 0, came: vec![], newest: BTreeMap::new(), logs: 0 };
            consumer.take();
            consumer
        }

        fn tick(&mut self, security: SecurityId) {
            self.seq += 1;
            let (bid, size) = (Price::from_raw(self.seq as i64 * SCALE), Qty::from_raw(SCALE));
            let tick = Tick { security, bid, bid_size: size, at: self.now, ..Tick::default() };
            self.newest.insert(security.0, self.seq as i64);
            self.broker.publish_tick(self.now, self.seq, self.now, &tick);
            self.take();
        }

        fn log(&mut self) {
            let event = LogEventPayload { level: LogLevel::Warn, logger: "t", message: "m", fields: &[] };
            self.broker.publish_log_event(self.now, self.now, &event);
            let before = self.logs;
            self.take();
            assert_eq!(self.logs, before + 1, "what is no market data never waits");
        }

        /// Advances the clock to a time, and handles every deadline on the way.
        fn sleep(&mut self, until: Timestamp) {
            while let Some(at) = self.broker.poll_timeout().filter(|at| *at <= until) {
                self.now = self.now.max(at);
                self.broker.handle_timeout(self.now);
                self.take();
            }
            self.now = until;
        }

        fn take(&mut self) {
            loop {
                let bytes = self.broker.transmit(self.id).expect("it is connected").bytes.to_vec();
                if bytes.is_empty() {
                    return;
                }
                self.broker.handle_transmitted(self.now, self.id, bytes.len());
                for frame in stomp_frames::frames(&mut bytes.clone()) {
                    self.note(&frame);
                }
            }
        }

        fn note(&mut self, frame: &str) {
            let between =
                |from: &str, to: &str| Some(frame.split_once(from)?.1.split_once(to)?.0.to_string());
            let Some(topic) = between("destination:/topic/", "|") else { return };
            if topic.starts_with("log-event") {
                self.logs += 1;
                return;
            }
            let bid = between("\"bid\":", ",").and_then(|bid| bid.parse().ok()).expect("a tick has a bid");
            self.came.push((self.now, topic, bid));
        }

        /// Returns the most events in any window of one second, among those that `is_meant`
        /// selects.
        fn most(&self, is_meant: impl Fn(&str) -> bool) -> usize {
            let mut window: VecDeque<Timestamp> = VecDeque::new();
            let mut most = 0;
            for (at, topic, _) in &self.came {
                if is_meant(topic) {
                    window.push_back(*at);
                }
                while window.front().is_some_and(|first| at.since(*first) >= NS_PER_S) {
                    window.pop_front();
                }
                most = most.max(window.len());
            }
            most
        }
    }

    #[test]
    fn fifty_a_second_in_every_window_while_500_instruments_tick_and_a_rare_one_never_waits() {
        let mut consumer = Consumer::new();
        let start = consumer.now;
        consumer.tick(RARE);
        let rare_topic = format!("tick.{}", RARE.0);
        let mut rare_at = start.plus(RARE_NS);
        let mut rares = 0;
        // Each of 500 ticks 100 times per second: one of them every 20 µs; 62 s contain three rare
        // events.
        let step = NS_PER_S / (BUSY as u64 * 100);
        let steps = 62 * NS_PER_S / step;
        for number in 0..steps {
            consumer.sleep(start.plus(number * step));
            if consumer.now >= rare_at {
                let before = consumer.came.len();
                consumer.tick(RARE);
                let came = &consumer.came[before..];
                assert!(came.iter().any(|(_, topic, _)| *topic == rare_topic), "a rare event waited");
                rare_at = rare_at.plus(RARE_NS);
                rares += 1;
            }
            let busy = u32::try_from(number % u64::from(BUSY)).expect("a small number");
            consumer.tick(SecurityId(1 + busy));
            if number % 50_000 == 0 {
                consumer.log();
            }
        }
        assert_eq!(rares, 3);
        let most = consumer.most(|topic| topic != rare_topic);
        assert!(most <= RATE, "{most} in a second");
        let most = consumer.most(|_| true);
        assert!(most <= RATE + 1, "{most} in a second, rare ones included");
        assert!(consumer.came.len() >= 62 * RATE - 10, "only {} of what could go", consumer.came.len());
        // Every instrument gets its share: 500 share 50 per second, so each has one every 10 s.
        let mut last: BTreeMap<&str, Timestamp> = BTreeMap::new();
        for (at, topic, _) in &consumer.came {
            if *topic != rare_topic {
                let before = last.insert(topic, *at).unwrap_or(start);
                assert!(
                    at.since(before) <= 11 * NS_PER_S,
                    "{topic} waited {} ms",
                    at.since(before) / NS_PER_MS
                );
            }
        }
        assert_eq!(last.len(), BUSY as usize);
        // The last value of each burst arrives, each once.
        consumer.sleep(consumer.now.plus(11 * NS_PER_S));
        let mut shown: BTreeMap<String, i64> = BTreeMap::new();
        for (_, topic, bid) in &consumer.came {
            let before = shown.insert(topic.clone(), *bid);
            assert!(before.is_none_or(|before| before < *bid), "{topic} went back or came twice");
        }
        for (security, bid) in &consumer.newest {
            assert_eq!(shown.get(&format!("tick.{security}")), Some(bid));
        }
    }

    #[test]
    fn thirty_watched_rows_move_every_second_beside_a_wildcard_over_2000_instruments() {
        const INSTRUMENTS: u32 = 2_000;
        const ROWS: u32 = 30;
        let row = |number: u32| number * 61 + 5;
        let mut frames = vec!["SUBSCRIBE|id:all|destination:/topic/tick.*||".to_string()];
        frames.extend((0..ROWS).map(|at| format!("SUBSCRIBE|id:{at}|destination:/topic/tick.{}||", row(at))));
        let mut consumer = Consumer::of(&frames);
        let start = consumer.now;
        // Each ticks 2.5 times per second: one of them every 200 µs.
        let step = NS_PER_S / 5_000;
        let steps = 20 * NS_PER_S / step;
        for number in 0..steps {
            consumer.sleep(start.plus(number * step));
            let at = u32::try_from(number % u64::from(INSTRUMENTS)).expect("a small number");
            consumer.tick(SecurityId(1 + at));
        }
        let most = consumer.most(|_| true);
        assert!(most <= RATE, "{most} in a second");
        let rows: BTreeMap<String, u32> = (0..ROWS).map(|at| (format!("tick.{}", row(at)), at)).collect();
        let mut seen: BTreeMap<&str, Vec<Timestamp>> = BTreeMap::new();
        for (at, topic, _) in &consumer.came {
            seen.entry(topic).or_default().push(*at);
        }
        for topic in rows.keys() {
            // The first turn of each comes when it first ticks, within 0.4 s.
            let mut before = start;
            for at in seen[topic.as_str()].iter().chain([&consumer.now]) {
                assert!(at.since(before) <= NS_PER_S, "{topic} waited {} ms", at.since(before) / NS_PER_MS);
                before = *at;
            }
        }
        let others: usize =
            seen.iter().filter(|(topic, _)| !rows.contains_key(**topic)).map(|(_, times)| times.len()).sum();
        assert!((90..=120).contains(&others), "{others} of the wildcard's {} events", consumer.came.len());
        let repeated = seen.iter().filter(|(topic, times)| !rows.contains_key(**topic) && times.len() > 1);
        assert_eq!(repeated.count(), 0, "an instrument without a delivery goes before the others");
    }

    #[test]
    fn many_rare_instruments_leave_the_others_a_tenth() {
        let mut consumer = Consumer::new();
        let start = consumer.now;
        // 1,100 rare instruments, each once in 11 s: 100 per second; and one busy one.
        for number in 0..44_000u64 {
            consumer.sleep(start.plus(number * 10 * NS_PER_MS / 10));
            if number % 10 == 0 {
                consumer.tick(SecurityId(10_000 + (number / 10 % 1_100) as u32));
            }
            consumer.tick(SecurityId(1));
        }
        // In the first 11 s every instrument is new and waits its turn; from the second time on
        // they are exempt.
        let second = start.plus(22 * NS_PER_S);
        let late: Vec<_> = consumer.came.iter().filter(|(at, _, _)| *at >= second).collect();
        let others = late.iter().filter(|(_, topic, _)| topic == "tick.1").count();
        let rares = late.len() - others;
        assert!(rares >= 2_100, "{rares} rare ones in 22 s");
        assert!((90..=130).contains(&others), "{others} of the others in 22 s");
    }
}
