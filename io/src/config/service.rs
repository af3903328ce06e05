//! The installation as a whole: `[service]`, `[refdata]`, `[feed]` and `[demo]`.

use std::path::PathBuf;

use pitlane_engine::id::Currency;
use pitlane_engine::time::TimeOfDay;

use super::section::Section;
use crate::zone::Zone;

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Service {
    pub name: String,
    pub data_dir: PathBuf,
    pub timezone: Zone,
    /// Time of day in that zone.
    pub trading_day_rollover: TimeOfDay,
    pub base_currency: Currency,
    pub mode: Mode,
    pub seed: u64,
    pub instance: u64,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Mode {
    #[default]
    Embedded,
    Simulation,
    Distributed,
}

impl Service {
    pub(super) fn read(section: &mut Section<'_>) -> Service {
        Service {
            name: section.name("name", 32),
            data_dir: section
                .text_as("data_dir", parse_folder, |dir| dir.display().to_string())
                .unwrap_or_default(),
            timezone: section.text_as("timezone", Zone::parse, Zone::to_string).unwrap_or_default(),
            trading_day_rollover: section.time_of_day("trading_day_rollover"),
            base_currency: section
                .text_as("base_currency", parse_currency, Currency::to_string)
                .unwrap_or_default(),
            mode: section.word(
                "mode",
                &[
                    ("embedded", Mode::Embedded),
                    ("simulation", Mode::Simulation),
                    ("distributed", Mode::Distributed),
                ],
            ),
            seed: section.number("seed", 0..=i64::MAX as u64),
            instance: section.number("instance", 0..=i64::MAX as u64),
        }
    }
}

fn parse_folder(text: &str) -> Result<PathBuf, String> {
    if text.is_empty() { Err("it must name a folder".to_string()) } else { Ok(PathBuf::from(text)) }
}

fn parse_currency(text: &str) -> Result<Currency, String> {
    Currency::parse(text.as_bytes()).map_err(|_| format!("{text:?} is not a currency"))
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Refdata {
    /// None: the built-in set.
    pub dir: Option<PathBuf>,
}

impl Refdata {
    pub(super) fn read(section: &mut Section<'_>) -> Refdata {
        Refdata { dir: section.path("dir") }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Feed {
    pub on: bool,
    /// Events per second, of all securities together; None: [`Feed::RATE_PER_SECURITY`] for each.
    pub rate: Option<u64>,
    pub seed: u64,
}

impl Feed {
    /// Default rate of a security, in events per second: lively, and still readable.
    pub const RATE_PER_SECURITY: u64 = 5;

    pub(super) fn read(section: &mut Section<'_>, service: &Service) -> Feed {
        let (on, rate) = (section.flag("on"), section.number("rate", 0..=100_000_000));
        let seed = match section.number("seed", 0..=i64::MAX as u64) {
            0 => service.seed,
            seed => seed,
        };
        Feed { on, rate: (rate > 0).then_some(rate), seed }
    }

    /// Returns the mean time between two events of one of so many securities, in nanoseconds.
    pub fn interval_ns(&self, securities: usize) -> u64 {
        let securities = securities.max(1) as u64;
        let rate = self.rate.unwrap_or(securities * Feed::RATE_PER_SECURITY);
        (pitlane_engine::time::NS_PER_S.saturating_mul(securities) / rate).max(1)
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Demo {
    pub on: bool,
    /// Mean number of actions per second.
    pub rate: u64,
}

impl Demo {
    pub(super) fn read(section: &mut Section<'_>) -> Demo {
        Demo { on: section.flag("on"), rate: section.number("rate", 1..=1_000) }
    }
}
