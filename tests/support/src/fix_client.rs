//! A FIX client over a real socket that follows the rules: sequence numbers, gaps in both
//! directions, resends with PossDup. It remembers across connections, like one with a file store.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::io::{self, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::path::Path;
use std::sync::Arc;
use std::time::SystemTime;

use pitlane_engine::time::Timestamp;
use pitlane_protocols::fix::timestamp::TimestampText;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, ServerName};
use rustls::{ClientConfig, ClientConnection, RootCertStore, StreamOwned};

use crate::fix_fields;
use crate::patience::PATIENCE;

pub trait FixStream: Read + Write + Send {}
impl<T: Read + Write + Send> FixStream for T {}

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ReceivedFix(pub Vec<(u32, String)>);

impl ReceivedFix {
    pub fn get(&self, tag: u32) -> &str {
        self.0.iter().find(|(known, _)| *known == tag).map_or("", |(_, value)| value)
    }

    pub fn number(&self) -> u64 {
        self.get(34).parse().expect("every message has a number")
    }

    pub fn text(&self) -> String {
        self.0.iter().fold(String::new(), |mut text, (tag, value)| {
            let _ = write!(text, "{tag}={value}|");
            text
        })
    }
}

pub struct FixClient {
    wire: Option<Box<dyn FixStream>>,
    sender: String,
    /// Next number to send, and next number to receive.
    pub next_out: u64,
    pub next_in: u64,
    input: Vec<u8>,
    /// Sent application messages by number: type, time and body.
    sent: BTreeMap<u64, (String, String, String)>,
    /// Received application messages in order, each number once.
    pub received: Vec<ReceivedFix>,
    /// Whether a resend was requested and is not complete.
    asked: bool,
}

impl FixClient {
    pub fn new(sender: &str) -> FixClient {
        FixClient {
            wire: None,
            sender: sender.to_string(),
            next_out: 1,
            next_in: 1,
            input: Vec::new(),
            sent: BTreeMap::new(),
            received: Vec::new(),
            asked: false,
        }
    }

    pub fn connect(&mut self, address: SocketAddr) {
        self.take(Box::new(plain(address)));
    }

    /// Uses this connection from now on.
    pub fn take(&mut self, wire: Box<dyn FixStream>) {
        self.wire = Some(wire);
        self.input.clear();
        self.asked = false;
    }

    pub fn disconnect(&mut self) {
        self.wire = None;
    }

    /// Logs on; with a reset both sides begin with one. A message before the response to a Logon is
    /// a fault.
    pub fn log_on(&mut self, reset: bool) -> ReceivedFix {
        let answer = self.try_log_on(reset).expect("a Logon is answered");
        assert_eq!(answer.get(35), "A", "{}", answer.text());
        answer
    }

    /// Does the same with a peer that may be gone, or refuse.
    pub fn try_log_on(&mut self, reset: bool) -> io::Result<ReceivedFix> {
        if reset {
            (self.next_out, self.next_in) = (1, 1);
            self.sent.clear();
        }
        self.send_message("A", if reset { "98=0|108=30|141=Y|" } else { "98=0|108=30|" });
        let answer = self.read()?;
        if answer.get(35) == "A" {
            self.number(&answer);
        }
        Ok(answer)
    }

    /// Sends an application message.
    pub fn send(&mut self, msg_type: &str, body: &str) -> u64 {
        let number = self.next_out;
        let time = now();
        self.sent.insert(number, (msg_type.to_string(), time, body.to_string()));
        self.send_message(msg_type, body)
    }

    /// Sends a new order at a limit price.
    pub fn order(&mut self, id: &str, symbol: &str, side: u8, qty: u32, price: &str) -> u64 {
        let body = format!("11={id}|55={symbol}|54={side}|38={qty}|40=2|44={price}|59=1|60={}|", now());
        self.send("D", &body)
    }

    /// Sends a message under the next number; a peer that is gone is detected by reading.
    pub fn send_message(&mut self, msg_type: &str, body: &str) -> u64 {
        let number = self.next_out;
        self.next_out += 1;
        let bytes = self.frame(msg_type, number, "", body);
        self.write(&bytes);
        number
    }

    pub fn write(&mut self, bytes: &[u8]) {
        if let Some(wire) = &mut self.wire {
            let _ = wire.write_all(bytes);
        }
    }

    pub fn frame(&self, msg_type: &str, number: u64, header: &str, body: &str) -> Vec<u8> {
        sealed(&format!(
            "35={msg_type}|34={number}|49={}|56=PITLANE|52={}|{header}{body}",
            self.sender,
            now()
        ))
    }

    /// Returns the next application message, whatever session messages come in between; None at the
    /// end.
    pub fn next_message(&mut self) -> Option<ReceivedFix> {
        loop {
            let message = self.read().ok()?;
            if self.take_in(&message) {
                return Some(message);
            }
        }
    }

    /// Reads until this many application messages were received in total, or the end.
    pub fn receive(&mut self, count: usize) -> bool {
        while self.received.len() < count {
            if self.next_message().is_none() {
                return false;
            }
        }
        true
    }

    /// Sends a Test Request and reads everything before its response: then nothing is in flight.
    pub fn settle(&mut self) {
        self.try_settle().expect("a test request is answered");
    }

    /// Does the same with a peer that may be gone.
    pub fn try_settle(&mut self) -> io::Result<()> {
        loop {
            let id = format!("t{}", self.next_out);
            self.send_message("1", &format!("112={id}|"));
            loop {
                let message = self.read()?;
                let answered = message.get(35) == "0" && message.get(112) == id;
                self.take_in(&message);
                if answered {
                    break;
                }
            }
            if !self.asked {
                return Ok(());
            }
        }
    }

    /// Processes a message in its order. Returns whether it was a new application message.
    fn take_in(&mut self, message: &ReceivedFix) -> bool {
        if message.get(35) == "4" {
            assert_eq!(message.get(123), "Y", "{}", message.text());
            if message.number() == self.next_in {
                self.next_in = message.get(36).parse().expect("a number");
                self.asked = false;
            }
            return false;
        }
        if message.get(35) == "2" {
            self.resend(message);
        }
        if !self.number(message) {
            return false;
        }
        if message.get(35) == "5" {
            self.send_message("5", "");
        }
        let is_application =
            matches!(message.get(35), "8" | "9" | "j" | "W" | "X" | "Y" | "d" | "y" | "h" | "AO" | "AP");
        if is_application {
            self.received.push(message.clone());
        }
        is_application
    }

    /// Returns whether this number is the next; requests a resend of a gap.
    fn number(&mut self, message: &ReceivedFix) -> bool {
        let number = message.number();
        if number == self.next_in {
            self.next_in += 1;
            self.asked &= message.get(43) == "Y";
            return true;
        }
        if number < self.next_in {
            assert_eq!(message.get(43), "Y", "a number comes again: {}", message.text());
            return false;
        }
        if !self.asked {
            self.asked = true;
            let begin = self.next_in;
            self.send_message("2", &format!("7={begin}|16=0|"));
        }
        false
    }

    /// Resends what was requested: application messages as they were, one gap fill for each run of
    /// others.
    fn resend(&mut self, request: &ReceivedFix) {
        let begin: u64 = request.get(7).parse().expect("a number");
        let end = self.next_out;
        let mut at = begin;
        while at < end {
            let next = self.sent.range(at..end).next().map(|(number, sent)| (*number, sent.clone()));
            match next {
                Some((number, (msg_type, time, body))) if number == at => {
                    let again = self.frame(&msg_type, number, &format!("43=Y|122={time}|"), &body);
                    self.write(&again);
                    at += 1;
                }
                other => {
                    let to = other.map_or(end, |(number, _)| number);
                    let fill =
                        self.frame("4", at, &format!("43=Y|122={}|", now()), &format!("123=Y|36={to}|"));
                    self.write(&fill);
                    at = to;
                }
            }
        }
    }

    /// Reads the next frame.
    pub fn read(&mut self) -> io::Result<ReceivedFix> {
        loop {
            if let Some(length) = whole(&self.input) {
                let bytes: Vec<u8> = self.input.drain(..length).collect();
                return Ok(parsed(&bytes));
            }
            let Some(wire) = &mut self.wire else { return Err(io::ErrorKind::NotConnected.into()) };
            let mut buffer = [0; 16_384];
            match wire.read(&mut buffer)? {
                0 => return Err(io::ErrorKind::UnexpectedEof.into()),
                count => self.input.extend_from_slice(&buffer[..count]),
            }
        }
    }

    /// Returns whether the peer has closed, after any remaining messages.
    pub fn is_closed(&mut self) -> bool {
        loop {
            match self.read() {
                Ok(_) => {}
                Err(error) => {
                    return !matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut);
                }
            }
        }
    }
}

/// Opens a connection in plain text.
pub fn plain(address: SocketAddr) -> TcpStream {
    let stream = TcpStream::connect(address).expect("it listens");
    stream.set_read_timeout(Some(PATIENCE)).expect("a socket has a timeout");
    stream.set_nodelay(true).expect("a socket can be quick");
    stream
}

/// Opens a connection that trusts the certificate which the service made in its folder.
pub fn tls(address: SocketAddr, data: &Path) -> Box<dyn FixStream> {
    let mut roots = RootCertStore::empty();
    for certificate in CertificateDer::pem_file_iter(data.join("self-signed.pem")).expect("one was made") {
        roots.add(certificate.expect("a certificate")).expect("a good one");
    }
    let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
    let config = ClientConfig::builder_with_provider(provider).with_safe_default_protocol_versions();
    let config = config.expect("versions").with_root_certificates(roots).with_no_client_auth();
    let name = ServerName::try_from("localhost").expect("a name");
    let connection = ClientConnection::new(Arc::new(config), name).expect("a connection");
    Box::new(StreamOwned::new(connection, plain(address)))
}

/// Returns the time now, as FIX writes it.
pub fn now() -> String {
    let since_1970 = SystemTime::UNIX_EPOCH.elapsed().expect("the clock is later than 1970");
    let now = Timestamp(u64::try_from(since_1970.as_nanos()).expect("until the year 2554"));
    String::from_utf8_lossy(TimestampText::default().text(now)).into_owned()
}

/// Returns a frame of FIX 4.4 with its length and checksum; `|` stands for SOH.
pub fn sealed(body: &str) -> Vec<u8> {
    fix_fields::sealed("FIX.4.4", body)
}

fn whole(bytes: &[u8]) -> Option<usize> {
    let at = bytes.windows(4).position(|window| window == b"\x0110=")?;
    (bytes.len() >= at + 8).then_some(at + 8)
}

fn parsed(bytes: &[u8]) -> ReceivedFix {
    let text = String::from_utf8_lossy(bytes);
    let field = |field: &str| {
        field.split_once('=').map(|(tag, value)| (tag.parse().expect("a tag"), value.to_string()))
    };
    ReceivedFix(text.split('\x01').filter_map(field).collect())
}
