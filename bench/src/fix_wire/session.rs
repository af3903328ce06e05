//! One FIX session of the load generator.

use std::io::{self, ErrorKind, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::time::Duration;

use pitlane_engine::refdata::RefData;
use pitlane_engine::time::Timestamp;
use pitlane_protocols::fix::timestamp::TimestampText;

use super::receive_stamps::ReceiveStamps;
use super::{BoxError, FixServerKind, READ_BYTES, START_MAX};
use crate::convert::duration_ns;
use crate::fix::append_message;
use crate::tick_reader::fix::next_frame;

/// Sides in FIX.
pub(crate) const BUY: char = '1';
pub(crate) const SELL: char = '2';
/// Quantity of every order.
pub(crate) const ORDER_QTY: f64 = 100.0;

/// Bytes that only a Heartbeat contains.
const HEARTBEAT: &[u8] = b"\x0135=0\x01";
/// Bytes that only a Logon contains.
const LOGON: &[u8] = b"\x0135=A\x01";

/// Name and secret of a user or token.
#[derive(Clone, Debug)]
pub struct LoadLogin {
    pub name: String,
    pub secret: String,
}

/// A server that listens, and what the load generator must know of it.
#[derive(Clone, Debug)]
pub struct LoadTarget {
    pub address: SocketAddr,
    pub kind: FixServerKind,
    /// `None`: the server requires no login.
    pub login: Option<LoadLogin>,
    /// First characters of all order ids. A server takes an id once, so that runs at the same
    /// server need different ones.
    pub id_prefix: String,
    /// Whether the times at which the kernel received reports are read too.
    pub stamped: bool,
}

impl LoadTarget {
    /// Returns a server that was started for one run and requires no login.
    pub fn new(address: SocketAddr, kind: FixServerKind) -> LoadTarget {
        LoadTarget { address, kind, login: None, id_prefix: String::new(), stamped: false }
    }
}

/// One session of the load generator.
pub(crate) struct LoadSession {
    stream: TcpStream,
    stamps: Option<ReceiveStamps>,
    number: u64,
    /// Sequence numbers of the orders sent; they are part of the order ids.
    numbers: Vec<u64>,
    name: String,
    /// First part of the order ids.
    ids: String,
    input: Vec<u8>,
    /// Rest of a write that was not accepted yet.
    pub(super) output: Vec<u8>,
    pub(super) sent: usize,
    pub(crate) answered: usize,
}

impl LoadSession {
    /// Connects to the target as its nth client, and logs on unless it is an echo.
    pub(crate) fn open(target: &LoadTarget, nth: usize) -> Result<LoadSession, BoxError> {
        let stream = TcpStream::connect(target.address)?;
        stream.set_nodelay(true)?;
        let name = format!("BENCH{}", nth + 1);
        let mut session = LoadSession {
            stamps: target.stamped.then(|| ReceiveStamps::request(&stream)).transpose()?,
            stream,
            number: 1,
            numbers: Vec::new(),
            ids: format!("{}{name}", target.id_prefix),
            name,
            input: Vec::with_capacity(2 * READ_BYTES),
            output: Vec::new(),
            sent: 0,
            answered: 0,
        };
        if target.kind != FixServerKind::Echo {
            session.log_on(target.login.as_ref())?;
        }
        session.stream.set_nonblocking(true)?;
        Ok(session)
    }

    fn log_on(&mut self, login: Option<&LoadLogin>) -> Result<(), BoxError> {
        let login = login
            .map_or(String::new(), |LoadLogin { name, secret }| format!("553={name}\x01554={secret}\x01"));
        let mut logon = Vec::new();
        self.frame("A", &format!("98=0\x01108=0\x01141=Y\x01{login}"), &mut logon);
        self.stream.write_all(&logon)?;
        let mut answer = [0; 4_096];
        self.stream.set_read_timeout(Some(START_MAX))?;
        let count = read_part(&mut self.stream, &mut answer)?;
        if memchr::memmem::find(&answer[..count], LOGON).is_none() {
            return Err(format!("the Logon was refused: {}", answer[..count].escape_ascii()).into());
        }
        Ok(())
    }

    fn frame(&mut self, msg_type: &str, body: &str, out: &mut Vec<u8>) {
        let time = fix_timestamp();
        let body = format!(
            "35={msg_type}\x0134={}\x0149={}\x0156=PITLANE\x0152={time}\x01{body}",
            self.number, self.name
        );
        self.number += 1;
        append_message(&body, out);
    }

    /// Appends an order that rests: its price is far from the market.
    pub(crate) fn order(&mut self, out: &mut Vec<u8>) {
        self.order_of(BUY, out);
    }

    /// Appends an order at the price of all others, so that it trades with one of the other side.
    pub(crate) fn order_of(&mut self, side: char, out: &mut Vec<u8>) {
        self.numbers.push(self.number);
        let body = format!(
            "11={}-{}\x0155=AAPL\x0154={side}\x0138=100\x0140=2\x0144=100.00\x0159=1\x0160=20261115-10:00:00.000\x01",
            self.ids, self.number
        );
        self.frame("D", &body, out);
    }

    /// Appends a cancel of the nth order that the session sent.
    pub(super) fn cancel(&mut self, nth: usize, out: &mut Vec<u8>) {
        let body = format!(
            "11={0}-c{nth}\x0141={0}-{1}\x0155=AAPL\x0154=1\x0138=100\x0160=20261115-10:00:00.000\x01",
            self.ids, self.numbers[nth]
        );
        self.frame("F", &body, out);
    }

    /// Appends a cancel of the last order.
    pub(crate) fn cancel_last(&mut self, out: &mut Vec<u8>) {
        self.cancel(self.numbers.len() - 1, out);
    }

    /// Subscribes the best prices and trades of all securities with one Market Data Request (V),
    /// and returns the connection once the service has read it.
    pub(crate) fn subscribe_prices(mut self, reference: &RefData) -> Result<TcpStream, BoxError> {
        let securities = reference.securities();
        let mut body =
            "262=prices\x01263=1\x01264=1\x01265=1\x01267=3\x01269=0\x01269=1\x01269=2\x01".to_string();
        body += &format!("146={}\x01", securities.len());
        securities.iter().for_each(|security| body += &format!("55={}\x01", security.symbol));
        let mut frames = Vec::new();
        self.frame("V", &body, &mut frames);
        // Messages are read in order: the Heartbeat that answers comes after the request.
        self.frame("1", "112=subscribed\x01", &mut frames);
        self.stream.set_nonblocking(false)?;
        self.stream.write_all(&frames)?;
        let (mut answer, mut buffer) = (Vec::new(), [0; 4_096]);
        while next_frame(&answer).is_none() {
            let count = read_part(&mut self.stream, &mut buffer)?;
            if count == 0 {
                return Err("the server closed the connection".into());
            }
            answer.extend_from_slice(&buffer[..count]);
        }
        if memchr::memmem::find(&answer, HEARTBEAT).is_none() {
            return Err(format!("the subscription was refused: {}", answer.escape_ascii()).into());
        }
        self.stream.set_nonblocking(true)?;
        Ok(self.stream)
    }

    /// Sends bytes, and waits until the socket has accepted all of them.
    pub(crate) fn send(&mut self, bytes: &[u8]) -> Result<(), BoxError> {
        Ok(write_all(&mut self.stream, bytes)?)
    }

    /// Reads what has arrived, and returns the number of first reports in it.
    pub(crate) fn receive_reports(&mut self, pattern: &[u8], buffer: &mut [u8]) -> Result<usize, BoxError> {
        let read = match &mut self.stamps {
            Some(stamps) => stamps.read(&self.stream, buffer),
            None => self.stream.read(buffer),
        };
        match read {
            Ok(0) => return Err("the server closed the connection".into()),
            Ok(count) => self.input.extend_from_slice(&buffer[..count]),
            Err(error) if error.kind() == ErrorKind::WouldBlock => return Ok(0),
            Err(error) => return Err(error.into()),
        }
        let (mut count, mut at) = (0, 0);
        for found in memchr::memmem::find_iter(&self.input, pattern) {
            count += 1;
            at = found + pattern.len();
        }
        // A mark may be split between two reads.
        let keep = self.input.len().saturating_sub(at).min(pattern.len() - 1);
        self.input.drain(..self.input.len() - keep);
        self.answered += count;
        Ok(count)
    }

    /// Returns the time since the kernel received the last of what was read, if it is known.
    pub(super) fn age(&self) -> Option<Duration> {
        self.stamps.as_ref().and_then(ReceiveStamps::age)
    }

    /// Forgets the counts of orders and reports, and returns the number of orders.
    pub(super) fn begin_again(&mut self) -> usize {
        self.answered = 0;
        std::mem::take(&mut self.sent)
    }

    pub(super) fn flush(&mut self) -> Result<(), BoxError> {
        while !self.output.is_empty() {
            match self.stream.write(&self.output) {
                Ok(count) => drop(self.output.drain(..count)),
                Err(error) if error.kind() == ErrorKind::WouldBlock => return Ok(()),
                Err(error) => return Err(error.into()),
            }
        }
        Ok(())
    }
}

/// Returns the current time in the format of FIX.
pub(crate) fn fix_timestamp() -> String {
    String::from_utf8_lossy(TimestampText::default().text(now())).into_owned()
}

fn now() -> Timestamp {
    let since = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap_or_default();
    Timestamp(duration_ns(since))
}

pub(super) fn write_all(stream: &mut TcpStream, mut bytes: &[u8]) -> io::Result<()> {
    while !bytes.is_empty() {
        match stream.write(bytes) {
            Ok(count) => bytes = &bytes[count..],
            Err(error) if error.kind() == ErrorKind::WouldBlock => std::hint::spin_loop(),
            Err(error) => return Err(error),
        }
    }
    Ok(())
}

/// Reads what arrives next. A read with a time limit may be interrupted, also without a handler of
/// a signal: when the process or the whole machine was paused.
fn read_part(stream: &mut TcpStream, buffer: &mut [u8]) -> io::Result<usize> {
    loop {
        match stream.read(buffer) {
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            outcome => return outcome,
        }
    }
}
