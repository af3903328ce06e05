//! The FIX acceptor without a socket: each rule is a dialogue in `data/fix`, played against a real
//! session, desk and shard, with the bytes cut in several ways.
//!
//! ```text
//! # The rule.
//! set validate=Y             settings, before anything else
//! logon                      connect, Logon, and its answer
//! > 35=1|112=x               from the client; 8, 9, 10 and missing 49, 56, 34, 52 (and 60 of orders) are added
//! >> 35=1|112=y              the same, in one piece with the next
//! >bare 35=1|34=2|112=z      the same, and only 8, 9 and 10 are added
//! < 35=0|112=x|-58           to the client: these fields, and not 58; no other message may come
//! closed HeartbeatMissed     the connection was closed
//! ```
//!
//! A dialogue is played in every version of FIX that has its messages, unless `set version=` names
//! one. In values, `@30` is the time in 30 seconds, and `$a` stands for the value at its first
//! occurrence.

use std::path::Path;
use std::sync::Arc;

use pitlane_dialogue::fix_fields::{Bound, filled, fits, frame_in, number_after};
use pitlane_engine::command::TradingSession;
use pitlane_engine::event::{Event, EventKind, ExecType, OrderTerms, RequestKind, RequestRefusal};
use pitlane_engine::id::{IntId, OrderHandle, Origin, PortId, SecurityId, ShardId, Source, StrategyId};
use pitlane_engine::index::index_usize;
use pitlane_engine::number::{Money, Qty};
use pitlane_engine::reason::Reason;
use pitlane_engine::sender::SenderId;
use pitlane_engine::settings::ShardSettings;
use pitlane_engine::terms::{OrderKind, OrderSpecialTerms, SpecialTerms, Status, Terms};
use pitlane_engine::time::{TimeOfDay, Timestamp};
use pitlane_protocols::codes::{Code, FixProfile};
use pitlane_protocols::decoded::Decoded;
use pitlane_protocols::fix::dictionary::{CustomField, DictionarySettings};
use pitlane_protocols::fix::drop_copy::CopiedOrders;
use pitlane_protocols::fix::fields::{Fields, read};
use pitlane_protocols::fix::frame;
use pitlane_protocols::fix::order::OrderFields;
use pitlane_protocols::fix::positions::PositionRow;
use pitlane_protocols::fix::session::FixSessionSettings;
use pitlane_protocols::fix::version::FixVersion;
use pitlane_tests::dice::Dice;
use pitlane_tests::fix::dialogue::{self, CUTS, Cut};
use pitlane_tests::fix::translation::Translation;
use pitlane_tests::fix::{FixHarness, SharedStore, frame_of, sealed, seconds, settings};
use pitlane_tests::test_market;

/// If it fails, the test below fails too, and not because of the cuts.
#[test]
fn every_dialogue_holds_with_whole_messages() {
    play_all(&[Cut::Whole]);
}

#[test]
fn every_dialogue_holds_wherever_the_bytes_are_cut() {
    play_all(&CUTS);
}

fn play_all(cuts: &[Cut]) {
    dialogue::play_all(&Path::new(env!("CARGO_MANIFEST_DIR")).join("data/fix"), 101, cuts, run);
}

/// A version that cannot play most dialogues is not tested.
#[test]
fn most_dialogues_are_played_in_every_version() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("data/fix");
    let mut played = [0; FixVersion::ALL.len()];
    for entry in std::fs::read_dir(folder).expect("the dialogues are part of the repository") {
        let text =
            std::fs::read_to_string(entry.expect("a readable folder").path()).expect("a readable file");
        for translation in Translation::of_dialogue(&text) {
            let at = FixVersion::ALL.iter().position(|version| *version == translation.version);
            played[at.expect("one of all")] += 1;
        }
    }
    assert!(played.iter().all(|count| *count >= 120), "{played:?}");
}

/// A resend that does not fit the output continues as the client reads; new messages follow it, in
/// order.
#[test]
fn a_long_resend_goes_in_steps_and_new_messages_follow_it() {
    let mut settings = settings();
    settings.reset_on_logon = false;
    let mut harness = FixHarness::new(settings);
    harness.connect();
    harness.bytes(&frame_of("35=A|98=0|108=0", 1, harness.now));
    let order = "55=S8|54=1|38=10|40=2|44=100|1=6|60=20261116-08:00:00";
    for nth in 0..1_500 {
        harness.bytes(&frame_of(&format!("35=D|11=o{nth}|{order}"), 2 + nth, harness.now));
    }
    assert_eq!(harness.sent().len(), 1_501);
    harness.reads = false;
    harness.bytes(&frame_of("35=2|7=1|16=0", 1_502, harness.now));
    let waiting = harness.session.poll_transmit().len();
    assert!((256 * 1_024..512 * 1_024).contains(&waiting), "{waiting} bytes are written ahead");
    harness.venue(&["accept"]);
    harness.venue(&["fill", "10", "100"]);
    harness.bytes(&frame_of("35=1|112=after", 1_503, harness.now));
    harness.reads = true;
    harness.settle();
    let sent = harness.sent();
    let number = |message: &str| {
        let field = message.split('|').find_map(|field| field.strip_prefix("34="));
        field.and_then(|number| number.parse::<u64>().ok()).expect("a number")
    };
    // One gap fill for the Logon, the orders again, then the two reports and the answer unchanged.
    assert_eq!(
        sent.iter().map(|message| number(message)).collect::<Vec<_>>(),
        (1..=1_504).collect::<Vec<_>>()
    );
    let marked = sent.iter().map(|message| message.contains("|43=Y|"));
    assert!(marked.eq((1..=1_504).map(|number| number <= 1_501)), "only messages sent before are marked");
    assert!(sent[1_503].contains("|112=after|"), "{}", sent[1_503]);
}

/// A second connection of a session that is logged on is refused without an answer, and the first
/// continues.
#[test]
fn a_second_connection_is_refused_and_the_first_continues() {
    let mut harness = FixHarness::new(settings());
    harness.connect();
    harness.bytes(&frame_of("35=A|98=0|108=30", 1, harness.now));
    assert_eq!(harness.sent().len(), 1);
    assert!(!harness.session.connect(harness.now), "there is one already");
    harness.bytes(&frame_of("35=1|112=x", 2, harness.now));
    assert!(harness.sent()[0].contains("|112=x|"));
}

/// In an incident a cancel was refused, the process was killed before the refusal was sent, and
/// both the restart and the client's repetition sent it.
#[test]
fn a_refusal_that_was_not_sent_before_a_restart_is_sent_once() {
    let settings = FixSessionSettings { reset_on_logon: false, ..settings() };
    let refusal = RequestRefusal {
        order: OrderHandle::NONE,
        id: IntId::NONE,
        request_id: IntId::parse(b"b").expect("an id"),
        source: settings.source,
        request: RequestKind::Cancel,
        status: Status::Rejected,
        reason: Reason::UnknownOrder,
    };
    let mut harness = FixHarness::new(settings);
    let now = harness.now;
    harness.missed(&Event { seq: 1_000, at: now, body: EventKind::Refused(refusal) });
    harness.connect();
    harness.bytes(&frame_of("35=A|98=0|108=0", 3, now));
    assert!(harness.sent()[0].contains("|34=2|"), "the refusal has the number before");
    for (number, id) in [(1, "b"), (2, "c")] {
        let again = format!("35=F|43=Y|122=20261116-08:00:00|11={id}|41=a|55=S8|54=1|60=20261116-08:00:00");
        harness.bytes(&frame_of(&again, number, now));
    }
    let sent = harness.sent();
    let refused: Vec<_> = sent.iter().filter(|message| message.contains("|35=9|")).collect();
    assert!(refused.len() == 1 && refused[0].contains("|11=c|"), "{sent:?}");
}

/// A dialogue in progress.
struct FixDialogueRun {
    harness: FixHarness,
    translation: Translation,
    cut: Cut,
    dice: Dice,
    /// The client's next sequence number.
    number: u64,
    /// Bytes to be sent together with the next message.
    held: Vec<u8>,
    sent: Vec<String>,
    bound: Bound,
}

fn run(text: &str, cut: Cut) -> Result<(), String> {
    Translation::of_dialogue(text).into_iter().try_for_each(|translation| {
        let version = translation.version.begin_string();
        run_in(translation, text, cut).map_err(|problem| format!("{version}: {problem}"))
    })
}

fn run_in(translation: Translation, text: &str, cut: Cut) -> Result<(), String> {
    let mut settings = FixSessionSettings { version: translation.version, ..settings() };
    let mut messages_max = 10_000;
    for setting in dialogue::settings(text) {
        match setting? {
            // `Translation` has read it.
            ("version", _) => {}
            ("store", value) => messages_max = value.parse().map_err(|_| "a number")?,
            (key, value) => set(&mut settings, key, value),
        }
    }
    let store = SharedStore::new(test_market::start(), messages_max);
    let harness = FixHarness::with_store(settings, store, ShardSettings::default());
    let dice = cut.dice();
    let bound = Bound::new();
    let (held, sent) = (Vec::new(), Vec::new());
    let mut run = FixDialogueRun { harness, translation, cut, dice, number: 1, held, sent, bound };
    dialogue::perform_each(text, |line| run.perform(line))?;
    run.nothing_left()
}

fn set(settings: &mut FixSessionSettings, key: &str, value: &str) {
    let yes = value == "Y";
    let number = || value.parse::<u64>().expect("a number");
    let small = || value.parse::<u32>().expect("a number of 32 bits");
    let id = || value.parse::<u16>().expect("an id");
    let time = || TimeOfDay::parse(value.as_bytes()).expect("a time of day");
    match key {
        "reset_on_logon" => settings.reset_on_logon = yes,
        "validate" => settings.validate = yes,
        "login" => settings.login = yes,
        "next_expected" => settings.next_expected = yes,
        "report_open_orders" => settings.report_open_orders = yes,
        "may_trade" => settings.may_trade = yes,
        "may_see_positions" => settings.may_see_positions = yes,
        "chunk" => settings.resend_chunk = number(),
        "accuracy" => settings.sending_time_ns_max = seconds(number()),
        "cancel_on_disconnect" => settings.cancel_on_disconnect_ns = Some(seconds(number())),
        "strict44" if yes => settings.profile = FixProfile::Strict44,
        "types" => {
            settings.order_types = value.bytes().filter_map(OrderKind::from_code).collect();
        }
        "orders_per_s" => settings.rate_limit.orders_per_s = small(),
        "cancels_per_s" => settings.rate_limit.cancels_per_s = small(),
        "queries_per_s" => settings.rate_limit.queries_per_s = small(),
        "orders_max" => settings.orders_max = small(),
        "finished_max" => settings.finished_max = small(),
        "user_defined" => settings.dictionary = Arc::new(DictionarySettings::new(Vec::new(), yes)),
        // The words of a field have `_` between them.
        "custom_field" => {
            let field = CustomField::parse(&value.replace('_', " ")).expect("a field");
            settings.dictionary = Arc::new(DictionarySettings::new(vec![field], true));
        }
        "start" => settings.schedule.start = time(),
        "end" => settings.schedule.end = time(),
        "account" => settings.account = Some(pitlane_engine::id::AccountId(id())),
        "strategy" => settings.strategy = pitlane_engine::id::StrategyId(id()),
        "message_bytes_max" => settings.message_bytes_max = index_usize(number()),
        _ => panic!("no such setting: {key}"),
    }
}

impl FixDialogueRun {
    fn perform(&mut self, line: &str) -> Result<(), String> {
        let (keyword, rest) = line.split_once(' ').unwrap_or((line, ""));
        if keyword == "<" {
            return self.expect(rest);
        }
        if keyword != ">>" {
            self.nothing_left()?;
        }
        let fields: Vec<&str> = rest.split(' ').filter(|keyword| !keyword.is_empty()).collect();
        match keyword {
            ">" | ">>" => self.send(rest, keyword == ">>"),
            ">raw" => self.feed(self.translation.raw(rest).replace('|', "\x01").into_bytes()),
            ">old" => {
                let begin_string = self.translation.other_begin_string();
                self.feed(sealed(begin_string, &format!("{}|", self.filled(rest))));
            }
            ">bare" => {
                let begin_string = self.translation.version.begin_string();
                self.feed(sealed(begin_string, &format!("{}|", self.filled(rest))));
            }
            "many" => {
                let (count, text) = rest.split_once(' ').ok_or("how many of what")?;
                for _ in 0..count.parse::<u32>().map_err(|_| "a number")? {
                    self.send(text, true);
                }
                self.feed(Vec::new());
            }
            "connect" => self.harness.connect(),
            "logon" => {
                self.harness.connect();
                if self.harness.session.settings().reset_on_logon {
                    self.number = 1;
                }
                let extra = if rest.is_empty() { "108=30" } else { rest };
                self.send(&format!("35=A|98=0|{extra}"), false);
                self.expect("35=A")?;
            }
            "disconnect" => self.harness.disconnect(),
            "restart" => self.harness.restart(),
            "wait" => self.harness.wait(seconds(rest.parse().map_err(|_| "a number")?)),
            "ms" => self.harness.wait(rest.parse::<u64>().map_err(|_| "a number")? * 1_000_000),
            "number" => self.number = rest.parse().map_err(|_| "a number")?,
            "venue" => self.harness.venue(&fields),
            "elsewhere" => self.harness.elsewhere(&fields),
            "quote" => {
                let [security, bid, ask] = fields[..] else { return Err("security, bid, ask".to_string()) };
                let id = security.trim_start_matches('S').parse().map_err(|_| "a security")?;
                self.harness.quote(SecurityId(id), bid, ask);
            }
            "hours" => {
                let hours = match rest {
                    "Closed" => TradingSession::Closed,
                    "Opening" => TradingSession::OpeningAuction,
                    "Continuous" => TradingSession::Continuous,
                    "Closing" => TradingSession::ClosingAuction,
                    _ => return Err("no such hours".to_string()),
                };
                self.harness.hours(test_market::AUCTIONS, hours);
            }
            "positions" => {
                let rows = rest.split(',').filter(|row| !row.trim().is_empty()).map(position);
                self.harness.positions(rows.collect::<Option<_>>().ok_or("six values for each")?)?;
            }
            "ready" => self.harness.session.set_ready(rest == "Y"),
            "stop" => {
                let ending = pitlane_protocols::fix::session::DisconnectReason::EndedByUs;
                self.harness.session.log_out(self.harness.now, rest.as_bytes(), ending);
                self.harness.settle();
            }
            "break-store" => self.harness.store.break_it(),
            "reads" => self.harness.reads = rest == "Y",
            "numbers" => {
                let numbers = self.harness.session.sequence_numbers();
                let found =
                    format!("{} {}", numbers.next_target_msg_seq_num, numbers.next_sender_msg_seq_num);
                if found != rest {
                    return Err(format!("they are {found}"));
                }
            }
            "garbled" => {
                let found = self.harness.session.counts().garbled.to_string();
                if found != rest {
                    return Err(format!("{found} stretches were counted"));
                }
            }
            "open" => {
                if !self.harness.is_connected() {
                    return Err(format!("closed: {:?}", self.harness.closed));
                }
            }
            "closed" => {
                let found = self.harness.closed.map(|ending| format!("{ending:?}"));
                if self.harness.is_connected() || found.as_deref() != Some(rest) {
                    return Err(format!("found {found:?}"));
                }
            }
            _ => return Err("no such command".to_string()),
        }
        self.sent.extend(self.harness.sent());
        Ok(())
    }

    fn send(&mut self, text: &str, hold: bool) {
        let text = self.filled(&self.translation.sent(text));
        let begin_string = self.translation.version.begin_string();
        let bytes = frame_in(begin_string, &text, "CLIENT1", self.number, self.harness.now);
        self.number = number_after(&text, self.number);
        self.held.extend_from_slice(&bytes);
        if !hold {
            self.feed(Vec::new());
        }
    }

    fn filled(&self, text: &str) -> String {
        filled(text, self.harness.now, &self.bound)
    }

    fn feed(&mut self, bytes: Vec<u8>) {
        let mut held = std::mem::take(&mut self.held);
        held.extend_from_slice(&bytes);
        let FixDialogueRun { harness, cut, dice, .. } = self;
        cut.pieces(dice, &held, |piece| harness.bytes(piece));
    }

    fn expect(&mut self, expected: &str) -> Result<(), String> {
        self.sent.extend(self.harness.sent());
        if self.sent.is_empty() {
            return Err(format!("nothing was sent; closed: {:?}", self.harness.closed));
        }
        let sent = self.translation.received(&self.sent.remove(0))?;
        fits(&self.translation.expected(expected), &sent, &mut self.bound)
    }

    fn nothing_left(&mut self) -> Result<(), String> {
        self.sent.extend(self.harness.sent());
        match self.sent.first() {
            Some(sent) => Err(format!("not expected before this: {sent}")),
            None => Ok(()),
        }
    }
}

/// Reads a position: security, strategy, quantity, average price, price of the market, gain.
fn position(text: &str) -> Option<PositionRow> {
    let fields: Vec<&str> = text.split_whitespace().collect();
    let [security, strategy, qty, avg_price, market_price, unrealized] = fields[..] else { return None };
    Some(PositionRow {
        security: SecurityId(security.strip_prefix('S')?.parse().ok()?),
        strategy: StrategyId(strategy.parse().ok()?),
        qty: test_market::qty(qty),
        avg_price: Some(test_market::price(avg_price)),
        market_price: Some(test_market::price(market_price)),
        unrealized: Some(Money::parse(unrealized.as_bytes()).ok()?),
    })
}

#[test]
fn a_new_order_is_read_without_allocations() {
    let body = "35=D|49=CLIENT1|56=PITLANE|34=215|52=20261116-08:00:00.123|11=o1|1=A1|55=S1|54=1|38=100|40=2|44=187.25|\
                59=0|60=20261116-08:00:00.123|7001=1|";
    let bytes = sealed("FIX.4.4", body);
    let mut fields = Fields::default();
    let count = allocation_counter::measure(|| {
        for _ in 0..100 {
            let Ok(Decoded::Message { message, .. }) = frame::decode(&bytes, 65_536) else {
                panic!("a good frame")
            };
            let message = read(message, &mut fields);
            let order = OrderFields::read(&message).expect("a good order");
            assert_eq!(order.price, Some(Ok(test_market::price("187.25"))));
        }
    });
    assert_eq!(count.count_total, 0);
}

#[test]
fn a_copy_of_a_report_has_the_special_terms_of_its_order() {
    let order = OrderHandle::new(ShardId(0), 1, 5);
    let event = |body| Event { seq: 1, at: Timestamp(1), body };
    let source = Source { origin: Origin::Fix, port: PortId(1), session: 1 };
    let special = SpecialTerms { min_qty: Some(Qty::from_raw(3)), ..SpecialTerms::default() };
    let terms = |special| OrderTerms {
        order,
        id: IntId::numbered(b'o', 1),
        orig_id: IntId::NONE,
        source,
        what: ExecType::Entered,
        status: Status::PendingNew,
        reason: Reason::None,
        sender: SenderId::NONE,
        terms: Terms { special, ..Terms::default() },
    };
    let mut copies = CopiedOrders::default();
    let announced = OrderSpecialTerms { order, source, is_snapshot: false, special };
    assert!(copies.handle_event(&event(EventKind::SpecialTerms(announced))).is_none());
    let copied = |copies: &mut CopiedOrders, has_special| {
        copies.handle_event(&event(EventKind::Order(terms(has_special)))).expect("a report").special
    };
    assert_eq!(copied(&mut copies, true), Some(special));
    assert_eq!(copied(&mut copies, false), None);
}
