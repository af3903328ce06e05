//! The rules of the broker, from `tests/data/stomp`, once more on the running service: over TCP,
//! TLS and WebSocket.
//!
//! A dialogue is played here if it needs only frames that a client sends and receives: enough of
//! them to show that the whole service, with its settings and threads, follows them.
//! `tests/rules` plays all of them over sockets, with the service's own gateway and http thread
//! and a clock of the test.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use pitlane_testkit::service::ServiceProcess;
use pitlane_testkit::stomp_client::{StompStream, plain, tls};
use pitlane_testkit::stomp_frames;
use pitlane_testkit::web_socket::WebSocket;

use super::sessions::{address, start};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum StompTransport {
    Tcp,
    Tls,
    WebSocket,
}

#[test]
fn the_rules_apply_over_every_transport() {
    let (service, data) = start("rules", &["feed.on=false"]);
    let (mut played, mut left, mut failures) = (0, BTreeMap::new(), Vec::new());
    for (rule, lines) in dialogues() {
        if let Some(reason) = left_out(&lines) {
            *left.entry(reason).or_insert(0) += 1;
            continue;
        }
        let is_websocket = lines[0].contains(" ws");
        for over in [StompTransport::Tcp, StompTransport::Tls, StompTransport::WebSocket] {
            if is_websocket && over != StompTransport::WebSocket {
                continue;
            }
            played += 1;
            if let Err(problem) = RulesRun::new(&service, &data, over).dialogue(&lines) {
                failures.push(format!("{over:?}: {rule}\n  {problem}"));
            }
        }
    }
    assert!(failures.is_empty(), "{} of {played}:\n{}", failures.len(), failures.join("\n"));
    println!("{played} dialogues played; not played here: {left:#?}");
    assert!(played >= 150, "only {played} were played");
    service.signal("TERM");
    assert!(service.end().is_orderly());
}

/// Returns every rule with its lines.
fn dialogues() -> Vec<(String, Vec<String>)> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/data/stomp");
    let mut files: Vec<PathBuf> =
        std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    files.sort();
    let mut all = Vec::new();
    for file in files {
        let text = std::fs::read_to_string(&file).unwrap();
        for dialogue in format!("\n{text}").split("\n# ").skip(1) {
            let (rule, lines) = dialogue.split_once('\n').unwrap_or((dialogue, ""));
            let lines = lines.lines().filter(|line| !line.is_empty() && !line.starts_with('#'));
            let lines: Vec<String> = lines.map(str::to_string).collect();
            if !lines.is_empty() {
                all.push((rule.to_string(), lines));
            }
        }
    }
    all
}

/// Returns why a dialogue cannot be played with a running service.
fn left_out(lines: &[String]) -> Option<&'static str> {
    lines.iter().find_map(|line| {
        let line = line.strip_prefix("2 ").unwrap_or(line);
        let (part, rest) = line.split_once(' ').unwrap_or((line, ""));
        match part {
            "connect" if rest.is_empty() || rest == "ws" || rest == "tcp" => None,
            "connect" if rest == "login" => Some("logins have a test of their own, with real users"),
            "connect" => Some("has limits of its own; `limits` tests those of the settings"),
            // The guest of the service may send to generic events, that of the dialogues may not.
            ">" if rest.starts_with("SEND") && rest.contains("generic-event") => {
                Some("needs a role that may not send")
            }
            ">" | ">>" | "<" | "x" => None,
            "wait" => Some("needs a virtual clock"),
            "stall" | "read" | "fill:" => Some("looks into buffers; `scenarios` has real slow readers"),
            "end" | "hangup" => Some("is done by an operator and has its own test"),
            _ => Some("needs events at will; the service has its own"),
        }
    })
}

struct RulesRun<'a> {
    service: &'a ServiceProcess,
    data: &'a Path,
    over: StompTransport,
    clients: Vec<DialogueClient>,
}

struct DialogueClient {
    link: DialogueLink,
    /// Number of the client in the dialogue.
    number: usize,
    input: Vec<u8>,
    is_connected: bool,
    is_closed: bool,
}

enum DialogueLink {
    Stream(Box<dyn StompStream>),
    WebSocket(WebSocket),
}

impl DialogueLink {
    fn wire(&mut self) -> &mut dyn StompStream {
        match self {
            DialogueLink::Stream(wire) => wire,
            DialogueLink::WebSocket(socket) => socket,
        }
    }
}

impl RulesRun<'_> {
    fn new<'a>(service: &'a ServiceProcess, data: &'a Path, over: StompTransport) -> RulesRun<'a> {
        RulesRun { service, data, over, clients: Vec::new() }
    }

    fn dialogue(mut self, lines: &[String]) -> Result<(), String> {
        for line in lines {
            self.line(line).map_err(|problem| format!("`{line}`: {problem}"))?;
        }
        // Any unexpected frame would come before this.
        for client in self.clients.iter_mut().filter(|client| client.is_connected && !client.is_closed) {
            client.send_message(&stomp_frames::frame("BEGIN|transaction:the-end|receipt:the-end||"));
            client
                .expect("RECEIPT|receipt-id:the-end||")
                .map_err(|problem| format!("at the end: {problem}"))?;
        }
        Ok(())
    }

    fn line(&mut self, line: &str) -> Result<(), String> {
        let (at, line) = match line.strip_prefix("2 ") {
            Some(rest) => (1, rest),
            None => (0, line),
        };
        let (part, rest) = line.split_once(' ').unwrap_or((line, ""));
        if part == "connect" {
            let (link, number) = (self.open(), self.clients.len() + 1);
            self.clients.push(DialogueClient {
                link,
                number,
                input: Vec::new(),
                is_connected: false,
                is_closed: false,
            });
            return Ok(());
        }
        let client = self.clients.get_mut(at).ok_or("no client is connected")?;
        match part {
            ">" => client.send_message(&stomp_frames::frame(rest)),
            ">>" => client.send_message(&stomp_frames::raw(rest)),
            "<" => client.expect(rest)?,
            "x" => client.expect_end(rest)?,
            _ => return Err("this cannot be played".to_string()),
        }
        Ok(())
    }

    fn open(&self) -> DialogueLink {
        match self.over {
            StompTransport::Tcp => DialogueLink::Stream(plain(address(self.service, "stomp"))),
            StompTransport::Tls => DialogueLink::Stream(tls(address(self.service, "stomp+tls"), self.data)),
            StompTransport::WebSocket => {
                let http = address(self.service, "http");
                DialogueLink::WebSocket(WebSocket::open(plain(http), http, "").0)
            }
        }
    }
}

impl DialogueClient {
    /// After an ERROR the service reads nothing more, so a write may fail.
    fn send_message(&mut self, bytes: &[u8]) {
        let wire = self.link.wire();
        let _ = wire.write_all(bytes).and_then(|()| wire.flush());
    }

    fn expect(&mut self, pattern: &str) -> Result<(), String> {
        let frame = self.receive()?.ok_or("the end came")?;
        self.is_connected |= frame.starts_with("CONNECTED");
        // The service also sends its version.
        let frame = frame.replace(concat!("server:Pitlane/", env!("CARGO_PKG_VERSION")), "server:Pitlane");
        let number = frame.split_once("session:").and_then(|(_, rest)| rest.split('|').next());
        let frame = match number.filter(|_| frame.starts_with("CONNECTED")) {
            // Other sessions came before.
            Some(number) => frame.replace(&format!("session:{number}"), &format!("session:{}", self.number)),
            None => frame,
        };
        if stomp_frames::is_like(pattern, &frame) { Ok(()) } else { Err(format!("sent `{frame}`")) }
    }

    fn expect_end(&mut self, code: &str) -> Result<(), String> {
        self.is_closed = true;
        if let Some(frame) = self.receive()? {
            return Err(format!("first sent `{frame}`"));
        }
        match &self.link {
            DialogueLink::WebSocket(socket)
                if socket.code.map(|code| code.to_string()).as_deref() != Some(code) =>
            {
                Err(format!("closed with {:?}", socket.code))
            }
            DialogueLink::WebSocket(_) | DialogueLink::Stream(_) => Ok(()),
        }
    }

    fn receive(&mut self) -> Result<Option<String>, String> {
        loop {
            if let Some(end) = self.input.iter().position(|byte| *byte == 0) {
                let frame: Vec<u8> = self.input.drain(..=end).collect();
                return Ok(Some(String::from_utf8_lossy(&frame[..end]).replace('\n', "|")));
            }
            let mut buffer = [0; 16 * 1024];
            match self.link.wire().read(&mut buffer).map_err(|error| error.to_string())? {
                0 => return Ok(None),
                count => self.input.extend_from_slice(&buffer[..count]),
            }
        }
    }
}
