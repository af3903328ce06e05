//! Common client libraries: stomp.py, and stompjs in Node. Each is fetched into the target folder
//! once; where that is not possible, the test reports it and fails only in CI, which has
//! everything.

use std::path::{Path, PathBuf};
use std::process::Command;

use pitlane_testkit::python::{self, succeeds};

use super::sessions::{address, start};

fn workshop(name: &str) -> PathBuf {
    let folder = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join("clients").join(name);
    std::fs::create_dir_all(&folder).unwrap();
    folder
}

fn here(file: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/stomp").join(file)
}

/// Reports what is missing here; in CI nothing may be missing.
fn missing(what: &str) {
    assert!(std::env::var_os("CI").is_none(), "{what} must be there");
    println!("skipped: {what} is not to be had here");
}

#[test]
fn stomp_py_works_over_tcp_and_tls_in_every_version() {
    let Some(python) = python::with_package("stomp.py==8.2.0") else { return };
    let (service, data) = start("python", &[]);
    let mut command = Command::new(&python);
    command.arg(here("client.py")).arg(data.join("self-signed.pem"));
    command.args(["stomp", "stomp+tls"].map(|name| address(&service, name).port().to_string()));
    assert!(succeeds(&mut command), "stomp.py was not content");
    service.signal("TERM");
    assert!(service.end().is_orderly());
}

#[test]
fn stompjs_works_over_ws_and_wss() {
    let folder = workshop("node");
    if !folder.join("node_modules/@stomp/stompjs").exists() {
        let mut install = Command::new("npm");
        install.args(["install", "--silent", "--no-audit", "--no-fund", "@stomp/stompjs@7", "ws@8"]);
        if !succeeds(install.current_dir(&folder)) {
            return missing("npm with stompjs and ws");
        }
    }
    let (service, data) = start("node", &["https.listen=127.0.0.1:0"]);
    let mut command = Command::new("node");
    command.arg(here("client.cjs")).arg(data.join("self-signed.pem"));
    command.args(["http", "https"].map(|name| address(&service, name).port().to_string()));
    assert!(succeeds(command.env("NODE_PATH", folder.join("node_modules"))), "stompjs was not content");
    service.signal("TERM");
    assert!(service.end().is_orderly());
}
