//! Session hours, and when sequence numbers restart: StartTime and EndTime in local time.
//!
//! UTC offsets are data: the current offset, the one before the last change, and the one after the
//! next change. So a session that starts before the night of a change and ends after it does both
//! at its local times.
//!
//! Rules: docs/fix-rules.md#schedule.

use pitlane_engine::time::{Day, NS_PER_DAY, NS_PER_S, TimeOfDay, Timestamp};

/// Offsets of local time from UTC, in seconds, around one moment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct UtcOffsets {
    pub before_s: i32,
    /// Time of the last change.
    pub since: Timestamp,
    pub ahead_s: i32,
    /// Time of the next change.
    pub until: Timestamp,
    pub after_s: i32,
}

impl UtcOffsets {
    /// Returns offsets that never change.
    pub const fn fixed(ahead_s: i32) -> UtcOffsets {
        UtcOffsets {
            before_s: ahead_s,
            since: Timestamp::ZERO,
            ahead_s,
            until: Timestamp::MAX,
            after_s: ahead_s,
        }
    }

    fn ahead_ns(&self, at: i128) -> i128 {
        let ahead_s = match at {
            at if at < self.since.0 as i128 => self.before_s,
            at if at < self.until.0 as i128 => self.ahead_s,
            _ => self.after_s,
        };
        ahead_s as i128 * NS_PER_S as i128
    }

    /// Returns the local day.
    fn day(&self, now: Timestamp) -> Day {
        let now = now.0 as i128;
        #[expect(clippy::cast_possible_truncation, reason = "64 bits of nanoseconds are 213,503 days")]
        let day = (now + self.ahead_ns(now)).div_euclid(NS_PER_DAY as i128) as i32;
        Day(day)
    }

    /// Returns when local clocks show this time of this day. A time that occurs twice counts the
    /// first time; a time that is skipped counts when it is skipped.
    fn instant(&self, day: Day, time: TimeOfDay) -> Timestamp {
        let shown = day.0 as i128 * NS_PER_DAY as i128 + time.0 as i128 * NS_PER_S as i128;
        let utc = [self.before_s, self.ahead_s, self.after_s].map(|s| shown - s as i128 * NS_PER_S as i128);
        let when = match utc.into_iter().find(|&utc| utc + self.ahead_ns(utc) == shown) {
            Some(utc) => utc,
            // Before either change the time would have been shown, so the change skips it that it
            // is later than.
            None if utc[0] >= self.since.0 as i128 && utc[1] < self.since.0 as i128 => self.since.0 as i128,
            None => self.until.0 as i128,
        };
        Timestamp(u64::try_from(when.max(0)).unwrap_or(u64::MAX))
    }
}

impl Default for UtcOffsets {
    fn default() -> UtcOffsets {
        UtcOffsets::fixed(0)
    }
}

/// Session hours. Equal times mean open all day with one boundary a day at that time. An end before
/// the start means open over midnight.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SessionSchedule {
    pub start: TimeOfDay,
    pub end: TimeOfDay,
    pub clocks: UtcOffsets,
}

impl SessionSchedule {
    pub fn is_open(&self, now: Timestamp) -> bool {
        self.start == self.end || now < self.ends(self.began(now))
    }

    /// Returns when the current (or the last) session started. Older sequence numbers belong to an
    /// earlier session.
    pub fn began(&self, now: Timestamp) -> Timestamp {
        let starts = self.around(now, self.start).into_iter().rev();
        starts.into_iter().find(|start| *start <= now).unwrap_or(Timestamp::ZERO)
    }

    /// Returns when the current session ends for a client that is logged on.
    pub fn ends(&self, now: Timestamp) -> Timestamp {
        self.around(now, self.end).into_iter().find(|end| *end > now).unwrap_or(Timestamp::MAX)
    }

    /// Returns this time of yesterday, today and tomorrow. A day that a change makes longer or
    /// shorter is still one day.
    fn around(&self, now: Timestamp, time: TimeOfDay) -> [Timestamp; 3] {
        let today = self.clocks.day(now).0;
        [today - 1, today, today + 1].map(|day| self.clocks.instant(Day(day), time))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const HOUR_NS: u64 = 3_600 * NS_PER_S;

    fn schedule(start: &str, end: &str) -> SessionSchedule {
        let time = |text: &str| TimeOfDay::parse(text.as_bytes()).unwrap();
        SessionSchedule { start: time(start), end: time(end), clocks: UtcOffsets::default() }
    }

    /// Returns a time of the third day.
    fn at(text: &str) -> Timestamp {
        Timestamp(2 * NS_PER_DAY + TimeOfDay::parse(text.as_bytes()).unwrap().0 as u64 * NS_PER_S)
    }

    #[test]
    fn equal_times_are_open_all_day_with_one_boundary() {
        let whole = schedule("00:00", "00:00");
        assert!(whole.is_open(at("00:00")) && whole.is_open(at("23:59")));
        assert_eq!(whole.began(at("12:00")), at("00:00"));
        assert_eq!(whole.ends(at("12:00")).0, 3 * NS_PER_DAY);
        assert_eq!(whole.began(at("00:00")), at("00:00"));
        assert_eq!(whole.ends(at("00:00")).0, 3 * NS_PER_DAY);
        let late = schedule("22:00", "22:00");
        assert_eq!(late.began(at("12:00")).0, at("22:00").0 - NS_PER_DAY);
        assert_eq!(late.ends(at("12:00")), at("22:00"));
    }

    #[test]
    fn a_session_may_lie_within_a_day_or_over_midnight() {
        let day = schedule("09:00", "17:00");
        assert!(!day.is_open(at("08:59:59")) && day.is_open(at("09:00")) && !day.is_open(at("17:00")));
        assert_eq!((day.began(at("10:00")), day.ends(at("10:00"))), (at("09:00"), at("17:00")));
        let night = schedule("17:00", "09:00");
        assert!(night.is_open(at("18:00")) && night.is_open(at("08:00")) && !night.is_open(at("12:00")));
        assert_eq!(night.began(at("08:00")).0, at("17:00").0 - NS_PER_DAY);
        assert_eq!(night.ends(at("18:00")).0, at("09:00").0 + NS_PER_DAY);
    }

    #[test]
    fn session_hours_are_in_local_time() {
        let tokyo = SessionSchedule { clocks: UtcOffsets::fixed(9 * 3_600), ..schedule("09:00", "15:00") };
        assert!(!tokyo.is_open(Timestamp(at("00:00").0 - 1)) && tokyo.is_open(at("00:00")));
        assert!(tokyo.is_open(at("05:59:59")) && !tokyo.is_open(at("06:00")));
        let new_york =
            SessionSchedule { clocks: UtcOffsets::fixed(-5 * 3_600), ..schedule("17:00", "17:00") };
        assert_eq!(new_york.began(at("23:00")), at("22:00"));
        assert_eq!(new_york.began(at("21:00")).0, at("22:00").0 - NS_PER_DAY);
        assert_eq!(new_york.ends(at("21:00")), at("22:00"));
    }

    /// Returns offsets that change on the third day at 01:00 UTC, in hours.
    fn changing(from: i32, to: i32, seen_before: bool) -> UtcOffsets {
        let (from, to, change) = (from * 3_600, to * 3_600, at("01:00"));
        match seen_before {
            true => UtcOffsets { until: change, after_s: to, ..UtcOffsets::fixed(from) },
            false => UtcOffsets { before_s: from, since: change, ..UtcOffsets::fixed(to) },
        }
    }

    #[test]
    fn a_night_with_an_offset_change_is_an_hour_shorter_or_longer() {
        for seen_before in [true, false] {
            // Zurich: in spring 02:00 becomes 03:00, and in autumn 03:00 becomes 02:00.
            let spring =
                SessionSchedule { clocks: changing(1, 2, seen_before), ..schedule("22:00", "08:00") };
            let autumn =
                SessionSchedule { clocks: changing(2, 1, seen_before), ..schedule("22:00", "08:00") };
            for (night, hours) in [(spring, 9), (autumn, 11)] {
                let began = night.began(at("00:30"));
                assert_eq!(began, night.began(at("01:30")));
                assert_eq!(night.ends(at("00:30")), night.ends(at("01:30")));
                assert_eq!(night.ends(began).0 - began.0, hours * HOUR_NS, "{seen_before}");
                assert!(night.is_open(began) && !night.is_open(night.ends(began)));
            }
        }
    }

    #[test]
    fn a_skipped_time_counts_when_it_is_skipped_and_a_repeated_one_counts_once() {
        for seen_before in [true, false] {
            let skipped =
                SessionSchedule { clocks: changing(1, 2, seen_before), ..schedule("02:30", "20:00") };
            assert_eq!(skipped.began(at("12:00")), at("01:00"));
            assert!(!skipped.is_open(at("00:59")) && skipped.is_open(at("01:00")));
            let twice = SessionSchedule { clocks: changing(2, 1, seen_before), ..schedule("02:30", "20:00") };
            assert_eq!(twice.began(at("12:00")), at("00:30"));
            assert_eq!(twice.began(at("01:10")), at("00:30"), "clocks show 02:10 for the second time");
            assert!(!twice.is_open(at("00:29")) && twice.is_open(at("00:30")) && twice.is_open(at("01:10")));
        }
    }

    #[test]
    fn extreme_times_do_not_panic() {
        for clocks in [UtcOffsets::fixed(14 * 3_600), UtcOffsets::fixed(-12 * 3_600)] {
            let schedule = SessionSchedule { clocks, ..schedule("09:00", "08:00") };
            for now in [Timestamp::ZERO, Timestamp::MAX] {
                schedule.is_open(now);
                assert!(schedule.began(now) <= now && schedule.ends(now) >= now);
            }
        }
    }
}
