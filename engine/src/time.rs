//! Instants and days. The engine never reads a clock: the time arrives with each command.

use std::fmt;

use crate::text::{self, TextError};

pub const NS_PER_S: u64 = 1_000_000_000;
pub const NS_PER_MS: u64 = 1_000_000;
pub const NS_PER_DAY: u64 = 86_400 * NS_PER_S;

/// Nanoseconds since 1970-01-01T00:00:00Z.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Timestamp(pub u64);

impl Timestamp {
    pub const ZERO: Timestamp = Timestamp(0);
    pub const MAX: Timestamp = Timestamp(u64::MAX);

    /// Returns the time this many nanoseconds later, saturating.
    pub fn plus(self, ns: u64) -> Timestamp {
        Timestamp(self.0.saturating_add(ns))
    }

    /// Returns the nanoseconds since an earlier instant; zero if it is not earlier.
    pub fn since(self, earlier: Timestamp) -> u64 {
        self.0.saturating_sub(earlier.0)
    }

    pub fn day(self) -> Day {
        Day((self.0 / NS_PER_DAY) as i32)
    }
}

/// Formats as RFC 3339 in UTC, with as many decimals as needed in groups of three.
impl fmt::Display for Timestamp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let second = self.0 / NS_PER_S % 86_400;
        write!(f, "{}T{:02}:{:02}:{:02}", self.day(), second / 3_600, second / 60 % 60, second % 60)?;
        let ns = self.0 % NS_PER_S;
        match (ns, ns % 1_000_000, ns % 1_000) {
            (0, _, _) => {}
            (_, 0, _) => write!(f, ".{:03}", ns / 1_000_000)?,
            (_, _, 0) => write!(f, ".{:06}", ns / 1_000)?,
            _ => write!(f, ".{ns:09}")?,
        }
        f.write_str("Z")
    }
}

/// A calendar day: days since 1970-01-01.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Day(pub i32);

impl Day {
    /// Parses `YYYY-MM-DD`.
    pub fn parse(bytes: &[u8]) -> Result<Day, TextError> {
        let [year @ .., b'-', m1, m2, b'-', d1, d2] = bytes else {
            return Err(if bytes.is_empty() { TextError::Empty } else { TextError::Character });
        };
        if year.len() != 4 {
            return Err(TextError::Character);
        }
        let (year, month, day) = (parse_u32(year)?, parse_u32(&[*m1, *m2])?, parse_u32(&[*d1, *d2])?);
        text::days_of(year as i32, month, day).map(Day).ok_or(TextError::Range)
    }

    /// Returns the instant at which this day begins in UTC; the epoch for days before it.
    pub fn start(self) -> Timestamp {
        Timestamp((self.0.max(0) as u64).saturating_mul(NS_PER_DAY))
    }
}

impl fmt::Display for Day {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (year, month, day) = text::date_of(self.0);
        write!(f, "{year:04}-{month:02}-{day:02}")
    }
}

/// A time of day in seconds after midnight, for opening hours.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct TimeOfDay(pub u32);

impl TimeOfDay {
    /// Parses `HH:MM` or `HH:MM:SS`; `24:00` is the end of the day.
    pub fn parse(bytes: &[u8]) -> Result<TimeOfDay, TextError> {
        let number = |a: u8, b: u8| parse_u32(&[a, b]);
        let (h, m, s) = match *bytes {
            [] => return Err(TextError::Empty),
            [h1, h2, b':', m1, m2] => (number(h1, h2)?, number(m1, m2)?, 0),
            [h1, h2, b':', m1, m2, b':', s1, s2] => (number(h1, h2)?, number(m1, m2)?, number(s1, s2)?),
            _ => return Err(TextError::Character),
        };
        let seconds = h * 3_600 + m * 60 + s;
        if m > 59 || s > 59 || seconds > 86_400 {
            return Err(TextError::Range);
        }
        Ok(TimeOfDay(seconds))
    }
}

impl fmt::Display for TimeOfDay {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:02}:{:02}:{:02}", self.0 / 3_600, self.0 / 60 % 60, self.0 % 60)
    }
}

fn parse_u32(digits: &[u8]) -> Result<u32, TextError> {
    u32::try_from(text::parse_u64(digits)?).map_err(|_| TextError::Range)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_instant_is_written_with_the_decimals_it_has() {
        let start = Day::parse(b"2026-11-14").unwrap().start();
        assert_eq!(start.to_string(), "2026-11-14T00:00:00Z");
        assert_eq!(start.plus(123_456_789).to_string(), "2026-11-14T00:00:00.123456789Z");
        assert_eq!(start.plus(5 * NS_PER_MS).to_string(), "2026-11-14T00:00:00.005Z");
        assert_eq!(start.plus(34_200 * NS_PER_S + 7_000).to_string(), "2026-11-14T09:30:00.000007Z");
        assert_eq!(Timestamp::MAX.plus(1), Timestamp::MAX);
        assert_eq!(start.since(start.plus(1)), 0);
        assert_eq!(start.plus(NS_PER_DAY).day(), Day(start.day().0 + 1));
    }

    #[test]
    fn a_day_is_a_real_date() {
        for text in ["1970-01-01", "2000-02-29", "2100-12-31"] {
            assert_eq!(Day::parse(text.as_bytes()).unwrap().to_string(), text);
        }
        for bad in ["", "2023-02-29", "2023-2-1", "20230201", "x023-02-01", "12023-02-01"] {
            assert!(Day::parse(bad.as_bytes()).is_err(), "{bad}");
        }
        assert_eq!(Day(-5).start(), Timestamp::ZERO);
    }

    #[test]
    fn a_time_of_day_ends_at_24_00() {
        assert_eq!(TimeOfDay::parse(b"09:30").unwrap().to_string(), "09:30:00");
        assert_eq!(TimeOfDay::parse(b"24:00").unwrap(), TimeOfDay(86_400));
        for bad in ["", "9:30", "24:01", "12:60", "12:00:60", "ab:cd"] {
            assert!(TimeOfDay::parse(bad.as_bytes()).is_err(), "{bad}");
        }
    }
}
