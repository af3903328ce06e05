//! Times and dates as FIX writes them: `20261116-08:00:00.123` and `20261116`, both UTC.

use std::cell::Cell;

use pitlane_engine::text::{date_of, days_of, parse_clock, parse_eight};
use pitlane_engine::time::{Day, NS_PER_DAY, NS_PER_MS, NS_PER_S, Timestamp};

/// `20261116-08:00:00.123`
pub const TIMESTAMP_BYTES: usize = 21;

/// Reads a UTCTimestamp: whole seconds, or 3, 6 or 9 decimals. A leap second counts as the last
/// second of its minute.
#[inline]
pub fn parse_timestamp(bytes: &[u8]) -> Option<Timestamp> {
    let (date, rest) = bytes.split_first_chunk::<8>()?;
    let ns = parse_time(rest.strip_prefix(b"-")?)?;
    Some(day_of(date)?.start().plus(ns))
}

/// The last time that was read with milliseconds. The times of a message are often equal to each
/// other and to those of the message before, and nearly always of the same day.
#[derive(Clone, Copy, Debug)]
pub(super) struct LastTimestamp {
    text: [u8; TIMESTAMP_BYTES],
    day: Day,
    at: Timestamp,
}

impl Default for LastTimestamp {
    fn default() -> LastTimestamp {
        LastTimestamp { text: *b"19700101-00:00:00.000", day: Day(0), at: Timestamp::ZERO }
    }
}

impl LastTimestamp {
    /// Reads a UTCTimestamp as [`parse_timestamp`] does, and keeps it.
    #[inline]
    pub(super) fn parse(last: &Cell<LastTimestamp>, bytes: &[u8]) -> Option<Timestamp> {
        let Ok(text) = <&[u8; TIMESTAMP_BYTES]>::try_from(bytes) else { return parse_timestamp(bytes) };
        let known = last.get();
        if known.text == *text { Some(known.at) } else { LastTimestamp::parse_new(last, text) }
    }

    fn parse_new(last: &Cell<LastTimestamp>, text: &[u8; TIMESTAMP_BYTES]) -> Option<Timestamp> {
        let known = last.get();
        let (date, rest) = text.split_first_chunk::<8>()?;
        let ns = parse_time(rest.strip_prefix(b"-")?)?;
        let day = if known.text.starts_with(date) { known.day } else { day_of(date)? };
        let at = day.start().plus(ns);
        last.set(LastTimestamp { text: *text, day, at });
        Some(at)
    }
}

/// Reads a UTCTimeOnly, `08:00:00.123`, in nanoseconds since midnight, with the same decimals.
#[inline]
pub fn parse_time(bytes: &[u8]) -> Option<u64> {
    let (clock, decimals) = bytes.split_first_chunk::<8>()?;
    let [hour, minute, second] = parse_clock(clock)?;
    if hour > 23 || minute > 59 || second > 60 {
        return None;
    }
    let ns = match decimals {
        [] => 0,
        // Most times have milliseconds.
        [b'.', a, b, c] => three(&[*a, *b, *c])? * NS_PER_MS,
        [b'.', digits @ ..] => fine_decimals(digits)?,
        _ => return None,
    };
    let second = hour * 3_600 + minute * 60 + second.min(59);
    Some(second as u64 * NS_PER_S + ns)
}

/// Reads 6 or 9 decimals of a second, in nanoseconds.
fn fine_decimals(digits: &[u8]) -> Option<u64> {
    match digits.as_chunks::<3>() {
        ([ms, us], []) => Some(three(ms)? * NS_PER_MS + three(us)? * 1_000),
        ([ms, us, ns], []) => Some(three(ms)? * NS_PER_MS + three(us)? * 1_000 + three(ns)?),
        _ => None,
    }
}

/// Reads a date, `YYYYMMDD`. Returns `None` before 1970.
pub fn parse_date(bytes: &[u8]) -> Option<Day> {
    day_of(bytes.try_into().ok()?)
}

#[inline]
fn day_of(text: &[u8; 8]) -> Option<Day> {
    let number = parse_eight(text)?;
    let day = days_of((number / 10_000) as i32, number / 100 % 100, number % 100)?;
    (day >= 0).then_some(Day(day))
}

/// Reads a number of three digits.
#[inline]
fn three(text: &[u8; 3]) -> Option<u64> {
    let digits = text.map(|byte| byte.wrapping_sub(b'0'));
    let [hundreds, tens, ones] = digits.map(u64::from);
    digits.iter().all(|&digit| digit <= 9).then_some(hundreds * 100 + tens * 10 + ones)
}

/// Text of a time. It is written once in a millisecond, and its date once a day.
#[derive(Clone, Debug)]
pub struct TimestampText {
    /// Milliseconds since the epoch of the written time.
    ms: u64,
    day: Day,
    text: [u8; TIMESTAMP_BYTES],
}

const MS_PER_DAY: u64 = NS_PER_DAY / NS_PER_MS;

impl Default for TimestampText {
    fn default() -> TimestampText {
        TimestampText { ms: u64::MAX, day: Day(i32::MIN), text: *b"00000000-00:00:00.000" }
    }
}

impl TimestampText {
    /// Returns the text of a time in milliseconds.
    #[inline]
    pub fn text(&mut self, at: Timestamp) -> &[u8; TIMESTAMP_BYTES] {
        let ms = at.0 / NS_PER_MS;
        if ms != self.ms {
            self.write(at);
        }
        &self.text
    }

    fn write(&mut self, at: Timestamp) {
        self.ms = at.0 / NS_PER_MS;
        if at.day() != self.day {
            self.day = at.day();
            self.text[..8].copy_from_slice(&date_text(self.day));
        }
        let ms = (self.ms % MS_PER_DAY) as u32;
        let second = ms / 1_000;
        put_two(&mut self.text[9..], second / 3_600);
        put_two(&mut self.text[12..], second / 60 % 60);
        put_two(&mut self.text[15..], second % 60);
        self.text[18] = b'0' + (ms / 100 % 10) as u8;
        put_two(&mut self.text[19..], ms % 100);
    }
}

/// Returns a day as `YYYYMMDD`.
pub fn date_text(day: Day) -> [u8; 8] {
    let (year, month, day) = date_of(day.0);
    let mut text = [0; 8];
    put_two(&mut text, year as u32 / 100 % 100);
    put_two(&mut text[2..], year as u32 % 100);
    put_two(&mut text[4..], month);
    put_two(&mut text[6..], day);
    text
}

fn put_two(out: &mut [u8], value: u32) {
    out[0] = b'0' + ((value / 10) & 0xff) as u8;
    out[1] = b'0' + (value % 10) as u8;
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_time_survives_a_text_round_trip() {
        let mut stamp = TimestampText::default();
        for ns in [0, 1_795_161_600_123_000_000, 951_868_799_999_000_000, NS_PER_DAY - NS_PER_MS, NS_PER_DAY]
        {
            let text = *stamp.text(Timestamp(ns));
            assert_eq!(parse_timestamp(&text), Some(Timestamp(ns)), "{}", String::from_utf8_lossy(&text));
        }
        for (ns, text) in [
            (1_795_161_600_123_456_789, b"20261120-08:00:00.123"),
            (1_795_161_600_123_999_999, b"20261120-08:00:00.123"),
            (1_795_161_600_124_000_000, b"20261120-08:00:00.124"),
            (1_795_161_599_999_000_000, b"20261120-07:59:59.999"),
        ] {
            assert_eq!(stamp.text(Timestamp(ns)), text);
        }
    }

    #[test]
    fn times_are_read_the_same_after_any_other_time() {
        let texts = [
            "19700101-00:00:00.000",
            "20261116-08:00:00.500",
            "20261116-08:00:00.501",
            "20261116-23:59:60.000",
            "20261117-08:00:00.500",
            "20261117-08:00:00",
            "20261117-08:00:00.500000",
            "20261131-08:00:00.500",
            "20261117-24:00:00.500",
            "20261117 08:00:00.500",
            "",
        ];
        let last = Cell::default();
        for (before, text) in texts.iter().flat_map(|before| texts.map(|text| (before, text))) {
            LastTimestamp::parse(&last, before.as_bytes());
            let expected = parse_timestamp(text.as_bytes());
            assert_eq!(LastTimestamp::parse(&last, text.as_bytes()), expected, "{text} after {before}");
        }
    }

    #[test]
    fn decimals_are_none_three_six_or_nine() {
        let at = |text: &str| parse_timestamp(text.as_bytes()).map(|at| at.0 % NS_PER_S);
        assert_eq!(at("20261116-08:00:00"), Some(0));
        assert_eq!(at("20261116-08:00:00.5"), None);
        assert_eq!(at("20261116-08:00:00.500"), Some(500_000_000));
        assert_eq!(at("20261116-08:00:00.000007"), Some(7_000));
        assert_eq!(at("20261116-08:00:00.123456"), Some(123_456_000));
        assert_eq!(at("20261116-08:00:00.000000009"), Some(9));
        assert_eq!(at("20261116-08:00:00.123456789"), Some(123_456_789));
        assert_eq!(parse_timestamp(b"20161231-23:59:60"), parse_timestamp(b"20161231-23:59:59"));
    }

    #[test]
    fn malformed_times_are_refused() {
        for bad in [
            "",
            "x",
            "20261116",
            "20261116-24:00:00",
            "20261116-08:60:00",
            "20261116-08:00:61",
            "20260230-08:00:00",
            "20261116 08:00:00",
            "20261116-08:00:00.",
            "20261116-08:00:00.00x",
            "2026111-08:00:00.000",
            "19691231-08:00:00",
            "+0261116-08:00:00",
        ] {
            assert_eq!(parse_timestamp(bad.as_bytes()), None, "{bad}");
        }
        assert_eq!(parse_date(b"20240229").map(|day| day.to_string()).as_deref(), Some("2024-02-29"));
        assert_eq!(parse_date(b"2024022"), None);
    }
}
