//! The session as the one who calls: when to connect, our Logon and the venue's answer, and how we know that neither side misses
//! anything of the other.
//!
//! ```text
//! away ── ReconnectInterval, in its hours ──► connect ──► Logon ──► their Logon ──► Test Request ──► its Heartbeat ──► in touch
//!   ▲                                                       │ Logout, silence           │ gap, resend: asked again         │
//!   └───────────────────────────────────────────────────────┴────────────────────────────┴──────────────────────────────────┘
//! ```
//!
//! Whoever answers a Test Request in its turn has heard all that we said before it, and we have heard all that it said before the
//! answer. Only then are orders sent.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::Arc;

use pitlane_engine::command::Report;
use pitlane_engine::desk::{Desk, DeskSettings, IdBlock};
use pitlane_engine::event::{Instruction, VenueRequest};
use pitlane_engine::id::{IntId, OrderHandle, PortId};
use pitlane_engine::pages::LargePages;
use pitlane_engine::refdata::RefData;
use pitlane_engine::text::parse_u64;
use pitlane_engine::time::{NS_PER_S, Timestamp};

use super::inbound::{number_of, too_low};
use super::logon::HEART_BT_INT_MAX;
use super::outbound::echo;
use super::{DisconnectReason, Session, SessionSettings, State, Step};
use crate::fix::fields::Message;
use crate::fix::frame::BEGIN_STRING;
use crate::fix::stamp::parse_timestamp;
use crate::fix::store::Store;
use crate::fix::tag;
use crate::fix::venue::VenueSettings;
use crate::fix::venue::prices::Prices;

/// Whether both sides have all that was said.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Touch {
    #[default]
    None,
    /// To be found out.
    Wanted,
    /// By a Test Request of this number.
    Asked(u64),
    Full,
}

/// What was counted of a venue's answers since the start.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct VenueCounts {
    /// Answers with a value that we do not know; passed over.
    pub unknown_values: u64,
    /// Answers about no order of ours.
    pub unknown_orders: u64,
    /// Answers that lack something; passed over.
    pub incomplete: u64,
    pub orders_out: u64,
    pub executions: u64,
    /// Requests refused by us, since the venue did not take them.
    pub refused: u64,
    /// Quotes and trades taken from its market data.
    pub prices: u64,
}

/// For a shard: what the venue says of an order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct VenueReport {
    pub order: OrderHandle,
    pub report: Report,
    /// To be told once the shard has stored it ([`Session::handle_stored`]); zero: nobody waits for that.
    pub token: u32,
}

/// What a session has beside the rest when it is us who call.
#[derive(Debug)]
pub(super) struct Initiator {
    pub settings: VenueSettings,
    pub touch: Touch,
    /// Not before this.
    pub connect_at: Timestamp,
    /// The number of a Logon that has not left us.
    pub unheard: Option<u64>,
    /// What the last Logout said, for people.
    pub refusal: Option<String>,
    /// For the shards, in their order. Bounded by what is asked and told: the room takes them all before it reads on.
    pub reports: VecDeque<VenueReport>,
    pub token: u32,
    /// Orders whose D is kept, so that the venue has it as soon as we are in touch.
    pub known: BTreeSet<OrderHandle>,
    /// Orders whose D was never kept when the process before ended.
    pub never_sent: BTreeSet<OrderHandle>,
    /// Cancels and replacements without an answer, by their order and ClOrdID.
    pub asked: BTreeMap<(OrderHandle, IntId), VenueRequest>,
    /// Orders of which the venue is to tell how they stand: messages about them may be lost. At most as many as shards hold.
    pub unsure: BTreeSet<OrderHandle>,
    /// Order Status Requests that wait for room in the output, at most `QUERIES_MAX`.
    pub queries: VecDeque<Instruction>,
    /// How often we came in touch.
    pub touches: u64,
    /// Whether messages were lost since this was last looked at.
    pub has_lost: bool,
    pub counts: VenueCounts,
    /// The last refusal of an order in the venue's words, for people.
    pub words: Option<String>,
    /// Its market data, if it gives any.
    pub prices: Option<Prices>,
    /// Takes no orders: a venue sends none.
    desk: Option<Box<Desk>>,
}

impl Session {
    /// A session with a venue. `never_sent`: orders of which the journal has an instruction and the store no message.
    pub fn initiator(
        settings: SessionSettings,
        venue: VenueSettings,
        store: Box<dyn Store>,
        reference: Arc<RefData>,
        never_sent: BTreeSet<OrderHandle>,
    ) -> Session {
        let port = settings.source.port;
        let settings = SessionSettings { orders_max: 1, finished_max: 1, login: false, ..settings };
        let mut session = Session::new(settings, store, reference);
        // Those are of clients.
        session.flight.settle();
        session.initiator = Some(Box::new(Initiator {
            prices: venue.prices_of.map(Prices::new),
            settings: venue,
            touch: Touch::None,
            connect_at: Timestamp::ZERO,
            unheard: None,
            refusal: None,
            reports: VecDeque::new(),
            token: 0,
            known: BTreeSet::new(),
            never_sent,
            asked: BTreeMap::new(),
            unsure: BTreeSet::new(),
            queries: VecDeque::new(),
            touches: 0,
            has_lost: false,
            counts: VenueCounts::default(),
            words: None,
            desk: Some(Box::new(idle_desk(port))),
        }));
        session.recall_requests();
        session
    }

    /// Whether the caller is to connect now, and then to call [`Session::connect`].
    pub fn wants_connection(&self, now: Timestamp) -> bool {
        let Some(initiator) = &self.initiator else { return false };
        self.state == State::Offline && now >= initiator.connect_at && self.settings.schedule.is_open(now)
    }

    /// It was not to be had: the next attempt is later.
    pub fn handle_no_connection(&mut self, now: Timestamp) {
        if let Some(initiator) = &mut self.initiator {
            initiator.connect_at = initiator.settings.next_attempt(now);
        }
    }

    /// Whether orders may be sent: we are logged on, and neither side misses anything of the other.
    pub fn is_in_touch(&self) -> bool {
        let touch = self.initiator.as_ref().map(|initiator| initiator.touch);
        self.state == State::LoggedOn && touch == Some(Touch::Full)
    }

    /// What the venue's last Logout said; told once.
    pub fn take_refusal(&mut self) -> Option<String> {
        self.initiator.as_mut()?.refusal.take()
    }

    /// In which words the venue refused the last order or request; told once.
    pub fn take_words(&mut self) -> Option<String> {
        self.initiator.as_mut()?.words.take()
    }

    pub fn venue_counts(&self) -> VenueCounts {
        self.initiator.as_ref().map(|initiator| initiator.counts).unwrap_or_default()
    }

    /// Works through what has come up to the next report or price, and gives the report. Prices are to be taken first
    /// ([`Session::poll_price`]).
    pub fn poll_report(&mut self, now: Timestamp) -> Option<VenueReport> {
        let desk = self.initiator.as_mut()?.desk.take()?;
        let report = loop {
            if let Some(report) = self.initiator.as_mut().and_then(|initiator| initiator.reports.pop_front())
            {
                break Some(report);
            }
            if self.has_price() {
                break None;
            }
            self.go_on(now);
            if !self.may_read() || !self.read_one(now, &desk) {
                self.keep_numbers();
                break None;
            }
        };
        if let Some(initiator) = &mut self.initiator {
            initiator.desk = Some(desk);
        }
        report
    }

    /// A shard has stored the report of this token, and so the message may not come again.
    pub fn handle_stored(&mut self, token: u32) {
        self.flight.end(&flight_id(token));
    }

    /// The connection is there: the first word is ours.
    pub(super) fn begin_as_initiator(&mut self, now: Timestamp) {
        let Some(initiator) = &mut self.initiator else { return };
        initiator.touch = Touch::None;
        initiator.refusal = None;
        let (interval, login) = (initiator.settings.heart_bt_int_s, initiator.settings.login.clone());
        let outdated = self.numbers.since < self.settings.schedule.began(now);
        // Who has said and heard nothing begins with a reset: the venue may remember somebody else.
        let is_new = self.numbers.incoming == 1 && self.numbers.outgoing == 1;
        let resets = self.settings.reset_on_logon || outdated || is_new;
        if resets {
            self.reset_numbers(now);
            self.forget_sent();
        }
        if let Some(initiator) = &mut self.initiator {
            initiator.unheard = Some(self.numbers.outgoing);
        }
        self.say(now, b'A', |draft| {
            draft.text(b"98=", b"0");
            draft.number(b"108=", interval);
            if resets {
                draft.code(b"141=", b'Y');
            }
            if let Some(login) = &login {
                draft.text(b"553=", login.username.as_bytes());
                draft.text(b"554=", login.password.as_bytes());
            }
        });
    }

    /// The connection is gone: the next attempt is after the interval.
    pub(super) fn end_as_initiator(&mut self, now: Timestamp) {
        self.handle_no_connection(now);
        if let Some(initiator) = &mut self.initiator {
            initiator.touch = Touch::None;
            initiator.prices.iter_mut().for_each(Prices::end);
            // The shards ask for them again when we are in touch.
            initiator.unsure.clear();
            initiator.queries.clear();
            // Whoever could not be reached has seen no number, and it is used again.
            if let Some(number) = initiator.unheard.take() {
                self.numbers.outgoing = number;
            }
        }
    }

    /// What was sent is forgotten on both sides: whether it arrived only the venue can tell.
    pub(super) fn forget_sent(&mut self) {
        self.lose_messages();
        if let Some(initiator) = &mut self.initiator {
            initiator.asked.clear();
        }
    }

    /// Messages of the venue are lost: of no order do we know that we have heard all. Who was in touch has to find that out again, so
    /// that the shards ask for every order.
    pub(super) fn lose_messages(&mut self) {
        let Some(initiator) = &mut self.initiator else { return };
        initiator.known.clear();
        initiator.has_lost = true;
        if initiator.touch != Touch::None {
            initiator.touch = Touch::Wanted;
        }
    }

    /// Whether messages of the venue were lost; told once.
    pub fn take_loss(&mut self) -> bool {
        self.initiator.as_mut().is_some_and(|initiator| std::mem::take(&mut initiator.has_lost))
    }

    /// How often the session came in touch with its venue, if it is in touch: two that differ have a time between them in which it was not.
    pub fn touches(&self) -> Option<u64> {
        self.initiator.as_ref().filter(|_| self.is_in_touch()).map(|initiator| initiator.touches)
    }

    /// The first message of the venue.
    pub(super) fn handle_logon_answer(&mut self, now: Timestamp, message: &Message) {
        if message.frame.begin_string != BEGIN_STRING {
            return self.end(DisconnectReason::BeginString);
        }
        if !self.is_from_client(message) {
            return self.end(DisconnectReason::Identity);
        }
        let Some(number) = number_of(message) else { return self.end(DisconnectReason::NumberMissing) };
        if message.msg_type == b"5" {
            return self.handle_refused_logon(message, number);
        }
        if message.msg_type != b"A" || message.fault.is_some() {
            return self.end(DisconnectReason::NotLogon);
        }
        let sent = message.header.sending_time.and_then(parse_timestamp);
        if !sent.is_some_and(|sent| self.is_timely(now, sent)) {
            return self.end(DisconnectReason::SendingTime);
        }
        self.take_logon_answer(now, message, number);
    }

    fn take_logon_answer(&mut self, now: Timestamp, message: &Message, number: u64) {
        let resets = message.get(tag::RESET_SEQ_NUM_FLAG) == Some(b"Y") && number == 1;
        if resets && self.numbers.outgoing != 2 {
            // They begin anew, and our Logon was the first.
            self.reset_numbers(now);
            self.numbers.outgoing = 2;
            self.forget_sent();
        }
        if number < self.numbers.incoming && !message.header.poss_dup {
            let (text, len) = too_low(self.numbers.incoming, number);
            return self.log_out_and_close(now, &text[..len], DisconnectReason::NumberTooLow);
        }
        let told = message.get(tag::HEART_BT_INT).and_then(|text| parse_u64(text).ok());
        let Some(initiator) = &mut self.initiator else { return };
        let interval = told.filter(|&told| told > 0 && told <= HEART_BT_INT_MAX);
        let interval = interval.unwrap_or(initiator.settings.heart_bt_int_s);
        initiator.touch = Touch::Wanted;
        self.timers.log_on(interval * NS_PER_S, self.settings.schedule.ends(now));
        self.advance(Step::Admit);
        self.take_logon_number(number);
    }

    /// They do not want us. Their number counts, so that it is not taken for missing later.
    fn handle_refused_logon(&mut self, message: &Message, number: u64) {
        if number == self.numbers.incoming {
            self.numbers.incoming = number + 1;
        }
        self.note_refusal(message);
        self.end(DisconnectReason::LogonRefused);
    }

    /// Keeps the words of a Logout for people.
    pub(super) fn note_refusal(&mut self, message: &Message) {
        if let (Some(initiator), Some(text)) = (&mut self.initiator, message.get(tag::TEXT)) {
            initiator.refusal = Some(readable(text));
        }
    }

    /// Finds out whether both sides have all, when nothing is missing that we know of.
    pub(super) fn go_on_touching(&mut self, now: Timestamp) {
        let Some(initiator) = &mut self.initiator else { return };
        let quiet = self.gap.is_none() && !self.resend.is_active() && self.state == State::LoggedOn;
        if initiator.touch != Touch::Wanted || !quiet {
            return;
        }
        let number = self.numbers.outgoing;
        initiator.touch = Touch::Asked(number);
        self.say(now, b'1', |draft| draft.number(b"112=", number));
    }

    /// Something was missing after all: what was asked is asked again when it is there.
    pub(super) fn disturb(&mut self) {
        if let Some(initiator) = &mut self.initiator
            && matches!(initiator.touch, Touch::Asked(_))
        {
            initiator.touch = Touch::Wanted;
        }
    }

    pub(super) fn handle_heartbeat_of_venue(&mut self, message: &Message) {
        let told = message.get(tag::TEST_REQ_ID).and_then(|id| parse_u64(id).ok());
        if let (Some(initiator), Some(told)) = (&mut self.initiator, told)
            && initiator.touch == Touch::Asked(told)
        {
            initiator.touch = Touch::Full;
            initiator.touches += 1;
            self.begin_prices();
        }
    }
}

/// By which a message waits for its report to be stored.
pub(super) fn flight_id(token: u32) -> IntId {
    IntId::numbered(b'r', token as u64)
}

/// A venue's words as a line of a log.
pub(super) fn readable(text: &[u8]) -> String {
    echo(text).iter().map(|&byte| if (32..127).contains(&byte) { byte as char } else { '?' }).collect()
}

fn idle_desk(port: PortId) -> Desk {
    let settings = DeskSettings {
        port,
        shards: 1,
        orders_max: 1,
        ids_max: 1,
        finished_max: 1,
        prefix: b'v',
        seed: 0,
        pages: LargePages::NONE,
    };
    Desk::new(settings, IdBlock { next: 1, end: 2 })
}
