use super::*;

/// Returns frames and the error of a stream as text. The octets arrive in pieces of these lengths,
/// repeatedly.
fn read(version: Option<StompVersion>, stream: &[u8], pieces: &[usize]) -> Vec<String> {
    let mut decoder = Decoder { version, ..Decoder::default() };
    let (mut buffer, mut results) = (Vec::new(), Vec::new());
    let mut rest = stream;
    let mut turn = pieces.iter().cycle();
    while !rest.is_empty() {
        let len = turn.next().copied().unwrap_or(rest.len()).min(rest.len());
        buffer.extend_from_slice(&rest[..len]);
        rest = &rest[len..];
        loop {
            match decoder.decode(&buffer) {
                Ok(Decoded::Message { message, consumed }) => {
                    results.push(format!("{message:?}"));
                    buffer.drain(..consumed);
                }
                Ok(Decoded::Incomplete) => {
                    buffer.drain(..decoder.skip());
                    break;
                }
                Err(error) => {
                    let receipt = decoder.receipt(&buffer).map(|text| text.into_owned());
                    results.push(format!("{error:?} {receipt:?}"));
                    return results;
                }
            }
        }
    }
    results
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
fn frames_are_decoded_wherever_the_octets_are_cut() {
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
fn errors_carry_the_requested_receipt() {
    for (stream, results) in [
        (&b"GET / HTTP/1.1\r\nHost: x\r\n\r\n"[..], "UnknownCommand None"),
        (b"\x16\x03\x01\x02\x00 and so on, a greeting of TLS", "NulInHead None"),
        (b"ABCDEFGHIJKLMNOPQ", "CommandTooLong None"),
        (b"MESSAGE\n", "UnknownCommand None"),
        (b"receipt:r\n", "UnknownCommand None"),
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
        check(V12, stream, &[results]);
    }
    check(Some(StompVersion::V11), b"ACK\nid:a\\rb\n\n\0", &["Escape None"]);
    check(Some(StompVersion::V10), b"ACK\nid:a\\rb\n\n\0", &["ACK \"id:a\\\\rb\\n\" \"\""]);
}

#[test]
fn every_part_has_its_limit() {
    let FrameLimits { line_bytes_max, headers_max, body_bytes_max, .. } = FrameLimits::default();
    let line = |len: usize| [b"ACK\nid:".as_slice(), &vec![b'x'; len - 3], b"\n\n\0"].concat();
    assert!(read(V12, &line(line_bytes_max), &[])[0].starts_with("ACK"));
    check(V12, &line(line_bytes_max + 1), &["LineTooLong None"]);
    let many = |count: usize| [b"ACK\n".as_slice(), &b"a:b\n".repeat(count), b"\n\0"].concat();
    assert!(read(V12, &many(headers_max), &[])[0].starts_with("ACK"));
    check(V12, &many(headers_max + 1), &["TooManyHeaders None"]);
    let long = [b"a:".as_slice(), &[b'x'; 8_000], b"\n"].concat();
    check(V12, &[b"ACK\n".as_slice(), &long.repeat(9), b"\n\0"].concat(), &["HeadTooLong None"]);
    check(V12, &[b'A'; COMMAND_BYTES_MAX], &[]);
    check(V12, &[b'A'; COMMAND_BYTES_MAX + 1], &["CommandTooLong None"]);
    let body = |len: usize| [b"SEND\n\n".as_slice(), &vec![b'x'; len], b"\0"].concat();
    assert!(read(V12, &body(body_bytes_max), &[])[0].starts_with("SEND"));
    check(V12, &body(body_bytes_max + 1), &["BodyTooLong None"]);
}

#[test]
fn octets_before_connected_are_bounded() {
    check(None, &vec![b'\n'; CONNECT_BYTES_MAX], &[]);
    check(None, &vec![b'\n'; CONNECT_BYTES_MAX + 1], &["ConnectTooLong None"]);
    let connect = |len: usize| [b"CONNECT\nlogin:".as_slice(), &vec![b'x'; len - 17], b"\n\n\0"].concat();
    assert!(read(None, &connect(CONNECT_BYTES_MAX), &[])[0].starts_with("CONNECT"));
    check(None, &connect(CONNECT_BYTES_MAX + 200), &["ConnectTooLong None"]);
    check(None, b"CONNECT\ncontent-length:5000\n\n", &["ConnectTooLong None"]);
    let with_body = [b"CONNECT\ncontent-length:200\n\n".as_slice(), &[b'x'; 200], b"\0"].concat();
    assert!(read(None, &with_body, &[])[0].starts_with("CONNECT"), "head and body are added");
    // All frames before CONNECTED count, to the last octet.
    for (second, expected) in
        [(CONNECT_BYTES_MAX - 2_000, ""), (CONNECT_BYTES_MAX - 1_999, "ConnectTooLong None")]
    {
        let results = read(None, &[connect(2_000), connect(second)].concat(), &[]);
        assert!(results[..2].iter().all(|result| result.starts_with("CONNECT ")));
        assert_eq!(results[2..].concat(), expected);
    }
}

#[test]
fn line_ends_between_frames_leave_the_buffer() {
    let mut decoder = Decoder::new(FrameLimits::default());
    assert_eq!(decoder.decode(b"\n\r\n\r"), Ok(Decoded::Incomplete));
    assert_eq!(decoder.skip(), 3, "the last CR may be half of a line end");
    assert_eq!(decoder.skip(), 0);
    assert_eq!(decoder.decode(b"\r\nACK\n"), Ok(Decoded::Incomplete));
    assert_eq!(decoder.skip(), 0, "the frame has begun");
}

#[test]
fn connect_has_no_escapes_in_any_version() {
    for version in [None, Some(StompVersion::V11), V12] {
        check(version, b"CONNECT\nlogin:a\\tb\n\n\0", &["CONNECT \"login:a\\\\tb\\n\" \"\""]);
    }
}

#[test]
fn every_error_has_its_own_text() {
    let mut words: Vec<_> = StompFrameError::ALL.iter().map(|error| error.text()).collect();
    words.sort_unstable();
    words.dedup();
    assert_eq!(words.len(), StompFrameError::ALL.len());
}
