//! The session layer with a role that only records what it is given.

use pitlane_engine::id::{Origin, PortId, Source};
use pitlane_engine::time::Timestamp;

use super::*;
use crate::fix::encode::{Draft, Encoder};
use crate::fix::fields::FixMessage;
use crate::fix::msg_type;
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

struct Connection {
    layer: SessionLayer,
    role: RecordingRole,
    client: Encoder,
}

impl Connection {
    /// Returns a session whose client is logged on with the number 1.
    fn logged_on() -> Connection {
        let source = Source { origin: Origin::Fix, port: PortId(0), session: 1 };
        let settings = FixSessionSettings::new("PITLANE", "CLIENT1", source);
        let layer = SessionLayer::new(settings, Box::new(MemoryStore::new(NOW)));
        let client = Encoder::new(FixVersion::Fix44, "CLIENT1", "PITLANE");
        let mut connection = Connection { layer, role: RecordingRole::default(), client };
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
}

/// Writes the body of SequenceReset-Reset.
fn jump(new: u64) -> impl FnOnce(&mut Draft) {
    move |draft| draft.number(prefix::NEW_SEQ_NO, new)
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
    let filled = connection.receive(reset, 7, |draft| {
        draft.code(prefix::GAP_FILL_FLAG, b'Y');
        draft.number(prefix::NEW_SEQ_NO, 9);
    });
    assert!(filled.is_empty(), "a gap fill loses nothing");
    assert_eq!(connection.layer.sequence.next_target(), 9);
    let restarted = connection.receive(msg_type::LOGON, 1, |draft| {
        draft.text(prefix::ENCRYPT_METHOD, b"0");
        draft.number(prefix::HEART_BT_INT, 30);
        draft.code(prefix::RESET_SEQ_NUM_FLAG, b'Y');
    });
    assert_eq!(restarted, ["reset"]);
    assert_eq!((connection.layer.sequence.next_target(), connection.layer.sequence.next_sender()), (2, 2));
    assert_eq!(
        connection.receive(msg_type::LOGOUT, 2, |draft| draft.text(prefix::TEXT, b"bye")),
        ["logout Some(3)"]
    );
    assert_eq!(connection.layer.state(), FixSessionState::Closing);
}
