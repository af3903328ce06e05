//! Orders at a venue in its session: instructions of the shards, and the venue's answers.

use pitlane_engine::command::{ExecRef, VenueReport, VenueState};
use pitlane_engine::event::VenueRequest;
use pitlane_engine::id::{AdapterId, SecurityId};
use pitlane_engine::number::{Price, Qty};
use pitlane_engine::reason::Reason;
use pitlane_engine::refdata::sample;
use pitlane_engine::terms::{OrderKind, Terms};

use super::venue::Venue;
use super::*;
use crate::fix::session::stream::OUTPUT_BYTES_HIGH;
use crate::fix::venue::id::{fold_128, venue_id};
use crate::fix::venue::profile::VenueProfile;
use crate::venue::VenueReports;

const SHARD: ShardId = ShardId(0);

fn order(slot: u32) -> OrderHandle {
    OrderHandle::new(SHARD, 1, slot)
}

/// Id of an order, and of its `n`th request, before the venue's id is made of it.
fn order_id(slot: u32) -> IntId {
    IntId::numbered(b'o', slot.into())
}

fn request_id(slot: u32, n: u64) -> IntId {
    IntId::numbered(b'r', u64::from(slot) * 10 + n)
}

/// Returns ClOrdID of an order, and of its first request.
fn names(slot: u32) -> (IntId, IntId) {
    (venue_id(1, order(slot), &order_id(slot)), venue_id(1, order(slot), &request_id(slot, 1)))
}

fn qty(whole: i64) -> Qty {
    Qty::whole(whole).unwrap()
}

fn terms() -> Terms {
    Terms {
        security: SecurityId(1),
        qty: qty(100),
        kind: OrderKind::Limit,
        limit: sample::price("10"),
        ..Terms::default()
    }
}

impl Venue {
    /// Gives the session an instruction. Returns what it writes.
    fn instruct(&mut self, request: VenueRequest, slot: u32, request_id: IntId) -> Vec<String> {
        self.instruct_with(request, slot, request_id, None);
        self.peer.output()
    }

    fn instruct_with(
        &mut self,
        request: VenueRequest,
        slot: u32,
        request_id: IntId,
        special: Option<&SpecialTerms>,
    ) {
        let (adapter, id) = (AdapterId(1), order_id(slot));
        let instruction =
            Instruction { adapter, order: order(slot), request, id, request_id, terms: terms() };
        // Numbers of events rise, as those of messages; the first order has event 7.
        let seq = self.peer.session.sequence_numbers().next_sender_msg_seq_num + 4;
        let session: &mut dyn VenueReports = &mut self.peer.session;
        session.handle_instruction(self.peer.now, SHARD, seq, &instruction, special);
    }

    /// Returns the reports without their tokens, each with the slot of its order.
    fn told(&mut self) -> Vec<(u32, VenueReport)> {
        self.reports().iter().map(|inbound| (inbound.order.slot(), inbound.report)).collect()
    }

    /// Sends a message of the venue, with `ORDER` and `REQUEST` for the ids of the first order.
    /// Returns the reports.
    fn tells(&mut self, kind: &str, rest: &str) -> Vec<VenueReport> {
        let (order, request) = names(1);
        self.give(kind, &rest.replace("ORDER", &order.to_string()).replace("REQUEST", &request.to_string()));
        self.told()
            .into_iter()
            .map(|(slot, report)| {
                assert_eq!(slot, 1, "{rest}");
                report
            })
            .collect()
    }

    /// Returns a session with an order at the venue, and this request about it.
    fn with_order(supports_status: bool, request: Option<VenueRequest>) -> Venue {
        let mut venue = Venue::synchronized(|wanted| wanted.venue.supports_status_request = supports_status);
        assert_eq!(venue.instruct(VenueRequest::New, 1, IntId::NONE).len(), 1);
        if let Some(request) = request {
            assert_eq!(venue.instruct(request, 1, request_id(1, 1)).len(), 1);
        }
        venue
    }

    /// Returns a session that has lost messages about its order, and asks the venue if it can.
    fn in_doubt(supports_status: bool) -> Venue {
        let mut venue = Venue::with_order(supports_status, None);
        venue.lose_messages();
        let asked = venue.instruct(VenueRequest::Query, 1, IntId::NONE);
        assert_eq!(asked.len(), usize::from(supports_status));
        assert_eq!(venue.told(), [(1, VenueReport::Unsure)]);
        venue
    }

    /// The venue skips some of its numbers, and the session is synchronized again.
    fn lose_messages(&mut self) {
        let written = self.answer("4", &format!("123=N|36={}|", self.next + 5));
        self.next += 4;
        let id = written[0].split("|112=").nth(1).unwrap();
        _ = self.answer("0", &format!("112={id}|"));
        assert!(self.peer.session.is_synchronized());
    }

    /// Returns a new session with the store of this one, synchronized, as after a restart.
    fn restarted(&mut self, supports_status: bool) -> Venue {
        // The shards have stored every report.
        (1..=u32::from(u8::MAX)).for_each(|token| self.peer.session.handle_stored(token));
        assert_eq!(self.told(), []);
        let mut venue =
            Venue::new(&self.store, |wanted| wanted.venue.supports_status_request = supports_status);
        venue.next = self.next;
        venue.connect();
        venue.synchronize();
        venue
    }

    /// Asks what is known of the first order. Returns whether it is known.
    fn is_known(&mut self) -> bool {
        _ = self.instruct(VenueRequest::Query, 1, IntId::NONE);
        let told = self.told();
        assert!(told == [(1, VenueReport::Reconciled)] || told == [(1, VenueReport::Unsure)], "{told:?}");
        told[0].1 == VenueReport::Reconciled
    }
}

#[test]
fn an_order_leaves_when_the_session_is_synchronized() {
    let mut venue = Venue::new(&SharedStore::new(NOW), |_| {});
    let unavailable = VenueReport::Rejected(Reason::VenueUnavailable);
    for refused in 1..=2 {
        venue.instruct(VenueRequest::New, 1, IntId::NONE);
        assert_eq!(venue.told(), [(1, unavailable)]);
        assert_eq!(venue.peer.session.venue_counts().refused, refused);
    }
    for request in [VenueRequest::Cancel, VenueRequest::Replace] {
        assert!(venue.instruct(request, 1, request_id(1, 1)).is_empty());
        assert_eq!(venue.told(), [], "the shard asks again");
    }
    venue.connect();
    venue.synchronize();
    let (name, request) = names(1);
    let about = "55=ACME|207=XTST|54=1|38=100";
    let whole = "55=ACME|207=XTST|54=1|38=100|40=2|44=10|59=0";
    assert_eq!(
        venue.instruct(VenueRequest::New, 1, IntId::NONE),
        [format!("35=D|34=3|11={name}|21=1|{whole}")]
    );
    assert_eq!(
        venue.instruct(VenueRequest::Cancel, 1, request_id(1, 1)),
        [format!("35=F|34=4|11={request}|41={name}|{about}")]
    );
    let other = venue_id(1, order(1), &request_id(1, 2));
    assert_eq!(
        venue.instruct(VenueRequest::Replace, 1, request_id(1, 2)),
        [format!("35=G|34=5|11={other}|41={name}|21=1|{whole}")]
    );
    venue.instruct(VenueRequest::New, 2, IntId::NONE);
    assert_eq!((venue.told(), venue.peer.session.venue_counts().orders_out), (vec![], 2));
}

#[test]
fn a_request_that_waits_for_its_answer_is_not_sent_again() {
    let mut venue = Venue::with_order(false, None);
    let mut sent = |request, id| venue.instruct(request, 1, id).len();
    assert_eq!(sent(VenueRequest::Cancel, request_id(1, 1)), 1);
    assert_eq!(sent(VenueRequest::Cancel, request_id(1, 1)), 0);
    assert_eq!(sent(VenueRequest::Replace, request_id(1, 2)), 1);
    assert_eq!(sent(VenueRequest::Replace, request_id(1, 3)), 1, "it has an id of its own");
    // A cancel of what is left has none: one at a time is enough.
    assert_eq!(sent(VenueRequest::Cancel, IntId::NONE), 0, "one is pending");
    assert_eq!(venue.tells("9", "11=REQUEST|434=1|39=0|102=2|").len(), 1);
    assert_eq!(venue.instruct(VenueRequest::Cancel, 1, IntId::NONE).len(), 1);
    assert_eq!(venue.instruct(VenueRequest::Cancel, 1, IntId::NONE).len(), 0);
}

#[test]
fn an_instruction_that_the_venue_does_not_take_is_answered_at_once() {
    let mut venue = Venue::synchronized(|wanted| {
        wanted.venue.profile = VenueProfile::new(&[], &[], &[], &[110]);
    });
    let special = SpecialTerms { min_qty: Some(qty(1)), ..SpecialTerms::default() };
    for (request, report) in [
        (VenueRequest::New, VenueReport::Rejected(Reason::MinQtyNotTaken)),
        (VenueRequest::Replace, VenueReport::ReplaceRefused(Reason::MinQtyNotTaken)),
    ] {
        venue.instruct_with(request, 1, request_id(1, 1), Some(&special));
        assert_eq!((venue.told(), venue.peer.output().len()), (vec![(1, report)], 0));
    }
    // The venue does not read.
    venue.peer.session.layer.stream.append(&vec![b' '; OUTPUT_BYTES_HIGH]);
    venue.instruct_with(VenueRequest::New, 1, IntId::NONE, None);
    assert_eq!(venue.told(), [(1, VenueReport::Rejected(Reason::LaneFull))]);
}

#[test]
fn the_answers_of_a_venue_are_reports_for_the_shard() {
    use VenueRequest::{Cancel, Replace};
    let exec = ExecRef(fold_128(b"e1"));
    let fill = VenueReport::FilledTo { exec, qty: qty(40), price: sample::price("10"), cum: qty(40) };
    let expired = VenueReport::Expired(Reason::ExpiredDay);
    let rejected = VenueReport::Rejected(Reason::VenueRejected);
    for (request, fields, expected) in [
        (None, "11=ORDER|39=A|150=A|", vec![]),
        (None, "11=ORDER|39=0|150=0|", vec![VenueReport::Accepted]),
        (None, "11=ORDER|39=1|150=F|17=e1|32=40|31=10|14=40|", vec![fill]),
        (None, "11=ORDER|39=4|150=4|", vec![VenueReport::Canceled(Reason::VenueCancelled)]),
        (Some(Cancel), "11=REQUEST|39=4|150=4|", vec![VenueReport::Canceled(Reason::Requested)]),
        (Some(Replace), "11=REQUEST|39=4|150=4|", vec![VenueReport::Canceled(Reason::VenueCancelled)]),
        (Some(Replace), "11=REQUEST|39=0|150=5|", vec![VenueReport::Replaced]),
        // Only a status.
        (None, "11=ORDER|39=0|150=I|", vec![VenueReport::Accepted]),
        (Some(Replace), "11=ORDER|39=0|150=I|", vec![VenueReport::Accepted]),
        (Some(Replace), "11=REQUEST|39=0|150=I|", vec![VenueReport::Replaced]),
        (Some(Replace), "11=REQUEST|39=6|150=I|", vec![VenueReport::Accepted]),
        (Some(Cancel), "11=REQUEST|39=0|150=I|", vec![VenueReport::Accepted]),
        (None, "11=ORDER|39=2|150=I|", vec![VenueReport::Accepted]),
        (None, "11=ORDER|39=E|150=I|", vec![VenueReport::Accepted]),
        (None, "11=ORDER|39=A|150=I|", vec![]),
        (Some(Cancel), "11=REQUEST|39=4|150=I|", vec![VenueReport::Canceled(Reason::Requested)]),
        (None, "11=ORDER|39=C|150=I|", vec![expired]),
        (None, "11=ORDER|39=3|150=I|", vec![expired]),
        (None, "11=ORDER|39=8|150=I|58=no|", vec![rejected]),
        (None, "11=ORDER|39=8|150=8|58=no|", vec![rejected]),
        (None, "11=ORDER|39=8|150=8|103=5|790=q|58=no|", vec![rejected]),
    ] {
        let mut venue = Venue::with_order(false, request);
        assert_eq!(venue.tells("8", fields), expected, "{fields}");
        let text = fields.contains("58=").then_some("no");
        assert_eq!(venue.peer.session.take_reject_text().as_deref(), text, "{fields}");
        let counts = venue.peer.session.venue_counts();
        assert_eq!((counts.unknown_values, counts.unknown_orders, counts.incomplete), (0, 0, 0), "{fields}");
        assert_eq!(counts.executions, 1);
        assert!(venue.peer.session.round_trip_ns().is_some());
    }
}

#[test]
fn answers_that_say_nothing_are_counted() {
    let mut venue = Venue::with_order(false, None);
    for round in 1..=2 {
        assert_eq!(venue.tells("8", "11=strange|39=0|150=0|"), []);
        assert_eq!(venue.tells("9", "11=strange|39=0|434=1|"), []);
        assert_eq!(venue.tells("9", "11=ORDER|39=0|434=1|"), [], "there is no such request");
        assert_eq!(venue.tells("3", "45=99|"), []);
        assert_eq!(venue.tells("8", "11=ORDER|39=9|150=I|"), []);
        assert_eq!(venue.tells("8", "11=ORDER|39=0|150=?|"), []);
        assert_eq!(venue.tells("8", "11=ORDER|39=1|150=F|17=e1|"), []);
        let counts = venue.peer.session.venue_counts();
        assert_eq!(
            (counts.unknown_orders, counts.unknown_values, counts.incomplete),
            (4 * round, 2 * round, round)
        );
    }
}

#[test]
fn a_request_is_pending_until_it_has_its_answer() {
    use VenueRequest::{Cancel, Replace};
    let refused = |request| match request {
        Replace => VenueReport::ReplaceRefused(Reason::RequestPending),
        _ => VenueReport::CancelRefused(Reason::RequestPending),
    };
    let reject = "11=REQUEST|39=0|102=3|58=late|";
    for request in [Cancel, Replace] {
        for (fields, is_answer) in [
            ("11=REQUEST|39=E|150=E|", false),
            ("11=REQUEST|39=1|150=F|17=e1|32=40|31=10|", false),
            ("11=ORDER|39=0|150=0|", false),
            ("11=REQUEST|39=0|150=0|", true),
            ("11=REQUEST|39=0|150=5|", true),
            ("11=ORDER|39=4|150=4|", true),
        ] {
            let mut venue = Venue::with_order(false, Some(request));
            venue.tells("8", fields);
            let expected = if is_answer { vec![] } else { vec![refused(request)] };
            assert_eq!(venue.tells("9", reject), expected, "{fields}");
            assert_eq!(venue.peer.session.venue_counts().unknown_orders, u64::from(is_answer));
            let text = (!is_answer).then_some("late");
            assert_eq!(venue.peer.session.take_reject_text().as_deref(), text);
        }
    }
    // What the venue says about the request does not matter, but it is counted.
    for (to, unknown) in [("1", 0), ("2", 1), ("3", 0)] {
        let mut venue = Venue::with_order(false, Some(Cancel));
        assert_eq!(venue.tells("9", &format!("434={to}|{reject}")), [refused(Cancel)]);
        assert_eq!(venue.peer.session.venue_counts().unknown_values, unknown, "{to}");
    }
}

#[test]
fn the_end_of_an_order_ends_its_own_requests() {
    let mut venue = Venue::with_order(false, Some(VenueRequest::Cancel));
    venue.instruct(VenueRequest::New, 2, IntId::NONE);
    let (second, _) = names(2);
    venue.give("8", &format!("11={second}|39=4|150=4|"));
    assert_eq!(venue.told(), [(2, VenueReport::Canceled(Reason::VenueCancelled))], "nothing asked for it");
    assert!(venue.is_known());
    let refused = VenueReport::CancelRefused(Reason::VenueRejected);
    assert_eq!(venue.tells("9", "11=REQUEST|39=0|"), [refused]);
}

#[test]
fn a_message_that_the_venue_refuses_is_answered_to_the_shard() {
    use VenueRequest::{Cancel, Replace};
    let reason = Reason::VenueRejected;
    for (request, report) in
        [(Cancel, VenueReport::CancelRefused(reason)), (Replace, VenueReport::ReplaceRefused(reason))]
    {
        for kind in ["3", "j"] {
            let mut venue = Venue::with_order(false, Some(request));
            assert_eq!(venue.tells(kind, "45=4|58=no|"), [report]);
            assert_eq!(venue.peer.session.take_reject_text().as_deref(), Some("no"));
            assert_eq!(venue.tells(kind, "45=4|"), [], "it is answered");
            assert!(venue.is_known());
            assert_eq!(venue.tells(kind, "45=3|"), [VenueReport::Rejected(reason)]);
            assert!(!venue.is_known());
            assert_eq!(venue.peer.session.venue_counts().unknown_orders, 0);
        }
    }
}

#[test]
fn an_order_that_is_open_again_is_known_again() {
    let corrected = "11=ORDER|150=G|19=e1|17=e2|32=30|31=10|";
    for (status, is_known) in [("39=1|", true), ("39=2|", false)] {
        let mut venue = Venue::with_order(false, None);
        assert_eq!(venue.tells("8", "11=ORDER|39=2|150=F|17=e1|32=100|31=10|").len(), 1);
        assert_eq!(venue.tells("8", &format!("{status}{corrected}")).len(), 1);
        assert_eq!(venue.is_known(), is_known, "{status}");
    }
    let mut venue = Venue::in_doubt(true);
    assert_eq!(venue.tells("8", &format!("39=1|{corrected}")).len(), 1);
    assert!(!venue.is_known(), "messages about it were lost");
}

#[test]
fn the_venue_settles_what_is_not_known_of_an_order() {
    let standing = |cum, average, state| VenueReport::Standing {
        cum: qty(cum),
        average: Price::parse(average).unwrap(),
        state,
    };
    let open = standing(40, b"10.5", VenueState::Open);
    let lost = standing(0, b"0", VenueState::Rejected(Reason::UnknownOrder));
    let fill =
        VenueReport::Filled { exec: ExecRef(fold_128(b"e1")), qty: qty(40), price: sample::price("10") };
    let through = |cum| VenueReport::FilledTo {
        exec: ExecRef(fold_128(b"e1")),
        qty: qty(40),
        price: sample::price("10"),
        cum: qty(cum),
    };
    for (supports, fields, expected, is_known) in [
        (true, "39=1|150=I|14=40|6=10.5|", vec![open], true),
        (true, "39=1|150=0|790=q|14=40|6=10.5|", vec![open], true),
        (true, "39=2|150=I|14=100|6=10|", vec![standing(100, b"10", VenueState::Filled)], false),
        // Without the total the order stays in doubt.
        (true, "39=1|150=I|", vec![], false),
        // It is no answer to our question.
        (true, "39=0|150=0|14=0|", vec![VenueReport::Accepted], false),
        (true, "39=8|150=8|103=5|790=q|", vec![lost], false),
        (false, "39=0|150=0|14=0|", vec![standing(0, b"0", VenueState::Open)], true),
        (false, "39=0|150=0|", vec![VenueReport::Accepted], false),
        (false, "39=A|150=A|14=0|", vec![], false),
        (false, "39=8|150=8|", vec![standing(0, b"0", VenueState::Rejected(Reason::VenueRejected))], false),
        // A fill is applied, and then the state.
        (false, "39=1|150=F|17=e1|32=40|31=10|14=40|6=10.5|", vec![through(40), open], true),
        (false, "39=1|150=F|17=e1|32=40|31=10|", vec![fill], false),
    ] {
        let mut venue = Venue::in_doubt(supports);
        assert_eq!(venue.tells("8", &format!("11=ORDER|{fields}")), expected, "{supports} {fields}");
        assert_eq!(venue.is_known(), is_known, "{supports} {fields}");
    }
}

#[test]
fn a_late_answer_about_an_unknown_order_ends_no_order() {
    let unknown = "11=ORDER|39=8|150=8|103=5|790=q|58=what|";
    let mut venue = Venue::with_order(true, None);
    assert_eq!(venue.tells("8", unknown), [VenueReport::Unsure]);
    assert_eq!(venue.peer.session.take_reject_text().as_deref(), Some("what"));
    for fields in ["11=ORDER|39=8|150=8|103=5|", "11=ORDER|39=8|150=8|103=3|790=q|"] {
        let mut venue = Venue::with_order(true, None);
        assert_eq!(venue.tells("8", fields), [VenueReport::Rejected(Reason::VenueRejected)], "{fields}");
    }
    let mut venue = Venue::with_order(true, None);
    assert_eq!(venue.tells("8", "11=ORDER|39=0|150=I|14=0|"), [VenueReport::Accepted], "nothing is in doubt");
}

#[test]
fn the_status_of_an_order_is_asked_for_if_the_venue_answers_that() {
    let (name, _) = names(1);
    for supports in [true, false] {
        let mut venue = Venue::with_order(supports, None);
        let asked = format!("35=H|34=4|790={name}|11={name}|55=ACME|207=XTST|54=1");
        let expected = if supports { vec![asked] } else { vec![] };
        assert_eq!(venue.instruct(VenueRequest::Status, 1, IntId::NONE), expected);
        assert_eq!(venue.told(), []);
        assert!(!venue.is_known());
    }
}

#[test]
fn a_restart_knows_what_was_sent() {
    let mut venue = Venue::with_order(true, None);
    venue.instruct(VenueRequest::Cancel, 1, request_id(1, 1));
    venue.instruct(VenueRequest::Replace, 1, request_id(1, 2));
    let next = venue.next;
    let mut venue = Venue::new(&venue.store, |wanted| {
        wanted.venue.supports_status_request = true;
        wanted.never_sent = BTreeSet::from([order(1), order(2)]);
    });
    venue.next = next;
    venue.peer.session.reject_never_sent();
    assert_eq!(venue.told(), [(2, VenueReport::Rejected(Reason::VenueUnavailable))]);
    assert!(venue.connect()[0].starts_with("35=A|34=6|"));
    venue.synchronize();
    assert!(venue.is_known());
    assert_eq!(venue.tells("9", "11=REQUEST|39=0|").len(), 1);
    let second = venue_id(1, order(1), &request_id(1, 2));
    let refused = VenueReport::ReplaceRefused(Reason::VenueRejected);
    assert_eq!(venue.tells("9", &format!("11={second}|39=0|")), [refused]);
}

/// Returns ClOrdID of a Cancel Request that a session has written.
fn cancel_id(written: &[String]) -> String {
    let [message] = written else { panic!("one message, not {written:?}") };
    assert!(message.starts_with("35=F|"), "{message}");
    message.split("|11=").nth(1).and_then(|rest| rest.split('|').next()).unwrap().to_string()
}

#[test]
fn a_cancel_that_was_answered_before_a_restart_holds_back_no_other() {
    let mut venue = Venue::with_order(false, Some(VenueRequest::Cancel));
    assert_eq!(venue.tells("9", "11=REQUEST|39=0|102=2|").len(), 1);
    let mut venue = venue.restarted(false);
    assert!(venue.is_known());
    assert_eq!(venue.instruct(VenueRequest::Cancel, 1, IntId::NONE).len(), 1);
    assert_eq!(venue.instruct(VenueRequest::Cancel, 1, IntId::NONE).len(), 0, "one is pending");
    // An order that the venue ends by itself was not cancelled on request.
    let mut venue = venue.restarted(false);
    let reason = Reason::VenueCancelled;
    assert_eq!(venue.tells("8", "11=ORDER|39=4|150=4|"), [VenueReport::Canceled(reason)]);
}

#[test]
fn a_cancel_from_before_a_restart_is_known_by_its_answer_or_when_it_is_asked_for_again() {
    let requested = [VenueReport::Canceled(Reason::Requested)];
    for (asks_again, ended) in [(false, "11=REQUEST|41=ORDER|39=4|150=4|"), (true, "11=ORDER|39=4|150=4|")] {
        let mut venue = Venue::with_order(false, Some(VenueRequest::Cancel)).restarted(false);
        if asks_again {
            assert!(venue.instruct(VenueRequest::Cancel, 1, request_id(1, 1)).is_empty());
            assert!(venue.instruct(VenueRequest::Cancel, 1, IntId::NONE).is_empty(), "it is pending");
        }
        assert_eq!(venue.tells("8", ended), requested);
    }
}

#[test]
fn a_second_cancel_after_a_restart_leaves_the_request_of_the_shard_pending() {
    let refused = VenueReport::CancelRefused(Reason::VenueRejected);
    let twice = || {
        let mut venue = Venue::with_order(false, None);
        let first = cancel_id(&venue.instruct(VenueRequest::Cancel, 1, IntId::NONE));
        let mut venue = venue.restarted(false);
        let second = cancel_id(&venue.instruct(VenueRequest::Cancel, 1, IntId::NONE));
        assert_ne!(first, second);
        (venue, first, second)
    };
    // The venue says that the first is pending: its answer is the answer to both.
    let done = ("8", "39=4|150=4|", VenueReport::Canceled(Reason::Requested));
    for (kind, fields, expected) in [done, ("9", "39=0|102=2|", refused)] {
        let (mut venue, first, second) = twice();
        assert_eq!(venue.tells("9", &format!("11={second}|39=0|102=3|")), []);
        assert!(venue.instruct(VenueRequest::Cancel, 1, IntId::NONE).is_empty(), "one is pending");
        assert_eq!(venue.tells(kind, &format!("11={first}|41=ORDER|{fields}")), [expected]);
    }
    // After the next synchronization it is asked for again, because the venue may have been wrong.
    let (mut venue, _, second) = twice();
    assert_eq!(venue.tells("9", &format!("11={second}|39=0|102=3|")), []);
    venue.disconnect();
    venue.connect();
    venue.synchronize();
    assert_eq!(venue.instruct(VenueRequest::Cancel, 1, IntId::NONE).len(), 1);
    // The venue answers the first: the answer to the second counts.
    for kind in ["9", "3"] {
        let (mut venue, first, second) = twice();
        let answer = if kind == "9" { format!("11={first}|39=0|102=2|") } else { "45=4|".to_string() };
        assert_eq!(venue.tells(kind, &answer), [], "{kind}");
        assert_eq!(venue.tells("9", &format!("11={second}|39=0|102=2|")), [refused], "{kind}");
    }
    // Any other refusal of the second is one.
    let (mut venue, _, second) = twice();
    assert_eq!(venue.tells("9", &format!("11={second}|39=0|102=2|")), [refused]);
    let mut venue = Venue::with_order(false, Some(VenueRequest::Cancel));
    let alone = VenueReport::CancelRefused(Reason::RequestPending);
    assert_eq!(venue.tells("9", "11=REQUEST|39=0|102=3|"), [alone], "no other is known");
}

#[test]
fn a_cancel_whose_answer_may_be_lost_is_sent_again() {
    for restarts in [false, true] {
        let mut venue = Venue::with_order(true, Some(VenueRequest::Cancel));
        venue.lose_messages();
        if restarts {
            venue = venue.restarted(true);
        }
        let (_, request) = names(1);
        let written = venue.instruct(VenueRequest::Cancel, 1, request_id(1, 1));
        assert_eq!(cancel_id(&written), request.to_string(), "{restarts}");
        assert!(venue.instruct(VenueRequest::Cancel, 1, request_id(1, 1)).is_empty());
        assert_eq!(venue.tells("9", "11=REQUEST|39=0|").len(), 1);
    }
    let mut venue = Venue::with_order(true, None);
    assert_eq!(venue.instruct(VenueRequest::Cancel, 1, IntId::NONE).len(), 1);
    venue.lose_messages();
    assert_eq!(venue.instruct(VenueRequest::Cancel, 1, IntId::NONE).len(), 1);
    // A modification is not: the venue would refuse it if it has done it.
    let mut venue = Venue::with_order(true, Some(VenueRequest::Replace));
    venue.lose_messages();
    assert!(venue.instruct(VenueRequest::Replace, 1, request_id(1, 1)).is_empty());
}

#[test]
fn a_loss_of_messages_is_known_after_a_restart() {
    let mut venue = Venue::with_order(true, None);
    // The connection and the process end before a shard has asked for the order.
    _ = venue.answer("4", &format!("123=N|36={}|", venue.next + 5));
    venue.next += 4;
    for _ in 0..2 {
        venue = venue.restarted(true);
        let (name, _) = names(1);
        let asked = venue.instruct(VenueRequest::Query, 1, IntId::NONE);
        assert!(asked.len() == 1 && asked[0].contains(&format!("|11={name}|")), "{asked:?}");
        assert!(asked[0].starts_with("35=H|"), "{asked:?}");
        assert_eq!(venue.told(), [(1, VenueReport::Unsure)]);
    }
    // What is sent later is known, and a reset ends the loss.
    assert_eq!(venue.instruct(VenueRequest::New, 2, IntId::NONE).len(), 1);
    let mut venue = venue.restarted(true);
    _ = venue.instruct(VenueRequest::Query, 2, IntId::NONE);
    assert_eq!(venue.told(), [(2, VenueReport::Reconciled)]);
    venue.peer.session.reset(venue.peer.now);
    _ = venue.peer.output();
    venue.next = 1;
    let mut venue = venue.restarted(true);
    assert_eq!(venue.instruct(VenueRequest::New, 1, IntId::NONE).len(), 1);
    assert!(venue.restarted(true).is_known());
}

#[test]
fn the_number_of_a_message_is_saved_once_its_report_is_stored() {
    let mut venue = Venue::with_order(false, None);
    let saved = |venue: &mut Venue| {
        _ = venue.peer.output();
        venue.store.sequence_numbers().next_target_msg_seq_num
    };
    let before = saved(&mut venue);
    assert_eq!(before, venue.next);
    let (name, _) = names(1);
    venue.give("8", &format!("11={name}|39=0|150=0|"));
    venue.give("8", &format!("11={name}|39=1|150=F|17=e1|32=40|31=10|"));
    let tokens: Vec<u32> = venue.reports().iter().map(|report| report.token).collect();
    assert!(tokens.len() == 2 && tokens[0] != tokens[1] && !tokens.contains(&0), "{tokens:?}");
    assert_eq!(saved(&mut venue), before);
    VenueReports::handle_stored(&mut venue.peer.session, tokens[1]);
    assert_eq!(saved(&mut venue), before, "the first is not stored");
    VenueReports::handle_stored(&mut venue.peer.session, tokens[0]);
    assert_eq!(saved(&mut venue), before + 2);
    assert_eq!(venue.store.last_reported_event(SHARD), 7, "the order has the number of its event");
}
