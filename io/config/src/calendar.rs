//! Trading hours of exchanges: `[calendar]`.

use std::collections::BTreeMap;

use pitlane_engine::time::Day;

use super::section::{Section, text_of};

/// Longest auction, in seconds: an hour.
const AUCTION_S_MAX: u32 = 3_600;

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CalendarConfig {
    pub hours: TradingHoursConfig,
    /// Settings of single exchanges, by MIC.
    pub exchange: BTreeMap<String, TradingHoursConfig>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TradingHoursConfig {
    pub by: HoursBy,
    /// Seconds, for exchanges that have auctions.
    pub opening_auction_s: u32,
    pub closing_auction_s: u32,
    pub holidays: Vec<Day>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HoursBy {
    /// Trading never ends.
    Always,
    /// Trading follows the hours of the reference data.
    Exchange,
}

impl CalendarConfig {
    pub(super) fn read(section: &mut Section<'_>) -> CalendarConfig {
        let like = section.like();
        CalendarConfig {
            exchange: section.named("exchange", &like, TradingHoursConfig::read),
            hours: TradingHoursConfig::read(section),
        }
    }

    pub fn of(&self, mic: &str) -> &TradingHoursConfig {
        self.exchange.get(mic).unwrap_or(&self.hours)
    }
}

impl TradingHoursConfig {
    fn read(section: &mut Section<'_>) -> TradingHoursConfig {
        let day = |text: &str| {
            Day::parse(text.as_bytes()).map_err(|_| format!("{text:?} is not a day such as 2026-12-25"))
        };
        TradingHoursConfig {
            by: section.word("hours", &[("always", HoursBy::Always), ("exchange", HoursBy::Exchange)]),
            opening_auction_s: section.number("opening_auction_s", 0..=AUCTION_S_MAX),
            closing_auction_s: section.number("closing_auction_s", 0..=AUCTION_S_MAX),
            holidays: section.items("holidays", |value| day(text_of(value)?), Day::to_string),
        }
    }
}
