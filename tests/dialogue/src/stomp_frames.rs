//! Bytes of dialogues as text, and frames of a broker as lines.

/// Returns the bytes of a frame that a dialogue writes as `CONNECT|accept-version:1.2||body`, with
/// a NUL after it.
pub fn frame(text: &str) -> Vec<u8> {
    let mut bytes = raw(&text.replace('|', "\n"));
    bytes.push(0);
    bytes
}

/// Returns bytes written with `\n`, `\r`, `\0`, `\\`, `\xff`, and `{x*8192}` for a repeated
/// character.
pub fn raw(text: &str) -> Vec<u8> {
    let mut bytes = Vec::new();
    let mut rest = text;
    while let Some(first) = rest.chars().next() {
        if let Some((octets, behind)) = repeated(rest) {
            bytes.extend(octets);
            rest = behind;
            continue;
        }
        let escape = rest.strip_prefix('\\').and_then(|behind| behind.chars().next());
        let (octet, len) = match escape {
            Some('n') => (Some(b'\n'), 2),
            Some('r') => (Some(b'\r'), 2),
            Some('0') => (Some(0), 2),
            Some('\\') => (Some(b'\\'), 2),
            Some('x') => (u8::from_str_radix(&rest[2..4], 16).ok(), 4),
            _ => (None, first.len_utf8()),
        };
        match octet {
            Some(octet) => bytes.push(octet),
            None => bytes.extend_from_slice(&rest.as_bytes()[..len]),
        }
        rest = &rest[len..];
    }
    bytes
}

/// Reads `{x*12}` or `{ab|*3}`: a repeated text.
fn repeated(text: &str) -> Option<(Vec<u8>, &str)> {
    let (inside, behind) = text.strip_prefix('{')?.split_once('}')?;
    let (what, count) = inside.rsplit_once('*')?;
    let count: usize = count.parse().ok()?;
    Some((raw(what).repeat(count), behind))
}

/// Removes the complete frames from a broker's output, and returns each as a line:
/// `RECEIPT|receipt-id:1||`. A heart-beat is `beat`.
pub fn frames(wire: &mut Vec<u8>) -> Vec<String> {
    let mut found = Vec::new();
    loop {
        if wire.first() == Some(&b'\n') {
            wire.remove(0);
            found.push("beat".to_string());
        } else if let Some(end) = wire.iter().position(|octet| *octet == 0) {
            let text = String::from_utf8(wire[..end].to_vec()).expect("we write UTF-8");
            found.push(text.replace('\n', "|"));
            wire.drain(..=end);
        } else {
            return found;
        }
    }
}

/// Returns whether a text matches a pattern, in which `…` stands for anything.
pub fn is_like(pattern: &str, text: &str) -> bool {
    let parts: Vec<&str> = pattern.split('…').collect();
    let [first, middle @ .., last] = &parts[..] else { return pattern == text };
    let Some(mut rest) = text.strip_prefix(first) else { return false };
    for part in middle {
        let Some(at) = rest.find(part) else { return false };
        rest = &rest[at + part.len()..];
    }
    rest.ends_with(last)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_are_read_as_written() {
        assert_eq!(frame(r"ACK|id:a\\nb||{x*3}\xff"), b"ACK\nid:a\\nb\n\nxxx\xff\0");
        assert_eq!(raw(r#"{"a":1}"#), br#"{"a":1}"#);
        let mut wire = b"\nRECEIPT\nreceipt-id:1\n\n\0ERR".to_vec();
        assert_eq!(frames(&mut wire), ["beat", "RECEIPT|receipt-id:1||"]);
        assert_eq!(wire, b"ERR");
        assert!(is_like("a…c…", "abcd") && is_like("abc", "abc") && !is_like("a…c", "abcd"));
    }
}
