//! Trading hours of exchanges: in which session each exchange is, and until when.
//!
//! ```text
//! Closed │ OpeningAuction │ Continuous                    │ ClosingAuction │ Closed
//!                         open                                             close
//! ```
//!
//! A trading day may begin on the evening before: an exchange that opens at 17:00 and closes at
//! 16:00 ends its trading day on the next day. A trading day takes place if the day on which it
//! ends is no Saturday, no Sunday and no holiday. The hours 00:00 to 24:00 mean that the exchange
//! is always open.
//!
//! Rules: docs/engine-rules.md#sessions.

use std::collections::{BTreeMap, BTreeSet};
use std::iter;

use pitlane_engine::command::TradingSession;
use pitlane_engine::id::ExchangeId;
use pitlane_engine::refdata::{Exchange, RefData};
use pitlane_engine::time::{Day, NS_PER_S, TimeOfDay, Timestamp};

use crate::time_zone::Zone;
use crate::{Config, HoursBy, TradingHoursConfig};

/// Days searched for the next change. If there are more holidays in a row, the search continues at
/// the end of these days.
const DAYS_AHEAD: i32 = 8;
/// Days walked at most from either end of a long pause. A pause with more days than that has closed
/// everything that closes.
const WALK_DAYS_MAX: i32 = 40;

/// Exchanges that follow their hours; all other exchanges are always open.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Calendar {
    hours_by_exchange: BTreeMap<ExchangeId, ExchangeHours>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
struct ExchangeHours {
    zone: Zone,
    open: TimeOfDay,
    close: TimeOfDay,
    opening_ns: u64,
    closing_ns: u64,
    holidays: BTreeSet<Day>,
}

/// Beginning of a session.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SessionChange {
    pub at: Timestamp,
    pub session: TradingSession,
}

/// Current session of an exchange.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CurrentSession {
    pub session: TradingSession,
    /// Begin of the session, as far as a short search backwards can find it.
    pub since: Timestamp,
    /// Time of the next query.
    pub until: Timestamp,
}

impl Calendar {
    pub fn of(config: &Config, reference: &RefData) -> Calendar {
        let hours_by_exchange = reference.exchanges().iter().filter_map(|row| {
            let hours = config.calendar.of(&row.mic);
            Some((row.id, ExchangeHours::new(row, hours).filter(|_| hours.by == HoursBy::Exchange)?))
        });
        Calendar { hours_by_exchange: hours_by_exchange.collect() }
    }

    /// Adjusts reference data to this calendar: where hours do not apply, or leave no time for
    /// auctions, there are no auctions, and an order for one would wait for ever.
    pub fn fit(config: &Config, reference: RefData) -> RefData {
        reference.with_auctions_where(|row| {
            let hours = config.calendar.of(&row.mic);
            let has_time = hours.opening_auction_s > 0 || hours.closing_auction_s > 0;
            has_time && hours.by == HoursBy::Exchange && ExchangeHours::new(row, hours).is_some()
        })
    }

    pub fn has_hours(&self, exchange: ExchangeId) -> bool {
        self.hours_by_exchange.contains_key(&exchange)
    }

    /// Returns the last date of an exchange that is over at this instant, because its trading has
    /// ended or there was none. None: the exchange has no hours.
    pub fn ended_date(&self, exchange: ExchangeId, now: Timestamp) -> Option<Day> {
        self.hours_by_exchange.get(&exchange).map(|trading_hours| trading_hours.ended_date(now))
    }

    /// Returns the changes of an exchange after `from` and up to `now`, in order. Of a long pause,
    /// whole trading days after the first close and before the last are omitted: the first close
    /// has ended all orders that live for a session, and no client could enter more.
    pub fn walk(&self, exchange: ExchangeId, from: Timestamp, now: Timestamp) -> Vec<SessionChange> {
        self.hours_by_exchange
            .get(&exchange)
            .map_or_else(Vec::new, |trading_hours| trading_hours.walk(from, now))
    }

    pub fn at(&self, now: Timestamp) -> impl Iterator<Item = (ExchangeId, CurrentSession)> {
        self.hours_by_exchange.iter().map(move |(exchange, trading_hours)| (*exchange, trading_hours.at(now)))
    }
}

impl ExchangeHours {
    /// Returns None for an exchange that never closes.
    fn new(row: &Exchange, hours: &TradingHoursConfig) -> Option<ExchangeHours> {
        let is_always = row.open == TimeOfDay(0) && row.close == TimeOfDay(86_400);
        let auction_ns = |seconds: u32| if row.auctions { seconds as u64 * NS_PER_S } else { 0 };
        (!is_always).then(|| ExchangeHours {
            // The reader of the reference data has checked the name.
            zone: Zone::parse(&row.time_zone).unwrap_or_default(),
            open: row.open,
            close: row.close,
            opening_ns: auction_ns(hours.opening_auction_s),
            closing_ns: auction_ns(hours.closing_auction_s),
            holidays: hours.holidays.iter().copied().collect(),
        })
    }

    fn at(&self, now: Timestamp) -> CurrentSession {
        let (today, _) = self.zone.local(now);
        let days = (today.0 - 1..=today.0 + DAYS_AHEAD).map(Day);
        let midnight = self.zone.instant(today, TimeOfDay(0)).min(now);
        let mut current =
            CurrentSession { session: TradingSession::Closed, since: midnight, until: Timestamp::MAX };
        for (begins, session) in days.filter_map(|day| self.day_sessions(day)).flatten() {
            if begins > now {
                current.until = begins;
                return current;
            }
            (current.session, current.since) = (session, begins);
        }
        current.until = self.zone.instant(Day(today.0 + 1), TimeOfDay(0));
        current
    }

    fn ended_date(&self, now: Timestamp) -> Day {
        let (today, _) = self.zone.local(now);
        let trades = self.takes_place(today) && now < self.zone.instant(today, self.close);
        Day(today.0 - trades as i32)
    }

    fn walk(&self, from: Timestamp, now: Timestamp) -> Vec<SessionChange> {
        let (first, last) = (self.zone.local(from).0.0 - 1, self.zone.local(now).0.0);
        let is_long = last - first > 2 * WALK_DAYS_MAX;
        let skipped = if is_long { first + WALK_DAYS_MAX..last - WALK_DAYS_MAX } else { 0..0 };
        let days = (first..=last).filter(|day| !skipped.contains(day)).map(Day);
        let mut reached = Timestamp::ZERO;
        let mut changes = Vec::new();
        for day_sessions in days.filter_map(|day| self.day_sessions(day)) {
            let ends = day_sessions.iter().skip(1).map(|(begins, _)| Some(*begins)).chain(iter::once(None));
            for ((begins, session), ends) in day_sessions.into_iter().zip(ends) {
                // If one trading day follows another without a pause, its auction waits for the
                // close.
                reached = reached.max(begins);
                let is_empty = ends.is_some_and(|ends| ends <= reached);
                if reached > from && reached <= now && !is_empty {
                    changes.push(SessionChange { at: reached, session });
                }
            }
        }
        let closes =
            changes.iter().enumerate().filter(|(_, change)| change.session == TradingSession::Closed);
        let closes: Vec<usize> = closes.map(|(at, _)| at).collect();
        if let [first, .., before_last, _] = closes[..] {
            changes.drain(first + 1..=before_last);
        }
        changes
    }

    fn takes_place(&self, day: Day) -> bool {
        !is_weekend(day) && !self.holidays.contains(&day)
    }

    /// Returns the sessions of the trading day that opens on this day, each with its begin; None if
    /// the trading day does not take place.
    fn day_sessions(&self, day: Day) -> Option<[(Timestamp, TradingSession); 4]> {
        let last = if self.close <= self.open { Day(day.0 + 1) } else { day };
        if !self.takes_place(last) {
            return None;
        }
        let open = self.zone.instant(day, self.open);
        let close = self.zone.instant(last, self.close);
        let closing = Timestamp(close.0.saturating_sub(self.closing_ns)).max(open);
        let opening = Timestamp(open.0.saturating_sub(self.opening_ns));
        Some([
            (opening, TradingSession::OpeningAuction),
            (open, TradingSession::Continuous),
            (closing, TradingSession::ClosingAuction),
            (close, TradingSession::Closed),
        ])
    }
}

/// The epoch began on a Thursday.
fn is_weekend(day: Day) -> bool {
    matches!(day.0.rem_euclid(7), 2 | 3)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn trading_hours(zone: &str, open: &str, close: &str, auction_s: u64) -> ExchangeHours {
        let time = |text: &str| TimeOfDay::parse(text.as_bytes()).unwrap();
        ExchangeHours {
            zone: Zone::parse(zone).unwrap(),
            open: time(open),
            close: time(close),
            opening_ns: auction_s * NS_PER_S,
            closing_ns: auction_s * NS_PER_S,
            holidays: BTreeSet::new(),
        }
    }

    fn instant(text: &str) -> Timestamp {
        let (day, time) = text.trim_end_matches('Z').split_once('T').unwrap();
        let (day, time) = (Day::parse(day.as_bytes()), TimeOfDay::parse(time.as_bytes()));
        Zone::default().instant(day.unwrap(), time.unwrap())
    }

    /// Returns the session and when the next one begins.
    fn current_session(trading_hours: &ExchangeHours, now: &str) -> (TradingSession, String) {
        let CurrentSession { session, until, .. } = trading_hours.at(instant(now));
        (session, until.to_string())
    }

    #[test]
    fn a_day_with_auctions_goes_through_its_sessions() {
        let nasdaq = trading_hours("America/New_York", "09:30:00", "16:00:00", 300);
        for (now, session, until) in [
            ("2026-01-15T14:24:59Z", TradingSession::Closed, "2026-01-15T14:25:00Z"),
            ("2026-01-15T14:25:00Z", TradingSession::OpeningAuction, "2026-01-15T14:30:00Z"),
            ("2026-01-15T14:30:00Z", TradingSession::Continuous, "2026-01-15T20:55:00Z"),
            ("2026-01-15T20:55:00Z", TradingSession::ClosingAuction, "2026-01-15T21:00:00Z"),
            ("2026-01-15T21:00:00Z", TradingSession::Closed, "2026-01-16T14:25:00Z"),
        ] {
            assert_eq!(current_session(&nasdaq, now), (session, until.to_string()), "{now}");
        }
    }

    #[test]
    fn over_the_weekend_it_is_closed_and_summer_time_may_begin() {
        let nasdaq = trading_hours("America/New_York", "09:30:00", "16:00:00", 0);
        assert_eq!(
            current_session(&nasdaq, "2026-03-06T21:00:00Z"),
            (TradingSession::Closed, "2026-03-09T13:30:00Z".to_string())
        );
        assert_eq!(current_session(&nasdaq, "2026-03-07T15:00:00Z").0, TradingSession::Closed);
    }

    #[test]
    fn without_auctions_there_are_none() {
        let plain = trading_hours("UTC", "09:00:00", "17:00:00", 0);
        assert_eq!(
            current_session(&plain, "2026-01-15T09:00:00Z"),
            (TradingSession::Continuous, "2026-01-15T17:00:00Z".into())
        );
        assert_eq!(current_session(&plain, "2026-01-15T17:00:00Z").0, TradingSession::Closed);
    }

    #[test]
    fn a_day_may_begin_on_the_evening_before() {
        let globex = trading_hours("America/Chicago", "17:00:00", "16:00:00", 0);
        for (now, session, until) in [
            ("2026-01-15T21:59:59Z", TradingSession::Continuous, "2026-01-15T22:00:00Z"),
            ("2026-01-15T22:00:00Z", TradingSession::Closed, "2026-01-15T23:00:00Z"),
            ("2026-01-15T23:00:00Z", TradingSession::Continuous, "2026-01-16T22:00:00Z"),
            ("2026-01-16T22:00:00Z", TradingSession::Closed, "2026-01-18T23:00:00Z"),
            ("2026-01-18T23:00:00Z", TradingSession::Continuous, "2026-01-19T22:00:00Z"),
        ] {
            assert_eq!(current_session(&globex, now), (session, until.to_string()), "{now}");
        }
    }

    #[test]
    fn on_a_holiday_nothing_takes_place() {
        let mut nasdaq = trading_hours("America/New_York", "09:30:00", "16:00:00", 0);
        nasdaq.holidays.insert(Day::parse(b"2026-12-25").unwrap());
        assert_eq!(
            current_session(&nasdaq, "2026-12-25T15:00:00Z"),
            (TradingSession::Closed, "2026-12-28T14:30:00Z".to_string())
        );
    }

    #[test]
    fn after_many_holidays_the_next_change_is_searched_day_by_day() {
        let mut nasdaq = trading_hours("UTC", "09:30:00", "16:00:00", 0);
        let first = Day::parse(b"2026-01-01").unwrap();
        nasdaq.holidays = (first.0..first.0 + 60).map(Day).collect();
        assert_eq!(
            current_session(&nasdaq, "2026-01-10T12:00:00Z"),
            (TradingSession::Closed, "2026-01-11T00:00:00Z".to_string())
        );
    }

    /// Returns the walked changes, each as the hour of a day and the first letters of a session.
    fn walked(trading_hours: &ExchangeHours, from: &str, now: &str) -> Vec<String> {
        let changes = trading_hours.walk(instant(from), instant(now)).into_iter();
        changes
            .map(|SessionChange { at, session }| format!("{} {session:?}", &at.to_string()[5..16]))
            .collect()
    }

    #[test]
    fn a_pause_over_the_close_is_walked_in_order() {
        let plain = trading_hours("UTC", "09:00:00", "17:00:00", 600);
        assert_eq!(
            walked(&plain, "2026-01-15T09:00:00Z", "2026-01-16T09:30:00Z"),
            [
                "01-15T16:50 ClosingAuction",
                "01-15T17:00 Closed",
                "01-16T08:50 OpeningAuction",
                "01-16T09:00 Continuous"
            ]
        );
        assert_eq!(walked(&plain, "2026-01-15T17:00:00Z", "2026-01-15T23:00:00Z"), [""; 0]);
        assert_eq!(
            walked(&plain, "2026-01-15T08:50:00Z", "2026-01-15T09:00:00Z"),
            ["01-15T09:00 Continuous"]
        );
        assert_eq!(walked(&plain, "2026-01-16T17:00:00Z", "2026-01-15T17:00:00Z"), [""; 0], "time went back");
    }

    #[test]
    fn of_a_long_pause_the_first_close_and_the_last_day_are_walked() {
        let plain = trading_hours("UTC", "09:00:00", "17:00:00", 0);
        let expected =
            ["01-15T17:00 Closed", "01-21T09:00 Continuous", "01-21T17:00 Closed", "01-22T09:00 Continuous"];
        assert_eq!(walked(&plain, "2026-01-15T09:00:00Z", "2026-01-22T10:00:00Z"), expected);
        let years = walked(&plain, "2020-01-15T09:00:00Z", "2026-01-22T10:00:00Z");
        assert_eq!(years[0], "01-15T17:00 Closed");
        assert_eq!(years[1..], expected[1..]);
    }

    #[test]
    fn holidays_and_weekends_are_no_part_of_a_walk() {
        let mut plain = trading_hours("UTC", "09:00:00", "17:00:00", 0);
        plain.holidays.insert(Day::parse(b"2026-01-16").unwrap());
        let expected = ["01-15T17:00 Closed", "01-19T09:00 Continuous"];
        assert_eq!(walked(&plain, "2026-01-15T09:00:00Z", "2026-01-19T10:00:00Z"), expected);
    }

    #[test]
    fn a_walk_through_summer_time_follows_the_local_clock() {
        let nasdaq = trading_hours("America/New_York", "09:30:00", "16:00:00", 0);
        let expected = ["03-06T21:00 Closed", "03-09T13:30 Continuous"];
        assert_eq!(walked(&nasdaq, "2026-03-06T14:30:00Z", "2026-03-09T15:00:00Z"), expected);
    }

    #[test]
    fn an_exchange_that_reopens_at_once_still_closes() {
        let continuous = trading_hours("UTC", "17:00:00", "17:00:00", 600);
        assert_eq!(
            walked(&continuous, "2026-01-14T17:00:00Z", "2026-01-15T18:00:00Z"),
            ["01-15T16:50 ClosingAuction", "01-15T17:00 Closed", "01-15T17:00 Continuous"]
        );
    }

    #[test]
    fn a_date_ends_at_its_close_or_at_once_without_trading() {
        let day = |text: &[u8]| Day::parse(text).unwrap();
        let mut nasdaq = trading_hours("America/New_York", "09:30:00", "16:00:00", 0);
        nasdaq.holidays.insert(day(b"2026-01-19"));
        for (now, ended_date) in [
            ("2026-01-16T20:59:59Z", b"2026-01-15"),
            ("2026-01-16T21:00:00Z", b"2026-01-16"),
            ("2026-01-17T12:00:00Z", b"2026-01-17"),
            ("2026-01-19T12:00:00Z", b"2026-01-19"),
            ("2026-01-20T12:00:00Z", b"2026-01-19"),
        ] {
            assert_eq!(nasdaq.ended_date(instant(now)), day(ended_date), "{now}");
        }
        let globex = trading_hours("America/Chicago", "17:00:00", "16:00:00", 0);
        assert_eq!(globex.ended_date(instant("2026-01-15T21:59:00Z")), day(b"2026-01-14"));
        assert_eq!(globex.ended_date(instant("2026-01-15T23:30:00Z")), day(b"2026-01-15"));
    }

    #[test]
    fn a_walk_ends_where_the_exchange_stands() {
        for (open, close, auction_s) in
            [("09:30:00", "16:00:00", 0), ("17:00:00", "16:00:00", 300), ("17:00:00", "17:00:00", 600)]
        {
            let trading_hours = trading_hours("Europe/Zurich", open, close, auction_s);
            let from = instant("2026-01-15T11:00:00Z");
            for hour in 1..=2_000u64 {
                let now = from.plus(hour * 1_711 * NS_PER_S);
                let walked = trading_hours.walk(from, now).last().map(|change| change.session);
                assert_eq!(
                    walked.unwrap_or(trading_hours.at(from).session),
                    trading_hours.at(now).session,
                    "{open} {now}"
                );
            }
        }
    }

    #[test]
    fn time_goes_forward_whatever_the_hours_are() {
        for (open, close) in [("09:30:00", "16:00:00"), ("17:00:00", "16:00:00"), ("17:00:00", "17:00:00")] {
            let trading_hours = trading_hours("Europe/Zurich", open, close, 600);
            let mut now = instant("2026-01-01T00:00:00Z");
            let end = instant("2027-01-01T00:00:00Z");
            let mut steps = 0;
            while now < end {
                let until = trading_hours.at(now).until;
                assert!(until > now, "{now}");
                (now, steps) = (until, steps + 1);
            }
            assert!((365..5_000).contains(&steps), "{steps}");
        }
    }
}
