//! A client that connects to us: its logon, and its requests that concern no order.

use pitlane_engine::command::TradingSession;
use pitlane_engine::desk::{Desk, DeskSettings, IdBlock};
use pitlane_engine::id::ExchangeId;
use pitlane_engine::pages::LargePages;
use pitlane_engine::refdata::{RefData, sample};
use pitlane_engine::time::TimeOfDay;

use super::*;

pub(super) struct Client {
    pub peer: Peer,
    pub desk: Desk,
    pub next: u64,
}

impl Client {
    /// Returns a client that has connected.
    pub(super) fn connected(store: &SharedStore, change: impl FnOnce(&mut FixSessionSettings)) -> Client {
        let source = Source { origin: Origin::Fix, port: PortId(0), session: 1 };
        let mut settings = FixSessionSettings::new("PITLANE", "CLIENT1", source);
        settings.reset_on_logon = false;
        change(&mut settings);
        let reference = Arc::new(RefData::check(sample::sound()).unwrap());
        let desk = DeskSettings {
            port: PortId(0),
            shards: 1,
            orders_max: 8,
            ids_max: 8,
            finished_max: 8,
            prefix: b'f',
            seed: 1,
            pages: LargePages::NONE,
        };
        let session = FixSession::new(settings, Box::new(store.clone()), reference);
        let mut peer = Peer { session, now: NOW, name: "CLIENT1", begin_string: "FIX.4.4" };
        assert!(peer.session.connect(NOW));
        Client { peer, desk: Desk::new(desk, IdBlock { next: 1, end: 9 }), next: 1 }
    }

    pub(super) fn logged_on(change: impl FnOnce(&mut FixSessionSettings)) -> Client {
        let mut client = Client::connected(&SharedStore::new(NOW), change);
        assert_eq!(client.send("A", LOGON), ["35=A|34=1|98=0|108=30"]);
        client
    }

    /// Sends a message. Returns what the session writes.
    pub(super) fn send(&mut self, kind: &str, rest: &str) -> Vec<String> {
        self.peer.give(kind, self.next, rest);
        self.next += 1;
        self.poll()
    }

    pub(super) fn poll(&mut self) -> Vec<String> {
        assert!(self.peer.session.poll_command(self.peer.now, &self.desk).is_none());
        self.peer.output()
    }
}

pub(super) const LOGON: &str = "98=0|108=30|";
pub(super) const NOTHING: [&str; 0] = [];

#[test]
fn a_login_is_checked_before_anything_is_read() {
    let with_login = |settings: &mut FixSessionSettings| settings.login = true;
    let mut client = Client::connected(&SharedStore::new(NOW), with_login);
    client.peer.session.handle_login(true);
    assert!(client.peer.session.poll_login().is_none(), "there is no Logon");
    assert_eq!(client.send("A", &format!("{LOGON}553=me|554=secret|")), NOTHING);
    assert_eq!(client.send("1", "112=t|"), NOTHING);
    let login = client.peer.session.poll_login().unwrap();
    assert_eq!((login.username, login.password), (&b"me"[..], &b"secret"[..]));
    client.peer.session.handle_login(true);
    client.peer.session.handle_login(false);
    assert!(client.peer.session.poll_login().is_none());
    assert_eq!(client.poll(), ["35=A|34=1|98=0|108=30", "35=0|34=2|112=t"]);
    // Each connection has its own check, and a refused one changes no number.
    client.peer.session.disconnect(NOW);
    assert!(client.peer.session.connect(NOW));
    assert_eq!(client.send("A", LOGON), NOTHING);
    assert_eq!(client.peer.session.poll_login().unwrap().username, b"");
    client.peer.session.handle_login(false);
    assert_eq!(client.poll(), ["35=5|34=3|58=Logon refused"]);
    assert_eq!(client.peer.session.poll_close(), Some(DisconnectReason::LogonRefused));
    let numbers = client.peer.session.sequence_numbers();
    assert_eq!((numbers.next_target_msg_seq_num, numbers.next_sender_msg_seq_num), (3, 3));
}

#[test]
fn a_logon_that_cannot_be_accepted_is_answered_with_the_reason() {
    for (number, rest, text) in [
        (1, "98=1|108=30|", "EncryptMethod must be 0"),
        (1, "108=30|", "EncryptMethod must be 0"),
        (1, "98=0|", "HeartBtInt must be from 0 to 3600"),
        (1, "98=0|108=3601|", "HeartBtInt must be from 0 to 3600"),
        (1, "98=0|108=30|464=Y|", "This is no test session"),
        (2, "98=0|108=30|141=Y|", "ResetSeqNumFlag needs MsgSeqNum 1"),
        (1, "98=0|108=30|789=2|", "NextExpectedMsgSeqNum is too high"),
        (1, "98=0|108=30|789=0|", "NextExpectedMsgSeqNum is too high"),
    ] {
        let mut client = Client::connected(&SharedStore::new(NOW), |settings| settings.next_expected = true);
        client.next = number;
        assert_eq!(client.send("A", rest), [format!("35=5|34=1|58={text}")], "{rest}");
        assert_eq!(client.peer.session.poll_close(), Some(DisconnectReason::LogonRefused), "{rest}");
    }
    let mut client = Client::connected(&SharedStore::new(NOW), |settings| {
        settings.schedule.start = TimeOfDay(9 * 3_600);
        settings.schedule.end = TimeOfDay(17 * 3_600);
    });
    assert_eq!(client.send("A", LOGON), ["35=5|34=1|58=Outside of session hours"]);
}

#[test]
fn a_peer_that_is_not_the_client_gets_no_answer() {
    for (kind, rest, reason) in [
        ("0", "", DisconnectReason::NotLogon),
        ("A", "98=0|98=0|108=30|", DisconnectReason::NotLogon),
        ("A", "52=20270115-09:00:00|98=0|108=30|", DisconnectReason::SendingTime),
    ] {
        let mut client = Client::connected(&SharedStore::new(NOW), |_| {});
        assert_eq!(client.send(kind, rest), NOTHING);
        assert_eq!(client.peer.session.poll_close(), Some(reason), "{kind} {rest}");
    }
}

#[test]
fn a_client_that_says_what_it_expects_gets_what_it_missed() {
    let store = SharedStore::new(NOW);
    let next_expected = |settings: &mut FixSessionSettings| settings.next_expected = true;
    let mut client = Client::connected(&store, next_expected);
    assert_eq!(client.send("A", "98=0|108=30|789=1|"), ["35=A|34=1|98=0|108=30|789=2"]);
    assert_eq!(client.send("1", "112=t|"), ["35=0|34=2|112=t"]);
    for (expected, resent) in [(3, None), (2, Some("35=4|34=2|43=Y|123=Y|36=4"))] {
        client.peer.session.disconnect(NOW);
        assert!(client.peer.session.connect(NOW));
        let next = client.next + 1;
        let sender = client.peer.session.sequence_numbers().next_sender_msg_seq_num;
        let mut answer = vec![format!("35=A|34={sender}|98=0|108=30|789={next}")];
        answer.extend(resent.map(str::to_string));
        assert_eq!(client.send("A", &format!("98=0|108=30|789={expected}|")), answer, "{expected}");
    }
}

#[test]
fn trading_sessions_are_told_once_or_at_every_change() {
    let mut client = Client::logged_on(|_| {});
    let told = |number: u64, id: &str, unasked: char, status: u8| {
        format!("35=h|34={number}|335={id}|336=XTST|325={unasked}|340={status}")
    };
    client.peer.session.handle_trading_session(ExchangeId(1), TradingSession::Continuous);
    client.peer.session.handle_trading_session(ExchangeId(2), TradingSession::Continuous);
    assert_eq!(client.poll(), NOTHING, "nothing is subscribed");
    let open = |number, id| told(number, id, 'N', 2);
    assert_eq!(client.send("g", "335=a|263=0|"), [open(2, "a"), open(3, "a")]);
    assert_eq!(client.send("g", "335=a|263=1|336=Home|"), [open(4, "a")]);
    assert_eq!(client.send("g", "335=b|263=1|336=Away|"), [open(5, "b")]);
    client.peer.session.handle_trading_session(ExchangeId(1), TradingSession::Continuous);
    assert_eq!(client.poll(), NOTHING, "it is as it was");
    client.peer.session.handle_trading_session(ExchangeId(1), TradingSession::Closed);
    assert_eq!(client.poll(), [told(6, "a", 'Y', 3)]);
    assert_eq!(client.send("g", "335=a|263=2|"), NOTHING);
    client.peer.session.handle_trading_session(ExchangeId(1), TradingSession::Continuous);
    assert_eq!(client.poll(), NOTHING);
    client.peer.session.handle_trading_session(ExchangeId(2), TradingSession::ClosingAuction);
    assert_eq!(client.poll(), [told(7, "b", 'Y', 5)]);
    for (body, words) in [
        ("335=a|263=2|", "Unknown TradSesReqID (335)"),
        ("335=b|263=1|", "TradSesReqID (335) is in use"),
        ("335=c|263=3|", "SubscriptionRequestType (263) must be 0, 1 or 2"),
        ("335=c|263=1|336=Nowhere|", "Unknown TradingSessionID (336)"),
    ] {
        let answer = client.send("g", body);
        assert!(answer.len() == 1 && answer[0].ends_with(&format!("|58={words}")), "{answer:?}");
    }
    client.peer.session.disconnect(NOW);
    assert!(client.peer.session.connect(NOW));
    client.send("A", LOGON);
    client.peer.session.handle_trading_session(ExchangeId(2), TradingSession::Continuous);
    assert_eq!(client.poll(), NOTHING, "subscriptions end with the connection");
}

#[test]
fn securities_are_listed_and_described() {
    let mut client = Client::logged_on(|_| {});
    let all = client.send("x", "320=l|559=4|");
    assert_eq!(all.len(), 1);
    assert!(all[0].starts_with("35=y|34=2|320=l|322=l-1|560=0|393=3|893=Y|146=3|"), "{all:?}");
    for (body, start) in [
        ("559=0|55=ACME|", "560=0|393=1|893=Y|146=1|55=ACME|"),
        ("559=1|167=OPT|", "560=0|393=1|893=Y|146=1|55=ACME C10|"),
        ("559=0|55=NOPE|", "560=2|393=0|893=Y"),
        ("559=3|", "560=1|393=0|893=Y"),
    ] {
        let answer = client.send("x", &format!("320=m|{body}"));
        let fields = answer[0].split_once("|560=").map(|(_, fields)| format!("560={fields}")).unwrap();
        assert!(answer.len() == 1 && fields.starts_with(start), "{answer:?}");
    }
    for (body, end) in [
        ("321=0|55=NOPE|", "|323=6|58=Unknown security"),
        ("321=1|55=ACME|", "|323=5|58=SecurityRequestType must be 0"),
    ] {
        let answer = client.send("c", &format!("320=d|{body}"));
        assert!(answer.len() == 1 && answer[0].ends_with(end), "{answer:?}");
    }
    let option = client.send("c", "320=d|321=0|55=ACME C10|");
    for field in ["|323=1|", "|541=20241004|", "|201=1|", "|202=10|", "|207=XTST|", "|15=USD|", "|561=1"] {
        assert!(option[0].contains(field), "{field} {option:?}");
    }
}

#[test]
fn a_reject_names_the_message_and_the_route_back() {
    let mut client = Client::logged_on(|_| {});
    let route = "115=a|116=b|144=c|128=d|129=e|145=f|";
    let text = "58=Required tag missing";
    assert_eq!(
        client.send("1", route),
        [format!("35=3|34=2|128=a|129=b|145=c|115=d|116=e|144=f|45=2|371=112|372=1|373=1|{text}")]
    );
    for (field, tag) in [
        ("0=x|", "371=0|"),
        ("-5=x|", "371=-5|"),
        ("4294967295=x|", ""),
        ("-4294967295=x|", ""),
        ("123456789=x|", ""),
        ("05=x|", ""),
        ("x=x|", ""),
    ] {
        let answer = client.send("1", &format!("112=t|{field}"));
        let number = client.next - 1;
        assert_eq!(answer.len(), 1, "{field}");
        if answer[0].starts_with("35=3|") {
            let start = format!("|45={number}|{tag}372=1|373=0|");
            assert!(answer[0].contains(&start), "{field} {answer:?}");
        }
    }
    let before = client.peer.session.counts();
    let unknown = client.send("ZZ", "11=o|");
    assert!(unknown[0].contains("|372=ZZ|379=o|380=3|58=Unsupported Message Type"), "{unknown:?}");
    let counts = client.peer.session.counts();
    assert!(before.rejects >= 2 && counts.rejects == before.rejects + 1, "{counts:?}");
    assert_eq!(counts.messages_out, before.messages_out + 1);
}

#[test]
fn the_service_takes_no_orders_before_it_is_ready() {
    let mut client = Client::logged_on(|_| {});
    client.peer.session.set_ready(false);
    let order = order("o", "ACME");
    let refused = client.send("D", &order);
    assert!(refused[0].ends_with("380=4|58=Orders are not accepted now"), "{refused:?}");
    client.peer.session.set_ready(true);
    client.peer.give("D", client.next, &order);
    assert!(client.peer.session.poll_command(NOW, &client.desk).is_some());
}

#[test]
fn a_repeated_request_that_was_answered_before_a_restart_is_left_out() {
    let store = SharedStore::new(NOW);
    let mut client = Client::connected(&store, |_| {});
    client.send("A", LOGON);
    client.peer.session.set_ready(false);
    assert!(client.send("D", &order("o", "ACME"))[0].starts_with("35=j|34=2|"));
    client.peer.session.set_ready(true);
    assert!(client.send("D", &order("n", "NOPE"))[0].starts_with("35=8|34=3|"));
    let next = client.next;
    let mut client = Client::connected(&store, |_| {});
    client.next = next;
    assert_eq!(client.send("A", LOGON), ["35=A|34=4|98=0|108=30"]);
    let again = |id| format!("43=Y|122=20270115-08:00:00|{}", order(id, "ACME"));
    for id in ["o", "n"] {
        assert_eq!(client.send("D", &again(id)), NOTHING, "{id}");
    }
    // With a new message the client has resent everything.
    assert_eq!(client.send("0", ""), NOTHING);
    client.peer.give("D", client.next, &again("o"));
    assert!(client.peer.session.poll_command(NOW, &client.desk).is_some());
}

pub(super) fn order(id: &str, symbol: &str) -> String {
    format!("11={id}|1=main|55={symbol}|54=1|60=20270115-08:00:00|38=1|40=1|")
}

#[test]
fn reports_without_an_event_have_ids_of_their_own() {
    let mut client = Client::logged_on(|_| {});
    let ids: BTreeSet<String> = (0..3)
        .map(|number| {
            let refused = client.send("D", &order(&format!("o{number}"), "NOPE"));
            let id = refused[0].split('|').find(|field| field.starts_with("17=")).unwrap();
            id.to_string()
        })
        .collect();
    assert_eq!(ids.len(), 3, "{ids:?}");
}

#[test]
fn a_field_out_of_place_is_reported_as_that_whatever_its_value() {
    let mut client = Client::logged_on(|settings| settings.validate = true);
    let answer = client.send("1", "112=t|43=X|");
    assert!(answer[0].contains("|371=43|372=1|373=14|"), "{answer:?}");
}

#[test]
fn changed_reference_data_counts_from_the_next_message_on() {
    let mut client = Client::logged_on(|_| {});
    assert!(client.send("D", &order("a", "NEW"))[0].contains("|58=unknown-security: "));
    let mut rows = sample::sound();
    rows.securities[0].symbol = "NEW".into();
    client.peer.session.set_reference(Arc::new(RefData::check(rows).unwrap()));
    client.peer.give("D", client.next, &order("b", "NEW"));
    assert!(client.peer.session.poll_command(NOW, &client.desk).is_some());
}
