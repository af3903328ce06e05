//! Any bytes into the receiving side of a WebSocket: no panic, the same result wherever they are
//! cut, and the result of a naive reader that has all of them at once.

use pitlane_protocols::websocket::{MESSAGE_BYTES_MAX, Receiver, WebSocketState, code};

/// Result of a stream.
#[derive(Debug, Default, PartialEq, Eq)]
struct ReceivedStream {
    payload: Vec<u8>,
    /// Payload of the last ping.
    ping: Option<Vec<u8>>,
    closing: Option<Option<u16>>,
}

/// Receives a stream; the first byte chooses where it is cut.
pub fn receive(bytes: &[u8]) {
    let Some((&choice, stream)) = bytes.split_first() else { return };
    let expected = naive(stream);
    for len in [stream.len().max(1), 1, 2 + choice as usize] {
        let mut received = cut(stream, len);
        if expected.closing == Some(Some(code::NOT_UTF8)) {
            // How much of an invalid text was received before its error depends on the cut; it is
            // never more than there was.
            assert!(expected.payload.starts_with(&received.payload), "cut every {len} bytes");
            received.payload.clone_from(&expected.payload);
        }
        assert_eq!(received, expected, "cut every {len} bytes");
    }
}

fn cut(stream: &[u8], len: usize) -> ReceivedStream {
    let (mut receiver, mut received) = (Receiver::default(), ReceivedStream::default());
    for piece in stream.chunks(len) {
        let mut piece = piece.to_vec();
        let state = receiver.handle_bytes(&mut piece, |payload| received.payload.extend_from_slice(payload));
        let mut pong = Vec::new();
        receiver.poll_pong(&mut pong);
        if let [0x8a, count, payload @ ..] = &pong[..] {
            assert_eq!(*count as usize, payload.len());
            received.ping = Some(payload.to_vec());
        }
        if let WebSocketState::Closing(code) = state {
            received.closing = Some(code);
            break;
        }
    }
    received
}

/// The header of a frame.
struct FuzzedHead {
    opcode: u8,
    is_last: bool,
    length: u64,
    mask: [u8; 4],
    /// Bytes of the header itself.
    bytes: usize,
}

/// Reads frame by frame, as RFC 6455 defines them.
fn naive(mut rest: &[u8]) -> ReceivedStream {
    let mut received = ReceivedStream::default();
    // The message in progress: whether it is text, its declared length so far, and its payload.
    let mut message: Option<(bool, u64, Vec<u8>)> = None;
    loop {
        let head = match head(rest, message.is_some()) {
            Ok(Some(head)) => head,
            Ok(None) => return received,
            Err(code) => return ReceivedStream { closing: Some(Some(code)), ..received },
        };
        rest = &rest[head.bytes..];
        let count = usize::try_from(head.length).unwrap_or(usize::MAX).min(rest.len());
        let is_whole = count as u64 == head.length;
        let masked = rest[..count].iter().zip(head.mask.iter().cycle());
        let payload: Vec<u8> = masked.map(|(byte, mask)| byte ^ mask).collect();
        rest = &rest[count..];
        match head.opcode {
            0..=2 => {
                let (is_text, length, text) = message.get_or_insert((head.opcode == 1, 0, Vec::new()));
                *length += head.length;
                if *length > MESSAGE_BYTES_MAX {
                    return ReceivedStream { closing: Some(Some(code::TOO_BIG)), ..received };
                }
                received.payload.extend_from_slice(&payload);
                text.extend_from_slice(&payload);
                let is_over = head.is_last && is_whole;
                let fault = std::str::from_utf8(text).err();
                if *is_text && fault.is_some_and(|fault| fault.error_len().is_some() || is_over) {
                    return ReceivedStream { closing: Some(Some(code::NOT_UTF8)), ..received };
                }
                if is_over {
                    message = None;
                }
            }
            8 if is_whole => return ReceivedStream { closing: Some(answer(&payload)), ..received },
            9 if is_whole => received.ping = Some(payload),
            _ => {}
        }
        if !is_whole {
            return received;
        }
    }
}

/// Reads a header. `None`: it is incomplete. The error is the code with which the connection ends.
fn head(bytes: &[u8], within_message: bool) -> Result<Option<FuzzedHead>, u16> {
    let [first, second, rest @ ..] = bytes else { return Ok(None) };
    let (opcode, is_last, short) = (first & 15, first & 128 != 0, second & 127);
    let fits = match opcode {
        0..=2 => (opcode == 0) == within_message,
        8..=10 => is_last && short <= 125,
        _ => false,
    };
    if !fits || first & 0x70 != 0 || second & 128 == 0 {
        return Err(code::PROTOCOL);
    }
    let (extra, least) = match short {
        126 => (2, 126),
        127 => (8, 65_536),
        _ => (0, 0),
    };
    let Some(mask) = rest.get(extra..extra + 4) else { return Ok(None) };
    let long = rest[..extra].iter().fold(0u64, |sum, byte| sum << 8 | u64::from(*byte));
    let length = if extra == 0 { u64::from(short) } else { long };
    if length < least || length >> 63 != 0 {
        return Err(code::PROTOCOL);
    }
    let mask = [mask[0], mask[1], mask[2], mask[3]];
    Ok(Some(FuzzedHead { opcode, is_last, length, mask, bytes: 6 + extra }))
}

/// Returns the code that answers a close.
fn answer(payload: &[u8]) -> Option<u16> {
    let [high, low, reason @ ..] = payload else {
        return (!payload.is_empty()).then_some(code::PROTOCOL);
    };
    let number = u16::from_be_bytes([*high, *low]);
    let is_used = [1000, 1001, 1002, 1003, 1007, 1008, 1009, 1010, 1011, 1012, 1013, 1014].contains(&number);
    match std::str::from_utf8(reason) {
        _ if !is_used && !(3000..5000).contains(&number) => Some(code::PROTOCOL),
        Err(_) => Some(code::NOT_UTF8),
        Ok(_) => Some(number),
    }
}
