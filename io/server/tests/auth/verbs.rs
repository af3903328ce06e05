use std::fs;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::Path;

use pitlane_testkit::secured_service::{PASSWORD, add_user, create_token, done, pitlane};
use pitlane_testkit::service::{ServiceProcess, folder};

#[test]
fn users_are_added_changed_listed_and_removed() {
    let data = folder("users");
    let file = data.join("users");
    let path = file.to_str().unwrap();
    add_user(&file, "alice", "admin");
    assert_eq!(fs::metadata(&file).unwrap().permissions().mode() & 0o777, 0o600);
    done(&pitlane(
        &["user", "add", "bob", "--role", "trade", "--strategies", "PAIRS,MOMENTUM", "--file", path],
        "  a password with spaces  \n",
    ));
    assert_eq!(
        done(&pitlane(&["user", "list", "--file", path], "")),
        format!("{:<24} {:<8} *\n{:<24} {:<8} PAIRS,MOMENTUM\n", "alice", "admin", "bob", "trade")
    );
    let before = fs::read_to_string(&file).unwrap();
    assert!(before.starts_with("# name role strategies password"), "{before}");
    assert!(!before.contains(PASSWORD) && !before.contains("with spaces"));

    // Lines written by hand stay where they were.
    fs::write(&file, format!("{before}# the end")).unwrap();
    done(&pitlane(&["user", "passwd", "alice", "--file", path], "another password\n"));
    let after = fs::read_to_string(&file).unwrap();
    let lines = |text: &str| text.lines().map(str::to_string).collect::<Vec<_>>();
    let (before, after) = (lines(&before), lines(&after));
    assert_eq!((after.len(), after[3].as_str()), (4, "# the end"));
    assert!(after[1].starts_with("alice admin * $argon2id$") && after[1] != before[1]);
    assert_eq!(after[2], before[2]);

    done(&pitlane(&["user", "remove", "alice", "--file", path], ""));
    assert_eq!(fs::read_to_string(&file).unwrap().lines().count(), 3);
    assert_eq!(fs::read_dir(file.parent().unwrap()).unwrap().count(), 1, "nothing is left lying about");
}

#[test]
fn a_failed_command_is_reported_and_changes_nothing() {
    let data = folder("refused");
    let file = data.join("users");
    let path = file.to_str().unwrap();
    add_user(&file, "alice", "admin");
    let (text, inode) = (fs::read_to_string(&file).unwrap(), fs::metadata(&file).unwrap().ino());
    let refused = |arguments: &[&str], input: &str| {
        let output = pitlane(&[arguments, &["--file", path]].concat(), input);
        assert_eq!(output.status.code(), Some(1), "{arguments:?}");
        assert_eq!(fs::metadata(&file).unwrap().ino(), inode, "{arguments:?}");
        String::from_utf8(output.stderr).unwrap()
    };
    let add = ["user", "add", "bob", "--role", "read"];
    assert!(refused(&["user", "add", "alice", "--role", "read"], PASSWORD).contains("alice is there"));
    assert!(refused(&["user", "add", "a:b", "--role", "read"], PASSWORD).contains("the name: it must be"));
    assert!(refused(&add, "short\n").contains("a password has 12 to 1024 bytes, not 5"));
    assert!(refused(&add, "").contains("not 0"));
    assert!(refused(&["user", "passwd", "bob"], PASSWORD).contains("there is no bob"));
    assert!(refused(&["user", "remove", "bob"], "").contains("there is no bob"));
    assert_eq!(fs::read_to_string(&file).unwrap(), text);

    fs::write(&file, "nonsense\n").unwrap();
    assert!(refused(&add, PASSWORD).contains("users:1: it must be name, role, strategies and password"));
    let unset = pitlane(&["user", "list"], "");
    assert!(String::from_utf8(unset.stderr).unwrap().contains("auth.users_file is not set"));
    // A password is no argument: other processes could read it.
    assert_eq!(pitlane(&[&add[..], &["--password", PASSWORD]].concat(), "").status.code(), Some(2));
}

#[test]
fn a_token_is_shown_once() {
    let data = folder("tokens");
    let file = data.join("tokens");
    let path = file.to_str().unwrap();
    let token = create_token(&file, "robot", "trade", "*");
    assert!(token.starts_with("pit_") && token.len() == 47, "{token}");
    assert_ne!(token, create_token(&file, "other", "read", "*"));
    assert!(!fs::read_to_string(&file).unwrap().contains(&token));
    let setting = format!("auth.tokens_file={path}");
    let listed = done(&pitlane(&["token", "list", "--set", &setting], ""));
    assert_eq!(listed, format!("{:<24} {:<8} *\n{:<24} {:<8} *\n", "robot", "trade", "other", "read"));
    done(&pitlane(&["token", "revoke", "robot", "--file", path], ""));
    assert_eq!(done(&pitlane(&["token", "list", "--file", path], "")).lines().count(), 1);
}

#[test]
fn two_processes_that_change_a_file_at_once_both_succeed() {
    let data = folder("together");
    let file = data.join("tokens");
    std::thread::scope(|scope| {
        for n in 0..8 {
            let file = &file;
            scope.spawn(move || create_token(file, &format!("robot{n}"), "read", "*"));
        }
    });
    let listed = done(&pitlane(&["token", "list", "--file", file.to_str().unwrap()], ""));
    assert_eq!(listed.lines().count(), 8);
}

#[test]
fn a_service_without_any_login_does_not_start() {
    let data = folder("nobody");
    let users = data.join("users");
    let setting = format!("auth.users_file={}", users.display());
    let settings = ["auth.mode=required", &setting];
    let missing = ServiceProcess::start(&data, &settings, None).end();
    assert_eq!(missing.status.code(), Some(1));
    assert!(missing.log_text.contains("users: No such file"), "{}", missing.log_text);
    fs::write(&users, "# no user yet\n").unwrap();
    let no_user = ServiceProcess::start(&data, &settings, None).end();
    assert!(no_user.log_text.contains("no user can log in"), "{}", no_user.log_text);
    fs::write(&users, "alice admin * secret\n").unwrap();
    let wrong = ServiceProcess::start(&data, &settings, None).end();
    assert!(wrong.log_text.contains("users:1: password: it must begin with"), "{}", wrong.log_text);
    // `pitlane check` reports the same.
    let check = pitlane(&["check", "--set", "auth.mode=required", "--set", &setting], "");
    assert_eq!(check.status.code(), Some(1));
    assert!(String::from_utf8(check.stderr).unwrap().contains("users:1: password: it must begin with"));
}

#[test]
fn a_world_writable_file_is_refused() {
    let data = folder("writable");
    let (users, tokens) = (data.join("users"), data.join("tokens"));
    add_user(&users, "alice", "admin");
    create_token(&tokens, "robot", "trade", "*");
    let settings = [
        format!("auth.users_file={}", users.display()),
        format!("auth.tokens_file={}", tokens.display()),
        "http.listen=127.0.0.1:0".to_string(),
        "stomp.listen=127.0.0.1:0".to_string(),
        "fix.listen=127.0.0.1:0".to_string(),
        "https.listen=".to_string(),
        "stomp.tls_listen=".to_string(),
    ];
    let store = data.join("data").display().to_string();
    let text = |verb: &[&str]| {
        let sets = settings.iter().flat_map(|set| ["--set", set.as_str()]);
        let arguments: Vec<&str> = verb.iter().copied().chain(sets).collect();
        let output = pitlane(&arguments, "");
        (output.status.success(), String::from_utf8(output.stderr).unwrap())
    };
    let verbs = [&["check"][..], &["serve", "--for", "1", "--data", &store]];
    let mode = |path: &Path, mode: u32| fs::set_permissions(path, fs::Permissions::from_mode(mode)).unwrap();
    for (path, wrong, right, arguments) in [
        (&*users, 0o602, 0o600, "every user of this machine may write it"),
        (&*tokens, 0o602, 0o600, "every user of this machine may write it"),
        (&*data, 0o707, 0o1707, "every user of this machine may replace it"),
    ] {
        mode(path, wrong);
        for verb in verbs {
            let (is_sound, text) = text(verb);
            assert!(!is_sound && text.contains(arguments), "{verb:?} {}: {text}", path.display());
        }
        mode(path, right);
        assert!(text(verbs[0]).0, "{}", text(verbs[0]).1);
    }
}
