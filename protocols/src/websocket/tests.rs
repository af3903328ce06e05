use super::*;

/// Returns a client's masked frame.
fn frame(first: u8, payload: &[u8]) -> Vec<u8> {
    let mask = [0x37, 0xfa, 0x21, 0x3d];
    let mut out = vec![first];
    match payload.len() {
        len @ 0..=125 => out.push(0x80 | len as u8),
        len @ 126..=0xffff => {
            out.push(0x80 | 126);
            out.extend_from_slice(&(len as u16).to_be_bytes());
        }
        len => {
            out.push(0x80 | 127);
            out.extend_from_slice(&(len as u64).to_be_bytes());
        }
    }
    out.extend_from_slice(&mask);
    out.extend(payload.iter().zip(mask.iter().cycle()).map(|(byte, mask)| byte ^ mask));
    out
}

/// Returns the payload, the final state and the automatic answers, with the bytes cut into pieces
/// of this length.
fn received(bytes: &[u8], piece: usize) -> (Vec<u8>, WebSocketState, Vec<u8>) {
    let (mut receiver, mut payload_received, mut answers) = (Receiver::default(), Vec::new(), Vec::new());
    let mut bytes = bytes.to_vec();
    let mut state = WebSocketState::Open;
    for piece in bytes.chunks_mut(piece) {
        state = receiver.handle_bytes(piece, |payload| payload_received.extend_from_slice(payload));
        receiver.poll_pong(&mut answers);
    }
    (payload_received, state, answers)
}

/// Checks that the result is the same wherever the bytes are cut.
fn check(bytes: &[u8], payload_received: &[u8], state: WebSocketState) {
    for piece in [1, 2, 3, 7, bytes.len().max(1)] {
        let (actual, is, _) = received(bytes, piece);
        assert_eq!(is, state, "in pieces of {piece}: {bytes:x?}");
        if state == WebSocketState::Open {
            assert_eq!(actual, payload_received, "in pieces of {piece}");
        }
    }
}

const BROKEN: WebSocketState = WebSocketState::Closing(Some(code::PROTOCOL));

#[test]
fn messages_and_their_fragments_are_one_stream() {
    check(&frame(0x81, b"Hello"), b"Hello", WebSocketState::Open);
    check(&frame(0x82, &[0, 255, 254]), &[0, 255, 254], WebSocketState::Open);
    check(&frame(0x81, b""), b"", WebSocketState::Open);
    let parts =
        [frame(0x01, b"He"), frame(0x89, b"?"), frame(0x00, b""), frame(0x80, b"llo"), frame(0x81, b"!")];
    check(&parts.concat(), b"Hello!", WebSocketState::Open);
    for len in [125, 126, 127, 65_535, 65_536] {
        check(&frame(0x82, &vec![b'x'; len]), &vec![b'x'; len], WebSocketState::Open);
    }
}

#[test]
fn text_is_utf8_across_fragments_and_is_checked_at_once() {
    let text = "κόσμε".as_bytes();
    check(&[frame(0x01, &text[..3]), frame(0x80, &text[3..])].concat(), text, WebSocketState::Open);
    let not_utf8 = WebSocketState::Closing(Some(code::NOT_UTF8));
    check(&frame(0x81, &[0xce]), b"", not_utf8);
    check(&frame(0x01, b"ok\xff"), b"", not_utf8);
    // Binary messages may have any content.
    check(&frame(0x82, &[0xff]), &[0xff], WebSocketState::Open);
}

#[test]
fn violations_of_the_rfc_end_with_its_code() {
    for bytes in [
        frame(0xc1, b"reserved bit"),
        frame(0x83, b"no such opcode"),
        frame(0x8b, b"no such control"),
        vec![0x81, 0x05, b'n', b'o', b'm', b's', b'k'],
        frame(0x80, b"goes on with nothing"),
        [frame(0x01, b"a"), frame(0x81, b"another begins")].concat(),
        frame(0x09, b"a ping in parts"),
        frame(0x89, &[0; 126]),
        vec![0x82, 0x80 | 126, 0, 125, 0, 0, 0, 0],
        vec![0x82, 0x80 | 127, 0, 0, 0, 0, 0, 0, 0xff, 0xff, 0, 0, 0, 0],
        vec![0x82, 0x80 | 127, 0x80, 0, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0],
    ] {
        check(&bytes, b"", BROKEN);
    }
    let too_big = WebSocketState::Closing(Some(code::TOO_BIG));
    check(&[0x82, 0x80 | 127, 0, 0, 0, 0, 0, 0x10, 0, 1, 0, 0, 0, 0], b"", too_big);
    let half = vec![0; MESSAGE_BYTES_MAX as usize / 2 + 1];
    let whole = [frame(0x02, &half), frame(0x80, &half)].concat();
    assert_eq!(received(&whole, 65_536).1, too_big);
}

#[test]
fn a_close_is_answered_with_its_own_code() {
    let close = |payload: &[u8]| frame(0x88, payload);
    check(&close(b""), b"", WebSocketState::Closing(None));
    for code in [1000u16, 1001, 1003, 1007, 1011, 3000, 4999] {
        check(&close(&code.to_be_bytes()), b"", WebSocketState::Closing(Some(code)));
    }
    for code in [0u16, 999, 1004, 1005, 1006, 1015, 1016, 2999, 5000, 65535] {
        check(&close(&code.to_be_bytes()), b"", BROKEN);
    }
    check(&close(b"\x03"), b"", BROKEN);
    check(&close(b"\x03\xe8\xff"), b"", WebSocketState::Closing(Some(code::NOT_UTF8)));
    let after = [close(b"\x03\xe8"), frame(0x81, b"late")].concat();
    assert_eq!(received(&after, after.len()).0, b"", "nothing is passed on after the close");
}

#[test]
fn the_newest_ping_is_answered_with_its_payload() {
    assert_eq!(received(&frame(0x89, b"abc"), 64).2, b"\x8a\x03abc");
    let two = [frame(0x89, b"1"), frame(0x89, b"2")].concat();
    assert_eq!(received(&two, 64).2, b"\x8a\x012", "of two that came at once the last is enough");
    assert_eq!(received(&frame(0x8a, b"unasked"), 64).2, b"");
    assert_eq!(received(&frame(0x89, &[7; 125]), 1).2.len(), 127);
}

#[test]
fn sent_frames_are_minimal_and_unmasked() {
    let mut out = Vec::new();
    message_head(&mut out, MessageKind::Text, 125);
    message_head(&mut out, MessageKind::Binary, 126);
    message_head(&mut out, MessageKind::Text, 65_536);
    assert_eq!(out, [0x81, 125, 0x82, 126, 0, 126, 0x81, 127, 0, 0, 0, 0, 0, 1, 0, 0]);
    out.clear();
    close(&mut out, Some(1008), "slow");
    close(&mut out, None, "");
    assert_eq!(out, b"\x88\x06\x03\xf0slow\x88\x00");
    out.clear();
    close(&mut out, Some(1000), &"ü".repeat(100));
    assert_eq!(out.len(), 2 + 2 + 122);
}
