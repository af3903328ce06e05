//! Escapes in header names and values, by version.

use std::borrow::Cow;

use super::frame::Escaping;

/// An escape that the version does not have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BadEscape;

/// Returns the unescaped text, borrowed if nothing is replaced.
pub fn unescape(text: &str, escaping: Escaping) -> Result<Cow<'_, str>, BadEscape> {
    if escaping == Escaping::None || !text.contains('\\') {
        return Ok(Cow::Borrowed(text));
    }
    let mut meant = String::with_capacity(text.len());
    let mut chars = text.chars();
    while let Some(char) = chars.next() {
        if char != '\\' {
            meant.push(char);
            continue;
        }
        meant.push(match (chars.next(), escaping) {
            (Some('n'), _) => '\n',
            (Some('c'), _) => ':',
            (Some('\\'), _) => '\\',
            (Some('r'), Escaping::V12) => '\r',
            _ => return Err(BadEscape),
        });
    }
    Ok(Cow::Owned(meant))
}

/// Returns whether the version has every escape in a line.
pub fn is_sound(line: &[u8], escaping: Escaping) -> bool {
    if escaping == Escaping::None {
        return true;
    }
    let mut rest = line;
    while let Some(at) = memchr::memchr(b'\\', rest) {
        match (rest.get(at + 1), escaping) {
            (Some(b'n' | b'c' | b'\\'), _) | (Some(b'r'), Escaping::V12) => rest = &rest[at + 2..],
            _ => return false,
        }
    }
    true
}

/// Appends an escaped header value. In 1.0 a line end cannot be written, so it becomes a space.
pub fn push(out: &mut Vec<u8>, text: &[u8], escaping: Escaping) {
    for &octet in text {
        match (octet, escaping) {
            (b'\n' | b'\r' | 0, Escaping::None) | (0, _) => out.push(b' '),
            (b'\n', _) => out.extend_from_slice(b"\\n"),
            (b'\r', Escaping::V12) => out.extend_from_slice(b"\\r"),
            (b':', Escaping::V11 | Escaping::V12) => out.extend_from_slice(b"\\c"),
            (b'\\', Escaping::V11 | Escaping::V12) => out.extend_from_slice(b"\\\\"),
            _ => out.push(octet),
        }
    }
}

/// Returns whether a text is equal escaped and unescaped in every version.
pub fn is_plain(text: &[u8]) -> bool {
    !text.iter().any(|octet| matches!(octet, b'\n' | b'\r' | b':' | b'\\' | 0))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_version_has_its_escapes() {
        for (text, escaping, meant) in [
            (r"a\nb\cc\\d", Escaping::V11, Ok("a\nb:c\\d")),
            (r"a\rb", Escaping::V12, Ok("a\rb")),
            (r"a\rb", Escaping::V11, Err(BadEscape)),
            (r"a\tb", Escaping::V12, Err(BadEscape)),
            (r"a\tb", Escaping::None, Ok(r"a\tb")),
            (r"a\", Escaping::V12, Err(BadEscape)),
            (r"\\n", Escaping::V12, Ok(r"\n")),
        ] {
            assert_eq!(unescape(text, escaping), meant.map(Cow::Borrowed), "{text}");
            assert_eq!(is_sound(text.as_bytes(), escaping), meant.is_ok(), "{text}");
        }
    }

    #[test]
    fn what_is_escaped_is_read_as_it_was_meant() {
        for escaping in [Escaping::V11, Escaping::V12] {
            for text in ["", "plain", "a:b\\c\nd", "\\", "ü:€"] {
                let mut out = Vec::new();
                push(&mut out, text.as_bytes(), escaping);
                assert_eq!(unescape(std::str::from_utf8(&out).unwrap(), escaping).unwrap(), text);
                assert!(!out.contains(&b'\n'));
            }
        }
        let mut out = Vec::new();
        push(&mut out, b"a\nb:c\\d\0", Escaping::None);
        assert_eq!(out, b"a b:c\\d ");
        assert!(is_plain(b"tick.42") && !is_plain(b"a:b"));
    }
}
