//! Checks that the service is as `/openapi.json` describes it: schemathesis generates requests from
//! the description, valid and invalid ones, and checks that the responses are as described.
//!
//! It comes from PyPI into a separate folder under `target/`. `make fuzz TARGET=rest FOR=600` runs
//! it longer.

// Everything here is a test, helpers included.
#![allow(clippy::unwrap_used, reason = "tests may")]

use std::env;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;

use pitlane_testkit::secured_service::{SecuredService, bearer};

/// Pinned, so that a new version does not change the tests.
const VERSION: &str = "4.32.5";
/// Requests generated for each call in the short form.
const EXAMPLES_SHORT: &str = "8";
/// Seconds of a long run, by `make fuzz`.
const LONG: &str = "PITLANE_REST_FUZZ";

/// Returns its folder, created at the first use and by one test only.
fn tools() -> &'static Path {
    static TOOLS: OnceLock<PathBuf> = OnceLock::new();
    TOOLS.get_or_init(install)
}

fn install() -> PathBuf {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("schemathesis-{VERSION}"));
    let done = folder.join("complete");
    if done.exists() {
        return folder;
    }
    let run = |command: &mut Command| {
        let output = command.output().unwrap_or_else(|error| panic!("{command:?}: {error}"));
        let errors = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(output.status.success(), "python3, python3-venv and PyPI are needed: {command:?}: {errors}");
    };
    let _ = fs::remove_dir_all(&folder);
    run(Command::new("python3").args(["-m", "venv"]).arg(&folder));
    let package = format!("schemathesis=={VERSION}");
    run(Command::new(folder.join("bin/pip")).args([
        "install",
        "--quiet",
        "--disable-pip-version-check",
        &package,
    ]));
    fs::write(done, "").unwrap();
    folder
}

#[test]
fn the_service_is_as_described() {
    let tools = tools();
    let secured = SecuredService::start("description", &["feed.on=true"]);
    let url = format!("http://{}/openapi.json", secured.service.address());
    let mut command = Command::new(tools.join("bin/schemathesis"));
    command.current_dir(env!("CARGO_TARGET_TMPDIR"));
    command
        .args(["--config-file", concat!(env!("CARGO_MANIFEST_DIR"), "/tests/description/schemathesis.toml")]);
    command.args(["run", &url, "--no-color", "--header"]);
    command.arg(bearer(&secured.token[2]).trim_end());
    match env::var(LONG) {
        Ok(seconds) => command.args(["--max-time", &seconds]),
        // The same requests every time.
        Err(_) => command.args(["--max-examples", EXAMPLES_SHORT, "--generation-deterministic"]),
    };
    let output = command.output().unwrap();
    let text = String::from_utf8_lossy(&output.stdout);
    println!("{text}");
    assert!(output.status.success(), "{text}\n{}", String::from_utf8_lossy(&output.stderr));
    assert_eq!(secured.ask("GET", "/health/live", "").status, 200, "it is still there");
    secured.end();
}

#[test]
fn every_example_fits_its_schema() {
    let tools = tools();
    let secured = SecuredService::start("examples", &[]);
    let document = secured.ask("GET", "/openapi.json", "");
    assert_eq!(document.header("content-type"), Some("application/json"));
    let path = Path::new(env!("CARGO_TARGET_TMPDIR")).join("openapi.json");
    fs::write(&path, &document.body).unwrap();
    let script = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/description/examples.py");
    let output = Command::new(tools.join("bin/python")).arg(script).arg(&path).output().unwrap();
    let text =
        String::from_utf8_lossy(&output.stdout).into_owned() + &String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{text}");
    let checked: usize = text.trim().strip_prefix("checked ").unwrap().parse().unwrap();
    assert!(checked > 100, "{text}");
    secured.end();
}

#[test]
fn the_docs_page_loads_nothing_from_other_hosts() {
    let secured = SecuredService::start("reader", &[]);
    let page = secured.ask("GET", "/docs", "");
    assert_eq!((page.status, page.header("content-type")), (200, Some("text/html; charset=utf-8")));
    let policy = page.header("content-security-policy").unwrap();
    assert!(policy.starts_with("default-src 'none'") && !policy.contains("unsafe"), "{policy}");
    // Every path that the page names exists and has the type it is named as.
    let named = page.body.split(['"', '\'']).filter(|word| word.starts_with('/'));
    let named: Vec<&str> = named.collect();
    assert_eq!(named, ["/docs/viewer.css", "/docs/viewer.js", "/openapi.json"]);
    for (path, kind) in named.iter().zip(["text/css", "text/javascript", "application/json"]) {
        let part = secured.ask("GET", path, "");
        assert_eq!(part.status, 200, "{path}");
        assert!(part.header("content-type").unwrap().starts_with(kind), "{path}");
        assert!(!part.body.contains("http://") && !part.body.contains("https://"), "{path}");
    }
    assert!(!page.body.contains("<style") && !page.body.contains("onclick") && !page.body.contains("//"));
    secured.end();
}
