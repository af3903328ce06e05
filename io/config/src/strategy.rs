//! Strategies of this process and their data: `[[strategy]]`, `[simulation]` and `[record]`.

use std::collections::BTreeMap;
use std::path::PathBuf;

use pitlane_engine::number::Money;
use pitlane_engine::time::{Day, NS_PER_S, Timestamp};
use pitlane_protocols::rest::Moment;

use super::risk::Restricted;
use super::section::Section;
use super::tree::ConfigTable;

/// Longest bar and longest interval of samples: a week.
const INTERVAL_S_MAX: u64 = 7 * 86_400;
/// Longest warm-up: ten years.
const PREFEED_S_MAX: u64 = 3_650 * 86_400;

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StrategyConfig {
    /// Name of the strategy in the reference data.
    pub name: String,
    pub kind: String,
    pub securities: Vec<Restricted>,
    /// Whether the strategy starts with the platform.
    pub start: bool,
    pub cancel_on_failure: bool,
    /// Parameters as they were written; the kind interprets them.
    pub parameters: BTreeMap<String, String>,
}

impl StrategyConfig {
    /// Reads the defaults of all strategies, checked as strictly as the strategies themselves.
    pub(super) fn read_defaults(section: &mut Section<'_>) -> ConfigTable {
        let like = section.like();
        section.flag("start");
        section.flag("cancel_on_failure");
        like
    }

    pub(super) fn read(section: &mut Section<'_>) -> StrategyConfig {
        StrategyConfig {
            name: section.text("name"),
            kind: section.text("kind"),
            securities: section.items("securities", Restricted::read, Restricted::to_string),
            start: section.flag("start"),
            cancel_on_failure: section.flag("cancel_on_failure"),
            parameters: section.texts_by_name("parameters"),
        }
    }
}

/// Settings of `pitlane simulate`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SimulationConfig {
    pub data: Vec<PathBuf>,
    pub from: Option<Timestamp>,
    pub to: Option<Timestamp>,
    pub prefeed_ns: u64,
    /// Cash of each strategy at the beginning, in the base currency.
    pub cash: Money,
    pub sample_ns: u64,
    pub bar_ns: u64,
    /// Hundredths of a percent.
    pub bar_volume_bp: u32,
    /// None: nothing is written.
    pub report_dir: Option<PathBuf>,
}

impl SimulationConfig {
    pub(super) fn read(section: &mut Section<'_>) -> SimulationConfig {
        let instant = |section: &mut Section<'_>, key| {
            let show = |at: &Option<Timestamp>| at.map_or(String::new(), |at| at.to_string());
            section.text_as(key, parse_instant, show).flatten()
        };
        let simulation = SimulationConfig {
            data: section.texts("data").into_iter().map(PathBuf::from).collect(),
            from: instant(section, "from"),
            to: instant(section, "to"),
            prefeed_ns: section.number("prefeed_s", 0..=PREFEED_S_MAX) * NS_PER_S,
            cash: section.money("cash"),
            sample_ns: section.number("sample_s", 1..=INTERVAL_S_MAX) * NS_PER_S,
            bar_ns: section.number("bar_s", 1..=INTERVAL_S_MAX) * NS_PER_S,
            bar_volume_bp: section.percent("bar_volume_pct", 10_000),
            report_dir: section.path("report_dir"),
        };
        if simulation.from.zip(simulation.to).is_some_and(|(from, to)| from >= to) {
            section.fault("to", "it must be later than from");
        }
        simulation
    }
}

/// Parses RFC 3339; a day is its beginning in UTC.
fn parse_instant(text: &str) -> Result<Option<Timestamp>, String> {
    if text.is_empty() {
        return Ok(None);
    }
    let parsed = match Day::parse(text.as_bytes()) {
        Ok(day) => Ok(day.start()),
        Err(_) => Moment::parse(text).map(|moment| moment.0),
    };
    parsed
        .map(Some)
        .map_err(|_| format!("it must be such as 2026-11-14T09:30:00Z or 2026-11-14, not {text:?}"))
}

/// Recording of ticks of the live market into a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RecordConfig {
    /// None: nothing is recorded.
    pub file: Option<PathBuf>,
}

impl RecordConfig {
    pub(super) fn read(section: &mut Section<'_>) -> RecordConfig {
        RecordConfig { file: section.path("file") }
    }
}

/// Prices from files instead of the simulated feed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ReplayConfig {
    /// Empty: the simulated feed.
    pub data: Vec<PathBuf>,
    /// Speed relative to the original, in thousandths; None: as fast as the receivers accept.
    pub speed_permille: Option<u64>,
}

impl ReplayConfig {
    pub(super) fn read(section: &mut Section<'_>) -> ReplayConfig {
        let data = section.texts("data").into_iter().map(PathBuf::from).collect();
        // A rate has eight decimals.
        let speed = section.rate("speed").raw() / 100_000;
        ReplayConfig { data, speed_permille: u64::try_from(speed).ok().filter(|speed| *speed > 0) }
    }
}
