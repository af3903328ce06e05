//! A client of the broker that writes its protocol by hand, and so can send what no library would.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;

/// Returns the shipped rights, with a password for each login: its name after `pw-`.
pub fn guarded() -> String {
    let file = include_str!("../../../config/nats/pitlane.conf");
    let mut settings = String::new();
    for line in file.lines() {
        if let Some((user, rest)) = line.split_once("user: ").and_then(|(_, rest)| rest.split_once(',')) {
            let variable =
                rest.split(['$', ',', ' ', '}']).find(|token| token.starts_with("PITLANE_")).unwrap();
            settings += &format!("{variable}: \"{}\"\n", password(user));
        }
    }
    settings + file
}

/// Returns the same rights in one account, as an operator might write them without reading further.
pub fn guarded_in_one_account() -> String {
    let text = guarded();
    let (before, rest) = text.split_once("    ]\n  }\n\n  # Servers among").unwrap();
    let (_, after) = rest.split_once("users: [\n").unwrap();
    format!("{before}{after}")
}

pub fn password(user: &str) -> String {
    format!("pw-{user}")
}

/// A received message.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NatsRawMessage {
    pub subject: String,
    pub headers: Vec<u8>,
    pub payload: Vec<u8>,
}

pub struct RawNatsClient {
    socket: TcpStream,
    lines: BufReader<TcpStream>,
    pub received: Vec<NatsRawMessage>,
}

impl RawNatsClient {
    pub fn connect(port: u16, user: Option<&str>) -> RawNatsClient {
        let socket = TcpStream::connect(("127.0.0.1", port)).unwrap();
        let lines = BufReader::new(socket.try_clone().unwrap());
        let mut raw_client = RawNatsClient { socket, lines, received: Vec::new() };
        let login = user
            .map_or(String::new(), |user| format!(",\"user\":\"{user}\",\"pass\":\"{}\"", password(user)));
        raw_client.write(
            format!("CONNECT {{\"verbose\":false,\"headers\":true,\"echo\":false{login}}}\r\n").as_bytes(),
        );
        assert_eq!(raw_client.settle(), Vec::<String>::new(), "it is let in");
        raw_client
    }

    fn write(&mut self, bytes: &[u8]) {
        // A broker disconnects a client that sends too much.
        let _ = self.socket.write_all(bytes);
    }

    pub fn subscribe(&mut self, subject: &str) {
        self.write(format!("SUB {subject} 1\r\n").as_bytes());
    }

    pub fn publish(&mut self, subject: &str, reply: &str, payload: &[u8]) {
        self.write(format!("PUB {subject} {reply} {}\r\n", payload.len()).as_bytes());
        self.write(payload);
        self.write(b"\r\n");
    }

    /// Publishes with these raw headers.
    pub fn publish_with(&mut self, subject: &str, reply: &str, headers: &[u8], payload: &[u8]) {
        let (head, all) = (headers.len(), headers.len() + payload.len());
        self.write(format!("HPUB {subject} {reply} {head} {all}\r\n").as_bytes());
        self.write(headers);
        self.write(payload);
        self.write(b"\r\n");
    }

    /// Waits until the broker has processed everything; returns its errors.
    pub fn settle(&mut self) -> Vec<String> {
        self.write(b"PING\r\n");
        let mut log_text = Vec::new();
        let mut line = String::new();
        while self.lines.read_line(&mut line).is_ok_and(|read| read > 0) {
            let tokens: Vec<&str> = line.split_whitespace().collect();
            match tokens[..] {
                ["PONG"] => break,
                ["PING"] => self.write(b"PONG\r\n"),
                ["MSG", subject, .., length] => {
                    let (subject, all) = (subject.to_string(), length.parse().unwrap());
                    self.take(subject, 0, all);
                }
                ["HMSG", subject, .., head, all] => {
                    let (subject, head, all) =
                        (subject.to_string(), head.parse().unwrap(), all.parse().unwrap());
                    self.take(subject, head, all);
                }
                [token, ..] if token.starts_with("-ERR") => log_text.push(line.trim().to_string()),
                _ => {}
            }
            line.clear();
        }
        log_text
    }

    fn take(&mut self, subject: String, head: usize, all: usize) {
        let mut headers = vec![0; all + 2];
        self.lines.read_exact(&mut headers).unwrap();
        headers.truncate(all);
        let payload = headers.split_off(head);
        self.received.push(NatsRawMessage { subject, headers, payload });
    }
}
