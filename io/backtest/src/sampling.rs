//! When the equity is sampled, and of which securities the prices are kept.

use pitlane_config::Config;
use pitlane_engine::event::Tick;
use pitlane_engine::id::SecurityId;
use pitlane_engine::number::Price;
use pitlane_engine::refdata::RefData;
use pitlane_engine::time::{Day, NS_PER_DAY, Timestamp};

/// Securities whose prices are kept for plots and the benchmark, at most: each has as many samples
/// as the equity.
const OBSERVED_MAX: usize = 64;

/// Times of the samples: multiples of an interval, and the end of each day.
#[derive(Clone, Copy, Debug)]
pub(crate) struct SampleClock {
    pub every_ns: u64,
    /// Time of the next sample.
    pub next: Timestamp,
    day_end: Timestamp,
    /// Whether there were data since the end of the last day.
    pub has_data: bool,
}

impl SampleClock {
    pub(crate) fn new(every_ns: u64) -> SampleClock {
        SampleClock { every_ns, next: Timestamp::MAX, day_end: Timestamp::MAX, has_data: false }
    }

    pub(crate) fn begin(&mut self, now: Timestamp) {
        self.has_data = false;
        self.begin_day(now);
    }

    pub(crate) fn is_day_end(&self, now: Timestamp) -> bool {
        now >= self.day_end
    }

    pub(crate) fn begin_day(&mut self, now: Timestamp) {
        self.day_end = Timestamp(now.0 - now.0 % NS_PER_DAY).plus(NS_PER_DAY);
    }

    pub(crate) fn advance(&mut self, now: Timestamp) {
        let regular = Timestamp(now.0 - now.0 % self.every_ns).plus(self.every_ns);
        self.next = regular.min(self.day_end);
    }

    pub(crate) fn double(&mut self, now: Timestamp) {
        self.every_ns = self.every_ns.saturating_mul(2);
        self.advance(now);
    }
}

/// Drops every second sample.
pub(crate) fn thin_out<T>(samples: &mut Vec<T>) {
    let mut at = 0;
    samples.retain(|_| {
        at += 1;
        at % 2 == 1
    });
}

/// Returns the middle of the quote, or the last price without a quote.
pub(crate) fn mid_price(tick: &Tick) -> Option<Price> {
    let is_quoted = tick.bid_size.is_positive() && tick.ask_size.is_positive();
    if is_quoted {
        return Some(Price::from_raw(tick.bid.raw().midpoint(tick.ask.raw())));
    }
    tick.traded.then_some(tick.last)
}

/// Returns the securities of the strategies and of the benchmark.
pub(crate) fn observed_securities(config: &Config, reference: &RefData) -> Vec<SecurityId> {
    let chosen = config.simulation.benchmark.iter().flat_map(|security| security.ids(reference));
    let named = config.strategies.iter().flat_map(|strategy| &strategy.securities);
    bounded(chosen.chain(named.flat_map(|security| security.ids(reference))), OBSERVED_MAX)
}

/// Returns the first different items, so many at most.
fn bounded<T: PartialEq>(items: impl Iterator<Item = T>, max: usize) -> Vec<T> {
    let mut kept = Vec::new();
    for item in items {
        if kept.len() < max && !kept.contains(&item) {
            kept.push(item);
        }
    }
    kept
}

/// Names of months. The name of the last day's month is kept, since most questions are about it.
#[derive(Debug, Default)]
pub(crate) struct Months {
    day: Option<Day>,
    name: [u8; MONTH_BYTES],
}

/// Length of a month such as `2026-11`.
const MONTH_BYTES: usize = 7;

/// A month such as `2026-11`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Month([u8; MONTH_BYTES]);

impl std::fmt::Display for Month {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(std::str::from_utf8(&self.0).unwrap_or_default())
    }
}

impl Months {
    /// Returns the month of a time, in UTC.
    pub(crate) fn of(&mut self, at: Timestamp) -> Month {
        if self.day != Some(at.day()) {
            self.day = Some(at.day());
            let text = at.day().to_string();
            let bytes = text.as_bytes().first_chunk::<MONTH_BYTES>();
            self.name = *bytes.unwrap_or(&[b'0'; MONTH_BYTES]);
        }
        Month(self.name)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn samples_are_at_multiples_and_at_the_end_of_a_day() {
        let hour = NS_PER_DAY / 24;
        let mut clock = SampleClock::new(7 * hour);
        clock.begin(Timestamp(hour));
        let mut times = Vec::new();
        let mut now = Timestamp(hour);
        for _ in 0..6 {
            if clock.is_day_end(now) {
                clock.begin_day(now);
            }
            clock.advance(now);
            now = clock.next;
            times.push(now.0 / hour);
        }
        assert_eq!(times, [7, 14, 21, 24, 28, 35]);
    }

    #[test]
    fn so_many_securities_are_observed() {
        use pitlane_config::{Restricted, StrategyConfig};
        let reference = pitlane_config::refdata::shipped().unwrap();
        let ids: Vec<SecurityId> = reference.securities().iter().map(|row| row.id).collect();
        let strategy = |ids: &[SecurityId]| StrategyConfig {
            name: String::new(),
            kind: String::new(),
            securities: ids.iter().map(|id| Restricted::Id(*id)).collect(),
            start: true,
            cancel_on_failure: true,
            parameters: Default::default(),
        };
        let mut config = Config::default();
        config.simulation.benchmark = Some(Restricted::Id(ids[5]));
        config.strategies = vec![strategy(&ids[..3]), strategy(&ids[1..4])];
        let observed = observed_securities(&config, &reference);
        assert_eq!(observed, [ids[5], ids[0], ids[1], ids[2], ids[3]], "each once, the benchmark first");
        assert_eq!(bounded(0..1_000, 7), [0, 1, 2, 3, 4, 5, 6]);
    }

    #[test]
    fn months_are_those_of_the_calendar() {
        let mut months = Months::default();
        let at = |text: &str| Day::parse(text.as_bytes()).unwrap().start();
        assert_eq!(months.of(at("2026-11-30")).to_string(), "2026-11");
        assert_eq!(months.of(at("2026-12-01")).to_string(), "2026-12");
        assert_eq!(months.of(at("2026-12-01").plus(1)).to_string(), "2026-12");
    }

    #[test]
    fn a_price_is_the_middle_of_the_quote_or_the_last() {
        let price = |raw| Price::from_raw(raw);
        let size = pitlane_engine::number::Qty::from_raw(1);
        let mut tick = Tick { last: price(7), traded: true, ..Tick::default() };
        assert_eq!(mid_price(&tick), Some(price(7)));
        (tick.bid, tick.ask, tick.bid_size, tick.ask_size) = (price(10), price(20), size, size);
        assert_eq!(mid_price(&tick), Some(price(15)));
        assert_eq!(mid_price(&Tick::default()), None);
    }
}
