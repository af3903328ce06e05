//! FIX messages as bytes: framing, checksum, and fields by tag.

use std::collections::BTreeMap;

/// Tags and values of a message. This client needs no repeating groups.
pub type Fields = BTreeMap<u32, String>;

const SOH: u8 = 1;
/// Longest message that is accepted, in bytes: far above any report.
const MESSAGE_BYTES_MAX: usize = 65_536;

/// Returns the message with these fields, which are `tag=value|…`.
pub fn frame(fields: &str) -> String {
    let fields = fields.replace('|', "\x01");
    let message = format!("8=FIX.4.4\x019={}\x01{fields}", fields.len());
    format!("{message}10={:03}\x01", sum(message.as_bytes()))
}

/// Takes a complete message from the received bytes; `None` until there is one. A message ends
/// after the field 10. No value contains SOH, so the search finds no other place.
pub fn take(received: &mut Vec<u8>) -> Result<Option<Fields>, String> {
    let Some(at) = received.windows(4).position(|bytes| bytes == b"\x0110=") else {
        let is_too_long = received.len() > MESSAGE_BYTES_MAX;
        return if is_too_long { Err("a message without an end".into()) } else { Ok(None) };
    };
    let end = at + "\x0110=000\x01".len();
    if received.len() < end {
        return Ok(None);
    }
    let message: Vec<u8> = received.drain(..end).collect();
    let mut fields = Fields::new();
    for field in message.split(|byte| *byte == SOH).filter(|field| !field.is_empty()) {
        let field = String::from_utf8_lossy(field);
        let pair =
            field.split_once('=').and_then(|(tag, value)| Some((tag.parse().ok()?, value.to_string())));
        let (tag, value) = pair.ok_or_else(|| format!("{field} is not a field"))?;
        fields.insert(tag, value);
    }
    if text(&fields, 10).parse() != Ok(sum(&message[..at + 1])) {
        return Err("a message with a wrong checksum".into());
    }
    Ok(Some(fields))
}

/// Returns the value of a field; empty if it is absent.
pub fn text(fields: &Fields, tag: u32) -> &str {
    fields.get(&tag).map_or("", String::as_str)
}

fn sum(bytes: &[u8]) -> u32 {
    bytes.iter().copied().map(u32::from).sum::<u32>() % 256
}

#[test]
fn a_message_is_taken_once_it_is_complete_and_intact() {
    let sent = frame("35=0|112=hello|");
    let mut received = Vec::new();
    for byte in &sent.as_bytes()[..sent.len() - 1] {
        received.push(*byte);
        assert_eq!(take(&mut received), Ok(None));
    }
    received.extend_from_slice(b"\x018=");
    let fields = take(&mut received).unwrap().unwrap();
    assert_eq!((text(&fields, 112), received.as_slice()), ("hello", b"8=".as_slice()));
    assert!(take(&mut sent.replace("hello", "hallo").into_bytes()).is_err());
}
