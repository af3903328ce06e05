//! WebSocket itself, with the cases of the Autobahn suite, against the running service: framing,
//! pings, reserved bits, opcodes, fragments, UTF-8, closing, limits. The messages carry STOMP, so
//! the response shows that a message was accepted.

use pitlane_engine::index::{index_u8, index_u16};
use pitlane_testkit::service::ServiceProcess;
use pitlane_testkit::stomp_client::plain;
use pitlane_testkit::web_socket::WebSocket;

use super::sessions::{address, start};

const CONTINUATION: u8 = 0x00;
const TEXT: u8 = 0x01;
const BINARY: u8 = 0x02;
const CLOSE: u8 = 0x88;
const PING: u8 = 0x89;
const PONG: u8 = 0x8a;
/// The last fragment of a message.
const FIN: u8 = 0x80;

/// Characters of two, three and four bytes.
const WORDS: &str = "κόσμε-€-😀";

fn open(service: &ServiceProcess) -> WebSocket {
    let http = address(service, "http");
    WebSocket::open(plain(http), http, "").0
}

/// Opens a socket whose STOMP session is connected.
fn connected(service: &ServiceProcess) -> WebSocket {
    let mut socket = open(service);
    socket.send(FIN | TEXT, b"CONNECT\naccept-version:1.2\nhost:x\n\n\0");
    assert!(socket.receive().unwrap().1.starts_with(b"CONNECTED\n"));
    socket
}

/// Returns a frame that is answered with a receipt of its name.
fn begin(name: &str) -> Vec<u8> {
    format!("BEGIN\ntransaction:{name}\nreceipt:{name}\n\n\0").into_bytes()
}

fn expect_receipt(socket: &mut WebSocket, name: &str, what: &str) {
    let (opcode, frame) = socket.receive().unwrap_or_else(|| panic!("{what}: the end"));
    assert_eq!(opcode, TEXT, "{what}");
    assert_eq!(String::from_utf8(frame).unwrap(), format!("RECEIPT\nreceipt-id:{name}\n\n\0"), "{what}");
}

/// Returns a frame head with a mask of zeros, and its payload.
fn head(first: u8, length: &[u8], payload: &[u8]) -> Vec<u8> {
    [&[first], length, &[0; 4], payload].concat()
}

#[test]
fn forbidden_frames_end_with_their_close_code() {
    let (service, _) = start("ws-forbidden", &[]);
    let mut cases: Vec<(String, Vec<Vec<u8>>, u16)> = Vec::new();
    let mut case = |what: &str, frames: &[(u8, &[u8])], code: u16| {
        let masked = |(first, payload): &(u8, &[u8])| {
            let mut length = vec![0x80 | index_u8(payload.len().min(126))];
            if payload.len() > 125 {
                length.extend_from_slice(&index_u16(payload.len()).to_be_bytes());
            }
            head(*first, &length, payload)
        };
        cases.push((what.to_string(), frames.iter().map(masked).collect(), code));
    };
    for bit in [0x40, 0x20, 0x10, 0x70] {
        for first in [FIN | TEXT, FIN | BINARY, PING, PONG, CLOSE] {
            case(&format!("reserved bits {bit:x} in {first:x}"), &[(first | bit, b"")], 1002);
        }
        case(&format!("reserved bits {bit:x} in a fragment"), &[(TEXT, b"a"), (FIN | bit, b"b")], 1002);
    }
    for opcode in (3..8).chain(11..16) {
        case(&format!("opcode {opcode}"), &[(FIN | opcode, b"")], 1002);
        case(&format!("opcode {opcode} within a message"), &[(TEXT, b"a"), (FIN | opcode, b"x")], 1002);
    }
    case("a continuation of nothing", &[(FIN | CONTINUATION, b"x")], 1002);
    case("a first fragment that continues nothing", &[(CONTINUATION, b"x")], 1002);
    case("a continuation after a whole message", &[(FIN | TEXT, b"\n"), (FIN | CONTINUATION, b"x")], 1002);
    for opcode in [TEXT, BINARY] {
        case("a message within a message", &[(TEXT, b"\n"), (FIN | opcode, b"\n")], 1002);
        case("fragments within fragments", &[(BINARY, b"\n"), (opcode, b"\n")], 1002);
    }
    for control in [PING, PONG, CLOSE] {
        case("a control frame in fragments", &[(control & !FIN, b"")], 1002);
        case("a control frame too long", &[(control, &[b'x'; 126])], 1002);
    }
    case("a close with one byte", &[(CLOSE, b"x")], 1002);
    for code in [0, 999, 1004, 1005, 1006, 1015, 1016, 1100, 2000, 2999, 5000, u16::MAX] {
        case(&format!("a close with {code}"), &[(CLOSE, &code.to_be_bytes())], 1002);
    }
    case("a reason that is no text", &[(CLOSE, b"\x03\xe8\xce\xba\xff")], 1007);
    case("a reason cut within a character", &[(CLOSE, b"\x03\xe8\xce")], 1007);
    let broken: [(&str, &[u8]); 11] = [
        ("an octet alone", b"\x80"),
        ("a first octet alone", b"\xc3\x28"),
        ("an octet that is never used", b"\xfe"),
        ("overlong, two", b"\xc0\xaf"),
        ("overlong, three", b"\xe0\x80\xaf"),
        ("overlong, four", b"\xf0\x80\x80\xaf"),
        ("the largest overlong", b"\xe0\x9f\xbf"),
        ("a surrogate", b"\xed\xa0\x80"),
        ("a pair of surrogates", b"\xed\xad\xbf\xed\xb0\x80"),
        ("above the last character", b"\xf4\x90\x80\x80"),
        ("five octets", b"\xf8\x88\x80\x80\x80"),
    ];
    for (what, octets) in broken {
        case(what, &[(FIN | TEXT, octets)], 1007);
        for cut in 1..octets.len() {
            let (first, second) = octets.split_at(cut);
            case(&format!("{what}, in fragments"), &[(TEXT, first), (FIN, second)], 1007);
            case(&format!("{what}, detected before its end"), &[(TEXT, first), (0, second), (0, b"x")], 1007);
        }
    }
    for len in 1..4 {
        case("a message that ends within a character", &[(FIN | TEXT, &"😀".as_bytes()[..len])], 1007);
        let cut = &"😀".as_bytes()[..len];
        case("fragments that end within a character", &[(TEXT, b"ok"), (FIN, cut)], 1007);
    }
    let length = |length: &[u8]| vec![head(FIN | TEXT, length, b"")];
    cases.push(("two octets for a short length".into(), length(&[0xfe, 0, 125]), 1002));
    cases.push(("eight octets for a short length".into(), length(&[0xff, 0, 0, 0, 0, 0, 0, 0, 5]), 1002));
    cases.push((
        "eight octets for a middle length".into(),
        length(&[0xff, 0, 0, 0, 0, 0, 0, 0xff, 0xff]),
        1002,
    ));
    cases.push(("a length with its highest bit".into(), length(&[0xff, 0x80, 0, 0, 0, 0, 1, 0, 0]), 1002));
    cases.push(("more than a message may have".into(), length(&[0xff, 0, 0, 0, 0, 0, 0x10, 0, 1]), 1009));
    for first in [FIN | TEXT, FIN | BINARY, PING, CLOSE] {
        cases.push((format!("{first:x} without a mask"), vec![vec![first, 0]], 1002));
    }
    for (what, frames, code) in &cases {
        let whole = frames.concat();
        // In one piece and byte by byte: the response is the same.
        for size in [whole.len(), 1] {
            let mut socket = open(&service);
            whole.chunks(size).for_each(|piece| socket.send_raw(piece));
            assert_eq!(socket.closed(), Some(*code), "{what}, {size} at a time");
        }
    }
    assert!(cases.len() > 100);
    service.signal("TERM");
    assert!(service.end().is_orderly());
}

#[test]
fn valid_frames_are_accepted_however_they_are_split() {
    let (service, _) = start("ws-lawful", &[]);
    let mut socket = connected(&service);
    let mut number = 0;
    let mut next = || {
        number += 1;
        format!("{WORDS}{number}")
    };
    // In two fragments, split at every position, also inside characters; with a ping and a pong
    // between.
    for cut in 0..=begin(WORDS).len() {
        let name = next();
        let frame = begin(&name);
        let (first, second) = frame.split_at(cut);
        socket.send(TEXT, first);
        socket.send(PING, &[index_u8(cut)]);
        socket.send(PONG, b"not requested");
        socket.send(FIN, second);
        // The response to a ping may overtake only what comes after it.
        let mut frames = [socket.receive().unwrap(), socket.receive().unwrap()];
        frames.sort_by_key(|(opcode, _)| *opcode == 10);
        assert_eq!(frames[1], (10, vec![index_u8(cut)]), "cut at {cut}");
        assert!(frames[0].1.starts_with(b"RECEIPT\n"), "cut at {cut}");
        socket.send(FIN | TEXT, format!("COMMIT\ntransaction:{name}\n\n\0").as_bytes());
    }
    // Every byte a separate fragment, text and binary; empty fragments between.
    for opcode in [TEXT, BINARY] {
        let name = next();
        socket.send(opcode, b"");
        for octet in begin(&name) {
            socket.send(CONTINUATION, &[octet]);
            socket.send(CONTINUATION, b"");
        }
        socket.send(FIN, b"");
        expect_receipt(&mut socket, &name, "octet by octet");
        socket.send(FIN | TEXT, format!("COMMIT\ntransaction:{name}\n\n\0").as_bytes());
    }
    // Messages of every length at which the head changes: line ends between frames have no meaning.
    for length in [0, 1, 124, 125, 126, 127, 128, 65_535, 65_536, 65_537] {
        for opcode in [TEXT, BINARY] {
            let name = next();
            socket.send(FIN | opcode, &vec![b'\n'; length]);
            socket.send(FIN | opcode, &begin(&name));
            expect_receipt(&mut socket, &name, &format!("behind {length}"));
            socket.send(FIN | TEXT, format!("COMMIT\ntransaction:{name}\n\n\0").as_bytes());
        }
    }
    // Pings of every length are answered with their payload.
    for length in [0, 1, 60, 124, 125] {
        let payload = vec![0xfe; length];
        socket.send(PING, &payload);
        assert_eq!(socket.receive(), Some((10, payload)));
    }
    service.signal("TERM");
    assert!(service.end().is_orderly());
}

#[test]
fn a_close_is_answered_with_its_own_code() {
    let (service, _) = start("ws-close", &[]);
    for code in [1000, 1001, 1002, 1003, 1007, 1008, 1009, 1010, 1011, 3000, 3999, 4000, 4999] {
        let mut socket = connected(&service);
        let reason = [&u16::to_be_bytes(code)[..], &[b'x'; 123]].concat();
        socket.send(CLOSE, &reason);
        // Frames after a close are ignored.
        socket.send(PING, b"too late");
        assert_eq!(socket.closed(), Some(code));
    }
    let mut socket = open(&service);
    socket.send(CLOSE, b"");
    assert_eq!(socket.closed(), None, "without a code there is none in the answer");
    // Between fragments.
    let mut socket = open(&service);
    socket.send(TEXT, b"CONN");
    socket.send(CLOSE, &1000u16.to_be_bytes());
    assert_eq!(socket.closed(), Some(1000));
    // Ours comes after the ERROR.
    let mut socket = open(&service);
    socket.send(FIN | TEXT, b"SUBSCRIBE\n\n\0");
    assert!(socket.receive().unwrap().1.starts_with(b"ERROR\n"));
    assert_eq!(socket.closed(), Some(1002));
    service.signal("TERM");
    assert!(service.end().is_orderly());
}
