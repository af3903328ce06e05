//! Accepted and refused Logons, and what refused ones leave behind.

use std::fs;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

use pitlane_testkit::fix_client::FixClient;
use pitlane_testkit::loopback::connect_from;
use pitlane_testkit::service::{ServiceProcess, folder};

use crate::{CONFIG, fix, pitlane, start_with};

/// A family of clients with a password.
const GUARDED: &str = r#"
[[fix.session]]
SenderCompID = "PITLANE"
TargetCompID = "GUARD*"
username = "me"
password = "sesame"
ResetOnLogon = "N"
"#;

/// Sends a Logon from 127.0.0.`from` and returns the client if it is accepted.
fn log_on(service: &ServiceProcess, from: u8, name: &str, shown: &str) -> Option<FixClient> {
    let mut client = FixClient::new(name);
    client.take(Box::new(connect_from(from, fix(service))));
    client.send_message("A", &format!("98=0|108=30|{shown}"));
    let answer = client.read().expect("an answer");
    client.next_in += 1;
    (answer.get(35) == "A").then_some(client)
}

/// Returns the number of session files, and the names that have a number.
fn left_behind(data: &Path) -> (usize, String) {
    let files = fs::read_dir(data.join("fix")).map_or(0, Iterator::count);
    let notes = fs::read_dir(data.join("notes")).expect("there are notes").map(|entry| {
        let path = entry.expect("a name").path();
        String::from_utf8_lossy(&fs::read(path).expect("a note")).into_owned()
    });
    (files, notes.collect())
}

/// Twenty refused Logons once left 160 MB behind, and 4,200 of them filled the table of sessions
/// for good.
#[test]
fn refused_logons_leave_no_file_and_no_session_number() {
    let data = folder("fix-refused");
    let service = start_with(&data, GUARDED, &["feed.on=false"]);
    let before = left_behind(&data);
    for n in 0..200 {
        assert!(log_on(&service, 2 + n / 4, &format!("GUARD{n}"), "553=me|554=guess|").is_none());
    }
    let after = left_behind(&data);
    assert_eq!(before, after);
    assert!(!after.1.contains("GUARD"), "{}", after.1);
    let (_, list) = service.ask("GET /rest/ext/session");
    assert!(!list.contains("GUARD"), "{list}");

    let mut client = log_on(&service, 1, "GUARD7", "553=me|554=sesame|").expect("the right password");
    client.order("o1", "AAPL", 1, 10, "100");
    assert!(client.receive(2));
    let bytes = fs::metadata(data.join("fix/PITLANE-GUARD7.store")).expect("its store").len();
    assert!(bytes <= 256 << 10, "a store grows as it is used: {bytes}");
    assert!(left_behind(&data).1.contains("PITLANE-GUARD7"));
    service.signal("TERM");
    client.next_message();
    assert!(client.is_closed());
    let ended = service.end();
    assert!(ended.is_orderly(), "{}", ended.log_text);
    // Log lines about it are few, and the omitted ones are counted.
    let about = |words: &str| ended.log_text.lines().filter(|line| line.contains(words)).count();
    assert!(about("FIX Logon refused") < 100, "{}", ended.log_text);
    let counted = ended.log_text.lines().filter(|line| line.contains("were left out"));
    let left_out = counted.filter_map(|line| {
        let number = line.split_once("lines\":").or(line.split_once("lines="))?.1;
        number.split(|c: char| !c.is_ascii_digit()).next()?.parse::<usize>().ok()
    });
    assert!(about("FIX Logon refused") + left_out.sum::<usize>() >= 200, "{}", ended.log_text);
}

/// All stores were once created with eight megabytes.
#[test]
fn large_stores_are_read_only_when_their_client_logs_on() {
    let data = folder("fix-large-stores");
    let config = format!("{CONFIG}{GUARDED}");
    let service = start_with(&data, &config, &["feed.on=false"]);
    let mut client = log_on(&service, 1, "GUARD1", "553=me|554=sesame|").expect("the right password");
    client.order("o1", "AAPL", 1, 10, "100");
    assert!(client.receive(2));
    drop(log_on(&service, 1, "GUARD2", "553=me|554=sesame|").expect("the right password"));
    service.signal("KILL");
    service.end();
    for name in ["GUARD1", "GUARD2"] {
        let path = data.join(format!("fix/PITLANE-{name}.store"));
        let file = fs::OpenOptions::new().write(true).open(path).expect("its store");
        file.set_len(8 << 20).expect("a file can be made longer");
    }
    // A store that no client needs is not read: not even to check that it is a store.
    fs::write(data.join("fix/PITLANE-GUARD2.store"), b"nonsense").expect("a file of ours");
    let service = start_with(&data, &config, &["feed.on=false"]);
    client.take(Box::new(connect_from(1, fix(&service))));
    client.send_message("A", "98=0|108=30|553=me|554=sesame|");
    let answer = client.read().expect("an answer");
    assert_eq!((answer.get(35), answer.number()), ("A", client.next_in), "numbers go on");
    client.next_in += 1;
    client.send("F", &format!("11=o2|41=o1|55=AAPL|54=1|60={}|", pitlane_testkit::fix_client::now()));
    assert!(client.receive(4));
    let mut other = FixClient::new("GUARD2");
    other.take(Box::new(connect_from(1, fix(&service))));
    other.send_message("A", "98=0|108=30|553=me|554=sesame|");
    assert!(other.is_closed(), "its own store is damaged");
    service.signal("TERM");
    assert!(service.end().log_text.contains("PITLANE-GUARD2"));
}

/// With four threads of wrong Logons, none of twenty right ones was once accepted.
#[test]
fn refused_logons_do_not_occupy_connections_of_valid_clients() {
    let data = folder("fix-wrong-and-right");
    let users = data.join("users");
    let file = users.to_str().expect("a path in ASCII");
    let tokens = data.join("tokens");
    let token_file = tokens.to_str().expect("a path in ASCII");
    let words = ["token", "create", "robot", "--role", "trade", "--file", token_file];
    let token = pitlane(&words).trim_end().to_string();
    crate::add_user(file, "trader", "correct horse battery");
    let config = format!("{CONFIG}{GUARDED}");
    let settings = [
        "feed.on=false",
        "auth.mode=required",
        &format!("auth.users_file={file}"),
        &format!("auth.tokens_file={token_file}"),
    ];
    let service = start_with(&data, &config, &settings);
    let is_over = AtomicBool::new(false);
    thread::scope(|scope| {
        for at in 0..4u8 {
            let (service, is_over) = (&service, &is_over);
            scope.spawn(move || {
                for n in (0..20).cycle() {
                    // The names of the right clients, their logins, made-up logins, and passwords
                    // of the config.
                    let (name, shown) = match at {
                        0 => (format!("KEEP{n}"), "553=trader|554=guess|".to_string()),
                        1 => (format!("KEEP{n}"), format!("553=nobody{n}|554=guess|")),
                        2 => (format!("GUARD{n}"), "553=me|554=guess|".to_string()),
                        _ => (format!("KEEP{n}"), String::new()),
                    };
                    assert!(log_on(service, 2 + at, &name, &shown).is_none());
                    if is_over.load(Ordering::Relaxed) {
                        return;
                    }
                }
            });
        }
        let mut clients = Vec::new();
        for n in 0..20 {
            let (name, shown) = match n % 4 {
                0 | 1 => (format!("KEEP{n}"), "553=trader|554=correct horse battery|".to_string()),
                2 => (format!("KEEP{n}"), format!("553=robot|554={token}|")),
                _ => (format!("GUARD{n}"), "553=me|554=sesame|".to_string()),
            };
            let client = log_on(&service, 1, &name, &shown);
            clients.push(client.unwrap_or_else(|| panic!("{name} is let in at its first attempt")));
        }
        is_over.store(true, Ordering::Relaxed);
        clients.iter_mut().for_each(FixClient::settle);
    });
    service.signal("KILL");
    service.end();
}
