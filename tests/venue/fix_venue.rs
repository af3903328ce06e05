//! A controllable FIX venue with a session of its own: it resends on request what it sent while the
//! peer was not connected.

use std::collections::BTreeMap;

use pitlane_engine::event::OrderReport;
use pitlane_engine::terms::Side;
use pitlane_protocols::fix::venue::InitiatorSettings;
use pitlane_tests::fix::seconds;
use pitlane_tests::venue::{VenueHarness, frame_of, settings};

use super::conformance::{VenueAction, VenueRig};

pub(crate) struct FixVenue {
    harness: VenueHarness,
    /// The venue's next sequence number.
    number: u64,
    /// Messages sent, by sequence number.
    report: BTreeMap<u64, String>,
    /// Orders by their first id: ClOrdID of the order and of the pending request, and whether that
    /// is a cancel.
    orders: BTreeMap<String, HeldOrder>,
    execs: u32,
    last: String,
}

#[derive(Clone, Default)]
struct HeldOrder {
    cl_ord_id: String,
    pending: Option<(String, bool)>,
    qty: u32,
    filled: u32,
}

impl FixVenue {
    pub(crate) fn new() -> FixVenue {
        let mut venue = FixVenue {
            harness: VenueHarness::new(
                settings(),
                InitiatorSettings { supports_status_request: true, ..InitiatorSettings::new(1) },
            ),
            number: 1,
            report: BTreeMap::new(),
            orders: BTreeMap::new(),
            execs: 0,
            last: String::new(),
        };
        venue.connect(false);
        assert!(venue.harness.session.take_message_loss(), "a new session begins with a reset");
        venue
    }

    fn connect(&mut self, resets: bool) {
        assert!(self.harness.connect(), "it calls");
        let sent = self.harness.sent();
        assert!(sent[0].contains("|35=A|"), "{sent:?}");
        if resets {
            (self.number, self.report) = (1, BTreeMap::new());
        }
        self.send_report(if resets { "35=A|98=0|108=30|141=Y" } else { "35=A|98=0|108=30" });
        self.answer();
        assert!(self.harness.session.is_synchronized(), "both have all");
    }

    /// Answers the requests that the session sends to any peer.
    fn answer(&mut self) {
        loop {
            let sent = self.harness.sent();
            if sent.is_empty() {
                return;
            }
            for message in sent {
                match field(&message, "35=").as_str() {
                    "1" => self.send_report(&format!("35=0|112={}", field(&message, "112="))),
                    "H" => self.tell_status(&field(&message, "11=")),
                    "2" => self.resend(field(&message, "7=").parse().expect("a number")),
                    other => panic!("not expected: {other} {message}"),
                }
            }
        }
    }

    fn resend(&mut self, from: u64) {
        for number in from..self.number {
            let again = match self.report.get(&number) {
                Some(text) if !text.starts_with("35=A") && !text.starts_with("35=0") => {
                    let (kind, rest) = text.split_once('|').expect("fields");
                    format!("{kind}|43=Y|122=20261116-08:00:00|{rest}")
                }
                _ => format!("35=4|43=Y|122=20261116-08:00:00|123=Y|36={}", number + 1),
            };
            self.harness.bytes(&frame_of(&again, number, self.harness.now));
        }
    }

    /// Sends a message; without a connection it is only stored.
    fn send_report(&mut self, text: &str) {
        let number = self.number;
        self.number += 1;
        self.report.insert(number, text.to_string());
        if self.harness.is_connected() {
            self.harness.bytes(&frame_of(text, number, self.harness.now));
        }
    }

    fn execution(&mut self, id: &str, fields: &str) -> String {
        self.execs += 1;
        format!("35=8|37=v|17=e{}|11={id}|{fields}", self.execs)
    }

    fn tell_status(&mut self, id: &str) {
        let held = self.orders.values().find(|held| held.cl_ord_id == id).expect("a known order").clone();
        let status = if held.filled == 0 { 0 } else { 1 };
        let text = self.execution(id, &format!("790={id}|150=I|39={status}|14={}|6=100", held.filled));
        self.send_report(&text);
    }

    fn bust(&mut self, order: &str) {
        let last = self.last.clone();
        let held = self.orders.get_mut(order).expect("a known order");
        held.filled -= field(&last, "32=").parse::<u32>().expect("a number");
        let (id, filled) = (held.cl_ord_id.clone(), held.filled);
        let exec = field(&last, "17=");
        let text = self.execution(&id, &format!("19={exec}|150=H|39=1|14={filled}|6=100"));
        self.send_report(&text);
    }

    fn grant(&mut self, order: &str) {
        let mut held = self.orders[order].clone();
        let Some((id, is_cancel)) = held.pending.take() else { panic!("nothing is pending") };
        let kind = if is_cancel { "150=4|39=4" } else { "150=5|39=0" };
        let text = self.execution(&id, &format!("41={}|{kind}", held.cl_ord_id));
        held.cl_ord_id = id;
        self.orders.insert(order.to_string(), held);
        self.send_report(&text);
    }

    fn refuse(&mut self, order: &str) {
        let held = self.orders.get_mut(order).expect("a known order");
        let (id, is_cancel) = held.pending.take().expect("something is pending");
        let (orig, to) = (held.cl_ord_id.clone(), if is_cancel { 1 } else { 2 });
        self.send_report(&format!("35=9|37=v|11={id}|41={orig}|39=0|434={to}|102=2"));
    }

    fn fill(&mut self, order: &str, qty: u32) {
        let held = self.orders.get_mut(order).expect("a known order");
        held.filled += qty;
        let (status, filled) = (if held.filled >= held.qty { 2 } else { 1 }, held.filled);
        let id = held.cl_ord_id.clone();
        let text = self.execution(&id, &format!("150=F|39={status}|32={qty}|31=100|14={filled}|6=100"));
        self.last = text.clone();
        self.send_report(&text);
    }

    /// Records the request that was just sent.
    fn asked(&mut self, order: &str, kind: &str, is_cancel: bool, qty: Option<u32>) {
        let sent = self.harness.sent();
        let [message] = &sent[..] else { panic!("one message, not {sent:?}") };
        assert_eq!(field(message, "35="), kind, "{message}");
        let held = self.orders.get_mut(order).expect("a known order");
        assert_eq!(field(message, "41="), held.cl_ord_id, "{message}");
        held.pending = Some((field(message, "11="), is_cancel));
        held.qty = qty.unwrap_or(held.qty);
    }
}

impl VenueRig for FixVenue {
    fn submit(&mut self, id: &str, qty: u32) {
        self.harness.submit(id, Side::Buy, &qty.to_string(), "100");
        if let [message] = &self.harness.sent()[..] {
            let held = HeldOrder { cl_ord_id: field(message, "11="), qty, ..HeldOrder::default() };
            self.orders.insert(id.to_string(), held);
        }
    }

    fn cancel(&mut self, id: &str, order: &str) {
        self.harness.cancel(id, order);
        self.asked(order, "F", true, None);
    }

    fn replace(&mut self, id: &str, order: &str, qty: u32) {
        self.harness.replace(id, order, &qty.to_string());
        self.asked(order, "G", false, Some(qty));
    }

    fn act(&mut self, order: &str, act: VenueAction) -> bool {
        let id = self.orders.get(order).map(|held| held.cl_ord_id.clone()).unwrap_or_default();
        match act {
            VenueAction::Accept => {
                let text = self.execution(&id, "150=0|39=0");
                self.send_report(&text);
            }
            VenueAction::Reject => {
                let text = self.execution(&id, "150=8|39=8|58=no");
                self.send_report(&text);
            }
            VenueAction::Fill(qty) => self.fill(order, qty),
            VenueAction::FillAgain => {
                let last = self.last.clone();
                self.send_report(&last);
            }
            VenueAction::Grant => self.grant(order),
            VenueAction::Refuse => self.refuse(order),
            VenueAction::Disconnect => self.harness.disconnect(),
            VenueAction::Reconnect => {
                self.harness.wait(seconds(5));
                self.connect(false);
                assert!(!self.harness.session.take_message_loss(), "the numbers continue");
            }
            VenueAction::ReconnectWithReset => {
                self.harness.wait(seconds(5));
                self.connect(true);
                self.answer();
                assert!(self.harness.session.take_message_loss(), "what was sent in between is lost");
            }
            VenueAction::Restart => {
                self.harness.restart();
                self.connect(false);
                assert!(!self.harness.session.take_message_loss(), "the numbers continue");
            }
            VenueAction::Close => {
                self.harness.close("close");
                self.asked(order, "F", true, None);
            }
            VenueAction::Bust => {
                self.bust(order);
                self.answer();
            }
            VenueAction::Babble => {
                for fields in ["150=?|39=0", "150=ZZ|39=0", "150=0|39=0|11=nobody"] {
                    let text = self.execution(&id, fields).replacen(&format!("11={id}|150=0"), "150=0", 1);
                    self.send_report(&text);
                }
                let counts = self.harness.session.venue_counts();
                assert_eq!((counts.unknown_values, counts.unknown_orders), (2, 1));
            }
        }
        true
    }

    fn order(&self, id: &str) -> (OrderReport, usize) {
        let known = self.harness.order(id).expect("a known order");
        (known.last, known.fills)
    }
}

fn field(message: &str, tag: &str) -> String {
    let found = message.split('|').find_map(|field| field.strip_prefix(tag));
    found.unwrap_or_else(|| panic!("{tag} in {message}")).to_string()
}
