//! The session that connects to a venue, without a socket: each rule is a dialogue in `data/venue`,
//! played against a real session and shard, with the bytes cut in several ways. Also the
//! conformance suite: what every adapter must do, whichever it is.
//!
//! ```text
//! # The rule.
//! set status_request=Y       settings, before anything else
//! call                       we connect
//! logon                      we connect, and both sides are synchronized
//! < 35=D|11=$a|38=10|-99     to the venue: these fields, and not 99; no other message may come
//! > 35=8|11=$a|150=0|39=0    from the venue; 8, 9, 10 and missing 49, 56, 34, 52 are added
//! order o1 buy 10 100        a client's order; `cancel o2 o1`, `replace o2 o1 12`, `close o3`: the position
//! tick 8 5@99 7@101 last 0   the last tick of a security; `tick 8 none`: there was none
//! special-order o1 10 100 18=G  an order with these fields; `special-replace o2 o1 12 111=4`
//! stop-order o1 buy 10 105   a stop, GTC or for so many seconds (`105 30`); `trade 106`: the market trades there
//! informs N                  the shard is not informed whether the venue is connected
//! alerts InDoubt             the alerts since the last check
//! is o1 New 0                its status, and the filled quantity; `unknown` after it: in doubt
//! ```
//!
//! In values, `@30` is the time in 30 seconds, and `$a` stands for the value at its first
//! occurrence.

mod binance_day;
mod binance_depth;
mod binance_faults;
mod binance_market;
mod binance_special;
mod binance_venue;
mod conformance;
mod fix_venue;
mod sim_venue;

use std::path::Path;

use pitlane_dialogue::fix_fields::{Bound, filled, fits, number_after};
use pitlane_engine::event::Tick;
use pitlane_engine::id::SecurityId;
use pitlane_engine::terms::{ExecInst, Side, SpecialTerms};
use pitlane_engine::time::TimeOfDay;
use pitlane_protocols::fix::session::{DisconnectReason, FixSessionSettings};
use pitlane_protocols::fix::venue::profile::VenueProfile;
use pitlane_protocols::fix::venue::{InitiatorSettings, VenueLogin};
use pitlane_tests::dice::Dice;
use pitlane_tests::fix::dialogue::{self, CUTS, Cut};
use pitlane_tests::fix::seconds;
use pitlane_tests::test_market::{self, OUTSIDE_ADAPTER};
use pitlane_tests::venue::{VenueHarness, frame_of, settings};

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
    dialogue::play_all(&Path::new(env!("CARGO_MANIFEST_DIR")).join("data/venue"), 30, cuts, run);
}

/// A dialogue in progress.
struct VenueDialogueRun {
    harness: VenueHarness,
    cut: Cut,
    dice: Dice,
    /// The venue's next sequence number.
    number: u64,
    sent: Vec<String>,
    bound: Bound,
}

fn run(text: &str, cut: Cut) -> Result<(), String> {
    let (mut settings, mut venue) = (settings(), InitiatorSettings::new(7));
    for setting in dialogue::settings(text) {
        let (key, value) = setting?;
        set(&mut settings, &mut venue, key, value);
    }
    let dice = cut.dice();
    let has_books = venue.market_depth != 1;
    let mut harness = VenueHarness::new(settings, venue);
    if has_books {
        harness.shard.watch_books();
    }
    let mut run = VenueDialogueRun { harness, cut, dice, number: 1, sent: Vec::new(), bound: Bound::new() };
    dialogue::perform_each(text, |line| run.perform(line))?;
    run.nothing_left()
}

fn set(settings: &mut FixSessionSettings, venue: &mut InitiatorSettings, key: &str, value: &str) {
    let yes = value == "Y";
    let number = || value.parse::<u64>().expect("a number");
    let time = || TimeOfDay::parse(value.as_bytes()).expect("a time of day");
    match key {
        "reset_on_logon" => settings.reset_on_logon = yes,
        "status_request" => venue.supports_status_request = yes,
        "prices" => venue.market_data_adapter = yes.then_some(OUTSIDE_ADAPTER),
        "depth" => venue.market_depth = value.parse().expect("a number"),
        "heartbeat" => venue.heart_bt_int_s = number(),
        "reconnect" => venue.reconnect_s = number(),
        "omit" => {
            let tags: Vec<u32> = value.split(',').map(|tag| tag.parse().expect("a tag")).collect();
            venue.profile = VenueProfile::new(&[], &[], &[], &tags);
        }
        "account" => venue.account = Some(value.to_string()),
        "login" => {
            let login = VenueLogin { username: "me".to_string(), password: Some(value.to_string()) };
            venue.login = Some(login);
        }
        "start" => settings.schedule.start = time(),
        "end" => settings.schedule.end = time(),
        _ => panic!("no such setting: {key}"),
    }
}

/// Reads special terms from fields.
fn special_terms(fields: &[&str]) -> Result<SpecialTerms, String> {
    let mut special = SpecialTerms::default();
    for field in fields {
        match field.split_once('=').ok_or("a field")? {
            ("18", codes) => special.exec_inst = ExecInst::parse(codes.as_bytes()).ok_or("codes")?,
            ("110", qty) => special.min_qty = Some(test_market::qty(qty)),
            ("111", qty) => special.max_floor = Some(test_market::qty(qty)),
            (tag, _) => return Err(format!("no special term: {tag}")),
        }
    }
    Ok(special)
}

impl VenueDialogueRun {
    fn perform(&mut self, line: &str) -> Result<(), String> {
        let (keyword, rest) = line.split_once(' ').unwrap_or((line, ""));
        if keyword == "<" {
            return self.expect(rest);
        }
        self.nothing_left()?;
        let fields: Vec<&str> = rest.split(' ').filter(|keyword| !keyword.is_empty()).collect();
        let seconds_of = |text: &str| text.parse().map(seconds).map_err(|_| "a number".to_string());
        match (keyword, &fields[..]) {
            (">", _) => self.send(rest),
            (">raw", _) => self.feed(rest.replace('|', "\x01").as_bytes()),
            ("call", []) => check(self.harness.connect(), "it does not call")?,
            ("logon", []) => self.log_on()?,
            ("disconnect", []) => self.harness.disconnect(),
            ("restart", []) => self.harness.restart(),
            ("instructed", [keyword]) => self.harness.instructed = *keyword == "Y",
            ("stores", [keyword]) => self.harness.shard.stores = *keyword == "Y",
            ("wait", [count]) => self.harness.wait(seconds_of(count)?),
            ("number", [number]) => self.number = number.parse().map_err(|_| "a number")?,
            ("order", [id, side, qty, price]) => {
                let side = if *side == "buy" { Side::Buy } else { Side::Sell };
                self.harness.submit(id, side, qty, price);
            }
            ("special-order", [id, qty, price, special @ ..]) => {
                self.harness.submit_special(id, qty, price, special_terms(special)?);
            }
            ("special-replace", [id, order, qty, special @ ..]) => {
                self.harness.replace_special(id, order, qty, special_terms(special)?);
            }
            ("stop-order", [id, side, qty, stop, rest @ ..]) => {
                let side = if *side == "buy" { Side::Buy } else { Side::Sell };
                let until = rest.first().map(|count| seconds_of(count)).transpose()?;
                self.harness.submit_stop(id, side, qty, stop, until);
            }
            ("trade", [price]) => self.harness.trade(price),
            ("informs", [keyword]) => {
                self.harness.shard.informs = *keyword == "Y";
                self.harness.settle();
            }
            ("alerts", expected) => {
                let found: Vec<String> =
                    self.harness.shard.alerts.drain(..).map(|alert| format!("{alert:?}")).collect();
                check(found == expected, &format!("found {found:?}"))?;
            }
            ("orders", [count]) => {
                for nth in 0..count.parse::<u32>().map_err(|_| "a number")? {
                    self.harness.submit(&format!("m{nth}"), Side::Buy, "10", "100");
                }
            }
            ("reads", [keyword]) => {
                self.harness.reads = *keyword == "Y";
                self.harness.settle();
            }
            ("cancel", [id, order]) => self.harness.cancel(id, order),
            ("close", [id]) => self.harness.close(id),
            ("replace", [id, order, qty]) => self.harness.replace(id, order, qty),
            ("stop", _) => {
                self.harness.session.log_out(self.harness.now, rest.as_bytes(), DisconnectReason::EndedByUs);
                self.harness.settle();
            }
            ("reset", []) => {
                self.harness.session.reset(self.harness.now);
                self.harness.settle();
            }
            ("break-store", []) => self.harness.store.break_it(),
            _ => self.look(keyword, &fields, rest)?,
        }
        self.sent.extend(self.harness.sent());
        if keyword == "reads" {
            // Messages that were held back; their number does not matter.
            self.sent.clear();
        }
        Ok(())
    }

    /// Checks what must hold now.
    fn look(&self, keyword: &str, fields: &[&str], rest: &str) -> Result<(), String> {
        let session = &self.harness.session;
        let found = match (keyword, fields) {
            ("is", [id, ..]) => {
                let known = self.harness.order(id).ok_or("there is no such order")?;
                let doubt = if known.last.in_doubt { " unknown" } else { "" };
                format!("{id} {:?} {}{doubt}", known.last.status, known.last.cum_qty)
            }
            ("reason", [id, _]) => {
                let known = self.harness.order(id).ok_or("there is no such order")?;
                format!("{id} {}", known.last.reason.code())
            }
            ("fills", [id, _]) => format!("{id} {}", self.harness.order(id).map_or(0, |known| known.fills)),
            ("tick", [security, ..]) => {
                let id = SecurityId(security.parse().map_err(|_| "a security")?);
                let none = || "none".to_string();
                let tick = self.harness.shard.ticks.get(&id).map(|tick| {
                    let Tick { bid, bid_size, ask, ask_size, last, .. } = tick;
                    format!("{bid_size}@{bid} {ask_size}@{ask} last {last}")
                });
                format!("{security} {}", tick.unwrap_or_else(none))
            }
            ("book", [security, ..]) => {
                let id = SecurityId(security.parse().map_err(|_| "a security")?);
                format!("{security} {}", self.harness.shard.book_text(id))
            }
            ("snapshots", [security, _]) => {
                let id = SecurityId(security.parse().map_err(|_| "a security")?);
                let books = &self.harness.shard.books;
                format!("{security} {}", books.get(&id).map_or(0, |(_, snapshots)| *snapshots))
            }
            ("prices", [_]) => session.venue_counts().prices.to_string(),
            ("refused", [_]) => {
                self.harness.shard.refusals.last().map_or("", |last| last.reason.code()).to_string()
            }
            ("numbers", [_, _]) => {
                let numbers = session.sequence_numbers();
                format!("{} {}", numbers.next_target_msg_seq_num, numbers.next_sender_msg_seq_num)
            }
            ("touch", [_]) => (if session.is_synchronized() { "Y" } else { "N" }).to_string(),
            ("calls", [_]) => {
                (if session.wants_connection(self.harness.now) { "Y" } else { "N" }).to_string()
            }
            ("passed", [_, _, _]) => {
                let counts = session.venue_counts();
                format!("{} {} {}", counts.unknown_values, counts.unknown_orders, counts.incomplete)
            }
            ("open", []) => (if self.harness.is_connected() { "" } else { "closed" }).to_string(),
            ("closed", [_]) if !self.harness.is_connected() => {
                self.harness.closed.map(|ending| format!("{ending:?}")).unwrap_or_default()
            }
            _ => return Err("no such command, or not so".to_string()),
        };
        if found == rest { Ok(()) } else { Err(format!("found {found}")) }
    }

    /// Connects and logs on, until orders can be sent.
    fn log_on(&mut self) -> Result<(), String> {
        check(self.harness.connect(), "it does not call")?;
        self.sent.extend(self.harness.sent());
        self.expect("35=A|98=0")?;
        self.send("35=A|98=0|108=30");
        self.expect("35=1|112=$touch")?;
        self.send("35=0|112=$touch");
        self.bound.remove("touch");
        check(self.harness.session.is_synchronized(), "they are not in touch")
    }

    fn send(&mut self, text: &str) {
        let text = filled(text, self.harness.now, &self.bound);
        let bytes = frame_of(&text, self.number, self.harness.now);
        self.number = number_after(&text, self.number);
        self.feed(&bytes);
    }

    fn feed(&mut self, bytes: &[u8]) {
        let VenueDialogueRun { harness, cut, dice, .. } = self;
        cut.pieces(dice, bytes, |piece| harness.bytes(piece));
    }

    fn expect(&mut self, expected: &str) -> Result<(), String> {
        self.sent.extend(self.harness.sent());
        if self.sent.is_empty() {
            return Err(format!("nothing was sent; closed: {:?}", self.harness.closed));
        }
        let sent = self.sent.remove(0);
        fits(expected, &sent, &mut self.bound)
    }

    fn nothing_left(&mut self) -> Result<(), String> {
        self.sent.extend(self.harness.sent());
        match self.sent.first() {
            Some(sent) => Err(format!("not expected before this: {sent}")),
            None => Ok(()),
        }
    }
}

fn check(holds: bool, problem: &str) -> Result<(), String> {
    if holds { Ok(()) } else { Err(problem.to_string()) }
}
