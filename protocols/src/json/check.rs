//! Checks octets from outside before they are passed on or parsed: JSON, nesting, surrogates.

use serde::de::IgnoredAny;

/// Deepest nesting that is accepted. Deeper nesting is an attack on recursive readers.
pub(super) const DEPTH_MAX: usize = 64;

/// Returns whether octets are exactly one JSON value (RFC 8259), nested at most [`DEPTH_MAX`] deep
/// and without lone surrogates, so that every reader can parse them.
pub fn is_json(bytes: &[u8]) -> bool {
    let Ok(text) = std::str::from_utf8(bytes) else { return false };
    // serde_json accepts deeper nesting, and lone surrogates in ignored texts.
    depth(text) <= DEPTH_MAX
        && lone_surrogate(text).is_none()
        && serde_json::from_str::<IgnoredAny>(text).is_ok()
}

/// Returns the offset of a `\u` escape that is half of a surrogate pair without its other half.
/// Such a text has no UTF-8 (RFC 8259, 8.2), and readers make different texts of it. The rest of
/// the text need not be JSON.
pub fn lone_surrogate(text: &str) -> Option<usize> {
    let bytes = text.as_bytes();
    let mut at = 0;
    while let Some(found) = bytes[at..].iter().position(|octet| *octet == b'\\') {
        at += found;
        match Escape::of(&bytes[at..]) {
            Escape::Other => at += 2,
            Escape::Character => at += 6,
            Escape::Pair => at += 12,
            Escape::LoneSurrogate => return Some(at),
        }
        if at >= bytes.len() {
            break;
        }
    }
    None
}

/// Meaning of a backslash and the octets after it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Escape {
    /// Two octets, or not an escape.
    Other,
    /// `\u` with the number of a character.
    Character,
    /// Two of them that form one character.
    Pair,
    LoneSurrogate,
}

impl Escape {
    fn of(bytes: &[u8]) -> Escape {
        match (unit(bytes), bytes.get(6..).and_then(unit)) {
            (None, _) => Escape::Other,
            (Some(0xd800..0xdc00), Some(0xdc00..0xe000)) => Escape::Pair,
            (Some(0xd800..0xe000), _) => Escape::LoneSurrogate,
            (Some(_), _) => Escape::Character,
        }
    }
}

/// Returns the number of `\u` and four hexadecimal digits.
fn unit(bytes: &[u8]) -> Option<u32> {
    let digits = bytes.strip_prefix(b"\\u")?.get(..4)?;
    digits.iter().try_fold(0, |number, octet| Some(number * 16 + (*octet as char).to_digit(16)?))
}

/// Returns how deep brackets are nested, at least; those in texts do not count.
pub(crate) fn depth(text: &str) -> usize {
    let (mut deepest, mut depth, mut in_text, mut escaped) = (0usize, 0usize, false, false);
    for octet in text.bytes() {
        match octet {
            _ if escaped => escaped = false,
            b'\\' if in_text => escaped = true,
            b'"' => in_text = !in_text,
            b'[' | b'{' if !in_text => depth += 1,
            b']' | b'}' if !in_text => depth = depth.saturating_sub(1),
            _ => {}
        }
        deepest = deepest.max(depth);
    }
    deepest
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn valid_json_is_accepted_and_other_text_is_refused() {
        for good in [
            "0",
            "-0.5e+10",
            "true",
            "null",
            "\"\"",
            "[]",
            "{}",
            " [ 1 , {\"a\" : [ ] , \"b\":{}} ] ",
            r#""\u00e9\n""#,
            r#""\ud83d\uDE00""#,
            r#""\\ud800""#,
            r#""\uffff""#,
            "[[[]]]",
            "10",
            "1E5",
        ] {
            assert!(is_json(good.as_bytes()), "{good}");
        }
        for bad in [
            "",
            " ",
            "01",
            "-",
            "1.",
            ".5",
            "1e",
            "+1",
            "[1,]",
            "[,1]",
            "{\"a\"}",
            "{\"a\":}",
            "{a:1}",
            "{\"a\":1,}",
            "[1 2]",
            "[1",
            "]",
            "tru",
            "nul",
            "\"\\x\"",
            "\"\\u12g4\"",
            "\"a",
            r#""\ud800""#,
            r#""\uDC00""#,
            r#""\udc00\ud800""#,
            r#""\ud800\ud800\udc00""#,
            r#""\ud800\u0041""#,
            r#""\ud800x""#,
            r#"{"\udbff":1}"#,
            r#"["a\\\ud800"]"#,
            "{} {}",
            "[}",
            "{]",
            "NaN",
            "'a'",
        ] {
            assert!(!is_json(bad.as_bytes()), "{bad}");
        }
        assert!(!is_json(b"\"\xff\"") && !is_json(b"\"\x01\""));
        let nested = |depth: usize| ["[".repeat(depth), "]".repeat(depth)].concat();
        assert!(is_json(nested(DEPTH_MAX).as_bytes()) && !is_json(nested(DEPTH_MAX + 1).as_bytes()));
    }

    #[test]
    fn only_brackets_outside_of_texts_are_nested() {
        for (text, nested) in [
            ("", 0),
            ("[][]{}", 1),
            ("[{[]}]", 3),
            ("]][", 1),
            (r#"["[[{"]"#, 1),
            (r#"["]]", [[]]]"#, 3),
            (r#"["\"[[", []]"#, 2),
            (r#"["\\", [[]]]"#, 3),
            (r"\[[", 2),
        ] {
            assert_eq!(depth(text), nested, "{text}");
        }
    }

    #[test]
    fn a_lone_surrogate_is_found_at_its_offset() {
        for (text, place) in [
            ("", None),
            ("\\", None),
            ("\\u", None),
            ("\\ud8", None),
            (r"\ud800", Some(0)),
            (r"ab\ud83d\ude00\ude00", Some(14)),
            (r"\\ud800", None),
            (r"\u00e9\udfff", Some(6)),
        ] {
            assert_eq!(lone_surrogate(text), place, "{text}");
        }
    }
}
