use std::fs;
use std::path::{Path, PathBuf};

use pitlane_testkit::secured_service::{SecuredService, basic, bearer, done, pitlane};
use pitlane_testkit::service::folder;
use serde_json::Value;

fn lines(data: &Path) -> Vec<Value> {
    let text = fs::read_to_string(file(data)).unwrap();
    text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

fn file(data: &Path) -> PathBuf {
    data.join("audit/000001.jsonl")
}

fn verify(data: &Path) -> (bool, String) {
    let output = pitlane(&["audit", "verify", "--data", data.to_str().unwrap()], "");
    (output.status.success(), String::from_utf8(output.stdout).unwrap())
}

#[test]
fn every_administrative_action_is_logged_before_it_happens() {
    let secured = SecuredService::start("audit", &[]);
    let data = secured.data.clone();
    let admin = bearer(&secured.token[2]);
    assert_eq!(secured.ask("POST", "/rest/ext/kill-switch", &admin).status, 200);
    let noted = lines(&data);
    assert_eq!(noted[0]["act"], "POST /rest/ext/kill-switch");
    assert_eq!((&noted[0]["who"], &noted[0]["role"]), (&"admin-robot".into(), &"admin".into()));
    assert_eq!((&noted[0]["from"], &noted[0]["via"]), (&"127.0.0.1".into(), &"REST".into()));
    // A refused call is no action, and neither is a read.
    let refused = secured.ask("DELETE", "/rest/ext/kill-switch", &bearer(&secured.token[1]));
    assert_eq!((refused.status, refused.code().as_str()), (403, "role-too-low"));
    assert_eq!(secured.ask("GET", "/rest/account", &admin).status, 200);
    let password = basic("admin", pitlane_testkit::secured_service::PASSWORD);
    assert_eq!(secured.ask("DELETE", "/rest/ext/kill-switch", &password).status, 200);
    assert_eq!(secured.ask("POST", "/rest/runtime/exit-vm?why=enough", &admin).status, 200);
    let ended = secured.service.end();
    assert!(ended.is_orderly(), "{}", ended.log_text);

    let noted = lines(&data);
    assert_eq!(noted[0]["body"], Value::Null, "nothing was sent along");
    let acts: Vec<&Value> = noted.iter().filter(|line| !line["act"].is_null()).collect();
    let outcomes: Vec<&Value> = noted.iter().filter(|line| !line["of"].is_null()).collect();
    let arguments =
        |line: &Value| (line["who"].as_str().unwrap().to_string(), line["act"].as_str().unwrap().to_string());
    assert_eq!(arguments(acts[1]), ("admin".to_string(), "DELETE /rest/ext/kill-switch".to_string()));
    assert_eq!(arguments(acts[2]).1, "POST /rest/runtime/exit-vm?why=enough");
    assert_eq!((acts.len(), outcomes.len()), (3, 3), "{noted:?}");
    for (act, outcome) in acts.iter().zip(&outcomes) {
        assert_eq!((&outcome["of"], &outcome["outcome"]), (&act["seq"], &"200".into()));
    }
    let (sound, text) = verify(&data);
    assert!(sound && text.starts_with("ok: 6 lines in 1 files"), "{text}");

    // A line is changed to look like the action of another user.
    let text = fs::read_to_string(file(&data)).unwrap();
    fs::write(file(&data), text.replacen("admin-robot", "another-one", 1)).unwrap();
    let (sound, text) = verify(&data);
    assert!(!sound && text.contains("000001.jsonl:1: its hash is wrong"), "{text}");
}

#[test]
fn request_bodies_are_logged_up_to_a_length_and_without_secrets() {
    let secured = SecuredService::start("audit-bodies", &[]);
    let admin = bearer(&secured.token[2]);
    let put_to = |path: &str, body: &str| {
        let mut client = secured.connect();
        let length = body.len();
        client.send(&format!(
            "PUT {path} HTTP/1.1\r\nHost: localhost\r\n{admin}Content-Type: application/json\r\n\
             Content-Length: {length}\r\n\r\n{body}"
        ));
        client.receive(false).status
    };
    let put = |body: &str| put_to("/rest/ext/risk", body);
    let sound = r#"{"strategyName":"PAIRS","maxOpenOrders":7}"#;
    assert_eq!(put(sound), 200);
    assert_eq!(put(r#"{"strategyName":"PAIRS","Password":"sesame"}"#), 400);
    assert_eq!(put(&format!(r#"{{"strategyName":"{}"}}"#, "é".repeat(1_000))), 422);
    let stop = r#"{"phase":"STOP"}"#;
    assert_eq!(put_to("/rest/ext/strategy/PAIRS/phase", stop), 200);
    let noted = lines(&secured.data);
    let bodies: Vec<&str> = noted.iter().filter_map(|line| line["body"].as_str()).collect();
    assert_eq!(bodies[..2], [sound, "***"]);
    let led = noted.iter().find(|line| line["body"] == stop).expect("leading a strategy is an act");
    assert_eq!(led["act"], "PUT /rest/ext/strategy/PAIRS/phase");
    assert!(bodies[2].starts_with(r#"{"strategyName":"éé"#) && bodies[2].len() <= 512, "{}", bodies[2].len());
    assert!(verify(&secured.data).0);
    secured.end();
}

#[test]
fn the_log_continues_after_a_restart_and_a_broken_log_refuses_the_start() {
    let data = folder("audit-again");
    let start = || pitlane_testkit::service::ServiceProcess::start(&data, &["feed.on=false"], None);
    for round in 1..=2 {
        let service = start();
        assert_eq!(service.ask("POST /rest/runtime/exit-vm").0, 200);
        assert!(service.end().is_orderly());
        assert_eq!(lines(&data).len(), 2 * round);
    }
    // Without login the user is `local`.
    assert_eq!(lines(&data)[2]["who"], "local");
    done(&pitlane(&["audit", "verify", "--data", data.to_str().unwrap()], ""));
    let text = fs::read_to_string(file(&data)).unwrap();
    fs::write(file(&data), text.replacen("local", "nobody", 1)).unwrap();
    let ended = start().end();
    assert_eq!(ended.status.code(), Some(1));
    assert!(ended.log_text.contains("000001.jsonl:1: its hash is wrong"), "{}", ended.log_text);
}

#[test]
fn an_action_that_cannot_be_logged_is_not_executed() {
    let data = folder("audit-fails");
    // One action with its outcome is written, and then the disk fails.
    let service = pitlane_testkit::service::ServiceProcess::start(&data, &["feed.on=false"], Some("audit:2"));
    assert!(service.is_ready(), "{}", service.ready);
    assert_eq!(service.ask("POST /rest/ext/kill-switch").0, 200);
    // The outcome may be written together with the next action.
    let mut refused =
        (0..2).map(|_| service.ask("DELETE /rest/ext/kill-switch")).filter(|(status, _)| *status != 200);
    let (status, body) = refused.next().expect("there is one write left");
    assert_eq!(status, 503, "{body}");
    assert!(body.contains("audit-failed"), "{body}");
    for request in
        ["POST /rest/ext/kill-switch", "DELETE /rest/ext/kill-switch", "POST /rest/runtime/exit-vm"]
    {
        assert_eq!(service.ask(request).0, 503, "{request}");
    }
    assert_eq!(service.ask("GET /rest/account").0, 200);
    service.signal("TERM");
    let ended = service.end();
    assert!(ended.is_orderly());
    assert!(ended.log_text.contains("the audit log cannot be written"), "{}", ended.log_text);
    assert!(verify(&data).0);
}

#[test]
fn each_login_has_its_share_of_requests() {
    let secured = SecuredService::start("share", &["http.rate_per_login=2"]);
    let (one, other) =
        (bearer(&secured.token[0]), basic("trade", pitlane_testkit::secured_service::PASSWORD));
    let refused =
        (0..1_000).map(|_| secured.ask("GET", "/version", &one)).find(|response| response.status != 200);
    let refused = refused.expect("there is a limit");
    assert_eq!((refused.status, refused.code().as_str()), (429, "too-many-requests"));
    assert_eq!(refused.header("retry-after"), Some("1"));
    assert_eq!(secured.ask("GET", "/version", &other).status, 200);
    assert_eq!(secured.ask("GET", "/health/live", "").status, 200);
    secured.end();
}

/// Returns a line as the service would write it, with recomputed hashes.
fn sealed(seq: usize, prev: &str) -> (String, String) {
    use sha2::{Digest, Sha256};
    let text =
        format!(r#"{{"seq":{seq},"time":"2026-01-01T00:00:00Z","remark":"nothing happened","prev":"{prev}""#);
    let hash: String = Sha256::digest(&text).iter().map(|byte| format!("{byte:02x}")).collect();
    (format!("{text},\"hash\":\"{hash}\"}}\n"), hash)
}

#[test]
fn anchors_reveal_removed_and_recomputed_lines_of_the_log() {
    let data = folder("audit-anchors");
    let start = || pitlane_testkit::service::ServiceProcess::start(&data, &["feed.on=false"], None);
    let service = start();
    for _ in 0..2 {
        assert_eq!(service.ask("POST /rest/ext/kill-switch").0, 200);
        assert_eq!(service.ask("DELETE /rest/ext/kill-switch").0, 200);
    }
    // The journal has an anchor too, a moment later.
    while !pitlane_testkit::service::dump(&data).contains("AuditAnchor") {}
    service.signal("TERM");
    let ended = service.end();
    assert!(ended.is_orderly(), "{}", ended.log_text);
    let (sound, text) = verify(&data);
    assert!(sound && text.starts_with("ok: 8 lines in 1 files") && !text.contains("; 1 anchors"), "{text}");

    let good = fs::read_to_string(file(&data)).unwrap();
    let lines: Vec<&str> = good.split_inclusive('\n').collect();
    let (mut again, mut prev) = (String::new(), "0".repeat(64));
    for seq in 1..=8 {
        let (line, hash) = sealed(seq, &prev);
        (again, prev) = (again + &line, hash);
    }
    let cases = [
        (lines[..6].concat(), "missing: lines 7 to 8: the file audit-anchor", true),
        (lines[2..].concat(), "missing: lines 1 to 2; if these were archived", false),
        (again, "rewritten: line 8 has hash", true),
    ];
    for (text, expected, is_refused) in cases {
        fs::write(file(&data), text).unwrap();
        let (sound, text) = verify(&data);
        assert!(!sound && text.contains(expected), "{expected}: {text}");
        if is_refused {
            let ended = start().end();
            assert_eq!(ended.status.code(), Some(1), "{expected}");
            assert!(ended.log_text.contains("audit-anchor"), "{}", ended.log_text);
        }
    }
    // The whole log and the anchor file beside it are gone: the journal reveals it.
    fs::remove_dir_all(data.join("audit")).unwrap();
    fs::remove_file(data.join("audit-anchor")).unwrap();
    let (sound, text) = verify(&data);
    assert!(!sound && text.contains(": the journal has line "), "{text}");
    let service = start();
    assert!(service.is_ready(), "a new log is begun: {}", service.ready);
    service.signal("TERM");
    let ended = service.end();
    assert!(ended.log_text.contains("which is not here"), "{}", ended.log_text);
    let (sound, text) = verify(&data);
    assert!(!sound && text.contains("missing: a whole log"), "{text}");
}

#[test]
fn a_log_with_its_anchors_continues_after_a_kill() {
    let data = folder("audit-killed");
    for _ in 0..3 {
        let service = pitlane_testkit::service::ServiceProcess::start(&data, &["feed.on=false"], None);
        assert!(service.is_ready(), "{}", service.ready);
        assert_eq!(service.ask("POST /rest/ext/kill-switch").0, 200);
        service.signal("KILL");
        service.end();
        let (sound, text) = verify(&data);
        assert!(sound, "{text}");
    }
}
