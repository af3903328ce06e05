//! The installation as a whole: `[service]`, `[refdata]`, `[feed]` and `[demo]`.

use std::path::PathBuf;

use pitlane_engine::id::Currency;
use pitlane_engine::number::Money;
use pitlane_engine::time::TimeOfDay;

use super::section::Section;
use crate::time_zone::Zone;

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ServiceConfig {
    pub name: String,
    pub data_dir: PathBuf,
    pub timezone: Zone,
    /// Time of day in that zone.
    pub trading_day_rollover: TimeOfDay,
    pub base_currency: Currency,
    pub mode: ServiceMode,
    pub seed: u64,
    pub instance: u64,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ServiceMode {
    #[default]
    Embedded,
    Simulation,
    Distributed,
}

impl ServiceConfig {
    pub(super) fn read(section: &mut Section<'_>) -> ServiceConfig {
        ServiceConfig {
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
                    ("embedded", ServiceMode::Embedded),
                    ("simulation", ServiceMode::Simulation),
                    ("distributed", ServiceMode::Distributed),
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
pub struct RefDataConfig {
    /// None: the built-in set.
    pub dir: Option<PathBuf>,
}

impl RefDataConfig {
    pub(super) fn read(section: &mut Section<'_>) -> RefDataConfig {
        RefDataConfig { dir: section.path("dir") }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FeedConfig {
    pub on: bool,
    /// Events per second, of all securities together; None: [`FeedConfig::RATE_PER_SECURITY`] for
    /// each.
    pub rate: Option<u64>,
    pub seed: u64,
}

impl FeedConfig {
    /// Default rate of a security, in events per second: lively, and still readable.
    pub const RATE_PER_SECURITY: u64 = 5;

    pub(super) fn read(section: &mut Section<'_>, service: &ServiceConfig) -> FeedConfig {
        let (on, rate) = (section.flag("on"), section.number("rate", 0..=100_000_000));
        let seed = match section.number("seed", 0..=i64::MAX as u64) {
            0 => service.seed,
            seed => seed,
        };
        FeedConfig { on, rate: (rate > 0).then_some(rate), seed }
    }

    /// Returns the mean time between two events of one of so many securities, in nanoseconds.
    pub fn interval_ns(&self, securities: usize) -> u64 {
        let securities = securities.max(1) as u64;
        let rate = self.rate.unwrap_or(securities * FeedConfig::RATE_PER_SECURITY);
        (pitlane_engine::time::NS_PER_S.saturating_mul(securities) / rate).max(1)
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DemoConfig {
    pub on: bool,
    /// Mean number of actions per second.
    pub rate: u64,
    /// Cash of each strategy at its begin, in the base currency.
    pub cash: Money,
}

impl DemoConfig {
    pub(super) fn read(section: &mut Section<'_>) -> DemoConfig {
        DemoConfig {
            on: section.flag("on"),
            rate: section.number("rate", 1..=1_000),
            cash: section.money("cash"),
        }
    }
}
