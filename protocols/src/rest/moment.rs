//! Times in JSON: RFC 3339. They are written in UTC with as many decimals as needed, and read with
//! any offset.

use pitlane_engine::index::index_u32;
use pitlane_engine::text::{self, TextError};
use pitlane_engine::time::{Day, NS_PER_S, TimeOfDay, Timestamp};
use serde::{Deserialize, Deserializer, Serialize, Serializer, de};

use crate::json::push_time;

/// A time as RFC 3339: `2026-11-14T09:30:00.123456789Z`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Moment(pub Timestamp);

impl Moment {
    /// Reads `YYYY-MM-DDTHH:MM:SS`, up to nine decimals of a second, and `Z` or an offset such as
    /// `+02:00`. A bare date is the end of that day in UTC: an order good till a date is good on
    /// that date.
    pub fn parse(text: &str) -> Result<Moment, TextError> {
        let bytes = text.as_bytes();
        if bytes.len() == 10 {
            let day = Day::parse(bytes)?;
            return Ok(Moment(Day(day.0.checked_add(1).ok_or(TextError::Range)?).start()));
        }
        let (date, rest) = bytes.split_at_checked(10).ok_or(TextError::Character)?;
        let (clock, rest) = rest.split_at_checked(9).ok_or(TextError::Character)?;
        let [b'T' | b't' | b' ', clock @ ..] = clock else { return Err(TextError::Character) };
        let seconds = TimeOfDay::parse(clock)?.0 as u64;
        let (ns, zone) = decimals(rest)?;
        let offset_s = offset(zone)?;
        let local =
            Day::parse(date)?.start().0.checked_add(seconds * NS_PER_S + ns).ok_or(TextError::Range)?;
        let utc = local.checked_add_signed(-offset_s * NS_PER_S as i64).ok_or(TextError::Range)?;
        Ok(Moment(Timestamp(utc)))
    }
}

impl Moment {
    /// Reads the begin of a range: as [`Moment::parse`], but a bare date is the beginning of that
    /// day in UTC.
    pub fn parse_begin(text: &str) -> Result<Moment, TextError> {
        match Day::parse(text.as_bytes()) {
            Ok(day) => Ok(Moment(day.start())),
            Err(_) => Moment::parse(text),
        }
    }
}

/// Returns the nanoseconds of a decimal part, if there is one, and the rest.
fn decimals(rest: &[u8]) -> Result<(u64, &[u8]), TextError> {
    let [b'.', digits @ ..] = rest else { return Ok((0, rest)) };
    let count = digits.iter().take_while(|digit| digit.is_ascii_digit()).count();
    if !(1..=9).contains(&count) {
        return Err(TextError::TooManyDecimals);
    }
    let value = text::parse_u64(&digits[..count])?;
    Ok((value * 10u64.pow(index_u32(9 - count)), &digits[count..]))
}

/// Returns the seconds ahead of UTC.
fn offset(zone: &[u8]) -> Result<i64, TextError> {
    match zone {
        b"Z" | b"z" => Ok(0),
        [sign @ (b'+' | b'-'), clock @ ..] if clock.len() == 5 => {
            let seconds = TimeOfDay::parse(clock)?.0 as i64;
            Ok(if *sign == b'+' { seconds } else { -seconds })
        }
        _ => Err(TextError::Character),
    }
}

impl Serialize for Moment {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut text = Vec::with_capacity(32);
        push_time(&mut text, self.0);
        serializer.serialize_str(std::str::from_utf8(&text).expect("digits are ASCII"))
    }
}

impl<'de> Deserialize<'de> for Moment {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Moment, D::Error> {
        let text = <std::borrow::Cow<'de, str>>::deserialize(deserializer)?;
        Moment::parse(&text).map_err(|error| {
            de::Error::custom(format_args!("a time is written 2026-11-14T09:30:00Z: {error}"))
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_read_as_rfc_3339() {
        let base = Day::parse(b"2026-11-14").unwrap().start();
        let nine_thirty = base.plus(34_200 * NS_PER_S);
        for (text, at) in [
            ("2026-11-14T09:30:00Z", nine_thirty),
            ("2026-11-14T09:30:00.123456789Z", nine_thirty.plus(123_456_789)),
            ("2026-11-14T09:30:00.5z", nine_thirty.plus(500_000_000)),
            ("2026-11-14T11:30:00+02:00", nine_thirty),
            ("2026-11-14T04:30:00-05:00", nine_thirty),
            ("2026-11-14", base.plus(86_400 * NS_PER_S)),
        ] {
            assert_eq!(Moment::parse(text), Ok(Moment(at)), "{text}");
        }
        for text in [
            "",
            "now",
            "2026-11-14T09:30:00",
            "2026-11-14T09:30Z",
            "2026-13-14T09:30:00Z",
            "2026-11-14T25:30:00Z",
            "2026-11-14T09:30:00.Z",
            "2026-11-14T09:30:00.1234567890Z",
            "2026-11-14T09:30:00+2",
            "2026-11-14T09:30:00Zx",
            "1969-01-01T00:00:00+09:00",
        ] {
            assert!(Moment::parse(text).is_err(), "{text}");
        }
        assert_eq!(Moment::parse_begin("2026-11-14"), Ok(Moment(base)));
        assert_eq!(Moment::parse_begin("2026-11-14T09:30:00Z"), Ok(Moment(nine_thirty)));
        assert!(Moment::parse_begin("2026-11-31").is_err() && Moment::parse_begin("").is_err());
        let json = serde_json::to_string(&Moment(nine_thirty)).unwrap();
        assert_eq!(json, "\"2026-11-14T09:30:00Z\"");
        assert_eq!(serde_json::from_str::<Moment>(&json).unwrap().0, nine_thirty);
    }
}
