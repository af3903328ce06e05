//! Scans the bytes of a frame by whole words: delimiters, tags and small numbers.

use crate::fix::frame::SOH;

/// Reads a number of at most five digits: the length of something in a frame.
pub(super) fn small_number(value: &[u8]) -> Option<usize> {
    if value.is_empty() || value.len() > 5 || !value.iter().all(u8::is_ascii_digit) {
        return None;
    }
    Some(value.iter().fold(0, |number, &digit| number * 10 + (digit - b'0') as usize))
}

/// Returns the offset of the next delimiter at or after `at`; a frame ends with one. Values are
/// usually short, so a few words are checked before memchr is used.
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
    memchr::memchr(SOH, rest).map_or(bytes.len() - 1, |found| here + found)
}

/// Returns the tag at the beginning of a word and its number of digits: at most four, the first not
/// zero.
#[inline]
pub(super) fn short_tag(word: u64) -> Option<(u32, usize)> {
    // Most tags have two digits: they become numbers, and the equals sign becomes zero.
    let two = (word & 0xff_ffff) ^ 0x3d_3030;
    if (two.wrapping_add(0x7f_7676) | two) & 0x80_8080 == 0 && two & 0xff != 0 {
        let tag = ((two & 0xff) * 10 + (two >> 8)) & 0x7f;
        return Some((tag as u32, 2));
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
