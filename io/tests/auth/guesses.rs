//! Password guessing, over every protocol and from several addresses: only the guesser is slowed
//! down.

use crate::addresses::connect_from;
use crate::client::{Client, Response};
use crate::house::{House, PASSWORD, basic, bearer};
use crate::wires::{fix, socket, stomp};

/// Address of the users: the last part of 127.0.0.x.
const GOOD: u8 = 1;
const GUESSER: u8 = 2;
const CROWD: u8 = 3;

pub fn http(house: &House, from: u8, method: &str, path: &str, headers: &str) -> Response {
    let mut client = Client::new(connect_from(from, house.service.address()));
    client
        .send(&format!("{method} {path} HTTP/1.1\r\nHost: localhost\r\n{headers}Content-Length: 0\r\n\r\n"));
    client.receive(false)
}

pub fn over_stomp(house: &House, from: u8, login: &str, secret: &str) -> bool {
    log_in(stomp::Client::new(Box::new(connect_from(from, house.at("stomp")))), login, secret)
}

pub fn over_websocket(house: &House, from: u8, login: &str, secret: &str) -> bool {
    let address = house.at("http");
    let wire = socket::WebSocket::open(Box::new(connect_from(from, address)), address, "").0;
    log_in(stomp::Client::new(Box::new(wire)), login, secret)
}

fn log_in(mut client: stomp::Client, login: &str, secret: &str) -> bool {
    client.say(&format!("CONNECT|accept-version:1.2|host:x|login:{login}|passcode:{secret}||"));
    client.hear().is_some_and(|answer| answer.starts_with("CONNECTED"))
}

pub fn over_fix(house: &House, from: u8, login: &str, secret: &str) -> bool {
    let mut client = fix::Client::new("CLIENT1");
    client.take(Box::new(connect_from(from, house.at("fix"))));
    client.say("A", &format!("98=0|108=30|141=Y|553={login}|554={secret}|"));
    let is_in = client.read().expect("a Logon is answered").get(35) == "A";
    if is_in {
        client.say("5", "");
        assert!(client.is_closed());
    }
    is_in
}

/// Guesses at a login over every protocol until the guesser is locked out.
fn guess(house: &House, login: &str) {
    for _ in 0..3 {
        assert!(!over_stomp(house, GUESSER, login, "guess"));
        assert!(!over_websocket(house, GUESSER, login, "guess"));
        assert!(!over_fix(house, GUESSER, login, "guess"));
    }
    let answer = || http(house, GUESSER, "GET", "/version", &basic(login, "guess"));
    let locked = std::iter::repeat_with(answer).take(20).find(|response| response.status != 401);
    let locked = locked.expect("guessing must end");
    assert_eq!((locked.status, locked.code().as_str()), (429, "locked-out"));
}

/// One guess a minute once kept any user out, on every protocol and from the kill switch.
#[test]
fn a_guesser_keeps_no_user_out_on_any_protocol() {
    let house = House::start("guess-elsewhere", &[]);
    guess(&house, "admin");
    // The user was never here before, and is accepted at the first attempt.
    assert!(over_stomp(&house, GOOD, "admin", PASSWORD));
    assert!(over_websocket(&house, GOOD, "admin", PASSWORD));
    assert!(over_fix(&house, GOOD, "admin", PASSWORD));
    let kill_switch = "/rest/ext/kill-switch";
    assert_eq!(http(&house, GOOD, "POST", kill_switch, &basic("admin", PASSWORD)).status, 200);
    assert_eq!(http(&house, GOOD, "DELETE", kill_switch, &basic("admin", PASSWORD)).status, 200);
    // Even at the address of the guesser: a token, and another user.
    assert_eq!(http(&house, GUESSER, "GET", "/version", &bearer(&house.token[2])).status, 200);
    assert!(over_stomp(&house, GUESSER, "admin-robot", &house.token[2]));
    assert!(over_websocket(&house, GUESSER, "admin-robot", &house.token[2]));
    assert!(over_fix(&house, GUESSER, "admin-robot", &house.token[2]));
    assert_eq!(http(&house, GUESSER, "GET", "/version", &basic("trade", PASSWORD)).status, 200);
    house.end();
}

#[test]
fn many_addresses_that_guess_at_one_login_are_slowed_down_together() {
    let house = House::start("guess-together", &[]);
    assert_eq!(http(&house, GOOD, "GET", "/version", &basic("admin", PASSWORD)).status, 200);
    // Four failures of an address are not enough to slow it down by itself.
    let guesses =
        (0..40).map(|n| http(&house, 100 + n / 4, "GET", "/version", &basic("admin", "guess")).status);
    let statuses: Vec<u16> = guesses.collect();
    assert!(statuses[..19].iter().all(|status| *status == 401), "{statuses:?}");
    assert!(statuses[20..].contains(&429), "{statuses:?}");
    let status = http(&house, GOOD, "GET", "/version", &basic("admin", PASSWORD)).status;
    assert_eq!(status, 200, "an address from which the login has succeeded is not slowed down");
    house.end();
}

/// A hundred connections with made-up logins once made an admin's token wait for 503.
#[test]
fn a_token_and_another_address_do_not_wait_behind_made_up_logins() {
    let house = House::start("guess-crowd", &[]);
    let mut crowd: Vec<Client> = (0..200)
        .map(|n| {
            let mut client = Client::new(connect_from(CROWD, house.service.address()));
            let guess = basic(&format!("user{n}"), "guess");
            client.send(&format!("GET /version HTTP/1.1\r\nHost: localhost\r\n{guess}\r\n"));
            client
        })
        .collect();
    // None of these was used before.
    for token in &house.token {
        assert_eq!(http(&house, GOOD, "GET", "/version", &bearer(token)).status, 200);
    }
    assert_eq!(http(&house, CROWD, "GET", "/version", &bearer(&house.token[2])).status, 200);
    assert!(over_stomp(&house, GOOD, "admin-robot", &house.token[2]));
    assert!(over_fix(&house, GOOD, "admin-robot", &house.token[2]));
    assert_eq!(http(&house, GOOD, "GET", "/version", &basic("admin", PASSWORD)).status, 200);
    assert!(over_websocket(&house, GOOD, "trade", PASSWORD));
    let answers: Vec<u16> = crowd.iter_mut().map(|client| client.receive(false).status).collect();
    assert!(answers.iter().all(|status| [401, 503].contains(status)), "{answers:?}");
    assert!(answers.contains(&503), "the address that fills the queue is told so: {answers:?}");
    house.end();
}

/// All clients that read warnings once learned which logins were tried, and from where.
#[test]
fn warnings_do_not_name_the_login_that_failed() {
    let house = House::start("guess-told", &[]);
    let mut reader = stomp::Client::new(Box::new(connect_from(GOOD, house.at("stomp"))));
    reader.say(&format!("CONNECT|accept-version:1.2|host:x|login:read-robot|passcode:{}||", house.token[0]));
    assert!(reader.hear().expect("an answer").starts_with("CONNECTED"));
    reader.say("SUBSCRIBE|id:1|destination:/topic/log-event.warn|receipt:r||");
    assert!(reader.hear().expect("an answer").starts_with("RECEIPT"));
    guess(&house, "victim-of-guesses");
    let told = reader.hear_until("MESSAGE");
    assert!(told.contains("logins fail"), "{told}");
    assert!(!told.contains("victim") && !told.contains("127.0.0.2"), "{told}");
    let ended = house.end_with_log();
    assert!(
        ended.contains("victim-of-guesses") && ended.contains("127.0.0.2"),
        "the log names them: {ended}"
    );
}
