//! When a session is open, and when its numbers begin anew: StartTime and EndTime, both UTC.

use pitlane_engine::time::{NS_PER_DAY, NS_PER_S, TimeOfDay, Timestamp};

/// Equal times: open all day, with a boundary once a day at that time. An end before the start: open over midnight.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Schedule {
    pub start: TimeOfDay,
    pub end: TimeOfDay,
}

impl Schedule {
    pub fn is_open(&self, now: Timestamp) -> bool {
        let second = TimeOfDay((now.0 % NS_PER_DAY / NS_PER_S) as u32);
        match self.start.cmp(&self.end) {
            std::cmp::Ordering::Equal => true,
            std::cmp::Ordering::Less => self.start <= second && second < self.end,
            std::cmp::Ordering::Greater => self.start <= second || second < self.end,
        }
    }

    /// When the session of now (or the last one) began. Numbers that are older belong to one before.
    pub fn began(&self, now: Timestamp) -> Timestamp {
        let today = Timestamp(now.0 / NS_PER_DAY * NS_PER_DAY).plus(self.start.0 as u64 * NS_PER_S);
        if today <= now { today } else { Timestamp(today.0.saturating_sub(NS_PER_DAY)) }
    }

    /// When the session of now ends, for whoever is logged on.
    pub fn ends(&self, now: Timestamp) -> Timestamp {
        let today = Timestamp(now.0 / NS_PER_DAY * NS_PER_DAY).plus(self.end.0 as u64 * NS_PER_S);
        if today > now { today } else { today.plus(NS_PER_DAY) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn schedule(start: &str, end: &str) -> Schedule {
        let time = |text: &str| TimeOfDay::parse(text.as_bytes()).unwrap();
        Schedule { start: time(start), end: time(end) }
    }

    /// The third day, at this time.
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
}
