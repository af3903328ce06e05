//! Whether octets from outside are JSON. Nothing is built; who passes them on knows that others can read them.

/// Deeper nesting is an attack on whoever reads it with recursion.
pub const DEPTH_MAX: usize = 64;

/// Whether octets are exactly one JSON value (RFC 8259) nested at most [`DEPTH_MAX`] deep.
pub fn is_json(bytes: &[u8]) -> bool {
    let Ok(text) = std::str::from_utf8(bytes) else { return false };
    Check { rest: bytes }.whole().is_some() && lone_surrogate(text).is_none()
}

/// Where a `\u` escape of a text is half of a surrogate pair without its other half. Such a text has no UTF-8 (RFC 8259, 8.2), and readers
/// make different texts of it. None if there is none; whether the rest is JSON is not looked at.
pub fn lone_surrogate(text: &str) -> Option<usize> {
    let bytes = text.as_bytes();
    let mut at = 0;
    while let Some(found) = bytes[at..].iter().position(|octet| *octet == b'\\') {
        at += found;
        match Escape::of(&bytes[at..]) {
            Escape::Other => at += 2,
            Escape::Letter => at += 6,
            Escape::Pair => at += 12,
            Escape::LoneSurrogate => return Some(at),
        }
        if at >= bytes.len() {
            break;
        }
    }
    None
}

/// What a backslash and the octets behind it stand for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Escape {
    /// Two octets, or what is no escape at all.
    Other,
    /// `\u` with the number of a letter.
    Letter,
    /// Two of them, which are one letter together.
    Pair,
    LoneSurrogate,
}

impl Escape {
    fn of(bytes: &[u8]) -> Escape {
        match (unit(bytes), bytes.get(6..).and_then(unit)) {
            (None, _) => Escape::Other,
            (Some(0xd800..0xdc00), Some(0xdc00..0xe000)) => Escape::Pair,
            (Some(0xd800..0xe000), _) => Escape::LoneSurrogate,
            (Some(_), _) => Escape::Letter,
        }
    }
}

/// The number of `\u` and four hexadecimal digits.
fn unit(bytes: &[u8]) -> Option<u32> {
    let digits = bytes.strip_prefix(b"\\u")?.get(..4)?;
    digits.iter().try_fold(0, |number, octet| Some(number * 16 + (*octet as char).to_digit(16)?))
}

/// A walk over the octets with a stack of open brackets in place of recursion.
struct Check<'a> {
    rest: &'a [u8],
}

impl Check<'_> {
    fn whole(mut self) -> Option<()> {
        let mut open = [0u8; DEPTH_MAX];
        let mut depth = 0;
        loop {
            // A value stands here, unless a bracket just opened is closed again at once.
            self.space();
            match self.next()? {
                bracket @ (b'{' | b'[') => {
                    *open.get_mut(depth)? = bracket;
                    depth += 1;
                    self.space();
                    if self.rest.first() != Some(&closing(bracket)) {
                        if bracket == b'{' {
                            self.name()?;
                        }
                        continue;
                    }
                }
                b'"' => self.string()?,
                first @ (b'-' | b'0'..=b'9') => self.number(first)?,
                b't' => self.word(b"rue")?,
                b'f' => self.word(b"alse")?,
                b'n' => self.word(b"ull")?,
                _ => return None,
            }
            // Behind a value: brackets close, until a comma leads on.
            loop {
                self.space();
                if depth == 0 {
                    return self.rest.is_empty().then_some(());
                }
                match self.next()? {
                    b',' if open[depth - 1] == b'{' => {
                        self.space();
                        self.name()?;
                        break;
                    }
                    b',' => break,
                    octet if octet == closing(open[depth - 1]) => depth -= 1,
                    _ => return None,
                }
            }
        }
    }

    fn next(&mut self) -> Option<u8> {
        let (first, rest) = self.rest.split_first()?;
        self.rest = rest;
        Some(*first)
    }

    fn space(&mut self) {
        while let [b' ' | b'\t' | b'\n' | b'\r', rest @ ..] = self.rest {
            self.rest = rest;
        }
    }

    /// A string and the colon behind it.
    fn name(&mut self) -> Option<()> {
        (self.next()? == b'"').then_some(())?;
        self.string()?;
        self.space();
        (self.next()? == b':').then_some(())
    }

    fn string(&mut self) -> Option<()> {
        loop {
            match self.next()? {
                b'"' => return Some(()),
                0..=0x1f => return None,
                b'\\' => match self.next()? {
                    b'"' | b'\\' | b'/' | b'b' | b'f' | b'n' | b'r' | b't' => {}
                    b'u' => {
                        for _ in 0..4 {
                            self.next()?.is_ascii_hexdigit().then_some(())?;
                        }
                    }
                    _ => return None,
                },
                _ => {}
            }
        }
    }

    fn number(&mut self, first: u8) -> Option<()> {
        let first = if first == b'-' { self.next()? } else { first };
        match first {
            b'0' => {}
            b'1'..=b'9' => {
                self.digits();
            }
            _ => return None,
        }
        if self.rest.first() == Some(&b'.') {
            self.next();
            (self.digits() > 0).then_some(())?;
        }
        if let Some(b'e' | b'E') = self.rest.first() {
            self.next();
            if let Some(b'+' | b'-') = self.rest.first() {
                self.next();
            }
            (self.digits() > 0).then_some(())?;
        }
        Some(())
    }

    fn digits(&mut self) -> usize {
        let count = self.rest.iter().take_while(|octet| octet.is_ascii_digit()).count();
        self.rest = &self.rest[count..];
        count
    }

    fn word(&mut self, word: &[u8]) -> Option<()> {
        self.rest = self.rest.strip_prefix(word)?;
        Some(())
    }
}

fn closing(bracket: u8) -> u8 {
    if bracket == b'{' { b'}' } else { b']' }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn json_is_told_from_what_is_not() {
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
    fn half_a_pair_is_found_at_its_place() {
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
