//! Strategies of this process and their data: `[[strategy]]`, `[record]` and `[replay]`.

use std::collections::BTreeMap;
use std::path::PathBuf;

use super::data_files::DataFilesConfig;
use super::risk::Restricted;
use super::section::Section;
use super::tree::ConfigTable;

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

/// Recording of ticks of the live market into a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RecordConfig {
    /// Ticks. None: they are not recorded.
    pub file: Option<PathBuf>,
    /// Levels of the books. None: they are not recorded.
    pub levels_file: Option<PathBuf>,
}

impl RecordConfig {
    pub(super) fn read(section: &mut Section<'_>) -> RecordConfig {
        RecordConfig { file: section.path("file"), levels_file: section.path("levels_file") }
    }
}

/// Prices from files instead of the simulated feed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ReplayConfig {
    /// Empty: the simulated feed.
    pub data: Vec<PathBuf>,
    pub files: DataFilesConfig,
    /// Speed relative to the original, in thousandths; None: as fast as the receivers accept.
    pub speed_permille: Option<u64>,
}

impl ReplayConfig {
    pub(super) fn read(section: &mut Section<'_>) -> ReplayConfig {
        let data = section.texts("data").into_iter().map(PathBuf::from).collect();
        // A rate has eight decimals.
        let speed = section.rate("speed").raw() / 100_000;
        let speed_permille = u64::try_from(speed).ok().filter(|speed| *speed > 0);
        ReplayConfig { data, files: DataFilesConfig::read(section), speed_permille }
    }
}
