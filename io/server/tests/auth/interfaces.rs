//! Every login at every action of STOMP and of FIX, over each of their transports. REST has its own
//! table, `routes`, which `login` covers; the page uses both and no more.

use std::collections::BTreeSet;

use pitlane_protocols::fix::dictionary;
use pitlane_protocols::fix::version::FixVersion;
use pitlane_protocols::stomp::topic::{FAMILIES, Naming};
use pitlane_testkit::fix_client::{FixClient, now};
use pitlane_testkit::http_client::Response;
use pitlane_testkit::secured_service::{NAMES, PASSWORD, SecuredService, bearer, create_token};
use pitlane_testkit::stomp_client::{StompClient, header};

use crate::wires::{self, FIX, LISTENERS, STOMP};

/// Name, role and strategies of each login. The first column of the tables is a client without a
/// login.
const LOGINS: [(&str, &str, &str); 6] = [
    ("read-all", "read", "*"),
    ("trade-all", "trade", "*"),
    ("admin-all", "admin", "*"),
    ("read-pairs", "read", "PAIRS"),
    ("trade-pairs", "trade", "PAIRS"),
    ("admin-pairs", "admin", "PAIRS"),
];

/// What each login may do, the client without login first: `+` the action is executed, `-` it is
/// refused and the session ends. A destination without a slash is a topic.
const STOMP_ACTIONS: [(&str, &str); 59] = [
    ("CONNECT", "-++++++"),
    ("SUBSCRIBE tick.1", "-++++++"),
    ("SUBSCRIBE book.1", "-++++++"),
    ("SUBSCRIBE depth.1", "-++++++"),
    ("SUBSCRIBE orders.1.book", "-++++++"),
    ("SUBSCRIBE trade.1", "-++++++"),
    ("SUBSCRIBE status.1", "-++++++"),
    ("SUBSCRIBE bar.1.1m", "-++++++"),
    // Topics of strategies: its own, those of others, and under other names of the same.
    ("SUBSCRIBE pitlane.PAIRS.x", "-++++++"),
    ("SUBSCRIBE pitlane.MOMENTUM.x", "-+++---"),
    ("SUBSCRIBE the service.PAIRS.x", "-++++++"),
    ("SUBSCRIBE the service.MOMENTUM.x", "-+++---"),
    ("SUBSCRIBE order.PAIRS.x", "-++++++"),
    ("SUBSCRIBE order.MOMENTUM.x", "-+++---"),
    ("SUBSCRIBE order.MOMENTUM.>", "-+++---"),
    ("SUBSCRIBE order.MOMENTUM", "-+++---"),
    ("SUBSCRIBE order.PAIRS%2E.x", "-+++---"),
    ("SUBSCRIBE position.PAIRS.1", "-++++++"),
    ("SUBSCRIBE position.MOMENTUM.1", "-+++---"),
    ("SUBSCRIBE position.MOMENTUM.*", "-+++---"),
    ("SUBSCRIBE transaction.PAIRS", "-++++++"),
    ("SUBSCRIBE transaction.MOMENTUM", "-+++---"),
    ("SUBSCRIBE cash-balance.PAIRS.USD", "-++++++"),
    ("SUBSCRIBE cash-balance.MOMENTUM.USD", "-+++---"),
    // Every login may use wildcards; the next test checks what they deliver.
    ("SUBSCRIBE >", "-++++++"),
    ("SUBSCRIBE order.>", "-++++++"),
    ("SUBSCRIBE order.*.x", "-++++++"),
    ("SUBSCRIBE *.MOMENTUM.x", "-++++++"),
    // Topics that every login may see, whatever its strategies.
    ("SUBSCRIBE subscription.MOMENTUM.1", "-++++++"),
    ("SUBSCRIBE session.NATS", "-++++++"),
    ("SUBSCRIBE lifecycle.MOMENTUM", "-++++++"),
    ("SUBSCRIBE log-event.error", "-++++++"),
    ("SUBSCRIBE generic-event.x", "-++++++"),
    ("SUBSCRIBE /queue/x", "-------"),
    // Events between strategies are the only messages that clients send.
    ("SEND generic-event.x", "--++-++"),
    ("TRANSACT generic-event.x", "--++-++"),
    ("SEND generic-event.*", "-------"),
    ("SEND generic-event.x.y", "-------"),
    ("SEND generic-event", "-------"),
    ("SEND tick.1", "-------"),
    ("SEND book.1", "-------"),
    ("SEND depth.1", "-------"),
    ("SEND orders.1.book", "-------"),
    ("SEND trade.1", "-------"),
    ("SEND status.1", "-------"),
    ("SEND bar.1.1m", "-------"),
    ("SEND pitlane.PAIRS.x", "-------"),
    ("SEND the service.PAIRS.x", "-------"),
    ("SEND order.PAIRS.x", "-------"),
    ("TRANSACT order.PAIRS.x", "-------"),
    ("SEND position.PAIRS.1", "-------"),
    ("SEND transaction.PAIRS", "-------"),
    ("SEND cash-balance.PAIRS.USD", "-------"),
    ("SEND subscription.PAIRS.1", "-------"),
    ("SEND session.NATS", "-------"),
    ("SEND lifecycle.PAIRS", "-------"),
    ("SEND log-event.error", "-------"),
    ("SEND /queue/x", "-------"),
    ("SEND x", "-------"),
];

/// Logins that may log on over FIX, where a session has no password: its orders may name any
/// strategy.
const FIX_LOGON: &str = "--++---";

/// Starts the service with its listeners, and returns the secret of each login.
fn start(name: &str) -> (SecuredService, Vec<String>) {
    let secured = SecuredService::start(name, &[&LISTENERS[..], &["venue.self_trade=allow"]].concat());
    let make = |(name, role, strategies)| create_token(&secured.tokens, name, role, strategies);
    let secrets: Vec<String> = LOGINS.into_iter().map(make).collect();
    secured.service.signal("HUP");
    while secured.ask("GET", "/version", &bearer(&secrets[LOGINS.len() - 1])).status != 200 {}
    (secured, secrets)
}

/// Returns a client that was accepted.
fn connects(wire: (&str, bool), secured: &SecuredService, login: &str, secret: &str) -> Option<StompClient> {
    let mut client = wires::stomp(wire, secured);
    client.send_message(&format!("CONNECT|accept-version:1.2|host:x|login:{login}|passcode:{secret}||"));
    client.receive().is_some_and(|answer| answer.starts_with("CONNECTED")).then_some(client)
}

fn connect(wire: (&str, bool), secured: &SecuredService, login: &str, secret: &str) -> StompClient {
    connects(wire, secured, login, secret).expect("a login that we know")
}

/// Returns whether an action was executed; if not, it was refused with its reason, and the session
/// is over.
fn is_done(client: &mut StompClient, action: &str) -> bool {
    let (verb, name) = action.split_once(' ').unwrap_or((action, ""));
    let destination = if name.starts_with('/') { name.to_string() } else { format!("/topic/{name}") };
    match verb {
        "CONNECT" => client.send_message("CONNECT|accept-version:1.2|host:x|receipt:r||"),
        "SUBSCRIBE" => {
            client.send_message(&format!("SUBSCRIBE|id:1|destination:{destination}|receipt:r||"));
        }
        "SEND" => client.send_message(&format!("SEND|destination:{destination}|receipt:r||1")),
        "TRANSACT" => {
            client.send_message("BEGIN|transaction:t||");
            client.send_message(&format!("SEND|destination:{destination}|transaction:t||1"));
            client.send_message("COMMIT|transaction:t|receipt:r||");
        }
        other => panic!("{other} is no action"),
    }
    let answer = client.receive().expect("an answer");
    if answer.starts_with("RECEIPT|receipt-id:r|") {
        return true;
    }
    let why = header(&answer, "message").unwrap_or_else(|| panic!("{action}: {answer}"));
    let reasons = [
        "login or passcode is wrong",
        "the first frame must be CONNECT or STOMP",
        "not permitted to read this destination",
        "SEND is not permitted",
        "a destination begins with /topic/",
    ];
    assert!(reasons.contains(&why), "{action}: {answer}");
    assert_eq!(client.receive(), None, "{action}: a refused client is disconnected");
    false
}

#[test]
fn every_login_may_do_over_stomp_what_the_table_says_and_nothing_else() {
    let naming = Naming::default();
    for family in FAMILIES.into_iter().chain([naming.prefix()]) {
        for verb in ["SUBSCRIBE", "SEND"] {
            let begin = format!("{verb} {family}.");
            let is_tried = STOMP_ACTIONS.iter().any(|(action, _)| action.starts_with(&begin));
            assert!(is_tried, "{begin} is not in the table");
        }
    }
    let (secured, secrets) = start("stomp-roles");
    for wire in STOMP {
        for (action, granted) in STOMP_ACTIONS {
            let tried = is_done(&mut wires::stomp(wire, &secured), action);
            assert_eq!(tried, granted.starts_with('+'), "{action} without a login over {}", wire.0);
        }
        for (at, ((login, ..), secret)) in LOGINS.iter().zip(&secrets).enumerate() {
            let mut client = None;
            for (action, granted) in STOMP_ACTIONS {
                let is_granted = granted.as_bytes()[at + 1] == b'+';
                let here = client.get_or_insert_with(|| connect(wire, &secured, login, secret));
                // A connected client has been accepted.
                let tried = action == "CONNECT" || is_done(here, action);
                assert_eq!(tried, is_granted, "{action} by {login} over {}", wire.0);
                if !tried {
                    client = None;
                } else if action.starts_with("SUBSCRIBE") {
                    here.send_message("UNSUBSCRIBE|id:1|receipt:u||");
                    here.receive_until("RECEIPT|receipt-id:u");
                }
            }
        }
    }
    secured.end();
}

fn order(secured: &SecuredService, secret: &str, strategy: &str, side: &str, id: &str) {
    let body = format!(
        r#"{{"securityId":1,"side":"{side}","quantity":5,"limit":100,"strategyName":"{strategy}","intId":"{id}"}}"#
    );
    let mut client = secured.connect();
    client.send(&format!(
        "POST /rest/execution/order/limit HTTP/1.1\r\nHost: localhost\r\n{}Content-Type: application/json\r\n\
         Content-Length: {}\r\n\r\n{body}",
        bearer(secret),
        body.len()
    ));
    let Response { status, body, .. } = client.receive(false);
    assert_eq!(status, 200, "{body}");
}

/// Two strategies trade with each other. One shard emits all events, so a subscriber that receives
/// the last order of PAIRS has received, or was not sent, all earlier events of MOMENTUM.
#[test]
fn wildcards_deliver_only_the_strategies_of_the_login() {
    let (secured, secrets) = start("stomp-wildcards");
    let patterns = [">", "*.>", "*.*.>", "order.>", "*.MOMENTUM.>", "*.*.m-bought"];
    let mut clients = Vec::new();
    for wire in STOMP {
        for ((login, _, strategies), secret) in LOGINS.iter().zip(&secrets) {
            let mut client = connect(wire, &secured, login, secret);
            for pattern in patterns {
                client.subscribe(pattern, pattern);
            }
            clients.push((client, *strategies == "*"));
        }
    }
    let admin = &secrets[2];
    order(&secured, admin, "PAIRS", "SELL", "p-sold");
    order(&secured, admin, "MOMENTUM", "BUY", "m-bought");
    order(&secured, admin, "PAIRS", "SELL", "p-last");
    for (client, sees_all) in &mut clients {
        let mut received = BTreeSet::new();
        loop {
            let message = client.receive_until("MESSAGE");
            let topic = header(&message, "destination").unwrap().strip_prefix("/topic/").unwrap();
            let (family, rest) = topic.split_once('.').unwrap();
            let strategy = rest.split('.').next().unwrap();
            received.insert(format!("{family} {strategy}"));
            if topic == "order.PAIRS.p-last" {
                break;
            }
        }
        for family in ["order", "pitlane", "position", "transaction", "cash-balance"] {
            assert!(received.contains(&format!("{family} PAIRS")), "{family}: {received:?}");
            let of_others = received.contains(&format!("{family} MOMENTUM"));
            assert_eq!(of_others, *sees_all, "{family}: {received:?}");
        }
    }
    drop(clients);
    secured.end();
}

/// All types of application messages.
fn message_types() -> impl Iterator<Item = String> {
    let letters = || ('0'..='z').filter(char::is_ascii_alphanumeric);
    let pairs = letters().flat_map(move |first| letters().map(move |second| format!("{first}{second}")));
    let all = letters().map(String::from).chain(pairs);
    // Session messages; and Business Message Reject, which is a response.
    let session = ["0", "1", "2", "3", "4", "5", "A", "j"];
    all.filter(move |kind| {
        dictionary::is_msg_type(FixVersion::Fix44, kind.as_bytes()) && !session.contains(&kind.as_str())
    })
}

/// Sends a message of this type, as far as it can be valid.
fn send_kind(client: &mut FixClient, kind: &str) {
    let about = format!("55=AAPL|54=1|60={}|", now());
    match kind {
        "D" => {
            let id = client.next_out;
            client.send_message(kind, &format!("11=d{id}|38=1|40=2|44=1|59=1|7002=MOMENTUM|{about}"))
        }
        "F" => client.send_message(kind, &format!("11=f|41=none|{about}")),
        "G" => client.send_message(kind, &format!("11=g|41=none|38=1|40=2|44=1|{about}")),
        _ => client.send_message(kind, ""),
    };
}

#[test]
fn every_login_may_do_over_fix_what_the_table_says_and_nothing_else() {
    let (secured, secrets) = start("fix-roles");
    for wire in FIX {
        for kind in message_types() {
            let mut no_user = wires::fix(wire, &secured, "CLIENT1");
            send_kind(&mut no_user, &kind);
            assert!(no_user.read().is_err(), "{kind} without a login is answered over {}", wire.0);
        }
        let no_user = ("", &String::new());
        let known = LOGINS.iter().map(|(login, ..)| *login).zip(&secrets);
        for (at, (login, secret)) in std::iter::once(no_user).chain(known).enumerate() {
            let mut client = wires::fix(wire, &secured, &format!("BENCH{}", wire.0.len() * 10 + at));
            let shown = if login.is_empty() { String::new() } else { format!("553={login}|554={secret}|") };
            client.send_message("A", &format!("98=0|108=30|141=Y|{shown}"));
            let answer = client.read().unwrap();
            let is_in = FIX_LOGON.as_bytes()[at] == b'+';
            assert_eq!(answer.get(35), if is_in { "A" } else { "5" }, "{login}: {}", answer.text());
            if !is_in {
                assert!(client.is_closed(), "{login} is sent away");
                continue;
            }
            client.next_in += 1;
            for kind in message_types() {
                send_kind(&mut client, &kind);
                let answer = client.next_message().expect("it goes on");
                let expected = match kind.as_str() {
                    "D" => "8",
                    "F" | "G" => "9",
                    _ => "j",
                };
                assert_eq!(answer.get(35), expected, "{kind} by {login}: {}", answer.text());
                if kind == "D" {
                    assert_eq!(answer.get(39), "A", "{}", answer.text());
                    assert_eq!(client.next_message().expect("it is taken").get(39), "0");
                }
            }
        }
    }
    secured.end();
}

#[test]
fn guessing_at_a_login_over_stomp_is_locked_out_and_other_logins_work() {
    let (secured, secrets) = start("stomp-guess");
    // Each over its own transport: a user that was accepted over one is cached there.
    for (wire, victim) in STOMP.into_iter().zip(NAMES) {
        let is_in = |login: &str, secret: &str| connects(wire, &secured, login, secret).is_some();
        // After five guesses the right password comes too soon. On a very slow machine it may not,
        // and the test starts over.
        let is_locked = |_| {
            (0..5).for_each(|_| assert!(!is_in(victim, "guess")));
            !is_in(victim, PASSWORD)
        };
        assert!((0..20).any(is_locked), "guessing over {} is never locked out", wire.0);
        assert!(is_in("admin-pairs", &secrets[5]), "others come in over {}", wire.0);
    }
    // The wait ends.
    while connects(STOMP[0], &secured, NAMES[0], PASSWORD).is_none() {}
    secured.end();
}
