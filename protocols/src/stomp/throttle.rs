//! Rate of market data to one WebSocket connection: one event every 1/rate seconds, never a burst
//! of saved-up events, and events of rare instruments at once.
//!
//! Rules: docs/stomp.md#throttling.

use pitlane_engine::text::{self, SCALE, TextError};
use pitlane_engine::time::{NS_PER_S, Timestamp};

/// Events per second; zero or less means no bound.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct EventRate(i64);

impl EventRate {
    /// Reads a decimal such as `0.1`.
    pub fn parse(bytes: &[u8]) -> Result<EventRate, TextError> {
        text::parse_scaled(bytes).map(EventRate)
    }

    /// Returns a rate in hundred-millionths of an event per second.
    pub const fn from_raw(raw: i64) -> EventRate {
        EventRate(raw)
    }

    pub const fn raw(self) -> i64 {
        self.0
    }

    pub const fn per_second(events: i32) -> EventRate {
        EventRate(events as i64 * SCALE)
    }

    /// Returns the nanoseconds between two events, or `None` without a bound. The result is rounded
    /// up, so that the rate is never exceeded.
    pub fn interval(self) -> Option<u64> {
        let rate = u128::try_from(self.0).ok().filter(|rate| *rate > 0)?;
        let interval = (NS_PER_S as u128 * SCALE as u128).div_ceil(rate);
        Some(u64::try_from(interval).unwrap_or(u64::MAX))
    }
}

/// `broker.maxRatePerConnection` and `broker.minRatePerConsumer`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Throttle {
    pub max_rate_per_connection: EventRate,
    pub min_rate_per_consumer: EventRate,
}

impl Default for Throttle {
    fn default() -> Throttle {
        Throttle {
            max_rate_per_connection: EventRate::per_second(50),
            min_rate_per_consumer: EventRate(SCALE / 10),
        }
    }
}

impl Throttle {
    /// Returns whether an event is of a rare instrument: the time since the previous event at the
    /// source is longer than the minimum rate permits. The first event ever is not rare.
    pub fn is_rare(&self, before: Option<Timestamp>, at: Timestamp) -> bool {
        match (self.min_rate_per_consumer.interval(), before) {
            (Some(interval), Some(before)) => at.since(before) > interval,
            _ => false,
        }
    }
}

/// Share of the rate that remains for other events: one tenth.
const SHARE_LEFT: u64 = 10;
/// Time after which the debt of rare events is forgotten, because a past window does not matter.
const DEBT_NS_MAX: u64 = NS_PER_S;

/// Time of the next event of one connection.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ConnectionPace {
    free_at: Timestamp,
    /// Time of the last event that was sent in turn.
    last: Timestamp,
    /// Time since which an event waits.
    waiting: Timestamp,
}

impl ConnectionPace {
    /// Returns when the next event in turn may be sent.
    pub fn due(&self, interval: u64) -> Timestamp {
        let since = self.last.max(self.waiting);
        self.free_at.min(since.plus(interval.saturating_mul(SHARE_LEFT)))
    }

    /// Records that an event waits from now on.
    pub fn wait(&mut self, now: Timestamp) {
        self.waiting = now;
    }

    /// Records an event that was sent in turn.
    pub fn turn(&mut self, now: Timestamp, interval: u64) {
        self.last = now;
        self.owe(now, interval);
    }

    /// Records a rare event that was sent at once.
    pub fn rare(&mut self, now: Timestamp, interval: u64) {
        self.owe(now, interval);
    }

    /// Changes the rate: no event waits longer than the new rate requires.
    pub fn change(&mut self, interval: u64) {
        self.free_at = self.free_at.min(self.last.plus(interval));
    }

    fn owe(&mut self, now: Timestamp, interval: u64) {
        self.free_at = self.free_at.max(now).plus(interval).min(now.plus(interval.max(DEBT_NS_MAX)));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: u64 = 1_000_000;

    #[test]
    fn rates_may_be_fractions_or_off() {
        for (text, interval) in [
            ("50", Some(20 * MS)),
            ("0.1", Some(10_000 * MS)),
            ("2.5", Some(400 * MS)),
            ("3", Some(333_333_334)),
            ("0", None),
            ("-1", None),
        ] {
            assert_eq!(EventRate::parse(text.as_bytes()).unwrap().interval(), interval, "{text}");
        }
        assert!(EventRate::parse(b"fast").is_err());
        assert_eq!(EventRate::per_second(50).interval(), Some(20 * MS));
    }

    #[test]
    fn an_event_below_the_minimum_rate_is_rare() {
        let throttle = Throttle::default();
        let at = Timestamp(100_000 * MS);
        let ago = |ms: u64| Some(Timestamp(at.0 - ms * MS));
        assert!(!throttle.is_rare(None, at), "the first ever takes its turn");
        assert!(!throttle.is_rare(ago(10_000), at));
        assert!(throttle.is_rare(ago(10_001), at));
        let off = Throttle { min_rate_per_consumer: EventRate(0), ..throttle };
        assert!(!off.is_rare(ago(99_000), at));
    }

    #[test]
    fn rare_events_leave_a_tenth_of_the_rate() {
        let mut pace = ConnectionPace::default();
        let interval = 20 * MS;
        pace.turn(Timestamp(0), interval);
        assert_eq!(pace.due(interval), Timestamp(20 * MS));
        pace.wait(Timestamp(0));
        pace.rare(Timestamp(5 * MS), interval);
        assert_eq!(pace.due(interval), Timestamp(40 * MS));
        for _ in 0..1_000 {
            pace.rare(Timestamp(6 * MS), interval);
        }
        assert_eq!(pace.due(interval), Timestamp(200 * MS));
        pace.change(MS);
        assert_eq!(pace.due(MS), Timestamp(MS));
    }
}
