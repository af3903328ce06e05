//! The session layer with a role that only records what it is given.

use pitlane_engine::id::{Origin, PortId, Source};
use pitlane_engine::time::{NS_PER_MS, NS_PER_S, Timestamp};

use super::inbound::MSG_SEQ_NUM_MAX;
use super::*;
use crate::fix::encode::{Draft, Encoder};
use crate::fix::fields::FixMessage;
use crate::fix::msg_type;
use crate::fix::session::OUTPUT_BYTES_HIGH;
use crate::fix::session::tests::messages_of;
use crate::fix::store::MemoryStore;
use crate::fix::tag::prefix;
use crate::fix::version::FixVersion;

const NOW: Timestamp = Timestamp(1_800_000_000_000_000_000);

/// Accepts every Logon, and records application messages and notices.
#[derive(Default)]
struct RecordingRole {
    records: Vec<String>,
}

impl SessionRole for RecordingRole {
    fn handle_first_message(&mut self, layer: &mut SessionLayer, now: Timestamp, message: &FixMessage) {
        layer.accept_logon(now, 30);
        layer.sequence.consume_logon(msg_seq_num_of(message).unwrap());
    }

    fn handle_expected(
        &mut self,
        layer: &mut SessionLayer,
        _now: Timestamp,
        message: &FixMessage,
        number: u64,
    ) {
        layer.sequence.consume_if_expected(number);
        self.records.push(format!("{}{number}", message.type_code() as char));
    }

    fn handle_notice(&mut self, notice: SessionNotice<'_>) {
        self.records.push(match notice {
            SessionNotice::RecoveryStarted => "recovery".to_string(),
            SessionNotice::MessagesLost => "lost".to_string(),
            SessionNotice::NumbersReset => "reset".to_string(),
            SessionNotice::LogoutReceived { text } => format!("logout {:?}", text.map(<[u8]>::len)),
        });
    }
}

/// Returns a layer whose numbers were reset at this time.
fn layer(since: Timestamp) -> SessionLayer {
    let source = Source { origin: Origin::Fix, port: PortId(0), session: 1 };
    let settings = FixSessionSettings::new("PITLANE", "CLIENT1", source);
    SessionLayer::new(settings, Box::new(MemoryStore::new(since)))
}

struct Connection {
    layer: SessionLayer,
    role: RecordingRole,
    client: Encoder,
}

impl Connection {
    /// Returns a session whose client is logged on with the number 1.
    fn logged_on() -> Connection {
        let client = Encoder::new(FixVersion::Fix44, "CLIENT1", "PITLANE");
        let mut connection = Connection { layer: layer(NOW), role: RecordingRole::default(), client };
        assert!(connection.layer.connect(NOW));
        assert!(connection.receive(msg_type::LOGON, 1, |_| {}).is_empty());
        assert!(connection.layer.is_logged_on());
        connection
    }

    /// Lets the layer read a message of the client. Returns what the role was given.
    fn receive(&mut self, msg_type: u8, number: u64, write: impl FnOnce(&mut Draft)) -> Vec<String> {
        let mut bytes = Vec::new();
        let mut draft = self.client.begin(&mut bytes, msg_type, number, NOW);
        write(&mut draft);
        draft.finish();
        assert_eq!(self.layer.handle_bytes(NOW, &bytes), bytes.len());
        while self.layer.may_read() && self.layer.read_one(NOW, &mut self.role) {}
        std::mem::take(&mut self.role.records)
    }

    /// Returns what the layer has written, and lets the client take it.
    fn output(&mut self) -> Vec<String> {
        let bytes = self.layer.stream.unsent().to_vec();
        self.layer.handle_transmitted(NOW, bytes.len());
        messages_of(bytes)
    }
}

/// Writes the body of SequenceReset-Reset.
fn jump(new: u64) -> impl FnOnce(&mut Draft) {
    move |draft| draft.number(prefix::NEW_SEQ_NO, new)
}

/// Writes the body of SequenceReset-GapFill.
fn fill_to(new: u64) -> impl FnOnce(&mut Draft) {
    move |draft| {
        draft.code(prefix::GAP_FILL_FLAG, b'Y');
        draft.number(prefix::NEW_SEQ_NO, new);
    }
}

/// Writes the body of a Resend Request for everything.
fn resend_all(draft: &mut Draft) {
    draft.number(prefix::BEGIN_SEQ_NO, 1);
    draft.number(prefix::END_SEQ_NO, 0);
}

/// Writes the body of a Logon, which resets the numbers or does not.
fn log_on(resets: bool) -> impl FnOnce(&mut Draft) {
    move |draft| {
        draft.text(prefix::ENCRYPT_METHOD, b"0");
        draft.number(prefix::HEART_BT_INT, 30);
        if resets {
            draft.code(prefix::RESET_SEQ_NUM_FLAG, b'Y');
        }
    }
}

#[test]
fn the_role_gets_application_messages_in_the_order_of_their_numbers() {
    let mut connection = Connection::logged_on();
    let order = msg_type::NEW_ORDER_SINGLE;
    assert_eq!(connection.receive(order, 2, |_| {}), ["D2"]);
    assert_eq!(connection.receive(order, 4, |_| {}), ["recovery"], "number 3 is missing");
    assert!(connection.receive(order, 5, |_| {}).is_empty(), "the gap is known");
    assert_eq!(connection.receive(order, 3, |_| {}), ["D3", "D4", "D5"]);
    assert!(!connection.layer.sequence.has_gap());
}

#[test]
fn the_settings_bound_what_a_client_leaves_unread() {
    for (bytes_max, expected) in [(1_000, FixSessionState::Closing), (1 << 20, FixSessionState::LoggedOn)] {
        let mut connection = Connection::logged_on();
        connection.layer.settings.output_bytes_max = bytes_max;
        for _ in 0..10 {
            let write = |draft: &mut Draft| draft.text(prefix::TEXT, &[b'x'; 100]);
            _ = connection.layer.send_app(NOW, msg_type::EXECUTION_REPORT, write);
        }
        assert_eq!(connection.layer.state(), expected, "{bytes_max}");
    }
}

#[test]
fn a_damaged_message_of_the_store_is_resent_as_one_gap_fill_and_counted_once() {
    let mut connection = Connection::logged_on();
    let layer = &mut connection.layer;
    let first = layer.sequence.next_sender();
    assert!(layer.send_app(NOW, msg_type::EXECUTION_REPORT, |draft| draft.text(prefix::TEXT, b"sound")));
    layer.sequence.store_message(b"8=FIX.4.4|damaged").unwrap();
    assert!(layer.send_app(NOW, msg_type::EXECUTION_REPORT, |draft| draft.text(prefix::TEXT, b"sound")));
    let (sent, before) = (layer.stream.unsent_bytes(), layer.counts.messages_out);
    layer.begin_resend(NOW, first, first + 2);
    let text = String::from_utf8(layer.stream.unsent()[sent..].to_vec()).unwrap().replace('\x01', "|");
    let resent: Vec<&str> = text.split("8=FIX.4.4|").skip(1).collect();
    assert_eq!(layer.counts.messages_out - before, resent.len() as u64);
    for ((message, kind), number) in resent.iter().zip(["8", "4", "8"]).zip(first..) {
        assert!(message.contains(&format!("|35={kind}|")), "{message}");
        assert!(message.contains(&format!("|34={number}|43=Y|")), "{message}");
    }
    assert!(resent.len() == 3 && resent[1].contains(&format!("|123=Y|36={}|", first + 2)), "{resent:?}");
}

#[test]
fn the_role_learns_what_happens_to_the_numbers() {
    let mut connection = Connection::logged_on();
    let reset = msg_type::SEQUENCE_RESET;
    assert!(connection.receive(reset, 9, jump(2)).is_empty(), "2 is expected anyway");
    assert_eq!(connection.receive(reset, 9, jump(7)), ["lost"]);
    let filled = connection.receive(reset, 7, fill_to(9));
    assert!(filled.is_empty(), "a gap fill loses nothing");
    assert_eq!(connection.layer.sequence.next_target(), 9);
    assert_eq!(connection.receive(msg_type::LOGON, 1, log_on(true)), ["reset"]);
    assert_eq!((connection.layer.sequence.next_target(), connection.layer.sequence.next_sender()), (2, 2));
    assert_eq!(
        connection.receive(msg_type::LOGOUT, 2, |draft| draft.text(prefix::TEXT, b"bye")),
        ["logout Some(3)"]
    );
    assert_eq!(connection.layer.state(), FixSessionState::Closing);
}

#[test]
fn a_new_number_is_in_bounds_and_leads_forward() {
    let most = (MSG_SEQ_NUM_MAX - 1).to_string();
    let beyond = MSG_SEQ_NUM_MAX.to_string();
    for (gap_fill, new, expected, reason) in [
        (b'N', "5", 5, None),
        (b'N', "6", 6, None),
        (b'N', "4", 5, Some(5)),
        (b'N', "0", 5, Some(5)),
        (b'N', &most, MSG_SEQ_NUM_MAX - 1, None),
        (b'N', &beyond, 5, Some(5)),
        (b'N', "x", 5, Some(6)),
        (b'Y', "6", 6, None),
        (b'Y', "9", 9, None),
        (b'Y', "5", 6, Some(5)),
        (b'Y', "0", 6, Some(5)),
        (b'Y', &most, MSG_SEQ_NUM_MAX - 1, None),
        (b'Y', &beyond, 6, Some(5)),
        (b'Y', "x", 6, Some(6)),
    ] {
        let mut connection = Connection::logged_on();
        let reset = msg_type::SEQUENCE_RESET;
        assert_eq!(connection.receive(reset, 2, jump(5)), ["lost"]);
        connection.receive(reset, 5, |draft| {
            draft.code(prefix::GAP_FILL_FLAG, gap_fill);
            draft.text(prefix::NEW_SEQ_NO, new.as_bytes());
        });
        let case = (gap_fill as char, new);
        assert_eq!(connection.layer.sequence.next_target(), expected, "{case:?}");
        let output = connection.output();
        let rejects: Vec<_> = reason.iter().map(|reason| format!("|371=36|372=4|373={reason}|")).collect();
        assert_eq!(output.len(), rejects.len(), "{case:?} {output:?}");
        assert!(output.iter().zip(&rejects).all(|(sent, reject)| sent.contains(reject)), "{output:?}");
    }
}

#[test]
fn a_possible_duplicate_counts_if_it_is_next_and_was_not_sent_later_than_now() {
    const ORDER: u8 = msg_type::NEW_ORDER_SINGLE;
    const RESET: u8 = msg_type::SEQUENCE_RESET;
    let same = Some(0);
    for (kind, number, gap_fill, original, records, reason, next) in [
        (ORDER, 2, b'N', same, &[][..], None, 3),
        (ORDER, 3, b'N', same, &["D3"][..], None, 4),
        (ORDER, 2, b'N', Some(1), &[], Some(10), 3),
        (ORDER, 3, b'N', Some(1), &[], Some(10), 4),
        (ORDER, 2, b'N', None, &[], Some(1), 3),
        (ORDER, 3, b'N', None, &[], Some(1), 4),
        (msg_type::RESEND_REQUEST, 2, b'N', same, &["recovery"], None, 3),
        (RESET, 2, b'N', same, &["lost"], None, 7),
        (RESET, 2, b'Y', same, &[], None, 3),
        (RESET, 3, b'Y', same, &[], None, 7),
        (RESET, 3, b'Y', None, &[], None, 7),
        (RESET, 2, b'Y', None, &[], Some(1), 3),
    ] {
        let mut connection = Connection::logged_on();
        connection.receive(ORDER, 2, |_| {});
        assert!(connection.layer.send_app(NOW, msg_type::EXECUTION_REPORT, |_| {}));
        connection.output();
        let received = connection.receive(kind, number, |draft| {
            draft.code(prefix::POSS_DUP_FLAG, b'Y');
            if let Some(later_ms) = original {
                draft.time(prefix::ORIG_SENDING_TIME, NOW.plus(later_ms * NS_PER_MS));
            }
            draft.code(prefix::GAP_FILL_FLAG, gap_fill);
            draft.number(prefix::NEW_SEQ_NO, 7);
            resend_all(draft);
        });
        let case = (kind as char, number, gap_fill as char, original);
        assert_eq!(received, records, "{case:?}");
        assert_eq!(connection.layer.sequence.next_target(), next, "{case:?}");
        assert_eq!(connection.layer.is_logged_on(), reason != Some(10), "{case:?}");
        let output = connection.output();
        if let Some(reason) = reason {
            assert!(output[0].contains(&format!("|371=122|372={}|373={reason}|", kind as char)), "{case:?}");
        } else {
            assert!(output.iter().all(|sent| !sent.starts_with("35=3|")), "{case:?} {output:?}");
        }
    }
}

#[test]
fn of_skipped_early_messages_only_a_test_request_is_answered() {
    let mut connection = Connection::logged_on();
    let order = msg_type::NEW_ORDER_SINGLE;
    assert_eq!(connection.receive(order, 3, |_| {}), ["recovery"]);
    let test = |draft: &mut Draft| draft.text(prefix::TEST_REQ_ID, b"t");
    assert!(connection.receive(msg_type::TEST_REQUEST, 4, test).is_empty());
    assert!(connection.receive(order, 5, |_| {}).is_empty());
    assert!(connection.output().is_empty());
    assert_eq!(connection.receive(msg_type::SEQUENCE_RESET, 2, fill_to(5)), ["D5"]);
    assert_eq!(connection.output(), ["35=0|34=1|112=t"]);
    assert!(connection.layer.is_logged_on());
    assert_eq!(connection.layer.sequence.next_target(), 6);
}

#[test]
fn a_message_about_the_session_with_a_fault_has_no_effect_on_it() {
    for (kind, number, records, next) in [
        (msg_type::SEQUENCE_RESET, 2, &["42"][..], 3),
        (msg_type::SEQUENCE_RESET, 5, &["recovery"], 2),
        (msg_type::RESEND_REQUEST, 5, &["recovery"], 2),
        (msg_type::LOGON, 2, &["A2"], 3),
    ] {
        for gap_fill in [b'N', b'Y'] {
            let mut connection = Connection::logged_on();
            assert!(connection.layer.send_app(NOW, msg_type::EXECUTION_REPORT, |_| {}));
            connection.output();
            let received = connection.receive(kind, number, |draft| {
                log_on(true)(draft);
                draft.code(prefix::GAP_FILL_FLAG, gap_fill);
                draft.number(prefix::NEW_SEQ_NO, 9);
                resend_all(draft);
                draft.text(prefix::TEXT, b"");
            });
            let case = (kind as char, number, gap_fill as char);
            assert_eq!(received, records, "{case:?}");
            assert_eq!(connection.layer.sequence.next_target(), next, "{case:?}");
            assert!(connection.output().is_empty(), "{case:?}");
        }
    }
}

#[test]
fn a_session_that_logs_out_answers_sound_resend_requests_and_sends_no_heartbeat() {
    let mut connection = Connection::logged_on();
    connection.layer.accept_logon(NOW, 1);
    assert!(connection.layer.send_app(NOW, msg_type::EXECUTION_REPORT, |_| {}));
    connection.layer.log_out(NOW, b"bye", DisconnectReason::EndedByUs);
    assert_eq!(connection.output(), ["35=8|34=1", "35=5|34=2|58=bye"]);
    connection.layer.handle_timeout(NOW.plus(2 * NS_PER_S));
    assert!(connection.output().is_empty());
    connection.receive(msg_type::RESEND_REQUEST, 2, |draft| {
        resend_all(draft);
        draft.text(prefix::TEXT, b"");
    });
    assert!(connection.output().is_empty(), "the request has a fault");
    connection.receive(msg_type::RESEND_REQUEST, 3, resend_all);
    assert_eq!(connection.output(), ["35=8|34=1|43=Y", "35=4|34=2|43=Y|123=Y|36=3"]);
    connection.receive(msg_type::LOGOUT, 4, |_| {});
    assert_eq!(connection.layer.poll_close(), Some(DisconnectReason::EndedByUs));
}

#[test]
fn a_second_logon_resets_the_numbers_only_with_the_flag_and_the_number_one() {
    for (number, resets, expected) in
        [(1, true, true), (1, false, false), (2, true, false), (2, false, false)]
    {
        let mut connection = Connection::logged_on();
        let received = connection.receive(msg_type::LOGON, number, log_on(resets));
        assert_eq!(received.contains(&"reset".to_string()), expected, "{number} {resets}");
        assert_eq!(connection.layer.is_logged_on(), expected, "{number} {resets}");
        let output = connection.output();
        let start = if expected { "35=A|34=1|" } else { "35=5|34=1|58=Already logged on" };
        assert!(output.len() == 1 && output[0].starts_with(start), "{output:?}");
    }
}

#[test]
fn numbers_are_outdated_if_they_were_reset_before_the_session_began() {
    let began = SessionSchedule::default().began(NOW);
    assert!(!layer(began).is_outdated(NOW));
    assert!(layer(Timestamp(began.0 - 1)).is_outdated(NOW));
}

#[test]
fn an_incomplete_logon_is_bounded() {
    for (count, expected) in
        [(LOGON_BYTES_MAX, FixSessionState::AwaitingLogon), (LOGON_BYTES_MAX + 1, FixSessionState::Closing)]
    {
        let mut layer = layer(NOW);
        assert!(layer.connect(NOW));
        let mut bytes = format!("8=FIX.4.4\x019={LOGON_BYTES_MAX}\x0135=A\x0158=").into_bytes();
        bytes.resize(count, b'x');
        assert_eq!(layer.handle_bytes(NOW, &bytes), count);
        assert!(!layer.read_one(NOW, &mut RecordingRole::default()));
        assert_eq!(layer.state(), expected, "{count}");
    }
}

#[test]
fn only_received_bytes_are_a_sign_of_life() {
    let mut connection = Connection::logged_on();
    let later = NOW.plus(20 * NS_PER_S);
    connection.layer.send_admin(later, msg_type::HEARTBEAT, |_| {});
    connection.layer.handle_transmitted(later, connection.layer.stream.unsent_bytes());
    let test_request_at = Some(NOW.plus(36 * NS_PER_S));
    assert_eq!(connection.layer.poll_timeout(), test_request_at);
    assert_eq!(connection.layer.handle_bytes(later, b""), 0);
    assert_eq!(connection.layer.poll_timeout(), test_request_at);
    assert_eq!(connection.layer.handle_bytes(later, b"8"), 1);
    assert_ne!(connection.layer.poll_timeout(), test_request_at);
}

#[test]
fn a_gap_is_requested_again_when_its_time_has_come() {
    let mut connection = Connection::logged_on();
    connection.layer.accept_logon(NOW, 0);
    connection.receive(msg_type::NEW_ORDER_SINGLE, 4, |_| {});
    connection.layer.request_gap(NOW);
    assert_eq!(connection.output(), ["35=2|34=1|7=2|16=0"]);
    let at = NOW.plus(30 * NS_PER_S);
    assert_eq!(connection.layer.poll_timeout(), Some(at));
    connection.layer.handle_timeout(Timestamp(at.0 - 1));
    assert!(connection.output().is_empty());
    connection.layer.handle_timeout(at);
    assert_eq!(connection.output(), ["35=2|34=2|7=2|16=0"]);
}

#[test]
fn a_session_reads_while_it_is_connected_and_has_room() {
    let mut connection = Connection::logged_on();
    let layer = &mut connection.layer;
    assert!(layer.may_read());
    layer.stream.append(&[b'x'; OUTPUT_BYTES_HIGH]);
    assert!(!layer.may_read());
    layer.handle_transmitted(NOW, 1);
    assert!(layer.may_read());
    while !layer.sequence.in_flight.is_full() {
        layer.sequence.in_flight.begin(2);
    }
    assert!(!layer.may_read(), "requests without an answer are bounded");
    layer.sequence.in_flight.assign(None);
    assert!(layer.may_read());
    layer.close(DisconnectReason::EndedByUs);
    assert!(!layer.may_read());
    layer.disconnect();
    assert!(!layer.may_read());
}

#[test]
fn a_resend_waits_for_room_and_everything_else_waits_for_the_resend() {
    let mut connection = Connection::logged_on();
    connection.layer.accept_logon(NOW, 0);
    let report = msg_type::EXECUTION_REPORT;
    for _ in 0..3 {
        assert!(connection.layer.send_app(NOW, report, |_| {}));
    }
    assert_eq!(connection.output(), ["35=8|34=1", "35=8|34=2", "35=8|34=3"]);
    assert_eq!(connection.layer.counts().messages_out, 3);
    let layer = &mut connection.layer;
    layer.stream.append(&[b'x'; OUTPUT_BYTES_HIGH]);
    layer.begin_resend(NOW, 1, 3);
    assert_eq!(layer.stream.unsent_bytes(), OUTPUT_BYTES_HIGH);
    layer.handle_transmitted(NOW, OUTPUT_BYTES_HIGH);
    assert!(layer.is_resending() && !layer.may_read());
    assert!(layer.sequence.open_gap(9));
    layer.request_gap(NOW);
    layer.probe(NOW);
    assert!(layer.send_app(NOW, report, |_| {}));
    assert!(!layer.stream.has_unsent());
    layer.continue_resend(NOW);
    assert!(!layer.is_resending() && layer.may_read());
    layer.request_gap(NOW);
    assert_eq!(layer.counts().messages_out, 8);
    assert_eq!(
        connection.output(),
        ["35=8|34=1|43=Y", "35=8|34=2|43=Y", "35=8|34=3|43=Y", "35=8|34=4", "35=2|34=5|7=2|16=0"]
    );
    // Nothing more is written to a connection that closes.
    let layer = &mut connection.layer;
    layer.stream.append(&[b'x'; OUTPUT_BYTES_HIGH]);
    layer.begin_resend(NOW, 1, 3);
    layer.close(DisconnectReason::EndedByUs);
    layer.handle_transmitted(NOW, OUTPUT_BYTES_HIGH);
    layer.continue_resend(NOW);
    assert!(!layer.stream.has_unsent());
}
