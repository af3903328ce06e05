//! A client that connects to us: its logon, and its requests that concern no order.

use pitlane_engine::command::TradingSession;
use pitlane_engine::desk::{Desk, DeskSettings, IdBlock, Ticket};
use pitlane_engine::event::Tick;
use pitlane_engine::id::{ExchangeId, SecurityId, StrategyId};
use pitlane_engine::number::Qty;
use pitlane_engine::pages::LargePages;
use pitlane_engine::refdata::{RefData, Security, sample};
use pitlane_engine::time::TimeOfDay;

use super::*;
use crate::fix::market_data::MarketImage;
use crate::fix::positions::PositionRow;

struct Client {
    peer: Peer,
    desk: Desk,
    next: u64,
}

impl Client {
    /// Returns a client that has connected.
    fn connected(store: &SharedStore, change: impl FnOnce(&mut FixSessionSettings)) -> Client {
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

    fn logged_on(change: impl FnOnce(&mut FixSessionSettings)) -> Client {
        let mut client = Client::connected(&SharedStore::new(NOW), change);
        assert_eq!(client.send("A", LOGON), ["35=A|34=1|98=0|108=30"]);
        client
    }

    /// Sends a message. Returns what the session writes.
    fn send(&mut self, kind: &str, rest: &str) -> Vec<String> {
        self.peer.give(kind, self.next, rest);
        self.next += 1;
        self.poll()
    }

    fn poll(&mut self) -> Vec<String> {
        assert!(self.peer.session.poll_command(self.peer.now, &self.desk).is_none());
        self.peer.output()
    }
}

const LOGON: &str = "98=0|108=30|";
const NOTHING: [&str; 0] = [];

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

fn order(id: &str, symbol: &str) -> String {
    format!("11={id}|1=main|55={symbol}|54=1|60=20270115-08:00:00|38=1|40=1|")
}

/// What fills the output up to this many bytes leaves room for one more message.
const ALMOST_FULL: usize = OUTPUT_BYTES_HIGH - 1;

impl Client {
    /// Lets the session write Heartbeats of this many bytes, which the client does not take.
    fn fill(&mut self, bytes: usize) {
        let mut around = 0;
        while self.peer.session.unsent_bytes() < bytes {
            let left = bytes - self.peer.session.unsent_bytes();
            // The size of all these messages has the same number of digits.
            let len = if left < 1_000 { left - around } else { 500 };
            self.peer.give("1", self.next, &format!("112={}|", "x".repeat(len)));
            self.next += 1;
            let before = self.peer.session.unsent_bytes();
            assert!(self.peer.session.poll_command(self.peer.now, &self.desk).is_none());
            around = self.peer.session.unsent_bytes() - before - len;
        }
        assert_eq!(self.peer.session.unsent_bytes(), bytes);
    }

    /// Sends a request whose answer has several messages while there is room for one, and a Test
    /// Request. Returns the answer up to where the output is full, and the rest.
    fn parts(&mut self, kind: &str, rest: &str) -> (Vec<String>, Vec<String>) {
        self.fill(ALMOST_FULL);
        self.peer.give(kind, self.next, rest);
        self.peer.give("1", self.next + 1, "112=end|");
        self.next += 2;
        (without_heartbeats(self.poll()), self.poll())
    }
}

fn without_heartbeats(messages: Vec<String>) -> Vec<String> {
    messages.into_iter().filter(|message| !message.starts_with("35=0|")).collect()
}

/// Asserts that the messages have these fields, each in its turn.
fn assert_fields(messages: &[String], fields: &[&str]) {
    assert_eq!(messages.len(), fields.len(), "{messages:?}");
    for (message, field) in messages.iter().zip(fields) {
        assert!(format!("{message}|").contains(&format!("|{field}|")), "{field} {message}");
    }
}

#[test]
fn a_list_of_securities_comes_in_parts_as_the_client_takes_them() {
    let mut client = Client::logged_on(|_| {});
    let mut rows = sample::sound();
    let stock = rows.securities[0].clone();
    for number in 4..=60 {
        let symbol = format!("S{number}");
        rows.securities.push(Security { id: SecurityId(number), symbol, ..stock.clone() });
    }
    client.peer.session.set_reference(Arc::new(RefData::check(rows).unwrap()));
    let (first, rest) = client.parts("x", "320=l|559=4|");
    assert_fields(&first, &["322=l-1"]);
    assert!(first[0].contains("|560=0|393=60|893=N|146=25|55=ACME|"), "{first:?}");
    assert_fields(&rest, &["322=l-2", "322=l-3", "112=end"]);
    assert!(rest[0].contains("|893=N|146=25|55=S26|"), "{rest:?}");
    assert!(rest[1].contains("|893=Y|146=10|55=S51|"), "{rest:?}");
}

#[test]
fn the_status_of_all_orders_is_reported_as_the_client_takes_it() {
    let mut client = Client::logged_on(|_| {});
    for (place, id) in (0..).zip(["a", "b", "c"]) {
        client.peer.give("D", client.next, &order(id, "ACME"));
        client.next += 1;
        let request = client.peer.session.poll_command(NOW, &client.desk).unwrap();
        let Ticket { source, token, id: named, .. } = *request.ticket();
        // Its events find an order by its place, which is the token of its ticket.
        assert_eq!((source.session, token, named.as_str()), (1, place, id));
    }
    let (first, rest) = client.parts("AF", "584=m|585=7|");
    assert_fields(&first, &["11=a"]);
    assert!(first[0].ends_with("|584=m|911=3|912=N"), "{first:?}");
    assert_fields(&rest, &["11=b", "11=c", "112=end"]);
    assert!(rest[0].ends_with("|912=N") && rest[1].ends_with("|912=Y"), "{rest:?}");
}

#[test]
fn positions_are_reported_as_the_client_takes_them() {
    let mut client = Client::logged_on(|_| {});
    assert_eq!(client.send("AN", "710=p|"), NOTHING);
    let query = client.peer.session.poll_position_query().unwrap();
    assert!(client.peer.session.poll_position_query().is_none());
    let row = |whole| PositionRow {
        strategy: StrategyId::SERVER,
        security: SecurityId(1),
        qty: Qty::whole(whole).unwrap(),
        avg_price: None,
        market_price: None,
        unrealized: None,
    };
    client.fill(ALMOST_FULL);
    client.peer.session.handle_positions(query.token + 1, [row(9)].into());
    client.peer.session.handle_positions(query.token, [row(1), row(-2), row(3)].into());
    client.peer.give("1", client.next, "112=end|");
    client.next += 1;
    let first = without_heartbeats(client.poll());
    assert_fields(&first, &["721=p-1"]);
    assert!(first[0].contains("|727=3|") && first[0].contains("|704=1|705=0"), "{first:?}");
    let rest = client.poll();
    assert_fields(&rest, &["721=p-2", "721=p-3", "112=end"]);
    assert!(rest[0].contains("|704=0|705=2"), "{rest:?}");
    // The request is over, so another one is admitted.
    assert_eq!(client.send("AN", "710=p|"), NOTHING);
    assert_eq!(client.peer.session.poll_position_query().unwrap().token, query.token + 1);
}

#[test]
fn of_trading_sessions_that_waited_the_last_is_told() {
    let mut client = Client::logged_on(|_| {});
    client.send("g", "335=a|263=1|336=Home|");
    client.fill(OUTPUT_BYTES_HIGH);
    for state in [TradingSession::Continuous, TradingSession::Closed] {
        client.peer.session.handle_trading_session(ExchangeId(1), state);
        assert!(client.peer.session.poll_command(NOW, &client.desk).is_none());
        assert_eq!(client.peer.session.unsent_bytes(), OUTPUT_BYTES_HIGH);
    }
    assert_eq!(without_heartbeats(client.peer.output()), NOTHING);
    assert_fields(&client.poll(), &["340=3"]);
}

#[test]
fn market_data_waits_for_a_resend_and_for_the_client_to_take_most_of_the_output() {
    /// Unsent bytes at which market data waits.
    const WAITS_AT: usize = 64 * 1_024;
    let tick = Tick {
        security: SecurityId(1),
        bid: sample::price("10"),
        bid_size: Qty::whole(1).unwrap(),
        ..Tick::default()
    };
    let image = |seq, bid| MarketImage {
        seq,
        tick: Tick { bid: sample::price(bid), ..tick },
        book: None,
        is_book_settled: false,
    };
    let mut client = Client::logged_on(|_| {});
    assert_fields(&client.send("ZZ", ""), &["380=3"]);
    client.send("V", "262=a|263=1|264=1|265=1|267=1|269=0|146=1|55=ACME|");
    client.fill(WAITS_AT - 1);
    client.peer.session.handle_market_image(NOW, &image(1, "10"));
    assert_fields(&without_heartbeats(client.peer.output()), &["270=10"]);
    client.fill(WAITS_AT);
    client.peer.session.handle_market_image(NOW, &image(2, "11"));
    assert_eq!(without_heartbeats(client.peer.output()), NOTHING);
    assert_fields(&client.poll(), &["270=11"]);

    client.fill(ALMOST_FULL);
    client.peer.give("2", client.next, "7=1|16=0|");
    client.next += 1;
    let first = without_heartbeats(client.poll());
    assert_fields(&first, &["36=2"]);
    client.peer.session.handle_market_image(NOW, &image(3, "12"));
    assert_eq!(client.peer.output(), NOTHING, "the rest of the resend comes first");
    let rest = client.poll();
    assert!(rest.len() == 3 && rest[0].starts_with("35=j|34=2|43=Y|"), "{rest:?}");
    assert!(rest[1].starts_with("35=4|34=3|43=Y|") && rest[2].contains("|270=12|"), "{rest:?}");
}

#[test]
fn subscriptions_have_as_many_securities_as_the_settings_permit() {
    let mut client = Client::logged_on(|settings| settings.market_data_max = 2);
    let both = "264=1|265=1|267=1|269=0|146=2|55=ACME|55=EURUSD|";
    for _ in 0..3 {
        assert_eq!(client.send("V", &format!("262=a|263=1|{both}")), NOTHING);
        let one_more = client.send("V", "262=b|263=1|264=1|265=1|267=1|269=0|146=1|55=ACME C10|");
        assert_fields(&one_more, &["281=2"]);
        assert_eq!(client.send("V", "262=a|263=2|"), NOTHING);
    }
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
