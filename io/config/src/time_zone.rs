//! Time zones: converts between instants and local time.

use std::fmt;

use jiff::civil::{self, DateTime};
use jiff::tz::{Offset, TimeZone};
use pitlane_engine::text;
use pitlane_engine::time::{Day, NS_PER_DAY, NS_PER_S, TimeOfDay, Timestamp};

/// A place with daylight saving time, or a fixed offset from UTC.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Zone {
    zone: TimeZone,
    /// Name as it was written.
    name: String,
}

impl Zone {
    /// Largest offset from UTC of any zone on Earth.
    const OFFSET_S_MAX: i32 = 14 * 3_600;

    /// Parses `UTC`, a name such as `Europe/Zurich`, or an offset such as `+09:00`.
    pub fn parse(text: &str) -> Result<Zone, String> {
        let zone = match text.as_bytes().first() {
            Some(b'+' | b'-') => fixed(text),
            _ if text == "UTC" => Some(TimeZone::UTC),
            // Database entries of two letters (`GB`) or for computers only (`posixrules`) are not
            // accepted.
            _ if text.contains('/') => TimeZone::get(text).ok(),
            _ => None,
        };
        let problem = || {
            format!("it must be UTC, a zone such as Europe/Zurich or a distance such as +09:00, not {text:?}")
        };
        Ok(Zone { zone: zone.ok_or_else(problem)?, name: text.to_string() })
    }

    /// Returns the local day and time.
    pub fn local(&self, now: Timestamp) -> (Day, TimeOfDay) {
        let shown = Timestamp(now.0.saturating_add_signed(self.ahead_ns(now)));
        (shown.day(), TimeOfDay((shown.0 % NS_PER_DAY / NS_PER_S) as u32))
    }

    /// Returns the instant at which local clocks show this time of this day (24:00: the midnight
    /// after it). A time that occurs twice counts the first time; a time that is skipped counts as
    /// the end of the gap.
    pub fn instant(&self, day: Day, time: TimeOfDay) -> Timestamp {
        let (day, second) = (day.0 + (time.0 / 86_400) as i32, time.0 % 86_400);
        let Some(shown) = shown(day, second) else { return Timestamp::MAX };
        let instant = self.zone.to_ambiguous_timestamp(shown).compatible();
        // Instants beyond 64 bits are later than any deadline.
        let ns = instant.map_or(i128::MAX, |instant| instant.as_nanosecond());
        Timestamp(u64::try_from(ns.max(0)).unwrap_or(u64::MAX))
    }

    /// Returns the offset of local time from UTC, in nanoseconds.
    pub fn ahead_ns(&self, now: Timestamp) -> i64 {
        i64::from(self.ahead_s(now)) * NS_PER_S as i64
    }

    /// Returns the offset of local time from UTC, in seconds.
    pub fn ahead_s(&self, now: Timestamp) -> i32 {
        let now = jiff::Timestamp::from_nanosecond(now.0 as i128).unwrap_or(jiff::Timestamp::MAX);
        self.zone.to_offset(now).seconds()
    }

    /// Returns the time of the last change of the local clock, the current instant included.
    pub fn changed(&self, now: Timestamp) -> Option<Timestamp> {
        let behind = jiff::Timestamp::from_nanosecond(now.0 as i128 + 1).unwrap_or(jiff::Timestamp::MAX);
        self.zone.preceding(behind).next().and_then(|change| timestamp_of(change.timestamp()))
    }

    /// Returns the time of the next change of the local clock.
    pub fn changes(&self, now: Timestamp) -> Option<Timestamp> {
        let now = jiff::Timestamp::from_nanosecond(now.0 as i128).unwrap_or(jiff::Timestamp::MAX);
        self.zone.following(now).next().and_then(|change| timestamp_of(change.timestamp()))
    }
}

/// Returns None for an instant beyond 64 bits.
fn timestamp_of(when: jiff::Timestamp) -> Option<Timestamp> {
    u64::try_from(when.as_nanosecond()).ok().map(Timestamp)
}

fn fixed(text: &str) -> Option<TimeZone> {
    let [sign, h1, h2, b':', m1, m2] = *text.as_bytes() else { return None };
    let number = |a, b| text::parse_u64(&[a, b]).ok().and_then(|n| i32::try_from(n).ok());
    let (hours, minutes) = (number(h1, h2)?, number(m1, m2)?);
    let offset_s = hours * 3_600 + minutes * 60;
    if minutes > 59 || offset_s > Zone::OFFSET_S_MAX {
        return None;
    }
    let offset_s = if sign == b'-' { -offset_s } else { offset_s };
    Offset::from_seconds(offset_s).ok().map(TimeZone::fixed)
}

fn shown(day: i32, second: u32) -> Option<DateTime> {
    let (year, month, day) = text::date_of(day);
    let date = civil::Date::new(year.try_into().ok()?, month.try_into().ok()?, day.try_into().ok()?).ok()?;
    let hour = (second / 3_600).try_into().ok()?;
    let time = civil::Time::new(hour, (second / 60 % 60) as i8, (second % 60) as i8, 0);
    Some(date.to_datetime(time.ok()?))
}

impl Default for Zone {
    fn default() -> Zone {
        Zone { zone: TimeZone::UTC, name: "UTC".to_string() }
    }
}

impl fmt::Display for Zone {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.name)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn zone(text: &str) -> Zone {
        Zone::parse(text).unwrap()
    }

    fn at(day: &str, time: &str) -> (Day, TimeOfDay) {
        (Day::parse(day.as_bytes()).unwrap(), TimeOfDay::parse(time.as_bytes()).unwrap())
    }

    #[test]
    fn a_zone_is_utc_a_place_or_a_distance() {
        for (text, ahead_s) in
            [("UTC", 0), ("+00:00", 0), ("+09:00", 32_400), ("-05:30", -19_800), ("Asia/Tokyo", 32_400)]
        {
            assert_eq!(zone(text).ahead_ns(Timestamp::ZERO), ahead_s * NS_PER_S as i64, "{text}");
            assert_eq!(zone(text).to_string(), text);
        }
        for text in ["", "Z", "GB", "Mars/Olympus", "+9:00", "+14:01", "09:00", "+09:60", "+ab:cd", "../etc"]
        {
            assert!(Zone::parse(text).is_err(), "{text}");
        }
    }

    #[test]
    fn local_time_and_timestamp_agree() {
        let new_york = zone("America/New_York");
        for (day, time, utc) in [
            ("2026-01-15", "09:30:00", "2026-01-15T14:30:00Z"),
            ("2026-07-15", "09:30:00", "2026-07-15T13:30:00Z"),
            ("2026-07-15", "24:00:00", "2026-07-16T04:00:00Z"),
        ] {
            let (day, time) = at(day, time);
            let instant = new_york.instant(day, time);
            assert_eq!(instant.to_string(), utc);
            if time.0 < 86_400 {
                assert_eq!(new_york.local(instant), (day, time));
            }
        }
    }

    #[test]
    fn the_hour_that_is_skipped_is_over_and_the_one_that_comes_twice_comes_once() {
        let new_york = zone("America/New_York");
        let instant = |day, time| {
            let (day, time) = at(day, time);
            new_york.instant(day, time).to_string()
        };
        assert_eq!(instant("2026-03-08", "02:30:00"), "2026-03-08T07:30:00Z", "clocks show 03:30");
        assert_eq!(instant("2026-11-01", "01:30:00"), "2026-11-01T05:30:00Z", "still summer time");
    }

    #[test]
    fn changes_of_clocks_are_known_before_and_after() {
        let zurich = zone("Europe/Zurich");
        let (day, time) = at("2026-07-15", "12:00:00");
        let summer = zurich.instant(day, time);
        let (changed, changes) = (zurich.changed(summer).unwrap(), zurich.changes(summer).unwrap());
        assert_eq!(
            (changed.to_string().as_str(), changes.to_string().as_str()),
            ("2026-03-29T01:00:00Z", "2026-10-25T01:00:00Z")
        );
        assert_eq!((zurich.changed(changed), zurich.changes(changed)), (Some(changed), Some(changes)));
        assert_eq!(zurich.changed(Timestamp(changes.0 - 1)), Some(changed));
        assert_eq!((zone("UTC").changed(summer), zone("+02:00").changes(summer)), (None, None));
    }

    #[test]
    fn the_ends_of_time_are_no_panic() {
        let zone = zone("Pacific/Apia");
        zone.local(Timestamp::ZERO);
        zone.local(Timestamp::MAX);
        for now in [Timestamp::ZERO, Timestamp::MAX] {
            assert!(zone.changed(now).is_none_or(|changed| changed <= now));
            assert!(zone.changes(now).is_none_or(|changes| changes > now));
        }
        assert_eq!(zone.instant(Day(10_000_000), TimeOfDay(0)), Timestamp::MAX);
        assert_eq!(zone.instant(Day(-1_000), TimeOfDay(0)), Timestamp::ZERO);
    }
}
