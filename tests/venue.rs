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
//! stop-order o1 buy 10 105   a stop, GTC or for so many seconds (`105 30`); `trade 106`: the market trades there
//! tells N                    the shard is not informed whether the venue is connected
//! alerts InDoubt             the alerts since the last check
//! is o1 New 0                its status, and the filled quantity; `unknown` after it: in doubt
//! ```
//!
//! In values, `@30` is the time in 30 seconds, and `$a` stands for the value at its first
//! occurrence.

#[path = "venue/conformance.rs"]
mod conformance;
#[path = "venue/fix_venue.rs"]
mod fix_venue;
#[path = "venue/sim_venue.rs"]
mod sim_venue;

use std::path::Path;

use pitlane_engine::event::Tick;
use pitlane_engine::id::SecurityId;
use pitlane_engine::terms::Side;
use pitlane_engine::time::TimeOfDay;
use pitlane_protocols::fix::session::{DisconnectReason, FixSessionSettings};
use pitlane_protocols::fix::venue::{InitiatorSettings, VenueLogin};
use pitlane_tests::dice::Dice;
use pitlane_tests::fix::dialogue::{self, Cut};
use pitlane_tests::fix::seconds;
use pitlane_tests::fix::words::{Bound, filled, fits, number_after};
use pitlane_tests::venue::{Stage, frame_of, settings};
use pitlane_tests::world::OUTSIDE_ADAPTER;

#[test]
fn every_dialogue_holds_wherever_the_bytes_are_cut() {
    dialogue::play_all(&Path::new(env!("CARGO_MANIFEST_DIR")).join("data/venue"), 30, play);
}

/// A dialogue in progress.
struct Play {
    stage: Stage,
    cut: Cut,
    dice: Dice,
    /// The venue's next sequence number.
    number: u64,
    said: Vec<String>,
    bound: Bound,
}

fn play(text: &str, cut: Cut) -> Result<(), String> {
    let (mut settings, mut venue) = (settings(), InitiatorSettings::new(7));
    for setting in dialogue::settings(text) {
        let (key, value) = setting?;
        set(&mut settings, &mut venue, key, value);
    }
    let dice = cut.dice();
    let stage = Stage::new(settings, venue);
    let mut play = Play { stage, cut, dice, number: 1, said: Vec::new(), bound: Bound::new() };
    dialogue::perform_each(text, |line| play.perform(line))?;
    play.nothing_left()
}

fn set(settings: &mut FixSessionSettings, venue: &mut InitiatorSettings, key: &str, value: &str) {
    let yes = value == "Y";
    let number = || value.parse::<u64>().expect("a number");
    let time = || TimeOfDay::parse(value.as_bytes()).expect("a time of day");
    match key {
        "reset_on_logon" => settings.reset_on_logon = yes,
        "status_request" => venue.supports_status_request = yes,
        "prices" => venue.market_data_adapter = yes.then_some(OUTSIDE_ADAPTER),
        "heartbeat" => venue.heart_bt_int_s = number(),
        "reconnect" => venue.reconnect_s = number(),
        "account" => venue.account = Some(value.to_string()),
        "login" => {
            let login = VenueLogin { username: "me".to_string(), password: value.to_string() };
            venue.login = Some(login);
        }
        "start" => settings.schedule.start = time(),
        "end" => settings.schedule.end = time(),
        _ => panic!("no such setting: {key}"),
    }
}

impl Play {
    fn perform(&mut self, line: &str) -> Result<(), String> {
        let (word, rest) = line.split_once(' ').unwrap_or((line, ""));
        if word == "<" {
            return self.expect(rest);
        }
        self.nothing_left()?;
        let words: Vec<&str> = rest.split(' ').filter(|word| !word.is_empty()).collect();
        let seconds_of = |text: &str| text.parse().map(seconds).map_err(|_| "a number".to_string());
        match (word, &words[..]) {
            (">", _) => self.send(rest),
            (">raw", _) => self.feed(rest.replace('|', "\x01").as_bytes()),
            ("call", []) => check(self.stage.connect(), "it does not call")?,
            ("logon", []) => self.log_on()?,
            ("disconnect", []) => self.stage.disconnect(),
            ("restart", []) => self.stage.restart(),
            ("hears", [word]) => self.stage.hears = *word == "Y",
            ("stores", [word]) => self.stage.stores = *word == "Y",
            ("wait", [count]) => self.stage.wait(seconds_of(count)?),
            ("number", [number]) => self.number = number.parse().map_err(|_| "a number")?,
            ("order", [id, side, qty, price]) => {
                let side = if *side == "buy" { Side::Buy } else { Side::Sell };
                self.stage.submit(id, side, qty, price);
            }
            ("stop-order", [id, side, qty, stop, rest @ ..]) => {
                let side = if *side == "buy" { Side::Buy } else { Side::Sell };
                let until = rest.first().map(|count| seconds_of(count)).transpose()?;
                self.stage.submit_stop(id, side, qty, stop, until);
            }
            ("trade", [price]) => self.stage.trade(price),
            ("tells", [word]) => {
                self.stage.tells = *word == "Y";
                self.stage.settle();
            }
            ("alerts", expected) => {
                let found: Vec<String> =
                    self.stage.alerts.drain(..).map(|alert| format!("{alert:?}")).collect();
                check(found == expected, &format!("found {found:?}"))?;
            }
            ("orders", [count]) => {
                for nth in 0..count.parse::<u32>().map_err(|_| "a number")? {
                    self.stage.submit(&format!("m{nth}"), Side::Buy, "10", "100");
                }
            }
            ("reads", [word]) => {
                self.stage.reads = *word == "Y";
                self.stage.settle();
            }
            ("cancel", [id, order]) => self.stage.cancel(id, order),
            ("close", [id]) => self.stage.close(id),
            ("replace", [id, order, qty]) => self.stage.replace(id, order, qty),
            ("stop", _) => {
                self.stage.session.log_out(self.stage.now, rest.as_bytes(), DisconnectReason::EndedByUs);
                self.stage.settle();
            }
            ("reset", []) => {
                self.stage.session.reset(self.stage.now);
                self.stage.settle();
            }
            ("break-store", []) => self.stage.store.break_it(),
            _ => self.look(word, &words, rest)?,
        }
        self.said.extend(self.stage.said());
        if word == "reads" {
            // Messages that were held back; their number does not matter.
            self.said.clear();
        }
        Ok(())
    }

    /// Checks what must hold now.
    fn look(&self, word: &str, words: &[&str], rest: &str) -> Result<(), String> {
        let session = &self.stage.session;
        let found = match (word, words) {
            ("is", [id, ..]) => {
                let known = self.stage.order(id).ok_or("there is no such order")?;
                let doubt = if known.last.in_doubt { " unknown" } else { "" };
                format!("{id} {:?} {}{doubt}", known.last.status, known.last.cum_qty)
            }
            ("reason", [id, _]) => {
                let known = self.stage.order(id).ok_or("there is no such order")?;
                format!("{id} {}", known.last.reason.code())
            }
            ("fills", [id, _]) => format!("{id} {}", self.stage.order(id).map_or(0, |known| known.fills)),
            ("tick", [security, ..]) => {
                let id = SecurityId(security.parse().map_err(|_| "a security")?);
                let none = || "none".to_string();
                let tick = self.stage.ticks.get(&id).map(|tick| {
                    let Tick { bid, bid_size, ask, ask_size, last, .. } = tick;
                    format!("{bid_size}@{bid} {ask_size}@{ask} last {last}")
                });
                format!("{security} {}", tick.unwrap_or_else(none))
            }
            ("prices", [_]) => session.venue_counts().prices.to_string(),
            ("refused", [_]) => self.stage.refusals.last().map_or("", |last| last.reason.code()).to_string(),
            ("numbers", [_, _]) => {
                let numbers = session.sequence_numbers();
                format!("{} {}", numbers.next_target_msg_seq_num, numbers.next_sender_msg_seq_num)
            }
            ("touch", [_]) => (if session.is_synchronized() { "Y" } else { "N" }).to_string(),
            ("calls", [_]) => (if session.wants_connection(self.stage.now) { "Y" } else { "N" }).to_string(),
            ("passed", [_, _, _]) => {
                let counts = session.venue_counts();
                format!("{} {} {}", counts.unknown_values, counts.unknown_orders, counts.incomplete)
            }
            ("open", []) => (if self.stage.is_connected() { "" } else { "closed" }).to_string(),
            ("closed", [_]) if !self.stage.is_connected() => {
                self.stage.closed.map(|ending| format!("{ending:?}")).unwrap_or_default()
            }
            _ => return Err("no such command, or not so".to_string()),
        };
        if found == rest { Ok(()) } else { Err(format!("found {found}")) }
    }

    /// Connects and logs on, until orders can be sent.
    fn log_on(&mut self) -> Result<(), String> {
        check(self.stage.connect(), "it does not call")?;
        self.said.extend(self.stage.said());
        self.expect("35=A|98=0")?;
        self.send("35=A|98=0|108=30");
        self.expect("35=1|112=$touch")?;
        self.send("35=0|112=$touch");
        self.bound.remove("touch");
        check(self.stage.session.is_synchronized(), "they are not in touch")
    }

    fn send(&mut self, text: &str) {
        let text = filled(text, self.stage.now, &self.bound);
        let bytes = frame_of(&text, self.number, self.stage.now);
        self.number = number_after(&text, self.number);
        self.feed(&bytes);
    }

    fn feed(&mut self, bytes: &[u8]) {
        let Play { stage, cut, dice, .. } = self;
        cut.pieces(dice, bytes, |piece| stage.bytes(piece));
    }

    fn expect(&mut self, expected: &str) -> Result<(), String> {
        self.said.extend(self.stage.said());
        if self.said.is_empty() {
            return Err(format!("nothing was said; closed: {:?}", self.stage.closed));
        }
        let said = self.said.remove(0);
        fits(expected, &said, &mut self.bound)
    }

    fn nothing_left(&mut self) -> Result<(), String> {
        self.said.extend(self.stage.said());
        match self.said.first() {
            Some(said) => Err(format!("not expected before this: {said}")),
            None => Ok(()),
        }
    }
}

fn check(holds: bool, problem: &str) -> Result<(), String> {
    if holds { Ok(()) } else { Err(problem.to_string()) }
}
