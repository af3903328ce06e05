//! Password guessing, over every protocol and from several addresses: only the guesser is slowed
//! down.

use pitlane_testkit::fix_client::FixClient;
use pitlane_testkit::http_client::{HttpClient, Response};
use pitlane_testkit::loopback::connect_from;
use pitlane_testkit::secured_service::{PASSWORD, SecuredService, basic, bearer};
use pitlane_testkit::stomp_client::StompClient;
use pitlane_testkit::web_socket::WebSocket;

/// Address of the users: the last part of 127.0.0.x.
const GOOD: u8 = 1;
const GUESSER: u8 = 2;
const CROWD: u8 = 3;

pub(crate) fn http(secured: &SecuredService, from: u8, method: &str, path: &str, headers: &str) -> Response {
    let mut client = HttpClient::new(connect_from(from, secured.service.address()));
    client
        .send(&format!("{method} {path} HTTP/1.1\r\nHost: localhost\r\n{headers}Content-Length: 0\r\n\r\n"));
    client.receive(false)
}

pub(crate) fn over_stomp(secured: &SecuredService, from: u8, login: &str, secret: &str) -> bool {
    log_in(StompClient::new(Box::new(connect_from(from, secured.at("stomp")))), login, secret)
}

pub(crate) fn over_websocket(secured: &SecuredService, from: u8, login: &str, secret: &str) -> bool {
    let address = secured.at("http");
    let wire = WebSocket::open(Box::new(connect_from(from, address)), address, "").0;
    log_in(StompClient::new(Box::new(wire)), login, secret)
}

fn log_in(mut client: StompClient, login: &str, secret: &str) -> bool {
    client.send_message(&format!("CONNECT|accept-version:1.2|host:x|login:{login}|passcode:{secret}||"));
    client.receive().is_some_and(|answer| answer.starts_with("CONNECTED"))
}

pub(crate) fn over_fix(secured: &SecuredService, from: u8, login: &str, secret: &str) -> bool {
    let mut client = FixClient::new("CLIENT1");
    client.take(Box::new(connect_from(from, secured.at("fix"))));
    client.send_message("A", &format!("98=0|108=30|141=Y|553={login}|554={secret}|"));
    let is_in = client.read().expect("a Logon is answered").get(35) == "A";
    if is_in {
        client.send_message("5", "");
        assert!(client.is_closed());
    }
    is_in
}

/// Guesses at a login over every protocol until the guesser is locked out.
fn guess(secured: &SecuredService, login: &str) {
    for _ in 0..3 {
        assert!(!over_stomp(secured, GUESSER, login, "guess"));
        assert!(!over_websocket(secured, GUESSER, login, "guess"));
        assert!(!over_fix(secured, GUESSER, login, "guess"));
    }
    let answer = || http(secured, GUESSER, "GET", "/version", &basic(login, "guess"));
    let locked = std::iter::repeat_with(answer).take(20).find(|response| response.status != 401);
    let locked = locked.expect("guessing must end");
    assert_eq!((locked.status, locked.code().as_str()), (429, "locked-out"));
}

/// One guess a minute once kept any user out, on every protocol and from the kill switch.
#[test]
fn a_guesser_keeps_no_user_out_on_any_protocol() {
    let secured = SecuredService::start("guess-elsewhere", &[]);
    guess(&secured, "admin");
    // The user was never here before, and is accepted at the first attempt.
    assert!(over_stomp(&secured, GOOD, "admin", PASSWORD));
    assert!(over_websocket(&secured, GOOD, "admin", PASSWORD));
    assert!(over_fix(&secured, GOOD, "admin", PASSWORD));
    let kill_switch = "/rest/ext/kill-switch";
    assert_eq!(http(&secured, GOOD, "POST", kill_switch, &basic("admin", PASSWORD)).status, 200);
    assert_eq!(http(&secured, GOOD, "DELETE", kill_switch, &basic("admin", PASSWORD)).status, 200);
    // Even at the address of the guesser: a token, and another user.
    assert_eq!(http(&secured, GUESSER, "GET", "/version", &bearer(&secured.token[2])).status, 200);
    assert!(over_stomp(&secured, GUESSER, "admin-robot", &secured.token[2]));
    assert!(over_websocket(&secured, GUESSER, "admin-robot", &secured.token[2]));
    assert!(over_fix(&secured, GUESSER, "admin-robot", &secured.token[2]));
    assert_eq!(http(&secured, GUESSER, "GET", "/version", &basic("trade", PASSWORD)).status, 200);
    secured.end();
}

#[test]
fn many_addresses_that_guess_at_one_login_are_slowed_down_together() {
    let secured = SecuredService::start("guess-together", &[]);
    assert_eq!(http(&secured, GOOD, "GET", "/version", &basic("admin", PASSWORD)).status, 200);
    // Four failures of an address are not enough to slow it down by itself.
    let guesses =
        (0..40).map(|n| http(&secured, 100 + n / 4, "GET", "/version", &basic("admin", "guess")).status);
    let statuses: Vec<u16> = guesses.collect();
    assert!(statuses[..19].iter().all(|status| *status == 401), "{statuses:?}");
    assert!(statuses[20..].contains(&429), "{statuses:?}");
    let status = http(&secured, GOOD, "GET", "/version", &basic("admin", PASSWORD)).status;
    assert_eq!(status, 200, "an address from which the login has succeeded is not slowed down");
    secured.end();
}

/// A hundred connections with made-up logins once made an admin's token wait for 503.
#[test]
fn a_token_and_another_address_do_not_wait_behind_made_up_logins() {
    let secured = SecuredService::start("guess-crowd", &[]);
    let mut clients: Vec<HttpClient> = (0..200)
        .map(|n| {
            let mut client = HttpClient::new(connect_from(CROWD, secured.service.address()));
            let guess = basic(&format!("user{n}"), "guess");
            client.send(&format!("GET /version HTTP/1.1\r\nHost: localhost\r\n{guess}\r\n"));
            client
        })
        .collect();
    // None of these was used before.
    for token in &secured.token {
        assert_eq!(http(&secured, GOOD, "GET", "/version", &bearer(token)).status, 200);
    }
    assert_eq!(http(&secured, CROWD, "GET", "/version", &bearer(&secured.token[2])).status, 200);
    assert!(over_stomp(&secured, GOOD, "admin-robot", &secured.token[2]));
    assert!(over_fix(&secured, GOOD, "admin-robot", &secured.token[2]));
    assert_eq!(http(&secured, GOOD, "GET", "/version", &basic("admin", PASSWORD)).status, 200);
    assert!(over_websocket(&secured, GOOD, "trade", PASSWORD));
    let answers: Vec<u16> = clients.iter_mut().map(|client| client.receive(false).status).collect();
    assert!(answers.iter().all(|status| [401, 503].contains(status)), "{answers:?}");
    assert!(answers.contains(&503), "the address that fills the queue gets that answer: {answers:?}");
    secured.end();
}

/// All clients that read warnings once learned which logins were tried, and from where.
#[test]
fn warnings_do_not_name_the_login_that_failed() {
    let secured = SecuredService::start("guess-told", &[]);
    let mut reader = StompClient::new(Box::new(connect_from(GOOD, secured.at("stomp"))));
    reader.send_message(&format!(
        "CONNECT|accept-version:1.2|host:x|login:read-robot|passcode:{}||",
        secured.token[0]
    ));
    assert!(reader.receive().expect("an answer").starts_with("CONNECTED"));
    reader.send_message("SUBSCRIBE|id:1|destination:/topic/log-event.warn|receipt:r||");
    assert!(reader.receive().expect("an answer").starts_with("RECEIPT"));
    guess(&secured, "victim-of-guesses");
    let text = reader.receive_until("MESSAGE");
    assert!(text.contains("logins fail"), "{text}");
    assert!(!text.contains("victim") && !text.contains("127.0.0.2"), "{text}");
    let ended = secured.end_with_log();
    assert!(
        ended.contains("victim-of-guesses") && ended.contains("127.0.0.2"),
        "the log names them: {ended}"
    );
}
