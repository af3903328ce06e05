//! Trading hours of exchanges: `[calendar]`.

use std::collections::BTreeMap;

use pitlane_engine::time::Day;

use super::section::{Section, text_of};

/// Longest auction, in seconds: an hour.
const AUCTION_S_MAX: u32 = 3_600;

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Calendar {
    pub hours: Hours,
    /// Settings of single exchanges, by MIC.
    pub exchange: BTreeMap<String, Hours>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Hours {
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

impl Calendar {
    pub(super) fn read(section: &mut Section<'_>) -> Calendar {
        let like = section.like();
        Calendar { exchange: section.named("exchange", &like, Hours::read), hours: Hours::read(section) }
    }

    pub fn of(&self, mic: &str) -> &Hours {
        self.exchange.get(mic).unwrap_or(&self.hours)
    }
}

impl Hours {
    fn read(section: &mut Section<'_>) -> Hours {
        let day = |text: &str| {
            Day::parse(text.as_bytes()).map_err(|_| format!("{text:?} is not a day such as 2026-12-25"))
        };
        Hours {
            by: section.word("hours", &[("always", HoursBy::Always), ("exchange", HoursBy::Exchange)]),
            opening_auction_s: section.number("opening_auction_s", 0..=AUCTION_S_MAX),
            closing_auction_s: section.number("closing_auction_s", 0..=AUCTION_S_MAX),
            holidays: section.items("holidays", |value| day(text_of(value)?), Day::to_string),
        }
    }
}
