//! Logging and metrics: `[log]` and `[metrics]`.

use std::collections::BTreeMap;
use std::path::PathBuf;

use tracing_subscriber::filter::LevelFilter;

use super::section::Section;

const LEVELS: [(&str, LevelFilter); 6] = [
    ("error", LevelFilter::ERROR),
    ("warn", LevelFilter::WARN),
    ("info", LevelFilter::INFO),
    ("debug", LevelFilter::DEBUG),
    ("trace", LevelFilter::TRACE),
    ("off", LevelFilter::OFF),
];

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LogConfig {
    pub level: LevelFilter,
    pub format: LogFormat,
    /// None: standard error.
    pub file: Option<PathBuf>,
    /// Size at which the file is renamed, in bytes; 0: never.
    pub file_bytes_max: u64,
    /// Renamed files that are kept.
    pub files_kept: u32,
    /// Levels of single modules, by path.
    pub targets: BTreeMap<String, LevelFilter>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LogFormat {
    /// Text on a terminal, JSON otherwise.
    Auto,
    Text,
    Json,
}

impl LogConfig {
    pub(super) fn read(section: &mut Section<'_>) -> LogConfig {
        LogConfig {
            level: section.word("level", &LEVELS),
            format: section.word(
                "format",
                &[("auto", LogFormat::Auto), ("text", LogFormat::Text), ("json", LogFormat::Json)],
            ),
            file: section.path("file"),
            file_bytes_max: section.number::<u64>("file_mb_max", 0..=1 << 20) << 20,
            files_kept: section.number::<u32>("files_kept", 0..=1_000),
            targets: section.words("targets", &LEVELS),
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MetricsConfig {
    pub on: bool,
    pub stages: bool,
}

impl MetricsConfig {
    pub(super) fn read(section: &mut Section<'_>) -> MetricsConfig {
        MetricsConfig { on: section.flag("on"), stages: section.flag("stages") }
    }
}
