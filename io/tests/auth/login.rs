use std::time::{Duration, Instant};

use pitlane::auth::Role;
use pitlane::http::table;

use crate::client::Response;
use crate::house::{House, NAMES, PASSWORD, basic, bearer, pitlane};

/// Calls that are answered without a login.
const OPEN: [&str; 9] = [
    "/",
    "/favicon.svg",
    "/assets/{}",
    "/docs",
    "/docs/viewer.js",
    "/docs/viewer.css",
    "/openapi.json",
    "/health/live",
    "/health/ready",
];

/// Something no call takes for its input: whoever may do it is told so, and nothing happens.
const NONSENSE: &str = "Content-Type: application/json\r\nContent-Length: 9\r\n\r\n{\"a\":\"b\"}";

fn attempt(house: &House, method: &str, path: &str, credentials: &str) -> Response {
    let mut client = house.connect();
    let rest = if method == "GET" { "\r\n" } else { NONSENSE };
    client.send(&format!("{method} {path} HTTP/1.1\r\nHost: localhost\r\n{credentials}{rest}"));
    client.receive(false)
}

#[test]
fn every_role_may_do_what_the_table_says_and_nothing_else() {
    let house = House::start("roles", &[]);
    let roles = [Role::Read, Role::Trade, Role::Admin];
    for (method, path, needed) in table() {
        let target = path.replace("{}", "0");
        let what = format!("{method} {path}");
        let nobody = attempt(&house, method, &target, "");
        if OPEN.contains(&path) {
            // Files of the page are there only where it was built.
            assert!(matches!(nobody.status, 200 | 404), "{what}: {}", nobody.status);
        } else {
            assert_eq!((nobody.status, nobody.code().as_str()), (401, "login-required"), "{what}");
        }
        for ((role, name), token) in roles.into_iter().zip(NAMES).zip(&house.token) {
            for credentials in [bearer(token), basic(name, PASSWORD)] {
                let response = attempt(&house, method, &target, &credentials);
                let refused = response.status == 403 && response.code() == "role-too-low";
                assert_eq!(refused, role < needed, "{what} as {name}: {response:?}");
                assert_ne!(response.status, 401, "{what} as {name}");
            }
        }
    }
    house.end();
}

#[test]
fn wrong_credentials_are_refused_and_say_how_to_do_better() {
    let house = House::start("wrong", &[]);
    let path = "/rest/account";
    for (credentials, code) in [
        (String::new(), "login-required"),
        (bearer("pit_wrong"), "bad-credentials"),
        (basic("read", "wrong"), "bad-credentials"),
        (basic("nobody", PASSWORD), "bad-credentials"),
        (basic("read-robot", PASSWORD), "bad-credentials"),
        ("Authorization: Digest x\r\n".to_string(), "bad-authorization"),
        ("Authorization: Basic !\r\n".to_string(), "bad-authorization"),
    ] {
        let response = house.ask("GET", path, &credentials);
        assert_eq!((response.status, response.code().as_str()), (401, code), "{credentials}");
        let challenges: Vec<_> =
            response.headers.iter().filter(|(name, _)| name == "www-authenticate").collect();
        assert_eq!(challenges.len(), 2, "{response:?}");
        assert_eq!(challenges[0].1, "Basic realm=\"pitlane\", charset=\"UTF-8\"");
        // A script of a page is not to make the browser ask.
        let script = house.ask("GET", path, &format!("{credentials}Sec-Fetch-Dest: empty\r\n"));
        assert_eq!(script.header("www-authenticate"), Some("Bearer realm=\"pitlane\""));
    }
    let twice = format!("{}{}", bearer(&house.token[0]), bearer(&house.token[0]));
    assert_eq!(house.ask("GET", path, &twice).status, 400);
    // A token may come under its name too, as the password of Basic.
    assert_eq!(house.ask("GET", path, &basic("read-robot", &house.token[0])).status, 200);
    house.end();
}

#[test]
fn what_is_no_secret_needs_no_login() {
    let house = House::start("open", &[]);
    assert_eq!(house.ask("GET", "/health/ready", "").json(), serde_json::json!({ "ready": true }));
    let told = house.ask("GET", "/health/ready", &bearer(&house.token[0])).json();
    assert!(told["shards"].is_array());
    assert_eq!(house.ask("OPTIONS", "/rest/account", "").status, 200);
    assert_eq!(house.ask("GET", "/nothing", "").status, 404);
    assert_eq!(house.ask("HEAD", "/rest/account", "").status, 401);
    // Wrong credentials are wrong even where none are needed.
    assert_eq!(house.ask("GET", "/health/live", &bearer("pit_wrong")).status, 401);
    house.end();
}

#[test]
fn guessing_at_a_login_is_locked_out_and_others_go_on() {
    let house = House::start("guess", &[]);
    let status = |credentials: &str| house.ask("GET", "/version", credentials).status;
    assert_eq!(status(&basic("admin", PASSWORD)), 200);
    // Each guess takes some time, so the first seconds of waiting may be over between them.
    let locked = std::iter::repeat_with(|| house.ask("GET", "/version", &basic("admin", "guess")))
        .take(20)
        .find(|response| response.status != 401)
        .expect("guessing must end");
    assert_eq!((locked.status, locked.code().as_str()), (429, "locked-out"));
    assert!(locked.header("retry-after").unwrap().parse::<u32>().unwrap() >= 1);
    assert_eq!(status(&basic("trade", PASSWORD)), 200);
    assert_eq!(status(&bearer(&house.token[2])), 200);
    // Who was known before is not locked out by others who guess at his name.
    assert_eq!(status(&basic("admin", PASSWORD)), 200);
    let refused = house.ask("GET", "/metrics", &bearer(&house.token[0])).body;
    assert!(!refused.contains("pitlane_http_failed_logins_total 0"), "{refused}");
    house.end();
}

/// Asks until it has this status: users and tokens are read by another thread.
fn until(house: &House, credentials: &str, status: u16) {
    let end = Instant::now() + Duration::from_secs(30);
    while house.ask("GET", "/version", credentials).status != status {
        assert!(Instant::now() < end, "it never came to {status}");
    }
}

#[test]
fn changes_of_users_and_tokens_hold_when_asked_for() {
    let house = House::start("reload", &[]);
    let (users, tokens) = (house.users.to_str().unwrap(), house.tokens.to_str().unwrap());
    let robot = bearer(&house.token[1]);
    until(&house, &robot, 200);
    assert!(pitlane(&["token", "revoke", "trade-robot", "--file", tokens], "").status.success());
    assert_eq!(house.ask("GET", "/version", &robot).status, 200, "nobody asked yet");
    house.service.signal("HUP");
    // As soon as it is told that the books are read again, the very next request is refused.
    let is_told = || {
        let noted = std::fs::read_to_string(house.data.join("audit/000001.jsonl")).unwrap();
        noted.contains(r#""outcome":"done""#)
    };
    let end = Instant::now() + Duration::from_secs(30);
    while !is_told() {
        assert!(Instant::now() < end, "it was never told");
    }
    assert_eq!(house.ask("GET", "/version", &robot).status, 401);
    // Somebody who was never refused: a password that changes twice is not taken for guessing.
    let other = "another horse battery";
    assert!(pitlane(&["user", "passwd", "read", "--file", users], &format!("{other}\n")).status.success());
    assert!(
        pitlane(&["user", "add", "new", "--role", "read", "--file", users], &format!("{PASSWORD}\n"))
            .status
            .success()
    );
    house.service.signal("HUP");
    until(&house, &basic("read", PASSWORD), 401);
    assert_eq!(house.ask("GET", "/version", &basic("read", other)).status, 200);
    assert_eq!(house.ask("GET", "/version", &basic("new", PASSWORD)).status, 200);
    // Each was noted before it was in force, without a secret.
    let noted = std::fs::read_to_string(house.data.join("audit/000001.jsonl")).unwrap();
    let first = r#""who":"local","role":"admin","from":"127.0.0.1","via":"SIGNAL""#;
    assert!(noted.contains(first), "{noted}");
    assert!(noted.contains(r#""body":"token trade-robot removed""#), "{noted}");
    assert!(noted.contains(r#""body":"user read has another secret; user new added: read *""#), "{noted}");
    assert!(!noted.contains("argon2"), "{noted}");
    // A file that cannot be read changes nothing.
    std::fs::write(&house.users, "nonsense").unwrap();
    house.service.signal("HUP");
    assert_eq!(house.ask("GET", "/version", &basic("new", PASSWORD)).status, 200);
    house.end();
}

#[test]
fn a_crowd_of_unknown_clients_leaves_the_others_alone() {
    let house = House::start("crowd", &[]);
    let known = bearer(&house.token[0]);
    assert_eq!(house.ask("GET", "/version", &known).status, 200);
    let mut crowd: Vec<_> = (0..200).map(|_| house.connect()).collect();
    for (n, client) in crowd.iter_mut().enumerate() {
        let guess = basic(&format!("user{n}"), "guess");
        client.send(&format!("GET /version HTTP/1.1\r\nHost: localhost\r\n{guess}\r\n"));
    }
    for _ in 0..50 {
        assert_eq!(house.ask("GET", "/version", &known).status, 200);
    }
    // Each is answered; for those the line was too long for, that they should come again.
    let answers: Vec<u16> = crowd.iter_mut().map(|client| client.receive(false).status).collect();
    assert!(answers.iter().all(|status| [401, 503].contains(status)), "{answers:?}");
    assert!(answers.contains(&401));
    house.end();
}
