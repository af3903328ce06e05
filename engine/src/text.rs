//! Conversion of numbers, decimals and times from and to ASCII. Everything here is exact: a text
//! either is the value, or it is refused with the reason. Nothing allocates.

use std::fmt;

/// Reason why a text is not a valid value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TextError {
    Empty,
    /// A character that is not allowed there.
    Character,
    /// More decimals than the scale holds (and not all of them zero).
    TooManyDecimals,
    /// Outside what the type can hold.
    Range,
    TooLong,
}

impl fmt::Display for TextError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            TextError::Empty => "empty",
            TextError::Character => "a character that does not belong there",
            TextError::TooManyDecimals => "too many decimals",
            TextError::Range => "out of range",
            TextError::TooLong => "too long",
        })
    }
}

impl std::error::Error for TextError {}

/// Decimals in every scaled number of the platform.
pub const DECIMALS: usize = 8;
/// One, scaled.
pub const SCALE: i64 = 100_000_000;
/// Longest text of a whole number.
pub const U64_BYTES_MAX: usize = 20;
/// Longest text of a scaled number: sign, eleven digits, point, eight digits.
pub const DECIMAL_BYTES_MAX: usize = 21;

pub fn parse_u64(bytes: &[u8]) -> Result<u64, TextError> {
    if bytes.is_empty() {
        return Err(TextError::Empty);
    }
    let mut value = Some(0u64);
    for &byte in bytes {
        let digit = byte.wrapping_sub(b'0');
        if digit > 9 {
            return Err(TextError::Character);
        }
        value = match value {
            // A number with fewer digits than the largest one cannot overflow.
            Some(value) if bytes.len() < U64_BYTES_MAX => Some(value * 10 + digit as u64),
            Some(value) => value.checked_mul(10).and_then(|value| value.checked_add(digit as u64)),
            None => None,
        };
    }
    value.ok_or(TextError::Range)
}

/// Returns a number below 10⁸ in decimal, first digit in the lowest byte, zero bytes after the
/// last; `None` if it is larger.
#[inline]
pub fn digits_of(number: u64) -> Option<u64> {
    let digits = eight_digits(number)?;
    let leading = (digits.trailing_zeros() / 8).min(7) * 8;
    Some((digits | ASCII_ZEROS) >> leading)
}

/// Returns the eight digits of a number below 10⁸ as numbers, first digit in the lowest byte;
/// `None` if it is larger. All are computed at once, in the lanes of one word.
#[inline]
fn eight_digits(number: u64) -> Option<u64> {
    if number >= 100_000_000 {
        return None;
    }
    // Two numbers of four digits, four of two, eight of one. The products are exact divisions in
    // their ranges.
    let fours = (number / 10_000) | ((number % 10_000) << 32);
    let hundreds = (fours * 10_486) >> 20 & 0x0000_007f_0000_007f;
    let twos = hundreds | (fours - hundreds * 100) << 16;
    let tens = (twos * 103) >> 10 & 0x000f_000f_000f_000f;
    Some(tens | (twos - tens * 10) << 8)
}

/// Converts digits to their characters.
const ASCII_ZEROS: u64 = 0x3030_3030_3030_3030;

/// Parses eight digits; `None` if one of them is not a digit. All are read at once, in the lanes of
/// one word.
#[inline]
pub fn parse_eight(text: &[u8; 8]) -> Option<u32> {
    let digits = u64::from_le_bytes(*text) ^ ASCII_ZEROS;
    if !are_digits(digits) {
        return None;
    }
    Some(number_of(digits))
}

/// Parses a time of day such as `08:00:59`; `None` if it has another form.
#[inline]
pub fn parse_clock(text: &[u8; 8]) -> Option<[u32; 3]> {
    const COLONS: u64 = 0x0000_ff00_00ff_0000;
    // A valid character, including a colon, becomes a digit.
    let digits = u64::from_le_bytes(*text) ^ u64::from_le_bytes(*b"00:00:00");
    if !are_digits(digits) || digits & COLONS != 0 {
        return None;
    }
    let two = |at: u32| (digits >> at & 0xff) as u32 * 10 + (digits >> (at + 8) & 0xff) as u32;
    Some([two(0), two(24), two(48)])
}

/// Returns whether every byte of a word is a printable character other than space.
#[inline]
pub fn are_graphic(word: u64) -> bool {
    let (below, above) = (word.wrapping_add(0x5f5f_5f5f_5f5f_5f5f), word.wrapping_add(0x0101_0101_0101_0101));
    // Characters from `!` on carry into the highest bit, and so does the one after `~`; non-ASCII
    // bytes have it already.
    (word | !below | above) & 0x8080_8080_8080_8080 == 0
}

/// Returns whether every byte of a word is below ten.
#[inline]
fn are_digits(word: u64) -> bool {
    // Ten and more carry into the highest bit, or have it already.
    (word.wrapping_add(0x7676_7676_7676_7676) | word) & 0x8080_8080_8080_8080 == 0
}

/// Returns eight hexadecimal digits, all computed at once, in the lanes of one word.
#[inline]
pub fn hex_of(number: u32) -> [u8; 8] {
    let mut digits = number as u64;
    digits = (digits | digits << 16) & 0x0000_ffff_0000_ffff;
    digits = (digits | digits << 8) & 0x00ff_00ff_00ff_00ff;
    digits = (digits | digits << 4) & 0x0f0f_0f0f_0f0f_0f0f;
    // A digit of ten and more carries when six is added; letters begin 39 places after where digits
    // would continue.
    let letters = (digits + 0x0606_0606_0606_0606) >> 4 & 0x0101_0101_0101_0101;
    (digits + ASCII_ZEROS + letters * 39).to_be_bytes()
}

/// Writes a number in decimal and returns its length. `out` must hold 20 bytes, or the number must
/// be known to fit. The first eight bytes of `out` may be overwritten.
#[inline]
pub fn write_u64(value: u64, out: &mut [u8]) -> usize {
    if value < 10 {
        out[0] = b'0' + (value & 0xf) as u8;
        return 1;
    }
    match (digits_of(value), out.first_chunk_mut()) {
        (Some(digits), Some(place)) => {
            *place = digits.to_le_bytes();
            8 - digits.leading_zeros() as usize / 8
        }
        _ => write_digits(value, out),
    }
}

/// Writes digit by digit.
fn write_digits(mut value: u64, out: &mut [u8]) -> usize {
    let len = value.checked_ilog10().map_or(1, |log| log as usize + 1);
    for place in out[..len].iter_mut().rev() {
        *place = b'0' + (value % 10) as u8;
        value /= 10;
    }
    len
}

/// Parses the number at the beginning of a text and returns its length: the fast path of
/// [`parse_u64`] where numbers follow each other and finding the end of one would need a search
/// first. `None`: it is no number, has more than nineteen digits, or is so near the end of the text
/// that it cannot be read in whole words.
#[inline]
pub fn u64_ahead(bytes: &[u8]) -> Option<(u64, usize)> {
    let (mut value, mut length) = (0, 0);
    for digits_max in [8, 8, 3] {
        let (digits, count) = digits_ahead(bytes.get(length..)?)?;
        if count > digits_max {
            return None;
        }
        if count > 0 {
            value = value * TENS[count] as u64 + number_of(digits << (64 - 8 * count)) as u64;
            length += count;
        }
        if count < 8 {
            break;
        }
    }
    (length > 0).then_some((value, length))
}

/// Parses the decimal at the beginning of a text, in units of 10⁻⁸, and returns its length: the
/// fast path of [`parse_scaled`] in the same manner. It also returns `None` for a decimal with a
/// sign, or with more than eight digits on either side of its point.
#[inline]
pub fn scaled_ahead(bytes: &[u8]) -> Option<(i64, usize)> {
    let (digits, count) = digits_ahead(bytes)?;
    if count == 0 {
        return None;
    }
    let whole = number_of(digits << (64 - 8 * count)) as i64 * SCALE;
    match bytes.get(count) {
        Some(b'.') => {
            let (digits, decimals) = digits_ahead(bytes.get(count + 1..)?)?;
            let is_longer = bytes.get(count + 1 + decimals).is_some_and(u8::is_ascii_digit);
            // Clears the bytes after the last digit, so that zeros follow it.
            let kept = if decimals == 8 { digits } else { digits & ((1 << (8 * decimals)) - 1) };
            (!is_longer).then(|| (whole + number_of(kept) as i64, count + 1 + decimals))
        }
        Some(byte) if byte.is_ascii_digit() => None,
        _ => Some((whole, count)),
    }
}

/// Returns the next eight bytes as digits, the first in the lowest byte, and the number of leading
/// digits among them.
#[inline]
fn digits_ahead(bytes: &[u8]) -> Option<(u64, usize)> {
    let digits = u64::from_le_bytes(*bytes.first_chunk()?) ^ ASCII_ZEROS;
    // None of the numbers 0 to 9 reaches the highest bit when 118 is added; after the first byte
    // that does, the effect of a carry does not matter.
    let others = (digits | digits.wrapping_add(0x7676_7676_7676_7676)) & 0x8080_8080_8080_8080;
    Some((digits, others.trailing_zeros() as usize / 8))
}

/// Converts eight digits, the first in the lowest byte, to a number: pairs, fours and eights are
/// computed at once, in the lanes of one word.
#[inline]
fn number_of(digits: u64) -> u32 {
    let pairs = (digits * 10 + (digits >> 8)) & 0x00ff_00ff_00ff_00ff;
    let fours = (pairs * 100 + (pairs >> 16)) & 0x0000_ffff_0000_ffff;
    ((fours * 10_000 + (fours >> 32)) & 0xffff_ffff) as u32
}

/// Powers of ten.
const TENS: [i64; DECIMALS + 1] = [1, 10, 100, 1_000, 10_000, 100_000, 1_000_000, 10_000_000, SCALE];

/// Parses a decimal such as `-12.5` into units of 10⁻⁸. No exponent, no `+`, at least one digit, at
/// most one point; further decimals are accepted only if they are zeros.
#[inline]
pub fn parse_scaled(bytes: &[u8]) -> Result<i64, TextError> {
    match parse_short(bytes) {
        Some(value) => Ok(value),
        None => parse_long(bytes),
    }
}

/// Parses a short decimal without a sign, the common case. `None`: the general parser decides, or
/// reports the error.
#[inline]
fn parse_short(bytes: &[u8]) -> Option<i64> {
    /// So many digits are below 10¹⁰, and times the scale within the range.
    const BYTES_MAX: usize = 10;
    if bytes.len() > BYTES_MAX {
        return None;
    }
    let (mut value, mut digits, mut decimals) = (0, 0, None);
    for &byte in bytes {
        let digit = byte.wrapping_sub(b'0');
        if digit > 9 {
            if byte != b'.' || decimals.is_some() {
                return None;
            }
            decimals = Some(digits);
            continue;
        }
        value = value * 10 + digit as i64;
        digits += 1;
    }
    let decimals = digits - decimals.unwrap_or(digits);
    let scale = TENS.get(DECIMALS.checked_sub(decimals)?)?;
    (digits > 0).then_some(value * scale)
}

fn parse_long(bytes: &[u8]) -> Result<i64, TextError> {
    let (negative, digits) = match bytes {
        [] => return Err(TextError::Empty),
        [b'-', rest @ ..] => (true, rest),
        rest => (false, rest),
    };
    let mut value: i64 = 0;
    let mut decimals: Option<usize> = None;
    let mut seen = false;
    for &b in digits {
        if b == b'.' && decimals.is_none() {
            decimals = Some(0);
            continue;
        }
        let digit = b.wrapping_sub(b'0');
        if digit > 9 {
            return Err(TextError::Character);
        }
        seen = true;
        match decimals {
            Some(DECIMALS) if digit == 0 => continue,
            Some(DECIMALS) => return Err(TextError::TooManyDecimals),
            Some(ref mut count) => *count += 1,
            None => {}
        }
        // The range below zero is larger by one, so the value is built below zero.
        value = value.checked_mul(10).and_then(|v| v.checked_sub(digit as i64)).ok_or(TextError::Range)?;
    }
    if !seen {
        return Err(TextError::Empty);
    }
    let value = value.checked_mul(TENS[DECIMALS - decimals.unwrap_or(0)]).ok_or(TextError::Range)?;
    if negative { Ok(value) } else { value.checked_neg().ok_or(TextError::Range) }
}

/// Writes units of 10⁻⁸ as a decimal without trailing zeros, and returns the length.
#[inline]
pub fn write_scaled(value: i64, out: &mut [u8; DECIMAL_BYTES_MAX]) -> usize {
    if value == 0 {
        out[0] = b'0';
        return 1;
    }
    write_scaled_value(value, out)
}

/// Writes a decimal that is not zero.
fn write_scaled_value(value: i64, out: &mut [u8; DECIMAL_BYTES_MAX]) -> usize {
    let magnitude = value.unsigned_abs();
    let (whole, part) = (magnitude / SCALE as u64, magnitude % SCALE as u64);
    let mut len = 0;
    if value < 0 {
        out[0] = b'-';
        len = 1;
    }
    len += write_u64(whole, &mut out[len..]);
    if part == 0 {
        return len;
    }
    let decimals = eight_digits(part).unwrap_or_default();
    out[len] = b'.';
    len += 1;
    out[len..len + DECIMALS].copy_from_slice(&(decimals | ASCII_ZEROS).to_le_bytes());
    len + DECIMALS - decimals.leading_zeros() as usize / 8
}

/// Returns the days since 1970-01-01 of a date in the proleptic Gregorian calendar; `None` if there
/// is no such date.
#[inline]
pub fn days_of(year: i32, month: u32, day: u32) -> Option<i32> {
    // Until 2099 every fourth year is a leap year.
    let since = year.wrapping_sub(1970);
    let (Some(&(before, days)), 0..130) = (MONTHS.get(month as usize), since) else {
        return days_of_any(year, month, day);
    };
    let is_leap = since % 4 == 2;
    if day == 0 || day > days + (is_leap && month == 2) as u32 {
        return None;
    }
    let day_of_year = before + (is_leap && month > 2) as u32 + day - 1;
    Some(since * 365 + (since + 1) / 4 + day_of_year as i32)
}

/// Days before each month in a year that is no leap year, and days in it. No month is the first
/// entry.
const MONTHS: [(u32, u32); 13] = {
    let lengths = [0, 31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31];
    let mut months = [(0, 0); 13];
    let mut month = 1;
    while month < 13 {
        months[month] = (months[month - 1].0 + months[month - 1].1, lengths[month]);
        month += 1;
    }
    months
};

/// Returns the same for dates of any year.
#[cold]
fn days_of_any(year: i32, month: u32, day: u32) -> Option<i32> {
    if !(1..=12).contains(&month) || day == 0 || day > days_in(year, month) {
        return None;
    }
    // Years are counted from March, so that the leap day is the last of its year, and in eras of
    // 400 years.
    let year = if month <= 2 { year - 1 } else { year };
    let era = year.div_euclid(400);
    let year_of_era = year.rem_euclid(400);
    let day_of_year = (153 * ((month as i32 + 9) % 12) + 2) / 5 + day as i32 - 1;
    let day_of_era = year_of_era * 365 + year_of_era / 4 - year_of_era / 100 + day_of_year;
    Some(era * 146_097 + day_of_era - 719_468)
}

/// Returns the date of a day since 1970-01-01: year, month, day.
pub fn date_of(days: i32) -> (i32, u32, u32) {
    let days = days + 719_468;
    let era = days.div_euclid(146_097);
    let day_of_era = days.rem_euclid(146_097);
    let year_of_era = (day_of_era - day_of_era / 1_460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let march_month = (5 * day_of_year + 2) / 153;
    let day = (day_of_year - (153 * march_month + 2) / 5 + 1) as u32;
    let month = if march_month < 10 { march_month + 3 } else { march_month - 9 } as u32;
    (year_of_era + era * 400 + (month <= 2) as i32, month, day)
}

fn days_in(year: i32, month: u32) -> u32 {
    let leap = year % 4 == 0 && (year % 100 != 0 || year % 400 == 0);
    match month {
        2 if leap => 29,
        2 => 28,
        4 | 6 | 9 | 11 => 30,
        _ => 31,
    }
}

#[cfg(test)]
mod tests;
