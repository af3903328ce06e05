//! The running service and its FIX clients: over real sockets, killed and restarted, on several
//! gateways, and beside hostile sessions.

mod admission;

mod attribution;
mod cluster;
mod cluster_build;
mod dialogues;
mod directives;
mod drop_copy;
mod hostile;
mod kills;
mod market_data;
mod others;
mod queries;
mod quickfix;
mod send_first;
mod sessions;
mod versions;

use std::io::Write;
use std::net::SocketAddr;
use std::process::{Command, Stdio};
use std::time::Duration;

use pitlane_testkit::paths;
use pitlane_testkit::service::{ServiceProcess, TestFolder, command};

/// No limits that a test reaches by chance, and a session that keeps its sequence numbers.
const SETTINGS: [&str; 6] = [
    "risk.strategies.max_orders_per_s=0",
    "risk.strategies.max_open_orders=0",
    "fix.store_bytes=4194304",
    "demo.on=false",
    "feed.rate=200",
    "log.level=info",
];

/// The config file of these tests: a session that resets, a family that does not, one with a
/// password, one from another address.
const CONFIG: &str = r#"
[[fix.session]]
SenderCompID = "PITLANE"
TargetCompID = "CLIENT1"

[[fix.session]]
SenderCompID = "PITLANE"
TargetCompID = "KEEP*"
ResetOnLogon = "N"

[[fix.session]]
SenderCompID = "PITLANE"
TargetCompID = "SECRET"
username = "me"
password = "sesame"

[[fix.session]]
SenderCompID = "PITLANE"
TargetCompID = "FAR"
addresses_allowed = ["10.1.2.3"]

[[fix.session]]
SenderCompID = "PITLANE"
TargetCompID = "LEAVES"
cancel_on_disconnect = true
cancel_grace_s = 0

[[fix.session]]
SenderCompID = "PITLANE"
TargetCompID = "LIVE"
second_logon = "replace"
replace_after_ms = 60_000

[[fix.session]]
SenderCompID = "PITLANE"
TargetCompID = "SILENT"
second_logon = "replace"
replace_after_ms = 100

[[fix.session]]
SenderCompID = "PITLANE"
TargetCompID = "SLOW"
orders_per_s_max = 5
cancels_per_s_max = 5
"#;

/// Pause between two requests for the first prices.
const PRICE_PAUSE: Duration = Duration::from_millis(20);

fn start(data: &TestFolder, settings: &[&str]) -> ServiceProcess {
    start_with(data, CONFIG, settings)
}

/// Starts a service and waits until the first five securities have prices.
fn start_priced(data: &TestFolder) -> ServiceProcess {
    let service = start(data, &[]);
    for security in 1..=5 {
        let request = format!("GET /rest/ext/quote?securityId={security}");
        while !service.ask(&request).1.contains("\"bid\"") {
            std::thread::sleep(PRICE_PAUSE);
        }
    }
    service
}

fn start_with(data: &TestFolder, config: &str, settings: &[&str]) -> ServiceProcess {
    begin(data, command_with(data, config, settings))
}

fn command_with(data: &TestFolder, config: &str, settings: &[&str]) -> Command {
    let file = data.join("service.toml");
    std::fs::write(&file, config).expect("a file for the test");
    let mut command = command(data, &[&SETTINGS[..], settings].concat());
    command.arg("--config").arg(&file);
    command
}

fn begin(data: &TestFolder, command: Command) -> ServiceProcess {
    let service = ServiceProcess::on(data, command);
    if !service.is_ready() {
        let ready = service.ready.clone();
        panic!("{ready}\n{}", service.end().log_text);
    }
    service
}

fn address(service: &ServiceProcess, name: &str) -> SocketAddr {
    let part = service.ready.split_whitespace().find_map(|part| part.strip_prefix(name)?.strip_prefix('='));
    part.unwrap_or_else(|| panic!("there is no {name} in {}", service.ready)).parse().expect("an address")
}

/// Returns the output of the binary with these arguments.
fn pitlane(arguments: &[&str]) -> String {
    let output = Command::new(paths::binary()).args(arguments).output().expect("the binary starts");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).expect("it prints text")
}

/// Adds a user with the role trade to a file of users.
fn add_user(file: &str, name: &str, password: &str) {
    let mut command = Command::new(paths::binary());
    command.args(["user", "add", name, "--role", "trade", "--file", file]);
    let mut child = command.stdin(Stdio::piped()).stdout(Stdio::null()).spawn().expect("the binary starts");
    let mut input = child.stdin.take().expect("its input is ours");
    writeln!(input, "{password}").expect("it reads a password");
    drop(input);
    assert!(child.wait().expect("it ends").success());
}

fn fix(service: &ServiceProcess) -> SocketAddr {
    address(service, "fix")
}
