use super::*;

/// Returns frames and the error of a stream as text. The octets arrive in pieces of these lengths,
/// repeatedly.
fn read(version: Option<StompVersion>, stream: &[u8], pieces: &[usize]) -> Vec<String> {
    let mut decoder = Decoder { version, ..Decoder::default() };
    let (mut buffer, mut told) = (Vec::new(), Vec::new());
    let mut rest = stream;
    let mut turn = pieces.iter().cycle();
    while !rest.is_empty() {
        let len = turn.next().copied().unwrap_or(rest.len()).min(rest.len());
        buffer.extend_from_slice(&rest[..len]);
        rest = &rest[len..];
        loop {
            match decoder.decode(&buffer) {
                Ok(Decoded::Message { message, consumed }) => {
                    told.push(format!("{message:?}"));
                    buffer.drain(..consumed);
                }
                Ok(Decoded::Incomplete) => {
                    buffer.drain(..decoder.skip());
                    break;
                }
                Err(error) => {
                    let receipt = decoder.receipt(&buffer).map(|text| text.into_owned());
                    told.push(format!("{error:?} {receipt:?}"));
                    return told;
                }
            }
        }
    }
    told
}

/// Checks that the result is the same wherever the octets are cut.
fn check(version: Option<StompVersion>, stream: &[u8], expected: &[&str]) {
    assert_eq!(read(version, stream, &[]), expected, "{}", stream.escape_ascii());
    for pieces in [&[1][..], &[2], &[3, 1], &[7, 1, 5]] {
        assert_eq!(read(version, stream, pieces), expected, "{pieces:?} {}", stream.escape_ascii());
    }
    if stream.len() < 500 {
        for at in 1..stream.len() {
            assert_eq!(read(version, stream, &[at, stream.len()]), expected, "cut at {at}");
        }
    }
}

const V12: Option<StompVersion> = Some(StompVersion::V12);

#[test]
fn frames_come_out_wherever_the_octets_are_cut() {
    check(
        V12,
        b"\n\r\nACK\r\nid:1\r\nid:2\r\n\r\n\0\nSEND\ncontent-length:3\n\na\0b\0SEND\n\nhello\0\r\n",
        &[
            "ACK \"id:1\\r\\nid:2\\r\\n\" \"\"",
            "SEND \"content-length:3\\n\" \"a\\\\x00b\"",
            "SEND \"\" \"hello\"",
        ],
    );
    check(None, b"STOMP\nlogin:a\\tb\n\n\0", &["CONNECT \"login:a\\\\tb\\n\" \"\""]);
}

#[test]
fn mistakes_are_told_with_the_receipt_that_was_asked_for() {
    for (stream, told) in [
        (&b"GET / HTTP/1.1\r\nHost: x\r\n\r\n"[..], "UnknownCommand None"),
        (b"\x16\x03\x01\x02\x00 and so on, a greeting of TLS", "NulInHead None"),
        (b"ABCDEFGHIJKLMNOPQ", "CommandTooLong None"),
        (b"MESSAGE\n", "UnknownCommand None"),
        (b"ack\n", "UnknownCommand None"),
        (b"\rACK\n", "UnknownCommand None"),
        (b"ACK\nreceipt:r\nnocolon\n\n\0", "NoColon Some(\"r\")"),
        (b"ACK\n:value\nreceipt:r\n\n\0", "NoName Some(\"r\")"),
        (b"ACK\nid:a\\tb\nreceipt:r\\cs\n\n\0", "Escape Some(\"r:s\")"),
        (b"ACK\nid:\xff\n\n\0", "Utf8 None"),
        (b"ACK\nreceipt:9\nid:1\0", "NulInHead Some(\"9\")"),
        (b"SEND\ncontent-length:-1\nreceipt:r\n\n", "ContentLength Some(\"r\")"),
        (b"SEND\ncontent-length:\n\n", "ContentLength None"),
        (b"SEND\ncontent-length:1x\n\n", "ContentLength None"),
        (b"SEND\ncontent-length: 1\n\n", "ContentLength None"),
        (b"SEND\ncontent-length:65537\n\n", "BodyTooLong None"),
        (b"SEND\ncontent-length:99999999999999999999999\n\n", "BodyTooLong None"),
        (b"SEND\ncontent-length:1\n\nab\0", "NoNulAfterBody None"),
    ] {
        check(V12, stream, &[told]);
    }
    check(Some(StompVersion::V11), b"ACK\nid:a\\rb\n\n\0", &["Escape None"]);
    check(Some(StompVersion::V10), b"ACK\nid:a\\rb\n\n\0", &["ACK \"id:a\\\\rb\\n\" \"\""]);
}

#[test]
fn every_part_has_its_limit() {
    let FrameLimits { line_bytes_max, headers_max, body_bytes_max, .. } = FrameLimits::default();
    let line = |len: usize| [b"ACK\nid:".as_slice(), &vec![b'x'; len - 3], b"\n\n\0"].concat();
    assert_eq!(read(V12, &line(line_bytes_max), &[]).len(), 1);
    check(V12, &line(line_bytes_max + 1), &["LineTooLong None"]);
    let many = |count: usize| [b"ACK\n".as_slice(), &b"a:b\n".repeat(count), b"\n\0"].concat();
    assert!(read(V12, &many(headers_max), &[])[0].starts_with("ACK"));
    check(V12, &many(headers_max + 1), &["TooManyHeaders None"]);
    let long = [b"a:".as_slice(), &[b'x'; 8_000], b"\n"].concat();
    check(V12, &[b"ACK\n".as_slice(), &long.repeat(9), b"\n\0"].concat(), &["HeadTooLong None"]);
    let body = |len: usize| [b"SEND\n\n".as_slice(), &vec![b'x'; len], b"\0"].concat();
    assert!(read(V12, &body(body_bytes_max), &[])[0].starts_with("SEND"));
    check(V12, &body(body_bytes_max + 1), &["BodyTooLong None"]);
}

#[test]
fn a_stranger_has_four_kibibytes() {
    check(None, &vec![b'\n'; CONNECT_BYTES_MAX + 1], &["ConnectTooLong None"]);
    let connect = |len: usize| [b"CONNECT\nlogin:".as_slice(), &vec![b'x'; len - 17], b"\n\n\0"].concat();
    assert!(read(None, &connect(CONNECT_BYTES_MAX), &[])[0].starts_with("CONNECT"));
    check(None, &connect(CONNECT_BYTES_MAX + 200), &["ConnectTooLong None"]);
    check(None, b"CONNECT\ncontent-length:5000\n\n", &["ConnectTooLong None"]);
    let gap = [vec![b'\n'; 4_090], connect(100)].concat();
    check(None, &gap, &["ConnectTooLong None"]);
}

#[test]
fn every_error_has_words_of_its_own() {
    let mut words: Vec<_> = StompFrameError::ALL.iter().map(|error| error.text()).collect();
    words.sort_unstable();
    words.dedup();
    assert_eq!(words.len(), StompFrameError::ALL.len());
}
