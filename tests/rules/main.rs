//! Every rule of the STOMP broker over sockets: the dialogues of `data/stomp`, played with the
//! service's own gateway over TCP and TLS and with its own http thread over WebSocket. Only the
//! clock is the test's, so that an hour passes at once.
//!
//! [`LEFT_OUT`] lists the rules that cannot be shown this way, with the reason; all others are
//! played.

#![allow(clippy::unwrap_used, reason = "tests may")]

mod client;
mod gateway;
mod http;
mod wired;

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use pitlane_auth::{AuthSettings, Hash, SALT_BYTES};
use pitlane_engine::id::PortId;
use pitlane_engine::index::index_usize;
use pitlane_engine::time::Timestamp;
use pitlane_gateway::notifications::{Notification, SessionInfo};
use pitlane_net::tls::{Certificate, Tls, TlsSettings};
use pitlane_protocols::stomp::payload::system::LogLevel;
use pitlane_protocols::stomp::session::{BufferUsage, StompCounters};
use pitlane_runtime::log::{LogEvent, Severity};
use pitlane_tests::stomp::dialogue::{Cuts, dialogues, play};
use pitlane_tests::stomp::host::{DialogueUser, HostPlan, LoginVerdict, StompHost};
use pitlane_tests::test_market;
use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject;
use rustls::{ClientConfig, RootCertStore};

use self::RuleTransport::{Tcp, WebSocket};
use self::gateway::GatewayHost;
use self::http::HttpHost;

/// Timeout of every step: nothing here takes long.
const PATIENCE: Duration = Duration::from_secs(30);
/// Number of shards that publish events, and the port that receives them.
const SHARDS: u8 = 2;
const PORT: PortId = PortId(1);

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum RuleTransport {
    Tcp,
    Tls,
    WebSocket,
}

const ALL: &[RuleTransport] = &[Tcp, RuleTransport::Tls, WebSocket];

/// Rules that are not played over these transports, and why. All of them are played with the broker
/// alone, in `stomp.rs`.
const LEFT_OUT: &[(&str, &[RuleTransport], &str)] = &[
    (
        "A consumer that reads again gets a fresh value after at most what the buffers held.",
        ALL,
        "it reads ten octets at a time, and the system takes thousands for them; with real buffers it is one of the \
         scenarios of the running service",
    ),
    (
        "A client whose receipts pile up is not read, and its silence is then no reason to end it.",
        ALL,
        "two receipts would have to fill twice a mark that lies behind the buffers of the system",
    ),
    (
        "More than 4 KiB before CONNECTED is too much, even behind a CONNECT that is looked at.",
        &[WebSocket],
        "the WebSocket broker reads 4 KiB at once, and nothing more while a login is looked at: so there is never more",
    ),
];

#[test]
fn every_rule_holds_over_tcp() {
    let folder = RuleFolder::new("tcp");
    check(Tcp, &|plan| GatewayHost::open(plan, &folder.0, None));
}

#[test]
fn every_rule_holds_over_tls() {
    let folder = RuleFolder::new("tls");
    let certificate = Certificate::SelfSigned { folder: folder.0.clone() };
    // The client checks the certificate with a clock of its own.
    let now = pitlane_runtime::clock::wall();
    let tls = Tls::open(TlsSettings { certificate, client_ca: None }, now).unwrap();
    let trust = trusting(&folder.0.join("self-signed.pem"));
    check(RuleTransport::Tls, &|plan| GatewayHost::open(plan, &folder.0, Some((&tls, trust.clone()))));
}

#[test]
fn every_rule_holds_over_websocket() {
    let folder = RuleFolder::new("websocket");
    check(WebSocket, &|plan| HttpHost::open(plan, &folder.0));
}

fn check(over: RuleTransport, open: &dyn Fn(HostPlan) -> Box<dyn StompHost>) {
    let (mut played, mut elsewhere, mut failures) = (0, 0, Vec::new());
    let mut left_out: Vec<&str> =
        LEFT_OUT.iter().filter(|(_, overs, _)| overs.contains(&over)).map(|(rule, _, _)| *rule).collect();
    let expected = left_out.len();
    for text in texts() {
        for (rule, lines) in dialogues(&text) {
            if let Some(at) = left_out.iter().position(|left| *left == rule) {
                left_out.remove(at);
            } else if !is_about(&lines, over) {
                elsewhere += 1;
            } else {
                played += 1;
                if let Err(problem) = play(&lines, &Cuts::None, open) {
                    failures.push(format!("{rule}\n  {problem}"));
                }
            }
        }
    }
    println!("{over:?}: {played} rules played, {elsewhere} are about another transport, {expected} left out");
    assert!(failures.is_empty(), "{} of {played}:\n{}", failures.len(), failures.join("\n"));
    assert!(left_out.is_empty(), "there are no such rules: {left_out:?}");
    assert!(played >= 145, "only {played} were played");
}

/// Returns whether a rule applies to this transport: its first line names the transport unless it
/// applies to all.
fn is_about(lines: &[&str], over: RuleTransport) -> bool {
    let mut options = lines[0].split_whitespace();
    let is_named = |name: &str| options.clone().any(|option| option == name);
    let is_about = match over {
        Tcp | RuleTransport::Tls => !is_named("ws"),
        WebSocket => !is_named("tcp"),
    };
    assert_eq!(options.next(), Some("connect"), "a dialogue begins with it");
    is_about
}

fn texts() -> Vec<String> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("data/stomp");
    let mut files: Vec<PathBuf> = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    files.sort();
    files.iter().map(|file| fs::read_to_string(file).unwrap()).collect()
}

/// Folder for the certificate and the users of a test.
struct RuleFolder(PathBuf);

impl RuleFolder {
    fn new(name: &str) -> RuleFolder {
        let path = Path::new(env!("CARGO_TARGET_TMPDIR")).join("rules").join(name);
        fs::create_dir_all(&path).unwrap();
        RuleFolder(path)
    }
}

impl Drop for RuleFolder {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

/// Returns settings with the users of the dialogue. They have passwords: a token is verified at
/// once, and a dialogue needs the time between request and verdict.
fn auth_settings(folder: &Path, users: &[DialogueUser], required: bool) -> AuthSettings {
    if !required {
        return AuthSettings::off();
    }
    let path = folder.join("users");
    let mut text = format!("another read * {}\n", Hash::make(b"another secret", [0; SALT_BYTES]));
    for DialogueUser { login, passcode, verdict } in users {
        let (role, strategies) = match verdict {
            LoginVerdict::Refused => continue,
            LoginVerdict::Reads => ("read", "*"),
            LoginVerdict::Sends => ("trade", "*"),
            LoginVerdict::Only(name) => ("read", name.as_str()),
        };
        let hash = Hash::make(passcode.as_bytes(), [0; SALT_BYTES]);
        text += &format!("{login} {role} {strategies} {hash}\n");
    }
    fs::write(&path, text).unwrap();
    let strategies = test_market::reference().strategies().iter().map(|row| row.name.clone()).collect();
    AuthSettings { required, users: Some(path), tokens: None, strategies }
}

fn trusting(certificate: &Path) -> Arc<ClientConfig> {
    let mut roots = RootCertStore::empty();
    for certificate in CertificateDer::pem_file_iter(certificate).unwrap() {
        roots.add(certificate.unwrap()).unwrap();
    }
    let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
    let config = ClientConfig::builder_with_provider(provider).with_safe_default_protocol_versions().unwrap();
    Arc::new(config.with_root_certificates(roots).with_no_client_auth())
}

fn log_note(
    now: Timestamp,
    level: LogLevel,
    message: &str,
    fields: &[(&'static str, &'static str)],
) -> Notification {
    Notification::Log(Arc::new(LogEvent {
        time: now,
        level: match level {
            LogLevel::Warn => Severity::Warn,
            LogLevel::Error => Severity::Error,
        },
        target: "test".to_string(),
        message: message.to_string(),
        fields: fields.iter().map(|(name, text)| (*name, text.to_string())).collect(),
    }))
}

fn row_look(row: &SessionInfo) -> (StompCounters, BufferUsage) {
    let stomp = row.stomp.expect("it is a session of a broker");
    let counters =
        StompCounters { messages: row.messages_out, conflated: stomp.conflated, ..StompCounters::default() };
    let fill = BufferUsage {
        out_bytes: index_usize(row.queue_bytes),
        slots: index_usize(stomp.slots),
        backlog: index_usize(stomp.backlog),
        backlog_bytes: index_usize(stomp.backlog_bytes),
        subscriptions: index_usize(stomp.subscriptions),
    };
    (counters, fill)
}
