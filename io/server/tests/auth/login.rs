use std::time::{Duration, Instant};

use pitlane_auth::Role;
use pitlane_http::table;
use pitlane_testkit::http_client::Response;
use pitlane_testkit::secured_service::{NAMES, PASSWORD, SecuredService, basic, bearer, pitlane};

/// Calls that need no login.
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

/// A body that no call accepts: a permitted call reports that, and nothing happens.
const NONSENSE: &str = "Content-Type: application/json\r\nContent-Length: 9\r\n\r\n{\"a\":\"b\"}";

fn attempt(secured: &SecuredService, method: &str, path: &str, credentials: &str) -> Response {
    let mut client = secured.connect();
    let rest = if method == "GET" { "\r\n" } else { NONSENSE };
    client.send(&format!("{method} {path} HTTP/1.1\r\nHost: localhost\r\n{credentials}{rest}"));
    client.receive(false)
}

#[test]
fn every_role_may_do_what_the_table_says_and_nothing_else() {
    let secured = SecuredService::start("roles", &[]);
    let roles = [Role::Read, Role::Trade, Role::Admin];
    for (method, path, needed) in table() {
        let target = path.replace("{}", "0");
        let what = format!("{method} {path}");
        let no_user = attempt(&secured, method, &target, "");
        if OPEN.contains(&path) {
            // Files of the page exist only where it was built.
            assert!(matches!(no_user.status, 200 | 404), "{what}: {}", no_user.status);
        } else {
            assert_eq!((no_user.status, no_user.code().as_str()), (401, "login-required"), "{what}");
        }
        for ((role, name), token) in roles.into_iter().zip(NAMES).zip(&secured.token) {
            for credentials in [bearer(token), basic(name, PASSWORD)] {
                let response = attempt(&secured, method, &target, &credentials);
                let refused = response.status == 403 && response.code() == "role-too-low";
                assert_eq!(refused, role < needed, "{what} as {name}: {response:?}");
                assert_ne!(response.status, 401, "{what} as {name}");
            }
        }
    }
    secured.end();
}

#[test]
fn wrong_credentials_are_refused_with_a_hint() {
    let secured = SecuredService::start("wrong", &[]);
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
        let response = secured.ask("GET", path, &credentials);
        assert_eq!((response.status, response.code().as_str()), (401, code), "{credentials}");
        let challenges: Vec<_> =
            response.headers.iter().filter(|(name, _)| name == "www-authenticate").collect();
        assert_eq!(challenges.len(), 2, "{response:?}");
        assert_eq!(challenges[0].1, "Basic realm=\"pitlane\", charset=\"UTF-8\"");
        // A script of a page must not make the browser show a login prompt.
        let script = secured.ask("GET", path, &format!("{credentials}Sec-Fetch-Dest: empty\r\n"));
        assert_eq!(script.header("www-authenticate"), Some("Bearer realm=\"pitlane\""));
    }
    let twice = format!("{}{}", bearer(&secured.token[0]), bearer(&secured.token[0]));
    assert_eq!(secured.ask("GET", path, &twice).status, 400);
    // A token may also be sent under its name, as the password of Basic.
    assert_eq!(secured.ask("GET", path, &basic("read-robot", &secured.token[0])).status, 200);
    secured.end();
}

#[test]
fn public_paths_need_no_login() {
    let secured = SecuredService::start("open", &[]);
    assert_eq!(secured.ask("GET", "/health/ready", "").json(), serde_json::json!({ "ready": true }));
    let text = secured.ask("GET", "/health/ready", &bearer(&secured.token[0])).json();
    assert!(text["shards"].is_array());
    assert_eq!(secured.ask("OPTIONS", "/rest/account", "").status, 200);
    assert_eq!(secured.ask("GET", "/nothing", "").status, 404);
    assert_eq!(secured.ask("HEAD", "/rest/account", "").status, 401);
    // Wrong credentials are refused even where none are needed.
    assert_eq!(secured.ask("GET", "/health/live", &bearer("pit_wrong")).status, 401);
    secured.end();
}

#[test]
fn guessing_at_a_login_is_locked_out_and_other_logins_work() {
    let secured = SecuredService::start("guess", &[]);
    let status = |credentials: &str| secured.ask("GET", "/version", credentials).status;
    assert_eq!(status(&basic("admin", PASSWORD)), 200);
    // Each guess takes some time, so the first seconds of waiting may be over between them.
    let locked = std::iter::repeat_with(|| secured.ask("GET", "/version", &basic("admin", "guess")))
        .take(20)
        .find(|response| response.status != 401)
        .expect("guessing must end");
    assert_eq!((locked.status, locked.code().as_str()), (429, "locked-out"));
    assert!(locked.header("retry-after").unwrap().parse::<u32>().unwrap() >= 1);
    assert_eq!(status(&basic("trade", PASSWORD)), 200);
    assert_eq!(status(&bearer(&secured.token[2])), 200);
    // A login that succeeded before is not locked out by others that guess at its name.
    assert_eq!(status(&basic("admin", PASSWORD)), 200);
    let refused = secured.ask("GET", "/metrics", &bearer(&secured.token[0])).body;
    assert!(!refused.contains("pitlane_http_failed_logins_total 0"), "{refused}");
    secured.end();
}

/// Repeats the request until it has this status: another thread reads users and tokens.
fn until(secured: &SecuredService, credentials: &str, status: u16) {
    let end = Instant::now() + Duration::from_secs(30);
    while secured.ask("GET", "/version", credentials).status != status {
        assert!(Instant::now() < end, "it never came to {status}");
    }
}

#[test]
fn changes_of_users_and_tokens_apply_after_a_reload() {
    let secured = SecuredService::start("reload", &[]);
    let (users, tokens) = (secured.users.to_str().unwrap(), secured.tokens.to_str().unwrap());
    let robot = bearer(&secured.token[1]);
    until(&secured, &robot, 200);
    assert!(pitlane(&["token", "revoke", "trade-robot", "--file", tokens], "").status.success());
    assert_eq!(secured.ask("GET", "/version", &robot).status, 200, "no request was made yet");
    secured.service.signal("HUP");
    // As soon as the reload is logged, the next request is refused.
    let is_logged = || {
        let noted = std::fs::read_to_string(secured.data.join("audit/000001.jsonl")).unwrap();
        noted.contains(r#""outcome":"done""#)
    };
    let end = Instant::now() + Duration::from_secs(30);
    while !is_logged() {
        assert!(Instant::now() < end, "the change was never applied");
    }
    assert_eq!(secured.ask("GET", "/version", &robot).status, 401);
    // A user that was never refused: a password that changes twice does not count as guessing.
    let other = "another horse battery";
    assert!(pitlane(&["user", "passwd", "read", "--file", users], &format!("{other}\n")).status.success());
    assert!(
        pitlane(&["user", "add", "new", "--role", "read", "--file", users], &format!("{PASSWORD}\n"))
            .status
            .success()
    );
    secured.service.signal("HUP");
    until(&secured, &basic("read", PASSWORD), 401);
    assert_eq!(secured.ask("GET", "/version", &basic("read", other)).status, 200);
    assert_eq!(secured.ask("GET", "/version", &basic("new", PASSWORD)).status, 200);
    // Each change was logged before it applied, without a secret.
    let noted = std::fs::read_to_string(secured.data.join("audit/000001.jsonl")).unwrap();
    let first = r#""who":"local","role":"admin","from":"127.0.0.1","via":"SIGNAL""#;
    assert!(noted.contains(first), "{noted}");
    assert!(noted.contains(r#""body":"token trade-robot removed""#), "{noted}");
    assert!(noted.contains(r#""body":"user read has another secret; user new added: read *""#), "{noted}");
    assert!(!noted.contains("argon2"), "{noted}");
    // A file that cannot be read changes nothing.
    std::fs::write(&secured.users, "nonsense").unwrap();
    secured.service.signal("HUP");
    assert_eq!(secured.ask("GET", "/version", &basic("new", PASSWORD)).status, 200);
    secured.end();
}

#[test]
fn many_unknown_clients_do_not_delay_the_others() {
    let secured = SecuredService::start("crowd", &[]);
    let known = bearer(&secured.token[0]);
    assert_eq!(secured.ask("GET", "/version", &known).status, 200);
    let mut clients: Vec<_> = (0..200).map(|_| secured.connect()).collect();
    for (n, client) in clients.iter_mut().enumerate() {
        let guess = basic(&format!("user{n}"), "guess");
        client.send(&format!("GET /version HTTP/1.1\r\nHost: localhost\r\n{guess}\r\n"));
    }
    for _ in 0..50 {
        assert_eq!(secured.ask("GET", "/version", &known).status, 200);
    }
    // Each client gets a response; those beyond the queue get 503.
    let answers: Vec<u16> = clients.iter_mut().map(|client| client.receive(false).status).collect();
    assert!(answers.iter().all(|status| [401, 503].contains(status)), "{answers:?}");
    assert!(answers.contains(&401));
    secured.end();
}
