//! The binary as users run it: its output and its exit codes.

use std::fs;
use std::io::{BufRead, BufReader, Read};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use pitlane_engine::refdata::RefDataTable;
use pitlane_testkit::paths;
use pitlane_testkit::temp_folder::TestFolder;

fn pitlane(arguments: &str) -> Command {
    let mut command = Command::new(paths::binary());
    command.args(arguments.split(' '));
    command
}

/// Returns an empty folder for one test.
fn folder(name: &str) -> TestFolder {
    TestFolder::new("binary", name)
}

/// Returns the arguments of `serve`, with a separate folder, small files and any free port.
fn serving(data: &TestFolder, arguments: &str) -> String {
    let data = data.display();
    let keys = ["http.listen", "https.listen", "stomp.listen", "stomp.tls_listen", "fix.listen"];
    let free = keys.map(|key| format!("--set {key}=127.0.0.1:0")).join(" ");
    let small = "--set journal.segment_bytes=1048576 --set journal.reserve_segments=2";
    format!("serve --data {data} {free} {small} {arguments}")
}

fn run(arguments: &str) -> (Option<i32>, String, String) {
    let Output { status, stdout, stderr } = pitlane(arguments).output().expect("the binary starts");
    let text = |bytes| String::from_utf8(bytes).expect("it prints text");
    (status.code(), text(stdout), text(stderr))
}

#[test]
fn serve_shows_orders_and_stops_when_the_time_is_up() {
    let arguments = "--config dev --for 1 --seed 7 --shards 3 --set demo.rate=50";
    let (code, output, errors) = run(&serving(&folder("orders"), arguments));
    assert_eq!((code, errors.as_str()), (Some(0), ""));
    let lines: Vec<&str> = output.lines().collect();
    assert!(lines[0].starts_with("ready http=127.0.0.1:"), "{output}");
    for name in ["https", "stomp", "stomp+tls", "fix"] {
        assert!(lines[0].contains(&format!(" {name}=127.0.0.1:")), "{output}");
    }
    assert!(lines[0].ends_with("durability=os securities=27 exchanges=3 shards=3 seed=7"), "{output}");
    let last = lines[lines.len() - 1];
    assert!(last.starts_with("stopped ticks=") && last.ends_with(" USD"), "{output}");
    assert!(!last.contains("ticks=0 ") && !last.contains("orders=0 "), "{output}");
    let status_lines = &lines[1..lines.len() - 1];
    assert!(status_lines.iter().any(|line| line.contains("PENDING_NEW")), "{output}");
    assert!(status_lines.iter().any(|line| line.contains(" NEW")), "{output}");
}

#[test]
fn quiet_prints_only_the_first_and_the_last_line() {
    let (code, output, _) = run(&serving(&folder("quiet"), "--config dev --for 1 --quiet"));
    assert_eq!((code, output.lines().count()), (Some(0), 2), "{output}");
}

#[test]
fn a_signal_stops_the_service_in_order() {
    for signal in ["INT", "TERM"] {
        let data = folder("signal");
        let mut child =
            pitlane(&serving(&data, "--quiet")).stdout(Stdio::piped()).spawn().expect("the binary starts");
        let mut out = BufReader::new(child.stdout.take().expect("its output is ours"));
        let mut line = String::new();
        out.read_line(&mut line).expect("it prints that it is ready");
        assert!(line.starts_with("ready "), "{line}");
        // The shell has a built-in `kill`, so nothing needs to be installed.
        let kill = format!("kill -{signal} {}", child.id());
        assert!(Command::new("sh").args(["-c", &kill]).status().expect("there is a shell").success());
        let mut rest = String::new();
        out.read_to_string(&mut rest).expect("it prints how it ended");
        assert!(rest.starts_with("stopped "), "{rest}");
        assert_eq!(child.wait().expect("it ends").code(), Some(0));
    }
}

#[test]
fn a_closed_standard_output_stops_the_service() {
    let data = folder("pipe");
    let mut child =
        pitlane(&serving(&data, "--for 20")).stdout(Stdio::piped()).spawn().expect("the binary starts");
    drop(child.stdout.take());
    assert_eq!(child.wait().expect("it ends").code(), Some(0));
}

#[test]
fn check_prints_ok_or_each_fault() {
    let (code, output, _) = run("check");
    assert_eq!(code, Some(0));
    assert_eq!(output, "ok: 3 exchanges, 13 families, 27 securities, 3 accounts, 4 strategies\n");

    let shipped = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../config/refdata");
    let folder = folder("spoiled");
    for table in RefDataTable::ALL {
        let name = format!("{}.csv", table.name());
        let text = fs::read_to_string(shipped.join(&name)).expect("the shipped set is there");
        fs::write(folder.join(&name), text.replace("0.25,1,", "0.2.5,1,")).expect("a file for the test");
    }
    let folder = folder.display();
    for verb in ["check", "serve --for 1"] {
        let (code, output, errors) = run(&format!("{verb} --refdata {folder}"));
        assert_eq!((code, output.as_str()), (Some(1), ""));
        let expected = format!(
            "{folder}/families.csv:4: tickSize: \"0.2.5\" is not a decimal\n\
             {folder}/families.csv:5: tickSize: \"0.2.5\" is not a decimal\n"
        );
        assert_eq!(errors, expected);
    }
}

#[test]
fn a_wrong_argument_prints_help() {
    let (code, _, errors) = run("serve --sede 7");
    assert_eq!(code, Some(2));
    assert!(errors.contains("--seed"), "{errors}");
}

#[test]
fn check_and_serve_name_every_wrong_setting() {
    let folder = folder("wrong-settings");
    let path = folder.join("wrong-settings.toml");
    fs::write(&path, "[net]\nbaklog = 5\n[risk.strategy.NOBODY]\n").expect("a file for the test");
    let file = path.display();
    for verb in ["check", "serve --for 1"] {
        let (code, output, errors) = run(&format!("{verb} --config {file} --set lanes.events=0"));
        assert_eq!((code, output.as_str()), (Some(1), ""));
        let expected = format!(
            "--set: lanes.events: it must be 1 to 1048576, not 0\n\
             {file}:2:1: net.baklog: there is no such key (did you mean backlog?)\n"
        );
        assert_eq!(errors, expected);
    }
    let (code, _, errors) = run("check --set risk.strategy.NOBODY.max_order_qty=1");
    assert_eq!(code, Some(1));
    assert!(errors.contains("there is no strategy NOBODY"), "{errors}");
}

#[test]
fn warnings_are_printed_and_the_start_continues() {
    let (code, output, errors) =
        run(&serving(&folder("warned"), "--for 0 --set journal.level=none --set log.format=text"));
    assert_eq!((code, output.lines().count()), (Some(0), 2), "{output}");
    assert!(errors.contains("WARN pitlane::cli: journal.level: nothing survives"), "{errors}");
    let (code, _, errors) = run("check --set journal.level=none");
    assert_eq!(code, Some(0));
    assert!(errors.starts_with("warning: journal.level: "), "{errors}");
}

#[test]
fn settings_are_shown_with_where_they_came_from() {
    let mut command = pitlane("config show --changed --config dev --set fix.exec_type=strict44");
    let output = command.env("PITLANE_LANES__EVENTS", "99").output().expect("the binary starts");
    let output = String::from_utf8(output.stdout).expect("it prints text");
    let all = output.lines().map(|line| line.split_whitespace().collect());
    let (strategy, lines): (Vec<Vec<&str>>, Vec<Vec<&str>>) =
        all.partition(|line: &Vec<&str>| line[0].starts_with("strategy.0."));
    assert!(strategy.iter().any(|line| line[..3] == ["strategy.0.name", "=", "MOMENTUM"]), "{output}");
    let expected = [
        ["demo.cash", "=", "1000000", "#", "config/dev.toml:7:1"].to_vec(),
        ["demo.on", "=", "true", "#", "config/dev.toml:5:1"].to_vec(),
        ["demo.rate", "=", "1", "#", "config/dev.toml:6:1"].to_vec(),
        ["fix.exec_type", "=", "strict44", "#", "--set"].to_vec(),
        ["lanes.events", "=", "99", "#", "PITLANE_LANES__EVENTS"].to_vec(),
        ["log.targets.pitlane", "=", "debug", "#", "config/dev.toml:18:1"].to_vec(),
        ["risk.strategies.max_order_qty", "=", "100000", "#", "config/dev.toml:12:1"].to_vec(),
        ["risk.strategies.max_order_value", "=", "1000000", "#", "config/dev.toml:13:1"].to_vec(),
        ["risk.strategies.max_position", "=", "200000", "#", "config/dev.toml:15:1"].to_vec(),
        ["risk.strategies.price_collar_pct", "=", "20", "#", "config/dev.toml:14:1"].to_vec(),
    ];
    assert_eq!(lines, expected, "{output}");
    let (_, all, _) = run("config show");
    assert!(all.lines().count() > 150, "{all}");
}

#[test]
fn the_doctor_prints_the_same_as_text_and_json() {
    let free = "--set http.listen= --set https.listen= --set stomp.listen= --set stomp.tls_listen= --set fix.listen=";
    let (code, output, errors) = run(&format!("doctor {free}"));
    assert_eq!(errors, "");
    let last = output.lines().last().expect("it prints something");
    assert_eq!(code, Some(i32::from(last != "fit")), "{output}");
    let (_, json, _) = run(&format!("doctor --json {free}"));
    let json: serde_json::Value = serde_json::from_str(&json).expect("JSON");
    let findings = json["findings"].as_array().expect("a list");
    assert!(findings.len() > 15, "{json}");
    for finding in findings {
        let check = finding["check"].as_str().expect("a name");
        assert!(output.contains(check), "{check} is not among {output}");
    }
}

#[test]
fn completions_are_made_for_shells() {
    for shell in ["bash", "zsh", "fish"] {
        let (code, output, _) = run(&format!("completions {shell}"));
        assert_eq!(code, Some(0));
        assert!(output.contains("doctor") && output.contains("refdata"), "{shell}");
    }
}

#[test]
fn man_pages_are_generated() {
    let folder = folder("man");
    let (code, _, errors) = run(&format!("man {}", folder.display()));
    assert_eq!((code, errors.as_str()), (Some(0), ""));
    let page = |name: &str| fs::read_to_string(folder.join(name)).expect("there is a page");
    assert!(page("pitlane.1").contains("pitlane\\-doctor(1)"), "{}", page("pitlane.1"));
    assert!(page("pitlane-serve.1").contains("service.data_dir"));
    assert!(page("pitlane-journal-dump.1").contains(".TH pitlane-journal-dump 1"));
    let (code, _, errors) = run("man /nowhere");
    assert_eq!(code, Some(1));
    assert!(errors.starts_with("pitlane: /nowhere: "), "{errors}");
}

/// Returns the HTTP address in the ready line of a service.
fn http_of(ready: &str) -> &str {
    ready.split(' ').find_map(|word| word.strip_prefix("http=")).expect("it prints its address")
}

#[test]
fn health_queries_the_service_on_this_machine() {
    let mut service = pitlane(&serving(&folder("health"), "--for 60 --quiet"))
        .stdout(Stdio::piped())
        .spawn()
        .expect("the binary starts");
    let mut ready = String::new();
    BufReader::new(service.stdout.take().expect("a pipe")).read_line(&mut ready).unwrap();
    let http = http_of(&ready);
    let (code, output, errors) = run(&format!("health --set http.listen={http}"));
    assert_eq!((code, output, errors.as_str()), (Some(0), format!("{http}: ready\n"), ""));
    assert_eq!(run(&format!("health --wait 5 --set http.listen={http}")).0, Some(0));
    service.kill().unwrap();
    service.wait().unwrap();
    let (code, output, errors) = run(&format!("health --set http.listen={http}"));
    assert_eq!((code, output.as_str()), (Some(1), ""));
    assert!(errors.starts_with(&format!("pitlane: {http}: ")), "{errors}");
    let (code, _, errors) = run("health --set http.listen=");
    assert_eq!(code, Some(1));
    assert!(errors.contains("http.listen: it is switched off"), "{errors}");
}

#[test]
fn installed_files_match_the_binary() {
    let top = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let settings = top.join("config/service.toml");
    let (code, output, errors) = run(&format!("check --config {}", settings.display()));
    assert_eq!((code, errors.as_str()), (Some(0), ""), "{output}");
    let unit = fs::read_to_string(top.join("config/pitlane.service")).unwrap();
    let commands = unit.lines().filter(|line| line.starts_with("Exec"));
    let commands: Vec<&str> =
        commands.filter_map(|line| line.split_once("/bin/pitlane ")).map(|of| of.1).collect();
    assert_eq!(commands.len(), 2, "check and serve");
    for command in commands {
        let (code, output, errors) = run(&format!("{command} --help"));
        assert_eq!((code, errors.as_str()), (Some(0), ""), "{command}");
        assert!(output.contains("Usage: pitlane "), "{command}");
    }
}

/// The files were once readable by all users of the machine, unless the system was configured
/// otherwise.
#[test]
fn trading_data_is_readable_by_its_owner_only() {
    let place = folder("private");
    let data = place.join("made/here");
    let keys = ["http.listen", "https.listen", "stomp.listen", "stomp.tls_listen", "fix.listen"];
    let mut command = pitlane("serve --config dev --for 1 --quiet --set journal.segment_bytes=1048576");
    keys.iter().for_each(|key| _ = command.args(["--set", &format!("{key}=127.0.0.1:0")]));
    command.arg("--data").arg(&data);
    assert!(command.output().expect("the binary starts").status.success());
    let mode = |path: &Path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
    assert_eq!(mode(&data), 0o700);
    let mut folders = vec![data];
    let mut files = 0;
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            let name = path.file_name().unwrap().to_str().unwrap().to_string();
            if path.is_dir() {
                folders.push(path);
            } else if !["self-signed.pem", "lock"].contains(&name.as_str()) {
                assert_eq!(mode(&path), 0o600, "{}", path.display());
                files += 1;
            }
        }
    }
    assert!(files > 5, "{files}");
}

#[test]
fn help_has_examples_and_exit_codes() {
    let (code, output, _) = run("--help");
    assert_eq!(code, Some(0));
    assert!(output.contains("Exit codes:") && output.contains("doctor"), "{output}");
    let verbs = [
        "serve",
        "check",
        "config show",
        "doctor",
        "health",
        "journal dump",
        "journal verify",
        "completions",
        "man",
    ];
    for verb in verbs {
        let (code, output, _) = run(&format!("{verb} --help"));
        assert_eq!(code, Some(0));
        assert!(output.contains("Example") && output.contains("  pitlane "), "{output}");
    }
}

#[test]
fn the_journal_of_a_service_can_be_inspected() {
    let folder = folder("journal");
    assert_eq!(run(&serving(&folder, "--config dev --for 1 --quiet")).0, Some(0));
    let data = folder.display();
    let (code, output, errors) = run(&format!("journal verify --data {data}"));
    assert_eq!((code, errors.as_str()), (Some(0), ""), "{output}");
    let (code, output, _) = run(&format!("journal replay --data {data} --shard 1"));
    assert_eq!(code, Some(0));
    assert!(output.starts_with("shard 1: record "), "{output}");
    let (code, output, _) = run(&format!("journal dump --data {data} --limit 5"));
    assert_eq!((code, output.lines().count()), (Some(0), 5), "{output}");
    let (code, _, errors) = run("journal verify --data /nowhere");
    assert_eq!(code, Some(1));
    assert!(errors.starts_with("pitlane: there is no journal in /nowhere"), "{errors}");
}
