//! A service that requires logins, its users and tokens, and a client with given credentials.

use std::io::Write;
use std::net::{SocketAddr, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use base64ct::{Base64, Encoding};

use crate::http_client::{HttpClient, Response};
use crate::paths;
use crate::service::{ServiceProcess, command, folder};
use crate::temp_folder::TestFolder;

pub const PASSWORD: &str = "correct horse battery";
pub const NAMES: [&str; 3] = ["read", "trade", "admin"];

/// Runs the binary with these arguments and this standard input.
pub fn pitlane(arguments: &[&str], input: &str) -> Output {
    let mut command = Command::new(paths::binary());
    let pipes = command.args(arguments).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = pipes.spawn().unwrap();
    // A command that is refused at once reads nothing.
    let _ = child.stdin.take().unwrap().write_all(input.as_bytes());
    child.wait_with_output().unwrap()
}

/// Returns the output of a command that must succeed.
pub fn done(output: &Output) -> String {
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout.clone()).unwrap()
}

pub struct SecuredService {
    pub service: ServiceProcess,
    pub data: TestFolder,
    pub users: PathBuf,
    pub tokens: PathBuf,
    /// Tokens by role, as in [`NAMES`].
    pub token: [String; 3],
}

impl SecuredService {
    /// Starts a service with a user and a token for each role, named after it.
    pub fn start(name: &str, settings: &[&str]) -> SecuredService {
        let data = folder(name);
        let (users, tokens) = (data.join("users"), data.join("tokens"));
        for role in NAMES {
            add_user(&users, role, role);
        }
        let token = NAMES.map(|role| create_token(&tokens, &format!("{role}-robot"), role, "*"));
        let files = [
            "feed.on=false".to_string(),
            "auth.mode=required".to_string(),
            format!("auth.users_file={}", users.display()),
            format!("auth.tokens_file={}", tokens.display()),
        ];
        let settings: Vec<&str> = files.iter().map(String::as_str).chain(settings.iter().copied()).collect();
        // With a family of FIX clients.
        let mut command = command(&data, &settings);
        command.args(["--config", "bench"]);
        let service = ServiceProcess::on(&data, command);
        assert!(service.is_ready(), "{}", service.ready);
        SecuredService { service, data, users, tokens, token }
    }

    /// Returns the address of a listener.
    pub fn at(&self, listener: &str) -> SocketAddr {
        let prefix = format!("{listener}=");
        let part = self.service.ready.split_whitespace().find_map(|part| part.strip_prefix(&prefix));
        part.unwrap_or_else(|| panic!("no {listener}: {}", self.service.ready)).parse().unwrap()
    }

    pub fn connect(&self) -> HttpClient {
        HttpClient::new(TcpStream::connect(self.service.address()).unwrap())
    }

    /// Sends one request with these headers, on its own connection.
    pub fn ask(&self, method: &str, path: &str, headers: &str) -> Response {
        let mut client = self.connect();
        client.send(&format!("{method} {path} HTTP/1.1\r\nHost: localhost\r\n{headers}\r\n"));
        client.receive(method == "HEAD")
    }

    pub fn end(self) {
        self.end_with_log();
    }

    /// Does the same and returns its log.
    pub fn end_with_log(self) -> String {
        self.service.signal("TERM");
        let ended = self.service.end();
        assert!(ended.is_orderly(), "{}", ended.log_text);
        for secret in self.token.iter().map(String::as_str).chain([PASSWORD]) {
            assert!(!ended.log_text.contains(secret), "a secret was logged");
        }
        ended.log_text
    }
}

pub fn add_user(file: &Path, name: &str, role: &str) {
    let file = file.to_str().unwrap();
    done(&pitlane(&["user", "add", name, "--role", role, "--file", file], &format!("{PASSWORD}\n")));
}

/// Creates a token and returns it.
pub fn create_token(file: &Path, name: &str, role: &str, strategies: &str) -> String {
    let file = file.to_str().unwrap();
    let arguments = ["token", "create", name, "--role", role, "--strategies", strategies, "--file", file];
    done(&pitlane(&arguments, "")).trim_end().to_string()
}

pub fn basic(login: &str, password: &str) -> String {
    let text = Base64::encode_string(format!("{login}:{password}").as_bytes());
    format!("Authorization: Basic {text}\r\n")
}

pub fn bearer(token: &str) -> String {
    format!("Authorization: Bearer {token}\r\n")
}
