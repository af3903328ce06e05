use std::fs;
use std::path::PathBuf;
use std::sync::atomic::{AtomicU32, Ordering};

use pitlane_engine::time::{NS_PER_S, Timestamp};

use super::credentials::line_of;
use super::password::Hash;
use super::queue::QUESTIONS_MAX;
use super::token::Sum;
use super::*;

const START: Timestamp = Timestamp(1_700_000_000 * NS_PER_S);
const TOKEN: &str = "pit_abc";
const PASSWORD: &str = "correct horse battery";

/// Files of users and tokens, removed at the end of the test.
struct Files(PathBuf);

impl Files {
    fn new() -> Files {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        let name = format!("pitlane-auth-{}-{}", std::process::id(), NEXT.fetch_add(1, Ordering::Relaxed));
        let files = Files(std::env::temp_dir().join(name));
        fs::create_dir_all(&files.0).unwrap();
        let hash = Hash::make(PASSWORD.as_bytes(), [3; 16]).to_string();
        files.write("users", &line_of("alice", Role::Admin, &Strategies::All, &hash));
        files.write("tokens", &line_of("robot", Role::Trade, &Strategies::All, &Sum::of(TOKEN).to_string()));
        files
    }

    fn write(&self, name: &str, text: &str) {
        fs::write(self.0.join(name), text).unwrap();
    }

    fn settings(&self) -> AuthSettings {
        let (users, tokens) = (Some(self.0.join("users")), Some(self.0.join("tokens")));
        AuthSettings { required: true, users, tokens, strategies: vec!["PAIRS".to_string()] }
    }
}

impl Drop for Files {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

fn no_wakeup() -> Wakeup {
    Wakeup::new(|| {})
}

fn shown(login: Option<&str>, secret: &str) -> Credentials {
    let peer = [127, 0, 0, 1].into();
    Credentials { login: login.map(str::to_string), secret: Secret::new(secret), peer }
}

/// Asks one question at this time and returns the verdict.
fn ask(
    client: &mut AuthClient,
    authenticator: &mut Authenticator,
    now: Timestamp,
    login: Option<&str>,
    secret: &str,
) -> Verdict {
    client.ask(now, 7, shown(login, secret)).unwrap();
    authenticator.poll(now);
    let (ticket, verdict) = client.poll().expect("every question is answered");
    assert_eq!((ticket, client.poll()), (7, None));
    verdict
}

fn name(verdict: Verdict) -> Result<String, Refusal> {
    verdict.map(|identity| identity.name.to_string())
}

#[test]
fn a_user_logs_in_by_password_and_a_machine_by_token() {
    let files = Files::new();
    let mut auth = Auth::open(files.settings()).unwrap();
    assert_eq!(auth.default_identity(), None);
    let mut client = auth.client(no_wakeup());
    let (mut authenticator, ..) = auth.into_parts();
    let mut check = |login: Option<&str>, secret: &str, who: Result<&str, Refusal>| {
        let verdict = ask(&mut client, &mut authenticator, START, login, secret);
        assert_eq!(name(verdict), who.map(str::to_string), "{login:?} {secret}");
    };
    check(Some("alice"), PASSWORD, Ok("alice"));
    check(None, TOKEN, Ok("robot"));
    check(Some("robot"), TOKEN, Ok("robot"));
    for (login, secret) in [
        (Some("alice"), ""),
        (Some("alice"), TOKEN),
        (Some("Alice"), PASSWORD),
        (Some("robot"), PASSWORD),
        (Some(""), TOKEN),
        (None, PASSWORD),
        (None, ""),
        (None, "pit_abd"),
        (Some(&*"a".repeat(5_000)), PASSWORD),
    ] {
        check(login, secret, Err(Refusal::Wrong));
    }
}

#[test]
fn guessing_is_delayed_and_allowed_after_the_wait() {
    let files = Files::new();
    let mut auth = Auth::open(files.settings()).unwrap();
    let mut client = auth.client(no_wakeup());
    let (mut authenticator, ..) = auth.into_parts();
    for _ in 0..5 {
        assert_eq!(ask(&mut client, &mut authenticator, START, Some("alice"), "guess"), Err(Refusal::Wrong));
    }
    let locked = Err(Refusal::Locked { wait_s: 1 });
    assert_eq!(ask(&mut client, &mut authenticator, START, Some("alice"), "guess"), locked);
    assert_eq!(
        ask(&mut client, &mut authenticator, START, Some("alice"), PASSWORD),
        locked,
        "not even looked at"
    );
    assert!(ask(&mut client, &mut authenticator, START, None, TOKEN).is_ok(), "others go on");
    let later = START.plus(NS_PER_S);
    assert!(ask(&mut client, &mut authenticator, later, Some("alice"), PASSWORD).is_ok());
    // A verified user keeps working while an attacker guesses at the same login.
    for _ in 0..9 {
        let _ = ask(&mut client, &mut authenticator, later, Some("alice"), "guess");
    }
    assert!(ask(&mut client, &mut authenticator, later, Some("alice"), PASSWORD).is_ok());
}

#[test]
fn verified_credentials_are_cached_until_the_files_change() {
    let files = Files::new();
    let mut auth = Auth::open(files.settings()).unwrap();
    let (mut client, mut other) = (auth.client(no_wakeup()), auth.client(no_wakeup()));
    let reload = auth.reload();
    let (mut authenticator, ..) = auth.into_parts();
    let alice = || shown(Some("alice"), PASSWORD);
    assert!(ask(&mut client, &mut authenticator, START, Some("alice"), PASSWORD).is_ok());
    assert!(client.recall(START, &alice()).is_some());
    assert!(other.recall(START, &alice()).is_none(), "a seat remembers its own");
    client.ask(START, 1, alice()).unwrap();
    assert_eq!(authenticator.poll(START), 0, "it was not asked again");
    assert!(matches!(client.poll(), Some((1, Ok(_)))));

    // A verdict by the old credentials that is read after the new ones are effective is not cached.
    other.ask(START, 2, alice()).unwrap();
    authenticator.poll(START);
    files.write("users", "");
    reload.ask();
    assert_eq!(authenticator.poll(START), 1);
    assert!(matches!(other.poll(), Some((2, Ok(_)))));
    for client in [&mut client, &mut other] {
        assert!(client.recall(START, &alice()).is_none());
        assert_eq!(ask(client, &mut authenticator, START, Some("alice"), PASSWORD), Err(Refusal::Wrong));
        assert_eq!(client.generation(), 1);
    }

    // Files with faults change nothing.
    files.write("users", "alice");
    reload.ask();
    authenticator.poll(START);
    assert_eq!(client.generation(), 1);
    assert!(ask(&mut other, &mut authenticator, START, None, TOKEN).is_ok());
}

#[test]
fn a_token_never_waits_and_is_never_locked_out() {
    let files = Files::new();
    let mut auth = Auth::open(files.settings()).unwrap();
    let mut client = auth.client(no_wakeup());
    let reload = auth.reload();
    let (mut authenticator, ..) = auth.into_parts();
    for ticket in 0..QUESTIONS_MAX as u64 {
        client.ask(START, ticket, shown(Some("nobody"), "wrong")).unwrap();
    }
    // The authenticator has not verified any of them.
    for (login, secret) in [(None, TOKEN), (Some("robot"), TOKEN)] {
        assert!(client.judge_at_once(START, &shown(login, secret)).is_some_and(|verdict| verdict.is_ok()));
        client.ask(START, 99, shown(login, secret)).unwrap();
        assert!(matches!(client.poll(), Some((99, Ok(_)))));
    }
    for _ in 0..100 {
        assert_eq!(client.judge_at_once(START, &shown(None, "pit_guess")), Some(Err(Refusal::Wrong)));
        client.admit(START, "robot", [127, 0, 0, 1].into(), false).unwrap_err();
    }
    assert!(client.recall(START, &shown(Some("robot"), TOKEN)).is_some());
    files.write("tokens", "");
    reload.ask();
    authenticator.poll(START);
    assert!(client.recall(START, &shown(None, TOKEN)).is_none(), "revoked, it is gone at once");
}

#[test]
fn a_client_has_a_bounded_queue_and_every_question_is_answered_in_turn() {
    let files = Files::new();
    let mut auth = Auth::open(files.settings()).unwrap();
    let (mut client, mut other) = (auth.client(no_wakeup()), auth.client(no_wakeup()));
    let (mut authenticator, ..) = auth.into_parts();
    let from = |n: u8, ticket: u64| Credentials {
        login: Some(format!("user{ticket}")),
        secret: Secret::new("wrong"),
        peer: [10, 0, 0, n].into(),
    };
    // Two are on the lane, the others wait.
    let all = QUESTIONS_MAX as u64 + 2;
    for ticket in 0..all {
        client.ask(START, ticket, from(1, ticket)).unwrap();
    }
    assert_eq!(client.ask(START, 99, from(1, 99)), Err(Busy));
    // Another address gets a slot, and the address that fills the queue loses one.
    client.ask(START, 100, from(2, 100)).unwrap();
    assert_eq!(client.poll(), Some((all - 1, Err(Refusal::Busy))));
    // One question per client at a time: a late one does not wait behind the queue of another
    // thread.
    other.ask(START, 1, from(1, 1)).unwrap();
    assert_eq!(authenticator.close(START), 2);
    assert!(matches!(other.poll(), Some((1, Err(Refusal::Ending)))));
    let mut tickets = Vec::new();
    loop {
        tickets.extend(std::iter::from_fn(|| client.poll()).map(|(ticket, _)| ticket));
        if authenticator.close(START) == 0 {
            break;
        }
    }
    assert_eq!(tickets.len() as u64, all, "each is answered");
    let place = |ticket| tickets.iter().position(|known| *known == ticket);
    assert!(place(100) < place(4), "the other address had its turn: {tickets:?}");
    assert_eq!(client.ask(START, 99, from(1, 99)), Ok(()));
}

#[test]
fn without_logins_every_client_is_local() {
    let mut auth = Auth::open(AuthSettings::off()).unwrap();
    let mut client = auth.client(no_wakeup());
    let local = client.default_identity().unwrap().clone();
    assert_eq!((&*local.name, local.role, &local.strategies), ("local", Role::Admin, &Strategies::All));
    client.ask(START, 1, shown(None, "anything")).unwrap();
    assert_eq!(client.poll(), Some((1, Ok(local))));
}

#[test]
fn empty_or_faulty_files_prevent_the_start() {
    let files = Files::new();
    let refused = || Auth::open(files.settings()).expect_err("it must not start").to_string();
    files.write("users", "# no user\n");
    files.write("tokens", "");
    assert!(refused().contains("no user can log in"));
    files.write("users", "alice");
    files.write(
        "tokens",
        &line_of("r", Role::Read, &credentials::parse_strategies("PAIR").unwrap(), &"a".repeat(64)),
    );
    let text = refused();
    assert!(text.contains("users:1: it must be name"), "{text}");
    assert!(text.contains("tokens:1: strategies: there is no strategy PAIR (did you mean PAIRS?)"), "{text}");
    fs::remove_file(files.0.join("users")).unwrap();
    assert!(refused().contains("users: No such file"));
}

#[test]
fn sessions_of_removed_or_changed_logins_are_revoked() {
    let files = Files::new();
    let mut auth = Auth::open(files.settings()).unwrap();
    let mut revocations = auth.client(no_wakeup()).revocations();
    let reload = auth.reload();
    let (mut authenticator, ..) = auth.into_parts();
    let mut read_again = || {
        reload.ask();
        authenticator.poll(START);
    };
    assert!(!revocations.has_changed());
    assert!(!revocations.is_revoked("alice", 0) && !revocations.is_revoked("robot", 0));
    assert!(revocations.is_revoked("nobody", 0));
    // The same entries on other lines.
    let users = fs::read_to_string(files.0.join("users")).unwrap();
    files.write("users", &format!("# people\n{users}"));
    read_again();
    assert!(revocations.has_changed() && !revocations.has_changed());
    assert!(!revocations.is_revoked("alice", 0) && !revocations.is_revoked("robot", 0));
    // Another role, and a removed token.
    let hash = users.split_whitespace().last().unwrap();
    files.write("users", &line_of("alice", Role::Read, &Strategies::All, hash));
    files.write("tokens", "");
    read_again();
    assert!(
        revocations.is_revoked("alice", 1) && !revocations.is_revoked("alice", 2),
        "a later login stays valid"
    );
    assert!(revocations.is_revoked("robot", 2));
    // Another secret, and a token that is back: sessions from before must log in again.
    let other = Hash::make(b"another horse battery", [4; 16]).to_string();
    files.write("users", &line_of("alice", Role::Read, &Strategies::All, &other));
    files.write("tokens", &line_of("robot", Role::Trade, &Strategies::All, &Sum::of(TOKEN).to_string()));
    read_again();
    assert!(revocations.is_revoked("alice", 2) && revocations.is_revoked("robot", 0));
    assert!(!revocations.is_revoked("alice", 3) && !revocations.is_revoked("robot", 3));

    let open = Auth::open(AuthSettings::off()).unwrap().client(no_wakeup()).revocations();
    assert!(!open.is_revoked("local", 0), "where no login is required");
}

/// Two hundred wrong passwords once delayed the shutdown beyond its time limit.
#[test]
fn no_password_is_verified_during_shutdown() {
    let files = Files::new();
    let mut auth = Auth::open(files.settings()).unwrap();
    let mut client = auth.client(no_wakeup());
    let (mut authenticator, ..) = auth.into_parts();
    client.ask(START, 1, shown(Some("alice"), "wrong")).unwrap();
    client.ask(START, 2, shown(Some("alice"), PASSWORD)).unwrap();
    while authenticator.close(START) > 0 {}
    assert_eq!(client.poll(), Some((1, Err(Refusal::Ending))));
    assert_eq!(client.poll(), Some((2, Err(Refusal::Ending))));
}
