//! Log lines of a whole process: levels by module, both formats, and the last line of a process
//! that fails.

use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::PathBuf;
use std::process::Command;
use std::thread;

use pitlane_config::{Config, Durability, Machine, Setting, Sources};
use pitlane_runtime::log;

/// Set in the child processes that these tests start.
const CHILD: &str = "LOG_TEST_CHILD";

fn config(settings: &[&str]) -> Config {
    let options = settings.iter().map(|setting| Setting::parse(setting).expect("key=value")).collect();
    let machine = Machine { cores: vec![0], cores_usable: 1 };
    pitlane_config::load(&Sources { options, ..Sources::default() }, &machine)
        .expect("the settings are sound")
        .config
}

/// Runs one of the tests below in a child process, and returns its exit code and its standard
/// error.
fn child(name: &str, say: &str) -> (Option<i32>, String) {
    let program = std::env::current_exe().expect("this test has a file");
    let mut command = Command::new(program);
    command.args(["--exact", name, "--ignored", "--nocapture", "--test-threads=1"]).env(CHILD, say);
    let output = command.output().expect("it starts");
    (output.status.code(), String::from_utf8(output.stderr).expect("it is text"))
}

#[test]
#[ignore = "runs in a process of its own, by the tests below"]
fn the_child_speaks() {
    let format = std::env::var(CHILD).unwrap_or("text".to_string());
    let settings = [&format!("log.format={format}"), "log.level=warn", "log.targets.loud=debug"];
    let (log, mut events) = log::start(&config(&settings).log).expect("it starts once");
    tracing::info!("below the level");
    tracing::warn!(orders = 3, "kept");
    tracing::debug!(target: "loud", "logged");
    tracing::trace!(target: "loud", "not logged");
    assert_eq!(events.poll().expect("a warning is an event").message, "kept");
    assert!(events.poll().is_none());
    drop(log);
}

#[test]
fn levels_apply_by_module_and_lines_are_written_before_the_end() {
    let (code, output) = child("the_child_speaks", "text");
    let lines: Vec<&str> = output.lines().collect();
    assert_eq!((code, lines.len()), (Some(0), 2), "{output}");
    assert!(lines[0].ends_with(" WARN log: kept orders=3"), "{output}");
    assert!(lines[1].ends_with("DEBUG loud: logged"), "{output}");
}

#[test]
fn without_a_terminal_lines_are_json() {
    for format in ["auto", "json"] {
        let (_, output) = child("the_child_speaks", format);
        let line: serde_json::Value =
            serde_json::from_str(output.lines().next().expect("a line")).expect("JSON");
        assert_eq!((line["level"].as_str(), line["message"].as_str()), (Some("WARN"), Some("kept")));
        assert_eq!((line["orders"].as_u64(), line["target"].as_str()), (Some(3), Some("log")));
        assert!(line["timestamp"].as_str().is_some_and(|time| time.starts_with("20") && time.ends_with('Z')));
    }
}

#[test]
#[ignore = "runs in a process of its own, by the tests below"]
fn the_child_fails() {
    let (log, _events) = log::start(&config(&["log.format=text"]).log).expect("it starts once");
    let durability = match std::env::var(CHILD).as_deref() {
        Ok("none") => Durability::None,
        _ => Durability::Os,
    };
    log::abort_on_panic(log.lines(), durability);
    tracing::warn!("logged before");
    let shard = thread::Builder::new().name("shard-1".to_string());
    let failed = shard.spawn(|| panic!("cum is above\nqty")).expect("a thread");
    let _ = failed.join();
    unreachable!("a thread that only panicked would let us come here");
}

#[test]
fn a_panic_of_any_thread_writes_one_last_line_and_ends_the_process() {
    for (durability, state) in [
        ("os", "the state is in the journal, start again to go on"),
        ("none", "nothing was kept, since journal.level is none"),
    ] {
        let (code, output) = child("the_child_fails", durability);
        assert_eq!(code, None, "it ends by a signal: {output}");
        let lines: Vec<&str> = output.lines().collect();
        assert!(lines[0].ends_with("logged before"), "{output}");
        assert!(
            lines[1].starts_with("pitlane failed: thread shard-1 at io/runtime/tests/log.rs:"),
            "{output}"
        );
        assert!(lines[1].ends_with(&format!(": cum is above qty; {state}")), "{output}");
        assert_eq!(lines.len(), 2, "{output}");
    }
}

#[test]
#[ignore = "runs in a process of its own, by the tests below"]
fn the_child_writes_to_a_file() {
    let path = std::env::var(CHILD).unwrap_or_default();
    let (log, _) = log::start(&config(&[&format!("log.file={path}")]).log).expect("it starts once");
    tracing::info!("kept in the file");
    drop(log);
}

#[test]
fn a_file_is_appended_to() {
    let path = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join("pitlane.log");
    let _ = fs::remove_file(&path);
    for _ in 0..2 {
        let (code, output) = child("the_child_writes_to_a_file", &path.display().to_string());
        assert_eq!((code, output.as_str()), (Some(0), ""));
    }
    let text = fs::read_to_string(&path).expect("the log is there");
    assert_eq!(
        text.lines().filter(|line| line.contains("\"message\":\"kept in the file\"")).count(),
        2,
        "{text}"
    );
    let nowhere = config(&["log.file=/nowhere/pitlane.log"]).log;
    assert!(
        log::start(&nowhere)
            .expect_err("there is no such folder")
            .to_string()
            .contains("/nowhere/pitlane.log")
    );
}

#[test]
fn lines_have_priorities_if_standard_error_is_the_journal() {
    let path = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join("journal.log");
    let run = |journal: &dyn Fn(&fs::Metadata) -> String| {
        let file = fs::File::create(&path).expect("a file for the test");
        let journal = journal(&file.metadata().expect("it exists"));
        let mut command = Command::new(std::env::current_exe().expect("this test has a file"));
        command.args(["--exact", "the_child_speaks", "--ignored", "--nocapture", "--test-threads=1"]);
        command.env(CHILD, "text").env("JOURNAL_STREAM", journal).stderr(file);
        assert!(command.output().expect("it starts").status.success());
        fs::read_to_string(&path).expect("the log is there")
    };
    let named = run(&|about| format!("{}:{}", about.dev(), about.ino()));
    let lines: Vec<&str> = named.lines().collect();
    assert!(lines[0].starts_with("<4>20") && lines[0].ends_with("kept orders=3"), "{named}");
    assert!(lines[1].starts_with("<7>20"), "{named}");
    let other = run(&|about| format!("{}:{}", about.dev(), about.ino() + 1));
    assert!(other.starts_with("20"), "another stream is the journal: {other}");
}
