//! Hostile sessions: valid beginnings of a session with a fault in them, or random bytes.

use std::io::{self, Read, Write};
use std::net::{Shutdown, SocketAddr};

use pitlane_engine::index::{index_u8, index_u16};
use pitlane_engine::rng::Rng;
use pitlane_testkit::fix_client::{now, sealed};

use crate::traders::{ServiceAddresses, wire};

/// Names for logons; each has a separate store.
const NAMES: u64 = 8;
/// Bytes of a response that are read at most.
const ANSWER_BYTES_MAX: usize = 1 << 20;
const NOISE_BYTES_MAX: u64 = 600;
const CHANGES_MAX: u64 = 4;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum HostileProtocol {
    Fix,
    Stomp,
    WebSocket,
    Http,
}

impl HostileProtocol {
    pub(crate) const ALL: [HostileProtocol; 4] =
        [HostileProtocol::Fix, HostileProtocol::Stomp, HostileProtocol::WebSocket, HostileProtocol::Http];

    fn door(self, addresses: &ServiceAddresses) -> SocketAddr {
        match self {
            HostileProtocol::Fix => addresses.fix,
            HostileProtocol::Stomp => addresses.stomp,
            HostileProtocol::WebSocket | HostileProtocol::Http => addresses.http,
        }
    }
}

/// Runs so many sessions, one after the other. Returns how many were accepted; the service may be
/// down at some time.
pub(crate) fn visit(
    protocol: HostileProtocol,
    addresses: &ServiceAddresses,
    sessions: u64,
    dice: &mut Rng,
) -> u64 {
    (0..sessions).filter(|_| session(protocol, addresses, dice).is_ok()).count() as u64
}

/// Runs one session. An error means that it was not accepted at all. A session that is closed by
/// the service is expected.
fn session(protocol: HostileProtocol, addresses: &ServiceAddresses, dice: &mut Rng) -> io::Result<()> {
    let mut socket = wire(protocol.door(addresses))?;
    let bytes = problem(protocol, dice);
    let cut = dice.index(bytes.len() + 1);
    for part in [&bytes[..cut], &bytes[cut..]] {
        if socket.write_all(part).is_err() {
            return Ok(());
        }
    }
    match dice.below(4) {
        // Disconnects before the response.
        0 => {}
        // Disconnects in the middle of the response.
        1 => _ = socket.shutdown(Shutdown::Write).and_then(|()| socket.read(&mut [0; 16])),
        _ => {
            let _ = socket.shutdown(Shutdown::Write);
            let mut answer = Vec::new();
            let _ = socket.take(ANSWER_BYTES_MAX as u64).read_to_end(&mut answer);
        }
    }
    Ok(())
}

fn problem(protocol: HostileProtocol, dice: &mut Rng) -> Vec<u8> {
    if dice.below(4) == 0 {
        return noise(dice);
    }
    match protocol {
        HostileProtocol::Fix => fix(dice),
        HostileProtocol::Stomp => changed(stomp(), dice),
        HostileProtocol::WebSocket => {
            let frames = [frame(0x81, &stomp()), frame(0x89, b"ping"), frame(0x88, b"\x03\xe8")].concat();
            let opening =
                b"GET /stomp HTTP/1.1\r\nHost: localhost\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\
                Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n";
            match dice.below(4) {
                0 => changed([&opening[..], &frames].concat(), dice),
                _ => [&opening[..], &changed(frames, dice)].concat(),
            }
        }
        HostileProtocol::Http => {
            let body = r#"{"securityId":1,"side":"BUY","quantity":1,"limit":1}"#;
            let length = body.len();
            let request = format!(
                "POST /rest/execution/order/limit HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n\
                 Content-Length: {length}\r\n\r\n{body}GET /rest/position HTTP/1.1\r\nHost: localhost\r\n\r\n"
            );
            changed(request.into_bytes(), dice)
        }
    }
}

/// Makes a Logon, an order, and requests of every kind; with a right or a wrong checksum.
fn fix(dice: &mut Rng) -> Vec<u8> {
    let name = dice.below(NAMES);
    let mut bytes = Vec::new();
    let bodies = [
        "98=0|108=30|141=Y|",
        "11=e1|55=AAPL|54=1|38=1|40=2|44=1|59=1|",
        "7=1|16=0|",
        "112=x|",
        "123=Y|36=9|",
        "11=e2|41=e1|55=AAPL|54=1|38=2|40=2|44=1|",
        "11=e3|41=e1|55=AAPL|54=1|",
        "58=bye|",
    ];
    for (number, (kind, body)) in ["A", "D", "2", "1", "4", "G", "F", "5"].iter().zip(bodies).enumerate() {
        let number = number + 1;
        let text = format!("35={kind}|34={number}|49=EVIL{name}|56=PITLANE|52={}|{body}", now());
        bytes.extend(match dice.below(3) {
            0 if number > 1 => sealed(&String::from_utf8_lossy(&changed(text.into_bytes(), dice))),
            1 if number > 1 => changed(sealed(&text), dice),
            _ => sealed(&text),
        });
    }
    bytes
}

fn stomp() -> Vec<u8> {
    b"CONNECT\naccept-version:1.2\nhost:localhost\nheart-beat:0,0\n\n\0\
      SUBSCRIBE\nid:1\ndestination:/topic/tick.*\nack:client\n\n\0\
      SEND\ndestination:/topic/generic-event.x\ncontent-length:2\n\n{}\0\
      BEGIN\ntransaction:t\n\n\0ACK\nid:1\ntransaction:t\n\n\0COMMIT\ntransaction:t\n\n\0\
      UNSUBSCRIBE\nid:1\n\n\0DISCONNECT\nreceipt:r\n\n\0"
        .to_vec()
}

/// Makes a masked WebSocket frame.
fn frame(first: u8, payload: &[u8]) -> Vec<u8> {
    let mask = [7, 1, 9, 3];
    let mut frame = vec![first];
    match payload.len() {
        short @ 0..=125 => frame.push(0x80 | index_u8(short)),
        long => {
            frame.push(0x80 | 126);
            frame.extend(index_u16(long & 0xffff).to_be_bytes());
        }
    }
    frame.extend(mask);
    frame.extend(payload.iter().zip(mask.iter().cycle()).map(|(byte, mask)| byte ^ mask));
    frame
}

fn noise(dice: &mut Rng) -> Vec<u8> {
    (0..1 + dice.below(NOISE_BYTES_MAX)).map(|_| dice.byte()).collect()
}

/// Returns the same bytes with some changes: flipped bits, parts omitted, repeated, inserted,
/// numbers without end.
fn changed(mut bytes: Vec<u8>, dice: &mut Rng) -> Vec<u8> {
    for _ in 0..1 + dice.below(CHANGES_MAX) {
        let at = dice.index(bytes.len());
        let end = (at + 1 + dice.index(20)).min(bytes.len());
        match dice.below(5) {
            0 => bytes[at] ^= 1 << dice.below(8),
            1 if end - at < bytes.len() => _ = bytes.drain(at..end),
            2 => {
                let part = bytes[at..end].to_vec();
                bytes.splice(at..at, part);
            }
            3 => _ = bytes.splice(at..at, noise(dice)),
            _ => _ = bytes.splice(at..at, b"99999999999999999999".iter().copied()),
        }
    }
    bytes
}
