//! The connection to a venue: when, its Logon, and the check that nothing is missing.

use pitlane_engine::refdata::{RefData, sample};
use pitlane_engine::time::TimeOfDay;

use super::*;
use crate::fix::venue::VenueLogin;
use crate::fix::venue::profile::{ExtraField, LogonSigner, VenueProfile};

/// A session with a venue.
pub(super) struct Venue {
    pub peer: Peer,
    pub store: SharedStore,
    /// Number of the venue's next message.
    pub next: u64,
}

/// Settings that tests change.
pub(super) struct Wanted {
    pub session: FixSessionSettings,
    pub venue: InitiatorSettings,
    pub never_sent: BTreeSet<OrderHandle>,
}

impl Venue {
    /// Returns a session that is not connected.
    pub(super) fn new(store: &SharedStore, change: impl FnOnce(&mut Wanted)) -> Venue {
        let source = Source { origin: Origin::Server, port: PortId(1), session: 1 };
        let mut wanted = Wanted {
            session: FixSessionSettings::new("PITLANE", "VENUE", source),
            venue: InitiatorSettings::new(1),
            never_sent: BTreeSet::new(),
        };
        wanted.session.reset_on_logon = false;
        change(&mut wanted);
        let Wanted { session, venue, never_sent } = wanted;
        let reference = Arc::new(RefData::check(sample::sound()).unwrap());
        let session = FixSession::initiator(session, venue, Box::new(store.clone()), reference, never_sent);
        let peer = Peer { session, now: NOW, name: "VENUE", begin_string: "FIX.4.4" };
        Venue { peer, store: store.clone(), next: 1 }
    }

    /// Returns a session that is synchronized with its venue.
    pub(super) fn synchronized(change: impl FnOnce(&mut Wanted)) -> Venue {
        let mut venue = Venue::new(&SharedStore::new(NOW), change);
        venue.connect();
        venue.synchronize();
        venue
    }

    pub(super) fn connect(&mut self) -> Vec<String> {
        assert!(self.peer.session.wants_connection(self.peer.now));
        assert!(self.peer.session.connect(self.peer.now));
        self.peer.output()
    }

    /// Answers the Logon and the Test Request.
    pub(super) fn synchronize(&mut self) {
        let reset = if self.next == 1 { "141=Y|" } else { "" };
        let written = self.answer("A", &format!("98=0|108=30|{reset}"));
        let id = written[0].split("|112=").nth(1).expect("a Test Request").to_string();
        _ = self.answer("0", &format!("112={id}|"));
        assert!(self.peer.session.is_synchronized());
    }

    /// Sends a message of the venue. Returns what the session writes; reports wait.
    pub(super) fn answer(&mut self, kind: &str, rest: &str) -> Vec<String> {
        self.give(kind, rest);
        assert_eq!(self.reports(), [], "{kind} {rest}");
        self.peer.output()
    }

    pub(super) fn give(&mut self, kind: &str, rest: &str) {
        self.peer.give(kind, self.next, rest);
        self.next += 1;
    }

    /// Returns the reports for the shards.
    pub(super) fn reports(&mut self) -> Vec<InboundReport> {
        std::iter::from_fn(|| self.peer.session.poll_report(self.peer.now)).collect()
    }

    /// Ends the connection and returns when the next may begin.
    pub(super) fn disconnect(&mut self) {
        self.peer.session.disconnect(self.peer.now);
        self.peer.wait(5);
    }
}

/// Returns a store that has these next numbers, since this time.
fn store_at(target: u64, sender: u64, since: Timestamp) -> SharedStore {
    let mut store = SharedStore::new(NOW);
    let numbers = SequenceNumbers {
        next_target_msg_seq_num: target,
        next_sender_msg_seq_num: sender,
        ..SequenceNumbers::fresh(since)
    };
    store.set_sequence_numbers(numbers).unwrap();
    store
}

#[derive(Debug)]
struct Signer;

impl LogonSigner for Signer {
    fn sign(&self, payload: &[u8], out: &mut Vec<u8>) {
        out.extend_from_slice(b"of ");
        out.extend_from_slice(payload);
    }
}

#[test]
fn a_logon_has_what_the_venue_asks_for() {
    let login = |password: Option<&str>| VenueLogin {
        username: "me".to_string(),
        password: password.map(str::to_string),
    };
    let fields = [ExtraField::parse("25035=2").unwrap()];
    for (with, profile, expected) in [
        (None, VenueProfile::default(), ""),
        (Some(login(Some("pw"))), VenueProfile::default(), "|553=me|554=pw"),
        (Some(login(None)), VenueProfile::new(&[], &fields, &[], &[]), "|553=me|25035=2"),
    ] {
        let mut venue = Venue::new(&SharedStore::new(NOW), |wanted| {
            (wanted.venue.login, wanted.venue.profile) = (with, profile);
        });
        venue.peer.session.set_logon_signer(Box::new(Signer));
        assert_eq!(venue.connect(), [format!("35=A|34=1|98=0|108=30|141=Y{expected}")]);
    }
    let mut venue = Venue::new(&store_at(5, 7, NOW), |wanted| {
        wanted.venue.profile = VenueProfile::new(&[34], &[], &[], &[]);
    });
    venue.peer.session.set_logon_signer(Box::new(Signer));
    assert_eq!(venue.connect(), ["35=A|34=7|98=0|108=30|95=4|96=of 7"]);
}

#[test]
fn a_logon_restarts_the_numbers_of_a_new_or_outdated_session() {
    let yesterday = Timestamp(NOW.0 - 24 * 3_600 * NS_PER_S);
    for (on_logon, target, sender, since, resets) in [
        (false, 1, 1, NOW, true),
        (false, 1, 6, NOW, false),
        (false, 6, 1, NOW, false),
        (false, 6, 6, NOW, false),
        (true, 6, 6, NOW, true),
        (false, 6, 6, yesterday, true),
    ] {
        let mut venue =
            Venue::new(&store_at(target, sender, since), |wanted| wanted.session.reset_on_logon = on_logon);
        let logon = &venue.connect()[0];
        assert_eq!(logon.contains("|141=Y"), resets, "{logon}");
        let number = if resets { 1 } else { sender };
        assert!(logon.starts_with(&format!("35=A|34={number}|")), "{logon}");
    }
}

#[test]
fn a_venue_is_connected_in_its_hours_and_again_after_a_while() {
    let mut venue = Venue::new(&SharedStore::new(NOW), |_| {});
    let session = &mut venue.peer.session;
    let later = |seconds: u64| NOW.plus(seconds * NS_PER_S);
    assert!(session.wants_connection(NOW));
    session.handle_connect_failed(NOW);
    assert_eq!(session.poll_timeout(), Some(later(5)));
    assert!(!session.wants_connection(later(4)) && session.wants_connection(later(5)));
    let hours = |start: u32, end: u32| SessionSchedule {
        start: TimeOfDay(start * 3_600),
        end: TimeOfDay(end * 3_600),
        ..SessionSchedule::default()
    };
    session.set_schedule(hours(9, 17));
    assert!(!session.wants_connection(later(5)), "it is eight");
    session.set_schedule(hours(7, 17));
    assert!(session.wants_connection(later(5)));
    assert!(session.connect(later(5)));
    assert!(!session.wants_connection(later(9)), "there is a connection");
    assert!(!session.connect(later(6)));
    assert_eq!(session.poll_timeout(), Some(later(10)), "the Logon must be answered");
    session.handle_timeout(later(10));
    assert_eq!(session.poll_close(), None, "our Logon is not written");
    venue.peer.output();
    let session = &mut venue.peer.session;
    assert_eq!(session.poll_close(), Some(DisconnectReason::LogonTimeout));
    session.disconnect(later(10));
    assert_eq!(session.state(), FixSessionState::Disconnected);
    assert_eq!(session.poll_timeout(), Some(later(15)));
}

#[test]
fn the_number_of_a_logon_that_was_never_written_is_used_again() {
    for (is_written, number) in [(false, 6), (true, 7)] {
        let mut venue = Venue::new(&store_at(6, 6, NOW), |_| {});
        assert!(venue.peer.session.connect(NOW));
        venue.peer.session.handle_transmitted(NOW, 0);
        if is_written {
            venue.peer.output();
        }
        venue.disconnect();
        assert!(venue.connect()[0].starts_with(&format!("35=A|34={number}|")));
    }
}

#[test]
fn an_answer_that_is_no_logon_of_the_venue_ends_the_connection() {
    let logon = "98=0|108=30|";
    for (kind, number, rest, reason) in [
        ("0", 6, "", DisconnectReason::NotLogon),
        ("A", 6, "98=0|98=0|108=30|", DisconnectReason::NotLogon),
        ("A", 6, "52=20270115-09:00:00|98=0|108=30|", DisconnectReason::SendingTime),
        ("5", 6, "58=closed|", DisconnectReason::LogonRefused),
    ] {
        let mut venue = Venue::new(&store_at(6, 6, NOW), |_| {});
        venue.connect();
        venue.peer.give(kind, number, rest);
        assert_eq!(venue.reports(), []);
        assert_eq!(venue.peer.session.poll_close(), Some(reason), "{kind} {rest}");
    }
    for (begin_string, name, reason) in [
        ("FIX.4.2", "VENUE", DisconnectReason::BeginString),
        ("FIX.4.4", "OTHER", DisconnectReason::Identity),
    ] {
        let mut venue = Venue::new(&store_at(6, 6, NOW), |_| {});
        venue.connect();
        (venue.peer.begin_string, venue.peer.name) = (begin_string, name);
        venue.peer.give("A", 6, logon);
        assert_eq!(venue.reports(), []);
        assert_eq!(venue.peer.session.poll_close(), Some(reason));
    }
    let mut venue = Venue::new(&store_at(6, 6, NOW), |_| {});
    venue.connect();
    venue.peer.give_body("35=A|49=VENUE|56=PITLANE|52=20270115-08:00:00|98=0|108=30|");
    assert_eq!(venue.reports(), []);
    assert_eq!(venue.peer.session.poll_close(), Some(DisconnectReason::NumberMissing));
}

#[test]
fn a_refused_logon_counts_and_its_text_is_kept_for_the_log() {
    for (number, next) in [(6, 7), (8, 6)] {
        let mut venue = Venue::new(&store_at(6, 6, NOW), |_| {});
        venue.connect();
        venue.peer.give("5", number, "58=h\u{e9} closed|");
        assert_eq!(venue.reports(), []);
        assert_eq!(venue.peer.session.sequence_numbers().next_target_msg_seq_num, next);
        assert_eq!(venue.peer.session.take_logout_text().as_deref(), Some("h?? closed"));
        assert_eq!(venue.peer.session.take_logout_text(), None, "once");
    }
}

#[test]
fn the_number_of_a_logon_decides_how_the_session_goes_on() {
    for (number, rest, target, written) in [
        (6, "", 7, "35=1|34=7|112=7"),
        (9, "", 6, "35=2|34=7|7=6|16=0"),
        (5, "", 6, "35=5|34=7|58=MsgSeqNum too low, expecting 6 but received 5"),
        (5, "43=Y|", 6, "35=1|34=7|112=7"),
        // The venue restarts: our Logon was its number one.
        (1, "141=Y|", 2, "35=1|34=2|112=2"),
        (1, "", 6, "35=5|34=7|58=MsgSeqNum too low, expecting 6 but received 1"),
        (9, "141=Y|", 6, "35=2|34=7|7=6|16=0"),
    ] {
        let mut venue = Venue::new(&store_at(6, 6, NOW), |_| {});
        venue.connect();
        venue.peer.give("A", number, &format!("{rest}98=0|108=30|"));
        assert_eq!(venue.reports(), []);
        assert_eq!(venue.peer.output(), [written], "{number} {rest}");
        assert_eq!(venue.peer.session.sequence_numbers().next_target_msg_seq_num, target, "{number} {rest}");
    }
}

#[test]
fn the_interval_is_that_of_the_venue_if_it_is_one() {
    for (interval, seconds) in
        [("108=10|", 10), ("108=3600|", 3_600), ("108=0|", 30), ("108=3601|", 30), ("108=x|", 30), ("", 30)]
    {
        let mut venue = Venue::new(&SharedStore::new(NOW), |_| {});
        venue.connect();
        assert_eq!(venue.answer("A", &format!("98=0|141=Y|{interval}")), ["35=1|34=2|112=2"]);
        _ = venue.answer("0", "112=2|");
        let due = NOW.plus(seconds * NS_PER_S);
        assert_eq!(venue.peer.session.poll_timeout(), Some(due), "{interval}");
        venue.peer.session.handle_timeout(Timestamp(due.0 - 1));
        assert_eq!(venue.peer.output(), Vec::<String>::new());
        venue.peer.session.handle_timeout(due);
        assert_eq!(venue.peer.output(), ["35=0|34=3"], "{interval}");
    }
}

#[test]
fn a_session_is_synchronized_when_the_venue_answers_in_sequence() {
    let mut venue = Venue::new(&SharedStore::new(NOW), |_| {});
    let numbers = |venue: &Venue| venue.peer.session.synchronizations();
    venue.connect();
    assert_eq!(venue.answer("A", "98=0|108=30|141=Y|"), ["35=1|34=2|112=2"]);
    assert!(!venue.peer.session.is_synchronized());
    assert_eq!(venue.answer("0", "112=1|"), Vec::<String>::new());
    assert!(!venue.peer.session.is_synchronized(), "it is another answer");
    venue.peer.wait(2);
    _ = venue.answer("0", "112=2|");
    assert!(venue.peer.session.is_synchronized());
    assert_eq!((numbers(&venue), venue.peer.session.round_trip_ns()), (Some(1), Some(2 * NS_PER_S)));
    // A loss of messages needs another check, and the shards must ask for every order.
    assert!(venue.peer.session.take_message_loss(), "what was before the first logon");
    assert!(!venue.peer.session.take_message_loss(), "once");
    assert_eq!(venue.answer("4", "123=N|36=9|"), ["35=1|34=3|112=3"]);
    assert_eq!((numbers(&venue), venue.peer.session.take_message_loss()), (None, true));
    venue.next = 9;
    _ = venue.answer("0", "112=3|");
    assert_eq!(numbers(&venue), Some(2));
    // A Test Request of the venue changes nothing.
    assert_eq!(venue.answer("1", "112=t|"), ["35=0|34=4|112=t"]);
    assert_eq!(numbers(&venue), Some(2));
    venue.peer.session.log_out(venue.peer.now, b"bye", DisconnectReason::EndedByUs);
    assert!(!venue.peer.session.is_synchronized(), "the session ends");
    assert_eq!(venue.peer.output(), ["35=5|34=5|58=bye"]);
    assert_eq!(venue.peer.session.poll_close(), None, "the venue answers first");
    _ = venue.answer("5", "58=goodbye|");
    assert_eq!(venue.peer.session.poll_close(), Some(DisconnectReason::EndedByUs));
    venue.disconnect();
    assert_eq!(venue.connect(), ["35=A|34=6|98=0|108=30"]);
    assert_eq!(venue.peer.session.take_logout_text(), None, "of the connection before");
    venue.synchronize();
    assert_eq!(numbers(&venue), Some(3));
}

#[test]
fn a_gap_or_a_resend_starts_the_check_again() {
    let mut venue = Venue::new(&SharedStore::new(NOW), |_| {});
    venue.connect();
    assert_eq!(venue.answer("A", "98=0|108=30|141=Y|"), ["35=1|34=2|112=2"]);
    venue.next = 4;
    assert_eq!(venue.answer("0", "112=2|"), ["35=2|34=3|7=2|16=0"], "two and three are missing");
    assert!(!venue.peer.session.is_synchronized());
    venue.peer.give("4", 2, "43=Y|122=20270115-08:00:00|123=Y|36=4|");
    assert_eq!(venue.reports(), []);
    assert_eq!(venue.peer.output(), ["35=1|34=4|112=4"]);
    assert!(!venue.peer.session.is_synchronized(), "the answer came early");
    // The venue has missed something too.
    let resent = venue.answer("2", "7=1|16=0|");
    assert_eq!(resent, ["35=4|34=1|43=Y|123=Y|36=5", "35=1|34=5|112=5"]);
    _ = venue.answer("0", "112=4|");
    assert!(!venue.peer.session.is_synchronized());
    _ = venue.answer("0", "112=5|");
    assert_eq!(venue.peer.session.synchronizations(), Some(1));
    let counts = venue.peer.session.counts();
    assert_eq!((counts.messages_in, counts.messages_out), (7, 6));
}

#[test]
fn a_reset_by_the_operator_ends_the_connection_and_forgets_the_numbers() {
    let mut venue = Venue::synchronized(|_| {});
    assert!(venue.peer.session.take_message_loss());
    venue.peer.session.reset(venue.peer.now);
    assert!(venue.peer.output()[0].ends_with("58=Sequence numbers are reset"));
    assert_eq!(venue.peer.session.poll_close(), Some(DisconnectReason::EndedByUs));
    assert_eq!(venue.peer.session.sequence_numbers(), SequenceNumbers::fresh(venue.peer.now));
    assert!(venue.peer.session.take_message_loss(), "only the venue knows its orders");
    venue.disconnect();
    assert_eq!(venue.connect(), ["35=A|34=1|98=0|108=30|141=Y"]);
}

#[test]
fn a_probe_asks_whether_the_other_side_is_there() {
    let mut venue = Venue::synchronized(|_| {});
    assert_eq!(venue.peer.session.poll_timeout(), Some(NOW.plus(30 * NS_PER_S)));
    venue.peer.session.probe(NOW);
    assert!(venue.peer.output()[0].starts_with("35=1|34=3|112="));
    // No Heartbeat and no further Test Request until it answers.
    assert_eq!(venue.peer.session.poll_timeout(), Some(NOW.plus(72 * NS_PER_S)));
    venue.peer.session.handle_timeout(NOW.plus(72 * NS_PER_S));
    assert_eq!(venue.peer.output(), ["35=5|34=4|58=Heartbeat missed"]);
    assert_eq!(venue.peer.session.poll_close(), Some(DisconnectReason::HeartbeatMissed));
    venue.peer.session.probe(NOW);
    assert_eq!(venue.peer.output(), Vec::<String>::new());
}

#[test]
fn a_session_holds_two_messages_of_the_largest_size() {
    let mut venue = Venue::synchronized(|wanted| wanted.session.message_bytes_max = 300);
    assert!(venue.peer.session.wants_bytes());
    let part = format!("8=FIX.4.4\x019=250\x0135=0\x01{}", "x".repeat(400));
    let (first, rest) = part.as_bytes().split_at(300);
    assert_eq!(venue.peer.session.handle_bytes(NOW, first), 300);
    assert!(venue.peer.session.wants_bytes());
    assert_eq!(venue.peer.session.handle_bytes(NOW, &rest[..1]), 1);
    assert!(!venue.peer.session.wants_bytes());
}
