//! Scans the bytes of a frame by whole words: delimiters, tags and small numbers.

use crate::fix::frame::SOH;

/// Reads a number of at most five digits: the length of something in a frame.
pub(super) fn small_number(value: &[u8]) -> Option<usize> {
    if !(1..=5).contains(&value.len()) || !value.iter().all(u8::is_ascii_digit) {
        return None;
    }
    Some(value.iter().fold(0, |number, &digit| number * 10 + (digit - b'0') as usize))
}

/// Returns the offset of the next delimiter at or after `at`, or the end; a frame ends with one.
/// Values are usually short, so a few words are checked before memchr is used.
#[inline]
pub(in crate::fix) fn find_soh(bytes: &[u8], at: usize) -> usize {
    let mut here = at;
    for _ in 0..4 {
        let Some(word) = bytes.get(here..).and_then(|rest| rest.first_chunk::<8>()) else { break };
        if let Some(found) = first_byte(u64::from_le_bytes(*word), SOH) {
            return here + found as usize;
        }
        here += 8;
    }
    let rest = bytes.get(here..).unwrap_or_default();
    here + memchr::memchr(SOH, rest).unwrap_or(rest.len())
}

/// Returns the tag at the beginning of a word and its number of digits: at most four, the first not
/// zero.
#[inline]
pub(super) fn short_tag(word: u64) -> Option<(u32, usize)> {
    // Most tags have two digits.
    if let Some(tag) = tag_of_two(word) {
        return Some((tag, 2));
    }
    // Other tags are read in one word, without a branch for each digit.
    let digits = first_byte(word, b'=')?;
    if digits == 0 || digits > 4 {
        return None;
    }
    // The digits are in the upper bytes, zeros below.
    let text = ((word & 0xffff_ffff) as u32) << (32 - 8 * digits);
    let used = u32::MAX << (32 - 8 * digits);
    let values = (text ^ 0x3030_3030) & used;
    let are_digits = (values.wrapping_add(0x7676_7676) | values) & 0x8080_8080 == 0;
    if !are_digits || (word & 0xff) as u8 == b'0' {
        return None;
    }
    let pairs = (values * 10 + (values >> 8)) & 0x00ff_00ff;
    Some(((pairs * 100 + (pairs >> 16)) & 0xffff, digits as usize))
}

/// Returns the tag of two digits at the beginning of a word, the first not zero.
#[inline(always)]
fn tag_of_two(word: u64) -> Option<u32> {
    // The digits become numbers, and the equals sign becomes zero. Later bytes change nothing.
    let two = word ^ 0x3d_3030;
    let is_tag = (two.wrapping_add(0x7f_7676) | two) & 0x80_8080 == 0 && two & 0xff != 0;
    is_tag.then_some((((two & 0xff) * 10 + (two >> 8)) & 0x7f) as u32)
}

/// Returns the index of the first such byte in a word.
#[inline]
pub(super) fn first_byte(word: u64, byte: u8) -> Option<u32> {
    const ONES: u64 = 0x0101_0101_0101_0101;
    const HIGHS: u64 = 0x8080_8080_8080_8080;
    // The searched byte becomes zero, and the lowest zero byte gets its highest bit set.
    let zeroed = word ^ (ONES * byte as u64);
    let found = zeroed.wrapping_sub(ONES) & !zeroed & HIGHS;
    (found != 0).then(|| found.trailing_zeros() / 8)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Reads the tag at the beginning of a text byte by byte.
    fn read_plainly(text: &[u8; 8]) -> Option<(u32, usize)> {
        let digits = text.iter().position(|&byte| byte == b'=')?;
        let is_tag = (1..=4).contains(&digits) && text[0] != b'0';
        let tag = std::str::from_utf8(&text[..digits]).ok()?.parse().ok()?;
        is_tag.then_some((tag, digits))
    }

    fn assert_reads_tag(text: [u8; 8]) {
        let (word, expected) = (u64::from_le_bytes(text), read_plainly(&text));
        assert_eq!(short_tag(word), expected, "{}", text.escape_ascii());
        let of_two = expected.filter(|(_, digits)| *digits == 2).map(|(tag, _)| tag);
        assert_eq!(tag_of_two(word), of_two, "{}", text.escape_ascii());
    }

    #[test]
    fn short_tags_are_read_as_digit_by_digit() {
        // The neighbours of the digits, and bytes whose lower bits are those of a digit.
        const BYTES: [u8; 9] = [b'0', b'1', b'9', b'=', b'/', b':', SOH, 0xb1, 0xff];
        for mut number in 0..BYTES.len().pow(5) {
            let mut text = [b'='; 8];
            for byte in &mut text[..5] {
                *byte = BYTES[number % BYTES.len()];
                number /= BYTES.len();
            }
            assert_reads_tag(text);
        }
        for tag in 1..10_000 {
            let text = format!("{tag}=abcdefg").into_bytes();
            assert_reads_tag(*text.first_chunk().unwrap());
        }
    }

    #[test]
    fn the_first_of_several_bytes_is_found() {
        for (first, second) in (0..8).flat_map(|first| (first..8).map(move |second| (first, second))) {
            for (byte, other) in [(b'=', b'<'), (SOH, 2), (SOH, 0)] {
                let mut text = [other; 8];
                (text[first], text[second]) = (byte, byte);
                assert_eq!(first_byte(u64::from_le_bytes(text), byte), Some(first as u32), "{text:?}");
            }
        }
        assert_eq!(first_byte(u64::from_le_bytes(*b"12345678"), b'='), None);
    }

    #[test]
    fn a_length_has_up_to_five_digits() {
        for (text, length) in [("0", 0), ("7", 7), ("12", 12), ("00012", 12), ("99999", 99_999)] {
            assert_eq!(small_number(text.as_bytes()), Some(length), "{text}");
        }
        for text in ["", "100000", "000012", "-1", "1x", "x1", "1 "] {
            assert_eq!(small_number(text.as_bytes()), None, "{text}");
        }
    }
}
