//! The client's end of a real socket, without blocking: TCP, TLS or WebSocket.

use std::collections::VecDeque;
use std::io::{ErrorKind, Read, Write};
use std::net::{Shutdown, TcpStream};
use std::sync::Arc;

use pitlane_dialogue::stomp_frames;
use pitlane_engine::index::{index_u8, index_u16};
use pitlane_tests::stomp::host::{ConnectionEnd, ReceivedFrames};
use rustls::pki_types::ServerName;
use rustls::{ClientConfig, ClientConnection};

/// Bytes of one read.
const READ_BYTES: usize = 16 * 1_024;

pub(crate) struct RuleClient {
    socket: TcpStream,
    layer: ClientLayer,
    /// Bytes to be written to the socket.
    output: VecDeque<u8>,
    /// Bytes of a frame from the broker that is not complete yet.
    received_bytes: Vec<u8>,
    pub incoming: ReceivedFrames,
    pub is_stalled: bool,
    /// Whether the connection has ended.
    is_over: bool,
    /// Bytes that went through the socket.
    pub written: u64,
    pub received: u64,
}

enum ClientLayer {
    Plain,
    Tls(Box<ClientConnection>),
    WebSocket { input: Vec<u8>, code: Option<u16> },
}

impl RuleClient {
    pub(crate) fn plain(socket: TcpStream) -> RuleClient {
        RuleClient::new(socket, ClientLayer::Plain)
    }

    pub(crate) fn tls(socket: TcpStream, config: Arc<ClientConfig>) -> RuleClient {
        let name = ServerName::try_from("localhost").unwrap();
        let mut tls = ClientConnection::new(config, name).unwrap();
        tls.set_buffer_limit(None);
        RuleClient::new(socket, ClientLayer::Tls(Box::new(tls)))
    }

    /// Creates a client after the opening handshake.
    pub(crate) fn websocket(socket: TcpStream) -> RuleClient {
        RuleClient::new(socket, ClientLayer::WebSocket { input: Vec::new(), code: None })
    }

    fn new(socket: TcpStream, layer: ClientLayer) -> RuleClient {
        socket.set_nonblocking(true).unwrap();
        socket.set_nodelay(true).unwrap();
        RuleClient {
            socket,
            layer,
            output: VecDeque::new(),
            received_bytes: Vec::new(),
            incoming: ReceivedFrames::default(),
            is_stalled: false,
            is_over: false,
            written: 0,
            received: 0,
        }
    }

    pub(crate) fn send(&mut self, bytes: &[u8]) {
        match &mut self.layer {
            ClientLayer::Plain => self.output.extend(bytes),
            // A client that was disconnected may still write.
            ClientLayer::Tls(tls) => tls.writer().write_all(bytes).unwrap_or_default(),
            ClientLayer::WebSocket { .. } => {
                let opcode = if std::str::from_utf8(bytes).is_ok() { 0x81 } else { 0x82 };
                self.output.extend(masked(opcode, bytes));
            }
        }
    }

    pub(crate) fn hang_up(&mut self) {
        let _ = self.socket.shutdown(Shutdown::Both);
        self.is_over = true;
    }

    /// Writes and reads what is possible, and returns whether anything moved.
    pub(crate) fn poll(&mut self) -> bool {
        let mut moved = self.write();
        while !self.is_stalled && self.read(READ_BYTES) > 0 {
            moved = true;
        }
        self.incoming.frames.extend(
            stomp_frames::frames(&mut self.received_bytes).into_iter().filter(|frame| !is_clog(frame)),
        );
        moved
    }

    fn write(&mut self) -> bool {
        if let ClientLayer::Tls(tls) = &mut self.layer {
            while tls.wants_write() {
                tls.write_tls(&mut self.output).unwrap();
            }
        }
        let mut moved = false;
        while !self.output.is_empty() && !self.is_over {
            match self.socket.write(self.output.as_slices().0) {
                Ok(count) => {
                    self.output.drain(..count);
                    self.written += count as u64;
                    moved = true;
                }
                Err(error) if error.kind() == ErrorKind::WouldBlock => break,
                // The peer has disconnected; what it sent before is still read.
                Err(_) => self.output.clear(),
            }
        }
        moved
    }

    /// Reads at most this many bytes from the socket, and returns how many came.
    pub(crate) fn read(&mut self, bytes_max: usize) -> usize {
        if self.is_over {
            return 0;
        }
        let mut buffer = [0; READ_BYTES];
        let count = match self.socket.read(&mut buffer[..bytes_max.min(READ_BYTES)]) {
            Ok(count) => count,
            Err(error) if error.kind() == ErrorKind::WouldBlock => return 0,
            Err(_) => 0,
        };
        self.received += count as u64;
        self.take(&buffer[..count]);
        if count == 0 {
            self.is_over = true;
            self.incoming.end = Some(self.end());
        }
        count
    }

    fn take(&mut self, mut bytes: &[u8]) {
        match &mut self.layer {
            ClientLayer::Plain => self.received_bytes.extend_from_slice(bytes),
            ClientLayer::Tls(tls) => {
                while !bytes.is_empty() {
                    tls.read_tls(&mut bytes).unwrap();
                    let count = tls.process_new_packets().unwrap().plaintext_bytes_to_read();
                    let before = self.received_bytes.len();
                    self.received_bytes.resize(before + count, 0);
                    tls.reader().read_exact(&mut self.received_bytes[before..]).unwrap();
                }
            }
            ClientLayer::WebSocket { input, code } => {
                input.extend_from_slice(bytes);
                while let Some((opcode, payload)) = unframed(input) {
                    match opcode {
                        0x81 => self.received_bytes.extend_from_slice(&payload),
                        0x88 => {
                            *code = payload.first_chunk::<2>().map(|code| u16::from_be_bytes(*code));
                            self.output.extend(masked(0x88, &payload));
                        }
                        other => panic!("a frame of kind {other:x}"),
                    }
                }
            }
        }
    }

    /// Returns what kind of end it was, once nothing more can be read.
    fn end(&mut self) -> ConnectionEnd {
        match &mut self.layer {
            ClientLayer::Plain => ConnectionEnd { at_once: None, code: None },
            ClientLayer::Tls(tls) => {
                let said_goodbye = tls.process_new_packets().is_ok_and(|state| state.peer_has_closed());
                ConnectionEnd { at_once: Some(!said_goodbye), code: None }
            }
            ClientLayer::WebSocket { code, .. } => {
                ConnectionEnd { at_once: Some(code.is_none()), code: *code }
            }
        }
    }
}

fn masked(first: u8, payload: &[u8]) -> Vec<u8> {
    let mask = [1, 2, 3, 4];
    let mut frame = vec![first];
    match payload.len() {
        len @ 0..=125 => frame.push(0x80 | index_u8(len)),
        len @ 126..=0xffff => {
            frame.push(0x80 | 126);
            frame.extend_from_slice(&index_u16(len).to_be_bytes());
        }
        len => {
            frame.push(0x80 | 127);
            frame.extend_from_slice(&(len as u64).to_be_bytes());
        }
    }
    frame.extend_from_slice(&mask);
    frame.extend(payload.iter().zip(mask.iter().cycle()).map(|(byte, mask)| byte ^ mask));
    frame
}

/// Returns the first frame, if it is complete.
fn unframed(input: &mut Vec<u8>) -> Option<(u8, Vec<u8>)> {
    let (len, head) = match *input.get(1)? {
        126 => (u16::from_be_bytes([*input.get(2)?, *input.get(3)?]) as usize, 4),
        len => (len as usize, 2),
    };
    assert!(len < 0x80 || head == 4, "a server does not mask, and no frame of ours is so long");
    if input.len() < head + len {
        return None;
    }
    let opcode = input[0];
    let payload = input[head..head + len].to_vec();
    input.drain(..head + len);
    Some((opcode, payload))
}

/// Bytes that lie in a session before anything that is sent to a stalled client: see [`Clog`].
pub(crate) const CLOG_BYTES: usize = 64 * 1_024;
/// Bytes of a RECEIPT without its id, and of the shortest one with an id.
const RECEIPT_BYTES: usize = b"RECEIPT\nreceipt-id:\n\n\0".len();
const CLOG: &str = "clog";
const LEAST_BYTES: usize = RECEIPT_BYTES + CLOG.len();
/// Longest RECEIPT that is requested: its header line must be shorter than the limit of a line.
const MOST_BYTES: usize = 8_000;

/// Makes a client really stop reading. What is sent to it disappears in the buffers of the system
/// until those are full; so it requests receipts that it does not read, until exactly
/// [`CLOG_BYTES`] of them lie in its session. From then on nothing of the session is sent, and its
/// watermark is higher by as much.
#[derive(Debug, Default)]
pub(crate) struct Clog {
    is_begun: bool,
    before: usize,
    /// Number of polls in which nothing has moved.
    quiet: u32,
    is_full: bool,
}

/// Polls without a change after which nothing moves any more.
const QUIET_LOOKS: u32 = 8;

pub(crate) enum ClientStep {
    Say(Vec<u8>),
    Look,
    Done,
}

impl Clog {
    /// Returns the next step, for this many bytes in the session.
    pub(crate) fn next(&mut self, out_bytes: usize) -> Result<ClientStep, String> {
        if !self.is_full {
            if out_bytes == 0 {
                return Ok(ClientStep::Say(self.receipt(MOST_BYTES)));
            }
            if std::mem::replace(&mut self.before, out_bytes) != out_bytes {
                self.quiet = 0;
            }
            self.quiet += 1;
            self.is_full = self.quiet > QUIET_LOOKS;
            return Ok(ClientStep::Look);
        }
        let missing = CLOG_BYTES.checked_sub(out_bytes).ok_or("too much lies in the session")?;
        match missing {
            0 => Ok(ClientStep::Done),
            1..LEAST_BYTES => Err(format!("{missing} octets cannot be filled up")),
            _ => {
                let mut piece = missing.min(MOST_BYTES);
                if missing - piece < LEAST_BYTES && missing > piece {
                    piece -= LEAST_BYTES;
                }
                Ok(ClientStep::Say(self.receipt(piece)))
            }
        }
    }

    /// Returns a frame that requests a RECEIPT of this many bytes.
    fn receipt(&mut self, bytes: usize) -> Vec<u8> {
        self.is_begun = !self.is_begun;
        let command = if self.is_begun { "BEGIN" } else { "ABORT" };
        let padding = "x".repeat(bytes - LEAST_BYTES);
        stomp_frames::frame(&format!("{command}|transaction:{CLOG}|receipt:{CLOG}{padding}||"))
    }
}

fn is_clog(frame: &str) -> bool {
    frame.strip_prefix("RECEIPT|receipt-id:").is_some_and(|id| id.starts_with(CLOG))
}
