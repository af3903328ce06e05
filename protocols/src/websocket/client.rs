//! The client side of WebSocket: the handshake, and masked frames.
//!
//! ```text
//! GET ─► 101 ─► messages in both directions ─► close
//!   └──► any other answer: refused, with its status and Retry-After
//! ```
//!
//! Random numbers come from the caller: a key with its expected answer for the handshake, and a
//! generator for the masks.

use memchr::memmem;
use pitlane_engine::rng::Rng;
use pitlane_engine::text::parse_u64;

use super::{MessagePart, Receiver, WebSocketState, push_len, unmask};

/// Longest head of an answer to the handshake; servers send less than one kilobyte.
pub const ANSWER_BYTES_MAX: usize = 16 * 1024;

/// Sec-WebSocket-Key, and the Sec-WebSocket-Accept that answers it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WebSocketKey {
    pub key: String,
    pub accept: String,
}

/// Why the connection is of no use any more.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ClientFault {
    /// The server answered the handshake with this status, and may have said for how many seconds
    /// no further attempt is welcome.
    Refused { status: u64, retry_after_s: Option<u64> },
    /// The answer to the handshake is not HTTP, is too long, or does not fit the key.
    Handshake,
    /// The server has closed with this code, or broke a rule of the RFC that has this code.
    Closed(Option<u16>),
}

#[derive(Debug)]
enum ClientPhase {
    /// Bytes of the answer so far.
    Handshake(Vec<u8>),
    Open,
    Ended,
}

/// A connection as its client. Output collects in a buffer that the caller writes.
#[derive(Debug)]
pub struct WebSocketClient {
    phase: ClientPhase,
    accept: String,
    receiver: Receiver,
    rng: Rng,
    /// Message that is being received.
    message: Vec<u8>,
}

impl WebSocketClient {
    /// Starts the handshake.
    pub fn connect(
        host: &str,
        path: &str,
        key: WebSocketKey,
        seed: u64,
        out: &mut Vec<u8>,
    ) -> WebSocketClient {
        for part in ["GET ", path, " HTTP/1.1\r\nHost: ", host, "\r\nUpgrade: websocket\r\n"] {
            out.extend_from_slice(part.as_bytes());
        }
        out.extend_from_slice(b"Connection: Upgrade\r\nSec-WebSocket-Version: 13\r\nSec-WebSocket-Key: ");
        out.extend_from_slice(key.key.as_bytes());
        out.extend_from_slice(b"\r\n\r\n");
        WebSocketClient {
            phase: ClientPhase::Handshake(Vec::new()),
            accept: key.accept,
            receiver: Receiver::of_client(),
            rng: Rng::new(seed),
            message: Vec::new(),
        }
    }

    pub fn is_open(&self) -> bool {
        matches!(self.phase, ClientPhase::Open)
    }

    /// Handles received bytes, which it may change. Gives each complete message to `on_message`,
    /// and appends the answers to pings and closes to `out`. After a fault, nothing more is
    /// handled.
    pub fn handle_bytes(
        &mut self,
        bytes: &mut [u8],
        out: &mut Vec<u8>,
        on_message: impl FnMut(&[u8]),
    ) -> Result<(), ClientFault> {
        let outcome = self.handle(bytes, out, on_message);
        if outcome.is_err() {
            self.phase = ClientPhase::Ended;
        }
        outcome
    }

    fn handle(
        &mut self,
        bytes: &mut [u8],
        out: &mut Vec<u8>,
        on_message: impl FnMut(&[u8]),
    ) -> Result<(), ClientFault> {
        match &mut self.phase {
            ClientPhase::Ended => Ok(()),
            ClientPhase::Open => self.receive(bytes, out, on_message),
            ClientPhase::Handshake(head) => {
                head.extend_from_slice(bytes);
                let Some(end) = memmem::find(head, b"\r\n\r\n") else {
                    return if head.len() > ANSWER_BYTES_MAX { Err(ClientFault::Handshake) } else { Ok(()) };
                };
                let mut rest = head.split_off(end + 4);
                check_head(&head[..end], &self.accept)?;
                self.phase = ClientPhase::Open;
                self.receive(&mut rest, out, on_message)
            }
        }
    }

    fn receive(
        &mut self,
        bytes: &mut [u8],
        out: &mut Vec<u8>,
        mut on_message: impl FnMut(&[u8]),
    ) -> Result<(), ClientFault> {
        let WebSocketClient { receiver, message, .. } = self;
        let state = receiver.handle_parts(bytes, |part| match part {
            MessagePart::Payload(payload) => message.extend_from_slice(payload),
            MessagePart::End => {
                on_message(message);
                message.clear();
            }
        });
        let mask = self.mask();
        self.receiver.take_ping(|payload| push_frame(out, PONG, payload, mask));
        match state {
            WebSocketState::Open => Ok(()),
            WebSocketState::Closing(reason) => {
                self.close(reason, out);
                Err(ClientFault::Closed(reason))
            }
        }
    }

    /// Appends a text message.
    pub fn send(&mut self, text: &[u8], out: &mut Vec<u8>) {
        let mask = self.mask();
        push_frame(out, TEXT, text, mask);
    }

    /// Appends the close frame, after which nothing may be sent.
    pub fn close(&mut self, reason: Option<u16>, out: &mut Vec<u8>) {
        if !self.is_open() {
            return;
        }
        let mask = self.mask();
        let payload = reason.map(u16::to_be_bytes);
        push_frame(out, CLOSE, payload.as_ref().map_or(&[], |payload| &payload[..]), mask);
        self.phase = ClientPhase::Ended;
    }

    fn mask(&mut self) -> [u8; 4] {
        let [a, b, c, d, ..] = self.rng.next_u64().to_le_bytes();
        [a, b, c, d]
    }
}

const TEXT: u8 = 0x81;
const CLOSE: u8 = 0x88;
const PONG: u8 = 0x8a;

/// The bit before a length that says that the payload is masked.
const MASKED: u8 = 0x80;

/// Appends one frame with its payload masked.
fn push_frame(out: &mut Vec<u8>, first: u8, payload: &[u8], mask: [u8; 4]) {
    out.push(first);
    push_len(out, payload.len(), MASKED);
    out.extend_from_slice(&mask);
    let start = out.len();
    out.extend_from_slice(payload);
    unmask(&mut out[start..], mask, 0);
}

/// Checks the answer to the handshake.
fn check_head(head: &[u8], accept: &str) -> Result<(), ClientFault> {
    let head = std::str::from_utf8(head).map_err(|_| ClientFault::Handshake)?;
    let (line, fields) = head.split_once("\r\n").unwrap_or((head, ""));
    let status = line.strip_prefix("HTTP/1.1 ").and_then(|rest| rest.get(..3));
    let status = status.and_then(|status| parse_u64(status.as_bytes()).ok()).ok_or(ClientFault::Handshake)?;
    let field = |name: &str| {
        let mut fields = fields.split("\r\n").filter_map(|field| field.split_once(':'));
        fields.find(|(found, _)| found.eq_ignore_ascii_case(name)).map(|(_, value)| value.trim())
    };
    if status != 101 {
        let retry_after_s = field("Retry-After").and_then(|value| parse_u64(value.as_bytes()).ok());
        return Err(ClientFault::Refused { status, retry_after_s });
    }
    let is_upgraded = field("Upgrade").is_some_and(|value| value.eq_ignore_ascii_case("websocket"));
    if is_upgraded && field("Sec-WebSocket-Accept") == Some(accept) {
        Ok(())
    } else {
        Err(ClientFault::Handshake)
    }
}

#[cfg(test)]
mod tests {
    use super::super::MESSAGE_BYTES_MAX;
    use super::super::{MessageKind, message_head};
    use super::*;

    const ANSWER: &str = "HTTP/1.1 101 Switching Protocols\r\nupgrade: WebSocket\r\nConnection: Upgrade\r\n\
                          Sec-WebSocket-Accept: s3pPLMBiTxaQ9kYGzzhZRbK+xOo=\r\n\r\n";

    /// The key and the answer of section 1.3 of the RFC.
    fn key() -> WebSocketKey {
        WebSocketKey {
            key: "dGhlIHNhbXBsZSBub25jZQ==".to_string(),
            accept: "s3pPLMBiTxaQ9kYGzzhZRbK+xOo=".to_string(),
        }
    }

    fn connected() -> (WebSocketClient, Vec<u8>) {
        let mut out = Vec::new();
        let mut client = WebSocketClient::connect("venue:443", "/ws", key(), 7, &mut out);
        assert!(out.starts_with(b"GET /ws HTTP/1.1\r\nHost: venue:443\r\n") && out.ends_with(b"\r\n\r\n"));
        out.clear();
        assert_eq!(feed(&mut client, ANSWER.as_bytes(), &mut out), (Vec::new(), Ok(())));
        assert!(client.is_open());
        (client, out)
    }

    fn feed(
        client: &mut WebSocketClient,
        bytes: &[u8],
        out: &mut Vec<u8>,
    ) -> (Vec<String>, Result<(), ClientFault>) {
        let mut messages = Vec::new();
        let mut bytes = bytes.to_vec();
        let outcome = client.handle_bytes(&mut bytes, out, |message| {
            messages.push(String::from_utf8(message.to_vec()).unwrap());
        });
        (messages, outcome)
    }

    #[test]
    fn what_a_client_sends_a_server_receives() {
        let (mut client, mut out) = connected();
        for len in [0, 5, 125, 126, 65_535, 65_536, 70_000] {
            out.clear();
            let text = "x".repeat(len);
            client.send(text.as_bytes(), &mut out);
            let mut received = Vec::new();
            let mut server = Receiver::default();
            let state = server.handle_bytes(&mut out, |payload| received.extend_from_slice(payload));
            assert_eq!((state, received), (WebSocketState::Open, text.into_bytes()), "{len}");
        }
    }

    #[test]
    fn every_frame_has_a_mask_of_its_own() {
        let (mut client, mut out) = connected();
        let mut masks = std::collections::BTreeSet::new();
        for _ in 0..20 {
            out.clear();
            client.send(b"x", &mut out);
            masks.insert(out[2..6].to_vec());
        }
        assert_eq!(masks.len(), 20);
    }

    #[test]
    fn messages_arrive_whole_wherever_the_bytes_are_cut() {
        let mut wire = ANSWER.as_bytes().to_vec();
        for text in ["{\"a\":1}".to_string(), "y".repeat(300), String::new()] {
            message_head(&mut wire, MessageKind::Text, text.len());
            wire.extend_from_slice(text.as_bytes());
        }
        // In two fragments, with a ping between them.
        wire.extend_from_slice(b"\x01\x02ab\x89\x01p\x80\x01c");
        for cut in 0..wire.len() {
            let mut out = Vec::new();
            let mut client = WebSocketClient::connect("h", "/", key(), 1, &mut out);
            out.clear();
            let (mut messages, outcome) = feed(&mut client, &wire[..cut], &mut out);
            assert_eq!(outcome, Ok(()));
            let (rest, outcome) = feed(&mut client, &wire[cut..], &mut out);
            assert_eq!(outcome, Ok(()));
            messages.extend(rest);
            assert_eq!(
                messages,
                ["{\"a\":1}".to_string(), "y".repeat(300), String::new(), "abc".to_string()]
            );
            let mut server = Receiver::default();
            assert_eq!(out[0], PONG, "the ping is answered");
            assert_eq!(server.handle_bytes(&mut out, |_| {}), WebSocketState::Open);
        }
    }

    #[test]
    fn a_server_that_refuses_says_when_to_try_again() {
        let refusals: [(&str, ClientFault); 5] = [
            (
                "HTTP/1.1 429 Too Many\r\nRetry-After: 12\r\n\r\n",
                ClientFault::Refused { status: 429, retry_after_s: Some(12) },
            ),
            ("HTTP/1.1 403 Forbidden\r\n\r\n", ClientFault::Refused { status: 403, retry_after_s: None }),
            ("SSH-2.0-x\r\n\r\n", ClientFault::Handshake),
            (
                "HTTP/1.1 101 Ok\r\nUpgrade: websocket\r\nSec-WebSocket-Accept: x\r\n\r\n",
                ClientFault::Handshake,
            ),
            ("HTTP/1.1 101 Ok\r\n\r\n", ClientFault::Handshake),
        ];
        for (answer, fault) in refusals {
            let mut out = Vec::new();
            let mut client = WebSocketClient::connect("h", "/", key(), 1, &mut out);
            assert_eq!(feed(&mut client, answer.as_bytes(), &mut out), (Vec::new(), Err(fault)), "{answer}");
            assert!(!client.is_open());
        }
        let mut client = WebSocketClient::connect("h", "/", key(), 1, &mut Vec::new());
        let long = vec![b'x'; ANSWER_BYTES_MAX + 1];
        let longest = &long[..ANSWER_BYTES_MAX];
        assert_eq!(feed(&mut client, longest, &mut Vec::new()).1, Ok(()), "the rest may follow");
        let mut client = WebSocketClient::connect("h", "/", key(), 1, &mut Vec::new());
        assert_eq!(feed(&mut client, &long, &mut Vec::new()).1, Err(ClientFault::Handshake));
    }

    #[test]
    fn a_close_is_answered_and_a_broken_rule_ends_the_connection() {
        let (mut client, mut out) = connected();
        let closed = feed(&mut client, b"\x88\x02\x03\xe8", &mut out).1;
        assert_eq!(closed, Err(ClientFault::Closed(Some(1000))));
        let mut server = Receiver::default();
        assert_eq!(server.handle_bytes(&mut out, |_| {}), WebSocketState::Closing(Some(1000)));
        let masked = b"\x81\x81\0\0\0\0x";
        for (broken, reason) in [(&masked[..], 1002), (b"\x83\x00", 1002), (b"\x81\x01\xff", 1007)] {
            let (mut client, mut out) = connected();
            assert_eq!(feed(&mut client, broken, &mut out).1, Err(ClientFault::Closed(Some(reason))));
            assert!(!client.is_open());
        }
        // The longest message, and one byte more.
        let most = usize::try_from(MESSAGE_BYTES_MAX).unwrap();
        for (len, fits) in [(most, true), (most + 1, false)] {
            let (mut client, mut out) = connected();
            let mut wire = Vec::new();
            message_head(&mut wire, MessageKind::Text, len);
            wire.resize(wire.len() + len, b'z');
            let (messages, outcome) = feed(&mut client, &wire, &mut out);
            assert_eq!((messages.len() == 1, outcome.is_ok()), (fits, fits));
        }
    }
}
