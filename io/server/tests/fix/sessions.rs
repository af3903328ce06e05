//! Sessions over real sockets: logon, orders, passwords, addresses, several gateways, TLS, and the
//! stop of the service.

use pitlane_testkit::fix_client::{FixClient, ReceivedFix, now, tls};
use pitlane_testkit::service::{ServiceProcess, folder};

use crate::{address, fix, pitlane, start};

#[test]
fn an_order_is_entered_and_is_seen_by_others() {
    let service = start(&folder("fix-order"), &[]);
    let mut client = FixClient::new("CLIENT1");
    client.connect(fix(&service));
    client.log_on(true);
    client.order("o1", "AAPL", 1, 10, "150");
    assert!(client.receive(2));
    let reports: Vec<(&str, &str)> =
        client.received.iter().map(|report| (report.get(150), report.get(39))).collect();
    assert_eq!(reports, [("A", "A"), ("0", "0")]);
    client.send("G", &format!("11=o2|41=o1|55=AAPL|54=1|38=20|40=2|44=151|60={}|", now()));
    client.send("F", &format!("11=o3|41=o2|55=AAPL|54=1|60={}|", now()));
    assert!(client.receive(6));
    let last = &client.received[5];
    assert_eq!(
        (last.get(39), last.get(11), last.get(41), last.get(37)),
        ("4", "o3", "o2", "o1"),
        "{}",
        last.text()
    );
    client.send_message("5", "");
    assert_eq!(client.read().expect("a Logout is answered").get(35), "5");
    assert!(client.is_closed());
    service.signal("TERM");
    assert!(service.end().is_orderly());
}

#[test]
fn numbers_and_missed_reports_survive_an_orderly_restart() {
    let data = folder("fix-restart");
    let mut client = FixClient::new("KEEP7");
    let service = start(&data, &["feed.on=false"]);
    client.connect(fix(&service));
    client.log_on(false);
    client.order("a", "AAPL", 1, 10, "150");
    assert!(client.receive(2));
    service.signal("TERM");
    // The service sends Logout, and waits for ours.
    let goodbye = client.read().expect("we are logged out");
    assert_eq!((goodbye.get(35), goodbye.get(58)), ("5", "The service stops"));
    client.next_in += 1;
    client.send_message("5", "");
    assert!(client.is_closed());
    assert!(service.end().is_orderly());

    let service = start(&data, &["feed.on=false"]);
    client.connect(fix(&service));
    let logon = client.log_on(false);
    assert_eq!(logon.number(), client.next_in - 1, "numbers go on");
    client.send("F", &format!("11=b|41=a|55=AAPL|54=1|60={}|", now()));
    assert!(client.receive(4));
    assert_eq!((client.received[3].get(39), client.received[3].get(37)), ("4", "a"));
    // With a reset both sides begin with one.
    client.disconnect();
    client.connect(fix(&service));
    client.log_on(true);
    client.order("c", "AAPL", 1, 10, "150");
    assert!(client.receive(6));
    service.signal("KILL");
    service.end();
}

#[test]
fn a_report_made_while_the_client_was_away_is_sent_again() {
    let service = start(&folder("fix-away"), &["feed.on=false"]);
    let mut client = FixClient::new("KEEP2");
    client.connect(fix(&service));
    client.log_on(false);
    client.order("a", "AAPL", 1, 10, "150");
    // Disconnects before anything is received.
    client.disconnect();
    // The service has detected the disconnect when an order of another client is complete.
    let mut other = FixClient::new("KEEP3");
    other.connect(fix(&service));
    other.log_on(false);
    other.order("x", "AAPL", 1, 10, "150");
    assert!(other.receive(2));
    client.connect(fix(&service));
    client.log_on(false);
    client.settle();
    let report: Vec<&str> = client.received.iter().map(|report| report.get(150)).collect();
    assert_eq!(report, ["A", "0"]);
    service.signal("KILL");
    service.end();
}

#[test]
fn passwords_and_addresses_are_checked() {
    let service = start(&folder("fix-password"), &[]);
    let logon = "98=0|108=30|553=me|554=";
    for (password, answer) in [("guess", "5"), ("sesame", "A")] {
        let mut client = FixClient::new("SECRET");
        client.connect(fix(&service));
        client.send_message("A", &format!("{logon}{password}|"));
        let report = client.read().expect("an answer");
        assert_eq!((report.get(35), report.get(34)), (answer, "1"), "{}", report.text());
        assert!(answer == "A" || client.is_closed());
    }
    let mut far = FixClient::new("FAR");
    far.connect(fix(&service));
    far.send_message("A", "98=0|108=30|");
    assert!(far.is_closed());
    assert!(far.received.is_empty());
    service.signal("KILL");
    service.end();
}

/// Returns the type of the response to a Logon with this name and secret.
fn answer_to(service: &ServiceProcess, client: &str, login: &str, secret: &str) -> String {
    let mut client = FixClient::new(client);
    client.connect(fix(service));
    let shown = if login.is_empty() { String::new() } else { format!("553={login}|554={secret}|") };
    client.send_message("A", &format!("98=0|108=30|141=Y|{shown}"));
    let report = client.read().expect("an answer");
    assert_eq!(report.get(34), "1", "who is refused leaves no trace: {}", report.text());
    let answer = report.get(35).to_string();
    if answer == "A" {
        client.send_message("5", "");
    }
    assert!(client.is_closed());
    answer
}

/// Where login was required, a client that knew the CompIDs of a session without a password could
/// once trade.
#[test]
fn where_login_is_required_a_session_without_a_password_needs_a_user_or_token() {
    let data = folder("fix-books");
    let tokens = data.join("tokens");
    let file = tokens.to_str().expect("a path in ASCII");
    let token = |name: &str, role: &str, strategies: &str| {
        let words = ["token", "create", name, "--role", role, "--strategies", strategies, "--file", file];
        pitlane(&words).trim_end().to_string()
    };
    let trader = token("trader", "trade", "*");
    let admin = token("admin", "admin", "*");
    let reader = token("reader", "read", "*");
    let some = token("some", "trade", "PAIRS");
    let service = start(&data, &["auth.mode=required", &format!("auth.tokens_file={file}")]);
    for (client, login, secret, answer) in [
        ("CLIENT1", "", "", "5"),
        ("CLIENT1", "trader", "guess", "5"),
        ("CLIENT1", "trader", admin.as_str(), "5"),
        ("CLIENT1", "reader", reader.as_str(), "5"),
        // It could name any strategy in its orders.
        ("CLIENT1", "some", some.as_str(), "5"),
        ("CLIENT1", "trader", trader.as_str(), "A"),
        ("CLIENT1", "admin", admin.as_str(), "A"),
        ("KEEP7", "", "", "5"),
        ("KEEP7", "trader", trader.as_str(), "A"),
        // Only its own password is accepted.
        ("SECRET", "trader", trader.as_str(), "5"),
        ("SECRET", "me", "sesame", "A"),
    ] {
        assert_eq!(answer_to(&service, client, login, secret), answer, "{client} as {login}");
    }
    service.signal("KILL");
    service.end();
}

#[test]
fn a_revoked_login_ends_the_session_it_opened() {
    let data = folder("fix-struck");
    let tokens = data.join("tokens");
    let file = tokens.to_str().expect("a path in ASCII");
    let token = |name: &str| {
        pitlane(&["token", "create", name, "--role", "trade", "--file", file]).trim_end().to_string()
    };
    let (stays, goes) = (token("stays"), token("goes"));
    let service = start(&data, &["auth.mode=required", &format!("auth.tokens_file={file}")]);
    let mut clients = [("KEEP1", "stays", stays), ("KEEP2", "goes", goes)].map(|(name, login, secret)| {
        let mut client = FixClient::new(name);
        client.connect(fix(&service));
        client.send_message("A", &format!("98=0|108=30|553={login}|554={secret}|"));
        assert_eq!(client.read().expect("an answer").get(35), "A");
        client.next_in += 1;
        client
    });
    pitlane(&["token", "revoke", "goes", "--file", file]);
    service.signal("HUP");
    let [stays, goes] = &mut clients;
    let logout = goes.read().expect("a Logout");
    assert_eq!((logout.get(35), logout.get(58)), ("5", "The login is no longer valid"));
    goes.send_message("5", "");
    assert!(goes.is_closed());
    stays.order("o1", "AAPL", 1, 10, "100");
    assert!(stays.receive(2), "the other one goes on");
    service.signal("KILL");
    service.end();
}

#[test]
fn guessing_at_the_password_of_a_session_is_locked_out() {
    let service = start(&folder("fix-guess"), &[]);
    // After five guesses the right password comes too soon. On a very slow machine it may not, and
    // the test starts over.
    let is_locked = |_| {
        (0..5).for_each(|_| assert_eq!(answer_to(&service, "SECRET", "me", "guess"), "5"));
        answer_to(&service, "SECRET", "me", "sesame") == "5"
    };
    assert!((0..20).any(is_locked));
    assert_eq!(answer_to(&service, "CLIENT1", "", ""), "A", "others come in");
    while answer_to(&service, "SECRET", "me", "sesame") == "5" {}
    service.signal("KILL");
    service.end();
}

#[test]
fn open_orders_are_cancelled_when_their_session_is_lost() {
    let service = start(&folder("fix-leaves"), &["feed.on=false"]);
    let mut client = FixClient::new("LEAVES");
    client.connect(fix(&service));
    client.log_on(true);
    client.order("a", "AAPL", 1, 10, "150");
    assert!(client.receive(2));
    client.disconnect();
    // Until the cancel is complete, the order is open and reported as such after each Logon.
    loop {
        client.connect(fix(&service));
        (client.next_out, client.next_in) = (1, 2);
        client.send_message("A", "98=0|108=30|141=Y|");
        // While the last connection is not known to be closed, a second one is refused.
        if client.read().is_err() {
            continue;
        }
        let before = client.received.len();
        client.settle();
        if client.received.len() == before {
            break;
        }
        assert_eq!(client.received[before].get(37), "a");
        client.disconnect();
    }
    service.signal("KILL");
    service.end();
}

#[test]
fn a_second_logon_is_refused_and_the_first_session_continues() {
    let service = start(&folder("fix-second"), &[]);
    let mut first = FixClient::new("KEEP5");
    first.connect(fix(&service));
    first.log_on(false);
    let mut second = FixClient::new("KEEP5");
    second.connect(fix(&service));
    second.send_message("A", "98=0|108=30|");
    assert!(second.is_closed());
    first.order("a", "AAPL", 1, 10, "150");
    assert!(first.receive(2));
    service.signal("KILL");
    service.end();
}

/// Connects and sends a Logon whose answer is not read yet.
fn ask_for_session(service: &ServiceProcess, name: &str) -> FixClient {
    let mut client = FixClient::new(name);
    client.connect(fix(service));
    client.send_message("A", "98=0|108=30|");
    client
}

#[test]
fn a_second_connection_does_not_replace_a_live_one() {
    let service = start(&folder("fix-replace-live"), &[]);
    let mut first = FixClient::new("LIVE");
    first.connect(fix(&service));
    first.log_on(false);
    let mut second = ask_for_session(&service, "LIVE");
    let test_request = first.read().expect("the first connection is asked");
    assert_eq!(test_request.get(35), "1", "{}", test_request.text());
    assert!(ask_for_session(&service, "LIVE").is_closed(), "one connection at a time waits");
    first.next_in += 1;
    first.send_message("0", &format!("112={}|", test_request.get(112)));
    assert!(second.is_closed(), "the first connection has answered");
    first.order("a", "AAPL", 1, 10, "150");
    assert!(first.receive(2));
    service.signal("KILL");
    service.end();
}

#[test]
fn a_second_connection_replaces_a_silent_one() {
    let service = start(&folder("fix-replace-silent"), &[]);
    let mut first = FixClient::new("SILENT");
    first.connect(fix(&service));
    first.log_on(false);
    let mut second = ask_for_session(&service, "SILENT");
    let answer = second.read().expect("the Logon is answered");
    assert_eq!(answer.get(35), "A", "{}", answer.text());
    assert_eq!(first.read().expect("it was asked").get(35), "1");
    assert!(first.is_closed());
    // A client that comes again after its connection was lost gets the session, too.
    second.disconnect();
    let mut third = FixClient::new("SILENT");
    third.connect(fix(&service));
    third.log_on(false);
    service.signal("KILL");
    service.end();
}

#[test]
fn a_session_stays_on_one_gateway_whichever_accepts_it() {
    let data = folder("fix-gateways");
    let settings = [
        "topology.layout=dedicated",
        "topology.gateways=3",
        "topology.shards=2",
        "feed.on=false",
        "demo.on=false",
    ];
    let mut clients: Vec<FixClient> = (0..12).map(|at| FixClient::new(&format!("KEEP{at}"))).collect();
    for round in 0..2 {
        let service = start(&data, &settings);
        for client in &mut clients {
            client.connect(fix(&service));
            client.log_on(false);
        }
        for (at, client) in clients.iter_mut().enumerate() {
            for n in 0..20 {
                client.order(&format!("{round}-{n}"), ["AAPL", "MSFT"][(at + n) % 2], 1, 1, "100");
            }
        }
        for client in &mut clients {
            assert!(client.receive(40 * (round + 1)), "{}", client.received.len());
            let twice = client.received.iter().filter(|report| report.get(150) == "A").count();
            assert_eq!(twice, 20 * (round + 1));
        }
        service.signal("TERM");
        for client in &mut clients {
            assert_eq!(client.read().expect("a Logout").get(35), "5");
            client.next_in += 1;
            client.send_message("5", "");
            assert!(client.is_closed());
        }
        let ended = service.end();
        assert!(ended.is_orderly(), "{}\n{}", ended.output, ended.log_text);
    }
}

#[test]
fn fix_works_over_tls() {
    let data = folder("fix-tls");
    let service = start(&data, &["fix.tls_listen=127.0.0.1:0"]);
    let mut client = FixClient::new("KEEP9");
    client.take(tls(address(&service, "fix+tls"), &data));
    client.log_on(false);
    client.order("a", "AAPL", 1, 10, "150");
    assert!(client.receive(2));
    service.signal("KILL");
    service.end();
}

/// Once both were executed, and the reports of the second had the id of the first: its own was
/// never answered.
#[test]
fn of_two_replacements_at_once_the_second_is_refused() {
    let service = start(&folder("fix-two-replacements"), &["feed.on=false"]);
    let mut client = FixClient::new("CLIENT1");
    client.connect(fix(&service));
    client.log_on(true);
    client.order("a", "AAPL", 1, 10, "100");
    assert!(client.receive(2), "it rests");
    let mut both = Vec::new();
    for (id, qty) in [("b", 15), ("c", 16)] {
        let body = format!("11={id}|41=a|55=AAPL|54=1|38={qty}|40=2|44=100|59=1|60={}|", now());
        both.extend(client.frame("G", client.next_out, "", &body));
        client.next_out += 1;
    }
    client.write(&both);
    assert!(client.receive(5), "one is done, the other refused");
    client.settle();
    let report = |kind: &str, id: &str| {
        let of_it = |message: &&ReceivedFix| message.get(35) == kind && message.get(11) == id;
        client.received[2..].iter().filter(of_it).count()
    };
    assert_eq!((report("8", "b"), report("9", "c"), client.received.len()), (2, 1, 5));
    service.signal("KILL");
    service.end();
}
