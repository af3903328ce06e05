//! The intervals of bars, and the trading days of exchanges.

use std::collections::BTreeMap;

use pitlane_config::time_zone::Zone;
use pitlane_engine::id::{ExchangeId, SecurityId};
use pitlane_engine::refdata::{Exchange, RefData};
use pitlane_engine::time::{Day, NS_PER_S, TimeOfDay, Timestamp};

pub(crate) const NS_PER_MINUTE: u64 = 60 * NS_PER_S;

/// Length of a bar.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BarInterval {
    Second,
    Minute,
    /// A trading day of the exchange.
    Day,
}

impl BarInterval {
    pub const ALL: [BarInterval; 3] = [BarInterval::Second, BarInterval::Minute, BarInterval::Day];

    /// Returns the name in queries.
    pub fn name(self) -> &'static str {
        match self {
            BarInterval::Second => "1s",
            BarInterval::Minute => "1m",
            BarInterval::Day => "1d",
        }
    }

    pub fn parse(text: &str) -> Option<BarInterval> {
        BarInterval::ALL.into_iter().find(|interval| interval.name() == text)
    }
}

/// Returns the begin of the second or minute of a time.
pub(crate) fn floor(at: Timestamp, interval_ns: u64) -> Timestamp {
    Timestamp(at.0 - at.0 % interval_ns)
}

/// A trading day: from its begin to the begin of the next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct DaySpan {
    pub start: Timestamp,
    pub end: Timestamp,
}

/// The trading days of all securities.
///
/// A day begins at midnight of the exchange's time zone. A session that passes midnight belongs to
/// the day of its close, so the day of such an exchange begins at the close before.
#[derive(Clone, Debug, Default)]
pub(crate) struct TradingDays {
    rules: BTreeMap<ExchangeId, DayRule>,
    exchanges: BTreeMap<SecurityId, ExchangeId>,
    utc: DayRule,
}

#[derive(Clone, Debug, Default)]
struct DayRule {
    zone: Zone,
    /// Time of day at which a day begins, on the day before if it is not midnight.
    begin: TimeOfDay,
}

impl TradingDays {
    pub(crate) fn of(reference: &RefData) -> TradingDays {
        let rules = reference.exchanges().iter().map(|row| (row.id, DayRule::of(row)));
        let securities = reference.securities().iter();
        let exchanges = securities.map(|row| (row.id, reference.exchange_of(row).id));
        TradingDays { rules: rules.collect(), exchanges: exchanges.collect(), utc: DayRule::default() }
    }

    /// Returns the trading day of a time. A security without an exchange has the days of UTC.
    pub(crate) fn span(&self, security: SecurityId, at: Timestamp) -> DaySpan {
        let rule = self.exchanges.get(&security).and_then(|exchange| self.rules.get(exchange));
        rule.unwrap_or(&self.utc).span(at)
    }
}

impl DayRule {
    fn of(exchange: &Exchange) -> DayRule {
        // The reader of the reference data has checked the name.
        let zone = Zone::parse(&exchange.time_zone).unwrap_or_default();
        let is_overnight = exchange.close <= exchange.open;
        DayRule { zone, begin: if is_overnight { exchange.close } else { TimeOfDay(0) } }
    }

    fn span(&self, at: Timestamp) -> DaySpan {
        let (today, time) = self.zone.local(at);
        let first = if time >= self.begin { today } else { Day(today.0 - 1) };
        let (start, end) =
            (self.zone.instant(first, self.begin), self.zone.instant(Day(first.0 + 1), self.begin));
        // At the ends of time, and in an hour that clocks show twice, the day still has its time.
        DaySpan { start: start.min(at), end: end.max(at.plus(1)) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(text: &str) -> Timestamp {
        pitlane_protocols::rest::Moment::parse(text).unwrap().0
    }

    fn rule(zone: &str, begin: &str) -> DayRule {
        let begin = TimeOfDay::parse(begin.as_bytes()).unwrap();
        DayRule { zone: Zone::parse(zone).unwrap(), begin }
    }

    #[test]
    fn a_day_has_the_midnights_of_its_exchange_also_when_clocks_change() {
        let new_york = rule("America/New_York", "00:00:00");
        for (time, start, end) in [
            ("2026-11-14T15:00:00Z", "2026-11-14T05:00:00Z", "2026-11-15T05:00:00Z"),
            ("2026-11-14T05:00:00Z", "2026-11-14T05:00:00Z", "2026-11-15T05:00:00Z"),
            ("2026-11-14T04:59:59Z", "2026-11-13T05:00:00Z", "2026-11-14T05:00:00Z"),
            ("2026-11-01T12:00:00Z", "2026-11-01T04:00:00Z", "2026-11-02T05:00:00Z"),
        ] {
            assert_eq!(new_york.span(at(time)), DaySpan { start: at(start), end: at(end) }, "{time}");
        }
    }

    #[test]
    fn a_session_that_passes_midnight_belongs_to_the_day_of_its_close() {
        let chicago = rule("America/Chicago", "16:00:00");
        let monday = DaySpan { start: at("2026-11-15T22:00:00Z"), end: at("2026-11-16T22:00:00Z") };
        for time in ["2026-11-15T23:00:00Z", "2026-11-16T12:00:00Z", "2026-11-16T21:59:59Z"] {
            assert_eq!(chicago.span(at(time)), monday, "{time}");
        }
    }

    #[test]
    fn the_ends_of_time_are_no_panic() {
        for zone in ["UTC", "Pacific/Apia", "-05:00"] {
            let rule = rule(zone, "00:00:00");
            for at in [Timestamp::ZERO, Timestamp(u64::MAX - 1)] {
                let span = rule.span(at);
                assert!(span.start <= at && at < span.end, "{zone} {at}");
            }
        }
    }
}
