//! Whether octets from outside are JSON. Nothing is built; who passes them on knows that others can read them.

/// Deeper nesting is an attack on whoever reads it with recursion.
pub const DEPTH_MAX: usize = 64;

/// Whether octets are exactly one JSON value (RFC 8259) nested at most [`DEPTH_MAX`] deep.
pub fn is_json(bytes: &[u8]) -> bool {
    std::str::from_utf8(bytes).is_ok() && Check { rest: bytes }.whole().is_some()
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
}
