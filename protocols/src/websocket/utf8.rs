//! Checks that a stream of bytes is UTF-8, and reports the first byte that cannot be.

/// State between bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Utf8 {
    /// Continuation bytes still to come.
    left: u8,
    /// Bounds of the next byte if they are narrower than usual; both zero otherwise.
    low: u8,
    high: u8,
}

impl Utf8 {
    /// Handles bytes; returns false if they cannot be UTF-8, whatever follows.
    pub fn take(&mut self, bytes: &[u8]) -> bool {
        let mut rest = bytes;
        while let Some((&byte, behind)) = rest.split_first() {
            if self.left == 0 && byte < 0x80 {
                // The usual case: a whole run at once.
                let run = rest.iter().position(|byte| *byte >= 0x80).unwrap_or(rest.len());
                rest = &rest[run..];
                continue;
            }
            if !self.step(byte) {
                return false;
            }
            rest = behind;
        }
        true
    }

    /// Returns whether a text may end here.
    pub fn is_complete(&self) -> bool {
        self.left == 0
    }

    fn step(&mut self, byte: u8) -> bool {
        if self.left > 0 {
            let (low, high) = if self.high == 0 { (0x80, 0xbf) } else { (self.low, self.high) };
            (self.left, self.low, self.high) = (self.left - 1, 0, 0);
            return (low..=high).contains(&byte);
        }
        // Unicode, table 3-7: second bytes that the first byte permits.
        (self.left, self.low, self.high) = match byte {
            0xc2..=0xdf => (1, 0, 0),
            0xe0 => (2, 0xa0, 0xbf),
            0xed => (2, 0x80, 0x9f),
            0xe1..=0xef => (2, 0, 0),
            0xf0 => (3, 0x90, 0xbf),
            0xf1..=0xf3 => (3, 0, 0),
            0xf4 => (3, 0x80, 0x8f),
            _ => return false,
        };
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Checks byte by byte and at once that the result agrees with the standard library.
    fn check(bytes: &[u8]) {
        let expected = std::str::from_utf8(bytes).is_ok();
        for piece in [1, 2, bytes.len().max(1)] {
            let mut utf8 = Utf8::default();
            let is_so = bytes.chunks(piece).all(|piece| utf8.take(piece)) && utf8.is_complete();
            assert_eq!(is_so, expected, "{bytes:x?}");
        }
    }

    #[test]
    fn every_pair_and_first_three_bytes_agree_with_the_standard_library() {
        for first in 0..=255u8 {
            for second in 0..=255u8 {
                check(&[first, second]);
                for third in [0x00, 0x7f, 0x80, 0xbf, 0xc0] {
                    check(&[first, second, third]);
                    check(&[first, second, third, 0x80]);
                    check(&[first, second, third, 0xff]);
                }
            }
        }
    }

    #[test]
    fn an_impossible_byte_is_reported_at_once() {
        assert!(!Utf8::default().take(&[0x80]), "no byte before it");
        let mut utf8 = Utf8::default();
        assert!(utf8.take("κόσμε".as_bytes()));
        assert!(utf8.take(&[0xf4]));
        assert!(!utf8.take(&[0x90]), "beyond the last character");
    }
}
